# SPDX-License-Identifier: LGPL-2.1-or-later
"""Light of the room, solved beside the normal: errors of a ball against the truth and against what the noise allows.

With --table it prints the table of docs/reference/photostereo.md."""
import os
import sys
import tempfile
import unittest

import numpy as np

from photostereo import angle
from support import SOURCE, TIMEOUT, Gst, main

SIZE = 120  # pixels of the ball
NUMBERS = 8, 12, 20, 48  # lights
ALBEDO, ROOM, NOISE = 0.7, 0.08, 0.005  # of full scale
YELLOW = np.array([1.1, 1.05, 0.85])
LUMA = np.array([0.299, 0.587, 0.114])  # Rec.601, the grey value that is solved


def dome(n):
    turn, up = np.arange(n) * 2.399963, np.radians(20 + 55 * (np.arange(n) * 0.618034 % 1))
    return np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], 1)


def ball():
    """Returns: normals, and where the ball is"""
    y, x = ((SIZE - 1) / 2 - np.mgrid[:SIZE, :SIZE]) / (0.47 * SIZE)
    r2 = x * x + y * y
    return np.dstack([-x, y, np.sqrt(np.maximum(1 - r2, 0))]), r2 < 0.98


def pictures(normals, lights, noise=0.0, gloss=0.0):
    """Returns: u16, RGB, in a room with a lamp of its own"""
    random, frames = np.random.default_rng(1), []
    for light in lights:
        half = light + (0, 0, 1)
        lit = np.maximum(normals @ light, 0)
        shine = gloss * np.maximum(normals @ half / np.linalg.norm(half), 0) ** 60 * (lit > 0)
        frames.append((ALBEDO * lit + shine)[..., None] + ROOM * YELLOW + random.normal(0, noise, (*lit.shape, 3)))
    return np.rint(65535 * np.clip(frames, 0, 1)).astype(np.uint16)


def error(frames, lights, normals, mask, words):
    """Returns: mean angle in degrees"""
    with tempfile.TemporaryDirectory() as folder:
        np.save(folder + "/frames.npy", frames)
        np.save(folder + "/mask.npy", mask)
        np.savetxt(folder + "/lights.txt", lights, "%.9f")
        pipeline = Gst.parse_launch(
            f"picturesrc location={folder}/frames.npy ! photostereo name=p lights-location={folder}/lights.txt mask-location={folder}/mask.npy"
            f" {words} p.normal ! other/tensors ! appsink name=sink sync=false")
        pipeline.set_state(Gst.State.PLAYING)
        sample = pipeline.get_by_name("sink").emit("try-pull-sample", TIMEOUT * Gst.SECOND)
        pipeline.set_state(Gst.State.NULL)
    buffer = sample.get_buffer()
    found = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32).reshape(normals.shape)[mask]
    assert found.any(-1).mean() > 0.999, "pixels without a normal"
    return angle(found, normals[mask])[found.any(-1)].mean()


def bound(normals, lights, room):
    """Mean angle of the best unbiased estimate (Cramer-Rao) that knows which lamps light a pixel; room: whether the constant is unknown."""
    covariances = []
    for normal in normals:
        rows = np.where((lights @ normal > 0)[:, None], lights, 0)
        if room:
            rows = np.hstack([rows, np.ones((len(lights), 1))])
        across = np.linalg.svd(normal[None])[2][1:]
        covariances.append(across @ np.linalg.inv(rows.T @ rows)[:3, :3] @ across.T)
    grey_noise = NOISE * np.linalg.norm(LUMA)
    axes = grey_noise / ALBEDO * np.sqrt(np.linalg.eigvalsh(covariances))
    draws = np.random.default_rng(1).normal(size=(1000, 1, 2))
    return np.degrees(np.linalg.norm(axes * draws, axis=-1)).mean()


def measure(n):
    """Returns: the numbers of a row of the table"""
    lights, (normals, mask) = dome(n), ball()

    def run(words, **surface):
        return error(pictures(normals, lights, **surface), lights, normals, mask, words)

    solved = "ambient-model=constant"
    return [run(""), run(solved), run(solved, noise=NOISE), bound(normals[mask], lights, True), bound(normals[mask], lights, False),
            run("", gloss=0.5), run(solved, gloss=0.5)]


def row(n, numbers):
    return f"| {n} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |"


def page_rows():
    """Returns: the numbers of the page by number of lights"""
    with open(os.path.join(SOURCE, "docs", "reference", "photostereo.md"), encoding="utf-8") as file:
        text = file.read()
    table = text.partition("<!-- room: begin -->\n")[2].partition("<!-- room: end -->")[0]
    rows = [[float(word) for word in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {int(n): numbers for n, *numbers in rows}


class Room(unittest.TestCase):
    def test_the_room_costs_little_and_as_much_as_the_page_says(self):
        page = page_rows()
        self.assertEqual(tuple(page), NUMBERS)
        for n in NUMBERS:
            with self.subTest(lights=n):
                numbers = measure(n)
                mean, exact, noisy, least, _known, glossy_mean, glossy = numbers
                np.testing.assert_allclose(numbers, page[n], atol=0.02)
                self.assertGreater(mean, 3)
                self.assertLess(exact, 0.05)
                self.assertLess(noisy, 1.3 * least)
                self.assertLess(glossy, 0.2 * glossy_mean)


if __name__ == "__main__":
    if "--table" in sys.argv[1:]:
        for n in NUMBERS:
            print(row(n, measure(n)), flush=True)
    else:
        main()
