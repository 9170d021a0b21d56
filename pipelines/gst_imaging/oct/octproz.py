# SPDX-License-Identifier: LGPL-2.1-or-later
"""The settings of OCTproZ as settings of octbscan, after what its program computes (1.8.0, July 2025), which differs from its manual."""
import math
import re

from .. import library

FLAT_TOP = 0.215578948, -0.416631580, 0.277263158, -0.083578947, 0.006947368  # factors of cos (2 pi k x)
SEGMENTS = "9"  # of a fixed pattern
RANGE = {"range", "range-min", "range-max", "scaling"}  # properties that decide on black and white
LEAST, MOST = -200, 300  # dB of range-min and range-max
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


def curve_of(path):
    """Returns: its values; of text the last number of each line that ends with one"""
    np = library.numpy()
    if not path.lower().endswith((".csv", ".txt")):
        return library.Arrays().read(path).ravel().astype(float)
    with open(path, encoding="utf-8", errors="replace") as file:
        last = [re.split(r"[;\s]+", line.strip())[-1] for line in file]
    return np.array([float(text) for text in last if re.fullmatch(r"[-+.\deE]*\d[-+.\deE]*", text)])


def take_curve(told):
    """The user's: the recording does not have it. A saved one has equal values at its end"""
    if told.options.k_index:
        curve = curve_of(told.options.k_index)
        if curve.size == told.shape[-1]:
            told.options.k_index = told.save("k-index.npy", limited(curve))
    elif not told.knows_sampling:
        told.doubts.append(f"{told.path} was made with a resampling curve from a file, which is not beside it: give it with --k-index.")


def take_resampling(told):
    np = library.numpy()
    if is_on(told, "custom_resampling"):
        take_curve(told)
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


def window_of(told):
    """Returns: its window over the wavenumbers; all 1 without"""
    np, n = library.numpy(), told.shape[-1]
    if not is_on(told, "windowing"):
        return np.ones(n)
    kind = int(told.number("processing/window_type", "0"))
    fill, centre = (told.number(f"processing/window_{name}", usual) for name, usual in (("fill_factor", "0.95"), ("center_position", "0.5")))
    width, middle = (int(np.float32(part) * np.float32(n)) for part in (fill, min(max(centre, 0), 1)))
    i = np.arange(n)
    if kind == 1:
        return np.exp(-10 * ((i - middle) / ((n - 1) * max(fill, 1e-9))) ** 2)
    x = (i - (middle - width // 2)) / max(width - 1, 1e-9)
    cosines = [np.cos(2 * np.pi * k * x) for k in range(len(FLAT_TOP))]
    windows = {0: (1 - cosines[1]) / 2, 2: np.sin(np.pi * x), 3: np.sinc(2 * x - 1), 4: np.ones(n), 5: np.dot(FLAT_TOP, cosines)}
    return np.where((x < 0.0001) | (x > 0.999), 0, windows.get(kind, 0))  # its limits


def take_window(told, window):
    if is_on(told, "windowing") and "window" not in told.given:
        told.set("window", "file", "windowing")
        told.set("window-location", told.save("window.npy", window), "window_type, window_center_position, window_fill_factor")
        told.set("taper", "none", "windowing")


def take_pattern(told):
    """Our mean background would change the pattern of the first B-scan; the program subtracts none"""
    told.set("fixed-pattern", "minvar" if is_on(told, "fixed_pattern_removal_continuously") else "once", "fixed_pattern_removal")
    told.set("pattern-segments", SEGMENTS, "fixed_pattern_removal")
    if not is_on(told, "background_removal") and not told.knows_background():
        told.set("background", "none", "fixed_pattern_removal")


def take_range(told, weight):
    """weight: the sum of the window. Its level of Z, the plain sum of N samples, is 10 log10 (|Z|^2 / (N / 2)), ours 20 log10 (2 |Z| / weight).
    Returns: whether it has a black and a white that we can have"""
    names = (("min", "-30"), ("max", "100"), ("coeff", "1"), ("addend", "0"))
    low, high, coeff, addend = (told.number("processing/" + name, usual) for name, usual in names)
    if not coeff > 0:
        return False
    shift = 20 * math.log10(16) if is_on(told, "bitshift") else 0  # samples have 4 bits more here
    ours = 10 * math.log10(told.shape[-1] / 2) + 20 * math.log10(2 / weight) + shift
    black, white = (low + (part - addend) * (high - low) + ours for part in (0, 1 / coeff))
    if not LEAST <= black < white <= MOST:
        return False
    for name, value in ("range-min", black), ("range-max", white):
        told.set(name, f"{value:.6g}", "min, max, coeff, addend")
    return True


def take_scan(told):
    """The program mirrors B-scans 0, 2, ..., bidirectional 1, 3, ...: flip=lateral mirrors all again"""
    np, n = library.numpy(), told.options.lines or told.shape[-2]
    is_flipped = is_on(told, "flip_bscans") and "bidirectional" not in told.given
    if is_flipped:
        told.set("bidirectional", "true", "flip_bscans")
        told.set("flip", "lateral", "flip_bscans")
        buffer = told.number("system/depth", "2")
        if buffer % 2:
            told.doubts.append(f"flip_bscans of OCTproZ starts again with each buffer of {buffer:g} B-scans and leaves its last one as it is. Here every"
                               " second B-scan of the recording is mirrored.")
    if is_on(told, "sinusoidal_scan_correction") and not told.given & {"scan-correction", "scan-curve"}:
        curve = n / np.pi * np.arccos(1 - 2 * np.arange(n) / n)
        curve = (n - 1 - curve)[::-1] if is_flipped else curve
        told.set("scan-correction", "curve", "sinusoidal_scan_correction")
        told.set("scan-curve", told.save("scan-curve.npy", curve), "sinusoidal_scan_correction")


def take_look(told):
    """Window, black and white"""
    window = window_of(told)
    if not (window.sum() > 0):
        told.doubts.append(f"{told.path} has a window that lets nothing pass, or that is not known: it is not used, and neither are its black and white.")
        return
    take_window(told, window)
    left = ["the background of its post-processing, which another file has"] if is_on(told, "post_processing_background_removal") else []
    if is_on(told, "fixed_pattern_removal") and told.number("processing/fixed_pattern_removal_bscans", "1") > 1:
        left.append("a fixed pattern of several B-scans, where octbscan takes one")
    if not told.given & RANGE and "processing/min" in told.cards:
        if told.cards.get("processing/log") == "false":
            left.append("a linear scale from min to max")
        elif not take_range(told, window.sum()):
            left.append("min, max, coeff and addend")
    if left:
        told.doubts.append(f"{told.path} was shown with {', and '.join(left)}. That is left out here.")


def take(told):
    """told: an Instrument"""
    if is_on(told, "resampling"):
        take_resampling(told)
    if is_on(told, "dispersion_compensation") and not told.options.dispersion and not told.options.calibration:
        take_dispersion(told)
    if is_on(told, "background_removal") and not told.knows_background():
        told.set("background", "rolling", "background_removal")
        told.set("background-reach", told.cards.get("processing/background_removal_window_size", "64"), "background_removal_window_size")
    if is_on(told, "fixed_pattern_removal") and "fixed-pattern" not in told.given:
        take_pattern(told)
    take_scan(told)
    take_look(told)
