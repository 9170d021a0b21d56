# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values of properties as JSON, and back with their types."""
import math
import re

from .refusal import Refusal

NUMBERS = {"int", "uint64", "double"}
ENDS = {"int": (-2 ** 63, 2 ** 63 - 1), "uint64": (0, 2 ** 64 - 1)}  # of elements that tell no range


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


EXACT = 2 ** 53  # JavaScript rounds whole numbers beyond it


def whole(value):
    """Returns: a number, or its text where a browser would round it"""
    return value if abs(value) <= EXACT else str(value)


def to_json(kind, value):
    if value is None:
        return None
    if kind == "boolean":
        return bool(value)
    if kind in ("int", "uint64"):
        return whole(int(value))
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
    elif kind in ENDS and isinstance(value, str) and re.fullmatch("-?[0-9]{16,20}", value) and abs(int(value)) > EXACT:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or \
            (kind != "double" and isinstance(value, float) and not value.is_integer()):
        raise Refusal(400, f"{name} is {'a number' if kind == 'double' else 'a whole number'}, not {value!r}.")
    low, high = (end if told is None else int(told) if isinstance(told, str) else told
                 for told, end in zip((described.get("minimum"), described.get("maximum")), ENDS.get(kind, (None, None))))
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise Refusal(422, f"{name} {value} is beyond its range {low} to {high}.")
    try:
        return float(value) if kind == "double" else int(value)
    except OverflowError as error:
        raise Refusal(422, f"{name} is beyond the range of a double.") from error


def check_items(name, value, item_types, what):
    if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, item_types) for item in value):
        raise Refusal(400, f"{name} is a list of {what}, not {value!r}.")
    return value


def check_fraction(name, value):
    found = re.fullmatch(r"([0-9]{1,10})/([0-9]{1,10})", value) if isinstance(value, str) else None
    pair = tuple(map(int, found.groups())) if found else (0, 0)
    if pair[1] == 0 or max(pair) >= 2 ** 31:
        raise Refusal(400, f'{name} is a fraction such as "30/1", not {value!r}.')
    return pair


def check_text(name, value):
    if not isinstance(value, str) or "\0" in value:
        raise Refusal(400, f"{name} is a text, not {value!r}.")
    return value


def from_json(described, value):
    """Returns: the value as in_structure() and as_text() take it; of a fraction a pair"""
    name, kind = described["name"], described["type"]
    if kind in NUMBERS:
        return check_number(name, kind, value, described)
    if kind == "boolean":
        if not isinstance(value, bool):
            raise Refusal(400, f"{name} is true or false, not {value!r}.")
        return value
    if kind == "array":  # all items of a GstValueArray have the type of its property, or the property ignores it
        items, numbers = described.get("items"), check_items(name, value, (int, float, str) if described.get("items") == "double" else (int, float), "numbers")
        return [check_number(f"{name}[{i}]", items, item, described) for i, item in enumerate(numbers)] if items else numbers
    if kind == "paths":
        return [check_text(name, item) for item in check_items(name, value, str, "paths")]
    if kind == "fraction":
        return check_fraction(name, value)
    if value is None and kind in ("string", "path"):  # as it is told before it was set
        return ""
    check_text(name, value)
    nicks = [item["nick"] for item in described.get("values") or ()]
    words = [value] if kind == "enum" else [word for word in value.split("+") if word] if kind == "flags" else []
    for word in words:
        if word not in nicks:
            raise Refusal(422, f'{name} "{word}" is none of {", ".join(nicks)}.')
    return value if kind != "flags" or words else "0"


def as_text(described, value):
    """Returns: a value of a property that is set alone, as gst_util_set_object_arg () reads it"""
    return ("true" if value else "false") if described["type"] == "boolean" else str(value)


def in_structure(described, value):
    """Returns: a member of a change of several properties: its name, kind and content"""
    kind = {"boolean": "boolean", "double": "double", "uint64": "uint64", "fraction": "fraction", "array": "array",
            "paths": "array"}.get(described["type"], "string")
    if described["type"] == "int":
        kind = "int" if int(described.get("maximum") or 0) < 2 ** 31 else "uint"
    return described["name"], kind, value


def from_text(kind, text, items=None):
    """text: as gvalue.read() returns it. items: "int" or "double". Returns: a fraction or an array as JSON"""
    if text is None or kind == "fraction":
        return text
    words = re.findall(r'(?:\(\w+\))?("(?:[^"\\]|\\.)*"|[^\s,<>()]+)', text)
    if kind == "paths":
        return [unescape(word) for word in words]
    return [int(word) if items != "double" and re.fullmatch("[+-]?[0-9]+", word) else number(float(word)) for word in words]


def unescape(text):
    """Of a text in a GstValueArray: other characters than those of ASCII are octal numbers of bytes."""
    found = re.sub(rb"\\([0-7]{3}|.)", lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else m[1], text.strip('"').encode())
    return found.decode(errors="replace")
