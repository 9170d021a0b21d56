# SPDX-License-Identifier: LGPL-2.1-or-later
"""picturesrc as users call it: which files a location stands for, what is missing among them, and what it says."""
import json
import os
import shutil
import struct
import tempfile
import unittest

import numpy as np

from support import command, launch, main

FORMATS = os.environ["FORMATS"].split()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class Files(Case):
    """Folders, patterns and numbered series"""

    def series(self, numbers, name="f%04d.pgm"):
        """A folder of numbered pictures, each with its number as samples"""
        folder = self.path("series")
        os.makedirs(folder, exist_ok=True)
        for number in numbers:
            with open(os.path.join(folder, name % number), "wb") as file:
                file.write(b"P5 3 2 255\n" + bytes([number] * 6))
        return folder

    def record(self, location):
        """Returns: what was printed, the samples, and the sidecar"""
        printed = launch("picturesrc", "location=" + location, "!", "picturesink", "sidecar=always",
                         "location=" + self.path("out.npy"))
        with open(self.path("out.npy.json"), encoding="utf-8") as file:
            return printed, np.load(self.path("out.npy"))[:, 0, 0].tolist(), json.load(file)

    def test_a_gap_in_a_series_is_named_and_counted(self):
        folder = self.series([1, 2, 4, 5, 6, 9])
        printed, samples, told = self.record(folder)
        self.assertIn('From "f0001.pgm" to "f0009.pgm" 3 files are missing: 3, 7 to 8.', printed)
        self.assertEqual(printed.count("WARNING"), 1)
        self.assertEqual((samples, told["frames-missing"]), ([1, 2, 4, 5, 6, 9], 3))
        self.assertEqual(told["frame-numbers"], [0, 1, [3, 1, 3], 8])

    def test_a_missing_file_of_several_pages_counts_its_pages(self):
        folder = self.path("pages")
        os.mkdir(folder)
        for number in 1, 2, 4, 5:
            np.save(os.path.join(folder, f"f{number:02}.npy"), np.full((3, 4, 5), number, np.uint8))
        _printed, samples, told = self.record(folder)
        self.assertEqual(samples, [1] * 3 + [2] * 3 + [4] * 3 + [5] * 3)
        self.assertEqual((told["frames-missing"], told["frame-numbers"]), (3, [[0, 1, 6], [9, 1, 6]]))

    def test_a_photograph_left_out_with_its_light_is_no_loss(self):
        lights = self.path("lights.lp")
        with open(lights, "w", encoding="utf-8") as file:
            file.write("7\na 0 0 1\nb 0.6 0 0.8\nc 0 0.6 0.8\nd -0.6 0 0.8\ne 0 -0.6 0.8\nf 0.8 0 0.6\ng 0 0.8 0.6\n")
        for numbers, n_lost in ([1, 2, 3, 4, 6, 7, 8], 0), ([1, 2, 3, 4, 6, 7], 1):
            shutil.rmtree(self.path("series"), ignore_errors=True)
            printed = launch("picturesrc", "location=" + self.series(numbers), "!", "photostereo",
                             "lights-location=" + lights, "!", "fakesink")
            self.assertEqual(printed.count("missing before picture"), n_lost, printed)

    def test_what_is_no_gap(self):
        folder = self.series([10, 20, 30, 40])  # every tenth
        self.assertEqual(self.record(folder)[2]["frames-missing"], 0)
        self.series([7, 19, 31, 200])  # no step
        printed, _samples, told = self.record(folder)
        self.assertNotIn("WARNING", printed)
        self.assertEqual(told["frames-missing"], 0)
        shutil.rmtree(folder)
        self.series(range(1, 13), "f%d.pgm")  # 2 to 9 are there, and the pattern does not fit them
        printed, samples, _told = self.record(os.path.join(folder, "f1*.pgm"))
        self.assertNotIn("WARNING", printed)
        self.assertEqual(samples, [1, 10, 11, 12])

    def test_the_name_that_picturesink_had(self):
        folder = self.series([0, 1, 2])
        self.series([3], "other%04d.pgm")
        self.assertEqual(self.record(os.path.join(folder, "f%04d.pgm"))[1], [0, 1, 2])
        printed = launch("picturesrc", "location=" + os.path.join(folder, "g%04d.pgm"), "!", "fakesink", status=1)
        self.assertIn("by a pattern with * in place of the number, or by its folder", printed)

    def test_a_note_beside_pictures_is_left_out(self):
        folder = self.series([0, 1, 2])
        for name in "notes.txt", "lights.lp":
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write("3\n")
        os.rename(os.path.join(folder, "f0001.pgm"), os.path.join(folder, "f0001"))  # by what it holds
        printed, samples, _told = self.record(folder)
        self.assertRegex(printed, 'Left out of .*: "(notes.txt|lights.lp)" and 1 more')
        self.assertEqual(sorted(samples), [0, 1, 2])
        for name in os.listdir(folder):
            if name.startswith("f"):
                os.remove(os.path.join(folder, name))
        self.assertIn("which no format does that is read here", launch("picturesrc", "location=" + folder, "!", "fakesink", status=1))

    def test_raw_samples_are_told_what_describes_them(self):
        for name in "a.cf32", "a.cf32.vrt":
            with open(self.path(name), "wb") as file:
                file.write(bytes(64))
        printed = launch("picturesrc", "location=" + self.path("a.cf32"), "!", "fakesink", status=1)
        self.assertIn(f'which "{self.path("a.cf32.vrt")}" describes', printed)

    def test_floats_into_video_are_told_what_converts(self):
        np.save(self.path("f.npy"), np.zeros((2, 3, 4), "f4"))
        printed = launch("picturesrc", "location=" + self.path("f.npy"), "!", "videoconvert", "!", "fakesink", status=1)
        self.assertIn("videoconvert takes none. Scale them to u8 or u16, for example with NumPy", printed)
        np.save(self.path("u.npy"), np.zeros((2, 3, 4), "u1"))
        printed = launch("picturesrc", "location=" + self.path("u.npy"), "!", "video/x-raw,format=RGB", "!", "fakesink", status=1)
        self.assertIn("Put videoconvert between", printed)


class Parts(Case):
    """One of several pictures of a file"""

    def fits_of(self, *units):
        """Writes each as a unit, the first of them empty when it is None. Returns: the path"""
        blob = b""
        for i, unit in enumerate(units):
            name, values = unit or (None, np.zeros((), "u1"))
            cards = ["SIMPLE  =                    T" if i == 0 else "XTENSION= 'IMAGE   '",
                     f"BITPIX  = {-32 if values.dtype.kind == 'f' else 8:20}", f"NAXIS   = {values.ndim:20}"]
            cards += [f"NAXIS{k + 1}  = {n:20}" for k, n in enumerate(values.shape[::-1])]
            cards += ["PCOUNT  =                    0", "GCOUNT  =                    1"] if i else []
            cards += [f"EXTNAME = '{name:8}'"] if name else []
            data = values.astype(values.dtype.newbyteorder(">")).tobytes() if values.ndim else b""
            blob += "".join(f"{card:80}" for card in cards + ["END"]).encode().ljust(2880) + data.ljust(-(-len(data) // 2880) * 2880, b"\0")
        with open(self.path("mef.fits"), "wb") as file:
            file.write(blob)
        return self.path("mef.fits")

    def tiff_of(self, *pages):
        """Writes pages of u8, as little endian directories"""
        blob, where = b"II*\0", []
        for page in pages:
            where.append(len(blob) + 4)
            blob = blob if len(where) > 1 else blob + b"\0\0\0\0"
            where[-1] = len(blob)
            blob += page.tobytes() + b"\0" * (page.size % 2)
        place = 4
        for start, page in zip(where, pages):
            tags = [(256, page.shape[1]), (257, page.shape[0]), (258, 8), (259, 1), (262, 1), (273, start), (278, page.shape[0]),
                    (279, page.size)]
            blob = blob[:place] + struct.pack("<I", len(blob)) + blob[place + 4:]
            blob += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
            place = len(blob)
            blob += b"\0\0\0\0"
        with open(self.path("a.tif"), "wb") as file:
            file.write(blob)
        return self.path("a.tif")

    def play(self, path, *words, status=0):
        printed = launch("picturesrc", "location=" + path, *words, "!", "picturesink", "location=" + self.path("out.npy"),
                         "sidecar=none", status=status)
        return printed if status else (np.load(self.path("out.npy"))[0], printed)

    @unittest.skipUnless("fits" in FORMATS, "built without FITS")
    def test_units_of_fits(self):
        science, error = np.arange(6, dtype="f4").reshape(2, 3), np.full((4, 5), 0.5, "f4")
        quality = np.arange(6, dtype="u1").reshape(2, 3)
        path = self.fits_of(None, ("SCI", science), ("ERR", error), ("DQ", quality))
        for words, expected in ((), science), (("part=0",), science), (("part=1",), error), (("part=2",), quality):
            values, printed = self.play(path, *words)
            np.testing.assert_array_equal(values, expected)
            self.assertEqual("0: SCI f32 [2, 3]; 1: ERR f32 [4, 5]; 2: DQ u8 [2, 3]" in printed, not words)
        self.assertIn("has no part 3: it has the parts 0 to 2. Set part to one of these numbers.", self.play(path, "part=3", status=1))
        for part, expected in enumerate((science, error, quality)):
            printed = command(self.folder, "convert", "--json", "--part", str(part), path, "one.npy")
            np.testing.assert_array_equal(np.load(self.path("one.npy")), expected)
            self.assertNotIn("parts", json.loads(printed[printed.index("{"):]))
        self.assertIn("--part takes another one: 0: SCI", command(self.folder, "convert", path, "one.npy"))
        told = json.loads(command(self.folder, "info", "--json", "--part", "1", path))
        self.assertEqual((told["type"], told["shape"], told["cards"]["EXTNAME"], told["parts"][2]),
                         ("f32", [4, 5], "ERR", "2: DQ u8 [2, 3]"))
        self.assertNotIn("part", self.play(self.fits_of(("ONE", science)))[1])
        path = self.fits_of(None, ("A\x1b[2J", science), ("B", science))  # no command for a terminal
        for printed in self.play(path)[1], command(self.folder, "convert", path, "one.npy"), command(self.folder, "info", path):
            self.assertIn("A", printed)
            self.assertNotIn("\x1b", printed)

    @unittest.skipUnless("fits" in FORMATS, "built without FITS")
    def test_a_later_unit_that_is_damaged(self):
        science = np.arange(6, dtype="f4").reshape(2, 3)
        path = self.fits_of(("SCI", science), ("ERR", science))
        with open(path, "r+b") as file:
            file.seek(2 * 2880)
            file.write(b"\xff" * 400)
        np.testing.assert_array_equal(self.play(path)[0], science)

    @unittest.skipUnless("tiff" in FORMATS, "built without TIFF")
    def test_pages_of_tiff(self):
        small, large = np.arange(6, dtype="u1").reshape(2, 3), np.arange(20, dtype="u1").reshape(4, 5)
        path = self.tiff_of(small, large, small + 1)
        self.assertIn("has pages that differ: page 2 is 5 x 4", self.play(path, status=1))
        for part, expected in enumerate((small, large, small + 1)):
            np.testing.assert_array_equal(self.play(path, f"part={part}")[0], expected)
        self.assertIn("has no part 3: it has the parts 0 to 2", self.play(path, "part=3", status=1))
        stack = self.tiff_of(small, small + 1)
        self.assertEqual(launch("picturesrc", "location=" + stack, "!", "fakesink").count("differ"), 0)
        self.assertIn("has no part 1: it has one part, whose number is 0. Leave part out.", self.play(self.tiff_of(small), "part=1", status=1))

    def test_formats_of_one_picture(self):
        np.save(self.path("a.npy"), np.zeros((2, 3), "u1"))
        self.play(self.path("a.npy"), "part=0")
        self.assertIn("has no part 1: it has one part", self.play(self.path("a.npy"), "part=1", status=1))


class Complex(Case):
    """Radar images in .npy: slcsrc and picturesrc read what picturesink wrote."""

    def test_lines_there_and_back(self):
        rng = np.random.default_rng(3)
        image = (rng.standard_normal((61, 50)) + 1j * rng.standard_normal((61, 50))).astype("c8")
        image.tofile(self.path("a.slc"))
        launch("slcsrc", "location=" + self.path("a.slc"), "width=50", "format=cf32", "!", "picturesink", "location=" + self.path("a.npy"))
        np.testing.assert_array_equal(np.load(self.path("a.npy")), image)
        pictures = []
        for words in ("slcsrc", "width=50", "format=cf32", "location=" + self.path("a.slc")), ("slcsrc", "location=" + self.path("a.npy")), \
                ("picturesrc", "location=" + self.path("a.npy")):
            launch(*words, "!", "i.reference", *words, "!", "i.secondary", "insarform", "name=i", "i.phase", "!",
                   "filesink", "location=" + self.path("phase.raw"))
            with open(self.path("phase.raw"), "rb") as file:
                pictures.append(file.read())
        self.assertGreater(len(pictures[0]), 1000)
        self.assertEqual(len(set(pictures)), 1)
        np.save(self.path("b.npy"), image.real.astype("f8"))
        self.assertIn("expected is complex64 or f32 [lines, samples]",
                      launch("slcsrc", "location=" + self.path("b.npy"), "!", "fakesink", status=1))


if __name__ == "__main__":
    main()
