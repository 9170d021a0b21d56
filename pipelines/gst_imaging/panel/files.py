# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths that a browser may name: below the folders of --files, after links."""
import os

from .refusal import Refusal

MAX_ENTRIES = 2000


class Files:
    def __init__(self, folders):
        self.folders = [os.path.realpath(folder) for folder in folders]

    def is_inside(self, path):
        return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in self.folders)

    def check(self, name):
        """Returns: the path that a browser has named, with its links followed"""
        if not isinstance(name, str) or "\0" in name:
            raise Refusal(400, "A path is a text.")
        if not self.folders:
            raise Refusal(403, "The panel was started without --files DIR, so no path can be named from a browser.")
        path = os.path.realpath(os.path.join(self.folders[0], name))
        if not self.is_inside(path):
            raise Refusal(403, f'{name} is not below a folder of --files ({", ".join(self.folders)}).')
        return path

    def list(self, folder=None):
        if folder is None:
            return {"folder": None, "entries": [{"name": path, "path": path, "folder": True, "size": None} for path in self.folders]}
        path = self.check(folder)
        try:
            names = sorted(os.listdir(path))[:MAX_ENTRIES]
        except OSError as error:
            raise Refusal(404, f"{folder} cannot be listed: {error.strerror}.") from error
        entries = []
        for name in names:
            full = os.path.realpath(os.path.join(path, name))
            if name.startswith(".") or not self.is_inside(full) or not os.path.exists(full):
                continue
            is_folder = os.path.isdir(full)
            entries.append({"name": name, "path": os.path.join(path, name), "folder": is_folder,
                            "size": None if is_folder else os.path.getsize(full)})
        return {"folder": path, "entries": entries}
