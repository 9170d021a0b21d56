# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging photostereo: files of lights, layouts of folders, dark frames, white sheets and room light."""
import json
import os
import shutil
import struct
import unittest
import zlib

import numpy as np

from photographscene import HEIGHT, LIGHTS, PNG, WIDTH, Photographs, photograph
from support import launch, main

from gst_imaging import photographs
from gst_imaging.command import Failure


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
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "textures", "--white", "black.png", "--rti")
        with open(self.path("textures/rti/object.ptm"), "rb") as file:
            lines = [file.readline() for _line in range(6)]
            codes = np.frombuffer(file.read(6 * WIDTH * HEIGHT), np.uint8).reshape(HEIGHT, WIDTH, 6)
        self.assertTrue((codes[:, :22] == np.array(lines[5].split(), float)).all())  # which are 0
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

    def test_pictures_that_are_copies_of_one(self):
        self.take()
        self.write_lp("lights.lp")
        shutil.copy(self.path("photos/IMG_4.png"), self.path("photos/IMG_7.png"))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        self.assertIn("IMG_4.png, IMG_7.png are the same picture", err)
        os.mkdir(self.path("copies"))
        for i in range(LIGHTS):
            shutil.copy(self.path("photos/IMG_4.png"), self.path(f"copies/IMG_{i + 1}.png"))
        _out, err = self.gst_imaging("photostereo", "copies", "lights.lp", "-o", "none", code=3)
        self.assertIn("All 16 photographs of copies are the same picture", err)

    def test_pictures_that_are_none_of_photographs(self):
        self.take()
        self.write_lp("lights.lp")
        for channels, name, sentence in (2, "a.png", "grey with alpha"), (4, "a.JPG", "CMYK"):
            with self.assertRaisesRegex(Failure, sentence):
                photographs.check_channels(name, (9, 9, channels))
        with open(self.path("photos/IMG_2.png"), "r+b") as file:
            data = file.read()
            chunk = b"acTL" + struct.pack(">II", 2, 0)
            file.seek(0)
            file.write(data[:33] + struct.pack(">I", 8) + chunk + struct.pack(">I", zlib.crc32(chunk)) + data[33:])
        os.remove(self.path("photos/IMG_3.png"))
        for name in "IMG_3.png", "mask.png":
            os.mkfifo(self.path(f"photos/{name}"))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        for words in ("IMG_2.png is animated", "IMG_3.png is a pipe, a device or a broken link. It is not used", "mask.png is a pipe"):
            self.assertIn(words, err)

    def test_two_masks_or_two_dark_frames(self):
        self.take()
        self.write_lp("lights.lp")
        for name in "mask", "dark":
            for form in "npy", "png":
                self.save(f"photos/{name}.{form}", np.full((HEIGHT, WIDTH, 3) if name == "dark" else (HEIGHT, WIDTH), 1, np.uint16))
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", code=2)
            self.assertIn(f"photos has 2 files that are called {name}, {name}.npy, {name}.png: name the one to use with --{name}", err)
            os.remove(self.path(f"photos/{name}.npy"))

    def test_sentences_name_the_users_file_and_line(self):
        """Not those of the copy that photostereo gets, of the lights that have a picture."""
        self.take()
        self.write_lp("lights.lp")
        with open(self.path("lights.lp"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        os.remove(self.path("photos/IMG_2.png"))
        lines[9] = "IMG_9.png 0 0 0"
        with open(self.path("zero.lp"), "w", encoding="utf-8") as file:
            file.write("# of the rig\n\n" + "\n".join(lines))
        _out, err = self.gst_imaging("photostereo", "photos", "zero.lp", "-o", "out", code=3)
        self.assertIn("zero.lp, line 12: the light is at (0, 0, 0)", err)
        with open(self.path("intensities.txt"), "w", encoding="utf-8") as file:
            file.write("# of the rig\n" + "1\n" * 5 + "-1\n" + "1\n" * (LIGHTS - 6))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--intensities", "intensities.txt", code=3)
        self.assertIn(": intensities.txt, line 7: the intensity -1 is not above 0", err)

    def test_files_that_are_no_lists_of_lights(self):
        self.take()
        self.write_lp("lights.lp")
        with open(self.path("lights.lp"), "rb") as file:
            text = file.read()
        for name, data, sentence in (
                ("wide.lp", text.decode().encode("utf-16"), "wide.lp is text in UTF-16"), ("long.lp", b"a" * 100000, 'long.lp, line 1: "aaaa'),
                ("empty.dome", b"{}", "empty.dome .*has no .*directions"), ("huge.lp", b"", "huge.lp.* has 21474836480 bytes")):
            with open(self.path(name), "wb") as file:
                file.write(data)
                file.truncate(20 << 30) if not data else None
            _out, err = self.gst_imaging("photostereo", "photos", name, "-o", "out", code=3)
            self.assertRegex(err, sentence)
            self.assertLess(len(err), 300)

    def test_properties_that_would_be_no_result(self):
        self.take()
        self.write_lp("lights.lp")
        for words, sentence in (
                (("--set", "window=sliding"), "the command sets window itself: all pictures are one set"),
                (("--set", "stop-below=180"), "the command sets stop-below itself"), (("--set", "set-size=5"), "the command sets set-size itself"),
                (("--set", "known-points=<5,5,1e30>"), "goes from -1000000000 to 1000000000"),
                (("--set", "max-iterations=1001"), "max-iterations is 1001, and goes from 1 to 1000."),
                (("--set", "height-rounds=-1"), "height-rounds is -1, and goes from 0 to 10."),
                (("--mm-per-pixel", "0"), "--mm-per-pixel is 0; it has to be above 0")):
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", *words, code=2)
            self.assertIn(sentence, err)
            self.assertEqual(err.count("\n"), 1)

    def test_intensities_of_255_make_a_dark_albedo(self):
        self.take()
        self.write_lp("lights.lp")
        for value in 255, 1:
            np.savetxt(self.path("intensities.txt"), np.full(LIGHTS, value), "%d")
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", f"out{value}", "--intensities", "intensities.txt")
            self.assertEqual("has about 257 levels. Divide them by 255" in err, value == 255)

    def test_relight_without_what_the_result_had(self):
        self.take()
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        os.remove(self.path("out/albedo.png"))
        _out, err = self.gst_imaging("relight", "out", "-o", "lit")
        self.assertIn("out has no albedo.png any more, which its result.json lists", err)
        self.save("black.png", np.zeros((HEIGHT, WIDTH, 3), np.uint16))
        _out, err = self.gst_imaging("relight", "black.png", "-o", "none", code=1)
        self.assertIn("black.png is black: it has no normal at all", err)

    def test_one_photograph_of_a_sphere_and_one_sphere_twice(self):
        self.save("one/IMG_1.png", np.pad(np.full((3, 3), 255, np.uint8), 30))
        _out, err = self.gst_imaging("lights", "one", "-o", "out", "--sphere", "31,31,20", code=3)
        self.assertIn("3 photographs at least are needed, and 1 were given", err)
        _out, err = self.gst_imaging("lights", "one", "-o", "out", "--sphere", "31,31,20", "--sphere", "31,31,20", code=2)
        self.assertIn("--sphere 31,31,20 is given twice", err)
    def test_directions_of_two_decimals(self):
        """Which are up to 1 % from unit length, also behind names that end in numbers: photostereo reads them for --white too."""
        self.take()
        for i, light in enumerate(self.lights):
            self.save(f"white/IMG_{i + 1}.png", np.full((HEIGHT, WIDTH, 3), round(65535 * 0.8 * light[2]), np.uint16))
        with open(self.path("rounded.lp"), "w", encoding="utf-8") as file:
            file.write(f"{LIGHTS}\n" + "".join(f"IMG_{i + 1}.png {x:.2f} {y:.2f} {z:.2f}\n" for i, (x, y, z) in enumerate(self.lights)))
        self.assertGreater(np.abs(np.linalg.norm(np.round(self.lights, 2), axis=1) - 1).max(), 1e-3)
        self.gst_imaging("photostereo", "photos", "rounded.lp", "-o", "out", "--white", "white")
        self.assertLess(self.error("out")[0], 0.3)
        names = [f"IMG 2024 05 {i + 10}" for i in range(LIGHTS)]
        with open(self.path("names.lp"), "w", encoding="utf-8") as file:
            file.write(f"{LIGHTS}\n" + "".join(f"{name} {abs(x):.2f} {abs(y) + 0.01:.2f} {z:.2f}\n" for name, (x, y, z) in zip(names, self.lights)))
        lights = photographs.Lights(self.path("names.lp"))
        self.assertEqual([name[0] for name in lights.names], names)
        self.assertLess(np.abs(lights.values(np, range(LIGHTS))[0] - np.abs(self.lights)).max(), 0.03)

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
        self.assertIn("Calibrate the lights as directions", err)

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

    def test_entries_of_a_dome_file_that_are_wrong(self):
        self.take()
        dome = {"directions": [dict(zip("xyz", light)) for light in self.lights], "images": [f"IMG_{i + 1}.png" for i in range(LIGHTS)]}
        for entry, code, sentence in (
                ({"images": [{"filename": None}] * LIGHTS}, 3, 'rig.dome, image 1 of "images" has no name'),
                ({"images": list(range(LIGHTS))}, 3, 'image 1 of "images" has no name'), ({"images": "abcdefghijklmnop"}, 3, '"images" has to be an array'),
                ({"ledAdjust": 5}, 3, '"ledAdjust" has to be an array'), ({"positions3d": 7}, 3, '"positions3d" has to be an array'),
                ({"imageWidth": "100"}, 0, 'the "imageWidth" "100" is no number of mm above 0'), ({"imageWidth": -5}, 0, '"imageWidth" -5 is no number'),
                ({"imageWidth": [5]}, 0, '"imageWidth" [5] is no number'), ({"imageWidth": True}, 0, '"imageWidth" true is no number'),
                ({"imageWidth": 0, "ledAdjust": None}, 0, "")):
            with open(self.path("rig.dome"), "w", encoding="utf-8") as file:
                json.dump({**dome, **entry}, file)
            _out, err = self.gst_imaging("photostereo", "photos", "rig.dome", "-o", "out", "--overwrite", code=code)
            self.assertIn(sentence, err)
            self.assertEqual(err.count("\n"), bool(sentence), err)

    def test_names_with_accents_of_another_form(self):
        """The light file as Linux writes them, photographs as macOS does."""
        self.assertEqual(photographs.stem("u\u0308bung 1.PNG"), photographs.stem("\u00fcbung 1.tif"))

    def test_a_folder_without_pictures_tells_what_it_has(self):
        os.mkdir(self.path("photos"))
        for name in "a.heic", "b.HEIC", "lights.lp":
            with open(self.path(f"photos/{name}"), "w", encoding="utf-8") as file:
                file.write("1\na 0 0 1\n")
        for command in "photostereo", "lights":
            _out, err = self.gst_imaging(command, "photos", "-o", "out", code=3)
            self.assertIn("photos has no pictures that can be read; its files are .heic, .lp.", err)

    def test_a_dome_file_with_names_for_some_of_its_lights(self):
        """The two lists have another length; IMG_1 and IMG_2 are swapped in both."""
        self.take()
        order = [1, 0, *range(2, LIGHTS)]
        lights, names = [dict(zip("xyz", self.lights[i])) for i in order], [f"IMG_{i + 1}.png" for i in order]
        for n_lights, n_names, code, told in (
                (LIGHTS, LIGHTS - 1, 3, 'IMG_16.png of photos has no light, because rig.dome has 15 names in "images" and 16 lights.'),
                (LIGHTS - 1, LIGHTS, 3, 'IMG_16.png of photos has no light, because rig.dome has 16 names in "images" and 15 lights.'),
                (LIGHTS, LIGHTS + 1, 0, 'rig.dome has 17 names in "images" and 16 lights: each name is taken to be of the light at the same place')):
            with open(self.path("rig.dome"), "w", encoding="utf-8") as file:
                json.dump({"directions": lights[:n_lights], "images": [*names, "test.png"][:n_names]}, file)
            _out, err = self.gst_imaging("photostereo", "photos", "rig.dome", "-o", "out", code=code)
            self.assertIn(told, err)
            self.assertEqual(err.count("\n"), 1, err)
        self.assertLess(self.error("out")[0], 0.1)

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
    def test_a_jpeg_mask_does_not_ring(self):
        np.save(self.path("a.npy"), np.dstack([self.inside.astype(np.uint8) * 255] * 3))
        launch("picturesrc", f"location={self.path('a.npy')}", "!", "videoconvert", "!", "jpegenc", "quality=85", "!",
               "filesink", f"location={self.path('mask.jpg')}")
        self.assertGreater((photographs.read(self.path("mask.jpg")) > 0).mean(), 1.02 * self.inside.mean())
        mask = photographs.read_mask(np, self.path("mask.jpg"), (HEIGHT, WIDTH))
        self.assertLess((mask != self.inside).mean(), 0.002)

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
