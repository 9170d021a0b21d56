# SPDX-License-Identifier: LGPL-2.1-or-later
"""GStreamer with our plug-ins, and libgstimaging through ctypes, which needs no typelib."""
import ctypes
import os

from .command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure

LIBRARY = "libgstimaging-1.0.so.0"


def gstreamer():
    """Returns: the module Gst, initialized"""
    try:
        import gi

        gi.require_version("Gst", "1.0")
        from gi.repository import Gst
    except (ImportError, ValueError) as error:
        raise Failure(WRONG_USE, "The Python bindings of GStreamer are missing: on Debian, install python3-gi and"
                                 " gir1.2-gstreamer-1.0, and use /usr/bin/python3.") from error
    Gst.init(None)
    return Gst


def plugins(Gst):
    """Returns: our plug-ins in the registry"""
    return [p for p in Gst.Registry.get().get_plugin_list() if p.get_package() == "gst-imaging"]


def load(Gst):
    """Returns: libgstimaging; None without a plug-in to find it by"""
    for plugin in plugins(Gst):
        if plugin.load():  # with it the library, which has no place of its own in a build folder
            return ctypes.CDLL(LIBRARY)
    return None


def describe(Gst):
    """Returns: what gst_imaging_describe () says, as text; None without the library"""
    library = load(Gst)
    if not library:
        return None
    library.gst_imaging_describe.restype = ctypes.c_void_p
    library.g_free.argtypes = [ctypes.c_void_p]
    text = library.gst_imaging_describe()
    try:
        return ctypes.string_at(text).decode()
    finally:
        library.g_free(text)


class GError(ctypes.Structure):
    _fields_ = [("domain", ctypes.c_uint32), ("code", ctypes.c_int), ("message", ctypes.c_char_p)]


class Array(ctypes.Structure):
    """The first members of GstImagingNdArray."""

    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("n_dims", ctypes.c_uint),
                ("dims", ctypes.c_uint64 * 8)]


class Arrays:
    """Reads and writes arrays and pictures in every format that the library knows."""

    def __init__(self):
        self.functions = load(gstreamer())
        if not self.functions:
            raise Failure(WRONG_USE, "GStreamer finds no plug-in of gst-imaging; see gst-imaging info.")
        self.functions.gst_imaging_nd_array_load.restype = ctypes.POINTER(Array)
        self.functions.gst_imaging_nd_array_free.argtypes = [ctypes.POINTER(Array)]
        self.functions.gst_imaging_nd_array_type_name.restype = ctypes.c_char_p

    def call(self, code, function, *arguments):
        error = ctypes.POINTER(GError)()
        result = function(*arguments, ctypes.byref(error))
        if not result:
            sentence = error.contents.message.decode(errors="replace")
            self.functions.g_error_free(error)
            raise Failure(code, sentence)
        return result

    def load(self, path):
        return self.call(UNREADABLE, self.functions.gst_imaging_nd_array_load, os.fsencode(path))

    def save(self, array, path):
        self.call(NOT_WRITTEN, self.functions.gst_imaging_nd_array_save, array, os.fsencode(path))

    def free(self, array):
        self.functions.gst_imaging_nd_array_free(array)

    def type_name(self, array):
        return self.functions.gst_imaging_nd_array_type_name(array.contents.type).decode()
