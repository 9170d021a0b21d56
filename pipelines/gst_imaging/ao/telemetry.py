# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a Recorder has, as a file of the AOT convention (aot.py)."""
import datetime

from ..panel import gvalue
from ..panel.values import from_text
from . import aot

OF_LOOP = ("REF_COMMANDS", "TIME_FILTER_NUM", "TIME_FILTER_DEN")  # images of LOOPS


def in_order(np, matrix, axis, interleaved):
    """Slopes along @axis become two axes: x or y, cell."""
    cells = matrix.shape[axis] // 2
    before, behind = matrix.shape[:axis], matrix.shape[axis + 1:]
    if interleaved:
        return np.moveaxis(matrix.reshape(*before, cells, 2, *behind), axis + 1, axis)
    return matrix.reshape(*before, 2, cells, *behind)


def modes_of(values):
    """Returns: [commands, modes], also of a cube of cacao, [modes, y, x]"""
    return values.reshape(len(values), -1).T if values.ndim == 3 else values


def matrices(np, read, element, read_in_order):
    """The files of shreconstruct, by the column of LOOPS_CONTROL, LOOPS or WAVEFRONT_SENSORS. read: a path, and the name of an image.
    read_in_order: a path, and the axis of slopes, which become two axes. Returns: {name: array}"""
    def location(name):
        return element.get_property(f"{name}-location") or ""

    found = {}
    if location("matrix"):
        to_modes = read_in_order(location("matrix"), 1)
        found["MEASUREMENTS_TO_MODES" if location("modes") else "CONTROL_MATRIX"] = to_modes
    if location("modes"):
        found["MODES_TO_COMMANDS"] = modes_of(read(location("modes"), "MODES_TO_COMMANDS"))
    if location("interaction"):  # [2 cells, commands] becomes [cells, 2, commands]
        found["INTERACTION_MATRIX"] = np.moveaxis(read_in_order(location("interaction"), 0), 0, 1)
    if location("reference"):
        found["REF_COMMANDS"] = read(location("reference"), "REF_COMMANDS").reshape(-1)
    if location("slope-offsets"):
        found["REF_MEASUREMENTS"] = in_order(np, read(location("slope-offsets"), "REF_MEASUREMENTS").reshape(-1), 0, False)
    found.update(time_filter(np, read, element))
    return {name: np.ascontiguousarray(values, np.float64) for name, values in found.items()}


def time_filter(np, read, element):
    """Returns: b_0, b_1, ... and 1, -a_1, ..., [1 or modes, terms] each"""
    if element.get_property("controller-location"):
        terms = read(element.get_property("controller-location"), None).astype(float)
        a, b = (terms[..., i, :].reshape(-1, terms.shape[-1]) for i in (0, 1))
    else:
        a, b = np.array([[1 - element.get_property("leak")]]), np.array([[element.get_property("gain")]])
    factors = np.array(from_text("array", gvalue.read(element, "mode-gains")) or [1.0])[:, None]
    return {"TIME_FILTER_NUM": b * factors, "TIME_FILTER_DEN": np.concatenate([np.ones((len(a), 1)), -a], 1)}


def mask_of(np, places):
    """[rows, columns]: the number of the cell, -1 where there is none"""
    mask = np.full(places.max(0) + 1, -1, np.int32)
    mask[tuple(places.astype(int).T)] = np.arange(len(places))
    return mask


def size_of(np, cells):
    """Returns: pixels of a subaperture, where all have the same size"""
    sizes = cells[:, 2:4]
    return float(sizes[0, 0]) if np.allclose(sizes, sizes[0, 0], atol=1e-3) else float("nan")


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds")


def write(np, path, recorder, files, mode, name, config, delay=None):
    """files: of matrices(). delay: in frames, where it is known"""
    numbers, times, closed, arrays = recorder.finish()
    geometry = recorder.geometry
    images = [aot.Image("MEASUREMENTS", arrays["slopes"], geometry.get("unit"), True), aot.Image("COMMANDS", arrays["commands"], None, True),
              aot.Image("MODAL_COEFFICIENTS", arrays["modes"], None, True)]
    cells, commands = arrays["slopes"].shape[2], arrays["commands"].shape[1]
    sensor = {"UID": "sensor", "TYPE": "Shack-Hartmann", "SOURCE_UID": aot.row("source"), "DIMENSIONS": 2, "N_VALID_SUBAPERTURES": cells,
              "MEASUREMENTS": aot.image("MEASUREMENTS")}
    loop = {"UID": "loop", "TYPE": "Control Loop", "COMMANDED_UID": aot.row("mirror"), "TIME_UID": aot.row("time"),
            "COMMANDS": aot.image("COMMANDS"), "FRAMERATE": recorder.frame_rate()}
    control = {"UID": "loop", "INPUT_SENSOR_UID": aot.row("sensor"), "MODAL_COEFFICIENTS": aot.image("MODAL_COEFFICIENTS")}
    if delay is not None:
        loop["DELAY"] = delay
    if len(set(closed)) == 1:
        loop["STATUS"] = "Closed" if closed[0] else "Open"
    rows = {"TIME": [{"UID": "time", "TIMESTAMPS": times, "FRAME_NUMBERS": numbers}],
            "TELESCOPES": [{"UID": "telescope", "TYPE": "Main Telescope", "SEGMENT_TYPE": "Monolithic"}],
            "SOURCES": [{"UID": "source", "TYPE": "Natural Guide Star"}],
            "WAVEFRONT_SENSORS": [sensor], "WAVEFRONT_SENSORS_SHACK_HARTMANN": [{"UID": "sensor"}],
            "WAVEFRONT_CORRECTORS": [{"UID": "mirror", "TYPE": "Deformable Mirror", "TELESCOPE_UID": aot.row("telescope"),
                                      "N_VALID_ACTUATORS": commands}],
            "WAVEFRONT_CORRECTORS_DM": [{"UID": "mirror"}], "LOOPS": [loop], "LOOPS_CONTROL": [control]}
    if "row-column" in geometry:
        images.append(aot.Image("SUBAPERTURE_MASK", mask_of(np, geometry["row-column"])))
        sensor["SUBAPERTURE_MASK"] = aot.image("SUBAPERTURE_MASK")
    if "cells" in geometry:
        sensor["SUBAPERTURE_SIZE"] = size_of(np, geometry["cells"])
    if arrays["frames"] is not None:
        images.append(aot.Image("PIXEL_INTENSITIES", arrays["frames"], "ADU", True))
        rows["DETECTORS"] = [{"UID": "detector", "PIXEL_INTENSITIES": aot.image("PIXEL_INTENSITIES")}]
        sensor["DETECTOR_UID"] = aot.row("detector")
    for column, values in files.items():
        images.append(aot.Image(column, values))
        {"REF_MEASUREMENTS": sensor}.get(column, loop if column in OF_LOOP else control)[column] = aot.image(column)
    header = [("AO-MODE", mode), ("DATE-BEG", iso(times[0])), ("DATE-END", iso(times[-1]))]
    header += [("SYS-NAME", name)] * bool(name) + [("CONFIG", config)]
    aot.write(np, path, header, rows, images)
