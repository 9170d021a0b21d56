# SPDX-License-Identifier: LGPL-2.1-or-later
"""Polynomial texture maps, which archives of museums keep: the light of each pixel as a polynomial of the direction of the lamp.

With (u, v) the x and y of the direction, of length 1 (Malzbender, Gelb, Wolters 2001, equation 5),

    L = a0 u^2 + a1 v^2 + a2 u v + a3 u + a4 v + a5,    colour = L / 255 (red, green, blue)

Written as a .ptm file (PTM_1.2, LRGB), and as info.json with planes, as Relight and OpenLIME read it.
"""
import json
import os

from .command import UNREADABLE, Failure

SCREEN = 2.2  # gamma of the samples, as viewers show them
RELIGHT_ORDER = 5, 3, 4, 0, 2, 1  # 1, u, v, u^2, u v, v^2
QUALITY = 95


def basis(np, directions):
    u, v = directions[:, 0], directions[:, 1]
    return np.stack([u * u, v * v, u * v, u, v, np.ones_like(u)], 1)


class Pictures:
    """The photographs as they are shown: linear, less dark, divided by white and intensity, then for a screen."""

    def __init__(self, np, photos, intensities):
        self.np, self.photos, self.intensities = np, photos, intensities
        self.dark = self.linear(photos.dark) if photos.dark else 0
        self.gain = self.gain_of(photos.white) if photos.white else 1

    def gain_of(self, path):
        """Returns: what photostereo multiplies by, 0 where the white frame measures nothing"""
        np = self.np
        samples = self.photos.samples.integers(np, path)
        is_measured = (samples > 0) & (samples < np.iinfo(samples.dtype).max)
        white = np.maximum(self.linear(path) - self.dark, 0) * (is_measured if samples.ndim == 3 else is_measured[..., None])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(white > 0, white.mean((0, 1), where=white > 0) / white, 0)

    def linear(self, path):
        np = self.np
        values = self.photos.make_linear(self.photos.samples.integers(np, path), path)
        return values if values.ndim == 3 else np.repeat(values[..., None], 3, 2)

    def __iter__(self):
        """Generates float32 [height, width, 3], 255 is white"""
        np = self.np
        for i, (_line, path) in enumerate(self.photos.pairs):
            lit = np.maximum(self.linear(path) - self.dark, 0) * self.gain / self.intensities[i]
            yield 255 * np.minimum(lit, 1).astype(np.float32) ** np.float32(1 / SCREEN)


def fit(np, pictures, directions):
    """Returns: coefficients float32 [6, height, width], colour u8 [height, width, 3]"""
    if np.linalg.matrix_rank(basis(np, directions), 1e-3) < 6:
        raise Failure(UNREADABLE, f"A polynomial texture map has six coefficients, and {len(directions)} lights in these directions"
                                  " do not decide on them. Take six lights or more, at several heights; or leave --rti out.")
    mean = sum(pictures) / len(directions)
    colour = np.rint(255 * mean / np.maximum(mean.max(-1, keepdims=True), 1e-6))
    colour[~mean.any(-1)] = 255
    found = 0
    for weights, picture in zip(np.linalg.pinv(basis(np, directions)).T.astype(np.float32), pictures):
        luminance = 255 * (picture * colour).sum(-1) / (colour ** 2).sum(-1)  # least squares over the three colours
        found = found + weights[:, None, None] * luminance
    return found, colour.astype(np.uint8)


def quantize(np, coefficients):
    """Returns: u8 [6, height, width], scale and bias of each: coefficient = (code - bias) scale. Some pixels in ten thousand are
    clipped, so that a highlight does not cost all others their steps"""
    codes, scales, biases = [], [], []
    for plane in coefficients:
        low, high = np.percentile(plane, (0.02, 99.98))
        low, high = min(float(low), 0), max(float(high), 0)
        scale = (high - low) / 254 or 1.0  # one step is for the rounding of the bias
        bias = round(-low / scale)
        codes.append(np.clip(np.rint(plane / scale + bias), 0, 255).astype(np.uint8))
        scales.append(scale)
        biases.append(bias)
    return np.stack(codes), scales, biases


def write_ptm(np, path, codes, scales, biases, colour):
    """PTM 1.2: a head of lines, then the coefficients of all pixels, then their colours; the lowest line is the first."""
    with open(path, "wb") as file:
        file.write(f"PTM_1.2\nPTM_FORMAT_LRGB\n{colour.shape[1]}\n{colour.shape[0]}\n".encode())
        for numbers in scales, biases:
            file.write((" ".join(f"{number:.7g}" for number in numbers) + "\n").encode())
        file.write(np.ascontiguousarray(np.moveaxis(codes, 0, -1)[::-1]).tobytes())
        file.write(np.ascontiguousarray(colour[::-1]).tobytes())


def write_jpeg(np, made, path, values):
    """values: u8 [height, width, 3]. GStreamer's encoder takes Y'CbCr (JFIF), here with all of its colour samples"""
    height, width = values.shape[:2]
    rgb = values.astype(np.float32)
    luma = rgb @ np.float32([0.299, 0.587, 0.114])
    planes = np.stack([luma, 128 + (rgb[..., 2] - luma) / 1.772, 128 + (rgb[..., 0] - luma) / 1.402])
    rows = np.zeros((3, height, -(-width // 4) * 4), np.uint8)
    rows[..., :width] = np.clip(np.rint(planes), 0, 255)
    raw = made.path("plane.raw")
    rows.tofile(raw)
    made.play(["filesrc", f"location={raw}", f"blocksize={rows.size}", "!", "rawvideoparse", "format=y444", f"width={width}",
               f"height={height}", "!", "jpegenc", f"quality={QUALITY}", "!", "filesink", f"location={path}"])
    os.remove(raw)


def write_relight(np, made, folder, codes, scales, biases, colour, directions):
    """info.json and plane_0.jpg: colour, plane_1.jpg: 1, u, v, plane_2.jpg: u^2, u v, v^2"""
    planes = codes[list(RELIGHT_ORDER)]
    for i, values in enumerate((colour, np.moveaxis(planes[:3], 0, -1), np.moveaxis(planes[3:], 0, -1))):
        write_jpeg(np, made, os.path.join(folder, f"plane_{i}.jpg"), values)
    material = {"scale": [1, 1, 1] + [scales[i] for i in RELIGHT_ORDER], "bias": [0, 0, 0] + [biases[i] / 255 for i in RELIGHT_ORDER],
                "range": [1] * 9}
    info = {"width": colour.shape[1], "height": colour.shape[0], "format": "jpg", "type": "ptm", "colorspace": "lrgb", "nplanes": 9,
            "quality": QUALITY, "lights": [round(float(x), 6) for x in directions.ravel()], "materials": [material]}
    with open(os.path.join(folder, "info.json"), "w", encoding="ascii") as file:
        json.dump(info, file, indent=1)


def write(np, made, photos, folder):
    """The folder rti of a result: object.ptm, and info.json with its planes."""
    chosen = [i for i, _path in photos.pairs]
    directions = photos.lights.directions(np, chosen)
    found, colour = fit(np, Pictures(np, photos, photos.read_intensities(np, chosen)), directions)
    codes, scales, biases = quantize(np, found)
    os.makedirs(folder)
    write_ptm(np, os.path.join(folder, "object.ptm"), codes, scales, biases, colour)
    write_relight(np, made, folder, codes, scales, biases, colour, directions)
    made.report.fact("polynomial texture map", "rti/object.ptm, and rti/info.json for Relight")
