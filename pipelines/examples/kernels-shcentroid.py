#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The centroids of NumPy frames through libimk and ctypes, without GStreamer.

docs/reference/c-api.md explains the calls. Exit status: 77 without NumPy.
"""
import ctypes as c
import sys

try:
    import numpy as np
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

# values of imk/status.h, imk/backend.h, imk/image.h and imk/shcentroid.h
OK, BACKEND_CPU = 0, 0
TYPES = {np.dtype("u1"): 0, np.dtype("u2"): 1, np.dtype("f4"): 3}
FIELDS_XY = 1
DARK = 100  # counts of a camera without light


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("message", c.c_char * 512)]


class Image(c.Structure):
    _fields_ = [("data", c.c_void_p), ("stride", c.c_size_t), ("width", c.c_uint32),
                ("height", c.c_uint32), ("channels", c.c_uint32), ("type", c.c_int),
                ("location", c.c_int)]


class Config(c.Structure):
    """The first members of ImkShcentroidConfig; the library gives the others their defaults."""

    _fields_ = [("size", c.c_size_t), ("width", c.c_uint32), ("height", c.c_uint32), ("type", c.c_int),
                ("x0", c.c_double), ("y0", c.c_double), ("pitch_x", c.c_double), ("pitch_y", c.c_double),
                ("columns", c.c_uint32), ("rows", c.c_uint32), ("grid_rule", c.c_int),
                ("cells", c.c_void_p), ("n_cells", c.c_uint32), ("references", c.c_void_p),
                ("margin", c.c_uint32), ("dark", c.c_void_p), ("flat", c.c_void_p), ("bad", c.c_void_p),
                ("lut", c.c_void_p), ("templates", c.c_void_p), ("n_templates", c.c_uint32),
                ("template_width", c.c_uint32), ("template_height", c.c_uint32),
                ("template_source", c.c_int), ("template_cell", c.c_int32), ("template_margin", c.c_uint32),
                ("n_threads", c.c_uint32), ("fields", c.c_int)]


imk = c.CDLL("libimk.so.0")
imk.imk_shcentroid_config_init_sized.argtypes = [c.POINTER(Config), c.c_size_t]
imk.imk_shcentroid_new.argtypes = [c.c_int, c.POINTER(Config), c.POINTER(c.c_void_p), c.POINTER(Error)]
imk.imk_shcentroid_process.argtypes = [c.c_void_p, c.POINTER(Image), c.POINTER(Image), c.c_void_p,
                                       c.POINTER(Error)]
imk.imk_shcentroid_free.argtypes = [c.c_void_p]


def image_of(array):
    """An image of a 2-D array, which has to live as long."""
    if array.ndim != 2 or array.dtype not in TYPES:
        raise TypeError(f"an array of {array.ndim} dimensions and {array.dtype} is no picture of u1, u2 or f4")
    return Image(array.ctypes.data, array.strides[0], array.shape[1], array.shape[0], 1, TYPES[array.dtype], 0)


class Centroids:
    """Centroids of frames that are columns x rows cells of pitch x pitch pixels."""

    def __init__(self, columns, rows, pitch, dtype, dark=None):
        self.config, self.error, self.self = Config(), Error(), c.c_void_p()
        imk.imk_shcentroid_config_init_sized(self.config, c.sizeof(Config))
        self.config.width, self.config.height = columns * pitch, rows * pitch
        self.config.columns, self.config.rows = columns, rows
        self.config.pitch_x = self.config.pitch_y = pitch
        self.config.type, self.config.fields = TYPES[np.dtype(dtype)], FIELDS_XY
        if dark is not None:
            dark = np.ascontiguousarray(dark, "f4")
            if dark.shape != (rows * pitch, columns * pitch):
                raise ValueError(f"the dark frame is {dark.shape}, the frames are {(rows * pitch, columns * pitch)}")
            self.config.dark = dark.ctypes.data  # read by imk_shcentroid_new alone
        self.check(imk.imk_shcentroid_new(BACKEND_CPU, self.config, self.self, self.error))
        self.n_cells = columns * rows

    def check(self, status):
        if status != OK:
            raise ValueError(self.error.message.decode())

    def measure(self, frame):
        """Returns: x and y of each cell, in pixels."""
        frame = np.ascontiguousarray(frame)
        out = np.empty((self.n_cells, 2), "f4")
        self.check(imk.imk_shcentroid_process(self.self, image_of(frame), image_of(out), None, self.error))
        return out

    def __del__(self):
        imk.imk_shcentroid_free(self.self)


def main():
    columns, rows, pitch, shift = 8, 6, 20, np.array([1.25, -0.5])
    y, x = np.mgrid[0 : rows * pitch, 0 : columns * pitch] % pitch - (pitch / 2 - 0.5)
    spots = 4000 * np.exp(-((x - shift[0]) ** 2 + (y - shift[1]) ** 2) / 4.5)
    frame = (DARK + spots).astype("u2")
    dark = np.full(frame.shape, DARK, "f4")

    centroids = Centroids(columns, rows, pitch, "u2", dark)
    measured = centroids.measure(frame)
    row, column = np.divmod(np.arange(rows * columns), columns)
    expected = np.stack([column, row], axis=1) * pitch + pitch / 2 - 0.5 + shift
    worst = np.hypot(*(measured - expected).T).max()
    print(measured[:3], f"largest error: {worst:.4f} pixels", sep="\n")
    assert worst < 0.01

    # errors are sentences
    try:
        Centroids(columns, rows, 0, "u2")
    except ValueError as error:
        print("As it should be:", error)
    else:
        sys.exit("a pitch of 0 was taken")


main()
