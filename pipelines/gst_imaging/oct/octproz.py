# SPDX-License-Identifier: LGPL-2.1-or-later
"""The settings of OCTproZ as settings of octbscan, after what its program computes (1.8.0, July 2025), which differs from its manual."""
from .. import library

RISE = 1e-9  # samples from one limited value of a curve to the next: octbscan takes curves that rise or fall all the way


def is_on(told, name):
    return told.cards.get("processing/" + name) == "true"


def numbers(told, name):
    """Returns: name0 to name3 of the processing; 0 without"""
    return [told.number(f"processing/{name}{i}", "0") for i in range(4)]


def limited(curve):
    """Returns: a curve as OCTproZ limits it, so that its interpolation stays within the spectrum"""
    np = library.numpy()
    rising = RISE * np.arange(len(curve))
    return np.clip(curve, 0, len(curve) - 3) + (rising if curve[-1] > curve[0] else -rising)


def take_resampling(told):
    np = library.numpy()
    if is_on(told, "custom_resampling"):
        told.doubts.append(f"{told.path} was made with a resampling curve from a file, which is not beside it: give it with --k-index.")
    elif not told.knows_sampling:
        curve = np.polynomial.polynomial.polyval(np.linspace(0, 1, told.shape[-1]), numbers(told, "resampling_c"))
        told.options.k_index = told.save("k-index.npy", limited(curve))
        told.used.append("resampling_c0..c3")


def take_dispersion(told):
    """Its polynomial is over 0 to 1, and ours over -1 to 1. It multiplies by exp(+i theta) before an inverse FFT: in octbscan, whose FFT goes
    forward, that is the phase -theta"""
    d0, d1, d2, d3 = (-d for d in numbers(told, "dispersion_compensation_d"))
    ours = d0 + d1 / 2 + d2 / 4 + d3 / 8, d1 / 2 + d2 / 2 + 3 * d3 / 8, d2 / 4 + 3 * d3 / 8, d3 / 8
    told.options.dispersion = ";".join(f"{d:.9g}" for d in ours)
    told.used.append("dispersion_compensation_d0..d3")


def take(told):
    """told: an Instrument"""
    if is_on(told, "resampling"):
        take_resampling(told)
    if is_on(told, "dispersion_compensation") and not told.options.dispersion and not told.options.calibration:
        take_dispersion(told)
    if is_on(told, "background_removal") and not told.knows_background():
        told.set("background", "rolling", "background_removal")
        told.set("background-reach", told.cards.get("processing/background_removal_window_size", "64"), "background_removal_window_size")
    if is_on(told, "flip_bscans"):
        told.set("bidirectional", "true", "flip_bscans")
    if is_on(told, "sinusoidal_scan_correction"):
        told.set("scan-correction", "sine", "sinusoidal_scan_correction")
