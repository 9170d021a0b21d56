# SPDX-License-Identifier: LGPL-2.1-or-later
"""Heights in radar coordinates at cells, placed as insarform places those of dem-location."""
from .. import library
from . import rasters


def read(path, size, scratch):
    """size: columns and lines of the image. Returns: the values, and the first place and the step of columns and of lines"""
    values, transform = rasters.read(path, "DEM", scratch)
    if transform:
        return values.astype(float), (transform[0], rasters.reach(transform, values.shape)[2]), (transform[1], abs(transform[5]))
    return values.astype(float), (0, 0), tuple(n / m for n, m in zip(size, values.shape[::-1]))


def at(path, size, columns, lines, scratch):
    """Returns: the heights at these places, bilinear, those of the border outside; NaN where one that counts is"""
    np = library.numpy()
    values, origin, step = read(path, size, scratch)
    for axis, places in (1, columns), (0, lines):
        n = values.shape[axis]
        where = np.clip((np.asarray(places) + 0.5 - origin[1 - axis]) / step[1 - axis] - 0.5, 0, n - 1)
        low = np.minimum(where.astype(int), max(n - 2, 0))
        part = where - low
        high = np.minimum(low + 1, n - 1)
        part = part[None, :] if axis else part[:, None]
        first = np.take(values, low, axis)
        values = np.where(part > 0, first + part * (np.take(values, high, axis) - first), first)  # NaN far away is none
    return values
