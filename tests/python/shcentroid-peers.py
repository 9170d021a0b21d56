# SPDX-License-Identifier: LGPL-2.1-or-later
"""shcentroid beside aotools and HCIPy: equal where the definitions are equal,
and different in the way that docs/explanation/shcentroid-peers.md says."""
import importlib.util
import os
import sys
import unittest
import warnings

import numpy as np

try:  # before GStreamer: its SciPy crashes when it is loaded after it
    import hcipy
except ImportError:
    hcipy = None

from support import SOURCE, FolderCase, data, main, play, read_csv

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import spots

X0, Y0, PITCH, N = 23.51, 20.65, 29.653, 16  # of the lamp frame


def load_centroiders():
    """The one module of aotools: all of it would need numba and astropy."""
    package = importlib.util.find_spec("aotools")
    if not package:
        return None
    file = os.path.join(package.submodule_search_locations[0], "image_processing",
                        "centroiders.py")
    spec = importlib.util.spec_from_file_location("centroiders", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


aotools = load_centroiders()


def edges(origin, pitch, n):
    return np.floor(origin + np.arange(n + 1) * pitch).astype(int)


class Peers(FolderCase):
    def setUp(self):
        super().setUp()
        raw = np.fromfile(data("f5_hecto_ref.gray16le.raw"), "<u2")
        self.frame = raw.reshape(512, 512)
        self.columns, self.rows = edges(X0, PITCH, N), edges(Y0, PITCH, N)

    def measure(self, properties="", frame=None, grid=None):
        """The table of the lamp frame, or of another one."""
        np.save(self.folder + "/f.npy", self.frame if frame is None else frame)
        grid = grid or f"x0={X0} y0={Y0} pitch-x={PITCH} pitch-y={PITCH} columns={N} rows={N}"
        play(f"picturesrc location={self.folder}/f.npy ! shcentroid name=sh {grid} {properties}"
             f" ! fakesink sh.results ! queue ! filesink location={self.folder}/c.csv")
        return read_csv(self.folder + "/c.csv")

    def cells(self):
        """Corner and samples of each cell, row by row."""
        for r in range(N):
            for c in range(N):
                yield (self.columns[c], self.rows[r]), self.frame[
                    self.rows[r]:self.rows[r + 1], self.columns[c]:self.columns[c + 1]
                ].astype(np.float64)

    def check(self, table, centres):
        """`centres` count from the corner of their cell."""
        corners = np.array([corner for corner, _ in self.cells()])
        np.testing.assert_allclose(np.stack([table["x"], table["y"]], 1) - corners, centres,
                                   rtol=0, atol=1e-9)


@unittest.skipUnless(aotools, "there is no aotools; tools/venv installs it")
class AOtools(Peers):
    def test_plain_centres_are_equal(self):
        self.check(self.measure(), [aotools.centre_of_gravity(cell) for _, cell in self.cells()])

    def test_a_single_image_is_subtract(self):
        # threshold=0 would leave min_threshold out
        found = self.measure("threshold-mode=absolute threshold=1000")
        self.check(found, [aotools.centre_of_gravity(cell, threshold=1e-12, min_threshold=1000)
                           for _, cell in self.cells()])

    def test_a_stack_is_keep(self):
        found = self.measure("threshold-mode=absolute threshold-action=keep threshold=1000")
        self.check(found, [aotools.centre_of_gravity(cell[None], threshold=1e-12,
                                                     min_threshold=1000)[:, 0]
                           for _, cell in self.cells()])

    def test_relative_thresholds_are_equal(self):
        found = self.measure("threshold-mode=relative threshold=0.3")
        self.check(found, [aotools.centre_of_gravity(cell, threshold=0.3)
                           for _, cell in self.cells()])
        found = self.measure("threshold-mode=relative threshold=0.3 threshold-least=900")
        self.check(found, [aotools.centre_of_gravity(cell, threshold=0.3, min_threshold=900)
                           for _, cell in self.cells()])
        found = self.measure("threshold-mode=relative threshold=0.3 threshold-action=keep")
        self.check(found, [aotools.centre_of_gravity(cell[None], threshold=0.3)[:, 0]
                           for _, cell in self.cells()])

    def test_its_brightest_pixels_are_one_more_than_ours(self):
        # it subtracts the n-th, so that n - 1 are left; we keep all that tie with the
        # n-th, and subtract the next lower value
        found = self.measure("brightest=39")
        expected, n_tied = [], 0
        for _, cell in self.cells():
            kept = (cell >= np.sort(cell, None)[-39]).sum()
            n_tied += kept > 39
            expected.append(aotools.brightest_pixel(cell.copy(), (kept + 1) / cell.size))
        self.assertGreater(n_tied, 0)
        self.check(found, expected)

    def test_its_quad_cell_is_not_divided_by_the_flux(self):
        frame = np.array([[10, 20], [30, 40]], np.uint16)
        found = self.measure("estimator=quad", frame=frame,
                             grid="pitch-x=2 pitch-y=2 columns=1 rows=1")
        x, y = aotools.quadCell(frame.astype(float))
        self.assertAlmostEqual(float(found["dx"]), x / frame.sum(), delta=1e-12)
        self.assertAlmostEqual(float(found["dy"]), y / frame.sum(), delta=1e-12)

    def test_a_dark_cell_is_nan_there_and_flagged_here(self):
        dark = np.zeros((8, 8), np.uint16)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertTrue(np.isnan(aotools.centre_of_gravity(dark.astype(float))).all())
        found = self.measure(frame=dark, grid="pitch-x=8 pitch-y=8 columns=1 rows=1")
        self.assertEqual((float(found["x"]), float(found["dx"]), int(found["flags"])), (3.5, 0, 1))

    def test_soapy_subtracts_half_the_cell_and_is_half_a_pixel_off(self):
        even = np.full((4, 4), 9, np.uint16)
        found = self.measure(frame=even, grid="pitch-x=4 pitch-y=4 columns=1 rows=1")
        self.assertEqual(float(found["dx"]), 0)
        self.assertEqual(aotools.centre_of_gravity(even.astype(float))[0] - 4 / 2, -0.5)


@unittest.skipUnless(hcipy, "there is no HCIPy; tools/venv installs it")
class HCIPy(Peers):
    def estimate(self, frame, labels, references):
        """What HCIPy's estimator gives for a map of labels, [2, n]."""
        height, width = frame.shape
        grid = hcipy.CartesianGrid(hcipy.SeparatedCoords(
            (np.arange(width, dtype=float), np.arange(height, dtype=float))))
        lenslets = hcipy.CartesianGrid(hcipy.UnstructuredCoords(list(references.T)))
        estimator = hcipy.ShackHartmannWavefrontSensorEstimator(
            lenslets, hcipy.Field(labels.ravel(), grid), np.ones(len(references), bool))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(estimator.estimate(
                [hcipy.Field(frame.astype(np.float64).ravel(), grid)]))

    def test_slopes_are_equal_with_its_centres_as_references(self):
        labels = np.full(self.frame.shape, N * N)  # what belongs to no cell
        for r in range(N):
            for c in range(N):
                labels[self.rows[r]:self.rows[r + 1], self.columns[c]:self.columns[c + 1]] = r * N + c
        row, column = np.divmod(np.arange(N * N), N)
        references = np.stack([X0 + (column + 0.5) * PITCH - 0.5,
                               Y0 + (row + 0.5) * PITCH - 0.5], 1)
        dx, dy = self.estimate(self.frame, labels, references)
        found = self.measure()
        np.testing.assert_allclose(found["dx"], dx, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found["dy"], dy, rtol=0, atol=1e-9)

    def test_its_own_grids_have_the_origin_in_the_middle(self):
        frames, _ = spots.make(frames=1, columns=4, rows=4, pitch=16, x0=0, y0=0)
        frame = frames[0][:64, :64]
        found = self.measure(frame=frame, grid="columns=4 rows=4 pitch-x=16 pitch-y=16")
        grid = hcipy.make_uniform_grid([64, 64], [64, 64])  # pixels of size 1
        light = frame.astype(np.float64).ravel()
        inside = (grid.x < -16) & (grid.y < -16)  # the first cell
        x = (light * grid.x)[inside].sum() / light[inside].sum()
        self.assertAlmostEqual(float(found["x"][0]), x + (64 - 1) / 2, delta=1e-9)

    def test_a_dark_cell_is_nan_there_and_flagged_here(self):
        dark = np.zeros((16, 16), np.uint16)
        slopes = self.estimate(dark, np.zeros((16, 16), int), np.array([[7.5, 7.5]]))
        self.assertTrue(np.isnan(slopes).all())
        found = self.measure(frame=dark, grid="pitch-x=16 pitch-y=16 columns=1 rows=1")
        self.assertEqual((float(found["dx"]), int(found["flags"])), (0, 1))


if __name__ == "__main__":
    main()
