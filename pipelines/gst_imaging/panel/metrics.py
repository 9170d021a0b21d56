# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of elements in the text format of Prometheus."""
import re

from .health import label


def unit_of(name, message):
    """Of a column of a summary, which is one of the results, or has its name at its end: mean-dx. rms is that of dx and dy."""
    units = dict(zip(message["fields"], message["unit"] or ()))
    ends = [field for field in units if name == field or name.endswith("-" + field)]
    return units[ends[0]] if ends else units.get("dx", "") if name == "rms" else ""


def prometheus(found):
    """found: as Followers.scrape() returns it"""
    columns = {}
    for element, (message, spread) in found.items():
        for name, value in message["summary"].items():
            if value is not None:
                columns.setdefault(name, []).append((element, message, value, spread.columns.get(name)))
    lines = []
    for name, entries in sorted(columns.items()):
        metric = "gst_imaging_result_" + re.sub("[^A-Za-z0-9_]", "_", name)
        units = {unit_of(name, message) for _element, message, _value, _spread in entries}
        unit = f" in {', '.join(sorted(filter(None, units)))}" if any(units) else ""
        rows = {"": ("of the newest frame", lambda value, _spread: value),
                "_minimum": ("the smallest since the last reading of this page", lambda _value, spread: spread and spread[0]),
                "_maximum": ("the largest since the last reading of this page", lambda _value, spread: spread and spread[2])}
        for end, (what, pick) in rows.items():
            told = [(element, message, pick(value, spread)) for element, message, value, spread in entries]
            told = [entry for entry in told if entry[2] is not None]
            if told:
                lines += [f"# HELP {metric}{end} {name}{unit}, {what}.", f"# TYPE {metric}{end} gauge"]
                lines += [f'{metric}{end}{{element="{label(element)}",results="{label(message["id"])}"}} {value:.9g}' for element, message, value in told]
    return "".join(line + "\n" for line in lines)
