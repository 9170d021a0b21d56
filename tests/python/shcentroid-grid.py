# SPDX-License-Identifier: LGPL-2.1-or-later
"""find-grid on real and on generated frames, and what it leaves behind."""
import os
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, Gst, data, main, play, read_array, read_csv

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import spots
import wavefronts


class Grids(FolderCase):
    def find(self, frames, properties=""):
        """Returns: the message "shcentroid-grid", the map, the table. Warnings are in self.warnings."""
        pipeline = Gst.parse_launch(
            f"picturesrc location={frames} ! shcentroid name=sh"
            f" find-grid-location={self.path('map.npy')} {properties} ! fakesink"
            f" sh.results ! queue ! filesink location={self.path('c.csv')}")
        pipeline.set_state(Gst.State.PLAYING)
        bus, found, self.warnings = pipeline.get_bus(), None, []
        while True:
            message = bus.timed_pop_filtered(
                TIMEOUT * Gst.SECOND,
                Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.ELEMENT |
                Gst.MessageType.WARNING)
            self.assertIsNotNone(message)
            if message.type == Gst.MessageType.WARNING:
                self.warnings.append(message.parse_warning()[0].message)
                continue
            if message.type != Gst.MessageType.ELEMENT:
                break
            if message.get_structure().get_name() == "shcentroid-grid":
                found = message.get_structure().copy()
        self.assertEqual(pipeline.get_by_name("sh").get_property("map-location")
                         if found else None, self.path("map.npy") if found else None)
        pipeline.set_state(Gst.State.NULL)
        if message.type == Gst.MessageType.ERROR:
            raise RuntimeError(message.parse_error()[0].message)
        return found, np.load(self.path("map.npy")), read_csv(self.path("c.csv"))

    def convert(self, name, offset=0):
        """Returns: a .npy file of u16, or of float32 where that cannot hold the values of FITS plus @offset"""
        values = read_array(data(name + ".fits")) + np.float64(offset)
        counts = np.rint(values)
        is_u16 = offset or (np.array_equal(counts, values) and counts.min() >= 0 and counts.max() <= 65535)
        np.save(self.path(name + ".npy"), counts.clip(0, 65535).astype("u2") if is_u16 else values.astype("f4"))
        return self.path(name + ".npy")

    def check_map(self, found, cells, table, frame):
        """Each cell has a spot, each spot a cell: against an independent count
        of the local maxima in boxes of 5 pixels."""
        side = cells[0, 2]
        self.assertEqual(cells.shape, (found.get_value("cells"), 12))
        np.testing.assert_allclose(cells[:, :2] + side / 2 - 0.5, cells[:, 4:6], atol=1e-9)
        self.assertEqual(found.get_value("unplaced"), 0)
        self.assertEqual(len(table), len(cells))
        self.assertFalse((table["flags"].astype(int) & 3).any())
        box = sum(np.roll(np.roll(frame.astype(float), i, 0), j, 1)
                  for i in range(-2, 3) for j in range(-2, 3))
        box -= np.median(box)
        reach = int(0.3 * side)
        heights = []
        for x, y in np.rint(cells[:, 4:6]).astype(int):
            heights.append(box[max(y - reach, 0):y + reach, max(x - reach, 0):x + reach].max())
        rest = box.copy()  # without the spots that were found
        for x, y in np.rint(cells[:, 4:6]).astype(int):
            r = int(0.6 * side)
            rest[max(y - r, 0):y + r + 1, max(x - r, 0):x + r + 1] = 0
        r = int(side)
        rest[:r], rest[-r:], rest[:, :r], rest[:, -r:] = 0, 0, 0, 0
        self.assertLess(rest.max(), 0.25 * np.median(heights), "a lit spot was not found")

    def test_the_lamp_frame(self):
        npy = self.convert("f5_hecto_ref", 500)
        raw = np.fromfile(data("f5_hecto_ref.gray16le.raw"), "<u2").reshape(512, 512)
        np.testing.assert_array_equal(np.load(npy), raw)
        for backend in ("cpu", "cuda"):
            found, cells, table = self.find(npy, f"backend={backend}")
            self.assertEqual(found.get_value("lattice"), "square")
            self.assertAlmostEqual(found.get_value("pitch"), 29.653, delta=0.02)
            self.check_map(found, cells, table, raw)

    def test_the_rotated_frame(self):
        npy = self.convert("mmirs_camera1_ref")
        found, cells, table = self.find(npy)
        self.assertEqual(found.get_value("lattice"), "square")
        self.assertAlmostEqual(found.get_value("pitch"), 21.00, delta=0.01)
        self.assertAlmostEqual(found.get_value("rotation"), 1.293, delta=0.02)
        self.check_map(found, cells, table, np.load(npy))

    def test_the_hexagonal_frame(self):
        npy = self.convert("f9_new_ref")
        found, cells, table = self.find(npy)
        self.assertEqual(found.get_value("lattice"), "hexagonal")
        self.assertAlmostEqual(found.get_value("pitch"), 39.04, delta=0.05)
        self.check_map(found, cells, table, np.load(npy))

    def test_the_star_frame(self):
        npy = self.convert("auto_wfs_0037_ave", 500)
        found, cells, table = self.find(npy)
        gold = read_csv(data("auto_wfs_0037_ave.grid16.csv"))
        lit = gold[gold["tabs_flux"] >= 5000]
        places = np.stack([lit["tabs_x"], lit["tabs_y"]], 1)
        inside = [((p + 0.5 >= cells[:, :2]) & (p + 0.5 < cells[:, :2] + cells[:, 2:4])).all(1).any()
                  for p in places]
        # the telescope moved spots by up to 10 of 30 pixels
        self.assertGreater(np.mean(inside), 0.95)

    def test_a_generated_grid_is_measured_with_its_map(self):
        frames, places = spots.make(frames=3, columns=9, rows=7, pitch=21.3, shift=0.5)
        np.save(self.path("spots.npy"), frames)
        found, cells, table = self.find(self.path("spots.npy"),
                                        "threshold-mode=absolute threshold=2")
        self.assertEqual((found.get_value("columns"), found.get_value("rows")), (9, 7))
        self.assertAlmostEqual(found.get_value("pitch-x"), 21.3, delta=0.05)
        self.assertAlmostEqual(found.get_value("x0"), 3.4, delta=0.3)
        self.assertEqual(len(table), 3 * 63)
        error = np.stack([table["x"], table["y"]], 1) - places.reshape(-1, 2)
        self.assertLess(np.abs(error).max(), 0.02)

    def find_pupil(self, shape, amplitude, pitch):
        """137 lenslets of a round pupil, whose spots are moved by up to `amplitude` pitches. Returns: the
        message, the map, and the true places of the spots"""
        frames, places, _ = wavefronts.make(count=13, pitch=pitch, obscuration=0, shape=shape,
                                            amplitude=amplitude * pitch)
        self.assertEqual(places.shape[1], 137)
        np.save(self.path("pupil.npy"), frames)
        found, cells, _ = self.find(self.path("pupil.npy"), "threshold-mode=range threshold=0.2")
        self.assertEqual(len(cells), found.get_value("cells"))
        np.testing.assert_array_equal(cells[:, 10:12], [[found.get_value("unplaced"),
                                                         found.get_value("rms")]] * len(cells))
        return found, cells, places[0]

    def test_all_spots_of_an_aberrated_wavefront_are_found(self):
        for shape in "defocus", "astigmatism", "coma", "turbulence":
            for amplitude, pitch in ((0.1, 24), (0.2, 16), (0.3, 24), (0.35, 16), (0.4, 24), (0.45, 16), (0.45, 24)):
                with self.subTest(shape=shape, amplitude=amplitude, pitch=pitch):
                    found, cells, places = self.find_pupil(shape, amplitude, pitch)
                    self.assertEqual((len(cells), found.get_value("unplaced")), (137, 0))
                    self.assertFalse([text for text in self.warnings if "find-grid" in text])
                    # each spot in a cell of its own, of which there are 13 in the longest row
                    inside = ((places[:, None] + 0.5 >= cells[:, :2]) &
                              (places[:, None] + 0.5 < cells[:, :2] + cells[:, 2:4])).all(2)
                    at = cells[:, :2] + cells[:, 2:4] / 2 - 0.5
                    nearest = np.hypot(*(places[:, None] - at).transpose(2, 0, 1)).argmin(1)
                    self.assertEqual(len(set(nearest)), 137)
                    self.assertTrue(inside[np.arange(137), nearest].all())
                    self.assertEqual((found.get_value("columns"), found.get_value("rows")), (13, 13))
                    # of the true places from the lattice, and 0.027 of noise
                    rms = np.sqrt(((places - at[nearest]) ** 2).sum(1).mean() + 0.027 ** 2)
                    self.assertAlmostEqual(found.get_value("rms"), rms, delta=0.02 * rms + 0.005)

    def test_spots_that_are_left_out_are_counted_in_a_warning(self):
        for shape, amplitude in ("coma", 0.8), ("turbulence", 1.2):
            for pitch in 16, 24:
                with self.subTest(shape=shape, amplitude=amplitude, pitch=pitch):
                    found, cells, _ = self.find_pupil(shape, amplitude, pitch)
                    unplaced, rms = found.get_value("unplaced"), found.get_value("rms")
                    self.assertGreater(unplaced, 0)
                    self.assertEqual(len(cells) + unplaced, 137)
                    said = [text for text in self.warnings if "find-grid" in text]
                    self.assertEqual(len(said), 1)
                    self.assertIn(f"placed {len(cells)} spots and left out {unplaced} ", said[0])
                    self.assertIn(f"off by {rms:.2f} pixels rms", said[0])

    def test_the_action_while_playing_and_what_cannot_be_found(self):
        frames, places = spots.make(frames=1, columns=6, rows=5, shift=0)
        height, width = frames.shape[1:]
        pipeline = Gst.parse_launch(
            f"appsrc name=in format=time ! video/x-raw,format=GRAY16_LE,width={width},"
            f"height={height},framerate=25/1 ! shcentroid name=sh x0=3.4 y0=2.7 pitch-x=21.3"
            " pitch-y=21.3 columns=6 rows=5 ! appsink name=out sync=false")
        stride = (2 * width + 3) // 4 * 4
        padded = np.zeros((height, stride), np.uint8)
        padded[:, :2 * width] = frames[0].view(np.uint8)
        dark = np.zeros_like(padded)
        source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
        sh, bus = pipeline.get_by_name("sh"), pipeline.get_bus()
        pipeline.set_state(Gst.State.PLAYING)

        def pass_frame(pixels):
            source.emit("push-buffer", Gst.Buffer.new_wrapped(pixels.tobytes()))
            sample = sink.emit("try-pull-sample", TIMEOUT * Gst.SECOND)
            self.assertIsNotNone(sample)

        pass_frame(padded)
        sh.emit("find-grid", self.path("map.npy"))
        pass_frame(dark)  # nothing there: a warning, and the grid stays
        message = bus.timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.WARNING)
        self.assertIn("There is no grid of spots", message.parse_warning()[0].message)
        self.assertIsNone(sh.get_property("map-location"))
        self.assertFalse(os.path.exists(self.path("map.npy")))
        sh.emit("find-grid", self.path("no/such/folder.npy"))
        pass_frame(padded)
        message = bus.timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.WARNING)
        self.assertIn("cannot be written", message.parse_warning()[0].message)
        sh.emit("find-grid", self.path("map.npy"))
        pass_frame(padded)
        while True:
            message = bus.timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.ELEMENT)
            if not message or message.get_structure().get_name() == "shcentroid-grid":
                break
        self.assertEqual(message.get_structure().get_value("cells"), 30)
        pipeline.set_state(Gst.State.NULL)
        np.testing.assert_allclose(np.load(self.path("map.npy"))[:, 4:6], places[0], atol=0.02)

    def test_without_any_grid_a_dark_frame_is_an_error(self):
        np.save(self.path("dark.npy"), np.zeros((1, 64, 64), np.uint8))
        with self.assertRaisesRegex(RuntimeError, "There is no grid of spots"):
            self.find(self.path("dark.npy"))


class Optics(unittest.TestCase):
    def test_optics_are_a_grid_and_radians(self):
        with tempfile.TemporaryDirectory() as folder:
            frame = np.random.RandomState(3).randint(0, 256, (90, 100), np.uint8)
            np.save(folder + "/f.npy", frame)
            tables = []
            for properties in (
                    "x0=20 y0=15 pitch-x=10 pitch-y=10 columns=6 rows=6",
                    "aperture=0.9 lenslet-pitch=150 pixel-size=15",
                    "aperture=0.9 lenslet-pitch=150 pixel-size=15 focal-length=5 slope-unit=rad"):
                play(f"picturesrc location={folder}/f.npy ! shcentroid name=sh {properties} ! fakesink"
                     f" sh.results ! queue ! filesink location={folder}/c.csv")
                tables.append(read_csv(folder + "/c.csv"))
        grid, pixels, radians = tables
        for name in grid.dtype.names:
            np.testing.assert_array_equal(grid[name], pixels[name])
        for name in ("dx", "dy"):
            np.testing.assert_allclose(radians[name], pixels[name] * 0.003, atol=1e-10)
        np.testing.assert_array_equal(radians["x"], pixels["x"])

    def test_radians_without_a_focal_length_are_refused(self):
        with self.assertRaisesRegex(AssertionError, "slope-unit=rad needs"):
            play("videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8,width=64,height=64 !"
                 " shcentroid columns=1 rows=1 pitch-x=9 pitch-y=9 slope-unit=rad ! fakesink")


if __name__ == "__main__":
    main()
