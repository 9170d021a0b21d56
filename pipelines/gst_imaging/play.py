# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plays a pipeline to its end: its warnings and errors as sentences, its progress, and the settings that were used.

gst-launch-1.0 1.22 sometimes waits for ever when an error comes before it plays; commands run in other people's scripts,
and do not.
"""
import contextlib
import ctypes
import difflib
import json
import os
import re
import sys
import threading
import traceback
import warnings

from . import library
from .command import NO_RESULT, NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure, explain
from .publish import told

OURS = "gst-imaging"  # the package of our plug-ins


def quote(word):
    """Returns: a word as it is written in a pipeline; a value may have any characters."""
    name, equals, value = word.partition("=")
    return name + equals + (re.sub(r"""([\\"' \t])""", r"\\\1", value) or '""' * bool(equals))


def parse(words):
    """words: an argument of gst-launch-1.0 each, without quotes. Returns: the pipeline"""
    Gst = library.gstreamer()
    from gi.repository import GLib

    check_numbers(Gst, words)
    # a value that a property does not take is only warned of, and the default would be used
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            pipeline = Gst.parse_launch(" ".join(map(quote, words)))
        except GLib.Error as error:
            if not all(word.isprintable() for word in words):
                raise untold(words, "has a line break or another control character, which the text of a pipeline cannot hold") from None
            raise Failure(WRONG_USE, taken(Gst, error.message) or error.message + meant(Gst, words, error.message)) from None
        except UnicodeEncodeError as error:
            raise untold(words, "is not UTF-8, which GStreamer needs") from error
    if said:
        raise Failure(WRONG_USE, range_of(pipeline, str(said[0].message)) or f"The {said[0].message}.")
    return pipeline


def check_number(element, name, text):
    """Fails for a whole number beyond the range of a property, of which GStreamer takes the lowest 32 bits, and for no text in the
    place of a number, which it takes for 0"""
    if not text and what_it_takes(element, name):
        raise Failure(WRONG_USE, f"{name} is empty, and {what_it_takes(element, name)}.")
    try:
        value = int(text, 0)
    except ValueError:
        return
    about = descriptions(element).get(name, {})
    if "minimum" in about and "maximum" in about and not about["minimum"] <= value <= about["maximum"]:
        raise Failure(WRONG_USE, f"{name} is {value}, and goes from {about['minimum']:.10g} to {about['maximum']:.10g}.")


def check_numbers(Gst, words):
    """check_number() of all properties of our elements in a pipeline"""
    name = None
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            name = word if Gst.ElementFactory.find(word) else name
        elif name and (not value or re.fullmatch("[-+]?(0x[0-9a-fA-F]{8,}|[0-9]{10,})", value)):
            element = Gst.ElementFactory.make(name)
            if element and is_ours(element):
                check_number(element, key, value)


def untold(words, why):
    """Returns: the Failure for a name that is not printable"""
    word = next(word for word in words if not word.isprintable()).encode(errors="replace").decode()
    shown = "".join(letter if letter.isprintable() else "?" for letter in word)
    return Failure(WRONG_USE, f'"{told(shown)}" {why}. Rename the file or the folder.')


def meant(Gst, words, sentence):
    """Returns: a question for a sentence of GStreamer on a property that is not there; empty where nothing is like it"""
    wrong = re.search(r'no property "(.+?)"', sentence)
    elements = [Gst.ElementFactory.make(word) for word in words if Gst.ElementFactory.find(word)] if wrong else []
    names = {p.name for element in elements if element for p in element.list_properties()}
    like = difflib.get_close_matches(wrong[1], sorted(names), 1) if wrong else []
    return f'; did you mean "{like[0]}"?' if like else ""


def taken(Gst, sentence):
    """Returns: GStreamer's sentence about a text that a property of ours does not take, with what it takes; None of others"""
    found = re.match('could not set property "(.+?)" in element "(.+?)" to "(.*)"', sentence, re.DOTALL)
    element = Gst.ElementFactory.make(found[2]) if found else None
    takes = what_it_takes(element, found[1]) if element else None
    return takes and f'{found[1]} is "{found[3]}", and {takes}.'


def what_it_takes(element, name):
    """Returns: the range or the values of a property of ours; None of texts and others"""
    about = descriptions(element).get(name, {}) if is_ours(element) else {}
    if "values" in about:
        return f"is one of {', '.join(value['nick'] for value in about['values'])}"
    if "minimum" in about and "maximum" in about:
        return f"goes from {about['minimum']:.10g} to {about['maximum']:.10g}"
    return None


def range_of(pipeline, sentence):
    """Returns: GLib's sentence about a number that a property does not take, with the numbers that it takes; None of others"""
    found = re.match("""value "(.*)" of type '.*' is invalid or out of range for property '(.*)' of""", sentence)
    if not found:
        return None
    try:
        value = float(found[1])
        text = f"{value:.10g}"
    except ValueError:  # a list of numbers
        value, text = None, found[1]
    takes = (what_it_takes(element, found[2]) for element in elements_of(pipeline) if not is_in_range(element, found[2], value))
    return next((f"{found[2]} is {text}, and {what}." for what in takes if what), None)


def is_in_range(element, name, value):
    """May a property of ours have this number? Another element may have one of that name"""
    about = descriptions(element).get(name, {}) if is_ours(element) else {}
    return value is not None and "minimum" in about and about["minimum"] <= value <= about["maximum"]


def set_list(element, name, values):
    """Sets a property that is an array of strings, as picturesrc's locations."""
    escaped = (str(value).replace("\\", "\\\\").replace('"', '\\"') for value in values)
    library.gstreamer().util_set_object_arg(element, name, "<" + ", ".join(f'"{value}"' for value in escaped) + ">")


def is_ours(element):
    factory = element.get_factory() if hasattr(element, "get_factory") else None
    plugin = factory and factory.get_plugin()
    return bool(plugin) and plugin.get_package() == OURS


def describe_error(message):
    """Returns: the sentence of an error, and what GStreamer says beside it: of its own elements that is the cause."""
    error, debug = message.parse_error()
    if is_ours(message.src):
        return error.message
    location = message.src.get_property("location") if message.src.find_property("location") else None
    beside = [part for part in (debug or "").split("\n")[1:] if part]
    if isinstance(location, str) and not any(location in part for part in (error.message, *beside)):
        beside.append(told(location))
    return f"{error.message} ({'; '.join(beside)})" if beside else error.message


def code_of(message):
    """Returns: the exit code of an error"""
    Gst = library.gstreamer()
    error, _debug = message.parse_error()
    if isinstance(message.src, Gst.Element):  # an element that has pads on request may have none now
        directions = {template.direction for template in message.src.get_pad_template_list()}
        if Gst.PadDirection.SRC not in directions:
            return NOT_WRITTEN
        if Gst.PadDirection.SINK not in directions:
            return UNREADABLE
    codes = {Gst.ResourceError.SETTINGS: WRONG_USE, Gst.ResourceError.NOT_FOUND: UNREADABLE,
             Gst.ResourceError.OPEN_READ: UNREADABLE, Gst.ResourceError.READ: UNREADABLE,
             Gst.ResourceError.OPEN_WRITE: NOT_WRITTEN, Gst.ResourceError.WRITE: NOT_WRITTEN,
             Gst.ResourceError.NO_SPACE_LEFT: NOT_WRITTEN}
    for known, code in codes.items():
        if error.matches(Gst.ResourceError.quark(), int(known)):
            return code
    return NO_RESULT


def elements_of(pipeline):
    return pipeline.children if isinstance(pipeline, library.gstreamer().Pipeline) else [pipeline]


def part_done(pipeline):
    """Returns: how much of its files the first source has played, 0 to 1"""
    Gst = library.gstreamer()
    for source in (element for element in elements_of(pipeline) if not element.sinkpads):
        known, duration = source.query_duration(Gst.Format.TIME)
        placed, position = source.query_position(Gst.Format.TIME)
        if known and placed and duration > 0:
            return min(position / duration, 1)
    return 0


def end(pipeline, seconds):
    """Stops it, but waits no longer: what is measured just now may take its time."""
    Gst = library.gstreamer()
    thread = threading.Thread(target=pipeline.set_state, args=(Gst.State.NULL,), daemon=True)
    thread.start()
    thread.join(seconds)


def backends_of(pipeline):
    """Returns: for each of our elements that has one the backend in use"""
    return {element.get_factory().get_name(): getattr(element.get_property("active-backend"), "value_nick",
                                                      element.get_property("active-backend"))
            for element in elements_of(pipeline) if is_ours(element) and element.find_property("active-backend")}


def caps_of(words):
    """Returns: the structure of the caps that a source has, from its words"""
    Gst = library.gstreamer()
    pipeline = parse([*words, "!", "fakesink", "name=sink"])
    bus, types = pipeline.get_bus(), Gst.MessageType
    pipeline.set_state(Gst.State.PAUSED)
    try:
        message = None
        while not message:  # Python sees a signal only in between
            message = bus.timed_pop_filtered(100 * Gst.MSECOND, types.ASYNC_DONE | types.ERROR)
        if message.type == types.ERROR:
            raise Failure(UNREADABLE, describe_error(message))
        return pipeline.get_by_name("sink").get_static_pad("sink").get_current_caps().get_structure(0)
    finally:
        pipeline.set_state(Gst.State.NULL)


@contextlib.contextmanager
def callbacks_watched():
    """PyGObject prints the exception of a callback, such as a probe, and the pipeline plays on. Gives: the list of them, as Failure"""
    raised, before = [], sys.excepthook

    def take(kind, error, trace):
        if isinstance(error, Failure):
            raised.append(error)
        elif isinstance(error, OSError):
            raised.append(Failure(*explain(error)))
        elif isinstance(error, Exception):
            place = traceback.extract_tb(trace)[-1]
            raised.append(Failure(NO_RESULT, f"A frame cannot be processed, which is an error in this command: {kind.__name__}: {error}"
                                             f" ({os.path.basename(place.filename)}, line {place.lineno}). Please report it."))
        else:
            before(kind, error, trace)

    sys.excepthook = take
    try:
        yield raised
    finally:
        sys.excepthook = before


def play(pipeline, take_warning=None, take_message=None, progress=None, count=part_done, at_end=None):
    """Plays a pipeline (of parse()) to its end, and stops it.

    take_warning gets the sentence of each warning, take_message the structure of each element message. progress is a
    Progress, which counts what count(pipeline) returns, 0 to 1. at_end is called while it still plays, if
    an exception ends it, also a signal. An error, also of a callback, raises Failure. Returns: backends_of() it
    """
    with callbacks_watched() as raised:
        return play_watched(pipeline, take_warning, take_message, progress, count, at_end, raised)


def play_watched(pipeline, take_warning, take_message, progress, count, at_end, raised):
    """raised: list of Failures of callbacks"""
    Gst = library.gstreamer()
    bus, types = pipeline.get_bus(), Gst.MessageType
    finished = False
    try:
        started = pipeline.set_state(Gst.State.PLAYING)  # in here: a signal may end it just then, and it plays
        while True:
            # Python sees a signal only in between
            message = bus.timed_pop_filtered(100 * Gst.MSECOND, types.EOS | types.ERROR | types.WARNING | types.ELEMENT)
            if raised:
                raise raised[0]
            if progress:
                progress.show_part(count(pipeline))
            if not message:
                if started == Gst.StateChangeReturn.FAILURE:
                    raise Failure(NO_RESULT, "The pipeline cannot be started, and does not say why.")
                continue
            if message.type == types.ERROR:
                raise Failure(code_of(message), describe_error(message))
            if message.type == types.EOS:
                break
            if message.type == types.WARNING and take_warning:
                take_warning(message.parse_warning()[0].message)
            elif message.type == types.ELEMENT and take_message:
                take_message(message.get_structure())
        finished = True
        return backends_of(pipeline)
    finally:
        try:
            if at_end and not finished:
                at_end()
        finally:
            end(pipeline, None if finished else 3)


def descriptions(element):
    """Returns: for each property of one of our elements what gst_imaging_settings_describe () says"""
    functions = library.load(library.gstreamer())
    functions.gst_imaging_settings_describe.restype = ctypes.c_void_p
    functions.gst_imaging_settings_describe.argtypes = [ctypes.c_size_t]
    functions.g_free.argtypes = [ctypes.c_void_p]
    text = functions.gst_imaging_settings_describe(hash(element.__gtype__))
    if not text:
        return {}
    try:
        return {entry["name"]: entry for entry in json.loads(ctypes.string_at(text))}
    finally:
        functions.g_free(text)


def text_of(element, name):
    """Returns: the value of a property and its default as texts, None where one has no text"""
    spec = element.find_property(name)
    try:
        value, default = element.get_property(name), spec.default_value
    except (AttributeError, TypeError):  # of a type that PyGObject does not know
        return None, None
    if hasattr(value, "value_nick"):
        return value.value_nick, library.member(value, default).value_nick
    if hasattr(value, "value_nicks"):
        return tuple("+".join(flags.value_nicks) for flags in (value, library.member(value, default)))
    if isinstance(value, (bool, int, float, str, type(None))):
        return tuple("" if v is None else str(v).lower() if isinstance(v, bool) else f"{v:.10g}" if isinstance(v, float) else str(v)
                     for v in (value, default))
    return None, None


def settings_of(pipeline):
    """Generates (element, property, value, default, unit) for what is not the default in our elements."""
    for element in sorted(elements_of(pipeline), key=lambda element: element.get_name()):
        if not is_ours(element):
            continue
        about = descriptions(element)
        for spec in element.list_properties():
            if spec.name in ("name", "parent", "settings") or spec.name not in about or about[spec.name]["when"] == "read":
                continue
            value, default = text_of(element, spec.name)
            if value != default:
                yield element.get_factory().get_name(), spec.name, value, default, about[spec.name].get("unit", "")
