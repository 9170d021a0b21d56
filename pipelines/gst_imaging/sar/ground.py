# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the columns and lines of an image are on the ground, by its orbit and heights: latitude, longitude, and how the radar sees them.
The geometry is that of insarform: images focused at zero Doppler."""
import math
import os

from .. import library
from ..command import NO_RESULT, UNREADABLE, Failure
from . import heights as dem_heights
from .orbit import EQUATORIAL, POLAR, axes

ROUNDS = 20
NEAR = 1e-6  # m


def geodetic(np, point):
    """Returns: latitude and longitude in rad, and the height in m, as Bowring (1976)"""
    e2 = 1 - (POLAR / EQUATORIAL) ** 2
    r = np.hypot(point[..., 0], point[..., 1])
    beta = np.arctan2(point[..., 2] * EQUATORIAL, r * POLAR)
    latitude = np.arctan2(point[..., 2] + e2 / (1 - e2) * POLAR * np.sin(beta) ** 3, r - e2 * EQUATORIAL * np.cos(beta) ** 3)
    s, c = np.sin(latitude), np.cos(latitude)
    return latitude, np.arctan2(point[..., 1], point[..., 0]), r * c + point[..., 2] * s - EQUATORIAL * np.sqrt(1 - e2 * s * s)


class Ground:
    """Of cells at columns and lines: latitude, longitude, incidence, azimuth in degrees, height above the ellipsoid in m.

    incidence: between the vertical and the way to the radar; azimuth: of that way, from north, anticlockwise, as ISCE2 has it.
    radius: of the sphere that heights are above; None: they are above the ellipsoid"""

    def __init__(self, image, columns, lines, heights, radius=None):
        np = library.numpy()
        start, near = first_of(image)
        states = [image.at(start + line / image.rate, line) for line in lines]
        place, velocity = (np.array([state[i] for state in states])[:, None, :] for i in (0, 1))
        _along, down, right = axes(np, place, velocity)
        ranges = (near + np.asarray(columns) * image.step)[None, :, None]
        self.point = self.find(np, place, down, right * image.look, ranges, heights, radius)
        latitude, longitude, self.height = geodetic(np, self.point)
        s, c, sl, cl = np.sin(latitude), np.cos(latitude), np.sin(longitude), np.cos(longitude)
        sight = (place - self.point) / ranges
        east = -sl * sight[..., 0] + cl * sight[..., 1]
        north = -s * cl * sight[..., 0] - s * sl * sight[..., 1] + c * sight[..., 2]
        up = c * cl * sight[..., 0] + c * sl * sight[..., 1] + s * sight[..., 2]
        self.latitude, self.longitude = np.degrees(latitude), np.degrees(longitude)
        self.incidence, self.azimuth = np.degrees(np.arccos(np.clip(up, -1, 1))), np.degrees(np.arctan2(-east, north))

    @staticmethod
    def find(np, place, down, side, ranges, heights, radius):
        """Newton's method for the look angle at which the line of this length ends at the height."""
        def above(point):
            if radius:
                length = np.linalg.norm(point, axis=-1)
                return length - radius, point / length[..., None]
            latitude, longitude, height = geodetic(np, point)
            c = np.cos(latitude)
            return height, np.stack((c * np.cos(longitude), c * np.sin(longitude), np.sin(latitude)), -1)

        size = np.linalg.norm(place, axis=-1)
        to = size - above(place)[0] + heights
        with np.errstate(invalid="ignore"):
            angle = np.arccos((size ** 2 + ranges[..., 0] ** 2 - to ** 2) / (2 * size * ranges[..., 0]))
        for _ in range(ROUNDS):
            s, c = np.sin(angle)[..., None], np.cos(angle)[..., None]
            point = place + ranges * (c * down + s * side)
            found, up = above(point)
            away = found - heights
            angle = angle - away / (ranges[..., 0] * ((c * side - s * down) * up).sum(-1))
            if np.nanmax(np.abs(away), initial=0) < NEAR:
                break
        known = np.isfinite(heights)
        if not (np.abs(away[known]) < NEAR).all():
            raise Failure(NO_RESULT, "No point of these heights is at the range of some columns. Are near_range and the orbit of one image?")
        return point


def of_cells(image, looks, shape, size, dem, surface, scratch):
    """looks: samples of a cell; shape: lines and columns of cells; size: columns and lines of the image; dem: file of heights, or None;
    surface: what they are above, as --dem-surface. Returns: the Ground of the middle of each cell"""
    np = library.numpy()
    columns, lines = (np.arange(n) * step + (step - 1) / 2 for n, step in zip(shape[::-1], looks))
    if not dem:
        return Ground(image, columns, lines, np.zeros(shape))
    radius = None
    if surface == "sphere":
        try:
            radius = float(image.found["earth_radius"])
        except (KeyError, ValueError):
            raise Failure(UNREADABLE, f"{image.path} has no earth_radius, which --dem-surface sphere needs.") from None
    folder = os.path.join(scratch, "heights")
    os.mkdir(folder)
    return Ground(image, columns, lines, dem_heights.at(dem, size, columns, lines, folder), radius)


def first_of(image):
    """Returns: the time of line 0 and the range of column 0, as SAT_llt2rat of GMTSAR has them"""
    def number(name):
        return float(image.found.get(name, 0))

    start = image.start + (number("ashift") + number("sub_int_a")) / image.rate
    if number("nrows") > number("num_valid_az") > 0:
        start += (number("nrows") - number("num_valid_az")) / 2 / image.rate
    return start, image.near + (number("rshift") + number("sub_int_r") - number("chirp_ext")) * image.step


def heading(image):
    """Returns: the direction of the flight in degrees from north, clockwise; the radius of the earth below and the height of the
    radar, and its speed, in the middle of the image"""
    np = library.numpy()
    place, velocity = image.at_middle()
    latitude, longitude, height = (float(value) for value in geodetic(np, place))
    north = np.array([-math.sin(latitude) * math.cos(longitude), -math.sin(latitude) * math.sin(longitude), math.cos(latitude)])
    east = np.array([-math.sin(longitude), math.cos(longitude), 0])
    return (math.degrees(math.atan2(velocity @ east, velocity @ north)), float(np.linalg.norm(place)) - height, height,
            float(np.linalg.norm(velocity)))
