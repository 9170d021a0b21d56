# SPDX-License-Identifier: LGPL-2.1-or-later
"""Presets: the settings of the elements of gst-imaging under a name, in a file of the user for each pipeline."""
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import time

from .refusal import Refusal


def store(key):
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "gst-imaging", "panel", hashlib.sha256(key.encode()).hexdigest()[:16] + ".json")


def open_regular(path, flags, mode):
    """A FIFO would let the panel wait for ever. Returns: the file; an OSError of what is no regular file"""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return open(fd, mode, encoding="utf-8")


def is_preset(values):
    return isinstance(values, dict) and all(isinstance(properties, dict) for properties in values.values())


class Presets:
    """Panels of one pipeline share the file: it is read again when it has changed, and locked while one changes it."""

    def __init__(self, key):
        self.path = store(key)
        self.all, self.seen, self.damaged = {}, None, False
        self.read()

    def read(self):
        try:
            with open_regular(self.path, os.O_RDONLY, "r") as file:
                status = os.fstat(file.fileno())
                seen = status.st_ino, status.st_mtime_ns, status.st_size
                if seen == self.seen:
                    return
                self.all, self.seen, self.damaged = {}, seen, True
                found = json.load(file)
        except FileNotFoundError:
            self.all, self.seen, self.damaged = {}, None, False
            return
        except OSError:
            self.all, self.seen, self.damaged = {}, None, True
            return
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            self.all = {name: values for name, values in found.items() if is_preset(values)}
            self.damaged = len(self.all) < len(found)

    def names(self):
        self.read()
        return sorted(self.all)

    def get(self, name):
        self.read()
        if name not in self.all:
            raise Refusal(404, f'There is no preset "{name}".')
        return self.all[name]

    def lock(self, file):
        for _ in range(5):
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
        raise Refusal(409, f"Another panel is writing {self.path}. Try again.")

    @contextlib.contextmanager
    def change(self):
        """Between reading and writing, no other panel writes. A file that this panel cannot read whole is not replaced."""
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open_regular(self.path + ".lock", os.O_RDWR | os.O_CREAT, "r+") as lock:
                self.lock(lock)
                self.read()
                if self.damaged:
                    raise Refusal(409, f"{self.path} is damaged, or cannot be read. Repair or move it, then save the preset again.")
                yield
                with open_regular(self.path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "w") as file:
                    json.dump(self.all, file, indent=1)
                os.replace(self.path + ".new", self.path)
        except OSError as error:
            self.seen = None
            raise Refusal(422, f"{self.path} cannot be written: {error.strerror}.") from error

    def save(self, name, values):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9 _-]{1,64}", name):
            raise Refusal(400, "The name of a preset has 1 to 64 letters, digits, blanks, _ and -.")
        with self.change():
            if len(self.all) >= 200 and name not in self.all:
                raise Refusal(409, "There are 200 presets. Delete one first.")
            self.all[name] = values

    def delete(self, name):
        with self.change():
            self.get(name)
            del self.all[name]


def compare(a, b):
    """Returns: what differs; values by element and property"""
    places = sorted({(e, p) for values in (a, b) for e, properties in values.items() for p in properties})
    found = [{"element": e, "property": p, "a": a.get(e, {}).get(p), "b": b.get(e, {}).get(p)} for e, p in places]
    return [entry for entry in found if entry["a"] != entry["b"]]
