# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests in Python share. Nothing here waits longer than TIMEOUT."""
import os
import subprocess
import sys
import unittest

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

import numpy as np

TIMEOUT = 60  # seconds
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(
    os.environ.get("IMAGING_TEST_DATA", os.path.join(SOURCE, "..", "shared", "data")),
    "shcentroid")

Gst.init(None)


def main():
    """As unittest.main(), but nothing run is exit status 77."""
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)


def data(name):
    """The path of a real frame or table; skips the test without it."""
    path = os.path.join(DATA, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{path} is not there; set IMAGING_TEST_DATA")
    return path


def launch(*words, status=0, timeout=TIMEOUT, **environment):
    """Runs gst-launch-1.0. Returns: all that it printed. gst-launch of 1.22 may
    hang after an error, so a status other than 0 may also be a time-out."""
    done = subprocess.run(
        ["timeout", "-k", "5", str(timeout), "gst-launch-1.0", "--no-fault", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **environment})
    text = " ".join(words)
    if status == 0 and done.returncode:
        raise AssertionError(f"{text}: exit status {done.returncode}\n{done.stdout}")
    if status and not done.returncode:
        raise AssertionError(f"{text} succeeded\n{done.stdout}")
    if "CRITICAL" in done.stdout or done.returncode < 0 or done.returncode in (133, 134, 139):
        raise AssertionError(f"{text}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def through(element, frame, format):
    """One frame, [height, width(, channels)], through a launch line."""
    height, width = frame.shape[:2]
    pipeline = Gst.parse_launch(
        f"appsrc name=in ! {element} ! appsink name=out sync=false")
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.set_property("format", Gst.Format.TIME)
    source.set_property("caps", Gst.Caps.from_string(
        f"video/x-raw,format={format},width={width},height={height},framerate=25/1"))
    row = frame.reshape(height, -1).view(np.uint8)
    stride = (row.shape[1] + 3) // 4 * 4
    padded = np.zeros((height, stride), np.uint8)
    padded[:, :row.shape[1]] = row
    pipeline.set_state(Gst.State.PLAYING)
    try:
        source.emit("push-buffer", Gst.Buffer.new_wrapped(padded.tobytes()))
        sample = sink.emit("try-pull-sample", TIMEOUT * Gst.SECOND)
        if not sample:
            message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise AssertionError(message.parse_error() if message else "no frame came")
        buffer = sample.get_buffer()
        got = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
    finally:
        pipeline.set_state(Gst.State.NULL)
    got = got.reshape(height, stride)[:, :row.shape[1]]
    return np.ascontiguousarray(got).view(frame.dtype).reshape(frame.shape)


def play(pipeline):
    """Plays a pipeline, or the text of one, to its end."""
    if isinstance(pipeline, str):
        pipeline = Gst.parse_launch(pipeline)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(
        TIMEOUT * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if not message:
        raise AssertionError("the pipeline did not come to its end")
    if message.type == Gst.MessageType.ERROR:
        raise AssertionError(message.parse_error())


def read_csv(path):
    """Columns by name, as float64; empty fields are NaN."""
    return np.genfromtxt(path, delimiter=",", names=True, encoding="ascii")
