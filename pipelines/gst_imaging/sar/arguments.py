# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arguments of offsets and coregister: a pair or a list of pairs, a folder, and properties of insarxcorr."""
import argparse
import os
import re
import shlex

from .. import job
from ..command import UNREADABLE, WRONG_USE, Failure
from .images import file_of

# Properties of insarxcorr that are not taken as words. A file that one of them names would replace any other, an image too.
NOT_TAKEN = {"offsets-location": "the rasters of offsets are in the folder of -o. Leave it out.",
             "settings": "give the properties as words of their own."}


def whole_number(least, most, step=1):
    """For argparse, so that a wrong number is refused before hours of work: least, least + step, ..., most."""
    def parse(text):
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most or (number - least) % step:
            raise argparse.ArgumentTypeError(f'"{text}" is not one of {least}, {least + step}, ..., {most}')
        return number
    return parse


def add_pairs(parser):
    parser.add_argument("words", nargs="*", metavar="REFERENCE SECONDARY [PROPERTY=VALUE...]",
                        help="the images, and properties of insarxcorr")
    job.add_arguments(parser)
    parser.add_argument("--pairs", metavar="LIST", help="a text file with REFERENCE SECONDARY [NAME] in each line, in the place of "
                                                        "the two images; the results of a pair are in FOLDER/NAME")


def stem(path):
    """The name of an image; coregister calls all of its images secondary, in folders with names of their own"""
    name = os.path.splitext(os.path.basename(file_of(path)))[0]
    return name if name != "secondary" else os.path.basename(os.path.dirname(os.path.abspath(path)))


class Pair:
    """Two images, and the name of the folder of their results in that of a list."""

    def __init__(self, reference, secondary, name=None):
        self.reference, self.secondary = reference, secondary
        self.name = name or f"{stem(reference)}-{stem(secondary)}"


def read_list(path):
    """Returns: the pairs of a list; its paths count from its folder"""
    try:
        with open(path, encoding="utf-8") as file:
            rows = [(number, shlex.split(line, comments=True)) for number, line in enumerate(file, 1)]
    except OSError as error:
        raise Failure(UNREADABLE, f'"{path}" cannot be read: {error.strerror}.') from error
    except ValueError as error:  # not UTF-8, or a quote that does not end
        raise Failure(UNREADABLE, f'"{path}" is no list of pairs: {error}.') from error
    folder, pairs = os.path.dirname(path), {}
    for number, words in rows:
        if not words:
            continue
        if not 2 <= len(words) <= 3 or os.path.basename(words[-1]) in ("", ".", ".."):
            raise Failure(UNREADABLE, f'Line {number} of "{path}" is not REFERENCE SECONDARY [NAME]. Names with spaces need quotes.')
        pair = Pair(os.path.join(folder, words[0]), os.path.join(folder, words[1]), *map(os.path.basename, words[2:]))
        if pair.name in pairs:
            raise Failure(UNREADABLE, f'Line {number} of "{path}" has the name "{pair.name}" of an earlier pair. Give it a third word.')
        pairs[pair.name] = pair
    if not pairs:
        raise Failure(UNREADABLE, f'"{path}" has no pair.')
    return list(pairs.values())


def read_words(options):
    """Returns: the pairs, and the properties of insarxcorr"""
    properties = [word for word in options.words if re.match("[a-z][a-z0-9-]*=", word)]  # ./a=b is a file
    images = [word for word in options.words if word not in properties]
    for word in properties:
        if word.split("=")[0] in NOT_TAKEN:
            raise Failure(WRONG_USE, f"{word}: {NOT_TAKEN[word.split('=')[0]]}")
    if len(images) != (0 if options.pairs else 2):
        wanted = "With --pairs the list names the images" if options.pairs else "REFERENCE and SECONDARY are two images"
        raise Failure(WRONG_USE, f"{wanted}, and there are {len(images)} here: {' '.join(images) or 'none'}.")
    return read_list(options.pairs) if options.pairs else [Pair(*images)], properties


def run_all(options, command, work):
    """work(pair, properties, Job) for one pair after the other. Returns: as job.run_all()"""
    pairs, properties = read_words(options)
    by_name = {pair.name: pair for pair in pairs}
    folders = [os.path.join(options.output, name) for name in by_name] if options.pairs else [options.output]
    return job.run_all(options, command, list(by_name), lambda name, made: work(by_name[name], properties, made), folders)
