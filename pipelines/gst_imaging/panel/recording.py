# SPDX-License-Identifier: LGPL-2.1-or-later
"""A recording of a pad of a running pipeline: a tap passes references to all frames to a pipeline with picturesink.

No tee is inserted: the allocation of the watched pipeline stays as it is. What the disk cannot take in time is counted
as lost, and the watched pipeline goes on. picturesink is told from which pad the frames come, so its sidecar has the
elements before that pad, and `gst-imaging verify` can make the recording once more.
"""
import concurrent.futures
import json
import os
import re
import threading
import time

from .outputs import first_of
from .passage import Passage
from .refusal import Refusal
from .reserved import Reserved

MAX_WAITING = 512 << 20  # bytes of frames
PATIENCE = 20  # seconds for the rest of a recording to be written


class Recording(Passage):
    def __init__(self, Gst, GstImaging, pad, name, path, frames, warn, replace=False):
        """warn: is called in any thread. replace: whether a file that is there may be written"""
        self.name, self.path, self.frames, self.warn = name, path, frames, warn
        self.pushed, self.n_dropped, self.n_final = 0, 0, None
        self.ended = None  # a Future of stop()
        if not os.path.isdir(os.path.dirname(path)):
            raise Refusal(404, f"There is no folder {os.path.dirname(path)}.")
        self.reserved, self.guard, self.is_taken = None if replace else Reserved(first_of(path)), None, False
        sink = Gst.ElementFactory.make("picturesink")
        sink.set_property("location", path)
        Gst.util_set_object_arg(sink, "sidecar", "always")
        super().__init__(Gst, sink)
        self.check_caps(pad)
        if self.reserved and self.reserved.made:
            self.guard = self.sink.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.look_at_name)
        GstImaging.Tap.follow(self.sink.get_static_pad("sink"), pad)
        self.play()
        self.check()
        self.take(GstImaging.Tap.new(pad), MAX_WAITING, frames)

    def look_at_name(self, _pad, _info):
        """Before the first frame, in the thread that writes."""
        self.is_taken = not self.reserved.is_untouched()
        if self.is_taken:
            return self.Gst.PadProbeReturn.DROP
        self.guard = None
        return self.Gst.PadProbeReturn.REMOVE

    def close(self):
        super().close()
        if self.guard:  # it holds this object
            self.sink.get_static_pad("sink").remove_probe(self.guard)
            self.guard = None
        if self.reserved:
            self.reserved.release()

    def check_caps(self, pad):
        caps, takes = pad.get_current_caps(), self.sink.get_static_pad("sink").query_caps(None)
        if caps and not caps.can_intersect(takes):
            structure, form = caps.get_structure(0), os.path.splitext(self.path)[1] or "a file without an extension"
            what = structure.get_string("types") or structure.get_string("format") or structure.get_name()
            self.close()
            raise Refusal(422, f"{form} cannot hold the frames of {self.name}, which are {what}. Use another extension: .npy holds all types.")

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
                self.check_name()
                return True
            if message.type == Gst.MessageType.ERROR:
                error, debug = message.parse_error()
                n = re.search("complete frames of this run: ([0-9]+)", debug or "")
                self.close()
                raise Refusal(422, f"The recording of {self.name} to {self.path} has ended{f' after {n[1]} frames' if n else ''}: {error.message}")
            self.warn(f"The recording of {self.name} to {self.path}: {message.parse_warning()[0].message}")
        self.check_name()
        return False

    def check_name(self):
        if self.is_taken:
            self.close()
            raise Refusal(409, f"The recording of {self.name} has no frame: another program has written {self.reserved.path} since it began. "
                               "The file stays as it is. Record under another name.")

    def check(self):
        """Fails where the recording has failed."""
        self.wait()

    def n_recorded(self):
        return self.pushed + self.tap.get_n_recorded()

    def is_complete(self):
        return self.frames > 0 and self.n_recorded() >= self.frames

    def state(self):
        """frames: that picturesink has taken; waiting: that it has yet to take"""
        n = self.n_written()
        return {"pad": self.name, "path": self.path, "frames": n, "waiting": self.n_recorded() - self.n_dropped - n,
                "lost": self.tap.get_n_lost() + self.n_dropped, "ending": self.ended is not None}

    def cut_sidecar(self):
        """picturesink takes its end for that of the data. Returns: the frames that are written, also the last one"""
        path = self.path + ".json"
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text.replace('"complete": true', '"complete": false', 1))
            os.replace(path + ".new", path)
            return json.loads(text)["frames"]
        except (OSError, ValueError, KeyError):  # it could not be written either
            return self.n_final

    def n_written(self):
        """Of a sink that has ended, the counts are gone."""
        return self.n_final if self.n_final is not None else self.sink.get_property("stats").get_value("rendered")

    def stop(self):
        """Takes no more frames. Returns: a Future of the state, with "complete". What waits is written in a thread of its own, for
        PATIENCE seconds at most, as a disk or a format may be slow"""
        self.tap.record(None, 0, 0)
        self.check()
        if self.n_recorded() == 0:
            self.close()
            raise Refusal(409, f"No frame has passed {self.name}: nothing was recorded.")
        self.ended = concurrent.futures.Future()
        self.ended.set_running_or_notify_cancel()
        threading.Thread(target=self.end, name="recording", daemon=True).start()
        return self.ended

    def end(self):
        """In a thread of its own."""
        try:
            self.source.emit("end-of-stream")
            is_complete = self.wait(PATIENCE)
            self.n_final = self.n_written()
            self.close()
            if not is_complete:
                self.n_final = self.cut_sidecar()
                self.n_dropped = self.n_recorded() - self.n_final
                self.warn(f"{self.path}: {self.n_dropped} frames were not written within {PATIENCE} s of the end of the recording, and are lost.")
            elif self.n_final < self.frames:
                self.warn(f"The recording of {self.name} to {self.path} has ended after {self.n_final} of {self.frames} frames.")
            self.ended.set_result({**self.state(), "complete": is_complete})
        except Exception as error:  # of the caller
            self.ended.set_exception(error.with_traceback(None))  # whose frames have the recording, which has the error
