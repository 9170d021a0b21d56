# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the commands of each tutorial, in their order, as they stand."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import SOURCE, Gst, main, read_array

# what a tutorial promises
ANSWERS = {"coin-to-web-page.md": (r"^index\.html$", r"^the relief is 0\.35 mm high$", r"^rms error of the heights [0-2]\.\d um$"),
           "ball-and-lamp.md": (r"^rig: complete; see rig/report\.html$", r"^bent: complete, not checked: distance of the lamps, curve of the samples, room light, spread of the lamps;",
                                r"^out\.npy: 0\.79 mm high, found 0\.(79|80|81) mm, rms error 0\.0[01]\d mm$", r"^bent\.npy: 0\.79 mm high, found 3\.\d\d mm"),
           "first-centroids.md": (r"^20 frames$", r"^spot 0 moved by (1\.89|1\.9|1\.91)\d* px$", r"^0 flagged$"),
           "first-bscan.md": (r"^level in dB, depth in um$", r"^upper mirror, A-scan 0: (279|280)\.\d um$",
                              r"^upper mirror, A-scan 255: (319|320)\.\d um$", r"^lower mirror, A-scan 0: (499|500)\.\d um$",
                              r"^lower mirror, A-scan 255: (699|700)\.\d um$"),
           "close-a-loop.md": (r"^101 actuators, latency 2\.0\d frames$", r"^open: [4-6]\.\d rad$", r"^gain 0\.3: steady$",
                               r"^gain 1\.3: unstable\ngain 0\.5: steady$", r"^gain: 0\.[89]\d rad$",
                               r"^controller-location: 0\.[67]\d rad$"),
           "mirror-to-bscan.md": (r"^k-polynomial=", r"^rms phase error: 0\.00\d rad$", r"^width over the limit: 1\.00\d$",
                                  r"^mirror at (149|150)\.\d um: width \d+\.\d\d before, 1\.\d\d after$",
                                  r"^mirror at (399|400)\.\d um: ", r"^width of the layer: [45]\.\d um$"),
           "repeats-to-velocity.md": (r"^angiogram: complete, not checked: direction of the wavelengths, scale of depths; see", r"^velocity: complete, not checked: direction of", r"^unit: mm/s$",
                                      r"^flow through the vessel: (0\.9[7-9]|1\.0[0-3])\d of the truth$", r"^tissue beside it: 0\.\d\d um/s$",
                                      r"In 3 of 3 sets \(1, 2, 3\), neighbouring repeats are less alike", r"^velocity correlation of repeats: 0\.\d+\nswapped"),
           "first-displacement.md": (r"^pair: complete; see pair/report\.html$", r"^the hill moved (19|20|21) mm$", r"^rms error: 0\.[0-5] mm$"),
           "first-interferogram.md": (r"^pair: complete; see pair/report\.html$", r"^offset in the middle: 3\.(39|40|41) columns$",
                                      r"^offset in the middle: -2\.(29|30|31) lines$", r"^rms error of the phase: 0\.(09|10|11) rad$",
                                      r"^x,y,dx,dy,correlation$"),
           "first-normals.md": (r"^median error 0\.1\d\d degrees$", r"^0\.0 % of the pixels"),
           "live-panel.md": (r"^http://127\.0\.0\.1:\d+/$", r'"exposure": 20000', r"amount 300 is beyond its range 0 to 10\.",
                             r"^recordings/sharp\.npy: \d\d frames, the same bits$"),
           "sharpen-a-camera.md": (r"^21 frames, the sharpest is frame 12$", r"^column 0: frame 6\ncolumn 1: frame 8\ncolumn 2: frame 10\ncolumn 3: frame 12$")}
# pictures of the pages, and the file that the commands make; --pictures writes them anew
PICTURES = {"coin-to-web-page": "raking/lit000.png", "first-centroids": "out/picture.png", "first-bscan": "sharp0.png",
            "mirror-to-bscan": "scan/bscan.png", "repeats-to-velocity": "velocity/angio.png", "first-normals": "lit/lit000.png", "first-displacement": "pair/fringes.png",
            "first-interferogram": "pair/fringes.png", "sharpen-a-camera": "beside08.png"}
WRITE = "--pictures" in sys.argv
if WRITE:
    sys.argv.remove("--pictures")
# tests/packaging/new-element.sh runs this one, in a copy of the sources
ELSEWHERE = ["new-element.md"]


def missing(page):
    """Returns: what the page needs that is not here; None where it can run"""
    if page != "live-panel.md":
        return None
    if not Gst.ElementFactory.find("aravissrc") or not shutil.which("curl"):
        return "aravissrc or curl is missing"
    try:
        import aiohttp  # noqa: F401
        import gi

        gi.require_version("GstImaging", "1.0")
    except (ImportError, ValueError) as error:
        return str(error)
    return None


class Tutorials(unittest.TestCase):
    def test_commands_do_what_the_page_says(self):
        pages = glob.glob(os.path.join(SOURCE, "docs", "tutorials", "*.md"))
        self.assertEqual(sorted(map(os.path.basename, pages)), sorted([*ANSWERS, *ELSEWHERE]))
        for page in (page for page in pages if os.path.basename(page) in ANSWERS):
            folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, folder)
            os.symlink(os.path.join(SOURCE, "pipelines"), os.path.join(folder, "pipelines"))
            with open(page, encoding="utf-8") as file:
                blocks = re.findall(r"^```sh\n(.*?)^```$", file.read(), re.M | re.S)
            lacking = missing(os.path.basename(page))
            if lacking:
                print(f"skipped: {os.path.basename(page)}: {lacking}", file=sys.stderr)
                continue
            done = subprocess.run(  # what plays in the background ends with the page
                ["bash", "-e", "-c", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + "\n".join(blocks)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=200, env={**os.environ, "GST_IMAGING_ENV": "1"}, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            for answer in ANSWERS[os.path.basename(page)]:
                self.assertRegex(done.stdout, re.compile(answer, re.M), done.stdout)
            self.compare_picture(os.path.splitext(page)[0], folder)

    def compare_picture(self, page, folder):
        if os.path.basename(page) not in PICTURES:
            return
        made = os.path.join(folder, PICTURES[os.path.basename(page)])
        if WRITE:
            shutil.copy(made, page + ".png")
            return
        now, shown = read_array(made).astype(float), read_array(page + ".png").astype(float)
        self.assertEqual(now.shape, shown.shape, page)
        # letters of other fonts, and sums of another library for transforms
        self.assertLess(abs(now - shown).mean(), 2, f"{page}.png: make it with tutorials.py --pictures, and look at it")


main()
