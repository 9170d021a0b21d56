# SPDX-License-Identifier: LGPL-2.1-or-later
"""The server of a panel, in a thread of low priority. docs/reference/panel.md is its protocol."""
import asyncio
import contextlib
import logging
import os
import re
import socket
import threading
from urllib.parse import quote

from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from . import health, metrics
from .client import Client
from .follow import Followers
from .guard import HEADERS, MAX_MESSAGE, Connections, Gate, Guard, read_json
from .refusal import Refusal
from .view import described

MAX_CLIENTS = 8
STATIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")
KINDS = {str: "a text", bool: "true or false"}  # of arguments; functions check the others
LONG_CHANGE = 5  # seconds of a change of state after which its request is answered
FIRST_FRAME = 5  # seconds that a snapshot waits for
SLOW_BODY = 10  # seconds for the body of a request
UNREAD = 20  # seconds that an answer waits for its reader
MAX_HEADER = 7000  # bytes; clients read 8 KiB of a line
LINGER = 2  # seconds for the rest of a body that nobody reads


def is_no_lost_connection(record):
    """aiohttp asserts that a connection still stands before each of its requests; one that is reset while
    requests wait is no error of the program, and needs no traceback."""
    kind, _error, trace = record.exc_info or (None, None, None)
    while trace and trace.tb_next:
        trace = trace.tb_next
    if kind and issubclass(kind, ConnectionError):  # as a WebSocket answers to its first request, or to a ping
        return False
    if kind is web.RequestPayloadError:  # the answer has been sent; what is left of the body cannot be read
        return False
    if kind and issubclass(kind, HttpProcessingError):  # no HTTP: the stranger has got a 400
        return False
    place = trace and trace.tb_frame.f_code.co_name  # newer versions of aiohttp find it as they send a file
    return (kind, place) not in ((AssertionError, "_handle_request"), (RuntimeError, "sendfile"))


def lower_priority():
    """Of this thread alone: the pipeline comes first. It is no failure where that is not permitted."""
    with contextlib.suppress(AttributeError, OSError):
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(10, os.getpriority(os.PRIO_PROCESS, thread)))


def own_address(wildcard):
    """Returns: an address of this host that others can use, in place of 0.0.0.0 or ::, else the name of the host"""
    family, far = (socket.AF_INET6, "2001:db8::1") if ":" in wildcard else (socket.AF_INET, "192.0.2.1")  # of documents: nothing is sent
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((far, 9))
        return probe.getsockname()[0]
    return socket.gethostname()


class Server:
    def __init__(self, panel, *, listen=None, port=0, token=None):
        self.panel, self.host, self.port = panel, listen or "127.0.0.1", port
        self.guard = Guard(listen, token)
        self.clients, self.n_pictures = set(), 0
        self.connections, self.writers = Connections(), set()
        self.loop, self.thread, self.ready = None, None, threading.Event()
        self.failure, self.stuck = None, {}  # connections that are not read, since when

    # --- the thread ---

    def start(self):
        """Returns: the address, when it listens"""
        self.thread = threading.Thread(target=self.run, name="panel", daemon=True)
        self.thread.start()
        self.ready.wait()
        if self.failure:
            raise self.failure
        host = own_address(self.host) if self.guard.wildcard else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/" + (f"login?token={quote(self.guard.token, safe='')}" if self.guard.token else "")

    def stop(self):
        if self.loop:
            self.loop.call_soon_threadsafe(self.done.set)
            self.thread.join(5)

    def run(self):
        """Its failure before it listens is that of start()."""
        try:
            lower_priority()
            asyncio.run(self.serve())
        except Exception as error:
            if self.ready.is_set():
                raise
            self.failure = error
        finally:
            self.ready.set()

    async def serve(self):
        self.loop, self.done = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(middlewares=[self.middleware], client_max_size=MAX_MESSAGE)
        app.add_routes([web.get("/", self.index), web.get("/api", self.overview), web.get("/api/", self.overview), web.get("/login", self.login), web.get("/metrics", self.metrics),
                        web.get("/ws", self.websocket), web.get("/api/picture", self.picture),
                        web.get("/api/{command}", self.get), web.post("/api/{command}", self.post),
                        web.get("/static/{name:[A-Za-z0-9_.-]+}", self.static)])
        for logger in "aiohttp.server", "asyncio":  # a ping is a task that nobody waits for
            logging.getLogger(logger).addFilter(is_no_lost_connection)
        self.runner = runner = web.AppRunner(app, access_log=None, keepalive_timeout=30, lingering_time=LINGER, handle_signals=False,
                                             auto_decompress=False)  # not before anybody has asked who sends it
        await runner.setup()
        server = await self.loop.create_server(lambda: Gate(runner.server(), self.connections), self.host, self.port, backlog=64)
        self.port = server.sockets[0].getsockname()[1]
        self.guard.cookie += f"-{self.port}"
        self.followers = Followers(self)
        self.panel.listener = lambda message: self.loop.call_soon_threadsafe(self.tell, message)
        self.ready.set()
        ticker = asyncio.create_task(self.tick())
        await self.done.wait()
        self.panel.listener = lambda message: None
        ticker.cancel()
        self.followers.close()
        for client in list(self.clients):
            client.close()
        server.close()
        await asyncio.gather(ticker, *self.writers, return_exceptions=True)
        await runner.server.shutdown(1)
        await runner.cleanup()

    def tell(self, message):
        for client in list(self.clients):
            if client.writer:  # the state of another one is yet to be made, and has what is told now
                client.send(message)

    async def begin(self, client):
        """The state is the first message. It and changes take the same way from the thread of the panel, so none is lost between."""
        def tell_state():
            self.loop.call_soon_threadsafe(start, self.panel.state())

        def start(state):
            if client in self.clients:  # it may have gone
                client.send({**state, "health": self.with_counts(state["health"])})
                client.start()

        await self.do(tell_state)

    def close_stuck(self):
        """Connections whose client has read nothing for a while: they would keep others out."""
        now = self.loop.time()
        waiting = [p for p in self.runner.server.connections if p.transport and p.transport.get_write_buffer_size()]
        self.stuck = {protocol: self.stuck.get(protocol, now) for protocol in waiting}
        for protocol, since in self.stuck.items():
            if now - since > UNREAD:
                protocol.transport.abort()

    async def tick(self):
        while True:
            await asyncio.sleep(0.5)
            self.close_stuck()
            if self.clients:
                self.tell(await self.health())

    async def do(self, function, *arguments):
        """In the thread of the panel."""
        return await asyncio.wrap_future(self.panel.submit(function, *arguments))

    async def health(self):
        return self.with_counts(await self.do(self.panel.health))

    def with_counts(self, told):
        return {**told, "clients": len(self.clients), "views": sum(len(c.views) for c in self.clients), "pictures": self.n_pictures}

    # --- commands ---

    def table(self):
        p = self.panel
        return {
            # name: (function, arguments with (name, type, default); ... means needed; reads)
            "state": (self.state, (), True),
            "elements": (lambda: self.do(lambda: {"elements": p.all_elements()}), (), True),
            "health": (self.health, (), True),
            "messages": (lambda: self.do(lambda: {"messages": p.messages.all}), (), True),
            "results": (lambda element: self.followers.newest(element), (("element", str, ...),), True),
            "files": (lambda folder: self.do(p.files.list, folder), (("folder", str, None),), True),
            "preset-compare": (lambda a, b: self.do(p.changes.compare, a, b), (("a", str, None), ("b", str, None)), True),
            "set": (lambda *a: self.do(p.changes.set, *a), (("element", str, ...), ("values", object, ...), ("drag", object, None), ("replace", bool, False)), False),
            "call": (lambda *a: self.do(p.call, *a), (("element", str, ...), ("action", str, ...), ("arguments", object, []), ("replace", bool, False)), False),
            "pipeline": (self.play, (("state", str, ...),), False),
            "seek": (lambda seconds: self.do(p.seek, seconds), (("seconds", object, ...),), False),
            "preset-save": (lambda name: self.do(p.changes.save, name), (("name", str, ...),), False),
            "preset-load": (lambda name: self.do(p.changes.load, name), (("name", str, ...),), False),
            "preset-delete": (lambda name: self.do(p.changes.delete, name), (("name", str, ...),), False),
            "undo": (lambda replace: self.do(p.changes.undo, replace), (("replace", bool, False),), False),
            "record": (lambda *a: self.do(p.recordings.start, *a), (("pad", str, ...), ("path", str, ...), ("frames", object, 0), ("replace", bool, False)), False),
            "record-stop": (self.record_stop, (), False),
            "snapshot": (self.snapshot, (("pad", str, ...), ("path", str, ...), ("replace", bool, False)), False),
        }

    async def state(self):
        state = await self.do(self.panel.state)
        return {**state, "health": self.with_counts(state["health"])}

    async def play(self, state):
        """A change that takes longer is told as it ends; health has a sentence meanwhile."""
        answer = asyncio.wrap_future(await self.do(self.panel.play, state))
        try:
            return await asyncio.wait_for(asyncio.shield(answer), LONG_CHANGE)
        except asyncio.TimeoutError as error:
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was told as a message
            raise Refusal(409, self.panel.states.sentence()) from error

    async def record_stop(self):
        return await asyncio.wrap_future(await self.do(self.panel.recordings.stop))

    async def snapshot(self, pad, path, replace):
        recording = await self.do(self.panel.recordings.begin_snapshot, pad, path, replace)
        end = self.loop.time() + FIRST_FRAME
        try:
            while not await self.do(self.panel.recordings.look_at_snapshot, recording) and self.loop.time() < end and not self.done.is_set():
                await asyncio.sleep(0.01)
            return self.panel.recordings.told_of_snapshot(await asyncio.wrap_future(await self.do(recording.stop)))
        finally:  # also where the client has gone
            self.panel.submit(self.panel.recordings.drop_snapshot, recording)
            del recording  # its error has this frame

    async def command(self, name, given, reads=False):
        entry = self.table().get(name)
        if not entry or (reads and not entry[2]):
            raise Refusal(404 if not entry else 400, f'There is no command "{name}"{" to read" if entry else ""}.')
        function, wanted, _reads = entry
        unknown = set(given) - {argument for argument, _kind, _default in wanted}
        missing = [argument for argument, _kind, default in wanted if default is ... and argument not in given]
        if unknown or missing:
            raise Refusal(400, f'{name} needs {", ".join(missing)}.' if missing else f'{name} has no {", ".join(sorted(unknown))}.')
        for argument, kind, default in wanted:
            value = given.get(argument, default)
            if not isinstance(value, kind) and value is not default:
                raise Refusal(400, f"{argument} is {KINDS[kind]}, not {value!r}.")
        try:
            return await function(*(given.get(argument, default) for argument, _kind, default in wanted))
        except Refusal:
            raise
        except Exception as error:  # of the program: the client is told, and the panel goes on
            logging.getLogger(__name__).exception("%s failed", name)
            raise Refusal(500, f"{name} failed in the panel itself ({type(error).__name__}). Its terminal says where.") from error

    # --- HTTP ---

    @web.middleware
    async def middleware(self, request, handler):
        try:
            self.guard.check(request)
            if request.path != "/login":  # a stranger until its token is known
                self.connections.know(request.protocol)
        except Refusal as refusal:
            response = web.json_response(refusal.told, status=refusal.status)
            response.force_close()
            response.headers.update(HEADERS)
            return response
        try:
            response = await handler(request)
        except Refusal as refusal:
            response = web.json_response(refusal.told, status=refusal.status)
            if refusal.status == 401:
                response.force_close()
        except web.HTTPException as error:
            if error.status < 400:
                raise
            sentence = f"A message has at most {MAX_MESSAGE} bytes." if error.status == 413 else f"{error.reason}: {request.path}"
            response = web.json_response({"error": sentence}, status=error.status)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def index(self, request):
        return self.file("index.html")

    async def static(self, request):
        return self.file(request.match_info["name"])

    def file(self, name):
        path = os.path.join(STATIC, name)
        if os.path.realpath(path) != os.path.join(os.path.realpath(STATIC), name) or not os.path.isfile(path):
            raise Refusal(404, f"There is no {name}.")
        return web.FileResponse(path)

    async def login(self, request):
        return self.guard.login(request)

    async def metrics(self, request):
        return web.Response(text=health.prometheus(await self.health()) + metrics.prometheus(await self.followers.scrape()), content_type="text/plain", charset="utf-8")

    def check_rate(self, request):
        self.connections.check_rate(request.protocol)

    async def overview(self, request):
        """For somebody who looks what there is."""
        return web.json_response({"page": "/", "read": [f"/api/{name}" for name, entry in self.table().items() if entry[2]] + ["/api/picture", "/metrics"],
                                  "post": [f"/api/{name}" for name in self.table()], "websocket": "/ws", "documentation": "docs/reference/panel.md"})

    async def get(self, request):
        self.check_rate(request)
        return web.json_response(await self.command(request.match_info["command"], dict(request.query), reads=True))

    async def post(self, request):
        self.check_rate(request)
        try:
            text = await asyncio.wait_for(request.text(), SLOW_BODY)
        except asyncio.TimeoutError as error:
            request.protocol.force_close()
            raise Refusal(408, f"The body did not come within {SLOW_BODY} s.") from error
        except ConnectionError as error:  # nobody reads the answer
            raise Refusal(400, "The client has gone before the end of the body.") from error
        except (LookupError, UnicodeError) as error:
            raise Refusal(400, f"The body is no text of its charset: {error}.") from error
        given = read_json(text or "{}", "The body")
        if not isinstance(given, dict):
            raise Refusal(400, "The body is no JSON object.")
        return web.json_response(await self.command(request.match_info["command"], given))

    async def picture(self, request):
        """One picture, from a view of its own."""
        self.check_rate(request)
        kinds = {"pad": "enum", **{name: told["type"] for name, told in described(self.panel.GstImaging).items()}}
        given = {name: text if kinds.get(name) == "enum" else read_json(text, name) for name, text in request.query.items()}
        if not self.panel.states.is_busy() and self.panel.state_name not in ("playing", "paused"):
            raise Refusal(409, "The pipeline is stopped: there is no picture.")
        client = Client(self)
        try:
            header, jpeg = await client.one_picture(given)
        finally:
            client.close()
        header = re.sub('"pixels":"[^"]*"', '"pixels":null', header)  # for drawing alone, and the room is small
        if len(header) > MAX_HEADER:
            raise Refusal(422, f"The values need more than the {MAX_HEADER} bytes of a header of HTTP. Take fewer, or a view over the WebSocket.")
        return web.Response(body=jpeg, content_type="image/jpeg", headers={"X-Picture": header})

    # --- WebSocket ---

    async def websocket(self, request):
        if len(self.clients) >= MAX_CLIENTS:
            raise Refusal(503, f"{MAX_CLIENTS} clients look already.")
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, heartbeat=20)
        gate = request.transport.get_protocol()  # before prepare(): the client may go meanwhile
        client = Client(self, socket, request.transport, self.connections.known[request.protocol])
        self.clients.add(client)
        try:
            await socket.prepare(request)
            gate.socket = socket
            await self.begin(client)
            async for message in socket:
                if message.type != WSMsgType.TEXT:
                    break
                # it waits, and others do not: messages that nobody limits, as "seen", take time as well
                await asyncio.sleep(client.messages.wait(1 + len(message.data) // 1024))
                await client.receive(message.data)
        finally:
            self.clients.discard(client)
            client.close()
        return socket
