#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""lapsharpen in a Python program: NumPy array in, sharpened array out.

appsrc -> lapsharpen -> appsink, with the focus measure read from the meta.
Exit status: 77 without PyGObject or NumPy.
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from gst_imaging import metadata

WIDTH, HEIGHT = 60, 40  # GRAY8 rows are padded to a multiple of 4 bytes; 60 is one


def make_frame():
    """A dark half and a bright half."""
    frame = np.full((HEIGHT, WIDTH), 100, np.uint8)
    frame[:, WIDTH // 2 :] = 150
    return frame


def sharpen(frame):
    """Returns: the sharpened frame and the variance of the Laplacian."""
    pipeline = Gst.parse_launch(
        "appsrc name=in format=time ! lapsharpen name=sharpen amount=0.5 "
        "focus-measure=true ! appsink name=out sync=false"
    )
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.set_property(
        "caps",
        Gst.Caps.from_string(
            f"video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate=25/1"
        ),
    )
    pipeline.set_state(Gst.State.PLAYING)
    source.emit("push-buffer", Gst.Buffer.new_wrapped(frame.tobytes()))
    source.emit("end-of-stream")
    sample = sink.emit("try-pull-sample", 5 * Gst.SECOND)
    if not sample:
        message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        sys.exit(message.parse_error()[0].message if message else "no frame came out")
    buffer = sample.get_buffer()
    sharp = np.frombuffer(metadata.read_bytes(buffer), np.uint8).reshape(HEIGHT, WIDTH)
    focus = metadata.results(buffer, "sharpen")
    pipeline.set_state(Gst.State.NULL)
    return sharp, focus["values"][0, focus["fields"].index("variance")]


def main():
    Gst.init(None)
    frame = make_frame()
    sharp, variance = sharpen(frame)
    edge = slice(WIDTH // 2 - 2, WIDTH // 2 + 2)
    print("before:", frame[0, edge], "after:", sharp[0, edge])
    print(f"variance of the Laplacian: {variance:.2f} counts^2")
    # 50 counts of step: half of it is taken from one side, given to the other
    if list(sharp[0, edge]) != [100, 75, 175, 150]:
        sys.exit("this is not what 100 100 150 150 sharpened by 0.5 is")


if __name__ == "__main__":
    main()
