# SPDX-License-Identifier: LGPL-2.1-or-later
"""The evaluation of tests/benchmarks/slanted-edge.py against what theory has for a Gaussian, and lapsharpen against its transfer functions."""
import importlib.util
import math
import os
import unittest

from support import SOURCE, main

_spec = importlib.util.spec_from_file_location("slanted_edge", os.path.join(SOURCE, "tests", "benchmarks", "slanted-edge.py"))
edge = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(edge)
CLEAN = edge.make_frame(noise=0)


def gaussian(sigma, frequency):
    return math.exp(-2 * (math.pi * sigma * frequency) ** 2)


def laplacian_gain(amount, frequency):
    """Of 4 neighbours, across the edge."""
    along = [math.cos(2 * math.pi * frequency * part) for part in (math.cos(edge.ANGLE), math.sin(edge.ANGLE))]
    return 1 + amount * (4 - 2 * sum(along))


def seen(sigma, frequency):
    """The MTF of a Gaussian as the evaluation sees it: means of a bin, under the Hamming window"""
    def binned(f):
        turn = math.pi * f / edge.BINS
        return gaussian(sigma, f) * (math.sin(turn) / turn if turn else 1)

    def windowed(f):
        width = 1 / (2 * edge.REACH)
        return 0.54 * binned(f) + 0.23 * (binned(f - width) + binned(f + width))

    return windowed(frequency) / windowed(0)


class Evaluation(unittest.TestCase):
    def test_gaussian(self):
        for blur in 0.7, 1.0, 1.8:
            # not rounded: without noise, rounding is an error of the edge itself
            frame = [edge.ideal_sample(x, y, blur) for y in range(edge.HEIGHT) for x in range(edge.WIDTH)]
            profile = edge.edge_profile(frame, edge.fit_edge(frame))
            for k in range(11):
                self.assertAlmostEqual(edge.modulation(profile, k / 20), seen(blur, k / 20), delta=0.001, msg=f"{blur} {k}")
            half = edge.half_frequency(lambda f, p=profile: edge.modulation(p, f))
            self.assertAlmostEqual(half / edge.half_frequency(lambda f, b=blur: seen(b, f)), 1, delta=0.003)
            # a frame as blurred as that of the benchmark: what the window adds is small
            if blur <= edge.BLUR:
                self.assertAlmostEqual(half * math.pi * blur / math.sqrt(math.log(2) / 2), 1, delta=0.015)

    def test_line(self):
        for frame in CLEAN, edge.make_frame():
            at, slope = edge.fit_edge(frame)
            self.assertAlmostEqual(at, edge.edge_at(0), delta=0.03)
            self.assertAlmostEqual(slope, math.tan(edge.ANGLE), delta=3e-5)

    def test_noise(self):
        frame = edge.make_frame()
        # rounding adds 1/12
        self.assertAlmostEqual(edge.flat_noise(frame, edge.fit_edge(frame)) / math.hypot(edge.NOISE, 12 ** -0.5), 1, delta=0.01)


class Lapsharpen(unittest.TestCase):
    def check(self, settings, gain, noise, bound):
        """@gain: of a frequency across the edge; @noise: of white noise; @bound: of the MTF50, a part of it"""
        noisy = edge.make_frame()
        line = edge.fit_edge(noisy)
        half = edge.evaluate(edge.lapsharpen(CLEAN, settings), edge.fit_edge(CLEAN))[0]
        theory = edge.half_frequency(lambda f: gaussian(edge.BLUR, f) * gain(f))
        self.assertAlmostEqual(half / theory, 1, delta=bound, msg=settings)
        got = edge.flat_noise(edge.lapsharpen(noisy, settings), line) / edge.flat_noise(noisy, line)
        self.assertAlmostEqual(got / noise, 1, delta=0.01, msg=settings)

    def test_laplacian(self):
        for amount in 0.5, 1:
            self.check(f"amount={amount}", lambda f, s=amount: laplacian_gain(s, f), math.hypot(1 + 4 * amount, 2 * amount), 0.02)

    def test_unsharp(self):
        weights = [math.exp(-x * x / 2) for x in range(-4, 5)]
        weights = [w / sum(weights) for w in weights]
        for amount in 1, 2:
            centre = weights[4] ** 2
            rest = sum(w * w for w in weights) ** 2 - centre ** 2
            self.check(f"method=unsharp radius=1 amount={amount}", lambda f, s=amount: 1 + s * (1 - gaussian(1, f)),
                       math.sqrt((1 + amount * (1 - centre)) ** 2 + amount ** 2 * rest), 0.02)


if __name__ == "__main__":
    main()
