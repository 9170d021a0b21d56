# SPDX-License-Identifier: LGPL-2.1-or-later
"""A telescope with a Shack-Hartmann sensor, a deformable mirror and moving air: enough to close a loop without hardware.

The phase is known at the corners of the lenslets, in rad. A frozen screen of Kolmogorov's turbulence drives over them, a mirror of
Gaussian bumps is subtracted, and each lenslet makes a spot whose place is the mean difference of its corners. No diffraction.
"""
import numpy as np

from . import bases


class Screen:
    """Kolmogorov's turbulence, periodic, with r0 in m: power 0.0229 r0^(-5/3) f^(-11/3) (Noll 1976), by FFT, and five
    octaves of lower frequencies, which an FFT lacks (Lane, Glindemann and Dainty 1992, Waves in Random Media 2, 209)."""

    def __init__(self, rng, r0, step, rows, columns):
        self.step, self.columns = step, columns
        low_x, low_y = 1 / (columns * step), 1 / (rows * step)
        power = r0 ** (-5 / 3) * self.power(np.fft.fftfreq(columns, step), np.fft.fftfreq(rows, step)[:, None], low_x, low_y)
        noise = rng.normal(size=(rows, columns)) + 1j * rng.normal(size=(rows, columns))
        self.values = np.fft.fft2(noise * np.sqrt(power)).real
        y, x = np.arange(rows)[:, None] * step, np.arange(columns) * step
        for _octave in range(5):  # each fills the middle cell of the one before
            low_x, low_y = low_x / 3, low_y / 3
            for i, k in ((i, k) for i in (-1, 0, 1) for k in (-1, 0, 1) if (i, k) != (0, 0)):
                size = np.sqrt(r0 ** (-5 / 3) * self.power(i * low_x, k * low_y, low_x, low_y))
                part = size * (rng.normal() + 1j * rng.normal())
                self.values += (part * np.exp(2j * np.pi * (i * low_x * x + k * low_y * y))).real

    @staticmethod
    def power(fx, fy, width, height):
        """In the cell about a frequency: so that f^2 times it is the mean of 7 x 7 places, as the structure function has f^2
        at low frequencies, where the power falls steeply. 0 in the middle cell."""
        places = (np.arange(7) - 3) / 7
        with np.errstate(divide="ignore", invalid="ignore"):
            total = sum(np.hypot(fx + a * width, fy + b * height) ** (-5 / 3) for a in places for b in places) / 49
            total = total / np.hypot(fx, fy) ** 2
        return 0.0229 * width * height * np.where(np.isfinite(total), total, 0)

    def at(self, distance, rows, columns, stride):
        """The window that has moved by a distance in m along a row."""
        whole, part = divmod(distance / self.step, 1)
        first = (int(whole) + stride * np.arange(columns)) % self.columns
        window = self.values[:stride * rows:stride]
        return (1 - part) * window[:, first] + part * window[:, (first + 1) % self.columns]


class Telescope:
    """n x n lenslets of `pitch` pixels over a round pupil of `diameter` m, and an actuator at each corner of a lit lenslet."""

    def __init__(self, n=40, pitch=8, diameter=8.0, r0=0.15, wind=8.0, rate=500.0, photons=5000, read_noise=3.0, gain=0.12,
                 delay=2, seed=1, n_frames=2000):
        self.n, self.pitch, self.photons, self.read_noise, self.gain = n, pitch, photons, read_noise, gain
        self.rng = np.random.default_rng(seed)
        middle = np.arange(n) + 0.5 - n / 2
        self.lit = np.hypot(middle, middle[:, None]) < n / 2
        self.corners = bases.corners(np, self.lit)
        size = diameter / n
        self.travel = wind / rate
        columns = 2 * (n + 1) + int(2 * n_frames * self.travel / size) + 2
        self.screen = Screen(np.random.default_rng(seed + 1), r0, size / 2, 2 * (n + 1), max(columns, 4 * n))
        self.slopes_of = bases.fried(np, self.lit)  # rad for each rad at the corners
        y, x = np.nonzero(self.corners)
        self.influence = 0.2 ** ((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)  # a neighbour moves by 20 %
        places = np.arange(n + 1)
        self.bump = 0.2 ** ((places[:, None] - places) ** 2)  # the same along one axis
        self.n_actuators = len(x)
        self.sent = [np.zeros(self.n_actuators)] * delay
        self.frame_number, self.is_noisy, self.is_dark, self.dark_cells = 0, True, False, np.zeros((n, n), bool)

    def interaction(self):
        """Returns: the true interaction matrix [2 cells, actuators] of all n x n cells, in pixels; the mirror adds to the phase"""
        matrix = np.zeros((2, self.n * self.n, self.n_actuators))
        matrix[:, self.lit.ravel()] = (self.gain * self.slopes_of @ self.influence).reshape(2, -1, self.n_actuators)
        return matrix.reshape(-1, self.n_actuators)

    def air(self):
        """The phase of the turbulence at the corners, without piston."""
        phase = self.screen.at(self.frame_number * self.travel, self.n + 1, self.n + 1, 2)[self.corners]
        return phase - phase.mean()

    def on_corners(self, values):
        """Values of the lit corners as an array of all of them."""
        every = np.zeros(self.corners.shape)
        every[self.corners] = values
        return every

    def mirror(self):
        """The phase of the commands that were sent `delay` frames ago: influence @ commands, one axis after the other."""
        return (self.bump @ self.on_corners(self.sent[0]) @ self.bump)[self.corners]

    def residual(self):
        """What the sensor sees now: the air and the mirror."""
        left = self.air() + self.mirror()
        return left - left.mean()

    def slopes(self):
        """Shifts of the spots in pixels, [2, n * n], 0 of dark lenslets: gain slopes_of @ residual, by differences."""
        phase = self.on_corners(self.residual())
        along_x, along_y = phase[:, 1:] - phase[:, :-1], phase[1:] - phase[:-1]
        means = np.stack([along_x[1:] + along_x[:-1], along_y[:, 1:] + along_y[:, :-1]]) / 2
        return self.gain * (means * self.lit).reshape(2, -1)

    def frame(self):
        """A frame of 16 bits, with photon and read noise, about an offset of 100."""
        slopes = self.slopes()
        at = np.arange(self.pitch) - (self.pitch - 1) / 2
        spot_x, spot_y = (np.exp(-(at - s[:, None]) ** 2 / 2) for s in slopes)
        lit = (self.lit & ~self.dark_cells).ravel() * (not self.is_dark)
        light = self.photons / (2 * np.pi) * lit[:, None, None] * spot_y[:, :, None] * spot_x[:, None, :]
        light = light.reshape(self.n, self.n, self.pitch, self.pitch).swapaxes(1, 2).reshape(self.n * self.pitch, -1)
        if self.is_noisy:
            light = self.rng.poisson(light) + self.read_noise * self.rng.normal(size=light.shape)
        return np.clip(np.rint(light + 100), 0, 65535).astype("<u2")

    def send(self, commands):
        """The next frame begins. The commands are seen `delay` - 1 frames later."""
        self.sent = self.sent[1:] + [np.array(commands, float)]
        self.frame_number += 1
