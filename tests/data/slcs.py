#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pair of SLC images of one scene whose offsets are known, as GMTSAR has them (.PRM and int16 .SLC).

Speckle, band-limited, on a landscape with a lake that has no coherence, and a hill that has moved between the two:
its fringes are what an interferogram shows. What is at column r and line a of ref.SLC is in sec.SLC at

    r + r0 + sr r + ar a,  a + a0 + sa r + aa a

Usage: slcs.py FOLDER [--width N] [--height N] [--coherence C] [--fringes N] [--seed N] [--doppler CYCLES]
"""
import argparse
import os

import numpy as np

OFFSETS = {"r0": 4.31, "sr": 1.2e-3, "ar": -4.0e-4, "a0": -3.72, "sa": 3.0e-4, "aa": -9.0e-4}
BAND, TAPS, MARGIN = 0.8, 12, 32


def band_limited(rng, shape):
    """Circular noise of unit power, of BAND of the spectrum in both directions."""
    spectrum = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    for axis in 0, 1:
        far = np.abs(np.fft.fftfreq(shape[axis])) > BAND / 2
        spectrum[far if axis == 0 else (slice(None), far)] = 0
    noise = np.fft.ifft2(spectrum)
    return noise / np.sqrt((np.abs(noise) ** 2).mean())


def smooth(rng, shape, scale):
    """A smooth random field of unit variance."""
    fy, fx = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])
    field = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape)) * np.exp(-20 * scale ** 2 * (fx ** 2 + fy ** 2)), s=shape)
    return field / field.std()


def landscape(rng, shape):
    """Amplitudes with fields and ridges; where the lake is; how far the hill has moved, 0 to 1."""
    y, x = (np.arange(n) / n for n in shape)
    y, x = y[:, None], x[None, :]
    amplitude = np.exp(0.35 * smooth(rng, shape, 30) + 0.3 * smooth(rng, shape, 6) + 0.4 * (smooth(rng, shape, 15) > 0.5))
    lake = (x - 0.7) ** 2 + 1.4 * (y - 0.3) ** 2 + 0.006 * smooth(rng, shape, 20) < 0.02
    hill = np.exp(-((x - 0.38) ** 2 + (y - 0.6) ** 2) / 0.035)
    return np.where(lake, 0.5, amplitude), lake, hill


def warp(image, x, y):
    """The values of an image at (x, y), by a windowed sinc."""
    half = TAPS // 2
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)

    def weights(fraction):
        steps = [fraction - k for k in range(1 - half, half + 1)]
        w = [np.sinc(s) * np.i0(5 * np.sqrt(np.clip(1 - (s / half) ** 2, 0, 1))) for s in steps]
        return [v / sum(w) for v in w]

    wx, wy, out = weights(x - x0), weights(y - y0), 0
    for j in range(TAPS):
        out += wy[j] * sum(wx[i] * image[y0 + j + 1 - half, x0 + i + 1 - half] for i in range(TAPS))
    return out


def carry(image, doppler, y):
    """Moves the azimuth spectrum of an image around 0 to the Doppler centroid, in cycles a line."""
    return image * np.exp(2j * np.pi * doppler * y)


def move(image, shape, offsets, doppler=0):
    """The samples of a secondary. image: what it sees, in the geometry of the reference, with a spectrum around 0 and
    MARGIN samples more on all sides. It is warped there, where its spectrum does not wrap; then it gets its carrier."""
    o = offsets
    matrix = np.linalg.inv([[1 + o["sr"], o["ar"]], [o["sa"], 1 + o["aa"]]])
    y, x = np.mgrid[:shape[0], :shape[1]].astype(float)
    dx, dy = x - o["r0"], y - o["a0"]
    from_x, from_y = (matrix[i, 0] * dx + matrix[i, 1] * dy for i in (0, 1))
    rows = [slice(i, i + 128) for i in range(0, shape[0], 128)]
    return np.concatenate([carry(warp(image, from_x[r] + MARGIN, from_y[r] + MARGIN), doppler, from_y[r]) for r in rows])


def read(path, width):
    """An image of int16."""
    samples = np.fromfile(path, "<i2").astype(float).reshape(-1, width, 2)
    return samples[..., 0] + 1j * samples[..., 1]


def write(folder, name, image):
    """Of unit power, as the scenes here, or nearly."""
    samples = np.stack([image.real, image.imag], -1) * 300
    np.rint(np.clip(samples, -32768, 32767)).astype("<i2").tofile(os.path.join(folder, name + ".SLC"))
    height, width = image.shape
    with open(os.path.join(folder, name + ".PRM"), "w", encoding="ascii") as file:
        file.write(f"SLC_file = {name}.SLC\nnum_rng_bins = {width}\nnum_patches = 1\nnum_valid_az = {height}\n"
                   "PRF = 2000\nrshift = 0\nashift = 0\n")


def make_pair(folder, width=896, height=1024, coherence=0.85, fringes=5.0, seed=1, doppler=0):
    rng = np.random.RandomState(seed)  # its stream is frozen by NumPy
    shape = height + 2 * MARGIN, width + 2 * MARGIN
    amplitude, lake, hill = landscape(rng, shape)
    kept = np.where(lake, 0, coherence)
    scene, other = band_limited(rng, shape), band_limited(rng, shape)
    moved = np.exp(-2j * np.pi * fringes * hill)
    secondary = amplitude * (kept * scene * moved + np.sqrt(1 - kept ** 2) * other)

    os.makedirs(folder, exist_ok=True)
    y = np.arange(height)[:, None]
    write(folder, "ref", carry((amplitude * scene)[MARGIN:-MARGIN, MARGIN:-MARGIN], doppler, y))
    write(folder, "sec", move(secondary, (height, width), OFFSETS, doppler))


def make_second(folder, image, offsets, coherence=0.75, seed=7):
    """A pair of which the reference is an image that is there already."""
    rng = np.random.RandomState(seed)
    image = image / np.sqrt((np.abs(image) ** 2).mean())
    doppler = np.angle((image[1:] * image[:-1].conj()).sum()) / (2 * np.pi)
    base = np.pad(carry(image, -doppler, np.arange(len(image))[:, None]), MARGIN, "wrap")
    far = np.hypot(np.fft.fftfreq(base.shape[0])[:, None], np.fft.fftfreq(base.shape[1])) > 0.03
    power = np.fft.fft2(np.abs(base) ** 2)
    power[far] = 0
    local = np.sqrt(np.maximum(np.fft.ifft2(power).real, 0))
    other = local * band_limited(rng, base.shape)
    os.makedirs(folder, exist_ok=True)
    write(folder, "ref", image)
    write(folder, "sec", move(coherence * base + np.sqrt(1 - coherence ** 2) * other, image.shape, offsets, doppler))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--width", type=int, default=896)
    parser.add_argument("--height", type=int, default=1024)
    parser.add_argument("--coherence", type=float, default=0.85)
    parser.add_argument("--fringes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--doppler", type=float, default=0, help="centroid, cycles a line")
    make_pair(**vars(parser.parse_args()))
