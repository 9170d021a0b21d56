# SPDX-License-Identifier: LGPL-2.1-or-later
"""RSLC files as of NISAR: HDF5 whose samples are pairs of half floats, which GDAL opens as a subdataset."""
import ctypes
import ctypes.util
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, gst_imaging, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import slcs

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None

WIDTH, HEIGHT = 400, 300
NAME = "/science/LSAR/RSLC/swaths/frequencyA/HH"
found = ctypes.util.find_library("hdf5_serial") or ctypes.util.find_library("hdf5")


def write_rslc(path, image):
    """By the library of HDF5 that GDAL uses; the type is what h5py and NISAR have for complex numbers of 32 bits."""
    hdf5 = ctypes.CDLL(found)
    handle, default = ctypes.c_int64, 0  # hid_t of HDF5 1.10 and later
    for function in ("H5Fcreate", "H5Tcopy", "H5Tcreate", "H5Screate_simple", "H5Pcreate", "H5Dcreate2"):
        getattr(hdf5, function).restype = handle

    def call(function, *arguments):
        result = getattr(hdf5, function)(*arguments)
        assert result >= 0, function
        return handle(result)

    call("H5open")
    half = call("H5Tcopy", handle.in_dll(hdf5, "H5T_IEEE_F32LE_g"))
    call("H5Tset_fields", half, *map(ctypes.c_size_t, (15, 10, 5, 0, 10)))
    call("H5Tset_size", half, ctypes.c_size_t(2))
    call("H5Tset_ebias", half, ctypes.c_size_t(15))
    pair = call("H5Tcreate", 6, ctypes.c_size_t(4))  # H5T_COMPOUND
    for place, name in enumerate((b"r", b"i")):
        call("H5Tinsert", pair, name, ctypes.c_size_t(2 * place), half)
    file = call("H5Fcreate", path.encode(), 2, handle(default), handle(default))
    space = call("H5Screate_simple", 2, (ctypes.c_uint64 * 2)(*image.shape), None)
    links = call("H5Pcreate", handle.in_dll(hdf5, "H5P_CLS_LINK_CREATE_ID_g"))
    call("H5Pset_create_intermediate_group", links, 1)
    data = call("H5Dcreate2", file, NAME.encode(), pair, space, links, handle(default), handle(default))
    values = np.stack((image.real, image.imag), -1).astype("<f2")
    call("H5Dwrite", data, pair, handle(default), handle(default), handle(default), values.ctypes.data_as(ctypes.c_void_p))
    for close, what in ("H5Dclose", data), ("H5Pclose", links), ("H5Sclose", space), ("H5Fclose", file):
        call(close, what)
    return values.astype(np.float32).view(np.complex64)[..., 0]


@unittest.skipUnless(found, "the library of HDF5 is not installed")
@unittest.skipUnless(gdal and gdal.GetDriverByName("HDF5"), "GDAL reads no HDF5 here")
class Nisar(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_an_interferogram_is_that_of_the_samples(self):
        slcs.make_pair(self.folder, WIDTH, HEIGHT)
        for name in "ref", "sec":
            samples = write_rslc(self.path(name + ".h5"), slcs.read(self.path(name + ".SLC"), WIDTH))
            np.save(self.path(name + ".npy"), samples)
        names = {"out": [f'HDF5:"{self.path("ref.h5")}":/{NAME}', f'HDF5:{self.path("sec.h5")}:/{NAME}'],
                 "same": [self.path("ref.npy"), self.path("sec.npy")]}
        for out, images in names.items():
            gst_imaging("insar", *images, "-o", self.path(out), "--looks", "4", "4")
        for name in "phase.img", "coherence.img":
            numbers = [np.fromfile(os.path.join(self.path(out), name), "<f4") for out in names]
            self.assertEqual(numbers[0].size, WIDTH * HEIGHT // 16)
            np.testing.assert_array_equal(*numbers)
        self.assertGreater(np.nanmean(numbers[0]), 0.7)

    def test_a_missing_file_is_named(self):
        printed = gst_imaging("insar", f'HDF5:"{self.path("no.h5")}":/{NAME}', f'HDF5:"{self.path("no.h5")}":/{NAME}', "-o", self.path("out"), status=3)
        self.assertIn(f'There is no file "{self.path("no.h5")}"', printed)


if __name__ == "__main__":
    main()
