# SPDX-License-Identifier: LGPL-2.1-or-later
"""How far and how fast the ground has moved between two SAR images, from offsets of their amplitudes or speckle.

FOLDER gets displacement-range.img (m, away from the radar), displacement-azimuth.img (m, along the flight), the same as
velocity-NAME.img (m/day), speed.img, error-NAME.img and velocity-error-NAME.img (one standard deviation), each with a .vrt of GDAL;
map.svg with arrows, scale and colour bar; and report.html. With --rasters tif they are GeoTIFF.

Patches of 32 samples every 16 are measured in mode=precise; words like step-x=8 are other properties of insarxcorr. A plane through
the patches of --stable, or through those of the larger part of the image, which must not move, is subtracted. Patches without a significant peak,
outliers of their surroundings and lonely ones are NaN.
"""
import shutil
import tempfile

from .. import library, play
from ..command import NO_RESULT, NOT_WRITTEN, WRONG_USE, Failure
from ..sar import arguments, field, motion, rasters, warp
from ..sar.measure import FEW, Offsets, choose_search, is_given, try_shift
from ..sar.pair import Work

EXAMPLES = [
    ("ref.PRM sec.PRM -o glacier --days 12", "the spacing is that of the PRM file"),
    ("ref.tif sec.tif -o glacier --days 12 --spacing 2.3 14.1 --rasters tif step-x=32 step-y=8", "other images need their spacing in m"),
]
DEFAULTS = {"grid": "step", "window-width": 32, "window-height": 32, "step-x": 16, "step-y": 16}


def positive(text):
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError(text)
    return value


def add_arguments(parser):
    arguments.add_pairs(parser)
    parser.add_argument("--days", type=positive, required=True, help="between the two images")
    parser.add_argument("--spacing", nargs=2, type=positive, metavar=("RANGE", "AZIMUTH"), help="m from column to column and line to line")
    parser.add_argument("--stable", metavar="FILE", help="array or raster over the whole reference: not 0 where nothing moves")
    parser.add_argument("--rasters", choices=["tif"], help="GeoTIFF in the place of .img and .vrt")


def find_spacing(options, image):
    """Returns: m a column and a line"""
    if options.spacing:
        return options.spacing
    caps = play.caps_of(image.source)
    found = [caps.get_value(name) if caps.has_field(name) else 0 for name in ("range-spacing", "azimuth-spacing")]
    if not all(value > 0 for value in found):
        raise Failure(WRONG_USE, f'"{image.path}" does not tell its spacing (a PRM file has rng_samp_rate, PRF, SC_vel, earth_radius and '
                                 "SC_height). Give --spacing RANGE AZIMUTH in m.")
    return found


def at_patches(wanted, columns, rows, image):
    """wanted: of a mask over the whole image, or None. Returns: that of patches"""
    if wanted is None:
        return None
    np = library.numpy()
    i, j = ((np.asarray(at) * n / size).astype(int) for at, n, size in zip((rows, columns), wanted.shape, (image.height, image.width)))
    return wanted[i][:, j]


def good_patches(offsets):
    """The part of the patches that have a significant peak, and agree with their surroundings."""
    return warp.cull(library.numpy(), offsets.planes)[0].mean()


def measure(this, properties):
    """Returns: Offsets, and the columns and lines of its patches"""
    images = this.images
    search = {"xsearch": choose_search(images[0].width), "ysearch": choose_search(images[0].height)}
    words = ["mode=precise", *(f"{name}={value}" for name, value in DEFAULTS.items() if not is_given(properties, name)),
             *(f"{name}={n}" for name, n in search.items()), *properties]

    def run(_scale=1):  # of templates, which try_shift() leaves
        return Offsets(images, words, tempfile.mkdtemp(dir=this.scratch), "text/csv", "img", this.pair.name, this.made.warn)

    offsets = first = run()
    if good_patches(first) < FEW and not is_given(properties, "use-shift"):
        offsets = try_shift(first, images, search, run, this.scratch, good_patches)
    if offsets is not first:
        this.made.warn(offsets.warnings[-1])
    this.made.tell_settings(play.settings_of(offsets.pipeline))
    return offsets, *field.places_of(field.read_table(offsets.table))


def run(options):
    if options.rasters and not shutil.which("gdal_translate"):
        raise Failure(WRONG_USE, "--rasters tif needs gdal_translate, which is not installed: the Debian package gdal-bin.")

    def work(pair, properties, made):
        this = Work(pair, properties, made)
        if options.stable:
            made.input(options.stable, "stable")
        if made.is_complete():
            return made.result
        this.open()
        spacing = find_spacing(options, this.images[0])
        image = this.images[0]
        stable = rasters.read_mask(options.stable, (image.width, image.height), (1, 1), this.scratch, made.warn)
        offsets, columns, rows = measure(this, properties)
        found, counts, share = motion.compute(offsets.planes, columns, rows, spacing, options.days, at_patches(stable, columns, rows, image))
        if not found:
            raise Failure(NO_RESULT, f"Of {counts['patches']} patches fewer than 8 are good and stable: {counts['without a significant peak']} "
                                     "have no significant peak. Are the images of one scene? Larger templates (window-width, "
                                     "window-height) find less coherence.")
        if share < 0.55:
            made.warn(f"The plane of what does not move goes through {100 * share:.0f} % of the patches only. If more than half of the image moves, "
                      "--stable has to say where nothing does.")
        size = [step * m for step, m in zip((columns[1] - columns[0], rows[1] - rows[0]), spacing)]
        for name, plane in found.items():
            motion.write(made, name, plane, offsets.raster + ".vrt")
            if options.rasters and not motion.translate(made, name):
                raise Failure(NOT_WRITTEN, f"gdal_translate could not write {name}.tif.")
        with open(made.path("map.svg"), "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in motion.draw_map(found, size))
        motion.add_to_report(made.report, found, counts, share, size)
        this.end()
        np = library.numpy()
        error = np.hypot(found["velocity-error-range"], found["velocity-error-azimuth"])
        moving = found["speed"] > 3 * error
        speed = float(np.nanmax(np.where(moving, found["speed"], np.nan))) if moving.any() else 0.0
        made.lines.append(f"{int(np.isfinite(found['speed']).sum())} of {counts['patches']} patches, "
                          + (f"the fastest of {int(moving.sum())} that move by more than three standard deviations {speed:.3g} m/day" if speed
                             else "none moves by more than three standard deviations"))
        return made.finish(patches=counts, columns=columns, rows=rows, spacing=list(spacing), fastest=speed)

    return arguments.run_all(options, "track", work)
