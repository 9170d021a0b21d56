# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command gst-imaging: its help, its exit codes, and the command info."""
import ast
import contextlib
import errno
import io
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, main, read_array

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import command, commands


def gst_imaging(*words, **environment):
    return subprocess.run([sys.executable, "-m", "gst_imaging", *words], capture_output=True, text=True,
                          timeout=TIMEOUT, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"),
                                                **environment})


KEPT = "gst_imaging.command", "gst_imaging.commands"
NAMES = [module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__)]


def imports_of(path):
    """Returns: the modules that a file of gst_imaging imports, and the names it takes from them"""
    with open(path, encoding="utf-8") as file:
        nodes = list(ast.walk(ast.parse(file.read())))
    package = os.path.relpath(path, os.path.join(SOURCE, "pipelines")).split(os.sep)[:-1]
    found = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = package[:len(package) + 1 - node.level] * bool(node.level) + ([node.module] if node.module else [])
            found += [".".join([*module, name.name]) for name in node.names]
    return found


class Command(unittest.TestCase):
    def test_no_module_imports_a_command(self):
        """What commands share has a module of its own, outside of commands."""
        paths = [os.path.join(folder, name) for folder, _folders, names in os.walk(os.path.join(SOURCE, "pipelines/gst_imaging"))
                 for name in names if name.endswith(".py")]
        self.assertIn("gst_imaging.job", imports_of(commands.__path__[0] + "/relight.py"))
        self.assertEqual([(path, name) for path in paths for name in imports_of(path) if name.startswith("gst_imaging.commands.")], [])

    def test_help_names_every_command(self):
        done = gst_imaging("--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in NAMES:
            self.assertIn(f"\n  {name} ", done.stdout)

    def test_every_command_explains_itself_with_examples(self):
        for name in NAMES:
            done = gst_imaging(name, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"examples:\n  gst-imaging {name}", done.stdout)
            self.assertIn("--json", done.stdout)
            self.assertIn("exit codes:", done.stdout)

    def test_help_needs_neither_numpy_nor_gstreamer(self):
        """Whoever lacks them is told so by the command, and not by Python."""
        for name in NAMES:
            with self.assertRaises(SystemExit) as done, unittest.mock.patch.dict(sys.modules, {"numpy": None, "gi": None}), \
                    contextlib.redirect_stdout(io.StringIO()) as said:
                for module in [module for module in sys.modules if module.startswith("gst_imaging.") and module not in KEPT]:
                    del sys.modules[module]
                command.execute(name, ["--help"])
            self.assertEqual((done.exception.code, "examples:" in said.getvalue()), (0, True), name)

    def test_wrong_use_is_one_sentence_and_2(self):
        for words, sentence in ((("inof",), 'no command "inof"; there are '),
                                (("info", "--jsn"), "Unrecognized arguments: --jsn"),
                                (("info", "--part", "x"), '--part is "x", and has to be a whole number.'),
                                (("sharpen", "a.png", "-o", ""), "-o is empty"), (("sharpen", "a.png", "-o", "a\nb"), "has a line break"),
                                (("lights", "a", "-o", "b", "--sphere", "1,2"), '--sphere is "1,2", and has to be X,Y,RADIUS.')):
            done = gst_imaging(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(sentence, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_without_a_command_the_help_is_wrong_use(self):
        done = gst_imaging()
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: gst-imaging COMMAND", done.stdout)

    def test_a_failure_is_json_where_json_is_asked_for(self):
        done = gst_imaging("info", "--json", "/none", "extra")
        self.assertEqual(done.returncode, 2)
        failure = json.loads(done.stdout)
        self.assertEqual(failure["exit-status"], 2)
        self.assertIn("extra", failure["error"])


class Signals(unittest.TestCase):
    """One that comes while C code waits for Python must not be lost."""

    def run_python(self, *lines):
        done = subprocess.run([sys.executable, "-c", "import os, signal, sys, time\nfrom gst_imaging import command\n" + "\n".join(lines)],
                              capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual(done.returncode, -signal.SIGTERM, done.stderr)
        self.assertIn("gst-imaging info: Stopped by SIGTERM.", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_while_python_starts(self):
        """In a module of each of its steps: the interpreter's own, which only the script in pipelines/ waits for, and the command's."""
        package = os.path.join(SOURCE, "pipelines")
        for module, words, answer in (("sitecustomize", [os.path.join(package, "gst-imaging")], "gst-imaging info: Stopped by SIGINT.\n"),
                                      ("argparse", [sys.executable, "-m", "gst_imaging"], "")):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, f"{module}.py"), "w", encoding="utf-8") as file:
                    file.write("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
                done = subprocess.run([*words, "info"], capture_output=True, text=True, timeout=TIMEOUT,
                                      env={**os.environ, "PYTHONPATH": f"{folder}:{package}"})
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGINT, answer), module)

    def test_while_the_commands_are_looked_up(self):
        self.run_python("names = command.names",
                        "command.names = lambda: os.kill(os.getpid(), signal.SIGTERM) or names()",
                        "sys.exit(command.main(['info']))")

    def test_while_a_module_is_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "slow_module.py"), "w", encoding="utf-8") as file:
                file.write("import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGTERM)\n"
                           "except BaseException as error:\n    raise SystemError('as NumPy') from error\n")
            self.run_python(f"sys.path.insert(0, {folder!r})",
                            "command.execute = lambda *_words: __import__('slow_module') and time.sleep(60)",
                            "sys.exit(command.main(['info']))")

    def test_while_arguments_are_parsed(self):
        self.run_python("command.Parser.format_usage = lambda _parser: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(0.05) or ''",
                        "sys.exit(command.main(['info', 'file']))")

    def test_in_a_finalizer(self):
        self.run_python("class Part:",
                        "    def __del__(self):",
                        "        os.kill(os.getpid(), signal.SIGTERM)",
                        "        time.sleep(0.05)",
                        "def execute(*_words):",
                        "    Part()",
                        "    time.sleep(60)",
                        "command.execute = execute",
                        "sys.exit(command.main(['info']))")

    def test_in_a_callback_whose_exception_is_dropped(self):
        self.run_python("import ctypes",
                        "callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGTERM))",
                        "command.execute = lambda *_words: callback() or 0",
                        "sys.unraisablehook = lambda _what: None",
                        "sys.exit(command.main(['info']))")

    def test_in_c_code_that_tells_something_false_instead(self):
        """As NumPy's == of arrays, which is False then."""
        self.run_python("import ctypes",
                        "callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGTERM))",
                        "command.execute = lambda *_words: callback() or False.sum()",
                        "sys.unraisablehook = lambda _what: None",
                        "sys.exit(command.main(['info']))")


class Convert(FolderCase):
    def test_samples_stay_as_they_are(self):
        cube = np.random.default_rng(1).integers(0, 65536, (3, 8, 12), np.uint16)
        np.save(self.path("a.npy"), cube)
        for name in "b.tif", "c.fits", "d.npy":
            done = gst_imaging("convert", self.path("a.npy"), self.path(name), "--json")
            if "this build is without it" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["shape"], [3, 8, 12])
            done = gst_imaging("convert", self.path(name), self.path("back.npy"), "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            np.testing.assert_array_equal(np.load(self.path("back.npy")), cube)

    def test_inputs_are_not_replaced(self):
        np.save(self.path("a.npy"), np.ones((4, 4), np.float32))
        np.save(self.path("b.npy"), np.zeros((4, 4), np.float32))
        os.link(self.path("a.npy"), self.path("link.npy"))
        for words, sentence in (((self.path("a.npy"), self.path("a.npy"), "--overwrite"), "is an input"), ((self.path("a.npy"), self.path("link.npy"), "--overwrite"), "is an input"),
                                ((self.path("a.npy"), self.path("b.npy")), "Was OUT forgotten?")):
            done = gst_imaging("convert", *words)
            self.assertEqual((done.returncode, sentence in done.stderr), (2, True), done.stderr)
        self.assertEqual((np.load(self.path("a.npy")).all(), np.load(self.path("b.npy")).any()), (True, False))
        self.assertEqual(gst_imaging("convert", self.path("a.npy"), self.path("b.npy"), "--overwrite").returncode, 0)
        self.assertTrue(np.load(self.path("b.npy")).all())

    def test_what_is_not_carried_over_is_named(self):
        header = ["SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    2",
                  "NAXIS1  =                    3", "NAXIS2  =                    2", "BUNIT   = 'adu'", "GAIN    = 1.5", "END"]
        with open(self.path("a.fits"), "wb") as file:
            file.write("".join(card.ljust(80) for card in header).encode("ascii").ljust(2880) + bytes(2880))
        for name, lost in ("b.npy", ["GAIN"]), ("b.fits", None), ("b.png", None), ("b.tif", None), ("b%d.npy", ["GAIN"]):
            done = gst_imaging("convert", self.path("a.fits"), self.path(name), "--json")
            if "this build is without it" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout).get("lost"), lost, name)
            self.assertEqual("does not carry over" in done.stderr, lost is not None, done.stderr)

    def test_flags_go_with_slopes(self):
        slopes, flags = np.random.default_rng(1).random((3, 2, 5)).astype(np.float32), np.arange(15, dtype=np.uint8).reshape(3, 5)
        np.save(self.path("s.npy"), slopes)
        np.save(self.path("s-flags.npy"), flags)
        with open(self.path("s.npy.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-sidecar-v1", "file": "s.npy", "type": "f32", "shape": [3, 2, 5], "first": 0, "frames": 3, "complete": True,
                       "flags": "s-flags.npy", "quantity": {"name": "dx,dy", "unit": "px", "scale": 1, "offset": 0, "axes": []}}, file)
        for name in "b.npy", "c.tif", "d.fits":
            done = gst_imaging("convert", self.path("s.npy"), self.path(name), "--json")
            if "this build is without it" in done.stderr:
                continue
            base, extension = os.path.splitext(name)
            self.assertEqual((done.returncode, json.loads(done.stdout).get("lost")), (0, None), done.stderr)
            with open(self.path(name + ".json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["flags"], f"{base}-flags{extension}")
            np.testing.assert_array_equal(read_array(self.path(f"{base}-flags{extension}")), flags)
        np.save(self.path("e-flags.npy"), slopes)  # of somebody else
        for name in "f%d.npy", "e.npy":
            done = gst_imaging("convert", self.path("s.npy"), self.path(name), "--json")
            self.assertEqual((done.returncode, json.loads(done.stdout).get("lost")), (0, ["flags"]), done.stderr)
            with open(self.path(name + ".json"), encoding="utf-8") as file:
                self.assertNotIn("flags", json.load(file))
        np.testing.assert_array_equal(np.load(self.path("e-flags.npy")), slopes)

    def test_a_gap_in_a_series_is_named(self):
        os.mkdir(self.path("gap"))
        for i in (1, 2, 3, 5):
            np.save(self.path(f"gap/f{i}.npy"), np.full((2, 3), i, np.uint8))
        np.save(self.path("gap/other.npy"), np.zeros((2, 3), np.uint8))
        for words in "gap/f*.npy", "gap/f%d.npy":
            done = gst_imaging("convert", self.path(words), self.path("x.npy"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("1 file is missing: 4", done.stderr)
            self.assertEqual(np.load(self.path("x.npy"))[:, 0, 0].tolist(), [1, 2, 3, 5])

    def test_two_signals_at_once(self):
        """Of a command that waits for a FIFO."""
        os.mkfifo(self.path("f.dat"))
        for _ in range(5):
            process = subprocess.Popen([sys.executable, "-m", "gst_imaging", "fitoffset", "3", "3", self.path("f.dat")], stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGHUP)
            _out, err = process.communicate(timeout=TIMEOUT)
            self.assertRegex(err, r"\Agst-imaging fitoffset: Stopped by SIG(TERM|HUP)\.\n\Z")
            self.assertIn(process.returncode, (-signal.SIGTERM, -signal.SIGHUP))

    def test_no_frame_of_an_earlier_series_stays_behind_a_shorter_one(self):
        for name, n in ("ones", 5), ("zeros", 3):
            np.save(self.path(name + ".npy"), np.full((n, 2, 3), name == "ones", np.uint8))
        series = self.path("e%02d.pgm")
        self.assertEqual(gst_imaging("convert", self.path("ones.npy"), series).returncode, 0)
        done = gst_imaging("convert", self.path("zeros.npy"), series)
        self.assertEqual(done.returncode, 2)
        self.assertIn("e03.pgm and 1 more would be read as frames of this series, which has 3. --overwrite removes them.", done.stderr)
        self.assertEqual(gst_imaging("convert", self.path("zeros.npy"), series, "--overwrite").returncode, 0)
        self.assertEqual(gst_imaging("convert", series, self.path("back.npy")).returncode, 0)
        np.testing.assert_array_equal(np.load(self.path("back.npy")), np.zeros((3, 2, 3)))
        self.assertEqual(gst_imaging("convert", self.path("ones.npy"), self.path("f%02d.pgm")).returncode, 0)
        done = gst_imaging("convert", series, self.path("f%02d.pgm"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("f03.pgm and 1 more would be read", done.stderr)
        done = gst_imaging("convert", self.path("f%02d.pgm"), series)
        self.assertEqual(done.returncode, 2)
        self.assertIn("e00.pgm is there, and a copy of", done.stderr)

    def test_folders_and_numbered_files(self):
        cube = np.random.default_rng(1).integers(0, 65536, (12, 8, 10, 3), np.uint16)
        np.save(self.path("a.npy"), cube)
        os.mkdir(self.path("pages"))
        done = gst_imaging("convert", self.path("a.npy"), self.path("pages/p%d.ppm"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["files"], 12)
        self.assertEqual(len(os.listdir(self.path("pages"))), 12)
        for name in "pages", "pages/p*.ppm":
            done = gst_imaging("convert", self.path(name), self.path("back.npy"))
            self.assertEqual(done.returncode, 0, done.stderr)
            np.testing.assert_array_equal(np.load(self.path("back.npy")), cube)
        for words, code in ((("nothing*", "x.npy"), 3), (("pages", "pages/p%d.ppm"), 2), (("pages", "pages/p3.ppm"), 2),
                            (("pages", "o.png"), 4), (("pages", "absent/x.npy"), 4), (("pages", "x.abc"), 4)):
            done = gst_imaging("convert", *map(self.path, words))
            self.assertEqual((done.returncode, done.stdout), (code, ""), (words, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_types_of_several_files_stay(self):
        for name, values in (("f", np.ones((7, 9, 2), np.float32)), ("b", np.eye(4, dtype=bool)), ("v", np.arange(5.0)),
                             ("c", np.full((3, 4), 1 + 2j, np.complex64))):
            os.mkdir(self.path(name))
            for i in (2, 10, 1):
                np.save(self.path(f"{name}/{i}.npy"), values * i if name != "b" else values)
            done = gst_imaging("convert", self.path(name), self.path("one.npy"))
            self.assertEqual(done.returncode, 0, done.stderr)
            one = np.load(self.path("one.npy"))
            self.assertEqual((one.dtype, one.shape), (values.dtype, (3, *values.shape)))
            if name != "b":
                np.testing.assert_array_equal(one, np.stack([values, 2 * values, 10 * values]))

    def test_parts_beyond_the_last_number_are_no_other_part(self):
        np.save(self.path("a.npy"), np.ones((4, 4), np.float32))
        for part in -2, 2 ** 31 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 63 - 1, 2 ** 64, -2 ** 32:
            for words in ("convert", self.path("a.npy"), self.path("x.npy")), ("info", self.path("a.npy")):
                done = gst_imaging(*words, f"--part={part}")
                self.assertEqual((done.returncode, done.stdout), (2, ""), (words, part, done.stderr))
                self.assertIn(f"--part is {part}, and goes from 0 to 2147483646", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("has no part 2147483646: it has one part", gst_imaging("info", self.path("a.npy"), "--part=2147483646").stderr)
        self.assertFalse(os.path.exists(self.path("x.npy")))

    def test_what_cannot_be_read_is_3_and_what_cannot_be_written_4(self):
        np.save(self.path("f.npy"), np.ones((4, 4), np.float32))
        with open(self.path("text.npy"), "w", encoding="utf-8") as file:
            file.write("no array")
        for words, code in ((("absent.npy", "x.npy"), 3), (("text.npy", "x.npy"), 3), (("f.npy", "x.abc"), 4),
                            (("f.npy", "x.png"), 4), (("f.npy", "absent/x.npy"), 4)):
            done = gst_imaging("convert", *map(self.path, words))
            self.assertEqual((done.returncode, done.stdout), (code, ""), (words, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("x.npy")))


class Info(FolderCase):
    def test_unit_and_axes_of_a_file(self):
        np.save(self.path("a.npy"), np.zeros((2, 3, 5), np.uint8))
        quantity = {"name": "level", "unit": "dB", "scale": [0.5, 0.25], "offset": 1,
                    "axes": [None, {"name": "depth", "unit": "um", "step": 2.5, "origin": 1}]}
        with open(self.path("a.npy.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-sidecar-v1", "type": "u8", "shape": [2, 3, 5], "first": 0, "frames": 2, "complete": True,
                       "quantity": quantity}, file)
        text = gst_imaging("info", self.path("a.npy")).stdout
        for line in ("quantity: level, in dB: 1 + 0.5 * sample", "axis 1, along a column: depth, step 2.5 um, from 1",
                     "others differ in scale"):
            self.assertIn(line, text)
        found = json.loads(gst_imaging("info", self.path("a.npy"), "--json").stdout)["quantity"]
        self.assertEqual((found["unit"], found["scale"], found["axes"][0], found["changes"]), ("dB", 0.5, None, ["scale"]))

    def test_long_cards_are_cut_for_people(self):
        np.save(self.path("b.npy"), np.zeros((4, 4), np.uint8))
        if gst_imaging("convert", self.path("b.npy"), self.path("b.ome.tif")).returncode == 0:
            text = gst_imaging("info", self.path("b.ome.tif")).stdout
            self.assertIn("letters; all with --json)", text)
            self.assertLess(max(map(len, text.splitlines())), 400)

    def info(self, **environment):
        done = gst_imaging("info", "--json", **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_elements_and_versions(self):
        info = self.info()
        self.assertIn("shcentroid", info["elements"])
        self.assertEqual(gst_imaging("--version").stdout.strip(), info["version"])
        self.assertEqual(info["cpu"]["threads"], os.cpu_count())
        npy = next(form for form in info["formats"] if form["name"] == "npy")
        self.assertTrue(npy["read"] and npy["write"])
        text = gst_imaging("info").stdout
        self.assertIn(f'gst-imaging {info["version"]}', text)
        self.assertIn("shcentroid", text)

    def test_instruction_set(self):
        self.assertEqual(self.info(IMK_CPU="scalar")["cpu"]["level"], "scalar")
        self.assertIn("mmx", self.info(IMK_CPU="mmx")["cpu"]["reason"])

    def test_devices(self):
        cuda = self.info(IMK_MOCK_DEVICES="3")["cuda"]
        self.assertEqual([device["id"] for device in cuda["devices"]], [0, 1, 2])
        self.assertGreater(cuda["devices"][0]["memory"], 0)

    def test_cuda_that_is_absent_has_a_reason(self):
        cuda = self.info(IMK_MODULE_PATH="/nowhere")["cuda"]
        self.assertEqual(cuda["devices"], [])
        self.assertIn("/nowhere/libimk-cuda.so", cuda["reason"])

    def test_without_plugins_it_says_where_they_are_sought(self):
        with tempfile.TemporaryDirectory() as folder:
            done = gst_imaging("info", GST_PLUGIN_PATH_1_0=folder, GST_REGISTRY=f"{folder}/registry")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no plug-in of gst-imaging", done.stderr)

    def test_output_that_cannot_be_written_is_a_sentence(self):
        """Also what stays in the buffer to the end, as Python writes without PYTHONUNBUFFERED."""
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        for words in ("info",), ("--help",), ("info", "--help"), ():
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([sys.executable, "-m", "gst_imaging", *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=TIMEOUT, check=False,
                                      env={**buffered, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("cannot be written: No space left on device.", done.stderr)

    def test_a_reader_that_has_gone_ends_it_quietly(self):
        for words in ("info",), ("--help",), ("info", "--help"):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([sys.executable, "-m", "gst_imaging", *words], stdout=writer, stderr=subprocess.PIPE, text=True,
                                  timeout=TIMEOUT, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""))

    def test_a_reader_that_has_gone_costs_no_result(self):
        """What a command prints of its result, as `| head -1` reads it, comes when the result is in its place."""
        rng = np.random.default_rng(3)
        commands = rng.normal(size=(300, 4)).cumsum(0)
        with tempfile.TemporaryDirectory() as folder:
            for name, values in ("slopes", -np.diff(commands, axis=0, prepend=0) @ np.eye(4)), ("commands", commands), ("matrix", np.eye(4)):
                np.save(os.path.join(folder, f"{name}.npy"), values)
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([sys.executable, "-u", "-m", "gst_imaging", "ao", "gains", "slopes.npy", "--commands", "commands.npy", "--matrix",
                                   "matrix.npy", "--gain", "1", "--delay", "1", "-o", "out"], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=folder,
                                  timeout=TIMEOUT, check=False, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            os.close(writer)
            self.assertEqual(done.returncode, -signal.SIGPIPE, done.stderr)
            self.assertEqual(sorted(name for name in os.listdir(folder) if not name.endswith(".npy")), ["out"])
            self.assertIn("controller.npy", os.listdir(os.path.join(folder, "out")))

    def test_an_input_is_named_once(self):
        for sentence in "a.npy has no frames.", "a.npy: Permission denied.", '"a.npy" cannot be opened.':
            self.assertEqual(command.with_name("a.npy", command.Failure(3, sentence)), sentence)
        self.assertEqual(command.with_name("a", command.Failure(3, "and then")), "a: and then")

    def test_a_folder_that_may_not_be_searched_is_told_so(self):
        with unittest.mock.patch("os.stat", side_effect=PermissionError(errno.EACCES, "Permission denied")):
            self.assertEqual(str(command.absent("kept/a.npy", "There is none.")), "kept/a.npy cannot be read: Permission denied.")
        self.assertEqual(str(command.absent("/none/a.npy", "There is none.")), "There is none.")

    def test_json_is_one_object_whatever_comes(self):
        """A signal while it is printed, and a full disk that has no name."""
        script = ("import json, os, signal, sys\nfrom gst_imaging import command\ndumps = json.dumps\n"
                  "json.dumps = lambda value: os.kill(os.getpid(), signal.SIGTERM) or dumps(value)\nsys.exit(command.main(['info', '--json']))")
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=TIMEOUT, check=False,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertEqual((done.returncode, "elements" in json.loads(done.stdout)), (-signal.SIGTERM, True), done.stderr)
        with unittest.mock.patch("sys.stdout", new_callable=io.StringIO) as out, unittest.mock.patch("sys.stderr", new_callable=io.StringIO) as errors, \
                unittest.mock.patch.object(command, "execute", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            code = command.main(["info", "--json"])
        told = json.loads(out.getvalue())
        self.assertEqual((code, told["exit-status"], told["error"]), (4, 4, "The output cannot be written: No space left on device."))
        self.assertEqual(errors.getvalue(), "gst-imaging info: The output cannot be written: No space left on device.\n")

    def test_a_file_that_nobody_expected_to_fail_is_named(self):
        """Of standard output alone it may be said that it cannot be written."""
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("sys.stderr", new_callable=io.StringIO) as errors, \
                unittest.mock.patch.object(command, "execute", side_effect=lambda *_: open(f"{folder}/none", encoding="utf-8")):
            code = command.main(["info"])
        self.assertEqual(code, command.UNREADABLE)
        self.assertEqual(errors.getvalue(), f"gst-imaging info: {folder}/none: No such file or directory.\n")


class Threads(unittest.TestCase):
    def test_classes_of_gstreamer_are_whole_in_every_thread(self):
        """A probe in one thread once got caps without methods, as another thread used the class first at the same time."""
        program = """if True:
            import sys, threading
            sys.setswitchinterval(1e-6)
            from gst_imaging import library
            Gst = library.gstreamer()
            start, missing = threading.Barrier(4), []

            def use():
                start.wait()
                missing.extend(name for name in ("Caps", "Structure") if not hasattr(getattr(Gst, name), "to_string"))

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            sys.exit(str(missing) if missing else 0)
            """
        for _ in range(8):  # one in three fails where the classes are not built before
            done = subprocess.run([sys.executable, "-B", "-c", program], stderr=subprocess.PIPE, text=True, timeout=100, check=False,
                                  env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
            self.assertEqual((done.returncode, done.stderr), (0, ""))


main()
