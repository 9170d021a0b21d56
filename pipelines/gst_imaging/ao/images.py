# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files with several images, such as telemetry: the one that the AOT convention names is read, as shreconstruct does."""
from .. import library
from ..command import UNREADABLE, Failure

NAMES = {  # by property or option
    "matrix": ("CONTROL_MATRIX", "MEASUREMENTS_TO_MODES"),
    "interaction": ("INTERACTION_MATRIX",),
    "modes": ("MODES_TO_COMMANDS",),
    "mode_commands": ("MODES_TO_COMMANDS",),
    "reference": ("REF_COMMANDS",),
    "slope-offsets": ("REF_MEASUREMENTS",),
    "commands": ("COMMANDS",),
    "mask": ("SUBAPERTURE_MASK",),
}


def find(path, kind=None):
    """kind: of NAMES. Returns: the number of its image and its name; -1 and None for a file with one"""
    parts = library.Arrays().parts(path)
    if not parts:
        return -1, None
    found = [part.split(" ")[1] for part in parts.split("; ")]  # "0: COMMANDS f32 [9, 4]"
    names = NAMES.get(kind, ())
    for name in names:
        if name in found:
            return found.index(name), name
    missing = f", none of them named {names[0]}" if names else ""
    raise Failure(UNREADABLE, f"{path} has {len(found)} images ({parts}){missing}. Make a file of one of them with"
                              " `gst-imaging convert FILE ONE.npy --part=NUMBER`.")


def part_of(path, kind=None):
    return find(path, kind)[0]


def read(path, kind=None):
    return library.Arrays(part_of(path, kind)).read(path)
