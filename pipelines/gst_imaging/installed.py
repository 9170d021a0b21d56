# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is installed: versions, hardware, formats and elements."""
import json
import os
import platform

from . import library

# What elements read and write by themselves: name, one of the elements, about
OTHER_FORMATS = [
    ("rasters of GDAL", "slcsrc", "GeoTIFF, ENVI, ISCE (.vrt) and others: read by slcsrc and the commands of SAR, written by insarform and"
     " insarxcorr; GDAL is loaded at first use"),
    ("meshes", "normalintegrate", ".glb, .obj, .ply: written by normalintegrate"),
]


def declared():
    """Returns: for each plug-in of the sources its elements and the library it needs, as the build wrote them"""
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.environ.get("GST_IMAGING_BUILD") or os.path.join(here, "../../build")
    for path in os.path.join(here, "elements.txt"), os.path.join(build, "gst/index.txt"):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                return [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    return []


def collect():
    Gst = library.gstreamer()
    found = {}
    for plugin in library.plugins(Gst):
        for feature in Gst.Registry.get().get_feature_list_by_plugin(plugin.get_name()):
            if isinstance(feature, Gst.ElementFactory):
                found[feature.get_name()] = feature.get_metadata("long-name")
    about = json.loads(library.describe(Gst) or "{}")
    known = {element: needs for _name, _page, _backends, elements, _about, needs in declared()
             for element in elements.split()}
    missing = {element: needs for element, needs in known.items() if element not in found}
    if known:  # a build folder also has the template of an element
        found = {element: title for element, title in found.items() if element in known}
    return {
        "version": about.get("version"),
        "gstreamer": ".".join(map(str, Gst.version()[:3])),
        "python": platform.python_version(),
        "cpu": about.get("cpu"),
        "cuda": about.get("cuda"),
        "formats": about.get("formats"),
        "other-formats": {name: about for name, element, about in OTHER_FORMATS if element in found},
        "elements": dict(sorted(found.items())),
        "missing": dict(sorted(missing.items())),
    }
