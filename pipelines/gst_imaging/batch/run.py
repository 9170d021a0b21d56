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


def find(row, hashes):
    """Returns: the complete result of a row, as run() knows it again. Raises job.NotMade where there is none, and what the command raises.
    hashes: of files by path, which several rows share"""
    module, options = options_of(row)
    options.find = hashes
    return module.run(options)


def run(row, overwrite):
    """Returns: was it made? False: it was complete already. Raises what the command raises"""
    module, options = options_of(row, overwrite)
    result = module.run(options)
    if result is None:
        raise Failure(NO_RESULT, "There is no result.")
    return any(one["made"] for one in result.get("results", [result]))
