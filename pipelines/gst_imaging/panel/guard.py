# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may talk to the server: Host, Origin, token, and how much of it."""
import asyncio
import hmac
import ipaddress
import json
import math
import re
import secrets
import socket
import time

from aiohttp import web

from .refusal import Refusal

COOKIE = "gst-imaging-panel"
MAX_CONNECTIONS, MAX_MESSAGE = 32, 64 * 1024
MAX_STRANGERS, MAX_OF_ADDRESS = 32, 16  # connections without such a request so far
RATE, BURST = 50, 100  # commands a second, and at once
MESSAGES = 1000  # of any kind, of 1 KiB; longer ones count as several
MAX_PIPELINED = 32  # requests of a connection that wait behind another one
MAX_UNREAD = 16384  # messages of a WebSocket that wait; aiohttp limits their bytes alone
MAX_PARTIES = 1000  # addresses whose commands are counted
PATIENCE = 10  # seconds until a connection has sent a request

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def host_of(text):
    """Of a header Host, in lower case, without the port."""
    text = text.strip().lower()
    found = re.fullmatch(r"\[([0-9a-f:.%]*)\](:[0-9]+)?|([^\[\]:]*)(:[0-9]+)?", text)
    return (found[1] or found[3]) if found else text


class Guard:
    def __init__(self, listen=None, token=None):
        self.token = token or secrets.token_urlsafe(24) if listen else None
        self.cookie = COOKIE  # with the port: cookies of all ports of a host are sent to each of them
        self.names = {"localhost", "127.0.0.1", "::1"}
        self.wildcard = bool(listen) and listen in ("0.0.0.0", "::")
        if listen:
            self.names |= {listen.lower(), socket.gethostname().lower()}

    def check_host(self, request):
        host = host_of(request.headers.get("Host", ""))
        if host in self.names:
            return
        if self.wildcard:  # an address, not a name: names can be bound to another address
            try:
                ipaddress.ip_address(host)
                return
            except ValueError:
                pass
        raise Refusal(403, "This server is not at the Host of the request.")

    def check_origin(self, request):
        origin = request.headers.get("Origin")
        if origin is not None and origin != f'http://{request.headers.get("Host", "")}':
            raise Refusal(403, "The Origin of the request is another site.")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "The request comes from another site.")

    def knows(self, text):
        return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), self.token.encode())

    def check_token(self, request):
        if not self.token:
            return
        kind, _blank, bearer = request.headers.get("Authorization", "").partition(" ")
        given = bearer if kind == "Bearer" else request.cookies.get(self.cookie, "")
        if not self.knows(given):
            raise Refusal(401, "The token is missing or wrong. Open the address that the panel printed, or send it as Authorization: Bearer TOKEN.")

    def login(self, request):
        if not self.token or not self.knows(request.query.get("token", "")):
            raise Refusal(401, "The token is missing or wrong.")
        response = web.HTTPSeeOther("/", headers=HEADERS)
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
        return response

    def check(self, request):
        self.check_host(request)
        if request.path == "/login":
            return
        self.check_origin(request)
        self.check_token(request)
        if request.method == "POST" and request.content_type != "application/json":
            raise Refusal(400, "A POST needs Content-Type: application/json.")
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":  # it may be a thousand times as long
            raise Refusal(400, "The body has a Content-Encoding. Send it without one.")


def finite(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value


def whole(text):
    """Python has integers of any size, C does not"""
    value = int(text) if len(text) < 40 else None
    if value is None or not -2 ** 63 <= value < 2 ** 64:
        raise ValueError(f"{text[:40]} has more than 64 bits")
    return value


def read_json(text, what):
    """Returns: the value of a JSON text of a stranger, which can be sent back as JSON"""
    try:
        value = json.loads(text, parse_int=whole, parse_float=finite, parse_constant=finite)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise Refusal(400, f"{what} has half of a character.") from error
    except ValueError as error:
        raise Refusal(400, f"{what} is no JSON: {error}.") from error
    except RecursionError as error:
        raise Refusal(400, f"{what} is no JSON: it is nested too deeply.") from error
    return value


class Rate:
    """A bucket of commands that fills with time."""

    def __init__(self, rate=RATE, burst=BURST):
        self.rate, self.burst, self.left, self.time = rate, burst, burst, time.monotonic()

    def fill(self):
        now = time.monotonic()
        self.left, self.time = min(self.burst, self.left + (now - self.time) * self.rate), now

    def is_full(self):
        self.fill()
        return self.left >= self.burst

    def check(self):
        self.fill()
        if self.left < 1:
            raise Refusal(429, f"More than {self.rate} commands a second.")
        self.left -= 1

    def wait(self, n):
        """Takes n. Returns: the seconds until they are there"""
        self.fill()
        self.left -= n
        return max(0, -self.left / self.rate)


def party(address):
    """Returns: whose commands are counted together: an address, of IPv6 a network of 64 bits"""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    mapped = getattr(known, "ipv4_mapped", None)
    return str(mapped) if mapped else known.exploded[:19] if known.version == 6 else address


class Gate(asyncio.Protocol):
    """Stands between a connection and its protocol of aiohttp, and closes it where more waits than anybody needs: each request and
    each message takes memory, also those without content."""

    def __init__(self, inner, connections):
        """inner: of aiohttp, as its web.Server makes it"""
        self.inner, self.connections = inner, connections
        self.socket = None  # a WebSocketResponse

    def connection_made(self, transport):
        self.inner.connection_made(transport)
        self.connections.arrive(self.inner, transport)

    def connection_lost(self, error):
        self.connections.leave(self.inner)
        self.inner.connection_lost(error)

    def data_received(self, data):
        self.inner.data_received(data)
        if self.inner.transport and self.has_too_much():
            self.inner.transport.abort()

    def has_too_much(self):
        """No public name tells what waits. Versions of aiohttp without these names of requests limit those themselves."""
        queue = getattr(self.socket, "_reader", None)
        return (len(getattr(self.inner, "_messages", ())) > MAX_PIPELINED or len(getattr(self.inner, "_message_tail", b"")) > MAX_MESSAGE or
                len(getattr(queue, "_buffer", ())) > MAX_UNREAD)

    def eof_received(self):
        return self.inner.eof_received()

    def pause_writing(self):
        self.inner.pause_writing()

    def resume_writing(self):
        self.inner.resume_writing()


class Connections:
    """Those that have sent a request that may be answered have places of their own: strangers do not keep them out. A stranger
    too many takes the place of the oldest one, of its own address first."""

    def __init__(self):
        self.known, self.strangers = {}, {}  # by protocol: its Rate, and its address
        self.rates = {}  # by party

    @staticmethod
    def address_of(transport):
        return (transport.get_extra_info("peername") or ("",))[0]

    def arrive(self, protocol, transport):
        address = self.address_of(transport)
        same = [other for other, place in self.strangers.items() if place == address]
        if len(same) >= MAX_OF_ADDRESS or len(self.strangers) >= MAX_STRANGERS:
            self.abort((same if len(same) >= MAX_OF_ADDRESS else list(self.strangers))[0])
        self.strangers[protocol] = address
        asyncio.get_running_loop().call_later(PATIENCE, self.close_idle, protocol)

    def leave(self, protocol):
        self.known.pop(protocol, None)
        self.strangers.pop(protocol, None)

    def abort(self, protocol):
        self.strangers.pop(protocol, None)
        if protocol.transport:
            protocol.transport.abort()

    def close_idle(self, protocol):
        if protocol in self.strangers:
            self.abort(protocol)

    def know(self, protocol):
        """Of a request that may be answered."""
        if protocol not in self.known:
            if len(self.known) >= MAX_CONNECTIONS or not protocol.transport:
                raise Refusal(503, f"There are {MAX_CONNECTIONS} connections already.")
            self.strangers.pop(protocol, None)
            self.known[protocol] = self.rate_of(party(self.address_of(protocol.transport)))

    def rate_of(self, name):
        """Returns: the bucket that all connections of a party share"""
        if name not in self.rates and len(self.rates) >= MAX_PARTIES:
            self.rates = {other: rate for other, rate in self.rates.items() if not rate.is_full()}
        return self.rates.setdefault(name, Rate())

    def check_rate(self, protocol):
        self.known[protocol].check()
