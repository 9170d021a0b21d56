# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each step from pictures to a relief and its picture, against the truth and against the same step in float64 NumPy.

With --table it prints the table of docs/explanation/photostereo.md, with times: of the processor, from a file to a result in memory,
one thread, the least of runs in turns."""
import os
import sys

for name in "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS":
    os.environ[name] = "1"  # before NumPy

import tempfile
import time
import unittest

import numpy as np

from support import SOURCE, TIMEOUT, Gst, main

WIDTH, HEIGHT, MM = 640, 480, 0.15
DOME, ALBEDO, ROOM = 300.0, 0.6, 0.08  # mm; of full scale
LAMPS, RUNS = 16, 20
ONE_THREAD = "backend=cpu n-threads=1"


def angle(a, b):
    """Degrees, along the last axis"""
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class Hill:
    """A hill of 24 mm, which no lamp leaves in shadow; x, y in mm from the middle, z above the mean height."""

    def __init__(self):
        x, y = np.meshgrid(MM * (np.arange(WIDTH) - (WIDTH - 1) / 2), MM * ((HEIGHT - 1) / 2 - np.arange(HEIGHT)))
        z = 24 * np.exp(-(x ** 2 + y ** 2) / 32 ** 2)
        self.normals = unit(np.dstack([2 * x / 32 ** 2 * z, 2 * y / 32 ** 2 * z, np.ones_like(x)]))
        self.places = np.dstack([x, y, z - z.mean()])
        turn, up = 2.4 * np.arange(LAMPS), np.linspace(0.7, 0.95, LAMPS)
        self.lamps = np.stack([np.sqrt(1 - up ** 2) * np.cos(turn), np.sqrt(1 - up ** 2) * np.sin(turn), up], 1)

    def near(self, i, places):
        """Returns: the light vector of lamp i of the dome at places [..., 3]"""
        way = DOME * self.lamps[i] - places
        return DOME ** 2 * way / np.linalg.norm(way, axis=-1, keepdims=True) ** 3

    def pictures(self, light, room=0.0):
        """light: (i) -> the light vector of a lamp, one or of each pixel. Returns: u16"""
        shown = np.stack([ALBEDO * (self.normals * light(i)).sum(-1) for i in range(LAMPS)])
        assert shown.min() > 0 and shown.max() + room < 1
        return np.rint(65535 * (shown + room)).astype(np.uint16)


def play(line, shape):
    """Returns: float32 of the appsink `out`, or u8 of video"""
    pipeline = Gst.parse_launch(line)
    pipeline.set_state(Gst.State.PLAYING)
    sample = pipeline.get_by_name("out").emit("try-pull-sample", TIMEOUT * Gst.SECOND)
    pipeline.set_state(Gst.State.NULL)
    buffer = sample.get_buffer()
    data = buffer.extract_dup(0, buffer.get_size())
    return np.frombuffer(data, np.float32 if len(data) == 4 * np.prod(shape) else np.uint8).reshape(shape)


class Step:
    """What is measured: name, without, ours () and numpy () -> a result, error (result) -> a number"""

    unit, most = "degrees", 0.002

    def __init__(self, folder, hill):
        self.folder, self.hill = folder, hill
        self.file, self.lamps = os.path.join(folder, "in.npy"), os.path.join(folder, "lamps.txt")
        self.prepare()

    def solve(self, words):
        return play(f"picturesrc location={self.file} ! photostereo name=p {ONE_THREAD} robust=none lights-location={self.lamps} {words}"
                    " p.normal ! other/tensors ! appsink name=out sync=false", (HEIGHT, WIDTH, 3))

    def load(self):
        return np.load(self.file).reshape(LAMPS, -1) / 65535

    def error(self, normals):
        return angle(normals.reshape(HEIGHT, WIDTH, 3).astype(float), self.hill.normals).mean()


class Distant(Step):
    name, plain = "normals, far lamps (`robust=none`)", None

    def prepare(self):
        np.save(self.file, self.hill.pictures(lambda i: self.hill.lamps[i]))
        np.savetxt(self.lamps, self.hill.lamps, "%.9f")

    def ours(self):
        return self.solve("")

    def numpy(self):
        return unit((np.linalg.pinv(self.hill.lamps) @ self.load()).T)


class Near(Step):
    name, most = "near lamps, `height-rounds=1`; NumPy is given the true heights", 0.02

    def prepare(self):
        np.save(self.file, self.hill.pictures(lambda i: self.hill.near(i, self.hill.places)))
        np.savetxt(self.lamps, DOME * self.hill.lamps, "%.9f")

    def plain(self):
        return self.solve(f"mm-per-pixel={MM}")

    def ours(self):
        return self.solve(f"mm-per-pixel={MM} height-rounds=1")

    def numpy(self):
        matrix, right = np.zeros((HEIGHT * WIDTH, 3, 3)), np.zeros((HEIGHT * WIDTH, 3))
        for i, grey in enumerate(self.load()):
            vectors = self.hill.near(i, self.hill.places.reshape(-1, 3))
            matrix += vectors[:, :, None] * vectors[:, None]
            right += vectors * grey[:, None]
        return unit(np.linalg.solve(matrix, right[..., None])[..., 0])


class Room(Distant):
    name = "room light of 8 %, `ambient-model=constant`"

    def prepare(self):
        super().prepare()
        np.save(self.file, self.hill.pictures(lambda i: self.hill.lamps[i], ROOM))

    def plain(self):
        return self.solve("")

    def ours(self):
        return self.solve("ambient-model=constant")

    def numpy(self):
        return unit((np.linalg.pinv(np.hstack([self.hill.lamps, np.ones((LAMPS, 1))])) @ self.load())[:3].T)


class Heights(Step):
    name, unit, plain, most = "heights, `poisson`", "mm rms", None, 1e-3

    def prepare(self):
        np.save(self.file, self.hill.normals.astype(np.float32))

    def integrate(self, words):
        return play(f"picturesrc location={self.file} ! normalintegrate name=i {ONE_THREAD} mm-per-pixel={MM} {words} i.tensor !"
                    " appsink name=out sync=false", (HEIGHT, WIDTH))

    def ours(self):
        return self.integrate("")

    def numpy(self):
        """The same sum of squares, by a transform of the map beside its mirror images."""
        n = np.load(self.file).astype(float)
        across = -(n[:, 1:, 0] + n[:, :-1, 0]) / (n[:, 1:, 2] + n[:, :-1, 2])
        down = (n[1:, :, 1] + n[:-1, :, 1]) / (n[1:, :, 2] + n[:-1, :, 2])
        right = np.zeros((HEIGHT, WIDTH))
        right[:, 1:] += across
        right[:, :-1] -= across
        right[1:] += down
        right[:-1] -= down
        whole = np.block([[right, right[:, ::-1]], [right[::-1], right[::-1, ::-1]]])
        y, x = np.arange(2 * HEIGHT)[:, None] * np.pi / HEIGHT, np.arange(WIDTH + 1) * np.pi / WIDTH
        factor = 4 - 2 * np.cos(x) - 2 * np.cos(y)
        factor[0, 0] = 1
        return MM * np.fft.irfft2(np.fft.rfft2(whole) / factor, whole.shape)[:HEIGHT, :WIDTH]

    def error(self, heights):
        off = heights.astype(float) - self.hill.places[..., 2]
        return off.std()


class Points(Heights):
    name, plain = "bent heights, six known points", Heights.ours
    at = np.array([(40, 30), (600, 40), (320, 240), (50, 450), (590, 440), (310, 60)])

    def prepare(self):
        x = self.hill.places[..., 0]
        slopes = -self.hill.normals[..., :2] / self.hill.normals[..., 2:]
        slopes[..., 0] += 0.05 + 0.002 * x  # of lights that are wrong
        np.save(self.file, unit(np.dstack([-slopes, np.ones_like(x)])).astype(np.float32))
        self.known = self.hill.places[self.at[:, 1], self.at[:, 0], 2]
        np.savetxt(self.lamps, np.column_stack([self.at, self.known]), "%.9f")

    def ours(self):
        return self.integrate(f"points-location={self.lamps}")

    def numpy(self):
        heights = super().numpy()
        x, y = self.hill.places[..., 0].ravel(), self.hill.places[..., 1].ravel()
        terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], 1)
        at = self.at[:, 1] * WIDTH + self.at[:, 0]
        bent = np.linalg.solve(terms[at], heights.ravel()[at] - self.known)
        return heights - (terms @ bent).reshape(heights.shape)


class Relight(Step):
    name, unit, plain, most = "picture under a light (relight)", "of 255, largest", None, 1
    azimuth, elevation, gloss = 40.0, 35.0, 0.3

    def prepare(self):
        np.save(self.file, self.hill.normals.astype(np.float32))
        self.truth = self.numpy()

    def ours(self):
        return play(f"relight name=r {ONE_THREAD} azimuth={self.azimuth} elevation={self.elevation} diffuse=0.6 specular={self.gloss} shininess=30"
                    f" gamma=2.2 ! appsink name=out sync=false picturesrc location={self.file} ! r.normal", (HEIGHT, WIDTH, 3))

    def numpy(self):
        normals = np.load(self.file).astype(float)
        turn, up = np.radians((self.azimuth, self.elevation))
        light = np.array([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)])
        facing = normals @ light
        lit = 0.6 * np.maximum(facing, 0) + self.gloss * (facing > 0) * np.maximum(normals @ unit(light + (0, 0, 1)), 0) ** 30
        return np.repeat((255 * np.clip(lit, 0, 1) ** (1 / 2.2))[..., None], 3, 2)

    def error(self, picture):
        return np.abs(picture.astype(float) - self.truth).max()


STEPS = Distant, Near, Room, Heights, Points, Relight


def measure(kind, runs=1):
    """Returns: the errors without the step, of ours, and of NumPy; and seconds of the last two"""
    with tempfile.TemporaryDirectory() as folder:
        step, found, seconds = kind(folder, Hill()), [], [[], []]
        before = step.error(step.plain()) if step.plain else None
        for _ in range(runs):
            for i, run in enumerate((step.ours, step.numpy)):
                start = time.process_time()
                result = run()
                seconds[i].append(time.process_time() - start)
                found.append(step.error(result))
    return (before, *found[:2]), [min(values) for values in seconds]


def cell(value):
    return "" if value is None else f"{value:.2g}" if value >= 1e-9 else "0"


def page_rows():
    """Returns: the errors of the page by name"""
    with open(os.path.join(SOURCE, "docs", "explanation", "photostereo.md"), encoding="utf-8") as file:
        text = file.read()
    table = text.partition("<!-- steps: begin -->\n")[2].partition("<!-- steps: end -->")[0]
    rows = [[word.strip() for word in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {name: cells[:3] for name, _unit, *cells in rows}


class Steps(unittest.TestCase):
    def test_each_step_is_as_exact_as_float64(self):
        """And as the page says. Ours may add the rounding of float32, and one of 255."""
        page = page_rows()
        self.assertEqual(len(page), len(STEPS))
        for kind in STEPS:
            with self.subTest(kind.name):
                (before, ours, exact), _seconds = measure(kind)
                for value, told in zip((before, ours, exact), page[kind.name]):
                    if value is None or value < 1e-9:
                        self.assertEqual(told, cell(value))
                    else:
                        self.assertLess(abs(value - float(told)), 0.1 * value, told)
                self.assertLess(ours, kind.most)
                if kind is not Near:  # which NumPy is given the heights for
                    self.assertLess(ours, 1.05 * exact + (1 if kind is Relight else 1e-4))


if __name__ == "__main__":
    if "--table" in sys.argv[1:]:
        print("| step | error | without | with | NumPy | ms | NumPy, ms |\n" + "| --- " * 7 + "|")
        for kind in STEPS:
            errors, seconds = measure(kind, RUNS)
            print(f"| {kind.name} | {kind.unit} | " + " | ".join(map(cell, errors)) + f" | {1e3 * seconds[0]:.0f} | {1e3 * seconds[1]:.0f} |", flush=True)
    else:
        main()
