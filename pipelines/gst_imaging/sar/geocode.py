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
FURTHEST = 1e7  # columns and lines: a DEM reaches beyond the image, but numbers of text or of big endian are anything
COVERED = 0.9  # of the columns and of the lines of the image that points span


def check():
    """Fails without gdalwarp, before hours of work."""
    if not shutil.which("gdalwarp"):
        raise Failure(WRONG_USE, "--geocode needs gdalwarp, which is not installed: the Debian package gdal-bin.")


def read_trans(path, warn):
    """Returns: the rows of trans.dat that are points"""
    np = library.numpy()
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            is_text = not file.read(64).strip(b"0123456789+-.eE \t\r\n")
        rows = np.fromfile(path, "<f8", size // (8 * TRANS) * TRANS).reshape(-1, TRANS)
    except OSError as error:
        raise Failure(UNREADABLE, f'"{path}" cannot be read: {error.strerror}.') from error
    told = f"Rows of trans.dat are {TRANS} numbers of float64, little endian, as SAT_llt2rat ... -bod writes them. LAT needs LON beside it."
    if size and is_text:
        raise Failure(UNREADABLE, f'"{path}" is text. {told}')
    if size == 0 or size % (8 * TRANS):
        raise Failure(UNREADABLE, f'"{path}" has {size} bytes, which are no whole rows: it is cut short, or another file. {told}')
    known = np.isfinite(rows).all(1) & (np.abs(rows[:, 3:]) <= 360).all(1) & (np.abs(rows[:, :2]) < FURTHEST).all(1)
    if known.mean() < 0.5:
        raise Failure(UNREADABLE, f'{100 * (1 - known.mean()):.3g} % of the rows of "{path}" are no points: a column, a line, a height, and degrees of '
                                  f"longitude and latitude. {told}")
    if not known.all():
        warn(f'{100 * (1 - known.mean()):.2g} % of the rows of "{path}" are no points (NaN, or beyond 360 degrees), and are left out.')
    return rows[known]


def of_trans(path, looks, size, folder, warn):
    """Means over cells of the points of GMTSAR's trans.dat, float64. size: columns and lines of the image. Returns: paths of latitude and longitude"""
    np = library.numpy()
    rows = read_trans(path, warn)
    shape, paths = (size[1] // looks[1], size[0] // looks[0]), []
    column, line = (np.floor(rows[:, i] / looks[i]).astype(np.int64) for i in (0, 1))
    inside = (column >= 0) & (line >= 0) & (column < shape[1]) & (line < shape[0])
    if not inside.any():
        raise Failure(UNREADABLE, f'No point of "{path}" is in the image. Is it of this reference?')
    spans = [[float(f(rows[inside, i])) for f in (np.min, np.max)] for i in (0, 1)]
    if any(last - first < COVERED * n for (first, last), n in zip(spans, size)):
        warn(f'The points of "{path}" in the image span columns {spans[0][0]:.0f} to {spans[0][1]:.0f} of {size[0]} and lines {spans[1][0]:.0f} to '
             f"{spans[1][1]:.0f} of {size[1]}: the map is wrong beyond them. Are trans.dat and its DEM of this reference?")
    rows[:, 3] = continued(rows[:, 3], rows[inside.argmax(), 3])
    cell = line[inside] * shape[1] + column[inside]
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
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
            said = " ".join(done.stdout.split()) or "it printed nothing"
            raise Failure(NOT_WRITTEN, f"gdalwarp could not write geo-{name}.tif, exit status {done.returncode}: {said}")
