# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rasters beside the images, in the columns and lines of the reference: --dem, --mask and --stable. LAT and LON have more to check: sar.places."""
import math
import tempfile

from .. import library, play
from ..command import UNREADABLE, Failure
from .images import Image, is_array, note_of, read_real

LEAST, MOST = -1000, 9000  # m: others are no heights. insarform computes the phase of these
FEW, NEARLY_ALL = 0.01, 0.99  # of the image that a raster covers
FAR = 2  # times: proportions of a raster and of the image differ by more
NEAR = 0.02  # by which proportions of a transposed raster differ from those of the image
OBLONG = 1.1  # less is square


def without_no_data(values, caps):
    """values: float32. Returns: NaN where they are what the caps of slcsrc call no data"""
    np = library.numpy()
    return np.where(values == np.float32(caps.get_value("nodata")), np.float32(np.nan), values) if caps.has_field("nodata") else values


def check_transform(path, t, crs):
    """t: the six numbers of GDAL, or None; crs: the reference system, or None. Returns: those that lead to columns and lines, or None.
    ISCE2 has a reference system beside the numbers of pixels"""
    if not t:
        return None
    if crs and (abs(t[1]), abs(t[5])) != (1, 1):
        raise Failure(UNREADABLE, f'"{path}" is in map coordinates; expected are the columns and lines of the image. gst-imaging insar-dem makes such '
                                  "heights of a DEM.")
    if t[2] or t[4]:
        raise Failure(UNREADABLE, f'"{path}" has a rotated geotransform; expected are the columns and lines of the image. gdal_translate -a_ullr 0 0 '
                                  "COLUMNS LINES, with the size of the image, writes another one.")
    return None if crs else t


def transform_of(path, caps):
    transform, crs = (caps.get_string(name) if caps.has_field(name) else None for name in ("geotransform", "crs"))
    return check_transform(path, [float(word) for word in transform.split()] if transform else None, crs)


def check_array(path, kind, shape, values_kind=""):
    """values_kind: as dtype.kind of numpy"""
    if len(shape) != 2:
        raise Failure(UNREADABLE, f'"{path}" is no {kind}: it has {len(shape)} axes, expected are lines and columns.')
    if not math.prod(shape):
        raise Failure(UNREADABLE, f'"{path}" is no {kind}: it has {shape[0]} lines of {shape[1]} columns, which are no samples.')
    if values_kind == "c":
        raise Failure(UNREADABLE, f'"{path}" is no {kind}: it has complex samples, expected are real numbers.')


def read_array(path, kind):
    values = library.Arrays().read(path)
    check_array(path, kind, values.shape, values.dtype.kind)
    return values


def read(path, kind, scratch):
    """kind: DEM or mask, for sentences. Returns: the values [lines][columns], NaN where the file says that there are none, and the transform
    to columns and lines, or None"""
    name = library.format_of(path)
    if is_array(path) or name and name != "TIFF":
        return read_array(path, kind), None
    try:
        image = Image(path, scratch)
    except Failure:
        if name:
            return read_array(path, kind), None  # without GDAL
        raise
    if note_of(path):
        raise Failure(UNREADABLE, f'"{path}" is no {kind}: it has more than one band or page. gdal_translate -b 1 writes the first band alone.')
    check_array(path, kind, (1, 1), "c" if image.is_complex else "f")
    caps = play.caps_of(image.source)
    transform = transform_of(path, caps)
    return without_no_data(read_real(image, scratch), caps), transform


def reach(transform, shape):
    """Returns: first and last column, and first and last line. The first row is the first line also where y falls from row to row, as in
    topo_ra.grd of GMTSAR"""
    x, y = (sorted((transform[i], transform[i] + transform[k] * n)) for i, k, n in ((0, 1, shape[1]), (3, 5, shape[0])))
    return *x, *y


def check_cover(path, transform, shape, size, beyond, warn):
    """size: columns and lines of the image; beyond: a sentence on what is done outside of the raster"""
    left, right, top, bottom = reach(transform, shape)
    part = math.prod(max(0, min(last, n) - max(first, 0)) / n for first, last, n in ((left, right, size[0]), (top, bottom, size[1])))
    told = (f'"{path}" covers columns {left:.10g} to {right:.10g} and lines {top:.10g} to {bottom:.10g} by its geotransform, {100 * part:.2g} % of '
            f"the image of {size[0]} columns and {size[1]} lines.")
    if part < FEW:
        raise Failure(UNREADABLE, f"{told} If it is in degrees or m of a map, gst-imaging insar-dem makes rasters in columns and lines of a DEM.")
    if part < NEARLY_ALL:
        warn(f"{told} {beyond}")


def is_multilooked(shape, size):
    """Could the cells be those of looks?"""
    return all(n <= m and m // (m // n) == n for n, m in zip(shape, size[::-1]))


def check_shape(path, shape, size, looks, warn):
    """Of a raster that covers the whole image. size: columns and lines of the image; looks: of a cell"""
    rows, columns = shape
    told = f'"{path}" has {rows} lines of {columns} columns, and the image {size[1]} of {size[0]}'
    cells = tuple(n // k for n, k in zip(size, looks))
    apart = abs(math.log(rows * size[0] / (columns * size[1])))
    inverse = abs(math.log(rows * size[1] / (columns * size[0])))
    is_transposed = (tuple(shape) == cells or inverse < NEAR) and apart > 2 * math.log(OBLONG)
    if is_transposed and not is_multilooked(shape, size) or tuple(shape) == tuple(size) != tuple(size[::-1]):
        raise Failure(UNREADABLE, f"{told}: lines and columns are exchanged. Transpose it.")
    if is_transposed or apart > math.log(FAR) and not is_multilooked(shape, size):
        warn(f"{told}: the proportions differ, and it is laid over the whole image. Is it of this image, and not transposed?")


def check_dem(path, size, looks, folder, warn):
    """Before hours of work. insarform reads the file itself, so voids cannot be cleared here. size: columns and lines of the image"""
    np = library.numpy()
    values, transform = read(path, "DEM", tempfile.mkdtemp(dir=folder))
    if transform:
        check_cover(path, transform, values.shape, size, "Beyond its edge the heights of the edge are continued.", warn)
    else:
        check_shape(path, values.shape, size, looks, warn)
    known = values[~np.isnan(values)]
    if not known.size:
        raise Failure(UNREADABLE, f'"{path}" is no DEM: it has no heights, all of it is NaN or no data.')
    wrong = known[~((known >= LEAST) & (known <= MOST))]
    if wrong.size:
        how = "numpy.where((z > -1000) & (z < 9000), z, numpy.nan) clears them" if is_array(path) else "gdal_translate -a_nodata VALUE declares them"
        raise Failure(UNREADABLE, f'{100 * wrong.size / values.size:.2g} % of the samples of "{path}" are no heights of {LEAST} to {MOST} m, as '
                                  f"{wrong[0]:.6g}. Places without a height have to be NaN or no data ({how}), and heights in m.")


def read_mask(path, size, looks, folder, warn):
    """Returns: what is wanted by a mask over the whole image, [lines][columns]; None without a file"""
    if not path:
        return None
    values, transform = read(path, "mask", tempfile.mkdtemp(dir=folder))
    if transform:
        check_cover(path, transform, values.shape, size, "It is laid over the whole image all the same.", warn)
    else:
        check_shape(path, values.shape, size, looks, warn)
    wanted = (values != 0) & (values == values)  # NaN differs from 0, and from itself
    if not wanted.any():
        raise Failure(UNREADABLE, f'"{path}" leaves nothing: all of it is 0, NaN or no data. A mask is 1 where the image counts.')
    return wanted
