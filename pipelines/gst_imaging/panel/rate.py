# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether anything holds a pipeline to the rate of its frames: without a sink or an element that waits for the clock, it runs as fast as it can."""
from . import health

FAST = 2  # times the rate of the frames


class Rate:
    def __init__(self):
        self.before, self.is_told = None, False  # before: when the frames were counted last, and how many had passed

    @staticmethod
    def is_held(panel):
        waiting = [e.element for e in panel.elements.values() if e.element.find_property("sync")]
        return panel.is_camera() or any(element.get_property("sync") for element in waiting)

    def look(self, panel, now):
        """While the pipeline plays. Returns: a sentence, once; None else"""
        if self.is_told or panel.ready or self.is_held(panel):
            return None
        wanted = max((pad["framerate"] or 0 for pad in panel.pads()), default=0)
        count = max((n or 0 for n in health.passed(panel)), default=0)
        (then, first), self.before = self.before or (now, count), (now, count)
        found = (count - first) / (now - then) if now > then else 0
        if not wanted or found <= FAST * wanted:
            return None
        self.is_told = True
        return (f"Nothing holds the rate of this pipeline: {found:.0f} frames a second pass, and they are made for {wanted:g}. It takes all that the"
                " computer has. End it with fakesink sync=true, or put clocksync before the sink.")
