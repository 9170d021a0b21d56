# SPDX-License-Identifier: LGPL-2.1-or-later
"""A loop with the simulated telescope for the panel: frames into an appsrc, commands out of an appsink, in a thread of its own.

No Python runs in a thread of the pipeline, and the telescope waits for commands, not for a browser.
"""
import threading
import time

import numpy as np

from .. import library
from ..ao.simulator import Telescope
from ..metadata import read_bytes
from ..play import quote

LENSLETS, PITCH, RATE, WIND = 10, 8, 200, 3  # frames a second are few, so that two cores do all; the wind in m/s is slow as well
N_FRAMES = 10000  # from one end of the air to the other, where the wind turns
THRESHOLD, STROKE = 115, 24  # counts, rad
CONDITION = 20
PICTURES = 8  # frames for a picture of the mirror
PATIENCE = 0.2  # seconds
REACH = 1e6  # rad: commands beyond it, or that are no numbers, do not move the mirror
SIZE = LENSLETS * PITCH
CORNERS = LENSLETS + 1
WIDE = 2 * CORNERS + 1  # of the picture with wavefronts at three of its corners


def telescope():
    return Telescope(LENSLETS, PITCH, diameter=0.2 * LENSLETS, r0=0.25, wind=WIND, rate=RATE, n_frames=N_FRAMES)


def control_matrix():
    """The inverse of what the sensor sees of each command, without modes that it hardly sees."""
    made = telescope()
    made.is_noisy = False
    made.air = lambda: 2 * np.nonzero(made.corners)[1].astype(float)
    middle = LENSLETS // 2
    light = np.maximum(made.frame().astype(float) - THRESHOLD, 0).reshape(LENSLETS, PITCH, LENSLETS, PITCH)[middle, :, middle].sum(0)
    slope = light @ (np.arange(PITCH) - (PITCH - 1) / 2) / light.sum()
    shrinks = slope / (2 * made.gain)  # the threshold cuts the wings of a spot
    return np.linalg.pinv(shrinks * made.interaction(), rcond=1 / CONDITION)


def description(folder, settings):
    """settings: of shreconstruct. Returns: the pipeline and its layout"""
    path = f"{folder}/control.npy"
    np.save(path, control_matrix().astype(np.float32))
    picture = f"other/tensors,format=static,num-tensors=1,types=float32,dimensions=1:{WIDE}:{WIDE}:1,framerate={RATE // PICTURES}/1"
    live = "format=time is-live=true do-timestamp=true max-buffers=4 leaky-type=downstream"  # what stands still does not fill memory
    text = (f'appsrc name=telescope {live} caps="video/x-raw,format=GRAY16_LE,width={SIZE},height={SIZE},framerate={RATE}/1" ! '
            f"shcentroid name=ao columns={LENSLETS} rows={LENSLETS} pitch-x={PITCH} pitch-y={PITCH} fields=slopes threshold-mode=absolute "
            f"threshold={THRESHOLD} min-flux=500 ! "
            f'shreconstruct name=loop {quote("matrix-location=" + path)} minimum=-{STROKE} maximum={STROKE} gain=0.3{settings} ! '
            "appsink name=commands sync=false max-buffers=8 drop=true "
            f'appsrc name=wavefronts {live} caps="{picture}" ! fakesink sync=false async=false')
    return text, {"main": "ao.src", "more": [{"pad": "wavefronts.src", "colours": "blue-red"}], "results": ["ao"],
                  "sliders": {"loop": {"gain": {"maximum": 2}, "leak": {"maximum": 0.2}}}}


class Driver:
    """Moves the air and the mirror for as long as the process lives; a pipeline that is stopped or paused stands still."""

    def __init__(self, pipeline, warn=lambda text: None):
        """warn: is told once when the mirror is sent what it cannot do, and again after commands that it can"""
        self.Gst, self.telescope, self.warn, self.holds = library.gstreamer(), telescope(), warn, False
        self.source, self.sink, self.wavefronts = map(pipeline.get_by_name, ("telescope", "commands", "wavefronts"))
        self.wind = 1
        self.pictures, self.due = np.full((WIDE, WIDE), np.nan, np.float32), 0
        threading.Thread(target=self.run, name="telescope", daemon=True).start()

    def run(self):
        waits = False
        while True:
            if not waits and not self.push():
                time.sleep(PATIENCE)
                continue
            sample = self.sink.emit("try-pull-sample", int(PATIENCE * self.Gst.SECOND))
            # after a pause the frame is answered; in other states it is lost
            waits = not sample and self.sink.get_state(0)[1] == self.Gst.State.PAUSED
            if sample:
                self.move(sample)
                self.due = max(self.due + 1 / RATE, time.monotonic())
            time.sleep(max(0, self.due - time.monotonic()) if sample else PATIENCE)

    def push(self):
        """Returns: whether the pipeline has taken the frame"""
        while self.sink.emit("try-pull-sample", 0):
            pass  # late commands
        frame = self.telescope.frame()
        return self.source.emit("push-buffer", self.Gst.Buffer.new_wrapped(frame.tobytes())) == self.Gst.FlowReturn.OK

    def move(self, sample):
        made = self.telescope
        if made.frame_number % PICTURES == 0:
            self.show(made)
        commands = np.frombuffer(read_bytes(sample.get_buffer()), np.float32)
        if len(commands) == made.n_actuators and self.can_take(commands):  # the mirror holds with a matrix of another one
            made.send(commands)
        else:
            made.frame_number += 1
        if made.frame_number >= N_FRAMES:
            self.wind = -1
        made.frame_number += self.wind - 1
        if made.frame_number <= 0:
            self.wind = 1

    def can_take(self, commands):
        held, self.holds = self.holds, not np.all(np.abs(commands) <= REACH)  # of a NaN as well
        if self.holds and not held:
            self.warn(f"The simulated mirror holds its shape: commands beyond {REACH:g} rad, or that are no numbers, reach it. "
                      "Lower gain, or the limits minimum and maximum.")
        return not self.holds

    def show(self, made):
        """The air, the mirror beside it, and below what is left, at the corners of the lenslets, in rad."""
        mirror = made.mirror()
        first, second = slice(CORNERS), slice(CORNERS + 1, None)
        for place, phase in ((first, first), made.air()), ((first, second), mirror - mirror.mean()), ((second, first), made.residual()):
            self.pictures[place][made.corners] = phase
        self.wavefronts.emit("push-buffer", self.Gst.Buffer.new_wrapped(self.pictures.tobytes()))
