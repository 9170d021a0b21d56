# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files with several images, such as telemetry: the one that the AOT convention names is read. Matrices of slopes: matrices.py."""
from .. import library
from ..command import UNREADABLE, Failure


def part_of(path, name=None):
    """Returns: the number of the image with that name; -1 for a file with one"""
    parts = library.Arrays().parts(path)
    if not parts:
        return -1
    found = [part.split(" ")[1] for part in parts.split("; ")]  # "0: COMMANDS f32 [9, 4]"
    if name in found:
        return found.index(name)
    missing = f", none of them named {name}" if name else ""
    raise Failure(UNREADABLE, f"{path} has {len(found)} images ({parts}){missing}. Make a file of one of them with"
                              " `gst-imaging convert FILE ONE.npy --part=NUMBER`.")


def read(path, name=None):
    return library.Arrays(part_of(path, name)).read(path)
