# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging photostereo: what makes samples linear, as the files of photographs say it."""
import os
import struct
import unittest
import zlib

import numpy as np

from photographscene import HEIGHT, PNG, WIDTH, Photographs, icc, photograph
from support import main

from gst_imaging import chart, curves, photographs, profiles


def write_tiff(path, values, profile):
    """RGB of 16 bits in one strip, with a profile if there is one."""
    height, width, _n = values.shape
    n = 10 + bool(profile)
    at = 8 + 2 + 12 * n + 4
    entries = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, at), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, at + 6 + len(profile)), (277, 3, 1, 3),
               (278, 4, 1, height), (279, 4, 1, values.nbytes), (284, 3, 1, 1)] + [(34675, 7, len(profile), at + 6)] * bool(profile)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack("<2sHIH", b"II", 42, 8, n) + b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4))
        file.write(struct.pack("<3H", 16, 16, 16) + profile + values.tobytes())


class Curves(Photographs):
    def save_curved(self, name, linear, gamma=2.2):
        """Linear values from 0 to 1 as RGB of 16 bits that tell their gamma."""
        self.save(name, np.rint(65535 * (linear if np.ndim(linear) == 3 else np.dstack([linear] * 3)) ** (1 / gamma)).astype(np.uint16))
        chunk = b"gAMA" + round(1e5 / gamma).to_bytes(4, "big")
        with open(self.path(name), "r+b") as file:
            plain = file.read()
            file.seek(33)
            file.write((4).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big") + plain[33:])

    @PNG
    def test_a_white_sheet_has_a_curve_of_its_own(self):
        """Sheets of gamma 2.2 beside linear photographs, and the reverse, less a dark frame of the other curve."""
        spot = np.linspace(0.8, 0.25, WIDTH) * np.ones((HEIGHT, 1))
        self.write_lp("lights.lp")
        for name, own, other in ("linear", 1, 2.2), ("curved", 2.2, 1):
            for i, light in enumerate(self.lights):
                self.save_curved(f"{name}/IMG_{i + 1}.png", 0.05 + 0.9 * spot * photograph(light, self.normals, self.albedo), own)
                self.save_curved(f"{name}-white/IMG_{i + 1}.png", 0.05 + 0.9 * spot * light[2], other)
            self.save_curved(f"{name}-dark.png", np.full((HEIGHT, WIDTH), 0.05), other)
            words = ["photostereo", name, "lights.lp", "--dark", f"{name}-dark.png", "--white"]
            self.gst_imaging(*words, f"{name}-white", "-o", f"{name}-out", "--rti")
            self.assertLess(self.error(f"{name}-out")[0], 0.05)
            albedo = photographs.read(self.path(f"{name}-out/albedo.png"))[..., 0] / 65535
            self.assertLess(np.abs(albedo / self.albedo - 1)[self.inside].max(), 0.005)
            self.gst_imaging(*words, f"{name}-white", "-o", f"{name}-given", "--gamma", "1")  # holds for all
            self.assertGreater(self.error(f"{name}-given")[0], 1)

    @PNG
    def test_frames_of_another_curve_are_refused(self):
        """The element has one curve."""
        self.take()
        self.write_lp("lights.lp")
        self.save_curved("frame.png", np.full((HEIGHT, WIDTH), 0.5))
        for role in "dark", "white":
            words = ["photostereo", "photos", "lights.lp", "-o", role, f"--{role}", "frame.png"]
            _out, err = self.gst_imaging(*words, code=2)
            self.assertIn("frame.png has a gamma of 2.2, and the photographs have a gamma of 1", err)
            self.assertEqual(err.count("\n"), 1)
            self.gst_imaging(*words, "--gamma", "1")

    @PNG
    def test_a_sheet_that_does_not_tell_its_curve(self):
        for i, light in enumerate(self.lights):
            self.save_curved(f"photos/IMG_{i + 1}.png", 0.7 * photograph(light, self.normals, self.albedo))
            self.save(f"white/IMG_{i + 1}.png", np.full((HEIGHT, WIDTH, 3), np.rint(200 * light[2]), np.uint8))
        self.write_lp("lights.lp")
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--white", "white")
        self.assertIn("white/IMG_1.png does not say what its samples mean (no colour profile, sRGB or gAMA): it is taken to have a gamma of 2.2", err)
        self.assertEqual(err.count("does not say"), 1)
        self.take("linear")
        _out, err = self.gst_imaging("photostereo", "linear", "lights.lp", "-o", "linear-out", "--white", "white")
        self.assertIn("IMG_1.png has 8 bits and does not say what they mean", err)
        self.assertEqual(err.count("does not say"), 1)

    @PNG
    def test_frames_that_do_not_tell_their_curve_have_that_of_the_photographs(self):
        spot = np.linspace(0.8, 0.25, WIDTH) * np.ones((HEIGHT, 1))
        self.write_lp("lights.lp")
        curved = {"dark.png": np.full((HEIGHT, WIDTH), 0.05)}
        for i, light in enumerate(self.lights):
            self.save_curved(f"photos/IMG_{i + 1}.png", 0.05 + 0.9 * spot * photograph(light, self.normals, self.albedo))
            curved[f"white/IMG_{i + 1}.png"] = 0.05 + 0.9 * spot * light[2]
        for name, linear in curved.items():  # without a chunk that tells it
            self.save(name, np.dstack([np.rint(65535 * linear ** (1 / 2.2))] * 3).astype(np.uint16))
        for words in [], ["--white", "white"]:
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", "--dark", "dark.png", *words)
            self.assertIn("dark.png does not say what its samples mean", err)
        self.assertLess(self.error("out")[0], 0.05)

    @PNG
    def test_a_chart_has_a_curve_of_its_own(self):
        true = np.array([0.5, 0.2, 0.1])
        for i, light in enumerate(self.lights):
            self.save(f"photos/IMG_{i + 1}.png", np.rint(65535 * np.maximum(self.normals @ light, 0)[..., None] * true).astype(np.uint16))
        picture = np.full((HEIGHT, WIDTH, 3), 0.05)
        patches = chart.linear(np, chart.SRGB).reshape(4, 6, 3)
        for row in range(4):
            for column in range(6):
                picture[15 + 14 * row:26 + 14 * row, 12 + 14 * column:23 + 14 * column] = 0.9 * patches[row, column]
        self.save_curved("chart.png", picture)
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--chart", "chart.png")
        albedo = photographs.read(self.path("out/albedo.png"))[self.inside][:, :3].mean(0)
        self.assertLess(np.abs(albedo / albedo[0] - true / true[0]).max(), 1e-3)
        self.save_curved("over.png", np.minimum(1.6 * picture, 1))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "over", "--chart", "over.png")
        self.assertRegex(err, r"Clipped patches of the chart in over.png: \d of 24")

    @unittest.skipUnless("tiff" in os.environ["FORMATS"].split(), "built without tiff")
    def test_the_curve_of_a_colour_profile(self):
        """In TIFF files as a RAW developer writes them, a table of sRGB; then a profile without curves, and 8 bits that say nothing."""
        x = np.linspace(0, 1, 1024)
        table = struct.pack(">4s4xI", b"curv", 1024) + np.rint(65535 * profiles.srgb(np, x)).astype(">u2").tobytes()
        for name, profile in ("table", icc({b"rTRC": table, b"gTRC": table, b"bTRC": table})), ("none", icc({b"A2B0": bytes(64)})), ("plain", b""):
            for i, light in enumerate(self.lights):
                linear = photograph(light, self.normals, self.albedo)
                shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055)
                write_tiff(self.path(f"{name}/IMG_{i + 1}.tif"), np.dstack([np.rint(65535 * shown).astype("<u2")] * 3), profile)
        self.write_lp("lights.lp")
        _out, err = self.gst_imaging("photostereo", "table", "lights.lp", "-o", "out")
        self.assertIn("The files say (profile, sRGB, gAMA) that their samples have the curve of sRGB, and are made linear by it.", err)
        self.assertLess(self.error("out")[0], 0.1)
        _out, err = self.gst_imaging("photostereo", "none", "lights.lp", "-o", "none-out")
        self.assertIn("The colour profile of IMG_1.tif has a curve that is neither gamma nor that of sRGB: its samples are taken as linear.", err)
        self.assertIn("give --curve srgb", err)
        _out, err = self.gst_imaging("photostereo", "none", "lights.lp", "-o", "srgb", "--curve", "srgb")
        self.assertEqual(err, "")
        self.assertLess(self.error("srgb")[0], 0.1)
        out, err = self.gst_imaging("photostereo", "plain", "lights.lp", "-o", "plain-out")  # 16 bits: linear
        self.assertEqual((err, "not checked: distance of the lamps, curve of the samples, room light, spread of the lamps;" in out), ("", True))

    def test_the_profile_of_a_jpeg(self):
        """In two segments, out of their order; without one it is gamma 2.2."""
        profile = icc({b"kTRC": struct.pack(">4s4xIH", b"curv", 1, round(1.8 * 256))})
        parts = [b"ICC_PROFILE\0" + bytes([n + 1, 2]) + part for n, part in enumerate((profile[:90], profile[90:]))]
        segments = b"".join(struct.pack(">HH", 0xffe2, len(part) + 2) + part for part in reversed(parts))
        for name, content in ("none.jpg", b""), ("icc.jpg", segments), ("table.jpg", segments.replace(b"kTRC", b"A2B0")):
            with open(self.path(name), "wb") as file:
                file.write(b"\xff\xd8" + content + b"\xff\xda\0\2")
        self.assertEqual([curves.told(self.path(f"{name}.jpg")) for name in ("none", "icc", "table")], [("gamma", 2.2), ("gamma", 1.8), ("gamma", 2.2)])
        self.assertIn("The colour profile of table.jpg has a curve that is neither", curves.doubt(self.path("table.jpg")))
        self.assertEqual([curves.doubt(self.path(name)) for name in ("none.jpg", "icc.jpg")], ["", ""])

    @PNG
    def test_8_bits_that_do_not_say_what_they_mean(self):
        self.take(dtype=np.uint8)
        self.write_lp("lights.lp")
        words = ["photostereo", "photos", "lights.lp", "-o", "out", "--overwrite"]
        self.assertIn("IMG_1.png has 8 bits and does not say what they mean (no colour profile, sRGB or gAMA)", self.gst_imaging(*words)[1])
        self.assertEqual(self.gst_imaging(*words, "--gamma", "1")[1], "")

    def test_curves_of_profiles(self):
        """A parametric curve of each type, a table, and what is none."""
        def para(which, *numbers):
            return struct.pack(f">4s4xHH{len(numbers)}i", b"para", which, 0, *(round(65536 * number) for number in numbers))

        def curv(*numbers):
            return struct.pack(f">4s4xI{len(numbers)}H", b"curv", len(numbers), *numbers)

        srgb = 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045
        for curve, expected in (
                (curv(), ("gamma", 1)), (curv(round(1.8 * 256)), ("gamma", 1.8)),
                (curv(*(round(65535 * (i / 255) ** 2.2) for i in range(256))), ("gamma", 2.2)),
                (para(0, 2.19922), ("gamma", 2.2)), (para(1, 2, 1, 0), ("gamma", 2)), (para(2, 1, 1, 0, 0), ("gamma", 1)),
                (para(3, 2.4, *srgb), ("srgb", 1)), (para(4, 2.4, *srgb, 0, 0), ("srgb", 1)),
                (para(3, 1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081), ("gamma", 1.93)),
                (para(2, 1, 0.5, 0, 0.5), None), (para(9, 1), None), (para(1, 1, 0, 0), None), (curv(7, 8)[:-1], None),
                (b"text" + bytes(20), None), (b"", None)):
            self.assertEqual(profiles.curve_of(np, icc({b"kTRC": curve})), expected, curve[:40])
        self.assertIsNone(profiles.curve_of(np, icc({b"rTRC": curv(), b"gTRC": curv(), b"bTRC": curv(512)})))
        self.assertIsNone(profiles.curve_of(np, b"short"))


main()
