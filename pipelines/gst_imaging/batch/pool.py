# SPDX-License-Identifier: LGPL-2.1-or-later
"""Gives rows to workers until all are done. It waits for rows that another batch works on, so that in the end they are complete."""
import collections
import selectors
import time

from ..command import whole
from . import claims
from .worker import Worker

TRIED = 1  # seconds between two looks at what others work on, and the longest look
SILENT = 10  # seconds of waiting for others, after which it is told
PATIENCE = 10  # seconds for the workers that are stopped, all together


class Pool:
    """take_answer gets a row and what became of it; take_errors what a worker wrote; tick is called once a second and more often."""

    def __init__(self, rows, n_workers, overwrite, take_answer, take_errors, tick):
        self.rows, self.n_workers, self.overwrite = rows, min(n_workers, len(rows)), overwrite
        self.take_answer, self.take_errors, self.tick = take_answer, take_errors, tick
        self.waiting, self.elsewhere = collections.deque(range(len(rows))), collections.deque()
        self.workers, self.selector, self.renewed = [], selectors.DefaultSelector(), time.monotonic()
        self.claim = None  # one that no worker has yet
        self.untried, self.tried = 0, self.renewed  # rows of elsewhere that are left of a look, and when it began
        self.since, self.told, self.told_at = {}, None, 0  # since when a row of elsewhere is waited for, and the one that was told of

    def next_number(self):
        """Returns: the number of a row to claim; None for none just now"""
        if self.waiting:
            return self.waiting.popleft()
        if not self.untried and time.monotonic() - self.tried >= TRIED:
            self.untried, self.tried = len(self.elsewhere), time.monotonic()
        if not self.untried:
            return None
        self.untried -= 1
        return self.elsewhere.popleft()

    def turn_away(self, index):
        self.elsewhere.append(index)
        self.since.setdefault(index, time.monotonic())

    def feed(self, worker, deadline):
        """Gives it a row, if one can be claimed until the deadline: many may be others'"""
        while time.monotonic() < deadline and (index := self.next_number()) is not None:
            row, problem = self.rows[index], ""
            try:
                with whole():
                    self.claim = claims.take(row.output, worker.pid)
            except OSError as error:  # its result may be complete all the same
                problem = f"{row.output} cannot be written: {error.strerror}."
            if self.claim or problem:
                worker.start(row, index, self.claim, problem)
                self.claim = None
                return
            self.turn_away(index)

    def hire(self, place):
        worker = Worker(place, self.n_workers, self.rows, self.overwrite)
        self.selector.register(worker.connection, selectors.EVENT_READ, (worker, self.on_answer))
        self.selector.register(worker.errors, selectors.EVENT_READ, (worker, self.on_errors))
        self.workers.append(worker)
        return worker

    def dismiss(self, worker):
        self.selector.unregister(worker.connection)
        if worker.errors in self.selector.get_map():
            self.selector.unregister(worker.errors)
        worker.close()
        self.workers.remove(worker)

    def on_errors(self, worker):
        text = worker.read_errors()
        if text:
            self.take_errors(text)
        else:
            self.selector.unregister(worker.errors)  # it has ended

    def on_answer(self, worker):
        answer = worker.read_answer()
        if not answer:
            return
        row, claim, worker.row, worker.claim = worker.row, worker.claim, None, None
        if row:
            if claim:
                claim.release()
            if answer["state"] == "busy":
                self.turn_away(worker.index)
                return
            self.since.pop(worker.index, None)
            self.take_answer(row, {"seconds": round(time.monotonic() - worker.begin, 3), **answer})
        if not worker.pid:
            self.dismiss(worker)

    def renew(self):
        if time.monotonic() - self.renewed >= claims.RENEWED:
            self.renewed = time.monotonic()
            for worker in self.workers:
                if worker.claim:
                    worker.claim.renew()

    def tell_waiting(self):
        """Says for whom it waits where nothing else is left."""
        ours = {worker.index for worker in self.workers if worker.row}
        index, since = next((one for one in self.since.items() if one[0] not in ours), (None, 0))
        now = time.monotonic()
        if self.waiting or index in (None, self.told) or now - max(since, self.told_at) < SILENT:
            return
        self.told, self.told_at = index, now
        row, others = self.rows[index], len(self.since) - 1
        more = f" {others} more row{'s wait' if others > 1 else ' waits'} for others." if others else ""
        who = claims.describe(row.output) or "another process writes its result"
        self.take_errors(f"gst-imaging batch: waits for row {row.number} (line {row.line}, {row.output}): {who}.{more}")

    def fill(self):
        """Everybody who is idle gets a row; who has gone is replaced."""
        deadline = time.monotonic() + TRIED  # claims that are held have to be renewed
        for worker in self.workers:
            if not worker.row:
                self.feed(worker, deadline)
        while len(self.workers) < self.n_workers and self.waiting and time.monotonic() < deadline:
            taken = {worker.place for worker in self.workers}
            self.feed(self.hire(min(set(range(self.n_workers)) - taken)), deadline)
        if not self.workers and self.elsewhere:
            self.hire(0)

    def is_looking(self):
        """Was there no time for all rows, and somebody is idle?"""
        is_idle = not all(worker.row for worker in self.workers)
        return bool(self.untried and is_idle or self.waiting and (is_idle or len(self.workers) < self.n_workers))

    def is_busy(self):
        return bool(self.waiting or self.elsewhere or any(worker.row for worker in self.workers))

    def run(self):
        try:
            while self.is_busy():
                self.fill()
                self.tell_waiting()
                self.tick()
                if not self.is_busy():
                    break
                for key, _events in self.selector.select(0 if self.is_looking() else TRIED):
                    worker, function = key.data
                    if worker in self.workers:
                        function(worker)
                self.renew()
        finally:
            self.end()

    def end(self):
        for worker in self.workers:
            if not worker.row:
                worker.close()
        if self.claim:
            self.claim.release()
        for worker in self.workers:
            worker.stop()
        deadline = time.monotonic() + PATIENCE
        for worker in self.workers:
            worker.end(deadline)
            if worker.claim:
                worker.claim.release()
        self.selector.close()
