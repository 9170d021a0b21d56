# SPDX-License-Identifier: LGPL-2.1-or-later
"""One row in this process. Its command knows a result again by the hash, and lets a new one appear by a rename; see job.py."""
from ..command import NO_RESULT, WRONG_USE, Failure
from . import rows


def options_of(row, overwrite=False):
    """Returns: the module of the command of a row, and its options"""
    parser = rows.parser_of(row)
    if not parser.find_option("--output") or not parser.find_option("--overwrite"):
        raise Failure(WRONG_USE, f"gst-imaging {row.command} has no -o FOLDER, and cannot be a row of a table.")
    options = parser.parse([*row.words(parser), f"--output={row.output}", *["--overwrite"] * overwrite])
    options.json = True  # without it lines for people are printed
    return parser.module, options


def results_of(module, options):
    result = module.run(options)
    if result is None:
        raise Failure(NO_RESULT, "There is no result.")
    return result.get("results", [result])


def find(row, hashes):
    """Returns: the complete results of a row, as run() knows them again. Raises job.NotMade where there are none, and what the command
    raises. hashes: of files by path, which several rows share"""
    module, options = options_of(row)
    options.find = hashes
    return results_of(module, options)


def run(row, overwrite):
    """Returns: the results of a row, one for each of its inputs, with made: False where it was complete already. Raises what the
    command raises"""
    return results_of(*options_of(row, overwrite))
