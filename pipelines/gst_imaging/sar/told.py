# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a report tells of offsets and their fit."""
import math

from .. import library
from ..command import Failure
from ..report import plots
from . import field, heights, orbit

FIELD = "Offsets less their median. Dark: within half a pixel of the fit. Red: further away, a cross where the arrow would be " \
        "much too long. Grey dots: not in the fit."


OVERSAMPLING = 1.5  # samples of an independent one, about
LEAST = 2  # times the coherence of noise
WITH_DATA = 0.75  # of all cells: a file that is cut, or images of two frames, have less
FLAT = 1  # m, of the heights of a DEM


def noise_coherence(n):
    """Returns: the expected coherence of n independent samples of noise (Touzi et al. 1999, for a true coherence of 0)"""
    return math.sqrt(math.pi) / 2 * math.exp(math.lgamma(n) - math.lgamma(n + 0.5))


def add_coherence(made, options, summary):
    """The share of cells with data, and the mean coherence beside that of noise alone. Offsets of amplitudes say nothing of the phase."""
    cells = summary["width"] * summary["height"]
    made.report.figure("cells with data", 100 * summary["with-data"] / cells, "%", at_least=100 * WITH_DATA,
                       about=f"{summary['with-data']} of {summary['width']} x {summary['height']}; the others are 0 in one image, or beyond its edge")
    noise = noise_coherence(max(1, math.prod(options.looks) * math.prod(options.window) / OVERSAMPLING))
    made.report.figure("mean coherence", summary["mean-coherence"], at_least=min(1, LEAST * noise),
                       about=f"of the {summary['with-data']} of {summary['width']} x {summary['height']} cells that have data; noise alone has {noise:.3f}")
    if summary["mean-coherence"] < LEAST * noise:
        made.warn(f"The mean coherence is {summary['mean-coherence']:.3f}, and that of noise alone {noise:.3f}: there are no fringes to see. If the "
                  "amplitudes agree, the phase of one image may be conjugated (I and Q exchanged), the orbits may be of other days or "
                  "exchanged, lookdir may be wrong, or images of --coregistered are not coregistered.")


def add_baseline(made, pair, kind):
    """pair: the orbit.Images of reference and secondary; kind: the flattening"""
    reference, secondary = pair
    try:
        baseline, critical = orbit.perpendicular(reference, secondary), orbit.critical(reference)
    except Failure as error:  # insarform needs no orbit where fringes are measured
        made.warn(str(error))
        return
    made.report.figure("perpendicular baseline", baseline, "m",
                       about=f"positive where the secondary looks more steeply; from {critical:.0f} m on flat ground is noise")
    made.report.figure("height of a fringe", orbit.height_of_a_fringe(reference, baseline), "m",
                       about="an error of --dem of this height is one fringe" if kind == "dem" else
                       "terrain is in the phase, one fringe each time that it rises by this; --dem removes it")
    if abs(baseline) > critical:
        made.warn(f"The perpendicular baseline is {abs(baseline):.0f} m, above the critical one of {critical:.0f} m, beyond which flat ground is noise.")


def add_heights(made, path, image, scratch):
    """path: of --dem; image: the reference"""
    np = library.numpy()
    values = heights.read(path, (image.width, image.height), scratch)[0]
    known = values[np.isfinite(values)]
    if not known.size:
        return
    lowest, highest = float(known.min()), float(known.max())
    made.report.fact("heights of the DEM", f"{lowest:.4g} to {highest:.4g} m")
    if highest - lowest < FLAT:
        made.warn(f"All heights of {path} are {lowest:.4g} to {highest:.4g} m: this DEM removes no terrain. If the ground is not so flat, it is "
                  "a raster of something else, or its heights are not in m.")


def add_residuals(report, rows, fit, snr):
    """rows: (x, dx, y, dy, correlation) of each patch; fit: a function from (x, y) to the offset; snr: those of the fit have
    a larger correlation"""
    np = library.numpy()
    used = [row for row in rows if row[4] > snr]
    fitted = np.array([fit(row[0], row[2]) for row in used])
    for axis, name in enumerate(("columns", "lines")):
        residuals = np.array([row[1 + 2 * axis] for row in used]) - fitted[:, axis]
        scale = 1.4826 * np.median(np.abs(residuals - np.median(residuals)))
        reach = max(5 * scale, 0.01)
        inside = residuals[np.abs(residuals) <= reach]
        counts, edges = np.histogram(inside, 40, (-reach, reach))
        beyond = residuals.size - inside.size
        report.plot(f"Distance from the fit, {name}", plots.histogram(("offset less fit", "pixels"), edges, counts, ("patches", "")),
                    f"{beyond} of {residuals.size} patches are beyond the ends." if beyond else "")


def add_field(report, rows, fit, snr):
    """The same; without a fit, fit is None."""
    if any(row[4] > snr for row in rows):
        report.plot("Offset field", "".join(field.draw(rows, fit, snr, field.PAGE)), FIELD)


def add_rasters(report, planes, steps):
    """planes: of insarxcorr; steps: columns and lines from patch to patch"""
    np = library.numpy()
    axes = [{"name": "range", "unit": "columns", "step": steps[0]}, {"name": "azimuth", "unit": "lines", "step": steps[1]}]
    known = (planes[7] == 0) | (planes[7] == 3)
    for index, name, unit in (0, "range offset", "columns"), (1, "azimuth offset", "lines"), (2, "correlation", "%"):
        report.picture(name.capitalize(), np.where(known, planes[index], np.nan), {"name": name, "unit": unit, "axes": axes},
                       colours="height", caption="Of each patch; without colour: no data, or at the edge of the search.")


def add_warp(report, field):
    """The offsets beyond the fit, and what was culled in each pass. field: of sar.warp"""
    np = library.numpy()
    for number, counts in enumerate(field.counts, 1):
        text = ", ".join(f"{n} {name}" for name, n in counts.items() if name != "patches")
        culled = sum(n for name, n in counts.items() if name not in ("patches", "filled", "too steep"))
        report.figure(f"dense patches used, pass {number}", 100 * (1 - culled / counts["patches"]), "%", at_least=25,
                      about=f"of {counts['patches']} patches: {text}")
    for name, unit, plane in zip(("range", "azimuth"), ("columns", "lines"), field.planes or ()):
        size = field.image.width / plane.shape[1], field.image.height / plane.shape[0]
        axes = [{"name": "range", "unit": "columns", "step": size[0]}, {"name": "azimuth", "unit": "lines", "step": size[1]}]
        report.picture(f"Offsets beyond the fit, {name}", plane.astype(np.float32), {"name": f"{name} offset", "unit": unit,
                                                                                    "axes": axes}, colours="height")
