# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether spectra fit their calibration in this order of samples: octbscan transforms some lines as they are and with the samples the other
way round, and the right order has the sharper depths."""
import os

from .. import library
from ..frames.source import scratch
from . import calibration, steps
from .doubts import is_transposed
from .turns import n_rows_of

FEWEST, MOST = 16, 32  # lines of a camera that are looked at
SHARPER = 2  # times
ALMOST, SHARPER_WHATEVER = 1.3, 1.1  # the same together with the best dispersion of each order
EVEN_SHARPER, AS_SHARP = 1.4, 1.1  # times, samples that are even in wavenumber, and the two orders of others
USUAL = 98  # per cent of the samples
DISPERSIONS = range(-60, 61, 2)  # radians
LEAST = 1e-30  # of depths without light, which are as sharp either way
AT_REST = 0.1  # share of the fringes that differ from line to line
SAME = 0.999  # correlation of the depths of both orders, of which none is wrong
OF_LINES = ("cameras", "first-camera", "camera-order", "k-polynomial", "dispersion-2", "dispersion-3")  # properties that count here
NAME = "order of the samples"


def fringes(np, lines):
    """lines: of one camera. Returns: without what all have in common; of a sample at rest, as a mirror, that are the fringes themselves"""
    own = lines - lines.mean(1, keepdims=True)
    moving = lines - lines.mean(0)
    is_at_rest = (np.diff(moving) ** 2).sum() < AT_REST * (np.diff(own) ** 2).sum()
    found = own if is_at_rest else moving
    limit = np.percentile(np.abs(found), USUAL)  # the line of a fibre grating, whose place varies, has power at all depths
    return found.clip(-limit, limit)


def sharpness(np, depths, dispersions=(0.0,)):
    """depths: complex [lines, samples / 2], of one side of zero delay. Returns: how much of the power is in few depths; the largest of some
    dispersions, in radians at the ends"""
    n = 2 * depths.shape[1]
    depths = np.pad(depths, ((0, 0), (0, n - depths.shape[1])))
    depths[:, :n // 64] = 0  # the light itself
    over_k, squares, found = np.fft.ifft(depths), np.linspace(-1, 1, n) ** 2, []
    for dispersion in dispersions:
        power = np.abs(np.fft.fft(over_k * np.exp(1j * dispersion * squares))) ** 2
        found.append(float(np.median((power ** 2).sum(1) / np.maximum(power.sum(1), 1e-30) ** 2)))
    return max([LEAST, *found])


def transformed(made, bscans, options, settings):
    """Returns: the complex depths [B-scans, lines, samples / 2] that octbscan makes with the calibration"""
    np = library.numpy()
    with scratch() as folder:
        path, out = os.path.join(folder, "lines.npy"), os.path.join(folder, "complex.npy")
        np.save(path, np.ascontiguousarray(bscans, "f4"))
        written = calibration.write(options, os.path.join(folder, "calibration.ini"))
        words = ["picturesrc", "location=" + path, "axes=nyx", "!", "octbscan", "name=o", "background=none", "window=hann", "backend=cpu",
                 *(text for text in settings if text.partition("=")[0] in OF_LINES), *(["calibration=" + written] if written else []),
                 "o.complex", "!", "other/tensors", "!", "queue", "!", "picturesink", "location=" + out, "o.src", "!", "queue", "!", "fakesink"]
        kept = list(made.report.settings), list(made.report.facts)
        made.play(words, warn=lambda _sentence: None)
        made.report.settings[:], made.report.facts[:] = kept  # those of the result
        found = np.load(out)
        return found.view("c8").reshape(len(bscans), bscans.shape[1], -1).astype(complex)


class Camera:
    """How sharp the depths of one camera are: given, turned: complex [lines, samples / 2]"""

    def __init__(self, np, given, turned):
        self.np, self.given, self.turned = np, given, turned
        self.times = sharpness(np, turned) / sharpness(np, given)
        self.whatever = sharpness(np, turned, DISPERSIONS) / sharpness(np, given, DISPERSIONS)

    def is_alike(self):
        """Does the order make no difference, as of samples that are even in wavenumber?"""
        a, b = (self.np.abs(depths[:, depths.shape[1] // 32:]).ravel() for depths in (self.given, self.turned))
        return (a * b).sum() > SAME * self.np.sqrt((a * a).sum() * (b * b).sum())

    def verdict(self):
        """Returns: True for the given order, False for the other one, None where nothing is sharp enough to tell. An unknown dispersion is
        blur of its own, and may make up for some of the other"""
        for answer, times, whatever in (True, 1 / self.times, 1 / self.whatever), (False, self.times, self.whatever):
            if times > ALMOST and whatever > (1 if times > SHARPER else SHARPER_WHATEVER):
                return answer
        return None

    def is_clocked(self, lines):
        """Are samples even in wavenumber, though wavelengths are given? They are bent by as much either way, and dispersion neither makes
        them sharper nor wavelengths as sharp."""
        np, n = self.np, lines.shape[1]
        even = np.fft.fft(lines * np.hanning(n))[:, :n // 2]
        usual = sharpness(np, even)
        self.even = usual / sharpness(np, self.given)
        if self.even < EVEN_SHARPER or not 1 / AS_SHARP < self.times < AS_SHARP:
            return False
        best = sharpness(np, even, DISPERSIONS)
        bent = max(sharpness(np, depths, DISPERSIONS) for depths in (self.given, self.turned))
        return bent < best < AS_SHARP * usual


def sentence_of_clock(even, options):
    ends = [1 / float(text) for text in options.wavelength]
    return (f"Depths would be {even:.3g} times as sharp with samples that are even in wavenumber, as those of a swept source with a k-clock, and"
            " not in wavelength, which --lambda means. Then give, in a file for --calibration, a line [camera] and a line"
            f" k-polynomial={sum(ends) / 2:.9g};{(ends[1] - ends[0]) / 2:.9g}.")


def sentence_of_order(times, of_camera, options):
    if options.wavelength:
        first, last = options.wavelength
        return f"Depths{of_camera} would be {times:.3g} times as sharp with the wavelengths the other way round: --lambda {last} {first}."
    return (f"Depths{of_camera} would be {times:.3g} times as sharp with the samples the other way round: the calibration is of spectra that begin"
            " at the other end. NumPy turns them: numpy.save(\"turned.npy\", spectra[..., ::-1]).")


def check(made, first, options, settings):
    """first: the B-scan [lines, samples] of the input. Warns, and tells in the report what it cannot judge"""
    np, n = library.numpy(), n_rows_of(options)
    name = steps.NAME if calibration.is_of_wavelengths(options) else NAME
    lines = first[:len(first) // n * n].copy()
    if len(lines) < FEWEST * n or lines.shape[1] < MOST or not np.isfinite(lines).all() or is_transposed(first):
        return tell(made, [], name)
    for row in range(n):
        lines[row::n] = fringes(np, lines[row::n])
    lines = lines[:MOST * n]
    depths = transformed(made, np.stack([lines, lines[:, ::-1]]), options, settings)
    cameras = [Camera(np, *depths[:, row::n]) for row in range(n)]
    if options.wavelength and n == 1 and cameras[0].is_clocked(lines):
        made.warn(sentence_of_clock(cameras[0].even, options))
    for row, camera in enumerate(cameras):
        if camera.verdict() is False:
            made.warn(sentence_of_order(camera.times, f" of lines {row}, {row + n}, ..." if n > 1 else "", options))
    return tell(made, cameras, name)


def tell(made, cameras, name):
    """cameras: none, where there was nothing to look at"""
    if cameras and all(camera.is_alike() for camera in cameras):
        return
    unit, verdicts = "times as sharp as the other way round", [camera.verdict() for camera in cameras] or [None]
    if False in verdicts or None not in verdicts:
        made.report.figure(name, 1 / max(camera.times for camera in cameras), unit, at_least=1, about="depths of the first B-scan, with the calibration")
    else:
        why = "the depths of the first B-scan are not sharp enough" if cameras else f"the first B-scan has less than {FEWEST} lines of a camera, samples that are no finite numbers, or no spectra,"
        made.report.not_checked(name, unit, at_least=1, about=f"{why} to tell whether the calibration begins at the first sample or the last one; those of"
                                                              f" {FEWEST} lines of a mirror or a sharp layer do")
