# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pipeline with what a panel knows of it. All of it runs in one thread, `run()`, but `submit()`.

No function of this package runs in a thread of the pipeline: messages are taken from the bus, properties are compared.
"""
import concurrent.futures
import contextlib
import queue
import time

from . import health, outputs
from .elements import Element
from .files import Files
from .presets import Presets, compare
from .recording import Recording
from .refusal import Refusal

PERIOD = 0.25  # seconds between comparisons of properties
MAX_MESSAGES, MAX_UNDO = 200, 100
PICTURES = ("video/x-raw", "other/tensors", "application/x-slc", "video/x-bayer")


class Panel:
    def __init__(self, Gst, GstImaging, pipeline, description, *, ready=None, layout=None, allow=(), folders=(), loop=False):
        self.Gst, self.GstImaging, self.pipeline = Gst, GstImaging, pipeline
        self.description, self.ready, self.loop = description, ready, loop
        self.layout = {"main": None, "before": None, "after": None, "results": [], "volume": None, **(layout or {})}
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
        self.presets = Presets(ready or description)
        self.undo_list, self.messages = [], []
        self.drag = self.dragged = None  # the newest change that undo() takes back, and that step
        self.n_warnings = self.n_errors = self.n_messages = 0
        self.state_name, self.is_live, self.recording = "stopped", False, None
        self.begin = time.monotonic()
        self.listener = lambda message: None
        self.known, self.known_views = {}, None
        self.kept = {}  # by pad: a tap with the last frame, while the pipeline is paused
        self.jobs, self.is_running, self.has_ended = queue.Queue(), True, False
        self.snapshots = set()  # that wait for their frame

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
            now = time.monotonic()
            if now >= due:
                due = now + PERIOD
                self.follow()
            if now >= told:
                told = now + 1
                if self.state_name == "playing":
                    self.listener({"type": "pipeline", **self.pipeline_state()})
        if self.recording:
            try:
                self.record_stop()
            except Refusal:
                pass
        self.keep("stopped")
        self.pipeline.set_state(self.Gst.State.NULL)
        self.has_ended = True
        self.refuse_jobs()
        for recording in self.snapshots:
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
        self.tell(severity, message.src.get_name() if message.src else "", error.message, debug)
        if severity == "error":
            self.keep("failed")
            self.pipeline.set_state(Gst.State.NULL)
            self.change_state("failed")

    def tell(self, severity, element, text, debug=None):
        self.n_messages += 1
        self.n_errors += severity == "error"
        self.n_warnings += severity == "warning"
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
        told = {"type": "message", "severity": severity, "number": self.n_messages, "time": stamp,
                "element": element, "text": text, "debug": debug}
        self.messages = self.messages[1 - MAX_MESSAGES:] + [told]
        self.listener(told)

    def on_end(self):
        if self.loop and self.pipeline.seek_simple(self.Gst.Format.TIME, self.Gst.SeekFlags.FLUSH, 0):
            return
        if self.loop:
            self.pipeline.set_state(self.Gst.State.READY)
            self.pipeline.set_state(self.Gst.State.PLAYING)
            return
        self.keep("paused")
        self.pipeline.set_state(self.Gst.State.PAUSED)
        self.change_state("paused")

    def on_element_message(self, message):
        structure, element = message.get_structure(), self.elements.get(message.src.get_name() if message.src else "")
        if not element or not element.ours:
            return
        if structure.get_name() == "imaging-settings":
            self.on_settings(element, structure)
            return
        fields = {}
        for i in range(structure.n_fields()):
            name = structure.nth_field_name(i)
            try:
                value = structure.get_value(name)
            except TypeError:
                continue
            if isinstance(value, (bool, int, float, str)):
                fields[name] = value if not isinstance(value, float) or value - value == 0 else None
        self.listener({"type": "event", "element": element.name, "name": structure.get_name(), "fields": fields})

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
            for name in element.properties:
                reason = element.reason(name, self.state_name)
                now = element.get(name), element.rejected.get(name), reason
                if self.known.get((element.name, name), now) != now:
                    self.listener({"type": "property", "element": element.name, "name": name, "value": now[0],
                                   "rejected": now[1], "can-set": reason is None, "reason": reason})
                self.known[element.name, name] = now
        views = self.views()
        if self.known_views is not None and views != self.known_views:
            self.listener({"type": "views", "views": views})
        self.known_views = views
        if self.recording:
            self.follow_recording()

    def follow_recording(self):
        try:
            self.recording.check()
        except Refusal as refusal:  # it is closed
            self.recording = None
            self.listener({"type": "recording", "recording": None})
            self.tell("error", "", str(refusal))
            return
        self.listener({"type": "recording", "recording": self.recording.state()})
        if self.recording.is_complete():
            try:
                self.record_stop()
            except Refusal as refusal:
                self.tell("error", "", str(refusal))

    def warn(self, text):
        self.tell("warning", "", text)

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
        return {"state": self.state_name, "position": position, "duration": duration, "seekable": bool(seekable), "live": self.is_live}

    def views(self):
        found = []
        for element in self.elements.values():
            for pad in element.element.srcpads:
                caps = pad.get_current_caps() or (pad.get_pad_template().get_caps() if pad.get_pad_template() else None)
                if not caps or caps.is_any() or caps.is_empty() or pad.get_name() in ("results", "sets"):
                    continue
                structure = caps.get_structure(0)
                if structure.get_name() not in PICTURES:
                    continue
                found.append(self.view(element, pad, pad.get_current_caps(), structure))
        return found

    def view(self, element, pad, caps, structure):
        told = {"pad": f"{element.name}.{pad.get_name()}", "element": element.name,
                "kind": "video" if structure.get_name().startswith("video/") else "tensors",
                "caps": caps.to_string() if caps else None, "width": None, "height": None, "channels": None, "type": None,
                "minimum": None, "maximum": None, "framerate": None, "quantity": None}
        if not caps:
            return told
        if told["kind"] == "tensors":
            words = structure.get_string("dimensions") or ""
            dims = [int(word) for word in words.replace(",", ":").split(":") if word.isdigit()]
            if len(dims) > 2 and dims[0] <= 4 and dims[2] > 1:
                told["channels"], dims = dims[0], dims[1:]
            told["width"], told["height"] = (dims + [1, 1])[:2]
            told["channels"] = told["channels"] or 1
            told["type"] = structure.get_string("types")
        else:
            told["width"], told["height"] = structure.get_int("width")[1], structure.get_int("height")[1]
            name = structure.get_string("format") or ""
            deep = any(word in name for word in ("16", "64", "10", "12"))
            told.update({"channels": 1 if name.startswith("GRAY") else 3, "type": "u16" if deep else "u8",
                         "minimum": 0, "maximum": 65535 if deep else 255})
        ok, rate, unit = structure.get_fraction("framerate")
        told["framerate"] = rate / unit if ok and unit and rate else None
        return told

    def state(self):
        return {"type": "state", "protocol": 1, "version": self.version(), "ready": self.ready, "description": self.description,
                "pipeline": self.pipeline_state(), "elements": self.all_elements(), "views": self.views(), "layout": self.layout,
                "presets": self.presets.names(), "can-undo": bool(self.undo_list), "files": self.files.folders,
                "recording": self.recording.state() if self.recording else None, "messages": self.messages, "health": self.health()}

    def all_elements(self):
        return [element.state(self.state_name) for element in self.elements.values()]

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
        if not found or f"{element}.{pad}" not in {view["pad"] for view in self.views()}:
            raise Refusal(404, f'The pipeline has no pad "{name}" with pictures.')
        return found

    def set(self, name, values, drag=None):
        """drag: text that the changes of one drag of a hand have in common; they are one step of undo()"""
        element = self.element(name)
        if not isinstance(values, dict) or not values:
            raise Refusal(400, "values is an object of names and values.")
        if drag is not None and (not isinstance(drag, str) or len(drag) > 64):
            raise Refusal(400, "drag is a text of 64 characters at most.")
        before = element.set(values, self.state_name, self.files)
        same = drag is not None and (drag, name, set(values)) == self.drag and self.undo_list and self.undo_list[-1] is self.dragged
        if not same and any(element.get(key) != value for key, value in before.items()):
            self.drag, self.dragged = (drag, name, set(values)), [(name, before)]
            self.undo_list = self.undo_list[1 - MAX_UNDO:] + [self.dragged]
        self.tell_presets()
        return {"values": {key: element.get(key) for key in values}}

    def call(self, name, action, arguments):
        result = self.element(name).call(action, arguments, self.files)
        return {"result": result if isinstance(result, (bool, int, float, str)) else None}

    def keep(self, state):
        """Before the pipeline goes to a state: of one that pauses, the last frame of each pad is wanted."""
        for tap in self.kept.values():
            tap.close()
        self.kept = {}
        for view in self.views() if state == "paused" else ():
            self.kept[view["pad"]] = self.GstImaging.Tap.new(self.pad(view["pad"]))
            self.kept[view["pad"]].keep(True)

    def wait_for_kept(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not all(tap.get_kept() for tap in self.kept.values()):
            time.sleep(0.005)

    def change_state(self, name):
        self.state_name = name
        self.listener({"type": "pipeline", **self.pipeline_state()})

    def play(self, name):
        Gst = self.Gst
        states = {"playing": Gst.State.PLAYING, "paused": Gst.State.PAUSED, "stopped": Gst.State.NULL}
        if name not in states:
            raise Refusal(400, "state is playing, paused or stopped.")
        if name == "stopped" and self.recording:
            self.record_stop()
        self.keep(name)
        if self.state_name == "playing":  # the frame that a sink holds when it is paused has passed already
            self.wait_for_kept(0.5)
        result = self.pipeline.set_state(states[name])
        if result == Gst.StateChangeReturn.FAILURE:
            while message := self.pipeline.get_bus().pop():
                self.on_message(message)
            self.keep("failed")
            self.pipeline.set_state(Gst.State.NULL)
            self.change_state("failed")
            errors = [m["text"] for m in self.messages if m["severity"] == "error"]
            raise Refusal(422, errors[-1] if errors else "The pipeline does not start.")
        self.is_live = result == Gst.StateChangeReturn.NO_PREROLL or self.is_live
        self.change_state(name)
        return {"state": name}

    def seek(self, seconds):
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
            raise Refusal(400, "seconds is a number from 0 on.")
        if self.state_name not in ("playing", "paused"):
            raise Refusal(409, "The pipeline is stopped: there is nothing to seek in.")
        if not self.pipeline.seek_simple(self.Gst.Format.TIME, self.Gst.SeekFlags.FLUSH, int(seconds * self.Gst.SECOND)):
            raise Refusal(422, "The source of this pipeline cannot seek.")
        return {}

    def settings(self):
        """What a preset has: by element and property."""
        return {e.name: {p: e.get(p) for p, d in e.properties.items() if d["when"] not in ("read", None) and not d.get("others")}
                for e in self.elements.values() if e.ours}

    def tell_presets(self):
        self.listener({"type": "presets", "presets": self.presets.names(), "can-undo": bool(self.undo_list)})
        return {"presets": self.presets.names()}

    def preset_save(self, name):
        self.presets.save(name, self.settings())
        return self.tell_presets()

    def preset_delete(self, name):
        self.presets.delete(name)
        return self.tell_presets()

    def put(self, wanted):
        """Sets what differs and can be set now. Returns: what was before"""
        done = []
        for name, values in wanted.items():
            element = self.elements.get(name)
            values = {p: v for p, v in values.items() if element and p in element.properties and v is not None and
                      not element.reason(p, self.state_name) and element.get(p) != v}
            if values:
                done.append((name, element.set(values, self.state_name, None)))
        return done

    def preset_load(self, name):
        done = self.put(self.presets.get(name))
        if done:
            self.undo_list = self.undo_list[1 - MAX_UNDO:] + [done]
        return self.tell_presets()

    def preset_compare(self, a=None, b=None):
        return {"differences": compare(*(self.presets.get(name) if name else self.settings() for name in (a, b)))}

    def undo(self):
        if not self.undo_list:
            raise Refusal(409, "There is nothing to undo.")
        done = self.undo_list.pop()
        self.put(dict(done))
        self.tell_presets()
        return {"undone": [{"element": e, "property": p, "value": v} for e, values in done for p, v in values.items()]}

    def record(self, view, path, frames):
        if self.recording:
            raise Refusal(409, f"A recording of {self.recording.view} runs already: stop it first.")
        if isinstance(frames, bool) or not isinstance(frames, int) or not 0 <= frames < 2 ** 62:
            raise Refusal(400, "frames is a whole number from 0 on.")
        path = outputs.check(self.files.check(path), self.pipeline, self.description)
        self.recording = Recording(self.Gst, self.GstImaging, self.pad(view), view, path, frames, self.warn)
        self.listener({"type": "recording", "recording": self.recording.state()})
        return {"path": self.recording.path}

    def record_stop(self):
        if not self.recording:
            raise Refusal(409, "No recording runs.")
        recording, self.recording = self.recording, None
        try:
            return recording.stop()
        finally:
            self.listener({"type": "recording", "recording": None})

    def begin_snapshot(self, view, path):
        """Returns: a recording of one frame, which others wait for: this thread has more to do. end_snapshot() goes with it"""
        if self.state_name not in ("playing", "paused"):
            raise Refusal(409, "The pipeline is stopped, and no frame passes: play it first.")
        pad, path, sample = self.pad(view), outputs.check(self.files.check(path), self.pipeline, self.description), None
        if self.state_name == "paused":
            sample = self.kept[view].get_kept() if view in self.kept else None
            if not sample:
                raise Refusal(409, f"No frame has passed {view} since the pipeline was paused: seek, or play it first.")
        recording = Recording(self.Gst, self.GstImaging, pad, view, path, 1, self.warn)
        if sample:
            recording.push(sample)
        self.snapshots.add(recording)
        return recording

    def look_at_snapshot(self, recording):
        recording.check()
        return recording.is_complete()

    def end_snapshot(self, recording):
        self.snapshots.discard(recording)
        state = recording.stop()
        return {"path": state["path"], "frames": state["frames"]}
