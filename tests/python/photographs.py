# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands photostereo and relight: from folders of photographs to results, against a scene that is known."""
import json
import os
import random
import signal
import time

import numpy as np

from photographscene import HEIGHT, LIGHTS, PNG, WIDTH, Photographs, add_chunk, angle, directions, photograph
from support import TIMEOUT, launch, main

from gst_imaging import photographs, strengths


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

    def test_a_photograph_that_contradicts_the_others_is_named(self):
        """Turned by half a turn, or dim: the normals do not show it, as lights that do not fit do not count."""
        self.write_lp("lights.lp")
        for name, change in (("right", lambda shown: shown), ("turned", lambda shown: shown[::-1, ::-1]), ("dim", lambda shown: shown // 2)):
            self.take(name)
            shown = photographs.read(self.path(f"{name}/IMG_7.png"))
            self.save(f"{name}/IMG_7.png", change(shown[..., :3]))
            _out, told = self.gst_imaging("photostereo", name, "lights.lp", "-o", f"{name}-out")
            facts = [fact for fact in self.result(f"{name}-out")["facts"] if fact[0] == "pictures that contradict the others"]
            if name == "right":
                self.assertNotIn("contradict", told)
                self.assertFalse(facts)
            figure, = (figure for figure in self.result(f"{name}-out")["figures"] if figure["name"] == "pictures that contradict the others")
            self.assertEqual((figure["value"], figure["met"]), (int(name != "right"), name == "right"))
            if name != "right":
                self.assertIn("leave it out with --leave-out NAME.", told)
                self.assertIn("1 of 16 pictures contradict the others: IMG_7.png (", told)
                self.assertRegex(facts[0][1], r"^IMG_7\.png \(\d+ %\)$")

    def test_a_photograph_that_is_left_out(self):
        self.take()
        self.save("photos/IMG_7.png", photographs.read(self.path("photos/IMG_7.png"))[::-1, ::-1, :3])
        self.write_lp("lights.lp")
        with open(self.path("lights.txt"), "w", encoding="utf-8") as file:  # without names
            file.writelines(f"{x} {y} {z}\n" for x, y, z in self.lights)
        for lights in "lights.lp", "lights.txt":
            _out, told = self.gst_imaging("photostereo", "photos", lights, "-o", "out", "--leave-out", "IMG_7.png", "--overwrite")
            self.assertEqual((told, self.result("out")["pictures"]), ("", LIGHTS - 1))
            self.assertLess(self.error("out")[0], 0.01)
        self.assertIn("--leave-out IMG_70.png: photos has no such picture with a light.", self.gst_imaging(
            "photostereo", "photos", "lights.lp", "-o", "none", "--leave-out", "IMG_70.png", code=2)[1])

    def test_directions_have_a_limit_that_is_not_checked(self):
        """Near lamps bend the heights, and no residual shows it: the one line for people and the page say so. Of positions there is no such limit."""
        self.take()
        for name, far in ("directions", 1), ("positions", 5000):
            self.lights = far * directions()
            self.write_lp(f"{name}.lp")
            out, _err = self.gst_imaging("photostereo", "photos", f"{name}.lp", "-o", name, "--mm-per-pixel", "0.1")
            figures = [figure for figure in self.result(name)["figures"] if figure["name"] == "distance of the lamps"]
            with open(self.path(f"{name}/report.html"), encoding="utf-8") as file:
                page = file.read()
            self.assertEqual([(figure["value"], figure["met"], figure["limit"]) for figure in figures], [(None, None, "at least 10")] * (far == 1))
            self.assertEqual(["not checked: distance of the lamps," in out, "at least 10 times the object" in page], 2 * [far == 1])

    def test_what_no_figure_shows_is_not_checked(self):
        """A wrong curve and room light leave all figures within their limits. Each option that answers such a question ends it."""
        self.take()
        self.lights = 5000 * directions()
        self.write_lp("lights.lp")
        for words, unchecked in ((), "curve of the samples, room light"), (("--curve", "srgb"), "room light, spread of the lamps"), (("--gamma", "1"), "room light"), \
                (("--gamma", "1", "--set", "ambient-model=constant"), ""), (("--gamma", "1", "--dark", "photos/dark.png"), ""):
            if "--dark" in words:
                self.save("photos/dark.png", np.zeros((*self.inside.shape, 3), np.uint16))
            out, _err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", "--mm-per-pixel", "0.1", *words)
            with open(self.path("out/report.html"), encoding="utf-8") as file:
                page = file.read()
            n = len(unchecked.split(", ")) if unchecked else 0
            self.assertEqual((f"not checked: {unchecked};" in out, f" limits met, {n} not checked" in page, page.count("<b>not checked</b>")), (n > 0, n > 0, n))

    def test_positions_in_centimetres_are_told(self):
        self.take()
        self.lights = 8 * self.lights
        self.write_lp("lights.lp")
        _out, told = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--mm-per-pixel", "0.1")
        self.assertIn("Give --mm-per-pixel; multiply positions in cm by 10; or give --set light-units=directions", told)

    def test_a_light_behind_the_object_is_named_by_its_photograph(self):
        self.take()
        self.lights[3, 2] *= -1
        self.write_lp("lights.lp", range(1, LIGHTS))
        _out, told = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        self.assertIn("1 of 15 lights of lights-location (the first is that of IMG_4.png) have z < 0", told)
        self.lights *= 300
        self.write_lp("near.lp", range(1, LIGHTS))
        _out, told = self.gst_imaging("photostereo", "photos", "near.lp", "-o", "bad", "--mm-per-pixel", "0.5", code=1)
        self.assertIn("The light of IMG_4.png is at z = -", told)

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
        self.assertIn("1 of 16 photographs of photos has another curve than the others, which have a gamma of 1: IMG_1.jpg has a gamma of 2.2.", err)

    def test_lamps_of_unequal_strength_are_told(self):
        """With noise, highlights and room light; equal lamps, lamps with intensities and few lamps have no warning."""
        gains = np.random.default_rng(2).uniform(0.7, 1, LIGHTS)
        for folder, rig in ("equal", np.ones(LIGHTS)), ("unequal", gains):
            for i, (light, strength) in enumerate(zip(self.lights, rig)):
                half = (light + [0, 0, 1]) / np.linalg.norm(light + [0, 0, 1])
                shown = strength * (0.8 * photograph(light, self.normals, self.albedo) + 0.2 * np.maximum(self.normals @ half, 0) ** 50) + 0.01
                noise = np.random.default_rng(i).normal(0, 0.004, shown.shape)
                self.save(f"{folder}/IMG_{i + 1}.png", np.rint(65535 * np.clip(shown + noise, 0, 1)).astype(np.uint16))
        self.save("mask.png", self.inside.astype(np.uint8))
        self.write_lp("lights.lp")
        self.write_lp("few.lp", order=range(7))
        np.savetxt(self.path("gains.txt"), gains)
        for folder, words, met in ("equal", ["lights.lp"], True), ("unequal", ["lights.lp"], False), ("equal", ["few.lp"], None):
            _out, err = self.gst_imaging("photostereo", folder, *words, "--mask", "mask.png", "-o", "out", "--overwrite")
            figure, = (figure for figure in self.result("out")["figures"] if figure["name"] == "spread of the lamps")
            self.assertEqual(figure["met"], met, figure)
            self.assertEqual("The lamps seem to be of unequal strength" in err, met is False, err)
        _out, err = self.gst_imaging("photostereo", "unequal", "lights.lp", "--mask", "mask.png", "--intensities", "gains.txt", "-o", "out", "--overwrite")
        self.assertEqual((err, [figure for figure in self.result("out")["figures"] if "spread" in figure["name"]]), ("", []))
        pictures = np.stack([photographs.read(self.path(f"unequal/IMG_{i + 1}.png"))[self.inside] / 65535 for i in range(LIGHTS)], 1)
        found = strengths.gains_of(np, pictures, np.broadcast_to(self.lights, (*pictures.shape, 3)))
        np.testing.assert_allclose(found, gains / gains.mean(), rtol=0.03)

    def test_the_gamma_that_png_files_tell(self):
        """As a camera develops them: the chunk sRGB in front of the samples."""
        for i, light in enumerate(self.lights):
            self.save(f"photos/IMG_{i + 1}.png", np.dstack([np.rint(65535 * photograph(light, self.normals, self.albedo) ** (1 / 2.2)).astype(np.uint16)] * 3))
            add_chunk(self.path(f"photos/IMG_{i + 1}.png"), b"sRGB\0")
        self.write_lp("lights.lp")
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")
        self.assertIn("The files say (profile, sRGB, gAMA) that their samples have a gamma of 2.2", err)
        self.assertLess(self.error("out")[0], 0.1)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "linear", "--gamma", "1")
        self.assertNotIn("gamma", err)
        self.assertGreater(self.error("linear")[0], 3)

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
        for words in ("1 of 16 lights has no picture: IMG_3.png", "1 picture has no light in rig.lp and is not used: holiday.png",
                      "2 pictures differ", "IMG_5.png (u16 110 x 91 with 3 channels)", "IMG_6.png (u8", "IMG_8.png"):
            self.assertIn(words, err)
        self.assertEqual(self.result("out")["pictures"], LIGHTS - 4)
        self.assertLess(self.error("out")[0], 0.1)
        self.assertEqual(len(self.result("out")["warnings"]), err.count("\n"))

    def test_damaged_pictures_are_told_and_left_out(self):
        """Their beginnings are whole, so that only reading all of them finds it."""
        self.take()
        for i, light in enumerate(self.lights):
            self.save(f"white/IMG_{i + 1}.png", np.full((HEIGHT, WIDTH, 3), 60000 * light[2], np.uint16))
        self.write_lp("lights.lp")
        for name in "IMG_4.png", "IMG_9.png":
            os.truncate(self.path(f"photos/{name}"), os.path.getsize(self.path(f"photos/{name}")) // 2)
        for words in (), ("--white", "white"):
            _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--overwrite", *words)
            for name in "IMG_4.png", "IMG_9.png":
                self.assertRegex(err, f'{name}" .*It is not used')
            self.assertEqual(self.result("out")["pictures"], LIGHTS - 2)
            self.assertEqual(len(self.result("out")["warnings"]), 2)
            self.assertEqual(sum(s["name"] == "update-interval" for s in self.result("out")["settings"]), 1)
        self.assertIn("was complete already", self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out", "--white", "white")[0])
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "plain")
        self.assertLess(self.error("plain")[0], 0.1)
        for i in range(LIGHTS - 2):
            os.truncate(self.path(f"photos/IMG_{i + 1}.png"), 1000)
        _out, err = self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "few", code=3)
        self.assertIn("photos has 2 pictures with a light; at least 3 are needed", err)

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
                (("photos", "two.lp"), 3, "at least 3"), (("photos",), 2, "gst-imaging lights makes one"), (("absent", "other.lp"), 3, "absent"),
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

    def test_lights_behind_the_object_give_no_result(self):
        self.take()
        self.lights[:, 2] *= -1
        self.write_lp("behind.lp")
        for _ in range(2):  # also where the folder is there already
            out, err = self.gst_imaging("photostereo", "photos", "behind.lp", "-o", "out", code=1)
            self.assertIn("No pixel has a height: no normal has z above 0", err.splitlines()[-1])
            self.assertRegex(out, "^out: no result, ")
        self.lights[:, 2] *= -1
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "out")  # it replaces no result
        _out, err = self.gst_imaging("photostereo", "photos", "behind.lp", "-o", "out", "--overwrite", code=1)
        self.assertIn("The result that was there stays.", err)
        self.assertLess(self.error("out")[0], 0.05)

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


@PNG
class Relight(Photographs):
    def test_a_series_of_a_result_and_one_light(self):
        self.take()
        self.write_lp("lights.lp")
        self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "ball")
        out, _err = self.gst_imaging("relight", "ball", "-o", "lit", "--light", "180,30", "--series", "4", "--elevation", "45",
                                     "--diffuse", "1", "--gamma", "1", "--json")
        self.assertEqual(json.loads(out)["pictures"], 5)
        self.assertEqual([figure["met"] for figure in json.loads(out)["figures"]], [True])
        for i, (azimuth, elevation) in enumerate([(180, 30), (0, 45), (90, 45), (180, 45), (270, 45)]):
            a, e = np.radians([azimuth, elevation])
            light = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
            shown = photographs.read(self.path(f"lit/lit{i:03}.png"))[..., 0] / 255
            self.assertLess(np.abs(shown - photograph(light, self.normals, self.albedo))[self.inside].max(), 0.01, i)
        for words, length in ((), "20 pixels"), (("--mm-per-pixel", "0.5"), "10 mm"):  # of 110 pixels
            self.gst_imaging("photostereo", "photos", "lights.lp", "-o", "ball", "--overwrite", *words)
            self.gst_imaging("relight", "ball", "-o", "lit", "--overwrite")
            with open(self.path("lit/report.html"), encoding="utf-8") as file:
                self.assertIn(f"<span>{length}</span>", file.read())
        self.gst_imaging("relight", "ball/normals.png", "-o", "white", "--diffuse", "1", "--gamma", "1", "--light", "0,90")
        shown = photographs.read(self.path("white/lit000.png"))[..., 0] / 255
        self.assertLess(np.abs(shown - self.normals[..., 2])[self.inside].max(), 0.01)
        inside = self.inside[..., None]
        for values in np.round(127 * self.normals * inside + 128).astype(np.uint8), np.where(inside, self.normals, np.nan).astype("f4"):
            np.save(self.path("map.npy"), values)
            self.assertNotIn("beyond", self.gst_imaging("relight", "map.npy", "-o", "white", "--overwrite")[0])
        np.save(self.path("map.npy"), np.full((40, 50, 3), 90, np.uint8))
        self.assertIn("beyond its limit: normals of another length than 1", self.gst_imaging("relight", "map.npy", "-o", "white", "--overwrite")[0])

    def test_what_cannot_be_lit_is_one_sentence(self):
        os.mkdir(self.path("empty"))
        np.save(self.path("grey.npy"), np.zeros((4, 5), np.uint8))
        for words, code, sentence in ((("empty",), 3, "no result"), (("grey.npy",), 3, "grey.npy is u8 [4, 5]; normals are [height, width, 3]"), (("absent",), 3, "absent"), (("empty", "--light", "3"), 2, "--light"),
                                      (("empty", "--light", "400,95"), 2, "--light: the elevation is 95, and goes from -90 to 90"),
                                      (("empty", "--light", "0,30", "--light=30,-91"), 2, "the elevation is -91, and"),
                                      (("empty", "--light", "nan,30"), 2, "the azimuth is nan, and goes from -1000000 to 1000000"),
                                      (("empty", "--light", "inf,inf"), 2, "the azimuth is inf, and"),
                                      (("empty", "--light", "2e6,0"), 2, "the azimuth is 2000000, and"),
                                      (("empty", "--series", "2", "--elevation", "nan"), 2, "--elevation: the elevation is nan, and"),
                                      (("empty", "--series", "0"), 2, "--series"), (("empty", "--albedo", "a.png"), 2, "--albedo")):
            self.assertIn(sentence, self.gst_imaging("relight", *words, "-o", "out", code=code)[1])


main()
