# SPDX-License-Identifier: LGPL-2.1-or-later
"""Converts an array or a picture to another format, without a change of its samples.

Reads .npy, PNM, PFM, PNG, TIFF, FITS, OpenEXR, JPEG and camera RAW; writes all but the last two. What the input holds
decides how it is read, the extension of the output how it is written. Samples are never scaled or rounded: a format
that cannot hold their type or shape is refused with a sentence that names those that can.
"""
from .. import library

EXAMPLES = [
    ("dark.fits dark.npy", "a FITS frame as NumPy array"),
    ("volume.npy volume.tif", "a cube as TIFF with a page a frame"),
    ("picture.nef picture.tif", "camera RAW as linear 16 bits"),
]


def add_arguments(parser):
    parser.add_argument("input", metavar="IN")
    parser.add_argument("output", metavar="OUT")


def run(options):
    arrays = library.Arrays()
    array = arrays.load(options.input)
    try:
        result = {"output": options.output, "type": arrays.type_name(array),
                  "shape": list(array.contents.dims[:array.contents.n_dims])}
        arrays.save(array, options.output)
    finally:
        arrays.free(array)
    if not options.json:
        print(f'{options.output}: {result["type"]}, {" x ".join(map(str, result["shape"])) or "one value"}')
    return result
