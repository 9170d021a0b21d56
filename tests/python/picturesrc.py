# SPDX-License-Identifier: LGPL-2.1-or-later
"""picturesrc as users call it: which files a location stands for, what is missing among them, and what it says."""
import json
import os
import shutil
import tempfile
import unittest

import numpy as np

from support import launch, main


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class Files(Case):
    """Folders, patterns and numbered series"""

    def series(self, numbers, name="f%04d.pgm"):
        """A folder of numbered pictures, each with its number as samples"""
        folder = self.path("series")
        os.makedirs(folder, exist_ok=True)
        for number in numbers:
            with open(os.path.join(folder, name % number), "wb") as file:
                file.write(b"P5 3 2 255\n" + bytes([number] * 6))
        return folder

    def record(self, location):
        """Returns: what was printed, the samples, and the sidecar"""
        printed = launch("picturesrc", "location=" + location, "!", "picturesink", "sidecar=always",
                         "location=" + self.path("out.npy"))
        with open(self.path("out.npy.json"), encoding="utf-8") as file:
            return printed, np.load(self.path("out.npy"))[:, 0, 0].tolist(), json.load(file)

    def test_a_gap_in_a_series_is_named_and_counted(self):
        folder = self.series([1, 2, 4, 5, 6, 9])
        printed, samples, told = self.record(folder)
        self.assertIn('From "f0001.pgm" to "f0009.pgm" 3 files are missing: 3, 7 to 8.', printed)
        self.assertEqual(printed.count("WARNING"), 1)
        self.assertEqual((samples, told["frames-missing"]), ([1, 2, 4, 5, 6, 9], 3))
        self.assertEqual(told["frame-numbers"], [0, 1, [3, 1, 3], 8])

    def test_what_is_no_gap(self):
        folder = self.series([10, 20, 30, 40])  # every tenth
        self.assertEqual(self.record(folder)[2]["frames-missing"], 0)
        self.series([7, 19, 31, 200])  # no step
        printed, _samples, told = self.record(folder)
        self.assertNotIn("WARNING", printed)
        self.assertEqual(told["frames-missing"], 0)
        shutil.rmtree(folder)
        self.series(range(1, 13), "f%d.pgm")  # 2 to 9 are there, and the pattern does not fit them
        printed, samples, _told = self.record(os.path.join(folder, "f1*.pgm"))
        self.assertNotIn("WARNING", printed)
        self.assertEqual(samples, [1, 10, 11, 12])

    def test_the_name_that_picturesink_had(self):
        folder = self.series([0, 1, 2])
        self.series([3], "other%04d.pgm")
        self.assertEqual(self.record(os.path.join(folder, "f%04d.pgm"))[1], [0, 1, 2])
        printed = launch("picturesrc", "location=" + os.path.join(folder, "g%04d.pgm"), "!", "fakesink", status=1)
        self.assertIn("by a pattern with * in place of the number, or by its folder", printed)

    def test_a_note_beside_pictures_is_left_out(self):
        folder = self.series([0, 1, 2])
        for name in "notes.txt", "lights.lp":
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write("3\n")
        os.rename(os.path.join(folder, "f0001.pgm"), os.path.join(folder, "f0001"))  # by what it holds
        printed, samples, _told = self.record(folder)
        self.assertRegex(printed, 'Left out of .*: "(notes.txt|lights.lp)" and 1 more')
        self.assertEqual(sorted(samples), [0, 1, 2])
        for name in os.listdir(folder):
            if name.startswith("f"):
                os.remove(os.path.join(folder, name))
        self.assertIn("which no format does that is read here", launch("picturesrc", "location=" + folder, "!", "fakesink", status=1))

    def test_floats_into_video_are_told_what_converts(self):
        np.save(self.path("f.npy"), np.zeros((2, 3, 4), "f4"))
        printed = launch("picturesrc", "location=" + self.path("f.npy"), "!", "videoconvert", "!", "fakesink", status=1)
        self.assertIn("videoconvert takes none. Scale them to u8 or u16, for example with NumPy", printed)
        np.save(self.path("u.npy"), np.zeros((2, 3, 4), "u1"))
        printed = launch("picturesrc", "location=" + self.path("u.npy"), "!", "video/x-raw,format=RGB", "!", "fakesink", status=1)
        self.assertIn("Put videoconvert between", printed)


if __name__ == "__main__":
    main()
