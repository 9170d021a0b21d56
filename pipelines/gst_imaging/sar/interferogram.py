# SPDX-License-Identifier: LGPL-2.1-or-later
"""Resamples a secondary into the geometry of its reference, and forms the interferogram of both."""
import math
import os

from .. import library
from ..command import NOT_WRITTEN, Failure
from .prm import read_prm, write_prm, write_vrt

RASTERS = "coherence", "amplitude", "phase"
PICTURES = ("phase", "fringes"), ("coherence", "coherence"), ("amplitude", "amplitude")


def raster_paths(options, this):
    """Returns: for each raster its path. Those that are no result are made for the report."""
    if options.rasters:
        paths = {name: this.made.path(f"{name}.{options.rasters}") for name in RASTERS}
    else:
        paths = {name: os.path.join(this.scratch, f"{name}.img") for name in RASTERS}
    return {**paths, "interferogram": this.made.path("interferogram.cf32")} if options.interferogram else paths


def resampling(options, reference, fit, offsets=()):
    """Returns: the words of slcresample. fit: file; offsets: properties of offsets that are no plane"""
    return ["slcresample", "fit-location=" + fit, *offsets, f"width={reference.width}", f"height={reference.height}",
            f"taps={options.taps}", "!"]


def form(options, images, resample, this, more=()):
    """images: reference and secondary; resample: words of resampling(), none where the secondary is in the geometry of the
    reference; this: the Work; more: properties of insarform. Returns: the summary of insarform."""
    (reference, secondary), made = images, this.made
    words = [*reference.source, "!", "i.reference", *secondary.source, "!", *resample, "tee", "name=t", "!",
             "queue", "!", "i.secondary", "insarform", "name=i", f"looks-x={options.looks[0]}", f"looks-y={options.looks[1]}",
             f"window-x={options.window[0]}", f"window-y={options.window[1]}", "shade=" + options.shade, *more]
    rasters = raster_paths(options, this)
    words += [f"{name}-location={path}" for name, path in rasters.items()]
    for pad, name in PICTURES:
        words += ["i." + pad, "!", "queue", "!", "pngenc", "!", "filesink", f"location={made.path(name)}.png"]
    if options.slc:
        words += ["t.", "!", "queue", "!", "filesink", f"location={made.path('secondary.SLC')}"]
    summary, rows = {}, [0, 1]

    def take(structure):
        if structure.get_name() == "insarform-summary":
            names = map(structure.nth_field_name, range(structure.n_fields()))
            summary.update((name, structure.get_value(name)) for name in names)
        elif structure.get_name() == "insarform-progress":
            rows[:] = structure.get_value("rows"), structure.get_value("of")

    made.play(words, "lines", reference.height, take, lambda _pipeline: rows[0] / rows[1])
    for path in rasters.values():
        if not os.path.exists(path):  # a warning has told why
            raise Failure(NOT_WRITTEN, f'"{os.path.basename(path)}" could not be written.')
    if options.slc:
        describe(reference, secondary, made)
    return summary


def describe(reference, secondary, made):
    """Writes what says how to read secondary.SLC: a PRM file where both images have one, else a .vrt of GDAL."""
    if read_prm(reference.path) and read_prm(secondary.path):
        write_prm(reference.path, secondary.path, "secondary.SLC", made.path("secondary.PRM"))
    else:
        write_vrt(reference.width, reference.height, secondary.format, "secondary.SLC", made.path("secondary.SLC.vrt"))


def read_raster(path, summary):
    """Returns: its numbers [height][width]"""
    np = library.numpy()
    shape = summary["height"], summary["width"]
    if path.endswith(".tif"):
        return library.Arrays().read(path).reshape(shape)
    return np.fromfile(path, np.float32).reshape(shape)


def shrink_phase(np, phase, longest):
    """The phase of the mean of whole blocks. Returns: it, and the cells of a block each way"""
    n = math.ceil(max(phase.shape) / longest)
    height, width = (size // n * n or size for size in phase.shape)
    rows, columns = min(n, height), min(n, width)
    blocks = np.exp(1j * phase[:height, :width]).reshape(height // rows, rows, width // columns, columns)
    known = np.isfinite(blocks)
    mean = np.where(known, blocks, 0).sum((1, 3))
    return np.where(known.any((1, 3)), np.angle(mean), np.nan), n


def add_pictures(report, options, this, summary):
    """Fringes, coherence and amplitude, with their bars."""
    np = library.numpy()
    paths = raster_paths(options, this)

    def quantity(name, unit, n=1):
        return {"name": name, "unit": unit, "axes": [{"name": "range", "unit": "columns", "step": n * options.looks[0]},
                                                     {"name": "azimuth", "unit": "lines", "step": n * options.looks[1]}]}

    phase, n = shrink_phase(np, read_raster(paths["phase"], summary), 900)
    report.picture("Fringes", phase, quantity("phase", "rad", n), "fringes.png", colours="phase", low=-math.pi, high=math.pi)
    for name, unit, high in ("coherence", "", 1), ("amplitude", "counts", None):
        values = read_raster(paths[name], summary)
        report.picture(name.capitalize(), np.where(values == 0, np.nan, values), quantity(name, unit), f"{name}.png", low=0, high=high)
