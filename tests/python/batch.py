# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging batch: rows and their results, and what happens when a worker, a batch, a disk or another host fails."""
import contextlib
import errno
import fcntl
import gc
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, main, result_of, run_command

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import library, play
from gst_imaging.batch import allocation, claims, pool, rows, run, worker
from gst_imaging.command import Stopped
from gst_imaging.commands import batch

# Workers that crash or wait where the name of the output tells so, and write down what they have been given.
CRASHES = """
import json, os, sys, time
from gst_imaging import command
from gst_imaging.batch import claims, pool, worker

claims.RENEWED = float(os.environ.get("RENEWED", 30))
pool.SILENT = float(os.environ.get("SILENT", 10))
run = worker.run

def crash(row, overwrite):
    with open("/proc/self/maps") as maps, open("trace", "a") as file:
        told = {name: os.environ.get(name) for name in ("IMK_THREADS", "IMK_MEMORY", "CUDA_VISIBLE_DEVICES")}
        file.write(json.dumps({"pid": os.getpid(), "has-cuda": "libimk-cuda.so" in maps.read(), **told}) + "\\n")
    if "slow" in row.output:
        open(row.output + ".begun", "w").close()
        time.sleep(60)
    if "abort" in row.output:
        os.write(2, b"free(): invalid pointer\\n")
        os.abort()
    results = run(row, overwrite)
    if "late" in row.output:
        os.abort()
    return results

worker.run = crash
sys.exit(command.main(["batch", *sys.argv[1:]]))
"""


def wait_for(path):
    end = time.monotonic() + TIMEOUT
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)


class Batch(FolderCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(7)
        for i in range(6):
            np.save(self.path(f"in{i}.npy"), rng.integers(0, 255, (40, 50), np.uint8))

    def table(self, outputs=range(6), name="jobs.csv", **more):
        lines = ["command,input,output,amount=," + ",".join(more)]
        lines += [f"sharpen,in{i % 6}.npy,out/{output},{1 + i % 3}," + ",".join(more.values()) for i, output in enumerate(outputs)]
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def batch(self, *words, status=0, **environment):
        """Returns: lines of JSON"""
        done = run_command("batch", "jobs.csv", *words, folder=self.folder, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.errors = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def start(self, *words, stderr=subprocess.PIPE, **environment):
        return subprocess.Popen([sys.executable, "-B", "-c", CRASHES, "jobs.csv", "--json", *words], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=stderr,
                                env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"), **environment})

    def trace(self):
        """Returns: what the workers of start() have been given, for each row"""
        with open(self.path("trace"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def outputs(self):
        return sorted(os.listdir(self.path("out")))

    def pixels(self):
        found = {}
        for name in self.outputs():
            for file in os.listdir(self.path("out", name)):
                if file.endswith(".npy"):
                    with open(self.path("out", name, file), "rb") as opened:
                        found[name, file] = opened.read()
        return found

    def test_results_are_those_of_one_by_one_and_are_known_again(self):
        self.table()
        self.assertEqual(self.batch("--workers", "2", "--json")[-1], {"rows": 6, "made": 6, "complete": 0, "stale": 0, "failed": 0})
        together = self.pixels()
        self.assertEqual(len(together), 6)
        before = {name: os.stat(self.path("out", name, "result.json")).st_mtime_ns for name in self.outputs()}
        self.assertEqual(self.batch(), [])
        self.assertIn("6 complete already", self.errors)
        self.assertEqual({name: os.stat(self.path("out", name, "result.json")).st_mtime_ns for name in self.outputs()}, before)
        shutil.rmtree(self.path("out"))
        for i in range(6):
            run_command("sharpen", f"in{i}.npy", f"amount={1 + i % 3}", "-o", f"out/{i}", folder=self.folder)
        self.assertEqual(self.pixels(), together)
        self.assertEqual(self.batch("--json")[-1]["complete"], 6)

    def test_a_row_that_fails_is_a_line_and_others_continue(self):
        self.table()
        os.remove(self.path("in3.npy"))
        lines = self.batch("--workers", "2", status=1)
        self.assertEqual([(line["row"], line["line"], line["output"], line["exit-status"]) for line in lines], [(4, 5, "out/3", 3)])
        self.assertIn("in3.npy", lines[0]["error"])
        self.assertEqual(self.outputs(), ["0", "1", "2", "4", "5"])

    def test_changed_settings_need_overwrite(self):
        self.table(range(1))
        self.batch()
        self.table(range(1), **{"clamp=": "local"})
        line, = self.batch(status=1)
        self.assertEqual((line["state"], line["exit-status"]), ("stale", 4))
        self.assertIn("--overwrite", line["error"])
        self.assertIn("0 complete already, 1 stale (--overwrite makes these again), 0 failed.", self.errors)
        self.assertEqual(self.batch("--overwrite", "--json")[-1]["made"], 1)

    def test_overwrite_skips_what_is_complete(self):
        """A call that was interrupted goes on where it was, and two calls share the rows."""
        self.table(range(4))
        self.batch()
        before = {name: os.stat(self.path("out", name, "result.json")).st_ino for name in self.outputs()}
        os.remove(self.path("out/1/in1.npy"))
        np.save(self.path("in2.npy"), np.zeros((40, 50), np.uint8))
        self.assertEqual(self.batch("--overwrite", "--json")[-1], {"rows": 4, "made": 2, "complete": 2, "stale": 0, "failed": 0})
        after = {name: os.stat(self.path("out", name, "result.json")).st_ino for name in self.outputs()}
        self.assertEqual([name for name in after if after[name] != before[name]], ["1", "2"])
        shutil.rmtree(self.path("out/0"))
        with self.start("--overwrite") as one, self.start("--overwrite") as other:
            sums = [json.loads(process.communicate(timeout=TIMEOUT)[0].splitlines()[-1]) for process in (one, other)]
        self.assertEqual((sums[0]["made"] + sums[1]["made"], sums[0]["complete"] + sums[1]["complete"]), (1, 7))

    def test_a_lookup_changes_no_file(self):
        """Reading a table of results must not repair what another process replaces just then."""
        self.table(range(1))
        self.batch()
        row, = rows.read(self.path("jobs.csv"))
        os.mkdir(self.path("out/.0.gst-imaging-aside"))
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        self.assertFalse(run.find(row, {})[0]["made"])
        os.truncate("in0.npy", 20)
        with self.assertRaisesRegex(run.NotMade, "of other inputs or settings"):
            run.find(row, {})
        os.remove("out/0/result.json")
        with self.assertRaisesRegex(run.NotMade, "it is not there"):
            run.find(row, {})
        self.assertEqual(sorted(os.listdir("out")), [".0.gst-imaging-aside", "0"])

    def test_changed_inputs_need_overwrite(self):
        """Also where size and time of the file are those of the one before."""
        self.table(range(1))
        self.batch()
        before, is_one = os.stat(self.path("in0.npy")), np.load(self.path("in0.npy"))
        is_one[3, 4] ^= 1
        np.save(self.path("in0.npy"), is_one)
        os.utime(self.path("in0.npy"), ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertIn("--overwrite", self.batch(status=1)[0]["error"])
        self.assertEqual(self.batch("--overwrite", "--json")[-1]["made"], 1)

    def test_rows_of_a_worker_share_one_process_and_one_device(self):
        self.table(**{"backend=": "cuda"})
        mock = os.path.join(os.path.dirname(os.environ["GST_PLUGIN_PATH_1_0"].split(":")[0]), "..", "tests", "mock")
        with self.start(IMK_MODULE_PATH=os.path.realpath(mock)) as process:
            out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, out + err)
        trace = self.trace()
        self.assertEqual(len(trace), 6)
        self.assertEqual(len({told["pid"] for told in trace}), 1)
        self.assertEqual([told["has-cuda"] for told in trace], [False] + [True] * 5)  # opened once; its context stays as long
        self.assertIn("backend of lapsharpen", json.dumps(result_of(self.path("out/5"))["facts"]))
        self.assertIn("cuda", json.dumps(result_of(self.path("out/5"))["facts"]))

    def test_a_row_keeps_no_element(self):
        lines = np.random.default_rng(1).integers(0, 4000, (2, 16, 256), np.uint16)
        np.save(self.path("lines.npy"), lines)
        y, x = np.mgrid[:64, :64] % 8 - 3.5
        np.save(self.path("spots.npy"), np.rint(200 * np.exp(-(x ** 2 + y ** 2) / 3)).astype(np.uint8)[None].repeat(3, 0))
        np.save(self.path("matrix.npy"), np.ones((5, 128), np.float32))
        loop = (f"{self.path('spots.npy')} ! shcentroid columns=8 rows=8 pitch-x=8 pitch-y=8 fields=slopes ! shreconstruct"
                f" matrix-location={self.path('matrix.npy')} ! fakesink")
        made, parse = [], play.parse

        def note(words):
            pipeline = parse(words)
            made.extend((element.get_name(), element.weak_ref()) for element in (pipeline, *play.elements_of(pipeline)))
            return pipeline

        with unittest.mock.patch.object(play, "parse", note), contextlib.redirect_stderr(io.StringIO()):
            for words in (("sharpen", self.path("in0.npy"), "out/s", "2", ""), ("oct", self.path("lines.npy"), "out/o", "", "800 900"),
                          ("centroids", self.path("spots.npy"), "out/c", "", ""), ("ao", f"record 'picturesrc location={loop}'", "out/r", "", "")):
                needed = {"oct": "octbscan", "centroids": "shoverlay"}.get(words[0])  # an FFT, cairo
                if needed and not library.gstreamer().ElementFactory.find(needed):
                    continue
                cells = words[0], words[1], self.path(words[2]), *words[3:]
                row = rows.Row(1, 1, ("command", "input", "output", "amount=", "lambda"), cells)
                self.assertTrue(run.run(row, False)[0]["made"])
        gc.collect()
        self.assertEqual([name for name, kept in made if kept() is not None], [])
        self.assertGreater(len(made), 4)

    def test_workers_have_their_share_of_the_allocation(self):
        self.table()
        given = {"SLURM_CPUS_PER_TASK": "1", "SLURM_MEM_PER_NODE": "600", "CUDA_VISIBLE_DEVICES": "3,7", "IMK_MODULE_PATH": "/nowhere"}
        with self.start("--workers", "2", **given) as process:
            out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, out + err)
        trace = self.trace()
        self.assertEqual({(told["IMK_THREADS"], told["IMK_MEMORY"]) for told in trace}, {("1", str(300 << 20))})
        self.assertEqual(len({(told["pid"], told["CUDA_VISIBLE_DEVICES"]) for told in trace}), 2)
        self.assertEqual({told["CUDA_VISIBLE_DEVICES"] for told in trace}, {"3", "7"})

    def test_elements_keep_to_the_memory_of_the_allocation(self):
        for i in range(4):
            np.save(self.path(f"set{i}.npy"), np.full((400, 500), 60 * i, np.uint8))
        os.mkdir(self.path("lights"))
        for i in range(4):
            os.rename(self.path(f"set{i}.npy"), self.path("lights", f"{i}.npy"))
        with open(self.path("dome.lp"), "w", encoding="ascii") as file:
            file.write("4\n0.npy 0.5 0 1\n1.npy -0.5 0 1\n2.npy 0 0.5 1\n3.npy 0 -0.5 1\n")
        with open(self.path("jobs.csv"), "w", encoding="utf-8") as file:
            file.write("command,input,output\nphotostereo,lights dome.lp,out/lights\n")
        self.assertRegex(self.batch(status=1, SLURM_MEM_PER_NODE="0", IMK_MEMORY="700000")[0]["error"], "host-memory-limit allows 0 MiB")

    def test_progress_has_a_rate_and_the_time_left(self):
        self.table(range(2))
        self.batch()
        self.table(["0", "1", "2", "3", "slow"])
        ours, theirs = os.openpty()
        with self.start(stderr=theirs) as process:
            os.close(theirs)
            shown = b""
            end = time.monotonic() + TIMEOUT
            while not re.search(rb"4 of 5 rows, [\d.e-]+/[sh], \d+ s left", shown) and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    shown += os.read(ours, 4096)
            process.terminate()
            process.communicate(timeout=TIMEOUT)
        os.close(ours)
        self.assertRegex(shown.decode(), r"batch: 4 of 5 rows, [\d.e-]+/[sh], \d+ s left")

    def test_shards_have_each_row_once(self):
        self.table()
        numbers = [line["row"] for i in "123" for line in self.batch("--shard", f"{i}/3", "--json")[:-1]]
        self.assertEqual(numbers, [1, 4, 2, 5, 3, 6])
        for shard in "0/3", "4/3", "1", "a/b", "1/0", "-1/3":
            self.assertEqual(run_command("batch", "jobs.csv", f"--shard={shard}", folder=self.folder).returncode, 2, shard)

    def test_a_crash_takes_no_other_row_with_it(self):
        self.table(["0", "abort", "2", "slow", "4", "5"])
        with self.start("--workers", "2") as process:
            wait_for(self.path("out/slow.begun"))
            end = time.monotonic() + TIMEOUT
            while len([n for n in self.outputs() if n in "0245"]) < 4 and time.monotonic() < end:
                time.sleep(0.02)
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                children = file.read().split()
            for child in children:  # one of them has nothing to do
                os.kill(int(child), signal.SIGKILL)
            out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1, err)
        lines = {line["output"]: line for line in map(json.loads, out.splitlines()[:-1])}
        self.assertEqual(lines["out/abort"]["exit-status"], 134)
        self.assertRegex(lines["out/abort"]["error"], "SIGABRT.*invalid pointer")
        self.assertEqual(lines["out/slow"]["exit-status"], 137)
        self.assertRegex(lines["out/slow"]["error"], "SIGKILL.*[Mm]emory")
        self.assertEqual({line["state"] for name, line in lines.items() if name[4:] in "0245"}, {"made"})
        os.remove(self.path("out/slow.begun"))
        self.assertEqual(self.outputs(), ["0", "2", "4", "5"])
        self.assertEqual(self.batch("--json")[-1], {"rows": 6, "made": 2, "complete": 4, "stale": 0, "failed": 0})  # without crashes

    def test_a_result_that_is_there_when_its_worker_crashes_counts_as_made(self):
        self.table(["0", "late", "2"])
        for state in "made", "failed":  # the second time it was there before, and says nothing about this crash
            with self.start() as process:
                out, err = process.communicate(timeout=TIMEOUT)
            lines = {line["output"]: line["state"] for line in map(json.loads, out.splitlines()[:-1])}
            self.assertEqual(lines["out/late"], state, out + err)
        self.assertEqual(self.batch("--json")[-1], {"rows": 3, "made": 0, "complete": 3, "stale": 0, "failed": 0})

    def test_a_batch_that_ends_leaves_nothing_half_and_can_be_called_again(self):
        for number in signal.SIGTERM, signal.SIGKILL:
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.table(["0", "slow", "2"])
            with self.start() as process:
                wait_for(self.path("out/slow.begun"))
                at_work = self.trace()[-1]["pid"]
                with open(f"/proc/{at_work}/oom_score_adj", encoding="ascii") as file:
                    self.assertEqual(int(file.read()), 1000)  # memory that runs out ends a worker first
                process.send_signal(number)
                out = process.communicate(timeout=TIMEOUT)[0]
            self.assertEqual(process.returncode, -number)
            if number == signal.SIGTERM:
                counts = {"rows": 3, "made": 1, "complete": 0, "stale": 0, "failed": 0}
                self.assertEqual(json.loads(out.splitlines()[-1]), {
                    "error": "Stopped by SIGTERM. 1 of 3 rows: 1 made, 0 complete already, 0 failed.", "exit-status": 128 + number, **counts})
            end = time.monotonic() + TIMEOUT / 4
            while claims.started(at_work) is not None and time.monotonic() < end:
                time.sleep(0.02)
            self.assertIsNone(claims.started(at_work))  # or it would write beside the next call
            os.remove(self.path("out/slow.begun"))
            self.assertEqual(self.outputs(), [".slow.gst-imaging-claim", "0"] if number == signal.SIGKILL else ["0"])
            self.assertEqual(self.batch("--json")[-1], {"rows": 3, "made": 2, "complete": 1, "stale": 0, "failed": 0})
            self.assertEqual(self.outputs(), ["0", "2", "slow"])

    def test_a_claim_is_renewed_while_its_row_is_worked_on(self):
        self.table(["slow"])
        claim = self.path("out/.slow.gst-imaging-claim")
        with self.start(RENEWED="0.1") as process:
            wait_for(self.path("out/slow.begun"))
            os.utime(claim, (time.time() - 290,) * 2)  # another host would soon take it
            end = time.monotonic() + TIMEOUT
            while time.time() - os.stat(claim).st_mtime > 100 and time.monotonic() < end:
                time.sleep(0.02)
            self.assertLess(time.time() - os.stat(claim).st_mtime, 100)
            process.terminate()
            process.communicate(timeout=TIMEOUT)

    def test_the_same_shard_twice_at_once_makes_each_row_once(self):
        self.table([str(i) for i in range(12)])
        with self.start("--workers", "2") as one, self.start("--workers", "2") as other:
            told = [json.loads(process.communicate(timeout=TIMEOUT)[0].splitlines()[-1]) for process in (one, other)]
        self.assertEqual((one.returncode, other.returncode), (0, 0))
        self.assertEqual((told[0]["made"] + told[1]["made"], told[0]["complete"] + told[1]["complete"]), (12, 12))
        self.assertEqual(len(self.outputs()), 12)

    def test_a_full_disk_is_a_line_for_each_row_and_nothing_half(self):
        """A limit for the size of files stands for it: not everybody may mount a small file system."""
        self.table(range(2))
        np.save(self.path("in1.npy"), np.zeros((900, 900), np.uint8))
        done = subprocess.run(["prlimit", "--fsize=600000", sys.executable, "-B", "-m", "gst_imaging", "batch", "jobs.csv"],
                              cwd=self.folder, capture_output=True, text=True, check=False, timeout=TIMEOUT,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual(done.returncode, 1, done.stderr)
        line = json.loads(done.stdout)
        self.assertEqual((line["row"], line["exit-status"]), (2, 4), line)
        self.assertEqual(self.outputs(), ["0"])

    def test_tables_that_are_none(self):
        for text, sentence in (("", "is empty"), ("command,input\n", 'no column "output"'), ("command,output,output\n", "two columns"),
                               ("command,output\nsharpen,a,b\n", "line 2: 3 cells"), ("command,output\nsharpen,\n", "no output"),
                               ("command,output\nsharpen,a\nsharpen,./a\n", "lines 2 and 3"),
                               ("command,output\nsharpen,e/ab\nsharpen,./e/a/b\nsharpen,e/a\n", "lines 4 and 3: the output ./e/a/b is in that of another row"),
                               ('command,output\n"a,b\n', "no table"),
                               ("command,output\n\udcff,a\n", "no table")):
            with open(self.path("jobs.csv"), "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            self.batch(status=3)
            self.assertIn(sentence, self.errors)
        with open(self.path("jobs.csv"), "w", encoding="utf-8") as file:
            file.write("command;output\nsharpen;a;b\n")
        self.batch(status=3)
        self.assertIn('A cell with ";" is written in quotes', self.errors)
        with open(self.path("jobs.csv"), "w", encoding="utf-8") as file:
            file.write("# a comment\ncommand,input,output,colour,format,json,set\n"
                       "nosuch,,a,,,,\nconvert,,b,,,,\nbatch,jobs.csv,f,,,,\nsharpen,in0.npy,c,red,,,\nsharpen,in0.npy,d,,,maybe,\nsharpen,'in0,e,,,,\n")
        sentences = [line["error"] for line in self.batch(status=1)]
        for sentence, part in zip(sentences, ('no command "nosuch"', "no -o FOLDER", "no -o FOLDER", "no option --colour", "yes or no", "no end"), strict=True):
            self.assertIn(part, sentence)

    def test_tables_of_spreadsheets(self):
        """Semicolons or tabs, with a byte order mark, quotes and line ends of Windows."""
        for delimiter in ",;\t":
            shutil.rmtree(self.path("out"), ignore_errors=True)
            rows_of = ["# of Excel; or another", "command,input,output,amount=,,", '"sharpen",in0.npy,out/0,1', "", "sharpen,in1.npy,out/1,2,,", ",,,"]
            with open(self.path("jobs.csv"), "w", encoding="utf-8-sig", newline="") as file:
                file.write("\r\n".join(rows_of).replace(",", delimiter) + "\r\n")
            self.assertEqual([line.get("line") for line in self.batch("--json")], [3, 5, None])

    def test_a_row_that_another_process_still_writes_is_tried_again(self):
        """Once a second, and of several inputs, too."""
        for inputs, folder, made in (("in0.npy", "out/.0.gst-imaging-work", 1), ("in0.npy in1.npy", "out/0/.in1.gst-imaging-work", 1),
                                     ("nothing.npy in1.npy", "out/0/.in1.gst-imaging-work", 0)):
            with open(self.path("jobs.csv"), "w", encoding="ascii") as file:
                file.write(f"command,input,output\nsharpen,{inputs},out/0\n")
            shutil.rmtree(self.path("out"), ignore_errors=True)
            os.makedirs(self.path(folder))
            lock = os.open(self.path(folder), os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.start() as process:
                wait_for(self.path("trace"))
                time.sleep(2)
                os.close(lock)
                out, err = process.communicate(timeout=TIMEOUT)
            told = json.loads(out.splitlines()[-1])
            self.assertEqual((told["made"], told["failed"]), (made, 1 - made), err)
            self.assertTrue(os.path.exists(self.path("out/0/in1/result.json" if "in1" in inputs else "out/0/result.json")))
            self.assertNotIn("Another gst-imaging", err)
            self.assertLess(len(self.trace()), 6)
            os.remove(self.path("trace"))

    def test_the_last_worker_crashes_while_a_row_is_waited_for(self):
        self.table(["0", "abort"])
        mine = claims.take(self.path("out/0"))
        with self.start() as process:
            self.assertEqual(json.loads(process.stdout.readline())["exit-status"], 134)
            mine.release()
            self.assertEqual(json.loads(process.communicate(timeout=TIMEOUT)[0].splitlines()[-1])["made"], 1)

    def test_times_of_rows_are_seconds_and_those_of_complete_ones_do_not_count(self):
        self.table(range(3))
        self.assertIn("print a line of JSON for each row", " ".join(run_command("batch", "--help").stdout.split()))
        begin = time.monotonic()
        lines = self.batch("--json")[:-1]
        self.assertTrue(0 < sum(line["seconds"] for line in lines) <= time.monotonic() - begin, lines)
        log = batch.Log(2, False, rows.Needs([]))
        log.take_answer(rows.Row(1, 2, [], []), {"state": "complete"})
        log.take_answer(rows.Row(2, 3, [], []), {"state": "made"})
        self.assertEqual((log.progress.given, log.done()), (1, 2))

    def test_who_is_waited_for_is_told(self):
        self.table(["0"])
        mine = claims.take(self.path("out/0"), 4711)
        with self.start(SILENT="0.1") as process:
            told = process.stderr.readline()
            mine.release()
            process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(told, rf"waits for row 1 \(line 2, out/0\): claimed by process {os.getpid()} \(worker 4711\) on {socket.gethostname()} since 20.*"
                               r"\.0\.gst-imaging-claim was renewed \d+ s ago and is stale when that process has ended\.$")

    def test_standard_output_that_cannot_be_written(self):
        """Rows go on, and their lines are on standard error."""
        for place in ">&-", "> /dev/full":
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.table(["0", "abort", "2"])
            done = subprocess.run(["sh", "-c", f'exec "$@" {place}', "sh", sys.executable, "-B", "-c", CRASHES, "jobs.csv", "--workers", "2"],
                                  cwd=self.folder, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT,
                                  env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertEqual(self.outputs(), ["0", "2"])
            lines = done.stderr.splitlines()
            self.assertEqual([json.loads(line)["output"] for line in lines if line.startswith("{")], ["out/abort"])
            self.assertRegex(lines[-1], "2 made, .* 1 failed. Standard output cannot be written: (Bad file descriptor|No space left on device)")
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(self.batch("--json")[-1]["complete"], 2)

    def test_standard_error_that_cannot_be_written(self):
        self.table(["0", "abort", "2"])
        for place in "2>&-", "2> /dev/full":
            shutil.rmtree(self.path("out"), ignore_errors=True)
            done = subprocess.run(["sh", "-c", f'exec "$@" {place}', "sh", sys.executable, "-B", "-c", CRASHES, "jobs.csv"], cwd=self.folder,
                                  stdout=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT,
                                  env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            self.assertEqual((done.returncode, self.outputs()), (1, ["0", "2"]))
            self.assertEqual([json.loads(line)["output"] for line in done.stdout.splitlines()], ["out/abort"])

    def test_complete_rows_need_no_folder_that_can_be_written(self):
        self.table(["0", "1"])
        self.batch()
        self.table(["0", "1", "2"])
        os.chmod(self.path("out"), 0o555)
        self.addCleanup(os.chmod, self.path("out"), 0o755)
        as_others = [] if os.getuid() else ["setpriv", "--bounding-set=-dac_override"]
        done = subprocess.run([*as_others, sys.executable, "-B", "-m", "gst_imaging", "batch", "jobs.csv", "--json"], cwd=self.folder,
                              capture_output=True, text=True, check=False, timeout=TIMEOUT,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line.get("state") for line in lines], ["complete", "complete", "failed", None], done.stderr)
        self.assertEqual((lines[2]["exit-status"], lines[2]["error"]), (4, "out/2 cannot be written: Permission denied."))

    def test_a_damaged_result_is_told_from_one_of_other_settings(self):
        self.table(range(3))
        self.batch()
        os.truncate(self.path("out/0/in0.npy"), 99)
        os.remove(self.path("out/1/in1.npy"))
        lines = self.batch(status=1)
        for line, what in zip(lines, (r"in0\.npy has 99 bytes and not \d+", r"in1\.npy is missing"), strict=True):
            self.assertEqual(line["state"], "stale")
            self.assertRegex(line["error"], f"is damaged: {what}.*--overwrite makes it again")
        self.assertEqual(self.batch("--overwrite", "--json")[-1], {"rows": 3, "made": 2, "complete": 1, "stale": 0, "failed": 0})
        self.assertEqual(self.batch("--overwrite", "--json")[-1]["complete"], 3)

    def test_warnings_of_rows_are_in_their_lines(self):
        for name, columns in ("wide", 128), ("narrow", 40):
            np.save(self.path(f"{name}.npy"), np.random.default_rng(1).standard_normal((400, columns)).astype(np.complex64))
            shutil.copy(self.path(f"{name}.npy"), self.path(f"{name}-copy.npy"))
        with open(self.path("jobs.csv"), "w", encoding="utf-8") as file:
            file.write("command,input,output\nsharpen,in0.npy,out/0\noffsets,wide.npy wide-copy.npy,out/1\noffsets,narrow.npy narrow-copy.npy,out/2\n")
        for states in ["made", "made", "failed"], ["complete", "complete", "failed"]:
            lines = self.batch("--json", status=1)[:-1]
            self.assertEqual([line["state"] for line in lines], states)
            self.assertEqual([bool(line["warnings"]) for line in lines], [False, True, True], lines)
            self.assertIn("Both images have the content of wide.npy", lines[1]["warnings"][0])

    def test_the_row_that_a_failure_comes_from_is_named(self):
        with open(self.path("jobs.csv"), "w", encoding="utf-8") as file:
            file.write("command,input,output\nsharpen,nothing.npy,a\nsharpen,a/nothing.npy,b\nsharpen,c/in0.npy,d\nsharpen,nothing.npy,c\n")
        errors = [line["error"] for line in self.batch(status=1)]
        self.assertNotIn("It needs", errors[0] + errors[3])
        self.assertIn("It needs a/nothing.npy, of the output of row 1 (line 2), which failed.", errors[1])
        self.assertIn("It needs c/in0.npy, of the output of row 4 (line 5), which has no result yet", errors[2])

    def test_a_claim_that_is_no_file_fails_its_row(self):
        self.table(["0", "1", "2"])
        os.mkdir(self.path("out"))
        os.symlink("nowhere", self.path("out/.0.gst-imaging-claim"))
        os.mkfifo(self.path("out/.1.gst-imaging-claim"))
        lines = self.batch("--json", status=1)
        self.assertEqual((lines[-1]["made"], lines[-1]["failed"]), (1, 2))
        for line in lines[:-1]:
            if line["state"] == "failed":
                self.assertIn("gst-imaging-claim is no regular file. Remove it.", line["error"])


class Claims(FolderCase):
    def setUp(self):
        super().setUp()
        self.output, self.claim = self.path("a"), self.path(".a.gst-imaging-claim")

    def write(self, **more):
        told = {"host": claims.host(), "pid": os.getpid(), "start": claims.started(os.getpid()), "token": "x", **more}
        with open(self.claim, "w", encoding="utf-8") as file:
            json.dump(told, file)

    def test_one_of_a_process_that_runs_stays(self):
        mine = claims.take(self.output)
        self.assertIsNone(claims.take(self.output))
        self.assertIn(socket.gethostname(), claims.read(self.claim)["host"])
        mine.release()
        self.assertEqual(os.listdir(self.folder), [])

    def test_one_of_another_host_is_described(self):
        self.write(host="elsewhere 1 2", pid=7, worker=8, since="now")
        os.utime(self.claim, (time.time() - 40,) * 2)
        self.assertRegex(claims.describe(self.output), r"process 7 \(worker 8\) on elsewhere since now\. .* renewed 4\d s ago and is stale when it has not been "
                                                       "renewed for 300 s$")
        with open(self.claim, "w", encoding="utf-8") as file:  # it is just being written
            file.write("{")
        self.assertIn("process unknown", claims.describe(self.output))
        os.remove(self.claim)
        self.assertEqual(claims.describe(self.output), "")

    def looking(self, n, take):
        """Returns: a Pool of n rows, and a worker that has none"""
        several = pool.Pool([unittest.mock.Mock(output=str(i)) for i in range(n)], 1, False, None, None, None)
        several.workers.append(unittest.mock.Mock(row=None))
        self.enterContext(unittest.mock.patch.object(claims, "take", take))
        return several

    def test_a_claim_of_another_one_is_read_before_one_is_written(self):
        """On a file system of a network each new file costs more than a look."""
        self.write()
        with unittest.mock.patch.object(claims, "make") as make:
            self.assertIsNone(claims.take(self.output))
        make.assert_not_called()

    def test_all_that_is_claimed_by_others_is_looked_at_in_each_look(self):
        take = unittest.mock.Mock(return_value=None)
        several = self.looking(300, take)
        several.fill()
        self.assertEqual(take.call_count, 300)
        time.sleep(pool.TRIED)
        several.fill()
        self.assertEqual(len(several.elsewhere), 300)
        self.assertEqual(take.call_count, 600)

    def test_a_long_look_leaves_time_for_the_renewal_of_claims(self):
        several = self.looking(1000, lambda *_: time.sleep(0.02))
        with unittest.mock.patch.object(pool, "TRIED", 0.1):
            begin = time.monotonic()
            several.fill()
            self.assertLess(time.monotonic() - begin, 5)
        self.assertTrue(several.is_looking())

    def test_one_of_a_process_that_has_gone_is_taken(self):
        self.write(start=claims.started(os.getpid()) - 1)  # its number was given again
        self.assertIsNotNone(claims.take(self.output))
        with subprocess.Popen(["true"]) as process:
            while claims.started(process.pid) is not None:  # a zombie, for which nobody has waited
                time.sleep(0.01)
            self.write(pid=process.pid, start=1)
            self.assertTrue(os.path.exists(f"/proc/{process.pid}"))
            self.assertIsNotNone(claims.take(self.output))
        self.assertEqual(len(os.listdir(self.folder)), 1)

    def test_one_of_another_host_counts_for_five_minutes(self):
        for told in ({"host": "elsewhere"}, {"host": None, "pid": "?"}):
            self.write(**told)
            os.utime(self.claim, (time.time() - 280,) * 2)
            self.assertIsNone(claims.take(self.output))
            os.utime(self.claim, (time.time() - 320,) * 2)
            mine = claims.take(self.output)
            os.utime(self.claim, (time.time() - 200,) * 2)
            mine.renew()
            self.assertLess(time.time() - os.stat(self.claim).st_mtime, 100)
            mine.release()
        for text in "", "[" * 200000:  # of an older version, or of nobody
            with open(self.claim, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertIsNone(claims.take(self.output))

    def test_a_time_in_the_future_does_not_hold_for_ever(self):
        self.write(host="elsewhere")
        os.utime(self.claim, (time.time() + 100,) * 2)  # clocks differ
        self.assertIsNone(claims.take(self.output))
        os.utime(self.claim, (time.time() + 2 * 86400,) * 2)
        self.assertIsNotNone(claims.take(self.output))

    def test_what_stops_the_writing_leaves_no_claim(self):
        with unittest.mock.patch.object(claims.json, "dump", side_effect=Stopped(signal.SIGTERM)), self.assertRaises(Stopped):
            claims.take(self.output)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_system_without_links(self):
        with unittest.mock.patch.object(claims.os, "link", side_effect=PermissionError(errno.EPERM, "no links")):
            mine = claims.take(self.output)
            self.assertTrue(mine.is_ours())
            self.assertIsNone(claims.take(self.output))
        self.assertEqual(os.listdir(self.folder), [os.path.basename(self.claim)])

    def test_workers_that_do_not_end_share_one_deadline(self):
        script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
        with unittest.mock.patch.object(pool, "PATIENCE", 1), contextlib.ExitStack() as stack:
            several = pool.Pool([], 0, False, None, None, None)
            for _ in range(3):
                process = stack.enter_context(subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE))
                process.stdout.readline()
                one = worker.Worker.__new__(worker.Worker)
                one.pid, one.row, one.claim = process.pid, "a row", None
                several.workers.append(one)
            begin = time.monotonic()
            several.end()
            self.assertLess(time.monotonic() - begin, 2.5)

    def test_only_one_of_many_takes_it_over(self):
        script = ("import sys, time\nfrom gst_imaging.batch import claims\n"
                  "sys.stdin.readline()\nprint(sum(bool(claims.take(f'{sys.argv[1]}/{i}')) for i in range(100)), flush=True)\nsys.stdin.readline()")
        for i in range(100):
            self.claim = self.path(f".{i}.gst-imaging-claim")
            self.write(start=1)
        several = [subprocess.Popen([sys.executable, "-B", "-c", script, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")}) for _ in range(3)]
        for process in several:
            process.stdin.write("\n")
            process.stdin.flush()
        taken = [int(process.stdout.readline()) for process in several]
        for process in several:
            process.communicate("\n", timeout=TIMEOUT)
        self.assertEqual(sum(taken), 100, taken)
        self.assertEqual(len(os.listdir(self.folder)), 100)

    def test_one_that_was_another_by_then_is_put_back(self):
        self.write(token="of somebody who is quicker")
        claims.take_over(self.claim, {"token": "stale"})
        self.assertEqual(claims.read(self.claim)["token"], "of somebody who is quicker")
        self.assertEqual(len(os.listdir(self.folder)), 1)


class Allocation(FolderCase):
    def places(self, membership, **files):
        for name, text in {"membership": membership, **files}.items():
            path = self.path(name.replace("__", "/").replace("_of_", "."))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return {"root": self.folder, "membership": self.path("membership")}

    def test_cgroups_of_both_versions(self):
        places = self.places("0::/slurm/job\n", slurm__cpu_of_max="max 100000\n", slurm__memory_of_max="1000000\n",
                             slurm__job__cpu_of_max="100000 100000\n", slurm__job__memory_of_max="max\n")
        self.assertEqual((allocation.processors(**places), allocation.memory(**places)), (1, 1000000))
        places = self.places("4:memory:/a\n3:cpu,cpuacct:/a\n", memory__a__memory_of_limit_in_bytes="2000000\n")
        self.assertEqual(allocation.memory(**places), 2000000)

    def test_slurm_and_devices(self):
        environment = {"SLURM_CPUS_PER_TASK": "1", "SLURM_MEM_PER_CPU": "3", "CUDA_VISIBLE_DEVICES": "4,5,6"}
        with unittest.mock.patch.dict(os.environ, environment):
            places = self.places("")
            self.assertEqual((allocation.processors(**places), allocation.memory(**places)), (1, 3 << 20))
            shares = [allocation.share(worker, 2) for worker in range(2)]
        with unittest.mock.patch.dict(os.environ, {"SLURM_CPUS_ON_NODE": "1", "SLURM_MEM_PER_CPU": "5"}):
            self.assertEqual((allocation.processors(**places), allocation.memory(**places)), (1, 5 << 20))  # sbatch without -c
        self.assertEqual([share["CUDA_VISIBLE_DEVICES"] for share in shares], ["4,6", "5"])
        self.assertEqual({share["IMK_THREADS"] for share in shares}, {"1"})

    def test_all_gpus_of_a_machine(self):
        with unittest.mock.patch.dict(os.environ):
            folder = os.path.join(self.folder, "dev")
            os.mkdir(folder)
            for name in "nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm":
                open(os.path.join(folder, name), "w", encoding="ascii").close()
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            self.assertEqual(allocation.gpus(os.path.join(folder, "nvidia[0-9]*")), ["0", "1", "2"])
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
            self.assertEqual(allocation.gpus(os.path.join(folder, "nvidia[0-9]*")), [])

    def test_rows_become_words(self):
        row = rows.Row(1, 2, ["command", "output", "input", "mm-per-pixel", "by-order", "set", "arguments"],
                       ["photostereo", "out", "'a b' lights.lp", "-0.5", "yes", "robust=huber t-res=2", "--gamma 2"])  # inputs first, as an option may take all words behind it
        self.assertEqual(row.words(rows.parser_of(row)), [
            "a b", "lights.lp", "--gamma", "2", "--mm-per-pixel=-0.5", "--by-order", "--set=robust=huber", "--set=t-res=2"])


main()
