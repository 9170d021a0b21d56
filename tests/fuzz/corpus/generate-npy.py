#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the seeds of tests/fuzz/npy-fuzzer.c into npy/, beside this file.

It needs numpy; the seeds are in the repository, so only who changes them does.
"""
import pathlib
import struct

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "npy"


def raw(text, data=b"", version=1):
    """An .npy file with any text as its header."""
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + data


def header(descr, shape, order="False"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)


def write(name, content):
    (FOLDER / (name + ".npy")).write_bytes(content)


def write_array(name, array, version=(1, 0)):
    with open(FOLDER / (name + ".npy"), "wb") as file:
        np.lib.format.write_array(file, array, version=version)


FOLDER.mkdir(exist_ok=True)
for code in ("|u1", "<u2", ">u2", "<i2", ">i2", "<f4", ">f4", "<f8", ">f8",
             "<c8", ">c8", "<c16", ">c16"):
    order = {"|": "", "<": "le-", ">": "be-"}[code[0]]
    write_array(order + code[1:], np.arange(6).reshape(2, 3).astype(code))
write_array("version-2", np.ones((2, 2), "<f8"), (2, 0))
write_array("version-3", np.ones((2, 2), "<f8"), (3, 0))
write_array("scalar", np.array(1.5))
write_array("empty", np.zeros((0, 5), "<u2"))
write_array("dims-8", np.zeros((1, 1, 1, 2, 1, 1, 1, 3), "u1"))
write_array("nan", np.array([np.nan, np.inf, -0.0]))
write_array("fortran", np.asfortranarray(np.zeros((2, 3))))
write_array("text", np.array(["ab"]))
write_array("structured", np.zeros(2, [("x", "<f4"), ("y", "<i2")]))
write("other-order", raw('{"shape":(2,),"fortran_order":True,"descr":"<i2"}', bytes(4)))
write("overflow", raw(header("'<f8'", "(4294967296, 4294967296)")))
write("huge", raw(header("'|u1'", "(99999999999999999999,)")))
write("negative", raw(header("'|u1'", "(-1,)"), b"x"))
write("object", raw(header("'|O'", "(1,)"), b"x"))
write("unclosed", raw("{'descr': '<f8"))
write("key-missing", raw("{'descr': '<f8', 'shape': ()}", bytes(8)))
write("key-twice", raw("{'shape': (), 'shape': ()}"))
write("header-too-long", raw("", version=2)[:8] + b"\xff\xff\xff\xff")
write("trailing", raw(header("'|u1'", "(2,)"), b"abc"))
write("truncated", raw(header("'|u1'", "(4,)"), b"abc"))
