# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shows a surface under other lights, from its normals and its albedo.

Give the folder of a result of gst-imaging photostereo, or a file of normals with --albedo. Each --light is a picture, and
--series N a turn of N pictures around the object. Cast shadows are not drawn.
"""
import argparse
import os

from .. import curves, job, library, photographs, shading
from ..command import NO_RESULT, UNREADABLE, WRONG_USE, Failure, absent
from ..sar.arguments import whole_number

EXAMPLES = [
    ("coin -o lit --light 180,30 --light 90,20", "coin under a light from the left and one from above, lit000.png and lit001.png"),
    ("coin -o turn --series 36 --elevation 15", "raking light all around, a picture every ten degrees"),
    ("normals.exr --albedo albedo.tif -o lit --specular 0.3", "any files of normals and albedo, with a highlight"),
]

OTHER_LENGTH = 0.1  # rounding to 8 bits makes 0.01
PROPERTIES = {  # of relight: default and help
    "ambient": (0, "light from everywhere (default: 0)"),
    "specular": (0, "strength of the highlight (default: 0, a matte surface)"),
    "shininess": (30, "5 is satin, 30 varnish, 200 metal (default: 30)"),
    "gamma": (2.2, "2.2 for screens, 1 for linear samples (default: 2.2)"),
}


def add_arguments(parser):
    parser.add_argument("input", nargs="+", metavar="RESULT", help="folders of gst-imaging photostereo, or a file of normals")
    job.add_arguments(parser)
    parser.add_argument("--albedo", metavar="FILE", help="the albedo of a file of normals, linear or with a profile that says its curve (default: a white surface)")
    parser.add_argument("--y-axis", choices=("up", "down"), help="direction of y in the normals; down is DirectX (default: as the result"
                        " of the normals says, else up)")
    parser.add_argument("--light", action="append", type=direction, default=[], metavar="AZIMUTH,ELEVATION",
                        help="degrees: azimuth 0 is from the right, 90 from above, 180 from the left; elevation 90 from the camera")
    parser.add_argument("--series", type=whole_number(1, 10000), default=0, metavar="N", help="N pictures with azimuths all around")
    parser.add_argument("--elevation", type=elevation, default=30, help="of --series, in degrees (default: 30)")
    parser.add_argument("--diffuse", type=float, help="strength of the light (default: a bright albedo becomes nearly white)")
    for name, (default, about) in PROPERTIES.items():
        parser.add_argument("--" + name, type=float, default=default, help=about)


def limited(name, text, most):
    """Returns: a number in degrees, which the property of this name takes; GStreamer takes others in silence for the one before"""
    degrees = float(text)
    if not -most <= degrees <= most:  # nan is not, either
        raise argparse.ArgumentTypeError(f"the {name} is {degrees:.10g}, and goes from {-most} to {most} degrees")
    return degrees


def elevation(text):
    return limited("elevation", text, 90)


def direction(text):
    azimuth, height = text.split(",")
    return limited("azimuth", azimuth, 1000000), elevation(height)


def files_of(path, albedo):
    """Returns: the files of normals and albedo; the latter may be None"""
    if not os.path.isdir(path):
        if not os.path.isfile(path):
            raise absent(path, f"{path} is neither a folder nor a file.")
        kind, shape = library.Arrays().kind(path)
        if len(shape) < 3 or shape[-1] not in (3, 4):
            raise Failure(UNREADABLE, f"{path} is {kind} {list(shape)}; normals are [height, width, 3], x, y and z.")
        photographs.check_colours(path, shape)
        return path, albedo
    normals = os.path.join(path, "normals.png")
    if not os.path.isfile(normals):
        raise Failure(UNREADABLE, f"{path} has no normals.png: it is no result of gst-imaging photostereo.")
    beside = os.path.join(path, "albedo.png")
    return normals, albedo or (beside if os.path.isfile(beside) else None)


def share_of_other_length(np, path):
    """Returns: how many per cent of the normals are not 1 long, as relight decodes them. Black, middle grey and NaN are none"""
    values = photographs.read(path)[..., :3]
    normals = values[values.any(-1)].astype(np.float32)
    if values.dtype.kind == "u":
        largest = np.iinfo(values.dtype).max // 2
        normals = (normals - (largest + 1)) / largest
    lengths = np.linalg.norm(normals, axis=-1)
    lengths = lengths[lengths > OTHER_LENGTH]
    return 100 * float((np.abs(lengths - 1) > OTHER_LENGTH).mean()) if lengths.size else 0.0


def read_albedo(np, path):
    """Returns: its samples, and what makes them linear, as curves.told()"""
    if not path:
        return None, curves.LINEAR
    samples = photographs.read(path)
    photographs.check_colours(path, samples.shape)
    return samples, curves.told(path) or curves.LINEAR


def save_linear(np, path, samples, told, made):
    """Returns: the file of an albedo as relight plays it"""
    if told == curves.LINEAR:
        return path
    if not path.lower().endswith((".jpg", ".jpeg", ".jpe")):
        made.warn(f"{path} says (profile, sRGB, gAMA) that its samples have {shading.in_words(*told)}, and is made linear by it.")
    bands = samples.reshape(*samples.shape[:2], -1)
    np.save(made.path("albedo.npy"), bands if bands.shape[2] == 3 else np.repeat(bands[..., :1], 3, 2))
    return made.path("albedo.npy")


def check_normals(path):
    """Fails for a picture that has no normal at all."""
    if not photographs.read(path)[..., :3].any():
        raise Failure(NO_RESULT, f"{path} is black: it has no normal at all.")


def lists_albedo(path):
    """Returns: whether a folder is a result that has had an albedo"""
    result = job.read_result(path) or {"outputs": []}
    return any(entry["name"] == "albedo.png" for entry in result["outputs"])


def settings_beside(normals):
    """Returns: {name: value} of the settings of the result that a file of normals is a part of; empty where there is none"""
    folder, name = os.path.split(os.path.abspath(normals))
    known = job.read_result(folder) or {"outputs": []}
    if name not in (entry["name"] for entry in known["outputs"]):
        return {}
    try:
        return {entry["name"]: entry["value"] for entry in reversed(known["settings"])}  # those of the command are the first
    except (LookupError, TypeError):  # of a stranger
        return {}


def axes_of(normals):
    """Returns: axes in mm of a result of photostereo whose scale is known, for bars of scale"""
    try:
        mm = float(settings_beside(normals)["mm-per-pixel"])
    except (LookupError, TypeError, ValueError):  # not known, or of a stranger
        return []
    return [{"name": name, "unit": "mm", "step": mm, "origin": 0} for name in "xy"]


def control(lights):
    """Returns: what prepares a pipeline so that frame i has the light i"""
    Gst = library.gstreamer()
    import gi

    gi.require_version("GstController", "1.0")
    from gi.repository import GstController

    def prepare(pipeline):
        element = pipeline.get_by_name("r")
        for name, values in zip(("azimuth", "elevation"), zip(*lights)):
            source = GstController.InterpolationControlSource()
            source.set_property("mode", GstController.InterpolationMode.NONE)
            for i, value in enumerate(values):
                source.set(i * Gst.SECOND // 25, value)
            element.add_control_binding(GstController.DirectControlBinding.new_absolute(element, name, source))

    return prepare


def words_of(normals, albedo, y_axis, options, diffuse, to, n):
    words = ["picturesrc", f"location={normals}", "loop=true", f"num-buffers={n}", "framerate=25/1", "!", "r.normal",
             "relight", "name=r", f"y-axis={y_axis}", f"diffuse={diffuse:.10g}", *(f"{name}={getattr(options, name):.10g}" for name in PROPERTIES),
             "!", "picturesink", "sidecar=none", f"location={to}"]
    return words + (["picturesrc", f"location={albedo}", "!", "r.albedo"] if albedo else [])


def run(options):
    np = library.numpy()
    lights = options.light + [(360 * i / options.series, options.elevation) for i in range(options.series)]
    lights = lights or [(135.0, options.elevation)]
    if options.albedo and (len(options.input) > 1 or os.path.isdir(options.input[0])):
        raise Failure(WRONG_USE, "--albedo belongs to one file of normals; a folder has its own.")

    def work(path, made):
        normals, albedo = files_of(path, options.albedo)
        made.input(normals, "normals")
        if albedo:
            made.input(albedo, "albedo")
        samples, told = read_albedo(np, albedo)
        if told != curves.LINEAR:
            samples = shading.linear(np, samples, *told)
            made.setting("curve of the albedo", shading.in_words(*told))
        diffuse = shading.strength(np, samples) if options.diffuse is None else options.diffuse
        made.setting("diffuse", diffuse, 1)
        y_axis = options.y_axis or ("down" if settings_beside(normals).get("y-axis") == "down" else "up")
        made.setting("y-axis", y_axis, "up")
        if made.is_complete():
            return made.result
        check_normals(normals)
        if not albedo and lists_albedo(path):
            made.warn(f"{path} has no albedo.png any more, which its result.json lists: the surface is shown white. Make the result again.")
        albedo = save_linear(np, albedo, samples, told, made)
        made.play(words_of(normals, albedo, y_axis, options, diffuse, made.path("lit%03d.png"), len(lights)), "pictures", len(lights),
                  prepare=control(lights))
        if told != curves.LINEAR:
            os.remove(albedo)
        for i in sorted({round(k) for k in np.linspace(0, len(lights) - 1, min(len(lights), 12))}):
            name = f"lit{i:03d}.png"
            made.report.picture(f"{lights[i][0]:g} degrees, {lights[i][1]:g} high", photographs.read(made.path(name)), {"axes": axes_of(normals)}, file=name)
        made.report.figure("normals of another length than 1", share_of_other_length(np, normals), "%", at_most=5,
                           about="more are in a picture that is none of normals, or in normals of another encoding")
        made.report.table("Lights", ("picture", "azimuth (degrees)", "elevation (degrees)"),
                          [(f"lit{i:03d}.png", *light) for i, light in enumerate(lights)])
        return made.finish(pictures=len(lights))

    return job.run_all(options, "relight", options.input, work)
