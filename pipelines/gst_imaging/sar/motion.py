# SPDX-License-Identifier: LGPL-2.1-or-later
"""Displacement and velocity from the offsets of patches, with their errors, as rasters and as a map."""
import base64
import os
import re

from .. import library
from ..report import pictures
from . import warp

SAMPLES = 500  # planes that are tried: where half of the patches move, one of 8 goes through three that do not
WIDTH = 640  # of the map, without its bars
ARROWS = 24  # along the longer side


def solve(np, terms, values, weights):
    """Returns: the terms of a plane for both axes, by weighted least squares"""
    return [np.linalg.lstsq(terms * w[:, None], v * w, rcond=None)[0] for v, w in zip(values, weights)]


def find_still(np, terms, values, scales):
    """Least median of squares (Rousseeuw 1984) over planes through 3 patches: what moves may be less than half of all.
    Returns: patches within 2.5 standard deviations of the plane, judged by both axes together"""
    def away(patches):
        planes = solve(np, terms[patches], [v[patches] for v in values], [np.ones(len(patches))] * 2)
        return sum(((v - terms @ plane) / scale) ** 2 for v, plane, scale in zip(values, planes, scales))

    rng, n = np.random.default_rng(0), len(terms)
    best = min((away(rng.choice(n, 3, replace=False)) for _ in range(SAMPLES)), key=np.median)
    for _ in range(3):  # the plane of three patches is as uncertain as these
        best = away(np.argsort(best)[:max(3, n // 2)])
    median_of_two = 1.386  # of chi squared of two degrees of freedom
    return best <= 2 * 2.5 ** 2 * np.median(best) / median_of_two


def fit_plane(np, planes, good, x, y):
    """By least squares with weights of the variances, through the patches that find_still() leaves.
    Returns: the plane at all patches, for both axes, and the share of the patches that it goes through"""
    terms = np.stack((np.ones(x.shape), x / max(x.max(), 1), y / max(y.max(), 1)), -1)
    values = [plane[good] for plane in planes[:2]]
    variances = [np.maximum(variance[good], 1e-4) for variance in planes[4:6]]
    still = find_still(np, terms[good], values, [np.sqrt(np.median(v)) for v in variances])
    found = solve(np, terms[good][still], [v[still] for v in values], [1 / np.sqrt(v[still]) for v in variances])
    return [terms @ plane for plane in found], float(still.mean())


def compute(planes, columns, rows, spacing, days, stable):
    """planes: of insarxcorr; columns, rows: where its patches are; spacing: m a column and a line; stable: of patches, or None.
    Returns: {name: plane}, the counts of what was culled, and the share of the patches that the plane goes through.
    Displacements count away from the radar, and along the flight"""
    np = library.numpy()
    good, counts = warp.cull(np, planes)
    x, y = np.meshgrid(np.asarray(columns, float), np.asarray(rows, float))
    still = good if stable is None else good & stable
    if still.sum() < 8:
        return None, counts, 0
    base, share = fit_plane(np, planes.astype(float), still, x, y)
    result = {}
    for axis, name in enumerate(("range", "azimuth")):
        moved = (planes[axis] - base[axis]) * spacing[axis]
        error = np.sqrt(np.where(good, planes[4 + axis].astype(float), np.nan)) * spacing[axis]
        for what, values in (f"displacement-{name}", moved), (f"velocity-{name}", moved / days), (f"error-{name}", error), \
                (f"velocity-error-{name}", error / days):
            result[what] = np.where(good, values, np.nan).astype(np.float32)
    result["speed"] = np.hypot(result["velocity-range"], result["velocity-azimuth"])
    return result, counts, share


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
    whole = f"{width + 140:.0f}", f"{height + 40:.0f}"
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole[0]}" height="{whole[1]}" viewBox="0 0 {" ".join(whole)}" font-family="sans-serif" '
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


def add_to_report(report, found, counts, share, size):
    report.plot("Velocity", "".join(draw_map(found, size)), "Speed in the plane of slant range and azimuth. Away from the radar is to the right.")
    axes = [{"name": name, "unit": "m", "step": step} for name, step in zip(("range", "azimuth"), size)]
    for name in "velocity-range", "velocity-azimuth", "velocity-error-range", "velocity-error-azimuth":
        report.picture(name.replace("-", " ").capitalize(), found[name], {"name": name, "unit": unit_of(name), "axes": axes}, name + ".img",
                       colours="height" if "error" in name else "both-signs")
    np = library.numpy()
    report.figure("patches used", 100 * float(np.isfinite(found["speed"]).mean()), "%", at_least=25,
                  about=f"of {counts['patches']}: " + ", ".join(f"{n} {name}" for name, n in counts.items() if name != "patches"))
    report.figure("patches that do not move", 100 * share, "%", at_least=55,
                  about="of those of --stable, or of all: the plane that is subtracted goes through them")
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
