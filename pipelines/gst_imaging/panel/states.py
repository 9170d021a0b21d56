# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes of the state of a pipeline, in a thread of their own: a source may wait for ever, as for the writer of a FIFO."""
import contextlib
import queue
import threading
import time

PATIENCE = 3  # seconds for the end of a pipeline


class States:
    def __init__(self, Gst, pipeline, count):
        """count(): is called before and after each change, which may reset the counts of elements"""
        self.Gst, self.pipeline, self.count = Gst, pipeline, count
        self.wanted, self.done = queue.Queue(), queue.Queue()
        self.since = None  # when the change began that is not complete
        self.n_open = self.n_emptied = 0  # n_emptied: changes after which nothing waits in the pipeline
        self.is_telling = False  # a change is complete, and is being told
        threading.Thread(target=self.run, name="states", daemon=True).start()

    def run(self):
        while True:
            state, then = self.wanted.get()
            self.count()  # here, not when the change is asked for: it may have waited for another one
            result = self.pipeline.set_state(state)
            self.count()
            self.done.put((then, result))

    def set(self, state, then=lambda result: None):
        """Changes are made in order. then: is called by look()"""
        self.n_open += 1
        self.n_emptied += state <= self.Gst.State.READY
        self.since = self.since or time.monotonic()
        self.wanted.put((state, then))

    def look(self, seconds=0):
        """In the thread of the panel."""
        with contextlib.suppress(queue.Empty):
            while True:
                then, result = self.done.get(timeout=seconds) if seconds else self.done.get_nowait()
                self.is_telling = True  # first: another thread finds the pipeline in its old state until it is told
                self.n_open -= 1
                self.since = time.monotonic() if self.n_open else None
                then(result)
                self.is_telling = False

    def is_busy(self):
        """For other threads. Returns: whether a change has yet to be told"""
        return self.n_open > 0 or self.is_telling

    def waiting(self):
        """Returns: seconds that a change of state has taken so far"""
        return time.monotonic() - self.since if self.since else 0

    def sentence(self):
        return (f"The pipeline has been changing its state for {self.waiting():.0f} s: an element waits, perhaps for a device, or for "
                "the other end of a FIFO.")

    def end(self):
        """Returns: whether the pipeline has ended"""
        self.set(self.Gst.State.NULL)
        return self.wait(PATIENCE)

    def wait(self, seconds):
        """Returns: whether all changes are complete"""
        end = time.monotonic() + seconds
        while self.n_open and time.monotonic() < end:
            self.look(0.05)
        return not self.n_open
