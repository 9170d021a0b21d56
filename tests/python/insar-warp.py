# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pairs whose offsets are no plane, or far away: gst-imaging coregister and the offsets that slcresample reads."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, gst_imaging, launch, main

sys.path[:0] = os.path.join(SOURCE, "pipelines"), os.path.join(SOURCE, "tests", "data")
import slcs
from gst_imaging.sar import warp

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

N, LOOKS = 400, 4
COHERENCE = 0.9


def hill(r, a):
    """Offsets in columns and lines: 4 and 1.5, 40 wide at half of their height."""
    d = np.exp(-((r - 210) ** 2 + (a - 190) ** 2) / (2 * 17 ** 2))
    return 4 * d, -1.5 * d


def bowl(r, a):
    """Up to third order, as a polynomial of slcresample."""
    x, y = r / N, a / N
    return 3 * x * x - 2 * x * y + 1.5 * y ** 3, x - 2 * y * y + x * x * y


BOWL = ([0, 0, 0, -2 / N**2, 3 / N**2, 0, 0, 0, 0, 1.5 / N**3], [0, 1 / N, 0, 0, 0, -2 / N**2, 0, 1 / N**3, 0, 0])


def warped(image, offsets, shift=(0, 0)):
    """What is at (r, a) of the image, which has MARGIN samples around it, is at (r, a) + offsets (r, a) + shift."""
    y, x = np.mgrid[:N, :N].astype(float)
    x, y = x - shift[0], y - shift[1]
    r, a = x.copy(), y.copy()
    for _ in range(60):
        dr, da = offsets(r, a)
        r, a = x - dr, y - da
    return slcs.warp(image, np.clip(r + slcs.MARGIN, 8, image.shape[1] - 9), np.clip(a + slcs.MARGIN, 8, image.shape[0] - 9))


class Pairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        rng = np.random.default_rng(3)
        shape = (N + 2 * slcs.MARGIN,) * 2
        y, x = np.mgrid[:shape[0], :shape[1]] - slcs.MARGIN
        cls.phase = 6 * np.pi * np.exp(-((x - 200) ** 2 + (y - 210) ** 2) / (2 * 90 ** 2))
        cls.ground = slcs.band_limited(rng, shape)
        noise = slcs.band_limited(rng, shape)
        cls.later = (COHERENCE * cls.ground + np.sqrt(1 - COHERENCE ** 2) * noise) * np.exp(-1j * cls.phase)
        cls.save("ref", cls.inner(cls.ground))
        cls.save("hill", warped(cls.later, hill, (3.4, -2.3)))
        cls.save("bowl", warped(cls.later, bowl))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def save(cls, name, image):
        np.save(cls.path(name + ".npy"), np.ascontiguousarray(300 * image, np.complex64))

    @staticmethod
    def inner(image):
        return image[slcs.MARGIN:-slcs.MARGIN, slcs.MARGIN:-slcs.MARGIN]

    def check(self, found, coherence, name):
        """found: an interferogram of LOOKS x LOOKS; the truth: that of the secondary before it was warped"""
        pair = self.inner(self.ground) * np.conj(self.inner(self.later))
        truth = pair.reshape(N // LOOKS, LOOKS, N // LOOKS, LOOKS).mean((1, 3))
        middle = np.s_[8:-8, 8:-8]
        away = np.angle(found * np.conj(truth))[middle]
        mean = coherence[middle].mean()
        print(f"{name}: coherence {mean:.4f}, fringes {np.sqrt((away ** 2).mean()):.4f} rad rms from numpy's")
        self.assertLess(abs(mean - COHERENCE), 0.02)
        self.assertLess(np.sqrt((away ** 2).mean()), 0.1)
        near = np.s_[190 // LOOKS - 5:190 // LOOKS + 5, 210 // LOOKS - 5:210 // LOOKS + 5]  # the top and the slopes of the hill
        print(f"    on the hill {coherence[near].mean():.4f}")
        self.assertLess(abs(coherence[near].mean() - COHERENCE), 0.03)

    def read(self, folder):
        shape = N // LOOKS, N // LOOKS
        return (np.fromfile(os.path.join(folder, "interferogram.cf32"), "<c8").reshape(shape),
                np.fromfile(os.path.join(folder, "coherence.img"), "<f4").reshape(shape))

    def coregister(self, name, *words):
        out = tempfile.mkdtemp(dir=self.folder)
        gst_imaging("coregister", self.path("ref.npy"), self.path(name + ".npy"), "-o", out, "--overwrite", "--looks", "4", "4",
                    "--window", "5", "5", "--interferogram", "--rasters", "img", "--flatten", "measured", *words)
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            return out, json.load(file)

    def test_a_hill_of_4_pixels(self):
        out, result = self.coregister("hill", "--warp")
        self.assertEqual(len(result["warp"]), 3)
        self.check(*self.read(out), "hill, --warp")
        offsets = np.load(os.path.join(out, "range-offsets.npy"))
        self.assertTrue(np.isfinite(offsets).all())
        _interferogram, plain = self.read(self.coregister("hill")[0])
        self.assertLess(plain[42:53, 47:58].mean(), 0.6)  # a plane does not follow it

    def form(self, secondary, *words):
        launch("-q", "slcsrc", "location=" + self.path("ref.npy"), "!", "i.reference", "slcsrc",
               "location=" + self.path(secondary + ".npy"), "!", "slcresample", *words, "!", "i.secondary", "insarform", "name=i",
               "looks-x=4", "looks-y=4", "flatten=measured", "restore-phase=true",
               "interferogram-location=" + self.path("interferogram.cf32"), "coherence-location=" + self.path("coherence.img"))
        return self.read(self.folder)

    def test_an_edge(self):
        """A block has moved by 6 columns beside ground that has not, which is steeper than slcresample follows."""
        later = self.inner(self.later).copy()
        later[180:340, 180:340] = self.inner(self.later)[180:340, 174:334]
        self.save("edge", later)
        out, result = self.coregister("edge", "--warp")
        coherence = self.read(out)[1]
        for name, place in ("block", np.s_[210:310, 210:310]), ("beside it", np.s_[20:380, 20:140]):
            mean = coherence[tuple(slice(s.start // LOOKS, s.stop // LOOKS) for s in place)].mean()
            print(f"{name}: coherence {mean:.4f}")
            self.assertLess(abs(mean - COHERENCE), 0.03)
        told = [figure["about"] for figure in result["figures"] if figure["name"] == "dense patches used, pass 3"]
        self.assertRegex(told[0], r"[1-9]\d* too steep")

    def test_a_few_patches_that_agree_by_chance(self):
        """Patches overlap, so noise without coherence has neighbours that agree. Corners of what is good stay."""
        planes = np.zeros((8, 20, 20))
        planes[7, :, 10:] = 1
        planes[0, 9:11, 15:17], planes[7, 9:11, 15:17] = -5, 0
        good, counts = warp.cull(np, planes)
        self.assertTrue(good[:, :10].all())
        self.assertFalse(good[:, 10:].any())
        self.assertEqual((counts["outliers"], counts["alone"]), (0, 4))

    def test_chance_beside_what_is_good(self):
        """Patches at the edge of a forest, of a generated pair: the spread that is allowed is not that of the noise."""
        none = np.nan
        columns = [[0, 0, -0.1, none, none], [none, -0.2, none, none, none], [none, none, -2.8, none, none], [none, 2.4, -2.9, none, none],
                   [none, -2.4, none, none, -5.3]]
        lines = [[-0.1, -0.1, -0.1, none, none], [none, -0.2, none, none, none], [none, none, -4.1, none, none], [none, 0.9, -6.1, none, none],
                 [none, -6.2, none, none, 6.3]]
        planes = np.zeros((8, 5, 5))
        planes[:2] = np.nan_to_num([columns, lines])
        planes[7] = np.isnan(columns)
        self.assertFalse(warp.cull(np, planes)[0][2:].any())

    def test_polynomials(self):
        words = [f"{axis}-polynomial=<{','.join(repr(float(c)) for c in p)}>" for axis, p in zip(("range", "azimuth"), BOWL)]
        self.check(*self.form("bowl", *words), "polynomial")

    def planes(self, size):
        """The true offsets of the hill in cells of size x size."""
        at = (np.arange(N // size) + 0.5) * size - 0.5
        return [plane.astype(np.float32) for plane in hill(at[None, :], at[:, None])]

    def test_arrays(self):
        for name, plane in zip(("r", "a"), self.planes(8)):
            np.save(self.path(name + ".npy"), plane)
        words = "shift-r=3.4", "shift-a=-2.3", "range-offsets=" + self.path("r.npy"), "azimuth-offsets=" + self.path("a.npy")
        self.check(*self.form("hill", *words), "arrays")

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_rasters(self):
        """.grd of GMTSAR (first row: first line), and an image of offsets with holes, as ISCE2 writes them."""
        for name, plane in zip(("r", "a"), self.planes(8)):
            dataset = gdal.GetDriverByName("GTiff").Create(self.path(name + ".tif"), plane.shape[1], plane.shape[0], 1, gdal.GDT_Float32)
            dataset.SetGeoTransform((0, 8, 0, N, 0, -8))
            dataset.GetRasterBand(1).WriteArray(plane)
            dataset = None
            gdal.Translate(self.path(name + ".grd"), self.path(name + ".tif"), format="netCDF")
        words = "shift-r=3.4", "shift-a=-2.3", "range-offsets=" + self.path("r.grd"), "azimuth-offsets=" + self.path("a.grd")
        self.check(*self.form("hill", *words), ".grd")
        for name, plane in zip(("r", "a"), self.planes(1)):
            plane[::17, 1:300:5] = -999999
            dataset = gdal.GetDriverByName("ISCE").Create(self.path(name + ".off"), N, N, 1, gdal.GDT_Float32)
            dataset.GetRasterBand(1).WriteArray(plane)
            dataset = None
        words = "shift-r=3.4", "shift-a=-2.3", "range-offsets=" + self.path("r.off"), "azimuth-offsets=" + self.path("a.off")
        self.check(*self.form("hill", *words), ".off")

    def test_what_is_wrong_is_said(self):
        np.save(self.path("none.npy"), np.full((4, 4), np.nan, np.float32))
        np.save(self.path("wild.npy"), np.random.default_rng(1).uniform(-50, 50, (40, 40)).astype(np.float32))
        np.save(self.path("small.npy"), np.zeros((7, 7), np.float32))
        for words, sentence in {
                ("range-offsets=" + self.path("none.npy"),): "has no offset in 4 x 4 pixels",
                ("range-offsets=" + self.path("wild.npy"),): "changes by more than 0.25",
                ("range-offsets=" + self.path("small.npy"), "azimuth-offsets=" + self.path("wild.npy")): "both must cover",
                ("azimuth-polynomial=<1,2,3,4,5,6,7,8,9,10,11>",): "azimuth-polynomial has 11 numbers",
                ("range-offsets=" + self.path("missing.npy"),): "missing.npy"}.items():
            with self.subTest(words=words):
                self.assertIn(sentence, launch("slcsrc", "location=" + self.path("hill.npy"), "!", "slcresample", *words, "!",
                                               "fakesink", status=1))

    def test_images_far_apart(self):
        """1530 columns and -300 lines, found by itself."""
        rng = np.random.default_rng(8)

        def noise(*shape):
            return rng.normal(size=shape) + 1j * rng.normal(size=shape)

        bright = np.exp(0.5 * slcs.smooth(rng, (1100, 2400), 25))
        reference, secondary = noise(1100, 2400) * bright, noise(1500, 2400)
        secondary[:800, 1530:] = reference[300:, :870]
        self.check_shift(reference, secondary, 1530, -300)

    def test_mountains_far_apart(self):
        """Slopes that are bright or dark over hundreds of samples correlate at many shifts, the ground at one."""
        rng = np.random.default_rng(9)
        ground = rng.normal(size=(1500, 680)) + 1j * rng.normal(size=(1500, 680))
        ground *= np.exp(0.6 * slcs.smooth(rng, ground.shape, 60))
        self.check_shift(ground[:1280, :640], ground[213:1493, 39:679], -39, -213)

    def test_fields_far_apart(self):
        """Fields with sharp edges correlate with other fields in most patches. A fifth of the images overlaps."""
        rng = np.random.default_rng(5)
        fields = np.kron(rng.gamma(1.5, 1, size=(70, 24)), np.ones((40, 30)))[:2750, :700] ** 0.5
        ground, noise = (fields * slcs.band_limited(rng, fields.shape) for _ in range(2))
        later = 0.9 * ground + 0.44 * noise
        self.check_shift(ground[:1500, :600], later[1230:2730, 70:670], -70, -1230)

    def check_shift(self, reference, secondary, columns, lines):
        self.save("far-ref", reference)
        self.save("far-sec", secondary)
        out = tempfile.mkdtemp(dir=self.folder)
        gst_imaging("offsets", self.path("far-ref.npy"), self.path("far-sec.npy"), "-o", out, "--overwrite")
        with open(os.path.join(out, "fit.txt"), encoding="ascii") as file:
            fit = dict(map(str.strip, line.split("=")) for line in file)
        self.assertAlmostEqual(float(fit["rshift"]) + float(fit["sub_int_r"]), columns, delta=0.1)
        self.assertAlmostEqual(float(fit["ashift"]) + float(fit["sub_int_a"]), lines, delta=0.1)


if __name__ == "__main__":
    main()
