# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of mirror spheres: their outlines and the highlights that were found, drawn into photographs for a report."""
import os

from . import photographs

TILE, LONGEST, BORDER = 128, 900, 0.1  # pixels of a crop and of the longer side of a picture; part of the sphere around it
OUTLINE, CROSS = (251, 154, 99), (80, 190, 255)


def grey(path):
    """Returns: the largest of the channels"""
    values = photographs.read(path)
    return values[..., :3].max(-1) if values.ndim == 3 else values


def brightest(np, files):
    """All photographs in one: of each pixel the brightest, so that all highlights are seen."""
    shown = None
    for path in files:
        shown = grey(path) if shown is None else np.maximum(shown, grey(path))
    return shown


def roots(np, files):
    """All photographs in one, for what is dark in all of them: the mean of the square roots, in which photon noise is even and no highlight
    outshines a rim of two grey levels."""
    total = 0
    for path in files:
        total = total + np.sqrt(np.maximum(np.nan_to_num(grey(path).astype(np.float64)), 0))
    return total / len(files)


class View:
    """A part of a photograph, of which each pixel is the brightest of those it stands for: a highlight may be smaller than one."""

    def __init__(self, np, values, left, top, width, height, scale):
        """left, top: of the first pixel shown, in pixels of the photograph; width, height: of the view; scale: its pixels for each of those"""
        self.np, self.left, self.top, self.scale = np, left, top, scale
        rows = np.clip(np.floor(top + 0.5 + np.arange(height + 1) / scale), 0, values.shape[0] - 1).astype(int)
        columns = np.clip(np.floor(left + 0.5 + np.arange(width + 1) / scale), 0, values.shape[1] - 1).astype(int)
        part = values[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1].astype(np.float32)
        part = np.maximum.reduceat(np.maximum.reduceat(part, rows[:-1] - rows[0], 0), columns[:-1] - columns[0], 1)
        part = np.nan_to_num(np.maximum(part, 0), posinf=0)
        self.rgb = np.repeat((255 * (part / max(part.max(), 1e-9)) ** 0.45).astype(np.uint8)[..., None], 3, 2)
        self.y, self.x = np.mgrid[:height, :width]

    def at(self, x, y):
        return (x - self.left) * self.scale - 0.5, (y - self.top) * self.scale - 0.5

    def outline(self, circle):
        x, y = self.at(*circle[:2])
        self.rgb[abs(self.np.hypot(self.x - x, self.y - y) - circle[2] * self.scale) < 0.75] = OUTLINE

    def cross(self, light):
        """Four arms that leave the highlight free."""
        x, y = self.at(light["highlight-x"], light["highlight-y"])
        across, down = abs(self.x - x), abs(self.y - y)
        near, far = self.np.minimum(across, down), self.np.maximum(across, down)
        self.rgb[(near <= 0.5) & (far > 5) & (far < 12)] = CROSS


def whole(np, files, found):
    """Returns: all photographs in one, with the outlines: u8 [height, width, 3]"""
    values = brightest(np, files)
    scale = min(1, LONGEST / max(values.shape))
    view = View(np, values, -0.5, -0.5, round(values.shape[1] * scale), round(values.shape[0] * scale), scale)
    for sphere in found:
        view.outline(sphere.sphere)
    return view.rgb


def crops(np, files, found, odd):
    """found: spheres with `sphere` and, for each of the files, a light in `lights`; odd: (photograph, what is wrong with it).
    Returns: {caption: u8 [height, width, 3]} of each photograph, those left out at the end"""
    shown = {}
    for path, lights, wrong in [(path, [sphere.lights[i] for sphere in found], "") for i, path in enumerate(files)] + [
            (path, None, what) for path, what in odd]:
        values, parts = grey(path), []
        for i, sphere in enumerate(found):
            x, y, radius = sphere.sphere
            reach = (1 + BORDER) * radius
            view = View(np, values, x - reach, y - reach, TILE, TILE, TILE / (2 * reach))
            view.outline(sphere.sphere)
            if lights:
                view.cross(lights[i])
            parts.append(view.rgb)
        name = os.path.basename(path)
        shown[f"{name}: left out, {wrong}" if wrong else name] = np.concatenate(parts, 1)
    return shown
