#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Joins the CSV files of one run into DIR/results.csv and DIR/ratios.svg and
prints one table and the targets.

With --compare BEFORE, the results.csv of another run, it names each ratio that
is worse by 10 %. Times of two runs are never compared: another machine, or
other work on it, changes them, but hardly what takes turns in one process.

Usage: report.py [--compare BEFORE] DIR FILE.csv...
Exit status: 1 when a ratio is worse.
"""
import argparse
import csv
import math
import os
import re
import sys


FIELDS = {"group", "case", "backend", "peer_or_floor", "median_us", "p99_us",
          "min_us", "max_us"}


def read(files):
    rows = []
    for location in files:
        try:
            with open(location, newline="", encoding="ascii") as file:
                reader = csv.DictReader(file)
                if not FIELDS <= set(reader.fieldnames or ()):
                    sys.exit(f"report.py: {location} is no results.csv of "
                             "tests/benchmarks/run: it has other columns.")
                rows += list(reader)
        except (OSError, UnicodeDecodeError) as error:
            sys.exit(f"report.py: {location} cannot be read: {error}")
    return rows


def number(text):
    return float(text) if text else math.nan


class Results:
    def __init__(self, rows):
        self.cases = {}
        for row in rows:
            case = self.cases.setdefault((row["group"], row["case"]), [])
            case.append((row["backend"], row["peer_or_floor"],
                         {k: number(row[k]) for k in
                          ("median_us", "p99_us", "min_us", "max_us")}))

    def get(self, group, case, who, backend=None, field="median_us"):
        for b, w, figures in self.cases.get((group, case), []):
            if w == who and backend in (None, b):
                return figures[field]
        return math.nan


def show(value):
    return "-" if math.isnan(value) else f"{value:.2f}" if value < 100 \
        else f"{value:.0f}"


def others_of(entries, ours):
    """(who, median, how many times ours it takes)"""
    for _, who, figures in entries:
        if who != "ours":
            yield who, figures["median_us"], figures["median_us"] / ours


def print_table(results):
    """One line a case: ours, then each peer and floor with its ratio."""
    print(f"{'case':44} {'':5}{'median':>9}{'p99':>9}{'min':>9}{'max':>9}   "
          "others: median (times ours)")
    for (group, case), entries in results.cases.items():
        ours = [e for e in entries if e[1] == "ours"]
        for backend, _, figures in ours:
            others = "  ".join(
                f"{who} {show(median)} ({ratio:.2f})" for who, median, ratio in
                others_of(entries, figures["median_us"]))
            print(f"{group + ' ' + case:44} {backend:5}"
                  f"{show(figures['median_us']):>9}{show(figures['p99_us']):>9}"
                  f"{show(figures['min_us']):>9}{show(figures['max_us']):>9}"
                  f"   {others}")
        if not ours:
            print(f"{group + ' ' + case:44} {'':41}   " + "  ".join(
                f"{who} {show(f['median_us'])}" for _, who, f in entries))


# --- targets -----------------------------------------------------------------

def table_cells(results, field):
    """How many cells of the table are beaten, of how many measured."""
    cells = [(results.get(g, c, "ours", field=field),
              results.get(g, c, "table"))
             for g, c in results.cases
             if not math.isnan(results.get(g, c, "table"))]
    return sum(ours < theirs for ours, theirs in cells), len(cells)


def ratio(results, case, over, under, field):
    return (results.get(*case, over, field=field) /
            results.get(*case, under, field=field))


def targets(r, field):
    """(sentence, value, limit, whether more is better); @field of both sides"""
    frame = ("lapsharpen", "2580x1319-rgba")
    opencv = ("peers", "lapsharpen-2580x1319-rgba")
    cells = ("shcentroid", "700-d10")
    large = ("gpu", "lapsharpen-7680x4320-rgba")
    mapped = ("gpu", "shcentroid-700-d10-xy-mapped")
    alone = ("gpu", "shcentroid-700-d10-xy-device")
    beaten, measured = table_cells(r, field)
    yield ("lapsharpen 2580x1319 RGBA, CPU thread: times a memcpy",
           ratio(r, frame, "ours", "memcpy", field), 2.2, False)
    yield ("the same, stretch",
           ratio(r, frame, "ours", "memcpy", field), 1.6, False)
    yield ("lapsharpen, CPU thread: times faster than OpenCV",
           ratio(r, opencv, "opencv", "ours", field), 5, True)
    yield ("shcentroid 700x700 pitch 10: times faster than the plain loop",
           ratio(r, cells, "plain-loop", "ours", field), 5, True)
    yield ("shcentroid: cells of the table beaten",
           beaten if measured else math.nan, measured, True)
    yield ("lapsharpen 7680x4320 RGBA, GPU: times the device copy",
           ratio(r, large, "ours", "device-copy", field), 1.2, False)
    yield ("lapsharpen, GPU: times faster than NPP FilterBorder",
           ratio(r, large, "npp", "ours", field), 1, True)
    yield ("shcentroid 700x700 pitch 10, GPU, mapped: us",
           r.get(*mapped, "ours", field=field), 25, False)
    if field == "median_us":
        yield ("shcentroid 700x700 pitch 10, GPU, mapped: p99 us",
               r.get(*mapped, "ours", field="p99_us"), 60, False)
    yield ("shcentroid 700x700 pitch 10, GPU: kernel alone, us",
           r.get(*alone, "ours", field=field), 6, False)


def print_targets(results):
    """By medians; minima beside them show what a busy machine has added."""
    by_minima = {t[0]: t[1] for t in targets(results, "min_us")}
    print("\ntargets, by medians (by minima)")
    for sentence, value, limit, more in targets(results, "median_us"):
        if math.isnan(value):
            continue
        met = value >= limit if more else value <= limit
        minimum = by_minima.get(sentence, math.nan)
        print(f"  {'met    ' if met else 'NOT MET'} {sentence}: {value:.2f} "
              f"({show(minimum)}), {'at least' if more else 'at most'} "
              f"{limit:g}")


# --- another run --------------------------------------------------------------

WORSE = 1.1  # times
OPTION = re.compile(r"(.*-of(?:-u16)?(?:-all)?)-(.+)")  # of a row without it


def ratios(results, field):
    """(name, how many times ours another takes): peers, floors, and for an
    option the same without it"""
    for (group, case), entries in results.cases.items():
        option = OPTION.fullmatch(case)
        for backend, who, figures in entries:
            if who != "ours" or not figures[field] > 0:
                continue
            name = f"{group} {case} {backend}"
            for _, other, theirs in entries:
                if other != "ours":
                    yield f"{name} beside {other}", theirs[field] / figures[field]
            if option:
                plain = results.get(group, option[1], "ours", backend, field)
                yield f"{name} beside {option[1]}", plain / figures[field]


def print_comparison(results, before):
    """Returns: whether a ratio of medians is worse."""
    old, new = dict(ratios(before, "median_us")), dict(ratios(results, "median_us"))
    old_minima = dict(ratios(before, "min_us"))
    new_minima = dict(ratios(results, "min_us"))
    both = [name for name in new if old.get(name, math.nan) > 0 and new[name] > 0]
    worse = [name for name in both if old[name] > WORSE * new[name]]
    print(f"\n{len(worse)} of {len(both)} ratios are worse by 10 % "
          "(times ours, by medians; by minima)")
    for name in worse:
        print(f"  {name}: {show(old[name])} before, {show(new[name])} now "
              f"({show(old_minima.get(name, math.nan))}, "
              f"{show(new_minima.get(name, math.nan))})")
    for name in old.keys() - set(both):
        print(f"  not measured now: {name}")
    return bool(worse)


# --- a picture ---------------------------------------------------------------

def bars(results):
    for (group, case), entries in results.cases.items():
        ours = results.get(group, case, "ours")
        if math.isnan(ours):
            continue
        for who, _, ratio in others_of(entries, ours):
            yield f"{case} / {who}", ratio


def write_picture(results, location):
    """Times ours, on a logarithmic axis; right of the line ours is faster."""
    found = [b for b in bars(results) if b[1] > 0]
    height, left, unit = 14, 330, 110  # unit: pixels for a factor of 10
    with open(location, "w", encoding="ascii") as file:
        print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 5 * unit}"'
              f' height="{height * (len(found) + 2)}" font-family="sans-serif"'
              ' font-size="10"><rect width="100%" height="100%" fill="white"/>',
              file=file)
        middle = left + 2 * unit
        for i, (label, ratio) in enumerate(found):
            y, end = height * (i + 1), middle + unit * math.log10(ratio)
            print(f'<text x="{left - 5}" y="{y}" text-anchor="end">{label}</text>'
                  f'<rect x="{min(middle, end):.1f}" y="{y - 9}" height="10"'
                  f' width="{abs(end - middle):.1f}"'
                  f' fill="{"#3a7" if ratio > 1 else "#c73"}"/>'
                  f'<text x="{max(middle, end) + 4:.1f}" y="{y}">{ratio:.2f}'
                  '</text>', file=file)
        print(f'<line x1="{middle}" x2="{middle}" y1="0" y2="100%" stroke="black"'
              '/></svg>', file=file)


def main():
    parser = argparse.ArgumentParser(prog="report.py")
    parser.add_argument("--compare", metavar="BEFORE")
    parser.add_argument("folder")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    before = options.compare and Results(read([options.compare]))
    rows = read(options.files)
    if not rows:
        sys.exit("report.py: there are no rows.")
    with open(os.path.join(options.folder, "results.csv"), "w", newline="",
              encoding="ascii") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    results = Results(rows)
    write_picture(results, os.path.join(options.folder, "ratios.svg"))
    print_table(results)
    print_targets(results)
    if before and print_comparison(results, before):
        sys.exit(1)


main()
