# SPDX-License-Identifier: LGPL-2.1-or-later
"""Converts an array or a picture to another format, without a change of its samples.

Reads .npy, PNM, PFM, PNG, TIFF, FITS, OpenEXR, JPEG and camera RAW; writes all but the last two. What the input holds
decides how it is read, the extension of the output how it is written. Samples are never scaled or rounded: a format
that cannot hold their type or shape is refused with a sentence that names those that can. A folder, or a name with *
or ? in quotes, is taken in natural order; an output with a number in its name, as frame%05d.png, is a file for each frame.
"""
import os

from .. import library, repeat
from ..command import NOT_WRITTEN, UNREADABLE

EXAMPLES = [
    ("dark.fits dark.npy", "a FITS frame as NumPy array"),
    ("volume.npy volume.tif", "a cube as TIFF with a page a frame"),
    ("picture.nef picture.tif", "camera RAW as linear 16 bits"),
    ("photographs/ set.npy", "all pictures of a folder as one array"),
    ("volume.tif slice%04d.png", "each page as a file of its own"),
]


def add_arguments(parser):
    parser.add_argument("input", metavar="IN")
    parser.add_argument("output", metavar="OUT")


def is_numbered(path):
    return "%" in os.path.basename(path)


def is_several(path):
    """A folder or a pattern; a name that is there is none."""
    return os.path.isdir(path) or not os.path.exists(path) and bool(set("*?") & set(os.path.basename(path)))


def convert_frames(options):
    """As frames, one after the other: neither side has to fit into memory."""
    Gst = library.gstreamer()
    pipeline = Gst.parse_launch("picturesrc name=in ! other/tensors ! picturesink name=out sidecar=none")
    pipeline.get_by_name("in").set_property("location", options.input)
    pipeline.get_by_name("out").set_property("location", options.output)
    n = repeat.play(Gst, pipeline, pipeline.get_by_name("out"), UNREADABLE, NOT_WRITTEN)
    result = {"output": options.output, "frames": n}
    if not options.json:
        print(f'{options.output}: {result["frames"]} frames')
    return result


def run(options):
    if is_several(options.input) or is_numbered(options.output):
        return convert_frames(options)
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
