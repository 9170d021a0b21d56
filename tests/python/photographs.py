# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands photostereo, relight and lights: from folders of photographs to results, against a scene that is known."""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest

import numpy as np

from support import SOURCE, TIMEOUT, launch, main, run_command

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import chart, lamps, library, mirrors, photographs, pinhole

PNG = unittest.skipUnless("png" in os.environ["FORMATS"].split(), "built without png")
HEIGHT, WIDTH, LIGHTS = 90, 110, 16


def scene(height=HEIGHT, width=WIDTH):
    """A matte ball in front of a wall. Returns: normals, mask, albedo"""
    y, x = np.mgrid[:height, :width]
    x, y = (x - width / 2 + 0.5) / (0.45 * height), (height / 2 - 0.5 - y) / (0.45 * height)
    z = np.sqrt(np.maximum(1 - x * x - y * y, 0))
    inside = np.hypot(x, y) < 0.9
    normals = np.where(inside[..., None], np.dstack([x, y, z]), [0, 0, 1.0])
    return normals, inside, np.where(x > 0, 0.8, 0.4)


def directions(n=LIGHTS):
    turn, z = 2.4 * np.arange(n), 0.95 - 0.5 * np.arange(n) / n
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], 1)


def photograph(light, normals, albedo):
    return albedo * np.maximum(normals @ light, 0)


def angle(a, b):
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


class Photographs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.arrays = library.Arrays()
        self.normals, self.inside, self.albedo = scene()
        self.lights = directions()

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, values):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.arrays.save_values(np, self.path(name), np.ascontiguousarray(values))

    def take(self, folder="photos", form="png", dtype=np.uint16):
        """Photographs under all lights, IMG_1 to IMG_16."""
        for i, light in enumerate(self.lights):
            shown = np.rint(np.iinfo(dtype).max * photograph(light, self.normals, self.albedo)).astype(dtype)
            self.save(f"{folder}/IMG_{i + 1}.{form}", np.dstack([shown] * 3))

    def write_lp(self, name, order=None, naming="IMG_{}.png"):
        order = range(LIGHTS) if order is None else order
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(f"{len(order)}\n" + "".join(
                f"{naming.format(i + 1)} {self.lights[i][0]:.7f} {self.lights[i][1]:.7f} {self.lights[i][2]:.7f}\n" for i in order))

    def start(self, *words):
        return subprocess.Popen([sys.executable, "-B", "-m", "gst_imaging", *words], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})

    def gst_imaging(self, *words, code=0):
        done = run_command(*words, folder=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def error(self, folder, mask=None):
        """Mean angle of the normals of a result from the truth, and the part that has one."""
        words = photographs.read(self.path(f"{folder}/normals.png")).astype(float)
        solved = words[..., 3] > 0
        mask = self.inside if mask is None else mask
        return angle((words[..., :3] - 32768) / 32767, self.normals)[solved & mask].mean(), (solved & mask).sum() / mask.sum()

    def result(self, folder):
        with open(self.path(f"{folder}/result.json"), encoding="utf-8") as file:
            return json.load(file)


@PNG
class Photostereo(Photographs):
    def test_a_folder_of_16_bit_png_and_a_shuffled_light_file(self):
        self.take()
        order = list(range(LIGHTS))
        random.Random(1).shuffle(order)
        self.write_lp("lights.lp", order, "C:\\Rig 7\\img_{}.JPG")  # as another program wrote it, elsewhere
        self.save("photos/mask.png", np.dstack([self.inside.astype(np.uint8) * 255] * 3))
        out, err = self.gst_imaging("photostereo", "photos/", "lights.lp", "-o", "out", "--mm-per-pixel", "0.5", "--json")
        self.assertEqual(err, "")
        self.assertEqual(json.loads(out)["pictures"], LIGHTS)
        self.assertEqual(sorted(os.listdir(self.path("out"))), [
            "albedo.png", "confidence.png", "height.tif", "lights.lp", "mask.png", "mesh.glb", "normals.png", "report.html", "result.json"])
        error, solved = self.error("out")
        self.assertLess(error, 0.1)
        self.assertEqual(solved, 1)
        self.assertFalse(photographs.read(self.path("out/normals.png"))[~self.inside].any())
        albedo = photographs.read(self.path("out/albedo.png"))[..., 0] / 65535
        self.assertLess(np.abs(albedo - self.albedo)[self.inside].max(), 0.01)
        height = photographs.read(self.path("out/height.tif")).reshape(HEIGHT, WIDTH)
        radius = 0.5 * 0.45 * HEIGHT
        depth = radius * (1 - np.sqrt(1 - 0.9 ** 2))  # of the middle above the rim
        self.assertAlmostEqual(np.nanmax(height), depth, delta=0.05 * depth)
        self.assertTrue(np.isnan(height[~self.inside]).all())
        told = self.result("out")
        self.assertTrue(all(figure["met"] in (True, None) for figure in told["figures"]), told["figures"])
        self.assertEqual([entry["role"] for entry in told["inputs"]], ["mask", "lights"] + ["picture"] * LIGHTS)
        with open(self.path("out/report.html"), encoding="utf-8") as file:
            text = file.read()
        for words in ("Convergence", "Residuals", "Albedo", "Height", "(mm)", "10 mm", "mean residual"):
            self.assertIn(words, text)
        self.assertNotIn(".gst-imaging-work", text + json.dumps(told))
        self.assertIn("was complete already", self.gst_imaging("photostereo", "photos/", "lights.lp", "-o", "out",
                                                                "--mm-per-pixel", "0.5")[0])
        self.assertIn("--overwrite", self.gst_imaging("photostereo", "photos/", "lights.lp", "-o", "out", code=4)[1])

    def test_the_confidence_tells_the_error_that_noise_makes(self):
        noise = np.random.default_rng(1)
        for i, light in enumerate(self.lights):
            shown = photograph(light, self.normals, 0.5) + noise.normal(0, 0.01, (HEIGHT, WIDTH))
            self.save(f"photos/IMG_{i + 1}.png", np.rint(65535 * np.clip(shown, 0, 1)).astype(np.uint16))
        self.save("photos/IMG_3.png", np.zeros((HEIGHT, WIDTH), np.uint16))  # a light that does not fit
        self.write_lp("lights.lp")
        self.save("photos/mask.png", np.where(np.arange(WIDTH) < 100, 255, 0).astype(np.uint8) * np.ones((HEIGHT, 1), np.uint8))
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        samples = photographs.read(self.path("out/confidence.png")).reshape(HEIGHT, WIDTH).astype(float)
        mask = photographs.read(self.path("out/mask.png")).reshape(HEIGHT, WIDTH)
        normals = photographs.read(self.path("out/normals.png")).astype(float)
        np.testing.assert_array_equal(mask, np.where(normals[..., 3] > 0, 255, 0))
        self.assertFalse(mask[:, 100:].any())
        self.assertFalse(samples[:, 100:].any())
        # where all lights shine: the covariance of float64, of which e has to be an upper bound that is near
        flat = (mask > 0) & (self.normals @ self.lights.T > 0.15).all(-1)
        self.assertGreater(flat.sum(), 3000)
        used = np.delete(self.lights, 2, 0)
        covariance = np.linalg.inv(used.T @ used) * (0.01 / 0.5) ** 2
        n = self.normals[flat]
        expected = np.degrees(np.sqrt(np.trace(covariance) - np.einsum("pi,ij,pj->p", n, covariance, n)))
        found = 65535 / samples[flat] - 1
        error = angle((normals[..., :3] - 32768)[flat], n)
        np.testing.assert_allclose(np.sqrt((error ** 2).mean()), np.sqrt((expected ** 2).mean()), rtol=0.05)
        self.assertGreater(np.sqrt((found ** 2).mean() / (expected ** 2).mean()), 1)
        self.assertLess(np.sqrt((found ** 2).mean() / (expected ** 2).mean()), 1.25)

    def test_three_lights_leave_nothing_to_judge_by(self):
        for i in (0, 5, 10):
            shown = 1e-9 + photograph(self.lights[i], self.normals, self.albedo)
            self.save(f"photos/IMG_{i + 1}.png", np.rint(65535 * shown).astype(np.uint16))
        self.write_lp("lights.lp", [0, 5, 10])
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        self.assertTrue(photographs.read(self.path("out/mask.png")).any())
        self.assertFalse(photographs.read(self.path("out/confidence.png")).any())

    def test_turned_and_mirrored_lights_are_seen_in_the_curl(self):
        """The residuals are those of the right lights: the same vectors in another system of axes."""
        self.take()
        lights = self.lights
        turned = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
        for name, axes, met in ("right", np.eye(3), True), ("mirrored", np.diag([1, -1, 1]), False), ("turned", turned, False):
            self.lights = lights @ axes.T
            self.write_lp(f"{name}.lp")
            self.gst_imaging("photostereo", "photos/", f"{name}.lp", "-o", name)
            figures = {figure["name"]: figure for figure in self.result(name)["figures"]}
            self.assertTrue(figures["mean residual"]["met"], name)
            self.assertEqual(figures["curl of the slopes"]["met"], met, figures["curl of the slopes"])

    def test_polynomial_texture_maps(self):
        """Against a fit by NumPy; the planes of Relight hold the same polynomial."""
        self.take(dtype=np.uint8)
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos/", "lights.lp", "-o", "out", "--rti", "--gamma", "2.2")
        with open(self.path("out/rti/object.ptm"), "rb") as file:
            head = [file.readline().decode().split() for _ in range(6)]
            self.assertEqual(head[:4], [["PTM_1.2"], ["PTM_FORMAT_LRGB"], [str(WIDTH)], [str(HEIGHT)]])
            codes = np.frombuffer(file.read(6 * WIDTH * HEIGHT), np.uint8).reshape(HEIGHT, WIDTH, 6)[::-1]
            colour = np.frombuffer(file.read(), np.uint8).reshape(HEIGHT, WIDTH, 3)[::-1]
        scale, bias = (np.array(words, float) for words in head[4:])
        self.assertTrue(all(0 <= int(word) <= 255 for word in head[5]))
        self.assertGreaterEqual(colour.min(), 254)  # the photographs are grey
        u, v = self.lights[:, 0], self.lights[:, 1]
        terms = np.stack([u * u, v * v, u * v, u, v, np.ones_like(u)], 1)
        shown = np.stack([photographs.read(self.path(f"photos/IMG_{i + 1}.png"))[..., 0] for i in range(LIGHTS)]).reshape(LIGHTS, -1)
        fit = terms @ np.linalg.lstsq(terms, shown.astype(float), rcond=None)[0]
        found = terms @ ((codes - bias) * scale).reshape(-1, 6).T
        step = np.abs(terms) @ scale / 2  # half a step of every coefficient
        close = (np.abs(found - fit) <= step[:, None] + 1).all(0)
        self.assertGreater(close.mean(), 0.997)  # the others were clipped
        with open(self.path("out/rti/info.json"), encoding="utf-8") as file:
            info = json.load(file)
        self.assertEqual([info[name] for name in ("width", "height", "type", "colorspace", "nplanes")], [WIDTH, HEIGHT, "ptm", "lrgb", 9])
        self.assertLess(np.abs(np.array(info["lights"]).reshape(-1, 3) - self.lights).max(), 1e-5)
        if "jpeg" in os.environ["FORMATS"].split():
            planes = np.concatenate([photographs.read(self.path(f"out/rti/plane_{i}.jpg")) for i in range(3)], -1).astype(float)
            values = (planes / 255 - info["materials"][0]["bias"]) * info["materials"][0]["scale"] * 255
            light = values[..., 3:] @ np.stack([np.ones_like(u), u, v, u * u, u * v, v * v])
            self.assertLess(np.abs(light.reshape(-1, LIGHTS).T - found).mean(), 5)

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
        self.assertGreater(self.error("without")[0], 3)
        self.assertLess(self.error("out")[0], 0.1)
        albedo = photographs.read(self.path("out/albedo.png"))[..., 0] / 65535
        self.assertLess(np.abs(albedo - self.albedo)[self.inside].max(), 0.01)
        os.remove(self.path("white/IMG_3.png"))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "lacking", "--white", "white", code=3)
        self.assertIn("no white sheet for 1 of 16 photographs: IMG_3.png", err)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "lacking", "--white", "white", "--set", "plane-z=3", code=2)
        self.assertIn("--set plane-z=3 changes how the lamps shine", err)

    def test_room_light_and_the_curve_of_srgb(self):
        for i, light in enumerate(self.lights):
            lit = 0.85 * photograph(light, self.normals, self.albedo) + 0.08
            coded = np.where(lit <= 0.0031308, 12.92 * lit, 1.055 * lit ** (1 / 2.4) - 0.055)
            self.save(f"room/IMG_{i + 1}.png", np.dstack([np.rint(65535 * coded).astype(np.uint16)] * 3))
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "room", "lights.lp", "-o", "mean", "--curve", "srgb")
        self.gst_imaging("photostereo", "room", "lights.lp", "-o", "out", "--curve", "srgb", "--set", "ambient-model=constant")
        self.assertGreater(self.error("mean")[0], 3)
        self.assertLess(self.error("out")[0], 0.05)
        for model, content in ("mean", "mean-of-pictures"), ("constant", "room-light"):
            launch("-q", "picturesrc", f"location={self.path('room')}", "!", "photostereo", "name=p", f"ambient-model={model}",
                   f"lights-location={self.path('lights.lp')}", "p.ambient", "!", f"video/x-raw,content={content}", "!", "fakesink")

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
            self.assertLess(np.abs(albedo / albedo[0] - true / true[0]).max(), 0.01, name)
            self.assertLess(next(f["value"] for f in self.result(name)["figures"] if f["name"] == "colour error of the chart"), 1)
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
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--web", "--scale-ruler", "10,20,40,60,12.5")
        self.assertAlmostEqual(self.scale_of("out"), 0.25, places=9)
        heights = [photographs.read(self.path(f"{name}/height.tif")) for name in ("pixels", "out")]
        np.testing.assert_allclose(heights[1], 0.25 * heights[0], rtol=1e-5)
        for name in "report.html", "web/about.js":
            with open(self.path(f"out/{name}"), encoding="utf-8") as file:
                self.assertIn("mm", file.read())
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

    def test_solvers_and_integrations_by_name(self):
        """They are those of the elements: the same bytes as by the properties."""
        noise = np.random.default_rng(4)
        for i, light in enumerate(self.lights):
            shown = photograph(light, self.normals, self.albedo) + noise.normal(0, 0.02, (HEIGHT, WIDTH))
            self.save(f"photos/IMG_{i + 1}.png", np.rint(65535 * np.clip(shown, 0, 1)).astype(np.uint16))
        self.write_lp("lights.lp")
        normals = {}
        for method, properties in (("none", ("robust=none",)), ("huber", ("robust=huber",)), ("adaptive", ("threshold-mode=adaptive",)),
                                   ("relative", ("threshold-mode=relative",)), ("absolute", ("threshold-mode=absolute",))):
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", method, "--method", method)
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "by-set", "--overwrite", *(w for p in properties for w in ("--set", p)))
            normals[method] = photographs.read(self.path(f"{method}/normals.png"))
            np.testing.assert_array_equal(normals[method], photographs.read(self.path("by-set/normals.png")), method)
            self.assertIn(("method", method), [(s["name"], s["value"]) for s in self.result(method)["settings"]])
        self.assertEqual(len({normal.tobytes() for normal in normals.values()}), 5)
        heights = []
        for integration, words in (("poisson", ()), ("frankot-chellappa", ()), ("bilateral", ()), ("bilateral", ("--stiffness", "0"))):
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "heights", "--overwrite", "--integration", integration, *words)
            heights.append(photographs.read(self.path("heights/height.tif")))
            launch("-q", "picturesrc", f"location={self.path('heights/normals.png')}", "!", "normalintegrate", "name=i", f"method={integration}",
                   *(f"stiffness={word}" for word in words[1:]), "i.tensor", "!", "picturesink", "sidecar=none", f"location={self.path('by-hand.tif')}")
            np.testing.assert_array_equal(heights[-1], photographs.read(self.path("by-hand.tif")), integration)
        self.assertEqual(len({height.tobytes() for height in heights[:3]}), 3)
        for words, sentence in (
                (("--method", "huber", "--set", "robust=none"), "--set robust=none and --method huber set the same"),
                (("--stiffness", "1"), "--stiffness is of --integration bilateral, not of poisson"),
                (("--set", "mm-per-pixel=0.1"), "--set mm-per-pixel=0.1: the command sets mm-per-pixel itself, by --mm-per-pixel"),
                (("--method", "robust"), "invalid choice: 'robust'")):
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "bad", *words, code=2)
            self.assertIn(sentence, err)
        # the normals would go with the result that they are a part of
        _out, err = self.gst_imaging("relight", "heights", "-o", "heights", "--overwrite", "--light", "45,30", code=4)
        self.assertIn("normals.png is an input, and lies in the result that would be replaced", err)
        self.assertTrue(os.path.isfile(self.path("heights/height.tif")))
        with open(self.path("photos/IMG_1.png"), "rb") as file, open(self.path("photos/IMG_1.jpg"), "wb") as copy:
            copy.write(file.read())
        os.remove(self.path("photos/IMG_1.png"))
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "bad", code=2)
        self.assertIn("has JPEG files, which have a gamma of 2.2, and others", err)

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

    def test_what_no_page_and_no_map_can_be_made_of(self):
        self.take()
        self.write_lp("five.lp", range(5))
        _out, err = self.gst_imaging("photostereo", "photos/", "five.lp", "-o", "out", "--title", "A ball", code=2)
        self.assertIn("--title is the title of the page: give --web as well.", err)
        _out, err = self.gst_imaging("photostereo", "photos/", "five.lp", "-o", "out", "--rti", code=3)
        self.assertIn("six coefficients, and 5 lights", err)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_missing_extra_and_unequal_pictures_are_told_and_left_out(self):
        self.take()
        self.write_lp("photos/rig.lp")
        os.remove(self.path("photos/IMG_3.png"))
        self.save("photos/holiday.png", np.zeros((HEIGHT, WIDTH, 3), np.uint16))
        self.save("photos/IMG_5.png", np.zeros((HEIGHT + 1, WIDTH, 3), np.uint16))
        self.save("photos/IMG_6.png", np.zeros((HEIGHT, WIDTH, 3), np.uint8))
        with open(self.path("photos/IMG_8.png"), "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n cut off")
        _out, err = self.gst_imaging("photostereo", "photos", "-o", "out")
        for words in ("1 of 16 lights have no picture: IMG_3.png", "1 pictures have no light in rig.lp and are not used: holiday.png",
                      "2 pictures differ", "IMG_5.png (u16 110 x 91 with 3 channels)", "IMG_6.png (u8", "IMG_8.png"):
            self.assertIn(words, err)
        self.assertEqual(self.result("out")["pictures"], LIGHTS - 4)
        self.assertLess(self.error("out")[0], 0.1)
        self.assertEqual(len(self.result("out")["warnings"]), err.count("\n"))

    def test_what_cannot_be_told_is_one_sentence(self):
        self.take()
        self.write_lp("other.lp", naming="lamp{}.tif")
        self.write_lp("two.lp", range(2))
        np.savetxt(self.path("plain.txt"), self.lights, "%.7f")
        np.savetxt(self.path("few.txt"), self.lights[:9], "%.7f")
        self.write_lp("lights.lp")
        with open(self.path("lights.lp"), encoding="utf-8") as file:
            lines = file.read().split("\n")
        for name, text in ("bare.lp", lines[1:]), ("comma.lp", [*lines[:2], lines[2].replace(".", ",") if " " in lines[2] else "", *lines[3:]]):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("\n".join(text))
        np.save(self.path("mask.npy"), np.ones((7, 9), np.uint8))
        np.save(self.path("float.npy"), np.full((HEIGHT, WIDTH, 3), 2.5, np.float32))
        os.mkdir(self.path("empty"))
        for words, code, sentence in (
                (("photos", "other.lp"), 3, "--by-order"), (("photos", "few.txt"), 3, "16 pictures"),
                (("photos", "two.lp"), 3, "at least 3"), (("photos",), 2, "no light file"), (("absent", "other.lp"), 3, "absent"),
                (("photos", "lights.lp", "other.lp"), 2, "both files"), (("empty", "lights.lp"), 3, "no pictures"),
                (("photos", "bare.lp"), 3, "bare.lp, line 1: a list with names begins with"),
                (("photos", "comma.lp"), 3, "comma.lp, line 3: "),
                (("photos", "lights.lp", "--mask", "mask.npy"), 3, "9 x 7"),
                (("photos", "lights.lp", "--set", "robust=maybe"), 2, "maybe"),
                (("photos", "lights.lp", "--web", "--title", "two\nlines"), 2, "a line break or another control character"),
                (("photos", "lights.lp", "--chart-corners", "1,1", "2,1", "2,2", "1,2"), 2, "give it with --chart"),
                (("photos", "lights.lp", "--gamma", "2", "--curve", "srgb"), 2, "two curves"),
                (("photos", "lights.lp", "--white", "photos", "--intensities", "few.txt"), 3, "9 intensities, and"),
                (("photos", "lights.lp", "--white", "photos", "--dark", "float.npy"), 3, "float.npy has samples of float32"),
                (("photos", "lights.lp", "--chart", "float.npy"), 3, "float.npy has samples of float32"),
                (("photos", "lights.lp", "--extension", "nef"), 3, "no pictures nef")):
            _out, err = self.gst_imaging("photostereo", *words, "-o", "out", code=code)
            self.assertIn(sentence, err.splitlines()[-1], words)
            self.assertFalse(os.path.exists(self.path("out")), words)
        self.save("photos/IMG_1.tif", np.zeros((HEIGHT, WIDTH, 3), np.uint16)) if "tiff" in os.environ["FORMATS"] else None
        self.write_lp("bare.lp", naming="IMG_{}")
        if os.path.exists(self.path("photos/IMG_1.tif")):
            self.assertIn("--extension", self.gst_imaging("photostereo", "photos", "bare.lp", "-o", "out", code=2)[1])
        for i, words in enumerate((("other.lp", "--by-order"), ("plain.txt",), ("bare.lp",))):
            self.gst_imaging("photostereo", "photos", *words, "-o", f"out{i}", "--extension", "png", "--set", "update-interval=0")
            self.assertLess(self.error(f"out{i}")[0], 0.1)

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

    @unittest.skipUnless("jpeg" in os.environ["FORMATS"].split(), "built without jpeg")
    def test_jpeg_is_turned_upright_and_made_linear(self):
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHH", 0x112, 3, 1, 6, 0) + b"\0\0\0\0"
        os.mkdir(self.path("turned"))
        shown = [photograph(light, self.normals, self.albedo) ** (1 / 2.2) for light in self.lights]
        np.save(self.path("a.npy"), [np.rot90(np.dstack([np.rint(255 * picture).astype(np.uint8)] * 3)) for picture in shown])
        launch("picturesrc", f"location={self.path('a.npy')}", "!", "videoconvert", "!", "jpegenc", "quality=98", "!",
               "multifilesink", f"location={self.path('a%d.jpg')}")
        for i in range(LIGHTS):
            with open(self.path(f"a{i}.jpg"), "rb") as file:
                data = file.read()
            with open(self.path(f"turned/IMG_{i + 1}.JPG"), "wb") as file:
                file.write(data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:])
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "turned", "lights.lp", "-o", "out")
        self.assertEqual(self.result("out")["size"], [WIDTH, HEIGHT])
        self.assertLess(self.error("out")[0], 2)

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

    def test_stopped_in_the_middle_nothing_is_half_written(self):
        rng = np.random.default_rng(1)
        for i in range(LIGHTS):
            np.save(self.path(f"IMG_{i + 1}.npy"), rng.integers(0, 255, (1500, 1500), np.uint8))
        os.mkdir(self.path("large"))
        for i in range(LIGHTS):
            os.rename(self.path(f"IMG_{i + 1}.npy"), self.path(f"large/IMG_{i + 1}.npy"))
        self.take("small")
        self.write_lp("lights.lp")
        with self.start("photostereo", "small", "large", "lights.lp", "-o", "out") as process:
            end = time.monotonic() + TIMEOUT
            while not os.path.exists(self.path("out/.large.gst-imaging-work")) and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertIn("Complete: ", err)
        self.assertEqual(os.listdir(self.path("out")), ["small"])
        self.assertEqual(len(os.listdir(self.path("out/small"))), 9)


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
        out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", *(("--mask", mask) if mask else ()), code=code)
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


@PNG
class Relight(Photographs):
    def test_a_series_of_a_result_and_one_light(self):
        self.take()
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "ball")
        out, _err = self.gst_imaging("relight", "ball", "-o", "lit", "--light", "180,30", "--series", "4", "--elevation", "45",
                                     "--diffuse", "1", "--gamma", "1", "--json")
        self.assertEqual(json.loads(out)["pictures"], 5)
        for i, (azimuth, elevation) in enumerate([(180, 30), (0, 45), (90, 45), (180, 45), (270, 45)]):
            a, e = np.radians([azimuth, elevation])
            light = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
            shown = photographs.read(self.path(f"lit/lit{i:03}.png"))[..., 0] / 255
            self.assertLess(np.abs(shown - photograph(light, self.normals, self.albedo))[self.inside].max(), 0.01, i)
        self.gst_imaging("relight", "ball/normals.png", "-o", "white", "--diffuse", "1", "--gamma", "1", "--light", "0,90")
        shown = photographs.read(self.path("white/lit000.png"))[..., 0] / 255
        self.assertLess(np.abs(shown - self.normals[..., 2])[self.inside].max(), 0.01)

    def test_what_cannot_be_lit_is_one_sentence(self):
        os.mkdir(self.path("empty"))
        for words, code, sentence in ((("empty",), 3, "no result"), (("absent",), 3, "absent"), (("empty", "--light", "3"), 2, "--light"),
                                      (("empty", "--light", "400,95"), 2, "--light: the elevation is 95, and goes from -90 to 90"),
                                      (("empty", "--light", "0,30", "--light=30,-91"), 2, "the elevation is -91, and"),
                                      (("empty", "--light", "nan,30"), 2, "the azimuth is nan, and goes from -1000000 to 1000000"),
                                      (("empty", "--light", "inf,inf"), 2, "the azimuth is inf, and"),
                                      (("empty", "--light", "2e6,0"), 2, "the azimuth is 2000000, and"),
                                      (("empty", "--series", "2", "--elevation", "nan"), 2, "--elevation: the elevation is nan, and"),
                                      (("empty", "--series", "0"), 2, "--series"), (("empty", "--albedo", "a.png"), 2, "--albedo")):
            self.assertIn(sentence, self.gst_imaging("relight", *words, "-o", "out", code=code)[1])


class Lights(Photographs):
    def mirror(self, middle, radius, form="npy", full=60000, dtype=np.uint16):
        """A mirror ball under the lights."""
        y, x = np.mgrid[:160, :200]
        n = np.dstack([(x - middle[0]) / radius, (middle[1] - y) / radius, np.zeros(x.shape)])
        inside = np.hypot(n[..., 0], n[..., 1]) < 1
        n[..., 2] = np.sqrt(np.maximum(1 - (n ** 2).sum(-1), 0))
        reflected = 2 * n[..., 2:] * n - [0, 0, 1]
        for i, light in enumerate(self.lights):
            shown = 0.2 + 0.8 * np.exp(-(angle(reflected, light) / 4) ** 2)
            self.save(f"sphere/IMG_{i + 1}.{form}", np.where(inside, np.rint(full * shown), 0).astype(dtype))
        return inside

    def read_lp(self, folder):
        with open(self.path(f"{folder}/lights.lp"), encoding="utf-8") as file:
            lines = [line.split() for line in file]
        self.assertEqual(lines[0], [str(len(lines) - 1)])
        return {line[0]: np.array(line[1:], float) for line in lines[1:]}

    def test_directions_come_with_the_names_of_the_photographs(self):
        inside = self.mirror((101.5, 79), 70)
        np.save(self.path("round.npy"), inside.astype(np.uint8))
        for i, words in enumerate(([], ["--sphere", "101.5,79,70"], ["--mask", "round.npy"])):
            out, err = self.gst_imaging("lights", "sphere", "-o", f"rig{i}", *words, "--json")
            self.assertEqual((err, len(json.loads(out)["lights"])), ("", LIGHTS))
            found = self.read_lp(f"rig{i}")
            for k, light in enumerate(self.lights):
                self.assertLess(angle(found[f"IMG_{k + 1}.npy"], light), 0.8, (words, k))
            with open(self.path(f"rig{i}/report.html"), encoding="utf-8") as file:
                text = file.read()
            self.assertIn("radius of the sphere", text)
            self.assertIn("The sphere in each photograph", text)
            self.assertEqual([f"<small>IMG_{k + 1}.npy</small>" in text for k in range(LIGHTS)], [True] * LIGHTS)

    def show_spheres(self, spheres, mm, lamps, swapped=None):
        """The mirror spheres under each lamp; in photograph `swapped` the last sphere shows another lamp"""
        height, width = 600, 800
        y, x = np.mgrid[:height, :width]
        for i, lamp in enumerate(lamps):
            shown = np.full((height, width), 300.0)
            for column, row, radius in spheres:
                at = lamps[(i + 3) % len(lamps)] if i == swapped and (column, row, radius) == spheres[-1] else lamp
                middle = mm * np.array([column - (width - 1) / 2, (height - 1) / 2 - row, radius])
                normal = np.array([0, 0, 1.0])
                for _ in range(30):
                    way = at - (middle + mm * radius * normal)
                    normal = way / np.linalg.norm(way) + (0, 0, 1)
                    normal /= np.linalg.norm(normal)
                seen = column + radius * normal[0], row - radius * normal[1]
                shown += 60000 * np.exp(-((x - seen[0]) ** 2 + (y - seen[1]) ** 2) / 4)
            self.save(f"spheres/IMG_{i + 1}.png", np.rint(np.minimum(shown, 65535)).astype(np.uint16))

    def test_several_spheres_give_positions(self):
        """Lamps at 200 mm, whose highlights lie where the mirror halves the way between lamp and camera."""
        mm, spheres, lamps = 0.1, [(140, 120, 90), (660, 150, 90), (380, 480, 90)], 200 * directions(8)
        self.show_spheres(spheres, mm, lamps)
        words = ["lights", "spheres", *(f"--sphere={column},{row},{radius}" for column, row, radius in spheres)]
        self.gst_imaging(*words, "--mm-per-pixel", str(mm), "-o", "rig")
        with open(self.path("rig/lights.lp"), encoding="utf-8") as file:
            found = np.array([line.split()[1:] for line in file.read().splitlines()[1:]], float)
        self.assertLess(np.linalg.norm(found - lamps, axis=1).max(), 4)  # of 200 mm
        self.assertLess(max(light["residual"] for light in self.result("rig")["lights"]), 1)
        _out, err = self.gst_imaging(*words, "-o", "none", code=2)
        self.assertIn("--sphere is given 3 times, for positions in mm: give --mm-per-pixel as well.", err)
        _out, err = self.gst_imaging("lights", "spheres", "--sphere=140,120,90", "--sphere=140,120,90", "--mm-per-pixel", "1", "-o", "none", code=3)
        self.assertIn("put them farther apart", err)

    def pinhole_scene(self, spheres, lamps, focal, far, shape=(600, 800)):
        """Mirror spheres of float64 (x, y, radius in mm, standing on z = 0) before a camera at (0, 0, far), whose focal length is in
        pixels: ray by ray. Returns: their outlines, as middle and radius of a circle of the same area"""
        y, x = np.mgrid[:shape[0], :shape[1]]
        way = np.dstack([x - (shape[1] - 1) / 2, (shape[0] - 1) / 2 - y, np.full(x.shape, -focal)])
        way /= np.linalg.norm(way, axis=2, keepdims=True)
        camera, shown, circles = np.array([0, 0, far]), np.full((len(lamps), *shape), 300.0), []
        for column, row, radius in spheres:
            middle = np.array([column, row, radius])
            along = way @ (middle - camera)
            rest = along ** 2 - ((middle - camera) ** 2).sum() + radius ** 2
            inside = rest > 0
            points = camera + (along - np.sqrt(np.maximum(rest, 0)))[..., None] * way
            normal = (points - middle) / radius
            reflected = way - 2 * (way * normal).sum(-1, keepdims=True) * normal
            for i, lamp in enumerate(lamps):
                off = angle(reflected, lamp - points)
                shown[i] += np.where(inside, 59000 * np.exp(-(off / 6) ** 2) + 300, 0)
            circles.append((x[inside].mean(), y[inside].mean(), np.sqrt(inside.sum() / np.pi)))
        for i, values in enumerate(shown):
            self.save(f"pinhole/IMG_{i + 1}.png", np.rint(np.minimum(values, 65535)).astype(np.uint16))
        return circles

    def test_spheres_before_a_pinhole_camera(self):
        far, focal = 300, 800 * 50 / 36  # mm, pixels
        spheres, lamps = [(-70, 45, 20), (80, 40, 18), (5, -50, 21)], 200 * directions(8) + (0, 0, 40)
        circles = self.pinhole_scene(spheres, lamps, focal, far)
        words = ["lights", "pinhole", *(f"--sphere={x},{y},{r}" for x, y, r in circles), "--mm-per-pixel", str(far / focal)]
        camera = ["--focal-length-mm", "50", "--sensor-width-mm", "36"]
        errors, meet = [], []
        for name, more in ("parallel", []), ("camera", camera):
            self.gst_imaging(*words, *more, "-o", name)
            found = self.read_lp(name)
            errors.append(max(np.linalg.norm(found[f"IMG_{i + 1}.png"] - lamp) for i, lamp in enumerate(lamps)))
            meet.append(next(figure["met"] for figure in self.result(name)["figures"] if figure["name"].startswith("distance of the rays")))
        self.assertLess(errors[1], 1, errors)  # of 200 mm
        self.assertGreater(errors[0], 100, errors)
        self.assertEqual(meet, [False, True])
        self.gst_imaging("lights", "pinhole", "--sphere={},{},{}".format(*circles[0]), *camera, "-o", "one")
        found, middle = self.read_lp("one"), np.array([*spheres[0][:2], spheres[0][2]])
        for i, lamp in enumerate(lamps):  # from the sphere, whose radius the direction does not know
            self.assertLess(angle(found[f"IMG_{i + 1}.png"], lamp - middle), 6, i)
        for words, sentence in ((["--focal-length-mm", "50"], "belong together: a camera needs both"),
                                (["--focal-length-mm", "0", "--sensor-width-mm", "36"], "--focal-length-mm is 0; it has to be above 0."),
                                (["--mm-per-pixel", "nan"], "--mm-per-pixel is nan; it has to be above 0.")):
            self.assertIn(sentence, self.gst_imaging("lights", "pinhole", *words, "-o", "none", code=2)[1])

    def test_a_matte_sphere_before_a_pinhole_camera(self):
        """Intensities; against float64, at the rim of a picture of 60 degrees."""
        focal, size, gains = 700.0, (600, 800), np.linspace(0.5, 1, 6)
        y, x = np.mgrid[:600, :800]
        way = np.dstack([x - 399.5, 299.5 - y, np.full(x.shape, -focal)])
        way /= np.linalg.norm(way, axis=2, keepdims=True)
        middle = np.array([-3.2, 1.7, -9])
        along = way @ middle
        rest = along ** 2 - (middle ** 2).sum() + 1
        normal = (along - np.sqrt(np.maximum(rest, 0)))[..., None] * way - middle
        lights = directions(6)
        for i, light in enumerate(lights):
            shown = np.where(rest > 0, 0.7 * gains[i] * np.maximum(normal @ light, 0), 0)
            self.save(f"ball/IMG_{i + 1}.png", np.rint(65535 * shown).astype(np.uint16))
        circle = x[rest > 0].mean(), y[rest > 0].mean(), np.sqrt((rest > 0).sum() / np.pi)
        files, left = [self.path(f"ball/IMG_{i + 1}.png") for i in range(6)], []
        for camera in None, pinhole.Pinhole(np, 700, 800, size):
            ball = lamps.Sphere(np, lights, size, 1, circle, camera)
            found, rests = lamps.measure(np, ball, files, photographs.Samples(files), 1)
            error = np.abs(found[:, 0] / found.mean() * gains.mean() / gains - 1).max()
            left.append((error, rests.max()))
        self.assertLess(left[1][0], 0.002, left)
        self.assertLess(left[1][1], 0.01, left)
        self.assertGreater(left[0][1], 10 * left[1][1], left)

    def test_a_picture_of_other_spheres_is_left_out(self):
        mm, spheres = 0.1, [(140, 120, 90), (660, 150, 90), (380, 480, 90)]
        self.show_spheres(spheres, mm, 200 * directions(8), swapped=5)
        _out, err = self.gst_imaging("lights", "spheres", *(f"--sphere={x},{y},{r}" for x, y, r in spheres), "--mm-per-pixel", str(mm), "-o", "rig")
        self.assertIn("1 photographs have no light in lights.lp: IMG_6.png (its rays do not meet).", err)
        self.assertEqual(len(self.read_lp("rig")), 7)
        with open(self.path("rig/report.html"), encoding="utf-8") as file:
            self.assertIn("<small>IMG_6.png: left out, its rays do not meet</small>", file.read())

    def test_crops_show_a_highlight_that_is_smaller_than_their_pixels(self):
        """Of a sphere of 500 pixels radius; the cross is around it."""
        self.save("large.npy", np.zeros((1200, 1300), np.uint16))
        values = np.load(self.path("large.npy"))
        values[431, 812] = 65535
        np.save(self.path("large.npy"), values)
        found = types.SimpleNamespace(sphere=(640, 590, 500), lights=[{"highlight-x": 812, "highlight-y": 431}])
        (name, crop), = mirrors.crops(np, [self.path("large.npy")], [found], []).items()
        self.assertEqual((name, crop.shape), ("large.npy", (mirrors.TILE, mirrors.TILE, 3)))
        (row, column), = np.argwhere((crop == 255).all(2))
        pitch = 1100 / mirrors.TILE
        self.assertLess(abs(column + 0.5 - (812 - 90) / pitch), 0.6)
        self.assertLess(abs(row + 0.5 - (431 - 40) / pitch), 0.6)
        arms = np.argwhere((crop == mirrors.CROSS).all(2))
        np.testing.assert_allclose(arms.mean(0), (row, column), atol=1)
        outline = np.argwhere((crop == mirrors.OUTLINE).all(2)) + 0.5 - mirrors.TILE / 2
        np.testing.assert_allclose(np.linalg.norm(outline, axis=1), 500 / pitch, atol=0.8)
        self.assertEqual(mirrors.whole(np, [self.path("large.npy")], [found]).shape, (831, 900, 3))

    def test_intensities_of_a_white_card_and_of_a_matte_sphere(self):
        """Against the truth, with noise, of 12 bits."""
        self.mirror((101.5, 79), 70)
        gains = np.stack([np.linspace(0.5, 1, LIGHTS), np.linspace(1, 0.6, LIGHTS), 0.4 + 0.05 * (np.arange(LIGHTS) % 5)], 1)
        y, x = np.mgrid[:160, :200]
        n = np.dstack([(x - 99.5) / 60, (79.5 - y) / 60, np.zeros(x.shape)])
        n[..., 2] = np.sqrt(np.maximum(1 - (n ** 2).sum(-1), 0))
        ball = np.hypot(n[..., 0], n[..., 1]) < 1
        for i, light in enumerate(self.lights):
            for name, shade in (("card", np.full((160, 200), light[2])), ("ball", np.where(ball, np.maximum(n @ light, 0), 0))):
                shown = np.rint(4095 * 0.7 * shade[..., None] * gains[i] + np.random.default_rng(i).normal(0, 8, (160, 200, 3)))
                self.save(f"{name}/IMG_{i + 1}.npy", np.clip(16 * shown, 0, 65535).astype(np.uint16))
        true = gains / gains.mean()
        for words in (["--card", "card"], ["--matte", "ball", "--matte-sphere", "99.5,79.5,60"]):
            self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70", *words, "--overwrite")
            found = self.read_lp("rig")
            self.assertEqual(len(found), LIGHTS)
            for i in range(LIGHTS):
                np.testing.assert_allclose(found[f"IMG_{i + 1}.npy"][3:], true[i], rtol=0.02, err_msg=f"{words} {i}")
            figures = {figure["name"]: figure for figure in self.result("rig")["figures"]}
            self.assertTrue(figures["fall-off"]["met"], figures["fall-off"])
        os.remove(self.path("card/IMG_2.npy"))
        for words, code, sentence in (
                (("--card", "card"), 3, "card has no photograph for 1 of 16 lights: IMG_2.npy"), (("--card", "absent"), 3, "absent is no folder"),
                (("--card", "ball", "--matte", "ball"), 2, "give one of them"), (("--matte", "ball"), 2, "belong together"),
                (("--matte", "ball", "--matte-sphere", "9000,9000,60"), 3, "does not show the matte sphere")):
            self.assertIn(sentence, self.gst_imaging("lights", "sphere", "-o", "none", "--sphere", "101.5,79,70", *words, code=code)[1])

    def test_the_card_of_near_lamps_falls_off(self):
        """Positions from three spheres; what a card shows of them is R^2 z / r^3, and of directions it is not."""
        mm, spheres, lamps = 0.1, [(140, 120, 90), (660, 150, 90), (380, 480, 90)], 200 * directions(8)
        self.show_spheres(spheres, mm, lamps)
        gains, (height, width) = np.linspace(0.6, 1, 8), (600, 800)
        y, x = np.mgrid[:height, :width]
        place = np.dstack([mm * (x - (width - 1) / 2), mm * ((height - 1) / 2 - y), np.zeros(x.shape)])
        for i, lamp in enumerate(lamps):
            far = np.linalg.norm(lamp - place, axis=-1)
            self.save(f"card/IMG_{i + 1}.png", np.rint(np.minimum(40000 * gains[i] * 200 ** 2 * lamp[2] / far ** 3, 65535)).astype(np.uint16))
        words = ["lights", "spheres", "--card", "card", *(f"--sphere={x},{y},{r}" for x, y, r in spheres), "--mm-per-pixel", str(mm), "-o", "rig"]
        self.gst_imaging(*words)
        found = self.read_lp("rig")
        for i, gain in enumerate(gains / gains.mean()):
            np.testing.assert_allclose(found[f"IMG_{i + 1}.png"][3:], gain, rtol=0.05)  # lamps are within 2 %
        self.gst_imaging("lights", "spheres", "--sphere=140,120,90", "--card", "card", "-o", "far")
        falls = {name: next(f for f in self.result(name)["figures"] if f["name"] == "fall-off") for name in ("rig", "far")}
        self.assertEqual([falls[name]["met"] for name in ("rig", "far")], [True, False], falls)

    def test_a_sphere_that_is_not_found_is_to_be_given(self):
        self.take("sphere")
        _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", code=1)
        self.assertIn("Give --mask, or --sphere X,Y,RADIUS.", err)

    def test_floats_beyond_1_have_lights(self):
        self.mirror((101.5, 79), 70, full=3e6, dtype=np.float32)
        self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70")
        found = self.read_lp("rig")
        for k, light in enumerate(self.lights):
            self.assertLess(angle(found[f"IMG_{k + 1}.npy"], light), 0.8, k)
        self.assertEqual(sorted(os.listdir(self.path("rig"))), ["lights.lp", "report.html", "result.json"])

    def test_pictures_that_show_no_lamp_are_left_out(self):
        self.mirror((101.5, 79), 70)
        self.save("sphere/IMG_4.npy", np.zeros((160, 200), np.uint16))
        two = np.maximum(*(np.load(self.path(f"sphere/IMG_{i}.npy")) for i in (6, 11)))
        self.save("sphere/IMG_6.npy", two)
        _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70")
        self.assertIn("2 photographs have no light in lights.lp: IMG_4.npy (no highlight), IMG_6.npy (two highlights).", err)
        found = self.read_lp("rig")
        self.assertEqual(set(found), {f"IMG_{i + 1}.npy" for i in range(LIGHTS)} - {"IMG_4.npy", "IMG_6.npy"})
        for k, light in enumerate(self.lights):
            self.assertLess(angle(found.get(f"IMG_{k + 1}.npy", light), light), 0.8, k)
        for i in (1, 2, 3, 5, 7):
            self.save(f"sphere/IMG_{i}.npy", np.zeros((160, 200), np.uint16))
        _out, err = self.gst_imaging("lights", "sphere", "-o", "none", "--sphere", "101.5,79,70", code=1)
        self.assertIn("shows no highlight", err)  # more than a third: it is not the pictures
        self.assertRegex(err, r"Picture \d+ is IMG_\d+\.npy\.")
        self.assertEqual(sorted(os.listdir(self.folder)), ["rig", "sphere"])
        self.assertIn("give one of them", self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "1,2,3", "--mask", "x", code=2)[1])


main()
