# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plays a recording or a camera through shcentroid: the numbers go into a file as they are measured."""
import os

from .. import library
from ..command import Failure, explain
from ..report import pictures
from . import cameras, doubts
from .source import set_bits


N_FIELDS = 10  # of fields=all
CUTS = ("threshold-mode=", "threshold=", "brightest=", "estimator=correlation", "estimator=pupils")


def cut_of(settings):
    """Returns: the setting that cuts off the background; none where the settings say how"""
    return [] if any(text.startswith(CUTS) for text in settings) else ["threshold-mode=auto"]


def sentence_of(failure):
    """Returns: the Failure. A full disk is one, too"""
    return failure if isinstance(failure, Failure) else Failure(*explain(failure))


class Measurement:
    """run() writes the slopes and the pictures; the rest says what was measured."""

    def __init__(self, source, made, settings, options, drawing, view):
        self.source, self.made, self.settings, self.options = source, made, settings, options
        self.drawing, self.view = drawing, view
        self.location = made.path(f"slopes.{options.format}")
        self.fields, self.row_column, self.picture, self.size = [], None, None, None
        self.told, self.stats, self.failure, self.n, self.last = {}, {}, None, 0, None
        self.pipeline = self.look = None

    def words(self):
        words = [*self.source.words, "!"]
        if self.options.frames:
            words += ["identity", f"eos-after={self.options.frames + 1}", "!"]
        words += ["shcentroid", "name=sh", *self.settings, "sh.results", "!", "other/tensors,num_tensors=1", "!", "queue", "!", "picturesink",
                  "location=" + self.location, "sidecar=none"]
        return words + ["sh.src", "!", "queue", "!", "appsink", "name=seen", "sync=false", "emit-signals=true", "max-buffers=2"]

    def prepare(self, pipeline):
        self.pipeline = pipeline
        if self.source.bits and not any(text.startswith("bit-depth=") for text in self.settings):
            set_bits(pipeline, "sh", self.source.bits, lambda sentence: self.made.report.fact("camera", sentence))
        seen = pipeline.get_by_name("seen")
        seen.connect("new-sample", self.on_sample)
        seen.connect("eos", self.on_end)

    def on_sample(self, sink):
        """In the thread of the pipeline, where an exception would be lost."""
        Gst = library.gstreamer()
        try:
            self.look_at(sink.emit("pull-sample"))
        except (Failure, OSError) as failure:
            self.failure = sentence_of(failure)
            self.pipeline.post_message(Gst.Message.new_eos(self.pipeline))
            return Gst.FlowReturn.ERROR
        return Gst.FlowReturn.OK

    def look_at(self, sample):
        self.n += 1
        self.last = sample
        if self.view:
            self.view.draw(sample)
        if self.options.pictures and self.drawing:
            folder = self.made.path("pictures")
            os.makedirs(folder, exist_ok=True)
            self.write_picture(os.path.join(folder, f"{self.n - 1:05}.png"), self.drawing.draw(sample))

    def write_picture(self, path, values):
        with open(path, "wb") as file:
            file.write(pictures.png(library.numpy(), values))

    def on_end(self, _sink):
        """Before the pipeline stops: a camera's frames do not outlive it."""
        if self.last is None or self.failure:
            return
        try:
            self.keep(self.last)
        except (Failure, OSError) as failure:
            self.failure = sentence_of(failure)
        self.last = None

    def keep(self, sample):
        from .. import metadata

        found = metadata.results(sample.get_buffer(), "sh") or {}
        self.fields, self.row_column = found.get("fields", []), found.get("row-column")
        self.size = found.get("ref-width"), found.get("ref-height")
        self.look = doubts.Look(sample, found["values"]) if len(self.fields) == N_FIELDS else None
        sh = self.pipeline.get_by_name("sh")
        stats = sh.get_property("stats")
        self.stats = {name: stats.get_value(name) for name in ("frames", "lost-frames", "frames-missing", "time-p50", "time-p99")}
        self.pixel_size = sh.get_property("pixel-size")
        self.bit_depth, self.backend = sh.get_property("bit-depth"), sh.get_property("active-backend")
        structure = sample.get_caps().get_structure(0)
        self.format = structure.get_string("format") if structure.has_name("video/x-raw") else structure.get_string("types")
        if self.drawing:
            self.picture = self.drawing.draw(sample)
            self.write_picture(self.made.path("picture.png"), self.picture)

    def take_message(self, structure):
        """Of shcentroid: what it found."""
        name = structure.get_name().partition("-")[2]
        if structure.get_name() in ("shcentroid-grid", "shcentroid-threshold", "shcentroid-summary"):
            keys = (structure.nth_field_name(i) for i in range(structure.n_fields()))
            values = {key: structure.get_value(key) for key in keys}
            self.told[name] = {key: getattr(v, "value_nick", v) for key, v in values.items()
                               if isinstance(v, (bool, int, float, str)) or hasattr(v, "value_nick")}

    def run(self):
        with cameras.until_interrupted(self.source, lambda: self.pipeline):
            try:
                self.made.play(self.words(), "frames", self.total(), self.take_message, prepare=self.prepare)
            except Failure:
                if self.failure:
                    raise self.failure from None
                raise
            finally:
                self.pipeline = None  # whose sink has functions of this object
        if self.failure:
            raise self.failure

    def total(self):
        """Frames, where it is known; progress counts them."""
        return self.options.frames or self.source.n_frames()
