# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of photostereo, relight and lights share: a scene that is known, its photographs, and the command."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np

from support import SOURCE, run_command

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import library, photographs

PNG = unittest.skipUnless("png" in os.environ["FORMATS"].split(), "built without png")
HEIGHT, WIDTH, LIGHTS = 90, 110, 16


def scene(height=HEIGHT, width=WIDTH):
    """A matte ball in front of a wall. Returns: normals, mask, albedo"""
    y, x = np.mgrid[:height, :width]
    x, y = (x - width / 2 + 0.5) / (0.45 * height), (height / 2 - 0.5 - y) / (0.45 * height)
    z = np.sqrt(np.maximum(1 - x * x - y * y, 0))
    inside = np.hypot(x, y) < 0.9
    normals = np.where(inside[..., None], np.dstack([x, y, z]), [0, 0, 1.0])
    return normals, inside, np.where(x > 0, 0.8, 0.4)


def directions(n=LIGHTS):
    turn, z = 2.4 * np.arange(n), 0.95 - 0.5 * np.arange(n) / n
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], 1)


def photograph(light, normals, albedo):
    return albedo * np.maximum(normals @ light, 0)


def angle(a, b):
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


def add_chunk(path, chunk):
    """Puts a chunk in front of the samples of a PNG. chunk: its name and what is in it"""
    with open(path, "rb") as file:
        plain = file.read()
    with open(path, "wb") as file:
        file.write(plain[:33] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + plain[33:])


def icc(tags):
    """A profile with these tags, whose header is empty."""
    places, at = b"", 132 + 12 * len(tags)
    for name, value in tags.items():
        places += struct.pack(">4sII", name, at, len(value))
        at += len(value)
    return bytes(128) + struct.pack(">I", len(tags)) + places + b"".join(tags.values())


class Photographs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.arrays = library.Arrays()
        self.normals, self.inside, self.albedo = scene()
        self.lights = directions()

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, values):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.arrays.save_values(np, self.path(name), np.ascontiguousarray(values))

    def take(self, folder="photos", form="png", dtype=np.uint16):
        """Photographs under all lights, IMG_1 to IMG_16."""
        for i, light in enumerate(self.lights):
            shown = np.rint(np.iinfo(dtype).max * photograph(light, self.normals, self.albedo)).astype(dtype)
            self.save(f"{folder}/IMG_{i + 1}.{form}", np.dstack([shown] * 3))

    def write_lp(self, name, order=None, naming="IMG_{}.png"):
        order = range(LIGHTS) if order is None else order
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(f"{len(order)}\n" + "".join(
                f"{naming.format(i + 1)} {self.lights[i][0]:.7f} {self.lights[i][1]:.7f} {self.lights[i][2]:.7f}\n" for i in order))

    def start(self, *words):
        return subprocess.Popen([sys.executable, "-B", "-m", "gst_imaging", *words], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})

    def gst_imaging(self, *words, code=0):
        done = run_command(*words, folder=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def error(self, folder, mask=None):
        """Mean angle of the normals of a result from the truth, and the part that has one."""
        words = photographs.read(self.path(f"{folder}/normals.png")).astype(float)
        solved = words[..., 3] > 0
        mask = self.inside if mask is None else mask
        return angle((words[..., :3] - 32768) / 32767, self.normals)[solved & mask].mean(), (solved & mask).sum() / mask.sum()

    def result(self, folder):
        with open(self.path(f"{folder}/result.json"), encoding="utf-8") as file:
            return json.load(file)
