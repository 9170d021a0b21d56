# SPDX-License-Identifier: LGPL-2.1-or-later
"""How many low bits of a 16-bit sample a camera uses: the largest number of these is a clipped sample."""
import functools
import json
import os
import stat

FAR = 8  # elements to look at


def of_pad(pad, passes):
    """passes: the bit-depth of its element is also that of its output.
    Returns: bits, from the caps, an element that takes the samples, or the sidecar of the file; 0 where nobody knows"""
    caps = pad.get_current_caps()
    found, depth = caps.get_structure(0).get_int("depth") if caps and not caps.is_empty() and not caps.is_any() else (False, 0)
    if found and 8 < depth < 16:
        return depth
    element = pad.get_parent_element()
    factory = element.get_factory()
    if passes and element.find_property("bit-depth") and element.get_property("bit-depth"):
        return element.get_property("bit-depth")
    if factory and factory.get_name() == "picturesrc":
        return taken(pad, FAR) or of_sidecar(element.get_property("location"))
    return taken(pad, FAR)


def taken(pad, far):
    """Returns: bit-depth of the first element behind a pad that has one, and samples"""
    peer = pad.get_peer()
    element = peer.get_parent_element() if peer and far else None
    if not element:
        return 0
    if element.find_property("bit-depth"):
        return element.get_property("bit-depth")
    plugin = element.get_factory() and element.get_factory().get_plugin()
    if plugin and plugin.get_package() == "gst-imaging":  # its output are other samples
        return 0
    return next((bits for src in element.srcpads for bits in [taken(src, far - 1)] if bits), 0)


def of_sidecar(location):
    """Returns: bit-depth of the elements that recorded a file"""
    try:
        found = os.stat(location + ".json") if location else None
        return read_sidecar(location + ".json", found.st_mtime_ns) if found and stat.S_ISREG(found.st_mode) else 0
    except (OSError, UnicodeEncodeError):
        return 0


@functools.lru_cache(64)
def read_sidecar(path, _time):
    try:
        with open(path, encoding="utf-8") as file:
            elements = json.load(file)["elements"]
        found = {int(element["settings"].get("bit-depth", 0)) for element in elements}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0
    return max((bits for bits in found if 8 < bits < 16), default=0)
