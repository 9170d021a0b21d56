# SPDX-License-Identifier: LGPL-2.1-or-later
"""shcentroid through gst-launch, on real and on generated frames."""
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np

from support import SOURCE, FolderCase, Gst, data, launch, main, play, read_csv

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import noise

GRID = "x0=23.51 y0=20.65 pitch-x=29.653 pitch-y=29.653 columns=16 rows=16"


@unittest.skipUnless(shutil.which("gst-launch-1.0"), "there is no gst-launch-1.0")
class RealFrames(FolderCase):
    def measure(self, name, properties="", **environment):
        """The pipeline of the issue, word for word."""
        csv = self.path("c.csv")
        launch(*(f"filesrc location={data(name + '.gray16le.raw')} !"
                 " rawvideoparse format=gray16-le width=512 height=512 !"
                 f" shcentroid name=sh {GRID} {properties} ! fakesink"
                 " sh.results ! queue ! text/csv !"
                 f" filesink location={csv}").split(), **environment)
        return read_csv(csv), read_csv(data(name + ".grid16.csv"))

    def near(self, found, expected):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    def test_the_lamp_frame_equals_the_table(self):
        for backend in ("cpu", "cuda", "auto"):
            found, gold = self.measure("f5_hecto_ref", f"backend={backend}")
            self.assertEqual(len(found), 256)
            self.near(found["x"], gold["cog_x"])
            self.near(found["y"], gold["cog_y"])
            np.testing.assert_array_equal(found["flux_raw"], gold["flux_raw"])
            np.testing.assert_array_equal(found["flux"], gold["flux_raw"])
            np.testing.assert_array_equal(found["max"], gold["max"])
            np.testing.assert_array_equal(found["cell"], gold["l"])
            np.testing.assert_array_equal(found["row"], gold["row"])
            np.testing.assert_array_equal(found["col"], gold["col"])
            self.assertFalse(found["flags"].any())

    def test_the_lamp_frame_with_a_threshold_equals_the_table(self):
        found, gold = self.measure(
            "f5_hecto_ref", "threshold=1000 threshold-mode=absolute")
        self.near(found["x"], gold["tabs_x"])
        self.near(found["y"], gold["tabs_y"])
        np.testing.assert_array_equal(found["flux"], gold["tabs_flux"])

    def test_the_star_frame_has_148_lit_cells(self):
        found, gold = self.measure(
            "auto_wfs_0037_ave", "threshold=900 threshold-mode=absolute min-flux=5000")
        lit = found["flags"] == 0
        self.assertEqual(lit.sum(), 148)
        np.testing.assert_array_equal(lit, gold["tabs_flux"] >= 5000)
        self.near(found["x"][lit], gold["tabs_x"][lit])
        self.near(found["y"][lit], gold["tabs_y"][lit])
        self.assertFalse(found["dx"][~lit].any() or found["dy"][~lit].any())

    def test_decimal_commas_of_the_locale_change_no_byte(self):
        # gst-launch reads 23.51 and we write 38.51 whatever LC_ALL is
        locales = subprocess.run(["locale", "-a"], stdout=subprocess.PIPE, text=True).stdout
        if "de_DE.utf8" not in locales and "de_DE.UTF-8" not in locales:
            self.skipTest("there is no locale de_DE.UTF-8; tools/setup tests makes it")
        self.measure("f5_hecto_ref", LC_ALL="C.UTF-8")
        with open(self.path("c.csv"), "rb") as file:
            plain = file.read()
        self.measure("f5_hecto_ref", LC_ALL="de_DE.UTF-8")
        with open(self.path("c.csv"), "rb") as file:
            self.assertEqual(file.read(), plain)
        self.assertEqual(plain.count(b","), 257 * 14)

    def test_src_may_be_left_unlinked(self):
        raw, csv = data("f5_hecto_ref.gray16le.raw"), self.path("c.csv")
        launch(*(f"filesrc location={raw} ! rawvideoparse format=gray16-le width=512"
                 f" height=512 ! shcentroid name=sh {GRID} sh.results !"
                 f" filesink location={csv}").split())
        self.assertEqual(len(read_csv(csv)), 256)

    def test_the_meta_is_read_with_plain_pygobject(self):
        raw = data("f5_hecto_ref.gray16le.raw")
        pipeline = Gst.parse_launch(
            f"filesrc location={raw} ! rawvideoparse format=gray16-le width=512"
            f" height=512 ! shcentroid name=sh {GRID} ! videoconvert ! videoscale !"
            " video/x-raw,width=100,height=80 ! appsink name=sink sync=false")
        pipeline.set_state(Gst.State.PLAYING)
        sample = pipeline.get_by_name("sink").emit("try-pull-sample", 20 * Gst.SECOND)
        self.assertIsNotNone(sample)
        # the reader that users copy; it keeps each structure while it reads
        sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
        from gst_imaging import metadata

        result = metadata.results(sample.get_buffer(), "sh")
        self.assertIsNone(metadata.results(sample.get_buffer(), "another"))
        self.assertIsNone(metadata.quantity(sample.get_buffer()))
        pipeline.set_state(Gst.State.NULL)
        gold = read_csv(data("f5_hecto_ref.grid16.csv"))
        x = result["values"][:, result["fields"].index("x")]
        np.testing.assert_array_equal(x, gold["cog_x"].astype(np.float32))
        self.assertEqual((result["ref-width"], result["ref-height"]), (512, 512))


class GeneratedFrames(FolderCase):
    def test_spots_are_found_where_they_were_put(self):
        sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
        import spots

        for backend in ("cpu", "cuda"):
            for dtype, peak in ((np.uint16, 40000), (np.uint8, 250)):
                frames, places = spots.make(frames=5, dtype=dtype, peak=peak)
                np.save(self.path("spots.npy"), frames)
                play(f"picturesrc location={self.path('spots.npy')} ! shcentroid name=sh"
                     f" backend={backend} x0=3.4 y0=2.7 pitch-x=21.3 pitch-y=21.3"
                     " columns=8 rows=6 threshold-mode=absolute threshold=2 ! fakesink"
                     f" sh.results ! queue ! filesink location={self.path('c.csv')}")
                found = read_csv(self.path("c.csv"))
                self.assertEqual(len(found), 5 * 48)
                self.assertFalse(found["flags"].any())
                np.testing.assert_array_equal(found["frame"], np.repeat(range(5), 48))
                error = np.stack([found["x"], found["y"]], 1) - places.reshape(-1, 2)
                self.assertLess(np.abs(error).max(), 0.02)

    def test_a_map_saved_by_numpy_is_the_grid_it_describes(self):
        frame = np.random.RandomState(3).randint(0, 256, (60, 81), np.uint8)
        np.save(self.path("frame.npy"), frame)
        cells = [(3.5 + 9.25 * c, 1.25 + 8.5 * r, 9.25, 8.5) for r in range(6) for c in range(8)]
        for name, array in (("c.npy", np.array(cells)), ("f4.npy", np.array(cells, np.float32)),
                            ("be.npy", np.array(cells, ">f8"))):
            np.save(self.path(name), array)
        texts = []
        for geometry in ("x0=3.5 y0=1.25 pitch-x=9.25 pitch-y=8.5 columns=8 rows=6",
                         *(f"map-location={self.path(n)}" for n in ("c.npy", "f4.npy", "be.npy"))):
            play(f"picturesrc location={self.path('frame.npy')} ! shcentroid name=sh {geometry}"
                 f" ! fakesink sh.results ! queue ! filesink location={self.path('t.csv')}")
            table = read_csv(self.path("t.csv"))
            texts.append([table[n] for n in ("x", "y", "dx", "dy", "flux", "flags")])
        for text in texts[1:]:
            np.testing.assert_array_equal(text, texts[0])


BUILD = os.path.dirname(os.path.dirname(os.environ.get("IMK_MODULE_PATH", "/nowhere/at/all")))


@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "tests/kernels/test-shcentroid-noise")),
                     "the tests of the kernels are not built")
class NoisePage(unittest.TestCase):
    def test_the_page_has_what_is_measured(self):
        def numbers(table):
            rows = [row.strip("| ").split(" | ") for row in table.strip().split("\n")[2:]]
            return [row[0] for row in rows], [
                [float(number) for cell in row[1:] for number in cell.split(", ")] for row in rows]

        with open(os.path.join(SOURCE, "docs", "explanation", "shcentroid-noise.md")) as file:
            page = file.read().split("<!-- table: begin -->\n")[1].split("<!-- table: end -->")[0]
        names, told = numbers(page)
        measured_names, measured = numbers(noise.write(noise.by_estimator(noise.measure(BUILD))))
        self.assertEqual(names, measured_names)
        # another libm may make another photon here and there
        np.testing.assert_allclose(told, measured, rtol=0.05, atol=0.0015,
                                   err_msg="tests/data/noise.py BUILD makes the page anew")


if __name__ == "__main__":
    main()
