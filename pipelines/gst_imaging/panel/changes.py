# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes of settings: one at a time, back, and all of a preset."""
from .presets import Presets, compare
from .refusal import Refusal

MAX_STEPS = 100


class Changes:
    def __init__(self, panel, key):
        """key: of the pipeline, for its presets"""
        self.panel, self.presets, self.steps = panel, Presets(key), []
        self.drag = self.dragged = None  # the newest change that undo() takes back, and that step

    def state(self):
        return {"presets": self.presets.names(), "can-undo": bool(self.steps)}

    def set(self, name, values, drag=None, replace=False):
        """replace: whether files that are there may be written. drag: text that the changes of one drag of a hand have in common; they are one step of undo()"""
        element = self.panel.element(name)
        if not isinstance(values, dict) or not values:
            raise Refusal(400, "values is an object of names and values.")
        if drag is not None and (not isinstance(drag, str) or len(drag) > 64):
            raise Refusal(400, "drag is a text of 64 characters at most.")
        before = element.set(values, self.panel.condition(), self.panel.path_check(replace))
        same = drag is not None and (drag, name, set(values)) == self.drag and self.steps and self.steps[-1] is self.dragged
        if not same and any(element.wanted(key) != value for key, value in before.items()):
            self.drag, self.dragged = (drag, name, set(values)), [(name, before)]
            self.steps = self.steps[1 - MAX_STEPS:] + [self.dragged]
        self.tell()
        rejected = {key: element.rejected[key]["text"] for key in values if key in element.rejected}
        return {"values": {key: element.get(key) for key in values}, **({"rejected": rejected} if rejected else {})}

    def settings(self):
        """What a preset has: by element and property."""
        return {e.name: {p: e.wanted(p) for p, d in e.properties.items() if d["when"] not in ("read", None) and not d.get("others")}
                for e in self.panel.elements.values() if e.ours}

    def tell(self):
        told = self.state()
        self.panel.listener({"type": "presets", **told})
        return {"presets": told["presets"]}

    def save(self, name):
        self.presets.save(name, self.settings())
        return self.tell()

    def delete(self, name):
        self.presets.delete(name)
        return self.tell()

    def differing(self, wanted):
        """Yields element, property, value and why it cannot be set now, None: it can"""
        for name, values in wanted.items():
            element = self.panel.elements.get(name)
            for key, value in values.items():
                if not element or key not in element.properties:
                    yield name, key, value, "The pipeline does not have it."
                elif element.wanted(key) != value and (value is not None or element.properties[key]["type"] in ("string", "path")):
                    yield name, key, value, element.reason(key, self.panel.condition())

    def load(self, name):
        """What cannot be set is skipped, and told; values and paths are checked as those of set"""
        done, skipped, check = [], [], self.panel.path_check()
        saved = self.presets.get(name)
        for element, key, value, reason in list(self.differing(saved)):
            try:
                if reason:
                    raise Refusal(403, reason)
                self.panel.elements[element].check(key, value, check, saved[element])
            except Refusal as refusal:
                skipped.append({"element": element, "property": key, "reason": str(refusal)})
            else:
                done.append((element, key, value))
        before = self.put(done, check)
        if before:
            self.steps = self.steps[1 - MAX_STEPS:] + [before]
        return {**self.tell(), "skipped": skipped}

    def put(self, wanted, check=None):
        """wanted: elements, properties and values. Returns: what was before, by element"""
        together = {}
        for element, key, value in wanted:
            together.setdefault(element, {})[key] = value
        return [(element, self.panel.elements[element].set(values, self.panel.condition(), check)) for element, values in together.items()]

    def compare(self, a=None, b=None):
        return {"differences": compare(*(self.presets.get(name) if name else self.settings() for name in (a, b)))}

    def undo(self, replace=False):
        """replace: as of set(). Nothing is set back unless all of a step can be"""
        if not self.steps:
            raise Refusal(409, "There is nothing to undo.")
        done = self.steps[-1]
        wanted = list(self.differing(dict(done)))
        for element, key, _value, reason in wanted:
            if reason:
                raise Refusal(409, f"{element}.{key} cannot be set back now. {reason}")
        check, before = self.panel.known_path_check(replace), dict(done)
        for element, key, value, _reason in wanted:
            self.panel.elements[element].check(key, value, check, before[element])
        self.put([change[:3] for change in wanted], check)
        self.steps.pop()
        self.tell()
        return {"undone": [{"element": e, "property": p, "value": v} for e, values in done for p, v in values.items()]}
