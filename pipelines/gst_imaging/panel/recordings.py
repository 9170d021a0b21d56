# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recording of a panel and its snapshots. All of it runs in the thread of the panel."""
import concurrent.futures
import contextlib
import os

from . import outputs, pads
from .recording import Recording
from .refusal import Refusal


class Recordings:
    def __init__(self, panel):
        self.panel, self.current = panel, None
        self.snapshots = set()  # that wait for their frame

    def state(self):
        return self.current.state() if self.current else None

    def tell(self):
        self.panel.listener({"type": "recording", "recording": self.state()})

    def paths(self):
        """Returns: those that are written now"""
        return [recording.path for recording in (self.current, *self.snapshots) if recording]

    def end(self):
        """At the end of the panel, which waits for what is written."""
        with contextlib.suppress(Refusal):
            answer = self.stop() if self.current else None
            while answer and not answer.done():  # the thread of the recording has an end
                self.panel.do_job(0.02)

    def follow(self):
        if self.current.ended:
            self.tell()
            return
        try:
            self.current.check()
        except Refusal as refusal:  # it is closed
            self.current = None
            self.tell()
            self.panel.messages.tell("error", "", str(refusal))
            return
        self.tell()
        if self.current.is_complete():
            self.stop_alone("error")

    def stop_alone(self, severity):
        """Where nobody waits for an answer, or for the end."""
        if not self.current:
            return

        def tell_failure(answer):
            if answer.exception():
                self.panel.messages.tell(severity, "", str(answer.exception()))

        try:
            self.stop().add_done_callback(tell_failure)
        except Refusal as refusal:
            self.panel.messages.tell(severity, "", str(refusal))

    def output(self, pad, name, replace):
        """Returns: the path of a recording of a pad"""
        if name.endswith("/") or os.path.isdir(self.panel.files.place(name)):
            raise Refusal(400, f'path is the name of a file, not of a folder: "{name}".')
        has_flags = pads.has_flags(pad)
        return self.panel.check_new(self.panel.check_output(self.panel.files.check(name), has_flags=has_flags), replace, has_flags)

    def start(self, name, path, frames, replace):
        if self.current:
            raise Refusal(409, f"A recording of {self.current.name} runs already: stop it first.")
        if isinstance(frames, bool) or not isinstance(frames, int) or not 0 <= frames < 2 ** 62:
            raise Refusal(400, "frames is a whole number from 0 on.")
        pad = self.panel.pad(name)
        path = self.output(pad, path, replace)
        self.current = Recording(self.panel.Gst, self.panel.GstImaging, pad, name, path, frames, self.panel.warn_later, replace)
        self.tell()
        return {"path": self.current.path}

    def stop(self):
        """Returns: a Future of the answer: other commands are done while the rest is written"""
        if not self.current:
            raise Refusal(409, "No recording runs.")
        recording, answer = self.current, concurrent.futures.Future()
        answer.set_running_or_notify_cancel()
        try:
            ended = recording.ended or recording.stop()
        except Refusal:
            self.forget(recording)
            raise
        self.tell()
        ended.add_done_callback(lambda _ended: self.panel.submit(self.has_recorded, recording, answer))
        return answer

    def forget(self, recording):
        if self.current is recording:
            self.current = None
            self.tell()

    def has_recorded(self, recording, answer):
        self.forget(recording)  # first: then another one can begin
        if recording.ended.exception():
            answer.set_exception(recording.ended.exception())
        else:
            answer.set_result({name: recording.ended.result()[name] for name in ("path", "frames", "lost", "complete")})

    def begin_snapshot(self, name, path, replace):
        """Returns: a recording of one frame, which others wait for: this thread has more to do. drop_snapshot() goes with it"""
        if self.panel.state_name not in ("playing", "paused"):
            raise Refusal(409, "The pipeline is stopped, and no frame passes: play it first.")
        pad, sample = self.panel.pad(name), None
        path = self.output(pad, path, replace)
        if self.panel.state_name == "paused":
            sample = self.panel.kept.frame(name)
            if not sample:
                raise Refusal(409, f"No frame has passed {name} since the pipeline was paused: seek, or play it first.")
        recording = Recording(self.panel.Gst, self.panel.GstImaging, pad, name, path, 1, self.panel.warn_later, replace)
        if sample:
            recording.push(sample)
        self.snapshots.add(recording)
        return recording

    def look_at_snapshot(self, recording):
        recording.check()
        return recording.is_complete()

    @staticmethod
    def told_of_snapshot(state):
        if not state["complete"]:
            raise Refusal(422, f'{state["path"]} could not be completed in time.')
        return {"path": outputs.first_of(state["path"]), "frames": state["frames"]}

    def drop_snapshot(self, recording):
        self.snapshots.discard(recording)
        recording.close()
