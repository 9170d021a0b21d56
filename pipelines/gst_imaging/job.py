# SPDX-License-Identifier: LGPL-2.1-or-later
"""The work on one input: its outputs appear together, in a folder of their own, or not at all.

    def work(name, made):                       # of a command, for one input
        for path in files:
            made.input(path, "picture")
        if made.is_complete():                  # the same inputs and settings, from an earlier run
            return made.result
        made.play(["picturesrc", f"location={name}", "!", ..., f"location={made.path('normals.png')}"])
        made.report.figure("mean residual", 0.03, at_most=0.08)
        return made.finish()

    return job.run_all(options, "photostereo", folders, work)

Outputs are written into a hidden folder beside the target. finish() adds report.html and result.json, and renames the folder,
after which all of them are there. A failure or a signal before leaves the target as it was. result.json has hashes
of inputs and settings, so that a result is known again. Settings are all options of the command that are not as their defaults,
and what it tells with setting().
"""
import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import shutil
import time

from . import library, play, publish
from .command import NO_RESULT, NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure, Stopped, explain, say, whole, with_name
from .progress import Progress
from .publish import WORK, each_file_below, files_below, hidden, sync
from .report import Report
from .report.page import is_unchecked

SCHEMA = "gst-imaging-result-v1"
PARTIAL = "partial"  # a setting of results that lack something: the next run replaces them


def add_arguments(parser):
    """The arguments of every command that makes a result."""
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True,
                        help="folder of the result; of several inputs each has its own folder in it")
    parser.add_argument("--overwrite", action="store_true", help="make a result again that is there, or replace another one")


def check_name(path):
    """picturesink takes %d for the number of a frame, wherever it is in a path, and the text of a pipeline no line breaks."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        raise Failure(WRONG_USE, f"{path!r} has a line break or another control character. Choose another folder for the results.")
    if "%" in path and library.numbered(path) is not None:
        raise Failure(WRONG_USE, f"{path} has a % with a d or u behind, which stands for numbers. Choose another folder for the results.")


def reason(error):
    """Returns: what an OSError says; NumPy's has no number where a file became shorter than it should: there is no space for it"""
    return error.strerror or f"there is no space for all of it ({error})"


def is_output(entry):
    """Does it name a file below the folder of its result?"""
    name = entry.get("name") if isinstance(entry, dict) else None
    return isinstance(name, str) and name not in ("", ".", "..") and not name.startswith(("/", "../")) \
        and os.path.normpath(name) == name


def read_result(folder):
    """Returns: what result.json of a folder says; None where there is none of ours. A stranger may have made it: its outputs
    are files below the folder, or it is not ours"""
    from . import metadata

    try:
        result = metadata.read_json(os.path.join(folder, "result.json"))
    except (OSError, ValueError):
        return None
    if not isinstance(result, dict) or result.get("schema") != SCHEMA or not isinstance(result.get("outputs"), list):
        return None
    return result if all(map(is_output, result["outputs"])) else None


def without_folder(value):
    """Returns: an option, of a file its name"""
    if isinstance(value, (list, tuple)):
        return type(value)(map(without_folder, value))
    return os.path.basename(os.path.normpath(value)) if isinstance(value, str) and os.path.exists(value) else value


def key_of(command, inputs, settings):
    """Returns: the hash of what decides on a result. Names of inputs count, their folders do not"""
    told = {"command": command, "settings": settings,
            "inputs": [[entry["role"], os.path.basename(entry["path"]), entry["sha256"]] for entry in inputs]}
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def damage(folder, result):
    """Returns: what a result lacks, the first file that is missing or has another size; "" where nothing is"""
    for entry in result["outputs"]:
        try:
            size = os.path.getsize(os.path.join(folder, entry["name"]))
        except (OSError, ValueError):
            return f"{entry['name']} is missing"
        if size != entry.get("size"):
            return f"{entry['name']} has {size} bytes and not {entry.get('size')}"
    return ""


def stamp(path):
    """Returns: what differs when a file is another one or has been written; of a folder, for all files in it. None without a file"""
    try:
        if os.path.isdir(path):
            return {name: stamp(os.path.join(path, name)) for name in files_below(path)}
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


class Busy(Failure):
    """Another process works on the same result, and will end."""


class Stale(Failure):
    """The result is damaged or of other inputs or settings, and may be replaced only with --overwrite."""


class Job:
    """For with: the outputs of one input. See the module."""

    def __init__(self, command, target, title, options):
        self.command, self.overwrite = command, options.overwrite
        self.target = os.path.realpath(target) if os.path.islink(target) else os.path.abspath(target)
        self.name = os.path.basename(os.path.normpath(title))
        self.report = Report(f"{command}: {self.name}", options.argv)
        self.given = options.given
        self.settings, self.result, self.start = {}, None, time.time()
        self.nothing = None  # a sentence, where nothing could be measured: the report is made, and the command fails
        self.folder, self.lock, self.new_parents = None, None, []
        self.is_live = False  # set before open() where the work cannot be done again, as a recording
        self.hashes = None  # of files by path, where several jobs share them
        self.damage = ""  # what the result of these inputs and settings lacks
        self.stamps = {}  # of inputs, from before their hash
        self.lines = []  # for people, printed when the outputs are in their place: a reader that has gone ends the command then

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        with whole():
            for _ in range(3):  # a pipeline that was stopped may still make a file
                if self.folder and os.path.isdir(self.folder) and not publish.is_needed(self.folder):
                    shutil.rmtree(self.folder, ignore_errors=True)
            for parent in self.new_parents:
                with contextlib.suppress(OSError):  # it is not empty
                    os.rmdir(parent)
            if self.lock is not None:
                os.close(self.lock)
                self.lock = None

    def input(self, path, role):
        """A file that decides on the result, with its hash."""
        return self.take_inputs([(path, role)])[0]

    def take_inputs(self, files):
        """Several, which are hashed at the same time. files: paths and roles. Returns: their entries"""
        for path, _role in files:
            if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):  # its end may never come
                raise Failure(UNREADABLE, f"{path} is no regular file: it is a pipe or device.")
        for path, _role in files:
            self.stamps.setdefault(os.path.abspath(path), stamp(path))
        try:
            return self.report.take_inputs(files, self.hashes)
        except OSError as error:
            raise Failure(UNREADABLE, f"{error.filename or files[0][0] or 'A file without a name'} cannot be read: {error.strerror}.") from error

    def check_inputs(self):
        """Fails where an input is another one than when its hash was taken: nobody knows which of the two was read."""
        changed = [path for path, before in self.stamps.items() if stamp(path) != before]
        if changed:
            raise Failure(UNREADABLE, f"{changed[0]} changed while it was read. The result was not kept. Run the command again when the"
                                      " file is complete.")

    def setting(self, name, value, default=None, unit=""):
        """What else decides on the result, or what an option has become. The report has it where it is not the default."""
        self.settings[name] = value
        if value != default:
            self.report.setting(f"gst-imaging {self.command}", name, value, default if default is not None else "", unit)

    def tell_given(self):
        for name, (value, default) in self.given.items():
            if name not in self.settings:
                self.setting(name, without_folder(value), default)

    def warn(self, sentence):
        """Into the report and to standard error, once. Files are named as they will be."""
        sentence = sentence.replace(self.folder, self.target) if self.folder else sentence
        if sentence not in self.report.warnings:
            name = "" if os.path.basename(sentence.split(" ")[0]) == self.name else f"{self.name}: "
            say(f"gst-imaging {self.command}: {name}{sentence}")
            self.report.warning(sentence)

    def key(self):
        return key_of(self.command, self.report.inputs, self.settings)

    def look(self, outside=None):
        """Is the result of these inputs and settings there? Then result is what its result.json says. Changes no file.

        outside: a file in another folder that belongs to the result"""
        self.tell_given()
        found = read_result(self.target)
        if found and found.get("key") == self.key():
            self.damage = damage(self.target, found) or (f"{outside} is missing" if outside and not os.path.exists(outside) else "")
            if not self.damage:
                self.result = {**found, "output": self.target, "made": False}
        return bool(self.result)

    def is_complete(self, outside=None):
        """As look(), for one that makes the result if it is not there: a result that was half replaced is repaired. With --overwrite
        none is complete."""
        self.recover()
        return not self.overwrite and self.look(outside)

    def check_target(self):
        """Fails where something is that must not be replaced."""
        if not os.path.lexists(self.target):
            return
        if not os.path.isdir(self.target):
            raise Failure(NOT_WRITTEN, f"{self.target} is no folder. Choose another name for the result.")
        result = read_result(self.target)
        ours = {entry["name"] for entry in result["outputs"]} | {"result.json"} if result else set()
        other = next((name for name in each_file_below(self.target, WORK) if name not in ours), None)
        if other:
            raise Failure(NOT_WRITTEN, f"{self.target} has files that are no part of a result, as {other}: nothing is"
                                       " written there. Choose a folder that is empty, or that does not exist.")
        inside = [path for path in (entry["path"] for entry in self.report.inputs)
                  if os.path.realpath(path).startswith(os.path.realpath(self.target) + os.sep)]
        if inside:
            raise Failure(NOT_WRITTEN, f"{inside[0]} is an input, and lies in the result that would be replaced. Choose another folder.")
        if result and not self.overwrite and not result.get("options", {}).get(PARTIAL) and not result.get("nothing"):
            if self.damage:
                raise Stale(NOT_WRITTEN, f"{self.target} is damaged: {self.damage}. --overwrite makes it again.")
            raise Stale(NOT_WRITTEN, f"{self.target} has another result, of {result.get('written')}. --overwrite replaces it;"
                                     " or choose another folder.")

    def must_stay(self):
        """Is the target a folder that cannot be renamed: one where we are, or where a file system begins?"""
        here = os.getcwd() + os.sep
        return os.path.isdir(self.target) and (
            here.startswith(os.path.realpath(self.target) + os.sep) or os.path.ismount(self.target)
            or not os.access(os.path.dirname(self.target), os.W_OK))

    def take_lock(self, folder):
        """Returns: its descriptor"""
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise Busy(NOT_WRITTEN, f"Another gst-imaging is writing {self.target}.") from None
        except OSError:
            pass  # a file system without locks
        return lock

    def recover(self):
        """Repairs what a process left that was killed while its result appeared."""
        if self.folder or not publish.needs_recovery(self.target):
            return
        places = os.path.join(self.target, WORK), hidden(self.target, "work")
        locks = []
        try:
            locks += [self.take_lock(place) for place in places if os.path.isdir(place)]
            with whole():
                publish.recover(self.target, read_result)
        except OSError as error:
            raise Failure(NOT_WRITTEN, f"{self.target} has a result that was half replaced, and cannot be repaired: {error.strerror}.") from error
        finally:
            for lock in locks:
                os.close(lock)

    def check_left(self, folder):
        """For a hidden folder that a killed process may have left, before it is emptied"""
        left = files_below(folder)
        if left and self.is_live and not self.overwrite:
            raise Failure(NOT_WRITTEN, f"{folder} has what a run that was killed had recorded ({len(left)} files). Rename the folder to keep it;"
                                       " --overwrite removes it.")
        if left:
            say(f"gst-imaging {self.command}: {self.name}: {folder} has files of a run that was killed. They are removed.")

    def open(self):
        """Makes the hidden folder, once; one that a killed process left is used again."""
        if self.folder:
            return
        check_name(self.target)
        self.recover()
        self.check_target()
        parent = os.path.dirname(self.target)
        folder = os.path.join(self.target, WORK) if self.must_stay() else hidden(self.target, "work")
        if os.path.islink(folder):  # what it has is emptied
            raise Failure(NOT_WRITTEN, f"{folder} is a link, and the place to work in. Remove it.")
        while not os.path.isdir(parent):
            self.new_parents.append(parent)
            parent = os.path.dirname(parent)
        try:
            os.makedirs(folder, exist_ok=True)
            self.lock = self.take_lock(folder)
            self.check_left(folder)
            self.folder = folder
            for entry in os.scandir(folder):
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.remove(entry.path)
        except OSError as error:
            raise Failure(NOT_WRITTEN, f"{self.target} cannot be written: {reason(error)}.") from error

    def path(self, name):
        """Returns: where to write the output of this name; it is in the target after finish()."""
        self.open()
        return os.path.join(self.folder, name)

    def play(self, words, unit="", total=0, take_message=None, count=play.part_done, prepare=None, warn=None, at_end=None):
        """Plays a pipeline (words as play.parse() takes them) to its end: settings, backends and warnings go into the report.

        unit, total: what progress counts. prepare gets the pipeline before it plays, as for properties that are arrays; warn
        gets the warnings in the place of warn(). at_end: as of play.play().
        """
        self.open()
        pipeline = play.parse(words)
        if prepare:
            prepare(pipeline)
        settings = list(play.settings_of(pipeline))
        with Progress(self.name, unit, total) as progress:
            try:
                backends = play.play(pipeline, warn or self.warn, take_message, progress if total else None, count, at_end)
            except Failure as failure:
                raise Failure(failure.code, str(failure).replace(self.folder, self.target)) from failure
        self.tell_settings(settings)  # not of a pipeline that failed, and is played again with others
        for element, backend in backends.items():
            self.report.fact(f"backend of {element}", backend)

    def tell_settings(self, settings):
        for element, name, value, default, unit in settings:
            if not value.startswith(self.folder):  # names of outputs
                self.report.setting(element, name, value, default, unit)

    def tell_facts(self):
        about = json.loads(library.describe(library.gstreamer()) or "{}")
        self.report.fact("gst-imaging", about.get("version"))
        self.report.fact("GStreamer", ".".join(map(str, library.gstreamer().version()[:3])))
        self.report.fact("computed in", f"{time.time() - self.start:.1f} s")
        return about.get("version")

    def finish(self, **figures):
        """Writes report.html and result.json, and lets all outputs appear. figures: of the command, for result.json.
        Returns: what --json prints"""
        self.open()
        self.check_inputs()
        self.tell_given()
        if self.nothing:
            self.report.warning(self.nothing)
            before = read_result(self.target)
            if before and not before.get("nothing"):
                raise Failure(NO_RESULT, f"{self.nothing} The result that was there stays.")
        version = self.tell_facts()
        try:
            self.report.write(os.path.join(self.folder, "report.html"))
            outputs = [{"name": name, "size": os.path.getsize(os.path.join(self.folder, name))}
                       for name in files_below(self.folder)]
            self.result = {"schema": SCHEMA, "command": self.command, "version": version,
                           "key": self.key(),
                           "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                           "options": self.settings, "outputs": outputs, **self.report.result(), **figures}
            if self.nothing:
                self.result["nothing"] = self.nothing
            with open(os.path.join(self.folder, "result.json"), "w", encoding="utf-8") as file:
                json.dump(self.result, file, indent=1)
                file.write("\n")
            for name in files_below(self.folder):
                sync(os.path.join(self.folder, name))
            self.publish()
        except OSError as error:
            raise Failure(NOT_WRITTEN, f"{self.target} cannot be written: {reason(error)}.") from error
        self.result.update(output=self.target, made=True)
        return self.result

    def is_published(self):
        """Did the outputs appear? For those whom a signal keeps from the end of finish()."""
        return bool(self.result) and "outputs" in self.result and read_result(self.target) == json.loads(
            json.dumps({name: value for name, value in self.result.items() if name not in ("output", "made")}))

    def publish(self):
        with whole():
            self.check_target()
            if os.path.dirname(self.folder) == self.target:
                publish.move_in(self.target)
            elif read_result(self.target) is None:
                os.rename(self.folder, self.target)  # also over an empty folder
            elif publish.exchange(self.folder, self.target):  # what has been replaced makes room: another may begin under that name
                self.folder = publish.set_aside(self.folder, self.target)
            else:
                self.folder = publish.replace(self.folder, self.target)
            sync(os.path.dirname(self.target))


def targets(output, inputs):
    """Returns: the folder of the result of each input: output itself, of several one with the name of the input in it, of files
    without the extension."""
    if len(inputs) == 1:
        return [output]
    names = [os.path.basename(os.path.abspath(path)) for path in inputs]
    names = [(name if os.path.isdir(path) else os.path.splitext(name)[0]) or "root" for path, name in zip(inputs, names)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise Failure(WRONG_USE, f"Two inputs have the name {twice}, and their results would have the same folder."
                                 " Run the command for each of them with an output of its own.")
    return [os.path.join(output, name) for name in names]


def attempt(work, path, made):
    """Returns: what work() does. A full disk that it did not expect is a sentence"""
    try:
        return work(path, made)
    except OSError as error:
        code, sentence = explain(error)
        raise Failure(code, sentence if error.filename else f"{made.target} cannot be written: {reason(error)}.") from error


def run_all(options, command, inputs, work, folders=None):
    """work(input, Job) for one input after the other. One that fails does not keep the others from it. folders: of the
    results, in the place of targets().

    Returns: the result of work, of several inputs a list of them; raises Failure with the code of the first failure.
    """
    if not options.output:
        raise Failure(WRONG_USE, "-o is empty: name the folder for the results.")
    check_name(os.path.abspath(options.output))
    results, failed, new_job = [], [], getattr(options, "new_job", Job)
    for path, target in zip(inputs, folders or targets(options.output, inputs)):
        made, before = None, len(results)
        try:
            with new_job(command, target, path, options) as made:
                results.append(attempt(work, path, made))
            tell(options, results[-1], made.lines)
            if results[-1].get("nothing"):
                raise Failure(NO_RESULT, results[-1]["nothing"], results[-1])
        except Failure as failure:
            if made:
                failure.result.setdefault("warnings", made.report.warnings)
            if len(inputs) == 1:
                raise
            if not isinstance(failure, Busy):  # a row is tried again each second; the sentence at the end has it
                say(f"gst-imaging {command}: {with_name(path, failure)}")
            failed.append((path, failure))
        except Stopped as stopped:
            if made and len(results) == before and not stopped.sentence and made.is_published():
                results.append({**made.result, "output": made.target, "made": True})
            done = ", ".join(result["output"] for result in results)
            nothing = "" if stopped.sentence else "Nothing is complete, and nothing was written."
            stopped.sentence = " ".join(filter(None, (f"Complete: {done}." if done else nothing, stopped.sentence)))
            stopped.result = {"results": results}
            raise
    if failed:
        n = len(inputs) - len(failed)
        others = f" The other {n} are complete." if n else ""
        kinds = {type(failure): failure for _path, failure in failed}
        kind = Busy if Busy in kinds else Failure if len(kinds) > 1 else next(iter(kinds))
        others += f" {kinds[Busy]}" if kind is Busy else ""
        raise kind(failed[0][1].code, f"{len(failed)} of {len(inputs)} inputs failed:"
                                      f" {', '.join(path for path, _failure in failed)}.{others}",
                   {"results": results, "warnings": [sentence for _path, failure in failed for sentence in failure.result.get("warnings", [])]})
    return results[0] if len(inputs) == 1 else {"results": results}


def tell(options, result, lines):
    """For people: lines of the command, and one of the result."""
    if options.json:
        return
    for line in lines:
        print(line)
    missed = [figure["name"] for figure in result["figures"] if figure["met"] is False]
    state = "complete" if result["made"] else "was complete already (the same inputs and settings)"
    state = "no result" if result.get("nothing") else state
    more = f", {len(result['warnings'])} warning{'s'[:len(result['warnings']) != 1]}" if result["warnings"] else ""
    more += f", beyond its limit: {', '.join(missed)}" if missed else ""
    unchecked = [figure["name"] for figure in result["figures"] if is_unchecked(figure)]
    more += f", not checked: {', '.join(unchecked)}" if unchecked else ""
    here = os.path.relpath(result["output"])
    folder = result["output"] if here.startswith("..") else here
    pages = [dict(result["facts"]).get("page"), "report.html"]
    print(f"{folder}: {state}{more}; see {' and '.join(os.path.join(folder, page) for page in pages if page)}")
