#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes frames of a Shack-Hartmann sensor that looks at aberrated wavefronts.

wavefronts.py FRAMES.npy [TRUTH.csv] writes [frames, height, width] of u16 with
photon and read noise, and a line frame,cell,x,y for every lenslet of the round
pupil, in pixels, (0, 0) the centre of the top left one. The same options give
the same files everywhere.
"""
import argparse
import csv

import numpy as np

SHAPES = ("flat", "defocus", "astigmatism", "coma", "turbulence")


def lattice(count, pitch, hexagonal=False, degrees=0.0, obscuration=0.25):
    """Lenslets of a round pupil, [n, 2] of x, y in pixels about its centre."""
    j, i = np.mgrid[-count:count + 1, -count:count + 1]
    x, y = (i + j / 2, j * np.sqrt(0.75)) if hexagonal else (
        i + 0.5 * (count % 2 == 0), j + 0.5 * (count % 2 == 0))
    radius = np.hypot(x, y) / (count / 2)
    lit = (radius <= 1) & (radius >= obscuration)
    places = np.stack([x[lit], y[lit]], 1) * pitch
    angle = np.radians(degrees)
    return places @ np.array([[np.cos(angle), np.sin(angle)],
                              [-np.sin(angle), np.cos(angle)]])


def slopes(places, shape, amplitude, random):
    """Shifts of the spots, [n, 2], the longest `amplitude` pixels."""
    x, y = (places / np.abs(places).max()).T
    if shape == "flat" or amplitude == 0:
        return np.zeros_like(places)
    if shape == "turbulence":  # a few waves of random direction, longer ones stronger
        dx, dy = np.zeros(len(x)), np.zeros(len(x))
        for _ in range(12):
            k = random.normal(size=2) * 2
            wave = np.cos(k[0] * x + k[1] * y + random.uniform(0, 2 * np.pi)) / (0.3 + k @ k)
            dx, dy = dx + k[0] * wave, dy + k[1] * wave
    else:  # gradients of the polynomials of these names
        dx, dy = {"defocus": (x, y), "astigmatism": (x, -y),
                  "coma": (3 * x * x + y * y - 2 / 3, 2 * x * y)}[shape]
    shift = np.stack([dx, dy], 1)
    return shift * (amplitude / np.hypot(*shift.T).max())


def make(frames=1, count=12, pitch=24.0, width=None, height=None, hexagonal=False,
         degrees=0.0, obscuration=0.25, shape="turbulence", amplitude=5.0, sigma=1.8,
         photons=20000.0, gain=1.0, background=100.0, read_noise=4.0, seed=1):
    """Returns: (frames, places, centres); places is [frames, lenslets, 2].
    photons: electrons a spot; gain: electrons a count; background and
    read_noise: counts, rms counts."""
    random = np.random.RandomState(seed)  # its stream is frozen by NumPy
    width = width or int(np.ceil((count + 1) * pitch))
    height = height or width
    centres = lattice(count, pitch, hexagonal, degrees, obscuration) + [
        (width - 1) / 2, (height - 1) / 2]
    pictures, places = [], []
    for _ in range(frames):
        at = centres + slopes(centres - centres.mean(0), shape, amplitude, random)
        along_x = np.exp(-(np.arange(width) - at[:, :1]) ** 2 / (2 * sigma ** 2))
        along_y = np.exp(-(np.arange(height) - at[:, 1:]) ** 2 / (2 * sigma ** 2))
        light = along_y.T @ along_x * photons / (2 * np.pi * sigma ** 2)
        counts = random.poisson(light) / gain + background
        counts = counts + random.normal(0, read_noise, counts.shape)
        pictures.append(np.rint(counts).clip(0, 65535).astype(np.uint16))
        places.append(at)
    return np.array(pictures), np.array(places), centres


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("array")
    parser.add_argument("truth", nargs="?")
    parser.add_argument("--shape", choices=SHAPES, default="turbulence")
    parser.add_argument("--hexagonal", action="store_true")
    for name, kind, value, text in [
            ("frames", int, 1, "how many"), ("count", int, 12, "lenslets across the pupil"),
            ("pitch", float, 24.0, "pixels"), ("degrees", float, 0.0, "rotation of the lenslets"),
            ("obscuration", float, 0.25, "of the diameter, in the middle"),
            ("amplitude", float, 5.0, "pixels of the largest slope"),
            ("sigma", float, 1.8, "pixels, of a spot"),
            ("photons", float, 20000.0, "electrons a spot"),
            ("gain", float, 1.0, "electrons a count"), ("background", float, 100.0, "counts"),
            ("read-noise", float, 4.0, "counts rms"), ("seed", int, 1, "of the noise")]:
        parser.add_argument("--" + name, type=kind, default=value, help=text)
    options = vars(parser.parse_args())
    array, truth = options.pop("array"), options.pop("truth")
    frames, places, _ = make(**options)
    np.save(array, frames)
    if truth:
        with open(truth, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["frame", "cell", "x", "y"])
            for frame, cells in enumerate(places):
                for cell, (x, y) in enumerate(cells):
                    writer.writerow([frame, cell, repr(float(x)), repr(float(y))])


if __name__ == "__main__":
    main()
