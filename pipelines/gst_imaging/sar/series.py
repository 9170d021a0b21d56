# SPDX-License-Identifier: LGPL-2.1-or-later
"""What programs for time series read, of the pairs of a stack on one grid: unwrapped phases, coherences, baselines and geometry.

mintpy: rasters with .rsc files as prep_isce of MintPy leaves them, in the layout of ISCE2, and a template with their paths.
gmtsar: grids of GMT, and intf.tab and scene.tab of sbas."""
import math
import os
import shlex
import shutil
import subprocess

from .. import library
from ..command import NO_RESULT, NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure
from . import ground, orbit
from .told import OVERSAMPLING

PROGRAMS = "mintpy", "gmtsar"
TEMPLATE = {"processor": "isce", "unwFile": "interferograms/*/filt.unw", "corFile": "interferograms/*/filt.cor",
            "connCompFile": "interferograms/*/filt.conncomp", "demFile": "geometry/hgt.rdr", "lookupYFile": "geometry/lat.rdr",
            "lookupXFile": "geometry/lon.rdr", "incAngleFile": "geometry/los.rdr", "azAngleFile": "geometry/los.rdr"}


class Cells:
    """The cells of the pairs of a stack"""

    def __init__(self, stack):
        sizes = {(pair.result["summary"]["width"], pair.result["summary"]["height"]) for pair in stack.pairs}
        if len(sizes) > 1:
            raise Failure(UNREADABLE, "The pairs have different sizes in cells: " + ", ".join(f"{w} x {h}" for w, h in sorted(sizes)) +
                          ". Run all rows of one jobs.csv.")
        (self.width, self.height), self.looks = sizes.pop(), stack.options.looks

    def read(self, path, kind):
        np = library.numpy()
        values = np.fromfile(path, kind)
        if values.size != self.height * self.width:
            raise Failure(UNREADABLE, f"{path} has {os.path.getsize(path)} bytes, and {self.width} x {self.height} cells need "
                                      f"{self.height * self.width * np.dtype(kind).itemsize}. Make the result of this pair again.")
        return values.reshape(self.height, self.width)

    def read_pair(self, pair):
        """Returns: the phase, NaN where it is not known, and the coherence"""
        np = library.numpy()
        return self.read(pair.path("unwrapped.img"), np.float32), self.read(pair.path("coherence.img"), np.float32)


def check(stack):
    """Fails where something is missing that every series needs."""
    if any(not pair.result for pair in stack.pairs):
        raise Failure(NO_RESULT, stack.without_result())
    parts = len(stack.parts())
    if stack.left_out and parts > 1:
        raise Failure(NO_RESULT, f"Without the pairs of --leave-out the others do not connect all scenes: there are {parts} parts, and a series has no "
                                 "common zero. Leave out fewer pairs, or take a scene out of the folder and plan again.")
    for name in "looks", "grid", "dem", "dem_surface":
        first, *others = stack.pairs
        other = next((pair for pair in others if getattr(pair.options, name) != getattr(first.options, name)), None)
        if other:
            raise Failure(UNREADABLE, f"The rows of {first.folder} and {other.folder} in jobs.csv differ in --{name.replace('_', '-')}. A series "
                                      "has one: write the stack again, and run its rows.")
    for pair in stack.pairs:
        if not os.path.exists(pair.path("unwrapped.img")):
            raise Failure(NO_RESULT, f"{pair.folder} has no unwrapped.img: give --unwrap behind --, or run snaphu -f snaphu.conf there.")
        for name in "unwrapped.img", "coherence.img":
            stack.made.input(pair.path(name), "pair")
    if not stack.options.grid:
        raise Failure(UNREADABLE, f"The pairs of {stack.folder} are not on one grid: it was written by an older insar-stack. Write it again.")
    dates = [scene["date"] for scene in stack.scenes.values()]
    twice = next((date for date in dates if dates.count(date) > 1), None)
    if twice:
        raise Failure(UNREADABLE, f"Two scenes are of {twice}, and a time series has one a day. Take one of them out of the folder.")


def write(program, stack, made):
    """Returns: figures for result.json"""
    if program == "gmtsar" and not shutil.which("gdal_translate"):
        raise Failure(WRONG_USE, "--series gmtsar needs gdal_translate, which is not installed: the Debian package gdal-bin.")
    check(stack)
    cells = Cells(stack)
    for name, path in ("grid", stack.options.grid), ("dem", stack.options.dem):
        if path:
            made.input(path, name)
    image = orbit.Image(stack.options.grid)
    (write_mintpy if program == "mintpy" else write_gmtsar)(stack, made, cells, image)
    return {"pairs": len(stack.pairs), "scenes": len(stack.scenes), "width": cells.width, "height": cells.height}


def find_ground(stack, cells, image):
    options, scratch = stack.options, stack.made.path(".scratch")
    os.mkdir(scratch)
    seen = ground.of_cells(image, cells.looks, (cells.height, cells.width), image.size, options.dem, options.dem_surface, scratch)
    shutil.rmtree(scratch)
    return seen


# --- MintPy ---------------------------------------------------------------------------------------------------------------------


def write_mintpy(stack, made, cells, image):
    np = library.numpy()
    common = mintpy_metadata(cells, image)
    seen = find_ground(stack, cells, image)
    os.mkdir(made.path("geometry"))
    for name, bands in (("hgt", [seen.height]), ("lat", [seen.latitude]), ("lon", [seen.longitude]), ("los", [seen.incidence, seen.azimuth])):
        kind = np.float64 if name in ("lat", "lon") else np.float32  # a float32 has steps of a metre in degrees
        write_raster(made.path(f"geometry/{name}.rdr"), np.nan_to_num(np.stack(bands, 1)).astype(kind), {**common, "FILE_TYPE": f"{name}.rdr"})
    for pair in stack.pairs:
        one, other = (stack.scenes[name]["date"] for name in (pair.reference, pair.secondary))
        folder = made.path(f"interferograms/{one}_{other}")
        os.makedirs(folder)
        phase, coherence = cells.read_pair(pair)
        rasters = {"unw": np.nan_to_num(phase), "cor": coherence}  # 0 is no data
        if os.path.exists(pair.path("components.img")):
            rasters["conncomp"] = cells.read(pair.path("components.img"), np.uint32).astype(np.int16)
        for name, values in rasters.items():
            write_raster(os.path.join(folder, "filt." + name), values[:, None], {
                **common, "FILE_TYPE": "." + name, "DATE12": f"{one[2:]}-{other[2:]}", "P_BASELINE_TOP_HDR": f"{pair.baseline:.3f}",
                "P_BASELINE_BOTTOM_HDR": f"{pair.baseline:.3f}"})
    with open(made.path("stack.txt"), "w", encoding="ascii") as file:
        file.write("# smallbaselineApp.py stack.txt, in this folder\n")
        file.writelines(f"mintpy.load.{name:<14} = {value}\n" for name, value in TEMPLATE.items())


def mintpy_metadata(cells, image):
    """Names and units as of MintPy's attributes. The size of a line is that at the height of the radar."""
    direction, radius, height, speed = ground.heading(image)
    start, near = ground.first_of(image)
    x, y = cells.looks
    return {"PROCESSOR": "isce", "WIDTH": cells.width, "LENGTH": cells.height, "INTERLEAVE": "BIL", "WAVELENGTH": image.found["radar_wavelength"],
            "RLOOKS": x, "ALOOKS": y, "NCORRLOOKS": f"{max(1, x * y / OVERSAMPLING):.1f}", "RANGE_PIXEL_SIZE": repr(image.step * x),
            "AZIMUTH_PIXEL_SIZE": repr(speed / image.rate * y), "STARTING_RANGE": repr(near + (x - 1) / 2 * image.step),
            "EARTH_RADIUS": f"{radius:.3f}", "HEIGHT": f"{height:.3f}", "HEADING": f"{direction:.6f}", "PRF": repr(image.rate),
            "ORBIT_DIRECTION": "ascending" if math.cos(math.radians(direction)) > 0 else "descending",
            "ANTENNA_SIDE": -image.look, "CENTER_LINE_UTC": f"{(start + image.size[1] / 2 / image.rate) % 86400:.3f}"}


def write_raster(path, values, metadata):
    """values: [lines][bands][columns]"""
    values.tofile(path)
    with open(path + ".rsc", "w", encoding="ascii") as file:
        file.writelines(f"{name:<24} {value}\n" for name, value in {**metadata, "BANDS": values.shape[1], "DATA_TYPE": values.dtype.name}.items())


# --- GMTSAR ---------------------------------------------------------------------------------------------------------------------


def write_grid(values, cells, path):
    """A grid of GMT whose x and y are columns and lines of the image of the grid, by GDAL."""
    np, (x, y) = library.numpy(), cells.looks
    raw = path + ".f32"
    values.astype(np.float32).tofile(raw)
    with open(raw + ".vrt", "w", encoding="utf-8") as file:
        file.write(f'<VRTDataset rasterXSize="{cells.width}" rasterYSize="{cells.height}"><GeoTransform>0,{x},0,0,0,{y}</GeoTransform>\n'
                   '<VRTRasterBand dataType="Float32" band="1" subClass="VRTRawRasterBand"><NoDataValue>nan</NoDataValue>'
                   f'<SourceFilename relativeToVRT="1">{os.path.basename(raw)}</SourceFilename><ByteOrder>LSB</ByteOrder>'
                   f"<ImageOffset>0</ImageOffset><PixelOffset>4</PixelOffset><LineOffset>{4 * cells.width}</LineOffset></VRTRasterBand></VRTDataset>\n")
    done = subprocess.run(["gdal_translate", "-q", "-of", "netCDF", raw + ".vrt", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    for suffix in "", ".vrt":
        os.remove(raw + suffix)
    if done.returncode or not os.path.exists(path):
        raise Failure(NOT_WRITTEN, f"gdal_translate could not write {os.path.basename(path)}: {done.stdout.strip()}")


def write_gmtsar(stack, made, cells, image):
    np = library.numpy()
    lines = []
    for pair in stack.pairs:
        one, other = (stack.scenes[name]["date"] for name in (pair.reference, pair.secondary))
        os.mkdir(made.path(f"{one}_{other}"))
        phase, coherence = cells.read_pair(pair)
        for name, values in ("unwrap.grd", phase), ("corr.grd", coherence):
            write_grid(values, cells, made.path(f"{one}_{other}/{name}"))
        lines.append(f"{one}_{other}/unwrap.grd {one}_{other}/corr.grd {one} {other} {pair.baseline:.3f}\n")
    with open(made.path("intf.tab"), "w", encoding="ascii") as file:
        file.writelines(lines)
    with open(made.path("scene.tab"), "w", encoding="ascii") as file:
        file.writelines(f"{scene['date']} {scene['days']}\n" for scene in stack.scenes.values())
    seen = find_ground(stack, cells, image)
    words = ["sbas", "intf.tab", "scene.tab", str(len(stack.pairs)), str(len(stack.scenes)), str(cells.width), str(cells.height), "-wavelength",
             image.found["radar_wavelength"], "-incidence", f"{np.nanmedian(seen.incidence):.3f}", "-range", f"{image.range:.0f}"]
    with open(made.path("sbas.sh"), "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n# in this folder\n{shlex.join(words)}\n")
