# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging oct: mirrors of known depth, every kind of file, and what it says of others."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

from support import DATA, SOURCE, TIMEOUT, Gst, command, gst_imaging, main, result_of

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata

REAL = os.path.join(os.path.dirname(DATA), "octbscan")
SAMPLES, LINES = 512, 24
LAMBDA = 800.0, 900.0


def wavelengths():
    return np.linspace(*LAMBDA, SAMPLES)


def mirror(depth_um, bscans=1, phase=0.0, seed=1, amplitude=0.1):
    """Spectra [B-scans, lines, samples] of a mirror whose phase drifts from line to line"""
    rng = np.random.default_rng(seed)
    lamp = 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2))
    drift = np.arange(bscans * LINES)[:, None] * 0.7
    fringes = amplitude * np.cos(4e3 * np.pi * depth_um / wavelengths() + drift + phase)
    spectra = lamp * (1 + fringes) + rng.normal(0, 10, (bscans * LINES, SAMPLES)) + 500
    return np.rint(spectra).astype("u2").reshape(bscans, LINES, SAMPLES)


@unittest.skipUnless(Gst.ElementFactory.find("octbscan"), "built without an FFT")
class Oct(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *words, status=0):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        return command(self.folder, "oct", *words, "-o", "out", status=status)

    def depth(self, output="out"):
        """Where the brightest sample of the mean A-scan is, by the axis of the sidecar"""
        told = metadata.sidecar(self.path(output + "/level.npy"))["quantity"]
        levels = np.load(self.path(output + "/level.npy"))
        profile = (10 ** (levels / 10)).mean((0, 2))
        self.assertEqual(told["axes"][1]["unit"], "um")
        return metadata.places(told["axes"][1], len(profile))[profile.argmax()]

    def test_another_width_or_byte_order_is_told(self):
        spectra = (mirror(150.0, bscans=4) // 8).astype("<u2")  # 12 bits
        for order, dtype in ("<u2", "u16"), (">u2", "u16be"):
            spectra.astype(order).tofile(self.path("scan.raw"))
            other = {"u16": "u16be", "u16be": "u16"}[dtype]
            for samples, given, sentence in (SAMPLES, dtype, None), (SAMPLES, other, f"is it --dtype {dtype}?"), (
                    500, dtype, f"is it --samples {SAMPLES}?"), (2 * SAMPLES, dtype, f"is it --samples {SAMPLES}?"), (
                    6 * SAMPLES, dtype, f"is it --samples {SAMPLES}?"), (
                    500, other, f"is it --samples {SAMPLES} --dtype {dtype}?"), (640, other, f"is it --samples {SAMPLES} --dtype {dtype}?"):
                err = self.call("scan.raw", "--samples", str(samples), "--lines", "12", "--dtype", given, "--lambda", "800", "900")
                self.assertEqual("is it --" in err, sentence is not None, (samples, given, err))
                self.assertIn(sentence or "", err)

    def repeats(self):
        """Writes 2 places, 4 repeats each, of scatterers of which those from 150 to 230 um move by 0.06 mm/s in 1 ms; the whole sample
        moves, too"""
        rng = np.random.default_rng(3)
        k = 2e3 * np.pi / wavelengths()
        spectra = np.empty((8, LINES, SAMPLES))
        for place in range(2):
            z, amplitude = rng.uniform(60, 450, (LINES, 300)), rng.rayleigh(0.005, (LINES, 300))
            moved = np.where(abs(z - 190) < 40, 0.06, 0)
            for repeat in range(4):
                at = z + repeat * moved + rng.uniform(-0.05, 0.05)
                spectra[4 * place + repeat] = [1 + a @ np.cos(2 * 1.38 * np.outer(depth, k)) for a, depth in zip(amplitude, at)]
        spectra = 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2)) * spectra + rng.normal(0, 5, spectra.shape) + 500
        spectra = np.rint(spectra).astype("u2")
        np.save(self.path("r.npy"), spectra)
        return spectra

    def test_velocity_of_repeats(self):
        self.repeats()
        flow = ("--angio", "doppler", "--repeats", "4", "--interval-us", "1000", "refractive-index=1.38")
        for extra in [], ["--complex", "--enface"]:
            self.call("r.npy", "--lambda", "800", "900", *flow, *extra)
            told = metadata.sidecar(self.path("out/angio.npy"))
            values = np.load(self.path("out/angio.npy"))
            depth = metadata.places(told["quantity"]["axes"][1], values.shape[1])
            self.assertEqual((told["quantity"]["unit"], told["frames-missing"], values.shape), ("mm/s", 0, (2, SAMPLES // 2, LINES)))
            found = values[:, abs(depth - 190) < 30].mean()
            still = abs(values[:, (depth > 260) & (depth < 430)].mean())
            print(f"# velocity {found:.4f} of 0.06 mm/s, beside it {still:.4f}")
            self.assertLess(abs(found / 0.06 - 1), 0.03)
            self.assertLess(still, 0.001)
            result = result_of(self.path("out"))
            self.assertEqual((result["sets"], result["flow-unit"]), (2, "mm/s"))
            self.assertGreater(result["repeat-correlation"], 0.8)
            self.assertTrue(os.path.exists(self.path("out/angio.png")))
            for name in "complex.npy", "angio-enface.npy", "angio-enface.png":
                self.assertEqual(os.path.exists(self.path("out/" + name)), bool(extra), name)
        self.assertEqual(np.load(self.path("out/angio-enface.npy")).reshape(-1, LINES).shape, (2, LINES))

    def test_repeats_back_and_forth_are_compared_place_by_place(self):
        spectra = self.repeats()
        self.call("r.npy", "--lambda", "800", "900", "--angio", "decorrelation", "--repeats", "4")
        correlation, flow = result_of(self.path("out"))["repeat-correlation"], np.load(self.path("out/angio.npy"))
        spectra[1::2] = spectra[1::2, ::-1]
        np.save(self.path("r.npy"), spectra)
        words = ("r.npy", "--lambda", "800", "900", "bidirectional=true", "refractive-index=1.38", "--repeats", "4", "--angio")
        self.assertNotIn("two places", self.call(*words, "decorrelation"))
        np.testing.assert_array_equal(np.load(self.path("out/angio.npy")), flow)
        self.assertAlmostEqual(result_of(self.path("out"))["repeat-correlation"], correlation, 6)
        self.assertIn("Flow has the right size in its middle alone", self.call(*words, "doppler", "--interval-us", "1000"))

    def test_neighbouring_lines_of_several_cameras_are_not_compared(self):
        self.repeats()
        words = ("r.npy", "--lambda", "800", "900", "--angio", "doppler", "--repeats", "1", "--angio-set", "pairs=ascans", "--interval-us", "10")
        self.assertIn("2 cameras took them in turns", self.call(*words, "cameras=2", status=(1, 3)))
        self.call(*words)

    def test_wrong_repeats_are_told(self):
        spectra, sentence = self.repeats(), "neighbouring repeats are less alike"
        flow = ("--lambda", "800", "900", "--angio", "complex-decorrelation", "--repeats")
        for order, said in (([0, 1, 2, 3, 5, 4, 6, 7], "In 1 of 2 sets (2), neighbouring repeats are less alike than others"),
                                ([0, 1, 2, 3, 0, 4, 5, 6], "In 1 of 2 sets (2), the correlation of neighbouring repeats is below 0.5"),
                                ([0, 1, 2, 3, 4, 5, 5, 7], "In 1 of 2 sets (2), two neighbouring repeats are equal bit for bit")):
            np.save(self.path("r.npy"), spectra[order])
            self.assertIn(said, self.call("r.npy", *flow, "4"))
        for order, told, least, most in ((range(8), False, 0.8, 1), ([1, 0, 3, 2, 5, 4, 7, 6], True, 0.6, 1),
                                         ([0, 4, 1, 5, 2, 6, 3, 7], True, 0, 0.5), ([2, 3, 4, 5, 6, 7], False, 0, 0.5)):
            np.save(self.path("r.npy"), spectra[list(order)])
            err = self.call("r.npy", *flow, "4")
            self.assertEqual(sentence in err, told, (order, err))
            self.assertEqual("which is no multiple of --repeats 4: the last 2 are left out" in err, len(order) == 6, err)
            self.assertTrue(least < result_of(self.path("out"))["repeat-correlation"] < most, order)
        for words, says in ((["--angio", "doppler"], "--angio needs --repeats"), (["--repeats", "4"], "--repeats needs --angio"),
                            (["--angio", "doppler", "--repeats", "2", "--angio-set", "repeats=3"], "is --repeats of this command")):
            self.assertIn(says, self.call("r.npy", *words, status=2))
        self.assertIn("has 6 B-scans, and --repeats is 8", self.call("r.npy", *flow, "8", status=3))

    def test_smooth_layers_do_not_tell_repeats(self):
        """One layer that tilts slowly is alike in all places"""
        depth = 200 + 0.5 * np.arange(6)[:, None, None] + 0.2 * np.arange(LINES)[:, None]
        spectra = 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2)) * (1 + 0.1 * np.cos(4e3 * np.pi * depth / wavelengths()))
        noise = np.random.default_rng(4).normal(0, 5, spectra.shape)
        flow = ("--lambda", "800", "900", "--angio", "complex-decorrelation", "--repeats", "3")
        for places, met in (np.arange(6), None), (np.repeat([0, 5], 3), True):
            np.save(self.path("r.npy"), np.rint(spectra[places] + noise + 500).astype("u2"))
            printed = self.call("r.npy", *flow)
            self.assertGreater(result_of(self.path("out"))["repeat-correlation"], 0.5)
            self.assertEqual(self.figure("change from set to set")["met"], met, printed)
            self.assertEqual("change from set to set" in printed, met is None, printed)

    def test_a_width_that_is_told_is_that_of_one_spectrum(self):
        """Several strong layers that are tilted: 4 or more spectra are as alike as one"""
        lines, rng = np.arange(200)[:, None], np.random.default_rng(2)
        lamp = 1500 * np.exp(-(((wavelengths() - 850) / 30) ** 2))
        fringes = sum(a * np.cos(4e3 * np.pi * (z + 0.05 * lines) / wavelengths()) for z, a in ((250, 0.05), (330, 0.04), (500, 0.03)))
        spectra = np.rint(lamp * (1 + fringes) + rng.normal(0, 6, (200, SAMPLES)) + 80).astype("<u2")
        spectra.tofile(self.path("scan.raw"))
        for given in SAMPLES // 2, 500, 4 * SAMPLES, SAMPLES - 1, SAMPLES + 1, 2 * (SAMPLES + 1):
            err = self.call("scan.raw", "--samples", str(given), "--lines", "20", "--lambda", "800", "900")
            self.assertIn(f"is it --samples {SAMPLES}?", err)
        self.assertNotIn("is it --", self.call("scan.raw", "--samples", str(SAMPLES), "--lines", "200", "--lambda", "800", "900"))

    def test_layouts_of_signals_around_0_are_checked(self):
        """The strength of the fringes of a swept source repeats, where its light is not in the samples; of noise nothing does"""
        rng, n, lines = np.random.default_rng(4), np.linspace(-1, 1, 700), np.arange(120)[:, None]
        fringes = 9000 * np.exp(-((n / 0.65) ** 4)) * (np.cos(190 * n + lines) + 0.5 * np.cos(320 * n + 0.8 * lines)) + rng.normal(0, 20, (120, 700))
        for kind, dtype, other in ("<i2", "i16", "i16be"), (">i2", "i16be", "i16"):
            np.rint(fringes).astype(kind).tofile(self.path("scan.raw"))
            for samples, given, sentence in ((700, dtype, None), (700, other, f"is it --dtype {dtype}?"), *((width, dtype, "is it --samples 700?")
                                             for width in (699, 1400) if dtype == "i16")):
                err = self.call("scan.raw", "--samples", str(samples), "--lines", "60", "--dtype", given)
                self.assertEqual("is it --" in err.replace("is it --dtype u16", ""), sentence is not None, (samples, given, err))
                self.assertIn(sentence or "", err)
                self.assertEqual((self.figure("layout of raw samples") or {}).get("met"), None if sentence else True)
        rng.integers(-2000, 2000, (120, 700), "i2").tofile(self.path("scan.raw"))
        err = self.call("scan.raw", "--samples", "700", "--lines", "60", "--dtype", "i16")
        self.assertIn("not checked: layout of raw samples", err)
        self.assertNotIn("is it --", err)

    def test_raw_samples_of_another_type_are_told(self):
        spectra = mirror(150.0, bscans=4)
        for dtype, kind, scale in ("u8", "u1", 64), ("u16", "<u2", 1), ("f32", "<f4", 1), ("f32be", ">f4", 1):
            (spectra // scale).astype(kind).tofile(self.path("scan.raw"))
            for given in ("u16", "u8", "f32") if dtype == "u16" else ("u16",):
                err = self.call("scan.raw", "--samples", str(SAMPLES), "--lines", "12", "--dtype", given, status=(0, 1))
                self.assertEqual("is it --" in err, given != dtype, (dtype, given, err))
                self.assertIn(f"is it --dtype {dtype}?" if given != dtype else "", err)

    def test_samples_of_the_other_sign_are_told(self):
        """A swept source around 0, whose samples with a sign are taken for ones without, and the other way round"""
        rng, n = np.random.default_rng(3), np.arange(SAMPLES)
        fringes = 6000 * np.exp(-(((n - 256) / 150) ** 2)) * np.cos(0.9 * n + rng.uniform(0, 6, (40, 1))) + rng.normal(0, 15, (40, SAMPLES))
        signed, light = np.rint(fringes).astype("<i2"), np.rint(mirror(150)[0] * 4.0).clip(0, 65000).astype("<u2")
        for values, given, sentence in (
                (signed, "u16", "is it --dtype i16?"), (signed, "i16", None), (signed.astype(">i2"), "u16be", "is it --dtype i16be?"),
                (signed.astype(">i2"), "i16be", None), (light, "u16", None), (light, "i16", "is it --dtype u16?")):
            values.tofile(self.path("scan.raw"))
            err = self.call("scan.raw", "--samples", str(SAMPLES), "--lines", str(len(values)), "--dtype", given)
            self.assertEqual("is it --" in err, sentence is not None, (given, err))
            self.assertIn(sentence or "", err)
        np.save(self.path("scan.npy"), signed.view("u2"))
        self.assertIn('spectra.view("int16")', self.call("scan.npy"))
        np.save(self.path("scan.npy"), signed)
        self.assertNotIn("spectra.view", self.call("scan.npy"))
        for values, is_turned in (light.byteswap(), True), (light.astype(">u2"), False):
            np.save(self.path("scan.npy"), values)
            self.assertEqual("written with the high byte first" in self.call("scan.npy"), is_turned)

    def test_a_mirror_is_where_it_is(self):
        for depth in 150.0, 320.0:
            np.save(self.path("m.npy"), mirror(depth, bscans=3))
            self.call("m.npy", "--lambda", "800", "900", "scale=4", "window=hann")
            result = result_of(self.path("out"))
            self.assertEqual((result["b-scans"], result["depth-unit"]), (3, "um"))
            self.assertLess(abs(self.depth() - depth), result["depth-step"])
            self.assertLess(abs(result["brightest-depth"] - depth), 0.3)
            # half of the intensity of a Gaussian lamp of 1/e at 30 nm, with a Hann window: 6 to 12 um
            self.assertTrue(6 < result["width"] < 12, result["width"])
            self.assertEqual([f["name"] for f in result["figures"] if f["met"] is False], [])
            told = [(s["name"], s["value"]) for s in result["settings"]]
            for setting in ("scale", "4"), ("window", "hann"), ("lambda", "800 900"):
                self.assertIn(setting, told)

    def test_the_width_does_not_depend_on_the_steps(self):
        np.save(self.path("m.npy"), mirror(321.6))  # between two depths of scale=1
        widths = []
        for scale in 1, 2, 8:
            self.call("m.npy", "--lambda", "800", "900", f"scale={scale}", "background=rolling")
            widths.append(result_of(self.path("out"))["width"])
        np.testing.assert_allclose(widths, widths[-1], rtol=0.12)

    def test_the_report_says_what_was_subtracted(self):
        np.save(self.path("m.npy"), mirror(200))
        for words, told in ((), "the mean of each B-scan"), (("background=mean",), "--background FILE keeps them"), (("background=none",), "nothing"):
            self.call("m.npy", "--lambda", "800", "900", *words)
            self.assertIn(told, dict(result_of(self.path("out"))["facts"])["subtracted from the spectra"])

    def test_spectra_that_are_not_what_they_are_taken_for(self):
        spectra = np.concatenate([mirror(200, bscans=1, seed=seed) for seed in range(4)], 1)
        noise = np.random.default_rng(9).normal(0, 10, (1, 40, SAMPLES))
        at_rest = (mirror(200)[:, :1] + noise).clip(0).astype("u2")
        lost = spectra.copy()
        lost[0, 5:8] = 0
        for name, values, sentence in (
                ("right", spectra, None), ("lost", lost, f"3 of {spectra.shape[1]} spectra hold zeros alone"),
                ("turned", spectra.swapaxes(1, 2), "are lines and samples exchanged?"),
                ("at-rest", at_rest, None), ("at-rest-reversed", at_rest[..., ::-1], "with the wavelengths the other way round: --lambda 900 800."),
                ("reversed", spectra[..., ::-1], "with the wavelengths the other way round: --lambda 900 800.")):
            np.save(self.path(name + ".npy"), values)
            self.call(name + ".npy", "--lambda", "800", "900", "scale=4", "background=rolling")
            warnings = [told for told in result_of(self.path("out"))["warnings"] if "spectra" in told or "exchanged" in told or "round" in told]
            self.assertEqual(len(warnings), 0 if sentence is None else 1, warnings)
            self.assertIn(sentence or "", "".join(warnings))
        self.assertIn("swept source with a k-clock are even in wavenumber: --lambda would blur them", self.call("right.npy"))
        lost.astype("<u2").tofile(self.path("lost.raw"))
        printed = self.call("lost.raw", "--samples", str(SAMPLES), "--lines", str(spectra.shape[1]), "--lambda", "800", "900")
        self.assertIn(f"3 of {spectra.shape[1]} spectra hold zeros alone", printed)

    def test_wavelengths_that_do_not_fit_are_told(self):
        """Of layers with dispersion the wrong way, and of samples that are even in wavenumber"""
        rng, lines, s = np.random.default_rng(6), 40, np.linspace(-1, 1, SAMPLES)
        lamp = 12000 * np.exp(-((s / 0.6) ** 2))
        places = np.stack([np.full(lines, z) + rng.uniform(-5, 5, lines) for z in (120.0, 180.0, 260.0)])

        def spectra(k, d2):
            fringes = sum(np.cos(2 * k * z[:, None] - d2 * np.linspace(-1, 1, SAMPLES) ** 2) for z in places)
            return np.rint(lamp * (1 + 0.05 * fringes) + rng.normal(0, 10, (lines, SAMPLES)) + 500).astype("u2")

        k = 2e3 * np.pi / wavelengths()
        for name, values in ("dispersed", spectra(k, 8.0)), ("reversed", spectra(k, 3.0)), ("clocked", spectra(np.linspace(k[0], k[-1], SAMPLES), 0.0)):
            np.save(self.path(name + ".npy"), values)
        for name, ends in ("dispersed", ("800", "900")), ("dispersed", ("900", "800")), ("reversed", ("800", "900")):
            self.assertNotIn("times as sharp", self.call(name + ".npy", "--lambda", *ends))  # 8 radians look like either way
        self.assertIn("--lambda 800 900.", self.call("reversed.npy", "--lambda", "900", "800"))
        self.assertNotIn("times as sharp", self.call("clocked.npy"))
        printed = self.call("clocked.npy", "--lambda", "800", "900")
        self.assertIn("even in wavenumber, as those of a swept source", printed)
        line = next(word for word in printed.split() if word.startswith("k-polynomial=")).rstrip(".")
        with open(self.path("clock.ini"), "w", encoding="utf-8") as file:
            file.write(f"[camera]\n{line}\n")
        width = result_of(self.path("out"))["width"]
        self.assertNotIn("wavenumber", self.call("clocked.npy", "--calibration", "clock.ini"))
        self.assertEqual(result_of(self.path("out"))["depth-unit"], "um")
        self.assertLess(result_of(self.path("out"))["width"], 0.7 * width)

    def figure(self, name):
        """Returns: of the last result, a figure; None without"""
        return next((figure for figure in result_of(self.path("out"))["figures"] if figure["name"] == name), None)

    def test_clipped_samples_are_found_whatever_their_largest_value(self):
        x = mirror(150.0, bscans=4, amplitude=0.4).astype(float)
        clipped = [np.clip(x * top / 9000, 0, top).astype("u2") for top in (4095, 4000, 8191)]
        clipped += [clipped[0] << 4, (clipped[0].astype(int) - 95).astype("u2"), np.clip((x - 6000) * 9, -32768, 32767).astype("i2"),
                    np.clip((x - 6000), -2048, 2047).astype("i2"), np.clip(x / 9000, 0, 1).astype("f4")]
        for values in clipped:
            np.save(self.path("s.npy"), values)
            printed, found = self.call("s.npy", "--lambda", "800", "900"), self.figure("saturated samples")
            share = np.mean(values == values.max()) + (np.mean(values == values.min()) if values.dtype.kind == "i" else 0)
            self.assertGreater(share, 0.1)
            self.assertAlmostEqual(found["value"], 100 * share, 6, (values.dtype, values.max()))
            self.assertFalse(found["met"])
            self.assertIn("saturated samples", printed)
        few = np.random.default_rng(3).choice(16, x.shape, p=np.arange(16, 0, -1) / 136).astype("u1")  # 0.7 % have the largest value
        floats = few.astype("f4")
        for values, met in (x.astype("u2"), True), ((x - 6000).astype("i2"), True), (x.astype("f4"), True), (few, True), (floats, None):
            np.save(self.path("s.npy"), values)
            self.call("s.npy", "--lambda", "800", "900")
            self.assertEqual(self.figure("saturated samples")["met"], met, values.dtype)

    def test_the_direction_of_a_calibration_is_checked_where_the_spectra_tell(self):
        rng, lines = np.random.default_rng(5), np.arange(48)[:, None]
        layers = 250 + 0.5 * lines, 420 + 0.9 * lines
        lamp, k = 1500 * np.exp(-(((wavelengths() - 850) / 30) ** 2)), 2e3 * np.pi / wavelengths()
        tissue = [250 + rng.uniform(0, 200, (48, 1)) for _ in range(200)]
        np.savetxt(self.path("w.txt"), wavelengths())
        with open(self.path("ends.ini"), "w", encoding="utf-8") as file:
            file.write("[camera]\nlambda-first=800\nlambda-last=900\n")
        with open(self.path("clock.ini"), "w", encoding="utf-8") as file:
            file.write("[camera]\nk-polynomial=0.00118;-0.00007\n")
        for name, depths, amplitude in ("layers", layers, 0.05), ("tissue", tissue, 0.005):
            spectra = lamp * (1 + amplitude * sum(np.cos(2 * k * z) for z in depths)) + rng.normal(0, 6, (48, SAMPLES)) + 80
            for end, values in ("", spectra), ("-turned", spectra[:, ::-1]):
                np.save(self.path("s.npy"), np.rint(values).astype("u2"))
                for words in (("--wavelengths", "w.txt"), ("--calibration", "ends.ini"), ("--calibration", "clock.ini"))[:1 if name == "tissue" else None]:
                    printed = self.call("s.npy", *words)
                    found = self.figure("direction of the wavelengths")
                    if words[1] == "clock.ini":
                        self.assertIsNone(found)  # samples that are even in wavenumber have none
                        continue
                    met = None if name == "tissue" else not end
                    self.assertEqual(found["met"], met, (name, end, words))
                    self.assertEqual("the other way round" in printed, met is False, printed)
                    self.assertEqual("not checked: direction of the wavelengths" in printed, met is None, printed)

    def test_wavelengths_that_were_exchanged_are_told(self):
        """A curve of wavenumbers that is turned over leaves depths as sharp; the steps at its ends tell"""
        for words, met, of_image in (("800", "900"), True, True), (("900", "800"), False, False), (("849", "851"), None, None):
            printed, _depths = self.calibrate("near.npy", "far.npy", "--lambda", *words, near=(150.0,), far=(320.0,))
            figure = self.figure("direction of the wavelengths")
            self.assertEqual(figure["met"], met, (words, figure))
            self.assertEqual("were the first and the last wavelength exchanged?" in printed, met is False, printed)
            self.assertEqual("not checked: direction of the wavelengths" in printed, met is None, printed)
            if met is not None:
                self.assertAlmostEqual(figure["value"], 1.266, delta=0.01)
            shutil.copy(self.path("out/calibration.ini"), self.path("new.ini"))
            self.call("far.npy", "--calibration", "new.ini", "background=rolling")
            self.assertTrue(self.figure("order of the samples")["met"], words)
            self.assertEqual(self.figure("direction of the wavelengths")["met"], of_image, words)
        # one position has the dispersion in its curve
        self.calibrate("near.npy", "--lambda", "900", "800")
        self.assertIn("one position", self.figure("direction of the wavelengths")["about"])

    def test_the_direction_is_not_checked_without_light(self):
        spectra = mirror(150.0, bscans=2).astype("f4")
        for name, value in ("nan", np.nan), ("inf", np.inf), ("zeros", 0), ("constant", 400):
            first = spectra.copy()
            if np.isfinite(value):
                first[0] = value
            else:
                first[0, 3, 200] = value
            np.save(self.path("s.npy"), first)
            printed = self.call("s.npy", "--lambda", "800", "900")
            self.assertIsNone(self.figure("direction of the wavelengths")["met"], name)
            self.assertIn("not checked: direction of the wavelengths", printed)
            self.assertNotIn("RuntimeWarning", printed)  # of NumPy
            self.assertEqual(len(np.load(self.path("out/level.npy"))), 2)

    def test_a_scale_of_depths_that_nothing_checked_is_told(self):
        np.save(self.path("w.npy"), wavelengths())
        for name, depth in ("near", 150.0), ("far", 320.0):
            np.save(self.path(name + ".npy"), self.dispersed(depth, 9.0))
        for words, is_told in ((("far.npy", "--lambda", "800", "900"), True), (("far.npy", "--wavelengths", "w.npy"), False), (("far.npy",), False), (
                ("calibrate", "near.npy", "far.npy", "--lambda", "800", "900"), True), (
                ("calibrate", "near.npy", "far.npy", "--lambda", "800", "900", "--travel-um", "170"), False)):
            self.assertEqual("scale of depths" in self.call(*words), is_told, words)
            self.assertEqual(bool(self.figure("scale of depths")), is_told, words)

    def two_cameras(self, lines=400):
        """Spectra [lines, samples] of a tilted layer by two cameras of other wavelengths and light that take turns; writes two.ini"""
        rng, s, spectra = np.random.default_rng(8), np.linspace(-1, 1, SAMPLES), np.empty((lines, SAMPLES))
        with open(self.path("two.ini"), "w", encoding="utf-8") as file:
            file.write("[camera 0]\nlambda-first=800\nlambda-last=900\n[camera 1]\nlambda-first=815\nlambda-last=890\n")
        for camera, (first, last, place) in enumerate(((800, 900, -0.1), (815, 890, 0.15))):
            depths = 150 + 0.2 * np.arange(camera, lines, 2)[:, None]
            lamp = 3000 * np.exp(-(((s - place) / 0.6) ** 2))
            spectra[camera::2] = lamp * (1 + 0.1 * np.cos(4e3 * np.pi * depths / np.linspace(first, last, SAMPLES)))
        return np.rint(spectra + rng.normal(0, 5, spectra.shape) + 90).astype("<u2")

    def test_a_lost_line_is_told(self):
        spectra = self.two_cameras()
        raw = ("--samples", str(SAMPLES), "--lines", "100", "--calibration", "two.ini", "k-range=common")
        for at, cameras, left in (150, 2, True), (150, 1, True), (0, 2, True), (None, 2, False):
            kept = spectra if at is None else np.delete(spectra, at, axis=0)
            kept.tofile(self.path("scan.raw"))
            printed = self.call("scan.raw", *raw, f"cameras={cameras}")
            self.assertEqual("99 lines are left over, 1 too few for another one" in printed, left, printed)
            self.assertEqual("and of the other cameras" in printed, left and cameras == 2, printed)
            self.assertNotIn("is it --", printed)
            # a recording that begins with the other camera has no exchange
            self.assertEqual("each camera has the light of another one" in printed, cameras == 2 and at == 150, printed)
        lost = np.delete(spectra, 150, axis=0)[:300]
        np.save(self.path("scan.npy"), lost.reshape(3, 100, SAMPLES))
        self.assertIn("From about line 160 on", self.call("scan.npy", "--calibration", "two.ini", "k-range=common", "cameras=2"))
        np.save(self.path("lines.npy"), np.delete(spectra, 150, axis=0))
        printed = self.call("lines.npy", "--lines", "100", "--lambda", "800", "900")
        self.assertIn("has 3 B-scans of 100 lines, and 99 lines are left over, 1 too few for another one", printed)
        self.assertNotIn("--offset", printed)
        with open(self.path("header.raw"), "wb") as file:
            file.write(b"h" * 100 + spectra.tobytes())
        self.assertIn("100 bytes are left over. Is there a header (--offset)", self.call("header.raw", *raw, "cameras=2"))

    def test_cameras_of_other_wavelengths_are_told_of_the_common_range(self):
        np.save(self.path("scan.npy"), self.two_cameras().reshape(4, 100, SAMPLES))
        words = ("scan.npy", "--calibration", "two.ini", "cameras=2")
        self.assertIn("k-range=common resamples all", self.call(*words))
        self.assertNotIn("k-range", self.call(*words, "k-range=common"))
        self.assertEqual(result_of(self.path("out"))["depth-unit"], "um")

    def test_a_background_that_is_none_is_told(self):
        np.save(self.path("m.npy"), mirror(200))
        lamp = 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2)) + 500
        for name, dark, sentence in ("zero", 0 * lamp, "holds zeros alone"), ("double", 2 * lamp, "have 0.5 times the light of double.npy"), (
                "right", lamp, None), ("brighter", 1.1 * lamp, None), ("much-brighter", 1.15 * lamp, "have 0.87 times the light"), (
                "offset", lamp + 300, None), ("shifted", np.roll(lamp, 12), "has another form than shifted.npy"):
            np.save(self.path(name + ".npy"), dark)
            printed = self.call("m.npy", "--lambda", "800", "900", "--background", name + ".npy")
            self.assertEqual(f"{name}.npy" in printed.replace("m.npy", ""), sentence is not None, printed)
            self.assertIn(sentence or "", printed)

    def test_a_raw_file_with_a_header_is_the_same(self):
        spectra = mirror(200, bscans=2)
        np.save(self.path("m.npy"), spectra)
        self.call("m.npy", "--lambda", "800", "900")
        levels = np.load(self.path("out/level.npy"))
        raw = ("--samples", str(SAMPLES), "--lines", str(LINES), "--lambda", "800", "900")
        for dtype, kind, header in (("u16", "<u2", b""), ("u16be", ">u2", b""), ("u16", "<u2", b"H" * 100), ("f32", "<f4", b""),
                                    ("i16", "<i2", b"")):
            with open(self.path("m.bin"), "wb") as file:
                file.write(header + spectra.astype(kind).tobytes())
            self.call("m.bin", *raw, "--dtype", dtype, "--offset", str(len(header)))
            np.testing.assert_allclose(np.load(self.path("out/level.npy")), levels, atol=2e-3, err_msg=f"{dtype} {len(header)}")
        with open(self.path("m.bin"), "wb") as file:
            file.write(b"H" * 512 + spectra.tobytes())
        self.assertIn(f'"m.bin" has 2 B-scans of {LINES} lines of {SAMPLES} samples, and 512 bytes are left over',
                      self.call("m.bin", *raw))
        self.assertIn("a B-scan of 60 lines of 512 samples of u16 has 61440",
                      self.call("m.bin", "--samples", "512", "--lines", "60", status=3))

    def test_formats_are_the_same(self):
        spectra = mirror(200, bscans=2)
        np.save(self.path("m.npy"), spectra)
        self.call("m.npy")
        levels = np.load(self.path("out/level.npy"))
        for kind, name in ("tiff", "m.tif"), ("fits", "m.fits"):
            if kind in os.environ["FORMATS"].split():
                subprocess.run([os.environ["ARRAY_TOOL"], self.path("m.npy"), self.path(name)], check=True)
                self.call(name)
                np.testing.assert_array_equal(np.load(self.path("out/level.npy")), levels, name)
        for kind in "f8", "i4":
            np.save(self.path("m.npy"), spectra.astype(kind))
            self.call("m.npy")
            np.testing.assert_allclose(np.load(self.path("out/level.npy")), levels, atol=2e-3, err_msg=kind)
        np.savez(self.path("m.npz"), spectra=spectra)
        self.call("m.npz", "--enface")
        self.assertEqual(np.load(self.path("out/enface.npy")).shape, (1, 2, LINES))
        np.testing.assert_array_equal(np.load(self.path("out/level.npy")), levels)
        np.save(self.path("one.npy"), spectra.reshape(-1, SAMPLES))
        self.call("one.npy", "--lines", str(LINES))
        np.testing.assert_array_equal(np.load(self.path("out/level.npy")), levels)

    def width(self, spectra, k, phase=0.0):
        """Returns: float64, of the peak at half of its intensity, in depths of the grid of octbscan: of spectra [lines, samples]
        whose wavenumbers are k, with a phase over them that is taken off"""
        fringe = np.fft.fft(spectra[0] - spectra.mean(0)) if len(spectra) > 1 else np.fft.fft(spectra[0] - spectra[0].mean())
        fringe[0:6] = 0
        fringe[SAMPLES // 2:] = 0
        fringe = np.fft.ifft(fringe)
        order = np.argsort(k)
        even = np.linspace(k.min(), k.max(), SAMPLES)
        z = np.interp(even, k[order], np.abs(fringe)[order]) * np.exp(1j * np.interp(even, k[order], np.unwrap(np.angle(fringe))[order]))
        power = np.abs(np.fft.fft(z * np.exp(1j * phase), 64 * SAMPLES)) ** 2
        power = np.roll(power, len(power) // 2 - power.argmax())
        above = np.flatnonzero(power > power.max() / 2)
        return (above[-1] - above[0] + 1) / 64

    def dispersed(self, depth_um, d2, bow=0.0, second=0.0):
        """A mirror like mirror(), with the phase d2 u^2 over the wavenumbers, beyond zero delay where the depth is negative; bow: nm that the
        middle of the spectrum is off a line; second: the amplitude of a second reflector 8 um away"""
        k = 2e3 * np.pi / (wavelengths() + bow * (1 - np.linspace(-1, 1, SAMPLES) ** 2))
        u = 2 * (k - k[0]) / (k[-1] - k[0]) - 1
        lamp = 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2))
        lines = np.arange(LINES)[:, None] * 0.7
        rng = np.random.default_rng(4)
        # wavenumbers fall with the samples, and a fringe is read as one that rises
        fringes = np.cos(2 * k * depth_um - d2 * u ** 2 + lines) + second * np.cos(2 * k * (depth_um + 8) - d2 * u ** 2 + lines)
        return np.rint(500 + lamp * (1 + 0.1 * fringes) + rng.normal(0, 10, (LINES, SAMPLES))).astype("u2")

    def test_two_mirrors_calibrate(self):
        for name, depth in ("near", 150.0), ("far", 320.0):
            np.save(self.path(name + ".npy"), self.dispersed(depth, 9.0))
        self.call("calibrate", "near.npy", "far.npy", "--lambda", "790", "912")
        result = result_of(self.path("out"))
        self.assertEqual([f["name"] for f in result["figures"] if f["met"] is False], [])
        self.assertLess(result["width-over-limit"], 1.01)
        self.assertLess(result["phase-error"], 0.05)
        positions = result["mirrors"][0]
        self.assertGreater(positions[0]["width-before"], 2 * positions[0]["width"])
        # 790 to 912 nm is what the user thinks; the fringes say how wavenumbers go on between
        span = abs(1 / 790 - 1 / 912) / abs(1 / 800 - 1 / 900)
        for position, depth in zip(positions, (150, 320)):
            self.assertLess(abs(position["depth-um"] * span / depth - 1), 0.02)
        # the same width as float64 with the true wavenumbers and dispersion
        k = 2e3 * np.pi / wavelengths()
        u = 2 * (np.linspace(k.min(), k.max(), SAMPLES) - k[0]) / (k[-1] - k[0]) - 1
        for name, position in zip(("near", "far"), positions):
            true = self.width(np.load(self.path(name + ".npy")).astype(float)[:1], k, -9.0 * u ** 2)
            self.assertLess(abs(position["width"] / true - 1), 0.03, (position["width"], true))
        shutil.copy(self.path("out/calibration.ini"), self.path("new.ini"))
        self.call("near.npy", "--calibration", "new.ini", "scale=8", "background=rolling", "background-reach=6", "upsample=512")
        levels = np.load(self.path("out/level.npy"))[0]
        above = [np.flatnonzero(a > a.max() - 3.0103) for a in levels[200:].T]
        width = np.median([(a[-1] - a[0] + 1) / 8 for a in above])
        self.assertLess(abs(width / positions[0]["width"] - 1), 0.1, (width, positions[0]["width"]))

    def test_a_calibration_is_of_one_number_of_samples(self):
        for name, depth in ("near", 150.0), ("far", 320.0):
            np.save(self.path(name + ".npy"), self.dispersed(depth, 9.0))
        self.call("calibrate", "near.npy", "far.npy", "--lambda", "800", "900")
        with open(self.path("out/calibration.ini"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn(f"samples={SAMPLES}\n", text)
        np.save(self.path("cut.npy"), self.dispersed(320.0, 9.0)[:, 16:-16])
        for name, lines in ("new", text), ("old", text.replace(f"samples={SAMPLES}\n", "")):
            with open(self.path(name + ".ini"), "w", encoding="utf-8") as file:
                file.write(lines)
        sentence = f"was made from spectra of {SAMPLES} samples, but these have {SAMPLES - 32}"
        self.assertIn(sentence, self.call("cut.npy", "--calibration", "new.ini", status=3))
        self.assertNotIn("samples of the calibration", self.call("far.npy", "--calibration", "new.ini"))
        self.assertNotIn(sentence, self.call("cut.npy", "--calibration", "new.ini", "--lambda", "803", "897"))
        self.assertIn("samples of the calibration", self.call("cut.npy", "--calibration", "old.ini"))

    def calibrate(self, *words, **mirrors):
        """mirrors: their depths, or depths and more for dispersed(). Returns: what was printed, and the depths found"""
        for name, given in mirrors.items():
            np.save(self.path(name + ".npy"), self.dispersed(given, 9.0, 4.0) if np.isscalar(given) else self.dispersed(given[0], 9.0, *given[1:]))
        printed = self.call("calibrate", *words)
        return printed, [position["depth-um"] for position in result_of(self.path("out"))["mirrors"][0]]

    def test_a_known_travel_gives_the_scale_of_depths(self):
        """The wavelengths of a spectrometer that are not on a line leave depths off"""
        _printed, depths = self.calibrate("near.npy", "far.npy", "--lambda", "800", "900", near=150.0, far=320.0)
        self.assertGreater(abs(depths[1] / 320 - 1), 0.005)
        _printed, depths = self.calibrate("near.npy", "far.npy", "--lambda", "800", "900", "--travel-um", "170")
        np.testing.assert_allclose(depths, (150, 320), rtol=1e-3)
        self.assertTrue(self.figure("depths")["met"])
        shutil.copy(self.path("out/calibration.ini"), self.path("new.ini"))
        printed = self.call("calibrate", "near.npy", "far.npy", "--lambda", "800", "900", "--travel-um", "199")  # 17 % too far
        self.assertIn("Are the wavelengths or the travel wrong", printed)
        self.assertFalse(self.figure("depths")["met"])
        self.call("far.npy", "--calibration", "new.ini", "scale=4", "background=rolling")
        self.assertLess(abs(self.depth() - 320), 1.0)
        for words, sentence, status in (("--travel-um", "-3"), "needs a distance above 0", 2), (("--travel-um", "170"), "give also --lambda", 2), (
                ("--travel-um", "170", "--fit", "map", "--lambda", "800", "900"), "give one of them", 2):
            self.assertIn(sentence, self.call("calibrate", "near.npy", "far.npy", *words, status=status))
        self.assertIn("the travel is 0.17 um. Is it in micrometres?", self.call(
            "calibrate", "near.npy", "far.npy", "--lambda", "800", "900", "--travel-um", "0.17", status=1))
        self.assertIn("give two positions or more", self.call("calibrate", "near.npy", "--lambda", "800", "900", "--travel-um", "170", status=2))

    def test_a_mirror_beyond_zero_delay_is_noticed(self):
        np.save(self.path("w.npy"), wavelengths() + 4.0 * (1 - np.linspace(-1, 1, SAMPLES) ** 2))
        mirrors = {"near": 150.0, "far": 320.0, "beyond": -320.0}
        told = "on different sides of zero delay. --other-side names"
        self.assertIn(told, self.calibrate("near.npy", "beyond.npy", "--wavelengths", "w.npy", **mirrors)[0])
        for words in ("far.npy",), ("--other-side", "beyond.npy"):
            printed, depths = self.calibrate("near.npy", *words, "--wavelengths", "w.npy")
            self.assertNotIn(told, printed)
            np.testing.assert_allclose(depths, (150, 320), rtol=1e-3)
        self.assertIn("on one side of zero delay", self.call("calibrate", "near.npy", "--other-side", "far.npy", "--wavelengths", "w.npy"))
        # without them two positions fit on either side, and the report says what is assumed
        self.assertNotIn(told, self.call("calibrate", "near.npy", "beyond.npy", "--lambda", "800", "900"))
        facts = dict(result_of(self.path("out"))["facts"])
        self.assertEqual(facts["taken as"], "near.npy on the side of the sample, beyond.npy on the side of the sample")
        self.assertIn("not checked", facts["sides of zero delay"])
        printed = self.call("calibrate", "near.npy", "beyond.npy", "--lambda", "800", "900", "--travel-um", "470")
        self.assertIn("is a mirror on the other side of zero delay than named, which", printed)
        _printed, depths = self.calibrate("near.npy", "--other-side", "beyond.npy", "--lambda", "800", "900", "--travel-um", "470")
        np.testing.assert_allclose(depths, (150, 320), rtol=1e-3)
        self.assertIn("With the first and the last position on one side of zero delay it would be about 169 um", self.call(
            "calibrate", "near.npy", "--other-side", "beyond.npy", "--lambda", "800", "900", "--travel-um", "150", status=1))
        np.save(self.path("as-far.npy"), self.dispersed(-185.0, 20.0, 4.0))
        self.assertIn("a position may be on the other side of zero delay than named", self.call(
            "calibrate", "near.npy", "as-far.npy", "--lambda", "800", "900", status=1))
        # a third position tells
        printed = self.calibrate("near.npy", "far.npy", "third.npy", "--lambda", "800", "900", third=240.0)[0]
        self.assertNotIn("zero delay", printed)
        printed = self.call("calibrate", "near.npy", "third.npy", "--other-side", "far.npy", "--lambda", "800", "900")
        self.assertIn("far.npy on the other side of zero delay", printed)

    def test_two_reflectors_close_to_each_other_are_told(self):
        for second in 0.0, 0.5:
            printed, _depths = self.calibrate("near.npy", "far.npy", "--lambda", "800", "900", near=150.0, far=(320.0, 4.0, second))
            self.assertEqual("Are there two reflectors close to each other" in printed, second > 0, printed)

    def test_two_reflectors_in_every_recording_are_told(self):
        """Then no mirror differs from another one"""
        for second in 0.0, 0.3, 0.6:
            printed, _depths = self.calibrate("near.npy", "far.npy", "--lambda", "800", "900", near=(150.0, 4.0, second), far=(320.0, 4.0, second))
            self.assertEqual("differs by" in printed, second > 0, printed)
            self.assertEqual(self.figure("evenness of the fringes")["met"], second == 0)
        for name, depth in ("near", 150.0), ("far", 320.0):  # a balanced detector
            np.save(self.path(name + ".npy"), self.dispersed(depth, 9.0).astype("f4") - 500 - 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2)))
        self.assertNotIn("differs by", self.call("calibrate", "near.npy", "far.npy", "--lambda", "800", "900"))
        self.assertIsNone(self.figure("evenness of the fringes")["met"])

    def test_raw_mirrors_of_another_layout_are_told(self):
        near, far = (np.repeat(self.dispersed(depth, 9.0), 4, 0).astype("<u2") for depth in (150.0, 320.0))
        for name, values in ("near", near), ("far", far):
            values.tofile(self.path(name + ".raw"))
            (values[:, ::-1] * 4).clip(0, 65535).astype("<u2").tofile(self.path(name + "-bright.raw"))
        words = ("near.raw", "far.raw", "--lambda", "800", "900", "--samples")
        self.assertNotIn("is it --", self.call("calibrate", *words, str(SAMPLES)))
        self.assertIn(f"near.raw: {2 * SAMPLES} samples of u16 hold the envelope of the source 2 times: is it --samples {SAMPLES}?",
                      self.call("calibrate", *words, str(2 * SAMPLES), status=(0, 1)))
        words = ("near-bright.raw", "far-bright.raw", "--samples", str(SAMPLES), "--dtype", "i16")
        self.assertIn("is it --dtype u16?", self.call("calibrate", *words, status=(0, 1)))

    def test_two_recordings_of_one_position_are_told(self):
        for name in "one", "same":
            np.save(self.path(name + ".npy"), self.dispersed(150.0, 9.0))
        self.assertIn("2 recordings show 1 position of the mirror", self.call("calibrate", "one.npy", "same.npy", "--lambda", "790", "912"))

    def test_mirrors_that_cannot_calibrate(self):
        np.save(self.path("m.npy"), mirror(150)[0])
        np.save(self.path("dark.npy"), mirror(150, amplitude=0.0)[0])
        np.save(self.path("short.npy"), mirror(150)[0, :, :256])
        self.assertEqual(self.call("calibrate", "dark.npy", status=1).count("The fringe of the mirror is weak"), 1)
        self.assertIn("has no wavelengths to keep", self.call("calibrate", "m.npy", "--fit", "map", status=1))
        self.assertIn("256 and 512 samples", self.call("calibrate", "m.npy", "short.npy", status=3))
        self.assertIn("Give a file of spectra of a mirror", self.call("calibrate", status=2))
        self.assertIn("are of gst-imaging oct calibrate", self.call("m.npy", "--other-side", "m.npy", status=2))
        self.assertIn("is of B-scans", self.call("calibrate", "m.npy", "--estimate-dispersion", status=2))
        self.assertIn("m.npy is given twice", self.call("calibrate", "m.npy", "--other-side", "./m.npy", status=2))
        self.assertIn("with a line for each of 30 cameras", self.call("calibrate", "m.npy", "cameras=30", status=3))

    @unittest.skipUnless(os.path.isdir(REAL), "there are no real mirrors")
    def test_real_mirrors_calibrate(self):
        mirrors = [os.path.join(REAL, "octcal", f"mirror{i}.npy") for i in (1, 2)]
        self.call("calibrate", mirrors[0], "--other-side", mirrors[1])
        result = result_of(self.path("out"))
        self.assertEqual([position["depth-um"] for position in result["mirrors"][0]], [None, None])
        self.assertLess(result["width-over-limit"], 1.05)
        for position in result["mirrors"][0]:
            self.assertGreater(position["width-before"], 4 * position["width"])

    def test_pictures_are_the_levels(self):
        np.save(self.path("m.npy"), mirror(200, bscans=3))
        self.call("m.npy", "range-min=-5", "range-max=35", "--pictures")
        levels = np.load(self.path("out/level.npy"))
        for bits, name in (8, "bscan"), (16, "bscan-16"):
            white = 2 ** bits - 1
            expected = np.floor((levels - np.float32(-5)).clip(0, 40) * np.float32(white / 40) + np.float32(0.5))
            for number, file in ((1, name + ".png"), *((None, name.replace("bscan", "bscans") + ".tif") for _ in "1")):
                if not os.path.exists(self.path("out/" + file)):
                    continue  # built without the format
                subprocess.run([os.environ["ARRAY_TOOL"], self.path("out/" + file), self.path("p.npy")], check=True)
                found = np.load(self.path("p.npy"))
                self.assertEqual(found.dtype.itemsize * 8, bits)
                wanted = expected if number is None else expected[number]
                self.assertLessEqual(np.abs(found.astype(float) - wanted).max(), 1)
                self.convert_to_levels(file, levels if number is None else levels[number], 40 / white)
        self.assertEqual(len(os.listdir(self.path("out/pictures"))), 3)

    def convert_to_levels(self, file, levels, step):
        """The header tells the unit and the scale of grey samples, and the depths."""
        gst_imaging("convert", self.path("out/" + file), self.path("again.npy"))
        quantity = metadata.sidecar(self.path("again.npy"))["quantity"]
        told = metadata.sidecar(self.path("out/level.npy"))["quantity"]
        self.assertEqual((quantity["unit"], quantity["axes"][:2]), ("dB", told["axes"][:2]))
        again = quantity["offset"] + quantity["scale"] * np.load(self.path("again.npy"))
        inside = (levels > -5) & (levels < 35)
        self.assertLess(np.abs(again - levels)[inside].max(), 1.5 * step)

    def test_files_of_calibration_and_background(self):
        spectra = mirror(200, bscans=2)
        k = 2 * np.pi / wavelengths()
        even = np.linspace(k[0], k[-1], SAMPLES)
        np.save(self.path("w.npy"), wavelengths())
        np.save(self.path("k.npy"), np.interp(-even, -k, np.arange(SAMPLES)))
        np.savetxt(self.path("chirp.txt"), k)
        np.save(self.path("m.npy"), spectra)
        with open(self.path("c.ini"), "w", encoding="utf-8") as file:
            file.write("[camera]\nwavelengths=w.npy\n")
        self.call("m.npy", "--wavelengths", "w.npy")
        levels = np.load(self.path("out/level.npy"))
        self.call("m.npy", "--calibration", "c.ini")
        np.testing.assert_array_equal(np.load(self.path("out/level.npy")), levels)
        with open(self.path("out/calibration.ini"), encoding="utf-8") as file:
            self.assertIn(f"wavelengths={os.path.join(os.path.realpath(self.folder), 'w.npy')}", file.read())
        np.savetxt(self.path("w.txt"), wavelengths(), "%.17g", header="nm")
        np.savetxt(self.path("w.csv"), np.stack([np.arange(SAMPLES), wavelengths()], 1), "%.17g", delimiter=",")
        for name in "w.txt", "w.csv":  # as vendors write them
            self.call("m.npy", "--wavelengths", name)
            np.testing.assert_array_equal(np.load(self.path("out/level.npy")), levels)
        numbers = [repr(float(value)) for value in wavelengths()]
        commas = [text.replace(".", ",") for text in numbers]
        for lines in (["Wavelength (nm)", *numbers], ["\ufeffpixel,wavelength", *(f"{i},{text}" for i, text in enumerate(numbers))], commas,
                      ["# nm", "", *commas], ["Pixel;Wavelength", *(f"{i};{text}" for i, text in enumerate(commas))],
                      [f"{i + 1}\t{text}\r" for i, text in enumerate(commas)]):
            with open(self.path("v.txt"), "w", encoding="utf-8", newline="\n") as file:
                file.write("\n".join(lines) + "\n")
            self.call("m.npy", "--wavelengths", "v.txt")
            np.testing.assert_array_equal(np.load(self.path("out/level.npy")), levels, str(lines[:3]))
        whole, found = 800 + np.arange(SAMPLES), []
        for name, lines in ("one", whole), ("two", [f"{i},{value}" for i, value in enumerate(whole)]):  # this comma is none
            with open(self.path(name + ".txt"), "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            self.call("m.npy", "--wavelengths", name + ".txt")
            found.append(np.load(self.path("out/level.npy")))
        np.testing.assert_array_equal(*found)
        for lines, sentence in (["nm", *numbers[:9], "x", *numbers[10:]], 'which holds "x" where'), (["nm"], '"nm" where'), (
                [numbers[0] + "O", *numbers[1:]], f'holds "{numbers[0]}O" where'):
            with open(self.path("v.txt"), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            self.assertIn(sentence, self.call("m.npy", "--wavelengths", "v.txt", status=3))
        at = levels.mean((0, 2)).argmax()
        for option, name in ("--k-index", "k.npy"), ("--chirp", "chirp.txt"):
            self.call("m.npy", option, name)
            self.assertEqual(np.load(self.path("out/level.npy")).mean((0, 2)).argmax(), at)
        # the same file with another meaning is no result that is complete already
        self.assertIn("--overwrite", command(self.folder, "oct", "m.npy", "--k-index", "chirp.txt", "-o", "out", status=4))
        self.assertIn("say the same in four ways",
                      self.call("m.npy", "--k-index", "k.npy", "--lambda", "800", "900", status=2))
        # the sample arm blocked: the mirror of equal A-scans stays, which background=mean would take off
        still = np.repeat(spectra[:1, :1], LINES, 1)
        dark = np.rint(12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2)) + 500)
        np.save(self.path("still.npy"), still)
        np.save(self.path("dark.npy"), dark)
        self.call("still.npy", "--lambda", "800", "900", "--background", "dark.npy", "scale=4")
        self.assertLess(abs(self.depth() - 200), 2)

    def test_a_calibration_without_wavelengths_is_told(self):
        np.save(self.path("m.npy"), mirror(200))
        np.savetxt(self.path("k.txt"), 2 * np.pi / wavelengths())
        for text, sentence in ("[camera]\n", "[camera] of c.ini has no wavelengths and no wavenumbers"), (
                "[camera]\ndispersion=0;0;-6\n", "[camera] of c.ini has no wavelengths"), (
                "[camera]\nwavelengths=k.txt\n", "as the wavelengths are not between 0.2 and 5 um"), (
                "\ufeff[camera]\r\nlambda-first=800\r\nlambda-last=900\r\n", None), ("[camera]\nk-polynomial=0.00118;-0.00007\n", None):
            with open(self.path("c.ini"), "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            printed = self.call("m.npy", "--calibration", "c.ini")
            self.assertIn(sentence or "out", printed)
            self.assertEqual("in pixels" in printed, bool(sentence), printed)
        self.assertIn("Nobody has told the wavelengths", self.call("m.npy", "--dispersion", "0;0;-6"))

    def test_calibrations_that_are_no_small_files_are_refused(self):
        np.save(self.path("m.npy"), mirror(200))
        os.mkfifo(self.path("fifo"))
        with open(self.path("large.ini"), "w", encoding="utf-8") as file:
            file.write("[camera]\nlambda-first=800\nlambda-last=900\n" + "# and so on\n" * 100000)
        for name, sentence in ("fifo", "pipe"), ("large.ini", "1048576 at most"), ("/dev/zero", "device"):
            for words in (), ("calibrate",):
                self.assertIn(sentence, self.call(*words, "m.npy", "--calibration", name, status=3))

    def test_spectra_of_one_sample_are_refused_in_a_sentence(self):
        np.save(self.path("short.npy"), np.ones((20, 1), "u2"))
        printed = self.call("short.npy", status=1)
        self.assertNotIn("RuntimeWarning", printed)
        self.assertNotIn("two bytes", printed)

    def test_long_spectra_need_no_setting(self):
        lamp = np.linspace(790, 890, 8192)
        fringes = 1 + 0.1 * np.cos(4e3 * np.pi * 300 / lamp + 0.7 * np.arange(16)[:, None])
        np.save(self.path("long.npy"), np.rint(5000 * fringes * np.hanning(8192)).astype("u2"))
        self.call("long.npy", "--lambda", "790", "890")
        self.assertAlmostEqual(self.depth(), 300, delta=2)

    def test_dispersion_by_numbers_and_by_a_file(self):
        u = np.linspace(-1, 1, SAMPLES)
        k = 2 * np.pi / wavelengths()
        at = 2 * (k - k[0]) / (k[-1] - k[0]) - 1
        widths = {}
        np.save(self.path("m.npy"), mirror(200))
        self.call("m.npy", "--lambda", "800", "900", "scale=4", "window=hann")
        widths["without"] = result_of(self.path("out"))["width"]
        np.save(self.path("m.npy"), mirror(200, phase=12 * at ** 2))
        np.save(self.path("phase.npy"), 12 * u ** 2)
        np.save(self.path("raw.npy"), 12 * at ** 2)
        for name, words in (("none", ()), ("numbers", ("--dispersion", "0;0;12")), ("file", ("--dispersion", "phase.npy")),
                            ("samples", ("--dispersion", "raw.npy", "--phase-domain", "spectrum"))):
            self.call("m.npy", "--lambda", "800", "900", "scale=4", "window=hann", *words)
            widths[name] = result_of(self.path("out"))["width"]
        for name in "numbers", "file", "samples":
            self.assertAlmostEqual(widths[name], widths["without"], delta=0.1 * widths["without"], msg=widths)
        self.assertGreater(widths["none"], 1.5 * widths["without"])

    def test_dispersion_is_estimated(self):
        rng, lines = np.random.default_rng(6), 96
        k = 2e3 * np.pi / wavelengths()
        u = 2 * (k - k[0]) / (k[-1] - k[0]) - 1
        lamp = 12000 * np.exp(-(((wavelengths() - 850) / 30) ** 2))
        places = [np.full(lines, z) + rng.uniform(-3, 3, lines) for z in (80.0, 150.0, 320.0)]
        spectra = lamp * (1 + sum(0.05 * np.cos(2 * k * z[:, None] - 9 * u ** 2) for z in places)) + rng.normal(0, 10, (lines, SAMPLES)) + 500
        np.save(self.path("m.npy"), np.rint(spectra).astype("u2"))
        self.call("m.npy", "--lambda", "800", "900", "scale=4")
        width = result_of(self.path("out"))["width"]
        self.call("m.npy", "--lambda", "800", "900", "scale=4", "--estimate-dispersion")
        self.assertLess(result_of(self.path("out"))["width"], 0.7 * width)
        facts = dict(result_of(self.path("out"))["facts"])
        np.testing.assert_allclose([float(d) for d in facts["dispersion, estimated"].split(";")], (0, 0, -9, 0), atol=0.5)
        self.call("m.npy", "--lambda", "800", "900", "scale=4", "cameras=2", "--estimate-dispersion")
        with open(self.path("out/calibration.ini"), encoding="utf-8") as file:
            text = file.read()
        counts = [text.count(words) for words in ("[camera 0]", "[camera 1]", "[camera]", "lambda-first=800", "dispersion=0;0;-9")]
        self.assertEqual(counts, [1, 1, 0, 2, 2], text)
        noise = rng.normal(500, 30, (lines, SAMPLES)).astype("u2")
        np.save(self.path("noise.npy"), noise)
        self.assertIn("The dispersion is not estimated, and stays as it is: ", self.call("noise.npy", "--lambda", "800", "900", "--estimate-dispersion"))
        self.assertIn("give one of them", self.call("m.npy", "--dispersion", "0;0;1", "--estimate-dispersion", status=2))

    def test_a_volume_from_above(self):
        spectra = mirror(200, bscans=6)
        lamp = mirror(200, bscans=6, amplitude=0.0)
        spectra[3:, LINES // 2:] = lamp[3:, LINES // 2:]
        np.save(self.path("v.npy"), spectra)
        self.call("v.npy", "--enface", "--linear", "--complex", "background=rolling", "crop-top=20")
        enface = np.load(self.path("out/enface.npy"))
        self.assertEqual(enface.shape, (1, 6, LINES))
        bright, dark = enface[0, :, :10], enface[0, 3:, 14:]
        self.assertGreater(bright.min(), dark.max())
        levels, linear = (np.load(self.path(f"out/{name}.npy")) for name in ("level", "linear"))
        np.testing.assert_allclose(10 * np.log10(linear.clip(1e-20)), levels, atol=1e-3)
        z = np.load(self.path("out/complex.npy")).view("c8").reshape(6, LINES, -1)
        np.testing.assert_allclose(np.abs(z.transpose(0, 2, 1)) ** 2, linear, rtol=1e-3, atol=1e-3)

    def test_verify_makes_the_levels_again(self):
        np.save(self.path("m.npy"), mirror(200, bscans=2))
        self.call("m.npy", "--lambda", "800", "900")
        self.assertIn("the same bits", command(self.folder, "verify", "out/level.npy"))

    def test_a_damaged_file_does_not_keep_the_others(self):
        os.mkdir(self.path("volumes"))
        for name in "a.npy", "b.npy", "c.npy":
            np.save(self.path("volumes/" + name), mirror(200))
        os.truncate(self.path("volumes/b.npy"), 3000)
        for name in "notes.txt", "w.npy":
            np.save(self.path("volumes/w.npy"), wavelengths())
        with open(self.path("volumes/notes.txt"), "w", encoding="utf-8") as file:
            file.write("The mirror was dirty.")
        printed = self.call("volumes", "--wavelengths", "volumes/w.npy", status=3)
        self.assertIn("1 of 3 inputs failed: volumes/b.npy. The other 2 are complete.", printed)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["a", "c"])

    def test_volumes_before_an_interruption_keep_theirs(self):
        np.save(self.path("a.npy"), mirror(200))
        np.lib.format.open_memmap(self.path("b.npy"), "w+", "u2", (3000, LINES, SAMPLES)).flush()
        done = subprocess.Popen(
            [sys.executable, "-B", "-m", "gst_imaging", "oct", "a.npy", "b.npy", "-o", "out"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        for _ in range(TIMEOUT * 50):
            if os.path.exists(self.path("out/a/result.json")):
                break
            time.sleep(0.02)
        done.send_signal(signal.SIGINT)
        printed = done.communicate(timeout=TIMEOUT)[0]
        self.assertEqual(done.returncode, -signal.SIGINT, printed)
        self.assertRegex(printed, "Stopped by SIGINT. Complete: .*out/a")
        self.assertEqual(os.listdir(self.path("out")), ["a"])

    def test_what_is_wrong_is_said_in_a_sentence(self):
        np.save(self.path("m.npy"), mirror(200))
        with open(self.path("m.bin"), "wb") as file:
            file.write(mirror(200).tobytes())
        with open(self.path("no.ini"), "w", encoding="utf-8") as file:
            file.write("what is this")
        for words, status, sentence in (
                (("m.bin",), 2, "m.bin is raw: --samples and --lines say"),
                (("m.bin", "--samples", "0", "--lines", "5"), 2, "--samples is 0; it needs a number from 1 to 65535."),
                (("m.npy", "--calibration", "none.ini"), 3, "none.ini"),
                (("m.npy", "--calibration", "no.ini"), 3, "no.ini is no calibration"),
                (("m.npy", "calibration=c.ini"), 2, "calibration= is --calibration of this command."),
                (("nothing.npy",), 3, "nothing.npy"),
                (("scale=4",), 2, "Give a file or a folder of spectra."),
                (("m.npy", "scael=4"), 2, 'no property "scael"'),
                (("m.npy", "--lines", "50"), 1, "No B-scan was made")):
            self.assertIn(sentence, self.call(*words, status=status))
            self.assertFalse(os.path.exists(self.path("out")))

    def test_names_may_have_any_characters(self):
        os.mkdir(self.path("50% of 'it'"))
        name = "50% of 'it'/scan \"5%d\".npy"
        np.save(self.path(name), mirror(200))
        command(self.folder, "oct", name, "-o", "50% of 'it'/out %")
        self.assertTrue(os.path.exists(self.path("50% of 'it'/out %/level.npy")))
        self.assertIn("stands for numbers", command(self.folder, "oct", name, "-o", "out %3d", status=2))

    def test_real_spectra(self):
        """Two instruments with the options that their data sheets are about."""
        raw = os.path.join(REAL, "octopod/volume_2048x20x20_u16le.unp")
        if not os.path.exists(raw):
            self.skipTest(f"{raw} is not there; set IMAGING_TEST_DATA")
        self.call(raw, "--samples", "2048", "--lines", "20", "--lambda", "806", "675", "--dispersion", "0;0;-12", "window=hann")
        result = result_of(self.path("out"))
        levels = np.load(self.path("out/level.npy"))
        self.assertEqual(levels.shape, (20, 1024, 20))
        self.assertAlmostEqual((10 ** (levels / 10)).mean((0, 2))[5:].argmax() + 5, 127, delta=3)
        self.assertEqual(result["depth-unit"], "um")
        self.assertTrue(self.figure("direction of the wavelengths")["met"])
        self.call(os.path.join(REAL, "octcal/bscans_040-047_1024x100x8_u16le.raw"), "--samples", "1024", "--lines", "100",
                  "--k-index", os.path.join(REAL, "octcal/klinear.npy"), "--dispersion",
                  os.path.join(REAL, "octcal/dispersion.npy"), "--phase-domain", "spectrum", "window=hann")
        intensity = 10 ** (np.load(self.path("out/level.npy"))[0, 5:] / 10)
        self.assertGreater((intensity ** 2).mean() / intensity.mean() ** 2, 30)


if __name__ == "__main__":
    main()
