# SPDX-License-Identifier: LGPL-2.1-or-later
"""Closed loops of shcentroid and shreconstruct with a simulated telescope, beside the same loop in float64.

AO_LOOP_LENSLETS: lenslets across the pupil of 0.2 m each, 10 without it; ao-loop-40.py has 40. AO_LOOP_FOLDER: where numbers for plots go.
"""
import functools
import os
import sys
import unittest

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: threads that wait for the next product would spin

import numpy as np

from support import SOURCE, FolderCase, Gst, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata
from gst_imaging.ao import simulator
from gst_imaging.ao.stream import Stream

N = int(os.environ.get("AO_LOOP_LENSLETS", "10"))
PITCH, THRESHOLD, GAIN, DELAY = 8, 115, 0.5, 2
SENSOR = (f"shcentroid name=sh columns={N} rows={N} pitch-x={PITCH} pitch-y={PITCH} fields=slopes threshold-mode=absolute"
          f" threshold={THRESHOLD} min-flux=500")


def telescope(n_frames, **options):
    return simulator.Telescope(N, PITCH, diameter=0.2 * N, n_frames=n_frames, delay=DELAY, **options)


def centroids(frame):
    """Slopes [2 N N] in float64, NaN without light."""
    light = np.maximum(frame.astype(float) - THRESHOLD, 0)
    cells = light.reshape(N, PITCH, N, PITCH).swapaxes(1, 2).reshape(N * N, PITCH, PITCH)
    flux, at = cells.sum((1, 2)), np.arange(PITCH) - (PITCH - 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.concatenate([cells.sum(1) @ at / flux, cells.sum(2) @ at / flux])
    slopes[np.tile(flux < 500, 2)] = np.nan
    return slopes


def save(name, values):
    if "AO_LOOP_FOLDER" in os.environ:
        np.save(os.path.join(os.environ["AO_LOOP_FOLDER"], name), values)


class Loop(FolderCase):
    @staticmethod
    @functools.lru_cache(maxsize=1)
    def make_matrices():
        """What a noise-free sensor would measure, and its inverse without modes below 5 % of the strongest."""
        interaction = (Loop.centroid_gain() * telescope(1).interaction()).astype(np.float32)
        squares, modes = np.linalg.eigh(interaction.T.astype(float) @ interaction.astype(float))
        modes, squares = modes[:, squares > 0.05 ** 2 * squares[-1]], squares[squares > 0.05 ** 2 * squares[-1]]
        return interaction, ((modes / squares) @ modes.T @ interaction.T).astype(np.float32)

    def matrices(self):
        """Returns: paths of both, and both"""
        interaction, control = self.make_matrices()
        paths = [os.path.join(self.folder, name) for name in ("d.npy", "r.npy")]
        for path, values in zip(paths, (interaction, control)):
            np.save(path, values)
        return (*paths, interaction, control)

    @staticmethod
    def centroid_gain(photons=5000):
        """The threshold cuts the wings of a spot."""
        tel = telescope(1, photons=photons)
        tel.is_noisy = False
        tel.air = lambda: 0.2 * np.nonzero(tel.corners)[1].astype(float)
        slopes = centroids(tel.frame())[:N * N][tel.lit.ravel()]
        return np.mean(slopes) / (0.2 * tel.gain)

    def run_loop(self, tel, stream, n_frames, before=lambda t: None, check=None):
        """Returns: rms of what is left, in rad, of each frame"""
        left = []
        for t in range(n_frames):
            before(t)
            left.append(tel.residual().std())
            buffer = stream.buffer(tel.frame())
            commands = np.frombuffer(metadata.read_bytes(buffer), np.float32).astype(float)
            if check:
                check(buffer, commands)
            tel.send(commands)
        return np.array(left)

    def stream(self, control, more=""):
        return Stream(f"{SENSOR} ! shreconstruct name=rc matrix-location={control} gain={GAIN} {more}", N * PITCH, N * PITCH)

    def test_a_loop_is_that_of_float64(self):
        n_frames = 300
        tel, twin = telescope(n_frames), telescope(n_frames)
        _d, path, _interaction, control = self.matrices()
        control = control.astype(float)
        state, worst, squares = np.zeros(tel.n_actuators), [], []

        def check(buffer, commands):
            measured = metadata.results(buffer, "sh")
            slopes = measured["values"].astype(float).reshape(-1)
            slopes[np.tile(measured["flags"] & 227 != 0, 2)] = 0
            state[:] -= GAIN * (control @ slopes)
            worst.append(np.abs(commands - state).max())
            squares.append(np.mean(state ** 2))
        with self.stream(path) as stream:
            left = self.run_loop(tel, stream, n_frames, check=check)
        self.assertLess(max(worst), 1e-5 * np.sqrt(np.mean(squares)))
        own, twin_left, opened = np.zeros(tel.n_actuators), [], []
        for _ in range(n_frames):
            twin_left.append(twin.residual().std())
            opened.append(twin.air().std())
            own -= GAIN * (control @ np.nan_to_num(centroids(twin.frame())))
            twin.send(own)
        late = slice(50, None)
        rms, twin_rms, open_rms = (np.sqrt(np.mean(np.square(values[late]))) for values in (left, np.array(twin_left), np.array(opened)))
        print(f"{N} x {N}: {open_rms:.2f} rad without the mirror, {rms:.3f} with it, {twin_rms:.3f} in float64;"
              f" commands differ by {max(worst) / np.sqrt(np.mean(squares)):.1e} of their rms", file=sys.stderr)
        self.assertLess(abs(rms / twin_rms - 1), 0.01)
        self.assertLess(rms, 0.25 * open_rms)
        save("residual.npy", np.stack([left, opened]))

    def test_the_rejection_curve_is_that_of_theory(self):
        n_frames, window = 1024, 128
        tel = telescope(n_frames, photons=50000, r0=0.3)
        _d, path, _interaction, _control = self.matrices()
        to_mirror = np.linalg.solve(tel.influence + 0.01 * np.eye(tel.n_actuators), np.eye(tel.n_actuators))[::7]
        air, left = [], []

        def before(_t):
            air.append(to_mirror @ tel.air())
            left.append(to_mirror @ tel.residual())
        with self.stream(path) as stream:
            self.run_loop(tel, stream, n_frames, before)
        taper, cross, power = np.hanning(window)[:, None], 0, 0
        for first in range(64, n_frames - window + 1, window // 2):
            x, y = (np.fft.rfft(taper * (np.array(part[first:first + window]) - np.mean(part[first:first + window], 0)), axis=0)
                    for part in (air, left))
            cross, power = cross + (y * x.conj()).sum(1), power + (abs(x) ** 2).sum(1)
        measured = abs(cross / power)[2:]
        z = np.exp(-2j * np.pi * np.arange(2, window // 2 + 1) / window)
        theory = abs(1 / (1 + GAIN * z ** DELAY / (1 - z)))
        save("rejection.npy", np.stack([np.arange(2, window // 2 + 1) / window * 500, measured, theory]))
        low = slice(1, 20)  # beyond it the air has less power than the noise
        ratio = measured[low] / theory[low]
        print(f"rejection / theory: {ratio.min():.3f} to {ratio.max():.3f}", file=sys.stderr)
        self.assertLess(abs(np.log(ratio)).max(), 0.15)
        self.assertGreater(measured.max(), 1.2)  # the waterbed

    def test_light_returns_after_a_blackout(self):
        dark, n_frames = range(150, 250), 400
        tel = telescope(n_frames)
        _d, path, _interaction, _control = self.matrices()

        def before(t):
            tel.is_dark = t in dark
        with self.stream(path, "min-valid=0.3") as stream:
            left = self.run_loop(tel, stream, n_frames, before)
        steady = np.sqrt(np.mean(left[50:150] ** 2))
        back = dark[-1] + 1
        print(f"blackout: {left[back]:.2f} rad at the return, then at most {left[back + DELAY:].max():.2f}, steady {steady:.3f}", file=sys.stderr)
        # the first commands are seen DELAY frames after the return
        self.assertLessEqual(left[back + DELAY:].max(), left[back:back + DELAY].max())
        self.assertLess(np.sqrt(np.mean(left[back + 50:] ** 2)), 1.2 * steady)
        save("blackout.npy", left)

    def test_dark_cells_do_not_make_it_unstable(self):
        n_frames = 250
        found = {}
        for name, more in ("lit", ""), ("exclude", f"invalid-policy=exclude exclude-cells={N}"), ("zero", ""):
            tel = telescope(n_frames)
            d, path, _interaction, _control = self.matrices()
            places = np.argwhere(tel.lit)
            if name != "lit":
                chosen = np.random.default_rng(3).choice(len(places), len(places) // 5, replace=False)
                tel.dark_cells[tuple(places[chosen].T)] = True
            with self.stream(path, more + (f" interaction-location={d}" if name == "exclude" else "")) as stream:
                left = self.run_loop(tel, stream, n_frames)
            found[name] = np.sqrt(np.mean(left[150:] ** 2))
        print(f"20 % dark: {found}", file=sys.stderr)
        self.assertLess(found["exclude"], 2 * found["lit"])
        self.assertLess(found["exclude"], found["zero"])

    def test_noisy_pokes_measure_the_interaction_matrix(self):
        """A calibration source is brighter than a star: 100,000 photons a spot."""
        tel = telescope(1, photons=100000)
        tel.air = lambda: 0.0
        tel.residual = tel.mirror
        truth = self.centroid_gain(tel.photons) * tel.interaction()
        path = os.path.join(self.folder, "noisy.npy")
        with Stream(f"{SENSOR} ! shreconstruct name=rc commands={tel.n_actuators} calibration-method=hadamard calibration-poke=2.5"
                    " calibration-repeats=2", N * PITCH, N * PITCH) as stream:
            self.assertTrue(stream.element("rc").emit("calibrate", path))
            bus, message = stream.pipeline.get_bus(), None
            while not message or message.get_structure().get_name() != "shreconstruct-calibration":
                tel.send(stream.commands(tel.frame()))
                message = bus.pop_filtered(Gst.MessageType.ELEMENT)
        told = message.get_structure()
        self.assertEqual((told.get_value("state"), told.get_value("judgement")), ("done", "good"), told.get_value("text"))
        self.assertAlmostEqual(told.get_value("latency"), DELAY, delta=0.05)
        error = np.linalg.norm(np.load(path) - truth) / np.linalg.norm(truth)
        noise = np.load(os.path.join(self.folder, "noisy-noise.npy"))
        noise = np.linalg.norm(noise[np.isfinite(noise)]) / np.linalg.norm(truth)
        print(f"interaction matrix: {100 * error:.2f} % from the truth, of which {100 * noise:.2f} % noise is told, "
              f"{told.get_value('frames')} frames", file=sys.stderr)
        self.assertLess(error, 0.01)
        self.assertAlmostEqual(noise / error, 1, delta=0.2)


class Optics(unittest.TestCase):
    def test_spots_move_as_the_interaction_matrix_says(self):
        tel = telescope(1)
        tel.air = lambda: 0.0
        commands = np.random.default_rng(5).normal(size=tel.n_actuators)
        tel.sent[0] = commands
        np.testing.assert_allclose(tel.slopes().ravel(), tel.interaction() @ commands, rtol=0, atol=1e-12)


class Air(unittest.TestCase):
    def test_the_screen_has_the_structure_function_of_kolmogorov(self):
        for steps in 1, 8, 32:
            r = 0.1 * steps
            found = []
            for seed in range(60):
                screen = simulator.Screen(np.random.default_rng(seed), 0.15, 0.1, 64, 64).values
                found += [((screen[:, steps:] - screen[:, :-steps]) ** 2).mean(), ((screen[steps:] - screen[:-steps]) ** 2).mean()]
            self.assertAlmostEqual(np.mean(found) / (6.88 * (r / 0.15) ** (5 / 3)), 1, delta=0.2)


if __name__ == "__main__":
    main()
