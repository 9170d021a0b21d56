# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dispersion estimated from the first B-scan, before all of them are made with it."""
import copy
import os

from .. import library
from ..command import WRONG_USE, Failure
from ..frames.source import scratch
from . import calibration

ANSWER = "accepted", "text", "dispersion", "confidence", "sharpness-before", "sharpness-after"


def add_arguments(parser):
    parser.add_argument("--estimate-dispersion", action="store_true",
                        help="find d2 and d3 of each camera from the first B-scan, which needs layers or points, and the wavelengths")


def check(options):
    if options.estimate_dispersion and options.dispersion:
        raise Failure(WRONG_USE, "--dispersion tells the dispersion, and --estimate-dispersion finds it: give one of them.")


def estimated(made, first, options, settings):
    """first: the B-scan [lines, samples]. Returns: options with the dispersion that it shows; as they are where it shows none"""
    np, answers = library.numpy(), []

    def take(structure):
        if structure.get_name() == "octbscan-dispersion":
            answers.append({name: structure.get_value(name) for name in ANSWER})

    with scratch() as folder:
        path = os.path.join(folder, "first.npy")
        np.save(path, first[None].astype("f4"))
        words = ["picturesrc", "location=" + path, "axes=nyx", "!", "octbscan", "name=o", *settings]
        written = calibration.write(options, os.path.join(folder, "before.ini"))
        words += ["calibration=" + written] if written else []
        words += ["background=file", "background-location=" + options.background] if options.background else []
        kept, warnings = list(made.report.settings), []
        made.play([*words, "!", "fakesink"], take_message=take, warn=warnings.append,
                  prepare=lambda pipeline: pipeline.get_by_name("o").emit("estimate-dispersion"))
        made.report.settings[:] = kept  # those of the result
    answer = answers[-1] if answers else {"accepted": False, "text": "octbscan has seen no B-scan."}
    for sentence in warnings:
        if sentence != answer["text"]:
            made.warn(sentence)
    if not answer["accepted"]:
        made.warn(f"The dispersion is not estimated, and stays as it is: {answer['text']}")
        return options
    made.report.fact("dispersion, estimated", answer["dispersion"])
    made.report.figure("confidence of the dispersion", answer["confidence"], at_least=0.5)
    made.report.figure("sharper by the dispersion", answer["sharpness-after"] / answer["sharpness-before"], "times")
    options = copy.copy(options)
    options.dispersion = answer["dispersion"]
    return options
