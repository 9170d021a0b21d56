# SPDX-License-Identifier: LGPL-2.1-or-later
"""Resamples a secondary into the geometry of its reference, and forms the interferogram of both."""
import math
import os

from .. import library
from ..command import NOT_WRITTEN, Failure
from ..report import pictures
from . import saturation
from .messages import Messages
from .prm import read_prm, write_prm, write_vrt

RASTERS = "coherence", "amplitude", "phase"
LONGEST = 4000  # pixels of a picture file: to compress the cells of a whole scene takes longer than all else
STRIP = 64  # lines of a picture that are averaged at a time


def raster_paths(options, this):
    """Returns: for each raster its path. Those that are no result are made for the report."""
    if options.rasters:
        paths = {name: this.made.path(f"{name}.{options.rasters}") for name in RASTERS}
    else:
        paths = {name: os.path.join(this.scratch, f"{name}.img") for name in RASTERS}
    return {**paths, "interferogram": this.made.path("interferogram.cf32")} if options.interferogram else paths


def form(options, images, resample, this, more=()):
    """images: reference and secondary; resample: words of warp.resampling(), none where the secondary is in the geometry of the
    reference; this: the Work; more: properties of insarform. Returns: the summary of insarform."""
    (reference, secondary), made = images, this.made
    words = [*reference.source, "!", "i.reference", *secondary.source, "!", *resample, "tee", "name=t", "!",
             "queue", "!", "i.secondary", "insarform", "name=i", f"looks-x={options.looks[0]}", f"looks-y={options.looks[1]}",
             f"window-x={options.window[0]}", f"window-y={options.window[1]}", *more]
    rasters = raster_paths(options, this)
    words += [f"{name}-location={path}" for name, path in rasters.items()]
    if options.slc:
        words += ["t.", "!", "queue", "!", "filesink", f"location={made.path('secondary.SLC')}"]
    told, shares = Messages("insarform", "insarform-summary"), []
    made.play(words, "lines", reference.height, told.take, told.count,
              prepare=lambda pipeline: shares.extend(saturation.watch(pipeline, images)))
    saturation.tell(shares, made.report, made.warn)
    for path in rasters.values():
        if not os.path.exists(path):  # a warning has told why
            raise Failure(NOT_WRITTEN, f'"{os.path.basename(path)}" could not be written.')
    if options.slc:
        describe(reference, secondary, made)
    return told.found


def describe(reference, secondary, made):
    """Writes what says how to read secondary.SLC: a PRM file where both images have one, else a .vrt of GDAL."""
    if read_prm(reference.path) and read_prm(secondary.path):
        write_prm(reference.path, secondary.path, "secondary.SLC", made.path("secondary.PRM"))
    else:
        write_vrt(reference.width, reference.height, secondary.format, "secondary.SLC", made.path("secondary.SLC.vrt"))


def read_raster(path, summary):
    """Returns: its numbers [height][width], in the file where that can be"""
    np = library.numpy()
    shape = summary["height"], summary["width"]
    if path.endswith(".tif"):
        return library.Arrays().read(path).reshape(shape)
    return np.memmap(path, np.float32, "r", shape=shape)


def mean_of_blocks(np, values, n, is_phase):
    """Means of n x n cells that have data; of a phase, the phase of the mean."""
    height, width = (size // n * n or size for size in values.shape)
    rows, columns = min(n, height), min(n, width)
    blocks = values[:height, :width].reshape(height // rows, rows, width // columns, columns)
    known = np.isfinite(blocks) if is_phase else blocks != 0
    sums = np.where(known, np.exp(1j * blocks) if is_phase else blocks, 0).sum((1, 3))
    count = known.sum((1, 3))
    return np.where(count, np.angle(sums) if is_phase else sums / np.maximum(count, 1), np.nan)


def shrink(np, values, n, is_phase):
    """The same, some lines at a time. Cells without data are NaN."""
    strips = [mean_of_blocks(np, values[y:y + STRIP * n], n, is_phase) for y in range(0, values.shape[0] // n * n or 1, STRIP * n)]
    return np.concatenate(strips)


def paint(np, phase, shade):
    """u8 [height][width][3]: the colours of the phase, darker where the shade is below 1, black without data"""
    rgba = pictures.colour(np, phase, -math.pi, math.pi, "phase")
    return (rgba[..., :3] * np.where(rgba[..., 3:] > 0, np.clip(np.nan_to_num(shade), 0, 1)[..., None], 0) + 0.5).astype(np.uint8)


def add_pictures(report, options, this, summary):
    """Fringes, coherence and amplitude: a file of each, and in the report with their bars."""
    np = library.numpy()
    n = math.ceil(max(summary["height"], summary["width"]) / LONGEST)
    quantity = {"axes": [{"name": "range", "unit": "columns", "step": n * options.looks[0]},
                         {"name": "azimuth", "unit": "lines", "step": n * options.looks[1]}]}
    paths = raster_paths(options, this)
    phase, coherence, amplitude = (shrink(np, read_raster(paths[name], summary), n, name == "phase")
                                   for name in ("phase", "coherence", "amplitude"))
    bright = amplitude / (pictures.limits(np, amplitude, 0, None)[1] or 1)
    shade = {"coherence": coherence, "amplitude": bright, "none": np.ones_like(phase)}[options.shade]
    for name, picture in ("fringes", paint(np, phase, shade)), ("coherence", coherence), ("amplitude", bright):
        if picture.ndim == 2:
            picture = (255 * np.clip(np.nan_to_num(picture), 0, 1) + 0.5).astype(np.uint8)
        with open(this.made.path(name + ".png"), "wb") as file:
            file.write(pictures.png(np, picture))
    small = math.ceil(max(phase.shape) / pictures.LONGEST)
    across = {"axes": [{**axis, "step": small * axis["step"]} for axis in quantity["axes"]]}
    report.picture("Fringes", shrink(np, phase, small, True), {**across, "name": "phase", "unit": "rad"}, "fringes.png", colours="phase",
                   low=-math.pi, high=math.pi)
    for name, values, unit, high in ("coherence", coherence, "", 1), ("amplitude", amplitude, "counts", None):
        report.picture(name.capitalize(), values, {**quantity, "name": name, "unit": unit}, f"{name}.png", low=0, high=high)
