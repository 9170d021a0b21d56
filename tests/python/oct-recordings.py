# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings of Thorlabs, OCTproZ and .unp: read exactly, used with what they tell, and refused with a sentence if they are damaged."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import zipfile

import numpy as np

import octfiles
import octprozmodel
from support import DATA, TIMEOUT, Gst, command, launch, main, result_of

TOOL = os.environ["ARRAY_TOOL"]
REAL = os.path.join(os.path.dirname(DATA), "octbscan", "octopod", "volume_2048x20x20_u16le.unp")
RNG = np.random.default_rng(11)
SAMPLES, LINES, N = 256, 12, 4
needs_zip = unittest.skipUnless("thorlabs" in os.environ["FORMATS"].split(), "built without minizip")
needs_fft = unittest.skipUnless(Gst.ElementFactory.find("octbscan"), "built without an FFT")


def noise(*shape, dtype="u2"):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def fringes(phase, lamp=20000, amplitude=500):
    """Spectra [N, LINES, samples] whose phase at each sample is given; it drifts from line to line, so that no mean has it"""
    drift = np.arange(N * LINES)[:, None] * 2.4
    return np.rint(lamp + amplitude * np.cos(phase + drift)).astype("u2").reshape(N, LINES, -1)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *words):
        return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=TIMEOUT, check=False)

    def load(self, path):
        done = self.run_tool(path, self.path("loaded.npy"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.path("loaded.npy"))

    def refuse(self, path, words):
        done = self.run_tool(path, self.path("loaded.npy"))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertRegex(done.stderr, r'^"?[^\n]*\.\n$')
        self.assertIn(words, done.stderr)

    def oct(self, *words, status=0):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        return command(self.folder, "oct", *words, "-o", "out", status=status)

    def levels(self):
        return np.load(self.path("out/level.npy"))


class Reader(Files):
    def same(self, path, spectra):
        loaded = self.load(path)
        self.assertEqual(loaded.dtype, spectra.dtype)
        np.testing.assert_array_equal(loaded, spectra)

    @needs_zip
    def test_thorlabs(self):
        chirp = np.arange(SAMPLES) + 0.25
        for dtype in "u1", "i1", "u2", "i2", "u4":
            spectra = noise(N, LINES, SAMPLES, dtype=dtype)
            octfiles.thorlabs(self.path("a.oct"), spectra, noise(N, 3, SAMPLES, dtype=dtype), chirp)
            self.same(self.path("a.oct"), spectra)
        spectra = noise(12, 3, SAMPLES)  # 10 is behind 9; several in a file; slashes; not compressed
        for options in {}, {"each": 3}, {"separator": "/"}, {"compression": 0}:
            octfiles.thorlabs(self.path("b.oct"), spectra, **options)
            self.same(self.path("b.oct"), spectra)

    @needs_zip
    def test_parts_of_thorlabs(self):
        spectra, apo, chirp = noise(N, LINES, SAMPLES), noise(N, 3, SAMPLES), np.arange(SAMPLES, dtype="f4") * 1.5
        octfiles.thorlabs(self.path("a.oct"), spectra, apo, chirp, more={"Intensity": noise(5, 128).astype("f4")})
        parts = f"0: spectra u16 [4, 12, {SAMPLES}]; 1: apodization u16 [4, 3, {SAMPLES}]; 2: Chirp f32 [{SAMPLES}]; 3: Intensity f32 [5, 128]"
        self.assertIn(parts, launch("picturesrc", "location=" + self.path("a.oct"), "!", "fakesink"))
        for part, values in (0, spectra), (1, apo), (2, chirp):
            command(self.folder, "convert", "a.oct", "part.npy", f"--part={part}")
            np.testing.assert_array_equal(np.load(self.path("part.npy")), values)
        self.assertIn("has no part 4: it has the parts 0 to 3", command(self.folder, "convert", "a.oct", "b.npy", "--part=4", status=3))

    def test_raw_samples_beside_settings(self):
        spectra = noise(N, LINES, SAMPLES)
        octfiles.octproz(self.path("a_raw.raw"), spectra, buffer=2)
        octfiles.unp(self.path("a.unp"), spectra, volumes=2)
        for name in "a_raw.raw", "a.unp":
            self.same(self.path(name), spectra)
        os.rename(self.path("a.unp"), self.path("a_1_2T.unp"))  # a.xml tells of it as well
        self.same(self.path("a_1_2T.unp"), spectra)
        for bits, dtype in (8, "u1"), (16, "u2"), (32, "u4"):
            octfiles.octproz(self.path("b_raw.raw"), spectra.astype(dtype), bits=bits)
            self.same(self.path("b_raw.raw"), spectra.astype(dtype))

    def test_the_system_whose_buffers_fit(self):
        spectra = noise(N, LINES, SAMPLES)
        other = "[Camera]\r\nwidth=1000\r\nheight=7\r\ndepth=3\r\nbit_depth=8\r\n\r\n"
        octfiles.octproz(self.path("a_raw.raw"), spectra, changes=[("[processing]", other + "[processing]")])
        self.same(self.path("a_raw.raw"), spectra)

    @unittest.skipUnless(os.path.exists(REAL), f"{REAL} is not there; set IMAGING_TEST_DATA")
    def test_a_real_volume(self):
        np.testing.assert_array_equal(self.load(REAL), np.fromfile(REAL, "<u2").reshape(20, 20, 2048))

    def test_picturesrc_plays_them(self):
        spectra = noise(N, LINES, SAMPLES)
        octfiles.octproz(self.path("a_raw.raw"), spectra)
        octfiles.unp(self.path("a.unp"), spectra)
        names = ["a_raw.raw", "a.unp"]
        if "thorlabs" in os.environ["FORMATS"].split():
            octfiles.thorlabs(self.path("a.oct"), spectra)
            names.append("a.oct")
        for name in names:
            launch("picturesrc", "location=" + self.path(name), "!", f"video/x-raw,format=GRAY16_LE,width={SAMPLES},height={LINES}", "!",
                   "filesink", "location=" + self.path("played"))
            self.assertEqual(np.fromfile(self.path("played"), "<u2").tobytes(), spectra.tobytes(), name)


class BadFiles(Files):
    @needs_zip
    def test_thorlabs(self):
        spectra = noise(2, 3, 64)
        other = [("SizeZ=\"64\"", "SizeZ=\"65\"")]
        for words, options in (
                ("it has 384 bytes for 3 lines of 65 samples", {"changes": other}),
                ('SizeX="-3" is no whole number', {"changes": [('SizeX="3"', 'SizeX="-3"')]}),
                ('SizeX="nan" is no whole number', {"changes": [('SizeX="3"', 'SizeX="nan"')]}),
                ('SizeX="99999999999999999999" is no whole', {"changes": [('SizeX="3"', 'SizeX="99999999999999999999"')]}),
                ("for 2147483647 lines of 2147483647 samples",
                 {"changes": [('SizeX="3"', 'SizeX="2147483647"'), ('SizeZ="64"', 'SizeZ="2147483647"')]}),
                ("SizeZ) are not told", {"changes": [('SizeZ="64"', "")]}),
                ("lines are told of that it does not have", {"changes": [('ScanRegionEnd0="3"', 'ScanRegionEnd0="4"')]}),
                ("samples of this many bytes are not known", {"changes": [('SizeY="1" BytesPerPixel="2"', 'SizeY="1" BytesPerPixel="3"')]}),
                ("several regions of lines", {"changes": [('ScanRegionStart0="0"', 'ScanRegionStart0="0" ScanRegionStart1="2"')]}),
                ("it is missing in the ZIP", {"changes": [("data\\Spectral0", "data\\Spectral7")]}),
                ("holds no spectra", {"changes": [("data\\Spectral", "data\\Other")]}),
                ("has a Header.xml that cannot be used", {"header": "<Ocity><Image></Ocity>"}),
                ("it is listed twice", {"changes": [("data\\Spectral1", "data\\Spectral0")]}),
                ("holds no spectra", {"header": "<Ocity/>"})):
            octfiles.thorlabs(self.path("a.oct"), spectra, **options)
            self.refuse(self.path("a.oct"), words)
        octfiles.thorlabs(self.path("a.oct"), spectra)
        with open(self.path("a.oct"), "rb") as file:
            whole = file.read()
        for n in 4, len(whole) // 2, len(whole) - 22:
            with open(self.path("a.oct"), "wb") as file:
                file.write(whole[:n])
            self.refuse(self.path("a.oct"), "is damaged or truncated")
        octfiles.thorlabs(self.path("a.oct"), spectra, compression=0)
        with open(self.path("a.oct"), "rb") as file:
            whole = file.read().replace(spectra[0].tobytes(), noise(3, 64).tobytes())
        with open(self.path("a.oct"), "wb") as file:
            file.write(whole)
        self.refuse(self.path("a.oct"), "data/Spectral0.data cannot be unpacked")  # its checksum
        os.truncate(self.path("a.oct"), 0)
        self.refuse(self.path("a.oct"), "is empty")
        os.remove(self.path("a.oct"))
        for make, words in ((os.mkdir, "is a folder"), (os.mkfifo, "is a pipe")):
            make(self.path("a.oct"))
            self.refuse(self.path("a.oct"), words)
            os.rmdir(self.path("a.oct")) if os.path.isdir(self.path("a.oct")) else os.remove(self.path("a.oct"))
        with zipfile.ZipFile(self.path("a.oct"), "w") as file:
            file.writestr("readme.txt", "spectra")
        self.refuse(self.path("a.oct"), "is a ZIP without Header.xml")

    def test_settings(self):
        spectra = noise(4, 3, 64)
        for words, change in (
                ("has 1536 bytes", ("Height=\"3\"", "Height=\"5\"")), ('Width="0" is no whole', ("Width=\"64\"", "Width=\"0\"")),
                ('Width="-64" is no whole', ("Width=\"64\"", "Width=\"-64\"")), ('Width="nan" is no whole', ("Width=\"64\"", "Width=\"nan\"")),
                ("4294967295 B-scans", ("Frames=\"4\"", "Frames=\"4294967295\"")),
                ("expected are 1 to 2147483647", ("Width=\"64\"", "Width=\"4294967295\"")),
                ("has no Height", ("Height=\"3\"", "")), ("without the element Volume_Size", ("Volume_Size", "Size")),
                ("cannot be used", ("</Monster>", ""))):
            octfiles.unp(self.path("a.unp"), spectra, changes=[change])
            self.refuse(self.path("a.unp"), words)
        for words, change in (
                ("has 1536 bytes", ("height=3", "height=5")), ("4 B-scans or a multiple", ("width=64", "width=63")),
                ("width=0; expected is a whole", ("width=64", "width=0")), ("width=nan; expected is a whole", ("width=64", "width=nan")),
                ("width=99999999999; expected", ("width=64", "width=99999999999")), ("bit_depth=24; samples", ("bit_depth=12", "bit_depth=24")),
                ("expected are 1 to 2147483647", ("height=3", "height=4294967295")),
                ("without the group of an acquisition system", ("width=", "breadth=")), ("that are none of OCTproZ", ("[General]", "General"))):
            octfiles.octproz(self.path("a_raw.raw"), spectra, changes=[change])
            self.refuse(self.path("a_raw.raw"), words)
        os.rename(self.path("a_raw.raw"), self.path("a_processed.raw"))
        self.refuse(self.path("a_processed.raw"), "has images that OCTproZ has processed")

    def test_files_that_are_none(self):
        spectra = noise(4, 3, 64)
        for path, settings in ((self.path("a.unp"), octfiles.unp(self.path("a.unp"), spectra)),
                               (self.path("a_raw.raw"), octfiles.octproz(self.path("a_raw.raw"), spectra))):
            for size, words in (0, "has 0 bytes"), (1535, "has 1535 bytes"), (384, "has 384 bytes"):
                spectra.tofile(path)
                os.truncate(path, size)
                self.refuse(path, words)
            spectra.tofile(path)
            os.remove(settings)
            for make, words in ((os.mkdir, "is a folder"), (os.mkfifo, "is a pipe")):
                make(settings)
                self.refuse(path, words)
                os.rmdir(settings) if os.path.isdir(settings) else os.remove(settings)
            with open(settings, "wb") as file:
                file.truncate(3 << 20)
            self.refuse(path, "its settings cannot be read")
            os.truncate(settings, 0)
            self.refuse(path, "settings in")
            os.remove(settings)
        self.refuse(self.path("a.unp"), "Put them beside it, or give --samples and --lines to gst-imaging oct.")
        os.remove(self.path("a.unp"))
        os.mkfifo(self.path("a.unp"))
        self.refuse(self.path("a.unp"), "is a pipe")


@needs_fft
class Images(Files):
    def recording(self, spectra, changes=(), **settings):
        """a_raw.raw with these settings of the processing"""
        shown = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items()]
        octfiles.octproz(self.path("a_raw.raw"), spectra, bits=16, processing=shown, changes=changes)

    def warped(self, c, d, depth=40):
        """Spectra of one tone, of 500 counts, after the resampling c and the dispersion d of OCTproZ"""
        m = np.arange(SAMPLES)
        # exp(+i theta) and an inverse FFT follow
        phase = 2 * np.pi * depth * m / SAMPLES + np.polynomial.polynomial.polyval(m / (SAMPLES - 1), d)
        return fringes(np.interp(m, np.polynomial.polynomial.polyval(m / (SAMPLES - 1), c), phase))

    def test_octproz_means_what_it_computes(self):
        c, d, depth = (3.0, 200.0, 30.0, 20.0), (0.5, 4.0, 60.0, 12.0), 40
        settings = {**{f"resampling_c{i}": value for i, value in enumerate(c)},
                    **{f"dispersion_compensation_d{i}": value for i, value in enumerate(d)}}
        spectra = self.warped(c, d, depth)
        self.recording(spectra, resampling=True, dispersion_compensation=True, **settings)
        self.oct("a_raw.raw", "window=hann")
        profile = 10 ** (self.levels() / 10).mean((0, 2))
        self.assertEqual(profile.argmax(), depth)
        self.assertLess(abs(10 * np.log10(profile.max()) - 20 * np.log10(500)), 0.5)
        with open(self.path("out/calibration.ini"), encoding="utf-8") as file:
            self.assertIn("k-index=k-index.npy\n", file.read())
        levels = self.levels()
        shutil.copytree(self.path("out"), self.path("calibration"))
        self.oct("a_raw.raw", "window=hann", "--samples", str(SAMPLES), "--lines", str(LINES), "--calibration", "calibration/calibration.ini")
        np.testing.assert_array_equal(self.levels(), levels)  # options go first, and calibration.ini is of use
        for on in {"resampling": True}, {"dispersion_compensation": True}:
            self.recording(spectra, **{"resampling": False, **on}, **settings)
            self.oct("a_raw.raw", "window=hann")
            worse = 10 ** (self.levels() / 10).mean((0, 2))
            self.assertGreater(10 * np.log10(profile.max() / worse.max()), 3, on)

    def light(self):
        """Spectra with something at all depths, and little light at the ends"""
        return (noise(N, LINES, SAMPLES) * np.hanning(SAMPLES)).astype("u2")

    def same_as_octproz(self, spectra, *words, median=1e-3, **settings):
        """Compares the stronger half of the levels with OCTproZ's. Returns: of its picture, and the level of its Z"""
        self.recording(spectra, **settings)
        printed = self.oct("a_raw.raw", "interpolation=cubic", f"upsample={SAMPLES}", *words)
        shown, z = octprozmodel.image(spectra, settings)
        n = octprozmodel.window(settings["window_type"], settings["window_center_position"], settings["window_fill_factor"], SAMPLES).sum() \
            if settings.get("windowing") else SAMPLES
        level = 20 * np.log10(2 / n * np.abs(z) + 1e-12).transpose(0, 2, 1) + (20 * np.log10(16) if settings.get("bitshift") else 0)
        strong = level > np.median(level)
        self.assertLess(np.median(np.abs(self.levels() - level)[strong]), median, settings)
        return printed, shown, level

    def test_curves_of_octproz_beyond_an_end(self):
        spectra = self.light()
        for c in (0, SAMPLES, 0, 0), (-2, SAMPLES - 1, 0, 0), (3, SAMPLES + 30, 0, 0), (260, -263, 0, 0):
            self.same_as_octproz(spectra, "background=none", "taper=none", resampling=True, **{f"resampling_c{i}": value for i, value in enumerate(c)})

    def told(self):
        return {s["name"]: s["value"] for s in result_of(self.path("out"))["settings"]}

    def test_steps_of_octproz(self):
        """Each window with its place, the fixed pattern of each B-scan, and B-scans 0, 2, ... the other way round"""
        window = {"windowing": True, "window_center_position": 0.45, "window_fill_factor": 0.7}
        spectra = self.light()
        for kind in range(6):
            self.same_as_octproz(spectra, "background=none", window_type=kind, **window)
        self.same_as_octproz(spectra, "background=none", window_type=0, flip_bscans=True, bitshift=True, **window, median=0.01)
        spectra = (self.light()[:1, :1] // 2 + RNG.integers(0, 900, (N, 27, SAMPLES))).astype("u2")  # 3 lines for each of its segments
        self.same_as_octproz(spectra, fixed_pattern_removal=True, window_type=0, **window)
        self.assertEqual(self.told()["fixed-pattern"], "once")
        self.recording(spectra, fixed_pattern_removal=True, fixed_pattern_removal_continuously=True)
        self.oct("a_raw.raw")
        self.assertEqual([self.told().get(name) for name in ("fixed-pattern", "pattern-segments", "background")], ["minvar", "9", "none"])
        self.recording(spectra, windowing=True, window_type=0, window_fill_factor=0)
        self.assertIn("has a window that lets nothing pass", self.oct("a_raw.raw"))

    def test_black_and_white_of_octproz(self):
        settings = {"log": True, "min": 40, "max": 90, "coeff": 1.25, "addend": 0.1, "bitshift": True, "windowing": True, "window_type": 0,
                    "window_center_position": 0.5, "window_fill_factor": 0.9}
        _printed, shown, _level = self.same_as_octproz(self.light(), "background=none", median=0.01, **settings)
        picture = np.load(self.path("out/level.npy"))
        told = result_of(self.path("out"))
        grey = (picture - told["black"]) / (told["white"] - told["black"])
        inside = (shown > 0.2) & (shown < 1)
        self.assertGreater(inside.sum(), 1000)
        self.assertLess(np.abs(grey.transpose(0, 2, 1) - shown)[inside].max(), 0.01)
        self.oct("a_raw.raw", "range=auto")
        self.assertNotEqual(result_of(self.path("out"))["black"], told["black"])

    def test_what_octproz_showed_and_is_left_out(self):
        self.recording(noise(N, LINES, SAMPLES), log=False, min=0, max=1, post_processing_background_removal=True,
                       fixed_pattern_removal=True, fixed_pattern_removal_bscans=3)
        printed = self.oct("a_raw.raw")
        for words in "a linear scale", "the background of its post-processing", "a fixed pattern of several B-scans":
            self.assertIn(words, printed)

    def test_scans_of_octproz(self):
        spectra = noise(N, LINES, SAMPLES)
        levels = []
        for flip in False, True:
            self.recording(spectra, flip_bscans=flip)
            self.oct("a_raw.raw")
            levels.append(self.levels())
        np.testing.assert_array_equal(levels[1], [image[:, ::-1] if i % 2 == 0 else image for i, image in enumerate(levels[0])])
        at = LINES / np.pi * np.arccos(1 - 2 * np.arange(LINES) / LINES)
        before, part = at.astype(int), at % 1
        for plain, flip in zip(levels, (False, True)):
            self.recording(spectra, flip_bscans=flip, sinusoidal_scan_correction=True)
            self.oct("a_raw.raw")
            plain = 10 ** (plain / 10)
            np.testing.assert_allclose(10 ** (self.levels() / 10), plain[..., before] * (1 - part) + plain[..., before + 1] * part, 1e-4)
        self.recording(spectra, changes=[("depth=4", "depth=1")], flip_bscans=True)
        self.assertIn("flip_bscans of OCTproZ starts again with each buffer of 1 ", self.oct("a_raw.raw"))

    def test_a_curve_that_octproz_has_saved(self):
        """It is limited: its last values are equal"""
        spectra = self.light()
        settings = {"resampling": True, "resampling_c1": SAMPLES + 9.0}
        with open(self.path("curve.csv"), "w", encoding="ascii") as file:
            lines = [f"{i};{value:.6f}\n" for i, value in enumerate(octprozmodel.curve(settings, SAMPLES))]
            file.write("Sample Number;Sample Value\n" + "".join(lines))
        words = "background=none", "taper=none"
        printed, _shown, _level = self.same_as_octproz(spectra, "--k-index", "curve.csv", *words, custom_resampling=True, **settings)
        self.assertNotIn("resampling curve", printed)
        self.assertIn("give it with --k-index", self.oct("a_raw.raw"))

    def test_settings_of_octproz_become_properties(self):
        self.recording(noise(N, LINES, SAMPLES), background_removal=True, background_removal_window_size=9, flip_bscans=True)
        self.oct("a_raw.raw")
        told = self.told()
        for name, value in (("background", "rolling"), ("background-reach", "9"), ("bidirectional", "true")):
            self.assertEqual(told[name], value)
        self.oct("a_raw.raw", "background=none", "bidirectional=false")
        told = self.told()
        self.assertEqual((told.get("background"), told.get("bidirectional", "false"), told.get("flip", "none")), ("none", "false", "none"))

    def test_damaged_recordings_are_told(self):
        octfiles.octproz(self.path("a_raw.raw"), noise(N, LINES, SAMPLES), changes=[("height=12", "height=13")])
        octfiles.unp(self.path("a.unp"), noise(N, LINES, SAMPLES), changes=[('Height="12"', 'Height="13"')])
        with open(self.path("a.oct"), "wb") as file:
            file.write(b"PK\3\4")
        for name, words in ("a_raw.raw", "lines of 256 samples of u16"), ("a.unp", "lines of 256 samples of u16"), ("a.oct", "a.oct\" is "):
            self.assertIn(words, self.oct(name, status=3))

    def test_numbers_that_are_none(self):
        for text in "nan", "-", "abc", "1e999":
            octfiles.octproz(self.path("a_raw.raw"), noise(N, LINES, SAMPLES), bits=16,
                             processing=["resampling=true", "resampling_c1=" + text])
            self.assertIn(f"have processing/resampling_c1={text}, which is no number", self.oct("a_raw.raw", status=3))

    @needs_zip
    def test_thorlabs_brings_chirp_and_background(self):
        """A fringe that is one tone over the chirp, on light with a fringe of its own, which the apodization has as well"""
        depth, m = 30, np.arange(SAMPLES)
        chirp = m + 12 * np.sin(np.pi * m / (SAMPLES - 1))
        light = np.rint(4000 * np.cos(2 * np.pi * 70 * chirp / SAMPLES))
        spectra = (fringes(2 * np.pi * depth * chirp / SAMPLES) + light).astype("u2")
        apodization = np.broadcast_to((20000 + light).astype("u2"), (N, 3, SAMPLES))
        octfiles.thorlabs(self.path("a.oct"), spectra, apodization, chirp)
        printed = self.oct("a.oct", "window=hann")
        self.assertIn("a.oct does not tell its wavelengths: depths are in samples. --lambda FIRST LAST gives micrometres and keeps the chirp", printed)
        profile = 10 ** (self.levels() / 10).mean((0, 2))
        self.assertEqual(profile.argmax(), depth)
        self.assertLess(abs(10 * np.log10(profile.max()) - 20 * np.log10(500)), 0.5)
        self.assertLess(10 * np.log10(profile[68:73].max()), 10)  # 4000 counts, 72 dB, but for the rounding
        facts = str(result_of(self.path("out")))
        self.assertIn("chirp, background", facts)
        # the same by hand
        np.savetxt(self.path("chirp.txt"), chirp.astype("f4"), fmt="%.9g")
        np.save(self.path("light.npy"), apodization.mean((0, 1))[None])
        np.save(self.path("a.npy"), spectra)
        levels = self.levels()
        self.oct("a.npy", "--chirp", "chirp.txt", "--background", "light.npy", "window=hann")
        np.testing.assert_array_equal(self.levels(), levels)
        octfiles.thorlabs(self.path("a.oct"), spectra, None, chirp, more={"ApodizationSpectrum": 4 * (20000 + light)})  # in electrons
        self.oct("a.oct", "window=hann")
        np.testing.assert_array_equal(self.levels(), levels)

    @needs_zip
    def test_micrometres_of_thorlabs(self):
        """The header has the scale of both axes, and --lambda another one; neither replaces the chirp"""
        spacing, centre, index, depth, m = 5.0, 1300, 1.38, 60, np.arange(SAMPLES)  # um, nm
        for chirp in m + 25 * np.sin(np.pi * m / (SAMPLES - 1)), SAMPLES - 1 - m - 25 * np.sin(np.pi * m / (SAMPLES - 1)):
            half = (SAMPLES - 1) / SAMPLES / (4 * index * spacing)
            k = 1e3 / centre + half * (2 * chirp / (SAMPLES - 1) - 1)  # 1 / um
            spectra = fringes(4 * np.pi * index * depth * spacing * k)
            octfiles.thorlabs(self.path("chirp.oct"), spectra, None, chirp)
            changes = [("<Instrument>", f"""<Image><SizePixel><SizeZ>{SAMPLES // 2}</SizeZ><SizeX>{LINES // 3}</SizeX></SizePixel><PixelSpacing>
                        <SizeZ>{spacing / 1e3}</SizeZ><SizeX>0.06</SizeX></PixelSpacing></Image><Instrument>"""),
                       ("<Model>", f"<CentralWavelength>{centre}.000000</CentralWavelength><Model>"), ("1.000000</Refr", f"{index}</Refr")]
            octfiles.thorlabs(self.path("a.oct"), spectra, None, chirp, averaging=(3, 1), changes=changes)
            self.oct("chirp.oct", "window=hann", "average-ascans=3")
            levels, samples = self.levels(), result_of(self.path("out"))["width"]
            steps = []
            for words in ("a.oct",), ("chirp.oct", "average-ascans=3", "lateral-step-um=20", f"refractive-index={index}", "--lambda",
                                      *(f"{1e3 / end:.9g}" for end in (k[0], k[-1]))):
                printed = self.oct(*words, "window=hann")
                self.assertNotIn("does not tell", printed)
                np.testing.assert_allclose(self.levels(), levels, atol=0.3)
                told = result_of(self.path("out"))
                self.assertEqual(told["depth-unit"], "um")
                steps.append(told["depth-step"])
                self.assertLess(abs(steps[-1] / spacing / (1 - 1 / 4096) * (1 - 1 / SAMPLES) - 1), 1e-5)
                self.assertLess(abs(told["brightest-depth"] - depth * spacing), 0.05 * spacing)
                self.assertLess(told["width"], 1.01 * samples * spacing)
                with open(self.path("out/level.npy.json"), encoding="utf-8") as file:
                    lateral = json.load(file)["quantity"]["axes"][0]
                self.assertEqual((lateral["unit"], lateral["step"]), ("um", 60))
        self.oct("a.oct", "refractive-index=1", "lateral-step-um=2")
        self.assertLess(abs(result_of(self.path("out"))["depth-step"] / steps[0] / index - 1), 1e-5)
        with open(self.path("ends.ini"), "w", encoding="ascii") as file:
            file.write("[camera]\nlambda-first=1200\nlambda-last=1400\n")
        self.assertIn("the chirp of a.oct is not used", self.oct("a.oct", "--calibration", "ends.ini"))
        octfiles.thorlabs(self.path("b.oct"), spectra, None, chirp, changes=[*changes, ("<SizeZ>128<", "<SizeZ>100<"), ("<SizeX>4<", "<SizeX>9<")])
        printed = self.oct("b.oct")
        for words in "depths in images with 100 of them, and there are 128 here", "columns in images with 9 of them, and there are 12 here":
            self.assertIn(words, printed)
        self.assertEqual(result_of(self.path("out"))["depth-unit"], "pixel")

    @needs_zip
    def test_averages_of_thorlabs_and_a_damaged_chirp(self):
        spectra = fringes(2 * np.pi * 30 * np.arange(SAMPLES) / SAMPLES)
        octfiles.thorlabs(self.path("a.oct"), spectra, None, np.full(SAMPLES, np.nan), averaging=(3, 2))
        self.assertIn("or does not rise all the way: it is not used", self.oct("a.oct"))
        self.assertEqual(self.levels().shape[0::2], (N // 2, LINES // 3))

    @unittest.skipUnless(os.path.exists(REAL), f"{REAL} is not there; set IMAGING_TEST_DATA")
    def test_a_real_retina(self):
        """Its brightest layer is at depth 127 with the calibration of its README"""
        for name in "volume_2048x20x20_u16le.unp", "volume.xml":
            shutil.copy(os.path.join(os.path.dirname(REAL), name), self.folder)
        printed = self.oct("volume_2048x20x20_u16le.unp", "--lambda", "806", "675", "--dispersion=0;0;-12", "window=hann")
        self.assertNotIn("does not tell its wavelengths", printed)
        profile = (10 ** (self.levels() / 10)).mean((0, 2))
        self.assertLess(abs(int(profile[20:].argmax()) + 20 - 127), 3)
        self.assertIn("C2=1.3E-05, C3=0 in units of their program", self.oct("volume_2048x20x20_u16le.unp"))


def corrected(records, n_lines, first, samples, reach, cameras=1, first_camera=0, back=1):
    """The definition of octbscan's sweeps and jitter-*, in float64. records [lines, samples]. Returns: spectra"""
    spectra = records.copy()
    margin, width = reach + 1, records.shape[1]
    order = sorted(range(-margin, margin + 1), key=lambda s: (abs(s), s))
    reference = {}  # of each camera, from its first B-scan
    for start in range(0, len(records), n_lines):
        lines = range(start, min(start + n_lines, len(records)))
        for r in lines:
            if (r + first_camera) // cameras % 2 == back:
                spectra[r] = spectra[r][::-1]
        shifts = dict.fromkeys(lines, 0)
        window = {r: spectra[r, first - margin:first + samples + margin].astype(float) for r in lines}
        for _pass in range(2):
            mean = {}
            for c in range(cameras):
                mine = [window[r][margin + shifts[r]:][:samples] for r in lines if (r + first_camera) % cameras == c]
                mean[c] = reference[c] if c in reference else np.mean(mine, 0) if mine else None
            for r in lines:
                m = mean[(r + first_camera) % cameras]
                fit = {s: np.corrcoef(window[r][margin + s:][:samples], m)[0, 1] for s in order}
                best = max(order, key=lambda s: fit[s])
                shifts[r] = best if fit[best] >= 0.5 and abs(best) < margin else 0
        reference = mean
        for r in lines:
            spectra[r] = spectra[r][np.clip(np.arange(width) + shifts[r], 0, width - 1)]
    return spectra


@needs_fft
class Sweeps(Files):
    """Records of a swept source: 16 bits with sign, jitter of the trigger, every second sweep back"""

    def records(self, n):
        m = np.arange(SAMPLES)
        lines = []
        for r in range(n):
            at = np.clip(m - RNG.integers(-2, 3), 0, SAMPLES - 1)
            line = 8000 * np.exp(-0.02 * (at - 40) ** 2) * np.cos(0.4 * at) + (at > 80) * 3000 * np.cos(1.1 * at + 2.4 * r)
            line = np.rint(line + RNG.normal(0, 40, SAMPLES)).astype("i2")
            lines.append(line[::-1] if r // self.cameras % 2 else line)
        return np.array(lines)

    def play(self, name, *words):
        launch("picturesrc", "location=" + self.path(name), "axes=nyx", "!", "octbscan", "ascans-per-bscan=15", "window=hann", *words, "!",
               "other/tensors", "!", "filesink", "location=" + self.path("played"))
        return np.fromfile(self.path("played"), "f4").reshape(-1, SAMPLES // 2, 15)

    def check(self, lines_of_a_buffer, *words, first_camera=0):
        records = self.records(60)
        # the turns begin with first-camera, so the first A-scan of camera 0 may be the second line
        records = np.concatenate([records[first_camera:], records[:first_camera]]) if first_camera else records
        options = ("sweeps=alternating", "jitter-reach=3", "jitter-first=20", "jitter-samples=40")
        spectra = corrected(records, 15, 20, 40, 3, self.cameras, first_camera)
        self.assertFalse(np.array_equal(spectra, records))
        for name, values in ("records.npy", records), ("spectra.npy", spectra):
            np.save(self.path(name), values.reshape(-1, lines_of_a_buffer, SAMPLES))
        words = (*words, f"cameras={self.cameras}", f"first-camera={first_camera}")
        np.testing.assert_array_equal(self.play("records.npy", *words, *options), self.play("spectra.npy", *words))

    def test_spectra_are_those_of_the_definition(self):
        for self.cameras, lines, first_camera in (1, 15, 0), (2, 4, 1), (1, 60, 0):
            self.check(lines, "backend=cpu", first_camera=first_camera)

    def test_on_a_device_as_well(self):
        self.cameras = 1
        self.check(30, "backend=cuda")

    def test_what_cannot_be_aligned_is_told(self):
        self.cameras = 1
        np.save(self.path("noise.npy"), noise(4, 15, SAMPLES, dtype="i2"))
        printed = launch("picturesrc", "location=" + self.path("noise.npy"), "!", "octbscan", "jitter-reach=3", "!", "fakesink")
        self.assertIn("of 15 records are left as they are", printed)
        printed = launch("picturesrc", "location=" + self.path("noise.npy"), "!", "octbscan", "jitter-reach=3", "jitter-samples=250", "!",
                         "fakesink", status=1)
        self.assertIn("The calibration window has the samples 16 to 265 of 256", printed)


if __name__ == "__main__":
    main()
