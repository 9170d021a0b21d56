# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plays a pipeline and serves a panel for it, for a browser and for scripts.

PIPELINE is a description as for gst-launch-1.0, or the name of a ready one: view, oct, ao, sharpen, photostereo, insar, with FILES, a
camera, or data of its own. FILES alone are viewed. property=value sets the element of the ready pipeline: of oct octbscan, of ao shcentroid, of
sharpen lapsharpen, of photostereo photostereo, of insar insarxcorr. framerate, axes and part set the source of files.
The address is printed; control and C ends it. docs/reference/panel.md has the protocol.
"""
import argparse
import glob
import itertools
import json
import os
import re
import signal
import sys
import warnings

from .. import library, play
from ..command import NO_RESULT, SIGNALS, UNREADABLE, WRONG_USE, Failure, say
from ..frames import cameras
from ..frames.source import split
from ..oct import calibration, spectra
from ..panel import scratch

EXAMPLES = [
    ("frames.fits framerate=10/1", "pictures of any type as they are, ten a second"),
    ("sharpen", "a moving picture, sharpened; open the address that is printed"),
    ("ao --camera v4l2:/dev/video0", "centroids of a camera; the grid is found in its first frame"),
    ("sharpen --camera aravis:Fake_1 --allow camera.exposure amount=2", "a simulated camera whose exposure can be set"),
    ("ao --simulator gain=0.3", "a loop with a simulated telescope: raise the gain until it becomes unstable"),
    ("photostereo lights.lp --camera v4l2:/dev/video0 window=sliding", "lamps in turn; a result for each picture"),
    ("oct scan.npy --lambda 800 900 --files /data", "spectra of a file, in micrometres; recordings go to /data"),
    ("oct scan.raw --samples 2048 --lines 400 --calibration oct.ini", "raw 16-bit samples"),
    ("'videotestsrc ! video/x-raw,format=GRAY8 ! lapsharpen ! fakesink sync=true'", "any pipeline"),
]


def add_arguments(parser):
    parser.add_argument("pipeline", metavar="PIPELINE", nargs="+", help="a description, or a ready pipeline, its FILES and property=value")
    cameras.add_settings(parser.add_argument_group("cameras, for a ready pipeline"))
    spectra.add_arguments(parser)
    calibration.add_arguments(parser)
    parser.add_argument("--simulator", action="store_true",
                        help="of ao: a loop of a simulated telescope, with shreconstruct; property=value sets shreconstruct")
    parser.add_argument("--by-order", action="store_true", help="of photostereo: take the pictures in natural order, whatever their names")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any free one")
    parser.add_argument("--listen", metavar="ADDRESS", help="serve on this address, with a token, in place of 127.0.0.1")
    parser.add_argument("--token", help="the token of --listen; without it a random one")
    parser.add_argument("--allow", metavar="ELEMENT.PROPERTY", action="append", default=[],
                        help="a property of an element that is not ours may be set")
    parser.add_argument("--files", metavar="DIR", action="append", default=[], help="paths from a browser are below this folder")
    parser.add_argument("--paused", action="store_true", help="do not play before the panel is asked to")


def imports():
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # products are small here, and its idle threads would spin
    Gst = library.gstreamer()
    library.numpy()
    try:
        import gi

        library.load(Gst)
        gi.require_version("GstImaging", "1.0")
        from gi.repository import GstImaging
    except (ImportError, ValueError) as error:
        raise Failure(WRONG_USE, "The introspection of gst-imaging is missing: install gir1.2-gstimaging-1.0, or build with"
                                 " -Dintrospection=enabled.") from error
    try:
        import aiohttp  # noqa: F401
    except ImportError as error:
        raise Failure(WRONG_USE, "aiohttp is missing: on Debian, install python3-aiohttp, and use /usr/bin/python3.") from error
    if not Gst.ElementFactory.find("jpegenc"):
        raise Failure(WRONG_USE, "The element jpegenc is missing: on Debian, install gstreamer1.0-plugins-good.")
    return Gst, GstImaging


def without_launch(words):
    """A line as it was given to gst-launch-1.0, without that and its options"""
    if len(words) == 1:
        words = [re.sub(r"^\s*gst-launch-1\.0(\s+-\S+)*(\s+|$)", "", words[0])]
    elif words[0] == "gst-launch-1.0":
        words = list(itertools.dropwhile(lambda word: word.startswith("-"), words[1:]))
    if not words or not words[0].strip():
        raise Failure(WRONG_USE, "Behind gst-launch-1.0 there is no pipeline.")
    return words


def description_of(words, names):
    """Returns: one word as it is; of several each as an argument of gst-launch-1.0, in which blanks belong to the word"""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            told = word.encode(errors="replace").decode()
            raise Failure(WRONG_USE, f'"{told}" is not UTF-8, which GStreamer needs. Rename the file.') from error
    words = without_launch(words)
    if "!" not in " ".join(words) and re.fullmatch("[a-z]+", words[0]):
        from gi.repository import Gst

        if not Gst.ElementFactory.find(words[0]):
            raise Failure(WRONG_USE, f'There is no ready pipeline "{words[0]}", and no element; there are: {", ".join(names)}.')
    if "!" not in " ".join(words) and re.fullmatch(r"[^ =]*(/[^ =]*|\.\w+)", words[0]):
        raise Failure(UNREADABLE, f"There is no {words[0]}.")
    return words[0] if len(words) == 1 else " ".join(
        re.sub(r'"(?:[^"\\]|\\.)*"| ', lambda found: found[0].replace(" ", "\\ ", found[0] == " "), word) for word in words)


def launch(Gst, description):
    from gi.repository import GLib

    # a value that a property does not take is only warned of, and the default would be used
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            pipeline = Gst.parse_launch(description)
        except GLib.Error as error:
            raise Failure(WRONG_USE, f"The pipeline cannot be made: {error.message}.") from error
    if said:
        told = play.range_of(pipeline, str(said[0].message)) or f"{said[0].message}."
        raise Failure(WRONG_USE, f"The pipeline cannot be made: {told}")
    if not isinstance(pipeline, Gst.Pipeline):
        element, pipeline = pipeline, Gst.Pipeline.new(None)
        pipeline.add(element)
    return pipeline


def options_of_oct():
    """Returns: {name: default}"""
    parser = argparse.ArgumentParser(add_help=False)
    spectra.add_arguments(parser)
    calibration.add_arguments(parser)
    return vars(parser.parse_args([]))


OF_RAW = {"samples", "lines", "dtype", "offset"}  # of them, those of raw samples
NAMES = "view", "oct", "ao", "sharpen", "photostereo", "insar"
RAW = "sharpen", "ao", "view", "oct"  # ready pipelines that take these


def check(options):
    cameras.check_settings(options)
    spectra.check(options)
    given = [name for name, default in options_of_oct().items() if getattr(options, name) != default]
    if given and options.pipeline[0] in RAW and set(given) <= OF_RAW:
        given = []
    if given and options.pipeline[0] != "oct":
        option = {"wavelength": "lambda"}.get(given[0], given[0].replace("_", "-"))
        of = ", ".join(RAW[:-1]) + " and " + RAW[-1] if given[0] in OF_RAW else "oct"
        raise Failure(WRONG_USE, f"--{option} is for the ready pipeline{'s' if given[0] in OF_RAW else ''} {of}.")
    if options.simulator and options.pipeline[0] != "ao":
        raise Failure(WRONG_USE, "--simulator is for the ready pipeline ao.")
    if options.by_order and options.pipeline[0] != "photostereo":
        raise Failure(WRONG_USE, "--by-order is for the ready pipeline photostereo.")
    if options.token and not options.listen:
        raise Failure(WRONG_USE, "--token is for --listen: on 127.0.0.1 no token is asked for.")
    for allowed in options.allow:
        if not all(allowed.partition(".")):
            raise Failure(WRONG_USE, f'--allow is ELEMENT.PROPERTY, not "{allowed}".')
    for folder in options.files:
        if not os.path.isdir(folder):
            raise Failure(WRONG_USE, f"--files {folder}: there is no such folder.")
    if not 0 <= options.port < 65536:
        raise Failure(WRONG_USE, f"--port is 0 to 65535, not {options.port}.")


def check_allowed(panel):
    for allowed in panel.allow:
        name, _point, wanted = allowed.partition(".")
        if not any(name in (e.name, e.factory) and wanted in e.properties for e in panel.elements.values()):
            raise Failure(WRONG_USE, f"--allow {allowed}: the pipeline has no element {name} with a property {wanted}.")


def make(options):
    """Returns: the panel"""
    Gst, GstImaging = imports()
    from ..panel import graph, ready
    from ..panel.panel import Panel

    name, *files = options.pipeline
    layout, loop, told = None, False, []

    def warn(text):
        print(f"gst-imaging panel: {text}", file=sys.stderr)
        told.append(text)

    if name in ready.ALL:
        files, settings = split(files)
        options.source = [word for word in settings if name != "insar" and word.partition("=")[0] in ready.SOURCE]
        settings = [word for word in settings if word not in options.source]
        description, layout = ready.ALL[name](files, settings, options, warn)
        loop = not (options.camera or options.simulator)
    elif options.camera:
        raise Failure(WRONG_USE, f'--camera is for a ready pipeline: {", ".join(ready.ALL)}.')
    else:
        description = description_of(options.pipeline, ready.ALL)
    pipeline = launch(Gst, description)
    trouble = graph.loose(Gst, pipeline)
    if trouble:
        raise Failure(WRONG_USE, trouble)
    panel = Panel(Gst, GstImaging, pipeline, description, ready=name if name in ready.ALL else None,
                  layout=layout, allow=options.allow, folders=options.files, loop=loop, camera=bool(options.camera))
    check_allowed(panel)
    for text in told:
        panel.messages.tell("warning", "", text)
    if options.simulator:
        from ..panel.telescope import Driver

        Driver(pipeline, panel.warn_later)
    return panel


class Told:
    """What the pipeline warns of and why it fails, on the terminal as well."""

    def __init__(self, panel):
        self.sentences = []
        panel.messages.say = self.say

    def say(self, element, sentence):
        self.sentences.append(sentence)
        say(f"gst-imaging panel: {element}{': ' if element else ''}{sentence}")

    def say_failure(self, answer):
        error = str(answer.exception() or "")
        if error and not any(sentence in error for sentence in self.sentences):
            self.say("", error)


def end_without_camera(panel, server, answer):
    """A camera that does not answer for a while may still do so: the panel says that it waits."""
    panel.states.wait(2)
    if not answer.done() or not answer.exception():
        return
    panel.stop()
    panel.run()
    server.stop()
    raise Failure(UNREADABLE, f"The camera cannot be opened: {answer.exception()}")


def are_files(words):
    """Whether files or folders stand where the name of a pipeline is expected"""
    return "!" not in " ".join(words) and (os.path.exists(words[0]) or (glob.has_magic(words[0]) and glob.glob(words[0])))


def run(options):
    if options.pipeline[0] not in NAMES and are_files(options.pipeline):
        options.pipeline.insert(0, "view")
    check(options)
    try:
        return serve(options)
    finally:  # also where a signal comes before the address
        scratch.remove()


def serve(options):
    panel = make(options)
    from ..panel.refusal import Refusal
    from ..panel.server import Server

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a browser that has gone does not end the panel
    told = Told(panel)
    server = Server(panel, listen=options.listen, port=options.port, token=options.token)
    try:
        address = server.start()
    except OSError as error:
        raise Failure(WRONG_USE, f"The panel cannot listen on port {options.port}: {error.strerror or error}.") from error
    except Exception as error:
        raise Failure(WRONG_USE, f"The panel cannot serve: {error} ({type(error).__name__}).") from error
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda *_: panel.stop())
    if not options.paused:
        try:
            answer = panel.play("playing")
        except Refusal as refusal:
            print(f"gst-imaging panel: {refusal}", file=sys.stderr)
        else:
            if options.camera:
                end_without_camera(panel, server, answer)
            answer.add_done_callback(told.say_failure)
    print(json.dumps({"address": address}) if options.json else address, flush=True)
    panel.states.wait(2)  # requests come after the start; a source that waits for ever does not keep them
    panel.run()
    server.stop()
    if not panel.has_stopped:  # a thread waits for ever, and would keep the process
        print("gst-imaging panel: the pipeline could not be stopped: an element waits for a device or a FIFO.", file=sys.stderr, flush=True)
        scratch.remove()
        os._exit(0)
    if panel.state_name == "failed":
        raise Failure(NO_RESULT, f"The pipeline has failed: {panel.messages.error_text()}")
    options.json = False  # the address was it
    return {"address": address}
