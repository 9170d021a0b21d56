#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The loop of ao-latency in NumPy and in the peers that this interpreter has: pyRTC (pyrtcao of PyPI) and shmpipeline.

Each turns a frame of random bytes into commands: centroids of cells, the product with the control matrix, an integrator.

  numpy          array arithmetic in one thread
  pyrtc-kernels  the compiled loops of pyRTC alone, in one thread
  shmpipeline    its running pipeline, a process for each step: from write () of the frame until its commands are read; one that was lost costs 1 s

With --system it instead runs pyRTC as a whole, a process for each component, and prints its own measure of the time from the frame to
the commands; FOLDER is examples/synthetic_shwfs of its sources: 49 x 49 pixels, 7 x 7 lenslets, 97 commands, 1 kHz.

Usage: ao-latency-peers.py SIZE CELLS PITCH COMMANDS MATRIX.npy, which ao-latency does: a line "PEER N" asks for N times in us, as float64
       ao-latency-peers.py --system FOLDER
"""
import os
import sys
import time

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
import numpy as np

GAIN, N_FRAMES = 0.001, 16


class Numpy:
    name = "numpy"

    def __init__(self, size, cells, pitch, control):
        self.used, self.cells, self.pitch, self.control = cells * pitch, cells, pitch, control
        place = np.arange(pitch, dtype=np.float32) - (pitch - 1) / 2
        self.weights = np.stack([np.ones((pitch, pitch)), np.tile(place, (pitch, 1)), np.tile(place[:, None], (1, pitch))], -1)
        self.weights = self.weights.reshape(-1, 3).astype(np.float32)
        self.commands = np.zeros(len(control), np.float32)

    def frame(self, frame):
        begin = time.perf_counter()
        n, p = self.cells, self.pitch
        light = frame[:self.used, :self.used].astype(np.float32).reshape(n, p, n, p).swapaxes(1, 2).reshape(n * n, p * p)
        sums = light @ self.weights
        slopes = (sums[:, 1:] / sums[:, :1]).T.ravel()
        self.commands -= GAIN * (self.control @ slopes)
        return time.perf_counter() - begin


class PyrtcKernels:
    name = "pyrtc-kernels"

    def __init__(self, size, cells, pitch, control):
        from pyrtc.loop import leaky_integrator_numba
        from pyrtc.slopes_process import compute_slopes_shwfs_optim_numba
        self.centroids, self.integrate = compute_slopes_shwfs_optim_numba, leaky_integrator_numba
        self.pitch, self.control = pitch, np.float32(GAIN) * control
        self.slopes, self.flat = np.zeros((2, 2 * cells, cells), np.float32)
        self.places = np.tile(np.arange(pitch, dtype=np.float32) - np.float32((pitch - 1) / 2), (pitch, 1))
        self.before, self.commands = np.zeros((2, len(control)), np.float32)

    def frame(self, frame):
        begin = time.perf_counter()
        self.centroids(frame, self.slopes, self.flat, np.float32(0), np.float32(self.pitch), self.places, 0, 0, self.pitch)
        self.before, self.commands = self.commands, self.before
        self.integrate(self.slopes.ravel(), self.control, self.before, self.commands, np.float32(0), len(self.commands))
        return time.perf_counter() - begin


class Shmpipeline:
    name = "shmpipeline"

    def __init__(self, size, cells, pitch, control):
        from shmpipeline import PipelineConfig, PipelineManager
        n, shapes = 2 * cells * cells, {"frame": [cells * pitch] * 2, "spots": [cells, cells, 2], "slopes": [2 * cells * cells],
                                        "matrix": list(control.shape), "offset": [len(control)], "errors": [len(control)],
                                        "commands": [len(control)]}
        self.used = cells * pitch
        prefix = f"ao{os.getpid()}"

        def kernel(name, kind, before, after, **more):
            return {"name": name, "kind": "cpu." + kind, "input": prefix + before, "output": prefix + after, **more}
        self.manager = PipelineManager(PipelineConfig.from_dict({
            "shared_memory": [{"name": prefix + name, "shape": shape, "dtype": "float32", "storage": "cpu"} for name, shape in shapes.items()],
            "kernels": [kernel("centroid", "shack_hartmann_centroid", "frame", "spots", parameters={"tile_size": pitch}),
                        kernel("flatten", "flatten", "spots", "slopes"),
                        kernel("product", "affine_transform", "slopes", "errors",
                               auxiliary=[prefix + "matrix", prefix + "offset"]),
                        kernel("integrator", "leaky_integrator", "errors", "commands", parameters={"gain": -GAIN, "leak": 1.0})]}))
        self.manager.build()
        # its slopes are y, x of each cell
        own = control.reshape(-1, 2, n // 2)[:, ::-1].swapaxes(1, 2).reshape(-1, n)
        self.manager.get_stream(prefix + "matrix").write(np.ascontiguousarray(own))
        self.manager.get_stream(prefix + "offset").write(np.zeros(len(control), np.float32))
        self.manager.start()
        self.input, self.output = (self.manager.get_stream(prefix + name) for name in ("frame", "commands"))

    def frame(self, frame):
        frame = np.ascontiguousarray(frame[:self.used, :self.used], dtype=np.float32)  # its centroids take no bytes
        before = self.output.count  # read_new () would miss commands that are there before it is called
        begin = time.perf_counter()
        while self.output.count == before:
            self.input.write(frame)
            try:
                self.output.wait_for_count(after=before, timeout=1)
            except TimeoutError:  # on a busy machine a step misses a frame now and then
                print("  shmpipeline: a frame without commands is sent again after 1 s", file=sys.stderr)
        self.commands = self.output.read()
        return time.perf_counter() - begin

    def close(self):
        self.manager.stop()
        self.manager.shutdown()


def open_peers(*arguments):
    """Returns: by name those that can be imported, each checked against NumPy"""
    frame = frames(arguments[0])[0]
    peers = {}
    for peer in (Numpy, PyrtcKernels, Shmpipeline):
        try:
            made = peers[peer.name] = peer(*arguments)
        except ImportError as error:
            print(f"  no {peer.name}: {error}", file=sys.stderr)
            continue
        made.frame(frame)
        expected = peers["numpy"].commands
        if not np.allclose(made.commands, expected, rtol=0, atol=1e-3 * abs(expected).max()):
            sys.exit(f"{peer.name} has other commands than NumPy: {made.commands[:3]}... instead of {expected[:3]}...")
    return peers


def frames(size):
    return np.random.default_rng(1).integers(0, 256, (N_FRAMES, size, size), np.uint8)


def answer(peers, pictures):
    for line in sys.stdin:
        name, n = line.split()
        times = [peers[name].frame(pictures[i % N_FRAMES]) for i in range(int(n))]
        OUTPUT.write((np.array(times) * 1e6).tobytes())
        OUTPUT.flush()


def run_system(folder):
    from benchmarks.pipeline_latency_bench import run_pipeline_latency
    for notify in False, True:
        row = run_pipeline_latency("hard", notify, samples=4096, frame_rate_hz=1000, include_psf=False, example_dir=folder)["total"]
        print(f"pyRTC, notify {notify}: p50 {row['p50_us']:.0f}, p99 {row['p99_us']:.0f}, max {row['max_us']:.0f} us of {row['count']} frames")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--system"]:
        run_system(sys.argv[2])
        sys.exit()
    OUTPUT = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever peers print
    PEERS = open_peers(*map(int, sys.argv[1:4]), np.load(sys.argv[5]))
    OUTPUT.write((" ".join(PEERS) + "\n").encode())
    OUTPUT.flush()
    try:
        answer(PEERS, frames(int(sys.argv[1])))
    finally:
        for each in PEERS.values():
            if hasattr(each, "close"):
                each.close()
