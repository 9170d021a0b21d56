# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pipeline of its own for the frames of another one: a tap passes references to all of them to its appsrc, and no tee is inserted."""


class Passage:
    def __init__(self, Gst, sink):
        self.Gst, self.sink, self.tap = Gst, sink, None
        self.pipeline, self.source = Gst.Pipeline.new(None), Gst.ElementFactory.make("appsrc")
        self.source.set_property("format", Gst.Format.TIME)
        for element in self.source, sink:
            self.pipeline.add(element)
        self.source.link(sink)

    def play(self):
        self.pipeline.set_state(self.Gst.State.PLAYING)

    def take(self, tap, n_bytes, n_frames=0):
        """n_bytes: of frames that wait; others are lost. n_frames: after which it takes no more, 0: all"""
        self.tap = tap
        tap.record(self.source, n_bytes, n_frames)

    def close(self):
        if self.tap:
            self.tap.close()
        self.pipeline.set_state(self.Gst.State.NULL)
