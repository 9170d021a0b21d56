# SPDX-License-Identifier: LGPL-2.1-or-later
"""Heights in radar coordinates at cells, placed as insarform places those of dem-location."""
from .. import library, play
from ..command import UNREADABLE, Failure
from .images import Image, read_real


def without_no_data(values, caps):
    """values: float32. Returns: NaN where they are what the caps of slcsrc call no data"""
    np = library.numpy()
    return np.where(values == np.float32(caps.get_value("nodata")), np.float32(np.nan), values) if caps.has_field("nodata") else values


def read(path, size, scratch):
    """size: columns and lines of the image. Returns: the values, and the first place and the step of columns and of lines"""
    if path.endswith(".npy"):
        values, origin, step = library.Arrays().read(path).astype(float), None, None
    else:
        image = Image(path, scratch)
        if image.is_complex:
            raise Failure(UNREADABLE, f'"{path}" has complex samples, which are no heights.')
        values = read_real(image, scratch)
        caps = play.caps_of(image.source)
        values = without_no_data(values, caps).astype(float)
        transform = None if caps.has_field("crs") or not caps.has_field("geotransform") else caps.get_string("geotransform")
        t = [float(word) for word in transform.split()] if transform else None
        # the first row is the first line also where y falls from row to row, as in topo_ra.grd of GMTSAR
        origin, step = ((t[0], min(t[3], t[3] + t[5] * len(values))), (t[1], abs(t[5]))) if t else (None, None)
    if values.ndim != 2:
        raise Failure(UNREADABLE, f'"{path}" has {values.ndim} axes; expected are lines and columns.')
    if origin is None:
        origin, step = (0, 0), tuple(n / m for n, m in zip(size, values.shape[::-1]))
    return values, origin, step


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
