# SPDX-License-Identifier: LGPL-2.1-or-later
"""A view: the newest picture of a pad, as a client asked for it. What a setting can be is known by the library."""
import base64
import math

from .refusal import Refusal

ON_THEIR_WAY = 2  # pictures
NUMBERS = {"rate": "rate", "width": "width", "height": "height", "quality": "quality", "clip": "clip", "histogram": "n_bins",
           "volume": "n_slices"}  # by name in the protocol: member of the settings
LESS = {"rate": 60, "width": 2048, "height": 2048}  # than the library takes: clients share a network and a processor
PARTS = "crop", "values", "region"


def limits(GstImaging, name):
    found, low, high = GstImaging.ViewSettings.get_limits(NUMBERS.get(name, name))
    assert found, name
    return low, min(high, LESS.get(name, high))


def defaults(GstImaging):
    settings = GstImaging.ViewSettings()
    settings.init()
    return {**{name: getattr(settings, member) for name, member in NUMBERS.items()}, "place": settings.place, "colours": "grey", "section": "frame",
            "window": None, "level": None, "profile": None, **dict.fromkeys(PARTS)}


def facts(GstImaging):
    """Returns: what a page needs to know: limits, and R, G, B of the colours 0 to 255 of each map and of a NaN, in Base64"""
    colours, n = {}, 0
    while name := GstImaging.View.get_colours_name(n):
        colours[name] = base64.b64encode(GstImaging.View.get_colours(n).get_data()).decode()
        n += 1
    return {"limits": {name: limits(GstImaging, name) for name in (*NUMBERS, "values")}, "colours": colours}


def check_number(name, value, low, high, whole=True):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or \
            not low <= value <= high or (whole and value != int(value)):
        raise Refusal(400, f"{name} is a number from {low:g} to {high:.10g}, not {value!r}.")
    return int(value) if whole else float(value)


def check_rectangle(name, value):
    if value is None:
        return [0, 0, 0, 0]
    if not isinstance(value, list) or len(value) != 4:
        raise Refusal(400, f"{name} is [x, y, width, height] or null.")
    return [check_number(name, number, int(i > 1), 2 ** 31 - 1) for i, number in enumerate(value)]


def check_line(value):
    if not isinstance(value, list) or len(value) != 4:
        raise Refusal(400, "profile is [x0, y0, x1, y1] or null.")
    return [check_number("profile", number, -2 ** 31, 2 ** 31, False) for number in value]


class View:
    def __init__(self, client, number, pad, arguments):
        self.GstImaging = GstImaging = client.server.panel.GstImaging
        self.client, self.number, self.pad, self.arguments = client, number, pad, defaults(GstImaging)
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
        new = {**self.arguments, **arguments}
        for name in NUMBERS:
            new[name] = check_number(name, new[name], *limits(self.GstImaging, name), name not in ("rate", "clip"))
        new["place"] = check_number("place", new["place"], 0, 2 ** 31 - 1)
        self.view.set(self.settings(new))
        self.arguments = new

    def settings(self, new):
        GstImaging = self.GstImaging
        settings = GstImaging.ViewSettings()
        settings.init()
        for name, member in {**NUMBERS, "place": "place"}.items():
            setattr(settings, member, new[name])
        for name in "window", "level":
            if new[name] is not None:
                setattr(settings, name, check_number(name, new[name], *limits(GstImaging, name), False))
        for name in PARTS:
            part = getattr(settings, name)
            part.x, part.y, part.width, part.height = check_rectangle(name, new[name])
        most = limits(GstImaging, "values")[1]
        if settings.values.width * settings.values.height > most:
            raise Refusal(400, f"values has {most:.0f} samples at most.")
        if new["profile"] is not None:
            line = settings.profile
            line.x0, line.y0, line.x1, line.y1 = check_line(new["profile"])
            settings.n_points = int(limits(GstImaging, "n_points")[1])
        settings.colours = self.find("colour map", GstImaging.View.find_colours, new["colours"])
        settings.section = self.find("section", GstImaging.View.find_section, new["section"])
        return settings

    @staticmethod
    def find(kind, find, name):
        number = find(name) if isinstance(name, str) else -1
        if number < 0:
            raise Refusal(400, f'There is no {kind} "{name}".')
        return number

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


