# SPDX-License-Identifier: LGPL-2.1-or-later
"""One photograph of a white sheet for each light. A photograph divided by it has neither the pattern of the lamp nor the fall-off of
the lens. The sheet is lit at an angle itself, so the quotient is multiplied by what a sheet at z = 0 would show: the z of the light
vector, of the model that photostereo takes. An albedo of 1 is then that of the sheet."""
import os

from . import photographs
from .command import UNREADABLE, WRONG_USE, Failure

# of photostereo, that would change the light vector; here it is that of the defaults
GEOMETRY = ("light-model", "light-units", "led-lobe", "plane-z", "centre-x", "centre-y")
MAX_UNMEASURED = 0.5  # of the pixels of the mask, as of photostereo's white frame


def sheet(np, vector, mean, size, mm_per_pixel):
    """mean: distance R of the lamps, None of directions. Returns: what a sheet shows, [height, width] or a number: R^2 z / r^3, of
    directions z"""
    if mean is None:
        return vector[2] / np.linalg.norm(vector)
    y, x = np.mgrid[:size[0], :size[1]]
    x = vector[0] - (x - (size[1] - 1) / 2) * mm_per_pixel
    y = vector[1] - ((size[0] - 1) / 2 - y) * mm_per_pixel
    return mean ** 2 * vector[2] / (x * x + y * y + vector[2] ** 2) ** 1.5


class FlatFields:
    """Has the photographs divided by their white sheets in the place of Samples."""

    are_plain = False

    def __init__(self, photos, options, linear, warn):
        for word in options.set:
            if word.split("=")[0] in GEOMETRY:
                raise Failure(WRONG_USE, f"--set {word} changes how the lamps shine, which --white with a folder takes from the"
                                         " defaults: leave one of them out.")
        self.linear, self.mm = linear, options.mm_per_pixel
        files, beside = photographs.files_of(options.white, options.extension, warn)
        files += [path for name, paths in beside.items() if name != "dark" for path in paths]
        pairs = dict(photographs.match(photos.lights, files, options.by_order, warn)) if files else {}
        lacking = [os.path.basename(path) for i, path in photos.pairs if i not in pairs]
        if lacking:
            raise Failure(UNREADABLE, f"{options.white} has no white sheet for {len(lacking)} of {len(photos.pairs)} photographs:"
                                      f" {photographs.listed(lacking)}. Each has to have one, of the same name.")
        self.sheet_of = pairs
        self.take(photos)

    def take(self, photos):
        """The photographs to divide."""
        self.photos, self.raw = photos, photos.samples
        self.white = [self.sheet_of[i] for i, _path in photos.pairs]

    def tell(self, made):
        for path in self.white:
            made.input(path, "white")

    def measure(self, np, i, white, below):
        """Adds the pixels where the sheet is black or clipped to those that are not solved."""
        lacking = (white == 0) | (white >= np.iinfo(white.dtype).max) | (below <= 1e-4)
        lacking = lacking.any(-1) if lacking.ndim == 3 else lacking
        self.unmeasured = lacking if self.unmeasured is None else self.unmeasured | lacking
        self.worst = max(self.worst, (lacking.mean(), self.white[i]))

    def leave_out(self, np, mask, warn):
        """mask: u8 [height, width]. Returns: the same, 0 where a sheet measured nothing"""
        share = self.unmeasured[mask != 0].mean()
        where = (f"The white sheets are black or clipped at {100 * share:.3g} % of the pixels, {self.worst[1]} at {100 * self.worst[0]:.3g} %."
                 " {} Expose the sheets so that they are neither black nor clipped, or leave out by --mask what is not the object.")
        if share > MAX_UNMEASURED:
            raise Failure(UNREADABLE, where.format("Nothing can be divided by them there."))
        if share > 0:
            warn(where.format("These pixels are not solved."))
        return mask * ~self.unmeasured

    def divide(self, np, i, dark, vector, mean, intensity):
        """Returns: u16; 65535 is clipped"""
        path = self.photos.pairs[i][1]
        values = self.raw.integers(np, path)
        clipped = values >= np.iinfo(values.dtype).max
        white = self.raw.integers(np, self.white[i])
        if white.shape != values.shape:
            raise Failure(UNREADABLE, f"{self.white[i]} is {list(white.shape)} and {path} {list(values.shape)}: they have to be of one kind.")
        below = np.maximum(self.linear(white, self.white[i]) - dark, 0)
        self.measure(np, i, white, below)
        plane = sheet(np, vector, mean, values.shape[:2], self.mm) * np.ones(values.shape[:2])
        if values.ndim == 3:
            plane = plane[..., None] * intensity
        else:
            plane = plane * intensity.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            lit = np.where(below > 1e-4, np.maximum(self.linear(values, path) - dark, 0) / below * plane, 0)
        return np.where(clipped, 65535, np.rint(np.clip(65535 * lit, 0, 65534))).astype(np.uint16)

    def playable(self, np, made):
        chosen = [i for i, _path in self.photos.pairs]
        vectors, mean = self.photos.lights.values(np, chosen)[0], self.photos.lights.mean_distance(np, chosen)
        intensities = self.photos.read_intensities(np, chosen)
        dark = self.linear(self.raw.integers(np, self.photos.dark), self.photos.dark) if self.photos.dark else 0
        self.unmeasured, self.worst = None, (0, "")
        for i in range(len(chosen)):
            np.save(made.path(f"picture{i}.npy"), self.divide(np, i, dark, vectors[i], mean, intensities[i]))
        self.raw.tell(made)
        made.report.fact("white sheets", f"{len(chosen)}, one for each light; an albedo of 1 is that of the sheet")
        return [made.path(f"picture{i}.npy") for i in range(len(chosen))]

    def remove(self, made):
        for i in range(len(self.white)):
            os.remove(made.path(f"picture{i}.npy"))
