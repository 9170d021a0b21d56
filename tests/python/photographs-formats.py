# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging photostereo: photographs of many formats, against a scene that is known."""
import os
import shutil
import struct
import unittest

import numpy as np

from photographscene import HEIGHT, PNG, WIDTH, Photographs, photograph
from support import main

from gst_imaging import photographs


def tiff(path, values, *tags):
    """A file of one strip. tags: (number, type, numbers), type 1 bytes, 3 shorts, 4 longs, 5 fractions over 1"""
    values = np.ascontiguousarray(values)
    channels = values.shape[2] if values.ndim == 3 else 1
    packed = {1: lambda n: struct.pack(f"{len(n)}B", *n), 3: lambda n: struct.pack(f"<{len(n)}H", *n),
              4: lambda n: struct.pack(f"<{len(n)}I", *n), 5: lambda n: b"".join(struct.pack("<II", v, 1) for v in n)}
    given = {number for number, _kind, _numbers in tags}
    known = [(254, 4, [0]), (256, 4, [values.shape[1]]), (257, 4, [values.shape[0]]), (258, 3, [16] * channels), (259, 3, [1]),
             (262, 3, [2 if channels == 3 else 1]), (273, 4, [0]), (277, 3, [channels]), (278, 4, [values.shape[0]]),
             (279, 4, [values.nbytes]), (284, 3, [1])]
    tags = sorted([tag for tag in known if tag[0] not in given] + list(tags))
    at = end = 8 + 2 + 12 * len(tags) + 4
    end += sum(len(packed[kind](numbers)) for _number, kind, numbers in tags if len(packed[kind](numbers)) > 4)
    entries = extra = b""
    for number, kind, numbers in tags:
        data = packed[kind]([end] if number == 273 else numbers)
        if len(data) > 4:
            data, extra, at = struct.pack("<I", at), extra + data, at + len(data)
        entries += struct.pack("<HHI", number, kind, len(numbers)) + data.ljust(4, b"\0")
    with open(path, "wb") as file:
        file.write(b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + b"\0\0\0\0" + extra + values.tobytes())


@PNG
class Formats(Photographs):
    """Cameras and other programs give more than PNG: the normals are those of the scene in each format."""

    def need(self, form):
        if form not in os.environ["FORMATS"].split():
            self.skipTest(f"built without {form}")

    def shown(self):
        """Each photograph from 0 to 1."""
        return [photograph(light, self.normals, self.albedo) for light in self.lights]

    def solve(self, form, at_most=0.1, mask=None, code=0):
        self.write_lp("lights.lp", naming="IMG_{}." + form)
        out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", *(("--mask", mask) if mask else ()), code=code)
        if not code:
            self.assertEqual(self.result("out")["size"], [WIDTH, HEIGHT], err)
            self.assertLess(self.error("out")[0], at_most, err)
            self.assertEqual(photographs.read(self.path("out/normals.png"))[~self.inside].any(), mask is None)
        return out + err

    def test_tiff_of_16_bits_turned_upright(self):
        self.need("tiff")
        os.mkdir(self.path("photos"))
        for i, shown in enumerate(self.shown()):
            colours = np.dstack([np.rint(65535 * shown).astype("<u2")] * 3)
            tiff(self.path(f"photos/IMG_{i + 1}.tif"), np.rot90(colours), (274, 3, [6]))
        tiff(self.path("photos/mask.tif"), np.rot90(self.inside * np.uint16(65535)), (274, 3, [6]))
        self.solve("tif", mask=self.path("photos/mask.tif"))

    def test_tiff_that_is_neither_grey_nor_rgb(self):
        self.need("tiff")
        self.take()
        self.write_lp("lights.lp")
        for photometric, channels, sentence in (0, 1, "a negative, whose 0 is white"), (8, 3, "CIELab. Save it as RGB"), (5, 4, "CMYK. Save it as RGB"):
            for i, shown in enumerate(self.shown()):
                values = np.rint(65535 * shown).astype("<u2")
                tiff(self.path(f"photos/IMG_{i + 1}.tif"), values if channels == 1 else np.dstack([values] * channels), (262, 3, [photometric]))
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--extension", "tif", code=3)
            self.assertIn(f"IMG_1.tif is {sentence}", err)
            self.assertRegex(err, r"The same holds for 15 more: IMG_2.tif, .*\. They are not used\.\n.*None of the pictures can be read")
            for frame in "--white", "--dark":
                _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--extension", "png", frame, "photos/IMG_1.tif", code=3)
                self.assertIn(f"IMG_1.tif is {sentence}", err)
            np.save(self.path("normals.npy"), self.normals.astype(np.float32))
            for words in (["photostereo", "photos", "lights.lp", "--extension", "png", "--mask", "photos/IMG_1.tif"],
                          ["relight", "normals.npy", "--albedo", "photos/IMG_1.tif"]):
                _out, err = self.gst_imaging(*words, "-o", "out", code=3)
                self.assertIn(f"IMG_1.tif is {sentence}", err)
                self.assertEqual(err.count("\n"), 1)

    def test_floats_of_openexr(self):
        self.need("exr")
        for i, shown in enumerate(self.shown()):
            self.save(f"photos/IMG_{i + 1}.exr", np.dstack([shown.astype("f4")] * 3))
        self.save("mask.exr", self.inside.astype("f4"))
        self.solve("exr", mask="mask.exr")

    def test_fits_of_16_bits_and_of_floats(self):
        self.need("fits")
        for dtype, most in (np.uint16, 65535), (np.float32, 1):
            for i, shown in enumerate(self.shown()):
                self.save(f"photos/IMG_{i + 1}.fits", (np.rint(most * shown) if most > 1 else shown).astype(dtype))
            self.save("mask.fits", self.inside.astype(np.uint8))
            self.solve("fits", mask="mask.fits")
            shutil.rmtree(self.path("out"))

    def take_floats(self, change):
        """change: of each photograph from 0 to 1, by its number"""
        for i, shown in enumerate(self.shown()):
            self.save(f"photos/IMG_{i + 1}.npy", change(i, np.dstack([shown] * 3)).astype("f4"))

    def test_floats_that_are_no_numbers_count_as_clipped(self):
        def change(i, shown):
            return np.where(np.random.default_rng(i).uniform(size=shown.shape) < 0.02 * (1 + (i == 4)), np.nan, shown)

        self.take_floats(change)
        told = self.solve("npy")
        self.assertRegex(told, r"2\.\d+ % of the samples of the photographs, [34].* % of those of IMG_5.npy, are no numbers \(NaN\), and count as clipped")

    def test_negative_samples_are_told(self):
        self.take_floats(lambda i, shown: shown - 0.05 * (i == 2))
        self.assertRegex(self.solve("npy", 2), r"% of those of IMG_3.npy, are negative, and become black\. If the files have an offset, add a constant")
        self.take_floats(lambda _i, shown: np.rint(100 * shown))
        self.assertNotIn("are negative", self.solve("npy", 2))

    def test_a_sample_that_sets_full_scale_is_told(self):
        for value, rows, code in (500, slice(40, 41), 0), (1e30, slice(None), 1):
            def change(i, shown):
                shown[rows, 50] = np.where(i == 3, value, shown[rows, 50])
                return shown

            self.take_floats(change)
            told = self.solve("npy", 2, code=code)
            self.assertIn(f"The largest sample of IMG_4.npy is {value:g}, which becomes full scale, and 99.9 % of the samples of most photographs are below", told)
        self.take_floats(lambda i, shown: 500 * shown)
        self.assertNotIn("full scale", self.solve("npy"))

    def write_dng(self, path, shown):
        """A mosaic RG/GB of 16 bits as a camera gives it: black is 512, red and blue are half as strong as green."""
        tint = np.tile([[0.5, 1], [1, 0.5]], (HEIGHT // 2, WIDTH // 2))
        tiff(path, np.rint(512 + 15000 * shown * tint).astype("<u2"), (262, 3, [32803]), (33421, 3, [2, 2]), (33422, 1, [0, 1, 1, 2]),
             (50706, 1, [1, 4, 0, 0]), (50714, 4, [512]), (50717, 4, [15512]), (50728, 5, [1, 1, 1]))

    def test_raw_of_a_camera(self):
        """DNG that is made here; IMAGING_TEST_RAW names a folder of photographs of a camera, with its light file."""
        self.need("raw")
        os.mkdir(self.path("photos"))
        for i, shown in enumerate(self.shown()):
            self.write_dng(self.path(f"photos/IMG_{i + 1}.dng"), shown)
        self.save("photos/mask.png", self.inside.astype(np.uint8) * 255)
        self.solve("dng", 1.5, mask=self.path("photos/mask.png"))

    @unittest.skipUnless("IMAGING_TEST_RAW" in os.environ, "IMAGING_TEST_RAW names no folder of photographs with a light file")
    def test_raw_of_another_camera(self):
        self.need("raw")
        self.gst_imaging("photostereo", os.environ["IMAGING_TEST_RAW"], "-o", "out")
        self.assertTrue(all(figure["met"] is not False for figure in self.result("out")["figures"]), self.result("out")["figures"])


main()
