# SPDX-License-Identifier: LGPL-2.1-or-later
"""The curve of the colour profile (ICC.1:2022) in a PNG, TIFF or JPEG file: gamma, or that of sRGB."""
import functools
import os
import struct
import zlib

LARGEST = 1 << 24  # bytes of a profile; those of cameras and monitors have some kB
POINTS = 1025
NEAR = 0.012  # of full scale, from a curve that photostereo has; L* of eciRGB is 0.0111 off, Rec. 709 0.0112
GAMMAS = 1, 5, 401  # of the search: steps of 0.01
TIFF_PROFILE, TIFF_LONG = 34675, 4  # tag; type
JPEG_SCAN, JPEG_APP2, JPEG_PROFILE = 0xffda, 0xffe2, b"ICC_PROFILE\0"
FIXED = 65536  # 1 in s15Fixed16Number
PARAMETERS = 1, 3, 4, 5, 7  # of each type of a parametric curve


def of_png(file):
    """Returns: the profile; None without one"""
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IDAT":
            return None
        if kind == b"iCCP" and length < LARGEST:
            packed = file.read(length).partition(b"\0")[2][1:]  # after its name and the method
            return zlib.decompressobj().decompress(packed, LARGEST)
        file.seek(length + 4, os.SEEK_CUR)
    return None


def of_tiff(file):
    """Returns: the profile of the first page; None without one"""
    order = {b"II": "<", b"MM": ">"}[file.read(2)]
    is_big = struct.unpack(order + "H", file.read(2))[0] == 43
    word, entry = ("Q", "HHQQ") if is_big else ("I", "HHII")
    file.seek(8 if is_big else 4)
    file.seek(struct.unpack(order + word, file.read(struct.calcsize(order + word)))[0])
    count = order + ("Q" if is_big else "H")
    size = struct.calcsize(order + entry)
    for _i in range(struct.unpack(count, file.read(struct.calcsize(count)))[0]):
        tag, _type, length, offset = struct.unpack(order + entry, file.read(size))
        if tag == TIFF_PROFILE and length < LARGEST:
            file.seek(offset)
            return file.read(length)
    return None


def of_jpeg(file):
    """Returns: the profile, in one or more segments APP2 (ICC.1:2022, B.4); None without one"""
    parts = {}
    file.seek(2)
    while len(head := file.read(4)) == 4:
        marker, length = struct.unpack(">HH", head)
        if not 0xffc0 <= marker < 0xffff or marker == JPEG_SCAN:
            break
        content = file.read(length - 2)
        if marker == JPEG_APP2 and content.startswith(JPEG_PROFILE):
            parts[content[len(JPEG_PROFILE)]] = content[len(JPEG_PROFILE) + 2:]  # after its number and how many there are
    return b"".join(parts[number] for number in sorted(parts)) or None


READERS = {".png": of_png, ".tif": of_tiff, ".tiff": of_tiff, **dict.fromkeys((".jpg", ".jpeg", ".jpe"), of_jpeg)}


def read(path):
    """Returns: the profile in a file; None without one"""
    reader = READERS.get(os.path.splitext(path)[1].lower())
    if not reader:
        return None
    try:
        with open(path, "rb") as file:
            return reader(file)
    except (IndexError, KeyError, OSError, OverflowError, ValueError, struct.error, zlib.error):  # the reader of pictures tells it
        return None


def values_of(np, curve, x):
    """curve: bytes of a tag. Returns: its values at x; raises ValueError for a type that is no curve"""
    kind, n = struct.unpack(">4s4xI", curve[:12])
    if kind == b"curv" and n == 0:
        return x
    if kind == b"curv" and n == 1:
        return x ** (struct.unpack(">H", curve[12:14])[0] / 256)
    if kind == b"curv":
        table = np.frombuffer(curve, ">u2", n, 12) / 65535
        return np.interp(x * (n - 1), np.arange(n), table)
    which = n >> 16
    if kind != b"para" or which >= len(PARAMETERS):
        raise ValueError(kind)
    g, a, b, c, d, e, f = (*(value / FIXED for value in struct.unpack_from(f">{PARAMETERS[which]}i", curve, 12)), *[0.0] * 7)[:7]
    if which == 0:
        a, d = 1, 0
    elif which < 3:  # below -b / a it is 0, or c
        e, f, c, d = c, c, 0, -b / a
    return np.where(x >= d, np.maximum(a * x + b, 0) ** g + e, c * x + f)


def curves(np, profile, x):
    """Returns: values of the curves of all colours [colours, len(x)]; raises ValueError without any"""
    n, = struct.unpack(">I", profile[128:132])
    tags = {}
    for i in range(min(n, 100)):
        name, offset, size = struct.unpack_from(">4sII", profile, 132 + 12 * i)
        tags[name] = profile[offset:offset + size]
    names = [b"kTRC"] if b"kTRC" in tags else [b"rTRC", b"gTRC", b"bTRC"]
    if any(name not in tags for name in names):
        raise ValueError(names)
    return np.stack([values_of(np, tags[name], x) for name in names])


def srgb(np, x):
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


@functools.lru_cache(16)  # one for each camera
def curve_of(np, profile):
    """Returns: ("srgb", 1) or ("gamma", exponent), whichever is nearer to all curves; None where neither is near"""
    x = np.linspace(0, 1, POINTS)
    try:
        with np.errstate(all="ignore"):
            found = curves(np, profile, x)
    except (ValueError, ZeroDivisionError, struct.error):
        return None
    candidates = [("srgb", 1, srgb(np, x))] + [("gamma", round(float(gamma), 2), x ** gamma) for gamma in np.linspace(*GAMMAS)]
    far, curve, gamma = min((float(np.abs(found - values).max()), curve, gamma) for curve, gamma, values in candidates)
    return (curve, gamma) if far < NEAR else None
