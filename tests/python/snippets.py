# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command and program in README.md and docs/ is one: elements, properties, their values, commands and options exist, files of
this repository are there, Python compiles, and C uses names that our headers have. So are settings in the prose, `name=value`.
Nothing is run; tutorials.py runs the tutorials."""
import ast
import collections
import contextlib
import glob
import io
import os
import re
import shlex
import subprocess
import sys
import unittest

from gi.repository import GObject
from support import Gst, SOURCE, blocks, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import command

# Elements of plug-ins that not every machine has: of cameras, Jetson, and windows
FOREIGN = re.compile(r"aravissrc|v4l2src|nv\w+|glimagesink|x264enc|libcamerasrc|cuda(up|down)load|cudaconvert|gtksink")
# What stands for a pipeline or for the reader's own names
PLACE = re.compile(r"^(\.\.\.|<.*>|[A-Z_]+|\$\w+)$")
SHELL = (">", ">>", "2>", "2>&1", "<", "|", "&", "&&", ";")
# What prose writes as name=value, but is no property of an element of ours: of caps, other elements, other programs, and the kernel
OTHERS = set("""argument bl-output bs buffer-size busy_poll cas content cuda-arch dimensions drop-allocation gpu hugetlb io-mode irqaffinity
    is-live isolcpus key max-size-buffers max-size-bytes max-size-time next-file nohz_full num_tensors pad property rcu_nocbs token types unsharp""".split())
# Values that are words of gst-imaging, of other elements, or said not to be
NO_VALUES = {("backend", "hybrid"), ("fit-snr", "auto"), ("format", "default")}
OPTIONS = {"-v", "-m", "-e", "-q", "-t", "--no-fault", "--messages", "--verbose", "--eos-on-shutdown", "--quiet", "--no-position"}


def pages():
    """(page, first line, language, text) of each block of code; the language of an indented one is empty"""
    for page in [os.path.join(SOURCE, "README.md"), *sorted(glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True))]:
        for start, language, text in blocks(page):
            yield os.path.relpath(page, SOURCE), start, language, text


def commands(text):
    """Command lines of a block, with here-documents and continuations: (words of a shell)"""
    text = re.sub(r"^(.*)<< '(\w+)'\n.*?\n\2$", r"\1", text, flags=re.M | re.S)
    for line in re.sub(r"\\\n\s*", " ", text).split("\n"):
        if not re.match(r"\s*(?:\$ )?(?:sudo |[A-Z_]+=\S+ )*(?:pipelines/env |\S*/)?(?:gst-launch-1\.0|gst-inspect-1\.0|gst-imaging|pipelines/|tools/|tests/)", line):
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:  # the quotes of prose
            continue
        comment = next((i for i, word in enumerate(words) if word.startswith("#")), None)
        yield words[:comment]


def fits(spec, value):
    """Whether a property takes a value, as far as the registry says: of enumerations, booleans and numbers"""
    value = value.strip("\"'")
    if re.fullmatch(r"[A-Z_]+|\$\w+|[a-zA-Z]|\.\.\.", value):  # the reader's own
        return True
    if GObject.type_is_a(spec.value_type, GObject.TYPE_ENUM):
        return value.isdigit() or value in [known.value_nick for known in spec.enum_class.__enum_values__.values()]
    if spec.value_type == GObject.TYPE_BOOLEAN:
        return value.lower() in ("true", "false", "yes", "no", "1", "0")
    if hasattr(spec, "minimum"):
        try:
            return spec.minimum <= (int(value, 16) if value.startswith("0x") else float(value)) <= spec.maximum
        except ValueError:
            return False
    return True


def our_properties():
    """{name: its specifications in our elements}"""
    found = collections.defaultdict(list)
    for feature in Gst.Registry.get().get_feature_list(Gst.ElementFactory):
        if feature.get_plugin().get_source() == "gst-imaging":
            for spec in Gst.ElementFactory.make(feature.get_name()).list_properties():
                found[spec.name].append(spec)
    return found


def wrong_in_prose(text, known):
    """Settings in inline code, name=value"""
    prose = re.sub(r"^    .*$", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.M)
    for code in re.findall(r"`([^`]+)`", prose):
        for word in code.split():
            setting = re.fullmatch(r"([a-z][\w-]*)=([^\s,;:]+).*", word)
            if not setting or setting[1] in OTHERS or setting.groups() in NO_VALUES:
                continue
            name, value = setting.groups()
            if name not in known:
                yield f"no element has a property {name} ({code})"
            elif not any(fits(spec, value) for spec in known[name]):
                yield f"{name} does not take {value} ({code})"


class Pipeline:
    """What gst-launch-1.0 is given, word by word. Caps, pads and references to names are left to the tutorials' tests."""

    def __init__(self):
        self.wrong, self.element = [], None

    def word(self, word):
        prop = re.match(r"([a-z][\w-]*(?:::[\w-]+)?)=", word)
        if word in ("!", ")", "(") or PLACE.match(word):
            self.element = "" if PLACE.match(word) else None
        elif "/" in word.split(",")[0].split("(")[0] and not prop:
            self.element = "capsfilter"
        elif prop:
            self.property(prop[1], word)
        elif re.fullmatch(r"[\w-]+\.[\w%-]*", word) or word.startswith(("(", "<", "'", '"')):
            return
        elif re.fullmatch(r"[a-z][a-z0-9_]*", word):
            self.element = word
            if not Gst.ElementFactory.find(word) and not FOREIGN.fullmatch(word):
                self.wrong.append(f"there is no element {word}")
        else:
            self.wrong.append(f"what is {word}")

    def property(self, name, word):
        factory = self.element and Gst.ElementFactory.find(self.element)
        if self.element is None:
            self.wrong.append(f"{word} belongs to no element")
        elif factory and "::" not in name and self.element != "capsfilter":
            spec = Gst.ElementFactory.make(self.element).find_property(name)
            value = word.split("=", 1)[1]
            if not spec:
                self.wrong.append(f"{self.element} has no property {name}")
            elif value and not fits(spec, value):
                self.wrong.append(f"{name} of {self.element} does not take {value}")


def wrong_in_pipeline(words):
    pipeline = Pipeline()
    for word in words:
        if word not in OPTIONS:
            pipeline.word(word)
    return pipeline.wrong


def wrong_in_imaging(words):
    if not words or words[0] in ("--help", "COMMAND") or PLACE.match(words[0]) or "--help" in words:
        return []
    if words[0] not in command.names():
        return [f"gst-imaging has no command {words[0]}"]
    module = command.load(words[0])
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            command.Parser(words[0], module).parse_intermixed_args([w for w in words[1:] if w != "..."])
    except (command.Failure, SystemExit) as failure:
        return [f"gst-imaging {words[0]}: {failure}"]
    return []


def wrong_in_command(words):
    words = [word for word in words if word != "$"]
    while words and (words[0] in ("sudo", "pipelines/env") or re.match(r"[A-Z_]+=", words[0])):
        words = words[1:]
    if not words:
        return []
    end = next((i for i, word in enumerate(words) if word in SHELL), None)
    words = words[:end]
    program, rest = words[0].split("/")[-1], words[1:]
    if re.match(r"(pipelines|tools|tests)/", words[0]) and "*" not in words[0] and \
            not os.path.exists(os.path.join(SOURCE, words[0].rstrip(".,"))):
        return [f"there is no {words[0]}"]
    if program == "gst-launch-1.0":
        return wrong_in_pipeline(rest)
    if program == "gst-inspect-1.0":
        return [f"there is no element {w}" for w in rest if re.fullmatch(r"[a-z]\w+", w) and not Gst.ElementFactory.find(w)
                and not FOREIGN.fullmatch(w)]
    return wrong_in_imaging(rest) if program == "gst-imaging" else []


def headers():
    text = ""
    for pattern in ("kernels/**/*.h", "common/**/*.h"):
        for path in glob.glob(os.path.join(SOURCE, pattern), recursive=True):
            with open(path, encoding="utf-8") as file:
                text += file.read()
    return set(re.findall(r"\w+", text))


class Snippets(unittest.TestCase):
    def check(self, languages, wrong, at_least):
        found, count = [], 0
        for page, line, language, text in pages():
            if language in languages:
                for sentence in wrong(text):
                    found.append(f"{page}:{line}: {sentence}")
                count += 1
        self.assertFalse(found, "\n" + "\n".join(found))
        self.assertGreaterEqual(count, at_least)

    def test_commands(self):
        seen = []

        def wrong(text):
            for words in commands(text):
                seen.append(words)
                for sentence in wrong_in_command(words):
                    yield f"{sentence} ({' '.join(words)[:70]})"

        self.check(("", "sh", "text"), wrong, 100)
        self.assertGreater(len(seen), 150)

    def test_settings_in_prose(self):
        known, found = our_properties(), []
        self.assertGreater(len(known), 300)
        for page in [os.path.join(SOURCE, "README.md"), *glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)]:
            with open(page, encoding="utf-8") as file:
                found += [f"{os.path.relpath(page, SOURCE)}: {sentence}" for sentence in wrong_in_prose(file.read(), known)]
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_python_compiles(self):
        def wrong(text):
            try:
                ast.parse(text)
            except SyntaxError as error:
                yield str(error)

        self.check(("python",), wrong, 5)

    def test_python_of_shell_blocks_compiles(self):
        def wrong(text):
            for name, code in re.findall(r"cat > \S+\.py << '(\w+)'\n(.*?)\n\1$", text, re.M | re.S):
                try:
                    ast.parse(code)
                except SyntaxError as error:
                    yield f"{name}: {error}"

        self.check(("sh",), wrong, 5)

    def test_c_uses_names_of_our_headers(self):
        known = headers()
        self.check(("c",), lambda text: [f"no header has {name}" for name in re.findall(r"\b(?:imk_|gst_imaging_|GstImaging|Imk)\w+", text)
                                         if name not in known], 1)

    def test_man_page_has_the_commands_of_help(self):
        page = subprocess.run(["/usr/bin/python3", os.path.join(SOURCE, "tools", "man-page"),
                               os.path.join(SOURCE, "pipelines", "gst-imaging.1.in"),
                               os.path.join(SOURCE, "pipelines", "gst_imaging", "commands")],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.replace("\\-", "-")
        self.assertEqual(re.findall(r"^\.SS (.*)$", page, re.M), command.names())
        for name in command.names():
            self.assertIn(f".SS {name}\n{command.summary(name)}.", page)

    def test_defaults_stand_in_the_registry_alone(self):
        found = []
        for path in glob.glob(os.path.join(SOURCE, "docs", "reference", "*.md")):
            with open(path, encoding="utf-8") as file:
                found += [f"{os.path.basename(path)}: {line}" for line in file
                          if re.match(r"\| (name|property) \|.*\| (default|range|values)\b", line)]
        self.assertFalse(found)


class Checker(unittest.TestCase):
    def test_it_sees_what_is_wrong(self):
        for line, sentence in (("gst-launch-1.0 picturesrc locaton=a.npy ! fakesink", "picturesrc has no property locaton"),
                               ("gst-launch-1.0 videotestsrc ! lapsharpen border=zeros ! fakesink", "border of lapsharpen does not take zeros"),
                               ("gst-launch-1.0 videotestsrc ! lapsharpen amount=11 ! fakesink", "amount of lapsharpen does not take 11"),
                               ("gst-launch-1.0 videotestsrc ! lapsharpn ! fakesink", "there is no element lapsharpn"),
                               ("gst-imaging sharpn a.png -o out", "gst-imaging has no command sharpn"),
                               ("gst-imaging oct a.npy --lamda 800 900 -o out", "--lamda"),
                               ("tools/nothing build", "there is no tools/nothing")):
            wrong = [w for words in commands(line) for w in wrong_in_command(words)]
            self.assertEqual(len(wrong), 1, line)
            self.assertIn(sentence, wrong[0])
        known = our_properties()
        self.assertEqual(len(list(wrong_in_prose("Set `threshold-mdoe=auto` or `border=zeros`, not `border=zero`.", known))), 2)


main()
