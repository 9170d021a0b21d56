# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures and lights of photostereo, matched as `gst-imaging photostereo` matches them: as many of both, in one order."""
import hashlib
import os

from .. import library, photographs
from ..command import UNREADABLE, Failure
from . import demo


def stills(words):
    """Returns: the pictures that a folder, a pattern or several files stand for; None of one file, which may hold several"""
    if len(words) > 1:
        return words
    word, = words
    if os.path.isdir(word):
        return photographs.files_of(word)[0]
    if os.path.exists(word):
        return None
    return library.list_files(word)[0]


def write(lights, chosen):
    """Returns: a file of the lights `chosen`, the same one in every run, with which `gst-imaging verify` plays recordings"""
    new = demo.new_file("lights." + lights.form)
    lights.write(new, chosen)
    with open(new, "rb") as file:
        path = os.path.join(demo.folder(), f"lights-{hashlib.sha256(file.read()).hexdigest()[:16]}.{lights.form}")
    os.replace(new, path)
    return path


def match(words, path, by_order, warn):
    """words: what was given for the pictures. Returns: the pictures, and the file of as many lights"""
    lights, files = photographs.Lights(path), stills(words)
    if files is None:
        return words, path
    if not files:
        raise Failure(UNREADABLE, f"{words[0]} has no pictures.")
    pairs = photographs.match(lights, files, by_order, warn)
    chosen = [i for i, _path in pairs]
    if len(chosen) < len(lights.lines) or lights.form != os.path.splitext(path)[1][1:].lower():
        path = write(lights, chosen)
    return [picture for _i, picture in pairs], path


def check_number(n, words, path):
    """n: frames that are played, in order. A set is a light for each frame; another number would shift them in each pass."""
    lights = len(photographs.Lights(path).lines)
    if n and n % lights:
        raise Failure(UNREADABLE, f"{words[0]} has {n} pictures, and {path} has {lights} lights: which belong together cannot be told.")
