# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the header of one file tells, and that of another does not."""
from . import library

# Cards that change how samples are shown or where they lie, and the format that can say so: elsewhere they are a text at most.
MEANINGS = {"PhotometricInterpretation": "TIFF", "gAMA": "PNG", "tRNS": "PNG", "dataWindow": None, "displayWindow": None}


def find_lost(before, after, kept, output):
    """Returns: keys of cards that are not in the output, neither as such nor in the text of one of its cards. FITS has keys in
    capital letters, and cuts long comments."""
    form = library.format_of(output)
    cards = {(key.lower(), value) for key, value in after}
    text = "\n".join(f"{key}={value}" for key, value in after).lower()
    comments = "".join(value for key, value in after if key in ("COMMENT", "HISTORY")).replace(" ", "")

    def is_there(key, value):
        return key in kept or (key.lower(), value) in cards or f"{key}={value}".lower() in text or (
            key.upper() in ("COMMENT", "HISTORY") and value.replace(" ", "") in comments)

    return [key for key, value in before if (MEANINGS[key] != form if key in MEANINGS else not is_there(key, value))]


def lost_step(cards, told, output):
    """Returns: the step between pages in a description of OME or ImageJ that is not told of the output: pages of several channels
    or times have none of their own"""
    text = dict(cards).get("ImageDescription", "")
    key = "PhysicalSizeZ" if "PhysicalSizeZ=" in text else "spacing" if text.startswith("ImageJ=") and "\nspacing=" in text else None
    return [key] if key and "axis-2-name" not in told and library.format_of(output) != "TIFF" else []


def kept_elsewhere(told, has_sidecar, after):
    """after: cards of the output. Returns: keys of cards whose contents its .json or its OME-XML has, where they tell this"""
    lengths = any(told.get(f"axis-{axis}-unit") in ("nm", "um", "mm", "m") for axis in range(2))
    kept = {"XResolution", "YResolution", "ResolutionUnit"} if lengths and any(key == "CDELT1" for key, _value in after) else set()
    if not has_sidecar and not any("gst-imaging/quantity" in value for _key, value in after):
        return kept
    kept |= set(told) | {"quantity"}
    if "unit" in told:
        kept |= {"BUNIT", "QNAME", "QUNIT", "QSCALE", "QOFFSET"}
    for axis in range(4):
        if f"axis-{axis}-name" in told:
            kept |= {f"{key}{axis + 1}" for key in ("CTYPE", "CUNIT", "CDELT", "CRVAL", "CRPIX")}
    return kept
