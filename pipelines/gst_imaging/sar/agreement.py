# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do two PRM files and their orbits belong together?"""
import os

from ..command import UNREADABLE, Failure
from .images import find_led
from .orbit import Image

# key, the largest difference in parts of the value, and what happens beyond it
NUMBERS = [
    ("radar_wavelength", 1e-3, "the phase of the earth is that of one wavelength"),
    ("PRF", 0.05, "images of one radar differ by 2 % at most"),
    ("rng_samp_rate", 0.01, "the columns of the two images are not equally wide"),
]


def check_led(path):
    led = find_led(path)
    if led and not os.path.isfile(led):
        raise Failure(UNREADABLE, f'"{path}" names the LED file "{os.path.basename(led)}", which is neither beside it nor in the working folder. Put it there, '
                                  "or correct led_file.")


def read(paths, needed, warn):
    """paths: PRM files of reference and secondary; needed: fails where a LED file is missing, or a clock is outside of its orbit.
    Returns: their orbit.Images; None where a file has less than these need, which insarform may do without"""
    try:
        for path in paths:
            check_led(path)
    except Failure:
        if needed:
            raise
        return None
    images = read_images(paths)
    try:
        for image in images or []:
            image.check_clock()
    except Failure as error:
        if needed:
            raise
        warn(str(error))
        return None
    return images


def read_images(paths):
    try:
        return [Image(path) for path in paths]
    except Failure:  # insarform tells what is wrong, if it is for insarform, too
        return None


def warn_of_one_orbit(images, names, warn):
    """images: with equal states; names: of these, as a text"""
    leds = {os.path.realpath(image.led) for image in images}
    what = f"name one LED file, {images[0].led}" if len(leds) == 1 else "have the same state vectors in their LED files"
    warn(f"{names} {what}, and so a baseline of 0 between them. No two passes are the same: look which of these files is that of another day.")


def check(images, warn):
    """Warns of what contradicts in two PRM files. images: of read()"""
    one, other = images
    if one.orbit.states() == other.orbit.states():
        warn_of_one_orbit(images, f"{one.path} and {other.path}", warn)
    if one.look != other.look:
        warn(f"lookdir is {one.found.get('lookdir', 'R')} in {one.path} and {other.found.get('lookdir', 'R')} in {other.path}, and a pair has one side. "
             "Correct the wrong one.")
    for key, most, why in NUMBERS:
        try:
            a, b = (float(image.found[key]) for image in images)
        except (KeyError, ValueError):
            continue
        if abs(a - b) > most * max(abs(a), abs(b)):
            warn(f"{key} is {a:g} in {one.path} and {b:g} in {other.path}: {why}. Correct the wrong one, or take a pair of one mode.")
