# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether raw samples have the width and the byte order that were given: the envelope of the source repeats from spectrum to spectrum."""
from .. import library
from ..frames.doubts import SMOOTHER, roughness

LENGTH = 1 << 20  # samples that are looked at
SHORTEST = 64  # samples of a spectrum
MOST_SPECTRA = 16  # in the given width, that are looked for
CANDIDATES = 24  # widths that are tried
ALIKE, MORE = 0.6, 0.3  # correlation of neighbours that another layout needs, and how much more that is than with the given one
SMOOTH = 32  # samples that are averaged
SLIPPED = 0.002  # of correlation, more than that between widths a sample off is no noise
MARGIN = 0.05  # less than that is no difference


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


def layouts(np, given, options):
    """Returns: (likeness, samples, dtype) of other layouts, those with one difference first"""
    found = [(*best_width(np, finite(np, given), options.samples), options.dtype)]
    if given.dtype.kind in "iu" and given.dtype.itemsize == 2:
        other = options.dtype.removesuffix("be") if options.dtype.endswith("be") else options.dtype + "be"
        turned = finite(np, given.byteswap())
        found = [(likeness(np, turned, options.samples), options.samples, other), *found, (*best_width(np, turned, options.samples), other)]
    return [layout for layout in found if layout[1:] != (options.samples, options.dtype)]


def of_one_order(np, given, found, options):
    """Returns: the layouts of the order in which samples are much smoother, where there is one: fringes that repeat make some width of
    the other one look right"""
    if len({dtype for _likely, _samples, dtype in found}) < 2:
        return found
    rough = [roughness(np, samples[None]) for samples in (given, given.byteswap())]
    if max(rough) < SMOOTHER * min(rough):
        return found
    return [layout for layout in found if (layout[2] == options.dtype) == (rough[0] < rough[1])]


def doubts(lines, options):
    """lines: [lines, samples] of the file. Returns: sentences"""
    np = library.numpy()
    given = np.array(lines[:max(4, LENGTH // options.samples)]).ravel()
    values = finite(np, given)
    if len(values) < 4 * SHORTEST or not values.std() > 0:
        return []
    like = likeness(np, values, options.samples)
    one = shortest(np, values, options.samples)
    near = nearest(np, values, one)
    if one < options.samples:
        return [f"{options.samples} samples of {options.dtype} hold the envelope of the source {options.samples // one} times: is it --samples {near}?"]
    if near != one:
        return [f"Spectra of {options.samples} samples of {options.dtype} slip against each other, those of {near} samples do not: is it --samples {near}?"]
    if like + MORE > 1:  # nothing can be as much better
        return []
    found = of_one_order(np, given, layouts(np, given, options), options)
    best = max((layout[0] for layout in found), default=0)
    if best <= max(ALIKE, like + MORE):
        return []
    likely, samples, dtype = next(layout for layout in found if layout[0] > best - MARGIN)
    changes = [f"--samples {samples}"] * (samples != options.samples) + [f"--dtype {dtype}"] * (dtype != options.dtype)
    return [f"Spectra of {options.samples} samples of {options.dtype} correlate with their neighbours by {like:.2f}, those of {samples} samples of"
            f" {dtype} by {likely:.2f}: is it {' '.join(changes)}?"]
