# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes one raster of many that have a place on the ground, as of coherence or displacement.

Rasters: plans. FOLDER gets jobs.csv, a row for each chunk that has data, and mosaic.zarr, an empty array with the grid of all.
FOLDER --part ROW COLUMN, as a row of jobs.csv calls it, fills one chunk, which is a file: any number of jobs may do so at once.
FOLDER --cog, as the last job, makes a Cloud Optimized GeoTIFF of them. Samples are float32, NaN where there is no data.
"""
import os
import shlex

from .. import job, library, mosaic
from ..batch import rows
from ..command import UNREADABLE, WRONG_USE, Failure
from ..sar.arguments import whole_number
from ..sar.images import files_of

EXAMPLES = [
    ("pairs/*/coherence.tif -o mosaic", "plans: mosaic/jobs.csv and mosaic/mosaic.zarr; then gst-imaging batch mosaic/jobs.csv"),
    ("mosaic --part 0 3 -o mosaic/parts/0-3", "fills one chunk"),
    ("mosaic --cog -o map", "map/mosaic.tif, after all chunks"),
]


def add_arguments(parser):
    parser.add_argument("words", nargs="+", metavar="RASTER... | FOLDER")
    job.add_arguments(parser)
    parser.add_argument("--part", nargs=2, type=whole_number(0, 1 << 20), metavar=("ROW", "COLUMN"), help="fill this chunk of a plan")
    parser.add_argument("--cog", action="store_true", help="make the Cloud Optimized GeoTIFF of a plan whose chunks are complete")
    parser.add_argument("--chunk", type=whole_number(16, 1 << 15), default=1024, metavar="N", help="a chunk has N x N pixels (1024)")
    parser.add_argument("--crs", metavar="CRS", help="coordinate system, as EPSG:32632; that of the first raster")
    parser.add_argument("--pixel", nargs=2, type=float, metavar=("WIDTH", "HEIGHT"), help="in its units; those of the first raster")
    parser.add_argument("--band", type=whole_number(1, 1 << 16), default=1, metavar="N", help="of each raster (1)")
    parser.add_argument("--overlap", choices=mosaic.OVERLAPS, default="mean", help="; ".join(
        f"{name}: {meaning}" for name, meaning in mosaic.OVERLAPS.items()) + " (mean)")
    parser.add_argument("--resampling", choices=mosaic.RESAMPLING, default="near", help="of rasters on another grid (near)")


def check(options):
    if options.part and options.cog:
        raise Failure(WRONG_USE, "--part fills a chunk, and --cog ends a mosaic. Give one of them.")
    if (options.part or options.cog) and len(options.words) != 1:
        raise Failure(WRONG_USE, "--part and --cog take one folder, that of the plan.")
    if options.pixel and min(options.pixel) <= 0:
        raise Failure(WRONG_USE, "--pixel is a width and a height above 0.")
    if os.path.abspath(options.output) == os.path.abspath(options.words[0]):
        raise Failure(WRONG_USE, "The output is the plan itself. Choose another folder.")
    mosaic.load_gdal()


def plan(options, made):
    for path in options.words:
        mosaic.open_raster(path, options.band)
        for file in files_of(path):
            made.input(file, "raster")
    made.setting("output", options.output)  # the rows name it
    if made.is_complete():
        return made.result
    grid, bounds = mosaic.grid_of(options.words, options.crs, options.pixel, options.chunk, options.band)
    touched = sorted({place for box in bounds for place in grid.chunks_of(box)})
    mosaic.create(made.path("mosaic.zarr"), grid)
    mosaic.write_plan(made.path(mosaic.PLAN), rasters=options.words, bounds=bounds, grid=vars(grid), overlap=options.overlap,
                      resampling=options.resampling, band=options.band, parts=touched)
    rows.write(made.path("jobs.csv"), ["command", "input", "part", "output"], (
        ["mosaic", shlex.quote(options.output), f"{row} {column}", part_folder(options.output, row, column)] for row, column in touched))
    made.report.figure("chunks with data", len(touched), about="of {} x {}".format(*grid.rows_and_columns()))
    made.report.fact("pixels", f"{grid.width} x {grid.height}")
    return made.finish(chunks=len(touched), width=grid.width, height=grid.height)


def part_folder(folder, row, column):
    """Beside the plan, which is a result and has no others in it."""
    return f"{os.path.normpath(folder)}-parts/{row}-{column}"


def fill(options, made):
    folder, (row, column) = options.words[0], options.part
    told = mosaic.read_plan(folder)
    grid, store = told["grid"], os.path.join(folder, "mosaic.zarr")
    n_rows, n_columns = grid.rows_and_columns()
    if not (row < n_rows and column < n_columns):
        raise Failure(WRONG_USE, f"There is no chunk {row} {column}: {folder} has {n_rows} rows and {n_columns} columns of them.")
    rasters = [path for path, box in zip(told["rasters"], told["bounds"]) if (row, column) in grid.chunks_of(box)]
    for path in (file for raster in rasters for file in files_of(raster)):
        made.input(path, "raster")
    for name in "overlap", "resampling", "band":
        made.setting(name, told[name])
    made.setting("grid", vars(grid))
    file = mosaic.chunk_file(store, row, column)
    if made.is_complete(file):
        return made.result
    made.overwrite |= not os.path.exists(file)  # it says that a chunk is there which is not
    made.open()  # refuses to replace another result, whose chunk would be gone
    window = grid.window(row, column)
    values = mosaic.compose(rasters, window, grid, told["overlap"], told["resampling"], told["band"])
    mosaic.write_chunk(store, *window[:2], values)
    part = float(library.numpy().isfinite(values).mean())
    made.report.figure("part with data", part)
    made.report.picture("Chunk", values)
    return made.finish(bytes=os.path.getsize(file), part=part)


def make_cog(options, made):
    folder = options.words[0]
    told, store = mosaic.read_plan(folder), os.path.join(folder, "mosaic.zarr")
    missing = [place for place in told["parts"] if not job.read_result(part_folder(folder, *place))
               or not os.path.exists(mosaic.chunk_file(store, *place))]  # the results may be those of an earlier plan
    if missing:
        raise Failure(UNREADABLE, f"{len(missing)} of {len(told['parts'])} chunks are missing, the first is {missing[0]}."
                                  f" gst-imaging batch {os.path.join(folder, 'jobs.csv')} makes them.")
    for place in told["parts"]:
        made.input(mosaic.chunk_file(store, *place), "chunk")
    made.setting("grid", vars(told["grid"]))
    if made.is_complete():
        return made.result
    mosaic.write_cog(store, made.path("mosaic.tif"))
    return made.finish(width=told["grid"].width, height=told["grid"].height)


def run(options):
    check(options)
    work = fill if options.part else make_cog if options.cog else plan
    return job.run_all(options, "mosaic", [options.words[0]], lambda _path, made: work(options, made), [options.output])
