# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of arrays: those that other programs write are read here with equal samples, and those that are
written here are read by them. Which of them are there is printed; tools/venv installs them."""
import fcntl
import functools
import gzip
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
import zlib

import numpy as np

from support import SOURCE, TIMEOUT, Gst, command as command_in, gst_imaging, launch, main


def optional(name):
    try:
        return __import__(name, fromlist=["x"])
    except ImportError:
        return None


os.environ["OPENCV_IO_ENABLE_OPENEXR"] = "1"  # read when the module loads; imageio's EXR is OpenCV's
cv2 = optional("cv2")
gdal = optional("osgeo.gdal")
osr = optional("osgeo.osr")
tifffile = optional("tifffile")
fits = optional("astropy.io.fits")
imageio = optional("imageio.v3")
OpenEXR = optional("OpenEXR")
Image = optional("PIL.Image")

TOOL = os.environ["ARRAY_TOOL"]
FORMATS = os.environ["FORMATS"].split()
RNG = np.random.default_rng(5)

INTEGERS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]


def noise(dtype, *shape):
    """The extremes of the type are among it."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return RNG.random(shape) < 0.5
    if dtype.kind == "c":
        return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)
    if dtype.kind == "f":
        values = RNG.standard_normal(shape).astype(dtype)
        values.flat[0] = np.finfo(dtype).max
        return values
    limits = np.iinfo(dtype)
    values = RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    values.flat[:2] = limits.min, limits.max
    return values


def needs(format_name, module, what):
    if format_name not in FORMATS:
        return unittest.skip(f"built without {format_name}")
    return unittest.skipUnless(module, f"{what} is not installed")


def write_tiff(path, width, height, bits, data, more=(), order="<"):
    """By hand: one strip. @more: entries of (tag, short)"""
    entries = sorted({256: (3, width), 257: (3, height), 258: (3, bits), 259: (3, 1), 262: (3, 1), 273: (4, 8), 277: (3, 1),
                      278: (3, height), 279: (4, len(data)), **{tag: (3, value) for tag, value in more}}.items())
    directory = struct.pack(order + "H", len(entries))
    for tag, (kind, value) in entries:
        directory += struct.pack(order + ("HHIHxx" if kind == 3 else "HHII"), tag, kind, 1, value)
    data += b"\0" * (len(data) % 2)
    with open(path, "wb") as file:
        file.write(struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8 + len(data)) + data + directory
                   + struct.pack(order + "I", 0))


def write_tiff_with(path, array, tags):
    """By hand: one strip, and tags as (type, values), in order of their numbers behind all others"""
    data, size = array.tobytes(), {2: 1, 3: 2, 12: 8}
    head = [(256, 4, array.shape[1]), (257, 4, array.shape[0]), (258, 3, 8 * array.itemsize), (259, 3, 1), (262, 3, 1), (273, 4, 8),
            (277, 3, 1), (278, 4, array.shape[0]), (279, 4, len(data)), (339, 3, 3)]
    entries = [struct.pack("<HHII" if kind == 4 else "<HHIHxx", tag, kind, 1, value) for tag, kind, value in head]
    for tag, (kind, values) in tags.items():
        values = values if kind == 2 else struct.pack("<" + len(values) * ("H" if kind == 3 else "d"), *values)
        entries.append(struct.pack("<HHI", tag, kind, len(values) // size[kind])
                       + (values.ljust(4, b"\0") if len(values) <= 4 else struct.pack("<I", 8 + len(data))))
        data += values if len(values) > 4 else b""
    with open(path, "wb") as file:
        file.write(struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *words):
        return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=60, check=False)

    def convert(self, source, target):
        done = self.run_tool(source, target)
        self.assertEqual(done.returncode, 0, done.stderr)
        return target

    def load(self, path):
        """What we read of a file."""
        return np.load(self.convert(path, self.path("read.npy")))

    def save(self, array, name):
        """What we write of an array."""
        np.save(self.path("written.npy"), array)
        return self.convert(self.path("written.npy"), self.path(name))

    def refuse(self, path, words, target=None):
        done = self.run_tool(path, target or self.path("refused.npy"))
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, words)
        self.assertTrue(done.stderr.endswith(".\n"), done.stderr)
        self.assertFalse(os.path.exists(target or self.path("refused.npy")))

    def assert_equal(self, found, expected):
        self.assertEqual(found.dtype, expected.dtype)
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_array_equal(found, expected)

    def card(self, path, key):
        lines = self.run_tool(path).stdout.splitlines()
        values = [line.split("=", 1)[1] for line in lines if line.startswith(key + "=")]
        self.assertTrue(values, (key, lines))
        return values[0]


class Npy(Case):
    def test_every_type_and_order(self):
        for dtype in INTEGERS + ["f2", "f4", "f8", "c8", "c16", "?"]:
            for shape in (), (7,), (1, 3), (40, 33), (3, 5, 7), (2, 35, 3, 33), (0, 4):
                array = noise(dtype, *shape) if np.prod(shape) > 1 else np.zeros(shape, dtype)
                for order in "CF":
                    for swapped in False, True:
                        stored = np.asarray(array, order=order)
                        np.save(self.path("a.npy"), stored.astype(stored.dtype.newbyteorder(">"), order=order)
                                if swapped else stored)
                        self.assert_equal(self.load(self.path("a.npy")), array)

    def test_other_extensions_are_refused(self):
        np.save(self.path("a.npy"), np.zeros((2, 2)))
        self.refuse(self.path("a.npy"), "extension .doc", self.path("a.doc"))


@needs("png", imageio, "imageio")
class Png(Case):
    def test_both_ways(self):
        for dtype in "u1", "u2":
            for channels in (), (2,), (3,), (4,):
                array = noise(dtype, 13, 17, *channels)
                found = self.save(array, "a.png")
                self.assert_equal(self.load(found), array)
                if dtype == "u1" or channels in ((), (3,)):  # Pillow has no others of 16 bits
                    if channels != (3,) or dtype == "u1":
                        self.assert_equal(imageio.imread(found).astype(dtype), array)
                        imageio.imwrite(self.path("b.png"), array)
                        self.assert_equal(self.load(self.path("b.png")), array)

    def write(self, name, array, depth, colour=0, more=b""):
        """16-bit colours are what Pillow cannot write, nor few bits."""
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        height, width = array.shape[:2]
        bits = np.unpackbits(array.reshape(height, -1).astype(">u2").view("u1").reshape(height, -1, 2), axis=2)
        rows = np.packbits(bits[:, :, 16 - depth:].reshape(height, -1), axis=1)
        data = b"".join(b"\0" + row.tobytes() for row in rows)
        with open(self.path(name), "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
                       + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))
        return self.path(name)

    def test_colours_of_16_bits(self):
        array = noise("u2", 13, 17, 3)
        self.assert_equal(self.load(self.write("a.png", array, 16, 2)), array)

    @unittest.skipUnless(cv2, "OpenCV is not installed")
    def test_colours_of_imageio(self):
        for dtype in "u1", "u2":
            array = noise(dtype, 13, 17, 3)
            imageio.imwrite(self.path("a.png"), array, plugin="opencv")
            self.assert_equal(self.load(self.path("a.png")), array)
            found = imageio.imread(self.save(array, "b.png"), plugin="opencv", flags=cv2.IMREAD_UNCHANGED)
            self.assert_equal(found, array)

    def test_few_bits_are_not_scaled(self):
        for depth in 1, 2, 4:
            array = RNG.integers(0, 2 ** depth, (9, 11)).astype("u1")
            expected = array.astype(bool) if depth == 1 else array
            path = self.write("a.png", array, depth)
            self.assert_equal(self.load(path), expected)
            if depth > 1:
                self.assertEqual(self.card(path, "BITS"), str(depth))

    def test_masks_are_bitmaps(self):
        array = noise("?", 13, 17)
        self.assert_equal(imageio.imread(self.save(array, "a.png")) > 0, array)

    def test_wide_samples_are_written_fast(self):
        """With the filter that suits noise in the low bytes, and not with a search in each row."""
        array = noise("u2", 13, 17)
        with open(self.save(array, "a.png"), "rb") as file:
            data = file.read()
        at, packed = 8, b""
        while at < len(data):
            n, kind = struct.unpack(">I4s", data[at:at + 8])
            packed += data[at + 8:at + 8 + n] if kind == b"IDAT" else b""
            at += n + 12
        self.assertEqual(packed[1] >> 6, 0)  # zlib's fastest level
        rows = np.frombuffer(zlib.decompress(packed), "u1").reshape(13, 1 + 2 * 17)
        self.assertEqual(set(rows[:, 0]), {1})

    def test_a_palette_becomes_colours(self):
        Image.fromarray(noise("u1", 8, 8, 3)).quantize(16).save(self.path("a.png"))
        with Image.open(self.path("a.png")) as picture:
            self.assert_equal(self.load(self.path("a.png")), np.array(picture.convert("RGB")))

    def test_gamma_and_the_transparent_colour_are_told(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        for colour, clear, text in (0, [7], "7"), (2, [1, 2, 65535], "1 2 65535"):
            array = noise("u2", 5, 6, *[3][:colour])
            more = chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tRNS", struct.pack(f">{len(clear)}H", *clear))
            path = self.write("a.png", array, 16, colour, more)
            for found in path, self.convert(path, self.path("b.png")):
                self.assert_equal(self.load(found), array)
                self.assertEqual((self.card(found, "gAMA"), self.card(found, "tRNS")), ("0.45455", text))
            with open(self.path("b.png"), "rb") as file:
                self.assertIn(more, file.read())
            printed = gst_imaging("convert", path, self.path("a.pam" if colour else "a.npy"), "--json")
            self.assertEqual(json.loads(printed.splitlines()[-1])["lost"], ["gAMA", "tRNS"])

    def test_what_png_cannot_hold(self):
        np.save(self.path("a.npy"), noise("f4", 3, 3))
        self.refuse(self.path("a.npy"), "without loss: PNG takes", self.path("a.png"))


ALONE = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")}


class Stopped(Case):
    """gst-imaging convert that a signal ends, or a kill."""

    SCRIPT = """
import os, signal, sys
from gst_imaging import command, library
save, n = library.Arrays.save, []
def stop(self, array, path):
    save(self, array, path)
    n.append(path)
    if len(n) == {}:
        os.kill(os.getpid(), signal.SIGTERM)
library.Arrays.save = stop
sys.exit(command.main(["convert", *sys.argv[1:]]))"""

    def setUp(self):
        super().setUp()
        np.save(self.path("b.npy"), noise("u1", 4, 5, 6))
        with open(self.path("b.npy.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-sidecar-v1", "file": "b.npy", "type": "u8", "shape": [4, 5, 6], "first": 0, "frames": 4,
                       "complete": True, "quantity": {"name": "level", "unit": "dB", "scale": 1.0, "offset": 0.0}}, file)

    def stop(self, n, target):
        done = subprocess.run([sys.executable, "-B", "-c", self.SCRIPT.format(n), self.path("b.npy"), self.path(target)],
                              capture_output=True, text=True, timeout=TIMEOUT, check=False, env=ALONE)
        self.assertEqual(done.returncode, -signal.SIGTERM, done.stderr)
        return done.stderr

    def test_one_file_has_its_sidecar(self):
        self.assertIn(f"Stopped by SIGTERM. Complete: {self.path('c.npy')}.\n", self.stop(1, "c.npy"))
        with open(self.path("c.npy.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["file"], "c.npy")

    def test_a_series_says_what_is_there(self):
        self.assertIn(f"2 of 4 files are written, without {self.path('c%d.npy')}.json: run the command again.\n", self.stop(2, "c%d.npy"))
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith("c")), ["c0.npy", "c1.npy"])

    def test_an_older_sidecar_stays_where_nothing_was_written(self):
        gst_imaging("convert", self.path("b.npy"), self.path("c.npy"))
        before = os.stat(self.path("c.npy.json")).st_size
        np.save(self.path("large.npy"), noise("u1", 512, 512))
        limited = subprocess.run(["sh", "-c", 'ulimit -f 20; exec "$@"', "sh", sys.executable, "-B", "-m", "gst_imaging", "convert", self.path("large.npy"), self.path("c.npy"), "--overwrite"],
                                 capture_output=True, text=True, timeout=TIMEOUT, check=False, env=ALONE)
        self.assertEqual(limited.returncode, 4, limited.stderr)
        self.assertEqual(os.stat(self.path("c.npy.json")).st_size, before)

    def test_the_next_run_removes_what_a_kill_left(self):
        """But not the file of a process that writes, which holds its lock, of another host, or of another name."""
        host = f"{functools.reduce(lambda number, byte: (number * 33 + byte) % 2 ** 32, socket.gethostname().encode(), 5381):08x}"
        dead, alive, *others = [f".gst-imaging-{name}" for name in (f"{host}-abcdef", f"{host}-ghijkl", "00000000-abcdef", f"{host}-longername")]
        for name in dead, alive, *others:
            with open(self.path(name), "wb") as file:
                file.write(b"half")
        with open(self.path(alive), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.save(noise("u1", 3, 4), "c.npy")
        self.assertEqual({name for name in os.listdir(self.folder) if name.startswith(".")}, {alive, *others})


@needs("tiff", tifffile, "tifffile")
class Tiff(Case):
    def test_both_ways(self):
        for dtype in INTEGERS + ["f2", "f4", "f8", "c8", "c16", "?"]:
            for shape in (11, 13), (11, 13, 3), (5, 11, 13), (2, 11, 13, 3):
                array = noise(dtype, *shape)
                path = self.save(array, "a.tif")
                self.assert_equal(tifffile.imread(path), array)
                self.assert_equal(self.load(path), array)
                if dtype == "?" and shape != (11, 13):
                    continue  # tifffile writes single bits of one channel and page alone
                for byteorder in "<", ">":
                    tifffile.imwrite(self.path("b.tif"), array, byteorder=byteorder, bigtiff=byteorder == "<",
                                     photometric="rgb" if shape[-1] == 3 else "minisblack")
                    self.assert_equal(self.load(self.path("b.tif")), array)

    def test_tiles_planes_and_strips(self):
        array = noise("u2", 70, 90, 3)
        for options in ({"tile": (32, 48)}, {"planarconfig": "separate"}, {"rowsperstrip": 7},
                        {"tile": (32, 48), "planarconfig": "separate"}):
            stored = np.moveaxis(array, 2, 0) if "planarconfig" in options else array
            tifffile.imwrite(self.path("a.tif"), stored, photometric="rgb", **options)
            self.assert_equal(self.load(self.path("a.tif")), array)

    def test_frames_that_tifffile_wrote_as_planes(self):
        """Of three frames it makes one page, as of the planes of one picture. Its description or the photometric interpretation may tell them apart."""
        frames, stored = noise("u2", 3, 20, 30), self.path("a.tif")
        apart = {"photometric": "rgb", "planarconfig": "separate"}
        grey = {**apart, "photometric": "minisblack"}
        for options, are_frames in (
                ({**apart, "metadata": {"axes": "TYX"}}, True), ({**apart, "metadata": {"axes": "ZYX"}, "tile": (16, 16)}, True),
                ({**apart, "metadata": {"axes": "QYX"}, "rowsperstrip": 7}, True), (grey, True), ({"photometric": "minisblack"}, True),
                ({**apart, "metadata": {"axes": "CYX"}}, False), ({**apart, "metadata": {"axes": "SYX"}}, False), ({**apart, "metadata": None}, False)):
            tifffile.imwrite(stored, frames, **options)
            self.assert_equal(self.load(stored), frames if are_frames else np.moveaxis(frames, 0, 2))
            self.assertNotIn("may be", gst_imaging("info", stored), options)
        tifffile.imwrite(stored, np.stack([frames, frames + 1]), **apart, metadata={"axes": "TZYX"})
        self.assert_equal(self.load(stored), np.concatenate([frames, frames + 1]))
        tifffile.imwrite(stored, frames, **apart, metadata={"axes": "TYX"})
        gst_imaging("convert", stored, self.path("one.npy"), "--part", "2")
        self.assert_equal(np.load(self.path("one.npy")), frames[2])
        self.assertIn("has the parts 0 to 2", gst_imaging("convert", stored, self.path("two.npy"), "--part", "3", status=3))

    def test_frames_that_may_be_colours_are_told(self):
        for n in 3, 4:
            tifffile.imwrite(self.path("a.tif"), noise("u1", n, 20, 30), photometric="rgb", planarconfig="separate")
            sentence = f'a.tif" is read as a picture in colour, and may be {n} frames'
            self.assertIn(sentence, gst_imaging("info", self.path("a.tif")))
            self.assertIn(sentence, gst_imaging("convert", self.path("a.tif"), self.path("b.npy")))
            self.assertEqual(np.load(self.path("b.npy")).shape, (20, 30, n))

    def test_commands_tell_frames_that_may_be_colours(self):
        frames, told = noise("u2", 3, 128, 160), "and may be 3 frames: tifffile writes both alike"
        apart = {"photometric": "rgb", "planarconfig": "separate"}
        tifffile.imwrite(self.path("a.tif"), frames, **apart)
        tifffile.imwrite(self.path("f.tif"), frames.astype("f4"), **apart)
        tifffile.imwrite(self.path("tyx.tif"), frames, **apart, metadata={"axes": "TYX"})
        self.assertIn(told, command_in(self.folder, "sharpen", "a.tif", "-o", "sharp"))
        self.assertNotIn(told, command_in(self.folder, "sharpen", "tyx.tif", "-o", "frames"))
        self.assert_equal(np.array(self.load(self.path("frames/tyx.tif")).shape), np.array(frames.shape))
        self.assertIn(told, command_in(self.folder, "centroids", "f.tif", "-o", "spots", status=3))
        if Gst.ElementFactory.find("octbscan"):
            for words in ["a.tif"], ["calibrate", "a.tif"]:
                self.assertIn(told, command_in(self.folder, "oct", *words, "--lambda", "800", "900", "-o", "bscans", status=3))
            command_in(self.folder, "oct", "tyx.tif", "--lambda", "800", "900", "-o", "bscans")
            self.assertEqual(np.load(self.path("bscans/level.npy")).shape[::2], (3, 128))

    def test_commands_tell_pages_that_they_do_not_take(self):
        frames = noise("u2", 3, 128, 160)
        os.mkdir(self.path("photos"))
        for i in range(3):
            tifffile.imwrite(self.path(f"photos/{i}.tif"), frames, photometric="minisblack")
        with open(self.path("l.txt"), "w", encoding="ascii") as file:
            file.write("0 0.5 0.866\n0.5 0 0.866\n-0.5 0 0.866\n")
        self.assertIn("0.tif holds 3 pictures, and a photograph is one", command_in(self.folder, "photostereo", "photos", "l.txt", "-o", "out", status=3))
        if Gst.ElementFactory.find("insarxcorr") and Gst.ElementFactory.find("slcsrc"):
            printed = command_in(self.folder, "offsets", "photos/0.tif", "photos/1.tif", "-o", "offsets", "--json", status=(0, 1, 3))
            self.assertIn("0.tif holds 3 x 128 x 160 samples, and the first band of its first page alone is compared", printed)

    def test_compressions(self):
        for compression in "zlib", "lzw", "packbits", "lzma", "zstd":
            for dtype, predictor in ("u2", False), ("u2", True), ("f4", False), ("f4", True):
                if predictor and compression == "packbits":
                    continue  # refused
                array = noise(dtype, 3, 70, 90)
                try:
                    tifffile.imwrite(self.path("a.tif"), array, photometric="minisblack",
                                     compression=compression, predictor=predictor)
                except (ValueError, ImportError, KeyError):  # without imagecodecs
                    continue
                self.assert_equal(self.load(self.path("a.tif")), array)

    def test_12_bits_that_lie_together(self):
        array = RNG.integers(0, 4096, (7, 9)).astype("u2")
        bits = np.unpackbits(array.astype(">u2").view("u1").reshape(7, 9, 2), axis=2)[:, :, 4:]
        data = np.packbits(bits.reshape(7, -1), axis=1).tobytes()
        write_tiff(self.path("a.tif"), 9, 7, 12, data)
        self.assert_equal(self.load(self.path("a.tif")), array)
        self.assertEqual(self.card(self.path("a.tif"), "BITS"), "12")

    def test_pages_that_differ_are_refused(self):
        with tifffile.TiffWriter(self.path("a.tif")) as file:
            file.write(noise("u1", 4, 5))
            file.write(noise("u1", 4, 6))
        self.refuse(self.path("a.tif"), "pages that differ: page 2 is 6 x 4")

    def test_stacks_of_imagej_without_directories(self):
        for dtype, colours in ("u1", ()), ("u2", ()), ("f4", ()), ("u1", (3,)):
            array = noise(dtype, 5, 20, 30, *colours)
            tifffile.imwrite(self.path("a.tif"), array, imagej=True, truncate=True)
            self.assert_equal(self.load(self.path("a.tif")), array)
        with open(self.path("a.tif"), "r+b") as file:
            file.truncate(os.path.getsize(self.path("a.tif")) - 1800)
        os.remove(self.path("read.npy"))
        self.refuse(self.path("a.tif"), "ImageJ has written 5 pages, and it has room for 4")

    def test_volumes_are_refused(self):
        tifffile.imwrite(self.path("a.tif"), np.zeros((32, 40, 48), "u2"), tile=(16, 16, 16), volumetric=True)
        self.refuse(self.path("a.tif"), "volumes of 32 slices")

    def test_tiles_that_are_left_out_are_nodata(self):
        for dtype, nodata, tag in ("i2", -9999, "-9999"), ("f4", np.nan, "nan"), ("u1", 255, "255"), ("f8", 0, None), (
                "u8", 2 ** 64 - 2048, "18446744073709549568"):
            tiles = noise(dtype, 4, 16, 16)
            parts = (part for part in (tiles[0], None, None, tiles[3]))
            extra = [(42113, "s", 0, tag, True)] if tag else []
            tifffile.imwrite(self.path("a.tif"), parts, shape=(32, 32), dtype=dtype, tile=(16, 16), extratags=extra)
            tiles[1:3] = nodata
            self.assert_equal(self.load(self.path("a.tif")), np.block([[tiles[0], tiles[1]], [tiles[2], tiles[3]]]))

    def test_description_and_big_files(self):
        tifffile.imwrite(self.path("a.tif"), noise("u1", 4, 5), description="exposure=3 ms", metadata=None)
        self.assertEqual(self.card(self.path("a.tif"), "ImageDescription"), "exposure=3 ms")

    def test_masks_are_no_pages(self):
        array = noise("u1", 4, 5)
        with tifffile.TiffWriter(self.path("a.tif")) as file:
            file.write(array)
            file.write(noise("?", 4, 5), subfiletype=4)  # as GDAL writes the mask of a picture
        self.assert_equal(self.load(self.path("a.tif")), array)

    def test_where_0_is_white_it_stays(self):
        for dtype in "u1", "u2", "?":
            array = noise(dtype, 4, 5)
            tifffile.imwrite(self.path("a.tif"), array, photometric="miniswhite")
            self.assert_equal(self.load(self.path("a.tif")), array)
            self.assertEqual(self.card(self.path("a.tif"), "PhotometricInterpretation"), "WhiteIsZero")
            for name in "b.tif", "c.png":
                printed = gst_imaging("convert", self.path("a.tif"), self.path(name), "--json", "--overwrite")
                lost = json.loads(printed.splitlines()[-1]).get("lost", [])
                self.assertEqual("PhotometricInterpretation" in lost, name == "c.png", lost)
            with tifffile.TiffFile(self.path("b.tif")) as file:
                self.assertEqual((int(file.pages[0].photometric), "WhiteIsZero" in file.pages[0].description), (0, False))
                self.assert_equal(file.asarray(), array)

    def test_lab_is_not_written_as_rgb(self):
        array = noise("u2", 4, 5, 3)
        tifffile.imwrite(self.path("a.tif"), array, photometric="cielab")
        self.assert_equal(self.load(self.path("a.tif")), array)
        self.assertEqual(self.card(self.path("a.tif"), "PhotometricInterpretation"), "CIELab")
        gst_imaging("convert", self.path("a.tif"), self.path("b.tif"))
        with tifffile.TiffFile(self.path("b.tif")) as file:
            self.assertNotEqual(file.pages[0].photometric, tifffile.PHOTOMETRIC.RGB)
            self.assertIn("CIELab", file.pages[0].description)

    def test_a_palette_becomes_colours(self):
        for dtype, scale, kind in ("u1", 257, "u1"), ("u1", 256, "u1"), ("u1", 1, "u1"), ("u2", 257, "u1"), ("u1", None, "u2"):
            index = noise(dtype, 3, 20, 30)
            colours = RNG.integers(0, 256 if scale else 65536, (3, np.iinfo(dtype).max + 1)).astype("u2")
            tifffile.imwrite(self.path("a.tif"), index, photometric="palette", colormap=colours * np.uint16(scale or 1))
            self.assert_equal(self.load(self.path("a.tif")), np.moveaxis(colours[:, index], 0, -1).astype(kind))

    def test_inks_are_not_shown_as_colours(self):
        array = noise("u1", 20, 30, 4)
        tifffile.imwrite(self.path("a.tif"), array, photometric="separated")
        self.assertEqual(self.card(self.path("a.tif"), "PhotometricInterpretation"), "CMYK")
        for name in "a.png", "a.pam":
            self.refuse(self.path("a.tif"), "with inks", self.path(name))
        with tifffile.TiffFile(self.convert(self.path("a.tif"), self.path("b.tif"))) as file:
            self.assertEqual((int(file.pages[0].photometric), len(file.pages[0].extrasamples)), (5, 0))
            self.assert_equal(file.asarray(), array)

    @unittest.skipUnless(Image and "jpeg" in FORMATS and "png" in FORMATS, "built without JPEG or PNG, or Pillow is not installed")
    def test_inks_of_jpeg(self):
        Image.fromarray(noise("u1", 16, 16, 4), "CMYK").save(self.path("a.jpg"))
        self.assertEqual(self.card(self.path("a.jpg"), "PhotometricInterpretation"), "CMYK, 0 is all ink")
        self.refuse(self.path("a.jpg"), "with inks", self.path("a.png"))
        source = "picturesrc", "location=" + self.path("a.jpg"), "!"
        launch(*source, "other/tensors", "!", "fakesink")
        launch(*source, "video/x-raw", "!", "fakesink", status=1)
        with tifffile.TiffFile(self.convert(self.path("a.jpg"), self.path("b.tif"))) as file:  # neither as RGBA nor as inks
            self.assertEqual(int(file.pages[0].photometric), 1)


@needs("tiff", np, "NumPy")
class TiffByHand(Case):
    def test_a_predictor_that_libtiff_ignores_is_refused(self):
        array = noise("u1", 4, 5)
        rows = b"".join(bytes([len(row) - 1]) + row.tobytes() for row in array)  # PackBits: literal runs
        for order in "<", ">":
            write_tiff(self.path("a.tif"), 5, 4, 8, rows, [(259, 32773), (317, 1)], order)
            self.assert_equal(self.load(self.path("a.tif")), array)
            os.remove(self.path("read.npy"))
            write_tiff(self.path("a.tif"), 5, 4, 8, rows, [(259, 32773), (317, 2)], order)
            self.refuse(self.path("a.tif"), "PackBits with a predictor, which libtiff ignores")

    def test_complex_integers_are_complex(self):
        for parts, bits, expected in ("i2", 32, "c8"), ("i4", 64, "c16"):
            array = noise(parts, 4, 5, 2)
            for order in "<", ">":
                data = array.astype(array.dtype.newbyteorder(order)).tobytes()
                write_tiff(self.path("a.tif"), 5, 4, bits, data, [(339, 5)], order)
                self.assert_equal(self.load(self.path("a.tif")), array.astype("f8").view("c16")[:, :, 0].astype(expected))

    def test_what_libtiff_has_no_code_for_is_named(self):
        for number, name in (50002, "JPEG-XL"), (34712, "JPEG 2000"), (40000, "an unknown method"):
            write_tiff(self.path("a.tif"), 5, 4, 8, bytes(20), [(259, number)])
            self.refuse(self.path("a.tif"), f"compressed by {name} .TIFF's number {number}")

    def test_what_places_it_on_the_ground_stays(self):
        """Its tags go from file to file as they are."""
        geo = {33550: (12, [10.0, 10.5, 0]), 33922: (12, [0, 0, 0, 512345.25, 4.1e6, 0]), 34736: (12, [6378137.0, 298.257223563]),
               34735: (3, [1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32633]), 34737: (2, b"WGS 84 / UTM zone 33N|\0"),
               42112: (2, b"<GDALMetadata>\n  <Item name=\"a\">1</Item>\n</GDALMetadata>\0"), 42113: (2, b"-9999.5\0")}
        array = noise("f4", 5, 7)
        write_tiff_with(self.path("a.tif"), array, geo)
        for source, target in ("a.tif", "b.tif"), ("b.tif", "c.npy"), ("b.tif", "c.tif"):
            self.convert(self.path(source), self.path(target))
        first = self.run_tool(self.path("a.tif")).stdout
        self.assertEqual(self.run_tool(self.path("c.tif")).stdout.replace("c.tif", "a.tif"), first)
        self.assertEqual(self.card(self.path("c.tif"), "ModelTiepointTag"), "0 0 0 512345.25 4100000 0")
        self.assertEqual(self.card(self.path("c.tif"), "GDAL_NODATA"), "-9999.5")
        self.assert_equal(self.load(self.path("c.tif")), array)
        for target in "d.tif", "d.npy", "d.BTF":  # through the elements, which tell of what is lost
            printed = launch("picturesrc", f"location={self.path('a.tif')}", "!", "picturesink", f"location={self.path(target)}")
            self.assertEqual("where the picture is on a map" in printed, target == "d.npy")
        for key in "ModelPixelScaleTag", "ModelTiepointTag", "GeoKeyDirectoryTag", "GeoAsciiParamsTag":
            for target in "d.tif", "d.BTF":
                self.assertEqual(self.card(self.path(target), key), self.card(self.path("a.tif"), key), key)

    def test_tags_of_another_type_are_none(self):
        write_tiff_with(self.path("a.tif"), noise("f4", 2, 3), {33550: (3, [1, 2]), 34735: (12, [1.0]), 42113: (12, [1.0]), 34737: (12, [2.0])})
        self.assertNotIn("=", self.run_tool(self.path("a.tif")).stdout)

    @unittest.skipUnless(gdal, "GDAL is not installed")
    def test_gdal_finds_the_same_place(self):
        gdal.UseExceptions()
        array = noise("f4", 5, 7)
        dataset = gdal.GetDriverByName("GTiff").Create(self.path("a.tif"), 7, 5, 1, gdal.GDT_Float32)
        dataset.SetGeoTransform((512345.5, 10, 0, 4.1e6, 0, -20))
        srs = osr.SpatialReference()
        srs.ImportFromEPSG(32733)
        dataset.SetProjection(srs.ExportToWkt())
        dataset.GetRasterBand(1).SetNoDataValue(-9999)
        dataset.GetRasterBand(1).WriteArray(array)
        del dataset
        found = gdal.Open(self.convert(self.path("a.tif"), self.path("b.tif")))
        self.assertEqual(found.GetGeoTransform(), (512345.5, 10, 0, 4.1e6, 0, -20))
        self.assertEqual(osr.SpatialReference(found.GetProjection()).GetAuthorityCode(None), "32733")
        self.assertEqual(found.GetRasterBand(1).GetNoDataValue(), -9999)
        self.assert_equal(found.ReadAsArray(), array)

    @unittest.skipUnless(tifffile, "tifffile is not installed")
    def test_the_order_of_axes_stays(self):
        array = noise("u2", 2, 3, 4, 5, 6)
        for kind in "imagej", "ome":
            tifffile.imwrite(self.path("a.tif"), array, metadata={"axes": "TZCYX"}, **{kind: True})
            with tifffile.TiffFile(self.convert(self.path("a.tif"), self.path("b.tif"))) as file:
                self.assertEqual(file.series[0].axes, "TZCYX", kind)
                self.assert_equal(file.asarray(), array)

    @unittest.skipUnless(tifffile, "tifffile is not installed")
    def test_the_orientation_is_a_tag_again(self):
        tifffile.imwrite(self.path("a.tif"), noise("u1", 4, 5), extratags=[(274, 3, 1, 6, True)], description="x", metadata=None)
        self.assertEqual(self.card(self.path("a.tif"), "Orientation"), "6")
        with tifffile.TiffFile(self.convert(self.path("a.tif"), self.path("b.tif"))) as file:
            self.assertEqual(file.pages[0].tags["Orientation"].value, 6)
            self.assertNotIn("Orientation", file.pages[0].description)

    @unittest.skipUnless(tifffile, "tifffile is not installed")
    def test_that_of_a_large_file(self):
        for order in "<", ">":
            tifffile.imwrite(self.path("a.tif"), noise("u2", 4, 5), compression="packbits", predictor=True, bigtiff=True,
                             byteorder=order)
            self.refuse(self.path("a.tif"), "PackBits with a predictor")


@needs("tiff", gdal, "GDAL's Python module")
class GeoTiff(Case):
    TYPES = {"u1": "GDT_Byte", "u2": "GDT_UInt16", "i2": "GDT_Int16", "u4": "GDT_UInt32", "i4": "GDT_Int32", "f4": "GDT_Float32",
             "f8": "GDT_Float64", "c8": "GDT_CFloat32", "c16": "GDT_CFloat64"}

    def write(self, bands, options):
        """What GDAL writes, with a georeference."""
        gdal.UseExceptions()
        n, height, width = bands.shape
        kind = getattr(gdal, self.TYPES[bands.dtype.str[1:]])
        file = gdal.GetDriverByName("GTiff").Create(self.path("a.tif"), width, height, n, kind, options)
        file.SetGeoTransform([500000, 20, 0, 4200000, 0, -20])
        file.SetMetadataItem("look", "right")
        file.WriteRaster(0, 0, width, height, bands.tobytes())
        file.FlushCache()
        return self.path("a.tif")

    def test_both_ways(self):
        for dtype in self.TYPES:
            for n in 1, 3:
                bands = noise(dtype, n, 40, 50)
                expected = np.ascontiguousarray(np.moveaxis(bands, 0, 2)) if n > 1 else bands[0]
                for options in ["INTERLEAVE=BAND"], ["INTERLEAVE=PIXEL", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=32"], [
                        "COMPRESS=DEFLATE", "BIGTIFF=YES"], ["COMPRESS=LZW", "ENDIANNESS=BIG"]:
                    self.assert_equal(self.load(self.write(bands, options)), expected)
                file = gdal.Open(self.save(expected, "b.tif"))
                found = np.frombuffer(file.ReadRaster(), dtype).reshape(n, 40, 50)
                np.testing.assert_array_equal(found, bands)

    def test_compressed_with_a_predictor(self):
        for dtype, predictor in ("u2", 2), ("i4", 2), ("f4", 3):
            bands = noise(dtype, 1, 40, 50)
            for compression in "DEFLATE", "LZW", "ZSTD":
                path = self.write(bands, [f"COMPRESS={compression}", f"PREDICTOR={predictor}"])
                self.assert_equal(self.load(path), bands[0])


@needs("fits", fits, "astropy")
class Fits(Case):
    def test_both_ways(self):
        for dtype in INTEGERS + ["f4", "f8"]:
            for shape in (17,), (11, 13), (5, 11, 13), (2, 3, 4, 5):
                array = noise(dtype, *shape)
                path = self.save(array, "a.fits")
                with fits.open(path) as file:
                    file.verify("exception")
                    self.assert_equal(np.array(file[0].data).astype(file[0].data.dtype.newbyteorder("=")), array)
                self.assert_equal(self.load(path), array)
                fits.PrimaryHDU(array).writeto(self.path("b.fits"), overwrite=True)
                self.assert_equal(self.load(self.path("b.fits")), array)

    def test_scaled_integers_and_blanks(self):
        unit = fits.PrimaryHDU(np.array([[1, 2], [3, -99]], "i2"))
        unit.header["BSCALE"] = 0.5
        unit.header["BZERO"] = 10
        unit.header["BLANK"] = -99
        with open(self.path("a.fits"), "wb") as file:
            file.write(unit.header.tostring().encode("ascii") + np.array([1, 2, 3, -99], ">i2").tobytes().ljust(2880, b"\0"))
        np.testing.assert_array_equal(self.load(self.path("a.fits")), [[10.5, 11], [11.5, np.nan]])

    def test_extensions_and_compressed_pictures(self):
        array = noise("i2", 40, 50)
        fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(array)]).writeto(self.path("a.fits"))
        self.assert_equal(self.load(self.path("a.fits")), array)
        fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(array)]).writeto(self.path("b.fits"))
        self.assert_equal(self.load(self.path("b.fits")), array)

    def test_cards(self):
        unit = fits.PrimaryHDU(noise("u2", 4, 5))
        unit.header["EXPTIME"] = 0.25
        unit.header["OBJECT"] = "Vega's field"
        unit.header["LONGTEXT"] = "x" * 150
        unit.writeto(self.path("a.fits"))
        again = self.convert(self.path("a.fits"), self.path("b.fits"))
        header = fits.getheader(again)
        self.assertEqual((header["EXPTIME"], header["OBJECT"], header["LONGTEXT"]), (0.25, "Vega's field", "x" * 150))
        self.assert_equal(self.load(again), unit.data.astype("u2"))

    def test_names_are_names(self):
        """Not cfitsio's language of names: sections, filters, addresses."""
        array = noise("u1", 6, 7)
        for name in "a.fits[1:2,1:2]", "mem:a", "a(b.fits)", "+1", "a.fits.gz":
            path = self.save(array, "plain.fits")
            os.rename(path, self.path(name))
            self.assert_equal(self.load(self.path(name)), array)


@needs("fits", np, "NumPy")
class FitsByHand(Case):
    def write(self, name, array, *cards):
        bits = {"f": -8, "i": 8, "u": 8}[array.dtype.kind] * array.dtype.itemsize
        header = ["SIMPLE  =                    T", f"BITPIX  = {bits:20d}", f"NAXIS   = {array.ndim:20d}"]
        header += [f"{'NAXIS' + str(i + 1):8s}= {n:20d}" for i, n in enumerate(reversed(array.shape))]
        header = "".join(card.ljust(80) for card in [*header, *cards, "END"])
        data = array.astype(array.dtype.newbyteorder(">")).tobytes()
        with open(self.path(name), "wb") as file:
            for block, fill in (header.encode("ascii"), b" "), (data, b"\0"):
                file.write(block.ljust(-(-len(block) // 2880) * 2880, fill))
        return self.path(name)

    def test_floats_keep_their_bits(self):
        for dtype, tiny in ("f4", 1e-40), ("f8", 5e-310):
            array = np.array([[np.inf, -np.inf, -0.0, tiny, 1]], dtype)
            bits = "u4" if dtype == "f4" else "u8"
            self.assert_equal(self.load(self.write("a.fits", array)).view(bits), array.view(bits))
            again = self.convert(self.path("a.fits"), self.path("b.fits"))
            self.assert_equal(self.load(again).view(bits), array.view(bits))
            scaled = self.load(self.write("a.fits", array, "BSCALE  = 2.0", "BZERO   = 1.0"))
            self.assert_equal(scaled, array * np.array(2, dtype) + np.array(1, dtype))

    def test_integers_of_64_bits_are_scaled(self):
        array = np.arange(-3, 3).reshape(2, 3)
        self.assert_equal(self.load(self.write("a.fits", array, "BSCALE  = 0.5", "BZERO   = 0.25")), array * 0.5 + 0.25)
        large = array + (1 << 61)
        self.assert_equal(self.load(self.write("a.fits", large, "BSCALE  = 2.0", "BZERO   = 7.0")), large * 2 + 7)
        os.remove(self.path("read.npy"))
        self.refuse(self.write("a.fits", large, "BSCALE  = 9.0"), "64 bits that BSCALE 9 and BZERO 0 take out of")
        self.assert_equal(self.load(self.write("a.fits", array, "BSCALE  = 2.0", "BLANK   = -2")),
                          np.where(array == -2, np.nan, array * 2.0))

    def test_blank_integers_are_nan(self):
        for dtype, zero, expected in (("u1", 0, "f4"), ("i2", 0, "f4"), ("i2", 32768, "f4"), ("i2", 100, "f8"), ("i4", 0, "f8")):
            array = np.arange(6).astype(dtype).reshape(2, 3)
            path = self.write("a.fits", array, "BLANK   = 4", f"BZERO   = {zero}")
            values = np.where(array == 4, np.nan, array.astype(expected) + zero).astype(expected)
            self.assert_equal(self.load(path), values)
            self.assert_equal(self.load(self.convert(path, self.path("b.fits"))), values)

    def test_cards_of_the_file_are_not_of_its_copies(self):
        path = self.write("a.fits", np.zeros((2, 3), "i2"), "BSCALE  = 0.5", "BUNIT   = 'adu'", "HIERARCH ESO DET DIT = 1.5")
        listed = self.run_tool(path).stdout.splitlines()[3:]
        self.assertEqual(listed, ["BUNIT=adu", "ESO DET DIT=1.5"])
        self.assertEqual(self.run_tool(self.convert(path, self.path("b.fits"))).stdout.splitlines()[3:],
                         ["BUNIT=adu", "ESO DET DIT=1.5"])

    def test_comments_and_long_keys_stay(self):
        cards = ["BUNIT   = 'adu     '           / what samples are", "EXPTIME =                 2.50 / [s] exposure",
                 "FLAG    =                    T / a flag", "HIERARCH ESO DET DIT = 1.5 / [s] of one", "HIERARCH AB C = 'x y' / short",
                 "HIERARCH ESO TEL NAME = 'it''s' / name", "EMPTY   = ''                   / nothing",
                 "UNDEF   =                      / no value", "COMPLEX = (1.0, 2.0)           / a pair",
                 "COMMENT  two words", "HISTORY made", "COMMENT  again", "DATE-OBS= '2026-01-02'"]
        cards += ["LONG    = 'a long text that does not fit into a single record, and goes on &'", "CONTINUE  'in another one' / of two"]
        path = self.write("a.fits", np.zeros((2, 3), "i2"), *cards)
        for name in "b.fits", "c.fits":
            with open(self.convert(path, self.path(name)), "rb") as file:
                head = file.read(5760).decode("latin1")
            path = self.path(name)
            records = [head[i:i + 80].rstrip() for i in range(0, 5760, 80)]
            self.assertEqual(records[5:records.index("END")], ["EXTEND  =                    T", *cards])

    def test_frames_are_not_appended_to_scaled_samples(self):
        frame = np.zeros((2, 3), "f4")
        np.save(self.path("frame.npy"), frame)
        path = self.write("a.fits", frame[None], "BSCALE  = 2.0")
        self.assertIn("samples are scaled", launch("picturesrc", "location=" + self.path("frame.npy"), "!", "picturesink",
                                                   "location=" + path, "append=true", status=1))

    def test_compressed_as_a_whole(self):
        array = noise("i2", 3, 40, 50)
        self.save(array, "a.fits")
        with open(self.path("a.fits"), "rb") as file:
            data = gzip.compress(file.read())
        for name in "a.fits.gz", "b.FIT.GZ":
            self.assert_equal(self.load(self.write_bytes(name, data)), array)
        self.assert_equal(np.load(self.convert(self.write_bytes("f.fits.gz", gzip.compress(self.float_fits())), self.path("f.npy"))),
                          np.arange(6, dtype="f4").reshape(2, 3))
        os.remove(self.path("read.npy"))
        self.refuse(self.write_bytes("a.npy.gz", data), "compressed by gzip as a whole")
        self.refuse(self.write_bytes("a.fits.gz", data[:-40]), "is damaged or truncated")
        self.refuse(self.write_bytes("a.fits.gz", b"\x1f\x8b" + bytes(30)), "is damaged or truncated")
        self.refuse(self.write_bytes("a.fits.gz", gzip.compress(bytes(30 << 20))), "is damaged or truncated")

    def float_fits(self):
        self.save(np.arange(6, dtype="f4").reshape(2, 3), "f.fits")
        with open(self.path("f.fits"), "rb") as file:
            return file.read()

    def write_bytes(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def test_blank_integers_of_64_bits_are_named(self):
        """No NaN is among them, and floats do not hold them all."""
        array = np.array([[-9, 2 ** 62 + 1, 7]])
        for cards, expected, blank in ((["BLANK   = -9"], array, "-9"), (["BLANK   = -9", "BZERO   = 9223372036854775808"],
                                                                         array.astype("u8") + np.uint64(2 ** 63), str(2 ** 63 - 9))):
            path = self.write("a.fits", array, *cards)
            self.assert_equal(self.load(path), expected)
            self.assertEqual(self.card(path, "BLANK"), blank)
            self.convert(path, self.path("b.fits"))
            self.assertEqual(self.card(self.path("b.fits"), "BLANK"), blank)
            self.assert_equal(self.load(self.path("b.fits")), expected)

    def test_a_comment_has_no_value(self):
        if not tifffile or "tiff" not in FORMATS:
            self.skipTest("built without TIFF, or tifffile is not installed")
        tifffile.imwrite(self.path("a.tif"), noise("u1", 4, 5), description="Comment=dark of May\nhistory=cleaned", metadata=None)
        gst_imaging("convert", self.path("a.tif"), self.path("a.fits"))
        with open(self.path("a.fits"), "rb") as file:
            header = file.read(5760)
        self.assertIn(b"COMMENT dark of May ", header)
        self.assertIn(b"HISTORY cleaned ", header)

    @unittest.skipUnless(fits, "astropy is not installed")
    def test_compressed_pictures_of_more_dimensions(self):
        array = noise("i2", 2, 3, 40, 50)
        for values in array, array[None]:
            fits.CompImageHDU(values, compression_type="GZIP_1").writeto(self.path("a.fits"), overwrite=True)
            self.assert_equal(self.load(self.path("a.fits")), values)
        os.remove(self.path("read.npy"))
        fits.CompImageHDU(array[0, 0], compression_type="NOCOMPRESS").writeto(self.path("b.fits"))
        self.refuse(self.path("b.fits"), "compressed by NOCOMPRESS, which cfitsio")


@needs("exr", OpenEXR, "OpenEXR")
class Exr(Case):
    def channels(self, path):
        """The picture with its channels in our order."""
        with OpenEXR.File(path, separate_channels=True) as file:
            found = {name: channel.pixels for name, channel in file.channels().items()}
        names = [name for name in "RGBYA" if name in found] or sorted(found)
        return np.stack([found[name] for name in names], axis=2)

    def test_both_ways(self):
        for dtype in "f2", "f4", "u4":
            for names in "Y", "YA", "RGB", "RGBA":
                array = noise(dtype, 37, 21, len(names))
                stored = array[:, :, 0] if len(names) == 1 else array
                path = self.save(stored, "a.exr")
                self.assert_equal(self.channels(path), array)
                self.assert_equal(self.load(path), stored)
                for compression in OpenEXR.NO_COMPRESSION, OpenEXR.ZIP_COMPRESSION, OpenEXR.PIZ_COMPRESSION:
                    channels = {name: np.ascontiguousarray(array[:, :, i]) for i, name in enumerate(names)}
                    with OpenEXR.File({"compression": compression, "type": OpenEXR.scanlineimage}, channels) as file:
                        file.write(self.path("b.exr"))
                    self.assert_equal(self.load(self.path("b.exr")), stored)

    @unittest.skipUnless(imageio and cv2, "imageio or OpenCV is not installed")
    def test_those_of_imageio(self):
        for shape in (13, 17), (13, 17, 3):
            array = noise("f4", *shape)
            imageio.imwrite(self.path("a.exr"), array, plugin="opencv")
            self.assert_equal(self.load(self.path("a.exr")), array)
            found = imageio.imread(self.save(array, "b.exr"), plugin="opencv", flags=cv2.IMREAD_UNCHANGED)
            self.assert_equal(found, array)

    def test_tiles(self):
        array = noise("f4", 70, 50)
        tiles = OpenEXR.TileDescription()
        tiles.xSize, tiles.ySize = 16, 32
        header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.tiledimage, "tiles": tiles}
        with OpenEXR.File(header, {"Y": array}) as file:
            file.write(self.path("a.exr"))
        self.assert_equal(self.load(self.path("a.exr")), array)

    def test_whole_numbers_beside_floats_keep_all_digits(self):
        ids, z, half = np.array([[3031426546, 2 ** 32 - 1]], "u4"), np.array([[1.5, np.inf]], "f4"), np.array([[0.5, -2]], "f2")
        tiles = OpenEXR.TileDescription()
        tiles.xSize, tiles.ySize = 16, 16
        for more in {"type": OpenEXR.scanlineimage}, {"type": OpenEXR.tiledimage, "tiles": tiles}:
            with OpenEXR.File({"compression": OpenEXR.ZIP_COMPRESSION, **more}, {"id": ids, "Z": z, "h": half}) as file:
                file.write(self.path("a.exr"))
            self.assert_equal(self.load(self.path("a.exr")), np.stack([z, half, ids], 2, dtype="f8"))

    def test_a_compression_that_is_not_read_is_named(self):
        with OpenEXR.File({"compression": OpenEXR.DWAA_COMPRESSION, "type": OpenEXR.scanlineimage},
                          {"Y": noise("f4", 40, 50)}) as file:
            file.write(self.path("a.exr"))
        done = self.run_tool(self.path("a.exr"))
        if done.returncode:  # later versions read it
            self.assertRegex(done.stderr, r"compressed by DWAA \(OpenEXR's number 8\), which OpenEXR 3.1")
        with open(self.path("a.exr"), "rb") as file:
            head, sign, rest = file.read().partition(b"compression\0compression\0\1\0\0\0")
        for number, name in (10, "HTJ2K256"), (13, "ZSTD"), (200, "a method"):  # of versions to come
            with open(self.path("b.exr"), "wb") as file:
                file.write(head + sign + bytes([number]) + rest[1:])
            done = self.run_tool(self.path("b.exr"))
            self.assertRegex(done.stderr, rf"compressed by {name} \(OpenEXR's number {number}\)")

    def test_windows_are_named(self):
        with OpenEXR.File({"type": OpenEXR.scanlineimage, "dataWindow": (np.array([3, -2], "i4"), np.array([7, 1], "i4")),
                           "displayWindow": (np.array([0, 0], "i4"), np.array([9, 9], "i4"))}, {"Y": noise("f4", 4, 5)}) as file:
            file.write(self.path("a.exr"))
        self.assertEqual(self.card(self.path("a.exr"), "dataWindow"), "3 -2 7 1")
        self.assertEqual(self.card(self.path("a.exr"), "displayWindow"), "0 0 9 9")
        self.convert(self.path("a.exr"), self.path("b.exr"))  # at 0, 0
        self.assertNotIn("Window", self.run_tool(self.path("b.exr")).stdout)

    def test_the_aspect_of_pixels_stays(self):
        with OpenEXR.File({"type": OpenEXR.scanlineimage, "pixelAspectRatio": 1.5}, {"Y": noise("f4", 4, 5)}) as file:
            file.write(self.path("a.exr"))
        with OpenEXR.File(self.convert(self.path("a.exr"), self.path("b.exr"))) as file:
            self.assertEqual(file.header()["pixelAspectRatio"], 1.5)

    def test_parts_are_pages(self):
        arrays = noise("f4", 3, 7, 5)
        parts = [OpenEXR.Part({"type": OpenEXR.scanlineimage, "compression": OpenEXR.NO_COMPRESSION}, {"Z": a}, str(i))
                 for i, a in enumerate(arrays)]
        OpenEXR.File(parts).write(self.path("a.exr"))
        self.assert_equal(self.load(self.path("a.exr")), arrays)
        parts[1] = OpenEXR.Part({"type": OpenEXR.scanlineimage}, {"Z": arrays[1].astype("f2")}, "1")  # of another type
        OpenEXR.File(parts).write(self.path("b.exr"))
        self.assertIn("Read one of them by its number (part", launch("picturesrc", "location=" + self.path("b.exr"), "!", "fakesink", status=1))
        for part, expected in enumerate((arrays[0], arrays[1].astype("f2"), arrays[2])):
            launch("picturesrc", f"part={part}", "location=" + self.path("b.exr"), "!", "picturesink", "location=" + self.path("part.npy"))
            self.assert_equal(np.load(self.path("part.npy"))[0], expected)


@needs("jpeg", Image, "Pillow")
class Jpeg(Case):
    def test_read(self):
        y, x = np.mgrid[:40, :56]
        for mode, array in ("L", x * 4 % 256), ("RGB", np.stack([x * 4, y * 6, x + y], 2)):
            Image.fromarray(array.astype("u1"), mode).save(self.path("a.jpg"), quality=95)
            found = self.load(self.path("a.jpg"))
            with Image.open(self.path("a.jpg")) as picture:
                expected = np.array(picture)
            self.assertEqual(found.shape, expected.shape)
            self.assertLessEqual(np.abs(found.astype(int) - expected).max(), 1)

    def test_the_orientation_is_applied_and_reported(self):
        from PIL import ImageOps
        y, x = np.mgrid[:24, :40]
        for orientation in range(1, 9):
            picture = Image.fromarray((x * 5 + y).astype("u1"), "L")
            exif = picture.getexif()
            exif[0x0112] = orientation
            exif[0x010F] = "maker"
            picture.save(self.path("a.jpg"), quality=95, exif=exif)
            with Image.open(self.path("a.jpg")) as stored:
                expected = np.array(ImageOps.exif_transpose(stored))
            found = self.load(self.path("a.jpg"))
            self.assertEqual(found.shape, expected.shape)
            self.assertLessEqual(np.abs(found.astype(int) - expected).max(), 1, orientation)
            self.assertIn(f"orientation {orientation}\n", self.run_tool(self.path("a.jpg")).stdout)
            self.assertEqual(self.card(self.path("a.jpg"), "Make"), "maker")
            self.assertNotIn("Orientation=", self.run_tool(self.path("a.jpg")).stdout)

    def test_it_is_not_written(self):
        np.save(self.path("a.npy"), noise("u1", 3, 3))
        self.refuse(self.path("a.npy"), "no format that is written here", self.path("a.jpg"))


@needs("raw", tifffile, "tifffile")
class Raw(Case):
    def test_a_linear_dng(self):
        """A sensor of 2 x 2 colours, each of them even: interpolation changes nothing."""
        black, white = 256, 4095
        levels = {"R": 700, "G": 2000, "B": 1200}
        mosaic = np.empty((64, 96), "u2")
        mosaic[0::2, 0::2], mosaic[1::2, 1::2] = levels["R"], levels["B"]
        mosaic[0::2, 1::2] = mosaic[1::2, 0::2] = levels["G"]
        rational = [(1, 1)] * 9
        tags = [(33421, 3, 2, (2, 2)), (33422, 1, 4, b"\0\1\1\2"), (50706, 1, 4, b"\1\4\0\0"), (50708, 2, 0, "Test"),
                (50714, 4, 1, black), (50717, 4, 1, white),
                (50721, 10, 9, sum(((1 if i % 4 == 0 else 0, 1) for i in range(len(rational))), ()))]
        tifffile.imwrite(self.path("a.dng"), mosaic, photometric=32803, extratags=tags, metadata=None)
        found = self.load(self.path("a.dng"))
        self.assertEqual((found.dtype, found.shape), (np.dtype("u2"), (64, 96, 3)))
        middle = found[8:-8, 8:-8].reshape(-1, 3)
        self.assertTrue((middle == middle[0]).all())
        for channel, name in enumerate("RGB"):
            self.assertLessEqual(abs(int(middle[0, channel]) - (levels[name] - black) * 65535 / (white - black)), 16)

    def test_a_dump_in_the_size_of_a_photograph_is_refused(self):
        """libraw takes 640 x 480 x u16 without a header for a photograph of Kodak's C603."""
        for i, values in enumerate((np.zeros((480, 640), "u2"), noise("u2", 480, 640))):
            for name in f"{i}.raw", f"{i}.nef":
                values.tofile(self.path(name))
                self.refuse(self.path(name), "has no header that describes its samples", self.path("x.npy"))


class Pnm(Case):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def test_both_ways(self):
        for dtype in "u1", "u2":
            for channels in (), (2,), (3,), (4,):
                array = noise(dtype, 5, 7, *channels)
                self.assert_equal(self.load(self.save(array, "a.pnm")), array)
                for name, kind, n in ("a.pgm", b"P5", ()), ("a.ppm", b"P6", (3,)):
                    if channels == n:
                        self.assert_equal(self.load(self.save(array, name)), array)
                        with open(self.path(name), "rb") as file:
                            self.assertEqual(file.read(2), kind)
                        continue
                    np.save(self.path("b.npy"), array)
                    if os.path.exists(self.path(name)):
                        os.remove(self.path(name))
                    self.refuse(self.path("b.npy"), f"{name[1:]} takes", self.path(name))
                if Image and channels in ((), (3,)) and dtype == "u1":
                    Image.fromarray(array).save(self.path("b.ppm"))
                    self.assert_equal(self.load(self.path("b.ppm")), array)
                    with Image.open(self.path("a.pnm")) as picture:
                        self.assert_equal(np.array(picture), array)

    def test_a_pam_tells_what_its_channels_are(self):
        for channels, kind in (2, b"GRAYSCALE_ALPHA"), (4, b"RGB_ALPHA"):
            with open(self.save(noise("u1", 5, 7, channels), "a.pam"), "rb") as file:
                self.assertIn(b"\nTUPLTYPE " + kind + b"\nENDHDR\n", file.read())

    def test_floats(self):
        for channels in (), (3,):
            array = noise("f4", 5, 7, *channels)
            self.assert_equal(self.load(self.save(array, "a.pfm")), array)
        self.assert_equal(self.load(self.write("b.pfm", b"Pf\n2 1\n1.0\n" + np.array([1.5, -2], ">f4").tobytes())),
                          np.array([[1.5, -2]], "f4"))

    def test_bitmaps(self):
        for width in 8, 13:
            array = noise("?", 5, width)
            with open(self.save(array, "a.pbm"), "rb") as file:
                self.assertEqual(file.read(2), b"P4")
            self.assert_equal(self.load(self.path("a.pbm")), array)

    def test_text_and_comments(self):
        self.assert_equal(self.load(self.write("a.pgm", b"P2 # grey\n2 #w\n2\n4095\n0 1\n2000\n4095 ")),
                          np.array([[0, 1], [2000, 4095]], "u2"))
        self.assertEqual(self.card(self.path("a.pgm"), "MAXVAL"), "4095")
        self.assert_equal(self.load(self.write("a.pbm", b"P1 3 2 101\n0 1 0")), np.array([[0, 1, 0], [1, 0, 1]], bool))
        self.assert_equal(self.load(self.write("b.pbm", b"P4 9 1\n" + bytes([0b01010101, 0b10000000]))),
                          np.array([[1, 0, 1, 0, 1, 0, 1, 0, 0]], bool))

    def test_what_is_no_pnm(self):
        for data, words in ((b"P5\n3 3\n255\n12345678", "is truncated"), (b"P5\n3 3\n255\n1234567890", "trailing bytes"),
                            (b"P5\n-3 3\n255\n", "a number from 1"), (b"P2\n2 1\n9\n4 10", "not above the maximum"),
                            (b"P7\nWIDTH 3\nENDHDR\n", "each of WIDTH"), (b"Pf\n1 1\n0\n1234", "a scale")):
            self.refuse(self.write("a.pgm", data), words)


@unittest.skipUnless(np, "NumPy is not installed")
class Types(Case):
    """What a format takes stands once: what it offers in caps it writes, and reads back."""

    NAMES = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8", "f16": "f2", "f32": "f4",
             "f64": "f8", "bool": "?", "complex64": "c8", "complex128": "c16"}
    TENSORS = {"u1": "uint8", "i1": "int8", "u2": "uint16", "i2": "int16", "u4": "uint32", "i4": "int32", "u8": "uint64", "i8": "int64",
               "f2": "float16", "f4": "float32", "f8": "float64"}
    TAKES = {"npy": "all", "tif": "all", "fits": "u8 i8 u16 i16 u32 i32 u64 i64 f32 f64", "png": "u8 u16 bool", "exr": "f16 f32 u32",
             "pgm": "u8 u16", "pbm": "bool", "pfm": "f32"}

    def offered(self, location):
        sink = Gst.ElementFactory.make("picturesink")
        sink.set_property("location", location)
        return sink.get_static_pad("sink").query_caps(None)

    def test_offered_is_written_and_read(self):
        for extension, takes in self.TAKES.items():
            if {"tif": "tiff"}.get(extension, extension) not in FORMATS + ["npy", "pgm", "pbm", "pfm"]:
                continue
            caps = self.offered(self.path("a." + extension))
            for name, dtype in self.NAMES.items():
                array = noise(dtype, 5, 7)
                with self.subTest(extension=extension, type=name):
                    is_taken = takes == "all" or name in takes.split()
                    tensor = Gst.Caps.from_string("other/tensors,format=static,num_tensors=1,dimensions=7:5,types="
                                                  + self.TENSORS.get(dtype, "none"))
                    if dtype in self.TENSORS:
                        self.assertEqual(caps.can_intersect(tensor), is_taken)
                    if is_taken:
                        self.assert_equal(self.load(self.save(array, "a." + extension)), array)
                    else:
                        np.save(self.path("b.npy"), array)
                        self.refuse(self.path("b.npy"), "takes", self.path(f"{name}.{extension}"))


class Properties(Case):
    """What an element reads from any format gives the same results."""

    def setUp(self):
        super().setUp()
        np.save(self.path("frames.npy"), RNG.integers(100, 4000, (2, 48, 64)).astype("u2"))

    def measure(self, *words):
        launch("picturesrc", "location=" + self.path("frames.npy"), "!", "shcentroid", "name=sh", *words, "!", "fakesink",
               "sh.results", "!", "queue", "!", "text/csv", "!", "filesink", "location=" + self.path("cells.csv"))
        with open(self.path("cells.csv"), "rb") as file:
            return file.read()

    def test_dark_flat_and_map(self):
        y, x = np.mgrid[0:3, 0:4] * 15.0
        cells = np.stack([x, y, np.full_like(x, 14), np.full_like(x, 14)], axis=2).reshape(-1, 4)
        arrays = {"dark": RNG.integers(0, 90, (48, 64)).astype("u2"), "map": cells,
                  "flat": RNG.uniform(0.5, 2, (48, 64)).astype("f4")}
        expected = None
        for extensions in ({}, {"dark": "tif", "map": "tif", "flat": "tif"}, {"dark": "fits", "map": "fits", "flat": "fits"},
                           {"dark": "png", "flat": "exr"}, {"dark": "pgm", "flat": "pfm"}):
            if {"tif": "tiff"}.get(extensions.get("dark"), extensions.get("dark")) not in FORMATS + [None, "pgm"]:
                continue
            if extensions.get("flat") == "exr" and "exr" not in FORMATS:
                continue
            words = [f"{key}-location=" + self.save(array, key + "." + extensions.get(key, "npy"))
                     for key, array in arrays.items()]
            found = self.measure(*words)
            self.assertGreater(len(found.splitlines()), 2)
            expected = expected or found
            self.assertEqual(found, expected, extensions)

    def test_a_map_is_written_as_its_extension_says(self):
        y, x = np.mgrid[0:240, 0:240]
        spots = 60 * (np.hypot(x % 20 - 9.6, y % 20 - 10.3) < 3)
        np.save(self.path("frames.npy"), spots.astype("u1")[np.newaxis])
        for extension in "npy", "tif", "fits":
            if {"tif": "tiff"}.get(extension, extension) in FORMATS + ["npy"]:
                self.measure("find-grid-location=" + self.path("map." + extension))
                found = self.load(self.path("map." + extension))
                self.assertEqual(found.shape[1], 12)
                np.save(self.path("expected.npy"), found) if extension == "npy" else None
                np.testing.assert_array_equal(found, np.load(self.path("expected.npy")))


class Source(Case):
    """picturesrc plays pages and pictures."""

    def play(self, path):
        launch("picturesrc", "location=" + path, "!", "filesink", "location=" + self.path("frames.raw"))
        return np.fromfile(self.path("frames.raw"), "u1")

    def test_pages_and_pictures(self):
        for format_name, extension, dtype, shape in (
                ("npy", "npy", "u2", (3, 8, 12)), ("tiff", "tif", "u2", (3, 8, 12)), ("tiff", "tif", "u1", (3, 8, 12, 3)),
                ("fits", "fits", "u2", (3, 8, 12)), ("png", "png", "u2", (8, 12)), ("png", "png", "u1", (8, 12, 3)),
                ("png", "png", "u2", (8, 12, 4)), ("pnm", "pgm", "u2", (8, 12))):
            if format_name in FORMATS + ["npy", "pnm"]:
                array = noise(dtype, *shape)
                np.testing.assert_array_equal(
                    self.play(self.save(array, "a." + extension)), array.view("u1").ravel(), (extension, dtype, shape))

    @needs("png", np, "NumPy")
    def test_colours_of_16_bits_get_an_alpha(self):
        array = noise("u2", 8, 12, 3)
        found = self.play(self.save(array, "a.png")).view("u2").reshape(8, 12, 4)
        np.testing.assert_array_equal(found[:, :, :3], array)
        self.assertTrue((found[:, :, 3] == 65535).all())

    @needs("png", np, "NumPy")
    def test_pictures_in_the_layout_of_diligent(self):
        """A folder with 001.png and so on, of 16-bit colour, beside a mask and lights as text."""
        y, x = np.mgrid[-1:1:40j, -1:1:50j]
        normals = np.stack([x / 2, y / 2, np.ones_like(x)], axis=2) / np.sqrt(x ** 2 / 4 + y ** 2 / 4 + 1)[:, :, np.newaxis]
        angles = np.arange(12) * np.pi / 6
        lights = np.stack([np.cos(angles) / 2, np.sin(angles) / 2, np.full(12, 0.75 ** 0.5)], axis=1)
        grey = np.maximum(normals @ lights.T, 0)
        folder = self.path("bearPNG")
        os.mkdir(folder)
        np.savetxt(os.path.join(folder, "light_directions.txt"), lights)
        np.savetxt(os.path.join(folder, "light_intensities.txt"), np.full((12, 3), [0.9, 1.0, 1.1]))
        frames = (grey[..., np.newaxis] * [50000, 40000, 30000]).astype("u2").transpose(2, 0, 1, 3)
        self.save(np.ones((40, 50), "u1"), "bearPNG/mask.png")
        for i, frame in enumerate(frames):
            self.save(np.ascontiguousarray(frame), f"bearPNG/{i + 1:03}.png")
        np.save(self.path("frames.npy"), frames)
        found = []
        for location in os.path.join(folder, "???.png"), self.path("frames.npy"):
            launch("picturesrc", "location=" + location, "!", "photostereo", "normal-encoding=rgba64",
                   "lights-location=" + os.path.join(folder, "light_directions.txt"), "intensities-location="
                   + os.path.join(folder, "light_intensities.txt"), "!", "picturesink", "location=" + self.path("normals.png"))
            found.append(self.load(self.path("normals.png")))
        self.assert_equal(found[0], found[1])
        np.testing.assert_allclose((found[0][:, :, :3] - 32768.0) / 32767, normals, atol=1e-3)

    def test_fortran_order(self):
        array = noise("u2", 3, 8, 12)
        np.save(self.path("a.npy"), np.asfortranarray(array))
        np.testing.assert_array_equal(self.play(self.path("a.npy")), array.view("u1").ravel())

    def test_a_folder_and_a_pattern_are_played_in_natural_order(self):
        arrays = noise("u2", 12, 8, 12)
        folder = self.path("pictures")
        os.mkdir(folder)
        os.mkdir(os.path.join(folder, "inner"))
        for i, array in enumerate(arrays):
            os.rename(self.save(array, "a.pgm"), os.path.join(folder, f"frame{i + 1}.pgm"))
        with open(os.path.join(folder, ".hidden"), "wb"):
            pass
        np.testing.assert_array_equal(self.play(folder), arrays.view("u1").ravel())
        with open(os.path.join(folder, "note.txt"), "w", encoding="ascii") as file:
            file.write("no picture")
        np.testing.assert_array_equal(self.play(os.path.join(folder, "frame1*.pgm")), arrays[[0, 9, 10, 11]].view("u1").ravel())
        np.testing.assert_array_equal(self.play(os.path.join(folder, "frame?.*")), arrays[:9].view("u1").ravel())
        self.assertIn("fits no file", launch("picturesrc", "location=" + os.path.join(folder, "*.png"), "!", "fakesink", status=1))
        self.assertIn("there is no such folder", launch("picturesrc", "location=" + os.path.join(folder, "absent", "*.png"), "!", "fakesink", status=1))

    def test_files_of_several_pages_follow_each_other(self):
        array = noise("u2", 7, 8, 12)
        np.save(self.path("part1.npy"), array[:3])
        np.save(self.path("part2.npy"), array[3:])
        np.testing.assert_array_equal(self.play(self.path("part*.npy")), array.view("u1").ravel())

    def test_files_that_differ_are_an_error(self):
        self.save(noise("u2", 8, 12), "f1.pgm")
        self.save(noise("u2", 8, 13), "f2.pgm")
        self.assertIn("must have one type and size", launch("picturesrc", "location=" + self.path("f*.pgm"), "!", "fakesink", status=1))

    def test_a_name_that_is_there_is_no_pattern(self):
        array = noise("u2", 3, 8, 12)
        self.save(array[0], "ab.npy")
        np.save(self.path("a*.npy"), array)
        np.testing.assert_array_equal(self.play(self.path("a*.npy")), array.view("u1").ravel())

    def test_other_types_are_tensors(self):
        for dtype in ["i1", "u4", "i8", "f2", "f4", "f8", "c8", "c16"]:
            array = noise(dtype, 3, 8, 12)
            np.save(self.path("a.npy"), array)
            np.testing.assert_array_equal(self.play(self.path("a.npy")), array.view("u1").ravel())

    def test_what_picturesink_writes_of_it_is_the_same(self):
        for dtype, shape in ("f4", (3, 8, 12)), ("c8", (3, 8, 12)), ("u1", (3, 8, 12, 4)), ("f2", (3, 8, 12, 3)):
            array = noise(dtype, *shape)
            np.save(self.path("a.npy"), array)
            launch("picturesrc", "location=" + self.path("a.npy"), "!", "picturesink", "location=" + self.path("b.npy"))
            self.assert_equal(np.load(self.path("b.npy")), array)

    def test_one_picture_and_a_list(self):
        array = noise("u1", 3, 8, 12)
        names = [self.path(f"{i}.npy") for i in range(3)]
        for name, picture in zip(names, array):
            np.save(name, picture)
        launch("picturesrc", "locations=<" + ",".join([names[2], names[0]]) + ">", "!", "filesink", "location=" + self.path("frames.raw"))
        np.testing.assert_array_equal(np.fromfile(self.path("frames.raw"), "u1"), array[[2, 0]].ravel())
        os.rename(names[1], self.path("a b.npy"))
        pipeline = Gst.parse_launch("picturesrc name=source ! filesink location=" + self.path("frames.raw"))
        Gst.util_set_object_arg(pipeline.get_by_name("source"), "locations",
                                "<" + ", ".join(f'"{name}"' for name in (self.path("a b.npy"), names[2])) + ">")
        pipeline.set_state(Gst.State.PLAYING)
        message = pipeline.get_bus().timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        self.assertEqual(message.type, Gst.MessageType.EOS)
        pipeline.set_state(Gst.State.NULL)
        np.testing.assert_array_equal(np.fromfile(self.path("frames.raw"), "u1"), array[[1, 2]].ravel())
        colours = noise("u1", 8, 12, 3)
        np.save(self.path("colours.npy"), colours)
        np.testing.assert_array_equal(self.play(self.path("colours.npy")), colours.ravel())


class Npz(Case):
    """A ZIP of numpy: one array, or one of several by its number."""

    def setUp(self):
        super().setUp()
        if "thorlabs" not in FORMATS:
            self.skipTest("built without minizip")

    def test_one_array(self):
        for save in np.savez, np.savez_compressed:
            for array in noise("f4", 5, 7), noise("f8", 2, 3, 4), np.asfortranarray(noise("u2", 4, 6)), noise("c8", 9):
                save(self.path("a.npz"), array)
                self.assert_equal(self.load(self.path("a.npz")), array)

    def test_one_of_several(self):
        arrays = {"slopes": noise("f4", 3, 4), "commands": noise("f8", 6)}
        np.savez(self.path("a.npz"), **arrays)
        self.refuse(self.path("a.npz"), r"has 2 arrays \(0: commands, 1: slopes\)\. Make a file of one of them with `gst-imaging convert")
        for part, name in enumerate(sorted(arrays)):
            command_in(self.folder, "convert", "a.npz", "b.npy", f"--part={part}", "--overwrite")
            self.assert_equal(np.load(self.path("b.npy")), arrays[name])
        self.assertIn("has the parts 0 to 1", command_in(self.folder, "convert", "a.npz", "c.npy", "--part=2", status=3))

    def test_what_is_no_array(self):
        with zipfile.ZipFile(self.path("a.npz"), "w") as archive:
            archive.writestr("a.txt", "text")
        self.refuse(self.path("a.npz"), "is a ZIP without an array")
        np.savez(self.path("a.npz"), np.array(["text"]))
        self.refuse(self.path("a.npz"), 'a.npz: arr_0.npy" holds text')


class Damaged(Case):
    """Cut anywhere, or with a byte changed, a file is an array or a sentence, never the end of the process."""

    def sources(self):
        array = noise("u2", 16, 16)
        if "thorlabs" in FORMATS:
            np.savez_compressed(self.path("a.npz"), array)
            yield self.path("a.npz")
        for format_name, name, values in (("png", "a.png", array), ("tiff", "a.tif", noise("u2", 3, 16, 16)),
                                          ("fits", "a.fits", array), ("exr", "a.exr", noise("f4", 16, 16)),
                                          ("pnm", "a.pgm", array)):
            if format_name in FORMATS + ["pnm"]:
                yield self.save(values, name)
        if "jpeg" in FORMATS and Image:
            Image.fromarray(noise("u1", 16, 16)).save(self.path("a.jpg"))
            yield self.path("a.jpg")

    def test_damaged_files(self):
        for path in list(self.sources()):
            with open(path, "rb") as file:
                whole = file.read()
            for i in range(24):
                if i < 8:
                    data = whole[:max(len(whole) * i // 8, 1)]
                else:
                    data = bytearray(whole)
                    data[RNG.integers(min(len(data), 400))] ^= 1 << int(RNG.integers(8))
                with open(path, "wb") as file:
                    file.write(data)
                done = self.run_tool(path, self.path("b.npy"))
                self.assertIn(done.returncode, (0, 1), (path, i, done))
                if done.returncode == 1:
                    self.assertRegex(done.stderr, r'^".*\.\n$')
                elif i < 8:
                    self.assertNotIn(path[-4:], (".png", ".pgm", ".jpg", ".exr"), (path, i))

    def test_without_the_module(self):
        """.npy and PNM are read; the others end in a sentence."""
        common = os.path.join(os.path.dirname(TOOL), "..", "..", "common")
        for name in os.listdir(common):
            if name.startswith("libgstimaging-1.0.so.0") and os.path.isfile(os.path.join(common, name)):
                shutil.copy(os.path.join(common, name), self.path(name))
        kernels = os.path.join(common, "..", "kernels")
        alone = {**os.environ, "LD_LIBRARY_PATH": self.folder + ":" + kernels}
        for content, words in (b"\x89PNG\r\n\x1a\n", "is PNG, and the module of formats is not there"), (b"P5\n1 1\n255\n1", ""):
            with open(self.path("a"), "wb") as file:
                file.write(content)
            done = subprocess.run([TOOL, self.path("a")], capture_output=True, text=True, timeout=60, check=False, env=alone)
            self.assertEqual(done.returncode, 1 if words else 0, done)
            self.assertIn(words, done.stderr)

    def test_what_is_no_picture(self):
        for data, words in ((b"", "is empty"), (b"hello, world", 'starts with "hello, w"'), (b"\x89PNG\r\n\x1a\n", "damaged")):
            if data[:1] == b"\x89" and "png" not in FORMATS:
                continue
            with open(self.path("a"), "wb") as file:
                file.write(data)
            self.refuse(self.path("a"), words)
        for data, words in ((b"MATLAB 5.0 MAT-file, Platform: GLNXA64", r"scipy\.io\.loadmat \(FILE\)\[NAME\]"),
                            (b"MATLAB 7.3 MAT-file", r"\[NAME\]\[\(\)\]\.T"),
                            (b"\x89HDF\r\n\x1a\n\0\0", "is HDF5, which is not read. Save the array as .npy: numpy.save")):
            with open(self.path("a.mat"), "wb") as file:
                file.write(data)
            self.refuse(self.path("a.mat"), words)
        self.refuse(self.folder, "is a folder")
        self.refuse(self.path("missing.png"), "There is no file")


if __name__ == "__main__":
    main()
