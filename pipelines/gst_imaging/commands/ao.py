# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calibrates an adaptive optics loop, makes its control matrix, from the interaction matrix or the lenslet grid; records a loop, chooses its gains.

calibrate: plays a pipeline with one shreconstruct until its action calibrate has measured the interaction matrix, and writes
interaction.npy, interaction-noise.npy and a report with the latency.

invert: the interaction matrix has the shape [2 cells, commands]: a column is what one command does to all slopes, dx of all cells and
then dy, divided by the command. A file can name another order, or --slope-order does. The action calibrate of shreconstruct writes one.
Weak modes, which would turn noise into large commands, are left out (--keep, --condition) or weakened (--alpha, --noise). basis: a basis
of wavefronts for a grid of lenslets, for those without a mirror. Both write control.npy for shreconstruct, and report.html with the
singular values. record: plays a pipeline with one shreconstruct, and writes frames, slopes, commands and matrices to telemetry.fits,
after the AOT convention (A&A 686, A7, 2024). It ends with the pipeline, after --frames, or with Ctrl-C, and writes what there is. gains:
chooses the gain of each mode that leaves the smallest residual (Gendron and Lena 1994), from such a recording or from arrays, and writes
controller.npy for shreconstruct.
"""
import contextlib
import hashlib
import json
import os
import re
import shlex

from .. import job, library
from ..ao import bases, calibratecommand, gainscommand, images, interaction, inverse, matrices, recorder, telemetry
from ..command import NO_RESULT, UNREADABLE, WRONG_USE, Failure, Stopped
from ..report import plots

EXAMPLES = [
    ("calibrate 'shmimsrc stream=wfs ! shcentroid columns=7 rows=7 pitch-x=7 pitch-y=7 fields=slopes ! shreconstruct"
     " commands=69 ! shmimsink stream=dm00disp03' -o calibration --method hadamard --poke 0.05", "the interaction matrix of a mirror"),
    ("invert interaction.npy -o control", "leaves out modes a hundred times weaker than the strongest"),
    ("invert interaction.fits -o control --keep 80 --modal", "80 modes, each with a gain of its own"),
    ("invert interaction.npy -o control --modal --modes kl.npy", "the modes of a file, [commands, modes], as the modes of the loop"),
    ("invert interaction.npy -o control --noise 0.02 --covariance prior.npy", "minimum variance: noise of a slope, covariance of the commands"),
    ("basis 40x40 -o zernike --kind zernike --modes 60", "Zernike modes of 40 columns and 40 rows of lenslets"),
    ("basis grid.npy -o kl --kind kl --modes 200", "Karhunen-Loeve modes of the lenslets of a mask, or of a map of shcentroid"),
    ("record 'shmimsrc stream=wfs ! shcentroid columns=7 rows=7 pitch-x=7 pitch-y=7 fields=slopes ! shreconstruct"
     " matrix-location=control.npy ! shmimsink stream=dm00disp03' -o night --frames 5000", "5000 frames of a loop with cacao"),
    ("gains night/telemetry.fits -o gains --delay 2", "the best gain of each mode, for controller-location"),
    ("gains slopes.npy --commands commands.npy --matrix control.npy --gain 0.3 --delay 2 -o gains", "the same from arrays"),
]

OPTIONS = {  # of each
    "calibrate": calibratecommand.OPTIONS,
    "invert": ("keep", "condition", "alpha", "noise", "covariance", "modes", "modal", "slope-order", "matrix-noise"),
    "basis": ("condition", "kind", "modes", "order"),
    "record": ("frames", "no-pixels", "mode", "name", "delay"),
    "gains": ("delay", *gainscommand.OPTIONS),
}
MOST_DELAY = 20  # frames


def add_arguments(parser):
    parser.add_argument("what", choices=list(OPTIONS),
                        help="calibrate: interaction matrix of a mirror; invert: control matrix from interaction matrix; basis: from the lenslet grid; record: telemetry of a loop;"
                             " gains: the best gain of each mode")
    parser.add_argument("input", metavar="FILE",
                        help="invert: interaction matrix [2 cells, commands], in any format of arrays; basis: COLUMNSxROWS, a mask of "
                             "lenslets [rows, columns], or a map of shcentroid with rows and columns; calibrate, record: a pipeline as gst-launch-1.0 "
                             "takes it, in quotes; gains: telemetry.fits, or slopes [frames, 2, cells]")
    job.add_arguments(parser)
    parser.add_argument("--keep", type=int, metavar="N", help="keep the N strongest modes")
    parser.add_argument("--condition", type=float, metavar="C",
                        help=f"leave out modes that are C times weaker than the strongest (default {inverse.CONDITION})")
    parser.add_argument("--alpha", type=float, metavar="A",
                        help="keep all modes, and weaken those below A times the strongest (Tikhonov)")
    parser.add_argument("--noise", type=float, metavar="S", help="minimum variance: rms noise of a slope; needs --covariance")
    parser.add_argument("--covariance", metavar="FILE", help="covariance of the commands that are wanted, [commands, commands]; with --modes of the modes")
    parser.add_argument("--kind", choices=["southwell", "fried", "zernike", "kl"], help="of a basis (default zernike)")
    parser.add_argument("--modes", metavar="FILE|N",
                        help="invert: modes of the mirror [commands, modes], of which commands are made; basis: number of Zernike or"
                             " Karhunen-Loeve modes, without piston (default 20)")
    parser.add_argument("--order", choices=["noll", "osa"], help="of Zernike modes (default noll)")
    parser.add_argument("--modal", action="store_true", help="write the product of slopes and modes, and the modes, as two files")
    parser.add_argument("--slope-order", choices=["auto", "x-then-y", "interleaved"],
                        help="of invert: rows of the interaction matrix (default auto: as the file names its axis, else x-then-y)")
    parser.add_argument("--matrix-noise", metavar="FILE",
                        help="of invert: standard errors of the interaction matrix, of the same shape, which show dead actuators (default: the file"
                             " that calibrate writes beside it, such as interaction-noise.npy)")
    parser.add_argument("--frames", type=int, metavar="N", help="of record: frames after which it ends (default: the end of the pipeline)")
    parser.add_argument("--no-pixels", action="store_true", help="of record: leave out the frames themselves")
    parser.add_argument("--mode", choices=["SCAO", "SLAO", "GLAO", "MOAO", "LTAO", "MCAO"], help="of record: kind of system (default SCAO)")
    parser.add_argument("--name", metavar="TEXT", help="of record: name of the system, for the header")
    parser.add_argument("--delay", type=float, metavar="D",
                        help="of record and gains: frames from one to the first that sees its commands, as calibrate measures it")
    calibratecommand.add_arguments(parser)
    gainscommand.add_arguments(parser)


def read_array(np, path, image=None):
    """image: its name, in a file with several"""
    values = images.read(path, image)
    if not np.isfinite(values).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        where = f"row {place[0]}, column {place[1]}" if len(place) == 2 else f"place {list(place)}"
        raise Failure(UNREADABLE, f"{path} has {values[place]} in {where}; all numbers must be finite.")
    return values


def read_modes(np, path, n_commands):
    values = read_array(np, path, "MODES_TO_COMMANDS")
    modes = telemetry.modes_of(values)
    if modes.ndim != 2 or len(modes) != n_commands or np.iscomplexobj(modes) or not modes.any():
        raise Failure(UNREADABLE, f"{path} has the shape {list(values.shape)}; modes of {n_commands} commands are real numbers that are not all 0,"
                                  f" [{n_commands}, modes].")
    return modes.astype(np.float64)


def read_covariance(np, path, n_commands, of):
    values = read_array(np, path)
    if values.shape != (n_commands, n_commands):
        raise Failure(UNREADABLE, f"{path} has the shape {list(values.shape)}; the covariance of {n_commands} {of} has"
                                  f" {[n_commands, n_commands]}.")
    rounding = 1e-4 * abs(values).max()
    if not np.allclose(values, values.T, rtol=1e-4, atol=rounding):
        raise Failure(UNREADABLE, f"{path} is no covariance: it is not symmetric.")
    try:
        np.linalg.cholesky(values + (rounding or 1) * np.eye(n_commands))
    except np.linalg.LinAlgError:
        raise Failure(UNREADABLE, f"{path} is no covariance: some sums of {of} have a variance below 0. Check its sign and scale.") from None
    return values.astype(np.float64)


def read_grid(np, text):
    """Returns: where lenslets are, [rows, columns]"""
    size = re.fullmatch(r"(\d+)x(\d+)", text)
    if size:
        columns, rows = map(int, size.groups())
        if not 2 <= min(rows, columns) <= max(rows, columns) <= 128:
            raise Failure(WRONG_USE, f"{text}: a grid has 2 to 128 columns and rows.")
        return np.ones((rows, columns), bool)
    values = read_array(np, text)
    if values.ndim == 2 and values.shape[1] == 12 and not np.isin(values, (0, 1)).all():  # a map of find-grid
        places = values[:, 8:10].astype(int)
        places -= places.min(0)
        values = np.zeros(places.max(0) + 1)
        values[tuple(places.T)] = 1
    if values.ndim != 2 or not np.isin(values, (0, 1)).all() or values.sum() < 2 or max(values.shape) > 128:
        raise Failure(UNREADABLE, f"{text} has the shape {list(values.shape)}; a grid is COLUMNSxROWS, a mask of 0 and 1 [rows, columns]"
                                  " up to 128 x 128, or a map of shcentroid with 12 columns.")
    return values.astype(bool)


def check(options, n_modes):
    given = [name for name in ("keep", "condition", "alpha", "noise") if getattr(options, name) is not None]
    if len(given) > 1:
        raise Failure(WRONG_USE, f"--{given[0]} and --{given[1]} are two ways to treat weak modes: give one of them.")
    if options.keep is not None and not 1 <= options.keep <= n_modes:
        raise Failure(WRONG_USE, f"--keep is {options.keep}; the matrix has {n_modes} modes.")
    if options.condition is not None and not options.condition >= 1:
        raise Failure(WRONG_USE, f"--condition is {options.condition:g}; it must be 1 or more.")
    if options.alpha is not None and not 0 < options.alpha < 1:
        raise Failure(WRONG_USE, f"--alpha is {options.alpha:g}; it must be between 0 and 1.")
    if options.noise is not None and not 0 < options.noise < float("inf"):
        raise Failure(WRONG_USE, f"--noise is {options.noise:g}; it must be above 0.")
    if (options.noise is None) != (options.covariance is None):
        raise Failure(WRONG_USE, "Minimum variance needs both --noise and --covariance.")
    if options.noise is not None and options.modal and not options.modes:
        raise Failure(WRONG_USE, "--modal with minimum variance needs --modes: it mixes the modes of the singular values.")


def check_what(options):
    of_others = [name for names in OPTIONS.values() for name in names if name not in OPTIONS[options.what]]
    given = [name for name in of_others if name in options.given]
    if given:
        raise Failure(WRONG_USE, f"--{given[0]} is no option of ao {options.what}.")
    if options.delay is not None and not 1 <= options.delay <= MOST_DELAY:
        raise Failure(WRONG_USE, f"--delay is {options.delay:g}; commands are seen 1 to {MOST_DELAY} frames later.")
    if options.frames is not None and options.frames < 1:
        raise Failure(WRONG_USE, f"--frames is {options.frames}; it must be 1 or more.")


def save(np, made, name, values, axes=None, more=()):
    """As float32. axes: names, that along a row first; they go into the file beside it, which shreconstruct reads. more: members there"""
    values = np.ascontiguousarray(values.astype(np.float32))
    library.Arrays().save_values(np, made.path(name), values)
    if axes:
        with open(made.path(name), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        told = {"schema": library.SIDECAR_SCHEMA, "file": name, "first": 0, "frames": 1, "type": "f32", "shape": list(values.shape),
                "complete": True, "quantity": {"name": os.path.splitext(name)[0], "unit": "", "scale": 1, "offset": 0, "axes": [
                    {"name": axis, "unit": "", "step": 1, "origin": 0} for axis in axes]}, "sha256": digest, **dict(more)}
        with open(made.path(name + ".json"), "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)


SLOPES = "slopes x-then-y"


def show(np, made, strengths, used, control):
    report = made.report
    report.figure("commands", len(control), about="of the mirror")
    report.figure("cells", control.shape[1] // 2)
    report.figure("modes used", int(used.sum()), about=f"of {len(strengths)}")
    report.figure("weakest mode used", float(strengths[used][-1] / strengths[0]), about="relative to the strongest")
    report.figure("noise of a command", float(np.sqrt((control ** 2).sum(1).mean())), "for each unit of noise in a slope",
                  about="rms over the commands; multiply it with the noise of your slopes and with the gain")
    numbers = np.arange(1, len(strengths) + 1)
    series = {"used": (numbers[used], strengths[used])}
    if not used.all():
        series["left out"] = (numbers[~used], strengths[~used])
    report.plot("Singular values", plots.scatter(("mode", ""), ("strength", ""), series, log_y=True),
                "How strongly each mode of the mirror moves the spots. Modes far below the others are not seen by the sensor.")


def read_noise(path, given):
    """given: that of --matrix-noise. Returns: the path and the standard errors of an interaction matrix, which may be infinite; None without"""
    beside = interaction.noise_beside(path)
    found = given or (beside if os.path.exists(beside) else None)
    return (found, library.Arrays().read(found)) if found else None


def invert(np, options, made):
    noise = read_noise(options.input, options.matrix_noise)
    matrix, lenslets = interaction.read(np, options.input, noise, options.slope_order, made)
    basis_modes = read_modes(np, options.modes, matrix.shape[1]) if options.modes else None
    seen = matrix if basis_modes is None else matrix @ basis_modes
    check(options, min(seen.shape))
    made.input(options.input, "interaction matrix")
    if noise:
        made.input(noise[0], "noise of the matrix")
    if options.modes:
        made.input(options.modes, "modes")
    if options.covariance:
        made.input(options.covariance, "covariance")
    if made.is_complete():
        return made.result
    slopes, strengths, modes = np.linalg.svd(seen, full_matrices=False)
    if not strengths[0] > 0:
        raise Failure(UNREADABLE, f"{options.modes}: no mode moves a spot. Use the modes of the mirror of this interaction matrix.")
    if options.noise is not None:
        used = strengths > 0
        covariance = read_covariance(np, options.covariance, seen.shape[1], "modes" if options.modes else "commands")
        control = inverse.minimum_variance(np, seen, covariance, options.noise)
    else:
        inverted = inverse.factors(np, options, strengths)
        used = inverted > 0
        control = (modes.T[:, used] * inverted[used]) @ slopes.T[used]
    told = {"modes": os.path.basename(options.modes)} if options.modes else {}
    if lenslets:
        told["row-column"] = lenslets
    if options.modal:
        rows, modes = (control, basis_modes) if options.modes else (inverted[used, None] * slopes.T[used], modes.T[:, used])
        save(np, made, "control.npy", rows, [SLOPES, "mode"], told)
        save(np, made, "modes.npy", modes)
    if options.modes:
        control = basis_modes @ control
    if not options.modal:
        save(np, made, "control.npy", control, [SLOPES, "command"], told)
    show(np, made, strengths, used, control)
    return made.finish(commands=matrix.shape[1], cells=matrix.shape[0] // 2, modes=int(used.sum()))


def make_basis(np, options, grid):
    """Returns: (control, values, slopes, variances), the latter three None where there are none"""
    kind = options.kind or "zernike"
    if kind == "southwell":
        left, right = bases.southwell(np, grid)
        return np.linalg.pinv(left, rcond=1e-10) @ right, None, None, None
    if kind == "fried":
        return np.linalg.pinv(bases.fried(np, grid), rcond=1e-10), None, None, None
    most = min(2 * int(grid.sum()), int(bases.corners(np, grid).sum()) - 2, 1000)
    n_modes = int(options.modes) if options.modes and options.modes.isdecimal() else 0
    n_made = n_modes if 1 <= n_modes <= most else most if options.modes else min(20, most)
    variances = None
    if kind == "kl":
        values, slopes, variances = bases.karhunen_loeve(np, grid, n_made)
    else:
        values, slopes = bases.zernikes(np, grid, n_made, options.order or "noll")
    n_told = bases.n_told(np, slopes)
    if options.modes and not 1 <= n_modes <= n_told:
        raise Failure(WRONG_USE, f"--modes is {options.modes}; this grid tells 1 to {n_told} modes. The slopes of the next one are nearly a sum of those"
                                 " of lower ones.")
    values, slopes, variances = values[:, :n_told], slopes[:, :n_told], variances if variances is None else variances[:n_told]
    return np.linalg.pinv(slopes, rcond=1 / (options.condition or 1e6)), values, slopes, variances


def basis(np, options, made):
    grid = read_grid(np, options.input)
    if os.path.exists(options.input):
        made.input(options.input, "grid")
    else:
        made.setting("grid", options.input)
    if made.is_complete():
        return made.result
    control, values, slopes, variances = make_basis(np, options, grid)
    save(np, made, "control.npy", control, [SLOPES, "point" if values is None else "coefficient"])
    if values is not None:
        save(np, made, "modes.npy", values)
        save(np, made, "interaction.npy", slopes, ["mode", SLOPES])
    if variances is not None:
        save(np, made, "variances.npy", variances[None])
    strengths = np.linalg.svd(control, compute_uv=False)
    strengths = np.sort(1 / strengths[strengths > 1e-10 * strengths[0]])[::-1]
    show(np, made, strengths, strengths > 0, control)
    return made.finish(commands=len(control), cells=int(grid.sum()))


def words_of(text):
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Failure(WRONG_USE, f"The pipeline cannot be read: {str(error).lower()}.") from error


def play_loop(options, made, recording):
    """Plays until the end, and keeps what was recorded before an error. Returns: the Failure or the signal that ended it, or None"""
    try:
        made.play(words_of(options.input), prepare=recording.prepare, take_message=recording.take_message)
    except recorder.Enough:
        pass
    except Failure as failure:
        if not recording.loop:  # or nothing in it
            raise
        return failure
    except Stopped as stopped:
        if not recording.loop:
            raise
        return stopped
    finally:
        if recording.loop:
            recording.loop.detach()
    return None


class Recording:
    """The recorder, which is there when the pipeline is."""

    def __init__(self, np, options, made):
        self.np, self.options, self.made, self.loop = np, options, made, None

    def prepare(self, pipeline):
        self.loop = recorder.Recorder(self.np, pipeline, self.made.folder, self.options.frames or 0, not self.options.no_pixels)
        try:
            self.files = telemetry.matrices(self.np, lambda path, image: read_array(self.np, path, image), self.loop.element,
                                            self.read_in_order)
        except (ValueError, IndexError):  # shreconstruct refuses such a shape, with a sentence
            self.files = {}

    def read_in_order(self, path, axis):
        """axis: of slopes, which become two: x or y, cell. The order is that which shreconstruct finds: by its property, else by the file."""
        m = matrices.load(self.np, path, axis)
        order = self.loop.element.get_property("slope-order").value_nick
        order = m.order if order == "auto" else order
        if axis == 1:
            self.loop.matrix_order = order
        return telemetry.in_order(self.np, m.values, axis, order == "interleaved")

    def take_message(self, structure):
        if structure.get_name() == recorder.DONE:
            raise recorder.Enough


def write_telemetry(np, options, made, recording):
    """Returns: the names of the files; without space for telemetry.fits those of the recording"""
    path = made.path("telemetry.fits")
    try:
        telemetry.write(np, path, recording.loop, recording.files, options.mode or "SCAO", options.name, options.input, options.delay)
    except OSError as error:
        recording.loop.fail(error)
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        return recording.loop.publish()
    recording.loop.remove()
    return ["telemetry.fits"]


def record(np, options, made):
    recording = Recording(np, options, made)
    made.setting("pipeline", options.input)
    made.is_live = True
    ended = play_loop(options, made, recording)
    loop = recording.loop
    loop.settle()
    if not len(loop):
        raise loop.failure or Failure(NO_RESULT, "Nothing was recorded: no frame went through shreconstruct.")
    figures = {"frames": len(loop), "missing": loop.missing, "cells": loop.columns["slopes"].shape[1],
               "commands": loop.columns["commands"].shape[0]}
    names = write_telemetry(np, options, made, recording)
    for name, value in figures.items():
        made.report.figure("frames missing" if name == "missing" else name, value, at_most=0 if name == "missing" else None)
    ended = loop.failure or ended
    lost = f"{ended} The {len(loop)} frames before are in {made.target}: {', '.join(names)}." if isinstance(ended, Failure) else ""
    if lost:
        made.report.warning(lost)
    result = made.finish(**figures)
    if lost:
        raise Failure(ended.code, lost, result)
    if ended:
        raise ended
    return result


def run(options):
    np = library.numpy()
    check_what(options)
    if options.what == "calibrate":
        return job.run_all(options, "ao", [options.output], lambda _path, made: calibratecommand.run(np, options, made, words_of))
    if options.what == "record":
        return job.run_all(options, "ao", [options.output], lambda _path, made: record(np, options, made))
    if options.what == "gains":
        return gainscommand.run(np, options, read_array)
    work = {"invert": invert, "basis": basis}[options.what]
    return job.run_all(options, "ao", [options.input], lambda _path, made: work(np, options, made))
