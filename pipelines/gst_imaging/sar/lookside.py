# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does the radar look to the side that a PRM file names? The offset along the range grows with the column by the perpendicular baseline,
which the orbits give for either side."""
import copy

from .. import library
from ..command import Failure
from .ground import Ground, first_of

LEAST = 1  # columns by which the two sides have to differ over the image
CORNERS = 10  # times the expected error of the fit that this has to be, too
NEAR = 0.25  # of that difference: the measured one is so near to that of the other side. Mountains of 2 km and swaths of 8 km take 0.14


def growth(reference, secondary, columns, line):
    """Returns: by how many columns the offset of flat ground grows between two columns of a line"""
    np = library.numpy()
    points = Ground(reference, columns, [line], np.zeros((1, 2))).point[0]
    near = first_of(secondary)[1]
    first, last = ((np.linalg.norm(secondary.nearest(point, f"in {reference.path}")[0] - point) - near) / secondary.step - column
                   for point, column in zip(points, columns))
    return float(last - first)


def check(pair, image, offsets, warn):
    """Warns where the measured offsets are surely those of the other side. pair: the orbit.Images of reference and secondary; image: the
    reference; offsets: measure.Offsets, with a fit"""
    columns, line = (0, image.width - 1), image.height / 2
    reference, secondary = pair
    try:
        turned = copy.copy(reference)
        turned.look = -reference.look
        told, other = (growth(one, secondary, columns, line) for one in (reference, turned))
    except Failure:  # nothing is at these ranges, which insarform tells
        return
    fit = offsets.fit_function()
    measured = fit(columns[1], line)[0] - fit(columns[0], line)[0]
    apart = abs(other - told)
    if apart > max(LEAST, CORNERS * offsets.error()) and abs(measured - other) < NEAR * apart:
        sides = ("R", "L") if reference.look > 0 else ("L", "R")
        warn(f"lookdir = {sides[0]} of {reference.path} is wrong, or the orbits are exchanged: the range offset grows by {measured:.1f} columns over the "
             f"image, and the orbits give {told:.1f} for {sides[0]} and {other:.1f} for {sides[1]}. The phase of the earth, heights and places are then "
             f"wrong. Set lookdir = {sides[1]} in both PRM files, or give each image its own LED file.")
