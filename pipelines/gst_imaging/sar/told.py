# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a report tells of offsets and their fit."""
from .. import library
from ..report import plots
from . import field

FIELD = "Offsets less their median. Dark: within half a pixel of the fit. Red: further away, a cross where the arrow would be " \
        "much too long. Grey dots: not in the fit."


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
        culled = sum(n for name, n in counts.items() if name not in ("patches", "filled"))
        report.figure(f"dense patches used, pass {number}", 100 * (1 - culled / counts["patches"]), "%", at_least=25,
                      about=f"of {counts['patches']} patches: {text}")
    for name, unit, plane in zip(("range", "azimuth"), ("columns", "lines"), field.planes or ()):
        size = field.image.width / plane.shape[1], field.image.height / plane.shape[0]
        axes = [{"name": "range", "unit": "columns", "step": size[0]}, {"name": "azimuth", "unit": "lines", "step": size[1]}]
        report.picture(f"Offsets beyond the fit, {name}", plane.astype(np.float32), {"name": f"{name} offset", "unit": unit,
                                                                                    "axes": axes}, colours="height")
