# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging panel without a browser: its protocol, what it refuses, and that nobody who talks to it costs the pipeline a frame."""
import asyncio
import concurrent.futures
import contextlib
import errno
import fcntl
import gc
import glob
import gzip
import json
import logging
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, TIMEOUT, Gst, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging.command import Failure, execute
from gst_imaging.oct import spectra

try:
    import aiohttp
    import gi
    from aiohttp import web

    gi.require_version("GstImaging", "1.0")
    from gi.repository import GLib, GstImaging
    from gst_imaging.panel import graph, guard, gvalue, kinds, metrics, outputs, presets, recording, results, spread, values, view
    from gst_imaging.panel.client import Client
    from gst_imaging.panel.elements import Element
    from gst_imaging.panel.files import MAX_ENTRIES, Files
    from gst_imaging.panel.guard import Connections
    from gst_imaging.panel.panel import Panel as PanelOf
    from gst_imaging.panel.refusal import Refusal
    from gst_imaging.panel.server import Server, is_no_lost_connection
except (ImportError, ValueError):
    aiohttp = None

UPGRADE = ("GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
PATTERN = np.arange(48 * 64, dtype=np.uint16).reshape(48, 64)


class Served:
    """A panel in a process of its own."""

    def __init__(self, folder, *words, env=(), **more):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gst_imaging", "panel", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"), "XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder,
                 **dict(env)}, **more)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise AssertionError(self.process.stderr.read())
        self.port = int(self.address.split(":")[2].split("/")[0])
        self.root = f"http://127.0.0.1:{self.port}"

    def end(self):
        self.process.terminate()
        _out, errors = self.process.communicate(timeout=TIMEOUT)
        if self.process.returncode or "Traceback" in errors or "CRITICAL" in errors:
            raise AssertionError(errors)


def decoded(jpeg, width, height):
    """Returns: samples [height, width, 3]"""
    with tempfile.NamedTemporaryFile() as source, tempfile.NamedTemporaryFile() as target:
        source.write(jpeg)
        source.flush()
        subprocess.run(["gst-launch-1.0", "-q", "filesrc", "location=" + source.name, "!", "jpegdec", "!", "videoconvert", "!",
                        "video/x-raw,format=RGB", "!", "filesink", "location=" + target.name], check=True)
        return np.fromfile(target.name, np.uint8).reshape(height, width, 3)


async def receive(ws, wanted, timeout=20):
    """The next message that is wanted: a picture as (header, JPEG), or an object."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        message = await ws.receive(timeout=timeout)
        if message.type == aiohttp.WSMsgType.BINARY:
            n = int.from_bytes(message.data[:4], "little")
            told = json.loads(message.data[4:4 + n])
            told.update({"type": "picture", "jpeg": message.data[4 + n:]})
            await ws.send_json({"do": "seen", "view": told["view"]})
        elif message.type == aiohttp.WSMsgType.TEXT:
            told = json.loads(message.data)
        else:
            raise AssertionError(f"the server closed: {message}")
        if wanted(told):
            return told
    raise AssertionError("the message did not come")


async def ask(ws, **command):
    await ws.send_json({"id": 7, **command})
    return await receive(ws, lambda m: m["type"] == "reply" and m["id"] == 7)


@unittest.skipUnless(aiohttp, "python3-aiohttp or the introspection of gst-imaging is missing")
class Values(unittest.TestCase):
    """One of each kind, as text for GStreamer and as a member of a transaction, which has a type."""

    def test_each_kind_of_value(self):
        nicks = [{"nick": "cells"}, {"nick": "arrows"}]
        for kind, value, text, member in (
                ({"type": "boolean"}, True, "true", ("boolean", True)),
                ({"type": "int", "minimum": -5, "maximum": 5}, -3, "-3", ("int", -3)),
                ({"type": "int", "minimum": 0, "maximum": 2 ** 32 - 1}, 3 * 10 ** 9, "3000000000", ("uint", 3 * 10 ** 9)),
                ({"type": "uint64"}, 2 ** 63, str(2 ** 63), ("uint64", 2 ** 63)),
                ({"type": "double"}, 0.1, "0.1", ("double", 0.1)),
                ({"type": "fraction"}, "30000/1001", None, ("fraction", (30000, 1001))),
                ({"type": "array"}, [1, 2.5], None, ("array", [1, 2.5])),
                ({"type": "paths"}, ["a", "b"], None, ("array", ["a", "b"])),
                ({"type": "enum", "values": nicks}, "arrows", "arrows", ("string", "arrows")),
                ({"type": "flags", "values": nicks}, "cells+arrows", "cells+arrows", ("string", "cells+arrows")),
                ({"type": "flags", "values": nicks}, "", "0", ("string", "0")),
                ({"type": "string"}, 'a "b\\', 'a "b\\', ("string", 'a "b\\'))):
            described = {"name": "p", **kind}
            found = values.from_json(described, value)
            self.assertEqual(values.in_structure(described, found), ("p", *member), described)
            if text is not None:
                self.assertEqual(values.as_text(described, found), text, described)

    def test_items_of_arrays_have_the_type_of_the_property(self):
        """Items of another type would be ignored without a word."""
        numbers = {"name": "p", "type": "array", "minimum": -5, "maximum": 5}
        for items, value, expected in (("double", [1, 2], [1.0, 2.0]), ("double", [2.5], [2.5]), ("int", [1, 2.0], [1, 2]), ("int", [], [])):
            found = values.from_json({**numbers, "items": items}, value)
            self.assertEqual((found, [type(item).__name__ for item in found]), (expected, [{"double": "float", "int": "int"}[items]] * len(value)))
        for items, value, status in (("double", [6], 422), ("int", [1, -6], 422), ("int", [1.5], 400), ("double", [1, "2"], 400), ("double", ["nan"], 422)):
            with self.assertRaises(Refusal) as refused:
                values.from_json({**numbers, "items": items}, value)
            self.assertEqual(refused.exception.status, status)
            self.assertIn(f"p[{len(value) - 1}]", str(refused.exception))
        self.assertEqual(values.from_text("array", "< (double)100, 7 >", "double"), [100.0, 7.0])
        self.assertIs(type(values.from_text("array", "< (double)100 >", "double")[0]), float)

    def test_numbers_that_c_does_not_have_are_refused(self):
        for kind, value in (("double", 10 ** 400), ("int", 10 ** 400), ("int", 2 ** 63), ("uint64", -1), ("uint64", 2 ** 64)):
            with self.assertRaises(Refusal) as refused:
                values.from_json({"name": "p", "type": kind}, value)
            self.assertEqual(refused.exception.status, 422)
        for text in "[1" + "0" * 400 + "]", str(2 ** 64), str(-2 ** 63 - 1):
            with self.assertRaises(Refusal) as refused:
                guard.read_json(text, "It")
            self.assertIn("64 bits", str(refused.exception))
        self.assertEqual(guard.read_json(f"[{2 ** 64 - 1}, {-2 ** 63}]", "It"), [2 ** 64 - 1, -2 ** 63])

    def test_whole_numbers_that_a_browser_would_round_are_texts(self):
        for kind, value in ("uint64", 2 ** 64 - 1), ("int", -2 ** 63), ("uint64", 2 ** 53 + 1), ("int", 2 ** 53), ("int", -2 ** 53), ("int", 7):
            told = values.to_json(kind, value)
            self.assertEqual(told, value if abs(value) <= 2 ** 53 else str(value))
            described = {"name": "p", "type": kind, "minimum": values.to_json("int", -2 ** 63 * (kind == "int")), "maximum": str(2 ** 64 - 1)}
            self.assertEqual(values.from_json(described, told), value)
            with self.assertRaises(Refusal):
                values.from_json({**described, "maximum": values.to_json(kind, value - 1)}, told)
        for text in "7", "9007199254740992", "1e20", "0x10000000000000000", "123456789012345678901":
            with self.assertRaises(Refusal, msg=text):
                values.from_json({"name": "p", "type": "uint64"}, text)

    def test_a_long_number_of_an_element_comes_back(self):
        panel = unittest.mock.Mock(Gst=Gst, GstImaging=GstImaging, allow=["identity"])
        element = Element(panel, Gst.ElementFactory.make("queue"))
        element.allowed = {"max-size-time"}
        self.assertEqual(element.properties["max-size-time"]["maximum"], str(2 ** 64 - 1))
        element.set({"max-size-time": str(2 ** 64 - 3)}, "stopped")
        self.assertEqual(element.get("max-size-time"), str(2 ** 64 - 3))

    def test_each_message_takes_its_part_of_a_second(self):
        rate = guard.Rate(1000, 1000)
        self.assertEqual(rate.wait(1000), 0)
        self.assertAlmostEqual(rate.wait(500), 0.5, delta=0.1)

    def test_wrong_values_are_refused(self):
        for kind, value in (({"type": "boolean"}, 1), ({"type": "int"}, True), ({"type": "int"}, 1.5), ({"type": "int"}, "1"), ({"type": "double"}, "1"),
                            ({"type": "int", "maximum": 5}, 6), ({"type": "double", "minimum": 0}, -0.1), ({"type": "double", "minimum": 0}, "nan"),
                            ({"type": "int"}, float("inf")), ({"type": "int"}, float("nan")),
                            ({"type": "array"}, [1, "2"]), ({"type": "array"}, 1), ({"type": "enum", "values": []}, "x"),
                            ({"type": "paths"}, "<a, b>"), ({"type": "paths"}, ["a\0b"]),
                            ({"type": "flags", "values": []}, "x"), ({"type": "string"}, 5), ({"type": "string"}, "a\0b"),
                            *(({"type": "fraction"}, text) for text in ("banana", "1/0", "-5/1", "5", "5/1, location=(string)/x", "9999999999/1", 5, None))):
            with self.assertRaises(Refusal, msg=f"{kind} {value}"):
                values.from_json({"name": "p", **kind}, value)

    def test_types_that_pygobject_does_not_know_are_read_back(self):
        element = Gst.ElementFactory.make("shreconstruct")
        gvalue.set_together(element, [("mode-gains", "array", [1, 2.5]), ("dead-actuators", "array", [3, 4])])
        self.assertEqual(values.from_text("array", gvalue.read(element, "mode-gains")), [1, 2.5])
        self.assertEqual(values.from_text("array", gvalue.read(element, "dead-actuators")), [3, 4])
        element = Gst.ElementFactory.make("picturesrc")
        paths = ['/a "b".npy', "/c\\d, e>.npy", "/ä.npy", "/f"]
        gvalue.set_one(element, "locations", "array", paths)
        gvalue.set_one(element, "framerate", "fraction", (30, 1))
        self.assertEqual(values.from_text("paths", gvalue.read(element, "locations")), paths)
        self.assertEqual(values.from_text("fraction", gvalue.read(element, "framerate")), "30/1")


def our_elements():
    """Yields an Element for each of our factories."""
    panel = unittest.mock.Mock(Gst=Gst, GstImaging=GstImaging, allow=[])
    for factory in Gst.Registry.get().get_feature_list(Gst.ElementFactory):
        if factory.get_plugin() and factory.get_plugin().get_package() == "gst-imaging":
            yield Element(panel, factory.create(None))


@unittest.skipUnless(aiohttp, "python3-aiohttp or the introspection of gst-imaging is missing")
class Paths(unittest.TestCase):
    """No text of an action and no path of a property reaches an element without the check."""

    def test_each_text_of_an_action_is_checked(self):
        def check(path, writer, _own):
            self.assertIs(writer, element)
            raise Refusal(403, path)

        n = 0
        for element in our_elements():
            for action in element.actions:
                for i, argument in enumerate(action["arguments"]):
                    self.assertIn(argument["type"], ("int", "double", "path", "string"))
                    if (action["name"], argument["name"]) == ("calibrate-mirror", "sides") or argument["type"] in ("int", "double"):
                        continue
                    given = [1 if other["type"] in ("int", "double") else "" for other in action["arguments"]]
                    given[i] = "/outside.npy"
                    with self.assertRaises(Refusal, msg=f"{element.factory} {action}") as raised:
                        element.call(action["name"], given, check)
                    self.assertEqual(raised.exception.status, 403)
                    n += 1
        self.assertGreater(n, 9)

    def test_each_path_that_is_written_is_known(self):
        n = 0
        for element in our_elements():
            for name, described in element.properties.items():
                if described["type"] != "path":
                    continue
                writes = re.search("(?i)(file|mesh) to write|file of the file to write|.lp file to write", described["blurb"]) is not None
                self.assertEqual(element.writes(name), writes, f"{element.factory}.{name}: {described['blurb']}")
                n += writes
        self.assertGreater(n, 8)

    def test_each_text_of_our_elements_is_known(self):
        """One that names a file, and is not declared as a path, would let a browser read and write anywhere."""
        n = 0
        for element in our_elements():
            for name, described in element.properties.items():
                if described["type"] != "string" or described["when"] == "read" or described.get("others"):
                    continue
                names_file = re.search("(?i)folder|its file|path of|file to|array file", described["blurb"]) is not None
                self.assertEqual(element.names_files(name), names_file, f"{element.factory}.{name}: {described['blurb']}")
                n += 1
        self.assertGreater(n, 9)


@unittest.skipUnless(aiohttp, "python3-aiohttp or the introspection of gst-imaging is missing")
class Connecting(unittest.IsolatedAsyncioTestCase):
    async def test_strangers_do_not_keep_others_out(self):
        def new(address):
            protocol = unittest.mock.Mock()
            protocol.transport.get_extra_info.return_value = (address, 1)
            connections.arrive(protocol, protocol.transport)
            return protocol

        connections = Connections()
        first = new("::1")
        connections.know(first)
        old = [new("10.0.0.1") for _ in range(guard.MAX_OF_ADDRESS)]
        other = new("10.0.0.2")
        new("10.0.0.1")
        self.assertEqual([p.transport.abort.called for p in (first, *old[:2], other)], [False, True, False, False])
        connections.close_idle(other)
        connections.close_idle(first)
        self.assertEqual([p.transport.abort.called for p in (first, other)], [False, True])
        for i in range(1, guard.MAX_CONNECTIONS):
            connections.know(new(f"10.1.0.{i}"))
        with self.assertRaises(Refusal):
            connections.know(new("10.2.0.1"))

    async def test_a_client_that_reads_slowly_has_few_results_waiting(self):
        transport = unittest.mock.Mock()
        client = Client(unittest.mock.Mock(), transport=transport)
        for i in range(2000):
            for element in "a", "b":
                client.send({"type": "results", "element": element, "frame": i})
        self.assertFalse(transport.abort.called)
        found = [(await client.next())[0] for _ in range(client.waiting.qsize())]
        self.assertEqual([m["frame"] for m in found if m["element"] == "a"], [0, 1, 2, 1999])
        client.send({"type": "results", "element": "a", "frame": 2000})
        self.assertEqual((await client.next())[0]["frame"], 2000)
        for _ in range(1000):
            client.send({"type": "event"})
        self.assertTrue(transport.abort.called)

    async def test_the_state_is_first_and_what_changes_after_it_is_told(self):
        """Many changes while clients connect: each client has its state, and then all changes since, also those that come before it is sent."""
        panel, told = unittest.mock.Mock(health=lambda: {"type": "health"}, states=unittest.mock.Mock(n_open=0)), 0

        def change():
            nonlocal told
            told += 1
            panel.listener({"type": "event", "number": told})

        def state():
            time.sleep(0.02)
            return {"type": "state", "number": told, "health": {}}

        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            panel.submit, panel.state = thread.submit, state
            server = Server(panel)
            root = server.start()
            self.addCleanup(server.stop)
            done = threading.Event()
            changes = threading.Thread(target=lambda: [thread.submit(change).result() for _ in iter(lambda: done.wait(0.002), True)])
            changes.start()
            try:
                async with aiohttp.ClientSession() as session:
                    for _ in range(10):
                        async with session.ws_connect(root + "ws") as ws:
                            found = await ws.receive_json(timeout=TIMEOUT)
                            self.assertEqual(found["type"], "state")
                            self.assertEqual(found["health"]["clients"], 1)
                            events = [await receive(ws, lambda m: m["type"] == "event") for _ in range(5)]
                            self.assertEqual([event["number"] for event in events], [found["number"] + 1 + i for i in range(5)])
            finally:
                done.set()
                changes.join()

    async def test_commands_are_counted_for_each_client(self):
        self.assertEqual(len({guard.party(text) for text in ("2001:db8::1", "2001:db8:0:0:ffff::2", "2001:db8:0:1::1")}), 2)
        self.assertEqual(guard.party("::ffff:10.0.0.1"), "10.0.0.1")
        connections = Connections()
        for i in range(3 * guard.MAX_PARTIES):
            connections.rate_of(f"10.0.{i // 256}.{i % 256}")
        self.assertLessEqual(len(connections.rates), guard.MAX_PARTIES)

    async def test_a_flood_of_seen_queues_no_pictures(self):
        client, view = Client(unittest.mock.Mock()), unittest.mock.Mock(n_unseen=2)
        client.views[1] = view
        for _ in range(1000):
            client.seen(1)
        self.assertEqual((view.view.allow.call_count, view.n_unseen), (2, 0))

    def test_hosts(self):
        for text, host in (("[::1]:80", "::1"), ("[::1]", "::1"), ("localhost:80", "localhost"), ("A.b", "a.b"), ("127.0.0.1:9", "127.0.0.1")):
            self.assertEqual(guard.host_of(text), host)
        for text in "[::1]evil", "[::1]:80.evil", "localhost:80@evil", "[localhost]evil":
            self.assertNotIn(guard.host_of(text), guard.Guard().names)


@unittest.skipUnless(aiohttp, "python3-aiohttp or the introspection of gst-imaging is missing")
class Stuck(unittest.TestCase):
    def test_a_connection_that_is_not_read_is_closed_after_a_while(self):
        """With a clock and connections of the test: the real ones take 20 s."""
        read, unread = unittest.mock.Mock(), unittest.mock.Mock()
        unread.transport.get_write_buffer_size.return_value = 1000
        server = unittest.mock.Mock(stuck={})
        server.runner.server.connections = [read, unread, unittest.mock.Mock(transport=None)]
        for now in range(0, 30):
            read.transport.get_write_buffer_size.return_value = 5 * (now % 10 < 5)  # slow, but it reads
            server.loop.time.return_value = now
            Server.close_stuck(server)
            self.assertEqual(unread.transport.abort.called, now > 20)
            self.assertFalse(read.transport.abort.called)


@unittest.skipUnless(aiohttp, "python3-aiohttp or the introspection of gst-imaging is missing")
class Panel(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        np.save(os.path.join(self.folder, "in.npy"), np.stack([PATTERN, PATTERN + 1000, PATTERN + 2000]))

    def serve(self, *words, rate=100, elements="lapsharpen name=sharp focus-measure=true ! ", **more):
        if not words or words[0].startswith("-"):
            words += (f"picturesrc name=source location={self.folder}/in.npy loop=true framerate={rate}/1 ! {elements} fakesink sync=true",)
        served = Served(self.folder, "--files", self.data, *words, **more)
        self.addCleanup(served.end)
        return served

    async def test_what_is_played_is_not_replaced(self):
        link = os.path.join(self.data, "f3.npy")
        shutil.copy(os.path.join(self.folder, "in.npy"), link)
        served = self.serve(f"picturesrc name=source location={link} loop=true framerate=100/1 ! lapsharpen name=sharp ! fakesink sync=true")
        with open(link, "rb") as file:
            before = file.read()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for command in "record", "snapshot":
                for path in "f3.npy", "f%d.npy":
                    reply = await ask(ws, do=command, pad="sharp.src", path=path, **({"frames": 1} if command == "record" else {}))
                    self.assertIn("could replace", str(reply))
            self.assertIn("result", await ask(ws, do="snapshot", pad="sharp.src", path="g3.npy"))
        with open(link, "rb") as file:
            self.assertEqual(file.read(), before)

    async def test_a_value_sets_its_own_property_alone(self):
        served = self.serve("--paused")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            before = (await ask(ws, do="preset-save", name="before"))
            self.assertTrue(before["ok"], before)
            for wrong in "5/1, location=(string)/tmp/x.npy", "banana", "1/0", "-5/1":
                for more in {"loop": True}, {}:
                    reply = await ask(ws, do="set", element="source", values={"framerate": wrong, **more})
                    self.assertEqual((reply["ok"], reply["status"]), (False, 400), reply)
            reply = await ask(ws, do="set", element="source", values={"framerate": "5/1", "loop": False})
            self.assertEqual(reply["result"]["values"], {"framerate": "5/1", "loop": False})
            reply = await ask(ws, do="set", element="source", values={"locations": ["/etc/passwd"]})
            self.assertEqual(reply["status"], 403)
            state = (await ask(ws, do="elements"))["result"]["elements"]
            location = next(p["value"] for e in state if e["name"] == "source" for p in e["properties"] if p["name"] == "location")
            self.assertEqual(location, self.folder + "/in.npy")
            # a preset is a file, which others may have written
            path, = glob.glob(self.folder + "/gst-imaging/panel/*.json")
            with open(path, encoding="utf-8") as file:
                saved = json.load(file)
            saved["before"]["source"].update({"location": "/etc/passwd", "framerate": "7/1, location=(string)/x"})
            with open(path, "w", encoding="utf-8") as file:
                json.dump(saved, file)
            reply = await ask(ws, do="preset-load", name="before")
            self.assertEqual([skipped["property"] for skipped in reply["result"]["skipped"]], ["location", "framerate"])
            compared = (await ask(ws, do="preset-compare", a="before"))["result"]["differences"]
            self.assertEqual({entry["property"]: entry["b"] for entry in compared}, {"location": self.folder + "/in.npy", "framerate": "5/1"})

    async def test_a_pipeline_that_is_stopped_tells_of_bad_values_at_once(self):
        """What the element would say at the start: a source, and a filter with the caps of the last run. The values stay."""
        served = self.serve(elements="shcentroid name=ao columns=2 rows=2 pitch-x=20 pitch-y=20 ! ")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            async def set_one(element, name, value):
                reply = await ask(ws, do="set", element=element, values={name: value})
                self.assertTrue(reply["ok"], reply)
                return reply["result"].get("rejected", {}).get(name)

            await receive(ws, lambda m: m["type"] == "health" and m["frames-out"] > 20)
            await ask(ws, do="pipeline", state="stopped")
            self.assertIn('axes is "rubbish"', await set_one("source", "axes", "rubbish"))
            self.assertIsNone(await set_one("source", "loop", False))  # which is not to blame
            told = next(p for e in (await ask(ws, do="elements"))["result"]["elements"] if e["name"] == "source"
                        for p in e["properties"] if p["name"] == "axes")
            self.assertEqual((told["value"], told["rejected"]["value"]), ("rubbish", "rubbish"))
            self.assertIn("outside the 64 pixels", await set_one("ao", "columns", 9))
            self.assertIsNone(await set_one("ao", "pitch-x", 5))  # now it fits
            told = (await ask(ws, do="elements"))["result"]["elements"]
            self.assertEqual([p["name"] for e in told for p in e["properties"] if p["rejected"]], ["axes"])
            for _ in range(2):
                await ask(ws, do="undo")
            self.assertEqual((await ask(ws, do="undo"))["result"]["undone"], [{"element": "source", "property": "loop", "value": True}])
            self.assertEqual((await ask(ws, do="undo"))["result"]["undone"], [{"element": "source", "property": "axes", "value": None}])
            reply = await ask(ws, do="pipeline", state="playing")
            self.assertTrue(reply["ok"], reply)

    async def test_arrays_are_set_and_come_back(self):
        """Whole numbers for an array of doubles, by set, by a preset and by undo."""
        served = self.serve("--paused", elements="octbscan name=oct ! ")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            async def now():
                state = (await ask(ws, do="elements"))["result"]["elements"]
                return next(p["value"] for e in state if e["name"] == "oct" for p in e["properties"] if p["name"] == "dispersion-3")
            for value in [4, 5], [100.0], [7.5, 1]:
                reply = await ask(ws, do="set", element="oct", values={"dispersion-3": value})
                self.assertEqual((reply.get("result", reply).get("values"), await now()), ({"dispersion-3": value}, value))
                await ask(ws, do="preset-save", name=f"of {len(value)}")
            reply = await ask(ws, do="set", element="oct", values={"dispersion-3": [200.0], "dispersion-2": [1]})
            self.assertEqual(reply["result"]["values"], {"dispersion-3": [200.0], "dispersion-2": [1.0]})
            self.assertTrue((await ask(ws, do="undo"))["ok"])
            self.assertEqual(await now(), [7.5, 1])
            self.assertEqual((await ask(ws, do="preset-load", name="of 1"))["result"]["skipped"], [])
            self.assertEqual(await now(), [100.0])
            reply = await ask(ws, do="set", element="oct", values={"dispersion-3": [2, 2e9]})
            self.assertEqual((reply["status"], await now()), (422, [100.0]), reply)
            self.assertIn("dispersion-3[1]", reply["error"])

    async def wait_for(self, condition, *told):
        """condition: a coroutine function. Returns: what it returns as soon as that is true"""
        end = time.monotonic() + TIMEOUT
        while not (found := await condition()):
            self.assertLess(time.monotonic(), end, told)
            await asyncio.sleep(0.02)
        return found

    async def state_of(self, session, served, wanted, seconds=10):
        """Waits for a state of the pipeline. Returns: what is told of it"""
        end = time.monotonic() + seconds
        while True:
            async with session.get(served.root + "/api/state") as answer:
                told = (await answer.json())["pipeline"]
            if told["state"] == wanted or time.monotonic() > end:
                self.assertEqual(told["state"], wanted)
                return told
            await asyncio.sleep(0.02)

    async def test_what_has_ended_is_told_and_plays_again(self):
        served = self.serve(f"picturesrc location={self.folder}/in.npy framerate=10/1 ! lapsharpen name=sharp ! fakesink sync=true")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for _ in range(2):
                told = await self.state_of(session, served, "paused")
                self.assertTrue(told["ended"])
                message = (await ask(ws, do="messages"))["result"]["messages"][-1]
                self.assertEqual((message["severity"], message["text"][:19]), ("info", "The data has ended."))
                await ask(ws, do="view", view=1, pad="sharp.src")
                self.assertTrue((await ask(ws, do="pipeline", state="playing"))["ok"])
                picture = await receive(ws, lambda m: m["type"] == "picture")
                self.assertLess(picture["frame"], 3)
                self.assertFalse((await ask(ws, do="state"))["result"]["pipeline"]["ended"])
            await self.state_of(session, served, "paused")
            self.assertTrue((await ask(ws, do="seek", seconds=0.1))["ok"])
            self.assertFalse((await ask(ws, do="state"))["result"]["pipeline"]["ended"])
            await ask(ws, do="pipeline", state="stopped")
            self.assertFalse((await ask(ws, do="state"))["result"]["pipeline"]["ended"])

    async def test_an_end_before_the_start_is_complete(self):
        """One frame without a clock: the end may come before the change to PLAYING is answered."""
        served = self.serve(f"picturesrc location={self.folder}/in.npy ! lapsharpen ! fakesink sync=false", "--paused")
        async with aiohttp.ClientSession() as session:
            for _ in range(10):
                async with session.post(served.root + "/api/pipeline", json={"state": "playing"}) as answer:
                    self.assertEqual(answer.status, 200)
                self.assertTrue((await self.state_of(session, served, "paused"))["ended"])
                async with session.post(served.root + "/api/pipeline", json={"state": "stopped"}) as answer:
                    self.assertEqual(answer.status, 200)

    async def test_a_failure_with_an_end_behind_it(self):
        served = self.serve("videotestsrc ! video/x-raw,format=GRAY8,width=64,height=48 ! lapsharpen ! identity error-after=4 ! " + "identity ! " * 15
                            + "fakesink", "--paused")
        async with aiohttp.ClientSession() as session:
            for _ in range(15):
                async with session.post(served.root + "/api/pipeline", json={"state": "playing"}) as answer:
                    self.assertIn(answer.status, (200, 422))
                told = await self.state_of(session, served, "failed")
                self.assertFalse(told["ended"])
                async with session.post(served.root + "/api/pipeline", json={"state": "stopped"}) as answer:
                    self.assertEqual(answer.status, 200)

    async def test_a_simulated_mirror_survives_any_setting(self):
        served = self.serve("ao", "--simulator")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            async def frames():
                return next(e["frames"] for e in (await ask(ws, do="health"))["result"]["elements"] if e["name"] == "loop")
            for limits in (1e308, 1.7e308), (-1.7e308, 1.7e308), (1e30, 2e30), (-24, 24):
                reply = await ask(ws, do="set", element="loop", values={"minimum": limits[0], "maximum": limits[1], "gain": 10})
                self.assertTrue(reply["ok"], reply)
                most = await frames() + 20

                async def runs_on():
                    return await frames() > most
                await self.wait_for(runs_on, limits)
            told = [m["text"] for m in (await ask(ws, do="messages"))["result"]["messages"]]
            for words in "No command of 32 bits is between minimum", "holds its shape":
                self.assertTrue(any(words in text for text in told), told)

    async def test_what_cannot_be_undone_stays(self):
        served = self.serve("--paused")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ask(ws, do="set", element="source", values={"framerate": "50/1"})
            await ask(ws, do="preset-save", name="a")
            await ask(ws, do="pipeline", state="playing")
            reply = await ask(ws, do="undo")
            self.assertEqual((reply["status"], "stop the pipeline" in reply["error"]), (409, True), reply)
            await ask(ws, do="pipeline", state="stopped")
            self.assertEqual((await ask(ws, do="undo"))["result"]["undone"], [{"element": "source", "property": "framerate", "value": "100/1"}])
            await ask(ws, do="pipeline", state="playing")
            skipped = (await ask(ws, do="preset-load", name="a"))["result"]["skipped"]
            self.assertEqual([(s["element"], s["property"]) for s in skipped], [("source", "framerate")])

    async def test_files_that_are_there_are_replaced_on_request_alone(self):
        served = self.serve()
        for name in "old.npy", "s1.npy":
            shutil.copy(os.path.join(self.folder, "in.npy"), os.path.join(self.data, name))
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for command in "record", "snapshot":
                for path in "old.npy", "s%d.npy":
                    reply = await ask(ws, do=command, pad="sharp.src", path=path)
                    self.assertEqual((reply["ok"], reply["status"], reply.get("exists")), (False, 409, True), reply)
                for path in "", ".", self.data:
                    reply = await ask(ws, do=command, pad="sharp.src", path=path, replace=True)
                    self.assertEqual((reply["ok"], reply["status"]), (False, 400), reply)
            self.assertEqual(len(np.load(os.path.join(self.data, "old.npy"))), 3)
            self.assertTrue((await ask(ws, do="snapshot", pad="sharp.src", path="old.npy", replace=True))["ok"])
            self.assertEqual(np.load(os.path.join(self.data, "old.npy")).shape[-2:], (48, 64))
            reply = await ask(ws, do="snapshot", pad="sharp.src", path="t%03d.npy")
            self.assertEqual(reply["result"]["path"], os.path.join(self.data, "t000.npy"))
            self.assertTrue(os.path.exists(reply["result"]["path"]))
            reply = await ask(ws, do="snapshot", pad="sharp.src", path="u%020d.npy")
            self.assertTrue(os.path.exists(reply["result"]["path"]), reply)

    async def test_flags_beside_a_recording_are_replaced_on_request_alone(self):
        """Of slopes, whose flags picturesink writes to a file of their own. Pictures have none."""
        for name in "x-flags.npy", "s0001-flags.npy", "e-flags.npy":
            np.save(os.path.join(self.data, name), np.full((9, 4), 5, np.uint8))
        served = self.serve(elements="shcentroid name=ao columns=2 rows=2 pitch-x=20 pitch-y=20 fields=slopes ! fakesink sync=true ao.results"
                            " ! queue name=slopes ! other/tensors,num_tensors=2 ! ")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await receive(ws, lambda m: m["type"] == "health" and m["frames-out"] > 2)
            for command in "record", "snapshot":
                for path, there in ("x.npy", "x-flags.npy"), ("s%04d.npy", "s0001-flags.npy"), ("e.pfm", "e-flags.npy"):
                    reply = await ask(ws, do=command, pad="slopes.src", path=path)
                    self.assertEqual((reply.get("status"), reply.get("exists")), (409, True), reply)
                    self.assertIn(f"There is {there} already", reply["error"])
            self.assertTrue((await ask(ws, do="snapshot", pad="ao.src", path="x.npy"))["ok"])
            self.assertEqual(np.load(os.path.join(self.data, "x-flags.npy")).tolist(), [[5] * 4] * 9)
            self.assertTrue((await ask(ws, do="record", pad="slopes.src", path="x.npy", replace=True))["ok"])
            # what runs is not replaced either
            reply = await ask(ws, do="snapshot", pad="ao.src", path="x-flags.npy", replace=True)
            self.assertIn("is being recorded", reply.get("error", ""))
            await receive(ws, lambda m: m["type"] == "recording" and m["recording"] and m["recording"]["frames"] > 2)
            n = (await ask(ws, do="record-stop"))["result"]["frames"]
        self.assertEqual([np.load(os.path.join(self.data, name)).shape for name in ("x.npy", "x-flags.npy")], [(n, 2, 4), (n, 4)])

    async def test_a_stream_in_shared_memory_is_a_path(self):
        outside = os.path.join(self.folder, "outside")
        os.mkdir(outside)
        pipeline = (f"videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=48 ! shmimsink name=s stream=x folder={self.data} "
                    f"shmimsrc name=r stream=none folder={outside} ! fakesink")
        for with_files in False, True:
            served = self.serve(pipeline, "--paused") if with_files else Served(self.folder, pipeline, "--paused")
            if not with_files:
                self.addCleanup(served.end)
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                for element, values in (("s", {"folder": outside, "stream": "y"}), ("s", {"folder": outside}), ("s", {"folder": ""}), ("r", {"stream": "y"}),
                                        ("r", {"folder": ""}), *([("s", {"stream": "y"})] if not with_files else ())):
                    reply = await ask(ws, do="set", element=element, values=values)
                    self.assertEqual(reply.get("status"), 403, f"{element} {values}: {reply}")
                if with_files:
                    os.mkdir(os.path.join(self.data, "sub"))
                    for element, values in ("s", {"stream": "y"}), ("s", {"folder": "sub"}), ("r", {"folder": "", "stream": ""}), ("r", {"folder": "sub", "stream": "z"}):
                        self.assertTrue((await ask(ws, do="set", element=element, values=values))["ok"], values)
                    open(os.path.join(self.data, "sub", "old.im.shm"), "wb").close()
                    reply = await ask(ws, do="set", element="s", values={"stream": "old"})
                    self.assertEqual((reply["status"], reply.get("exists")), (409, True), reply)
        self.assertEqual(os.listdir(outside), [])

    async def test_actions_and_properties_replace_files_on_request_alone(self):
        for name in "march.npy", "grid.npy", ".bashrc":
            with open(os.path.join(self.data, name), "w", encoding="utf-8") as file:
                file.write("precious")
        served = self.serve(elements="shcentroid name=ao columns=2 rows=2 pitch-x=20 pitch-y=20 ! ")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for path, status in ("march.npy", 409), (".bashrc", 403), ("a%5d.npy", 400), ("a%i.npy", 400):
                for command in {"do": "call", "action": "capture-reference", "arguments": [2, path]}, {"do": "set", "values": {"find-grid-location": path}}:
                    for more in ({}, {"replace": True}) if status != 409 else ({},):
                        reply = await ask(ws, element="ao", **command, **more)
                        self.assertEqual((reply["ok"], reply.get("status"), reply.get("exists", False)), (False, status, status == 409), reply)
            reply = await ask(ws, do="call", element="ao", action="capture-reference", arguments=[2, "march.npy"], replace=1)
            self.assertEqual(reply["status"], 400)
            for path in ".x.npy", "s%5d.png", "s%021d.png", "s%099d.png":
                self.assertFalse((await ask(ws, do="snapshot", pad="ao.src", path=path, replace=True))["ok"])
            for name in "march.npy", "grid.npy", ".bashrc":
                with open(os.path.join(self.data, name), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "precious")
            reply = await ask(ws, do="call", element="ao", action="capture-reference", arguments=[2, "march.npy"], replace=True)
            self.assertTrue(reply["ok"], reply)
            reply = await ask(ws, do="set", element="ao", values={"find-grid-location": "grid.npy"}, replace=True)
            self.assertTrue(reply["ok"], reply)
            # the same value again is no question
            reply = await ask(ws, do="set", element="ao", values={"find-grid-location": os.path.join(self.data, "grid.npy")})
            self.assertTrue(reply["ok"], reply)

    async def test_a_file_that_appears_before_the_first_frame_stays(self):
        """The name is taken at the command. Other programs may write it all the same."""
        served, other = (self.serve(f"picturesrc name=source location={self.folder}/in.npy ! lapsharpen name=sharp ! fakesink sync=true", "--paused") for _ in range(2))
        path = os.path.join(self.data, "r.npy")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws, \
                session.ws_connect(other.root + "/ws", max_msg_size=0) as theirs:
            self.assertTrue((await ask(ws, do="record", pad="sharp.src", path="r.npy"))["ok"])
            reply = await ask(theirs, do="record", pad="sharp.src", path="r.npy")
            self.assertEqual(reply.get("exists"), True, reply)
            self.assertIn("nothing was recorded", (await ask(ws, do="record-stop"))["error"])
            self.assertEqual(os.listdir(self.data), [])
            self.assertTrue((await ask(ws, do="record", pad="sharp.src", path="r.npy"))["ok"])
            with open(path, "w", encoding="utf-8") as file:
                file.write("precious")
            await ws.send_json({"do": "pipeline", "state": "playing"})
            told = await receive(ws, lambda m: m["type"] == "message" and "another program" in m["text"])
            self.assertIn(path, told["text"])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    async def test_a_file_that_appears_before_the_end_of_an_action_stays(self):
        served = self.serve(elements="shcentroid name=ao columns=2 rows=2 pitch-x=20 pitch-y=20 ! ")
        path = os.path.join(self.data, "dark.npy")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            self.assertTrue((await ask(ws, do="call", element="ao", action="capture-dark", arguments=[1000000, path]))["ok"])
            with self.assertRaises(FileExistsError):
                open(path, "xb")
            self.assertTrue((await ask(ws, do="pipeline", state="stopped"))["ok"])
            self.assertEqual(os.listdir(self.data), [])
            await ask(ws, do="call", element="ao", action="capture-dark", arguments=[0, path])
            self.assertEqual(os.listdir(self.data), [])

    async def test_a_recording_with_fewer_frames_than_wanted_is_told(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for path, frames in ("all.npy", 0), ("few.npy", 1000):
                self.assertTrue((await ask(ws, do="record", pad="sharp.src", path=path, frames=frames))["ok"])
                await receive(ws, lambda m: m["type"] == "recording" and m["recording"] and m["recording"]["frames"] > 2)
                told = (await ask(ws, do="record-stop"))["result"]
                self.assertTrue(told["complete"])  # all that passed are written
            texts = [m["text"] for m in (await ask(ws, do="messages"))["result"]["messages"]]
        self.assertEqual([text.partition("ended ")[2] for text in texts if "The recording of" in text], [f'after {told["frames"]} of 1000 frames.'])

    async def test_a_recording_ends_with_the_data_and_with_a_failure(self):
        """The failure: a file of the series that has another size."""
        for i in range(5):
            np.save(os.path.join(self.folder, f"s{i}.npy"), PATTERN if i < 4 else PATTERN[:7].astype(np.float64)[None, :, None, :])
        for location, state in (os.path.join(self.folder, "in.npy"), "paused"), (os.path.join(self.folder, "s%d.npy"), "failed"):
            served = self.serve(f"picturesrc name=source location={location} framerate=10/1 ! lapsharpen name=sharp ! fakesink sync=true", "--paused")
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                self.assertTrue((await ask(ws, do="record", pad="sharp.src", path=state + ".npy", frames=50))["ok"])
                await ws.send_json({"do": "pipeline", "state": "playing"})
                await receive(ws, lambda m: m["type"] == "message" and " of 50 frames" in m["text"])
                await self.state_of(session, served, state)
                self.assertIsNone((await ask(ws, do="state"))["result"]["recording"])
                self.assertTrue((await ask(ws, do="pipeline", state="stopped"))["ok"])  # a command whose pipeline has failed fails

    async def test_undo_replaces_files_on_request_alone(self):
        served = self.serve(elements="shcentroid name=ao columns=2 rows=2 pitch-x=20 pitch-y=20 ! ")
        path = os.path.join(self.data, "grid.npy")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for value in path, "":
                self.assertTrue((await ask(ws, do="set", element="ao", values={"find-grid-location": value}))["ok"])
            with open(path, "w", encoding="utf-8") as file:
                file.write("precious")
            reply = await ask(ws, do="undo")
            self.assertEqual((reply["ok"], reply.get("status"), reply.get("exists")), (False, 409, True), reply)
            reply = await ask(ws, do="undo", replace=True)  # the step is still there
            self.assertEqual([step["value"] for step in reply["result"]["undone"]], [path])

    async def test_undo_sets_a_path_of_the_command_line_back(self):
        first = os.path.join(self.folder, "first.npy")  # not below --files
        served = self.serve(f"picturesrc location={self.folder}/in.npy ! picturesink name=p location={first}", "--paused")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ask(ws, do="pipeline", state="stopped")
            self.assertTrue((await ask(ws, do="set", element="p", values={"location": "a.npy"}))["ok"])
            reply = await ask(ws, do="undo")
            self.assertEqual(reply.get("exists"), os.path.exists(first) or None, reply)
            if not reply["ok"]:
                reply = await ask(ws, do="undo", replace=True)
            self.assertEqual([step["value"] for step in reply["result"]["undone"]], [first])

    def test_a_folder_that_cannot_be_listed_is_refused(self):
        """The superuser can list all: the error is that of the test."""
        files = Files([self.data])
        with unittest.mock.patch("os.listdir", side_effect=PermissionError(13, "Permission denied")):
            for call in (lambda: files.check("x%05d.png"), lambda: outputs.existing(os.path.join(self.data, "x.npy"))):
                with self.assertRaises(Refusal) as refused:
                    call()
                self.assertIn("cannot be listed: Permission denied", str(refused.exception))

    def test_names_that_are_left_out_of_a_list_are_counted(self):
        for i in range(MAX_ENTRIES + 602):
            open(os.path.join(self.data, f"{i:05d}"), "wb").close()
        for i in range(700):
            open(os.path.join(self.data, f".{i}"), "wb").close()
        told = Files([self.data]).list(self.data)
        self.assertEqual((len(told["entries"]), told["left-out"]), (MAX_ENTRIES, 602))
        self.assertEqual(Files([self.data]).list()["left-out"], 0)

    async def test_actions_do_not_replace_what_is_played_or_recorded(self):
        played = os.path.join(self.data, "played.npy")
        shutil.copy(os.path.join(self.folder, "in.npy"), played)
        served = self.serve(f"picturesrc name=source location={played} loop=true framerate=100/1 ! shcentroid name=ao columns=2 rows=2"
                            " pitch-x=20 pitch-y=20 ! fakesink sync=true")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            self.assertTrue((await ask(ws, do="record", pad="ao.src", path="r.npy"))["ok"])
            for path in "played.npy", "r.npy":
                for command in ({"do": "call", "element": "ao", "action": "capture-dark", "arguments": [1, path]},
                                {"do": "set", "element": "ao", "values": {"find-grid-location": path}},
                                {"do": "snapshot", "pad": "ao.src", "path": path, "replace": True}):
                    reply = await ask(ws, **command)
                    self.assertEqual((reply["ok"], reply.get("status")), (False, 409), reply)
            self.assertTrue((await ask(ws, do="call", element="ao", action="capture-dark", arguments=[1, "dark.npy"]))["ok"])
            await receive(ws, lambda m: m["type"] == "recording" and m["recording"] and m["recording"]["frames"] > 2)
            n = (await ask(ws, do="record-stop"))["result"]["frames"]
        self.assertEqual((len(np.load(played)), len(np.load(os.path.join(self.data, "r.npy")))), (3, n))

    async def test_a_full_disk_is_told_with_the_frames_of_the_file(self):
        """A limit of the size of a file takes the place of the disk."""
        served = self.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, 64 * 1024)))
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ws.send_json({"do": "record", "pad": "sharp.src", "path": "r.npy"})
            told = await receive(ws, lambda m: m["type"] == "message" and m["severity"] == "error")
        n = int(re.search("after ([0-9]+) frames", told["text"])[1])
        self.assertEqual(n, len(np.load(os.path.join(self.data, "r.npy"))))

    async def test_a_snapshot_that_fails_keeps_no_descriptor(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session:
            async def count():
                async with session.post(served.root + "/api/snapshot", json={"pad": "sharp.src", "path": "no.folder/x.npy"}) as answer:
                    self.assertEqual(answer.status, 404)
                async with session.post(served.root + "/api/snapshot", json={"pad": "sharp.src", "path": "x.xyz"}) as answer:
                    self.assertGreaterEqual(answer.status, 400)
                await asyncio.sleep(0.1)
                return len(os.listdir(f"/proc/{served.process.pid}/fd"))

            before = await count()
            for _ in range(10):
                after = await count()
            self.assertLess(after, before + 8)

    async def test_a_nice_process_serves(self):
        served = self.serve(preexec_fn=lambda: os.nice(15))
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/health") as answer:
            self.assertEqual(answer.status, 200)

    async def test_a_server_that_cannot_start_ends_the_command(self):
        with unittest.mock.patch.object(Server, "serve", side_effect=RuntimeError("broken")):
            told = self.refused("fakesrc ! fakesink", "--paused")
        self.assertEqual((told[0], "broken" in told[1]), (2, True), told)

    async def test_a_source_that_waits_for_a_fifo(self):
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        served = self.serve(f"filesrc location={fifo} ! fakesink")
        async with aiohttp.ClientSession() as session:
            end, told = time.monotonic() + 15, None
            while not told and time.monotonic() < end:
                async with session.get(served.root + "/api/health") as answer:
                    told = (await answer.json())["hint"]
                await asyncio.sleep(0.2)
            self.assertIn("FIFO", told)
            async with session.post(served.root + "/api/pipeline", json={"state": "stopped"}) as answer:
                self.assertEqual(answer.status, 409)
            served.process.send_signal(signal.SIGTERM)
            served.process.wait(8)

    def serve_camera(self):
        """A camera over TCP of 64 x 48 pixels. Returns: words of its source, and a function: with True it sends, with False it does
        not, with None it closes"""
        listening = socket.create_server(("127.0.0.1", 0))
        wanted, frame = [True], PATTERN.tobytes()

        def send():
            with listening, contextlib.suppress(OSError):
                connection = listening.accept()[0]
                with connection:
                    while wanted[0] is not None:
                        if wanted[0]:
                            connection.sendall(frame)
                        time.sleep(0.02)

        threading.Thread(target=send, daemon=True).start()
        self.addCleanup(wanted.__setitem__, 0, None)
        return (f"tcpclientsrc port={listening.getsockname()[1]} ! rawvideoparse format=gray16-le width=64 height=48 framerate=50/1",
                lambda what: wanted.__setitem__(0, what))

    async def test_a_camera_that_stands_still_and_one_that_ends(self):
        """Nobody looks meanwhile: the first answer of health says it."""
        words, camera = self.serve_camera()
        served = self.serve("sharpen", "--camera", "gst:" + words)
        async with aiohttp.ClientSession() as session:
            async def get(command):
                async with session.get(f"{served.root}/api/{command}") as answer:
                    return await answer.json()
            while (await get("health"))["frames-out"] < 10:
                await asyncio.sleep(0.05)
            self.assertTrue((await get("state"))["pipeline"]["camera"])
            camera(False)
            begin = time.monotonic()
            await asyncio.sleep(6)
            hint = (await get("health"))["hint"]
            self.assertRegex(hint, "no frame has passed for [0-9]+ s")
            self.assertIn(int(re.search("[0-9]+", hint)[0]), range(4, int(time.monotonic() - begin) + 2))
            camera(True)

            async def has_no_hint():
                return (await get("health"))["hint"] is None
            await self.wait_for(has_no_hint)
            camera(None)
            told = await self.state_of(session, served, "paused")
            self.assertTrue(told["ended"])
            message = (await get("messages"))["messages"][-1]
            self.assertEqual((message["severity"], message["text"]), ("warning", told["reason"]))
            self.assertIn("The connection of the camera has ended", told["reason"])

    async def test_bits_of_a_camera_are_told(self):
        """From the caps, from the element that takes or passes the samples, and from the sidecar of a recording."""
        for words, expected in (
                (f"picturesrc name=a location={self.folder}/in.npy ! queue ! lapsharpen name=b bit-depth=12 ! fakesink", {"a.src": 12, "b.src": 12}),
                (f"picturesrc name=a location={self.folder}/in.npy ! lapsharpen name=b ! fakesink", {"a.src": 0, "b.src": 0}),
                ("videotestsrc name=a ! capsfilter name=b caps=video/x-raw,format=GRAY16_LE,depth=10 ! fakesink", {"b.src": 10}),
                (f"picturesrc name=a location={self.folder}/kept.npy ! fakesink", {"a.src": 14})):
            if "kept" in words:
                shutil.copy(self.folder + "/in.npy", self.folder + "/kept.npy")
                with open(self.folder + "/kept.npy.json", "w", encoding="ascii") as file:
                    json.dump({"elements": [{"name": "x", "settings": {}}, {"name": "y", "settings": {"bit-depth": "14"}}]}, file)
            served = Served(self.folder, words)
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                views = (await receive(ws, lambda m: m["type"] == "state"))["pads"]
            served.end()
            found = {view["pad"]: view["bit-depth"] for view in views}
            self.assertEqual({pad: found[pad] for pad in expected}, expected, words)

    async def test_results_and_counts_of_a_pause(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session:
            async def get(command, **arguments):
                async with session.get(f"{served.root}/api/{command}", params=arguments) as answer:
                    return await answer.json()
            async def play(state):
                async with session.post(served.root + "/api/pipeline", json={"state": state}) as answer:
                    self.assertEqual(answer.status, 200)

            async def frames():
                return (await get("health"))["frames-out"]
            before = await self.wait_for(frames)
            await play("paused")
            self.assertGreaterEqual((await get("health"))["frames-out"], before)
            told = await get("results", element="sharp")
            self.assertEqual((told["id"], told["age"] >= 0), ("laplacian-focus-v1", True))
            await play("playing")
            self.assertGreaterEqual((await get("health"))["frames-out"], before)
            await play("stopped")
            self.assertGreaterEqual((await get("health"))["frames-out"], before)

    async def test_a_frame_that_reaches_two_sinks_is_one(self):
        served = self.serve(f"picturesrc location={self.folder}/in.npy loop=true framerate=100/1 ! lapsharpen ! tee name=t ! queue ! fakesink name=a sync=true "
                            "t. ! queue ! fakesink name=b sync=true")
        async with aiohttp.ClientSession() as session:
            told = {"frames-out": 0}
            while told["frames-out"] < 50:
                async with session.get(served.root + "/api/health") as answer:
                    told = await answer.json()
                await asyncio.sleep(0.05)
            self.assertLessEqual(told["frames-out"], told["frames-in"] + 1)
            self.assertEqual({s["name"]: s["frames"] > 40 for s in told["sinks"]}, {"a": True, "b": True})
            async with session.get(served.root + "/metrics") as answer:
                text = await answer.text()
            for name in "a", "b":
                self.assertRegex(text, f'gst_imaging_sink_frames_total{{element="{name}"}} [0-9]+')

    async def test_a_pause_shows_the_frame_that_was_sought(self):
        np.save(os.path.join(self.folder, "in.npy"), np.stack([np.roll(PATTERN, i) for i in range(30)]))
        served = self.serve(f"picturesrc location={self.folder}/in.npy framerate=10/1 ! lapsharpen name=sharp focus-measure=true ! fakesink sync=true",
                            "--paused")
        async with aiohttp.ClientSession() as session:
            async def post(command, **body):
                async with session.post(f"{served.root}/api/{command}", json=body) as answer:
                    self.assertEqual(answer.status, 200, await answer.text())
            await post("pipeline", state="paused")
            for frame in 12, 3, 25:
                await post("seek", seconds=frame / 10 + 0.001)

                async def has_arrived():
                    async with session.get(served.root + "/api/results", params={"element": "sharp"}) as answer:
                        return (await answer.json()).get("frame") == frame
                await self.wait_for(has_arrived, frame)
                async with session.get(served.root + "/api/picture?pad=sharp.src") as answer:  # by a view that nobody had before
                    self.assertEqual(answer.status, 200, await answer.read())
                    self.assertEqual(json.loads(answer.headers["X-Picture"])["frame"], frame)
                async with session.get(served.root + "/api/state") as answer:
                    self.assertAlmostEqual((await answer.json())["pipeline"]["position"], frame / 10, delta=0.01)

    async def test_measures_are_those_of_the_frame(self):
        """Against float64 of NumPy: a region that is larger than the picture, and lines."""
        frame = np.random.RandomState(2).randint(0, 65536, (400, 500)).astype(np.uint16)
        np.save(os.path.join(self.folder, "noise.npy"), frame)
        served = self.serve(f"picturesrc location={self.folder}/noise.npy loop=true framerate=20/1 ! identity name=i ! fakesink sync=true")
        x, y, width, height = region = [17, 30, 301, 203]
        async with aiohttp.ClientSession() as session:
            url = (f"{served.root}/api/picture?pad=i.src&width=50&height=50&clip=0&histogram=100&region={region}"
                   "&profile=[3.2,7,120,390.4]").replace(" ", "")
            async with session.get(url) as answer:
                self.assertEqual(answer.status, 200, await answer.read())
                header = json.loads(answer.headers["X-Picture"])
        part = frame[y:y + height, x:x + width].astype(float)
        found = header["statistics"]
        self.assertEqual(found["region"], region)
        one, = found["channels"]
        self.assertEqual((one["n"], one["minimum"], one["maximum"]), (part.size, part.min(), part.max()))
        self.assertAlmostEqual(one["mean"], part.mean(), delta=1e-12 * part.mean())
        self.assertAlmostEqual(one["deviation"], part.std(), delta=1e-12 * part.std())
        edges = found["low"] + found["step"] * np.arange(len(one["counts"]) + 1)
        self.assertLessEqual(len(one["counts"]), 100)
        self.assertEqual(one["counts"], np.histogram(part, edges - 0.5)[0].tolist())
        self.assertEqual((header["window"], header["level"]), (int(frame.max()) - int(frame.min()), (int(frame.max()) + int(frame.min())) / 2))
        n = 384  # rows from 7 to 390.4, and one
        at = np.linspace(0, 1, n)
        xs, ys = np.round(3.2 + at * 116.8).astype(int), np.round(7 + at * 383.4).astype(int)
        self.assertEqual(header["profile"], {"line": [3.2, 7, 120, 390.4], "samples": frame[ys, xs].tolist()})

    async def test_infinities_and_nan_are_told(self):
        """Of samples and of results, as of properties; a sample that is not there is null."""
        frame = np.array([[1, np.nan, np.inf, 0, 0], [-np.inf, 5, 6, 0, 0]], np.float32)
        np.save(os.path.join(self.folder, "f.npy"), np.stack([frame] * 2))
        served = self.serve(f"picturesrc location={self.folder}/f.npy loop=true framerate=20/1 ! identity name=i ! fakesink sync=true")
        async with aiohttp.ClientSession() as session, session.get(
                served.root + "/api/picture?pad=i.src&values=[0,0,3,2]&profile=[-1,0,2,0]&histogram=4") as answer:
            self.assertEqual(answer.status, 200, await answer.read())
            header = json.loads(answer.headers["X-Picture"])
        self.assertEqual(header["values"]["samples"], [[1, "nan", "inf"], ["-inf", 5, 6]])
        self.assertEqual(header["profile"]["samples"], [None, 1, "nan", "inf"])
        self.assertEqual({name: header["statistics"]["channels"][0][name] for name in ("n", "nan", "infinite")}, {"n": 7, "nan": 1, "infinite": 2})
        self.assertEqual(results.plain(frame[:, :3]), [[1, "nan", "inf"], ["-inf", 5, 6]])
        np.testing.assert_array_equal(np.array(results.plain(frame), np.float32), frame)

    async def test_nan_has_a_colour_of_its_own(self):
        """The left half is NaN, the right half the lowest sample but for one."""
        frame = np.zeros((64, 64), np.float32)
        frame[:, :32], frame[63, 63] = np.nan, 1
        np.save(os.path.join(self.folder, "f.npy"), np.stack([frame] * 2))
        served = self.serve(f"picturesrc location={self.folder}/f.npy loop=true framerate=20/1 ! identity name=i ! fakesink sync=true")
        async with aiohttp.ClientSession() as session:
            for colours, right in ("grey", (0, 0, 0)), ("viridis", (0x44, 0x01, 0x54)):
                async with session.get(f"{served.root}/api/picture?pad=i.src&quality=95&clip=0&colours={colours}") as answer:
                    self.assertEqual(answer.status, 200)
                    picture = decoded(await answer.read(), 64, 64)
                for half, colour in (slice(0, 24), (0x60, 0x40, 0x80) if colours == "grey" else (0x80,) * 3), (slice(40, 56), right):
                    np.testing.assert_allclose(picture[:, half].reshape(-1, 3).mean(0), colour, atol=6)

    async def test_a_volume_of_a_pause_shows_its_frame(self):
        """Another number of slices begins with none of them, and no frame comes."""
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ask(ws, do="view", view=1, pad="sharp.src")
            await receive(ws, lambda m: m["type"] == "picture")
            await ask(ws, do="pipeline", state="paused")
            for volume, section in (4, "row"), (0, "frame"), (3, "max-frame"):
                await ask(ws, do="view", view=1, volume=volume, section=section)
                await receive(ws, lambda m: m["type"] == "picture" and m["section"] == section and m["filled"] == (1 if volume else None))

    async def test_measures_have_limits(self):
        served = self.serve("--paused")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for wrong in ({"histogram": 1025}, {"histogram": 1.5}, {"clip": 50}, {"clip": "1"}, {"profile": [1, 2, 3]}, {"profile": [0, 0, 1e10, 0]},
                          {"profile": [0, 0, "1", 0]}, {"region": [0, 0, 0, 4]}, {"bins": 4}):
                reply = await ask(ws, do="view", view=1, pad="sharp.src", **wrong)
                self.assertEqual((reply["ok"], reply["status"]), (False, 400), reply)
            # a line is as long as it likes: its points are counted
            self.assertTrue((await ask(ws, do="view", view=1, pad="sharp.src", profile=[-2e9, 0, 2e9, 40], width=64))["ok"])
            await ask(ws, do="pipeline", state="playing")
            while (message := await ws.receive(10)).type != aiohttp.WSMsgType.BINARY:
                pass
            n = int.from_bytes(message.data[:4], "little")
            self.assertEqual(len(json.loads(message.data[4:4 + n])["profile"]["samples"]), 4096)

    def test_each_member_of_the_settings_of_a_view_is_one_of_the_described(self):
        """Another one would have no default, no limits and no check."""
        settings = GstImaging.ViewSettings()
        for name, told in view.described(GstImaging).items():
            settings.set(name, {"int": "3", "double": "3", "enum": (told.get("values") or [{}])[-1].get("nick")}.get(told["type"], "3,3,3,3"))
        numbers = {}
        for field in GstImaging.ViewSettings.__info__.get_fields():
            value = getattr(settings, field.get_name())
            parts = [part.get_name() for part in type(value).__info__.get_fields()] if hasattr(type(value), "__info__") else []
            numbers[field.get_name()] = [getattr(value, part) for part in parts] or [value]
        self.assertGreater(len(numbers), 15)
        self.assertEqual({name: found for name, found in numbers.items() if not all(found)}, {})

    def test_each_setting_of_a_view_is_on_its_page(self):
        with open(os.path.join(SOURCE, "docs/reference/panel.md"), encoding="utf-8") as file:
            page = file.read().partition("| argument | default | meaning |\n")[2].partition("\n\n")[0]
        told = {}
        for names, default, _meaning in re.findall(r"^\| (`.*?) \| ?(.*?) ?\| (.*) \|$", page, re.MULTILINE):
            names = re.findall("`(.*?)`", names)
            values = default.split(", ") if "," in default else [default] * len(names)
            told.update(zip(names, values))
        self.assertEqual(told.pop("pad"), "")
        self.assertEqual({name: json.loads(value.replace("`", '"')) for name, value in told.items()},
                         {name: setting["default"] for name, setting in view.described(GstImaging).items()})

    async def test_video_in_colour_is_shown(self):
        for caps, names in {"RGB": "RGB", "I420": "YUV", "NV12": "YUV"}.items():
            served = self.serve(f"videotestsrc ! video/x-raw,format={caps},width=64,height=48,framerate=25/1 ! identity name=i ! fakesink sync=true")
            async with aiohttp.ClientSession() as session, session.get(served.root + "/api/picture?pad=i.src") as answer:
                self.assertEqual(answer.status, 200, await answer.read())
                header = json.loads(answer.headers["X-Picture"])
                self.assertEqual((header["channels"], header["components"]), (3, list(names)))

    async def test_views_are_shown_or_not_listed(self):
        served = self.serve("videotestsrc ! video/x-bayer,format=bggr,width=64,height=48 ! fakesink sync=true")
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/state") as answer:
            self.assertEqual((await answer.json())["pads"], [])

    async def test_small_faults_of_requests(self):
        served = self.serve("--paused")
        async with aiohttp.ClientSession() as session:
            async with session.post(served.root + "/api/set", data=b"no gzip", headers={
                    "Content-Type": "application/json", "Content-Encoding": "gzip"}) as answer:
                self.assertEqual(answer.status, 400)
                self.assertIn("Content-Encoding", (await answer.json())["error"])
            async with session.get(served.root + "/api/health", headers={"Host": "[::1]evil"}) as answer:
                self.assertEqual((answer.status, answer.headers.get("Connection")), (403, "close"))
            async with session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                for wrong in {"element": []}, {"element": {}, "follow": False}, {"element": "sharp", "follow": "yes"}:
                    reply = await ask(ws, do="follow", **wrong)
                    self.assertEqual((reply["ok"], reply["status"]), (False, 400), reply)
                self.assertTrue((await ask(ws, do="record", pad="sharp.src", path="none.npy"))["ok"])
                self.assertTrue((await ask(ws, do="pipeline", state="stopped"))["ok"])
                await ask(ws, do="pipeline", state="playing")
            async with session.get(served.root + "/api/picture?pad=source.src&crop=[0,0,30,30]&values=[0,0,30,30]&colours=viridis") as answer:
                self.assertEqual(answer.status, 200)
                self.assertIsNone(json.loads(answer.headers["X-Picture"])["pixels"])
            async with session.get(served.root + "/api/picture?pad=source.src&values=[0,0,64,48]") as answer:
                self.assertEqual(answer.status, 422)
                self.assertIn("header", (await answer.json())["error"])

    async def test_words_of_the_command(self):
        spaced = os.path.join(self.folder, "a b.npy")
        shutil.copy(os.path.join(self.folder, "in.npy"), spaced)
        served = self.serve("picturesrc", "name=source", "location=" + spaced, "loop=true", "!", "lapsharpen", "!", "fakesink", "sync=true")
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/state") as answer:
            found = {(e["name"], p["name"]): p["value"] for e in (await answer.json())["elements"] for p in e["properties"]}
        self.assertEqual(found["source", "location"], spaced)
        for words, arguments in (("is not UTF-8", ["picturesrc", "location=caf\udce9.npy", "!", "fakesink"]), ("there are: sharpen, ao", ["sharpn"]),
                                 ("0 to 10", ["sharpen", "amount=20"]), ("no such folder", ["sharpen", "--files", self.folder + "/none"])):
            told = self.refused(*arguments)
            self.assertEqual(told[0], 2, told)
            self.assertIn(words, told[1])

    async def test_a_recording_that_fails_ends_at_once(self):
        """Two panels, one file: picturesink has it locked, so the second recording fails with its first frame."""
        one, two = self.serve(), self.serve()
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(one.root + "/ws", max_msg_size=0) as a, session.ws_connect(two.root + "/ws", max_msg_size=0) as b:
                self.assertIn("result", await ask(a, do="record", pad="sharp.src", path="r.npy"))
                await receive(a, lambda m: m["type"] == "recording" and m["recording"] and m["recording"]["frames"] > 2)
                await b.send_json({"do": "record", "pad": "sharp.src", "path": "r.npy", "replace": True})
                told = await receive(b, lambda m: m["type"] == "message" and m["severity"] == "error", timeout=5)
                self.assertIn("The recording of sharp.src", told["text"])
                async with session.get(two.root + "/api/state") as answer:
                    state = await answer.json()
                self.assertEqual((state["recording"], state["pipeline"]["state"]), (None, "playing"))
                n = (await ask(a, do="record-stop"))["result"]["frames"]
        self.assertEqual(len(np.load(os.path.join(self.data, "r.npy"))), n)

    async def test_a_snapshot_that_waits_keeps_nobody_waiting(self):
        """No frame comes for minutes: others are answered, and a signal ends the panel at once."""
        served = self.serve(f"picturesrc location={self.folder}/in.npy loop=true framerate=1/1000 ! lapsharpen name=sharp ! fakesink sync=true")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await receive(ws, lambda m: "elements" in m)
            for i in range(8):
                await ws.send_json({"id": 100 + i, "do": "snapshot", "pad": "sharp.src", "path": f"s{i}.npy"})
            began = time.monotonic()
            for _ in range(5):
                async with session.get(served.root + "/api/state") as answer:
                    self.assertEqual(answer.status, 200)
            self.assertLess(time.monotonic() - began, 3)
            served.process.send_signal(signal.SIGTERM)
            served.process.wait(8)

    async def test_a_closed_terminal_completes_the_recording(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            self.assertIn("result", await ask(ws, do="record", pad="sharp.src", path="r.npy"))
            await receive(ws, lambda m: m["type"] == "recording" and m["recording"] and m["recording"]["frames"] > 2)
            served.process.send_signal(signal.SIGHUP)
            served.process.wait(20)
        with open(os.path.join(self.data, "r.npy.json"), encoding="utf-8") as file:
            told = json.load(file)
        self.assertTrue(told["complete"])
        self.assertEqual(len(np.load(os.path.join(self.data, "r.npy"))), told["frames"])

    async def test_what_is_no_json_is_refused_in_a_sentence(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session:
            for body, charset in (("[" * 30000, "utf-8"), ('{"element": NaN}', "utf-8"), ('{"element": 1e999}', "utf-8"),
                                  ('{"element": "\\ud800"}', "utf-8"), ("{}", "nonsense")):
                async with session.post(served.root + "/api/set", data=body.encode(),
                                        headers={"Content-Type": f"application/json; charset={charset}"}) as answer:
                    self.assertEqual(answer.status, 400, body[:40])
                    self.assertIn("The body", (await answer.json())["error"])
            async with session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                for text in "[" * 30000, '{"id": NaN, "do": "elements"}', '{"id": 1e999, "do": "elements"}', '{"do": "\\ud800"}':
                    await ws.send_str(text)
                    reply = await receive(ws, lambda m: m["type"] == "reply")
                    self.assertEqual((reply["ok"], reply["status"]), (False, 400), text[:40])
                self.assertTrue((await ask(ws, do="elements"))["ok"])

    async def test_links_in_numbered_names_do_not_leave_the_folder(self):
        outside = os.path.join(self.folder, "outside.npy")
        shutil.copy(os.path.join(self.folder, "in.npy"), outside)
        for name in "f00000.npy", "g.npy.json":
            os.symlink(outside, os.path.join(self.data, name))
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for path in "f%05d.npy", "f%d.npy", "g.npy", "f00000.npy":
                reply = await ask(ws, do="record", pad="sharp.src", path=path, frames=2)
                self.assertEqual((reply["ok"], reply["status"]), (False, 403), reply)
            self.assertTrue((await ask(ws, do="snapshot", pad="sharp.src", path="h.npy"))["ok"])
            self.assertTrue((await ask(ws, do="files", folder=self.data))["ok"])
        self.assertEqual(len(np.load(outside)), 3)

    async def test_warnings_of_a_recording_are_told(self):
        with open(os.path.join(self.data, "h.npy.json"), "w", encoding="utf-8") as file:
            file.write('{"of": "somebody else"}')
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ws.send_json({"do": "record", "pad": "sharp.src", "path": "h.npy", "frames": 5})
            told = await receive(ws, lambda m: m["type"] == "message" and m["severity"] == "warning", timeout=5)
        self.assertIn("h.npy.json", told["text"])
        served.process.terminate()
        _out, errors = served.process.communicate(timeout=TIMEOUT)
        self.assertEqual(errors.count(told["text"]), 1)  # on the terminal as well

    async def test_two_panels_keep_the_presets_of_both(self):
        one, two = self.serve(), self.serve()
        async with aiohttp.ClientSession() as session:
            async def post(served, command, name):
                async with session.post(f"{served.root}/api/{command}", json={"name": name}) as answer:
                    return await answer.json()
            self.assertEqual(await post(one, "preset-save", "a"), {"presets": ["a"]})
            self.assertEqual(await post(two, "preset-save", "b"), {"presets": ["a", "b"]})
            self.assertEqual(await post(one, "preset-save", "c"), {"presets": ["a", "b", "c"]})
            self.assertEqual(await post(two, "preset-delete", "a"), {"presets": ["b", "c"]})
            self.assertIn("no preset", (await post(one, "preset-load", "a"))["error"])

    async def test_a_file_of_presets_that_is_none(self):
        first = self.serve()
        async with aiohttp.ClientSession() as session:
            async with session.post(first.root + "/api/preset-save", json={"name": "a"}) as answer:
                self.assertEqual(answer.status, 200)
            path, = glob.glob(self.folder + "/gst-imaging/panel/*.json")
            for text in "5", "null", "[" * 200000, '{"a": 5}':
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                async with session.get(first.root + "/api/state") as answer:
                    self.assertEqual((answer.status, (await answer.json())["presets"]), (200, []))
                async with session.post(first.root + "/api/preset-save", json={"name": "b"}) as answer:
                    self.assertEqual(answer.status, 409)
                    self.assertIn("is damaged", (await answer.json())["error"])
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(file.read(), text)
            os.remove(path)
            async with session.post(first.root + "/api/preset-save", json={"name": "b"}) as answer:
                self.assertEqual((answer.status, await answer.json()), (200, {"presets": ["b"]}))

    async def test_a_lock_on_the_presets_does_not_stop_the_panel(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session:
            async with session.post(served.root + "/api/preset-save", json={"name": "a"}) as answer:
                self.assertEqual(answer.status, 200)
            path, = glob.glob(self.folder + "/gst-imaging/panel/*.json.lock")
            with open(path, "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                start = time.monotonic()
                async with session.post(served.root + "/api/preset-save", json={"name": "b"}) as answer:
                    self.assertEqual(answer.status, 409)
                    self.assertIn("Another panel is writing", (await answer.json())["error"])
                self.assertLess(time.monotonic() - start, 5)
            async with session.post(served.root + "/api/preset-save", json={"name": "b"}) as answer:
                self.assertEqual(await answer.json(), {"presets": ["a", "b"]})

    async def test_what_is_no_regular_file_does_not_stop_the_presets(self):
        key = "fakesrc ! fakesink"
        path = os.path.join(self.folder, "gst-imaging", "panel", os.path.basename(presets.store(key)))
        os.makedirs(os.path.dirname(path))
        for end in "", ".lock", ".new":
            with contextlib.suppress(FileNotFoundError):  # the lock of the panel before
                os.unlink(path + end)
            os.mkfifo(path + end)
            served = Served(self.folder, key, "--paused")
            try:
                async with aiohttp.ClientSession() as session:
                    async with session.post(served.root + "/api/preset-save", json={"name": "a"}, timeout=aiohttp.ClientTimeout(10)) as answer:
                        self.assertIn(answer.status, (409, 422), end)
                    async with session.get(served.root + "/api/health") as answer:
                        self.assertEqual(answer.status, 200)
            finally:
                served.end()
            os.unlink(path + end)

    def test_the_room_for_raw_spectra_is_reserved(self):
        """A file with holes on a full disk is a SIGBUS."""
        array = spectra.new_array(os.path.join(self.folder, "a.npy"), np.dtype("u2"), (4, 64, 2048))
        status = os.stat(os.path.join(self.folder, "a.npy"))
        self.assertGreaterEqual(status.st_blocks * 512, array.nbytes)
        np.zeros((2, 64, 2048), np.uint16).tofile(os.path.join(self.folder, "scan.raw"))
        with unittest.mock.patch("os.posix_fallocate", side_effect=OSError(errno.ENOSPC, "No space left on device")), \
                unittest.mock.patch.dict(os.environ, {"TMPDIR": self.data}), unittest.mock.patch("tempfile.tempdir", None):
            told = self.refused("oct", os.path.join(self.folder, "scan.raw"), "--samples", "2048", "--lines", "64")
        self.assertEqual((told[0], "No space left on device. TMPDIR names another folder." in told[1]), (4, True), told)
        self.assertEqual(os.listdir(self.data), [])

    def test_a_signal_before_the_address_leaves_nothing(self):
        np.zeros((100, 64, 2048), np.uint16).tofile(os.path.join(self.folder, "scan.raw"))
        environment = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"), "XDG_DATA_HOME": self.folder, "TMPDIR": self.data}
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            process = subprocess.Popen([sys.executable, "-m", "gst_imaging", "panel", "oct", os.path.join(self.folder, "scan.raw"), "--samples", "2048",
                                        "--lines", "64", "--lambda", "800", "900"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            end = time.monotonic() + TIMEOUT
            while not glob.glob(self.data + "/*/") and process.poll() is None and time.monotonic() < end:  # tempfile tries the folder with a file
                time.sleep(0.002)
            found = glob.glob(self.data + "/*/")
            process.send_signal(number)
            _out, errors = process.communicate(timeout=TIMEOUT)
            self.assertTrue(found, errors)
            self.assertNotIn("Traceback", errors)
            self.assertEqual(os.listdir(self.data), [], number)

    def test_folders_of_a_panel_that_was_killed_are_removed(self):
        np.zeros((10, 48, 64), np.uint16).tofile(os.path.join(self.folder, "scan.raw"))
        temporary = os.path.join(self.folder, "temporary")
        os.mkdir(temporary)
        words = ("view", os.path.join(self.folder, "scan.raw"), "--samples", "64", "--lines", "48")
        killed, other = (Served(self.folder, *words, env={"TMPDIR": temporary}) for _ in range(2))
        self.addCleanup(other.end)
        both = set(os.listdir(temporary))
        self.assertEqual(len(both), 2)
        killed.process.kill()
        killed.process.communicate(timeout=TIMEOUT)
        third = Served(self.folder, *words, env={"TMPDIR": temporary})
        left = set(os.listdir(temporary))
        third.end()
        self.assertEqual((len(left), len(left & both)), (2, 1))
        self.assertEqual(len(os.listdir(temporary)), 1)  # of the one that runs

    def test_a_closed_output_is_no_traceback(self):
        process = subprocess.Popen([sys.executable, "-m", "gst_imaging", "panel", "fakesrc ! fakesink"], preexec_fn=lambda: os.close(1),
                                   env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")}, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.terminate()
        _out, errors = process.communicate(timeout=TIMEOUT)
        self.assertNotIn("Traceback", errors)

    def test_a_property_that_is_not_there_cannot_be_allowed(self):
        for allowed in "nosuch.prop", "fakesrc.nosuch":
            told = self.refused("fakesrc ! fakesink", "--allow", allowed)
            self.assertEqual((told[0], "with a property" in told[1]), (2, True), told)

    async def test_a_client_that_goes_in_the_middle_of_a_body(self):
        served = self.serve()  # its end looks for tracebacks
        for hard in True, False:
            for _ in range(5):
                client = socket.create_connection(("127.0.0.1", served.port))
                client.sendall(b"POST /api/undo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
                await asyncio.sleep(0.05)
                if hard:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
        await asyncio.sleep(0.2)
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/health") as answer:
            self.assertEqual(answer.status, 200)

    async def test_the_end_of_a_slow_recording_holds_nothing_up(self):
        noise = np.random.RandomState(0).randint(0, 65536, (2, 1024, 1024)).astype(np.uint16)
        np.save(os.path.join(self.folder, "noise.npy"), noise)
        served = self.serve(f"picturesrc location={self.folder}/noise.npy loop=true framerate=100/1 ! identity name=i ! fakesink sync=true")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            self.assertTrue((await ask(ws, do="record", pad="i.src", path="r%05d.png"))["ok"])
            await asyncio.sleep(0.4)
            await ws.send_json({"id": 1, "do": "record-stop"})
            begin = time.monotonic()
            told = await receive(ws, lambda m: m["type"] == "recording" and m["recording"] and m["recording"]["ending"])
            self.assertGreater(told["recording"]["waiting"], 0)
            await ws.send_json({"id": 2, "do": "health"})
            replies = {}
            while set(replies) != {1, 2}:  # in any order
                told = await receive(ws, lambda m: m.get("id") in (1, 2), TIMEOUT)
                replies[told["id"]] = told
                if told["id"] == 2:
                    self.assertLess(time.monotonic() - begin, 2)
            reply = replies[1]
            self.assertTrue(reply["ok"], reply)
            told = reply["result"]
            self.assertEqual((told["complete"], told["frames"]), (True, len(glob.glob(self.data + "/r*.png"))))
            self.assertTrue((await ask(ws, do="record", pad="i.src", path="again.npy"))["ok"])

    async def test_a_snapshot_that_fails_leaves_nothing_to_the_collector(self):
        """Also before the collector of cycles has run: the types of files, the wait for a frame, and the disk may be to blame."""
        def fail(self, seconds=0):
            if seconds:
                raise Refusal(422, "The disk is full.")
            return wait(self)

        wait = recording.Recording.wait
        pipeline = Gst.parse_launch("".join(
            f"videotestsrc is-live=true {of_source} ! video/x-raw,format={form},width=32,height=32 ! identity name={name} ! fakesink "
            for name, form, of_source in (("colour", "I420", ""), ("grey", "GRAY8", ""), ("none", "GRAY8", "num-buffers=2"))))
        panel = PanelOf(Gst, GstImaging, pipeline, "x", folders=[self.data])
        server = Server(panel)
        server.loop, server.done = asyncio.get_running_loop(), asyncio.Event()
        thread = threading.Thread(target=panel.run)
        thread.start()
        gc.disable()
        try:
            await server.play("playing")

            async def has_pads():
                return {"colour.src", "none.src", "grey.src"} <= {known["pad"] for known in await server.do(panel.pads)}
            await self.wait_for(has_pads)
            for view, path, told in ("colour.src", "a.npy", "cannot hold"), ("none.src", "b.npy", "No frame"), ("grey.src", "c.npy", "disk is full"):
                counts = []
                for _ in range(4):
                    with unittest.mock.patch("gst_imaging.panel.server.FIRST_FRAME", 0.05 if view == "none.src" else TIMEOUT), \
                            unittest.mock.patch.object(recording.Recording, "wait", fail if "disk" in told else wait):
                        try:  # assertRaises() would clear the frames
                            self.fail(await server.command("snapshot", {"pad": view, "path": path, "replace": True}))
                        except Refusal as refusal:
                            self.assertIn(told, str(refusal))
                    for _ in range(3):  # of the panel, of threads that end
                        await server.do(lambda: None)
                        await asyncio.sleep(0.05)
                    counts.append(len(os.listdir("/proc/self/fd")))
                self.assertEqual(counts[1:], counts[:1] * 3, told)
        finally:
            gc.enable()
            panel.stop()
            await asyncio.to_thread(thread.join)

    def test_frames_of_leaky_queues_are_counted(self):
        """Six of ten are dropped, of old ones or new ones; those that a flush or a stop throws away are not, nor those of a queue that waits."""
        for leaky, dropped in ("downstream", 6), ("upstream", 6), ("no", 0):
            with self.subTest(leaky):
                # the sink waits for the clock with the first frame, and three wait in the queue
                pipeline = Gst.parse_launch(f"appsrc name=source format=time caps=video/x-raw,format=GRAY8,width=4,height=4,framerate=1/1 ! queue name=q leaky={leaky} "
                                            "max-size-buffers=3 max-size-bytes=0 max-size-time=0 ! fakesink sync=true")
                panel = PanelOf(Gst, GstImaging, pipeline, "x")
                source, queue = pipeline.get_by_name("source"), pipeline.get_by_name("q")
                source.connect("seek-data", lambda _source, _place: True)
                self.addCleanup(panel.states.end)

                def settle(n):
                    """Pushes n frames. Returns: the frames that are dropped"""
                    for _ in range(n):
                        buffer = Gst.Buffer.new_allocate(None, 16, None)
                        buffer.pts = Gst.SECOND * 1000
                        while source.emit("push-buffer", buffer) == Gst.FlowReturn.FLUSHING:  # it has not started yet
                            time.sleep(0.01)
                    end = time.monotonic() + 2
                    while time.monotonic() < end and (leaky != "no" and source.get_property("current-level-buffers") or
                                                     queue.get_property("current-level-buffers") < (3 if n > 1 else 0)):
                        time.sleep(0.01)
                    time.sleep(0.1)
                    panel.health()
                    return panel.health()["dropped"]

                panel.states.set(Gst.State.PLAYING)
                settle(1)
                panel.states.wait(TIMEOUT)
                self.assertEqual(settle(9), dropped)
                source.set_property("stream-type", "seekable")
                self.assertTrue(panel.flush_to(0))
                self.assertEqual(panel.health()["dropped"], dropped)
                settle(1)
                self.assertEqual(settle(9), 2 * dropped)
                panel.states.set(Gst.State.NULL)
                panel.health()  # in the middle
                panel.states.wait(TIMEOUT)
                source.set_property("stream-type", "stream")  # or the seek at the start throws away what was pushed before it
                panel.states.set(Gst.State.PLAYING)
                panel.states.wait(0.5)
                self.assertEqual(panel.health()["dropped"], 2 * dropped)
                settle(1)
                panel.states.wait(TIMEOUT)
                self.assertEqual(settle(9), 3 * dropped)

    def counting(self, description):
        """Returns: a panel in a thread of its own, and a function that changes its state and waits for a condition. Nothing reads its health"""
        def to(state, condition=lambda: True):
            answer = panel.submit(panel.play, state).result(TIMEOUT)
            with contextlib.suppress(Refusal):  # an error may be in time for the answer
                answer.result(TIMEOUT)
            end = time.monotonic() + TIMEOUT
            while time.monotonic() < end and not (condition() and not panel.states.is_busy()):
                time.sleep(0.01)

        panel = PanelOf(Gst, GstImaging, Gst.parse_launch(description), "x")
        thread = threading.Thread(target=panel.run)
        self.addCleanup(thread.join)
        self.addCleanup(panel.stop)
        thread.start()
        return panel, to

    def frames_of(self, panel):
        told = panel.submit(panel.health).result(TIMEOUT)
        return told["frames-in"], told["frames-out"]

    def test_counts_outlast_the_end_of_the_data_and_a_stop(self):
        """Each pass has as many frames: no count is seen to fall."""
        np.save(os.path.join(self.folder, "twenty.npy"), np.zeros((20, 48, 64), np.uint8))
        for between in "paused", "stopped":
            with self.subTest(between):
                panel, to = self.counting(f"picturesrc location={self.folder}/twenty.npy ! lapsharpen ! fakesink sync=false")
                for _ in range(3):
                    to("playing", lambda: panel.is_at_end)
                    to(between)
                self.assertEqual(self.frames_of(panel), (60, 60))

    def test_counts_outlast_an_error(self):
        panel, to = self.counting("videotestsrc ! video/x-raw,format=GRAY8,width=64,height=48 ! identity error-after=16 ! lapsharpen ! fakesink sync=false")
        for _ in range(2):
            to("playing", lambda: panel.state_name == "failed")
        self.assertEqual(self.frames_of(panel), (30, 30))

    def test_counts_outlast_pauses(self):
        """Every other frame or so is too late. One may be on its way at the end, or pass while the pipeline pauses."""
        panel, to = self.counting("videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=48,framerate=100/1 ! lapsharpen "
                                  "! identity name=slow sleep-time=20000 ! fakesink sync=true max-lateness=1000000 qos=false")
        frames = []
        panel.pipeline.get_by_name("slow").connect("handoff", lambda _slow, frame: frames.append(frame.pts))
        for n in 25, 50, 75:
            to("playing", lambda: len(frames) > n)
            to("paused")
        told = panel.submit(panel.health).result(TIMEOUT)
        self.assertGreater(told["frames-in"], 30)
        self.assertGreater(told["dropped"], 10)
        self.assertAlmostEqual(told["frames-out"] + told["dropped"], told["frames-in"], delta=3)

    def test_frames_that_are_not_written_in_time_are_lost(self):
        noise = np.random.RandomState(0).randint(0, 65536, (2, 1024, 1024)).astype(np.uint16)
        np.save(os.path.join(self.folder, "noise.npy"), noise)
        pipeline = Gst.parse_launch(f"picturesrc location={self.folder}/noise.npy loop=true framerate=50/1 ! identity name=i ! fakesink sync=true")
        pipeline.set_state(Gst.State.PLAYING)
        self.addCleanup(pipeline.set_state, Gst.State.NULL)
        warned, path = [], os.path.join(self.data, "r%05d.png")
        run = recording.Recording(Gst, GstImaging, pipeline.get_by_name("i").get_static_pad("src"), "i.src", path, 0, warned.append)
        self.wait_until(lambda: run.state()["waiting"] > 20)
        with unittest.mock.patch.object(recording, "PATIENCE", 0.2):
            begin = time.monotonic()
            ended = run.stop()
            self.assertLess(time.monotonic() - begin, 0.2)
            told = ended.result(TIMEOUT)
        self.assertFalse(told["complete"])
        self.assertEqual((told["frames"] + told["lost"], told["waiting"]), (run.n_recorded() + run.tap.get_n_lost(), 0))
        self.assertEqual((told["frames"], len(warned)), (len(glob.glob(self.data + "/r*.png")), 1))
        self.assertIn(f'{told["lost"]} frames were not written', warned[0])
        with open(path + ".json", encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual((told["complete"], told["frames"]), (False, len(glob.glob(self.data + "/r*.png"))))

    async def test_the_field_of_offsets_has_all_rows_of_one_pass(self):
        served = Served(self.folder, "insar")
        self.addCleanup(served.end)
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ask(ws, do="follow", element="insar")
            last, passes = None, []
            end = time.monotonic() + TIMEOUT
            while len(passes) < 4 and time.monotonic() < end:
                told = await receive(ws, lambda m: m["type"] == "results")
                if last and told["frame"] < last["frame"]:
                    passes.append(last)
                last = told
                rows = {patch[2] for patch in told["field"]}
                self.assertEqual(len(rows) + told["summary"]["missed"], told["frame"] + 1)
                self.assertEqual(len(told["field"]), len({(patch[0], patch[2]) for patch in told["field"]}), "of two passes")
            for told in passes[1:]:
                self.assertEqual((told["summary"]["missed"], told["frame"]), (0, passes[0]["frame"]))

    def spikes(self):
        """A pipeline in which one frame of eight has edges, the others none."""
        frames = np.full((8, 48, 64), 100, np.uint8)
        frames[5, ::2] = 200
        np.save(os.path.join(self.folder, "in.npy"), frames)
        return self.serve(rate=80)

    async def test_a_spike_of_one_frame_is_in_the_results(self):
        """Between two messages: minimum, mean and maximum of all frames that were read, and how many were not."""
        served, last, n, n_spikes = self.spikes(), None, 0, 0
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await ask(ws, do="follow", element="sharp")
            while n < 20:
                told = await receive(ws, lambda m: m["type"] == "results")
                between, frames = told["between"], range(told["frame"], told["frame"] + 1)
                if last is not None:
                    frames = range(last + 1, told["frame"] + 1)
                    self.assertEqual(between["frames"] + between["missed"], len(frames))
                last = told["frame"]
                if between["missed"]:
                    continue
                n += 1
                spikes = sum(frame % 8 == 5 for frame in frames)
                n_spikes += spikes
                top = between["maximum"]["variance"]
                self.assertEqual(top > 0, spikes > 0, told)
                self.assertEqual(between["minimum"]["variance"] == 0, spikes < len(frames))
                self.assertAlmostEqual(between["mean"]["variance"], top * spikes / len(frames), places=6)
        self.assertGreater(n_spikes, 5)

    async def test_metrics_have_results(self):
        """Also while nobody follows; minimum and maximum are those since the last reading."""
        served = self.spikes()
        async with aiohttp.ClientSession() as session:
            async def values():
                async with session.get(served.root + "/metrics") as answer:
                    text = await answer.text()
                found = re.findall(r'^gst_imaging_result_variance(_minimum|_maximum|)\{element="sharp",results="laplacian-focus-v1"\} (.*)$', text, re.M)
                return text, {end: float(value) for end, value in found}

            text, first = await values()
            self.assertEqual(set(first), {"", "_minimum", "_maximum"}, text)
            self.assertIn("# HELP gst_imaging_result_variance variance in counts^2, of the newest frame.\n# TYPE gst_imaging_result_variance gauge\n", text)

            async def text_with_spike():
                text, later = await values()
                return later.get("_maximum", 0) > later.get("_minimum", 0) == 0 and text
            self.assertIn("gst_imaging_result_mean{", await self.wait_for(text_with_spike))
            async with session.post(served.root + "/api/pipeline", json={"state": "stopped"}) as answer:
                self.assertEqual(answer.status, 200)
            self.assertNotIn("gst_imaging_result", (await values())[0])

    def test_a_spread_has_all_numbers(self):
        found = spread.Spread()
        for summary, missed in ({"a": -2, "b": None}, 0), ({"a": 5}, 3), ({"a": 3, "c": 7.5}, 0):
            found.add(summary, missed)
        self.assertEqual(found.told(), {"frames": 3, "missed": 3, "minimum": {"a": -2, "c": 7.5}, "mean": {"a": 2, "c": 7.5}, "maximum": {"a": 5, "c": 7.5}})

    def test_units_of_summaries(self):
        message = {"id": "i", "fields": ["x", "dx", "variance"], "unit": ["mm", "px", ""], "summary": {"rms": 2, "mean-dx": 1, "valid": 3, "variance": None}}
        text = metrics.prometheus({'a"b': (message, spread.Spread())})
        self.assertIn("# HELP gst_imaging_result_rms rms in px, of the newest frame.\n", text)
        self.assertIn('gst_imaging_result_mean_dx{element="a\\"b",results="i"} 1\n', text)
        self.assertIn("# HELP gst_imaging_result_valid valid, of the newest frame.\n", text)
        self.assertNotIn("variance", text)
        self.assertNotIn("minimum", text)

    def test_rows_that_are_missing_are_counted(self):
        field = results.Field()
        for row, missed, n in (3, 3, 2), (4, 3, 4), (7, 5, 6), (0, 0, 2), (1, 0, 4), (1, 1, 2):
            field.add(row, [[0, 0, row, 0, 9]] * 2)
            self.assertEqual((field.missed(), len(field.patches())), (missed, n), row)
        for row in range(2, 5):
            field.add(row, [[0] * 5] * (results.MAX_PATCHES // 2))
        self.assertEqual((field.missed(), len(field.patches())), (3, results.MAX_PATCHES))

    def test_cells_that_are_saturated_are_counted(self):
        """Also those without a centroid; a column that nobody has measured is missing."""
        cells = np.array([[3, 0, 4], [-3, 0, 0], [100, 100, 5], [0, np.nan, 0]], np.float32)
        measured = {"fields": ["dx", "dy", "flags"], "by-field": False, "values": cells, "flags": cells[:, 2].astype(np.uint8)}
        element = Gst.ElementFactory.make("shcentroid")
        found = kinds.of("shcentroid").sum_up(measured, element)
        self.assertEqual(found, {"valid": 2, "rms-dx": 3, "rms-dy": 0, "rms": 3, "mean-dx": 0, "mean-dy": 0, "saturated": 2})
        del measured["flags"]
        self.assertNotIn("saturated", kinds.of("shcentroid").sum_up(measured, element))
        self.assertEqual(kinds.of("shcentroid").sum_up({**measured, "fields": ["x", "y"]}, element), {})

    async def test_saturated_cells_are_not_told_where_no_flag_has_them(self):
        """All of these are: only fields=all says so, of samples that have a largest one."""
        for dtype in "uint8", "float32":
            np.save(os.path.join(self.folder, dtype + ".npy"), np.full((2, 40, 40), 255, dtype))
        for dtype, settings, saturated in (("uint8", "fields=all", 4), ("uint8", "fields=slopes", None), ("uint8", "fields=xy", None),
                                           ("uint8", "saturation=-1", None), ("float32", "", None), ("float32", "saturation=255", 4)):
            with self.subTest(dtype=dtype, settings=settings):
                served = self.serve(f"picturesrc location={self.folder}/{dtype}.npy loop=true framerate=20/1 ! "
                                    f"shcentroid name=ao columns=2 rows=2 pitch-x=20 pitch-y=20 {settings} ! fakesink sync=true")
                async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws") as ws:
                    await ws.send_json({"do": "follow", "element": "ao", "follow": True})
                    told = await receive(ws, lambda m: m["type"] == "results", TIMEOUT)
                    async with session.get(served.root + "/metrics") as answer:
                        page = await answer.text()
                self.assertEqual(told["summary"].get("saturated"), saturated)
                self.assertEqual("gst_imaging_result_saturated" in page, saturated is not None)

    async def test_requests_behind_one_that_waits_are_limited(self):
        served = self.serve()
        waits = "GET /api/picture?pad=sharp.src&rate=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for ahead in waits, waits + UPGRADE:
            with socket.create_connection(("127.0.0.1", served.port), TIMEOUT) as client:
                client.sendall(ahead.encode())
                client.settimeout(3)
                with self.assertRaises((ConnectionError, TimeoutError)):  # it would take all; newer versions of aiohttp read no more
                    for _ in range(2000):
                        client.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
            async with aiohttp.ClientSession() as session, session.get(served.root + "/api/health") as answer:
                self.assertEqual(answer.status, 200)

    async def test_messages_without_content_are_counted(self):
        served = self.serve()
        with socket.create_connection(("127.0.0.1", served.port), TIMEOUT) as client:
            client.sendall(UPGRADE.encode())
            client.recv(1 << 20)
            client.settimeout(0.5)
            end, is_closed = time.monotonic() + 10, False
            while not is_closed and time.monotonic() < end:
                try:
                    client.sendall(bytes([0x81, 0x80, 0, 0, 0, 0]) * 20000)
                except TimeoutError:
                    pass
                except ConnectionError:
                    is_closed = True
            self.assertTrue(is_closed)
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/health") as answer:
            self.assertEqual(answer.status, 200)

    async def test_another_connection_brings_no_more_commands(self):
        served = self.serve()
        begin, done = time.monotonic(), 0
        for _ in range(4):
            async with aiohttp.ClientSession() as session:
                for _ in range(100):
                    async with session.get(served.root + "/api/messages") as answer:
                        done += answer.status == 200
        self.assertLessEqual(done, guard.BURST + guard.RATE * (time.monotonic() - begin) + 1)
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            statuses = set()
            for _ in range(20):
                statuses.add((await ask(ws, do="messages")).get("status"))
            self.assertIn(429, statuses)

    async def test_elements_whose_enumerations_nobody_has_used(self):
        served = self.serve("fakesrc ! fakesink")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            self.assertEqual(len((await receive(ws, lambda m: m["type"] == "state"))["elements"]), 2)

    async def test_settings_pictures_and_results(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            state = await receive(ws, lambda m: m["type"] == "state")
            self.assertEqual([e["name"] for e in state["elements"] if e["ours"]], ["source", "sharp"])
            self.assertEqual({pad["pad"]: pad["passes"] for pad in state["pads"]}, {"source.src": True, "sharp.src": True})
            # true samples
            await ask(ws, do="view", view=2, pad="source.src", values=[3, 5, 2, 2], width=32, height=32)
            picture = await receive(ws, lambda m: m["type"] == "picture")
            expected = (PATTERN[5:7, 3:5] + 1000 * (picture["frame"] % 3)).tolist()
            self.assertEqual(picture["values"], {"crop": [3, 5, 2, 2], "samples": expected})
            self.assertEqual((picture["width"], picture["height"], picture["view"]), (32, 24, 2))
            self.assertTrue(picture["jpeg"].startswith(b"\xff\xd8"))
            # a setting, its change, undo
            reply = await ask(ws, do="set", element="sharp", values={"amount": 2.5, "neighbours": "8"})
            self.assertEqual(reply["result"], {"values": {"amount": 2.5, "neighbours": "8"}})
            undone = await ask(ws, do="undo")
            self.assertIn({"element": "sharp", "property": "amount", "value": 1.0}, undone["result"]["undone"])
            await ws.send_json({"do": "set", "element": "sharp", "values": {"border-value": 7}})
            await receive(ws, lambda m: m["type"] == "property" and m["name"] == "border-value" and m["value"] == 7)
            # results
            await ask(ws, do="follow", element="sharp", follow=True)
            results = await receive(ws, lambda m: m["type"] == "results")
            self.assertEqual(results["fields"], ["variance", "mean"])
            self.assertEqual(set(results["summary"]), {"variance", "mean"})
            # presets
            await ask(ws, do="preset-save", name="before")
            await ask(ws, do="set", element="sharp", values={"amount": 4})
            compared = await ask(ws, do="preset-compare", a="before")
            self.assertEqual(compared["result"]["differences"], [{"element": "sharp", "property": "amount", "a": 1.0, "b": 4.0}])
            await ask(ws, do="preset-load", name="before")
            state = (await ask(ws, do="state"))["result"]
            amount = next(p for e in state["elements"] if e["name"] == "sharp" for p in e["properties"] if p["name"] == "amount")
            self.assertEqual((amount["value"], state["presets"]), (1.0, ["before"]))
            health = await receive(ws, lambda m: m["type"] == "health")
            self.assertEqual((health["dropped"], health["clients"]), (0, 1))
            async with session.get(served.root + "/metrics") as answer:
                self.assertIn('gst_imaging_frames_total{element="sharp"}', await answer.text())

    async def test_what_is_refused(self):
        served = self.serve(elements="lapsharpen name=sharp border=constant ! identity name=other ! ")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws") as ws:
            cases = [
                (422, "beyond its range", {"do": "set", "element": "sharp", "values": {"amount": 11}}),
                (422, "is none of", {"do": "set", "element": "sharp", "values": {"neighbours": "5"}}),
                (400, "is a number", {"do": "set", "element": "sharp", "values": {"amount": "much"}}),
                (404, "no property", {"do": "set", "element": "sharp", "values": {"gain": 1}}),
                (404, "no element", {"do": "set", "element": "none", "values": {"gain": 1}}),
                (403, "--allow other.silent", {"do": "set", "element": "other", "values": {"silent": True}}),
                (403, "stop the pipeline", {"do": "set", "element": "sharp", "values": {"backend": "cpu"}}),
                (404, "no command", {"do": "quit"}),
                (400, "needs element", {"do": "set"}),
                (404, "no action", {"do": "call", "element": "sharp", "action": "explode"}),
                (404, "no pad", {"do": "view", "view": 1, "pad": "sharp.none"}),
                (400, "colours", {"do": "view", "view": 1, "pad": "sharp.src", "colours": "pink"}),
                (403, "not below a folder", {"do": "record", "pad": "sharp.src", "path": "../x.npy"}),
                (403, "not below a folder", {"do": "files", "folder": "/etc"}),
                (404, "no preset", {"do": "preset-load", "name": "none"}),
            ]
            for status, words, command in cases:
                with self.subTest(command=command):
                    reply = await ask(ws, **command)
                    self.assertEqual((reply["ok"], reply["status"]), (False, status))
                    self.assertIn(words, reply["error"])
            # what contradicts the stream is rejected by the element, with its sentence, and frames go on
            await ask(ws, do="view", view=1, pad="sharp.src")
            reply = await ask(ws, do="set", element="sharp", values={"border-value": 65535})
            self.assertTrue(reply["ok"], reply)

    async def test_a_rejected_value_stays_marked(self):
        np.save(os.path.join(self.folder, "in.npy"), np.zeros((3, 48, 64), np.uint8))
        served = self.serve(elements="lapsharpen name=sharp border=constant ! ")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws") as ws:
            async def wait_for(is_rejected):
                end = time.monotonic() + 10
                while True:
                    elements = (await ask(ws, do="elements"))["result"]["elements"]
                    told = next(p for e in elements if e["name"] == "sharp" for p in e["properties"] if p["name"] == "border-value")
                    if bool(told["rejected"]) == is_rejected:
                        return told
                    self.assertLess(time.monotonic(), end)
                    await asyncio.sleep(0.1)

            await ask(ws, do="set", element="sharp", values={"border-value": 300})
            self.assertIn("border-value 300", (await wait_for(True))["rejected"]["text"])
            await ask(ws, do="set", element="sharp", values={"border-value": 30})
            self.assertEqual((await wait_for(False))["value"], 30)

    async def test_a_value_before_the_first_frame_is_marked_and_the_picture_goes_on(self):
        """One that the element would refuse at its start would end the pipeline. Nothing passes the closed valve, as of a camera that starts."""
        served = self.serve("videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=48 ! valve name=gate drop=true"
                            " ! lapsharpen name=sharp border=constant ! fakesink sync=true", "--allow", "gate.drop")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            reply = await ask(ws, do="set", element="sharp", values={"border-value": 300, "amount": 3})
            self.assertTrue(reply["ok"], reply)
            self.assertEqual(reply["result"]["values"], {"border-value": 0, "amount": 1})
            self.assertIn("no input yet", reply["result"]["rejected"]["amount"])
            reply = await ask(ws, do="set", element="sharp", values={"amount": 4})  # in place of the first one
            self.assertTrue((await ask(ws, do="set", element="gate", values={"drop": False}))["ok"])
            told = await receive(ws, lambda m: m["type"] == "property" and m["name"] == "border-value" and m["rejected"] and "300" in m["rejected"]["text"])
            self.assertEqual((told["value"], told["rejected"]["value"]), (300, 300))
            async with session.get(served.root + "/api/picture", params={"pad": "sharp.src"}) as answer:
                self.assertEqual(answer.status, 200)
            await ws.send_json({"do": "set", "element": "sharp", "values": {"border-value": 30}})
            await receive(ws, lambda m: m["type"] == "property" and m["name"] == "amount" and not m["rejected"])
            state = (await ask(ws, do="state"))["result"]
            self.assertEqual(state["pipeline"]["state"], "playing")
            found = {p["name"]: (p["value"], p["rejected"]) for e in state["elements"] if e["name"] == "sharp" for p in e["properties"]}
            self.assertEqual((found["border-value"][0], found["amount"]), (30, (4, None)))
            for _ in range(4):
                self.assertTrue((await ask(ws, do="undo"))["ok"])
            found = {p["name"]: p["value"] for e in (await ask(ws, do="elements"))["result"]["elements"] if e["name"] == "sharp" for p in e["properties"]}
            self.assertEqual((found["border-value"], found["amount"]), (0, 1))

    async def test_a_value_that_waits_is_taken_back_or_set_when_the_pipeline_stops(self):
        served = self.serve("videotestsrc is-live=true ! valve drop=true ! lapsharpen name=sharp ! fakesink")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            async def amount():
                elements = (await ask(ws, do="elements"))["result"]["elements"]
                return next((p["value"], p["rejected"]) for e in elements if e["name"] == "sharp" for p in e["properties"] if p["name"] == "amount")

            await ask(ws, do="set", element="sharp", values={"amount": 3})
            self.assertEqual((await amount())[1]["value"], 3)
            self.assertTrue((await ask(ws, do="undo"))["ok"])
            self.assertEqual((await amount()), (1, None))
            await ask(ws, do="set", element="sharp", values={"amount": 3})
            await ws.send_json({"do": "pipeline", "state": "stopped"})
            await receive(ws, lambda m: m["type"] == "property" and m["name"] == "amount" and m["value"] == 3)
            self.assertEqual((await amount()), (3, None))

    async def test_foreign_hosts_and_sites(self):
        served = self.serve()
        async with aiohttp.ClientSession() as session:
            async def status(path, method="get", **headers):
                async with session.request(method, served.root + path, headers=headers, data=b"{}" if method == "post" else None) as answer:
                    return answer.status
            json_type = {"Content-Type": "application/json"}
            self.assertEqual(await status("/api/health"), 200)
            self.assertEqual(await status("/api/health", Host=f"evil.example:{served.port}"), 403)
            self.assertEqual(await status("/api/health", Origin="http://evil.example"), 403)
            self.assertEqual(await status("/api/health", Origin="null"), 403)
            self.assertEqual(await status("/api/health", Origin=served.root), 200)
            self.assertEqual(await status("/api/undo", "post", **json_type, Origin="http://evil.example"), 403)
            self.assertEqual(await status("/api/undo", "post", **{"Content-Type": "text/plain"}), 400)
            self.assertEqual(await status("/api/undo", "post", **json_type), 409)
            self.assertEqual(await status("/api/undo"), 400)
            for path in ("/static/../panel.py", "/static/%2e%2e%2fpanel.py", "/static/..%5cpanel.py"):
                self.assertIn(await status(path), (403, 404))
            with self.assertRaises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(served.root + "/ws", origin="http://evil.example")
            async with session.get(served.root + "/api/health") as answer:
                self.assertNotIn("Access-Control-Allow-Origin", answer.headers)

    async def test_paths_follow_links_first(self):
        os.symlink("/etc", os.path.join(self.data, "link"))
        served = self.serve()
        async with aiohttp.ClientSession() as session:
            async with session.get(served.root + "/api/files") as answer:
                self.assertEqual((await answer.json())["entries"][0]["path"], self.data)
            async with session.get(served.root + "/api/files", params={"folder": self.data}) as answer:
                self.assertEqual((await answer.json())["entries"], [])
            for path in ("link/x.npy", f"{self.data}/../x.npy", "/etc/x.npy", f"{self.data}x/y.npy", "a\0b"):
                async with session.post(served.root + "/api/snapshot", json={"pad": "sharp.src", "path": path}) as answer:
                    self.assertIn(answer.status, (400, 403), path)

    async def test_a_token_where_others_can_listen(self):
        served = self.serve("--listen", "127.0.0.1", "--token", "correct-horse")
        self.assertIn("/login?token=correct-horse", served.address)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async def status(path, **headers):
                async with session.get(served.root + path, headers=headers, allow_redirects=False) as answer:
                    return answer.status
            self.assertEqual(await status("/api/health"), 401)
            self.assertEqual(await status("/api/health", Authorization="Bearer wrong"), 401)
            self.assertEqual(await status("/api/health", Authorization="Bearer correct-horse"), 200)
            self.assertEqual(await status("/login?token=wrong"), 401)
            with self.assertRaises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(served.root + "/ws")
            async with session.get(served.root + "/login?token=correct-horse", allow_redirects=False) as answer:
                self.assertEqual(answer.status, 303)
                for words in ("SameSite=Strict", "HttpOnly", f"gst-imaging-panel-{served.port}="):
                    self.assertIn(words, answer.headers["Set-Cookie"])
            self.assertEqual(await status("/api/health"), 200)

    async def from_elsewhere(self, served, session):
        """Pages of other sites, and names that were bound to this address."""
        for headers in {"Host": f"evil.example:{served.port}"}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}:
            for path in ["/", "/api/health", "/metrics", "/static/main.js"] * 5:
                async with session.get(served.root + path, headers=headers) as answer:
                    self.assertEqual(answer.status, 403, (path, headers))
            with self.assertRaises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(served.root + "/ws", headers=headers)

    async def without_a_token(self, served, _session):
        async with aiohttp.ClientSession() as stranger:
            for headers in {}, {"Authorization": "Bearer wrong"}, {"Cookie": "gst-imaging-panel=wrong"}:
                for path in ["/", "/api/health", "/api/picture?pad=sharp.src", "/metrics", "/static/main.js"] * 4:
                    async with stranger.get(served.root + path, headers=headers) as answer:
                        self.assertEqual(answer.status, 401, (path, headers))
                with self.assertRaises(aiohttp.WSServerHandshakeError):
                    await stranger.ws_connect(served.root + "/ws", headers=headers)

    async def other_paths(self, served, session):
        for path in ["/static/../panel.py", "/static/%2e%2e%2fpanel.py", "/static/..%5cpanel.py", "/static/%2fetc%2fpasswd"] * 5:
            async with session.get(served.root + path) as answer:
                self.assertIn(answer.status, (403, 404), path)
        for path in "../x.npy", "/etc/x.npy", f"{self.data}/../x.npy", "a\0b":
            for command in "snapshot", "record":
                async with session.post(f"{served.root}/api/{command}", json={"pad": "sharp.src", "path": path}) as answer:
                    self.assertIn(answer.status, (400, 403), path)

    async def many_connections(self, served, session):
        """1,000 of them that say nothing."""
        sockets = []
        for _ in range(1000):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", served.port))
            sockets.append(s)
        await asyncio.sleep(1)
        for s in sockets:
            s.close()
        for _ in range(100):  # until the closed ones are gone
            async with session.get(served.root + "/api/health") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)
        self.fail("the panel has not come back")

    async def long_messages(self, served, session):
        """Of 10 MB."""
        try:
            async with session.post(served.root + "/api/set", data=b'{"x":"' + b"x" * 10_000_000, headers={
                    "Content-Type": "application/json"}) as answer:
                self.assertEqual(answer.status, 413)
        except aiohttp.ClientError:
            pass  # closed while it was written
        async with session.ws_connect(served.root + "/ws") as ws:
            try:
                await ws.send_str("x" * 10_000_000)
                while (await ws.receive(timeout=10)).type == aiohttp.WSMsgType.TEXT:
                    pass
            except (ConnectionError, aiohttp.ClientError):
                pass

    async def nobody_reads(self, served, session):
        dead = await session.ws_connect(served.root + "/ws", max_msg_size=0)
        for number in range(1, 9):
            await dead.send_json({"do": "view", "view": number, "pad": "sharp.src", "rate": 60, "width": 2048, "height": 2048})
        await dead.send_json({"do": "follow", "element": "sharp"})
        await asyncio.sleep(1)
        dead._response.close()  # without a word

    async def many_bytes_in_few(self, served, session):
        """A stranger's body that is a thousand times as long: nobody inflates it."""
        body = gzip.compress(b" " * 30_000_000)
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "Authorization": ""}
        for _ in range(20):
            async with session.post(served.root + "/api/undo", data=body, headers=headers) as answer:
                self.assertEqual(answer.status, 401)
        headers["Authorization"] = "Bearer correct-horse"
        begin = time.monotonic()
        async with session.post(served.root + "/api/undo", data=body, headers=headers) as answer:
            self.assertEqual(answer.status, 400)
            self.assertIn("Content-Encoding", (await answer.json())["error"])
        self.assertLess(time.monotonic() - begin, 2)

    async def many_that_were_seen(self, served, session):
        """Messages without a limit of their own wait, and nobody else does."""
        async with session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            begin = time.monotonic()
            for _ in range(3000):
                await ws.send_json({"do": "seen", "view": 1})
            await ask(ws, do="undo")
            self.assertGreater(time.monotonic() - begin, 1.5)

    async def too_many_commands(self, served, session):
        async with session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            for i in range(500):  # of a command that is done at once, so that also a busy machine does more than 50 a second
                await ws.send_json({"id": i, "do": "messages"})
            replies = [await receive(ws, lambda m: m["type"] == "reply") for _ in range(500)]
        self.assertIn(429, [reply.get("status") for reply in replies])

    async def costs(self, attack, served, session):
        """Returns: whether the pipeline has dropped a frame meanwhile, or made fewer than it should"""
        async def health():
            end = time.monotonic() + TIMEOUT
            while time.monotonic() < end:
                async with session.get(served.root + "/api/health") as answer:
                    if answer.status == 200:
                        return await answer.json()
                await asyncio.sleep(0.05)  # 503 while connections of the attack are open, 429 after too many commands
            raise AssertionError("the panel has not come back")

        before, begin = await health(), time.monotonic()
        await attack(served, session)
        after, seconds = await health(), time.monotonic() - begin
        frames = after["elements"][-1]["frames"] - before["elements"][-1]["frames"]
        print(f'{attack.__name__}: {frames} frames in {seconds:.1f} s, {after["dropped"] - before["dropped"]} dropped', file=sys.stderr)
        return after["dropped"] > before["dropped"] or frames < 0.9 * 200 * seconds - 20

    async def test_attacks_cost_no_frame(self):
        served = self.serve("--listen", "127.0.0.1", "--token", "correct-horse", rate=200,
                            elements="clocksync ! queue leaky=downstream max-size-buffers=20 max-size-time=0 ! lapsharpen name=sharp focus-measure=true ! ")
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer correct-horse"}) as session:
            for attack in (self.from_elsewhere, self.without_a_token, self.other_paths, self.many_connections, self.long_messages,
                           self.nobody_reads, self.many_bytes_in_few, self.many_that_were_seen, self.too_many_commands):
                with self.subTest(attack=attack.__name__):
                    for _ in range(4):  # a machine with other work drops frames by itself, but not each time
                        if not await self.costs(attack, served, session):
                            break
                    else:
                        self.fail("frames are dropped each time")

    async def test_a_client_that_goes_in_the_middle_of_an_answer(self):
        """Writing to a connection that was reset is a SIGPIPE, which ends other commands."""
        served = self.serve()
        for _ in range(100):
            client = socket.create_connection(("127.0.0.1", served.port))
            client.sendall(b"GET /static/view.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
            client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no end
            client.close()
        status, end = None, time.monotonic() + TIMEOUT
        async with aiohttp.ClientSession() as session:
            while status != 200 and time.monotonic() < end:  # 503 while connections are many
                async with session.get(served.root + "/api/health") as answer:
                    status = answer.status
        self.assertEqual(status, 200)

    async def test_a_lost_connection_is_no_traceback(self):
        async def answer(_request):
            return web.Response()

        async def log(error_of):
            """Returns: what logging would print of it"""
            logger = logging.getLogger("aiohttp.server")
            try:
                await error_of()
            except AssertionError as error:
                with self.assertLogs(logger, logging.ERROR) as told:
                    logger.error("another message")  # assertLogs wants one
                    logger.error("Unhandled exception", exc_info=error)
                return told.output[1:]
            except AttributeError:
                self.skipTest("this version of aiohttp does not assert that a connection stands")
            self.fail("no assertion of aiohttp: look whether the filter is still needed")

        async def of_the_program():
            raise AssertionError

        logger, handler = logging.getLogger("aiohttp.server"), web.Server(answer)()
        logger.addFilter(is_no_lost_connection)
        self.addCleanup(logger.removeFilter, is_no_lost_connection)
        handler._request_handler = None  # as connection_lost leaves it
        self.assertEqual(await log(lambda: handler._handle_request(None, 0, answer)), [])
        self.assertIn("Traceback", "".join(await log(of_the_program)))

    async def test_a_client_that_goes_before_its_websocket_stands(self):
        served = self.serve()  # its end looks for tracebacks
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", served.port), TIMEOUT) as client:
                client.sendall(UPGRADE.encode() + b"\r\n")
            await asyncio.sleep(0.02)
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/health") as answer:
            self.assertEqual(answer.status, 200)

    async def test_a_ping_to_a_client_that_has_gone_is_no_traceback(self):
        server = Server(unittest.mock.Mock(health=lambda: {}))
        server.start()
        self.addCleanup(server.stop)
        with self.assertLogs("asyncio", logging.ERROR) as told:
            for error in ConnectionResetError("Cannot write to closing transport"), ValueError("of the program"):
                task = asyncio.get_running_loop().create_future()
                task.set_exception(error)
                del task
                gc.collect()
        self.assertEqual(len(told.output), 1, told.output)
        self.assertIn("of the program", told.output[0])

    async def test_what_is_no_http_is_no_traceback(self):
        served = self.serve()  # its end looks for tracebacks
        for text in ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "\x16\x03\x01\x02", "GET /" + "a" * 20000 + " HTTP/1.1\r\n\r\n",
                     "POST /api/undo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", "\0\0 / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", served.port), TIMEOUT) as connection:
                connection.sendall(text.encode("latin-1"))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
        async with aiohttp.ClientSession() as session, session.get(served.root + "/api/health") as answer:
            self.assertEqual(answer.status, 200)

    async def test_a_snapshot_that_waits_holds_no_command_back(self):
        served = self.serve("videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=48 ! valve name=v drop=true ! lapsharpen name=sharp "
                            "! fakesink async=false")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await receive(ws, lambda m: m["type"] == "state")
            while not (await ask(ws, do="state"))["result"]["pads"][-1]["caps"]:
                await asyncio.sleep(0.05)
            await ws.send_json({"id": 1, "do": "snapshot", "pad": "sharp.src", "path": "a.npy"})
            begin = time.monotonic()
            reply = await ask(ws, do="undo")
            self.assertEqual(reply["id"], 7)
            self.assertLess(time.monotonic() - begin, 3)
            self.assertFalse((await receive(ws, lambda m: m.get("id") == 1))["ok"])

    async def test_a_recording_with_a_change_verifies(self):
        served = self.serve("sharpen", "--files", self.data)
        async with aiohttp.ClientSession() as session:
            async def post(command, **body):
                async with session.post(f"{served.root}/api/{command}", json=body) as answer:
                    told = await answer.json()
                    self.assertEqual(answer.status, 200, told)
                    return told

            async def state(name):
                async with session.get(served.root + "/api/state") as answer:
                    return (await answer.json())[name]

            async def has_pads():
                return {"source.src", "sharpen.src"} <= {known["pad"] for known in await state("pads")}

            async def has_more():
                return (await state("recording"))["frames"] > n
            await self.wait_for(has_pads)
            path, n = (await post("record", pad="sharpen.src", path="run.npy"))["path"], 5
            await self.wait_for(has_more)
            await post("set", element="sharpen", values={"amount": 3})
            told = await state("recording")
            n = told["frames"] + told["waiting"] + 5
            await self.wait_for(has_more)
            stopped = await post("record-stop")
            self.assertGreater(stopped["frames"], n)
            self.assertEqual(stopped["lost"], 0)
            self.assertEqual((await post("snapshot", pad="source.src", path="one.png"))["frames"], 1)
            await post("pipeline", state="paused")
            await self.state_of(session, served, "paused")
            self.assertEqual((await post("snapshot", pad="sharpen.src", path="paused.png"))["frames"], 1)
            await post("pipeline", state="stopped")
            async with session.post(f"{served.root}/api/snapshot", json={"pad": "sharpen.src", "path": "none.png"}) as answer:
                self.assertEqual((answer.status, (await answer.json())["error"]), (409, "The pipeline is stopped, and no frame passes: play it first."))
        with open(path + ".json", encoding="utf-8") as file:
            told = json.load(file)
        self.assertTrue(told["attached"] and told["complete"])
        self.assertEqual([(c["element"], c["property"], c["value"]) for c in told["changes"]], [("sharpen", "amount", "3")])
        self.assertEqual(np.load(path).shape[0], stopped["frames"])
        for file in path, os.path.join(self.data, "one.png"), os.path.join(self.data, "paused.png"):
            self.verify(file)

    def test_a_recording_that_is_written_late_has_its_changes(self):
        """The amount changes before the first frame is written: each frame has the settings that it was made with."""
        class Late(recording.Recording):
            def play(self):
                pad = self.sink.get_static_pad("sink")
                self.blocked = pad.add_probe(Gst.PadProbeType.BLOCK | Gst.PadProbeType.BUFFER, lambda *_: Gst.PadProbeReturn.OK)
                super().play()

        pipeline = Gst.parse_launch(f"picturesrc location={self.folder}/in.npy loop=true framerate=100/1 ! lapsharpen name=sharp amount=1 ! fakesink sync=true")
        self.addCleanup(pipeline.set_state, Gst.State.NULL)
        pipeline.set_state(Gst.State.PLAYING)
        pipeline.get_state(TIMEOUT * Gst.SECOND)  # it has made a frame
        sharp, path = pipeline.get_by_name("sharp"), os.path.join(self.data, "late.npy")
        run = Late(Gst, GstImaging, sharp.get_static_pad("src"), "sharp.src", path, 0, self.fail)
        self.wait_until(lambda: run.n_recorded() > 3)
        sharp.set_property("amount", 3)
        n = run.n_recorded()
        self.wait_until(lambda: run.n_recorded() > n + 3)
        run.sink.get_static_pad("sink").remove_probe(run.blocked)
        self.assertTrue(run.stop().result(TIMEOUT)["complete"])
        with open(path + ".json", encoding="utf-8") as file:
            changes = json.load(file)["changes"]
        self.assertEqual([(c["element"], c["property"], c["value"]) for c in changes], [("sharp", "amount", "3")])
        self.assertIn(changes[0]["frame"], range(4, n + 2))
        self.verify(path)

    def verify(self, file):
        done = subprocess.run([sys.executable, "-m", "gst_imaging", "verify", file], capture_output=True, text=True, timeout=TIMEOUT,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual(done.returncode, 0, done.stderr)

    def wait_until(self, condition):
        end = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    async def shows_pictures(self, *words, env=()):
        served = Served(self.folder, *words, env=env)
        try:
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                state = await receive(ws, lambda m: m["type"] == "state")
                await ask(ws, do="view", view=1, pad=state["layout"]["main"], values=[0, 0, 2, 2])
                first = await receive(ws, lambda m: m["type"] == "picture")
                await receive(ws, lambda m: m["type"] == "picture" and m["pts"] != first["pts"])
                return state, first
        finally:
            served.end()

    @unittest.skipUnless(Gst.ElementFactory.find("aravissrc"), "there is no aravissrc: install aravis-tools")
    async def test_a_camera_of_aravis(self):
        state, picture = await self.shows_pictures("sharpen", "--camera", "aravis:Fake_1", "--exposure", "5000", "--allow", "camera.exposure",
                                                   "--pixel-format", "Mono8", "amount=3")
        self.assertEqual((picture["source"], picture["channels"]), ([512, 512], 1))
        self.assertEqual(state["layout"]["before"], "frames.src")
        found = {(e["name"], p["name"]): p for e in state["elements"] for p in e["properties"]}
        self.assertEqual((found["camera", "exposure"]["value"], found["camera", "exposure"]["can-set"]), (5000, True))
        self.assertEqual((found["sharpen", "amount"]["value"], found["camera", "gain"]["can-set"]), (3, False))

    @unittest.skipUnless(os.environ.get("MOCK_V4L2") and Gst.ElementFactory.find("v4l2src"), "there is no v4l2src, or no MOCK_V4L2")
    async def test_a_camera_of_video4linux(self):
        mock = {"LD_PRELOAD": os.environ["MOCK_V4L2"], "MOCK_V4L2_DEVICE": "/dev/full", "MOCK_V4L2_FORMATS": "GREY"}
        _state, picture = await self.shows_pictures("ao", "--camera", "v4l2:/dev/full", "columns=2", "rows=2", "pitch-x=30", "pitch-y=20", env=mock)
        self.assertEqual((picture["source"], picture["channels"]), ([64, 48], 1))

    async def test_cameras_that_are_not_there(self):
        cases = [
            (3, "There is no camera /dev/nothing; there are:", "sharpen", "--camera", "v4l2:/dev/nothing"),
            (3, "/dev/null is no camera of Video4Linux; there are:", "sharpen", "--camera", "v4l2:/dev/null"),
            (2, "it needs v4l2:NAME, aravis:NAME, gst:NAME.", "sharpen", "--camera", "/dev/video0"),
            (2, "Give files or --camera; not both.", "sharpen", "in.npy", "--camera", "v4l2:"),
            (2, "--exposure is for --camera, which is not given.", "sharpen", "--exposure", "10"),
            (2, "--camera is for a ready pipeline:", "videotestsrc ! fakesink", "--camera", "v4l2:"),
            (2, "insar has no camera", "insar", "--camera", "v4l2:"),
            (2, "photostereo needs the file of the lights", "photostereo", "--camera", "v4l2:"),
            (2, "The pipeline cannot be made: ", "sharpen", "amount=much"),
            (2, "--simulator is for the ready pipeline ao", "oct", "--simulator"),
            (2, "--simulator makes its own frames", "ao", f"{self.folder}/in.npy", "--simulator"),
            (2, "--simulator makes its own frames", "ao", "--simulator", "--camera", "v4l2:"),
        ]
        if Gst.ElementFactory.find("aravissrc"):
            cases += [(3, "Aravis cannot open the camera nothing; it sees: none. Check its power", "sharpen", "--camera", "aravis:nothing"),
                      (2, "--pixel-format is Mono12; it needs one of them", "sharpen", "--camera", "aravis:Fake_1", "--pixel-format", "Mono12")]
        for status, words, *arguments in cases:
            with self.subTest(arguments=arguments):
                told = self.refused(*arguments)
                self.assertEqual(told[0], status, told[1])
                self.assertIn(words, told[1])

    def test_descriptions_that_are_not_linked(self):
        source = f"picturesrc name=source location={self.folder}/in.npy"
        for words, told in (
                (source + " ! lapsharpen name=sharp", 'The frames of sharp (lapsharpen) go nowhere: end the description with "! fakesink sync=true".'),
                (source + " lapsharpen name=sharp ! fakesink",
                 'source (picturesrc) and sharp (lapsharpen) are not linked: write " ! " between them.'),
                ("lapsharpen name=sharp ! fakesink", "sharp (lapsharpen) has no input: begin the description with a source, as picturesrc location=FILE.")):
            self.assertEqual(self.refused(words), (2, told))

    def test_a_line_of_gst_launch(self):
        """Its name and its options are left out."""
        told = (2, 'The frames of sharp (lapsharpen) go nowhere: end the description with "! fakesink sync=true".')
        for words in ["gst-launch-1.0 -v -e videotestsrc ! lapsharpen name=sharp"], ["gst-launch-1.0", "videotestsrc", "!", "lapsharpen", "name=sharp"]:
            self.assertEqual(self.refused(*words), told)
        for words in ["gst-launch-1.0 -v "], ["gst-launch-1.0"]:
            self.assertEqual(self.refused(*words), (2, "Behind gst-launch-1.0 there is no pipeline."))

    def test_a_camera_that_is_not_there_ends_the_command(self):
        code, told = self.refused("sharpen", "--camera", "gst:tcpclientsrc port=1 ! rawvideoparse format=gray16-le width=64 height=48 framerate=25/1")
        self.assertEqual((code, told.startswith("The camera cannot be opened: "), "refused" in told), (3, True, True), told)

    async def test_errors_have_a_reason(self):
        """Where GStreamer's own sentence has none; and what a file format cannot hold is told with both names."""
        source = Gst.parse_launch("videotestsrc name=test ! fakesink").get_by_name("test")
        message = unittest.mock.Mock(src=source)
        for why, told in (("not-linked (-1)", 'test (videotestsrc) go nowhere: a pad behind it is not linked. Each branch ends in a sink'),
                          ("not-negotiated (-4)", "The elements behind test (videotestsrc) do not take its frames. Put a converter such as videoconvert"),
                          ("error (-5)", "Internal data stream error of test (videotestsrc): error.")):
            self.assertIn(told, graph.reason(message, "Internal data stream error.", "x.c(1): f (): test:\nstreaming stopped, reason " + why))
        self.assertEqual(graph.reason(message, "Cannot open.", "x.c(1): f (): test:\nrefused"), "Cannot open. (refused)")
        np.save(os.path.join(self.folder, "empty.npy"), np.empty((0, 48, 64), np.uint8))
        served = Served(self.folder, "sharpen", self.folder + "/empty.npy")
        async with aiohttp.ClientSession() as session:
            await self.state_of(session, served, "failed")
        served.process.terminate()
        self.assertIn("there is nothing to play", served.process.communicate(timeout=TIMEOUT)[1].splitlines()[-1])
        self.assertEqual(served.process.returncode, 1)
        served = self.serve()
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            await receive(ws, lambda m: m["type"] == "health" and m["frames-out"] > 3)
            for command in "snapshot", "record":
                reply = await ask(ws, do=command, pad="sharp.src", path="x.exr")
                self.assertEqual((reply["status"], reply.get("error")), (
                    422, ".exr cannot hold the frames of sharp.src, which are GRAY16_LE. Use another extension: .npy holds all types."))

    async def test_files_that_are_missing_are_not_dropped(self):
        """Told once, with a count, and apart from what the computer drops."""
        os.mkdir(self.folder + "/series")
        for i in 0, 1, 2, 4:
            np.save(f"{self.folder}/series/f{i:03}.npy", PATTERN)
        served = Served(self.folder, "sharpen", self.folder + "/series")
        self.addCleanup(served.end)
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            told = await receive(ws, lambda m: m["type"] == "health" and m["missing"] > 2)
            self.assertEqual(told["dropped"], sum(s["dropped"] for s in told["sinks"]))
            self.assertGreater(told["warnings"], 0)
            messages = (await ask(ws, do="messages"))["result"]["messages"]
            self.assertEqual(len({m["text"] for m in messages}), len(messages), messages)

    def test_equal_messages_are_one(self):
        told = []
        pipeline = Gst.parse_launch("fakesrc ! fakesink")
        panel = PanelOf(Gst, GstImaging, pipeline, "x")
        panel.listener = told.append
        for text in "a", "b", "a", "a":
            panel.messages.tell("warning", "x", text)
        panel.messages.tell("error", "x", "a")
        self.assertEqual([(m["severity"], m["text"], m["count"], m["replaces"]) for m in panel.messages.all],
                         [("warning", "b", 1, None), ("warning", "a", 3, 3), ("error", "a", 1, None)])
        self.assertEqual((panel.messages.n_warnings, panel.messages.n_errors, [m["number"] for m in told]), (4, 1, [1, 2, 3, 4, 5]))

    def test_what_follows_from_an_error_is_told_as_such(self):
        pipeline = Gst.parse_launch("fakesrc name=a ! fakesink name=b")
        panel, said = PanelOf(Gst, GstImaging, pipeline, "x"), []
        panel.messages.say = lambda element, text: said.append(text)

        def post(kind, name, text):
            error = GLib.Error.new_literal(Gst.stream_error_quark(), text, Gst.StreamError.FAILED)
            panel.note(getattr(Gst.Message, "new_" + kind)(pipeline.get_by_name(name), error, ""))

        post("warning", "a", "before")
        post("error", "b", "cause")
        post("warning", "a", "lost")
        post("error", "a", "closed")
        self.assertEqual([(m["text"], m["follows"]) for m in panel.messages.all], [("before", None), ("cause", None), ("lost", 2), ("closed", 2)])
        self.assertEqual(panel.messages.error_text(), "cause")
        self.assertEqual(said, ["before", "cause", "lost (follows from the error before)", "closed (follows from the error before)"])
        panel.play("stopped")
        post("error", "a", "another")
        self.assertEqual(panel.messages.all[-1]["follows"], None)
        with unittest.mock.patch("time.monotonic", return_value=time.monotonic() + 10):
            post("warning", "a", "much later")
        self.assertEqual(panel.messages.all[-1]["follows"], None)
        panel.stop()
        panel.states.end()

    async def test_a_pipeline_that_nothing_holds_is_told_once(self):
        frames = f"picturesrc location={self.folder}/in.npy loop=true framerate=20/1 ! "
        for sink, told in ("lapsharpen ! fakesink", 1), ("lapsharpen ! fakesink sync=true", 0), ("lapsharpen ! clocksync ! fakesink", 0):
            served = self.serve(frames + sink)
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                if told:
                    await receive(ws, lambda m: m["type"] == "message" and "Nothing holds the rate" in m["text"])
                await asyncio.sleep(3)
                messages = (await ask(ws, do="messages"))["result"]["messages"]
            found = [m["count"] for m in messages if "Nothing holds the rate" in m["text"]]
            self.assertEqual(found, [1] * told, messages)

    async def test_files_are_viewed(self):
        """Of types that no video has, and raw; settings of the source; names that are nothing."""
        np.save(self.folder + "/float.npy", np.float32([[-1, 1]] * 3)[:, None].repeat(48, 1).repeat(32, 2))
        (PATTERN + np.arange(3, dtype=np.uint16)[:, None, None]).tofile(self.folder + "/cam.raw")
        raw = "--samples", "64", "--lines", "48"
        for words, is_signed, rate in (((self.folder + "/float.npy", "framerate=50/1"), True, 50), (("view", self.folder + "/cam.raw", *raw), False, 25),
                                  (("sharpen", self.folder + "/cam.raw", "framerate=100/2", "amount=2", *raw), False, 50)):
            served = self.serve(*words)
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                state = await receive(ws, lambda m: m["type"] == "state")
                self.assertEqual(state["layout"]["pass"], {"duration": 3 / rate, "rate": rate})
                self.assertEqual(state["layout"]["title"], "cam.raw" if raw[0] in words else "float.npy")
                await ask(ws, do="view", view=1, pad="source.src")
                picture = await receive(ws, lambda m: m["type"] == "picture")
                self.assertEqual((picture["minimum"] < 0, picture["source"]), (is_signed, [64, 48]))
        self.assertEqual(self.refused("view", self.folder + "/float.npy", "amount=2"),
                         (2, "view has no amount: it takes framerate, axes, part, of files."))
        for name in "absent.npy", "absent/folder":
            self.assertEqual(self.refused(name), (3, f"There is no {name}."))
        self.assertNotIn("There is no", self.refused("fakesrc location=a/b.npy")[1])  # a description, whatever is wrong with it
        self.assertEqual(self.refused("photostereo", self.folder, "lights.lp", *raw)[1],
                         "--samples is for the ready pipelines sharpen, ao, view and oct.")
        self.assertIn("framerate=5/1 is for files", self.refused("view", "--camera", "gst:videotestsrc", "framerate=5/1")[1])
        for text, told in (("x: Video has no samples of this type or shape.", "panel view FILE"), ("x is no camera RAW that y knows.", "--samples WIDTH")):
            self.assertIn(told, graph.remedy(text))

    async def test_an_overview_of_the_commands(self):
        served = self.serve("videotestsrc ! fakesink sync=true", "--listen", "0.0.0.0", "--token", "abc")
        self.assertNotIn("0.0.0.0", served.address)
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer abc"}) as session:
            for path in "/api", "/api/":
                async with session.get(served.address.split("/login")[0] + path) as answer:
                    told = await answer.json()
            self.assertIn("/api/state", told["read"])
            self.assertIn("/api/set", told["post"])
            for path in told["read"][:4]:
                async with session.get(served.root + path) as answer:
                    self.assertEqual(answer.status, 200, path)

    def refused(self, *arguments):
        """In this process. Returns: the exit code and the sentence of a command that does not begin"""
        with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.folder}):
            with self.assertRaises(Failure) as raised:
                execute("panel", list(arguments))
        return raised.exception.code, str(raised.exception)

    async def test_ready_pipelines_show_pictures(self):
        for name in "ao", "oct", "photostereo", "insar":
            served = Served(self.folder, name)
            try:
                async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                    state = await receive(ws, lambda m: m["type"] == "state")
                    await ask(ws, do="view", view=1, pad=state["layout"]["main"])
                    await receive(ws, lambda m: m["type"] == "picture")
                    for element in state["layout"]["results"]:
                        await ask(ws, do="follow", element=element)
                        await receive(ws, lambda m: m["type"] == "results")
            finally:
                served.end()

    async def test_photostereo_shows_a_result_for_each_picture_of_a_sliding_window(self):
        served = Served(self.folder, "photostereo", "window=sliding")
        try:
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                state = await receive(ws, lambda m: m["type"] == "state")
                found = {(e["name"], p["name"]): p["value"] for e in state["elements"] for p in e["properties"]}
                self.assertEqual((found["photo", "window"], found["photo", "update-interval"]), ("sliding", 0))
                await ask(ws, do="view", view=1, pad=state["layout"]["main"])
                picture = await receive(ws, lambda m: m["type"] == "picture")
                self.assertEqual(picture["source"], [320, 240])
                await ask(ws, do="follow", element="photo")
                told = [(await receive(ws, lambda m: m["type"] == "results"))["summary"] for _i in range(24)]
                # more than a turn: of the demo's 16 lights each result has all, none ends a set
                self.assertEqual({(summary["lights"], summary["final"]) for summary in told}, {(16, 0)})
        finally:
            served.end()

    def write_scene(self, names, lights):
        """Pictures of a plane, each of one brightness, and their light file."""
        os.makedirs(os.path.join(self.folder, "photos"), exist_ok=True)
        for k, name in enumerate(names):
            np.save(os.path.join(self.folder, "photos", name), np.full((8, 8), 20 * (k + 1), np.uint8))
        with open(os.path.join(self.folder, "dome.lp"), "w", encoding="ascii") as file:
            file.write(f"{len(lights)}\n" + "".join(f"{name} {np.cos(k)} {np.sin(k)} 1\n" for k, name in enumerate(lights)))

    async def test_photostereo_matches_pictures_and_lights_as_the_command(self):
        """By their names; what has no partner is left out, and named: each pass has as many pictures as lights."""
        names = [f"im{k}.npy" for k in range(6)]
        for lights, said in ((names[:5], "im5.npy"), (names + ["im6.npy"], "im6.npy"), (names[::-1], None), (["IM0.TIF", *names[1:]], None)):
            self.write_scene(names, lights)
            served = Served(self.folder, "photostereo", self.folder + "/photos", self.folder + "/dome.lp", "--paused")
            async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
                state = await receive(ws, lambda m: m["type"] == "state")
                found = {(e["name"], p["name"]): p["value"] for e in state["elements"] for p in e["properties"]}
            served.end()
            with self.subTest(lights=lights):
                played = [os.path.basename(path) for path in found["source", "locations"]]
                self.assertEqual(played, [name for name in ["im0.npy" if "IM0.TIF" in lights else lights[0], *lights[1:]] if name in names])
                if len(played) == len(lights):
                    self.assertEqual(found["photo", "lights-location"], self.folder + "/dome.lp")
                texts = [m["text"] for m in state["messages"]]
                self.assertEqual([said in text for text in texts], [True] if said else [])
        cube = os.path.join(self.folder, "cube.npy")
        np.save(cube, np.zeros((8, 8, 8), np.uint8))
        self.write_scene([], names[:5])
        self.assertEqual(self.refused("photostereo", cube, self.folder + "/dome.lp"),
                         (3, f"{cube} has 8 pictures, and {self.folder}/dome.lp has 5 lights: which belong together cannot be told."))

    async def test_lights_that_are_left_out_are_not_used(self):
        """The file of the lights that are played has those of the pictures, in the order of these."""
        names = [f"im{k}.npy" for k in (0, 1, 3, 4, 5)]
        self.write_scene(names, [f"im{k}.npy" for k in range(6)])
        served = Served(self.folder, "photostereo", self.folder + "/photos", self.folder + "/dome.lp")
        async with aiohttp.ClientSession() as session, session.ws_connect(served.root + "/ws", max_msg_size=0) as ws:
            state = await receive(ws, lambda m: m["type"] == "state")
            await ask(ws, do="follow", element="photo")
            told = [(await receive(ws, lambda m: m["type"] == "results"))["summary"]["lights"] for _ in range(4)]
            self.assertEqual(told, [5] * 4)
        served.end()  # the file stays, for verify
        place = next(p["value"] for e in state["elements"] if e["name"] == "photo" for p in e["properties"] if p["name"] == "lights-location")
        with open(place, encoding="ascii") as file:
            self.assertEqual([line.split()[0] for line in file.read().splitlines()], ["5", *names])


main()
