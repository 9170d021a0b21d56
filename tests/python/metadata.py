# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reader of metadata that users import or copy: an image of a mirror, whose depth it tells."""
import os
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, Gst, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata

SAMPLES, LINES = 832, 20
FIRST, LAST, MIRROR = 806.0, 675.0, 150.0  # nm, nm, um


def mirror():
    """Spectra of a mirror that is MIRROR deeper than the reference."""
    wavelength = np.linspace(FIRST, LAST, SAMPLES) * 1e-3  # um
    fringe = 2000 + 800 * np.cos(4 * np.pi * MIRROR / wavelength)
    noise = np.random.default_rng(1).normal(0, 20, (LINES, SAMPLES))
    return np.clip(fringe + noise, 0, 65535).astype("<u2")


class Metadata(unittest.TestCase):
    def pull(self, description, spectra):
        pipeline = Gst.parse_launch(description)
        source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
        pipeline.set_state(Gst.State.PLAYING)
        source.emit("push-buffer", Gst.Buffer.new_wrapped(spectra.tobytes()))
        source.emit("end-of-stream")
        sample = sink.emit("try-pull-sample", 20 * Gst.SECOND)
        self.assertIsNotNone(sample)
        self.addCleanup(pipeline.set_state, Gst.State.NULL)
        return sample

    def test_a_mirror_is_where_its_axis_says(self):
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as ini:
            ini.write(f"[camera]\nlambda-first={FIRST}\nlambda-last={LAST}\n")
            ini.flush()
            sample = self.pull(
                f"appsrc name=in format=time caps=video/x-raw,format=GRAY16_LE,width={SAMPLES},height={LINES},"
                f"framerate=10/1 ! octbscan backend=cpu background=rolling window=hann scale=2 calibration={ini.name}"
                " lateral-step-um=7.5 ! video/x-raw,format=GRAY16_LE ! appsink name=out", mirror())
        caps = sample.get_caps().get_structure(0)
        width, height = caps.get_value("width"), caps.get_value("height")
        image = metadata.quantity(sample.get_buffer())
        self.assertEqual((image["name"], image["unit"]), ("level", "dB"))
        levels = np.frombuffer(metadata.read_bytes(sample.get_buffer()), "<u2").reshape(height, -1)[:, :width]
        lateral, depth = image["axes"]
        self.assertEqual((depth["name"], depth["unit"]), ("depth", "um"))
        found = metadata.places(depth, height)[levels.mean(axis=1).argmax()]
        self.assertAlmostEqual(found, MIRROR, delta=depth["step"])
        self.assertEqual((lateral["unit"], lateral["step"]), ("um", 7.5))
        brightest = image["offset"] + image["scale"] * int(levels.max())
        self.assertGreater(brightest, 40)

    def test_slopes_come_with_flags_and_lenslets(self):
        frame = np.zeros((40, 60), np.uint8)
        frame[28:31, 48:51] = 200  # one spot, in row 1, column 2
        sample = self.pull("appsrc name=in format=time caps=video/x-raw,format=GRAY8,width=60,height=40,framerate=10/1"
                           " ! shcentroid name=sh backend=cpu pitch-x=20 pitch-y=20 columns=3 rows=2 fields=slopes"
                           " ! appsink name=out", frame)
        result = metadata.results(sample.get_buffer(), "sh")
        self.assertEqual(result["fields"], ["dx", "dy"])
        self.assertEqual(result["values"].shape, (2, 6))
        self.assertEqual(result["flags"].tolist(), [1, 1, 1, 1, 1, 0])
        self.assertEqual(result["row-column"].tolist(), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
        self.assertEqual((result["element"], result["backend"], result["frame"]), ("shcentroid", "cpu", 0))
        self.assertEqual(len(result["settings-hash"]), 64)

    def test_values_of_frames_with_a_scale_each(self):
        samples = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)  # as many columns as frames
        found = metadata.values({"scale": [0.5, None], "offset": [1, 7]}, samples)
        self.assertEqual(found[0].tolist(), [[1, 1.5], [2, 2.5], [3, 3.5]])
        self.assertTrue(np.isnan(found[1]).all())
        self.assertEqual(metadata.values({"scale": 2, "offset": 1, "unit": "dB"}, samples[0]).tolist(), [[1, 3], [5, 7], [9, 11]])
        self.assertEqual(metadata.values({"unit": "px"}, samples[0]).tolist(), samples[0].tolist())
        for strange in samples[:1], samples[0, 0, 0], np.zeros((3, 2)):
            with self.assertRaisesRegex(ValueError, "told of 2 frames"):
                metadata.values({"scale": [1, 2]}, strange)

    def test_frames_without_metadata_have_none(self):
        buffer = Gst.Buffer.new_allocate(None, 16, None)
        self.assertIsNone(metadata.quantity(buffer))
        self.assertIsNone(metadata.results(buffer, "sh"))


main()
