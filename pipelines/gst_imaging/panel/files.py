# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths that a browser may name: below the folders of --files, after links."""
import os

from .outputs import names_in
from .refusal import Refusal

MAX_ENTRIES = 2000


class Files:
    def __init__(self, folders):
        self.folders = [os.path.realpath(folder) for folder in folders]

    def is_inside(self, path):
        return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in self.folders)

    def check(self, name):
        """Returns: the path of files that a browser has named, with its links followed"""
        path = self.place(name)
        self.check_links(path)
        return path

    def place(self, name):
        if not isinstance(name, str) or "\0" in name:
            raise Refusal(400, "A path is a text.")
        if not self.folders:
            raise Refusal(403, "The panel was started without --files DIR, so no path can be named from a browser.")
        path = os.path.realpath(os.path.join(self.folders[0], name))
        if not self.is_inside(path):
            raise Refusal(403, f'{name} is not below a folder of --files ({", ".join(self.folders)}).')
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise Refusal(403, f"{name} is no file: it is a device, a socket or a FIFO.")
        return path

    def check_links(self, path):
        """A path with a number, a pattern or a folder stands for files whose names nobody has seen here."""
        is_folder = os.path.isdir(path)
        is_several = is_folder or set("%*?") & set(os.path.basename(path))
        folder = path if is_folder else os.path.dirname(path)
        several = [os.path.join(folder, name) for name in (names_in(folder) if is_several else ())]
        for link in several + [path + ".json"]:
            if os.path.islink(link) and not self.is_inside(os.path.realpath(link)):
                raise Refusal(403, f"{link} is a link to a file that is not below a folder of --files: use another folder.")

    def list(self, folder=None):
        if folder is None:
            return {"folder": None, "entries": [{"name": path, "path": path, "folder": True, "size": None} for path in self.folders],
                    "left-out": 0}
        path = self.place(folder)
        try:
            names = sorted(name for name in os.listdir(path) if not name.startswith("."))
        except OSError as error:
            raise Refusal(404, f"{folder} cannot be listed: {error.strerror}.") from error
        entries = []
        for name in names[:MAX_ENTRIES]:
            full = os.path.realpath(os.path.join(path, name))
            if not self.is_inside(full) or not os.path.exists(full):
                continue
            is_folder = os.path.isdir(full)
            entries.append({"name": name, "path": os.path.join(path, name), "folder": is_folder,
                            "size": None if is_folder else os.path.getsize(full)})
        return {"folder": path, "entries": entries, "left-out": max(0, len(names) - MAX_ENTRIES)}
