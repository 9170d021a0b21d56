# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging lights: lamps from photographs of mirror spheres, white cards and matte spheres, against the truth."""
import json
import os
import shutil
import types

import numpy as np

from photographscene import LIGHTS, PNG, Photographs, add_chunk, angle, directions
from support import data, main

from gst_imaging import curves, lamps, mirrors, outline, photographs, pinhole
from gst_imaging.commands.lights import write_lights


class Lights(Photographs):
    def mirror(self, middle, radius, form="npy", full=60000, dtype=np.uint16):
        """A mirror ball under the lights."""
        y, x = np.mgrid[:160, :200]
        n = np.dstack([(x - middle[0]) / radius, (middle[1] - y) / radius, np.zeros(x.shape)])
        inside = np.hypot(n[..., 0], n[..., 1]) < 1
        n[..., 2] = np.sqrt(np.maximum(1 - (n ** 2).sum(-1), 0))
        reflected = 2 * n[..., 2:] * n - [0, 0, 1]
        for i, light in enumerate(self.lights):
            shown = full * (0.2 + 0.8 * np.exp(-(angle(reflected, light) / 4) ** 2))
            self.save(f"sphere/IMG_{i + 1}.{form}", np.where(inside, np.rint(shown) if full > 1 else shown, 0).astype(dtype))
        return inside

    def test_a_circle_that_is_not_the_outline_is_told(self):
        """Before bright and dark backgrounds, with noise; 4 pixels of 70 are 6.5 degrees."""
        y, x = np.mgrid[:160, :200]
        inside = np.hypot(x - 101.5, y - 79) < 70
        for back in 500, 40000:
            shown = np.where(inside, 12000.0, back) + np.random.default_rng(back).normal(0, 150, inside.shape)
            shown[40:60, 80:100] = 60000
            for dx, dy, dr in (0, 0, 0), (4, 0, 0), (-3, 3, 0), (0, 0, 4), (0, -8, -3):
                seen, part = outline.fit(np, shown, (101.5 + dx, 79 + dy, 70 + dr))
                np.testing.assert_allclose(seen, (101.5, 79, 70), atol=0.3, err_msg=f"{back} {dx} {dy} {dr}")
                self.assertGreater(part, 0.95)
                off = outline.turned(np, (101.5 + dx, 79 + dy, 70 + dr), seen)
                self.assertAlmostEqual(off, np.degrees(2 * max(np.hypot(dx, dy), abs(dr)) / 70), delta=0.5)
        noise = np.random.default_rng(3).normal(1000, 150, (160, 200))
        self.assertIsNone(outline.fit(np, noise, (101.5, 79, 70))[0])
        self.assertIsNone(outline.fit(np, np.full((160, 200), 300.0), (101.5, 79, 70))[0])

    def test_the_report_judges_the_outline(self):
        self.mirror((101.5, 79), 70)
        for words, met in ("101.5,79,70", True), ("105.5,79,70", False):
            _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", words, "--overwrite")
            figure, = (f for f in self.result("rig")["figures"] if f["name"] == "turn of the lights by the outline")
            self.assertEqual(figure["met"], met, figure)
            self.assertEqual("its outline in the photographs is at 101." in err, not met, err)

    def test_an_outline_that_is_uncertain_proposes_no_circle(self):
        """A black sphere whose rim is bright in one photograph: its inner edge is 3 pixels of 70 inside the outline, which the others show."""
        y, x = np.mgrid[:160, :200]
        r = np.hypot(x - 101.5, y - 79)
        for i in range(12):
            shown = np.where(r < 70, 12.0, 30) + np.random.default_rng(i).normal(0, 1, r.shape)
            shown = np.where((r < 67) & (i == 0), 70, shown)
            shown += 200 * np.exp(-((x - 80 - 4 * i) ** 2 + (y - 70) ** 2) / 18)
            self.save(f"sphere/IMG_{i}.png", np.rint(shown.clip(0, 255)).astype(np.uint8))
        for words, told in ("101.5,79,70", "is faint, and uncertain by"), ("112.5,79,70", "give --sphere=101."):
            _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", words, "--overwrite")
            self.assertIn(told, err)

    def test_an_outline_that_is_not_seen_is_a_warning(self):
        """Of a circle that is far from the rim."""
        self.mirror((101.5, 79), 70)
        for words, met in ("101.5,79,70", True), ("90,90,40", False):
            _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", words, "--overwrite")
            figure, = (f for f in self.result("rig")["figures"] if f["name"] == "outline seen in the photographs")
            self.assertEqual(figure["met"], met, figure)
            self.assertEqual("The outline of the sphere is not seen at 90.00, 90.00 with radius 40.00 pixels" in err, not met, err)

    def test_the_outline_of_a_dark_sphere_is_seen(self):
        """Two grey levels below its background, with highlights a hundred times as bright; 4 pixels of 70 are 6.5 degrees."""
        y, x = np.mgrid[:160, :200]
        inside = np.hypot(x - 101.5, y - 79) < 70
        for i, (column, row) in enumerate(((90, 70), (110, 70), (100, 95), (95, 80))):
            shown = np.where(inside, 1.5, 3.5) + np.random.default_rng(i).normal(0, 0.4, inside.shape)
            shown += 250 * np.exp(-((x - column) ** 2 + (y - row) ** 2) / 18)
            self.save(f"sphere/IMG_{i}.png", np.rint(shown.clip(0, 255)).astype(np.uint8))
        for words, met in ("101.5,79,70", True), ("105.5,79,70", False):
            self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", words, "--overwrite")
            figure, = (f for f in self.result("rig")["figures"] if f["name"] == "turn of the lights by the outline")
            self.assertEqual(figure["met"], met, figure)

    def test_the_outline_of_a_real_dark_sphere_is_seen(self):
        """Its lower third is as black as the background; the circle is that of the mask, and one that is 8 pixels off."""
        folder = data(os.path.join("..", "photostereo", "uw_chrome"))
        files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name[:1].isdigit() and name.endswith(".png"))
        shown = mirrors.roots(np, files)
        for circle in (122.3, 122.8, 119.5), (130.3, 122.8, 119.5):
            seen, part = outline.fit(np, shown, circle)
            self.assertGreater(part, 0.55)
            np.testing.assert_allclose(seen, (122.3, 122.8, 119.5), atol=2)

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

    def test_names_that_a_light_file_cannot_have(self):
        self.mirror((101.5, 79), 70)
        name = "sphere/IMG_3.npy"
        for odd in "a#3.npy", "a  3.npy", "a\t3.npy", "a;3.npy", '"a"3.npy', " 3.npy", "a\n3.npy", "a\u00853.npy", "a, 3.npy":
            os.rename(self.path(name), self.path(f"sphere/{odd}"))
            name = f"sphere/{odd}"
            _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70", code=3)
            self.assertIn(f"The name {odd!r} in sphere cannot be in a light file", err)
            self.assertEqual(err.count("\n"), 1)
        for odd in "a,3.npy", "3,5.npy", "a 1 1 3.npy", "a\\3.npy", "\u00fc 3.npy", "3.npy", "'a' 3.npy", "M\udcfc.npy":
            os.rename(self.path(name), self.path(f"sphere/{odd}"))
            name = f"sphere/{odd}"
            photographs.check_name(name)
            lights = [{"x": 0.1, "y": 0.2, "z": 0.97, "intensity": [1, 1, 1]}] * 3
            write_lights(self.path("lights.lp"), ["1.npy", name, "2.npy"], lights)
            read = photographs.Lights(self.path("lights.lp"))
            self.assertEqual(photographs.choose_one(read.names[1], {photographs.stem(name): [name]}), name)

    def test_two_photographs_under_one_lamp_are_named(self):
        self.mirror((101.5, 79), 70)
        shutil.copy(self.path("sphere/IMG_7.npy"), self.path("sphere/IMG_8.npy"))
        _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70")
        self.assertIn("IMG_7.npy and IMG_8.npy have the highlight at the same place", err)

    @PNG
    def test_a_damaged_photograph_is_told_and_left_out(self):
        self.mirror((101.5, 79), 70, "png")
        os.truncate(self.path("sphere/IMG_8.png"), os.path.getsize(self.path("sphere/IMG_8.png")) // 2)
        _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70")
        self.assertRegex(err, 'IMG_8.png" .*It is not used')
        self.assertEqual(len(self.read_lp("rig")), LIGHTS - 1)

    def test_one_sphere_and_a_string_give_positions(self):
        """Lamps on a string of 200 mm; the sphere has a radius of 9 mm, 27 mm beside the middle of the picture."""
        lamps, words = 200 * directions(8), ["lights", "spheres", "--sphere=660,250,90"]
        self.show_spheres([(660, 250, 90)], 0.1, lamps)
        for scale in ["--mm-per-pixel", "0.1"], ["--sphere-diameter-mm", "18"]:
            self.gst_imaging(*words, *scale, "--distance-mm", "200", "-o", "rig", "--overwrite")
            found = self.read_lp("rig")
            for i, lamp in enumerate(lamps):
                self.assertLess(np.linalg.norm(found[f"IMG_{i + 1}.png"] - lamp), 0.6, i)
            self.assertIn(["scale", "--mm-per-pixel 0.1; give it to gst-imaging photostereo as well"], self.result("rig")["facts"])
        out, _err = self.gst_imaging(*words, "-o", "far")
        self.assertIn("not checked: distance of the lamps", out)
        for more, sentence in ((["--distance-mm", "200"], "--distance-mm needs the scale: give --mm-per-pixel, or --sphere-diameter-mm"),
                               (["--distance-mm", "20", "--mm-per-pixel", "0.1"], "the lamps have to be farther away"),
                               (["--distance-mm", "-2", "--mm-per-pixel", "0.1"], "--distance-mm is -2; it has to be above 0."),
                               (["--sphere-diameter-mm", "18", "--mm-per-pixel", "0.1"], "both give the scale"),
                               (["--sphere=140,120,90", "--mm-per-pixel", "0.1", "--distance-mm", "200"], "--distance-mm is for one sphere"),
                               (["--sphere=140,120,90", "--sphere-diameter-mm", "18"], "--sphere-diameter-mm is for one sphere")):
            self.assertIn(sentence, self.gst_imaging(*words, *more, "-o", "none", code=2)[1])
        _out, err = self.gst_imaging("lights", "spheres", "--sphere=5000,280,90", "-o", "none", code=2)
        self.assertIn("--sphere=5000,280,90: the middle 5000,280 is not in the pictures of 800 x 600.", err)
        _out, err = self.gst_imaging("lights", "spheres", "--sphere=20,580,9", "-o", "none", code=1)
        self.assertNotIn("centre-x", err)

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

    def test_a_sphere_that_mirrors_a_bright_table_has_its_highlights(self):
        """In photographs with the gamma of JPEG, in which 0.7 of the light is 0.85 of full scale."""
        inside = self.mirror((101.5, 79), 70, full=1, dtype=np.float32)
        y, x = np.mgrid[:160, :200]
        table = 0.7 * (inside & (np.hypot(x - 101.5, y - 79) > 55))
        for i in range(LIGHTS):
            shown = np.maximum(np.load(self.path(f"sphere/IMG_{i + 1}.npy")), table)
            self.save(f"table/IMG_{i + 1}.npy", np.rint(65535 * shown ** (1 / 2.2)).astype(np.uint16))
        words = ["lights", "table", "--sphere", "101.5,79,70", "-o"]
        _out, err = self.gst_imaging(*words, "linear", code=1)
        self.assertIn("the sphere mirrors something as bright as the lamp", err)
        self.assertIn("or give --threshold 0.95.", err)
        self.gst_imaging(*words, "rig", "--gamma", "2.2")
        found = self.read_lp("rig")
        for k, light in enumerate(self.lights):
            self.assertLess(angle(found[f"IMG_{k + 1}.npy"], light), 0.8, k)

    def test_highlights_have_any_bit_depth(self):
        """As docs/reference/commands.md says; a pixel is 1.6 degrees."""
        for form, full, dtype in (("png", 250, np.uint8), ("png", 60000, np.uint16), ("npy", 250, np.uint8), ("npy", 60000, np.uint16), ("npy", 100000, np.uint32),
                                  ("npy", 0.9, np.float32), ("npy", 1e5, np.float64), ("tif", 250, np.uint8), ("tif", 60000, np.uint16), ("tif", 0.9, np.float32),
                                  ("tif", 3000, np.float32), ("exr", 0.9, np.float32)):
            if form != "npy" and {"tif": "tiff"}.get(form, form) not in os.environ["FORMATS"].split():
                continue
            with self.subTest(form=form, full=full, dtype=dtype.__name__):
                self.mirror((101.5, 79), 70, form, full, dtype)
                self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70", "--extension", form, "--overwrite")
                found = self.read_lp("rig")
                errors = [angle(found[f"IMG_{k + 1}.{form}"], light) for k, light in enumerate(self.lights)]
                self.assertLess(np.mean(errors), 0.1)
                self.assertLess(max(errors), 0.2)

    def test_several_spheres_give_positions(self):
        """Lamps at 200 mm, whose highlights lie where the mirror halves the way between lamp and camera."""
        mm, spheres, lamps = 0.1, [(140, 120, 90), (660, 150, 90), (380, 480, 90)], 200 * directions(8)
        self.show_spheres(spheres, mm, lamps)
        words = ["lights", "spheres", *(f"--sphere={column},{row},{radius}" for column, row, radius in spheres)]
        self.gst_imaging(*words, "--mm-per-pixel", str(mm), "-o", "rig")
        with open(self.path("rig/lights.lp"), encoding="utf-8") as file:
            found = np.array([line.split()[1:] for line in file.read().splitlines()[1:]], float)
        self.assertLess(np.linalg.norm(found - lamps, axis=1).max(), 0.6)  # of 200 mm
        self.assertLess(max(light["residual"] for light in self.result("rig")["lights"]), 1)
        _out, err = self.gst_imaging("lights", "spheres", "--sphere=140,120,90", "--sphere=140,120.0000001,90", "--mm-per-pixel", "1", "-o", "none", code=3)
        self.assertIn("put them farther apart", err)

    def test_several_spheres_without_a_scale_give_mean_directions(self):
        """Of far lamps; a photograph in which a sphere shows another one is left out. Of near lamps the report says what to do."""
        spheres = [(140, 120, 90), (660, 150, 90), (380, 480, 90)]
        words = ["lights", "spheres", *(f"--sphere={x},{y},{r}" for x, y, r in spheres)]
        for far, swapped in (50000, 5), (200, None):
            self.show_spheres(spheres, 0.1, far * directions(8), swapped)
            _out, err = self.gst_imaging(*words, "-o", f"rig{far}")
            found = self.read_lp(f"rig{far}")
            spread = next(figure for figure in self.result(f"rig{far}")["figures"] if figure["name"] == "angle between the spheres")
            self.assertEqual(spread["met"], far > 1000, spread)
            if swapped:
                self.assertIn("IMG_6.png (the spheres show different lights).", err)
                self.assertEqual(len(found), 7)
                for name, light in found.items():
                    self.assertLess(angle(light, directions(8)[int(name[4]) - 1]), 0.1, name)
                self.assertAlmostEqual(np.linalg.norm(light), 1, places=6)

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
            ball = lamps.Sphere(np, lights, lamps.mean_distance(np, lights), size, 1, circle, camera)
            found, rests = lamps.measure(np, ball, files, photographs.Samples(files), curves.LINEAR)
            error = np.abs(found[:, 0] / found.mean() * gains.mean() / gains - 1).max()
            left.append((error, rests.max()))
        self.assertLess(left[1][0], 0.002, left)
        self.assertLess(left[1][1], 0.01, left)
        self.assertGreater(left[0][1], 10 * left[1][1], left)

    def test_a_picture_of_other_spheres_is_left_out(self):
        mm, spheres = 0.1, [(140, 120, 90), (660, 150, 90), (380, 480, 90)]
        self.show_spheres(spheres, mm, 200 * directions(8), swapped=5)
        _out, err = self.gst_imaging("lights", "spheres", *(f"--sphere={x},{y},{r}" for x, y, r in spheres), "--mm-per-pixel", str(mm), "-o", "rig")
        self.assertIn("1 of 8 photographs has no light in lights.lp: IMG_6.png (its rays do not meet).", err)
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
                (("--card", "card", "--gamma", "0"), 2, "--gamma is 0; it has to be between 0.1 and 10"),
                (("--matte", "ball", "--matte-sphere", "9000,9000,60"), 3, "does not show the matte sphere")):
            self.assertIn(sentence, self.gst_imaging("lights", "sphere", "-o", "none", "--sphere", "101.5,79,70", *words, code=code)[1])

    @PNG
    def test_the_curve_of_a_card_is_doubted_told_and_given(self):
        """Of 8 bits in the curve of sRGB without a profile, the same in 16 bits, of files that tell a curve, and of a mix."""
        self.mirror((101.5, 79), 70, form="png")
        gains = np.linspace(0.5, 1, LIGHTS)
        for i, light in enumerate(self.lights):
            linear = np.full((160, 200), 0.8 * gains[i] * light[2])
            shown = 1.055 * linear ** (1 / 2.4) - 0.055
            self.save(f"card8/IMG_{i + 1}.png", np.rint(255 * shown).astype(np.uint8))
            self.save(f"card16/IMG_{i + 1}.png", np.rint(65535 * shown).astype(np.uint16))
            self.save(f"told/IMG_{i + 1}.png", np.rint(65535 * linear ** (1 / 2.2)).astype(np.uint16))
            add_chunk(self.path(f"told/IMG_{i + 1}.png"), b"gAMA" + (45455).to_bytes(4, "big"))
        words = ["lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70", "--overwrite", "--card"]
        for card, more, fact, sentence in (("card8", [], "a gamma of 1", "IMG_1.png has 8 bits and does not say what they mean"), ("card16", [], "a gamma of 1", ""),
                                           ("card16", ["--curve", "srgb"], "the curve of sRGB", ""),
                                           ("told", [], "a gamma of 2.2", "The files say (profile, sRGB, gAMA) that their samples have a gamma of 2.2")):
            out, err = self.gst_imaging(*words, card, *more)
            self.assertIn(sentence, err)
            self.assertEqual(err == "", sentence == "", err)
            self.assertIn(["curve of the white card", fact], self.result("rig")["facts"])
            self.assertEqual("curve of the samples" in out, card == "card16" and not more, out)
            found = self.read_lp("rig")
            error = max(abs(found[f"IMG_{i + 1}.png"][3] / gain - 1) for i, gain in enumerate(gains / gains.mean()))
            self.assertEqual(error < 0.02, fact != "a gamma of 1", error)
        shutil.copy(self.path("card16/IMG_3.png"), self.path("told/IMG_3.png"))
        _out, err = self.gst_imaging(*words, "told", code=2)
        self.assertIn("1 of 16 photographs of told has another curve than the others, which have a gamma of 2.2: IMG_3.png has a gamma of 1.", err)

    def test_a_card_and_a_matte_sphere_under_near_lamps(self):
        """Positions from three spheres; what a card shows of them is R^2 z / r^3, and of directions it is not. The matte sphere stands
        in the middle of the picture."""
        mm, spheres, lamps = 0.1, [(140, 120, 90), (660, 150, 90), (380, 480, 90)], 200 * directions(8)
        self.show_spheres(spheres, mm, lamps)
        gains, (height, width) = np.linspace(0.6, 1, 8), (600, 800)
        y, x = np.mgrid[:height, :width]
        place = np.dstack([mm * (x - (width - 1) / 2), mm * ((height - 1) / 2 - y), np.zeros(x.shape)])
        for i, lamp in enumerate(lamps):
            far = np.linalg.norm(lamp - place, axis=-1)
            self.save(f"card/IMG_{i + 1}.png", np.rint(np.minimum(40000 * gains[i] * 200 ** 2 * lamp[2] / far ** 3, 65535)).astype(np.uint16))
        normal = np.dstack([(x - 399.5) / 150, (299.5 - y) / 150, np.zeros(x.shape)])
        inside = (normal ** 2).sum(-1) < 1
        normal[..., 2] = np.sqrt(np.maximum(1 - (normal ** 2).sum(-1), 0))
        for i, lamp in enumerate(lamps):
            way = lamp - (0, 0, 15) - 15 * normal
            shade = np.where(inside, np.maximum((normal * way).sum(-1), 0) / np.linalg.norm(way, axis=-1) ** 3, 0)
            self.save(f"ball/IMG_{i + 1}.png", np.rint(np.minimum(40000 * gains[i] * 200 ** 2 * shade, 65535)).astype(np.uint16))
        words = ["lights", "spheres", *(f"--sphere={x},{y},{r}" for x, y, r in spheres), "--mm-per-pixel", str(mm), "-o", "rig", "--overwrite"]
        for surface in ("--matte", "ball", "--matte-sphere", "399.5,299.5,150"), ("--card", "card"):
            self.gst_imaging(*words, *surface)
            found = self.read_lp("rig")
            for i, gain in enumerate(gains / gains.mean()):
                np.testing.assert_allclose(found[f"IMG_{i + 1}.png"][3:], gain, rtol=0.007, err_msg=f"{surface} {i}")
            self.assertLess(next(f["value"] for f in self.result("rig")["figures"] if f["name"] == "fall-off"), 0.001)
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

    def test_a_refusal_names_the_photographs(self):
        """Numbers would not count those that were left out before."""
        self.mirror((101.5, 79), 70)
        self.save("sphere/IMG_1.npy", np.zeros((160, 200), np.uint16))
        for i in 4, 5:
            self.save(f"sphere/IMG_{i}.npy", np.load(self.path("sphere/IMG_3.npy")))
        _out, err = self.gst_imaging("lights", "sphere", "-o", "none", "--sphere", "101.5,79,70", code=1)
        self.assertIn("does not move: in IMG_3.npy, IMG_4.npy and IMG_5.npy, and in 3 of 15 in all", err)
        self.assertIn("Nor can these be used: IMG_1.npy (no highlight). If they show the lamp, the circle is not on the sphere", err)
        _out, err = self.gst_imaging("lights", "sphere", "-o", "none", "--sphere", "30,30,20", code=1)
        self.assertNotRegex(err, r"[Pp]icture \d")

    def test_pictures_that_show_no_lamp_are_left_out(self):
        self.mirror((101.5, 79), 70)
        self.save("sphere/IMG_4.npy", np.zeros((160, 200), np.uint16))
        two = np.maximum(*(np.load(self.path(f"sphere/IMG_{i}.npy")) for i in (6, 11)))
        self.save("sphere/IMG_6.npy", two)
        _out, err = self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "101.5,79,70")
        self.assertIn("2 of 16 photographs have no light in lights.lp: IMG_4.npy (no highlight), IMG_6.npy (two highlights).", err)
        found = self.read_lp("rig")
        self.assertEqual(set(found), {f"IMG_{i + 1}.npy" for i in range(LIGHTS)} - {"IMG_4.npy", "IMG_6.npy"})
        for k, light in enumerate(self.lights):
            self.assertLess(angle(found.get(f"IMG_{k + 1}.npy", light), light), 0.8, k)
        for i in (1, 2, 3, 5, 7):
            self.save(f"sphere/IMG_{i}.npy", np.zeros((160, 200), np.uint16))
        _out, err = self.gst_imaging("lights", "sphere", "-o", "none", "--sphere", "101.5,79,70", code=1)
        self.assertIn("shows no highlight", err)  # more than a third: it is not the pictures
        self.assertNotIn("counted from 0", err)  # by which some are left out
        for i in 1, 2, 3, 4, 5:
            self.assertIn(f"IMG_{i}.npy", err)
        self.assertEqual(sorted(os.listdir(self.folder)), ["rig", "sphere"])
        self.assertIn("give one of them", self.gst_imaging("lights", "sphere", "-o", "rig", "--sphere", "1,2,3", "--mask", "x", code=2)[1])


main()
