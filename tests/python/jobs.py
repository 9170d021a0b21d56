# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the commands share: outputs that appear together or not at all, results that are known again, and the report."""
import contextlib
import errno
import html.parser
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, main, result_of

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import job, play, progress, publish
from gst_imaging.command import Failure, Stopped
from gst_imaging.report import Report, page, pictures, plots

# A command: each input is a file with a number of frames; "slow" plays as many in real time, "bad" fails.
COMMAND = """
import argparse, errno, os, sys, types
import gst_imaging.commands
from gst_imaging import command, job

def work(path, made):
    made.input(path, "frames")
    text = open(path).read()
    made.setting("extra", options.extra, 1, "counts")
    if made.is_complete():
        return made.result
    if "bad" in text:
        open(made.path("half.txt"), "w").close()
        raise command.Failure(command.UNREADABLE, f"{path} is bad.")
    if "full" in text:  # as a disk whose file nobody looked after
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "changes" in text:  # as rsync replaces a file
        os.rename(path + ".new", path)
    if "nothing" in text:
        made.nothing = f"{path} holds nothing to measure."
        made.report.figure("level", None, "counts", at_most=4)
        return made.finish()
    slow = "slow" in text
    made.play(["videotestsrc", "num-buffers=5" if not slow else "is-live=true", "!", "video/x-raw,format=GRAY8,width=64,height=48",
               "!", "lapsharpen", f"amount={options.extra}", "!", "picturesink",
               f"location={made.path('frames.npy')}"], "frames", 5)
    made.report.figure("level", 3, "counts", at_most=4)
    return made.finish()

def add_arguments(parser):
    parser.add_argument("input", nargs="+")
    parser.add_argument("--extra", type=int, default=1)
    parser.add_argument("--forgotten")  # work() does not declare it
    job.add_arguments(parser)

def run(given):
    global options
    options = given
    return job.run_all(options, "trial", options.input, work)

module = types.ModuleType("gst_imaging.commands.trial", "A trial.")
module.EXAMPLES, module.add_arguments, module.run = [], add_arguments, run
sys.modules[module.__name__] = module
names = command.names
command.names = lambda: [*names(), "trial"]
sys.exit(command.main(["trial", *sys.argv[1:]]))
"""


class Jobs(FolderCase):
    def setUp(self):
        super().setUp()
        for name in "one", "two", "slow", "bad", "full", "nothing":
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(name)

    def start(self, *words, cwd=None):
        return subprocess.Popen([sys.executable, "-B", "-c", COMMAND, *words], cwd=cwd or self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})

    def run_trial(self, *words, code=0, cwd=None):
        with self.start(*words, cwd=cwd) as process:
            out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, code, err)
        self.assertNotIn("Traceback", err)
        return out, err

    def hidden(self):
        return [name for name in os.listdir(self.folder) if name.startswith(".")]

    def test_outputs_appear_together_with_report_and_result(self):
        out, err = self.run_trial("one", "-o", "out", "--extra", "2")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["frames.npy", "frames.npy.json", "report.html", "result.json"])
        self.assertEqual((self.hidden(), err), ([], ""))  # quiet where there is no terminal
        self.assertIn("out: complete; see out/report.html", out)
        with open(self.path("out/result.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["inputs"][0]["sha256"], "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed")
        self.assertEqual([s["value"] for s in result["settings"] if s["name"] in ("extra", "amount")], ["2", "2"])
        self.assertEqual(result["arguments"], ["gst-imaging", "trial", "one", "-o", "out", "--extra", "2"])
        self.assertTrue(result["figures"][0]["met"])

    def test_a_result_is_known_again_and_another_one_is_not_replaced(self):
        self.run_trial("one", "-o", "out")
        before = os.stat(self.path("out/frames.npy")).st_mtime_ns
        self.assertIn("was complete already", self.run_trial("one", "-o", "out")[0])
        self.assertEqual(os.stat(self.path("out/frames.npy")).st_mtime_ns, before)
        self.assertIn("--overwrite", self.run_trial("one", "-o", "out", "--extra", "3", code=4)[1])
        self.assertEqual(os.stat(self.path("out/frames.npy")).st_mtime_ns, before)
        self.assertIn("--overwrite", self.run_trial("one", "-o", "out", "--forgotten", "3", code=4)[1])
        self.run_trial("one", "-o", "forgotten", "--forgotten", "one")
        told = [s for s in result_of(self.path("forgotten"))["settings"] if s["name"] == "forgotten"]
        self.assertEqual([(s["owner"], s["value"], s["default"]) for s in told], [("gst-imaging trial", "one", "")])
        self.run_trial("one", "-o", "out", "--extra", "3", "--overwrite")
        self.assertNotEqual(os.stat(self.path("out/frames.npy")).st_mtime_ns, before)
        os.remove(self.path("out/frames.npy"))  # no longer whole
        self.run_trial("one", "-o", "out", "--extra", "3", code=4)
        self.assertEqual(self.hidden(), [])

    def test_an_input_that_changes_meanwhile_gives_no_result(self):
        def write(name, text):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)

        write("input", "one")
        self.run_trial("input", "-o", "out")
        before = result_of(self.path("out"))
        write("input", "changes")
        write("input.new", "another")
        error = self.run_trial("input", "-o", "out", "--overwrite", code=3)[1]
        self.assertIn("input changed while it was read", error)
        self.assertEqual((result_of(self.path("out")), self.hidden()), (before, []))
        self.run_trial("input", "-o", "out", "--overwrite")

    def test_the_key_depends_on_all_that_decides(self):
        def key(command="trial", role="frames", path="a/b.npy", sha256="00", **settings):
            return job.key_of(command, [{"role": role, "path": path, "sha256": sha256}], settings)

        keys = [key(), key(command="other"), key(role="dark"), key(path="a/c.npy"), key(sha256="01"), key(extra="2"), key(extra="3")]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(key(path="other/b.npy"), key())  # the same file in another folder

    def test_folders_with_dots_have_results_of_their_own(self):
        for name in "set.1", "set.2":
            os.mkdir(self.path(name))
        self.assertEqual(job.targets("out", [self.path("set.1"), self.path("set.2")]), ["out/set.1", "out/set.2"])
        self.assertEqual(job.targets("out", ["a.1.npy", "b.fits"]), ["out/a.1", "out/b"])
        with self.assertRaises(Failure):
            job.targets("out", ["a.npy", "a.fits"])

    def test_a_number_in_the_name_of_the_output_is_refused(self):
        for words in ("one", "-o", "run%d"), ("one", "two", "-o", "run%05u"), ("one", "-o", "a%d/b"):
            self.assertIn("stands for numbers", self.run_trial(*words, code=2)[1])
        self.run_trial("one", "-o", "50%")
        self.assertEqual(sorted(os.listdir(self.folder)), ["50%", "bad", "full", "nothing", "one", "slow", "two"])

    def test_a_name_that_is_not_utf8_is_told_as_it_was_given(self):
        """And not as that of the hidden folder."""
        error = self.run_trial("one", "-o", os.fsdecode(b"run\xff"), code=2)[1]
        self.assertRegex(error, f"{self.folder}/run./.* is not UTF-8")

    def test_files_of_others_stay(self):
        os.mkdir(self.path("out"))
        self.run_trial("one", "-o", "out")  # an empty folder is taken
        with open(self.path("out/notes.txt"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.assertIn("notes.txt", self.run_trial("two", "-o", "out", "--overwrite", code=4)[1])
        self.assertIn("no folder", self.run_trial("two", "-o", "one", "--overwrite", code=4)[1])
        self.assertIn("notes.txt", os.listdir(self.path("out")))

    def test_the_working_folder_as_output(self):
        os.mkdir(self.path("here"))
        self.run_trial("../one", "-o", ".", cwd=self.path("here"))
        self.assertEqual(len(os.listdir(self.path("here"))), 4)
        self.run_trial("../one", "-o", ".", "--extra", "2", "--overwrite", cwd=self.path("here"))
        self.assertEqual(len(os.listdir(self.path("here"))), 4)

    def make_result(self, target, text, fails_at=None, kills=False, stays=True):
        """A result of two files, in a folder that stays (`stays`), or is replaced by a system that cannot exchange folders. The step `fails_at`
        of those that make it appear fails, or kills the process. Returns: the steps"""
        steps = []

        def step(function):
            def call(*words, **options):
                steps.append(function)
                if len(steps) == fails_at:
                    if kills:
                        os._exit(9)
                    raise OSError(errno.ENOSPC, "No space left on device")
                return function(*words, **options)
            return call

        options = types.SimpleNamespace(overwrite=True, argv=["gst-imaging", "trial"], given={})
        patches = [unittest.mock.patch.object(publish.os, name, step(getattr(os, name))) for name in ("rename", "mkdir", "rmdir")]
        with contextlib.ExitStack() as stack, job.Job("trial", target, "one", options) as made:
            stack.enter_context(unittest.mock.patch.object(made, "must_stay", lambda: stays))
            stack.enter_context(unittest.mock.patch.object(publish, "exchange", lambda *_: False))
            made.setting("text", text)
            if made.is_complete():
                return None
            os.mkdir(made.path(f"folder-{text}"))
            for name in "same", f"folder-{text}/other":
                with open(made.path(name), "w", encoding="utf-8") as file:
                    file.write(text)
            with unittest.mock.patch.object(made, "tell_facts", str):
                for patch in patches:
                    stack.enter_context(patch)
                made.finish()
        return steps

    def text_of_result(self, target):
        """Returns: the text of a result that is whole, with no file beside it"""
        with open(os.path.join(target, "same"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(job.damage(target, job.read_result(target)), "")
        self.assertEqual(publish.files_below(target), [f"folder-{text}/other", "report.html", "result.json", "same"])
        return text

    def test_no_step_of_publishing_loses_the_old_result(self):
        """In a folder that has to stay, and in one that is replaced by a system that cannot exchange folders."""
        for stays in True, False:
            target = self.path(f"target-{stays}")
            self.make_result(target, "old", stays=stays)
            n = len(self.make_result(target, "new", stays=stays))
            self.assertEqual(self.text_of_result(target), "new")
            self.assertGreaterEqual(n, 8 if stays else 2)
            for fails_at in range(1, n + 1):
                shutil.rmtree(target)
                self.make_result(target, "old", stays=stays)
                try:
                    self.make_result(target, "new", fails_at, stays=stays)
                except Failure as failure:
                    self.assertEqual((failure.code, "No space left" in str(failure)), (4, True))
                    self.assertEqual(self.text_of_result(target), "old", fails_at)
                else:
                    self.assertEqual(self.text_of_result(target), "new", fails_at)

    def test_the_next_run_repairs_what_a_kill_left(self):
        for stays in True, False:
            target = self.path(f"target-{stays}")
            self.make_result(target, "old", stays=stays)
            n, found = len(self.make_result(target, "new", stays=stays)), set()
            for fails_at in range(1, n + 1):
                shutil.rmtree(target)
                self.make_result(target, "old", stays=stays)
                child = os.fork()
                if child == 0:
                    self.make_result(target, "new", fails_at, True, stays=stays)
                    os._exit(0)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 9)
                with job.Job("trial", target, "one", types.SimpleNamespace(overwrite=False, argv=[], given={})) as made:
                    made.is_complete()
                shutil.rmtree(os.path.join(target, ".gst-imaging-work"), ignore_errors=True)
                found.add(self.text_of_result(target))
                self.make_result(target, "next", stays=stays)
                self.assertEqual((self.text_of_result(target), self.hidden()), ("next", []), fails_at)
            self.assertIn("old", found)

    def test_a_large_folder_of_others_is_refused_by_its_first_file(self):
        """As /, of which all files were listed before."""
        for i in range(20):
            os.makedirs(self.path(f"large/{i:02}"))
            with open(self.path(f"large/{i:02}/mine"), "w", encoding="utf-8"):
                pass
        options = types.SimpleNamespace(overwrite=True, argv=[], given={})
        with unittest.mock.patch.object(os, "scandir", wraps=os.scandir) as listed, job.Job("trial", self.path("large"), "one", options) as made:
            with self.assertRaisesRegex(Failure, "no part of a result, as 00/mine: nothing is written"):
                made.check_target()
        self.assertEqual(listed.call_count, 2)

    def test_a_result_of_a_stranger_removes_nothing_but_its_own_files(self):
        """Also where the files are replaced one by one, in the folder where we are."""
        os.mkdir(self.path("here"))
        os.mkdir(self.path("elsewhere"))
        with open(self.path("elsewhere/victim"), "w", encoding="utf-8") as file:
            file.write("mine")
        os.symlink("../elsewhere", self.path("here/link"))
        victim = os.path.realpath(self.path("elsewhere/victim"))
        for outputs in ([{"name": "../elsewhere/victim", "size": 4}], [{"name": victim, "size": 4}], [{"name": "a/../../one", "size": 3}],
                        [5], None, 7, {"name": "a"}, [{"size": 3}], [{"name": 3, "size": 3}], [{"name": ""}], "[" * 100000):
            with open(self.path("here/result.json"), "w", encoding="utf-8") as file:
                file.write(outputs if isinstance(outputs, str) else
                           json.dumps({"schema": "gst-imaging-result-v1", "outputs": outputs}))
            err = self.run_trial("../two", "-o", ".", "--overwrite", code=4, cwd=self.path("here"))[1]
            self.assertRegex(err, "no part of a result, as result.json: nothing is written", outputs)
            self.assertEqual(os.listdir(self.path("elsewhere")), ["victim"], outputs)
        with open(self.path("here/result.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-result-v1", "outputs": [{"name": "link/victim", "size": 4}, {"name": "gone"}]}, file)
        self.run_trial("../two", "-o", ".", "--overwrite", cwd=self.path("here"))
        os.symlink("../elsewhere", self.path("here/.gst-imaging-work"))
        self.assertIn("is a link", self.run_trial("../one", "-o", ".", "--overwrite", code=4, cwd=self.path("here"))[1])
        self.assertEqual(os.listdir(self.path("elsewhere")), ["victim"])
        self.assertTrue(os.path.exists(self.path("one")))

    def test_one_that_fails_does_not_keep_others_from_it(self):
        out, err = self.run_trial("one", "bad", "two", "-o", "out", "--json", code=3)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["one", "two"])
        told = json.loads(out)
        self.assertEqual([r["output"] for r in told["results"]], [self.path("out/one"), self.path("out/two")])
        self.assertIn("1 of 3 inputs failed: bad", told["error"])
        self.assertIn("bad is bad.", err)
        self.run_trial("bad", "-o", "never/out", code=3)
        self.assertFalse(os.path.exists(self.path("never")))

    def test_where_nothing_was_measured_the_exit_code_says_so(self):
        for _ in range(2):  # also of a result that is there
            out, err = self.run_trial("nothing", "-o", "out", "--json", code=1)
            told = json.loads(out)
            self.assertEqual((told["error"], told["exit-status"]), ("nothing holds nothing to measure.", 1))
            self.assertEqual((told["output"], told["figures"][0]["met"]), (self.path("out"), False))
            self.assertEqual(err, "gst-imaging trial: nothing holds nothing to measure.\n")
        out, err = self.run_trial("one", "nothing", "two", "-o", "all", code=1)
        self.assertIn("1 of 3 inputs failed: nothing. The other 2 are complete.", err)
        self.assertEqual(sorted(os.listdir(self.path("all"))), ["nothing", "one", "two"])

    def test_a_full_disk_is_a_sentence_and_keeps_no_other_from_it(self):
        out, err = self.run_trial("one", "full", "-o", "out", "--json", code=4)
        self.assertIn(f"{self.path('out/full')} cannot be written: No space left on device.", err)
        self.assertEqual([result["output"] for result in json.loads(out)["results"]], [self.path("out/one")])
        self.assertEqual(os.listdir(self.path("out")), ["one"])

    def test_a_signal_between_two_steps_tells_a_result_once(self):
        options = types.SimpleNamespace(overwrite=True, argv=["gst-imaging", "trial"], given={}, output=self.path("out"), json=True)
        leave, begin = job.Job.__exit__, job.Job.__init__

        def stop_behind(made, *error):
            leave(made, *error)
            raise Stopped(signal.SIGTERM)

        def stop_at_the_second(made, command, target, title, given):
            if title == "two":
                raise Stopped(signal.SIGTERM)
            begin(made, command, target, title, given)

        for patch in (unittest.mock.patch.object(job.Job, "__exit__", stop_behind), unittest.mock.patch.object(job.Job, "__init__", stop_at_the_second),
                      unittest.mock.patch.object(job, "tell", side_effect=Stopped(signal.SIGTERM))):
            with patch, self.assertRaises(Stopped) as caught:
                job.run_all(options, "trial", ["one", "two"], lambda _path, made: made.finish())
            self.assertEqual([result["output"] for result in caught.exception.result["results"]], [self.path("out/one")])
            self.assertEqual(caught.exception.sentence.count("out/one"), 1)

    def test_a_signal_waits_for_what_is_done_wholly(self):
        """Also one that another thread takes, as those of GStreamer do."""
        script = ("import os, signal, sys, threading, time\n"
                  "from gst_imaging import command\n"
                  "threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
                  "signal.signal(signal.SIGINT, command.stop)\n"
                  "try:\n"
                  "    with command.whole():\n"
                  "        with command.whole():\n"
                  "            os.kill(os.getpid(), signal.SIGINT)\n"
                  "            time.sleep(0.2)\n"
                  "        print('whole', flush=True)\n"
                  "    print('not stopped')\n"
                  "except command.Stopped as stopped:\n"
                  "    print(stopped.number)\n")
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual(done.stdout.split(), ["whole", str(int(signal.SIGINT))])

    def test_a_signal_leaves_what_was_complete_and_nothing_half(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
            out = f"out{number}"
            with self.start("one", "slow", "two", "-o", out) as process:
                end = time.monotonic() + TIMEOUT
                while not os.path.exists(self.path(f"{out}/.slow.gst-imaging-work/frames.npy")) and time.monotonic() < end:
                    time.sleep(0.05)
                process.send_signal(number)
                _out, err = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, -number)
            self.assertNotIn("Traceback", err)
            if number == signal.SIGKILL:  # what stays is hidden, and goes with the next run
                self.assertFalse(os.path.exists(self.path(f"{out}/slow")))
                with open(self.path("slow"), "w", encoding="utf-8") as file:
                    file.write("quick")
                err = self.run_trial("one", "slow", "two", "-o", out)[1]
                self.assertRegex(err, r"/\.slow\.gst-imaging-work has files of a run that was killed\. They are removed\.")
                self.assertEqual(sorted(os.listdir(self.path(out))), ["one", "slow", "two"])
            else:
                self.assertEqual(os.listdir(self.path(out)), ["one"])
                self.assertRegex(err, rf"Stopped by {number.name}. Complete: .*{out}/one")

    def test_two_at_once_are_refused(self):
        with self.start("slow", "-o", "out") as process:
            end = time.monotonic() + TIMEOUT
            while not os.path.exists(self.path(".out.gst-imaging-work/frames.npy")) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertIn("Another gst-imaging", self.run_trial("one", "-o", "out", code=4)[1])
            process.terminate()
            process.communicate(timeout=TIMEOUT)
        self.assertEqual(self.hidden(), [])

    def test_numbers_beyond_the_range_of_a_property_are_refused(self):
        """GStreamer alone takes the lowest 32 bits: 2^32 + 8 would be 8."""
        for text in "4294967304", "-4294967295", "0x100000008", "18446744073709551617", "2147483648":
            with self.assertRaises(Failure) as caught:
                play.parse(["videotestsrc", "!", "shcentroid", f"columns={text}", "rows=2", "!", "fakesink"])
            self.assertEqual(caught.exception.code, 2)
            self.assertRegex(str(caught.exception), f"columns is {int(text, 0)}, and goes from [0-9]+ to [0-9]+")
        play.parse(["videotestsrc", "num-buffers=2147483647", "!", "shcentroid", "columns=8", "rows=2", "!", "fakesink"])

    def test_failures_of_elements_are_sentences_with_their_code(self):
        np.save(self.path("a.npy"), np.zeros((4, 4), np.float32))
        for words, code in ((["picturesrc", "location=/nowhere/a.npy", "!", "fakesink"], 3),
                            (["picturesrc", f"location={self.path('a.npy')}", "!", "picturesink", "location=/nowhere/b.npy"], 4),
                            (["videotestsrc", "!", "lapsharpen", "amount=loud", "!", "fakesink"], 2),
                            (["videotestsrc", "!", "nosuchelement", "!", "fakesink"], 2),
                            (["picturesrc", "location=lat\udce4.npy", "!", "fakesink"], 2),
                            (["picturesrc", 'locations=<"new\nline.npy">', "!", "fakesink"], 2)):
            with self.assertRaises(Failure) as caught:
                play.play(play.parse(words))
            self.assertEqual(caught.exception.code, code, caught.exception)


class Parser(html.parser.HTMLParser):
    VOID = {"meta", "br", "img", "path", "circle", "rect", "polyline"}

    def __init__(self):
        super().__init__()
        self.open, self.text, self.pictures = [], "", 0

    def handle_starttag(self, tag, attrs):
        self.pictures += tag == "img"
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes another element")

    def handle_data(self, data):
        self.text += data


class Reports(unittest.TestCase):
    def test_the_page_is_whole_and_speaks_of_everything(self):
        report = Report("<b>ear & co", ["gst-imaging", "trial", "a b.npy"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "in <1>.npy")
            np.save(path, np.zeros(3))
            digest = report.input(path, "picture")["sha256"]
            report.setting("photostereo", "gamma", "2.2", "1")
            report.warning("Too <bright>.")
            report.warning("Too <bright>.")
            report.figure("mean residual", 0.0312345, at_most=0.08)
            report.figure("lights", 3, at_least=4, at_most=12)
            report.figure("nothing", float("nan"), "mm", at_least=1)
            heights = np.add.outer(np.arange(40.0), np.arange(60.0))
            heights[3, 4] = np.nan
            axes = [{"name": "x", "unit": "mm", "step": 0.5, "origin": 0}] * 2
            report.picture("Height", heights, {"name": "height", "unit": "mm", "axes": axes}, "height.npy", colours="height")
            report.picture("Normals", np.zeros((30, 50, 3), np.uint16))
            report.plot("Convergence", plots.lines(("pictures", ""), ("change", "degrees"), {"a": ([1, 2], [3, 4]), "b": ([], [])}))
            report.plot("One", plots.scatter(("x", "px"), ("y", "px"), {"": ([1], [float("nan")])}))
            report.plot("Same", plots.lines(("x", "px"), ("y", "px"), {"": ([1, 2], [1, 1])}, log_y=True))
            report.plot("Histogram", plots.histogram(("residual", ""), [0, 1, 2], [5, 0]))
            report.table("Lights", ["name", "x"], [["a", 0.123456], ["b", 1]])
            page_path = os.path.join(folder, "report.html")
            report.write(page_path)
            with open(page_path, encoding="utf-8") as file:
                text = file.read()
        parser = Parser()
        parser.feed(text)
        self.assertEqual((parser.open, parser.pictures), ([], 2))
        for words in ("<b>ear & co", digest, "gamma", "2.2", "mean residual", "0.03123", "at most 0.08", "✓ met", "✗ not met",
                      "gst-imaging trial 'a b.npy'", "5 mm", "height (mm)", "pixels", "1 of 3 limits met", "0.1235"):
            self.assertIn(words, parser.text)
        self.assertEqual(parser.text.count("Too <bright>."), 1)
        self.assertNotRegex(text, "<script|http://|https://|<link|nan,|,nan")

    def test_ticks_have_the_digits_that_tell_them_apart(self):
        for low, high, texts in ((50.267, 50.274, ["50.268", "50.270", "50.272", "50.274"]), (0, 300, ["0", "100", "200", "300"]),
                                 (-1, 1, ["-1", "-0.5", "0", "0.5", "1"])):
            self.assertEqual(plots.tick_texts(plots.ticks(low, high, 5)), texts)

    def test_a_logarithmic_axis_has_two_ticks_at_least(self):
        for low, high, texts in ((0.01, 100, ["0.01", "0.1", "1", "10", "100"]), (3, 60, ["5", "10", "20", "50"]), (0.8, 4, ["1", "2"]),
                                 (1.1, 1.9, ["1.2", "1.4", "1.6", "1.8"])):
            self.assertEqual(plots.log_texts(plots.log_ticks(math.log10(low), math.log10(high))), texts)

    def test_a_legend_covers_no_points(self):
        points = [(i, j) for i in range(20) for j in range(20)]
        for names in ("used", "left out"), ("used",):
            drawn = plots.scatter(("mode", ""), ("strength", ""), {name: tuple(zip(*points)) for name in names})
            highest = min(float(y) for x, y in re.findall('<circle cx="([0-9.]+)" cy="([0-9.]+)"', drawn) if float(x) < 150)
            self.assertGreater(highest - 2.2, max(float(y) for y in re.findall(r'<text x="95" y="([0-9.]+)"', drawn)))
        self.assertIn('cy="20.', plots.scatter(("x", ""), ("y", ""), {"": tuple(zip(*points))}))  # no legend, no space

    def test_a_warning_names_its_file_once(self):
        made = job.Job("trial", "out", "x/d.npy", types.SimpleNamespace(overwrite=False, argv=[], given={}))
        for sentence, expected in (("x/d.npy has a row.", "x/d.npy has a row."), ("A row.", "d.npy: A row.")):
            with contextlib.redirect_stderr(io.StringIO()) as printed:
                made.warn(sentence)
            self.assertEqual(printed.getvalue().strip(), f"gst-imaging trial: {expected}")

    def test_scale_bars_are_round_and_true(self):
        for span, length in ((100, 20), (64, 10), (1, 0.2), (3000, 500), (0.07, 0.02)):
            self.assertAlmostEqual(pictures.round_length(span), length)
        below, beside, ratio = pictures.scale_bars({"axes": [
            {"name": "lateral", "unit": "um", "step": 10, "origin": 0}, {"name": "depth", "unit": "mm", "step": 0.001, "origin": 0}]},
            500, 200)
        self.assertIn("width:25.00%", below)  # 500 of 2000 um
        self.assertIn("height:20.00%", beside)  # 0.1 of 0.5 mm
        self.assertEqual(ratio, 0.4)
        axes = [{"name": "x", "unit": "mm", "step": 1, "origin": 0}, {"name": "y", "unit": "mm", "step": 2, "origin": 0}]
        self.assertEqual(pictures.scale_bars({"axes": axes}, 100, 100)[2], 0.5)

    def test_pictures_are_png_and_large_ones_are_averaged(self):
        values = np.arange(2000 * 3001, dtype=float).reshape(2000, 3001)
        small = pictures.shrink(np, values)
        self.assertEqual(small.shape, (500, 750))
        self.assertEqual(small[0, 0], np.float32(values[:4, :4].mean()))
        self.assertEqual(pictures.shrink(np, np.ones((5000, 2, 3))).shape, (833, 1, 3))
        self.assertTrue(pictures.png(np, np.zeros((2, 3), np.uint8)).startswith(b"\x89PNG"))

    def test_ticks_are_round(self):
        self.assertEqual(plots.ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1])
        self.assertEqual(plots.ticks(-3e-7, 8e-7), [-2e-7, 0, 2e-7, 4e-7, 6e-7, 8e-7])
        self.assertEqual(plots.power_of_ten(-3), "0.001")
        self.assertEqual([plots.tick_text(v) for v in (50000, -250000, 2.5e6, 0)], ["50000", "-250k", "2.5M", "0"])
        peak = [(i, i == 70001) for i in range(100000)]
        self.assertIn((70001, True), plots.thin(peak))

    def test_numbers_and_durations(self):
        self.assertEqual([page.number(v) for v in (1, 0.123456, 1e-9, None, 123456.7)], ["1", "0.1235", "1e-09", "none", "1.235e+05"])
        self.assertEqual([progress.duration(v) for v in (2.6, 125, 4800)], ["3 s", "2 min 5 s", "1 h 20 min"])
        line = progress.Progress("bear", "pictures", 96)
        self.assertEqual(line.line(24, 2), "bear: 24 of 96 pictures, 12/s, 6 s left")
        self.assertEqual(line.line(2, 100), "bear: 2 of 96 pictures, 72/h, 1 h 18 min left")
        line.given = 20  # were complete before
        self.assertEqual(line.line(24, 2), "bear: 24 of 96 pictures, 2/s, 36 s left")
        line.given = 0
        self.assertEqual(line.line(96, 9), "bear: 96 pictures, finishing the result, 9 s so far")


main()
