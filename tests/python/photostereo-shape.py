# SPDX-License-Identifier: LGPL-2.1-or-later
"""From pictures to a shape: lights from a chrome sphere, normals under them, and
heights, on real recordings."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from photostereo import Recording, angle, data, is_valid
from support import SOURCE, TIMEOUT, Gst, launch, main
import pictures


def read_lights(path):
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    lights = np.array([[float(word) for word in line.split()[-3:]] for line in lines[1:]])
    assert int(lines[0]) == len(lights)
    return lights


def integrate(normals, properties=""):
    """Heights in pixels of [height, width, 3] float32 normals, and the message."""
    height, width = normals.shape[:2]
    pipeline = Gst.parse_launch(
        "appsrc name=in format=time ! normalintegrate name=n " + properties +
        " n.tensor ! appsink name=out sync=false")
    source = pipeline.get_by_name("in")
    source.set_property("caps", Gst.Caps.from_string(
        "other/tensors,format=static,num_tensors=1,types=float32,"
        f"dimensions=3:{width}:{height}:1,framerate=0/1"))
    pipeline.set_state(Gst.State.PLAYING)
    try:
        normals = np.where(np.isfinite(normals), normals, 0).astype(np.float32)
        source.emit("push-buffer", Gst.Buffer.new_wrapped(normals.tobytes()))
        sample = pipeline.get_by_name("out").emit("try-pull-sample", TIMEOUT * Gst.SECOND)
        buffer = sample.get_buffer()
        message = pipeline.get_bus().timed_pop_filtered(
            TIMEOUT * Gst.SECOND, Gst.MessageType.ELEMENT)
        return np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32
                             ).reshape(height, width), message.get_structure()
    finally:
        pipeline.set_state(Gst.State.NULL)


def slopes(heights):
    """Normals of heights, from differences over two pixels, y up."""
    p, q = np.full_like(heights, np.nan), np.full_like(heights, np.nan)
    p[:, 1:-1] = (heights[:, 2:] - heights[:, :-2]) / 2
    q[1:-1] = (heights[:-2] - heights[2:]) / 2
    n = np.dstack([-p, -q, np.ones_like(p)])
    return n / np.linalg.norm(n, axis=2, keepdims=True)


class Shape(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.chrome = Recording("uw_chrome", cls.folder)
        mask = os.path.join(cls.folder, "chrome-mask.npy")
        np.save(mask, cls.chrome.mask().astype(np.uint8))
        cls.lights = os.path.join(cls.folder, "chrome.lp")
        launch("picturesrc", f"location={cls.chrome.path}", "!", "spherelights",
               f"location={cls.lights}", f"mask-location={mask}", "!", "fakesink")

    def test_lights_of_the_chrome_sphere_are_those_of_its_highlights(self):
        found = read_lights(self.lights)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        highlights = np.loadtxt(os.path.join(self.chrome.folder, "highlight_dirs.txt"))
        supplied = read_lights(os.path.join(self.chrome.folder, "lights.lp"))
        off = angle(found, supplied)
        print("chrome sphere: %.2f degrees at most from an independent centroid,"
              " %.1f to %.1f from the supplied lights"
              % (angle(found, highlights).max(), off.min(), off.max()), file=sys.stderr)
        self.assertLess(angle(found, highlights).max(), 0.5)
        self.assertLess(off.max(), 10)

    def test_spheres_and_statues_are_solved_under_these_lights(self):
        for name, truth, limit in (("uw_gray", "analytic_sphere_normals", 6.6),
                                   ("uw_buddha", "ref_normals_l2", 6)):
            recording = Recording(name, self.folder)
            recording.lights = self.lights
            arrays, _ = recording.solve("robust=none")
            expected = recording.array(truth)
            solved = recording.mask() & np.isfinite(expected).all(-1)
            error = angle(arrays["normal"][-1], expected)[solved].mean()
            print(f"{name} under the lights found: {error:.2f} degrees from {truth}",
                  file=sys.stderr)
            self.assertTrue(is_valid(arrays["normal"][-1])[solved].all())
            self.assertLess(error, limit)

    def test_height_of_the_analytic_sphere(self):
        normals = np.load(os.path.join(data("uw_gray"), "analytic_sphere_normals.npy"))
        inside = np.isfinite(normals).all(-1) & (normals[..., 2] > 0.01)
        y, x = np.mgrid[:112, :112]
        truth = np.sqrt(np.maximum(54.0 ** 2 - (x - 55.75) ** 2 - (y - 55.75) ** 2, 0))
        heights, message = integrate(normals)
        self.assertEqual(message.get_uint64("valid")[1], inside.sum())
        np.testing.assert_array_equal(np.isfinite(heights), inside)
        rms = (heights - truth)[inside].std() / 54
        print(f"analytic sphere: {100 * rms:.4f} % rms of its radius", file=sys.stderr)
        self.assertLess(rms, 0.005)

    def test_bear_has_the_normals_it_was_made_of(self):
        bear = Recording("diligent_bear", self.folder)
        normals = bear.array("gt_normals")
        heights, message = integrate(normals)
        again = slopes(heights)
        both = np.isfinite(again).all(-1) & np.isfinite(normals).all(-1)
        error = angle(again, normals)[both]
        print("bear: the slopes of its heights are off by %.2f degrees, %.1f pixels high,"
              " %d iterations" % (np.median(error), message.get_double("highest")[1],
                                  message.get_uint("iterations")[1]), file=sys.stderr)
        self.assertGreater(both.sum(), 9000)
        self.assertLess(np.median(error), 2)

    def test_bear_from_pictures_to_height_in_one_pipeline(self):
        bear = Recording("diligent_bear", self.folder)
        path = os.path.join(self.folder, "bear")
        launch("picturesrc", f"location={bear.path}", "!", "photostereo", "name=p",
               "normal-encoding=tensor", f"lights-location={bear.lights}",
               f"intensities-location={bear.intensities}", "p.normal", "!",
               "normalintegrate", "name=n",
               "n.tensor", "!", "queue", "!", "filesink", f"location={path}.f32",
               "n.height", "!", "queue", "!", "pngenc", "!", "filesink",
               f"location={path}.png",
               "n.mesh", "!", "model/obj", "!", "queue", "!", "filesink",
               f"location={path}.obj")
        found = np.fromfile(path + ".f32", np.float32).reshape(bear.shape)
        truth, _ = integrate(bear.array("gt_normals"))
        both = np.isfinite(found) & np.isfinite(truth)
        self.assertGreater(both.sum(), 9000)
        rms = (found - truth)[both].std() / np.ptp(truth[both])
        print(f"bear: heights differ by {100 * rms:.1f} % rms from those of the scanned"
              " normals", file=sys.stderr)
        self.assertLess(rms, 0.08)
        grey = pictures.read_png(path + ".png")
        self.assertEqual((grey.dtype, grey.shape), (np.uint16, bear.shape))
        np.testing.assert_array_equal(grey > 0, np.isfinite(found))
        with open(path + ".obj", encoding="ascii") as file:
            vertices = sum(line.startswith("v ") for line in file)
        self.assertEqual(vertices, np.isfinite(found).sum())

    @unittest.skipUnless("png" in os.environ["FORMATS"].split(), "built without png")
    def test_normals_of_16_bits_go_through_a_png(self):
        bear = Recording("diligent_bear", self.folder)
        stem = os.path.join(self.folder, "words")
        files = {"tensor": stem + ".f32", "rgba64": stem + ".u16"}
        for encoding, path in files.items():
            launch("picturesrc", f"location={bear.path}", "!", "photostereo", "name=p",
                   f"normal-encoding={encoding}", f"lights-location={bear.lights}",
                   f"intensities-location={bear.intensities}", "p.normal", "!",
                   "filesink", f"location={path}")
        floats = np.fromfile(files["tensor"], "<f4").reshape(*bear.shape, 3)
        words = np.fromfile(files["rgba64"], "<u2").reshape(*bear.shape, 4)[..., :3]
        there = is_valid(floats)
        np.testing.assert_array_equal(there, is_valid(words))
        self.assertLess(np.abs((words - 32768.0) / 32767 - floats)[there].max(), 1 / 65000)  # half a step, and rounding
        np.save(stem + "-floats.npy", floats)
        # the pictures as they are, and the normals as a picture
        launch("picturesrc", f"location={bear.folder}/???.png", "!", "photostereo",
               "normal-encoding=rgba64", f"lights-location={bear.lights}",
               f"intensities-location={bear.intensities}", "!", "picturesink", f"location={stem}.png")
        np.testing.assert_array_equal(pictures.read_png(stem + ".png")[..., :3], words)
        np.save(stem + ".npy", words)
        truth = bear.array("gt_normals")
        both = there & np.isfinite(truth).all(-1)
        error = [angle(n, truth)[both].mean() for n in (floats, (words - 32768.0) / 32767)]
        print("bear: %.4f degrees from floats, %.4f through PNG of 16 bits" % tuple(error), file=sys.stderr)
        self.assertLess(abs(error[0] - error[1]), 0.01)
        lit = {}
        for name in ".png", ".npy", "-floats.npy":
            launch("picturesrc", f"location={stem}{name}", "!", "normalintegrate", "name=n",
                   "n.tensor", "!", "filesink", f"location={stem}.heights")
            heights = np.fromfile(stem + ".heights", "<f4")
            launch("picturesrc", f"location={stem}{name}", "!", "relight", "gamma=2.2", "!",
                   "filesink", f"location={stem}.rgb")
            lit[name] = heights, np.fromfile(stem + ".rgb", "u1").astype(int)
        for i in range(2):
            np.testing.assert_array_equal(lit[".png"][i], lit[".npy"][i])
        self.assertLessEqual(np.abs(lit[".png"][1] - lit["-floats.npy"][1]).max(), 1)
        np.testing.assert_allclose(lit[".png"][0], lit["-floats.npy"][0],
                                   atol=1e-3 * np.nanmax(lit["-floats.npy"][0]))


class Pipelines(unittest.TestCase):
    """What users run; without the bear, so that they need no data."""

    def run_in(self, folder, name):
        done = subprocess.run(
            [os.path.join(SOURCE, "pipelines", "examples", name), folder, "/nowhere"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3 * TIMEOUT,
            env={**os.environ, "GST_IMAGING_ENV": "1"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("The bear is not in /nowhere", done.stdout)
        return done.stdout

    def test_bands_show_what_is_under_the_enamel(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.path.join(SOURCE, "pipelines", "examples", "photostereo-bands"), folder],
                           check=True, timeout=3 * TIMEOUT,
                           env={**os.environ, "GST_IMAGING_ENV": "1"})
            bands = pictures.read_png(os.path.join(folder, "bands-albedo.png"))
            self.assertEqual(bands.shape, (2000, 250))
            bands = bands.reshape(8, 250, 250).astype(float)
            enamel = (bands[1] > 100) & (bands[4] < 80)
            self.assertGreater(enamel.sum(), 1000)
            dark = enamel & (bands[7] < 0.6 * np.median(bands[7][enamel]))
            self.assertGreater(dark.sum(), 0.05 * enamel.sum())
            # in the others nothing is to be seen of it
            for band in bands[:5]:
                self.assertAlmostEqual(band[dark].mean() / band[enamel].mean(), 1, delta=0.05)

    def test_figure15_converges(self):
        with tempfile.TemporaryDirectory() as folder:
            text = self.run_in(folder, "photostereo-figure15")
            errors = [float(word) for word in re.findall(r"pictures ([0-9.]+)", text)]
            self.assertEqual(len(errors), 10)
            self.assertLess(errors[4], 0.5 * errors[0])
            self.assertLess(errors[4], 2)
            self.assertAlmostEqual(errors[4], errors[9], 2)
            self.assertEqual(pictures.read_png(os.path.join(
                folder, "medal-figure15.png")).shape, (250, 625, 3))
            with open(os.path.join(folder, "medal-figure15.svg"), encoding="ascii") as file:
                self.assertEqual(file.read().count("<polyline"), 2)


if __name__ == "__main__":
    main()
