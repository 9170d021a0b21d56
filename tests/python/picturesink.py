# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of picturesink: other programs read them with equal samples; a crash and a full disk leave all complete
frames. tools/venv installs the readers."""
import os
import subprocess
import tempfile
import time
import unittest

import numpy as np

from support import launch, main


def optional(name):
    try:
        return __import__(name, fromlist=["x"])
    except ImportError:
        return None


tifffile = optional("tifffile")
fits = optional("astropy.io.fits")
imageio = optional("imageio.v3")
OpenEXR = optional("OpenEXR")

TOOL = os.environ["ARRAY_TOOL"]
FORMATS = os.environ["FORMATS"].split()
RNG = np.random.default_rng(7)

READERS = {"npy": np.load, "tif": tifffile and tifffile.imread, "fits": fits and fits.getdata}
GROWING = [name for name, module in (("npy", np), ("tif", tifffile), ("fits", fits))
           if module and (name == "npy" or {"tif": "tiff"}.get(name, name) in FORMATS)]


def needs(format_name, module, what):
    if format_name not in FORMATS:
        return unittest.skip(f"built without {format_name}")
    return unittest.skipUnless(module, f"{what} is not installed")


def tensor(dtype, *dims):
    """Caps of a tensor, its fastest dimension last as in NumPy."""
    name = {"f": "float", "u": "uint", "i": "int"}[np.dtype(dtype).kind] + str(8 * np.dtype(dtype).itemsize)
    text = ":".join(map(str, dims[::-1]))
    return f"other/tensors,format=static,num_tensors=1,types={name},dimensions=(string){text},framerate=0/1"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, frames, caps, name, *more):
        """Plays the frames of an array into a file."""
        with open(self.path("raw"), "wb") as file:
            file.write(np.ascontiguousarray(frames).tobytes())
        launch("-q", "filesrc", f"location={self.path('raw')}", f"blocksize={frames[0].nbytes}", "!",
               caps, "!", "picturesink", f"location={self.path(name)}", *more)
        return self.path(name)

    def assert_equal(self, found, expected):
        self.assertEqual(found.dtype.newbyteorder("="), expected.dtype)
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_array_equal(found, expected)


class Readers(Case):
    def test_recordings(self):
        for extension in GROWING:
            for dtype in "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "i1":
                frames = RNG.integers(0, 255, (3, 5, 7)).astype(dtype) * np.array(-1).astype(dtype)
                path = self.record(frames, tensor(dtype, 5, 7, 1), f"a.{extension}")
                self.assert_equal(READERS[extension](path), frames)

    def test_colours_and_complex_numbers(self):
        colours = RNG.integers(0, 65536, (3, 4, 6, 4)).astype("u2")
        numbers = RNG.standard_normal((3, 4, 6, 2)).astype("f4")
        for extension in GROWING:
            path = self.record(colours, "video/x-raw,format=RGBA64_LE,width=6,height=4,framerate=0/1",
                               f"a.{extension}")
            self.assert_equal(READERS[extension](path), colours)
            path = self.record(numbers, tensor("f4", 4, 6, 2), f"b.{extension}")
            expected = numbers if extension == "fits" else numbers.view("c8")[..., 0]
            self.assert_equal(READERS[extension](path), expected)

    @needs("png", imageio, "imageio")
    def test_16_bit_png(self):
        frames = RNG.integers(0, 65536, (3, 9, 12)).astype("u2")
        self.record(frames, "video/x-raw,format=GRAY16_LE,width=12,height=9,framerate=0/1", "a%02d.png")
        for i, frame in enumerate(frames):
            self.assert_equal(imageio.imread(self.path(f"a{i:02}.png")).astype("u2"), frame)

    @needs("exr", OpenEXR, "OpenEXR")
    def test_normals_as_exr(self):
        frames = RNG.standard_normal((2, 6, 5, 3)).astype("f4")
        self.record(frames, tensor("f4", 6, 5, 3), "a%d.exr")
        for i, frame in enumerate(frames):
            with OpenEXR.File(self.path(f"a{i}.exr")) as file:
                self.assert_equal(file.channels()["RGB"].pixels, frame)

    @needs("tiff", tifffile, "tifffile")
    def test_a_stack_of_unknown_length_is_a_big_tiff(self):
        frames = RNG.integers(0, 256, (3, 4, 5)).astype("u1")
        with tifffile.TiffFile(self.record(frames, tensor("u1", 4, 5, 1), "a.tif")) as file:
            self.assertTrue(file.is_bigtiff)
        with tifffile.TiffFile(self.record(frames, tensor("u1", 4, 5, 1), "b.tif", "max-frames=3")) as file:
            self.assertFalse(file.is_bigtiff)


class Interrupted(Case):
    """All complete frames are there, and numbered from 0 on."""
    SHAPE = 37, 101

    def command(self, name):
        # each frame differs from the one before
        return ["gst-launch-1.0", "--no-fault", "-q", "videotestsrc", "pattern=ball", "!",
                "video/x-raw,format=GRAY8,width=101,height=37", "!", "picturesink", f"location={self.path(name)}"]

    def check(self, name):
        found = READERS[name.partition(".")[2]](self.path(name))
        self.assertEqual(found.shape[1:], self.SHAPE)
        self.assertGreater(len(found), 10)
        expected = self.path("expected.npy")
        launch("-q", "videotestsrc", "pattern=ball", f"num-buffers={len(found)}", "!",
               "video/x-raw,format=GRAY8,width=101,height=37", "!", "picturesink", f"location={expected}")
        np.testing.assert_array_equal(found, np.load(expected))
        done = subprocess.run([TOOL, self.path(name)], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn(str(list(found.shape)), done.stdout)
        self.assertEqual([], [entry for entry in os.listdir(self.folder) if entry.startswith(".")])
        return len(found)

    def test_crash(self):
        for extension in GROWING:
            name = f"a.{extension}"
            with subprocess.Popen(self.command(name)) as recording:
                end = time.monotonic() + 20
                while not os.path.exists(self.path(name)) and time.monotonic() < end:
                    time.sleep(0.01)
                time.sleep(0.2)
                recording.kill()
            self.check(name)

    def limit(self, name, trap):
        """A file may have 1000 KiB: as on a full disk, a write gives fewer bytes, then an error."""
        return subprocess.run(["bash", "-c", f'{trap} ulimit -f 1000; exec timeout -k 5 60 "$@"', "bash",
                               *self.command(name)], capture_output=True, text=True, check=False)

    def test_full_disk(self):
        for extension in GROWING:
            done = self.limit(f"a.{extension}", "trap '' XFSZ;")
            self.assertIn("cannot be written: File too large", done.stderr)
            n = self.check(f"a.{extension}")
            self.assertGreater(n, 900 * 1024 // (37 * 101 + (300 if extension == "tif" else 0)))

    def test_full_file_system(self):
        """A small one in memory, where this user may make one."""
        script = ('mount -t tmpfs -o size=1m tmpfs "$1" && shift && (timeout -k 5 60 "$@"; true) && '
                  'cp "${@: -1}" "$COPY"')
        for extension in GROWING:
            name = f"a.{extension}"
            target = os.path.join(self.folder, "small")
            os.makedirs(target, exist_ok=True)
            command = self.command(name)[:-1]
            done = subprocess.run(
                ["unshare", "--map-root-user", "--mount", "bash", "-c",
                 script.replace("${@: -1}", os.path.join(target, name)), "bash", target, *command,
                 f"location={os.path.join(target, name)}"],
                capture_output=True, text=True, check=False, env={**os.environ, "COPY": self.path(name)})
            if "mount" in done.stderr or "unshare" in done.stderr:
                self.skipTest(f"no file system can be made here: {done.stderr}")
            self.assertIn("No space left on device", done.stderr)
            os.rmdir(target)
            self.check(name)

    def test_many_small_frames(self):
        """100,000 of them go to a disk with room for fewer."""
        for extension in GROWING:
            path = self.path(f"a.{extension}")
            done = subprocess.run(
                ["bash", "-c", "trap '' XFSZ; ulimit -f 4000; exec timeout -k 5 60 \"$@\"", "bash", "gst-launch-1.0",
                 "-q", "videotestsrc", "pattern=black", "num-buffers=100000", "!",
                 "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink", f"location={path}"],
                capture_output=True, text=True, check=False)
            self.assertIn("cannot be written", done.stderr)
            with open(path, "rb") as file:
                size = len(file.read())
            page = {"npy": 64, "fits": 64, "tif": 64 + 400}[extension]
            self.assertGreater(len(READERS[extension](path)), (size - 8000) // page)


if __name__ == "__main__":
    main()
