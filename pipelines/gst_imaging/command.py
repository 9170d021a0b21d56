# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command `gst-imaging`: one module of `commands` for each of its commands.

A command module has a docstring, whose first line is its summary; EXAMPLES, a list of (arguments, what they do);
add_arguments(parser); and run(options), which returns what --json prints and prints the same for people otherwise; None is no
result.
"""
import argparse
import contextlib
import errno
import importlib
import json
import os
import pkgutil
import re
import signal
import sys

from . import commands

# Exit codes of every command.
NO_ROOM = errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EROFS
DONE, NO_RESULT, WRONG_USE, UNREADABLE, NOT_WRITTEN = range(5)
CODES = """exit codes: 0 done, 1 no result, 2 wrong use, 3 input unreadable, 4 output not written"""


class Failure(Exception):
    """Ends a command with one sentence and an exit code. result: what --json prints beside them, a dictionary."""

    def __init__(self, code, sentence, result=None):
        super().__init__(sentence)
        self.code, self.result = code, result or {}


class Stopped(BaseException):
    """By a signal, as that of Ctrl-C. sentence: what is complete; result: more of what --json prints"""

    def __init__(self, number):
        super().__init__(number)
        self.number, self.sentence, self.result = number, "", {"results": []}


SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


held = []  # one for each whole() that is being done; a signal that came meanwhile
received = []  # the signal that ends the command
printed = []  # whether the one JSON object of --json has been


@contextlib.contextmanager
def whole():
    """What is in it is done wholly: a signal that comes meanwhile counts behind it. To block signals would not do: one
    then comes to a thread of GStreamer, and Python handles it here all the same."""
    held.append(None)
    try:
        yield
    finally:
        number = held.pop()
        if number:
            stop(number, None)


def is_called_back(frame):
    """Does C code wait for this frame that does not expect it to fail? PyGObject's then crashes, what a finalizer raises is lost, and
    of a module that is being loaded another error is made."""
    while frame:
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "__del__" or module.split(".")[0] in ("gi", "weakref", "importlib", "_frozen_importlib", "_frozen_importlib_external"):
            return True
        frame = frame.f_back
    return False


def ignore(_number, _frame):
    """What ends now is not interrupted. Not SIG_IGN: Python prints an error for a signal that waits when it is set."""


def stop(number, frame):
    if held:
        held[0] = number
        return
    for other in SIGNALS:
        signal.signal(other, ignore)
    received[:] = [number]
    stop_soon(number, frame)


def stop_soon(_number, frame):
    if is_called_back(frame):
        signal.signal(signal.SIGALRM, stop_soon)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        raise Stopped(received[0])


def explain(error):
    """Returns: exit code and sentence of an OSError"""
    if error.errno is None:  # NumPy's, of a file that could not be written whole
        return NOT_WRITTEN, f"A file cannot be written: {error}. There may be no space left on the device."
    code = NOT_WRITTEN if error.errno in NO_ROOM else UNREADABLE
    return code, f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."


def with_name(path, failure):
    """Returns: a sentence that names the input, once"""
    sentence = str(failure)
    return sentence if sentence.startswith((f"{path} ", f"{path}: ", f'"{path}" ')) else f"{path}: {sentence}"


def absent(path, sentence):
    """Returns: the Failure for an input that os.path does not see: the sentence, or why it cannot be looked at"""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:
        sentence = f"{path} cannot be read: {error.strerror}."
    return Failure(UNREADABLE, sentence)


def say(sentence):
    """Writes it to standard error, on a terminal in the place of the progress that stands there. Where that fails, as on a full disk, the
    work goes on."""
    try:
        print(("\r\033[K" if sys.stderr.isatty() else "") + sentence, file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def load(name):
    return importlib.import_module(f"{commands.__name__}.{name.replace('-', '_')}")


def names():
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__))


def summary(name):
    """Returns: the first line of the docstring of a command, which is not imported for it: all of them take half a second"""
    path = os.path.join(commands.__path__[0], name.replace("-", "_") + ".py")
    with open(path, encoding="utf-8") as file:
        return next(line for line in file if line.startswith('"""')).strip('"\n').rstrip(".")


def overview():
    width = max(len(name) for name in names())
    lines = "\n".join(f"  {name:{width}}  {summary(name)}" for name in names())
    return f"usage: gst-imaging COMMAND [ARGUMENT...]\n\ncommands:\n{lines}\n\n" \
           f"gst-imaging COMMAND --help explains one of them; every command has --json.\n{CODES}"


class Parser(argparse.ArgumentParser):
    """Of one command. Its help ends with the examples, its errors are one sentence."""

    def __init__(self, name, module):
        self.module = module
        examples = "\n".join(f"  gst-imaging {name} {words}".rstrip() + f"\n      {meaning}" for words, meaning in module.EXAMPLES)
        super().__init__(prog=f"gst-imaging {name}", description=module.__doc__.strip(),
                         epilog=f"examples:\n{examples}\n\n{getattr(module, 'CODES', CODES)}",
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--json", action="store_true", help="print the result as one JSON object")
        module.add_arguments(self)

    def find_option(self, word):
        return self._option_string_actions.get(word)

    def parse(self, arguments):
        """Returns: the options; argv, the command; given, as given()"""
        with whole():  # argparse changes itself meanwhile, and what puts it back fails after an interruption
            options = self.parse_intermixed_args(arguments)
        options.argv = [*self.prog.split(), *arguments]
        options.given = self.given(options)
        return options

    def given(self, options):
        """Returns: {name: (value, default)} of each that is not as its default, but for those that say only where a result goes or
        is shown, or that it is one of several. This is all that a Job has to be told of an option"""
        found = {}
        for action in self._actions:
            if not action.option_strings or action.dest in ("help", "json", "output", "overwrite", "pairs", "view"):
                continue
            value, default = getattr(options, action.dest), action.default
            if value != (list(default) if action.nargs and isinstance(default, tuple) else default):
                found[action.option_strings[-1].lstrip("-")] = value, default
        return found

    @staticmethod
    def is_repeated(action):
        """May it be given several times?"""
        return isinstance(action, argparse._AppendAction)

    def error(self, message):
        wrong = re.match(r"argument (?:.*/)?(-\S+): invalid (\w+) value: '(.*)'$", message, re.DOTALL)
        if wrong:  # the name of a function of ours
            shape = self.find_option(wrong[1]).metavar or ""
            kind = {"int": "a whole number", "float": "a number", "positive": "a number above 0"}.get(wrong[2], shape)
            message = f'{wrong[1]} is "{wrong[3]}", and has to be {kind}'
        raise Failure(WRONG_USE, f"{message[:1].upper()}{message[1:]}. Try gst-imaging {self.prog.split()[-1]} --help.")


def execute(name, arguments):
    module = load(name)
    options = Parser(name, module).parse(arguments)
    result = module.run(options)
    if options.json:
        print_json(result)
    return DONE if result is not None else NO_RESULT


def print_json(result):
    """The whole line, whatever signal comes, and after it no other one."""
    with whole():
        printed.append(True)
        print(json.dumps(result), flush=True)


def report(name, failure, as_json):
    if as_json and not printed:
        print_json({"error": str(failure), "exit-status": failure.code, **failure.result})
    say(f"gst-imaging {name}: {failure}" if name else f"gst-imaging: {failure}")
    return failure.code


def end_by_signal(name, stopped, as_json):
    """Says what is complete, and ends as other programs do: a shell, and its loops, see the signal."""
    with contextlib.suppress(OSError):
        sentence = " ".join(filter(None, (f"Stopped by {signal.Signals(stopped.number).name}.", stopped.sentence)))
        if as_json and not printed:
            print_json({"error": sentence, "exit-status": 128 + stopped.number, **stopped.result})
        say(f"gst-imaging {name}: {sentence}")
    signal.signal(stopped.number, signal.SIG_DFL)
    os.kill(os.getpid(), stopped.number)


def flush():
    for stream in sys.stdout, sys.stderr:
        if stream:  # None: it was closed before the command began
            stream.flush()


def keep_descriptors():
    """Opens those of the standard streams that are closed, or a file of ours would get their number, and what is printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if not sys.stderr:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")


def drop(stream):
    """What is left in the buffer of standard output or error would fail once more when Python ends."""
    with contextlib.suppress(OSError):  # it is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def dispatch(name, arguments):
    """Returns: the exit code"""
    if name in ("", "-h", "--help"):
        print(overview())
        return DONE if name else WRONG_USE
    if name == "--version":
        name, arguments = "info", ["--version"]
    if name not in names():
        print(f'gst-imaging: There is no command "{name}"; there are {", ".join(names())}.', file=sys.stderr)
        return WRONG_USE
    try:
        return execute(name, arguments)
    except SystemExit as done:  # argparse's, after the help
        return done.code


def take_signals():
    """Has stop() called for signals, also for one that came before and was blocked until here."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def main(arguments=None):
    """Returns: the exit code"""
    arguments = sys.argv[1:] if arguments is None else arguments
    printed.clear()
    keep_descriptors()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: names of files may be of any bytes
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as other programs end when their reader has gone
    name, *rest = arguments or [""]
    try:
        take_signals()
        code = dispatch(name, rest)
        flush()
        if received:  # and C code dropped the exception
            raise Stopped(received[0])
    except Failure as failure:
        return report(name, failure, "--json" in rest)
    except Stopped as stopped:
        return end_by_signal(name, stopped, "--json" in rest)
    except OSError as error:
        is_named = isinstance(error.filename, str) or error.errno is None
        failure = Failure(*explain(error)) if is_named else Failure(NOT_WRITTEN, f"The output cannot be written: {error.strerror}.")
        try:
            return report(name, failure, "--json" in rest)
        except OSError:  # nothing more can be written there
            say(f"gst-imaging {name}: {failure}")
            return NOT_WRITTEN
        finally:
            if not is_named:
                drop(sys.stdout)
    except Exception:
        if not received:
            raise
        # C code dropped the exception of the signal, and told a false value: NumPy's == of arrays does
        return end_by_signal(name, Stopped(received[0]), "--json" in rest)
    return code
