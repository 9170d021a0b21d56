# SPDX-License-Identifier: LGPL-2.1-or-later
"""How bright each lamp of a rig is, per colour, from photographs of a white card or of a matte sphere, one under each lamp."""
import os

from . import flatfield, library, photographs, shading
from .command import UNREADABLE, Failure, absent

DARKEST, STEEPEST, RIM = 0.02, 0.1, 0.95  # of full scale; of the light vector; of the radius of the sphere


def light_vectors(np, vector, mean, points):
    """As photostereo's defaults: a direction, or R^2 v / |v|^3 at points [..., 3] in mm. mean: R, None for directions"""
    if mean is None:
        return vector / np.linalg.norm(vector)
    way = vector - points
    return mean ** 2 * way / np.linalg.norm(way, axis=-1, keepdims=True) ** 3


def mean_distance(np, vectors):
    """Returns: of lamps in mm; None of directions, which have the length 1 as in a light file of these vectors"""
    text = "".join(f"{x!r} {y!r} {z!r}\n" for x, y, z in vectors.tolist())
    are_directions = library.parse_lights(text.encode(), "lights.lp")[2]
    return None if are_directions else float(np.linalg.norm(vectors, axis=1).mean())


class Card:
    """A white card on z = 0, which fills the picture."""

    name = "white card"

    def __init__(self, np, vectors, mean, size, mm):
        self.np, self.vectors, self.mean, self.size, self.mm = np, vectors, mean, size, mm

    def shade(self, i):
        """Returns: what a white surface shows under lamp i, [height, width]"""
        return flatfield.sheet(self.np, self.vectors[i], self.mean, self.size, self.mm) * self.np.ones(self.size)


class Sphere:
    """A matte sphere that stands on z = 0; 0 outside and where the lamp does not shine."""

    name = "matte sphere"

    def __init__(self, np, vectors, mean, size, mm, circle, camera=None):
        """camera: a Pinhole; None for parallel rays"""
        column, row, radius = circle
        y, x = np.mgrid[:size[0], :size[1]]
        self.np, self.vectors, self.mean = np, vectors, mean
        if camera:
            self.points, self.normal, way, meets = camera.surface(circle, x, y)
            self.inside = meets & ((self.normal * way).sum(-1) < -(1 - RIM ** 2) ** 0.5)
            return
        normal = np.dstack([(x - column) / radius, (row - y) / radius, np.zeros(size)])
        r2 = (normal ** 2).sum(-1)
        normal[..., 2] = np.sqrt(np.maximum(1 - r2, 0))
        middle = mm * np.array([column - (size[1] - 1) / 2, (size[0] - 1) / 2 - row, radius])
        self.normal, self.inside = normal, r2 < RIM ** 2
        self.points = middle + mm * radius * normal

    def shade(self, i):
        vector = light_vectors(self.np, self.vectors[i], self.mean, self.points)
        return self.np.where(self.inside, self.np.maximum((self.normal * vector).sum(-1), 0), 0)


def fit(np, values, shade):
    """values: [height, width, colours], linear, NaN where clipped. Returns: the intensity of each colour, and the rms of what
    it leaves, as a part of the mean"""
    intensity, left = [], []
    for colour in np.moveaxis(values, -1, 0):
        good = (shade > STEEPEST * shade.max()) & np.isfinite(colour) & (colour > DARKEST)
        if good.sum() < 100:
            return None, None
        v, p = colour[good], shade[good]
        intensity.append(float((v * p).sum() / (p * p).sum()))
        left.append(np.sqrt(np.mean((v - intensity[-1] * p) ** 2)) / v.mean())
    return intensity, float(np.sqrt(np.mean(np.square(left))))


def measure(np, surface, files, samples, curve):
    """files: a photograph of the surface under each lamp; curve: of curves.choose(). Returns: intensities [lamps, 3], their mean 1, and what each fit leaves"""
    intensities, left = [], []
    for i, path in enumerate(files):
        values = samples.convert(np, path)
        values = values[..., :3] if values.ndim == 3 and values.shape[2] >= 3 else values.reshape(*values.shape[:2], -1)[..., :1]
        linear = np.where(values >= np.iinfo(values.dtype).max, np.nan, shading.linear(np, values, *curve))
        shade = surface.shade(i)
        if linear.shape[:2] != shade.shape:
            raise Failure(UNREADABLE, f"{path} is {linear.shape[1]} x {linear.shape[0]}, and the other photographs are {shade.shape[1]} x"
                                      f" {shade.shape[0]}.")
        intensity, rest = fit(np, linear, shade)
        if intensity is None:
            raise Failure(UNREADABLE, f"{path} does not show the {surface.name}: fewer than 100 of its pixels are lit and not clipped.")
        intensities.append(intensity if len(intensity) == 3 else 3 * intensity)
        left.append(rest)
    intensities = np.array(intensities)
    return intensities / intensities.mean(), np.array(left)


def files_for(folder, names, extension):
    """Returns: the photograph of each name in another folder, whatever its case and extension"""
    if not os.path.isdir(folder):
        raise absent(folder, f"{folder} is no folder.")
    files, beside = photographs.files_of(folder, extension)
    by_stem = {}
    for path in [*files, *sum(beside.values(), [])]:
        by_stem.setdefault(photographs.stem(path), []).append(path)
    lacking = [os.path.basename(name) for name in names if photographs.stem(name) not in by_stem]
    if lacking:
        raise Failure(UNREADABLE, f"{folder} has no photograph for {len(lacking)} of {len(names)} lights: {photographs.listed(lacking)}."
                                  " Each has to have one, of the same name.")
    return [photographs.choose_one([os.path.basename(name)], by_stem) for name in names]
