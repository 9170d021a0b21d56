# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes FITS files after the convention of adaptive optics telemetry (AOT), version 2.0.0: Gomes et al. 2024, A&A 686, A7.

    aot.write(np, path, header, rows, images)

header: (keyword, value) of the primary header. rows: for each table, by its name without AOT_, its rows as dictionaries; tables that
the convention demands are there also without rows. images: Image, which rows refer to by image(name).
"""
VERSION = "2.0.0"
BLOCK, CHUNK = 2880, 1 << 22  # of a FITS file; bytes that are converted at a time

# The columns: NAME is a text, NAME:f a number, NAME:i an integer, NAME:l a list of numbers; then the unit
TABLES = {
    "TIME": "UID TIMESTAMPS:l:s FRAME_NUMBERS:l:count",
    "ATMOSPHERIC_PARAMETERS": "UID WAVELENGTH:f:m TIME_UID R0:l:m SEEING:l:arcsec TAU0:l:s THETA0:l:rad LAYERS_REL_WEIGHT LAYERS_HEIGHT"
                              " LAYERS_LO LAYERS_WIND_SPEED LAYERS_WIND_DIRECTION TRANSFORMATION_MATRIX",
    "ABERRATIONS": "UID MODES COEFFICIENTS X_OFFSETS:l:rad Y_OFFSETS:l:rad",
    "TELESCOPES": "UID TYPE LATITUDE:f:deg LONGITUDE:f:deg ELEVATION:f:deg AZIMUTH:f:deg PARALLACTIC:f:deg PUPIL_MASK PUPIL_ANGLE:f:rad"
                  " ENCLOSING_D:f:m INSCRIBED_D:f:m OBSTRUCTION_D:f:m SEGMENT_TYPE SEGMENT_SIZE:f:m SEGMENTS_X:l:m SEGMENTS_Y:l:m"
                  " TRANSFORMATION_MATRIX ABERRATION_UID",
    "SOURCES": "UID TYPE RIGHT_ASCENSION:f:deg DECLINATION:f:deg ELEVATION_OFFSET:f:deg AZIMUTH_OFFSET:f:deg FWHM:f:rad",
    "DETECTORS": "UID TYPE SAMPLING_TECHNIQUE SHUTTER_TYPE FLAT_FIELD READOUT_NOISE:f:electron*s^-1*pix^-1 PIXEL_INTENSITIES"
                 " FIELD_CENTRE_X:f:pix FIELD_CENTRE_Y:f:pix INTEGRATION_TIME:f:s COADDS:i:count DARK WEIGHT_MAP QUANTUM_EFFICIENCY:f"
                 " PIXEL_SCALE:f:rad*pix^-1 BINNING:i:count BANDWIDTH:f:m TRANSMISSION_WAVELENGTH:l:m TRANSMISSION:l SKY_BACKGROUND"
                 " GAIN:f:electron EXCESS_NOISE:f:electron FILTER BAD_PIXEL_MAP DYNAMIC_RANGE:f:dB READOUT_RATE:f:pix*s^-1"
                 " FRAME_RATE:f:frame*s^-1 TRANSFORMATION_MATRIX",
    "SCORING_CAMERAS": "UID PUPIL_MASK WAVELENGTH:f:m TRANSFORMATION_MATRIX DETECTOR_UID ABERRATION_UID",
    "WAVEFRONT_SENSORS": "UID TYPE SOURCE_UID DIMENSIONS:i:count N_VALID_SUBAPERTURES:i:count MEASUREMENTS REF_MEASUREMENTS"
                         " SUBAPERTURE_MASK MASK_X_OFFSETS:l:pix MASK_Y_OFFSETS:l:pix SUBAPERTURE_SIZE:f:pix SUBAPERTURE_INTENSITIES"
                         " WAVELENGTH:f:m OPTICAL_GAIN TRANSFORMATION_MATRIX DETECTOR_UID ABERRATION_UID NCPA_UID",
    "WAVEFRONT_SENSORS_SHACK_HARTMANN": "UID CENTROIDING_ALGORITHM CENTROID_GAINS SPOT_FWHM",
    "WAVEFRONT_CORRECTORS": "UID TYPE TELESCOPE_UID N_VALID_ACTUATORS:i:count PUPIL_MASK TFZ_NUM:l TFZ_DEN:l TRANSFORMATION_MATRIX"
                            " ABERRATION_UID",
    "WAVEFRONT_CORRECTORS_DM": "UID ACTUATORS_X:l:m ACTUATORS_Y:l:m INFLUENCE_FUNCTION STROKE:f:m",
    "LOOPS": "UID TYPE COMMANDED_UID TIME_UID STATUS COMMANDS REF_COMMANDS FRAMERATE:f:Hz DELAY:f:frame TIME_FILTER_NUM TIME_FILTER_DEN",
    "LOOPS_CONTROL": "UID INPUT_SENSOR_UID MODES MODAL_COEFFICIENTS CONTROL_MATRIX MEASUREMENTS_TO_MODES MODES_TO_COMMANDS"
                     " INTERACTION_MATRIX COMMANDS_TO_MODES MODES_TO_MEASUREMENTS RESIDUAL_COMMANDS",
}
NULL = -32768  # an integer that is not known


class Image:
    """values: an array, which may be a map of a file. timed: its first axis is that of the row "time" of AOT_TIME"""

    def __init__(self, name, values, unit=None, timed=False):
        self.name, self.values, self.unit, self.timed = name, values, unit, timed


def image(name):
    """Returns: how a column refers to an image"""
    return f"INTREF<{name}>"


def row(uid):
    """Returns: how a column refers to a row"""
    return f"ROWREF<{uid}>"


def text_cards(keyword, value):
    """A text of any length: it goes on in cards CONTINUE."""
    value = "".join(c if c.isascii() and c.isprintable() else " " if c.isspace() else "?" for c in value).replace("'", "''")
    cards, first = [], True
    while first or value:
        piece = value if len(value) <= 68 else value[:67]
        if len(piece) < len(value) and (len(piece) - len(piece.rstrip("'"))) % 2:
            piece = piece[:-1]  # two quotes are one, and stay together
        value = value[len(piece):]
        begin = f"{keyword:8}= '" if first else "CONTINUE  '"
        cards.append(f"{begin}{piece:8}{'&' if value else ''}'")
        first = False
    return cards


def header(entries):
    """(keyword, value) each. Returns: the blocks"""
    cards = []
    for keyword, value in entries:
        if isinstance(value, str):
            cards += text_cards(keyword, value)
        else:
            number = "FT"[value] if isinstance(value, bool) else value
            cards.append(f"{keyword:8}= {number:>20}")
    data = "".join(f"{card:80}" for card in [*cards, "END"]).encode("ascii")
    return data + b" " * (-len(data) % BLOCK)


def format_of(kind, values):
    if kind == "s":
        return f"{max([1, *(len(value) for value in values)])}A"
    return f"QD({max([0, *(len(value) for value in values)])})" if kind == "l" else {"f": "D", "i": "K"}[kind]


def cell(np, kind, value, width, heap):
    """The bytes of a value in its row; a list goes into the heap."""
    if kind == "s":
        return value.encode("ascii").ljust(width, b" ")
    if kind == "f":
        return np.array(value, ">f8").tobytes()
    if kind == "i":
        return np.array(value, ">i8").tobytes()
    place = len(heap)
    heap += np.asarray(value, ">f8").tobytes()
    return np.array([len(value), place], ">i8").tobytes()


def table(np, name, rows):
    """Returns: a table, as bytes"""
    missing = {"s": "", "f": float("nan"), "i": NULL, "l": ()}
    columns = [(entry.split(":") + ["", ""])[:3] for entry in TABLES[name].split()]
    columns = [(column, kind or "s", unit) for column, kind, unit in columns]
    values = [[line.get(column, missing[kind]) for line in rows] for column, kind, _unit in columns]
    formats = [format_of(kind, of_column) for (_name, kind, _unit), of_column in zip(columns, values)]
    widths = [int(form[:-1]) if form.endswith("A") else 16 if form.startswith("Q") else 8 for form in formats]
    heap = bytearray()
    body = b"".join(cell(np, kind, values[c][i], widths[c], heap)
                    for i in range(len(rows)) for c, (_name, kind, _unit) in enumerate(columns))
    entries = [("XTENSION", "BINTABLE"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", sum(widths)), ("NAXIS2", len(rows)),
               ("PCOUNT", len(heap)), ("GCOUNT", 1), ("TFIELDS", len(columns))]
    for number, ((column, kind, unit), form) in enumerate(zip(columns, formats), 1):
        entries += [(f"TTYPE{number}", column), (f"TFORM{number}", form)]
        entries += [(f"TUNIT{number}", unit)] * bool(unit) + [(f"TNULL{number}", NULL)] * (kind == "i")
    data = body + bytes(heap)
    return header([*entries, ("EXTNAME", f"AOT_{name}")]) + data + b"\0" * (-len(data) % BLOCK)


def write_image(np, file, made):
    """u16 is a signed integer with an offset, as everywhere in FITS."""
    values = made.values
    bitpix, dtype = {"u1": (8, "u1"), "u2": (16, ">i2"), "i4": (32, ">i4"), "f4": (-32, ">f4"), "f8": (-64, ">f8")}[values.dtype.str[1:]]
    entries = [("XTENSION", "IMAGE"), ("BITPIX", bitpix), ("NAXIS", values.ndim)]
    entries += [(f"NAXIS{i}", n) for i, n in enumerate(reversed(values.shape), 1)] + [("PCOUNT", 0), ("GCOUNT", 1)]
    entries += [("BSCALE", 1), ("BZERO", 32768)] * (bitpix == 16) + [("EXTNAME", made.name)]
    entries += [("BUNIT", made.unit)] * bool(made.unit) + [("TIME_UID", row("time"))] * made.timed
    file.write(header(entries))
    flat = values.reshape(-1)
    step = CHUNK // values.itemsize
    for begin in range(0, flat.size, step):
        part = flat[begin:begin + step]
        file.write(((part ^ 0x8000).view(np.int16) if bitpix == 16 else part).astype(dtype).tobytes())
    file.write(b"\0" * (-values.nbytes % BLOCK))


def write(np, path, entries, rows, images):
    with open(path, "wb") as file:
        file.write(header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 0), ("EXTEND", True), ("AOT-VERS", VERSION), ("TIMESYS", "UTC"),
                           *entries]))
        for name in TABLES:
            file.write(table(np, name, rows.get(name, [])))
        for made in images:
            write_image(np, file, made)
