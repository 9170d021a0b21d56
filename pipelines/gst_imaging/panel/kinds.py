# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kinds of results, an entry for each element that measures: how a frame is summed up, and what the page plots.

Names of plots and arrows are those of static/plots.js and static/arrows.js.
"""
import dataclasses
import math
import typing

import numpy as np

from .. import library

SATURATED = 4  # the flag of a cell of shcentroid with saturated pixels


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


def means(result, _element):
    found = {}
    for name in result["fields"]:
        values = column(result, name)
        values = values[np.isfinite(values)]
        found[name] = finite(values.mean()) if values.size else None
    return found


def flags_saturated(shcentroid):
    """Whether it can flag a cell as saturated: not after saturation=-1, and float32 has no largest sample of its own"""
    saturation = shcentroid.get_property("saturation")
    if saturation or shcentroid.get_property("bit-depth"):
        return saturation >= 0
    caps = shcentroid.get_static_pad("sink").get_current_caps()
    return not caps or caps.get_structure(0).get_name() != "other/tensors"


def sum_up_centroids(result, element):
    flags = result.get("flags")
    dx, dy = column(result, "dx"), column(result, "dy")
    if dx is None:
        return {}
    valid = np.isfinite(dx) & np.isfinite(dy)
    has_flags = flags is not None and flags.size == valid.size
    if has_flags:
        valid &= flags & library.NO_CENTROID == 0
    dx, dy = dx[valid].astype(float), dy[valid].astype(float)
    found = {"valid": int(valid.sum()), "rms-dx": rms(dx), "rms-dy": rms(dy)}
    found["rms"] = math.hypot(found["rms-dx"], found["rms-dy"]) if dx.size else None
    found["mean-dx"], found["mean-dy"] = (finite(v.mean()) if v.size else None for v in (dx, dy))
    if has_flags and "flags" in result["fields"] and flags_saturated(element):  # with fields=slopes they are the invalid ones alone
        found["saturated"] = int((flags & SATURATED != 0).sum())
    return found


def patches(result):
    """Returns: rows of x, dx, y, dy, snr; None where some are missing"""
    parts = [column(result, name) for name in ("x", "dx", "y", "dy", "snr")]
    return np.stack(parts, -1) if all(part is not None for part in parts) else None


def sum_up_offsets(result, _element):
    found, rows = {"row": int(result["frame"]), "patches": int(result["values"].shape[0])}, patches(result)
    if rows is not None:
        good = np.isfinite(rows).all(-1)
        found["accepted"] = int(good.sum())
        if good.any():
            found["mean-dx"], found["mean-dy"] = (finite(rows[good, i].mean()) for i in (1, 3))
    return found


@dataclasses.dataclass(frozen=True)
class Kind:
    results: typing.Optional[str] = None  # id of the results, until some arrive
    plots: tuple = ("Plot", "Table")
    first: tuple = ("time-p50", "time-p99")  # columns that are plotted first, else the first one
    sum_up: typing.Callable = means  # of results, and the element of GStreamer that measured them
    arrows: typing.Optional[str] = None
    invalid: int = 0  # bits of the flags of a cell without a value
    field: typing.Optional[typing.Callable] = None  # rows of a frame: all frames of a pass are read, and are one field
    progress: typing.Optional[tuple] = None  # of its element message: name, text, and the fields whose quotient is the part
    none: str = "This element has measured nothing yet"  # before there are results
    answers: dict = dataclasses.field(default_factory=dict)  # element messages with the result of an action: name, action

    def told(self):
        """Returns: what the page reads"""
        return {"plots": self.plots, "first": self.first, "none": self.none, "arrows": self.arrows, "invalid": self.invalid, "progress": self.progress,
                "answers": self.answers}


OTHER = Kind()
KINDS = {
    "shcentroid": Kind("shwfs-centroids-v1", ("Plot", "Map of |slope|", "Map of dx", "Map of dy", "Table"), ("rms", "mean-dx", "mean-dy"),
                       sum_up_centroids, "slopes", library.NO_CENTROID),
    "lapsharpen": Kind("laplacian-focus-v1", first=("variance",), none="The focus is measured with focus-measure=true"),
    "photostereo": Kind("photostereo-summary-v1", first=("mean-residual", "change"),
                        progress=("photostereo-progress", "{lights} lights, residual {mean-residual}")),
    "octbscan": Kind("oct-ascans-v1", ("A-scan", "Plot", "Table"), (),
                     answers={"octbscan-mirror": "calibrate-mirror", "octbscan-dispersion": "estimate-dispersion"}),
    "insarxcorr": Kind("insar-offsets-v2", ("Field of offsets", "Plot", "Table"), ("mean-dx", "mean-dy"), sum_up_offsets, "offsets",
                       field=patches, progress=("insarxcorr-progress", "{rows} of {of} rows", "rows", "of")),
    "shreconstruct": Kind("ao-modes-v1", first=()),
}


def of(factory):
    return KINDS.get(factory, OTHER)
