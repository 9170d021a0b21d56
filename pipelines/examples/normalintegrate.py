#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""normalintegrate and relight in a Python program: normals in, heights and lit
pictures out as NumPy arrays.

appsrc -> normalintegrate -> appsink
appsrc -> relight -> appsink
Exit status: 77 without PyGObject or NumPy.
"""
import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
    import numpy as np
except (ImportError, ValueError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)

SIZE, RADIUS, MM = 201, 90.0, 0.5  # pixels, pixels, mm a pixel


def make_sphere():
    """Its normals, 0 around it, and its height in mm."""
    x, y = np.meshgrid(np.arange(SIZE) - SIZE // 2, SIZE // 2 - np.arange(SIZE))
    z = np.sqrt(np.maximum(RADIUS ** 2 - x ** 2 - y ** 2, 0))
    normals = np.dstack([x, y, z]) / RADIUS * (z > 0)[..., None]
    return normals.astype(np.float32), np.where(z > 0, MM * z, np.nan)


def pull(sink, type, *shape):
    """The next picture of an appsink; rows of RGB are padded to 4 bytes."""
    sample = sink.emit("try-pull-sample", 5 * Gst.SECOND)
    if not sample:
        sys.exit("no picture came out")
    buffer = sample.get_buffer()
    array = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), type)
    return array.reshape(shape[0], -1)[:, :int(np.prod(shape[1:]))].reshape(shape)


def process(normals, azimuths):
    """Returns: heights in mm, and a picture for each azimuth of the light."""
    pipeline = Gst.parse_launch(
        f"appsrc name=one format=time ! normalintegrate mm-per-pixel={MM} ! "
        "appsink name=heights sync=false caps=other/tensors "
        "appsrc name=two format=time ! relight name=light elevation=0 ! "
        "appsink name=pictures sync=false"
    )
    heights, pictures, light, *sources = (
        pipeline.get_by_name(n) for n in ("heights", "pictures", "light", "one", "two"))
    for source in sources:
        source.set_property("caps", Gst.Caps.from_string(
            "other/tensors,format=static,num_tensors=1,types=float32,"
            f"dimensions=3:{SIZE}:{SIZE}:1,framerate=0/1"))
    pipeline.set_state(Gst.State.PLAYING)
    result, lit = None, []
    for i, azimuth in enumerate(azimuths):
        light.set_property("azimuth", azimuth)
        for source in sources:
            buffer = Gst.Buffer.new_wrapped(normals.tobytes())
            buffer.pts = i * Gst.SECOND
            source.emit("push-buffer", buffer)
        result = pull(heights, np.float32, SIZE, SIZE)
        lit.append(pull(pictures, np.uint8, SIZE, SIZE, 3))
    pipeline.set_state(Gst.State.NULL)
    return result, lit


def main():
    Gst.init(None)
    if not all(map(Gst.ElementFactory.find, ("normalintegrate", "relight"))):
        sys.exit(77)
    normals, truth = make_sphere()
    heights, lit = process(normals, [0.0, 180.0])
    error = np.nanstd(heights - truth)
    print(f"a sphere of {MM * RADIUS} mm: heights off by {error:.5f} mm rms")
    if error > 0.01 or (np.isnan(heights) != np.isnan(truth)).any():
        sys.exit("the sphere is not as high as it is")
    middle, side = SIZE // 2, int(0.8 * RADIUS)
    for picture, way in zip(lit, (1, -1)):
        right, left = (int(picture[middle, middle + way * s, 0]) for s in (side, -side))
        print(f"light from the {'right' if way > 0 else 'left'}: {right} there, {left} opposite")
        if abs(right - 255 * side / RADIUS) > 1 or left:
            sys.exit("the sphere is lit from elsewhere")


if __name__ == "__main__":
    main()
