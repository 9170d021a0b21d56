# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging ao calibrate, with the simulated telescope behind streams of shared memory, as a camera and a mirror are."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

from support import SOURCE, TIMEOUT, Gst, command, launch, main, result_of, run_command

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata
from gst_imaging.ao.simulator import Telescope

N, PITCH = 4, 8
SENSOR = f"shcentroid columns={N} rows={N} pitch-x={PITCH} pitch-y={PITCH} fields=slopes threshold-mode=absolute threshold=115 min-flux=500"


class Bench:
    """A camera that sends a frame when the mirror has its commands, or a tenth of a second after the one before."""

    def __init__(self, slew=None, has_light=True):
        self.telescope = Telescope(N, PITCH, diameter=2, photons=20000)
        self.telescope.air = lambda: 0
        self.telescope.is_dark = not has_light
        self.slew, self.at, self.is_over, self.n_sent = slew, np.zeros(self.telescope.n_actuators), False, 0
        size = N * PITCH
        self.camera = Gst.parse_launch(
            f"appsrc name=in format=time caps=video/x-raw,format=GRAY16_LE,width={size},height={size},framerate=500/1 ! shmimsink stream=wfs sync=false")
        self.mirror = None
        self.thread = threading.Thread(target=self.run)

    def wait_for_commands(self):
        """Returns: those of a frame, None where none came"""
        if not self.mirror and os.path.exists(os.path.join(os.environ["MILK_SHM_DIR"], "dm.im.shm")):
            self.mirror = Gst.parse_launch("shmimsrc stream=dm ! appsink name=out sync=false")
            self.mirror.set_state(Gst.State.PLAYING)
        if not self.mirror:
            time.sleep(0.02)
            return None
        sample = self.mirror.get_by_name("out").emit("try-pull-sample", Gst.SECOND // 10)
        return np.frombuffer(metadata.read_bytes(sample.get_buffer()), np.float32).astype(float).ravel() if sample else None

    def run(self):
        self.camera.set_state(Gst.State.PLAYING)
        while not self.is_over:
            self.camera.get_by_name("in").emit("push-buffer", Gst.Buffer.new_wrapped(self.telescope.frame().tobytes()))
            self.n_sent += 1
            commands = self.wait_for_commands()
            if commands is not None:
                step = commands - self.at
                self.at = self.at + (np.clip(step, -self.slew, self.slew) if self.slew else step)
                self.telescope.send(self.at)
        for pipeline in filter(None, (self.camera, self.mirror)):
            pipeline.set_state(Gst.State.NULL)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.is_over = True
        self.thread.join()


class CalibrateTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.folder = self.work.name
        before = os.environ.get("MILK_SHM_DIR")
        os.environ["MILK_SHM_DIR"] = self.folder
        self.addCleanup(lambda: os.environ.pop("MILK_SHM_DIR") if before is None else os.environ.update(MILK_SHM_DIR=before))
        self.n_actuators = Telescope(N, PITCH, diameter=2).n_actuators

    def words(self, more="", *words, sensor=SENSOR):
        pipeline = f"shmimsrc stream=wfs ! {sensor} ! shreconstruct commands={self.n_actuators} {more} ! shmimsink stream=dm"
        return "ao", "calibrate", pipeline, "-o", "out", *words

    def loop_takes(self, matrix, second=None):
        """second: the lenslet that the matrix is told to have in place of the second. Returns: what the loop says of it"""
        if second:
            beside = os.path.join(self.folder, matrix + ".json")
            with open(beside, encoding="utf-8") as file:
                told = json.load(file)
            told["row-column"][1] = [int(number) for number in second.split(",")]
            with open(beside, "w", encoding="utf-8") as file:
                json.dump(told, file)
        return launch(*f"videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width={N * PITCH},height={N * PITCH} ! {SENSOR} !"
                      f" shreconstruct matrix-location={os.path.join(self.folder, matrix)} ! fakesink".split(), status=1 if second else 0)

    def wait_for_stream(self):
        end = time.monotonic() + TIMEOUT
        while not os.path.exists(os.path.join(self.folder, "wfs.im.shm")) and time.monotonic() < end:
            time.sleep(0.01)

    def test_the_matrix_is_that_of_the_telescope(self):
        with Bench() as bench:
            self.wait_for_stream()
            printed = command(self.folder, *self.words("", "--poke", "2", "--method", "hadamard", "--repeats", "3"), MILK_SHM_DIR=self.folder)
            true = bench.telescope.interaction()
        self.assertRegex(printed, r"latency: 2\.0\d frames")
        out = os.path.join(self.folder, "out")
        result = result_of(out)
        self.assertAlmostEqual(result["latency"], 2, delta=0.05)
        self.assertEqual(result["warnings"], [])
        self.assertEqual((result["judgement"], result["commands_unseen"]), ("good", 0))
        settings = {entry["name"]: entry["value"] for entry in result["settings"]}
        self.assertEqual((settings["calibration-method"], settings["calibration-poke"], settings["calibration-repeats"]), ("hadamard", "2", "3"))
        found, noise = (np.load(os.path.join(out, name)) for name in ("interaction.npy", "interaction-noise.npy"))
        self.assertEqual(found.shape, (2 * N * N, self.n_actuators))
        lit = np.isfinite(noise).all(1)
        self.assertEqual(lit.sum(), 2 * bench.telescope.lit.sum())
        scale = (found[lit] * true[lit]).sum() / (true[lit] ** 2).sum()  # the threshold cuts the wings of the spots
        self.assertGreater(scale, 0.9)
        self.assertLess(np.abs(found[lit] - scale * true[lit]).max(), 0.05 * np.abs(true).max())
        self.assertIn("poke", json.dumps(result["settings"]))
        with open(os.path.join(out, "interaction.npy.json"), encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual(told["row-column"], [[row, column] for row in range(N) for column in range(N)])
        self.assertEqual([axis["name"] for axis in told["quantity"]["axes"]], ["command", "slopes x-then-y"])
        command(self.folder, "ao", "invert", "out/interaction.npy", "-o", "control")
        self.loop_takes("control/control.npy")
        self.assertIn("cell 1 is that of row 0, column 1, and in the matrix that of row 1, column 0", self.loop_takes("control/control.npy", "1,0"))

    def test_warnings_are_in_the_report(self):
        with Bench(slew=1.5):
            self.wait_for_stream()
            done = run_command(*self.words("calibration-poke=1 calibration-method=hadamard"), folder=self.folder, MILK_SHM_DIR=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("set slew-limit", done.stderr)
            self.assertTrue(any("set slew-limit" in warning for warning in result_of(os.path.join(self.folder, "out"))["warnings"]))
            done = run_command(*self.words("calibration-poke=1 calibration-method=sinusoidal", "--overwrite"), folder=self.folder, MILK_SHM_DIR=self.folder)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("set slew-limit", done.stderr)
            self.assertIn("interaction.npy", os.listdir(os.path.join(self.folder, "out")))  # of before

    def test_saturated_spots_are_found(self):
        with Bench():
            self.wait_for_stream()
            for name, sensor in (("frames", f"{SENSOR} saturation=300"), ("tensors", f"{SENSOR} name=sh ! fakesink async=false sh.results ! queue")):
                done = run_command(*self.words("", "--poke", "2", "--method", "hadamard", "--repeats", "2", "--overwrite", sensor=sensor), folder=self.folder, MILK_SHM_DIR=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                part = "spots of 12 cells are saturated" if name == "frames" else "saturation: It is not known"
                self.assertIn(part, done.stdout)

    def test_without_light_nothing_is_written(self):
        with Bench(has_light=False):
            self.wait_for_stream()
            done = run_command(*self.words(), folder=self.folder, MILK_SHM_DIR=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("do not follow the pokes", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))

    def test_ctrl_c_leaves_nothing(self):
        with Bench() as bench:
            self.wait_for_stream()
            calibrating = subprocess.Popen(
                [sys.executable, "-B", "-m", "gst_imaging", *self.words("", "--poke", "2", "--repeats", "1000")], cwd=self.folder, stderr=subprocess.PIPE,
                text=True, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            end = time.monotonic() + TIMEOUT
            while not np.any(bench.at) and calibrating.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            calibrating.send_signal(signal.SIGINT)
            _out, printed = calibrating.communicate(timeout=TIMEOUT)
            time.sleep(0.5)  # the mirror takes what was sent last
        self.assertEqual(calibrating.returncode, -signal.SIGINT, printed)
        self.assertIn("nothing was written", printed)
        self.assertFalse(np.any(bench.at), "the mirror is left poked")
        self.assertEqual([name for name in os.listdir(self.folder) if "out" in name], [])

    def test_wrong_use(self):
        slopes = "appsrc ! fakesink"
        frames = f"videotestsrc num-buffers=40 ! video/x-raw,format=GRAY8,width={N * PITCH},height={N * PITCH} ! {SENSOR} !"
        for pipeline, words, status, part in (
                (slopes, (), 2, "has 0 elements shreconstruct; a calibration is of one"),
                (f"{frames} shreconstruct commands=3 ! fakesink", ("--poke", "0"), 2, "--poke is 0"),
                (f"{frames} shreconstruct commands=3 ! fakesink", ("--repeats", "1"), 2, "--repeats is 1; it goes from 2 to 1000"),
                (f"{frames} shreconstruct commands=3 ! fakesink", ("--keep", "1"), 2, "--keep is no option of ao calibrate"),
                (f"{frames} shreconstruct commands=3 ! fakesink", (), 1, "ended"),
                (f"appsrc caps=video/x-raw,format=GRAY8,width={N * PITCH},height={N * PITCH},framerate=1/1 ! {SENSOR} ! shreconstruct commands=3 ! fakesink",
                 (), 1, "No frame has come to shreconstruct")):
            done = run_command("ao", "calibrate", pipeline, "-o", "out", *words, folder=self.folder, MILK_SHM_DIR=self.folder)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))


main()
