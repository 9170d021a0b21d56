# SPDX-License-Identifier: LGPL-2.1-or-later
"""shreconstruct behind shcentroid: closed loops beside the same controller in float64, and gst-imaging ao."""
import hashlib
import json
import os
import subprocess
import sys

import numpy as np

from support import SOURCE, TIMEOUT, FolderCase, Gst, blocks, damage_sidecar, gst_imaging, main, name_axes, play

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import library, metadata
from gst_imaging.ao import aot, bases, matrices, telemetry

CELLS, PITCH = 6, 8  # along each axis
SENSOR = f"shcentroid name=sh columns={CELLS} rows={CELLS} pitch-x={PITCH} pitch-y={PITCH}"
N = CELLS * CELLS


def frame_of(slopes, rng):
    """16-bit spots that have moved by [2 N] slopes, in pixels"""
    y, x = np.mgrid[:CELLS * PITCH, :CELLS * PITCH]
    light = np.zeros(x.shape)
    for i in range(N):
        row, column = divmod(i, CELLS)
        cx, cy = (column + 0.5) * PITCH - 0.5 + slopes[i], (row + 0.5) * PITCH - 0.5 + slopes[N + i]
        light += 5000 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 2)
    return rng.poisson(light).astype("<u2")


class Stream:
    """Frames in, one buffer out for each."""

    def __init__(self, elements, caps=f"video/x-raw,format=GRAY16_LE,width={CELLS * PITCH},height={CELLS * PITCH},framerate=1000/1"):
        self.pipeline = Gst.parse_launch(f"appsrc name=in format=time ! {elements} ! appsink name=out sync=false")
        self.source, self.sink = self.pipeline.get_by_name("in"), self.pipeline.get_by_name("out")
        self.source.set_property("caps", Gst.Caps.from_string(caps))
        self.pipeline.set_state(Gst.State.PLAYING)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.pipeline.set_state(Gst.State.NULL)

    def buffer(self, frame):
        return self.push(Gst.Buffer.new_wrapped(frame.tobytes()))

    def push(self, buffer):
        self.source.emit("push-buffer", buffer)
        sample = self.sink.emit("try-pull-sample", TIMEOUT * Gst.SECOND)
        if not sample:
            message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise AssertionError(message.parse_error() if message else "no buffer came")
        return sample.get_buffer()

    def commands(self, frame):
        return self.numbers(self.buffer(frame))

    @staticmethod
    def numbers(buffer):
        return np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32).astype(float)


class Folder(FolderCase):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(4)

    def save(self, name, array):
        path = os.path.join(self.folder, name)
        np.save(path, array)
        return path

    def save_fits(self, name, values, *cards):
        path = os.path.join(self.folder, name)
        header = ["SIMPLE  =                    T", "BITPIX  =                  -32", f"NAXIS   = {values.ndim:20d}",
                  *(f"NAXIS{i}  = {n:20d}" for i, n in enumerate(reversed(values.shape), 1)), *cards, "END"]
        header = "".join(card.ljust(80) for card in header).encode("ascii")
        data = values.astype(">f4").tobytes()
        with open(path, "wb") as file:
            file.write(header + b" " * (-len(header) % 2880) + data + b"\0" * (-len(data) % 2880))
        return path


class Loop(Folder):
    def setUp(self):
        super().setUp()
        self.influence = self.rng.normal(size=(2 * N, 12)) / 10
        self.control = np.linalg.pinv(self.influence).astype(np.float32)
        self.matrix = self.save("control.npy", self.control)

    def close_loop(self, properties, expect, n_frames=40):
        """Compares each frame with expect(slopes in float64). Returns: rms of the slopes that are left, of each frame"""
        aberration, commands, left, squares, worst = self.rng.normal(size=2 * N) / 4, np.zeros(12), [], 0, 0
        aberration = self.influence @ (self.control @ aberration)  # what the mirror can do
        with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix} {properties}") as stream:
            for _ in range(n_frames):
                slopes = aberration + self.influence @ commands
                left.append(np.sqrt(np.mean(slopes ** 2)))
                buffer = stream.buffer(frame_of(slopes, self.rng))
                measured = metadata.results(buffer, "sh")["values"].astype(float).reshape(-1)
                commands = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32).astype(float)
                expected = expect(measured)
                worst = max(worst, np.abs(commands - expected).max())
                squares += np.mean(expected ** 2)
        self.assertLess(worst, 1e-5 * np.sqrt(squares / n_frames))
        return left

    def test_an_integrator_is_that_of_float64(self):
        state = np.zeros(12)

        def expect(slopes):
            state[:] = 0.98 * state - 0.4 * self.control.astype(float) @ slopes
            return state
        left = self.close_loop("gain=0.4 leak=0.02", expect)
        self.assertLess(np.mean(left[20:]), 0.15 * left[0])

    def test_a_controller_of_terms_is_that_of_float64(self):
        terms = np.array([[0.6, 0.4, 0], [0.5, -0.1, 0.05]])  # a_1.., b_0..
        path = self.save("pi.npy", terms)
        q, u = np.zeros((3, 12)), np.zeros((3, 12))

        def expect(slopes):
            u[1:], u[0] = u[:-1].copy(), -self.control.astype(float) @ slopes
            new = terms[0] @ q + terms[1] @ u
            q[1:], q[0] = q[:-1].copy(), new
            return new
        left = self.close_loop(f"controller-location={path}", expect)
        self.assertLess(np.mean(left[20:]), 0.15 * left[0])

    def test_modes_have_gains_of_their_own(self):
        modes = np.linalg.qr(self.rng.normal(size=(12, 12)))[0][:, :5].astype(np.float32)
        self.matrix = self.save("modal.npy", modes.T @ self.control)
        gains, state = [0.5, 0.4, 0.3, 0.2, 0], np.zeros(5)
        product = np.load(self.matrix).astype(float)

        def expect(slopes):
            state[:] -= np.array(gains) * (product @ slopes)
            return modes.astype(float) @ state
        path = self.save("modes.npy", modes)
        self.close_loop(f"modes-location={path} gain=1 mode-gains=\"<{','.join(map(str, gains))}>\"", expect)

    def test_the_loop_holds_other_slopes_where_they_are_asked_for(self):
        wanted = self.influence @ self.rng.normal(size=12) / 4
        path = self.save("offsets.npy", wanted.reshape(2, N))
        state = np.zeros(12)

        def expect(slopes):
            state[:] -= 0.5 * self.control.astype(float) @ (slopes - wanted.astype(np.float32))
            return state
        left = self.close_loop(f"gain=0.5 slope-offsets-location={path}", expect)
        self.assertAlmostEqual(left[-1], np.sqrt(np.mean(wanted ** 2)), delta=0.02)

    def test_invalid_cells_leave_the_least_squares_fit(self):
        bad = set(self.rng.choice(N, 7, replace=False))  # 20 %: no light at all
        keep = [i for i in range(2 * N) if i % N not in bad]
        interaction = self.save("interaction.npy", self.influence.astype(np.float32))
        state, dark = np.zeros(12), [False] * 10 + [True] * 20 + [False] * 10

        def commands(elements):
            slopes = self.influence @ self.rng.normal(size=12) / 4
            found, expected, squares = [], [], []
            with Stream(elements) as stream:
                for is_dark in dark:
                    frame = frame_of(slopes, self.rng)
                    for i in bad if is_dark else ():
                        row, column = divmod(i, CELLS)
                        frame[row * PITCH:(row + 1) * PITCH, column * PITCH:(column + 1) * PITCH] = 0
                    buffer = stream.buffer(frame)
                    s = metadata.results(buffer, "sh")["values"].astype(float).reshape(-1)
                    rows = keep if is_dark else range(2 * N)
                    state[:] = state - 0.4 * np.linalg.lstsq(self.influence[rows], s[rows], rcond=None)[0]
                    found.append(np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32).astype(float))
                    expected.append(state.copy())
                    squares.append(np.mean(state ** 2))
                    self.assertEqual(metadata.results(buffer, "rc")["cells-excluded"], len(bad) * is_dark)
            return np.abs(np.array(found) - expected).max() / np.sqrt(np.mean(squares))
        self.assertLess(commands(f"{SENSOR} fields=slopes ! shreconstruct name=rc matrix-location={self.matrix} gain=0.4"
                                 f" invalid-policy=exclude interaction-location={interaction} exclude-cells=20"), 1e-5)

    def warnings_of(self, elements, frame):
        """Commands of one frame, and the warnings before it"""
        with Stream(f"{SENSOR} fields=slopes ! shreconstruct name=rc {elements}") as stream:
            commands, bus, found = stream.commands(frame), stream.pipeline.get_bus(), []
            while message := bus.pop_filtered(Gst.MessageType.WARNING):
                found.append(message.parse_warning()[0].message)
        return commands, found

    def test_an_interaction_matrix_of_modes_or_another_unit_is_the_same_fit(self):
        """As pyRTC measures it: [2 cells, modes]; also with as many modes as commands"""
        frame = frame_of(self.influence @ self.rng.normal(size=12) / 4, self.rng)
        for row, column in (0, 1), (2, 3), (4, 4):
            frame[row * PITCH:(row + 1) * PITCH, column * PITCH:(column + 1) * PITCH] = 0
        for n in 5, 12:
            modes = self.rng.normal(size=(12, n))
            of_modes = self.influence @ modes
            found = []
            for name, values, scale in (("d", self.influence, 1), ("unit", self.influence * 1e-3, 1), ("gain", self.influence, 0.5), ("modal", of_modes, 1)):
                control = self.save(f"r{n}{name}.npy", scale * np.linalg.pinv(of_modes))
                commands, warnings = self.warnings_of(
                    f"matrix-location={control} modes-location={self.save(f'm{n}.npy', modes)} gain={0.4 / scale} invalid-policy=exclude"
                    f" interaction-location={self.save(f'{name}{n}.npy', values)}", frame)
                told = ["have the same units" in text for text in warnings]
                self.assertEqual(told, [True] if name == "unit" else [], warnings)
                found.append(commands)
            for commands in found[1:]:
                np.testing.assert_allclose(commands, found[0], atol=1e-4 * np.abs(found[0]).max())

    def test_a_matrix_that_the_interaction_matrix_does_not_explain_is_told(self):
        prior = self.rng.normal(size=(12, 12))
        d, prior = self.influence, prior @ prior.T / 12 + 0.1 * np.eye(12)
        control = np.linalg.solve(d.T @ d + 0.01 * np.linalg.inv(prior), d.T)
        for scale, expected in (1, 0), (0.5, 1):
            _, warnings = self.warnings_of(f"matrix-location={self.save(f'{scale}.npy', scale * control)} invalid-policy=exclude"
                                           f" interaction-location={self.save('d.npy', d)}", frame_of(np.zeros(2 * N), self.rng))
            self.assertEqual(len(warnings), expected, warnings)
        self.assertRegex(warnings[0], r"R D is at most 0\.(49\d|5), .*Check that interaction-location has the unit of the commands")

    def test_a_loop_is_better_without_dark_cells_than_with_zeros(self):
        """Other cells are dark every 100 frames, in a round pupil: 20 % at random, or a band that sweeps it"""
        for kind, lenslets, bound in ("random", 20, 1), ("band", 16, 1.05):
            y, x = np.indices((lenslets, lenslets)) - (lenslets - 1) / 2
            grid = np.hypot(x, y) <= lenslets / 2
            column, interaction = np.nonzero(grid)[1], bases.fried(np, grid)
            u, strengths, modes = np.linalg.svd(interaction, full_matrices=False)
            seen = strengths > strengths[0] / 20
            u, strengths, modes = u[:, seen], strengths[seen], modes[seen]
            control = self.save("r.npy", modes.T / strengths @ u.T)
            files = f"matrix-location={control} interaction-location={self.save('d.npy', interaction)} gain=0.4 n-threads=1"
            left = {}
            for policy in "zero", "exclude", "exclude exclude-cells=65536":
                rng, air, sent, squares = np.random.default_rng(5), 0, [np.zeros(interaction.shape[1])] * 2, []
                with Stream(f"shreconstruct {files} invalid-policy={policy}",
                            "other/tensors,format=static,num_tensors=1,types=float32,framerate=1000/1,"
                            f"dimensions=(string){len(interaction)}:1:1:1") as stream:
                    for t in range(600):
                        if t % 100 == 0:
                            dark = (rng.random(len(column)) < 0.2 if kind == "random"
                                    else (column - t // 50 >= 0) & (column - t // 50 < 0.2 * lenslets))
                        air = 0.99 * air + 0.1 * modes.T @ (rng.normal(size=len(strengths)) / strengths)
                        slopes = interaction @ (air + sent[-2]) + 0.1 * rng.normal(size=len(interaction))
                        squares.append(np.mean((modes @ (air + sent[-2])) ** 2))
                        sent.append(stream.commands(np.where(np.tile(dark, 2), np.nan, slopes).astype(np.float32)))
                left[policy] = np.sqrt(np.mean(squares[100:]))
            print(f"{kind}: {left}", file=sys.stderr)
            best = min(value for policy, value in left.items() if policy != "exclude")
            self.assertLess(left["exclude"], 1.05 * best)
            self.assertLess(left["exclude"], bound * left["zero"])

    def test_the_file_tells_the_order_of_its_slopes(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        turned = self.save("turned.npy", self.control.reshape(12, 2, N).transpose(0, 2, 1).reshape(12, 2 * N))
        name_axes(turned, [12, 2 * N], "slopes interleaved")
        found = []
        for properties in (f"matrix-location={self.matrix}", f"matrix-location={turned}"):
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct {properties}") as stream:
                found.append(stream.commands(frame))
        np.testing.assert_array_equal(found[0], found[1])
        with self.assertRaisesRegex(AssertionError, "says that its slopes are interleaved"):
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={turned} slope-order=x-then-y") as stream:
                stream.commands(frame)

    def test_a_file_beside_the_matrix_that_is_damaged_is_refused(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        name_axes(self.matrix, [12, 2 * N], "slopes interleaved")
        for text in damage_sidecar(self.matrix):
            with self.subTest(text=text), self.assertRaisesRegex(AssertionError, 'matrix-location: .*control.npy.json'):
                with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix}") as stream:
                    stream.commands(frame)
        with open(self.matrix + ".json", "w", encoding="utf-8") as file:
            file.write("{}")  # of somebody else
        with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix}") as stream:
            stream.commands(frame)

    def test_a_row_of_the_matrix_is_what_its_file_says(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        modes = f"modes-location={self.save('modes.npy', np.eye(12, dtype=np.float32))}"
        turned = self.save("turned.npy", np.ascontiguousarray(self.control.T))
        name_axes(turned, [2 * N, 12], "mode", "slopes x-then-y")
        for name, matrix in (("mode", self.matrix), ("command", self.matrix), ("mode", turned)):
            if matrix == self.matrix:
                name_axes(matrix, [12, 2 * N], "slopes x-then-y", name)
            good, bad = (modes, "") if name == "mode" else ("", modes)
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={matrix} {good}") as stream:
                stream.commands(frame)
            with self.assertRaisesRegex(AssertionError, f'names its rows "{name}"'):
                with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={matrix} {bad}") as stream:
                    stream.commands(frame)

    def test_a_matrix_whose_axes_are_named_the_other_way_round_is_transposed(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        frame[:PITCH, :PITCH] = 0
        turned = self.control.reshape(12, 2, N).transpose(0, 2, 1).reshape(12, 2 * N)
        d = self.influence.astype(np.float32)
        exclude = f"invalid-policy=exclude interaction-location={self.save('d.npy', d)}"
        files = [f"matrix-location={self.matrix} {exclude}"]
        for i, (values, name) in enumerate(((self.control, "slopes x-then-y"), (turned, "slopes interleaved"), (self.control, "slopes"))):
            path = self.save(f"t{i}.npy", np.ascontiguousarray(values.T))
            name_axes(path, [2 * N, 12], "command", name)
            files.append(f"matrix-location={path} {exclude}")
        path = self.save("dt.npy", np.ascontiguousarray(d.T))
        name_axes(path, [12, 2 * N], "slopes", "command")
        files.append(f"matrix-location={self.matrix} invalid-policy=exclude interaction-location={path}")
        found = []
        for properties in files:
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct {properties}") as stream:
                found.append(stream.commands(frame))
        for commands in found[1:]:
            np.testing.assert_array_equal(commands, found[0])

    def name_lenslets(self, path, shape, cells, *names, **more):
        """As `ao invert` does."""
        name_axes(path, shape, *names)
        with open(path + ".json", encoding="utf-8") as file:
            told = json.load(file)
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump({**told, "row-column": cells, **more}, file)

    def test_a_matrix_of_other_lenslets_is_refused(self):
        """As many cells of another grid: in the first frame, and in a loop that goes on with the matrix before"""
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        same = [list(divmod(i, CELLS)) for i in range(N)]
        other = same[:7] + [[1, 5]] + same[8:]
        elements = f"{SENSOR} fields=slopes ! shreconstruct name=rc matrix-location={self.matrix}"
        for cells in same, [[0, i] for i in range(N)]:  # the latter of a map without rows and columns
            self.name_lenslets(self.matrix, [12, 2 * N], cells, "slopes x-then-y", "command")
            with Stream(elements) as stream:
                stream.commands(frame)
        sentence = "cell 7 is that of row 1, column 1, and in the matrix that of row 1, column 5"
        self.name_lenslets(self.matrix, [12, 2 * N], other, "slopes x-then-y", "command")
        with self.assertRaisesRegex(AssertionError, sentence):
            with Stream(elements) as stream:
                stream.commands(frame)
        good = self.save("good.npy", self.control)
        with Stream(f"{SENSOR} fields=slopes ! shreconstruct name=rc matrix-location={good} gain=1 leak=1") as stream:
            before = stream.commands(frame)
            stream.pipeline.get_by_name("rc").set_property("matrix-location", self.matrix)
            np.testing.assert_array_equal(stream.commands(frame), before)
            warning = stream.pipeline.get_bus().pop_filtered(Gst.MessageType.WARNING)
            self.assertRegex(warning.parse_warning()[0].message, sentence)

    def test_both_matrices_are_of_the_same_lenslets(self):
        cells = [list(divmod(i, CELLS)) for i in range(N)]
        interaction = self.save("d.npy", self.influence.astype(np.float32))
        self.name_lenslets(self.matrix, [12, 2 * N], cells, "slopes x-then-y", "command")
        self.name_lenslets(interaction, [2 * N, 12], cells[:-1] + [[9, 9]], "command", "slopes x-then-y")
        with self.assertRaisesRegex(AssertionError, f"measured with other lenslets than .*: cell {N - 1} is another one"):
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix} interaction-location={interaction}") as stream:
                stream.commands(frame_of(np.zeros(2 * N), self.rng))

    def test_lenslets_that_are_named_wrongly_are_told(self):
        cells = [list(divmod(i, CELLS)) for i in range(N)]
        for wrong, sentence in ((7, 'no list in "row-column"'), ([*cells[:3], [1], *cells[4:]], "for cell 3"), ([*cells[:-1], [1, 2, 3]], f"for cell {N - 1}"),
                                ([[0, -1], *cells[1:]], "for cell 0"), ([[0, 1.5], *cells[1:]], "for cell 0"), ([["a", "b"], *cells[1:]], "for cell 0"),
                                (cells[1:], f"has {2 * N} slopes, and the .json beside it names {N - 1} lenslets")):
            self.name_lenslets(self.matrix, [12, 2 * N], wrong, "slopes x-then-y", "command")
            with self.subTest(wrong=str(wrong)[:20]), self.assertRaisesRegex(AssertionError, sentence):
                with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix}") as stream:
                    stream.commands(frame_of(np.zeros(2 * N), self.rng))

    def test_a_file_beside_a_matrix_that_was_replaced_is_refused(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        with open(self.matrix, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.name_lenslets(self.matrix, [12, 2 * N], [list(divmod(i, CELLS)) for i in range(N)], "slopes x-then-y", "command", sha256=digest)
        elements = f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix}"
        with Stream(elements) as stream:
            stream.commands(frame)
        self.save("control.npy", 2 * self.control)
        with self.assertRaisesRegex(AssertionError, "control.npy.json.* tells of another array: .*sha256"):
            with Stream(elements) as stream:
                stream.commands(frame)

    def test_a_matrix_that_would_fit_transposed_is_told(self):
        path = self.save("t.npy", np.ascontiguousarray(self.control.T))
        with self.assertRaisesRegex(AssertionError, f"would fit the {N} cells of the sensor transposed"):
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={path}") as stream:
                stream.commands(frame_of(np.zeros(2 * N), self.rng))

    def test_cubes_of_cacao_are_matrices(self):
        """[modes, y, x]: of control matrix, interaction matrix and modes"""
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        frame[:PITCH, :PITCH] = 0
        modes = np.linalg.qr(self.rng.normal(size=(12, 5)))[0].astype(np.float32)
        d = self.influence.astype(np.float32)
        modal = np.linalg.pinv(d @ modes).astype(np.float32)
        files = {"": [self.save(f"{name}.npy", values) for name, values in (("r", modal), ("m", modes), ("d", d))]}
        for kind, cards in ("cube", ()), ("named", ["CTYPE1  = 'x       '", "CTYPE2  = 'slopes x-then-y'", "CTYPE3  = 'mode    '"]):
            files[kind] = [self.save_fits(f"{kind}-{name}.fits", values.reshape(len(values), -1, columns), *cards)
                           for name, values, columns in (("r", modal, CELLS), ("m", modes.T, 4), ("d", d.T, CELLS))]
        turned = modal.reshape(5, 2, N).transpose(0, 2, 1)
        files["interleaved"] = [self.save_fits("i.fits", turned, "CTYPE1  = 'interleaved'"), *files["cube"][1:]]
        of_pairs = d.reshape(2, N, 12).transpose(2, 1, 0)
        files["pairs"] = [self.save("i.npy", turned), files["cube"][1], self.save_fits("di.fits", of_pairs)]
        found = []
        for matrix, modes, interaction in files.values():
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={matrix} modes-location={modes} invalid-policy=exclude"
                        f" interaction-location={interaction}") as stream:
                found.append(stream.commands(frame))
        for commands in found[1:]:
            np.testing.assert_array_equal(commands, found[0])
        self.assertGreater(np.abs(found[0]).max(), 0.01)

    def test_telemetry_names_its_images(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        frame[:PITCH, :PITCH] = 0
        modes = np.linalg.qr(self.rng.normal(size=(12, 5)))[0].astype(np.float32)
        d, flat, offsets = self.influence.astype(np.float32), self.rng.normal(size=12), self.rng.normal(size=(2, N)) / 9
        modal = np.linalg.pinv(d @ modes).astype(np.float32)
        path = f"{self.folder}/telemetry.fits"
        aot.write(np, path, [], {}, [aot.Image(name, np.ascontiguousarray(values)) for name, values in (
            ("MEASUREMENTS", np.ones((9, 2, N))), ("MEASUREMENTS_TO_MODES", modal.reshape(5, 2, N)), ("MODES_TO_COMMANDS", modes),
            ("INTERACTION_MATRIX", d.reshape(2, N, 12).transpose(1, 0, 2)), ("REF_COMMANDS", flat), ("REF_MEASUREMENTS", offsets))])
        both = f"{self.folder}/both.fits"
        aot.write(np, both, [], {}, [aot.Image(name, np.ascontiguousarray(values)) for name, values in (
            ("CONTROL_MATRIX", self.control.reshape(12, 2, N)), ("MODES_TO_COMMANDS", np.eye(12)))])
        names = "matrix", "modes", "interaction", "reference", "slope-offsets"
        found = []
        pairs = self.save("pairs.npy", d.reshape(2, N, 12).transpose(1, 0, 2))
        for files in ([self.save(f"{name}.npy", values) for name, values in zip(names, (modal, modes, d, flat, offsets))], [path] * 5, [path, path, pairs, path, path]):
            properties = " ".join(f"{name}-location={file}" for name, file in zip(names, files))
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct {properties} invalid-policy=exclude") as stream:
                found.append(stream.commands(frame))
        np.testing.assert_array_equal(found[1], found[0])
        np.testing.assert_array_equal(found[2], found[0])
        with self.assertRaisesRegex(AssertionError, r"has f64 \[9, 2, 5\]; it needs \[72, 12\]"):
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix} invalid-policy=exclude interaction-location="
                        + self.save("few.npy", np.ones((9, 2, 5)))) as stream:
                stream.commands(frame)
        for wrong in 0, 1:
            mask = np.arange(N, dtype=np.int32).reshape(CELLS, CELLS)
            mask[:2, 0] = mask[1::-1, 0] if wrong else mask[:2, 0]
            masked = f"{self.folder}/masked{wrong}.fits"
            aot.write(np, masked, [], {}, [aot.Image(name, np.ascontiguousarray(values)) for name, values in (
                ("CONTROL_MATRIX", self.control.reshape(12, 2, N)), ("INTERACTION_MATRIX", d.reshape(2, N, 12).transpose(1, 0, 2)), ("SUBAPERTURE_MASK", mask))])
            with Stream(f"{SENSOR} fields=slopes ! shreconstruct matrix-location={masked}") as stream:
                if not wrong:
                    stream.commands(frame)
                    continue
                with self.assertRaisesRegex(AssertionError, "cell 0 is that of row 0, column 0, and in the matrix that of row 1, column 0"):
                    stream.commands(frame)
            gst_imaging("ao", "invert", masked, "-o", f"{self.folder}/inverse")
            with open(f"{self.folder}/inverse/control.npy.json", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["row-column"][:CELLS + 1], [[1, 0], *([0, i] for i in range(1, CELLS)), [0, 0]])
        for files, sentence in ((f"matrix-location={path}", "has the image MEASUREMENTS_TO_MODES: set modes-location"),
                                (f"matrix-location={both} modes-location={both}", "has the image CONTROL_MATRIX, and modes-location needs")):
            with self.assertRaisesRegex(AssertionError, sentence):
                with Stream(f"{SENSOR} fields=slopes ! shreconstruct {files}") as stream:
                    stream.commands(frame)
        two = f"{self.folder}/two.fits"
        aot.write(np, two, [], {}, [aot.Image(name, self.control.reshape(12, 2, N)) for name in ("A", "B")])
        for properties, sentence in ((f"matrix-location={two}", r"has 2 images \(0: A f32 \[12, 2, 36\]; 1: B .*, none of them named CONTROL_MATRIX"),
                                     (f"matrix-location={self.matrix} actuator-map-location={two}", "convert FILE ONE.npy --part=NUMBER")):
            with self.assertRaisesRegex(AssertionError, sentence):
                with Stream(f"{SENSOR} fields=slopes ! shreconstruct {properties}") as stream:
                    stream.commands(frame)

    def test_slopes_of_others_come_from_shared_memory(self):
        """As pyRTC (2 N,) and cacao (2 N, 1) have them, as pairs (N, 2), and as an image with a matrix that is a cube"""
        cube = self.save_fits("cube.fits", self.control.reshape(12, 2 * CELLS, CELLS))
        slopes = self.rng.normal(size=2 * N).astype(np.float32)
        expected = -0.5 * self.control.astype(float) @ slopes
        for matrix, axes, dims, values, order in ((self.matrix, 1, f"{2 * N}:1", slopes, "auto"), (self.matrix, 2, f"{2 * N}:1", slopes, "x-then-y"),
                                                  (self.matrix, 1, f"{2 * N}:1", slopes.reshape(2, N).T, "interleaved"),
                                                  (self.matrix, 2, f"2:{N}", slopes.reshape(2, N).T, "auto"),
                                                  (cube, 2, f"{CELLS}:{2 * CELLS}", slopes, "auto")):
            writer = Gst.parse_launch(f"appsrc name=in format=time ! shmimsink stream=signal-{dims} replace=true folder={self.folder} axes={axes}")
            writer.get_by_name("in").set_property("caps", Gst.Caps.from_string(
                f"other/tensors,format=static,num_tensors=1,types=float32,dimensions={dims}:1:1,framerate=0/1"))
            reader = Gst.parse_launch(f"shmimsrc stream=signal-{dims} folder={self.folder} ! shreconstruct matrix-location={matrix}"
                                      f" input-order={order} ! appsink name=out sync=false")
            writer.set_state(Gst.State.PLAYING)
            for _ in range(2):  # the source reads what is written after its start
                writer.get_by_name("in").emit("push-buffer", Gst.Buffer.new_wrapped(values.tobytes()))
                writer.get_state(TIMEOUT * Gst.SECOND)
                reader.set_state(Gst.State.PLAYING)
            sample = reader.get_by_name("out").emit("try-pull-sample", TIMEOUT * Gst.SECOND)
            commands = np.frombuffer(sample.get_buffer().extract_dup(0, 48), np.float32)
            np.testing.assert_allclose(commands, expected, atol=1e-5)
            for pipeline in reader, writer:
                pipeline.set_state(Gst.State.NULL)

    def test_wavefronts_are_those_of_float64(self):
        grid, scale = np.ones((CELLS, CELLS), bool), 800
        left, right = bases.southwell(np, grid)
        values, modes = bases.zernikes(np, grid, 9, "noll")
        frame = frame_of(self.rng.normal(size=2 * N) / 3, self.rng)
        for method, expect in (
                ("southwell", lambda s: np.linalg.lstsq(left, right @ s, rcond=None)[0]),
                ("fried", lambda s: np.linalg.lstsq(bases.fried(np, grid), s, rcond=None)[0]),
                ("zernike", lambda s: values @ np.linalg.lstsq(modes, s, rcond=None)[0])):
            elements = (f"{SENSOR} fields=slopes ! shreconstruct name=rc matrix-location={self.matrix} wavefront-scale={scale}"
                        f" wavefront-method={method} wavefront-modes=9 ! queue ! fakesink rc.wavefront ! queue")
            with Stream(elements) as stream:
                buffer = stream.buffer(frame)
            wavefront = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.float32)
            expected = scale * expect(metadata.results(buffer, "sh")["values"].astype(float).reshape(-1))
            expected -= expected.mean()
            self.assertLess(np.abs(wavefront - expected).max(), 1e-5 * np.abs(expected).max(), method)
            told = metadata.results(buffer, "rc")
            np.testing.assert_allclose(told["values"][0], (expected.std(), expected.min(), expected.max()), rtol=1e-5)
            self.assertEqual((told["id"], metadata.quantity(buffer)["unit"]), ("ao-wavefront-v1", "nm"))
        self.assertEqual(told["modes"].shape, (9,))

    def test_metadata_tensors_and_orders_give_the_same_commands(self):
        frame = frame_of(self.rng.normal(size=2 * N) / 5, self.rng)
        turned = self.save("turned.npy", self.control.reshape(12, 2, N).transpose(0, 2, 1).reshape(12, 2 * N))
        found = []
        for elements in (
                f"{SENSOR} fields=slopes ! shreconstruct matrix-location={self.matrix}",
                f"{SENSOR} fields=all ! shreconstruct matrix-location={self.matrix}",
                f"{SENSOR} fields=slopes ! shreconstruct matrix-location={turned} slope-order=interleaved",
                f"{SENSOR} fields=slopes ! fakesink sh.results ! queue ! shreconstruct matrix-location={self.matrix}"):
            with Stream(elements) as stream:
                found.append(stream.commands(frame))
        for commands in found[1:]:
            np.testing.assert_allclose(commands, found[0], rtol=0, atol=1e-5)
        self.assertGreater(np.abs(found[0]).max(), 0.01)

    def test_what_was_measured_travels_with_the_commands(self):
        with Stream(f"{SENSOR} fields=slopes ! shreconstruct name=rc matrix-location={self.matrix} minimum=-0.01 maximum=0.01") as stream:
            buffer = stream.buffer(frame_of(self.rng.normal(size=2 * N) / 5, self.rng))
        modes = metadata.results(buffer, "rc")
        self.assertEqual((modes["id"], modes["values"].shape), ("ao-modes-v1", (12, 1)))
        self.assertEqual(modes["cells-valid"], N)
        self.assertGreater(modes["commands-limited"], 6)
        self.assertIsNotNone(metadata.results(buffer, "sh"))

    def test_a_recording_has_a_row_for_each_frame(self):
        frames = np.stack([frame_of(self.rng.normal(size=2 * N) / 5, self.rng) for _ in range(4)])
        self.save("frames.npy", frames)
        play(f"picturesrc location={self.folder}/frames.npy ! {SENSOR} fields=slopes !"
             f" shreconstruct matrix-location={self.matrix} ! picturesink location={self.folder}/commands.npy")
        commands = np.load(os.path.join(self.folder, "commands.npy"))
        self.assertEqual((commands.dtype, commands.reshape(4, -1).shape), (np.float32, (4, 12)))


class Ao(Folder):
    def test_the_inverse_corrects_what_was_measured(self):
        interaction = self.rng.normal(size=(2 * N, 12))
        path = self.save("d.npy", interaction)
        gst_imaging("ao", "invert", path, "-o", f"{self.folder}/out")
        control = np.load(f"{self.folder}/out/control.npy")
        self.assertEqual(control.dtype, np.float32)
        np.testing.assert_allclose(control @ interaction, np.eye(12), atol=1e-5)
        with open(f"{self.folder}/out/report.html", encoding="utf-8") as page:
            self.assertIn("Singular values", page.read())

    def invert(self, path, *words, status=0):
        """Returns: the control matrix, None for one that was refused, and what was printed"""
        printed = gst_imaging("ao", "invert", path, "-o", f"{self.folder}/out", "--overwrite", *words, status=status)
        return np.load(f"{self.folder}/out/control.npy") if status == 0 else None, printed

    def order_written(self):
        with open(f"{self.folder}/out/control.npy.json", encoding="utf-8") as file:
            return json.load(file)["quantity"]["axes"][0]["name"]

    def test_the_interaction_matrix_tells_the_order_of_its_slopes(self):
        matrix = self.rng.normal(size=(2 * N, 12)).astype(np.float32)
        turned = matrix.reshape(2, N, 12).transpose(1, 0, 2).reshape(2 * N, 12)
        expected, _printed = self.invert(self.save("d.npy", matrix))
        bare = self.save("bare.npy", turned)
        named = self.save("named.npy", turned)
        name_axes(named, [2 * N, 12], "command", "slopes interleaved")
        for path, words in ((named, ()), (named, ("--slope-order", "auto")), (named, ("--slope-order", "interleaved")),
                            (bare, ("--slope-order", "interleaved"))):
            np.testing.assert_allclose(self.invert(path, *words)[0], expected, atol=1e-5)
            self.assertEqual(self.order_written(), "slopes x-then-y")
        self.assertGreater(abs(self.invert(bare)[0] - expected).max(), 0.01)
        _none, printed = self.invert(named, "--slope-order", "x-then-y", status=2)
        self.assertIn("says that its slopes are interleaved, and --slope-order says the other order", printed)
        for cards in (["CTYPE1  = 'command '", "CTYPE2  = 'slopes interleaved'"], ["CTYPE2  = 'interleaved'"]):  # without CDELTn
            np.testing.assert_allclose(self.invert(self.save_fits("named.fits", turned, *cards))[0], expected, atol=1e-5)
        lone = f"{self.folder}/changed"  # the file beside the matrix decides on the result, too
        gst_imaging("ao", "invert", bare, "-o", lone)
        name_axes(bare, [2 * N, 12], "command", "slopes interleaved")
        self.assertIn("has another result", gst_imaging("ao", "invert", bare, "-o", lone, status=4))

    def test_a_matrix_whose_axes_are_named_the_other_way_round_is_transposed(self):
        matrix = self.rng.normal(size=(2 * N, 12)).astype(np.float32)
        turned = matrix.reshape(2, N, 12).transpose(1, 0, 2).reshape(2 * N, 12)
        expected, _printed = self.invert(self.save("d.npy", matrix))
        for values, name in ((matrix, "slopes x-then-y"), (turned, "slopes interleaved"), (matrix, "slopes")):
            path = self.save("t.npy", np.ascontiguousarray(values.T))
            name_axes(path, [12, 2 * N], name, "command")
            found, printed = self.invert(path)
            np.testing.assert_allclose(found, expected, atol=1e-5)
            self.assertIn("was transposed", printed)
            self.assertNotIn("more commands", printed)

    def test_a_file_beside_the_matrix_that_is_damaged_is_refused(self):
        path = self.save("d.npy", self.rng.normal(size=(2 * N, 12)).astype(np.float32))
        name_axes(path, [2 * N, 12], "command", "slopes interleaved")
        for text in damage_sidecar(path):
            with self.subTest(text=text):
                self.assertIn("d.npy.json", self.invert(path, status=3)[1])

    def test_an_interaction_matrix_of_recorded_frames(self):
        influence = self.rng.normal(size=(2 * N, 12))
        pokes = np.stack([frame_of(sign * 0.05 * influence[:, k], self.rng) for k in range(12) for sign in (1, -1)])
        self.save("pokes.npy", pokes)
        play(f"picturesrc location={self.folder}/pokes.npy ! {SENSOR} fields=slopes ! fakesink sh.results ! queue ! picturesink location={self.folder}/slopes.npy")
        page = os.path.join(SOURCE, "docs", "reference", "commands.md")
        program = next(text for _line, language, text in blocks(page) if language == "python" and "poke = " in text)
        subprocess.run([sys.executable, "-c", program], cwd=self.folder, check=True)
        found = np.load(os.path.join(self.folder, "interaction.npy"))
        self.assertEqual(found.shape, influence.shape)
        self.assertLess(np.sqrt(np.mean((found - influence) ** 2)), 0.1)  # photon noise of a spot is 0.005 pixels
        self.assertEqual(self.invert(os.path.join(self.folder, "interaction.npy"))[0].shape, (12, 2 * N))

    def test_a_cube_of_cacao_is_an_interaction_matrix(self):
        matrix = self.rng.normal(size=(2 * N, 12)).astype(np.float32)
        expected, printed = self.invert(self.save("d.npy", matrix))
        self.assertNotIn("cube", printed)
        found, printed = self.invert(self.save_fits("cube.fits", matrix.T.reshape(12, 2 * CELLS, CELLS)))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        self.assertIn(f"has the shape [12, {2 * CELLS}, {CELLS}]: it is taken as a cube of 12 commands with {2 * N} slopes each", printed)
        turned = matrix.reshape(2, N, 12).transpose(2, 1, 0)
        found, printed = self.invert(self.save_fits("named.fits", turned, "CTYPE1  = 'slopes interleaved'"))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        self.assertNotIn("cube", printed)
        bare = self.save("pairs.npy", turned)
        found, printed = self.invert(bare)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        self.assertIn(f"12 commands with {2 * N} slopes each, dx and dy of each cell in turn", printed)
        self.assertGreater(abs(self.invert(bare, "--slope-order", "x-then-y")[0] - expected).max(), 0.01)

    def test_telemetry_names_its_images(self):
        matrix = self.rng.normal(size=(2 * N, 12)).astype(np.float32)
        expected, _printed = self.invert(self.save("d.npy", matrix))
        path = f"{self.folder}/telemetry.fits"
        images = [("CONTROL_MATRIX", np.ones((12, 2, N))), ("INTERACTION_MATRIX", matrix.reshape(2, N, 12).transpose(1, 0, 2))]
        aot.write(np, path, [], {}, [aot.Image(name, np.ascontiguousarray(values)) for name, values in images])
        np.testing.assert_allclose(self.invert(path)[0], expected, atol=1e-5)
        aot.write(np, path, [], {}, [aot.Image(name, values) for name, values in (images[0], ("A", np.ones((2, 2))))])
        self.assertIn("has 2 images (0: CONTROL_MATRIX f64 [12, 2, 36]; 1: A f64 [2, 2]), none of them named INTERACTION_MATRIX",
                      self.invert(path, status=3)[1])

    def test_a_matrix_that_is_suspicious_is_a_warning(self):
        matrix = self.rng.normal(size=(2 * N, 12))
        self.assertNotIn("command", self.invert(self.save("d.npy", matrix))[1])
        _found, printed = self.invert(self.save("d.npy", matrix.T))
        self.assertIn(f"has the shape [12, {2 * N}]: more commands ({2 * N}) than slopes (12). It may be transposed", printed)
        self.assertIn(f"which would be [{2 * N}, 12]", printed)
        matrix[:, 5] = 0
        self.assertIn("No slope sees command 5 (counted from 0)", self.invert(self.save("d.npy", matrix))[1])
        matrix[:, [2, 11]] = 0
        self.assertIn("No slope sees commands 2, 5, 11 (counted from 0)", self.invert(self.save("d.npy", matrix))[1])

    def test_the_noise_beside_a_matrix_shows_dead_actuators(self):
        matrix, noise = self.rng.normal(size=(2 * N, 12)), np.full((2 * N, 12), 0.1)
        matrix[:, [3, 7]] = self.rng.normal(size=(2 * N, 2)) / 10
        matrix[5], noise[5] = 0, np.inf  # a dark cell
        path = self.save("d.npy", matrix)
        self.assertNotIn("not above the noise", self.invert(path)[1])
        beside = self.save("d-noise.npy", noise)
        self.assertRegex(self.invert(path)[1], r"The signal of commands 3, 7 \(counted from 0\) is not above the noise in .*d-noise.npy: [01]\.[0-9]+ times, and 10")
        os.rename(beside, f"{self.folder}/other.npy")
        self.assertIn("The signal of commands 3, 7", self.invert(path, "--matrix-noise", f"{self.folder}/other.npy")[1])
        noise = self.save("d-noise.npy", noise[:4])
        self.assertIn("has the shape [4, 12]; the noise of", self.invert(path, status=3)[1])

    def test_elements_that_were_not_measured_are_told(self):
        matrix, noise = self.rng.normal(size=(2 * N, 12)), np.full((2 * N, 12), 0.1)
        matrix[5], noise[5], matrix[:, 3], noise[:, 3] = 0, np.inf, 0, np.inf  # a dark cell and a dead actuator
        path = self.save("d.npy", matrix)
        self.save("d-noise.npy", noise)
        self.assertNotIn("not measured", self.invert(path)[1])
        noise[: N // 2, :6] = np.inf
        self.save("d-noise.npy", noise)
        self.assertRegex(self.invert(path)[1], "[12][0-9] % of the elements have an infinite standard error in .*d-noise.npy")
        self.save("d-noise.npy", np.full((2 * N, 12), np.inf))
        self.assertIn("no element was measured", self.invert(path)[1])

    def test_what_a_calibration_found_is_told(self):
        path = self.save("d.npy", self.rng.normal(size=(2 * N, 12)).astype(np.float32))
        name_axes(path, [2 * N, 12], "command", "slopes x-then-y")
        with open(path + ".json", encoding="utf-8") as file:
            told = json.load(file)
        for judgement in "good", "31 % of the elements of cells with light were not measured":
            told["calibration"] = {"judgement": judgement}
            with open(path + ".json", "w", encoding="utf-8") as file:
                json.dump(told, file)
            self.assertEqual(f"d.npy found: {judgement}" in self.invert(path)[1], judgement != "good")

    def test_the_control_matrix_names_the_lenslets_of_the_interaction_matrix(self):
        path = self.save("d.npy", self.rng.normal(size=(2 * N, 12)).astype(np.float32))
        cells = [[i // CELLS + 1, i % CELLS] for i in range(N)]
        for more, expected in (({}, None), ({"row-column": cells}, cells)):
            name_axes(path, [2 * N, 12], "command", "slopes x-then-y")
            with open(path + ".json", encoding="utf-8") as file:
                told = json.load(file)
            with open(path + ".json", "w", encoding="utf-8") as file:
                json.dump({**told, **more}, file)
            self.invert(path)
            with open(f"{self.folder}/out/control.npy.json", encoding="utf-8") as file, open(f"{self.folder}/out/control.npy", "rb") as control:
                written = json.load(file)
                self.assertEqual(written["sha256"], hashlib.sha256(control.read()).hexdigest())
            self.assertEqual(written.get("row-column"), expected)
        for wrong, sentence in ((cells[1:], f"names {N - 1} lenslets"), ([*cells[1:], 5], f"for cell {N - 1}")):
            with open(path + ".json", "w", encoding="utf-8") as file:
                json.dump({**told, "row-column": wrong}, file)
            self.assertIn(sentence, self.invert(path, status=3)[1])

    def files_of_all_kinds(self):
        """Generates paths of a matrix: NumPy and FITS, in the shapes and with the names of axes that tell where slopes are, and their order"""
        shapes = (8, 3), (3, 8), (8, 4), (3, 4, 2), (3, 2, 4), (4, 2, 3), (2, 4, 3), (2, 2, 4), (4, 2, 2), (2, 3, 4), (4, 3, 2), (2, 4, 2)
        names = ("", "", ""), ("slopes x-then-y", "", ""), ("Interleaved", "", ""), ("slopes", "command", ""), ("command", "slopes", ""), \
            ("", "slopes interleaved", "command"), ("", "", "slopes"), ("", "", "slopes x-then-y"), ("x", "y", "slopes interleaved"), \
            ("slopes", "", "slopes interleaved"), ("command", "x-then-y", "slopes")
        for shape in shapes:
            for told in sorted({told[:len(shape)] for told in names}):
                values = self.rng.normal(size=shape).astype(np.float32)
                cards = [f"CTYPE{i}  = '{name:8}'" for i, name in enumerate(told, 1) if name]
                yield self.save_fits("some.fits", values, *cards), (shape, told, "FITS")
                path = self.save("some.npy", values)
                name_axes(path, shape, *told)
                yield path, (shape, told, "npy")

    def read_as_invert(self, path, axis):
        """Returns: the matrix, x of all cells and then y; None for one with an odd number of slopes"""
        m = matrices.load(np, path, axis)
        return None if m.values.shape[axis] % 2 else telemetry.in_order(np, m.values, axis, m.order == "interleaved").reshape(m.values.shape)

    def commands(self, n_cells, properties, slopes, *flags):
        """Returns: of a loop with gain 1"""
        types, dims = ("float32,uint8", f"{n_cells}:2:1:1,{n_cells}:1:1:1") if flags else ("float32", f"{n_cells}:2:1:1")
        caps = f'other/tensors,format=static,num_tensors={1 + len(flags)},types=(string)"{types}",dimensions=(string)"{dims}",framerate=1/1'
        buffer = Gst.Buffer.new_wrapped(slopes.astype(np.float32).tobytes())
        for more in flags:
            buffer = buffer.append(Gst.Buffer.new_wrapped(more.tobytes()))
        with Stream(f"shreconstruct gain=1 {properties}", caps) as stream:
            return stream.numbers(stream.push(buffer))

    def test_a_control_matrix_is_read_as_the_element_reads_it(self):
        for path, kind in self.files_of_all_kinds():
            with self.subTest(kind=kind):
                matrix = self.read_as_invert(path, 1)
                slopes = self.rng.normal(size=8)
                if matrix is None or matrix.shape[1] != 8:
                    with self.assertRaises(AssertionError):
                        self.commands(4, f"matrix-location={path}", slopes)
                else:
                    np.testing.assert_allclose(self.commands(4, f"matrix-location={path}", slopes), -matrix @ slopes, atol=1e-5)

    def test_an_interaction_matrix_is_read_as_the_element_reads_it(self):
        flags = np.zeros(4, np.uint8)
        flags[1] = 1  # which takes D to leave it out
        for path, kind in self.files_of_all_kinds():
            with self.subTest(kind=kind):
                matrix = self.read_as_invert(path, 0)
                if matrix is None or len(matrix) != 8:
                    continue
                control, slopes = self.save("r.npy", np.linalg.pinv(matrix).astype(np.float32)), self.rng.normal(size=8)
                found = [self.commands(4, f"matrix-location={control} invalid-policy=exclude interaction-location={d}", slopes, flags)
                         for d in (path, self.save("plain.npy", matrix))]
                np.testing.assert_allclose(found[0], found[1], atol=1e-5)

    def test_a_named_column_of_pairs_is_x_then_y(self):
        """Slopes are not along the row of pairs, so its shape does not tell their order"""
        path = self.save_fits("named.fits", self.rng.normal(size=(8, 3, 2)).astype(np.float32), "CTYPE3  = 'slopes  '")
        plain = self.save("plain.npy", library.Arrays().read(path).reshape(8, 6))
        np.testing.assert_allclose(self.invert(path)[0], self.invert(plain)[0], atol=1e-5)

    def test_weak_modes_are_left_out_or_weakened(self):
        u, v = (np.linalg.qr(self.rng.normal(size=shape))[0] for shape in ((2 * N, 6), (6, 6)))
        strengths = np.array([1, 0.5, 0.2, 0.1, 0.005, 1e-6])
        path = self.save("d.npy", (u * strengths) @ v.T)

        def inverse_of(*words):
            gst_imaging("ao", "invert", path, "-o", f"{self.folder}/out", "--overwrite", *words)
            return np.diag(v.T @ np.load(f"{self.folder}/out/control.npy") @ u)
        np.testing.assert_allclose(inverse_of(), [1, 2, 5, 10, 0, 0], atol=1e-4)
        np.testing.assert_allclose(inverse_of("--keep", "2"), [1, 2, 0, 0, 0, 0], atol=1e-5)
        np.testing.assert_allclose(inverse_of("--condition", "1000"), [1, 2, 5, 10, 200, 0], rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(inverse_of("--alpha", "0.1"), strengths / (strengths ** 2 + 0.01), rtol=1e-4, atol=1e-5)

    def test_modes_times_slopes_are_the_control_matrix(self):
        path = self.save("d.npy", self.rng.normal(size=(2 * N, 12)))
        gst_imaging("ao", "invert", path, "-o", f"{self.folder}/zonal", "--keep", "7")
        gst_imaging("ao", "invert", path, "-o", f"{self.folder}/modal", "--keep", "7", "--modal")
        modes, slopes = (np.load(f"{self.folder}/modal/{name}.npy") for name in ("modes", "control"))
        self.assertEqual((modes.shape, slopes.shape), ((12, 7), (7, 2 * N)))
        np.testing.assert_allclose(modes @ slopes, np.load(f"{self.folder}/zonal/control.npy"), atol=1e-5)

    def test_the_mirror_has_modes_of_its_own(self):
        d, modes = self.rng.normal(size=(2 * N, 12)), self.rng.normal(size=(12, 5)) * [1, 2, 3, 4, 5]
        words = [self.save("d.npy", d), "--modes", self.save("kl.npy", modes)]
        expected = np.linalg.pinv(d @ modes)
        np.testing.assert_allclose(self.invert(*words)[0], modes @ expected, atol=1e-5)
        with open(f"{self.folder}/out/control.npy.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["modes"], "kl.npy")
        np.testing.assert_allclose(self.invert(*words, "--modal")[0], expected, atol=1e-5)
        np.testing.assert_array_equal(np.load(f"{self.folder}/out/modes.npy"), modes.astype(np.float32))
        cube = self.save_fits("cube.fits", modes.T.reshape(5, 3, 4))
        np.testing.assert_allclose(self.invert(words[0], "--modes", cube)[0], modes @ expected, atol=1e-5)
        u, strengths, v = np.linalg.svd(d @ modes, full_matrices=False)
        np.testing.assert_allclose(self.invert(*words, "--keep", "3")[0], modes @ v[:3].T / strengths[:3] @ u[:, :3].T, atol=1e-5)
        prior = np.diag([5.0, 4, 3, 2, 1])
        weighed = np.linalg.solve((d @ modes).T @ d @ modes / 0.09 + np.linalg.inv(prior), (d @ modes).T / 0.09)
        words += ["--noise", "0.3", "--covariance", self.save("c.npy", prior)]
        np.testing.assert_allclose(self.invert(*words)[0], modes @ weighed, atol=1e-5)
        np.testing.assert_allclose(self.invert(*words, "--modal")[0], weighed, atol=1e-5)
        np.testing.assert_array_equal(np.load(f"{self.folder}/out/modes.npy"), modes.astype(np.float32))
        self.assertIn("needs --modes", self.invert(words[0], *words[3:], "--modal", status=2)[1])

    def test_slopes_of_a_cell_may_be_pairs(self):
        matrix = self.rng.normal(size=(2 * N, 12))
        expected, _printed = self.invert(self.save("d.npy", matrix))
        found, printed = self.invert(self.save("pairs.npy", matrix.reshape(2, N, 12).transpose(1, 0, 2)))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        self.assertIn(f"it is taken as [cells, 2, commands], dx and dy of {N} cells for 12 commands", printed)

    def test_minimum_variance_weighs_noise_against_the_prior(self):
        d = self.rng.normal(size=(2 * N, 12))
        root = self.rng.normal(size=(12, 12))
        for matrix in d, d[:8]:  # more slopes than commands, and fewer
            prior = root @ root.T
            expected = np.linalg.inv(matrix.T @ matrix / 0.09 + np.linalg.inv(prior)) @ matrix.T / 0.09
            gst_imaging("ao", "invert", self.save("d.npy", matrix), "-o", f"{self.folder}/mv", "--overwrite", "--noise", "0.3",
                        "--covariance", self.save("c.npy", prior))
            np.testing.assert_allclose(np.load(f"{self.folder}/mv/control.npy"), expected, rtol=0, atol=1e-6 * abs(expected).max() + 1e-7)

    def test_a_basis_reproduces_a_wavefront_of_its_grid(self):
        grid = np.ones((6, 7))
        grid[0, 0] = grid[5, 6] = grid[2:4, 3] = 0
        path = self.save("mask.npy", grid)
        y, x = (axis.astype(float) for axis in np.nonzero(grid))
        slopes = np.concatenate([0.3 + 0.1 * x - 0.07 * y, -0.2 - 0.07 * x + 0.04 * y])
        for kind, (py, px) in (("southwell", (y, x)), ("fried", np.nonzero(bases.corners(np, grid.astype(bool))))):
            px, py = px - 0.5 * (kind == "fried"), py - 0.5 * (kind == "fried")
            truth = 0.3 * px - 0.2 * py + 0.05 * px ** 2 - 0.07 * px * py + 0.02 * py ** 2
            blind = np.stack([np.ones(len(px)), np.where((px + py) % 2 == 0, 1, -1)], 1)[:, :1 + (kind == "fried")]
            truth -= blind @ np.linalg.lstsq(blind, truth, rcond=None)[0]
            gst_imaging("ao", "basis", path, "-o", f"{self.folder}/{kind}", "--kind", kind)
            np.testing.assert_allclose(np.load(f"{self.folder}/{kind}/control.npy").astype(float) @ slopes, truth, atol=1e-5)

    def test_modes_of_a_grid_invert_their_slopes(self):
        for words, n in ((["zernike", "--order", "osa", "--modes", "9"], 9), (["zernike"], 20), (["kl", "--modes", "30"], 30)):
            gst_imaging("ao", "basis", "9x9", "-o", f"{self.folder}/basis", "--overwrite", "--kind", *words)
            control, modes, slopes = (np.load(f"{self.folder}/basis/{name}.npy") for name in ("control", "modes", "interaction"))
            self.assertEqual((control.shape, slopes.shape, modes.shape[1]), ((n, 162), (162, n), n))
            np.testing.assert_allclose(control @ slopes, np.eye(n), atol=2e-4)
        for grid, most in (("3x3", 10), ("4x4", 18), ("7x7", 40), ("10x10", 58)):
            self.assertIn(f"this grid tells 1 to {most} modes", gst_imaging("ao", "basis", grid, "-o", f"{self.folder}/more", "--modes", str(most + 1), status=2))
            gst_imaging("ao", "basis", grid, "-o", f"{self.folder}/more", "--overwrite", "--modes", str(most))
            inverse = np.load(f"{self.folder}/more/control.npy").astype(float) @ np.load(f"{self.folder}/more/interaction.npy")
            np.testing.assert_allclose(inverse, np.eye(most), atol=1e-3)
        gst_imaging("ao", "basis", "3x3", "-o", f"{self.folder}/more", "--overwrite")
        self.assertEqual(len(np.load(f"{self.folder}/more/control.npy")), 10)  # by default what the grid tells
        # tip and tilt are the strongest modes of Kolmogorov's turbulence, and equally strong on a square
        variances = np.load(f"{self.folder}/basis/variances.npy")[0]
        self.assertAlmostEqual(variances[0] / variances[1], 1, places=4)
        self.assertGreater(variances[1], 10 * variances[2])
        np.testing.assert_allclose((modes ** 2).mean(0), 1, atol=1e-5)
        with open(f"{self.folder}/basis/control.npy.json", encoding="utf-8") as file:
            names = [axis["name"] for axis in json.load(file)["quantity"]["axes"]]
        self.assertEqual(names, ["slopes x-then-y", "coefficient"])  # which is the output without modes-location

    def test_slopes_of_modes_are_means_over_a_lenslet(self):
        _values, slopes = bases.zernikes(np, np.ones((4, 6), bool), 7, "noll")
        y, x = ((2 * np.indices((4, 6)) - [[[3]], [[5]]]) / 6).reshape(2, -1)
        h = 1 / 6  # coma is sqrt (8) (3 x^3 + 3 x y^2 - 2 x)
        expected = np.sqrt(8) * 2 * h * np.concatenate([9 * x ** 2 + 3 * y ** 2 + 4 * h ** 2 - 2, 6 * x * y])
        np.testing.assert_allclose(slopes[:, 6], expected, atol=1e-14)

    def test_modes_have_the_numbers_of_noll_and_osa(self):
        self.assertEqual([bases.noll(j) for j in range(1, 12)], [(0, 0), (1, 1), (1, -1), (2, 0), (2, -2), (2, 2), (3, -1), (3, 1), (3, -3),
                                                                (3, 3), (4, 0)])
        self.assertEqual([bases.osa(j) for j in range(10)], [(0, 0), (1, -1), (1, 1), (2, -2), (2, 0), (2, 2), (3, -3), (3, -1), (3, 1), (3, 3)])
        y, x = np.mgrid[-1:1:401j, -1:1:401j]
        inside = x * x + y * y <= 1
        values = np.stack([bases.zernike(np, *bases.noll(j), x[inside], y[inside]) for j in range(1, 37)])
        np.testing.assert_allclose(values @ values.T / inside.sum(), np.eye(36), atol=0.02)

    def test_what_is_wrong_is_said(self):
        good = self.save("d.npy", self.rng.normal(size=(2 * N, 11)))
        wrong = np.load(good)
        wrong[3, 5] = np.nan
        for words, sentence, status in (
                ([self.save("t.npy", np.load(good).T)], "transpose it", 3),
                ([self.save("v.npy", np.ones(4))], "[2 cells, commands]", 3),
                ([self.save("2.npy", np.load(good).reshape(2, N, 11))], f"[2, {N}, 11]: it can be [2, cells, commands], or a cube of 2 commands", 3),
                ([self.save("o.npy", np.load(good)[1:, :10])], "a row may be missing, or it is transposed", 3),
                ([self.save("x.npy", np.load(good) + 0j)], "holds complex numbers, expected are real", 3),
                ([self.save("z0.npy", np.zeros((4, 2))), "--noise", "1", "--covariance", self.save("e.npy", np.eye(2))], "all numbers are 0", 3),
                ([self.save("n.npy", wrong)], "nan in row 3, column 5", 3),
                ([self.save("z.npy", np.zeros((4, 2)))], "all numbers are 0", 3),
                ([self.save("empty.npy", np.zeros((0, 11)))], "It is empty", 3),
                ([self.save("b.npy", np.ones((4, 2), bool))], "has true and false", 3),
                ([self.save("s.npy", np.pad(self.rng.normal(size=(5, N, 9)), ((0, 0), (0, 0), (0, 1))))], "as slopes.npy of `gst-imaging centroids`", 3),
                ([good, "--keep", "12"], "has 11 modes", 2),
                ([good, "--keep", "3", "--alpha", "0.1"], "two ways", 2),
                ([good, "--condition", "0.5"], "1 or more", 2),
                ([good, "--noise", "1"], "both --noise and --covariance", 2),
                ([good, "--noise", "1", "--covariance", good], "the covariance of 11 commands", 3),
                ([good, "--noise", "1", "--covariance", self.save("c.npy", -np.eye(11))], "a variance below 0", 3),
                ([good, "--kind", "kl"], "no option of ao invert", 2),
                ([good, "--modes", self.save("m.npy", np.ones((12, 3)))], "modes of 11 commands are real numbers that are not all 0, [11, modes]", 3),
                ([good, "--modes", self.save("m3.npy", np.eye(11)[:, :3]), "--keep", "4"], "has 3 modes", 2),
                ([good, "--alpha", "nan"], "between 0 and 1", 2)):
            printed = gst_imaging("ao", "invert", *words, "-o", f"{self.folder}/no", status=status)
            self.assertIn(sentence, printed)
            self.assertFalse(os.path.exists(f"{self.folder}/no/control.npy"))
        for words, sentence, status in ((["1x9"], "2 to 128", 2), ([good], "a grid is", 3), (["6x6", "--modes", "900"], "tells 1 to 33", 2),
                                        (["6x6", "--modes", "kl.npy"], "--modes is kl.npy; this grid tells 1 to 33", 2),
                                        (["6x6", "--keep", "3"], "no option of ao basis", 2)):
            self.assertIn(sentence, gst_imaging("ao", "basis", *words, "-o", f"{self.folder}/no", status=status))


if __name__ == "__main__":
    main()
