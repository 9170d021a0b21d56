# SPDX-License-Identifier: LGPL-2.1-or-later
"""Properties of types that PyGObject does not know (fractions, arrays), and changes of several properties, with types."""
import ctypes
import functools

from .. import library

VOID, SIZE, TEXT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
# name: (result, arguments)
FUNCTIONS = {
    "g_object_get_property": (None, (VOID, TEXT, VOID)),
    "g_object_set_property": (None, (VOID, TEXT, VOID)),
    "g_type_from_name": (SIZE, (TEXT,)),
    "g_value_init": (VOID, (VOID, SIZE)),
    "g_value_unset": (None, (VOID,)),
    "g_value_take_boxed": (None, (VOID, VOID)),
    "g_value_set_boolean": (None, (VOID, ctypes.c_int)),
    "g_value_set_int": (None, (VOID, ctypes.c_int)),
    "g_value_set_uint": (None, (VOID, ctypes.c_uint)),
    "g_value_set_uint64": (None, (VOID, ctypes.c_uint64)),
    "g_value_set_double": (None, (VOID, ctypes.c_double)),
    "g_value_set_string": (None, (VOID, TEXT)),
    "gst_value_set_fraction": (None, (VOID, ctypes.c_int, ctypes.c_int)),
    "gst_value_array_append_and_take_value": (None, (VOID, VOID)),
    "gst_value_serialize": (VOID, (VOID,)),
    "gst_structure_new_empty": (VOID, (TEXT,)),
    "gst_structure_take_value": (None, (VOID, TEXT, VOID)),
    "g_free": (None, (VOID,)),
}
SIMPLE = {"boolean": "gboolean", "int": "gint", "uint": "guint", "uint64": "guint64", "double": "gdouble", "string": "gchararray"}


@functools.cache
def functions():
    found = library.load(library.gstreamer())
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def new(lib, type_name):
    value = (ctypes.c_uint64 * 3)()  # a GValue
    lib.g_value_init(value, lib.g_type_from_name(type_name.encode()))
    return value


def make(lib, kind, content):
    """Returns: a GValue of a kind of SIMPLE, of "fraction" (a pair), or of "array" (numbers, or texts)"""
    if kind == "fraction":
        value = new(lib, "GstFraction")
        lib.gst_value_set_fraction(value, *content)
    elif kind == "array":
        value = new(lib, "GstValueArray")  # all items have one type
        kind = "int" if all(isinstance(item, int) and abs(item) < 2 ** 31 for item in content) else \
            "string" if isinstance(content[0], str) else "double"
        for item in content:
            lib.gst_value_array_append_and_take_value(value, make(lib, kind, item))
    else:
        value = new(lib, SIMPLE[kind])
        getattr(lib, "g_value_set_" + kind)(value, content.encode() if kind == "string" else content)
    return value


def set_together(element, members):
    """One change of several properties. members: (name, kind, content)"""
    lib = functions()
    structure = lib.gst_structure_new_empty(b"settings")
    for name, kind, content in members:
        lib.gst_structure_take_value(structure, name.encode(), make(lib, kind, content))
    value = new(lib, "GstStructure")
    lib.g_value_take_boxed(value, structure)
    lib.g_object_set_property(hash(element), b"settings", value)
    lib.g_value_unset(value)


def set_one(element, name, kind, content):
    lib = functions()
    value = make(lib, kind, content)
    lib.g_object_set_property(hash(element), name.encode(), value)
    lib.g_value_unset(value)


def copy(element, other, name):
    lib = functions()
    value = (ctypes.c_uint64 * 3)()
    lib.g_object_get_property(hash(element), name.encode(), value)
    lib.g_object_set_property(hash(other), name.encode(), value)
    lib.g_value_unset(value)


def read(element, name):
    """Returns: the value of a property as GStreamer writes it, None where it has no text"""
    lib = functions()
    value = (ctypes.c_uint64 * 3)()
    lib.g_object_get_property(hash(element), name.encode(), value)
    text = lib.gst_value_serialize(value)
    lib.g_value_unset(value)
    if not text:
        return None
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        lib.g_free(text)
