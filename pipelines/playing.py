# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts here share: the plug-ins of the build folder, and a pipeline that is played to its end.

gst-launch-1.0 1.22 sometimes waits for ever when an error comes before it plays; these scripts run in other people's
scripts, and do not.
"""
import os
import sys


def use_build_folder():
    """Starts the script anew by pipelines/env, once."""
    if "GST_IMAGING_ENV" not in os.environ:
        here = os.path.dirname(os.path.realpath(__file__))
        os.execv(os.path.join(here, "env"), ["env", sys.executable, *sys.argv])


def play(words):
    """Plays the pipeline, an argument a word. Returns: what came out of an appsink "out", if there is one."""
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst

    Gst.init(None)
    try:
        pipeline = Gst.parse_launchv(words)
    except GLib.Error as error:
        raise RuntimeError(error.message) from None
    bus, out, text = pipeline.get_bus(), pipeline.get_by_name("out"), b""
    pipeline.set_state(Gst.State.PLAYING)
    try:
        while True:
            message = bus.timed_pop_filtered(
                50 * Gst.MSECOND if out else Gst.CLOCK_TIME_NONE,
                Gst.MessageType.EOS | Gst.MessageType.ERROR,
            )
            while out and (sample := out.emit("try-pull-sample", 0)):
                buffer = sample.get_buffer()
                text += buffer.extract_dup(0, buffer.get_size())
            if message and message.type == Gst.MessageType.ERROR:
                raise RuntimeError(message.parse_error()[0].message)
            if message:
                return text
    finally:
        pipeline.set_state(Gst.State.NULL)
