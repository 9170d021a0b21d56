# SPDX-License-Identifier: LGPL-2.1-or-later
"""Offsets that no plane follows: what is left between the reference and the resampled secondary is measured on a dense grid,
culled, smoothed, filled and added to the offsets, several times with smaller templates."""
import os

from .. import library, play
from ..progress import Progress
from .field import places_of, read_table
from .messages import Messages

PASSES = (32, 16), (16, 8), (16, 8)  # template, and samples from patch to patch
SEARCH = 8, 4, 4  # samples
OUTLIER = 4  # times the spread around the median of 5 x 5 patches
SPREAD = 3.14  # of a normal distribution, in quartiles of the distance from its middle: half of the patches may be of noise
LEAST = 0.2  # samples: a smaller distance is no outlier
NEIGHBOURS = 8  # of 24 that a patch needs, as at a corner; those next to it share samples, and agree in noise, too
STEEPEST = 0.24  # change of an offset from cell to cell, in parts of their distance; slcresample follows 0.25


class Field:
    """Offsets in cells that cover the image. counts: for each pass the patches, and what was culled and filled"""

    def __init__(self, image):
        self.image, self.counts, self.planes = image, [], None

    def shape(self, step):
        return max(4, round(self.image.height / step)), max(4, round(self.image.width / step))

    def centres(self, shape):
        """Returns: line and column of the middle of each row and column of cells"""
        return [(library.numpy().arange(n) + 0.5) * size / n - 0.5 for n, size in zip(shape, (self.image.height, self.image.width))]

    def warn_of_few(self, warn):
        if len(self.counts) < len(PASSES):
            what = "The plane alone is used" if self.planes is None else "The offsets of the passes before are used"
            warn(f"--warp: pass {len(self.counts) + 1} of {len(PASSES)} found no significant patch. {what}.")

    def save(self, folder):
        """Returns: the properties of slcresample"""
        if self.planes is None:
            return []
        np, words = library.numpy(), []
        for name, plane in zip(("range", "azimuth"), self.planes):
            path = os.path.join(folder, f"{name}-offsets.npy")
            np.save(path, plane.astype(np.float32))
            words.append(f"{name}-offsets={path}")
        return words


def windows(np, plane, size):
    """Returns: the size x size values around each, NaN outside, [rows][columns][size x size]"""
    padded = np.pad(plane, size // 2, constant_values=np.nan)
    view = np.lib.stride_tricks.sliding_window_view(padded, (size, size))
    return view.reshape(*plane.shape, size * size)


def quantile(np, values, part):
    """Of the last axis, where there is no NaN; NaN where there is nothing."""
    values = np.sort(values, -1)  # NaN last
    n = np.isfinite(values).sum(-1)
    at = np.maximum(n - 1, 0) * part
    low, high = (np.take_along_axis(values, i.astype(int)[..., None], -1)[..., 0] for i in (np.floor(at), np.ceil(at)))
    return np.where(n > 0, (low + high) / 2, np.nan)


def cull(np, planes):
    """planes: of insarxcorr. Returns: what is good, and how many patches had no significant peak, were outliers, or alone"""
    good = planes[7] == 0
    counts = {"patches": good.size, "without a significant peak": int((~good).sum())}
    away, limit = np.zeros(good.shape), np.zeros(good.shape)
    for plane in planes[:2]:
        values = np.where(good, plane, np.nan).astype(float)
        middle = quantile(np, windows(np, values, 5), 0.5)
        spread = SPREAD * quantile(np, np.abs(windows(np, values, 5) - middle[..., None]), 0.25)
        away = np.fmax(away, np.abs(values - middle))
        limit = np.fmax(limit, np.fmax(OUTLIER * spread, LEAST))
    near = good & ~(away > limit)
    counts["outliers"] = int((good & ~near).sum())
    around = np.nansum(windows(np, near.astype(float), 5), -1) - near
    kept = near & (around >= NEIGHBOURS)
    counts["alone"] = int((near & ~kept).sum())
    return kept, counts


def blur(np, plane, sigma):
    """With a Gaussian, zeros outside."""
    reach = int(3 * sigma + 1)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    for axis in 0, 1:
        padded = np.pad(plane, [(reach, reach) if i == axis else (0, 0) for i in (0, 1)])
        plane = np.lib.stride_tricks.sliding_window_view(padded, kernel.size, axis) @ kernel
    return plane


def smooth(np, plane, weights, sigma=0.7):
    """The weighted mean of neighbours; holes take that of wider and wider surroundings. Returns: it, and the holes"""
    found = np.zeros(plane.shape)
    known = np.zeros(plane.shape, bool)
    holes = None
    while not known.all() and sigma < 2 * max(plane.shape):
        total = blur(np, weights, sigma)
        mean = blur(np, np.where(weights > 0, plane, 0) * weights, sigma) / np.maximum(total, 1e-30)
        new = ~known & (total > 1e-3 * weights.max())
        found[new] = mean[new]
        known |= new
        holes = ~known if holes is None else holes
        sigma *= 2
    return found, int(holes.sum())


def resize(np, plane, rows, columns, places):
    """Bilinear, from patches at rows and columns to places; beyond the ends the last value."""
    lines, samples = places
    across = np.stack([np.interp(samples, columns, row) for row in plane])
    return np.stack([np.interp(lines, rows, column) for column in across.T], -1)


def soften(np, plane, sizes):
    """Averages where offsets change too much from cell to cell: at edges, and around wrong offsets that agree. sizes: lines and columns of a
    cell. Returns: the plane, and where it was changed"""
    total = blur(np, np.ones(plane.shape), 1)
    changed = np.zeros(plane.shape, bool)
    while True:
        steep = np.zeros(plane.shape)
        for axis, size in enumerate(sizes):
            jumps = np.abs(np.diff(plane, axis=axis)) > STEEPEST * size
            for side in (0, 1), (1, 0):
                steep += np.pad(jumps, [side if i == axis else (0, 0) for i in (0, 1)])
        if not steep.any():
            return plane, changed
        near = blur(np, steep, 1) > 0
        plane = np.where(near, blur(np, plane, 1) / total, plane)
        changed |= near


def resampling(reference, fit, taps, offsets):
    """Returns: the words of slcresample. fit: file; offsets: properties of offsets that are no plane"""
    return ["slcresample", "fit-location=" + fit, *offsets, f"width={reference.width}", f"height={reference.height}", f"taps={taps}", "!"]


def measure(images, resample, properties, folder, progress):
    """Returns: the planes of insarxcorr, and the places of its columns and rows of patches"""
    np = library.numpy()
    table, planes = (os.path.join(folder, name) for name in ("warp.csv", "warp.f32"))
    pipeline = play.parse([
        *images[0].source, "!", "x.reference", *images[1].source, "!", *resample, "queue", "!", "x.secondary",
        "insarxcorr", "name=x", "mode=precise", "grid=step", "use-shift=false", "fit-range=0", "fit-azimuth=0", *properties,
        "x.src", "!", "queue", "!", "text/csv", "!", "filesink", "location=" + table,
        "x.rasters", "!", "queue", "!", "filesink", "location=" + planes])
    told = Messages("insarxcorr")
    play.play(pipeline, None, told.take, progress, told.count)
    return np.fromfile(planes, "<f4").reshape(8, told.rows[1], -1), *places_of(read_table(table))


def find_field(images, fit, taps, this):
    """images: reference and secondary; fit: file; this: the Work. Returns: the Field"""
    np, field = library.numpy(), Field(images[0])
    for number, ((template, step), search) in enumerate(zip(PASSES, SEARCH), 1):
        properties = [f"window-width={template}", f"window-height={template}", f"xsearch={search}", f"ysearch={search}",
                      f"step-x={step}", f"step-y={step}"]
        with Progress(f"warp, pass {number} of {len(PASSES)}", "lines", images[0].height) as progress:
            resample = resampling(images[0], fit, taps, field.save(this.scratch))
            planes, columns, rows = measure(images, resample, properties, this.scratch, progress)
        good, counts = cull(np, planes)
        if not good.any():
            break
        shape = field.shape(step)
        places, found = field.centres(shape), []
        for plane, variance in zip(planes[:2], planes[4:6]):
            weights = np.where(good, 1 / np.maximum(np.where(good, variance, 1), 1e-4), 0)
            values, holes = smooth(np, np.where(good, plane, 0).astype(float), weights / weights.max())
            found.append(resize(np, values, rows, columns, places))
        counts["filled"] = holes
        if field.planes is not None:
            before = field.centres(field.planes[0].shape)
            found = [resize(np, old, *before, places) + new for old, new in zip(field.planes, found)]
        sizes = [size / n for n, size in zip(shape, (images[0].height, images[0].width))]
        field.planes, changed = zip(*(soften(np, plane, sizes) for plane in found))
        counts["too steep"] = int((changed[0] | changed[1]).sum())
        field.counts.append(counts)
    return field
