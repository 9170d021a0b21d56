# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the hidden folder of a job becomes its result, so that a failure or a kill at any step loses neither the old result nor the new.

A folder is exchanged at once where the system can. Where it cannot, and where the folder itself has to stay (a mount point, or the
folder where the command runs), the old result waits in a hidden place until the new one is whole. recover() brings it back when
something came in between. The lock of the job keeps others away meanwhile.
"""
import contextlib
import ctypes
import os
import re
import shutil

from .command import NOT_WRITTEN, Failure

WORK = ".gst-imaging-work"  # the hidden folder, where it is in the target
REPLACED = ".replaced"  # in WORK: the files of the old result, until all new ones are in the target
LAST = "result.json"  # says that the files beside it are whole: the first to go and the last to arrive


def each_file_below(folder, without=None):
    """Generates names of the files, but for those of a hidden folder. The first come at once, however many there are"""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if place != folder or name != without)
        yield from (os.path.relpath(os.path.join(place, name), folder) for name in sorted(names))


def files_below(folder, without=None):
    """Returns: the same names, in order"""
    return sorted(each_file_below(folder, without))


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # file systems that cannot sync a folder
    finally:
        os.close(descriptor)


def exchange(one, other):
    """Two folders change their names at once. Returns: whether this system can"""
    at_here, is_exchange = -100, 2
    function = getattr(ctypes.CDLL(None), "renameat2", None)
    return bool(function) and function(at_here, os.fsencode(one), at_here, os.fsencode(other), is_exchange) == 0


def hidden(target, ending):
    """Returns: a hidden name beside the target"""
    parent, name = os.path.split(target)
    return os.path.join(parent, f".{name}.gst-imaging-{ending}")


def told(text):
    """Returns: a text with names in a hidden folder, as they will be in the target"""
    return re.sub(r"(?<=/)\.([^/]+)\.gst-imaging-work(?=/)", r"\1", text.replace(f"/{WORK}/", "/"))


def move(names, source, target):
    for name in names:
        place = os.path.join(target, os.path.dirname(name))
        os.makedirs(place, exist_ok=True)
        if not (os.path.realpath(place) + os.sep).startswith(os.path.realpath(target) + os.sep):
            raise Failure(NOT_WRITTEN, f"{place} is a link out of {target}: nothing is moved there. Remove it.")
        os.rename(os.path.join(source, name), os.path.join(target, name))


def remove_empty(folder, names):
    """Removes folders that these files have left empty. One that stays does no harm."""
    for place in {os.path.dirname(name) for name in names} - {""}:
        with contextlib.suppress(OSError):  # it is not empty, or gone
            while place:
                os.rmdir(os.path.join(folder, place))
                place = os.path.dirname(place)


def move_in(target):
    """Replaces the files of a target by those of the hidden folder in it. check_target() saw that all old ones are of a result."""
    work, replaced = os.path.join(target, WORK), os.path.join(target, WORK, REPLACED)
    new, old = files_below(work), files_below(target, WORK)
    os.mkdir(replaced)
    try:
        move(sorted(old, key=lambda name: name != LAST), target, replaced)
        sync(replaced)
        sync(target)
        move(sorted(new, key=lambda name: name == LAST), work, target)
    except BaseException:
        roll_back(target, new)
        raise
    sync(target)
    shutil.rmtree(replaced, ignore_errors=True)
    remove_empty(target, old)


def roll_back(target, new):
    """The old files are there again, the new ones in the hidden folder. new: names of these."""
    work, replaced = os.path.join(target, WORK), os.path.join(target, WORK, REPLACED)
    # one that is still in the hidden folder has not been moved: a file of its name in the target is an old one
    arrived = [name for name in files_below(target, WORK) if name in new and not os.path.exists(os.path.join(work, name))]
    move(arrived, target, work)
    move(sorted(files_below(replaced), key=lambda name: name == LAST), replaced, target)
    shutil.rmtree(replaced, ignore_errors=True)
    remove_empty(target, new)


def is_half(target):
    """Did something end between the first and the last step of move_in()?"""
    replaced = os.path.join(target, WORK, REPLACED)
    return os.path.isdir(replaced) and not os.path.islink(replaced) and not os.path.islink(os.path.dirname(replaced))


def is_needed(folder):
    """Has a hidden folder an old result that is not back in its place?"""
    return bool(files_below(os.path.join(folder, REPLACED))) and os.path.exists(os.path.join(folder, LAST))


def replace(folder, target):
    """A folder takes the place of another one, where exchange() cannot. Returns: where the other one waits to be removed"""
    old = hidden(target, "old")
    os.rename(target, old)
    try:
        os.rename(folder, target)
    except BaseException:
        os.rename(old, target)
        raise
    return set_aside(old, target)


def set_aside(old, target):
    """Renames what is no longer needed: when only a part of it is left, recover() must not take it for a result. Returns: its name"""
    aside = hidden(target, "aside")
    try:
        os.rename(old, aside)
    except OSError:  # as where another process is removing its own
        return old
    return aside


def has_folder(target, ending):
    folder = hidden(target, ending)
    return os.path.isdir(folder) and not os.path.islink(folder)


def needs_recovery(target):
    return is_half(target) or has_folder(target, "old") or has_folder(target, "aside")


def recover(target, read_result):
    """After a kill: either all of the new result is in its place, or the old one is again. read_result(folder) as in job"""
    if is_half(target):
        work = os.path.join(target, WORK)
        if os.path.lexists(os.path.join(work, LAST)):  # which was to arrive last
            new = read_result(work) or {"outputs": []}
            roll_back(target, [entry["name"] for entry in new["outputs"]])
        else:
            shutil.rmtree(os.path.join(work, REPLACED), ignore_errors=True)
    if has_folder(target, "aside"):
        shutil.rmtree(hidden(target, "aside"), ignore_errors=True)
    if has_folder(target, "old"):
        old = hidden(target, "old")
        if os.path.lexists(target):
            shutil.rmtree(set_aside(old, target), ignore_errors=True)
        else:
            os.rename(old, target)
