# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging bench: a row for each element that is installed."""
import json
import os

from support import FolderCase, Gst, command, main

ELEMENTS = ("lapsharpen", "shcentroid", "octbscan", "photostereo", "normalintegrate", "relight", "insarxcorr", "insarform",
            "slcresample")


class Bench(FolderCase):
    def test_every_element_has_a_row(self):
        result = json.loads(command(self.folder, "bench", "--json", "--frames", "24", "--backend", "cpu"))
        there = [name for name in ELEMENTS if Gst.ElementFactory.find(name)]
        self.assertEqual([row["element"] for row in result["results"]], there)
        self.assertEqual(sorted(result["missing"]), sorted(set(ELEMENTS) - set(there)))
        for row in result["results"]:
            self.assertEqual(row["backend"], "cpu")
            self.assertTrue(0 < row["time-p50-us"] <= row["time-p99-us"], row)
            self.assertGreater(row["memcpy-us"], 0)
            self.assertAlmostEqual(row["ratio"], row["time-p50-us"] / row["memcpy-us"])

    def test_it_is_a_table(self):
        printed = command(self.folder, "bench", "lapsharpen", "--frames", "3")
        self.assertRegex(printed, r"(?m)^element +backend +median +99 % +memcpy +ratio +frames of$")
        self.assertRegex(printed, r"(?m)^lapsharpen +cpu .*1920x1080 RGBA$")

    def test_it_is_a_page(self):
        path = os.path.join(self.folder, "bench.html")
        command(self.folder, "bench", "lapsharpen", "--frames", "3", "--report", "bench.html")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        for words in ("<td>lapsharpen</td><td>cpu</td>", "<td>1920x1080 RGBA</td>", "GStreamer: 1.", "GPU: ",
                      "bench lapsharpen --frames 3 --report bench.html</pre>"):
            self.assertIn(words, page)
        command(self.folder, "bench", "lapsharpen", "--frames", "3", "--report", "bench.html")  # a page is replaced
        with open(path, "w", encoding="utf-8") as file:
            file.write("my notes")
        self.assertIn("it is no page", command(self.folder, "bench", "lapsharpen", "--report", "bench.html", status=2))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "my notes")

    def test_what_is_wrong_is_said_in_a_sentence(self):
        self.assertIn('no benchmark of "sharpen"', command(self.folder, "bench", "sharpen", status=2))
        self.assertIn("--frames is 0", command(self.folder, "bench", "--frames", "0", status=2))


if __name__ == "__main__":
    main()
