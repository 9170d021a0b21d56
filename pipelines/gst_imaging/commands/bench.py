# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how fast the elements are on this machine, beside memcpy.

Each element gets generated frames of one size, as a pipeline would, and says itself how long a frame was inside (its
property stats). memcpy is a copy of as many bytes as the frame has, on one thread. The first frames, for which kernels are
made, are left out. Run it on an idle machine. docs/explanation/benchmarks.md has more: every option, other sizes, the peers.
"""
import os
import tempfile
import time

from .. import installed, library, play
from ..command import NO_RESULT, WRONG_USE, Failure
from ..frames.source import at_end
from ..progress import Progress
from ..report import Report
from ..sar.one_file import is_picture, writing

EXAMPLES = [
    ("", "all elements, in about ten seconds"),
    ("lapsharpen shcentroid --backend cuda", "two of them, on the GPU"),
    ("--report bench.html", "with a page, to keep or to send"),
    ("--json", "for a program"),
]

WARM_UP = 3  # runs of the copy
MEGA = 1e6


def add_arguments(parser):
    parser.add_argument("elements", nargs="*", metavar="ELEMENT", help=f"of {', '.join(CASES)}; without one all")
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto", help="where (default: %(default)s)")
    parser.add_argument("--frames", type=int, metavar="N", help="of each element, in the place of as many as take about a second")
    parser.add_argument("--report", metavar="FILE.html", help="also writes a page: the table, the machine, and the versions")


def spots(np):
    y, x = np.mgrid[:700, :700]
    return (20 + 200 * np.exp(-(((x % 10) - 4.5) ** 2 + ((y % 10) - 4.5) ** 2) / 4)).astype(np.uint8)


def spectra(np):
    line, sample = np.mgrid[:240, :832]
    noise = np.random.default_rng(1).normal(0, 30, line.shape)
    return (20000 + 4000 * np.cos(sample * (0.2 + line / 1000)) + noise).astype(np.uint16)


def normals(np, size):
    """Of a hemisphere, float32"""
    y, x = (np.mgrid[:size, :size] + 0.5) * (2 / size) - 1
    z = np.sqrt(np.maximum(1 - x ** 2 - y ** 2, 0))
    return np.where((z > 0)[..., None], np.dstack([x, -y, z]), 0).astype(np.float32)


def lights(np, n):
    angle = np.arange(n) * (2 * np.pi / n)
    return np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.full(n, np.sqrt(0.75))], 1)


def photographs(np):
    """24 pictures of a matte sphere"""
    return (20 + 200 * np.maximum(np.einsum("yxc,lc->lyx", normals(np, 512), lights(np, 24)), 0)).astype(np.uint8)


def speckle(np):
    rng = np.random.default_rng(1)
    return rng.normal(0, 300, (1024, 1024, 2)).astype("<i2")


def from_array(values, *words):
    """values: a function of NumPy that returns a frame. Returns: a function that writes the file and returns a pipeline"""
    def describe(np, folder, n):
        path, frame = os.path.join(folder, "frames.npy"), values(np)
        np.save(path, frame)
        frames = frame if frame.ndim == 3 and frame.shape[-1] > 4 else frame[None]
        axes = "axes=nyx" if frame.ndim == 3 and frame.shape[-1] > 4 else "axes=yxc" if frame.ndim == 3 else "axes=yx"
        np.savetxt(os.path.join(folder, "lights.txt"), lights(np, 24))
        return ["picturesrc", "location=" + path, axes, "loop=true", f"num-buffers={n}", "!",
                *(word.replace("FOLDER", folder) for word in words)], frames[0].nbytes
    return describe


def from_slc(*words, pair=True):
    def describe(np, folder, _n):
        path, values = os.path.join(folder, "image.slc"), speckle(np)
        values.tofile(path)
        source = ["slcsrc", "location=" + path, "width=1024", "format=ci16", "lines-per-buffer=64", "!"]
        described = [*source, "queue", "!", "e.reference", *source, "queue", "!", "e.secondary"] if pair else source
        return [*described, *words], 64 * 1024 * 4
    return describe


# what is measured, frames of about a second, pipeline
CASES = {
    "lapsharpen": ("1920x1080 RGBA", 200, from_array(
        lambda np: np.random.default_rng(1).integers(0, 256, (1080, 1920, 4), np.uint8), "lapsharpen", "name=e", "!", "fakesink")),
    "shcentroid": ("700x700 u8, 4900 cells", 1000, from_array(
        spots, "shcentroid", "name=e", "columns=70", "rows=70", "pitch-x=10", "pitch-y=10", "!", "fakesink")),
    "octbscan": ("832 samples x 240 A-scans u16, scale 4", 100, from_array(
        spectra, "octbscan", "name=e", "scale=4", "!", "fakesink")),
    "photostereo": ("512x512 u8, sets of 24; a picture", 240, from_array(
        photographs, "photostereo", "name=e", "lights-location=FOLDER/lights.txt", "set-size=24", "!", "fakesink")),
    "normalintegrate": ("256x256 normals f32", 20, from_array(
        lambda np: normals(np, 256), "normalintegrate", "name=e", "e.height", "!", "fakesink")),
    "relight": ("1024x1024 normals f32", 50, from_array(
        lambda np: normals(np, 1024), "relight", "name=e", "azimuth=45", "!", "fakesink")),
    "insarxcorr": ("1024x1024 ci16, 5 x 5 patches; 64 lines", 0, from_slc(
        "insarxcorr", "name=e", "nx=5", "ny=5", "xsearch=64", "ysearch=64", "!", "fakesink")),
    "insarform": ("1024x1024 ci16; 64 lines", 0, from_slc(
        "insarform", "name=e", "e.interferogram", "!", "other/tensors", "!", "fakesink")),
    "slcresample": ("1024x1024 ci16; 64 lines", 0, from_slc(
        "slcresample", "name=e", "shift-r=0.3", "shift-a=0.2", "!", "fakesink", pair=False)),
}


def copy_time(np, size):
    """Returns: the median time of a copy of so many bytes, in us; beyond the caches, as frames are"""
    n = max(2, (64 << 20) // size)
    source, target = np.ones((n, size), np.uint8), np.zeros((n, size), np.uint8)
    times = []
    for i in range(WARM_UP + min(max(n, 20), 200)):
        begin = time.perf_counter()
        np.copyto(target[i % n], source[i % n])
        times.append(time.perf_counter() - begin)
    return float(np.median(times[WARM_UP:])) * MEGA


def measure(np, name, options):
    title, n, describe = CASES[name]
    stats = {}
    with tempfile.TemporaryDirectory() as folder:
        words, size = describe(np, folder, options.frames or n)
        pipeline = play.parse(words)
        element = pipeline.get_by_name("e")
        element.set_property("backend", options.backend)
        at_end(pipeline, "e", stats.update)
        begin = time.perf_counter()
        try:
            play.play(pipeline, lambda _sentence: None)
        except Failure as failure:
            raise Failure(NO_RESULT, f"{name}: {failure}") from failure
        elapsed = time.perf_counter() - begin
    if not stats.get("frames"):
        raise Failure(NO_RESULT, f"{name} has made nothing.")
    copied = copy_time(np, size)
    return {"element": name, "frames-of": title, "backend": stats["active-backend"], "frames": stats["frames"],
            "time-p50-us": stats["time-p50"], "time-p99-us": stats["time-p99"], "seconds": elapsed, "bytes": size,
            "memcpy-us": copied, "ratio": stats["time-p50"] / copied}


def write_report(options, rows, missing, about, path):
    page = Report("bench", options.argv)
    for name, default in ("backend", "auto"), ("frames", None):
        if getattr(options, name) != default:
            page.setting("gst-imaging bench", name, getattr(options, name), default or "about a second")
    if missing:
        page.warning(f"Not installed: {', '.join(missing)}. gst-imaging info says why.")
    page.table("Time that a frame is inside the element", ("element", "backend", "median, ms", "99 %, ms", "memcpy, ms", "ratio", "frames of"), [
        (row["element"], row["backend"], row["time-p50-us"] / 1000, row["time-p99-us"] / 1000, row["memcpy-us"] / 1000, row["ratio"],
         row["frames-of"]) for row in rows], "memcpy copies as many bytes on one thread; ratio is the median as a multiple of it.")
    cpu, devices = about["cpu"] or {}, (about["cuda"] or {}).get("devices") or ()
    for name, value in ("gst-imaging", about["version"]), ("GStreamer", about["gstreamer"]), \
            ("CPU", f'{cpu.get("threads")} threads, {cpu.get("level")}'), ("GPU", ", ".join(d["name"] for d in devices) or "none"):
        page.fact(name, value)
    page.write(path)


def run(options):
    np = library.numpy()
    Gst = library.gstreamer()
    unknown = [name for name in options.elements if name not in CASES]
    if unknown:
        raise Failure(WRONG_USE, f'There is no benchmark of "{unknown[0]}"; there are {", ".join(CASES)}.')
    if options.frames is not None and options.frames < 1:
        raise Failure(WRONG_USE, f"--frames is {options.frames}; it needs at least 1.")
    if options.report and not is_picture(options.report):
        raise Failure(WRONG_USE, f'"{options.report}" would be replaced, and it is no page.')
    rows, missing = [], []
    names = options.elements or list(CASES)
    with Progress("bench", "elements", len(names)) as progress:
        for i, name in enumerate(names):
            progress.show(i)
            if Gst.ElementFactory.find(name):
                rows.append(measure(np, name, options))
            else:
                missing.append(name)
    if not rows:
        raise Failure(NO_RESULT, f"None of {', '.join(names)} is installed; gst-imaging info says why.")
    if options.report:
        with writing(options.report) as path:
            write_report(options, rows, missing, installed.collect(), path)
    if not options.json:
        show(rows, missing)
    return {"results": rows, "missing": missing}


def show(rows, missing):
    print(f'{"element":16}{"backend":9}{"median":>10}{"99 %":>10}{"memcpy":>10}{"ratio":>8}  frames of')
    for row in rows:
        print(f'{row["element"]:16}{row["backend"]:9}{row["time-p50-us"] / 1000:7.3f} ms{row["time-p99-us"] / 1000:7.3f} ms'
              f'{row["memcpy-us"] / 1000:7.3f} ms{row["ratio"]:8.1f}  {row["frames-of"]}')
    if missing:
        print(f"Not installed: {', '.join(missing)}")
