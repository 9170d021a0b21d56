# SPDX-License-Identifier: LGPL-2.1-or-later
"""Displacement and velocity from the offsets of patches, with their errors, as rasters and as a map."""
import base64
import os
import re

from .. import library
from ..report import pictures
from . import warp

WIDTH = 640  # of the map, without its bars
ARROWS = 24  # along the longer side


def fit_plane(np, planes, good, x, y):
    """By least squares with weights of the variances, and of Huber's function for what is still not stable.
    Returns: the plane at all patches, for both axes"""
    terms = np.stack((np.ones(x.shape), x / max(x.max(), 1), y / max(y.max(), 1)), -1)
    found = []
    for plane, variance in zip(planes[:2], planes[4:6]):
        weights = 1 / np.sqrt(np.maximum(variance[good], 1e-4))
        huber = np.ones(weights.shape)
        for _ in range(20):
            root = weights * np.sqrt(huber)
            solution = np.linalg.lstsq(terms[good] * root[:, None], plane[good] * root, rcond=None)[0]
            away = np.abs(plane[good] - terms[good] @ solution)
            limit = 1.5 * 1.4826 * np.median(away) + 1e-6
            huber = np.minimum(1, limit / np.maximum(away, 1e-12))
        found.append(terms @ solution)
    return found


def compute(planes, columns, rows, spacing, days, stable):
    """planes: of insarxcorr; columns, rows: where its patches are; spacing: m a column and a line; stable: of patches, or None.
    Returns: {name: plane}, and the counts of what was culled. Displacements count away from the radar, and along the flight"""
    np = library.numpy()
    good, counts = warp.cull(np, planes)
    x, y = np.meshgrid(np.asarray(columns, float), np.asarray(rows, float))
    still = good if stable is None else good & stable
    if still.sum() < 8:
        return None, counts
    base = fit_plane(np, planes.astype(float), still, x, y)
    result = {}
    for axis, name in enumerate(("range", "azimuth")):
        moved = (planes[axis] - base[axis]) * spacing[axis]
        error = np.sqrt(planes[4 + axis].astype(float)) * spacing[axis]
        for what, values in (f"displacement-{name}", moved), (f"velocity-{name}", moved / days), (f"error-{name}", error), \
                (f"velocity-error-{name}", error / days):
            result[what] = np.where(good, values, np.nan).astype(np.float32)
    result["speed"] = np.hypot(result["velocity-range"], result["velocity-azimuth"])
    return result, counts


def unit_of(name):
    return "m/day" if name.startswith(("velocity", "speed")) else "m"


def write(made, name, plane, template):
    """A raster of float32 with the place of the offsets. template: the .vrt of these"""
    plane.astype("<f4").tofile(made.path(name + ".img"))
    with open(template, encoding="utf-8") as file:
        text = file.read()
    head, bands = text[:text.index("<VRTRasterBand")], text[text.rindex("</VRTRasterBand>") + len("</VRTRasterBand>"):]
    head = re.sub("(?s)<Metadata.*?</Metadata>", "", head)
    band = (f'<VRTRasterBand dataType="Float32" band="1" subClass="VRTRawRasterBand"><Description>{name}</Description>'
            f"<UnitType>{unit_of(name)}</UnitType><NoDataValue>nan</NoDataValue>"
            f'<SourceFilename relativeToVRT="1">{name}.img</SourceFilename><ByteOrder>LSB</ByteOrder><ImageOffset>0</ImageOffset>'
            f"<PixelOffset>4</PixelOffset><LineOffset>{4 * plane.shape[1]}</LineOffset></VRTRasterBand>")
    with open(made.path(name + ".img.vrt"), "w", encoding="utf-8") as file:
        file.write(head + band + bands)


# --- the map ------------------------------------------------------------------------------------------------------------------


def draw_arrows(np, found, scale, longest):
    """Of means over blocks of patches. scale: of a patch, both ways; longest: length of the fastest"""
    u, v = found["velocity-range"], found["velocity-azimuth"]
    n = max(1, round(max(u.shape) / ARROWS))
    fastest = np.nanpercentile(found["speed"], 99) or 1
    for i in range(n // 2, u.shape[0], n):
        for j in range(n // 2, u.shape[1], n):
            block = np.s_[max(i - n // 2, 0):i + n // 2 + 1, max(j - n // 2, 0):j + n // 2 + 1]
            if not np.isfinite(u[block]).any():
                continue
            along, down = (np.nanmean(values[block]) / fastest * longest for values in (u, v))
            if np.hypot(along, down) > longest / 20:
                yield (f'<path d="M{(j + 0.5) * scale[0]:.1f} {(i + 0.5) * scale[1]:.1f}l{along:.1f} {down:.1f}" stroke="black" '
                       'stroke-width="1.2" fill="none" marker-end="url(#tip)"/>')


def draw_map(found, size):
    """The speed in colours with arrows, a scale bar and a bar of colours. size: m of a patch along range and azimuth.
    Returns: the lines of an SVG"""
    np = library.numpy()
    speed = found["speed"]
    shape = speed.shape[1] * size[0], speed.shape[0] * size[1]  # m
    scale = WIDTH / max(shape)  # pixels a m
    width, height = shape[0] * scale, shape[1] * scale
    most = max(float(np.nanpercentile(speed, 99.5)), 1e-6)
    image = base64.b64encode(pictures.png(np, pictures.colour(np, speed, 0, most, "height"))).decode("ascii")
    ramp = base64.b64encode(pictures.png(np, pictures.colour(np, np.linspace(1, 0, 128)[:, None], 0, 1, "height"))).decode("ascii")
    bar = pictures.round_length(max(shape))
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 120:.0f}" height="{height + 40:.0f}" font-family="sans-serif" '
           'font-size="13"><defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" markerHeight="5" orient="auto">'
           '<path d="M0 0L6 3L0 6Z"/></marker></defs><rect width="100%" height="100%" fill="white"/>')
    yield (f'<image width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none" style="image-rendering:pixelated" '
           f'href="data:image/png;base64,{image}"/>')
    yield from draw_arrows(np, found, (size[0] * scale, size[1] * scale), WIDTH / ARROWS)
    yield (f'<path d="M8 {height + 14:.1f}h{bar * scale:.1f}" stroke="black" stroke-width="3"/>'
           f'<text x="{16 + bar * scale:.1f}" y="{height + 19:.1f}">{bar:g} m, range to the right, azimuth down</text>')
    yield (f'<image x="{width + 12:.1f}" y="10" width="16" height="{height - 20:.1f}" preserveAspectRatio="none" '
           f'href="data:image/png;base64,{ramp}"/>')
    for share in 0, 0.5, 1:
        yield f'<text x="{width + 34:.1f}" y="{10 + (1 - share) * (height - 20) + 4:.1f}">{share * most:.3g} m/day</text>'
    yield "</svg>"


def add_to_report(report, found, counts, size):
    report.plot("Velocity", "".join(draw_map(found, size)), "Speed in the plane of slant range and azimuth. Away from the radar is to the right.")
    axes = [{"name": name, "unit": "m", "step": step} for name, step in zip(("range", "azimuth"), size)]
    for name in "velocity-range", "velocity-azimuth", "velocity-error-range", "velocity-error-azimuth":
        report.picture(name.replace("-", " ").capitalize(), found[name], {"name": name, "unit": unit_of(name), "axes": axes}, name + ".img",
                       colours="height" if "error" in name else "both-signs")
    np = library.numpy()
    report.figure("patches used", 100 * float(np.isfinite(found["speed"]).mean()), "%", at_least=25,
                  about=f"of {counts['patches']}: " + ", ".join(f"{n} {name}" for name, n in counts.items() if name != "patches"))
    for axis, unit in ("range", "m"), ("azimuth", "m"):
        report.figure(f"median error, {axis}", float(np.nanmedian(found[f"error-{axis}"])), unit, about="one standard deviation")


def translate(made, name):
    """A GeoTIFF in the place of .img and .vrt. Returns: whether gdal_translate did it"""
    import subprocess
    done = subprocess.run(["gdal_translate", "-q", "-co", "COMPRESS=DEFLATE", made.path(name + ".img.vrt"), made.path(name + ".tif")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    for suffix in "", ".vrt":
        os.remove(made.path(name + ".img" + suffix))
    return done.returncode == 0
