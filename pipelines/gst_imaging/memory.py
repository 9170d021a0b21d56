# SPDX-License-Identifier: LGPL-2.1-or-later
"""Views of the samples of a buffer for NumPy, CuPy and PyTorch, without a copy, by the DLPack protocol.

    sample = appsink.emit("try-pull-sample", Gst.SECOND)
    frame = numpy.from_dlpack(memory.as_dlpack(sample))     # or cupy, torch

The array is a view where the samples are: as_dlpack(sample).device says "cpu" or "cuda". The buffer stays mapped, and out
of its pool, until the last array over it is gone. Others may hold the same buffer, so do not write into the array.
"""
import ctypes

from .library import LIBRARY, GError, gstreamer, load

CPU, CUDA = 1, 2


class Tensor(ctypes.Structure):
    """GstImagingDlTensor, which is DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("n_dims", ctypes.c_int32), ("type_code", ctypes.c_uint8), ("type_bits", ctypes.c_uint8),
                ("type_lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


api = ctypes.PyDLL(None)  # a copy of pythonapi, whose types others may set
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
NAME = b"dltensor"  # kept: a capsule has no copy


class Library:
    """The functions of libgstimaging for views."""

    def __init__(self, functions):
        self.functions = functions
        self.new = functions.gst_imaging_dlpack_new
        self.new.restype = ctypes.POINTER(Tensor)
        self.new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p]
        self.free = functions.gst_imaging_dlpack_free
        self.free.restype = None
        self.free.argtypes = [ctypes.c_void_p]
        # by address: the capsule is being freed, so nothing may hold it
        self.release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.release_capsule)
        api.Py_IncRef(ctypes.py_object(self.release))  # capsules may outlive this module

    def release_capsule(self, capsule):
        if api.PyCapsule_IsValid(capsule, NAME):  # a consumer would have renamed it
            self.free(api.PyCapsule_GetPointer(capsule, NAME))

    def view(self, buffer, caps, index):
        error = ctypes.POINTER(GError)()
        tensor = self.new(buffer, caps, index, ctypes.byref(error))
        if tensor:
            return tensor
        sentence = error.contents.message.decode(errors="replace")
        self.functions.g_error_free(error)
        raise BufferError(sentence)


library = None


def get_library():
    global library
    if not library:
        functions = load(gstreamer())
        if not functions:
            raise RuntimeError(f"GStreamer finds no plug-in of gst-imaging, and so no {LIBRARY}; see gst-imaging info.")
        library = Library(functions)
    return library


class View:
    """An object of the DLPack protocol: give it to numpy.from_dlpack, cupy.from_dlpack or torch.from_dlpack."""

    def __init__(self, buffer, caps, index):
        self.tensor = None
        self.source = buffer, caps, index
        self.tensor = self.make()
        self.where = self.tensor.contents.device_type, self.tensor.contents.device_id

    def make(self):
        buffer, caps, index = self.source
        # hash() of a boxed object of PyGObject is its address
        return get_library().view(hash(buffer), hash(caps) if caps else None, index)

    @property
    def device(self):
        return "cuda" if self.where[0] == CUDA else "cpu"

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Samples on a device are complete already, so any stream may read them."""
        if copy:
            raise BufferError("as_dlpack() gives views; copy the array that is made of it.")
        if dl_device not in (None, self.where):
            raise BufferError(f"The samples are on device {self.where}, not on {tuple(dl_device)}.")
        tensor, self.tensor = self.tensor or self.make(), None
        return api.PyCapsule_New(tensor, NAME, get_library().release)

    def __del__(self):
        if self.tensor:
            get_library().free(self.tensor)


def as_dlpack(buffer, caps=None, index=0):
    """A View of a Gst.Buffer, or of a Gst.Sample, which has its caps.

    caps: what the buffer holds; not needed for video with a GstVideoMeta. index: the plane of video, or the tensor.
    A plane is [height, width] or [height, width, channels], with the padding of its rows as strides; a tensor has its
    dimensions, the slowest first. Raises BufferError with a sentence where there is no view without a copy.
    """
    Gst = gstreamer()
    if isinstance(buffer, Gst.Sample):
        buffer, caps = buffer.get_buffer(), caps or buffer.get_caps()
    if not isinstance(buffer, Gst.Buffer):  # as appsink gives at the end of the stream
        raise TypeError(f"as_dlpack() takes a Gst.Buffer or a Gst.Sample with one, not {type(buffer).__name__}.")
    if isinstance(caps, str):
        caps = Gst.Caps.from_string(caps)
    if caps is not None and not isinstance(caps, Gst.Caps):
        raise TypeError(f"caps are Gst.Caps or text that is such, not {type(caps).__name__}.")
    return View(buffer, caps, index)
