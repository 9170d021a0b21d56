# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables of jobs for tests: a folder with inputs, the command gst-imaging as any engine can start it, and results to compare."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from services import write
from support import SOURCE, run_command

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))


def install_command(folder):
    """A program gst-imaging that needs nothing of the environment, as a remote shell or a scheduler starts it. Returns: its folder"""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith(("GST_", "GI_", "LD_", "IMK_")) and name != "IMK_THREADS"}
    kept["PYTHONPATH"] = os.path.join(SOURCE, "pipelines")
    lines = "".join(f"export {name}='{value}'\n" for name, value in kept.items())
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "gst-imaging"), f'#!/bin/sh\n{lines}exec {sys.executable} -B -m gst_imaging "$@"\n', 0o755)
    return folder


def made_bytes(folder):
    """Returns: what is in each file of each result below a folder, but for reports, which have times"""
    found = {}
    for place, _folders, names in os.walk(folder):
        for name in names:
            if name not in ("report.html", "result.json", ".snakemake_timestamp") and "result.json" in names:
                with open(os.path.join(place, name), "rb") as file:
                    found[os.path.relpath(os.path.join(place, name), folder)] = file.read()
    return found


class Table(unittest.TestCase):
    """folder: with jobs.csv and its inputs; expected: the files of its results, made one by one"""

    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="jobs-")
        cls.addClassCleanup(shutil.rmtree, cls.base)
        cls.folder = os.path.join(cls.base, "work")
        os.makedirs(cls.folder)
        cls.rows = cls.fill()
        cls.write_table()
        for command, inputs, output, more in cls.rows:
            done = run_command(command, *inputs.split(), *more.split(), "-o", output, folder=cls.folder)
            if done.returncode:
                raise AssertionError(done.stdout + done.stderr)
        cls.expected = made_bytes(os.path.join(cls.folder, "out"))
        shutil.rmtree(os.path.join(cls.folder, "out"))
        cls.environment = {**os.environ, "PATH": f"{install_command(os.path.join(cls.base, 'bin'))}:{os.environ['PATH']}"}

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def write_table(cls, name="jobs.csv", output="out"):
        write(cls.path(name), "command,input,output,arguments\n" +
              "".join(f"{command},{inputs},{path.replace('out', output, 1)},{more}\n" for command, inputs, path, more in cls.rows))

    def setUp(self):
        for name in os.listdir(self.folder):
            if name.startswith(("out", "failed", "parts", "part-", "normals", "sharp", ".snakemake")):
                shutil.rmtree(self.path(name)) if os.path.isdir(self.path(name)) else os.remove(self.path(name))

    def check(self, folder="out"):
        """All results are there, and nothing but them: their files have the bytes of those made one by one."""
        found = made_bytes(self.path(folder))
        self.assertEqual(sorted(found), sorted(self.expected))
        self.assertEqual([name for name in found if found[name] != self.expected[name]], [])
        self.assertEqual([name for name in os.listdir(self.path(folder)) if name.startswith(".")], [])

    def batch(self, *words, status=0):
        """Returns: lines of JSON, and the sum"""
        done = run_command("batch", "jobs.csv", "--json", *words, folder=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[:-1], lines[-1]


def write_frames(folder, n):
    """in0.npy ..."""
    rng = np.random.default_rng(31)
    for i in range(n):
        np.save(os.path.join(folder, f"in{i}.npy"), rng.integers(0, 255, (40, 50), np.uint8))


def write_lights(folder, name, seed, size=48, n=8):
    """Pictures of a bump under n lights, and dome.lp"""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size] / size - 0.5
    height = np.exp(-8 * (x ** 2 + y ** 2)) * rng.uniform(0.1, 0.3)
    slopes = np.gradient(height, 1 / size)
    normals = np.dstack([-slopes[1], slopes[0], np.ones_like(x)])
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    os.makedirs(os.path.join(folder, name))
    lines = [str(n)]
    for i in range(n):
        light = np.array([np.cos(2 * np.pi * i / n), np.sin(2 * np.pi * i / n), 1.2]) / np.hypot(1, 1.2)
        shade = np.clip(normals @ light, 0, 1) * 200 + rng.normal(0, 1, x.shape)
        np.save(os.path.join(folder, name, f"{i}.npy"), np.clip(np.rint(shade), 0, 255).astype(np.uint8))
        lines.append(f"{i}.npy {light[0]:.6f} {light[1]:.6f} {light[2]:.6f}")
    write(os.path.join(folder, "dome.lp"), "\n".join(lines) + "\n")
