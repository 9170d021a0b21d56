# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much of a shift gst-imaging centroids measures with the settings that it
starts with: real frames, moved by whole pixels (roll) and by fractions
(Fourier), against the map of the frame itself.

With --table it prints the table of docs/explanation/shcentroid-threshold.md; further arguments are
properties, as threshold-mode=none."""
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import command, data, main, read_array, read_csv

FRAMES = ("f5_hecto_ref", "auto_wfs_0037_ave", "mmirs_camera1_ref", "f9_new_ref")
# in pixels, and whether by a phase in place of a roll
SHIFTS = [(shift, by_phase) for shift in (0.5, 1, 2, 3, 4, 5) for by_phase in (False, True)
          if by_phase or shift == int(shift)]
INVALID = 227  # flags, see docs/reference/shcentroid.md
REACH = 2.5    # sigmas of the spot that shall stay in the cell


def moved(frame, shift, by_phase, axis):
    """Whole pixels as they are, or by a phase, which keeps the sum."""
    if not by_phase:
        return np.roll(frame, int(shift), axis)
    phase = np.exp(-2j * np.pi * np.fft.fftfreq(frame.shape[axis]) * shift)
    return np.fft.ifft(np.fft.fft(frame, axis=axis) * np.expand_dims(phase, 1 - axis),
                       axis=axis).real


def measure(folder, frame, *properties):
    name = os.path.join(folder, "frame.npy")
    np.save(name, frame.astype(np.float32))
    command(folder, "centroids", name, "-o", os.path.join(folder, "out"), "--no-picture", "--overwrite", *properties)
    return read_csv(os.path.join(folder, "out", "table.csv"))


def sigmas(frame, cells, table, along):
    """The rms radius of each spot above a fifth of the range of its cell, in its direction."""
    found = []
    for (x, y, width, height), px, py in zip(cells[:, :4], table["x"], table["y"]):
        left, top = (max(int(np.floor(v)), 0) for v in (x, y))
        cell = frame[top:int(np.floor(y + height)), left:int(np.floor(x + width))]
        light = np.maximum(cell - cell.min() - 0.2 * np.ptp(cell), 0)
        at = np.arange(cell.shape[along]) + (top, left)[along] - (py, px)[along]
        found.append(np.sqrt((light.sum(1 - along) * at ** 2).sum() / max(light.sum(), 1e-9)))
    return np.array(found)


def shares(name, *properties):
    """Returns: for each shift the part that is measured of it, and of how many cells: the
    median over those whose spot stays in its cell"""
    frame = read_array(data(name + ".fits"))
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        first = measure(folder, frame, *properties)
        shutil.copy(os.path.join(folder, "out", "map.npy"), os.path.join(folder, "map.npy"))
        cells = np.load(os.path.join(folder, "map.npy"))
        size = np.array(frame.shape)
        for shift, by_phase in SHIFTS:
            parts = []
            for axis, key in ((1, "x"), (0, "y")):
                radius = REACH * sigmas(frame, cells, first, axis)
                low, side = cells[:, 1 - axis], cells[:, 3 - axis]
                ends = first[key] + shift + 0.5 + radius
                stays = ((ends < low + side) & (first[key] + 0.5 - radius > low) &
                         (low > 0) & (low + side + shift < size[axis]) &
                         (first["flags"].astype(int) & INVALID == 0))
                again = measure(folder, moved(frame, shift, by_phase, axis), *properties,
                                "map-location=" + os.path.join(folder, "map.npy"))
                stays &= again["flags"].astype(int) & INVALID == 0
                parts += list((again[key] - first[key])[stays] / shift)
            rows[shift, by_phase] = np.median(parts) if parts else np.nan, len(parts)
    return rows


class Shifts(unittest.TestCase):
    def test_shifts_are_measured_within_two_percent(self):
        for name in FRAMES:
            for (shift, by_phase), (share, n) in shares(name).items():
                self.assertGreater(n, 20, f"{name}: {n} spots stay in their cells at {shift}")
                self.assertLess(abs(share - 1), 0.02, f"{name}, {shift} pixels, by phase: {by_phase}")


if __name__ == "__main__":
    if "--table" in sys.argv[1:]:
        print("| frame |", " | ".join(f"{shift:g} px" + " (Fourier)" * by_phase for shift, by_phase in SHIFTS), "|")
        for name in FRAMES:
            rows = shares(name, *[text for text in sys.argv[1:] if text != "--table"])
            print(f"| {name} |", " | ".join(f"{share * shift:.3f} ({n})" for (shift, _), (share, n)
                                            in rows.items()), "|")
    else:
        main()
