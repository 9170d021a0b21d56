# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files that pipelines/shcentroid-file reads: those of picturesrc, also when gzip compressed them, and .npz."""
import gzip
import os
import shutil
import sys

from shcentroid_common import Gst, Source, need

# if picturesrc fails, no other element reads them
ARRAYS = (".npy", ".fits", ".fit", ".fts", ".fz", ".tif", ".tiff", ".exr", ".pfm")
TO_NPY = "numpy.save(\"frames.npy\", ...)"
TIMEOUT = 60 * 10**9  # ns


def numpy():
    try:
        import numpy
    except ImportError:
        sys.exit("The Python module numpy is missing: on Debian, install python3-numpy.")
    return numpy


def refuse(name, what):
    sys.exit(f"{name} holds {what}; a frame is [height, width], and several are [frames, height, width], of real"
             f" numbers. Write them with {TO_NPY}.")


def gunzip(name, folder):
    """Returns: the name of the file without its compression"""
    plain = os.path.join(folder, os.path.basename(name)[:-len(".gz")])
    try:
        with gzip.open(name) as packed, open(plain, "wb") as file:
            shutil.copyfileobj(packed, file)
    except (OSError, EOFError) as error:
        sys.exit(f"{name}: {getattr(error, 'strerror', None) or error}.")
    return plain


def unzip(name, folder):
    """Returns: the name of a .npy file with the one array of .npz"""
    plain = os.path.join(folder, "frames.npy")
    try:
        arrays = numpy().load(name)
        if len(arrays.files) != 1:
            sys.exit(f"{name} has the arrays {', '.join(arrays.files)}. Write the one with the frames to a file of"
                     f" its own: {TO_NPY[:-4]}numpy.load({name!r})[\"NAME\"]).")
        frames = arrays[arrays.files[0]]
    except (OSError, ValueError) as error:
        sys.exit(f"{name} is no .npz file that can be read: {error}.")
    if frames.ndim not in (2, 3):
        refuse(name, f"{frames.dtype} of the shape {list(frames.shape)}")
    numpy().save(plain, frames)
    return plain


def open_frames(name):
    """Returns: a paused pipeline and the structure of its caps, or None and the sentence of the error"""
    pipeline = Gst.parse_launch("picturesrc name=source ! appsink name=sink sync=false max-buffers=1")
    pipeline.get_by_name("source").set_property("location", name)
    pipeline.set_state(Gst.State.PAUSED)
    state = pipeline.get_state(TIMEOUT)[0]
    if state == Gst.StateChangeReturn.SUCCESS:
        return pipeline, pipeline.get_by_name("sink").get_static_pad("sink").get_current_caps().get_structure(0)
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    return None, message.parse_error()[0].message if message else f"{name} cannot be played."


def read_tensors(name, pipeline, structure):
    """Returns: [frames, height, width]: integers as u16 where it holds them all, else float32"""
    kind, dimensions = structure.get_string("types"), structure.get_string("dimensions")
    width, height, *others = map(int, dimensions.split(":"))
    if set(others) != {1}:
        refuse(name, f"{kind} of {dimensions} values a frame")
    frames, sink = [], pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("try-pull-sample", TIMEOUT):
        buffer = sample.get_buffer()
        frames.append(numpy().frombuffer(buffer.extract_dup(0, buffer.get_size()), kind).reshape(height, width))
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    if message:
        sys.exit(message.parse_error()[0].message)
    values = numpy().stack(frames)
    is_u16 = values.dtype.kind != "f" and values.min() >= 0 and values.max() <= 65535
    with numpy().errstate(over="ignore"):  # to infinity, which a cell is flagged for
        return values.astype("u2" if is_u16 else "f4")


def source_of(name, folder):
    """What plays a file. @folder: for other files on the way, which end with it"""
    need("picturesrc")
    if not os.path.exists(name):
        sys.exit(f"There is no file {name}.")
    path = gunzip(name, folder) if name.lower().endswith(".gz") else name
    path = unzip(name, folder) if path.lower().endswith(".npz") else path
    pipeline, found = open_frames(path)
    if not pipeline:
        if path.lower().endswith(ARRAYS):
            sys.exit(found)
        need("uridecodebin", "videoconvert")
        return Source(["uridecodebin", "uri=" + Gst.filename_to_uri(name), "!", "videoconvert", "!",
                       "video/x-raw,format={GRAY16_LE,GRAY8}"])
    try:
        is_video = found.has_name("video/x-raw")
        frames = None if is_video else read_tensors(name, pipeline, found)
    finally:
        pipeline.set_state(Gst.State.NULL)
    if is_video and found.get_string("format").startswith("GRAY"):
        return Source(["picturesrc", "location=" + path])
    if is_video:
        need("videoconvert")
        return Source(["picturesrc", "location=" + path, "!", "videoconvert", "!", "video/x-raw,format={GRAY16_LE,GRAY8}"])
    if frames.dtype.kind == "f":
        from shcentroid_floats import FloatSource  # which needs NumPy

        return FloatSource(frames)
    path = os.path.join(folder, "samples.npy")
    numpy().save(path, frames)
    return Source(["picturesrc", "location=" + path, "axes=nyx"])
