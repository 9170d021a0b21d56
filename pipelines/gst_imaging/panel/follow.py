# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results for those who follow an element: a tap takes the newest frame, and its metadata is read here."""
import asyncio
import time

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
            self.followers.last[self.element.name] = message, time.monotonic()
            self.element.results_id = message["id"]
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
        self.last = {}  # by element: its newest results, and when they came

    def get(self, name):
        element = self.server.panel.element(name)
        if not element.ours or not element.element.srcpads:
            raise Refusal(404, f"{name} has no results.")
        if name not in self.all:
            self.all[name] = Follower(self, element)
        return self.all[name]

    def follow(self, client, name, follows):
        if follows:
            follower = self.get(name)
            follower.clients.add(client)
            if name in self.last and follower.newest is None:  # as in a pause
                client.send(self.aged(name))
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

    def aged(self, name):
        message, time_of = self.last[name]
        return {**message, "age": round(time.monotonic() - time_of, 3)}

    def read_kept(self, element):
        """In the thread of the panel. Of a pipeline that is paused: the results of the last frame that has passed"""
        panel = self.server.panel
        for view, tap in panel.kept.items():
            sample = tap.get_kept() if view.rpartition(".")[0] == element.name else None
            message = results.read(sample.get_buffer(), element.name, []) if sample else None
            if message:
                self.last[element.name] = message, panel.kept_time

    async def newest(self, name):
        follower = self.get(name)
        try:
            if self.server.panel.state_name == "playing" and not follower.newest:
                await asyncio.wait_for(follower.news.wait(), 2)
        except asyncio.TimeoutError:
            pass
        finally:
            self.drop(name)
        if name not in self.last or self.server.panel.state_name == "paused":
            await self.server.do(self.read_kept, follower.element)
        if name not in self.last:
            raise Refusal(409, f"{name} has measured nothing.")
        return self.aged(name)

    def close(self):
        for name in list(self.all):
            self.all.pop(name).close()
