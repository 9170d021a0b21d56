# SPDX-License-Identifier: LGPL-2.1-or-later
"""GMTSAR's xcorr, with its arguments and its files.

Writes freq_xcorr.dat, time_xcorr.dat or time_xcorr_Gatelli.dat into the working folder. A folder of PATH with the scripts
of pipelines/gmtsar puts it in the place of GMTSAR's own. XCORR_BACKEND=cuda|cpu names the backend.
"""
import argparse
import os
import time

from .. import play
from ..command import NO_RESULT, WRONG_USE, Failure, say
from ..progress import Progress
from ..report import Report
from ..sar import alias, field, told
from ..sar.images import files_of
from ..sar.messages import Messages
from ..sar.one_file import is_picture, writing

EXAMPLES = [
    ("ref.PRM sec.PRM -nx 20 -ny 50", "the offsets of 20 x 50 patches in freq_xcorr.dat"),
    ("ref.PRM sec.PRM -xsearch 64 -ysearch 64 -report xcorr.html", "with a page of their quality"),
]
NUMBERS = {"nx": "nx", "ny": "ny", "xsearch": "xsearch", "ysearch": "ysearch", "range_interp": "range-interp",
           "interp": "interp"}
SWITCHES = {"norange": "range-interp=1", "nointerp": "interp=1", "noshift": "use-shift=false"}
METHODS = {"freq": "freq_xcorr.dat", "time": "time_xcorr.dat", "time4": "time_xcorr_Gatelli.dat"}
GOOD = 18  # the correlation that GMTSAR's scripts ask for


def whole(text):
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f'a whole number is needed, and this is "{text}"')
    return int(text)


class Property(argparse.Action):
    """The last of two options counts, as in GMTSAR."""

    def __call__(self, parser, options, value, option):
        name = option[1:]
        options.properties = [*(options.properties or []), f"{NUMBERS[name]}={value}" if name in NUMBERS else SWITCHES[name]]


def add_arguments(parser):
    parser.allow_abbrev = False
    parser.add_argument("reference", metavar="REFERENCE.PRM")
    parser.add_argument("secondary", metavar="SECONDARY.PRM")
    for name, prop in NUMBERS.items():
        parser.add_argument("-" + name, metavar="N", type=whole, action=Property, dest="properties", help=f"insarxcorr's {prop}")
    for name, prop in SWITCHES.items():
        parser.add_argument("-" + name, nargs=0, action=Property, dest="properties", help=f"insarxcorr's {prop}")
    for name, file in METHODS.items():
        parser.add_argument("-" + name, dest="method", action="store_const", const=name, default="freq", help=f"writes {file}")
    parser.add_argument("-real", action="store_true", help="the samples are float32")
    parser.add_argument("-v", action="store_true", help="accepted; progress is always shown on a terminal")
    parser.add_argument("-report", metavar="FILE.html", help="also writes a page: the offset field, and how many patches correlate")


def measure(options, path, warn):
    """Returns: the pipeline that was played, and alias.watch() of it"""
    words = ["insarxcorr", "name=x", "backend=" + os.environ.get("XCORR_BACKEND", "auto"), "fit-range=0",
             *(options.properties or []), f"method={options.method}", "!", "text/x-gmtsar-xcorr", "!", "filesink", "location=" + path]
    for side in "reference", "secondary":
        words += ["slcsrc", "location=" + getattr(options, side), f"format={'f32' if options.real else 'auto'}", "!", "x." + side]
    pipeline, messages = play.parse(words), Messages("insarxcorr")
    spectra = alias.watch(pipeline, "x")
    with Progress("xcorr", "%", 100) as progress:
        play.play(pipeline, warn, messages.take, progress, messages.count)
    return pipeline, spectra


def write_report(options, path, table, pipeline, spectra, warnings):
    page = Report(f"xcorr: {os.path.basename(options.reference)}, {os.path.basename(options.secondary)}", options.argv)
    for role in "reference", "secondary":
        for file in files_of(getattr(options, role)):
            page.input(file, role)
    for sentence in warnings:
        page.warning(sentence)
    for element, name, value, default, unit in play.settings_of(pipeline):
        page.setting(element, name, value, default, unit)
    rows = field.read_offsets(table)
    good = sum(row[4] > GOOD for row in rows)
    page.figure("patches that correlate", 100 * good / len(rows), "%", at_least=25,
                about=f"{good} of {len(rows)} have a correlation above {GOOD}")
    alias.tell(spectra, page, lambda _told: None)  # warnings has it
    told.add_field(page, rows, None, GOOD)
    page.write(path)


def run(options):
    if options.report and not is_picture(options.report):
        raise Failure(WRONG_USE, f'"{options.report}" would be replaced, and it is no picture and no page.')
    start, warnings, name = time.monotonic(), [], METHODS[options.method]
    reads = [*files_of(options.reference), *files_of(options.secondary)]

    def warn(sentence):
        warnings.append(sentence)
        say(f"gst-imaging xcorr: {sentence}")

    with writing(name, *reads) as table:
        pipeline, spectra = measure(options, table, warn)
        if not os.path.getsize(table):
            raise Failure(NO_RESULT, "No patch was measured.")
        alias.tell(spectra, None, warn)
        if options.report:
            with writing(options.report, *reads, name) as page:
                write_report(options, page, table, pipeline, spectra, warnings)
    elapsed = time.monotonic() - start
    if not options.json:
        print(f" elapsed time: {elapsed:f} ")
    return {"output": name, "seconds": round(elapsed, 3), "warnings": warnings}
