# SPDX-License-Identifier: LGPL-2.1-or-later
"""The phase of the earth that insarform removes, beside that of GMTSAR's own programs on the same pair, orbits and topo_ra.grd:
calc_dop_orb (heights of the satellite), SAT_baseline and phasediff. They are searched in PATH and in the folder GMTSAR_PROGRAMS."""
import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

from support import launch, main

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

spec = importlib.util.spec_from_file_location("flat", os.path.join(os.path.dirname(os.path.abspath(__file__)), "insar-flat.py"))
flat = importlib.util.module_from_spec(spec)
spec.loader.exec_module(flat)

PATH = os.pathsep.join((os.environ["PATH"], *filter(None, [os.environ.get("GMTSAR_PROGRAMS")])))
MISSING = [name for name in ("calc_dop_orb", "SAT_baseline", "phasediff") if not shutil.which(name, path=PATH)]
WIDTH, HEIGHT = flat.WIDTH, flat.HEIGHT
SPHERE = flat.RADIUS, flat.RADIUS
LIMIT = 0.01  # rad


@unittest.skipIf(MISSING, f"{', '.join(MISSING)} of GMTSAR: not in PATH or GMTSAR_PROGRAMS")
@unittest.skipUnless(gdal and gdal.GetDriverByName("netCDF"), "osgeo.gdal with netCDF is not installed")
class Gmtsar(unittest.TestCase):
    """Both images are 1 + 0i, so that the phase is what was removed."""
    @classmethod
    def setUpClass(cls):
        cls.folder = flat.Flat.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        cls.hill = 300 + 2500 * np.exp(-((x - 150) / 60)**2 - ((y - 60) / 40)**2)
        for name, days in ("ref", flat.DAYS), ("sec", flat.DAYS + 35):  # SAT_baseline wants different times
            np.full((HEIGHT, WIDTH, 2), (8000, 0), "<i2").tofile(cls.path(name + ".SLC"))
            flat.Flat.write_gmtsar(name, days)
            start, seconds = days + flat.START / 86400, HEIGHT / flat.PRF / 86400
            cls.append(name, f"num_rng_bins = {WIDTH}\nnum_patches = 1\nnrows = {HEIGHT}\nfirst_line = 1\nst_rng_bin = 1\nchirp_ext = 0\n"
                       "rshift = 0\nashift = 0\nsub_int_r = 0\nsub_int_a = 0\nstretch_r = 0\nstretch_a = 0\na_stretch_r = 0\n"
                       f"a_stretch_a = 0\nSC_identity = 4\norbdir = A\nSLC_file = {name}.SLC\nSC_clock_start = {2007000 + start:.12f}\n"
                       f"SC_clock_stop = {2007000 + start + seconds:.12f}\nclock_stop = {start + seconds:.15f}\n")
            cls.peer("calc_dop_orb", name + ".PRM", "added.PRM", str(flat.RADIUS), "0")
            with open(cls.path("added.PRM"), encoding="ascii") as file:
                cls.append(name, file.read())
        lines = cls.peer("SAT_baseline", "ref.PRM", "sec.PRM").splitlines()
        cls.append("sec", "".join(line + "\n" for line in lines if line.startswith(("baseline_", "alpha_", "B_offset_"))))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def append(cls, name, text):
        with open(cls.path(name + ".PRM"), "a", encoding="ascii") as file:
            file.write(text)

    @classmethod
    def peer(cls, name, *words):
        done = subprocess.run([shutil.which(name, path=PATH), *words], cwd=cls.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        if done.returncode:
            raise AssertionError(f"{name} {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def theirs(self, heights):
        """phasediff with these heights above the sphere: the phase that is left, as a native grid of GMT with a header of 892 bytes"""
        lines = HEIGHT // len(heights)  # of a pixel
        dataset = gdal.GetDriverByName("MEM").Create("", WIDTH, len(heights), 1, gdal.GDT_Float32)
        dataset.SetGeoTransform((0, 1, 0, HEIGHT, 0, -lines))
        dataset.GetRasterBand(1).WriteArray(heights)  # row 0 is line 0, where y is largest: dem2topo_ra.csh ends with FLIPUD
        gdal.Translate(self.path("topo_ra.grd"), dataset, format="netCDF")
        self.peer("phasediff", "ref.PRM", "sec.PRM", "-topo", "topo_ra.grd", "-real", "real.grd=bf", "-imag", "imag.grd=bf")
        real, imag = (np.fromfile(self.path(name), "<f4", offset=892).reshape(HEIGHT, WIDTH) for name in ("real.grd", "imag.grd"))
        return np.arctan2(imag, real)

    def ours(self, *words):
        source = ["format=ci16", f"width={WIDTH}", "!"]
        launch("-q", "slcsrc", "location=" + self.path("ref.SLC"), *source, "i.reference", "slcsrc", "location=" + self.path("sec.SLC"),
               *source, "i.secondary", "insarform", "name=i", "looks-x=1", "looks-y=1", "phase-location=" + self.path("phase.f32"),
               "reference-orbit=" + self.path("ref.PRM"), "secondary-orbit=" + self.path("sec.PRM"), *words)
        return np.fromfile(self.path("phase.f32"), "<f4").reshape(HEIGHT, WIDTH)

    def compare(self, name, ours, theirs, truth):
        """Not more than LIMIT from the peer, and nearer to the truth than it."""
        self.assertGreater(np.ptp(truth), 30)
        away = {}
        for what, a, b in ("ours - GMTSAR", ours, theirs), ("ours - truth", ours, truth), ("GMTSAR - truth", theirs, truth):
            off = np.angle(np.exp(1j * (a.astype(float) - b)))
            away[what] = np.abs(off).max()
            print(f"{name}: {what}: {np.sqrt((off**2).mean()):.2g} rad rms, {away[what]:.2g} at most")
        self.assertLess(away["ours - GMTSAR"], LIMIT)
        self.assertLess(away["ours - truth"], away["GMTSAR - truth"])

    def test_sphere_with_and_without_topography(self):
        for name, heights in ("no topography", 0 * self.hill), ("hill of 2.5 km", self.hill):
            with self.subTest(name):
                theirs = self.theirs(heights)
                self.compare(name, self.ours("flatten=dem", "dem-location=" + self.path("topo_ra.grd"), "dem-surface=sphere"), theirs,
                             -flat.true_phase(heights, SPHERE))

    def test_pixels_of_four_lines(self):
        """dem2topo_ra.csh ends with pixels of 4 lines from line 0 on (grdsample -T), and phasediff takes pixel floor (line / 4). On a slope the
        steps of that are as much above as below the line between the middles of pixels, unless it is half a sample or half a pixel beside."""
        slope = 10.0  # m a line
        middles = slope * np.broadcast_to(np.arange(2, HEIGHT, 4)[:, None], (HEIGHT // 4, WIDTH))
        theirs = self.theirs(middles)
        ours = self.ours("flatten=dem", "dem-location=" + self.path("topo_ra.grd"), "dem-surface=sphere")
        off = np.angle(np.exp(1j * (ours.astype(float) - theirs)))[4:-4]
        steps = off.reshape(-1, 4, WIDTH)
        self.assertGreater(np.abs(steps).max(), 1)
        self.assertLess(np.abs(steps.mean(1)).max(), LIMIT)  # half a sample would be 0.4 rad

    def test_ellipsoid(self):
        """phasediff knows spheres alone: it gets the heights of the ellipsoid above its own."""
        point = flat.true_point(0 * self.hill, flat.AXES)[0]
        self.compare("ellipsoid", self.ours("flatten=orbit"), self.theirs(np.linalg.norm(point, axis=-1) - flat.RADIUS),
                     -flat.true_phase(0 * self.hill, flat.AXES))


if __name__ == "__main__":
    main()
