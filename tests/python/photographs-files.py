# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging photostereo: files of lights, layouts of folders, dark frames, white sheets and room light."""
import json
import os
import struct
import unittest

import numpy as np

from photographscene import HEIGHT, LIGHTS, PNG, WIDTH, Photographs, photograph
from support import launch, main

from gst_imaging import photographs


@PNG
class Files(Photographs):
    def test_a_white_sheet_for_each_light(self):
        """Lamps whose spots differ and are uneven; the sheet lies where the surface is, so it is lit at an angle."""
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        for i, light in enumerate(self.lights):
            spot = (0.4 + 0.03 * i) * np.exp(-((x - 20 - 5 * i) ** 2 + (y - 45) ** 2) / 120 ** 2)
            for folder, values in ("photos", photograph(light, self.normals, self.albedo)), ("white", np.full((HEIGHT, WIDTH), light[2])):
                self.save(f"{folder}/IMG_{i + 1}.png", np.dstack([np.rint(65535 * spot * values).astype(np.uint16)] * 3))
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "without")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--white", "white")
        self.assertGreater(self.error("without")[0], 6)
        self.assertLess(self.error("out")[0], 0.002)
        albedo = photographs.read(self.path("out/albedo.png"))[..., 0] / 65535
        self.assertLess(np.abs(albedo / self.albedo - 1)[self.inside].max(), 1e-4)
        os.remove(self.path("white/IMG_3.png"))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "lacking", "--white", "white", code=3)
        self.assertIn("no white sheet for 1 of 16 photographs: IMG_3.png", err)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "lacking", "--white", "white", "--set", "plane-z=3", code=2)
        self.assertIn("--set plane-z=3 changes how the lamps shine", err)

    def test_white_frames_that_are_black_or_clipped(self):
        self.take()
        self.write_lp("lights.lp")
        white = np.full((HEIGHT, WIDTH, 3), 40000, np.uint16)
        for name, value, end in ("black", 0, 22), ("clipped", 65535, 22), ("none", 0, WIDTH), ("full", 65535, 70):
            part = white.copy()
            part[:, :end] = value
            self.save(f"{name}.png", part)
            for i in range(LIGHTS):
                self.save(f"{name}/IMG_{i + 1}.png", part if i == 2 else white)
        for words in (f"{name}{end}" for name in ("black", "clipped") for end in (".png", "")):
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", words + "-out", "--white", words)
            self.assertIn("black or clipped at 20 % of the pixels", err)
            mask = photographs.read(self.path(f"{words}-out/mask.png")).reshape(HEIGHT, WIDTH)
            self.assertFalse(mask[:, :22].any())
            self.assertTrue(mask[:, 22:].all())
            if words.endswith(".png"):  # of which the mean counts
                albedo = photographs.read(self.path(f"{words}-out/albedo.png"))[..., 0] / 65535
                self.assertLess(np.abs(albedo - self.albedo)[:, 22:][self.inside[:, 22:]].max(), 0.01)
        for words, sentence in (("none.png", "none.png is black or clipped at 100 %"), ("full.png", "full.png is black or clipped at 63.6 %"),
                                ("none", "none/IMG_3.png at 100 %"), ("full", "full/IMG_3.png at 63.6 %")):
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "refused", "--white", words, code=3)
            self.assertIn(sentence, err)
            self.assertEqual(err.count("\n"), 1)
        for name, values in ("grey", white[..., 0]), ("small", white[:9]), ("bytes", (white // 257).astype(np.uint8)):
            self.save(f"{name}.png", values)
            for role in "dark", "white":
                _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "refused", f"--{role}", f"{name}.png", code=3)
                self.assertRegex(err, f"{name}.png is .*, and the photographs are u16 110 x 90 with 3 channels")

    def test_room_light_and_the_curve_of_srgb(self):
        for i, light in enumerate(self.lights):
            lit = 0.85 * photograph(light, self.normals, self.albedo) + 0.08
            coded = np.where(lit <= 0.0031308, 12.92 * lit, 1.055 * lit ** (1 / 2.4) - 0.055)
            self.save(f"room/IMG_{i + 1}.png", np.dstack([np.rint(65535 * coded).astype(np.uint16)] * 3))
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "room", "lights.lp", "-o", "mean", "--curve", "srgb")
        self.gst_imaging("photostereo", "room", "lights.lp", "-o", "out", "--curve", "srgb", "--set", "ambient-model=constant")
        self.assertGreater(self.error("mean")[0], 6)
        self.assertLess(self.error("out")[0], 0.002)
        for model, content in ("mean", "mean-of-pictures"), ("constant", "room-light"):
            launch("-q", "picturesrc", f"location={self.path('room')}", "!", "photostereo", "name=p", f"ambient-model={model}",
                   f"lights-location={self.path('lights.lp')}", "p.ambient", "!", f"video/x-raw,content={content}", "!", "fakesink")

    def test_lists_of_spreadsheets_and_with_a_count(self):
        self.take()
        rows = [[f"{value:.7f}" for value in light] for light in self.lights]
        for name, text in (("commas.csv", "".join(",".join(row) + "\n" for row in rows)),
                           ("semicolons.txt", "".join(";".join(row) + "\n" for row in rows)),
                           ("count.txt", f"{LIGHTS}\n" + "".join(" ".join(row) + "\n" for row in rows)),
                           ("named.lp", f"{LIGHTS}\n" + "".join(f"IMG_{i + 1}.png;{';'.join(row)}\n" for i, row in reversed(list(enumerate(rows)))))):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
            self.gst_imaging("photostereo", "photos", name, "-o", f"out-{name}")
            self.assertLess(self.error(f"out-{name}")[0], 0.1, name)

    def test_lights_of_alicevision(self):
        gains = np.linspace(0.5, 1, LIGHTS)
        for i, light in enumerate(self.lights):
            shown = np.rint(65535 * gains[i] * photograph(light, self.normals, self.albedo)).astype(np.uint16)
            self.save(f"photos/{i + 1:03}.png", np.dstack([shown] * 3))
        views = [{"viewId": str(7919 * i % 1000), "type": "directional", "direction": [f"{x:.7g}", f"{-y:.7g}", f"{-z:.7g}"],
                  "intensity": [f"{gain:.7g}"] * 3} for i, ((x, y, z), gain) in enumerate(zip(self.lights, gains))]
        with open(self.path("lights.json"), "w", encoding="utf-8") as file:
            json.dump({"lights": views}, file)
        self.gst_imaging("photostereo", "photos", "lights.json", "-o", "out")
        self.assertLess(self.error("out")[0], 0.1)
        albedo = photographs.read(self.path("out/albedo.png"))[..., 0] / 65535
        self.assertLess(np.abs(albedo - self.albedo)[self.inside].max(), 0.01)
        self.assertEqual(len(os.listdir(self.path("out"))), 9)
        with open(self.path("lights.json"), "w", encoding="utf-8") as file:
            json.dump({"lights": [{**view, "type": "SH"} for view in views]}, file)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.json", "-o", "none", code=3)
        self.assertIn("calibrate the lights as directions", err)

    def test_dome_files_and_the_layout_of_diligent(self):
        self.take("pages")
        with open(self.path("rig.dome"), "w", encoding="utf-8") as file:
            json.dump({"lightConfiguration": "directional", "directions": [dict(zip("xyz", light)) for light in self.lights[::-1]],
                       "images": [f"IMG_{i}.png" for i in range(LIGHTS, 0, -1)]}, file)
        self.gst_imaging("photostereo", "pages", "rig.dome", "-o", "dome")
        self.assertLess(self.error("dome")[0], 0.1)
        gains = np.linspace(0.5, 1, LIGHTS)
        for i, light in enumerate(self.lights):
            shown = np.rint(65535 * gains[i] * photograph(light, self.normals, self.albedo)).astype(np.uint16)
            self.save(f"bearPNG/{i + 1:03}.png", np.dstack([shown] * 3))
        self.save("bearPNG/mask.png", self.inside.astype(np.uint8) * 255)
        self.save("bearPNG/Normal_gt.png", np.zeros((HEIGHT, WIDTH, 3), np.uint16))
        np.savetxt(self.path("bearPNG/light_directions.txt"), self.lights[::-1], "%.7f")
        np.savetxt(self.path("bearPNG/light_intensities.txt"), np.repeat(gains[::-1, None], 3, 1), "%.5f",
                   header="mesur\xe9es", encoding="latin-1")
        with open(self.path("bearPNG/filenames.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{i + 1:03}.png\n" for i in range(LIGHTS - 1, -1, -1))
        self.gst_imaging("photostereo", "bearPNG", "-o", "bear")
        self.assertLess(self.error("bear")[0], 0.1)

    def take_jpeg(self, folder, told):
        """Photographs of a camera on its side, and what EXIF tells of each."""
        os.mkdir(self.path(folder))
        shown = [photograph(light, self.normals, self.albedo) ** (1 / 2.2) for light in self.lights]
        np.save(self.path("a.npy"), [np.rot90(np.dstack([np.rint(255 * picture).astype(np.uint8)] * 3)) for picture in shown])
        launch("picturesrc", f"location={self.path('a.npy')}", "!", "videoconvert", "!", "jpegenc", "quality=98", "!",
               "multifilesink", f"location={self.path('a%d.jpg')}")
        for i, orientation in enumerate(told):
            exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHH", 0x112, 3, 1, orientation, 0) + b"\0\0\0\0"
            with open(self.path(f"a{i}.jpg"), "rb") as file:
                data = file.read()
            with open(self.path(f"{folder}/IMG_{i + 1}.JPG"), "wb") as file:
                file.write(data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:])

    @unittest.skipUnless("jpeg" in os.environ["FORMATS"].split(), "built without jpeg")
    def test_jpeg_is_turned_upright_and_made_linear(self):
        self.take_jpeg("turned", [6] * LIGHTS)
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "turned", "lights.lp", "-o", "out")
        self.assertEqual(self.result("out")["size"], [WIDTH, HEIGHT])
        self.assertLess(self.error("out")[0], 2)

    @unittest.skipUnless("jpeg" in os.environ["FORMATS"].split(), "built without jpeg")
    def test_one_camera_has_one_orientation(self):
        """Photographs that EXIF turns otherwise: by half a turn, and by a quarter, mirrored ones too."""
        self.write_lp("lights.lp")
        for name, odd in ("half", {3: 8}), ("quarter", {3: 1, 5: 3}), ("mirrored", {0: 2, 1: 4, 2: 5, 3: 7}):
            self.take_jpeg(name, [odd.get(i, 6) for i in range(LIGHTS)])
            _out, err = self.gst_imaging("photostereo", name, "lights.lp", "-o", f"{name}-out")
            self.assertIn(f"{len(odd)} of {LIGHTS} pictures have another EXIF orientation than the others, which have 6: "
                          + ", ".join(f"IMG_{i + 1}.JPG ({told})" for i, told in odd.items()), err)
            self.assertNotIn("contradict", err)
            self.assertEqual(self.result(f"{name}-out")["pictures"], LIGHTS)
            self.assertLess(self.error(f"{name}-out")[0], 2)

    def test_a_dark_frame_is_subtracted(self):
        self.take()
        for i in range(LIGHTS):
            shown = photographs.read(self.path(f"photos/IMG_{i + 1}.png")).astype(int)
            self.save(f"photos/IMG_{i + 1}.png", np.minimum(shown + 9000, 65535).astype(np.uint16))
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "bright")
        self.save("photos/Dark.png", np.full((HEIGHT, WIDTH, 3), 9000, np.uint16))
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "dark")
        self.assertGreater(self.error("bright")[0], 1)
        self.assertLess(self.error("dark")[0], 0.1)


main()
