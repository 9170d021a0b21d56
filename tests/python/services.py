# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services of other programs for a test, in a folder of its own and on ports that are free: Slurm with two nodes, and sshd under two
names of this machine. Each is ended at the end of the with; what is missing here skips the test."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

SECONDS = 60


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            raise unittest.SkipTest(f"{program} is missing; tools/setup tests installs it.")


def free_ports(n):
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in opened:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in opened]


def wait_until(condition, what, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s until {what}")
        time.sleep(0.05)


def is_running(pid):
    """A zombie has ended: who waits for processes here may be slow."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def read_pid(path):
    with contextlib.suppress(OSError, ValueError):
        with open(path, encoding="ascii") as file:
            return int(file.read())
    return None


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class Service:
    """run() starts daemons, each of which writes a file with its pid."""

    def __init__(self, folder):
        self.folder, self.environment = folder, dict(os.environ)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def call(self, *words, **more):
        """Returns: what it printed"""
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS,
                              env=self.environment, stdin=subprocess.DEVNULL, **more)
        if done.returncode:
            raise AssertionError(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}")
        return done.stdout

    def start(self, name, *words):
        with contextlib.suppress(FileNotFoundError):  # of one that was killed
            os.remove(self.path(f"{name}.pid"))
        self.call(*words)
        wait_until(lambda: read_pid(self.path(f"{name}.pid")), f"{name} had started")

    def end(self, name, number=signal.SIGTERM):
        pid = read_pid(self.path(f"{name}.pid"))
        if not pid or not is_running(pid):
            return
        os.kill(pid, number)
        try:
            wait_until(lambda: not is_running(pid), f"{name} ended", 10)
        except AssertionError:
            os.kill(pid, signal.SIGKILL)

    def __enter__(self):
        try:
            self.run()
        except BaseException:
            self.__exit__()
            raise
        return self


class Slurm(Service):
    NODES = "n1", "n2"

    def run(self):
        need("munged", "slurmctld", "slurmd", "sbatch")
        if os.geteuid():
            raise unittest.SkipTest("slurmd needs root.")
        for name in "state", "spool-n1", "spool-n2":
            os.mkdir(self.path(name))
        os.chmod(self.folder, 0o755)  # munged refuses a folder that others may write to
        with open(self.path("key"), "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(self.path("key"), 0o400)
        self.configure()
        self.start("munged", "munged", "--force", f"--key-file={self.path('key')}", f"--socket={self.path('munge')}",
                   f"--seed-file={self.path('seed')}", f"--pid-file={self.path('munged.pid')}", f"--log-file={self.path('munged.log')}")
        self.start_controller()
        for node in self.NODES:
            self.start_node(node)

    def configure(self):
        port, *ports = free_ports(3)
        host = socket.gethostname().split(".")[0]
        nodes = "".join(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={p} CPUs=1 RealMemory=4000\n"
                        for node, p in zip(self.NODES, ports))
        # ReturnToService: of a node that was lost; cred_expire: a repeated task waits as long (below 5 counts as 120)
        write(self.path("slurm.conf"), f"""ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={self.path('munge')},cred_expire=8
SlurmctldPort={port}
StateSaveLocation={self.path('state')}
SlurmdSpoolDir={self.path('spool-%n')}
SlurmctldPidFile={self.path('slurmctld.pid')}
SlurmdPidFile={self.path('%n.pid')}
SlurmctldLogFile={self.path('slurmctld.log')}
SlurmdLogFile={self.path('%n.log')}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
ReturnToService=2
MinJobAge=3600
RequeueExit=137
SlurmdTimeout=10
KillWait=5
SchedulerParameters=batch_sched_delay=0
{nodes}PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        self.environment["SLURM_CONF"] = self.path("slurm.conf")
        self.environment["PATH"] += ":/usr/sbin"

    def start_controller(self):
        self.start("slurmctld", "slurmctld", "-f", self.path("slurm.conf"))

    def start_node(self, node):
        self.start(node, "slurmd", "-f", self.path("slurm.conf"), "-N", node)

    def tasks(self, job):
        """Returns: what Slurm tells of each task of a job: {"JobState": "COMPLETED", ...}"""
        with contextlib.suppress(AssertionError):
            text = self.call("scontrol", "-o", "show", "job", str(job))
            return [dict(word.partition("=")[::2] for word in line.split() if "=" in word) for line in text.splitlines() if line.strip()]
        return []  # the controller restarts

    def wait(self, job, seconds=SECONDS):
        """Returns: tasks(), when all have ended"""
        running = "PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"
        found = []

        def have_ended():
            found[:] = self.tasks(job)
            return bool(found) and not any(task["JobState"] in running for task in found)

        wait_until(have_ended, f"job {job} of Slurm ended", seconds)
        return found

    def __exit__(self, *_error):
        with contextlib.suppress(AssertionError, OSError, subprocess.TimeoutExpired):
            if self.call("squeue", "--noheader").strip():  # of a test that failed
                self.call("scancel", "--user=root", "--signal=KILL", "--full")
                self.call("scancel", "--user=root")
                wait_until(lambda: not self.call("squeue", "--noheader").strip(), "jobs ended", 15)
        for name in (*self.NODES, "slurmctld", "munged"):
            self.end(name)


class Ssh(Service):
    """w1 and w2 are this machine. `ssh` is that of bin, in front of PATH, so that commands call it by this name."""

    def run(self):
        need("sshd", "ssh", "ssh-keygen")
        if os.geteuid():
            raise unittest.SkipTest("sshd needs root.")
        port, = free_ports(1)
        for name in "host", "id":
            self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name))
        os.makedirs("/run/sshd", exist_ok=True)
        write(self.path("sshd_config"), f"""Port {port}
ListenAddress 127.0.0.1
HostKey {self.path('host')}
AuthorizedKeysFile {self.path('id.pub')}
PidFile {self.path('sshd.pid')}
PasswordAuthentication no
UsePAM no
StrictModes no
MaxStartups 100
SetEnv PATH={os.environ['PATH']}
""")
        write(self.path("ssh_config"), f"""Host w1 w2
  HostName 127.0.0.1
  Port {port}
  IdentityFile {self.path('id')}
  IdentitiesOnly yes
  UserKnownHostsFile {self.path('known')}
  StrictHostKeyChecking accept-new
""")
        os.mkdir(self.path("bin"))
        write(self.path("bin", "ssh"), f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.path("ssh_config")} "$@"\n', 0o755)
        self.environment["PATH"] = f"{self.path('bin')}:{self.environment['PATH']}"
        self.start("sshd", shutil.which("sshd", path="/usr/sbin:/sbin"), "-f", self.path("sshd_config"), "-E", self.path("sshd.log"))

    def __exit__(self, *_error):
        self.end("sshd")
