# SPDX-License-Identifier: LGPL-2.1-or-later
"""Interaction matrices [2 cells, commands]: what is wrong with one, and what it may be meant as."""
import json
import os

from ..command import UNREADABLE, WRONG_USE, Failure
from . import matrices, telemetry

FIELDS = ("x", "y", "dx", "dy", "flux", "flux_raw", "max", "var_x", "var_y", "flags")  # of centroids
ABOVE = 2  # times the noise that a command is seen at least
SHOWN = 10  # commands that are named
MOST_MISSING = 0.1  # of the elements of cells that were measured for a command, and of live commands


def warn_of_shape(path, m, axis, warn, sensor_is_known=True):
    """Where the shape alone, or the names of the axes, tell how a file is meant. m: a matrices.Matrix"""
    if len(m.shape) == 2 and m.is_transposed:
        along, found = ("rows", "[commands, slopes]") if axis == 0 else ("columns", "[slopes, commands]")
        warn(f"{path} names the axis along its {along} \"{m.name}\": it is {found}, and was transposed.")
    if len(m.shape) < 3 or m.name or m.image:
        return
    if axis == 0 and not m.is_transposed:
        warn(f"{path} has the shape {m.shape}: it is taken as [cells, 2, commands], dx and dy of {m.shape[0]} cells for {m.shape[2]} commands.")
        return
    if axis == 0 and m.shape[0] == 2 != m.shape[1] and not sensor_is_known:
        raise Failure(UNREADABLE, f"{path} has the shape {m.shape}: it can be [2, cells, commands], or a cube of 2 commands. Save it with two axes,"
                                  " [2 cells, commands].")
    slopes = "dx and dy of each cell in turn" if m.is_guess else "[modes, y, x], as cacao writes one"
    warn(f"{path} has the shape {m.shape}: it is taken as a cube of {m.shape[0]} {'commands' if axis == 0 else 'modes'} with"
         f" {m.values.shape[axis]} slopes each, {slopes}.")


def find_order(path, m, order):
    """order: that of --slope-order. Returns: the order that counts"""
    if order in (None, "auto"):
        return m.order or "x-then-y"
    if m.order not in (None, order) and not m.is_guess:
        raise Failure(WRONG_USE, f"{path} says that its slopes are {m.order}, and --slope-order says the other order. Leave --slope-order out, or"
                                 " correct the file.")
    return order


def check_kind(np, path, m):
    if m.type == "bool":
        raise Failure(UNREADABLE, f"{path} has true and false; an interaction matrix has numbers. It may be a mask.")
    values = (m.values.T if m.is_transposed else m.values).reshape(m.shape)
    if len(m.shape) == 3 and m.shape[2] == len(FIELDS) and np.isin(values[..., -1], np.arange(256)).all():
        raise Failure(UNREADABLE, f"{path} has the shape {m.shape} and flags at the end of each row, as slopes.npy of `gst-imaging centroids`:"
                                  f" [frames, cells, fields] with {', '.join(FIELDS)}. An interaction matrix has the slopes of a poke of each command,"
                                  " [2 cells, commands]: the action calibrate of shreconstruct measures one.")


def check_shape(path, values):
    needs = f"{path} has the shape {list(values.shape)}; an interaction matrix has [2 cells, commands]"
    if values.ndim != 2:
        raise Failure(UNREADABLE, f"{needs}.")
    if not values.size:
        raise Failure(UNREADABLE, f"{needs}. It is empty: calibrate again, or name another file.")
    if values.shape[0] % 2:
        turned = ", or it is transposed: then transpose it" if values.shape[1] % 2 == 0 else ""
        raise Failure(UNREADABLE, f"{needs}. The number of rows is odd: a row may be missing{turned}.")
    if not values.any():
        raise Failure(UNREADABLE, f"{path}: no command moves a spot: all numbers are 0.")


def warn_of(np, path, values, is_named, warn):
    n_slopes, n_commands = values.shape
    if n_commands > n_slopes and not is_named:
        warn(f"{path} has the shape {[n_slopes, n_commands]}: more commands ({n_commands}) than slopes ({n_slopes}). It may be transposed; an"
             f" interaction matrix has [2 cells, commands], which would be {[n_commands, n_slopes]}.")
    unseen = np.flatnonzero(~values.any(0))
    if unseen.size:
        warn(f"No slope sees command{'s' * (unseen.size > 1)} {listed(unseen)} (counted from 0): a column of 0 in {path}. Check whether it moved"
             " while the matrix was measured.")


def noise_beside(path):
    """Returns: where the action calibrate of shreconstruct writes the standard errors of the matrix: d-noise.npy of d.npy"""
    root, extension = os.path.splitext(path)
    return f"{root}-noise{extension}"


def listed(numbers):
    return ", ".join(map(str, numbers[:SHOWN])) + (f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else "")


def warn_of_judgement(path, warn):
    """What the calibration that measured the matrix found wrong with it is in the file beside it."""
    try:
        with open(path + ".json", encoding="utf-8") as file:
            judgement = json.load(file)["calibration"]["judgement"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    if judgement != "good":
        warn(f"The calibration of {path} found: {judgement}")


def warn_of_missing(np, path, noise, warn):
    """Cells without light and dead actuators have no measured element."""
    missing = ~np.isfinite(noise)
    inner = missing[~missing.all(1)][:, ~missing.all(0)]
    if missing.all():
        warn(f"All standard errors in {path} are infinite: no element was measured. Calibrate again.")
    elif inner.mean() > MOST_MISSING:
        warn(f"{100 * inner.mean():.0f} % of the elements have an infinite standard error in {path}, besides cells and commands without any measured"
             " element: they were not measured. Calibrate again with more light, more calibration-repeats, or calibration-method=push-pull if spots"
             " flicker.")


def warn_of_noise(np, path, values, noise, warn):
    """values, noise: [slopes, commands]; the noise is infinite where nothing was measured. A dead actuator has noise alone."""
    warn_of_missing(np, path, noise, warn)
    measured = np.isfinite(noise) & (noise > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(((values / noise) ** 2).sum(0, where=measured) / measured.sum(0))
    weak = np.flatnonzero(ratio < ABOVE)
    if weak.size:
        one = weak.size == 1
        warn(f"The signal of command{'s'[one:]} {listed(weak)} (counted from 0) is not above the noise in {path}: {ratio[weak[0]]:.2g} times, and"
             f" {np.nanmedian(ratio):.2g} times in the median. Check whether {'it moves' if one else 'they move'}. Name dead actuators in dead-actuators of"
             " shreconstruct, or poke further.")


def read(np, path, noise, order, made):
    """noise: the path of the standard errors and their array, or None. order: that of --slope-order, or None. Returns: the matrix as [2 cells, commands] of
    float64, x of all cells and then y; and its lenslets, or None"""
    m = matrices.load(np, path, 0)
    check_kind(np, path, m)
    warn_of_shape(path, m, 0, made.warn, sensor_is_known=False)
    if noise and list(noise[1].shape) != m.shape:
        raise Failure(UNREADABLE, f"{noise[0]} has the shape {list(noise[1].shape)}; the noise of {path} has {m.shape}. Move it away, or name another"
                                  " file with --matrix-noise.")
    check_shape(path, m.values)
    order = find_order(path, m, order)
    made.setting("slope-order", order, "x-then-y")  # of the file beside the matrix, which is no input
    made.setting("transposed", m.is_transposed, False)
    warn_of(np, path, m.values, m.name or (len(m.shape) == 3 and not m.is_transposed), made.warn)
    warn_of_judgement(path, made.warn)
    if noise and len(m.shape) == 2:
        warn_of_noise(np, noise[0], m.values, noise[1].T if m.is_transposed else noise[1], made.warn)
    return telemetry.in_order(np, m.values, 0, order == "interleaved").reshape(m.values.shape), m.lenslets
