#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""shcentroid in a Python program: frames in, centroids out as NumPy arrays.

appsrc -> shcentroid -> appsink, with the centroids read from the meta of the
frame. Exit status: 77 without PyGObject or NumPy.
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

COLUMNS, ROWS, PITCH = 8, 6, 20  # cells, cells, pixels
PEDESTAL, NOISE = 100, 3  # counts, of a camera without light


def make_frame(rng):
    """A frame of 16-bit spots. Returns: it, and the x and y of every spot."""
    y, x = np.mgrid[0 : ROWS * PITCH, 0 : COLUMNS * PITCH]
    row, column = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    centres = np.stack([column, row], axis=1) * PITCH + PITCH / 2 - 0.5
    places = centres + rng.uniform(-2, 2, centres.shape)
    frame = rng.normal(PEDESTAL, NOISE, x.shape)
    for px, py in places:
        frame += 4000 * np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * 1.5**2))
    return np.round(frame).astype("<u2"), places


def tell(bus):
    """Prints the warnings of the element, as that a setting makes shifts too small; ends with an error."""
    while message := bus.pop_filtered(Gst.MessageType.WARNING | Gst.MessageType.ERROR):
        if message.type == Gst.MessageType.ERROR:
            sys.exit(message.parse_error()[0].message)
        print("Warning:", message.parse_warning()[0].message, file=sys.stderr)


def measure(frames, settings="threshold-mode=auto"):
    """Yields what shcentroid measured in each frame. The threshold takes the camera's pedestal and noise away:
    without one shifts are far too small."""
    pipeline = Gst.parse_launch(
        "appsrc name=in format=time ! "
        f"shcentroid name=sh columns={COLUMNS} rows={ROWS} pitch-x={PITCH} "
        f"pitch-y={PITCH} {settings} ! appsink name=out sync=false"
    )
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.set_property(
        "caps",
        Gst.Caps.from_string(
            f"video/x-raw,format=GRAY16_LE,width={COLUMNS * PITCH},"
            f"height={ROWS * PITCH},framerate=1000/1"
        ),
    )
    pipeline.set_state(Gst.State.PLAYING)
    for frame in frames:
        source.emit("push-buffer", Gst.Buffer.new_wrapped(frame.tobytes()))
        sample = sink.emit("try-pull-sample", 5 * Gst.SECOND)
        tell(pipeline.get_bus())
        if not sample:
            sys.exit("no frame came out")
        yield metadata.results(sample.get_buffer(), "sh")
    pipeline.set_state(Gst.State.NULL)


def main():
    Gst.init(None)
    rng = np.random.default_rng(1)
    frames, places = zip(*[make_frame(rng) for _ in range(5)])
    for result, truth in zip(measure(frames), places):
        values = dict(zip(result["fields"], result["values"].T))
        found = np.stack([values["x"], values["y"]], axis=1)
        error = np.sqrt(np.mean((found - truth) ** 2))
        # light, enough of it, a match, and in its cell
        valid = (values["flags"].astype(int) & 227) == 0
        print(
            f"frame {result['frame']}: {valid.sum()} of {len(found)} spots, "
            f"rms error {error:.4f} pixel, mean slope {values['dx'].mean():+.3f} "
            f"{values['dy'].mean():+.3f} pixel"
        )
        if error > 0.02 or not valid.all():
            sys.exit("the spots were not found where they are")


if __name__ == "__main__":
    main()
