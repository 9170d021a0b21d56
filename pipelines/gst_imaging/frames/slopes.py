# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is made of measured slopes: the table, the reference for other recordings, quality and plots."""
import os

from .. import library
from ..command import NO_RESULT, UNREADABLE, Failure
from ..report import plots

X, Y, DX, DY = range(4)
FLAGS = -1
N_FIELDS = 10
FLAG_NAMES = {1: "no flux", 2: "low flux", 4: "saturated", 8: "clipped by the frame", 16: "window at the edge", 32: "no match",
              64: "outside", 128: "not finite"}
EDGES = 61  # of the histogram
MANY = 100  # frames, below which 99 % of them is all but one
LEAST_PEAK = 7  # times the noise: 5 of the spot, and what noise adds to the brightest of its pixels


def frames_of(path):
    """Generates [cells, fields] of each frame of a file of slopes."""
    for shape, _start, values in library.Arrays().pages(path):
        yield from values.reshape(-1, *shape[-2:])


def reference(made, path, map_path):
    """Returns: an array file [cells, 2] of x and y. Of slopes, the mean over the valid frames of each cell; a cell that
    was never valid has the centre that its map says"""
    np = library.numpy()
    arrays = library.Arrays()
    shape = next((shape for shape, _start, _values in arrays.pages(path)), [])
    if len(shape) == 3 and shape[-1] != N_FIELDS:
        raise Failure(UNREADABLE, f"{path} is {list(shape)}; a reference is [cells, 2] of x and y, or slopes as this command writes"
                                  f" them, [frames, cells, {N_FIELDS}].")
    if len(shape) != 3:
        return path  # x and y; the element says what is wrong with others
    total, n, centres = 0, 0, None
    for cells in frames_of(path):
        valid = (cells[:, FLAGS].astype(int) & library.NO_CENTROID == 0)[:, None]
        total, n = total + np.where(valid, cells[:, :2], 0).astype(float), n + valid
        centres = cells[:, :2] - cells[:, 2:4] if centres is None else centres
    if map_path:
        table = np.concatenate([values for _shape, _start, values in arrays.pages(map_path)])
        table = table.reshape(len(centres), -1) if table.size % len(centres) == 0 else centres
        centres = table[:, 4:6] if table.shape[1] >= 6 else centres
    with np.errstate(invalid="ignore", divide="ignore"):
        places = np.where(n > 0, total / n, centres)
    if not np.isfinite(places).all():
        raise Failure(UNREADABLE, f"{path} has cells that are never valid, and no place for them: give its map by --map.")
    name = made.path("reference.npy")
    np.save(name, places)
    return name


class Sums:
    """Over all frames, one at a time: recordings may be larger than the memory."""

    def __init__(self, np):
        self.np, self.n, self.rms, self.valid_share = np, 0, [], []
        self.flags, self.sum, self.squares, self.n_valid = {}, 0, 0, 0
        self.first = self.largest = None

    def add(self, cells):
        np, flags = self.np, cells[:, FLAGS].astype(int)
        valid = flags & library.NO_CENTROID == 0
        slopes = np.where(valid[:, None], cells[:, DX:DY + 1], 0).astype(float)
        self.n += 1
        self.rms.append(np.sqrt((slopes ** 2).sum(0) / max(valid.sum(), 1)) if valid.any() else [np.nan] * 2)
        self.valid_share.append(valid.mean())
        self.sum, self.squares, self.n_valid = self.sum + slopes, self.squares + slopes ** 2, self.n_valid + valid
        for bit in FLAG_NAMES:
            self.flags[bit] = self.flags.get(bit, 0) + int(np.count_nonzero(flags & bit))
        self.last_valid = slopes[valid]

    def has_valid(self):
        return bool(self.np.any(self.n_valid))

    def noise(self):
        """Returns: the rms of each cell's slope about its own mean, the median of the cells that were valid twice"""
        np = self.np
        n = self.n_valid
        often = n > 1
        if not often.any():
            return None
        n = n[often][:, None]
        variance = np.maximum(self.squares[often] - self.sum[often] ** 2 / n, 0) / (n - 1)
        return float(np.median(np.sqrt(variance)))


def write_table(file, fields, row_column, number, cells):
    names = ",".join(fields)
    if number == 0:
        file.write(f"frame,cell,row,col,{names}\n")
    line = ",".join(["%.9g"] * (len(fields) - 1)) + ",%d\n"
    for cell, values in enumerate(cells.tolist()):
        row, column = row_column[cell] if row_column is not None else (0, cell)
        file.write(f"{number},{cell},{row},{column}," + line % tuple(values))


def read(made, measurement, options):
    """Writes the table. Returns: Sums"""
    np = library.numpy()
    sums = Sums(np)
    table = None if options.no_table else open(made.path("table.csv"), "w", encoding="utf-8")
    try:
        for number, cells in enumerate(frames_of(measurement.location)):
            sums.add(cells)
            if table:
                write_table(table, measurement.fields, measurement.row_column, number, cells)
    finally:
        if table:
            table.close()
    return sums


def is_pyramid(measurement):
    """Whether there are pupil images, and so no spots"""
    return "estimator=pupils" in measurement.settings


def figures(report, measurement, sums, unit):
    told, stats = measurement.told, measurement.stats
    grid, summary = told.get("grid"), told.get("summary", {})
    total = summary.get("cells") or 1
    if grid:
        report.figure("grid found, rms distance of its spots", grid["rms"], "px", at_most=0.1 * grid["pitch"],
                      about=f'{grid["lattice"]} lattice of {grid["cells"]} cells, pitch {grid["pitch"]:.3f} px, rotation'
                            f' {grid["rotation"]:.3f} degrees; the limit is a tenth of the pitch')
        report.figure("holes in the grid", grid["holes"], about="lattice points without a spot among lit ones:"
                      " an obscuration, or lenslets that are dark")
    report.figure("invalid measurements", 100 * summary.get("invalid", 0) / total, "%", at_most=5 if grid else None,
                  about="of all cells in all frames; no limit where the grid was given, which may have cells in the shade")
    report.figure("saturated measurements", 100 * summary.get("saturated", 0) / total, "%", at_most=0)
    if not is_pyramid(measurement):
        cut = 100 * summary.get("cut", 0) / total if sums.has_valid() else None
        report.figure("spots cut by the edge of their cell", cut, "%", at_most=1)
    if measurement.look and measurement.look.peak is not None and not is_pyramid(measurement):
        report.figure("peak of a spot above the noise", measurement.look.peak, "times", at_least=LEAST_PEAK,
                      about="median of the valid cells in the last frame. Below, shifts are measured too small: expose longer, or average frames")
    report.figure("missing frames", stats["frames-missing"] + stats["lost-frames"], at_most=0)
    noise = sums.noise()
    if noise is not None:
        report.figure("slope of a cell, rms about its mean", noise, unit, about="median of the cells; signal and noise together")
    if sums.n > 1:  # the first one also finds the grid and makes the kernel
        rest = f'; 99 % below {stats["time-p99"] / 1e3:.3g} ms' if sums.n >= MANY else ""
        report.figure("time for a frame", stats["time-p50"] / 1e3, "ms", about=f"median, on {measurement.backend}{rest}")


def show(report, measurement, sums, unit):
    np = library.numpy()
    if measurement.picture is not None:
        width = measurement.size[0] or measurement.picture.shape[1]
        step, length_unit = width / measurement.picture.shape[1], "px"
        if measurement.pixel_size > 0:
            step, length_unit = step * measurement.pixel_size, "um"
        axes = [{"name": name, "unit": length_unit, "step": step, "origin": 0} for name in ("x", "y")]
        report.picture("The last frame: centroids, and slopes as arrows", measurement.picture, {"axes": axes}, "picture.png",
                       "The arrows are longer than the slopes, by the factor arrow-scale of shoverlay (5 unless --draw sets it).")
    if sums.last_valid.size:
        counts, edges = np.histogram(sums.last_valid, EDGES - 1)
        report.plot("Slopes of the last frame", plots.histogram(("slope, dx and dy", unit), edges, counts, ("slopes", "")))
    if sums.n > 1:
        frames, rms = range(sums.n), np.array(sums.rms)
        report.plot("Slopes over the recording", plots.lines(("frame", ""), ("rms slope", unit),
                                                             {"dx": (frames, rms[:, 0]), "dy": (frames, rms[:, 1])}))
        report.plot("Valid cells over the recording",
                    plots.lines(("frame", ""), ("valid cells", "%"), {"": (frames, 100 * np.array(sums.valid_share))}))
    rows = [(name, bit, sums.flags.get(bit, 0)) for bit, name in FLAG_NAMES.items()]
    report.table("Flags", ("flag", "bit", "measurements"), rows, "A cell is valid without the bits 1, 2, 32, 64 and 128.")


def finish(made, measurement, options):
    """The table, the report and result.json. Returns: the result"""
    if not measurement.fields:
        raise Failure(NO_RESULT, "No frame arrived.")
    unit = "rad" if "slope-unit=rad" in measurement.settings else "" if is_pyramid(measurement) else "px"
    if measurement.look and measurement.look.order:
        made.warn(measurement.look.order)
    sums = read(made, measurement, options)
    if not sums.has_valid():
        made.nothing = f"None of the cells is valid in any of {sums.n} frames: flags in the report says why."
    figures(made.report, measurement, sums, unit)
    show(made.report, measurement, sums, unit)
    told = measurement.told
    threshold = told.get("threshold")
    if threshold:
        made.report.fact("threshold-mode=auto chose", "threshold={threshold:.3g} threshold-least={threshold-least:.6g}"
                                                      " min-flux={min-flux:.6g}".format(**threshold))
    made.report.fact("frames", sums.n)
    made.report.fact("format", measurement.format)
    return made.finish(frames=sums.n, fields=measurement.fields, slopes=os.path.basename(measurement.location),
                       format=measurement.format, backend=measurement.backend, **{"bit-depth": measurement.bit_depth}, **told)
