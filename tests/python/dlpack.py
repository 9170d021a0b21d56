# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst_imaging.memory.as_dlpack: NumPy's view of a buffer has the bytes of the buffer, which lives as long as the view."""
import gc
import os
import sys
import unittest

import numpy as np

from support import SOURCE, Gst, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import memory


class Views(unittest.TestCase):
    def test_what_is_no_buffer_is_a_sentence(self):
        for wrong in (None, "x", 3, Gst.Sample.new(None, None, None, None)):
            with self.assertRaisesRegex(TypeError, "takes a Gst.Buffer or a Gst.Sample"):
                memory.as_dlpack(wrong)
        with self.assertRaisesRegex(BufferError, "caps of the video are not complete"):
            memory.as_dlpack(Gst.Buffer.new(), "video/x-raw")

    def pull(self, description):
        pipeline = Gst.parse_launch(description + " ! appsink name=out sync=false")
        pipeline.set_state(Gst.State.PLAYING)
        self.addCleanup(pipeline.set_state, Gst.State.NULL)
        sample = pipeline.get_by_name("out").emit("try-pull-sample", 20 * Gst.SECOND)
        self.assertIsNotNone(sample)
        return sample

    def check_bytes(self, sample, array):
        """Two views are of the same memory: there is no copy."""
        self.assertTrue(np.shares_memory(array, np.from_dlpack(memory.as_dlpack(sample))))
        buffer = sample.get_buffer()
        ok, info = buffer.map(Gst.MapFlags.READ)
        self.assertTrue(ok)
        try:
            whole = np.frombuffer(info.data, np.uint8)
            rows = [whole[y * array.strides[0]:][:array[0].nbytes] for y in range(array.shape[0])]
            np.testing.assert_array_equal(np.ascontiguousarray(array).view(np.uint8).reshape(len(rows), -1), rows)
        finally:
            buffer.unmap(info)

    def test_video(self):
        for format, shape, dtype in (("GRAY8", (5, 641), "u1"), ("GRAY16_LE", (5, 641), "<u2"), ("RGB", (5, 641, 3), "u1"),
                                     ("RGBA", (5, 641, 4), "u1"), ("ARGB64_LE", (5, 641, 4), "<u2")):
            sample = self.pull("videotestsrc num-buffers=1 ! videoconvert"
                               f" ! video/x-raw,format={format},width=641,height=5")
            view = memory.as_dlpack(sample)
            self.assertEqual((view.device, view.__dlpack_device__()), ("cpu", (1, 0)))
            array = np.from_dlpack(view)
            self.assertEqual((array.shape, array.dtype), (shape, np.dtype(dtype)), format)
            self.check_bytes(sample, array)

    def test_tensors_of_octbscan(self):
        """A level in dB as float32, without a calibration."""
        sample = self.pull("videotestsrc num-buffers=1 ! video/x-raw,format=GRAY16_LE,width=256,height=16"
                           " ! octbscan backend=cpu ! other/tensors,types=float32")
        array = np.from_dlpack(memory.as_dlpack(sample))
        self.assertEqual((array.ndim, array.dtype), (2, np.dtype("<f4")))
        self.check_bytes(sample, array)

    def test_life(self):
        """The buffer is held by arrays alone; a capsule that nobody takes lets go of it."""
        sample = self.pull("videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8,width=64,height=4")
        buffer = sample.get_buffer().copy_deep()
        caps = sample.get_caps()
        before = buffer.mini_object.refcount
        view = memory.as_dlpack(buffer, caps)
        self.assertEqual(buffer.mini_object.refcount, before + 1)
        first, second = np.from_dlpack(view), np.from_dlpack(view)
        self.assertEqual(buffer.mini_object.refcount, before + 2)
        del first
        capsule = view.__dlpack__()
        self.assertEqual(buffer.mini_object.refcount, before + 2)
        self.assertIn("dltensor", repr(capsule))
        del capsule, view
        row = second[1]
        del second
        gc.collect()
        self.assertEqual(buffer.mini_object.refcount, before + 1)
        self.assertEqual(row.shape, (64,))
        del row
        self.assertEqual(buffer.mini_object.refcount, before)
        memory.as_dlpack(buffer, caps)
        self.assertEqual(buffer.mini_object.refcount, before)

    def test_a_pool_of_one(self):
        """Its buffer comes back with the last array."""
        pool = Gst.BufferPool()
        config = pool.get_config()
        caps = Gst.Caps.from_string("video/x-raw,format=GRAY8,width=64,height=4")
        Gst.BufferPool.config_set_params(config, caps, 256, 1, 1)
        self.assertTrue(pool.set_config(config) and pool.set_active(True))
        flow, buffer = pool.acquire_buffer(None)
        self.assertEqual(flow, Gst.FlowReturn.OK)
        array = np.from_dlpack(memory.as_dlpack(buffer, caps))
        now = Gst.BufferPoolAcquireParams()
        now.flags = Gst.BufferPoolAcquireFlags.DONTWAIT
        del buffer
        gc.collect()
        self.assertEqual(pool.acquire_buffer(now)[0], Gst.FlowReturn.EOS)
        del array
        gc.collect()
        self.assertEqual(pool.acquire_buffer(now)[0], Gst.FlowReturn.OK)
        pool.set_active(False)

    def test_what_is_wrong_is_said(self):
        buffer = Gst.Buffer.new_wrapped(bytes(16))
        grey = Gst.Caps.from_string("video/x-raw,format=GRAY8,width=64,height=4")
        with self.assertRaisesRegex(BufferError, "GstVideoMeta"):
            memory.as_dlpack(buffer)
        with self.assertRaisesRegex(BufferError, "too small"):
            memory.as_dlpack(buffer, grey)
        view = memory.as_dlpack(buffer, Gst.Caps.from_string(
            'other/tensors,format=static,types=(string)float32,dimensions=(string)"4:1:1:1"'))
        with self.assertRaisesRegex(BufferError, "views"):
            view.__dlpack__(copy=True)
        with self.assertRaisesRegex(BufferError, "on device"):
            view.__dlpack__(dl_device=(2, 0))
        self.assertEqual(np.from_dlpack(view).shape, (4,))


if __name__ == "__main__":
    main()
