#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Renders pictures of a medal, each lit by one lamp of a dome, for photostereo.

medal.py NAME [LIGHTS [SIZE [BANDS]]] writes NAME.npy, u8 [LIGHTS, SIZE, SIZE, 3], or
with BANDS, all of a lamp in turn, [LIGHTS * BANDS, SIZE, SIZE];
NAME-lights.txt, positions in mm; NAME-mask.npy; and what was rendered:
NAME-truth.npy, normals [SIZE, SIZE, 3], and NAME-truth-height.npy in mm.
40 lamps of 400 pixels unless said otherwise; the picture is 100 mm wide. The
metal has highlights, and turns away from some lamps; no shadow is cast. The
lamps fall off with the square of the distance, and the camera has noise. BANDS
go from violet to infrared, where a drawing shows through the enamel.
"""
import sys

import numpy as np

WIDTH, RADIUS, RIM = 100.0, 300.0, 42.0  # mm: picture, dome, medal
NOISE = 1.5  # grey levels


def shape(x, y):
    """Height in mm: a shallow dome, in it a rosette, around it pearls."""
    r, phi = np.hypot(x, y), np.arctan2(y, x)
    dome = 6 * (1 - (r / 46) ** 2)
    petals = 2.2 * np.exp(-((r - 17) / 8) ** 2) * (1 + np.cos(8 * phi)) / 2
    middle = 2.5 * np.exp(-(r / 4.5) ** 2)
    ripples = 0.25 * np.sin(2.2 * r) * np.exp(-((r - 27) / 4) ** 2)
    turn = 2 * np.pi / 36
    along = 36 * ((phi + np.pi) / turn % 1 - 0.5) * turn
    pearls = 1.6 * np.exp(-((r - 35.5) ** 2 + along ** 2 / 1.2) / 3.2)
    ring = 1.2 / (1 + np.exp(-(r - 39) * 3))
    return dome + petals + middle + ripples + pearls + ring


def paint(x, y):
    """Albedo: bronze, with petals of blue enamel."""
    r, phi = np.hypot(x, y), np.arctan2(y, x)
    enamel = (np.cos(8 * phi) < -0.2) & (r > 7) & (r < 25)
    return np.where(enamel[..., None], [0.16, 0.34, 0.62], [0.72, 0.52, 0.25])


def spectrum(x, y, bands):
    """Albedo in each band: bronze, enamel, and charcoal under it."""
    r, phi = np.hypot(x, y), np.arctan2(y, x)
    enamel = (np.cos(8 * phi) < -0.2) & (r > 7) & (r < 25)
    charcoal = enamel & (np.abs(r - 17 - 4 * np.sin(4 * phi)) < 1.2)
    t = np.arange(bands) / max(bands - 1, 1)
    bronze = 0.12 + 0.65 / (1 + np.exp(-9 * (t - 0.45)))
    blue = 0.12 + 0.5 * np.exp(-((t - 0.15) / 0.15) ** 2) + 0.5 / (1 + np.exp(-25 * (t - 0.8)))
    seen = np.where(charcoal[..., None], 0.75 / (1 + np.exp(-25 * (t - 0.8))), 0)
    return np.where(enamel[..., None], blue * (1 - seen), bronze)


def main(name, n_lights=40, size=400, bands=0):
    mm = WIDTH / size
    x, y = np.meshgrid(np.arange(size) - (size - 1) / 2, (size - 1) / 2 - np.arange(size))
    x, y = x * mm, y * mm
    height = shape(x, y)
    # of the formula, not of the pixels
    step = 1e-4
    normal = np.dstack([(shape(x - step, y) - shape(x + step, y)) / (2 * step),
                        (shape(x, y - step) - shape(x, y + step)) / (2 * step),
                        np.ones_like(x)])
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    mask = np.hypot(x, y) < RIM
    albedo = spectrum(x, y, bands) if bands else paint(x, y)
    lamp = np.arange(n_lights)
    # any number of them, in order, is spread over the dome
    z = 1 - 0.75 * ((lamp + 0.5) * 0.6180339887 % 1)
    turn = 2 * np.pi * (lamp * 0.7548776662 % 1)
    place = RADIUS * np.stack([np.sqrt(1 - z * z) * np.cos(turn),
                               np.sqrt(1 - z * z) * np.sin(turn), z], 1)
    random = np.random.default_rng(1)
    frames = np.empty((n_lights, size, size, albedo.shape[2]), np.uint8)
    for frame, p in zip(frames, place):
        way = p - np.dstack([x, y, np.zeros_like(x)])
        far = np.linalg.norm(way, axis=2, keepdims=True)
        lit = (normal * way).sum(2, keepdims=True) / far ** 3 * RADIUS ** 2
        half = way / far + [0, 0, 1]
        half /= np.linalg.norm(half, axis=2, keepdims=True)
        gloss = 0.6 * np.maximum((normal * half).sum(2, keepdims=True), 0) ** 60 * (lit > 0)
        light = (0.9 * albedo * np.maximum(lit, 0) + gloss) * mask[..., None]
        frame[:] = np.clip(np.rint(255 * light + random.normal(0, NOISE, light.shape)), 0, 255)
    if bands:
        frames = np.moveaxis(frames, 3, 1).reshape(-1, size, size)
    np.save(name + ".npy", frames)
    np.save(name + "-mask.npy", mask.astype(np.uint8))
    np.save(name + "-truth.npy", normal)
    np.save(name + "-truth-height.npy", height)
    np.savetxt(name + "-lights.txt", place, "%.4f")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
