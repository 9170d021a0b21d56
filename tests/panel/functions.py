# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions of the panel's page that compute or draw, in a headless Chromium: against the C library and numbers known beforehand."""
import base64
import json
import os
import sys
import tempfile
import unittest

from browser import SOURCE, Browser, Served, missing

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging.panel import kinds

# Runs the body with the exports of a module as m.
IN_MODULE = "const done = arguments[arguments.length - 1]; import('/static/' + arguments[0]).then((m) => { %s }).then(done, (e) => done('failed: ' + e));"
# A red, green and blue of a canvas at CSS pixels
PIXEL = "const pixel = (c, x, y) => [...c.getContext('2d').getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data]; "


class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        served = Served(folder.name, "sharpen", "--paused")
        cls.addClassCleanup(served.end)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.driver.get(served.address + "static/icon.svg")
        cls.browser.driver.get(served.address + "api/health")  # an empty page of the same origin
        cls.run_in(cls, "colours.js", "return fetch('/api/state').then((r) => r.json()).then((state) => m.learn(state.view.colours.values))")

    def run_in(self, module, body, *arguments):
        found = self.browser.driver.execute_async_script(IN_MODULE % body, module, *arguments)
        if isinstance(found, str) and found.startswith("failed: "):
            raise AssertionError(found)
        return found

    def test_colours_are_those_of_the_library(self):
        from gi.repository import GstImaging

        told = next(told for told in json.loads(GstImaging.ViewSettings.describe()) if told["name"] == "colours")["values"]
        for choice in told:
            table = self.run_in("colours.js", f"return m.table({choice['nick']!r})")
            self.assertEqual(bytes(int(n) for colour in table for n in colour[4:-1].split(",")), base64.b64decode(choice["table"]), choice["nick"])
        self.assertEqual(len(told), 6)

    def test_pixels_have_the_colours_of_the_library(self):
        """In grey or in R, G, B, without what a JPEG makes of them."""
        body = PIXEL + """const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [40 * devicePixelRatio, 10 * devicePixelRatio];
          const c = canvas.getContext("2d");
          c.scale(devicePixelRatio, devicePixelRatio);
          const view = {scale: 20, scaleY: 10, point: ([x, y]) => [20 * x, 10 * y], hasNumbers: false};
          return [[7, 250], [1, 2, 3, 4, 5, 6]].map((bytes) => {
            m.draw(c, view, {bitmap: null, header: {crop: [0, 0, 2, 1], channels: 1, pixels: btoa(String.fromCharCode(...bytes))}});
            return [10, 30].map((x) => pixel(canvas, x, 5));
          })"""
        self.assertEqual(self.run_in("pixels.js", body), [[[7, 7, 7, 255], [250, 250, 250, 255]], [[1, 2, 3, 255], [4, 5, 6, 255]]])

    def test_numbers(self):
        values = {0: "0", 12: "12", 1.234567: "1.2346", -0.5: "-0.5", 1e-5: "1.00e-5", 123456789.5: "1.23e+8", 1e12: "1.00e+12"}
        for value, text in values.items():
            self.assertEqual(self.run_in("dom.js", f"return m.number({value})"), text)
        self.assertEqual(self.run_in("dom.js", "return [m.number(null), m.number(1.23456, 3), m.seconds(62.37), m.bytes(1536)]"),
                         ["–", "1.23", "1:02.3", "1.5 KiB"])
        self.assertEqual(self.run_in("dom.js", "return [NaN, Infinity, -Infinity].map((v) => m.number(v))"), ["NaN", "inf", "-inf"])

    def test_numbers_of_json(self):
        """What JSON has no numbers for; null stays, and so do names."""
        body = "const told = m.numbers([[1, 'nan'], [null, '-inf'], ['inf', 2]]); return told.map((row) => row.map((v) => (v === null ? 'null' : String(v))))"
        self.assertEqual(self.run_in("dom.js", body), [["1", "NaN"], ["null", "-Infinity"], ["Infinity", "2"]])

    def test_numbers_beside_an_axis_are_short(self):
        values = [0, 12, 1.23456, 99999, 1e5, 1e20, 9.996e6, 9.9996e6, 0.04495, 0.000125, -1e-7, 1.345e8]
        found = self.run_in("plot.js", f"return {values}.map((v) => m.short(v))")
        self.assertEqual(found, ["0", "12", "1.235", "99999", "1e5", "1e20", "9.996e6", "1e7", "0.04495", "1.25e-4", "-1e-7", "1.345e8"])

    def test_digits_tell_samples_of_the_window_apart(self):
        header = "{type: 'f32', window: 12, level: 50000}"
        self.assertEqual(self.run_in("samples.js", f"return [49998.36, 50000.56, 50002.78].map((v) => m.scaled({header}, v, 4))"),
                         ["49998.4", "50000.6", "50002.8"])
        self.assertEqual(self.run_in("samples.js", "return m.scaled({type: 'f32', window: 46}, 53.4821, 4)"), "53.48")
        self.assertEqual(self.run_in("samples.js", "return m.scaled({type: 'f32', window: 0}, 53.4821, 4)"), "53.48")

    def test_ticks(self):
        self.assertEqual(self.run_in("dom.js", "return m.ticks(0, 10, 5)"), [0, 2, 4, 6, 8, 10])
        self.assertEqual(self.run_in("dom.js", "return m.ticks(-0.3, 0.32, 6)"), [-0.2, 0, 0.2])
        self.assertEqual(self.run_in("dom.js", "return m.ticks(101, 349, 5)"), [150, 200, 250, 300])
        self.assertEqual(self.run_in("dom.js", "return m.ticks(-1.6, 1.6, 3)"), [-1, 0, 1])  # steps of 2 would be one
        self.assertEqual(self.run_in("dom.js", "return m.ticks(3, 3, 5)"), [])

    def test_quantity_of_a_sample(self):
        self.assertEqual(self.run_in("dom.js", "return [0, 100, 255].map((s) => m.real({scale: 0.2, offset: -10}, s))"), [-10, 10, 41])
        self.assertEqual(self.run_in("dom.js", "return [m.real(null, 7), m.real({unit: 'px'}, 7)]"), [7, 7])

    def test_ends_of_the_range_are_marked(self):
        body = """const of = (type, scale, unit = "dB") => ({type, quantity: {scale, offset: -10, unit}});
          const text = m.quantity;
          const plain = {type: "u8", quantity: null};
          return [text(of("u8", 0.2), 0), text(of("u8", 0.2), 1), text(of("u8", 0.2), 255), text(of("u8", -0.2), 0), text(of("u8", -0.2), 255),
            text(of("u16", 0.2), 255), text(of("u16", 0.2), 65535), text(of("f32", 0.2), 0), text(plain, 255)]"""
        self.assertEqual(self.run_in("samples.js", body), ["≤ -10 dB", "-9.8 dB", "≥ 41 dB", "≥ -10 dB", "≤ -61 dB", "41 dB", "≥ 13097 dB",
                                                        "-10 dB", "255"])

    def test_clipped_samples_of_a_camera_are_marked(self):
        body = """const text = m.quantity;
          const of = (type, bits) => ({type, bits, quantity: null});
          return [text(of("u16", 12), 4094), text(of("u16", 12), 4095), text(of("u16", 12), 5000), text(of("u16", 0), 4095), text(of("u8", 12), 255),
            text(of("u16", 14), 16383), text(of("f32", 12), Infinity)]"""
        self.assertEqual(self.run_in("samples.js", body), ["4094", "≥ 4095", "≥ 5000", "4095", "255", "≥ 16383", "inf"])

    def test_samples_and_points(self):
        view = "const v = {inner: {x: 52, y: 8}, scale: 4, scaleY: 2, x: 10, y: -3}; const p = m.Plane.prototype; "
        self.assertEqual(self.run_in("plane.js", view + "return [p.sample.call(v, [52, 8]), p.sample.call(v, [60, 20]), p.point.call(v, [12, 3])]"),
                         [[10, -3], [12, 3], [60, 20]])

    def test_value_of_a_part(self):
        body = """const header = {values: {crop: [5, 7, 2, 2], samples: [[1, 2], [3, 4]]}};
          return [[5, 7], [6, 7], [5, 8], [6, 8], [7, 7], [4, 7], [5, 9]].map(([x, y]) => m.sampleAt(header, x, y) ?? null)"""
        self.assertEqual(self.run_in("samples.js", body), [1, 2, 3, 4, None, None, None])

    def test_pixels_of_two_kinds_are_oblong(self):
        body = """const get = Object.getOwnPropertyDescriptor(m.Plane.prototype, "oblong").get;
          const axis = (name, unit, step = 1) => ({name, unit, step});
          return [[axis("lateral", "pixel"), axis("depth", "pixel")], [axis("lateral", "um"), axis("depth", "um")],
            [axis("lateral", "um"), axis("depth", "um", 3)], [null, null]].map((axes) => get.call({header: {axes}, section: {axes: "xy"}}))"""
        self.assertEqual(self.run_in("plane.js", body), [True, False, True, False])

    def test_samples_of_several_channels(self):
        """Components have their names; a quantity has its unit in each channel."""
        body = """const text = m.quantity;
          return [text({type: "u8", components: ["Y", "U", "V"], quantity: null}, [16, 128, 240]),
            text({type: "f32", components: null, quantity: {scale: 0.5, offset: 1, unit: "rad"}}, [1, NaN, 3]),
            text({type: "u16", components: ["R", "G", "B", "A"], quantity: null}, [0, 65535, 7, 1])]"""
        self.assertEqual(self.run_in("samples.js", body), ["Y 16, U 128, V 240", "1.5, NaN, 2.5 rad", "R 0, G 65535, B 7, A 1"])

    def test_an_ascan_is_along_the_depth_in_every_section(self):
        """Of a section whose rows are slices, it is a line of the slice there."""
        body = """const view = (section) => ({source: [400, 6], description: {width: 400, height: 1024}, section: {axes: section.endsWith("row") ? "xz" : "xy"},
            cut: {section: section === "live" ? "frame" : section, place: 3, volume: section === "live" ? 0 : 6}});
          return ["live", "frame", "row", "column", "max-row"].map((section) => {
            const { x, height, cut } = m.lineAt(view(section), [7, 5], 1000);
            return [x, height, cut.section, cut.place, cut.volume];
          })"""
        self.assertEqual(self.run_in("results.js", body), [[7, 6, "frame", 3, 0], [7, 6, "frame", 3, 6], [7, 1000, "frame", 5, 6],
                                                           [7, 6, "column", 3, 6], [7, 1000, "frame", 5, 6]])

    def test_the_first_ascan_is_of_the_first_view(self):
        """Whichever view has its picture first: an A-scan of en face or of rows of slices is none."""
        body = """const asked = [];
          const view = (pad, section, source) => ({pad, source, header: null, overlays: [], description: {width: 400, height: 1024}, section: {axes: section === "row" ? "xz" : "xy"},
            cut: {section: "frame", place: 0, volume: 0}, draw() {}, layers: []});
          const shown = [view("oct.enface", "live", [400, 6]), view("oct.src", "live", [400, 1024]), view("oct.src", "row", [400, 6])];
          const element = {name: "oct", element: "octbscan", ours: true, results: "oct", properties: [],
            display: {plots: ["A-scan"], first: [], arrows: null, invalid: 0, progress: null}};
          const host = {link: {ask: async (command, values) => asked.push([command, values.crop])}, numbers: [7, 8], shown: () => shown, settings: () => ({values: {maximum: 16384}}),
            elementOf: () => element};
          const results = new m.Results(host, document.createElement("div"));
          const crops = () => asked.filter(([command]) => command === "view").map(([, crop]) => crop);
          shown[0].header = shown[2].header = {};
          results.show([element], null);
          const before = crops();
          shown[1].header = {};
          results.draw();
          return [before, crops()]"""
        self.assertEqual(self.run_in("results.js", body), [[], [[200, 0, 1, 1024]]])

    def test_equal_messages_are_one_line(self):
        body = """const [root, tab] = [document.createElement("div"), document.createElement("button")];
          const one = (number, more) => ({number, severity: "warning", time: "2024-05-02T11:08:03.125Z", first: "2024-05-02T11:08:01Z", element: "x",
            text: "dark", count: 1, replaces: null, ...more});
          const messages = new m.Messages(root, tab);
          messages.show([one(1), one(2, {text: "b"})]);
          messages.add(one(3, {count: 2, replaces: 1}));
          return [[...root.querySelectorAll("li p")].map((p) => p.textContent.replace(/since .*/, "since")), tab.textContent]"""
        self.assertEqual(self.run_in("health.js", body), [["dark (2 times since", "b"], "Messages (2)"])

    def test_csv(self):
        self.assertEqual(self.run_in("csv.js", "return m.text(['a', 'b (um)', 'c, \"d\"'], [[1, null, 0.1], [1e-300, 'x', 3]])"),
                         'a,b (um),"c, ""d"""\n1,NaN,0.1\n1e-300,x,3\n')

    def test_table_of_a_profile(self):
        """Places on the axes, and the quantity of each sample."""
        body = """const axis = (name, unit, step, origin) => ({name, unit, step, origin});
          const header = {channels: 1, quantity: {name: "level", unit: "dB", scale: 0.5, offset: -10}, components: null,
            axes: [axis("lateral", "um", 5, 1), axis("depth", "um", 2, 0)], profile: {line: [3, 4, 1, 0], samples: [10, 20, null, 40, 50]}};
          const plain = {channels: 3, quantity: null, axes: null, components: ["Y", "U", "V"], profile: {line: [7, 2, 7, 3], samples: [[1, 2, 3], [4, 5, 6]]}};
          return [header, plain].map((h) => m.profileTable(h)).flatMap(({names, rows}) => [names, rows])"""
        names, rows, plain_names, plain_rows = self.run_in("measure.js", body)
        self.assertEqual(names, ["x", "y", "lateral (um)", "depth (um)", "level (dB)"])
        self.assertEqual([row[1] for row in rows], [4, 3, 2, 1, 0])
        self.assertEqual([rows[0], rows[2], rows[4]], [[3, 4, 16, 8, -5], [2, 2, 11, 4, None], [1, 0, 6, 0, 15]])
        self.assertEqual((plain_names, plain_rows), (["x", "y", "Y", "U", "V"], [[7, 2, 1, 2, 3], [7, 3, 4, 5, 6]]))

    def test_table_and_text_of_a_histogram(self):
        body = """const channel = (mean, minimum, maximum, counts) => ({n: 4, mean, deviation: 2, minimum, maximum, counts});
          const header = {channels: 1, quantity: {name: "level", unit: "dB", scale: -0.5, offset: 10}, components: null,
            statistics: {low: 4, step: 2, channels: [channel(6, 4, 9, [3, 0, 1])]}};
          const none = {channels: 1, quantity: null, statistics: {low: 0, step: 1, channels: [{n: 0, mean: null, counts: [0]}]}};
          const {names, rows} = m.histogramTable(header);
          return [names, rows, m.statisticsText(header), m.statisticsText(none, "before")]"""
        names, rows, text, none = self.run_in("measure.js", body)
        self.assertEqual(names, ["from (dB)", "to (dB)", "count of level (dB)"])
        self.assertEqual(rows, [[8, 7, 3], [7, 6, 0], [6, 5, 1]])
        self.assertEqual((text, none), ("mean 7, SD 1, min 5.5, max 8 dB, n 4", "before: no finite sample"))

    def test_samples_that_no_bin_has_are_told(self):
        body = """const of = (more) => m.statisticsText({channels: 1, quantity: null, statistics: {low: 0, step: 1,
            channels: [{n: 4, mean: 6, deviation: 2, minimum: 4, maximum: 9, counts: [4], nan: 0, infinite: 0, below: 0, above: 0, ...more}]}});
          return [of({nan: 2, infinite: 1}), of({below: 3, above: 1}), of({n: 0, nan: 5})]"""
        self.assertEqual(self.run_in("measure.js", body), ["mean 6, SD 2, min 4, max 9, n 4, 2 NaN, 1 inf",
                                                           "mean 6, SD 2, min 4, max 9, n 4, 3 below the bins, 1 above the bins", "no finite sample: 5 NaN"])

    def test_tables_of_results(self):
        body = """const one = {newest: {fields: ["variance", "mean"], unit: ["counts^2", ""], "by-field": true, values: [[1, 2], [3, null]]},
            history: [{time: 0, summary: {rms: 1, x: 5}}, {time: 0.5, summary: {x: 6}}], offsets: () => ({field: [[1, 2, 3, 4, 5]]}),
            cells: () => [{row: 0, column: 1, x: 9, y: 8, dx: 0.5, dy: 0.25, valid: true}, {row: 1, column: 1, x: 9, y: 18, dx: 7, dy: 7, valid: false}]};
          const line = {quantity: {name: "level", unit: "dB", scale: 2, offset: 1}, axes: [null, {name: "depth", unit: "um", step: 3, origin: 1}],
            values: {samples: [[1], [null]]}};
          const all = ["Plot", "Table", "A-scan", "Field of offsets", "Map of dx"].map((plot) => m.PLOTS[plot].table(one, {chosen: ["rms"], line}));
          return [...all.map((t) => [t.names, t.rows]), m.PLOTS["A-scan"].table(one, {chosen: [], line: undefined})]"""
        self.assertEqual(self.run_in("plots.js", body), [
            [["time (s)", "rms"], [[0, 1], [0.5, None]]],
            [["variance (counts^2)", "mean"], [[1, 3], [2, None]]],
            [["depth (um)", "level (dB)"], [[1, 3], [4, None]]],
            [["x", "dx", "y", "dy", "snr"], [[1, 2, 3, 4, 5]]],
            [["row", "column", "x", "y", "dx", "dy"], [[0, 1, 9, 8, 0.5, 0.25], [1, 1, 9, 18, None, None]]],
            None])

    def test_what_the_kinds_name_can_be_drawn(self):
        """Every plot and kind of arrows of panel/kinds.py has its functions, and each of these is named there."""
        named = list(kinds.KINDS.values()) + [kinds.OTHER]
        plots = {name for kind in named for name in kind.plots}
        found = self.run_in("plots.js", "return Object.entries(m.PLOTS).map(([name, p]) => [name, typeof p.draw, typeof p.table])")
        self.assertEqual({name: types for name, *types in found}, {name: ["function"] * 2 for name in plots})
        arrows = {kind.arrows for kind in named if kind.arrows}
        self.assertEqual(set(self.run_in("arrows.js", "return Object.keys(m.ARROWS)")), arrows)

    def test_progress_of_an_element(self):
        body = """return arguments_kinds.map(([progress, fields]) => {
            const one = new m.Result({display: {progress}}, false);
            one.tell("another", fields);
            const before = one.progress;
            one.tell(progress[0], fields);
            return [before, one.progress.at, one.progress.text];
          })"""
        told = [[kinds.of("insarxcorr").progress, {"rows": 3, "of": 12}],
                [kinds.of("photostereo").progress, {"lights": 16, "mean-residual": 0.0123456}]]
        self.assertEqual(self.run_in("result.js", body.replace("arguments_kinds", json.dumps(told))),
                         [[None, 0.25, "3 of 12 rows"], [None, None, "16 lights, residual 0.0123"]])

    def test_window_of_a_picture(self):
        self.assertEqual(self.run_in("scales.js", "return [null, {scale: 0.5, offset: -10}].map((quantity) => m.windowOf({window: 100, level: 50, quantity}))"),
                         [[0, 100], [-10, 40]])

    def test_a_line_is_where_its_points_are(self):
        body = PIXEL + """const canvas = document.createElement("canvas");
          canvas.style.cssText = "width: 400px; height: 200px; display: block";
          document.body.append(canvas);
          document.documentElement.style.setProperty("--line-1", "#f00");
          m.draw(canvas, [{name: "", points: [[0, 0], [1, 1], [2, 4]]}]);
          // x from 56 to 390, y from 170 up to 18 with a margin of 6 percent
          const at = (x, y) => pixel(canvas, 56 + (x / 2) * 334, 170 - ((y + 0.24) / 4.48) * 152)[0];
          const found = [at(0.5, 0.5), at(1.5, 2.5), at(1.5, 1.5), at(0.5, 3.5)];
          canvas.remove();
          return found"""
        on_1, on_2, off_1, off_2 = self.run_in("plot.js", body)
        self.assertGreater(min(on_1, on_2), 100)
        self.assertLess(max(off_1, off_2), 100)

    def test_a_spike_between_two_points_is_drawn(self):
        """A bar from the minimum to the maximum, behind the line of the means, and in the extent of the axis."""
        body = PIXEL + """const canvas = document.createElement("canvas");
          canvas.style.cssText = "width: 400px; height: 200px; display: block";
          document.body.append(canvas);
          document.documentElement.style.setProperty("--line-1", "#f00");
          m.draw(canvas, [{name: "", points: [[0, 0], [1, 1, 0, 4], [2, 1]]}]);
          const at = (x, y) => pixel(canvas, 56 + (x / 2) * 334, 170 - ((y + 0.24) / 4.48) * 152)[0];
          const found = [at(1, 3), at(1, 3.8), at(0.5, 0.5), at(0.7, 3), at(1.3, 3)];
          canvas.remove();
          return found"""
        bar, end, line, *beside = self.run_in("plot.js", body)
        self.assertGreater(line, 100)
        self.assertLess(max(beside), 40)
        self.assertGreater(min(bar, end), max(beside) + 30)

    def test_a_logarithmic_axis(self):
        """Powers of ten are as far from each other; what is not positive is a gap."""
        body = PIXEL + """const canvas = document.createElement("canvas");
          canvas.style.cssText = "width: 400px; height: 200px; display: block";
          document.body.append(canvas);
          document.documentElement.style.setProperty("--line-1", "#f00");
          m.draw(canvas, [{name: "", points: [[0, 1], [1, 10], [2, 100], [3, 0], [4, 100]]}], {isLog: true});
          const at = (x, y) => pixel(canvas, 56 + (x / 4) * 334, 170 - ((y + 0.12) / 2.24) * 152)[0];
          const found = [at(0.5, 0.5), at(1.5, 1.5), at(2.5, 1), at(3, 2), at(3.5, 1)];
          canvas.remove();
          return found"""
        first, second, *gap = self.run_in("plot.js", body)
        self.assertGreater(min(first, second), 100)
        self.assertLess(max(gap), 100)

    # A result of four cells, the first with a slope of dx
    SLOPES = """const slopes = (dx, pts, more = {}) => ({pts: pts * 1e9, fields: ["x", "y", "dx", "dy"], "by-field": false, summary: {rms: dx}, truncated: false,
      values: [[0, 0, dx, 0], [0, 0, 0, 0.2]], flags: [0, 0], "row-column": [[0, 0], [0, 1]], cells: [[0, 0, 20, 20, 9, 9], [20, 0, 20, 20, 29, 9]], ...more});
      const one = new m.Result({display: {invalid: 227}}, false); """

    def test_arrows_come_back_after_a_bad_moment(self):
        """The longest arrow of the last seconds, not of all times."""
        body = self.SLOPES + """return [[2, 0], [50, 1], [2, 2], [2, 5], [2, 21]].map(([dx, now]) => { one.add(slopes(dx, now), now); return one.longest; })"""
        first, bad, soon, later, after = self.run_in("result.js", body)
        self.assertEqual((first, bad, after), (2, 50, 2))
        self.assertAlmostEqual(soon, 25, delta=0.01)
        self.assertLess(later, 13)

    def test_times_that_nobody_has_seen_are_a_gap(self):
        body = self.SLOPES + """one.add(slopes(1, 10, {age: 90}), 0); one.add(slopes(2, 100), 1); one.add(slopes(3, 101), 2);
          one.miss(); one.add(slopes(4, 200), 3);
          return [one.points("rms", 0), one.points("rms", 60)]"""
        everything, newest = self.run_in("result.js", body)
        self.assertEqual([y for _x, y in everything], [1, None, 2, 3, None, 4])
        self.assertEqual(newest, [[150.5, None], [200, 4]])

    def test_what_lies_between_two_points_is_kept(self):
        body = self.SLOPES + """const between = {frames: 20, missed: 0, minimum: {rms: 1}, mean: {rms: 2}, maximum: {rms: 9}};
          one.add(slopes(3, 1, {between: {...between, frames: 1}}), 1); one.add(slopes(4, 2, {between}), 2); one.add(slopes(5, 3), 3);
          return [one.points("rms", 0), one.points("x", 0), one.history]"""
        points, others, history = self.run_in("result.js", body)
        self.assertEqual(points, [[1, 3], [2, 2, 1, 9], [3, 5]])
        self.assertEqual([p[1] for p in others], [None] * 3)
        table = self.run_in("plots.js", f'return m.PLOTS.Plot.table({{history: {json.dumps(history)}}}, {{chosen: ["rms"]}})')
        self.assertEqual(table, {"names": ["time (s)", "rms mean", "rms minimum", "rms maximum"], "rows": [[1, 3, 3, 3], [2, 2, 1, 9], [3, 5, 5, 5]]})

    def test_cells_that_are_no_numbers(self):
        body = self.SLOPES + """one.add({...slopes(1, 1), values: [[0, 0, NaN, 0], [0, 0, 1, Infinity]]}, 1); return one.cells().map((c) => c.valid)"""
        self.assertEqual(self.run_in("result.js", body), [False, False])

    def test_arrows_of_offsets(self):
        """They point where the offsets are from their mean, from the patch."""
        self.assertEqual(self.run_in("arrows.js", "return m.offsets({field: [[10, 3, 20, 5], [40, -1, 20, -1]], means: [1, 2]})"),
                         [[10, 20, 2, 3], [40, 20, -2, -3]])
        body = PIXEL + """const canvas = document.createElement("canvas");
          canvas.width = canvas.height = 100 * devicePixelRatio;
          const c = canvas.getContext("2d");
          c.scale(devicePixelRatio, devicePixelRatio);
          m.draw(c, {point: ([x, y]) => [x + 50, y + 50]}, [[0, 0, 2, 3]], 10);
          return [[10, 15], [-10, 15], [10, -15], [-10, -15]].map(([x, y]) => pixel(canvas, 50.5 + x, 50.5 + y)[3])"""
        right_and_down, *elsewhere = self.run_in("arrows.js", body)
        self.assertGreater(right_and_down, 100)
        self.assertEqual(elsewhere, [0, 0, 0])

    def test_what_follows_from_an_error_is_below_it(self):
        body = """const root = document.createElement("div"), tab = document.createElement("b");
          const messages = new m.Messages(root, tab);
          const told = (number, severity, follows, replaces = null) => ({number, severity, follows, replaces, text: `${number}`, time: "2024-05-02T11:08:03Z",
            count: 1, element: "a"});
          const all = [told(1, "warning", null), told(2, "error", null), told(3, "warning", 2), told(4, "error", 2), told(5, "info", null)];
          const shown = () => [...root.querySelectorAll("li")].map((li) => li.dataset.number + (li.classList.contains("follows") ? "f" : ""));
          all.forEach((each) => messages.add(each));
          const first = shown();
          messages.show(all);
          return [first, shown(), tab.textContent]"""
        order = ["5", "2", "3f", "4f", "1"]
        self.assertEqual(self.run_in("health.js", body), [order, order, "Messages (4)"])

    def test_frames_that_are_missing_are_marked(self):
        body = """const root = document.createElement("div"), short = document.createElement("b");
          const health = new m.Health(root, short);
          const told = (missing) => ({time: 1, elements: [], "frames-in": 9, "frames-out": 9, dropped: 0, missing, warnings: 0, errors: 0, clients: 1,
            pictures: 2, hint: null});
          return [0, 3].map((missing) => {
            health.show(told(missing));
            return [short.textContent, short.className, [...root.querySelectorAll(".facts .bad")].map((e) => e.textContent)];
          })"""
        (before, none, nothing), (after, mark, bad) = self.run_in("health.js", body)
        self.assertNotIn("missing", before)
        self.assertEqual((none, nothing), ("", []))
        self.assertIn("3 missing", after)
        self.assertEqual((mark, bad), ("bad", ["Missing3"]))

    def test_maps_of_slopes(self):
        """A positive slope is red, a negative one blue, the longest one yellow; the grid has its pitch."""
        body = PIXEL + """const root = document.createElement("div");
          root.style.cssText = "width: 400px";
          document.body.append(root);
          const host = {shown: () => [], link: {ask: async () => ({})}, elementOf: () => null};
          const results = new m.Results(host, root);
          results.canvas.style.cssText = "width: 400px; height: 120px; display: block";
          results.show([{name: "ao", element: "shcentroid", title: "", ours: true, results: "shwfs", properties: [],
            display: {plots: ["Map of dx", "Map of dy", "Map of |slope|"], first: ["rms"], arrows: "slopes", invalid: 227, progress: null}}], null);
          const message = {element: "ao", pts: 0, fields: ["x", "y", "dx", "dy"], "by-field": false, summary: {rms: 1}, truncated: false,
            values: [[0, 0, 1, -1], [0, 0, -1, 1]], flags: [4, 0], "row-column": [[0, 0], [0, 1]],
            cells: [[0, 0, 20, 20, 9.5, 9.5], [20, 0, 20, 20, 29.5, 9.5]]};
          results.results(message);
          const colours = ["Map of dx", "Map of dy", "Map of |slope|"].map((mode) => {
            results.modeMenu.value = mode;
            results.draw();
            return [120, 200].map((x) => pixel(results.canvas, x, 60));
          });
          const {columns, rows, pitchX} = results.current.grid();
          root.remove();
          return [colours, columns, rows, pitchX]"""
        # two cells of 112 pixels from x 48 on
        ((left, right), (left_y, right_y), lengths), *facts = self.run_in("results.js", body)
        for red, blue in (left, right), (right_y, left_y):
            self.assertGreater(red[0], red[2] + 50)
            self.assertGreater(blue[2], blue[0] + 30)
        for red, green, blue, _alpha in lengths:
            self.assertTrue(red > 200 and green > 200 and blue < 100, (red, green, blue))
        self.assertEqual(facts, [2, 1, 20])


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}; tools/setup tests installs it")
        sys.exit(77)
    unittest.main()
