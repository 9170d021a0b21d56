# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a user types: pipelines that work leak nothing, those that cannot work
end with a sentence."""
import os
import re
import shutil
import tempfile
import unittest

from support import launch, main

GRID = ("x0=2.5 y0=1.5 pitch-x=9.3 pitch-y=8.7 columns=6 rows=5"
        " threshold-mode=range threshold=0.2")  # else light between spots is a warning
FRAMES = "videotestsrc pattern=snow num-buffers={} ! video/x-raw,format={},width=63,height=49 !"

WORK = [
    FRAMES.format(5, "GRAY8") + " lapsharpen ! fakesink",
    FRAMES.format(5, "I420") + " lapsharpen planes=all focus-measure=true ! fakesink",
    FRAMES.format(5, "RGBA") + " lapsharpen amount=0 ! fakesink",
    FRAMES.format(5, "GRAY16_LE") + f" shcentroid {GRID} ! fakesink",
    FRAMES.format(5, "GRAY8") + f" shcentroid name=s {GRID} ! fakesink s.results ! queue !"
    " fakesink",
    FRAMES.format(5, "GRAY8") + f" shcentroid name=s {GRID} ! fakesink s.results ! queue !"
    " other/tensors ! fakesink",
    FRAMES.format(5, "GRAY8") + f" shcentroid name=s {GRID} s.results ! fakesink",
    # both sinks wait for the first buffer of the other: results come first
    FRAMES.format(3, "GRAY8") + f" shcentroid name=s {GRID} s.results ! queue ! fakesink sync=true"
    " s.src ! fakesink sync=true",
    FRAMES.format(5, "GRAY8") + f" lapsharpen ! queue ! tee name=t t. ! queue ! lapsharpen !"
    f" shcentroid {GRID} ! fakesink t. ! queue ! identity ! lapsharpen amount=3 ! fakesink",
    FRAMES.format(0, "GRAY8") + f" shcentroid name=s {GRID} ! fakesink s.results ! queue !"
    " fakesink",
    # a source that is live, and one that changes its size
    "videotestsrc is-live=true num-buffers=3 ! video/x-raw,format=GRAY8,width=63,height=49,"
    f"framerate=50/1 ! lapsharpen ! shcentroid name=s {GRID} ! fakesink s.results ! queue !"
    " fakesink",
]

# what is typed, and what the answer must name
FAIL = [
    (f"shcentroid {GRID} ! fakesink shcentroid0.results ! queue ! other/tensors,"
     "dimensions=(string)2:2", "The results are text/csv or other/tensors"),
    (f"shcentroid {GRID} pitch-x=0", "pitch-x 0"),
    (f"shcentroid {GRID} x0=1000", "outside the 63 pixels"),
    ("shcentroid", "0 columns and 0 rows"),
    ("shcentroid map-location=/nowhere/cells.npy", "/nowhere/cells.npy"),
    (f"shcentroid {GRID} reference-location=/nowhere/refs.npy", "/nowhere/refs.npy"),
    ("lapsharpen border=constant border-value=256", "border-value 256 is beyond 255"),
]


@unittest.skipUnless(shutil.which("gst-launch-1.0"), "there is no gst-launch-1.0")
class Launch(unittest.TestCase):
    def test_pipelines_end_and_leave_nothing_behind(self):
        for line in WORK:
            for backend in ("cpu", "cuda", "auto"):
                words = [w + f" backend={backend}" if w in ("lapsharpen", "shcentroid") else w
                         for w in line.split()]
                text = " ".join(words)
                with self.subTest(text):
                    out = launch(*text.split(), GST_TRACERS="leaks", GST_DEBUG="GST_TRACER:7",
                                 GST_DEBUG_NO_COLOR="1")
                    alive = [l for l in out.splitlines() if "object-alive, type-name=(string)Gst" in l]
                    self.assertEqual(alive, [])
                    self.assertNotIn("WARNING", out)

    def test_an_error_names_the_property_or_file(self):
        frames = FRAMES.format(-1, "GRAY8")
        for element, words in FAIL:
            with self.subTest(element):
                out = launch(*f"{frames} {element} ! fakesink".split(), status=1, timeout=15)
                self.assertIn(words, out)
                # the source adds one of its own
                self.assertEqual(len(re.findall("ERROR: from element .*:(lap|sh)[a-z]+0: ", out)), 1, out)

    def test_no_device_is_an_error_with_cuda_and_nothing_with_auto(self):
        frames = FRAMES.format(2, "GRAY8")
        for element in ("lapsharpen", f"shcentroid {GRID}"):
            out = launch(*f"{frames} {element} backend=cuda ! fakesink".split(), status=1,
                         timeout=15, IMK_MOCK_DEVICES="0")
            self.assertIn("No CUDA device is visible", out)
            launch(*f"{frames} {element} backend=auto ! fakesink".split(), IMK_MOCK_DEVICES="0")

    def test_without_the_cuda_module_the_sentence_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as empty:
            out = launch(*f"{FRAMES.format(2, 'GRAY8')} lapsharpen backend=cuda ! fakesink".split(),
                         status=1, timeout=15, IMK_MODULE_PATH=os.path.realpath(empty))
        self.assertIn("backend=cpu", out)


if __name__ == "__main__":
    main()
