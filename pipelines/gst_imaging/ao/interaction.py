# SPDX-License-Identifier: LGPL-2.1-or-later
"""Interaction matrices [2 cells, commands] and control matrices: which axis has the slopes, and in which order. Cubes of cacao."""
import json
import os

from .. import library
from ..command import UNREADABLE, WRONG_USE, Failure
from . import images, telemetry

SCHEMA = "gst-imaging-sidecar-v1"
ORDERS = ("interleaved", "x-then-y")
KINDS = ("interaction", "matrix")  # of images, by the axis of slopes
FIELDS = ("x", "y", "dx", "dy", "flux", "flux_raw", "max", "var_x", "var_y", "flags")  # of centroids
ABOVE = 2  # times the noise that a command is seen at least
SHOWN = 10  # commands that are named
MOST_MISSING = 0.1  # of the elements of cells that were measured for a command, and of live commands


def names_of(path, part, n_dims):
    """Returns: the names of the axes, that along a row first; "" for one without"""
    arrays = library.Arrays(part)
    arrays.refuse_fault(path)
    told = arrays.quantities_of(path)[0]
    return [told.get(f"axis-{axis}-name", "").lower() for axis in range(n_dims)]


def lenslets_of_mask(np, path, n_cells):
    """Returns: those of the mask in telemetry, which has the number of each cell at its place; None without"""
    try:
        mask = images.read(path, "mask")
    except Failure:
        return None
    is_used = ~(mask < 0)  # NaN is no number of a cell
    places, numbers = np.argwhere(is_used), mask[is_used]
    is_whole = mask.ndim == 2 and np.array_equal(np.sort(numbers), np.arange(n_cells))
    return places[np.argsort(numbers)].tolist() if is_whole else None


def lenslets_of(np, path, n_cells):
    """Returns: [row, column] of the lenslet of each cell, as the .json beside the file or a mask in it names them; None without"""
    part = images.part_of(path, KINDS[0])
    library.Arrays(part).refuse_fault(path)
    try:
        with open(path + ".json", encoding="utf-8") as file:
            told = json.load(file)
    except (FileNotFoundError, ValueError):
        return lenslets_of_mask(np, path, n_cells) if part >= 0 else None
    found = told.get("row-column") if isinstance(told, dict) and told.get("schema") == SCHEMA else None
    if found and len(found) != n_cells:
        raise Failure(UNREADABLE, f"{path} has {n_cells} cells, and {path}.json names {len(found)} lenslets in \"row-column\". Write it again with its"
                                  " file, or remove it.")
    return found


def order_of(name):
    """Returns: the order of slopes that the name of an axis tells, as shreconstruct finds it; None for none"""
    return next((order for order in ORDERS if order in name), None)


def is_of_pairs(shape):
    return len(shape) == 3 and shape[2] == 2 != shape[1]


def is_of_cells(shape):
    return len(shape) == 3 and shape[1] == 2


def has_slopes(name):
    return "slope" in name or order_of(name) is not None


def turn(path, values, axis, warn, sensor_is_known=True):
    """As shreconstruct finds it (gstshreconstructmatrix.c). axis: of the slopes, 0 of an interaction matrix and 1 of a control matrix. A cube, as
    cacao has, is [modes, y, x], but [cells, 2, commands] is one of pairs, as the AOT convention has it. Returns: the matrix with its slopes along
    the axis; the name of that axis; the order of its slopes as the file tells it, None for none; and whether the matrix was transposed"""
    if values.ndim not in (2, 3):
        return values, "", None, False
    part, shape = images.part_of(path, KINDS[axis]), list(values.shape)
    *row, column = names_of(path, part, values.ndim)
    row = " ".join(row)
    if axis == 0 and is_of_cells(shape) and (part >= 0 or not (has_slopes(row) or has_slopes(column))):
        if part < 0:
            warn(f"{path} has the shape {shape}: it is taken as [cells, 2, commands], dx and dy of {shape[0]} cells for {shape[2]} commands.")
        return values.reshape(-1, shape[2]), "slopes interleaved", "interleaved", False
    is_named = has_slopes(row) != has_slopes(column)
    along_row = has_slopes(row) if is_named else len(shape) == 3 or axis == 1
    if len(shape) == 3 and not is_named and axis == 0 and shape[0] == 2 != shape[1] and not sensor_is_known:
        raise Failure(UNREADABLE, f"{path} has the shape {shape}: it can be [2, cells, commands], or a cube of 2 commands. Save it with two axes,"
                                  " [2 cells, commands].")
    values = values.reshape(len(values), -1)
    if len(shape) == 3 and not is_named:
        slopes = "dx and dy of each cell in turn" if is_of_pairs(shape) else "[modes, y, x], as cacao writes one"
        warn(f"{path} has the shape {shape}: it is taken as a cube of {len(values)} {'commands' if axis == 0 else 'modes'} with"
             f" {values.shape[1]} slopes each, {slopes}.")
    name = row if along_row else column
    order = order_of(name) or ("interleaved" if along_row and is_of_pairs(shape) else None)
    if along_row == (axis == 1):
        return values, name, order, False
    if len(shape) == 2:
        warn(f"{path} names the axis along its {'rows' if along_row else 'columns'} \"{name}\": it is"
             f" {'[commands, slopes]' if along_row else '[slopes, commands]'}, and was transposed.")
    return values.T, name, order, True


def check_order(path, name, found, order):
    """found: that of the file, by a name or its shape. order: that of --slope-order. Returns: the order that counts"""
    told = order_of(name)
    if order in (None, "auto"):
        return found or "x-then-y"
    if told and told != order:
        raise Failure(WRONG_USE, f"{path} says that its slopes are {told}, and --slope-order says the other order. Leave --slope-order out, or"
                                 " correct the file.")
    return order


def check_kind(np, path, values):
    if values.dtype == bool:
        raise Failure(UNREADABLE, f"{path} has true and false; an interaction matrix has numbers. It may be a mask.")
    if values.ndim == 3 and values.shape[2] == len(FIELDS) and np.isin(values[..., -1], np.arange(256)).all():
        raise Failure(UNREADABLE, f"{path} has the shape {list(values.shape)} and flags at the end of each row, as slopes.npy of `gst-imaging centroids`:"
                                  f" [frames, cells, fields] with {', '.join(FIELDS)}. An interaction matrix has the slopes of a poke of each command,"
                                  " [2 cells, commands]: the action calibrate of shreconstruct measures one.")


def check_shape(np, path, values):
    if np.iscomplexobj(values):
        raise Failure(UNREADABLE, f"{path} has complex numbers; those of an interaction matrix are real.")
    needs = f"{path} has the shape {list(values.shape)}; an interaction matrix has [2 cells, commands]"
    if values.ndim != 2:
        raise Failure(UNREADABLE, f"{needs}.")
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


def arrange(np, path, values, noise, order, made):
    """noise: the path of the standard errors and their array, or None. order: that of --slope-order, or None. Returns: the matrix as [2 cells, commands] of float64, x of all cells and then y"""
    check_kind(np, path, values)
    shape = values.shape
    values, name, found, is_transposed = turn(path, values, 0, made.warn, sensor_is_known=False)
    if noise and noise[1].shape != shape:
        raise Failure(UNREADABLE, f"{noise[0]} has the shape {list(noise[1].shape)}; the noise of {path} has {list(shape)}. Move it away, or name another"
                                  " file with --matrix-noise.")
    check_shape(np, path, values)
    order = check_order(path, name, found, order)
    made.setting("slope-order", order, "x-then-y")  # of the file beside the matrix, which is no input
    made.setting("transposed", is_transposed, False)
    warn_of(np, path, values, has_slopes(name), made.warn)
    warn_of_judgement(path, made.warn)
    if noise and len(shape) == 2:
        warn_of_noise(np, noise[0], values, noise[1].T if is_transposed else noise[1], made.warn)
    return telemetry.in_order(np, values, 0, order == "interleaved").reshape(values.shape).astype(np.float64)
