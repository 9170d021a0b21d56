# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elements of a pipeline: what can be set and called, by whom, and how it is told."""
import contextlib
import json
import math
import os
import warnings

from .. import library
from . import gvalue, kinds, trial
from .refusal import Refusal
from .values import as_text, from_json, from_text, in_structure, to_json, type_name, whole

OURS = "gst-imaging"
HIDDEN = {"name", "parent", "settings", "stats", "last-sample", "settings-hash", "settings-valid", "last-message"}
STREAMS = {"shmimsrc", "shmimsink"}  # their file is FOLDER/STREAM.im.shm
BYTES = {"filesrc", "fdsrc", "giosrc", "souphttpsrc", "tcpclientsrc", "udpsrc"}  # sources whose offsets are of bytes
CONNECTIONS = {"tcpclientsrc", "tcpserversrc", "udpsrc", "rtspsrc", "srtsrc", "shmsrc"}  # sources that end with the other side


class Element:
    def __init__(self, panel, element):
        self.Gst, self.element = panel.Gst, element
        self.name = element.get_name()
        factory = element.get_factory()
        self.factory = factory.get_name() if factory else type(element).__name__
        self.title = factory.get_metadata("long-name") if factory else self.factory
        plugin = factory.get_plugin() if factory else None
        self.ours = bool(plugin) and plugin.get_package() == OURS
        self.allowed = {allowed.partition(".")[2] for allowed in panel.allow
                        if allowed.partition(".")[0] in (self.name, self.factory)}
        self.properties = {p["name"]: p for p in self.describe(panel.GstImaging)}
        self.rejected = {}
        self.held = {}  # by name: a value that waits for the first caps, as JSON and as apply() takes it
        self.caps = None
        self.kind = kinds.of(self.factory)
        self.results_id = self.kind.results
        self.actions = json.loads(panel.GstImaging.actions_describe(element.__gtype__)) if self.ours else []

    def describe(self, GstImaging):
        text = GstImaging.settings_describe(self.element.__gtype__) if self.ours else None
        known = [{"unit": None, "values": None, "minimum": None, "maximum": None, "default": None, **p}
                 for p in json.loads(text or "[]", parse_int=lambda text: whole(int(text)))]
        names = {p["name"] for p in known}
        return [p for p in known + [self.describe_other(p) for p in self.element.list_properties() if p.name not in names]
                if p["name"] not in HIDDEN]

    def describe_other(self, pspec):
        kind = type_name(pspec)
        self.Gst.Format.TIME  # PyGObject knows the values of GstFormat only after its first use
        is_writable = pspec.flags & 2 and not pspec.flags & 8  # G_PARAM_CONSTRUCT_ONLY
        when = "read" if not is_writable else "frame" if pspec.flags & self.Gst.PARAM_MUTABLE_PLAYING else \
            "start" if pspec.flags & self.Gst.PARAM_MUTABLE_READY else None
        values, now = None, self.element.get_property(pspec.name) if kind in ("enum", "flags") and pspec.flags & 1 else None
        if now is not None:
            values = [{"nick": nick, "blurb": name} for v in library.members(now)
                      for nick, name in ([(v.value_nick, v.value_name)] if kind == "enum" else zip(v.value_nicks, v.value_names))]
        limits = {"minimum": None, "maximum": None}
        if kind in ("int", "uint64", "double"):
            limits = {"minimum": to_json(kind, pspec.minimum), "maximum": to_json(kind, pspec.maximum)}
        try:
            default = to_json(kind, pspec.default_value if now is None else library.member(now, pspec.default_value))
        except (AttributeError, TypeError, ValueError):
            default = None
        return {"name": pspec.name, "type": kind, "default": default, "unit": None, "values": values, "when": when,
                "blurb": pspec.blurb, "others": True, **limits}

    def get(self, name):
        described = self.properties[name]
        try:
            return to_json(described["type"], self.element.get_property(name))
        except (TypeError, AttributeError, ValueError):  # a type that PyGObject does not know, or that cannot be read
            if described["type"] not in ("array", "paths", "fraction") or not self.element.find_property(name).flags & 1:
                return None
            return from_text(described["type"], gvalue.read(self.element, name), described.get("items"))

    def inherits(self, name):
        """name: of a type"""
        kind = self.element.__gtype__
        while kind.name not in (name, "GstElement"):
            kind = kind.parent
        return kind.name == name

    def is_connection(self):
        return self.factory in CONNECTIONS

    def counts_frames(self):
        """Whether the offsets of its buffers are numbers of frames. Behind a file without frames of its own they are those of bytes."""
        element = self.element
        for _ in range(100):
            factory = element.get_factory()
            kind = (factory.get_metadata("klass") or "") if factory else ""
            if "Parser" in kind or (factory and factory.get_name() in BYTES):
                return False
            peers = [pad.get_peer() for pad in element.sinkpads]
            before = peers[0].get_parent_element() if peers and peers[0] else None
            if not before or "Decoder" in kind:
                return True
            element = before
        return True

    def reason(self, name, state):
        """Why a browser cannot set it now; None: it can"""
        described = self.properties[name]
        if described["when"] == "read":
            return "It can only be read."
        if name not in self.allowed and (not self.ours or described.get("others")):
            return f"It is not a setting of gst-imaging. Start the panel with --allow {self.name}.{name} to set it here."
        if described["when"] == "start" and state != "stopped":
            return "It counts at the next start: stop the pipeline to set it."
        return None

    def property_state(self, name, state):
        described = {key: value for key, value in self.properties[name].items() if key not in ("others", "written")}
        reason = self.reason(name, state)
        return {**described, "value": self.get(name), "can-set": reason is None, "reason": reason, "rejected": self.rejected.get(name)}

    def state(self, state):
        return {"name": self.name, "element": self.factory, "title": self.title, "ours": self.ours,
                "settings-valid": bool(self.element.get_property("settings-valid"))
                if self.element.find_property("settings-valid") else True,
                "results": self.results_id if self.ours else None, "display": self.kind.told() if self.ours else None,
                "properties": [self.property_state(name, state) for name in self.properties], "actions": self.actions}

    def names_files(self, name):
        """Whether a property names files. The settings of our elements tell; of other elements the name has to say so."""
        described = self.properties[name]
        if not self.ours or described.get("others"):
            return "location" in name
        return described["type"] in ("path", "paths") or (self.factory in STREAMS and name in ("stream", "folder"))

    def stream_path(self, values):
        """Returns: the file of a stream in shared memory as it is with these values; None of another element"""
        stream, folder = (values.get(name, self.get(name)) or "" for name in ("stream", "folder")) if self.factory in STREAMS else ("", "")
        if not isinstance(stream, str) or not isinstance(folder, str) or not stream:
            return None
        usual = next(filter(os.path.isdir, (os.environ.get("MILK_SHM_DIR", ""), "/milk/shm")), "/tmp")  # as in gstshmim.c
        return os.path.join(folder or usual, stream + ".im.shm")

    def files(self, name):
        """Returns: the paths that a property names now"""
        if not self.names_files(name):
            return []
        value = self.stream_path({}) if self.factory in STREAMS else self.get(name)
        return [path for path in (value if isinstance(value, list) else [value]) if isinstance(path, str) and path]

    def writes(self, name):
        """Whether the path of a property is one of a file that is written."""
        is_sink = not any(t.direction == self.Gst.PadDirection.SRC for t in self.element.get_pad_template_list())
        return is_sink or self.properties[name].get("written", False)

    def check_paths(self, name, value, check, others):
        """others: values that are set together with this one"""
        if not self.names_files(name) or value == self.get(name):
            return value
        if self.factory in STREAMS:
            return self.check_stream(name, value, check, others)
        if self.properties[name]["type"] == "paths" and isinstance(value, list):
            is_list = all(isinstance(item, str) for item in value)
            return [item and check(item, self if self.writes(name) else None, {name}) for item in value] if is_list else value
        return check(value, self if self.writes(name) else None, {name}) if value else value

    def check_stream(self, name, value, check, others):
        if name == "folder" and value:
            value = check(value)
        path = self.stream_path({**others, name: value})
        if path:
            check(path, self if self.writes(name) else None, {"stream", "folder"})
        return value

    def set(self, values, state, check_path=None):
        """values: by name, of JSON. check_path: of paths, with what writes them; None: they are known. Returns: the values before"""
        self.release(state)
        new = {}
        for name, value in values.items():
            if name not in self.properties:
                raise Refusal(404, f"{self.name} has no property {name}.")
            reason = self.reason(name, state)
            if reason:
                raise Refusal(403, f"{self.name}.{name}: {reason}")
            try:
                new[name] = self.check(name, value, check_path, values)
            except Refusal as refusal:
                if refusal.status == 422:
                    self.rejected[name] = {"value": value, "text": str(refusal)}
                raise
        before = {name: self.wanted(name) for name in new}
        if self.awaits_caps(state):
            self.hold(values, new)
        else:
            self.put(new, state)
        return before

    def put(self, new, state):
        before = {name: self.get(name) for name in new}
        self.apply(new)
        for name, value in new.items():
            self.check_array(name, value)
            self.rejected.pop(name, None)
        if state == "stopped" and trial.can_be_tried(self):
            self.try_out(before)

    def awaits_caps(self, state):
        """Whether it has yet to start. A value that it then refuses ends the pipeline; later it goes on with the settings before"""
        pads = [pad for pad in self.element.sinkpads if pad.is_linked()]
        return self.ours and bool(self.element.srcpads) and state in ("playing", "paused", "changing") and \
            not all(pad.get_current_caps() for pad in pads)

    def hold(self, values, new):
        for name, value in new.items():
            self.held.pop(name, None)
            self.rejected.pop(name, None)
            if values[name] != self.get(name):
                self.held[name] = values[name], value
                self.rejected[name] = {"value": values[name], "text": f"{self.name} has no input yet: the value is set with its first frame."}

    def release(self, state):
        """Sets what waits, as soon as it can be set."""
        if self.held and not self.awaits_caps(state):
            held, self.held = self.held, {}
            try:
                self.put({name: value for name, (_told, value) in held.items()}, state)
            except Refusal as refusal:  # nobody waits for an answer
                self.rejected.update({name: {"value": told, "text": str(refusal)} for name, (told, _value) in held.items()})

    def wanted(self, name):
        """Returns: the value, also of a property whose value waits"""
        return self.held[name][0] if name in self.held else self.get(name)

    def check_array(self, name, value):
        """Of an element that is not ours nobody knows the type of the items, and it ignores others without a word."""
        if not self.properties[name].get("others") or self.properties[name]["type"] != "array":
            return
        now = self.get(name)
        if now is None:  # it cannot be read
            return
        if len(now) != len(value) or not all(math.isclose(float(a), b, rel_tol=1e-5) for a, b in zip(now, value)):
            raise Refusal(422, f"{self.name} did not take {name} {value!r}: it is still {now!r}.")

    def remember_caps(self):
        """Of its input: those of the next start, most likely"""
        caps = [pad.get_current_caps() for pad in self.element.sinkpads]
        if len(caps) == 1 and caps[0]:
            self.caps = caps[0]

    def try_out(self, before):
        """In a pipeline that is stopped. Values that the element would refuse stay, for another setting may make them fit."""
        text = trial.sentence(self.Gst, self, {})
        if not text:  # values that were out of range stay marked
            self.rejected = {name: told for name, told in self.rejected.items() if told["value"] != self.get(name)}
            return
        known = {}
        for name, value in before.items():
            with contextlib.suppress(Refusal):  # such as an array that was empty
                known[name] = from_json(self.properties[name], value)
        if text != trial.sentence(self.Gst, self, known):  # not a fault that was there before
            self.rejected.update({name: {"value": self.get(name), "text": text} for name in before})

    def check(self, name, value, check_path=None, others=()):
        """Returns: the value of a property as apply() takes it. others: what is set together with it, by name"""
        if check_path:
            value = self.check_paths(name, value, check_path, dict(others))
        value = from_json(self.properties[name], value)
        self.check_syntax(name, value)
        return value

    def check_syntax(self, name, value):
        """Caps and structures are texts of which GStreamer only logs that they are wrong."""
        kind = self.element.find_property(name).value_type.name
        if (kind == "GstCaps" and not self.Gst.Caps.from_string(value)) or \
                (kind == "GstStructure" and value and not self.Gst.Structure.from_string(value)[0]):
            raise Refusal(422, f"{name} cannot be read: {value!r}.")

    def apply(self, new, element=None):
        """element: another one of its kind, in its place"""
        element = element or self.element
        if len(new) > 1 and self.ours and not any(self.properties[name].get("others") for name in new):
            gvalue.set_together(element, [in_structure(self.properties[name], value) for name, value in new.items()])
            return
        for name, value in new.items():
            described = self.properties[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if described["type"] in ("string", "path"):
                    element.set_property(name, value)
                elif described["type"] in ("fraction", "array", "paths"):
                    gvalue.set_one(element, *in_structure(described, value))
                else:
                    self.Gst.util_set_object_arg(element, name, as_text(described, value))

    def call(self, name, arguments, check):
        action = next((a for a in self.actions if a["name"] == name), None)
        if not action:
            raise Refusal(404, f"{self.name} has no action {name}.")
        if not isinstance(arguments, list) or len(arguments) != len(action["arguments"]):
            raise Refusal(400, f'{name} takes {len(action["arguments"])} arguments: '
                               f'{", ".join(a["name"] for a in action["arguments"]) or "none"}.')
        given = []
        for argument, value in zip(action["arguments"], arguments):
            if argument["type"] == "path":
                given.append(check(value, self, action["files"]) if value else None)
            elif argument["type"] == "int" and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2 ** 31):
                raise Refusal(400, f'{argument["name"]} is a whole number from 0 on, not {value!r}.')
            elif argument["type"] == "double" and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise Refusal(400, f'{argument["name"]} is a number, not {value!r}.')
            elif argument["type"] == "string" and not isinstance(value, str):
                raise Refusal(400, f'{argument["name"]} is a text, not {value!r}.')
            else:
                given.append(value)
        return self.element.emit(name, *given)
