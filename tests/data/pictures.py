#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Puts PNG pictures of one size into an array for picturesrc.

pictures.py FRAMES.npy PICTURE.png... writes [pictures, height, width] for grey
pictures, [pictures, height, width, channels] for colours, of 8 or 16 bits.
GStreamer 1.22 shifts RGB of 16 bits by a sample when it reads PNG.

pictures.py --join RESULT.png PICTURE.png... puts pictures of one height beside
each other, as RGB of 8 bits.
"""
import struct
import sys
import zlib

import numpy as np

CHANNELS = {0: 1, 2: 3, 6: 4}  # of the colour types that are read


def unfilter(kind, row, above, size):
    """Undoes one of the filters of PNG on a row of bytes, in place."""
    if kind == 2:
        row += above
    elif kind == 1:
        for i in range(size):
            row[i::size] = np.cumsum(row[i::size], dtype=np.uint64).astype(np.uint8)
    elif kind in (3, 4):
        left = upper_left = [0] * size
        values, upper = row.tolist(), above.tolist()
        for i in range(0, len(values), size):
            for k in range(size):
                a, b, c = left[k], upper[i + k], upper_left[k]
                if kind == 3:
                    guess = (a + b) // 2
                else:
                    p = a + b - c
                    guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                values[i + k] = (values[i + k] + guess) & 255
            left, upper_left = values[i:i + size], upper[i:i + size]
        row[:] = values
    elif kind:
        raise ValueError(f"{kind} is no filter of PNG")


def read_png(path):
    """Returns: [height, width(, channels)] of u8 or u16."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError(f"{path} is no PNG")
    at, packed = 8, b""
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        if name == b"IHDR":
            width, height, bits, colour, _, _, interlace = struct.unpack(
                ">IIBBBBB", data[at + 8:at + 21])
        if name == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    if bits not in (8, 16) or colour not in CHANNELS or interlace:
        raise ValueError(f"{path} has {bits} bits, colour type {colour}, interlace {interlace}")
    size = CHANNELS[colour] * bits // 8
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * size).copy()
    above = np.zeros(width * size, np.uint8)
    for row in rows:
        unfilter(row[0], row[1:], above, size)
        above = row[1:]
    image = np.ascontiguousarray(rows[:, 1:]).view(">u2" if bits == 16 else np.uint8)
    image = image.astype(np.uint16 if bits == 16 else np.uint8)
    return image.reshape((height, width) + ((CHANNELS[colour],) if colour else ()))


def read_set(paths):
    return np.stack([read_png(path) for path in paths])


def as_rgb(image):
    """Returns: the same as [height, width, 3] of u8."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    return np.dstack([image] * 3) if image.ndim == 2 else image[..., :3]


def write_png(path, image):
    """Writes [height, width, 3] of u8."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + \
            struct.pack(">I", zlib.crc32(name + data))

    height, width = image.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" +
                   chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def join(path, images):
    write_png(path, np.ascontiguousarray(np.hstack([as_rgb(image) for image in images])))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--join":
        join(sys.argv[2], [read_png(path) for path in sys.argv[3:]])
    else:
        np.save(sys.argv[1], read_set(sys.argv[2:]))
