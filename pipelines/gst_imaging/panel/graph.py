# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is wrong with a pipeline whose error says nothing: GStreamer's "Internal data stream error" has no reason."""
import re

from .. import play

NO_REASON = "Internal data stream error"
FOLLOWING = NO_REASON, "GStreamer error: state change failed"  # errors that follow one with a reason
ENDS = "! fakesink sync=true"


def name_of(element):
    factory = element.get_factory()
    return f"{element.get_name()} ({factory.get_name()})" if factory and not element.get_name().startswith(factory.get_name()) else element.get_name()


def loose(Gst, pipeline):
    """Why frames cannot pass a pipeline that has not started, as a sentence; None: they can. Pads that appear later may still be linked"""
    elements = list(reversed(pipeline.children))
    without_output = [e for e in elements if e.srcpads and not any(pad.is_linked() for pad in e.srcpads)]
    without_input = [e for e in elements if e.sinkpads and not any(pad.is_linked() for pad in e.sinkpads)]
    later = any(t.presence == Gst.PadPresence.SOMETIMES and t.direction == Gst.PadDirection.SRC
                for e in elements for t in e.get_pad_template_list())
    if without_output and without_input and not later:
        after = next((e for e in without_input if e is not without_output[0]), None)
        if after:
            return f'{name_of(without_output[0])} and {name_of(after)} are not linked: write " ! " between them.'
    if without_output:
        return f'The frames of {name_of(without_output[0])} go nowhere: end the description with "{ENDS}".'
    if without_input and not later:
        return f"{name_of(without_input[0])} has no input: begin the description with a source, as picturesrc location=FILE."
    return None


def remedy(text):
    """Returns: the sentence that refuses a file, and what helps: with samples that no video has, or that have no header"""
    if "Video has no samples of this type" in text:
        return f"{text} gst-imaging panel view FILE shows it as it is."
    if "is no camera RAW" not in text:
        return text
    return (f"{text} Of samples without a format give their size: gst-imaging panel view FILE --samples WIDTH --lines HEIGHT (--dtype, --offset"
            " where they are not u16 from the first byte on); or rawvideoparse in a description.")


def reason(message, text, debug):
    """Returns: the sentence of an error or a warning, with the reason where GStreamer's own sentence has none"""
    element = message.src
    if not text.startswith(NO_REASON) or not hasattr(element, "srcpads"):
        beside = "; ".join((debug or "").split("\n")[1:])
        return f"{text} ({beside})" if beside and hasattr(element, "srcpads") and not play.is_ours(element) else remedy(text)
    found = re.search(r"reason ([\w-]+)", debug or "")
    kind = found[1] if found else ""
    if kind == "not-linked":
        return f'The frames of {name_of(element)} go nowhere: a pad behind it is not linked. Each branch ends in a sink, as "{ENDS}".'
    if kind == "not-negotiated":
        caps = next((pad.get_current_caps() for pad in element.srcpads if pad.get_current_caps()), None)
        what = f" ({caps.to_string()})" if caps else ""
        return (f"The elements behind {name_of(element)} do not take its frames{what}. Put a converter such as videoconvert between,"
                " or use another format.")
    return f"{text.rstrip('.')} of {name_of(element)}: {kind or 'no reason is known'}."
