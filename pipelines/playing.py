# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts here share: the plug-ins of the build folder, and a pipeline that is played to its end.

gst-launch-1.0 1.22 sometimes waits for ever when an error comes before it plays; these scripts run in other people's
scripts, and do not.
"""
import os
import sys
import warnings


def use_build_folder():
    """Starts the script anew by pipelines/env, once."""
    if "GST_IMAGING_ENV" not in os.environ:
        here = os.path.dirname(os.path.realpath(__file__))
        os.execv(os.path.join(here, "env"), ["env", sys.executable, *sys.argv])


def show_progress(structure):
    """For play(): an element message "ELEMENT-progress" (of slcsrc, insarxcorr, ...) as a line on a terminal."""
    name, what = structure.get_name(), structure.nth_field_name(0)
    if name.endswith("-progress") and sys.stderr.isatty():
        done, of = structure.get_value(what), structure.get_value("of")
        sys.stderr.write(f"\r{name[:-9]}: {done} of {of} {what}\033[K" + ("\n" if done == of else ""))


def parse(words):
    """Returns: Gst and the pipeline, an argument a word."""
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst

    Gst.init(None)
    # a value that a property does not take is only warned of, and the default would be used
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            pipeline = Gst.parse_launchv(words)
        except GLib.Error as error:
            raise RuntimeError(error.message) from None
    if said:
        raise RuntimeError(f"The {said[0].message}.")
    return Gst, pipeline


def play(words, tell=None):
    """Plays the pipeline, an argument a word. tell: gets the structure of every element message. Returns: what came
    out of an appsink "out", if there is one."""
    Gst, pipeline = parse(words)
    bus, out, text = pipeline.get_bus(), pipeline.get_by_name("out"), b""
    types = Gst.MessageType.EOS | Gst.MessageType.ERROR
    if tell:
        types |= Gst.MessageType.ELEMENT
    pipeline.set_state(Gst.State.PLAYING)
    try:
        while True:
            message = bus.timed_pop_filtered(50 * Gst.MSECOND if out else Gst.CLOCK_TIME_NONE, types)
            while out and (sample := out.emit("try-pull-sample", 0)):
                buffer = sample.get_buffer()
                text += buffer.extract_dup(0, buffer.get_size())
            if message and message.type == Gst.MessageType.ERROR:
                raise RuntimeError(message.parse_error()[0].message)
            if message and message.type == Gst.MessageType.ELEMENT:
                tell(message.get_structure())
            elif message:
                return text
    finally:
        pipeline.set_state(Gst.State.NULL)


def read_size(source):
    """Returns: width and height of what a source gives, from its words."""
    Gst, pipeline = parse([*source, "!", "fakesink", "name=sink"])
    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PAUSED)
    try:
        message = bus.timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.ASYNC_DONE | Gst.MessageType.ERROR)
        if message.type == Gst.MessageType.ERROR:
            raise RuntimeError(message.parse_error()[0].message)
        caps = pipeline.get_by_name("sink").get_static_pad("sink").get_current_caps().get_structure(0)
        return caps.get_value("width"), caps.get_value("height")
    finally:
        pipeline.set_state(Gst.State.NULL)
