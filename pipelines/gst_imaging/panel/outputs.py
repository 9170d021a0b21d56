# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a recording must not replace: the files of the pipeline that is played."""
import os
import re

from .refusal import Refusal


def used_by(pipeline, description):
    """Yields what the elements have for the properties that name files; of lists, which PyGObject cannot read, what is
    between quotes in the description of the pipeline"""
    for names in re.findall("locations *= *<([^>]*)>", description):
        for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|([^", ]+)', names):
            yield re.sub(r"\\(.)", r"\1", quoted) or plain
    iterator = pipeline.iterate_recurse()
    while True:
        _result, element = iterator.next()
        if element is None:
            return
        for pspec in element.list_properties():
            if "location" in pspec.name and pspec.flags & 1 and pspec.value_type.name == "gchararray":
                name = element.get_property(pspec.name)
                if name:
                    yield name


def check(path, pipeline, description):
    """Returns: the path. Fails where what is written there is in use, also by a series of files in that folder"""
    folder, base = os.path.split(path)
    name = re.compile("[0-9]+".join(map(re.escape, re.split("%0?[0-9]*[diu]", base))) + r"(\.json)?")
    for used in used_by(pipeline, description):
        real = os.path.realpath(used)
        is_series = os.path.isdir(real) or re.search("[*?%]", os.path.basename(used))
        if (real if os.path.isdir(real) else os.path.dirname(real)) != folder:
            continue
        if is_series or name.fullmatch(os.path.basename(real)):
            raise Refusal(409, f"The pipeline uses {used}, which {base} could replace: choose another name or folder.")
    return path
