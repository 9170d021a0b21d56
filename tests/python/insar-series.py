# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stack on one grid, from PRM files to what MintPy and sbas of GMTSAR read: five generated images of orbits in closed form, over an
ellipsoid with a hill, whose ground moves at a known rate."""
import contextlib
import csv
import importlib.util
import itertools
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, gst_imaging, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import slcs

spec = importlib.util.spec_from_file_location("flat", os.path.join(os.path.dirname(os.path.abspath(__file__)), "insar-flat.py"))
flat = importlib.util.module_from_spec(spec)
spec.loader.exec_module(flat)

WIDTH, HEIGHT, LOOKS, MARGIN = flat.WIDTH, flat.HEIGHT, 4, slcs.MARGIN
CELLS = HEIGHT // LOOKS, WIDTH // LOOKS
MIDDLE = np.s_[6:-6, 6:-6]
COHERENCE = 0.9
# programs of GMTSAR may be in a folder of their own
PATH = os.pathsep.join((os.environ["PATH"], *filter(None, [os.environ.get("GMTSAR_PROGRAMS")])))
has_snaphu = bool(shutil.which("snaphu") or importlib.util.find_spec("snaphu"))
# day of 2007 and metres up, rad of the node and rad along the orbit: images that are up to 9 columns and 9 lines apart
SCENES = {"E_20070227": (58, 0, 0, 0), "E_20070403": (93, 55, 3e-6, 2e-6), "E_20070508": (128, -35, -4e-6, -3e-6),
          "E_20070612": (163, 40, -6e-6, 4e-6), "E_20070717": (198, -20, 5e-6, 1e-6)}
GRID = "E_20070508"
radius, phase, node, inclination = flat.ORBITS["ref"]
flat.ORBITS.update({name: (radius + up, phase + along, node + across, inclination) for name, (_day, up, across, along) in SCENES.items()})


def cells(values):
    return values.reshape(CELLS[0], LOOKS, CELLS[1], LOOKS).mean((1, 3))


def wrap(values):
    return np.angle(np.exp(1j * values))


class Series(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        flat.Flat.folder = cls.path("slc")
        os.mkdir(cls.path("slc"))
        y, x = np.mgrid[-MARGIN:HEIGHT + MARGIN, -MARGIN:WIDTH + MARGIN]
        cls.heights = 900 * np.exp(-((x - 230) / 50) ** 2 - ((y - 120) / 45) ** 2)
        cls.rate = 0.036 * np.exp(-((x - 130) / 55) ** 2 - ((y - 90) / 40) ** 2)  # rad a day, away from the radar
        cls.inner = np.s_[MARGIN:-MARGIN, MARGIN:-MARGIN]
        cls.point, ranges = flat.true_point(cls.heights, flat.AXES, GRID, MARGIN)
        rng = np.random.default_rng(8)
        ground = slcs.band_limited(rng, x.shape)
        for name, (day, *_place) in SCENES.items():
            seen, when = flat.true_range(cls.point, name)
            moved = cls.rate * (day - SCENES[GRID][0])
            image = np.sqrt(COHERENCE) * ground + np.sqrt(1 - COHERENCE) * slcs.band_limited(rng, x.shape)
            image = image * np.exp(-1j * (4 * np.pi / flat.WAVELENGTH * (seen - ranges) + moved))
            columns = (seen - flat.NEAR) / (flat.C / 2 / flat.RATE)
            lines = (when - flat.START) * flat.PRF
            cls.save(name, day, cls.move(image, x, y, columns, lines))
        np.save(cls.path("dem.npy"), cls.heights[cls.inner].astype(np.float32))
        mask = np.ones((HEIGHT, WIDTH), np.uint8)
        mask[:20, :40] = 0
        np.save(cls.path("mask.npy"), mask)
        cls.run_stack()

    @staticmethod
    def move(image, x, y, columns, lines):
        """The image on its own grid, where sample (x, y) is at (columns, lines): an affine transform, or nearly."""
        terms = np.stack((np.ones(x.size), columns.ravel(), lines.ravel()), 1)
        own_y, own_x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
        places = []
        for values in x, y:
            fit = np.linalg.lstsq(terms, values.ravel().astype(float), rcond=None)[0]
            assert np.abs(terms @ fit - values.ravel()).max() < 0.1
            places.append(fit[0] + fit[1] * own_x + fit[2] * own_y + MARGIN)
        return slcs.warp(image, *places)

    @classmethod
    def save(cls, name, day, image):
        samples = np.round(2000 * np.stack((image.real, image.imag), -1))
        np.clip(samples, -32767, 32767).astype("<i2").tofile(cls.path("slc", name + ".SLC"))
        flat.Flat.write_gmtsar(name, day)
        with open(cls.path("slc", name + ".PRM"), "a", encoding="ascii") as file:
            file.write(f"SLC_file = {name}.SLC\nnum_rng_bins = {WIDTH}\nnum_lines = {HEIGHT}\nSC_clock_start = {2007000 + day + flat.START / 86400:.12f}\n")

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def run_stack(cls):
        gst_imaging("insar-stack", cls.path("slc"), "-o", cls.path("stack"), "--network", "sequential", "--connections", "2", "--grid", GRID,
                    "--", "--looks", str(LOOKS), str(LOOKS), "--dem", cls.path("dem.npy"), "--filter", "0", "--mask",
                    cls.path("mask.npy"), *(["--geocode", "orbit"] if shutil.which("gdalwarp") else []), *(["--unwrap"] if has_snaphu else []))
        for name in "images.csv", "jobs.csv":
            gst_imaging("batch", cls.path("stack", name))
        cls.pairs = {}
        with open(cls.path("stack", "pairs.csv"), encoding="utf-8") as file:
            for row in csv.DictReader(file):
                folder = cls.path("stack-pairs", f"{row['reference']}-{row['secondary']}")
                cls.pairs[row["reference"], row["secondary"]] = np.fromfile(os.path.join(folder, "phase.img"), "<f4").reshape(CELLS)
                # no phase is beyond half a turn here, so the wrapped one is what snaphu writes
                if not has_snaphu:
                    shutil.copyfile(os.path.join(folder, "phase.img"), os.path.join(folder, "unwrapped.img"))

    def result(self, pair, *names):
        return self.path("stack-pairs", "-".join(pair), *names)

    def days(self, pair):
        return SCENES[pair[1]][0] - SCENES[pair[0]][0]

    def truth(self):
        return cells(self.rate[self.inner])

    def series(self, program, status=0):
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), program)
        printed = gst_imaging("insar-stack", self.path("stack"), "--series", program, "-o", out, status=status)
        return printed if status else out

    def test_pairs_are_flat_on_the_grid_of_another_image(self):
        self.assertEqual(len(self.pairs), 7)
        self.assertIn(("E_20070612", "E_20070717"), self.pairs)  # neither is that of the grid
        for pair, found in self.pairs.items():
            away = (found - self.truth() * self.days(pair))[MIDDLE]
            print(f"{pair}: {away.mean():+.3f} rad, {away.std():.3f} rad rms from the truth")
            self.assertLess(abs(away.mean()), 0.03)
            self.assertLess(away.std(), 0.13)

    def test_the_grid_is_needed(self):
        """As if the two images were on the grid of their reference"""
        pair = "E_20070612", "E_20070717"
        images = [self.path("stack-images", name, "secondary.PRM") for name in pair]
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), "pair")
        words = ["--coregistered", "--orbits", *(self.path("slc", name + ".PRM") for name in pair), "--filter", "0", "--dem", self.path("dem.npy")]
        told = gst_imaging("insar", *images, "-o", out, *words)
        grid = self.path("slc", GRID + ".PRM")
        self.assertIn(f"The images are in the columns and lines of {grid}, and the phase was computed for those of {words[2]}", told)
        self.assertNotIn("The images are in", gst_imaging("insar", *images, "-o", out + "3", *words, "--grid", grid))
        self.assertNotIn("The images are in", gst_imaging("insar", *images, "-o", out + "4", *words[:1], "--orbits", grid, words[3], *words[4:]))
        found = np.fromfile(os.path.join(out, "phase.img"), "<f4").reshape(CELLS)
        away = wrap(found - self.truth() * self.days(pair))[MIDDLE]
        print(f"on a wrong grid: {np.sqrt((away ** 2).mean()):.2f} rad rms from the truth")
        self.assertGreater(np.sqrt((away ** 2).mean()), 0.5)
        for more, sentence in ((["--grid", "x", "--flatten", "none"], "--grid is for a phase from orbits"), (["--grid", "x.PRM"], 'x.PRM')):
            self.assertIn(sentence, gst_imaging("insar", *images, "-o", out + "2", *words[:-2], *more, status=2 + (len(more) == 2)))
        self.assertIn("--grid is for --coregistered", gst_imaging("insar", *images, "-o", out + "2", "--grid", "x", status=2))

    def test_images_on_two_grids_are_refused(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        slc = {name: self.path("slc", name + ".PRM") for name in SCENES}
        on_grid = {name: self.path("stack-images", name, "secondary.PRM") for name in SCENES}
        gst_imaging("coregister", slc["E_20070227"], slc["E_20070403"], "-o", os.path.join(folder, "moved"), "--slc", "--flatten", "measured")
        moved = os.path.join(folder, "moved", "secondary.PRM")
        same = self.path("slc", "with-baseline.prm")  # as SAT_baseline appends lines
        shutil.copyfile(slc[GRID], same)
        self.addCleanup(os.remove, same)
        with open(same, "a", encoding="ascii") as file:
            file.write("B_perpendicular = 12\n")

        def insar(reference, secondary, *more, status=3):
            out = os.path.join(tempfile.mkdtemp(dir=folder), "pair")
            told = gst_imaging("insar", reference, secondary, "-o", out, "--coregistered", "--filter", "0", *more, status=status)
            self.assertEqual(os.path.exists(out), status == 0)
            return told

        other = on_grid["E_20070612"]
        self.assertIn(f'"{moved}" was resampled to the grid of {slc["E_20070227"]}, and the other image is in that of {slc[GRID]}', insar(other, moved))
        told = insar(moved, other, "--orbits", slc["E_20070403"], slc["E_20070612"], "--grid", slc[GRID])
        self.assertIn(f'"{moved}" was resampled to the grid of {slc["E_20070227"]}, and --grid is {slc[GRID]}', told)
        self.assertIn(f"gst-imaging coregister {slc[GRID]} {slc['E_20070403']} --slc", told)
        self.assertIn(f'"{slc["E_20070717"]}" was not resampled', insar(slc["E_20070717"], other))
        orbits = "--orbits", slc["E_20070403"], slc["E_20070612"], "--grid"
        self.assertIn(f"and --grid is {slc['E_20070717']}", insar(on_grid["E_20070403"], other, *orbits, slc["E_20070717"]))
        insar(on_grid["E_20070403"], other, *orbits, same, status=0)
        insar(same, other, "--orbits", slc[GRID], *orbits[2:], slc[GRID], status=0)
        insar(slc[GRID], other, "--flatten", "none", status=0)
        insar(slc["E_20070227"], moved, "--flatten", "none", status=0)

    def test_a_copy_has_its_original_named(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        for kind in "LED", "PRM", "SLC":
            shutil.copyfile(self.path("slc", f"E_20070403.{kind}"), os.path.join(folder, f"E_20070419.{kind}"))
        shutil.copyfile(self.path("slc", "E_20070403.SLC"), os.path.join(folder, "E_20070403.SLC"))  # PRM files name it
        gst_imaging("coregister", self.path("slc", GRID + ".PRM"), os.path.join(folder, "E_20070419.PRM"), "-o", os.path.join(folder, "copy"),
                    "--slc", "--flatten", "measured", "--looks", "4", "4", "--taps", "16")
        told = gst_imaging("insar", self.path("stack-images", "E_20070403", "secondary.PRM"), os.path.join(folder, "copy", "secondary.PRM"), "-o",
                           os.path.join(folder, "pair"), "--coregistered", "--flatten", "none")
        self.assertIn(f"Both images have the content of secondary.SLC, made of {self.path('slc', 'E_20070403.PRM')} and "
                      f"{os.path.join(folder, 'E_20070419.PRM')}", told)

    def test_masks_are_on_the_grid(self):
        for pair in self.pairs:
            mask = np.fromfile(self.result(pair, "mask.byte"), np.uint8).reshape(CELLS)
            self.assertFalse(mask[:5, :10].any())
            self.assertGreater(mask[MIDDLE].mean(), 0.95)

    @unittest.skipUnless(shutil.which("gdalwarp"), "gdal-bin is not installed")
    def test_maps_of_all_pairs_are_on_one_grid(self):
        """And each cell is at its place."""
        point = self.points_of_cells()
        axes, worst = set(), 0
        for pair, phase in self.pairs.items():
            tif = self.result(pair, "geo-phase.tif")
            told = json.loads(subprocess.run(["gdalinfo", "-json", tif], stdout=subprocess.PIPE, check=True).stdout)
            axes.add(json.dumps([told["size"], told["geoTransform"]]))
            raw = os.path.join(tempfile.mkdtemp(dir=self.folder), "raw")
            subprocess.run(["gdal_translate", "-q", "-of", "ENVI", tif, raw], check=True)
            values, t = np.fromfile(raw, "<f4").reshape(told["size"][::-1]), told["geoTransform"]
            for i, j in (10, 60), (22, 33), (25, 10), (40, 20):  # not on the slope, where many cells are at one place
                latitude, longitude = self.latitude_of(point[i, j]), np.degrees(np.arctan2(point[i, j, 1], point[i, j, 0]))
                found = values[int((latitude - t[3]) / t[5]), int((longitude - t[0]) / t[1])]
                (row, column), = np.argwhere(phase == found)
                worst = max(worst, np.linalg.norm(point[row, column] - point[i, j]))
        print(f"cells of maps are within {worst:.0f} m of their place")
        self.assertLess(worst, 115)  # half the diagonal of a pixel, and half a cell
        self.assertEqual(len(axes), 1)

    @staticmethod
    def latitude_of(p):
        """By iterations, unlike ours"""
        a, b = flat.AXES
        e2, r = 1 - (b / a) ** 2, np.hypot(p[0], p[1])
        latitude = np.arctan2(p[2], r * (1 - e2))
        for _ in range(12):
            latitude = np.arctan2(p[2] + e2 * a / np.sqrt(1 - e2 * np.sin(latitude) ** 2) * np.sin(latitude), r)
        return np.degrees(latitude)

    def test_triplets_close(self):
        for one, two, three in zip(SCENES, itertools.islice(SCENES, 1, None), itertools.islice(SCENES, 2, None)):
            closure = wrap(self.pairs[one, two] + self.pairs[two, three] - self.pairs[one, three])[MIDDLE]
            print(f"{one} {two} {three}: {closure.mean():+.4f} rad, {closure.std():.3f} rad rms")
            self.assertLess(abs(closure.mean()), 0.01)
            self.assertLess(closure.std(), 0.15)

    def test_the_rate_by_least_squares(self):
        names, pairs = list(SCENES), list(self.pairs)
        design = np.zeros((len(pairs), len(names) - 1))  # of the phases since the first scene
        for row, pair in zip(design, pairs):
            for name, sign in zip(pair, (-1, 1)):
                if name != names[0]:
                    row[names.index(name) - 1] = sign
        phases = np.stack([self.pairs[pair].ravel().astype(float) for pair in pairs])
        series = np.vstack((np.zeros(phases.shape[1]), np.linalg.lstsq(design, phases, rcond=None)[0]))
        days = np.array([SCENES[name][0] for name in names], float)
        rate = np.polyfit(days, series, 1)[0].reshape(CELLS)
        away = (rate - self.truth())[MIDDLE] * 365.25 * flat.WAVELENGTH / 4 / np.pi * 1000
        print(f"rate: {away.mean():+.2f} +- {away.std():.2f} mm a year; the hill has {self.truth().max() * 365.25 * flat.WAVELENGTH / 4 / np.pi * 1000:.1f}")
        self.assertLess(abs(away.mean()), 0.6)
        self.assertLess(away.std(), 1.5)

    def read(self, path, kind, bands=1):
        return np.fromfile(path, kind).reshape(CELLS[0], bands, CELLS[1])

    def check_unwrapped(self, phase, *pair):
        np.testing.assert_array_equal(np.nan_to_num(phase), np.nan_to_num(np.fromfile(self.result(pair, "unwrapped.img"), "<f4")).reshape(CELLS))
        np.testing.assert_allclose(phase[MIDDLE], self.pairs[pair][MIDDLE], atol=1e-5)

    def test_what_mintpy_reads(self):
        out = self.series("mintpy")
        self.assertEqual(sorted(os.listdir(os.path.join(out, "geometry"))), sorted(
            name + suffix for name in ("hgt.rdr", "lat.rdr", "lon.rdr", "los.rdr") for suffix in ("", ".rsc")))
        folder = os.path.join(out, "interferograms", "20070227_20070403")
        names = ["filt.cor", "filt.unw"] + (["filt.conncomp"] if has_snaphu else [])
        self.assertEqual(sorted(os.listdir(folder)), sorted(name + suffix for name in names for suffix in ("", ".rsc")))
        with open(os.path.join(folder, "filt.unw.rsc"), encoding="ascii") as file:
            told = dict(line.split() for line in file)
        self.assertEqual((told["WIDTH"], told["LENGTH"], told["DATE12"], told["BANDS"], told["DATA_TYPE"]),
                         (str(CELLS[1]), str(CELLS[0]), "070227-070403", "1", "float32"))
        self.assertAlmostEqual(float(told["RANGE_PIXEL_SIZE"]), LOOKS * flat.C / 2 / flat.RATE, delta=1e-6)
        self.assertAlmostEqual(float(told["STARTING_RANGE"]), flat.NEAR + 1.5 * flat.C / 2 / flat.RATE, delta=1e-3)
        phase = self.read(os.path.join(folder, "filt.unw"), "<f4")[:, 0]
        self.check_unwrapped(phase, "E_20070227", "E_20070403")
        self.assertTrue(np.isfinite(phase).all())
        point = self.points_of_cells()
        height = self.read(os.path.join(out, "geometry", "hgt.rdr"), "<f4")[:, 0]
        self.assertLess(np.abs(height - flat.height_above(point, flat.AXES)).max(), 1)  # of the mean of 4 x 4 heights
        latitude, longitude = (np.radians(self.read(os.path.join(out, "geometry", name + ".rdr"), "<f8")[:, 0]) for name in ("lat", "lon"))
        a, b = flat.AXES
        n = a / np.sqrt(1 - (1 - (b / a) ** 2) * np.sin(latitude) ** 2)
        found = np.stack(((n + height) * np.cos(latitude) * np.cos(longitude), (n + height) * np.cos(latitude) * np.sin(longitude),
                          (n * (b / a) ** 2 + height) * np.sin(latitude)), -1)
        print(f"cells are within {np.sqrt(flat.dot(found - point, found - point)).max():.3f} m of their place")
        self.assertLess(np.sqrt(flat.dot(found - point, found - point)).max(), 3)  # 1 m of height is 2.5 m of ground
        incidence, azimuth = np.radians(self.read(os.path.join(out, "geometry", "los.rdr"), "<f4", 2)).transpose(1, 0, 2)
        up = np.stack((np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)), -1)
        east = np.stack((-np.sin(longitude), np.cos(longitude), 0 * longitude), -1)
        way = np.cos(incidence)[..., None] * up + np.sin(incidence)[..., None] * (
            np.cos(azimuth)[..., None] * np.cross(up, east) - np.sin(azimuth)[..., None] * east)
        seen, when = flat.true_range(point, GRID)
        away = (flat.position(GRID, when) - point) / seen[..., None] - way
        self.assertLess(np.abs(away).max(), 2e-5)

    def points_of_cells(self):
        """The mean of the four samples around the middle of each cell"""
        point = self.point[self.inner].reshape(CELLS[0], LOOKS, CELLS[1], LOOKS, 3)
        return point[:, 1:3, :, 1:3].mean((1, 3))

    def baseline(self, pair):
        """Perpendicular, at the middle of the image, in closed form: how far the secondary is towards up, at a right angle to the sight"""
        point = flat.point_at(HEIGHT // 2, WIDTH // 2, 0, flat.AXES, pair[0])[0]
        places = [flat.position(name, flat.true_range(point, name)[1]) for name in pair]
        sight = (point - places[0]) / np.linalg.norm(point - places[0])
        along = flat.velocity(pair[0], flat.true_range(point, pair[0])[1])
        across = np.cross(sight, along) / np.linalg.norm(np.cross(sight, along))
        across = across if across @ point > 0 else -across  # a place that is further up looks more steeply
        return across @ (places[1] - places[0])

    def test_baselines_of_all_pairs_have_their_sign(self):
        out = self.series("mintpy")
        with open(self.path("stack", "pairs.csv"), encoding="utf-8") as file:
            in_plan = {(row["reference"], row["secondary"]): float(row["baseline_m"]) for row in csv.DictReader(file)}
        truth = {pair: self.baseline(pair) for pair in self.pairs}
        print("perpendicular baselines: " + ", ".join(f"{metres:+.1f}" for metres in truth.values()) + " m")
        self.assertEqual({metres > 0 for metres in truth.values()}, {False, True})
        for pair, metres in truth.items():
            self.assertGreater(abs(metres), 5)
            self.assertAlmostEqual(in_plan[pair], metres, delta=0.1)
            for name in "filt.unw", "filt.cor":
                with open(os.path.join(out, "interferograms", "_".join(scene[2:] for scene in pair), name + ".rsc"), encoding="ascii") as file:
                    told = dict(line.split() for line in file)
                for end in "TOP", "BOTTOM":
                    self.assertAlmostEqual(float(told[f"P_BASELINE_{end}_HDR"]), metres, delta=0.1)
                # samples of noise that fills 0.8 of the band in range and in azimuth
                self.assertAlmostEqual(float(told["NCORRLOOKS"]) / (LOOKS * LOOKS * slcs.BAND ** 2), 1, delta=0.1)

    @unittest.skipUnless(shutil.which("smallbaselineApp.py"), "MintPy is not installed")
    def test_mintpy(self):
        """Its own network inversion and velocity, in m a year towards the radar."""
        out = self.series("mintpy")
        with open(os.path.join(out, "stack.txt"), "a", encoding="ascii") as file:
            file.write("mintpy.reference.yx = 8, 70\nmintpy.network.coherenceBased = no\n")
        with open(shutil.which("smallbaselineApp.py"), encoding="utf-8") as file:
            python = file.readline().removeprefix("#!").strip()
        # not its quick_overview, whose histogram fails where all triplets close
        steps = "load_data", "modify_network", "reference_point", "invert_network"
        for words in (*(["smallbaselineApp.py", "stack.txt", "--dostep", step] for step in steps), ["timeseries2velocity.py", "timeseries.h5"],
                      [python, "-c", "from mintpy.utils import readfile; readfile.read('velocity.h5')[0].astype('<f4').tofile('velocity.f4')"]):
            done = subprocess.run(words, cwd=out, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        rate = -self.truth() * 365.25 * flat.WAVELENGTH / 4 / np.pi
        found = np.fromfile(os.path.join(out, "velocity.f4"), "<f4").reshape(CELLS)
        away = 1000 * (found - rate)[MIDDLE]
        print(f"MintPy: {away.mean():+.2f} +- {away.std():.2f} mm a year")
        self.assertLess(abs(away.mean()), 2)  # that of the reference point
        self.assertLess(away.std(), 1.5)

    @unittest.skipUnless(shutil.which("gdal_translate"), "gdal-bin is not installed")
    def test_what_sbas_of_gmtsar_reads(self):
        out = self.series("gmtsar")
        with open(os.path.join(out, "scene.tab"), encoding="ascii") as file:
            scenes = [line.split() for line in file]
        self.assertEqual([(int(name), float(days)) for name, days in scenes],
                         [(int(name[2:]), day - 58) for name, (day, *_place) in SCENES.items()])
        with open(os.path.join(out, "intf.tab"), encoding="ascii") as file:
            rows = [line.split() for line in file]
        self.assertEqual([(row[2], row[3]) for row in rows], [(one[2:], other[2:]) for one, other in self.pairs])
        for row, pair in zip(rows, self.pairs):
            self.assertAlmostEqual(float(row[4]), self.baseline(pair), delta=0.1)
            raw = os.path.join(out, "raw")
            subprocess.run(["gdal_translate", "-q", "-of", "ENVI", os.path.join(out, row[0]), raw], check=True)
            found = np.fromfile(raw, "<f4").reshape(CELLS)
            t = json.loads(subprocess.run(["gdalinfo", "-json", os.path.join(out, row[0])], stdout=subprocess.PIPE, check=True).stdout)["geoTransform"]
            self.assertEqual([t[0], t[1], t[3], t[5]], [0, LOOKS, HEIGHT, -LOOKS])  # the first row of GDAL has the last lines
            self.check_unwrapped(found[::-1], *pair)
        with open(os.path.join(out, "sbas.sh"), encoding="ascii") as file:
            words = file.read().split()
        self.assertIn(f"sbas intf.tab scene.tab 7 5 {CELLS[1]} {CELLS[0]} -wavelength 0.0566 -incidence", " ".join(words))
        point = flat.point_at(HEIGHT // 2, WIDTH // 2, 0, flat.AXES, GRID)[0]
        distance, when = flat.true_range(point, GRID)
        up = point / np.array([flat.AXES[0], flat.AXES[0], flat.AXES[1]]) ** 2
        incidence = np.degrees(np.arccos((flat.position(GRID, when) - point) @ up / distance / np.linalg.norm(up)))
        self.assertAlmostEqual(float(words[words.index("-range") + 1]), distance, delta=10)
        self.assertAlmostEqual(float(words[words.index("-incidence") + 1]), incidence, delta=0.05)

    @unittest.skipUnless(shutil.which("sbas", path=PATH), "sbas of GMTSAR is not in PATH or GMTSAR_PROGRAMS")
    @unittest.skipUnless(shutil.which("gdal_translate"), "gdal-bin is not installed")
    def test_sbas_of_gmtsar(self):
        """Its own velocity, in mm a year of 365 days towards the radar."""
        out = self.series("gmtsar")
        done = subprocess.run(["sh", "sbas.sh"], cwd=out, env={**os.environ, "PATH": PATH}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        subprocess.run(["gdal_translate", "-q", "-of", "ENVI", os.path.join(out, "vel.grd"), os.path.join(out, "raw")], check=True)
        found = np.fromfile(os.path.join(out, "raw"), "<f4").reshape(CELLS)[::-1]  # the first row of GDAL has the last lines
        away = (found + self.truth() * 365 * 1000 * flat.WAVELENGTH / 4 / np.pi)[MIDDLE]
        print(f"sbas: {away.mean():+.2f} +- {away.std():.2f} mm a year")
        self.assertLess(abs(away.mean()), 0.5)
        self.assertLess(away.std(), 1.5)

    def copy_of_the_plan(self):
        """Returns: a folder with the tables, whose rows have the same results"""
        folder = os.path.join(tempfile.mkdtemp(dir=self.folder), "stack")
        return shutil.copytree(self.path("stack"), folder)

    def table(self, stack):
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), "table")
        told = gst_imaging("insar-stack", stack, "--table", "-o", out)
        with open(os.path.join(out, "table.csv"), encoding="utf-8") as file:
            return {(row["reference"], row["secondary"]): row for row in csv.DictReader(file)}, told

    @staticmethod
    def rewrite(path, change):
        """change: of the list of lines below the heading"""
        with open(path, encoding="utf-8") as file:
            first, *lines = file.read().splitlines()
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([first, *change(lines)]) + "\n")

    def test_rows_in_another_order(self):
        """A pair has the result of its row, wherever this is"""
        stack = self.copy_of_the_plan()
        self.rewrite(os.path.join(stack, "jobs.csv"), lambda lines: lines[::-1])
        found, _told = self.table(stack)
        truth, _told = self.table(self.path("stack"))
        self.assertEqual(found, truth)
        self.assertEqual({row["state"] for row in truth.values()}, {"complete"})
        self.assertEqual(len({row["mean coherence"] for row in truth.values()}), 7)
        for change, sentence in ((lambda lines: lines[1:], "no row of E_20070227-E_20070403"), (lambda lines: [*lines, lines[0]], "two rows have the output"),
                                 (lambda lines: [*lines, lines[0].replace("stack-pairs", "other")], "or it has two rows: E_20070227-E_20070403"),
                                 (lambda lines: [lines[0].replace("slc/E_20070403", "slc/E_20070508"), *lines[1:]], "the orbits of E_20070227 and E_20070508")):
            stack = self.copy_of_the_plan()
            self.rewrite(os.path.join(stack, "jobs.csv"), change)
            self.assertIn(sentence, gst_imaging("insar-stack", stack, "--table", "-o", stack + "-table", status=3))

    def test_results_of_an_older_plan(self):
        stack = self.copy_of_the_plan()
        self.rewrite(os.path.join(stack, "jobs.csv"), lambda lines: [lines[0], *(line.replace("--looks 4 4", "--looks 2 4") for line in lines[1:])])
        found, told = self.table(stack)
        self.assertEqual([row["state"] for row in found.values()], ["complete"] + ["stale"] * 6)
        self.assertIn("of other inputs or settings than its row", told)
        self.assertEqual([row["mean coherence"] == "" for row in found.values()], [False] + [True] * 6)
        out = stack + "-mintpy"
        told = gst_imaging("insar-stack", stack, "--series", "mintpy", "-o", out, status=1)
        self.assertIn("6 of 7 pairs have no result", told)
        self.assertIn("--overwrite", told)
        self.assertFalse(os.path.exists(out))

    def test_pairs_of_an_image_that_is_stale(self):
        """As after a plan with --warp, which changes images.csv alone"""
        stack, image = self.copy_of_the_plan(), "E_20070227"
        plan = self.path("slc"), "-o", stack, "--overwrite", "--network", "sequential", "--connections", "2", "--results", self.path("stack-pairs"), "--"
        with open(os.path.join(stack, "jobs.csv"), encoding="utf-8") as file:
            text = file.read()
            words = shlex.split(next(csv.DictReader(text.splitlines()))["arguments"])
        gst_imaging("insar-stack", *plan, *words[words.index("--grid") + 2:], "--warp")
        with open(os.path.join(stack, "jobs.csv"), encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        self.assertEqual({row["state"] for row in self.table(stack)[0].values()}, {"stale"})
        self.rewrite(os.path.join(stack, "images.csv"), lambda lines: [lines[0], *(line.replace(" --warp", "") for line in lines[1:])])
        found, told = self.table(stack)
        self.assertEqual({pair for pair, row in found.items() if row["state"] == "stale"}, {pair for pair in self.pairs if image in pair})
        self.assertIn(f"its image {self.path('stack-images', image)} has to be made first, by images.csv: it is of other inputs or settings than its row. "
                      f"Run gst-imaging batch {stack}/images.csv, and then {stack}/jobs.csv, with --overwrite for results that do not count.", told)
        with self.without(self.path("stack-images", image)):
            self.assertIn("by images.csv: it is not there", self.series("mintpy", status=1))

    def test_pairs_beyond_a_limit(self):
        """The last line of the table names them"""
        path = self.result(("E_20070612", "E_20070717"), "result.json")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.addCleanup(pathlib.Path(path).write_text, text, encoding="utf-8")
        result = json.loads(text)
        next(figure for figure in result["figures"] if figure["name"] == "mean coherence")["met"] = False
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file)
        found, told = self.table(self.path("stack"))
        self.assertEqual([row["beyond its limit"] for row in found.values()], [""] * 6 + ["mean coherence"])
        self.assertIn("beyond its limit: pairs beyond the limit of mean coherence;", told.splitlines()[-1])

    def test_files_that_are_too_short(self):
        pair = "E_20070612", "E_20070717"
        for name in "coherence.img", "unwrapped.img":
            with open(self.result(pair, name), "rb") as file:
                data = file.read()
            self.assertEqual(len(data), 4 * CELLS[0] * CELLS[1])
            with open(self.result(pair, name), "r+b") as file:
                file.truncate(100)
            try:
                if name == "coherence.img" or has_snaphu:
                    self.assertIn(f"does not count: it is damaged: {name} has 100 bytes", self.series("mintpy", status=1))
                    self.assertEqual(self.table(self.path("stack"))[0][pair]["state"], "stale")
                else:  # a file of a run of snaphu by hand is no output of the row
                    self.assertIn("unwrapped.img has 100 bytes", self.series("mintpy", status=3))
            finally:
                with open(self.result(pair, name), "wb") as file:
                    file.write(data)

    @contextlib.contextmanager
    def without(self, path):
        os.rename(path, self.path("lost"))
        try:
            yield
        finally:
            os.rename(self.path("lost"), path)

    def test_what_is_missing_is_said(self):
        lost = self.path("stack-pairs", "E_20070612-E_20070717")
        with self.without(os.path.join(lost, "unwrapped.img")):
            # snaphu of --unwrap wrote it, so the result is damaged without it
            self.assertIn("it is damaged: unwrapped.img is missing" if has_snaphu else "give --unwrap behind --", self.series("mintpy", status=1))
        with self.without(lost):
            self.assertIn("1 of 7 pairs have no result", self.series("mintpy", status=1))

    def test_a_pair_that_is_left_out(self):
        """One that has no result; the others still connect all scenes, unless the last scene loses its other pair, too"""
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), "out")
        lost, other = ("E_20070612", "E_20070717"), ("E_20070508", "E_20070717")
        with self.without(self.path("stack-pairs", "-".join(lost))):
            self.assertIn(f"To do without such a pair: --leave-out {' '.join(lost)}.", self.series("mintpy", status=1))
            gst_imaging("insar-stack", self.path("stack"), "--series", "mintpy", "-o", out, "--leave-out", *lost)
            self.assertEqual(len(os.listdir(os.path.join(out, "interferograms"))), 6)
            gst_imaging("insar-stack", self.path("stack"), "--table", "-o", out + "2", "--leave-out", *lost)
            with open(os.path.join(out + "2", "table.csv"), encoding="utf-8") as file:
                self.assertEqual([(row["reference"], row["secondary"]) for row in csv.DictReader(file)], [pair for pair in self.pairs if pair != lost])
            told = gst_imaging("insar-stack", self.path("stack"), "--series", "mintpy", "-o", out + "3", "--leave-out", *lost, "--leave-out", *other, status=1)
            self.assertIn("do not connect all scenes: there are 2 parts", told)
            self.assertFalse(os.path.exists(out + "3"))


if __name__ == "__main__":
    main()
