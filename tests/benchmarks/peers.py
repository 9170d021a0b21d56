#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Our kernels beside NumPy, OpenCV and CuPy, in one process and in turns.

Usage: peers.py --kernels bench-kernels.so [--before bench-kernels.so] [--csv FILE]
           [--quick] [--gpu] [--only lapsharpen|shcentroid|photostereo]
Rows are those of bench.h. A package that is not there costs its rows only.
--before: the module of an earlier build, for lapsharpen beside itself
"""
import argparse
import ctypes
import os
import random
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

    def case(self, group, case, entries, repeats=None, clock=time.perf_counter_ns):
        """entries: (backend, who, function of a turn); each once a repeat, in an
        order of its own: who follows a large one has the frame less near."""
        repeats = repeats or self.repeats
        order = random.Random(1)
        samples = {who: [] for _, who, _ in entries}
        for turn in range(-3, repeats):
            for _, who, function in order.sample(entries, len(entries)):
                start = clock()
                function(turn)
                end = clock()
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
    k.bench_lapsharpen_new.argtypes = [u32, u32, ctypes.POINTER(Sharpening)]
    k.bench_lapsharpen_new.restype = pointer
    k.bench_lapsharpen.argtypes = [pointer, pointer, pointer] + 4 * [u32]
    k.bench_photostereo_new.argtypes = [
        u32, u32, u32, pointer, u32, ctypes.c_bool, ctypes.c_bool]
    k.bench_photostereo_new.restype = pointer
    k.bench_photostereo_add.argtypes = [pointer, pointer, u32, u32, u32]
    k.bench_photostereo_solve.argtypes = [pointer, pointer, u32, u32]
    k.bench_photostereo_reset.argtypes = [pointer]
    k.bench_photostereo_free.argtypes = [pointer]
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


def laplacian(amount, neighbours):
    """The kernel that adds amount times the negative Laplacian."""
    corner = amount if neighbours == 8 else 0
    return np.array([[-corner, -amount, -corner],
                     [-amount, 1 + amount * neighbours, -amount],
                     [-corner, -amount, -corner]], np.float32)


class Sharpening(ctypes.Structure):
    """What both sides are to do: BenchSharpening of bench-kernels.c."""
    _fields_ = [(name, ctypes.c_uint32) for name in ("channels", "depth")] + [
        ("amount", ctypes.c_double), ("neighbours", ctypes.c_uint32),
        ("kernel_size", ctypes.c_uint32), ("radius", ctypes.c_double),
        ("threshold", ctypes.c_double), ("local", ctypes.c_uint32),
        ("alpha", ctypes.c_uint32), ("border", ctypes.c_uint32),
        ("kernel", ctypes.c_float * 49)]

    def set_kernel(self, size, hundredths):
        """Weights of sum 1: most samples are not the largest or 0. Hundredths make
        a half of one sum in a hundred, the others (k / 2205 of 3x3) of none, with
        some sums near one."""
        n = size * size
        weights = (np.arange(n) / 49 - 0.4) / n
        if hundredths:
            weights = np.round(weights, 2)
        weights[n // 2] += 1 - weights.sum()
        self.kernel_size = size
        self.kernel[:n] = weights

    def matrix(self):
        if self.kernel_size:
            n = self.kernel_size
            return np.array(self.kernel[:n * n], np.float32).reshape(n, n)
        return laplacian(self.amount, self.neighbours)


COPY, FILTER, WEIGHTED = range(3)  # ImkLapsharpenAlpha
REPLICATE, ZERO, CONSTANT, REFLECT101, REFLECT = range(5)  # ImkLapsharpenBorder

FORMATS = {"rgba": (4, 8), "gray8": (1, 8), "gray16": (1, 16), "rgba64": (4, 16)}

# name: settings, counts between ours and OpenCV's, which rounds halves to even
# and makes its Gaussian otherwise; None: OpenCV has nothing like it
SETTINGS = {
    "": ({}, 0),
    "amount-0.3": ({"amount": 0.3}, 1),
    "amount-0.5": ({"amount": 0.5}, 1),
    "amount-1.5": ({"amount": 1.5}, 1),
    "amount-4": ({"amount": 4}, 0),
    "neighbours-8": ({"neighbours": 8}, 0),
    "border-replicate": ({"border": REPLICATE}, 0),
    "border-zero": ({"border": ZERO}, 0),
    "border-reflect": ({"border": REFLECT}, 0),
    "threshold-20": ({"threshold": 20}, None),
    "local": ({"local": 1}, None),
    "alpha-copy": ({"alpha": COPY}, None),
    "alpha-weighted": ({"alpha": WEIGHTED}, None),
    "kernel-3x3": ({"size": 3}, 1),
    "kernel-hundredths-3x3": ({"size": 3, "hundredths": True}, 1),
    "kernel-5x5": ({"size": 5}, 1),
    "kernel-7x7": ({"size": 7}, 1),
    "unsharp-1": ({"radius": 1}, 3),
    "unsharp-5": ({"radius": 5}, 3),
    "unsharp-20": ({"radius": 20}, 3),
}


def sharpen_cases():
    """(name, settings, counts): of RGBA all, of the others what costs more."""
    for name, (settings, counts) in SETTINGS.items():
        for form in FORMATS:
            of_alpha, of_border = "alpha" in name, "border" in name
            if form != "rgba" and (of_alpha or of_border):
                continue
            if form == "rgba64" and name not in ("", "amount-0.3", "amount-1.5"):
                continue
            if form == "gray16" and name.startswith("unsharp"):
                continue  # OpenCV's Gaussian of 16 bits is another one
            yield f"{form}-{name}".rstrip("-"), FORMATS[form], settings, counts


def make_sharpening(channels, depth, settings):
    given = {"amount": 1, "neighbours": 4, "alpha": FILTER, "border": REFLECT101,
             **settings}
    size, hundredths = given.pop("size", 0), given.pop("hundredths", False)
    s = Sharpening(channels=channels, depth=depth, **given)
    if size:
        s.set_kernel(size, hundredths)
    return s


def sharpen_by_opencv(cv2, image, out, s):
    """Returns: a function of a turn, with buffers that are made once."""
    blurred, matrix = np.empty_like(image), s.matrix()
    border = {REPLICATE: cv2.BORDER_REPLICATE, ZERO: cv2.BORDER_CONSTANT,
              REFLECT101: cv2.BORDER_REFLECT_101,
              REFLECT: cv2.BORDER_REFLECT}[s.border]

    def unsharp(_):
        cv2.GaussianBlur(image, (0, 0), s.radius, dst=blurred)
        cv2.addWeighted(image, 1 + s.amount, blurred, -s.amount, 0, dst=out)

    def filter_frame(_):
        cv2.filter2D(image, -1, matrix, dst=out, borderType=border)

    return unsharp if s.radius else filter_frame


def run_sharpener(kernels, s, image, out):
    """Returns: a function of a turn."""
    state = kernels.bench_lapsharpen_new(WIDTH, HEIGHT, ctypes.byref(s))
    check("a sharpener", state)

    def run(_):
        status = kernels.bench_lapsharpen(
            state, image.ctypes.data, out.ctypes.data, WIDTH, HEIGHT, s.channels,
            s.depth)
        check("lapsharpen", status == 0)

    run(0)
    return run


def import_opencv():
    try:
        import cv2
    except ImportError as error:
        print(f"  no rows for OpenCV: {error}")
        return None
    cv2.setNumThreads(1)
    return cv2


def sharpen_case(rows, kernels, before, cv2, case):
    name, (channels, depth), settings, counts = case
    rng = np.random.default_rng(1)
    image = rng.integers(0, 1 << depth, (HEIGHT, WIDTH, channels),
                         dtype=np.uint16 if depth > 8 else np.uint8)
    out = np.empty_like(image)  # of all: none has its frame nearer
    s = make_sharpening(channels, depth, settings)
    entries = [("cpu", "ours", run_sharpener(kernels, s, image, out)),
               ("cpu", "memcpy", lambda _: np.copyto(out, image))]
    ours = out.copy()
    if before:
        entries.append(("cpu", "before", run_sharpener(before, s, image, out)))
        check(f"the build before ({name})", np.array_equal(ours, out))
    if cv2 and counts is not None:
        run = sharpen_by_opencv(cv2, image, out, s)
        run(0)
        away = np.abs(ours.astype(np.int32) - out.astype(np.int32)).max()
        check(f"OpenCV ({name}, {away} counts away)", away <= counts)
        entries.append(("cpu", "opencv", run))
    # all have one thread, and the machine may have other work
    clock = time.thread_time_ns
    rows.case("peers", f"lapsharpen-2580x1319-{name}", entries, clock=clock)
    if name == "rgba":
        def run_numpy(_):
            out[:] = numpy_sharpen(image)

        check("NumPy", np.array_equal(ours, numpy_sharpen(image)))
        rows.case("peers", "lapsharpen-2580x1319-numpy",
                  [entries[0], ("cpu", "numpy", run_numpy)], 30, clock)


def lapsharpen(rows, kernels, before):
    cv2 = import_opencv()
    for case in sharpen_cases():
        sharpen_case(rows, kernels, before, cv2, case)


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


# --- photostereo -------------------------------------------------------------

LIGHTS, PS_WIDTH, PS_HEIGHT, PS_ROWS = 260, 2048, 1500, 64


def dome(n=LIGHTS):
    i = np.arange(n)
    z = (i + 0.5) / n * 0.95 + 0.05
    r = np.sqrt(1 - z * z)
    return 600 * np.stack([r * np.cos(2.399963 * i), r * np.sin(2.399963 * i), z], 1)


def surface_pictures(lights, height):
    """A wavy surface with highlights, shadows and noise, picture by picture."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:height, :PS_WIDTH].astype(np.float32)
    n = np.stack([0.6 * np.sin(x * 0.02), 0.6 * np.cos(y * 0.017), np.ones_like(x)])
    n /= np.linalg.norm(n, axis=0)
    noise = rng.integers(0, 16, (height, PS_WIDTH), dtype=np.uint8)
    for light in (lights / 600).astype(np.float32):
        half = light + np.float32([0, 0, 1])
        half /= np.linalg.norm(half)
        shine = np.einsum("c,chw->hw", half, n) ** 32
        diffuse = np.maximum(np.einsum("c,chw->hw", light, n), 0)
        frame = 120 * diffuse + 100 * shine * (diffuse > 0) + noise
        noise = np.roll(noise, 12347)
        yield np.minimum(frame, 255).astype(np.uint8)


def numpy_normals(frames, lights):
    """Least squares with an inverse square law, as one writes it with arrays."""
    height = frames.shape[1]
    out = np.empty((height, PS_WIDTH, 3), np.float32)
    x = ((np.arange(PS_WIDTH) - (PS_WIDTH - 1) / 2) * 100 / PS_WIDTH).astype(np.float32)
    for row in range(height):
        y = ((height - 1) / 2 - row) * 100 / PS_WIDTH
        v = np.empty((PS_WIDTH, LIGHTS, 3), np.float32)
        v[..., 0] = lights[:, 0] - x[:, None]
        v[..., 1] = lights[:, 1] - y
        v[..., 2] = lights[:, 2]
        v *= (600 ** 2 / np.linalg.norm(v, axis=2) ** 3)[..., None]
        grey = frames[:, row].T.astype(np.float32)[..., None] / 255
        turned = v.transpose(0, 2, 1)
        out[row] = np.linalg.solve(turned @ v, turned @ grey)[..., 0]
    return out / np.linalg.norm(out, axis=2, keepdims=True)


def numpy_product(frames, lights):
    """Least squares under distant lights: one matrix for all pixels."""
    matrix = np.linalg.pinv(lights / 600).astype(np.float32) / 255
    flat = frames.reshape(len(frames), -1)
    out = np.empty((flat.shape[1], 3), np.float32)
    for i in range(0, len(out), 65536):  # 1.2 times faster than all at once
        n = matrix @ flat[:, i:i + 65536].astype(np.float32)
        out[i:i + 65536] = (n / np.linalg.norm(n, axis=0)).T
    return out.reshape(*frames.shape[1:], 3)


def photostereo(rows, kernels):
    lights = dome()

    def new(height, threads, robust, lights=lights, near=True):
        state = kernels.bench_photostereo_new(
            PS_WIDTH, height, len(lights), lights.ctypes.data, threads, robust, near)
        check("photostereo", bool(state))
        return state

    def add(state, frame, light):
        check("photostereo", 0 == kernels.bench_photostereo_add(
            state, frame.ctypes.data, PS_WIDTH, frame.shape[0], light))

    def solve(state, normals):
        check("photostereo", 0 == kernels.bench_photostereo_solve(
            state, normals.ctypes.data, PS_WIDTH, normals.shape[0]))

    # least squares of a strip of the picture, one thread
    frames = np.stack([*surface_pictures(lights, PS_ROWS)])
    ours = np.empty((PS_ROWS, PS_WIDTH, 3), np.float32)
    state = new(PS_ROWS, 1, False)
    for i, frame in enumerate(frames):
        add(state, frame, i)
    solve(state, ours)
    check("NumPy", np.allclose(ours, numpy_normals(frames, lights), rtol=0, atol=1e-4))
    rows.case("peers", f"photostereo-2048x{PS_ROWS}x260-numpy", [
        ("cpu", "ours", lambda _: solve(state, ours)),
        ("cpu", "numpy", lambda _: numpy_normals(frames, lights))], 3)
    kernels.bench_photostereo_free(state)

    # a set under few distant lights, one thread, from pictures in memory
    few = dome(60)
    frames = np.stack([*surface_pictures(few, PS_HEIGHT)])
    ours = np.empty((PS_HEIGHT, PS_WIDTH, 3), np.float32)
    states = {robust: new(PS_HEIGHT, 1, robust, few, False) for robust in (False, True)}

    def run_set(robust):
        kernels.bench_photostereo_reset(states[robust])
        for i, frame in enumerate(frames):
            add(states[robust], frame, i)
        solve(states[robust], ours)

    run_set(False)
    check("NumPy", np.allclose(ours, numpy_product(frames, few), rtol=0, atol=1e-4))
    rows.case("peers", "photostereo-2048x1500x60-directional", [
        ("cpu", "ours", lambda _: run_set(False)),
        ("cpu", "ours-robust", lambda _: run_set(True)),
        ("cpu", "numpy", lambda _: numpy_product(frames, few))], 5)
    for state in states.values():
        kernels.bench_photostereo_free(state)

    # all of it, robust, all processors: the set as it comes, and its end
    state = new(PS_HEIGHT, 0, True)
    normals = np.empty((PS_HEIGHT, PS_WIDTH, 3), np.float32)
    taken, after = [], []
    for _ in range(3):
        kernels.bench_photostereo_reset(state)
        spent = 0
        for i, frame in enumerate(surface_pictures(lights, PS_HEIGHT)):
            start = time.perf_counter_ns()
            add(state, frame, i)
            spent += time.perf_counter_ns() - start
        start = time.perf_counter_ns()
        solve(state, normals)
        after.append((time.perf_counter_ns() - start) / 1e3)
        taken.append(spent / 1e3 + after[-1])
    rows.row("peers", "photostereo-2048x1500x260-all", "cpu", "ours", sorted(taken))
    rows.row("peers", "photostereo-2048x1500x260-after", "cpu", "ours", sorted(after))
    kernels.bench_photostereo_free(state)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--before")
    parser.add_argument("--only")
    parser.add_argument("--csv")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    kernels = load_kernels(os.path.abspath(options.kernels))
    rows = Rows(options.csv, 30 if options.quick else 200)
    if not options.gpu:
        if options.only in (None, "lapsharpen"):
            before = options.before and load_kernels(options.before)
            lapsharpen(rows, kernels, before)
        if options.only in (None, "shcentroid"):
            shcentroid(rows, kernels)
        if options.only in (None, "photostereo"):
            photostereo(rows, kernels)
        return
    try:
        import cupy  # noqa: F401
    except ImportError as error:
        print(f"  no rows for CuPy: {error}")
        return
    cupy_centroids(rows, kernels)


main()
