# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging oct calibrate: from the fringes of a mirror to a calibration."""
import os

from .. import job, library
from ..command import NO_RESULT, UNREADABLE, WRONG_USE, Failure
from ..frames import files
from ..frames.source import need, scratch, split
from ..report import plots
from . import calibration, layout, reflectors, spectra, steps
from .doubts import Doubts

WORD = "calibrate"  # the first word after oct
MOST_LINES = 64  # of a camera, as the element uses
COLUMNS = {"depth": "depth", "depth-um": "um", "width-before": "width before", "width": "after", "width-limit": "limit",
           "level": "level (dB)", "snr": "over noise (dB)", "phase-error": "phase error (rad)"}
AS_NARROW = 1.05  # times what the light allows
AS_LONG = 1.05  # times, the travel and that of the wavelengths, as octbscan warns
LARGEST_ERROR = 0.5  # radians, above which the element refuses a fit
FITS_BETTER = 2  # times, phases of a mirror on the other side, before that is told
SAME_LIGHT, SAME_REST = 1.06, 5  # times, the limits of the width of two mirrors, and what the fits leave


def add_arguments(parser):
    group = parser.add_argument_group("calibrate", "of gst-imaging oct calibrate MIRROR...: spectra of a mirror, a file for each position;"
                                      " the calibration goes to calibration.ini")
    group.add_argument("--other-side", metavar="MIRROR", action="append", default=[],
                       help="a position beyond zero delay, where the sample is not; may be given several times")
    group.add_argument("--fit", choices=("phase", "map"), default="phase",
                       help="phase (the default): wavenumbers and, of two positions, dispersion; map: the dispersion alone, with the"
                       " wavelengths that the calibration options give")
    group.add_argument("--travel-um", type=float, metavar="UM",
                       help="how far the mirror was moved from the first file to the last one: depths are scaled by it, as approximate"
                       " wavelengths leave them some per cent off. Mirrors of --other-side come last")


def lines_of(path, options, n_cameras):
    """Returns: spectra [lines, samples] of one position"""
    np = library.numpy()
    if spectra.is_raw(path, options):
        options.lines = options.lines or n_cameras  # any line will do
        n = spectra.check_size(path, options, lambda _sentence: None) * options.lines
        values = np.memmap(path, layout.DTYPES[options.dtype], "r", options.offset, (n, options.samples))
    else:
        values = np.atleast_2d(library.Arrays().read(path))
        if values.ndim == 3 and files.is_recording(values.shape):
            values = values.reshape(-1, values.shape[2])
    if values.ndim != 2 or values.dtype.kind not in "uif" or len(values) < n_cameras:
        doubt = None if spectra.is_raw(path, options) else library.Arrays().doubt(path)
        raise Failure(UNREADABLE, f"{path} has the shape {list(values.shape)} of {values.dtype}; a mirror is [lines, samples] of numbers"
                                  f"{f', with a line for each of {n_cameras} cameras' if n_cameras > 1 else ''}.{f' {doubt}' if doubt else ''}")
    return values


def type_of(np, values):
    """Returns: the type that octbscan takes, without loss where there is one"""
    kind = values.dtype.newbyteorder("=")
    return kind if kind in (np.uint8, np.uint16, np.int16, np.float32) else np.dtype(np.float32)


def look(name, values, options, warn):
    """Are samples and layout what they are taken for? Returns: a Layout of a raw file; else None"""
    found = layout.Layout(values, options) if spectra.is_raw(name, options) else None
    doubts = Doubts(dtype=options.dtype if found else None)
    doubts.add(values[:MOST_LINES])
    for sentence in [*doubts.sentences(), *(found.doubts if found else [])]:
        warn(f"{name}: {sentence}")
    return found


def stack(names, options, n_cameras, path, made):
    """Writes the positions as [positions, lines, samples]"""
    np = library.numpy()
    mirrors = [lines_of(name, options, n_cameras) for name in names]
    layouts = [look(name, values, options, made.warn) for name, values in zip(names, mirrors)]
    layout.tell(made.report, [found for found in layouts if found])
    samples = {values.shape[1] for values in mirrors}
    if len(samples) > 1:
        raise Failure(UNREADABLE, f"The mirrors have {' and '.join(map(str, sorted(samples)))} samples a line; they need the same"
                                  " spectrometer.")
    n = min(MOST_LINES, *(len(values) // n_cameras for values in mirrors)) * n_cameras
    kinds = {type_of(np, values) for values in mirrors}
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(np.float32)
    np.save(path, np.stack([values[:n].astype(kind) for values in mirrors]))


def told_of(message):
    """Returns: [camera][position] of dictionaries"""
    cameras = []
    while message.has_field(f"camera-{len(cameras)}-mirror-0"):
        cameras.append([])
        while message.has_field(f"camera-{len(cameras) - 1}-mirror-{len(cameras[-1])}"):
            position = message.get_value(f"camera-{len(cameras) - 1}-mirror-{len(cameras[-1])}")
            values = {name: position.get_value(name) for name in COLUMNS}
            cameras[-1].append({**values, "depth-um": values["depth-um"] or None})  # 0 without wavelengths
    return cameras


def tell_scales(report, message, n_cameras):
    """Of a message after a travel"""
    for c in range(n_cameras):
        if message.has_field(f"camera-{c}-scale"):
            report.figure(f"depths of camera {c}" if n_cameras > 1 else "depths", message.get_value(f"camera-{c}-scale"), "times those of the wavelengths",
                          at_least=1 / AS_LONG, at_most=AS_LONG, about="by --travel-um")


def worst(cameras):
    return max(position["width"] / position["width-limit"] if position["width-limit"] else float("inf")
               for positions in cameras for position in positions)


def show(report, cameras, names, phase_error):
    has_um = all(position["depth-um"] for positions in cameras for position in positions)
    columns = {key: title for key, title in COLUMNS.items() if has_um or key != "depth-um"}
    report.figure("rms phase error", phase_error, "rad", at_most=0.5, about="of the fitted fringes, weighted with the light")
    report.figure("point spread", worst(cameras), "times the limit", at_most=AS_NARROW,
                  about="the widest at half of its intensity, beside what the light allows")
    report.table("Positions of the mirror", ["camera", "mirror", *columns.values()],
                 [[c, os.path.basename(name), *(f"{position[key]:.4g}" for key in columns)]
                  for c, positions in enumerate(cameras) for name, position in zip(names, positions)],
                 "Depths and widths in depths at scale 1; the width is that at half of the intensity.")
    if len(names) > 1:
        key, unit = ("depth-um", "um") if has_um else ("depth", "")
        curves = {f"camera {c}": zip(*sorted((position[key], position["level"]) for position in positions))
                  for c, positions in enumerate(cameras)}
        report.plot("Sensitivity roll-off", plots.lines(("depth", unit), ("level", "dB"), {name: tuple(curve) for name, curve in curves.items()}),
                    "20 log10 of the amplitude of the fringe in counts. It falls with the depth as the pixels average the fringe; a mirror that"
                    " was aligned differently falls or rises as well.")


def check_sides(made, words, names, sides, options):
    """Tells what is assumed of the sides of zero delay, and whether the phases fit better with a mirror on the other one. Two positions fit
    exactly on either, unless the wavelengths are known."""
    shown = [f"{os.path.basename(name)} {'beyond zero delay' if side == '-' else 'on the side of the sample'}" for name, side in zip(names, sides)]
    made.report.fact("taken as", ", ".join(shown))
    of_map = calibration.has_map(options)
    if len(names) == 2 and not of_map:
        made.report.fact("sides of zero delay", "not checked: two positions fit on either side; a third one, or --wavelengths, can tell")
        return
    words = [word for word in words if not word.startswith("mirror-fit=")]
    words.insert(words.index("octbscan") + 1, f"mirror-fit={'map' if of_map else 'phase'}")
    errors, settings = {}, list(made.report.settings)  # those of the result
    for i in [None, *range(len(names) if len(names) > 2 else 1)]:
        flipped = "".join("+-"[(side == "+") == (i == k)] if i is not None else side for k, side in enumerate(sides))
        (accepted, _text), _cameras, error, _element, _doubts = solve(made, words, flipped)
        errors[i] = error if accepted else LARGEST_ERROR
    made.report.settings[:] = settings
    best = min(errors, key=errors.get)
    if best is None or FITS_BETTER * errors[best] > errors[None]:
        return
    other = f"{names[0]} and {names[1]} on different sides" if len(names) == 2 else f"{names[best]} on the other side"
    if len(names) == 2 and sides != "++":
        other = f"{names[0]} and {names[1]} on one side"
    made.warn(f"The phases of the fringes fit with {errors[best]:.2g} radians instead of {errors[None]:.2g} with {other} of zero delay."
              " --other-side names each mirror beyond zero delay, and no other one.")


def check_light(made, cameras, names):
    """A second reflector whose peak merges with the first one makes light and phase of a fringe uneven. Phase errors are compared in units of
    their noise, and with those of mirrors that are nearer: the light near zero delay disturbs these themselves."""
    for c, positions in enumerate(cameras):
        if len(positions) != len(names):
            continue
        least_light, least_rest = min(position["width-limit"] for position in positions), float("inf")
        for position, name in sorted(zip(positions, names), key=lambda one: one[0]["depth"]):
            rest = position["phase-error"] * 10 ** (position["snr"] / 20)
            times, most, what = max((position["width-limit"] / least_light if least_light else 0, SAME_LIGHT, "width that its light allows"),
                                    (rest / least_rest, SAME_REST, "phase error, in units of its noise,"), key=lambda one: one[0] / one[1])
            if times > most:
                made.warn(f"{name}: the {what} is {times:.3g} times that of another mirror (camera {c}). Are there two reflectors close to each"
                          " other, as the surfaces of a thin plate, or did the mirror move?")
            least_rest = min(rest, least_rest)


def words_of(made, options, settings, path):
    settings = list(settings)
    written = calibration.write(options, made.path("before.ini"))
    if written:
        settings.append("calibration=" + written)
    if options.background:
        settings += ["background=file", "background-location=" + options.background]
    elif "background" not in dict(text.split("=", 1) for text in settings):
        settings.append("background=none")  # the image is not looked at, and the mean of equal lines is all of them
    return ["picturesrc", "location=" + path, "axes=nyx", "!", "octbscan", "name=o", f"mirror-fit={options.fit}", *settings, "!", "fakesink"]


def solve(made, words, sides, travel_um=0.0):
    """travel_um: 0 without. Returns: (accepted, text), cameras, phase error, the element, and the warnings but for the refusal"""
    elements, messages, doubts = [], [], []

    def prepare(pipeline):
        elements.append(pipeline.get_by_name("o"))
        elements[0].emit("calibrate-mirror", sides, travel_um)

    def take(structure):
        if structure.get_name() == "octbscan-mirror":
            messages.append(((structure.get_value("accepted"), structure.get_value("text")), told_of(structure),
                             structure.get_value("phase-error-rms")))
            tell_scales(made.report, structure, len(messages[-1][1]))

    try:
        made.play(words, take_message=take, prepare=prepare, warn=doubts.append)
    except Failure:
        for sentence in doubts:
            made.warn(sentence)
        raise
    answer, cameras, phase_error = messages[-1] if messages else ((False, "octbscan has seen no B-scan."), [], 0)
    return answer, cameras, phase_error, elements[0], [sentence for sentence in doubts if sentence != answer[1]]


def make(names, sides, made, options, settings):
    for name in names:
        made.input(name, "mirror")
    for name in calibration.files_of(options):
        made.input(name, "calibration")
    for text in settings:
        made.settings[text.partition("=")[0]] = text.partition("=")[2]
    made.setting("sides", sides, "+" * len(sides))
    if made.is_complete():
        return made.result
    n_cameras = int(dict(text.split("=", 1) for text in settings).get("cameras", 1))
    with scratch() as folder:
        path = os.path.join(folder, "mirrors.npy")
        stack(names, options, n_cameras, path, made)
        words = words_of(made, options, settings, path)
        (accepted, text), cameras, phase_error, element, doubts = solve(made, words, sides, options.travel_um or 0)
        for sentence in doubts:
            made.warn(sentence)
        if not accepted:
            raise Failure(NO_RESULT, text)
        reflectors.check(made, path, names, n_cameras)
        n_positions = min(map(len, cameras))
        if n_positions == len(names) > 1:
            check_sides(made, words, names, sides, options)
    if not element.emit("save-calibration", made.path("calibration.ini")):
        raise Failure(NO_RESULT, "The calibration cannot be written.")
    if os.path.exists(made.path("before.ini")):
        os.remove(made.path("before.ini"))
    if n_positions < len(names):
        made.warn(f"{len(names)} recordings show {n_positions} position{'s'[:n_positions != 1]} of the mirror: of those at nearly one depth the last counts."
                  + (" Dispersion takes two positions, and is left out: move the mirror." if n_positions == 1 and options.fit == "phase" else ""))
    if options.travel_um and n_positions < len(names):
        raise Failure(NO_RESULT, "--travel-um is the way from the first mirror to the last one: give recordings of different positions.")
    steps.tell(made, made.path("calibration.ini"), "" if n_positions > 1 else "the dispersion bends the fringe of one position as well")
    if not options.travel_um and options.fit == "phase" and cameras[0][0]["depth-um"]:
        calibration.tell_scale(made.report)
    check_light(made, cameras, names)
    show(made.report, cameras, names, phase_error)
    return made.finish(**{"phase-error": phase_error, "width-over-limit": worst(cameras), "mirrors": cameras})


def run(options):
    library.numpy()
    names, settings = split(options.words[1:])
    if not names and not options.other_side:
        raise Failure(WRONG_USE, "Give a file of spectra of a mirror: gst-imaging oct calibrate MIRROR... -o FOLDER.")
    need("octbscan", "picturesrc")
    calibration.keys_of(options)
    if options.travel_um is not None and not 0 < options.travel_um < float("inf"):
        raise Failure(WRONG_USE, f"--travel-um is {options.travel_um:g}; it needs a distance above 0.")
    if options.estimate_dispersion:
        raise Failure(WRONG_USE, "--estimate-dispersion is of B-scans; calibrate finds the dispersion from two positions of the mirror.")
    if options.travel_um and not calibration.has_wavelengths(options):
        raise Failure(WRONG_USE, "--travel-um corrects depths in micrometres, and there are no wavelengths: give also --lambda FIRST LAST, approximately.")
    if options.travel_um and len(names) + len(options.other_side) < 2:
        raise Failure(WRONG_USE, "--travel-um is the way from the first mirror to the last one: give two positions or more.")
    if options.travel_um and options.fit == "map":
        raise Failure(WRONG_USE, "--fit map keeps the wavelengths as they are, which --travel-um would scale: give one of them.")
    everything = names + options.other_side
    sides = "+" * len(names) + "-" * len(options.other_side)
    real = [os.path.realpath(name) for name in everything]
    twice = [name for name, path in zip(everything, real) if real.count(path) > 1]
    if twice:
        raise Failure(WRONG_USE, f"{twice[0]} is given twice. Each position of the mirror needs a recording of its own, and one beyond zero"
                                 " delay stands after --other-side alone.")
    if len(everything) > 16:
        raise Failure(WRONG_USE, f"There are {len(everything)} mirrors; 16 positions are the most.")
    return job.run_all(options, "oct calibrate", everything[:1], lambda _name, made: make(everything, sides, made, options, settings))
