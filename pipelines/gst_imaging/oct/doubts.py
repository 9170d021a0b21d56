# SPDX-License-Identifier: LGPL-2.1-or-later
"""Spectra that are probably not what they are taken for. Of the first B-scan alone, but for the lines of zeros."""
from .. import library

FEWEST = 32  # lines and samples, below which nothing is said
UNEVEN, TIMES = 0.2, 5  # of the means: transposed where lines differ by this share, and this much more than samples do
SHARPER = 2  # times
ALMOST, SHARPER_WHATEVER = 1.3, 1.1  # the same together with the best dispersion of each way
OTHER_LIGHT, OTHER_LEFT = 0.2, 4  # of the light of the background, and times the power that is left without that factor
USUAL = 98  # per cent of the samples
EVEN_SHARPER, AS_SHARP = 1.4, 1.1  # times, samples that are even in wavenumber, and the two ways of others
DISPERSIONS = range(-60, 61, 2)  # radians
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


def sharpness(np, spectra, wavelengths=None, dispersions=(0.0,)):
    """Returns: how much of the power is in few depths, for an even sampling of wavelength, or of wavenumber without them; the largest of
    some dispersions, in radians at the ends"""
    n = spectra.shape[1]
    if wavelengths is not None:
        k = 1 / wavelengths
        order = np.argsort(k)
        even = np.linspace(k.min(), k.max(), n)
        spectra = np.stack([np.interp(even, k[order], line[order]) for line in spectra])
    depths = np.fft.fft(spectra * np.hanning(n))
    depths[:, :n // 64] = depths[:, n // 2:] = 0  # the light itself, and depths beyond zero delay
    fringes, squares, found = np.fft.ifft(depths), np.linspace(-1, 1, n) ** 2, []
    for dispersion in dispersions:
        power = np.abs(np.fft.fft(fringes * np.exp(1j * dispersion * squares))) ** 2
        found.append(float(np.median((power ** 2).sum(1) / np.maximum(power.sum(1), 1e-30) ** 2)))
    return max(found)


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


def of_background(np, name, background, bscan, n_cameras):
    """Generates sentences of a spectrum without the sample, [samples] or [cameras, samples], that leaves more light than it takes off"""
    background = np.atleast_2d(np.asarray(background, float))
    if background.shape[-1] != bscan.shape[-1] or not np.isfinite(background).all():
        return  # octbscan tells
    if not background.any():
        yield f"{name} holds zeros alone: nothing is subtracted from the spectra. background=none says so, and background=mean subtracts their mean."
        return
    for camera in range(min(n_cameras, len(bscan))):
        light, dark = bscan[camera::n_cameras].mean(0), background[camera % len(background)]
        light, dark = light - light.mean(), dark - dark.mean()
        factor = (light * dark).sum() / max((dark * dark).sum(), 1e-30)
        left, least = (float(((light - times * dark) ** 2).sum()) for times in (1, factor))
        if abs(factor - 1) > OTHER_LIGHT and left > OTHER_LEFT * least:
            yield (f"The spectra of camera {camera} have {factor:.3g} times the light of {name}, and what it leaves is brighter than the sample: was it"
                   " recorded with another exposure or lamp? Record it again, or use background=rolling.")
            return


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
        fringes = (lines if is_at_rest else moving)[:FEWEST]
        limit = np.percentile(np.abs(fringes), USUAL)  # the line of a fibre grating, whose place varies, has power at all depths
        return fringes.clip(-limit, limit)

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
            yield from self.sentences_of_wavelengths(np)

    @staticmethod
    def is_clocked(np, spectra, given, reverse, even):
        """reverse, even: times as sharp. Samples that are even in wavenumber are bent by as much either way, and dispersion neither makes
        them sharper nor wavelengths as sharp."""
        if even < EVEN_SHARPER or not 1 / AS_SHARP < reverse < AS_SHARP:
            return False
        best = sharpness(np, spectra, None, DISPERSIONS)
        bent = max(sharpness(np, spectra, way, DISPERSIONS) for way in (given, given[::-1]))
        return bent < best < AS_SHARP * sharpness(np, spectra)

    def sentences_of_wavelengths(self, np):
        first, last = self.wavelengths
        spectra = self.fringes(np)
        given = np.linspace(first, last, spectra.shape[1])
        usual = max(sharpness(np, spectra, given), 1e-30)
        reverse, even = sharpness(np, spectra, given[::-1]) / usual, sharpness(np, spectra) / usual
        if self.is_clocked(np, spectra, given, reverse, even):
            ends = 1 / first, 1 / last
            yield (f"Depths would be {even:.3g} times as sharp with samples that are even in wavenumber, as those of a swept source with a k-clock, and"
                   " not in wavelength, which --lambda means. Then give, in a file for --calibration, a line [camera] and a line"
                   f" k-polynomial={sum(ends) / 2:.9g};{(ends[1] - ends[0]) / 2:.9g}.")
        elif reverse > ALMOST:
            # an unknown dispersion is blur of its own, and may make up for some of the other
            whatever = sharpness(np, spectra, given[::-1], DISPERSIONS) / max(sharpness(np, spectra, given, DISPERSIONS), 1e-30)
            if whatever > (1 if reverse > SHARPER else SHARPER_WHATEVER):
                yield (f"Depths would be {reverse:.3g} times as sharp with the wavelengths the other way round:"
                       f" --lambda {last:g} {first:g}.")
