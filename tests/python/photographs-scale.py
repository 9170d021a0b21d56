# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging photostereo: colours and scale from a chart, a ruler and a dome."""
import json
import os

import numpy as np

from photographscene import HEIGHT, LIGHTS, PNG, WIDTH, Photographs
from support import main

from gst_imaging import chart, photographs


@PNG
class Scale(Photographs):
    def test_colours_of_a_chart(self):
        """A camera that mixes colours, and a chart in a corner of another picture."""
        camera = np.linalg.inv([[1.5, -0.3, -0.2], [-0.2, 1.4, -0.2], [0, -0.4, 1.4]])
        true = np.array([0.5, 0.2, 0.1])
        for i, light in enumerate(self.lights):
            lit = np.maximum(self.normals @ light, 0)[..., None] * (camera @ true)
            self.save(f"photos/IMG_{i + 1}.png", np.rint(65535 * lit).astype(np.uint16))
        picture = np.random.default_rng(1).uniform(0.05, 0.1, (HEIGHT, WIDTH, 3))
        patches = chart.linear(np, chart.SRGB).reshape(4, 6, 3) @ camera.T
        for row in range(4):
            for column in range(6):
                picture[15 + 14 * row:26 + 14 * row, 12 + 14 * column:23 + 14 * column] = 0.9 * patches[row, column]
        self.save("chart.png", np.rint(65535 * np.clip(picture, 0, 1)).astype(np.uint16))
        self.write_lp("lights.lp")
        for name, words in ("found", []), ("given", ["--chart-corners", "17,20", "87,20", "87,62", "17,62"]):
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", name, "--chart", "chart.png", *words)
            albedo = photographs.read(self.path(f"{name}/albedo.png"))[self.inside][:, :3].mean(0)
            self.assertLess(np.abs(albedo / albedo[0] - true / true[0]).max(), 1e-4, name)
            self.assertLess(next(f["value"] for f in self.result(name)["figures"] if f["name"] == "colour error of the chart"), 0.01)
            self.assertTrue(os.path.exists(self.path(f"{name}/mesh.glb")))
        self.save("noise.png", np.random.default_rng(2).integers(0, 65535, (HEIGHT, WIDTH, 3)).astype(np.uint16))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "noise", "--chart", "noise.png", code=3)
        self.assertIn("No chart of 24 patches is found in noise.png", err)

    def save_chart(self, name, h, shape=(HEIGHT, WIDTH), gap=0.45):
        """A chart of 24 patches of float64, each pixel the mean of 5 x 5; h: from columns and rows to pixels [3, 3]; gap: half of a
        patch, of the distance of two: the frames between them are dark"""
        fine = (np.arange(5 * max(shape)) + 0.5) / 5 - 0.5
        x, y = np.meshgrid(fine[:5 * shape[1]], fine[:5 * shape[0]])
        at = np.stack([x, y, np.ones_like(x)], -1) @ np.linalg.inv(h).T
        column, row = at[..., 0] / at[..., 2], at[..., 1] / at[..., 2]
        inside = (abs(column - 2.5) < 3.05) & (abs(row - 1.5) < 2.05)
        on_patch = inside & (np.maximum(abs(column - np.rint(column)), abs(row - np.rint(row))) < gap)
        on_patch &= (np.rint(column) >= 0) & (np.rint(column) < 6) & (np.rint(row) >= 0) & (np.rint(row) < 4)
        number = np.clip(np.rint(column), 0, 5).astype(int) + 6 * np.clip(np.rint(row), 0, 3).astype(int)
        picture = np.where(on_patch[..., None], 0.9 * chart.linear(np, chart.SRGB)[number], np.where(inside, 0.01, 0.2)[..., None])
        picture = picture.reshape(shape[0], 5, shape[1], 5, 3).mean((1, 3))
        self.save(name, np.rint(65535 * picture).astype(np.uint16))

    def scale_of(self, folder):
        settings = self.result(folder)["settings"]
        return next((float(s["value"]) for s in settings if s["name"] == "mm-per-pixel" and s["owner"] == "photostereo"), 1)

    def test_the_scale_of_a_ruler(self):
        self.take()
        self.write_lp("lights.lp")
        self.save("photos/mask.png", self.inside.astype(np.uint8) * 255)
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "pixels")
        said, _err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--web", "--scale-ruler", "10,20,40,60,12.5")
        self.assertIn("out: complete, not checked: distance of the lamps, curve of the samples, room light; see out/web/index.html and out/report.html", said)
        self.assertAlmostEqual(self.scale_of("out"), 0.25, places=9)
        heights = [photographs.read(self.path(f"{name}/height.tif")) for name in ("pixels", "out")]
        np.testing.assert_allclose(heights[1], 0.25 * heights[0], rtol=1e-5)
        for name in "report.html", "web/about.js":
            with open(self.path(f"out/{name}"), encoding="utf-8") as file:
                self.assertIn("mm", file.read())
        for words, unit in ((), "pixels"), (("--mm-per-pixel", "1"), "mm"):  # the second is another result, of the same numbers
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "one", "--web", "--overwrite", *words)
            with open(self.path("one/web/about.js"), encoding="utf-8") as file:
                self.assertIn(f'"unit": "{unit}"', file.read())
        settings = {s["name"]: s["value"] for s in self.result("out")["settings"]}
        self.assertEqual(settings["scale-ruler"], "10,20,40,60,12.5")
        with open(self.path("rig.dome"), "w", encoding="utf-8") as file:
            json.dump({"imageWidth": 0.5 * WIDTH, "directions": [dict(zip("xyz", light)) for light in self.lights],
                       "lightConfiguration": "directional", "images": [f"IMG_{i + 1}.png" for i in range(LIGHTS)]}, file)
        self.gst_imaging("photostereo", "photos", "rig.dome", "-o", "same", "--scale-ruler", "10,20,40,60,25.3")
        self.assertAlmostEqual(self.scale_of("same"), 0.506, places=9)
        for lights, words, code, sentence in (
                ("rig.dome", ("--scale-ruler", "10,20,40,60,12.5"), 2, "--scale-ruler gives 0.25 mm per pixel, and imageWidth of rig.dome 0.5: give"
                 " the right one as --mm-per-pixel, alone."),
                ("lights.lp", ("--scale-ruler", "10,20,40,60,12.5", "--mm-per-pixel", "0.3"), 2, "--mm-per-pixel gives 0.3 mm per pixel, and"
                 " --scale-ruler 0.25: give one of them."),
                ("lights.lp", ("--scale-ruler", f"10,20,{WIDTH},60,12.5"), 2, "is not in the pictures of"),
                ("lights.lp", ("--scale-ruler", "10,20,10,20,5"), 2, "have to differ"),
                ("lights.lp", ("--scale-ruler", "10,20,40,60,nan"), 2, "above 0"),
                ("lights.lp", ("--scale-ruler", "10,20,40"), 2, "is not X1,Y1,X2,Y2,MM"),
                ("lights.lp", ("--chart-mm", "215x129"), 2, "give its picture with --chart"),
                ("lights.lp", ("--chart", "chart.png", "--chart-mm", "215"), 2, "is not WIDTHxHEIGHT")):
            _out, err = self.gst_imaging("photostereo", "photos", lights, "-o", "bad", *words, code=code)
            self.assertIn(sentence, err)
            self.assertFalse(os.path.exists(self.path("bad")))

    def test_the_scale_of_a_chart(self):
        self.take()
        self.write_lp("lights.lp")
        step, angle = 15.3, np.radians(4)
        turned = np.array([[step * np.cos(angle), -step * np.sin(angle), 17.3], [step * np.sin(angle), step * np.cos(angle), 18.6], [0, 0, 1]])
        self.save_chart("chart.png", turned)
        for name, words in ("found", ()), ("given", ("--chart-corners", *(
                "{:.3f},{:.3f}".format(*(turned @ corner)[:2]) for corner in ((0, 0, 1), (5, 0, 1), (5, 3, 1), (0, 3, 1))))):
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", name, "--chart", "chart.png", "--chart-mm", "215x129", *words)
            # half a tenth of a pixel over the 76 and 46 of the chart
            self.assertAlmostEqual(self.scale_of(name) / (43 / step), 1, delta=1e-3 if words == () else 1e-5)
        words = ("photostereo", "photos", "lights.lp", "-o", "bad", "--chart")
        _out, err = self.gst_imaging(*words, "chart.png", "--chart-mm", "129x215", code=3)
        self.assertIn("it does not face the camera, or --chart-mm is of another chart", err)
        self.save_chart("wide.png", turned, (HEIGHT, WIDTH + 20))
        _out, err = self.gst_imaging(*words, "wide.png", "--chart-mm", "215x129", code=3)
        self.assertIn(f"wide.png is {WIDTH + 20} x {HEIGHT} and the photographs are {WIDTH} x {HEIGHT}", err)
        self.save_chart("touching.png", turned, gap=0.5)
        _out, err = self.gst_imaging(*words, "touching.png", "--chart-mm", "215x129", code=3)
        self.assertIn("have no dark frames to measure them by: give the middles", err)
        tilt = np.array([[1, 0, 0], [0, 1, 0], [0.012, 0, 1]])
        self.save_chart("tilted.png", turned @ tilt)
        _out, err = self.gst_imaging(*words[:-2], "tilted", "--chart", "tilted.png", "--chart-mm", "215x129")
        self.assertIn("does not face the camera", err)

    def test_normals_whose_y_is_down_have_the_same_heights(self):
        self.take()
        self.write_lp("lights.lp")
        heights, curls, pages = [], [], []
        for words in (), ("y-axis=down",), ("y-axis=1",), ("y_axis=down",), ("y-axis=up", "y-axis=down"), ("y-axis=down", "y-axis=up"):
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", "--web", *(f"--set={word}" for word in words))
            heights.append(photographs.read(self.path("out/height.tif")).reshape(HEIGHT, WIDTH))
            curls.append(next(f["value"] for f in self.result("out")["figures"] if f["name"] == "curl of the slopes"))
            pages.append(sorted(os.listdir(self.path("out/web"))))
        for height, curl, page in zip(heights[1:], curls[1:], pages[1:]):
            np.testing.assert_allclose(height, heights[0], atol=0.01)
            self.assertAlmostEqual(curls[0], curl, delta=1e-3)
            self.assertEqual(page, pages[0])

    def test_the_width_of_a_dome_is_the_scale(self):
        self.take()
        lamps = 300 * self.lights
        for name, entry in (("rig.dome", {"imageWidth": 0.5 * WIDTH}), ("none.dome", {}), ("bad.dome", {"imageWidth": "wide"})):
            with open(self.path(name), "w", encoding="utf-8") as file:
                json.dump({**entry, "lightConfiguration": "lights3d", "positions3d": [dict(zip("xyz", lamp)) for lamp in lamps],
                           "images": [f"IMG_{i + 1}.png" for i in range(LIGHTS)]}, file)
        scales = []
        for name, words in (("rig.dome", ()), ("none.dome", ()), ("bad.dome", ()), ("rig.dome", ("--mm-per-pixel", "0.25"))):
            self.gst_imaging("photostereo", "photos", name, *words, "-o", "out", "--overwrite")
            settings = self.result("out")["settings"]  # those that differ from their defaults
            scales.append(next((float(s["value"]) for s in settings if s["name"] == "mm-per-pixel" and s["owner"] == "photostereo"), 1))
        self.assertEqual(scales, [0.5, 1, 1, 0.25])

    def test_a_lens_is_that_of_the_heights_too(self):
        """A part of a sphere of 20 mm, 92 mm below the camera; without the lens it is 1 mm off."""
        focal, far, middle = 60 / 36 * WIDTH, 92.0, -5.0
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        ways = np.dstack([(x - (WIDTH - 1) / 2) / focal, ((HEIGHT - 1) / 2 - y) / focal, -np.ones(x.shape)])
        a, b, c = (ways ** 2).sum(-1), (far - middle) * ways[..., 2], (far - middle) ** 2 - 20 ** 2
        root = b * b - a * c
        way = (-b - np.sqrt(np.maximum(root, 0))) / a
        points = way[..., None] * ways + (0, 0, far)
        inside = (root > 0) & (points[..., 2] > 2)
        self.normals = (points - (0, 0, middle)) / 20 * inside[..., None]
        height = np.where(inside, points[..., 2], np.nan)
        self.albedo = 0.8 * np.ones(x.shape)
        self.take()
        self.save("photos/mask.png", inside.astype(np.uint8) * 255)
        self.write_lp("lights.lp")
        lens = "--set", "focal-length-mm=0x3C", "--set", "sensor-width-mm=36"
        lowest, mean = np.nanmin(height), np.nanmean(height)
        for plane, at, more in ("lowest", lowest, ()), ("1", lowest, ()), ("mean", mean, ()), ("mean", mean, ("--integration", "bilateral")):
            words = *lens, "--set", f"plane-at={plane}", "--mm-per-pixel", f"{(far - at) / focal}", *more
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", *words)
            found = photographs.read(self.path("out/height.tif")).reshape(HEIGHT, WIDTH)
            self.assertLess(np.sqrt(np.nanmean((found - height + lowest) ** 2)), 0.05, (plane, more))
            scales = [float(s["value"]) for s in self.result("out")["settings"] if (s["owner"], s["name"]) == ("normalintegrate", "mm-per-pixel")]
            self.assertEqual(len(scales), 1)
            self.assertAlmostEqual(scales[0] * focal / (far - lowest), 1, delta=2e-3)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", *lens)
        self.assertIn("There is a lens and no scale", err)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "bad", *lens[:2], code=2)
        self.assertIn("belong together", err)

    def test_properties_of_the_heights_are_set_as_well(self):
        self.take()
        self.write_lp("lights.lp")
        self.save("photos/mask.png", self.inside.astype(np.uint8) * 255)
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "plain")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "flat", "--set", "flatten=quadratic")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "known", "--set", "known-points=<55,45,-7.5>", "--set", "robust=none")
        plain, flat, known = (photographs.read(self.path(f"{name}/height.tif")).reshape(HEIGHT, WIDTH) for name in ("plain", "flat", "known"))
        self.assertLess(np.nanstd(flat), 0.3 * np.nanstd(plain))
        self.assertAlmostEqual(known[45, 55], -7.5, places=3)
        for word, sentence in (("flaten=plane", 'photostereo and normalintegrate have no property "flaten"; did you mean "flatten"?'),
                               ("robst=none", 'did you mean "robust"?'), ("method=poisson", "the command sets method itself, by --integration"),
                               ("settings=settings,y-axis=down", "Give each of them with a --set of its own"),
                               ("mm_per_pixel=2", "the command sets mm-per-pixel itself, by --mm-per-pixel"),
                               ("flatten=cubic", "flatten is \"cubic\", and is one of")):
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "bad", "--set", word, code=2)
            self.assertIn(sentence, err)


main()
