# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws docs/explanation/scaling.svg of what scaling-bench wrote: a plot for each size. Prints the slopes: the power of the size by which the time
grows, between neighbours.
Usage: python3 tests/benchmarks/scaling.py CPU.csv CUDA.csv [SVG]
"""
import csv
import math
import os
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLOTS = [  # kernel, size, title, what the size is, the slope of the dotted line
    ("lapsharpen", "width", "lapsharpen, 1024 rows of RGBA", "width", 1),
    ("lapsharpen", "height", "lapsharpen, 1024 columns of RGBA", "height", 1),
    ("shcentroid", "width", "shcentroid, square frame, pitch 10", "width and height (cells: its square / 100)", 2),
    ("shcentroid", "pitch", "shcentroid, 1000 x 1000", "pitch", 1),
    ("octbscan", "width", "octbscan, 512 A-scans", "samples of a spectrum", 1),
    ("octbscan", "height", "octbscan, 1024 samples a spectrum", "A-scans", 1),
    ("photostereo", "width", "photostereo, square picture, 20 lights", "width and height", 2),
    ("photostereo", "lights", "photostereo, 512 x 512", "lights", 1),
    ("insarxcorr", "patches", "insarxcorr, rows of 20 patches", "patches", 1),
    ("shreconstruct", "commands", "shreconstruct, as many slopes", "commands", 2),
]
THREADS = ["lapsharpen", "shcentroid", "octbscan", "photostereo", "insarxcorr", "shreconstruct"]


def read(path):
    """Returns: {(kernel, size): [(value, microseconds)]}"""
    curves = {}
    with open(path, encoding="ascii") as file:
        for row in csv.DictReader(file):
            kernel, size, value = row["case"].rsplit("-", 2)
            curves.setdefault((kernel, size), []).append((int(value), float(row["median_us"])))
    return curves


def slopes(points):
    return " ".join(f"{math.log(b[1] / a[1]) / math.log(b[0] / a[0]):.2f}" for a, b in zip(points, points[1:]))


def draw(axes, curves, key, title, label, slope):
    for backend, colour in ("cpu", "#1f77b4"), ("cuda", "#2ca02c"):
        points = curves[backend].get(key)
        if points:
            axes.loglog(*zip(*points), "o-", color=colour, markersize=3.5, linewidth=1.2, label="one thread" if backend == "cpu" else "CUDA")
            print(f"{'-'.join(key)} {backend}: {slopes(points)}")
    size, time = curves["cpu"][key][-1]
    low = axes.get_ylim()[0]
    axes.loglog([size / 8, size], [time / 8 ** slope, time], ":", color="#999999", linewidth=1, label=f"slope {slope}")
    axes.set_ylim(bottom=low)
    axes.set_title(title)
    axes.set_xlabel(label)
    axes.set_ylabel("microseconds")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip().splitlines()[-1])
    curves = {"cpu": read(sys.argv[1]), "cuda": read(sys.argv[2])}
    matplotlib.rcParams.update({"font.size": 8, "svg.hashsalt": "scaling", "axes.titlesize": 9, "font.family": "sans-serif"})
    figure, grid = pyplot.subplots(4, 3, figsize=(10.5, 11.5))
    for axes, (kernel, size, title, label, slope) in zip(grid.flat, PLOTS):
        draw(axes, curves, (kernel, size), title, label, slope)
    axes = grid.flat[len(PLOTS)]
    most = 1
    for kernel in THREADS:
        points = curves["cpu"][kernel, "threads"]
        most = max(most, points[-1][0])
        axes.loglog([n for n, _ in points], [points[0][1] / time for _, time in points], "o-", markersize=3.5, linewidth=1.2, label=kernel)
        print(f"{kernel} threads: " + " ".join(f"{n}: {points[0][1] / time:.2f}" for n, time in points))
    axes.loglog([1, most], [1, most], ":", color="#999999", linewidth=1)
    axes.set_title("all, on the CPU")
    axes.set_xlabel("threads")
    axes.set_ylabel("times one thread")
    axes.legend(fontsize=7)
    for axes in grid.flat[len(PLOTS) + 1:]:
        axes.axis("off")
    grid.flat[0].legend(fontsize=7)
    grid.flat[2].legend(fontsize=7)
    for axes in grid.flat:
        axes.grid(True, which="major", color="#e4e4e4")
    figure.tight_layout()
    figure.savefig(sys.argv[3] if len(sys.argv) == 4 else os.path.join(ROOT, "docs", "explanation", "scaling.svg"), metadata={"Date": None})


main()
