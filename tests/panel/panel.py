# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging panel in a browser: each ready pipeline is shown, controlled and measured, with a mouse, with keys, on a small screen.

With --pictures FOLDER the pictures of the reference and of the tutorial are made in place of a test, in FOLDER/reference and FOLDER/tutorials. That needs Pillow (python3-pil).
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
from browser import SOURCE, Browser, Served, missing

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging.panel.demo import VERSION

if not missing():
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

# element and property of a slider, a value that is refused
READY = {
    "sharpen": ("sharpen", "amount", "300"),
    "ao": ("ao", "power", "-7"),
    "oct": ("oct", "range-max", "1e9"),
    "photostereo": ("light", "elevation", "1e9"),
    "insar": ("insar", "fit-snr", "1e9"),
}
# whose first view moves by itself: insar plays one pair again and again
MOVING = ("sharpen", "ao", "oct", "photostereo")
CHOOSE = "const [menu, value] = arguments; menu.value = value; menu.dispatchEvent(new Event('change'));"
MOVE = "const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change'));"


# What Tab has to reach, by a number that they get.
REACHABLE = """[...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
  .filter((n) => !n.disabled && n.tabIndex >= 0 && n.checkVisibility({visibilityProperty: true}))
  .map((n, i) => (n.dataset.reach = i))"""
# The number of what has the focus, and why nobody sees that; null where one does.
FOCUSED = """
const n = document.activeElement, style = getComputedStyle(n), box = n.getBoundingClientRect();
const seen = box.width > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
const marked = n.matches(":focus-visible") && style.outlineStyle != "none" && parseFloat(style.outlineWidth) >= 2;
return [Number(n.dataset.reach ?? -1), n === document.body || (seen && marked) ? null : `${n.outerHTML.slice(0, 200)} ${seen} ${style.outline}`];
"""
# What a screen cuts off, unless it can be scrolled to; and buttons that a finger does not hit.
TOO_WIDE = """
const scrolls = (n) => n && (["auto", "scroll"].includes(getComputedStyle(n).overflowX) && n !== document.body ? true : scrolls(n.parentElement));
return [...document.querySelectorAll("button, input, select, canvas, summary")].filter((n) => n.checkVisibility({visibilityProperty: true}) && !scrolls(n.parentElement))
  .filter((n) => n.getBoundingClientRect().right > innerWidth || n.getBoundingClientRect().left < 0 || (n.matches("button") && n.getBoundingClientRect().height < 24))
  .map((n) => `${n.outerHTML.slice(0, 120)} ${JSON.stringify(n.getBoundingClientRect())}`);
"""
# Texts with too little contrast; with an argument, of these colours on a card.
CONTRAST = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const rgb = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, k, i) => sum + k * (c[i] / 255 <= 0.04045 ? c[i] / 255 / 12.92 : ((c[i] / 255 + 0.055) / 1.055) ** 2.4), 0);
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
const named = (name) => rgb(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
if (arguments[0]) return arguments[0].filter((name) => ratio(named(name), named("--card")) < 4.5);
const behind = (n) => {
  for (; n; n = n.parentElement) {
    const c = rgb(getComputedStyle(n).backgroundColor);
    if (c[3] == 255) return c;
  }
  return [255, 255, 255];
};
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const n = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !n.checkVisibility({visibilityProperty: true}) || n.closest(":disabled, script")) continue;
  const found = ratio(rgb(getComputedStyle(n).color), behind(n));
  if (found < 4.5) poor.push(`${walker.currentNode.data.trim()} ${n.className} ${found.toFixed(2)}`);
}
for (const n of document.querySelectorAll("input[type=text], input[type=search], select")) {
  if (n.disabled || !n.checkVisibility()) continue;
  for (const part of [null, "::placeholder"]) {
    const found = ratio(rgb(getComputedStyle(n, part).color), behind(n));
    if (found < 4.5) poor.push(`${n.id} ${n.className} ${part} ${found.toFixed(2)}`);
  }
}
return poor;
"""


class Ready(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def serve(self, *words, prepare=lambda: None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = os.path.join(os.path.realpath(folder.name), "data")
        os.makedirs(self.data, exist_ok=True)
        prepare()
        served = Served(os.path.realpath(folder.name), *words, "--files", self.data)
        self.addCleanup(lambda: served.process.returncode is None and served.end())
        self.browser.console()
        self.browser.screen(1280, 800)
        return served

    def end(self, served):
        """No panel is left: its page would look for it, and fill the console."""
        self.assertEqual(self.browser.console(), [])
        self.browser.driver.get("about:blank")
        served.end()

    def value(self, element, name):
        elements = self.browser.ask("state")["elements"]
        properties = next(e for e in elements if e["name"] == element)["properties"]
        return next(p for p in properties if p["name"] == name)["value"]

    def wait_for_value(self, element, name, value, what):
        end = time.monotonic() + 10
        while self.value(element, name) != value:
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def picture_moves(self, first=None):
        first = first or self.browser.find(".view canvas").screenshot_as_png
        end = time.monotonic() + 10
        while self.browser.find(".view canvas").screenshot_as_png == first:
            self.assertLess(time.monotonic(), end, "the picture does not move")

    def true_samples(self, name):
        """What the page says of a sample is what the file of the demo has in that frame."""
        b = self.browser
        base = os.path.join(os.path.dirname(self.data), "gst-imaging", "panel", f"{name}-{VERSION}")
        frames = np.load(base + ".npy") if name != "insar" else np.fromfile(base + "-ref.SLC", "<i2").reshape(1, 512, 512, 2)
        b.find("#play").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused")
        b.find(".view canvas").send_keys("++++++++")
        b.until("document.querySelector('.readout').dataset.sample", "a sample")
        # the text and the frame belong to one picture
        text, sample, frame = b.js("const r = document.querySelector('.readout'); return [r.textContent, r.dataset.sample, r.dataset.frame]")
        x, y = map(int, text[1:].split(")")[0].split(","))
        self.assertEqual(json.loads(sample), frames[int(frame or 0) % len(frames), y, x].tolist(), (x, y, frame))
        b.find(".view canvas").send_keys("0")
        b.find("#play").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'playing'", "playing")

    def control(self, element, name):
        return f".control[data-element='{element}'][data-property='{name}']"

    def slider_sets(self, element, name):
        b = self.browser
        before = self.value(element, name)
        control = self.control(element, name)
        slider = b.find(f"{control} input[type=range]")
        b.js(MOVE, slider, b.js("const s = arguments[0]; return +s.min + (s.max - s.min) * 0.8", slider))
        end = time.monotonic() + 10
        while self.value(element, name) == before:
            self.assertLess(time.monotonic(), end, f"{name} did not follow the slider")
            time.sleep(0.05)
        b.until("!document.querySelector('#undo').disabled", "something to undo")

    def typed(self, element, name, *values):
        b = self.browser
        field = b.find(f"{self.control(element, name)} input[type=text]")
        for value in values:
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(str(value), Keys.ENTER)
            self.wait_for_value(element, name, value, field.get_attribute("value"))

    def rejected(self, element, name, wrong):
        b = self.browser
        control = self.control(element, name)
        before = self.value(element, name)
        field = b.find(f"{control} input[type=text]")
        b.js("arguments[0].scrollIntoView({block: 'center'})", field)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(wrong, Keys.ENTER)
        sentence = b.until(f"document.querySelector(\"{control} .rejected\").textContent", "the sentence")
        self.assertGreater(len(sentence), 20, sentence)
        self.assertEqual(self.value(element, name), before)
        serial = int(b.js("return document.querySelector('.view').dataset.serial"))
        b.until(f"document.querySelector('.view').dataset.serial > {serial + 2}", "pictures after it")

    def small_screen(self):
        b = self.browser
        b.screen(390, 844, True)
        self.assertEqual(b.js("return document.documentElement.scrollWidth"), 390)
        serial = int(b.js("return document.querySelector('.view').dataset.serial"))
        b.until(f"document.querySelector('.view').dataset.serial > {serial + 2}", "pictures on a small screen")
        self.assertEqual(b.js(TOO_WIDE), [])
        b.find("#help").click()
        box = b.js("const b = document.querySelector('dialog').getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]")
        self.assertTrue(box[0] >= 0 and box[1] <= 390 and box[2] >= 0 and box[3] <= 844, box)
        b.find("dialog").send_keys(Keys.ESCAPE)
        b.screen(1280, 800)

    def walk(self, name, served=None):
        element, setting, wrong = READY[name]
        b = self.browser
        served = served or self.serve(name)
        b.open(served.address)
        self.assertLessEqual(b.js("return document.documentElement.scrollHeight"), 800, "more than one screen")
        if name in MOVING:
            self.picture_moves()
        before = b.find(".view canvas").screenshot_as_png
        self.slider_sets(element, setting)
        if name in MOVING:
            self.picture_moves(before)
        self.rejected(element, setting, wrong)
        if name in ("sharpen", "ao", "photostereo"):
            points = int(b.until("document.querySelector('#results canvas').dataset.points", "a plot"))
            b.until(f"document.querySelector('#results canvas').dataset.points > {points}", "a plot that grows")
        self.small_screen()
        self.preset_stays(served, element, setting)
        return served

    def preset_stays(self, served, element, setting):
        """A preset is there after the page was loaded anew, and brings its value back."""
        b = self.browser
        kept = self.value(element, setting)
        self.save_preset("kept")
        elements = b.ask("state")["elements"]
        described = next(p for e in elements if e["name"] == element for p in e["properties"] if p["name"] == setting)
        b.ask("set", element=element, values={setting: described["default"]})
        b.open(served.address)
        b.until("document.querySelector('#presets').value == 'kept'", "the preset after a reload")
        self.assertNotEqual(self.value(element, setting), kept)
        b.find("#preset-load").click()
        self.wait_for_value(element, setting, kept, f"{setting} is not that of the preset")

    def save_preset(self, name):
        b = self.browser
        b.find("#preset-save").click()
        b.find("dialog input").send_keys(name, Keys.ENTER)
        b.until(f"document.querySelector('#presets').value == '{name}'", "the preset")

    def test_sharpen(self):
        served = self.walk("sharpen")
        b = self.browser
        self.true_samples("sharpen")
        b.ask("set", element="sharpen", values={"amount": 4})
        b.until(f"document.querySelector(\"{self.control('sharpen', 'amount')} input[type=text]\").value == '4'", "a change from elsewhere")
        self.typed("sharpen", "amount", 2.5, 3.5, 4)
        self.save_preset("four")
        b.ask("set", element="sharpen", values={"amount": 1})
        b.open(served.address)
        b.until("document.querySelector('#presets').value == 'four'", "the preset after a reload")
        b.find("#preset-compare").click()
        b.until("document.querySelector('#compare td')", "the difference")
        self.assertIn("amount", b.find("#compare").text)
        edges = b.js("return ['th', 'td'].map((t) => [...document.querySelectorAll(`#compare ${t}`)].map((n) => [getComputedStyle(n).textAlign, n.getBoundingClientRect().left]))")
        self.assertEqual(*edges)  # heads are above their columns
        b.find("#compare button").click()
        b.find("#preset-load").click()
        b.until(f"document.querySelector(\"{self.control('sharpen', 'amount')} input[type=text]\").value == '4'", "the preset loaded")
        self.assertEqual(self.value("sharpen", "amount"), 4)
        self.end(served)

    def said(self, action):
        said = f"document.querySelector('.action[data-action={action}] .said').textContent"
        return self.browser.until(f"!['', '…'].includes({said}) && {said}", "an answer")

    def choose(self, button, name):
        """A file of the dialog that the button opens"""
        b = self.browser
        b.js("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        entry = b.until(f"[...document.querySelectorAll('dialog .files button')].find((n) => n.textContent == '{name}')", "the file in the list")
        entry.click()
        b.find("dialog button[type=submit]").click()
        b.until("!document.querySelector('dialog')", "the end of the dialog")

    def test_ao(self):
        served = self.serve("ao", prepare=lambda: np.save(os.path.join(self.data, "dark.npy"), np.full((160, 240), 7, np.float32)))
        served = self.walk("ao", served)
        b = self.browser
        # an action with arguments: two frames, into a file
        action = ".action[data-action=capture-reference]"
        fields = b.driver.find_elements("css selector", f"{action} input")
        b.js("arguments[0].scrollIntoView({block: 'center'})", fields[0])
        for field, text in zip(fields, ("2", "reference.npy")):
            field.clear()
            field.send_keys(text)
        b.find(f"{action} button").click()
        self.assertEqual(self.said("capture-reference"), "Done.")
        end = time.monotonic() + 10
        while not os.path.exists(os.path.join(self.data, "reference.npy")):
            self.assertLess(time.monotonic(), end, "the action has written no file")
            time.sleep(0.05)
        # outside of the folder
        fields[1].clear()
        fields[1].send_keys("/tmp/reference.npy")
        b.find(f"{action} button").click()
        b.until(f"document.querySelector('{action} .said.bad')", "a refusal")
        self.assertIn("is not below a folder of --files", self.said("capture-reference"))
        # a file of the folder
        control = self.control("ao", "dark-location")
        self.choose(b.find(f"{control} .fields button"), "dark.npy")
        b.until(f"document.querySelector(\"{control} input\").value == '{self.data}/dark.npy'", "the path")
        self.assertEqual(self.value("ao", "dark-location"), f"{self.data}/dark.npy")
        b.js("const m = document.querySelector('#results select:nth-of-type(2)'); m.value = 'Map of |slope|'; m.dispatchEvent(new Event('change'))")
        self.true_samples("ao")
        self.end(served)

    def test_an_action_and_a_setting_ask_before_they_replace_a_file(self):
        """Nothing is replaced by Cancel and by Escape; Replace does it."""
        names = "reference.npy", "grid.npy"

        def prepare():
            for name in names:
                np.save(os.path.join(self.data, name), np.full(3, 7))

        def is_old(name):
            return np.load(os.path.join(self.data, name)).tolist() == [7] * 3

        served, b = self.serve("ao", prepare=prepare), self.browser
        b.open(served.address)
        action, control = ".action[data-action=capture-reference]", self.control("ao", "find-grid-location")
        fields = b.driver.find_elements("css selector", f"{action} input")
        b.js("arguments[0].scrollIntoView({block: 'center'})", fields[0])
        for field, text in zip(fields, ("2", names[0])):
            field.clear()
            field.send_keys(text)

        def press():
            b.find(f"{action} button").click()

        def enter():
            field = b.find(f"{control} input")
            b.js("arguments[0].scrollIntoView({block: 'center'})", field)
            is_same = field.get_property("value") == names[1]  # which is no change of the field
            b.js("arguments[0].focus(); arguments[0].select()", field)
            field.send_keys("./" * is_same + names[1], Keys.ENTER)

        for ask, name, said in (press, names[0], f"{action} .said"), (enter, names[1], f"{control} .rejected"):
            for no in lambda: b.find("dialog button[type=button]").click(), lambda: b.find("dialog").send_keys(Keys.ESCAPE):
                ask()
                text = b.until("document.querySelector('dialog')?.textContent", "the question")
                self.assertIn(f"There is {name} already", text)
                self.assertIn("Replace", text)
                no()
                b.until("!document.querySelector('dialog')", "the end of the dialog")
                b.until(f"document.querySelector(\"{said}\").textContent.includes('already')", "the reason")
                self.assertTrue(is_old(name))
            ask()
            b.until("document.querySelector('dialog')", "the question")
            b.find("dialog button[type=submit]").click()
            b.until("!document.querySelector('dialog')", "the end of the dialog")
            end = time.monotonic() + 10
            while name == names[0] and is_old(name):
                self.assertLess(time.monotonic(), end, "the file is not replaced")
                time.sleep(0.05)
        self.assertEqual(self.said("capture-reference"), "Done.")
        self.wait_for_value("ao", "find-grid-location", os.path.join(self.data, names[1]), "the setting is not made")
        self.end(served)

    def slope_rms(self):
        """Of the newest frame, in pixels"""
        return self.browser.driver.execute_async_script(
            "const done = arguments[0]; fetch('/api/results?element=ao').then((r) => r.json()).then((m) => done(m.summary.rms))")

    def until_rms(self, is_so, what):
        """The residual is so 5 times in a row."""
        end, found = time.monotonic() + 30, []
        while len(found) < 5 or not all(map(is_so, found[-5:])):
            self.assertLess(time.monotonic(), end, f"{what}: {found}")
            found.append(self.slope_rms())
            time.sleep(0.1)
        return found

    def frames(self):
        return next(e for e in self.browser.ask("state")["health"]["elements"] if e["name"] == "loop")["frames"]

    def test_a_loop_becomes_unstable_and_recovers(self):
        served = self.serve("ao", "--simulator")
        b = self.browser
        b.open(served.address)
        self.assertEqual(b.js("return [...document.querySelectorAll('.view .pad')].map((m) => m.value)"), ["ao.src", "wavefronts.src"])
        steady = self.until_rms(lambda rms: 0 < rms < 0.15, "a steady loop")
        slider = b.find(f"{self.control('loop', 'gain')} input[type=range]")
        self.assertTrue(slider.is_displayed())
        b.js(MOVE, slider, 700)  # of 0 to 2
        self.until_rms(lambda rms: rms > 5 * steady[-1] and rms > 0.5, "an unstable loop")
        self.assertAlmostEqual(self.value("loop", "gain"), 1.4)
        b.js(MOVE, slider, 150)
        self.until_rms(lambda rms: 0 < rms < 0.15, "a loop that has recovered")
        b.until("+document.querySelector('#results canvas').dataset.points > 10", "the residual over time")
        # it stands still with the pipeline, and goes on
        for button, state in ("#play", "paused"), ("#play", "playing"), ("#stop", "stopped"), ("#play", "playing"):
            b.find(button).click()
            b.until(f"document.querySelector('#pipeline-state').dataset.state == '{state}'", state)
            if state == "playing":
                before, end = self.frames(), time.monotonic() + 10
                while self.frames() < before + 20:
                    self.assertLess(time.monotonic(), end, "no frames")
        self.until_rms(lambda rms: 0 < rms < 0.15, "a loop that goes on")
        self.small_screen()
        self.end(served)

    def test_frames_are_numbered_within_their_file(self):
        """And the title has its name, so has that of an own pipeline."""
        path = os.path.join(tempfile.mkdtemp(), "four.npy")
        self.addCleanup(lambda: (os.remove(path), os.rmdir(os.path.dirname(path))))
        np.save(path, np.arange(4 * 48 * 64, dtype=np.uint16).reshape(4, 48, 64))
        b = self.browser
        for words, title in ((("view", path), "Pictures"), ((f"picturesrc location={path} loop=true ! lapsharpen ! fakesink sync=true",), "Pipeline")):
            served = self.serve(*words)
            b.open(served.address)
            b.until("document.querySelector('.view').dataset.serial > 8", "several passes")
            self.assertEqual(b.js("return document.title"), f"four.npy – {title} – gst-imaging panel")
            if title == "Pictures":
                self.assertRegex(b.js("return document.querySelector('.readout').textContent"), "frame [0-3] of 4$")
            self.end(served)

    def test_both_halves_have_one_window(self):
        """The range of the sharpened picture is larger: it alone would be shown with less contrast."""
        served = self.serve("sharpen", "amount=4")
        b = self.browser
        b.open(served.address)
        windows = "panel.views()[0].layers.map((l) => [l.header?.window, l.header?.level])"
        same = f"String({windows}[0]) == String({windows}[1])"
        b.find("#play").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused")
        window = b.until(f"{same} && {windows}[0][0]", "one window")
        b.js(CHOOSE, b.find(".view .range"), "5")
        # narrower than that of any frame before: the last one may come after the pause
        b.until(f"{windows}[0][0] < {0.85 * window} && {same}", "another window for both")
        b.find(".view canvas").send_keys("w")
        chosen = "(({window, level}) => [window, level])(panel.views()[0].levels)"
        b.until(f"{chosen}[0] && String({windows}[0]) == String({chosen}) && {same}", "one window by hand")
        self.end(served)

    def test_the_newest_picture_stays(self):
        """Also where the one before it takes longer to decode."""
        served = self.serve("videotestsrc ! video/x-raw,format=GRAY8,width=64,height=48 ! identity name=i ! fakesink sync=true")
        b = self.browser
        b.open(served.address)
        b.js("""
            const decode = createImageBitmap, {root} = panel.views()[0], shown = window.shown = [];
            window.createImageBitmap = async (jpeg) => {
              window.createImageBitmap = decode;
              const bitmap = await decode(jpeg);
              await new Promise((go) => setTimeout(go, 1000));
              window.isLate = shown.length > 2;
              return bitmap;
            };
            new MutationObserver(() => shown.push(Number(root.dataset.serial))).observe(root, {attributeFilter: ["data-serial"]});""")
        n = b.until("window.isLate && shown.length", "a picture that is decoded after a newer one")
        shown = b.until(f"shown.length > {n + 3} && shown", "pictures after it")
        self.assertEqual(shown, sorted(shown))
        self.end(served)

    def test_a_camera_that_stands_still(self):
        with tempfile.TemporaryDirectory() as folder:
            pattern = np.arange(48 * 64, dtype=np.uint16).tobytes()
            fifo = os.path.join(folder, "camera")
            os.mkfifo(fifo)
            served = self.serve("sharpen", "--camera", f"gst:filesrc location={fifo} ! rawvideoparse format=gray16-le width=64 height=48 framerate=25/1")
            b = self.browser
            with open(fifo, "wb", buffering=0) as camera:
                b.driver.get(served.address)
                for _ in range(100):
                    camera.write(pattern)
                    time.sleep(0.02)
                    if b.js("return document.querySelector('.view')?.dataset.serial > 1"):
                        break
                b.until("document.querySelector('#pipeline-state').dataset.state == 'silent'", "a camera that is silent")
                self.assertEqual(b.js("return document.querySelector('#pipeline-state').textContent"), "no frames")
                self.assertIn("no frame has passed", b.find(".view-note.old").text)
                for _ in range(50):
                    camera.write(pattern)
                    time.sleep(0.02)
                b.until("document.querySelector('.view-note.old').hidden", "a picture of now")
            b.until("document.querySelector('#pipeline-state').textContent == 'ended'", "its end")
            self.assertIn("The connection of the camera has ended", b.find(".view-note.old").text)
            self.end(served)

    def test_oct(self):
        served = self.walk("oct")
        b = self.browser
        ActionChains(b.driver).move_to_element(b.find(".view canvas")).perform()
        b.until("document.querySelector('#results canvas').dataset.line", "an A-scan")
        self.act("reset-range")
        for section in "frame", "row", "column", "max-frame", "max-row", "max-column":
            b.js(CHOOSE, b.find(".view .section"), section)
            serial = int(b.js("return document.querySelector('.view').dataset.serial"))
            b.until(f"document.querySelector('.view').dataset.serial > {serial + 1}", section)
        b.js(CHOOSE, b.find(".view .section"), "live")
        b.until("document.querySelector('.view .zoom').textContent.includes('128 × 320')", "the newest frame")
        widths = {}
        for aspect in "fill", "pixels", "true":
            b.js(CHOOSE, b.find(".view .aspect"), aspect)
            widths[aspect] = float(b.find(".view .zoom").get_attribute("textContent").split("%")[0])
        # the frame is higher than wide, and its samples are seven times as wide as high
        self.assertLess(widths["pixels"], widths["true"])
        self.assertAlmostEqual(widths["fill"], 336 / 128 * 100, delta=2)
        b.js(CHOOSE, b.find(".view .pad"), "source.src")
        b.until("document.querySelector('.view .zoom').textContent.includes('512 × 128')", "the spectra")
        self.true_samples("oct")
        self.end(served)

    def test_a_mirror_calibrates(self):
        """Two positions of a mirror in turns: the page tells what was found, and why signs are refused."""
        def record():
            u = np.linspace(-1, 1, 512)
            kappa, light = u + 0.05 * (1 - u**2), 9000 * np.exp(-(u / 0.6) ** 2)
            phases = [np.pi * depth * kappa + 3 * kappa**2 + 0.7 * np.arange(8)[:, None] for depth in (60, 140)]
            spectra = [light * (1 + 0.3 * np.cos(phase)) + np.random.default_rng(i).normal(0, 10, phase.shape) + 500 for i, phase in enumerate(phases)]
            np.save(os.path.join(self.data, "mirrors.npy"), np.rint(spectra).astype(np.uint16))

        served = self.serve("oct", "data/mirrors.npy", "background=none", "--lambda", "800", "900", prepare=record)
        b = self.browser
        b.open(served.address)
        field, travel = (b.find(f".action[data-action=calibrate-mirror] input[placeholder={name}]") for name in ("sides", "travel-um"))
        button = b.find(".action[data-action=calibrate-mirror] button")
        b.js("arguments[0].scrollIntoView({block: 'center'})", field)
        said = "document.querySelector('.action[data-action=calibrate-mirror] .said')"
        for signs, words in ("x", "It was given"), ("++", "camera 0 mirror 1"):
            field.clear()
            field.send_keys(signs)
            button.click()
            b.until(f"{said}.textContent.includes('{words}')", words)
            self.assertEqual(b.js(f"return {said}.classList.contains('bad')"), signs == "x")
        text = b.js(f"return {said}.textContent")
        self.assertRegex(text, r"^phase error rms 0\.0\d+, n positions 2\n")
        self.assertEqual(len(re.findall(r"width before [\d.]+, width [\d.]+, width limit [\d.]+", text)), 2, text)
        self.assertAlmostEqual(abs(float(self.value("oct", "dispersion").split(";")[2])), 3, delta=0.1)
        depths = [float(depth) for depth in re.findall(r"depth um ([\d.]+)", text)]
        moved = 1.1 * abs(depths[1] - depths[0])
        for given, words in (f"{moved:.4f}", "camera 0 scale"), (f"{30 * moved:.4f}", "Is it in micrometres?"):
            travel.clear()
            travel.send_keys(given)
            button.click()
            b.until(f"{said}.textContent.includes('{words}')", words)
        self.end(served)

    def act(self, action):
        """An action without arguments"""
        button = self.browser.find(f".action[data-action={action}] button")
        self.browser.js("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        self.assertEqual(self.said(action), "Done.")

    def test_photostereo(self):
        served = self.walk("photostereo")
        b = self.browser
        self.true_samples("photostereo")
        self.act("finish-set")
        # the mouse over the relit surface is its lamp
        before = self.value("light", "azimuth")
        ActionChains(b.driver).move_to_element_with_offset(b.find(".view canvas"), 60, 90).perform()
        end = time.monotonic() + 10
        while self.value("light", "azimuth") == before:
            self.assertLess(time.monotonic(), end, "the light does not follow the mouse")
            time.sleep(0.05)
        # relight measures nothing: its times are plotted
        b.js(CHOOSE, b.find("#results select"), "light")
        points = int(b.until("document.querySelector('#results canvas').dataset.points > 1 && document.querySelector('#results canvas').dataset.points", "times"))
        b.until(f"document.querySelector('#results canvas').dataset.points > {points}", "times that grow")
        self.end(served)

    def test_insar(self):
        b = self.browser
        served = self.walk("insar")
        self.true_samples("insar")
        b.until("document.querySelector('.progress-text').textContent.includes('rows')", "progress")
        points = int(b.until("document.querySelector('#results canvas').dataset.points", "rows"))
        b.until(f"document.querySelector('#results canvas').dataset.points != {points}", "rows that follow")
        self.end(served)

    def save_as(self, button, name, then="!document.querySelector('dialog')"):
        """Presses a button that asks for a path. then: what the page shows when it has the path"""
        b = self.browser
        b.find(button).click()
        b.until("document.querySelector('dialog .files li')", "the folder")
        field = b.find("dialog input[type=text]")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(name, Keys.ENTER)
        b.until(then, "the end of the dialog")

    def verify(self, name):
        done = subprocess.run([sys.executable, "-m", "gst_imaging", "verify", os.path.join(self.data, name)], capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_recording_verifies(self):
        """Of the demo's data, with one setting changed in the middle; and frames that are saved, also while it is paused."""
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)
        self.save_as("#record", "run.npy")
        frames = "parseInt(document.querySelector('#recording').textContent)"
        before = b.until(f"{frames} > 5 && {frames}", "frames of the recording")
        self.slider_sets("sharpen", "amount")
        b.until(f"{frames} > {before + 10}", "frames after the change")
        self.save_as("#snapshot", "one.png")
        b.find("#record").click()
        b.until("document.querySelector('#recording').textContent == ''", "the end of the recording")
        b.find("#play").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused")
        self.save_as("#snapshot", "paused.png")
        b.until("document.querySelector('#toast').textContent.includes('paused.png')", "the saved frame")
        # a file that is there is replaced by whoever says so, and by nobody else
        seen = os.stat(os.path.join(self.data, "paused.png")).st_mtime_ns
        self.save_as("#snapshot", "paused.png", "document.querySelector('dialog')?.textContent.includes('exists')")
        self.assertEqual(os.stat(os.path.join(self.data, "paused.png")).st_mtime_ns, seen)
        b.find("dialog button[type=submit]").click()
        end = time.monotonic() + 10
        while os.stat(os.path.join(self.data, "paused.png")).st_mtime_ns == seen:
            self.assertLess(time.monotonic(), end, "the file is not replaced")
            time.sleep(0.05)
        with open(os.path.join(self.data, "run.npy.json"), encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual({(c["element"], c["property"]) for c in told["changes"]}, {("sharpen", "amount")})
        for name in "run.npy", "one.png", "paused.png":
            self.verify(name)
        self.end(served)

    def test_a_slider_follows_a_typed_value(self):
        """Its next step begins there."""
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)
        control = self.control("sharpen", "amount")
        field, slider = b.find(f"{control} input[type=text]"), b.find(f"{control} input[type=range]")
        self.typed("sharpen", "amount", 8)
        b.until(f"document.querySelector(\"{control} input[type=range]\").value == 800", "the slider")
        self.assertEqual(slider.get_attribute("aria-valuetext").strip(), "8")
        slider.send_keys(Keys.ARROW_RIGHT)
        b.until(f"document.querySelector(\"{control} input[type=text]\").value == '8.01'", "a step of the slider")
        self.wait_for_value("sharpen", "amount", 8.01, "the step is not sent")
        time.sleep(0.5)  # the end of the drag is sent as well
        # while the slider has the focus, too
        b.ask("set", element="sharpen", values={"amount": 3})
        b.until(f"document.querySelector(\"{control} input[type=range]\").value == 300", "a change from elsewhere")
        # what was changed while the field had the focus is there afterwards
        field.click()
        b.ask("set", element="sharpen", values={"amount": 5})
        b.until(f"document.querySelector(\"{control} input[type=range]\").value == 500", "a change from elsewhere")
        field.send_keys(Keys.TAB)
        b.until(f"document.querySelector(\"{control} input[type=text]\").value == '5'", "the field after the focus")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys("0,3", Keys.ENTER)
        b.until(f"document.querySelector(\"{control} .rejected\").textContent == '\"0,3\" is not a number. Write 0.3 with a point.'", "the hint")
        self.end(served)

    def test_the_end_of_a_file(self):
        served = self.serve("picturesrc location=data/short.npy framerate=10/1 ! lapsharpen name=l ! identity ! fakesink sync=true",
                            prepare=lambda: np.save(os.path.join(self.data, "short.npy"), np.zeros((8, 24, 32), np.uint8)))
        b = self.browser
        b.driver.get(served.address)
        told = "document.querySelector('.view-message')?.checkVisibility() && document.querySelector('.view-message').textContent"
        b.until("document.querySelector('#pipeline-state').textContent == 'ended'", "the end")
        self.assertIn("The data has ended", b.js("return document.querySelector('#messages').textContent"))
        b.driver.get(served.address)
        b.until(f"({told}) == 'The data has ended. Start plays it again from the beginning.'", "why there is no picture")
        b.find("#play").click()
        b.until("document.querySelector('.view').dataset.serial > 1", "pictures")
        b.until("document.querySelector('#pipeline-state').textContent == 'ended'", "the end again")
        self.assertFalse(b.js(f"return {told}"))  # the last picture stays
        b.find("#stop").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'stopped'", "stopped")
        b.driver.get(served.address)
        b.until(f"({told}) == 'The pipeline is stopped. Start plays it.'", "why there is no picture")
        self.end(served)

    def test_the_last_frame_of_a_file(self):
        """The sink behind the pad keeps it, for a page that is opened afterwards."""
        served = self.serve("picturesrc location=data/short.npy framerate=10/1 ! lapsharpen name=l ! fakesink sync=true",
                            prepare=lambda: np.save(os.path.join(self.data, "short.npy"), np.zeros((8, 24, 32), np.uint8)))
        b = self.browser
        for _ in range(2):
            b.driver.get(served.address)
            b.until("document.querySelector('#pipeline-state').textContent == 'ended'", "the end")
        b.until("document.querySelector('.view').dataset.serial", "a picture")
        self.assertFalse(b.js("return document.querySelector('.view-message')?.checkVisibility()"))
        self.end(served)

    def test_a_pipeline_that_passes_nothing(self):
        served = self.serve("videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=32,height=24 ! valve drop=true ! lapsharpen ! fakesink async=false")
        b = self.browser
        b.driver.get(served.address)
        told = b.until("/no frame has passed for/.test(document.querySelector('.view-message')?.textContent) && document.querySelector('.view-message').textContent",
                       "the hint in the view")
        self.assertIn("The pipeline plays", told)
        b.find("#tab-health").click()
        b.until("document.querySelector('#health .hint').checkVisibility()", "the hint of the health")
        self.end(served)

    def test_the_first_view_is_behind_the_last_element_of_ours(self):
        served = self.serve("videotestsrc ! video/x-raw,format=GRAY8,width=32,height=24 ! lapsharpen name=one ! lapsharpen name=two ! identity ! fakesink sync=true")
        b = self.browser
        b.open(served.address)
        self.assertEqual(b.js("return document.querySelector('.view .pad').value"), "two.src")
        self.end(served)

    def test_frames_of_a_raw_file_are_counted(self):
        """The offsets of its buffers are those of bytes."""
        served = self.serve("filesrc location=data/words.raw ! rawvideoparse format=gray8 width=32 height=24 framerate=50/1 ! lapsharpen ! fakesink sync=true",
                            prepare=lambda: np.zeros((500, 24, 32), np.uint8).tofile(os.path.join(self.data, "words.raw")))
        b = self.browser
        b.open(served.address)
        number = int(b.until("document.querySelector('.readout').textContent.match(/frame (\\d+)/)?.[1]", "the number of a frame"))
        self.assertLess(number, 500)
        self.end(served)

    def test_samples_that_are_no_numbers(self):
        frame = np.zeros((24, 32), np.float32)
        frame[12, 16], frame[12, 17], frame[12, 18] = np.inf, -np.inf, np.nan
        served = self.serve("picturesrc location=data/f.npy loop=true ! identity name=i ! fakesink sync=true",
                            prepare=lambda: np.save(os.path.join(self.data, "f.npy"), frame[None]))
        b = self.browser
        b.open(served.address)
        for x, text in (16, "inf"), (17, "-inf"), (18, "NaN"):
            b.js("window.panel.views()[0].link([arguments[0], 12])", x)
            b.until(f"document.querySelector('.readout').textContent == '({x}, 12)  {text}'", text)
        b.find("#tab-measure").click()
        b.until("/1 NaN, 2 inf/.test(document.querySelector('.statistics').textContent)", "what the histogram leaves out")
        self.end(served)

    def test_numbers_of_colours_have_their_letters(self):
        """And stand nearer to each other than to those of the next pixel; the menu of colour maps has nothing to do."""
        served = self.serve("videotestsrc pattern=red ! video/x-raw,format=I420,width=32,height=24,colorimetry=bt601 ! lapsharpen amount=0 ! fakesink sync=true")
        b = self.browser
        b.open(served.address)
        b.js("""window.texts = []; const f = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { window.texts.push([text, y]); f.call(this, text, x, y); };
          window.panel.views()[0].zoom(6)""")
        b.until("['Y 81', 'U 90', 'V 240', 'R, G, B'].every((t) => window.texts.some((found) => found[0] == t))", "samples with letters")
        b.until("!document.querySelector('.view .map').checkVisibility()", "no menu of colour maps")
        y, u, v = b.js("window.texts = []; window.panel.views()[0].draw(); return ['Y', 'U', 'V'].map((n) => window.texts.find((t) => t[0].startsWith(n + ' '))[1])")
        pitch = b.js("return window.panel.views()[0].scaleY")
        self.assertAlmostEqual(u - y, v - u, delta=0.01)
        self.assertLess(u - y, (pitch - (v - y)) * 0.8)
        self.end(served)

    def test_nothing_is_cut(self):
        """On a small desktop, and the height of the head on a telephone."""
        b = self.browser
        cut = """return [...document.querySelectorAll('.view .bar, .readout')].filter((n) => n.scrollWidth > n.clientWidth + 1).map((n) => n.outerHTML.slice(0, 200))"""
        for words in ("oct",), ("photostereo",), ("ao", "--simulator"):
            served = self.serve(*words)
            b.screen(1280, 657)
            b.open(served.address)
            b.until("[...document.querySelectorAll('.view')].every((v) => v.dataset.serial > 1)", "pictures of all views")
            self.assertEqual(b.js(cut), [], words)
            self.assertLess(b.js("return document.querySelector('header').getBoundingClientRect().height"), 45, words)
            self.assertGreater(b.js("return document.querySelector('#results canvas').getBoundingClientRect().height"), 60, words)
            if words[0] == "oct":  # the A-scan of the middle, before anybody points at a line
                b.until("document.querySelector('#results canvas').dataset.line == 64", "an A-scan")
            b.screen(390, 844, True)
            time.sleep(0.3)
            self.assertLess(b.js("return document.querySelector('header').getBoundingClientRect().height"), 130, words)
            self.end(served)

    def test_seek(self):
        """In a file: while it plays, and to a place while it is paused."""
        frames = np.repeat(np.arange(100, dtype=np.uint8)[:, None, None], 48, 1).repeat(64, 2)
        with tempfile.TemporaryDirectory() as folder:
            np.save(os.path.join(folder, "count.npy"), frames)
            served = self.serve(f"picturesrc location={folder}/count.npy framerate=10/1 ! lapsharpen amount=0 ! fakesink sync=true")
            b = self.browser
            b.open(served.address)
            b.until("!document.querySelector('#seek').disabled", "a file that can be sought")
            b.js(MOVE, b.find("#seek"), 50)
            b.until("document.querySelector('.view').dataset.frame >= 50", "the frames after the seek")
            b.find("#play").click()
            b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused")
            for _ in range(5):  # by keys alone
                b.find("#seek").send_keys(Keys.HOME)
            b.until("document.querySelector('.view').dataset.frame == 0", "the first frame, paused")
            b.find("#seek").send_keys(Keys.ARROW_RIGHT)
            b.until("document.querySelector('.view').dataset.frame == 1", "the next frame")
            b.find("#seek").send_keys(Keys.ARROW_LEFT)
            b.until("document.querySelector('.view').dataset.frame == 0", "the first frame again")
            self.save_as("#snapshot", "first.npy")
            b.until("document.querySelector('#toast').textContent.includes('first.npy')", "the saved frame")
            self.assertEqual(int(np.load(os.path.join(self.data, "first.npy")).max()), 0)
            self.end(served)

    def test_seek_in_a_loop(self):
        """Files of a ready pipeline have no end: the position is that in one pass."""
        frames = np.repeat(np.arange(40, dtype=np.uint8)[:, None, None], 48, 1).repeat(64, 2)
        served = self.serve("sharpen", "data/count.npy", "amount=0", prepare=lambda: np.save(os.path.join(self.data, "count.npy"), frames))
        b = self.browser
        b.open(served.address)
        b.until("!document.querySelector('#seek').disabled", "a loop that can be sought")
        self.assertEqual(b.js("return document.querySelector('#seek').max"), "39")
        b.find("#play").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused")
        b.js(MOVE, b.find("#seek"), 17)
        b.until("document.querySelector('.view').dataset.frame == 17", "frame 17")
        b.find("#seek").send_keys(Keys.ARROW_RIGHT)
        b.until("document.querySelector('.view').dataset.frame == 18", "the next frame")
        self.end(served)

    def test_a_drag_is_one_step_of_undo(self):
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)
        before = self.value("sharpen", "amount")
        slider = b.find(f"{self.control('sharpen', 'amount')} input[type=range]")
        b.js("arguments[0].scrollIntoView({block: 'center'})", slider)
        for _ in range(2):
            chain = ActionChains(b.driver, duration=30).click_and_hold(slider)
            for _ in range(8):
                chain.move_by_offset(5, 0).pause(0.1)
            chain.release().perform()
            time.sleep(0.5)
            after = self.value("sharpen", "amount")
            self.assertNotEqual(after, before)
            b.find("#undo").click()
            self.wait_for_value("sharpen", "amount", before, "one step did not take back the drag")
        b.until("document.querySelector('#undo').disabled", "nothing more to undo")
        self.end(served)

    def test_place_and_value_are_whole(self):
        """In a narrow view and on a telephone."""
        served = self.serve("oct")
        b = self.browser
        b.open(served.address)
        for size in (1280, 800, False), (390, 844, True):
            b.screen(*size)
            time.sleep(0.5)
            ActionChains(b.driver).move_to_element_with_offset(b.find(".view canvas"), 100, 20).perform()
            b.until("document.querySelector('.readout').dataset.sample", "a sample")
            text, title, *sizes = b.js("const r = document.querySelector('.readout'); return [r.textContent, r.title, r.scrollWidth, r.clientWidth,"
                                       " r.scrollHeight, r.clientHeight]")
            self.assertRegex(text, r"^\(\d+, \d+\)  [≤≥]? ?-?[\d.]+ dB  lateral [\d.]+ um, depth [\d.]+ um$")
            self.assertRegex(title, r"; sample \d+$")
            self.assertTrue(sizes[0] <= sizes[1] and sizes[2] <= sizes[3] + 1, (text, sizes))
        b.screen(1280, 800)
        self.end(served)

    def downloads(self, button, name):
        """Presses a button. Returns: the file that the browser saves"""
        b = self.browser
        folder = tempfile.mkdtemp(dir=os.path.dirname(self.data))
        b.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
        button.click()
        path, end = os.path.join(folder, name), time.monotonic() + 10
        while not os.path.exists(path) or not os.path.getsize(path):
            self.assertLess(time.monotonic(), end, os.listdir(folder))
            time.sleep(0.05)
        return path

    def table(self, path):
        """Returns: the names of the columns, and the numbers"""
        with open(path, encoding="utf-8") as file:
            return file.readline().strip().split(","), np.loadtxt(file, delimiter=",", ndmin=2)

    def measured(self):
        """The line of the profile that is plotted"""
        return self.browser.js("return JSON.parse(document.querySelector('#measure canvas').dataset.line || 'null')")

    def wait_for_profile(self, *line):
        end = time.monotonic() + 10
        while self.measured() != list(line):
            self.assertLess(time.monotonic(), end, (self.measured(), line))
            time.sleep(0.05)

    def test_profile_and_histogram(self):
        """Of the row and column of the cursor, of a line and a region that are drawn, against the file: with the mouse and with keys."""
        frame = np.random.RandomState(3).randint(0, 4096, (60, 100)).astype(np.uint16)
        served = self.serve("sharpen", "data/noise.npy", "amount=0", prepare=lambda: np.save(os.path.join(self.data, "noise.npy"), frame))
        b = self.browser
        b.open(served.address)
        b.find("#tab-measure").click()
        self.wait_for_profile(0, 30, 99, 30)
        canvas = b.find(".view canvas")
        place = lambda x, y: [round(v) for v in b.js(  # from the middle of the canvas; in the middle of a sample
            "const [v, x, y, c] = [window.panel.views()[0], ...arguments]; const p = v.point([x + 0.5, y + 0.5]);"
            "return [p[0] - c.clientWidth / 2, p[1] - c.clientHeight / 2]", x, y, canvas)]
        ActionChains(b.driver).move_to_element_with_offset(canvas, *place(70, 12)).perform()
        self.wait_for_profile(0, 12, 99, 12)
        b.js(CHOOSE, b.find("#measure select[aria-label=Profile]"), "column")
        self.wait_for_profile(70, 0, 70, 59)
        # a click keeps it
        ActionChains(b.driver).move_to_element_with_offset(canvas, *place(20, 40)).click().move_by_offset(40, 0).perform()
        self.wait_for_profile(20, 0, 20, 59)
        time.sleep(0.5)
        self.assertEqual(self.measured(), [20, 0, 20, 59])
        save_profile, save_histogram = b.driver.find_elements("xpath", "//div[@id='measure']//button[text()='CSV']")
        names, rows = self.table(self.downloads(save_profile, "source.src-profile-before.csv"))
        self.assertEqual(names, ["x", "y", "sample"])
        self.assertEqual(rows.tolist(), [[20, y, frame[y, 20]] for y in range(60)])
        line, region = b.driver.find_elements("xpath", "//div[@id='measure']//button[starts-with(text(), 'Draw')]")
        line.click()
        drag = ActionChains(b.driver).move_to_element_with_offset(canvas, *place(10, 5)).click_and_hold()
        drag.move_to_element_with_offset(canvas, *place(90, 45)).release().perform()
        self.wait_for_profile(10, 5, 90, 45)
        self.assertEqual(line.get_attribute("aria-pressed"), "false")
        names, rows = self.table(self.downloads(save_profile, "source.src-profile-before.csv"))
        self.assertEqual(rows.tolist(), [[x, int(np.floor(5 + (x - 10) / 2 + 0.5)), frame[int(np.floor(5 + (x - 10) / 2 + 0.5)), x]] for x in range(10, 91)])
        region.click()
        drag = ActionChains(b.driver).move_to_element_with_offset(canvas, *place(60, 50)).click_and_hold()
        drag.move_to_element_with_offset(canvas, *place(31, 20)).release().perform()
        part = frame[20:51, 31:61]
        self.check_histogram(save_histogram, part)
        # the same by keys alone
        canvas.send_keys(Keys.ALT, Keys.ARROW_RIGHT, Keys.NULL)
        x, y = map(int, b.find(".view .readout").text[1:].split(")")[0].split(","))
        for key in "p", "b":
            canvas.send_keys(key, Keys.ALT, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_UP, Keys.NULL, key)
            if key == "p":
                self.wait_for_profile(x, y, x - 1, y - 2)
                x, y = x - 1, y - 2
        self.check_histogram(save_histogram, frame[y - 2:y + 1, x - 1:x + 1])
        b.screen(390, 844, True)
        self.assertEqual((b.js("return document.documentElement.scrollWidth"), b.js(TOO_WIDE)), (390, []))
        b.screen(1280, 800)
        b.find("#tab-results").click()  # nothing is measured that nobody sees
        b.until("document.querySelector('#measure').hidden && !window.panel.views()[0].header.statistics", "pictures without measures")
        self.end(served)

    def check_histogram(self, button, part):
        b = self.browser
        words = f"min {part.min()}, max {part.max()}, n {part.size}"
        b.until(f"document.querySelector('#measure .statistics').textContent.includes('{words}')", words)
        mean, deviation = map(float, re.match(r"before: mean ([\d.]+), SD ([\d.]+),", b.find("#measure .statistics").text).groups())
        self.assertAlmostEqual(mean, part.mean(), delta=1e-4 * part.mean())
        self.assertAlmostEqual(deviation, part.std(), delta=1e-4 * part.std())
        names, rows = self.table(self.downloads(button, "source.src-histogram-before.csv"))
        self.assertEqual(names, ["from", "to", "count of sample"])
        edges = np.append(rows[:, 0], rows[-1, 1])
        self.assertEqual(rows[:, 2].tolist(), np.histogram(part, edges - 0.5)[0].tolist())

    def test_results_as_csv(self):
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)
        b.until("document.querySelector('#results canvas').dataset.points > 3", "results")
        b.find("#play").click()
        b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused")
        names, rows = self.table(self.downloads(b.find("#results button"), "sharpen-Plot.csv"))
        self.assertEqual(names, ["time (s)", "variance mean", "variance minimum", "variance maximum"])
        self.assertTrue((rows[:, 2] <= rows[:, 1]).all() and (rows[:, 1] <= rows[:, 3]).all())
        # the last result may have come with the pause: it is drawn a moment later
        b.until(f"document.querySelector('#results canvas').dataset.points == {len(rows)}", "a plot of what was saved")
        self.assertTrue((np.diff(rows[:, 0]) > 0).all() and (rows[:, 1] > 0).all())
        b.js(CHOOSE, b.find("#results select[aria-label='Kind of display']"), "Table")
        names, rows = self.table(self.downloads(b.find("#results button"), "sharpen-Table.csv"))
        shown = b.js("return [...document.querySelectorAll('#results thead th')].map((th) => th.firstChild.data)")
        self.assertEqual([name.split(" (")[0] for name in names], shown[1:])
        self.end(served)

    def test_linked_views(self):
        """The sample under the mouse is marked and read in views of the same size, and in no other."""
        frames = np.arange(60 * 100, dtype=np.uint16).reshape(1, 60, 100)
        served = self.serve("picturesrc location=data/ramp.npy loop=true ! tee name=t ! queue ! lapsharpen name=a amount=0 ! fakesink sync=true "
                            "t. ! queue ! videocrop left=4 ! lapsharpen name=b amount=0 ! fakesink sync=true",
                            prepare=lambda: np.save(os.path.join(self.data, "ramp.npy"), frames))
        b = self.browser
        b.open(served.address)
        for pad in "picturesrc0.src", "a.src", "b.src":
            if pad != "picturesrc0.src":
                b.find("#add-view").click()
            b.js(CHOOSE, b.driver.find_elements("css selector", ".view .pad")[-1], pad)
        readouts = "[...document.querySelectorAll('.view .readout')].map((r) => r.dataset.sample)"
        b.until("[...document.querySelectorAll('.view')].every((v) => v.dataset.serial > 2)", "pictures of three views")
        ActionChains(b.driver).move_to_element(b.find(".view canvas")).perform()
        first, second, third = b.until(f"{readouts}[0] && {readouts}[0] == {readouts}[1] && {readouts}", "two samples")
        self.assertEqual((first, third), (second, ""))
        self.assertEqual(b.js("return window.panel.views().map((v) => [v.hover !== null, v.hasCrosshair])"), [[True, False], [True, True], [False, False]])
        self.end(served)

    def test_window_of_all_samples(self):
        """A pixel that the picture leaves out, and what the bar of colours says."""
        frame = np.full((1200, 1600), 100, np.uint16)
        frame[::2, 1::2] = 200
        frame[601, 801] = 4000
        served = self.serve("sharpen", "data/hot.npy", "amount=0", prepare=lambda: np.save(os.path.join(self.data, "hot.npy"), frame))
        b = self.browser
        b.open(served.address)
        ends = "(({level, window: w}) => [level - w / 2, level + w / 2])(window.panel.views()[0].header)"
        for choice, wanted in ("2", [100, 200]), ("0", [100, 4000]), ("0.5", [100, 200]):
            b.js(CHOOSE, b.find(".view .range"), choice)
            b.until(f"JSON.stringify({ends}) == '{json.dumps(wanted, separators=(',', ':'))}'", choice)
        self.end(served)

    def test_true_samples_of_video(self):
        """Y, U and V as they are stored, with their names; and numbers whose bytes are the other way round."""
        red = "videotestsrc pattern=red ! video/x-raw,format=I420,width=32,height=24,colorimetry=bt601"
        words = "filesrc location=data/words.raw blocksize=1536 ! rawvideoparse format=gray16-be width=32 height=24"
        for source, wanted in (red, "Y 81, U 90, V 240"), (words, "772"):
            served = self.serve(f"{source} ! identity name=i ! fakesink sync=true",
                                prepare=lambda: np.full((30, 24, 32), 772, ">u2").tofile(os.path.join(self.data, "words.raw")))
            b = self.browser
            b.open(served.address)
            ActionChains(b.driver).move_to_element(b.find(".view canvas")).perform()
            b.until("document.querySelector('.readout').dataset.sample", "a sample")
            self.assertEqual(b.js("return document.querySelector('.readout').textContent").split("  ")[1], wanted)
            self.end(served)

    def test_own_raw_spectra(self):
        """Without wavelengths the depth is in pixels, and the page says what is missing; with them it is in micrometres."""
        spectra = np.random.RandomState(1).randint(100, 900, (4, 64, 512)).astype("<u2")
        words = "oct", "data/scan.raw", "--samples", "512", "--lines", "64"
        b = self.browser
        for more, unit in ((), "pixel"), (("--lambda", "810", "870"), "um"):
            served = self.serve(*words, *more, prepare=lambda: spectra.tofile(os.path.join(self.data, "scan.raw")))
            b.open(served.address)
            shown = b.js("return document.querySelector('.view-note').checkVisibility()")
            self.assertEqual(shown, unit == "pixel")
            self.assertEqual(b.js("return document.querySelector('.view .aspect').value"), "fill")
            b.js(CHOOSE, b.find(".view .pad"), "source.src")
            b.until("document.querySelector('.view .zoom').textContent.includes('512 × 64')", "the spectra")
            self.end(served)

    def test_deleting_a_preset_asks(self):
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)
        self.save_preset("mine")
        for button, left in ("button[type=button]", ["mine"]), ("button[type=submit]", []):
            b.find("#preset-delete").click()
            b.find(f"dialog {button}").click()
            b.until("!document.querySelector('dialog')", "the end of the question")
            time.sleep(0.3)  # none is deleted meanwhile that shall stay
            b.until(f"document.querySelectorAll('#presets option[value=mine]').length == {len(left)}", "the presets of the menu")
            self.assertEqual(b.ask("state")["presets"], left)
        # and a recording moves nothing
        top = b.js("return document.querySelector('#views').getBoundingClientRect().top")
        self.save_as("#record", "run.npy")
        b.until("parseInt(document.querySelector('#recording').textContent) > 5", "frames of the recording")
        self.assertEqual(b.js("return document.querySelector('#views').getBoundingClientRect().top"), top)
        b.find("#record").click()
        b.until("document.querySelector('#recording').textContent == ''", "the end of the recording")
        self.end(served)

    def test_keys_alone(self):
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)

        def press(*keys):
            ActionChains(b.driver).send_keys(*keys).perform()

        press(Keys.TAB)
        self.assertEqual(b.js("return document.activeElement.className"), "skip")
        order = []
        for _ in range(12):
            press(Keys.TAB)
            order.append(b.js("return document.activeElement.id"))
        self.assertEqual(order[:2], ["play", "stop"])
        b.js("document.activeElement.blur()")
        press("?")
        b.until("document.querySelector('#keys')", "the list of shortcuts")
        press(Keys.ESCAPE)
        b.until("!document.querySelector('#keys')", "the end of the list")
        press("g")
        b.until("document.activeElement.tagName == 'CANVAS'", "the picture")
        before = b.find(".zoom").text
        press("+")
        b.until(f"document.querySelector('.zoom').textContent != '{before}'", "a zoom")
        press(" ")
        b.until("document.querySelector('#pipeline-state').textContent == 'paused'", "paused by a key")
        press("/", "amount")
        b.until("document.activeElement.id == 'search'", "the search")
        hidden = b.js("return [...document.querySelectorAll('.control:not([hidden])')].map((c) => c.dataset.property)")
        self.assertIn("amount", hidden)
        press(Keys.TAB)
        self.tab_through()
        self.arrow_keys()
        unlabelled = b.js("return [...document.querySelectorAll('button, input, select, canvas')].filter((n) => !n.getAttribute('aria-label') && !n.labels?.length && !n.textContent.trim()).map((n) => n.outerHTML)")
        self.assertEqual(unlabelled, [])
        self.end(served)

    def tab_through(self):
        """Tab reaches all that can be used, and shows where it is."""
        b = self.browser
        b.js("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input')); document.activeElement.blur(); scrollTo(0, 0)")
        wanted = set(b.js("return " + REACHABLE))
        self.assertGreater(len(wanted), 50)
        reached, hidden = set(), []
        for _ in range(len(wanted) + 20):
            ActionChains(b.driver).send_keys(Keys.TAB).perform()
            number, mark = b.js(FOCUSED)
            if number in reached:
                continue
            reached.add(number)
            if mark:
                hidden.append(mark)
        self.assertEqual(hidden, [])
        self.assertEqual(b.js("return arguments[0].map((n) => document.querySelector(`[data-reach='${n}']`)?.outerHTML.slice(0, 200))", list(wanted - reached)), [])

    def arrow_keys(self):
        b = self.browser
        divider = b.find(".divider")
        before = b.js("return arguments[0].value", divider)
        divider.send_keys(Keys.ARROW_RIGHT * 5)
        self.assertEqual(int(b.js("return arguments[0].value", divider)), int(before) + 5)
        for label in "Window", "Level":
            slider = b.find(f".view input[aria-label={label}]")
            before = slider.get_attribute("aria-valuetext")
            slider.send_keys(Keys.ARROW_LEFT * 5)
            b.until(f"document.querySelector('.view input[aria-label={label}]').getAttribute('aria-valuetext') != '{before}'", label)
        self.assertEqual(b.find(".view .auto").get_attribute("aria-pressed"), "false")
        canvas = b.find(".view canvas")
        for key, label in ("w", "Window"), ("L", "Level"):
            before = b.find(f".view input[aria-label={label}]").get_attribute("aria-valuetext")
            canvas.send_keys(key)
            b.until(f"document.querySelector('.view input[aria-label={label}]').getAttribute('aria-valuetext') != '{before}'", key)
        canvas.send_keys("a")
        self.assertEqual(b.find(".view .auto").get_attribute("aria-pressed"), "true")
        b.find("#tab-results").send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(b.js("return document.activeElement.id"), "tab-measure")
        self.assertTrue(b.find("#measure").is_displayed())
        b.find("#tab-measure").send_keys(Keys.ARROW_LEFT)

    def test_contrast(self):
        """WCAG AA: text has 4.5 times the luminance of what is behind it, or the other way round; in both themes."""
        served = self.serve("ao")
        b = self.browser
        b.open(served.address)
        self.rejected("ao", "power", "-7")
        for theme in "dark", "light":
            b.js("if (document.documentElement.dataset.theme != arguments[0]) document.querySelector('#theme').click()", theme)
            for tab in "results", "measure", "health", "messages":
                b.find(f"#tab-{tab}").click()
                self.assertEqual(b.js(CONTRAST), [], (theme, tab))
            b.find("#help").click()
            self.assertEqual(b.js(CONTRAST), [], (theme, "dialog"))
            b.find("dialog").send_keys(Keys.ESCAPE)
            # what is drawn on a card
            self.assertEqual(b.js(CONTRAST, ["--text", "--muted", "--bad", "--warn", "--good", *(f"--line-{i}" for i in range(1, 6))]), [], theme)
        self.end(served)

    def test_lost_and_found(self):
        served = self.serve("sharpen")
        b = self.browser
        b.open(served.address)
        port = served.address.split(":")[2].strip("/")
        served.end()
        b.until("!document.querySelector('#lost').hidden", "the lost connection")
        again = self.serve("sharpen", "--port", port)
        b.until("document.querySelector('#lost').hidden", "the new connection")
        b.console()  # a browser logs each refused connection
        self.picture_moves()
        self.end(again)


def save(browser, path):
    """256 colours are enough for a page, and a small file."""
    browser.save(path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def tutorial():
    """Returns: the arguments of the first panel of the tutorial"""
    with open(os.path.join(SOURCE, "docs", "tutorials", "live-panel.md"), encoding="utf-8") as file:
        return shlex.split(re.search(r"^pipelines/gst-imaging panel (.*) > panel.txt &$", file.read(), re.M)[1])


def show(browser, served, theme, height=800):
    browser.screen(1280, height)
    browser.open(served.address)
    browser.js("if (document.documentElement.dataset.theme != arguments[0]) document.querySelector('#theme').click()", theme)
    ActionChains(browser.driver).move_to_element(browser.find(".view canvas")).perform()


def pictures(docs):
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            scratch = os.path.realpath(scratch)
            for name in READY:
                served = Served(scratch, name)
                show(browser, served, "light" if name in ("ao", "photostereo") else "dark", 1000 if name == "oct" else 800)
                time.sleep(4)
                save(browser, os.path.join(docs, "reference", f"panel-{name}.png"))
                if name == "sharpen":
                    browser.find("#tab-measure").click()
                    browser.js("const v = window.panel.views()[0]; v.line = [30, 150, 290, 60]; v.region = [40, 130, 60, 60]; v.host.drawn(v, 'line'); v.host.drawn(v, 'region')")
                    time.sleep(1)
                    save(browser, os.path.join(docs, "reference", "panel-measure.png"))
                    browser.find("#tab-results").click()
                    browser.screen(390, 844, True)
                    time.sleep(1)
                    save(browser, os.path.join(docs, "reference", "panel-small.png"))
                browser.driver.get("about:blank")
                served.end()
            served = Served(scratch, "ao", "--simulator")
            show(browser, served, "dark")
            for gain in 0.3, 1.2, 0.4:
                browser.ask("set", element="loop", values={"gain": gain})
                time.sleep(4)
            save(browser, os.path.join(docs, "tutorials", "close-a-loop.png"))
            browser.driver.get("about:blank")
            served.end()
            os.mkdir(os.path.join(scratch, "recordings"))
            served = Served(scratch, *tutorial())
            show(browser, served, "dark")
            browser.js("arguments[0].scrollIntoView()", browser.find(".group[data-element=camera] summary"))
            for _ in range(5):  # a busy machine drops frames while the page is built
                browser.ask("pipeline", state="stopped")
                browser.ask("pipeline", state="playing")
                browser.ask("set", element="camera", values={"exposure": 20000})
                time.sleep(4)
                if not browser.js("return document.querySelector('#short').matches('.bad')"):
                    break
            save(browser, os.path.join(docs, "tutorials", "live-panel.png"))
            browser.driver.get("about:blank")
            served.end()
    finally:
        browser.close()


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}; tools/setup tests installs it")
        sys.exit(77)
    if sys.argv[1:2] == ["--pictures"]:
        from PIL import Image  # noqa: F401, of save ()

        pictures(sys.argv[2] if len(sys.argv) > 2 else os.path.join(SOURCE, "docs"))
    else:
        unittest.main()
