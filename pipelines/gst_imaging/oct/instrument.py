# SPDX-License-Identifier: LGPL-2.1-or-later
"""What recordings of instruments tell beside their spectra: calibration, background and settings, used where no option tells them."""
import copy
import math
import os
import re

from .. import library
from ..command import UNREADABLE, Failure
from . import spectra

SAMPLING = ("calibration", "wavelength", "wavelengths", "chirp", "k_index")  # options that tell the wavenumbers


class Instrument:
    """options: with what the file tells; settings: property=value, likewise; used: what is used of it; doubts: sentences"""

    def __init__(self, options, settings):
        self.options, self.settings, self.used, self.doubts = copy.copy(options), list(settings), [], []
        self.knows_sampling = any(getattr(options, name) for name in SAMPLING)
        self.given = {text.partition("=")[0] for text in settings}

    def set(self, name, value, because):
        """A property that the user has not set"""
        if name not in self.given:
            self.settings.append(f"{name}={value}")
            self.used.append(f"{name}={value} ({because})")

    def knows_background(self):
        return bool(self.options.background) or "background" in self.given


def number_of(path, cards, key, default):
    """Returns: a finite number that a recording tells"""
    text = cards.get(key, default)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Failure(UNREADABLE, f"The settings of {path} have {key}={text}, which is no number. Correct them.")
    return value


# --- Thorlabs

def parts_of(path):
    """Returns: the numbers of the parts of a file, by name"""
    found = re.findall(r"(\d+): (.*?) [a-z0-9]+ \[[\d, ]*\]", library.Arrays().parts(path) or "")
    return {name: int(number) for number, name in found}


def values_of(path, part):
    np = library.numpy()
    return np.concatenate([values.reshape(-1, shape[-1]).copy() for shape, _start, values in library.Arrays(part).pages(path)])


def take_chirp(told, path, part, made, n_samples):
    np = library.numpy()
    chirp = values_of(path, part).ravel()
    steps = np.diff(chirp)
    if chirp.size != n_samples or not np.isfinite(chirp).all() or not ((steps > 0).all() or (steps < 0).all()):
        told.doubts.append(f"The chirp in {path} has {chirp.size} values for {n_samples} samples, or does not rise all the way: it is not used.")
        return
    told.options.chirp = made.path("chirp.txt")
    np.savetxt(told.options.chirp, chirp, fmt="%.9g")
    told.used.append("chirp")


def take_background(told, path, parts, cards, made, n_samples):
    np = library.numpy()
    if "apodization" in parts:
        light = values_of(path, parts["apodization"]).mean(0, dtype=float)
    elif "ApodizationSpectrum" in parts:  # in electrons
        light = values_of(path, parts["ApodizationSpectrum"]).mean(0, dtype=float)
        light /= number_of(path, cards, "Instrument/BinaryToElectronCountScaling", "1") or 1
    else:
        return
    if light.size != n_samples or not np.isfinite(light).all():
        told.doubts.append(f"The light of the reference arm in {path} has {light.size} values for {n_samples} samples, or values that are"
                           " no numbers: it is not used.")
        return
    told.options.background = made.path("background.npy")
    np.save(told.options.background, light[None])
    told.used.append("background")


def thorlabs(told, path, cards, made, shape):
    parts = parts_of(path)
    if "Chirp" in parts and not told.knows_sampling:
        take_chirp(told, path, parts["Chirp"], made, shape[-1])
        told.doubts.append(f"{path} does not tell its wavelengths: depths are in samples. --lambda gives them in micrometres, if the samples are"
                           " linear in wavelength.")
    if not told.knows_background():
        take_background(told, path, parts, cards, made, shape[-1])
    lines, bscans = shape[-2], shape[0] if len(shape) > 2 else 1
    for name, key, n in (("average-ascans", "IntensityAveraging/AScans", lines), ("average-bscans", "SpeckleAveraging/SlowAxis", bscans)):
        value = cards.get("Acquisition/" + key, "1")
        if value.isdecimal() and 1 < int(value) <= n and n % int(value) == 0 and not told.options.lines:
            told.set(name, value, key)
    binned = cards.get("Acquisition/IntensityAveraging/Spectra", "1")
    if binned != "1":
        told.doubts.append(f"{path} has {binned} spectra for each A-scan of Thorlabs' program; each is an A-scan here. average-ascans={binned}"
                           " averages them.")


# --- OCTproZ

def is_on(cards, name):
    return cards.get("processing/" + name) == "true"


def numbers(path, cards, name):
    """Returns: name0 to name3 of the processing; 0 without"""
    return [number_of(path, cards, f"processing/{name}{i}", "0") for i in range(4)]


def octproz(told, path, cards, made, shape):
    np = library.numpy()
    if is_on(cards, "resampling") and is_on(cards, "custom_resampling"):
        told.doubts.append(f"{path} was made with a resampling curve from a file, which is not beside it: give it with --k-index.")
    elif is_on(cards, "resampling") and not told.knows_sampling:
        x = np.linspace(0, 1, shape[-1])
        curve = np.polynomial.polynomial.polyval(x, numbers(path, cards, "resampling_c"))
        told.options.k_index = made.path("k-index.npy")
        np.save(told.options.k_index, np.clip(curve, 0, shape[-1] - 1))
        told.used.append("resampling_c0..c3")
    if is_on(cards, "dispersion_compensation") and not told.options.dispersion and not told.options.calibration:
        d0, d1, d2, d3 = numbers(path, cards, "dispersion_compensation_d")  # over 0 to 1; ours are over -1 to 1
        ours = d0 + d1 / 2 + d2 / 4 + d3 / 8, d1 / 2 + d2 / 2 + 3 * d3 / 8, d2 / 4 + 3 * d3 / 8, d3 / 8
        told.options.dispersion = ";".join(f"{d:.9g}" for d in ours)
        told.used.append("dispersion_compensation_d0..d3")
    if is_on(cards, "background_removal") and not told.knows_background():
        told.set("background", "rolling", "background_removal")
        told.set("background-reach", cards.get("processing/background_removal_window_size", "64"), "background_removal_window_size")
    if is_on(cards, "flip_bscans"):
        told.set("bidirectional", "true", "flip_bscans")
    if is_on(cards, "sinusoidal_scan_correction"):
        told.set("scan-correction", "sine", "sinusoidal_scan_correction")


# --- .unp

def unp(told, path, cards, _made, _shape):
    c2, c3 = cards.get("Dispersion_Parameters/C2", "0"), cards.get("Dispersion_Parameters/C3", "0")
    if (c2, c3) != ("0", "0") and not told.options.dispersion and not told.options.calibration:
        told.doubts.append(f"The settings of {path} have the dispersion C2={c2}, C3={c3} in units of their program, which are not used: give"
                           " --dispersion, or --estimate-dispersion.")
    if not told.knows_sampling:
        told.doubts.append(f"{path} does not tell its wavelengths: give --lambda FIRST LAST, or another option of the calibration.")


EXTENSIONS = {".oct": thorlabs, ".raw": octproz, ".unp": unp}


def cards_of(path, options):
    """Returns: what a recording of an instrument tells; {} for others"""
    is_one = os.path.splitext(path)[1].lower() in EXTENSIONS and not spectra.is_raw(path, options)
    return dict(library.Arrays().cards_of(path)) if is_one else {}


def read(path, cards, options, settings, made):
    """Returns: an Instrument. What the file tells goes into files of the result, so that calibration.ini can be used again"""
    told = Instrument(options, settings)
    _kind, shape = library.Arrays().kind(path)
    if cards and len(shape) > 1:
        EXTENSIONS[os.path.splitext(path)[1].lower()](told, path, cards, made, shape)
    return told
