# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging ao calibrate: plays a loop until the action calibrate of its shreconstruct has measured the interaction matrix."""
import threading
import time

from .. import library, play
from ..command import NO_RESULT, NOT_WRITTEN, WRONG_USE, Failure
from ..report import plots
from .recorder import find_loop

OPTIONS = ("poke", "method", "repeats", "average")
SETTINGS = {"poke": "calibration-poke", "method": "calibration-method", "repeats": "calibration-repeats", "average": "calibration-frames"}
METHODS = ("push-pull", "hadamard", "sinusoidal")
STILL = 20  # frames after which a mirror that was sent flat is flat
SILENCE = 10  # seconds without a frame
PASSED = 2  # frames: when the second one comes, the mirror has the commands of the first
LONGEST = 1  # seconds to wait for them
NAME, NOISE = "interaction.npy", "interaction-noise.npy"
MESSAGE = "shreconstruct-calibration"
GOOD_FOR = ", for pokes of this size: compare with a calibration of half of it to see whether the mirror is in proportion"


def add_arguments(parser):
    group = parser.add_argument_group("calibrate")
    group.add_argument("--poke", type=float, metavar="P", help="amplitude, in the unit of a command (default: that of the pipeline, else 0.1)")
    group.add_argument("--method", choices=METHODS, help="which commands are poked together (default: that of the pipeline, else push-pull)")
    group.add_argument("--repeats", type=int, metavar="N", help="times that each is poked (default: that of the pipeline, else 4)")
    group.add_argument("--average", type=int, metavar="N", help="frames of each poke that are averaged (default: that of the pipeline, else 1)")


def sensor_of(element):
    """Returns: the shcentroid whose frames come to the element, which flags saturated spots with fields=all; None where its other pads are used"""
    while element.sinkpads:
        peer = element.sinkpads[0].get_peer()
        element = peer.get_parent_element() if peer else None
        if not element:
            return None
        if element.get_factory().get_name() == "shcentroid":
            return element if [pad.get_name() for pad in element.srcpads] == ["src"] else None
    return None


class Ended(Exception):
    """The message of the end is there."""


class Calibrator:
    """Waits for frames, begins when the mirror is flat, and takes the messages."""

    def __init__(self, options, path):
        self.options, self.path = options, path
        self.lock, self.n_frames, self.last_frame = threading.Lock(), 0, None
        self.has_begun, self.part, self.told = False, 0, None

    def prepare(self, pipeline):
        self.element = find_loop(pipeline, "calibration")
        for name, setting in SETTINGS.items():
            self.set(setting, getattr(self.options, name))
        self.set("loop", "open")  # which keeps the mirror flat
        sensor = sensor_of(self.element)
        if sensor:
            library.gstreamer().util_set_object_arg(sensor, "fields", "all")
        pipeline.set_property("auto-flush-bus", False)  # warnings come after the message of the end
        self.pipeline, self.settings = pipeline, list(play.settings_of(pipeline))
        self.element.get_static_pad("sink").add_probe(library.gstreamer().PadProbeType.BUFFER, self.count)
        self.last_frame = time.monotonic()

    def set(self, name, value):
        if value is None:
            return
        about = self.element.find_property(name)
        if hasattr(about, "minimum") and not about.minimum <= value <= about.maximum:
            raise Failure(WRONG_USE, f"--{next(key for key, of in SETTINGS.items() if of == name)} is {value:g}; it goes from"
                                     f" {about.minimum:g} to {about.maximum:g}.")
        library.gstreamer().util_set_object_arg(self.element, name, str(value))

    def count(self, _pad, _info):
        with self.lock:
            self.n_frames += 1
            self.last_frame = time.monotonic()
        return library.gstreamer().PadProbeReturn.OK

    def follow(self, _pipeline):
        """Of the thread that plays. Returns: the part that is done"""
        with self.lock:
            n_frames, silence = self.n_frames, time.monotonic() - self.last_frame
        if silence > SILENCE:
            raise Failure(NO_RESULT, f"No frame has come to shreconstruct for {SILENCE} s, after {n_frames} frames. Look at the source of the pipeline.")
        if not self.has_begun and n_frames > STILL:
            self.has_begun = True
            if not self.element.emit("calibrate", self.path) and not self.told:
                raise Failure(NO_RESULT, "The element shreconstruct is calibrated already, by something else in the pipeline.")
        return self.part

    def flatten(self):
        """Waits until the mirror has the reference commands, or no frames come. Of a pipeline that still plays."""
        if not self.has_begun:
            return
        self.element.emit("stop-calibration")
        with self.lock:
            last = self.n_frames + PASSED
        end = time.monotonic() + LONGEST
        while self.n_frames < last and time.monotonic() < end:
            time.sleep(0.005)

    def take_message(self, structure):
        if structure.get_name() == MESSAGE + "-progress":
            self.part = structure.get_value("part")
        elif structure.get_name() == MESSAGE:
            self.told = {name: structure.get_value(name) for name in (structure.nth_field_name(i) for i in range(structure.n_fields()))}
            raise Ended

    def take_rest(self, warn):
        """Of the pipeline, which has been stopped."""
        bus, warning = self.pipeline.get_bus(), library.gstreamer().MessageType.WARNING
        message = bus.pop_filtered(warning)
        while message:
            warn(message.parse_warning()[0].message)
            message = bus.pop_filtered(warning)


def show(np, made, told):
    report, matrix, noise = made.report, np.load(made.path(NAME)), np.load(made.path(NOISE))
    seen = np.isfinite(noise)
    relative = told["noise"] / told["rms"] if told["rms"] > 0 else float("nan")
    report.figure("commands", matrix.shape[1])
    report.figure("cells", len(matrix) // 2)
    report.figure("cells unseen", told["cells-unseen"], about="those without light, for example outside of the pupil")
    report.figure("latency", told["latency"], "frames", about="from a command to the slopes that it makes; --delay of ao gains and ao record")
    report.figure("noise", relative, at_most=1, about="of an element, relative to the rms of all; more repeats or a larger poke make it less")
    report.figure("frames", told["frames"])
    count = np.maximum(seen.sum(0), 1)
    strength, error = (np.sqrt((np.where(seen, values, 0).astype(float) ** 2).sum(0) / count) for values in (matrix, noise))
    poked = np.flatnonzero(seen.any(0))
    if len(poked):
        report.plot("Commands", plots.scatter(("command", ""), ("slope", "for each unit of a command"), {
            "response": (poked, strength[poked]), "noise": (poked, error[poked])}, log_y=True),
            "Rms over the cells of what each command does to the slopes, and its standard error. A command near to its noise is not seen.")
    good_for = GOOD_FOR if told["judgement"] == "good" else ""
    made.lines += [f"latency: {told['latency']:.2f} frames", f"noise of an element: {relative:.2g} of their rms",
                   f"judgement: {told['judgement']}{good_for}"]
    if "saturation" in told:
        made.lines.append(f"saturation: {told['saturation']}")


def run(np, options, made, words_of):
    made.setting("pipeline", options.input)
    made.is_live = True
    calibrator = Calibrator(options, made.path(NAME))
    try:
        made.play(words_of(options.input), "%", 100, calibrator.take_message, calibrator.follow, calibrator.prepare, at_end=calibrator.flatten)
    except Ended:
        calibrator.take_rest(made.warn)
    made.tell_settings(calibrator.settings)
    told = calibrator.told
    if not told:
        raise Failure(NO_RESULT, f"The pipeline ended after {calibrator.n_frames} frames, before the calibration did.")
    if told["state"] != "done":
        raise Failure(NO_RESULT if told["state"] == "abandoned" or "latency" not in told else NOT_WRITTEN, told["text"])
    show(np, made, told)
    return made.finish(latency=told["latency"], noise=told["noise"], rms=told["rms"], frames=told["frames"], cells_unseen=told["cells-unseen"],
                       commands_unseen=told["commands-unseen"], judgement=told["judgement"])
