# SPDX-License-Identifier: LGPL-2.1-or-later
"""A view: the newest picture of a pad, as a client asked for it. What a setting can be is known by the library."""
import functools
import json
import math

from .refusal import Refusal

ON_THEIR_WAY = 2  # pictures
LESS = {"rate": 60, "width": 2048, "height": 2048}  # than the library takes: clients share a network and a processor
SHAPES = {"rectangle": "[x, y, width, height]", "line": "[x0, y0, x1, y1]"}


@functools.lru_cache
def described(GstImaging):
    """Returns: by name, what each setting of a view can be"""
    settings = {told["name"]: told for told in json.loads(GstImaging.ViewSettings.describe())}
    for name, most in LESS.items():
        settings[name]["maximum"] = most
    return settings


def check_number(name, value, low, high, whole=True):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or \
            not low <= value <= high or (whole and value != int(value)):
        raise Refusal(400, f"{name} is a number from {low:g} to {high:.10g}, not {value!r}.")
    return int(value) if whole else float(value)


def check(told, value):
    """told: of described(). Returns: a value of JSON as the library reads it; None: the default"""
    name, kind, low, high = (told[member] for member in ("name", "type", "minimum", "maximum"))
    if value is None and told["default"] is None:
        return None
    if kind == "enum":
        nicks = [choice["nick"] for choice in told["values"]]
        if value not in nicks:
            raise Refusal(400, f'{name} "{value}" is none of {", ".join(nicks)}.')
        return value
    if kind not in SHAPES:
        return repr(check_number(name, value, low, high, kind == "int"))
    if not isinstance(value, list) or len(value) != 4:
        raise Refusal(400, f"{name} is {SHAPES[kind]} or null.")
    if kind == "line":
        numbers = [check_number(name, number, low, high, False) for number in value]
    else:
        numbers = [check_number(name, number, int(i > 1), 2 ** 31 - 1) for i, number in enumerate(value)]
        if high is not None and numbers[2] * numbers[3] > high:
            raise Refusal(400, f"{name} has {high:.0f} samples at most.")
    return ",".join(map(repr, numbers))


class View:
    def __init__(self, client, number, pad, arguments):
        self.GstImaging = GstImaging = client.server.panel.GstImaging
        self.client, self.number, self.pad = client, number, pad
        self.arguments = {name: told["default"] for name, told in described(GstImaging).items()}
        self.name = f"{pad.get_parent_element().get_name()}.{pad.get_name()}"
        self.view = GstImaging.View.new(pad, number)
        self.fd = self.view.get_fd()
        try:
            self.change(arguments)
        except Refusal:
            self.view.close()
            raise
        self.n_unseen = 0  # pictures that the socket has taken
        self.view.allow(ON_THEIR_WAY)
        client.server.loop.add_reader(self.fd, self.on_ready)

    def change(self, arguments):
        unknown = set(arguments) - set(self.arguments)
        if unknown:
            raise Refusal(400, f'view has no {", ".join(sorted(unknown))}.')
        new, settings = {**self.arguments, **arguments}, self.GstImaging.ViewSettings()
        for name, told in described(self.GstImaging).items():
            settings.set(name, check(told, new[name]))
        self.view.set(settings)
        self.arguments = new

    def on_ready(self):
        from gi.repository import GLib

        try:
            message = self.view.take()
        except GLib.Error as error:
            self.client.send({"type": "view-error", "view": self.number, "error": error.message})
            return
        if message:
            self.client.server.n_pictures += 1
            self.client.send(message.get_data(), self)

    def close(self):
        self.client.server.loop.remove_reader(self.fd)
        self.view.close()


