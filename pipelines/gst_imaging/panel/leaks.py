# SPDX-License-Identifier: LGPL-2.1-or-later
"""The frames that leaky queues drop: they came in, did not leave, and do not wait. The queues do not count them."""


class Leak:
    def __init__(self, Tap, queue):
        self.queue = queue
        self.taps = [Tap.new(queue.get_static_pad(name)) for name in ("sink", "src")]
        self.dropped, self.base, self.last = 0, 0, 0

    def missing(self):
        """In this order, a frame that moves meanwhile is not missing. One that is between a pad and the queue may be, for once."""
        came = self.taps[0].get_n_frames()
        waiting = self.queue.get_property("current-level-buffers")
        return came - waiting - self.taps[1].get_n_frames()

    def look(self):
        """Counts what is missing for the second time."""
        if not int(self.queue.get_property("leaky")):  # a frame waits at its full queue
            self.reset()
            return
        now = self.missing()
        self.dropped = max(self.dropped, min(now, self.last) - self.base)
        self.last = now

    def reset(self):
        """After a flush: what waited before is not dropped."""
        self.last = self.missing()
        self.base = self.last - self.dropped


class Leaks:
    """Of all queues of a pipeline. states: its changes"""

    def __init__(self, Tap, elements, states):
        self.all = [Leak(Tap, element) for element in elements if element.find_property("leaky") and element.get_static_pad("sink")]
        self.states, self.n_emptied = states, 0

    def count(self):
        """Returns: the frames that were dropped so far"""
        if self.n_emptied == self.states.n_emptied:
            for leak in self.all:
                leak.look()
        elif not self.states.n_open:  # queues are empty after a stop
            self.n_emptied = self.states.n_emptied
            self.reset()
        return sum(leak.dropped for leak in self.all)

    def reset(self):
        for leak in self.all:
            leak.reset()

    def seek(self, seek):
        """Returns: what seek(), which may flush, returns"""
        for _ in range(2):  # what is missing twice has been dropped
            self.count()
        result = seek()
        self.reset()
        return result

    def close(self):
        for leak in self.all:
            for tap in leak.taps:
                tap.close()
