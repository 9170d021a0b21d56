# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records the input and output of shreconstruct: frames, slopes, commands and modes, a row of each for every frame."""
import time

from .. import library, memory
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure
from .columns import Column, Reserve

FORMATS = {"GRAY8": "u1", "GRAY16_LE": "<u2"}
DONE = "gst-imaging-recorded"


class Enough(Exception):
    """All frames are there. To send EOS into a pipeline that just begins to play would wait for ever."""


def find_loop(pipeline, what="recording"):
    """Returns: the only shreconstruct"""
    found = [e for e in pipeline.children if e.get_factory() and e.get_factory().get_name() == "shreconstruct"] \
        if hasattr(pipeline, "children") else []
    if len(found) != 1:
        raise Failure(WRONG_USE, f"The pipeline has {len(found)} elements shreconstruct; a {what} is of one.")
    return found[0]


def bytes_of(Gst, buffer, size=None):
    ok, about = buffer.map(Gst.MapFlags.READ)
    if not ok:
        raise Failure(UNREADABLE, "A buffer of the loop cannot be read.")
    try:
        return bytes(about.data if size is None else about.data[:size])
    finally:
        buffer.unmap(about)


class Recorder:
    """Two probes: of one frame both are called in the same thread, one after the other."""

    def __init__(self, np, pipeline, folder, most=0, with_frames=True):
        self.np, self.Gst, self.most, self.with_frames = np, library.gstreamer(), most, with_frames
        self.element = find_loop(pipeline)
        self.columns = {name: Column(np, folder, name) for name in ("frames", "slopes", "commands", "modes", "times")}
        self.reserve = Reserve(folder)
        self.rows, self.missing, self.has_ended = [], 0, False  # number, time and closed of each frame
        self.pending, self.geometry, self.failure, self.rate, self.holder = None, {}, None, 0.0, None
        self.matrix_order = None  # of the slopes along the control matrix, as its file or slope-order names it
        self.pads = [self.element.get_static_pad(name) for name in ("sink", "src")]
        self.probes = [pad.add_probe(self.Gst.PadProbeType.BUFFER, self.guard, function)
                       for pad, function in zip(self.pads, (self.take_input, self.take_output))]

    def __len__(self):
        return len(self.rows)

    def guard(self, _pad, info, function):
        """An error ends the recording, and not the thread of the pipeline."""
        if not self.failure and not self.has_ended and not (self.most and len(self) >= self.most):
            try:
                function(info.get_buffer())
            except Failure as failure:
                self.failure = failure
            except OSError as error:
                self.fail(error)
            if self.failure or (self.most and len(self) >= self.most):
                self.element.post_message(self.Gst.Message.new_element(self.element, self.Gst.Structure.new_empty(DONE)))
        return self.Gst.PadProbeReturn.OK

    def fail(self, error):
        """error: of writing, which counts more than a failure before"""
        self.failure = Failure(NOT_WRITTEN, f"The recording cannot be written: {error.strerror}.")

    # --- slopes and frames

    def result_of(self, buffer, kind, name=None):
        """Returns: the structure of the results with this id, by the element `name` where one is named"""
        meta = buffer.get_custom_meta("GstImagingResults") if self.Gst.meta_get_info("GstImagingResults") else None
        results = self.holder = meta.get_structure() if meta else None  # PyGObject does not keep it for the structures in it
        for i in range(results.n_fields() if results else 0):
            field = results.nth_field_name(i)
            if name in (None, "", field):
                result = results.get_value(field)
                if result.get_string("id") == kind:
                    return result
        return None

    def is_interleaved(self, dims):
        """As shreconstruct takes them: two rows are x and y of all cells, two columns x and y of each; a row or an image has the order
        of input-order or of the matrix."""
        order = self.element.get_property("input-order").value_nick
        if sum(size > 1 for size in dims) > 1 and 2 in dims[:2]:
            return dims[1] != 2
        return (self.matrix_order if order == "auto" else order) == "interleaved"

    def tensors(self, buffer, caps):
        """Returns: slopes [2, cells] and the bytes of the flags; None for a buffer of another size, which shreconstruct refuses"""
        np, dims = self.np, [int(size) for size in caps.get_string("dimensions").split(",")[0].split(":")]
        cells = int(np.prod(dims)) // 2
        data = bytes_of(self.Gst, buffer)
        if len(data) not in (8 * cells, 9 * cells):
            return None, b""
        values = np.frombuffer(data[:8 * cells], np.float32)
        return values.reshape(cells, 2).T if self.is_interleaved(dims) else values.reshape(2, cells), data[8 * cells:]

    def metadata(self, buffer):
        result = self.result_of(buffer, "shwfs-centroids-v1", self.element.get_property("results"))
        if not result:
            raise Failure(UNREADABLE, "The frames have no slopes of shcentroid.")
        if result.get_string("fields") != "dx,dy":
            raise Failure(WRONG_USE, f'The results of shcentroid are "{result.get_string("fields")}"; set fields=slopes to record them.')
        if not self.geometry:
            self.tell_geometry(result)
        data, flags = result.get_value("data"), result.get_value("flags") if result.has_field("flags") else None
        values = self.np.frombuffer(bytes_of(self.Gst, data), self.np.float32).reshape(2, result.get_value("columns"))
        return values, bytes_of(self.Gst, flags) if flags else b""

    def tell_geometry(self, result):
        np = self.np
        self.geometry = {"unit": result.get_string("unit").split(",")[0]}
        for name, dtype, columns in (("row-column", np.uint32, 2), ("cells", np.float32, 6)):
            if result.has_field(name):
                data = result.get_value(name)
                self.geometry[name] = np.frombuffer(bytes_of(self.Gst, data), dtype).reshape(-1, columns)

    def take_input(self, buffer):
        np = self.np
        all_caps = self.pads[0].get_current_caps()
        caps = all_caps.get_structure(0)
        is_tensor = caps.get_name() == "other/tensors"
        values, flags = self.tensors(buffer, caps) if is_tensor else self.metadata(buffer)
        if values is None:
            return
        if flags:  # a cell without a centroid has none
            values = np.where(np.frombuffer(flags, np.uint8) & library.NO_CENTROID, np.float32("nan"), values)
        known, fps_n, fps_d = caps.get_fraction("framerate")
        self.rate = fps_n / fps_d if known and fps_n > 0 else 0.0
        self.pending = {"slopes": (np.float32, values.shape, values.tobytes())}
        if self.with_frames and not is_tensor and caps.get_string("format") in FORMATS:
            self.pending["frames"] = self.pixels(buffer, all_caps)

    def pixels(self, buffer, caps):
        np = self.np
        dtype = np.dtype(FORMATS[caps.get_structure(0).get_string("format")])
        shape = caps.get_structure(0).get_value("height"), caps.get_structure(0).get_value("width")
        try:
            view = memory.as_dlpack(buffer, caps)
        except BufferError as error:
            raise Failure(UNREADABLE, f"A frame cannot be read: {error}") from error
        if view.device == "cpu":
            return dtype, shape, np.from_dlpack(view).tobytes()
        row = shape[1] * dtype.itemsize  # of a GPU: mapping brings it here, with GStreamer's own padding
        data = np.frombuffer(bytes_of(self.Gst, buffer), np.uint8)
        return dtype, shape, np.lib.stride_tricks.as_strided(data, (shape[0], row), (data.size // shape[0], 1)).tobytes()

    # --- commands

    def time_of(self, buffer):
        """Of acquisition, in s of the Unix epoch; of arrival where the frame has none of that clock"""
        clock = self.Gst.Caps.new_empty_simple("timestamp/x-unix")
        meta = buffer.get_reference_timestamp_meta(clock)
        return meta.timestamp / 1e9 if meta else time.time()

    def take_output(self, buffer):
        np = self.np
        if not self.pending:
            return
        data = bytes_of(self.Gst, buffer)
        result = self.result_of(buffer, "ao-modes-v1", self.element.get_name())
        pending, self.pending = self.pending, None
        pending["commands"] = np.float32, (len(data) // 4,), data
        modes = result.get_value("data")
        modes = bytes_of(self.Gst, modes)
        pending["modes"] = np.float32, (len(modes) // 4,), modes
        row = result.get_value("frame"), self.time_of(buffer), result.get_value("closed")
        pending["times"] = np.float64, (len(row),), np.array(row, np.float64).tobytes()
        for name, (dtype, shape, _data) in pending.items():
            self.columns[name].begin(np.dtype(dtype), shape)
        for name, (_dtype, _shape, data) in pending.items():
            self.columns[name].add(data)
        self.missing += result.get_value("frames-missing") if len(self) else 0
        self.rows.append(row)

    # --- the end

    def detach(self):
        """From the element, which a probe that holds it would keep for good."""
        for pad, probe in zip(self.pads, self.probes):
            pad.remove_probe(probe)
        self.probes = []

    def settle(self):
        """Ends the recording with the last frame that is on the disk as a whole."""
        if self.has_ended:
            return
        self.has_ended = True  # also where the pipeline could not be stopped
        self.reserve.free()  # the last rows of small columns need space, too
        for column in self.columns.values():
            try:
                column.close()
            except OSError as error:
                self.fail(error)
        n = min([len(self), *(n for n in (column.n_rows() for column in self.columns.values()) if n is not None)])
        del self.rows[n:]
        for column in self.columns.values():
            column.cut(n)

    def finish(self):
        """Returns: (numbers, times, closed, arrays by their name)"""
        self.settle()
        return (*map(list, zip(*self.rows)), {name: column.array(len(self)) for name, column in self.columns.items()})

    def publish(self):
        """Leaves the columns as files of the result. Returns: their names"""
        return list(filter(None, (column.publish() for column in self.columns.values())))

    def remove(self):
        for column in self.columns.values():
            column.remove()

    def frame_rate(self):
        """Returns: Hz; that of the caps, else by the times"""
        (first, begin, _), (last, end, _) = self.rows[0], self.rows[-1]
        return self.rate or ((last - first) / (end - begin) if end > begin else float("nan"))
