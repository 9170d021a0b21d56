# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging centroids, as a user would call it."""
import glob
import gzip
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, Gst, command, main, read_csv, result_of

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import granulation
import wavefronts

HAVE_OVERLAY = all(map(Gst.ElementFactory.find, ("shoverlay", "videoconvert", "videoscale")))
GRID = ("columns=8", "rows=8", "pitch-x=20", "pitch-y=20")
LENSLETS = ("threshold=150", "threshold-mode=absolute")
INVALID = 227
FORMATS = os.environ["FORMATS"].split()


class Centroids(FolderCase):
    def call(self, *arguments, status=0, output="out", **environment):
        """Returns: all that it printed, without a result of before."""
        if output:
            shutil.rmtree(self.path(output), ignore_errors=True)
            arguments += ("-o", output)
        return command(self.folder, "centroids", *arguments, status=status, **environment)

    def result(self, output="out"):
        return result_of(self.path(output))

    def table(self, output="out"):
        return read_csv(self.path(f"{output}/table.csv"))

    def check_table(self, places):
        table = self.table()
        self.assertEqual(len(table), places.shape[0] * places.shape[1])
        found = np.stack([table["x"], table["y"]], 1).reshape(places.shape)
        for spots, truth in zip(found, places):  # the map has an order of its own
            nearest = np.hypot(*(spots[:, None] - truth).transpose(2, 0, 1)).min(0)
            self.assertLess(nearest.max(), 0.15)

    def test_a_recording_without_a_grid_is_measured(self):
        frames, places, _ = wavefronts.make(frames=3, count=9, pitch=22, amplitude=1)
        np.save(self.path("f.npy"), frames)
        printed = self.call("f.npy", *LENSLETS, output="flat")
        self.assertEqual(printed.count("\n"), 1, printed)
        self.call("f.npy", *LENSLETS)
        self.check_table(places)
        result = self.result()
        self.assertEqual(result["grid"]["cells"], places.shape[1])
        self.assertEqual(result["grid"]["lattice"], "square")
        self.assertEqual((result["frames"], result["format"]), (3, "GRAY16_LE"))
        self.assertEqual(np.load(self.path("out/map.npy")).shape, (places.shape[1], 12))
        slopes, table = np.load(self.path("out/slopes.npy")), self.table()
        self.assertEqual(slopes.shape, (3, places.shape[1], len(result["fields"])))
        for i, name in enumerate(result["fields"]):
            np.testing.assert_allclose(slopes[..., i].ravel(), table[name], rtol=1e-6)
        self.call("f.npy", *LENSLETS, "--map", "flat/map.npy")
        self.assertNotIn("grid", self.result())
        self.check_table(places)

    def test_slopes_count_from_a_flat_wavefront(self):
        flat, _places, centres = wavefronts.make(frames=4, count=9, pitch=22, shape="flat")
        bent, places, _ = wavefronts.make(frames=2, count=9, pitch=22, amplitude=2, seed=2)
        np.save(self.path("flat.npy"), flat)
        np.save(self.path("bent.npy"), bent)
        self.call("flat.npy", output="flat")
        self.call("bent.npy", "--map", "flat/map.npy", "--reference", "flat/slopes.npy", "--format", "fits")
        table = self.table()
        nearest = np.hypot(*((np.load(self.path("out/reference.npy"))[:, None] - centres).transpose(2, 0, 1))).argmin(1)
        truth = (places - centres)[:, nearest]
        found = np.stack([table["dx"], table["dy"]], 1).reshape(truth.shape)
        self.assertLess(np.sqrt(((found - truth) ** 2).mean()), 0.03)
        if "fits" in os.environ["FORMATS"].split():
            subprocess.run([os.environ["ARRAY_TOOL"], self.path("out/slopes.fits"), self.path("s.npy")], check=True)
            np.testing.assert_allclose(np.load(self.path("s.npy"))[..., 2].ravel(), table["dx"], rtol=1e-6)

    def test_dark_and_flat_are_taken_off(self):
        first, second = (np.rint(1000 * frame) for frame in self.moved_spots())
        light = np.tile([1.0, 0.5], (160, 80))
        dark = np.random.default_rng(1).integers(0, 500, first.shape)
        np.save(self.path("dark.npy"), dark.astype("f4"))
        np.save(self.path("gain.npy"), (1 / light).astype("f4"))
        np.save(self.path("f.npy"), np.stack([first * light + dark, second * light + dark]).round().astype("u2"))
        self.call("f.npy", *GRID, "--dark", "dark.npy", "--flat", "gain.npy")
        x = self.table()["x"].reshape(2, 64)
        self.assertAlmostEqual(np.median(x[1] - x[0]), 3, delta=0.03)
        roles = {entry["role"] for entry in self.result()["inputs"]}
        self.assertLessEqual({"frames", "dark", "flat"}, roles)

    def test_frames_can_be_counted(self):
        np.save(self.path("f.npy"), np.full((9, 64, 64), 7, np.uint8))
        self.call("f.npy", "--frames", "4", "columns=2", "rows=2", "pitch-x=32", "pitch-y=32", "threshold=0")
        self.assertEqual(set(self.table()["frame"]), {0, 1, 2, 3})

    def test_a_result_that_is_there_is_known_again(self):
        np.save(self.path("f.npy"), wavefronts.make(frames=1, count=9, pitch=22)[0])
        self.call("f.npy")
        before = os.stat(self.path("out/table.csv")).st_mtime_ns
        words = [sys.executable, "-B", "-m", "gst_imaging", "centroids", "f.npy", "-o", "out"]
        environment = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")}
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, env=environment, check=True)
        self.assertIn("was complete already", done.stdout)
        self.assertEqual(os.stat(self.path("out/table.csv")).st_mtime_ns, before)
        done = subprocess.run([*words, "threshold=500"], cwd=self.folder, capture_output=True, text=True, env=environment,
                              check=False)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(os.stat(self.path("out/table.csv")).st_mtime_ns, before)

    def test_a_damaged_recording_does_not_keep_the_others(self):
        os.mkdir(self.path("night"))
        frames, _places, _centres = wavefronts.make(frames=2, count=9, pitch=22)
        for name in "a", "b", "c":
            np.save(self.path(f"night/{name}.npy"), frames)
        os.truncate(self.path("night/b.npy"), 5000)
        with open(self.path("night/notes.txt"), "w", encoding="utf-8") as file:
            file.write("clouds")
        printed = self.call("night", status=3)
        self.assertIn('"night/b.npy" is truncated', printed)
        self.assertIn("1 of 3 inputs failed: night/b.npy. The other 2 are complete.", printed)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["a", "c"])
        for name in "a", "c":
            self.assertTrue(os.path.exists(self.path(f"out/{name}/report.html")))

    def test_a_missing_frame_of_a_folder_is_counted(self):
        first = np.rint(1000 * self.moved_spots()[0]).astype("u2")
        os.mkdir(self.path("frames"))
        for n in 0, 1, 2, 4, 5:
            np.save(self.path(f"frames/f{n:03d}.npy"), first)
        for name in "notes.txt", ".hidden.npy":
            with open(self.path(f"frames/{name}"), "w", encoding="utf-8") as file:
                file.write("mine")
        printed = self.call("frames", *GRID)
        self.assertIn("1 file is missing: 3.", printed)
        result = self.result()
        self.assertEqual(len(result["inputs"]), 5)
        missing = next(figure for figure in result["figures"] if figure["name"] == "missing frames")
        self.assertEqual((missing["value"], missing["met"]), (1, False))

    def test_without_a_valid_cell_nothing_is_measured(self):
        np.save(self.path("dark.npy"), np.zeros((3, 64, 64), np.uint8))
        told = self.call("dark.npy", "columns=2", "rows=2", "pitch-x=20", "pitch-y=20", "--no-picture", status=1)
        self.assertIn("None of the cells is valid in any of 3 frames", told)
        self.assertIn({"spots cut by the edge of their cell": False}, [{f["name"]: f["met"]} for f in self.result()["figures"]])

    def test_files_that_are_left_out_are_named(self):
        os.mkdir(self.path("cubes"))
        for name in "a", "b":
            np.save(self.path(f"cubes/{name}.npy"), np.full((2, 32, 40), 7, np.uint8))
        with open(self.path("cubes/notes.txt"), "w", encoding="utf-8") as file:
            file.write("mine")
        told = self.call("cubes", "columns=2", "rows=2", "pitch-x=10", "pitch-y=10", "threshold=0", "--no-picture")
        self.assertIn("1 of 3 files of cubes have no format that is read here and were left out: notes.txt.", told)

    def test_frames_of_several_sizes_are_told(self):
        frames, _places, _centres = wavefronts.make(frames=2, count=9, pitch=22)
        os.mkdir(self.path("mixed"))
        np.save(self.path("mixed/a.npy"), frames[0])
        np.save(self.path("mixed/b.npy"), frames[0][:-2])
        printed = self.call("mixed")
        self.assertIn("mixed holds frames of 2 sizes", printed)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["a", "b"])

    @unittest.skipUnless("fits" in FORMATS, "built without FITS")
    def test_one_of_several_pictures_is_told_and_chosen(self):
        frames, _places, _centres = wavefronts.make(frames=2, count=9, pitch=22, amplitude=1)
        with open(self.path("units.fits"), "wb") as file:
            for number, frame in enumerate(frames.astype(">i2")):
                head = "SIMPLE  =                    T" if number == 0 else "XTENSION= 'IMAGE   '"
                cards = [head, "BITPIX  =                   16", "NAXIS   =                    2", f"NAXIS1  = {frame.shape[1]:20d}",
                         f"NAXIS2  = {frame.shape[0]:20d}", *(["PCOUNT  =                    0", "GCOUNT  =                    1"][:2 * number]), "END"]
                for block, fill in ("".join(card.ljust(80) for card in cards).encode(), b" "), (frame.tobytes(), b"\0"):
                    file.write(block.ljust(-(-len(block) // 2880) * 2880, fill))
        printed = self.call("units.fits")
        self.assertIn("--part takes another one: 0: ", printed)
        with open(self.path("out/report.html"), encoding="utf-8") as file:
            self.assertIn("the lattice found in the first frame", file.read())
        first = self.table()["x"]
        printed = self.call("units.fits", "--part", "1")
        self.assertNotIn("--part", printed)
        self.assertTrue(len(first) != len(self.table()["x"]) or np.any(first != self.table()["x"]))
        self.assertIn("has no part 7: it has the parts 0 to 1", self.call("units.fits", "--part", "7", status=3))

    def test_the_report_says_what_was_measured(self):
        first = np.rint(1000 * self.moved_spots()[0]).astype("u2")
        np.save(self.path("f.npy"), np.stack([first, np.full_like(first, 200), first]))
        self.call("f.npy", *GRID, "saturation=900")
        with open(self.path("out/report.html"), encoding="utf-8") as file:
            page = file.read()
        for word in ("saturated measurements", "not met", "saturation", "<svg", "data:image/png", "gst-imaging centroids f.npy",
                     "low flux"):
            self.assertIn(word, page)
        self.assertNotIn("http", page.replace("http-equiv", ""))

    def test_a_fits_picture_is_measured(self):
        frames, places, _ = wavefronts.make(count=8, pitch=20, amplitude=0, hexagonal=True)
        height, width = frames.shape[1:]
        cards = ["SIMPLE  =                    T", "BITPIX  =                   16",
                 "NAXIS   =                    2", f"NAXIS1  = {width:20d}",
                 f"NAXIS2  = {height:20d}", "BZERO   =                32768", "END"]
        header = "".join(card.ljust(80) for card in cards).ljust(2880)
        with open(self.path("f.fits"), "wb") as file:
            file.write(header.encode() + (frames[0].astype(int) - 32768).astype(">i2").tobytes())
        self.call("f.fits", *LENSLETS)
        self.assertEqual((self.result()["grid"]["lattice"], self.result()["grid"]["cells"]), ("hexagonal", places.shape[1]))
        self.check_table(places)

    def write_fits(self, name, values):
        """A picture of float32."""
        cards = ["SIMPLE  =                    T", "BITPIX  =                  -32",
                 "NAXIS   =                    2", f"NAXIS1  = {values.shape[1]:20d}",
                 f"NAXIS2  = {values.shape[0]:20d}", "END"]
        header = "".join(card.ljust(80) for card in cards).ljust(2880)
        with open(self.path(name), "wb") as file:
            file.write(header.encode() + values.astype(">f4").tobytes())

    def moved_spots(self):
        """Returns: spots on a pedestal, from 0.2 to 1, and the same 3 pixels to the right"""
        y, x = np.mgrid[:160, :160]
        light = np.exp(-(((x % 20) - 9.5) ** 2 + ((y % 20) - 9.5) ** 2) / 8)
        return [0.2 + 0.8 * np.roll(light, shift, 1) for shift in (0, 3)]

    def shift_of(self, *arguments):
        """Returns: the median shift of cells whose spots stay inside"""
        tables = []
        for name in ("a", "b"):
            self.call(self.path(name + arguments[0]), *arguments[1:], *GRID)
            tables.append(self.table())
        return np.median(tables[1]["x"] - tables[0]["x"])

    def test_shifts_on_a_pedestal_are_whole_with_the_first_settings(self):
        for name, frame in zip("ab", self.moved_spots()):
            self.write_fits(name + ".fits", frame)
            np.save(self.path(name + ".npy"), np.rint(1000 * frame).astype(np.uint16))
        self.assertAlmostEqual(self.shift_of(".fits"), 3, delta=0.03)  # float32 from 0 to 1
        self.assertAlmostEqual(self.shift_of(".npy"), 3, delta=0.03)
        self.assertAlmostEqual(self.shift_of(".npy", "threshold-mode=none"), 0.7, delta=0.3)
        self.assertAlmostEqual(self.shift_of(".fits", "--no-picture"), 3, delta=0.03)

    def test_a_float_that_is_no_number_flags_its_cell(self):
        frame = self.moved_spots()[0]
        frame[30, 50] = np.nan
        self.write_fits("f.fits", frame)
        self.call("f.fits", *GRID)
        flags = self.table()["flags"]
        self.assertEqual(flags[10], 128)
        self.assertEqual(np.count_nonzero(flags), 1)

    def measure(self, name, *arguments):
        """Returns: the slopes of 8 x 8 cells"""
        self.call(name, *GRID, *arguments)
        return np.load(self.path("out/slopes.npy"))

    @unittest.skipUnless(HAVE_OVERLAY, "there is no shoverlay")
    def test_a_picture_changes_no_number(self):
        first, second = self.moved_spots()
        second[30, 50], second[2, 2] = np.nan, 1e7
        frames = np.stack([first, second])[:, :, :157]  # rows that video pads
        for name, values in ("floats", frames.astype("f4")), ("samples", np.rint(1000 * first).astype("u2")):
            np.save(self.path(name + ".npy"), values)
            plain = self.measure(name + ".npy", "--no-picture")
            self.assertFalse(os.path.exists(self.path("out/picture.png")))
            np.testing.assert_array_equal(self.measure(name + ".npy", "--pictures", "--scale", "2"), plain)
            self.assertEqual(len(os.listdir(self.path("out/pictures"))), len(plain))
            with open(self.path("out/picture.png"), "rb") as png:
                head = png.read(24)
            self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(int.from_bytes(head[16:20], "big"), 2 * values.shape[-1])

    def test_an_output_is_never_an_input(self):
        np.save(self.path("in.npy"), np.rint(1000 * self.moved_spots()[0]).astype("u2"))
        before = np.load(self.path("in.npy"))
        for output in "in.npy", "./in.npy":
            self.assertIn("is no folder", self.call("in.npy", *GRID, "-o", output, status=4, output=None))
        os.mkdir(self.path("night"))
        os.rename(self.path("in.npy"), self.path("night/in.npy"))
        self.assertIn("has files that are no part of a result, as in.npy",
                      self.call("night/in.npy", *GRID, "-o", "night", status=4, output=None))
        np.testing.assert_array_equal(np.load(self.path("night/in.npy")), before)

    def test_kinds_of_numbers_are_measured_alike(self):
        frame = np.rint(1000 * self.moved_spots()[0])
        np.save(self.path("a.npy"), frame.astype("u2"))
        plain = self.measure("a.npy")
        for kind in "i2", "i4", "i8", "u4", ">u2":
            np.save(self.path("a.npy"), frame.astype(kind))
            np.testing.assert_array_equal(self.measure("a.npy"), plain, kind)
        np.save(self.path("a.npy"), np.asfortranarray(frame.astype("u2")))
        np.testing.assert_array_equal(self.measure("a.npy"), plain)
        np.savez(self.path("a.npz"), frames=frame.astype("u2"))
        np.testing.assert_array_equal(self.measure("a.npz"), plain)
        for kind in "f4", "f8", "i2":  # below 0: float32, less the same pedestal
            np.save(self.path("a.npy"), (frame - 300).astype(kind))
            np.testing.assert_allclose(self.measure("a.npy")[..., 0], plain[..., 0], atol=3e-5)

    def test_formats_are_measured_alike(self):
        frame = np.rint(1000 * self.moved_spots()[0]).astype("u2")
        np.save(self.path("a.npy"), frame)
        plain = self.measure("a.npy")
        for kind, name in ("tiff", "a.tif"), ("fits", "a.fits"), ("png", "a.png"), ("pnm", "a.pgm"):
            if kind in os.environ["FORMATS"].split() + ["pnm"]:
                subprocess.run([os.environ["ARRAY_TOOL"], self.path("a.npy"), self.path(name)], check=True)
                np.testing.assert_array_equal(self.measure(name), plain, name)
        if os.path.exists(self.path("a.fits")):
            with open(self.path("a.fits"), "rb") as file, gzip.open(self.path("b.fits.gz"), "wb") as packed:
                packed.write(file.read())
            np.testing.assert_array_equal(self.measure("b.fits.gz"), plain)
        os.mkdir(self.path("folder"))
        np.save(self.path("folder/1.npy"), np.roll(frame, 1, 1))
        with open(self.path("folder/notes.txt"), "w", encoding="utf-8") as file:
            file.write("One picture, so far.")
        self.assertEqual(len(self.measure("folder")), 1)
        for i in 2, 10:
            np.save(self.path(f"folder/{i}.npy"), np.roll(frame, i, 1))
        x = self.measure("folder")[..., 0]
        self.assertAlmostEqual(np.median(x[1] - x[0]), 1, delta=0.03)

    def test_a_square_grid_of_a_bent_wavefront_is_square(self):
        """Spots a pixel beside their places, of 12 x 12 with a pitch of 16: that was taken for 23 columns of a hexagonal lattice."""
        y, x = np.mgrid[:192, :192]
        for seed in 1, 2, 3:
            frame, rng = np.full((192, 192), 100.0), np.random.default_rng(seed)
            for spot in range(144):
                right, down = 16 * np.array(divmod(spot, 12)) + 7.5 + rng.normal(0, 1, 2)
                frame += 3000 * np.exp(-((x - right) ** 2 + (y - down) ** 2) / (2 * 0.8 ** 2))
            np.save(self.path("f.npy"), rng.poisson(frame).astype("u2"))
            self.call("f.npy")
            grid = self.result()["grid"]
            self.assertEqual([grid[name] for name in ("lattice", "columns", "rows", "cells")], ["square", 12, 12, 144])
            self.assertAlmostEqual(grid["pitch"], 16, delta=0.1)

    @unittest.skipUnless("tiff" in os.environ["FORMATS"].split(), "built without tiff")
    def test_frames_that_tifffile_wrote_as_colours_are_told(self):
        """It writes three frames as planes of one picture in colour, without a sign that they are none."""
        if not importlib.util.find_spec("tifffile"):
            self.skipTest("there is no tifffile")
        tifffile = importlib.import_module("tifffile")
        frames = np.rint(1000 * self.moved_spots()[0]).astype("u2")[None].repeat(3, 0)
        for kind, stored, is_told in ("rgb", frames, True), ("rgb", np.moveaxis(frames, 0, -1), False), ("minisblack", frames, False):
            tifffile.imwrite(self.path("a.tif"), stored, photometric=kind)
            self.assertEqual("write them again with photometric=" in self.call("a.tif"), is_told, (kind, stored.shape))

    def test_files_that_cannot_be_read_are_named_with_a_way(self):
        np.savez(self.path("a.npz"), one=np.zeros((4, 4)), two=np.zeros((4, 4)))
        np.savez(self.path("b.npz"), one=np.zeros(4))
        np.save(self.path("d.npy"), np.zeros((5, 4, 3), "f4"))
        for name in "a.raw", "c.npz", "c.tif", "c.fits.gz", "c.fz":
            with open(self.path(name), "wb") as file:
                file.write(b"\x1f\x8b nothing that anybody reads" * 9)
        for name, sentence in (
                ("a.npz", "a.npz has the arrays one, two. Write the one with the frames"),
                ("b.npz", "b.npz holds float64 of the shape [4]; a frame is [height, width]"),
                ("c.npz", "c.npz is no .npz file"), ("c.tif", 'c.tif" is compressed by gzip as a whole'), ("c.fits.gz", "c.fits.gz: "),
                ("c.fz", 'c.fz" is compressed by gzip as a whole'), ("d.npy", "d.npy holds float32 of 3:4:5:1 values a frame"), ("a.raw", "a.raw is of a kind that no installed plug-in of GStreamer reads.")):
            self.assertIn(sentence, self.call(name, status=3))

    def start(self, *words, **environment):
        done = subprocess.Popen(
            [sys.executable, "-B", "-m", "gst_imaging", "centroids", *words], cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"), **environment})
        self.addCleanup(done.stdout.close)
        self.addCleanup(done.kill)
        return done

    def test_a_signal_before_the_end_leaves_nothing(self):
        np.save(self.path("f.npy"), np.zeros((600, 200, 200), "i4"))
        os.mkdir(self.path("tmp"))
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
            for wait in 0.2, 0.4, 0.8:
                done = self.start("f.npy", "-o", "out", *GRID, TMPDIR=self.path("tmp"))
                time.sleep(wait)
                done.send_signal(number)
                done.wait(60)
                self.assertEqual(os.listdir(self.path("tmp")), [])
                self.assertEqual(set(os.listdir(self.folder)) - {"out"}, {"f.npy", "tmp"})
                if os.path.exists(self.path("out")):  # it was faster
                    self.assertTrue(os.path.exists(self.path("out/result.json")))
                    shutil.rmtree(self.path("out"))

    def wait_for(self, pattern):
        for _ in range(TIMEOUT * 50):
            if any(map(os.path.getsize, glob.glob(self.path(pattern)))):
                return
            time.sleep(0.02)
        self.fail(f"{pattern} does not appear")

    def test_recordings_before_an_interruption_keep_theirs(self):
        np.save(self.path("a.npy"), np.zeros((2, 160, 160), "u2"))
        np.save(self.path("b.npy"), np.zeros((20000, 160, 160), "u1"))
        done = self.start("a.npy", "b.npy", "-o", "out", *GRID)
        self.wait_for("out/.b.*/slopes.npy")
        done.send_signal(signal.SIGINT)
        printed = done.communicate(timeout=TIMEOUT)[0]
        self.assertEqual(done.returncode, -signal.SIGINT, printed)
        self.assertRegex(printed, "Stopped by SIGINT. Complete: .*out/a")
        self.assertEqual(os.listdir(self.path("out")), ["a"])

    def test_a_camera_ends_with_an_interrupt_and_keeps_its_frames(self):
        done = self.start("--camera", "gst:videotestsrc is-live=true pattern=ball", "--caps",
                          "video/x-raw,width=160,height=160,framerate=50/1", "-o", "out", *GRID)
        self.wait_for(".out.*/slopes.npy")
        time.sleep(0.3)
        done.send_signal(signal.SIGINT)
        printed = done.communicate(timeout=TIMEOUT)[0]
        self.assertEqual(done.returncode, 0, printed)
        slopes = np.load(self.path("out/slopes.npy"))
        self.assertGreater(len(slopes), 1)
        self.assertEqual(slopes.shape[1:], (64, 10))
        self.assertEqual(self.result()["frames"], len(slopes))
        self.assertTrue(os.path.exists(self.path("out/report.html")))

    def test_cameras_of_gstreamer_are_converted_to_grey(self):
        self.call("--camera", "gst:videotestsrc", "--frames", "3", "--caps", "video/x-raw,format=RGB,width=160,height=160", *GRID)
        self.assertEqual((self.result()["frames"], self.result()["format"]), (3, "GRAY8"))

    def test_shifts_of_faint_spots_are_whole(self):
        """Peaks of 250 to 700 over the noise 30 of the sky, on even and on uneven light."""
        rng = np.random.default_rng(1)
        y, x = np.mgrid[:288, :384]
        shifts = (0, 1, 2, 4)

        def spots(peak, shift):
            light = np.zeros(x.shape)
            for left in range(24, 360, 24):
                for top in range(24, 264, 24):
                    u, v = x[:24, :24] + left, y[:24, :24] + top
                    light[top:top + 24, left:left + 24] += peak * np.exp(
                        -((u - left - 11.5 - shift) ** 2 + (v - top - 11.5) ** 2) / 2 / 1.7 ** 2)
            return light

        slope = 12 * abs((x + 30) % 192 - 96)
        for peak, sky, uneven in (250, 900, 0), (350, 900, 0), (700, 900, 0), (1000, 4, slope):
            np.save(self.path("f.npy"), np.stack([rng.poisson(spots(peak, shift) + sky) + uneven + rng.normal(
                100, 2, x.shape) for shift in shifts]).round().astype("u2"))
            text = self.call("f.npy")
            self.assertEqual(self.result()["warnings"], [])
            table = self.table()
            valid = table["flags"].reshape(len(shifts), -1) == 0
            self.assertGreater(valid.mean(), 0.99)
            places = np.where(valid, table["x"].reshape(len(shifts), -1), np.nan)
            found = np.nanmedian(places - places[0], 1)
            np.testing.assert_allclose(found[1:], shifts[1:], rtol=0.04, err_msg=f"{peak} {text}")

    def test_spots_in_the_noise_and_exchanged_bytes_are_doubted(self):
        rng = np.random.default_rng(2)
        y, x = np.mgrid[:240, :240] % 24 - 12.0
        cells = "x0=0", "y0=0", "columns=10", "rows=10", "pitch-x=24", "pitch-y=24"

        def peak(height):
            frame = 500 + height * np.exp(-(x ** 2 + y ** 2) / 4) + rng.normal(0, 20, x.shape)
            np.save(self.path("f.npy"), frame.round().astype("<u2"))
            self.call("f.npy", *cells)
            return next(figure for figure in self.result()["figures"] if figure["name"].startswith("peak of a spot"))
        for times, met in (0.5, False), (3, False), (10, True), (100, True):
            figure = peak(20 * times)
            self.assertEqual(figure["met"], met, figure)
            if times >= 10:  # the brightest of nine pixels has some noise as well
                self.assertAlmostEqual(figure["value"], times, delta=1 + 0.1 * times)
        self.assertEqual(self.result()["warnings"], [])
        np.save(self.path("f.npy"), np.load(self.path("f.npy")).byteswap())
        self.assertIn("high byte first", self.call("f.npy", *cells))

    def test_a_sum_of_all_cells_is_told(self):
        first = np.rint(1000 * self.moved_spots()[0]).astype("u2")
        np.save(self.path("f.npy"), np.stack([first, np.full_like(first, 200), first]))
        self.call("f.npy", *GRID, "saturation=1000")
        flags = self.table()["flags"].astype(int)
        self.assertEqual(np.count_nonzero(flags & INVALID), 64)
        summary = self.result()["summary"]
        self.assertEqual([summary[name] for name in ("cells", "frames", "invalid", "low-flux")], [192, 3, 64, 64])
        self.assertEqual(summary["saturated"], np.count_nonzero(flags & 4))
        self.call("f.npy", *GRID, "threshold-mode=none")
        summary = self.result()["summary"]
        self.assertEqual([summary[name] for name in ("invalid", "saturated")], [0, 0])

    def test_a_weight_does_not_drop_the_threshold(self):
        for name, frame in zip("ab", self.moved_spots()):
            np.save(self.path(name + ".npy"), np.rint(1000 * frame).astype("u2"))
        self.assertAlmostEqual(
            self.shift_of(".npy", "weighting=gaussian", "sigma=2.5", "iterations=20"), 3, delta=0.06)

    def test_the_example_of_a_program_takes_a_pedestal_away(self):
        script = (
            f"import sys; sys.path.insert(0, {os.path.join(SOURCE, 'pipelines', 'examples')!r})\n"
            "import numpy as np, shcentroid as s\n"
            "s.Gst.init(None); rng = np.random.default_rng(1); y, x = np.mgrid[:120, :160]\n"
            "frames = [(rng.poisson(sum(400 * np.exp(-((x-20*i-9.5-k)**2 + (y-20*j-9.5)**2) / 2 / 1.5**2)\n"
            "          for i in range(8) for j in range(6))) + 100).astype('<u2') for k in (0, 1, 2, 3)]\n"
            "for settings in 'threshold-mode=auto', '':\n"
            "    print(*[r['values'][:, r['fields'].index('dx')].mean() for r in s.measure(frames, settings)])\n")
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        with_it, without = (np.array(line.split(), float) for line in done.stdout.splitlines())
        np.testing.assert_allclose(with_it - with_it[0], (0, 1, 2, 3), atol=0.06)
        self.assertLess((without - without[0])[3], 1)
        self.assertEqual(done.stderr.count("Warning: "), 1)
        self.assertIn("is light outside its spot", done.stderr)

    def measure_v4l2(self, formats, *arguments, status=1):
        """A camera of the mock, of 64 x 48 pixels, all 0: nothing is measured, which is status 1, but the files are there"""
        mock = os.environ.get("MOCK_V4L2")
        if not mock or not Gst.ElementFactory.find("v4l2src"):
            self.skipTest("there is no v4l2src, or MOCK_V4L2 does not name the mock of its camera")
        printed = self.call("--camera", "v4l2:/dev/full", "--frames", "3", "columns=2", "rows=2", "pitch-x=30", "pitch-y=20",
                            *arguments, status=status, LD_PRELOAD=mock, MOCK_V4L2_DEVICE="/dev/full", MOCK_V4L2_FORMATS=formats)
        return printed, self.result() if status == 1 else None

    def test_formats_of_v4l2_cameras(self):
        for formats, expected in (("GREY", ("GRAY8", 0)), ("Y16 ", ("GRAY16_LE", 0)),
                                  ("YUYV", ("GRAY8", 0)), ("GREY,Y16 ", ("GRAY8", 0))):
            printed, properties = self.measure_v4l2(formats)
            self.assertEqual((properties["format"], properties["bit-depth"]), expected, printed)
            self.assertEqual(properties["frames"], 3)
            self.assertNotIn("The camera", printed)
        _, properties = self.measure_v4l2("Y16 ", "bit-depth=12")
        self.assertEqual(properties["bit-depth"], 12)

    def test_v4l2_formats_that_do_not_reach_gstreamer_are_named(self):
        for name in "Y10", "Y12", "Y14":
            printed, _ = self.measure_v4l2(name + " ", status=3)
            self.assertIn(f"The camera /dev/full has the format {name}, which v4l2src does not pass on. It needs",
                          printed)
        printed, properties = self.measure_v4l2("Y10 ,GREY,Y12 ")
        self.assertIn("has the format Y10 and Y12, which v4l2src does not pass on: another one is used", printed)
        self.assertEqual((properties["format"], properties["bit-depth"]), ("GRAY8", 0))

    def example(self, name, *arguments):
        """Returns: what an example of pipelines/examples prints"""
        done = subprocess.run(
            ["timeout", "100", os.path.join(SOURCE, "pipelines", "examples", name), *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=self.folder, env={**os.environ, "GST_IMAGING_ENV": "1"})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    @unittest.skipUnless(HAVE_OVERLAY, "there is no shoverlay")
    def test_pictures_are_made_and_can_be_measured_again(self):
        printed = self.example("shcentroid-pictures", self.path("pictures"), self.path("nothing"))
        self.assertIn("only generated ones were drawn", printed)
        for name in ("shoverlay.png", "shoverlay-hexagonal.png"):
            with open(self.path("pictures/" + name), "rb") as png:
                self.assertEqual(png.read(8), b"\x89PNG\r\n\x1a\n")
        self.call("pictures/shoverlay.png")
        self.assertAlmostEqual(self.result()["grid"]["pitch"], 52, delta=2)  # 26 pixels, drawn twice as large

    def test_granules_are_measured_against_one_of_the_cells(self):
        text = self.example("shcentroid-solar", self.path("sun"))
        self.assertIn("1280 valid shifts of 0.800 pixels rms", text)
        self.assertLess(float(text.split("off by ")[1].split()[0]), 0.05)
        frames, shifts = granulation.make(frames=2, columns=6, rows=5, pitch=24, amplitude=1)
        np.save(self.path("sun.npy"), frames)
        self.call("sun.npy", "estimator=correlation", "template-source=frame", "remove-tilt=true", "columns=6", "rows=5",
                  "pitch-x=24", "pitch-y=24", "template-cell=14")
        table = self.table()
        found = np.stack([table["dx"], table["dy"]], 1).reshape(shifts.shape)
        error = found - (shifts - shifts.mean(1, keepdims=True))
        self.assertLess(np.sqrt((error ** 2).mean()), 0.05)

    def test_a_sun_without_shifts_is_measured_too(self):
        np.save(self.path("sun.npy"), granulation.make(frames=2, columns=6, rows=5, pitch=24, amplitude=1)[0])
        self.call("sun.npy", "columns=6", "rows=5", "pitch-x=24", "pitch-y=24", "estimator=correlation", "min-correlation=1",
                  "template-location=" + self.other_scene(), status=1)
        self.assertEqual(self.result()["summary"]["invalid"], 60)

    def other_scene(self):
        """Returns: a template that is found nowhere."""
        name = self.path("t.npy")
        np.save(name, np.indices((12, 12)).sum(0) % 2 * 50.)
        return name

    def test_granules_are_no_grid(self):
        for seed in range(1, 6):
            np.save(self.path("sun.npy"), granulation.make(seed=seed)[0])
            self.assertIn("There is no grid of spots", self.call("sun.npy", status=1))

    def test_pupil_images_are_measured(self):
        rng = np.random.default_rng(3)
        disc = np.hypot(*(np.mgrid[:20, :20] - 9.5)) < 8
        frames, flat = rng.integers(500, 4000, (2, 40, 40)), rng.integers(2000, 2100, (3, 40, 40))
        np.save(self.path("p.npy"), np.block([[1 * disc, 4 * disc], [2 * disc, 3 * disc]]).astype("u1"))
        np.save(self.path("f.npy"), frames.astype("u2"))
        np.save(self.path("flat.npy"), flat.astype("u2"))

        def truth(frames):
            one, four, two, three = (frames.astype(float)[:, y:y + 20, x:x + 20][:, disc] for y in (0, 20) for x in (0, 20))
            return np.stack([one + two - three - four, one - two - three + four], -1) / (one + two + three + four)[..., None]
        self.call("flat.npy", "--pupils", "p.npy", output="flat")
        self.call("f.npy", "--pupils", "p.npy")
        slopes = np.load(self.path("out/slopes.npy"))
        np.testing.assert_allclose(slopes[..., 2:4], truth(frames), atol=1e-6)
        self.assertEqual(sorted(set(os.listdir(self.path("out"))) & {"map.npy", "slopes.npy", "table.csv"}), ["slopes.npy", "table.csv"])
        result = self.result()
        self.assertNotIn("grid", result)
        self.assertIn("pupils", {entry["role"] for entry in result["inputs"]})
        with open(self.path("out/report.html"), encoding="utf-8") as file:
            report = file.read()
        self.assertIn("slope of a cell, rms about its mean", report)
        self.assertNotIn("spots cut", report)
        self.call("f.npy", "--reference", "flat/slopes.npy", "estimator=pupils", "pupils-location=p.npy", "normalisation=local")
        np.testing.assert_allclose(np.load(self.path("out/slopes.npy"))[..., 2:4], truth(frames) - truth(flat).mean(0), atol=4e-6)
        for words, sentence in ((("--map", "m.npy"), "without a grid"), (("estimator=cog",), "Leave one of them out"),
                                (("pupils-location=p.npy",), "the same setting"), (("--find-grid",), "another one is given")):
            self.assertIn(sentence, self.call("f.npy", "--pupils", "p.npy", *words, status=2))
        self.assertIn("these are 64x64", self.call(self.square(), "--pupils", "p.npy", status=1))

    def square(self):
        np.save(self.path("square.npy"), np.zeros((1, 64, 64), np.uint8))
        return "square.npy"

    def test_what_is_missing_is_said_in_a_sentence(self):
        np.save(self.path("f.npy"), np.zeros((1, 64, 64), np.uint8))
        with open(self.path("f.fits"), "w", encoding="utf-8") as file:
            file.write("no FITS")
        for words, status, sentence in (
                (("f.npy",), 1, "There is no grid of spots"),
                (("nothing.npy",), 3, 'There is no file "nothing.npy".'),
                (("f.npy", "colums=3"), 2, 'no property "colums"'),
                (("f.npy", "3"), 3, 'There is no file "3".'),
                (("f.npy", "--scale", "0"), 2, "--scale is 0"),
                (("f.npy", "--frames", "0"), 2, "--frames is 0; it needs at least 1."),
                (("f.fits",), 3, 'f.fits" starts with "no FITS"'),
                ((), 2, "Give files or folders of frames, or --camera"),
                (("f.npy", "--camera", "v4l2:"), 2, "not both"),
                (("f.npy", "--exposure", "5"), 2, "--exposure is for --camera"),
                (("--camera", "/dev/video0"), 2, "it needs v4l2:NAME, aravis:NAME, gst:NAME."),
                (("--camera", "v4l2:/dev/no-video"), 3, "There is no camera /dev/no-video"),
                (("f.npy", "--map", "m.npy", "map-location=m.npy"), 2, "the same setting"),
                (("f.npy", "--map", "m.npy", "--find-grid"), 2, "--find-grid finds a grid"),
                (("f.npy", "--reference", "r.npy"), 2, "add --map with the map of its recording"),
                (("f.npy", "--reference", "f.npy", *GRID), 3, "a reference is [cells, 2] of x and y, or slopes"),
                (("f.npy", "fields=xy"), 2, "fields is for pipelines"),
                (("f.npy", "--draw", "gamma"), 2, "no property=value"),
                (("f.npy", "--view", *GRID), 2, "--view needs a display")):
            printed = self.call(*words, status=status, DISPLAY="", WAYLAND_DISPLAY="")
            self.assertIn(sentence, printed)
            self.assertEqual(sorted(os.listdir(self.folder)), ["f.fits", "f.npy"])
        if HAVE_OVERLAY:
            self.assertIn("makes 64000 x 64000 of 64 x 64", self.call(
                "f.npy", "--scale", "1000", "columns=2", "rows=2", "pitch-x=32", "pitch-y=32", status=2))
        bare = {"GST_PLUGIN_SYSTEM_PATH_1_0": self.path("none"), "GST_REGISTRY": self.path("registry")}
        self.assertIn("aravissrc is missing: on Debian, install", self.call("--camera", "aravis:", status=2, **bare))


if __name__ == "__main__":
    main()
