# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is made of the levels that octbscan computed: pictures of 8 and 16 bits, quality, plots with a depth axis."""
import json
import math
import os

from .. import library
from ..command import NO_RESULT, Failure
from ..frames import files
from ..report import plots

PERCENTILES = {"level": (30, 99.9), "intensity": (30, 99.7)}  # as range=auto of octbscan
NOISE_ALONE = 16  # dB from black to white, below which octbscan takes a B-scan for noise
COARSE = 4  # samples from below half of a peak to below half
MOST = 1 << 24  # samples that percentiles are made of


def writable(*extensions):
    """Returns: the first of them that this build writes"""
    known = files.formats()
    return next(extension for extension in extensions if known.get(extension, {}).get("write"))


class Images:
    """Of a file of floats [B-scans, depths, lines]."""

    def __init__(self, made, name):
        from .. import metadata

        self.np, self.made, self.path = library.numpy(), made, made.path(name)
        told = metadata.sidecar(self.path)
        if not told or not told["frames"]:
            raise Failure(NO_RESULT, "No B-scan was made: the input has fewer lines than one has.")
        self.quantity = told.get("quantity", {"name": "level", "unit": "dB", "axes": []})
        self.arrays, self.n = library.Arrays(), told["frames"]

    def each(self):
        """Generates one B-scan after the other."""
        for shape, _start, values in self.arrays.pages(self.path):
            yield from values.reshape(-1, *shape[-2:])

    def look(self):
        """Reads all once: the mean intensity of each depth, the middle B-scan, samples for the percentiles."""
        np, total, some = self.np, 0, []
        for i, image in enumerate(self.each()):
            intensity = 10 ** (image.astype(float) / 10) if self.is_level() else image.astype(float)
            total = total + intensity.mean(1)
            if i == self.n // 2:
                self.middle = image.copy()
            step = max(1, self.n * image.size // MOST)
            some.append(image.reshape(-1)[::step].copy())
        self.profile = total / self.n
        some = np.concatenate(some)
        some = some[np.isfinite(some) & (some > -200)] if self.is_level() else some[np.isfinite(some)]
        return some

    def is_level(self):
        return self.quantity.get("unit") == "dB"

    def set_range(self, settings):
        """Black and white of all pictures: as given, else percentiles of the whole recording."""
        np, some = self.np, self.look()
        names = ("range-min", "range-max") if self.is_level() else ("linear-min", "linear-max")
        shares = PERCENTILES.get(self.quantity.get("name"), (30, 99.9))
        found = np.percentile(some, shares) if some.size else (0.0, 1.0)
        self.found = [float(v) for v in found]
        self.low, self.high = (float(settings.get(name, value)) for name, value in zip(names, self.found))
        if not self.high > self.low:
            self.high = self.low + 1

    def grey(self, image, dtype):
        """As octbscan makes video of floats."""
        np = self.np
        white = np.iinfo(dtype).max
        scaled = (image - np.float32(self.low)) * np.float32(white / (self.high - self.low))
        return np.floor(np.nan_to_num(scaled, posinf=white).clip(0, white) + np.float32(0.5)).astype(dtype)

    def quantity_of(self, dtype):
        """Returns: the quantity of grey pictures; None where the levels have no one scale or axes"""
        scale, offset = (self.quantity.get(key, usual) for key, usual in (("scale", 1), ("offset", 0)))
        numbers = [scale, offset] + [axis[key] for axis in self.quantity.get("axes", []) if axis for key in ("step", "origin")]
        if any(isinstance(number, list) or number is None for number in numbers):
            return None
        step = (self.high - self.low) / self.np.iinfo(dtype).max
        return {**self.quantity, "scale": scale * step, "offset": offset + scale * self.low}

    def write(self, each):
        """The middle B-scan with 8 and 16 bits, and all of several as stacks."""
        np, name = self.np, writable("png", "pgm")
        for dtype, ending in ("u1", ""), ("u2", "-16"):
            quantity = self.quantity_of(dtype)
            self.arrays.save_values(np, self.made.path(f"bscan{ending}.{name}"), self.grey(self.middle, dtype), quantity)
            if self.n > 1:
                stack = np.empty((self.n, *self.middle.shape), dtype)
                for i, image in enumerate(self.each()):
                    stack[i] = self.grey(image, dtype)
                self.arrays.save_values(np, self.made.path(f"bscans{ending}.{writable('tif', 'npy')}"), stack, quantity)
                if each and dtype == "u2":
                    os.makedirs(self.made.path("pictures"), exist_ok=True)
                    for i, image in enumerate(stack):
                        self.arrays.save_values(np, self.made.path(f"pictures/bscan-{i:05}.{name}"), np.ascontiguousarray(image), quantity)

    def depths(self):
        """Returns: the place of each depth, and the unit"""
        from .. import metadata

        axes = self.quantity.get("axes") or []
        if len(axes) < 2 or (axes[1] or {}).get("name") != "depth":
            return self.np.arange(len(self.profile)), "pixel"
        return metadata.places(axes[1], len(self.profile)), axes[1]["unit"]

    def peak(self):
        """Returns: the depth of the brightest layer of the mean A-scan, to a fraction of a step, and how wide the brightest
        peaks of the A-scans are, the median of the middle B-scan; None where they are not below half on both sides"""
        np, y = self.np, self.profile
        places, _unit = self.depths()
        step, at = float(places[1] - places[0]) if len(places) > 1 else 0.0, int(np.argmax(y))
        shift = 0.0
        if 0 < at < len(y) - 1:
            a, b, c = np.log(np.maximum(y[at - 1:at + 2], 1e-30))
            shift = 0.5 * (a - c) / (a - 2 * b + c) if a - 2 * b + c < 0 else 0.0
        ascans = 10 ** (self.middle.T.astype(float) / 10) if self.is_level() else self.middle.T.astype(float)
        widths = [width for width in map(width_of, ascans) if width is not None]
        return float(places[at] + shift * step), float(np.median(widths)) * abs(step) if widths else None


def width_of(ascan):
    """Returns: of the brightest peak at half of its intensity, in steps, that of a Gaussian where few samples are in it; None where it has
    no two sides"""
    at = int(ascan.argmax())
    half = ascan[at] / 2
    left, right = at, at
    while left > 0 and ascan[left] > half:
        left -= 1
    while right < len(ascan) - 1 and ascan[right] > half:
        right += 1
    if not ascan[at] > 0 or ascan[left] > half or ascan[right] > half:
        return None
    if right - left < COARSE and ascan[at - 1] > 0 and ascan[at + 1] > 0:  # lines between so few samples are far from the peak
        before, top, after = (math.log(value) for value in ascan[at - 1:at + 2])
        return math.sqrt(8 * math.log(2) / (2 * top - before - after))
    ends = [i + (half - ascan[i]) / (ascan[j] - ascan[i]) * (j - i) for i, j in ((left, left + 1), (right, right - 1))]
    return float(ends[1] - ends[0])


def rename_in_sidecar(made, name):
    """It names files as they will be."""
    path = made.path(name + ".json")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(json.dumps(made.folder)[1:-1], json.dumps(made.target)[1:-1]))


def figures(report, images, stats, saturated):
    depth, width = images.peak()
    unit = images.depths()[1]
    if images.is_level():
        report.figure("from black to white", images.found[1] - images.found[0], "dB", at_least=NOISE_ALONE,
                      about="percentiles 30 and 99.9 of the recording; noise alone stays below the limit")
    report.figure("brightest depth", depth, unit, about="of the mean of all A-scans")
    if width is not None:
        report.figure("width of the brightest peak", width, unit, about="at half of its intensity, the median of"
                      " the A-scans of the middle B-scan; of a mirror the axial resolution")
    share, about = saturated
    if share is None:
        report.not_checked("saturated samples", "%", at_most=0.1, about=about)
    else:
        report.figure("saturated samples", 100 * share, "%", at_most=0.1, about=about)
    report.figure("invalid A-scans", stats.get("bad-ascans", 0), at_most=0)
    report.figure("missing frames", stats.get("frames-missing", 0) + stats.get("lost-frames", 0), at_most=0)
    report.figure("time for a B-scan", stats.get("time-p50", 0) / 1000, "ms", about=f'median, on {stats.get("active-backend")}')
    return depth, width


def shown(np, image, quantity):
    """Returns: a B-scan of few A-scans with each of them as several columns, and its quantity"""
    height, width = image.shape
    times = height // (2 * width)
    if times < 2:
        return image, quantity
    axes = [axis and dict(axis) for axis in quantity.get("axes", [])]
    if axes and axes[0]:
        axes[0]["step"] = axes[0]["step"] / times
        axes[0]["unit"] = {"pixel": "A-scans"}.get(axes[0]["unit"], axes[0]["unit"])
    return np.repeat(image, times, 1), {**quantity, "axes": axes}


def show(report, images, made):
    from .. import metadata

    np = images.np
    places, unit = images.depths()
    report.picture(f"B-scan {images.n // 2} of {images.n}" if images.n > 1 else "The B-scan",
                   *shown(np, images.middle, images.quantity),
                   f"bscan.{writable('png', 'pgm')}", low=images.low, high=images.high)
    with np.errstate(divide="ignore"):
        levels = 10 * np.log10(images.profile)
    report.plot("Mean of all A-scans", plots.lines(("depth", unit), ("level", "dB"), {"": (places, levels)}),
                "The mean is one of intensities.")
    if os.path.exists(made.path("enface.npy")):
        values = library.Arrays().read(made.path("enface.npy"))
        told = metadata.sidecar(made.path("enface.npy")) or {}
        values = values[0] if values.ndim == 3 else values
        low, high = np.percentile(values[np.isfinite(values)], (1, 99.8))
        grey = np.clip((values - low) * (255 / ((high - low) or 1)) + 0.5, 0, 255).astype(np.uint8)
        name = f"enface.{writable('png', 'pgm')}"
        library.Arrays().save_values(np, made.path(name), grey)
        report.picture("From above", values, told.get("quantity", {}), name, low=float(low), high=float(high))
