#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes docs/explanation/shcentroid-noise.svg and the table of docs/explanation/shcentroid-noise.md.

noise.py BUILD [FOLDER] runs test-shcentroid-noise of the build folder, whose
spots are the same everywhere, and writes into FOLDER, docs/ by default.
"""
import csv
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
COLOURS = {
    "cog": "#000000", "threshold subtract": "#0072b2", "threshold keep": "#56b4e9",
    "brightest": "#999999", "weight": "#e69f00", "iterative": "#d55e00",
    "quad": "#cc79a7", "correlation": "#009e73",
}  # of the curves; the others lie on these
LEFT, TOP, WIDTH, HEIGHT = 70, 20, 480, 400
LEAST, MOST = 0.003, 1.0  # pixels


def measure(build):
    """Returns: rows of the table, as dictionaries of text."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "noise.csv")
        subprocess.run([os.path.join(build, "tests/kernels/test-shcentroid-noise"), name],
                       check=True, stdout=subprocess.DEVNULL)
        with open(name, newline="") as file:
            return list(csv.DictReader(file))


def by_estimator(rows):
    table = {}
    for row in rows:
        table.setdefault(row["estimator"], []).append(row)
    return table


def place(electrons, pixels):
    """Where a point is drawn; both axes are logarithmic."""
    x = math.log(float(electrons) / 300) / math.log(100000 / 300)
    y = math.log(float(pixels) / LEAST) / math.log(MOST / LEAST)
    return f"{LEFT + x * WIDTH:.1f},{TOP + (1 - y) * HEIGHT:.1f}"


def draw(table):
    """Returns: the picture as SVG: found rms, and what is reported, dashed."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 170}"'
           f' height="{TOP + HEIGHT + 50}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for pixels in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0):
        y = place(300, pixels).split(",")[1]
        out.append(f'<path d="M{LEFT} {y}h{WIDTH}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{float(y) + 4}" text-anchor="end">{pixels:g}</text>')
    for row in next(iter(table.values())):
        x = place(row["electrons"], LEAST).split(",")[0]
        out.append(f'<path d="M{x} {TOP}v{HEIGHT}" stroke="#ddd"/><text x="{x}"'
                   f' y="{TOP + HEIGHT + 16}" text-anchor="middle">{row["electrons"]}</text>')
    out.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">'
               'electrons a spot</text><text transform="translate(16 '
               f'{TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
               'rms of x and y, pixels; dashed: as reported</text>')
    for i, (name, colour) in enumerate(COLOURS.items()):
        rows, y = table[name], TOP + 12 + 20 * i
        for column, dashes in (("rms", ""), ("reported", ' stroke-dasharray="5 4"')):
            points = " ".join(place(row["electrons"], row[column]) for row in rows)
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}"'
                       f' stroke-width="1.5"{dashes}/>')
        out.append(f'<path d="M{LEFT + WIDTH + 14} {y}h24" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{LEFT + WIDTH + 44}" y="{y + 4}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def write(table):
    """Returns: the table as Markdown."""
    fluxes = [row["electrons"] for row in next(iter(table.values()))]
    lines = ["| estimator | bias | " + " | ".join(f"{flux} e" for flux in fluxes) + " |",
             "| --- " * (len(fluxes) + 2) + "|"]
    for name, rows in table.items():
        cells = [f"{float(r['rms']):.3f}, {float(r['reported']):.3f}" for r in rows]
        lines.append(f"| {name} | {float(rows[-1]['bias']):.3f} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "docs", "explanation")
    table = by_estimator(measure(sys.argv[1]))
    with open(os.path.join(folder, "shcentroid-noise.svg"), "w") as file:
        file.write(draw(table))
    page = os.path.join(folder, "shcentroid-noise.md")
    with open(page) as file:
        text = file.read()
    before, _, rest = text.partition("<!-- table: begin -->\n")
    _, _, after = rest.partition("<!-- table: end -->")
    with open(page, "w") as file:
        file.write(before + "<!-- table: begin -->\n" + write(table) + "<!-- table: end -->"
                   + after)


if __name__ == "__main__":
    main()
