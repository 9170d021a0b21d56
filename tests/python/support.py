# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests in Python share. Nothing here waits longer than TIMEOUT."""
import atexit
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

import numpy as np

TIMEOUT = 60  # seconds
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(
    os.environ.get("IMAGING_TEST_DATA", os.path.join(SOURCE, "..", "shared", "data")),
    "shcentroid")

Gst.init(None)


def main():
    """As unittest.main(), but nothing run is exit status 77."""
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)


class FolderCase(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)


def data(name):
    """The path of a real frame or table; skips the test without it."""
    path = os.path.join(DATA, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{path} is not there; set IMAGING_TEST_DATA")
    return path


def blocks(page):
    """(first line, language, text) of each block of code of a page; the language of an indented one is empty"""
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    block, language, start = [], None, 0
    for number, line in enumerate([*lines, "", "x"], 1):
        fence = re.match(r"```(\w*)", line)
        if fence and language is None:
            if block:
                yield start, "", "\n".join(block)
            block, language, start = [], fence[1] or "text", number + 1
        elif fence:
            yield start, language, "\n".join(block)
            block, language = [], None
        elif language is not None:
            block.append(line)
        elif line.startswith("    ") and not re.match(r"\s+([-*]|\d+\.) ", line):
            start = start if block else number
            block.append(line[4:])
        elif block:
            yield start, "", "\n".join(block)
            block = []


def recipe(name, language, part=""):
    """Returns: the first block of a how-to page in this language that has the part"""
    for _start, of, text in blocks(os.path.join(SOURCE, "docs", "how-to", f"{name}.md")):
        if of == language and part in text:
            return text + "\n"
    raise AssertionError(f"{name}.md has no block of {language or 'commands'} with {part}")


def read_array(path):
    """What our reader of files makes of one; skips the test where it is built without the format."""
    with tempfile.TemporaryDirectory() as folder:
        npy = os.path.join(folder, "a.npy")
        done = subprocess.run([os.environ["ARRAY_TOOL"], path, npy], stderr=subprocess.PIPE, text=True, check=False)
        if "this build is without it" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())
        if done.returncode:
            raise AssertionError(done.stderr)
        return np.load(npy)


def name_axes(path, shape, *names):
    """Names the axes of an array of f32 in the file beside it, that along a row first."""
    axes = [{"name": name, "unit": "", "step": 1, "origin": 0} for name in names]
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({"schema": "gst-imaging-sidecar-v1", "file": os.path.basename(path), "first": 0, "frames": 1, "type": "f32",
                   "shape": list(shape), "complete": True, "quantity": {"name": "matrix", "unit": "", "scale": 1, "offset": 0, "axes": axes}}, file)


def damage_sidecar(path):
    """Generates the ways in which the file beside an array is cut, empty or about another one."""
    with open(path + ".json", encoding="utf-8") as file:
        whole = file.read()
    other = json.dumps({**json.loads(whole), "shape": [3, 5]})
    for text in whole[:len(whole) // 2], whole[:9], "", other:
        with open(path + ".json", "w", encoding="utf-8") as file:
            file.write(text)
        yield text


def launch(*words, status=0, timeout=TIMEOUT, **environment):
    """Runs gst-launch-1.0. Returns: all that it printed. gst-launch of 1.22 may hang after an error: where one is
    expected, it is ended 2 s later."""
    done = subprocess.Popen(
        ["timeout", "-k", "5", str(timeout), "gst-launch-1.0", "--no-fault", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **environment})
    end = threading.Timer(2, done.terminate)
    printed = ""
    with done:
        for line in done.stdout:
            printed += line
            if status and line.startswith("ERROR") and not end.ident:
                end.start()
    end.cancel()
    hung = status and done.returncode == -signal.SIGTERM
    text = " ".join(words)
    if (done.returncode != 0) != (status != 0) or "CRITICAL" in printed or (
            not hung and (done.returncode < 0 or done.returncode in (133, 134, 139))):
        raise AssertionError(f"{text}: exit status {done.returncode}\n{printed}")
    return printed


class ForkServer:
    """What starts gst-imaging without the half second that an interpreter, NumPy and GStreamer take."""

    def __init__(self):
        path = os.path.join(SOURCE, "tests", "python", "fork-server.py")
        self.server = subprocess.Popen([sys.executable, "-B", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        atexit.register(self.end)

    def end(self):
        self.server.communicate()

    def run(self, **request):
        """Returns: the exit status"""
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())


@functools.lru_cache(maxsize=None)
def fork_server():
    return ForkServer()


def run_command(*words, folder=".", merged=False, seconds=100, **environment):
    """Runs gst-imaging in a folder. merged: errors are a part of the output. Returns: a CompletedProcess"""
    if any(name.startswith(("GI_", "GST_", "LD_")) for name in environment):  # they count while a process starts
        done = subprocess.run(
            [sys.executable, "-B", "-m", "gst_imaging", *words], stdout=subprocess.PIPE, text=True, cwd=folder, timeout=seconds,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE, check=False,
            env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"), **environment})
        done.stderr = done.stderr or ""
    else:
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output, \
                tempfile.NamedTemporaryFile("r", encoding="utf-8") as error:
            status = fork_server().run(words=words, folder=os.path.abspath(folder), environment=environment, seconds=seconds,
                                       output=output.name, error=output.name if merged else error.name)
            done = subprocess.CompletedProcess(words, status, output.read(), error.read())
    if "Traceback" in done.stdout + done.stderr:
        raise AssertionError(f"gst-imaging {' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    for output in [value for option, value in zip(words, words[1:]) if option in ("-o", "--output")]:
        check_reports(os.path.join(folder, output))
    return done


def check_reports(folder):
    """Fails where a report of a result, or of one of several in the folder, needs another file or the network."""
    for path in [os.path.join(folder, *below, "report.html") for below in ((), *((name,) for name in next(os.walk(folder), ("", []))[1]))]:
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                outside = re.findall(r'<script|<link|@import|src="(?!data:)[^"]*|href="(?!#|data:)[^"]*|url\((?!#|data:)[^)]*', file.read())
            if outside:
                raise AssertionError(f"{path} is not alone: {outside}")


def command(folder, *words, status=0, **environment):
    """Runs gst-imaging in a folder. status: the one that is right, or several. Returns: all that it printed."""
    done = run_command(*words, folder=folder, merged=True, **environment)
    if done.returncode not in (status if isinstance(status, tuple) else (status,)):
        raise AssertionError(f"gst-imaging {' '.join(words)}: exit status {done.returncode}\n{done.stdout}")
    hidden = [name for name in os.listdir(folder) if name.startswith(".")]
    if hidden:
        raise AssertionError(f"gst-imaging {' '.join(words)} leaves {hidden}")
    return done.stdout


def result_of(folder):
    """Returns: what result.json in the folder of a result says"""
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as file:
        return json.load(file)


def gst_imaging(*words, status=0, **environment):
    """Returns: what the command printed."""
    done = run_command(*words, merged=True, **environment)
    if done.returncode != status:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def coregister(reference, secondary, folder, *words, status=0):
    """Returns: what the command printed; another result in the folder is replaced."""
    return gst_imaging("coregister", reference, secondary, "-o", folder, "--overwrite", *words, status=status)


def through(element, frame, format):
    """One frame, [height, width(, channels)], through a launch line."""
    height, width = frame.shape[:2]
    pipeline = Gst.parse_launch(
        f"appsrc name=in ! {element} ! appsink name=out sync=false")
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.set_property("format", Gst.Format.TIME)
    source.set_property("caps", Gst.Caps.from_string(
        f"video/x-raw,format={format},width={width},height={height},framerate=25/1"))
    row = frame.reshape(height, -1).view(np.uint8)
    stride = (row.shape[1] + 3) // 4 * 4
    padded = np.zeros((height, stride), np.uint8)
    padded[:, :row.shape[1]] = row
    pipeline.set_state(Gst.State.PLAYING)
    try:
        source.emit("push-buffer", Gst.Buffer.new_wrapped(padded.tobytes()))
        sample = sink.emit("try-pull-sample", TIMEOUT * Gst.SECOND)
        if not sample:
            message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise AssertionError(message.parse_error() if message else "no frame came")
        buffer = sample.get_buffer()
        got = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
    finally:
        pipeline.set_state(Gst.State.NULL)
    got = got.reshape(height, stride)[:, :row.shape[1]]
    return np.ascontiguousarray(got).view(frame.dtype).reshape(frame.shape)


def play(pipeline):
    """Plays a pipeline, or the text of one, to its end."""
    if isinstance(pipeline, str):
        pipeline = Gst.parse_launch(pipeline)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(
        TIMEOUT * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if not message:
        raise AssertionError("the pipeline did not come to its end")
    if message.type == Gst.MessageType.ERROR:
        raise AssertionError(message.parse_error())


def read_csv(path):
    """Columns by name, as float64; empty fields are NaN."""
    return np.genfromtxt(path, delimiter=",", names=True, encoding="ascii")
