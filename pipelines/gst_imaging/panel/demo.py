# SPDX-License-Identifier: LGPL-2.1-or-later
"""Small data that moves, for ready pipelines without a camera. Made once, into the cache of the user: the same files in every
run, so that `gst-imaging verify` can play a recording of them again."""
import os
import time

import numpy as np

from ..command import NOT_WRITTEN, Failure

VERSION = 4  # of what is made


def save(path, array):
    """Another panel never sees half of it."""
    with open(f"{path}.{os.getpid()}", "wb") as file:
        np.save(file, array)
    os.replace(file.name, path)


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
    save(path, frames)


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
    save(path, frames)


def oct(path):
    """Spectra of four volumes of 32 B-scans, u16 [128, 128, 512], 810 to 870 nm: layers under a dome that beats, and a bright vessel
    that winds through them. With the calibration of the camera."""
    wavelength = np.linspace(0.81, 0.87, 512, dtype=np.float32)  # um
    envelope = np.exp(-((np.arange(512, dtype=np.float32) - 256) / 150) ** 2)
    rng = np.random.RandomState(2)
    lines = np.arange(128)
    layers = ((0, 500), (60, 250), (95, 350), (190, 180), (260, 450), (285, 300))  # um below the first, strength
    frames = np.empty((128, 128, 512), np.uint16)
    for i in range(128):
        volume, slice_ = divmod(i, 32)
        beat = np.sin(2 * np.pi * (volume + slice_ / 32) / 4)
        top = 420 - (120 + 25 * beat) * np.exp(-((lines - 64) / 34) ** 2 - ((slice_ - 16) / 10) ** 2)
        vessel = np.exp(-((lines - 64 - 30 * np.sin(slice_ / 5)) / 5) ** 2)
        spectra = np.repeat(envelope[None], 128, 0) * 8000
        for below, strength in layers:
            strength = strength * (1 - 0.8 * vessel) if below > 95 else strength + 1500 * vessel if below == 95 else strength
            for grain in range(3):
                depth = top + below + 9 * grain + rng.uniform(-3, 3, 128)  # optical, um
                amplitude = strength * np.sqrt(0.2 + rng.exponential(0.4, 128))
                phase = np.outer(depth, 4 * np.pi / wavelength).astype(np.float32) + rng.uniform(0, 6.28, (128, 1)).astype(np.float32)
                spectra += envelope * amplitude[:, None].astype(np.float32) * np.cos(phase)
        frames[i] = np.clip(np.rint(spectra + 1000 + 30 * rng.standard_normal(spectra.shape)), 0, 65535)
    with open(path[:-4] + "-camera.ini", "w", encoding="ascii") as file:
        file.write("[camera]\nlambda-first=810\nlambda-last=870\n")
    save(path, frames)


def photostereo(path):
    """A glazed medal with a rosette in relief under 16 lights, and their file: u8 [16, 240, 320]."""
    y, x = np.mgrid[:240, :320].astype(np.float32)
    u, v = (x - 159.5) / 105, (119.5 - y) / 105
    r, turn = np.hypot(u, v), np.arctan2(v, u)

    def step(at, width=0.02):
        return 0.5 + 0.5 * np.tanh((at - r) / width)

    petals = 0.62 + 0.2 * np.cos(8 * turn)
    height = 0.35 * np.sqrt(np.clip(1.5 - r ** 2, 0.2, None)) * step(1, 0.03) + 0.05 * step(0.97) - 0.05 * step(0.9)
    height += 0.07 * step(petals, 0.03) + 0.05 * step(0.22, 0.03) + 0.008 * np.cos(24 * turn) * step(0.87) * (1 - step(petals))
    gy, gx = np.gradient(height * 105)
    normal = np.stack([-gx, gy, np.ones_like(gx)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    albedo = 0.5 + 0.35 * step(petals, 0.01) - 0.25 * step(0.2, 0.01) - 0.1 * (1 - step(1, 0.01))
    frames, lights = [], []
    for i in range(16):
        slope, turn = np.radians(25 + 20 * (i % 2)), 2 * np.pi * i / 16
        light = np.array([np.sin(slope) * np.cos(turn), np.sin(slope) * np.sin(turn), np.cos(slope)])
        lights.append(light)
        half = (light + [0, 0, 1]) / np.linalg.norm(light + [0, 0, 1])
        picture = 200 * albedo * np.clip(normal @ light, 0, None) + 50 * np.clip(normal @ half, 0, None) ** 80
        frames.append(np.clip(np.rint(picture), 0, 255))
    np.savetxt(path[:-4] + "-lights.txt", lights)
    save(path, np.array(frames, np.uint8))


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
    # a river, fields and a ridge: what reflects differs, and the speckle stays
    y, x = np.mgrid[:512, :512]
    hill = np.exp(-((x - 256.0) ** 2 + (y - 256.0) ** 2) / 8000)
    field = rng.uniform(0.5, 1.2, (9, 9))[((y + x / 3) // 76).astype(int) % 9, ((x - y / 4) // 70).astype(int) % 9]
    river = np.exp(-((x - 110 - 60 * np.sin(y / 90) - y / 8) / 14) ** 2)
    slope = 1 + 0.9 * np.gradient(hill, axis=1) * 60  # the side that faces the radar is bright
    image *= field * (1 - 0.85 * river) * np.clip(slope, 0.3, 2)
    image /= np.sqrt((np.abs(image) ** 2).mean())
    moved = np.fft.ifft2(np.fft.fft2(image) * np.exp(-2j * np.pi * (3.25 * fx - 2.5 * fy)))
    further = np.fft.ifft2(np.fft.fft2(image) * np.exp(-2j * np.pi * (4 * fx - 1.5 * fy)))
    write_slc(path[:-4] + "-ref", image)
    write_slc(path[:-4] + "-sec", np.where(hill > 0.5, further, moved) * np.exp(-6j * np.pi * hill))
    save(path, hill)


MAKERS = {"sharpen": sharpen, "ao": ao, "oct": oct, "photostereo": photostereo, "insar": insar}


def beside(name, what):
    """Returns: the path of a file that is made with the data"""
    return f"{make(name)[:-4]}-{what}"


def folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.path.join(base, "gst-imaging", "panel")
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise Failure(NOT_WRITTEN, f"The folder {place} cannot be made: {error.strerror}. XDG_CACHE_HOME names another one.") from error
    return place


def new_file(name):
    """Returns: the path of a file that is not there yet. It stays: `gst-imaging verify` plays recordings with it"""
    place = folder()
    return os.path.join(place, f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{name}")


def make(name):
    """Returns: the path of the data, which is made where it is not there yet"""
    path = os.path.join(folder(), f"{name}-{VERSION}.npy")
    if not os.path.exists(path):
        try:
            MAKERS[name](path)
        except OSError as error:
            raise Failure(NOT_WRITTEN, f"The data of the demo cannot be written to {folder()}: {error.strerror}.") from error
    return path
