# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging coregister and offsets: images in each format, several pairs, an interruption, and what goes wrong."""
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, coregister, gst_imaging, main, run_command

sys.path[:0] = os.path.join(SOURCE, "tests", "data"), os.path.join(SOURCE, "pipelines")
import slcs
from gst_imaging.command import Failure
from gst_imaging.sar import alias, interferogram, measure
from gst_imaging.sar.prm import parse_fit, write_vrt


class NoPad:
    """In the place of a pad, whose data a test gives itself."""

    def add_probe(self, _kind, _function):
        pass


class Aliased(unittest.TestCase):
    def test_white_noise_has_a_quarter_near_the_nyquist_frequency(self):
        image = np.random.default_rng(2).normal(5, 1, (200, 300)).astype("<f4")
        image[:, 192:] = 7  # a flat part counts nothing
        found = []
        for step in 999, 4000, 1 << 20:  # bytes of a buffer
            spectrum, data = alias.Spectrum(NoPad()), image.tobytes()
            for at in range(0, len(data), step):
                spectrum.take(data[at:at + step], 300, 200)
            found.append(spectrum.shares())
        np.testing.assert_allclose(found[0], 15 / alias.SIDE, atol=0.01)
        self.assertTrue((found[0] == found).all(), found)

    def test_no_data_has_no_share(self):
        for value in 0, 5, np.nan, np.inf:
            spectrum = alias.Spectrum(NoPad())
            spectrum.take(np.full((128, 128), value, "<f4").tobytes(), 128, 128)
            self.assertIsNone(spectrum.shares(), value)

    def test_axes_are_range_and_azimuth(self):
        x = np.arange(128)
        spectrum = alias.Spectrum(NoPad())
        spectrum.take(np.tile(np.cos(0.9 * np.pi * x), (128, 1)).astype("<f4").tobytes(), 128, 128)
        self.assertGreater(spectrum.shares()[0], 0.9)
        self.assertLess(spectrum.shares()[1], 0.1)


class Formats(unittest.TestCase):
    """The same images in another format have the same offsets, and the files that belong to them are in the report."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        slcs.make_pair(cls.folder, 220, 240)
        cls.expected = cls.fit_of("coregister", "ref.PRM", "sec.PRM", 4)
        for name in "ref", "sec":
            image = slcs.read(cls.path(f"{name}.SLC"), 220).astype(np.complex64)
            np.save(cls.path(f"{name}.npy"), image)
            np.save(cls.path(f"{name}-amplitude.npy"), np.abs(image).astype(np.float32))
            image.tofile(cls.path(f"{name}.envi"))
            with open(cls.path(f"{name}.envi.hdr"), "w", encoding="ascii") as file:
                file.write("ENVI\nsamples = 220\nlines = 240\nbands = 1\nheader offset = 0\ndata type = 6\n"
                           "interleave = bsq\nbyte order = 0\n")
            image.tofile(cls.path(f"{name}.slc"))
            write_vrt(220, 240, "cf32", f"{name}.slc", cls.path(f"{name}.slc.vrt"))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def fit_of(cls, command, reference, secondary, n_files, *words):
        """Returns: the text of the fit. n_files: that are read"""
        out = tempfile.mkdtemp(dir=cls.folder)
        try:
            gst_imaging(command, cls.path(reference), cls.path(secondary), "-o", out, *words)
        except AssertionError as error:
            if "GDAL" in str(error):
                raise unittest.SkipTest(str(error)) from error
            raise
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        assert len(result["inputs"]) == n_files, result["inputs"]
        with open(os.path.join(out, "fit.txt"), encoding="ascii") as file:
            return file.read()

    def test_numpy(self):
        self.assertEqual(self.fit_of("coregister", "ref.npy", "sec.npy", 2), self.expected)

    def test_envi(self):
        self.assertEqual(self.fit_of("coregister", "ref.envi", "sec.envi", 4), self.expected)

    def test_isce(self):
        self.assertEqual(self.fit_of("coregister", "ref.slc.vrt", "sec.slc.vrt", 4), self.expected)

    def test_geotiff(self):
        for name in "ref", "sec":
            done = subprocess.run([os.environ["ARRAY_TOOL"], self.path(f"{name}.npy"), self.path(f"{name}.tif")],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                self.skipTest(done.stderr)
        self.assertEqual(self.fit_of("coregister", "ref.tif", "sec.tif", 2), self.expected)

    def test_amplitudes_have_offsets_and_no_interferogram(self):
        words = self.path("ref-amplitude.npy"), self.path("sec-amplitude.npy")
        text = coregister(*words, self.path("no"), status=3)
        self.assertIn("has real samples", text)
        self.assertFalse(os.path.exists(self.path("no")))
        fit = self.fit_of("offsets", "ref-amplitude.npy", "sec-amplitude.npy", 2)
        found, expected = (parse_fit(text, "")(110, 120) for text in (fit, self.expected))
        # detected at one sample a pixel, speckle is aliased: offsets are drawn to whole pixels, here by 0.11
        np.testing.assert_allclose(found, expected, atol=0.15)

    def test_aliased_amplitudes_are_told(self):
        """Detected at 1.25 samples of an independent one, offsets are wrong by far more than expected; oversampled twice before, they are not."""
        rng, size = np.random.default_rng(4), 256
        spectrum = np.fft.fft2(slcs.band_limited(rng, (size, size)))
        phase = np.exp(-2j * np.pi * 0.25 * (np.fft.fftfreq(size)[:, None] + np.fft.fftfreq(size)))
        for times, is_aliased in (1, True), (2, False):
            for name, values in ("one", spectrum), ("two", spectrum * phase):
                padded = np.fft.ifftshift(np.pad(np.fft.fftshift(values), (times - 1) * size // 2))
                np.save(self.path(name + ".npy"), np.abs(np.fft.ifft2(padded)).astype(np.float32))
            out = self.path(f"aliased{times}")
            gst_imaging("offsets", self.path("one.npy"), self.path("two.npy"), "-o", out)
            with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
                result = json.load(file)
            planes = np.load(os.path.join(out, "offsets.npy"))
            off = np.abs([np.median(plane[planes[7] == 0]) / times - 0.25 for plane in planes[:2]])
            figures = [f for f in result["figures"] if f["name"].startswith("power near the Nyquist")]
            self.assertEqual([f["met"] for f in figures], [not is_aliased] * 2, figures)
            told = [sentence for sentence in result["warnings"] if "Oversample the complex images twice" in sentence]
            self.assertEqual(len(told), is_aliased, result["warnings"])
            self.assertEqual((off > 0.1).all(), is_aliased, off)
            self.assertEqual((off < 0.01).all(), not is_aliased, off)
            if is_aliased:
                self.assertLess(abs(off.max() - float(told[0].split("by up to ")[1].split()[0])), 0.05)

    def test_complex_samples_are_not_aliased(self):
        gst_imaging("offsets", self.path("ref.npy"), self.path("sec.npy"), "-o", self.path("complex"))
        with open(self.path("complex/result.json"), encoding="utf-8") as file:
            self.assertNotIn("Nyquist", file.read())

    def test_xcorr_tells_aliased_amplitudes(self):
        for name in "ref", "sec":
            image = np.load(self.path(f"{name}-amplitude.npy"))
            image.tofile(self.path(f"{name}.amp"))
            with open(self.path(f"{name}.PRM"), encoding="ascii") as file:
                text = file.read().replace(f"{name}.SLC", f"{name}.amp")
            with open(self.path(f"{name}-real.PRM"), "w", encoding="ascii") as file:
                file.write(text)
        words = self.path("ref-real.PRM"), self.path("sec-real.PRM"), "-nx", "4", "-ny", "4", "-xsearch", "32", "-ysearch", "32"
        done = run_command("xcorr", *words, "-real", folder=self.folder)
        self.assertIn("Oversample the complex images twice", done.stderr)
        self.assertEqual(done.returncode, 0)
        done = run_command("xcorr", self.path("ref.PRM"), self.path("sec.PRM"), *words[2:], folder=self.folder)
        self.assertNotIn("Oversample", done.stderr)

    def test_pictures_have_offsets(self):
        """Eight bits, and a shift of whole pixels."""
        picture = slcs.smooth(np.random.RandomState(1), (260, 280), 1.5)
        grey = np.clip(128 + 40 * picture, 0, 255).astype(np.uint8)
        for name, first in ("before", (20, 20)), ("after", (25, 13)):
            with open(self.path(name + ".pgm"), "wb") as file:
                file.write(b"P5\n240 220\n255\n" + grey[first[0]:first[0] + 220, first[1]:first[1] + 240].tobytes())
        x, y = parse_fit(self.fit_of("offsets", "before.pgm", "after.pgm", 2), "")(120, 110)
        self.assertLess(abs(x - 7) + abs(y + 5), 0.02)

    def test_unequal_pairs(self):
        text = coregister(self.path("ref.npy"), self.path("sec.PRM"), self.path("no"), status=1)
        self.assertIn("samples of cf32 and the secondary of ci16; both must be the same", text)
        np.save(self.path("short.npy"), np.load(self.path("sec.npy"))[:210, :220])
        fit = parse_fit(self.fit_of("coregister", "ref.npy", "short.npy", 2), "")  # another size is none that fails
        np.testing.assert_allclose(fit(110, 120), parse_fit(self.expected, "")(110, 120), atol=0.02)
        np.save(self.path("cube.npy"), np.zeros((3, 40, 50)))
        text = coregister(self.path("cube.npy"), self.path("sec.npy"), self.path("no"), status=3)
        self.assertIn("3 x 40 x 50, which is no image", text)

    def test_a_cut_file(self):
        for name, copy in ("sec.npy", "cut.npy"), ("sec.SLC", "cut.SLC"):
            with open(self.path(name), "rb") as file, open(self.path(copy), "wb") as cut:
                cut.write(file.read(100000))
        with open(self.path("sec.PRM"), encoding="ascii") as file, open(self.path("cut.PRM"), "w", encoding="ascii") as cut:
            cut.write(file.read().replace("sec.SLC", "cut.SLC"))
        for name in "cut.npy", "cut.PRM":
            text = coregister(self.path("ref." + name[4:]), self.path(name), self.path("no"), status=3)
            self.assertIn("cut.", text)
            self.assertFalse(os.path.exists(self.path("no")))


class Pairs(FolderCase):
    """Several pairs by a list: each complete or not there."""

    def setUp(self):
        super().setUp()
        slcs.make_pair(self.folder, 220, 240)
        self.out = os.path.join(self.folder, "out")

    def write_list(self, *lines):
        path = os.path.join(self.folder, "list.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# pairs\n\n" + "\n".join(lines) + "\n")
        return path

    def files(self):
        """Those of the results, hidden ones as well."""
        return sorted(os.path.relpath(os.path.join(place, name), self.out)
                      for place, _folders, names in os.walk(self.out) for name in names)

    def test_one_that_fails_does_not_keep_the_others(self):
        words = "coregister", "--pairs", self.write_list("ref.PRM sec.PRM", "ref.PRM none.PRM bad", "sec.PRM ref.PRM 'a b'"), \
            "-o", self.out
        text = gst_imaging(*words, status=3)
        self.assertIn("1 of 3 inputs failed: bad. The other 2 are complete.", text)
        self.assertEqual(sorted(os.listdir(self.out)), ["a b", "ref-sec"])
        with open(os.path.join(self.out, "ref-sec", "report.html"), encoding="utf-8") as file:
            page = file.read()
        for words_of_page in "mean coherence", "13 of 13 limits met", "ref.SLC", "Offset field", "phase (rad)":
            self.assertIn(words_of_page, page)
        self.assertNotRegex(page, "https?://")
        times = {name: os.stat(os.path.join(self.out, name)).st_mtime_ns for name in self.files()}
        self.assertIn("was complete already", gst_imaging(*words, status=3))
        self.assertEqual(times, {name: os.stat(os.path.join(self.out, name)).st_mtime_ns for name in self.files()})
        self.assertIn("has another result", gst_imaging(*words, "--looks", "4", "4", status=4))

    def test_wrong_lists(self):
        for lines, sentence in ((["ref.PRM"], "Line 3 of"), (["a b", "a b"], "of an earlier pair"), (["a b .."], "Line 3 of"),
                                (["a 'b"], "is no list"), ([], "has no pair")):
            text = gst_imaging("offsets", "--pairs", self.write_list(*lines), "-o", self.out, status=3)
            self.assertIn(sentence, text)
        self.assertFalse(os.path.exists(self.out))
        text = gst_imaging("offsets", "a", "b", "--pairs", self.write_list("a b"), "-o", self.out, status=2)
        self.assertIn("the list names the images, and there are 2 here", text)

    def test_no_property_names_a_file_to_write(self):
        """It could be an image, which it would replace."""
        for command in "offsets", "coregister", "insar", "track":
            for word in "offsets-location=sec.SLC", 'settings="settings,offsets-location=sec.SLC"':
                text = gst_imaging(command, "ref.PRM", "sec.PRM", "-o", self.out, word, *(("--days", "3") if command == "track" else ()), status=2)
                self.assertIn(f"{word}: ", text)
        self.assertFalse(os.path.exists(self.out))

    def test_an_interruption_keeps_the_pairs_before_it(self):
        pairs = self.write_list("ref.PRM sec.PRM first", "ref.PRM sec.PRM second")
        for number in signal.SIGINT, signal.SIGTERM:
            shutil.rmtree(self.out, ignore_errors=True)
            run = subprocess.Popen(
                [sys.executable, "-m", "gst_imaging", "coregister", "--pairs", pairs, "-o", self.out, "--taps", "32", "--slc"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            end = time.monotonic() + TIMEOUT
            while not glob.glob(os.path.join(self.out, ".second*", "*")) and time.monotonic() < end and run.poll() is None:
                time.sleep(0.002)
            run.send_signal(number)
            text = run.communicate(timeout=TIMEOUT)[0]
            self.assertEqual(run.returncode, -number, text)
            self.assertIn(f"Stopped by {number.name}. Complete: ", text)
            self.assertIn("out/first", text)
            self.assertEqual(os.listdir(self.out), ["first"])
            self.assertIn("first/report.html", self.files())
        text = gst_imaging("coregister", "--pairs", pairs, "-o", self.out, "--taps", "32", "--slc")
        self.assertIn("first: was complete already", text)
        self.assertEqual(sorted(os.listdir(self.out)), ["first", "second"])


class Pictures(FolderCase):
    def test_means_of_blocks(self):
        """Those of the definition, whatever the strips."""
        rng = np.random.default_rng(8)
        phase, values = rng.uniform(-np.pi, np.pi, (131, 77)).astype("f4"), rng.uniform(0, 9, (131, 77)).astype("f4")
        holes = rng.uniform(size=phase.shape) < 0.5
        holes[:6, 3:9] = True
        phase[holes], values[holes] = np.nan, 0
        for n in 1, 2, 3, 100:
            size = 131 // n or 1, 77 // n or 1
            expected = np.full((2, *size), np.nan)
            for y, x in np.ndindex(size):
                block = np.s_[n * y:n * (y + 1), n * x:n * (x + 1)]
                if not holes[block].all():
                    known = ~holes[block]
                    expected[:, y, x] = np.angle(np.exp(1j * phase[block][known]).mean()), values[block][known].mean()
            for strip in 1, 7, 64:
                with unittest.mock.patch.object(interferogram, "STRIP", strip):
                    np.testing.assert_allclose(interferogram.shrink(np, phase, n, True), expected[0], atol=1e-4)
                    np.testing.assert_allclose(interferogram.shrink(np, values, n, False), expected[1], rtol=1e-5)

    def test_colours(self):
        """As insarform's: a third of a turn is green; darker by the shade, black without data."""
        phase = np.array([[0, 2 * np.pi / 3, -2 * np.pi / 3, 0, np.nan, np.pi]])
        found = interferogram.paint(np, phase, np.array([[1, 1, 0.5, np.nan, 1, 2]]))
        self.assertEqual(found.tolist(), [[[255, 0, 0], [0, 255, 0], [0, 0, 128], [0, 0, 0], [0, 0, 0], [0, 255, 255]]])

    def test_a_long_image_has_a_smaller_picture(self):
        rng = np.random.default_rng(9)
        image = (rng.normal(size=(8100, 16)) + 1j * rng.normal(size=(8100, 16))).astype("c8")
        np.save(self.path("ref.npy"), image)
        np.save(self.path("sec.npy"), image * np.exp(2j))
        gst_imaging("insar", self.path("ref.npy"), self.path("sec.npy"), "-o", self.path("out"), "--coregistered", "--flatten", "none",
                    "--looks", "2", "2", "--filter", "0")
        self.assertEqual(os.path.getsize(self.path("out", "phase.img")), 4 * 8 * 4050)
        for name in "fringes", "coherence", "amplitude":
            with open(self.path("out", name + ".png"), "rb") as file:
                self.assertEqual(struct.unpack(">II", file.read(24)[16:]), (4, 2025))


class Refusals(unittest.TestCase):
    """check_fit() on what was measured of an image of 600 x 800 samples that is rotated by half a turn."""

    def offsets(self, points, of, rms, misfit, before=None):
        found = {"n-points": points, "rms-r": rms[0], "rms-a": rms[1], "misfit-r": misfit[0], "misfit-a": misfit[1]}
        return types.SimpleNamespace(fit="x", found=found, n=of, masked=0, properties=[], before=before,
                                     describe=lambda: f"{points} of {of} patches")

    def test_larger_templates_that_correlate_by_chance(self):
        first = self.offsets(65, 500, (9.5, 9.5), (9, 9))
        with self.assertRaisesRegex(Failure, "65 of 500 patches correlate, and with larger templates 436 of 525 patches, and these do not agree: "
                                             "they lie 4.7 columns and 6.1 lines"):
            measure.check_fit(self.offsets(436, 525, (4.659, 6.127), (8.515, 10.746), first))
        measure.check_fit(self.offsets(436, 525, (0.4, 0.4), (0.1, 0.1), first))  # low coherence
        measure.check_fit(self.offsets(436, 525, (4.659, 0.4), (4.6, 0.1)))  # steep terrain
        with self.assertRaisesRegex(Failure, "^65 of 500 patches correlate, and these do not agree"):
            measure.check_fit(first)

    def test_a_shift_is_given_where_there_is_a_place_for_it(self):
        first = self.offsets(65, 500, (9.5, 9.5), (9, 9))
        for path, words in (("sec.PRM", "or rshift and ashift in the PRM file of the secondary, help when"),
                            ("sec.npy", "A larger xsearch and ysearch help when")):
            with self.assertRaisesRegex(Failure, words):
                measure.check_fit(first, path)


if __name__ == "__main__":
    main()
