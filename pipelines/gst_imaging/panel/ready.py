# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ready pipelines: what gst-launch takes, and what the panel shows first."""
import os

from ..command import UNREADABLE, WRONG_USE, Failure
from ..play import quote
from . import demo

CAMERAS = {"v4l2": "v4l2src name=source do-timestamp=true", "aravis": "aravissrc name=source"}


def camera(text, formats):
    kind, _colon, name = text.partition(":")
    if kind not in CAMERAS or not name:
        raise Failure(WRONG_USE, f'--camera is v4l2:/dev/video0 or aravis:NAME, not "{text}".')
    word = quote(("device=" if kind == "v4l2" else "camera-name=") + name)
    return f"{CAMERAS[kind]} {word} ! videoconvert ! video/x-raw,format={formats}"


def source(name, files, text, formats):
    """Returns: the beginning of the pipeline, and whether it is a camera"""
    if text:
        return camera(text, formats) + " ! queue leaky=downstream max-size-buffers=2", True
    for file in files:
        if not os.path.exists(file) and not any(c in file for c in "*?"):
            raise Failure(UNREADABLE, f"There is no {file}.")
    path = os.path.abspath(files[0]) if files else demo.make(name)
    return f'picturesrc name=source {quote("location=" + path)} loop=true framerate=25/1', False


def sharpen(files, text):
    begin, live = source("sharpen", files, text, "GRAY8")
    return (f"{begin} ! lapsharpen name=sharpen focus-measure=true ! fakesink name=sink sync={str(not live).lower()}",
            {"main": "sharpen.src", "before": "source.src" if not live else None, "after": "sharpen.src", "results": ["sharpen"]})


def ao(files, text):
    begin, live = source("ao", files, text, "GRAY8")
    grid = "" if files or live else "columns=12 rows=8 pitch-x=20 pitch-y=20 bit-depth=12 threshold-mode=auto"
    return (f"{begin} ! shcentroid name=ao {grid} ! fakesink name=sink sync={str(not live).lower()}",
            {"main": "ao.src", "results": ["ao"]})


def oct(files, text):
    begin, live = source("oct", files, text, "GRAY16_LE")
    return (f"{begin} ! octbscan name=oct scale=2 window=hann taper=none bscans-per-volume=48 ! queue ! "
            f"fakesink name=sink sync={str(not live).lower()} oct.enface ! queue ! fakesink name=enface-sink async=false sync=false",
            {"main": "oct.src", "volume": {"pad": "oct.src", "frames": 48}})


def photostereo(files, text):
    begin, live = source("photostereo", files[:1], text, "GRAY8")
    if (files or live) and len(files) < (1 if live else 2):
        raise Failure(WRONG_USE, "photostereo needs the file of the lights behind that of the pictures (with a camera: alone).")
    lights = os.path.abspath(files[-1]) if files else demo.make("photostereo")[:-4] + "-lights.txt"
    return (f'{begin} ! photostereo name=photo {quote("lights-location=" + lights)} '
            "relight name=light azimuth=45 elevation=40 ! fakesink name=sink sync=true "
            "photo.normal ! queue ! light.normal photo.albedo ! queue ! light.albedo",
            {"main": "light.src", "before": "source.src", "after": "light.src", "results": ["photo"]})


def insar(files, text):
    if text:
        raise Failure(WRONG_USE, "insar has no camera: give the two images.")
    if len(files) not in (0, 2):
        raise Failure(WRONG_USE, "insar takes two images, reference and secondary.")
    base = None if files else demo.make("insar")[:-4]
    pair = [os.path.abspath(file) for file in files] or [base + "-ref.PRM", base + "-sec.PRM"]
    return (f'slcsrc name=reference {quote("location=" + pair[0])} ! insar.reference '
            f'slcsrc name=secondary {quote("location=" + pair[1])} ! insar.secondary '
            "insarxcorr name=insar mode=precise grid=step step-x=32 step-y=32 window-width=64 window-height=64 xsearch=16 ysearch=16 ! "
            "fakesink name=sink", {"main": "reference.src", "results": ["insar"]})


ALL = {"sharpen": sharpen, "ao": ao, "oct": oct, "photostereo": photostereo, "insar": insar}
