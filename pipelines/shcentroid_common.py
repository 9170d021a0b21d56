# SPDX-License-Identifier: LGPL-2.1-or-later
"""What pipelines/shcentroid-file, -solar, -v4l2 and -aravis share."""
import argparse
import os
import re
import signal
import sys
import warnings

if "GST_IMAGING_ENV" not in os.environ:  # take the plug-ins of the build folder
    here = os.path.dirname(os.path.realpath(__file__))
    os.execv(os.path.join(here, "env"), ["env", sys.executable, *sys.argv])

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst
except (ImportError, ValueError):
    sys.exit("The Python bindings of GStreamer are missing: on Debian, install python3-gi and"
             " gir1.2-gstreamer-1.0, and use /usr/bin/python3.")

from playing import Outputs, need_display

# where elements that are not ours come from, on Debian
PACKAGES = {
    "v4l2src": "gstreamer1.0-plugins-good",
    "aravissrc": "libaravis-0.8-0",
    "pngenc": "gstreamer1.0-plugins-good",
    "uridecodebin": "gstreamer1.0-plugins-base",
    "videoconvert": "gstreamer1.0-plugins-base",
    "videoscale": "gstreamer1.0-plugins-base",
    "autovideosink": "gstreamer1.0-plugins-good",
}
LARGEST = 32767  # pixels of a side, of videoscale
GEOMETRY = ("columns", "rows", "map-location", "aperture", "find-grid-location")
# What takes light between the spots away. Where none of them is set the element chooses: that needs
# no number of the camera, and no pedestal, even light or noise is left. Correlation has means to take away.
CUTS = ("threshold-mode=", "threshold=", "brightest=", "estimator=correlation")
FIRST_CUT = "threshold-mode=auto"
MAP = "shcentroid-map.npy"


class Source:
    """Words of a pipeline that end in grey frames, or in what shcentroid measures and connect() draws."""

    def __init__(self, words):
        self.words = words

    def size(self):
        """Returns: width and height of the frames, which tell the size of pictures"""
        return frame_size(self.words)

    def drawing(self):
        """Returns: the words of the branch that makes video with centroids of what was measured, and the name of
        the tee behind it; the tee of all frames where they are video"""
        return [], "t"

    def connect(self, pipeline):
        """With the pipeline that was made of the words."""


def arguments(text, *positional):
    """The options that all have, and arguments of one of them. From here on a signal ends the script as an error
    does: files on the way are removed."""
    for number in signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    parser = argparse.ArgumentParser(
        description=text,
        epilog="property=value are properties of shcentroid, see docs/reference/shcentroid.md. Without a"
               " grid among them (columns and rows, map-location, or aperture) the grid is found"
               " in the first frame. Without threshold-mode, threshold, brightest or"
               f" {CUTS[-1]} the script sets {FIRST_CUT}.")
    for name in positional:
        parser.add_argument(name)
    parser.add_argument("--csv", metavar="FILE", help="write the centroids as text")
    parser.add_argument("--picture", metavar="PNG",
                        help="write pictures with the drawing; %%03d counts, else the last stays")
    parser.add_argument("--view", action="store_true", help="show it in a window")
    parser.add_argument("--map", metavar="NPY",
                        help="where a grid that is found is written, also over a file of that name"
                             f" (default: {MAP}, which has to be new)")
    parser.add_argument("--scale", type=int, default=1, metavar="N",
                        help="pictures and window N times as large as the frames")
    parser.add_argument("--draw", metavar="PROPERTY=VALUE", action="append", default=[],
                        help="a property of shoverlay, see docs/reference/shoverlay.md; may be repeated")
    parser.add_argument("--frames", type=int, metavar="N", help="end after N frames")
    parser.add_argument("properties", nargs="*", metavar="property=value")
    return parser


def need(*names):
    """Ends with a sentence that says what to install."""
    for name in names:
        if not Gst.ElementFactory.find(name):
            if name in ("shcentroid", "picturesrc"):
                sys.exit(f"{name} is neither installed nor built: run pipelines/demo shcentroid.")
            if name == "shoverlay":
                sys.exit("shoverlay is not built: install libcairo2-dev and build again, or leave"
                         " out --picture and --view.")
            sys.exit(f"The element {name} is missing: on Debian, install {PACKAGES[name]}.")


def check(options):
    """Ends with a sentence where a value makes no sense."""
    if options.scale < 1:
        sys.exit(f"--scale is {options.scale}; it needs at least 1.")
    if options.frames is not None and options.frames < 1:
        sys.exit(f"--frames is {options.frames}; it needs at least 1.")
    # multifilesink hands it to printf () with one number
    if "%" in re.sub("%0?[0-9]?d", "", (options.picture or "").replace("%%", ""), count=1):
        sys.exit(f"--picture is {options.picture}; a % begins a counter, as in spots-%03d.png, of"
                 " which there is one at most. Write %% for a % itself.")


def pictures(pattern):
    """Returns: the files that pictures of this name would take the places of."""
    folder, name = os.path.split(pattern)
    counter = re.compile("".join(
        "%" if part == "%%" else r"-?\d+" if part.startswith("%") else re.escape(part)
        for part in re.split("(%%|%0?[0-9]?d)", name)))
    return [os.path.join(folder, other) for other in os.listdir(folder or ".") if counter.fullmatch(other)]


def stage(options, outputs):
    """Returns: the options with other names of files, which take their places in the end."""
    staged = argparse.Namespace(**vars(options))
    for text in options.properties:  # the one that the element writes
        if text.startswith("find-grid-location="):
            outputs.check(text.partition("=")[2])
    if options.csv:
        staged.csv = outputs.add(options.csv)
    if options.picture:
        folder, name = os.path.split(options.picture)
        outputs.claim(options.picture.replace("%%", "%"))
        if os.path.isdir(folder or "."):
            for path in pictures(options.picture):
                outputs.check(path, options.picture)
        # one, or as many as there are frames
        staged.picture = os.path.join(outputs.add_folder(folder).replace("%", "%%"), name)
    if finds_grid(options):
        if not options.map and os.path.exists(MAP):
            sys.exit(f"{MAP} exists. Measure with it: map-location={MAP}. Or find the grid anew, and"
                     " say where to write it: --map NPY.")
        staged.map = outputs.add(options.map or MAP)
    return staged


def finds_grid(options):
    return not any(text.split("=")[0] in GEOMETRY for text in options.properties)


def describe(source, options):
    """The pipeline behind `source`."""
    properties = list(options.properties)
    for text in properties + options.draw:
        if "=" not in text:
            sys.exit(f'"{text}" is no property=value.')
    if finds_grid(options):
        properties.append("find-grid-location=" + options.map)
    if not any(text.startswith(CUTS) for text in properties):
        properties.append(FIRST_CUT)
    need("shcentroid", *(["shoverlay", "videoconvert", "videoscale"]
                         if options.picture or options.view else []),
         *(["pngenc"] if options.picture else []), *(["autovideosink"] if options.view else []))
    words = source.words + ["!"]
    if options.frames:
        words += ["identity", f"eos-after={options.frames + 1}", "!"]
    words += ["shcentroid", "name=sh", *properties, "!"]
    words += ["tee", "name=t", "t.", "!", "queue", "!", "fakesink"]
    if options.csv:
        words += ["sh.results", "!", "text/csv", "!", "queue", "!", "filesink",
                  "location=" + options.csv]
    drawing, tee = source.drawing()
    if drawing and (options.picture or options.view):
        words += ["t.", "!", *drawing]
    for wanted, sink in ((options.picture, ["pngenc", "!", "multifilesink",
                                            f"location={options.picture}"]),
                         (options.view, ["autovideosink"])):
        if wanted:
            words += [f"{tee}.", "!", "queue", "!"]
            if options.scale != 1:
                words += ["scale", "!"]
            words += ["shoverlay", *options.draw, "!", "videoconvert", "!", *sink]
    return words


def set_scale(words, factor, size):
    """Puts a scaler where describe() wrote "scale"."""
    width, height = size
    if max(size) * factor > LARGEST:
        sys.exit(f"--scale {factor} makes {width * factor} x {height * factor} of {width} x {height}"
                 f" pixels; a side has at most {LARGEST}.")
    at = []
    for word in words:
        at += (["videoscale", "method=nearest-neighbour", "!",
                f"video/x-raw,width={width * factor},height={height * factor}"]
               if word == "scale" else [word])
    return at


def frame_size(words):
    """Of the first frame, by playing it."""
    pipeline = Gst.parse_launchv(words + ["!", "fakesink", "name=s", "num-buffers=1"])
    pipeline.set_state(Gst.State.PAUSED)
    message = pipeline.get_bus().timed_pop_filtered(
        20 * Gst.SECOND, Gst.MessageType.ASYNC_DONE | Gst.MessageType.ERROR)
    caps = pipeline.get_by_name("s").get_static_pad("sink").get_current_caps()
    pipeline.set_state(Gst.State.NULL)
    if message and message.type == Gst.MessageType.ERROR:
        sys.exit(sentence_of(message.parse_error()[0], words))
    if not caps:
        sys.exit("No frame came within 20 seconds.")
    structure = caps.get_structure(0)
    return structure.get_value("width"), structure.get_value("height")


def sum_up(found):
    """Returns: a sentence on all cells of all frames."""
    frames, cells, *bad = (found.get_value(name) for name in ("frames", "cells", "invalid", "saturated", "cut"))
    why = [f"{found.get_value(name)} {name.replace('-', ' ')}"
           for name in ("no-flux", "low-flux", "no-match", "outside", "not-finite") if found.get_value(name)]
    names = (f"invalid ({', '.join(why)})", "saturated", "cut by the edge of their cell")
    parts = [f"{n} {name}" for n, name in zip(bad, names) if n]
    return (f"{cells} cells in {frames} frame{'s'[:frames != 1]}: "
            + (", ".join(parts) if parts else "all valid, none saturated"))


def tell(message):
    """Prints what a user wants to know of a message."""
    if message.type == Gst.MessageType.WARNING:
        print("Warning:", message.parse_warning()[0].message, file=sys.stderr)
    elif message.type == Gst.MessageType.ELEMENT:
        found = message.get_structure()
        if found.get_name() == "shcentroid-grid":
            print("Found a {} grid of {} cells: pitch {:.3f} pixels, rotation {:.3f} degrees, off by"
                  " {:.3f} pixels rms".format(*(found.get_value(name) for name in (
                      "lattice", "cells", "pitch", "rotation", "rms"))))
            if found.get_value("holes"):
                print("Within it {} lattice point{} no spot, the first at row {}, column {}: a lenslet is dark or"
                      " blocked there".format(found.get_value("holes"), " has" if found.get_value("holes") == 1
                                              else "s have", found.get_value("hole-row"), found.get_value("hole-column")))
        elif found.get_name() == "shcentroid-threshold":
            print("threshold-mode=auto: threshold={:.3g} threshold-least={:.6g} min-flux={:.6g}".format(
                *(found.get_value(name) for name in ("threshold", "threshold-least", "min-flux"))))
        elif found.get_name() == "shcentroid-summary":
            print(sum_up(found), file=sys.stderr)


def set_bits(pipeline, bits):
    """Sets bit-depth with the caps, where `bits` of the pipeline is what its camera sends."""
    def on_event(pad, info):
        event = info.get_event()
        if event.type == Gst.EventType.CAPS:
            structure = event.parse_caps().get_structure(0)
            n = bits(pipeline) if structure.get_value("format") == "GRAY16_LE" else 0
            if 8 < n < 16:
                print(f"The camera sends {n} bits: bit-depth={n}")
                pad.get_parent_element().set_property("bit-depth", n)
        return Gst.PadProbeReturn.OK

    pad = pipeline.get_by_name("sh").get_static_pad("sink")
    pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)


def sentence_of(error, words):
    """Returns: what to tell of an error. GStreamer names neither the file nor the kind that it does not read."""
    files = [word[4:] for word in words if word.startswith("uri=")]
    if files and (error.matches(Gst.CoreError.quark(), Gst.CoreError.MISSING_PLUGIN) or
                  error.matches(Gst.StreamError.quark(), Gst.StreamError.CODEC_NOT_FOUND) or
                  error.matches(Gst.StreamError.quark(), Gst.StreamError.TYPE_NOT_FOUND)):
        name = GLib.filename_from_uri(files[0])[0]
        return (f"{name} is of a kind that no installed plug-in of GStreamer reads. Write its frames with NumPy,"
                f" numpy.save(\"frames.npy\", ...), as u8, u16 or float32 of [height, width] or [frames, height,"
                " width].")
    return error.message


def play(words, bits=None, connect=None):
    """Runs to the end, or until Ctrl-C, which ends files properly; a second one does not wait."""
    try:
        with warnings.catch_warnings(record=True) as out_of_range:
            pipeline = Gst.parse_launchv(words)
    except GLib.Error as error:
        sys.exit(error.message)
    if out_of_range:  # GObject only warns, and keeps the old value
        sys.exit(f"{out_of_range[0].message}.")
    if connect:
        connect(pipeline)
    if bits:
        set_bits(pipeline, bits)
    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    while True:
        try:
            message = bus.timed_pop_filtered(
                200 * Gst.MSECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR |
                Gst.MessageType.WARNING | Gst.MessageType.ELEMENT)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # the source may not hear of it
            pipeline.send_event(Gst.Event.new_eos())
            continue
        if message and message.type in (Gst.MessageType.EOS, Gst.MessageType.ERROR):
            break
        if message:
            tell(message)
    sh = pipeline.get_by_name("sh")
    stats, backend = sh.get_property("stats"), sh.get_property("active-backend")
    pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        sys.exit(sentence_of(message.parse_error()[0], words))
    n = stats.get_value("frames")
    if n == 1:  # which was also the one to find the grid, and to make the kernel
        print(f"1 frame measured ({backend})")
    else:
        print(f"{n} frames measured, median {stats.get_value('time-p50'):.0f} us a frame ({backend})")


def main(source, options, unsaid=(), bits=None):
    """`source` is a Source, or a list of words that end in grey frames; files of the names in
    `unsaid` are not mentioned. `bits` of a pipeline says what its camera sends, 0 if nobody
    knows."""
    check(options)
    if not isinstance(source, Source):
        source = Source(source)
    if any(text.startswith("bit-depth=") for text in options.properties):
        bits = None
    try:
        if options.view:
            need_display("--view")
        with Outputs() as outputs:
            words = describe(source, stage(options, outputs))
            if "scale" in words:
                words = set_scale(words, options.scale, source.size())
            play(words, bits, source.connect)
    except RuntimeError as error:
        sys.exit(str(error))
    for name in ((options.map or MAP) if finds_grid(options) else None, options.csv, options.picture):
        if name and name not in unsaid:
            print("Wrote", name)
