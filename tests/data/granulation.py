#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes frames of a Shack-Hartmann sensor that looks at the sun.

granulation.py FRAMES.npy [TRUTH.csv] writes [frames, height, width] of u16: in
every cell the same granules, moved by the slope of a turbulent wavefront there,
with photon noise; and a line frame,cell,dx,dy of every shift, in pixels. The
granules change slowly from frame to frame. The same options give the same files
everywhere.
"""
import argparse
import csv

import numpy as np


class Sun:
    """Granules of about `grain` pixels, known at every point: waves of all
    directions, bent so that the bright is broad and the dark is narrow."""

    def __init__(self, grain, random, n_waves=80):
        angle, k = random.uniform(0, 2 * np.pi, n_waves), 2 * np.pi / grain
        k = k * random.uniform(0.5, 1.3, n_waves)
        self.kx, self.ky = k * np.cos(angle), k * np.sin(angle)
        self.phase = random.uniform(0, 2 * np.pi, n_waves)
        self.drift = random.normal(0, 1, n_waves)

    def at(self, x, y, time):
        """Returns: brightness at points x, y of any shape; mean 0, rms about 1."""
        wave = np.zeros(np.shape(x))
        for kx, ky, phase, drift in zip(self.kx, self.ky, self.phase, self.drift):
            wave += np.cos(kx * x + ky * y + phase + drift * time)
        wave /= np.sqrt(len(self.kx) / 2)
        return np.tanh(wave + 0.3) * 1.5 - 0.3


def wavefront(columns, rows, amplitude, random):
    """Shifts [cells, 2] of one frame, `amplitude` pixels rms, mean 0."""
    y, x = np.mgrid[0:rows, 0:columns] / max(columns, rows)
    dx, dy = np.zeros(x.shape), np.zeros(x.shape)
    for _ in range(10):
        k = random.normal(size=2) * 4
        wave = random.normal() * np.sin(k[0] * x + k[1] * y + random.uniform(0, 2 * np.pi))
        dx, dy = dx + k[0] * wave, dy + k[1] * wave
    shift = np.stack([dx.ravel(), dy.ravel()], 1)
    shift -= shift.mean(0)
    return shift * (amplitude / max(np.sqrt((shift ** 2).mean()), 1e-9))


def make(frames=5, columns=16, rows=16, pitch=20, grain=7.0, contrast=0.08, mean=2500.0,
         gain=8.0, amplitude=0.8, seed=1):
    """Returns: (frames, shifts); shifts is [frames, cells, 2]. mean: counts;
    gain: electrons a count."""
    random = np.random.RandomState(seed)  # its stream is frozen by NumPy
    sun = Sun(grain, random)
    v, u = np.mgrid[0:pitch, 0:pitch] - (pitch - 1) / 2
    pictures, shifts = [], []
    for frame in range(frames):
        shift = wavefront(columns, rows, amplitude, random)
        cells = sun.at(u - shift[:, 0, None, None], v - shift[:, 1, None, None], 0.05 * frame)
        cells = mean * (1 + contrast * cells)
        cells = cells.reshape(rows, columns, pitch, pitch).swapaxes(1, 2)
        light = cells.reshape(rows * pitch, columns * pitch)
        noisy = random.poisson(light * gain) / gain
        pictures.append(np.clip(np.rint(noisy), 0, 4095).astype(np.uint16))
        shifts.append(shift)
    return np.stack(pictures), np.stack(shifts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("array")
    parser.add_argument("truth", nargs="?")
    for name, kind, value in [("frames", int, 5), ("columns", int, 16), ("rows", int, 16),
                              ("pitch", int, 20), ("grain", float, 7.0),
                              ("contrast", float, 0.08), ("mean", float, 2500.0),
                              ("gain", float, 8.0), ("amplitude", float, 0.8),
                              ("seed", int, 1)]:
        parser.add_argument("--" + name, type=kind, default=value)
    options = vars(parser.parse_args())
    array, truth = options.pop("array"), options.pop("truth")
    pictures, shifts = make(**options)
    np.save(array, pictures)
    if truth:
        with open(truth, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["frame", "cell", "dx", "dy"])
            for i, frame in enumerate(shifts):
                for k, (dx, dy) in enumerate(frame):
                    writer.writerow([i, k, repr(float(dx)), repr(float(dy))])


if __name__ == "__main__":
    main()
