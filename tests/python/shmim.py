# SPDX-License-Identifier: LGPL-2.1-or-later
"""shmimsrc and shmimsink beside the real ImageStreamIO, built from its source in ../shared/tools; skipped without it."""
import atexit
import functools
import glob
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import numpy as np

from support import DATA, SOURCE, TIMEOUT, Gst, main

TYPES = {"uint8": 1, "uint16": 3, "int32": 6, "float32": 9, "float64": 10}
PROGRAMS = {"plain": [], "dao": ["-DDAO_COMPAT"]}  # flags of the compiler


@functools.lru_cache(maxsize=None)
def build(program):
    """Returns: the path of shmim-peer with the library in it; skips the test without its source or a compiler"""
    archives = glob.glob(os.path.join(os.path.dirname(os.path.dirname(DATA)), "tools", "ImageStreamIO-*.tar.xz"))
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
    if not archives or not compiler:
        raise unittest.SkipTest("the source of ImageStreamIO, or a C compiler, is not there; set IMAGING_TEST_DATA")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder)
    source = os.path.dirname(glob.glob(os.path.join(folder, "*", "ImageStreamIO.c"))[0])
    path = os.path.join(folder, "peer")
    subprocess.run([compiler, "-w", "-I", source, *PROGRAMS[program], os.path.join(source, "ImageStreamIO.c"),
                    os.path.join(SOURCE, "tests", "python", "shmim-peer.c"), "-o", path, "-lm", "-lpthread"], check=True)
    return path


class Peer:
    """A process of ImageStreamIO."""

    def __init__(self, streams, program="plain"):
        self.process = subprocess.Popen([build(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "MILK_SHM_DIR": streams})

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        *answer, status = self.process.stdout.readline().split()
        if status != "0":
            raise AssertionError(f"{line}: status {status}")
        return [int(word) for word in answer]

    def make(self, name, kind, axes, n_semaphores=10, ring=0, flags=0):
        sizes = " ".join(str(n) for n in (list(axes) + [0, 0])[:3])
        self.ask(f"make {name} {TYPES[kind]} {len(axes)} {sizes} {n_semaphores} {ring} {flags}")

    def end(self, kill=False):
        if kill:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def expected(n, size):
    return (n + 7 * np.arange(size)).astype(np.uint8)


class Case(unittest.TestCase):
    program = "plain"

    def setUp(self):
        build(self.program)
        self.streams = tempfile.TemporaryDirectory()
        self.peers = []
        self.pipeline = None

    def tearDown(self):
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)
        for peer in self.peers:
            peer.end()
        self.streams.cleanup()

    def peer(self):
        self.peers.append(Peer(self.streams.name, self.program))
        return self.peers[-1]

    def play(self, text):
        self.pipeline = Gst.parse_launch(text.replace("FOLDER", self.streams.name))
        self.pipeline.set_state(Gst.State.PLAYING)

    def pull(self):
        sample = self.pipeline.get_by_name("out").emit("try-pull-sample", TIMEOUT * Gst.SECOND)
        if not sample:
            message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise AssertionError(message.parse_error() if message else "no frame came")
        return sample.get_buffer(), sample.get_caps()


class SourceTest(Case):
    def test_frames_of_each_type(self):
        for kind, axes in (("uint8", (8, 5)), ("uint16", (6, 7)), ("int32", (3, 4, 2)), ("float32", (9,)), ("float64", (4, 3))):
            with self.subTest(kind=kind):
                writer = self.peer()
                writer.make("cam", kind, axes)
                self.play("shmimsrc stream=cam folder=FOLDER ! appsink name=out sync=false")
                for n in range(1, 6):
                    writer.ask(f"write {n}")
                    buffer, caps = self.pull()
                    self.assertEqual(buffer.offset, n)
                    got = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
                    np.testing.assert_array_equal(got, expected(n, len(got)))
                name = caps.get_structure(0).get_name()
                self.assertEqual(name, "video/x-raw" if kind.startswith("uint") else "other/tensors")
                self.pipeline.set_state(Gst.State.NULL)

    def test_frames_that_were_lost_are_counted(self):
        writer = self.peer()
        writer.make("cam", "uint8", (8, 5))
        self.play("shmimsrc name=s stream=cam folder=FOLDER ! appsink name=out sync=false max-buffers=1")
        writer.ask("write 1")
        offsets = [self.pull()[0].offset]  # from now on the source is there
        for n in range(2, 41):  # the pipeline holds three of them
            writer.ask(f"write {n}")
        while offsets[-1] < 40:
            buffer, _caps = self.pull()
            offsets.append(buffer.offset)
            got = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
            np.testing.assert_array_equal(got, expected(buffer.offset, len(got)))
        stats = self.pipeline.get_by_name("s").get_property("stats")
        self.assertEqual(stats.get_value("frames"), len(offsets))
        self.assertEqual(stats.get_value("frames-missing"), offsets[-1] - offsets[0] + 1 - len(offsets))
        self.assertGreater(stats.get_value("frames-missing"), 0)

    def test_a_writer_that_is_killed(self):
        writer = Peer(self.streams.name, self.program)
        writer.make("cam", "uint8", (8, 5))
        self.play("shmimsrc stream=cam folder=FOLDER timeout=50 ! appsink name=out sync=false")
        writer.ask("write 1")
        self.pull()
        writer.end(kill=True)
        message = self.pipeline.get_bus().timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.ERROR)
        self.assertIn(f'The writer of stream "cam" (process {writer.process.pid}) has ended', message.parse_error()[0].message)

    def test_a_stream_that_is_destroyed_and_made_again(self):
        writer = self.peer()
        writer.make("cam", "uint8", (8, 5))
        self.play("shmimsrc stream=cam folder=FOLDER ! appsink name=out sync=false")
        writer.ask("write 1")
        self.pull()
        writer.ask("destroy")
        writer.make("cam", "float32", (4, 4))
        writer.ask("write 9")
        buffer, caps = self.pull()
        self.assertEqual(caps.get_structure(0).get_string("dimensions"), "4:4:1:1")
        np.testing.assert_array_equal(np.frombuffer(buffer.extract_dup(0, 64), np.uint8), expected(9, 64))

    def test_readers_have_semaphores_of_their_own(self):
        writer, reader = self.peer(), self.peer()
        writer.make("cam", "uint8", (8, 5))
        reader.ask("open cam")
        self.play("shmimsrc stream=cam folder=FOLDER ! appsink name=out sync=false "
                  "shmimsrc stream=cam folder=FOLDER ! appsink name=other sync=false")
        for n in range(1, 12):
            writer.ask(f"write {n}")
            self.assertEqual(self.pull()[0].offset, n)
            sample = self.pipeline.get_by_name("other").emit("try-pull-sample", TIMEOUT * Gst.SECOND)
            self.assertEqual(sample.get_buffer().offset, n)
            self.assertEqual(reader.ask(f"read {n}"), [n, 0])


class DaoSourceTest(SourceTest):
    program = "dao"  # the library as daoTools builds it: a longer header


class SinkTest(Case):
    def commands(self, n):
        self.play("appsrc name=in format=time ! shmimsink stream=dm folder=FOLDER")
        self.pipeline.get_by_name("in").set_property("caps", Gst.Caps.from_string(
            f"other/tensors,format=static,num_tensors=1,types=float32,dimensions={n}:1:1:1,framerate=0/1"))

    def push(self, n, size):
        self.pipeline.get_by_name("in").emit("push-buffer", Gst.Buffer.new_wrapped(expected(n, size).tobytes()))

    def wait_for_stream(self):  # made with the first frame, on which a sink prerolls
        self.pipeline.get_state(TIMEOUT * Gst.SECOND)

    def test_commands_into_a_new_stream(self):
        self.commands(97)
        self.push(1, 388)
        self.wait_for_stream()
        reader = self.peer()
        reader.ask("open dm")
        self.assertEqual(reader.ask("shape"), [9, 2, 97, 1])
        while reader.ask("read 1")[0] < 1:  # what the first frame posted
            pass
        for n in range(2, 20):
            self.push(n, 388)
            self.assertEqual(reader.ask(f"read {n}"), [n, 0])

    def test_commands_into_a_stream_of_cacao(self):
        reader = self.peer()
        reader.make("dm", "float32", (12, 8), ring=3)
        self.commands(96)
        for n in range(1, 8):
            self.push(n, 384)
            self.assertEqual(reader.ask(f"read {n}"), [n, 0])
            self.assertEqual(reader.ask("ring"), [n % 3, n])


class DaoSinkTest(SinkTest):
    program = "dao"
    test_commands_into_a_new_stream = None  # it does not read those of the plain library


if __name__ == "__main__":
    main()
