# SPDX-License-Identifier: LGPL-2.1-or-later
"""Baselines and places on the ground from orbits: PRM files of GMTSAR with their LED files. Positions are fixed to the earth, in m."""
import calendar
import datetime
import math
import os
import re

from .. import library
from ..command import NO_RESULT, UNREADABLE, Failure
from .images import find_led
from .prm import read_prm

EQUATORIAL, POLAR = 6378137.0, 6356752.314245  # WGS 84
LIGHT = 299792458.0
HOUR = 3600  # s: state vectors of a scene span some minutes
NODES = 8  # of the interpolation


class Scene:
    """One image of a stack. day: days since 1970, with the time of the day; date: its calendar day, as 20200101"""

    def __init__(self, path, name, day, date):
        self.path, self.name, self.day, self.date = path, name, day, date
        self.baseline = None  # perpendicular, from the first scene, in m
        self.critical = math.inf  # the perpendicular baseline from which on flat ground is noise, in m; without a wavelength unknown


def interpolate(times, values, time):
    """Lagrange's polynomial through the nodes around a time"""
    np = library.numpy()
    first = min(max(int(np.searchsorted(times, time)) - NODES // 2, 0), max(len(times) - NODES, 0))
    t, v = times[first:first + NODES], values[first:first + NODES]
    weights = [np.prod([(time - other) / (t[i] - other) for k, other in enumerate(t) if k != i]) for i in range(len(t))]
    return np.asarray(weights) @ v


def axes(np, place, velocity):
    """Returns: unit vectors along the flight, at a right angle to it down to the earth, and to the right"""
    along = velocity / np.linalg.norm(velocity, axis=-1, keepdims=True)
    down = -place + (place * along).sum(-1, keepdims=True) * along
    down /= np.linalg.norm(down, axis=-1, keepdims=True)
    return along, down, np.cross(down, along)


class Orbit:
    """states: rows of seconds, x, y, z, vx, vy, vz, by time; year: of day 0 of their year, from which messages count, as insarform"""

    def __init__(self, states, year):
        self.year = year
        self.times, self.places, self.velocities = states[:, 0], states[:, 1:4], states[:, 4:7]

    def states(self):
        """Returns: what is the same of two orbits of one pass, also if the days of one are wrong"""
        return self.places.tobytes() + self.velocities.tobytes()

    def at(self, time):
        """Returns: place and velocity"""
        return interpolate(self.times, self.places, time), interpolate(self.times, self.velocities, time)

    def span(self):
        return f"of {self.times[0] - self.year:.6f} to {self.times[-1] - self.year:.6f} s"

    def nearest(self, point):
        """Returns: place and velocity where the velocity is at a right angle to the line to a point; None where the states do not pass it"""
        np = library.numpy()
        time = self.times[np.argmin(np.linalg.norm(self.places - point, axis=1))]
        for _ in range(20):
            place, velocity = self.at(time)
            step = (point - place) @ velocity / (velocity @ velocity)
            if abs(step) < 1e-6:  # times since 1970 have steps of 2.4e-7 s
                return place, velocity
            time = min(max(time + step, self.times[0]), self.times[-1])
        return None


def read_led(path):
    """A line with the number of states; then year, day of the year, seconds, x, y, z, vx, vy, vz in each."""
    np = library.numpy()
    try:
        with open(path, encoding="ascii") as file:
            rows = [[float(word) for word in line.split()] for line in file.read().splitlines()[1:] if line.strip()]
        states = np.array([[seconds_of(int(year), day) + second, *rest] for year, day, second, *rest in rows])
        if states.ndim != 2 or states.shape[1] != 7 or len(states) < 4 or (np.diff(states[:, 0]) <= 0).any():
            raise ValueError("at least 4 states of 9 numbers, by time, are needed")
    except ValueError as error:
        raise Failure(UNREADABLE, f"{path} is no LED file of GMTSAR: {error}.") from error
    return Orbit(states, seconds_of(int(rows[0][0]), 0))


def seconds_of(year, day):
    """Returns: since 1970. GMTSAR counts the days of the year from 1 or from 0, by the satellite, in PRM and LED alike."""
    return calendar.timegm((year, 1, 1, 0, 0, 0)) + (day - 1) * 86400.0


def clock(text, day=None):
    """Returns: seconds since 1970 of YYYYDDD.fraction. day: the same without the year, which has more digits"""
    number = float(text)
    return seconds_of(int(number // 1000), number % 1000 if day is None else float(day))


class Image:
    """A PRM file: a Scene with an orbit"""

    def __init__(self, path):
        self.path = path
        found = dict(read_prm(path) or [])
        try:
            start = clock(found["SC_clock_start"], found.get("clock_start"))
            rate, first, lines = float(found["PRF"]), float(found["near_range"]), float(found.get("num_lines") or found["num_valid_az"])
            columns, step = float(found["num_rng_bins"]), LIGHT / 2 / float(found["rng_samp_rate"])
            self.range, self.time = first + columns / 2 * step, start + lines / 2 / rate
            self.size = int(columns), int(float(found["num_valid_az"]) * float(found.get("num_patches", 1))) if "num_valid_az" in found else int(lines)
            self.found, self.rate, self.step, self.near, self.start = found, rate, step, first, start
            self.look = 1 if found.get("lookdir", "R").upper().startswith("R") else -1  # to the right, or to the left
            self.wavelength, self.led = float(found.get("radar_wavelength", "inf")), find_led(path)
            if self.led is None:
                raise KeyError("led_file")
        except (KeyError, ValueError) as error:
            raise Failure(UNREADABLE, f"{path} has no {error}: a stack needs SC_clock_start, PRF, near_range, num_rng_bins, rng_samp_rate,"
                                      " num_lines and led_file.") from None
        try:
            self.orbit = read_led(self.led)
        except OSError as error:
            raise Failure(UNREADABLE, f"{path} names the LED file {self.led}, which cannot be read: {error.strerror}.") from error
        in_name = re.search(r"(?<!\d)((?:19|20)\d\d[01]\d[0-3]\d)", os.path.basename(path))
        date = in_name[1] if in_name else datetime.datetime.fromtimestamp(start, datetime.timezone.utc).strftime("%Y%m%d")
        self.scene = Scene(path, os.path.splitext(os.path.basename(path))[0], self.time / 86400, date)

    def check_clock(self):
        """Fails where the orbit would be extrapolated, which gives places anywhere"""
        first, last = self.orbit.times[[0, -1]]
        away = max(first - self.time, self.time - last)
        if away > HOUR:
            raise Failure(UNREADABLE, f"The clock of {self.path} is {away:.0f} s outside of the state vectors of {self.led}. Is SC_clock_start or "
                                      "clock_start, or the LED file, that of another day?")
        self.at_middle()

    def at(self, time, line):
        """Returns: place and velocity at the time of a line. Fails outside of the state vectors, as insarform"""
        if not self.orbit.times[0] <= time <= self.orbit.times[-1]:
            raise Failure(NO_RESULT, f"Line {line:.10g} of {self.path} is of the time {time - self.orbit.year:.6f} s, and its state vectors are "
                                     f"{self.orbit.span()}. Take a longer orbit.")
        return self.orbit.at(time)

    def at_middle(self):
        return self.at(self.time, (self.time - self.start) * self.rate)

    def nearest(self, point, where):
        """Returns: place and velocity where the image sees a point. where: the point is, for the message. Fails as at()"""
        found = self.orbit.nearest(point)
        if found is None:
            raise Failure(NO_RESULT, f"The state vectors of {self.path}, {self.orbit.span()}, do not pass what is {where}. Take a longer orbit, or "
                                     "that of the same track.")
        return found

    def point(self):
        """Returns: the place on the ellipsoid in the middle of the image"""
        np = library.numpy()
        place, velocity = self.at_middle()
        _along, down, right = axes(np, place, velocity)
        side = right * self.look
        low, high = 0.0, np.pi / 2
        for _ in range(60):  # the look angle at which the line of this length ends on the ellipsoid
            middle = (low + high) / 2
            end = place + self.range * (np.cos(middle) * down + np.sin(middle) * side)
            is_below = (end[:2] @ end[:2]) / EQUATORIAL ** 2 + end[2] ** 2 / POLAR ** 2 < 1
            low, high = (middle, high) if is_below else (low, middle)
        return end


def perpendicular(reference, other):
    """Returns: the perpendicular baseline in m. It is positive where the other image looks more steeply"""
    np = library.numpy()
    point = reference.point()
    place, velocity = reference.at_middle()
    baseline = other.nearest(point, f"in the middle of {reference.path}")[0] - place
    sight = (point - place) / np.linalg.norm(point - place)
    across = np.cross(sight, velocity / np.linalg.norm(velocity)) * reference.look
    return float(baseline @ across)


def incidence(image):
    """Returns: the angle between the line of sight and the vertical of the ellipsoid in the middle of the image, in rad"""
    np = library.numpy()
    point = image.point()
    sight, up = image.at_middle()[0] - point, point / np.array([EQUATORIAL, EQUATORIAL, POLAR]) ** 2
    return math.acos(sight @ up / np.linalg.norm(sight) / np.linalg.norm(up))


def critical(image):
    """Returns: the perpendicular baseline in m at which the two spectra of flat ground are a whole sampling rate apart (Gatelli et al. 1994):
    beyond it there is no common band"""
    return image.wavelength * image.range * math.tan(incidence(image)) / (2 * image.step)


def height_of_a_fringe(image, baseline):
    """Returns: the height of terrain in m whose phase is one turn (Ferretti et al., ESA TM-19, 2007, the altitude of ambiguity)"""
    return image.wavelength * image.range * math.sin(incidence(image)) / (2 * abs(baseline)) if baseline else math.inf
