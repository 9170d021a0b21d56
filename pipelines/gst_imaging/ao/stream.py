# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pipeline as a function of a frame: frames in, one buffer out for each."""
import numpy as np

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

from .. import metadata


class Stream:
    """elements: text for gst-launch, from the frame to the buffer that comes out; `element`s of names can be changed live."""

    def __init__(self, elements, width, height, rate=500, seconds=20):
        Gst.init(None)
        self.pipeline = Gst.parse_launch(f"appsrc name=in format=time ! {elements} ! appsink name=out sync=false")
        self.source, self.sink = self.element("in"), self.element("out")
        self.source.set_property("caps", Gst.Caps.from_string(
            f"video/x-raw,format=GRAY16_LE,width={width},height={height},framerate={rate}/1"))
        self.seconds, self.padding = seconds, (-2 * width) % 4  # GStreamer's rows are multiples of 4 bytes
        self.pipeline.set_state(Gst.State.PLAYING)

    def element(self, name):
        return self.pipeline.get_by_name(name)

    def buffer(self, frame):
        rows = frame.astype("<u2").view(np.uint8).reshape(frame.shape[0], -1)
        self.source.emit("push-buffer", Gst.Buffer.new_wrapped(np.pad(rows, ((0, 0), (0, self.padding))).tobytes()))
        sample = self.sink.emit("try-pull-sample", self.seconds * Gst.SECOND)
        if not sample:
            message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise RuntimeError(message.parse_error()[0].message if message else "no buffer came out")
        return sample.get_buffer()

    def commands(self, frame):
        return np.frombuffer(metadata.read_bytes(self.buffer(frame)), np.float32).astype(float)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.pipeline.set_state(Gst.State.NULL)
