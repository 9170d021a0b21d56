# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the directions of lights from photographs of a mirror sphere, a photograph under each light.

The result is lights.lp, with the names of the photographs, for gst-imaging photostereo. Say where the sphere is with
--sphere or a mask (mask.* in the folder is used). Without, the sphere has to be brighter than its background. Photographs of
the object with the same names, or with --by-order in the same order, fit these lights.
"""
import math
import os

from .. import job, library, photographs, play
from ..command import UNREADABLE, WRONG_USE, Failure
from ..report import plots

EXAMPLES = [
    ("sphere/ -o rig --sphere 1220.5,1233,415", "column and row of the middle, and the radius, in pixels"),
    ("sphere/ -o rig", "with sphere/mask.png, white on the sphere"),
]


def add_arguments(parser):
    parser.add_argument("input", nargs="+", metavar="FOLDER", help="folders of photographs of a mirror sphere")
    job.add_arguments(parser)
    parser.add_argument("--sphere", type=circle, metavar="X,Y,RADIUS", help="in pixels; (0, 0) is the middle of the first pixel")
    parser.add_argument("--mask", metavar="FILE", help="white on the sphere (default: mask.* in the folder)")
    parser.add_argument("--threshold", type=float, help="a highlight is brighter than this part of the brightest point")
    parser.add_argument("--extension", metavar="EXT", help="use the files with this extension alone")


def circle(text):
    x, y, radius = (float(word) for word in text.split(","))
    if not radius > 0:
        raise ValueError(text)
    return x, y, radius


class Found:
    """What spherelights tells."""

    def __init__(self, files):
        self.files, self.sphere, self.lights = files, None, []

    def prepare(self, pipeline):
        play.set_list(pipeline.get_by_name("in"), "locations", self.files)

    def take(self, structure):
        if structure.get_name() == "spherelights-sphere":
            self.sphere = [structure.get_value(name) for name in ("centre-x", "centre-y", "radius")]
        elif structure.get_name() == "spherelights-light":
            self.lights.append({name: structure.get_value(name)
                                for name in ("index", "x", "y", "z", "highlight-x", "highlight-y", "pixels")})


def where(np, made, options, mask, size):
    """Returns: words for spherelights"""
    if options.sphere:
        return [f"{name}={value:.10g}" for name, value in zip(("centre-x", "centre-y", "radius"), options.sphere)]
    if not mask:
        return []
    np.save(made.path("mask.npy"), photographs.read_mask(np, mask, size))
    return [f"mask-location={made.path('mask.npy')}"]


def write_lights(path, files, lights):
    """With the names of the photographs, so that those of an object are matched by name."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{len(lights)}\n")
        for name, light in zip(files, lights):
            file.write(f"{os.path.basename(name)} {light['x']:.8f} {light['y']:.8f} {light['z']:.8f}\n")


def nearest(np, directions):
    """Returns: the smallest angle between two lights, in degrees"""
    cosines = directions @ directions.T - 2 * np.eye(len(directions))
    return math.degrees(math.acos(min(1.0, float(cosines.max()))))


def brightest(np, files):
    """All photographs in one: of each pixel the brightest, so that all highlights are seen."""
    shown = None
    for path in files:
        values = photographs.read(np, path)
        values = values[..., :3].max(-1) if values.ndim == 3 else values
        shown = values if shown is None else np.maximum(shown, values)
    return shown


def show(np, made, found, files):
    report, (x, y, radius) = made.report, found.sphere
    directions = np.array([[light[name] for name in "xyz"] for light in found.lights])
    report.figure("lights", len(files), at_least=3, about="12 and more are usual")
    report.figure("radius of the sphere", radius, "pixels", at_least=60, about="larger spheres give better directions")
    report.figure("error if the middle is 1 pixel off", 115 / radius, "degrees", at_most=2)
    report.figure("nearest two lights", nearest(np, directions), "degrees", at_least=0.5, about="below: two photographs of one light")
    report.figure("lowest light", math.degrees(math.asin(float(np.clip(directions[:, 2].min(), -1, 1)))), "degrees", at_least=0,
                  about="elevation above the plane of the picture; below 0 the light is behind the object")
    report.picture("Highlights", brightest(np, files), caption="The brightest of all photographs at each pixel. Sphere:"
                   f" middle {x:.2f}, {y:.2f}, radius {radius:.2f} pixels.")
    report.plot("Directions", plots.scatter(("x", ""), ("y", ""), {"": (directions[:, 0], directions[:, 1])}),
                "From the camera: x to the right, y up.")
    report.table("Lights", ("photograph", "x", "y", "z", "highlight x (pixels)", "highlight y (pixels)"), [
        (os.path.basename(path), *(float(light[name]) for name in ("x", "y", "z", "highlight-x", "highlight-y")))
        for path, light in zip(files, found.lights)])


def run(options):
    np = library.numpy()
    if options.sphere and options.mask:
        raise Failure(WRONG_USE, "--sphere and --mask both say where the sphere is: give one of them.")

    def work(folder, made):
        if not os.path.isdir(folder):
            raise Failure(UNREADABLE, f"{folder} is no folder.")
        files, beside = photographs.files_of(folder, options.extension)
        if not files:
            raise Failure(UNREADABLE, f"{folder} has no pictures.")
        pairs, size = photographs.same_kind(list(enumerate(files)), made.warn)
        files, mask = [path for _i, path in pairs], options.mask or beside.get("mask")
        mask = None if options.sphere else mask
        for path in files:
            made.input(path, "picture")
        if mask:
            made.input(mask, "mask")
        made.setting("sphere", list(options.sphere) if options.sphere else None)
        made.setting("threshold", options.threshold)
        if made.is_complete():
            return made.result
        samples = photographs.Samples(files)
        found = Found(samples.playable(np, made))
        threshold = [f"threshold={options.threshold:.10g}"] if options.threshold is not None else []
        try:
            made.play(["picturesrc", "name=in", "!", "spherelights", f"location={made.path('lights.lp')}",
                       *where(np, made, options, mask, size), *threshold, "!", "fakesink"],
                      "pictures", len(files), found.take, prepare=found.prepare)
        except Failure as failure:  # options in place of properties
            raise Failure(failure.code, str(failure).replace(
                "Set mask-location, or centre-x, centre-y and radius.", "Give --mask, or --sphere X,Y,RADIUS.")) from failure
        samples.remove(made)
        if os.path.exists(made.path("mask.npy")):
            os.remove(made.path("mask.npy"))
        write_lights(made.path("lights.lp"), files, found.lights)
        show(np, made, found, files)
        return made.finish(sphere=[float(value) for value in found.sphere], lights=found.lights)

    return job.run_all(options, "lights", options.input, work)
