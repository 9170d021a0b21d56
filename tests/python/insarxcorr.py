# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging coregister on pairs whose offsets are known: as coherent as after the true offsets, and flat."""
import os
import re
import shutil
import struct
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import numpy as np

import support
from support import SOURCE, FolderCase, coregister, gst_imaging, launch, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import slcs

support.DATA = os.path.join(os.path.dirname(support.DATA), "insarxcorr")
data = support.data

NAMES = {"shift-r": "r0", "stretch-r": "sr", "a-stretch-r": "ar", "shift-a": "a0", "stretch-a": "sa", "a-stretch-a": "aa"}


def read_truth(pair):
    with open(data(os.path.join(pair, "truth.txt")), encoding="ascii") as file:
        return dict(line.split() for line in file if not line.startswith("#"))


def true_coherence(pair):
    """The mean coherence of a pair that is resampled with its true offsets."""
    truth = read_truth(pair)
    ref, sec = (data(os.path.join(pair, name)) for name in ("ref.PRM", "sec.PRM"))
    text = launch("-m", "slcsrc", "location=" + ref, "!", "i.reference", "slcsrc", "location=" + sec, "!",
                  "slcresample", *(f"{name}={truth[key]}" for name, key in NAMES.items()), "!", "i.secondary",
                  "insarform", "name=i", "i.phase", "!", "queue", "!", "fakesink")
    return float(re.search(r"mean-coherence=\(double\)([0-9.]+)", text).group(1))


def png_size(path):
    with open(path, "rb") as file:
        return struct.unpack(">II", file.read(24)[16:])


class Coregistration(FolderCase):
    def check_pair(self, pair):
        truth, out = read_truth(pair), os.path.join(self.folder, pair)
        width, height = int(truth["cols"]) // 2, int(truth["rows"]) // 2
        text = coregister(data(os.path.join(pair, "ref.PRM")), data(os.path.join(pair, "sec.PRM")), out,
                          "--interferogram", "--slc", "--rasters", "img")
        for name in "coherence", "amplitude", "phase", "offsets":
            for suffix in ".img", ".img.hdr", ".img.vrt":
                self.assertTrue(os.path.exists(os.path.join(out, name + suffix)), name + suffix)
        with open(os.path.join(out, "interferogram.cf32.vrt"), encoding="ascii") as file:
            self.assertIn(">interferogram.cf32</SourceFilename>", file.read())
        found = float(re.search(r"mean coherence ([0-9.]+) of", text).group(1))
        self.assertGreater(found, 0.98 * true_coherence(pair), text)
        for name in "fringes", "coherence", "amplitude":
            self.assertEqual(png_size(os.path.join(out, name + ".png")), (width, height))
        self.assertEqual(os.path.getsize(os.path.join(out, "secondary.SLC")), 4 * int(truth["cols"]) * int(truth["rows"]))
        self.check_flat(np.fromfile(os.path.join(out, "interferogram.cf32"), "<c8").reshape(height, width))

    def check_flat(self, interferogram):
        """Phases of 16 x 16 cells, where they agree: all near 0."""
        height, width = (size // 16 * 16 for size in interferogram.shape)
        z = interferogram[:height, :width].astype(complex)
        z = np.where(z == 0, 0, z / np.maximum(np.abs(z), 1e-30))
        mean = z.reshape(height // 16, 16, width // 16, 16).mean((1, 3))
        phase = np.angle(mean[np.abs(mean) > 0.6])
        self.assertGreater(phase.size, 0.7 * mean.size)
        self.assertLess(np.abs(phase.mean()), 0.05)
        self.assertLess(phase.std(), 0.15)

    def test_affine_pair(self):
        self.check_pair("affine")

    def test_envisat_pair(self):
        self.check_pair("envisat")


def read_fit(folder):
    with open(os.path.join(folder, "fit.txt"), encoding="ascii") as file:
        return {key.strip(): float(value) for key, value in (line.split("=") for line in file)}


FEW = "nx=13", "ny=13"  # patches, where it is not their number that is tested


class Quality(FolderCase):
    """What is told of the fit, and that it is right."""

    def setUp(self):
        super().setUp()
        self.images = [os.path.join(self.folder, name + ".PRM") for name in ("ref", "sec")]
        self.out = os.path.join(self.folder, "out")

    def check_corners(self, offsets, size, *words):
        """The default call is within 0.02 pixel of the truth over the whole image. Returns: what was printed."""
        text = coregister(*self.images, self.out, *words)
        fit, o = read_fit(self.out), offsets
        for x in 0, size - 1:
            for y in 0, size - 1:
                r = fit["rshift"] + fit["sub_int_r"] + fit["stretch_r"] * x + fit["a_stretch_r"] * y
                a = fit["ashift"] + fit["sub_int_a"] + fit["stretch_a"] * x + fit["a_stretch_a"] * y
                self.assertLess(abs(r - (o["r0"] + o["sr"] * x + o["ar"] * y)), 0.02, (x, y, text))
                self.assertLess(abs(a - (o["a0"] + o["sa"] * x + o["aa"] * y)), 0.02, (x, y, text))
        return text

    def test_fit_is_right_from_corner_to_corner(self):
        slcs.make_pair(self.folder, 400, 400)
        text = self.check_corners(slcs.OFFSETS, 400)
        self.assertRegex(text, r"\d+ of \d+ patches \(correlation above 1\d\.\d\d\), rms 0\.0\d+ columns and 0\.0\d+ lines .*, over \d+ % of the columns")
        self.assertNotIn("alike beside each other: -", text)
        self.assertNotIn("less than half", text)

    def test_fit_is_right_with_any_doppler_centroid(self):
        slcs.make_pair(self.folder, 400, 400, doppler=-0.45)
        self.check_corners(slcs.OFFSETS, 400)

    def test_fit_is_right_on_a_real_image(self):
        """Whose spectrum wraps: the secondary is warped at its Doppler centroid."""
        offsets = {key: float(value) for key, value in read_truth("envisat").items()}
        slcs.make_second(self.folder, slcs.read(data(os.path.join("envisat", "ref.SLC")), 500), offsets)
        self.check_corners(offsets, 500)

    def write_pair(self, hill, coherence=0.9, size=512):
        """Speckle, and the same with a shift and a hill of so many columns."""
        rng = np.random.RandomState(3)
        margin = slcs.MARGIN
        scene = slcs.band_limited(rng, (size + 2 * margin,) * 2)
        y, x = np.mgrid[:size, :size].astype(float)
        move = 2.3 + hill * np.exp(-((x - 200) ** 2 + (y - 280) ** 2) / (2 * 50 ** 2))
        other = slcs.band_limited(rng, (size, size))
        warped = slcs.warp(scene, x - move + margin, y + 1.6 + margin)
        slcs.write(self.folder, "ref", scene[margin:-margin, margin:-margin])
        slcs.write(self.folder, "sec", coherence * warped + np.sqrt(1 - coherence ** 2) * other)

    def test_a_hill_is_told_and_a_plane_is_not(self):
        """The coherence is low where the hill is."""
        means = []
        for hill in 1.2, 0:
            self.write_pair(hill)
            text = coregister(*self.images, self.out, "--looks", "4", "4")
            means.append(float(re.search(r"mean coherence ([0-9.]+)", text).group(1)))
            found = re.search(r"The fit in range leaves residuals .*: (-?[0-9.]+) columns around column (\d+) of line (\d+)", text)
            self.assertEqual(found is not None, hill > 0, text)
            if found:
                self.assertGreater(float(found.group(1)), 0.5)
                self.assertLess(abs(float(found.group(2)) - 200), 50)
                self.assertLess(abs(float(found.group(3)) - 280), 50)
            self.assertNotIn("The fit in azimuth", text)
        self.assertLess(means[0] + 0.02, means[1])
        self.assertGreater(means[1], 0.88)

    def test_more_terms_do_not_hide_what_is_written(self):
        self.write_pair(1.2)
        text = coregister(*self.images, self.out, "fit-range=10")
        self.assertIn("The fit in range leaves residuals", text)
        self.assertGreater(float(re.search(r"rms ([0-9.]+) columns", text).group(1)), 0.1)

    def test_offsets_of_chance_give_no_fringes(self):
        """With a low fit-snr, images of low coherence; larger templates are the remedy that is named."""
        self.write_pair(0, coherence=0.15, size=480)
        text = coregister(*self.images, self.out, *FEW, status=1)
        self.assertIn("a larger window-width and window-height help", text)
        text = coregister(*self.images, self.out, "fit-snr=5", status=1)
        self.assertIn("these do not agree", text)
        coregister(*self.images, self.out, "window-width=192", "window-height=192", *FEW)

    def test_a_diagonal_strip_is_told(self):
        """It spans most of the columns and of the lines; the corners are undetermined."""
        self.write_pair(0, coherence=0.8, size=600)
        y, x = np.mgrid[:600, :600]
        other = slcs.band_limited(np.random.RandomState(5), (600, 600))
        image = slcs.read(os.path.join(self.folder, "sec.SLC"), 600)
        scale = np.sqrt((np.abs(image) ** 2).mean() / (np.abs(other) ** 2).mean())
        slcs.write(self.folder, "sec", np.where(np.abs(x - 0.9 * y) < 45, image, scale * other))
        text = coregister(*self.images, self.out)
        self.assertRegex(text, r"patches of the fit lie in a strip or an island: in its narrowest direction it is [12]\d % of the image")

    def test_low_coherence_gets_larger_templates(self):
        """Once, when few patches of the first run are significant."""
        self.write_pair(0, coherence=0.24, size=560)
        text = coregister(*self.images, self.out)
        self.assertRegex(text, r"of \d+ patches have a significant correlation; with templates 1.5 times as large, \d+ of "
                               r"\d+ patches have. The larger ones are used")

    def test_the_resampled_secondary_is_an_image(self):
        slcs.make_pair(self.folder, 400, 400)
        out = os.path.join(self.folder, "out")
        coregister(*self.images, out, "--slc")
        with open(os.path.join(out, "secondary.PRM"), encoding="ascii") as file:
            prm = dict(map(str.strip, line.split("=")) for line in file)
        self.assertEqual((prm["SLC_file"], prm["num_rng_bins"], prm["rshift"]), ("secondary.SLC", "400", "0"))
        again = os.path.join(self.folder, "again")
        text = coregister(self.images[0], os.path.join(out, "secondary.PRM"), again)
        fit = read_fit(again)
        for axis in "ra":  # nothing is left to move
            self.assertLess(abs(fit[axis + "shift"] + fit["sub_int_" + axis]), 0.02, text)

    def test_a_small_span_is_told(self):
        slcs.make_pair(self.folder, 400, 400)
        text = coregister(*self.images, self.out, "nx=20", "ny=25", "grid=gmtsar", "window-width=64", "window-height=64")
        self.assertIn("span less than half of the image", text)


class Picture(unittest.TestCase):
    """fitoffset --picture draws nothing beside the picture."""

    def draw(self, rows):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        table, picture = os.path.join(folder, "offsets.dat"), os.path.join(folder, "field.svg")
        with open(table, "w", encoding="ascii") as file:
            file.writelines(" %d %.3f %d %.3f %.2f \n" % row for row in rows)
        gst_imaging("fitoffset", "1", "1", table, "18", "--picture", picture)
        return xml.etree.ElementTree.parse(picture).getroot()

    def check(self, rows):
        root = self.draw(rows)
        left, top, width, height = map(float, root.get("viewBox").split())
        ends = []
        for node in root:
            tag = node.tag.split("}")[1]
            if tag == "path":
                x, y, dx, dy = map(float, re.match(r"M(\S+) (\S+?)[lh](\S+?)(?: (\S+?))?(?:m|$)", node.get("d") + "").groups("0"))
                ends += [(x, y), (x + dx, y + dy)]
            elif tag == "text":
                x, y = float(node.get("x")), float(node.get("y"))
                ends += [(x, y), (x + 6.5 * len(node.text), y - 10)]
        self.assertGreater(len(ends), len(rows))
        for x, y in ends:
            self.assertTrue(left <= x <= left + width and top <= y <= top + height, (x, y, root.get("viewBox")))
        self.assertLess(width, 1200)

    def grid(self, nx, ny, offset):
        return [(100 + 50 * i, 3 + offset(i, j), 200 + 50 * j, -4 + offset(j, i), 50) for j in range(ny) for i in range(nx)]

    def test_small_offsets_and_their_long_legend(self):
        self.check(self.grid(20, 25, lambda i, j: 0.002 * (i - 9)))

    def test_long_arrows_at_the_edge(self):
        self.check(self.grid(20, 25, lambda i, j: 1.9 * (i in (0, 19)) * (1 if i else -1) + 0.1 * j))

    def test_narrow_pictures(self):
        self.check(self.grid(2, 30, lambda i, j: 0.1 * i - 0.2 * j))
        self.check(self.grid(3, 3, lambda i, j: 5 * i - 7 * j))


SIZE = 240  # pixels in each direction: what is wrong does not depend on it


class WrongInput(FolderCase):
    def write_noise(self, name, seed, grain=1):
        rng = np.random.default_rng(seed)
        small = rng.integers(-999, 999, (SIZE // grain, SIZE // grain, 2))
        np.kron(small, np.ones((grain, grain, 1))).astype("<i2").tofile(os.path.join(self.folder, name + ".SLC"))
        path = os.path.join(self.folder, name + ".PRM")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"SLC_file = {name}.SLC\nnum_rng_bins = {SIZE}\nnum_valid_az = {SIZE}\nPRF = 1000\n")
        return path

    def test_strangers_give_no_fringes(self):
        out = os.path.join(self.folder, "out")
        text = coregister(self.write_noise("a", 1), self.write_noise("b", 2), out, status=1)
        self.assertIn("Too few patches correlate", text)
        self.assertFalse(os.path.exists(out))

    def test_coarse_strangers_give_no_fringes_either(self):
        """Some of their patches are alike by chance."""
        out = os.path.join(self.folder, "out")
        text = coregister(self.write_noise("a", 1, 4), self.write_noise("b", 2, 4), out, status=1)
        self.assertIn("these do not agree", text)
        self.assertFalse(os.path.exists(out))

    def test_an_empty_secondary(self):
        empty = self.write_noise("b", 2)
        np.zeros(SIZE * SIZE * 2, "<i2").tofile(os.path.join(self.folder, "b.SLC"))
        text = coregister(self.write_noise("a", 1), empty, os.path.join(self.folder, "out"), status=1)
        self.assertIn("No patch has enough data in both images", text)

    def test_a_shift_out_of_the_image(self):
        """The header is wrong: images that are alike are found, strangers are refused."""
        for key, shift in ("rshift", 5000), ("ashift", 5000), ("ashift", -5000):
            for seed, status, told in (1, 0, "The search was moved there"), (2, 1, "No patch has enough data in both images"):
                far = self.write_noise("b", seed)
                with open(far, "a", encoding="ascii") as file:
                    file.write(f"{key} = {shift}\n")
                text = coregister(self.write_noise("a", 1), far, os.path.join(self.folder, "out"), status=status)
                self.assertIn(told, text)

    def test_swapped_bytes(self):
        slcs.make_pair(self.folder, 240, 240)
        path = os.path.join(self.folder, "sec.SLC")
        np.fromfile(path, "<i2").byteswap().tofile(path)
        text = coregister(*(os.path.join(self.folder, name) for name in ("ref.PRM", "sec.PRM")),
                          os.path.join(self.folder, "out"), status=1)
        self.assertIn("big endian", text)

    def test_swapped_bytes_of_floats(self):
        image = os.path.join(self.folder, "raw")
        rng = np.random.default_rng(1)
        for scale in 1e-3, 300:
            samples = (scale * rng.standard_normal(2 * 200 * 100)).astype("<f4")
            samples[:20000] = 0 if scale < 1 else np.nan  # a border without data
            if scale > 1:  # whole numbers have empty bytes
                samples = np.rint(samples)
            for numbers, swapped in (samples, False), (samples.byteswap(), True):
                numbers.tofile(image)
                text = launch("slcsrc", "location=" + image, "format=cf32", "width=200", "!", "fakesink")
                self.assertEqual("big endian" in text, swapped, (scale, text))

    def test_keys_that_contradict_each_other(self):
        image = self.write_noise("a", 1)
        for line, words in (("bytes_per_line = 1608", f"bytes_per_line = 1608 and num_rng_bins = {SIZE}"),
                            ("num_lines = 200", f"num_lines = 200 and num_valid_az = {SIZE}"),
                            ("rshift = 3\nxshift = 5", "rshift = 3 and xshift = 5")):
            path = os.path.join(self.folder, "odd.PRM")
            with open(image, encoding="ascii") as file, open(path, "w", encoding="ascii") as odd:
                odd.write(file.read() + line + "\n")
            self.assertIn(words, launch("slcsrc", "location=" + path, "!", "fakesink"))
        self.assertNotIn("WARNING", launch("slcsrc", "location=" + image, "!", "fakesink"))

    def test_an_image_that_is_not_there(self):
        text = coregister(os.path.join(self.folder, "no.PRM"), self.write_noise("b", 2), os.path.join(self.folder, "out"), status=3)
        self.assertIn("There is no file", text)


if __name__ == "__main__":
    main()
