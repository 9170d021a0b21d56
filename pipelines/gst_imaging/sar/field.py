# SPDX-License-Identifier: LGPL-2.1-or-later
"""The offsets of two images as a picture: an arrow a patch.

Arrows show the offsets less their median, scaled to the step of the grid. Dark ones are within half a column and half
a line of the fit, red ones further away, and crosses where an arrow would be much too long; a grey dot is a patch whose
correlation is not above the limit.
"""
import math
import statistics

from ..command import NO_RESULT, UNREADABLE, Failure

SIZE, BORDER = 720, 30  # of the longer side of the image; around it
FILE = {"near": "#1b3a6b", "far": "#d03030", "out": "#aaa", "paper": "white", "size": 1, "space": ' xmlns="http://www.w3.org/2000/svg"'}
PAGE = {"near": "var(--c0)", "far": "var(--bad)", "out": "var(--c4)", "paper": "none", "size": 2, "space": ""}
LEGEND, CHARACTER = 120, 7.5  # the longest arrow of the legend; a letter, at the most


def read_offsets(path):
    """Returns: (x, dx, y, dy, correlation) of each patch, from a freq_xcorr.dat."""
    try:
        with open(path, encoding="ascii") as file:
            rows = [tuple(map(float, line.split())) for line in file if line.strip()]
    except ValueError:
        rows = []
    if not rows or any(len(row) != 5 or not all(map(math.isfinite, row)) for row in rows):
        raise Failure(UNREADABLE, f'"{path}" does not have rows of five numbers, as freq_xcorr.dat has.')
    return rows


def read_table(path):
    """Returns: the same, from the text/csv of insarxcorr; patches without data have the correlation 0."""
    with open(path, encoding="ascii") as file:
        names = next(file).rstrip().split(",")
        places = [names.index(name) for name in ("x", "dx", "y", "dy", "correlation")]
        rows = [line.rstrip().split(",") for line in file]
    return [tuple(float(row[place] or 0) for place in places) for row in rows]


def places_of(rows):
    """Returns: the columns and the lines of patches"""
    return [sorted({row[axis] for row in rows}) for axis in (0, 2)]


def without(rows, states):
    """Returns: the rows; those whose state is edge or no data, and so not in the fit, have the correlation 0."""
    return [row if state in (0, 3) else (*row[:4], 0.0) for row, state in zip(rows, states)]


class Extent:
    """What a picture covers."""

    def __init__(self):
        self.left = self.top = math.inf
        self.right = self.bottom = -math.inf

    def add(self, x, y, margin=BORDER):
        self.left, self.right = min(self.left, x - margin), max(self.right, x + margin)
        self.top, self.bottom = min(self.top, y - margin), max(self.bottom, y + margin)


def draw_patches(rows, fit, snr, middle, place, stretch, longest, extent, colours):
    """Returns: the lines of a mark a patch. place: from x, y to the picture; longest: of an arrow; extent: grows."""
    for x, dx, y, dy, correlation in rows:
        u, v = place(x, y)
        extent.add(u, v)
        if correlation <= snr:
            yield f'<circle cx="{u:.1f}" cy="{v:.1f}" r="2" fill="{colours["out"]}"/>'
            continue
        near = not fit or max(abs(a - b) for a, b in zip(fit(x, y), (dx, dy))) < 0.5
        along, down = (dx - middle[0]) * stretch, (dy - middle[1]) * stretch
        if max(abs(along), abs(down)) > longest:
            yield f'<path d="M{u - 3:.1f} {v - 3:.1f}l6 6m0 -6l-6 6" stroke="{colours["far"]}"/>'
        else:
            extent.add(u + along, v + down, 14)
            yield (f'<path d="M{u:.1f} {v:.1f}l{along:.1f} {down:.1f}" stroke="{colours["near" if near else "far"]}" '
                   'marker-end="url(#h)" fill="none"/>')


def draw_legend(middle, stretch, extent, size):
    """Returns: an arrow of a round length, below, and what it stands for."""
    unit = 10 ** math.floor(math.log10(LEGEND / stretch))
    unit *= max((n for n in (2, 5) if n * unit * stretch <= LEGEND), default=1)
    text = f"{unit:g} pixel{'s' if unit > 1 else ''}, less the median of {middle[0]:.2f} columns and {middle[1]:.2f} lines"
    left, low = extent.left + BORDER, extent.bottom + 10 * size
    yield f'<path d="M{left:.1f} {low:.1f}h{unit * stretch:.1f}" stroke="currentColor" marker-end="url(#h)" fill="none"/>'
    yield f'<text x="{left + unit * stretch + 8:.1f}" y="{low + 4 * size:.1f}" fill="currentColor" stroke="none">{text}</text>'
    extent.add(left + unit * stretch + 8 + CHARACTER * size * len(text), low, 12 * size)


def draw(rows, fit, snr, colours=FILE):
    """Returns: the lines of the picture. rows: (x, dx, y, dy, correlation) of each patch; fit: a function from (x, y) to
    the offset, or None; snr: the limit of the correlation; colours: FILE or PAGE, of a report"""
    good = [row for row in rows if row[4] > snr]
    if not good:
        raise Failure(NO_RESULT, f"No correlation is above {snr:g}, the highest is {max(row[4] for row in rows):g}: there is"
                                 " nothing to draw.")
    middle = [statistics.median(row[i] for row in good) for i in (1, 3)]
    left, top = min(row[0] for row in rows), min(row[2] for row in rows)
    scale = SIZE / max(max(row[0] for row in rows) - left, max(row[2] for row in rows) - top, 1)
    columns, lines = (sorted({row[i] for row in rows}) for i in (0, 2))
    steps = [(b - a) * scale for axis in (columns, lines) for a, b in zip(axis, axis[1:])]
    # outliers, one in twenty, may be longer than the grid
    step = min([*steps, 40])
    lengths = sorted(max(abs(row[1] - middle[0]), abs(row[3] - middle[1])) for row in good)
    stretch = 0.9 * step / max(lengths[int(0.95 * (len(lengths) - 1))], 1e-3)
    extent = Extent()
    marks = [*draw_patches(rows, fit, snr, middle, lambda x, y: ((x - left) * scale, (y - top) * scale), stretch, 2 * step,
                           extent, colours)]
    marks += draw_legend(middle, stretch, extent, colours["size"])
    width, height = extent.right - extent.left, extent.bottom - extent.top
    yield (f'<svg{colours["space"]} width="{width:.0f}" height="{height:.0f}" '
           f'viewBox="{extent.left:.1f} {extent.top:.1f} {width:.1f} {height:.1f}" font-family="sans-serif" '
           f'font-size="{13 * colours["size"]}" stroke-width="{colours["size"]}">')
    yield ('<defs><marker id="h" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" markerHeight="5" orient="auto">'
           '<path d="M0 0L6 3L0 6Z" fill="context-stroke"/></marker></defs>')
    yield (f'<rect x="{extent.left:.1f}" y="{extent.top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colours["paper"]}"/>')
    yield from marks
    yield "</svg>"


def write(path, rows, fit, snr):
    """No file where nothing correlates."""
    if any(row[4] > snr for row in rows):
        with open(path, "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in draw(rows, fit, snr))
