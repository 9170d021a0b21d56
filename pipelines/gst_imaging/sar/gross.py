# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shift between two images by their amplitudes in blocks of samples: for pairs that lie further apart than the search of
insarxcorr, without rshift and ashift in a PRM file."""
import math
import os

from .. import library, play

CELLS = 1024  # of the longer side, about
LEAST = 8  # times the spread of the correlation, that its peak has to be
OVERLAP = 0.1  # of the smaller image
SURROUNDINGS = 2.5  # cells, the sigma of a Gaussian: slopes and fields that are larger correlate at many shifts


def amplitudes(image, block, folder):
    """Returns: the rms amplitude of blocks, [lines][columns]"""
    np = library.numpy()
    path = os.path.join(folder, "gross.img")
    play.play(play.parse([*image.source, "!", "tee", "name=t", "!", "queue", "!", "i.reference", "t.", "!", "queue", "!",
                          "i.secondary", "insarform", "name=i", f"looks-x={block}", f"looks-y={block}", "window-x=1", "window-y=1",
                          "amplitude-location=" + path]))
    values = np.fromfile(path, np.float32).reshape(-1, image.width // block)
    for suffix in "", ".hdr", ".vrt":
        os.remove(path + suffix)
    return values


def prepare(np, values, shape):
    """Returns: the spectra of the logarithms without the mean of their surroundings, and of where there is data, on a field of
    zeros"""
    def smooth(field):
        fy, fx = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])
        spectrum = np.fft.rfft2(field, shape) * np.exp(-2 * (np.pi * SURROUNDINGS) ** 2 * (fx ** 2 + fy ** 2))
        return np.fft.irfft2(spectrum, shape)[:values.shape[0], :values.shape[1]]

    known = values > 0
    logs = np.zeros(values.shape)
    logs[known] = np.log(values[known])
    logs[known] -= smooth(logs)[known] / smooth(known)[known]
    return np.fft.rfft2(logs, shape), np.fft.rfft2(logs * logs, shape), np.fft.rfft2(known.astype(float), shape)


def correlate(np, reference, secondary):
    """Returns: the correlation for each shift of the second, in cells, modulo its shape. It is normalised and multiplied by the root of
    the overlap, so that its spread is the same for each shift; that of shifts with little overlap is 0"""
    shape = [1 << math.ceil(math.log2(a + b)) for a, b in zip(reference.shape, secondary.shape)]
    (a, a2, m), (b, b2, n) = prepare(np, reference, shape), prepare(np, secondary, shape)

    def product(x, y):
        return np.fft.irfft2(np.conj(x) * y, shape)

    overlap = product(m, n)
    energy = np.sqrt(np.maximum(product(a2, n), 0) * np.maximum(product(m, b2), 0))
    enough = overlap > OVERLAP * min(reference.size, secondary.size)
    normalised = product(a, b) / np.maximum(energy, 1e-9 * energy.max() + 1e-30)
    return np.where(enough, normalised * np.sqrt(np.maximum(overlap, 0)), 0), enough


def find_shift(images, folder):
    """Returns: the columns and lines that the second image is behind the first, to a block; None where none stands out, or
    the images have no complex samples"""
    np = library.numpy()
    if not all(image.is_complex for image in images):
        return None
    block = min(256, max(4, math.ceil(max(max(image.width, image.height) for image in images) / CELLS)))
    if min(min(image.width, image.height) for image in images) < 8 * block:
        return None
    correlation, enough = correlate(np, *(amplitudes(image, block, folder) for image in images))
    if not enough.any():  # an image has no data
        return None
    peak = np.unravel_index(np.argmax(correlation), correlation.shape)
    if correlation[peak] < LEAST * correlation[enough].std():
        return None
    lines, columns = (int(at) - (size if at > size // 2 else 0) for at, size in zip(peak, correlation.shape))
    return columns * block, lines * block
