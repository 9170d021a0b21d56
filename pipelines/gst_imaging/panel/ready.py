# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ready pipelines: what gst-launch takes, and what the panel shows first."""
import os
import re
import tempfile

from .. import play
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure
from ..frames import cameras
from ..frames.measure import cut_of
from ..frames.source import GREY
from ..oct import calibration, spectra
from ..play import quote
from . import demo, scratch, telescope
from .lights import check_number, match

RATE = 25  # frames a second of files
SOURCE = "framerate", "axes", "part"  # settings of the source, in place of the element
COLOURS = "video/x-raw,format={GRAY16_LE,GRAY8,RGB}"  # what cameras in colour are converted to for lapsharpen


def check_files(files):
    for file in files:
        if not os.path.exists(file) and not any(c in file for c in "*?"):
            raise Failure(UNREADABLE, f"There is no {file}.")


class Input:
    """Where the frames of a ready pipeline are from: files, a camera, or the demo's data."""

    def __init__(self, name, files, options, warn, output=GREY):
        if files and options.camera:
            raise Failure(WRONG_USE, "Give files or --camera; not both.")
        self.live = cameras.source_of(options, warn, output) if options.camera else None
        check_files(files)
        self.title = options.camera or (os.path.basename(os.path.normpath(files[0])) if files else None)
        files = read_raw(files, options, warn)
        self.is_demo = not files and not self.live
        if self.live and options.source:
            raise Failure(WRONG_USE, f"{options.source[0]} is for files: --caps chooses one of the modes of a camera.")
        paths = [os.path.abspath(file) for file in files] or ([demo.make(name)] if self.is_demo else [])
        if self.live:
            # the newest frame: what the pipeline cannot take is dropped before it, and counted as missing
            words = [*self.live.words, "!", "queue", "name=frames", "leaky=downstream", "max-size-buffers=4"]
        elif len(paths) == 1:
            words = ["picturesrc", "name=source", "location=" + paths[0], "loop=true"]
        else:
            quoted = ", ".join('"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' for path in paths)
            words = ["picturesrc", "name=source", f"locations=<{quoted}>", "loop=true"]
        self.rate = RATE
        if not self.live:
            words += [word for word in [f"framerate={RATE}/1"] if not any(w.startswith("framerate=") for w in options.source)] + options.source
            self.rate = rate_of(options.source) or RATE
        self.words, self.text = words, " ".join(map(quote, words))
        self.pad = "frames.src" if self.live else "source.src"
        # frames of a camera are shown at once
        self.sink = f"fakesink name=sink sync={str(not self.live).lower()}"

    def bit_depth(self):
        """Of a camera of Aravis with more than 8 bits, its caps tell how many."""
        depth = re.search(r"depth=(\d+)", self.live.words[-1]) if self.live else None
        return f" bit-depth={depth[1]}" if depth and 8 < int(depth[1]) < 16 else ""

    def layout(self, **members):
        """Returns: what the page shows first. A loop has no end, and one pass of it is what the page seeks in"""
        n = self.n_frames()
        return {**members, "title": self.title, **({"pass": {"duration": n / self.rate, "rate": self.rate}} if n > 1 else {})}

    def n_frames(self):
        """Returns: frames of the files, 0 of a camera"""
        if self.live:
            return 0
        pipeline = play.parse([word for word in self.words if word != "loop=true"])
        Gst = play.library.gstreamer()
        pipeline.set_state(Gst.State.PAUSED)
        known, n = pipeline.query_duration(Gst.Format.DEFAULT)
        pipeline.set_state(Gst.State.NULL)
        return n if known and 0 < n < 65536 else 0


def rate_of(settings):
    """Returns: frames a second, 0 where none are given"""
    found = next((re.fullmatch("framerate=([0-9]+)(?:/([0-9]+))?", word) for word in settings if word.startswith("framerate=")), None)
    return int(found[1]) / int(found[2] or 1) if found and int(found[2] or 1) else 0


def words_of(settings):
    """settings: property=value of the command. Returns: the same as GStreamer reads it, with a blank before each"""
    return "".join(" " + quote(word) for word in settings)


def sharpen(files, settings, options, warn):
    frames = Input("sharpen", files, options, warn, COLOURS)
    return (f"{frames.text} ! lapsharpen name=sharpen focus-measure=true{frames.bit_depth()}{words_of(settings)} ! {frames.sink}",
            frames.layout(main="sharpen.src", before=frames.pad, after="sharpen.src", shared=True, results=["sharpen"]))


def ao(files, settings, options, warn):
    if options.simulator:
        if files or options.camera:
            raise Failure(WRONG_USE, "--simulator makes its own frames: give no files and no --camera.")
        return telescope.description(scratch.new(), words_of(settings))
    frames = Input("ao", files, options, warn)
    if frames.is_demo:
        known = " columns=12 rows=8 pitch-x=20 pitch-y=20 bit-depth=12 threshold-mode=auto"
    elif any(word.startswith(("columns=", "rows=", "map-location=", "aperture=")) for word in settings):
        known = frames.bit_depth()
    else:  # nobody has told the grid
        known = frames.bit_depth() + " " + quote("find-grid-location=" + demo.new_file("grid.npy"))
    known += "" if frames.is_demo else words_of(cut_of(settings))
    return (f"{frames.text} ! shcentroid name=ao{known}{words_of(settings)} ! {frames.sink}", frames.layout(main="ao.src", results=["ao"]))


def read_raw(files, options, warn):
    """Raw samples become an array, for a source that seeks and begins anew. Returns: the files to play"""
    if len(files) != 1 or (not options.samples and options.pipeline[0] != "oct") or not spectra.is_raw(files[0], options) or not os.path.isfile(files[0]):
        return files
    try:
        source = spectra.read_raw(files[0], options, scratch.new(), warn, copied=True)
    except OSError as error:
        raise Failure(NOT_WRITTEN, f"The samples of {files[0]} cannot be written into {tempfile.gettempdir()}: {error.strerror}."
                                   " TMPDIR names another folder.") from error
    return [word.removeprefix("location=") for word in source.words if word.startswith("location=")]


def calibrated(options):
    """Returns: properties that options stand for"""
    words = []
    if calibration.keys_of(options) or options.calibration:
        words.append("calibration=" + calibration.write(options, os.path.join(scratch.new(), "calibration.ini")))
    if options.background:
        words += ["background=file", "background-location=" + os.path.abspath(options.background)]
    if options.lines:
        words.append(f"ascans-per-bscan={options.lines}")
    return words


def oct(files, settings, options, warn):
    frames = Input("oct", files, options, warn)
    settings = [*calibrated(options), *settings]
    n = 32 if frames.is_demo else frames.n_frames()
    known = f" bscans-per-volume={n}" if n > 1 else ""
    if frames.is_demo:
        known += f' lateral-step-um=15 refractive-index=1.38 crop-bottom=192 {quote("calibration=" + demo.beside("oct", "camera.ini"))}'
    for word in settings:
        if re.fullmatch(r"bscans-per-volume=\d+", word):
            n = int(word.partition("=")[2])
    return (f"{frames.text} ! octbscan name=oct scale=2 window=hann taper=none{known}{words_of(settings)} ! queue ! "
            f"{frames.sink} oct.enface ! queue ! fakesink name=enface-sink async=false sync=false",
            frames.layout(main="oct.src", volume={"pad": "oct.src", "frames": n, **({"row": 175} if frames.is_demo else {})} if n > 1 else None))


def photostereo(files, settings, options, warn):
    pictures, lights = files[:-1], files[-1:]
    if (files or options.camera) and (not lights or bool(pictures) == bool(options.camera)):
        raise Failure(WRONG_USE, "photostereo needs the file of the lights behind that of the pictures (with a camera: alone).")
    place = os.path.abspath(lights[0]) if lights else demo.beside("photostereo", "lights.txt")
    if not os.path.exists(place):
        raise Failure(UNREADABLE, f"There is no {lights[0]}.")
    if pictures:
        check_files(pictures)
        pictures, place = match(pictures, place, options.by_order, warn)
    frames = Input("photostereo", pictures, options, warn)
    if not options.camera:
        check_number(frames.n_frames(), pictures, place)
    known = " update-interval=4" if frames.is_demo and "window=sliding" not in settings else ""
    return (f'{frames.text} ! photostereo name=photo {quote("lights-location=" + place)}{known}{words_of(settings)} '
            "relight name=light azimuth=45 elevation=40 ! fakesink name=sink sync=true "
            "photo.normal ! queue ! light.normal photo.albedo ! queue ! light.albedo",
            frames.layout(main="light.src", before=frames.pad, after="light.src", results=["photo"]))


def insar(files, settings, options, _warn):
    if options.camera:
        raise Failure(WRONG_USE, "insar has no camera: give the two images.")
    if len(files) not in (0, 2):
        raise Failure(WRONG_USE, "insar takes two images, reference and secondary.")
    for file in files:
        if not os.path.exists(file):
            raise Failure(UNREADABLE, f"There is no {file}.")
    pair = [os.path.abspath(file) for file in files] or [demo.beside("insar", "ref.PRM"), demo.beside("insar", "sec.PRM")]
    return (f'slcsrc name=reference {quote("location=" + pair[0])} ! insar.reference '
            f'slcsrc name=secondary {quote("location=" + pair[1])} ! insar.secondary '
            "insarxcorr name=insar mode=precise grid=step step-x=32 step-y=32 window-width=64 window-height=64 xsearch=16 ysearch=16"
            f"{words_of(settings)} ! fakesink name=sink", {"main": "reference.src", "results": ["insar"]})


def view(files, settings, options, warn):
    """Pictures as they are, of any type."""
    if settings:
        raise Failure(WRONG_USE, f'view has no {settings[0].partition("=")[0]}: it takes {", ".join(SOURCE)}, of files.')
    frames = Input("sharpen", files, options, warn, "video/x-raw")
    return f"{frames.text} ! {frames.sink}", frames.layout(main=frames.pad)


ALL = {"sharpen": sharpen, "ao": ao, "oct": oct, "photostereo": photostereo, "insar": insar, "view": view}
