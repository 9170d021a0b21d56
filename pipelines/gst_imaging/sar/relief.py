# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do the heights of --dem make the phase smoother? Those that are mirrored, upside down or in feet add fringes to those of the ground."""
import math

from .. import library
from ..command import Failure
from . import ground
from .interferogram import read_raster

N = 17  # places along both axes, where the phase of the ellipsoid is computed
BLOCK = 4  # cells
STRIP = 64  # blocks at a time
LESS = 0.98  # of the smoothness without the heights: noise and motion are in both


def ellipsoid_phase(np, pair, columns, lines):
    """pair: the orbit.Images. Returns: the phase of the ellipsoid in rad, [lines][columns]"""
    reference, secondary = pair
    start, near = ground.first_of(reference)
    points = ground.Ground(reference, columns, lines, np.zeros((len(lines), len(columns)))).point
    there = np.array([[np.linalg.norm(secondary.nearest(point, f"seen by {reference.path}")[0] - point) for point in row] for row in points])
    return 4 * math.pi / reference.wavelength * (there - (near + np.asarray(columns) * reference.step))


def smoothness(np, phase):
    """Returns: the sum of how well cells of a block agree, 1 for one phase, and the number of blocks with data"""
    rows, columns = (n // BLOCK for n in phase.shape)
    blocks = np.exp(1j * phase[:rows * BLOCK, :columns * BLOCK]).reshape(rows, BLOCK, columns, BLOCK)
    agreed = np.abs(blocks.mean((1, 3)))
    return np.nansum(agreed), np.isfinite(agreed).sum()


def interpolated(np, values, rows, columns, shape):
    """values: at N x N places. Returns: at rows and all columns of cells, bilinear"""
    at = [np.interp(np.arange(shape[1]), columns, row) for row in values]
    return np.stack([np.interp(np.arange(rows.start, rows.stop), np.linspace(0, shape[0] - 1, len(values)), column) for column in np.stack(at).T], 1)


def check(made, summary, looks, pair, path):
    """looks: samples of a cell; pair: the orbit.Images; path: of --dem"""
    np = library.numpy()
    shape = summary["height"], summary["width"]
    if min(shape) < BLOCK:
        return
    cells = [np.linspace(0, n - 1, N) for n in shape]
    try:
        flat = ellipsoid_phase(np, pair, *(at * n + (n - 1) / 2 for at, n in zip(cells[::-1], looks)))
    except Failure:  # of an orbit that is too short beyond the edge
        return
    phase, removed = (read_raster(made.path(name + ".img"), summary) for name in ("phase", "removed"))
    sums = np.zeros((2, 2))
    for y in range(0, shape[0], STRIP * BLOCK):
        rows = slice(y, min(y + STRIP * BLOCK, shape[0]))
        without = phase[rows] + removed[rows] - interpolated(np, flat, rows, cells[1], shape)
        sums += [smoothness(np, phase[rows]), smoothness(np, without)]
    if not sums[:, 1].all():
        return
    found, before = sums[:, 0] / sums[:, 1]
    made.report.figure("smoothness of the phase with the heights", found, at_least=LESS * before,
                       about=f"how well {BLOCK} x {BLOCK} cells agree, 1 for one phase; without the heights {before:.3f}")
    if found < LESS * before:
        made.warn(f"The heights of {path} make the phase rougher: {BLOCK} x {BLOCK} cells agree by {found:.3f}, and without the heights by {before:.3f}. Look "
                  "whether they are in m, are of this reference, and begin with its first column and line.")
