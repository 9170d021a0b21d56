# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts here share: how they start and end, the files they write, and a pipeline that is played to its end.

gst-launch-1.0 1.22 sometimes waits for ever when an error comes before it plays; these scripts run in other people's
scripts, and do not.
"""
import contextlib
import functools
import os
import re
import shutil
import signal
import sys
import tempfile
import warnings

NAME = os.path.basename(os.path.realpath(sys.argv[0]))


class Stopped(BaseException):
    """By a signal, as that of Ctrl-C."""


def stop(number, _frame):
    raise Stopped(number)


def describe(error):
    """Returns: an exception as a sentence."""
    if isinstance(error, OSError) and error.filename is not None:
        return f'"{error.filename}": {error.strerror}.'
    if isinstance(error, UnicodeEncodeError):  # in a word of a pipeline
        word = next((word for word in sys.argv[1:] if not word.isprintable()), error.object)
        return f'"{word.encode(errors="replace").decode()}" is not UTF-8, which GStreamer needs. Rename the file.'
    return f"{error.strerror}." if isinstance(error, OSError) and error.strerror else str(error)


def say(sentence):
    """Writes it to standard error, on a terminal in the place of the progress that stands there."""
    print(("\r\033[K" if sys.stderr.isatty() else "") + f"{NAME}: {sentence}", file=sys.stderr)


@functools.lru_cache(maxsize=None)
def warn(sentence):
    """Once: a second pipeline over the same files has the same warnings."""
    say(sentence)


def run(main, doc):
    """Runs a script, by pipelines/env: a failure is a sentence and the exit status 1; a signal, or a reader of its
    output that has gone, ends it as it ends other programs. doc: what --help says, None where main knows."""
    if doc and sys.argv[1:] in (["-h"], ["--help"]):
        print(doc)
        return
    if "GST_IMAGING_ENV" not in os.environ:
        here = os.path.dirname(os.path.realpath(__file__))
        os.execv(os.path.join(here, "env"), ["env", sys.executable, *sys.argv])
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        main()
        sys.stdout.flush()
    except Stopped as stopped:
        kill(stopped.args[0])
    except BrokenPipeError:
        kill(signal.SIGPIPE)
    except (OSError, RuntimeError, UnicodeEncodeError) as error:
        say(describe(error))
        with contextlib.suppress(OSError):  # what cannot be written is not tried again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)


def kill(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Outputs:
    """For with: files that appear together in the end, or not at all. A failure, or a signal, leaves nothing that could
    be mistaken for a result, and what was there before. reads: files that must not be replaced."""

    def __init__(self, *reads):
        self.reads = [path for path in reads if os.path.exists(path)]

    def __enter__(self):
        self.partials, self.folders, self.stale, self.claimed = [], [], [], []
        return self

    def check(self, path, option=None):
        """Fails where a word of the command line names the file path, which would be lost, but for the one that
        names it as an output: path, or option."""
        words = [text for word in sys.argv[1:] for text in {word, word.partition("=")[2]} if text]
        same = [text for text in words if os.path.isfile(text) and os.path.isfile(path) and os.path.samefile(text, path)]
        if len(same) > ((option or path) in same):
            raise RuntimeError(f'"{path}" cannot be written: the command line names that file twice, and what is in it'
                               " would be lost. Choose another name for the output.")

    def claim(self, path):
        """Returns: the file that path will be; fails where another output will be it."""
        target = os.path.realpath(path)
        if target in self.claimed:
            raise RuntimeError(f'"{path}" cannot be written: two outputs have that name. Choose another one.')
        self.claimed.append(target)
        return target

    def add(self, path):
        """Returns: the name of a file beside path, to be written, which takes its place in the end. A link stays one.
        A pipe or device, as /dev/stdout, is written at once."""
        if os.path.exists(path) and any(os.path.samefile(path, read) for read in self.reads):
            raise RuntimeError(f'"{path}" would be replaced, and it is read. Choose another name or folder for the results.')
        if os.path.exists(path) and not os.path.isfile(path):
            if os.path.isdir(path):
                raise RuntimeError(f'"{path}" cannot be written: it is a folder.')
            return path
        self.check(path)
        target = self.claim(path)
        folder, name = os.path.split(target)
        try:
            file, partial = tempfile.mkstemp(prefix=f".{name}.", suffix=os.path.splitext(name)[1], dir=folder)
        except OSError as error:
            raise RuntimeError(f'"{path}" cannot be written: {error.strerror}.') from None
        os.close(file)
        self.partials.append((partial, target))
        return partial

    def add_folder(self, path):
        """Returns: the name of a new folder in the folder path; what is in it in the end appears there."""
        try:
            folder = tempfile.mkdtemp(prefix=".", dir=path or ".")
        except OSError as error:
            raise RuntimeError(f'"{path}" cannot be written to: {error.strerror}.') from None
        self.folders.append((folder, path or "."))
        return folder

    def drop(self, path):
        """Of the same outputs in another run, which would not belong to these."""
        self.stale.append(path)

    def publish(self):
        umask = os.umask(0)
        os.umask(umask)
        self.partials, empty = [p for p in self.partials if os.path.getsize(p[0])], \
            [p for p in self.partials if not os.path.getsize(p[0])]
        for partial, _target in empty:  # of what did not come
            os.remove(partial)
        for partial, target in self.partials:
            old = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~umask
            os.chmod(partial, old)
        for folder, path in self.folders:
            self.partials += [(os.path.join(folder, name), os.path.join(path, name)) for name in os.listdir(folder)]
        for partial, target in self.partials:
            os.replace(partial, target)
        for path in self.stale:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)

    def __exit__(self, kind, _error, _traceback):
        numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        old = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        try:
            # a signal comes before or after all of them
            signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
            if kind is None and not signal.sigpending() & numbers:
                self.publish()
        finally:
            for partial, _target in self.partials:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(partial)
            for folder, _path in self.folders:
                shutil.rmtree(folder, ignore_errors=True)
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


@contextlib.contextmanager
def writing(path, *reads):
    """For with: Outputs of one file."""
    with Outputs(*reads) as outputs:
        yield outputs.add(path)


def slc_files(location):
    """Returns: the files that slcsrc reads of an image: itself and, of a PRM file, its SLC_file, in the working folder or
    beside it."""
    found = [location]
    if os.path.isfile(location) and os.path.getsize(location) < 1 << 20:
        with open(location, encoding="utf-8", errors="replace") as file:
            names = re.findall(r"^\s*SLC_file\s*=\s*(\S.*?)\s*$", file.read(), re.MULTILINE)
        for name in {word for line in names for word in (line, line.split()[0])}:
            found += [name, os.path.join(os.path.dirname(location), name)]
    return found


def need_display(what):
    """Fails where there is no display: the sinks of GStreamer crash, or show nothing and say nothing."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise RuntimeError(f"{what} needs a display, and there is none: DISPLAY and WAYLAND_DISPLAY are not set.")


def show_progress(structure):
    """For play(): an element message "ELEMENT-progress" (of slcsrc, insarxcorr, ...) as a line on a terminal."""
    name, what = structure.get_name(), structure.nth_field_name(0)
    if name.endswith("-progress") and sys.stderr.isatty():
        done, of = structure.get_value(what), structure.get_value("of")
        sys.stderr.write(f"\r{name[:-9]}: {done} of {of} {what}\033[K" + ("\n" if done == of else ""))


def quote(word):
    """Returns: a word as it is written in a pipeline; a value may have any characters."""
    name, equals, value = word.partition("=")
    return name + equals + re.sub(r"""([\\"' ])""", r"\\\1", value)


def parse(words):
    """Returns: Gst and the pipeline, an argument a word."""
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst

    Gst.init(None)
    # a value that a property does not take is only warned of, and the default would be used
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            pipeline = Gst.parse_launch(" ".join(map(quote, words)))
        except GLib.Error as error:
            raise RuntimeError(error.message) from None
    if said:
        raise RuntimeError(f"The {said[0].message}.")
    return Gst, pipeline


def describe_error(message):
    """Returns: the sentence of an error, and what GStreamer says beside it: of its own elements that is the cause."""
    error, debug = message.parse_error()
    beside = "; ".join((debug or "").split("\n")[1:])
    return f"{error.message} ({beside})" if beside else error.message


def play(words, tell=None, take_warning=warn):
    """Plays the pipeline, an argument a word, and writes its warnings. tell: gets the structure of every element
    message; take_warning: the sentence of every warning. Returns: what came out of an appsink "out", if there is one."""
    Gst, pipeline = parse(words)
    bus, out, text = pipeline.get_bus(), pipeline.get_by_name("out"), b""
    types = Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.WARNING
    if tell:
        types |= Gst.MessageType.ELEMENT
    pipeline.set_state(Gst.State.PLAYING)
    try:
        while True:
            # Python sees a signal only in between
            message = bus.timed_pop_filtered(50 * Gst.MSECOND, types)
            while out and (sample := out.emit("try-pull-sample", 0)):
                buffer = sample.get_buffer()
                text += buffer.extract_dup(0, buffer.get_size())
            if not message:
                continue
            if message.type == Gst.MessageType.ERROR:
                raise RuntimeError(describe_error(message))
            if message.type == Gst.MessageType.EOS:
                break
            if message.type == Gst.MessageType.WARNING:
                take_warning(message.parse_warning()[0].message)
            else:
                tell(message.get_structure())
    except RuntimeError:
        pipeline.set_state(Gst.State.NULL)
        raise
    # not after a signal: the end of what is measured just now may be far away
    pipeline.set_state(Gst.State.NULL)
    return text


def read_size(source):
    """Returns: width and height of what a source gives, from its words."""
    Gst, pipeline = parse([*source, "!", "fakesink", "name=sink"])
    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PAUSED)
    try:
        message = bus.timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.ASYNC_DONE | Gst.MessageType.ERROR)
        if message.type == Gst.MessageType.ERROR:
            raise RuntimeError(describe_error(message))
        caps = pipeline.get_by_name("sink").get_static_pad("sink").get_current_caps().get_structure(0)
        return caps.get_value("width"), caps.get_value("height")
    finally:
        pipeline.set_state(Gst.State.NULL)
