# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging relight: what the files of normals and albedo mean, as they and the results beside them say it."""
import struct
import zlib

import numpy as np

from photographscene import PNG, Photographs, add_chunk, icc, photograph
from support import main

from gst_imaging import photographs

FROM_ABOVE = 90, 30


@PNG
class Relight(Photographs):
    def setUp(self):
        super().setUp()
        azimuth, elevation = np.radians(FROM_ABOVE)
        self.light = np.array([np.cos(azimuth) * np.cos(elevation), np.sin(azimuth) * np.cos(elevation), np.sin(elevation)])

    def largest_error(self, *words, albedo):
        """Of what relight shows with a linear gamma under the light from above"""
        self.gst_imaging("relight", *words, "-o", "lit", "--overwrite", "--light", "{},{}".format(*FROM_ABOVE), "--diffuse", "1", "--gamma", "1")
        shown = photographs.read(self.path("lit/lit000.png"))[..., 0] / 255
        return np.abs(shown - photograph(self.light, self.normals, albedo))[self.inside].max()

    def test_normals_whose_y_goes_down(self):
        """A result says it in result.json; of files from elsewhere --y-axis says it."""
        self.take()
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "ball", "--set", "y-axis=down")
        self.assertLess(self.largest_error("ball", albedo=self.albedo), 0.01)
        self.assertIn(("y-axis", "down"), [(setting["name"], setting["value"]) for setting in self.result("lit")["settings"]])
        self.assertLess(self.largest_error("ball/normals.png", albedo=1), 0.01)
        np.save(self.path("directx.npy"), (self.normals * [1, -1, 1]).astype(np.float32))
        self.assertLess(self.largest_error("directx.npy", "--y-axis", "down", albedo=1), 0.01)
        self.assertGreater(self.largest_error("directx.npy", albedo=1), 0.5)
        np.save(self.path("ball/opengl.npy"), self.normals.astype(np.float32))  # not of that result
        self.assertLess(self.largest_error("ball/opengl.npy", albedo=1), 0.01)

    def test_an_albedo_that_is_not_linear(self):
        """PNG files say so, by the chunks sRGB and gAMA or a profile."""
        profile = icc({b"kTRC": struct.pack(">4s4xHH5i", b"para", 3, 0, *(round(65536 * n) for n in (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)))})
        np.save(self.path("normals.npy"), self.normals.astype(np.float32))
        for name, chunk, values, words in (("plain.png", None, self.albedo, ""),
                                           ("srgb.png", b"sRGB\0", self.albedo ** (1 / 2.2), "a gamma of 2.2"),
                                           ("gamma.png", b"gAMA" + (100000 * 5 // 9).to_bytes(4, "big"), self.albedo ** (1 / 1.8), "a gamma of 1.8"),
                                           ("profile.png", b"iCCPa\0\0" + zlib.compress(profile), 1.055 * self.albedo ** (1 / 2.4) - 0.055, "the curve of sRGB")):
            self.save(name, np.rint(65535 * values).astype(np.uint16))
            if chunk:
                add_chunk(self.path(name), chunk)
            self.assertLess(self.largest_error("normals.npy", "--albedo", name, albedo=self.albedo), 0.01, name)
            told = f"{name} says (profile, sRGB, gAMA) that its samples have {words}, and is made linear by it."
            self.assertEqual(self.result("lit")["warnings"], [told] if words else [])
            self.gst_imaging("relight", "normals.npy", "--albedo", name, "-o", "auto", "--overwrite")
            strength = next(float(setting["value"]) for setting in self.result("auto")["settings"] if setting["name"] == "diffuse")
            self.assertAlmostEqual(strength, 0.9 / 0.8, delta=0.01)


main()
