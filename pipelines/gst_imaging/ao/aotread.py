# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads FITS files after the convention of adaptive optics telemetry, as aot.py and others write them: tables and images by their EXTNAME."""
import os
import re

from .aot import BLOCK


def read_header(file):
    """Returns: {keyword: value} of the next unit, {} at the end. Texts go on in CONTINUE"""
    found, last = {}, None
    while block := file.read(BLOCK):
        if len(block) < BLOCK:
            raise ValueError("it ends in a header")
        for i in range(0, BLOCK, 80):
            card = block[i:i + 80].decode("ascii", "replace")
            keyword, text = card[:8].rstrip(), card[10:].lstrip()
            if keyword == "END":
                return found
            if text.startswith("'"):
                text = re.match(r"'((?:[^']|'')*)", text)[1].replace("''", "'")
                if keyword == "CONTINUE" and last:
                    found[last] = found[last].removesuffix("&") + text.rstrip()
                    continue
                found[keyword] = text.rstrip()
                last = keyword
            elif card[8:10] == "= ":
                found[keyword] = text.partition("/")[0].strip()
    return found


def read_table(np, head, data):
    """Returns: {column: value of each row} of texts, numbers and lists of numbers; columns of other types are left out"""
    width, n_rows = int(head["NAXIS1"]), int(head["NAXIS2"])
    types = {"D": ">f8", "E": ">f4", "K": ">i8", "J": ">i4", "I": ">i2"}
    sizes = {"A": 1, "L": 1, "B": 1, "P": 8, "Q": 16, "C": 8, "M": 16, **{kind: int(dtype[2]) for kind, dtype in types.items()}}
    found, at = {}, 0
    for number in range(1, int(head["TFIELDS"]) + 1):
        repeat, kind, more = re.match(r"(\d*)([A-Z])(.?)", head[f"TFORM{number}"]).groups()
        count = int(repeat or 1)
        size = (count + 7) // 8 if kind == "X" else count * sizes[kind]  # X: bits
        cells = [data[row * width + at:row * width + at + size] for row in range(n_rows)]
        if kind == "A":
            found[head[f"TTYPE{number}"]] = [cell.decode("ascii", "replace").rstrip("\0 ") for cell in cells]
        elif kind in types and size == sizes[kind]:
            found[head[f"TTYPE{number}"]] = [np.frombuffer(cell, types[kind])[0] for cell in cells]
        elif kind in "PQ" and more in types:
            heap = int(head.get("THEAP", width * n_rows))
            pairs = [np.frombuffer(cell, ">i4" if kind == "P" else ">i8") for cell in cells if size]
            found[head[f"TTYPE{number}"]] = [np.frombuffer(data, types[more], int(n), heap + int(place)) for n, place in pairs]
        at += size
    return found


def read(np, path):
    """Returns: {EXTNAME: table or image}. Images are maps of the file, those of integers with an offset are left out. Fails with
    ValueError where it is no such file, OSError where it cannot be read"""
    dtypes = {"8": "u1", "16": ">i2", "32": ">i4", "64": ">i8", "-32": ">f4", "-64": ">f8"}
    units = {}
    with open(path, "rb") as file:
        if file.read(6) != b"SIMPLE":
            raise ValueError("it is no FITS file")
        file.seek(0)
        try:
            while head := read_header(file):
                shape = [int(head[f"NAXIS{i}"]) for i in range(int(head["NAXIS"]), 0, -1)]
                values = int(np.prod(shape)) if shape else 0
                size = values * abs(int(head["BITPIX"])) // 8 + int(head.get("PCOUNT", 0))
                begin = file.tell()
                if begin + size > os.fstat(file.fileno()).st_size:
                    raise ValueError(f"its unit {head.get('EXTNAME', len(units))} is cut off")
                if head.get("XTENSION") == "BINTABLE":
                    units[head.get("EXTNAME")] = read_table(np, head, file.read(size))
                elif values and float(head.get("BZERO", 0)) == 0 and float(head.get("BSCALE", 1)) == 1:
                    units[head.get("EXTNAME")] = np.memmap(path, dtypes[head["BITPIX"]], "r", begin, tuple(shape))
                file.seek(begin + size + -size % BLOCK)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"a header of it is damaged: {error}") from error
    return units
