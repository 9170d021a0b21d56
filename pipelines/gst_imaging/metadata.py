# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the metadata of gst-imaging, with plain PyGObject and NumPy.

Import it (from gst_imaging import metadata), or copy this file into your
program: it needs no module of ours. The element that writes the metadata has to
be loaded first, as it is when the pipeline runs in the process.
"""
import errno
import json
import os
import re
import stat

import numpy as np

import gi

gi.require_version("Gst", "1.0")
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


MOST_BYTES, MOST_FRAMES = 256 << 20, 10 ** 8  # of a sidecar
MOST_AXES = 4
ORIGIN = ("element", "version", "backend", "settings-hash")  # what made it


def structure_of(buffer, name):
    """The structure of a custom meta, or None. Keep it while you read from it."""
    meta = buffer.get_custom_meta(name) if Gst.meta_get_info(name) else None
    return meta.get_structure() if meta else None


def members(structure, names):
    """Those that the structure has, as a dictionary."""
    return {name: structure.get_value(name) for name in names if structure.has_field(name)}


def results(buffer, element):
    """What the element of this name measured in the frame, or None.

    Returns a dictionary: "values" is a float32 array, a row for each cell or a
    row for each field; "fields" names its columns (or rows), "unit" their units.
    Where the element has them, "flags" is an array of uint8, and "row-column" one
    of uint32 [cells, 2]: the lenslet of each cell.
    """
    structure = structure_of(buffer, "GstImagingResults")
    if not structure or not structure.has_field(element):
        return None
    fields = structure.get_value(element)
    result = members(fields, ("id", "by-field", "ref-width", "ref-height", "frame", "frames-missing", "pts",
                              "timestamp", "timestamp-reference", "slope-scale", "cells-valid", "cells-excluded", "commands-limited",
                              "low-light", "closed", "calibrating", "points") + ORIGIN)
    result["fields"] = fields.get_value("fields").split(",")
    result["unit"] = fields.get_value("unit").split(",")
    shape = fields.get_value("rows"), fields.get_value("columns")
    values = np.frombuffer(read_bytes(fields.get_value("data")), np.float32)
    result["values"] = values.reshape(shape).copy()  # ours to change
    for name, dtype in (("flags", np.uint8), ("row-column", np.uint32), ("modes", np.float32)):
        if fields.has_field(name):
            result[name] = np.frombuffer(read_bytes(fields.get_value(name)), dtype)
    if "row-column" in result:
        result["row-column"] = result["row-column"].reshape(-1, 2)
    return result


def axes_of(told):
    """A list of the axes in members such as axis-2-step. An axis has its number as its place: one that is not known is None."""
    usual = {"name": "", "unit": "", "step": 1.0, "origin": 0.0}
    known = [i for i in range(MOST_AXES) if f"axis-{i}-name" in told]
    return [{name: type(value)(told.get(f"axis-{i}-{name}", value)) for name, value in usual.items()} if i in known else None
            for i in range(max(known, default=-1) + 1)]


def quantity(buffer):
    """What the samples of an image are, or None: quantity = offset + scale * sample.

    Returns a dictionary with "name", "unit", "scale", "offset", the strings of
    ORIGIN, and "axes": for each axis "name", "unit", "step" and "origin", that
    along a row first; None for one that is not known. Where the samples stand for no quantity, it has ORIGIN.
    """
    structure = structure_of(buffer, "GstImagingQuantity")
    if not structure:
        return None
    result = members(structure, ("name", "unit", "scale", "offset") + ORIGIN)
    result["axes"] = axes_of({structure.nth_field_name(i): structure.get_value(structure.nth_field_name(i))
                              for i in range(structure.n_fields())})
    return result


def read_json(path):
    """What a JSON file holds. A pipe or a device, which may never end, is an OSError; what is no JSON a ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, encoding="utf-8") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        if about.st_size > MOST_BYTES:
            raise ValueError(f"{path} has more than {MOST_BYTES >> 20} MiB")
        try:
            return json.load(file)
        except RecursionError as error:
            raise ValueError(f"{path} is nested too deeply") from error
        except ValueError as error:
            raise ValueError(f"{path} is cut, empty or no JSON: {error}") from error


def expand(series):
    """The numbers of a series in a sidecar, one a frame; None where there is none."""
    counts = [entry["count"] if isinstance(entry, dict) else entry[2] for entry in series if isinstance(entry, (dict, list))]
    if sum(counts) > MOST_FRAMES:
        raise ValueError(f"it lists {sum(counts)} frames, and {MOST_FRAMES} are read")
    numbers = []
    for entry in series:
        if isinstance(entry, dict):  # a constant rate
            rate, unit = (int(word) for word in entry["framerate"].split("/"))
            numbers += [(entry["first"] + i) * unit * 10 ** 9 // rate for i in range(entry["count"])]
        elif isinstance(entry, list):
            first, step, count = entry
            numbers += [None if first is None else first + i * step for i in range(count)]
        else:
            numbers.append(entry)
    return numbers


def find_series(path):
    """Of a numbered file: the name that picturesink had, with the number in it, and its number; else None. The rule of
    common/files/gstimagingfilenumber.c, without the library."""
    folder, name = os.path.split(path)
    for beside in sorted(os.listdir(folder or ".")) if os.path.isdir(folder or ".") else ():
        parts = re.fullmatch("(.*)%(0?)([0-9]*)[du](.*)[.]json", beside, re.DOTALL)
        found = parts and re.fullmatch(f"{re.escape(parts[1])} *([0-9]+){re.escape(parts[4])}", name, re.DOTALL)
        if found and parts[1] + str(int(found[1])).rjust(min(int(parts[3] or 0), 20), parts[2] or " ") + parts[4] == name:
            return os.path.join(folder, beside[:-len(".json")]), int(found[1])
    return None


def read_sidecar(path):
    try:
        told = read_json(f"{path}.json")
    except FileNotFoundError:
        return None
    if not isinstance(told, dict) or told.get("schema") != "gst-imaging-sidecar-v1":
        return None
    return told


def per_frame(told):
    """Each series of a sidecar, as the dictionary that has it and its key."""
    quantity = told.get("quantity", {})
    return [(told, key) for key in ("frame-numbers", "pts", "capture-times")] + [
        (place, key) for place in [quantity, *filter(None, quantity.get("axes", []))] for key in ("scale", "offset", "step", "origin")]


def one_file(told, path, number):
    """What the sidecar of a series tells of one file, or None: what changes from frame to frame is a number."""
    while told and number < told["first"]:  # of an earlier run
        told = told.get("previous")
    if not told or number >= told["first"] + told["frames"]:
        return None
    for place, key in per_frame(told):
        if isinstance(place.get(key), list):
            numbers = expand(place[key])[number - told["first"]]
            place[key] = [numbers] if place is told else numbers
    return {**told, "file": os.path.basename(path), "first": number, "frames": 1}


def sidecar(path):
    """What picturesink wrote beside a file, or None: a dictionary.

    "quantity", if there is one, is as quantity() returns it, but "scale" and
    "offset", and "step" and "origin" of an axis, are lists where they change
    from frame to frame. "frame-numbers", "pts" and "capture-times" have an entry
    for each frame. Of a numbered file it is what frame%05d.png.json tells of it.
    A file that is cut or empty is a ValueError that names it.
    """
    told = read_sidecar(path)
    if told is None:
        series = None if os.path.exists(f"{path}.json") else find_series(path)
        return series and one_file(read_sidecar(series[0]), path, series[1])
    for place, key in per_frame(told):
        if isinstance(place.get(key), list):
            place[key] = expand(place[key])
    return told


def values(quantity, samples):
    """What samples stand for, in the unit of the quantity: offset + scale * sample, float64.

    Where scale and offset change from frame to frame, the first dimension of the samples is the frames. Those of a frame
    without a scale, such as one of another unit, are NaN.
    """
    samples = np.asarray(samples)
    numbers = []
    for key, usual in (("scale", 1.0), ("offset", 0.0)):
        number = np.asarray(quantity.get(key, usual), float)
        if number.ndim and number.shape != samples.shape[:1]:
            raise ValueError(f"{key} is told of {len(number)} frames, and samples are {list(samples.shape)}: take the samples of"
                             " these frames, as the first dimension")
        numbers.append(number.reshape(number.shape + (1,) * (samples.ndim - number.ndim)))
    return numbers[1] + numbers[0] * samples


def places(axis, n):
    """Where the n samples of an axis are, in its unit: [n], or [frames, n] of an axis that changes."""
    origin, step = (np.asarray(axis[key], float)[..., np.newaxis] for key in ("origin", "step"))
    return origin + step * np.arange(n)
