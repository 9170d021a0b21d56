# SPDX-License-Identifier: LGPL-2.1-or-later
"""A DEM in longitude and latitude as a SAR image sees it: heights in radar coordinates, layover and shadow.

DEM is a raster of GDAL in degrees, with heights above the ellipsoid (WGS 84) in m. IMAGE is a PRM file of GMTSAR with its LED file. FOLDER
gets heights.npy, latitude.npy and longitude.npy of cells that cover the image, which gst-imaging insar takes with --dem and --geocode;
incidence.npy; layover-shadow.npy (0 good, 1 layover, 2 shadow, 3 both, 255 outside the DEM); mask.npy, 1 where it is 0, for --mask; and report.html.
"""
import os
import shutil

from .. import job, library
from ..command import NO_RESULT, Failure
from ..progress import Progress
from ..sar import geocode, ground, orbit, terrain
from ..sar.arguments import whole_number
from ..sar.images import files_of, led_of

EXAMPLES = [
    ("dem.tif ref.PRM -o dem --looks 4 8", "then gst-imaging insar --dem dem/heights.npy --mask dem/mask.npy"),
]


def add_arguments(parser):
    parser.add_argument("dem", metavar="DEM")
    parser.add_argument("image", metavar="IMAGE")
    job.add_arguments(parser)
    parser.add_argument("--looks", nargs=2, type=whole_number(1, 256), default=(4, 4), metavar=("X", "Y"), help="samples of a cell, about (4 4)")


def add_pictures(report, image, heights, state):
    np = library.numpy()
    axes = [{"name": name, "unit": unit, "step": n / m} for name, unit, n, m in
            zip(("range", "azimuth"), ("columns", "lines"), image.size, heights.shape[::-1])]
    report.picture("Heights", heights.astype(np.float32), {"name": "height", "unit": "m", "axes": axes}, "heights.npy", colours="height")
    report.picture("Layover and shadow", np.where(state == terrain.OUTSIDE, np.nan, state).astype(np.float32),
                   {"name": "state", "unit": "", "axes": axes}, "layover-shadow.npy", low=0, high=3,
                   caption="Black: good. The brighter, layover, shadow, and both.")


def run(options):
    def work(path, made):
        np = library.numpy()
        for role, files in ("dem", files_of(path)), ("image", [options.image, *led_of(options.image)]):
            for file in files:
                made.input(file, role)
        if made.is_complete():
            return made.result
        image = orbit.Image(options.image)
        shape = tuple(max(1, round(n / looks)) for n, looks in zip(image.size[::-1], options.looks[::-1]))
        scratch = made.path(".scratch")
        os.mkdir(scratch)
        with Progress(made.name, "%", 100) as progress:
            heights, state = terrain.look(terrain.Dem(path, scratch), image, shape, progress.show_part)
        shutil.rmtree(scratch)
        known = state != terrain.OUTSIDE
        if not known.any():
            raise Failure(NO_RESULT, "The DEM has no height where the image is.")
        steps = [n / m for n, m in zip(image.size, shape[::-1])]
        columns, lines = (np.arange(n) * step + (step - 1) / 2 for n, step in zip(shape[::-1], steps))
        seen = ground.Ground(image, columns, lines, np.where(known, heights, geocode.fill(heights)))
        arrays = {"heights": heights.astype(np.float32), "latitude": seen.latitude, "longitude": seen.longitude, "layover-shadow": state,
                  "incidence": seen.incidence.astype(np.float32), "mask": (state == 0).astype(np.uint8)}
        for name, values in arrays.items():
            np.save(made.path(name + ".npy"), values)
        add_pictures(made.report, image, heights, state)
        shares = {name: 100 * float((known & (state & bit > 0)).sum() / known.sum()) for name, bit in
                  (("layover", terrain.LAYOVER), ("shadow", terrain.SHADOW))}
        made.report.figure("image with heights", 100 * float(known.mean()), "%", at_least=99)
        for name, share in shares.items():
            made.report.figure(name, share, "%")
        return made.finish(width=shape[1], height=shape[0], **shares)

    return job.run_all(options, "insar-dem", [options.dem], work, [options.output])
