# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging ao gains: files in, controller.npy, a table and a report out."""
import csv

from .. import job, library
from ..command import WRONG_USE, Failure
from ..report import plots
from . import gains, interaction, loopdata, matrices, scales, telemetry

OPTIONS = ("commands", "matrix", "mode-commands", "reference", "gain", "leak", "controller", "margin")
FILES = {"commands": "COMMANDS", "matrix": None, "mode_commands": "MODES_TO_COMMANDS", "reference": "REF_COMMANDS"}  # names in telemetry
COLUMNS = ("mode", "gain before", "gain after", "largest gain", "noise", "variance before", "variance after", "residual", "R D")
SHOWN = 20  # modes of the table that is printed
DIFFERS = 0.1  # of the replayed residual from the recorded one


def add_arguments(parser):
    group = parser.add_argument_group("gains")
    group.add_argument("--commands", metavar="FILE", help="with slopes as an array: commands [frames, commands], of the frame with the same row")
    group.add_argument("--matrix", metavar="FILE", help="with slopes as an array: the control matrix [commands or modes, 2 cells]")
    group.add_argument("--mode-commands", metavar="FILE", help="with slopes as an array: the commands of each mode [commands, modes]")
    group.add_argument("--reference", metavar="FILE", help="with slopes as an array: commands of the flat mirror [commands]")
    group.add_argument("--gain", type=float, metavar="G", help="gain during the recording (default: that of the file)")
    group.add_argument("--leak", type=float, metavar="L", help="leak during the recording (default 0)")
    group.add_argument("--controller", metavar="FILE", help="controller during the recording, in place of --gain and --leak")
    group.add_argument("--margin", type=float, metavar="M",
                       help="a gain is at most the one with which its mode oscillates, divided by M (default 2)")


def check(options, is_file):
    given = [name for name in FILES if getattr(options, name)]
    if is_file and given:
        raise Failure(WRONG_USE, f"--{given[0].replace('_', '-')} is for slopes as an array; {options.input} has everything.")
    if not is_file and not (options.commands and options.matrix):
        raise Failure(WRONG_USE, "Slopes as an array need --commands and --matrix.")
    if options.controller and (options.gain is not None or options.leak is not None):
        raise Failure(WRONG_USE, "--controller takes the place of --gain and --leak: give one of them.")
    if options.gain is None and (options.leak is not None or not (is_file or options.controller)):
        raise Failure(WRONG_USE, "The controller of the recording is needed: give --gain and --leak, or --controller.")
    if options.gain is not None and not 0 < options.gain <= 10:
        raise Failure(WRONG_USE, f"--gain is {options.gain:g}; it must be above 0, and 10 at most.")
    if options.leak is not None and not 0 <= options.leak < 1:
        raise Failure(WRONG_USE, f"--leak is {options.leak:g}; it must be from 0 to below 1.")
    if options.margin is not None and not 1 < options.margin < float("inf"):
        raise Failure(WRONG_USE, f"--margin is {options.margin:g}; it must be above 1.")


def controller_of(np, options, read, n_modes):
    """Returns: that of the options, None without"""
    if options.controller:
        return loopdata.controller(np, read(np, options.controller), n_modes, options.controller)
    if options.gain is None:
        return None
    return loopdata.controller(np, np.array([[1 - (options.leak or 0)], [options.gain]]), n_modes, "--gain")


def arrays(np, options, read, warn):
    slopes = library.Arrays().read(options.input)  # NaN is a cell without a centroid
    values = {name: read(np, getattr(options, name), image) if getattr(options, name) else None for name, image in FILES.items() if image}
    m = matrices.load(np, options.matrix, 1)
    interaction.warn_of_shape(options.matrix, m, 1, warn)
    control = m.values
    if control.ndim == 2 and control.shape[1] % 2 == 0 and m.order == "interleaved":
        control = telemetry.in_order(np, control, 1, True).reshape(control.shape)
    if not options.mode_commands and m.image == "MEASUREMENTS_TO_MODES":
        raise Failure(WRONG_USE, f"{options.matrix} has the image MEASUREMENTS_TO_MODES, whose rows are modes: give --mode-commands, such as the same file.")
    modes = telemetry.modes_of(values["mode_commands"]) if options.mode_commands else None
    u, q = loopdata.of_arrays(np, options.input, slopes, values["commands"], control, modes, values["reference"], warn)
    return loopdata.Loop(u, q, controller_of(np, options, read, q.shape[1]))


def is_telemetry(options):
    return options.input.lower().endswith((".fits", ".fit", ".fts")) and not options.commands


def load(np, options, read, warn):
    if not is_telemetry(options):
        return arrays(np, options, read, warn)
    return loopdata.of_telemetry(np, options.input, warn, lambda n_modes: controller_of(np, options, read, n_modes))


def ratio(np, after, before):
    """Of the rms of two residuals, NaN where noise is all there is"""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((after > 0) & (before > 0), np.sqrt(after / before), np.nan)


def warn_of_start(np, y, loop, delay, before, warn):
    with np.errstate(all="ignore"):  # the recorded loop may have been unstable
        replayed = gains.replay(np, y, loop.a, loop.b[:, None, :], delay)[:, 0].sum()
    if not abs(replayed / before - 1) < DIFFERS:
        warn(f"The controller, replayed, leaves {replayed / before:.2g} times the variance of the recording. The loop did not begin to settle in the"
             " first tenth, or the delay was another one.")


def table(np, loop, delay, margin, warn):
    """Returns: (factors on b, columns of the table)"""
    first = loop.b[:, 0]
    scale, doubt = scales.find(np, loop, delay, margin)
    loop = loopdata.Loop(loop.u, loop.q * scale, (loop.a, loop.b * scale[:, None]))  # as the sensor sees it
    y = gains.open_loop(np, loop.u, loop.q, delay)
    before = (gains.settled(loop.u[-len(y):]) ** 2).mean(0)
    if doubt:
        warn(doubt)
    if doubt in (None, scales.SHORT) or (scale != 1).any():
        warn_of_start(np, y, loop, delay, before.sum(), warn)
    factors, most, after = gains.optimize(np, y, loop.a, loop.b, delay, margin)
    if doubt == scales.UNMEASURED:
        factors, after = np.ones(len(first)), before
    noise = gains.noise_of(np, y)
    return factors, dict(zip(COLUMNS, (np.arange(len(first)), first, first * factors, first * most, noise, before, after,
                                       ratio(np, after - noise, before - noise),
                                       np.full(len(first), np.nan) if doubt in (scales.UNMEASURED, scales.SHORT) else scale)))


def write(np, made, loop, factors, rows):
    terms = np.stack([loop.a, loop.b * factors[:, None]], 1).astype(np.float32)
    library.Arrays().save_values(np, made.path("controller.npy"), np.ascontiguousarray(terms))
    with open(made.path("gains.csv"), "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([row[0], *("" if value is None else f"{value:.6g}" for value in row[1:])] for row in rows)


def show(made, columns, rows, totals):
    report, modes = made.report, columns["mode"]
    report.figure("frames", totals["frames"])
    report.figure("modes", len(modes))
    report.figure("variance", totals["variance"], "of that of the recording", about="noise of the sensor included")
    report.figure("residual", totals["residual"], "of the rms of the recording", about="expected, without the noise of the sensor")
    report.figure("modes at the largest gain", totals["at_margin"], about="of --margin")
    report.plot("Gains", plots.scatter(("mode", ""), ("gain", ""), {"before": (modes, columns["gain before"]), "after": (modes, columns["gain after"])}),
                "A mode with much noise gets a low gain, one that moves fast a high one.")
    report.plot("Variance of the residual slopes", plots.scatter(("mode", ""), ("variance", ""), {
        name: (modes, columns[key]) for name, key in (("before", "variance before"), ("after", "variance after"), ("noise", "noise"))}, log_y=True),
        "What the sensor still asks for in each mode, with its noise; the noise is that of the upper quarter of the frequencies.")
    if len(modes) <= 400:
        report.table("Modes", COLUMNS, [["-" if value is None else value for value in row] for row in rows])


def printed(rows, totals):
    """Returns: the table as text; the first modes of many"""
    lines = ["  ".join(f"{name:>{max(len(name), 9)}}" for name in COLUMNS)]
    lines += ["  ".join(f"{value if i == 0 else '-' if value is None else f'{value:.4g}':>{max(len(name), 9)}}"
                        for i, (name, value) in enumerate(zip(COLUMNS, row))) for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        lines.append(f"... {len(rows) - SHOWN} more modes in gains.csv")
    told = "the residual is smaller than the noise" if totals["residual"] is None else f"residual without noise {totals['residual']:.3g} times"
    return "\n".join([*lines, f"of the recording: variance {totals['variance']:.3g} times, {told}"])


def choose(np, options, read, made):
    check(options, is_telemetry(options))
    made.input(options.input, "recording")
    for name in (*FILES, "controller"):
        if getattr(options, name):
            made.input(getattr(options, name), name.replace("_", " "))
    if made.is_complete():
        return made.result
    loop = load(np, options, read, made.warn)
    delay = options.delay if options.delay is not None else loop.delay
    if delay is None:
        raise Failure(WRONG_USE, f"{options.input} does not tell the delay: give --delay, as the action calibrate measures it.")
    gains.check(np, loop.u, loop.q, delay, options.input)
    factors, columns = table(np, loop, delay, options.margin or 2, made.warn)
    rows = [[int(row[0]), *(float(value) if np.isfinite(value) else None for value in row[1:])] for row in zip(*columns.values())]
    write(np, made, loop, factors, rows)
    noise, before, after = (columns[name].sum() for name in ("noise", "variance before", "variance after"))
    residual = float(ratio(np, after - noise, before - noise))
    totals = {"frames": len(loop.u), "delay": float(delay), "variance": float(after / before), "residual": residual if residual == residual else None,
              "at_margin": int((columns["gain after"] >= 0.999 * columns["largest gain"]).sum())}
    show(made, columns, rows, totals)
    made.lines.append(printed(rows, totals))
    return made.finish(**totals, columns=COLUMNS, modes=rows)


def run(np, options, read):
    return job.run_all(options, "ao", [options.input], lambda _path, made: choose(np, options, read, made))
