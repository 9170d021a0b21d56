# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of frames with what shcentroid measured in them, drawn by shoverlay from a copy: drawing changes no number."""
from .. import library, play
from ..command import WRONG_USE, Failure
from .source import need

LARGEST = 32767  # pixels of a side, of videoscale
STEPS = 65535
WIDE = 600  # pixels: smaller frames are drawn larger


def grey_of(np, buffer, structure):
    """Returns: a float32 frame as u16, from its least to its largest number; what is no number is the least"""
    width, height = map(int, structure.get_string("dimensions").split(":")[:2])
    frame = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), "f4").reshape(height, width)
    finite = frame[np.isfinite(frame)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        grey = (frame.astype("f8") - low) * (STEPS / (high - low or 1))
    return np.where(np.isfinite(frame), np.rint(grey), 0).clip(0, STEPS).astype("<u2")


def as_video(np, Gst, sample):
    """Returns: a copy of the frame as grey video, with its metadata, and its caps, width and height"""
    structure, buffer = sample.get_caps().get_structure(0), sample.get_buffer()
    if structure.has_name("video/x-raw"):
        width, height = (structure.get_value(side) for side in ("width", "height"))
        return buffer.copy_deep(), sample.get_caps(), width, height
    grey = grey_of(np, buffer, structure)
    height, width = grey.shape
    padded = np.zeros((height, (2 * width + 3) // 4 * 4), np.uint8)  # rows of video end at multiples of 4
    padded[:, :2 * width] = grey.view(np.uint8)
    video = Gst.Buffer.new_wrapped(padded.tobytes())
    video.copy_into(buffer, Gst.BufferCopyFlags.TIMESTAMPS | Gst.BufferCopyFlags.META, 0, buffer.get_size())
    caps = Gst.Caps.from_string(f"video/x-raw,format=GRAY16_LE,width={width},height={height},framerate=30/1")
    return video, caps, width, height


class Drawing:
    """scale: pictures are so many times as large as frames; None: as it is good to look at. settings: of shoverlay.
    sink: an element that shows what is drawn; None: draw() returns it."""

    def __init__(self, scale, settings, sink=None):
        need("shoverlay", "videoconvert", "videoscale", *([sink] if sink else []))
        self.scale, self.settings, self.sink, self.pipeline = scale, settings, sink, None

    def start(self, caps, width, height):
        self.scale = self.scale or max(1, WIDE // max(width, height))
        if max(width, height) * self.scale > LARGEST:
            raise Failure(WRONG_USE, f"--scale {self.scale} makes {width * self.scale} x {height * self.scale} of {width} x"
                                     f" {height} pixels; a side has at most {LARGEST}.")
        scaler = ["videoscale", "method=nearest-neighbour", "!",
                  f"video/x-raw,width={width * self.scale},height={height * self.scale}", "!"] if self.scale > 1 else []
        end = [self.sink] if self.sink else ["video/x-raw,format=RGB", "!", "appsink", "name=drawn", "sync=false"]
        self.pipeline = play.parse(["appsrc", "name=frames", "format=time", "block=true", "max-bytes=1", "!", *scaler,
                                    "shoverlay", *self.settings, "!", "videoconvert", "!", *end])
        self.frames, self.drawn = (self.pipeline.get_by_name(name) for name in ("frames", "drawn"))
        self.frames.set_property("caps", caps)
        self.pipeline.set_state(library.gstreamer().State.PLAYING)

    def draw(self, sample):
        """Returns: u8 [height, width, 3]; None where a sink shows it"""
        Gst, np = library.gstreamer(), library.numpy()
        buffer, caps, width, height = as_video(np, Gst, sample)
        if not self.pipeline:
            self.start(caps, width, height)
        self.frames.emit("push-buffer", buffer)
        return None if self.sink else self.pull(Gst, np)

    def pull(self, Gst, np):
        sample = self.drawn.emit("try-pull-sample", 60 * Gst.SECOND)
        if not sample:
            message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise Failure(WRONG_USE, play.describe_error(message) if message else "shoverlay draws nothing.")
        structure, buffer = sample.get_caps().get_structure(0), sample.get_buffer()
        width, height = (structure.get_value(side) for side in ("width", "height"))
        rows = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8).reshape(height, -1)
        return rows[:, :3 * width].reshape(height, width, 3).copy()

    def close(self):
        if self.pipeline:
            self.pipeline.set_state(library.gstreamer().State.NULL)
            self.pipeline = self.frames = self.drawn = None
