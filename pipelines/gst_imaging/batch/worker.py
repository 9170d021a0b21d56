# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that works on rows, one after the other, so that libraries and a CUDA context are loaded once. If it crashes, the row that
it works on is lost, and no other."""
import contextlib
import ctypes
import json
import os
import signal
import socket
import time
import traceback

from ..command import NO_RESULT, NOT_WRITTEN, WRONG_USE, Failure, Stopped, explain, flush, held, stop, whole
from ..job import Busy, Stale
from . import allocation
from .run import NotMade, find, run

PR_SET_PDEATHSIG = 1
FIRST_VICTIM = "1000"  # memory that runs out ends a worker, and not the process that knows of the others


def results_of(row, overwrite, problem):
    """Returns: the results of a row, as job.run_all() makes them. problem: why it cannot be written; then it has to be complete"""
    if not problem:
        return run(row, overwrite)
    try:
        return find(row, {})
    except NotMade:
        raise Failure(NOT_WRITTEN, problem) from None


def attempt(row, overwrite, problem):
    """Returns: what becomes of a row"""
    warnings, state = [], "failed"
    try:
        results = results_of(row, overwrite, problem)
        warnings = [sentence for one in results for sentence in one.get("warnings", [])]
        return {"state": "made" if any(one["made"] for one in results) else "complete", "warnings": warnings}
    except Busy:  # as a worker of a batch that was killed, until it has removed what is half
        return {"state": "busy"}
    except Failure as failure:
        state = "stale" if isinstance(failure, Stale) else "failed"
        code, sentence, warnings = failure.code, str(failure), failure.result.get("warnings", [])
    except OSError as error:
        code, sentence = explain(error)
    except SystemExit:  # of argparse, as for --help
        code, sentence = WRONG_USE, f"gst-imaging {row.command} did not run with these arguments."
    except Exception as error:
        traceback.print_exc()
        code, sentence = NO_RESULT, f"gst-imaging {row.command} failed with {type(error).__name__}: {error}."
    return {"state": state, "exit-status": code, "error": sentence, "warnings": warnings}


def work(connection, rows, overwrite):
    """Takes numbers of rows and why they cannot be written, and answers with a line for each."""
    for line in connection.makefile("r", encoding="utf-8"):
        index, problem = json.loads(line)
        answer = attempt(rows[index], overwrite, problem)
        flush()
        connection.sendall(json.dumps(answer).encode() + b"\n")


def stamp(folder):
    """Returns: what differs when the result in a folder is another one; None without a result"""
    try:
        found = os.stat(os.path.join(folder, "result.json"))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


class Worker:
    """As the coordinating process sees it. row: that it works on"""

    def __init__(self, place, n_workers, rows, overwrite):
        self.place, self.row, self.claim, self.answer, self.last_words = place, None, None, b"", b""
        self.connection, there = socket.socketpair()
        self.errors, errors = os.pipe()
        flush()
        parent = os.getpid()
        with whole():  # a signal in the fork must not make two of this process
            self.pid = os.fork()
            if not self.pid:
                self.become(parent, there, errors, n_workers, rows, overwrite)
        there.close()
        os.close(errors)

    def become(self, parent, connection, errors, n_workers, rows, overwrite):
        """In the fork."""
        status = 1
        try:
            number = held.pop()
            if number:
                stop(number, None)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
            if os.getppid() != parent:
                os._exit(status)
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write(FIRST_VICTIM)
            for number, given in (0, os.open(os.devnull, os.O_RDONLY)), (1, errors), (2, errors):
                os.dup2(given, number)  # a line of a library is no JSON
            os.closerange(3, connection.fileno())
            os.closerange(connection.fileno() + 1, 1024)
            os.environ.update(allocation.share(self.place, n_workers))
            work(connection, rows, overwrite)
            status = 0
        except Stopped as stopped:
            signal.signal(stopped.number, signal.SIG_DFL)
            os.kill(os.getpid(), stopped.number)
        except OSError:
            pass  # the other process has gone
        finally:
            os._exit(status)

    def start(self, row, index, claim, problem):
        self.row, self.index, self.claim, self.begin, self.last_words = row, index, claim, time.monotonic(), b""
        self.before = stamp(row.output)
        with contextlib.suppress(OSError):  # it has gone: there will be no answer
            self.connection.sendall(json.dumps([index, problem]).encode() + b"\n", socket.MSG_NOSIGNAL)

    def read_answer(self):
        """Returns: what became of the row, None if not all is there yet"""
        try:
            piece = self.connection.recv(1 << 16)
        except OSError:
            piece = b""
        self.answer += piece
        if self.answer.endswith(b"\n"):
            answer, self.answer = json.loads(self.answer), b""
            return answer
        return None if piece else self.crash()

    def crash(self):
        self.read_errors()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = None
        if self.row and stamp(self.row.output) not in (None, self.before):
            return {"state": "made"}  # it crashed when all was written
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        cause = " Memory may have run out." if status == -signal.SIGKILL else ""
        last = self.last_words.decode(errors="replace").strip().splitlines()[-1:]
        return {"state": "failed", "exit-status": 128 - status if status < 0 else status or NO_RESULT,
                "error": f"The process ended with {name}.{cause}{' Its last line: ' + last[0] if last else ''}"}

    def read_errors(self):
        """Returns: what it wrote to standard error since"""
        os.set_blocking(self.errors, False)
        text = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.errors, 1 << 16):
                text += piece
        self.last_words = (self.last_words + text)[-4096:]
        return text.decode(errors="replace")

    def close(self):
        """Without more rows it ends."""
        self.connection.close()
        os.close(self.errors)

    def stop(self):
        """It then removes what is half."""
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)

    def end(self, deadline):
        """Waits for one that is stopped; kills it at the deadline."""
        if not self.pid:
            return
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                deadline += 3600
            time.sleep(0.02)
        self.pid = None
