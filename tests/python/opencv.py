# SPDX-License-Identifier: LGPL-2.1-or-later
"""lapsharpen and cv2.filter2D give the same bytes."""
import os
import tempfile
import unittest

import numpy as np

from support import main, through

try:
    import cv2
except ImportError:
    cv2 = None

FOUR = np.array([[0, -1, 0], [-1, 4, -1], [0, -1, 0]], np.float32)
EIGHT = np.array([[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]], np.float32)


def borders():
    return [("replicate", cv2.BORDER_REPLICATE), ("reflect101", cv2.BORDER_REFLECT_101),
            ("reflect", cv2.BORDER_REFLECT), ("constant", cv2.BORDER_CONSTANT)]


def expected(frame, amount, neighbours, border):
    kernel = amount * (FOUR if neighbours == 4 else EIGHT)
    kernel[1, 1] += 1
    return cv2.filter2D(frame, -1, kernel, borderType=border)


@unittest.skipUnless(cv2, "there is no OpenCV; tools/venv installs it")
class OpenCV(unittest.TestCase):
    def same(self, found, wanted, where):
        places = np.argwhere(found != wanted)
        if len(places):
            place = tuple(places[0])
            self.fail(f"{where}: {len(places)} samples differ, first at [y, x, c] = {place}:"
                      f" {found[place]}, OpenCV {wanted[place]}")

    def compare(self, backend, frame, format, has_alpha=False):
        for name, border in borders():
            for amount in (1, 2):
                for neighbours in (4, 8):
                    wanted = expected(frame, amount, neighbours, border)
                    element = (f"lapsharpen backend={backend} border={name} amount={amount}"
                               f" neighbours={neighbours} border-value=0 alpha=")
                    self.same(through(element + "filter", frame, format), wanted, element)
                    if has_alpha:
                        found = through(element + "copy", frame, format)
                        self.same(found[..., :3], wanted[..., :3], element + "copy")
                        self.same(found[..., 3], frame[..., 3], element + "copy, alpha")

    def test_random_rgba_2580x1319(self):
        frame = np.random.RandomState(1).randint(0, 256, (1319, 2580, 4), np.uint8)
        self.compare("cpu", frame, "RGBA", has_alpha=True)

    def test_other_formats_and_odd_sizes_on_both_backends(self):
        random = np.random.RandomState(2)
        for backend in ("cpu", "cuda"):
            for height, width in ((3, 641), (1, 7), (7, 1), (1, 1), (37, 53)):
                for format, channels, dtype in (("GRAY8", 1, np.uint8), ("RGB", 3, np.uint8),
                                                ("GRAY16_LE", 1, np.uint16)):
                    shape = (height, width, channels) if channels > 1 else (height, width)
                    frame = random.randint(0, np.iinfo(dtype).max + 1, shape).astype(dtype)
                    self.compare(backend, frame, format)

    def test_kernels_from_a_file(self):
        random = np.random.RandomState(3)
        for size in (3, 5, 7):
            # whole, with halves to round, and any: there OpenCV may fuse products and sums, which
            # decides for 1 where a sum is a float32 step from a half: 2^-16 of 255, 2^-8 of 65535
            for kind, weights, exact in (
                    ("whole", random.randint(-9, 10, (size, size)), True),
                    ("sixteenths", random.randint(-40, 41, (size, size)) / 16, True),
                    ("any", random.uniform(-1, 1, (size, size)) / size, False)):
                weights = weights.astype(np.float32)
                for format, channels, dtype in (("GRAY8", 1, np.uint8), ("RGB", 3, np.uint8),
                                                ("GRAY16_LE", 1, np.uint16)):
                    shape = (67, 641, channels) if channels > 1 else (67, 641)
                    frame = random.randint(0, np.iinfo(dtype).max + 1, shape).astype(dtype)
                    for name, border in borders():
                        wanted = cv2.filter2D(frame, -1, weights, borderType=border)
                        found = self.with_kernel(weights, name, frame, format)
                        where = f"{kind} {size}x{size} {format} {name}"
                        most = 1e-4 if dtype == np.uint8 else 1e-2
                        if exact:
                            self.same(found, wanted, where)
                        else:
                            difference = np.abs(found.astype(int) - wanted.astype(int))
                            self.assertLessEqual(difference.max(), 1, where)
                            self.assertLessEqual(np.mean(difference > 0), most, where)

    def with_kernel(self, weights, border, frame, format):
        with tempfile.TemporaryDirectory() as folder:
            location = os.path.join(folder, "kernel.npy")
            np.save(location, weights)
            return through(f"lapsharpen backend=cpu method=kernel kernel-location={location}"
                           f" border={border} border-value=0", frame, format)


if __name__ == "__main__":
    main()
