# SPDX-License-Identifier: LGPL-2.1-or-later
"""What recordings of instruments tell beside their spectra: calibration, background and settings, used where no option tells them."""
import copy
import math
import os
import re

from .. import library
from ..command import UNREADABLE, Failure
from . import octproz, spectra

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


# --- Thorlabs

def parts_of(path):
    """Returns: the numbers of the parts of a file, by name"""
    found = re.findall(r"(\d+): (.*?) [a-z0-9]+ \[[\d, ]*\]", library.Arrays().parts(path) or "")
    return {name: int(number) for number, name in found}


def values_of(path, part):
    np = library.numpy()
    return np.concatenate([values.reshape(-1, shape[-1]).copy() for shape, _start, values in library.Arrays(part).pages(path)])


def take_chirp(told, part):
    np = library.numpy()
    chirp, n_samples = values_of(told.path, part).ravel(), told.shape[-1]
    steps = np.diff(chirp)
    if chirp.size != n_samples or not np.isfinite(chirp).all() or not ((steps > 0).all() or (steps < 0).all()):
        told.doubts.append(f"The chirp in {told.path} has {chirp.size} values for {n_samples} samples, or does not rise all the way: it is not used.")
        return
    told.options.chirp = told.made.path("chirp.txt")
    np.savetxt(told.options.chirp, chirp, fmt="%.9g")
    told.used.append("chirp")


def take_background(told, parts):
    np = library.numpy()
    if "apodization" in parts:
        light = values_of(told.path, parts["apodization"]).mean(0, dtype=float)
    elif "ApodizationSpectrum" in parts:  # in electrons
        light = values_of(told.path, parts["ApodizationSpectrum"]).mean(0, dtype=float)
        light /= told.number("Instrument/BinaryToElectronCountScaling", "1") or 1
    else:
        return
    if light.size != told.shape[-1] or not np.isfinite(light).all():
        told.doubts.append(f"The light of the reference arm in {told.path} has {light.size} values for {told.shape[-1]} samples, or values that are"
                           " no numbers: it is not used.")
        return
    told.options.background = told.save("background.npy", light[None])
    told.used.append("background")


def thorlabs(told):
    parts = parts_of(told.path)
    if "Chirp" in parts and not told.knows_sampling:
        take_chirp(told, parts["Chirp"])
        told.doubts.append(f"{told.path} does not tell its wavelengths: depths are in samples. --lambda gives them in micrometres, if the samples are"
                           " linear in wavelength.")
    if not told.knows_background():
        take_background(told, parts)
    lines, bscans = told.shape[-2], told.shape[0] if len(told.shape) > 2 else 1
    for name, key, n in (("average-ascans", "IntensityAveraging/AScans", lines), ("average-bscans", "SpeckleAveraging/SlowAxis", bscans)):
        value = told.cards.get("Acquisition/" + key, "1")
        if value.isdecimal() and 1 < int(value) <= n and n % int(value) == 0 and not told.options.lines:
            told.set(name, value, key)
    binned = told.cards.get("Acquisition/IntensityAveraging/Spectra", "1")
    if binned != "1":
        told.doubts.append(f"{told.path} has {binned} spectra for each A-scan of Thorlabs' program; each is an A-scan here. average-ascans={binned}"
                           " averages them.")


# --- .unp

def unp(told):
    c2, c3 = (told.cards.get("Dispersion_Parameters/" + name, "0") for name in ("C2", "C3"))
    if (c2, c3) != ("0", "0") and not told.options.dispersion and not told.options.calibration:
        told.doubts.append(f"The settings of {told.path} have the dispersion C2={c2}, C3={c3} in units of their program, which are not used: give"
                           " --dispersion, or --estimate-dispersion.")
    if not told.knows_sampling:
        told.doubts.append(f"{told.path} does not tell its wavelengths: give --lambda FIRST LAST, or another option of the calibration.")


EXTENSIONS = {".oct": thorlabs, ".raw": octproz.take, ".unp": unp}


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
