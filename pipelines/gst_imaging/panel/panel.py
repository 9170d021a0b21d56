# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pipeline with what a panel knows of it. All of it runs in one thread, `run()`, but `submit()`, and the counting around a change of state.

No function of this package runs in a thread of the pipeline: messages are taken from the bus, properties are compared.
"""
import concurrent.futures
import contextlib
import os
import queue
import time

from . import graph, health, outputs, pads
from .changes import Changes
from .elements import Element
from .files import Files
from .kept import Kept
from .leaks import Leaks
from .messages import Messages
from .rate import Rate
from .recordings import Recordings
from .refusal import Refusal
from .reserved import Reserved
from .states import States
from .values import number
from .view import described

PERIOD = 0.25  # seconds between comparisons of properties
BLOCKED = 1  # seconds of a change of state after which no other one is taken
END = "The data has ended. Start plays it again from the beginning."
CAMERA_END = "The connection of the camera has ended: it sends no more frames. Start connects to it again."


def fields_of(structure):
    """Returns: numbers and texts of an element message, and of the structures in it"""
    fields = {}
    for i in range(structure.n_fields()):
        name = structure.nth_field_name(i)
        try:
            value = structure.get_value(name)
        except TypeError:
            continue
        if hasattr(value, "nth_field_name"):
            fields[name] = fields_of(value)
        elif isinstance(value, (bool, int, float, str)):
            fields[name] = number(value) if isinstance(value, float) else value
    return fields


class Panel:
    def __init__(self, Gst, GstImaging, pipeline, description, *, ready=None, layout=None, allow=(), folders=(), loop=False, camera=False):
        self.Gst, self.GstImaging, self.pipeline = Gst, GstImaging, pipeline
        self.description, self.ready, self.loop = description, ready, loop
        self.layout = {"main": None, "before": None, "after": None, "shared": False, "results": [], "volume": None, "more": [], "title": None, **(layout or {})}
        self.allow, self.files = list(allow), Files(folders)
        self.elements = {}
        iterator = pipeline.iterate_recurse()
        while True:
            result, element = iterator.next()
            if result != Gst.IteratorResult.OK:
                break
            if not isinstance(element, Gst.Bin):
                self.elements[element.get_name()] = Element(self, element)
        self.elements = dict(reversed(self.elements.items()))  # sources first
        self.changes, self.messages, self.recordings = Changes(self, ready or description), Messages(self), Recordings(self)
        self.state_name, self.is_live = "stopped", False
        self.camera = camera or any(element.is_connection() for element in self.elements.values())
        self.begin = time.monotonic()
        self.counters = health.Counters()
        self.states, self.kept = States(Gst, pipeline, lambda: health.count(self)), Kept(self)
        self.reserved = []  # names that actions write later
        self.leaks = Leaks(GstImaging.Tap, [element.element for element in self.elements.values()], self.states)
        self.n_failures, self.has_stopped = 0, True
        self.rate = Rate()
        self.is_at_end, self.ends_early = False, False  # ends_early: before the change to PLAYING was complete
        self.listener = lambda message: None
        self.known, self.known_pads = {}, None
        self.jobs, self.is_running, self.has_ended = queue.Queue(), True, False

    # --- the thread ---

    def submit(self, function, *arguments):
        """From any thread. Returns: a Future"""
        future = concurrent.futures.Future()
        self.jobs.put((future, function, arguments))
        if self.has_ended:  # perhaps after its last look
            self.refuse_jobs()
        return future

    def refuse_jobs(self):
        with contextlib.suppress(queue.Empty):
            while True:
                self.jobs.get_nowait()[0].set_exception(Refusal(503, "The panel ends."))

    def do_job(self, wait):
        try:
            future, function, arguments = self.jobs.get(timeout=wait)
        except queue.Empty:
            return False
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*arguments))
            except Exception as error:  # of the caller
                future.set_exception(error)
                del future  # its error has this frame: the two would keep what the function held, as descriptors
        return True

    def run(self):
        bus = self.pipeline.get_bus()
        due = told = 0
        self.follow()  # what changes from now on is told
        while self.is_running:
            while self.do_job(0.02) and self.is_running:
                pass
            while message := bus.pop():
                self.on_message(message)
            self.states.look()
            if self.ends_early and not self.states.n_open:
                self.on_end()
            now = time.monotonic()
            if now >= due:
                due = now + PERIOD
                self.follow()
            if now >= told:
                told = now + 1
                if self.state_name == "playing":
                    health.hint(self)  # counts, also while nobody looks
                    self.leaks.count()
                    self.listener({"type": "pipeline", **self.pipeline_state()})
                    if hint := self.rate.look(self, now):
                        self.messages.tell("warning", "", hint)
        self.recordings.end()
        self.kept.begin("stopped")
        self.has_stopped = self.states.end()
        self.release(self.reserved)
        self.has_ended = True
        self.leaks.close()
        self.refuse_jobs()
        for recording in self.recordings.snapshots:
            recording.close()

    def stop(self):
        self.is_running = False

    # --- what happens in the pipeline ---

    def on_message(self, message):
        Gst, kind = self.Gst, message.type
        if kind in (Gst.MessageType.ERROR, Gst.MessageType.WARNING, Gst.MessageType.INFO):
            self.note(message)
        elif kind == Gst.MessageType.EOS:
            self.on_end()
        elif kind == Gst.MessageType.ELEMENT:
            self.on_element_message(message)

    def note(self, message):
        Gst = self.Gst
        severity, parse = {Gst.MessageType.ERROR: ("error", message.parse_error), Gst.MessageType.WARNING: ("warning", message.parse_warning),
                           Gst.MessageType.INFO: ("info", message.parse_info)}[message.type]
        error, debug = parse()
        if self.state_name == "failed" and severity == "error" and error.message.startswith(graph.FOLLOWING):
            return  # the first error has the reason
        text = graph.reason(message, error.message, debug)
        self.messages.tell(severity, message.src.get_name() if message.src else "", text, debug)
        if severity == "error":
            self.messages.note_failure()
            self.n_failures += 1
            self.kept.begin("failed")
            self.states.set(Gst.State.NULL)
            self.is_at_end = False
            self.change_state("failed")

    def on_end(self):
        self.ends_early = bool(self.states.n_open)
        if self.ends_early:  # run() comes back to it
            return
        if self.state_name != "playing":  # it has failed meanwhile, or was stopped
            return
        if self.loop and self.flush_to(0):
            return
        if self.loop:
            self.states.set(self.Gst.State.READY)
            self.states.set(self.Gst.State.PLAYING)
            return
        self.kept.begin("paused")
        self.states.set(self.Gst.State.PAUSED)
        self.is_at_end = True
        self.messages.tell("warning" if self.is_camera() else "info", "", self.end_text())
        self.recordings.stop_alone("warning")
        self.change_state("paused")

    def flush_to(self, place):
        """place: in ns. Returns: whether the source can seek"""
        health.count(self)  # a flush resets the counts of sinks
        could_seek = self.leaks.seek(lambda: self.pipeline.seek_simple(self.Gst.Format.TIME, self.Gst.SeekFlags.FLUSH, place))
        health.count(self)
        return could_seek

    def is_camera(self):
        """Whether the frames are of now: they come from a camera, or over a connection"""
        return self.camera or self.is_live

    def end_text(self):
        return CAMERA_END if self.is_camera() else END

    def from_the_beginning(self):
        """What has ended plays again."""
        self.is_at_end = False
        if not self.flush_to(0):
            self.states.set(self.Gst.State.READY)

    def on_element_message(self, message):
        structure, element = message.get_structure(), self.elements.get(message.src.get_name() if message.src else "")
        if not element or not element.ours:
            return
        if structure.get_name() == "imaging-settings":
            self.on_settings(element, structure)
            return
        self.listener({"type": "event", "element": element.name, "name": structure.get_name(), "fields": fields_of(structure)})

    def on_settings(self, element, structure):
        accepted, text = structure.get_value("accepted"), structure.get_value("text") or ""
        try:
            names = [str(name) for name in structure.get_value("properties")]
        except TypeError:  # PyGObject without its additions
            names = [name for name in element.properties if name in structure.to_string()]
        if accepted:
            element.rejected.clear()
        else:
            for name in names:
                if name in element.properties:
                    element.rejected[name] = {"value": element.get(name), "text": text}
        self.listener({"type": "settings", "element": element.name, "accepted": accepted, "properties": names, "text": text})

    def follow(self):
        """Tells what has changed since the last time."""
        for element in self.elements.values():
            element.remember_caps()
            element.release(self.condition())
            for name in element.properties:
                reason = element.reason(name, self.condition())
                now = element.get(name), element.rejected.get(name), reason
                if self.known.get((element.name, name), now) != now:
                    self.listener({"type": "property", "element": element.name, "name": name, "value": now[0],
                                   "rejected": now[1], "can-set": reason is None, "reason": reason})
                self.known[element.name, name] = now
        found = self.pads()
        if self.known_pads is not None and found != self.known_pads:
            self.listener({"type": "pads", "pads": found})
        self.known_pads = found
        if self.recordings.current:
            self.recordings.follow()

    def warn_later(self, text):
        """From any thread."""
        self.submit(self.messages.tell, "warning", "", text)

    # --- what is told ---

    def pipeline_state(self):
        def seconds(answer):
            ok, value = answer
            return value / self.Gst.SECOND if ok and 0 <= value < 2 ** 63 - 1 else None

        position = duration = None
        seekable = False
        if self.state_name in ("playing", "paused"):
            position = seconds(self.pipeline.query_position(self.Gst.Format.TIME))
            duration = seconds(self.pipeline.query_duration(self.Gst.Format.TIME))
            query = self.Gst.Query.new_seeking(self.Gst.Format.TIME)
            seekable = self.pipeline.query(query) and query.parse_seeking()[1]
        return {"state": self.state_name, "position": position, "duration": duration, "seekable": bool(seekable), "live": self.is_live,
                "ended": self.is_at_end, "camera": self.is_camera(), "reason": self.end_text() if self.is_at_end else None}

    def pads(self):
        return pads.of(self.elements.values())

    def state(self):
        return {"type": "state", "protocol": 1, "version": self.version(), "ready": self.ready, "description": self.description,
                "pipeline": self.pipeline_state(), "elements": self.all_elements(), "pads": self.pads(), "layout": self.layout,
                "view": described(self.GstImaging),
                **self.changes.state(), "files": self.files.folders,
                "recording": self.recordings.state(), "messages": self.messages.all, "health": self.health()}

    def all_elements(self):
        return [element.state(self.condition()) for element in self.elements.values()]

    def version(self):
        plugin = self.Gst.Registry.get().find_plugin("picturesink") or next(
            (p for p in self.Gst.Registry.get().get_plugin_list() if p.get_package() == "gst-imaging"), None)
        return plugin.get_version() if plugin else None

    def health(self):
        return health.read(self)

    # --- commands ---

    def element(self, name):
        if not isinstance(name, str) or name not in self.elements:
            raise Refusal(404, f'The pipeline has no element "{name}".')
        return self.elements[name]

    def pad(self, name):
        element, _dot, pad = name.rpartition(".") if isinstance(name, str) else ("", "", "")
        found = self.elements[element].element.get_static_pad(pad) if element in self.elements else None
        if not found or f"{element}.{pad}" not in {known["pad"] for known in self.pads()}:
            raise Refusal(404, f'The pipeline has no pad "{name}" with pictures.')
        return found

    def path_check(self, replace=False):
        """Returns: a function for the paths of elements and their actions"""
        def check(name, writer=None, own=()):
            """Returns: the path of a file; what an element writes is none that is in use, or that nobody wants to replace"""
            path = self.files.check(name)
            return self.check_new(self.check_output(path, writer, own), replace) if writer else path

        return check

    def known_path_check(self, replace=False):
        """Returns: as path_check(), of paths that were set before: those of the command line may be outside the folders of --files"""
        def check(name, writer=None, own=()):
            if writer:
                self.check_new(self.check_output(os.path.realpath(name), writer, own), replace)
            return name

        return check

    @staticmethod
    def check_new(path, replace, has_flags=False):
        found = None if replace else outputs.existing(path, has_flags)
        if found:
            raise Refusal(409, f"There is {found} already: choose another name, or set replace.", exists=True)
        return path

    def check_output(self, path, writer=None, own=(), has_flags=False):
        return outputs.check(path, self.elements.values(), writer, own, self.recordings.paths(), has_flags)

    def call(self, name, action, arguments, replace=False):
        if self.state_name == "failed":
            raise Refusal(409, "The pipeline has failed: play it again first.")
        check, taken = self.path_check(replace), []

        def check_and_reserve(*file):
            path = check(*file)
            taken.extend([] if replace else [Reserved(path)])
            return path

        result = False
        try:
            result = self.element(name).call(action, arguments, check_and_reserve)
        finally:
            if result is False:  # it writes nothing
                self.release(taken)
            self.reserved = [name for name in self.reserved + taken if name.is_untouched()]
        return {"result": result if isinstance(result, (bool, int, float, str)) else None}

    @staticmethod
    def release(reserved):
        while reserved:
            reserved.pop().release()

    def change_state(self, name):
        self.state_name = name
        if name in ("stopped", "failed"):  # elements have forgotten what they were to write
            self.release(self.reserved)
        if name == "failed":
            self.recordings.stop_alone("warning")
        self.listener({"type": "pipeline", **self.pipeline_state()})

    def condition(self):
        """For what can be set: a pipeline that begins to play is no longer stopped."""
        return "changing" if self.states.n_open else self.state_name

    def play(self, name):
        """Returns: a Future of the answer. Elements may wait for a file or a device while the state changes, in a thread of its own"""
        Gst = self.Gst
        states = {"playing": Gst.State.PLAYING, "paused": Gst.State.PAUSED, "stopped": Gst.State.NULL}
        if name not in states:
            raise Refusal(400, "state is playing, paused or stopped.")
        if self.states.waiting() > BLOCKED:
            raise Refusal(409, self.states.sentence())
        if name == "stopped":
            self.recordings.stop_alone("warning")
        self.kept.begin(name)
        if self.state_name == "playing":  # the frame that a sink holds when it is paused has passed already
            self.kept.wait(0.5)
        if name == "playing" and self.is_at_end:
            self.from_the_beginning()
        self.is_at_end, self.ends_early = self.is_at_end and name == "paused", False
        self.messages.failure = None
        answer = concurrent.futures.Future()
        answer.set_running_or_notify_cancel()  # a server that ends does not cancel it
        before = self.n_failures, self.messages.n
        self.states.set(states[name], lambda result: self.has_changed(name, result, *before, answer))
        return answer

    def has_changed(self, name, result, n_failures, n_messages, answer):
        Gst = self.Gst
        while message := self.pipeline.get_bus().pop():
            self.on_message(message)
        if result == Gst.StateChangeReturn.FAILURE or self.n_failures > n_failures:
            self.kept.begin("failed")
            self.states.set(Gst.State.NULL)
            self.change_state("failed")
            errors = [m["text"] for m in self.messages.all if m["severity"] == "error" and m["number"] > n_messages]
            answer.set_exception(Refusal(422, errors[0] if errors else "The pipeline does not start."))
            return
        self.is_live = result == Gst.StateChangeReturn.NO_PREROLL or self.is_live
        self.change_state(name)
        answer.set_result({"state": name})

    def seek(self, seconds):
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
            raise Refusal(400, "seconds is a number from 0 on.")
        if self.state_name not in ("playing", "paused"):
            raise Refusal(409, "The pipeline is stopped: there is nothing to seek in.")
        if not self.flush_to(int(seconds * self.Gst.SECOND)):
            raise Refusal(422, "The source of this pipeline cannot seek.")
        self.is_at_end = False
        self.listener({"type": "pipeline", **self.pipeline_state(), "position": seconds})
        return {}
