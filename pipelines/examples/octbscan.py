#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""octbscan in a Python program: spectra in, B-scans out as NumPy arrays.

appsrc -> octbscan -> two appsinks, one for the dB image and one for the linear
one. Exit status: 77 without PyGObject or NumPy.
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

SAMPLES, LINES, SCALE = 512, 64, 2
DEPTHS = SAMPLES * SCALE // 2
FIRST, LAST = 806.0, 675.0  # nm, at the first and the last sample
BLACK, WHITE = 0.0, 50.0  # dB


def make_spectra(depth, rng):
    """A mirror at a depth, as a bin of a spectrum that is linear in wavenumber."""
    wavelength = np.linspace(FIRST, LAST, SAMPLES)
    along = (1 / wavelength - 1 / FIRST) / (1 / LAST - 1 / FIRST)
    phase = rng.uniform(0, 2 * np.pi, (LINES, 1))
    fringes = 100 * np.cos(2 * np.pi * depth * along + phase)
    return np.round(2000 + fringes + rng.normal(0, 5, fringes.shape)).astype("<u2")


def pull(sink):
    """The next image of an appsink."""
    sample = sink.emit("try-pull-sample", 5 * Gst.SECOND)
    if not sample:
        sys.exit("no image came out")
    buffer = sample.get_buffer()
    return np.frombuffer(buffer.extract_dup(0, buffer.get_size()), "<u2").reshape(DEPTHS, LINES)


def process(frames, calibration):
    """Yields the dB and the linear image of each frame."""
    pipeline = Gst.parse_launch(
        f"appsrc name=in format=time ! octbscan name=o calibration={calibration} "
        f"scale={SCALE} window=hann range-min={BLACK} range-max={WHITE} "
        # not async: both sinks are fed by one thread, which the first would keep
        "o.src ! appsink name=db sync=false async=false caps=video/x-raw,format=GRAY16_LE "
        "o.linear ! appsink name=linear sync=false async=false "
        "caps=video/x-raw,format=GRAY16_LE"
    )
    source, db, linear = (pipeline.get_by_name(n) for n in ("in", "db", "linear"))
    source.set_property(
        "caps",
        Gst.Caps.from_string(
            f"video/x-raw,format=GRAY16_LE,width={SAMPLES},height={LINES},framerate=100/1"
        ),
    )
    pipeline.set_state(Gst.State.PLAYING)
    for frame in frames:
        source.emit("push-buffer", Gst.Buffer.new_wrapped(frame.tobytes()))
        yield pull(db) / 65535 * (WHITE - BLACK) + BLACK, pull(linear)
    pipeline.set_state(Gst.State.NULL)


def main():
    Gst.init(None)
    if not Gst.ElementFactory.find("octbscan"):
        sys.exit(77)
    rng = np.random.default_rng(1)
    depths = [20, 75, 130]
    with tempfile.TemporaryDirectory() as folder:
        calibration = os.path.join(folder, "oct.ini")
        with open(calibration, "w") as file:
            file.write(f"[camera]\nlambda-first={FIRST}\nlambda-last={LAST}\n")
        frames = [make_spectra(depth, rng) for depth in depths]
        for depth, (db, linear) in zip(depths, process(frames, calibration)):
            found = db.mean(axis=1).argmax() / SCALE
            peak = db.mean(axis=1).max()
            print(f"mirror at {depth}: brightest at {found:.1f}, {peak:.2f} dB")
            # an amplitude of 100 counts is 40 dB
            if abs(found - depth) > 1 or abs(peak - 40) > 0.7 or not linear.any():
                sys.exit("the mirror was not found where it is")


if __name__ == "__main__":
    main()
