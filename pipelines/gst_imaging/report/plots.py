# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plots as inline SVG, which need no library and no script.

An axis is a pair (name, unit). Colours come from the page, so that they fit light, dark and paper; lines also differ by
their dashes. Points that are not finite are left out.
"""
import math
import re

from .page import escape, number

WIDTH, HEIGHT = 360, 230  # of the view: at 390 pixels a letter is as high as it is here
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 12, 40
DASHES = ("", "6 3", "2 3", "8 3 2 3", "12 4")
MOST = 2000  # points of a series; more are thinned
ALONE = {"c0": "#2563eb", "c1": "#c2410c", "c2": "#15803d", "c3": "#7e22ce", "c4": "#525c63", "line": "#ddd", "paper": "#fff"}


def ticks(low, high, n=6):
    """Round numbers from low to high."""
    span = high - low
    power = 10 ** math.floor(math.log10(span / n))
    step = next(step * power for step in (1, 2, 5, 10) if span / (step * power) <= n)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12 - math.floor(math.log10(step)))
            for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low, high):
    """Powers of ten, as exponents; of a range with less than two of them also 2 and 5 times these, or round numbers."""
    first, last = math.floor(low), math.ceil(high)
    step = max(1, (last - first) // 5)
    found = [p for p in range(first, last + 1, step) if low - 1e-9 <= p <= high + 1e-9]
    if len(found) < 2:
        found = [p + math.log10(m) for p in range(first, last + 1) for m in (1, 2, 5) if low <= p + math.log10(m) <= high]
    return found if len(found) >= 2 else [math.log10(value) for value in ticks(10 ** low, 10 ** high)]


def log_texts(exponents):
    if all(isinstance(p, int) for p in exponents):
        return [power_of_ten(p) for p in exponents]
    return tick_texts([float(f"{10 ** p:.9g}") for p in exponents])


def power_of_ten(p):
    return number(10.0 ** p) if -4 <= p <= 5 else f"1e{p}"


def tick_text(value):
    """Short enough to stand beside the title of the axis."""
    for letter, step in ("M", 10 ** 6), ("k", 1000):
        if abs(value) >= max(step, 10 ** 5):
            return f"{value / step:.4g}{letter}"
    if 0 < abs(value) < 1e-3:
        return re.sub(r"\.?0*e([+-])0*", r"e\1", f"{value:.2e}")
    return number(value)


def tick_texts(values):
    """Returns: as many digits as tell them apart"""
    texts = [tick_text(value) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    digits = max(0, math.ceil(-math.log10(min(b - a for a, b in zip(values, values[1:]))) - 1e-9))
    return [f"{value:.{digits}f}" for value in values]


def label(axis):
    name, unit = axis
    return escape(f"{name} ({unit})" if unit else name)


class Axes:
    """Where numbers are in the view, and the HTML of the frame around them."""

    def __init__(self, x, y, points, log_y=False, from_zero=False):
        self.x, self.y, self.log_y = x, y, log_y
        self.x_range = self.range_of([px for px, _py in points])
        self.y_range = self.range_of([py for _px, py in points] + ([0] if from_zero else []), 0 if from_zero else 0.05)

    @staticmethod
    def range_of(values, margin=0.0):
        low, high = min(values, default=0), max(values, default=1)
        if low == high:
            pad = abs(low) * 0.1 or 1
            return low - pad, high + pad
        return low - margin * (high - low), high + margin * (high - low)

    def place(self, px, py):
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        return (LEFT + (WIDTH - LEFT - RIGHT) * (px - x0) / (x1 - x0),
                HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (py - y0) / (y1 - y0))

    def make_space(self, points, names):
        """Raises the upper end where the legend would cover points."""
        names = [name for name in names if name]
        below = TOP + 12 + 14 * len(names)
        beside = LEFT + 40 + 6 * max(map(len, names), default=0)
        if names and any(x < beside and y < below for x, y in (self.place(*point) for point in points)):
            low, high = self.y_range
            height = HEIGHT - TOP - BOTTOM
            self.y_range = low, low + (high - low) * height / (height - below + TOP)

    def frame(self):
        parts = []
        values = (log_ticks if self.log_y else ticks)(*self.y_range)
        for value, text in zip(values, (log_texts if self.log_y else tick_texts)(values)):
            _x, y = self.place(self.x_range[0], value)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="var(--line)"/>'
                         f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        values = ticks(*self.x_range)
        for value, text in zip(values, tick_texts(values)):
            x, _y = self.place(value, self.y_range[0])
            parts.append(f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v4" stroke="currentColor"/>'
                         f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{text}</text>')
        middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
        parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="currentColor"/>'
                     f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{label(self.x)}</text>'
                     f'<text transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">{label(self.y)}</text>')
        return "".join(parts)

    def svg(self, drawn, legend=()):
        keys = "".join(
            f'<g><path d="M{LEFT + 8} {TOP + 8 + 14 * i}h22" stroke="var(--c{i % 5})" stroke-width="2"'
            f' stroke-dasharray="{DASHES[i % 5]}"/><text x="{LEFT + 35}" y="{TOP + 12 + 14 * i}"'
            f' stroke="var(--paper)" stroke-width="3" paint-order="stroke">{escape(name)}</text></g>'
            for i, name in enumerate(legend) if name)
        what = escape(f"{self.y[0]} over {self.x[0]}")
        return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{what}" font-size="11" fill="currentColor">' \
               f"{self.frame()}{drawn}{keys}</svg>"


def finite(xs, ys, log_y):
    pairs = [(float(px), float(py)) for px, py in zip(xs, ys)]
    pairs = [(px, py) for px, py in pairs if math.isfinite(px) and math.isfinite(py) and (py > 0 or not log_y)]
    return [(px, math.log10(py)) for px, py in pairs] if log_y else pairs


def thin(points):
    """Every n-th of many, and of each n also the lowest and the highest, so that peaks stay."""
    step = math.ceil(len(points) / (MOST // 2))
    if step <= 2:
        return points
    kept = []
    for i in range(0, len(points), step):
        group = points[i:i + step]
        kept += sorted({min(group, key=lambda p: p[1]), max(group, key=lambda p: p[1])})
    return kept


def prepare(x, y, series, log_y):
    if log_y:
        series = {name: finite(*data, True) for name, data in series.items()}
    else:
        series = {name: finite(*data, False) for name, data in series.items()}
    return series, Axes(x, y, [p for points in series.values() for p in points], log_y)


def lines(x, y, series, log_y=False):
    """series: {name: (xs, ys)}; an empty name has no entry in the legend. Up to five."""
    series, axes = prepare(x, y, series, log_y)
    drawn = ""
    for i, points in enumerate(series.values()):
        path = " ".join("%.1f,%.1f" % axes.place(*p) for p in thin(points))
        style = f'fill="none" stroke="var(--c{i % 5})" stroke-width="2" stroke-dasharray="{DASHES[i % 5]}"'
        drawn += f'<polyline points="{path}" {style}/>'
        if len(points) == 1:
            drawn += dots(axes, points, i)
    return axes.svg(drawn, series)


def dots(axes, points, i):
    return "".join('<circle cx="%.1f" cy="%.1f" r="2.2" fill="var(--c%d)" fill-opacity=".75"/>' % (*axes.place(*p), i % 5)
                   for p in points)


def scatter(x, y, series, log_y=False):
    """series: {name: (xs, ys)}; of many points every n-th."""
    series, axes = prepare(x, y, series, log_y)
    axes.make_space([point for points in series.values() for point in points], series)
    drawn = "".join(dots(axes, points[::math.ceil(len(points) / MOST) or 1], i) for i, points in enumerate(series.values()))
    return axes.svg(drawn, series)


def sky(directions):
    """Directions of lights as the camera sees them. directions: {name: (x, y)}, of unit vectors, y up. The outer circle is the
    horizon, those in it are at 30 and 60 degrees"""
    side, r = 260, 105
    rings = "".join(f'<circle cx="{side / 2}" cy="{side / 2}" r="{r * math.cos(math.radians(up)):.1f}" fill="none" stroke="var(--line)"/>'
                    f'<text x="{side / 2 + 3}" y="{side / 2 - r * math.cos(math.radians(up)) - 3:.1f}">{up}\u00b0</text>' for up in (0, 30, 60))
    drawn = "".join(f'<circle cx="{side / 2 + r * x:.1f}" cy="{side / 2 - r * y:.1f}" r="3" fill="var(--c0)"><title>{escape(name)}</title></circle>'
                    for name, (x, y) in directions.items())
    return f'<svg viewBox="0 0 {side} {side}" role="img" aria-label="directions of lights" font-size="9" fill="currentColor">{rings}{drawn}</svg>'


def network(x, y, points, edges):
    """points: {name: (x, y)}; edges: pairs of names"""
    axes = Axes(x, y, list(points.values()))
    drawn = "".join('<path d="M%.1f %.1fL%.1f %.1f" stroke="var(--c0)"/>' % (*axes.place(*points[a]), *axes.place(*points[b]))
                    for a, b in edges)
    drawn += "".join('<circle cx="%.1f" cy="%.1f" r="3" fill="var(--c1)"><title>%s</title></circle>' % (*axes.place(*place), escape(name))
                     for name, place in points.items())
    return axes.svg(drawn)


def alone(svg):
    """A plot as a file of its own, without the page that its colours come from: not every program knows variables of CSS."""
    svg = re.sub(r"var\(--(\w+)\)", lambda found: ALONE[found[1]], svg.replace("currentColor", "#222"))
    return svg.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{2 * HEIGHT}" font-family="sans-serif" ', 1).replace(
        ">", f'><rect width="{WIDTH}" height="{HEIGHT}" fill="{ALONE["paper"]}"/>', 1) + "\n"


def histogram(x, edges, counts, y=("pixels", "")):
    """counts: one fewer than edges; y: the axis of what is counted"""
    edges, counts = [float(e) for e in edges], [float(c) for c in counts]
    axes = Axes(x, y, [(edge, 0) for edge in edges] + [(edges[0], max(counts, default=1) or 1)], from_zero=True)
    drawn = ""
    for left, right, count in zip(edges, edges[1:], counts):
        (x0, y0), (x1, y1) = axes.place(left, count), axes.place(right, 0)
        drawn += f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{max(x1 - x0 - 0.3, 0.3):.1f}" height="{y1 - y0:.1f}" fill="var(--c0)"/>'
    return axes.svg(drawn)
