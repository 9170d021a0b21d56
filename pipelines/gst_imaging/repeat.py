# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the pipeline of a sidecar again: the same sources, settings and changes of settings."""
import contextlib
import hashlib
import os

from . import play
from .command import NO_RESULT, UNREADABLE, Failure


def check_source(source, folder):
    """Is this the file of the recording, and the one beside it that tells its layout? A folder or a pattern has neither size
    nor hash."""
    path = source["location"]
    if "settings" in source:
        check_source(source["settings"], folder)
    if "size" not in source:
        return
    if not os.path.exists(path):
        path = os.path.join(folder, os.path.basename(path))
    if not os.path.exists(path):
        raise Failure(UNREADABLE, f'The source {source["location"]} is not there, nor in the folder of the file.')
    same = os.path.getsize(path) == source["size"]
    if same and "sha256" in source:
        with open(path, "rb") as file:
            digest = hashlib.sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
        same = digest.hexdigest() == source["sha256"]
    if not same:
        raise Failure(UNREADABLE, f"{path} is not the file that was recorded from: its size or content is another.")


# What makes the same frames again, without a file.
GENERATORS = {"videotestsrc", "audiotestsrc"}


def check_sources(told, folder):
    factories = {element["name"]: element["element"] for element in told["elements"]}
    for source in told["sources"]:
        if source["kind"] == "generated" and factories.get(source["element"]) not in GENERATORS:
            raise Failure(UNREADABLE, f'The frames came from {factories.get(source["element"])}, which cannot play them again.')
        if source["kind"] == "live":
            raise Failure(UNREADABLE, f'The frames came live from {source["element"]} and cannot be repeated.'
                                      " Record its frames with picturesink, and verify what is made of that file.")
        if source["kind"] == "file":
            check_source(source, folder)


@contextlib.contextmanager
def working_folder(told, folder):
    """Where the paths of the pipeline count from: as when it was recorded, or beside the file when all has moved."""
    before = os.getcwd()
    there = told.get("folder", "")
    moved = [source for source in told["sources"] if source["kind"] == "file" and not os.path.exists(source["location"])]
    os.chdir(there if os.path.isdir(there) and not moved else folder)
    try:
        yield
    finally:
        os.chdir(before)


def is_chain(element):
    while len(element.sinkpads) == 1 and element.sinkpads[0].get_peer():
        element = element.sinkpads[0].get_peer().get_parent_element()
    return not element.sinkpads


def elements_of(told, pipeline, sink):
    """Returns: for each name in the sidecar the element; a chain without names has others than in the recording"""
    names = [element["name"] for element in told["elements"]]
    if not is_chain(sink):
        return {**{name: pipeline.get_by_name(name) for name in names}, names[-1]: sink}
    chain = [sink]
    while chain[0].sinkpads:
        chain.insert(0, chain[0].sinkpads[0].get_peer().get_parent_element())
    return dict(zip(names, chain))


def is_own_change(told, change):
    """shcentroid itself sets map-location to the file of the grid that it found."""
    if change["property"] != "map-location" or not change["value"]:
        return False
    of_element = [other["value"] for other in told["changes"]
                  if other["element"] == change["element"] and other["property"] == "find-grid-location"]
    of_element += [element["settings"].get("find-grid-location") for element in told["elements"]
                   if element["name"] == change["element"] and isinstance(element.get("settings"), dict)]
    return change["value"] in of_element


class Changes:
    """Sets each property that changed in the thread of the frame from which on it counted.

    An element that makes one image of several frames gives it the metadata of the first or of the last of them. So a
    change counts from the frame with the number of the image, or from the first one after the image before
    (`is_after`).
    """

    def __init__(self, Gst, told, elements, is_after, folder):
        self.Gst = Gst
        self.by_time = "pts" in told and None not in told["pts"]
        numbers = told["pts" if self.by_time else "frame-numbers"]
        start = told["frames"] - len(numbers) + told["first"]
        waiting = {}
        for change in told["changes"]:
            index = change["frame"] - start
            place = numbers[index - 1] if is_after and index > 0 else numbers[index]
            name, value = change["property"], change["value"]
            if is_own_change(told, change):
                continue
            if value and is_written(elements[change["element"]], name):
                value = redirect(change["element"], value, folder)
            waiting.setdefault(change["element"], []).append((place, name, value))
        for name, changes in waiting.items():
            element = elements[name]
            pad = element.sinkpads[0] if element.sinkpads else element.srcpads[0]
            state = {"count": 0, "changes": changes}
            pad.add_probe(Gst.PadProbeType.BUFFER, self.on_buffer, state, is_after)

    def on_buffer(self, pad, info, state, is_after):
        buffer, element = info.get_buffer(), pad.get_parent_element()
        number = buffer.pts if self.by_time else buffer.offset
        if number == self.Gst.BUFFER_OFFSET_NONE:  # or no time, which is the same number
            number = state["count"]
        state["count"] += 1
        while state["changes"] and (number > state["changes"][0][0] if is_after else number >= state["changes"][0][0]):
            _place, name, value = state["changes"].pop(0)
            if value is None:
                element.set_property(name, element.find_property(name).default_value)
            else:
                self.Gst.util_set_object_arg(element, name, value)
        return self.Gst.PadProbeReturn.OK


def keep_recorded(Gst, told, sink):
    """A recording that was attached to a running pipeline, or lies behind a leaky queue, has some of its frames: the others are
    dropped again."""
    by_time = "pts" in told and None not in told["pts"]
    wanted = set(told["pts" if by_time else "frame-numbers"])

    def on_buffer(_pad, info):
        buffer = info.get_buffer()
        return Gst.PadProbeReturn.OK if (buffer.pts if by_time else buffer.offset) in wanted else Gst.PadProbeReturn.DROP

    sink.sinkpads[0].add_probe(Gst.PadProbeType.BUFFER, on_buffer)


def choose_backends(told, elements, devices):
    """The recorded ones; the CPU where there is no GPU."""
    for element in told["elements"]:
        if "active-backend" in element:
            elements[element["name"]].set_property("backend", element["active-backend"] if devices else "cpu")


# Files that elements write beside their pads; a test holds this against the properties of all elements.
WRITTEN = {
    "insarform": ("amplitude-location", "coherence-location", "interferogram-location", "phase-location", "removed-location"),
    "insarxcorr": ("offsets-location",),
    "normalintegrate": ("mesh-location",),
    "shcentroid": ("find-grid-location",),
    "spherelights": ("location",),
}


def is_written(element, setting):
    return setting in WRITTEN.get(element.get_factory().get_name(), ())


def redirect(name, path, folder):
    """Returns: where the element of this name writes instead of to the path of the recording"""
    return os.path.join(folder, f"{name}-{os.path.basename(path)}")


def find_sources(told, elements, folder):
    """A source that has moved with the file lies beside it."""
    found = {}
    for source in told["sources"]:
        if source.get("location"):
            path, beside = source["location"], os.path.join(folder, os.path.basename(source["location"]))
            moved = not os.path.exists(path) and os.path.exists(beside)
            found.setdefault(source["element"], []).append((beside if moved else path, moved))
    for name, files in found.items():
        if len(files) == 1 and files[0][1]:
            elements[name].set_property("location", files[0][0])
        elif any(moved for _path, moved in files):
            play.set_list(elements[name], "locations", [path for path, _moved in files])


def keep_files(elements, folder):
    """Files of the recording stay as they are: what an element writes goes to another folder."""
    for name, element in elements.items():
        for setting in WRITTEN.get(element.get_factory().get_name(), ()):
            if element.get_property(setting):
                element.set_property(setting, redirect(name, element.get_property(setting), folder))


def run(Gst, told, folder, location, devices, is_after):
    """Returns: the sidecar of the new file"""
    from gi.repository import GLib
    from . import metadata

    try:
        pipeline = Gst.parse_launch(told["pipeline"])
    except GLib.Error as error:
        raise Failure(NO_RESULT, f"The pipeline of the sidecar cannot be made here: {error.message}") from error
    elements = pipeline.children if isinstance(pipeline, Gst.Pipeline) else []
    sinks = [e for e in elements if not e.srcpads]
    if [e.get_factory().get_name() for e in sinks] != ["picturesink"] or any(isinstance(e, Gst.Bin) for e in elements):
        raise Failure(UNREADABLE, "The pipeline of the sidecar does not end in one picturesink: it was not written by one.")
    sink = sinks[0]
    sink.set_property("location", location)
    sink.set_property("append", False)
    sink.set_property("sidecar", "always")
    sink.set_property("max-frames", told["frames"])
    elements = elements_of(told, pipeline, sink)
    if any(not elements.get(element["name"]) for element in told["elements"]):
        raise Failure(UNREADABLE, "The pipeline of the sidecar has other elements than those that the sidecar lists.")
    choose_backends(told, elements, devices)
    find_sources(told, elements, folder)
    keep_files(elements, os.path.dirname(location))
    Changes(Gst, told, elements, is_after, os.path.dirname(location))
    for element in elements.values():
        if element.get_factory().get_name() == "queue":
            Gst.util_set_object_arg(element, "leaky", "no")
    is_late = (told["frame-numbers"] or [0])[0]  # nothing counts as missing before the first frame
    if told.get("attached") or told.get("frames-missing") or is_late:
        keep_recorded(Gst, told, sink)
    try:
        play.play(pipeline)
    except Failure as failure:
        raise Failure(NO_RESULT, str(failure)) from failure
    return metadata.sidecar(location)
