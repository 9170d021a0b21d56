# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of a stack that insar-stack has written, and the results of its rows."""
import csv
import os
import shlex

from .. import job
from ..command import UNREADABLE, Failure, Parser, load

JOBS = ["command", "input", "output", "arguments"]


def name_of(one, other):
    return f"{one.name}-{other.name}"


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def read_csv(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise Failure(UNREADABLE, f"{folder} is no stack: {error.filename}: {error.strerror}.") from error


class Pair:
    """cells: of pairs.csv; folder: of its result; result: what its result.json has, None where it is missing"""

    def __init__(self, cells, row):
        self.cells, self.folder = cells, row["output"]
        self.result = job.read_result(self.folder)
        self.reference, self.secondary, self.baseline = cells["reference"], cells["secondary"], float(cells["baseline_m"])

    def path(self, name):
        return os.path.join(self.folder, name)


class Stack:
    """pairs; scenes: rows of scenes.csv by name; options: of gst-imaging insar, of the rows"""

    def __init__(self, folder, made):
        rows, pairs = read_csv(folder, "jobs.csv"), read_csv(folder, "pairs.csv")
        if not pairs or len(rows) != len(pairs) or any(row.get("command") != "insar" or not row.get("output") for row in rows):
            raise Failure(UNREADABLE, f"{folder} is no stack: jobs.csv has {len(rows)} rows, and pairs.csv {len(pairs)}; a row is gst-imaging"
                                      " insar for one pair. gst-imaging insar-stack writes both.")
        self.folder, self.made = folder, made
        self.pairs = [Pair(cells, row) for cells, row in zip(pairs, rows)]
        self.scenes = {row["name"]: row for row in read_csv(folder, "scenes.csv")}
        self.options = Parser("insar", load("insar")).parse(
            [*shlex.split(rows[0]["input"]), "-o", rows[0]["output"], *shlex.split(rows[0]["arguments"])])
        for pair in self.pairs:
            if pair.result:
                made.input(pair.path("result.json"), "result")
        made.setting("folder", folder)
