# SPDX-License-Identifier: LGPL-2.1-or-later
"""Maps as tiles of several sizes. A sample of 16 bits is in two pictures, one of its high and one of its low bytes, because
browsers read 8 bits of a picture."""
import base64

from ..report import pictures

SIZE = 512  # pixels of a tile
ROWS = 1024  # that are halved at once, for the sake of memory


class Maps:
    """normals: u16 [height, width, 3], 32768 + 32767 n and 0 where there is none; albedo: u16 [height, width] or
    [height, width, 3]; height: float [height, width], NaN where there is none"""

    def __init__(self, normals, albedo, height):
        self.normals, self.albedo, self.height = normals, albedo, height
        self.size = normals.shape[:2]

    def range(self, np):
        """Returns: the smallest and the largest height"""
        known = self.height[np.isfinite(self.height)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)

    def part(self, rows, columns):
        return Maps(self.normals[rows, columns], self.albedo[rows, columns], self.height[rows, columns])


def mean_of_four(np, values, known):
    """Returns: [height, width, channels] of half the size, the mean of those that are known; their number"""
    values, known = (np.pad(a, [(0, a.shape[0] % 2), (0, a.shape[1] % 2)] + [(0, 0)] * (a.ndim - 2)) for a in (values, known))
    values = np.where(known[..., None], values, 0)
    n = sum(known[i::2, j::2].astype(np.float32) for i in (0, 1) for j in (0, 1))
    total = sum(values[i::2, j::2] for i in (0, 1) for j in (0, 1))
    return total / np.maximum(n, 1)[..., None], n


def half_rows(np, maps):
    there = maps.normals.any(-1)
    mean, n = mean_of_four(np, maps.normals.astype(np.float32) - 32768, there)
    length = np.linalg.norm(mean, axis=-1, keepdims=True)
    normals = np.where((n[..., None] > 0) & (length > 0), np.rint(32768 + 32767 * mean / np.maximum(length, 1)), 0)
    albedo = maps.albedo.reshape(*maps.size, -1).astype(np.float32)
    albedo = np.rint(mean_of_four(np, albedo, there)[0]).reshape(*n.shape, *maps.albedo.shape[2:])
    height, n = mean_of_four(np, maps.height[..., None].astype(np.float64), np.isfinite(maps.height))
    return normals.astype(np.uint16), albedo.astype(np.uint16), np.where(n > 0, height[..., 0], np.nan).astype(np.float32)


def pyramid(np, maps):
    """Generates the maps, and the same of half the size, until a tile holds them."""
    while True:
        yield maps
        if max(maps.size) <= SIZE:
            return
        parts = [half_rows(np, maps.part(slice(i, i + ROWS), slice(None))) for i in range(0, maps.size[0], ROWS)]
        maps = Maps(*(np.concatenate(part) for part in zip(*parts)))


def as_url(np, values):
    return "data:image/png;base64," + base64.b64encode(pictures.png(np, values, delta=True)).decode()


def bytes_apart(np, values):
    """Returns: URLs of the high and the low bytes. One channel has both in one picture, for browsers convert grey ones"""
    if values.ndim == 3:
        return [as_url(np, (values >> 8).astype(np.uint8)), as_url(np, (values & 255).astype(np.uint8))]
    return [as_url(np, np.dstack([values >> 8, values & 255, np.zeros_like(values)]).astype(np.uint8))]


def height_code(np, height, low, high):
    """Returns: u16, 1 to 65535 from low to high, 0 where there is none"""
    known = np.isfinite(height)
    place = (np.where(known, height, low) - low) / ((high - low) or 1)
    return np.where(known, 1 + np.rint(65534 * np.clip(place, 0, 1)), 0).astype(np.uint16)


def cut(np, maps, low, high):
    """Generates (row, column, {name of the map: URLs})"""
    for row in range(-(-maps.size[0] // SIZE)):
        for column in range(-(-maps.size[1] // SIZE)):
            part = maps.part(slice(row * SIZE, (row + 1) * SIZE), slice(column * SIZE, (column + 1) * SIZE))
            yield row, column, {"normals": bytes_apart(np, part.normals), "albedo": bytes_apart(np, part.albedo),
                                "height": bytes_apart(np, height_code(np, part.height, low, high))}
