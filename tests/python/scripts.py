# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of the scripts in pipelines/ appear together in the end, or not at all."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from support import SOURCE, TIMEOUT, main

# In the place of meson: writes the first of the files of a gst-launch-1.0, then does what DEMO says.
MESON = """#!/usr/bin/env python3
import os, sys, time
if sys.argv[1] != "devenv":
    sys.exit()
files = [word[9:] for word in sys.argv if word.startswith("location=")]
for name in files[:1] if os.environ["DEMO"] else files:
    open(name, "w").write("new")
if os.environ["DEMO"] == "hang":
    print("hanging", flush=True)
    time.sleep(100)
sys.exit(os.environ["DEMO"] == "fail")
"""


def files_in(folder):
    return {name for _folder, _folders, names in os.walk(folder) for name in names}


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(os.path.join(SOURCE, "pipelines"), os.path.join(self.folder, "pipelines"))
        for name, text in ("tools/setup", "#!/bin/sh\n"), ("bin/meson", MESON), ("build/build.ninja", ""):
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        self.output = os.path.join(self.folder, "demo-output")
        os.mkdir(self.output)
        with open(os.path.join(self.output, "lapsharpen-in.png"), "w", encoding="utf-8") as file:
            file.write("old")

    def start(self, what):
        return subprocess.Popen(
            [os.path.join(self.folder, "pipelines", "demo"), "lapsharpen"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "DEMO": what, "PATH": os.path.join(self.folder, "bin") + ":" + os.environ["PATH"]})

    def check_output(self, names, content):
        self.assertEqual(files_in(self.output), names)
        with open(os.path.join(self.output, "lapsharpen-in.png"), encoding="utf-8") as file:
            self.assertEqual(file.read(), content)

    def test_pictures_appear_together(self):
        demo = self.start("")
        text = demo.communicate(timeout=TIMEOUT)[0]
        self.assertEqual(demo.returncode, 0, text)
        self.check_output({"lapsharpen-in.png", "lapsharpen-out.png"}, "new")
        self.assertNotIn("outputs-", text)  # commands name the files as they are in the end

    def test_a_failure_leaves_what_was_there(self):
        demo = self.start("fail")
        text = demo.communicate(timeout=TIMEOUT)[0]
        self.assertNotEqual(demo.returncode, 0, text)
        self.check_output({"lapsharpen-in.png"}, "old")

    def test_a_signal_leaves_what_was_there(self):
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
            with self.subTest(number):
                demo = self.start("hang")
                while "hanging" not in (line := demo.stdout.readline()):
                    self.assertTrue(line, "it ends before the signal")
                demo.send_signal(number)
                demo.communicate(timeout=TIMEOUT)
                self.assertEqual(demo.returncode, 128 + number)
                self.check_output({"lapsharpen-in.png"}, "old")


class Python(unittest.TestCase):
    """What playing.py does for all."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = os.path.join(self.folder, "script")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(f"""
import sys, time
sys.path.insert(0, {os.path.join(SOURCE, "pipelines")!r})
from playing import parse, run, writing

def main():
    with writing(sys.argv[1]) as name:
        open(name, "w").write("half")
        if len(sys.argv) > 2:
            parse(["picturesrc", "location=" + sys.argv[2], "!", "fakesink"])
        print("writing", flush=True)
        time.sleep(100)

run(main, None)
""")

    def start(self, *words):
        return subprocess.Popen(
            [sys.executable, self.script, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "GST_IMAGING_ENV": "1"})

    def test_a_signal_leaves_no_partial_file(self):
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
            with self.subTest(number):
                script = self.start(os.path.join(self.folder, "out"))
                self.assertEqual(script.stdout.readline(), b"writing\n")
                script.send_signal(number)
                script.communicate(timeout=TIMEOUT)
                self.assertEqual(script.returncode, -number)
                self.assertEqual(files_in(self.folder), {"script"})

    def test_a_name_that_is_not_utf_8_is_in_a_sentence(self):
        script = self.start(os.path.join(self.folder, "out"), b"lat\xe4.npy")
        text = script.communicate(timeout=TIMEOUT)[1]
        self.assertEqual(script.returncode, 1)
        self.assertRegex(text, rb'^script: "lat\?\.npy" is not UTF-8, which GStreamer needs\. Rename the file\.\n$')
        self.assertEqual(files_in(self.folder), {"script"})


if __name__ == "__main__":
    main()
