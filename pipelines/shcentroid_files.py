# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files that pipelines/shcentroid-file reads without GStreamer: NumPy, FITS, TIFF."""
import os
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tools", "fits2npy")
FITS = (".fits", ".fit", ".fts", ".fz")
TIFF = (".tif", ".tiff")
TO_NPY = "numpy.save(\"frames.npy\", ...)"


def numpy():
    try:
        import numpy
    except ImportError:
        sys.exit("The Python module numpy is missing: on Debian, install python3-numpy.")
    return numpy


def fits2npy():
    numpy()
    module = module_from_spec(spec_from_loader("fits2npy", SourceFileLoader("fits2npy", TOOL)))
    module.__loader__.exec_module(module)
    return module


def kind_of(name):
    """Returns: the end of a name, in lower case, without a .gz behind it"""
    stem, end = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if end == ".gz" else end


def read_fits(name, offset):
    """Returns: the frames, and what was added to them"""
    tool = fits2npy()
    try:
        values = tool.read(name)
        if offset is None:
            return tool.as_samples(values), 0
        added = float(offset)
        if not abs(added) <= 1e6:
            raise ValueError(f"OFFSET is {offset}; it needs a number up to 1e6")
        return tool.to_u16(values, added)[0], added
    except (OSError, EOFError) as error:
        sys.exit(f"{name}: {getattr(error, 'strerror', None) or error}.")
    except ValueError as error:
        sys.exit(f"{name} is no FITS picture that can be converted: {error}.")


def take(values):
    """Returns: u8 and u16 as they are, other integers as u16 where it holds them, else float32; None for
    what is no frame"""
    if values.ndim not in (2, 3) or 0 in values.shape or values.dtype.kind not in "fiub":
        return None
    if values.dtype.kind == "f":
        return values.astype("f4", order="C")
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        return values.astype(values.dtype.newbyteorder("="), order="C")
    return fits2npy().as_samples(values)


def read_npy(name):
    """Returns: the frames; None for those that picturesrc reads, or refuses with a sentence"""
    try:
        values = numpy().load(name, mmap_mode="r")
    except (OSError, ValueError):
        return None
    if values.dtype in ("u1", "<u2") and values.flags.c_contiguous:
        return None
    return take(values)


def read_npz(name):
    try:
        arrays = numpy().load(name)
        if len(arrays.files) != 1:
            sys.exit(f"{name} has the arrays {', '.join(arrays.files)}. Write the one with the frames to a file of"
                     f" its own: {TO_NPY[:-4]}numpy.load({name!r})[\"NAME\"]).")
        return arrays[arrays.files[0]]
    except (OSError, ValueError) as error:
        sys.exit(f"{name} is no .npz file that can be read: {error}.")


def read_by_pillow(name):
    from PIL import Image, ImageSequence

    with Image.open(name) as file:
        return numpy().stack([numpy().array(page) for page in ImageSequence.Iterator(file)])


def read_by_tifffile(name):
    import tifffile

    return tifffile.imread(name)


def read_tiff(name):
    """With the module that is there and can: tifffile lacks some compressions, Pillow some numbers. Returns: None
    without both"""
    failure = None
    for read in read_by_tifffile, read_by_pillow:
        try:
            return read(name)
        except ImportError:
            pass
        except Exception as error:  # whatever a module of others raises
            failure = failure or error
    if failure:
        raise failure
    return None


def read_other(name, read):
    """Of .npz and TIFF. Returns: the frames; None where there is no module to read them"""
    try:
        values = read(name)
    except Exception as error:  # whatever a module of others raises
        sys.exit(f"{name} cannot be read: {error}.")
    frames = values if values is None else take(values)
    if values is not None and frames is None:
        sys.exit(f"{name} holds {values.dtype} of the shape {list(values.shape)}; a frame is [height, width], and"
                 f" several are [frames, height, width], of real numbers. Write them with {TO_NPY}.")
    return frames
