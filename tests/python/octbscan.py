# SPDX-License-Identifier: LGPL-2.1-or-later
"""octbscan on generated retinas: several cameras make one image."""
import importlib.util
import os
import tempfile
import unittest

import numpy as np

from support import SOURCE, Gst, main, play

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
        play(f"npysrc location={npy} ! octbscan backend=cpu cameras={cameras}"
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
            play(f"npysrc location={npy} ! octbscan backend=cpu cameras=2 calibration={ini}"
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
            f"npysrc location={npy} ! octbscan name=o backend=cpu cameras=2 calibration={ini}"
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


if __name__ == "__main__":
    main()
