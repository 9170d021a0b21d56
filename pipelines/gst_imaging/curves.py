# SPDX-License-Identifier: LGPL-2.1-or-later
"""What makes the samples of photographs linear: as the files say it, or as it is given."""
import collections
import os

from . import library, photographs, profiles, shading
from .command import WRONG_USE, Failure

LINEAR, JPEG = ("gamma", 1), ("gamma", 2.2)
FAINT = 1  # percent, of what bends normals by several tenths of a degree
NOT_KNOWN = ("files of 16 bits without a colour profile are taken as linear, which only RAW converters write. If a camera or an editor developed them, give"
             " --curve srgb; if they are linear, --gamma 1")


def add_arguments(parser):
    parser.add_argument("--gamma", type=float, help="exponent that makes samples linear (default: what the profile of the file says, else 2.2 for JPEG,"
                        " and 1 for others)")
    parser.add_argument("--curve", choices=("gamma", "srgb"), default="gamma", help="what makes samples linear (default: gamma)")


def given(options):
    """Returns: the curve of the options, None where they have none"""
    if options.gamma is not None and options.curve != "gamma":
        raise Failure(WRONG_USE, f"--gamma and --curve {options.curve} are two curves: leave one of them out.")
    if options.gamma is None and options.curve == "gamma":
        return None
    return options.curve, 1 if options.gamma is None else options.gamma


def form_of(path):
    return path.lower().rpartition(".")[2]


def is_jpeg(path):
    return form_of(path) in ("jpg", "jpeg", "jpe")


def told(path):
    """Returns: what makes the samples of a photograph linear, ("gamma", exponent) or ("srgb", 1), as its file says: by its profile, or by the
    chunks gAMA and sRGB of PNG; 2.2 for other JPEG; None where it says nothing, or a curve that is neither"""
    profile = profiles.read(path)
    if profile:
        found = profiles.curve_of(library.numpy(), profile)
        return found or (JPEG if is_jpeg(path) else None)
    if is_jpeg(path):
        return JPEG
    gamma = float(dict(library.Arrays().cards_of(path)).get("gAMA", 0)) if form_of(path) == "png" else 0
    return ("gamma", round(1 / gamma, 2)) if gamma > 0 else None


def gamma_of(path):
    """Returns: the exponent that makes the samples of a photograph linear, or nearly so, as far as its file says; else 1"""
    return as_gamma(told(path) or LINEAR)


def as_gamma(curve):
    """Returns: the exponent that is next to a curve"""
    return JPEG[1] if curve[0] == "srgb" else curve[1]


def is_silent(path):
    """Returns: whether a photograph of 16 bits does not say what makes its samples linear"""
    return form_of(path) in ("png", "tif", "tiff") and library.Arrays().kind(path)[0] == "u16" and not told(path)


def doubt(path):
    """Returns: a sentence about a photograph whose samples are taken as linear, or as those of JPEG, where that may be wrong; "" else"""
    name = os.path.basename(path)
    remedy = "If a camera or an editor made it, give --curve srgb; if it is linear, --gamma 1."
    profile = profiles.read(path)
    if profile and not profiles.curve_of(library.numpy(), profile):
        taken = "to have a gamma of 2.2, as in JPEG" if is_jpeg(path) else "as linear"
        return f"The colour profile of {name} has a curve that is neither gamma nor that of sRGB: its samples are taken {taken}. {remedy}"
    if form_of(path) in ("png", "tif", "tiff") and not told(path) and library.Arrays().kind(path)[0] == "u8":
        return f"{name} has 8 bits and does not say what they mean (no colour profile, sRGB or gAMA): its samples are taken as linear. {remedy}"
    return ""


def check_one(paths, folder):
    """Fails for files of several curves. Returns: the curve of all"""
    of_each = {path: told(path) or LINEAR for path in paths}
    usual = collections.Counter(of_each.values()).most_common(1)[0][0]
    others = [f"{os.path.basename(path)} has {shading.in_words(*curve)}" for path, curve in of_each.items() if curve != usual]
    if others:
        raise Failure(WRONG_USE, f"{len(others)} of {len(of_each)} photographs of {folder} {'has' if len(others) == 1 else 'have'} another curve than the"
                                 f" others, which have {shading.in_words(*usual)}: {photographs.listed(others)}. Export all in one way, as files of one kind with one"
                                 " colour profile, or give --gamma or --curve if all have one curve.")
    return usual


def choose(paths, folder, options, warn):
    """Returns: what makes the samples of these photographs linear, as it is given, or as the files say, with warnings; and whether it is a guess"""
    known = given(options)
    if known:
        return known, False
    curve, path = check_one(paths, folder), paths[0]
    sentence = doubt(path)
    if sentence:
        warn(sentence)
    elif curve != LINEAR and not (is_jpeg(path) and as_gamma(curve) == JPEG[1]):
        warn(f"The files say (profile, sRGB, gAMA) that their samples have {shading.in_words(*curve)}, and are made linear by it."
             " --gamma 1 takes them as they are.")
    return curve, not sentence and is_silent(path)


def tell_guess(report):
    """The row of a report where nobody said the curve."""
    report.not_checked("curve of the samples", "% from linear", at_most=FAINT, about=NOT_KNOWN)
