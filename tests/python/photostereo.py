# SPDX-License-Identifier: LGPL-2.1-or-later
"""photostereo on real recordings, against independent float64 solutions."""
import glob
import os
import sys
import tempfile
import unittest

import numpy as np

import support
from support import SOURCE, TIMEOUT, Gst, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import pictures

support.DATA = os.path.join(os.path.dirname(support.DATA), "photostereo")
data = support.data

PADS = {"normal": 3, "albedo": 3, "ambient": 3, "quality": 4}


def angle(a, b):
    """Degrees between vectors along the last axis."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.degrees(np.arctan2(
        np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


def is_valid(normal):
    return (normal != 0).any(-1)


class Recording:
    """A set of pictures of a folder of the data, or every step-th, and its references."""

    def __init__(self, name, folder, step=1):
        self.folder = data(name)
        chosen = slice(None, None, step)
        paths = sorted(glob.glob(os.path.join(data(name), "[0-9]*.png")))[chosen]
        frames = pictures.read_set(paths)
        self.shape = frames.shape[1:3]
        self.n = len(frames)
        stem = os.path.join(folder, f"{name}-{step}")
        self.path = stem + ".npy"
        np.save(self.path, frames)
        self.lights = stem + ".txt"
        with open(os.path.join(self.folder, "lights.lp"), encoding="ascii") as file:
            lights = [line.split()[-3:] for line in file.read().splitlines()[1:]]
        with open(self.lights, "w", encoding="ascii") as file:
            file.writelines(" ".join(light) + "\n" for light in lights[chosen])
        self.intensities = None
        source = os.path.join(self.folder, "light_intensities.txt")
        if os.path.exists(source):
            self.intensities = stem + "-intensities.txt"
            with open(source, encoding="ascii") as file:
                intensities = file.read().splitlines(True)
            with open(self.intensities, "w", encoding="ascii") as file:
                file.writelines(intensities[chosen])

    def array(self, name):
        return np.load(os.path.join(self.folder, name + ".npy"))

    def mask(self):
        mask = pictures.read_png(os.path.join(self.folder, "mask.png"))
        return (mask if mask.ndim == 2 else mask[..., 0]) > 0

    def solve(self, properties=""):
        """Returns: the last result as float32 arrays by pad, and the messages."""
        intensities = f"intensities-location={self.intensities}" if self.intensities else ""
        pipeline = Gst.parse_launch(
            f"picturesrc location={self.path} ! photostereo name=p lights-location={self.lights}"
            f" {intensities} {properties} " +
            " ".join(f"p.{pad} ! other/tensors ! queue max-size-bytes=0 !"
                     f" appsink name={pad} sync=false" for pad in PADS))
        pipeline.set_state(Gst.State.PLAYING)
        bus, progress = pipeline.get_bus(), []
        arrays = {pad: [] for pad in PADS}
        try:
            for pad, channels in PADS.items():
                while True:
                    sample = pipeline.get_by_name(pad).emit(
                        "try-pull-sample", TIMEOUT * Gst.SECOND)
                    if not sample:
                        break
                    buffer = sample.get_buffer()
                    arrays[pad].append(np.frombuffer(
                        buffer.extract_dup(0, buffer.get_size()), np.float32
                    ).reshape(*self.shape, channels))
            while message := bus.pop():
                if message.type == Gst.MessageType.ERROR:
                    raise AssertionError(message.parse_error())
                structure = message.get_structure()
                if message.type == Gst.MessageType.ELEMENT and \
                        structure.get_name() == "photostereo-progress":
                    progress.append(structure)
        finally:
            pipeline.set_state(Gst.State.NULL)
        return arrays, progress


class RealPictures(unittest.TestCase):
    def test_pictures_as_they_lie_give_what_the_array_gives(self):
        """The 16-bit PNG of DiLiGenT, whose folder also holds a mask, against the array of them."""
        names = os.path.join(self.bear.folder, "???.png")
        found = []
        for location in names, self.bear.path:
            path = os.path.join(self.folder, "normals")
            support.launch("picturesrc", "location=" + location, "!", "photostereo", "name=p", "normal-encoding=tensor",
                           "lights-location=" + os.path.join(self.bear.folder, "lights.lp"), "intensities-location="
                           + os.path.join(self.bear.folder, "light_intensities.txt"), "p.normal", "!", "filesink",
                           "location=" + path)
            with open(path, "rb") as file:
                found.append(file.read())
        height, width = self.bear.shape
        self.assertEqual(len(found[0]), height * width * 3 * 4)
        self.assertEqual(found[0], found[1])

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.gray = Recording("uw_gray", cls.folder)
        cls.bear = Recording("diligent_bear", cls.folder)

    def last(self, recording, properties):
        arrays, _ = recording.solve(properties)
        return {pad: frames[-1] for pad, frames in arrays.items()}

    def test_least_squares_equals_the_reference_at_every_pixel(self):
        for recording in (self.gray, self.bear):
            found = self.last(recording, "robust=none")["normal"]
            expected, mask = recording.array("ref_normals_l2"), recording.mask()
            solved = mask & np.isfinite(expected).all(-1)
            self.assertGreater(solved.sum(), 5000)
            self.assertTrue(is_valid(found)[solved].all())
            self.assertLess(angle(found, expected)[solved].max(), 0.01)

    def check_paper(self, recording, thresholds):
        found = self.last(
            recording, "light-model=raw threshold-mode=absolute readmit=false"
            f" min-condition=1e-6 {thresholds}")
        expected = recording.array("ref_normals_seed")
        counts = recording.array("ref_lightcount_seed")
        albedo = recording.array("ref_albedo_seed")
        solved = recording.mask() & np.isfinite(expected).all(-1)
        near = is_valid(found["normal"]) & (angle(found["normal"], expected) < 0.02)
        self.assertGreater(near[solved].mean(), 0.995)
        same = found["quality"][..., 0] == counts
        self.assertGreater(same[solved].mean(), 0.995)
        albedo = albedo / (255 if np.nanmax(albedo) > 20 else 1)
        both = solved & near & same
        difference = np.abs(found["albedo"] - albedo)[both]
        self.assertLess(difference.max(), 1e-3 * np.nanmax(albedo))

    def test_the_papers_rejection_equals_the_reference(self):
        self.check_paper(
            self.gray, f"t-min={10 / 255} t-max={250 / 255} t-res={8 / 255}")
        self.check_paper(self.bear, "t-min=0.005 t-max=0.25 t-res=0.01")

    def test_ambient_equals_the_reference(self):
        for recording in (self.gray, self.bear):
            found = self.last(recording, "robust=none")["ambient"]
            expected, mask = recording.array("ref_ambient"), recording.mask()
            scale = 255 if np.nanmax(expected) > 2 else 1
            difference = np.abs(found - expected / scale)[mask]
            self.assertLess(np.nanmax(difference), 1e-5)

    def test_the_default_is_nearer_to_the_truth(self):
        for recording, truth, limit, squares in (
                (self.gray, "analytic_sphere_normals", 5.3, 6.17),
                (self.bear, "gt_normals", 5.5, 8.40)):
            expected, mask = recording.array(truth), recording.mask()
            solved = mask & np.isfinite(expected).all(-1)
            for properties, most in (("", limit), ("robust=none", squares + 0.01)):
                found = self.last(recording, properties)["normal"]
                valid = solved & is_valid(found)
                error = angle(found, expected)[valid].mean()
                print(f"{os.path.basename(recording.folder)} {properties or 'default'}:"
                      f" {error:.3f} degrees, {(solved & ~valid).sum()} of"
                      f" {solved.sum()} without normal", file=sys.stderr)
                self.assertLess(error, most)
                self.assertLess((solved & ~valid).sum(), 0.02 * solved.sum())

    def test_an_overexposed_sphere_is_solved_from_what_is_not_clipped(self):
        gray = Recording("uw_gray", tempfile.mkdtemp(dir=self.folder))
        frames = np.load(gray.path)
        np.save(gray.path, np.minimum(frames.astype(int) * 2, 255).astype(np.uint8))
        expected = gray.array("analytic_sphere_normals")
        solved = gray.mask() & np.isfinite(expected).all(-1)
        errors = []
        for saturation in (0, -1):
            found = self.last(gray, f"threshold-mode=relative saturation={saturation}")
            valid = solved & is_valid(found["normal"])
            errors.append(angle(found["normal"], expected)[valid].mean())
        print(f"overexposed: {errors[0]:.2f} degrees, {errors[1]:.2f} with what is clipped",
              file=sys.stderr)
        self.assertLess(errors[0], 8)
        self.assertGreater(errors[1], 12)

    def test_coplanar_lights_solve_nothing(self):
        bear = Recording("diligent_bear", self.folder, step=8)
        for properties in ("robust=none", "", "robust=huber"):
            found = self.last(bear, properties)
            self.assertFalse(is_valid(found["normal"]).any())
            for array in found.values():
                self.assertTrue(np.isfinite(array).all())
            self.assertTrue((found["ambient"] > 0).any())

    def test_looks_on_the_way_do_not_change_the_end(self):
        batch = self.last(self.bear, "")
        arrays, progress = self.bear.solve("update-interval=25")
        self.assertEqual(len(arrays["normal"]), 4)
        for pad, array in batch.items():
            np.testing.assert_array_equal(array, arrays[pad][-1])
        self.assertEqual([p.get_uint("lights")[1] for p in progress], [25, 50, 75, 96])
        self.assertEqual([p.get_boolean("final")[1] for p in progress], [False] * 3 + [True])
        # the pictures' background is black, and there is nothing else to fail
        truth = self.bear.array("gt_normals")
        solved = np.isfinite(truth).all(-1)
        errors = [angle(n, truth)[solved & is_valid(n)].mean() for n in arrays["normal"]]
        changes = [angle(a, b)[is_valid(a) & is_valid(b)].mean()
                   for a, b in zip(arrays["normal"], arrays["normal"][1:])]
        said = [p.get_double("change")[1] for p in progress]
        self.assertEqual(said[0], -1)
        np.testing.assert_allclose(said[1:], changes, atol=1e-4)
        self.assertLess(errors[-1], errors[0])

    def errors_one_by_one(self, recording, choose):
        """Mean error after each picture; choose(said) is the light of the next
        one, of 0, 1, ..., where said is what the last message named."""
        intensities = f"intensities-location={recording.intensities}"
        height, width = recording.shape
        pipeline = Gst.parse_launch(
            "appsrc name=src format=time caps=video/x-raw,format=RGBA64_LE,"
            f"width={width},height={height},framerate=25/1 !"
            f" photostereo name=p lights-location={recording.lights} {intensities}"
            " index-source=offset update-interval=1 next-light=true"
            " p.normal ! other/tensors ! appsink name=sink sync=false")
        frames, truth = np.load(recording.path), recording.array("gt_normals")
        solved = np.isfinite(truth).all(-1) & recording.mask()
        errors, said, bus = [], 0, pipeline.get_bus()
        pipeline.set_state(Gst.State.PLAYING)
        try:
            for i in range(recording.n):
                rgba = np.full((height, width, 4), 65535, np.uint16)
                rgba[..., :3] = frames[choose(i, said)]
                buffer = Gst.Buffer.new_wrapped(rgba.tobytes())
                buffer.offset = choose(i, said)
                pipeline.get_by_name("src").emit("push-buffer", buffer)
                sample = pipeline.get_by_name("sink").emit(
                    "try-pull-sample", TIMEOUT * Gst.SECOND)
                result = sample.get_buffer()
                normal = np.frombuffer(result.extract_dup(0, result.get_size()),
                                       np.float32).reshape(height, width, 3)
                valid = solved & is_valid(normal)
                # most have to have a normal before there is an error to speak of
                errors.append(angle(normal, truth)[valid].mean()
                              if valid.sum() > 0.98 * solved.sum() else 180)
                while i + 1 < recording.n:
                    message = bus.timed_pop(TIMEOUT * Gst.SECOND)
                    structure = message.get_structure()
                    if message.type == Gst.MessageType.ERROR:
                        raise AssertionError(message.parse_error())
                    if structure and structure.get_name() == "photostereo-next-light":
                        said = structure.get_uint("index")[1]
                        break
        finally:
            pipeline.set_state(Gst.State.NULL)
        return np.array(errors)

    def test_the_next_light_needs_fewer_pictures_than_the_order_of_the_file(self):
        by_file = self.errors_one_by_one(self.bear, lambda i, said: i)
        by_message = self.errors_one_by_one(self.bear, lambda i, said: said)
        self.assertAlmostEqual(by_file[-1], by_message[-1], delta=1e-4)
        good = by_file[-1] + 0.2
        n_file, n_message = (1 + np.argmax(e <= good) for e in (by_file, by_message))
        print(f"{good:.2f} degrees with {n_message} pictures, by file {n_file}",
              file=sys.stderr)
        self.assertLessEqual(n_message, 2 / 3 * n_file)


if __name__ == "__main__":
    main()
