# SPDX-License-Identifier: LGPL-2.1-or-later
"""Small data that moves, for ready pipelines without a camera. Made once, into the cache of the user: the same files in every
run, so that `gst-imaging verify` can play a recording of them again."""
import os

import numpy as np

from ..command import NOT_WRITTEN, Failure

VERSION = 1  # of what is made


def sharpen(path):
    """A slanted grating and blurred discs that move: u8 [50, 240, 320]."""
    y, x = np.mgrid[:240, :320].astype(np.float32)
    frames = np.empty((50, 240, 320), np.uint8)
    for i in range(50):
        phase = 2 * np.pi * i / 50
        picture = 90 + 30 * np.sin(0.15 * x + 0.05 * y + phase)
        for k in range(4):
            cx, cy = 160 + 90 * np.cos(phase + k * np.pi / 2), 120 + 60 * np.sin(phase + k * np.pi / 2)
            picture += 50 - 50 * np.tanh((np.hypot(x - cx, y - cy) - 22) / (3 + 1.6 * k))  # a blurred edge
        frames[i] = np.clip(np.rint(picture), 0, 255)
    np.save(path, frames)


def ao(path):
    """Spots of 12 x 8 lenslets of 20 pixels; the wavefront tilts and defocuses: u16 [50, 160, 240]."""
    y, x = np.mgrid[:160, :240].astype(np.float32)
    column, row = np.meshgrid(np.arange(12), np.arange(8))
    rng = np.random.RandomState(1)
    frames = np.empty((50, 160, 240), np.uint16)
    for i in range(50):
        phase = 2 * np.pi * i / 50
        u, v = (column - 5.5) / 6, (row - 3.5) / 6
        dx = 1.5 * np.cos(phase) + 2.2 * u * np.sin(phase) + v * np.sin(2 * phase)
        dy = 1.2 * np.sin(phase) + 2.2 * v * np.sin(phase) + u * np.sin(2 * phase)
        picture = 100 + 5 * rng.standard_normal(x.shape)
        for cx, cy in zip((20 * column + 9.5 + dx).ravel(), (20 * row + 9.5 + dy).ravel()):
            left, top = int(cx) - 9, int(cy) - 9
            part = np.s_[max(top, 0):top + 19, max(left, 0):left + 19]
            picture[part] += 3000 * np.exp(-((x[part] - cx) ** 2 + (y[part] - cy) ** 2) / 5)
        frames[i] = np.clip(np.rint(picture), 0, 4095)
    np.save(path, frames)


def oct(path):
    """Spectra of layers under a dome that rises and falls: u16 [48, 96, 512], a B-scan a frame."""
    k = np.arange(512, dtype=np.float32)
    envelope = np.exp(-((k - 256) / 150) ** 2)
    rng = np.random.RandomState(2)
    frames = np.empty((48, 96, 512), np.uint16)
    lines = np.arange(96)
    speckle = rng.uniform(0, 2 * np.pi, (4, 3, 96)), rng.standard_normal((4, 3, 96)) ** 2
    for i in range(48):
        dome = 40 + 25 * np.exp(-((lines - 48) / 25) ** 2) * np.sin(np.pi * i / 47)
        spectra = np.repeat(envelope[None], 96, 0) * 8000
        for layer, strength in enumerate((900, 400, 600, 300)):
            for grain in range(3):
                depth = (90 - dome) + 28 * layer + 3 * grain
                phase = 2 * np.pi * np.outer(depth, k) / 512 + speckle[0][layer, grain][:, None] + 0.7 * i
                spectra += envelope * strength * speckle[1][layer, grain][:, None] ** 0.5 * np.cos(phase)
        frames[i] = np.clip(np.rint(spectra + 1000 + 30 * rng.standard_normal(spectra.shape)), 0, 65535)
    np.save(path, frames)


def photostereo(path):
    """A glazed bump with ripples under 16 lights, and their file: u8 [16, 160, 200]."""
    y, x = np.mgrid[:160, :200].astype(np.float32)
    u, v = (x - 99.5) / 70, (79.5 - y) / 70
    r2 = u ** 2 + v ** 2
    height = np.sqrt(np.clip(1.6 - r2, 0.05, None)) + 0.03 * np.cos(14 * np.sqrt(r2))
    gy, gx = np.gradient(height * 70)
    normal = np.stack([-gx, gy, np.ones_like(gx)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    albedo = 0.6 + 0.3 * np.sign(np.sin(6 * np.arctan2(v, u)))
    frames, lights = [], []
    for i in range(16):
        slope, turn = np.radians(25 + 20 * (i % 2)), 2 * np.pi * i / 16
        light = np.array([np.sin(slope) * np.cos(turn), np.sin(slope) * np.sin(turn), np.cos(slope)])
        lights.append(light)
        half = (light + [0, 0, 1]) / np.linalg.norm(light + [0, 0, 1])
        picture = 190 * albedo * np.clip(normal @ light, 0, None) + 60 * np.clip(normal @ half, 0, None) ** 60
        frames.append(np.clip(np.rint(picture), 0, 255))
    np.savetxt(path[:-4] + "-lights.txt", lights)
    np.save(path, np.array(frames, np.uint8))


def write_slc(path, image):
    samples = np.stack([image.real, image.imag], -1) * 300
    np.rint(np.clip(samples, -32768, 32767)).astype("<i2").tofile(path + ".SLC")
    height, width = image.shape
    with open(path + ".PRM", "w", encoding="ascii") as file:
        file.write(f"SLC_file = {os.path.basename(path)}.SLC\nnum_rng_bins = {width}\nnum_patches = 1\n"
                   f"num_valid_az = {height}\nPRF = 2000\nrshift = 0\nashift = 0\n")


def insar(path):
    """Two images of speckle of 512 x 512; the second is shifted, more in the middle than at the edges."""
    rng = np.random.RandomState(3)
    spectrum = rng.standard_normal((512, 512)) + 1j * rng.standard_normal((512, 512))
    fy, fx = np.meshgrid(np.fft.fftfreq(512), np.fft.fftfreq(512), indexing="ij")
    spectrum[(abs(fx) > 0.35) | (abs(fy) > 0.35)] = 0
    image = np.fft.ifft2(spectrum)
    image /= np.sqrt((np.abs(image) ** 2).mean())
    moved = np.fft.ifft2(np.fft.fft2(image) * np.exp(-2j * np.pi * (3.25 * fx - 2.5 * fy)))
    further = np.fft.ifft2(np.fft.fft2(image) * np.exp(-2j * np.pi * (4 * fx - 1.5 * fy)))
    y, x = np.mgrid[:512, :512]
    hill = np.exp(-((x - 256.0) ** 2 + (y - 256.0) ** 2) / 8000)
    write_slc(path[:-4] + "-ref", image)
    write_slc(path[:-4] + "-sec", np.where(hill > 0.5, further, moved) * np.exp(-6j * np.pi * hill))
    np.save(path, hill)


MAKERS = {"sharpen": sharpen, "ao": ao, "oct": oct, "photostereo": photostereo, "insar": insar}


def make(name):
    """Returns: the path of the data, which is made where it is not there yet"""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(base, "gst-imaging", "panel")
    path = os.path.join(folder, f"{name}-{VERSION}.npy")
    if not os.path.exists(path):
        new = os.path.join(folder, f"{name}-{VERSION}.npy")
        try:
            os.makedirs(folder, exist_ok=True)
            MAKERS[name](new)
        except OSError as error:
            raise Failure(NOT_WRITTEN, f"The data of the demo cannot be written to {folder}: {error.strerror}.") from error
    return path
