# SPDX-License-Identifier: LGPL-2.1-or-later
"""One file that appears when it is complete."""
import contextlib
import os
import tempfile

from ..command import NOT_WRITTEN, WRONG_USE, Failure


def is_picture(path):
    """Is there nothing that would be lost: the name of another file stands in its place?"""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return True
    with open(path, "rb") as file:
        return file.read(256).lstrip().startswith((b"<svg", b"<?xml", b"<!DOCTYPE html"))


@contextlib.contextmanager
def writing(path, *reads):
    """For with: the name of a file beside path, which takes its place in the end. A failure or a signal leaves path as it
    was. A link stays one; a pipe or device, as /dev/stdout, is written at once. reads: files that must not be replaced"""
    if any(os.path.exists(path) and os.path.exists(read) and os.path.samefile(path, read) for read in reads):
        raise Failure(WRONG_USE, f'"{path}" would be replaced, and it is read. Choose another name or folder for the results.')
    if os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise Failure(NOT_WRITTEN, f'"{path}" cannot be written: it is a folder.')
        yield path
        return
    target = os.path.realpath(path)
    partial = None
    try:
        try:
            file, partial = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", suffix=os.path.splitext(target)[1],
                                             dir=os.path.dirname(target))
            os.close(file)
        except OSError as error:
            raise Failure(NOT_WRITTEN, f'"{path}" cannot be written: {error.strerror}.') from None
        yield partial
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~umask)
        os.replace(partial, target)
    finally:
        if partial:
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial)
