# SPDX-License-Identifier: LGPL-2.1-or-later
"""pipelines/insarxcorr-coregister on pairs whose offsets are known: as coherent as after the true offsets, and flat."""
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

import support
from support import SOURCE, TIMEOUT, launch, main

support.DATA = os.path.join(os.path.dirname(support.DATA), "insarxcorr")
data = support.data

COREGISTER = os.path.join(SOURCE, "pipelines", "insarxcorr-coregister")
NAMES = {"shift-r": "r0", "stretch-r": "sr", "a-stretch-r": "ar", "shift-a": "a0", "stretch-a": "sa", "a-stretch-a": "aa"}


def coregister(*words, status=0):
    """Returns: what the script printed."""
    done = subprocess.run([COREGISTER, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=2 * TIMEOUT, env={**os.environ, "GST_IMAGING_ENV": "1"})
    if done.returncode != status:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}")
    return done.stdout


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


class Coregistration(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def check_pair(self, pair):
        truth, out = read_truth(pair), os.path.join(self.folder, pair)
        width, height = int(truth["cols"]) // 2, int(truth["rows"]) // 2
        text = coregister(data(os.path.join(pair, "ref.PRM")), data(os.path.join(pair, "sec.PRM")), out,
                          "--interferogram", "--slc")
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


class WrongInput(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write_noise(self, name, seed, grain=1):
        rng = np.random.default_rng(seed)
        small = rng.integers(-999, 999, (400 // grain, 400 // grain, 2))
        np.kron(small, np.ones((grain, grain, 1))).astype("<i2").tofile(os.path.join(self.folder, name + ".SLC"))
        path = os.path.join(self.folder, name + ".PRM")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"SLC_file = {name}.SLC\nnum_rng_bins = 400\nnum_valid_az = 400\nPRF = 1000\n")
        return path

    def test_strangers_give_no_fringes(self):
        out = os.path.join(self.folder, "out")
        text = coregister(self.write_noise("a", 1), self.write_noise("b", 2), out, status=1)
        self.assertIn("Too few patches correlate", text)
        self.assertEqual(os.listdir(out), [])

    def test_coarse_strangers_give_no_fringes_either(self):
        """Some of their patches are alike by chance."""
        out = os.path.join(self.folder, "out")
        text = coregister(self.write_noise("a", 1, 4), self.write_noise("b", 2, 4), out, status=1)
        self.assertIn("these do not agree", text)
        self.assertEqual(os.listdir(out), [])

    def test_an_image_that_is_not_there(self):
        text = coregister(os.path.join(self.folder, "no.PRM"), self.write_noise("b", 2), self.folder, status=1)
        self.assertIn("There is no file", text)

    def test_two_folders(self):
        text = coregister("a.PRM", "b.PRM", "c", "d", status=2)
        self.assertIn("there is one FOLDER", text)


if __name__ == "__main__":
    main()
