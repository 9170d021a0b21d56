# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the kernels of OCTproZ 1.8.0 compute (July 2025), in NumPy. Its manual has the other sign of the dispersion."""
import numpy as np

SEGMENTS = 9


def polynomial(settings, name, x):
    return sum(settings.get(f"{name}{i}", 0) * x ** i for i in range(4))


def curve(settings, n):
    """The sample of each wavenumber, kept away from the last two"""
    return np.clip(polynomial(settings, "resampling_c", np.linspace(0, 1, n)), 0, n - 3)


def resampled(x, at):
    """Catmull-Rom"""
    n = at.astype(int)
    t = at - n
    before, here, after, last = (x[..., i] for i in (abs(n - 1), n, n + 1, n + 2))
    return here + t / 2 * (after - before + t * (2 * before - 5 * here + 4 * after - last + t * (3 * (here - after) + last - before)))


def window(kind, centre, fill, n):
    """kind: the number of a window in its list"""
    width, centre = (int(np.float32(part) * np.float32(n)) for part in (fill, centre))
    i = np.arange(n)
    if kind == 1:
        return np.exp(-10 * ((i - centre) / (n - 1) / fill) ** 2)
    x = (i - (centre - width // 2)) / (width - 1)
    cosines = [np.cos(2 * np.pi * k * x) for k in range(5)]
    values = {0: 0.5 - 0.5 * cosines[1], 2: np.sin(np.pi * x), 3: np.sinc(2 * x - 1), 4: np.ones(n),
              5: np.dot((0.215578948, -0.416631580, 0.277263158, -0.083578947, 0.006947368), cosines)}[kind]
    return np.where((x < 0.0001) | (x > 0.999), 0, values)


def image(spectra, settings):
    """spectra: [B-scans, lines, samples] of one buffer. Returns: its picture [B-scans, lines, depths] with 0 black and 1 white, and Z"""
    x = spectra.astype(float)
    n = x.shape[-1]
    if settings.get("bitshift"):
        x = np.floor(x / 16)
    if settings.get("resampling"):
        x = resampled(x, curve(settings, n))
    if settings.get("windowing"):
        x = x * window(*(settings["window_" + name] for name in ("type", "center_position", "fill_factor")), n)
    if settings.get("dispersion_compensation"):
        x = x * np.exp(1j * polynomial(settings, "dispersion_compensation_d", np.linspace(0, 1, n)))
    z = n * np.fft.ifft(x)[..., :n // 2]
    if settings.get("fixed_pattern_removal"):
        lines = z[:settings.get("fixed_pattern_removal_bscans", 1)].reshape(-1, n // 2)
        parts = lines[:len(lines) // SEGMENTS * SEGMENTS].reshape(SEGMENTS, -1, n // 2)
        best = parts.var(1).argmin(0)
        z = z - parts.mean(1)[best, np.arange(n // 2)]
    low, high = settings.get("min", 30), settings.get("max", 100)
    level = 10 * np.log10(abs(z) ** 2 / (n / 2) + 1e-30)
    grey = settings.get("coeff", 1) * ((level - low) / (high - low) + settings.get("addend", 0))
    if settings.get("flip_bscans"):
        grey[::2], z[::2] = grey[::2, ::-1], z[::2, ::-1].copy()
    return grey, z
