# SPDX-License-Identifier: LGPL-2.1-or-later
"""Closed loops of shcentroid and shreconstruct with a telescope of HCIPy: its Kolmogorov screen, mirror, lenslets and detector, with diffraction.

AO_LOOP_LENSLETS: lenslets across the pupil of 0.2 m each, 10 without it.
"""
import os
import sys
import unittest
import warnings

try:  # before GStreamer: its SciPy crashes when it is loaded after it
    import hcipy
except ImportError:
    hcipy = None

import numpy as np

from support import SOURCE, FolderCase, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata
from gst_imaging.ao.stream import Stream

N = int(os.environ.get("AO_LOOP_LENSLETS", "10"))
PITCH, RATE, WAVELENGTH, LENSLET = 10, 500, 500e-9, 0.2
OFFSET, THRESHOLD, MIN_FLUX, PHOTONS, READ_NOISE = 100, 112, 500, 5000, 3.0
GAIN, DELAY, N_FRAMES = 0.5, 2, 300
APART = 8  # actuators that are poked at once: no lenslet sees two of them
SENSOR = (f"shcentroid name=sh columns={N} rows={N} pitch-x={PITCH} pitch-y={PITCH} fields=slopes threshold-mode=absolute"
          f" threshold={THRESHOLD} min-flux={MIN_FLUX}")


class Telescope:
    """A round pupil, and actuators at the corners of its lenslets. Spots have a width of two pixels (lambda / d)."""

    def __init__(self, n_frames):
        diameter = LENSLET * N
        self.grid = hcipy.make_pupil_grid(N * PITCH, diameter)
        middle = np.arange(N) + 0.5 - N / 2
        # HCIPy's own square array has a lenslet in the middle also where N is even
        lenslets = hcipy.CartesianGrid(hcipy.SeparatedCoords([middle * LENSLET] * 2))
        focal_length = 2 * LENSLET / PITCH * LENSLET / WAVELENGTH
        self.optics = hcipy.ShackHartmannWavefrontSensorOptics(self.grid, hcipy.MicroLensArray(self.grid, lenslets, focal_length))
        self.lit = (np.hypot(middle, middle[:, None]) < N / 2).ravel()
        self.aperture = hcipy.Field(np.kron(self.lit.reshape(N, N), np.ones((PITCH, PITCH))).ravel(), self.grid)
        actuators = hcipy.make_gaussian_influence_functions(self.grid, N + 1, LENSLET, crosstalk=0.2)
        place = np.arange(N + 1) - N / 2
        used = np.flatnonzero((np.hypot(place, place[:, None]) < N / 2 + 0.8).ravel())
        self.places = np.stack(np.divmod(used, N + 1), -1)  # row and column of the corner
        # by an index, which keeps the matrix sparse: dense it has 1.7 GB for 40 x 40 lenslets, and each frame reads it
        self.mirror = hcipy.DeformableMirror(actuators[used])
        self.n_actuators = len(used)
        self.layer = hcipy.FiniteAtmosphericLayer(self.grid, hcipy.Cn_squared_from_fried_parameter(0.15, 500e-9), velocity=8.0, seed=4,
                                                  oversampling=2 + n_frames * 8 / RATE / diameter)
        self.detector = hcipy.NoisyDetector(self.grid, read_noise=READ_NOISE)
        rows, columns = np.indices((N * PITCH, N * PITCH)) // PITCH
        self.estimator = hcipy.ShackHartmannWavefrontSensorEstimator(lenslets, (rows * N + columns).ravel(), self.lit)
        self.restart()

    def restart(self):
        """The same air and noise from the first frame on, with a flat mirror."""
        np.random.seed(7)  # HCIPy's detector has no generator of its own
        self.sent, self.number = [np.zeros(self.n_actuators)] * DELAY, 0

    def light(self, commands, is_flat=False):
        """Returns: what the lenslets make of the mirror with these commands, in rad, and of the air"""
        self.mirror.actuators = commands * WAVELENGTH / (4 * np.pi)
        wavefront = hcipy.Wavefront(self.aperture, WAVELENGTH)
        wavefront.total_power = PHOTONS * self.lit.sum()
        if not is_flat:
            wavefront = self.layer(wavefront)
        return self.optics(self.mirror(wavefront))

    def air(self):
        self.layer.t = self.number / RATE
        return self.layer.phase_for(WAVELENGTH)

    def residual(self):
        """Returns: rms of the phase, without and with the mirror, in rad"""
        self.mirror.actuators = self.sent[0] * WAVELENGTH / (4 * np.pi)
        lit = self.aperture > 0
        air = self.air()[lit]
        return air.std(), (air + self.mirror.phase_for(WAVELENGTH)[lit]).std()

    def frame(self):
        self.detector.integrate(self.light(self.sent[0]), 1)
        return np.clip(np.rint(self.detector.read_out() + OFFSET), 0, 65535).astype("<u2").reshape(N * PITCH, -1)

    def send(self, commands):
        self.sent = self.sent[1:] + [np.array(commands, float)]
        self.number += 1

    def slopes(self, counts):
        """Of HCIPy, in pixels, 0 without light. counts: with the offset"""
        light = hcipy.Field(np.maximum(np.asarray(counts, float).ravel() - THRESHOLD, 0), self.grid)
        with np.errstate(invalid="ignore", divide="ignore"):
            measured = np.array(self.estimator.estimate([light])) * PITCH / LENSLET
        flux = light.reshape(N, PITCH, N, PITCH).sum((1, 3)).ravel()
        slopes = np.zeros((2, N * N))
        slopes[:, self.lit] = np.where(flux[self.lit] < MIN_FLUX, 0, measured)
        return slopes.ravel()

    def interaction(self):
        """Noise-free pokes of every eighth actuator in both directions at once; a lenslet belongs to the nearest of them."""
        matrix = np.zeros((2, N, N, self.n_actuators))
        cells = np.indices((N, N)) + 0.5
        for first in np.ndindex(APART, APART):
            poked = np.flatnonzero((self.places % APART == first).all(-1))
            if poked.size == 0:
                continue
            commands = np.zeros(self.n_actuators)
            commands[poked] = 0.5
            up, down = (self.slopes(self.light(sign * commands, True).power + OFFSET).reshape(2, N, N) for sign in (1, -1))
            apart = np.abs(cells[:, None] - self.places[poked].T[:, :, None, None]).max(0)
            seen = np.where(apart.min(0) < APART / 2, up - down, 0)
            nearest = poked[apart.argmin(0)]
            rows, columns = np.indices((N, N))
            matrix[:, rows, columns, nearest] = seen
        return matrix.reshape(-1, self.n_actuators)


@unittest.skipUnless(hcipy, "there is no HCIPy; tools/venv installs it")
class HcipyLoop(FolderCase):
    def test_a_loop_is_that_of_hcipy_in_float64(self):
        warnings.simplefilter("ignore", DeprecationWarning)  # of HCIPy, about SciPy
        tel = Telescope(N_FRAMES)
        control = np.linalg.pinv(tel.interaction(), rcond=0.05).astype(np.float32)
        path = self.path("r.npy")
        np.save(path, control)
        control = control.astype(float)
        state, worst, squares, left = np.zeros(tel.n_actuators), [], [], []
        tel.restart()
        with Stream(f"{SENSOR} ! shreconstruct matrix-location={path} gain={GAIN}", N * PITCH, N * PITCH) as stream:
            for _ in range(N_FRAMES):
                left.append(tel.residual())
                buffer = stream.buffer(tel.frame())
                measured = metadata.results(buffer, "sh")
                slopes = measured["values"].astype(float).reshape(-1)
                slopes[np.tile(measured["flags"] & 227 != 0, 2)] = 0
                state -= GAIN * (control @ slopes)
                commands = np.frombuffer(metadata.read_bytes(buffer), np.float32).astype(float)
                worst.append(np.abs(commands - state).max())
                squares.append(np.mean(state ** 2))
                tel.send(commands)
        own, twin_left = np.zeros(tel.n_actuators), []
        tel.restart()
        for _ in range(N_FRAMES):
            twin_left.append(tel.residual()[1])
            own = own - GAIN * (control @ tel.slopes(tel.frame()))
            tel.send(own)
        opened, left = np.sqrt(np.mean(np.square(left[50:]), 0))
        twin_left = np.sqrt(np.mean(np.square(twin_left[50:])))
        difference = max(worst) / np.sqrt(np.mean(squares))
        print(f"{N} x {N}: {opened:.2f} rad without the mirror, {left:.3f} with it, {twin_left:.3f} by HCIPy in float64;"
              f" commands differ by {difference:.1e} of their rms", file=sys.stderr)
        self.assertLess(difference, 1e-5)
        self.assertLess(abs(left / twin_left - 1), 0.01)
        self.assertLess(left, 0.25 * opened)


if __name__ == "__main__":
    main()
