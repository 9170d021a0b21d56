# SPDX-License-Identifier: LGPL-2.1-or-later
"""What speaks against a frame of spots: bytes in the other order, spots that are hardly above the noise, and clipped samples."""
from .. import library

FORMATS = {"GRAY8": "u1", "GRAY16_LE": "<u2"}
SMOOTHER = 4  # times, that the exchanged bytes have to be, before the order is doubted


def frame_of(np, sample):
    """Returns: the grey frame of a sample as [height, width]; None of another format"""
    from .. import metadata

    structure = sample.get_caps().get_structure(0)
    dtype = FORMATS.get(structure.get_string("format")) if structure.has_name("video/x-raw") else None
    if not dtype:
        return None
    width, height = (structure.get_value(side) for side in ("width", "height"))
    data = np.frombuffer(metadata.read_bytes(sample.get_buffer()), np.uint8)
    if data.size % height:
        return None
    return data.reshape(height, -1)[:, :width * np.dtype(dtype).itemsize].copy().view(dtype)


def roughness(np, frame):
    """Returns: how much neighbours differ, for each unit that the whole frame varies"""
    values = frame.astype(float)
    return np.abs(np.diff(values, axis=1)).mean() / (values.std() or 1)


def doubt_order(np, frame):
    """Returns: a sentence where the two bytes of the samples seem to be exchanged; else None"""
    if frame.dtype.itemsize < 2 or frame.shape[1] < 2 or SMOOTHER * roughness(np, frame.byteswap()) >= roughness(np, frame):
        return None
    return ("The frames are much smoother with the two bytes of each sample exchanged: they seem to be written with the high byte first."
            " Read them as big-endian, or save them again with NumPy's byteswap().")


def peak_over_noise(np, frame, places):
    """places: x and y of valid spots. Returns: how far the median spot is above the background, in units of the noise of a
    pixel; None where that cannot be told"""
    values = frame.astype(float)
    if len(places) == 0 or min(values.shape) < 3:
        return None
    # of white noise the second difference has sqrt(6) times the noise; light that changes slowly has none
    second = values[:, 2:] - 2 * values[:, 1:-1] + values[:, :-2]
    noise = 1.4826 * float(np.median(np.abs(second))) / 6 ** 0.5
    if noise == 0:
        return None
    column, row = (np.clip(np.rint(places[:, i]).astype(int), 1, size - 2) for i, size in ((0, values.shape[1]), (1, values.shape[0])))
    peaks = np.max([values[row + y, column + x] for y in (-1, 0, 1) for x in (-1, 0, 1)], axis=0)
    return float(np.median(peaks) - np.median(values)) / noise


def clipped(np, values, bits):
    """Returns: how many per cent of the samples of colours are black or white; the last of 2 or 4 channels is alpha"""
    values = values[..., :-1] if values.ndim > 2 and values.shape[-1] in (2, 4) else values
    if values.dtype.kind not in "iu":
        return 0.0
    white = (1 << bits) - 1 if bits and values.dtype.itemsize == 2 else np.iinfo(values.dtype).max
    return 100 * float(((values == 0) | (values >= white)).mean())


class Look:
    """At the last frame."""

    def __init__(self, sample, values):
        """values: [cells, fields] of shcentroid with all fields"""
        np = library.numpy()
        frame = frame_of(np, sample)
        valid = values[:, -1].astype(int) & library.NO_CENTROID == 0
        self.order = doubt_order(np, frame) if frame is not None else None
        self.peak = peak_over_noise(np, frame, values[valid, :2]) if frame is not None else None
