# SPDX-License-Identifier: LGPL-2.1-or-later
"""estimator=pupils and estimator=matched of shcentroid beside float64 numpy, and
pupil images beside PyramidWavefrontSensorEstimator of HCIPy."""
import unittest
import warnings

import numpy as np

try:  # before GStreamer: its SciPy crashes when it is loaded after it
    import hcipy
except ImportError:
    hcipy = None

from support import FolderCase, main, play, read_csv

SIDE = 24  # of a quadrant with one pupil image


def disc(radius=10.3, hole=3.1):
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    r = np.hypot(x, y)
    return (r < radius) & (r > hole)


def quadrants(mask):
    """Masks [4, height, width], in the order of HCIPy: rows below and columns right come later."""
    masks = np.zeros((4, 2 * SIDE, 2 * SIDE))
    for k, (row, column) in enumerate([(0, 0), (1, 0), (1, 1), (0, 1)]):
        masks[k, row * SIDE:][:SIDE, column * SIDE:][:, :SIDE] = mask
    return masks


def slopes(frame, masks, norm=None):
    """Sx and Sy of every pixel, of frames in float64."""
    a, b, c, d = (frame[mask > 0] for mask in masks)
    flux = a + b + c + d
    norm = flux if norm is None else norm(flux)
    return np.stack([a + b - c - d, a - b - c + d]) / norm


class Case(FolderCase):
    def measure(self, properties, frame):
        np.save(self.folder + "/f.npy", frame)
        play(f"picturesrc location={self.folder}/f.npy ! shcentroid name=sh {properties}"
             f" ! fakesink sh.results ! queue ! filesink location={self.folder}/c.csv")
        return read_csv(self.folder + "/c.csv")


class Pyramid(Case):
    def setUp(self):
        super().setUp()
        self.masks = quadrants(disc())
        rng = np.random.default_rng(7)
        self.frame = rng.uniform(100, 3000, (2 * SIDE, 2 * SIDE)).astype("f4")

    def pupils(self, properties="", frame=None, masks=None):
        np.save(self.folder + "/p.npy", self.masks if masks is None else masks)
        table = self.measure(f"estimator=pupils pupils-location={self.folder}/p.npy {properties}",
                             self.frame if frame is None else frame)
        return np.stack([table["dx"], table["dy"]]), table

    def test_local(self):
        found, table = self.pupils()
        np.testing.assert_allclose(found, slopes(self.frame.astype("f8"), self.masks), rtol=0, atol=1e-12)
        rows, columns = np.nonzero(self.masks[0])
        np.testing.assert_array_equal(table["row"], rows - rows.min())
        np.testing.assert_array_equal(table["col"], columns - columns.min())

    def test_global(self):
        found, _ = self.pupils("normalisation=global")
        np.testing.assert_allclose(found, slopes(self.frame.astype("f8"), self.masks, np.mean), rtol=0, atol=1e-12)

    def test_global_of_the_lit(self):
        """Cells below the share of the brightest are not in the mean, and report 0."""
        found, table = self.pupils("normalisation=global min-illumination=0.6")
        flux = sum(self.frame.astype("f8")[mask > 0] for mask in self.masks)
        lit = flux >= 0.6 * flux.max()
        self.assertTrue(0.2 < lit.mean() < 0.8)
        expected = slopes(self.frame.astype("f8"), self.masks, lambda flux: flux[lit].mean()) * lit
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(table["flags"], np.where(lit, 0, 2))

    def test_numbers_are_as_good_as_masks(self):
        numbers = np.tensordot(np.arange(1, 5), self.masks, 1).astype("u1")
        found, _ = self.pupils(masks=numbers)
        np.testing.assert_array_equal(found, self.pupils()[0])

    def test_bad_files(self):
        for masks, words in [(self.masks[:3], "has to be [height, width]"), (self.masks[0] * 5, "has 5 at"),
                             (self.masks + self.masks[:1], "in the masks of two"), (self.masks * 0, "have no pixels"),
                             (self.masks[:, :, :-1], "is of frames of 47x48"),
                             (self.masks * quadrants(np.arange(SIDE) < 12)[0] + self.masks * [[[0]], [[1]], [[1]], [[1]]],
                              "all four must have as many")]:
            with self.subTest(words):
                with self.assertRaises(Exception) as failure:
                    self.pupils(masks=masks)
                self.assertIn(words, str(failure.exception))
        with self.assertRaises(Exception) as failure:
            self.measure("estimator=pupils", self.frame)
        self.assertIn("Set pupils-location", str(failure.exception))

    def test_shreconstruct_takes_the_slopes(self):
        frame = self.frame.astype("u2")
        expected = slopes(frame.astype("f8"), self.masks).ravel()
        matrix = np.random.default_rng(2).normal(size=(3, expected.size)).astype("f4")
        for name, array in [("f", frame), ("p", self.masks), ("r", matrix)]:
            np.save(f"{self.folder}/{name}.npy", array)
        play(f"picturesrc location={self.folder}/f.npy ! shcentroid estimator=pupils fields=slopes"
             f" pupils-location={self.folder}/p.npy ! shreconstruct matrix-location={self.folder}/r.npy gain=1"
             f" ! picturesink location={self.folder}/commands.npy")
        np.testing.assert_allclose(np.load(self.folder + "/commands.npy").ravel(), -matrix.astype("f8") @ expected,
                                   rtol=0, atol=1e-4)

    @unittest.skipUnless(hcipy, "there is no HCIPy; tools/venv installs it")
    def test_hcipy(self):
        """A pyramid sensor in float64, its frames in float32."""
        grid = hcipy.make_pupil_grid(SIDE * 4, 1.5)
        aperture = hcipy.make_circular_aperture(1)
        output = hcipy.make_pupil_grid(2 * SIDE, 3)
        sensor = hcipy.PyramidWavefrontSensorOptics(grid, output, separation=1.5, wavelength_0=1e-6, q=3)
        estimator = hcipy.PyramidWavefrontSensorEstimator(aperture(hcipy.make_pupil_grid(SIDE, 1.5)))
        mask = (estimator.pupil_mask.shaped > 0).astype("f8")
        phase = 0.5 * (grid.x * 3 + 2 * grid.x * grid.y * 4 + 5 * grid.y**2)
        front = hcipy.Wavefront(hcipy.Field(aperture(grid) * np.exp(1j * phase), grid), 1e-6)
        power = sensor.forward(front).power
        frame = (power / power.max() * 50000).astype("f4")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it may change
            expected = np.array(estimator.estimate(hcipy.Field(np.asarray(frame, "f8"), power.grid)))
        found, _ = self.pupils(frame=np.asarray(frame).reshape(2 * SIDE, 2 * SIDE), masks=quadrants(mask))
        self.assertGreater(np.ptp(expected), 0.2)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


class Matched(Case):
    """The weighted fit of the template, its first and second differences, and an even background."""

    PITCH, N, GAIN, NOISE = 11, 3, 2.0, 3.0

    def spots(self, x, y, peak=800.0):
        v, u = np.mgrid[:self.PITCH, :self.PITCH] - (self.PITCH - 1) / 2
        return np.block([[peak * np.exp(-((u - x) ** 2 + (v - y) ** 2) / 2 / (1.3 + 0.1 * r + 0.2 * c) ** 2)
                          for c in range(self.N)] for r in range(self.N)])

    def cells(self, frame):
        p = self.PITCH
        return [frame[r * p:][:p, c * p:][:, :p] for r in range(self.N) for c in range(self.N)]

    def fit(self, template, cell):
        """Returns: brightness, shift in x and y, and the variances of the shift for this cell"""
        t = template[1:-1, 1:-1]
        left, right, up, down = template[1:-1, :-2], template[1:-1, 2:], template[:-2, 1:-1], template[2:, 1:-1]
        model = np.stack([t, (left - right) / 2, (up - down) / 2, left + right - 2 * t, up + down - 2 * t,
                          np.ones_like(t)]).reshape(6, -1)
        weight = 1 / (t / self.GAIN + self.NOISE**2 + 1e-3 * template.max() / self.GAIN).ravel()
        solution = np.linalg.solve((model * weight) @ model.T, model * weight)[:3]
        inner = cell[1:-1, 1:-1].ravel()
        a, x, y = solution @ inner
        noise = np.maximum(inner, 0) / self.GAIN + self.NOISE**2
        return a, x / a, y / a, *((solution[1:] - np.array([[x], [y]]) / a * solution[0])**2 @ noise / a**2)

    def matched(self, properties, frame):
        grid = f"columns={self.N} rows={self.N} pitch-x={self.PITCH} pitch-y={self.PITCH}"
        return self.measure(f"{grid} estimator=matched gain={self.GAIN} read-noise={self.NOISE} {properties}", frame)

    def test_fit(self):
        template = self.spots(0, 0).astype("f4")
        rng = np.random.default_rng(3)
        frame = self.spots(0.35, -0.6, 500) + 70
        frame = (frame + rng.normal(0, np.sqrt(frame / self.GAIN + self.NOISE**2))).astype("f4")
        np.save(self.folder + "/t.npy", np.stack(self.cells(template)))
        table = self.matched(f"template-location={self.folder}/t.npy", frame)
        for i, (t, cell) in enumerate(zip(self.cells(template.astype("f8")), self.cells(frame.astype("f8")))):
            a, x, y, var_x, var_y = self.fit(t, cell)
            self.assertAlmostEqual(table["dx"][i], x, delta=1e-6)
            self.assertAlmostEqual(table["dy"][i], y, delta=1e-6)
            self.assertAlmostEqual(table["flux"][i] / (a * t.sum()), 1, delta=1e-6)
            self.assertAlmostEqual(table["var_x"][i] / var_x, 1, delta=1e-5)
            self.assertAlmostEqual(table["var_y"][i] / var_y, 1, delta=1e-5)
        self.assertTrue(np.all(table["flags"] == 0))


if __name__ == "__main__":
    main()
