# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the directions of lights from photographs of a mirror sphere, a photograph under each light.

The result is lights.lp, with the names of the photographs, for gst-imaging photostereo. Say where the sphere is with
--sphere or a mask (mask.* in the folder is used). Without, the sphere has to be brighter than its background. Photographs of
the object with the same names, or with --by-order in the same order, fit these lights. With two or more spheres and --mm-per-pixel
the lights are positions in mm, by parallax.
"""
import math
import os

from .. import job, library, photographs, play
from ..command import UNREADABLE, WRONG_USE, Failure
from ..report import plots

EXAMPLES = [
    ("sphere/ -o rig --sphere 1220.5,1233,415", "column and row of the middle, and the radius, in pixels"),
    ("spheres/ -o rig --sphere 300,310,95 --sphere 1700,320,96 --sphere 990,1200,95 --mm-per-pixel 0.1", "positions in mm, by parallax"),
    ("sphere/ -o rig", "with sphere/mask.png, white on the sphere"),
]


def add_arguments(parser):
    parser.add_argument("input", nargs="+", metavar="FOLDER", help="folders of photographs of a mirror sphere")
    job.add_arguments(parser)
    parser.add_argument("--sphere", type=circle, action="append", metavar="X,Y,RADIUS",
                        help="in pixels; (0, 0) is the middle of the first pixel. Several give positions, with --mm-per-pixel")
    parser.add_argument("--mm-per-pixel", type=float, metavar="MM", help="width of a pixel, for positions; the spheres stand on z = 0")
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


def where(np, made, sphere, mask, size):
    """Returns: words for spherelights"""
    if sphere:
        return [f"{name}={value:.10g}" for name, value in zip(("centre-x", "centre-y", "radius"), sphere)]
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


def intersect(np, found, size, mm):
    """The rays of each light from several spheres. Returns: the points nearest to them [lights, 3] in mm, from the middle of the
    picture, and their rms distance from the rays. A ray leaves the sphere where its normal halves the way between lamp and camera"""
    matrix, right, rays = 0, 0, []
    for sphere in found:
        x, y, radius = sphere.sphere
        way = np.array([[light[name] for name in "xyz"] for light in sphere.lights])
        normal = way + (0, 0, 1)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        start = mm * (np.array([x - (size[1] - 1) / 2, (size[0] - 1) / 2 - y, radius]) + radius * normal)
        across = np.eye(3) - way[:, :, None] * way[:, None, :]  # takes the part along the ray
        matrix, right = matrix + across, right + (across @ start[..., None])
        rays.append((across, start))
    if np.linalg.cond(matrix).max() > 1e8:
        raise Failure(UNREADABLE, "The spheres are so near to each other that the rays of a light are parallel: put them farther apart,"
                                  " or give one alone for directions.")
    points = np.linalg.solve(matrix, right)[..., 0]
    distances = [np.linalg.norm((across @ (points - start)[..., None])[..., 0], axis=1) for across, start in rays]
    return points, np.sqrt(np.mean(np.square(distances), 0))


def nearest(np, directions):
    """Returns: the smallest angle between two lights, in degrees"""
    cosines = directions @ directions.T - 2 * np.eye(len(directions))
    return math.degrees(math.acos(min(1.0, float(cosines.max()))))


def brightest(np, files):
    """All photographs in one: of each pixel the brightest, so that all highlights are seen."""
    shown = None
    for path in files:
        values = photographs.read(path)
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


def show_positions(np, made, points, distances, files):
    """Of several spheres."""
    report, far = made.report, np.linalg.norm(points, axis=1)
    report.figure("mean distance of the lights", float(far.mean()), "mm")
    report.figure("distance of the rays from the lights", float(np.sqrt(np.mean(distances ** 2))), "mm", at_most=float(0.02 * far.mean()),
                  about="rms; beyond: spheres that are not where --sphere says, another mm-per-pixel, or highlights of something else")
    report.table("Positions", ("photograph", "x (mm)", "y (mm)", "z (mm)", "rms distance of the rays (mm)"), [
        (os.path.basename(path), *map(float, point), float(distance)) for path, point, distance in zip(files, points, distances)])
    odd = [os.path.basename(path) for path, distance in zip(files, distances) if distance > max(5 * np.median(distances), 0.01 * far.mean())]
    if odd:
        made.warn(f"The rays of {len(odd)} of {len(files)} lights do not meet: {photographs.listed(odd)}. Look at these photographs.")


def run(options):
    np = library.numpy()
    spheres = options.sphere or [None]
    if len(spheres) > 1 and not options.mm_per_pixel:
        raise Failure(WRONG_USE, f"--sphere is given {len(spheres)} times, for positions in mm: give --mm-per-pixel as well.")
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
        made.setting("sphere", [list(sphere) for sphere in options.sphere] if options.sphere else None)
        made.setting("mm-per-pixel", options.mm_per_pixel)
        made.setting("threshold", options.threshold)
        if made.is_complete():
            return made.result
        samples = photographs.Samples(files)
        played, found = samples.playable(np, made), []
        threshold = [f"threshold={options.threshold:.10g}"] if options.threshold is not None else []
        for sphere in spheres:
            found.append(Found(played))
            try:
                made.play(["picturesrc", "name=in", "!", "spherelights", f"location={made.path('lights.lp')}",
                           *where(np, made, sphere, mask, size), *threshold, "!", "fakesink"],
                          "pictures", len(files), found[-1].take, prepare=found[-1].prepare)
            except Failure as failure:  # options in place of properties
                raise Failure(failure.code, str(failure).replace(
                    "Set mask-location, or centre-x, centre-y and radius.", "Give --mask, or --sphere X,Y,RADIUS.")) from failure
        samples.remove(made)
        if os.path.exists(made.path("mask.npy")):
            os.remove(made.path("mask.npy"))
        first, lights = found[0], found[0].lights
        show(np, made, first, files)
        if len(found) > 1:
            points, distances = intersect(np, found, size, options.mm_per_pixel)
            show_positions(np, made, points, distances, files)
            lights = [{**light, **dict(zip("xyz", map(float, point))), "residual": float(distance)}
                      for light, point, distance in zip(lights, points, distances)]
        write_lights(made.path("lights.lp"), files, lights)
        return made.finish(sphere=[float(value) for value in first.sphere], lights=lights)

    return job.run_all(options, "lights", options.input, work)
