# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging insar-dem: layover, shadow and heights in radar coordinates, against a fine search in the planes in which the radar looks."""
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, gst_imaging, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging.command import Failure
from gst_imaging.sar import orbit

spec = importlib.util.spec_from_file_location("flat", os.path.join(os.path.dirname(os.path.abspath(__file__)), "insar-flat.py"))
flat = importlib.util.module_from_spec(spec)
spec.loader.exec_module(flat)

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

LOOKS = 4
CELLS = flat.HEIGHT // LOOKS, flat.WIDTH // LOOKS
POST = 2e-4  # degrees


def latitude_longitude(p):
    """By iterations, in degrees"""
    a, b = flat.AXES
    e2, r = 1 - (b / a) ** 2, np.hypot(p[..., 0], p[..., 1])
    latitude = np.arctan2(p[..., 2], r * (1 - e2))
    for _ in range(8):
        latitude = np.arctan2(p[..., 2] + e2 * a / np.sqrt(1 - e2 * np.sin(latitude) ** 2) * np.sin(latitude), r)
    return np.degrees(latitude), np.degrees(np.arctan2(p[..., 1], p[..., 0]))


@unittest.skipUnless(gdal, "osgeo.gdal is not installed")
class Terrain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = flat.Flat.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        point, _ = flat.true_point(np.zeros((flat.HEIGHT, flat.WIDTH)), flat.AXES)
        latitude, longitude = latitude_longitude(point)
        cls.middle = point[100, 170]
        cls.centre = latitude[100, 170], longitude[100, 170]
        y = np.arange(latitude.max() + 0.05, latitude.min() - 0.05, -POST)
        x = np.arange(longitude.min() - 0.12, longitude.max() + 0.12, POST)
        cls.corner = x[0] - POST / 2, y[0] + POST / 2
        cls.write("dem.tif", cls.height(y[:, None], x[None]))
        flat.Flat.write_gmtsar("ref")
        with open(cls.path("ref.PRM"), "a", encoding="ascii") as file:
            file.write(f"num_rng_bins = {flat.WIDTH}\nSC_clock_start = {2007000 + flat.DAYS + flat.START / 86400:.12f}\n")
        cls.out = cls.path("out")
        gst_imaging("insar-dem", cls.path("dem.tif"), cls.path("ref.PRM"), "-o", cls.out, "--looks", str(LOOKS), str(LOOKS))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def height(cls, latitude, longitude):
        """A steep mountain, whose slope to the radar is in layover and whose other slope is in shadow, and waves"""
        u = (longitude - cls.centre[1]) * np.cos(np.radians(cls.centre[0])) * 111320
        v = (latitude - cls.centre[0]) * 111320
        return 200 + 60 * np.sin(u / 900) * np.cos(v / 700) + 3500 * np.exp(-(u / 700) ** 2 - (v / 900) ** 2)

    @classmethod
    def write(cls, name, values, crs=4326):
        dataset = gdal.GetDriverByName("GTiff").Create(cls.path(name), values.shape[1], values.shape[0], 1, gdal.GDT_Float32)
        dataset.SetGeoTransform((cls.corner[0], POST, 0, cls.corner[1], 0, -POST))
        from osgeo import osr
        reference = osr.SpatialReference()
        reference.ImportFromEPSG(crs)
        dataset.SetProjection(reference.ExportToWkt())
        dataset.GetRasterBand(1).WriteArray(values.astype(np.float32))

    def read(self, name):
        return np.load(os.path.join(self.out, name + ".npy"))

    def truth(self, line):
        """Of the cells of a line: how often the surface is at their range, whether any of it is seen, and its height where it is once"""
        t = flat.START + (LOOKS * line + (LOOKS - 1) / 2) / flat.PRF
        s, v = flat.position("ref", np.array(t)), flat.velocity("ref", np.array(t))
        along = v / np.sqrt(flat.dot(v, v))
        down = -s + flat.dot(s, along) * along
        down /= np.sqrt(flat.dot(down, down))
        side = np.cross(down, along)

        def above(ranges, angles):
            point = s + ranges[..., None] * (np.cos(angles)[..., None] * down + np.sin(angles)[..., None] * side)
            return flat.height_above(point, flat.AXES) - self.height(*latitude_longitude(point))

        step = flat.C / 2 / flat.RATE
        columns = LOOKS * np.arange(CELLS[1]) + (LOOKS - 1) / 2
        away = self.middle - s
        angles = np.arctan2(flat.dot(away, side), flat.dot(away, down)) + np.linspace(-0.025, 0.025, 2000)
        first = np.full(angles.shape, np.inf)  # the range at which each ray meets the surface: by all ranges of the image and around it
        for ranges in flat.NEAR + step * np.arange(-500, flat.WIDTH + 100):
            below = above(np.full(angles.shape, ranges), angles) < 0
            first = np.where(below & np.isinf(first), ranges, first)
        count, seen, height = np.zeros(CELLS[1], int), np.zeros(CELLS[1], bool), np.zeros(CELLS[1])
        for j, ranges in enumerate(flat.NEAR + step * columns):
            found = above(np.full(angles.shape, ranges), angles)
            roots = np.flatnonzero(found[:-1] * found[1:] < 0)
            count[j] = len(roots)
            seen[j] = (np.maximum(first[roots], first[roots + 1]) > ranges - 2 * step).any()  # the rays on both sides
            if len(roots):
                part = found[roots[0]] / (found[roots[0]] - found[roots[0] + 1])
                angle = angles[roots[0]] + part * (angles[1] - angles[0])
                point = s + ranges * (np.cos(angle) * down + np.sin(angle) * side)
                height[j] = self.height(*latitude_longitude(point))
        return count, seen, height

    def test_layover_shadow_and_heights(self):
        state, heights = self.read("layover-shadow"), self.read("heights")
        self.assertEqual(state.shape, CELLS)
        wrong, layover, shadow, away = [], [], [], []
        for line in range(2, CELLS[0], 6):
            count, seen, height = self.truth(line)
            self.assertTrue((count > 0).all())
            expected = np.where(count > 1, 1, 0) + np.where(seen, 0, 2)
            wrong.append(state[line] != expected)
            layover.append(count > 1)
            shadow.append(~seen)
            away.append((heights[line] - height)[(count == 1) & (state[line] == 0)])
        wrong, layover, shadow, away = np.array(wrong), np.array(layover), np.array(shadow), np.concatenate(away)
        print(f"layover {layover.mean():.3f}, shadow {shadow.mean():.3f} of the cells; {wrong.mean():.4f} differ; heights {np.abs(away).max():.2f} m, "
              f"{np.sqrt((away ** 2).mean()):.3f} m rms")
        self.assertGreater(layover.mean(), 0.02)
        self.assertGreater(shadow.mean(), 0.003)
        self.assertLess(wrong.mean(), 0.012)  # cells at the edge of a layover
        self.assertLess(np.sqrt((away ** 2).mean()), 1)

    def test_files_fit_together(self):
        state, mask = self.read("layover-shadow"), self.read("mask")
        np.testing.assert_array_equal(mask, state == 0)
        heights, latitude, longitude = (self.read(name) for name in ("heights", "latitude", "longitude"))
        away = np.abs(self.height(latitude, longitude) - heights)[state == 0]
        self.assertLess(np.median(away), 0.5)
        with open(os.path.join(self.out, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertAlmostEqual(result["layover"], 100 * (state & 1).mean(), delta=0.01)

    def test_holes_of_the_dem_are_outside(self):
        with_holes = gdal.Open(self.path("dem.tif")).ReadAsArray()
        with_holes[:, int((self.centre[1] - self.corner[0]) / POST) + 100:] = -32768  # behind the mountain
        self.write("holes.tif", with_holes)
        printed = gst_imaging("insar-dem", self.path("holes.tif"), self.path("ref.PRM"), "-o", self.path("holes"), "--looks", str(LOOKS), str(LOOKS))
        self.assertNotIn("Warning", printed)
        state, heights, latitude = (np.load(os.path.join(self.path("holes"), name + ".npy")) for name in ("layover-shadow", "heights", "latitude"))
        self.assertTrue(0.1 < (state == 255).mean() < 0.9, (state == 255).mean())
        np.testing.assert_array_equal(state == 255, np.isnan(heights))
        self.assertTrue(np.isfinite(latitude).all())
        with_holes[with_holes == -32768] = 150  # what is no data may look as a height
        self.write("same.tif", with_holes)
        dataset = gdal.Open(self.path("same.tif"), gdal.GA_Update)
        dataset.GetRasterBand(1).SetNoDataValue(150)
        del dataset
        gst_imaging("insar-dem", self.path("same.tif"), self.path("ref.PRM"), "-o", self.path("same"), "--looks", str(LOOKS), str(LOOKS))
        np.testing.assert_array_equal(np.load(os.path.join(self.path("same"), "layover-shadow.npy")), state)
        with_holes[:] = -32768
        self.write("nothing.tif", with_holes)
        self.assertIn("no height where the image is", gst_imaging("insar-dem", self.path("nothing.tif"), self.path("ref.PRM"), "-o", self.path("no"),
                                                                  status=1))

    def write_orbit(self, name, last):
        """The image with an orbit that ends at another time"""
        times = last - 10 * np.arange(13)[::-1]
        rows = np.hstack((flat.position("ref", times), flat.velocity("ref", times)))
        with open(self.path(name + ".LED"), "w", encoding="ascii") as file:
            file.write(f"{len(times)} 2007 {flat.DAYS} {times[0]:.6f} 10\n")
            file.writelines(f"2007 {flat.DAYS} {t:.6f} {' '.join(f'{value:.8f}' for value in row)}\n" for t, row in zip(times, rows))
        with open(self.path("ref.PRM"), encoding="ascii") as file, open(self.path(name + ".PRM"), "w", encoding="ascii") as made:
            made.write(file.read().replace("ref.LED", name + ".LED"))

    def test_an_orbit_that_ends_early_is_refused(self):
        """As by insarform, in the same words. An orbit that ends with the last line is enough."""
        words = "--looks", str(LOOKS), str(LOOKS)
        self.write_orbit("short", flat.START - 45)
        first, last = (86400 * flat.DAYS + flat.START - before for before in (165, 45))
        told = gst_imaging("insar-dem", self.path("dem.tif"), self.path("short.PRM"), "-o", self.path("no"), *words, status=1)
        self.assertIn(f"short.PRM is of the time {86400 * flat.DAYS + flat.START:.6f} s, and its state vectors are of {first:.6f} to {last:.6f} s. "
                      "Take a longer orbit.", told)
        good, short = (orbit.Image(self.path(name + ".PRM")) for name in ("ref", "short"))
        with self.assertRaisesRegex(Failure, "The state vectors of .*short.PRM, of .* do not pass what is in the middle of .*ref.PRM. Take"):
            orbit.perpendicular(good, short)
        self.write_orbit("enough", flat.START + flat.HEIGHT / flat.PRF)
        gst_imaging("insar-dem", self.path("dem.tif"), self.path("enough.PRM"), "-o", self.path("enough"), *words)
        away = np.load(os.path.join(self.path("enough"), "heights.npy")) - self.read("heights")
        print(f"heights by an orbit that ends with the image: {np.abs(away).max():.2g} m")
        self.assertLess(np.abs(away).max(), 0.1)

    def test_what_is_wrong_is_said(self):
        small = np.zeros((40, 40))
        self.write("utm.tif", small, 32632)
        self.write("away.tif", small)
        dataset = gdal.Open(self.path("away.tif"), gdal.GA_Update)
        dataset.SetGeoTransform((100, POST, 0, 10, 0, -POST))
        del dataset
        np.save(self.path("plain.npy"), small)
        for name, status, sentence in (("utm.tif", 3, "gdalwarp -t_srs EPSG:4326"), ("plain.npy", 3, "no DEM in longitude"),
                                       ("away.tif", 1, "The DEM covers 100.0001 to")):
            self.assertIn(sentence, gst_imaging("insar-dem", self.path(name), self.path("ref.PRM"), "-o", self.path("no"), status=status))


if __name__ == "__main__":
    main()
