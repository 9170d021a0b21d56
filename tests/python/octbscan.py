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
