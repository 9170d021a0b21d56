# SPDX-License-Identifier: LGPL-2.1-or-later
"""Units, axes and comments travel with the samples: from any file into any other, through picturesrc and picturesink and with
gst-imaging convert."""
import json
import os
import subprocess
import sys
import time
import unittest

import numpy as np

from support import SOURCE, FolderCase, damage_sidecar, gst_imaging, launch, main

try:
    import tifffile
except ImportError:
    tifffile = None

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata  # pylint: disable=wrong-import-position

TOOL = os.environ["ARRAY_TOOL"]
FORMATS = os.environ["FORMATS"].split()
CARDS = ["BUNIT   = 'count**2'", "QNAME   = 'intensity'", "CTYPE1  = 'DEPTH'", "CUNIT1  = 'um'", "CRPIX1  = 3.0", "CRVAL1  = 1.0D1",
         "CDELT1  = 2.5", "CTYPE2  = 'B-SCAN'", "CUNIT2  = 'pixel'", "CDELT2  = -1.0"]
AXES = [{"name": "depth", "unit": "um", "step": 2.5, "origin": 5.0},
        {"name": "b-scan", "unit": "pixel", "step": -1.0, "origin": 0.0}]
TEXTS = [extension for extension, name in (("fits", "fits"), ("tif", "tiff"), ("exr", "exr")) if name in FORMATS]


def write_fits(path, array, *cards):
    bits = {"f": -8, "i": 8, "u": 8}[array.dtype.kind] * array.dtype.itemsize
    header = ["SIMPLE  =                    T", f"BITPIX  = {bits:20d}", f"NAXIS   = {array.ndim:20d}"]
    header += [f"{'NAXIS' + str(i + 1):8s}= {n:20d}" for i, n in enumerate(reversed(array.shape))]
    header = "".join(card.ljust(80) for card in [*header, *cards, "END"])
    with open(path, "wb") as file:
        for block, fill in (header.encode("ascii"), b" "), (array.astype(array.dtype.newbyteorder(">")).tobytes(), b"\0"):
            file.write(block.ljust(-(-len(block) // 2880) * 2880, fill))
    return path


class Case(FolderCase):
    def play(self, source, target, *more):
        launch("-q", "picturesrc", f"location={self.path(source)}", "!", "picturesink", f"location={self.path(target)}", *more)
        return self.path(target)

    def convert(self, source, target):
        return gst_imaging("convert", self.path(source), self.path(target), "--json", "--overwrite")

    def fail_to_convert(self, source, target, code=4):
        done = subprocess.run([sys.executable, "-B", "-m", "gst_imaging", "convert", self.path(source), self.path(target)], text=True,
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
        return done

    def write_text(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def told(self, name):
        """What picturesrc tells of a file."""
        self.play(name, "told.npy", "sidecar=always")
        return metadata.sidecar(self.path("told.npy")).get("quantity")

    def cards(self, name):
        lines = subprocess.run([TOOL, self.path(name)], capture_output=True, text=True, check=True).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def assert_told(self, name, unit="counts^2", axes=None):
        told = self.told(name)
        self.assertIsNotNone(told, name)
        self.assertEqual((told["unit"], told["scale"], told["offset"], told["axes"]), (unit, 1, 0, axes or AXES), name)
        return told


@unittest.skipUnless("fits" in FORMATS and "json" in os.environ["FORMATS_MORE"], "built without FITS or json-glib")
class Units(Case):
    def setUp(self):
        super().setUp()
        self.array = np.arange(24, dtype="f4").reshape(2, 3, 4)
        write_fits(self.path("a.fits"), self.array[0], *CARDS)
        write_fits(self.path("cube.fits"), self.array, *CARDS)

    def test_files_play_into_files(self):
        for source in "a.fits", "cube.fits":
            for extension in [*TEXTS, "npy"]:
                if extension == "exr" and source == "cube.fits":
                    continue
                with self.subTest(source=source, extension=extension):
                    self.play(source, f"b.{extension}", "sidecar=auto" if extension == "npy" else "sidecar=none")
                    self.assertEqual(self.assert_told(f"b.{extension}")["name"], "intensity")
        cards = self.cards("b.fits")
        self.assertEqual((cards["BUNIT"], cards["CTYPE1"], float(cards["CDELT1"])), ("count**2", "DEPTH", 2.5))

    def test_words_of_fits_are_those_of_the_other_format(self):
        """Other cards stay, and the name of a .json that is not that of this file goes."""
        note = "The axes here are those of the first frame; those of each are in:"
        write_fits(self.path("a.fits"), self.array[0], *CARDS, "GAIN    = 1.5", "QELEMENT= 'octbscan'", f"QHASH   = '{'5' * 64}'",
                   f"COMMENT {note}", "COMMENT older.fits.json")
        for extension in TEXTS[1:]:
            result = json.loads(self.convert("a.fits", f"b.{extension}"))
            self.assertNotIn("lost", result)
            self.assert_told(f"b.{extension}")
            text = subprocess.run([TOOL, self.path(f"b.{extension}")], capture_output=True, text=True, check=True).stdout
            for words in "axis-0-name=depth", "unit=counts^2", "GAIN=1.5", "element=octbscan", "settings-hash=" + "5" * 64:
                self.assertIn(words, text)
            for words in "BUNIT", "CTYPE", "CDELT", "QNAME", "QHASH", "older.fits.json", note:
                self.assertNotIn(words, text, extension)
            self.assertNotIn("lost", json.loads(self.convert(f"b.{extension}", "c.fits")))
            cards = self.cards("c.fits")
            self.assertEqual((cards["BUNIT"], cards["QHASH"], cards["GAIN"]), ("count**2", "5" * 64, "1.5"))
        self.convert("a.fits", "d.npy")
        self.assertEqual(metadata.sidecar(self.path("d.npy"))["quantity"]["settings-hash"], "5" * 64)
        self.convert("a.fits", "e.fits")
        self.assertNotIn("older.fits.json", subprocess.run([TOOL, self.path("e.fits")], capture_output=True, text=True, check=True).stdout)

    def test_fits_has_the_unit_pixel(self):
        np.save(self.path("px.npy"), self.array[0])
        for unit, in_fits in ("px", "pixel"), ("px,px^2", "pixel,pixel**2"), ("px/px", "pixel/pixel"), ("npx", "npx"):
            self.write_text(self.path("px.npy.json"), json.dumps(
                {"schema": "gst-imaging-sidecar-v1", "file": "px.npy", "type": "f32", "shape": [3, 4], "first": 0, "frames": 1, "complete": True,
                 "quantity": {"name": "dx", "unit": unit, "scale": 1, "offset": 0, "axes": []}}))
            self.convert("px.npy", "px.fits")
            self.assertEqual(self.cards("px.fits")["BUNIT"], in_fits)

    def test_numbered_files(self):
        for extension in TEXTS:
            self.play("cube.fits", f"n%02d.{extension}", "sidecar=none")
            self.assert_told(f"n01.{extension}")
        self.play("cube.fits", "n%02d.npy")
        self.assert_told("n01.npy")

    def test_one_rule_for_numbers_in_names(self):
        """picturesink and convert write the same names; picturesrc and metadata find the .json of each."""
        for pattern, second in (("f%03u.npy", "f001.npy"), ("f%5u.npy", "f    1.npy"), ("f%u.npy", "f1.npy"), ("%d.npy", "1.npy"), ("a1 %2d.npy", "a1  1.npy"),
                                ("f%07d 3.npy", "f0000001 3.npy"), ("f%003d.npy", "f001.npy"), ("f%25d.npy", f"f{'1':>20}.npy"), ("100%f%d.npy", "100%f1.npy")):
            with self.subTest(pattern=pattern):
                written = []
                for write in self.play, self.convert:
                    write("cube.fits", pattern)
                    written.append(set(os.listdir(self.folder)))
                    self.assertIn(second, written[-1])
                    if pattern not in ("f%003d.npy", "f%25d.npy"):  # in another way than names are written
                        self.assert_told(second)
                    self.assertEqual(metadata.sidecar(self.path(second))["quantity"]["unit"], "counts^2")
                    for name in written[-1] - {"a.fits", "cube.fits"}:
                        os.remove(self.path(name))
                self.assertEqual(written[0] - {"told.npy", "told.npy.json"}, written[1] - {"told.npy", "told.npy.json"})
        np.save(self.path("f01.npy"), self.array[0])
        with open(self.path("f%d.npy.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-sidecar-v1", "type": "f32", "shape": [3, 4], "first": 0, "frames": 2, "complete": True,
                       "quantity": {"name": "", "unit": "mm", "scale": 1, "offset": 0, "axes": []}}, file)
        self.assertIsNone(self.told("f01.npy"))  # f%d is f1
        self.assertIsNone(metadata.sidecar(self.path("f01.npy")))
        self.assertIn("two places for a number", self.fail_to_convert("cube.fits", "f%d-%u.npy", 2).stderr)

    def test_convert(self):
        all_formats = [*TEXTS, "npy"]
        for i, first in enumerate(all_formats):
            self.convert("a.fits", f"b.{first}")
            for second in {"fits", all_formats[(i + 1) % len(all_formats)]}:
                with self.subTest(first=first, second=second):
                    self.convert(f"b.{first}", f"c.{second}")
                    self.assertEqual(self.assert_told(f"c.{second}")["name"], "intensity")
        self.assertEqual(self.cards("c.fits")["CUNIT1"], "um")

    def test_convert_to_numbered_files_and_back(self):
        for extension in [*TEXTS, "npy"]:
            self.convert("cube.fits", f"n%d.{extension}")
            self.assert_told(f"n1.{extension}")
            self.convert(f"n*.{extension}", "back.fits")
            if extension != "npy":
                self.assert_told("back.fits")
            for i in range(2):
                os.remove(self.path(f"n{i}.{extension}"))

    def test_a_folder_is_one_order_for_all_and_strangers_stay_out(self):
        os.mkdir(self.path("folder"))
        for i, name in enumerate(("B1", "a2", "a10")):  # as picturesrc plays them
            np.save(self.path(f"folder/{name}.npy"), np.full((2, 3), i, np.uint8))
        with open(self.path("folder/notes.txt"), "w", encoding="utf-8") as file:
            file.write("first light")
        self.play("folder", "played.npy")
        self.assertIn("notes.txt", self.convert("folder", "converted.npy"))
        for name in "played.npy", "converted.npy":
            self.assertEqual(np.load(self.path(name))[:, 0, 0].tolist(), [0, 1, 2])

    @unittest.skipUnless({"fits", "tiff"} <= set(FORMATS), "built without FITS or TIFF")
    def test_a_name_of_ome_gives_ome(self):
        stack = np.arange(3 * 6 * 8, dtype="u2").reshape(3, 6, 8)
        cards = [f"CTYPE{i}  = '{name}'" for i, name in enumerate("XYZ", 1)] + [f"CUNIT{i}  = 'um'" for i in (1, 2, 3)] \
            + ["CDELT1  = 0.325", "CDELT2  = 0.4", "CDELT3  = 1.5"]
        write_fits(self.path("a.fits"), stack.astype("i2"), *cards)
        self.assertNotIn("lost", json.loads(self.convert("a.fits", "a.ome.tif").splitlines()[-1]))
        xml = dict(self.cards("a.ome.tif"))["ImageDescription"]
        for words in 'SizeZ="3"', 'SizeT="1"', 'PhysicalSizeZ="1.5"', 'PlaneCount="3"', 'PhysicalSizeX="0.325':
            self.assertIn(words, xml)
        self.convert("a.ome.tif", "b.fits")
        self.assertEqual([axis["step"] for axis in self.told("b.fits")["axes"]], [0.325, 0.4, 1.5])
        np.save(self.path("plain.npy"), stack)
        self.convert("plain.npy", "plain.ome.tiff")  # without units
        self.assertIn('SizeT="3"', dict(self.cards("plain.ome.tiff"))["ImageDescription"])

    def test_files_of_other_units_are_not_one_array(self):
        """The output has one quantity, and that of the first file is wrong for the samples of the others."""
        for other, told in ("BUNIT   = 'mm'", "unit"), ("CRVAL1  = 1.5D1", "axis-0-origin is 10.0, and 5.0 in"), ("", "unit"):
            cards = [card for card in CARDS if card[:8] != other[:8]] + [other] if other else []
            write_fits(self.path("b.fits"), self.array[1], *cards)
            for target in "c.npy", "c.fits", "c%d.npy", "c%d.fits":
                done = self.fail_to_convert("?.fits", target, 3)
                self.assertIn(told, done.stderr)
                self.assertIn("b.fits", done.stderr)
                self.assertEqual("use picturesrc" in done.stderr, told != "unit", done.stderr)  # its .json has one unit
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.fits", "b.fits", "cube.fits"])
        write_fits(self.path("b.fits"), self.array[1], *CARDS)
        self.convert("?.fits", "c.npy")
        self.assert_told("c.npy")

    def test_a_damaged_number_drops_its_unit(self):
        """Without it, samples would be told in a unit that they do not have."""
        cards = ["QUNIT   = 'dB'", "QNAME   = 'level'", "QOFFSET = 0.0", *CARDS[2:6]]
        for scale, step, told in ("1E400", "2.5", (None, "depth")), ("NaN", "2.5", (None, "depth")), ("0.5", "1E400", ("dB", None)):
            write_fits(self.path("bad.fits"), self.array[0], *cards, f"QSCALE  = {scale}", f"CDELT1  = {step}")
            for convert in (lambda target: self.play("bad.fits", target), lambda target: self.convert("bad.fits", target)):
                for extension in "fits", "npy":
                    with self.subTest(scale=scale, step=step, extension=extension):
                        convert(f"c.{extension}")
                        found = self.told(f"c.{extension}") or {"unit": None, "axes": []}
                        self.assertEqual((found.get("unit"), found["axes"][0]["name"] if found["axes"] else None), told)
            done = launch("picturesrc", f"location={self.path('bad.fits')}", "!", "fakesink")
            self.assertEqual(done.count("is no finite number"), 1, done)

    def test_a_file_without_its_sidecar_loses_no_older_one_to_it(self):
        self.convert("a.fits", "b.npy")
        np.save(self.path("plain.npy"), self.array[0])
        self.convert("plain.npy", "b.npy")
        self.assertFalse(os.path.exists(self.path("b.npy.json")))

    def test_new_samples_never_have_an_older_sidecar(self):
        """Also where convert fails between two files; one that fails before the first leaves all as it was."""
        np.save(self.path("plain.npy"), self.array)
        sidecar = self.path("n%d.npy.json")
        for i, stays in (1, False), (0, True):
            self.convert("cube.fits", "n%d.npy")
            with open(sidecar, "rb") as file:
                before = file.read()
            os.remove(self.path(f"n{i}.npy"))
            os.mkdir(self.path(f"n{i}.npy"))
            self.fail_to_convert("plain.npy", "n%d.npy")
            self.assertEqual(os.path.exists(sidecar), stays, i)
            if stays:
                with open(sidecar, "rb") as file:
                    self.assertEqual(file.read(), before)
            os.rmdir(self.path(f"n{i}.npy"))

    def test_a_sidecar_that_cannot_be_removed_is_told_before_anything_is_written(self):
        self.convert("a.fits", "b.npy")
        np.save(self.path("plain.npy"), self.array[0] + 1)
        script = ("import os, sys\nfrom gst_imaging import command\n"
                  "def refuse(path, **_more):\n    raise PermissionError(1, 'Operation not permitted', path)\n"
                  "os.remove = os.unlink = refuse\nsys.exit(command.main(sys.argv[1:]))\n")
        done = subprocess.run([sys.executable, "-B", "-c", script, "convert", self.path("plain.npy"), self.path("b.npy"), "--overwrite"], text=True,
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1), done.stderr)
        self.assertIn("b.npy.json cannot be removed: Operation not permitted", done.stderr)
        np.testing.assert_array_equal(np.load(self.path("b.npy")), self.array[0])

    def test_a_sidecar_about_another_file_tells_nothing(self):
        self.play("a.fits", "b.npy")
        np.save(self.path("b.npy"), np.zeros((5, 4), "f4"))
        self.assertIsNone(self.told("b.npy"))
        self.assertIn("b.npy.json\" tells of another type or shape", launch("picturesrc", f"location={self.path('b.npy')}", "!", "fakesink"))

    def test_a_damaged_sidecar_is_named(self):
        self.play("a.fits", "b.npy", "sidecar=always")
        for text in damage_sidecar(self.path("b.npy")):
            with self.subTest(text=text):
                self.assertIn("b.npy.json", launch("picturesrc", f"location={self.path('b.npy')}", "!", "fakesink"))
                if not text.endswith("}"):
                    with self.assertRaisesRegex(ValueError, "b.npy.json is cut, empty or no JSON"):
                        metadata.sidecar(self.path("b.npy"))

    def test_frames_of_another_unit_are_not_told_in_that_of_the_first(self):
        os.mkdir(self.path("units"))
        for i, unit in enumerate(("dB", "mm", "dB")):
            write_fits(self.path(f"units/{i}.fits"), np.ones((4, 6), "f4"), f"BUNIT   = '{unit}'")
        printed = launch("picturesrc", f"location={self.path('units')}", "!", "picturesink", f"location={self.path('mixed.npy')}")
        self.assertIn("From frame 1 on the quantity or its unit is another one", printed)
        quantity = metadata.sidecar(self.path("mixed.npy"))["quantity"]
        self.assertEqual((quantity["unit"], quantity["scale"]), ("dB", [1, None, 1]))
        again = self.told("mixed.npy")
        self.assertEqual((again["unit"], again["scale"]), ("dB", [1, None, 1]))

    def test_projections_are_no_axes(self):
        write_fits(self.path("sky.fits"), self.array[0], "BUNIT   = 'adu'", "CTYPE1  = 'RA---TAN'", "CDELT1  = 0.1",
                   "CTYPE2  = 'DEC--TAN'", "CDELT2  = 0.1")
        self.assertEqual((self.told("sky.fits")["unit"], self.told("sky.fits")["axes"]), ("adu", []))
        write_fits(self.path("turned.fits"), self.array[0], *CARDS, "PC1_2   = 0.5")
        self.assertEqual(self.told("turned.fits")["axes"], [])

    def test_an_axis_without_a_step_has_a_name(self):
        """Only one axis may have one: a picture has no channels before its rows."""
        for cards, names in ((["CTYPE1  = 'COMMAND'", "CTYPE2  = 'SLOPES INTERLEAVED'"], ["command", "slopes interleaved"]),
                             (["CTYPE1  = 'COMMAND'"], ["command"]), (["CTYPE2  = 'SLOPES'", "CRVAL2  = 7.0", "CUNIT2  = 'mm'"], [None, "slopes"]),
                             (["CTYPE1  = 'RA---TAN'", "CTYPE2  = 'DEC--TAN'"], None), (["CTYPE1  = ''"], None)):
            write_fits(self.path("named.fits"), self.array[0], *cards)
            expected = names and [name and {"name": name, "unit": "", "step": 1.0, "origin": 0.0} for name in names]
            self.assertEqual((self.told("named.fits") or {}).get("axes"), expected)
            for path in ("named.npy", "again.fits") if names else ():
                self.assertNotIn("lost", json.loads(self.convert("named.fits", path)))
                self.assertEqual(self.told(path)["axes"], expected)
            if names:
                text = subprocess.run([TOOL, self.path("again.fits")], capture_output=True, text=True, check=True).stdout
                self.assertEqual(text.count("CTYPE"), len(list(filter(None, names))))

    def test_an_axis_stays_on_its_dimension(self):
        """Also where those before it are not known, as those of a projection."""
        cards = ["BUNIT   = 'adu'", "CTYPE1  = 'RA---TAN'", "CDELT1  = 0.1", "CTYPE2  = 'DEC--TAN'", "CDELT2  = 0.1",
                 "CTYPE3  = 'WAVE'", "CUNIT3  = 'nm'", "CRVAL3  = 500.0", "CDELT3  = 2.0"]
        write_fits(self.path("sky.fits"), np.zeros((2, 3, 9), "f4"), *cards)
        expected = [None, None, {"name": "wave", "unit": "nm", "step": 2.0, "origin": 500.0}]
        for write in self.convert, self.play:
            write("sky.fits", "sky.npy")
            self.assertEqual(metadata.sidecar(self.path("sky.npy"))["quantity"]["axes"], expected)
            self.assertEqual(self.told("sky.npy")["axes"], expected)
            self.convert("sky.npy", "back.fits")
            found = self.cards("back.fits")
            self.assertEqual((found.get("CTYPE1"), found["CTYPE3"], float(found["CRVAL3"])), (None, "WAVE", 500))
        self.play("sky.fits", "n%d.npy")  # which has the axes of a series
        self.assertEqual(metadata.sidecar(self.path("n1.npy"))["quantity"]["axes"], expected)

    def test_names_without_a_place_for_units_get_a_sidecar(self):
        for name in "b", "b.pfm", "c.NPY":
            self.convert("a.fits", name)
            self.assert_told(name)
        np.save(self.path("mask.npy"), self.array[0] > 3)
        with open(self.path("mask.npy.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-sidecar-v1", "file": "mask.npy", "type": "bool", "shape": [3, 4], "first": 0, "frames": 1,
                       "complete": True, "quantity": {"name": "valid", "unit": "1", "scale": 1, "offset": 0, "axes": AXES}}, file)
        self.convert("mask.npy", "mask.pbm")
        os.remove(self.path("mask.npy.json"))
        self.convert("mask.pbm", "again.pbm")
        self.assertEqual(metadata.sidecar(self.path("again.pbm"))["quantity"]["axes"], AXES)

    def test_comments_are_not_lost(self):
        write_fits(self.path("c.fits"), self.array[0], "COMMENT " + "a dark of May, cut here: " * 2 + "the shutter was open"[:20])
        self.convert("c.fits", "c.tif")
        self.assertNotIn("lost", json.loads(self.convert("c.tif", "d.fits").splitlines()[-1]))

    def test_fits_without_units_tells_nothing(self):
        write_fits(self.path("bare.fits"), self.array[0], "EXPTIME = 3.0")
        self.assertIsNone(self.told("bare.fits"))


@unittest.skipUnless("json" in os.environ["FORMATS_MORE"], "built without json-glib")
class PerFrame(Case):
    def setUp(self):
        super().setUp()
        np.save(self.path("a.npy"), np.zeros((4, 3, 5), "u1"))
        self.sidecar = {"schema": "gst-imaging-sidecar-v1", "file": "a.npy", "type": "u8", "shape": [4, 3, 5], "first": 0,
                        "frames": 4, "complete": True,
                        "quantity": {"name": "level", "unit": "dB", "scale": [[0.5, 0.25, 2], 3, 4], "offset": -10,
                                     "axes": [{"name": "depth", "unit": "um", "step": [5, 5, None, 6], "origin": 0}]}}

    def write(self, **changes):
        with open(self.path("a.npy.json"), "w", encoding="utf-8") as file:
            json.dump({**self.sidecar, **changes}, file)

    @unittest.skipUnless("fits" in FORMATS and "png" in FORMATS, "built without FITS or PNG")
    def test_one_file_of_a_series_has_its_scale_in_fits(self):
        self.write()
        self.convert("a.npy", "n%d.png")
        self.convert("n1.png", "n1.fits")
        self.assertEqual((self.cards("n1.fits")["QUNIT"], self.cards("n1.fits")["QSCALE"]), ("dB", "0.75"))

    def test_each_frame_has_its_own(self):
        self.write()
        told = self.told("a.npy")
        self.assertEqual((told["scale"], told["offset"]), ([0.5, 0.75, 3, 4], -10))
        self.assertEqual(told["axes"][0]["step"], [5, 5, None, 6])

    def test_it_goes_on_through_convert(self):
        self.write()
        for source, target in ("a.npy", "b.npy"), ("b.npy", "c.npy"):
            self.convert(source, target)
            self.assertEqual(self.told(target)["scale"], [0.5, 0.75, 3, 4])

    def test_damaged_numbers_drop_their_quantity(self):
        for damage in ({"scale": 1e400}, {"scale": {"framerate": "30/0"}}, {"scale": [{"framerate": "30/0"}]}, {"offset": "x"}):
            self.write(quantity={**self.sidecar["quantity"], "axes": [], **damage})
            with open(self.path("a.npy.json"), encoding="utf-8") as file:
                text = file.read().replace("Infinity", "1e400")
            with open(self.path("a.npy.json"), "w", encoding="utf-8") as file:
                file.write(text)
            for name in ["a.npy", "b.fits" if "fits" in TEXTS else "b.npy"]:
                if name != "a.npy":
                    self.convert("a.npy", name)
                told = self.told(name) or {}
                self.assertIsNone(told.get("unit"), (damage, name))
                if os.path.exists(self.path(f"{name}.json")) and name != "a.npy":
                    os.remove(self.path(f"{name}.json"))

    def test_numbered_files_have_what_the_stack_has(self):
        self.write()
        for extension in "png", "npy":
            self.convert("a.npy", f"s%02d.{extension}")
            told = metadata.sidecar(self.path(f"s01.{extension}"))
            self.assertEqual((told["shape"], told["quantity"]["scale"], told["quantity"]["unit"]), ([3, 5], 0.75, "dB"))
            told = self.told(f"s%02d.{extension}")
            self.assertEqual((told["scale"], told["axes"][0]["step"]), ([0.5, 0.75, 3, 4], [5, 5, None, 6]), extension)
        quantity = {**self.sidecar["quantity"], "scale": 0.5,
                    "axes": [{"name": name, "unit": "um", "step": 2, "origin": 0} for name in "xyz"]}
        self.write(quantity=quantity)
        for extension in set(TEXTS) & {"fits", "tif"}:
            self.convert("a.npy", f"s%02d.{extension}")
            told = self.told(f"s01.{extension}")
            self.assertEqual((told["unit"], told["scale"], [axis["name"] for axis in told["axes"]]), ("dB", 0.5, ["x", "y"]), extension)
            os.remove(self.path(f"s%02d.{extension}.json"))
            told = self.told(f"s01.{extension}")
            self.assertEqual((told["unit"], told["scale"], told["axes"][0]["name"]), ("dB", 0.5, "x"), extension)
        self.write(shape=[9, 3, 5])
        self.convert("a.npy", "t%02d.npy")
        self.assertIsNone(self.told("t%02d.npy"))

    @unittest.skipUnless("tiff" in FORMATS, "built without TIFF")
    def test_ome_of_frames_that_differ(self):
        """Each file has its own numbers; one file of several frames has none that are not those of all."""
        self.write()
        for source, target in ("a.npy", "s%02d.ome.tif"), ("a.npy", "one.ome.tif"):
            self.convert(source, target)
        os.remove(self.path("s%02d.ome.tif.json"))
        os.remove(self.path("one.ome.tif.json"))
        for i, scale, step in (0, 0.5, 5), (1, 0.75, 5), (3, 4, 6):
            xml = self.cards(f"s{i:02}.ome.tif")["ImageDescription"]
            self.assertIn('SizeT="1"', xml)
            told = self.told(f"s{i:02}.ome.tif")
            self.assertEqual((told["unit"], told["scale"], told["axes"][0]["step"]), ("dB", scale, step), i)
        self.assertEqual(self.told("s02.ome.tif")["axes"], [])
        self.assertIsNone(self.told("one.ome.tif"))
        self.assertNotIn("PhysicalSize", self.cards("one.ome.tif")["ImageDescription"])

    @unittest.skipUnless("tiff" in FORMATS and tifffile, "built without TIFF, or tifffile is not installed")
    def test_pages_of_channels_and_times_are_no_steps_in_depth(self):
        for shape, axes, has_z in ((3, 4, 5), "ZYX", True), ((2, 3, 4, 5), "CZYX", False), ((2, 3, 4, 5), "TZYX", False), (
                (3, 4, 5), "TYX", False), ((3, 4, 5, 3), "ZYXS", True):
            for options in ({"ome": True, "metadata": {"axes": axes, "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "µm", "PhysicalSizeZ": 2,
                                                       "PhysicalSizeZUnit": "µm"}},
                            {"imagej": True, "resolution": (2, 2), "metadata": {"axes": axes, "spacing": 2, "unit": "um"}}):
                if "imagej" in options and axes[-1] == "X":  # which has a fixed order of pages
                    options["metadata"]["axes"] = "".join(sorted(axes[:-2], key="TZC".index)) + "YX"
                    shape = shape if axes != "CZYX" else (3, 2, 4, 5)
                with self.subTest(axes=axes, kind=next(iter(options))):
                    tifffile.imwrite(self.path("p.tif"), np.zeros(shape, "u1"), photometric="rgb" if axes[-1] == "S" else "minisblack", **options)
                    lost = json.loads(self.convert("p.tif", "p.npy").splitlines()[-1]).get("lost", [])
                    told = metadata.sidecar(self.path("p.npy"))["quantity"]["axes"]
                    self.assertEqual(any(axis and axis["name"] == "z" for axis in told), has_z)
                    self.assertEqual(bool({"PhysicalSizeZ", "spacing"} & set(lost)), not has_z, lost)

    def test_several_files_are_not_told_as_the_first(self):
        """Neither those of a numbered series, nor the frames of one file."""
        self.write()
        for source in "a.np?", "n*.npy":
            done = self.fail_to_convert(source, "b.fits" if "fits" in FORMATS else "b.npy", 3)
            self.assertIn("scale is 0.75, and 0.5 in", done.stderr)
            for i in range(4):
                np.save(self.path(f"n{i}.npy"), np.zeros((3, 5), "u1"))
            with open(self.path("n%d.npy.json"), "w", encoding="utf-8") as file:
                json.dump({**self.sidecar, "file": "n%d.npy", "shape": [3, 5]}, file)
        self.assertFalse(os.path.exists(self.path("b.npy")) or os.path.exists(self.path("b.fits")))

    def test_runs_that_were_appended(self):
        quantity = {**self.sidecar["quantity"], "scale": [2, 3], "axes": []}
        self.write(quantity=quantity)
        told = self.told("a.npy")
        self.assertEqual(told["scale"][2:], [2, 3])

    def test_the_sidecar_of_a_long_recording_is_read(self):
        """In a time that does not grow as the square of its numbers"""
        self.write(pts=[1e12 + i for i in range(200000)], comment=" " * (17 << 20))
        before = time.monotonic()
        self.assertEqual(self.told("a.npy")["scale"], [0.5, 0.75, 3, 4])
        self.assertLess(time.monotonic() - before, 60)

    def test_strange_files_beside_samples_hold_nobody_up(self):
        np.save(self.path("a.npy"), np.zeros((2, 3), np.uint8))
        beside = self.path("a.npy.json")
        for make in (lambda: os.mkfifo(beside), lambda: os.symlink("/dev/zero", beside),
                     lambda: self.write_text(beside, "[" * 200000), lambda: self.write_text(beside, '{"schema": 5')):
            make()
            self.convert("a.npy", "b.npy")
            gst_imaging("verify", self.path("a.npy"), status=3)
            os.remove(beside)
        os.mkdir(self.path("out"))
        os.mkfifo(self.path("out/result.json"))
        gst_imaging("sharpen", self.path("a.npy"), "-o", self.path("out"), status=4)

    def test_a_list_of_too_many_frames_is_refused(self):
        self.assertEqual(metadata.expand([[0, 1, 3], 7]), [0, 1, 2, 7])
        for series in [[0, 1, 10 ** 11]], [{"framerate": "1/1", "first": 0, "count": 10 ** 11}]:
            with self.assertRaisesRegex(ValueError, "100000000000 frames"):
                metadata.expand(series)

    def test_what_is_no_sidecar_is_none(self):
        for text in ("", "{", "[" * 100000 + '"gst-imaging-sidecar-v1"', '"gst-imaging-sidecar-v1"', '{"schema": "gst-imaging-sidecar-v1"}',
                     json.dumps({**self.sidecar, "frames": -1}), json.dumps({**self.sidecar, "frames": 2 ** 62}),
                     json.dumps({**self.sidecar, "quantity": 3}),
                     json.dumps({**self.sidecar, "complete": False, "frames": 5, "shape": [5, *self.sidecar["shape"][1:]]}),
                     json.dumps({**self.sidecar, "quantity": {"scale": [[0, 0, 1e300]]}})):
            with open(self.path("a.npy.json"), "w", encoding="utf-8") as file:
                file.write(text)
            told = self.told("a.npy")
            self.assertTrue(not told or "unit" not in told or told["unit"] is None, (text[:80], told))


class Stacks(Case):
    """One header for frames whose samples are scaled by each frame, and whose axes may change."""

    def record(self, name, *more):
        launch("-q", "videotestsrc", "num-buffers=3", "pattern=snow", "!",
               "video/x-raw,format=GRAY16_LE,width=256,height=64,framerate=25/1", "!", "octbscan", "percent-max=99", "!",
               "video/x-raw,format=GRAY16_LE", "!", "picturesink", f"location={self.path(name)}", *more)
        return subprocess.run([TOOL, self.path(name)], capture_output=True, text=True, check=True).stdout

    def test_it_says_where_the_scale_is(self):
        for extension in "tif", "fits":
            if extension not in TEXTS:
                continue
            name = f"a.{extension}"
            told = self.record(name)
            self.assertIn("The axes here are those of the first frame; those of each are in:", told)
            self.assertIn("Scale and offset of each frame are in:", told)
            self.assertIn(f"{name}.json", told)
            self.assertEqual(metadata.sidecar(self.path(name))["quantity"]["unit"], "dB")
            told = self.record(name, "sidecar=none")
            self.assertIn("Scale and offset of the frames were not written.", " ".join(told.split()))
            self.assertNotIn(".json", told)
            self.assertIsNone(self.told(name)["unit"])  # samples of another scale


if __name__ == "__main__":
    main()
