# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two SAR images into an interferogram: offsets, their fit, the secondary in the geometry of the reference, and fringes.

The images are SLC images: PRM files of GMTSAR, ISCE, ENVI, GeoTIFF, complex .npy. FOLDER gets freq_xcorr.dat (offsets),
fit.txt (eight PRM lines), field.svg, fringes.png, coherence.png, amplitude.png and report.html. With --slc also
secondary.SLC with a .PRM or .vrt file, with --interferogram also interferogram.cf32, with --rasters tif also coherence.tif,
amplitude.tif, phase.tif and offsets.tif, in the place of the reference on the ground. Numbers without a header (.cf32, .img)
have a .hdr of ENVI and a .vrt of GDAL beside them. Words like xsearch=64 are properties of insarxcorr.

Offsets are measured in mode=precise, on about 20 x 25 patches from corner to corner; the word mode=compat makes it GMTSAR's.
If less than a quarter of them correlate, the shift is searched in the whole images, and larger templates are tried once. The secondary is read a second time for
resampling, because the fit needs all offsets. Images of two scenes are refused.
"""
from ..sar import arguments
from ..sar.alignment import Alignment, report
from ..sar.images import check_complex
from ..sar.interferogram import form
from ..sar.pair import Work

EXAMPLES = [
    ("ref.PRM sec.PRM -o pair --looks 4 4", "fringes of cells of 4 columns and 4 lines"),
    ("ref.tif sec.tif -o pair --rasters tif --slc", "GeoTIFF in and out, and the resampled secondary"),
    ("ref.PRM sec.PRM -o pair --warp --flatten measured", "mountains and glaciers, and dense fringes"),
    ("--pairs list.txt -o pairs", "a folder for each pair of a list; a second call does the missing ones"),
]


def add_arguments(parser):
    arguments.add_pairs(parser)
    whole_number = arguments.whole_number
    parser.add_argument("--looks", nargs=2, type=whole_number(1, 256), default=(2, 2), metavar=("X", "Y"), help="samples of a cell (2 2)")
    parser.add_argument("--window", nargs=2, type=whole_number(1, 63, 2), default=(5, 5), metavar=("X", "Y"),
                        help="cells of the coherence (5 5)")
    parser.add_argument("--shade", choices=["none", "coherence", "amplitude"], default="coherence",
                        help="what dims fringes.png (coherence)")
    parser.add_argument("--taps", type=whole_number(4, 32, 2), default=16, help="of the interpolation (16)")
    parser.add_argument("--warp", action="store_true", help="follow offsets that are no plane: a dense grid is measured in three "
                        "passes, culled, smoothed and filled; keeps range-offsets.npy and azimuth-offsets.npy")
    parser.add_argument("--flatten", choices=["none", "measured"], default="none",
                        help="measured: fringes do not cost coherence (none)")
    parser.add_argument("--slc", action="store_true", help="keep the resampled secondary")
    parser.add_argument("--interferogram", action="store_true", help="keep the interferogram, complex float32")
    parser.add_argument("--rasters", choices=["tif", "img"], help="keep coherence, amplitude, phase and offsets, float32")


def run(options):
    def work(pair, properties, made):
        this = Work(pair, properties, made)
        if made.is_complete():
            return made.result
        this.open(check_complex)
        aligned = Alignment(options, this, raster=options.rasters)
        offsets, dense = aligned.offsets, aligned.dense
        summary = form(options, this.images, aligned.words, this, ["flatten=" + options.flatten, "restore-phase=true"])
        cells = f"{summary['with-data']} of {summary['width']} x {summary['height']} cells"
        report(options, this, summary, aligned)
        this.end()
        made.lines.append(f"{offsets.describe_fit(this.images[0])}\nmean coherence {summary['mean-coherence']:.4f} of {cells}")
        return made.finish(patches=offsets.n, summary=summary, warp=dense.counts if dense else None,
                           fit={name: value for name, value in offsets.found.items() if name != "element"})

    return arguments.run_all(options, "coregister", work)
