# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of frames for the elements that take grey frames: those of picturesrc, also when gzip compressed them, .npz, and
whatever pictures and videos other elements of GStreamer play."""
import gzip
import glob
import json
import os
import re
import shutil
import zipfile
import zlib

from .. import library, play
from ..command import UNREADABLE, Failure, absent, say
from ..photographs import listed
from .source import GREY, Source, need

# if picturesrc fails, no other element reads them
ARRAYS = (".npy", ".npz", ".fits", ".fit", ".fts", ".fz", ".tif", ".tiff", ".exr", ".pfm")
PACKED = (".gz", ".npz")
MOST_SEEN = 100  # files of a folder that are opened to see what it is
TO_NPY = "numpy.save(\"frames.npy\", ...)"


def refuse(name, what, file=None):
    """file: a picture or an array, which may be meant otherwise than it is read"""
    doubt = file and library.Arrays().doubt(file)
    raise Failure(UNREADABLE, f"{name} holds {what}; a frame is [height, width], and several are [frames, height, width],"
                              f" of real numbers. {doubt or f'Write them with {TO_NPY}.'}")


def gunzip(name, folder):
    """Returns: the name of the file without its compression"""
    plain = os.path.join(folder, os.path.basename(name)[:-len(".gz")])
    try:
        with gzip.open(name) as packed, open(plain, "wb") as file:
            shutil.copyfileobj(packed, file)
    except (OSError, EOFError, zlib.error) as error:
        raise Failure(UNREADABLE, f"{name}: {getattr(error, 'strerror', None) or error}.") from None
    return plain


def unzip(name, folder):
    """Returns: the name of a .npy file with the one array of .npz"""
    np = library.numpy()
    plain = os.path.join(folder, "frames.npy")
    try:
        arrays = np.load(name)
        if len(arrays.files) != 1:
            raise Failure(UNREADABLE, f"{name} has the arrays {', '.join(arrays.files)}. Write the one with the frames to a"
                                      f" file of its own: {TO_NPY[:-4]}numpy.load({name!r})[\"NAME\"]).")
        frames = np.asanyarray(arrays[arrays.files[0]])
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Failure(UNREADABLE, f"{name} is no .npz file that can be read: {error}.") from None
    if frames.ndim not in (2, 3):
        refuse(name, f"{frames.dtype} of the shape {list(frames.shape)}")
    np.save(plain, frames)
    return plain


def linked(path, folder):
    """Returns: the path; of a name that is not UTF-8 or has control characters, which no text of a pipeline holds, a link in the folder"""
    if path.isprintable():
        return path
    link = os.path.join(folder, "link" + re.sub("[^.A-Za-z0-9]", "_", os.path.splitext(path)[1]))
    for ending in "", ".json":
        if os.path.exists(path + ending):
            os.symlink(os.path.abspath(path + ending), link + ending)
    return link


def unpack(name, folder):
    path = gunzip(name, folder) if name.lower().endswith(PACKED[0]) else name
    return unzip(path, folder) if path.lower().endswith(PACKED[1]) else path


def samples_of(name, files, kind, dimensions, folder, part):
    """Returns: a .npy file of the frames of tensors: integers as u16 where it holds them all, else float32. A page at a
    time: the files may be larger than the memory."""
    np = library.numpy()
    width, height, *others = map(int, dimensions.split(":"))
    if set(others) > {1}:
        refuse(name, f"{kind} of {dimensions} values a frame", files[0])
    arrays, low, high, n = library.Arrays(part), 0, 0, 0
    for file in files:
        for _shape, _start, values in arrays.pages(file):
            if values.dtype.kind not in "iuf":
                refuse(name, f"{values.dtype} numbers")
            n += values.size // (width * height)
            if values.dtype.kind != "f":
                low, high = min(low, values.min()), max(high, values.max())
    is_u16 = values.dtype.kind != "f" and low >= 0 and high <= 65535
    path = os.path.join(folder, "samples.npy")
    frames = np.lib.format.open_memmap(path, "w+", "u2" if is_u16 else "f4", (n, height, width))
    flat, at = frames.reshape(-1), 0
    with np.errstate(over="ignore"):  # to infinity, which a cell is flagged for
        for file in files:
            for _shape, _start, values in arrays.pages(file):
                flat[at:at + values.size] = values
                at += values.size
    frames.flush()
    return path


def words_of(files):
    """Returns: what plays the files, as words of a pipeline"""
    quoted = (file.replace("\\", "\\\\").replace('"', '\\"') for file in files)
    return ["picturesrc", "locations=<" + ", ".join(f'"{file}"' for file in quoted) + ">"]


def decoded(name, path):
    """A picture or a video of another kind. path: where GStreamer finds it"""
    Gst = library.gstreamer()
    need("uridecodebin", "videoconvert")
    words = ["uridecodebin", "uri=" + Gst.filename_to_uri(os.path.abspath(path)), "!", "videoconvert", "!", GREY]
    try:
        play.caps_of(words)
    except Failure:
        raise Failure(UNREADABLE, f"{name} is of a kind that no installed plug-in of GStreamer reads. Write its frames with"
                                  f" NumPy, {TO_NPY}, as u8, u16 or float32 of [height, width] or [frames, height, width].") from None
    return Source(words, name, [name])


def note_of(path, part):
    """Returns: which pictures of a file are not played, though nobody chose one; else None"""
    parts = None if part >= 0 or path.lower().endswith(PACKED) else library.Arrays().parts(path)
    return parts and f"Of several pictures in {path} the first one is measured; --part takes another one: {parts}."


def read(name, folder, part=-1):
    """Returns: what plays a file, or a folder or pattern of files, as grey frames or float32. folder: for other files on
    the way; part: which of several pictures of each file, -1: the usual ones"""
    need("picturesrc")
    files = listing(name)
    played = [linked(unpack(files[0], folder), folder)] if len(files) == 1 else files
    # picturesrc looks for gaps in the numbers of a folder or pattern, not of a list
    words = words_of([linked(name, folder)] if len(files) > 1 else played) + ([f"part={part}"] if part >= 0 else [])
    try:
        caps = play.caps_of(words)
    except Failure:
        if len(files) > 1 or played[0].lower().endswith(ARRAYS):
            raise
        return decoded(files[0], linked(files[0], folder) if played[0] == files[0] else played[0])
    note = note_of(played[0], part)
    if caps.has_name("video/x-raw"):
        if not caps.get_string("format").startswith("GRAY"):
            need("videoconvert")
            words += ["!", "videoconvert", "!", GREY]
        return Source(words, name, files, played=played, note=note)
    kind, dimensions = caps.get_string("types"), caps.get_string("dimensions")
    if kind == "float32" and set(dimensions.split(":")[2:]) <= {"1"}:
        return Source(words, name, files, played=played, note=note)
    path = samples_of(name, played, kind, dimensions, folder, part)
    return Source(["picturesrc", "location=" + path, "axes=nyx"], name, files, played=[path], note=note)


def formats():
    """Returns: for each extension what gst_imaging_describe () says of its format"""
    about = json.loads(library.describe(library.gstreamer()))
    return {extension: entry for entry in about["formats"] for extension in entry["extensions"].split()}


def is_several(path):
    """A folder or a pattern; a name that is there is none."""
    return os.path.isdir(path) or not os.path.exists(path) and bool(set("*?") & set(os.path.basename(path)))


def files_of(path):
    """Returns: all files of a folder or a pattern"""
    if not is_several(path):
        if os.path.exists(path) and not os.path.isfile(path):  # its end may never come
            raise Failure(UNREADABLE, f"{path} is no regular file: it is a pipe or device.")
        return [path]
    if os.path.isdir(path):
        found = [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
    else:
        found = glob.glob(path)
    files = sorted((f for f in found if os.path.isfile(f) and not f.endswith(".json")), key=library.natural)
    if not files:
        raise Failure(UNREADABLE, f"{path} holds no file.")
    return files


def listing(path, warn=None):
    """Returns: the files that a path stands for. Of several those of a known format: notes may lie beside data. warn gets a sentence
    that names the others."""
    if not os.path.exists(path) and not set("*?") & set(os.path.basename(path)):
        raise absent(path, f'There is no file "{path}".')
    found = files_of(path)
    Gst = library.gstreamer()
    known = [file for file in found if len(found) == 1 or file.lower().endswith(PACKED) or library.knows(Gst, file)] or found
    others = [os.path.basename(file) for file in found if file not in known]
    if others and warn:
        warn(f"{len(others)} of {len(found)} files of {path} have no format that is read here and were left out: {listed(others)}.")
    return known


def shape_of(path):
    """Returns: the shape of what a file holds; None where it cannot be read, or not so"""
    try:
        return next((shape for shape, _start, _values in library.Arrays().pages(path)), None)
    except Failure:
        return None


def is_recording(shape):
    return shape is not None and len(shape) > 2 and not (len(shape) == 3 and shape[-1] in (3, 4))


def recordings(names):
    """Returns: the recordings. A folder is one, unless a file of it holds several frames, or is of another size: then
    each of its files is one."""
    found = []
    for name in names:
        files = listing(name)
        shapes = [shape_of(file) for file in files[:MOST_SEEN] if os.path.isdir(name)]
        sizes = sorted({tuple(shape) for shape in shapes if shape})
        cubes = any(map(is_recording, shapes)) or files[0].lower().endswith(PACKED)
        if len(sizes) > 1 and not cubes:
            say(f"{name} holds frames of {len(sizes)} sizes, as {list(sizes[0])} and {list(sizes[-1])}: each file is a recording of its own."
                " Name the frames of one size with a pattern, as 'a*.png', for one recording.")
        is_split = len(files) > 1 and (cubes or len(sizes) > 1)
        found += listing(name, say) if is_split else [name]  # else picturesrc tells what it leaves out
    return found
