#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes raw spectra of a layered retina, as cameras that take turns give them.

retina.py SPECTRA.npy OWN.ini [COMMON.ini] writes [bscans, lines, samples] of
u16 (12 bits), the calibration of each camera, and one that takes camera 0's for
all. The cameras differ in gain, in the pedestal, in how wavelength goes with
the pixels, and in dispersion; they cover the same wavenumbers. As many lines in
a row as there are cameras look at the same place. With --motion the retina
moves in depth from B-scan to B-scan, a sine of that many depths at scale 1 and
seven B-scans. With --fovea the inner layers have the pit of the fovea in the
middle. --background writes what each camera sees with the sample arm blocked,
[cameras, samples]. With --split camera c's lines are also in SPLIT-c.npy, as that
camera alone would give them. The same options give the same files everywhere.
"""
import argparse

import numpy as np

# depth as a part of the deepest, thickness, strength
LAYERS = [(0.20, 0.020, 0.6), (0.28, 0.030, 0.25), (0.36, 0.015, 0.7),
          (0.43, 0.008, 1.0), (0.47, 0.012, 1.3), (0.55, 0.060, 0.2)]
FIRST, LAST = 806.0, 675.0  # nm


def calibration(camera, samples):
    """Returns: polynomial, quadratic and cubic dispersion, gain of a camera."""
    bow = [0.0, 0.06, -0.05, 0.03][camera % 4] + 0.01 * (camera // 4)
    n, span = samples - 1, LAST - FIRST
    polynomial = [FIRST, span * (1 + bow) / n, -span * bow / n ** 2]
    return polynomial, [9.0, 14.0, 4.0, 11.0][camera % 4], 2.0 * (camera % 3), 1 + 0.2 * camera


def motions(bscans, motion):
    """Returns: how deep each B-scan is, in depths at scale 1."""
    return motion * np.sin(2 * np.pi * np.arange(bscans) / 7)


def pedestal(camera, samples):
    """Returns: the light of the reference arm in counts of a camera of gain 1."""
    pixel = np.arange(samples)
    polynomial = calibration(camera, samples)[0]
    along = (1 / np.polyval(polynomial[::-1], pixel) - 1 / FIRST) / (1 / LAST - 1 / FIRST)
    envelope = np.exp(-((2 * along - 1) / 0.55) ** 2 / 2)
    return 600 + 1000 * envelope * (1 + 0.1 * np.sin(0.02 * pixel * (camera + 1)))


def make(cameras=2, samples=832, lines=240, bscans=1, grains=60, noise=0.0, seed=1, motion=0.0, fovea=False):
    """Returns: the spectra."""
    random = np.random.RandomState(seed)  # its stream is frozen by NumPy
    pixel = np.arange(samples)
    places = -(-bscans * lines // cameras)
    # grains of all layers in each place: depth in bins, amplitude, phase
    layer = random.randint(len(LAYERS), size=(places, grains))
    depth, thick, strength = (np.array([l[i] for l in LAYERS])[layer] for i in range(3))
    wave = 0.02 * np.sin(2 * np.pi * np.arange(places) / places)[:, None]
    if fovea:  # inner layers leave the middle to the outer ones
        across = np.arange(places)[:, None] / places - 0.5
        inner = np.clip(0.42 - depth, 0, None)
        depth = depth + 0.65 * inner * np.exp(-(across / 0.16) ** 2)
        amplitude_of_inner = 1 - 0.5 * (inner > 0) * np.exp(-(across / 0.12) ** 2)
        strength = strength * amplitude_of_inner
    bins = (depth + wave + thick * random.uniform(-0.5, 0.5, layer.shape)) * samples / 2
    phase = random.uniform(0, 2 * np.pi, layer.shape)
    amplitude = strength * random.rayleigh(1.0, layer.shape) * 12
    moved = motions(bscans, motion)
    out = np.empty((bscans * lines, samples))
    for camera in range(cameras):
        polynomial, quadratic, cubic, gain = calibration(camera, samples)
        k = 1 / np.polyval(polynomial[::-1], pixel)
        along = (k - 1 / FIRST) / (1 / LAST - 1 / FIRST)  # 0..1
        u = 2 * along - 1
        envelope = np.exp(-(u / 0.55) ** 2 / 2)
        light = pedestal(camera, samples)
        rows = np.arange(camera, bscans * lines, cameras)
        for row in rows:
            p = row // cameras
            turn = (2 * np.pi * (bins[p] + moved[row // lines])[:, None] * along + phase[p][:, None]
                    + quadratic * u ** 2 + cubic * u ** 3)
            fringes = envelope * (amplitude[p][:, None] * np.cos(turn)).sum(axis=0)
            out[row] = gain * (light + fringes)
    out += random.normal(0, noise, out.shape) if noise else 0
    return np.clip(np.rint(out), 0, 4095).astype("<u2").reshape(bscans, lines, samples)


def ini(cameras, samples, common=False):
    """Returns: the text of a calibration."""
    text = ""
    for camera in range(cameras):
        polynomial, quadratic, cubic, gain = calibration(0 if common else camera, samples)
        text += (f"[camera {camera}]\npolynomial={';'.join(repr(c) for c in polynomial)}\n"
                 f"dispersion=0;0;{-quadratic!r};{-cubic!r}\ngain={gain!r}\n\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("array")
    parser.add_argument("own")
    parser.add_argument("common", nargs="?")
    for name, kind, value in [("cameras", int, 2), ("samples", int, 832), ("lines", int, 240),
                              ("bscans", int, 1), ("grains", int, 60), ("noise", float, 2.0),
                              ("seed", int, 1), ("motion", float, 0.0), ("split", str, None),
                              ("background", str, None)]:
        parser.add_argument("--" + name, type=kind, default=value)
    parser.add_argument("--fovea", action="store_true")
    options = vars(parser.parse_args())
    array, own, common, split, background = (
        options.pop(name) for name in ("array", "own", "common", "split", "background"))
    spectra = make(**options)
    np.save(array, spectra)
    if background:
        np.save(background, [calibration(c, options["samples"])[3] * pedestal(c, options["samples"])
                             for c in range(options["cameras"])])
    for camera in range(options["cameras"] if split else 0):
        np.save(f"{split}-{camera}.npy", spectra[:, camera::options["cameras"]])
    for name, same in (own, False), (common, True):
        if name:
            with open(name, "w") as file:
                file.write(ini(options["cameras"], options["samples"], same))


if __name__ == "__main__":
    main()
