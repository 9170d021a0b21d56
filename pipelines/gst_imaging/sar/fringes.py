# SPDX-License-Identifier: LGPL-2.1-or-later
"""Even fringes that are left where the phase of the earth was removed by orbits: a sign of a wrong geometry."""
import math

from .. import library

TILE, TILES = 16, 24  # cells of a side at least, and tiles along a side of the image at most, about: large ones average noise
LEAST = 4  # fringes over the image: the errors of orbits, the ionosphere and the troposphere leave fewer
# Of the fringes that were removed. A mean slope of the ground s leaves the part s / (sin i cos i) of these: here 7 degrees at an incidence of 35.
SHARE = 0.25
AGREEING = 0.5  # of their rate: half of the tiles are so near to it. Hills and motion have many rates


def find_rates(np, path, shape):
    """path: an interferogram. Returns: fringes a cell along range and azimuth, of each tile with data"""
    image = np.memmap(path, "<c8", "r", shape=shape)
    height, width = (min(max(TILE, n // TILES), n) for n in shape)
    used = shape[1] // width * width
    rates = []
    for y in range(0, shape[0] - height + 1, height):
        cells = np.nan_to_num(image[y:y + height, :used])
        size = np.abs(cells)
        tiles = np.divide(cells, size, out=np.zeros_like(cells), where=size > 0).reshape(height, -1, width)
        turns = [(after * before.conj()).sum((0, 2)) for after, before in
                 ((tiles[..., 1:], tiles[..., :-1]), (tiles[1:], tiles[:-1]))]
        known = (turns[0] != 0) & (turns[1] != 0)
        rates.append(np.angle(turns)[:, known] / (2 * np.pi))
    return np.concatenate(rates, 1).T


def find_removed(np, path, shape):
    """path: a phase in rad. Returns: fringes a cell along range and azimuth, of the median"""
    phase = np.memmap(path, "<f4", "r", shape=shape)
    if min(shape) < 2:
        return np.zeros(2)
    turns = [np.diff(part, axis=axis) / (2 * np.pi) for axis, part in ((1, phase[::TILE]), (0, phase[:, ::TILE]))]
    return np.array([np.median(turn[np.isfinite(turn)]) if np.isfinite(turn).any() else 0 for turn in turns])


def check(made, summary, kind):
    """A figure, and a warning. kind: the flattening, orbit or dem"""
    np = library.numpy()
    shape = summary["height"], summary["width"]
    size = np.array(shape[::-1])
    rates = find_rates(np, made.path("interferogram.cf32"), shape) * size
    if not len(rates):
        return
    removed = float(np.hypot(*(find_removed(np, made.path("removed.img"), shape) * size)))
    rate = np.median(rates, 0)
    left, spread = float(np.hypot(*rate)), float(np.median(np.hypot(*(rates - rate).T)))
    left = left if spread < AGREEING * left else 0.0
    most = max(LEAST, SHARE * removed)
    made.report.figure("even fringes that are left", left, at_most=most,
                       about=f"over the image, in most of its parts alike; {removed:.1f} of the earth were removed")
    if left > most:
        ground = "Ground that moves" if kind == "dem" else "Ground that rises or moves"
        made.warn(f"{math.floor(left + 0.5)} even fringes are left over the image, and --flatten {kind} removed {removed:.0f}: the geometry of the "
                  "orbits is probably wrong. Look whether lookdir is that of the radar, whether each PRM file names its own LED file, and whether "
                  f"radar_wavelength (in m), rng_samp_rate and near_range are right. {ground} evenly over the whole image leaves such fringes, too.")
