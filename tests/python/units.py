# SPDX-License-Identifier: LGPL-2.1-or-later
"""Units, axes and comments travel with the samples: from any file into any other, through picturesrc and picturesink and with
gst-imaging convert."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, gst_imaging, launch, main

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


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def play(self, source, target, *more):
        launch("-q", "picturesrc", f"location={self.path(source)}", "!", "picturesink", f"location={self.path(target)}", *more)
        return self.path(target)

    def convert(self, source, target):
        return gst_imaging("convert", self.path(source), self.path(target), "--json")

    def fail_to_convert(self, source, target):
        done = subprocess.run([sys.executable, "-B", "-m", "gst_imaging", "convert", self.path(source), self.path(target)], text=True,
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1), done.stderr)

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

    def test_numbered_files(self):
        for extension in TEXTS:
            self.play("cube.fits", f"n%02d.{extension}", "sidecar=none")
            self.assert_told(f"n01.{extension}")
        self.play("cube.fits", "n%02d.npy")
        self.assert_told("n01.npy")

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
        done = subprocess.run([sys.executable, "-B", "-c", script, "convert", self.path("plain.npy"), self.path("b.npy")], text=True,
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1), done.stderr)
        self.assertIn("b.npy.json cannot be removed: Operation not permitted", done.stderr)
        np.testing.assert_array_equal(np.load(self.path("b.npy")), self.array[0])

    def test_a_sidecar_about_another_file_tells_nothing(self):
        self.play("a.fits", "b.npy")
        np.save(self.path("b.npy"), np.zeros((5, 4), "f4"))
        self.assertIsNone(self.told("b.npy"))

    def test_projections_are_no_axes(self):
        write_fits(self.path("sky.fits"), self.array[0], "BUNIT   = 'adu'", "CTYPE1  = 'RA---TAN'", "CDELT1  = 0.1",
                   "CTYPE2  = 'DEC--TAN'", "CDELT2  = 0.1")
        self.assertEqual((self.told("sky.fits")["unit"], self.told("sky.fits")["axes"]), ("adu", []))
        write_fits(self.path("turned.fits"), self.array[0], *CARDS, "PC1_2   = 0.5")
        self.assertEqual(self.told("turned.fits")["axes"], [])

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

    def test_each_frame_has_its_own(self):
        self.write()
        told = self.told("a.npy")
        self.assertEqual((told["scale"], told["offset"]), ([0.5, 0.75, 3, 4], -10))
        self.assertEqual(told["axes"][0]["step"], [5, 5, None, 6])

    def test_it_goes_on_through_convert(self):
        self.write()
        for source, target in ("a.npy", "b.npy"), ("b.npy", "b.npy"):
            self.convert(source, target)
            self.assertEqual(self.told("b.npy")["scale"], [0.5, 0.75, 3, 4])

    def test_runs_that_were_appended(self):
        quantity = {**self.sidecar["quantity"], "scale": [2, 3], "axes": []}
        self.write(quantity=quantity)
        told = self.told("a.npy")
        self.assertEqual(told["scale"][2:], [2, 3])

    def test_what_is_no_sidecar_is_none(self):
        for text in ("", "{", "[" * 100000 + '"gst-imaging-sidecar-v1"', '"gst-imaging-sidecar-v1"', '{"schema": "gst-imaging-sidecar-v1"}',
                     json.dumps({**self.sidecar, "frames": -1}), json.dumps({**self.sidecar, "frames": 2 ** 62}),
                     json.dumps({**self.sidecar, "quantity": 3}), json.dumps({**self.sidecar, "complete": False}),
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
            self.assertIn("Axes are those of the first frame, of all in:", told)
            self.assertIn("Scale and offset of each frame are in:", told)
            self.assertIn(f"{name}.json", told)
            self.assertEqual(metadata.sidecar(self.path(name))["quantity"]["unit"], "dB")
            told = self.record(name, "sidecar=none")
            self.assertIn("Scale and offset of the frames were not written.", " ".join(told.split()))
            self.assertNotIn(".json", told)
            self.assertIsNone(self.told(name)["unit"])  # samples of another scale


if __name__ == "__main__":
    main()
