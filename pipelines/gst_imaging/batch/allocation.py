# SPDX-License-Identifier: LGPL-2.1-or-later
"""What of this machine is ours: processors, memory and GPUs as Slurm, a container or taskset allot them."""
import glob
import os

from ..command import WRONG_USE, Failure

CGROUPS = "/sys/fs/cgroup"


def number(text):
    """Returns: None for what is none, as "max" """
    return int(text) if text and text.strip().isdigit() else None


def first_line(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def folders(controller, root=CGROUPS, membership="/proc/self/cgroup"):
    """Generates the folders of our cgroup and of those it is in, of version 1 and 2"""
    try:
        with open(membership, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for _number, controllers, path in (line for line in lines if len(line) == 3):
        if controllers and controller not in controllers.split(","):
            continue
        top = os.path.join(root, controllers) if controllers else root
        path = path.strip("/")
        while True:
            yield os.path.join(top, path)
            if not path:
                break
            path = os.path.dirname(path)


def quotas(**places):
    """Generates the processors that cgroups allow"""
    for folder in folders("cpu", **places):
        quota, _blank, period = first_line(os.path.join(folder, "cpu.max")).partition(" ")
        if not quota:
            quota, period = (first_line(os.path.join(folder, f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
        if number(quota) and number(period):
            yield max(1, number(quota) // number(period))


def slurm_processors():
    """Returns: None outside of Slurm. Without --cpus-per-task it tells only how many processors of this node the job has"""
    return number(os.environ.get("SLURM_CPUS_PER_TASK")) or number(os.environ.get("SLURM_CPUS_ON_NODE"))


def processors(**places):
    """Returns: how many threads may compute"""
    found = [len(os.sched_getaffinity(0)), slurm_processors(), number(os.environ.get("IMK_THREADS")), *quotas(**places)]
    return min(n for n in found if n)


def memory(**places):
    """Returns: how many bytes may be used"""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), number(os.environ.get("IMK_MEMORY"))]
    per_node, per_cpu = (number(os.environ.get(f"SLURM_MEM_PER_{unit}")) for unit in ("NODE", "CPU"))
    if per_node or per_cpu:
        found.append((per_node or per_cpu * (slurm_processors() or 1)) << 20)
    for folder in folders("memory", **places):
        found += [number(first_line(os.path.join(folder, name))) for name in ("memory.max", "memory.limit_in_bytes")]
    return min(n for n in found if n)


def gpus(nodes="/dev/nvidia[0-9]*"):
    """Returns: the GPUs that may be used, by the names that CUDA takes: those of the allocation, else all of this machine"""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [device for device in named.split(",") if device]
    return [str(i) for i in range(len(glob.glob(nodes)))]


def share(worker, n_workers):
    """Returns: the environment of one of several workers"""
    threads = str(max(1, processors() // n_workers))
    told = {"IMK_THREADS": threads, "IMK_MEMORY": str(memory() // n_workers)}
    for name in "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS":
        told[name] = os.environ.get(name, threads)
    devices = gpus()
    if len(devices) > 1 and n_workers > 1:
        told["CUDA_VISIBLE_DEVICES"] = ",".join(devices[worker % len(devices)::n_workers])
    return told


def check_workers(n_workers):
    if not 1 <= n_workers <= 1024:
        raise Failure(WRONG_USE, f"--workers is {n_workers}, and goes from 1 to 1024.")
    return n_workers
