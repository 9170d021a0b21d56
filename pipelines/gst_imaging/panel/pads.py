# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pads of a pipeline whose frames are pictures."""
from . import bits

PICTURES = ("video/x-raw", "other/tensors", "application/x-slc")


def describe(element, pad, caps, structure):
    is_filter = element.inherits("GstImagingFilter")  # makes a frame of each
    told = {"pad": f"{element.name}.{pad.get_name()}", "element": element.name, "caps": caps.to_string() if caps else None,
            "width": None, "height": None, "framerate": None, "counts": element.counts_frames(),
            "passes": is_filter or element.inherits("GstImagingFileSrc"), "bit-depth": bits.of_pad(pad, is_filter)}
    if caps and structure.get_name() == "other/tensors":
        words = structure.get_string("dimensions") or ""
        dims = [int(word) for word in words.replace(",", ":").split(":") if word.isdigit()]
        if len(dims) > 2 and dims[0] <= 4 and dims[2] > 1:
            dims = dims[1:]
        told["width"], told["height"] = (dims + [1, 1])[:2]
    elif caps:  # of lines that come in blocks the height is not known
        for name in "width", "height":
            found, value = structure.get_int(name)
            told[name] = value if found else None
    found, rate, unit = structure.get_fraction("framerate") if caps else (False, 0, 0)
    told["framerate"] = rate / unit if found and unit and rate else None
    return told


def of(elements):
    """Returns: the pads with pictures, as the state tells them"""
    found = []
    for element in elements:
        for pad in element.element.srcpads:
            caps = pad.get_current_caps() or (pad.get_pad_template().get_caps() if pad.get_pad_template() else None)
            if not caps or caps.is_any() or caps.is_empty() or pad.get_name() in ("results", "sets"):
                continue
            structure = caps.get_structure(0)
            if structure.get_name() not in PICTURES:
                continue
            found.append(describe(element, pad, pad.get_current_caps(), structure))
    return found


def has_flags(pad):
    """Whether frames have a second tensor, which picturesink writes to a file of its own; also where that is not known yet."""
    caps = pad.get_current_caps()
    return not caps or caps.get_structure(0).get_int("num_tensors")[1] > 1
