# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging ao record: telemetry of a loop in FITS, read back by aotpy and astropy."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

import numpy as np

from support import SOURCE, TIMEOUT, Gst, command, main, result_of, run_command

try:
    import aotpy
    from astropy.io import fits
except ImportError:
    aotpy = None

CELLS, PITCH, COMMANDS, FRAMES = 5, 9, 7, 12
SIZE = CELLS * PITCH  # odd: rows of GStreamer have padding
N = CELLS * CELLS
SENSOR = f"shcentroid columns={CELLS} rows={CELLS} pitch-x={PITCH} pitch-y={PITCH} fields=slopes threshold=20"


def spots(dtype, rng):
    """Frames of moving spots; cell 3 is dark in each"""
    y, x = np.mgrid[:SIZE, :SIZE]
    frames = np.zeros((FRAMES, SIZE, SIZE))
    for frame in frames:
        for i in set(range(N)) - {3}:
            row, column = divmod(i, CELLS)
            dx, dy = rng.normal(0, 0.4, 2)
            frame += 200 * np.exp(-((x - column * PITCH - 4 - dx) ** 2 + (y - row * PITCH - 4 - dy) ** 2) / 2)
    return np.round(frames).astype(dtype)


def loop_of(source, control):
    """Returns: slopes and commands of each frame, and its offset, by the pads of the elements"""
    pipeline = Gst.parse_launch(f"{source} ! {SENSOR} name=sh ! shreconstruct matrix-location={control} gain=0.5 ! queue ! appsink name=out sync=false"
                                " sh.results ! queue ! other/tensors ! appsink name=slopes sync=false")
    pipeline.set_state(Gst.State.PLAYING)
    found = []
    try:
        while True:
            samples = [pipeline.get_by_name(name).emit("try-pull-sample", TIMEOUT * Gst.SECOND) for name in ("out", "slopes")]
            if not all(samples):
                return [np.array(values) for values in zip(*found)]
            buffers = [sample.get_buffer() for sample in samples]
            commands, slopes = [np.frombuffer(b.extract_dup(0, b.get_size()), np.uint8) for b in buffers]
            found.append((slopes[:8 * N].view(np.float32).reshape(2, N), commands.view(np.float32), buffers[0].offset))
    finally:
        pipeline.set_state(Gst.State.NULL)


@unittest.skipUnless(aotpy, "there is no aotpy; tools/venv installs it")
class RecordTest(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)
        self.work = tempfile.TemporaryDirectory()
        self.folder = self.work.name
        self.control = self.save("control.npy", self.rng.normal(size=(COMMANDS, 2 * N)).astype(np.float32))

    def tearDown(self):
        self.work.cleanup()

    def save(self, name, values):
        path = os.path.join(self.folder, name)
        np.save(path, values)
        return path

    def record(self, pipeline, *words, status=0):
        return command(self.folder, "ao", "record", pipeline, "-o", "out", "--overwrite", *words, status=status)

    def read(self):
        path = os.path.join(self.folder, "out", "telemetry.fits")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with fits.open(path) as hdus:
                hdus.verify("exception")
            system = aotpy.AOSystem.read_from_file(path)
        return system, system.wavefront_sensors[0], system.loops[0]

    def test_everything_of_a_frame_is_in_one_row(self):
        for dtype in ("u1", "u2"):
            with self.subTest(dtype=dtype):
                frames = spots(dtype, self.rng)
                source = f"picturesrc location={self.save('spots.npy', frames)} framerate=250/1"
                slopes, commands, _offsets = loop_of(source, self.control)
                self.record(f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} gain=0.5 ! fakesink", "--name", "O'Bench")
                system, sensor, loop = self.read()
                self.assertEqual((system.name, system.ao_mode), ("O'Bench", "SCAO"))
                self.assertIn("gain=0.5", system.config)
                np.testing.assert_array_equal(sensor.detector.pixel_intensities.data, frames)
                expected = slopes.copy()
                expected[:, :, 3] = np.nan
                np.testing.assert_array_equal(sensor.measurements.data, expected)
                self.assertTrue(np.isfinite(expected).any())
                np.testing.assert_array_equal(loop.commands.data, commands)
                np.testing.assert_allclose(loop.modal_coefficients.data, commands)  # one for each mode, without modes
                self.assertEqual((loop.framerate, loop.closed, sensor.subaperture_size), (250, True, PITCH))
                self.assertEqual(list(loop.time.frame_numbers), list(range(FRAMES)))
                self.assertTrue((np.diff(loop.time.timestamps) >= 0).all())
                self.assertEqual(loop.time.uid, sensor.measurements.time.uid)
                np.testing.assert_array_equal(sensor.subaperture_mask.data, np.arange(N).reshape(CELLS, CELLS))
                control = np.load(self.control)
                np.testing.assert_array_equal(loop.control_matrix.data, control.reshape(COMMANDS, 2, N))
                np.testing.assert_array_equal((loop.time_filter_num.data, loop.time_filter_den.data[:, 1:]), [[[0.5]], [[-1]]])
                self.assertTrue(loop.delay is None or np.isnan(loop.delay))

    def test_frames_that_are_missing_are_missing_numbers(self):
        frames = spots("u2", self.rng)
        for i in (0, 1, 2, 5, 6, 7, 8):
            self.save(f"frame{i:02d}.npy", frames[i])
        source = f"picturesrc location={self.folder}/frame%02d.npy"
        self.record(f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink")
        _system, sensor, loop = self.read()
        self.assertEqual(list(loop.time.frame_numbers), [0, 1, 2, 5, 6, 7, 8])
        np.testing.assert_array_equal(sensor.detector.pixel_intensities.data, frames[[0, 1, 2, 5, 6, 7, 8]])
        result = result_of(os.path.join(self.folder, "out"))
        self.assertEqual((result["missing"], [figure["name"] for figure in result["figures"] if figure["met"] is False]), (2, ["frames missing"]))

    def test_modes_and_the_order_of_slopes(self):
        control = self.rng.normal(size=(4, 2 * N)).astype(np.float32)  # x and y of each cell in turn
        modes = self.rng.normal(size=(COMMANDS, 4)).astype(np.float32)
        interaction = self.rng.normal(size=(2 * N, COMMANDS)).astype(np.float32)
        files = {name: self.save(f"{name}.npy", values) for name, values in
                 (("matrix", control), ("modes", modes), ("interaction", interaction), ("reference", np.arange(COMMANDS, dtype=np.float32)))}
        source = f"picturesrc location={self.save('spots.npy', spots('u2', self.rng))}"
        terms = np.array([[0.9, 0.05], [0.4, -0.1]])
        files["controller"] = self.save("controller.npy", terms)
        settings = " ".join(f"{name}-location={path}" for name, path in files.items()) + ' mode-gains="<1.0, 0.5, 2.0, 0.0>"'
        self.record(f"{source} ! {SENSOR} ! shreconstruct slope-order=interleaved {settings} loop=open ! fakesink", "--no-pixels", "--frames", "4", "--delay", "1.5")
        _system, sensor, loop = self.read()
        self.assertEqual((len(loop.commands.data), len(sensor.measurements.data), loop.closed, sensor.detector), (4, 4, False, None))
        np.testing.assert_array_equal(loop.measurements_to_modes.data, control.reshape(4, N, 2).transpose(0, 2, 1))
        np.testing.assert_array_equal(loop.modes_to_commands.data, modes)
        np.testing.assert_array_equal(loop.interaction_matrix.data, interaction.reshape(N, 2, COMMANDS))
        np.testing.assert_array_equal(loop.ref_commands.data, np.arange(COMMANDS))
        np.testing.assert_array_equal(loop.commands.data, np.tile(np.arange(COMMANDS), (4, 1)))
        self.assertEqual((loop.modal_coefficients.data.shape, loop.delay), ((4, 4), 1.5))
        np.testing.assert_allclose(loop.time_filter_num.data, [[0.4, -0.1], [0.2, -0.05], [0.8, -0.2], [0, 0]])
        np.testing.assert_array_equal(loop.time_filter_den.data, [[1, -0.9, -0.05]])
        # shreconstruct and ao record take the images of a recording by their names
        recorded = shutil.copy(os.path.join(self.folder, "out", "telemetry.fits"), os.path.join(self.folder, "before.fits"))
        settings = " ".join(f"{name}-location={recorded}" for name in ("matrix", "modes", "interaction", "reference"))
        self.record(f"{source} ! {SENSOR} ! shreconstruct {settings} loop=open ! fakesink", "--no-pixels", "--frames", "4")
        again = self.read()[2]
        for name in ("measurements_to_modes", "modes_to_commands", "interaction_matrix", "ref_commands", "commands"):
            np.testing.assert_array_equal(getattr(again, name).data, getattr(loop, name).data)

    def test_slopes_of_other_programs(self):
        """Tensors of one row or an image, in either order, of two rows and of pairs: the same slopes and commands in the file."""
        slopes = self.rng.normal(size=(FRAMES, 2, N)).astype(np.float32)
        slopes[3, :, 4] = np.nan
        control = np.load(self.control)
        expected = -np.nan_to_num(slopes).reshape(FRAMES, -1).cumsum(0) @ control.T
        turns = np.ascontiguousarray(slopes.transpose(0, 2, 1))
        turned = self.save("turned.npy", control.reshape(COMMANDS, 2, N).transpose(0, 2, 1).reshape(COMMANDS, -1))
        for values, shape, matrix, more in ((slopes, (1, 2 * N), self.control, ""), (slopes, (2 * N, 1), self.control, ""), (slopes, (2, N), self.control, ""),
                                            (slopes, (2, N), turned, "slope-order=interleaved"), (slopes, (CELLS, 2 * CELLS), self.control, ""),
                                            (turns, (1, 2 * N), self.control, "input-order=interleaved"),
                                            (turns, (2 * N, 1), turned, "slope-order=interleaved"),
                                            (turns, (N, 2), self.control, ""), (turns, (N, 2), turned, "slope-order=interleaved input-order=x-then-y"),
                                            (slopes, (2 * N, 1), turned, "slope-order=interleaved input-order=x-then-y")):
            with self.subTest(shape=shape, more=more):
                path = self.save("slopes.npy", values.reshape(FRAMES, 1, 2 * N) if shape == (N, 2) else values.reshape(FRAMES, *shape))
                dimensions = f"(string){shape[1]}:{shape[0]}:1:1"  # picturesrc takes an axis of 2 for channels
                caps = f"other/tensors,format=(string)static,num_tensors=1,types=(string)float32,dimensions={dimensions},framerate=(fraction)0/1"
                self.record(f'picturesrc location={path} ! capssetter replace=true caps="{caps}" ! shreconstruct matrix-location={matrix} gain=1 leak=0 {more} ! fakesink')
                _system, sensor, loop = self.read()
                np.testing.assert_array_equal(sensor.measurements.data, slopes)
                np.testing.assert_allclose(loop.commands.data, expected, atol=1e-4)

    def test_files_of_wrong_shapes_are_a_sentence(self):
        source = f"picturesrc location={self.save('spots.npy', spots('u1', self.rng))}"
        for settings, words in ((f"matrix-location={self.save('row.npy', np.ones(2 * N))}", "it needs [commands, 2 cells]"),
                                (f"matrix-location={self.control} controller-location={self.save('terms.npy', np.ones(5))}", "it needs [2, terms]"),
                                (f'matrix-location={self.control} mode-gains="<1.0, 2.0>"', "mode-gains has 2 numbers")):
            self.assertIn(words, self.record(f"{source} ! {SENSOR} ! shreconstruct {settings} ! fakesink", status=1))

    def test_what_was_recorded_before_an_error_is_kept(self):
        frames = spots("u2", self.rng)
        for i in range(3):
            self.save(f"frame{i:02d}.npy", frames[i])
        with open(os.path.join(self.folder, "frame03.npy"), "wb") as file:
            file.write(b"\x93NUMPY\1\0")
        source = f"picturesrc location={self.folder}/frame%02d.npy"
        printed = self.record(f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink", status=3)
        self.assertRegex(printed, r"frame03\.npy.* The 3 frames before are in .*/out: telemetry\.fits\.")
        self.assertEqual(printed.count("frame03.npy"), 1)
        _system, sensor, _loop = self.read()
        np.testing.assert_array_equal(sensor.detector.pixel_intensities.data, frames[:3])

    def test_slopes_that_change_their_shape_end_it(self):
        """Without a control matrix shreconstruct follows the sensor."""
        sources = [f"picturesrc location={self.save(f'{cells}.npy', np.ones((3, 2, cells), np.float32))} ! c." for cells in (N, N - 1)]
        printed = self.record(f"concat name=c ! shreconstruct commands=3 ! fakesink {' '.join(sources)}", status=3)
        self.assertRegex(printed, "The slopes change from .* The 3 frames before are in ")
        self.assertEqual(len(self.read()[2].commands.data), 3)

    def test_an_error_in_the_recording_ends_it_with_a_sentence(self):
        """It was printed for each frame, and the command ran on."""
        source = f"picturesrc location={self.save('spots.npy', spots('u1', self.rng))} loop=true framerate=200/1 ! identity sync=true"
        words = f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink"
        faulty = ("import sys; from gst_imaging import command; from gst_imaging.ao import recorder; real = recorder.Recorder.time_of\n"
                  "recorder.Recorder.time_of = lambda self, buffer: real(self, buffer if len(self) < 5 else None)\n"
                  "sys.exit(command.main(sys.argv[1:]))")
        done = subprocess.run([sys.executable, "-B", "-c", faulty, "ao", "record", words, "-o", "out"], cwd=self.folder, capture_output=True, text=True,
                              timeout=TIMEOUT, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"AttributeError: .* \(recorder.py, line \d+\)\. Please report it\. The 5 frames before are in ")
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(len(self.read()[2].commands.data), 5)

    def test_a_full_disk_leaves_what_was_recorded(self):
        """While frames are recorded, and while telemetry.fits is written, which needs the same space once more."""
        frames = spots("u2", self.rng)
        source = f"picturesrc location={self.save('spots.npy', frames)} loop=true"
        small = os.path.join(self.folder, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", small], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("No file system can be mounted here.")
        try:
            for words in ((), ("--frames", "1500")):
                printed = command(self.folder, "ao", "record", f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink",
                                  "-o", "small/out", "--overwrite", *words, status=4)
                self.assertRegex(printed, r"No space left on device\. The \d+ frames before are in .*small/out: frames.npy, slopes.npy")
                self.assertEqual(printed.count("space"), 1, printed)
                out = os.path.join(small, "out")
                n = result_of(out)["frames"]
                self.assertEqual(n, 1500) if words else self.assertGreater(n, 1500)
                found = {name: np.load(os.path.join(out, f"{name}.npy"), mmap_mode="r")
                         for name in ("frames", "slopes", "commands", "modes", "times")}
                self.assertEqual({name: values.shape for name, values in found.items()}, {
                    "frames": (n, SIZE, SIZE), "slopes": (n, 2, N), "commands": (n, COMMANDS), "modes": (n, COMMANDS), "times": (n, 3)})
                np.testing.assert_array_equal(found["frames"], frames[np.arange(n) % FRAMES])
                np.testing.assert_array_equal(found["times"][:, 0], np.arange(n))
                np.testing.assert_array_equal(found["commands"], found["modes"])
                np.testing.assert_array_equal(found["slopes"][FRAMES:2 * FRAMES], found["slopes"][:FRAMES])
                self.assertEqual(sorted(os.listdir(out)), sorted([f"{name}.npy" for name in found] + ["report.html", "result.json"]))
                del found  # which are maps of files
                shutil.rmtree(out)
        finally:
            subprocess.run(["umount", "-l", small], check=True)

    def test_a_small_disk_keeps_what_fits(self):
        source = f"picturesrc location={self.save('spots.npy', spots('u2', self.rng))} loop=true"
        for size in 300, 600, 1500:
            small = os.path.join(self.folder, f"small{size}")
            os.mkdir(small)
            if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", small], stderr=subprocess.DEVNULL, check=False).returncode:
                self.skipTest("No file system can be mounted here.")
            try:
                printed = command(self.folder, "ao", "record", f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink",
                                  "-o", f"small{size}/out", status=4)
                self.assertRegex(printed, r"No space left on device\. The \d+ frames before are in ")
                self.assertGreater(result_of(os.path.join(small, "out"))["frames"] * SIZE ** 2 * 2, size * 1000 / 4)
                self.assertIn("report.html", os.listdir(os.path.join(small, "out")))
            finally:
                subprocess.run(["umount", "-l", small], check=True)

    def stop(self, frames, number):
        """Records these frames, again and again, and sends a signal. Returns: what was printed"""
        source = f"picturesrc location={self.save('spots.npy', frames)} loop=true framerate=200/1 ! identity sync=true"
        recording = subprocess.Popen(
            [sys.executable, "-B", "-m", "gst_imaging", "ao", "record",
             f"{source} ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink", "-o", "out"],
            cwd=self.folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        rows, end = os.path.join(self.folder, ".out.gst-imaging-work", ".commands"), time.monotonic() + TIMEOUT
        while not (os.path.exists(rows) and os.path.getsize(rows)) and recording.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        recording.send_signal(number)
        _out, printed = recording.communicate(timeout=TIMEOUT)
        self.assertEqual(recording.returncode, -number, printed)
        return printed

    def test_what_a_killed_recording_left_is_not_removed_unasked(self):
        frames = spots("u1", self.rng)
        self.stop(frames, signal.SIGKILL)
        hidden = os.path.join(self.folder, ".out.gst-imaging-work")
        words = (f"picturesrc location={self.folder}/spots.npy ! {SENSOR} ! shreconstruct matrix-location={self.control} ! fakesink", "-o", "out")
        before = sorted(os.listdir(hidden))
        for _ in range(2):
            done = run_command("ao", "record", *words, folder=self.folder)
            self.assertEqual(done.returncode, 4)
            self.assertRegex(done.stderr, r"\.out\.gst-imaging-work has what a run that was killed had recorded \(\d files\)")
            self.assertEqual(sorted(os.listdir(hidden)), before)
        recorded = np.memmap(os.path.join(hidden, ".frames"), "u1", "r", 128)
        recorded = recorded[:len(recorded) // SIZE ** 2 * SIZE ** 2].reshape(-1, SIZE, SIZE)
        self.assertGreater(len(recorded), 0)
        np.testing.assert_array_equal(recorded, frames[np.arange(len(recorded)) % FRAMES])
        self.assertIn("They are removed.", command(self.folder, "ao", "record", *words, "--overwrite"))

    def test_ctrl_c_writes_what_there_is(self):
        frames = spots("u2", self.rng)
        printed = self.stop(frames, signal.SIGINT)
        self.assertIn("Complete: ", printed)
        _system, sensor, loop = self.read()
        n = len(loop.commands.data)
        self.assertGreater(n, 0)
        np.testing.assert_array_equal(sensor.detector.pixel_intensities.data, frames[np.arange(n) % FRAMES])

    def test_wrong_use(self):
        source = f"picturesrc location={self.save('spots.npy', spots('u2', self.rng))}"
        for pipeline, words, part in (
                (f"{source} ! fakesink", (), "has 0 elements shreconstruct"),
                (f"{source} ! {SENSOR.replace('slopes', 'all')} ! shreconstruct matrix-location={self.control} ! fakesink", (),
                 "set fields=slopes"),
                ("picturesrc location='a", (), "cannot be read"),
                (f"{source} ! {SENSOR} ! shreconstruct commands=3 ! fakesink", ("--keep", "3"), "--keep is no option of ao record"),
                (f"{source} ! {SENSOR} ! shreconstruct commands=3 ! fakesink", ("--frames", "0"), "it must be 1 or more")):
            with self.subTest(part=part):
                self.assertIn(part, self.record(pipeline, *words, status=2))
                self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))


if __name__ == "__main__":
    main()
