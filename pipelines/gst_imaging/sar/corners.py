# SPDX-License-Identifier: LGPL-2.1-or-later
"""Are LAT and LON those of each part of an image? Its orbit tells, up to the heights of the ground: a rise moves what is at a column away from
the radar, across the flight."""
import math

from .. import library
from ..command import UNREADABLE, Failure
from . import ground

N = 9  # places along both axes
HIGH = 1000  # m above the ellipsoid, for the way that heights move a place
LEAST, MOST = -2000, 10000  # m: heights, and ranges of their orbit that are wrong by some hundred metres
SURE = 3  # times: a mirrored image fits better
DEGREE = 111200  # m
ASIDE = 2000  # m: by the Doppler centroid, which is not that of the orbit alone, images are nearer
STRETCH = 0.1  # of the length along the flight
TURNED = {(True, False): "mirrored in columns", (False, True): "mirrored in lines", (True, True): "mirrored in columns and in lines"}


def at_height(image, columns, lines, height):
    """Returns: latitude and longitude in degrees, [lines][columns]"""
    np = library.numpy()
    found = ground.Ground(image, columns, lines, np.full((len(lines), len(columns)), float(height)))
    return np.stack((found.latitude, found.longitude))


def metres(np, places, origin):
    """Returns: north and east of the origin. places: [2][...], in degrees"""
    east = (places[1] - origin[1] + 180) % 360 - 180
    return np.stack(((places[0] - origin[0]) * DEGREE, east * math.cos(math.radians(origin[0])) * DEGREE))


def spread(np, away):
    """Returns: how far places differ, without what all have in common"""
    return float(np.sqrt(np.nanmean(((away - np.nanmean(away, (1, 2), keepdims=True)) ** 2).sum(0))))


def check(places, image, warn):
    """places: the Places of LAT and LON, whose middle is near; image: the orbit.Image"""
    np = library.numpy()
    rows, columns = (np.unique(np.linspace(0, n - 1, min(n, N)).astype(int)) for n in places.shape)
    found = np.stack(places.at(rows, columns))
    if min(len(rows), len(columns)) < 2 or not np.isfinite(found[0, -1] - found[0, 0]).any():
        return
    y, x = ((at + 0.5) * n / m - 0.5 for at, n, m in zip((rows, columns), places.size[::-1], places.shape))
    flat, high = at_height(image, x, y, 0), at_height(image, x, y, HIGH)
    origin = flat[:, len(rows) // 2, len(columns) // 2]
    found, flat, high = (metres(np, values, origin) for values in (found, flat, high))
    check_sides(np, places, found, flat)
    rise = high - flat
    length = np.sqrt((rise ** 2).sum(0))
    across = rise / length
    away = found - flat
    heights = (away * across).sum(0) / length * HIGH
    aside = away[1] * across[0] - away[0] * across[1]  # along the flight: no height moves a place there
    along = [np.nanmean(values[:, -1] - values[:, 0], -1) for values in (found, flat)]
    grown = math.hypot(*along[0]) / math.hypot(*along[1])
    told = None
    if abs(np.nanmedian(aside)) > ASIDE or not LEAST < np.nanmedian(heights) < MOST:
        told = f"they are of another area, {math.hypot(*np.nanmedian(away, (1, 2))) / 1000:.3g} km beside, or the orbit is that of another scene"
    elif abs(grown - 1) > STRETCH:
        told = f"the lines of the image are {grown:.2f} times as long in them: they are of another part of the scene, or of other --looks"
    elif not (np.nanmin(heights) > LEAST and np.nanmax(heights) < MOST):
        told = f"the ground would be {np.nanmin(heights):.0f} to {np.nanmax(heights):.0f} m high: they are of another part of the columns, or of other --looks"
    if told:
        warn(f"The places of {places.told} and those by the orbit differ: {told}. Are they of this reference?")


def check_sides(np, places, found, flat):
    """Fails where a mirrored image fits, and the image does not"""
    here = spread(np, found - flat)
    for (of_columns, of_lines), how in TURNED.items():
        turned = flat[:, ::-1 if of_lines else 1, ::-1 if of_columns else 1]
        if here > SURE * spread(np, found - turned):
            raise Failure(UNREADABLE, f"The places of {places.told} are {how}: by the orbit, those of the other end are there. Turn them around.")
