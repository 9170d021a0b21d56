# SPDX-License-Identifier: LGPL-2.1-or-later
"""Colours from a chart of 24 patches (ColorChecker Classic): a 3x3 matrix from the camera's linear colours to linear sRGB.

The chart is found in its photograph, or its four corner patches are given. It may be turned by 90 or 180 degrees.
"""
from .command import UNREADABLE, Failure

COLUMNS, ROWS = 6, 4
SRGB = (  # as its maker states them, row by row
    (115, 82, 68), (194, 150, 130), (98, 122, 157), (87, 108, 67), (133, 128, 177), (103, 189, 170),
    (214, 126, 44), (80, 91, 166), (193, 90, 99), (94, 60, 108), (157, 188, 64), (224, 163, 46),
    (56, 61, 150), (70, 148, 73), (175, 54, 60), (231, 199, 31), (187, 86, 149), (8, 133, 161),
    (243, 243, 242), (200, 200, 200), (160, 160, 160), (122, 122, 121), (85, 85, 85), (52, 52, 52))
LUMA = 0.2126, 0.7152, 0.0722
SEARCH = 160  # pixels of the width of the picture in which the chart is looked for
PATCH = 0.3  # of the distance of two patches, half the side of what is averaged
GOOD = 0.9  # likeness


def linear(np, values):
    values = np.asarray(values, float) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


SQUARE = (0, 0), (COLUMNS - 1, 0), (COLUMNS - 1, ROWS - 1), (0, ROWS - 1)  # corner patches, in columns and rows


def projection_through(np, grid, points):
    """Least squares. grid: columns and rows [n, 2]; points: pixels [n, 2]. Returns: the projection [3, 3]"""
    rows = []
    for (x, y), (u, v) in zip(grid, points):
        rows += [(x, y, 1, 0, 0, 0, -u * x, -u * y), (0, 0, 0, x, y, 1, -v * x, -v * y)]
    return np.append(np.linalg.lstsq(np.array(rows, float), np.ravel(points), rcond=None)[0], 1).reshape(3, 3)


def projection(np, corners):
    """corners: of the patches at the upper left, upper right, lower right and lower left, [4, 2]"""
    return projection_through(np, SQUARE, corners)


def project(np, h, grid):
    """grid: columns and rows [..., 2]. Returns: pixels"""
    found = np.concatenate([grid, np.ones((*grid.shape[:-1], 1))], -1) @ h.T
    return found[..., :2] / found[..., 2:]


def corners_through(np, grid, points):
    return project(np, projection_through(np, grid, points), np.array(SQUARE, float))


def places(np, corners):
    """Returns: the middles of the patches [24, 2]"""
    return project(np, projection(np, corners), np.array([(x, y) for y in range(ROWS) for x in range(COLUMNS)], float))


def pitch(np, corners):
    return np.linalg.norm(np.asarray(corners[1], float) - corners[0]) / (COLUMNS - 1)


def patches_of(np, picture, corners):
    """Returns: the pixels of each patch [24, n, n, 3]; None where one is beyond the picture"""
    half = max(0, int(PATCH * pitch(np, corners)))
    found = np.rint(places(np, corners)).astype(int)
    if (found < half).any() or (found[:, 0] >= picture.shape[1] - half).any() or (found[:, 1] >= picture.shape[0] - half).any():
        return None
    return np.array([picture[y - half:y + half + 1, x - half:x + half + 1] for x, y in found])


def read_patches(np, picture, corners):
    """Returns: mean of each patch [24, 3]; None where one is beyond the picture"""
    found = patches_of(np, picture, corners)
    return None if found is None else found.mean((1, 2))


def n_clipped(np, picture, corners):
    """picture: linear, 1 is full scale. Returns: how many patches have clipped samples at more than a hundredth of their pixels"""
    return int(((patches_of(np, picture, corners) >= 1).any(-1).mean((1, 2)) > 0.01).sum())


def likeness(np, patches):
    """How well a matrix makes the true colours of the patches: 1 - the part of their variance that is left"""
    if patches is None:
        return -1.0
    true = linear(np, SRGB)
    left = true - patches @ np.linalg.lstsq(patches, true, rcond=None)[0]
    return float(1 - (left ** 2).sum() / ((true - true.mean(0)) ** 2).sum())


def frames(np, width, height):
    """Generates the vectors along the rows and the columns: all sizes, and turns by 90 degrees and a little"""
    for turn in range(4):
        for lean in (-12, -6, 0, 6, 12):
            angle = np.radians(90 * turn + lean)
            along = np.array([np.cos(angle), np.sin(angle)])
            for step in np.geomspace(min(width, height) / 16, max(width, height) / 5.5, 12):
                yield step, along * step * (COLUMNS - 1), np.array([-along[1], along[0]]) * step * (ROWS - 1)


def find(np, picture):
    """Returns: the corners of the chart that is most alike; None where none fits in"""
    step = max(1, round(picture.shape[1] / SEARCH))
    height, width = (n // step for n in picture.shape[:2])
    small = picture[:height * step, :width * step].reshape(height, step, width, step, 3).mean((1, 3))
    # logarithms, less their mean: whatever the exposure and the white balance
    logs, true = np.log(np.maximum(small, 1e-4)), np.log(linear(np, SRGB))
    true = (true - true.mean(0)) / np.linalg.norm(true - true.mean(0))
    grid = np.array([(x / (COLUMNS - 1), y / (ROWS - 1)) for y in range(ROWS) for x in range(COLUMNS)])
    best = (-1.0, None)
    for size, along, across in frames(np, width, height):
        first = np.stack(np.meshgrid(np.arange(0, width, size / 2), np.arange(0, height, size / 2)), -1).reshape(-1, 1, 2)
        at = np.rint(first + grid[:, :1] * along + grid[:, 1:] * across).astype(int)
        inside = ((at >= 0) & (at < (width, height))).all((1, 2))
        if not inside.any():
            continue
        seen = logs[at[inside, :, 1], at[inside, :, 0]]
        seen = seen - seen.mean(1, keepdims=True)
        alike = (seen * true).sum((1, 2)) / (np.linalg.norm(seen, axis=(1, 2)) + 1e-9)
        if alike.max() > best[0]:
            corner = first[inside][alike.argmax(), 0]
            best = float(alike.max()), np.array([corner, corner + along, corner + along + across, corner + across])
    return None if best[1] is None else refine(np, picture, (best[1] + 0.5) * step - 0.5)


def refine(np, picture, corners):
    """Moves each corner while the chart becomes more alike and its patches more even."""
    def value(corners):
        return likeness(np, read_patches(np, picture, corners))

    best, step = value(corners), pitch(np, corners) / 4
    while step > 0.5:
        moved = False
        for i in [slice(0, 4), 0, 1, 2, 3]:
            for direction in (1, 0), (-1, 0), (0, 1), (0, -1):
                other = corners.copy()
                other[i] += np.array(direction) * step
                found = value(other)
                if found > best:
                    best, corners, moved = found, other, True
        step = step if moved else step / 2
    return corners


def matrix_of(np, picture, path, corners=None):
    """picture: linear [height, width, 3]. Returns: the matrix, the corners, the mean error of the 24 colours before and after
    (CIE 1976)"""
    corners = find(np, picture) if corners is None else np.array(corners, float)
    patches = read_patches(np, picture, corners) if corners is not None else None
    alike = likeness(np, patches)
    if alike < GOOD:
        raise Failure(UNREADABLE, f"No chart of 24 patches is found in {path}: a matrix explains {100 * max(alike, 0):.0f} % of the most"
                                  f" alike colours, and {100 * GOOD:.0f} % are needed. Give the middles of its corner patches, from dark skin on clockwise, with"
                                  " --chart-corners X,Y X,Y X,Y X,Y.")
    true = linear(np, SRGB)
    matrix = np.linalg.lstsq(patches, true, rcond=None)[0].T
    white = patches[18]
    matrix *= (white @ LUMA) / (matrix @ white @ LUMA)  # colours change, not the brightness of white
    gain = (true[18] @ LUMA) / (white @ LUMA)
    error = [float(np.linalg.norm(lab(np, gain * values) - lab(np, true), axis=1).mean()) for values in (patches, patches @ matrix.T)]
    return matrix, corners, error


def lab(np, values):
    """CIE 1976 L*a*b* of linear sRGB, D65"""
    xyz = np.maximum(values, 0) @ np.array([(0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)]).T
    f = np.cbrt(xyz / (0.9505, 1, 1.089))
    f = np.where(f > 6 / 29, f, xyz / (0.9505, 1, 1.089) / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)
