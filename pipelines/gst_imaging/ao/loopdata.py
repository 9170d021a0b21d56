# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a closed loop recorded, as u and q of each mode: of telemetry.fits (telemetry.py), or of arrays."""
import re

from ..command import UNREADABLE, WRONG_USE, Failure
from . import aotread

AT_ONCE = 1000  # frames
MOST_LOST = 0.1  # of the slopes of cells that have light at times


class Loop:
    """u: what the sensor asked for, q: what was sent, both [frames, modes]. a, b: the controller, [modes, terms]. delay: of the file, or None"""

    def __init__(self, u, q, controller, delay=None):
        self.u, self.q, (self.a, self.b), self.delay = u, q, controller, delay


def pieces(slopes):
    """Some frames after the other: a recording may be larger than memory."""
    for first in range(0, len(slopes), AT_ONCE):
        part = slopes[first:first + AT_ONCE]
        yield part.reshape(len(part), -1).astype(float)


def check_slopes(np, slopes, path, warn):
    """Cells that are dark in each frame are no fault."""
    n_missing = 0
    for first, piece in enumerate(pieces(slopes)):
        if np.isinf(piece).any():
            raise Failure(UNREADABLE, f"{path}: the slopes have an infinite number in frame {first * AT_ONCE + int(np.argwhere(np.isinf(piece))[0][0])}.")
        n_missing = n_missing + np.isnan(piece).sum(0)
    lit = n_missing < len(slopes)
    if not lit.any():
        raise Failure(UNREADABLE, f"{path}: all slopes are NaN.")
    share = n_missing[lit].mean() / len(slopes)
    if share > MOST_LOST:
        raise Failure(UNREADABLE, f"{path}: {100 * share:.0f} % of the slopes are NaN, beside those of cells that are always dark."
                                  f" At most {100 * MOST_LOST:.0f} % can be: record frames with light.")
    if share:
        warn(f"{100 * share:.2g} % of the slopes are NaN, and count as 0.")


def check_sizes(path, slopes, commands, control):
    for name, values in (("array of slopes", slopes), ("array of commands", commands), ("control matrix", control)):
        if not values.size:
            raise Failure(UNREADABLE, f"{path}: the {name} is empty, of shape {list(values.shape)}. Record the loop again, or name another file.")


def finite(np, values, what):
    if not np.isfinite(values).all():
        raise Failure(UNREADABLE, f"{what} have a number that is not finite in row {int(np.argwhere(~np.isfinite(values))[0][0])}.")
    return np.asarray(values, np.float64)


def controller(np, terms, n_modes, path):
    """terms: [2, terms] or [modes, 2, terms]. Returns: a, b"""
    if terms.ndim not in (2, 3) or terms.shape[-2] != 2 or not 1 <= terms.shape[-1] <= 8 or terms.shape[:-2] not in ((), (n_modes,)):
        raise Failure(UNREADABLE, f"{path} has the shape {list(terms.shape)}; a controller has [2, terms] or {[n_modes, 2, 'terms']}"
                                  " with 1 to 8 terms.".replace("'", ""))
    terms = np.broadcast_to(finite(np, terms, f"{path}: the terms"), (n_modes, *terms.shape[-2:]))
    return terms[:, 0], terms[:, 1]


def corrections(np, slopes, offsets, control, path, warn):
    """Returns: u = -R (s - offsets), of slopes [frames, ...]; those of cells without a centroid are 0, as in the controller"""
    n_slopes = int(np.prod(slopes.shape[1:]))
    if n_slopes != control.shape[1]:
        raise Failure(UNREADABLE, f"{path} has slopes of {n_slopes / 2:g} cells; the control matrix is for {control.shape[1] / 2:g}.")
    check_slopes(np, slopes, path, warn)
    return np.concatenate([np.nan_to_num(offsets - piece, nan=0) @ control.T for piece in pieces(slopes)])


class Telemetry:
    """The rows of a file that describe its first loop, and the images that they refer to."""

    def __init__(self, np, path):
        self.np, self.path, self.rows = np, path, {}
        try:
            self.units = aotread.read(np, path)
        except (ValueError, OverflowError) as error:
            raise Failure(UNREADABLE, f"{path} cannot be read as telemetry: {error}.") from error
        self.rows = {"LOOPS": self.row_of("LOOPS", self.cell("LOOPS_CONTROL", "UID")),
                     "WAVEFRONT_SENSORS": self.row_of("WAVEFRONT_SENSORS", self.cell("LOOPS_CONTROL", "INPUT_SENSOR_UID"))}
        self.rows["TIME"] = self.row_of("TIME", self.cell("LOOPS", "TIME_UID"))

    def column(self, table, column):
        found = self.units.get(f"AOT_{table}")
        return found.get(column, []) if isinstance(found, dict) else []

    def row_of(self, table, reference):
        """Returns: the number of the row that is referred to, 0 without one"""
        names, name = self.column(table, "UID"), re.sub(r"^ROWREF<(.*)>$", r"\1", str(reference))
        return names.index(name) if name in names else 0

    def cell(self, table, column):
        """Returns: the value in the row of the loop, None without one"""
        values, row = self.column(table, column), self.rows.get(table, 0)
        return values[row] if row < len(values) else None

    def image(self, table, column, dims, must=True):
        named = re.fullmatch(r"INTREF<(.*)>", str(self.cell(table, column) or ""))
        values = self.units.get(named[1]) if named else None
        if values is None or isinstance(values, dict):
            if must:
                raise Failure(UNREADABLE, f"{self.path} has no {column}: gains need slopes, modal coefficients and the control matrix.")
            return None
        if values.ndim != dims:
            raise Failure(UNREADABLE, f"{self.path}: {column} has the shape {list(values.shape)}, not {dims} axes.")
        return values

    def controller(self, n_modes):
        """By the convention den = 1, -a_1, ...; None where the file does not tell it"""
        np, parts = self.np, [self.image("LOOPS", f"TIME_FILTER_{part}", 2, False) for part in ("NUM", "DEN")]
        if any(part is None for part in parts):
            return None
        num, den = (np.asarray(part, np.float64) for part in parts)
        terms = np.zeros((max(len(num), len(den)), 2, max(num.shape[1], den.shape[1] - 1, 1)))
        terms[:, 0, :den.shape[1] - 1], terms[:, 1, :num.shape[1]] = -den[:, 1:], num
        return controller(np, terms[0] if len(terms) == 1 else terms, n_modes, f"{self.path}: TIME_FILTER")

    def warn_of_gaps(self, warn):
        numbers = self.cell("TIME", "FRAME_NUMBERS")
        gaps = int((self.np.diff(numbers) != 1).sum()) if numbers is not None and len(numbers) else 0
        if gaps:
            warn(f"Frames are missing in {gaps} places; there the delay is not that of --delay.")


def of_telemetry(np, path, warn, told=lambda n_modes: None):
    """told: the controller that the options name, or None: that of the file"""
    file = Telemetry(np, path)
    slopes = file.image("WAVEFRONT_SENSORS", "MEASUREMENTS", 3)
    q = file.image("LOOPS_CONTROL", "MODAL_COEFFICIENTS", 2)
    control = file.image("LOOPS_CONTROL", "MEASUREMENTS_TO_MODES", 3, False)
    control = file.image("LOOPS_CONTROL", "CONTROL_MATRIX", 3) if control is None else control
    if len(slopes) != len(q) or control.shape != (q.shape[1], *slopes.shape[1:]):
        raise Failure(UNREADABLE, f"{path}: slopes {list(slopes.shape)}, modal coefficients {list(q.shape)} and control matrix"
                                  f" {list(control.shape)} do not fit: [frames, 2, cells], [frames, modes] and [modes, 2, cells].")
    check_sizes(path, slopes, q, control)
    if file.cell("LOOPS", "STATUS") == "Open":
        raise Failure(UNREADABLE, f"{path} is of an open loop. Record a closed one: loop=closed, with a low gain.")
    known = told(q.shape[1]) or file.controller(q.shape[1])
    if not known:
        raise Failure(WRONG_USE, f"{path} does not tell its controller: give --gain and --leak, or --controller.")
    file.warn_of_gaps(warn)
    offsets = file.image("WAVEFRONT_SENSORS", "REF_MEASUREMENTS", 2, False)
    if offsets is not None and offsets.shape != slopes.shape[1:]:
        raise Failure(UNREADABLE, f"{path}: REF_MEASUREMENTS has the shape {list(offsets.shape)}, not {list(slopes.shape[1:])}.")
    offsets = 0 if offsets is None else finite(np, offsets, f"{path}: REF_MEASUREMENTS").reshape(-1)
    u = corrections(np, slopes, offsets, finite(np, control, f"{path}: the control matrix").reshape(len(control), -1), path, warn)
    delay = file.cell("LOOPS", "DELAY")
    return Loop(u, finite(np, q, f"{path}: the modal coefficients"), known, float(delay) if delay is not None and np.isfinite(delay) else None)


def of_arrays(np, path, slopes, commands, control, modes, reference, warn):
    """slopes: [frames, 2, cells] or [frames, 2 cells]; commands: [frames, commands], or [frames, 1, commands] as picturesink has them; control: [modes, 2 cells]; modes: [commands, modes] or
    None; reference: [commands] or None. Returns: u, q"""
    check_sizes(path, slopes, commands, control)
    if slopes.ndim not in (2, 3) or (slopes.ndim == 3 and slopes.shape[1] != 2) or np.prod(slopes.shape[1:]) % 2:
        raise Failure(UNREADABLE, f"{path} has the shape {list(slopes.shape)}; slopes have [frames, 2, cells] or [frames, 2 cells].")
    if commands.ndim == 3 and commands.shape[1] == 1:
        commands = commands[:, 0]
    if commands.ndim != 2 or len(commands) != len(slopes):
        raise Failure(UNREADABLE, f"The commands have the shape {list(commands.shape)}; they have [frames, commands] with the {len(slopes)}"
                                  f" frames of {path}.")
    if control.ndim != 2:
        raise Failure(UNREADABLE, f"The control matrix has the shape {list(control.shape)}; it has [modes, 2 cells].")
    n_commands = commands.shape[1]
    if reference is not None:
        if reference.size != n_commands:
            raise Failure(UNREADABLE, f"--reference has {reference.size} numbers; there are {n_commands} commands.")
        commands = commands - reference.reshape(-1)
    if modes is not None:
        if modes.shape != (n_commands, len(control)):
            raise Failure(UNREADABLE, f"--mode-commands has the shape {list(modes.shape)}, not {[n_commands, len(control)]}: [commands, modes].")
        commands = commands @ np.linalg.pinv(modes.astype(np.float64)).T
    elif n_commands != len(control):
        raise Failure(UNREADABLE, f"The control matrix has the shape {list(control.shape)}; it needs {[n_commands, int(np.prod(slopes.shape[1:]))]}:"
                                  f" [commands, 2 cells] of {path} and the commands. Name another file, or give --mode-commands.")
    return corrections(np, slopes, 0, control.astype(np.float64), path, warn), finite(np, commands, "The commands")
