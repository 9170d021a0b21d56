# SPDX-License-Identifier: LGPL-2.1-or-later
"""A DEM in longitude and latitude as an image sees it: heights in its columns and lines, layover and shadow, in float64.

The posts of the DEM are joined to triangles, whose corners have a column, a line and a look angle by the orbit. A cell is in layover
where more than one triangle covers its middle, and in shadow where each of these is at a smaller look angle than something of its line that is nearer to
the track along the ground."""
import math

from .. import library, play
from ..command import NO_RESULT, UNREADABLE, Failure
from . import ground
from .images import Image, read_real
from .orbit import EQUATORIAL, POLAR, axes
from .rasters import LEAST, MOST, without_no_data

STRIP = 256  # rows of the DEM at a time
LAYOVER, SHADOW, OUTSIDE = 1, 2, 255
DEGREE, NODES = 11, 48  # of the polynomials of the orbit
TINY = 1e-10  # rad, of rounding
NUDGE = 1e-6, 1.7e-6  # of the middle of cells, so that none is on an edge that two triangles share


class Dem:
    """values: [rows][columns]; x, y: longitude and latitude of columns and rows"""

    def __init__(self, path, scratch):
        np = library.numpy()
        image = Image(path, scratch)
        caps = play.caps_of(image.source)
        transform, crs = (caps.get_string(name) if caps.has_field(name) else None for name in ("geotransform", "crs"))
        t = [float(word) for word in transform.split()] if transform else None
        if image.is_complex or not t or t[2] or t[4] or not crs or not crs.startswith("GEOGCRS") and not crs.startswith("GEOGCS"):
            raise Failure(UNREADABLE, f'"{path}" is no DEM in longitude and latitude. gdalwarp -t_srs EPSG:4326 makes one of any raster with a'
                                      " reference system.")
        self.values = without_no_data(read_real(image, scratch), caps)
        self.x, self.y = (t[i] + (np.arange(n) + 0.5) * t[i + k] for i, k, n in ((0, 1, image.width), (3, 2, len(self.values))))

    def crop(self, west, east, south, north):
        """To what is inside, and a post beyond."""
        np = library.numpy()
        for axis, places, low, high in (1, self.x, west, east), (0, self.y, south, north):
            inside = np.flatnonzero((places >= low) & (places <= high))
            if len(inside) < 2:
                raise Failure(NO_RESULT, f"The DEM covers {self.x.min():.4f} to {self.x.max():.4f} degrees of longitude and {self.y.min():.4f} to"
                                         f" {self.y.max():.4f} of latitude, and the image is at {west:.4f} to {east:.4f} and {south:.4f} to {north:.4f}.")
            part = slice(max(inside[0] - 1, 0), inside[-1] + 2)
            self.values = self.values[:, part] if axis else self.values[part]
            if axis:
                self.x = self.x[part]
            else:
                self.y = self.y[part]

    def relief(self):
        """Returns: m from the lowest to the highest post"""
        np = library.numpy()
        known = self.values[(self.values > LEAST) & (self.values < MOST)]
        return float(np.ptp(known)) if known.size else 0.0

    def points(self, rows):
        """Returns: x, y, z of the posts of some rows, NaN where there is no height"""
        np = library.numpy()
        heights = self.values[rows].astype(float)
        heights[~((heights > LEAST) & (heights < MOST))] = np.nan
        latitude, longitude = np.radians(self.y[rows])[:, None], np.radians(self.x)[None]
        e2 = 1 - (POLAR / EQUATORIAL) ** 2
        n = EQUATORIAL / np.sqrt(1 - e2 * np.sin(latitude) ** 2)
        return heights, np.stack(np.broadcast_arrays(
            (n + heights) * np.cos(latitude) * np.cos(longitude), (n + heights) * np.cos(latitude) * np.sin(longitude),
            (n * (1 - e2) + heights) * np.sin(latitude)), -1)


class View:
    """Points as an image sees them"""

    def __init__(self, image):
        np = library.numpy()
        self.image = image
        self.start, self.near = ground.first_of(image)
        length = image.size[1] / image.rate
        times = np.linspace(*np.clip((self.start - 0.3 * length - 1, self.start + 1.3 * length + 1), *image.orbit.times[[0, -1]]), NODES)
        places = np.array([image.orbit.at(time)[0] for time in times])
        self.orbit = [np.polynomial.Chebyshev.fit(times - self.start, values, DEGREE) for values in places.T]
        self.speed = [part.deriv() for part in self.orbit]

    def at(self, t):
        np = library.numpy()
        return [np.stack([part(t) for part in parts], -1) for parts in (self.orbit, self.speed)]

    def see(self, point):
        """Returns: columns, lines, look angles, and angles at the centre of the earth from the radar on, rad"""
        np = library.numpy()
        t = np.full(point.shape[:-1], self.image.size[1] / self.image.rate / 2)
        for _ in range(30):
            place, velocity = self.at(t)
            step = ((point - place) * velocity).sum(-1) / (velocity ** 2).sum(-1)
            t = t + step
            if np.nanmax(np.abs(step), initial=0) < 1e-9:
                break
        place, velocity = self.at(t)
        _along, down, right = axes(np, place, velocity)
        away = point - place
        across, below = (away * right).sum(-1) * self.image.look, (away * down).sum(-1)
        return ((np.linalg.norm(away, axis=-1) - self.near) / self.image.step, t * self.image.rate, np.arctan2(across, below),
                np.arctan2(across, -(place * down).sum(-1) - below))


class Hits:
    """Where the middle of a cell is inside a triangle: cell, height, look angle, angle at the centre of the earth"""

    def __init__(self, shape, size, pad):
        """pad: columns of cells before the image, where mountains throw shadows into it"""
        self.pad, self.shape, self.steps = pad, (shape[0], shape[1] + pad), [n / m for n, m in zip(size, shape[::-1])]
        self.cells, self.values = [], ([], [], [])

    def add(self, corners):
        """corners: [3][5][n]: columns, lines, heights, look angles and angles at the centre of each corner"""
        np = library.numpy()
        x, y = ((np.stack([corner[i] for corner in corners]) + 0.5) / step - 0.5 - nudge for i, (step, nudge) in enumerate(zip(self.steps, NUDGE)))
        x += self.pad
        known = np.isfinite(x).all(0) & np.isfinite(y).all(0)
        left, top = np.ceil(x.min(0, initial=np.inf)), np.ceil(y.min(0, initial=np.inf))
        known &= (x.max(0) >= np.maximum(left, 0)) & (y.max(0) >= np.maximum(top, 0)) & (left < self.shape[1]) & (top < self.shape[0])
        if not known.any():
            return
        x, y, left, top = x[:, known], y[:, known], left[known].astype(int), top[known].astype(int)
        values = [np.stack([corner[i][known] for corner in corners]) for i in (2, 3, 4)]
        area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        size = [np.floor(places.max(0)).astype(int) - first for places, first in ((x, left), (y, top))]
        for j in range(size[1].max() + 1):
            for i in range(size[0].max() + 1):
                some = np.flatnonzero((size[0] >= i) & (size[1] >= j) & (area != 0))
                column, line = left[some] + i, top[some] + j
                a, b = x[:, some], y[:, some]
                weights = np.stack([(a[(k + 1) % 3] - column) * (b[(k + 2) % 3] - line) - (a[(k + 2) % 3] - column) * (b[(k + 1) % 3] - line)
                                    for k in range(3)]) / area[some]
                inside = (weights >= 0).all(0) & (column >= 0) & (line >= 0) & (column < self.shape[1]) & (line < self.shape[0])
                self.cells.append(line[inside] * self.shape[1] + column[inside])
                for found, value in zip(self.values, values):
                    found.append((weights[:, inside] * value[:, some[inside]]).sum(0))

    def finish(self):
        """Returns: heights, NaN outside the DEM, and what LAYOVER and SHADOW say of each cell"""
        np = library.numpy()
        if not self.cells:
            size = self.shape[0], self.shape[1] - self.pad
            return np.full(size, np.nan), np.full(size, OUTSIDE, np.uint8)
        cells, heights, angles, places = map(np.concatenate, (self.cells, *self.values))
        n = self.shape[0] * self.shape[1]
        count = np.bincount(cells, minlength=n)
        lines = cells // self.shape[1]
        order = np.lexsort((places, lines))
        # a larger angle for each line, so that one running maximum serves all
        largest = angles[order] + 4.0 * lines[order]
        is_seen = np.empty(len(lines))
        is_seen[order] = largest >= np.maximum.accumulate(largest) - TINY
        seen = np.bincount(cells, is_seen, n) > 0
        with np.errstate(invalid="ignore"):
            mean = np.bincount(cells, heights, n) / np.where(count, count, np.nan)
        state = np.where(count > 1, LAYOVER, 0) | np.where(seen, 0, SHADOW)
        return [values.reshape(self.shape)[:, self.pad:] for values in (mean, np.where(count, state, OUTSIDE).astype(np.uint8))]


def box_of(image, pad):
    """pad: columns before the image. Returns: west, east, south, north of all heights that it can see there"""
    np = library.numpy()
    columns, lines = np.linspace(-pad, image.size[0] - 1, 5), np.linspace(0, image.size[1] - 1, 5)
    seen = [ground.Ground(image, columns, lines, np.full((5, 5), float(height))) for height in (LEAST, MOST)]
    x, y = (np.concatenate([getattr(one, name).ravel() for one in seen]) for name in ("longitude", "latitude"))
    return x.min(), x.max(), y.min(), y.max()


def look(dem, image, shape, progress):
    """shape: lines and columns of cells, which cover the image. Returns: as Hits.finish()"""
    looks = image.size[0] / shape[1]
    pad = math.ceil(dem.relief() / image.step / looks)
    dem.crop(*box_of(image, pad * looks))
    view, hits, rows = View(image), Hits(shape, image.size, pad), len(dem.y)
    for first in range(0, rows - 1, STRIP):
        heights, point = dem.points(slice(first, min(first + STRIP + 1, rows)))
        values = list(view.see(point))
        values.insert(2, heights)
        corners = [[value[i:i - 1 or None, k:k - 1 or None].ravel() for value in values] for i, k in ((0, 0), (0, 1), (1, 0), (1, 1))]
        for triangle in (0, 1, 2), (1, 3, 2):
            hits.add([corners[k] for k in triangle])
        progress(min(first + STRIP, rows) / rows)
    return hits.finish()
