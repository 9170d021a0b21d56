# SPDX-License-Identifier: LGPL-2.1-or-later
"""The last frame of each pad, while the pipeline of a panel is paused."""
import contextlib
import time

from .refusal import Refusal


class Kept:
    def __init__(self, panel):
        self.panel, self.taps, self.time = panel, {}, time.monotonic()

    def begin(self, state):
        """Before the pipeline goes to a state: of one that pauses, the last frames are wanted."""
        self.panel.leaks.count()
        for tap in self.taps.values():
            tap.close()
        self.taps, self.time = {}, time.monotonic()
        for name in [known["pad"] for known in self.panel.pads()] if state == "paused" else ():
            with contextlib.suppress(Refusal):  # the pipeline may lose its caps meanwhile
                self.taps[name] = self.panel.GstImaging.Tap.new(self.panel.pad(name))
                self.taps[name].keep(True)

    def frame(self, name):
        """Returns: the last frame of a pad while the pipeline is paused, None without one"""
        return self.taps[name].get_kept() if name in self.taps else None

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not all(tap.get_kept() for tap in self.taps.values()):
            time.sleep(0.005)
