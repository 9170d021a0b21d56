# SPDX-License-Identifier: LGPL-2.1-or-later
"""Offsets of two images and their fit: chooses the grid, measures, and says how good the fit is.

Unless the user chooses, about 20 x 25 patches from corner to corner are measured in insarxcorr's mode=precise. If fewer
than a quarter of them have a significant correlation, larger templates are tried once.
"""
import os
import tempfile

from .. import library, play
from ..command import NO_RESULT, Failure
from ..progress import Progress
from . import alias
from .gross import find_shift
from .messages import Messages
from .prm import parse_fit

FEW = 0.25  # of the patches: larger templates are tried
NO_DATA = 2  # the state of patches without data, or that a mask leaves out
N_PLANES = 8  # dx, dy, correlation, SNR, cov_xx, cov_yy, cov_xy, state
# Of a good fit: docs/reference/insarxcorr.md, "The fit", has the same limits.
RMS, CORNER, MISFIT, SPAN = 0.5, 0.05, 0.12, 0.5


def choose_search(size):
    """The largest power of two, 64 at most, that is an eighth of the image."""
    search = 64
    while search > 8 and 8 * search > size:
        search //= 2
    return search


def choose_window(size):
    """About an eighth of the image, so that patches reach near its edges; with 64, coherence 0.4 is enough."""
    return min(64, max(32, size // 128 * 16))


def choose_step(size, patch, n):
    """For n patches from corner to corner, or one a pixel."""
    return max(1, int((size - patch) / (n - 1)))


def number(words, name, default):
    """The number that a property of insarxcorr gets, if it is one."""
    value = ([word.split("=", 1)[1] for word in words if word.startswith(name + "=")] or [default])[-1]
    try:
        return int(value)
    except ValueError:  # insarxcorr tells what is wrong
        return default


def is_given(words, *names):
    """Whether the user gives one of these properties."""
    return any(word.startswith(tuple(name + "=" for name in names)) for word in words)


def make_grid(image, search, words, scale=1):
    """Patches over all of the image: beyond them the fit would be extrapolated. Returns: properties; words: those that
    the user gives; scale: of the templates."""
    if is_given(words, "grid", "nx", "ny"):
        return ["nx=20", "ny=25", "grid=even"]
    compat = "mode=compat" in words
    grid = ["grid=step"]
    for axis, window, length, n in ("x", "window-width", image.width, 20), ("y", "window-height", image.height, 25):
        reach = number(words, axis + "search", search[axis + "search"])
        template = number(words, window, int(scale * choose_window(length)))
        patch = 4 * reach if compat else (template or 2 * reach) + 2 * reach + 16
        grid += [f"{window}={template}", f"step-{axis}={choose_step(length, patch, n)}"]
    return grid


class Offsets:
    """Offsets and their fit. table, raster: files; fit: the eight lines, empty without one; found: the numbers of
    insarxcorr-fit; planes: [8][ny][nx]; n: patches, with a mask those that it leaves; masked: the others; warnings: sentences; pipeline:
    what has measured them; spectra: of alias.watch(); before: the Offsets of smaller templates, if these were tried first."""

    def __init__(self, images, properties, folder, form, raster, name, warn):
        np = library.numpy()
        self.table, self.fit_path = os.path.join(folder, "offsets"), os.path.join(folder, "fit")
        self.raster = os.path.join(folder, f"offsets.{raster}") if raster else None
        self.properties, self.warnings, self.before = properties, [], None
        planes = os.path.join(folder, "planes")
        words = ["insarxcorr", "name=x", *properties]
        words += ["offsets-location=" + self.raster] if self.raster else []
        words += ["!", form, "!", "filesink", "location=" + self.table]
        for pad, path in ("fit", self.fit_path), ("rasters", planes):
            words += ["x." + pad, "!", "queue", "!", "filesink", "location=" + path]
        for side, image in zip(("reference", "secondary"), images):
            words += [*image.source, "!", "x." + side]
        self.pipeline = play.parse(words)
        self.spectra, told = alias.watch(self.pipeline, "x"), Messages("insarxcorr", "insarxcorr-fit")
        with Progress(name, "lines", images[0].height) as progress:
            try:
                self.backends = play.play(self.pipeline, self.warnings.append, told.take, progress, told.count)
            except Failure:  # they may say why
                for sentence in self.warnings:
                    warn(sentence)
                raise
        self.found = told.found
        self.planes = np.fromfile(planes, "<f4").reshape(N_PLANES, told.rows[1], -1)
        left_out = self.planes[7] == NO_DATA if is_given(properties, "mask-location") else np.zeros_like(self.planes[7])
        self.masked = int(np.count_nonzero(left_out))
        self.n = max(1, left_out.size - self.masked)
        with open(self.fit_path, encoding="ascii") as text:
            self.fit = text.read()

    def fit_function(self):
        """Returns: a function from (x, y) to the offset; None without a fit"""
        return parse_fit(self.fit, "fit.txt") if self.fit else None

    def describe(self):
        return f"{self.found['n-points'] if self.fit else 'too few'} of {self.n} patches"

    def used(self):
        """The part of the patches that the fit is made of."""
        return self.found["n-points"] / self.n if self.fit else 0

    def error(self):
        """What is expected of the fit at the corners."""
        return max(self.found["corner-r"], self.found["corner-a"]) if self.fit else float("inf")

    def is_poor(self):
        """Too few patches are in the fit, or they do not agree: texture correlates with other texture"""
        return self.used() < FEW or not self.agrees()

    def agrees(self):
        """Whether the patches of the fit lie near it"""
        return bool(self.fit) and max(self.found["rms-r"], self.found["rms-a"]) <= 1

    def spans(self, image):
        """The parts of the columns and of the lines that the points of the fit span."""
        return [(self.found[axis + "-most"] - self.found[axis + "-least"]) / length
                for axis, length in (("x", image.width), ("y", image.height))]

    def describe_fit(self, image):
        """How good the fit is: the points that it is made of, how far they are from it, what they span."""
        found, spans = self.found, self.spans(image)
        return (f"{found['n-points']} of {self.n} patches (correlation above {found['min-correlation']:.2f}), "
                f"rms {found['rms-r']:.3f} columns and {found['rms-a']:.3f} lines "
                f"(alike beside each other: {found['misfit-r']:.3f} and {found['misfit-a']:.3f}; expected error at the corners: "
                f"{found['corner-r']:.3f} and {found['corner-a']:.3f}), over "
                f"{100 * spans[0]:.0f} % of the columns and {100 * spans[1]:.0f} % of the lines")


def can_retry(words):
    return not is_given(words, "grid", "nx", "ny", "window-width", "window-height", "fit-snr", "mode")


def measure(images, words, folder, form, raster, name, warn):
    """images: reference and secondary; words: properties of insarxcorr that the user gives; folder: for files; form: caps of
    the table; raster: extension of a raster, or None; name: of the pair, for progress; warn: gets the warnings of the result.
    Returns: Offsets"""
    words = ["fit-snr=-1" if word == "fit-snr=auto" else word for word in words]
    search = {"xsearch": choose_search(images[0].width), "ysearch": choose_search(images[0].height)}

    def run(scale):
        properties = ["mode=precise", *make_grid(images[0], search, words, scale),
                      *(f"{name}={n}" for name, n in search.items()), *words]
        return Offsets(images, properties, tempfile.mkdtemp(dir=folder), form, raster, name, warn)

    best = run(1)
    if best.is_poor() and not is_given(words, "use-shift"):
        best = try_shift(best, images, search, run, folder)
    if best.used() < FEW and can_retry(words):
        best = try_larger(best, run)
    for sentence in best.warnings:
        warn(sentence)
    return best


def move_search(images, search, folder):
    """Moves the search of patches to the shift of the whole images, if that lies beyond it. Returns: what the source of the secondary was before, and
    a sentence for the user; None where the search stays"""
    found, secondary = find_shift(images, folder), images[1]
    if not found or max(abs(n - known) - search[name] / 2 for n, known, name in zip(found, secondary.shift, search)) < 0:
        return None
    before = secondary.source
    secondary.source = [*before, *(f"{name}={n - known}" for name, n, known in zip(("rshift", "ashift"), found, secondary.shift))]
    return before, f"The secondary is about {found[0]} columns and {found[1]} lines behind the reference, beyond the search of patches. The search " \
                   "was moved there."


def quality_of(offsets):
    """Patches of texture alone are many, and do not agree"""
    return offsets.agrees(), offsets.used()


def try_shift(first, images, search, run, folder, quality=quality_of):
    """The shift of the whole images may lie beyond the search. Returns: the better offsets"""
    moved = move_search(images, search, folder)
    if not moved:
        return first
    second = run(1)
    if quality(second) <= quality(first):
        images[1].source = moved[0]
        return first
    second.warnings.append(moved[1])
    return second


def try_larger(first, run):
    """Larger templates find patches of less coherence. Returns: the better offsets"""
    try:
        second = run(1.5)
    except Failure:  # the image is too small for these
        return first
    is_better = second.error() < first.error()
    best = second if is_better else first
    second.before = first
    if second.fit:
        best.warnings.append(
            f"{first.describe()} have a significant correlation; with templates 1.5 times as large, {second.describe()} "
            f"have. The {'larger' if is_better else 'smaller'} ones are used: their expected error at the corners is "
            f"{best.error():.3f} pixel.")
    return best


def check_fit(offsets, secondary=""):
    """Fails where offsets are those of chance. secondary: the path of the image"""
    search = "A larger xsearch and ysearch, or rshift and ashift in the PRM file of the secondary, help" \
        if secondary.lower().endswith(".prm") else "A larger xsearch and ysearch help"
    why = "; nothing was written, but gst-imaging offsets writes their offsets. Are these images of one scene, with their " \
          f"bytes in one order? {search} when the shift is large; a larger window-width and window-height help when the coherence is low."
    why += f" {offsets.masked} of {offsets.masked + offsets.n} patches are masked or have no data: look at --mask." if offsets.masked else \
        " --mask of gst-imaging insar, or mask-location of insarxcorr, leaves out water and forest."
    if not offsets.fit:
        raise Failure(NO_RESULT, "Too few patches correlate for a fit" + why)
    found, n = offsets.found, offsets.n
    search = [number(offsets.properties, name, 64) for name in ("xsearch", "ysearch")]
    rms = found["rms-r"], found["rms-a"]
    # offsets of steep terrain leave a plane as well, but agree with their neighbours; those of chance are anywhere in
    # the search, and weights make their rms smaller
    is_anywhere = any(r > s / 4 or r > 1 and found["misfit-" + axis] < r / 4 for r, s, axis in zip(rms, search, "ra"))
    few = offsets if found["n-points"] < n / 2 else offsets.before  # larger templates overlap, and correlate by chance together
    if max(rms) > 1 and (few or is_anywhere):
        told = (few or offsets).describe() + " correlate"
        told += f", and with larger templates {offsets.describe()}" if few and few is not offsets else ""
        raise Failure(NO_RESULT, f"{told}, and these do not agree: they lie {rms[0]:.1f} columns and {rms[1]:.1f} lines (rms) from their fit" + why)


def add_figures(report, offsets, image):
    """What tells how good the fit is, with the limits above."""
    found, spans = offsets.found, offsets.spans(image)
    report.figure("patches in the fit", 100 * offsets.used(), "%", at_least=100 * FEW,
                  about=f"{found['n-points']} of {offsets.n} have a correlation above {found['min-correlation']:.2f} %")
    for axis, unit, span in ("r", "columns", spans[0]), ("a", "lines", spans[1]):
        report.figure(f"rms distance from the fit, {unit}", found[f"rms-{axis}"], "pixels", at_most=RMS)
        report.figure(f"shared by neighbours, {unit}", found[f"misfit-{axis}"], "pixels", at_most=MISFIT,
                      about="the part of that rms in which neighbouring patches agree: terrain or motion, which no plane follows")
        report.figure(f"expected error at the corners, {unit}", found[f"corner-{axis}"], "pixels", at_most=CORNER)
        report.figure(f"span of the patches, {unit}", 100 * span, "%", at_least=100 * SPAN)
