# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of faults of docs/how-to/many-jobs.md: 20 pairs of images and 20 light sets, and after each fault nothing is lost, nothing
that was complete is computed twice, and all files have the bytes of those that were made one by one."""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np

from jobtable import Table, made_bytes, write_lights
from services import Slurm, is_running, wait_until, write
from support import main, recipe

N = 20
SECONDS = 200


class Faults(Table):
    @classmethod
    def fill(cls):
        rng = np.random.default_rng(25)
        for i in range(N):
            scene = rng.standard_normal((136, 140)) + 1j * rng.standard_normal((136, 140))
            np.save(cls.path(f"ref{i}.npy"), scene[4:132, 4:134].astype(np.complex64))
            np.save(cls.path(f"sec{i}.npy"), scene[5:133, 2:132].astype(np.complex64))
            write_lights(cls.folder, f"lights{i}", i)
        pairs = [("offsets", f"ref{i}.npy sec{i}.npy", f"out/pair{i}", "nx=3 ny=3 xsearch=16 ysearch=16") for i in range(N)]
        return [row for two in zip(pairs, [("photostereo", f"lights{i} dome.lp", f"out/set{i}", "") for i in range(N)]) for row in two]

    def start(self, *words, output=subprocess.PIPE):
        process = subprocess.Popen(["gst-imaging", "batch", "jobs.csv", "--json", *words], cwd=self.folder, env=self.environment,
                                   stdout=output, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def finished(self, folder="out"):
        return len([name for name in os.listdir(self.path(folder)) if not name.startswith(".")]) if os.path.isdir(self.path(folder)) else 0

    def wait_for_rows(self, n, folder="out"):
        wait_until(lambda: self.finished(folder) >= n, f"{n} rows were made", SECONDS)

    @staticmethod
    def lines(text):
        return [line for line in map(json.loads, text.splitlines()) if "row" in line]

    def check_made_once(self, *runs):
        """runs: lines of each batch; none made what an earlier one had made or found complete"""
        made = collections.Counter(line["output"] for lines in runs for line in lines if line["state"] == "made")
        self.assertEqual({name: n for name, n in made.items() if n > 1}, {})
        self.assertEqual(len(made), 2 * N)

    def test_a_worker_is_killed_or_aborts(self):
        for number, status in (signal.SIGKILL, 137), (signal.SIGABRT, 134):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            process = self.start("--workers", "2")
            self.wait_for_rows(7)
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                worker = int(file.read().split()[0])
            os.kill(worker, number)
            out, err = process.communicate(timeout=SECONDS)
            first = self.lines(out)
            self.assertEqual({line["exit-status"] for line in first if line["state"] == "failed"} - {status}, set(), err)
            n_failed = sum(line["state"] == "failed" for line in first)
            self.assertLessEqual(n_failed, 1)
            self.assertEqual(process.returncode, n_failed)
            second, told = self.batch()
            self.assertEqual((told["made"], told["complete"]), (n_failed, 2 * N - n_failed))
            self.check_made_once(first, second)
            self.check()

    def test_the_batch_is_killed(self):
        """With all that it had started; it has no time to end anything."""
        process = self.start("--workers", "2")
        self.wait_for_rows(9)
        process.send_signal(signal.SIGKILL)
        first = self.lines(process.communicate(timeout=SECONDS)[0])
        complete = set(os.listdir(self.path("out")))
        second, told = self.batch()
        self.assertEqual(told["failed"], 0)
        again = {os.path.basename(line["output"]) for line in second if line["state"] == "made"}
        self.assertEqual(again & {os.path.basename(line["output"]) for line in first if line["state"] == "made"}, set())
        self.assertEqual(again & {name for name in complete if not name.startswith(".")}, set())
        self.check()

    def test_the_disk_is_full(self):
        """A small file system, which is made larger later."""
        small = self.path("out")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", small], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("No file system can be mounted here.")
        try:
            first, told = self.batch("--workers", "2", status=1)
            self.assertGreater(told["made"], 2)
            self.assertGreater(told["failed"], 2)
            failed = [line for line in first if line["state"] == "failed"]
            self.assertEqual({line["exit-status"] for line in failed}, {4}, failed)
            self.assertTrue(all("space" in line["error"] for line in failed), [line["error"] for line in failed])
            found = made_bytes(small)
            self.assertEqual([name for name in found if found[name] != self.expected[name]], [])
            self.assertEqual(len(os.listdir(small)), told["made"])
            subprocess.run(["mount", "-o", "remount,size=200m", small], check=True)
            second, told = self.batch()
            self.assertEqual(told["made"], len(failed))
            self.check_made_once(first, second)
            self.check()
        finally:
            subprocess.run(["umount", "-l", small], check=True)

    def test_a_part_is_started_twice_at_once(self):
        one, other = self.start(), self.start()
        first, second = (self.lines(process.communicate(timeout=SECONDS)[0]) for process in (one, other))
        self.assertEqual((one.returncode, other.returncode), (0, 0))
        self.check_made_once(first, second)
        self.assertTrue(all(any(line["state"] == "made" for line in lines) for lines in (first, second)))
        self.check()

    def test_standard_output_cannot_be_written(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            process = self.start("--workers", "2", output=full)
            err = process.communicate(timeout=SECONDS)[1]
        self.assertEqual(process.returncode, 4, err)
        self.check_made_once(self.lines("\n".join(line for line in err.splitlines() if line.startswith("{"))))
        self.assertIn(f"{2 * N} of {2 * N} rows: {2 * N} made", err.splitlines()[-1])
        self.check()

    def test_results_are_damaged(self):
        self.batch("--workers", "2")
        damaged = {"out/pair3": "offsets.csv", "out/set5": "normals.png"}
        os.remove(self.path("out", "pair3", "offsets.csv"))
        os.truncate(self.path("out", "set5", "normals.png"), 10)
        lines, told = self.batch(status=1)
        self.assertEqual((told["complete"], told["stale"], told["failed"]), (2 * N - 2, 2, 0))
        for line in (line for line in lines if line["state"] == "stale"):
            self.assertIn(f"is damaged: {damaged[line['output']]} ", line["error"])
        told = self.batch("--overwrite")[1]
        self.assertEqual((told["made"], told["complete"]), (2, 2 * N - 2))
        self.check()

    def test_the_scheduler_restarts_and_a_task_is_killed(self):
        folder = os.path.join(self.base, "slurm")
        os.mkdir(folder)
        slurm = Slurm(folder)
        slurm.environment["PATH"] = self.environment["PATH"]
        slurm = self.enterContext(slurm)
        script = recipe("slurm", "sh", "--array").replace("1-8", "1-4").replace("/8", "/4").replace("jobs.csv", "jobs.csv --json")
        write(self.path("job.sh"), script.replace("> failed", ">> failed"), 0o755)
        job = slurm.call("sbatch", "--parsable", "job.sh", cwd=self.folder).strip()
        self.wait_for_rows(6)
        slurm.end("slurmctld")  # SIGKILL would lose what it has not written for some seconds, and its tasks with it
        self.wait_for_rows(self.finished() + 4)  # tasks go on without it
        slurm.start_controller()
        found = []

        def find_batch():
            found[:] = subprocess.run(["pgrep", "-f", f"{sys.executable} -B -m gst_imaging batch jobs.csv --json --shard"],
                                      stdout=subprocess.PIPE, text=True, check=False).stdout.split()
            found[:] = [pid for pid in map(int, found) if is_running(pid) and os.readlink(f"/proc/{pid}/cwd") == self.folder]
            return found or self.finished() == 2 * N

        wait_until(find_batch, "a task ran", SECONDS)
        self.assertTrue(found, "all was done before a task could be killed")
        os.kill(found[0], signal.SIGKILL)
        tasks = slurm.wait(job, SECONDS)
        self.assertEqual({task["JobState"] for task in tasks}, {"COMPLETED"}, tasks)
        self.assertEqual(sum(int(task["Restarts"]) for task in tasks), 1)
        lines = []
        for i in range(1, 5):
            with open(self.path(f"failed-{i}.jsonl"), encoding="utf-8") as file:
                lines += self.lines(file.read())
        made = collections.Counter(line["output"] for line in lines if line["state"] == "made")
        self.assertEqual([name for name, n in made.items() if n > 1], [])
        self.check()


main()
