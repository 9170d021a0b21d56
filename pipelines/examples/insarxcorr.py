#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""insarxcorr in a Python program: lines of two images in, offsets out as NumPy arrays while lines still come.

Two appsrc -> insarxcorr -> appsink; the fit comes as a message. Exit status: 77 without PyGObject or NumPy.
"""
import sys
import threading

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
    import numpy as np
except (ImportError, ValueError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)

WIDTH, HEIGHT, LINES = 300, 400, 50  # LINES a buffer
SHIFT = 3, -2  # columns and lines that the secondary is away
NX, NY = 5, 6


def make_pair():
    """Two int16 images, [height, width, 2] (real, imaginary): noise, and the same elsewhere."""
    noise = np.random.default_rng(1).normal(0, 500, (HEIGHT + 10, WIDTH + 10, 2)).astype("<i2")
    x, y = SHIFT
    return noise[5:-5, 5:-5], noise[5 - y:HEIGHT + 5 - y, 5 - x:WIDTH + 5 - x]


def push_lines(source, image):
    """Blocks where insarxcorr has no room for more lines; so each image has a thread."""
    for first in range(0, HEIGHT, LINES):
        source.emit("push-buffer", Gst.Buffer.new_wrapped(image[first:first + LINES].tobytes()))
    source.emit("end-of-stream")


def rows(sink):
    """Yields the numbers of each row of patches, [nx, fields]: x, y, dx, dy, correlation and more."""
    while sample := sink.emit("try-pull-sample", 10 * Gst.SECOND):
        sizes = sample.get_caps().get_structure(0).get_string("dimensions").split(":")
        buffer = sample.get_buffer()
        yield np.frombuffer(buffer.extract_dup(0, buffer.get_size()), "f4").reshape(int(sizes[1]), int(sizes[0]))


def main():
    Gst.init(None)
    if not Gst.ElementFactory.find("insarxcorr"):
        sys.exit(77)
    caps = f"caps=application/x-slc,format=ci16,width={WIDTH},height={HEIGHT}"
    source = "appsrc name={0} block=true max-bytes=200000 " + caps + " ! x.{0} "
    pipeline = Gst.parse_launch(
        source.format("reference") + source.format("secondary")
        + f"insarxcorr name=x nx={NX} ny={NY} xsearch=32 ysearch=32 grid=even ! appsink name=out sync=false caps=other/tensors")
    threads = [threading.Thread(target=push_lines, args=(pipeline.get_by_name(name), image), daemon=True)
               for name, image in zip(("reference", "secondary"), make_pair())]
    pipeline.set_state(Gst.State.PLAYING)
    for thread in threads:
        thread.start()
    worst, n = 0.0, 0
    for row in rows(pipeline.get_by_name("out")):
        dx, dy = row[:, 2], row[:, 3]
        worst = max(worst, np.abs(dx - SHIFT[0]).max(), np.abs(dy - SHIFT[1]).max())
        print(f"line {row[0, 1]:.0f}: {dx.mean():.3f} columns, {dy.mean():.3f} lines")
        n += len(row)
    message = pipeline.get_bus().timed_pop_filtered(0, Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message:
        sys.exit(message.parse_error()[0].message)
    if n != NX * NY or worst > 0.25:  # white noise is aliased by detection
        sys.exit(f"{n} patches, off by {worst:.3f} at most")


if __name__ == "__main__":
    main()
