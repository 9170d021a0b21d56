#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Our kernels beside NumPy, OpenCV and CuPy, in one process and in turns.

Usage: peers.py --kernels bench-kernels.so [--csv FILE] [--quick] [--gpu]
Rows are those of bench.h. A package that is not there costs its rows only.
"""
import argparse
import ctypes
import os
import statistics
import sys
import time

# one thread, as ours; read when the packages are loaded
for name in ("OPENBLAS", "OMP", "MKL"):
    os.environ[name + "_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

WIDTH, HEIGHT = 2580, 1319
SIZE, PITCH = 700, 10
N_CELLS = (SIZE // PITCH) ** 2


class Rows:
    def __init__(self, location, repeats):
        self.file = open(location, "w", encoding="ascii") if location else None
        self.repeats = repeats
        if self.file:
            print("group,case,backend,peer_or_floor,median_us,p99_us,min_us,"
                  "repeats,max_us", file=self.file)

    def case(self, group, case, entries, repeats=None):
        """entries: (backend, who, function of a turn); each once a repeat."""
        repeats = repeats or self.repeats
        samples = {who: [] for _, who, _ in entries}
        for turn in range(-3, repeats):
            for _, who, function in entries:
                start = time.perf_counter_ns()
                function(turn)
                end = time.perf_counter_ns()
                if turn >= 0:
                    samples[who].append((end - start) / 1e3)
        for backend, who, _ in entries:
            self.row(group, case, backend, who, sorted(samples[who]))

    def row(self, group, case, backend, who, s):
        median, p99 = statistics.median(s), s[(99 * len(s) + 99) // 100 - 1]
        print(f"{group:11} {case:30} {backend:5} {who:16} median {median:10.2f} us"
              f"   p99 {p99:10.2f}   min {s[0]:10.2f}")
        if self.file:
            print(f"{group},{case},{backend},{who},{median:.3f},{p99:.3f},"
                  f"{s[0]:.3f},{len(s)},{s[-1]:.3f}", file=self.file, flush=True)


def check(what, same):
    if not same:
        sys.exit(f"peers: {what} computes something else.")


def load_kernels(location):
    k = ctypes.CDLL(location)
    pointer, u32 = ctypes.c_void_p, ctypes.c_uint32
    k.bench_lapsharpen_new.argtypes = [u32, u32]
    k.bench_lapsharpen_new.restype = pointer
    k.bench_lapsharpen.argtypes = [pointer, pointer, pointer, u32, u32]
    k.bench_shcentroid_new.argtypes = [u32, u32, ctypes.c_bool]
    k.bench_shcentroid_new.restype = pointer
    k.bench_shcentroid.argtypes = [pointer, pointer, pointer, u32, u32, pointer,
                                   ctypes.c_bool]
    return k


# --- lapsharpen --------------------------------------------------------------

def numpy_sharpen(image):
    p = np.pad(image, ((1, 1), (1, 1), (0, 0)), "reflect").astype(np.int16)
    out = 5 * p[1:-1, 1:-1] - p[:-2, 1:-1] - p[2:, 1:-1]
    out -= p[1:-1, :-2]
    out -= p[1:-1, 2:]
    return np.clip(out, 0, 255, out=out).astype(np.uint8)


def lapsharpen(rows, kernels):
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
    ours, theirs = np.empty_like(image), np.empty_like(image)
    state = kernels.bench_lapsharpen_new(WIDTH, HEIGHT)

    def run_ours(_):
        status = kernels.bench_lapsharpen(
            state, image.ctypes.data, ours.ctypes.data, WIDTH, HEIGHT)
        check("lapsharpen", status == 0)

    def run_numpy(_):
        theirs[:] = numpy_sharpen(image)

    run_ours(0)
    check("NumPy", np.array_equal(ours, numpy_sharpen(image)))
    entries = [("cpu", "ours", run_ours),
               ("cpu", "memcpy", lambda _: np.copyto(theirs, image))]
    try:
        import cv2
    except ImportError as error:
        print(f"  no rows for OpenCV: {error}")
    else:
        cv2.setNumThreads(1)
        matrix = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)

        def run_opencv(_):
            cv2.filter2D(image, -1, matrix, dst=theirs,
                         borderType=cv2.BORDER_REFLECT_101)

        run_opencv(0)
        check("OpenCV", np.array_equal(ours, theirs))
        entries.append(("cpu", "opencv", run_opencv))
    rows.case("peers", "lapsharpen-2580x1319-rgba", entries)
    rows.case("peers", "lapsharpen-2580x1319-numpy",
              [entries[0], ("cpu", "numpy", run_numpy)], 30)


# --- shcentroid --------------------------------------------------------------

def make_array_centroids(xp):
    """The moments as one writes them with arrays; xp: numpy or cupy."""
    n = SIZE // PITCH
    u = xp.arange(PITCH, dtype=xp.uint32)
    corners = xp.arange(n, dtype=xp.float64) * PITCH

    def centroids(frame):
        cells = frame.reshape(n, PITCH, n, PITCH)
        over_rows = cells.sum(axis=1, dtype=xp.uint32)
        over_columns = cells.sum(axis=3, dtype=xp.uint32)
        m00 = over_rows.sum(axis=2)
        xy = xp.empty((n, n, 2), xp.float32)
        xy[..., 0] = (over_rows * u).sum(axis=2) / m00 + corners
        xy[..., 1] = ((over_columns * u[:, None]).sum(axis=1) / m00 +
                      corners[:, None])
        return xy
    return centroids


def shcentroid(rows, kernels):
    rng = np.random.default_rng(2)
    frames = rng.integers(0, 256, (2, SIZE, SIZE), dtype=np.uint8)
    xy = np.empty((N_CELLS, 2), np.float32)
    state = kernels.bench_shcentroid_new(SIZE, PITCH, False)
    numpy_centroids = make_array_centroids(np)

    def run_ours(turn):
        status = kernels.bench_shcentroid(
            state, frames[turn % 2].ctypes.data, xy.ctypes.data, SIZE, PITCH,
            None, False)
        check("shcentroid", status == 0)

    run_ours(0)
    check("NumPy", np.allclose(
        xy, numpy_centroids(frames[0]).reshape(-1, 2), rtol=0, atol=1e-4))
    rows.case("peers", "shcentroid-700-d10-python", [
        ("cpu", "ours", run_ours),
        ("cpu", "numpy", lambda turn: numpy_centroids(frames[turn % 2]))])


def pinned(cupy, shape, dtype):
    memory = cupy.cuda.alloc_pinned_memory(
        int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype, int(np.prod(shape))).reshape(shape)


def cupy_centroids(rows, kernels):
    """From page-locked host memory to page-locked host memory."""
    import cupy
    n_frames = 256  # 125 MB
    frames = pinned(cupy, (n_frames, SIZE, SIZE), np.uint8)
    frames[:] = np.random.default_rng(3).integers(
        0, 256, frames.shape, dtype=np.uint8)
    xy = pinned(cupy, (N_CELLS, 2), np.float32)
    theirs = pinned(cupy, (N_CELLS, 2), np.float32)
    state = kernels.bench_shcentroid_new(SIZE, PITCH, True)
    check("the CUDA backend", state)
    on_device = cupy.empty((SIZE, SIZE), cupy.uint8)
    centroids = make_array_centroids(cupy)
    stream = cupy.cuda.Stream(non_blocking=True)

    def run_ours(turn):
        status = kernels.bench_shcentroid(
            state, frames[turn % n_frames].ctypes.data, xy.ctypes.data, SIZE,
            PITCH, stream.ptr, True)
        check("shcentroid", status == 0)
        stream.synchronize()

    def run_cupy(turn):
        with stream:
            on_device.set(frames[turn % n_frames], stream=stream)
            centroids(on_device).reshape(-1, 2).get(
                stream=stream, out=theirs)
        stream.synchronize()

    run_ours(0)
    run_cupy(0)
    check("CuPy", np.allclose(xy, theirs, rtol=0, atol=1e-4))
    rows.case("peers", "shcentroid-700-d10-cupy",
              [("cuda", "ours", run_ours), ("cuda", "cupy", run_cupy)], 1000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--csv")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    kernels = load_kernels(os.path.abspath(options.kernels))
    rows = Rows(options.csv, 30 if options.quick else 200)
    if not options.gpu:
        lapsharpen(rows, kernels)
        shcentroid(rows, kernels)
        return
    try:
        import cupy  # noqa: F401
    except ImportError as error:
        print(f"  no rows for CuPy: {error}")
        return
    cupy_centroids(rows, kernels)


main()
