# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rows of one shape, in files: a recording may be larger than memory, and outlive a full disk."""
import contextlib
import os

from ..command import UNREADABLE, Failure

HEADER = 128  # bytes of an NPY file before its values, with space for any shape
RESERVED = 4 << 20  # bytes for what is written after the disk is full, at most half of what is free


class Column:
    """An NPY file with a hidden name. Its header has the number of rows from the end of the recording on, and needs no space then."""

    def __init__(self, np, folder, name):
        self.np, self.name, self.path = np, name, os.path.join(folder, f".{name}")
        self.file, self.dtype, self.shape = None, None, None

    def header(self, n):
        told = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': {(n, *self.shape)}, }}"
        size = HEADER - 10
        return b"\x93NUMPY\1\0" + size.to_bytes(2, "little") + told.ljust(size - 1).encode("ascii") + b"\n"

    def begin(self, dtype, shape):
        if self.file and (self.dtype, self.shape) != (dtype, shape):
            raise Failure(UNREADABLE, f"The {self.name} change from {list(self.shape)} to {list(shape)} while they"
                                      " are recorded: a recording has one shape.")
        if not self.file:
            self.dtype, self.shape = dtype, shape
            self.file = open(self.path, "wb")
            self.file.write(self.header(0))

    def add(self, data):
        self.file.write(data)

    def close(self):
        """Raises OSError where the last rows have no space."""
        if self.file:
            self.file.close()

    def row_size(self):
        return int(self.np.prod(self.shape)) * self.dtype.itemsize

    def n_rows(self):
        """Returns: rows in the closed file, which may lack the last; None where nothing was recorded"""
        return max(0, os.path.getsize(self.path) - HEADER) // self.row_size() if self.file else None

    def cut(self, n):
        """The first n rows are the column."""
        if self.file:
            os.truncate(self.path, HEADER + n * self.row_size())
            with open(self.path, "r+b", buffering=0) as file:
                file.write(self.header(n))

    def array(self, n):
        """Returns: [n, ...], a map of the file; None where nothing was recorded"""
        return self.np.memmap(self.path, self.dtype, "r", HEADER, (n, *self.shape)) if self.file else None

    def publish(self):
        """The file is a result. Returns: its name; None where nothing was recorded"""
        if not self.file:
            return None
        name = f"{self.name}.npy"
        os.rename(self.path, os.path.join(os.path.dirname(self.path), name))
        self.file = None
        return name

    def remove(self):
        if self.file:
            with contextlib.suppress(OSError):
                self.file.close()
            os.remove(self.path)


class Reserve:
    """Space of the disk that stays free for the end; none where there is none."""

    def __init__(self, folder):
        self.path = os.path.join(folder, ".reserve")
        disk = os.statvfs(folder)
        size = min(RESERVED, disk.f_bavail * disk.f_frsize // 2)
        try:
            with open(self.path, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError:
            self.free()

    def free(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)
