# SPDX-License-Identifier: LGPL-2.1-or-later
"""How bright a surface is drawn."""
from . import chart


def in_words(curve, gamma):
    return "the curve of sRGB" if curve == "srgb" else f"a gamma of {gamma:g}"


def largest(np, values):
    """Returns: the sample that is full scale"""
    return np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1


def linear(np, values, curve, gamma):
    """Returns: samples as linear light, without alpha: 1 is full scale. curve: "srgb", or "gamma" with its exponent"""
    part = values[..., :3] if values.ndim == 3 else values
    part = np.maximum(part.astype(np.float32) / largest(np, values), 0)
    return chart.linear(np, 255 * part).astype(np.float32) if curve == "srgb" else part ** np.float32(gamma)


def strength(np, albedo):
    """albedo: linear samples, or None. Returns: what makes the 99th percentile of the albedo 0.9"""
    if albedo is None:
        return 0.9
    values = albedo[..., :3] if albedo.ndim == 3 else albedo
    values = values[np.isfinite(values) & (values > 0)]
    bright = float(np.percentile(values, 99)) / largest(np, values) if values.size else 0
    return round(0.9 / bright, 4) if bright > 0 else 0.9
