# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command `gst-imaging`: one module of `commands` for each of its commands.

A command module has a docstring, whose first line is its summary; EXAMPLES, a list of (arguments, what they do);
add_arguments(parser); and run(options), which returns what --json prints and prints the same for people otherwise; None is no
result.
"""
import argparse
import importlib
import json
import pkgutil
import signal
import sys

from . import commands

# Exit codes of every command.
DONE, NO_RESULT, WRONG_USE, UNREADABLE, NOT_WRITTEN = range(5)
CODES = """exit codes: 0 done, 1 no result, 2 wrong use, 3 input unreadable, 4 output not written"""


class Failure(Exception):
    """Ends a command with one sentence and an exit code."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def load(name):
    return importlib.import_module(f"{commands.__name__}.{name.replace('-', '_')}")


def names():
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__))


def summary(module):
    return module.__doc__.strip().splitlines()[0].rstrip(".")


def overview():
    width = max(len(name) for name in names())
    lines = "\n".join(f"  {name:{width}}  {summary(load(name))}" for name in names())
    return f"usage: gst-imaging COMMAND [ARGUMENT...]\n\ncommands:\n{lines}\n\n" \
           f"gst-imaging COMMAND --help explains one of them; every command has --json.\n{CODES}"


class Parser(argparse.ArgumentParser):
    """Of one command. Its help ends with the examples, its errors are one sentence."""

    def __init__(self, name, module):
        examples = "\n".join(f"  gst-imaging {name} {words}".rstrip() + f"\n      {meaning}" for words, meaning in module.EXAMPLES)
        super().__init__(prog=f"gst-imaging {name}", description=module.__doc__.strip(),
                         epilog=f"examples:\n{examples}\n\n{CODES}",
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--json", action="store_true", help="print the result as one JSON object")
        module.add_arguments(self)

    def error(self, message):
        raise Failure(WRONG_USE, f"{message[:1].upper()}{message[1:]}. Try gst-imaging {self.prog.split()[-1]} --help.")


def execute(name, arguments):
    module = load(name)
    options = Parser(name, module).parse_args(arguments)
    result = module.run(options)
    if options.json:
        print(json.dumps(result))
    return DONE if result is not None else NO_RESULT


def report(name, failure, as_json):
    if as_json:
        print(json.dumps({"error": str(failure), "exit-code": failure.code}))
    print(f"gst-imaging {name}: {failure}", file=sys.stderr)
    return failure.code


def main(arguments=None):
    """Returns: the exit code"""
    arguments = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as other programs end when their reader has gone
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview())
        return DONE if arguments else WRONG_USE
    name, *rest = arguments
    if name == "--version":
        name, rest = "info", ["--version"]
    if name not in names():
        print(f'gst-imaging: There is no command "{name}"; there are {", ".join(names())}.', file=sys.stderr)
        return WRONG_USE
    try:
        code = execute(name, rest)
        sys.stdout.flush()
    except Failure as failure:
        return report(name, failure, "--json" in rest)
    except OSError as error:
        sys.stdout = None  # nothing more can be written there
        print(f"gst-imaging {name}: The output cannot be written: {error.strerror}.", file=sys.stderr)
        return NOT_WRITTEN
    return code
