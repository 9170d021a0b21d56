# SPDX-License-Identifier: LGPL-2.1-or-later
"""Spectra that are probably not what they are taken for. Of the first B-scan alone, but for the lines of zeros."""
from .. import library

FEWEST = 32  # lines and samples, below which nothing is said
UNEVEN, TIMES = 0.2, 5  # of the means: transposed where lines differ by this share, and this much more than samples do
SHARPER = 2
FEWER = 10  # times, jumps of samples of the other sign
AT_REST = 0.1  # share of the fringes that differ from line to line


def spread(means):
    """Returns: how much means differ, relative to their mean"""
    return means.std() / means.mean() if means.mean() > 0 else 0


def is_transposed(bscan):
    """The envelope of the source runs along the samples of a spectrum and is the same in all lines."""
    if min(bscan.shape) < FEWEST:
        return False
    lines, samples = spread(bscan.mean(1)), spread(bscan.mean(0))
    return lines > UNEVEN and lines > TIMES * samples


def sharpness(np, spectra, wavelengths):
    """Returns: how much of the power is in few depths, for an even sampling of wavelength"""
    k = 1 / wavelengths
    order = np.argsort(k)
    even = np.linspace(k.min(), k.max(), k.size)
    fringes = np.stack([np.interp(even, k[order], line[order]) for line in spectra]) * np.hanning(k.size)
    power = np.abs(np.fft.rfft(fringes)[:, k.size // 64:]) ** 2
    return float(np.median((power ** 2).sum(1) / np.maximum(power.sum(1), 1e-30) ** 2))


def other_sign(np, bscan):
    """Returns: the type of 16 bits, with a sign or without, in which neighbours do not jump by half of all values; None where there is
    none. A signal around 0 that is read without a sign jumps from 0 to 65535."""
    kind = bscan.dtype.newbyteorder("=")
    if kind not in (np.uint16, np.int16):
        return None
    given = bscan.astype(kind)
    other = given.view(np.int16 if kind == np.uint16 else np.uint16)
    bright = given.view(np.uint16) == 65535  # a hot pixel is no jump, though it is -1 with a sign
    jumps, others = ((np.abs(np.diff(values.astype(float), axis=1)) > 32768) & ~bright[:, 1:] & ~bright[:, :-1] for values in (given, other))
    return other.dtype if jumps.sum() > max(len(bscan), FEWER * others.sum()) else None


class Doubts:
    def __init__(self, wavelengths=None, n_lines=None, dtype=None):
        """wavelengths: of the first and the last sample, where they are known; n_lines: of a B-scan, where the values do not say;
        dtype: of raw samples, as --dtype names it"""
        self.wavelengths, self.n_lines, self.dtype, self.n, self.n_dark = wavelengths, n_lines, dtype, 0, 0
        self.bscan, self.type = None, None

    def add(self, values):
        """values: [..., lines, samples]"""
        np = library.numpy()
        lines = values.reshape(-1, values.shape[-1])
        self.n, self.n_dark = self.n + len(lines), self.n_dark + int((~lines.any(1)).sum())
        if self.bscan is None and values.ndim > 1:
            first = values.reshape(-1, *values.shape[-2:])[0][:self.n_lines]
            self.bscan, self.type = np.array(first, float), other_sign(np, first)

    def fringes(self, np):
        """Returns: lines without what all have in common; of a sample at rest, as a mirror, that are the fringes themselves"""
        lines = self.bscan - self.bscan.mean(1, keepdims=True)
        moving = self.bscan - self.bscan.mean(0)
        is_at_rest = (np.diff(moving) ** 2).sum() < AT_REST * (np.diff(lines) ** 2).sum()
        return (lines if is_at_rest else moving)[:FEWEST]

    def sentence_of_sign(self):
        is_signed = self.type.kind == "i"
        if self.dtype:
            remedy = f"is it --dtype {self.dtype.replace('u', 'i') if is_signed else self.dtype.replace('i', 'u')}?"
        else:
            remedy = f'are they {self.type}? NumPy reads them so: numpy.save("again.npy", spectra.view("{self.type}")).'
        return ("Neighbouring samples jump by more than half of the values of 16 bits, and do not"
                f" {'with' if is_signed else 'without'} a sign: {remedy}")

    def sentences(self):
        """Generates what should be looked at, a sentence each."""
        np = library.numpy()
        if self.n_dark:
            yield f"{self.n_dark} of {self.n} spectra hold zeros alone: did the camera lose them?"
        if self.bscan is None:
            return
        if self.type:
            yield self.sentence_of_sign()
        if is_transposed(self.bscan):
            yield (f"The light varies from line to line, and not along the {self.bscan.shape[1]} samples of a spectrum, as a light source does:"
                   " are lines and samples exchanged? NumPy turns them: numpy.save(\"turned.npy\", spectra.swapaxes(-1, -2)).")
        elif self.wavelengths and min(self.bscan.shape) >= FEWEST:
            spectra = self.fringes(np)
            given = np.linspace(*self.wavelengths, spectra.shape[1])
            times = sharpness(np, spectra, given[::-1]) / max(sharpness(np, spectra, given), 1e-30)
            if times > SHARPER:
                yield (f"Depths would be {times:.3g} times as sharp with the wavelengths the other way round:"
                       f" --lambda {self.wavelengths[1]:g} {self.wavelengths[0]:g}.")
