# SPDX-License-Identifier: LGPL-2.1-or-later
"""One raster of many, with GDAL. Its grid is divided into chunks, which are files of a Zarr array: a job writes a chunk and no other
job writes that file, so nothing is locked."""
import json
import math
import os

from . import library
from .command import NO_RESULT, NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure

OVERLAPS = {"mean": "mean of all rasters that have data", "first": "the first raster of the list that has data",
            "last": "the last one"}
RESAMPLING = ("near", "bilinear", "cubic", "average")
MOST_CHUNKS = 10 ** 6
PLAN = "mosaic.json"
NO_DATA = float("nan")


def load_gdal():
    try:
        from osgeo import gdal
    except ImportError as error:
        raise Failure(WRONG_USE, f"gst-imaging mosaic needs GDAL's module for Python (Debian: python3-gdal): {error}.") from error
    gdal.UseExceptions()
    return gdal


def open_raster(path, band):
    """Returns: a raster that has a place on the ground and this band of real samples"""
    gdal = load_gdal()
    try:
        raster = gdal.Open(path)
    except RuntimeError as error:
        raise Failure(UNREADABLE, f'"{path}" cannot be read: {str(error).strip(" .")}.') from error
    if not 1 <= band <= raster.RasterCount:
        raise Failure(UNREADABLE, f'"{path}" has {raster.RasterCount} bands, and no band {band}. Choose another --band.')
    if gdal.DataTypeIsComplex(raster.GetRasterBand(band).DataType):
        raise Failure(UNREADABLE, f'"{path}" is complex. A mosaic is made of real samples, as of coherence or displacement.')
    has_place = raster.GetGeoTransform(can_return_null=True) or raster.GetGCPCount()
    if not has_place or not (raster.GetSpatialRef() or raster.GetGCPSpatialRef()):
        raise Failure(UNREADABLE, f'"{path}" has no place on the ground: no geotransform or no coordinate system.')
    return raster


def warp(raster, path, band, resampling="near", **more):
    """Returns: GDAL's result of a raster on another grid, float32, NaN where there is no data"""
    gdal = load_gdal()
    source = gdal.Translate("", raster, format="VRT", bandList=[band])
    if source.GetRasterBand(1).GetNoDataValue() is None and source.GetRasterBand(1).DataType in (gdal.GDT_Float32, gdal.GDT_Float64):
        source.GetRasterBand(1).SetNoDataValue(NO_DATA)  # else a NaN spreads into its neighbours
    try:
        return gdal.Warp("", source, outputType=gdal.GDT_Float32, dstNodata=NO_DATA, resampleAlg=resampling, **more)
    except RuntimeError as error:
        raise Failure(UNREADABLE, f'"{path}" cannot be brought into the mosaic: {str(error).strip(" .")}.') from error


class Grid:
    """Where the mosaic and its chunks are. pixel: [width, height] in units of the coordinate system; left, top: of its corner."""

    def __init__(self, crs, pixel, left, top, width, height, chunk):
        self.crs, self.pixel, self.left, self.top = crs, pixel, left, top
        self.width, self.height, self.chunk = width, height, chunk

    def rows_and_columns(self):
        return -(-self.height // self.chunk), -(-self.width // self.chunk)

    def window(self, row, column):
        """Returns: x, y, width and height of a chunk in pixels; the last ones are cut"""
        x, y = column * self.chunk, row * self.chunk
        return x, y, min(self.chunk, self.width - x), min(self.chunk, self.height - y)

    def bounds(self, x, y, width, height):
        """Returns: left, bottom, right, top"""
        left, top = self.left + x * self.pixel[0], self.top - y * self.pixel[1]
        return left, top - height * self.pixel[1], left + width * self.pixel[0], top

    def chunks_of(self, bounds):
        """Generates row and column of the chunks that bounds touch"""
        left, bottom, right, top = bounds
        n_rows, n_columns = self.rows_and_columns()
        size = [self.chunk * p for p in self.pixel]
        for row in range(max(0, math.floor((self.top - top) / size[1])), min(n_rows, math.ceil((self.top - bottom) / size[1]))):
            for column in range(max(0, math.floor((left - self.left) / size[0])),
                                min(n_columns, math.ceil((right - self.left) / size[0]))):
                yield row, column


def bounds_of(raster):
    left, dx, _rx, top, _ry, dy = raster.GetGeoTransform()
    return left, top + dy * raster.RasterYSize, left + dx * raster.RasterXSize, top


def grid_of(rasters, crs, pixel, chunk, band):
    """rasters: paths. crs, pixel: None for those of the first raster. Returns: Grid, and the bounds of each raster"""
    first = open_raster(rasters[0], band)
    crs = crs or (first.GetSpatialRef() or first.GetGCPSpatialRef()).ExportToWkt()
    found = [warp(open_raster(path, band), path, band, format="VRT", dstSRS=crs) for path in rasters]
    left, dx, _rx, top, _ry, dy = found[0].GetGeoTransform()
    pixel = pixel or [dx, -dy]
    bounds = [bounds_of(raster) for raster in found]
    # whole pixels from the corner of the first raster: those on its grid are copied, not resampled
    before, above = (math.ceil(n - 1e-6) for n in ((left - min(b[0] for b in bounds)) / pixel[0],
                                                   (max(b[3] for b in bounds) - top) / pixel[1]))
    left, top = left - before * pixel[0], top + above * pixel[1]
    width, height = (math.ceil(n - 1e-6) for n in ((max(b[2] for b in bounds) - left) / pixel[0],
                                                   (top - min(b[1] for b in bounds)) / pixel[1]))
    grid = Grid(crs, pixel, left, top, width, height, chunk)
    n_rows, n_columns = grid.rows_and_columns()
    if n_rows * n_columns > MOST_CHUNKS or max(width, height) >= 1 << 31:
        raise Failure(WRONG_USE, f"The mosaic would have {width} x {height} pixels in {n_rows * n_columns} chunks, and may have"
                                 f" {MOST_CHUNKS} chunks. Set --pixel or --chunk; or a raster has a wrong place.")
    return grid, bounds


def create(path, grid):
    """An empty array: chunks without a file have no data."""
    gdal = load_gdal()
    try:
        array = gdal.GetDriverByName("Zarr").Create(path, grid.width, grid.height, 1, gdal.GDT_Float32,
                                                    [f"BLOCKSIZE={grid.chunk},{grid.chunk}", "COMPRESS=ZLIB"])
        array.SetProjection(grid.crs)
        array.SetGeoTransform((grid.left, grid.pixel[0], 0, grid.top, 0, -grid.pixel[1]))
        array.GetRasterBand(1).SetNoDataValue(NO_DATA)
        array = None  # GDAL writes it when it is closed
    except RuntimeError as error:
        raise Failure(NOT_WRITTEN, f"{path} cannot be written: {str(error).strip()}.") from error


def write_chunk(path, x, y, values):
    """GDAL rewrites the file of this chunk alone: values begin at a chunk and fill it, or end with the array."""
    gdal = load_gdal()
    try:
        store = gdal.OpenEx(path, gdal.OF_MULTIDIM_RASTER | gdal.OF_UPDATE)
        array = store.GetRootGroup().OpenMDArray(name_of(path))
        status = array.Write(values, array_start_idx=[y, x])
        array = store = None
    except RuntimeError as error:
        raise Failure(NOT_WRITTEN, f"{path} cannot be written: {str(error).strip()}.") from error
    if status:
        raise Failure(NOT_WRITTEN, f"{path} cannot be written.")


def name_of(path):
    """Returns: of the array; GDAL's choice"""
    return os.path.splitext(os.path.basename(os.path.normpath(path)))[0]


def chunk_file(path, row, column):
    return os.path.join(path, name_of(path), f"{row}.{column}")


def compose(rasters, window, grid, overlap, resampling, band):
    """Returns: samples of a window of the mosaic, float32"""
    np = library.numpy()
    x, y, width, height = window
    total, count = np.zeros((height, width)), np.zeros((height, width), np.uint32)
    for path in rasters if overlap != "last" else reversed(rasters):
        values = warp(open_raster(path, band), path, band, resampling, format="MEM", dstSRS=grid.crs,
                      outputBounds=grid.bounds(x, y, width, height), width=width, height=height).ReadAsArray()
        new = np.isfinite(values) if overlap == "mean" else np.isfinite(values) & (count == 0)
        total[new] += values[new]
        count += new
    total[count == 0] = NO_DATA
    return (total / np.maximum(count, 1)).astype(np.float32)


def write_plan(path, **plan):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(plan, file, indent=1)
        file.write("\n")


def read_plan(folder):
    """Returns: what write_plan() was given, with a Grid"""
    path = os.path.join(folder, PLAN)
    try:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        plan["grid"] = Grid(**plan["grid"])
        return plan
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise Failure(UNREADABLE, f"{folder} has no plan of a mosaic ({PLAN}): {getattr(error, 'strerror', None) or error}.") from error


def write_cog(store, path):
    gdal = load_gdal()
    try:
        gdal.Translate(path, store, format="COG", creationOptions=["COMPRESS=DEFLATE", "PREDICTOR=YES", "BIGTIFF=IF_SAFER",
                                                                   "OVERVIEW_RESAMPLING=AVERAGE"])
    except RuntimeError as error:
        raise Failure(NO_RESULT, f"{store} could not be made into a Cloud Optimized GeoTIFF: {str(error).strip()}.") from error
