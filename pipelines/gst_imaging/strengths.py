# SPDX-License-Identifier: LGPL-2.1-or-later
"""How unequal the lamps of a set are, from its photographs alone: a matte surface shows it in the samples that do not fit its normals."""
import os

from . import flatfield, lamps

PIXELS, ROUNDS, LARGEST = 2000, 6, 1e9  # of the sample; of outliers; samples of a set that is read once more
DIM, SHADOW, OUTLIER = 0.1, 0.1, 2.5  # of the brightest sample of a pixel; of its albedo; of the noise
FLAT = 1e-3  # of the largest eigenvalue of the lights of a pixel, below which they lie in a plane
FEWEST, SEEN = 8, 20  # lamps; pixels under each lamp
SPREAD = 0.02  # of the lamps, which bends normals by about a degree
SURE = 2  # times what parts of the picture disagree by
NAME = "spread of the lamps"
REMEDY = ("lamps of unequal strength bend the surface, and no other limit shows it. gst-imaging lights --card or --matte measures them; --intensities takes"
          " numbers")


def gains_of(np, samples, vectors):
    """samples: linear [pixels, lamps], NaN where clipped; vectors: light vectors [pixels, lamps, 3]. Returns: how much brighter each lamp is than
    its vector says, with the mean 1; None where the samples do not tell it. sample / gain = vector . b is linear in 1 / gain and in the normal times
    albedo b: without b it is an eigenvector. Shadows, highlights and other outliers are left out in rounds"""
    seen = samples / np.nanmax(samples, 1, keepdims=True)
    bright = seen > DIM
    seen, good = np.nan_to_num(seen), bright
    for _round in range(ROUNDS):
        normal = (good[..., None] * vectors).swapaxes(1, 2) @ vectors
        size = np.linalg.eigvalsh(normal)
        solved = (size[:, 0] > FLAT * size[:, 2]) & (good.sum(1) > 5)
        seen, bright, good, vectors, normal = (array[solved] for array in (seen, bright, good, vectors, normal))
        if not solved.any() or good.sum(0).min() < SEEN:
            return None
        inverse, lit = np.linalg.inv(normal), good[..., None] * vectors
        part = (seen[..., None] * lit @ np.linalg.cholesky(inverse)).swapaxes(0, 1).reshape(len(good[0]), -1)
        inverse_gain = np.abs(np.linalg.eigh(np.diag((good * seen ** 2).sum(0)) - part @ part.T)[1][:, 0])
        surface = inverse @ (lit.swapaxes(1, 2) @ (seen * inverse_gain)[..., None])
        shown = (vectors @ surface)[..., 0]
        left = np.abs(seen * inverse_gain - shown)
        good = bright & (left <= OUTLIER * 1.4826 * np.median(left[good])) & (shown > SHADOW * np.linalg.norm(surface, axis=1))
    gains = 1 / np.maximum(inverse_gain, 1e-9)
    return gains / gains.mean()


def uneven(np, gains, directions):
    """Returns: gains without what changes evenly with the direction, which gloss and room light imitate, scaled for the numbers that this takes"""
    terms = np.column_stack([np.ones(len(gains)), directions[:, :2], directions[:, 2] ** 2])
    left = gains - terms @ np.linalg.lstsq(terms, gains, rcond=None)[0]
    return left * (len(gains) / (len(gains) - np.linalg.matrix_rank(terms))) ** 0.5


def judge(np, samples, vectors, directions, x, y):
    """x, y: of the pixels. Returns: the gains, their rms unevenness, and by how much four halves of the picture disagree about it; None where this is not
    known"""
    halves = x <= np.median(x), x > np.median(x), y <= np.median(y), y > np.median(y)
    found = [gains_of(np, samples[part], vectors[part]) for part in (slice(None), *halves)]
    if any(gains is None for gains in found):
        return None
    whole, *parts = (uneven(np, gains, directions) for gains in found)
    return found[0], float(whole.std()), float(np.std(parts, 0).max())


def read(np, photos, solved):
    """solved: [height, width]. Returns: linear samples [pixels, lamps], NaN where clipped, and the rows and columns of the pixels"""
    rows, columns = np.nonzero(solved)
    chosen = np.random.default_rng(0).permutation(len(rows))[:PIXELS]
    rows, columns, dark, shown = rows[chosen], columns[chosen], 0, []
    for path in [*([photos.dark] if photos.dark else []), *photos.samples.paths]:
        values = photos.samples.integers(np, path)[rows, columns][:, None]
        values = values[..., :3] if values.ndim == 3 else values[..., None]
        linear = np.where(values >= np.iinfo(values.dtype).max, np.nan, photos.make_linear(values, path)).mean((1, 2))
        if path == photos.dark:
            dark = linear
        else:
            shown.append(linear - dark)
    return np.stack(shown, 1), rows, columns


def measure(np, photos, options, solved):
    """Returns: as judge()"""
    chosen = [i for i, _path in photos.pairs]
    if len(chosen) < FEWEST or not solved.any() or len(chosen) * solved.size > LARGEST or any(word.split("=")[0] in flatfield.GEOMETRY for word in options.set):
        return None
    samples, rows, columns = read(np, photos, solved)
    height, width = photos.size
    mm = options.mm_per_pixel
    points = np.stack([mm * (columns - (width - 1) / 2), mm * ((height - 1) / 2 - rows), 0.0 * rows], 1)
    mean = photos.lights.mean_distance(np, chosen)
    vectors = [lamps.light_vectors(np, vector, mean, points) * np.ones((len(points), 1)) for vector in photos.lights.values(np, chosen)[0]]
    lit = np.nanmax(np.where(np.isfinite(samples), samples, 0), 1) > 0
    return judge(np, samples[lit], np.stack(vectors, 1)[lit], photos.lights.directions(np, chosen), columns[lit], rows[lit])


def tell(np, photos, options, made, solved):
    """The row of a report on lamps without intensities, and a warning."""
    found = measure(np, photos, options, solved)
    if found is None or SURE * found[2] > max(found[1], SPREAD):
        made.report.not_checked(NAME, "%", at_most=100 * SPREAD, about=REMEDY)
        return
    gains, spread, doubt = found
    made.report.figure(NAME, 100 * spread, "%", at_most=100 * SPREAD, about=f"rms, estimated from the photographs, uncertain by {100 * doubt:.2g}; without what"
                       f" changes evenly over the dome, as it may be of the surface. Beyond: {REMEDY}")
    if spread > SPREAD:
        dark, bright = (f"{gains[i]:.2f} of the mean ({os.path.basename(photos.pairs[i][1])})" for i in (gains.argmin(), gains.argmax()))
        made.warn(f"The lamps seem to be of unequal strength, from about {dark} to {bright}, which bends the surface. Measure them with gst-imaging lights"
                  " --card, or give --intensities.")
