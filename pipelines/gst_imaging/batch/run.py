# SPDX-License-Identifier: LGPL-2.1-or-later
"""One row in this process. Its command knows a result again by the hash, and lets a new one appear by a rename; see job.py."""
import functools

from .. import job
from ..command import NO_RESULT, WRONG_USE, Failure
from . import rows


class NotMade(Failure):
    """A result that is only looked for is not there; why, as a part of a sentence."""


class RowJob(job.Job):
    """--overwrite of a table replaces what is stale or damaged, and nothing that is complete: two calls share it, or one continues another."""

    def is_complete(self, outside=None):
        self.recover()
        return self.look(outside)


class Lookup(job.Job):
    """Finds a result, and changes no file. hashes: of inputs by path, which several rows share"""

    def __init__(self, *words, hashes):
        super().__init__(*words)
        self.hashes = hashes

    def is_complete(self, outside=None):
        return self.look(outside) or self.open()

    def open(self):
        why = f"it is damaged: {self.damage}" if self.damage else "it is not there" if not job.read_result(self.target) else \
            "it is of other inputs or settings than its row"
        raise NotMade(NO_RESULT, why)


def options_of(row):
    """Returns: the module of the command of a row, and its options"""
    parser = rows.parser_of(row)
    if not parser.find_option("--output") or not parser.find_option("--overwrite"):
        raise Failure(WRONG_USE, f"gst-imaging {row.command} has no -o FOLDER, and cannot be a row of a table.")
    options = parser.parse([*row.words(parser), f"--output={row.output}"])
    options.json = True  # without it lines for people are printed
    return parser.module, options


def results_of(module, options):
    result = module.run(options)
    if result is None:
        raise Failure(NO_RESULT, "There is no result.")
    return result.get("results", [result])


def find(row, hashes):
    """Returns: the complete results of a row, as run() knows them again. Raises NotMade where there are none, and what the command
    raises. hashes: of files by path, which several rows share"""
    module, options = options_of(row)
    options.new_job = functools.partial(Lookup, hashes=hashes)
    return results_of(module, options)


def run(row, overwrite):
    """Returns: the results of a row, one for each of its inputs, with made: False where it was complete already. Raises what the
    command raises"""
    module, options = options_of(row)
    options.overwrite, options.new_job = overwrite or options.overwrite, RowJob
    return results_of(module, options)
