# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rasters of cells as GeoTIFF in longitude and latitude, by gdalwarp and geolocation arrays."""
import os
import re
import shutil
import subprocess
from xml.sax.saxutils import escape

from .. import library
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure
from .prm import write_vrt
from .warp import smooth

TRANS = 5  # numbers of a row of trans.dat: column, line, height, longitude, latitude


def check():
    """Fails without gdalwarp, before hours of work."""
    if not shutil.which("gdalwarp"):
        raise Failure(WRONG_USE, "--geocode needs gdalwarp, which is not installed: the Debian package gdal-bin.")


def of_trans(path, looks, summary, folder):
    """Means over cells of the points of GMTSAR's trans.dat, float64. Returns: paths of latitude and longitude"""
    np = library.numpy()
    try:
        rows = np.fromfile(path, "<f8")
    except OSError as error:
        raise Failure(UNREADABLE, f'"{path}" cannot be read: {error.strerror}.') from error
    if rows.size == 0 or rows.size % TRANS:
        raise Failure(UNREADABLE, f'"{path}" has {rows.size} numbers of float64, which are no rows of {TRANS}, as trans.dat has.')
    rows = rows.reshape(-1, TRANS)
    shape, paths = (summary["height"], summary["width"]), []
    column, line = (np.floor(rows[:, i] / looks[i]).astype(np.int64) for i in (0, 1))
    inside = (column >= 0) & (line >= 0) & (column < shape[1]) & (line < shape[0]) & np.isfinite(rows).all(1)
    rows[:, 3] = continued(rows[:, 3], rows[inside.argmax(), 3])
    cell = line[inside] * shape[1] + column[inside]
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    if not count.any():
        raise Failure(UNREADABLE, f'No point of "{path}" is in the image. Is it of this reference?')
    for name, i in ("latitude", 4), ("longitude", 3):
        total = np.bincount(cell, rows[inside, i], shape[0] * shape[1]).reshape(shape)
        values, _holes = smooth(np, total / np.maximum(count, 1), (count > 0).astype(float), 1.0)
        paths.append(write_array(values, name, folder))
    return paths


def fill(values):
    """Places without a height get the mean place of their surroundings."""
    np = library.numpy()
    known = np.isfinite(values)
    return values if known.all() else np.where(known, values, smooth(np, np.where(known, values, 0), known.astype(float), 1.0)[0])


def continued(longitudes, first):
    """Returns: longitudes without a step of 360 degrees, as gdalwarp needs them. first: one of them"""
    return longitudes - 360 * library.numpy().round((longitudes - (first + 180) % 360 + 180) / 360)


def write_array(values, name, folder):
    """Returns: the path of what GDAL opens"""
    path = os.path.join(folder, name + ".f64")
    values.astype("<f8").tofile(path)
    write_vrt(values.shape[1], values.shape[0], "f64", name + ".f64", path + ".vrt")
    return path + ".vrt"


def size_of(path):
    """Returns: columns and lines of a .vrt of write_vrt()"""
    with open(path, encoding="utf-8") as file:
        return map(int, re.match(r'<VRTDataset rasterXSize="(\d+)" rasterYSize="(\d+)">', next(file)).groups())


def describe(path, places, summary, folder):
    """Writes a .vrt of a raster with its geolocation arrays, which cover all of it. Returns: its path"""
    width, height = size_of(places[0])
    keys = {"X_DATASET": places[1], "X_BAND": 1, "Y_DATASET": places[0], "Y_BAND": 1, "PIXEL_OFFSET": 0, "LINE_OFFSET": 0,
            "PIXEL_STEP": repr(summary["width"] / width), "LINE_STEP": repr(summary["height"] / height), "SRS": "EPSG:4326",
            "GEOREFERENCING_CONVENTION": "PIXEL_CENTER"}
    items = "".join(f'<MDI key="{key}">{escape(str(value))}</MDI>' for key, value in keys.items())
    metadata = f'  <Metadata domain="GEOLOCATION">{items}</Metadata>\n'
    vrt = os.path.join(folder, "geocoded.vrt")
    write_vrt(summary["width"], summary["height"], "f32", os.path.basename(path), vrt, "nan", metadata)
    return vrt


def geocode(made, names, places, summary, known, folder):
    """names: of float32 rasters of cells in the result; known: cells with data. Each becomes geo-NAME.tif; the wrapped phase
    by the nearest cell, the others between four."""
    np = library.numpy()
    for name in names:
        values = np.fromfile(made.path(name + ".img"), np.float32)
        values[~known.ravel()] = np.nan
        path = os.path.join(folder, "geocoded.f32")
        values.tofile(path)
        out = made.path(f"geo-{name}.tif")
        done = subprocess.run(
            ["gdalwarp", "-q", "-overwrite", "-geoloc", "-t_srs", "EPSG:4326", "-r", "near" if name == "phase" else "bilinear",
             "-dstnodata", "nan", "-co", "COMPRESS=DEFLATE", describe(path, places, summary, folder), out],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode or not os.path.exists(out):
            raise Failure(NOT_WRITTEN, f"gdalwarp could not write geo-{name}.tif. Is there room for it, in the folder and in memory?")
