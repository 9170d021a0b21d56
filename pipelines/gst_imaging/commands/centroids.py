# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the spots of a Shack-Hartmann wavefront sensor, or the pupil images of a pyramid, in recordings, or of a camera.

A recording is a file of frames (.npy, FITS, TIFF, ...; also .npz, .fits.gz, and videos), or a folder of pictures. A folder of files
with several frames each is a recording for each file. Without a grid (--map, columns= and rows=, or aperture=) the
lenslets are found in the first frame, which should be of a flat wavefront. With --pupils there are no lenslets. Into the folder of the output:

  slopes.npy   float32 [frames, cells, fields]: x, y, dx, dy, flux, flux_raw, max, var_x, var_y, flags
  table.csv    the same as text, a line for each cell of each frame
  picture.png  the last frame with cells, centroids and slopes as arrows
  map.npy      the grid that was found
  report.html  settings, warnings, quality and plots;  result.json  the same for a program

property=value are properties of shcentroid (docs/reference/shcentroid.md). Without threshold-mode, threshold, brightest,
estimator=correlation or estimator=pupils among them, threshold-mode=auto is used.
"""
import os

from .. import job, library
from ..command import WRONG_USE, Failure
from ..frames import cameras, files, slopes
from ..frames.drawing import Drawing
from ..frames.measure import Measurement, cut_of
from ..frames.source import is_setting, need, scratch, split

EXAMPLES = [
    ("frames.fits -o out", "a FITS cube; finds the grid in its first frame"),
    ("recordings/ --map out/map.npy --reference flat/slopes.npy -o night", "every cube of a folder, against a flat wavefront"),
    ("pyramid.npy --pupils pupils.npy --reference flat/slopes.npy -o out", "a pyramid sensor, against a flat wavefront"),
    ("frames.npy --dark dark.fits --flat flat.fits columns=12 rows=8 pitch-x=20 pitch-y=20 -o out", "a grid that is known"),
    ("--camera v4l2:/dev/video0 --frames 1000 -o out", "a USB camera"),
    ("--camera aravis: --exposure 500 --view -o out", "a GigE camera, shown in a window, until Ctrl-C"),
]

FILES = {"map": "map-location", "dark": "dark-location", "flat": "flat-location", "pupils": "pupils-location"}  # options and properties
GEOMETRY = ("columns", "rows", "map-location", "aperture", "find-grid-location", "pupils-location")


def add_arguments(parser):
    parser.add_argument("words", nargs="*", metavar="FRAMES | property=value")
    job.add_arguments(parser)
    parser.add_argument("--map", metavar="FILE", help="cells: a map.npy of an earlier run, or an array file [cells, 4..12]")
    parser.add_argument("--pupils", metavar="FILE", help="a pyramid sensor (estimator=pupils): an array file [height, width] with 1 to 4"
                        " in the pixels of that pupil image, 0 elsewhere")
    parser.add_argument("--find-grid", action="store_true", help="find the grid in the first frame (the default without a grid)")
    parser.add_argument("--reference", metavar="FILE", help="where slopes count from: an array file [cells, 2] of x and y, or the"
                        " slopes.npy of a flat wavefront, whose valid frames are averaged")
    parser.add_argument("--dark", metavar="FILE", help="an array file [height, width] of counts to subtract")
    parser.add_argument("--flat", metavar="FILE", help="an array file [height, width] of factors; 0 for a bad pixel")
    parser.add_argument("--part", type=int, default=-1, metavar="N", help="the picture to take of files with several, from 0 on: of FITS"
                        " the units with a picture")
    parser.add_argument("--format", choices=("npy", "fits"), default="npy", help="of the slopes")
    parser.add_argument("--no-table", action="store_true", help="no table.csv, which is large for long recordings")
    parser.add_argument("--pictures", action="store_true", help="a picture of every frame, in pictures/")
    parser.add_argument("--no-picture", action="store_true", help="no picture, which needs shoverlay")
    parser.add_argument("--scale", type=int, metavar="N", help="pictures are N times as large as frames")
    parser.add_argument("--draw", metavar="PROPERTY=VALUE", action="append", default=[],
                        help="a property of shoverlay (docs/reference/shoverlay.md); may be repeated")
    parser.add_argument("--view", action="store_true", help="show it in a window meanwhile")
    cameras.add_arguments(parser)


def check(options):
    """Fails where options make no sense. Returns: the inputs and the settings of shcentroid"""
    names, settings = split(options.words)
    cameras.check(options)
    given = {text.partition("=")[0] for text in settings}
    if bool(names) == bool(options.camera):
        raise Failure(WRONG_USE, "Give files or folders of frames, or --camera; not both.")
    library.Arrays(options.part)  # refuses one that cannot be
    if options.scale is not None and options.scale < 1:
        raise Failure(WRONG_USE, f"--scale is {options.scale}; it needs at least 1.")
    for text in options.draw:
        if not is_setting(text):
            raise Failure(WRONG_USE, f'--draw is "{text}", which is no property=value.')
    if "fields" in given - {text.partition("=")[0] for text in settings if text == "fields=all"}:
        raise Failure(WRONG_USE, "fields is for pipelines: the slopes of this command always have all fields.")
    if "find-grid-location" in given:
        raise Failure(WRONG_USE, "find-grid-location is for pipelines: this command writes the grid to map.npy.")
    for option, name in {**FILES, "reference": "reference-location"}.items():
        if getattr(options, option) and name in given:
            raise Failure(WRONG_USE, f"--{option} and {name}= are the same setting; give one of them.")
    if options.pupils and (options.map or "estimator" in given or given & set(GEOMETRY)):
        raise Failure(WRONG_USE, "--pupils is for pupil images without a grid, and a grid, a map or an estimator is given. Leave one of"
                                 " them out.")
    if options.find_grid and (options.map or options.pupils or given & set(GEOMETRY)):
        raise Failure(WRONG_USE, "--find-grid finds a grid, and another one is given. Leave one of them out.")
    if options.reference and not options.map and not options.pupils and not given & set(GEOMETRY):
        beside = os.path.join(os.path.dirname(options.reference), "map.npy")
        raise Failure(WRONG_USE, "--reference is for the cells of one grid, and none is given: add --map"
                                 f" {beside if os.path.exists(beside) else 'with the map of its recording'}.")
    need("shcentroid", "picturesrc", "picturesink")
    return names, settings


def settings_of(options, settings):
    """Returns: the settings of shcentroid, and whether it finds the grid"""
    settings = [*settings, *(f"{name}={getattr(options, option)}" for option, name in FILES.items() if getattr(options, option))]
    if options.pupils:
        settings.append("estimator=pupils")
    finds_grid = not any(text.partition("=")[0] in GEOMETRY for text in settings)
    return settings + cut_of(settings), finds_grid


def declare(made, source, options, settings):
    """What decides on the result."""
    for path in source.files:
        made.input(path, "frames")
    for text in settings:
        name, _equals, value = text.partition("=")
        if name.endswith("-location"):
            made.input(value, name[:-len("-location")])
        made.settings[name] = value
    if options.reference:
        made.input(options.reference, "reference")


def measure(source, made, options, settings):
    """One recording."""
    settings, finds_grid = settings_of(options, settings)
    declare(made, source, options, settings)
    if not source.is_live and made.is_complete():
        return made.result
    if finds_grid:
        settings.append(f"find-grid-location={made.path('map.npy')}")
    if options.reference:
        settings.append(f"reference-location={slopes.reference(made, options.reference, options.map)}")
    given = [text for text in settings if text.startswith("reference-location=")]
    made.report.fact("slopes count from", (options.reference or given[0].partition("=")[2]) if given else
                     "the lattice found in the first frame, which takes its tilt, defocus and astigmatism; --reference gives a flat one"
                     if finds_grid else "0: equal pupil images" if "estimator=pupils" in settings
                     else "the references of the map, or the middle of the cells")
    drawing = None if options.no_picture else Drawing(options.scale, options.draw)
    view = Drawing(options.scale, options.draw, "autovideosink") if options.view else None
    measurement = Measurement(source, made, settings, options, drawing, view)
    try:
        measurement.run()
    finally:
        for each in filter(None, (drawing, view)):
            each.close()
    return slopes.finish(made, measurement, options)


def check_display(options):
    if options.view and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise Failure(WRONG_USE, "--view needs a display, and there is none: DISPLAY and WAYLAND_DISPLAY are not set.")


def run(options):
    library.numpy()
    names, settings = check(options)
    check_display(options)
    if options.camera:
        def camera(_name, made):
            made.is_live = True
            return measure(cameras.source_of(options, made.warn), made, options, settings)

        return job.run_all(options, "centroids", [options.camera], camera)

    def recording(name, made):
        with scratch() as folder:
            source = files.read(name, folder, options.part)
            if source.note:
                made.warn(source.note)
            return measure(source, made, options, settings)

    return job.run_all(options, "centroids", files.recordings(names), recording)
