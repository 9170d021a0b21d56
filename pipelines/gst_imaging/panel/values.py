# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values of properties as JSON, and back as the text that GStreamer reads."""
import math

from .refusal import Refusal

NUMBERS = {"int", "uint64", "double"}


def type_name(pspec):
    """Of an element that is not ours."""
    name = pspec.value_type.name
    if pspec.value_type.is_a("GEnum"):
        return "enum"
    if pspec.value_type.is_a("GFlags"):
        return "flags"
    return {"gboolean": "boolean", "gint": "int", "guint": "int", "glong": "int", "gulong": "uint64", "gint64": "int",
            "guint64": "uint64", "gfloat": "double", "gdouble": "double", "gchararray": "string",
            "GstFraction": "fraction", "GstStructure": "structure", "GstValueArray": "array"}.get(name, "other")


def number(value):
    """JSON has no infinities."""
    return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def to_json(kind, value):
    if value is None:
        return None
    if kind == "boolean":
        return bool(value)
    if kind in ("int", "uint64"):
        return int(value)
    if kind == "double":
        return number(float(value))
    if kind == "enum":
        return value if isinstance(value, str) else value.value_nick
    if kind == "flags":
        return "+".join(value.value_nicks)
    if kind == "fraction":
        return f"{value.num}/{value.denom}" if hasattr(value, "num") else str(value)
    if kind == "array":
        return [to_json("double" if isinstance(item, float) else "int" if isinstance(item, int) else "string", item) for item in value]
    if hasattr(value, "to_string"):
        return value.to_string()
    return str(value)


def check_number(name, kind, value, described):
    if isinstance(value, str) and value in ("inf", "-inf", "nan") and kind == "double":
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (kind != "double" and value != int(value)):
        raise Refusal(400, f"{name} is {'a number' if kind == 'double' else 'a whole number'}, not {value!r}.")
    low, high = described.get("minimum"), described.get("maximum")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise Refusal(422, f"{name} {value} is beyond its range {low} to {high}.")
    return value if kind == "double" else int(value)


def from_json(described, value):
    """Returns: the value as text for GStreamer"""
    name, kind = described["name"], described["type"]
    if kind in NUMBERS:
        return repr(check_number(name, kind, value, described))
    if kind == "boolean":
        if not isinstance(value, bool):
            raise Refusal(400, f"{name} is true or false, not {value!r}.")
        return "true" if value else "false"
    if kind == "array":
        if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, (int, float)) for item in value):
            raise Refusal(400, f"{name} is a list of numbers, not {value!r}.")
        return "<" + ", ".join(repr(item) for item in value) + ">"
    if not isinstance(value, str) or "\0" in value:
        raise Refusal(400, f"{name} is a text, not {value!r}.")
    nicks = [item["nick"] for item in described.get("values") or ()]
    words = [value] if kind == "enum" else [word for word in value.split("+") if word] if kind == "flags" else []
    for word in words:
        if word not in nicks:
            raise Refusal(422, f'{name} "{word}" is none of {", ".join(nicks)}.')
    return value if kind != "flags" or words else "0"


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_structure(described, text):
    """A member of a GstStructure with the type of the property."""
    kind = {"boolean": "boolean", "double": "double", "uint64": "guint64", "fraction": "fraction"}.get(described["type"])
    if described["type"] == "int":
        kind = "int" if described.get("maximum", 0) < 2 ** 31 else "uint"
    return f'{described["name"]}=({kind}){text}' if kind else f'{described["name"]}=(string){quoted(text)}' \
        if described["type"] != "array" else f'{described["name"]}={text}'
