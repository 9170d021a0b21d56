# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging sharpen: each kind of picture in its own format and depth, folders with damaged files, and cameras."""
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, command, main, result_of

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import library  # pylint: disable=wrong-import-position
from gst_imaging.frames import doubts  # pylint: disable=wrong-import-position

FORMATS = os.environ["FORMATS"].split() + ["npy", "pnm"]
WORDS = ("amount=1.5", "backend=cpu")


def scene(dtype, channels=0, frames=0):
    rng = np.random.default_rng(1)
    shape = (*([frames] if frames else []), 31, 61, *([channels] if channels else []))
    return rng.integers(np.iinfo(dtype).max // 8, np.iinfo(dtype).max * 7 // 8, shape).astype(dtype)


def sharpened(picture, amount):
    """By the formula: four neighbours, those outside as the border; halves round up"""
    v = np.pad(picture.astype(np.int64), ((1, 1), (1, 1)) + ((0, 0),) * (picture.ndim - 2), "edge")
    laplacian = 4 * v[1:-1, 1:-1] - v[:-2, 1:-1] - v[2:, 1:-1] - v[1:-1, :-2] - v[1:-1, 2:]
    out = picture + amount * laplacian
    return np.clip(np.floor(out + 0.5), 0, np.iinfo(picture.dtype).max).astype(picture.dtype)


def sharpened_floats(picture, amount):
    """The same, of float32, by the steps of lapsharpen"""
    p = np.pad(picture.astype("f4"), ((1, 1), (1, 1)) + ((0, 0),) * (picture.ndim - 2), "edge")
    v = p[1:-1, 1:-1]
    laplacian = 4 * v - ((p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:]))
    return v + np.float32(amount) * laplacian


class Sharpen(FolderCase):
    def call(self, *words, status=0, **environment):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        return command(self.folder, "sharpen", *words, "-o", "out", status=status, **environment)

    def save(self, name, values):
        np.save(self.path("values.npy"), values)
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        subprocess.run([os.environ["ARRAY_TOOL"], self.path("values.npy"), self.path(name)], check=True)

    def load(self, name):
        subprocess.run([os.environ["ARRAY_TOOL"], self.path(name), self.path("values.npy")], check=True)
        return np.load(self.path("values.npy"))

    def test_pictures_keep_format_depth_and_channels(self):
        for form, name in (("png", "a b.png"), ("tiff", "a.tif"), ("fits", "a.fits"), ("pnm", "a.pgm"), ("npy", "a%d.npy")):
            if form not in FORMATS:
                continue
            for dtype in "u1", "u2":
                for channels in (0, 3, 4) if form in ("png", "tiff") else (0,):
                    values = scene(dtype, channels)
                    self.save(name, values)
                    self.call(name, *WORDS)
                    found = self.load("out/" + name)
                    self.assertEqual((found.dtype, found.shape), (values.dtype, values.shape), name)
                    expected = sharpened(values, 1.5)
                    colours = slice(None) if channels != 4 else slice(0, 3)
                    if channels == 4:
                        np.testing.assert_array_equal(found[..., 3], values[..., 3])
                    np.testing.assert_array_equal(found[..., colours] if channels else found,
                                                  expected[..., colours] if channels else expected, f"{name} {dtype} {channels}")
                    self.assertTrue(os.path.exists(self.path("out/report.html")))

    def float_files(self):
        """Generates the name of a file, the type, and the shapes of a frame and of all"""
        frame = 31, 61
        for form, extension, dtypes, shapes in (("tiff", "tif", "f2 f4 f8", ((), (3,), (4,))), ("exr", "exr", "f2 f4", ((), (3,), (4,))),
                                                ("pnm", "pfm", "f4", ((), (3,))), ("npy", "npy", "f2 f4 f8", ((), (2,), (3,), (4,)))):
            for dtype in dtypes.split() if form in FORMATS else ():
                for channels in shapes:
                    yield f"{dtype}-{len(channels) and channels[0]}.{extension}", dtype, (*frame, *channels), 1
        for form, extension in ("tiff", "tif"), ("fits", "fits"), ("npy", "npy"):
            for dtype in ("f4", "f8") if form in FORMATS else ():
                yield f"{dtype}-frames.{extension}", dtype, frame, 6
        if "fits" in FORMATS:
            yield "f8.fits", "f8", frame, 1
            yield "columns.fits", "f4", (31, 4), 6  # which are no channels

    def test_floats_keep_format_depth_and_channels(self):
        rng, files = np.random.default_rng(2), {}
        for name, dtype, shape, n in self.float_files():
            files[name] = rng.normal(0, 300, (n, *shape)).astype(dtype)
            self.save("in/" + name, files[name] if n > 1 else files[name][0])
        self.call("in", *WORDS)
        for name, values in files.items():
            expected = np.stack([sharpened_floats(frame, 1.5) for frame in values]).astype(values.dtype)
            if values.ndim == 4 and values.shape[3] == 4:
                expected[..., 3] = values[..., 3]
            found = self.load("out/" + name)
            self.assertEqual(found.dtype, values.dtype, name)
            np.testing.assert_array_equal(found, expected if len(values) > 1 else expected[0], name)

    def test_float_samples_that_stay_keep_their_digits(self):
        values = 1 + np.random.default_rng(4).random((8, 9)) * 1e-9
        np.save(self.path("a.npy"), values)
        told = self.call("a.npy", "amount=2", "width=4")
        self.assertIn("Samples of float64 are sharpened as float32", told)
        np.testing.assert_array_equal(np.load(self.path("out/a.npy"))[:, 4:], values[:, 4:])
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["a.npy", "report.html", "result.json"])

    def test_floats_that_are_no_numbers_are_told(self):
        values = np.ones((8, 9, 3), "f4")
        values[3, 4, 1] = np.inf
        np.save(self.path("a.npy"), values)
        sentence, told = "4 finite samples of a.npy became NaN or infinite", self.call("a.npy", "amount=2")
        self.assertIn(sentence, told)
        self.assertNotIn("RuntimeWarning", told)
        self.assertEqual(np.isnan(np.load(self.path("out/a.npy"))).sum(), 5)
        self.assertIn(sentence, result_of(self.path("out"))["warnings"][0])

    def test_without_an_amount_samples_stay(self):
        with open(self.path("colour.ppm"), "wb") as file:
            file.write(b"P6\n1 1\n65535\n123456")
        self.call("colour.ppm", "amount=0")
        with open(self.path("out/colour.ppm"), "rb") as file:
            self.assertTrue(file.read().endswith(b"\n123456"))

    @unittest.skipUnless("tiff" in FORMATS, "built without tiff")
    def test_what_a_tiff_tells_stays(self):
        picture = np.zeros((6, 8), np.uint16)
        tags = (256, 3, 8), (257, 3, 6), (258, 3, 16), (259, 3, 1), (262, 3, 1), (273, 4, 8), (274, 3, 6), (277, 3, 1), (278, 3, 6), \
            (279, 4, 96), (296, 3, 3)
        directory = struct.pack("<H", len(tags)) + b"".join(
            struct.pack("<HHII" if kind == 4 else "<HHIHxx", tag, kind, 1, value) for tag, kind, value in tags) + bytes(4)
        with open(self.path("a.tif"), "wb") as file:
            file.write(struct.pack("<2sHI", b"II", 42, 8 + 96) + picture.tobytes() + directory)
        self.assertEqual(library.Arrays().orientation(self.path("a.tif")), 6)
        self.call("a.tif", "amount=1")
        self.assertEqual(library.Arrays().orientation(self.path("out/a.tif")), 6)
        self.assertIn("a.pgm does not carry over", self.call("a.tif", "amount=1", "--format", "pgm"))

    def test_alpha_is_not_clipped(self):
        values = scene("u2", 4)
        values[..., 3] = 65535
        self.assertEqual(doubts.clipped(np, values, 0), 0)
        values[:, :30, 1] = 65535
        self.assertAlmostEqual(doubts.clipped(np, values, 0), 100 * 30 / 61 / 3, 3)

    def test_frames_of_a_stack(self):
        for form, name in ("tiff", "a.tif"), ("fits", "a.fits"), ("npy", "a.npy"):
            if form in FORMATS:
                values = scene("u2", frames=6)
                self.save(name, values)
                self.call(name, *WORDS)
                expected = np.stack([sharpened(frame, 1.5) for frame in values])
                np.testing.assert_array_equal(self.load("out/" + name), expected, name)

    def test_bits_limit_the_result(self):
        np.save(self.path("a.npy"), scene("u2") >> 4)
        self.call("a.npy", "amount=10", "bit-depth=12")
        self.assertEqual(np.load(self.path("out/a.npy")).max(), 4095)
        result = result_of(self.path("out"))
        self.assertEqual([figure["met"] for figure in result["figures"]], [False])  # so much is clipped

    def folder_of(self, n):
        for i in range(n):
            self.save(f"in/{i}.npy", scene("u1"))
        with open(self.path("in/notes.txt"), "w", encoding="utf-8") as file:
            file.write("sunny")

    def test_a_damaged_picture_does_not_keep_the_others(self):
        self.folder_of(3)
        os.truncate(self.path("in/1.npy"), 500)
        printed = self.call("in", *WORDS, status=3)
        self.assertIn("1 of 3 pictures of in failed: in/1.npy. The other 2 are complete in ", printed)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["0.npy", "2.npy", "report.html", "result.json"])
        np.testing.assert_array_equal(np.load(self.path("out/2.npy")), sharpened(scene("u1"), 1.5))
        self.save("in/1.npy", scene("u1"))  # repaired: what is there is not taken for the whole, and is replaced by it
        command(self.folder, "sharpen", "in", *WORDS, "-o", "out")
        self.assertEqual(len(os.listdir(self.path("out"))), 5)
        self.assertIn("was complete already", command(self.folder, "sharpen", "in", *WORDS, "-o", "out"))

    def test_files_that_are_left_out_are_named(self):
        for name in "a.npy", "b.npy":
            self.save("many/" + name, scene("u1"))
        for name in "notes.txt", "more.text":
            with open(self.path("many/" + name), "w", encoding="utf-8") as file:
                file.write("mine")
        told = self.call("many", *WORDS)
        sentence = "2 of 4 files of many have no format that is read here and were left out: more.text, notes.txt."
        self.assertIn(sentence, told)
        self.assertEqual(result_of(self.path("out"))["warnings"], [sentence])

    def test_names_of_any_bytes_keep_no_other_from_it(self):
        names = [b"lat\xe4.npy", b"new\nline.npy", b"two.npy", b"q\"uote.npy", b"50%d.npy", b"tab\t.npy"]
        values = scene("u1")
        os.mkdir(self.path("many"))
        for name in names:
            with open(os.path.join(os.fsencode(self.path("many")), name), "wb") as file:
                np.save(file, values)
        self.call("many", *WORDS)
        for name in names:
            with open(os.path.join(os.fsencode(self.path("out")), name), "rb") as file:
                np.testing.assert_array_equal(np.load(file), sharpened(values, 1.5), name)
        self.assertEqual(len(os.listdir(self.path("out"))), len(names) + 2)

    def test_pictures_before_an_interruption_are_kept(self):
        self.folder_of(1)
        for i in range(1, 3000):
            os.link(self.path("in/0.npy"), self.path(f"in/{i}.npy"))
        done = subprocess.Popen(
            [sys.executable, "-B", "-m", "gst_imaging", "sharpen", "in", "-o", "out", *WORDS], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        for _ in range(TIMEOUT * 50):
            if os.path.exists(self.path(".out.gst-imaging-work/3.npy")):
                break
            time.sleep(0.02)
        done.send_signal(signal.SIGINT)
        printed = done.communicate(timeout=TIMEOUT)[0]
        self.assertEqual(done.returncode, -signal.SIGINT, printed)
        self.assertRegex(printed, r"Stopped by SIGINT\. [0-9]+ of 3000 pictures of in are complete in .*/out\.")
        made = [name for name in os.listdir(self.path("out")) if name.endswith(".npy")]
        self.assertEqual(result_of(self.path("out"))["pictures"], len(made))
        for name in made:
            np.testing.assert_array_equal(np.load(self.path("out/" + name)), sharpened(scene("u1"), 1.5))

    def test_frames_of_a_camera(self):
        if "png" not in FORMATS:
            self.skipTest("this build is without png")
        self.call("--camera", "gst:videotestsrc", "--caps", "video/x-raw,format=RGB,width=64,height=48", "--frames", "3", *WORDS)
        self.assertEqual(sorted(os.listdir(self.path("out"))), [f"frame-{i:05}.png" for i in range(3)] + ["report.html", "result.json"])
        self.assertEqual(self.load("out/frame-00002.png").shape, (48, 64, 3))

    def test_what_is_wrong_is_said_in_a_sentence(self):
        self.save("a.npy", scene("u1"))
        np.save(self.path("complex.npy"), np.zeros((4, 4), "c8"))
        np.save(self.path("float.npy"), np.zeros((4, 4), "f4"))
        os.mkdir(self.path("b"))
        shutil.copy(self.path("a.npy"), self.path("b/a.npy"))
        with open(self.path("no.png"), "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n cut off")
        os.mkfifo(self.path("pipe.png"))
        for words, status, sentence in (
                (("a.npy", "amount=11"), 2, "amount is 11, and goes from 0 to 10."), (("a.npy", "amount="), 2, "amount is empty, and goes from 0 to 10."),
                (("a.npy", "border=x"), 2, 'border is "x", and is one of '), (("a.npy", "amont=1"), 2, 'no property "amont" in element "lapsharpen"; did you mean "amount"?'),
                (("a.npy", "name=a"), 2, "name=a: the command names its elements itself."), (("absent.png",), 3, 'There is no file "absent.png".'), (("no.png",), 3, "no.png"),
                (("complex.npy",), 3, "complex.npy has samples of complex64;"), (("float.npy", "method=cas"), 1, "cas"),
                (("float.npy", "--format", "png"), 4, "f32"), ((), 2, "Give pictures or folders"), (("pipe.png",), 3, "pipe.png is no regular file"),
                (("a.npy", "--frames", "0"), 2, "--frames is 0"), (("a.npy", "--format", "jpg"), 4, "jpg"),
                (("a.npy", "b/a.npy"), 2, "Two inputs have the name a"),
                (("a.npy", "border-value=256", "border=constant"), 1, "border-value")):
            self.assertIn(sentence, self.call(*words, status=status))
            self.assertFalse(os.path.exists(self.path("out")), words)
        command(self.folder, "sharpen", "a.npy", "-o", ".", status=4)
        np.testing.assert_array_equal(np.load(self.path("a.npy")), scene("u1"))


if __name__ == "__main__":
    main()
