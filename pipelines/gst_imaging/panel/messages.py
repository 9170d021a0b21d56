# SPDX-License-Identifier: LGPL-2.1-or-later
"""Warnings, errors and infos of a panel, the newest ones."""
import time

MAX_MESSAGES = 200
FOLLOWING = 2  # seconds after a failure in which messages follow from it


class Messages:
    def __init__(self, panel):
        self.panel, self.all = panel, []
        self.n = self.n_errors = self.n_warnings = 0
        self.failure = None  # the number of the first error since the last change of state, and when it came
        self.say = lambda element, sentence: None  # a warning or an error, when it is told for the first time

    def tell(self, severity, element, text, debug=None):
        self.n += 1
        self.n_errors += severity == "error"
        self.n_warnings += severity == "warning"
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
        told = {"type": "message", "severity": severity, "number": self.n, "time": stamp,
                "element": element, "text": text, "debug": debug, "count": 1, "first": stamp, "replaces": None, "follows": self.cause()}
        # a loop warns in each pass: what was told already is one message, the newest
        for same in [m for m in self.all if (m["severity"], m["element"], m["text"]) == (severity, element, text)]:
            told.update({"count": same["count"] + 1, "first": same["first"], "replaces": same["number"]})
            self.all.remove(same)
        self.all = self.all[1 - MAX_MESSAGES:] + [told]
        if severity != "info" and told["count"] == 1:
            self.say(element, text if told["follows"] is None else f"{text} (follows from the error before)")
        self.panel.listener(told)

    def note_failure(self):
        """After an error that stops the pipeline was told."""
        self.failure = self.failure or (self.n, time.monotonic())

    def cause(self):
        """Returns: the number of the error that a message of now follows from, None without one"""
        number, when = self.failure or (None, 0)
        return number if time.monotonic() - when < FOLLOWING else None

    def error_text(self):
        """Returns: the sentence of the newest error that follows from no other"""
        return next((m["text"] for m in reversed(self.all) if m["severity"] == "error" and m["follows"] is None), "It does not say why.")
