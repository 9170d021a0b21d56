# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rasters of cells as GeoTIFF in longitude and latitude, by gdalwarp and geolocation arrays."""
import math
import os
import shutil
import subprocess
from xml.sax.saxutils import escape

from .. import library
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure
from . import ground
from .images import file_of
from .prm import write_vrt
from .warp import smooth

PLACES = 64  # rows and columns of LAT and LON that are looked at before the work
FAR = 1  # degree: heights move the middle of an image by less
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


def write_array(values, name, folder):
    """Returns: the path of what GDAL opens"""
    path = os.path.join(folder, name + ".f64")
    values.astype("<f8").tofile(path)
    write_vrt(values.shape[1], values.shape[0], "f64", name + ".f64", path + ".vrt")
    return path + ".vrt"


def read_array(path):
    values = library.Arrays().read(path)
    if values.ndim != 2:
        raise Failure(UNREADABLE, f'"{path}" has {values.ndim} axes; expected are lines and columns.')
    return values


def sample(path, folder):
    """Returns: PLACES x PLACES values of a raster, or fewer; NaN where it is no number of degrees"""
    np = library.numpy()
    if path.endswith(".npy"):
        values = read_array(path)
        values = values[::-(-values.shape[0] // PLACES), ::-(-values.shape[1] // PLACES)].astype(float)
    else:
        copy = os.path.join(folder, "places.f64")
        done = subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-ot", "Float64", "-outsize", str(PLACES), str(PLACES), path, copy],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise Failure(UNREADABLE, f'"{path}" is no raster that GDAL opens: {done.stderr.strip()}')
        values = np.fromfile(copy).reshape(PLACES, PLACES)
    return np.where(np.abs(values) <= 360, values, np.nan)


def check_order(paths, image, folder, warn):
    """paths: of latitude and longitude; image: the orbit.Image that they are of, or None"""
    np = library.numpy()
    found = [sample(path, folder) for path in paths]
    if (np.abs(found[0]) > 90).any():
        raise Failure(UNREADABLE, f'"{paths[0]}" has values up to {np.nanmax(np.abs(found[0])):.4g}, and latitudes are -90 to 90. Give LAT first, and then'
                                  " LON.")
    middle = [values[values.shape[0] // 2, values.shape[1] // 2] for values in found]
    if not image or not np.isfinite(middle).all():
        return
    place = np.degrees(ground.geodetic(np, image.point())[:2])

    def away(latitude, longitude):
        east = (longitude - place[1] + 180) % 360 - 180
        return math.hypot(latitude - place[0], east * math.cos(math.radians(place[0])))

    told = f"In the middle LAT is {middle[0]:.2f} and LON {middle[1]:.2f}, and by the orbit the image is at {place[0]:.2f} and {place[1]:.2f}"
    if away(*middle) > FAR and away(*middle[::-1]) < FAR:
        raise Failure(UNREADABLE, told + ": they are exchanged. Give LAT first, and then LON.")
    if away(*middle) > FAR:
        warn(told + ". Are LAT and LON of this reference?")


def of_rasters(paths, folder):
    """Arrays become what GDAL opens; other rasters stay."""
    found = []
    for name, path in zip(("latitude", "longitude"), paths):
        if path.endswith(".npy"):
            path = write_array(read_array(path), name, folder)
        file = file_of(path)
        found.append(path.replace(file, os.path.abspath(file), 1))
    return found


def size_of(path):
    """Returns: columns and lines of a raster of GDAL"""
    done = subprocess.run(["gdalinfo", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    sizes = [line for line in done.stdout.splitlines() if line.startswith("Size is ")]
    if not sizes:
        raise Failure(UNREADABLE, f'"{path}" is no raster that GDAL opens: {done.stderr.strip()}')
    return [int(word) for word in sizes[0][8:].split(",")]


def describe(path, places, summary, folder):
    """Writes a .vrt of a raster with its geolocation arrays, which cover all of it. Returns: its path"""
    width, height = size_of(places[0])
    keys = {"X_DATASET": places[1], "X_BAND": 1, "Y_DATASET": places[0], "Y_BAND": 1, "PIXEL_OFFSET": 0, "LINE_OFFSET": 0,
            "PIXEL_STEP": repr(summary["width"] / width), "LINE_STEP": repr(summary["height"] / height), "SRS": "EPSG:4326",
            "GEOREFERENCING_CONVENTION": "PIXEL_CENTER"}
    items = "".join(f'<MDI key="{key}">{escape(str(value))}</MDI>' for key, value in keys.items())
    vrt = os.path.join(folder, "geocoded.vrt")
    with open(vrt, "w", encoding="utf-8") as file:
        file.write(f'<VRTDataset rasterXSize="{summary["width"]}" rasterYSize="{summary["height"]}">\n'
                   f'  <Metadata domain="GEOLOCATION">{items}</Metadata>\n'
                   '  <VRTRasterBand dataType="Float32" band="1" subClass="VRTRawRasterBand"><NoDataValue>nan</NoDataValue>\n'
                   f'    <SourceFilename relativeToVRT="0">{escape(path)}</SourceFilename><ByteOrder>LSB</ByteOrder>\n'
                   f'    <ImageOffset>0</ImageOffset><PixelOffset>4</PixelOffset><LineOffset>{4 * summary["width"]}</LineOffset>\n'
                   "  </VRTRasterBand>\n</VRTDataset>\n")
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
            raise Failure(NOT_WRITTEN, f"gdalwarp could not write geo-{name}.tif: {done.stdout.strip()}")
