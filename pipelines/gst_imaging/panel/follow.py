# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results for those who follow an element: a tap takes the newest frame, and its metadata is read here. Where the rows are parts
of one field, it passes all of them to a queue."""
import asyncio
import time

from . import results
from .passage import Passage
from .refusal import Refusal

PERIOD = 0.1  # seconds
MAX_WAITING = 16 << 20  # bytes of rows
SLICE = 0.05  # seconds of reading rows at once
MANY = 20000  # rows of a field that is sent once a second


class Rows(Passage):
    """All frames of a pad, in a queue of bounded size: what does not fit is missing in the numbers of the rows."""

    def __init__(self, panel, pad):
        super().__init__(panel.Gst, panel.Gst.ElementFactory.make("appsink"))
        for name, value in ("sync", False), ("max-buffers", 1), ("enable-last-sample", False), ("async", False):
            self.sink.set_property(name, value)
        self.play()
        self.take(panel.GstImaging.Tap.new(pad), MAX_WAITING)

    def buffers(self):
        """Yields those that wait"""
        while sample := self.sink.emit("try-pull-sample", 1_000_000):  # ns; the next one is on its way
            yield sample.get_buffer()


class Follower:
    def __init__(self, followers, element):
        self.followers, self.element = followers, element
        panel, self.loop = followers.server.panel, followers.server.loop
        pads = [pad for pad in element.element.srcpads if pad.get_name() != "results"]
        self.clients, self.newest, self.field = set(), None, results.Field()
        self.news = asyncio.Event()
        self.rows = [Rows(panel, pad) for pad in pads if pad.get_name() == "src"] if element.kind.field else []
        self.taps = [] if self.rows else [panel.GstImaging.Tap.new(pad) for pad in pads]
        for tap in self.taps:
            self.loop.add_reader(tap.get_fd(), self.on_frame, tap)
            tap.request()
        for rows in self.rows:
            self.loop.call_later(PERIOD, self.on_rows, rows)

    def on_frame(self, tap):
        sample, _time = tap.take()
        if not sample:
            return
        message = results.read(sample.get_buffer(), self.element, self.field)
        del sample  # its buffer is missing in a pool
        if message:
            self.tell(message)
        self.loop.call_later(PERIOD, self.request, tap)

    def on_rows(self, rows):
        """All rows are read; one message tells of those that have come, and one of the end of each pass."""
        if not self.rows:
            return
        message, end = None, time.monotonic() + SLICE
        for buffer in rows.buffers():
            ended = message and self.field.begins(buffer.offset) and {**message, "field": self.field.patches()}
            found = results.read(buffer, self.element, self.field, False)
            if found and ended:
                self.tell(ended)
            message = found or message
            if time.monotonic() > end:  # others wait
                break
        if message:
            self.tell({**message, "field": self.field.patches()})
        # a long field is long work for all
        self.loop.call_later(max(PERIOD, self.field.n_patches / MANY) if message else PERIOD, self.on_rows, rows)

    def tell(self, message):
        self.newest = message
        self.followers.last[self.element.name] = message, time.monotonic()
        self.element.results_id = message["id"]
        self.news.set()
        for client in self.clients:
            client.send(message)

    def request(self, tap):
        if self.taps:
            tap.request()

    def close(self):
        for tap in self.taps:
            self.loop.remove_reader(tap.get_fd())
            tap.close()
        for rows in self.rows:
            rows.close()
        self.taps, self.rows = [], []


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
            message = results.read(sample.get_buffer(), element, results.Field()) if sample else None
            if message and self.last.get(element.name, ({},))[0].get("frame") != message["frame"]:  # that one may have more rows
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
