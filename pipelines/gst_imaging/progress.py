# SPDX-License-Identifier: LGPL-2.1-or-later
"""Progress on a terminal, with rate and time left. Elsewhere nothing is written."""
import sys
import time


def duration(seconds):
    """3 s, 2 min 5 s, 1 h 20 min"""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def rate(per_second):
    return f"{per_second:.3g}/s" if per_second >= 0.1 else f"{3600 * per_second:.3g}/h"


class Progress:
    """One line, which replaces itself at most ten times a second.

        with Progress("bear", "pictures", 96) as progress:
            progress.show(12)               # bear: 12 of 96 pictures, 24/s, 4 s left
    """

    def __init__(self, name, unit, total):
        self.name, self.unit, self.total = name, unit, total
        self.given = 0  # of what is done, that which was complete before: it says nothing about the rate
        self.is_shown = sys.stderr.isatty()
        self.start, self.last = time.monotonic(), 0

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        clear()

    def line(self, done, elapsed):
        text = f"{self.name}: {done} of {self.total} {self.unit}"
        worked = done - self.given
        if worked <= 0 or elapsed < 0.5:
            return text
        if done >= self.total:  # all is read; how long the rest takes is not known
            return f"{self.name}: {self.total} {self.unit}, finishing the result, {duration(elapsed)} so far"
        return f"{text}, {rate(worked / elapsed)}, {duration((self.total - done) * elapsed / worked)} left"

    def show(self, done):
        now = time.monotonic()
        if not self.is_shown or now - self.last < 0.1:
            return
        self.last = now
        sys.stderr.write(f"\r{self.line(done, now - self.start)}\033[K")
        sys.stderr.flush()

    def show_part(self, part):
        self.show(round(part * self.total))


def clear():
    """Takes the line away, before something else is written."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
