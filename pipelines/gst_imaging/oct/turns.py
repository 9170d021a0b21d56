# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether several cameras keep their turns: a lost line exchanges them. Light and sensor of each camera have a spectrum of their own."""
from .. import library
from ..frames.source import split

TURNS = 16  # in a block, whose mean of each camera is compared with that of the first block
NEARER = 4  # times, the means of an exchanged order


def n_rows_of(options):
    """Returns: how many lines later the same camera comes again"""
    text = settings_of(options).get("cameras", "1")
    return int(text) if text.isdecimal() and int(text) else 1


def n_cameras_of(options):
    """Returns: how many take turns; 1 with an order of their own"""
    return n_rows_of(options) if "camera-order" not in settings_of(options) else 1


def settings_of(options):
    return dict(text.split("=", 1) for text in split(getattr(options, "words", []))[1])


class Turns:
    def __init__(self, n_cameras):
        self.n_cameras, self.n, self.rest, self.first, self.exchanged = n_cameras, 0, None, None, []

    def add(self, lines):
        """lines: [lines, samples], those of a recording one after the other"""
        if self.n_cameras < 2 or len(self.exchanged) > 1:
            return
        np = library.numpy()
        lines = lines if self.rest is None else np.concatenate([self.rest, lines])
        n = TURNS * self.n_cameras
        for at in range(0, len(lines) - n + 1, n):
            self.look(np, lines[at:at + n])
        self.rest = lines[len(lines) // n * n:].copy()

    def look(self, np, block):
        means = block.reshape(TURNS, self.n_cameras, -1).mean(0, dtype=float)
        means -= means.mean(1, keepdims=True)
        means /= np.maximum(np.sqrt((means ** 2).sum(1, keepdims=True)), 1e-30)
        if self.first is None:
            self.first = means
        distances = [((np.roll(means, shift, 0) - self.first) ** 2).sum() for shift in range(self.n_cameras)]
        if NEARER * min(distances) < distances[0]:
            self.exchanged.append(self.n)
        elif len(self.exchanged) == 1:  # alone it is chance
            self.exchanged = []
        self.n += len(block)

    def sentences(self):
        if len(self.exchanged) > 1:
            yield (f"From about line {self.exchanged[0]} on, each camera has the light of another one: a line is lost there. Images after it are wrong,"
                   " and no --offset helps. Record again, or cut the file there and give the second part first-camera=.")
