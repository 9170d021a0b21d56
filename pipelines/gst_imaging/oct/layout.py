# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether raw samples have the width and the type that were given: the envelope of the source repeats from spectrum to spectrum, in the light
or, of signals around 0, in the strength of the fringes."""
from .. import library
from ..frames.doubts import SMOOTHER, roughness

DTYPES = {"u8": "u1", "u16": "<u2", "u16be": ">u2", "i16": "<i2", "i16be": ">i2", "f32": "<f4", "f32be": ">f4"}

LENGTH = 1 << 20  # samples that are looked at
SHORTEST = 64  # samples of a spectrum
MOST_SPECTRA = 16  # in the given width, that are looked for
CANDIDATES = 24  # widths that are tried
ALIKE, MORE = 0.6, 0.3  # correlation of neighbours that another layout needs, and how much more that is than with the given one
SMOOTH = 32  # samples that are averaged
SLIPPED = 0.002  # of correlation, more than that between widths a sample off is no noise
MARGIN = 0.05  # less than that is no difference
OF_FRINGES = 0.3  # correlation of the light, above which the strength of fringes does not count
TWICE = 0.8  # correlation of the two bytes of 16 bits, which are two samples then
BRIGHTEST, DARKEST = 1e9, 1e-12  # counts, above which one float, and below which most, are none


def correlate(np, values, lag):
    a, b = values[:-lag] - values[:-lag].mean(), values[lag:] - values[lag:].mean()
    return float((a * b).sum() / max(np.sqrt((a * a).sum() * (b * b).sum()), 1e-30))


def likeness(np, values, samples):
    """Returns: the smallest correlation of spectra with those 1, 2, 4, ... later: a width that is 1 off slips by 64 samples in 64"""
    found, steps = [], 1
    while 2 * steps * samples <= len(values) and steps <= 64:
        found.append(correlate(np, values, steps * samples))
        steps *= 2
    return min(found, default=0.0)


def finite(np, values):
    values = values.astype(float)
    return np.where(np.isfinite(values), values, 0)


def widths(np, values):
    """Returns: widths at high peaks of the autocorrelation, the shortest first; fringes make several around the true one"""
    n = len(values)
    spectrum = np.fft.rfft(values - values.mean(), 2 * n)
    sums = np.fft.irfft(abs(spectrum) ** 2)[:n // 4]
    sums /= np.maximum(sums[0], 1e-30) * (1 - np.arange(len(sums)) / n)
    peaks = np.flatnonzero((sums[1:-1] > sums[:-2]) & (sums[1:-1] >= sums[2:])) + 1
    # the envelope itself correlates with its neighbourhood: a width lies behind the first zero
    below = np.flatnonzero(sums < 0)
    peaks = peaks[(peaks >= max(SHORTEST, below[0]))] if len(below) else peaks[:0]
    if not len(peaks):
        return []
    return [int(width) for width in peaks[sums[peaks] > 0.9 * sums[peaks].max()][:CANDIDATES]]


def best_width(np, values, samples):
    """Returns: how alike spectra of the best width are, and that width"""
    found = [(likeness(np, values, width), width) for width in widths(np, values)]
    if not found:
        return 0.0, samples
    better = max(found)[0]
    about = min(width for likely, width in found if likely > better - MARGIN)
    better, width = max((likeness(np, values, width), width) for width in range(about - 2, about + 3))
    return better, shortest(np, values, width)


def shortest(np, values, samples):
    """Returns: a part of this width in which spectra are as alike, that of one spectrum if the width is that of several; else the width"""
    least = max(ALIKE, likeness(np, values, samples) - MARGIN)
    parts = (samples // n for n in range(MOST_SPECTRA, 1, -1) if samples % n == 0 and samples // n >= SHORTEST)
    return next((part for part in parts if likeness(np, values, part) >= least), samples)


def nearest(np, values, samples):
    """Returns: the best width of those up to two samples off. Fringes that move from line to line would shift it, and are smoothed away"""
    smooth = np.convolve(values, np.ones(SMOOTH) / SMOOTH, "valid")
    found = {width: likeness(np, smooth, width) for width in range(samples - 2, samples + 3)}
    best = max(found, key=found.get)
    return best if found[best] > max(ALIKE, found[samples] + SLIPPED) else samples


def seen_as(np, raw, dtype):
    """raw: bytes. Returns: samples of a type; None where they cannot be some"""
    samples = raw[:raw.size // 4 * 4].view(DTYPES[dtype])
    if samples.dtype.kind == "f" and not ((np.abs(samples) < BRIGHTEST).all() and np.median(np.abs(samples)) > DARKEST):  # False for NaN
        return None
    return finite(np, samples)


def strength(np, values):
    """Returns: of fringes around 0"""
    return np.convolve(np.abs(values - values.mean()), np.ones(SMOOTH) / SMOOTH, "valid")


def others(dtype):
    """Returns: types that samples may have instead; the sign is looked at elsewhere"""
    signed = [kind.replace("u", "i") if dtype.startswith("i") else kind for kind in ("u16", "u16be")]
    return [other for other in (*signed, "f32", "f32be", "u8") if other != dtype]


def layouts(np, raw, options, light):
    """light: (samples) to what repeats. Returns: (likeness, samples, dtype) of other layouts, those with one difference first"""
    first, last = [], []
    for dtype in options.dtype, *others(options.dtype):
        values = seen_as(np, raw, dtype)
        if values is not None and values.std() > 0:
            values = light(np, values)
            first.append((likeness(np, values, options.samples), options.samples, dtype))
            last.append((*best_width(np, values, options.samples), dtype))
    return [layout for layout in first + last if layout[1:] != (options.samples, options.dtype)]


def of_one_order(np, raw, found, options):
    """Returns: the layouts of the order in which samples are much smoother, where there is one: fringes that repeat make some width of
    the other one look right"""
    plain = options.dtype.removesuffix("be")
    pair = [plain, plain + "be"]
    if plain == "u8" or not set(pair) <= {options.dtype, *(dtype for _likely, _samples, dtype in found)}:
        return found
    seen = [seen_as(np, raw, dtype) for dtype in pair]
    rough = [roughness(np, samples[None]) for samples in seen if samples is not None]
    if len(rough) < 2 or max(rough) < SMOOTHER * min(rough):
        return found
    return [layout for layout in found if layout[2] != pair[rough.index(max(rough))]]


def narrower(np, raw, options):
    """Returns: the type of which each sample has two, where that is so: spectra of as many of these are alike, or the two bytes of 16 bits"""
    if DTYPES[options.dtype].endswith("2"):
        return "u8" if np.corrcoef(raw[::2], raw[1::2])[0, 1] > TWICE else None
    halves = ("u16", "u16be") if options.dtype.startswith("f") else ()
    return next((half for half in halves if likeness(np, seen_as(np, raw, half), options.samples) > ALIKE), None)


class Layout:
    """doubts: sentences; likeness: correlation of neighbouring spectra, None where they do not tell"""

    def __init__(self, lines, options):
        """lines: [lines, samples] of the file"""
        np = library.numpy()
        self.np, self.options, self.likeness, self.doubts = np, options, None, []
        given = np.array(lines[:max(4, LENGTH // options.samples)]).ravel()
        self.raw = given.view("u1")
        if len(given) < 4 * SHORTEST or not finite(np, given).std() > 0:
            return
        values = seen_as(np, self.raw, options.dtype)
        values = np.zeros(len(given)) if values is None else values
        half = narrower(np, self.raw, options)
        if half:
            self.doubts.append(f"The two halves of each sample are as alike as two samples of {half}: is it --dtype {half}?")
        elif self.is_around_zero(values):
            self.look(strength(np, values), strength)
        else:
            self.look(values, lambda _np, light: light)
            if self.likeness is None and not self.doubts:
                self.look(strength(np, values), strength)

    def is_around_zero(self, values):
        """Does the strength of fringes repeat, and not the light?"""
        np, samples = self.np, self.options.samples
        if likeness(np, values, samples) > OF_FRINGES or best_width(np, values, samples)[0] > OF_FRINGES:
            return False
        values = strength(np, values)
        return max(likeness(np, values, samples), best_width(np, values, samples)[0]) > ALIKE

    def look(self, values, light):
        np, samples, dtype = self.np, self.options.samples, self.options.dtype
        like = likeness(np, values, samples)
        one = shortest(np, values, samples)
        near = nearest(np, values, one)
        if one < samples:
            self.doubts.append(f"{samples} samples of {dtype} hold the envelope of the source {samples // one} times: is it --samples {near}?")
        elif near != one:
            self.doubts.append(f"Spectra of {samples} samples of {dtype} slip against each other, those of {near} samples do not: is it --samples {near}?")
        if self.doubts or like + MORE > 1:  # nothing can be as much better
            self.likeness = like
            return
        found = of_one_order(np, self.raw, layouts(np, self.raw, self.options, light), self.options)
        best = max((layout[0] for layout in found), default=0)
        if best > max(ALIKE, like + MORE):
            self.tell(like, next(layout for layout in found if layout[0] > best - MARGIN))
        self.likeness = like if like > ALIKE else None

    def tell(self, like, other):
        likely, samples, dtype = other
        changes = [f"--samples {samples}"] * (samples != self.options.samples) + [f"--dtype {dtype}"] * (dtype != self.options.dtype)
        self.doubts.append(f"Spectra of {self.options.samples} samples of {self.options.dtype} correlate with their neighbours by {like:.2f}, those of"
                           f" {samples} samples of {dtype} by {likely:.2f}: is it {' '.join(changes)}?")


def tell(report, layouts):
    """layouts: of raw files. A warning has told of those that are others"""
    if not layouts or any(layout.doubts for layout in layouts):
        return
    found, name = [layout.likeness for layout in layouts], "layout of raw samples"
    if None in found:
        report.not_checked(name, "correlation", at_least=ALIKE, about="neighbouring spectra do not show an envelope of the source that repeats, so they"
                                                                      " do not tell whether --samples and --dtype are right")
    else:
        report.figure(name, min(found), "correlation", at_least=ALIKE, about="of neighbouring spectra, or of the strength of their fringes")
