# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions of the panel's page against what they are to give: colours, numbers, ticks, samples as quantities."""
import functools
import http.server
import os
import re
import sys
import threading
import unittest

from browser import SOURCE, Browser, missing

STATIC = os.path.join(SOURCE, "pipelines", "gst_imaging", "panel", "static")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


class Modules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=STATIC))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.browser = Browser()
        cls.browser.driver.get(f"http://127.0.0.1:{cls.server.server_address[1]}/icon.svg")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.shutdown()
        cls.server.server_close()

    def run_js(self, module, expression):
        return self.browser.driver.execute_async_script(
            f"const done = arguments[0]; import('/{module}').then((m) => done({expression})).catch((e) => done(String(e)))")

    def test_colours_are_those_of_the_pictures(self):
        with open(os.path.join(SOURCE, "common", "view", "gstimagingviewpicture.c"), encoding="utf-8") as file:
            maps = re.findall(r'\{"([\w-]+)", (\d+),\s*\{([^}]*)\}\}', file.read())
        self.assertGreater(len(maps), 3)
        self.assertEqual(self.run_js("colours.js", "m.NAMES"), [name for name, _n, _knots in maps])
        for name, n, knots in maps:
            knots = [int(k, 16) for k in knots.replace(",", " ").split()]
            self.assertEqual(len(knots), int(n))
            # where a knot lies on an entry of the table
            at = [(i * 255 // (len(knots) - 1), k) for i, k in enumerate(knots) if i * 255 % (len(knots) - 1) == 0]
            self.assertGreater(len(at), 1)
            table = self.run_js("colours.js", f"m.table('{name}')")
            for place, knot in at:
                self.assertEqual(table[place], [knot >> 16, knot >> 8 & 255, knot & 255], f"{name}, entry {place}")
            # and between them, to a count
            for i in range(256):
                k = min(i * (len(knots) - 1) // 255, len(knots) - 2)
                share = i * (len(knots) - 1) / 255 - k
                for c, shift in enumerate((16, 8, 0)):
                    expected = (knots[k] >> shift & 255) * (1 - share) + (knots[k + 1] >> shift & 255) * share
                    self.assertLessEqual(abs(table[i][c] - expected), 0.6, f"{name}, entry {i}")

    def test_lookup(self):
        grey = "m.table('grey')"
        for value, low, high, expected in ((0, 0, 255, 0), (255, 0, 255, 255), (51, 0, 255, 51), (-9, 0, 10, 0), (99, 0, 10, 255), (5, 0, 10, 128), (3, 3, 3, 255)):
            self.assertEqual(self.run_js("colours.js", f"m.lookup({grey}, {value}, {low}, {high})"), [expected] * 3)

    def test_numbers(self):
        for value, expected in (("0", "0"), ("12345678", "12345678"), ("0.1 + 0.2", "0.3"), ("-1234.5678", "-1234.6"), ("1.5e-7", "1.50e-7"), ("null", "–")):
            self.assertEqual(self.run_js("dom.js", f"m.number({value})"), expected)
        self.assertEqual(self.run_js("dom.js", "m.seconds(75.26)"), "1:15.2")

    def test_ticks(self):
        for low, high, count, expected in ((0, 10, 5, [0, 2, 4, 6, 8, 10]), (-1, 1, 4, [-1, -0.5, 0, 0.5, 1]), (0.13, 0.29, 4, [0.15, 0.2, 0.25]), (3, 3, 5, [])):
            self.assertEqual(self.run_js("dom.js", f"m.ticks({low}, {high}, {count})"), expected)

    def view(self, expression, header):
        return self.run_js("view.js", f"(() => {{ const v = Object.create(m.View.prototype); v.layers = [{{header: {header}}}]; return {expression}; }})()")

    def test_a_sample_is_a_quantity(self):
        level = "{type: 'u8', quantity: {name: 'level', unit: 'dB', offset: 10, scale: 0.5}}"
        self.assertEqual(self.view("v.quantity(100)", level), "60 dB (sample 100)")
        self.assertEqual(self.view("v.quantity(255)", level), "≥ 137.5 dB (sample 255)")
        self.assertEqual(self.view("v.quantity(0)", level), "≤ 10 dB (sample 0)")
        self.assertEqual(self.view("v.quantity(0)", level.replace("level", "height")), "10 dB (sample 0)")
        self.assertEqual(self.view("v.quantity(7)", "{type: 'u8', quantity: null}"), "7")
        self.assertEqual(self.view("v.quantity(null)", level), "NaN")

    def test_places_follow_the_axes(self):
        header = "{axes: [null, {name: 'depth', unit: 'um', origin: 5, step: 2}], values: {crop: [10, 20, 2, 2], samples: [[1, 2], [3, 4]]}}"
        self.assertEqual(self.view("[v.place1(0, 3), v.place1(1, 3)]", header), ["x 3", "depth 11 um"])
        self.assertEqual(self.view("[v.value(11, 20), v.value(10, 21), v.value(12, 20) ?? null]", header), [2, 3, None])


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}; tools/setup tests installs it")
        sys.exit(77)
    unittest.main()
