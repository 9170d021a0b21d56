#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Frames as NumPy arrays without a copy: each array is a view of the memory of its buffer.

On a GPU, cupy.from_dlpack or torch.from_dlpack in the place of numpy.from_dlpack take the samples where they are, in device
memory (view.device is "cuda" then). Exit status: 77 without PyGObject or NumPy.
"""
import os
import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
    import numpy as np
except (ImportError, ValueError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)

# not needed where gst-imaging is installed
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from gst_imaging import memory


def arrays(description):
    """Yields a view of each frame. Let go of it before the pool runs out of buffers, or copy what you keep."""
    pipeline = Gst.parse_launch(description + " ! appsink name=out sync=false max-buffers=2")
    sink = pipeline.get_by_name("out")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("try-pull-sample", 5 * Gst.SECOND):
        view = memory.as_dlpack(sample)
        if view.device != "cpu":
            sys.exit("the samples are in device memory; use cupy.from_dlpack")
        yield np.from_dlpack(view)
    pipeline.set_state(Gst.State.NULL)


def main():
    Gst.init(None)
    if not Gst.ElementFactory.find("lapsharpen"):
        sys.exit(77)
    n = 0
    for frame in arrays("videotestsrc num-buffers=3 pattern=snow ! video/x-raw,format=GRAY8,width=321,height=240"
                        " ! lapsharpen backend=cpu amount=1"):
        n += 1
        print(f"{frame.shape}, {frame.strides[0]} bytes from row to row, mean {frame.mean():.1f}")
        if frame.shape != (240, 321) or not 100 < frame.mean() < 156:
            sys.exit("this is not the picture")
    if n != 3:
        sys.exit(f"{n} frames came out")


if __name__ == "__main__":
    main()
