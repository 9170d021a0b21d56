# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples without a header, which a .vrt of GDAL or a .hdr of ENVI describes. GDAL reads zeros behind the end of a file that is cut."""
import os
import re
import xml.etree.ElementTree

from ..command import UNREADABLE, Failure

SIZES = {"Byte": 1, "Int8": 1, "UInt16": 2, "Int16": 2, "UInt32": 4, "Int32": 4, "Float32": 4, "Float64": 8, "CInt16": 4, "CInt32": 8, "CFloat32": 8,
         "CFloat64": 16}
ENVI_SIZES = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 6: 8, 9: 16, 12: 2, 13: 4, 14: 8, 15: 8}  # by its "data type"
DEEPEST = 8  # a .vrt may name another one, or itself
LONGEST = 1 << 24  # bytes of a .vrt


def of_envi(path):
    """Returns: the bytes that the header of ENVI beside a file wants; 0 without one"""
    header = next(filter(os.path.isfile, (path + ".hdr", os.path.splitext(path)[0] + ".hdr")), None)
    if not header or header == path:
        return 0
    with open(header, encoding="utf-8", errors="replace") as file:
        text = file.read(1 << 20)
    found = {name.strip().lower(): int(value) for name, value in re.findall(r"^([A-Za-z ]+?)\s*=\s*(\d+)\s*$", text, re.MULTILINE)}
    if not text.startswith("ENVI") or found.get("file compression"):
        return 0
    size = ENVI_SIZES.get(found.get("data type"), 0)
    return found.get("header offset", 0) + found.get("samples", 0) * found.get("lines", 0) * found.get("bands", 1) * size


def sources(path):
    """Of a .vrt. Returns: each file that it names, and the bytes that it wants of it, 0 where the file knows itself"""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
        width, height = (int(root.get(name)) for name in ("rasterXSize", "rasterYSize"))
        for band in root.iter("VRTRasterBand"):
            for node in band.iter("SourceFilename"):
                name = os.path.join(os.path.dirname(path), node.text) if node.get("relativeToVRT") == "1" else node.text
                wanted = 0
                if band.get("subClass") == "VRTRawRasterBand":
                    size = SIZES[band.get("dataType", "Byte")]
                    pixel = int(band.findtext("PixelOffset") or size)
                    line = int(band.findtext("LineOffset") or pixel * width)
                    wanted = int(band.findtext("ImageOffset") or 0) + max(0, line) * (height - 1) + max(0, pixel) * (width - 1) + size
                yield name, wanted
    except (xml.etree.ElementTree.ParseError, KeyError, TypeError, ValueError):
        return  # GDAL tells what is wrong


def check(path, depth=0):
    """Fails where a file is missing, or shorter than its description. path: of an image or raster"""
    if not os.path.isfile(path):
        return
    if path.lower().endswith(".vrt") and os.path.getsize(path) < LONGEST:
        for name, wanted in sources(path):
            if wanted and not os.path.isfile(name):
                raise Failure(UNREADABLE, f'"{path}" names "{name}", and there is no such file.')
            check_size(name, wanted, path)
            if not wanted and depth < DEEPEST:
                check(name, depth + 1)
    elif not os.path.splitext(path)[1].lower() in (".hdr", ".tif", ".tiff"):
        check_size(path, of_envi(path), "its header of ENVI")


def check_size(path, wanted, by):
    size = os.path.getsize(path) if os.path.isfile(path) else wanted
    if size < wanted:
        raise Failure(UNREADABLE, f'"{path}" has {size} bytes, and {wanted} by {by}: it is cut short by {100 * (1 - size / wanted):.2g} %. Copy it again, '
                                  "or describe its true size.")
