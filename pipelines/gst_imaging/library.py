# SPDX-License-Identifier: LGPL-2.1-or-later
"""GStreamer with our plug-ins, and libgstimaging through ctypes, which needs no typelib."""
import contextlib
import ctypes
import math
import os
import re

from .command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure

LIBRARY = "libgstimaging-1.0.so.0"
SIDECAR_SCHEMA = "gst-imaging-sidecar-v1"  # of the .json beside a file
NO_CENTROID = 227  # IMK_SHCENTROID_INVALID_MASK: flags of a cell without a centroid


class GError(ctypes.Structure):
    _fields_ = [("domain", ctypes.c_uint32), ("code", ctypes.c_int), ("message", ctypes.c_char_p)]


class FileNumber(ctypes.Structure):
    """Where the name of numbered files has the number, such as %05d."""

    _fields_ = [("at", ctypes.c_size_t), ("size", ctypes.c_size_t), ("width", ctypes.c_uint), ("zeros", ctypes.c_int)]


class PtrArray(ctypes.Structure):
    """GPtrArray of texts"""

    _fields_ = [("texts", ctypes.POINTER(ctypes.c_char_p)), ("n", ctypes.c_uint)]


class FileList(ctypes.Structure):
    """GstImagingFileList"""

    _fields_ = [("names", ctypes.POINTER(PtrArray)), ("missing", ctypes.c_void_p), ("notes", ctypes.POINTER(PtrArray))]


class Array(ctypes.Structure):
    """GstImagingNdArray; the members behind cards are its own."""

    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("n_dims", ctypes.c_uint),
                ("dims", ctypes.c_uint64 * 8), ("n_values", ctypes.c_uint64), ("data_offset", ctypes.c_uint64),
                ("big_endian", ctypes.c_int), ("data", ctypes.c_void_p), ("axes", ctypes.c_char * 9),
                ("orientation", ctypes.c_uint), ("cards", ctypes.POINTER(ctypes.c_char_p)),
                ("records", ctypes.c_void_p), ("bytes", ctypes.c_void_p), ("fortran_order", ctypes.c_int)]


class ImkError(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 512)]


class Light(ctypes.Structure):
    """ImkPhotostereoLight"""

    _fields_ = [("vector", ctypes.c_double * 3), ("intensity", ctypes.c_double * 16), ("n_bands", ctypes.c_uint32)]


class LightList(ctypes.Structure):
    """ImkPhotostereoLights"""

    _fields_ = [("n", ctypes.c_uint32), ("lights", ctypes.POINTER(Light)), ("kind", ctypes.c_int)]


DIRECTIONS = 1  # IMK_PHOTOSTEREO_KIND_DIRECTIONS
MAX_TEXT = 16 << 20  # GST_IMAGING_FILE_MAX_NUMBERS
P, TEXT, ARRAY, U64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Array), ctypes.c_uint64  # a path is a TEXT
# Result and arguments of each function; the last argument of those that can fail is a GError. A text to be freed is a P.
FUNCTIONS = {
    "g_error_free": (None, [P]),
    "g_free": (None, [P]),
    "g_strfreev": (None, [P]),
    "gst_imaging_array_reader_describe_parts": (P, [P]),
    "gst_imaging_array_reader_free": (None, [P]),
    "gst_imaging_array_reader_get_array": (ARRAY, [P]),
    "gst_imaging_array_reader_get_n_pages": (U64, [P]),
    "gst_imaging_array_reader_get_note": (TEXT, [P]),
    "gst_imaging_array_reader_new_part": (P, [TEXT, U64, ctypes.c_int, P]),
    "gst_imaging_array_reader_read": (ctypes.c_int, [P, U64, P, P]),
    "gst_imaging_describe": (P, []),
    "gst_imaging_description_add": (None, [ARRAY, P, TEXT]),
    "gst_imaging_description_at": (P, [P, U64]),
    "gst_imaging_description_free": (None, [P]),
    "gst_imaging_description_get_fault": (TEXT, [P]),
    "gst_imaging_description_get_note": (TEXT, [P]),
    "gst_imaging_description_new": (P, [ARRAY, TEXT]),
    "gst_imaging_description_translate": (ctypes.POINTER(TEXT), [ARRAY, TEXT, TEXT, ctypes.c_int64]),
    "gst_imaging_file_list_add": (ctypes.c_int, [P, TEXT, P]),
    "gst_imaging_file_list_clear": (None, [P]),
    "gst_imaging_file_list_init": (None, [P]),
    "gst_imaging_file_load": (P, [TEXT, ctypes.c_size_t, P, P]),
    "gst_imaging_file_number_find": (ctypes.c_int, [P, TEXT, P]),
    "gst_imaging_file_number_put": (P, [P, TEXT, U64]),
    "gst_imaging_formats_get_name": (TEXT, [TEXT]),
    "gst_imaging_formats_have_cards": (ctypes.c_int, [TEXT]),
    "gst_imaging_formats_know": (ctypes.c_int, [TEXT]),
    "gst_imaging_nd_array_free": (None, [ARRAY]),
    "gst_imaging_nd_array_load_part": (ARRAY, [TEXT, ctypes.c_int, P]),
    "gst_imaging_nd_array_save": (ctypes.c_int, [ARRAY, TEXT, P]),
    "gst_imaging_nd_array_type_name": (TEXT, [ctypes.c_int]),
    "gst_structure_free": (None, [P]),
    "gst_structure_from_string": (P, [TEXT, P]),
    "gst_structure_to_string": (P, [P]),
    "imk_photostereo_lights_clear": (None, [P]),
    "imk_photostereo_lights_parse": (ctypes.c_int, [TEXT, ctypes.c_size_t, TEXT, P, P]),
}

# What callbacks in streaming threads get
STRUCTURES = ("Buffer", "Caps", "Event", "MapInfo", "Message", "PadProbeInfo", "Query", "Sample", "Segment", "Structure", "TagList")


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
    build_classes(Gst)
    return Gst


def build_classes(Gst):
    """PyGObject builds a class at its first use. Where two threads use one first at the same time, one of them has a class without
    methods (gi/types.py, StructMeta); probes and callbacks run in such threads."""
    for name in STRUCTURES:
        getattr(Gst, name)


def numpy():
    try:
        import numpy
    except ImportError as error:
        raise Failure(WRONG_USE, "NumPy is missing: on Debian, install python3-numpy, and use /usr/bin/python3.") from error
    return numpy


def plugins(Gst):
    """Returns: our plug-ins in the registry"""
    return [p for p in Gst.Registry.get().get_plugin_list() if p.get_package() == "gst-imaging"]


def member(value, number):
    """Returns: the one with this number of the enumeration or flags of a value. PyGObject 3.50 tells defaults as numbers"""
    return type(value)(int(number))


def members(value):
    """Returns: all of the enumeration or flags of a value; PyGObject 3.50 does not tell them of a property"""
    kind = type(value)
    known = getattr(kind, "__enum_values__", None) or getattr(kind, "__flags_values__", None)
    return list(known.values()) if known else list(kind)


def load(Gst):
    """Returns: libgstimaging; None without a plug-in to find it by"""
    for plugin in plugins(Gst):
        if plugin.load():  # with it the library, which has no place of its own in a build folder
            library = ctypes.CDLL(LIBRARY)
            for name, (result, arguments) in FUNCTIONS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
            return library
    return None


def functions_of():
    """Returns: libgstimaging, or a Failure"""
    functions = load(gstreamer())
    if not functions:
        raise Failure(WRONG_USE, "GStreamer finds no plug-in of gst-imaging; see gst-imaging info.")
    return functions


def take_text(functions, text):
    """Returns: a text of the library, which is freed; None for none"""
    try:
        return ctypes.string_at(text).decode(errors="replace") if text else None
    finally:
        functions.g_free(text)


def describe(Gst):
    """Returns: what gst_imaging_describe () says, as text; None without the library"""
    library = load(Gst)
    if not library:
        return None
    return take_text(library, library.gst_imaging_describe())


def knows(Gst, path):
    """Returns: whether picturesrc takes a file of a folder, and does not leave it out as a stranger"""
    return bool(load(Gst).gst_imaging_formats_know(os.fsencode(path)))


def format_of(path):
    """Returns: the format that the extension of a name stands for, such as "TIFF"; None for none"""
    name = functions_of().gst_imaging_formats_get_name(os.fsencode(path))
    return name and name.decode()


def has_cards(path):
    """Returns: whether a file that is written to this name has a place for units and other cards"""
    return bool(functions_of().gst_imaging_formats_have_cards(os.fsencode(path)))


def natural(path):
    """The key of the order in which picturesrc plays the files of a folder: 2 before 10, capital letters before others."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split("([0-9]+)", path) if part], path


NUMPY_TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
               "f16": "f2", "f32": "f4", "f64": "f8", "bool": "?", "complex64": "c8", "complex128": "c16"}


def type_name(np, values):
    """Returns: the type of an array of NumPy as files call it"""
    return next(name for name, dtype in NUMPY_TYPES.items() if np.dtype(dtype) == values.dtype)


def call(functions, code, function, *arguments):
    """Returns: what a function does whose last argument is a GError, which becomes a Failure"""
    error = ctypes.POINTER(GError)()
    result = function(*arguments, ctypes.byref(error))
    if not result:
        sentence = error.contents.message.decode(errors="replace")
        functions.g_error_free(error)
        raise Failure(code, sentence)
    return result


def load_text(path, most=MAX_TEXT):
    """Returns: the bytes of a text file as large as the elements take it"""
    functions, size = functions_of(), ctypes.c_size_t()
    text = call(functions, UNREADABLE, functions.gst_imaging_file_load, os.fsencode(path), most, ctypes.byref(size))
    try:
        return ctypes.string_at(text, size.value)
    finally:
        functions.g_free(text)


def parse_lights(content, name):
    """content: of a light file of any form, as photostereo reads it. Returns: x y z and red green blue of each light, and whether they
    are directions"""
    functions, found, error = functions_of(), LightList(), ImkError()
    if functions.imk_photostereo_lights_parse(content, len(content), os.fsencode(name), ctypes.byref(found), ctypes.byref(error)):
        raise Failure(UNREADABLE, error.message.decode(errors="replace"))
    lights = found.lights[:found.n]
    try:
        return [light.vector[:] for light in lights], [light.intensity[:3] for light in lights], found.kind == DIRECTIONS
    finally:
        functions.imk_photostereo_lights_clear(ctypes.byref(found))


def numbered(path, numbers=()):
    """Returns: the files with these numbers as picturesink names them; None for a path without a place for a number"""
    functions = functions_of()
    place = FileNumber()
    name = os.fsencode(path)
    call(functions, WRONG_USE, functions.gst_imaging_file_number_find, ctypes.byref(place), name)
    if place.size == 0:
        return None
    files = []
    for number in numbers:
        text = functions.gst_imaging_file_number_put(ctypes.byref(place), name, number)
        files.append(os.fsdecode(ctypes.string_at(text)))
        functions.g_free(text)
    return files


def list_files(path):
    """Returns: the files that picturesrc would play for a path: a file, a folder, a name with * or ?, or with a number such as
    %05d; and notes for the user: numbers that are missing, files that are left out"""
    functions, found = functions_of(), FileList()
    functions.gst_imaging_file_list_init(ctypes.byref(found))
    try:
        call(functions, UNREADABLE, functions.gst_imaging_file_list_add, ctypes.byref(found), os.fsencode(path))
        names, notes = ([texts.contents.texts[i] for i in range(texts.contents.n)] for texts in (found.names, found.notes))
    finally:
        functions.gst_imaging_file_list_clear(ctypes.byref(found))
    return [os.fsdecode(name) for name in names], [note.decode(errors="replace") for note in notes]


class Arrays:
    """Reads and writes arrays and pictures in every format that the library knows.

    `part`: which of several pictures of a file is read, from 0 on; -1: all pages, of FITS the first unit with a picture.
    """

    MOST = 2 ** 31 - 2  # as the property part of picturesrc; C would take the lowest bits of a larger one

    def __init__(self, part=-1):
        if not -1 <= part <= self.MOST:
            raise Failure(WRONG_USE, f"--part is {part}, and goes from 0 to {self.MOST}.")
        self.part = part
        self.functions = functions_of()

    def call(self, code, function, *arguments):
        return call(self.functions, code, function, *arguments)

    def load(self, path):
        return self.call(UNREADABLE, self.functions.gst_imaging_nd_array_load_part, os.fsencode(path), self.part)

    @contextlib.contextmanager
    def reader(self, path):
        """For with: (what reads a file, its array without values)"""
        functions = self.functions
        reader = self.call(UNREADABLE, functions.gst_imaging_array_reader_new_part, os.fsencode(path), 2 ** 63 - 1, self.part)
        try:
            yield reader, functions.gst_imaging_array_reader_get_array(reader)
        finally:
            functions.gst_imaging_array_reader_free(reader)

    def parts(self, path):
        """Returns: the pictures of a file of which one is read, as text; None where all of it is read"""
        with self.reader(path) as (reader, _array):
            return take_text(self.functions, self.functions.gst_imaging_array_reader_describe_parts(reader))

    def doubt(self, path):
        """Returns: a sentence, where a file may be meant otherwise than it is read; else None"""
        with self.reader(path) as (reader, _array):
            note = self.functions.gst_imaging_array_reader_get_note(reader)
            return note and note.decode(errors="replace")

    def save(self, array, path):
        self.call(NOT_WRITTEN, self.functions.gst_imaging_nd_array_save, array, os.fsencode(path))

    def save_values(self, np, path, values, quantity=None):
        """quantity: as metadata.quantity() returns it, of all frames; written as picturesink does"""
        name, functions = type_name(np, values), self.functions
        kind = next(kind for kind in range(len(NUMPY_TYPES)) if functions.gst_imaging_nd_array_type_name(kind) == name.encode())
        array = Array(type=kind)
        reference = ctypes.pointer(array)
        self.replace_values(reference, values)
        try:
            if quantity:
                self.add_quantity(reference, path, quantity)
            self.save(reference, path)
        finally:
            functions.g_strfreev(array.cards)

    def add_quantity(self, array, path, quantity):
        told = gstreamer().Structure.new_empty("GstImagingQuantity")
        axes = {f"axis-{i}-{key}": value for i, axis in enumerate(quantity.get("axes", [])) if axis for key, value in axis.items()}
        for key, value in {**quantity, **axes}.items():
            if key in ("scale", "offset") or key.endswith(("-step", "-origin")):
                told.set_value(key, float(value))
            elif isinstance(value, str):
                told.set_value(key, value)
        structure = self.functions.gst_structure_from_string(told.to_string().encode(), None)
        self.functions.gst_imaging_description_add(array, structure, os.fsencode(path))
        self.functions.gst_structure_free(structure)

    def replace_values(self, array, values):
        """Makes an array one of these values, which have its type and have to stay until it is saved. Its cards stay."""
        contents = array.contents
        axes = contents.axes.decode()
        if axes and values.ndim != len(axes):
            axes = axes.removeprefix("n") if values.ndim < len(axes) else "n" + axes
        contents.axes = axes.encode() if values.ndim == len(axes) else b""
        contents.n_dims, contents.n_values = values.ndim, values.size
        contents.dims[:] = [*values.shape] + [1] * (8 - values.ndim)
        contents.data = values.ctypes.data

    def translate(self, array, source, target, frame=-1):
        """Changes the cards of an array for another format; frame: for the file of this frame alone. Returns: members of its
        quantity, as GstImagingQuantity has them"""
        functions = self.functions
        members = functions.gst_imaging_description_translate(array, os.fsencode(source), os.fsencode(target), frame)
        try:
            told = {}
            while members[len(told)]:
                key, _sign, value = members[len(told)].decode(errors="replace").partition("=")
                told[key] = value
        finally:
            functions.g_strfreev(members)
        return told

    def note(self, array, path):
        """Returns: a sentence about damaged numbers in what is told of an array, which are not used; None without"""
        functions = self.functions
        description = functions.gst_imaging_description_new(array, os.fsencode(path))
        note = functions.gst_imaging_description_get_note(description)
        functions.gst_imaging_description_free(description)
        return note and note.decode(errors="replace")

    def refuse_fault(self, path):
        """Raises Failure where the file beside an array is cut, empty or about another array."""
        functions = self.functions
        with self.reader(path) as (_reader, array):
            description = functions.gst_imaging_description_new(array, os.fsencode(path))
            fault = functions.gst_imaging_description_get_fault(description)
            sentence = fault and fault.decode(errors="replace")
            functions.gst_imaging_description_free(description)
        if sentence:
            raise Failure(UNREADABLE, sentence)

    def quantities(self, reader, path, most=2 ** 63):
        """Returns: the quantity of each page, up to @most, of a file that is open, as members of GstImagingQuantity; {} for none"""
        Gst = gstreamer()
        functions = self.functions
        description = functions.gst_imaging_description_new(functions.gst_imaging_array_reader_get_array(reader), os.fsencode(path))
        found = []
        for page in range(min(most, functions.gst_imaging_array_reader_get_n_pages(reader))):
            told = functions.gst_imaging_description_at(description, page)
            if not told:
                found.append({})
                continue
            structure = Gst.Structure.from_string(take_text(functions, functions.gst_structure_to_string(told)))[0]
            names = [structure.nth_field_name(i) for i in range(structure.n_fields())]
            found.append({name: structure.get_value(name) for name in names})
            functions.gst_structure_free(told)
        functions.gst_imaging_description_free(description)
        return found

    def about(self, path):
        """Returns: note() and quantities() of the first pages of a file, whose values are not read; and the orientation of EXIF by
        which it is turned, 2 to 8, or 0"""
        with self.reader(path) as (reader, array):
            turned = array.contents.orientation
            return self.note(array, path), self.quantities(reader, path, 1000), turned if turned > 1 else 0

    def quantities_of(self, path):
        """Returns: quantities() of a file, whose values are not read"""
        with self.reader(path) as (reader, _array):
            return self.quantities(reader, path)

    def cards(self, array):
        """Returns: what the file tells beside its values, as (key, value)"""
        found = []
        while array.contents.cards and array.contents.cards[len(found)]:
            found.append(tuple(array.contents.cards[len(found)].decode(errors="replace").partition("=")[::2]))
        return found

    def cards_of(self, path):
        """Returns: cards of a file, whose values are not read"""
        with self.reader(path) as (_reader, array):
            return self.cards(array)

    def free(self, array):
        self.functions.gst_imaging_nd_array_free(array)

    def type_name(self, array):
        return self.functions.gst_imaging_nd_array_type_name(array.contents.type).decode()

    def orientation(self, path):
        """Returns: the orientation of EXIF, 1 to 8, that a TIFF file tells. Of JPEG and RAW it is applied by the library."""
        told = dict(self.cards_of(path)).get("Orientation", "1")
        return int(told) if told in ("2", "3", "4", "5", "6", "7", "8") else 1

    def axes(self, path):
        """Returns: a letter for each dimension of a file, as nyxc; "" where it tells none"""
        with self.reader(path) as (_reader, array):
            return array.contents.axes.decode()

    def kind(self, path):
        """Returns: type and shape of a file, of which only the beginning is read where the format allows it"""
        with self.reader(path) as (_reader, array):
            return self.type_name(array), tuple(array.contents.dims[:array.contents.n_dims])

    def read(self, path):
        """Returns: all of an array or a picture"""
        pages = [(shape, values.copy()) for shape, _start, values in self.pages(path)]
        if not pages:
            raise Failure(UNREADABLE, f"{path} has no values: the first of its axes is empty. Write the file again, or name another one.")
        return numpy().concatenate([values for _shape, values in pages]).reshape(pages[0][0])

    def pages(self, path, quantities=None):
        """Generates (shape of the array, index of the first value, values) of one page after the other.
        @quantities: a list that gets the quantity of each page before the first one"""
        np = numpy()
        functions = self.functions
        with self.reader(path) as (reader, array):
            shape = array.contents.dims[:array.contents.n_dims]
            n_pages = functions.gst_imaging_array_reader_get_n_pages(reader)
            if quantities is not None:
                quantities += self.quantities(reader, path)
            values = np.empty(math.prod(shape) // max(n_pages, 1), NUMPY_TYPES[self.type_name(array)])
            for page in range(n_pages):
                self.call(UNREADABLE, functions.gst_imaging_array_reader_read, reader, page, values.ctypes.data)
                yield shape, page * values.size, values
