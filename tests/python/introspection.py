# SPDX-License-Identifier: LGPL-2.1-or-later
"""libgstimaging from Python, by the names that its documentation leads to."""
import json
import os
import tempfile
import unittest

import gi

from support import main

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst

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
            array = GstImaging.Npy.load(name)
        self.assertEqual(array.describe(), "u16 [2, 3]")
        self.assertEqual(array.type, GstImaging.NpyType.U16)

    def test_what_cannot_be_read_is_an_error_with_its_name(self):
        with self.assertRaisesRegex(GLib.Error, "absent.npy"):
            GstImaging.Npy.load("absent.npy")

    def test_a_frame_without_results_has_none(self):
        Gst.init(None)
        self.assertIsNone(GstImaging.results_get(Gst.Buffer.new(), None))

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


main()
