# SPDX-License-Identifier: LGPL-2.1-or-later
"""A recording of a pad of a running pipeline: a tap passes references to all frames to a pipeline with picturesink.

No tee is inserted: the allocation of the watched pipeline stays as it is. What the disk cannot take in time is counted
as lost, and the watched pipeline goes on. picturesink is told from which pad the frames come, so its sidecar has the
elements before that pad, and `gst-imaging verify` can make the recording once more.
"""
import os
import re
import time

from .refusal import Refusal

MAX_WAITING = 512 << 20  # bytes of frames
PATIENCE = 20  # seconds for the rest of a recording to be written


class Recording:
    def __init__(self, Gst, GstImaging, pad, view, path, frames, warn):
        self.Gst, self.view, self.path, self.frames, self.warn = Gst, view, path, frames, warn
        self.pushed = 0
        if not os.path.isdir(os.path.dirname(path)):
            raise Refusal(404, f"There is no folder {os.path.dirname(path)}.")
        self.pipeline = Gst.Pipeline.new(None)
        self.source = Gst.ElementFactory.make("appsrc")
        self.source.set_property("format", Gst.Format.TIME)
        self.sink = Gst.ElementFactory.make("picturesink")
        self.sink.set_property("location", path)
        Gst.util_set_object_arg(self.sink, "sidecar", "always")
        self.pipeline.add(self.source)
        self.pipeline.add(self.sink)
        self.source.link(self.sink)
        self.check_caps(pad)
        GstImaging.Tap.follow(self.sink.get_static_pad("sink"), pad)
        self.pipeline.set_state(Gst.State.PLAYING)
        self.check()
        self.tap = GstImaging.Tap.new(pad)
        self.tap.record(self.source, MAX_WAITING, frames)

    def check_caps(self, pad):
        caps, takes = pad.get_current_caps(), self.sink.get_static_pad("sink").query_caps(None)
        if caps and not caps.can_intersect(takes):
            structure, form = caps.get_structure(0), os.path.splitext(self.path)[1] or "a file without an extension"
            what = structure.get_string("types") or structure.get_string("format") or structure.get_name()
            self.close()
            raise Refusal(422, f"{form} cannot hold the frames of {self.view}, which are {what}. Use another extension: .npy holds all types.")

    def push(self, sample):
        """Of a pipeline that is paused: a frame that has passed before."""
        self.pushed += 1
        self.source.emit("push-sample", sample)

    def wait(self, seconds=0):
        """Passes warnings on. Returns: whether the file is complete; an error closes the recording and is a Refusal"""
        Gst, end = self.Gst, time.monotonic() + seconds
        kinds = Gst.MessageType.ERROR | Gst.MessageType.WARNING | Gst.MessageType.EOS
        while message := self.pipeline.get_bus().timed_pop_filtered(int(max(0, end - time.monotonic()) * Gst.SECOND), kinds):
            if message.type == Gst.MessageType.EOS:
                return True
            if message.type == Gst.MessageType.ERROR:
                error, debug = message.parse_error()
                n = re.search("complete frames of this run: ([0-9]+)", debug or "")
                self.close()
                raise Refusal(422, f"The recording of {self.view} to {self.path} has ended{f' after {n[1]} frames' if n else ''}: {error.message}")
            self.warn(f"The recording of {self.view} to {self.path}: {message.parse_warning()[0].message}")
        return False

    def check(self):
        """Fails where the recording has failed."""
        self.wait()

    def close(self):
        if hasattr(self, "tap"):
            self.tap.close()
        self.pipeline.set_state(self.Gst.State.NULL)

    def n_recorded(self):
        return self.pushed + self.tap.get_n_recorded()

    def is_complete(self):
        return self.frames > 0 and self.n_recorded() >= self.frames

    def state(self):
        """frames: that picturesink has taken, not those that wait"""
        return {"view": self.view, "path": self.path, "frames": self.sink.get_property("stats").get_value("rendered"), "lost": self.tap.get_n_lost()}

    def stop(self):
        """Returns: the state, when the file is complete"""
        self.tap.record(None, 0, 0)
        self.check()
        if self.n_recorded() == 0:
            self.close()
            raise Refusal(409, f"No frame has passed {self.view}: nothing was recorded.")
        self.source.emit("end-of-stream")
        if not self.wait(PATIENCE):
            self.close()
            raise Refusal(422, f"{self.path} could not be completed in {PATIENCE} s.")
        state = self.state()
        self.close()
        return state
