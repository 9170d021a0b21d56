# SPDX-License-Identifier: LGPL-2.1-or-later
"""LAT and LON of --geocode, before hours of work: are they the places of the image? gdalwarp gets copies, in float64 and with one no-data value."""
import json
import math
import os
import subprocess

from .. import library
from ..command import UNREADABLE, Failure
from . import corners, geocode, ground, rasters, raw_files
from .images import is_array
from .prm import write_vrt

NAMES = "LAT", "LON"
SAMPLES = 64  # rows and columns that are looked at
STRIP = 256  # rows at a time
VOID = -9999  # gdalwarp leaves out places of a no-data value, and fails with NaN at an edge
FAR = 1  # degree: heights move the middle of an image by less
STEP, SLOW = 0.1, 0.002  # degrees between neighbours, and for each column or line of the image: images have smaller steps
RADIANS, SMALLEST = 3.2, 1e-5  # places in radians are below; degrees a column or line, 1.1 m: those in radians are smaller, up to cells of 64 m
MOST = 1e9  # cells of the map


def run_gdal(words, path):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Failure(UNREADABLE, f'"{path}" is no raster that GDAL opens.')
    return done.stdout


def load(path, name, folder):
    """Returns: a copy of the values, float64 [lines][columns], and the no-data value, NaN for none"""
    np = library.numpy()
    copy, no_data = os.path.join(folder, name + ".f64"), math.nan
    if is_array(path) or path.endswith(".npy"):
        values = rasters.read_array(path, "raster of degrees")
        shape = values.shape
        values.astype("<f8").tofile(copy)
    else:
        raw_files.check(path)
        about = json.loads(run_gdal(["gdalinfo", "-json", path], path))
        shape = about["size"][::-1]
        rasters.check_transform(path, about.get("geoTransform"), about.get("coordinateSystem", {}).get("wkt"))
        no_data = float(about["bands"][0].get("noDataValue", math.nan))
        run_gdal(["gdal_translate", "-q", "-of", "ENVI", "-ot", "Float64", "-b", "1", path, copy], path)
    write_vrt(shape[1], shape[0], "f64", name + ".f64", copy + ".vrt", VOID)
    return np.memmap(copy, "<f8", "r+", shape=tuple(shape)), no_data


class Places:
    """values: LAT and LON; size: columns and lines of the image; told: the files, in sentences; order: what to do where they are exchanged"""

    def __init__(self, paths, size, folder, trans=None):
        """trans: the path of trans.dat, if the rasters are made of it"""
        self.paths, self.size = paths, size
        self.told = f'"{trans}"' if trans else f'"{paths[0]}" and "{paths[1]}"'
        self.order = "Rows of trans.dat are column, line, height, longitude and latitude." if trans else "Give LAT first, and then LON."
        if all(map(os.path.exists, paths)) and os.path.samefile(*paths):
            raise Failure(UNREADABLE, f'LAT and LON are one file, "{paths[0]}". Give the latitudes, and then the longitudes.')
        self.values, self.no_data = zip(*(load(path, name, folder) for path, name in zip(paths, NAMES)))
        shapes = [values.shape for values in self.values]
        if shapes[0] != shapes[1]:
            told = " and ".join(f'"{path}" {shape[0]} lines of {shape[1]} columns' for path, shape in zip(paths, shapes))
            raise Failure(UNREADABLE, f"LAT and LON differ in size: {told}. Give two rasters of one geometry.")
        self.shape = shapes[0]
        self.made = [os.path.join(folder, name + ".f64.vrt") for name in NAMES]

    def strips(self):
        for i in range(0, self.shape[0], STRIP):
            yield tuple(values[i:i + STRIP] for values in self.values)

    def clear(self, warn):
        """What is no place becomes VOID in both."""
        np = library.numpy()
        n = 0
        for latitude, longitude in self.strips():
            void = (latitude == 0) & (longitude == 0)
            for values, no_data in zip((latitude, longitude), self.no_data):
                void |= ~(np.abs(values) <= 360) | (values == no_data)
            most = np.abs(latitude[~void]).max(initial=0)
            if most > 90:
                raise Failure(UNREADABLE, f"The latitudes of {self.told} are up to {most:.4g}, and they can be -90 to 90. {self.order}")
            latitude[void] = longitude[void] = VOID
            n += np.count_nonzero(void)
        if n == self.values[0].size:
            raise Failure(UNREADABLE, f"No places are in {self.told}: expected are latitudes of -90 to 90 and longitudes of -180 to 360 degrees.")
        if n:
            warn(f"{100 * n / self.values[0].size:.2g} % of the samples of LAT and LON are no places (NaN, no data, 0 in both, or beyond 360 degrees): the map "
                 "has no data there.")

    def at(self, rows, columns):
        np = library.numpy()
        found = [values[np.ix_(rows, columns)] for values in self.values]
        return [np.where(values == VOID, np.nan, values) for values in found]

    def samples(self):
        """Returns: rows and columns that are looked at"""
        np = library.numpy()
        return [np.unique(np.linspace(0, n - 1, min(n, SAMPLES)).astype(int)) for n in self.shape]

    def check_steps(self):
        """Neighbours are near each other, but not at one place."""
        np = library.numpy()
        rows, columns = self.samples()
        here = self.at(rows, columns)
        if np.array_equal(*here, equal_nan=True):
            raise Failure(UNREADABLE, f"The latitudes and longitudes of {self.told} have the same values. {self.order}")
        steps, limits = [], []
        for axis, n in enumerate(self.shape):
            if n > 1:
                places = [rows, columns]
                places[axis] = np.minimum(places[axis], n - 2)
                first = self.at(*places)
                places[axis] = places[axis] + 1
                steps.append(step(first, self.at(*places)).ravel())
                limits.append(np.full(steps[-1].size, max(STEP, SLOW * self.size[1 - axis] / n)))
        steps, limits = np.concatenate(steps), np.concatenate(limits)
        known = np.isfinite(steps)
        if known.any() and np.mean(steps[known] > limits[known]) > 0.5:
            raise Failure(UNREADABLE, f"Neighbours in {self.told} are {np.median(steps[known]):.2g} degrees apart in the median: "
                                      "these are no places of an image.")

    def check_place(self, image, warn):
        """image: the orbit.Image, or None"""
        np = library.numpy()
        middle = [float(values[self.shape[0] // 2, self.shape[1] // 2]) for values in self.values]
        place = np.degrees(ground.geodetic(np, image.point())[:2]) if image and VOID not in middle else None

        def is_near(latitude, longitude):
            return math.hypot(latitude - place[0], around(longitude - place[1]) * math.cos(math.radians(place[0]))) < FAR

        if place is not None and is_near(*middle):
            corners.check(self, image, warn)
            return
        spread = math.hypot(*(high - low for low, high in self.ranges)) / math.hypot(*self.size)
        is_small = max(abs(end) for ends in self.ranges for end in ends) < RADIANS
        if is_small and (spread < SMALLEST or place is not None and is_near(*np.degrees(middle))):
            raise Failure(UNREADABLE, f"The places of {self.told} are in radians, {middle[0]:.4f} and {middle[1]:.4f} in the middle. Give degrees.")
        if place is None:
            return
        told = f"In the middle LAT is {middle[0]:.2f} and LON {middle[1]:.2f}, and by the orbit the image is at {place[0]:.2f} and {place[1]:.2f}"
        if is_near(*middle[::-1]):
            raise Failure(UNREADABLE, f"{told}: they are exchanged. {self.order}")
        warn(f"{told}. Is {self.told} of this reference?")

    def go_on(self):
        """Longitudes have no step of 360 degrees, as gdalwarp needs them. Finds the ranges of both."""
        np = library.numpy()
        first = next(values[values != VOID][0] for _latitude, values in self.strips() if (values != VOID).any())
        ranges = []
        for latitude, longitude in self.strips():
            known = latitude != VOID
            longitude[known] = geocode.continued(longitude[known], first)
            ranges += [[(values[known].min(), values[known].max()) for values in (latitude, longitude)]] if known.any() else []
        lows, highs = np.moveaxis(np.array(ranges), -1, 0)
        self.ranges = list(zip(lows.min(0), highs.max(0)))

    def check_grid(self, looks):
        """The cells of the map are as large as gdalwarp has them: as long as those of the image along the diagonal. looks: of a cell"""
        np = library.numpy()
        for name, (low, high) in zip(NAMES, self.ranges):
            if low == high:
                raise Failure(UNREADABLE, f"All {name} of {self.told} are {low:g}: these are no places of an image.")
        rows, columns = self.samples()
        known = np.argwhere(np.isfinite(self.at(rows, columns)[0]))
        ends = [(rows[i], columns[j]) for i, j in (known[0], known[-1])]
        cells = math.hypot(*((b - a) * self.size[1 - axis] / self.shape[axis] / looks[1 - axis] for axis, (a, b) in enumerate(zip(*ends))))
        degrees = math.hypot(*(values[ends[1]] - values[ends[0]] for values in self.values))
        if not cells or not degrees:
            raise Failure(UNREADABLE, f"Only one place is in {self.told}, or the same at two corners: these are no places of an image.")
        n = math.prod((high - low) * cells / degrees + 1 for low, high in self.ranges)
        if n > MOST:
            told = " and ".join(f"{name} {low:.4f} to {high:.4f}" for name, (low, high) in zip(NAMES, self.ranges))
            raise Failure(UNREADABLE, f"The map would have {n:.2g} cells, and at most {MOST:.0e} are made: {told} degrees. Take larger --looks, or "
                                      "places of this image.")


def around(degrees):
    return (degrees + 180) % 360 - 180


def step(first, second):
    """Returns: degrees on the ground between places"""
    np = library.numpy()
    return np.hypot(second[0] - first[0], around(second[1] - first[1]) * np.cos(np.radians(first[0])))


def prepare(paths, image, size, looks, folder, warn):
    """paths: of LAT and LON, or of trans.dat; image: the orbit.Image, or None; size: columns and lines of the image; looks: of a cell. Returns: what
    gdalwarp reads"""
    trans = None if len(paths) == 2 else paths[0]
    if trans:
        paths = geocode.of_trans(trans, looks, size, folder, warn)
    places = Places(paths, size, folder, trans)
    places.clear(warn)
    if not trans:
        rasters.check_shape(paths[0], places.shape, size, looks, warn)
    places.check_steps()
    places.go_on()
    places.check_place(image, warn)
    places.check_grid(looks)
    for values in places.values:
        values.flush()
    return places.made
