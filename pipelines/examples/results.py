# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads what elements of gst-imaging measured, with plain PyGObject and NumPy.

Copy this file into your program: it needs no module of ours. The element that
measures has to be loaded first, as it is when the pipeline runs in the process.
"""
import numpy as np

from gi.repository import Gst


def read_bytes(buffer):
    """All bytes of a buffer, a copy; with or without the package python3-gst-1.0."""
    ok, info = buffer.map(Gst.MapFlags.READ)
    if not ok:
        raise RuntimeError("the buffer cannot be read")
    try:
        return bytes(info.data)
    finally:
        buffer.unmap(info)


def read(buffer, element):
    """What the element of this name measured in the frame, or None.

    Returns a dictionary: "values" is a float32 array, a row for each cell or a
    row for each field; "fields" names its columns (or rows), "unit" their units.
    """
    meta = buffer.get_custom_meta("GstImagingResults")
    structure = meta.get_structure() if meta else None
    if not structure or not structure.has_field(element):
        return None
    fields = structure.get_value(element)
    names = ("id", "by-field", "ref-width", "ref-height", "frame")
    result = {name: fields.get_value(name) for name in names}
    result["fields"] = fields.get_value("fields").split(",")
    result["unit"] = fields.get_value("unit").split(",")
    shape = fields.get_value("rows"), fields.get_value("columns")
    values = np.frombuffer(read_bytes(fields.get_value("data")), np.float32)
    result["values"] = values.reshape(shape).copy()  # ours to change
    return result
