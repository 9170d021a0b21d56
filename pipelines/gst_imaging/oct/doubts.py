# SPDX-License-Identifier: LGPL-2.1-or-later
"""Spectra that are probably not what they are taken for. Of the first B-scan alone, but for the lines of zeros."""
from .. import library
from ..frames.doubts import doubt_order

FEWEST = 32  # lines and samples, below which nothing is said
UNEVEN, TIMES = 0.2, 5  # of the means: transposed where lines differ by this share, and this much more than samples do
OTHER_LEFT = 4  # times the power that is left without the factor of the light
NEAR_ZERO = 32  # of the depths of a spectrum, in which light without a sample is
FEWER = 10  # times, jumps of samples of the other sign


def spread(means):
    """Returns: how much means differ, relative to their mean"""
    return means.std() / means.mean() if means.mean() > 0 else 0


def is_transposed(bscan):
    """The envelope of the source runs along the samples of a spectrum and is the same in all lines."""
    if min(bscan.shape) < FEWEST or not library.numpy().isfinite(bscan).all():
        return False
    lines, samples = spread(bscan.mean(1)), spread(bscan.mean(0))
    return lines > UNEVEN and lines > TIMES * samples


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
        lines, dark = bscan[camera::n_cameras], background[camera % len(background)]
        if not is_left_brighter(np, lines, dark):
            continue
        light, dark = lines.mean(0) - lines.mean(), dark - dark.mean()
        factor = (light * dark).sum() / max((dark * dark).sum(), 1e-30)
        left, least = (((light - times * dark) ** 2).sum() for times in (1, factor))
        what = f"The spectra of camera {camera} have {factor:.3g} times the light of {name}, and what it leaves"
        if left < OTHER_LEFT * least:
            what = f"The light of camera {camera} has another form than {name}, and what that leaves"
        yield f"{what} is brighter than the sample: was it recorded with another exposure or lamp? Record it again, or use background=rolling."
        return


def is_left_brighter(np, lines, dark):
    """Has the light that is left, near zero delay, more power than all depths of the sample?"""
    n = lines.shape[1]
    left = np.abs(np.fft.rfft(lines.mean(0) - dark)[1:n // NEAR_ZERO]) ** 2
    return left.sum() > (np.abs(np.fft.rfft(lines - dark)[:, n // NEAR_ZERO:]) ** 2).mean(0).sum()


class Doubts:
    def __init__(self, n_lines=None, dtype=None):
        """n_lines: of a B-scan, where the values do not say; dtype: of raw samples, as --dtype names it"""
        self.n_lines, self.dtype, self.n, self.n_dark = n_lines, dtype, 0, 0
        self.bscan, self.type, self.turned = None, None, None

    def add(self, values):
        """values: [..., lines, samples]"""
        np = library.numpy()
        lines = values.reshape(-1, values.shape[-1])
        self.n, self.n_dark = self.n + len(lines), self.n_dark + int((~lines.any(1)).sum())
        if self.bscan is None and values.ndim > 1:
            first = values.reshape(-1, *values.shape[-2:])[0][:self.n_lines]
            self.bscan, self.type = np.array(first, float), other_sign(np, first)
            self.turned = doubt_order(np, first) if first.dtype.kind in "iu" else None

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
        elif not self.dtype and self.turned:
            yield self.turned
        if is_transposed(self.bscan):
            yield (f"The light varies from line to line, and not along the {self.bscan.shape[1]} samples of a spectrum, as a light source does:"
                   " are lines and samples exchanged? NumPy turns them: numpy.save(\"turned.npy\", spectra.swapaxes(-1, -2)).")
