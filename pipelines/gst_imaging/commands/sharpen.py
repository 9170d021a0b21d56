# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sharpens pictures, folders of pictures, recordings or a camera.

Each output has the name, the format, the type and the channels of its input: 16 bits stay 16 bits, floats stay floats. JPEG and camera RAW are
read only; their outputs are PNG and TIFF. Of a FITS cube or a TIFF stack each frame is sharpened. Beside the pictures lie
report.html and result.json. A file that cannot be read does not keep the others of its folder from being made.

property=value are properties of lapsharpen (docs/reference/lapsharpen.md): amount=1.5, neighbours=8, threshold=8, ...
"""
import contextlib
import os

from .. import headers, job, library
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure, Stopped, say, whole, with_name
from ..frames import cameras, doubts, files
from ..frames.source import at_end, is_setting, need, set_bits, split
from ..progress import Progress

EXAMPLES = [
    ("picture.png amount=1.5 -o out", "out/picture.png, with half as much again"),
    ("photographs/ amount=2 threshold=8 clamp=local -o sharp", "a folder, without noise and seams"),
    ("--camera v4l2:/dev/video0 --frames 100 amount=1.5 -o out", "frames of a camera, as numbered PNG"),
]

READ_ONLY = {".jpg": ".png", ".jpeg": ".png", ".jpe": ".png"}  # and camera RAW, which has 16 bits
COLOURS = "video/x-raw,format={GRAY16_LE,GRAY8,RGB}"
CROP = 320  # pixels of the part that the report shows as it is
MOST_SHOWN = 3


def add_arguments(parser):
    parser.add_argument("words", nargs="*", metavar="PICTURES | property=value")
    job.add_arguments(parser)
    parser.add_argument("--format", metavar="EXTENSION", help="of all outputs, as png or tif; without it that of the input")
    cameras.add_arguments(parser)


def check(options):
    names, settings = split(options.words)
    cameras.check(options)
    if bool(names) == bool(options.camera):
        raise Failure(WRONG_USE, "Give pictures or folders of pictures, or --camera; not both.")
    for name in names:
        if not os.path.exists(name) and is_setting(name):
            raise Failure(WRONG_USE, f'"{name}" is no picture and no property=value.')
    need("lapsharpen", "picturesrc", "picturesink")
    return names, settings


def writable():
    """Returns: the extensions that are written here"""
    return {"." + extension for extension, entry in files.formats().items() if entry["write"]}


def name_of(path, options):
    """Returns: of the output"""
    stem, extension = os.path.splitext(os.path.basename(path))
    if options.format:
        return f"{stem}.{options.format.lstrip('.')}"
    extension = extension.lower()
    return os.path.basename(path) if extension in writable() else stem + READ_ONLY.get(extension, ".tif")


def floats_as_before(np, after, before, copies_alpha):
    """Of f16 and f64, samples that f32 left as they were keep all of their bits. Tensors have no alpha: it is given back.
    Returns: what lapsharpen made of f32, in the type of the input"""
    if before.dtype != np.float32:
        with np.errstate(over="ignore"):  # to infinity, which is told
            after = np.where(after == before.astype(np.float32), before, after.astype(before.dtype))
    if copies_alpha:
        after[..., 3] = before[..., 3]
    return after


def as_before(np, source, played, path, before, copies_alpha):
    """Video of 16 bits has no three channels, and a file that grows has frames as a first dimension: what was added goes
    again. Orientation, resolution and texts of the input come back. Returns: the samples of the output, and names of what
    its format cannot hold"""
    after = library.Arrays().read(played)
    if after.dtype.kind == "c":  # what picturesink makes of two floats a pixel
        after = after.view(np.float32)
    if before.ndim >= 3 and before.shape[-1] == 3 and after.shape[-1] == 4:
        after = after[..., :3]
    if after.size == before.size and after.shape != before.shape:
        after = after.reshape(before.shape)
    if before.dtype.kind == "f":
        after = floats_as_before(np, after, before, copies_alpha)
    after, arrays = np.ascontiguousarray(after), library.Arrays()
    if after.dtype != before.dtype:
        return after, []
    like = arrays.load(source)
    try:
        arrays.translate(like, source, path)
        arrays.replace_values(like, after)
        arrays.save(like, path)
        return after, headers.find_lost(arrays.cards(like), arrays.cards_of(path), (), path)
    finally:
        arrays.free(like)


def middle(values):
    """A part of the picture that the report shows without averaging."""
    frame = values[0] if values.ndim == 4 or values.ndim == 3 and values.shape[-1] > 4 else values
    height, width = frame.shape[:2]
    top, left = max((height - CROP) // 2, 0), max((width - CROP) // 2, 0)
    part = frame[top:top + CROP, left:left + CROP]
    return part[..., 0] if part.ndim == 3 and part.shape[2] < 3 else part


class Sharpening:
    """Of one file after the other; what it says about them."""

    def __init__(self, made, settings):
        self.np, self.made, self.settings = library.numpy(), made, settings
        self.rows, self.failed, self.names, self.worst, self.backend = [], [], {}, 0.0, None
        self.bits = next((int(text.partition("=")[2]) for text in settings if text.startswith("bit-depth=")), 0)

    def claim(self, path, name):
        if name in self.names:
            raise Failure(WRONG_USE, f"{path} and {self.names[name]} would both become {name}. Put them into folders of their own.")
        self.names[name] = path

    def words(self, path, before, axes):
        """Returns: what plays a file, as words of a pipeline; and a file that is needed for it, or None"""
        np = self.np
        if before.dtype != np.float64:
            return files.words_of([path]), None
        self.made.warn("Samples of float64 are sharpened as float32: those that change have 7 digits.")
        samples = self.made.path("samples.npy")
        with np.errstate(over="ignore"):
            np.save(samples, before.astype(np.float32))
        return [*files.words_of([samples]), *(["axes=" + axes] if axes else [])], samples

    def sharpen(self, path, name):
        """Writes the output. A failure leaves none."""
        np, extension = self.np, os.path.splitext(name)[1]
        arrays = library.Arrays()
        before, axes = arrays.read(path), arrays.axes(path)
        is_float = before.dtype.kind == "f"
        if not is_float and before.dtype not in (np.uint8, np.uint16):
            raise Failure(UNREADABLE, f"{path} has samples of {before.dtype}; whole numbers of 8 or 16 bits without a sign and floats are sharpened."
                                      " Write them as u8, u16 or float32, for example with NumPy.")
        copies_alpha = is_float and before.ndim > 2 and before.shape[-1] == 4 and not axes.endswith("x") and "alpha=filter" not in self.settings
        partial = self.made.path("picture" + extension)
        # video of 16 bits has a fourth channel, which .ppm has no place for; few formats hold float32 of any shape
        played = self.made.path("picture.npy") if is_float or extension == ".ppm" and before.dtype == np.uint16 else partial
        took, link = {}, files.linked(path, self.made.folder)
        words, samples = self.words(link, before, axes)
        try:
            self.made.play([*words, "!", "lapsharpen", "name=sharpen", *self.settings, "!", "picturesink",
                            "sidecar=none", "location=" + played],
                           prepare=lambda pipeline: at_end(pipeline, "sharpen", took.update))
            after, lost = as_before(np, path, played, partial, before, copies_alpha)
            if played != partial:
                os.remove(played)
            if lost:
                self.made.warn(f"{name} does not carry over {', '.join(lost)}.")
            self.note(name, before, after, took, partial)
        except BaseException:
            for made in played, partial:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(made)
            raise
        finally:
            for made in filter(None, (link, link + ".json", samples) if link != path else (samples,)):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(made)

    def doubt_floats(self, name, before, after):
        """Warns of samples that became NaN."""
        isfinite = self.np.isfinite
        n = int((isfinite(before) & ~isfinite(after)).sum())
        if n:
            self.made.warn(f"{n} finite samples of {name} became NaN or infinite: a neighbour was, or the result is beyond {after.dtype}.")

    def note(self, name, before, after, took, partial):
        shares = [doubts.clipped(self.np, values, self.bits) for values in (before, after)]
        self.worst = max(self.worst, shares[1] - shares[0])
        self.backend = took.get("active-backend")
        size = " x ".join(map(str, after.shape))
        if after.dtype.kind == "f":
            self.doubt_floats(name, before, after)
        with whole():
            os.rename(partial, self.made.path(name))
            self.rows.append((name, size, after.dtype.name, *shares, took.get("time-p50", 0) / 1000))
        if len(self.rows) <= MOST_SHOWN:
            parts = [middle(values) for values in (before, after)]
            finite = parts[0][self.np.isfinite(parts[0])]
            low, high = map(float, self.np.percentile(finite, (0.5, 99.5))) if finite.size else (None, None)
            for title, part, file in (f"{name}, as it was", parts[0], ""), (f"{name}, sharpened", parts[1], name):
                self.made.report.picture(title, part, file=file, low=low, high=high,
                                         caption="The middle, pixel by pixel." if min(part.shape[:2]) == CROP else "")

    def finish(self):
        made = self.made
        made.report.figure("samples that sharpening made black or white", self.worst, "%", at_most=1,
                           about="of the picture with the most of them; clamp=local avoids it")
        made.report.table("Pictures", ("picture", "size", "type", "clipped before (%)", "after (%)", "time (ms)"), self.rows)
        made.report.fact("pictures", len(self.rows))
        return made.finish(pictures=len(self.rows), failed=[path for path, _failure in self.failed])


def sharpen_files(name, made, options, settings):
    """A picture, or a folder of them."""
    paths = files.listing(name, made.warn)
    for path in paths:
        made.input(path, "picture")
    for text in settings:
        made.settings[text.partition("=")[0]] = text.partition("=")[2]
    if made.is_complete():
        return made.result
    made.open()
    sharpening = Sharpening(made, settings)
    try:
        with Progress(made.name, "pictures", len(paths)) as progress:
            for i, path in enumerate(paths):
                progress.show(i)
                sharpen_one(sharpening, path, options, len(paths) == 1)
    except Stopped as stopped:
        if sharpening.rows:  # the pictures before keep theirs
            made.settings[job.PARTIAL] = len(sharpening.rows)
            made.warn(f"Stopped after {len(sharpening.rows)} of {len(paths)} pictures.")
            sharpening.finish()
            stopped.sentence = f"{len(sharpening.rows)} of {len(paths)} pictures of {name} are complete in {made.target}."
        raise
    return end(sharpening, name, len(paths))


def sharpen_one(sharpening, path, options, is_only):
    try:
        output = name_of(path, options)
        sharpening.claim(path, output)
        sharpening.sharpen(path, output)
    except Failure as failure:
        if is_only or failure.code in (WRONG_USE, NOT_WRITTEN):  # which is the same for all
            raise
        say(f"gst-imaging sharpen: {with_name(path, failure)}")
        sharpening.failed.append((path, failure))
        sharpening.made.report.warning(with_name(path, failure))


def end(sharpening, name, n):
    failed, made = sharpening.failed, sharpening.made
    if not sharpening.rows:
        raise Failure(UNREADABLE, f"No file of {name} is a picture that lapsharpen takes, the first: {failed[0][1]}")
    if failed:  # another run begins anew
        made.settings[job.PARTIAL] = [path for path, _failure in failed]
    result = sharpening.finish()
    if failed:
        raise Failure(failed[0][1].code, f"{len(failed)} of {n} pictures of {name} failed: {', '.join(p for p, _f in failed)}."
                                         f" The other {len(sharpening.rows)} are complete in {made.target}.", result)
    return result


def sharpen_camera(made, options, settings):
    source = cameras.source_of(options, made.warn, COLOURS)
    playing, took = {}, {}

    def prepare(pipeline):
        playing["pipeline"] = pipeline
        at_end(pipeline, "sharpen", took.update)
        if source.bits and not any(text.startswith("bit-depth=") for text in settings):
            set_bits(pipeline, "sharpen", source.bits, lambda sentence: made.report.fact("camera", sentence))

    words = [*source.words, "!"]
    if options.frames:
        words += ["identity", f"eos-after={options.frames + 1}", "!"]
    location = made.path(f"frame-%05d.{(options.format or 'png').lstrip('.')}")
    with cameras.until_interrupted(source, lambda: playing.get("pipeline")):
        made.play([*words, "lapsharpen", "name=sharpen", *settings, "!", "picturesink", "sidecar=none", "location=" + location],
                  "frames", options.frames or 0, prepare=prepare)
    names = sorted(name for name in os.listdir(os.path.dirname(location)) if name.startswith("frame-"))
    if not names:
        raise Failure(UNREADABLE, f"No frame arrived from {options.camera}.")
    made.report.picture("The last frame, sharpened", middle(library.Arrays().read(made.path(names[-1]))), file=names[-1])
    made.report.figure("missing frames", took.get("frames-missing", 0) + took.get("lost-frames", 0), at_most=0)
    made.report.figure("time for a frame", took.get("time-p50", 0) / 1000, "ms", about=f'median, on {took.get("active-backend")}')
    return made.finish(pictures=len(names), **{"bit-depth": took.get("bit-depth", 0)}, failed=[])


def run(options):
    library.numpy()
    names, settings = check(options)
    if options.camera:
        return job.run_all(options, "sharpen", [options.camera], lambda _name, made: sharpen_camera(made, options, settings))
    return job.run_all(options, "sharpen", names, lambda name, made: sharpen_files(name, made, options, settings))
