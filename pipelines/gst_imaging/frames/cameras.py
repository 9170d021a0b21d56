# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cameras: --camera v4l2:/dev/video0, aravis:NAME, or gst:ELEMENTS for any other source of GStreamer."""
import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import re
import shlex
import signal
import struct

from .. import library
from ..command import UNREADABLE, WRONG_USE, Failure
from .source import GREY, Source, need

HELP = """v4l2:/dev/video0 (most USB cameras), aravis:NAME (GigE Vision and USB3 Vision, as arv-tool-0.8 lists them;
aravis: is the first one, aravis:Fake_1 a simulated one), or gst:"ELEMENTS" of any other source of GStreamer"""


def add_arguments(parser):
    group = parser.add_argument_group("cameras")
    add_settings(group, HELP + ". Ends with Ctrl-C or --frames")
    group.add_argument("--frames", type=int, metavar="N", help="end after N frames")


def add_settings(group, help_=HELP):
    group.add_argument("--camera", metavar="KIND:NAME", help=help_)
    group.add_argument("--exposure", metavar="US", help="aravis: microseconds; without it the camera's")
    group.add_argument("--pixel-format", metavar="FORMAT",
                       help=f"aravis: {', '.join(FORMATS)}; without it the one that the camera is set to, if that has"
                            " more than 8 bits, else the one with the most bits")
    group.add_argument("--caps", help="which of the camera's modes, as video/x-raw,width=640,height=480")


# --- V4L2

VIDIOC_ENUM_FMT = 0xC0405602  # _IOWR ('V', 2, struct v4l2_fmtdesc)
CAPTURE = 1  # V4L2_BUF_TYPE_VIDEO_CAPTURE


def v4l2_devices():
    return ", ".join(sorted(glob.glob("/dev/video*"))) or "none"


def v4l2_formats(device):
    """Returns: the pixel formats that the driver has, as "GREY" and "Y16 "; none where it does not tell."""
    found = []
    try:
        fd = os.open(device, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        remedy = {errno.EACCES: ' Its group may open it, mostly "video": have yourself added to it.',
                  errno.EBUSY: " Another program uses it: close that one."}.get(error.errno, "")
        raise Failure(UNREADABLE, f"The camera {device} cannot be opened: {error.strerror}.{remedy}") from error
    try:
        while True:
            entry = bytearray(struct.pack("<II56x", len(found), CAPTURE))
            fcntl.ioctl(fd, VIDIOC_ENUM_FMT, entry)
            found.append(entry[44:48].decode("ascii", "replace"))
    except OSError as error:
        if error.errno == errno.ENOTTY:
            raise Failure(UNREADABLE, f"{device} is no camera of Video4Linux; there are: {v4l2_devices()}.") from error
    finally:
        os.close(fd)
    return found


def check_v4l2_formats(device, warn):
    """v4l2src leaves out grey samples of 10 to 14 bits (tried with 1.22; 1.28 has them as DMABuf alone). It passes on
    GREY and Y16, whose bits a driver cannot tell."""
    formats = v4l2_formats(device)
    left_out = [name.strip() for name in formats if re.match("Y1[0-4]", name)]
    if not left_out:
        return
    sentence = f"The camera {device} has the format {' and '.join(left_out)}, which v4l2src does not pass on"
    if len(left_out) == len(formats):
        raise Failure(UNREADABLE, sentence + ". It needs GREY or Y16 (as v4l2-ctl --list-formats shows), or another driver.")
    warn(sentence + ": another one is used.")


def v4l2(device, options, output, warn):
    device = device or "/dev/video0"
    if not os.path.exists(device):
        raise Failure(UNREADABLE, f"There is no camera {device}; there are: {v4l2_devices()}.")
    need("v4l2src", "videoconvert")
    check_v4l2_formats(device, warn)
    # grey cameras pass through the converter untouched, others lose their colour
    return Source(["v4l2src", "name=camera", "device=" + device, "!", options.caps or "video/x-raw", "!", "videoconvert", "!",
                   output], f"v4l2:{device}", is_live=True)


# --- Aravis

# What aravissrc passes on a sample a pixel. It takes packed formats (Mono12p, Mono12Packed) as if they were not packed.
FORMATS = {"Mono16": 16, "Mono14": 14, "Mono12": 12, "Mono10": 10, "Mono8": 8}


def aravis_library():
    """Is there when aravissrc is; the bindings for Python may not be."""
    return ctypes.CDLL("libaravis-0.8.so.0")


def aravis_cameras():
    aravis = aravis_library()
    aravis.arv_get_device_id.restype = ctypes.c_char_p
    aravis.arv_update_device_list()
    return [aravis.arv_get_device_id(i).decode() for i in range(aravis.arv_get_n_devices())]


def aravis_formats(camera):
    """Of aravissrc's camera. Returns: the format that it is set to, and all that it has."""
    aravis = aravis_library()
    aravis.arv_camera_get_pixel_format_as_string.restype = ctypes.c_char_p
    aravis.arv_camera_dup_available_pixel_formats_as_strings.restype = ctypes.POINTER(ctypes.c_char_p)
    n, at = ctypes.c_uint(), ctypes.c_void_p(hash(camera))  # the hash of a GObject is its address
    names = aravis.arv_camera_dup_available_pixel_formats_as_strings(at, ctypes.byref(n), None)
    now = aravis.arv_camera_get_pixel_format_as_string(at, None) or b""
    return now.decode(), [names[i].decode() for i in range(n.value)]


def aravis_bits(pipeline):
    """Of the format that the camera of the pipeline is set to; 0 for another than FORMATS."""
    camera = pipeline.get_by_name("camera").get_property("camera")
    return FORMATS.get(aravis_formats(camera)[0], 0) if camera else 0


def choose_aravis_caps(name, wanted):
    """Returns: caps of the format `wanted`; or of the one that the camera is set to, where that has more than
    8 bits; or of the one with the most bits. Left alone, aravissrc sets Mono8 or Mono16, whatever the camera has."""
    source = library.gstreamer().ElementFactory.make("aravissrc")
    source.set_property("camera-name", name)  # opens it
    camera = source.get_property("camera")
    if not camera:
        found = aravis_cameras()
        raise Failure(UNREADABLE, f"Aravis cannot open the camera {name or '(the first one)'}; it sees: {', '.join(found) or 'none'}. "
                      + ("Does another program use it?" if name in found or (found and not name) else
                         "Check its power and cable, and whether this computer has an address in its network."))
    now, formats = aravis_formats(camera)
    usable = [name for name in FORMATS if name in formats]
    if (wanted and wanted not in usable) or not usable:
        raise Failure(WRONG_USE if usable else UNREADABLE,
                      f"The camera has the pixel formats {', '.join(formats) or '(none)'}. "
                      + (f"--pixel-format is {wanted}; it needs one of them that is" if wanted else "None of them is")
                      + f" among {', '.join(FORMATS)}.")
    chosen = wanted or (now if FORMATS.get(now, 0) > 8 else usable[0])
    return ("video/x-raw,format=GRAY8" if chosen == "Mono8" else
            f"video/x-raw,format=GRAY16_LE,bpp=16,depth={FORMATS[chosen]}")


def aravis(name, options, _output, _warn):
    need("aravissrc")
    if name.startswith("Fake_"):  # Aravis' own simulation is off until somebody asks for it
        aravis_library().arv_enable_interface(b"Fake")
    words = ["aravissrc", "name=camera"]
    if name:
        words.append("camera-name=" + name)
    if options.exposure:
        words.append("exposure=" + options.exposure)
    return Source([*words, "!", options.caps or choose_aravis_caps(name or None, options.pixel_format)],
                  f"aravis:{name}", is_live=True, bits=aravis_bits)


# --- any other

def gst(text, options, output, _warn):
    need("videoconvert")
    caps = ["!", options.caps] if options.caps else []
    return Source([*shlex.split(text), *caps, "!", "videoconvert", "!", output], f"gst:{text}", is_live=True)


KINDS = {"v4l2": v4l2, "aravis": aravis, "gst": gst}


def check(options):
    """Fails where options make no sense together."""
    if options.frames is not None and options.frames < 1:
        raise Failure(WRONG_USE, f"--frames is {options.frames}; it needs at least 1.")
    check_settings(options)


def check_settings(options):
    for name in "exposure", "pixel_format", "caps":
        if getattr(options, name) and not options.camera:
            raise Failure(WRONG_USE, f"--{name.replace('_', '-')} is for --camera, which is not given.")


def source_of(options, warn, output=GREY):
    """output: the caps that frames of other cameras than Aravis' are converted to"""
    kind, colon, name = options.camera.partition(":")
    if not colon or kind not in KINDS:
        raise Failure(WRONG_USE, f'--camera is "{options.camera}"; it needs {", ".join(k + ":NAME" for k in KINDS)}.')
    return KINDS[kind](name, options, output, warn)


@contextlib.contextmanager
def until_interrupted(source, pipeline_of):
    """The first Ctrl-C ends a camera's recording, and what was measured is kept; a second one does not wait.
    pipeline_of (): the pipeline that plays, or None"""
    if not source.is_live or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return

    def end(_number, _frame):
        signal.signal(signal.SIGINT, before)
        pipeline = pipeline_of()
        if pipeline:
            pipeline.send_event(library.gstreamer().Event.new_eos())

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
