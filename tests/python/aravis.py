# SPDX-License-Identifier: LGPL-2.1-or-later
"""A GigE camera, the fake one of Aravis, drives shcentroid and lapsharpen."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# Aravis reads the network below its stack where it may, and sees nothing there
# of a camera on the same machine; the capability is dropped before anything is
# loaded, for this process and what it starts.
PR_CAPBSET_DROP, CAP_NET_RAW = 24, 13
if os.geteuid() == 0 and "--dropped" not in sys.argv:
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-B", *sys.argv, "--dropped"])
if "--dropped" in sys.argv:
    sys.argv.remove("--dropped")

import numpy as np

from gi.repository import Gio

from support import TIMEOUT, Gst, command, launch, main, result_of

CAMERA = shutil.which("arv-fake-gv-camera-0.8")
SERIAL = f"GSTIMAGING{os.getpid()}"
# The camera writes into its buffers in turn, whether or not they are read yet:
# so many that on a busy machine the first is not written again meanwhile.
SOURCE = f"aravissrc camera-name=Aravis-Fake-{SERIAL} num-arv-buffers=400 num-buffers=6"
N_FRAMES = 6
WIDTH, HEIGHT = 128, 128


def grey(sample):
    """The grey frame in a sample, as int64."""
    structure = sample.get_caps().get_structure(0)
    width, height = (structure.get_value(name) for name in ("width", "height"))
    return np.frombuffer(bytes_of(sample), np.uint8).reshape(height, -1)[:, :width].astype(np.int64)


def bytes_of(sample):
    buffer = sample.get_buffer()
    return buffer.extract_dup(0, buffer.get_size())


def pull_all(text, **sinks_by_name):
    """Plays a pipeline. Returns: for each appsink, given by name and what to
    make of a sample, a list of the time of each and of what was made. Samples
    themselves do not outlive the pipeline: aravissrc frees their memory."""
    pipeline = Gst.parse_launch(text)
    made = []
    pipeline.set_state(Gst.State.PLAYING)
    try:
        for name, make in sinks_by_name.items():
            sink = pipeline.get_by_name(name)
            made.append([])
            while sample := sink.emit("try-pull-sample", TIMEOUT * Gst.SECOND):
                made[-1].append((sample.get_buffer().pts, make(sample)))
        message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        if message:
            raise AssertionError(message.parse_error())
    finally:
        pipeline.set_state(Gst.State.NULL)
    return made


def set_frame_size():
    """Makes the frames of the camera so small that the socket can hold a whole one. On a busy machine, packets
    of larger frames are lost. Returns: whether there is the camera"""
    aravis = ctypes.CDLL("libaravis-0.8.so.0")
    aravis.arv_camera_new.restype = ctypes.c_void_p
    camera = ctypes.c_void_p(aravis.arv_camera_new(f"Aravis-Fake-{SERIAL}".encode(), None))
    if camera:
        aravis.arv_camera_set_region(camera, 0, 0, WIDTH, HEIGHT, None)
        ctypes.CDLL("libgobject-2.0.so.0").g_object_unref(camera)
    return bool(camera)


def start_camera(cleanup, *arguments):
    camera = subprocess.Popen([CAMERA, "-i", "127.0.0.1", "-s", SERIAL, *arguments],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              # it calls frames of formats that it does not fill critical
                              env={name: value for name, value in os.environ.items() if name != "G_DEBUG"})
    cleanup(camera.wait)
    cleanup(camera.kill)  # it looks for a SIGTERM once a second
    while not set_frame_size():
        if camera.poll() is not None:
            raise unittest.SkipTest("the fake camera does not start; is its port taken?")


@unittest.skipUnless(CAMERA and Gst.ElementFactory.find("aravissrc"),
                     "aravissrc or arv-fake-gv-camera-0.8 is not installed")
class Camera(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start_camera(cls.addClassCleanup)

    def test_frame_numbers_and_capture_times_are_in_the_results(self):
        for backend in "cpu", "cuda":
            with self.subTest(backend=backend):
                frames, tables = pull_all(
                    f"{SOURCE} ! shcentroid name=s backend={backend} columns=4 rows=3 "
                    "x0=8 y0=4 pitch-x=30 pitch-y=40 ! appsink name=frames sync=false "
                    "s.results ! queue ! text/csv ! appsink name=tables sync=false",
                    frames=grey, tables=bytes_of)
                self.assertEqual(len(frames), N_FRAMES)
                text = b"".join(table for _, table in tables).decode()
                lines = [line.split(",") for line in text.split()]
                names, rows = lines[0], lines[1:]
                self.assertEqual(len(rows), N_FRAMES * 12)
                times = [pts for pts, _ in frames]
                self.assertEqual(sorted(set(times)), times)
                for i, row in enumerate(rows):
                    self.assertEqual(int(row[names.index("frame")]), i // 12)
                    self.assertEqual(int(row[names.index("pts")]), times[i // 12])
                # and they are of that frame: the first cell by the definition
                for n, (_, frame) in enumerate(frames):
                    cell = frame[4:44, 8:38]
                    row = rows[12 * n]
                    x = (cell.sum(axis=0) * np.arange(8, 38)).sum() / cell.sum()
                    y = (cell.sum(axis=1) * np.arange(4, 44)).sum() / cell.sum()
                    self.assertAlmostEqual(float(row[names.index("x")]), x, places=9)
                    self.assertAlmostEqual(float(row[names.index("y")]), y, places=9)

    def test_sharpened_frames_keep_their_times(self):
        frames, sharp = pull_all(
            f"{SOURCE} ! tee name=t ! queue ! appsink name=frames sync=false "
            "t. ! queue ! lapsharpen amount=1 ! appsink name=sharp sync=false",
            frames=grey, sharp=grey)
        self.assertEqual(len(frames), N_FRAMES)
        self.assertEqual([pts for pts, _ in sharp], [pts for pts, _ in frames])
        for (_, v), (_, found) in zip(frames, sharp):
            p = np.pad(v, 1, mode="edge")
            sum_ = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
            np.testing.assert_array_equal(found, np.clip(v + 4 * v - sum_, 0, 255))

    def test_that_the_offered_pool_is_not_taken_is_said_once(self):
        said = launch(*f"{SOURCE} ! lapsharpen backend=cuda ! fakesink sync=false".split(),
                      GST_DEBUG="imaging:4", GST_DEBUG_NO_COLOR="1")
        self.assertEqual(said.count("does not fill the page-locked buffers"), 1, said)


# of the GenICam standard
PIXEL_FORMATS = {"Mono8": 0x01080001, "Mono10": 0x01100003, "Mono12": 0x01100005, "Mono14": 0x01100025,
                 "Mono16": 0x01100007, "Mono12p": 0x010C0047, "Mono12Packed": 0x010C0006}


def description_with(names):
    """The description of the fake camera with other pixel formats."""
    ctypes.CDLL("libaravis-0.8.so.0")  # it has the description
    text = Gio.resources_lookup_data("/org/aravis/arv-fake-camera.xml", 0).get_data().decode()
    entries = "".join(f'<EnumEntry Name="{name}" NameSpace="Standard"><Value>{PIXEL_FORMATS[name]}</Value></EnumEntry>'
                      for name in names)
    text, n = re.subn(r'(<Enumeration Name="PixelFormat".*?</DisplayName>).*?(<pValue>PixelFormatRegister)',
                      lambda found: found[1] + entries + found[2], text, flags=re.S)
    if n != 1:
        raise unittest.SkipTest("this Aravis describes its fake camera in another way")
    return text


@unittest.skipUnless(CAMERA and Gst.ElementFactory.find("aravissrc"),
                     "aravissrc or arv-fake-gv-camera-0.8 is not installed")
class PixelFormats(unittest.TestCase):
    """What gst-imaging centroids makes of a camera with these formats, in Mono8 when it is opened. The
    fake camera fills the frames of Mono8 and Mono16 alone; the others are dark."""
    def check(self, formats, expected, *arguments, status=(0, 1)):
        """Where all is dark no cell is valid, which is status 1, but the files are there."""
        with tempfile.TemporaryDirectory() as folder:
            description = os.path.join(folder, "camera.xml")
            with open(description, "w") as file:
                file.write(description_with(formats))
            cleanups = []
            try:
                start_camera(lambda *call: cleanups.append(call), "-g", description)
                printed = command(folder, "centroids", "--camera", f"aravis:Aravis-Fake-{SERIAL}", "--frames", "2", "-o", "out",
                                  "columns=2", "rows=2", "pitch-x=60", "pitch-y=60", *arguments, status=status)
                result = result_of(os.path.join(folder, "out")) if isinstance(status, tuple) else None
            finally:
                for call, *values in reversed(cleanups):
                    call(*values)
        if not isinstance(status, tuple):
            self.assertIn(expected, printed)
        else:
            self.assertEqual((result["format"], result["bit-depth"]), expected, printed)
            self.assertEqual(result["frames"], 2)
        return result

    def test_bits_of_the_only_format_of_more_than_8(self):
        for bits in 10, 12, 14:
            with self.subTest(bits=bits):
                result = self.check(["Mono8", f"Mono{bits}", "Mono12p"], ("GRAY16_LE", bits))
                self.assertIn(["camera", f"The camera sends {bits} bits: bit-depth={bits}"], result["facts"])

    def test_no_bits_of_8_and_16(self):
        self.check(["Mono8", "Mono12p"], ("GRAY8", 0))
        self.check(["Mono8", "Mono12", "Mono16"], ("GRAY16_LE", 0))

    def test_a_format_and_bits_that_are_asked_for(self):
        formats = ["Mono8", "Mono12", "Mono16"]
        self.check(formats, ("GRAY16_LE", 12), "--pixel-format", "Mono12")
        self.check(formats, ("GRAY8", 0), "--pixel-format", "Mono8")
        self.check(formats, ("GRAY16_LE", 12), "--caps", "video/x-raw,format=GRAY16_LE,depth=12")
        self.check(formats, ("GRAY16_LE", 11), "--pixel-format", "Mono12", "bit-depth=11")

    def test_packed_formats_are_refused(self):
        self.check(["Mono12p", "Mono12Packed"], "None of them is among Mono16, Mono14,", status=3)
        self.check(["Mono8", "Mono12p"], "--pixel-format is Mono12p; it needs one of them that is among",
                   "--pixel-format", "Mono12p", status=2)


if __name__ == "__main__":
    main()
