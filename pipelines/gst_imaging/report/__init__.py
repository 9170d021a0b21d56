# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page report.html: what went in, what came out, how good it is, and how to repeat it.

    page = report.Report("bear", options.argv)
    page.input("photos/001.png", "picture")
    page.setting("photostereo", "gamma", "2.2", "1")
    page.warning("A tenth of the samples is clipped.")
    page.figure("mean residual", 0.03, at_most=0.08, about="of the lights used, as a part of the albedo")
    page.picture("Height", heights, quantity={"name": "height", "unit": "mm", "axes": axes}, file="height.npy")
    page.plot("Convergence", plots.lines(("pictures", ""), ("change", "degrees"), {"": (n, change)}))
    page.write("out/report.html")

One file without scripts, links to other hosts, or libraries for plots. It reads well on a telephone, in the dark, and printed.
"""
import concurrent.futures
import datetime
import hashlib
import math
import os
import shlex

from . import page, pictures, plots

__all__ = ["Report", "hash_of", "page", "pictures", "plots"]

MAX_READERS = 4  # files that are read at a time


def hash_of(path):
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def limit_of(at_least, at_most):
    """Limits in words; empty without."""
    words = [f"{word} {page.number(limit)}" for word, limit in (("at least", at_least), ("at most", at_most))
             if limit is not None]
    return ", ".join(words)


class Report:
    """Collects what the page shows; result() has the same, without pictures and plots, for programs."""

    def __init__(self, title, argv=()):
        self.title, self.argv, self.folder = title, list(argv), os.getcwd()
        self.inputs, self.settings, self.warnings, self.figures, self.facts = [], [], [], [], []
        self.sections = []

    def input(self, path, role=""):
        """A file that was read. Returns: its entry, with size and hash"""
        return self.take_inputs([(path, role)])[0]

    def take_inputs(self, files, known=None):
        """Several, which are hashed at the same time. files: paths and roles; known: hashes by path, which gets the new ones. Returns: their
        entries"""
        known = {} if known is None else known
        new = list(dict.fromkeys(path for path, _role in files if path not in known))
        with concurrent.futures.ThreadPoolExecutor(MAX_READERS) as threads:
            known.update(zip(new, threads.map(hash_of, new)))
        hashes = [known[path] for path, _role in files]
        entries = [{"role": role, "path": os.fspath(path), "size": os.path.getsize(path), "sha256": sha256}
                   for (path, role), sha256 in zip(files, hashes)]
        self.inputs += entries
        return entries

    def setting(self, owner, name, value, default="", unit="", about=""):
        """One that is not the default. owner: an element, or the command. Told twice, it is one."""
        entry = {"owner": owner, "name": name, "value": page.words(value), "default": page.words(default), "unit": unit, "about": about}
        if entry not in self.settings:
            self.settings.append(entry)

    def fact(self, name, value):
        """What else should be known, as the backend and the version."""
        if [name, str(value)] not in self.facts:
            self.facts.append([name, str(value)])

    def warning(self, sentence):
        """Told twice, it is one."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def figure(self, name, value, unit="", at_least=None, at_most=None, about=""):
        """A number that tells how good the result is. With a limit it is met or not; NaN and None meet none."""
        value = None if value is None or not math.isfinite(value) else value
        limit = limit_of(at_least, at_most)
        met = None
        if limit:
            met = value is not None and not (at_least is not None and value < at_least) \
                and not (at_most is not None and value > at_most)
        self.figures.append({"name": name, "value": value, "unit": unit, "limit": limit, "met": met, "about": about})

    def not_checked(self, name, unit="", at_least=None, at_most=None, about=""):
        """A limit that the command cannot judge. about: why, and what the reader can do"""
        self.figures.append({"name": name, "value": None, "unit": unit, "limit": limit_of(at_least, at_most), "met": None, "about": about})

    def picture(self, title, values, quantity=None, file="", caption="", colours="grey", low=None, high=None):
        """An array [height, width] as grey values or colours with a bar, or [height, width, 3] as it is.

        quantity: as metadata.quantity() and metadata.sidecar() return it: name, unit, scale, offset, and axes, that along a row
        first; an axis gives a scale bar. Without it samples have no unit and the bar counts pixels. file: the name of the
        same in full size, beside the page. colours: "grey", "height", "both-signs", or "phase". low, high: the ends of the bar,
        in the unit; without them the 0.5th and the 99.5th percentile. NaN is shown as nothing.
        """
        self.sections.append(pictures.figure(title, values, quantity or {}, file, caption, colours, low, high))

    def tiles(self, title, shown, caption=""):
        """Many small pictures with a name below each: {name: u8 [height, width, 3]}"""
        self.sections.append(pictures.tiles(title, shown, caption))

    def plot(self, title, svg, caption=""):
        """svg: of plots.lines(), plots.scatter() or plots.histogram()"""
        self.sections.append(page.plot(title, svg, caption))

    def table(self, title, columns, rows, caption=""):
        """Rows of texts and numbers."""
        self.sections.append(page.table(title, columns, rows, caption))

    def result(self):
        """All but the pictures, for JSON."""
        return {"title": self.title, "arguments": self.argv, "folder": self.folder, "inputs": self.inputs,
                "settings": self.settings, "warnings": self.warnings, "figures": self.figures, "facts": self.facts}

    def write(self, path):
        """Writes the page."""
        made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:  # names of files may be of any bytes
            file.write(page.document(self.result(), shlex.join(self.argv), self.sections, made))
