# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the directions of lights from photographs of a mirror sphere, a photograph under each light.

The result is lights.lp, with the names of the photographs, for gst-imaging photostereo. Say where the sphere is with
--sphere or a mask (mask.* in the folder is used). Without, the sphere has to be brighter than its background. Photographs of
the object with the same names, or with --by-order in the same order, fit these lights. Of two or more spheres the lights are the
mean directions, or with --mm-per-pixel positions in mm, by parallax.

Directions are right only for lamps farther than ten times the object. Measure nearer lamps with a string, from the middle of the
object to the lamp, and give --distance-mm: lights.lp then has positions in mm.

Lamps that differ in brightness make a wrong albedo and wrong normals. With photographs of a white card (--card) or of a matte white
sphere (--matte) under the same lights, lights.lp has the intensity of each lamp in red, green and blue as well.
"""
import argparse
import math
import os
import re

from .. import curves, job, lamps, library, mirrors, outline, photographs, pinhole, play, shading
from ..command import UNREADABLE, WRONG_USE, Failure, absent
from ..report import plots

EXAMPLES = [
    ("sphere/ -o rig --sphere 1220.5,1233,415", "column and row of the middle, and the radius, in pixels"),
    ("sphere/ -o rig --sphere 1220.5,1233,415 --sphere-diameter-mm 25 --distance-mm 400", "positions in mm of lamps on a string of 400 mm"),
    ("spheres/ -o rig --sphere 300,310,95 --sphere 1700,320,96 --sphere 990,1200,95 --mm-per-pixel 0.1", "positions in mm, by parallax"),
    ("spheres/ -o rig --sphere 300,310,95 --sphere 1700,320,96", "mean directions"),
    ("sphere/ -o rig --card card/", "with the intensity of each lamp per colour, from photographs of a white card"),
    ("sphere/ -o rig --matte ball/ --matte-sphere 1220,1233,400", "the same from photographs of a matte white sphere"),
    ("sphere/ -o rig", "with sphere/mask.png, white on the sphere"),
]

FEWEST = 3  # lights
FALL_OFF = 0.05
APART = 3  # degrees, of a light from two spheres
TURNED = 1  # degrees, of lights by a circle that is not the outline
FAR = 10  # times the object, of lamps whose directions are the same all over it
DISTANCE = "distance of the lamps", "times the object"
NOT_KNOWN = ("one sphere tells directions, not distances. Nearer lamps bend the heights: measure from the middle of the object to the lamp with a"
             " string, and give --distance-mm; or take two spheres and --mm-per-pixel")


def add_arguments(parser):
    parser.add_argument("input", nargs="+", metavar="FOLDER", help="folders of photographs of a mirror sphere")
    job.add_arguments(parser)
    parser.add_argument("--sphere", type=circle, action="append", metavar="X,Y,RADIUS",
                        help="in pixels; (0, 0) is the middle of the first pixel. Several give mean directions, with --mm-per-pixel positions")
    parser.add_argument("--mm-per-pixel", type=float, metavar="MM", help="width of a pixel, for positions; the spheres stand on z = 0")
    parser.add_argument("--distance-mm", type=float, metavar="MM", help="from the middle of the object, which is that of the picture, to each lamp:"
                        " positions from one sphere. With --mm-per-pixel or --sphere-diameter-mm")
    parser.add_argument("--sphere-diameter-mm", type=float, metavar="MM", help="of the sphere in place of --mm-per-pixel")
    parser.add_argument("--focal-length-mm", type=float, metavar="MM", help="of a lens without distortion, with --sensor-width-mm: the rays of a"
                        " pinhole camera (default: parallel rays)")
    parser.add_argument("--sensor-width-mm", type=float, metavar="MM", help="width of the part of the sensor that the pictures are of")
    parser.add_argument("--mask", metavar="FILE", help="white on the sphere (default: mask.* in the folder)")
    parser.add_argument("--card", metavar="FOLDER", help="photographs of a white card on z = 0 that fills the picture, of the same names:"
                        " for the intensities of the lights")
    parser.add_argument("--matte", metavar="FOLDER", help="the same with a matte white sphere, at --matte-sphere")
    parser.add_argument("--matte-sphere", type=circle, metavar="X,Y,RADIUS", help="where it is, in pixels")
    curves.add_arguments(parser)
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
        if not (-0.5 <= sphere[0] <= size[1] - 0.5 and -0.5 <= sphere[1] <= size[0] - 0.5):
            raise Failure(WRONG_USE, f"--sphere={','.join(f'{value:g}' for value in sphere)}: the middle {sphere[0]:g},{sphere[1]:g} is not in the pictures"
                                     f" of {size[1]} x {size[0]}.")
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
            colours = "".join(f" {value:.6f}" for value in light.get("intensity", ()))
            file.write(f"{os.path.basename(name)} {light['x']:.8f} {light['y']:.8f} {light['z']:.8f}{colours}\n")


def camera_of(np, options, size):
    """Returns: a Pinhole; None for parallel rays"""
    if options.focal_length_mm is None:
        return None
    return pinhole.Pinhole(np, options.focal_length_mm, options.sensor_width_mm, size, options.mm_per_pixel)


def turn_to_camera(np, camera, found):
    """Of highlights the directions that a pinhole camera sees in the mirror; spherelights has those of parallel rays."""
    for sphere in found:
        highlights = np.array([[light["highlight-x"], light["highlight-y"]] for light in sphere.lights])
        _points, ways = camera.reflect(sphere.sphere, *highlights.T)
        for light, way in zip(sphere.lights, ways):
            light.update(zip("xyz", map(float, way)))


def start_of(np, sphere, size, mm, camera):
    """Returns: where the rays of the lights leave a sphere [lights, 3], and their directions"""
    x, y, radius = sphere.sphere
    if camera:
        return camera.reflect(sphere.sphere, *np.array([[light["highlight-x"], light["highlight-y"]] for light in sphere.lights]).T)
    way = np.array([[light[name] for name in "xyz"] for light in sphere.lights])
    normal = way + (0, 0, 1)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return mm * (np.array([x - (size[1] - 1) / 2, (size[0] - 1) / 2 - y, radius]) + radius * normal), way


def intersect(np, found, size, mm, camera=None):
    """The rays of each light from several spheres. Returns: the points nearest to them [lights, 3] in mm, from the middle of the
    picture, and their rms distance from the rays. A ray leaves the sphere where its normal halves the way between lamp and camera"""
    matrix, right, rays = 0, 0, []
    for sphere in found:
        start, way = start_of(np, sphere, size, mm, camera)
        across = np.eye(3) - way[:, :, None] * way[:, None, :]  # takes the part along the ray
        matrix, right = matrix + across, right + (across @ start[..., None])
        rays.append((across, start))
    if np.linalg.cond(matrix).max() > 1e8:
        raise Failure(UNREADABLE, "The spheres are so near to each other that the rays of a light are parallel: put them farther apart,"
                                  " or give one alone for directions.")
    points = np.linalg.solve(matrix, right)[..., 0]
    distances = [np.linalg.norm((across @ (points - start)[..., None])[..., 0], axis=1) for across, start in rays]
    return points, np.sqrt(np.mean(np.square(distances), 0))


def odd_one(failure):
    """Returns: the number of the picture that a sentence of spherelights refuses; None where it is not one picture's fault"""
    found = re.search(r"Picture (\d+), counted from 0, shows|The highlight of picture (\d+),", str(failure))
    return int(found[1] or found[2]) if found else None


def named(sentence, files):
    """Returns: a sentence of spherelights with names in the place of the numbers of pictures, which do not count those that were left out"""
    def name(number):
        return os.path.basename(files[int(number)])

    sentence = re.sub(r"in pictures (\d+), (\d+) and (\d+), counted from 0,", lambda m: "in {}, {} and {},".format(*map(name, m.groups())), sentence)
    sentence = re.sub(r"Pictures (\d+) and (\d+), counted from 0,", lambda m: f"{name(m[1])} and {name(m[2])}", sentence)
    sentence = re.sub(r"Picture (\d+), counted from 0,", lambda m: name(m[1]), sentence)
    return re.sub(r"of picture (\d+),", lambda m: f"of {name(m[1])},", sentence)


def place_at_distance(np, sphere, size, mm, camera, distance):
    """The rays of one sphere end at lamps this far, in mm, from the middle of the picture on z = 0. Changes the lights to positions."""
    start, way = start_of(np, sphere, size, mm, camera)
    if np.linalg.norm(start, axis=1).max() >= distance:
        raise Failure(WRONG_USE, f"--distance-mm is {distance:g}, and the sphere is {np.linalg.norm(start, axis=1).max():.0f} mm from the middle of the"
                                 " picture: the lamps have to be farther away. Check --distance-mm and the scale.")
    along = (start * way).sum(1)
    length = np.sqrt(along ** 2 + distance ** 2 - (start ** 2).sum(1)) - along
    points = start + length[:, None] * way
    return [{**light, **dict(zip("xyz", map(float, point)))} for light, point in zip(sphere.lights, points)]


def in_options(sentence):
    """Returns: a sentence of spherelights with options in the place of properties"""
    for properties, words in (("Set mask-location, or centre-x, centre-y and radius.", "Give --mask, or --sphere X,Y,RADIUS."),
                              ("Check centre-x, centre-y and radius;", "Check --sphere X,Y,RADIUS;"),
                              ("or raise threshold.", "or give --threshold 0.95.")):
        sentence = sentence.replace(properties, words)
    return sentence


def disagreeing(np, points, distances):
    """Returns: of each light, whether its rays do not meet"""
    return distances > np.maximum(5 * np.median(distances), 0.01 * np.linalg.norm(points, axis=1).mean())


def mean_directions(np, found):
    """Returns: of each light the mean of its directions from several spheres [lights, 3], and their rms angle from it in degrees"""
    ways = np.array([[[light[name] for name in "xyz"] for light in sphere.lights] for sphere in found])
    mean = ways.sum(0)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    angles = np.degrees(np.arctan2(np.linalg.norm(np.cross(ways, mean), axis=-1), (ways * mean).sum(-1)))
    return mean, np.sqrt(np.mean(angles ** 2, 0))


def nearest(np, directions):
    """Returns: the smallest angle between two lights, in degrees"""
    cosines = directions @ directions.T - 2 * np.eye(len(directions))
    return math.degrees(math.acos(min(1.0, float(cosines.max()))))


def show(np, made, found, files, odd):
    """found: of each sphere; odd: photographs that were left out, and why"""
    report, radius, several = made.report, min(sphere.sphere[2] for sphere in found), len(found) > 1
    directions = np.array([[light[name] for name in "xyz"] for light in found[0].lights])
    report.figure("lights", len(files), at_least=3, about="12 and more are usual")
    report.figure("radius of the smallest sphere" if several else "radius of the sphere", radius, "pixels", at_least=60,
                  about="larger spheres give better directions")
    report.figure("error if the middle is 1 pixel off", 115 / radius, "degrees", at_most=2)
    report.figure("nearest two lights", nearest(np, directions), "degrees", at_least=0.5, about="below: two photographs of one light")
    report.figure("lowest light", math.degrees(math.asin(float(np.clip(directions[:, 2].min(), -1, 1)))), "degrees", at_least=0,
                  about="elevation above the plane of the picture; below 0 the light is behind the object")
    middles = "; ".join("middle {:.2f}, {:.2f}, radius {:.2f} pixels".format(*sphere.sphere) for sphere in found)
    report.picture("Highlights", mirrors.whole(np, files, found), caption=f"The brightest of all photographs at each pixel. Outline: {middles}.")
    report.plot("Directions", plots.sky({os.path.basename(path): light[:2] for path, light in zip(files, directions.tolist())}),
                "From the camera" + (" above the first sphere" if several else "") + ": x to the right, y up; the outer circle is the horizon.")
    report.tiles("Photographs", mirrors.crops(np, files, found, odd), ("The spheres in each photograph" if several else "The sphere in each"
                 " photograph") + ", each as bright as can be. Circle: the outline; cross: the highlight.")
    report.table("Lights from the first sphere" if several else "Lights",
                 ("photograph", "x", "y", "z", "highlight x (pixels)", "highlight y (pixels)"), [
                     (os.path.basename(path), *(float(light[name]) for name in ("x", "y", "z", "highlight-x", "highlight-y")))
                     for path, light in zip(files, found[0].lights)])


def check_outlines(np, made, found, files):
    """Compares each circle with the outline in the photographs."""
    shown, seen = (mirrors.brightest(np, files), mirrors.roots(np, files)), []
    for sphere in found:
        fits = [outline.fit(np, values, sphere.sphere) for values in shown]
        circle, part = max(fits, key=lambda one: one[1])
        seen.append(part)
        if circle is None:
            made.warn("The outline of the sphere is not seen at {:.2f}, {:.2f} with radius {:.2f} pixels".format(*sphere.sphere) + f": {100 * part:.0f} %"
                      f" of that circle has an edge, and {100 * outline.SEEN:.0f} % are needed. A circle that is wrong turns all lights. Look at it in the"
                      " report: if it is not on the rim, correct --sphere or the mask.")
            continue
        turned = outline.turned(np, sphere.sphere, circle)
        doubt = max(outline.turned(np, other, circle) for other, _part in fits if other)
        made.report.figure("turn of the lights by the outline" + (f", sphere {len(seen)}" if len(found) > 1 else ""), turned, "degrees",
                           at_most=TURNED, about="middle {:.2f}, {:.2f}, radius {:.2f} pixels in the photographs".format(*circle)
                           + f", from edges on {100 * part:.0f} % of the outline; uncertain by {doubt:.1f} degrees")
        if TURNED < turned <= TURNED + doubt:
            made.warn("The sphere was taken to be at {:.2f}, {:.2f} with radius {:.2f} pixels".format(*sphere.sphere)
                      + f". Its outline in the photographs turns the lights by {turned:.1f} degrees, but it is faint, and uncertain by {doubt:.1f} degrees."
                      " Measure the circle again: the columns of its left and right rim, and the rows of its upper and lower rim.")
        elif turned > TURNED:
            made.warn("The sphere was taken to be at {:.2f}, {:.2f} with radius {:.2f} pixels".format(*sphere.sphere)
                      + ", but its outline in the photographs is at {:.2f}, {:.2f} with radius {:.2f}".format(*circle)
                      + f": the lights are up to about {turned:.1f} degrees off. If the report shows this circle on the rim, give"
                      + " --sphere={:.2f},{:.2f},{:.2f}.".format(*circle))
    made.report.figure("outline seen in the photographs", 100 * min(seen), "%", at_least=100 * outline.SEEN, about="of its rays, of the worst"
                       " sphere. Below, the circle was not checked")


def show_positions(np, made, points, distances, files):
    """Of several spheres."""
    report, far = made.report, np.linalg.norm(points, axis=1)
    report.figure("mean distance of the lights", float(far.mean()), "mm")
    report.figure("distance of the rays from the lights", float(np.sqrt(np.mean(distances ** 2))), "mm", at_most=float(0.02 * far.mean()),
                  about="rms; beyond: spheres that are not where --sphere says, another mm-per-pixel, or highlights of something else")
    report.table("Positions", ("photograph", "x (mm)", "y (mm)", "z (mm)", "rms distance of the rays (mm)"), [
        (os.path.basename(path), *map(float, point), float(distance)) for path, point, distance in zip(files, points, distances)])


def show_means(np, made, means, angles, files):
    """Of several spheres without a scale."""
    made.report.figure("angle between the spheres", float(np.sqrt(np.mean(angles ** 2))), "degrees", at_most=2, about="rms from the mean direction;"
                       " beyond: lamps that are near, for which --mm-per-pixel gives positions, or spheres that are not where --sphere says")
    made.report.table("Mean directions", ("photograph", "x", "y", "z", "rms angle of the spheres (degrees)"), [
        (os.path.basename(path), *map(float, mean), float(angle)) for path, mean, angle in zip(files, means, angles)])


def show_placed(made, options, files, lights):
    """Of one sphere and a string."""
    scale = f"--mm-per-pixel {options.mm_per_pixel:.6g}"
    made.report.fact("scale", f"{scale}; give it to gst-imaging photostereo as well")
    made.report.table("Positions", ("photograph", "x (mm)", "y (mm)", "z (mm)"), [
        (os.path.basename(path), *(float(light[name]) for name in "xyz")) for path, light in zip(files, lights)],
        f"{options.distance_mm:g} mm from the middle of the picture, on z = 0. They need {scale} in gst-imaging photostereo.")


def show_intensities(np, made, surface, intensities, left, files):
    report = made.report
    report.figure("brightest lamp over darkest", float(intensities.mean(1).max() / intensities.mean(1).min()), about="per colour in lights.lp")
    report.figure("fall-off", float(np.sqrt(np.mean(left ** 2))), at_most=FALL_OFF, about=f"rms difference of the {surface.name} from its prediction, as"
                  " a part. Beyond: directions for lamps that are near, lamps that do not shine equally (led-lobe), the lens, a surface that shines")
    report.table("Intensities", ("photograph", "red", "green", "blue", "fall-off"), [
        (os.path.basename(path), *map(float, colours), float(rest)) for path, colours, rest in zip(files, intensities, left)])


def play_once(np, made, options, files, mask, size):
    """Returns: a Found of each sphere"""
    samples = photographs.Samples(files)
    played, found = samples.playable(np, made), []
    threshold = [f"threshold={options.threshold:.10g}"] if options.threshold is not None else []
    curve = curves.given(options)
    gamma = curves.as_gamma(curve) if curve else min(map(curves.gamma_of, files))
    try:
        for sphere in options.sphere or [None]:
            found.append(Found(played))
            made.play(["picturesrc", "name=in", "!", "spherelights", f"location={made.path('lights.lp')}",
                       *where(np, made, sphere, mask, size), *threshold, f"gamma={gamma:.10g}", "!", "fakesink"],
                      "pictures", len(files), found[-1].take, prepare=found[-1].prepare, warn=lambda sentence: made.warn(named(sentence, files)))
    finally:
        samples.remove(made)
    return found


def find(np, made, options, files, mask, size):
    """Without photographs that show no lamp, or two. Returns: what is found, the photographs, and what was wrong with others"""
    odd = []
    while True:
        try:
            return play_once(np, made, options, files, mask, size), files, odd
        except Failure as failure:
            i = odd_one(failure)
            good = photographs.without_damaged(files, made.warn) if i is None and failure.code == UNREADABLE else files
            if 0 < len(good) < len(files):
                files = good
                continue
            if i is None or len(files) <= FEWEST or 3 * len(odd) >= len(files):
                sentence = in_options(named(str(failure), files))
                before = (f" Nor can these be used: {listed_odd(odd)}. If they show the lamp, the circle is not on the sphere: correct --sphere,"
                          " or the mask." if odd else "")
                raise Failure(failure.code, sentence + before) from failure
            odd.append((files[i], "two highlights" if "two highlights" in str(failure) else "no highlight"))
            files = files[:i] + files[i + 1:]


def of_all_spheres(np, options, found, files, size):
    """Returns: the photographs on which the spheres agree, their lights, how far the spheres are from these (mm, or degrees), and what
    was wrong with others"""
    if options.mm_per_pixel is None:
        points, distances = mean_directions(np, found)
        good, what = distances <= max(5 * np.median(distances), APART), "the spheres show different lights"
    else:
        points, distances = intersect(np, found, size, options.mm_per_pixel, camera_of(np, options, size))
        good, what = ~disagreeing(np, points, distances), "its rays do not meet"
    for sphere in found:
        sphere.lights = [light for light, is_good in zip(sphere.lights, good) if is_good]
    odd = [(path, what) for path, is_good in zip(files, good) if not is_good]
    lights = [{**light, **dict(zip("xyz", map(float, point))), "residual": float(distance)}
              for light, point, distance in zip(found[0].lights, points[good], distances[good])]
    return [path for path, is_good in zip(files, good) if is_good], lights, distances[good], odd


def listed_odd(odd):
    return photographs.listed(f"{os.path.basename(path)} ({what})" for path, what in odd)


def tell_odd(made, odd, files):
    if len(files) < FEWEST:
        without = f" are left, without {listed_odd(odd)}" if odd else " were given"
        raise Failure(UNREADABLE, f"{FEWEST} photographs at least are needed, and {len(files)}{without}.")
    if odd:
        made.warn(f"{len(odd)} of {len(odd) + len(files)} photographs {'has' if len(odd) == 1 else 'have'} no light in lights.lp: {listed_odd(odd)}. Look at them.")


def with_intensities(np, made, options, files, lights, size):
    vectors = np.array([[light[name] for name in "xyz"] for light in lights])
    shown = lamps.files_for(options.card or options.matte, files, options.extension)
    mm, mean = options.mm_per_pixel or 1, lamps.mean_distance(np, vectors)
    surface = (lamps.Card(np, vectors, mean, size, mm) if options.card
               else lamps.Sphere(np, vectors, mean, size, mm, options.matte_sphere, camera_of(np, options, size)))
    curve, is_guessed = curves.choose(shown, options.card or options.matte, options, made.warn)
    made.report.fact(f"curve of the {surface.name}", shading.in_words(*curve))
    if is_guessed:
        curves.tell_guess(made.report)
    samples = photographs.Samples(shown)
    intensities, left = lamps.measure(np, surface, shown, samples, curve)
    samples.tell(made)
    show_intensities(np, made, surface, intensities, left, files)
    return [{**light, "intensity": [float(value) for value in colours]} for light, colours in zip(lights, intensities)]


def check_options(options):
    focal, width = options.focal_length_mm, options.sensor_width_mm
    if (focal is None) != (width is None):
        raise Failure(WRONG_USE, "--focal-length-mm and --sensor-width-mm belong together: a camera needs both.")
    for name, value in (("--focal-length-mm", focal), ("--sensor-width-mm", width), ("--mm-per-pixel", options.mm_per_pixel),
                        ("--distance-mm", options.distance_mm), ("--sphere-diameter-mm", options.sphere_diameter_mm)):
        if value is not None and not 0 < value < float("inf"):
            raise Failure(WRONG_USE, f"{name} is {value:g}; it has to be above 0.")
    if options.distance_mm is not None and len(options.sphere or ()) > 1:
        raise Failure(WRONG_USE, "--distance-mm is for one sphere: several give positions by parallax, with --mm-per-pixel alone.")
    if options.distance_mm is not None and options.mm_per_pixel is None and options.sphere_diameter_mm is None:
        raise Failure(WRONG_USE, "--distance-mm needs the scale: give --mm-per-pixel, or --sphere-diameter-mm of the sphere in the pictures.")
    if options.mm_per_pixel is not None and options.sphere_diameter_mm is not None:
        raise Failure(WRONG_USE, "--mm-per-pixel and --sphere-diameter-mm both give the scale: give one of them.")
    if options.sphere_diameter_mm is not None and len(options.sphere or ()) > 1:
        raise Failure(WRONG_USE, "--sphere-diameter-mm is for one sphere: of several give --mm-per-pixel.")
    twice = next((sphere for sphere in options.sphere or () if options.sphere.count(sphere) > 1), None)
    if twice:
        raise Failure(WRONG_USE, "--sphere {:g},{:g},{:g} is given twice: each is for a sphere of its own.".format(*twice))
    if options.sphere and options.mask:
        raise Failure(WRONG_USE, "--sphere and --mask both say where the sphere is: give one of them.")
    if options.card and options.matte:
        raise Failure(WRONG_USE, "--card and --matte both tell the intensities: give one of them.")
    curves.given(options)
    if options.gamma is not None and not 0.1 <= options.gamma <= 10:
        raise Failure(WRONG_USE, f"--gamma is {options.gamma:g}; it has to be between 0.1 and 10.")
    if bool(options.matte) != bool(options.matte_sphere):
        raise Failure(WRONG_USE, "--matte and --matte-sphere belong together: the folder, and where the sphere is.")


def run(given):
    np = library.numpy()
    check_options(given)

    def work(folder, made):
        options = argparse.Namespace(**vars(given))  # the scale may be that of its sphere
        if not os.path.isdir(folder):
            raise absent(folder, f"{folder} is no folder.")
        files, beside = photographs.files_of(folder, options.extension, made.warn)
        if not files:
            raise photographs.no_pictures(folder, options.extension)
        for path in files:
            photographs.check_name(path)
        pairs, size = photographs.same_kind(list(enumerate(files)), made.warn)
        files, mask = [path for _i, path in pairs], options.mask or (None if options.sphere else photographs.only(beside, "mask", folder))
        for path in files:
            made.input(path, "picture")
        if mask:
            made.input(mask, "mask")
        for path in lamps.files_for(options.card or options.matte, files, options.extension) if options.card or options.matte else ():
            made.input(path, "white")
        if made.is_complete():
            return made.result
        found, files, odd = find(np, made, options, files, mask, size)
        if os.path.exists(made.path("mask.npy")):
            os.remove(made.path("mask.npy"))
        if options.sphere_diameter_mm is not None:
            options.mm_per_pixel = options.sphere_diameter_mm / (2 * found[0].sphere[2])
        if options.focal_length_mm is not None:
            turn_to_camera(np, camera_of(np, options, size), found)
        lights, distances = found[0].lights, None
        if len(found) > 1:
            files, lights, distances, apart = of_all_spheres(np, options, found, files, size)
            odd += apart
        elif options.distance_mm is not None:
            lights = place_at_distance(np, found[0], size, options.mm_per_pixel, camera_of(np, options, size), options.distance_mm)
        tell_odd(made, odd, files)
        show(np, made, found, files, odd)
        check_outlines(np, made, found, files)
        if len(found) > 1:
            tell = show_means if options.mm_per_pixel is None else show_positions
            tell(np, made, np.array([[light[name] for name in "xyz"] for light in lights]), distances, files)
        if options.distance_mm is not None:
            show_placed(made, options, files, lights)
        elif len(found) == 1:
            made.report.not_checked(*DISTANCE, at_least=FAR, about=NOT_KNOWN)
        if options.card or options.matte:
            lights = with_intensities(np, made, options, files, lights, size)
        write_lights(made.path("lights.lp"), files, lights)
        return made.finish(sphere=[float(value) for value in found[0].sphere], lights=lights)

    return job.run_all(given, "lights", given.input, work)
