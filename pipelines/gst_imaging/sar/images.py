# SPDX-License-Identifier: LGPL-2.1-or-later
"""Images that are compared: SLC images, amplitudes and pictures, in any format that slcsrc or picturesrc reads."""
import contextlib
import os
import re

from .. import library, play
from ..command import UNREADABLE, Failure
from . import raw_files

# Read as arrays: .npy, FITS, OpenEXR, PNG, JPEG, PNM. The others are slcsrc's.
ARRAYS = re.compile(rb"\x93NUMPY|SIMPLE  =|v/1\x01|\x89PNG|\xff\xd8\xff|P[1-7Ff]\s", re.DOTALL)


def file_of(path):
    """Returns: the file of a subdataset of GDAL (HDF5:"FILE"://NAME, NETCDF:FILE:NAME), else the path itself"""
    found = None if os.path.exists(path) else re.match(r'[A-Za-z0-9_]+:(?:"([^"]+)"|([^:"]+)):', path)
    return found[1] or found[2] if found else path


def names_in(path, pattern):
    """What a small text file names."""
    if not os.path.isfile(path) or os.path.getsize(path) >= 1 << 20:
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.findall(pattern, file.read(), re.MULTILINE)


def slc_of(path):
    """Returns: where slcsrc may find the SLC_file of a PRM file, in its order."""
    lines = names_in(path, r"^\s*SLC_file\s*=\s*(\S.*?)\s*$")[-1:]
    return [place for name in (*lines, *(line.split()[0] for line in lines))
            for place in (name, os.path.join(os.path.dirname(path), name))]


def files_of(path):
    """Returns: the files of an image: itself, its SLC_file, what a .vrt of GDAL names, the header of ENVI beside it."""
    path = file_of(path)
    beside = [os.path.join(os.path.dirname(path), name) for name in names_in(path, "<SourceFilename[^>]*>([^<]+)<")]
    beside += [path + ".hdr", os.path.splitext(path)[0] + ".hdr"]
    found = [path, *[name for name in slc_of(path) if os.path.isfile(name)][:1], *filter(os.path.isfile, beside)]
    return list(dict.fromkeys(found))


def find_led(path):
    """Returns: the LED file that a PRM file names, in the working folder, or else beside it, as insarform; None of another file"""
    names = names_in(path, r"^[ \t]*led_file[ \t]*=[ \t]*(\S+)")
    return next((name if os.path.exists(name) else os.path.join(os.path.dirname(path), name) for name in names[-1:]), None)


def led_of(path):
    """Returns: the LED file of an image, where there is one"""
    return list(filter(os.path.isfile, filter(None, [find_led(path)])))


def is_array(path):
    try:
        with open(path, "rb") as file:
            return bool(ARRAYS.match(file.read(16)))
    except OSError:  # slcsrc tells why
        return False


def note_of(path):
    """Returns: a sentence, where a TIFF holds more bands or pages than the one that slcsrc reads; else None"""
    if library.format_of(path) != "TIFF" or not os.path.isfile(path):
        return None
    with contextlib.suppress(Failure):  # GDAL may read it, and tells why if it does not
        _kind, shape = library.Arrays().kind(path)
        if len(shape) > 2:
            return f"{path} holds {' x '.join(map(str, shape))} samples, and the first band of its first page alone is compared."
    return None


def copy_array(path, copy):
    """Writes the samples as slcsrc reads them. Returns: the properties of slcsrc."""
    pages = [(shape, values.copy()) for shape, _start, values in library.Arrays().pages(path)]
    shape = pages[0][0]
    is_image = len(pages) == 1 and (len(shape) == 2 or len(shape) == 3 and shape[2] <= 4)
    if not is_image:
        raise Failure(UNREADABLE, f"{path} is an array of {' x '.join(map(str, shape))}, which is no image. Take one page of it.")
    values = pages[0][1].reshape(shape)
    if values.ndim == 3:  # grey from colours; transparency is no brightness
        values = values[..., :3 if shape[2] > 2 else 1].mean(-1)
    is_complex = values.dtype.kind == "c"
    values.astype("<c8" if is_complex else "<f4").tofile(copy)
    return [f"location={copy}", f"width={shape[1]}", f"format={'cf32' if is_complex else 'f32'}"]


class Image:
    """One image. `source`: the words of its source; `width`, `height`; `format`: of its
    samples, ci16, cf32 or f32; `shift`: columns and lines behind its reference, of a PRM file."""

    def __init__(self, path, folder):
        """folder: for the samples of what slcsrc does not read"""
        self.path = path
        if path.lower().endswith(".led"):
            raise Failure(UNREADABLE, f'"{path}" is a LED file of GMTSAR, which has state vectors and no samples. Give the PRM file that names it.')
        properties = [f"location={path}"]
        if is_array(path):
            properties = copy_array(path, os.path.join(folder, f"{os.path.basename(path)}.{len(os.listdir(folder))}.raw"))
        else:
            raw_files.check(path)
        self.source = ["slcsrc", *properties]
        caps = play.caps_of(self.source)
        self.width, self.height = caps.get_value("width"), caps.get_value("height")
        self.format = caps.get_value("format")
        self.shift = [caps.get_value(name) if caps.has_field(name) else 0 for name in ("rshift", "ashift")]

    @property
    def is_complex(self):
        return self.format != "f32"


def read_real(image, folder):
    """Returns: the samples of a real Image, float32 [lines][columns]"""
    copy = os.path.join(folder, "real.f32")
    play.play(play.parse([*image.source, "!", "filesink", "location=" + copy]))
    return library.numpy().fromfile(copy, library.numpy().float32).reshape(-1, image.width)


def check_complex(images):
    for image in images:
        if not image.is_complex:
            raise Failure(UNREADABLE, f'"{image.path}" has real samples, and an interferogram needs complex ones. gst-imaging'
                                      " offsets measures the offsets of amplitudes and pictures.")
