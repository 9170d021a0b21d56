# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging mosaic: chunks by several jobs at once, compared with sums in NumPy; what is read without GDAL; a Cloud Optimized GeoTIFF."""
import csv
import json
import os
import shutil
import subprocess
import sys
import zlib

import numpy as np

from jobtable import install_command
from support import FolderCase, main, recipe, run_command

try:
    from osgeo import gdal, osr
except ImportError as error:
    print(f"{error}: Debian's python3-gdal is missing.")
    sys.exit(77)
gdal.UseExceptions()

PIXEL, LEFT, TOP = 20, 500000, 5000000
# column and row of the corner in the mosaic, width, height
PLACES = [(30, 20, 61, 47), (0, 0, 50, 40), (75, 33, 40, 60)]
WIDTH, HEIGHT = 115, 93


class Mosaic(FolderCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(4)
        self.values = [rng.normal(10, 3, (height, width)).astype(np.float32) for _x, _y, width, height in PLACES]
        for values, (x, y, _width, _height) in zip(self.values, PLACES):
            values[5:9, 7:12] = np.nan
            self.write(f"out/{x}/coherence.tif", values, x, y)

    def write(self, name, values, x, y, no_data=None, epsg=32632, pixel=PIXEL):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        raster = gdal.GetDriverByName("GTiff").Create(self.path(name), values.shape[1], values.shape[0], 1,
                                                      gdal.GDT_CFloat32 if np.iscomplexobj(values) else gdal.GDT_Float32)
        raster.SetGeoTransform((LEFT + x * PIXEL, pixel, 0, TOP - y * PIXEL, 0, -pixel))
        if epsg:
            system = osr.SpatialReference()
            system.ImportFromEPSG(epsg)
            raster.SetProjection(system.ExportToWkt())
        if no_data is not None:
            raster.GetRasterBand(1).SetNoDataValue(no_data)
        raster.GetRasterBand(1).WriteArray(values)

    def run_imaging(self, *words, status=0):
        done = run_command(*words, folder=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def expected(self, overlap="mean"):
        layers = np.full((len(PLACES), HEIGHT, WIDTH), np.nan)
        for layer, values, (x, y, width, height) in zip(layers, self.values, sorted(PLACES, key=PLACES.index)):
            layer[y:y + height, x:x + width] = values
        order = [PLACES.index(place) for place in sorted(PLACES, key=lambda place: str(place[0]))]  # as the shell lists them
        layers = layers[order]
        if overlap == "mean":
            count = np.isfinite(layers).sum(0)
            return (np.nansum(layers, 0) / np.where(count, count, np.nan)).astype(np.float32)
        result = np.full((HEIGHT, WIDTH), np.nan, np.float32)
        for layer in layers if overlap == "last" else layers[::-1]:
            result = np.where(np.isfinite(layer), layer, result)
        return result

    def rasters(self):
        return [f"out/{x}/coherence.tif" for x in sorted(str(place[0]) for place in PLACES)]

    def read_chunks(self, size):
        """Without GDAL: files of zlib, as the metadata of Zarr tell."""
        with open(self.path("mosaic/mosaic.zarr/mosaic/.zarray"), encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual((told["zarr_format"], told["dtype"], told["shape"], told["chunks"], told["compressor"]["id"]),
                         (2, "<f4", [HEIGHT, WIDTH], [size, size], "zlib"))
        result = np.full((-(-HEIGHT // size) * size, -(-WIDTH // size) * size), np.nan, np.float32)
        for name in os.listdir(self.path("mosaic/mosaic.zarr/mosaic")):
            if not name.startswith("."):
                row, column = map(int, name.split("."))
                with open(self.path("mosaic/mosaic.zarr/mosaic", name), "rb") as file:
                    values = np.frombuffer(zlib.decompress(file.read()), "<f4").reshape(size, size)
                result[row * size:(row + 1) * size, column * size:(column + 1) * size] = values
        return result[:HEIGHT, :WIDTH]

    def test_the_recipe_with_several_jobs_at_once(self):
        tools = install_command(self.path("bin"))
        plan, fill, last = recipe("mosaics", "sh").replace("--chunk 1024", "--chunk 32").splitlines()
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

        def start(command):
            return subprocess.Popen(command, shell=True, cwd=self.folder, env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)

        def end(process, status=0):
            out = process.communicate(timeout=100)[0]
            self.assertEqual(process.returncode, status, out)
            return out

        end(start(plan))
        with open(self.path("mosaic/jobs.csv"), encoding="utf-8") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 11)  # of 3 x 4: lower left there is nothing
        self.assertIn("11 of 11 chunks are missing", end(start(last), 3))
        for process in [start(f"{fill} --shard {i}/3") for i in (1, 2, 3)]:
            end(process)
        np.testing.assert_array_equal(self.read_chunks(32), self.expected())
        end(start(last))
        cog = gdal.Open(self.path("map/mosaic.tif"))
        np.testing.assert_array_equal(cog.ReadAsArray(), self.expected())
        self.assertEqual(cog.GetGeoTransform(), (LEFT, PIXEL, 0, TOP, 0, -PIXEL))
        self.assertEqual(cog.GetSpatialRef().GetAuthorityCode(None), "32632")
        self.assertEqual(cog.GetMetadata("IMAGE_STRUCTURE")["LAYOUT"], "COG")
        self.assertTrue(np.isnan(cog.GetRasterBand(1).GetNoDataValue()))

    def fill(self, *words):
        self.run_imaging("mosaic", *self.rasters(), "-o", "mosaic", "--chunk", "64", *words)
        return json.loads(self.run_imaging("batch", "mosaic/jobs.csv", "--json").splitlines()[-1])

    def test_overlaps(self):
        for overlap in "first", "last":
            self.fill("--overlap", overlap)
            np.testing.assert_array_equal(self.read_chunks(64), self.expected(overlap))
            for name in "mosaic", "mosaic-parts":
                shutil.rmtree(self.path(name))

    def test_a_chunk_that_is_gone_or_half_is_made_again_and_no_other(self):
        self.assertEqual(self.fill()["made"], 4)
        self.assertEqual(self.fill()["complete"], 4)
        os.remove(self.path("mosaic/mosaic.zarr/mosaic/1.0"))
        self.assertEqual(self.fill(), {"rows": 4, "made": 1, "complete": 3, "stale": 0, "failed": 0})
        shutil.rmtree(self.path("mosaic-parts/0-1"))  # as of a job that was killed while it wrote
        with open(self.path("mosaic/mosaic.zarr/mosaic/0.1"), "wb") as file:
            file.write(b"half")
        self.assertEqual(self.fill(), {"rows": 4, "made": 1, "complete": 3, "stale": 0, "failed": 0})
        np.testing.assert_array_equal(self.read_chunks(64), self.expected())

    def test_a_chunk_of_other_rasters_stays_without_overwrite(self):
        self.fill()
        chunk = self.path("mosaic/mosaic.zarr/mosaic/0.0")
        with open(chunk, "rb") as file:
            before = file.read()
        for path in self.rasters():
            raster = gdal.Open(path if os.path.isabs(path) else self.path(path), gdal.GA_Update)
            raster.GetRasterBand(1).WriteArray(raster.ReadAsArray() + 1)
            raster = None
        done = run_command("batch", "mosaic/jobs.csv", folder=self.folder)
        self.assertEqual({json.loads(line)["state"] for line in done.stdout.splitlines()}, {"stale"}, done.stderr)
        with open(chunk, "rb") as file:
            self.assertEqual(file.read(), before)
        self.run_imaging("batch", "mosaic/jobs.csv", "--overwrite")
        with open(chunk, "rb") as file:
            self.assertNotEqual(file.read(), before)

    def test_another_grid_and_other_systems(self):
        """A plane in metres is a plane in degrees, but for the curvature of the projection."""
        y, x = np.mgrid[:80, :90]
        east, north = LEFT + (x + 0.5) * PIXEL, TOP - (y + 0.5) * PIXEL
        plane = ((east - LEFT) * 1e-3 + (north - TOP) * 2e-3).astype(np.float32)
        plane[40:42, 40:42] = -99
        self.write("plane.tif", plane, 0, 0, no_data=-99)
        self.run_imaging("mosaic", "plane.tif", "-o", "mosaic", "--chunk", "32", "--crs", "EPSG:4326", "--pixel", "0.0001", "0.0001",
                         "--resampling", "bilinear")
        self.run_imaging("batch", "mosaic/jobs.csv")
        self.run_imaging("mosaic", "mosaic", "--cog", "-o", "map")
        found = gdal.Open(self.path("map/mosaic.tif"))
        left, dx, _r, top, _s, dy = found.GetGeoTransform()
        values = found.ReadAsArray()
        source, target = osr.SpatialReference(), osr.SpatialReference()
        source.ImportFromEPSG(4326)
        source.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
        target.ImportFromEPSG(32632)
        transform = osr.CoordinateTransformation(source, target)
        rows, columns = np.nonzero(np.isfinite(values))
        self.assertGreater(len(rows), 0.8 * values.size)
        places = np.array(transform.TransformPoints(np.column_stack([left + (columns + 0.5) * dx, top + (rows + 0.5) * dy])))
        expected = (places[:, 0] - LEFT) * 1e-3 + (places[:, 1] - TOP) * 2e-3
        wrong = np.abs(expected - values[rows, columns])
        self.assertLess(wrong.max(), 0.031)  # at the rims samples are repeated: half a pixel in both directions
        self.assertLess(np.median(wrong), 1e-4)  # a tenth of a metre

    def test_what_is_no_raster_of_a_mosaic(self):
        self.write("nowhere.tif", np.ones((4, 4), np.float32), 0, 0, epsg=None)
        self.write("complex.tif", np.ones((4, 4), np.complex64), 0, 0)
        self.write("far.tif", np.ones((4, 4), np.float32), 1 << 30, 0)
        with open(self.path("text.tif"), "w", encoding="ascii") as file:
            file.write("none")
        for words, status, sentence in ((["nowhere.tif"], 3, "no place on the ground"), (["complex.tif"], 3, "is complex"),
                                        (["text.tif"], 3, "cannot be read"), (["gone.tif"], 3, "cannot be read"),
                                        ([self.rasters()[0], "--band", "2"], 3, "no band 2"),
                                        ([*self.rasters(), "far.tif"], 2, "chunks"), ([self.rasters()[0], "--crs", "EPSG:1"], 3, "EPSG"),
                                        (["out", "--part", "0", "0"], 3, "no plan"), (["out", "--cog"], 3, "no plan")):
            self.assertIn(sentence, self.run_imaging("mosaic", *words, "-o", "mosaic", status=status))
        self.assertEqual([name for name in os.listdir(self.folder) if "mosaic" in name], [])
        self.run_imaging("mosaic", *self.rasters(), "-o", "mosaic", "--chunk", "64")
        self.assertIn("There is no chunk 2 0", self.run_imaging("mosaic", "mosaic", "--part", "2", "0", "-o", "a", status=2))


main()
