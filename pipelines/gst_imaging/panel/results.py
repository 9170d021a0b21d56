# SPDX-License-Identifier: LGPL-2.1-or-later
"""What elements measured, as JSON with a summary to plot."""
import collections
import math

import numpy as np

from .. import metadata
from .values import number

MAX_ROWS, MAX_PATCHES = 4096, 20000


def plain(array):
    """Lists in which infinities and NaN are the texts that they are as values of properties, which float() reads."""
    if array is None:
        return None
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    plainly = array.astype(object)
    for value in math.nan, math.inf, -math.inf:
        plainly[np.isnan(array) if math.isnan(value) else array == value] = number(value)
    return plainly.tolist()


class Field:
    """The rows of one pass, as the offsets of insarxcorr."""

    def __init__(self):
        self.rows, self.newest = collections.deque(), -1
        self.n_patches = 0

    def begins(self, row):
        """Whether a row is the first one of another pass."""
        return row <= self.newest

    def add(self, row, patches):
        if self.begins(row):
            self.rows.clear()
            self.n_patches = 0
        self.newest = row
        self.rows.append(patches)
        self.n_patches += len(patches)
        while self.n_patches > MAX_PATCHES:
            self.n_patches -= len(self.rows.popleft())

    def missed(self):
        """Returns: how many rows of the pass so far are not in the field"""
        return self.newest + 1 - len(self.rows)

    def patches(self):
        return [patch for row in self.rows for patch in row]


def cells(buffer, element):
    structure = metadata.structure_of(buffer, "GstImagingResults")
    fields = structure.get_value(element) if structure and structure.has_field(element) else None
    if not fields or not fields.has_field("cells"):
        return None
    return np.frombuffer(metadata.read_bytes(fields.get_value("cells")), np.float32).reshape(-1, 6)


def read(buffer, element, field, whole=True):
    """element: an Element. field: a Field, of all its buffers. whole: whether the message has it. Returns: the message of this buffer; None
    where the element did not measure it"""
    result = metadata.results(buffer, element.name)
    return message_of(buffer, element, result, element.kind.sum_up(result, element.element), field, whole) if result else None


def message_of(buffer, element, result, summary, field, whole=True):
    """result: of metadata.results(), and its summary"""
    kind = element.kind
    rows, columns = result["values"].shape
    message = {"type": "results", "element": element.name, "rows": rows, "columns": columns}
    for name in ("id", "by-field", "frame", "pts", "frames-missing", "ref-width", "ref-height", "settings-hash", "backend"):
        message[name] = result.get(name)
    message.update({"summary": summary, "between": None})
    if kind.field:
        field.add(int(result["frame"]), plain(kind.field(result)) or [])
        message["summary"]["missed"] = field.missed()
        message["field"] = field.patches() if whole else None
    axis = 1 if result["by-field"] else 0
    message["truncated"] = result["values"].shape[axis] > MAX_ROWS
    part = (slice(None), slice(MAX_ROWS)) if result["by-field"] else slice(MAX_ROWS)
    message.update({"fields": result["fields"], "unit": result["unit"], "values": plain(result["values"][part])})
    for name, array in (("flags", result.get("flags")), ("row-column", result.get("row-column")), ("cells", cells(buffer, element.name))):
        message[name] = None if array is None else plain(array[:MAX_ROWS])
    return message
