# SPDX-License-Identifier: LGPL-2.1-or-later
"""The common-band filter of insarform on pairs whose spectra are shifted by a known part of their width."""
import os
import shutil
import tempfile
import unittest

import numpy as np

from support import launch, main

WIDTH, HEIGHT, BAND = 512, 384, 0.7
COHERENCE = 0.95  # of what both images see


class Band(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, rate, doppler):
        """Both images see the ground through a band of their own. rate: cycles a column between the two views; doppler: cycles a line
        of each. Returns: the phase between them"""
        rng = np.random.default_rng(1)
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        v, u = np.fft.fftfreq(HEIGHT)[:, None], np.fft.fftfreq(WIDTH)[None]
        phase = 2 * np.pi * rate * x + 1.5 * np.sin(x / 80) * np.cos(y / 60)

        def white():
            return rng.normal(size=x.shape) + 1j * rng.normal(size=x.shape)

        ground = white()
        for name, view, centre in ("ref", ground, doppler[0]), ("sec", ground * np.exp(-1j * phase), doppler[1]):
            noisy = COHERENCE ** 0.5 * view + (1 - COHERENCE) ** 0.5 * white()
            away = np.maximum(np.abs(u), np.abs((v - centre + 0.5) % 1 - 0.5))
            image = np.fft.ifft2(np.fft.fft2(noisy) * (away < BAND / 2))
            image.astype("<c8").tofile(self.path(name + ".cf32"))
        return phase

    def form(self, *words):
        source = [f"width={WIDTH}", "format=cf32", "!"]
        launch("-q", "slcsrc", "location=" + self.path("ref.cf32"), *source, "i.reference", "slcsrc", "location=" + self.path("sec.cf32"), *source,
               "i.secondary", "insarform", "name=i", "looks-x=4", "looks-y=4", "flatten=measured", "restore-phase=true", "fringe-window=64",
               *(f"{name}-location={self.path(name)}" for name in ("phase", "coherence", "amplitude")), *words)
        return [np.fromfile(self.path(name), "<f4").reshape(HEIGHT // 4, WIDTH // 4) for name in ("phase", "coherence", "amplitude")]

    def check(self, name, share, words):
        """share: of the spectra that is common"""
        phase = self.make(*{"range": (0.24, (0, 0)), "azimuth": (0.06, (0.1, -0.12)), "both": (0.2, (0.05, -0.11))}[name])
        truth = phase.reshape(HEIGHT // 4, 4, WIDTH // 4, 4).mean((1, 3))
        middle = np.s_[6:-6, 6:-6]
        noise, told = [], []
        for more in [], words:
            found, coherence, amplitude = self.form(*more)
            self.assertTrue(np.isfinite(found).all())
            away = np.angle(np.exp(1j * (found - truth)))[middle]
            noise.append(away.std())
            told.append((coherence[middle].mean(), amplitude[middle].mean()))
            self.assertLess(abs(away.mean()), 0.02)
        print(f"{name}: coherence {told[0][0]:.3f} -> {told[1][0]:.3f}, phase {noise[0]:.3f} -> {noise[1]:.3f} rad rms")
        self.assertAlmostEqual(told[0][0], COHERENCE * share, delta=0.03)
        self.assertGreater(told[1][0], COHERENCE - 0.04)
        self.assertLess(noise[1], 0.75 * noise[0])
        self.assertAlmostEqual(told[1][1] / told[0][1], 1, delta=0.03)  # amplitudes stay

    def test_range(self):
        self.check("range", 1 - 0.24 / BAND, [f"range-bandwidth={BAND}"])

    def test_azimuth(self):
        self.check("azimuth", (1 - 0.06 / BAND) * (1 - 0.22 / BAND), [f"range-bandwidth={BAND}", f"azimuth-bandwidth={BAND}"])

    def test_both(self):
        self.check("both", (1 - 0.2 / BAND) * (1 - 0.16 / BAND), [f"range-bandwidth={BAND}", f"azimuth-bandwidth={BAND}"])

    def test_noise_gains_nothing(self):
        """Images of nothing in common: the filter makes no coherence beyond that of fewer independent samples."""
        self.make(0.06, (0, 0))
        rng = np.random.default_rng(2)
        image = rng.normal(size=(HEIGHT, WIDTH)) + 1j * rng.normal(size=(HEIGHT, WIDTH))
        away = np.maximum(np.abs(np.fft.fftfreq(HEIGHT))[:, None], np.abs(np.fft.fftfreq(WIDTH)))
        np.fft.ifft2(np.fft.fft2(image) * (away < BAND / 2)).astype("<c8").tofile(self.path("sec.cf32"))
        before, after = (self.form(*words)[1].mean() for words in ([], [f"range-bandwidth={BAND}", f"azimuth-bandwidth={BAND}"]))
        print(f"noise: coherence {before:.3f} -> {after:.3f}")
        self.assertLess(after, 1.3 * before)


if __name__ == "__main__":
    main()
