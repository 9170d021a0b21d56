#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes docs/explanation/ao-loop.png from what tests/python/ao-loop-40.py measured.

    AO_LOOP_FOLDER=numbers meson test -C build python-ao-loop-40
    tests/data/ao-loop.py numbers docs/explanation
"""
import os
import sys

import matplotlib
import numpy as np

matplotlib.use("agg")
from matplotlib import pyplot as plt


def main(numbers, folder):
    opened, rejection, blackout = (np.load(os.path.join(numbers, name + ".npy")) for name in ("residual", "rejection", "blackout"))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    time = np.arange(opened.shape[1]) / 0.5
    axes[0].semilogy(time, opened[1], "--", label="without the mirror")
    axes[0].semilogy(time, opened[0], label="with it")
    axes[0].set(title="The loop closes", xlabel="time (ms)", ylabel="rms of the phase (rad)")
    axes[1].loglog(rejection[0], rejection[2], "--", label="theory")
    axes[1].loglog(rejection[0], rejection[1], label="measured")
    axes[1].set(title="Rejection at a gain of 0.5", xlabel="frequency (Hz)", ylabel="residual / turbulence")
    axes[2].semilogy(np.arange(len(blackout)) / 0.5, blackout)
    axes[2].axvspan(300, 500, alpha=0.2)
    axes[2].set(title="No light for 100 frames", xlabel="time (ms)", ylabel="rms of the phase (rad)")
    for axis in axes[:2]:
        axis.legend(frameon=False)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(os.path.join(folder, "ao-loop.png"), dpi=90)


if __name__ == "__main__":
    main(*sys.argv[1:])
