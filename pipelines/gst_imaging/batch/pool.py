# SPDX-License-Identifier: LGPL-2.1-or-later
"""Gives rows to workers until all are done. It waits for rows that another batch works on, so that in the end they are complete."""
import collections
import selectors
import sys
import time

from ..command import NOT_WRITTEN, whole
from . import claims
from .worker import Worker

TRIED = 1  # seconds between two looks at what others work on
PATIENCE = 10  # seconds for the workers that are stopped, all together


class Pool:
    """take_answer gets a row and what became of it; take_errors what a worker wrote; tick is called once a second and more often."""

    def __init__(self, rows, n_workers, overwrite, take_answer, take_errors, tick):
        self.rows, self.n_workers, self.overwrite = rows, min(n_workers, len(rows)), overwrite
        self.take_answer, self.take_errors, self.tick = take_answer, take_errors, tick
        self.waiting, self.elsewhere = collections.deque(range(len(rows))), collections.deque()
        self.workers, self.selector, self.renewed = [], selectors.DefaultSelector(), time.monotonic()
        self.tried, self.claim = 0, None  # claim: one that no worker has yet

    def next_row(self):
        """Returns: the number of a row that is ours now, and its claim; None for none just now"""
        while self.waiting or (self.elsewhere and time.monotonic() - self.tried >= TRIED):
            index = self.waiting.popleft() if self.waiting else self.elsewhere.popleft()
            row = self.rows[index]
            try:
                with whole():
                    self.claim = claims.take(row.output)
            except OSError as error:
                self.take_answer(row, {"state": "failed", "exit-status": NOT_WRITTEN, "seconds": 0,
                                       "error": f"{row.output} cannot be written: {error.strerror}."})
                continue
            if self.claim:
                return index, self.claim
            if len(self.elsewhere) == 0 or not self.waiting:
                self.tried = time.monotonic()
            self.elsewhere.append(index)
        return None

    def feed(self, worker):
        found = self.next_row()
        if found:
            worker.start(self.rows[found[0]], *found)
            self.claim = None

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
            claim.release()
            if answer["state"] == "busy":
                self.elsewhere.append(next(index for index, one in enumerate(self.rows) if one is row))
                self.tried = time.monotonic()
                return
            self.take_answer(row, {"seconds": round(time.monotonic() - worker.begin, 3), **answer})
        if not worker.pid:
            self.dismiss(worker)

    def renew(self):
        if time.monotonic() - self.renewed >= claims.RENEWED:
            self.renewed = time.monotonic()
            for worker in self.workers:
                if worker.claim:
                    worker.claim.renew()

    def fill(self):
        """Everybody who is idle gets a row; who has gone is replaced."""
        for worker in self.workers:
            if not worker.row:
                self.feed(worker)
        while len(self.workers) < self.n_workers and self.waiting:
            taken = {worker.place for worker in self.workers}
            self.feed(self.hire(min(set(range(self.n_workers)) - taken)))
        if not self.workers and self.elsewhere:
            self.hire(0)

    def is_busy(self):
        return bool(self.waiting or self.elsewhere or any(worker.row for worker in self.workers))

    def run(self):
        try:
            while self.is_busy():
                self.fill()
                self.tick()
                if not self.is_busy():
                    break
                for key, _events in self.selector.select(TRIED):
                    worker, function = key.data
                    if worker in self.workers:
                        function(worker)
                self.renew()
        finally:
            self.end()

    def end(self):
        sys.stdout.flush()
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
