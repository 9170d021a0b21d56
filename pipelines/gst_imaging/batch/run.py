# SPDX-License-Identifier: LGPL-2.1-or-later
"""One row in this process. Its command knows a result again by the hash, and lets a new one appear by a rename; see job.py."""
from ..command import NO_RESULT, WRONG_USE, Failure
from . import rows


def run(row, overwrite):
    """Returns: was it made? False: it was complete already. Raises what the command raises"""
    parser = rows.parser_of(row)
    if not parser.find_option("--output") or not parser.find_option("--overwrite"):
        raise Failure(WRONG_USE, f"gst-imaging {row.command} has no -o FOLDER, and cannot be a row of a table.")
    words = [*row.words(parser), f"--output={row.output}", *["--overwrite"] * overwrite]
    options = parser.parse(words)
    options.json = True  # without it lines for people are printed
    result = parser.module.run(options)
    if result is None:
        raise Failure(NO_RESULT, "There is no result.")
    return any(one["made"] for one in result.get("results", [result]))
