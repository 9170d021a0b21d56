# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client on a WebSocket: its views, what waits to be sent to it, and its commands."""
import asyncio
import json

from .guard import MESSAGES, Rate, read_json
from .refusal import Refusal
from .view import View, check_number

MAX_WAITING = 512  # messages; a client that does not read them is closed
MAX_RESULTS = 4  # results of an element that wait; a newer one takes the place of the last
PATIENCE = 20  # seconds to take one message
MAX_VIEWS = 8


class Client:
    def __init__(self, server, socket=None, transport=None, rate=None):
        """rate: that of all connections of the same client"""
        self.server, self.socket, self.transport = server, socket, transport
        self.views = {}
        self.waiting = asyncio.Queue()
        self.results = {}  # by element: entries of those that wait
        self.rate, self.messages = rate or Rate(), Rate(MESSAGES, MESSAGES)
        self.writer = self.slow = None

    def start(self):
        self.writer = asyncio.create_task(self.write())
        self.server.writers.add(self.writer)  # a loop keeps no task
        self.writer.add_done_callback(self.server.writers.discard)

    def send(self, message, view=None):
        """Never waits. message: an object for JSON, or a picture of a view"""
        entry, results = [message, view], None
        if isinstance(message, dict) and message.get("type") == "results":  # they may be long
            results = self.results.setdefault(message["element"], [])
        if results is not None and len(results) >= MAX_RESULTS:
            results[-1][0] = message
        elif self.waiting.qsize() >= MAX_WAITING:
            self.abort()
        else:
            self.waiting.put_nowait(entry)
            if results is not None:
                results.append(entry)

    async def next(self):
        """Returns: the next message, and its view"""
        entry = await self.waiting.get()
        for results in self.results.values():
            if results and results[0] is entry:
                results.pop(0)
        return entry

    def abort(self):
        if self.transport:
            self.transport.abort()

    async def write(self):
        try:
            while True:
                message, view = await self.next()
                send = self.socket.send_bytes(message) if isinstance(message, bytes) else \
                    self.socket.send_str(json.dumps(message, allow_nan=False))
                await asyncio.wait_for(send, PATIENCE)
                if view:
                    view.n_unseen += 1
        except (ConnectionError, RuntimeError, asyncio.TimeoutError):
            self.abort()

    def close(self):
        if self.writer:
            self.writer.cancel()
        if self.slow:
            self.slow.cancel()
        for view in self.views.values():
            view.close()
        self.views.clear()
        self.server.followers.leave(self)

    async def receive(self, text):
        number = None
        try:
            given = read_json(text, "The message")
            if not isinstance(given, dict) or not isinstance(given.get("do"), str):
                raise Refusal(400, 'A message is an object with a member "do".')
            number, name = given.pop("id", None), given.pop("do")
            if name == "seen":
                self.seen(given.get("view"))
                return
            self.rate.check()
        except Refusal as refusal:
            self.send({"type": "reply", "id": number, "ok": False, "status": refusal.status, **refusal.told})
            return
        if name in ("snapshot", "record-stop") and not self.slow:  # it waits for a frame, or a disk; others are done meanwhile
            self.slow = asyncio.create_task(self.answer(number, name, given))
            self.slow.add_done_callback(self.forget_slow)
        else:
            await self.answer(number, name, given)

    def forget_slow(self, _task):
        self.slow = None

    async def answer(self, number, name, given):
        try:
            result = await self.do(name, given)
        except Refusal as refusal:
            self.send({"type": "reply", "id": number, "ok": False, "status": refusal.status, **refusal.told})
            return
        self.send({"type": "reply", "id": number, "ok": True, "result": result})

    async def do(self, name, given):
        if name == "view":
            return await self.open_view(given)
        if name == "view-close":
            view = self.views.pop(self.number(given), None)
            if view:
                view.close()
            return {}
        if name == "follow":
            element, follows = given.get("element"), given.get("follow", True)
            if not isinstance(element, str) or not isinstance(follows, bool):
                raise Refusal(400, "follow needs element, a text; its argument follow is true or false.")
            self.server.followers.follow(self, element, follows)
            return {}
        return await self.server.command(name, given)

    def number(self, given):
        return check_number("view", given.get("view"), 1, MAX_VIEWS)

    def seen(self, number):
        view = self.views.get(number) if isinstance(number, int) else None
        if view and view.n_unseen > 0:  # not of pictures that nobody has read
            view.n_unseen -= 1
            view.view.allow(1)

    async def open_view(self, given):
        number = self.number(given)
        arguments = {name: value for name, value in given.items() if name not in ("view", "pad")}
        view = self.views.get(number)
        if "pad" in given or not view:
            pad = await self.server.do(self.server.panel.pad, given.get("pad"))
            if view and view.pad != pad:
                arguments = {**view.arguments, **arguments}
                self.views.pop(number).close()
                view = None
            if not view:
                view = self.views[number] = View(self, number, pad, arguments)
                await self.show_kept(view)
                return {"view": number}
        before = view.arguments["volume"]
        view.change(arguments)
        if view.arguments["volume"] != before:  # it has none of these frames, and in a pause no other one comes
            await self.show_kept(view)
        return {"view": number}

    async def show_kept(self, view):
        sample = await self.server.do(self.server.panel.kept.frame, view.name)
        if sample:
            view.view.show(sample)

    async def one_picture(self, given):
        """Returns: header and JPEG"""
        await self.open_view({"view": 1, **given})
        try:
            message, _view = await asyncio.wait_for(self.waiting.get(), 5)
        except asyncio.TimeoutError as error:
            raise Refusal(409, "No frame has passed for 5 s.") from error
        if not isinstance(message, bytes):
            raise Refusal(422, message["error"])
        n = int.from_bytes(message[:4], "little")
        return message[4:4 + n].decode(), message[4 + n:]
