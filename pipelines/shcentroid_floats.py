# SPDX-License-Identifier: LGPL-2.1-or-later
"""Frames of float32 through shcentroid, and their drawing.

What is measured is the same with and without a picture: pictures are video, so they are made of a copy, in a branch
behind shcentroid, and the centroids go with it.
"""
import numpy as np

from shcentroid_common import Gst, Source

FRAME_RATE = 30
STEPS = 65535


class FloatSource(Source):
    """frames: float32, [height, width] or [frames, height, width]"""

    def __init__(self, frames):
        super().__init__(["appsrc", "name=floats", "format=time", "block=true", "max-bytes=1"])
        self.frames = frames.reshape(-1, *frames.shape[-2:])
        self.n, self.last_drawn = 0, None
        # what is drawn is from the least to the largest of all frames; what is no number is drawn as the least
        finite = frames[np.isfinite(frames)]
        self.low, self.high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)

    def size(self):
        height, width = self.frames.shape[-2:]
        return width, height

    def drawing(self):
        return (["queue", "!", "appsink", "name=undrawn", "emit-signals=true", "sync=false", "max-buffers=2",
                 "appsrc", "name=drawn", "format=time", "block=true", "max-bytes=1", "!", "tee", "name=d"], "d")

    def connect(self, pipeline):
        width, height = self.size()
        source = pipeline.get_by_name("floats")
        source.set_property("caps", Gst.Caps.from_string(
            "other/tensors,format=static,num_tensors=1,types=float32,"
            f"framerate=(fraction){FRAME_RATE}/1,dimensions=(string){width}:{height}"))
        source.connect("need-data", self.push)
        undrawn, drawn = pipeline.get_by_name("undrawn"), pipeline.get_by_name("drawn")
        if undrawn:
            drawn.set_property("caps", Gst.Caps.from_string(
                f"video/x-raw,format=GRAY16_LE,width={width},height={height},"
                f"framerate=(fraction){FRAME_RATE}/1"))
            # the first before the pipeline plays, which waits for pictures to have one
            undrawn.connect("new-preroll", lambda sink: self.draw(sink.emit("pull-preroll"), drawn))
            undrawn.connect("new-sample", lambda sink: self.draw(sink.emit("pull-sample"), drawn))
            undrawn.connect("eos", lambda _sink: drawn.emit("end-of-stream"))

    def push(self, source, _length):
        if self.n == len(self.frames):
            source.emit("end-of-stream")
            return
        buffer = Gst.Buffer.new_wrapped(self.frames[self.n].tobytes())
        buffer.pts, buffer.duration = (n * Gst.SECOND // FRAME_RATE for n in (self.n, 1))
        self.n += 1
        source.emit("push-buffer", buffer)

    def draw(self, sample, drawn):
        measured = sample.get_buffer()
        if measured.pts == self.last_drawn:  # it comes again as the first sample
            return Gst.FlowReturn.OK
        self.last_drawn = measured.pts
        width, height = self.size()
        frame = np.frombuffer(measured.extract_dup(0, measured.get_size()), "f4").reshape(height, width)
        with np.errstate(invalid="ignore", over="ignore"):
            grey = (frame.astype("f8") - self.low) * (STEPS / (self.high - self.low or 1))
        grey = np.where(np.isfinite(frame), np.rint(grey), 0).clip(0, STEPS)
        padded = np.zeros((height, (2 * width + 3) // 4 * 4), np.uint8)  # rows of video end at multiples of 4
        padded[:, :2 * width] = grey.astype("<u2").view(np.uint8)
        buffer = Gst.Buffer.new_wrapped(padded.tobytes())
        buffer.copy_into(measured, Gst.BufferCopyFlags.TIMESTAMPS | Gst.BufferCopyFlags.META, 0, measured.get_size())
        return drawn.emit("push-buffer", buffer)
