# SPDX-License-Identifier: LGPL-2.1-or-later
"""What all sources of frames have in common."""
import contextlib
import re
import shutil
import sys
import tempfile

from .. import library, play
from ..command import WRONG_USE, Failure, whole

# Where elements that are not ours come from, on Debian.
PACKAGES = {
    "v4l2src": "gstreamer1.0-plugins-good",
    "aravissrc": "libaravis-0.8-0",
    "autovideosink": "gstreamer1.0-plugins-good",
    "pngenc": "gstreamer1.0-plugins-good",
    "uridecodebin": "gstreamer1.0-plugins-base",
    "videoconvert": "gstreamer1.0-plugins-base",
    "videoscale": "gstreamer1.0-plugins-base",
}
STATS = ("frames", "lost-frames", "frames-missing", "bad-ascans", "time-p50", "time-p99")
GREY = "video/x-raw,format={GRAY16_LE,GRAY8}"


def need(*names):
    """Fails with a sentence that says what to install."""
    Gst = library.gstreamer()
    for name in names:
        if Gst.ElementFactory.find(name):
            continue
        if name in PACKAGES:
            raise Failure(WRONG_USE, f"The element {name} is missing: on Debian, install {PACKAGES[name]}.")
        if name == "shoverlay":
            raise Failure(WRONG_USE, "shoverlay is not built: install libcairo2-dev and build again, or use --no-picture.")
        raise Failure(WRONG_USE, f"The element {name} is neither installed nor built; gst-imaging info says why.")


class Source:
    """Words of a pipeline that end in frames. files: that were given; played: copies of them, where they had to be made;
    note: what is not played of them"""

    def __init__(self, words, name, files=(), is_live=False, bits=None, played=(), note=None):
        self.words, self.name, self.files, self.is_live = words, name, list(files), is_live
        self.played = list(played) or self.files
        self.note = note
        self.bits = bits  # of a pipeline: how many bits its camera sends, 0 if nobody knows

    def n_frames(self):
        """Returns: how many there are, 0 if nobody knows; for progress on a terminal"""
        if self.is_live or not sys.stderr.isatty():
            return 0
        Gst = library.gstreamer()
        source = play.parse(self.words[:self.words.index("!")] if "!" in self.words else self.words)
        source.set_state(Gst.State.PAUSED)
        known, n = source.query_duration(Gst.Format.DEFAULT)
        source.set_state(Gst.State.NULL)
        return n if known and n > 0 else 0


@contextlib.contextmanager
def scratch():
    """A folder for files on the way. A signal comes before it is made or after it is gone."""
    folder = None
    try:
        with whole():
            folder = tempfile.mkdtemp()
        yield folder
    finally:
        with whole():
            shutil.rmtree(folder, ignore_errors=True)


def is_setting(word):
    return re.match("[a-z][a-z0-9-]*=", word) is not None


def split(words):
    """Returns: the inputs among the words, and the property=value"""
    named = next((word for word in words if word.startswith("name=")), None)
    if named:
        raise Failure(WRONG_USE, f"{named}: the command names its elements itself.")
    return [w for w in words if not is_setting(w)], [w for w in words if is_setting(w)]


# Python's collector does not see that a pad has the function of its probe: one that holds its element or pipeline keeps it for good.


def set_bits(pipeline, element, bits, tell):
    """Sets bit-depth with the caps, where `bits` of the pipeline is what its camera sends."""
    Gst = library.gstreamer()

    def on_event(pad, info):
        event, owner = info.get_event(), pad.get_parent_element()
        if event.type == Gst.EventType.CAPS:
            structure = event.parse_caps().get_structure(0)
            n = bits(owner.get_parent()) if structure.get_value("format") == "GRAY16_LE" else 0
            if 8 < n < 16:
                tell(f"The camera sends {n} bits: bit-depth={n}")
                owner.set_property("bit-depth", n)
        return Gst.PadProbeReturn.OK

    pad = pipeline.get_by_name(element).get_static_pad("sink")
    pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)


def at_end(pipeline, name, take):
    """Before the pipeline stops, take() gets a dictionary of the stats of the element, its backend and its bit-depth."""
    Gst = library.gstreamer()

    def on_event(pad, info):
        if info.get_event().type == Gst.EventType.EOS:
            element = pad.get_parent_element()
            stats = element.get_property("stats")
            found = {key: stats.get_value(key) for key in STATS if stats.has_field(key)}
            take({**found, "active-backend": element.get_property("active-backend"),
                  **({"bit-depth": element.get_property("bit-depth")} if element.find_property("bit-depth") else {})})
        return Gst.PadProbeReturn.OK

    element = pipeline.get_by_name(name)
    pad = element.get_static_pad("src") or element.srcpads[0]
    pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)
