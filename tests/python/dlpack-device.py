#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Views of device memory, which CuPy reads where it is. Needs neither PyGObject nor plug-ins: libgstimaging through
ctypes. Run by tests/gpu; with the mock, or without CuPy, all but the samples is checked.

Usage: dlpack-device.py, with IMK_MODULE_PATH and LD_LIBRARY_PATH as tests/gpu sets them
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "pipelines"))
from gst_imaging import memory

WIDTH, HEIGHT = 61, 5
PICTURE = "video/x-raw,format={},width=61,height=5,framerate=25/1"
DEVICE, READ, READ_WRITE = 1, 1, 3  # GST_IMAGING_MEMORY_DEVICE, GstMapFlags
PATTERN = bytes(i % 251 for i in range(1 << 16))


class Error(ctypes.Structure):
    """ImkError; longer than any."""

    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 4092)]


class Functions:
    """Functions of a library. All return a pointer, unless a type is given."""

    def __init__(self, library, **types):
        self.library, self.types = library, types

    def __getattr__(self, name):
        function = getattr(self.library, name)
        function.restype = self.types.get(name, ctypes.c_void_p)
        return function


def pointer(address):
    return ctypes.c_void_p(address)


def check(condition, sentence):
    if not condition:
        sys.exit("FAILED: " + sentence)


def ok(status, error):
    check(status == 0, error.message.decode(errors="replace"))


gst = Functions(ctypes.CDLL("libgstreamer-1.0.so.0"), gst_buffer_fill=ctypes.c_size_t,
                gst_buffer_get_size=ctypes.c_size_t, gst_buffer_pool_acquire_buffer=ctypes.c_int)
library = ctypes.CDLL(memory.LIBRARY)
imaging = Functions(library, gst_imaging_context_push=ctypes.c_int, gst_imaging_memory_acquire=ctypes.c_int,
                    gst_imaging_memory_release=ctypes.c_int, gst_imaging_memory_is_on_device=ctypes.c_int)
gst.gst_init(None, None)
memory.library = memory.Library(library)
library.g_error_free.argtypes = [ctypes.c_void_p]
gray, rgba = (gst.gst_caps_from_string(PICTURE.format(name).encode()) for name in ("GRAY8", "RGBA"))


def fill(buffer):
    size = gst.gst_buffer_get_size(pointer(buffer))
    check(gst.gst_buffer_fill(pointer(buffer), ctypes.c_size_t(0), PATTERN, ctypes.c_size_t(size)) == size, "no fill")


def make_imaging(error):
    """A buffer whose samples are on the device alone."""
    context = imaging.gst_imaging_context_get(-1, ctypes.byref(error))
    check(context, error.message.decode(errors="replace"))
    ok(imaging.gst_imaging_context_push(pointer(context), ctypes.byref(error)), error)
    allocator = imaging.gst_imaging_allocator_new(pointer(context), DEVICE, None)
    buffer = gst.gst_buffer_new_allocate(pointer(allocator), ctypes.c_size_t(64 * HEIGHT), None)
    fill(buffer)
    place, location = ctypes.c_void_p(), ctypes.c_int()
    first = pointer(gst.gst_buffer_peek_memory(pointer(buffer), 0))
    ok(imaging.gst_imaging_memory_acquire(first, None, READ_WRITE, 0, None, ctypes.byref(place), ctypes.byref(location),
                                          ctypes.byref(error)), error)
    ok(imaging.gst_imaging_memory_release(first, None, READ_WRITE, 0, ctypes.byref(error)), error)
    check(imaging.gst_imaging_memory_is_on_device(first), "the samples are not on the device")
    return buffer, place.value


def make_cuda():
    """A pool of one RGBA picture in CUDAMemory, which has no GRAY8; None without GstCuda or a driver."""
    try:
        cuda = Functions(ctypes.CDLL("libgstcuda-1.0.so.0"), gst_cuda_load_library=ctypes.c_int)
    except OSError:
        return None
    context = cuda.gst_cuda_load_library() and cuda.gst_cuda_context_new(0)
    if not context:
        return None
    cuda.gst_cuda_memory_init_once()
    pool = cuda.gst_cuda_buffer_pool_new(pointer(context))
    config = gst.gst_buffer_pool_get_config(pointer(pool))
    gst.gst_buffer_pool_config_set_params(pointer(config), pointer(rgba), 4 * WIDTH * HEIGHT, 1, 1)
    gst.gst_buffer_pool_set_config(pointer(pool), pointer(config))
    gst.gst_buffer_pool_set_active(pointer(pool), 1)
    buffer = ctypes.c_void_p()
    check(gst.gst_buffer_pool_acquire_buffer(pointer(pool), ctypes.byref(buffer), None) == 0, "the pool gives no buffer")
    fill(buffer.value)
    return pool, buffer.value


def check_view(view, cupy, channels=()):
    """The view, which CuPy takes over, is a [HEIGHT, WIDTH, *channels] of the pattern. Returns: its address."""
    check(view.device == "cuda", f"the view is on {view.where}")
    tensor = view.tensor.contents
    shape = (HEIGHT, WIDTH, *channels)
    check(tuple(tensor.shape[:tensor.n_dims]) == shape, f"the shape is {tensor.shape[:tensor.n_dims]}")
    stride, width = tensor.strides[0], WIDTH * sum(channels or (1,))
    check(tensor.strides[tensor.n_dims - 1] == 1 and stride >= width, f"the strides are {tensor.strides[:tensor.n_dims]}")
    address = tensor.data
    if cupy:
        array = cupy.from_dlpack(view)
        check(array.data.ptr == address, "CuPy has copied")
        found = cupy.asnumpy(array).reshape(HEIGHT, width).tolist()
        expected = [list(PATTERN[y * stride:y * stride + width]) for y in range(HEIGHT)]
        check(found == expected, "CuPy reads other samples")
        check(int(array.astype("int64").sum()) == sum(map(sum, expected)), "another sum on the device")
    return address


def main():
    try:
        import cupy
    except ImportError:
        cupy = None
        print("skipped: CuPy is not installed, so no sample was read on the device")
    error = Error()
    buffer, place = make_imaging(error)
    check(check_view(memory.View(buffer, gray, 0), cupy) == place, "the view is elsewhere")
    check(check_view(memory.View(buffer, gray, 0), cupy) == place, "a second view is elsewhere")
    gst.gst_mini_object_unref(pointer(buffer))
    made = make_cuda()
    if made:
        pool, buffer = made
        view = memory.View(buffer, rgba, 0)
        check_view(memory.View(buffer, rgba, 0), cupy, (4,))
        gst.gst_mini_object_unref(pointer(buffer))
        # GstBufferPoolAcquireParams: format, start, stop, flags
        now = (ctypes.c_uint64 * 12)()
        ctypes.cast(now, ctypes.POINTER(ctypes.c_int))[6] = 2  # DONTWAIT
        again = ctypes.c_void_p()
        check(gst.gst_buffer_pool_acquire_buffer(pointer(pool), ctypes.byref(again), now) != 0,
              "the buffer is in its pool, and there is a view")
        del view
        check(gst.gst_buffer_pool_acquire_buffer(pointer(pool), ctypes.byref(again), now) == 0,
              "the buffer is not in its pool after the view")
    else:
        print("skipped: no GstCuda with a device, so no CUDAMemory")
    print("100%: views of device memory")


main()
