# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of the scripts in pipelines/ appear together in the end, or not at all."""
import os
import shutil
import signal
import subprocess

from support import SOURCE, TIMEOUT, FolderCase, main

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


class Demo(FolderCase):
    def setUp(self):
        super().setUp()
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


if __name__ == "__main__":
    main()
