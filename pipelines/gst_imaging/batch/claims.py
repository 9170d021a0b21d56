# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who works on an output: a hidden file beside it, which only one process can make.

It holds host, process and start of that process, its worker and when that began; its time is renewed. A claim of this host is stale when its process has
gone; one of another host when its time is old, by the clock of the file system. Who finds a stale claim renames it, which only
one can do, and makes a new one. If all of this fails, as on a file system without O_EXCL and links, the lock of job.Job is left.
"""
import contextlib
import datetime
import errno
import json
import os
import socket
import stat
import tempfile
import uuid

RENEWED, STALE = 30, 300  # seconds
LONGEST = 4096  # letters of a claim
NO_LINKS = errno.EPERM, errno.ENOTSUP, errno.ENOSYS  # of file systems such as FAT


def started(pid):
    """Returns: when a process started, in ticks since this system did; None if it has gone. A zombie has gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def host():
    """The machine since its last start, and its processes as we see them: containers number theirs anew."""
    told = [socket.gethostname()]
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            told.append(file.read().strip())
        told.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(told)


def now(folder):
    """The clock of the file system: those of two hosts may differ."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime


def read(path):
    """Returns: what a claim holds, {} for one that is not written yet; raises FileNotFoundError"""
    no_file = OSError(errno.EINVAL, f"its claim {path} is no regular file. Remove it")
    if os.path.islink(path):
        raise no_file
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe would wait for a writer
        raise no_file
    with open(path, encoding="utf-8", errors="replace") as file:
        try:
            told = json.loads(file.read(LONGEST))
        except (ValueError, RecursionError):
            return {}
    return told if isinstance(told, dict) else {}


def is_of_here(told):
    """Can we see the process of a claim?"""
    return told.get("host") == host() and isinstance(told.get("pid"), int) and isinstance(told.get("start"), int)


def is_stale(path, told):
    if is_of_here(told):
        return started(told["pid"]) != told["start"]
    return abs(now(os.path.dirname(path)) - os.stat(path).st_mtime) > STALE  # a time in the future would hold for ever


class Claim:
    """One that is ours."""

    def __init__(self, path, token):
        self.path, self.token = path, token

    def is_ours(self):
        try:
            return read(self.path).get("token") == self.token
        except OSError:
            return False

    def renew(self):
        if self.is_ours():
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def release(self):
        if self.is_ours():
            with contextlib.suppress(OSError):
                os.unlink(self.path)


def make(path, worker):
    """Returns: the claim, or None if there is one"""
    since = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    told = {"host": host(), "pid": os.getpid(), "start": started(os.getpid()), "worker": worker, "since": since, "token": uuid.uuid4().hex}
    whole_one = f"{path}.{told['token']}"
    try:
        with open(whole_one, "x", encoding="utf-8") as file:
            json.dump(told, file)
        try:
            os.link(whole_one, path)  # whole or not at all, whatever ends this process
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            with contextlib.suppress(FileExistsError), open(path, "x", encoding="utf-8") as file:
                json.dump(told, file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(whole_one)
    claim = Claim(path, told["token"])
    return claim if claim.is_ours() else None


def take_over(path, told):
    """Renames a stale claim away. If it was another one by then, it is put back."""
    aside = f"{path}.{uuid.uuid4().hex}"
    os.rename(path, aside)
    if read(aside) != told:
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
    os.unlink(aside)


def path_of(output):
    folder, name = os.path.split(os.path.abspath(output))
    return os.path.join(folder, f".{name}.gst-imaging-claim")


def describe(output):
    """Returns: who has claimed an output, since when, and when the claim is stale; "" without a claim"""
    path = path_of(output)
    try:
        told, age = read(path), now(os.path.dirname(path)) - os.stat(path).st_mtime
    except OSError:
        return ""
    name, pid, worker, since = (str(told.get(key) or "unknown").split()[0] for key in ("host", "pid", "worker", "since"))
    stale = "that process has ended" if is_of_here(told) else f"it has not been renewed for {STALE} s"
    return f"claimed by process {pid} (worker {worker}) on {name} since {since}. {path} was renewed {max(0, age):.0f} s ago and is stale when {stale}"


def take(output, worker=None):
    """worker: the number of the process that will work on it. Returns: a Claim of an output; None if somebody works on it. Raises
    OSError where it cannot be written."""
    path = path_of(output)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    while True:
        with contextlib.suppress(FileNotFoundError):  # there is none, or it has just been released or renamed by somebody else
            told = read(path)
            if not is_stale(path, told):
                return None
            take_over(path, told)
        claim = make(path, worker)
        if claim:
            return claim
