# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files of snaphu, and its run where the user has installed it. It is free for non-commercial use only, so no part of
gst-imaging needs it."""
import importlib.util
import os
import shutil
import signal
import subprocess

from .. import library
from ..command import NO_RESULT, NOT_WRITTEN, WRONG_USE, Failure
from .prm import write_vrt
from .told import OVERSAMPLING


def write_files(made, summary, looks, window, mask):
    """snaphu.conf and its mask of bytes, 1 where there is data. mask: of cells, or None"""
    np = library.numpy()
    shape = summary["height"], summary["width"]
    known = np.fromfile(made.path("amplitude.img"), np.float32).reshape(shape) > 0
    if mask is not None:
        known &= mask
    known.astype(np.uint8).tofile(made.path("mask.byte"))
    n_looks = max(1, looks[0] * looks[1] * window[0] * window[1] / OVERSAMPLING)
    lines = {"INFILE": "interferogram.cf32", "INFILEFORMAT": "COMPLEX_DATA", "LINELENGTH": summary["width"], "CORRFILE": "coherence.img",
             "CORRFILEFORMAT": "FLOAT_DATA", "BYTEMASKFILE": "mask.byte", "OUTFILE": "unwrapped.img", "OUTFILEFORMAT": "FLOAT_DATA",
             "CONNCOMPFILE": "components.img", "CONNCOMPOUTTYPE": "UINT", "STATCOSTMODE": "SMOOTH", "INITMETHOD": "MCF",
             "NCORRLOOKS": f"{n_looks:.1f}"}
    with open(made.path("snaphu.conf"), "w", encoding="ascii") as file:
        file.write("# snaphu -f snaphu.conf, in this folder\n")
        file.writelines(f"{key:<16} {value}\n" for key, value in lines.items())
    return known


def find_snaphu():
    """Returns: the program, of the PATH or of the package of PyPI"""
    found = shutil.which("snaphu")
    spec = None if found else importlib.util.find_spec("snaphu")
    if spec and spec.submodule_search_locations:
        found = shutil.which("snaphu", path=os.pathsep.join(spec.submodule_search_locations))
    if not found:
        raise Failure(WRONG_USE, "--unwrap needs snaphu, which is not installed: pip install snaphu (free for non-commercial use"
                                 " only). Without --unwrap, snaphu.conf is written and can be run elsewhere.")
    return found


def check_run(done, paths, size):
    """done: a run of snaphu; paths: of what it writes; size: of each in bytes. Fails with what snaphu said"""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip() not in ("", "Abort")]
    said = f' It printed: "{lines[-1]}".' if lines else " It printed nothing."
    if done.returncode < 0:
        raise Failure(NO_RESULT, f"snaphu was ended by signal {-done.returncode} ({signal.strsignal(-done.returncode)}).{said} Is there enough memory?")
    if done.returncode:
        raise Failure(NO_RESULT, f"snaphu failed with exit status {done.returncode}.{said}")
    for path in paths:
        there = os.path.getsize(path) if os.path.exists(path) else 0
        if there != size:
            raise Failure(NOT_WRITTEN, f"snaphu wrote {there} of the {size} bytes of {os.path.basename(path)}.{said} Is there room for it?")


def run(made, program, summary, known):
    """Returns: the unwrapped phase, NaN where there is none, and the share of the cells that are in a component of snaphu"""
    np = library.numpy()
    done = subprocess.run([program, "-f", "snaphu.conf"], cwd=made.path(""), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    path, components = made.path("unwrapped.img"), made.path("components.img")
    check_run(done, [path, *filter(os.path.exists, [components])], 4 * known.size)
    phase = np.fromfile(path, np.float32).reshape(summary["height"], summary["width"])
    phase[~known] = np.nan
    phase.tofile(path)
    write_vrt(summary["width"], summary["height"], "f32", "unwrapped.img", path + ".vrt")
    connected = known
    if os.path.exists(components):
        connected = known & (np.fromfile(components, np.uint32).reshape(known.shape) > 0)
        write_vrt(summary["width"], summary["height"], "u32", "components.img", components + ".vrt")
    return phase, float(connected.mean())
