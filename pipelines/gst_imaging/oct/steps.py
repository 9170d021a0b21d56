# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which end of a spectrometer has the shorter wavelengths: samples that are about even in wavelength have larger steps of wavenumber there. A map of
wavenumbers that is turned over leaves depths as sharp, and gives flow the wrong sign."""
import math

from .. import library
from . import calibration

NAME, UNIT = "direction of the wavelengths", "times"
NARROW = 0.03  # of the logarithm of the ratio that is expected, below which a grating and its lens bend as much
NEARER, FURTHEST = 0.5, 4  # of that logarithm: what is nearer to 0 is not told, and what is beyond is another instrument
EQUALLY_FAR = 2  # as FURTHEST, for the other order


class Steps:
    """Of wavenumbers c0 + c1 v + c2 v² + ..., v from -1 to 1 over the samples: how many times as large as at the last sample the steps at the first
    one are, in the nearest parabola; and those of samples that are even in wavelength, between the same ends"""

    def __init__(self, coefficients):
        polynomial = library.numpy().polynomial
        legendre = [*polynomial.legendre.poly2leg(coefficients), 0, 0]
        first, last = polynomial.polynomial.polyval([-1, 1], coefficients)
        ratio = (legendre[1] - 3 * legendre[2]) / (legendre[1] + 3 * legendre[2]) if legendre[1] + 3 * legendre[2] else 0
        self.found, self.expected = float(ratio), float(first / last) ** 2 if first * last > 0 else 1.0

    def verdict(self):
        """Returns: True for the given order, False for the other one, None where nothing tells"""
        if not self.found > 0 or abs(math.log(self.expected)) < NARROW:
            return None
        share = math.log(self.found) / math.log(self.expected)
        if NEARER <= share <= FURTHEST:
            return True
        return False if -EQUALLY_FAR <= share <= -NEARER else None


def of_file(path):
    """Returns: of each camera that has a curve of absolute wavenumbers, its name and Steps"""
    parser, found = calibration.parse(path), []
    for group in parser.sections():
        words = parser.get(group, "k-polynomial", fallback="").split(";")
        values = [float(text) for text in words] if all(map(calibration.is_number, words)) else []
        if len(values) > 2 and abs(values[0]) > abs(values[1]):
            found.append((group, Steps(values)))
    return found


def tell(made, path, why_not=""):
    """path: a calibration; why_not: what bends its curve besides the wavelengths, "" where nothing does"""
    cameras = of_file(path)
    for group, steps in cameras:
        name = NAME if len(cameras) == 1 else f"{NAME}, {group}"
        between = round(math.sqrt(steps.expected), 3)  # those of the given order and an even curve
        limit = {"at_least" if between > 1 else "at_most": between}
        about = ("steps of wavenumber at the first sample, of those at the last one; samples that are even in wavelength have"
                 f" {steps.expected:.3f}, and {1 / steps.expected:.3f} if they begin at the other end")
        verdict = None if why_not else steps.verdict()
        if verdict is None:
            made.report.not_checked(name, UNIT, about=f"{why_not or f'{steps.found:.3f} is near neither'}: {about}", **limit)
            continue
        made.report.figure(name, steps.found, UNIT, about=about, **limit)
        if not verdict:
            made.warn(f"The steps of wavenumber at the first sample are {steps.found:.3f} times those at the last one ({group}). Samples that are even in"
                      f" wavelength would have {steps.expected:.3f} between these wavelengths, and {1 / steps.expected:.3f} the other way round: were the"
                      " first and the last wavelength exchanged? Depths are as sharp either way, and flow has the wrong sign. Calibrate again with"
                      " --lambda LAST FIRST.")
