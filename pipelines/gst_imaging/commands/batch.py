# SPDX-License-Identifier: LGPL-2.1-or-later
"""Works on the rows of a table, each a command with its inputs, output and options.

The first line of the table (CSV) names its columns. command: one of gst-imaging that has -o FOLDER; output: that folder; input: what
the command takes, words as in a shell; arguments: more words. Each other column is an option: mm-per-pixel is --mm-per-pixel, an
empty cell leaves it out, yes is an option without a value; a column gamma= is the property of this name.
A row whose output is the result of the same inputs and settings is skipped, so a second call does what is missing, also with
--overwrite. A row that fails is a line of JSON on standard output, and the others continue. Several calls may share a table: they claim rows, and a row that
another one works on is waited for.
"""
import errno
import json
import os
import sys

from .. import progress
from ..batch import allocation, pool, rows
from ..command import NO_RESULT, NOT_WRITTEN, Failure, Stopped, drop, say

EXAMPLES = [
    ("jobs.csv", "all rows, one after the other"),
    ("jobs.csv --workers 2", "by two processes, which share the processors and the memory"),
    ("jobs.csv --shard 3/8", "the rows 3, 11, 19, ..., as a task of an array of eight"),
    ("jobs.csv --json > log", "a line for each row"),
]


def add_arguments(parser):
    parser.add_argument("table", metavar="JOBS.csv")
    parser.add_argument("--shard", metavar="I/N", help="every N-th row from the I-th on; I goes from 1 to N")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that work on rows at the same time (1)")
    parser.add_argument("--overwrite", action="store_true", help="replace results that are damaged, or of other inputs or "
                        "settings; complete ones are skipped all the same")
    parser.find_option("--json").help = "print a line of JSON for each row, and the number of rows at the end"


class Log:
    """Counts rows, and writes a line for each that is asked for. needs: of rows.Needs"""

    def __init__(self, n, is_all, needs):
        self.n, self.is_all, self.counts, self.needs = n, is_all, {"made": 0, "complete": 0, "stale": 0, "failed": 0}, needs
        self.progress = progress.Progress("batch", "rows", n)
        self.lost = ""  # why standard output cannot be written

    def done(self):
        return sum(self.counts.values())

    def write(self, line):
        """To standard output; to standard error where that fails, and the rows go on"""
        if not self.lost:
            try:
                if not sys.stdout:  # it was closed before the command began
                    raise OSError(errno.EBADF, os.strerror(errno.EBADF))
                print(line, flush=True)
                return
            except OSError as error:
                self.lost = f"Standard output cannot be written: {error.strerror}. Its lines are on standard error."
                say(f"gst-imaging batch: {self.lost}")
                if sys.stdout:
                    drop(sys.stdout)
        say(line)

    def take_answer(self, row, answer):
        self.counts[answer["state"]] += 1
        is_error = answer["state"] in ("stale", "failed")
        if is_error:
            answer["error"] += self.needs.explain(row)
            self.needs.failed.add(row.number)
        if self.is_all or is_error:
            progress.clear()
            told = {"row": row.number, "line": row.line, "command": row.command, "output": row.output, "warnings": [], **answer}
            self.write(json.dumps(told))
        self.progress.given = self.counts["complete"]
        self.tick()

    def take_errors(self, text):
        for line in filter(None, text.splitlines()):
            say(line)

    def tick(self):
        self.progress.show(self.done())

    def result(self):
        return {"rows": self.n, **self.counts}

    def sentence(self):
        counts = self.counts
        stale = f"{counts['stale']} stale (--overwrite makes these again), " if counts["stale"] else ""
        return f"{self.done()} of {self.n} rows: {counts['made']} made, {counts['complete']} complete already, {stale}{counts['failed']} failed."


def run(options):
    allocation.check_workers(options.workers)
    table = rows.read(options.table)
    rows.check_outputs(options.table, table)
    chosen = rows.select(table, options.shard)
    log = Log(len(chosen), options.json, rows.Needs(table))
    try:
        with log.progress:
            pool.Pool(chosen, options.workers, options.overwrite, log.take_answer, log.take_errors, log.tick).run()
    except Stopped as stopped:
        stopped.sentence, stopped.result = log.sentence(), log.result()
        raise
    if log.lost:
        raise Failure(NOT_WRITTEN, f"{log.sentence()} {log.lost}", log.result())
    if log.counts["stale"] or log.counts["failed"]:
        raise Failure(NO_RESULT, log.sentence(), log.result())
    if not options.json:
        say(f"gst-imaging batch: {log.sentence()}")
    return log.result()
