# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rasters of insarform and insarxcorr open in GDAL, rasterio, tifffile and spectral: with equal samples, in the
place of the input, with units and no data. Which of them are there is printed; tools/setup and tools/venv install
them."""
import os
import resource
import subprocess
import unittest
import warnings

import numpy as np

from support import TIMEOUT, FolderCase, launch, main


def optional(name):
    try:
        return __import__(name, fromlist=["x"])
    except ImportError:
        return None


gdal = optional("osgeo.gdal")
osr = optional("osgeo.osr")
rasterio = optional("rasterio")
spectral = optional("spectral")
tifffile = optional("tifffile")
if gdal:
    gdal.UseExceptions()

WIDTH, HEIGHT, LOOKS = 57, 61, (2, 3)
CELLS = HEIGHT // LOOKS[1], WIDTH // LOOKS[0]
NAMES = "coherence", "amplitude", "phase", "interferogram"
TRANSFORM = 10, 0.001, 0.0001, 50, 0.0002, -0.002
NORTH_UP = 400123.25, 12.5, 0, 5200456.5, 0, -20
POINTS = [(column, line, 10 + 0.001 * column, 50 - 0.002 * line, 100 + column)
          for line in (0, 30.5, 61) for column in (0, 57)]


class Rasters(FolderCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(2)
        self.reference = rng.integers(-99, 99, (HEIGHT, WIDTH)) + 1j * rng.integers(-99, 99, (HEIGHT, WIDTH))
        self.reference[:6, :4] = 0  # no data
        self.reference = self.reference.astype(np.complex64)
        turn = np.exp(-2j * np.pi * np.arange(WIDTH) / WIDTH)
        self.secondary = (self.reference * turn).astype(np.complex64)
        self.secondary.tofile(self.path("secondary.cf32"))

    def write_reference(self, place):
        """A GeoTIFF with ground control points or a geotransform; or a raw file."""
        if not place:
            self.reference.tofile(self.path("reference.cf32"))
            return [f"location={self.path('reference.cf32')}", f"width={WIDTH}", "format=cf32"]
        if not gdal:
            self.skipTest("osgeo.gdal is not installed")
        dataset = gdal.GetDriverByName("GTiff").Create(self.path("reference.tif"), WIDTH, HEIGHT, 1, gdal.GDT_CFloat32)
        dataset.GetRasterBand(1).WriteArray(self.reference)
        crs = osr.SpatialReference()
        crs.ImportFromEPSG(place if isinstance(place, int) else 4326)
        if isinstance(place, int):
            dataset.SetGeoTransform(NORTH_UP)
            dataset.SetProjection(crs.ExportToWkt())
        elif place == "points":
            dataset.SetGCPs([gdal.GCP(x, y, z, column, line) for column, line, x, y, z in POINTS], crs.ExportToWkt())
        else:
            dataset.SetGeoTransform(TRANSFORM)
            dataset.SetProjection(crs.ExportToWkt())
        dataset = None
        return [f"location={self.path('reference.tif')}"]

    def words(self, place=None, *more):
        return ["slcsrc", *self.write_reference(place), "!", "i.reference", "slcsrc",
                "location=" + self.path("secondary.cf32"), f"width={WIDTH}", "format=cf32", "!", "i.secondary",
                "insarform", "name=i", f"looks-x={LOOKS[0]}", f"looks-y={LOOKS[1]}", *more]

    def form(self, place, extension):
        """Files of one extension. Returns: the numbers of the pads, by their names."""
        words = [f"{name}-location={self.path(name + extension)}" for name in NAMES]
        for name in NAMES:
            words += ["i." + name, "!", "queue", "!", "other/tensors", "!", "filesink", "location=" + self.path(name + ".f32")]
        launch("-q", *self.words(place, *words))
        return {name: np.fromfile(self.path(name + ".f32"), "<c8" if name == "interferogram" else "<f4").reshape(CELLS)
                for name in NAMES}

    def check_bands(self, dataset, name, array):
        band = dataset.GetRasterBand(1)
        self.assertEqual(band.GetDescription(), name)
        self.assertEqual(band.GetUnitType(), {"amplitude": "counts", "phase": "rad", "interferogram": "counts^2"}.get(name, ""))
        np.testing.assert_array_equal(band.GetNoDataValue(), np.nan if name == "phase" else 0)
        np.testing.assert_array_equal(band.ReadAsArray(), array)

    def check_points(self, dataset, is_flat=False):
        found = [(p.GCPPixel * LOOKS[0], p.GCPLine * LOOKS[1], p.GCPX, p.GCPY, p.GCPZ) for p in dataset.GetGCPs()]
        expected = np.array(POINTS) * (1, 1, 1, 1, not is_flat)
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def check_transform(self, dataset):
        gt = np.array(dataset.GetGeoTransform())
        np.testing.assert_allclose(gt, np.array(TRANSFORM) * (1, *LOOKS, 1, *LOOKS), rtol=1e-12)
        self.assertIn("WGS", dataset.GetProjection())

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_ground_control_points(self):
        for extension in ".tif", ".img":
            pads = self.form("points", extension)
            self.assertEqual(pads["coherence"][0, 0], 0)
            self.assertTrue(np.isnan(pads["phase"][0, 0]))
            for name in NAMES:
                place = gdal.Open(self.path(name + extension + (".vrt" if extension == ".img" else "")))
                self.check_bands(place, name, pads[name])
                self.check_points(place)
                self.assertIn("WGS", place.GetGCPProjection())
        envi = gdal.Open(self.path("phase.img"))
        self.assertEqual(envi.GetDriver().ShortName, "ENVI")
        np.testing.assert_array_equal(envi.ReadAsArray(), pads["phase"])
        self.check_points(envi, is_flat=True)

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_geotransform(self):
        for extension in ".tif", ".img":
            pads = self.form("transform", extension)
            for name in NAMES:
                place = gdal.Open(self.path(name + extension + (".vrt" if extension == ".img" else "")))
                self.check_bands(place, name, pads[name])
                self.check_transform(place)

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_the_header_of_envi_alone_places_it(self):
        """GDAL reads .hdr without the .vrt: UTM of both hemispheres and other projections."""
        for epsg, projection in (32633, "UTM, 1, 1, 400123.25, 5200456.5, 25, 60, 33, North, WGS-84, units=Meters}"), \
                (32733, "UTM, 1, 1, 400123.25, 5200456.5, 25, 60, 33, South, WGS-84, units=Meters}"), (25832, "UTM"), (31467, "Arbitrary"):
            launch("-q", *self.words(epsg, "coherence-location=" + self.path("c.img")))
            with open(self.path("c.img.hdr"), encoding="ascii") as file:
                self.assertIn("map info = {" + projection, file.read())
            os.remove(self.path("c.img.vrt"))
            envi = gdal.Open(self.path("c.img"))
            self.assertEqual(envi.GetDriver().ShortName, "ENVI")
            np.testing.assert_allclose(envi.GetGeoTransform(), np.array(NORTH_UP) * (1, *LOOKS, 1, *LOOKS), rtol=1e-12)
            found, expected = osr.SpatialReference(envi.GetProjection()), osr.SpatialReference()
            expected.ImportFromEPSG(epsg)
            for key in "central_meridian", "scale_factor", "false_easting", "false_northing":
                self.assertEqual(found.GetProjParm(key), expected.GetProjParm(key), (epsg, key))
            self.assertEqual(found.GetAttrValue("SPHEROID"), expected.GetAttrValue("SPHEROID"))

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_radar_coordinates(self):
        """Of a PRM file: spacings as in tests/check/insarform.c."""
        for name, image in ("a", self.reference), ("b", self.secondary):
            np.stack((image.real, image.imag), -1).round().astype("<i2").tofile(self.path(name + ".SLC"))
            with open(self.path(name + ".PRM"), "w", encoding="ascii") as file:
                file.write(f"SLC_file = {name}.SLC\nnum_rng_bins = {WIDTH}\nnum_valid_az = {HEIGHT}\nPRF = 2000\n"
                           "rng_samp_rate = 64e6\nnear_range = 830000\nSC_vel = 7500\nearth_radius = 6370000\n"
                           "SC_height = 630000\n")
        launch("-q", "slcsrc", "location=" + self.path("a.PRM"), "!", "i.reference", "slcsrc",
               "location=" + self.path("b.PRM"), "!", "i.secondary", "insarform", "name=i", "looks-x=2", "looks-y=3",
               "coherence-location=" + self.path("c.tif"), "amplitude-location=" + self.path("a.img"))
        slant, azimuth = 299792458 / (2 * 64e6), 7500 / 2000 * 6.37e6 / 7e6
        for name in "c.tif", "a.img.vrt":
            dataset = gdal.Open(self.path(name))
            self.assertEqual(dataset.GetGeoTransform(), (0, 2, 0, 0, 0, 3))
            self.assertEqual(dataset.GetProjection(), "")
            cards = dataset.GetMetadata()
            self.assertIn("radar", cards["coordinates"])
            self.assertRegex(cards["settings-hash"], "^[0-9a-f]{64}$")
            self.assertEqual([cards["axis-0-name"], cards["axis-0-unit"]], ["slant range", "m"])
            self.assertAlmostEqual(float(cards["axis-0-step"]), 2 * slant, 9)
            self.assertAlmostEqual(float(cards["axis-0-origin"]), 830000 + slant / 2, 6)
            self.assertAlmostEqual(float(cards["axis-1-step"]), 3 * azimuth, 9)
        with open(self.path("a.img.hdr"), encoding="ascii") as file:
            self.assertIn("axis 0 name = slant range\n", file)

    @unittest.skipUnless(rasterio, "rasterio is not installed")
    def test_rasterio(self):
        pads = self.form("points" if gdal else None, ".tif")
        for name in NAMES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of no geotransform
                with rasterio.open(self.path(name + ".tif")) as file:
                    np.testing.assert_array_equal(file.read(1), pads[name])
                    np.testing.assert_array_equal(file.nodata, np.nan if name == "phase" else 0)
                    self.assertEqual(file.descriptions, (name,))
                    points, crs = file.gcps
                    self.assertEqual(len(points), len(POINTS) if gdal else 0)
                    self.assertTrue(not gdal or crs.to_epsg() == 4326)

    @unittest.skipUnless(tifffile, "tifffile is not installed")
    def test_tifffile(self):
        pads = self.form(None, ".tif")
        for name in NAMES:
            np.testing.assert_array_equal(tifffile.imread(self.path(name + ".tif")), pads[name])

    @unittest.skipUnless(spectral, "spectral is not installed")
    def test_spectral(self):
        pads = self.form(None, ".img")
        for name in NAMES:
            image = spectral.open_image(self.path(name + ".img.hdr"))
            np.testing.assert_array_equal(np.asarray(image.load())[:, :, 0], pads[name])

    def test_a_full_disk_ends_nothing_else(self):
        """A limit to the size of files: the coherence is longer than it, the picture and the small file are not."""
        for extension in ".tif", ".img":
            big, small = self.path("big" + extension), self.path("small" + extension)
            words = self.words(None, "looks-x=1", "looks-y=1", "window-x=1", "interferogram-location=" + big,
                               "i.coherence", "!", "queue", "!", "video/x-raw,format=GRAY8", "!", "filesink",
                               "location=" + self.path("picture"))
            status, printed = self.run_limited(words)
            self.assertEqual(status, 0, printed)
            self.assertEqual(printed.count("WARNING: from"), 1, printed)
            self.assertRegex(printed, '"[^"]*big[^"]*" cannot be written: ')
            self.assertEqual(os.path.getsize(self.path("picture")), 60 * HEIGHT)
            # without a pad it is all that there is, so it is an error
            status, printed = self.run_limited(words[:words.index("i.coherence")] + ["coherence-location=" + small])
            self.assertEqual(status, 1, printed)
            self.assertEqual(printed.count("cannot be written"), 1, printed)
            self.assertTrue(os.path.exists(small))
            left = [name for name in os.listdir(self.folder) if name.startswith((".gst-imaging", "big"))]
            self.assertEqual(left, [])

    def test_files_of_others_beside_a_raster_stay(self):
        for suffix in ".hdr", ".vrt":
            with self.subTest(suffix):
                with open(self.path("a" + suffix), "w", encoding="ascii") as file:
                    file.write("of somebody else")
                printed = launch(*self.words(None, "interferogram-location=" + self.path("a")), status=1)
                self.assertIn(f'a{suffix}" is there and was not written by gst-imaging: it stays.', printed)
                with open(self.path("a" + suffix), encoding="ascii") as file:
                    self.assertEqual(file.read(), "of somebody else")
                self.assertFalse(os.path.exists(self.path("a")))
                os.remove(self.path("a" + suffix))
        for i in range(2):  # ours are replaced
            launch(*self.words(None, "interferogram-location=" + self.path("a")))

    def test_two_rasters_of_one_name_are_refused(self):
        printed = launch(*self.words(None, "interferogram-location=" + self.path("a.img"), "coherence-location=" +
                                     os.path.join(self.folder, ".", "a.img")), status=1)
        self.assertIn("coherence-location and interferogram-location are both", printed)

    def run_limited(self, words):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        done = subprocess.run(["gst-launch-1.0", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT, preexec_fn=limit, restore_signals=False,  # SIGXFSZ stays ignored
                              env={**os.environ, "GST_REGISTRY_UPDATE": "no"})
        return done.returncode, done.stdout


class Offsets(FolderCase):
    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_offsets(self):
        """One pixel a patch, equal to the pad rasters; a patch is in the middle of its pixel."""
        rng = np.random.default_rng(4)
        z = rng.standard_normal((260, 240)) + 1j * rng.standard_normal((260, 240))
        z = z[:-1] + z[1:]
        z = (z[:, :-1] + z[:, 1:]).astype("<c8")
        z[2:].tofile(self.path("a.cf32"))
        z[:-2].tofile(self.path("b.cf32"))
        np.save(self.path("mask.npy"), np.arange(8)[None, :] > 2)
        for grid in "step", "even":
            for name in "offsets.tif", "offsets.img":
                launch("-q", "slcsrc", "location=" + self.path("a.cf32"), "width=239", "format=cf32", "!", "x.reference",
                       "slcsrc", "location=" + self.path("b.cf32"), "width=239", "format=cf32", "!", "x.secondary",
                       "insarxcorr", "name=x", "mode=precise", "grid=" + grid, "nx=7", "ny=5", "xsearch=8", "ysearch=8",
                       "step-x=20", "step-y=24", "offsets-location=" + self.path(name),
                       "mask-location=" + self.path("mask.npy"), "x.rasters", "!", "queue", "!", "filesink",
                       "location=" + self.path("rasters.f32"), "x.src", "!", "text/csv", "!", "filesink",
                       "location=" + self.path("rows.csv"))
                rows = np.genfromtxt(self.path("rows.csv"), delimiter=",", names=True)
                nx = int(rows["column"].max()) + 1
                planes = np.fromfile(self.path("rasters.f32"), "<f4").reshape(8, -1, nx)
                dataset = gdal.Open(self.path(name + (".vrt" if name.endswith("img") else "")))
                np.testing.assert_array_equal(dataset.ReadAsArray(), planes)
                self.assertTrue(np.isnan(planes[0]).any() and np.isfinite(planes[0]).any())
                bands = [dataset.GetRasterBand(i + 1) for i in range(8)]
                self.assertEqual([band.GetDescription() for band in bands[:4]],
                                 ["range offset", "azimuth offset", "correlation", "snr"])
                self.assertEqual([band.GetUnitType() for band in bands[:3]], ["pixel", "pixel", "percent"])
                self.assertTrue(all(np.isnan(band.GetNoDataValue()) for band in bands))
                gt = dataset.GetGeoTransform()
                column, line = np.meshgrid(np.arange(nx) + 0.5, np.arange(planes.shape[1]) + 0.5)
                away = gt[0] + gt[1] * column - 0.5 - rows["x"].reshape(column.shape)
                self.assertLessEqual(np.abs(away).max(), 0 if grid == "step" else 1)
                away = gt[3] + gt[5] * line - 0.5 - rows["y"].reshape(line.shape)
                self.assertLessEqual(np.abs(away).max(), 0 if grid == "step" else 1)

    def test_only_the_file(self):
        np.ones((200, 200), "<c8").tofile(self.path("a.cf32"))
        source = ["slcsrc", "location=" + self.path("a.cf32"), "width=200", "format=cf32", "!"]
        words = [*source, "x.reference", *source, "x.secondary", "insarxcorr", "name=x", "grid=step", "xsearch=8", "ysearch=8"]
        launch("-q", *words, "offsets-location=" + self.path("o.img"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.cf32", "o.img", "o.img.hdr", "o.img.vrt"])
        printed = launch(*words, "offsets-location=" + self.path("no/o.img"), status=1)
        self.assertIn("offsets-location: ", printed)


if __name__ == "__main__":
    print("GDAL:", bool(gdal), "rasterio:", bool(rasterio), "spectral:", bool(spectral), "tifffile:", bool(tifffile))
    main()
