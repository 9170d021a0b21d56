# SPDX-License-Identifier: LGPL-2.1-or-later
"""GStreamer with our plug-ins, and libgstimaging through ctypes, which needs no typelib."""
import ctypes

from .command import Failure, WRONG_USE

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


def describe(Gst):
    """Returns: what gst_imaging_describe () says, as text; None without a plug-in to find the library by"""
    for plugin in plugins(Gst):
        if plugin.load():  # with it the library, which has no place of its own in a build folder
            library = ctypes.CDLL(LIBRARY)
            library.gst_imaging_describe.restype = ctypes.c_void_p
            library.g_free.argtypes = [ctypes.c_void_p]
            text = library.gst_imaging_describe()
            try:
                return ctypes.string_at(text).decode()
            finally:
                library.g_free(text)
    return None
