#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""photostereo in a Python program: pictures in, normals and albedo out as NumPy
arrays, and a look at what the set says about itself.

appsrc -> photostereo -> two appsinks. Pictures name their light by the offset of
the buffer, so that they may come in any order. Exit status: 77 without PyGObject
or NumPy.
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

SIZE, LIGHTS, RADIUS = 96, 30, 40


def make_lights():
    """Unit vectors from the zenith down to 50 degrees."""
    i = np.arange(LIGHTS)
    z = 1 - 0.36 * (i + 0.5) / LIGHTS
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(2.4 * i), r * np.sin(2.4 * i), z], 1)


def make_ball():
    """Normals of a ball, zero around it."""
    y, x = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    n = np.stack([x, -y, np.sqrt(np.maximum(RADIUS**2 - x * x - y * y, 0))], -1) / RADIUS
    n[x * x + y * y > (0.8 * RADIUS) ** 2] = 0
    return n


def pull(sink, channels):
    """The tensor that an appsink has."""
    sample = sink.emit("try-pull-sample", 5 * Gst.SECOND)
    if not sample:
        sys.exit("no result came out")
    buffer = sample.get_buffer()
    numbers = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32)
    return numbers.reshape(SIZE, SIZE, channels)


def solve(pictures, lights):
    """Normals and albedo of pictures (index, array), and the last message."""
    pipeline = Gst.parse_launch(
        f"appsrc name=in format=time ! photostereo name=p lights-location={lights} "
        "index-source=offset "
        # not async: both sinks are fed by one thread, which the first would keep
        "p.normal ! appsink name=normal sync=false async=false caps=other/tensors "
        "p.albedo ! appsink name=albedo sync=false async=false caps=other/tensors"
    )
    source, normal, albedo = (pipeline.get_by_name(n) for n in ("in", "normal", "albedo"))
    source.set_property("caps", Gst.Caps.from_string(
        f"video/x-raw,format=GRAY16_LE,width={SIZE},height={SIZE},framerate=10/1"))
    pipeline.set_state(Gst.State.PLAYING)
    for index, picture in pictures:
        buffer = Gst.Buffer.new_wrapped(picture.tobytes())
        buffer.offset = index
        source.emit("push-buffer", buffer)
    results = pull(normal, 3), pull(albedo, 1)[..., 0]
    bus, said = pipeline.get_bus(), None
    while message := bus.pop_filtered(Gst.MessageType.ELEMENT):
        if message.get_structure().get_name() == "photostereo-progress":
            said = message.get_structure()
    pipeline.set_state(Gst.State.NULL)
    return *results, said


def main():
    Gst.init(None)
    if not Gst.ElementFactory.find("photostereo"):
        sys.exit(77)
    lights, ball = make_lights(), make_ball()
    shades = 0.7 * np.maximum(ball @ lights.T, 0)
    order = np.random.default_rng(1).permutation(LIGHTS)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lights.txt")
        np.savetxt(path, lights)
        normal, albedo, said = solve(
            [(int(i), np.round(65535 * shades[..., i]).astype("<u2")) for i in order], path)
    solved = (ball != 0).any(-1)
    cosine = np.clip((normal * ball).sum(-1)[solved], -1, 1)
    worst = np.degrees(np.arccos(cosine)).max()
    print(f"{said.get_uint('lights')[1]} lights: at most {worst:.3f} degrees off, "
          f"albedo {albedo[solved].mean():.4f}")
    if worst > 0.1 or abs(albedo[solved].mean() - 0.7) > 1e-3 or normal[~solved].any():
        sys.exit("the ball is not what was found")


if __name__ == "__main__":
    main()
