# SPDX-License-Identifier: LGPL-2.1-or-later
"""Minimum, mean and maximum of what was measured between two looks: a value of one frame is not lost between them."""


class Spread:
    def __init__(self):
        self.frames = self.missed = 0
        self.columns = {}  # by name: minimum, sum, maximum, and how many there are

    def add(self, summary, missed=0):
        """summary: numbers by name; None is no number. missed: frames before it that were not read"""
        self.frames += 1
        self.missed += missed
        for name, value in summary.items():
            if value is not None:
                low, total, high, n = self.columns.get(name, (value, 0, value, 0))
                self.columns[name] = min(low, value), total + value, max(high, value), n + 1

    def told(self):
        """Returns: what a message has, and a program reads"""
        return {"frames": self.frames, "missed": self.missed, "minimum": {name: low for name, (low, _sum, _high, _n) in self.columns.items()},
                "mean": {name: total / n for name, (_low, total, _high, n) in self.columns.items()},
                "maximum": {name: high for name, (_low, _sum, high, _n) in self.columns.items()}}
