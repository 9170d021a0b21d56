# SPDX-License-Identifier: LGPL-2.1-or-later
"""What elements measured, as JSON with a summary to plot."""
import collections
import math

import numpy as np

from .. import metadata
from .values import number

MAX_ROWS, MAX_PATCHES = 4096, 20000
INVALID = 227  # of shcentroid: flags of a cell without a centroid


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


def finite(value):
    value = float(value)
    return value if math.isfinite(value) else None


def column(result, name):
    if name not in result["fields"]:
        return None
    i = result["fields"].index(name)
    return result["values"][i] if result["by-field"] else result["values"][:, i]


def rms(values):
    return finite(np.sqrt(np.mean((values - values.mean()) ** 2))) if values.size else None


def sum_up_centroids(result):
    flags = result.get("flags")
    dx, dy = column(result, "dx"), column(result, "dy")
    if dx is None:
        return {}
    valid = np.isfinite(dx) & np.isfinite(dy)
    if flags is not None and flags.size == valid.size:
        valid &= flags & INVALID == 0
    dx, dy = dx[valid].astype(float), dy[valid].astype(float)
    found = {"valid": int(valid.sum()), "rms-dx": rms(dx), "rms-dy": rms(dy)}
    found["rms"] = math.hypot(found["rms-dx"], found["rms-dy"]) if dx.size else None
    found["mean-dx"], found["mean-dy"] = (finite(v.mean()) if v.size else None for v in (dx, dy))
    return found


class Field:
    """The offsets of the rows of one pass of insarxcorr."""

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


def sum_up_offsets(result, field):
    """The patches of this row are added to the field."""
    parts = [column(result, name) for name in ("x", "dx", "y", "dy", "snr")]
    found, patches = {"row": int(result["frame"]), "patches": int(result["values"].shape[0])}, []
    if all(part is not None for part in parts):
        rows = np.stack(parts, -1)
        good = np.isfinite(rows).all(-1)
        found.update({"accepted": int(good.sum())})
        if good.any():
            found.update({"mean-dx": finite(rows[good, 1].mean()), "mean-dy": finite(rows[good, 3].mean())})
        patches = plain(rows)
    field.add(found["row"], patches)
    return {**found, "missed": field.missed()}


def means(result):
    found = {}
    for name in result["fields"]:
        values = column(result, name)
        values = values[np.isfinite(values)]
        found[name] = finite(values.mean()) if values.size else None
    return found


def cells(buffer, element):
    structure = metadata.structure_of(buffer, "GstImagingResults")
    fields = structure.get_value(element) if structure and structure.has_field(element) else None
    if not fields or not fields.has_field("cells"):
        return None
    return np.frombuffer(metadata.read_bytes(fields.get_value("cells")), np.float32).reshape(-1, 6)


def read(buffer, element, field, whole=True):
    """field: a Field, of all buffers of an element. whole: whether the message has it. Returns: the message of this buffer; None where the
    element did not measure it"""
    result = metadata.results(buffer, element)
    if not result:
        return None
    rows, columns = result["values"].shape
    message = {"type": "results", "element": element, "rows": rows, "columns": columns}
    for name in ("id", "by-field", "frame", "pts", "frames-missing", "ref-width", "ref-height", "settings-hash", "backend"):
        message[name] = result.get(name)
    if result["id"].startswith("shwfs"):
        message["summary"] = sum_up_centroids(result)
    elif result["id"].startswith("insar"):
        message["summary"] = sum_up_offsets(result, field)
        message["field"] = field.patches() if whole else None
    else:
        message["summary"] = means(result)
    axis = 1 if result["by-field"] else 0
    message["truncated"] = result["values"].shape[axis] > MAX_ROWS
    part = (slice(None), slice(MAX_ROWS)) if result["by-field"] else slice(MAX_ROWS)
    message.update({"fields": result["fields"], "unit": result["unit"], "values": plain(result["values"][part])})
    for name, array in (("flags", result.get("flags")), ("row-column", result.get("row-column")), ("cells", cells(buffer, element))):
        message[name] = None if array is None else plain(array[:MAX_ROWS])
    return message
