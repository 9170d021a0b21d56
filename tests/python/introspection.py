# SPDX-License-Identifier: LGPL-2.1-or-later
"""libgstimaging from Python, by the names that its documentation leads to."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import gi

from support import main

gi.require_version("Gst", "1.0")
from gi.repository import GLib, GObject, Gst

try:
    gi.require_version("GstImaging", "1.0")
    from gi.repository import GstImaging
except ValueError:
    GstImaging = None


@unittest.skipUnless(GstImaging, "built without introspection")
class Introspection(unittest.TestCase):
    def test_a_file_of_numpy_is_read(self):
        header = b"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }"
        header += b" " * (117 - len(header)) + b"\n"
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "a.npy")
            with open(name, "wb") as file:
                file.write(b"\x93NUMPY\x01\x00\x76\x00" + header + bytes(12))
            array = GstImaging.npy_load(name)
        self.assertEqual(array.describe(), "u16 [2, 3]")
        self.assertEqual(array.type, GstImaging.NdArrayType.U16)

    def test_what_cannot_be_read_is_an_error_with_its_name(self):
        with self.assertRaisesRegex(GLib.Error, "absent.npy"):
            GstImaging.npy_load("absent.npy")

    def test_pipelines_env_leads_to_the_library_of_a_build(self):
        tool = os.path.join(os.path.dirname(__file__), "..", "..", "pipelines", "env")
        build = os.path.dirname(os.environ["GI_TYPELIB_PATH"].split(":")[0])
        others = ("LD_LIBRARY_PATH", "GI_TYPELIB_PATH", "GST_IMAGING_ENV", "MESON_DEVENV")
        bare = {key: value for key, value in os.environ.items() if key not in others}
        script = ("import gi; gi.require_version('GstImaging', '1.0'); from gi.repository import GstImaging; "
                  "print(GstImaging.nd_array_type_name(GstImaging.NdArrayType.U16))")
        done = subprocess.run([tool, sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False,
                              env={**bare, "GST_IMAGING_BUILD": build})
        self.assertEqual((done.returncode, done.stdout), (0, "u16\n"), done.stderr)

    def test_a_frame_without_results_has_none(self):
        Gst.init(None)
        self.assertIsNone(GstImaging.results_get(Gst.Buffer.new(), None))

    def test_results_are_found_by_name(self):
        Gst.init(None)
        pipeline = Gst.parse_launch("videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8 ! "
                                    "lapsharpen focus-measure=true ! fakesink name=sink enable-last-sample=true")
        pipeline.set_state(Gst.State.PLAYING)
        pipeline.get_bus().timed_pop_filtered(30 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        buffer = pipeline.get_by_name("sink").get_property("last-sample").get_buffer()
        results = GstImaging.results_get(buffer, None)
        self.assertIsNotNone(results)
        self.assertIsNone(GstImaging.results_get(buffer, "another"))
        pipeline.set_state(Gst.State.NULL)

    def test_memory_says_where_it_is(self):
        Gst.init(None)
        buffer = Gst.Buffer.new_allocate(None, 16, None)
        self.assertEqual(GstImaging.buffer_memory_name(buffer), "system")
        self.assertFalse(GstImaging.memory_is_on_device(buffer.peek_memory(0)))

    def test_settings_describe_themselves(self):
        Gst.init(None)
        element = Gst.ElementFactory.make("lapsharpen")
        described = json.loads(GstImaging.settings_describe(element.__gtype__))
        amount = next(p for p in described if p["name"] == "amount")
        self.assertEqual((amount["minimum"], amount["maximum"]), (0, 10))
        self.assertEqual(amount["when"], "frame")
        names = {p.name for p in element.list_properties()
                 if p.owner_type.name.startswith(("GstImaging", "GstLap"))}
        self.assertEqual({p["name"] for p in described}, names)

    def test_all_actions_describe_themselves(self):
        """Those of all our elements, with as many arguments as their signals have."""
        Gst.init(None)
        n = 0
        for factory in Gst.Registry.get().get_feature_list(Gst.ElementFactory):
            element = factory.create(None) if factory.get_plugin().get_package() == "gst-imaging" else None
            if not element:
                continue
            described = {action["name"]: len(action["arguments"]) for action in json.loads(GstImaging.actions_describe(element.__gtype__))}
            queries = [GObject.signal_query(name, element) for name in GObject.signal_list_names(element)]
            self.assertEqual(described, {q.signal_name: len(q.param_types) for q in queries if q.signal_flags & GObject.SignalFlags.ACTION}, factory.get_name())
            n += len(described)
        self.assertGreater(n, 15)


main()
