# SPDX-License-Identifier: LGPL-2.1-or-later
"""The phase of the earth that insarform removes, from files of GMTSAR and ISCE2 and heights in several formats, against
float64 geometry of this test: two orbits in closed form, an ellipsoid and a hill."""
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, launch, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging.sar import ground, heights, orbit

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

WIDTH, HEIGHT = 320, 200
WAVELENGTH, PRF, RATE, NEAR, C = 0.0566, 1679.9, 18.96e6, 830000.0, 299792458.0
START = 80000.0  # s of the day
AXES = 6378137.0, 6356752.31
RADIUS = 6371234.5  # of the sphere of GMTSAR's heights
DAYS = 58  # of the year, of the PRM and LED files
ORBITS = {"ref": (7155000.0, 0.9, 0.4, 1.72), "sec": (7155090.0, 0.9 + 3e-6, 0.4 + 2e-5, 1.72)}


def position(name, t):
    """On a circle over a turning earth; t: s of the day, any shape"""
    radius, phase, node, inclination = ORBITS[name]
    u = phase + (t - START) * np.sqrt(3.986004418e14 / radius**3)
    g = node - 7.2921159e-5 * (t - START)
    x, y, z = radius * np.cos(u), radius * np.sin(u) * np.cos(inclination), radius * np.sin(u) * np.sin(inclination)
    return np.stack((x * np.cos(g) - y * np.sin(g), x * np.sin(g) + y * np.cos(g), z), -1)


def velocity(name, t):
    h = 0.25
    return (8 * (position(name, t + h) - position(name, t - h)) - position(name, t + 2 * h) + position(name, t - 2 * h)) / (12 * h)


def dot(a, b):
    return (a * b).sum(-1)


def height_above(point, axes):
    """By fixed-point iterations of the latitude, unlike ours."""
    a, b = axes
    e2, r = 1 - (b / a)**2, np.hypot(point[..., 0], point[..., 1])
    latitude = np.arctan2(point[..., 2], r * (1 - e2))
    for _ in range(12):
        n = a / np.sqrt(1 - e2 * np.sin(latitude)**2)
        latitude = np.arctan2(point[..., 2] + e2 * n * np.sin(latitude), r)
    n = a / np.sqrt(1 - e2 * np.sin(latitude)**2)
    return r * np.cos(latitude) + point[..., 2] * np.sin(latitude) - a * np.sqrt(1 - e2 * np.sin(latitude)**2)


def true_point(heights, axes, grid="ref", margin=0):
    """What is at all samples, and its range. margin: samples around the image"""
    line, column = np.mgrid[-margin:HEIGHT + margin, -margin:WIDTH + margin].astype(float)
    return point_at(line, column, heights, axes, grid)


def point_at(line, column, heights, axes, grid):
    """What is at these lines and columns, and its range, by bisections"""
    t, ranges = np.asarray(START + line / PRF), np.asarray(NEAR + column * C / (2 * RATE))
    s, v = position(grid, t), velocity(grid, t)
    along = v / np.sqrt(dot(v, v))[..., None]
    down = -s + dot(s, along)[..., None] * along
    down /= np.sqrt(dot(down, down))[..., None]
    right = np.cross(down, along)
    low, high = np.full(t.shape, 0.05), np.full(t.shape, 1.2)
    for _ in range(60):  # the height grows with the look angle
        q = (low + high) / 2
        point = s + ranges[..., None] * (np.cos(q)[..., None] * down + np.sin(q)[..., None] * right)
        above = height_above(point, axes) > heights
        low, high = np.where(above, low, q), np.where(above, q, high)
    return point, ranges


def true_range(point, name):
    """How far away an image sees points, and when: Newton's method with one slope, as an orbit hardly bends"""
    def along(t):
        return dot(point - position(name, t), velocity(name, t))

    t = np.full(point.shape[:-1], START)
    slope = (along(t + 20) - along(t - 20)) / 40
    for _ in range(10):
        t = t - along(t) / slope
    away = point - position(name, t)
    return np.sqrt(dot(away, away)), t


def true_phase(heights, axes):
    """4 pi / wavelength (R2 - R1) of all samples"""
    point, ranges = true_point(heights, axes)
    return 4 * np.pi / WAVELENGTH * (true_range(point, "sec")[0] - ranges)


class Flat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        rng = np.random.default_rng(5)
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        cls.heights = 300 + 2500 * np.exp(-((x - 150) / 60)**2 - ((y - 90) / 40)**2)
        cls.speckle = (rng.normal(size=(HEIGHT, WIDTH)) + 1j * rng.normal(size=(HEIGHT, WIDTH))).astype("<c8")
        cls.speckle.tofile(cls.path("ref.cf32"))
        cls.phases = {"ellipsoid": true_phase(0 * cls.heights, AXES), "dem": true_phase(cls.heights, AXES),
                      "sphere": true_phase(cls.heights, (RADIUS, RADIUS))}
        for name, phase in cls.phases.items():
            (cls.speckle * np.exp(-1j * phase)).astype("<c8").tofile(cls.path(name + ".cf32"))
        for name in ORBITS:
            cls.write_gmtsar(name)
            cls.write_isce(name)
        np.save(cls.path("dem.npy"), cls.heights.astype(np.float32))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def write_gmtsar(cls, name, days=DAYS):
        times = START - 65.3 + 10 * np.arange(14)
        rows = np.hstack((position(name, times), velocity(name, times)))
        with open(cls.path(name + ".LED"), "w", encoding="ascii") as file:
            file.write(f"{len(times)} 2007 {days} {times[0]:.6f} 10.000\n")
            for t, row in zip(times, rows):
                file.write(f"2007 {days} {t:.6f} " + " ".join(f"{value:.8f}" for value in row) + "\n")
        with open(cls.path(name + ".PRM"), "w", encoding="ascii") as file:
            file.write(f"led_file = {name}.LED\nclock_start = {days + START / 86400:.15f}\nPRF = {PRF}\nnear_range = {NEAR}\n"
                       f"rng_samp_rate = {RATE}\nradar_wavelength = {WAVELENGTH}\nequatorial_radius = {AXES[0]}\n"
                       f"polar_radius = {AXES[1]}\nearth_radius = {RADIUS}\nlookdir = R\nnum_valid_az = {HEIGHT}\n")

    @classmethod
    def write_isce(cls, name):
        """As ISCE2 writes a burst: the state vectors out of order, the digits of a second in part."""
        def prop(key, value):
            return f'<property name="{key}"><value>{value}</value><doc>What it is</doc></property>\n'

        def clock(t):
            return f"2007-02-27 {int(t) // 3600:02d}:{int(t) // 60 % 60:02d}:{t % 60:09.6f}"

        times = np.roll(START - 65.25 + 10 * np.arange(14), 3)
        states = ""
        for i, t in enumerate(times):
            states += f'<component name="statevector{i + 1}">' + prop("position", list(position(name, t))) + \
                prop("velocity", list(velocity(name, t))) + prop("time", clock(t)) + "</component>\n"
        with open(cls.path(name + ".xml"), "w", encoding="ascii") as file:
            file.write('<swath><component name="burst1">' + prop("starting range", NEAR) + prop("sensing start", clock(START)) +
                       prop("radarwavelength", WAVELENGTH) + prop("range pixel size", C / (2 * RATE)) +
                       prop("azimuth time interval", 1 / PRF) +
                       f'<component name="orbit"><component name="state_vectors">{states}</component></component></component>'
                       '<component name="burst2">' + prop("starting range", 1) + "</component></swath>\n")

    def residual(self, truth, *words, orbits="PRM"):
        """Forms an interferogram. Returns: its phase of each sample, which is 0 where all was removed"""
        source = [f"width={WIDTH}", "format=cf32", "!"]
        launch("-q", "slcsrc", "location=" + self.path("ref.cf32"), *source, "i.reference", "slcsrc",
               "location=" + self.path(truth + ".cf32"), *source, "i.secondary", "insarform", "name=i", "looks-x=1", "looks-y=1",
               "phase-location=" + self.path("phase.f32"), "reference-orbit=" + self.path("ref." + orbits),
               "secondary-orbit=" + self.path("sec." + orbits), *words)
        return np.fromfile(self.path("phase.f32"), "<f4").reshape(HEIGHT, WIDTH)

    def check(self, truth, *words, orbits="PRM", limit=2e-3):
        phase = self.residual(truth, *words, orbits=orbits)
        self.assertTrue(np.isfinite(phase).all())
        largest = np.abs(phase).max()
        print(f"{truth} {orbits} {' '.join(words)}: {largest:.2g} rad")
        self.assertLess(largest, limit)

    def test_there_are_fringes(self):
        for name, phase in self.phases.items():
            self.assertGreater(np.ptp(phase), 30, name)
        self.assertGreater(np.abs(self.residual("ellipsoid")).max(), 3.1)

    def test_orbits(self):
        for orbits in "PRM", "xml":
            self.check("ellipsoid", "flatten=orbit", orbits=orbits)

    def test_shifts_of_prm_files(self):
        """The image begins elsewhere by each of these, and clock_start and near_range take them back. Signs and the half of nrows count."""
        rows, shifts = 400, {"ashift": 3, "sub_int_a": 40.25, "rshift": 5, "sub_int_r": 8.5, "chirp_ext": 30, "nrows": HEIGHT + 400}
        lines, columns = 3 + 40.25 + rows / 2, 5 + 8.5 - 30
        more = f"num_rng_bins = {WIDTH}\nSC_clock_start = 2007"
        with open(self.path("ref.PRM"), encoding="ascii") as file:
            good = file.read()
        for name, start, near, keys in (("plain", START, NEAR, {}), ("moved", START - lines / PRF, NEAR - columns * C / 2 / RATE, shifts)):
            day = f"{DAYS + start / 86400:.15f}"
            with open(self.path(name + ".PRM"), "w", encoding="ascii") as file:
                file.write(good + f"clock_start = {day}\nnear_range = {near}\n{more}0{day}\n" + "".join(f"{key} = {n}\n" for key, n in keys.items()))
        self.check("ellipsoid", "flatten=orbit", "reference-orbit=" + self.path("moved.PRM"))
        points = [ground.Ground(orbit.Image(self.path(name + ".PRM")), [0, WIDTH], [0, HEIGHT], np.zeros((2, 2))).point for name in ("plain", "moved")]
        np.testing.assert_allclose(*points, rtol=0, atol=0.01)

    def test_heights(self):
        for orbits in "PRM", "xml":
            self.check("dem", "flatten=dem", "dem-location=" + self.path("dem.npy"), orbits=orbits)
        self.check("sphere", "flatten=dem", "dem-location=" + self.path("dem.npy"), "dem-surface=sphere")

    def test_the_right_heights_are_needed(self):
        self.assertGreater(np.abs(self.residual("dem", "flatten=orbit")).max(), 1)
        self.assertGreater(np.abs(self.residual("dem", "flatten=dem", "dem-location=" + self.path("dem.npy"),
                                                "dem-surface=sphere")).max(), 1)

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_rasters(self):
        """A GeoTIFF over the whole image, and a .grd of GMTSAR: its y falls from row to row, and its first row is the first line."""
        def write(driver, path, values, transform=None):
            dataset = gdal.GetDriverByName(driver).Create(path, values.shape[1], values.shape[0], 1, gdal.GDT_Float32)
            if transform:
                dataset.SetGeoTransform(transform)
            dataset.GetRasterBand(1).WriteArray(values)

        write("GTiff", self.path("dem.tif"), self.heights)
        self.check("dem", "flatten=dem", "dem-location=" + self.path("dem.tif"))
        write("GTiff", self.path("up.tif"), self.heights, (0, 1, 0, HEIGHT, 0, -1))
        if not gdal.GetDriverByName("netCDF"):
            self.skipTest("GDAL reads no .grd here")
        gdal.Translate(self.path("dem.grd"), self.path("up.tif"), format="netCDF")
        self.check("dem", "flatten=dem", "dem-location=" + self.path("dem.grd"))
        for name in "dem.tif", "dem.grd":  # what the commands place on the ground
            found = heights.at(self.path(name), (WIDTH, HEIGHT), range(WIDTH), range(HEIGHT), self.folder)
            np.testing.assert_allclose(found, self.heights, rtol=1e-6)

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_a_map_is_refused(self):
        """A DEM in degrees is not in columns and lines. ISCE2 names a reference system for these as well."""
        for name, transform in ("map", (10, 1e-3, 0, 40, 0, -1e-3)), ("radar", (0, 1, 0, 0, 0, 1)):
            dataset = gdal.GetDriverByName("GTiff").Create(self.path(name + ".tif"), WIDTH, HEIGHT, 1, gdal.GDT_Float32)
            dataset.SetGeoTransform(transform)
            dataset.SetProjection('GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
                                  'UNIT["degree",0.0174532925199433]]')
            dataset.GetRasterBand(1).WriteArray(self.heights)
            del dataset
        self.assertIn("gst-imaging insar-dem makes", self.fails("flatten=dem", "dem-location=" + self.path("map.tif")))
        self.check("dem", "flatten=dem", "dem-location=" + self.path("radar.tif"))

    def test_coarse_heights(self):
        """Cells of 4 x 2: the error is that of the hill between them, 4 m at the top."""
        coarse = self.heights.reshape(HEIGHT // 2, 2, WIDTH // 4, 4).mean((1, 3))
        np.save(self.path("coarse.npy"), coarse.astype(np.float32))
        phase = self.residual("dem", "flatten=dem", "dem-location=" + self.path("coarse.npy"))
        self.assertLess(np.sqrt((phase**2).mean()), 0.1)

    def test_places_without_height_have_no_data(self):
        holes = self.heights.astype(np.float32)
        holes[50:60, 70:90] = np.nan
        np.save(self.path("holes.npy"), holes)
        phase = self.residual("dem", "flatten=dem", "dem-location=" + self.path("holes.npy"))
        np.testing.assert_array_equal(np.isnan(phase), np.isnan(holes))

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_no_data_of_rasters_is_no_height(self):
        """insarform and the commands leave out the same samples, also between coarse heights. The value is one that heights may have."""
        for step in 1, 2:
            values = self.heights[::step, ::step].copy()
            values[50 // step:60 // step, 70 // step:90 // step] = 0
            dataset = gdal.GetDriverByName("GTiff").Create(self.path("holes.tif"), values.shape[1], values.shape[0], 1, gdal.GDT_Float32)
            dataset.GetRasterBand(1).SetNoDataValue(0)
            dataset.GetRasterBand(1).WriteArray(values)
            del dataset
            found = heights.at(self.path("holes.tif"), (WIDTH, HEIGHT), range(WIDTH), range(HEIGHT), self.folder)
            self.assertGreaterEqual(np.isnan(found).sum(), 200)
            phase = self.residual("dem", "flatten=dem", "dem-location=" + self.path("holes.tif"))
            np.testing.assert_array_equal(np.isnan(phase), np.isnan(found))

    def test_what_was_removed(self):
        self.residual("dem", "flatten=dem", "dem-location=" + self.path("dem.npy"), "removed-location=" + self.path("removed.f32"))
        away = np.fromfile(self.path("removed.f32"), "<f4").reshape(HEIGHT, WIDTH) - self.phases["dem"]
        self.assertLess(np.abs(np.angle(np.exp(1j * away))).max(), 1e-3)

    def test_restored(self):
        phase = self.residual("dem", "flatten=dem", "dem-location=" + self.path("dem.npy"), "restore-phase=true")
        away = np.angle(np.exp(1j * (phase - self.phases["dem"])))
        self.assertLess(np.abs(away).max(), 1e-3)

    def test_what_is_wrong_is_said(self):
        for change, words in {
                ("ref.PRM", "led_file = ref.LED", "led_file = no.LED"): 'no.LED"',
                ("ref.PRM", "led_file", "other"): 'no line "led_file',
                ("ref.PRM", f"near_range = {NEAR}", "near_range = far"): 'no line "near_range = NUMBER"',
                ("ref.PRM", f"near_range = {NEAR}", "near_range = 1000"): "No point of the height",
                ("ref.PRM", f"clock_start = {DAYS}", f"clock_start = {DAYS + 3}"): "Take a longer orbit",
                ("sec.LED", f"14 2007 {DAYS}", f"15 2007 {DAYS}"): "14 state vectors, and its first line announces 15",
                ("sec.LED", "2007", "x"): "Line 1 of",
                ("ref.xml", "<swath>", "<swath><"): "is no XML file",
                ("ref.xml", "sensing start", "nothing"): "sensing start (missing)",
                ("sec.xml", "position", "place"): "0 state vectors"}.items():
            with self.subTest(change=change):
                name, old, new = change
                with open(self.path(name), encoding="ascii") as file:
                    good = file.read()
                self.assertIn(old, good)
                with open(self.path(name), "w", encoding="ascii") as file:
                    file.write(good.replace(old, new))
                try:
                    printed = self.fails("flatten=orbit", orbits="xml" if name.endswith("xml") else "PRM")
                finally:
                    with open(self.path(name), "w", encoding="ascii") as file:
                        file.write(good)
                self.assertIn(words, printed)
        self.assertIn("flatten=dem needs dem-location", self.fails("flatten=dem"))
        self.assertIn("dem-surface=sphere needs earth_radius", self.fails(
            "flatten=dem", "dem-location=" + self.path("dem.npy"), "dem-surface=sphere", orbits="xml"))
        self.assertIn("nothing.npy", self.fails("flatten=dem", "dem-location=" + self.path("nothing.npy")))

    def fails(self, *words, orbits="PRM"):
        source = [f"width={WIDTH}", "format=cf32", "!"]
        return launch("-q", "slcsrc", "location=" + self.path("ref.cf32"), *source, "i.reference", "slcsrc",
                      "location=" + self.path("dem.cf32"), *source, "i.secondary", "insarform", "name=i",
                      "phase-location=" + self.path("no.f32"), "reference-orbit=" + self.path("ref." + orbits),
                      "secondary-orbit=" + self.path("sec." + orbits), *words, status=1)


if __name__ == "__main__":
    main()
