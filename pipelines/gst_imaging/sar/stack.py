# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of a stack that insar-stack has written, and the results of its rows."""
import csv
import os

from .. import job
from ..batch import rows as tables
from ..batch import run
from ..command import UNREADABLE, Failure
from . import network
from .arguments import read_words, stem

def read_csv(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8-sig", newline="") as file:
            lines = file.readlines()
        return list(csv.DictReader(lines, delimiter=tables.delimiter(lines)))
    except OSError as error:
        raise Failure(UNREADABLE, f"{folder} is no stack: {error.filename}: {error.strerror}.") from error


class Images:
    """The rows of images.csv. hashes: of files by path"""

    def __init__(self, path, hashes):
        self.needs, self.hashes, self.known = tables.Needs(tables.read(path)), hashes, {}

    def explain(self, path):
        """Returns: why the image of this path is not that of its row, as a part of a sentence; "" where it is, and without a row"""
        row = self.needs.maker(path)
        if row and row.number not in self.known:
            self.known[row.number] = ""
            try:
                run.find(row, self.hashes)
            except Failure as failure:
                self.known[row.number] = f"its image {row.output} has to be made first, by images.csv: {failure}"
        return self.known[row.number] if row else ""


class Pair:
    """cells: of pairs.csv; options: of its row in jobs.csv; folder: of its result; result: what its result.json has, None where batch
    would make it; why: what keeps it from being used, empty where nothing was made"""

    def __init__(self, cells, row, options, images):
        self.cells, self.options, self.folder = cells, options, row.output
        self.reference, self.secondary, self.baseline = cells["reference"], cells["secondary"], float(cells["baseline_m"])
        self.result, self.why = None, ""
        if not job.read_result(self.folder):
            return
        self.why = next(filter(None, map(images.explain, row.paths())), "")
        if self.why:
            return
        try:
            self.result, = run.find(row, images.hashes)
        except Failure as failure:
            self.why = str(failure)

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def state(self):
        return "complete" if self.result else "stale" if self.why else "missing"


def pair_of(row, options, table):
    """Returns: the names of the two scenes of a row of jobs.csv. Its images and their orbits have to be of the same ones"""
    (pair,), _properties = read_words(options)
    images = stem(pair.reference), stem(pair.secondary)
    orbits = tuple(map(stem, options.orbits or images))
    if images != orbits:
        raise Failure(UNREADABLE, f"{table}, line {row.line}: the images are of {' and '.join(images)}, and the orbits of {' and '.join(orbits)}. "
                                  "gst-imaging insar-stack --overwrite writes the table again.")
    return images


class Stack:
    """pairs; scenes: rows of scenes.csv by name; options: of gst-imaging insar, of the rows; left_out: pairs of names, which are not used"""

    def __init__(self, folder, made, left_out):
        pairs = {(cells.get("reference"), cells.get("secondary")): cells for cells in read_csv(folder, "pairs.csv")}
        self.scenes = {row["name"]: row for row in read_csv(folder, "scenes.csv")}
        table = os.path.join(folder, "jobs.csv")
        rows = tables.read(table)
        if not pairs or any(row.command != "insar" or not row.output for row in rows):
            raise Failure(UNREADABLE, f"{folder} is no stack: jobs.csv has {len(rows)} rows, and pairs.csv {len(pairs)}; a row is gst-imaging"
                                      " insar for one pair. gst-imaging insar-stack writes both.")
        tables.check_outputs(table, rows)
        self.folder, self.made, self.pairs, self.left_out = folder, made, [], left_out
        used = network.without(pairs, left_out, list(self.scenes), made)
        images = Images(os.path.join(folder, "images.csv"), {})
        for row in rows:
            _module, options = run.options_of(row)
            names = pair_of(row, options, table)
            if names not in pairs:
                raise Failure(UNREADABLE, f"{table}, line {row.line}: pairs.csv has no such pair, or it has two rows: {'-'.join(names)}. "
                                          "gst-imaging insar-stack --overwrite writes both tables again.")
            cells = pairs.pop(names)
            if names in used:
                self.pairs.append(Pair(cells, row, options, images))
        if pairs:
            raise Failure(UNREADABLE, f"{table} has no row of {'-'.join(next(iter(pairs)))}, and pairs.csv has this pair. "
                                      "gst-imaging insar-stack --overwrite writes both tables again.")
        self.options = self.pairs[0].options
        for name in "images.csv", "jobs.csv", "pairs.csv", "scenes.csv":
            made.input(os.path.join(folder, name), "table")
        for pair in self.pairs:
            if pair.result:
                made.input(pair.path("result.json"), "result")
        made.setting("folder", folder)

    def parts(self):
        """Returns: lists of scenes that the pairs connect"""
        names = list(self.scenes)
        return network.parts(len(names), [(names.index(pair.reference), names.index(pair.secondary)) for pair in self.pairs])

    def without_result(self):
        """Returns: a sentence on the pairs that have none, empty where all have one"""
        left = [pair for pair in self.pairs if not pair.result]
        if not left:
            return ""
        stale = next((pair for pair in left if pair.why), None)
        images, jobs = (os.path.join(self.folder, name) for name in ("images.csv", "jobs.csv"))
        return f"{len(left)} of {len(self.pairs)} pairs have no result, as {left[0].folder}. " + (
            f"That of {stale.folder} does not count: {stale.why.rstrip('.')}. " if stale else "") + (
            f"Run gst-imaging batch {images}, and then {jobs}{', with --overwrite for results that do not count' if stale else ''}. "
            f"To do without such a pair: --leave-out {left[0].reference} {left[0].secondary}.")
