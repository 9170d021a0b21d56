#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Closes an adaptive optics loop with shcentroid and shreconstruct, without hardware.

A simulated sensor of 7 x 7 lenslets sees a simulated mirror of 7 x 7 actuators. First each actuator is poked, which gives the
interaction matrix; its inverse is the control matrix. Then the loop runs: a frame goes in, commands come out, and move the
mirror that the next frame sees. Exit status: 77 without PyGObject or NumPy.
"""
import os
import sys
import tempfile

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
    import numpy as np
except (ImportError, ValueError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from gst_imaging import metadata

LENSLETS, PITCH, ACTUATORS = 7, 7, 7
SENSOR = f"shcentroid name=sh columns={LENSLETS} rows={LENSLETS} pitch-x={PITCH} pitch-y={PITCH} fields=slopes"


class Optics:
    """What the light does: an aberration and a mirror bend the wavefront, and each lenslet makes a spot of it."""

    def __init__(self, rng):
        middle = (np.arange(LENSLETS) + 0.5) / LENSLETS * 2 - 1
        self.y, self.x = (axis.ravel() for axis in np.meshgrid(middle, middle, indexing="ij"))
        place = np.linspace(-1.4, 1.4, ACTUATORS)  # the outer ones are beyond the pupil
        ay, ax = (axis.ravel() for axis in np.meshgrid(place, place, indexing="ij"))
        dx, dy = self.x[:, None] - ax, self.y[:, None] - ay
        bump = np.exp(-(dx ** 2 + dy ** 2) / 0.35)
        self.influence = np.concatenate([-dx * bump, -dy * bump])  # slopes of each actuator
        self.rng, self.bend = rng, rng.normal(size=4)

    def drift(self):
        """The air moves a little. Returns: the slopes of the aberration, in pixels"""
        self.bend += 0.02 * self.rng.normal(size=4)
        tip, tilt, focus, astigmatism = 0.3 * self.bend
        return np.concatenate([tip + focus * self.x + astigmatism * self.y, tilt + focus * self.y + astigmatism * self.x])

    def frame(self, slopes):
        """A frame of 8 bits whose spots have moved by these slopes, with photon noise."""
        dx, dy = slopes[:len(self.x)], slopes[len(self.x):]
        y, x = np.mgrid[:LENSLETS * PITCH, :LENSLETS * PITCH]
        light = np.zeros(x.shape)
        for i, (sx, sy) in enumerate(zip(dx, dy)):
            row, column = divmod(i, LENSLETS)
            cx, cy = (column + 0.5) * PITCH - 0.5 + sx, (row + 0.5) * PITCH - 0.5 + sy
            light += 200 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 2)
        return np.minimum(self.rng.poisson(light), 255).astype(np.uint8)


class Stream:
    """Frames in, one buffer out for each."""

    def __init__(self, elements):
        self.pipeline = Gst.parse_launch(f"appsrc name=in format=time ! {elements} ! appsink name=out sync=false")
        size = LENSLETS * PITCH
        self.source, self.sink = self.pipeline.get_by_name("in"), self.pipeline.get_by_name("out")
        self.source.set_property("caps", Gst.Caps.from_string(
            f"video/x-raw,format=GRAY8,width={size},height={size},framerate=1000/1"))
        self.pipeline.set_state(Gst.State.PLAYING)

    def __call__(self, frame):
        rows = np.zeros((frame.shape[0], (frame.shape[1] + 3) // 4 * 4), np.uint8)  # GStreamer's rows are multiples of 4 bytes
        rows[:, :frame.shape[1]] = frame
        self.source.emit("push-buffer", Gst.Buffer.new_wrapped(rows.tobytes()))
        sample = self.sink.emit("try-pull-sample", 5 * Gst.SECOND)
        if not sample:
            message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            sys.exit(message.parse_error()[0].message if message else "no buffer came out")
        return sample.get_buffer()

    def close(self):
        self.pipeline.set_state(Gst.State.NULL)


def poke_all(optics, poke=2):
    """Returns: the interaction matrix [2 cells, commands]: the slopes of each command, pushed and pulled"""
    stream, columns = Stream(SENSOR), []
    for command in range(ACTUATORS ** 2):
        both = []
        for sign in (1, -1):
            buffer = stream(optics.frame(sign * poke * optics.influence[:, command]))
            both.append(metadata.results(buffer, "sh")["values"].astype(float).reshape(-1))
        columns.append((both[0] - both[1]) / (2 * poke))
    stream.close()
    return np.stack(columns, axis=1)


def main():
    Gst.init(None)
    optics = Optics(np.random.default_rng(1))
    control = np.linalg.pinv(poke_all(optics), rcond=0.06)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "control.npy")
        np.save(path, control.astype(np.float32))
        loop = Stream(f"{SENSOR} ! shreconstruct matrix-location={path} gain=0.5")
        commands, before, after = np.zeros(ACTUATORS ** 2), [], []
        for t in range(100):
            aberration = optics.drift()
            left = aberration + optics.influence @ commands
            buffer = loop(optics.frame(left))
            commands = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32).astype(float)
            before.append(np.sqrt(np.mean(aberration ** 2)))
            after.append(np.sqrt(np.mean(left ** 2)))
            if t % 10 == 0:
                print(f"frame {t:2}: slopes {before[-1]:.3f} pixel without the mirror, {after[-1]:.3f} with it")
        loop.close()
    share = np.mean(after[20:]) / np.mean(before[20:])
    print(f"The mirror leaves {100 * share:.0f} % of the aberration.")
    if share > 0.25:
        sys.exit("the loop does not correct")


if __name__ == "__main__":
    main()
