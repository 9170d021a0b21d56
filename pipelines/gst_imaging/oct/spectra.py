# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of spectra: arrays of every format, and raw samples."""
import os

from .. import library
from ..command import UNREADABLE, WRONG_USE, Failure
from ..frames import files
from ..frames.source import Source, need
from .doubts import Doubts
from .layout import DTYPES, Layout
from .saturation import Saturation
from .turns import Turns, n_cameras_of

NOTES = (".md", ".txt", ".rst", ".json", ".xml", ".ini", ".csv", ".html", ".log")  # beside data in a folder
BLOCK = 1 << 24


def add_arguments(parser):
    group = parser.add_argument_group("raw files (any extension that is no format)")
    group.add_argument("--samples", type=int, metavar="N", help="samples of a spectrum")
    group.add_argument("--lines", type=int, metavar="N", help="spectra of a B-scan; of arrays that of the file, if it is not given")
    group.add_argument("--dtype", choices=DTYPES, default="u16", help="of a sample (default: u16, the low byte first)")
    group.add_argument("--offset", type=int, default=0, metavar="BYTES", help="of a header, which is left out")


def check(options):
    for name in "samples", "lines":
        value = getattr(options, name)
        if value is not None and not 0 < value < 65536:
            raise Failure(WRONG_USE, f"--{name} is {value}; it needs a number from 1 to 65535.")
    if options.offset < 0:
        raise Failure(WRONG_USE, f"--offset is {options.offset}; it needs at least 0.")


def inputs(names, others):
    """Returns: a folder is a result for each of its files, but for notes and the files that options name"""
    found = []
    for name in names:
        if not os.path.isdir(name):
            found.append(name)
            continue
        taken = [os.path.realpath(other) for other in others]
        here = [file for file in files.files_of(name) if not file.lower().endswith(NOTES) and os.path.realpath(file) not in taken]
        if not here:
            raise Failure(UNREADABLE, f"{name} holds no file of spectra.")
        found += here
    return found


def is_raw(path, options):
    """Options go before settings that an instrument has written beside a file"""
    extension = os.path.splitext(path)[1].lower()
    if extension == ".unp" or is_octproz(path):
        return bool(options.samples)
    return extension not in files.PACKED and (extension == ".raw" or extension.lstrip(".") not in files.formats())


def is_octproz(path):
    """Returns: whether a recording of OCTproZ has its settings beside it"""
    return any(path.endswith(end) and os.path.exists(path.removesuffix(end) + "_meta.txt") for end in ("_raw.raw", "_processed.raw"))


class Spectra(Source):
    """n_bscans: how many there are, 0 if nobody knows; saturated: as Saturation.result(); doubts:
    sentences; first: the first B-scan, None where it is not known; layout: a Layout of raw files"""

    def __init__(self, words, name, paths, n_bscans, saturated, doubts, turns):
        super().__init__(words, name, paths)
        self.n_bscans, self.saturated, self.first, self.layout = n_bscans, saturated, doubts.bscan, None
        self.doubts = [*doubts.sentences(), *turns.sentences()]


def lines_left_over(path, n_lines, options):
    """Returns: a sentence without its end, of lines that are no whole B-scans"""
    n, left = divmod(n_lines, options.lines)
    exchanged = " and of the other cameras" if n_cameras_of(options) > 1 else ""
    return (f'"{path}" has {n} B-scans of {options.lines} lines, and {left} lines are left over, {options.lines - left} too few for another one:'
            f" did the camera lose lines, or did the recording end early? After a lost line all others are in the wrong place{exchanged}")


def check_size(path, options, warn):
    """Returns: how many B-scans a raw file has"""
    np = library.numpy()
    if not options.samples or not options.lines:
        raise Failure(WRONG_USE, f"{path} is raw: --samples and --lines say how many samples a spectrum has, and how many spectra"
                                 " a B-scan.")
    try:
        size = os.path.getsize(path) - options.offset
    except OSError as error:
        raise Failure(UNREADABLE, f"{path}: {error.strerror}.") from None
    bscan = np.dtype(DTYPES[options.dtype]).itemsize * options.samples * options.lines
    if size < bscan:
        raise Failure(UNREADABLE, f'"{path}" has {max(size, 0)} bytes; a B-scan of {options.lines} lines of {options.samples}'
                                  f" samples of {options.dtype} has {bscan}.")
    rest, line = size % bscan, bscan // options.lines
    if rest and rest % line == 0:
        warn(f"{lines_left_over(path, size // line, options)}, and --offset does not help: it is for a header, which would have {rest} bytes.")
    elif rest:
        warn(f'"{path}" has {size // bscan} B-scans of {options.lines} lines of {options.samples} samples, and {rest}'
             " bytes are left over. Is there a header (--offset), or are --samples or --lines others? The rest is left out.")
    return size // bscan


def new_array(path, dtype, shape):
    """Returns: a .npy file in memory. Its room is reserved first: on a full disk, writing would be a SIGBUS"""
    array = library.numpy().lib.format.open_memmap(path, "w+", dtype, shape)
    try:
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.path.getsize(path))
    except OSError as error:
        os.unlink(path)
        raise OSError(error.errno, error.strerror, path) from error
    return array


def read_raw(path, options, folder, warn, copied=False):
    """copied: always into an array, which picturesrc plays and seeks in"""
    np = library.numpy()
    n = check_size(path, options, warn)
    values = np.memmap(path, DTYPES[options.dtype], "r", options.offset, (n * options.lines, options.samples))
    saturation, doubts, step = Saturation(), Doubts(options.lines, options.dtype), max(1, BLOCK // options.samples)
    turns = Turns(n_cameras_of(options))
    plain = not copied and options.offset == 0 and options.dtype == "u16" and options.samples % 2 == 0
    name = os.path.join(folder, "spectra.npy")
    copy = None if plain else new_array(name, values.dtype.newbyteorder("="), (n, options.lines, options.samples))
    for at in range(0, len(values), step):
        saturation.add(values[at:at + step])
        doubts.add(values[at:at + step])
        turns.add(values[at:at + step])
        if copy is not None:
            copy.reshape(values.shape)[at:at + step] = values[at:at + step]
    if copy is None:
        need("rawvideoparse")
        words = ["filesrc", "location=" + path, f"blocksize={2 * options.samples * options.lines}", "!", "rawvideoparse",
                 "format=gray16-le", f"width={options.samples}", f"height={options.lines}"]
    else:
        copy.flush()
        words = ["picturesrc", "location=" + name, "axes=nyx"]
    source = Spectra(words, path, [path], n, saturation.result(), doubts, turns)
    source.layout = Layout(values, options)
    source.doubts += source.layout.doubts
    return source


def read_array(path, options, folder, warn):
    if is_octproz(path) or path.lower().endswith((".oct", ".unp")):
        library.Arrays().kind(path)  # its reader says what is wrong: no other element reads it
    source = files.read(path, folder)
    saturation, doubts, n_lines, samples = Saturation(), Doubts(options.lines), 0, 1
    turns = Turns(n_cameras_of(options))
    if "uridecodebin" in source.words or "videoconvert" in source.words:
        doubt = library.Arrays().doubt(path) if library.format_of(path) else None
        raise Failure(UNREADABLE, f"{path} holds colours, or is no array: spectra are [lines, samples] or [B-scans, lines,"
                                  f" samples]. {doubt or 'Of raw samples give --samples and --lines.'}")
    lines = options.lines
    for file in source.played:
        for shape, _start, values in library.Arrays().pages(file):
            saturation.add(values)
            samples = shape[-1] if shape else 1
            doubts.add(values.reshape(-1, samples))
            turns.add(values.reshape(-1, samples))
            lines = lines or (shape[-2] if len(shape) > 1 else 1)
            n_lines += values.size // max(samples, 1)
    if lines and n_lines > lines and n_lines % lines:
        warn(f"{lines_left_over(path, n_lines, options)}.")
    return Spectra(source.words, path, source.files, n_lines // lines if lines else 0, saturation.result(), doubts, turns)


def read(path, options, folder, warn):
    """Returns: Spectra. folder: for other files on the way"""
    if is_raw(path, options):
        return read_raw(path, options, folder, warn)
    return read_array(path, options, folder, warn)
