# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chooses the pairs of a stack of SLC images, and writes a table of jobs for them.

DIR has PRM files of GMTSAR with their LED files. FOLDER gets jobs.csv, a row with gst-imaging insar for each pair; pairs.csv with days
and perpendicular baselines; network.svg, a plot of them; and report.html. Then gst-imaging batch FOLDER/jobs.csv runs the rows.
FOLDER --table, after the rows, writes a table of the figures of all results: fits, coherence, and which limits are met.
"""
import csv
import glob
import os
import shlex

from .. import job
from ..command import UNREADABLE, WRONG_USE, Failure, Parser, load
from ..report import plots
from ..sar import network, orbit
from ..sar.arguments import whole
from ..sar.images import led_of

EXAMPLES = [
    ("slc -o stack", "pairs by Delaunay triangles of days and perpendicular baselines"),
    ("slc -o stack --network sequential --connections 3", "each scene with the three after it"),
    ("slc -o stack --max-days 60 --max-baseline 150 -- --looks 20 4", "limits, and arguments for each gst-imaging insar"),
    ("stack --table -o table", "after the rows: a table of all fits and coherences"),
]


def add_arguments(parser):
    parser.add_argument("words", nargs="+", metavar="DIR [-- ARGUMENT...]", help="arguments behind -- are those of gst-imaging insar")
    job.add_arguments(parser)
    parser.add_argument("--network", choices=network.NETWORKS, default="delaunay", help="; ".join(
        f"{name}: {meaning}" for name, meaning in network.NETWORKS.items()) + " (delaunay)")
    parser.add_argument("--connections", type=whole(1, 1000), default=1, metavar="N", help="of sequential: with the next N scenes (1)")
    parser.add_argument("--centre", metavar="NAME", help="of star: the scene; without it the one nearest to all others")
    parser.add_argument("--max-days", type=float, metavar="N", help="leave out pairs that are further apart")
    parser.add_argument("--max-baseline", type=float, metavar="METRES", help="leave out pairs of a longer perpendicular baseline")
    parser.add_argument("--results", metavar="FOLDER", help="where the rows put their results (FOLDER of the output, with -pairs)")
    parser.add_argument("--table", action="store_true", help="DIR is a stack whose rows have been run: write the table of its results")


def read_scenes(folder, made):
    """Returns: scenes by time, with their baselines"""
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.[Pp][Rr][Mm]")))
    if len(paths) < 2:
        raise Failure(UNREADABLE, f"{folder} has {len(paths)} PRM files, and a stack at least two.")
    images = sorted((orbit.Image(path) for path in paths), key=lambda image: image.time)
    for image in images:
        for path in (image.path, *led_of(image.path)):
            made.input(path, "scene")
        image.scene.baseline = orbit.perpendicular(images[0], image)
    return [image.scene for image in images]


def check_arguments(more):
    """What gst-imaging insar would refuse in each row, and files that are of the grid of one reference, where each pair has its own"""
    given = Parser("insar", load("insar")).parse(["reference", "secondary", "-o", "pair", *more])
    for name in "dem", "mask", "geocode":
        if getattr(given, name):
            raise Failure(WRONG_USE, f"--{name} is in the columns and lines of one reference, and the pairs of a stack have several. Give it to"
                                     " gst-imaging insar for the pairs of that reference.")


def choose(options, scenes):
    """Returns: pairs of numbers of scenes"""
    if options.centre is not None and options.network != "star":
        raise Failure(WRONG_USE, f"--centre is for --network star, and the network is {options.network}. Leave one of them out.")
    if options.network == "sequential":
        pairs = network.sequential(len(scenes), options.connections)
    elif options.network == "star":
        names = [scene.name for scene in scenes]
        if options.centre is not None and options.centre not in names:
            raise Failure(WRONG_USE, f'There is no scene "{options.centre}"; there are {", ".join(names)}.')
        pairs = network.star(scenes, None if options.centre is None else names.index(options.centre))
    else:
        pairs = network.delaunay([(scene.day * network.METRES_A_DAY, scene.baseline) for scene in scenes])
    chosen = network.limited(pairs, scenes, options.max_days, options.max_baseline)
    if not chosen:
        raise Failure(WRONG_USE, f"None of {len(pairs)} pairs is within --max-days and --max-baseline.")
    return chosen


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def plan(options, made):
    folder, more = options.words[0], options.words[1:]
    check_arguments(more)
    scenes = read_scenes(folder, made)
    results = os.path.normpath(options.results or f"{os.path.normpath(options.output)}-pairs")
    for name, default in ("network", "delaunay"), ("connections", 1), ("centre", None), ("max_days", None), ("max_baseline", None):
        made.setting(name.replace("_", "-"), getattr(options, name), default)
    made.setting("arguments", more, [])
    made.setting("folder", folder)
    made.setting("results", results)
    if made.is_complete():
        return made.result
    pairs = choose(options, scenes)
    named = [(scenes[i], scenes[k], f"{scenes[i].name}-{scenes[k].name}") for i, k in pairs]
    write_csv(made.path("pairs.csv"), [["reference", "secondary", "days", "baseline_m"], *(
        [one.name, other.name, f"{other.day - one.day:.3f}", f"{other.baseline - one.baseline:.2f}"] for one, other, _name in named)])
    write_csv(made.path("scenes.csv"), [["name", "date", "days", "baseline_m"], *(
        [scene.name, scene.date, f"{scene.day - scenes[0].day:.3f}", f"{scene.baseline:.2f}"] for scene in scenes)])
    write_csv(made.path("jobs.csv"), [["command", "input", "output", "arguments"], *(
        ["insar", shlex.join([one.path, other.path]), os.path.join(results, name), shlex.join(more)] for one, other, name in named)])
    plot = plots.network(("time since the first scene", "d"), ("perpendicular baseline", "m"),
                         {scene.name: (scene.day - scenes[0].day, scene.baseline) for scene in scenes},
                         [(one.name, other.name) for one, other, _name in named])
    with open(made.path("network.svg"), "w", encoding="utf-8") as file:
        file.write(plots.alone(plot))
    made.report.plot("Network", plot)
    groups = network.parts(len(scenes), pairs)
    made.report.figure("parts of the network", len(groups), at_most=1)
    if len(groups) > 1:
        made.warn(f"The pairs do not connect all scenes: there are {len(groups)} parts, and a time series has no common zero. Raise"
                  " --max-days or --max-baseline.")
    return made.finish(scenes=len(scenes), pairs=len(pairs), parts=len(groups))


def make_table(options, made):
    """A line for each pair: days, baseline, and all figures that its result has."""
    folder = options.words[0]
    try:
        with open(os.path.join(folder, "jobs.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        with open(os.path.join(folder, "pairs.csv"), encoding="utf-8", newline="") as file:
            pairs = list(csv.DictReader(file))
    except OSError as error:
        raise Failure(UNREADABLE, f"{folder} is no stack: {error.filename}: {error.strerror}.") from error
    if not pairs or len(rows) != len(pairs) or any(row.get("command") != "insar" or not row.get("output") for row in rows):
        raise Failure(UNREADABLE, f"{folder} is no stack: jobs.csv has {len(rows)} rows, and pairs.csv {len(pairs)}; a row is gst-imaging insar"
                                  " for one pair. gst-imaging insar-stack writes both.")
    results = [job.read_result(row["output"]) for row in rows]
    for row, result in zip(rows, results):
        if result:
            made.input(os.path.join(row["output"], "result.json"), "result")
    made.setting("folder", folder)
    if made.is_complete():
        return made.result
    names = list(dict.fromkeys(figure["name"] for result in results if result for figure in result["figures"]))
    lines = []
    for pair, result in zip(pairs, results):
        found = {figure["name"]: figure for figure in result["figures"]} if result else {}
        missed = [name for name, figure in found.items() if figure["met"] is False]
        lines.append([*pair.values(), "complete" if result else "missing", *(found.get(name, {}).get("value", "") for name in names),
                      "; ".join(missed)])
    heading = [*pairs[0], "state", *names, "beyond its limit"]
    write_csv(made.path("table.csv"), [heading, *lines])
    made.report.table("Pairs", heading, lines)
    made.report.figure("pairs without a result", sum(result is None for result in results), at_most=0)
    return made.finish(pairs=len(pairs), missing=sum(result is None for result in results))


def run(options):
    if options.table and len(options.words) > 1:
        raise Failure(WRONG_USE, "--table takes one folder, that of the stack.")
    work = make_table if options.table else plan
    return job.run_all(options, "insar-stack", [options.words[0]], lambda _path, made: work(options, made), [options.output])
