# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of picturesink: other programs read them with equal samples; a crash and a full disk leave all complete
frames. tools/venv installs the readers."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

from support import Gst, SOURCE, launch, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata  # pylint: disable=wrong-import-position


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

    def sizes(self, name, frames, caps, levels):
        """Returns: bytes of the file at each level. All of them have the same samples."""
        found = []
        for level in levels:
            path = self.record(frames, caps, name, f"compression-level={level}")
            found.append(os.path.getsize(path))
            launch("picturesrc", "location=" + path, "!", "filesink", "location=" + self.path("again"))
            with open(self.path("again"), "rb") as file:
                self.assertEqual(file.read(), frames.tobytes())
        return found

    def test_compression_levels(self):
        y, x = np.mgrid[:200, :300]
        if "png" in FORMATS:
            for dtype, form in ("u1", "GRAY8"), ("u2", "GRAY16_LE"):
                frames = (x * y // 50 % 251)[np.newaxis].astype(dtype)
                none, usual, fast, best = self.sizes("a.png", frames, f"video/x-raw,format={form},width=300,height=200,framerate=0/1", (0, -1, 1, 9))
                self.assertGreater(none, frames.nbytes)
                self.assertGreater(fast, best)
                self.assertEqual(usual if dtype == "u2" else max(usual, best), fast if dtype == "u2" else usual)
        if "exr" in FORMATS:
            frames = (x * y // 50 % 251)[np.newaxis].astype("f4")
            none, fast, usual, best = self.sizes("a.exr", frames, tensor("f4", 200, 300, 1), (0, 1, -1, 9))
            self.assertGreater(fast, best)
            self.assertGreater(none, usual)

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


class Rivals(Case):
    """A sink refuses a file that another element of its pipeline uses, before anything is lost."""

    def refused(self, *words):
        before = {name: pathlib.Path(self.path(name)).read_bytes() for name in os.listdir(self.folder)}
        text = launch(*words, status=1)
        self.assertEqual({name: pathlib.Path(self.path(name)).read_bytes() for name in os.listdir(self.folder)}, before)
        return text

    def test_two_sinks(self):
        for name in "a.npy", "f%02d.pgm":
            for other in name, f"../{os.path.basename(self.folder)}/{name}":
                text = self.refused("videotestsrc", "num-buffers=3", "!", "tee", "name=t", "t.", "!", "queue", "!",
                                    "picturesink", "location=" + self.path(name), "t.", "!", "queue", "!", "picturesink",
                                    "name=other", "location=" + self.path(other))
                self.assertRegex(text, "is the location of (other|picturesink0), too")

    def test_the_file_of_its_source(self):
        for i in range(3):
            with open(self.path(f"f{i:02}.pgm"), "wb") as file:
                file.write(b"P5 3 2 255\n" + bytes([i] * 6))
        os.symlink("f01.pgm", self.path("link.pgm"))
        for source, sink, *more in (
                ("f01.pgm", "f01.pgm"), ("f01.pgm", "link.pgm"), ("", "f%02d.pgm"), ("*.pgm", "f01.pgm"),
                ("f%02d.pgm", "f%02d.pgm")):
            text = self.refused("picturesrc", "location=" + self.path(source), "!", "picturesink", "location=" + self.path(sink), *more)
            self.assertIn("is read by picturesrc0 and would be replaced", text)
        np.save(self.path("a.npy"), np.zeros((2, 3, 4), "u1"))
        text = self.refused("picturesrc", f"locations=<{self.path('a.npy')}>", "!", "picturesink", "location=" + self.path("a.npy"), "append=true")
        self.assertIn("would be continued with what is made of it", text)
        os.remove(self.path("link.pgm"))
        for other in "g%02d.pgm", "f%03d.pgm":
            launch("picturesrc", "location=" + self.path("f??.pgm"), "!", "picturesink", "location=" + self.path(other))


class Sidecar(Case):
    def test_a_file_that_is_replaced_is_named(self):
        for _run in range(2):
            text = launch("videotestsrc", "num-buffers=2", "!", "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink",
                          "location=" + self.path("old.npy"))
        self.assertIn('old.npy" replaces a file of this name', text)

    def play(self, pipeline, name, *more):
        launch("-q", *pipeline.split(), "!", "picturesink", f"location={self.path(name)}", *more)
        return metadata.sidecar(self.path(name))

    def test_it_is_written_where_there_is_something_to_tell(self):
        plain = "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=32,height=8"
        sharp = plain + " ! lapsharpen amount=2"
        self.assertIsNone(self.play(plain, "a.npy"))
        self.assertIsNone(self.play(sharp, "b.npy", "sidecar=none"))
        self.assertEqual(self.play(plain, "c.npy", "sidecar=always")["frames"], 3)
        told = self.play(sharp, "d.npy")
        self.assertEqual((told["file"], told["type"], told["shape"], told["complete"]),
                         ("d.npy", "u8", [3, 8, 32], True))
        self.assertEqual([e["element"] for e in told["elements"]],
                         ["videotestsrc", "capsfilter", "lapsharpen", "picturesink"])
        self.assertEqual(told["elements"][2]["settings"], {"amount": "2"})
        # a file that replaces it does not keep what was told of the other
        self.assertIsNone(self.play(plain, "d.npy"))

    def test_a_file_of_somebody_else_stays(self):
        path = os.path.join(self.folder, "y.npy")
        with open(f"{path}.json", "w", encoding="utf-8") as file:
            file.write('{"mine": 1}')
        text = launch("videotestsrc", "num-buffers=3", "!", "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink",
                      f"location={path}", "sidecar=always")
        self.assertEqual(text.count("was not written by gst-imaging"), 1, text)
        self.assertEqual(len(np.load(path)), 3)
        with open(f"{path}.json", encoding="utf-8") as file:
            self.assertEqual(file.read(), '{"mine": 1}')

    def test_the_sidecar_of_a_long_recording_is_replaced_and_continued(self):
        """Its series make it longer than other texts may be."""
        sharp = "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=32,height=8 ! lapsharpen"
        for more, previous in ("append=true", 17 << 20), ("append=false", None):
            self.play(sharp, "a.npy")
            with open(self.path("a.npy.json"), "r+", encoding="utf-8") as file:
                told = json.load(file)
                file.seek(0)
                json.dump({**told, "comment": " " * (17 << 20)}, file)
            told = self.play(sharp, "a.npy", more)
            self.assertEqual(told["frames"], 6 if previous else 3)
            self.assertEqual(len(told["previous"]["comment"]) if previous else told.get("previous"), previous)
        with open(self.path("a.npy.json"), "r+", encoding="utf-8") as file:
            file.truncate(1 << 28 | 1)
        text = launch(*f"{sharp} ! picturesink append=true location={self.path('a.npy')}".split())
        self.assertIn("268435457 bytes; a file of this kind has 268435456 at most. The frames are written without a sidecar.", text)
        self.assertEqual((len(np.load(self.path("a.npy"))), os.path.getsize(self.path("a.npy.json"))), (6, 1 << 28 | 1))

    def test_numbers_begin_behind_all_files(self):
        for n in (0, 1, 4):
            with open(os.path.join(self.folder, f"n{n}.pgm"), "w", encoding="utf-8") as file:
                file.write("old")
        launch("-q", "videotestsrc", "num-buffers=3", "!", "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink",
               f"location={self.folder}/n%d.pgm", "append=true", "sidecar=none")
        self.assertEqual(sorted(os.listdir(self.folder)), [f"n{n}.pgm" for n in (0, 1, 4, 5, 6, 7)])

    def test_padded_numbers_begin_behind_all_files(self):
        for pattern, numbers in ("z%03d.pgm", (0, 1, 998)), ("s%3d.pgm", (0, 1, 9)), ("w%02d.pgm", (7, 8, 98)):
            for n in numbers:
                with open(self.path(pattern % n), "w", encoding="utf-8") as file:
                    file.write("old")
            launch("-q", "videotestsrc", "num-buffers=3", "!", "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink",
                   f'location="{self.folder}/{pattern}"', "append=true", "sidecar=none")
            expected = [pattern % n for n in (*numbers, *range(numbers[-1] + 1, numbers[-1] + 4))]
            self.assertEqual(sorted(name for name in os.listdir(self.folder) if name[0] == pattern[0]), sorted(expected))

    def test_links_are_followed_as_far_as_the_system_does(self):
        words = "-q", "videotestsrc", "num-buffers=1", "!", "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink", "sidecar=none"
        for i in range(41):
            os.symlink(f"{i}.pgm", self.path(f"{i + 1}.pgm"))
        self.assertIn("cannot be written", launch(*words, "location=" + self.path("41.pgm"), status=1))
        self.assertFalse(os.path.exists(self.path("0.pgm")))
        launch(*words, "location=" + self.path("40.pgm"))
        self.assertTrue(os.path.isfile(self.path("0.pgm")) and os.path.islink(self.path("40.pgm")))
        with open(self.path("40.pgm"), "rb") as file:
            self.assertEqual(file.read(2), b"P5")

    def test_a_name_with_quotes_and_backslashes_can_be_played_again(self):
        path = self.path('back\\slash "quoted" \\" end\\.npy')
        np.save(path, np.zeros((2, 8, 8), "u1"))
        pipeline = Gst.parse_launch("picturesrc name=r ! lapsharpen ! picturesink name=w")
        pipeline.get_by_name("r").set_property("location", path)
        pipeline.get_by_name("w").set_property("location", self.path("out.npy"))
        pipeline.set_state(Gst.State.PLAYING)
        message = pipeline.get_bus().timed_pop_filtered(10 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual(message.type, Gst.MessageType.EOS)
        told = metadata.sidecar(self.path("out.npy"))
        again = Gst.parse_launch(told["pipeline"])
        self.assertEqual(os.path.join(told.get("folder", ""), again.get_by_name("r").get_property("location")), path)

    def test_files_of_an_older_recording_are_named(self):
        words = ("!", "video/x-raw,format=GRAY8,width=8,height=8", "!", "picturesink", f"location={self.folder}/f%02d.pgm", "sidecar=none")
        for n, older in (8, ""), (3, "f07.pgm"), (8, ""):
            text = launch("videotestsrc", f"num-buffers={n}", *words)
            self.assertEqual(text.count("of an older one is behind them"), len(older[:1]), text)
            self.assertIn(older, text)

    def test_times_and_numbers(self):
        for rate in "30/1", "25/1", "30000/1001":
            told = self.play(f"videotestsrc num-buffers=40 ! video/x-raw,format=GRAY8,framerate={rate}", "a.npy",
                             "sidecar=always")
            n, d = map(int, rate.split("/"))
            self.assertEqual(told["pts"], [i * d * 10 ** 9 // n for i in range(40)])
            self.assertEqual(told["frame-numbers"], list(range(40)))
            self.assertEqual(told["frames-missing"], 0)
        told = self.play("videotestsrc num-buffers=40 ! identity drop-probability=0.5 ! video/x-raw,format=GRAY8",
                         "a.npy", "sidecar=always")
        self.assertEqual(len(told["pts"]), told["frames"])
        self.assertEqual(told["frames-missing"], told["frame-numbers"][-1] + 1 - told["frame-numbers"][0] -
                         told["frames"])

    def test_one_numbered_file(self):
        words = ("!", "video/x-raw,format=GRAY8,width=8,height=8,framerate=10/1", "!", "picturesink", "sidecar=always",
                 f"location={self.folder}/f%02d.pgm")
        launch("videotestsrc", "num-buffers=5", *words)
        launch("videotestsrc", "num-buffers=3", *words, "append=true")
        for number, pts in (0, 0), (4, 4 * 10 ** 8), (5, 0), (7, 2 * 10 ** 8):
            told = metadata.sidecar(self.path(f"f{number:02}.pgm"))
            self.assertEqual((told["file"], told["first"], told["frames"], told["pts"]),
                             (f"f{number:02}.pgm", number, 1, [pts]))
        self.assertEqual(len(metadata.sidecar(self.path("f%02d.pgm"))["pts"]), 3)
        for name in "f08.pgm", "f2.pgm", "g02.pgm", "none/f02.pgm":
            self.assertIsNone(metadata.sidecar(self.path(name)))

    def test_series(self):
        self.assertEqual(metadata.expand([5, [7, 2, 3], [None, 0, 2], 1, [2.5, 0, 2]]),
                         [5, 7, 9, 11, None, None, 1, 2.5, 2.5])

    def test_the_pipeline_can_be_played_again(self):
        np.save(self.path("in put.npy"), RNG.integers(0, 255, (4, 16, 16)).astype("u1"))
        for pipeline in ("picturesrc location=$ ! lapsharpen amount=2 ! picturesink location=out.npy",
                         "picturesrc location=$ ! video/x-raw,framerate=30/1 ! tee name=t t. ! queue ! lapsharpen "
                         "name=sharp amount=3 ! picturesink location=out.npy t. ! queue ! fakesink"):
            words = [word.replace("$", self.path("in put.npy")).replace("out.npy", self.path("out.npy"))
                     for word in pipeline.split()]
            launch("-q", *words)
            told = metadata.sidecar(self.path("out.npy"))
            source, = told["sources"]
            self.assertEqual((source["kind"], source["location"]), ("file", self.path("in put.npy")))
            with open(self.path("in put.npy"), "rb") as file:
                self.assertEqual(source["sha256"], hashlib.sha256(file.read()).hexdigest())
            first = np.load(self.path("out.npy"))
            again = Gst.parse_launch(told["pipeline"].replace("out.npy", "again.npy"))
            again.set_state(Gst.State.PLAYING)
            message = again.get_bus().timed_pop_filtered(
                20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
            again.set_state(Gst.State.NULL)
            self.assertEqual(message.type, Gst.MessageType.EOS)
            np.testing.assert_array_equal(np.load(self.path("again.npy")), first)

    def test_settings_that_change(self):
        """Each change is told with the first frame that was made with it."""
        pipeline = Gst.parse_launch(
            "appsrc name=in format=time caps=video/x-raw,format=GRAY8,width=16,height=16,framerate=25/1 ! lapsharpen "
            f"name=sharp amount=1 ! picturesink name=out location={self.path('a.npy')}")
        source, sharp = pipeline.get_by_name("in"), pipeline.get_by_name("sharp")
        pipeline.set_state(Gst.State.PLAYING)
        frame = RNG.integers(0, 255, (16, 16)).astype("u1")
        seen, more = [], threading.Event()

        def count(pad, info):
            seen.append(info)
            more.set()
            return Gst.PadProbeReturn.OK

        pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, count)
        for i in range(6):
            if i == 3:
                sharp.set_property("amount", 2.0)
            buffer = Gst.Buffer.new_wrapped(frame.tobytes())
            buffer.pts, buffer.duration = i * 40000000, 40000000
            source.emit("push-buffer", buffer)
            while len(seen) <= i and more.wait(20):
                more.clear()
        source.emit("end-of-stream")
        pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        told = metadata.sidecar(self.path("a.npy"))
        change, = told["changes"]
        self.assertEqual((change["frame"], change["element"], change["property"], change["value"]),
                         (3, "sharp", "amount", "2"))

    def test_a_change_behind_a_queue(self):
        """What waits in a queue was made with the settings before."""
        pipeline = Gst.parse_launch(
            "appsrc name=in format=time caps=video/x-raw,format=GRAY16_LE,width=256,height=64,framerate=25/1 ! "
            "octbscan name=oct range-min=20 range-max=90 ! video/x-raw,format=GRAY8 ! queue name=q ! "
            f"picturesink location={self.path('a.npy')}")
        source, oct, queue = (pipeline.get_by_name(name) for name in ("in", "oct", "q"))
        pad = queue.get_static_pad("src")
        probe = pad.add_probe(Gst.PadProbeType.BLOCK | Gst.PadProbeType.BUFFER, lambda *_: Gst.PadProbeReturn.OK)
        pipeline.set_state(Gst.State.PLAYING)
        spectra, end = RNG.integers(0, 4096, (64, 256)).astype("u2"), time.monotonic() + 20
        for i in range(6):
            if i == 3:
                oct.set_property("range-max", 80.0)
            buffer = Gst.Buffer.new_wrapped(spectra.tobytes())
            buffer.pts, buffer.duration = i * 40000000, 40000000
            source.emit("push-buffer", buffer)
            # the queue has taken one out, which waits at its pad
            while queue.get_property("current-level-buffers") < i and time.monotonic() < end:
                time.sleep(0.005)
        pad.remove_probe(probe)
        source.emit("end-of-stream")
        pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        told = metadata.sidecar(self.path("a.npy"))
        change, = told["changes"]
        self.assertEqual((change["frame"], change["element"], change["property"], change["value"]),
                         (3, "oct", "range-max", "80"))

    def test_a_continued_file_tells_of_both(self):
        sharp = "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=32,height=8 ! lapsharpen amount="
        self.play(sharp + "2", "a.npy")
        told = self.play(sharp + "3", "a.npy", "append=true")
        self.assertEqual(told["shape"], [6, 8, 32])
        self.assertEqual(told["previous"]["shape"], [3, 8, 32])
        self.assertEqual(told["previous"]["elements"][2]["settings"], {"amount": "2"})

    def test_quantity_and_axes(self):
        spectra = RNG.integers(0, 4096, (4, 64, 256)).astype("u2")
        with open(self.path("raw"), "wb") as file:
            file.write(spectra.tobytes())
        told = self.play(f"filesrc location={self.path('raw')} blocksize={64 * 256 * 2} ! "
                         "video/x-raw,format=GRAY16_LE,width=256,height=64,framerate=25/1 ! octbscan percent-max=99 ! "
                         "video/x-raw,format=GRAY8", "a.npy")
        quantity = told["quantity"]
        self.assertEqual((quantity["name"], quantity["unit"]), ("level", "dB"))
        self.assertEqual({axis["name"] for axis in quantity["axes"]}, {"lateral", "depth"})
        if isinstance(quantity["scale"], list):
            self.assertEqual(len(quantity["scale"]), told["frames"])


    def test_axes_that_change(self):
        np.save(self.path("in.npy"), RNG.integers(0, 4096, (6, 64, 256)).astype("u2"))
        for name in "a.npy", "a.fits":
            with self.subTest(name):
                pipeline = Gst.parse_launch(
                    f"picturesrc location={self.path('in.npy')} ! octbscan name=oct lateral-step-um=5 ! picturesink name=out "
                    f"location={self.path(name)}")
                oct_, steps, number = pipeline.get_by_name("oct"), [], [0]

                def change(_pad, _info):
                    if number[0] == 4:
                        oct_.set_property("lateral-step-um", 10.0)
                    number[0] += 1
                    return Gst.PadProbeReturn.OK

                def note(_pad, info):
                    steps.append(metadata.quantity(info.get_buffer())["axes"][0]["step"])
                    return Gst.PadProbeReturn.OK
                oct_.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, change)
                pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, note)
                pipeline.set_state(Gst.State.PLAYING)
                bus, warnings = pipeline.get_bus(), []
                while True:
                    message = bus.timed_pop_filtered(
                        20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.WARNING)
                    if message.type != Gst.MessageType.WARNING:
                        break
                    warnings.append(message.parse_warning()[0].message)
                pipeline.set_state(Gst.State.NULL)
                self.assertEqual(message.type, Gst.MessageType.EOS)
                self.assertEqual(len(set(steps)), 2)
                axis, depth = metadata.sidecar(self.path(name))["quantity"]["axes"]
                self.assertEqual(axis["step"], steps)
                np.testing.assert_allclose(metadata.places(axis, 9)[:, 8], 8 * np.array(steps))
                self.assertEqual(metadata.places(depth, 9).shape, (9,))
                # .npy has no header that could be wrong
                n = len([text for text in warnings if "From frame 4 on an axis" in text])
                self.assertEqual(n, name == "a.fits", warnings)


class Units(Case):
    """In the places that formats have for them, as other programs find them."""

    def scan(self, name, caps, *more, scaling="db"):
        """B-scans of noise, depth from row to row. Returns: the path, and the axes of the sidecar."""
        spectra = RNG.integers(0, 4096, (3, 64, 256)).astype("u2")
        with open(self.path("raw"), "wb") as file:
            file.write(spectra.tobytes())
        with open(self.path("calibration.ini"), "w", encoding="utf-8") as file:
            file.write("[camera]\nlambda-first=0.82\nlambda-last=0.88\n")
        launch("-q", "filesrc", f"location={self.path('raw')}", "!", "rawvideoparse", "format=gray16-le", "width=256",
               "height=64", "framerate=25/1", "!", "octbscan",
               f"calibration={self.path('calibration.ini')}", "lateral-step-um=7.5", f"scaling={scaling}",
               "!", caps, "!", "picturesink",
               "sidecar=always", f"location={self.path(name)}", *more)
        quantity = metadata.sidecar(self.path(name))["quantity"]
        return self.path(name), {axis["name"]: axis for axis in quantity["axes"]}, quantity

    def test_a_tracked_mirror_stays_at_its_depth(self):
        """Tracking moves the picture; the axis of each frame goes with it."""
        depths = 200 + 15.0 * np.arange(6)[:, None] + 2.0 * np.arange(64)  # um; inclined, since an even one is background
        wavelengths = np.linspace(0.82, 0.88, 256)
        spectra = 2000 + 900 * np.cos(4 * np.pi * depths[..., None] / wavelengths) + RNG.normal(0, 5, (6, 64, 256))
        np.save(self.path("in.npy"), np.rint(spectra).astype("u2"))
        with open(self.path("calibration.ini"), "w", encoding="utf-8") as file:
            file.write("[camera]\nlambda-first=820\nlambda-last=880\n")
        for flip in "none", "depth":
            with self.subTest(flip):
                launch("-q", "picturesrc", f"location={self.path('in.npy')}", "!", "octbscan", f"calibration={self.path('calibration.ini')}",
                       "tracking=xcorr", f"flip={flip}", "!", "other/tensors", "!", "picturesink", f"location={self.path('out.npy')}")
                depth = metadata.sidecar(self.path("out.npy"))["quantity"]["axes"][1]
                images = np.load(self.path("out.npy"))
                places = metadata.places(depth, images.shape[1])
                self.assertGreater(np.ptp(places[:, 0]), 30, "nothing was tracked")
                found = np.take_along_axis(places, images.argmax(axis=1), axis=1)
                np.testing.assert_allclose(found, depths, atol=abs(depth["step"]))

    def test_units_end_where_samples_change(self):
        np.save(self.path("in.npy"), RNG.integers(0, 4096, (2, 64, 256)).astype("u2"))
        for change, stays in (("identity", True), ("queue", True), ("videoconvert ! video/x-raw,format=GRAY8", False),
                              ("videoscale ! video/x-raw,width=40", False), ("videocrop left=8", False),
                              ("lapsharpen", True), ("lapsharpen output=edges", False)):
            with self.subTest(change):
                launch("-q", "picturesrc", f"location={self.path('in.npy')}", "!", "octbscan", "!", "video/x-raw,format=GRAY16_LE", "!",
                       *change.split(), "!", "picturesink", "sidecar=always", f"location={self.path('out.npy')}")
                quantity = metadata.sidecar(self.path("out.npy")).get("quantity") or {}
                self.assertEqual(quantity.get("unit"), "dB" if stays else None)

    @needs("fits", fits, "astropy")
    def test_fits(self):
        path, axes, _ = self.scan("a.fits", "other/tensors,types=float32")
        with fits.open(path) as file:
            header = file[0].header
        self.assertEqual((header["QNAME"], header["BUNIT"]), ("level", "dB"))
        for n in 1, 2:
            axis = axes[header[f"CTYPE{n}"].lower()]
            self.assertEqual((header[f"CUNIT{n}"], header[f"CDELT{n}"], header[f"CRVAL{n}"], header[f"CRPIX{n}"]),
                             (axis["unit"], axis["step"], axis["origin"], 1))
        path, _, quantity = self.scan("b%d.fits", "video/x-raw,format=GRAY8")
        with fits.open(path % 0) as file:
            header = file[0].header
        self.assertNotIn("BUNIT", header)  # of samples, which are not in dB
        self.assertEqual((header["QUNIT"], header["QSCALE"], header["QOFFSET"]),
                         ("dB", quantity["scale"][0], quantity["offset"][0]))
        path, _, quantity = self.scan("c.fits", "other/tensors,types=float32", scaling="linear")
        self.assertEqual(quantity["unit"], "counts^2")
        self.assertEqual(fits.getheader(path)["BUNIT"], "count**2")  # the spelling of the standard

    def measure(self, fields, name):
        """Slopes of a frame with a NaN, as a file. Returns: what was printed, the sidecar."""
        frames = RNG.integers(0, 200, (2, 80, 80)).astype("<f4")
        frames[1, 25, 47] = np.nan  # in cell 6
        np.save(self.path("frames.npy"), frames)
        printed = launch("picturesrc", f"location={self.path('frames.npy')}", "!", "shcentroid", "name=sh", "columns=4", "rows=4",
                         "pitch-x=20", "pitch-y=20", "slope-unit=rad", "focal-length=5", "pixel-size=10", f"fields={fields}",
                         "!", "fakesink", "sh.results", "!", "queue", "!", "other/tensors", "!", "picturesink",
                         f"location={self.path(name)}")
        return printed, metadata.sidecar(self.path(name))

    def test_results_have_names_units_and_warnings(self):
        for fields, names, unit in (("slopes", "dx,dy", "rad"), ("xy", "x,y", "px"),
                                    ("all", "x,y,dx,dy,flux,flux_raw,max,var_x,var_y,flags",
                                     "px,px,rad,rad,counts,counts,counts,px^2,px^2,flags")):
            with self.subTest(fields):
                printed, told = self.measure(fields, "a.npy")
                self.assertEqual((told["quantity"]["name"], told["quantity"]["unit"]), (names, unit))
                self.assertEqual((told["quantity"]["element"], told["quantity"]["scale"]), ("shcentroid", 1))
                self.assertEqual(printed.count("1 of 16 cells have a sample that is NaN"), 1, printed)

    @needs("fits", fits, "astropy")
    def test_slopes_as_fits(self):
        self.measure("slopes", "a.fits")
        with fits.open(self.path("a.fits")) as file:
            self.assertEqual((file[0].header["QNAME"], file[0].header["BUNIT"]), ("dx,dy", "rad"))

    @needs("tiff", tifffile, "tifffile")
    def test_a_raster_of_gdal_has_its_unit(self):
        for more, unit in ("", "rad"), ('<Item name="UNITTYPE" sample="1" role="unittype">m</Item>', None):  # of a second band
            text = ('<GDALMetadata><Item name="UNITTYPE" sample="0" role="unittype">rad</Item><Item name="DESCRIPTION" sample="0" '
                    'role="description">phase</Item><Item name="axis-0-name">range</Item><Item name="axis-0-step">4</Item>'
                    f'<Item name="axis-0-unit">pixel</Item>{more}</GDALMetadata>')
            tifffile.imwrite(self.path("g.tif"), np.ones((5, 7), "f4"), extratags=[(42112, "s", 0, text, True)], metadata=None)
            launch("picturesrc", "location=" + self.path("g.tif"), "!", "picturesink", "location=" + self.path("g.npy"), "sidecar=always")
            told = metadata.sidecar(self.path("g.npy"))["quantity"]
            self.assertEqual((told.get("unit"), told["axes"][0]["step"], told["axes"][0]["unit"]), (unit, 4, "pixel"))

    @needs("tiff", tifffile, "tifffile")
    def test_tiff(self):
        path, _, quantity = self.scan("a%d.tif", "video/x-raw,format=GRAY8")
        with tifffile.TiffFile(path % 1) as file:
            self.assertTrue(file.is_ome)
            self.assertEqual(file.series[0].shape, file.pages[0].shape)
            ome = tifffile.xml2dict(file.ome_metadata)["OME"]
        pixels = ome["Image"]["Pixels"]
        for letter, axis in zip("XY", quantity["axes"]):
            if axis["unit"] == "um":
                self.assertEqual((pixels[f"PhysicalSize{letter}"], pixels[f"PhysicalSize{letter}Unit"]),
                                 (axis["step"], "\u00b5m"))
        self.assertTrue(any(f"PhysicalSize{letter}" in pixels for letter in "XY"))
        self.assertEqual(pixels["Plane"]["DeltaT"], 0.04)
        told = {entry["K"]: entry["value"] for entry in ome["StructuredAnnotations"]["MapAnnotation"]["Value"]["M"]}
        self.assertEqual((told["name"], told["unit"], float(told["scale"])), ("level", "dB", quantity["scale"][1]))

    @needs("exr", OpenEXR, "OpenEXR")
    def test_exr(self):
        path, axes, _ = self.scan("a%d.exr", "other/tensors,types=float32")
        with OpenEXR.File(path % 0) as file:
            header = dict(file.header())
        self.assertEqual((header["quantity"], header["unit"]), ("level", "dB"))
        axis = axes[header["axis-0-name"]]
        self.assertEqual((header["axis-0-unit"], float(header["axis-0-step"])), (axis["unit"], axis["step"]))


class Flags(Case):
    """Slopes as files: the flags of their cells lie beside them, so that a dark cell is no flat wavefront."""

    CAPS = "other/tensors,format=static,num_tensors=2,types=(string)\"float32,uint8\",dimensions=(string)\"16:2:1:1,16:1:1:1\",framerate=0/1"

    def measure(self, name, *more, caps="other/tensors", fields="slopes", status=0):
        """Four frames of 16 spots, cell 6 of frame 1 dark. Returns: what was printed"""
        y, x = np.mgrid[:20, :20]
        spot = 180 * np.exp(-((x - 11) ** 2 + (y - 8) ** 2) / 8)
        frames = np.tile(spot, (4, 4, 4)).astype("u1")
        frames[1, 20:40, 40:60] = 0
        np.save(self.path("frames.npy"), frames)
        return launch("picturesrc", f"location={self.path('frames.npy')}", "!", "shcentroid", "name=sh", "columns=4", "rows=4",
                      "pitch-x=20", "pitch-y=20", f"fields={fields}", "!", "fakesink", "sh.results", "!", "queue", "!", caps, "!",
                      "picturesink", "sidecar=always", f"location={self.path(name)}", *more, status=status)

    def read(self, name):
        np_name = self.path("read.npy")
        subprocess.run([TOOL, self.path(name), np_name], check=True)
        return np.load(np_name)

    def check_flags(self, flags, n=4):
        invalid = np.zeros((n, 16), bool)
        invalid[1::4, 6] = True
        np.testing.assert_array_equal(flags.reshape(n, 16) & 227 != 0, invalid)

    def test_a_dark_cell_is_told_from_a_flat_one(self):
        for extension in ["npy"] + [e for e, f in (("fits", "fits"), ("tif", "tiff")) if f in FORMATS]:
            for caps in "other/tensors", "other/tensors,num_tensors=2":
                self.measure(f"s.{extension}", caps=caps)
                slopes = self.read(f"s.{extension}")
                self.assertEqual((slopes.shape, slopes.dtype), ((4, 2, 16), np.float32))
                self.check_flags(self.read(f"s-flags.{extension}"))
                self.assertEqual(metadata.sidecar(self.path(f"s.{extension}"))["flags"], f"s-flags.{extension}")
            self.assertEqual((slopes[1, :, 6] == 0).all(), True)  # invalid-policy=zero, which flags tell from a slope
            text = launch("picturesrc", "location=" + self.path(f"s.{extension}"), "!", "fakesink")
            self.assertIn(f'are in "s-flags.{extension}" and are not played with it', text)
            self.measure(f"s.{extension}", "append=true")
            self.assertEqual(self.read(f"s.{extension}").shape, (8, 2, 16))
            self.check_flags(self.read(f"s-flags.{extension}"), 8)

    def test_one_tensor_and_numbered_files(self):
        self.measure("one.npy", caps="other/tensors,num_tensors=1")
        self.assertFalse(os.path.exists(self.path("one-flags.npy")))
        self.assertNotIn("flags", metadata.sidecar(self.path("one.npy")))
        self.measure("f%02d.npy")
        self.check_flags(np.stack([np.load(self.path(f"f{i:02}-flags.npy")) for i in range(4)]))
        for extension in ["pfm"] + ["exr"] * ("exr" in FORMATS):  # which have no type of 8 bits
            self.measure(f"g%02d.{extension}")
            self.check_flags(np.stack([np.load(self.path(f"g{i:02}-flags.npy")) for i in range(4)]))
            for i in range(4):
                os.remove(self.path(f"g{i:02}-flags.npy"))

    def test_files_that_do_not_belong_together(self):
        np.save(self.path("s-flags.npy"), np.zeros(3))
        self.assertIn("is there and holds no flags", self.measure("s.npy", status=1))
        self.assertFalse(os.path.exists(self.path("s.npy")))
        os.remove(self.path("s-flags.npy"))
        self.measure("s.npy")
        np.save(self.path("s-flags.npy"), np.zeros((3, 16), "u1"))
        before = np.load(self.path("s.npy"))
        self.assertIn("they cannot be continued together", self.measure("s.npy", "append=true", status=1))
        np.testing.assert_array_equal(np.load(self.path("s.npy")), before)
        self.assertEqual(np.load(self.path("s-flags.npy")).shape, (3, 16))

    def test_a_crash_leaves_flags_for_all_frames(self):
        for extension in GROWING:
            name = f"a.{extension}"
            words = ["gst-launch-1.0", "-q", "filesrc", "location=/dev/zero", f"blocksize={16 * 9}", "!", self.CAPS, "!",
                     "picturesink", f"location={self.path(name)}"]
            with subprocess.Popen(words) as recording:
                end = time.monotonic() + 20
                while not os.path.exists(self.path(name)) and time.monotonic() < end:
                    time.sleep(0.01)
                time.sleep(0.1)
                recording.kill()
            n, n_flags = (len(READERS[extension](self.path(file))) for file in (name, f"a-flags.{extension}"))
            self.assertIn(n_flags - n, (0, 1))
            self.assertGreater(n, 0)


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

    def told_meanwhile(self, name, least):
        """Returns: the sidecar of a recording that has not ended, as soon as it tells of that many frames"""
        end = time.monotonic() + 20
        told = None
        while (not told or told["frames"] < least) and time.monotonic() < end:
            time.sleep(0.05)
            told = metadata.sidecar(self.path(name))
        return told

    def test_a_crash_leaves_numbers_and_times_of_frames(self):
        for name in "a.npy", "b%04d.pgm":
            command = self.command(name)
            command[3:4] = ["videotestsrc", "is-live=true"]
            command[command.index("video/x-raw,format=GRAY8,width=101,height=37")] += ",framerate=100/1"
            with subprocess.Popen([*command, "sidecar=always"]) as recording:
                self.told_meanwhile(name, 2)
                told = self.told_meanwhile(name, 150)  # the sidecar was extended more than once
                recording.kill()
            told = metadata.sidecar(self.path(name))
            self.assertGreaterEqual(told["frames"], 150)
            self.assertFalse(told["complete"])
            self.assertEqual(told["frame-numbers"], list(range(told["frames"])))
            self.assertEqual(len(told["pts"]), told["frames"])

    def test_a_full_disk_leaves_numbers_and_times(self):
        command = self.command("a.npy")
        done = subprocess.run(["bash", "-c", 'ulimit -f 1000; exec timeout -k 5 60 "$@"', "bash", *command, "sidecar=always"], capture_output=True,
                              text=True, check=False)
        self.assertIn("cannot be written: File too large", done.stderr)
        told, n = metadata.sidecar(self.path("a.npy")), self.check("a.npy")
        self.assertEqual((told["frames"], told["frame-numbers"]), (n, list(range(n))))

    def test_a_recording_that_was_not_completed_has_its_unit(self):
        np.save(self.path("a.npy"), np.arange(120, dtype=np.float32).reshape(5, 4, 6))

        def write(name, **changes):
            told = {"schema": "gst-imaging-sidecar-v1", "file": name, "type": "f32", "shape": [2, 4, 6], "first": 0, "frames": 2, "complete": False,
                    "frame-numbers": [0, 1], "quantity": {"name": "level", "unit": "dB", "scale": 1, "offset": 0,
                                                          "axes": [{"name": "x", "unit": "um", "step": 5, "origin": 0}]}}
            told["quantity"].update(changes.pop("quantity", {}))
            with open(self.path(name + ".json"), "w", encoding="utf-8") as file:
                json.dump({**told, **changes}, file)

        def quantities(**changes):
            """Of the frames of a.npy, and what picturesrc warns of"""
            write("a.npy", **changes)
            text = launch("picturesrc", "location=" + self.path("a.npy"), "!", "picturesink", "location=" + self.path("b.npy"), "sidecar=always")
            return metadata.sidecar(self.path("b.npy")).get("quantity", {}), text

        found, text = quantities()
        self.assertEqual((found["unit"], found["scale"], found["axes"][0]["step"]), ("dB", 1, 5))
        self.assertIn("was not completed and tells of 2 frames", text)
        found, _text = quantities(quantity={"scale": [2, 3]})
        self.assertEqual(found["scale"], [2, 3, None, None, None])
        found, _text = quantities(frames=1, shape=[1, 4, 6], quantity={"scale": 2})  # of a scale that may change
        self.assertEqual((found["scale"], found["axes"][0]["step"]), ([2, None, None, None, None], 5))
        for changes in {"shape": [2, 6, 4]}, {"shape": [6, 4, 6], "frames": 6}, {"shape": [4, 4, 6]}, {"type": "f64"}, {"complete": True}:
            self.assertEqual(quantities(**changes)[0], {}, changes)

    def test_what_a_crash_leaves_behind_the_last_frame(self):
        for extension in GROWING:
            name = self.path(f"a.{extension}")
            launch("-q", "videotestsrc", "num-buffers=3", "!", "video/x-raw,format=GRAY8,width=101,height=37", "!",
                   "picturesink", f"location={name}")
            with open(name, "ab") as file:
                file.write(b"\xc3" * 5000)
            self.assertEqual(READERS[extension](name).shape, (3, *self.SHAPE))

    def limit(self, name, trap):
        """A file may have 1000 KiB: as on a full disk, a write gives fewer bytes, then an error."""
        return subprocess.run(["bash", "-c", f'{trap} ulimit -f 1000; exec timeout -k 5 60 "$@"', "bash",
                               *self.command(name)], capture_output=True, text=True, check=False)

    def test_full_disk(self):
        for extension in GROWING:
            for trap in "", "trap '' XFSZ;":  # with the signal, which ends a process, and without
                done = self.limit(f"a.{extension}", trap)
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

    def test_two_programs_and_one_file(self):
        for extension in GROWING:
            name = f"a.{extension}"
            with subprocess.Popen(self.command(name)) as recording:
                end = time.monotonic() + 20
                while not os.path.exists(self.path(name)) and time.monotonic() < end:
                    time.sleep(0.01)
                for append in "false", "true":
                    text = launch("videotestsrc", "num-buffers=2", "!", "picturesink", "location=" + self.path(name),
                                  "append=" + append, status=1)
                    self.assertIn("is being written already, by another sink or program", text)
                recording.kill()
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
