# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes B-scans of optical coherence tomography from files of spectra.

Spectra are arrays [lines, samples] or [B-scans, lines, samples] (.npy, FITS, TIFF, ...), recordings of Thorlabs (.oct), OCTproZ
(NAME_raw.raw beside NAME_meta.txt) and others (.unp beside .xml), or raw files, of which --samples, --lines, --dtype and --offset tell the
layout. What a recording tells of its calibration is used where no option does. Of a folder each file has a result of its own. Into the folder of the output:

  level.npy      float32 [B-scans, depths, lines] in dB; level.npy.json has its axes, the depth in micrometres
  bscan.png      the middle B-scan; bscan-16.png the same with 16 bits
  bscans.tif     of several, all of them; bscans-16.tif the same with 16 bits
  enface.npy, enface.png, linear.npy, complex.npy   with the options of these names
  angio.npy, angio.png, angio-enface.npy   the flow of repeated B-scans, with --angio; from above with --enface
  calibration.ini   the calibration that was used, if one was given
  report.html    settings, warnings, quality and plots;  result.json  the same for a program

calibrate MIRROR... makes a calibration from spectra of a mirror, at one or more positions, instead: calibration.ini and report.html.

Each B-scan has its mean spectrum subtracted, unless told otherwise. What is the same in all A-scans goes with it: a mirror vanishes, and
layers that lie level become weaker. background=none keeps everything, background=rolling all but the depths near zero delay, and
--background takes a spectrum without the sample.

property=value are properties of octbscan (docs/reference/octbscan.md): scale=4, window=hann, cameras=2, tracking=rpe, ...
"""
import os

from .. import job, library
from ..command import WRONG_USE, Failure
from ..frames.source import at_end, need, scratch, split
from ..oct import angio, calibration, direction, dispersion, doubts, images, instrument, layout, mirror, spectra, steps, turns

EXAMPLES = [
    ("spectra.npy --lambda 800 900 -o out", "a linear spectrometer; the depth axis is in micrometres"),
    ("scan.raw --samples 2048 --lines 400 --calibration oct.ini scale=4 -o out", "raw 16-bit samples"),
    ("mouse.oct -o out", "a recording of Thorlabs, with its chirp and background"),
    ("volumes/ --samples 1024 --lines 100 --k-index k.npy --dispersion phase.npy --phase-domain spectrum --enface -o out",
     "every volume of a folder, also from above"),
    ("spectra.npy --background dark.fits cameras=4 --calibration four.ini -o out", "four cameras that take turns"),
    ("repeats.npy --lambda 800 900 --angio doppler --repeats 4 --interval-us 2000 refractive-index=1.38 -o out",
     "velocities from four B-scans of each place"),
    ("calibrate near.npy far.npy --lambda 800 900 -o calibration", "wavenumbers and dispersion from two positions of a mirror"),
]

# What is subtracted from the spectra, as the report tells it.
RESTING = "a mirror vanishes and layers that lie level become weaker. background=none, background=rolling or --background FILE keeps them"
BACKGROUNDS = {
    "mean": f"the mean of each B-scan, with what is the same in all its A-scans: {RESTING}",
    "running": f"the mean of the B-scans before, with what is the same in them: {RESTING}",
    "first": f"the mean of the first B-scans, with what is the same in them: {RESTING}",
    "rolling": "a rolling mean of each spectrum: depths near zero delay become weaker",
    "file": "the spectrum of a file",
    "none": "nothing: layers that lie level stay, and so does the spectrum of the source near zero delay",
}
PADS = {"linear": "intensity", "complex": "complex numbers", "enface": "the view from above"}
OWN = ("calibration", "background-location", "dispersion", "ascans-per-bscan")  # properties that options stand for


def add_arguments(parser):
    parser.add_argument("words", nargs="+", metavar="[calibrate] SPECTRA | property=value")
    job.add_arguments(parser)
    spectra.add_arguments(parser)
    calibration.add_arguments(parser)
    dispersion.add_arguments(parser)
    mirror.add_arguments(parser)
    angio.add_arguments(parser)
    parser.add_argument("--enface", action="store_true", help="the view from above, of bscans-per-volume= or all B-scans")
    parser.add_argument("--linear", action="store_true", help="also the intensities")
    parser.add_argument("--complex", action="store_true", help="also the complex depths of every B-scan")
    parser.add_argument("--pictures", action="store_true", help="also a 16-bit picture of each B-scan, in pictures/")


def check(options):
    names, settings = split(options.words)
    if not names:
        raise Failure(WRONG_USE, "Give a file or a folder of spectra.")
    spectra.check(options)
    for text in settings:
        name = text.partition("=")[0]
        if name in OWN:
            option = {"background-location": "background", "ascans-per-bscan": "lines"}.get(name, name)
            raise Failure(WRONG_USE, f"{name}= is --{option} of this command.")
    calibration.keys_of(options)
    angio.check(options)
    dispersion.check(options)
    need("octbscan", "picturesrc", "picturesink")
    return names, settings


def declare(made, source, options, settings):
    """What decides on the result."""
    for path in source.files:
        made.input(path, "spectra")
    for path in calibration.files_of(options):
        made.input(path, "background" if path == options.background else "calibration")
    for text in settings:
        made.settings[text.partition("=")[0]] = text.partition("=")[2]


def words_of(source, made, options, settings):
    settings = list(settings)
    written = calibration.write(options, made.path("calibration.ini"))
    if written:
        settings.append("calibration=" + written)
    if options.background:
        settings += ["background=file", "background-location=" + options.background]
    if options.lines:
        settings.append(f"ascans-per-bscan={options.lines}")
    given = dict(text.split("=", 1) for text in settings)
    if options.enface and "bscans-per-volume" not in given:
        settings.append(f"bscans-per-volume={max(1, source.n_bscans // int(given.get('average-bscans', 1)))}")
    words = [*source.words, "!", "octbscan", "name=o", *settings]
    for pad, name in [("src", "level")] + [(pad, pad) for pad in PADS if getattr(options, pad)]:
        if pad == "complex" and options.angio:
            continue  # is in the branch of the flow
        words += [f"o.{pad}", "!", "other/tensors", "!", "queue", "!", "picturesink", "location=" + made.path(name + ".npy"),
                  "sidecar=always"]
    if options.angio:
        words += angio.words_of(source, made, options)
    return words, given


def warn_of_wavelengths(source, made, options, given):
    groups = calibration.without_sampling(given.get("calibration"))
    if not groups or "k-polynomial" in given or any("wavelengths" in sentence for sentence in source.doubts):
        return
    who = f"[{groups[0]}] of {options.calibration} has no wavelengths and no wavenumbers" if options.calibration else "Nobody has told the wavelengths"
    made.warn(f"{who}: the spectra are taken as even in wavenumber, and depths are in pixels. For a spectrometer, whose"
              " samples are about even in wavelength, give --lambda FIRST LAST in nm. The samples of a swept source with a k-clock are even in"
              " wavenumber: --lambda would blur them, and k-polynomial in a file for --calibration gives micrometres.")


def warn_of_pixels(made, options, given):
    """Of depths without a unit"""
    if "k-range" not in given and calibration.n_wavelengths(options) > 1:
        made.warn("Depths are in pixels, as the cameras have different ranges of wavelengths: a layer is at another depth for each camera."
                  " k-range=common resamples all to the wavenumbers that they share, and gives micrometres.")
    elif calibration.has_lengths(given.get("calibration")):
        made.warn("Depths are in pixels, as the wavelengths are not between 0.2 and 5 um, in nm, um or m. If they are wavenumbers, the B-scans are"
                  " blurred: --chirp takes a text file of wavenumbers.")


def make(source, made, options, settings):
    """One input."""
    declare(made, source, options, settings)
    cards = instrument.cards_of(source.name, options)
    if cards:
        made.settings["recording"] = cards  # also of settings beside the file
    if made.is_complete():
        return made.result
    if cards:
        told = instrument.read(source.name, cards, options, settings, made)
        options, settings = told.options, told.settings
        source.doubts += told.doubts
        if told.used:
            made.report.fact("Used from the file", ", ".join(told.used))
    if options.background and source.first is not None:
        dark = library.Arrays().read(options.background)
        source.doubts += doubts.of_background(library.numpy(), options.background, dark, source.first, turns.n_cameras_of(options))
    for sentence in source.doubts:
        made.warn(sentence)
    if options.angio:
        angio.check_sets(source, options, made.warn)
    if options.estimate_dispersion and source.first is not None:
        options = dispersion.estimated(made, source.first, options, settings)
    words, given = words_of(source, made, options, settings)
    warn_of_wavelengths(source, made, options, given)
    made.report.fact("subtracted from the spectra", BACKGROUNDS.get(given.get("background", "mean"), given.get("background")))
    stats = {}
    made.play(words, "B-scans", source.n_bscans, prepare=lambda pipeline: at_end(pipeline, "o", stats.update))
    layout.tell(made.report, [source.layout] if source.layout else [])
    if "calibration" in given and source.first is not None:
        direction.check(made, source.first, options, settings)
    if "calibration" in given:
        steps.tell(made, given["calibration"])
        calibration.tell_samples(made.report, given["calibration"])
    if "calibration" in given and calibration.has_ends_alone(given["calibration"]):
        calibration.tell_scale(made.report)
    found = images.Images(made, "level.npy")
    found.set_range(given)
    found.write(options.pictures)
    depth, width = images.figures(made.report, found, stats, source.saturated)
    images.show(made.report, found, made)
    flow = angio.finish(made, options, given) if options.angio else {}
    for name in ("level", "angio", "angio-enface", *(pad for pad in PADS if getattr(options, pad))):
        if os.path.exists(made.path(name + ".npy.json")):
            images.rename_in_sidecar(made, name + ".npy")
    places, unit = found.depths()
    if unit == "pixel":
        warn_of_pixels(made, options, given)
    made.report.fact("B-scans", found.n)
    return made.finish(**{"b-scans": found.n, "depth-unit": unit, "depth-step": abs(float(places[1] - places[0])) if len(places) > 1 else 0,
                          "brightest-depth": depth, "width": width, "black": found.low, "white": found.high,
                          "backend": stats.get("active-backend"), **flow})


def run(options):
    if options.words[0] == mirror.WORD:
        return mirror.run(options)
    if options.other_side or options.fit != "phase" or options.travel_um is not None:
        raise Failure(WRONG_USE, "--other-side, --fit and --travel-um are of gst-imaging oct calibrate.")
    library.numpy()
    names, settings = check(options)

    def work(name, made):
        with scratch() as folder:
            return make(spectra.read(name, options, folder, made.warn), made, options, settings)

    return job.run_all(options, "oct", spectra.inputs(names, calibration.files_of(options)), work)
