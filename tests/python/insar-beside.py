# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rasters beside the images of gst-imaging insar: --dem, --mask, LAT and LON of another shape, unit or scene, and places without a value."""
import os
import shutil
import sys
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, FolderCase, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging.command import Failure
from gst_imaging.sar import geocode, places, rasters

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

WIDTH, HEIGHT = SIZE = 320, 200
LOOKS = 4, 2
Y, X = np.mgrid[:HEIGHT, :WIDTH] + 0.0
HEIGHTS = 900 * np.exp(-((X - 160) / 70) ** 2 - ((Y - 100) / 70) ** 2)
HOLE = (Y >= 50) & (Y < 90) & (X >= 20) & (X < 80)
LATITUDE, LONGITUDE = 45 + 1e-4 * Y + 2e-5 * X, 7 + 1e-4 * X - 2e-5 * Y


class Beside(FolderCase):
    def setUp(self):
        super().setUp()
        self.told = []

    def save(self, values, name="raster.npy"):
        np.save(self.path(name), values)
        return self.path(name)

    def save_tif(self, values, transform=None, epsg=None, no_data=None):
        dataset = gdal.GetDriverByName("GTiff").Create(self.path("raster.tif"), values.shape[1], values.shape[0], 1, gdal.GDT_Float32)
        if transform:
            dataset.SetGeoTransform(transform)
        if epsg:
            from osgeo import osr
            reference = osr.SpatialReference()
            reference.ImportFromEPSG(epsg)
            dataset.SetProjection(reference.ExportToWkt())
        if no_data is not None:
            dataset.GetRasterBand(1).SetNoDataValue(no_data)
        dataset.GetRasterBand(1).WriteArray(values)
        return self.path("raster.tif")

    def check_dem(self, path, size=SIZE):
        self.told = []
        rasters.check_dem(path, size, LOOKS, self.folder, self.told.append)

    def read_mask(self, values):
        self.told = []
        return rasters.read_mask(self.save(values), SIZE, LOOKS, self.folder, self.told.append)

    def refuse(self, sentence, function, *words):
        with self.assertRaisesRegex(Failure, sentence):
            function(*words)

    def test_shapes(self):
        for good in HEIGHTS, HEIGHTS[::2, ::4], HEIGHTS[::8, ::8], np.array([[1.0]]):
            self.check_dem(self.save(good))
            self.assertEqual(self.told, [])
        for bad, sentence in ((HEIGHTS.T, "320 lines of 200 columns, and the image 200 of 320: lines and columns are exchanged"),
                              (HEIGHTS[::2, ::4].T, "80 lines of 100 columns, and the image 200 of 320: lines and columns are exchanged"),
                              (np.ones((128, 80)), "lines and columns are exchanged"), (np.ones((0, 5)), "0 lines of 5 columns"),
                              (np.ones((2, HEIGHT, WIDTH)), "it has 3 axes"), (HEIGHTS + 0j, "complex samples")):
            self.refuse(sentence, self.check_dem, self.save(bad))
            self.refuse(sentence, self.read_mask, bad)
        self.check_dem(self.save(np.ones((500, 100))))
        self.assertIn("the proportions differ", self.told[0])
        self.check_dem(self.save(np.ones((50, 100))), (100, 100))  # of 1 x 2 looks
        self.assertEqual(self.told, [])
        self.check_dem(self.save(np.ones((200, 100))), (200, 400))  # of 2 x 2 looks, the shape of transposed cells of 4 x 2 looks
        self.assertEqual(self.told, [])
        self.refuse("are exchanged", self.check_dem, self.save(np.ones((201, 200))), (201, 200))
        self.check_dem(self.save(np.ones((100, 200))), (200, 400))  # 1 x 4 looks, or transposed
        self.assertIn("the proportions differ", self.told[0])

    def test_a_mask_keeps_something(self):
        mask = np.ones((HEIGHT, WIDTH), np.float32)
        mask[:20], mask[20:40] = np.nan, 0
        wanted = self.read_mask(mask)
        self.assertEqual((wanted[:40].any(), wanted[40:].all()), (False, True))
        for empty in 0 * mask, np.zeros((HEIGHT, WIDTH), bool):
            self.refuse("leaves nothing", self.read_mask, empty)

    def test_voids_of_a_dem(self):
        for void in -32768, -9999, 9001, np.inf:
            self.refuse(f"6.2 % of the samples of .* are no heights of -1000 to 9000 m, as {void}.*numpy.where",
                        self.check_dem, self.save(np.where(X < 20, void, HEIGHTS)))
        self.check_dem(self.save(np.where(HOLE, np.nan, HEIGHTS)))
        self.refuse("it has no heights", self.check_dem, self.save(HEIGHTS * np.nan))

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_rasters_of_gdal(self):
        holes = np.where(HOLE, -9999, HEIGHTS)
        self.check_dem(self.save_tif(holes, no_data=-9999))
        self.refuse("as -9999.*gdal_translate -a_nodata", self.check_dem, self.save_tif(holes))
        for transform in (0, 1, 0, 0, 0, 1), (0, 1, 0, HEIGHT, 0, -1), (0, 1, 0, 1, 0, 1):
            self.check_dem(self.save_tif(HEIGHTS, transform))
            self.assertEqual(self.told, [])
        self.check_dem(self.save_tif(HEIGHTS[:100, :160], (0, 1, 0, 0, 0, 1)))
        self.assertRegex(self.told[0], "covers columns 0 to 160 and lines 0 to 100 .*, 25 % of the image .* the heights of the edge are continued")
        for transform, epsg, sentence in (((7, 1 / 3600, 0, 46, 0, -1 / 3600), None, "covers columns 7 to 7.0"), ((1000, 1, 0, 0, 0, 1), None, " 0 % of the"),
                                          ((7, 1 / 3600, 0, 46, 0, -1 / 3600), 4326, "in map coordinates"), ((0, 1, 0.5, 0, 0.3, 1), None, "rotated")):
            path = self.save_tif(HEIGHTS, transform, epsg)
            self.refuse(sentence, self.check_dem, path)
            if epsg or transform[2]:
                self.refuse(sentence, self.prepare, path, path.replace("tif", "TIF"))

    def prepare(self, latitude, longitude, size=SIZE, image=None):
        self.told = []
        paths = [values if isinstance(values, str) else self.save(values, name + ".npy") for name, values in (("lat", latitude), ("lon", longitude))]
        return places.prepare(paths, image, size, LOOKS, self.folder, self.told.append)

    def test_places(self):
        self.prepare(LATITUDE, LONGITUDE)
        self.prepare(LATITUDE[::8, ::8], LONGITUDE[::8, ::8])
        self.prepare(LATITUDE, LONGITUDE - 7 + 359.99)  # across Greenwich
        self.prepare(44 + Y[:10, :10] / 5, 7 + X[:10, :10] / 5, (20000, 20000))  # coarse
        self.assertEqual(self.told, [])
        rng = np.random.default_rng(1)
        for latitude, longitude, sentence in (
                (LATITUDE.T, LONGITUDE.T, "lines and columns are exchanged"), (LATITUDE[:80], LONGITUDE, "LAT and LON differ in size"),
                (np.radians(LATITUDE), np.radians(LONGITUDE), "are in radians"), (LATITUDE, LATITUDE, "have the same values"),
                (rng.uniform(-90, 90, LATITUDE.shape), rng.uniform(-180, 180, LATITUDE.shape), "no places of an image"),
                (0 * LATITUDE + 45, 0 * LONGITUDE + 7, "All LAT of .* are 45"), (0 * LATITUDE, LONGITUDE, "All LAT of .* are 0"),
                (0 * LATITUDE, 0 * LONGITUDE, "No places are in"), (LATITUDE * np.nan, LONGITUDE, "No places are in"),
                (LATITUDE, LONGITUDE + 360, "No places are in")):
            self.refuse(sentence, self.prepare, latitude, longitude)
        self.refuse("LAT and LON are one file", self.prepare, self.save(LATITUDE), self.path("raster.npy"))
        self.refuse("The map would have .*e.1[0-9] cells, and at most 1e.09 are made", self.prepare, np.where(X * Y == 7, 85, LATITUDE),
                    np.where(X * Y == 7, 100, LONGITUDE))

    @unittest.mock.patch("gst_imaging.sar.corners.check", lambda *_words: None)  # here are no orbits, but places
    def test_radians_by_the_orbit(self):
        """Steps as large as those of an image in degrees are in radians where the orbit tells, and places near 0 are degrees."""
        def at(latitude, longitude):
            a, b = np.radians((latitude, longitude))
            return unittest.mock.Mock(point=lambda: 6371e3 * np.array([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)]))

        large = [np.radians(40 + (values - 45) * 10) for values in (LATITUDE, LONGITUDE + 38)]
        self.refuse("are in radians", self.prepare, *large, SIZE, at(40, 40))
        self.prepare(*large)
        self.assertEqual(self.told, [])
        for scale in 1, 0.01:
            self.prepare(*(1 + (values - values[100, 160]) * scale for values in (LATITUDE, LONGITUDE)), SIZE, at(1, 1))
            self.assertEqual(self.told, [])
        self.refuse("are in radians", self.prepare, np.radians(LATITUDE), np.radians(LONGITUDE), SIZE, at(20, 80))
        self.prepare(LATITUDE, LONGITUDE, SIZE, at(20, 80))
        self.assertIn("of this reference?", self.told[0])

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_a_file_that_is_no_raster(self):
        with open(self.path("text"), "w", encoding="ascii") as file:
            file.write("no raster")
        self.refuse('text" is no raster that GDAL opens.$', self.prepare, self.path("text"), LONGITUDE)

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_maps_with_holes_and_across_the_date_line(self):
        """Each cell of the map has the number of the cell of the image at its place."""
        class Made:
            path = staticmethod(self.path)

        cells = np.arange(WIDTH * HEIGHT, dtype="<f4").reshape(HEIGHT, WIDTH)
        cells.tofile(self.path("phase.img"))
        hole = HOLE | (Y < 5)
        for void in np.nan, 0:
            east = (LONGITUDE - 7 + 179.99 + 180) % 360 - 180
            made = self.prepare(np.where(hole, void, LATITUDE), np.where(hole, void, east))
            self.assertRegex(self.told[0], "^6.2 % of the samples of LAT and LON are no places")
            geocode.geocode(Made, ["phase"], made, {"width": WIDTH, "height": HEIGHT}, np.ones(cells.shape, bool), self.folder)
            dataset = gdal.Open(self.path("geo-phase.tif"))
            found, t = dataset.ReadAsArray(), dataset.GetGeoTransform()
            self.assertLess(found.size, 2 * cells.size)
            known = np.isfinite(found)
            at = found[known].astype(int)
            self.assertAlmostEqual(known.sum() * t[1] ** 2 / (1.04e-8 * (~hole).sum()), 1, 1)
            self.assertFalse(hole.ravel()[at].any())
            line, column = np.nonzero(known)
            self.assertLess(np.abs(t[0] + (column + 0.5) * t[1] - (LONGITUDE + 172.99).ravel()[at]).max(), 2e-4)
            self.assertLess(np.abs(t[3] + (line + 0.5) * t[5] - LATITUDE.ravel()[at]).max(), 2e-4)


if __name__ == "__main__":
    main()
