# SPDX-License-Identifier: LGPL-2.1-or-later
"""In whose columns and lines an image is: what coregister has written beside one that it resampled."""
import os

from .. import job
from ..command import UNREADABLE, Failure
from ..report import hash_of
from .images import file_of, slc_of

MANY = 65536  # bytes, which samples have and headers have not


def marks(entries):
    """Returns: hashes by which an image is known again, of its first file and of its samples. Headers of two images may be the same"""
    return {entry["sha256"] for i, entry in enumerate(entries) if i == 0 or entry["size"] > MANY}


class Origin:
    """grid: entries of result.json of the image whose columns and lines a resampled one has; path: of the image before"""

    def __init__(self, result):
        self.grid, own = ([entry for entry in result["inputs"] if entry["role"] == role] for role in ("reference", "secondary"))
        self.name, self.path = self.grid[0]["path"], own[0]["path"]
        self.marks = marks(self.grid)


def origin(path):
    """Returns: the Origin of an image that coregister has made; None of another one"""
    path = file_of(path)
    result = job.read_result(os.path.dirname(path) or ".")
    try:
        is_ours = result and result["command"] == "coregister" and any(entry["name"] == os.path.basename(path) for entry in result["outputs"])
        return Origin(result) if is_ours else None
    except (LookupError, TypeError):  # a file of somebody else
        return None


def third(path, orbit):
    """Returns: the image in whose columns and lines coregister has resampled a reference, where its orbit is that of another image; else
    None"""
    found = origin(path)
    if not found or any(hash_of(file) in found.marks for file in (orbit, *slc_of(orbit)) if os.path.isfile(file)):
        return None
    return found.name


def check(images, entries, grid):
    """Fails where coregister has resampled one of two coregistered images to another grid than that of the other, or than --grid.
    images: two paths; entries: of the inputs, with the roles reference and secondary; grid: a path, or None"""
    origins = [origin(path) for path in images]
    if not any(origins):
        return  # by other programs, which tell nothing
    found = [one.marks if one else marks([entry for entry in entries if entry["role"] == role])
             for one, role in zip(origins, ("reference", "secondary"))]
    if grid:
        wanted, name = {hash_of(file_of(grid))}, f"--grid is {grid}"
        if not all(one & wanted for one in found):  # the PRM file may have got other lines
            wanted |= {hash_of(file) for file in slc_of(grid) if os.path.isfile(file)}
    else:
        i = 0 if origins[0] else 1
        wanted, name = origins[i].marks, f"the other image is in that of {origins[i].name}"
    for path, one, known in zip(images, origins, found):
        if not known & wanted:
            where = f"was resampled to the grid of {one.name}" if one else "was not resampled"
            again = f"gst-imaging coregister {grid or 'GRID'} {one.path if one else path} --slc"
            raise Failure(UNREADABLE, f'"{path}" {where}, and {name}: the images are not in the same columns and lines, or a file of the grid has '
                                      f"changed since. {again} makes it on that grid.")
