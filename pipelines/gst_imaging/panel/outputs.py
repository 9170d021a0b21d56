# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a recording must not replace: the files of the pipeline that is played."""
import os
import re

from .refusal import Refusal

NUMBER = "%(0(?:[01]?[0-9]|20))?d"  # picturesink writes 20 digits at most


def used_by(elements):
    """Yields element, property and value of the properties that name files"""
    for element in elements:
        for name in element.properties:
            for path in element.files(name):
                yield element, name, path


def files_of(base, has_flags=False):
    """has_flags: whether picturesink may write them beside it. Returns: a pattern of the names that are written for a name, which may have a
    number such as %05d"""
    def numbered(text):
        return "[0-9]+".join(map(re.escape, re.split("%(?:0[0-9]{1,2})?d", text)))

    stem, extension = os.path.splitext(base)
    flags = rf"|{numbered(stem)}-flags({numbered(extension)}|\.npy)" if has_flags else ""
    return re.compile(numbered(base) + r"(\.json)?" + flags)


def first_of(path):
    """Returns: the path of the first frame"""
    folder, base = os.path.split(path)
    return os.path.join(folder, re.sub(NUMBER, lambda found: f"%{found[1] or ''}d" % 0, base))


def names_in(folder):
    """Returns: the names of a folder, none where there is no such folder"""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Refusal(403, f"{folder} cannot be listed: {error.strerror}.") from error


def check_name(base):
    """Of a file that is written."""
    if base.startswith("."):
        raise Refusal(403, f"{base} is a hidden file: choose a name without a point at its beginning.")
    if re.search("%[-+ #0-9.]*[diu]", re.sub(NUMBER, "", base)):
        raise Refusal(400, f"{base} has a number that is neither %d nor %0Nd, such as %05d, with 20 digits at most.")


def existing(path, has_flags=False):
    """Returns: the name of a file that is there and would be replaced, None without one"""
    folder, base = os.path.split(path)
    name = files_of(base, has_flags)
    found = sorted(entry for entry in names_in(folder) if name.fullmatch(entry))
    return next((file for file in found if not file.endswith(".json") or base.endswith(".json")), None)


def check(path, elements, writer=None, own=(), recorded=(), has_flags=False):
    """writer, own: the element that writes, and its properties that may have the same file. recorded: paths of recordings that run.
    has_flags: as for files_of(). Returns: the path. Fails where what is written there is in use, also by a series of files in that folder"""
    folder, base = os.path.split(path)
    check_name(base)
    name = files_of(base, has_flags)
    for element, property_name, used in used_by(elements):
        if element is writer and property_name in own:
            continue
        real = os.path.realpath(used)
        is_series = os.path.isdir(real) or re.search("[*?%]", os.path.basename(used))
        if (real if os.path.isdir(real) else os.path.dirname(real)) != folder:
            continue
        if is_series or name.fullmatch(os.path.basename(real)):
            raise Refusal(409, f"The pipeline uses {used}, which {base} could replace: choose another name or folder.")
    for running in recorded:
        if os.path.dirname(running) == folder and (name.fullmatch(os.path.basename(first_of(running))) or
                                                   files_of(os.path.basename(running), True).fullmatch(os.path.basename(first_of(path)))):
            raise Refusal(409, f"{running} is being recorded, and {base} could replace it: choose another name.")
    return path
