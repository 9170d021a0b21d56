# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stack of SLC images on one grid: chooses pairs, writes tables of jobs for them, and hands the results to a time series.

DIR has PRM files of GMTSAR with their LED files. FOLDER gets images.csv, a row for each image that is resampled to the grid of one of
them; jobs.csv, a row with gst-imaging insar for each pair of images on that grid; pairs.csv and scenes.csv with days and
perpendicular baselines; network.svg, a plot of them; and report.html. gst-imaging batch runs images.csv, and then jobs.csv.
After the rows, FOLDER --table writes a table of the figures of all results, and FOLDER --series mintpy or gmtsar the files from which
MintPy, or sbas of GMTSAR, makes a time series.
"""
import glob
import os
import shlex

from .. import job
from ..batch import rows
from ..command import UNREADABLE, WRONG_USE, Failure, Parser, load
from ..report import plots
from ..sar import agreement, network, orbit, series, stack
from ..sar.arguments import read_words, whole_number
from ..sar.images import led_of, slc_of

EXAMPLES = [
    ("slc -o stack", "pairs by Delaunay triangles of days and perpendicular baselines"),
    ("slc -o stack --network sequential --connections 3", "each scene with the three after it"),
    ("slc -o stack --max-days 60 --max-baseline 150 -- --looks 20 4", "limits, and arguments for each gst-imaging insar"),
    ("stack --table -o table", "after the rows: a table of all fits and coherences"),
    ("stack --series mintpy -o mintpy", "after rows with --unwrap: what MintPy loads"),
    ("stack --series mintpy -o mintpy --leave-out S1_20200105 S1_20200117", "the series without one pair"),
]


def add_arguments(parser):
    parser.add_argument("words", nargs="+", metavar="DIR [-- ARGUMENT...]", help="arguments behind -- are those of gst-imaging insar")
    job.add_arguments(parser)
    parser.add_argument("--network", choices=network.NETWORKS, default="delaunay", help="; ".join(
        f"{name}: {meaning}" for name, meaning in network.NETWORKS.items()) + " (delaunay)")
    parser.add_argument("--connections", type=whole_number(1, 1000), default=1, metavar="N", help="of sequential: with the next N scenes (1)")
    parser.add_argument("--centre", metavar="NAME", help="of star: the scene; without it the one nearest to all others")
    parser.add_argument("--grid", metavar="NAME", help="the scene whose columns and lines all images get; without it that of the plan "
                        "that --overwrite replaces, the centre of star, or the one nearest to all others")
    parser.add_argument("--max-days", type=float, metavar="N", help="leave out pairs that are further apart")
    parser.add_argument("--max-baseline", type=float, metavar="METRES", help="leave out pairs of a longer perpendicular baseline")
    parser.add_argument("--leave-out", nargs=2, action="append", default=[], metavar=("REFERENCE", "SECONDARY"), help="of a plan, --table and "
                        "--series: do without the pair of these two scenes; may be given several times")
    parser.add_argument("--results", metavar="FOLDER", help="where jobs.csv puts its results (FOLDER of the output, with -pairs); those of "
                        "images.csv are in the same with -images in the place of -pairs")
    parser.add_argument("--table", action="store_true", help="DIR is a stack whose rows have been run: write the table of its results")
    parser.add_argument("--series", choices=series.PROGRAMS, help="DIR is a stack whose rows have been run: write what this program reads")


def read_scenes(folder, made):
    """Returns: scenes by time, with their baselines"""
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.[Pp][Rr][Mm]")))
    if len(paths) < 2:
        raise Failure(UNREADABLE, f"{folder} has {len(paths)} PRM files, and a stack at least two.")
    images = sorted((orbit.Image(path) for path in paths), key=lambda image: image.time)
    warn_of_files(made, images)
    for image in images:
        image.check_clock()
        for path in (image.path, *led_of(image.path)):
            made.input(path, "scene")
        image.scene.baseline, image.scene.critical = orbit.perpendicular(images[0], image), orbit.critical(image)
    return [image.scene for image in images]


def warn_of_files(made, images):
    """Samples may come after the plan; orbits that are the same are those of another day."""
    without = [image.path for image in images if not any(map(os.path.isfile, slc_of(image.path)))]
    if without:
        made.warn(f"{len(without)} of {len(images)} PRM files name no SLC_file that is there: {shorten(without)}. Their rows fail until it is.")
    names = {}
    for image in images:
        states = names.setdefault(image.orbit.states(), {})
        states.setdefault(image.orbit.times.tobytes(), image)  # two frames of one pass may have one orbit
    for same in (list(group.values()) for group in names.values() if len(group) > 1):
        agreement.warn_of_one_orbit(same, shorten([image.scene.name for image in same]), made.warn)


def shorten(names, most=8):
    """Returns: the first names of many"""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def row_of_pair(pair, grid, arguments):
    """Returns: the arguments of a row of jobs.csv. pair: two PRM files; grid: that of the grid"""
    return ["--coregistered", "--orbits", *pair, "--grid", grid, *arguments]


def split_arguments(more):
    """What gst-imaging insar would refuse in each row is refused now. Returns: the arguments of the rows of images, and of pairs"""
    insar = load("insar")
    parser = Parser("insar", insar)
    parser.allow_abbrev = False  # --war would stay in the rows of pairs

    def parse(words):
        return parser.parse(["reference.PRM", "secondary.PRM", "-o", "pair", *words])

    given = parse(more)
    for name in "coregistered", "orbits", "grid", "pairs":
        if getattr(given, name):
            raise Failure(WRONG_USE, f"--{name} is not for the rows of a stack: insar-stack itself gives them the images and their orbits.")
    (pair,), properties = read_words(given)
    of_pairs = [word for word in more if word != "--warp" and word not in properties]
    row = parse(row_of_pair(("reference.PRM", "secondary.PRM"), "grid.PRM", of_pairs))
    insar.check_options(row)
    insar.flattening(row, pair)
    return ["--slc", "--flatten", "measured", "--taps", str(given.taps), *(["--warp"] if given.warp else []), *properties], of_pairs


def number_of(scenes, name):
    names = [scene.name for scene in scenes]
    if name not in names:
        raise Failure(WRONG_USE, f'There is no scene "{name}"; there are {", ".join(names)}.')
    return names.index(name)


def grid_before(options, scenes, made):
    """Returns: the name of the grid of the plan that is replaced: images on it need not be made again. None without one"""
    before = job.read_result(options.output) or {}
    name = before.get("grid") if before.get("command") == "insar-stack" else None
    if name is None or options.grid is not None:
        return None
    if name not in [scene.name for scene in scenes]:
        made.warn(f"The grid of the plan that is replaced was {name}, which is no scene any more. All images have to be made again, with --overwrite.")
        return None
    return name


def choose(options, scenes, before, made):
    """before: the name of a grid that is kept, or None. Returns: the number of the scene of the grid, and pairs of numbers of scenes"""
    if options.centre is not None and options.network != "star":
        raise Failure(WRONG_USE, f"--centre is for --network star, and the network is {options.network}. Leave one of them out.")
    centre = network.middle(scenes) if options.centre is None else number_of(scenes, options.centre)
    name = before if options.grid is None else options.grid
    grid = centre if name is None else number_of(scenes, name)
    if options.network == "sequential":
        pairs = network.sequential(len(scenes), options.connections)
    elif options.network == "star":
        pairs = network.star(scenes, centre)
    else:
        pairs = network.delaunay([(scene.day * network.METRES_A_DAY, scene.baseline) for scene in scenes])
    chosen = network.limited(pairs, scenes, options.max_days, options.max_baseline)
    if not chosen:
        raise Failure(WRONG_USE, f"None of {len(pairs)} pairs is within --max-days and --max-baseline.")
    named = {(scenes[i].name, scenes[k].name): (i, k) for i, k in chosen}
    return grid, [named[pair] for pair in network.without(named, options.leave_out, [scene.name for scene in scenes], made)]


def warn_of_far(made, scenes, pairs):
    """Names the pairs whose fringes on flat ground are too dense for the range sampling."""
    far = [(scenes[i], scenes[k]) for i, k in pairs if abs(scenes[k].baseline - scenes[i].baseline) > min(scenes[i].critical, scenes[k].critical)]
    if far:
        one, other = max(far, key=lambda pair: abs(pair[1].baseline - pair[0].baseline))
        critical = min(one.critical, other.critical)
        made.warn(f"{len(far)} of {len(pairs)} pairs have a perpendicular baseline above the critical one of {critical:.0f} m, beyond which flat "
                  f"ground is noise: the longest, {one.name} and {other.name}, has {abs(other.baseline - one.baseline):.0f} m. --max-baseline "
                  "leaves such pairs out.")


def write_jobs(made, results, scenes, grid, pairs, arguments):
    """images.csv and jobs.csv. arguments: as of split_arguments()"""
    folder = f"{results.removesuffix('-pairs')}-images"

    def image(scene):
        return os.path.join(folder, scene.name)

    def slc(scene):
        return scene.path if scene is scenes[grid] else os.path.join(image(scene), "secondary.PRM")

    of_images, of_pairs = arguments
    used = {number for pair in pairs for number in pair} - {grid}
    heading = ["command", "input", "output", "arguments"]
    rows.write(made.path("images.csv"), heading, (
        ["coregister", shlex.join([scenes[grid].path, scenes[i].path]), image(scenes[i]), shlex.join(of_images)] for i in sorted(used)))
    rows.write(made.path("jobs.csv"), heading, (
        ["insar", shlex.join(map(slc, pair)), os.path.join(results, f"{pair[0].name}-{pair[1].name}"),
         shlex.join(row_of_pair([scene.path for scene in pair], scenes[grid].path, of_pairs))]
        for pair in ((scenes[i], scenes[k]) for i, k in pairs)))


def draw_network(made, scenes, pairs):
    plot = plots.network(("time since the first scene", "d"), ("perpendicular baseline", "m"),
                         {scene.name: (scene.day - scenes[0].day, scene.baseline) for scene in scenes},
                         [(scenes[i].name, scenes[k].name) for i, k in pairs])
    with open(made.path("network.svg"), "w", encoding="utf-8") as file:
        file.write(plots.alone(plot))
    made.report.plot("Network", plot)
    groups = network.parts(len(scenes), pairs)
    made.report.figure("parts of the network", len(groups), at_most=1)
    if len(groups) > 1:
        made.warn(f"The pairs do not connect all scenes: there are {len(groups)} parts, and a time series has no common zero. Raise"
                  " --max-days or --max-baseline, or leave out fewer pairs.")
    return len(groups)


def plan(options, made):
    folder, more = options.words[0], options.words[1:]
    arguments = split_arguments(more)
    scenes = read_scenes(folder, made)
    results = os.path.normpath(options.results or f"{os.path.normpath(options.output)}-pairs")
    made.setting("arguments", more, [])
    made.setting("folder", folder)
    made.setting("results", results)
    if made.is_complete():
        return made.result
    before = grid_before(options, scenes, made)
    grid, pairs = choose(options, scenes, before, made)
    kept = " (that of the plan before; --grid NAME chooses another one)" if before else ""
    made.report.fact("grid", scenes[grid].name + kept)
    if kept:
        made.lines.append(f"grid {scenes[grid].name}{kept}")
    warn_of_far(made, scenes, pairs)
    rows.write(made.path("pairs.csv"), ["reference", "secondary", "days", "baseline_m"], (
        [one.name, other.name, f"{other.day - one.day:.3f}", f"{other.baseline - one.baseline:.2f}"]
        for one, other in ((scenes[i], scenes[k]) for i, k in pairs)))
    rows.write(made.path("scenes.csv"), ["name", "date", "days", "baseline_m"], (
        [scene.name, scene.date, f"{scene.day - scenes[0].day:.3f}", f"{scene.baseline:.2f}"] for scene in scenes))
    write_jobs(made, results, scenes, grid, pairs, arguments)
    parts = draw_network(made, scenes, pairs)
    return made.finish(scenes=len(scenes), pairs=len(pairs), parts=parts, grid=scenes[grid].name)


def make_table(options, made):
    """A line for each pair: days, baseline, and all figures that its result has."""
    found = stack.Stack(options.words[0], made, options.leave_out)
    if made.is_complete():
        return made.result
    names = list(dict.fromkeys(figure["name"] for pair in found.pairs if pair.result for figure in pair.result["figures"]))
    lines, beyond = [], {}
    for pair in found.pairs:
        figures = {figure["name"]: figure for figure in pair.result["figures"]} if pair.result else {}
        missed = [name for name, figure in figures.items() if figure["met"] is False]
        for name in missed:
            beyond.setdefault(name, []).append(f"{pair.reference}-{pair.secondary}")
        lines.append([*pair.cells.values(), pair.state,
                      *(figures.get(name, {}).get("value", "") for name in names), "; ".join(missed)])
    heading = [*found.pairs[0].cells, "state", *names, "beyond its limit"]
    rows.write(made.path("table.csv"), heading, lines)
    made.report.table("Pairs", heading, lines)
    missing = sum(pair.result is None for pair in found.pairs)
    if missing:
        made.warn(found.without_result())
    made.report.figure("pairs without a result", missing, at_most=0)
    for name, pairs in beyond.items():
        made.report.figure(f"pairs beyond the limit of {name}", len(pairs), at_most=0, about=shorten(pairs))
    return made.finish(pairs=len(found.pairs), missing=missing)


def make_series(options, made):
    found = stack.Stack(options.words[0], made, options.leave_out)
    if made.is_complete():
        return made.result
    return made.finish(**series.write(options.series, found, made))


def run(options):
    after = [name for name in ("table", "series") if getattr(options, name)]
    if after and len(options.words) > 1 or len(after) > 1:
        raise Failure(WRONG_USE, f"--{after[-1]} takes one folder, that of the stack, and no other action.")
    work = {(): plan, ("table",): make_table, ("series",): make_series}[tuple(after)]
    return job.run_all(options, "insar-stack", [options.words[0]], lambda _path, made: work(options, made), [options.output])
