# SPDX-License-Identifier: LGPL-2.1-or-later
"""What recordings of instruments tell beside their spectra: calibration, background and settings, used where no option tells them."""
import copy
import math
import os

from .. import library
from ..command import UNREADABLE, Failure
from . import octproz, spectra, thorlabs

SAMPLING = ("calibration", "wavelength", "wavelengths", "chirp", "k_index")  # options that tell the wavenumbers


class Instrument:
    """path, cards: of the recording; shape: of its spectra; options: with what the file tells; settings: property=value, likewise; used: what
    is used of it; doubts: sentences"""

    def __init__(self, path, cards, shape, options, settings, made):
        self.path, self.cards, self.shape, self.made = path, cards, shape, made
        self.options, self.settings, self.used, self.doubts = copy.copy(options), list(settings), [], []
        self.knows_sampling = any(getattr(options, name) for name in SAMPLING)
        self.given = {text.partition("=")[0] for text in settings}

    def set(self, name, value, because):
        """A property that the user has not set"""
        if name not in self.given:
            self.settings.append(f"{name}={value}")
            self.used.append(f"{name}={os.path.basename(value)} ({because})")  # files are in the output

    def knows_background(self):
        return bool(self.options.background) or "background" in self.given

    def number(self, key, default):
        """Returns: a finite number that the recording tells"""
        text = self.cards.get(key, default)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise Failure(UNREADABLE, f"The settings of {self.path} have {key}={text}, which is no number. Correct them.")
        return value

    def save(self, name, values):
        """Returns: the path of an array in the output"""
        path = self.made.path(name)
        library.numpy().save(path, values)
        return path


def unp(told):
    c2, c3 = (told.cards.get("Dispersion_Parameters/" + name, "0") for name in ("C2", "C3"))
    if (c2, c3) != ("0", "0") and not told.options.dispersion and not told.options.calibration:
        told.doubts.append(f"The settings of {told.path} have the dispersion C2={c2}, C3={c3} in units of their program, which are not used: give"
                           " --dispersion, or --estimate-dispersion.")
    if not told.knows_sampling:
        told.doubts.append(f"{told.path} does not tell its wavelengths: give --lambda FIRST LAST, or another option of the calibration.")


EXTENSIONS = {".oct": thorlabs.take, ".raw": octproz.take, ".unp": unp}


def cards_of(path, options):
    """Returns: what a recording of an instrument tells; {} for others"""
    is_one = os.path.splitext(path)[1].lower() in EXTENSIONS and not spectra.is_raw(path, options)
    return dict(library.Arrays().cards_of(path)) if is_one else {}


def read(path, cards, options, settings, made):
    """Returns: an Instrument. What the file tells goes into files of the result, so that calibration.ini can be used again"""
    _kind, shape = library.Arrays().kind(path)
    told = Instrument(path, cards, shape, options, settings, made)
    if cards and len(shape) > 1:
        EXTENSIONS[os.path.splitext(path)[1].lower()](told)
    return told
