# SPDX-License-Identifier: LGPL-2.1-or-later
"""The width of a pixel in mm: from a ruler in the pictures, from a chart of 24 patches, from the light file, or as it is given."""
import argparse
import os

from . import chart
from .command import UNREADABLE, WRONG_USE, Failure

AGREE = 0.02  # two scales that differ by no more are the same
TILTED = 0.03  # the same for the sides of a chart


def ruler(text):
    """Type of an option. Returns: x1, y1, x2, y2, mm"""
    try:
        x1, y1, x2, y2, mm = (float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not X1,Y1,X2,Y2,MM, as 120,900,1620,900,100 for 100 mm") from None
    if (x1, y1) == (x2, y2) or not 0 < mm < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: the two points of the ruler have to differ, and its millimetres to be above 0")
    return x1, y1, x2, y2, mm


def size(text):
    """Type of an option. Returns: width, height"""
    try:
        width, height = (float(word) for word in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not WIDTHxHEIGHT in mm, as 215x129") from None
    if not (0 < width < float("inf") and 0 < height < float("inf")):
        raise argparse.ArgumentTypeError(f"{text}: both have to be above 0")
    return width, height


def of_ruler(given, shape):
    """shape: height, width of the pictures. Returns: mm per pixel"""
    x1, y1, x2, y2, mm = given
    for x, y in (x1, y1), (x2, y2):
        if not (-0.5 <= x <= shape[1] - 0.5 and -0.5 <= y <= shape[0] - 0.5):
            raise Failure(WRONG_USE, f"--scale-ruler: the point {x:g},{y:g} is not in the pictures of {shape[1]} x {shape[0]}.")
    return mm / ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5


def of_chart(np, corners, mm, path, warn):
    """corners: [4, 2], of mm apart. Returns: mm per pixel, the mean of the sides"""
    lengths = np.linalg.norm(np.roll(corners, -1, 0) - corners, axis=1)
    sides = np.array([mm[0], mm[1], mm[0], mm[1]]) / lengths
    if sides.max() > (1 + TILTED) * sides.min():
        told = (f"The sides of the chart in {path} have {sides.min():.4g} to {sides.max():.4g} mm per pixel:"
                " it does not face the camera, or --chart-mm is of another chart.")
        if sides.max() > 1.2 * sides.min():
            raise Failure(UNREADABLE, told)
        warn(told)
    return float(2 * sum(mm) / lengths.sum())


def choose(np, photos, options, warn):
    """Returns: mm per pixel of the photographs, None where nothing tells it"""
    found = []
    if options.scale_ruler:
        found.append(("--scale-ruler", of_ruler(options.scale_ruler, photos.size)))
    if options.chart_mm:
        corners = photos.chart_corners(np, options)
        found.append(("--chart-mm", of_chart(np, corners, options.chart_mm, options.chart, warn)))
    dome = photos.lights.mm_per_pixel(photos.size[1], warn) if options.mm_per_pixel is None else None
    if options.mm_per_pixel is not None:  # it is right where a .dome file is wrong
        found.insert(0, ("--mm-per-pixel", options.mm_per_pixel))
    elif dome is not None:
        found.append((f"imageWidth of {os.path.basename(photos.lights.path)}", dome))
    for name, mm in found[1:]:
        other, first = found[0]
        if abs(mm - first) > AGREE * first:
            remedy = ("give one of them" if dome is None
                      else "give the right one as --mm-per-pixel, alone")
            raise Failure(WRONG_USE, f"{other} gives {first:.5g} mm per pixel, and {name} {mm:.5g}: {remedy}.")
    return found[0][1] if found else None


def measured_corners(np, picture, corners, path):
    """The corners that the search found are good for colours; here they follow from the dark frames between patches, which lie in
    the middle of two. Returns: [4, 2]"""
    grid = np.array([(x, y) for y in range(chart.ROWS) for x in range(chart.COLUMNS)], float)
    light = picture @ np.array(chart.LUMA)
    for _round in range(8):
        h = chart.projection(np, corners)
        moved = np.zeros_like(grid)
        for axis in 0, 1:
            gaps = grid[grid[:, axis] < (chart.COLUMNS, chart.ROWS)[axis] - 1] + (0.5, 0)[::1 - 2 * axis]
            shift = np.array([gap_shift(np, light, h, gap, axis) for gap in gaps])
            known = np.isfinite(shift)
            if known.sum() < len(gaps) / 2:
                raise Failure(UNREADABLE, f"The patches of the chart in {path} have no dark frames to measure them by: give the middles of its"
                                          " corner patches with --chart-corners X,Y X,Y X,Y X,Y.")
            moved[:, axis] = bilinear(np, grid) @ np.linalg.lstsq(bilinear(np, gaps[known]), shift[known], rcond=None)[0]
        before, corners = corners, chart.corners_through(np, grid, chart.project(np, h, grid + moved))
        if abs(corners - before).max() < 0.01:
            break
    return corners


def bilinear(np, at):
    return np.stack([np.ones(len(at)), at[:, 0], at[:, 1], at[:, 0] * at[:, 1]], 1)


def gap_shift(np, light, h, gap, axis):
    """How far the middle of a dark frame lies from where it should be, in patches along the axis; NaN where none is seen"""
    along = np.linspace(-0.35, 0.35, 141)
    at = np.stack(np.meshgrid(along, np.linspace(-0.3, 0.3, 25)), -1)[..., ::1 - 2 * axis] + gap
    profile = sample(np, light[..., None], chart.project(np, h, at))[..., 0].mean(0)
    lowest = 28 + profile[28:-28].argmin()
    sides = [(profile[:20].mean(), np.arange(lowest, -1, -1)), (profile[-20:].mean(), np.arange(lowest, len(profile)))]
    edges = []
    for bright, walk in sides:
        half = (bright + profile[lowest]) / 2
        beyond = (profile[walk] > half).argmax()
        if profile[lowest] > 0.5 * bright or beyond == 0:
            return float("nan")
        inner, outer = walk[beyond - 1], walk[beyond]
        part = (half - profile[inner]) / (profile[outer] - profile[inner])
        edges.append(along[inner] + part * (along[outer] - along[inner]))
    return sum(edges) / 2


def sample(np, picture, at):
    """Bilinear; picture: [height, width, channels]; at: [..., 2], x and y. Returns: [..., channels]"""
    x = np.clip(at[..., 0], 0, picture.shape[1] - 1.001)
    y = np.clip(at[..., 1], 0, picture.shape[0] - 1.001)
    left, top = x.astype(int), y.astype(int)
    s, t = (x - left)[..., None], (y - top)[..., None]
    upper = picture[top, left] * (1 - s) + picture[top, left + 1] * s
    return upper * (1 - t) + t * (picture[top + 1, left] * (1 - s) + picture[top + 1, left + 1] * s)
