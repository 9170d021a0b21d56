# SPDX-License-Identifier: LGPL-2.1-or-later
"""The work on one pair of images, which offsets and coregister share."""
import os
import shutil

from .. import play
from ..command import NOT_WRITTEN, Failure, absent
from .grids import MANY, origin
from .images import Image, file_of, files_of, note_of
from .measure import measure


class Work:
    """Two images and the Job of their results."""

    def __init__(self, pair, properties, made):
        self.pair, self.properties, self.made = pair, properties, made
        paths = {role: getattr(pair, role) for role in ("reference", "secondary")}
        for path in paths.values():
            if not os.path.exists(file_of(path)):
                raise absent(file_of(path), f'There is no file "{file_of(path)}".')
        entries = made.take_inputs([(file, role) for role, path in paths.items() for file in files_of(path)])
        hashes = [{entry["sha256"]: entry["path"] for entry in entries if entry["role"] == role} for role in paths]
        for file in (hashes[0][same] for same in hashes[0].keys() & hashes[1].keys() if os.path.getsize(hashes[0][same]) > MANY):
            origins = [origin(path) for path in paths.values()]
            more = f", made of {origins[0].path} and {origins[1].path}" if all(origins) else ""
            made.warn(f"Both images have the content of {os.path.basename(file)}{more}: a copy has no motion and a coherence of 1.")
        for note in filter(None, map(note_of, paths.values())):
            made.warn(note)
        made.setting("properties", " ".join(properties), "")

    def open(self, check=None):
        """Makes images of the files, and a folder for what is needed on the way."""
        self.scratch = self.made.path(".scratch")
        os.mkdir(self.scratch)
        self.images = [Image(path, self.scratch) for path in (self.pair.reference, self.pair.secondary)]
        if check:
            check(self.images)

    def measure(self, form, raster):
        """Returns: Offsets"""
        self.raster = raster
        offsets = measure(self.images, self.properties, self.scratch, form, raster, self.pair.name, self.made.warn)
        self.made.tell_settings(play.settings_of(offsets.pipeline))
        for element, backend in offsets.backends.items():
            self.made.report.fact(f"backend of {element}", backend)
        return offsets

    def keep(self, offsets, table):
        """The files of the offsets become results. table: the name of theirs"""
        shutil.move(offsets.table, self.made.path(table))
        if offsets.fit:
            shutil.move(offsets.fit_path, self.made.path("fit.txt"))
        if offsets.raster:
            for suffix in ("",) if self.raster == "tif" else ("", ".hdr", ".vrt"):
                if not os.path.exists(offsets.raster + suffix):  # a warning has told why
                    raise Failure(NOT_WRITTEN, f'"{os.path.basename(offsets.raster + suffix)}" could not be written.')
                shutil.move(offsets.raster + suffix, self.made.path(os.path.basename(offsets.raster + suffix)))

    def end(self):
        """Nothing of the way there is left."""
        shutil.rmtree(self.scratch)
