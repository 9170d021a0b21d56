# SPDX-License-Identifier: LGPL-2.1-or-later
"""The chirp, the scale, the background and the averages of a Thorlabs .oct."""
import re

from .. import library
from . import calibration

MAPS = ("calibration", "wavelengths", "chirp", "k_index")  # options in the place of its chirp
UM = 1e3  # in mm, and nm in it
MOST_INDEX = 5  # of refractive-index


def parts_of(path):
    """Returns: the numbers of the parts of a file, by name"""
    found = re.findall(r"(\d+): (.*?) [a-z0-9]+ \[[\d, ]*\]", library.Arrays().parts(path) or "")
    return {name: int(number) for number, name in found}


def values_of(path, part):
    np = library.numpy()
    return np.concatenate([values.reshape(-1, shape[-1]).copy() for shape, _start, values in library.Arrays(part).pages(path)])


def chirp_of(told, part):
    """Returns: a wavenumber in any unit for each sample; None of a damaged one"""
    np = library.numpy()
    chirp, n_samples = values_of(told.path, part).ravel().astype(float), told.shape[-1]
    steps = np.diff(chirp)
    if chirp.size != n_samples or not np.isfinite(chirp).all() or not ((steps > 0).all() or (steps < 0).all()):
        told.doubts.append(f"The chirp in {told.path} has {chirp.size} values for {n_samples} samples, or does not rise all the way: it is not used.")
        return None
    return chirp


def spacing_of(told, axis, ours, name):
    """ours: how many depths or lines there are. Returns: um from one to the next, in the medium; 0 where the header does not tell it, or tells it
    of images of another size, but for averages of lines"""
    step, theirs = (told.number(f"Image/{key}/Size{axis}", usual) for key, usual in (("PixelSpacing", "0"), ("SizePixel", str(ours))))
    if step > 0 and (theirs < 1 or ours % theirs or axis == "Z" and theirs != ours):
        told.doubts.append(f"{told.path} tells the distance of {name} in images with {theirs:g} of them, and there are {ours} here: it is not used.")
        return 0
    return max(step, 0) * UM * theirs / ours


def ends_of(told, rises, depth_um):
    """Returns: 1 / wavelength at the first and the last sample, of --lambda or else of the header; None if neither tells them"""
    if told.options.wavelength:
        ends = [float(text) if calibration.is_number(text) else 0 for text in told.options.wavelength]
        return [1 / end for end in ends] if min(ends) > 0 else None
    n, centre = told.shape[-1], told.number("Instrument/CentralWavelength", "0") / UM
    if not (depth_um and centre > 0):
        return None
    index = told.number("Acquisition/RefractiveIndex", "1")
    half = (n - 1) / n / (4 * index * depth_um) if index > 0 else 0
    return [1 / centre + sign * half for sign in ((-1, 1) if rises else (1, -1))] if 1 / centre > half > 0 else None


def take_chirp(told, chirp, depth_um):
    """With wavelengths at its ends the chirp has a scale"""
    np = library.numpy()
    ends = ends_of(told, chirp[-1] > chirp[0], depth_um)
    if ends:
        k = ends[0] + (chirp - chirp[0]) * ((ends[1] - ends[0]) / (chirp[-1] - chirp[0]))
        told.used.append("chirp with the wavelengths of " + ("--lambda" if told.options.wavelength else "PixelSpacing and CentralWavelength"))
        told.options.wavelength, told.options.wavelengths = None, told.save("wavelengths.npy", (1 if told.options.wavelength else UM) / k)
    elif not told.options.wavelength:  # octbscan says what is wrong with that
        told.options.chirp = told.made.path("chirp.txt")
        np.savetxt(told.options.chirp, chirp, fmt="%.9g")
        told.used.append("chirp")
        told.doubts.append(f"{told.path} does not tell its wavelengths: depths are in samples. --lambda FIRST LAST gives micrometres and keeps the"
                           " chirp.")


def take_sampling(told, part):
    depth_um = spacing_of(told, "Z", told.shape[-1] // 2, "depths")
    line_um = spacing_of(told, "X", told.shape[-2], "columns")
    index = told.number("Acquisition/RefractiveIndex", "1")
    if 1 < index <= MOST_INDEX:
        told.set("refractive-index", f"{index:.6g}", "RefractiveIndex")
    if line_um:
        told.set("lateral-step-um", f"{line_um:.6g}", "PixelSpacing")
    if part is None:
        return
    if not any(getattr(told.options, name) for name in MAPS):
        chirp = chirp_of(told, part)
        if chirp is not None:
            take_chirp(told, chirp, depth_um)
    elif told.options.calibration and calibration.has_ends_alone(told.options.calibration):
        told.doubts.append(f"{told.options.calibration} has the wavelengths of the first and the last sample alone: the chirp of {told.path} is not used."
                           " --lambda FIRST LAST instead keeps it.")


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


def take(told):
    """told: an Instrument"""
    parts = parts_of(told.path)
    take_sampling(told, parts.get("Chirp"))
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
