# SPDX-License-Identifier: LGPL-2.1-or-later
"""The scripts pipelines/shcentroid-*, as a user would call them."""
import gzip
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

from support import SOURCE, Gst, main, read_csv, run_script

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import granulation
import wavefronts

HAVE_OVERLAY = all(Gst.ElementFactory.find(name) for name in ("shoverlay", "pngenc"))


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, script, *arguments, status=0, **environment):
        """Returns: all that it printed."""
        done = subprocess.run(
            ["timeout", "-k", "5", "100", sys.executable,
             os.path.join(SOURCE, "pipelines", script), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder,
            env={**os.environ, "GST_IMAGING_ENV": "1", **environment})
        self.assertEqual(done.returncode, status, done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        return done.stdout

    def check_csv(self, places):
        table = read_csv(self.path("c.csv"))
        self.assertEqual(len(table), places.shape[0] * places.shape[1])
        found = np.stack([table["x"], table["y"]], 1).reshape(places.shape)
        for spots, truth in zip(found, places):  # the map has an order of its own
            nearest = np.hypot(*(spots[:, None] - truth).transpose(2, 0, 1)).min(0)
            self.assertLess(nearest.max(), 0.15)

    def test_a_recording_without_a_grid_is_measured(self):
        frames, places, _ = wavefronts.make(frames=3, count=9, pitch=22, amplitude=1)
        np.save(self.path("f.npy"), frames)
        text = self.call("shcentroid-file", "f.npy", "--csv", "c.csv", "threshold=150",
                         "threshold-mode=absolute")
        self.assertIn(f"Found a square grid of {places.shape[1]} cells", text)
        self.assertIn("3 frames measured", text)
        self.check_csv(places)
        text = self.call("shcentroid-file", "f.npy", "--csv", "c.csv", "threshold=150",
                         "threshold-mode=absolute", "map-location=shcentroid-map.npy")
        self.assertNotIn("Found", text)
        self.check_csv(places)

    def test_frames_can_be_counted(self):
        np.save(self.path("f.npy"), np.full((9, 64, 64), 7, np.uint8))
        self.call("shcentroid-file", "f.npy", "--csv", "c.csv", "--frames", "4",
                  "columns=2", "rows=2", "pitch-x=32", "pitch-y=32")
        self.assertEqual(set(read_csv(self.path("c.csv"))["frame"]), {0, 1, 2, 3})

    def test_a_fits_picture_is_measured(self):
        frames, places, _ = wavefronts.make(count=8, pitch=20, amplitude=0, hexagonal=True)
        height, width = frames.shape[1:]
        cards = ["SIMPLE  =                    T", "BITPIX  =                   16",
                 "NAXIS   =                    2", f"NAXIS1  = {width:20d}",
                 f"NAXIS2  = {height:20d}", "BZERO   =                32768", "END"]
        header = "".join(card.ljust(80) for card in cards).ljust(2880)
        with open(self.path("f.fits"), "wb") as file:
            file.write(header.encode() + (frames[0].astype(int) - 32768).astype(">i2").tobytes())
        text = self.call("shcentroid-file", "f.fits", "--csv", "c.csv", "threshold=150",
                         "threshold-mode=absolute")
        self.assertIn(f"Found a hexagonal grid of {places.shape[1]} cells", text)
        self.check_csv(places)

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
            self.call("shcentroid-file", self.path(name + arguments[0]), "--csv", "c.csv",
                      *arguments[1:], "columns=8", "rows=8", "pitch-x=20", "pitch-y=20")
            tables.append(read_csv(self.path("c.csv")))
        return np.median(tables[1]["x"] - tables[0]["x"])

    def test_shifts_on_a_pedestal_are_whole_with_the_first_settings(self):
        for name, frame in zip("ab", self.moved_spots()):
            self.write_fits(name + ".fits", frame)
            np.save(self.path(name + ".npy"), np.rint(1000 * frame).astype(np.uint16))
        self.assertAlmostEqual(self.shift_of(".fits"), 3, delta=0.03)  # float32 from 0 to 1
        self.assertAlmostEqual(self.shift_of(".npy"), 3, delta=0.03)
        self.assertAlmostEqual(self.shift_of(".npy", "threshold-mode=none"), 0.7, delta=0.3)
        if HAVE_OVERLAY:
            self.assertAlmostEqual(self.shift_of(".fits", "--picture", "p.png"), 3, delta=0.03)

    def test_a_float_that_is_no_number_flags_its_cell(self):
        frame = self.moved_spots()[0]
        frame[30, 50] = np.nan
        self.write_fits("f.fits", frame)
        self.call("shcentroid-file", "f.fits", "--csv", "c.csv", "columns=8", "rows=8",
                  "pitch-x=20", "pitch-y=20")
        flags = read_csv(self.path("c.csv"))["flags"]
        self.assertEqual(flags[10], 128)
        self.assertEqual(np.count_nonzero(flags), 1)

    def test_a_map_is_not_overwritten_unless_it_is_named(self):
        np.save(self.path("f.npy"), wavefronts.make(frames=1, count=9, pitch=22)[0])
        self.call("shcentroid-file", "f.npy", "--csv", "c.csv")
        with open(self.path("shcentroid-map.npy"), "wb") as file:
            file.write(b"mine")
        self.assertIn("shcentroid-map.npy exists. Measure with it: map-location=",
                      self.call("shcentroid-file", "f.npy", status=1))
        with open(self.path("shcentroid-map.npy"), "rb") as file:
            self.assertEqual(file.read(), b"mine")
        self.call("shcentroid-file", "f.npy", "--map", "shcentroid-map.npy")
        self.assertEqual(np.load(self.path("shcentroid-map.npy")).shape[1], 12)

    def measure(self, name, *arguments):
        """Returns: the bytes of the CSV of 8 x 8 cells"""
        self.call("shcentroid-file", name, "--csv", "c.csv", "columns=8", "rows=8", "pitch-x=20", "pitch-y=20",
                  *arguments)
        with open(self.path("c.csv"), "rb") as file:
            return file.read()

    @unittest.skipUnless(HAVE_OVERLAY, "there is no shoverlay or pngenc")
    def test_a_picture_changes_no_number(self):
        first, second = self.moved_spots()
        second[30, 50], second[2, 2] = np.nan, 1e7
        frames = np.stack([first, second])[:, :, :157]  # rows that video pads
        for name, values in ("floats", frames.astype("f4")), ("samples", np.rint(1000 * first).astype("u2")):
            np.save(self.path(name + ".npy"), values)
            plain = self.measure(name + ".npy")
            self.assertEqual(self.measure(name + ".npy", "--picture", "p%d.png", "--scale", "2"), plain)
        self.assertTrue({"p0.png", "p1.png"} <= set(os.listdir(self.folder)))

    def test_an_output_that_is_an_input_is_refused(self):
        np.save(self.path("in.npy"), np.rint(1000 * self.moved_spots()[0]).astype("u2"))
        np.save(self.path("dark.npy"), np.zeros((160, 160)))
        os.symlink("in.npy", self.path("link.npy"))
        os.link(self.path("in.npy"), self.path("p07.png"))
        before = {name: np.load(self.path(name)) for name in ("in.npy", "dark.npy")}
        for arguments in (("in.npy", "--csv", "in.npy", "columns=8", "rows=8", "pitch-x=20", "pitch-y=20"),
                          ("in.npy", "--map", "./in.npy"), ("in.npy", "--map=in.npy"), ("link.npy", "--map", "in.npy"),
                          ("in.npy", "--map", "link.npy"), ("in.npy", "find-grid-location=in.npy"),
                          ("in.npy", "dark-location=dark.npy", "--csv", "dark.npy"),
                          ("p07.png", "--picture", "p%02d.png"), ("p07.png", "--picture", "p07.png")):
            self.assertIn("names that file twice", self.call("shcentroid-file", *arguments, status=1))
        os.rename(self.path("in.npy"), self.path("shcentroid-map.npy"))
        self.call("shcentroid-file", "shcentroid-map.npy", status=1)
        os.rename(self.path("shcentroid-map.npy"), self.path("in.npy"))
        for name, content in before.items():
            np.testing.assert_array_equal(np.load(self.path(name)), content)
        for arguments in ("--csv", "new", "--map", "new"), ("--csv", "new", "--picture", "./new"):
            self.assertIn("two outputs have that name", self.call("shcentroid-file", "in.npy", *arguments, status=1))
        self.assertNotIn("new", os.listdir(self.folder))
        self.call("shcentroid-file", "in.npy", "--csv", "c.csv", "--map", "m.npy")
        text = self.call("shcentroid-file", "in.npy", "--csv", "c.csv", "--map", "m.npy")  # over those of before
        self.assertIn("Wrote m.npy\nWrote c.csv\n", text)

    def test_kinds_of_numbers_are_measured_alike(self):
        frame = np.rint(1000 * self.moved_spots()[0])
        np.save(self.path("a.npy"), frame.astype("u2"))
        plain = self.measure("a.npy")
        for kind in "i2", "i4", "i8", "u4", ">u2":
            np.save(self.path("a.npy"), frame.astype(kind))
            self.assertEqual(self.measure("a.npy"), plain, kind)
        np.save(self.path("a.npy"), np.asfortranarray(frame.astype("u2")))
        self.assertEqual(self.measure("a.npy"), plain)
        np.savez(self.path("a.npz"), frames=frame.astype("u2"))
        self.assertEqual(self.measure("a.npz"), plain)
        np.save(self.path("a.npy"), frame.astype("i2") - 300)  # below 0: float32, less the same pedestal
        less = np.genfromtxt(self.measure("a.npy").decode().splitlines(), delimiter=",", names=True)
        same = np.genfromtxt(plain.decode().splitlines(), delimiter=",", names=True)
        np.testing.assert_allclose(less["x"], same["x"], atol=1e-5)

    def test_formats_are_measured_alike(self):
        frame = np.rint(1000 * self.moved_spots()[0]).astype("u2")
        np.save(self.path("a.npy"), frame)
        plain = self.measure("a.npy")
        for kind, name in ("tiff", "a.tif"), ("fits", "a.fits"), ("png", "a.png"), ("pnm", "a.pgm"):
            if kind in os.environ["FORMATS"].split() + ["pnm"]:
                subprocess.run([os.environ["ARRAY_TOOL"], self.path("a.npy"), self.path(name)], check=True)
                self.assertEqual(self.measure(name), plain, name)
        if os.path.exists(self.path("a.fits")):
            with open(self.path("a.fits"), "rb") as file, gzip.open(self.path("b.fits.gz"), "wb") as packed:
                packed.write(file.read())
            self.assertEqual(self.measure("b.fits.gz"), plain)
        os.mkdir(self.path("folder"))
        for i in 1, 2, 10:
            np.save(self.path(f"folder/{i}.npy"), np.roll(frame, i, 1))
        self.measure("folder")
        x = read_csv(self.path("c.csv"))["x"].reshape(3, 64)
        self.assertAlmostEqual(np.median(x[1] - x[0]), 1, delta=0.03)

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
                ("c.npz", "c.npz is no .npz file"), ("c.tif", 'c.tif" starts with'), ("c.fits.gz", "c.fits.gz: "),
                ("c.fz", 'c.fz" starts with'), ("d.npy", "d.npy holds float32 of 3:4:5:1 values a frame"), ("a.raw", "a.raw is of a kind that no installed plug-in of GStreamer reads.")):
            self.assertIn(sentence, self.call("shcentroid-file", name, status=1))

    def test_a_signal_before_the_first_frame_leaves_nothing(self):
        np.save(self.path("f.npy"), np.zeros((600, 200, 200), "i4"))
        os.mkdir(self.path("tmp"))
        for number in signal.SIGTERM, signal.SIGHUP:
            for wait in 0.4, 0.7, 1:
                done = subprocess.Popen(
                    [sys.executable, os.path.join(SOURCE, "pipelines", "shcentroid-file"), "f.npy", "--csv", "c.csv",
                     "columns=8", "rows=8", "pitch-x=20", "pitch-y=20"], cwd=self.folder, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "GST_IMAGING_ENV": "1", "TMPDIR": self.path("tmp")})
                time.sleep(wait)
                done.send_signal(number)
                done.wait(60)
                self.assertEqual(os.listdir(self.path("tmp")), [])

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
            text = self.call("shcentroid-file", "f.npy", "--csv", "c.csv", "--map", "m.npy")
            self.assertNotIn("Warning", text)
            table = read_csv(self.path("c.csv"))
            valid = table["flags"].reshape(len(shifts), -1) == 0
            self.assertGreater(valid.mean(), 0.99)
            places = np.where(valid, table["x"].reshape(len(shifts), -1), np.nan)
            found = np.nanmedian(places - places[0], 1)
            np.testing.assert_allclose(found[1:], shifts[1:], rtol=0.04, err_msg=f"{peak} {text}")

    def test_a_sum_of_all_cells_is_told(self):
        first = np.rint(1000 * self.moved_spots()[0]).astype("u2")
        np.save(self.path("f.npy"), np.stack([first, np.full_like(first, 200), first]))
        text = self.call("shcentroid-file", "f.npy", "--csv", "c.csv", "columns=8", "rows=8", "pitch-x=20",
                         "pitch-y=20", "saturation=1000")
        flags = read_csv(self.path("c.csv"))["flags"].astype(int)
        self.assertEqual(np.count_nonzero(flags & 227), 64)
        self.assertIn("192 cells in 3 frames: 64 invalid (", text)
        self.assertIn("64 low flux", text)
        self.assertIn("192 cells in 3 frames: all valid, none saturated", self.call(
            "shcentroid-file", "f.npy", "--csv", "c.csv", "columns=8", "rows=8", "pitch-x=20", "pitch-y=20",
            "threshold-mode=none"))

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

    def measure_v4l2(self, formats, *arguments, status=0):
        """A camera of the mock, of 64 x 48 pixels"""
        mock = os.environ.get("MOCK_V4L2")
        if not mock or not Gst.ElementFactory.find("v4l2src"):
            self.skipTest("there is no v4l2src, or MOCK_V4L2 does not name the mock of its camera")
        return run_script("shcentroid-v4l2", "--device", "/dev/full", "--frames", "3", "columns=2", "rows=2",
                          "pitch-x=30", "pitch-y=20", *arguments, status=status, LD_PRELOAD=mock,
                          MOCK_V4L2_DEVICE="/dev/full", MOCK_V4L2_FORMATS=formats)

    def test_formats_of_v4l2_cameras(self):
        for formats, expected in (("GREY", ("GRAY8", 0)), ("Y16 ", ("GRAY16_LE", 0)),
                                  ("YUYV", ("GRAY8", 0)), ("GREY,Y16 ", ("GRAY8", 0))):
            printed, properties = self.measure_v4l2(formats)
            self.assertEqual((properties["format"], properties["bit-depth"]), expected, printed)
            self.assertIn("3 frames measured", printed)
            self.assertNotIn("Warning: The camera", printed)
        _, properties = self.measure_v4l2("Y16 ", "bit-depth=12")
        self.assertEqual(properties["bit-depth"], 12)

    def test_v4l2_formats_that_do_not_reach_gstreamer_are_named(self):
        for name in "Y10", "Y12", "Y14":
            printed, _ = self.measure_v4l2(name + " ", status=1)
            self.assertIn(f"The camera /dev/full has the format {name}, which v4l2src does not pass on. It needs",
                          printed)
        printed, properties = self.measure_v4l2("Y10 ,GREY,Y12 ")
        self.assertIn("has the format Y10 and Y12, which v4l2src does not pass on: another one is measured", printed)
        self.assertEqual((properties["format"], properties["bit-depth"]), ("GRAY8", 0))

    @unittest.skipUnless(HAVE_OVERLAY, "there is no shoverlay or pngenc")
    def test_pictures_are_made_and_can_be_measured_again(self):
        output = subprocess.run(
            ["timeout", "100", os.path.join(SOURCE, "pipelines", "shcentroid-pictures"),
             self.path("pictures"), self.path("nothing")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "GST_IMAGING_ENV": "1"})
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("only generated ones were drawn", output.stdout)
        for name in ("shoverlay.png", "shoverlay-hexagonal.png"):
            with open(self.path("pictures/" + name), "rb") as png:
                self.assertEqual(png.read(8), b"\x89PNG\r\n\x1a\n")
        text = self.call("shcentroid-file", "pictures/shoverlay.png", "--csv", "c.csv")
        self.assertIn("cells: pitch 5", text)  # 26 pixels, drawn twice as large

    def test_granules_are_measured_against_one_of_the_cells(self):
        text = self.call("shcentroid-solar", "--csv", "c.csv")
        self.assertIn("1280 valid shifts of 0.800 pixels rms", text)
        self.assertLess(float(text.split("off by ")[1].split()[0]), 0.05)
        frames, shifts = granulation.make(frames=2, columns=6, rows=5, pitch=24, amplitude=1)
        np.save(self.path("sun.npy"), frames)
        self.call("shcentroid-solar", "sun.npy", "--csv", "c.csv", "columns=6", "rows=5",
                  "pitch-x=24", "pitch-y=24", "template-cell=14")
        table = read_csv(self.path("c.csv"))
        found = np.stack([table["dx"], table["dy"]], 1).reshape(shifts.shape)
        error = found - (shifts - shifts.mean(1, keepdims=True))
        self.assertLess(np.sqrt((error ** 2).mean()), 0.05)

    def test_a_sun_without_shifts_is_measured_too(self):
        self.assertIn("5 frames measured", self.call("shcentroid-solar", "fields=xy"))
        self.assertIn("No shift is valid.", self.call(
            "shcentroid-solar", "min-correlation=1", "template-source=stored",
            "template-location=" + self.other_scene(), "template-cell=-1"))

    def other_scene(self):
        """Returns: a template that is found nowhere."""
        name = self.path("t.npy")
        np.save(name, np.indices((12, 12)).sum(0) % 2 * 50.)
        return name

    def test_granules_are_no_grid(self):
        for seed in range(1, 6):
            np.save(self.path("sun.npy"), granulation.make(seed=seed)[0])
            self.assertIn("There is no grid of spots", self.call("shcentroid-file", "sun.npy", status=1))

    def test_what_is_missing_is_said_in_a_sentence(self):
        np.save(self.path("f.npy"), np.zeros((1, 64, 64), np.uint8))
        self.assertIn("There is no grid of spots",
                      self.call("shcentroid-file", "f.npy", status=1))
        self.assertIn("There is no file nothing.npy.",
                      self.call("shcentroid-file", "nothing.npy", status=1))
        self.assertIn('no property "colums"',
                      self.call("shcentroid-file", "f.npy", "colums=3", status=1))
        self.assertIn('"3" is no property=value.',
                      self.call("shcentroid-file", "f.npy", "3", status=1))
        self.assertIn("--scale is 0",
                      self.call("shcentroid-file", "f.npy", "--scale", "0", status=1))
        with open(self.path("f.fits"), "w") as file:
            file.write("no FITS")
        self.assertIn('f.fits" starts with "no FITS"',
                      self.call("shcentroid-file", "f.fits", status=1))
        self.assertIn("There is no file a.npy.",
                      self.call("shcentroid-solar", "a.npy", status=1))
        self.assertIn("There are 2 files, a and b",
                      self.call("shcentroid-solar", "a", "b", status=1))
        self.assertIn("There is no camera /dev/no-video",
                      self.call("shcentroid-v4l2", "--device", "/dev/no-video", status=1))
        bare = {"GST_PLUGIN_SYSTEM_PATH_1_0": self.path("none"),
                "GST_REGISTRY": self.path("registry")}
        self.assertIn("aravissrc is missing: on Debian, install",
                      self.call("shcentroid-aravis", status=1, **bare))

    def test_values_without_sense_are_said_in_a_sentence(self):
        np.save(self.path("f.npy"), np.full((2, 64, 64), 7, np.uint8))
        grid = ("columns=2", "rows=2", "pitch-x=32", "pitch-y=32")
        for arguments, sentence in (
                (("--frames", "0"), "--frames is 0; it needs at least 1."),
                (("--picture", "a%s.png"), "a % begins a counter"),
                (("--picture", "a%.png"), "a % begins a counter"),
                (("--picture", "a%d-%d.png"), "a % begins a counter"),
                *([(("--picture", "a.png", "--scale", "1000"), "makes 64000 x 64000 of 64 x 64")]
                  if HAVE_OVERLAY else [])):
            self.assertIn(sentence,
                          self.call("shcentroid-file", "f.npy", *grid, *arguments, status=1))
        self.assertEqual(os.listdir(self.folder), ["f.npy"])
        if HAVE_OVERLAY:
            self.call("shcentroid-file", "f.npy", *grid, "--picture", "a%%b%02d.png")
            self.assertEqual(sorted(os.listdir(self.folder)),
                             ["a%b00.png", "a%b01.png", "f.npy"])

    def test_a_second_interrupt_does_not_wait_for_a_frame(self):
        script = (
            f"import sys; sys.path.insert(0, {os.path.join(SOURCE, 'pipelines')!r})\n"
            "import shcentroid_common as common; common.Gst.init(None)\n"
            "print('begun', flush=True)\n"
            "common.play('fakesrc ! identity sleep-time=900000000 ! fakesink'.split())")
        done = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL,
                                env={**os.environ, "GST_IMAGING_ENV": "1"})
        self.addCleanup(done.stdout.close)
        self.addCleanup(done.kill)
        self.assertEqual(done.stdout.readline(), b"begun\n")
        for _ in range(10):
            if done.poll() is None:
                time.sleep(0.5)
                done.send_signal(signal.SIGINT)
        self.assertEqual(done.wait(10), -signal.SIGINT)

    def test_each_script_has_help(self):
        for script in ("shcentroid-file", "shcentroid-solar", "shcentroid-v4l2",
                       "shcentroid-aravis"):
            text = self.call(script, "--help")
            for word in ("--csv", "--picture", "property=value", "docs/reference/shcentroid.md"):
                self.assertIn(word, text)
        text = subprocess.check_output(
            [os.path.join(SOURCE, "pipelines", "shcentroid-pictures"), "--help"],
            text=True, cwd=self.folder)
        self.assertIn("Usage: pipelines/shcentroid-pictures", text)
        self.assertEqual(os.listdir(self.folder), [])
        done = subprocess.run(
            [os.path.join(SOURCE, "pipelines", "shcentroid-pictures"), "--bogus"],
            stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: pipelines/shcentroid-pictures", done.stderr)


if __name__ == "__main__":
    main()
