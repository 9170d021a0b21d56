# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the offsets between two images, and fits a plane to them.

The images are SLC images (PRM files of GMTSAR, ISCE, ENVI, GeoTIFF, .npy), amplitudes, or pictures in any format. FOLDER gets
offsets.csv, a line for each patch; offsets.npy, planes of float32: dx, dy, correlation, SNR, cov_xx, cov_yy, cov_xy,
state (0 ok, 1 edge, 2 no data, 3 low); fit.txt, the plane through the offsets, where there are enough of them;
field.svg; and report.html. Words like xsearch=64 are properties of insarxcorr.

Without them about 20 x 25 patches from corner to corner are measured in mode=precise; mode=compat makes it GMTSAR's.
"""
from .. import library
from ..sar import alias, arguments, field, told
from ..sar.measure import add_figures
from ..sar.pair import Work

EXAMPLES = [
    ("ref.PRM sec.PRM -o offsets", "grid, template and search are chosen by the size of the images"),
    ("before.tif after.tif -o offsets grid=step step-x=64 step-y=64", "pictures or amplitudes; a patch every 64 pixels"),
    ("--pairs list.txt -o offsets --rasters tif", "several pairs, and a raster with the place of each reference"),
]


def add_arguments(parser):
    arguments.add_pairs(parser)
    parser.add_argument("--rasters", choices=["tif", "img"], help="also offsets.tif or offsets.img, in the place of the reference")


def steps_of(rows):
    """Returns: columns and lines from patch to patch"""
    return [min((b - a for a, b in zip(place, place[1:])), default=1) for place in field.places_of(rows)]


def run(options):
    def work(pair, properties, made):
        this = Work(pair, properties, made)
        if made.is_complete():
            return made.result
        this.open()
        offsets = this.measure("text/csv", options.rasters)
        rows = field.without(field.read_table(offsets.table), offsets.planes[7].ravel())
        this.keep(offsets, "offsets.csv")
        library.numpy().save(made.path("offsets.npy"), offsets.planes)
        fit, snr = offsets.fit_function(), offsets.found.get("min-correlation", 0)
        field.write(made.path("field.svg"), rows, fit, snr)
        told.add_field(made.report, rows, fit, snr)
        if fit:
            add_figures(made.report, offsets, this.images[0])
            told.add_residuals(made.report, rows, fit, snr)
        else:
            made.report.figure("patches in the fit", 0, at_least=8, about="too few patches correlate for a fit")
        alias.tell(offsets.spectra, made.report, made.warn)
        if not library.numpy().isfinite(offsets.planes[:2]).any():
            made.nothing = "No patch has an offset: the images have no data in common, or xsearch and ysearch do not reach the offset."
        told.add_rasters(made.report, offsets.planes, steps_of(rows))
        this.end()
        if fit:
            made.lines.append(offsets.describe_fit(this.images[0]))
        return made.finish(patches=offsets.n, fit={name: value for name, value in offsets.found.items() if name != "element"})

    return arguments.run_all(options, "offsets", work)
