#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes frames of a Shack-Hartmann sensor: a Gaussian spot in every cell.

spots.py FRAMES.npy [TRUTH.csv] writes [frames, height, width] of u8 or u16 and
a line frame,cell,x,y for every spot, in pixels, (0, 0) the centre of the top
left one. The same options give the same files everywhere.
"""
import argparse
import csv

import numpy as np


def make(frames=3, columns=8, rows=6, pitch=21.3, x0=3.4, y0=2.7, sigma=1.8,
         shift=3.0, peak=40000, dtype=np.uint16, seed=1):
    """Returns: (frames, places); places is [frames, cells, 2] of x, y."""
    random = np.random.RandomState(seed)  # its stream is frozen by NumPy
    width = int(np.ceil(x0 + columns * pitch)) + 4
    height = int(np.ceil(y0 + rows * pitch)) + 3
    row, column = np.divmod(np.arange(rows * columns), columns)
    centres = np.stack([x0 + (column + 0.5) * pitch - 0.5,
                        y0 + (row + 0.5) * pitch - 0.5], axis=1)
    places = centres + random.uniform(-shift, shift, (frames, len(centres), 2))
    # a spot is the product of its profiles along x and y
    along_x = np.exp(-(np.arange(width) - places[..., :1]) ** 2 / (2 * sigma ** 2))
    along_y = np.exp(-(np.arange(height) - places[..., 1:]) ** 2 / (2 * sigma ** 2))
    light = np.einsum("fcy,fcx->fyx", along_y, along_x)
    return np.rint(np.minimum(light, 1) * peak).astype(dtype), places


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("array")
    parser.add_argument("truth", nargs="?")
    for name, kind, value in [("frames", int, 3), ("columns", int, 8), ("rows", int, 6),
                              ("pitch", float, 21.3), ("x0", float, 3.4),
                              ("y0", float, 2.7), ("sigma", float, 1.8),
                              ("shift", float, 3.0), ("seed", int, 1)]:
        parser.add_argument("--" + name, type=kind, default=value)
    parser.add_argument("--bits", type=int, choices=(8, 16), default=16)
    options = vars(parser.parse_args())
    array, truth, bits = (options.pop(name) for name in ("array", "truth", "bits"))
    frames, places = make(dtype=np.uint8 if bits == 8 else np.uint16,
                          peak=250 if bits == 8 else 40000, **options)
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
