# SPDX-License-Identifier: LGPL-2.1-or-later
"""The calibration of a run: an .ini file, and options that stand for its keys."""
import configparser
import os

from .. import library
from ..command import UNREADABLE, WRONG_USE, Failure

MAX_SETTINGS = 1 << 20  # bytes, as octbscan takes them
FILES = ("wavelengths", "chirp", "k-index", "phase")  # keys that name a file
SAMPLING = ("wavelengths", "chirp", "k-index", "lambda")  # of which a camera has one
MAPS = ("wavelengths", "chirp", "k-index")  # of each sample
LENGTHS = ("lambda-first", "polynomial", "wavelengths")  # keys of wavelengths
KEYS_OF_SAMPLING = ("lambda-first", "lambda-last", "polynomial", "wavelengths", "chirp", "k-index", "k-polynomial", "samples")


def add_arguments(parser):
    group = parser.add_argument_group("calibration", "Files are arrays; those of --wavelengths and --k-index may be text, and that of --chirp is text. The calibration that was used,"
                                      " with all keys, is written to calibration.ini.")
    group.add_argument("--calibration", metavar="INI", help="a file with groups [camera 0], [camera 1], ... or [camera] for all")
    group.add_argument("--lambda", dest="wavelength", nargs=2, metavar=("FIRST", "LAST"),
                       help="wavelength at the first and the last sample")
    group.add_argument("--wavelengths", metavar="FILE", help="the wavelength at each sample; in text one on each line, or sample and wavelength")
    group.add_argument("--chirp", metavar="FILE", help="text: a number for each sample, its wavenumber in any unit (Thorlabs)")
    group.add_argument("--k-index", metavar="FILE", help="the sample, with fraction, of each wavenumber")
    group.add_argument("--dispersion", metavar="FILE | D0;D1;D2;...", help="radians: an array file, or coefficients over -1..1;"
                       " commas separate those of several cameras")
    group.add_argument("--phase-domain", choices=("k", "spectrum"), default="k",
                       help="a --dispersion file is over the wavenumbers (the default), or over the samples before resampling")
    group.add_argument("--background", metavar="FILE", help="an array file [samples] or [cameras, samples] of the spectrum with"
                       " the sample arm blocked")


def files_of(options):
    """Returns: the files that options name"""
    named = [options.calibration, options.wavelengths, options.chirp, options.k_index, options.background,
             options.dispersion if is_file(options.dispersion) else None]
    parser = parse(options.calibration)
    inside = [os.path.join(os.path.dirname(options.calibration), parser.get(group, key))
              for group in parser.sections() for key in FILES if parser.has_option(group, key)]
    return [name for name in named if name] + list(filter(os.path.isfile, inside))


def is_file(text):
    return bool(text) and not all(part.replace(" ", "") and is_number(part) for part in text.replace(",", ";").split(";"))


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def keys_of(options):
    """Returns: keys of the .ini file that options stand for"""
    keys = {name: getattr(options, name.replace("-", "_")) for name in ("wavelengths", "chirp", "k-index")}
    keys = {name: os.path.abspath(value) for name, value in keys.items() if value}
    if options.wavelength:
        keys.update({"lambda-first": options.wavelength[0], "lambda-last": options.wavelength[1]})
    if len(set(keys) - {"lambda-last"}) > 1:
        raise Failure(WRONG_USE, "--lambda, --wavelengths, --chirp and --k-index say the same in four ways; give one of them.")
    if is_file(options.dispersion):
        keys.update({"phase": os.path.abspath(options.dispersion), "phase-domain": options.phase_domain})
    elif options.dispersion:
        keys["dispersion"] = options.dispersion
    return keys


def parse(path):
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",), default_section="")
    parser.optionxform = str
    if not path:
        return parser
    content = library.load_text(path, MAX_SETTINGS)
    try:
        parser.read_string(content.decode("utf-8-sig"), path)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise Failure(UNREADABLE, f"{path} is no calibration: {str(error).splitlines()[0].rstrip('.')}.") from None
    return parser


def beside(name, path):
    """Returns: the name of a file as an .ini file of this path has it; the folder of a result has another name until it is complete"""
    return os.path.basename(name) if os.path.dirname(name) == os.path.dirname(os.path.abspath(path)) else name


def set_each(parser, key, values):
    """A value for each camera, of which one group is for all"""
    for i, value in enumerate(values):
        if not parser.has_section(f"camera {i}"):
            parser[f"camera {i}"] = dict(parser["camera"]) if parser.has_section("camera") else {}
        parser.set(f"camera {i}", key, value)
    parser.remove_section("camera")


def write(options, path):
    """Writes the calibration of the options. Returns: its path; None without one"""
    keys = keys_of(options)
    if not keys and not options.calibration:
        return None
    parser = parse(options.calibration)
    folder = os.path.dirname(os.path.abspath(options.calibration)) if options.calibration else ""
    for group in parser.sections():
        for key in FILES:
            if parser.has_option(group, key):
                parser.set(group, key, os.path.join(folder, parser.get(group, key)))
    for group in parser.sections() or ["camera"]:
        if not parser.has_section(group):
            parser.add_section(group)
        if set(keys) & set(KEYS_OF_SAMPLING):
            for key in KEYS_OF_SAMPLING:
                parser.remove_option(group, key)
        for key, value in keys.items():
            parser.set(group, key, beside(value, path) if key in FILES else value)
    if "," in keys.get("dispersion", ""):
        set_each(parser, "dispersion", keys["dispersion"].split(","))
    with open(path, "w", encoding="utf-8") as file:
        parser.write(file, space_around_delimiters=False)
    return path


def has_map(options):
    """Returns: whether the calibration tells the wavenumber of each sample, and not only those of the ends"""
    parser = parse(options.calibration)
    keys = MAPS if not set(keys_of(options)) & set(KEYS_OF_SAMPLING) else ()
    return any(getattr(options, key.replace("-", "_"), None) for key in MAPS) or any(
        parser.has_option(group, key) for group in parser.sections() for key in keys)


def is_of_wavelengths(options):
    """Returns: whether every camera has wavelengths, and no curve that may run either way"""
    keys, parser = set(keys_of(options)), parse(options.calibration)
    if keys & set(KEYS_OF_SAMPLING):
        return bool(keys & {"lambda-first", "wavelengths"})
    return all(any(parser.has_option(group, key) for key in ("lambda-first", "polynomial", "wavelengths")) for group in parser.sections())


def n_wavelengths(options):
    """Returns: how many cameras of the file have wavelengths of their own. A k-polynomial from -1 to 1 has none"""
    parser, n = parse(options.calibration), 0
    for group in parser.sections():
        k = [float(text) for text in parser.get(group, "k-polynomial", fallback="0").split(";")[:2] if is_number(text)]
        n += any(parser.has_option(group, key) for key in LENGTHS) or len(k) == 2 and abs(k[0]) > abs(k[1])
    return n


def has_lengths(path):
    """Returns: whether a camera of the file has wavelengths, and not wavenumbers"""
    parser = parse(path)
    return any(parser.has_option(group, key) for group in parser.sections() for key in LENGTHS)


def without_sampling(path):
    """Returns: groups of the file without wavelengths or wavenumbers of the samples"""
    parser = parse(path)
    keys = set(KEYS_OF_SAMPLING) - {"lambda-last", "samples"}
    return [group for group in parser.sections() or ["camera"] if not any(parser.has_option(group, key) for key in keys)]


def has_wavelengths(options):
    return bool(set(keys_of(options)) & {"lambda-first", "wavelengths"}) or n_wavelengths(options) > 0


def has_ends_alone(path):
    """Returns: whether a camera of the file has the wavelengths of the first and the last sample, and nothing between"""
    parser = parse(path)
    return any(parser.has_option(group, "lambda-first") for group in parser.sections())


def tell_samples(report, path):
    """A polynomial over the samples is stretched to any number of them; octbscan refuses another one than that of the key samples"""
    parser = parse(path)
    if any(parser.has_option(group, "k-polynomial") and not parser.has_option(group, "samples") for group in parser.sections()):
        report.not_checked("samples of the calibration", "samples off", at_most=0, about="the file does not tell how many samples its spectra had: add"
                           " the line samples=N, or calibrate again")


def tell_scale(report):
    """No spectra of a sample tell how far its depths are apart"""
    report.not_checked("scale of depths", "% off", at_most=1, about="it is that of the wavelengths that were told for the first and the last sample."
                       " Two positions of a mirror check it: gst-imaging oct calibrate with --travel-um, how far the mirror was moved")
