# SPDX-License-Identifier: LGPL-2.1-or-later
"""octbscan on generated retinas: several cameras make one image."""
import importlib.util
import os
import tempfile
import unittest

import numpy as np

from support import DATA, SOURCE, Gst, main, play

spec = importlib.util.spec_from_file_location(
    "retina", os.path.join(SOURCE, "tests", "data", "retina.py"))
retina = importlib.util.module_from_spec(spec)
spec.loader.exec_module(retina)

SAMPLES, LINES = 832, 240
BLACK, WHITE = -40, 60  # dB


@unittest.skipUnless(Gst.ElementFactory.find("octbscan"), "built without an FFT")
class Cameras(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def image(self, spectra, calibration, cameras, properties=""):
        """Returns: dB, [depths, lines]."""
        ini, npy, raw = (os.path.join(self.folder, n) for n in ("c.ini", "s.npy", "i.raw"))
        with open(ini, "w") as file:
            file.write(calibration)
        np.save(npy, spectra)
        play(f"picturesrc location={npy} ! octbscan backend=cpu cameras={cameras}"
             f" calibration={ini} window=hann taper=none range-min={BLACK} range-max={WHITE}"
             f" {properties} ! video/x-raw,format=GRAY16_LE ! filesink location={raw}")
        levels = np.fromfile(raw, "<u2").reshape(-1, LINES)
        return levels / 65535 * (WHITE - BLACK) + BLACK

    def stripes(self, image, cameras):
        """How far the mean profiles of the cameras are from each other, as a
        part of what the layers rise above the dark between them."""
        lines = image.shape[1] // cameras * cameras
        power = 10 ** (image[:, :lines] / 10)
        # the same places are seen by all cameras
        profiles = np.stack([power[:, c::cameras].mean(axis=1) for c in range(cameras)])
        mean = profiles.mean(axis=0)
        contrast = mean.max() - np.median(mean)
        return np.sqrt(((profiles - mean) ** 2).mean()) / contrast

    def check(self, cameras):
        spectra = retina.make(cameras, SAMPLES, LINES)
        own = self.stripes(self.image(
            spectra, retina.ini(cameras, SAMPLES), cameras), cameras)
        common = self.stripes(self.image(
            spectra, retina.ini(cameras, SAMPLES, common=True), cameras), cameras)
        print(f"{cameras} cameras: stripes {100 * own:.3f} %, with one calibration"
              f" {100 * common:.1f} %")
        self.assertLess(own, 0.005)
        self.assertGreater(common, 0.02)

    def test_two_cameras_make_no_stripes(self):
        self.check(2)

    def test_four_cameras_make_no_stripes(self):
        self.check(4)

    def test_layers_are_where_they_are(self):
        spectra = retina.make(1, SAMPLES, LINES)
        for scale in (1, 4):
            image = self.image(spectra, retina.ini(1, SAMPLES), 1, f"scale={scale}")
            profile = (10 ** (image / 10)).mean(axis=1)
            # the sixth part of a bin of M samples over N - 1 pixels is nothing
            expected = 0.47 * SAMPLES / 2 * scale
            self.assertLess(abs(profile.argmax() - expected), 0.05 * expected)

    def test_tracking_holds_a_retina_that_moves(self):
        count, motion = 14, 8.0
        layers = retina.LAYERS
        self.addCleanup(setattr, retina, "LAYERS", layers)
        # one that is the brightest in every B-scan, whatever its speckle
        retina.LAYERS = layers[:3] + [(0.47, 0.012, 4.0)] + layers[5:]
        spectra = retina.make(2, SAMPLES, 60, bscans=count, motion=motion, grains=30)
        # and the retina is a slow wave over all B-scans
        along = (np.arange(count * 60) // 2 + 0.5) / (count * 30)
        wave = 0.02 * SAMPLES / 2 * np.sin(2 * np.pi * along)
        known = retina.motions(count, motion) + wave.reshape(count, 60).mean(axis=1)
        ini, npy, raw = (os.path.join(self.folder, n) for n in ("c.ini", "s.npy", "i.raw"))
        with open(ini, "w") as file:
            file.write(retina.ini(2, SAMPLES))
        np.save(npy, spectra)
        for tracking in "none", "rpe", "contour", "xcorr":
            play(f"picturesrc location={npy} ! octbscan backend=cpu cameras=2 calibration={ini}"
                 f" window=hann taper=none range-min={BLACK} range-max={WHITE}"
                 f" tracking={tracking} tracking-bscans={count} tracking-top=150"
                 f" tracking-bottom=150 ! video/x-raw,format=GRAY16_LE ! filesink location={raw}")
            levels = np.fromfile(raw, "<u2").reshape(count, -1, 60)
            profiles = (10 ** ((levels / 65535 * (WHITE - BLACK) + BLACK) / 10)).mean(axis=2)
            # of the first B-scan, which each of the others has to lie on
            places = [np.argmax(np.correlate(p - p.mean(), profiles[0] - profiles[0].mean(), "same"))
                      for p in profiles]
            moved = np.array(places) - places[0]
            if tracking == "none":
                self.assertLess(np.abs(moved - (known - known[0])).max(), 1.6)
            else:
                # the mean of places is found while it is looked at
                step = np.abs(np.diff(moved))[4:].max()
                print(f"tracking={tracking}: at most {step} depths from B-scan to B-scan,"
                      f" moved by up to {np.abs(np.diff(known)).max():.1f}")
                # the brightest of a layer of five depths may be anywhere in it
                self.assertLessEqual(step, 4 if tracking == "rpe" else 2)

    def test_dispersion_of_each_camera_is_found(self):
        spectra = retina.make(2, SAMPLES, LINES)
        lines = [line for line in retina.ini(2, SAMPLES).splitlines()
                 if not line.startswith("dispersion")]
        ini, npy = (os.path.join(self.folder, n) for n in ("c.ini", "s.npy"))
        with open(ini, "w") as file:
            file.write("\n".join(lines))
        np.save(npy, spectra)
        pipeline = Gst.parse_launch(
            f"picturesrc location={npy} ! octbscan name=o backend=cpu cameras=2 calibration={ini}"
            " window=hann taper=none ! fakesink")
        element = pipeline.get_by_name("o")
        element.emit("estimate-dispersion")
        pipeline.set_state(Gst.State.PLAYING)
        message = pipeline.get_bus().timed_pop_filtered(
            60 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual(message.type, Gst.MessageType.EOS)
        for camera, text in enumerate(element.get_property("dispersion").split(",")):
            d2, d3 = (float(d) for d in text.split(";")[2:4])
            _, quadratic, cubic, _ = retina.calibration(camera, SAMPLES)
            print(f"camera {camera}: d2 {d2:.2f} of {-quadratic}, d3 {d3:.2f} of {-cubic}")
            self.assertLess(abs(d2 + quadratic), 0.5)
            self.assertLess(abs(d3 + cubic), 1.0)

    def test_thesis_mode_is_close_to_the_exact_one(self):
        spectra = retina.make(2, SAMPLES, LINES)
        exact = self.image(spectra, retina.ini(2, SAMPLES), 2)
        thesis = self.image(spectra, retina.ini(2, SAMPLES), 2,
                            "interpolation=thesis grid=thesis taper=thesis")
        a, b = (10 ** (i / 20) for i in (exact, thesis))
        error = np.sqrt(((a - b) ** 2).mean() / (a ** 2).mean())
        self.assertGreater(error, 1e-4)
        self.assertLess(error, 0.2)


REAL = os.path.join(os.path.dirname(DATA), "octbscan")


def by_definition(spectra, positions, phase_of_pixels=0, phase_of_wavenumbers=0):
    """Z of docs/reference/octbscan.md in float64, by sums over all samples: background=mean, no taper, no window, scale=1."""
    n, m = spectra.shape[1], len(positions)
    light = (spectra - spectra.mean(0)) * np.exp(1j * phase_of_pixels)
    lowest = -(n // 2)
    frequencies = np.arange(lowest, n // 2 + 1)
    weights = np.where(abs(frequencies) == n // 2, 0.5, 1)  # half of the highest on either side
    parts = light @ np.exp(-2j * np.pi * np.outer(np.arange(n), frequencies) / n)
    resampled = parts * weights @ np.exp(2j * np.pi * np.outer(frequencies, positions) / n) / n
    return 2 / m * np.fft.fft(resampled * np.exp(1j * phase_of_wavenumbers), axis=1)[:, :n // 2]


@unittest.skipUnless(Gst.ElementFactory.find("octbscan"), "built without an FFT")
class RealSpectra(unittest.TestCase):
    """Complex output of real B-scans beside float64: the DC is thousands of times the fringes."""
    def spectra(self, name, shape):
        path = os.path.join(REAL, name)
        if not os.path.exists(path):
            self.skipTest(f"{path} is not there; set IMAGING_TEST_DATA")
        return np.fromfile(path, "<u2").reshape(shape)

    def check(self, name, spectra, calibration, expected):
        with tempfile.TemporaryDirectory() as folder:
            ini, npy, raw = (os.path.join(folder, n) for n in ("c.ini", "s.npy", "z.raw"))
            with open(ini, "w") as file:
                file.write(calibration)
            np.save(npy, spectra[None])
            for strategy in "fft", "operator":
                play(f"picturesrc location={npy} ! octbscan name=o backend=cpu calibration={ini} strategy={strategy}"
                     f" o.src ! queue ! fakesink o.complex ! queue ! filesink location={raw}")
                found = np.fromfile(raw, "<c8").reshape(expected.shape)
                error, size = abs(found - expected), np.sqrt((abs(expected) ** 2).mean())
                rms, worst = np.sqrt((error ** 2).mean()) / size, error.max() / size
                print(f"{name}, {strategy}: rms {rms:.1e}, worst {worst:.1e}")
                self.assertLess(rms, 3e-6)
                self.assertLess(worst, 1e-5)
            self.check_floats(name, npy, ini, raw, expected)

    def check_floats(self, name, npy, ini, raw, z):
        """Tensors are what the definition says, and a picture is the tensor with its range."""
        def image(pad, caps, dtype):
            rest = "" if pad == "src" else "o.src ! queue ! fakesink"
            play(f"npysrc location={npy} ! octbscan name=o backend=cpu calibration={ini} strategy=fft range-min=-10"
                 f" range-max=50 linear-max=1e4 {rest} o.{pad} ! queue ! {caps} ! filesink location={raw}")
            found = np.fromfile(raw, dtype)
            return found.reshape(len(found) // (-len(z) // 4 * -4 if dtype == "u1" else len(z)), -1)[:, :len(z)]

        for pad, low, high in ("src", -10, 50), ("linear", 0, 1e4):
            floats = image(pad, "other/tensors", "<f4")
            power = 10 ** (floats.astype(float) / 10) if pad == "src" else floats.astype(float)
            error = abs(np.sqrt(power) - abs(z.T)) / np.sqrt((abs(z) ** 2).mean())
            levels = (floats - np.float32(low)) * np.float32(255 / np.float32(high - low))
            levels = np.floor(levels.clip(0, 255) + np.float32(0.5))
            print(f"{name}, {pad} as floats: worst {error.max():.1e}")
            self.assertLess(error.max(), 1e-5)
            np.testing.assert_array_equal(image(pad, "video/x-raw,format=GRAY8", "u1"), levels)

    def test_octcal_has_the_documented_accuracy(self):
        spectra = self.spectra("octcal/bscans_040-047_1024x100x8_u16le.raw", (8, 100, 1024))[0]
        index, phase = (np.load(os.path.join(REAL, "octcal", n + ".npy")) for n in ("klinear", "dispersion"))
        positions = np.interp(np.linspace(0, 1023, 4096), np.arange(1024), index).clip(0, 1023)
        self.check("octcal", spectra, f"[camera]\nk-index={REAL}/octcal/klinear.npy\n"
                   f"phase={REAL}/octcal/dispersion.npy\nphase-domain=spectrum\n",
                   by_definition(spectra, positions, phase_of_pixels=phase))

    def test_octopod_has_the_documented_accuracy(self):
        spectra = self.spectra("octopod/volume_2048x20x20_u16le.unp", (20, 20, 2048))[3]
        wavenumbers = np.linspace(1 / 806, 1 / (806 - 0.064 * 2047), 4096)
        expected = by_definition(spectra, (806 - 1 / wavenumbers) / 0.064,
                                 phase_of_wavenumbers=-12 * np.linspace(-1, 1, 4096) ** 2)
        self.check("octopod", spectra, "[camera]\npolynomial=806;-0.064\ndispersion=0;0;-12\n", expected)


if __name__ == "__main__":
    main()
