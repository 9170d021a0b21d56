# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs gst-imaging for support.run_command(): the interpreter, NumPy and GStreamer are loaded once, and every command is a
fork of this process, which has started no thread.

A line of standard input is a request, a JSON object: words, folder, environment, the files output and error, and seconds
after which the command is killed. A line of standard output is the exit status of one, below 0 the signal that ended it.
"""
import json
import os
import pkgutil
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

import gst_imaging
from gst_imaging import command


def load():
    Gst.init(None)  # before aiohttp: with Brotli's C++ loaded first, Debian 12's GStreamer brings an unwinder with which GDAL aborts
    for module in pkgutil.walk_packages(gst_imaging.__path__, "gst_imaging."):
        if not module.name.endswith("__main__"):
            __import__(module.name)


def become(request):
    """In the fork: all that a new process would have."""
    signal.alarm(request["seconds"])
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, request["output"], os.O_WRONLY | os.O_APPEND),
                                    (2, request["error"], os.O_WRONLY | os.O_APPEND)):
        file = os.open(path, flags)
        os.dup2(file, descriptor)
        os.close(file)


def serve():
    """Returns: in a fork, the words of its command; None at the end of the requests"""
    for line in sys.stdin:
        request = json.loads(line)
        fork = os.fork()
        if not fork:
            become(request)
            return request["words"]
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)
    return None


load()
words = serve()
sys.exit(0 if words is None else command.main(words))
