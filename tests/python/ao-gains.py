# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging ao gains: against gains found by trying them on the truth, and in closed loops with the simulated telescope."""
import os
import re
import sys
import unittest

import numpy as np

from support import SOURCE, FolderCase, command, main, name_axes, result_of

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata
from gst_imaging.ao import aot, gains, loopdata, recorder, simulator, telemetry
from gst_imaging.ao.stream import Stream
from gst_imaging.command import Failure

try:
    import aotpy
except ImportError:
    aotpy = None

FRAMES, CELLS = 6000, 12


def smooth(rng, n_frames, *memories):
    """Noise that is averaged over some frames, again and again, with a variance of 1."""
    values = rng.normal(size=n_frames + 2000)
    for memory in memories:
        out = np.zeros_like(values)
        for t in range(1, len(values)):
            out[t] = memory * out[t - 1] + values[t]
        values = out
    return values[2000:] / values[2000:].std()


def close(truth, noise, a, b, delay):
    """A loop of one mode, term by term. Returns: u, q, and what is left of the truth"""
    u, q, left = (np.zeros(len(truth)) for _ in range(3))
    whole, part = int(delay), delay - int(delay)
    for t in range(len(truth)):
        acts = (1 - part) * (q[t - whole] if t >= whole else 0) + part * (q[t - whole - 1] if t > whole else 0)
        left[t] = truth[t] - acts
        u[t] = left[t] + noise[t]
        q[t] = sum(a[i] * q[t - 1 - i] for i in range(len(a)) if t > i) + sum(b[i] * u[t - i] for i in range(len(b)) if t >= i)
    return u, q, left


def left_of(values):
    return np.mean(values[len(values) // 10:] ** 2)


class Chosen(FolderCase):
    """Modes of known motion and noise, as slopes of a made-up sensor and commands of a made-up mirror."""

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(4)
        motions = [(3.0, (0.998, 0.9)), (1.0, (0.99, 0.8)), (1.0, (0.95,)), (0.3, (0.99,)), (0.2, (0.9, 0.5)), (0.1, (0.7,))]
        self.truth = np.array([size * smooth(rng, FRAMES, *memories) for size, memories in motions])
        self.noise = np.array([0.02, 0.5, 0.1, 0.3, 0.05, 0.2])[:, None] * rng.normal(size=self.truth.shape)
        n = len(motions)
        self.control = np.linalg.qr(rng.normal(size=(2 * CELLS, n)))[0].T.astype(np.float32)
        self.modes = rng.normal(size=(n + 2, n)).astype(np.float32)

    def record(self, a, b, delay):
        """Writes slopes, commands and matrices of the loop with one controller."""
        u, q, self.left = (np.array(part) for part in zip(*(close(x, noise, a, b, delay) for x, noise in zip(self.truth, self.noise))))
        self.save("slopes.npy", (-u.T @ self.control.astype(float)).reshape(-1, 2, CELLS))
        self.save("commands.npy", q.T @ self.modes.T.astype(float) + 7)
        self.save("reference.npy", np.full(len(self.modes), 7.0))
        self.save("control.npy", self.control)
        self.save("modes.npy", self.modes)

    def save(self, name, values):
        np.save(self.path(name), values)

    def run_gains(self, *words, status=0, slopes="slopes.npy"):
        return command(self.folder, "ao", "gains", slopes, "--commands", "commands.npy", "--matrix", "control.npy", "--mode-commands",
                       "modes.npy", "--reference", "reference.npy", "-o", "out", "--overwrite", *words, status=status)

    def check_chosen(self, a, b, delay, margin=2):
        """The residual with the chosen controller is within 2 % of the smallest that any gain up to the largest leaves."""
        worse = 0
        terms = np.load(self.path("out", "controller.npy"))
        self.assertEqual(terms.shape, (len(self.truth), 2, len(a)))
        rows = {row[0]: row for row in result_of(self.path("out"))["modes"]}
        for mode, (truth, noise) in enumerate(zip(self.truth, self.noise)):
            chosen = left_of(close(truth, noise, *terms[mode].astype(float), delay)[2])
            most = rows[mode][3] / b[0]
            self.assertLessEqual(terms[mode][1][0] / b[0], most * 1.0001)
            found = [left_of(close(truth, noise, a, factor * np.array(b), delay)[2]) for factor in np.geomspace(most / 60, most, 60)]
            self.assertLessEqual(chosen, 1.02 * min(found), f"mode {mode}")
            worse += left_of(self.left[mode]) > 1.02 * min(found)
        self.assertGreater(worse, len(self.truth) // 2)  # the gain of the recording would not pass

    def test_an_integrator(self):
        self.record([1], [0.25], 2)
        printed = self.run_gains("--gain", "0.25", "--delay", "2")
        self.assertNotIn("warning", printed)
        self.check_chosen([1], [0.25], 2)
        found = result_of(self.path("out"))
        np.testing.assert_allclose([row[3] for row in found["modes"]], 0.5, rtol=1e-3)  # oscillates from 1 on
        np.testing.assert_allclose([found["modes"][i][4] for i in (1, 3)], self.noise.var(1)[[1, 3]], rtol=0.1)  # others move fast
        for row, left in zip(found["modes"], self.left):
            self.assertAlmostEqual(row[5] / (left_of(left) + self.noise[row[0]].var()), 1, delta=0.06)
        self.assertLess(found["residual"], 1)
        self.assertIn("gain before", printed)

    def test_a_leak_and_a_part_of_a_frame(self):
        self.record([0.9], [0.2], 1.6)
        self.assertNotIn("warning", self.run_gains("--gain", "0.2", "--leak", "0.1", "--delay", "1.6"))
        self.check_chosen([0.9], [0.2], 1.6)

    def test_a_short_recording(self):
        self.record([1], [0.25], 2)
        for name in ("slopes.npy", "commands.npy"):
            self.save("all-" + name, np.load(self.path(name)))
        for n_frames, status in ((201, 3), (202, 0), (257, 0), (300, 0)):
            for name in ("slopes.npy", "commands.npy"):
                self.save(name, np.load(self.path("all-" + name))[:n_frames])
            printed = self.run_gains("--gain", "0.25", "--delay", "2", status=status)
            self.assertNotIn("Traceback", printed)
            self.assertIn("gain before" if status == 0 else "gains need at least 202", printed)
            self.assertIn("R D is not measured" if status == 0 else "gains need", printed)

    def test_a_controller_of_a_file(self):
        a, b = [1.0, 0.0], [0.4, -0.3]  # proportional and integral
        self.record(a, b, 2)
        self.save("pi.npy", np.array([a, b]))
        self.assertNotIn("warning", self.run_gains("--controller", "pi.npy", "--delay", "2"))
        self.check_chosen(a, b, 2)

    def test_a_matrix_of_another_scale_is_noticed(self):
        for scale, gain, told in ((3.5, 0.12, 3.5), (2, 0.25, 2), (0.5, 0.5, 0.5), (0.3, 0.9, 0.3)):
            self.record([1], [scale * gain], 2)
            self.save("control.npy", scale * self.control)
            printed = self.run_gains("--gain", str(gain), "--delay", "2")
            found = re.search(r"sees commands ([0-9.]+) times as large as they are \(([0-9.]+) to ([0-9.]+) is possible\): R D is not 1", printed)
            self.assertTrue(found, printed)
            best, low, high = map(float, found.groups())
            self.assertAlmostEqual(best / told, 1, delta=0.25)
            self.assertTrue(low <= told <= high, found[0])
            loop = scale * np.load(self.path("out", "controller.npy"))[:, 1, 0]
            self.assertTrue(0.24 < loop.max() < 0.75, (scale, loop))  # oscillates from 1 on

    def test_a_mode_of_another_scale_has_its_own_gain(self):
        self.record([1], [0.25], 2)
        self.run_gains("--gain", "0.25", "--delay", "2")
        expected = np.load(self.path("out", "controller.npy"))[:, 1, 0]
        scales = np.where(np.arange(len(self.truth)) == 3, 3.2, 1)
        controllers = 0.25 * scales
        u, q, _left = (np.array(part) for part in zip(*(close(x, noise, [1], [b], 2) for x, noise, b in zip(self.truth, self.noise, controllers))))
        self.save("slopes.npy", (-(scales[:, None] * u).T @ self.control.astype(float)).reshape(FRAMES, 2, CELLS))
        self.save("commands.npy", q.T @ self.modes.T.astype(float) + 7)
        self.assertIn("R D is not 1 in 1 of 6 modes: 3.", self.run_gains("--gain", "0.25", "--delay", "2"))
        np.testing.assert_allclose(np.load(self.path("out", "controller.npy"))[:, 1, 0] * scales, expected, rtol=0.15)

    def test_stability_is_that_of_the_poles(self):
        for a, b, delay in (([1], [1], 1), ([1], [1], 2), ([1], [1], 3), ([0.97], [1], 2), ([1, 0], [0.8, -0.5], 2), ([1], [1], 1.5)):
            limit = gains.stability(np, np.array([a], float), np.array([b], float), delay)[0]
            whole, part = int(delay), delay - int(delay)
            for factor, stable in (0.98, True), (1.02, False):
                poles = np.zeros(whole + 2 + len(b) + len(a))
                poles[0] = 1
                poles[1:1 + len(a)] -= a
                for shift, share in (whole, 1 - part), (whole + 1, part):
                    poles[shift:shift + len(b)] += factor * limit * share * np.array(b)
                self.assertEqual(abs(np.roots(poles)).max() < 1, stable, (a, b, delay, limit))

    def test_a_control_matrix_whose_axes_are_named_the_other_way_round_is_transposed(self):
        self.record([1], [0.25], 2)
        self.run_gains("--gain", "0.25", "--delay", "2")
        expected = np.load(self.path("out", "controller.npy"))
        interleaved = self.control.reshape(-1, 2, CELLS).transpose(0, 2, 1).reshape(self.control.shape)
        for values, name in (self.control, "slopes x-then-y"), (interleaved, "slopes interleaved"), (self.control, "slopes"):
            self.save("control.npy", np.ascontiguousarray(values.T))
            name_axes(self.path("control.npy"), values.T.shape, "mode", name)
            self.assertIn("was transposed", self.run_gains("--gain", "0.25", "--delay", "2"))
            np.testing.assert_array_equal(np.load(self.path("out", "controller.npy")), expected)

    def test_matrices_are_cubes_of_cacao(self):
        self.record([1], [0.25], 2)
        self.run_gains("--gain", "0.25", "--delay", "2")
        expected = np.load(self.path("out", "controller.npy"))
        self.save("control.npy", self.control.reshape(-1, 6, 2 * CELLS // 6))
        self.save("modes.npy", self.modes.T.reshape(-1, 4, 2))
        self.run_gains("--gain", "0.25", "--delay", "2")
        np.testing.assert_array_equal(np.load(self.path("out", "controller.npy")), expected)

    def test_doubts_are_told(self):
        self.record([1], [0.25], 2)
        self.assertIn("have a gain of 0.25 and a leak of 0, not 0.6 and 0.", self.run_gains("--gain", "0.6", "--delay", "2"))
        self.assertIn("have a gain of 0.25 and a leak of 0, not 0.25 and 0.01.", self.run_gains("--gain", "0.25", "--leak", "0.01", "--delay", "2"))
        self.save("pi.npy", np.array([[1, 0], [0.5, 0]]))
        self.assertIn("have 0.5 times the gain", self.run_gains("--controller", "pi.npy", "--delay", "2"))
        for told in "1", "4":
            self.assertIn(f"A delay of 2 explains slopes and commands clearly better than {told}.", self.run_gains("--gain", "0.25", "--delay", told))
        commands = np.load(self.path("commands.npy"))
        for rows, words in ((-1, "1 row later"), (1, "1 row earlier"), (2, "2 rows earlier")):
            self.save("commands.npy", np.roll(commands, rows, 0))
            self.assertIn(f"are those of the slopes {words}.", self.run_gains("--gain", "0.25", "--delay", "2"))
        self.save("commands.npy", np.where(np.arange(FRAMES)[:, None] % 20 == 0, commands - 0.3 * (commands - 7), commands))
        self.assertRegex(self.run_gains("--gain", "0.25", "--delay", "2"), "In [0-9]+ of 5995 frames the commands are not those that the controller makes")
        slopes = np.load(self.path("slopes.npy"))
        slopes[5:100, 0, 3] = slopes[:, 1, 8] = np.nan
        slopes[:, 0, 8] = np.nan
        self.save("dark.npy", slopes)
        self.assertIn("count as 0", self.run_gains("--gain", "0.25", "--delay", "2", slopes="dark.npy"))

    def test_commands_that_act_on_nothing_are_told(self):
        self.record([1], [0.25], FRAMES)
        self.assertIn("as if the commands had acted on nothing", self.run_gains("--gain", "0.25", "--delay", "2"))

    def test_a_small_control_matrix_does_not_act_on_nothing(self):
        rng = np.random.default_rng(2)
        self.truth = np.array([smooth(rng, FRAMES, 0.99) for _mode in self.truth])
        self.noise = 0.3 * rng.normal(size=self.truth.shape)
        for scale in 0.1, 0.15:
            self.record([1], [0.5 * scale], 2)
            self.save("control.npy", np.float32(scale) * self.control)
            printed = self.run_gains("--gain", "0.5", "--delay", "2")
            self.assertNotIn("acted on nothing", printed)
            slower, most = re.search(r"at least ([0-9.]+) times slower.* chosen for ([0-9.]+)", printed).groups()
            self.assertTrue(1 < float(slower) * scale * 3 < 3 and scale < float(most) < 0.5, printed)

    def test_a_smooth_motion_is_no_alarm(self):
        t, rng = np.arange(FRAMES) / 20, np.random.default_rng(1)
        self.truth = 0.3 * np.array([np.cos(t + i) + np.cos(t / 1.35 + i * i) for i in range(len(self.truth))])
        self.noise = 0.003 * rng.normal(size=self.truth.shape)
        self.record([1], [0.3], 1)
        printed = self.run_gains("--gain", "0.3", "--delay", "1")
        self.assertNotIn("acted on nothing", printed)
        self.assertNotIn("is not 1", printed)
        self.record([1], [0.3], FRAMES)
        self.assertIn("acted on nothing", self.run_gains("--gain", "0.3", "--delay", "1"))

    def test_a_slow_motion_without_noise_does_not_tell_the_scale(self):
        t = np.arange(600) * 2 * np.pi / 200
        self.truth = 0.3 * np.array([np.cos(t + i) for i in range(len(self.truth))])
        self.noise = np.zeros(self.truth.shape)
        self.record([1], [0.2], 3)
        printed = self.run_gains("--gain", "0.2", "--delay", "3")
        self.assertNotIn("is not 1", printed)
        self.assertIn("R D cannot be measured", printed)
        np.testing.assert_array_equal(np.load(self.path("out", "controller.npy"))[:, 1, 0], np.float32(0.2))  # which it says to keep
        self.assertEqual({row[-1] for row in result_of(self.path("out"))["modes"]}, {None})

    def test_pictures_that_are_played_again_are_told(self):
        self.truth, self.noise = (np.tile(values[:, :30], 20) for values in (self.truth, self.noise))
        u, q, _left = (np.array(part) for part in zip(*(close(x, noise, [1], [0.25], FRAMES) for x, noise in zip(self.truth, self.noise))))
        self.record([1], [0.25], 2)
        self.save("slopes.npy", (-u.T @ self.control.astype(float)).reshape(-1, 2, CELLS).astype(np.float32))
        self.save("commands.npy", q.T @ self.modes.T.astype(float) + 7)
        printed = self.run_gains("--gain", "0.25", "--delay", "2")
        self.assertIn("The slopes of frame 30 and later are those of frame 0 and later. The slopes look as if the commands had acted on nothing", printed)

    def test_commands_may_be_those_that_picturesink_writes(self):
        self.record([1], [0.25], 2)
        self.run_gains("--gain", "0.25", "--delay", "2")
        expected = np.load(self.path("out", "controller.npy"))
        self.save("commands.npy", np.load(self.path("commands.npy"))[:, None])
        self.run_gains("--gain", "0.25", "--delay", "2")
        np.testing.assert_array_equal(np.load(self.path("out", "controller.npy")), expected)

    def test_empty_arrays_are_a_sentence(self):
        self.record([1], [0.25], 2)
        good = "--gain", "0.25", "--delay", "2"
        for name, shape, sentence in (("slopes.npy", (0, 2, CELLS), "slopes.npy has no values"), ("slopes.npy", (FRAMES, 2, 0), "array of slopes is empty"),
                                      ("commands.npy", (FRAMES, 0), "array of commands is empty"), ("control.npy", (0, 2 * CELLS), "control matrix is empty")):
            values = np.load(self.path(name))
            self.save(name, np.zeros(shape))
            self.assertIn(sentence, self.run_gains(*good, status=3))
            self.save(name, values)

    def test_bad_input(self):
        self.record([1], [0.25], 2)
        good = "--gain", "0.25", "--delay", "2"
        slopes = np.load(self.path("slopes.npy"))
        for name, values, sentence in (("few.npy", slopes[:150], "150 frames"), ("200.npy", slopes[:200], "has 200 frames; gains need at least 202 with --delay 2"),
                                       ("one.npy", slopes[..., None], "frames, 2, cells"),
                                       ("other.npy", slopes[:, :, :5], "slopes of 5 cells; the control matrix is for 12"),
                                       ("nan.npy", np.where(np.arange(FRAMES)[:, None, None] % 3 == 0, np.nan, slopes), "33 % of the slopes are NaN"),
                                       ("infinite.npy", np.where(slopes == slopes[70, 0, 0], np.inf, slopes), "in frame 70")):
            self.save(name, values)
            commands = np.load(self.path("commands.npy"))
            if len(values) != FRAMES:
                self.assertIn("The commands have the shape", self.run_gains(*good, slopes=name, status=3))
                self.save("commands.npy", commands[:len(values)])
            self.assertIn(sentence, self.run_gains(*good, slopes=name, status=3))
            self.save("commands.npy", commands)
        self.save("commands.npy", np.full_like(np.load(self.path("commands.npy")), 7))
        self.assertIn("the loop was open", self.run_gains(*good, status=3))
        for words, sentence in ((("--gain", "0.25"), "give --delay"), (("--delay", "2"), "give --gain"), (("--gain", "0.25", "--delay", "0.5"), "1 to 20"),
                                ((*good, "--margin", "1"), "above 1"), ((*good, "--keep", "3"), "no option of ao gains")):
            self.assertIn(sentence, self.run_gains(*words, status=2))
        aot.write(np, self.path("modal.fits"), [], {}, [aot.Image(name, self.control.reshape(-1, 2, CELLS)) for name in ("MEASUREMENTS_TO_MODES", "OTHER")])
        self.assertIn("give --mode-commands", command(self.folder, "ao", "gains", "slopes.npy", "--commands", "commands.npy", "--matrix", "modal.fits",
                                                      "-o", "out", *good, status=2))
        self.save("commands.npy", commands)
        self.assertIn("The control matrix has the shape [6, 24]; it needs [8, 24]", command(
            self.folder, "ao", "gains", "slopes.npy", "--commands", "commands.npy", "--matrix", "control.npy", "-o", "out", *good, status=3))
        self.assertFalse(os.path.exists(self.path("out")))


class Simulated(FolderCase):
    N, PITCH, GAIN = 10, 8, 0.5
    SENSOR = f"shcentroid name=sh columns={N} rows={N} pitch-x={PITCH} pitch-y={PITCH} fields=slopes threshold-mode=absolute threshold=112 min-flux=20"

    def telescope(self, photons, n_frames, seed=1):
        tel = simulator.Telescope(self.N, self.PITCH, diameter=2, photons=photons, n_frames=n_frames, seed=1)
        tel.rng = np.random.default_rng(seed)
        return tel

    def stream(self, more):
        return Stream(f"{self.SENSOR} ! {more}", self.N * self.PITCH, self.N * self.PITCH)

    def matrices(self, photons):
        """Modes of the mirror, and what a sensor without noise would measure of them."""
        tel = self.telescope(photons, 1)
        tel.is_noisy = False
        tel.air = lambda: 3.0 * np.nonzero(tel.corners)[1].astype(float)
        with self.stream("identity") as stream:
            slopes = metadata.results(stream.buffer(tel.frame()), "sh")["values"].reshape(2, -1)[0][tel.lit.ravel()]
        left, strengths, right = np.linalg.svd(np.mean(slopes) / (3 * tel.gain) * tel.interaction(), full_matrices=False)
        used = strengths > 0.1 * strengths[0]
        np.save(self.path("control.npy"), (left.T[used] / strengths[used, None]).astype(np.float32))
        np.save(self.path("modes.npy"), right.T[:, used].astype(np.float32))
        return f"shreconstruct name=rc matrix-location={self.path('control.npy')} modes-location={self.path('modes.npy')}"

    def residual(self, tel, stream, n_frames, settle=100):
        left = []
        for _ in range(n_frames):
            left.append(tel.residual())
            tel.send(stream.commands(tel.frame()))
        return np.sqrt(np.mean(np.square(left[settle:])))

    def run_light(self, photons, n_frames=1100):
        """Returns: residual with the gain of the recording and with chosen ones, of other noise, and the result"""
        mirror = self.matrices(photons)
        with self.stream(f"{mirror} gain={self.GAIN}") as stream:
            record = recorder.Recorder(np, stream.pipeline, self.folder, with_frames=False)
            self.residual(self.telescope(photons, n_frames), stream, n_frames)
            files = telemetry.matrices(np, lambda path, _kind: np.load(path), record.element, lambda path, _axis: np.load(path).reshape(-1, 2, self.N ** 2))
            telemetry.write(np, self.path("loop.fits"), record, files, "SCAO", None, "test", delay=2)
            record.remove()
        printed = command(self.folder, "ao", "gains", "loop.fits", "-o", "out", "--overwrite")
        self.assertNotIn("warning", printed)
        self.check_other_writer()
        left = []
        for more in f"gain={self.GAIN}", f"controller-location={self.path('out', 'controller.npy')}":
            with self.stream(f"{mirror} {more}") as stream:
                left.append(self.residual(self.telescope(photons, n_frames, seed=9), stream, n_frames))
        print(f"{photons} photons: {left[0]:.3f} rad with a gain of {self.GAIN}, {left[1]:.3f} with gains of modes;"
              f" {result_of(self.path('out'))['residual']:.3f} times expected", file=sys.stderr)
        return (*left, result_of(self.path("out")))

    def check_other_writer(self):
        """The same loop as aotpy writes it gets the same gains."""
        if not aotpy:
            return
        aotpy.AOSystem.read_from_file(self.path("loop.fits")).write_to_file(self.path("other.fits"))
        command(self.folder, "ao", "gains", "other.fits", "-o", "other", "--overwrite")
        np.testing.assert_array_equal(*(np.load(self.path(name, "controller.npy")) for name in ("out", "other")))

    def test_where_noise_dominates_the_residual_falls(self):
        before, after, found = self.run_light(250)
        self.assertLess(after, 0.95 * before)
        self.assertGreater(found["frames"], 1000)

    def test_where_light_is_bright_nothing_is_lost(self):
        before, after, _found = self.run_light(20000)
        self.assertLess(after, 1.005 * before)

    def test_the_file_tells_an_open_loop(self):
        mirror = self.matrices(5000)
        with self.stream(f"{mirror} loop=open") as stream:
            record = recorder.Recorder(np, stream.pipeline, self.folder, with_frames=False)
            self.residual(self.telescope(5000, 300), stream, 300)
            files = telemetry.matrices(np, lambda path, _kind: np.load(path), record.element, lambda path, _axis: np.load(path).reshape(-1, 2, self.N ** 2))
            telemetry.write(np, self.path("loop.fits"), record, files, "SCAO", None, "test")
            record.remove()
        self.assertIn("open loop", command(self.folder, "ao", "gains", "loop.fits", "-o", "out", "--delay", "2", status=3))
        self.damage()
        with open(self.path("loop.fits"), "r+b") as file:
            file.truncate(20000)
        self.assertIn("cannot be read as telemetry", command(self.folder, "ao", "gains", "loop.fits", "-o", "out", "--delay", "2", status=3))


    def damage(self):
        """Wrong bytes in headers and tables are a sentence, or change nothing that matters."""
        with open(self.path("loop.fits"), "rb") as file:
            data = file.read().replace(b"Open", b"    ")
        rng, n_told = np.random.default_rng(8), 0
        places = [i for i in range(len(data) // 2880 * 2880) if data[i:i + 1] in b"0123456789ABCDEFPQT'="]
        for place in rng.choice(places, 300):
            with open(self.path("damaged.fits"), "wb") as file:
                file.write(data[:place] + rng.choice(list(b"0123456789AKPQ' ")).astype(np.uint8).tobytes() + data[place + 1:])
            try:
                loopdata.of_telemetry(np, self.path("damaged.fits"), lambda _text: None)
            except Failure:
                n_told += 1
        self.assertTrue(5 < n_told < 250, n_told)


if __name__ == "__main__":
    main()
