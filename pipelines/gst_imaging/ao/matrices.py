# SPDX-License-Identifier: LGPL-2.1-or-later
"""Interaction matrices and control matrices, read by shreconstruct itself (gstshreconstructmatrix.c): it finds the axis of slopes, their order, the image of
telemetry, and the lenslets."""
import collections
import ctypes
import json
import os
import re

from .. import library
from ..command import UNREADABLE, WRONG_USE, Failure

PROPERTIES = ("interaction-location", "matrix-location")  # by the axis of slopes
ORDERS = (None, "x-then-y", "interleaved")  # GstShReconstructOrder


class Numbers(ctypes.Structure):
    """GstShCentroidArray"""

    _fields_ = [("n_dims", ctypes.c_uint), ("dims", ctypes.c_uint64 * 3), ("n", ctypes.c_size_t), ("text", ctypes.c_char * 100),
                ("values", ctypes.c_double * 0)]


class Loaded(ctypes.Structure):
    """GstShReconstructMatrix"""

    _fields_ = [("array", ctypes.POINTER(Numbers)), ("image", ctypes.c_char_p), ("name", ctypes.c_char_p), ("rows", ctypes.c_int),
                ("order", ctypes.c_int), ("is_guess", ctypes.c_int), ("is_transposed", ctypes.c_int), ("lenslets", ctypes.POINTER(ctypes.c_uint32))]


# values: float64, with slopes along the axis; type, shape: those of the file; image: its name in telemetry, "" for the only one; name: of the axis of
# slopes, "" where names do not tell it; order: None where the file does not tell it; lenslets: [row, column] of each cell, or None
Matrix = collections.namedtuple("Matrix", "values type shape image name order is_guess is_transposed lenslets")


def matrix_of(np, loaded, axis):
    array = loaded.array.contents
    kind, shape = re.match(rb"(\w+) (\[.*?\])", array.text).groups()
    numbers = (ctypes.c_double * array.n).from_address(ctypes.addressof(array) + Numbers.values.offset)
    values = np.array(numbers).reshape(array.dims[:array.n_dims])
    n_cells = values.shape[axis] // 2 if loaded.lenslets else 0
    lenslets = [loaded.lenslets[2 * i:2 * i + 2] for i in range(n_cells)] or None
    image, name = ((text or b"").decode(errors="replace") for text in (loaded.image, loaded.name))
    return Matrix(values, kind.decode(), json.loads(shape), image, name, ORDERS[loaded.order], bool(loaded.is_guess), bool(loaded.is_transposed), lenslets)


def load(np, path, axis):
    """axis: of the slopes, 0 of an interaction matrix and 1 of a control matrix"""
    plugin = library.gstreamer().Registry.get().find_plugin("shreconstruct")
    if not plugin:
        raise Failure(WRONG_USE, "GStreamer finds no plug-in shreconstruct; see gst-imaging info.")
    functions = ctypes.CDLL(plugin.get_filename())
    functions.gst_sh_reconstruct_matrix_load.restype = ctypes.POINTER(Loaded)
    functions.gst_sh_reconstruct_matrix_free.argtypes, error = [ctypes.c_void_p], library.ImkError()
    loaded = functions.gst_sh_reconstruct_matrix_load(PROPERTIES[axis].encode(), os.fsencode(path), 1 - axis, ctypes.byref(error))
    if not loaded:
        raise Failure(UNREADABLE, error.message.decode(errors="replace").removeprefix(PROPERTIES[axis]).lstrip(": "))
    try:
        return matrix_of(np, loaded.contents, axis)
    finally:
        functions.gst_sh_reconstruct_matrix_free(loaded)
