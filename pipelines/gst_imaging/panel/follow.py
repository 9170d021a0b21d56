# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results for those who follow an element: a tap takes each frame that it can be asked for in time, and its metadata is read here. A message
has the newest one, and minimum, mean and maximum of those since the message before. Where the rows are parts of one field, a tap passes all of
them to a queue."""
import asyncio
import contextlib
import time

from .. import metadata
from . import results
from .passage import Passage
from .refusal import Refusal
from .spread import Spread

PERIOD = 0.1  # seconds
SHARE = 0.25  # of a core that reading may take
SCRAPED = 150  # seconds that results are read for somebody who reads /metrics
FIRST = 1  # seconds that the first reading of /metrics waits for results
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
        self.between, self.scraped = Spread(), Spread()  # since the last message, and the last reading of /metrics
        self.due = 0
        self.frame = self.tap = None  # the number of the newest frame, and who took it
        self.spare, self.read_at = 0, 0  # seconds of reading that are left, and when that was so
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
        begin = time.monotonic()
        buffer = sample.get_buffer()
        result, message = metadata.results(buffer, self.element.name), None
        if result:
            message = self.measured(tap, buffer, result, begin)
        del sample, buffer  # it is missing in a pool
        if message:
            self.tell(message)
        wait = self.rest(begin) if result else PERIOD
        if wait > 0:
            self.loop.call_later(wait, self.request, tap)
        else:
            tap.request()

    def rest(self, begin):
        """After a frame was read. Returns: seconds until the next one may be. Of fast frames it is then every n-th, not a group of them"""
        now = time.monotonic()
        self.spare = min(SHARE * PERIOD, self.spare + SHARE * (now - self.read_at)) - (now - begin)
        self.read_at = now
        return -self.spare / SHARE

    def measured(self, tap, buffer, result, now):
        """Of each frame that is read. Returns: a message, once in PERIOD"""
        summary, frame = self.element.kind.sum_up(result, self.element.element), result.get("frame")
        if frame is None or frame != self.frame or tap is self.tap:  # else it has passed another pad
            missed = max(0, frame - self.frame - 1) if None not in (frame, self.frame) else 0
            for spread in self.between, self.scraped:
                spread.add(summary, missed)
        self.frame, self.tap = frame, tap
        if now < self.due:
            return None
        self.due = now + PERIOD
        between, self.between = self.between.told(), Spread()
        return {**results.message_of(buffer, self.element, result, summary, self.field), "between": between}

    def on_rows(self, rows):
        """All rows are read; one message tells of those that have come, and one of the end of each pass."""
        if not self.rows:
            return
        message, end = None, time.monotonic() + SLICE
        for buffer in rows.buffers():
            ended = message and self.field.begins(buffer.offset) and {**message, "field": self.field.patches()}
            found = results.read(buffer, self.element, self.field, False)
            if found:
                self.scraped.add(found["summary"])
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
        self.scraper = None  # the end of following for /metrics

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
        for pad in panel.kept.taps:
            sample = panel.kept.frame(pad) if pad.rpartition(".")[0] == element.name else None
            message = results.read(sample.get_buffer(), element, results.Field()) if sample else None
            if message and self.last.get(element.name, ({},))[0].get("frame") != message["frame"]:  # that one may have more rows
                self.last[element.name] = message, panel.kept.time

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

    def send(self, _message):
        """As a client of all elements, for /metrics: it reads what they keep."""

    async def scrape(self):
        """Follows all elements for a while. Returns: by element, its newest results and the Spread since the last call"""
        if self.scraper:
            self.scraper.cancel()
        self.scraper = self.server.loop.call_later(SCRAPED, self.leave, self)
        panel = self.server.panel
        if panel.state_name not in ("playing", "paused"):
            return {}
        ours = [e.name for e in panel.elements.values() if e.ours and e.element.srcpads]
        new = [name for name in ours if name not in self.all and panel.elements[name].results_id]
        for name in ours:
            self.follow(self, name, True)
        if new and panel.state_name == "playing":
            news = asyncio.gather(*(self.all[name].news.wait() for name in new))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(news, FIRST)
        found = {}
        for name in ours:
            follower = self.all.get(name)
            if follower and name in self.last:
                found[name], follower.scraped = (self.last[name][0], follower.scraped), Spread()
        return found

    def close(self):
        if self.scraper:
            self.scraper.cancel()
        for name in list(self.all):
            self.all.pop(name).close()
