# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results for those who follow an element: a tap takes the newest frame, and its metadata is read here."""
import asyncio

from . import results
from .refusal import Refusal

PERIOD = 0.1  # seconds
SOON = 0.005  # of an element whose rows are all wanted


class Follower:
    def __init__(self, followers, element):
        self.followers, self.element = followers, element
        panel = followers.server.panel
        self.taps = [panel.GstImaging.Tap.new(pad) for pad in element.element.srcpads if pad.get_name() != "results"]
        self.clients, self.newest, self.field = set(), None, []
        self.news = asyncio.Event()
        self.period = SOON if element.factory == "insarxcorr" else PERIOD
        for tap in self.taps:
            followers.server.loop.add_reader(tap.get_fd(), self.on_frame, tap)
            tap.request()

    def on_frame(self, tap):
        sample, _time = tap.take()
        if not sample:
            return
        message = results.read(sample.get_buffer(), self.element.name, self.field)
        del sample  # its buffer is missing in a pool
        if message:
            self.newest = message
            self.news.set()
            for client in self.clients:
                client.send(message)
        self.followers.server.loop.call_later(self.period, self.request, tap)

    def request(self, tap):
        if self.taps:
            tap.request()

    def close(self):
        for tap in self.taps:
            self.followers.server.loop.remove_reader(tap.get_fd())
            tap.close()
        self.taps = []


class Followers:
    def __init__(self, server):
        self.server, self.all = server, {}

    def get(self, name):
        element = self.server.panel.element(name)
        if not element.ours or not element.element.srcpads:
            raise Refusal(404, f"{name} has no results.")
        if name not in self.all:
            self.all[name] = Follower(self, element)
        return self.all[name]

    def follow(self, client, name, follows):
        if follows:
            self.get(name).clients.add(client)
            return
        if name in self.all:
            self.all[name].clients.discard(client)
            self.drop(name)

    def drop(self, name):
        if name in self.all and not self.all[name].clients:
            self.all.pop(name).close()

    def leave(self, client):
        for name in list(self.all):
            self.all[name].clients.discard(client)
            self.drop(name)

    async def newest(self, name):
        follower = self.get(name)
        try:
            if not follower.newest:
                await asyncio.wait_for(follower.news.wait(), 2)
            return follower.newest
        except asyncio.TimeoutError as error:
            raise Refusal(409, f"{name} has measured nothing in the last 2 s.") from error
        finally:
            self.drop(name)

    def close(self):
        for name in list(self.all):
            self.all.pop(name).close()
