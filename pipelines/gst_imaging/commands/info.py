# SPDX-License-Identifier: LGPL-2.1-or-later
"""Says what is installed, which hardware it uses, and what is missing; or with FILE what an array or a picture is.

Versions, the instruction set of the processor, CUDA devices, formats of files, and the elements: those that GStreamer
finds, and those that were left out of this build with the library that they need.
"""
import os

from .. import installed, library
from ..command import NO_RESULT, Failure

EXAMPLES = [
    ("", "for a person, or for a report of a problem"),
    ("image.fits", "type, shape and parts of a file"),
    ("--json", "for a program: version, gstreamer, python, cpu, cuda, formats, elements, missing"),
]


def add_arguments(parser):
    parser.add_argument("file", metavar="FILE", nargs="?")
    parser.add_argument("--part", type=int, default=-1, metavar="N", help="the picture of FILE that is told, from 0 on")
    parser.add_argument("--version", action="store_true", help="print only the version")


LONGEST = 200  # letters of a card that people see


def device_line(device):
    memory = "the memory of the CPU" if device["integrated"] else f'{device["memory"] / 2**30:.0f} GiB'
    return f'  {device["id"]}: {device["name"]}, compute {device["compute"]}, {memory}'


def show(result):
    print(f'gst-imaging {result["version"] or "(no plug-in found)"}, GStreamer {result["gstreamer"]},'
          f' Python {result["python"]}')
    cpu, cuda = result["cpu"] or {}, result["cuda"] or {}
    if cpu:
        print(f'CPU: {cpu["threads"]} threads, {cpu.get("level") or cpu.get("reason")}')
    if cuda:
        print("CUDA:", "" if cuda["devices"] else cuda.get("reason", "no device"))
        for device in cuda["devices"]:
            print(device_line(device))
    print(f'Elements: {len(result["elements"])}')
    for name, title in result["elements"].items():
        print(f"  {name:17}{title}")
    print("Formats:")
    for form in result["formats"]:
        use = "read and written" if form["write"] else "read" if form["read"] else f'not built: it needs {form["needs"]}'
        print(f'  {form["name"]:17}{use}')
    for name, about in result["other-formats"].items():
        print(f"  {name:17}{about}")
    if result["missing"]:
        print("Missing:")
    for name, needs in result["missing"].items():
        print(f"  {name:17}" + (f"was not built: it needs {needs}" if needs else "was not found"))


def run_file(options):
    """Of a file whose values are not read"""
    arrays = library.Arrays(options.part)
    name, shape = arrays.kind(options.file)
    parts = arrays.parts(options.file)
    result = {"file": options.file, "type": name, "shape": list(shape), "cards": dict(arrays.cards_of(options.file))}
    if parts:
        result["parts"] = parts.split("; ")
    note, quantities, turned = arrays.about(options.file)
    note = note or arrays.doubt(options.file)
    if turned:
        result["turned"] = turned
    if note:
        result["note"] = note
    if quantities and quantities[0]:
        result["quantity"] = quantity_of(quantities)
    if not options.json:
        print(f'{options.file}: {name}, {" x ".join(map(str, shape)) or "one value"}')
        for line in [*lines_of(result.get("quantity", {})), *([note] if note else []),
                     *([f"turned upright: its EXIF orientation is {turned}"] if turned else [])]:
            print(f"  {printable(line)}")
        for part in result.get("parts", []):
            print(f"  part {part}")
        for key, value in result["cards"].items():
            more = f"... ({len(value)} letters; all with --json)" if len(value) > LONGEST else ""
            print(f"  {printable(key)} = {printable(value[:LONGEST])}{more}")
    return result


def quantity_of(quantities):
    """Returns: that of the first frame as metadata.quantity() has it, with the members that other frames have other numbers of"""
    from .. import metadata

    told = quantities[0]
    quantity = {key: told[key] for key in ("name", "unit", "scale", "offset") if key in told}
    quantity["axes"] = metadata.axes_of(told)
    changes = sorted({key for other in quantities for key in told.keys() | other.keys() if told.get(key) != other.get(key)})
    return {**quantity, "changes": changes} if changes else quantity


def lines_of(quantity):
    """Generates: unit and axes for people"""
    if "unit" in quantity:
        scaled = "" if (quantity.get("scale"), quantity.get("offset")) == (1, 0) else \
            f': {quantity.get("offset"):g} + {quantity.get("scale"):g} * sample'
        yield f'quantity: {quantity.get("name") or "no name"}, {"in " + quantity["unit"] if quantity["unit"] else "without unit"}{scaled}'
    where = ["along a row", "along a column"]
    for i, axis in enumerate(quantity.get("axes", [])):
        if axis:
            yield f'axis {i}{", " + where[i] if i < 2 else ""}: {axis["name"]}, step {axis["step"]:g} {axis["unit"]}, from {axis["origin"]:g}'
    if "changes" in quantity:
        yield f'of the first frame; others differ in {", ".join(quantity["changes"])}'


def printable(text):
    """What a file holds, for a terminal, which takes control characters for commands."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)


def run(options):
    if options.file:
        return run_file(options)
    result = installed.collect()
    if not result["elements"]:
        raise Failure(NO_RESULT, "GStreamer finds no plug-in of gst-imaging. After a build run pipelines/gst-imaging;"
                                 " after an installation set GST_PLUGIN_PATH to"
                                 f" {os.environ.get('GST_IMAGING_PLUGINS', 'the folder of the plug-ins')}, and"
                                 " LD_LIBRARY_PATH to the folder above it, if the prefix is not the system's.")
    if options.version:
        result = {"version": result["version"]}
    if options.json:
        return result
    if options.version:
        print(result["version"])
    else:
        show(result)
    return result
