# SPDX-License-Identifier: LGPL-2.1-or-later
"""GMTSAR's fitoffset.csh, with its arguments and its output.

Prints eight lines for the PRM file of the secondary, and on standard error how many offsets they are made of, how far these
lie from them, and where. If fewer than eight offsets are above SNR, it says so, prints none of them and exits with 1. A folder
of PATH with the scripts of pipelines/gmtsar puts it in the place of GMTSAR's own.
"""
import os
import sys
import tempfile

from .. import play
from ..command import WRONG_USE, Failure, absent, say
from ..report import Report
from ..sar import field, told
from ..sar.messages import Messages
from ..sar.one_file import is_picture, writing
from ..sar.prm import parse_fit

EXAMPLES = [
    ("3 3 freq_xcorr.dat 18 >> sec.PRM", "planes in range and azimuth, of offsets with a correlation above 18"),
    ("3 3 freq_xcorr.dat 18 --picture field.svg --report fit.html", "with a picture of the offsets, and a page"),
]
RMS = 0.5  # docs/reference/insarxcorr.md, "The fit"


def add_arguments(parser):
    parser.add_argument("range_terms", metavar="RANGE_TERMS")
    parser.add_argument("azimuth_terms", metavar="AZIMUTH_TERMS")
    parser.add_argument("offsets", metavar="FREQ_XCORR.dat")
    parser.add_argument("snr", metavar="SNR", nargs="?", default="20", help="least correlation (20)")
    parser.add_argument("--picture", metavar="FILE.svg", help="also draws an arrow for each patch")
    parser.add_argument("--report", metavar="FILE.html", help="also writes a page: the quality of the fit, residuals, the offset field")


def fit_offsets(options, warn):
    """Returns: the eight lines, and the numbers of insarxcorr-fit"""
    messages = Messages("insarfit", "insarxcorr-fit")
    with tempfile.NamedTemporaryFile() as lines:
        play.play(play.parse(["filesrc", "location=" + options.offsets, "!", "insarfit", "fit-range=" + options.range_terms,
                              "fit-azimuth=" + options.azimuth_terms, "fit-snr=" + options.snr, "!", "filesink",
                              "location=" + lines.name]), warn, messages.take)
        return lines.read().decode(), messages.found


def describe(found):
    return ("%d offsets, rms %.3f columns and %.3f lines, in columns %.0f to %.0f and lines %.0f to %.0f (expected error at the "
            "corners of these: %.3f and %.3f); beyond, the fit is extrapolated" % tuple(found[name] for name in (
                "n-points", "rms-r", "rms-a", "x-least", "x-most", "y-least", "y-most", "corner-r", "corner-a")))


def write_report(options, path, rows, found, fit, snr, warnings):
    page = Report(f"fitoffset: {os.path.basename(options.offsets)}", options.argv)
    page.input(options.offsets, "offsets")
    for sentence in warnings:
        page.warning(sentence)
    for name, default in ("range_terms", "3"), ("azimuth_terms", "3"), ("snr", "20"):
        if getattr(options, name) != default:
            page.setting("gst-imaging fitoffset", name, getattr(options, name), default)
    page.figure("offsets in the fit", found["n-points"], at_least=8, about=f"of {len(rows)}, above a correlation of {snr:g}")
    for axis, unit in ("r", "columns"), ("a", "lines"):
        page.figure(f"rms distance from the fit, {unit}", found[f"rms-{axis}"], "pixels", at_most=RMS)
        page.figure(f"expected error at the corners, {unit}", found[f"corner-{axis}"], "pixels",
                    about="of the rectangle around the offsets")
    told.add_field(page, rows, fit, snr)
    told.add_residuals(page, rows, fit, snr)
    page.write(path)


def run(options):
    if not os.path.exists(options.offsets):
        raise absent(options.offsets, f'There is no file "{options.offsets}".')
    for path in options.picture, options.report:
        if path and not is_picture(path):
            raise Failure(WRONG_USE, f'"{path}" would be replaced, and it is no picture and no page.')
    warnings = []

    def warn(sentence):
        warnings.append(sentence)
        say(f"gst-imaging fitoffset: {sentence}")

    lines, found = fit_offsets(options, warn)
    say(f"gst-imaging fitoffset: {describe(found)}")
    if options.picture or options.report:
        rows, fit, snr = field.read_offsets(options.offsets), parse_fit(lines, "the fit"), float(options.snr)
        if options.picture:
            with writing(options.picture, options.offsets) as path, open(path, "w", encoding="ascii") as file:
                file.writelines(line + "\n" for line in field.draw(rows, fit, snr))
        if options.report:
            with writing(options.report, options.offsets) as path:
                write_report(options, path, rows, found, fit, snr, warnings)
    if not options.json:
        sys.stdout.write(lines)
    return {"lines": lines.splitlines(), "fit": {name: value for name, value in found.items() if name != "element"},
            "warnings": warnings}
