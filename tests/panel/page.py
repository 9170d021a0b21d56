# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of gst-imaging photostereo --web in a headless Chromium, from file://: its pixels are those of relight."""
import base64
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from browser import SOURCE, Browser, webdriver

for folder in "pipelines", os.path.join("tests", "data"):
    sys.path.insert(0, os.path.join(SOURCE, folder))
import medal
from gst_imaging import library, photographs, web

if webdriver:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

# azimuth and elevation
LIGHTS = (143.13, 41.4), (0, 90), (288.4, 18)
PIXELS = """const [x, y, width, height] = arguments;
relief.page.view.paint();
const data = document.getElementById("picture").getContext("2d").getImageData(x, y, width, height).data;
let text = "";
for (let i = 0; i < data.length; i += 8192) text += String.fromCharCode(...data.subarray(i, i + 8192));
return btoa(text);"""
WITHOUT_WEBGL = "--disable-3d-apis"


def gst_imaging(folder, *words):
    done = subprocess.run([sys.executable, "-B", "-m", "gst_imaging", *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
    assert done.returncode == 0, done.stderr


def vector(azimuth, elevation):
    azimuth, elevation = np.radians((azimuth, elevation))
    return np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])


def large_maps(width=2600, height=1700):
    """4.4 megapixels of waves, of which every number is known; a stripe has no normals."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    slope = np.dstack([np.cos(x / 40) / 2, np.sin(y / 55) / 3, np.ones_like(x)])
    normals = np.rint(32768 + 32767 * slope / np.linalg.norm(slope, axis=-1, keepdims=True)).astype(np.uint16)
    normals[300:310] = 0
    heights = np.where(normals.any(-1), x / 100 + y / 300, np.nan)
    return web.Maps(normals, np.rint(30000 + 20 * (x % 900)).astype(np.uint16), heights.astype(np.float32))


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        name = os.path.join(cls.folder, "medal")
        medal.main(name, 16, 620)
        places = np.loadtxt(name + "-lights.txt")
        with open(os.path.join(cls.folder, "lights.lp"), "w", encoding="ascii") as file:
            file.write(f"{len(places)}\n" + "".join(f"photo{i:02}.png {x} {y} {z}\n" for i, (x, y, z) in enumerate(places)))
        os.mkdir(os.path.join(cls.folder, "photos"))
        gst_imaging(cls.folder, "convert", "medal.npy", "photos/photo%02d.png")
        gst_imaging(cls.folder, "convert", "medal-mask.npy", "photos/mask.png")
        gst_imaging(cls.folder, "photostereo", "photos", "lights.lp", "-o", "out", "--mm-per-pixel", str(100 / 620), "--web", "--title",
                    "Medal <b>& \"1912\"</b>")
        gst_imaging(cls.folder, "relight", "out", "-o", "lit", *(f"--light={azimuth},{elevation}" for azimuth, elevation in LIGHTS))
        cls.maps = large_maps()
        web.write(np, os.path.join(cls.folder, "large"), "Waves", cls.maps, 0.05, "mm", 0.9)

    def open(self, page, *words, width=1280, height=900):
        browser = Browser(width, height, *words)
        self.addCleanup(browser.close)
        browser.driver.get("file://" + os.path.join(self.folder, page, "index.html"))
        self.whole(browser)
        return browser

    def whole(self, browser):
        browser.until("typeof relief != 'undefined' && relief.page && relief.page.view.complete && !relief.page.view.moving", "the tiles")

    def errors(self, browser):
        return [line for line in browser.console() if '"SEVERE"' in line]

    def pixels(self, browser, size):
        """The middle of the page at one pixel for each pixel. Returns: rows and columns of the maps, and u8 [height, width, 3]"""
        browser.js("relief.page.view.zoom(1 / relief.page.view.scale)")
        self.whole(browser)
        x, y, width, height = browser.js("const v = relief.page.view; return [v.x, v.y, v.canvas.width, v.canvas.height]")
        first = [max(0, round(-y)), max(0, round(-x))]
        top, left = max(0, round(y)), max(0, round(x))
        rows, columns = min(size[0] - top, height - first[0]), min(size[1] - left, width - first[1])
        data = np.frombuffer(base64.b64decode(browser.js(PIXELS, first[1], first[0], columns, rows)), np.uint8)
        return (slice(top, top + rows), slice(left, left + columns)), data.reshape(rows, columns, 4)[..., :3].astype(int)

    def check_against_relight(self, *words):
        browser = self.open("out/web", *words)
        for i, light in enumerate(LIGHTS):
            x, y, _z = vector(*light)
            browser.js("relief.page.set({x: arguments[0], y: arguments[1]})", x, y)
            self.whole(browser)
            expected = photographs.read(os.path.join(self.folder, "lit", f"lit{i:03d}.png")).astype(int)
            place, found = self.pixels(browser, expected.shape[:2])
            self.assertGreater(found.size, 600 * 600 * 3)
            self.assertLessEqual(np.abs(found - expected[place]).max(), 2, light)
            self.assertGreater(expected.mean(), 20)
        self.assertEqual(self.errors(browser), [])
        return browser

    def test_pixels_are_those_of_relight(self):
        browser = self.check_against_relight()
        self.assertTrue(browser.js("return relief.page.view.lighter instanceof relief.Gpu"))
        self.assertEqual(browser.js("return document.getElementById('title').textContent"), 'Medal <b>& "1912"</b>')
        self.assertEqual(browser.js("return document.getElementById('note').hidden"), True)

    def test_pixels_are_those_of_relight_without_webgl(self):
        browser = self.check_against_relight(WITHOUT_WEBGL)
        self.assertTrue(browser.js("return relief.page.view.lighter instanceof relief.Cpu"))
        self.assertIn("WebGL is missing", browser.js("return document.getElementById('note').textContent"))

    def test_nothing_is_loaded_from_elsewhere(self):
        for path in glob.glob(os.path.join(self.folder, "out", "web", "**"), recursive=True):
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as file:
                    self.assertIsNone(re.search(r"https?:|//[a-z]+\.[a-z]", re.sub(r"data:[^\"]*", "", file.read())), path)

    def test_tiles_of_a_large_picture(self):
        for words in (), (WITHOUT_WEBGL,):
            browser = self.open("large", *words)
            self.assertEqual(browser.js("return relief.about.levels"), [[2600, 1700], [1300, 850], [650, 425], [325, 213]])
            loaded = browser.js("return performance.getEntriesByType('resource').filter((e) => e.name.includes('/tiles/')).map((e) => e.name)")
            self.assertFalse([name for name in loaded if "/tiles/0-" in name], "the whole picture needs no fine tiles")
            x, y, z = vector(120, 35)
            browser.js("relief.page.set({x: arguments[0], y: arguments[1], relief: 2, specular: 0.4})", x, y)
            place, found = self.pixels(browser, self.maps.size)
            self.assertGreater(place[0].stop - place[0].start, 512)  # over an edge of tiles
            normal = (self.maps.normals[place].astype(float) - 32768) * [2, 2, 1]
            normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
            half = np.array([x, y, z + 1]) / np.linalg.norm([x, y, z + 1])
            facing = np.maximum(normal @ [x, y, z], 0)
            light = self.maps.albedo[place] / 65535 * 0.9 * facing + 0.4 * (facing > 0) * np.maximum(normal @ half, 0) ** 30
            expected = np.where(self.maps.normals[place].any(-1), 255 * np.minimum(light, 1) ** (1 / 2.2), 0)
            self.assertLessEqual(np.abs(found - expected[..., None]).max(), 1.1)

    def test_without_albedo_no_side_of_the_surface_is_blown_out(self):
        """White is 0.9 where the light meets the surface head-on, whatever the strength that fits the albedo."""
        for words in (), (WITHOUT_WEBGL,):
            browser = self.open("out/web", *words)
            self.assertGreater(browser.js("return relief.about.diffuse"), 0.95)  # else nothing would be
            light = vector(143.13, 41.4)
            browser.js("relief.page.set({x: arguments[0], y: arguments[1], painted: false})", *light[:2])
            normals = photographs.read(os.path.join(self.folder, "out", "normals.png"))
            place, found = self.pixels(browser, normals.shape[:2])
            normal = normals[place][..., :3].astype(float) - 32768
            facing = np.maximum(normal @ light / np.linalg.norm(normal, axis=-1), 0)
            expected = np.where(normals[place][..., 3] > 0, 255 * (0.9 * facing) ** (1 / 2.2), 0)
            self.assertLessEqual(np.abs(found - expected[..., None]).max(), 2)

    def test_heights_have_a_scale(self):
        browser = self.open("large")
        shown = lambda: browser.js("return document.getElementById('heights').checkVisibility()")
        self.assertFalse(shown())
        browser.js("relief.page.set({show: 'height'})")
        self.assertTrue(shown())
        low, high = (float(f(self.maps.height)) for f in (np.nanmin, np.nanmax))
        self.assertEqual(browser.js("return document.getElementById('heights').textContent"), f"{low:.1f}{high:.1f} mm")

    def test_heights_along_a_line(self):
        browser = self.open("large")
        for start, end in ([20, 700], [1480, 1650]), ([5, 1690], [2590, 400]):  # the second from a coarser level
            browser.js("relief.page.setTool('measure'); relief.page.measure(...arguments)", start, end)
            browser.until("relief.page.samples().length && !document.getElementById('chart').hidden", "the profile")
            found = np.array(browser.js("return relief.page.samples()"), float)
            length = np.hypot(end[0] - start[0], end[1] - start[1])
            self.assertAlmostEqual(found[-1, 0], 0.05 * length, places=6)
            part = found[:, 0] / found[-1, 0]
            x, y = (start[i] + part * (end[i] - start[i]) - 0.5 for i in (0, 1))
            span = np.nanmax(self.maps.height) - np.nanmin(self.maps.height)
            self.assertLess(np.abs(found[:, 1] - (x / 100 + y / 300)).max(), 2 * span / 65534)
            browser.js("document.getElementById('close').click()")
        browser.js("relief.page.measure([100, 305], [600, 305])")
        browser.until("relief.page.samples().every((sample) => sample[1] === null || Number.isNaN(sample[1]))", "a line without heights")
        self.assertEqual(browser.js("return relief.page.csv().split('\\n')[0]"), "distance (mm),height (mm)")
        self.assertEqual(self.errors(browser), [])

    def test_mouse_touch_and_keys(self):
        browser = self.open("out/web")
        scene = lambda: browser.js("const {x, y, painted, relief: r, show, specular} = relief.page.scene; return [x, y, painted, r, show, specular]")
        picture, chain = browser.find("#picture"), ActionChains(browser.driver)
        height = browser.js("return document.getElementById('picture').clientHeight")
        chain.move_to_element(picture).click_and_hold().move_by_offset(0, -int(height / 4)).release().perform()
        x, y = scene()[:2]
        self.assertAlmostEqual(x, 0, delta=0.01)
        self.assertAlmostEqual(y, 0.5, delta=0.01)
        press = browser.driver.find_element("tag name", "body").send_keys
        for key, i, value in (("a", 2, False), ("a", 2, True), ("r", 3, 2), ("n", 4, "normals"), ("h", 4, "height"), ("s", 4, "surface"),
                              ("g", 5, 0.25), (Keys.ARROW_RIGHT, 0, x + 0.05), (Keys.ARROW_DOWN, 1, y - 0.05)):
            press(key)
            self.assertEqual(scene()[i], value, key)
        for _ in range(60):  # the light stays above the surface
            press(Keys.ARROW_LEFT)
        self.assertAlmostEqual(np.hypot(*scene()[:2]), 1, places=6)
        before = browser.js("return relief.page.view.scale")
        press("+")
        self.assertAlmostEqual(browser.js("return relief.page.view.scale"), 1.5 * before, places=6)
        browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
        for kind, spread in ("touchStart", 60), ("touchMove", 90), ("touchMove", 120), ("touchEnd", None):
            points = [] if spread is None else [{"x": 640 - spread, "y": 400, "id": 0}, {"x": 640 + spread, "y": 400, "id": 1}]
            browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        self.assertAlmostEqual(browser.js("return relief.page.view.scale"), 3 * before, delta=0.15 * before)  # twice
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": 640, "y": 400, "id": 0}]})
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        self.assertAlmostEqual(scene()[0], 0, delta=0.02)
        self.assertEqual(self.errors(browser), [])

    def test_maps_lose_nothing(self):
        with open(os.path.join(self.folder, "out", "web", "tiles", "0-1-1.js"), encoding="ascii") as file:
            text = file.read()
        pictures = []
        for i, url in enumerate(re.findall(r'"data:image/png;base64,([^"]*)"', text)):
            path = os.path.join(self.folder, f"map{i}.png")
            with open(path, "wb") as file:
                file.write(base64.b64decode(url))
            pictures.append(photographs.read(path)[..., :3].astype(int))
        tile = slice(512, 620)
        for name, (high, low) in ("normals.png", pictures[:2]), ("albedo.png", pictures[2:4]):
            expected = photographs.read(os.path.join(self.folder, "out", name))[tile, tile, :3]
            self.assertTrue((256 * high + low == expected).all(), name)
        height = photographs.read(os.path.join(self.folder, "out", "height.tif")).reshape(620, 620)
        word = 256 * pictures[4][..., 0] + pictures[4][..., 1]
        low, high = np.nanmin(height), np.nanmax(height)
        expected = height[tile, tile]
        self.assertTrue(((word == 0) == ~np.isfinite(expected)).all())
        known = word > 0
        self.assertLess(np.abs(low + (word - 1) / 65534 * (high - low) - expected)[known].max(initial=0), (high - low) / 65534)

    def test_a_tile_that_is_missing_is_told(self):
        folder = os.path.join(self.folder, "broken")
        shutil.copytree(os.path.join(self.folder, "large"), folder)
        os.remove(os.path.join(folder, "tiles", "0-2-1.js"))
        browser = self.open("broken")
        browser.js("relief.page.view.zoom(1 / relief.page.view.scale)")
        browser.until("document.getElementById('note').textContent.includes('tiles/0-2-1.js is missing')", "the sentence")


if __name__ == "__main__":
    if not webdriver or not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("chromium, chromium-driver or python3-selenium is missing")
        sys.exit(77)
    if "png" not in os.environ.get("FORMATS", "png").split():
        print("built without png")
        sys.exit(77)
    library.gstreamer()
    unittest.main()
