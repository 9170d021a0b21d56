# SPDX-License-Identifier: LGPL-2.1-or-later
"""Presets: the settings of the elements of gst-imaging under a name, in a file of the user for each pipeline."""
import hashlib
import json
import os
import re

from .refusal import Refusal


def store(key):
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "gst-imaging", "panel", hashlib.sha256(key.encode()).hexdigest()[:16] + ".json")


class Presets:
    def __init__(self, key):
        self.path = store(key)
        try:
            with open(self.path, encoding="utf-8") as file:
                self.all = json.load(file)
        except (OSError, ValueError):
            self.all = {}

    def names(self):
        return sorted(self.all)

    def get(self, name):
        if name not in self.all:
            raise Refusal(404, f'There is no preset "{name}".')
        return self.all[name]

    def write(self):
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump(self.all, file, indent=1)
            os.replace(self.path + ".new", self.path)
        except OSError as error:
            raise Refusal(422, f"{self.path} cannot be written: {error.strerror}.") from error

    def save(self, name, values):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9 _-]{1,64}", name):
            raise Refusal(400, "The name of a preset has 1 to 64 letters, digits, blanks, _ and -.")
        if len(self.all) >= 200 and name not in self.all:
            raise Refusal(409, "There are 200 presets. Delete one first.")
        self.all[name] = values
        self.write()

    def delete(self, name):
        self.get(name)
        del self.all[name]
        self.write()


def compare(a, b):
    """Returns: what differs; values by element and property"""
    places = sorted({(e, p) for values in (a, b) for e, properties in values.items() for p in properties})
    found = [{"element": e, "property": p, "a": a.get(e, {}).get(p), "b": b.get(e, {}).get(p)} for e, p in places]
    return [entry for entry in found if entry["a"] != entry["b"]]
