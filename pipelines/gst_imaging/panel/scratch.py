# SPDX-License-Identifier: LGPL-2.1-or-later
"""Folders that are there until the panel ends, however it ends: the next panel removes those of one that was killed."""
import contextlib
import fcntl
import glob
import os
import shutil
import tempfile

from ..command import whole

PREFIX = "gst-imaging-panel."
FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
folders = {}  # with the descriptors of their locks


def sweep():
    """Removes the folders that no panel has locked."""
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), PREFIX + "*")):
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, FLAGS)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.geteuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def locked():
    """Returns: a new folder, and the descriptor of its lock"""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, FLAGS)
            with contextlib.suppress(OSError):  # where there are no locks, nobody sweeps
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.isdir(folder):  # another panel may have swept it before the lock
                return folder, descriptor
            os.close(descriptor)


def new():
    """Returns: a folder"""
    with whole():
        sweep()
        folder, descriptor = locked()
        folders[folder] = descriptor
    return folder


def remove():
    while folders:
        folder = next(reversed(folders))
        shutil.rmtree(folder, ignore_errors=True)
        os.close(folders.pop(folder))
