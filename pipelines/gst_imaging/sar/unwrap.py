# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files of snaphu, and its run where the user has installed it. It is free for non-commercial use only, so no part of
gst-imaging needs it."""
import importlib.util
import os
import shutil
import subprocess

from .. import library
from ..command import NO_RESULT, WRONG_USE, Failure
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


def run(made, program, summary, known):
    """Returns: the unwrapped phase, NaN where there is none, and the share of the cells that are in a component of snaphu"""
    np = library.numpy()
    done = subprocess.run([program, "-f", "snaphu.conf"], cwd=made.path(""), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    path = made.path("unwrapped.img")
    if done.returncode or not os.path.exists(path):
        last = ([line for line in done.stdout.splitlines() if line.strip()] or ["it printed nothing"])[-1]
        raise Failure(NO_RESULT, f"snaphu failed with exit status {done.returncode}: {last.strip()}")
    phase = np.fromfile(path, np.float32).reshape(summary["height"], summary["width"])
    phase[~known] = np.nan
    phase.tofile(path)
    write_vrt(summary["width"], summary["height"], "f32", "unwrapped.img", path + ".vrt")
    connected = known
    if os.path.exists(made.path("components.img")):
        connected = known & (np.fromfile(made.path("components.img"), np.uint32).reshape(known.shape) > 0)
        write_vrt(summary["width"], summary["height"], "u32", "components.img", made.path("components.img.vrt"))
    return phase, float(connected.mean())
