# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recipes of the how-to pages with the engines themselves, as they stand there: Slurm, GNU parallel, Dask and Snakemake run the
parts of one table, and its results have the bytes of those that were made one by one."""
import glob
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np

from jobtable import Table, made_bytes, write_frames, write_lights
from services import Slurm, Ssh, free_ports, need, wait_until, write
from support import SOURCE, main, recipe

SECONDS = 100


class Engine(Table):
    @classmethod
    def fill(cls):
        write_frames(cls.folder, 8)
        write(cls.path("dome.lp"), "")
        return [("sharpen", f"in{i}.npy", f"out/{i}", f"amount={1 + i % 3}") for i in range(8)]

    def run_words(self, *words, status=0, environment=None):
        """Returns: what it printed"""
        done = subprocess.run(words, cwd=self.folder, env=environment or self.environment, text=True, check=False, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def run_recipe(self, page, part, environment=None, status=0):
        return self.run_words("sh", "-c", recipe(page, "sh", part), environment=environment, status=status)

    def failed(self, pattern="failed-*.jsonl"):
        """Returns: the lines of all files of failed rows"""
        lines = []
        for path in glob.glob(self.path(pattern)):
            with open(path, encoding="utf-8") as file:
                lines += map(json.loads, file)
        return lines

    def write_two_tables(self):
        """As of a stack: rows of jobs.csv read the results of images.csv. That of in3.npy fails"""
        name, = {os.path.basename(path).replace("0", "%d") for path in self.expected if path.startswith("0/")}
        os.mkdir(self.path("stack"))
        self.addCleanup(shutil.rmtree, self.path("stack"))
        for table, row in ("images", "sharpen,in%d.npy,out-images/%d"), ("jobs", f"sharpen,out-images/%d/{name},out-pairs/%d"):
            write(self.path("stack", f"{table}.csv"), "command,input,output\n" + "".join(row % ((i,) * row.count("%d")) + "\n" for i in range(8)))
        self.hide_an_input()

    def check_two_tables(self):
        for folder in "out-images", "out-pairs":
            self.assertEqual(sorted(os.listdir(self.path(folder))), [str(i) for i in range(8) if i != 3])
        for table, output in ("images", "out-images/3"), ("jobs", "out-pairs/3"):
            self.assertEqual([line["output"] for line in self.failed(f"failed-{table}-*.jsonl")], [output])

    def hide_an_input(self):
        """in3.npy comes back at the end, or with the function that is returned"""
        os.rename(self.path("in3.npy"), self.path("hidden"))
        undo = [lambda: os.rename(self.path("hidden"), self.path("in3.npy"))]
        self.addCleanup(lambda: undo and undo.pop()())
        return lambda: undo.pop()()


class OnSlurm(Engine):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.mkdir(os.path.join(cls.base, "slurm"))
        cls.slurm = Slurm(os.path.join(cls.base, "slurm"))
        cls.slurm.environment["PATH"] = cls.environment["PATH"]
        cls.enterClassContext(cls.slurm)
        cls.environment = cls.slurm.environment

    def submit(self, *words):
        return int(self.slurm.call("sbatch", "--parsable", *words, cwd=self.folder).split(";")[0])


class SlurmArray(OnSlurm):
    def test_tasks_run_the_parts_of_the_table_and_a_row_that_fails_is_told(self):
        write(self.path("job.sh"), recipe("slurm", "sh", "--array"), 0o755)
        put_back = self.hide_an_input()
        tasks = {task["ArrayTaskId"]: task["JobState"] for task in self.slurm.wait(self.submit("job.sh"))}
        self.assertEqual(tasks, {str(i): "FAILED" if i == 4 else "COMPLETED" for i in range(1, 9)})
        self.assertEqual([(line["output"], line["exit-status"]) for line in self.failed()], [("out/3", 3)])
        put_back()
        write(self.path("last.sh"), "#!/bin/sh\nls out | wc -l > parts-at-the-end\n", 0o755)
        command = recipe("slurm", "", "afterok").strip().removeprefix("sbatch").strip()
        last = int(self.run_words("sh", "-c", f"sbatch --parsable {command}"))
        self.assertEqual([task["JobState"] for task in self.slurm.wait(last)], ["COMPLETED"])
        with open(self.path("parts-at-the-end"), encoding="ascii") as file:
            self.assertEqual(file.read().strip(), "8")  # not before the array had ended
        self.assertEqual(self.failed(), [])
        self.check()

    def test_the_second_table_runs_also_where_a_row_of_the_first_fails(self):
        self.write_two_tables()
        write(self.path("stack.sh"), recipe("slurm", "sh", "stack/$1"), 0o755)
        command = recipe("slurm", "", "afterany").strip()
        last = int(self.run_words("sh", "-c", command.replace("sbatch --dep", "sbatch --parsable --dep")))
        self.slurm.wait(last)
        self.check_two_tables()

    def test_a_task_has_the_threads_and_the_memory_that_it_asked_for(self):
        write(self.path("told.sh"), "#!/bin/sh\n#SBATCH --cpus-per-task=1 --mem-per-cpu=700 --output=parts-told\n"
              f"PYTHONPATH={SOURCE}/pipelines {sys.executable} -B -c "
              "'from gst_imaging.batch import allocation as a; print(a.processors(), a.memory())'\n", 0o755)
        self.slurm.wait(self.submit("told.sh"))
        with open(self.path("parts-told"), encoding="ascii") as file:
            self.assertEqual(file.read().split(), ["1", str(700 << 20)])


class GnuParallel(Engine):
    def setUp(self):
        super().setUp()
        need("parallel")

    def remote(self):
        folder = os.path.join(self.base, f"ssh-{self._testMethodName}")
        os.mkdir(folder)
        os.environ["PATH"], before = self.environment["PATH"], os.environ["PATH"]  # sshd gives it to its sessions
        try:
            return self.enterContext(Ssh(folder)).environment
        finally:
            os.environ["PATH"] = before

    def test_parts_on_this_machine(self):
        put_back = self.hide_an_input()
        self.run_recipe("gnu-parallel", "-j2", status=1)
        self.assertEqual([(line["output"], line["exit-status"]) for line in self.failed()], [("out/3", 3)])
        put_back()
        self.run_words("sh", "-c", recipe("gnu-parallel", "sh", "-j2").replace("-j2", "-j2 --resume-failed"))
        with open(self.path("parts.log"), encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 1 + 8 + 1)  # a heading, all parts, and one again
        self.check()

    def test_the_second_table_runs_also_where_a_row_of_the_first_fails(self):
        self.write_two_tables()
        self.run_recipe("gnu-parallel", "stack/$table.csv", status=1)
        self.check_two_tables()

    def test_parts_on_two_machines(self):
        environment = self.remote()
        self.run_recipe("gnu-parallel", "--workdir .", environment)
        with open(self.path("parts.log"), encoding="ascii") as file:
            self.assertEqual({line.split("\t")[1] for line in file.readlines()[1:]}, {"w1", "w2"})
        self.check()

    def test_files_travel_with_each_job(self):
        need("rsync")
        environment = self.remote()
        os.makedirs(self.path("photographs"), exist_ok=True)
        for i in range(3):
            subprocess.run([sys.executable, "-B", "-m", "gst_imaging", "convert", f"in{i}.npy", f"photographs/{i}.png"], cwd=self.folder,
                           check=True, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.run_recipe("gnu-parallel", "--transferfile", environment)
        self.assertEqual(sorted(made_bytes(self.path("sharp"))), [f"{i}/{i}.png" for i in range(3)])


class DaskBase:
    def setUp(self):
        super().setUp()
        if not importlib.util.find_spec("distributed"):
            self.skipTest("Dask (distributed) is missing; tools/venv installs it.")
        write(self.path("parts.py"), recipe("dask", "python"))


class OnDask(DaskBase, Engine):
    def test_a_cluster_on_this_machine_and_a_row_that_fails(self):
        put_back = self.hide_an_input()
        lines = [json.loads(line) for line in self.run_words(sys.executable, "parts.py", status=1).splitlines() if line.startswith("{")]
        self.assertEqual([(line["output"], line["exit-status"]) for line in lines], [("out/3", 3)])
        put_back()
        self.run_words(sys.executable, "parts.py")
        self.check()

    def test_a_scheduler_with_two_workers_of_which_one_is_killed(self):
        port, = free_ports(1)
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        address = f"tcp://127.0.0.1:{port}"
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nworkers", "2", "--nthreads", "1", "--no-dashboard"]
        log = open(os.path.join(self.base, "dask.log"), "w", encoding="utf-8")
        self.addCleanup(log.close)
        for words in dask, worker:
            process = subprocess.Popen(words, cwd=self.base, env=self.environment, stdout=log, stderr=log)
            self.addCleanup(process.wait, 20)
            self.addCleanup(process.terminate)
        client = subprocess.Popen([sys.executable, "parts.py", address], cwd=self.folder, env=self.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_until(lambda: os.path.isdir(self.path("out")) and len(made_bytes(self.path("out"))), "a row was made", SECONDS)
        os.kill(self.worker_of(process.pid), signal.SIGKILL)
        out = client.communicate(timeout=SECONDS)[0]
        self.assertEqual(client.returncode, 0, out)
        self.check()

    @staticmethod
    def worker_of(nanny):
        """Returns: the pid of a process that a nanny has started, which is not a helper of Python"""
        found = []

        def find():
            found[:] = subprocess.run(["pgrep", "-P", str(nanny), "-f", "spawn_main"], stdout=subprocess.PIPE, text=True,
                                      check=False).stdout.split()
            return found

        wait_until(find, "Dask had a worker")
        return int(found[0])


class DaskOnSlurm(DaskBase, OnSlurm):
    def test_dask_jobqueue(self):
        if not importlib.util.find_spec("dask_jobqueue"):
            self.skipTest("dask-jobqueue is missing; tools/venv installs it.")
        write(self.path("parts.py"), recipe("dask", "python").replace('memory="1GB"', 'memory="1GB", interface="lo"'))  # no other network
        self.run_words(sys.executable, "parts.py", "slurm")
        self.check()


class SnakemakeBase:
    def setUp(self):
        super().setUp()
        need("snakemake")
        for name in "photos", "dome.lp":
            path = self.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
        for i, name in enumerate(("coin-1", "coin-2")):
            write_lights(self.path(), f"photos/{name}", i)
        write(self.path("Snakefile"), recipe("snakemake", "text"))

    def check_all(self):
        self.check()
        self.assertEqual({name.split("/")[0] for name in made_bytes(self.path("normals"))}, {"coin-1", "coin-2"})
        self.assertEqual(self.failed("failed/*.jsonl"), [])


class OnSnakemake(SnakemakeBase, Engine):
    def test_on_this_machine_after_a_row_that_failed(self):
        put_back = self.hide_an_input()
        command = recipe("snakemake", "", "--cores").split()
        self.run_words(*command, "--quiet", "--keep-going", status=1)
        self.assertEqual([(line["output"], line["exit-status"]) for line in self.failed("failed/*.jsonl")], [("out/3", 3)])
        put_back()
        self.run_words(*command, "--quiet")
        self.check_all()
        self.assertIn("Nothing to be done", self.run_words(*command))

    def test_a_changed_input_makes_its_row_again_and_no_other(self):
        command = recipe("snakemake", "", "--cores").split()
        self.run_words(*command, "--quiet")

        def stamps():
            return {name: os.stat(self.path("out", name, "result.json")).st_mtime_ns for name in os.listdir(self.path("out"))}

        before, frame = stamps(), np.load(self.path("in3.npy"))
        self.addCleanup(np.save, self.path("in3.npy"), frame)
        np.save(self.path("in3.npy"), 255 - frame)
        self.run_words(*command, "--quiet")
        self.assertEqual([name for name, stamp in stamps().items() if stamp != before[name]], ["3"])
        self.assertIn("Nothing to be done", self.run_words(*command))


class SnakemakeOnSlurm(SnakemakeBase, OnSlurm):
    def test_jobs_of_rules_are_jobs_of_slurm(self):
        write(self.path("status.sh"), recipe("snakemake", "sh", "JobState"), 0o755)
        self.run_recipe("snakemake", "--cluster-status")
        self.check_all()


AWS = """#!/bin/sh
# a bucket is a folder: aws s3 cp --only-show-errors [--recursive] FROM TO
shift 3
[ "$1" = --recursive ] && shift
case $2 in s3://*) to=$S3/${2#s3://}; mkdir -p "$to"; cp -r "$1"/. "$to" ;; *) cp "$S3/${1#s3://}" "$2" ;; esac
"""


class HyP3(Engine):
    def test_the_command_of_the_specification_fetches_makes_and_uploads(self):
        try:
            import yaml
        except ImportError as error:
            self.skipTest(f"{error}: Debian's python3-yaml is missing.")
        rng = np.random.default_rng(1)
        scene = rng.standard_normal((200, 200)) + 1j * rng.standard_normal((200, 200))
        store = os.path.join(self.base, "s3")
        os.makedirs(os.path.join(store, "data"))
        for name, place in ("ref", 4), ("sec", 6):
            np.save(os.path.join(store, "data", f"{name}.npy"), scene[place:place + 180, place:place + 180].astype(np.complex64))
        tools = os.path.join(self.base, "tools")
        os.mkdir(tools)
        write(os.path.join(tools, "aws"), AWS, 0o755)
        write(os.path.join(tools, "gst-imaging-hyp3"), recipe("containers", "sh", "aws s3"), 0o755)
        step, = yaml.safe_load(recipe("containers", "yaml"))["GST_IMAGING"]["steps"]
        told = {"!Ref Bucket": "bucket", "Ref::bucket_prefix": "job-1", "Ref::reference": "s3://data/ref.npy",
                "Ref::secondary": "s3://data/sec.npy"}
        self.assertEqual(step["command"][3], str(step["vcpu"]))
        self.run_words(*(told.get(word, word) for word in step["command"]),
                       environment={**self.environment, "PATH": f"{tools}:{self.environment['PATH']}", "S3": store})
        uploaded = os.listdir(os.path.join(store, "bucket", "job-1"))
        self.assertLessEqual({"result.json", "report.html", "coherence.tif", "fringes.png"}, set(uploaded))


main()
