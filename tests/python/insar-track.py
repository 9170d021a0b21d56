# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging track against the truth of a synthetic glacier, and against a normalised cross-correlation in float64 that is written
here."""
import csv
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import DATA, SOURCE, gst_imaging, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import slcs

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

WHITE_NOISE = os.path.join(os.path.dirname(DATA), "insarxcorr", "ampcor_wn")
N, DAYS, SPACING = 480, 12.0, (2.3, 4.1)
FASTEST, MARGINS = 3.0, (170, 310)  # m/day; columns of the shear margins


def speed(x):
    """Of the glacier at column x: 0 outside, a parabola of fourth order between the margins, as of ice that deforms."""
    u = (2 * x - sum(MARGINS)) / (MARGINS[1] - MARGINS[0])
    return np.where(np.abs(u) < 1, FASTEST * (1 - u ** 4), 0)


def moved(x):
    """Offsets in columns and lines: it flows down and a little to the right."""
    way = speed(x) * DAYS
    return 0.5 * way / SPACING[0], np.sqrt(0.75) * way / SPACING[1]


class Track(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        rng = np.random.default_rng(2)
        shape = (N + 2 * slcs.MARGIN,) * 2
        ground, noise = slcs.band_limited(rng, shape), slcs.band_limited(rng, shape)
        later = 0.85 * ground + np.sqrt(1 - 0.85 ** 2) * noise
        y, x = np.mgrid[:N, :N].astype(float)
        r = x - 2.3  # a shift of the orbits
        for _ in range(80):
            r = x - 2.3 - moved(r)[0]
        lines = y + 1.6 - moved(r)[1]
        sec = slcs.warp(later, np.clip(r + slcs.MARGIN, 8, shape[1] - 9), np.clip(lines + slcs.MARGIN, 8, shape[0] - 9))
        cls.images = [ground[slcs.MARGIN:-slcs.MARGIN, slcs.MARGIN:-slcs.MARGIN], sec]
        for name, image in zip(("ref", "sec"), cls.images):
            np.save(cls.path(name + ".npy"), np.ascontiguousarray(300 * image, np.complex64))
        stable = np.zeros((1, N), np.uint8)
        stable[0, :MARGINS[0] - 30] = stable[0, MARGINS[1] + 30:] = 1
        np.save(cls.path("stable.npy"), np.repeat(stable, 4, 0))
        cls.out = cls.track("--stable", cls.path("stable.npy"))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def track(cls, *words):
        out = os.path.join(tempfile.mkdtemp(dir=cls.folder), "out")
        gst_imaging("track", cls.path("ref.npy"), cls.path("sec.npy"), "-o", out, "--days", str(DAYS), "--spacing", *map(str, SPACING),
                    "xsearch=16", "ysearch=16", *words)
        return out

    def read(self, out, name):
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        return np.fromfile(os.path.join(out, name + ".img"), "<f4").reshape(len(result["rows"]), -1), result

    def test_the_glacier(self):
        """Away from the margins, where half of a template is ice; errors are those that are told."""
        for axis, part in ("range", 0.5), ("azimuth", np.sqrt(0.75)):
            found, result = self.read(self.out, "velocity-" + axis)
            told, _ = self.read(self.out, "velocity-error-" + axis)
            moved_m, _ = self.read(self.out, "displacement-" + axis)
            columns = np.array(result["columns"])
            # a template sees the mean of what is in it
            truth = part * np.mean([speed(columns + d) for d in range(-16, 16)], 0)
            middle = (columns > MARGINS[0] + 40) & (columns < MARGINS[1] - 40)
            outside = (columns < MARGINS[0] - 24) | (columns > MARGINS[1] + 24)
            for name, where in ("ice", middle), ("rock", outside):
                away = (found - truth)[:, where]
                known = np.isfinite(away)
                self.assertGreater(known.mean(), 0.9)
                ratio = (away / told[:, where])[known].std()
                print(f"{axis}, {name}: {known.mean():.2f} known, error {np.nanmean(away):+.4f} +- {np.nanstd(away):.4f} m/day, "
                      f"{ratio:.2f} of what is told")
                self.assertLess(abs(np.nanmean(away)), 0.02)
                self.assertLess(np.nanstd(away), 0.05)
                self.assertTrue(0.6 < ratio < 1.6, ratio)
            np.testing.assert_allclose(moved_m, found * DAYS, rtol=1e-5, atol=1e-5)
            self.assertAlmostEqual(float(np.nanmedian(found[:, middle])), part * FASTEST, delta=0.15)
        self.assertAlmostEqual(result["fastest"], FASTEST, delta=0.15)

    def test_a_cross_correlation_of_numpy(self):
        """32 x 32 samples of the detected images, both oversampled twice; the peak by a parabola."""
        found = [self.read(self.out, "displacement-" + axis)[0] for axis in ("range", "azimuth")]
        _, result = self.read(self.out, "speed")

        def detect(image):
            n = image.shape[0]
            spectrum = np.fft.fftshift(np.fft.fft2(image))
            wide = np.pad(spectrum, n // 2)
            return np.abs(np.fft.ifft2(np.fft.ifftshift(wide))) * 4

        def correlate(values, kernel):
            product = np.fft.rfft2(values) * np.conj(np.fft.rfft2(kernel, values.shape))
            return np.fft.irfft2(product, values.shape)[:81, :81]

        away, one = [], np.ones((64, 64))
        for i in range(4, len(result["rows"]) - 6, 5):
            for j in range(3, len(result["columns"]) - 3, 4):
                row, column = int(result["rows"][i]), int(result["columns"][j])
                template = detect(self.images[0][row - 16:row + 16, column - 16:column + 16])
                patch = self.images[1][row - 36:row + 36, column - 36:column + 36]
                if patch.shape != (72, 72):
                    continue
                patch, t = detect(patch), template - template.mean()
                sums = [correlate(values, kernel) for values, kernel in ((patch, t), (patch, one), (patch ** 2, one))]
                score = sums[0] / np.sqrt(sums[2] - sums[1] ** 2 / one.size)
                a, b = np.unravel_index(np.argmax(score), score.shape)
                if not (0 < a < 80 and 0 < b < 80):
                    continue
                fine = [(values[0] - values[2]) / (2 * (values[0] - 2 * values[1] + values[2]))
                        for values in (score[a - 1:a + 2, b], score[a, b - 1:b + 2])]
                shift = (b + fine[1] - 40) / 2 - 2.3, (a + fine[0] - 40) / 2 + 1.6
                away.append([found[k][i, j] / SPACING[k] - shift[k] for k in (0, 1)])
        away = np.array(away)
        away = away[np.isfinite(away).all(1)]
        median = np.median(np.abs(away), 0)
        print(f"{len(away)} patches, median distance {median[0]:.3f} columns and {median[1]:.3f} lines")
        self.assertGreaterEqual(len(away), 20)
        self.assertTrue((median < 0.06).all(), median)

    def test_stable_ground_that_is_none(self):
        for values, sentence in (np.zeros((0, 5)), "0 lines of 5 columns"), (np.full((4, 4), np.nan), "leaves nothing"):
            np.save(self.path("none.npy"), values)
            with self.assertRaisesRegex(AssertionError, f"(?s)exit status 3.*{sentence}"):
                self.track("--stable", self.path("none.npy"))

    def test_without_stable_ground(self):
        """The plane is found although a third of it is ice."""
        found, _ = self.read(self.track(), "velocity-azimuth")
        expected, _ = self.read(self.out, "velocity-azimuth")
        away = np.nanmax(np.abs(found - expected))
        print(f"without --stable: at most {away:.4f} m/day away")
        self.assertLess(away, 0.01)

    def test_images_far_apart(self):
        """Beyond the search, where nothing moves; chance is no motion."""
        scene = slcs.band_limited(np.random.default_rng(6), (700, 700))
        for name, corner in ("far-ref", (100, 100)), ("far-sec", (190, 30)):
            part = scene[corner[0]:corner[0] + 480, corner[1]:corner[1] + 480]
            np.save(self.path(name + ".npy"), np.ascontiguousarray(300 * part, np.complex64))
        out = self.path("far")
        text = gst_imaging("track", self.path("far-ref.npy"), self.path("far-sec.npy"), "-o", out, "--days", str(DAYS), "--spacing",
                           *map(str, SPACING))
        self.assertNotIn("RuntimeWarning", text)
        found, result = self.read(out, "speed")
        known = np.isfinite(found)
        print(f"far apart: {known.mean():.2f} known, at most {np.nanmax(found):.4f} m/day")
        self.assertGreater(known.mean(), 0.6)
        self.assertLess(np.nanmax(found), 0.01)
        self.assertIn("columns and -88 lines behind the reference", result["warnings"][0])

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_rasters(self):
        for out, suffix in (self.out, ".img.vrt"), (self.track("--stable", self.path("stable.npy"), "--rasters", "tif"), ".tif"):
            dataset = gdal.Open(os.path.join(out, "velocity-range" + suffix))
            expected, result = self.read(self.out, "velocity-range")
            np.testing.assert_array_equal(dataset.ReadAsArray(), expected)
            self.assertEqual(dataset.GetRasterBand(1).GetUnitType(), "m/day")
            t = dataset.GetGeoTransform()  # columns and lines of the reference
            self.assertAlmostEqual(t[0] + 0.5 * t[1] - 0.5, result["columns"][0], delta=0.51)
            self.assertAlmostEqual(t[1], 16)
        self.assertFalse([name for name in os.listdir(out) if ".img" in name])

    def test_the_map_and_what_is_wrong(self):
        with open(os.path.join(self.out, "map.svg"), encoding="ascii") as file:
            text = file.read()
        self.assertIn("m/day", text)
        self.assertIn("500 m, range to the right", text)
        self.assertGreater(text.count("marker-end"), 20)
        size = re.match(r'<svg [^>]*width="(\d+)" height="(\d+)"', text).groups()
        self.assertIn(f'viewBox="0 0 {" ".join(size)}"', text)  # a narrow page shows all of it, with the bars
        for words, status, sentence in [((), 2, "required: --days"), (("--days", "12"), 2, "does not tell its spacing"),
                                        (("--days", "0"), 2, "has to be a number above 0")]:
            printed = gst_imaging("track", self.path("ref.npy"), self.path("sec.npy"), "-o", self.path("no"), *words, status=status)
            self.assertIn(sentence, printed)


class Golden(unittest.TestCase):
    """Against ampcor of isce3: templates of 64 x 32 samples of white noise, whose true offset is 0"""
    FIRST, STEP, TEMPLATE = 20, 32, (64, 32)  # of ampcor: the first sample of a template

    def measure(self, folder):
        """Returns: for each line of the golden file our dy and dx"""
        out = os.path.join(folder, "out")
        gst_imaging("offsets", *(os.path.join(WHITE_NOISE, name + ".PRM") for name in ("ref", "sec")), "-o", out, "mode=precise", "grid=step",
                    "window-width=64", "window-height=32", "step-x=4", "step-y=4", "xsearch=8", "ysearch=8")
        with open(os.path.join(out, "offsets.csv"), encoding="ascii") as file:
            rows = {(int(float(row["x"])), int(float(row["y"]))): (float(row["dy"]), float(row["dx"])) for row in csv.DictReader(file)}
        return np.array([rows[self.FIRST + self.STEP * j + 32, self.FIRST + self.STEP * i + 16] for i, j in self.golden[:, :2].astype(int)])

    @staticmethod
    def oversample(image, factor):
        spectrum = np.fft.fftshift(np.fft.fft2(image))
        wide = np.zeros([factor * n for n in image.shape], complex)
        wide[tuple(slice((factor - 1) * n // 2, (factor - 1) * n // 2 + n) for n in image.shape)] = spectrum
        return np.fft.ifft2(np.fft.ifftshift(wide)) * factor ** 2

    def correlate(self, images, i, j):
        """Normalised cross-correlation of the detected samples in float64, oversampled 2 times; its peak by another 32 times"""
        x, y, search, margin = self.FIRST + self.STEP * j, self.FIRST + self.STEP * i, 4, 8
        t, p = (np.abs(self.oversample(image[y - m:y + 32 + m, x - m:x + 64 + m], 2)[16:-16, 16:-16])
                for image, m in zip(images, (margin, margin + search)))
        t = t - t.mean()
        views = np.lib.stride_tricks.sliding_window_view(p, t.shape)
        mean = views.mean((2, 3))
        score = np.einsum("abij,ij->ab", views, t) / np.sqrt(((views ** 2).mean((2, 3)) - mean ** 2) * t.size * (t ** 2).sum())
        a, b = np.unravel_index(np.argmax(score), score.shape)
        fine = self.oversample(score[a - 4:a + 4, b - 4:b + 4], 32).real[64:192, 64:192]
        peak = np.unravel_index(np.argmax(fine), fine.shape)
        return [(at + n / 32 - 2) / 2 - search for at, n in zip((a, b), peak)]

    @unittest.skipUnless(os.path.exists(os.path.join(WHITE_NOISE, "ampcor_golden.txt")), f"{WHITE_NOISE} is not there; set IMAGING_TEST_DATA")
    def test_ampcor_of_isce3_and_numpy(self):
        self.golden = np.loadtxt(os.path.join(WHITE_NOISE, "ampcor_golden.txt"))
        images = [slcs.read(os.path.join(WHITE_NOISE, name + ".SLC"), 512) for name in ("ref", "sec")]
        with tempfile.TemporaryDirectory() as folder:
            ours = self.measure(folder)
        numpys = np.array([self.correlate(images, i, j) for i, j in self.golden[:, :2].astype(int)])
        theirs = self.golden[:, 2:4]
        for axis, name in enumerate(("azimuth", "range")):
            one, other, third = ours[:, axis], theirs[:, axis], numpys[:, axis]
            print(f"{name}: errors of {len(one)} patches, ours {one.std():.4f}, isce3 {other.std():.4f}, numpy {third.std():.4f}; from numpy: ours "
                  f"{(one - third).std():.4f}, isce3 {(other - third).std():.4f}; from isce3: {(one - other).std():.4f}")
            self.assertLess(one.std(), other.std())
            self.assertLess((one - third).std(), 0.008)
            self.assertLess((one - other).std(), other.std())  # the errors are those of the same patches
            self.assertLess(abs((one - third).mean()), 0.002)


if __name__ == "__main__":
    main()
