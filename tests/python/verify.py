# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging verify: recordings of picturesink are made once more, with their settings and the changes of these."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from gi.repository import GObject

from support import SOURCE, TIMEOUT, Gst, gst_imaging, launch, main

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import library, repeat

RNG = np.random.default_rng(3)


def verify(path, *words, folder="/"):
    """Returns: the exit code and the result"""
    done = subprocess.run([sys.executable, "-m", "gst_imaging", "verify", path, "--json", *words], capture_output=True,
                          text=True, timeout=TIMEOUT, cwd=folder,
                          env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise AssertionError(done.stdout + done.stderr) from None


def play(description, changes=()):
    """Runs a pipeline. `changes`: (element, property, value, before which of its buffers)."""
    pipeline = Gst.parse_launch(description)
    for name, prop, value, number in changes:
        def set_in_time(_pad, _info, state, element=pipeline.get_by_name(name), prop=prop, value=value, number=number):
            if state[0] == number:
                element.set_property(prop, value)
            state[0] += 1
            return Gst.PadProbeReturn.OK
        pipeline.get_by_name(name).sinkpads[0].add_probe(Gst.PadProbeType.BUFFER, set_in_time, [0])
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if not message or message.type == Gst.MessageType.ERROR:
        raise AssertionError(f"{description}: {message and message.parse_error()}")


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        np.save(self.path("in.npy"), RNG.integers(0, 256, (12, 24, 40), np.uint8))

    def path(self, name):
        return os.path.join(self.folder, name)

    def save_pgm(self, name, picture):
        height, width = picture.shape
        with open(self.path(name), "wb") as file:
            file.write(b"P5\n%d %d\n255\n" % (width, height) + picture.astype(np.uint8).tobytes())

    def save_balls(self):
        """Pictures for spherelights: centre 30, 30, radius 25."""
        y, x = np.mgrid[:60, :60]
        for i in range(3):
            self.save_pgm(f"ball{i}.pgm", np.where(np.hypot(x - 25 - 5 * i, y - 30) < 4, 250, 20))

    def record(self, elements="lapsharpen amount=2", sink="out.npy", source="in.npy", changes=()):
        play(f"picturesrc location={self.path(source)} ! {elements} ! picturesink location={self.path(sink)}", changes)

    def told(self):
        with open(self.path("out.npy.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_the_same_bits_and_one_that_differs(self):
        self.record()
        code, result = verify(self.path("out.npy"))
        self.assertEqual((code, result["frames"], result["samples"], result["different"]), (0, 12, 12 * 24 * 40, 0))
        frames = np.load(self.path("out.npy"))
        frames[7, 5, 30] ^= 1
        np.save(self.path("out.npy"), frames)
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 1)
        self.assertIn("1 of 11520 samples differ, the first at out.npy[7, 5, 30]", result["error"])

    def test_the_help_tells_that_1_is_a_difference(self):
        self.assertIn("1 it differs", gst_imaging("verify", "--help"))

    def test_a_list_of_files(self):
        frames = np.load(self.path("in.npy"))
        for name, part in ("a b.npy", frames[:5]), ("c.npy", frames[5:]):
            np.save(self.path(name), part)
        names = ", ".join(f'\\"{self.path(name)}\\"' for name in ("a b.npy", "c.npy"))
        play(f'picturesrc locations="<{names}>" ! lapsharpen amount=2 ! picturesink location={self.path("out.npy")}', ())
        sources = self.told()["sources"]
        self.assertEqual([(os.path.basename(source["location"]), source["kind"]) for source in sources],
                         [("a b.npy", "file"), ("c.npy", "file")])
        self.assertEqual([source["size"] for source in sources], [os.path.getsize(source["location"]) for source in sources])
        self.assertEqual(verify(self.path("out.npy"))[0], 0)
        os.mkdir(self.path("moved"))
        for name in "a b.npy", "c.npy", "out.npy", "out.npy.json":
            os.rename(self.path(name), self.path(f"moved/{name}"))
        self.assertEqual(verify(self.path("moved/out.npy"))[0], 0)
        np.save(self.path("moved/c.npy"), frames[5:][::-1])
        code, result = verify(self.path("moved/out.npy"))
        self.assertEqual(code, 3)
        self.assertIn("not the file that was recorded from", result["error"])

    def test_numbered_files(self):
        self.record(sink="frame%3u.pgm")
        self.assertEqual(verify(self.path("frame%3u.pgm"))[1].get("frames"), 12)
        self.record(sink="frame%02d.pgm")
        self.assertEqual(verify(self.path("frame%02d.pgm"))[0], 0)
        shutil.copy(self.path("frame03.pgm"), self.path("frame04.pgm"))
        code, result = verify(self.path("frame%02d.pgm"))
        self.assertEqual(code, 1)
        self.assertIn("frame04.pgm[", result["error"])

    def test_one_numbered_file(self):
        self.record(sink="frame%02d.pgm")
        shutil.copy(self.path("frame03.pgm"), self.path("frame04.pgm"))
        code, result = verify(self.path("frame03.pgm"))
        self.assertEqual((code, result["frames"], result["samples"]), (0, 1, 24 * 40))
        code, result = verify(self.path("frame04.pgm"))
        self.assertEqual(code, 1)
        self.assertIn("frame04.pgm[", result["error"])
        shutil.copy(self.path("frame03.pgm"), self.path("frame12.pgm"))
        code, result = verify(self.path("frame12.pgm"))
        self.assertEqual(code, 3)
        self.assertIn("none of the 12 files from number 0 on", result["error"])

    def test_flags_beside_slopes(self):
        play(f"picturesrc location={self.path('in.npy')} ! shcentroid name=sh columns=2 rows=2 pitch-x=20 pitch-y=12 fields=slopes ! "
             f"fakesink sh.results ! queue ! other/tensors ! picturesink location={self.path('s.npy')}")
        code, result = verify(self.path("s.npy"))
        self.assertEqual((code, result["samples"]), (0, 12 * 4 * 3))
        flags = np.load(self.path("s-flags.npy"))
        flags[5, 2] ^= 1
        np.save(self.path("s-flags.npy"), flags)
        code, result = verify(self.path("s.npy"))
        self.assertEqual(code, 1)
        self.assertIn("s-flags.npy[5, 2]", result["error"])

    def test_a_folder_that_was_moved_and_relative_paths(self):
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            launch("-q", "picturesrc", "location=in.npy", "!", "lapsharpen", "!", "picturesink", "location=out.npy")
        finally:
            os.chdir(before)
        self.assertEqual(verify(self.path("out.npy"))[0], 0)
        moved = self.folder + "-moved"
        os.mkdir(moved)
        self.addCleanup(shutil.rmtree, moved)
        for name in "in.npy", "out.npy", "out.npy.json":
            os.rename(self.path(name), os.path.join(moved, name))
        self.assertEqual(verify(os.path.join(moved, "out.npy"))[0], 0)

    def test_what_cannot_be_repeated_is_3_and_a_sentence(self):
        self.record()
        told = self.told()
        np.save(self.path("in.npy"), np.zeros((12, 24, 40), np.uint8))
        for change, sentence in (({}, "in.npy is not the file that was recorded from"),
                                 ({"complete": False}, "was not completed"),
                                 ({"previous": {"frames": 3}}, "several runs"),
                                 ({"sources": [{"element": "cam", "kind": "live"}]}, "came live from cam")):
            with open(self.path("out.npy.json"), "w", encoding="utf-8") as file:
                json.dump({**told, **change}, file)
            code, result = verify(self.path("out.npy"))
            self.assertEqual(code, 3, result)
            self.assertIn(sentence, result["error"])
        with open(self.path("out.npy.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.remove(self.path("in.npy"))
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 3)
        self.assertIn("in.npy is not there", result["error"])
        for text in "{", "[]", "{}":
            with open(self.path("out.npy.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(verify(self.path("out.npy"))[0], 3)
        os.remove(self.path("out.npy.json"))
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 3)
        self.assertIn("has no sidecar", result["error"])
        with open(self.path("result.json"), "w", encoding="utf-8") as file:  # of a command, which has no sidecars
            json.dump({"schema": "gst-imaging-result-v1", "outputs": [], "arguments": ["gst-imaging", "oct", "a b.npy"]}, file)
        for path in self.path("out.npy"), self.path(""):
            code, result = verify(path)
            self.assertEqual(code, 3)
            self.assertIn("`gst-imaging oct 'a b.npy'`", result["error"])

    def test_files_of_the_recording_stay(self):
        np.save(self.path("normals.npy"), np.full((2, 9, 11, 3), (128, 128, 255), np.uint8))
        mesh = self.path("mesh.ply")
        self.record(f"normalintegrate name=n mesh-location={mesh} n.height", source="normals.npy")
        with open(mesh, "wb") as file:
            file.write(b"mine")
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 0, result)
        with open(mesh, "rb") as file:
            self.assertEqual(file.read(), b"mine")
        told = self.told()
        told["pipeline"] = f"videotestsrc num-buffers=1 ! filesink location={self.path('stolen')}"
        with open(self.path("out.npy.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 3)
        self.assertIn("does not end in one picturesink", result["error"])
        self.assertFalse(os.path.exists(self.path("stolen")))

    def test_what_each_element_writes_is_known(self):
        """A file of the user that verify does not redirect would be replaced."""
        found = {}
        for plugin in library.plugins(Gst):
            for feature in Gst.Registry.get().get_feature_list_by_plugin(plugin.get_name()):
                element = feature.create(None) if isinstance(feature, Gst.ElementFactory) else None
                for prop in element.list_properties() if element else ():
                    if prop.value_type == GObject.TYPE_STRING and re.search(r"\bto write\b", prop.blurb):
                        found.setdefault(feature.get_name(), []).append(prop.name)
        self.assertEqual(found.pop("picturesink"), ["location"])
        self.assertEqual({name: sorted(props) for name, props in found.items()}, {name: sorted(props) for name, props in repeat.WRITTEN.items()})

    def test_files_that_elements_write_stay(self):
        pair = self.path("pair")
        subprocess.run([os.path.join(SOURCE, "tests/data/slcs.py"), pair], check=True, capture_output=True)
        self.save_balls()
        for name, description in (
                ("removed.img", f"slcsrc location={pair}/ref.PRM ! i.reference slcsrc location={pair}/sec.PRM ! i.secondary insarform name=i"
                 " looks-x=4 looks-y=4 flatten=measured removed-location=FILE i.coherence ! queue ! other/tensors ! picturesink location=OUT"),
                ("lights.lp", f"picturesrc location={self.path('ball?.pgm')} ! spherelights centre-x=30 centre-y=30 radius=25 location=FILE"
                 " ! picturesink location=OUT")):
            with self.subTest(name):
                out = self.path("of-" + name + ".npy")
                play(description.replace("FILE", self.path(name)).replace("OUT", out) + " sidecar=always")
                self.assertTrue(os.path.exists(self.path(name)))
                with open(self.path(name), "wb") as file:
                    file.write(b"mine")
                code, result = verify(out)
                self.assertEqual(code, 0, result)
                with open(self.path(name), "rb") as file:
                    self.assertEqual(file.read(), b"mine")

    def test_a_file_that_is_written_from_a_change_on_stays(self):
        self.save_balls()
        play(f"picturesrc location={self.path('ball?.pgm')} ! spherelights name=l centre-x=30 centre-y=30 radius=25"
             f" ! picturesink location={self.path('out.npy')} sidecar=always", (("l", "location", self.path("later.lp"), 1),))
        self.assertEqual([(change["property"], change["frame"]) for change in self.told()["changes"]], [("location", 1)])
        with open(self.path("later.lp"), "wb") as file:
            file.write(b"mine")
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 0, result)
        with open(self.path("later.lp"), "rb") as file:
            self.assertEqual(file.read(), b"mine")

    def test_a_grid_that_was_found(self):
        """shcentroid itself sets map-location then."""
        spots = np.zeros((6, 60, 80), np.uint8)
        for row in range(9, 12):
            for column in range(9, 12):
                spots[:, row::20, column::20] = 200
        np.save(self.path("spots.npy"), spots)
        grid = self.path("grid.npy")
        play(f"picturesrc location={self.path('spots.npy')} ! shcentroid name=sh columns=4 rows=3 pitch-x=20 pitch-y=20 find-grid-location={grid} ! "
             f"fakesink sh.results ! queue ! other/tensors ! picturesink location={self.path('out.npy')}")
        self.assertEqual([change["property"] for change in self.told()["changes"]], ["map-location"])
        with open(grid, "wb") as file:
            file.write(b"mine")
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 0, result)
        with open(grid, "rb") as file:
            self.assertEqual(file.read(), b"mine")

    def test_lines(self):
        pair = self.path("pair")
        subprocess.run([os.path.join(SOURCE, "tests/data/slcs.py"), pair], check=True, capture_output=True)
        play(f"slcsrc location={pair}/ref.PRM ! picturesink location={self.path('out.npy')} sidecar=always")
        self.assertNotEqual(len(self.told()["frame-numbers"]), self.told()["frames"])
        self.assertEqual(verify(self.path("out.npy"))[0], 0)

    def test_back_to_the_default_and_names(self):
        self.record('lapsharpen name=x ! lapsharpen ! lapsharpen name="my lap" amount=2',
                    changes=(("x", "amount", 3.0, 5), ("x", "amount", 1.0, 9)))
        self.assertIsNone(self.told()["changes"][1]["value"])
        code, result = verify(self.path("out.npy"))
        self.assertEqual((code, result.get("different")), (0, 0), result)

    def test_bits_that_compare_as_equal(self):
        values = np.array([[0.0, np.nan, 1.0, 2.0]] * 3, np.float32)
        np.save(self.path("in.npy"), values)
        play(f"picturesrc location={self.path('in.npy')} ! other/tensors ! picturesink location={self.path('out.npy')}"
             " sidecar=always")
        self.assertEqual(verify(self.path("out.npy"))[0], 0)
        out = np.load(self.path("out.npy"))
        out.reshape(-1)[0] = -0.0
        np.save(self.path("out.npy"), out)
        self.assertEqual(verify(self.path("out.npy"))[0], 1)

    def test_sidecars_of_strangers(self):
        self.record()
        told = self.told()
        for change in ({"frames": 0}, {"frames": -1}, {"frames": 10 ** 25}, {"frames": 10 ** 12}, {"frames": 13}, {"sources": None}, {"first": "x"},
                       {"pipeline": f"( filesrc location=/dev/null ! filesink location={self.path('s')} ) picturesink"},
                       {"pipeline": "picturesink"}, {"sources": [{"element": "a", "kind": "file"}]},
                       {"sources": [{"element": "picturesrc0", "kind": "generated"}],
                        "elements": [{"name": "picturesrc0", "element": "appsrc"}]},
                       {"changes": [{"frame": 99, "element": "zz", "property": "amount", "value": "1"}]}):
            with open(self.path("out.npy.json"), "w", encoding="utf-8") as file:
                json.dump({**told, **change}, file)
            code, result = verify(self.path("out.npy"))
            self.assertEqual(code, 3, (change, result))
        self.assertFalse(os.path.exists(self.path("s")))

    def test_frames_that_a_leaky_queue_dropped(self):
        """Those of the recording are compared by their numbers."""
        pipeline = Gst.parse_launch(f"picturesrc location={self.path('in.npy')} ! queue name=q leaky=downstream max-size-buffers=1 ! lapsharpen amount=2"
                                    f" ! identity name=slow sleep-time=30000 ! picturesink location={self.path('out.npy')}")
        pipeline.set_state(Gst.State.PLAYING)
        pipeline.get_bus().timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        told = self.told()
        self.assertLess(told["frames"], 12)
        code, result = verify(self.path("out.npy"))
        self.assertEqual((code, result.get("frames"), result.get("different")), (0, told["frames"], 0), result)

    def test_the_first_frames_were_dropped(self):
        pipeline = Gst.parse_launch(f"picturesrc location={self.path('in.npy')} ! lapsharpen amount=2 ! picturesink name=out location={self.path('out.npy')}")
        pipeline.get_by_name("out").sinkpads[0].add_probe(
            Gst.PadProbeType.BUFFER, lambda _pad, info: Gst.PadProbeReturn.DROP if info.get_buffer().offset < 3 else Gst.PadProbeReturn.OK)
        pipeline.set_state(Gst.State.PLAYING)
        pipeline.get_bus().timed_pop_filtered(TIMEOUT * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual(self.told()["frame-numbers"], [[3, 1, 9]])
        code, result = verify(self.path("out.npy"))
        self.assertEqual((code, result.get("frames"), result.get("different")), (0, self.told()["frames"], 0), result)

    def test_a_live_source_is_refused(self):
        play(f"videotestsrc is-live=true num-buffers=3 ! video/x-raw,format=GRAY8,framerate=100/1 ! lapsharpen"
             f" ! picturesink location={self.path('live.npy')}")
        code, result = verify(self.path("live.npy"))
        self.assertEqual(code, 3)
        self.assertIn("came live", result["error"])

    def test_changes_count_from_the_same_frames(self):
        for between in "", "queue !":
            with self.subTest(between=between):
                self.record(f"{between} lapsharpen name=x ! {between} lapsharpen name=y amount=0.5",
                            changes=(("y", "amount", 3.0, 5), ("y", "amount", 0.5, 9), ("y", "border", 1, 9)))
                told = self.told()
                self.assertEqual([(c["frame"], c["property"]) for c in told["changes"]],
                                 [(5, "amount"), (9, "amount"), (9, "border")])
                code, result = verify(self.path("out.npy"))
                self.assertEqual((code, result.get("different")), (0, 0), result)

    def test_a_bscan_of_several_buffers_with_a_change(self):
        np.save(self.path("spectra.npy"), RNG.integers(0, 4096, (16, 64, 256), np.uint16))
        self.record("octbscan name=o ascans-per-bscan=128 range-min=30 range-max=90", source="spectra.npy",
                    changes=(("o", "range-max", 80.0, 4), ("o", "refractive-index", 1.38, 9)))
        told = self.told()
        self.assertEqual(told["frames"], 8)
        self.assertEqual([c["property"] for c in told["changes"]], ["range-max", "refractive-index"])
        code, result = verify(self.path("out.npy"))
        self.assertEqual((code, result.get("different")), (0, 0), result)

    def test_axes_are_compared(self):
        np.save(self.path("spectra.npy"), RNG.integers(0, 4096, (4, 64, 256), np.uint16))
        self.record("octbscan name=o lateral-step-um=5", source="spectra.npy", changes=(("o", "lateral-step-um", 10.0, 2),))
        self.assertEqual(verify(self.path("out.npy"))[0], 0)
        told = self.told()
        told["quantity"]["axes"][0]["step"] = 5
        with open(self.path("out.npy.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)
        code, result = verify(self.path("out.npy"))
        self.assertEqual(code, 1)
        self.assertIn("axes[0].step of the quantity is not what it is now", result["error"])

    @unittest.skipUnless({"fits", "tiff"} <= set(os.environ["FORMATS"].split()), "built without FITS or TIFF")
    def test_units_in_headers_are_compared(self):
        """Also where the .json is as it was."""
        np.save(self.path("spectra.npy"), RNG.integers(0, 4096, (1, 64, 256), np.uint16))
        for extension, changes in ("fits", {rb"(CDELT1  = +)5": rb"\g<1>6", rb"(CUNIT1  = )'um": rb"\g<1>'mm", rb"CTYPE1": rb"CTYPX1"}), (
                "tif", {rb'(PhysicalSizeX=")5"': rb'\g<1>7"'}):
            name = self.path(f"o.{extension}")
            sink = name if extension == "fits" else self.path("o%d.tif")
            file = name if extension == "fits" else self.path("o0.tif")
            play(f"picturesrc location={self.path('spectra.npy')} ! octbscan lateral-step-um=5 ! other/tensors ! picturesink location={sink}")
            self.assertEqual(verify(file, "--exact")[0], 0)
            with open(file, "rb") as opened:
                data = opened.read()
            for old, new in changes.items():
                changed, n = re.subn(old, new, data)
                self.assertEqual((n, len(changed)), (1, len(data)), old)
                with open(file, "wb") as opened:
                    opened.write(changed)
                for words in (), ("--exact",):
                    code, result = verify(file, *words)
                    self.assertEqual((code, "The header is not what is written now" in result["error"]), (1, True), (old, result))

    def test_settings_beside_a_source(self):
        """Another layout of the same bytes is another source."""
        with open(self.path("vol.unp"), "wb") as file:
            file.write(RNG.integers(0, 4096, (2, 6, 64)).astype("<u2").tobytes())
        xml = '<MonsterList><Volume><Volume_Size Width="64" Height="6" Number_of_Frames="2" Number_of_Volumes="1"/></Volume></MonsterList>'

        def write(text):
            with open(self.path("vol.xml"), "w", encoding="utf-8") as file:
                file.write(text)

        write(xml)
        play(f"picturesrc location={self.path('vol.unp')} ! picturesink location={self.path('v.npy')} sidecar=always")
        self.assertEqual(verify(self.path("v.npy"))[0], 0)
        write(xml.replace('Height="6"', 'Height="3"').replace('Frames="2"', 'Frames="4"'))
        code, result = verify(self.path("v.npy"))
        self.assertEqual((code, "vol.xml is not the file" in result["error"]), (3, True), result)
        os.remove(self.path("vol.xml"))
        code, result = verify(self.path("v.npy"))
        self.assertEqual((code, "vol.xml is not there" in result["error"]), (3, True), result)

    def test_an_error_of_the_command_is_not_one_of_the_file(self):
        self.record()
        script = ("import sys\nfrom gst_imaging import command, library\n"
                  "def fail(*_arguments):\n    raise AttributeError('of the command')\n"
                  "library.describe = fail\nsys.exit(command.main(sys.argv[1:]))\n")
        done = subprocess.run([sys.executable, "-B", "-c", script, "verify", self.path("out.npy")], text=True, capture_output=True,
                              check=False, timeout=TIMEOUT, env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines")})
        self.assertIn("of the command", done.stderr)
        self.assertNotIn("not as picturesink writes it", done.stderr)

    def test_sets_with_a_change_and_a_file_of_settings(self):
        with open(self.path("lights.txt"), "w", encoding="utf-8") as file:
            file.write("0.5 0 0.866\n-0.25 0.433 0.866\n-0.25 -0.433 0.866\n0 0 1\n")
        np.save(self.path("set.npy"), RNG.integers(40, 220, (12, 8, 10), np.uint8))
        description = (f"picturesrc location={self.path('set.npy')} ! photostereo name=p"
                       f" lights-location={self.path('lights.txt')} p.normal ! picturesink location={self.path('n.npy')}")
        play(description, (("p", "t-min", 0.01, 4),))
        code, result = verify(self.path("n.npy"))
        self.assertEqual((code, result.get("different")), (0, 0), result)
        with open(self.path("lights.txt"), "a", encoding="utf-8") as file:
            file.write("\n")
        code, result = verify(self.path("n.npy"))
        self.assertEqual((code, f"p: lights-location={self.path('lights.txt')}: a setting" in result["error"]), (1, True), result)

    def test_floats_within_the_tolerance(self):
        np.save(self.path("spectra.npy"), RNG.integers(0, 4096, (2, 64, 256), np.uint16))
        play(f"picturesrc location={self.path('spectra.npy')} ! octbscan name=o ! other/tensors"
             f" ! picturesink location={self.path('dB.npy')}")
        self.assertEqual(verify(self.path("dB.npy"))[0], 0)
        level = np.load(self.path("dB.npy"))
        largest = np.unravel_index(level.argmax(), level.shape)
        for off, expected in ((5e-5, 0), (0.001, 1)):
            other = level.copy()
            other[largest] += off
            other[0, 0, 0] = level[0, 0, 0]
            np.save(self.path("dB.npy"), other)
            code, result = verify(self.path("dB.npy"))
            # one sample of all may differ more
            self.assertEqual(code, 0, result)
            self.assertEqual(result["beyond-tolerance"], expected)
            code, result = verify(self.path("dB.npy"), "--exact")
            self.assertEqual((code, str(list(map(int, largest))) in result["error"]), (1, True), result)
        printed = gst_imaging("verify", self.path("dB.npy"))
        self.assertIn(f"1 samples differ, 1 of them beyond the tolerance, the first at dB.npy{list(map(int, largest))}: it was", printed)
        level[0, 0, :2] = 300  # a share of 1e-4 may differ, and not by any amount
        np.save(self.path("dB.npy"), level)
        code, result = verify(self.path("dB.npy"))
        self.assertEqual((code, "the first at dB.npy[0, 0, 0]: it was 300.0" in result["error"]), (1, True), result)
        level[0, 0, :2] = 0
        np.save(self.path("dB.npy"), level + np.float32(0.01))
        self.assertEqual(verify(self.path("dB.npy"))[0], 1)


main()
