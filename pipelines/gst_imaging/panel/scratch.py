# SPDX-License-Identifier: LGPL-2.1-or-later
"""Folders that are there until the panel ends, however it ends."""
import shutil
import tempfile

from ..command import whole

folders = []


def new():
    """Returns: a folder"""
    with whole():
        folders.append(tempfile.mkdtemp(prefix="gst-imaging-panel-"))
    return folders[-1]


def remove():
    while folders:
        shutil.rmtree(folders[-1], ignore_errors=True)
        folders.pop()
