# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging insar: from two SLC images to fringes, unwrapped phase and map coordinates, against the truth of a generated
pair: own orbits, an ellipsoid, and a hill that has moved."""
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, command, gst_imaging, main, result_of

sys.path[:0] = os.path.join(SOURCE, "pipelines"), os.path.join(SOURCE, "tests", "data")
import slcs
from gst_imaging.command import Failure
from gst_imaging.commands import insar
from gst_imaging.sar import agreement, fringes, rasters

spec = importlib.util.spec_from_file_location("flat", os.path.join(os.path.dirname(os.path.abspath(__file__)), "insar-flat.py"))
flat = importlib.util.module_from_spec(spec)
spec.loader.exec_module(flat)

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

WIDTH, HEIGHT = flat.WIDTH, flat.HEIGHT
LOOKS = 4
CELLS = HEIGHT // LOOKS, WIDTH // LOOKS
has_snaphu = bool(shutil.which("snaphu") or importlib.util.find_spec("snaphu"))


def cells(values):
    return values.reshape(CELLS[0], LOOKS, CELLS[1], LOOKS).mean((1, 3))


class Insar(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = flat.Flat.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        rng = np.random.default_rng(5)
        shape = HEIGHT + 2 * slcs.MARGIN, WIDTH + 2 * slcs.MARGIN
        y, x = np.mgrid[:shape[0], :shape[1]] - slcs.MARGIN
        cls.motion = 9 * np.exp(-((x - 150) / 60) ** 2 - ((y - 90) / 40) ** 2)
        earth = np.zeros(shape)
        inner = np.s_[slcs.MARGIN:-slcs.MARGIN, slcs.MARGIN:-slcs.MARGIN]
        earth[inner] = flat.true_phase(np.zeros((HEIGHT, WIDTH)), flat.AXES)
        slope = earth[inner][100, 101] - earth[inner][100, 100]
        earth = np.where(earth == 0, slope * x, earth)  # the margins are not looked at
        ground, noise = slcs.band_limited(rng, shape), slcs.band_limited(rng, shape)
        later = (0.9 * ground + 0.436 * noise) * np.exp(-1j * (earth + cls.motion))
        cls.motion, cls.earth = cls.motion[inner], earth[inner]
        cls.save("ref", ground[inner])
        cls.save("aligned", later[inner])
        yy, xx = np.mgrid[:HEIGHT, :WIDTH].astype(float)
        cls.save("sec", slcs.warp(later, np.clip(xx - 3.4 + slcs.MARGIN, 8, shape[1] - 9), np.clip(yy + 2.3 + slcs.MARGIN, 8, shape[0] - 9)))
        for name in flat.ORBITS:
            flat.Flat.write_gmtsar(name)
            with open(cls.path(name + ".PRM"), "a", encoding="ascii") as file:
                file.write(f"SLC_file = {name}.SLC\nnum_rng_bins = {WIDTH}\nnum_lines = {HEIGHT}\n"
                           f"SC_clock_start = {2007000 + flat.DAYS + flat.START / 86400:.12f}\n")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def save(cls, name, image):
        samples = np.stack((image.real, image.imag), -1)
        np.round(2000 * samples).astype("<i2").tofile(cls.path(name + ".SLC"))
        np.save(cls.path(name + ".npy"), np.ascontiguousarray(2000 * image, np.complex64))

    def run_insar(self, reference, secondary, *words, status=0):
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), "pair")
        printed = gst_imaging("insar", self.path(reference), self.path(secondary), "-o", out, *words, status=status)
        if status:
            self.assertFalse(os.path.exists(out))
            return printed
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            self.result = json.load(file)
        return out

    def read(self, out, name, kind="<f4"):
        return np.fromfile(os.path.join(out, name), kind).reshape(CELLS)

    def check_phase(self, found, truth, limit, name):
        middle = np.s_[6:-6, 6:-6]
        away = (found - truth)[middle]
        away = np.angle(np.exp(1j * (away - np.angle(np.exp(1j * away).mean()))))
        rms = np.sqrt((away ** 2).mean())
        print(f"{name}: {rms:.3f} rad rms")
        self.assertLess(rms, limit)

    def test_orbits_and_shift(self):
        """The fringes of the ellipsoid are gone, those of the hill are there; nothing of the way is left."""
        out = self.run_insar("ref.PRM", "sec.PRM")
        self.assertEqual((self.result["flattening"], self.result["warnings"]), ("orbit", []))
        self.check_phase(self.read(out, "phase.img"), cells(self.motion), 0.15, "orbit")
        self.assertGreater(self.read(out, "coherence.img")[6:-6, 64:-6].mean(), 0.87)  # where nothing moves
        files = sorted(os.listdir(out))
        self.assertEqual(files, sorted(
            "amplitude.img amplitude.img.hdr amplitude.img.vrt amplitude.png coherence.img coherence.img.hdr coherence.img.vrt coherence.png "
            "field.svg fit.txt freq_xcorr.dat fringes.png interferogram.cf32 interferogram.cf32.hdr interferogram.cf32.vrt mask.byte "
            "phase.img phase.img.hdr phase.img.vrt removed.img removed.img.hdr removed.img.vrt report.html result.json snaphu.conf".split()))
        away = self.read(out, "removed.img") - cells(self.earth)
        self.assertLess(np.nanmax(np.abs(np.angle(np.exp(1j * away)))), 2e-3)  # the earth bends within a cell
        before = os.stat(os.path.join(out, "result.json")).st_mtime_ns  # a second call has nothing to do
        gst_imaging("insar", self.path("ref.PRM"), self.path("sec.PRM"), "-o", out)
        self.assertEqual(os.stat(os.path.join(out, "result.json")).st_mtime_ns, before)
        text = gst_imaging("insar", self.path("ref.PRM"), self.path("sec.PRM"), "-o", out, "--filter", "0", status=4)
        self.assertIn("--overwrite replaces it", text)
        with open(self.path("sec.LED"), "a+", encoding="ascii") as file:  # another orbit
            end = file.seek(0, os.SEEK_END)
            file.write("\n")
            file.flush()
            text = gst_imaging("insar", self.path("ref.PRM"), self.path("sec.PRM"), "-o", out, status=4)
            file.truncate(end)
        self.assertIn("--overwrite replaces it", text)

    def test_one_rule_finds_orbits(self):
        """In the working folder, or else beside the PRM file. The phase, the baseline and the inputs are of one LED file."""
        words = self.path("ref.PRM"), self.path("sec.PRM"), "--coregistered", "--looks", "4", "4", "--flatten", "orbit", "--filter", "0"
        work, alone = (tempfile.mkdtemp(dir=self.folder) for _ in range(2))
        with unittest.mock.patch.object(flat, "ORBITS", {"sec": (7155490.0, *flat.ORBITS["sec"][1:])}), \
                unittest.mock.patch.object(flat.Flat, "folder", work):
            flat.Flat.write_gmtsar("sec")
        for name in "ref", "sec":
            for kind in "PRM", "SLC":
                shutil.copy(self.path(f"{name}.{kind}"), alone)
        shutil.copy(self.path("ref.LED"), work)
        command(work, "insar", *words, "-o", "before")
        command(work, "insar", *(os.path.join(alone, os.path.basename(word)) for word in words[:2]), *words[2:], "-o", "alone")
        baselines, phases = [], []
        for name in "before", "alone":
            result = result_of(os.path.join(work, name))
            baselines += [figure["value"] for figure in result["figures"] if figure["name"] == "perpendicular baseline"]
            phases.append(self.read(os.path.join(work, name), "removed.img"))
            with open(os.path.join(work, "sec.LED"), "rb") as file:
                self.assertIn(hashlib.sha256(file.read()).hexdigest(), [entry["sha256"] for entry in result["inputs"] if entry["role"] == "orbit"])
        print(f"baselines by the orbit of the working folder: {baselines} m")
        self.assertEqual(baselines, [baselines[0]] * 2)
        self.assertGreater(baselines[0], 200)  # 110 m by that beside the PRM file
        np.testing.assert_array_equal(*phases)
        with open(os.path.join(work, "sec.LED"), "a", encoding="ascii") as file:  # another orbit
            file.write("\n")
        self.assertIn("--overwrite replaces it", command(work, "insar", *words, "-o", "before", status=4))

    def test_the_baseline_is_told(self):
        """The phase of terrain that rises by the height of a fringe turns once."""
        self.run_insar("ref.PRM", "sec.PRM", "--filter", "0")
        figures = {figure["name"]: figure for figure in self.result["figures"]}
        high, low = (flat.true_phase(np.full((HEIGHT, WIDTH), h), flat.AXES)[HEIGHT // 2, WIDTH // 2] for h in (5.0, -5.0))
        height = 2 * np.pi / abs(high - low) * 10
        print(f"height of a fringe: {figures['height of a fringe']['value']:.2f} m, from the phase {height:.2f} m")
        self.assertAlmostEqual(figures["height of a fringe"]["value"] / height, 1, delta=0.005)
        self.assertIn("--dem removes it", figures["height of a fringe"]["about"])
        point = flat.true_point(np.zeros((HEIGHT, WIDTH)), flat.AXES)[0]
        time, later, seen = flat.START + HEIGHT / 2 / flat.PRF, flat.true_range(point, "sec")[1], point[HEIGHT // 2, WIDTH // 2]
        place, along = flat.position("ref", time), flat.velocity("ref", time)
        across = np.cross(seen - place, along)
        baseline = (flat.position("sec", later[HEIGHT // 2, WIDTH // 2]) - place) @ across / np.linalg.norm(across)
        print(f"baseline: {figures['perpendicular baseline']['value']:.2f} m, from positions {baseline:.2f} m")
        self.assertAlmostEqual(figures["perpendicular baseline"]["value"], baseline, delta=0.05)

    def test_a_baseline_beyond_the_critical_one(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        with unittest.mock.patch.object(flat, "ORBITS", {"sec": (7160000.0, *flat.ORBITS["sec"][1:])}), \
                unittest.mock.patch.object(flat.Flat, "folder", folder):
            flat.Flat.write_gmtsar("sec")
        with open(self.path("sec.PRM"), encoding="ascii") as file, open(self.path("distant.PRM"), "w", encoding="ascii") as made:
            made.write(file.read().replace("sec.LED", os.path.join(folder, "sec.LED")))
        for secondary, number in ("sec.PRM", 0), ("distant.PRM", 1):
            self.run_insar("ref.PRM", secondary, "--coregistered", "--flatten", "none", "--filter", "0")
            self.assertEqual(sum("above the critical one" in text for text in self.result["warnings"]), number)

    def test_no_baseline_of_an_orbit_that_ends_early(self):
        """It was one of 123 km. Where no orbit is needed, this is a warning."""
        folder = tempfile.mkdtemp(dir=self.folder)
        with unittest.mock.patch.object(flat, "START", flat.START - 110), unittest.mock.patch.object(flat.Flat, "folder", folder):
            flat.Flat.write_gmtsar("ref")
        with open(self.path("ref.PRM"), encoding="ascii") as file, open(self.path("early.PRM"), "w", encoding="ascii") as made:
            made.write(file.read().replace("ref.LED", os.path.join(folder, "ref.LED")))
        self.run_insar("early.PRM", "sec.PRM", "--coregistered", "--flatten", "none", "--filter", "0")
        self.assertNotIn("perpendicular baseline", [figure["name"] for figure in self.result["figures"]])
        self.assertTrue([text for text in self.result["warnings"] if "early.PRM is of the time" in text and "Take a longer orbit." in text])

    def test_heights(self):
        """Heights of zero are the ellipsoid."""
        np.save(self.path("dem.npy"), np.zeros((10, 16), np.float32))
        out = self.run_insar("ref.PRM", "aligned.npy", "--coregistered", "--orbits", self.path("ref.PRM"), self.path("sec.PRM"), "--dem",
                             self.path("dem.npy"), status=1)
        self.assertIn("both must be the same", out)  # int16 and float
        out = self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--orbits", self.path("ref.PRM"), self.path("sec.PRM"), "--dem",
                             self.path("dem.npy"))
        self.assertEqual(self.result["flattening"], "dem")
        self.assertFalse(os.path.exists(os.path.join(out, "fit.txt")))
        self.check_phase(self.read(out, "phase.img"), cells(self.motion), 0.15, "dem, coregistered")
        self.assertIn(["heights of the DEM", "0 to 0 m"], self.result["facts"])
        self.assertIn("this DEM removes no terrain", self.result["warnings"][0])
        np.save(self.path("slope.npy"), np.linspace(-3, 20, 160, dtype=np.float32).reshape(10, 16))
        self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--orbits", self.path("ref.PRM"), self.path("sec.PRM"), "--dem", self.path("slope.npy"))
        self.assertIn(["heights of the DEM", "-3 to 20 m"], self.result["facts"])
        self.assertEqual(self.result["warnings"], [])

    def test_heights_that_add_fringes_are_told(self):
        """The ground is the ellipsoid here"""
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        hill = 1500 * np.exp(-((x - 230) / 40) ** 2 - ((y - 120) / 40) ** 2)
        for heights, warned in (hill / 50, False), (hill, True):
            np.save(self.path("hill.npy"), heights.astype(np.float32))
            self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--orbits", self.path("ref.PRM"), self.path("sec.PRM"), "--dem", self.path("hill.npy"))
            figure = {figure["name"]: figure for figure in self.result["figures"]}["smoothness of the phase with the heights"]
            print(figure)
            self.assertEqual((not figure["met"], any("make the phase rougher" in text for text in self.result["warnings"])), (warned, warned))

    def test_saturated_samples_are_told(self):
        image = np.fromfile(self.path("ref.SLC"), "<i2").reshape(HEIGHT, WIDTH, 2)
        shutil.copy(self.path("ref.LED"), self.path("bright.LED"))
        with open(self.path("ref.PRM"), encoding="ascii") as file, open(self.path("bright.PRM"), "w", encoding="ascii") as made:
            made.write(file.read().replace("ref.", "bright."))
        out = []
        for scale in 8, 16:
            bright = np.clip(scale * image.astype(int), -32768, 32767)
            bright.astype("<i2").tofile(self.path("bright.SLC"))
            self.run_insar("bright.PRM", "sec.PRM")
            figures = {figure["name"]: figure for figure in self.result["figures"] if "saturated" in figure["name"]}
            true = 100 * (np.isin(bright, (-32768, -32767, 32767)).any(-1).sum() / bright.any(-1).sum())
            print(f"saturated: {true:.3f} %")
            self.assertAlmostEqual(figures["saturated samples, reference"]["value"], true, 6)
            self.assertEqual(figures["saturated samples, secondary"]["value"], 0)
            out.append(figures["saturated samples, reference"]["met"])
            self.assertEqual(any("of the reference are saturated" in sentence for sentence in self.result["warnings"]), not out[-1])
        self.assertEqual(out, [True, False])
        self.run_insar("ref.npy", "aligned.npy", "--coregistered")
        self.assertFalse([figure for figure in self.result["figures"] if "saturated" in figure["name"]])  # floats have no such end

    def test_the_other_side_is_told(self):
        """A baseline so long that flat ground shifts by columns over this narrow image."""
        axes = flat.AXES
        orbits = {"ref": flat.ORBITS["ref"], "far": (7155400.0, 0.9 + 3e-6, 0.4 + 2e-4, 1.72)}
        with unittest.mock.patch.object(flat, "ORBITS", orbits):
            point, _ranges = flat.true_point(np.zeros((HEIGHT, WIDTH)), axes)
            columns = (flat.true_range(point, "far")[0] - flat.NEAR) * 2 * flat.RATE / flat.C - np.arange(WIDTH)
            flat.Flat.write_gmtsar("far")
        grown = columns[HEIGHT // 2, -1] - columns[HEIGHT // 2, 0]
        shift = columns[HEIGHT // 2] - columns[HEIGHT // 2].mean()  # at a column of ref, that of far is so much larger
        image = np.fromfile(self.path("ref.SLC"), "<i2").reshape(HEIGHT, WIDTH, 2).astype(float) @ [1, 1j]
        x = np.arange(WIDTH)
        source = np.clip(np.interp(x, x + shift, x), 8, WIDTH - 9)[None] + np.zeros((HEIGHT, 1))
        moved = slcs.warp(np.pad(image, ((8, 8), (0, 0)), "wrap"), source, np.mgrid[:HEIGHT, :WIDTH][0] + 8.0)
        np.round(np.stack((moved.real, moved.imag), -1)).astype("<i2").tofile(self.path("far.SLC"))
        more = f"num_lines = {HEIGHT}\nSC_clock_start = {2007000 + flat.DAYS + flat.START / 86400:.12f}\n"
        with open(self.path("far.PRM"), "a", encoding="ascii") as file:
            file.write(f"SLC_file = far.SLC\nnum_rng_bins = {WIDTH}\n{more}")
        with open(self.path("ref.PRM"), encoding="ascii") as file:
            right = file.read()
        for side, sentence in ("R", []), ("L", ["lookdir = L of"]):
            with open(self.path("side.PRM"), "w", encoding="ascii") as file:
                file.write(right.replace("lookdir = R", f"lookdir = {side}"))
            self.run_insar("side.PRM", "far.PRM", "--filter", "0")
            found = [text for text in self.result["warnings"] if "lookdir = " in text]
            print(f"lookdir = {side}: {grown:.2f} columns", *found)
            self.assertEqual([text[:14] for text in found], sentence)
            for text in found:
                self.assertIn(f"grows by {grown:.1f} columns", text)
                self.assertIn("Set lookdir = R", text)

    def change(self, name, **values):
        """A PRM file with other values. Returns: its name"""
        with open(self.path(name + ".PRM"), encoding="ascii") as file:
            lines = [line.split(" = ") for line in file]
        path = tempfile.mkstemp(".PRM", name, self.folder)[1]
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{key} = {values.get(key, value.strip())}\n" for key, value in lines)
        return os.path.basename(path)

    def test_a_wrong_geometry_is_told(self):
        """Even fringes are left; the image is too narrow to see it in the offsets."""
        for name, of_reference, of_secondary in (
                ("the other side", {"lookdir": "L"}, {"lookdir": "L"}), ("exchanged orbits", {"led_file": "sec.LED"}, {"led_file": "ref.LED"}),
                ("one orbit", {}, {"led_file": "ref.LED"}), ("cm", {"radar_wavelength": 100 * flat.WAVELENGTH}, {"radar_wavelength": 100 * flat.WAVELENGTH})):
            with self.subTest(name):
                self.run_insar(self.change("ref", **of_reference), self.change("sec", **of_secondary), "--looks", "1", "4")
                figures = {figure["name"]: figure for figure in self.result["figures"]}
                print(f"{name}: {figures['even fringes that are left']}")
                self.assertFalse(figures["even fringes that are left"]["met"])
                told = [text for text in self.result["warnings"] if "Look whether lookdir is that of the radar" in text]
                self.assertEqual(len(told), 1)
                self.assertEqual(any("name one LED file" in text for text in self.result["warnings"]), name == "one orbit")

    def test_hills_and_motion_leave_no_even_fringes(self):
        """Of several fringes and over most of the image, with a part of noise"""
        rng = np.random.default_rng(4)
        y, x = np.mgrid[:96, :128]
        removed = -2 * np.pi * 12 / 128 * x
        hill = 60 * np.exp(-((x - 60) ** 2 + (y - 40) ** 2) / (2 * 20 ** 2))
        noise = rng.normal(size=x.shape) * np.where(x < 40, 10, 0.4)
        made = unittest.mock.Mock(path=self.path)
        for phase, warned in (hill, False), (hill / 6 + 0.2 * removed, False), (hill / 6 - removed, True), (hill / 6 + 2 * np.pi * 12 / 96 * y, True):
            np.exp(1j * (phase + noise)).astype("<c8").tofile(self.path("interferogram.cf32"))
            removed.astype("<f4").tofile(self.path("removed.img"))
            made.reset_mock()
            fringes.check(made, {"height": 96, "width": 128}, "orbit")
            print(made.report.figure.call_args)
            self.assertEqual(made.warn.called, warned)

    def test_prm_files_that_contradict_each_other(self):
        def told(**values):
            warnings = []
            agreement.check(agreement.read([self.path("ref.PRM"), self.path(self.change("sec", **values))], True, warnings.append), warnings.append)
            return [sentence.split()[0] for sentence in warnings]

        self.assertEqual(told(), [])
        self.assertEqual(told(PRF=0.98 * flat.PRF, radar_wavelength=round(flat.WAVELENGTH, 5)), [])
        self.assertEqual(told(PRF=0.9 * flat.PRF, lookdir="L", radar_wavelength=0.236, rng_samp_rate=2 * flat.RATE),
                         ["lookdir", "radar_wavelength", "PRF", "rng_samp_rate"])
        day = flat.DAYS + 1 + flat.START / 86400
        with self.assertRaisesRegex(Failure, "clock of .* s outside of the state vectors of .*sec.LED. Is SC_clock_start"):
            told(clock_start=day, SC_clock_start=2007000 + day)
        with self.assertRaisesRegex(Failure, 'PRM" names the LED file "none.LED"'):
            told(led_file="none.LED")
        out = self.run_insar("ref.PRM", self.change("sec", led_file="none.LED"), "--flatten", "measured")  # which needs no orbit
        self.assertNotIn("perpendicular baseline", [figure["name"] for figure in self.result["figures"]], out)

    def test_common_band(self):
        """It reaches insarform. All of the spectra is common here, so that the filter only costs samples."""
        rms = []
        widths = slcs.BAND, slcs.BAND + 0.1
        for words in [], ["--common-band", *map(str, widths)]:
            out = self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--filter", "0", *words)
            away = (self.read(out, "phase.img") - cells(self.earth + self.motion))[6:-6, 6:-6]
            rms.append(np.angle(np.exp(1j * away)).std())
        settings = {setting["name"]: float(setting["value"]) for setting in self.result["settings"] if setting["name"].endswith("-bandwidth")}
        self.assertEqual((settings["range-bandwidth"], settings["azimuth-bandwidth"]), widths)
        print(f"common band: {rms[0]:.4f} -> {rms[1]:.4f} rad rms")
        self.assertTrue(rms[0] < rms[1] < 1.2 * rms[0], rms)

    def test_without_orbits_fringes_are_put_back(self):
        out = self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--filter", "0")
        self.assertEqual((self.result["flattening"], self.result["warnings"]), ("measured", []))
        self.check_phase(self.read(out, "phase.img"), cells(self.earth + self.motion), 0.15, "measured")
        self.assertGreater(self.read(out, "coherence.img")[6:-6, 6:-6].mean(), 0.85)

    def test_measured_below_lines_without_data(self):
        """As of a secondary that begins later. The lines before would pull the removed phase to 0."""
        image = np.load(self.path("aligned.npy"))
        image[:70] = 0
        np.save(self.path("late.npy"), image)
        out = self.run_insar("ref.npy", "late.npy", "--coregistered", "--filter", "0")
        mean = self.read(out, "coherence.img")[20:-6, 6:-6].mean()
        print(f"below lines without data: coherence {mean:.3f}")
        self.assertGreater(mean, 0.85)

    @unittest.skipUnless(has_snaphu, "snaphu is not installed")
    def test_unwrap(self):
        mask = np.ones((25, 40), np.uint8)
        mask[:4, :6] = 0
        np.save(self.path("mask.npy"), mask)
        out = self.run_insar("ref.PRM", "sec.PRM", "--unwrap", "--mask", self.path("mask.npy"))
        phase, truth = self.read(out, "unwrapped.img"), cells(self.motion)
        known = np.isfinite(phase)
        told = [figure["about"] for figure in self.result["figures"] if figure["name"] == "unwrapped cells"]
        self.assertEqual(told, [f"{100 * known.mean():.1f} % of all cells have data and are not masked"])
        self.assertFalse(known[:7, :10].any())
        self.assertGreater(known[10:-10, 10:-10].mean(), 0.99)
        middle = known.copy()
        middle[:6] = middle[-6:] = middle[:, :6] = middle[:, -6:] = False
        away = (phase - truth)[middle]
        print(f"unwrapped: {away.std():.3f} rad rms")
        self.assertLess(away.std(), 0.15)  # not a turn anywhere

    def fake(self, name, lines):
        """A program before those of the PATH. Returns: the PATH"""
        folder = tempfile.mkdtemp(dir=self.folder)
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + lines)
        os.chmod(file.name, 0o755)
        return folder + os.pathsep + os.environ["PATH"]

    def run_late(self, path, *words, status):
        """Returns: what was printed, and the result, whose interferogram is there"""
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), "pair")
        words = "insar", self.path("ref.npy"), self.path("aligned.npy"), "--coregistered", "-o", out, *words
        told, result = gst_imaging(*words, status=status, PATH=path), result_of(out)
        for name in "interferogram.cf32", "coherence.img", "report.html", "snaphu.conf":
            self.assertIn(name, [entry["name"] for entry in result["outputs"]])
        self.assertIn(f"are in {out}", told)
        self.assertTrue(any(text.startswith("Not complete: ") for text in result["warnings"]))
        self.assertIn("partial", result["options"])
        return told, result, words

    def test_a_failing_snaphu_leaves_the_interferogram(self):
        for lines, status, sentence in (("kill -9 $$\n", 1, "ended by signal 9"), ("exit 0\n", 4, r"wrote 0 of the \d+ bytes of unwrapped.img"),
                                        ("echo 'no space left'; echo Abort; exit 1\n", 1, 'exit status 1. It printed: "no space left"'),
                                        ("echo half > unwrapped.img\n", 4, r"wrote 5 of the \d+ bytes")):
            with self.subTest(lines):
                told, result, words = self.run_late(self.fake("snaphu", lines), "--unwrap", status=status)
                self.assertRegex(told, sentence)
                self.assertIn("snaphu -f snaphu.conf in the folder", told)
                self.assertFalse([entry for entry in result["outputs"] if entry["name"].startswith("unwrapped")])
        whole = "head -c $((4 * 80 * 50)) /dev/zero > unwrapped.img\n"
        gst_imaging(*words, PATH=self.fake("snaphu", whole))  # the same command, without --overwrite
        result = result_of(words[5])
        self.assertEqual((result["warnings"], "partial" in result["options"]), ([], False))

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_a_failing_gdalwarp_leaves_the_interferogram(self):
        for name, values in zip(("whole-lat", "whole-lon"), self.places()):
            np.save(self.path(name + ".npy"), values)
        path = self.fake("gdalwarp", "echo 'ERROR 3: No space left'; exit 1\n")
        told = self.run_late(path, "--geocode", self.path("whole-lat.npy"), self.path("whole-lon.npy"), status=4)[0]
        self.assertIn("exit status 1: ERROR 3: No space left Missing: the map.", told)

    def test_a_mask_is_read_in_the_middle_of_cells(self):
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        mask[LOOKS // 2::LOOKS, LOOKS // 2::LOOKS] = 1
        np.save(self.path("middles.npy"), mask)
        wanted = rasters.read_mask(self.path("middles.npy"), (WIDTH, HEIGHT), (LOOKS, LOOKS), self.folder, self.fail)
        self.assertTrue(insar.mask_of_cells(wanted, dict(zip(("height", "width"), CELLS))).all())

    def places(self):
        """Latitude and longitude of each sample: turned, as of an orbit."""
        y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.0
        return 40 + 1e-4 * x - 3e-4 * y, 10 + 4e-4 * x + 1e-4 * y

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_geocode(self):
        latitude, longitude = self.places()
        for name, values in ("lat", latitude), ("lon", longitude):
            np.save(self.path(name + ".npy"), values)
        self.trans(latitude, longitude)[::3].tofile(self.path("trans.dat"))
        for words in ["lat.npy", "lon.npy"], ["trans.dat"]:
            out = self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--geocode", *map(self.path, words))
            dataset = gdal.Open(os.path.join(out, "geo-coherence.tif"))
            values, t = dataset.ReadAsArray(), dataset.GetGeoTransform()
            self.assertIn("WGS 84", dataset.GetProjection())
            coherence = self.read(out, "coherence.img")
            away = []
            for i, j in ((20, 30), (10, 60), (40, 15)):  # what is at a cell is at its place
                lat, lon = cells(latitude)[i, j], cells(longitude)[i, j]
                column, line = int((lon - t[0]) / t[1]), int((lat - t[3]) / t[5])
                around = coherence[i - 1:i + 2, j - 1:j + 2]
                found = values[line, column]
                self.assertTrue(around.min() - 0.02 <= found <= around.max() + 0.02, (words, found, around))
                away.append(abs(found - coherence[i, j]))
            self.assertTrue(np.isnan(values[0, 0]))  # a corner outside the turned image
            self.assertTrue(os.path.exists(os.path.join(out, "geo-phase.tif")))

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_places_that_are_exchanged(self):
        latitude, longitude = self.true_places()
        for name, values in ("there-lat", latitude), ("there-lon", longitude), ("far-lat", latitude - 5), ("east", longitude % 10 + 100):
            np.save(self.path(name + ".npy"), values)
            values.astype("<f4").tofile(self.path(name))
            self.write_vrt(name, "Float32", 4)
        for end in ".npy", ".vrt":
            words = [[self.path(name + end) for name in names] for names in
                     (("east", "there-lat"), ("there-lon", "there-lat"), ("there-lat", "there-lon"), ("far-lat", "there-lon"))]
            told = self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--geocode", *words[0], status=3)
            self.assertIn("can be -90 to 90. Give LAT first", told)
            self.assertIn("they are exchanged. Give LAT first", self.run_insar("ref.PRM", "sec.PRM", "--geocode", *words[1], status=3))
            self.run_insar("ref.PRM", "sec.PRM", "--geocode", *words[2])
            self.assertEqual([text for text in self.result["warnings"] if "LAT" in text], [])
            self.run_insar("ref.PRM", "sec.PRM", "--geocode", *words[3])
            self.assertIn("of this reference?", "".join(self.result["warnings"]))

    def true_places(self):
        """Latitude and longitude of each sample by the orbit, 500 m above the ellipsoid"""
        x, y, z = np.moveaxis(flat.true_point(np.full((HEIGHT, WIDTH), 500.0), flat.AXES)[0], -1, 0)
        latitude = np.degrees(np.arctan2(z, (flat.AXES[1] / flat.AXES[0]) ** 2 * np.hypot(x, y)))
        return latitude, np.degrees(np.arctan2(y, x))

    @staticmethod
    def trans(latitude, longitude):
        """Rows of trans.dat"""
        lines, columns = np.mgrid[:HEIGHT, :WIDTH] + 0.0
        return np.stack([v.ravel() for v in (columns, lines, 0 * latitude, longitude, latitude)], -1)

    def refuse_places(self, sentence, *words):
        self.assertRegex(self.run_insar("ref.PRM", "sec.PRM", "--geocode", *map(self.path, words), status=3), sentence)

    def warn_of_places(self, sentence, *words):
        self.run_insar("ref.PRM", "sec.PRM", "--coregistered", "--geocode", *map(self.path, words))
        self.assertRegex(" ".join(text for text in self.result["warnings"] if self.folder in text), sentence)

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_places_of_another_part(self):
        """By the orbit, at all places and not in the middle alone."""
        for name, part in (("columns", np.s_[:, ::-1]), ("lines", np.s_[::-1]), ("half", np.s_[:120]), ("good", np.s_[:]), ("beside", np.s_[:])):
            for kind, values in zip(("lat", "lon"), self.true_places()):
                np.save(self.path(f"{name}-{kind}.npy"), values[part] + (0.5 if name == "beside" and kind == "lat" else 0))
        self.refuse_places("are mirrored in columns", "columns-lat.npy", "columns-lon.npy")
        self.refuse_places("are mirrored in lines", "lines-lat.npy", "lines-lon.npy")
        self.warn_of_places("the lines of the image are 0.60 times as long", "half-lat.npy", "half-lon.npy")
        self.warn_of_places("of another area, 5[56].* km beside", "beside-lat.npy", "beside-lon.npy")
        self.warn_of_places("^$", "good-lat.npy", "good-lon.npy")

    @unittest.skipUnless(gdal and shutil.which("gdalwarp"), "GDAL is not installed")
    def test_trans_is_checked_first(self):
        """A file that is cut, of other numbers, or of another image"""
        rows = self.trans(*self.true_places())
        for name, values in (("good", rows), ("exchanged", rows[:, [0, 1, 2, 4, 3]]), ("twice", rows * [2, 2, 1, 1, 1]), ("single", rows.astype("<f4")),
                             ("swapped", rows.astype(">f8")), ("part", rows[rows[:, 0] < 200])):
            values.tofile(self.path(name + ".dat"))
        with open(self.path("good.dat"), "rb") as file, open(self.path("cut.dat"), "wb") as cut:
            cut.write(file.read()[:-7])
        np.savetxt(self.path("text.dat"), rows[::50])
        holes = rows.copy()
        holes[::7] = np.nan
        holes.tofile(self.path("holes.dat"))
        for name, sentence in (("cut", "no whole rows: it is cut short"), ("text", "is text"), ("single", "are no points"), ("swapped", "are no points"),
                               ("exchanged", "they are exchanged. Rows of trans.dat are")):
            self.refuse_places(sentence, name + ".dat")
        for name, sentence in (("twice", "the lines of the image are 0.49 times as long"), ("part", "span columns 0 to 199 of 320"),
                               ("holes", "14 % of the rows"), ("good", "^$")):
            self.warn_of_places(sentence, name + ".dat")
        self.assertIn("has one raster", self.run_insar("ref.PRM", "sec.PRM", "--geocode", self.path("ref.npy"), status=2))

    def write_vrt(self, name, kind, size):
        with open(self.path(name + ".vrt"), "w", encoding="ascii") as file:
            file.write(f'<VRTDataset rasterXSize="{WIDTH}" rasterYSize="{HEIGHT}"><VRTRasterBand dataType="{kind}" band="1" subClass="VRTRawRasterBand">'
                       f'<SourceFilename relativeToVRT="1">{name}</SourceFilename><PixelOffset>{size}</PixelOffset>'
                       f"<LineOffset>{size * WIDTH}</LineOffset><ByteOrder>LSB</ByteOrder></VRTRasterBand></VRTDataset>")

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_a_file_that_is_cut_is_refused(self):
        """GDAL reads zeros behind its end"""
        image = np.load(self.path("aligned.npy"))
        for name in "vrt-cut", "envi-cut", "envi-whole":
            with open(self.path(name), "wb") as file:
                file.write(image.tobytes()[:image.nbytes // (2 if "cut" in name else 1)])
        self.write_vrt("vrt-cut", "CFloat32", 8)
        self.write_vrt("vrt-none", "CFloat32", 8)
        for name in "envi-cut", "envi-whole":
            with open(self.path(name + ".hdr"), "w", encoding="ascii") as file:
                file.write(f"ENVI\nsamples = {WIDTH}\nlines = {HEIGHT}\nbands = 1\nheader offset = 0\ndata type = 6\nbyte order = 0\n")
        for name, sentence in (("vrt-cut.vrt", f"cut\" has {image.nbytes // 2} bytes, and {image.nbytes} by .*vrt-cut.vrt: it is cut short by 50 %"),
                               ("envi-cut", "by its header of ENVI: it is cut short by 50 %"), ("vrt-none.vrt", "names .*vrt-none.*there is no such file")):
            self.assertRegex(self.run_insar("ref.npy", name, "--coregistered", status=3), sentence)
        self.run_insar("ref.npy", "envi-whole", "--coregistered")

    def test_few_cells_with_data_are_told(self):
        image = np.load(self.path("aligned.npy"))
        image[HEIGHT // 2:] = 0
        np.save(self.path("upper.npy"), image)
        for name, met in ("aligned.npy", True), ("upper.npy", False):
            self.run_insar("ref.npy", name, "--coregistered")
            figure = {figure["name"]: figure for figure in self.result["figures"]}["cells with data"]
            self.assertEqual(figure["met"], met)
        self.assertAlmostEqual(figure["value"], 50, delta=3)

    def test_a_mask_leaves_out_patches(self):
        """Their offsets are those of water."""
        mask = np.ones((HEIGHT, WIDTH), np.uint8)
        mask[:, :WIDTH // 2] = 0
        np.save(self.path("sea.npy"), mask)
        out = self.run_insar("ref.PRM", "sec.PRM", "--mask", self.path("sea.npy"))
        rows = np.loadtxt(os.path.join(out, "freq_xcorr.dat"))
        self.assertTrue((rows[rows[:, 0] < WIDTH // 2 - 1, 4] == 0).all())
        self.assertTrue((rows[rows[:, 0] > WIDTH // 2 + 1, 4] > 0).any())
        used = next(figure for figure in self.result["figures"] if figure["name"] == "patches in the fit")
        self.assertRegex(used["about"], "of [23][0-9][0-9] have")  # of about 500
        rng = np.random.default_rng(2)
        noise = slcs.band_limited(rng, (HEIGHT, WIDTH))
        np.save(self.path("noise.npy"), 2000 * noise.astype(np.complex64))
        self.assertRegex(self.run_insar("ref.npy", "noise.npy", "--mask", self.path("sea.npy"), status=1),
                         "[0-9]+ of [0-9]+ patches are masked or have no data: look at --mask")
        self.assertIn("--mask of gst-imaging insar", self.run_insar("ref.npy", "noise.npy", status=1))

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_a_mask_is_any_raster(self):
        mask = np.ones((HEIGHT, WIDTH), np.uint8)
        mask[:30, :50] = 0
        np.save(self.path("water.npy"), mask)
        mask.tofile(self.path("water"))
        self.write_vrt("water", "Byte", 1)
        found = [self.read(self.run_insar("ref.npy", "aligned.npy", "--coregistered", "--mask", self.path(name)), "mask.byte", "u1")
                 for name in ("water.npy", "water.vrt")]
        np.testing.assert_array_equal(*found)
        self.assertFalse(found[0][:7, :12].any())

    @unittest.skipUnless(gdal, "osgeo.gdal is not installed")
    def test_gdal_opens_all(self):
        out = self.run_insar("ref.npy", "aligned.npy", "--coregistered")
        for name in "coherence", "amplitude", "phase", "interferogram":
            path = os.path.join(out, name + (".cf32" if name == "interferogram" else ".img"))
            found = gdal.Open(path + ".vrt").ReadAsArray()
            np.testing.assert_array_equal(found, self.read(out, os.path.basename(path), "<c8" if name == "interferogram" else "<f4"))

    def test_what_is_wrong_is_said(self):
        os.makedirs(self.path("S1A_X.SAFE"), exist_ok=True)
        np.save(self.path("cube.npy"), np.ones((2, 3, 4), np.uint8))
        np.save(self.path("nothing.npy"), np.zeros((HEIGHT, WIDTH), np.uint8))
        np.save(self.path("turned.npy"), np.zeros((WIDTH, HEIGHT), np.float32))
        np.save(self.path("conjugate.npy"), np.load(self.path("aligned.npy")).conj())
        np.save(self.path("zero.npy"), 0 * np.load(self.path("ref.npy")))
        self.assertNotIn("RuntimeWarning", self.run_insar("ref.npy", "zero.npy", status=1))
        self.run_insar("ref.npy", "conjugate.npy", "--coregistered")
        self.assertIn("I and Q exchanged", self.result["warnings"][0])
        self.assertIn(("mean coherence", False), [(figure["name"], figure["met"]) for figure in self.result["figures"]])
        for words, status, sentence in [
                (("S1A_X.SAFE", "S1A_X.SAFE"), 3, "topsStack of ISCE2"),
                (("ref.npy", "aligned.npy", "--flatten", "orbit"), 2, "needs the orbits"),
                (("ref.PRM", "sec.LED"), 3, "Give the PRM file that names it"),
                (("ref.npy", "aligned.npy", "--dem", self.path("ref.npy")), 2, "needs the orbits"),
                (("ref.npy", "aligned.npy", "--flatten", "dem"), 2, "needs --dem"),
                (("ref.PRM", "sec.PRM", "--flatten", "orbit", "--dem", self.path("ref.npy")), 2, "--dem is for --flatten dem"),
                (("ref.npy", "aligned.npy", "--coregistered", "--mask", self.path("cube.npy")), 3, "is no mask: it has 3 axes"),
                (("ref.npy", "aligned.npy", "--coregistered", "--mask", self.path("nothing.npy")), 3, "leaves nothing"),
                (("ref.PRM", "sec.PRM", "--dem", self.path("turned.npy")), 3, "lines and columns are exchanged"),
                (("ref.npy", "aligned.npy", "--filter", "2"), 2, "can be 0 to 1"),
                (("ref.npy", "aligned.npy", "--common-band", "0.8", "2"), 2, "--common-band is 0.8 2; both can be 0 to 1"),
                (("ref.npy", "aligned.npy", "--warp", "--coregistered"), 2, "Leave one of them out")]:
            with self.subTest(words=words):
                self.assertIn(sentence, self.run_insar(*words, status=status))


if __name__ == "__main__":
    main()
