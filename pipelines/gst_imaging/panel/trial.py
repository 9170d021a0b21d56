# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an element of ours says of its settings before the pipeline starts: another element of its kind is started with them.

It gets the caps that the element had when it ran last, and no frame. Sinks, elements of several inputs, and those that would wait for a FIFO are
not tried.
"""
import os

from . import gvalue


def can_be_tried(element):
    sinks = element.element.sinkpads
    return element.ours and bool(element.element.srcpads) and (not sinks or len(sinks) == 1 and element.caps is not None) and not waits(element)


def waits(element):
    paths = [path for name, p in element.properties.items() if p["type"] in ("path", "paths") for path in [element.get(name) or []]]
    return any(os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
               for value in paths for path in ([value] if isinstance(value, str) else value))


def sentence(Gst, element, values):
    """values: of properties, by name, in place of those of the element. Returns: why it would not start; None: it does"""
    twin = Gst.ElementFactory.make(element.factory)
    bus = Gst.Bus.new()
    twin.set_bus(bus)
    for name, described in element.properties.items():
        if described["when"] not in (None, "read") and not described.get("others") and not element.writes(name):
            gvalue.copy(element.element, twin, name)
    if twin.find_property("backend"):
        twin.set_property("backend", "cpu")  # no device is taken
    element.apply(values, twin)
    try:
        return start(Gst, twin, bus, element.caps)
    finally:
        twin.set_state(Gst.State.NULL)
        twin.set_bus(None)


def start(Gst, twin, bus, caps):
    failed = twin.set_state(Gst.State.PAUSED) == Gst.StateChangeReturn.FAILURE
    if not failed and twin.sinkpads:
        pad = Gst.Pad.new("src", Gst.PadDirection.SRC)
        pad.link_full(twin.sinkpads[0], Gst.PadLinkCheck.NOTHING)
        pad.set_active(True)
        pad.push_event(Gst.Event.new_stream_start("trial"))
        pad.push_event(Gst.Event.new_caps(caps))
        pad.set_active(False)
    elif not failed:  # it begins to push, and finds nobody: that is no fault of its settings
        return None
    message = bus.pop_filtered(Gst.MessageType.ERROR)
    return message.parse_error()[0].message if message else None
