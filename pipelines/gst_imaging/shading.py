# SPDX-License-Identifier: LGPL-2.1-or-later
"""How bright a surface is drawn."""
from . import photographs


def strength(np, albedo):
    """Returns: what makes the 99th percentile of the albedo 0.9"""
    if not albedo:
        return 0.9
    values = photographs.read(albedo)
    most = np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1
    values = values[..., :3] if values.ndim == 3 else values
    values = values[np.isfinite(values) & (values > 0)]
    bright = float(np.percentile(values, 99)) / most if values.size else 0
    return round(0.9 / bright, 4) if bright > 0 else 0.9
