# SPDX-License-Identifier: LGPL-2.1-or-later
"""The outline of a sphere in photographs, to compare it with the circle that was given or found."""

RAYS, REACH = 240, 0.25  # from the middle; part of the radius inside and outside of which edges are sought
PER_RAY, TRIALS = 3, 600  # edges of a ray, circles through three of them
NEAR = 1.5  # pixels, or a hundredth of the radius: of an edge from the circle
SEEN = 0.5  # of the rays, for an outline; noise alone reaches 0.3
STEEP = 3  # times the median step of its ray, of an edge: also one of 2 grey levels before a dark background


def sample(np, values, x, y):
    """Returns: values between the pixels, NaN outside of the picture"""
    inside = (x >= 0) & (y >= 0) & (x <= values.shape[1] - 1) & (y <= values.shape[0] - 1)
    left = np.clip(np.floor(x).astype(int), 0, values.shape[1] - 2)
    top = np.clip(np.floor(y).astype(int), 0, values.shape[0] - 2)
    u, v = x - left, y - top
    upper = values[top, left] * (1 - u) + values[top, left + 1] * u
    lower = values[top + 1, left] * (1 - u) + values[top + 1, left + 1] * u
    return np.where(inside, upper * (1 - v) + lower * v, np.nan)


def edges(np, values, circle):
    """Returns: x, y and ray of the steepest places along rays from the middle"""
    column, row, radius = circle
    reach = max(REACH * radius, 6)
    r = np.arange(max(radius - reach, 2), radius + reach, 0.5)
    turn = 2 * np.pi * np.arange(RAYS)[:, None] / RAYS
    profile = sample(np, values, column + r * np.cos(turn), row - r * np.sin(turn))
    steep = np.nan_to_num(abs(profile[:, 4:] - profile[:, :-4]))  # over 2 pixels
    noise = np.median(steep, 1)
    steep[:, 1:-1][(steep[:, 1:-1] < steep[:, :-2]) | (steep[:, 1:-1] < steep[:, 2:])] = 0
    steep[:, [0, -1]] = 0
    at = np.argsort(-steep, 1)[:, :PER_RAY]
    rays = np.repeat(np.arange(RAYS), PER_RAY)
    at = at.ravel()
    good = steep[rays, at] > STEEP * np.repeat(noise, PER_RAY)
    # the middle of a ramp: the centre of gravity of the slopes around the steepest place
    window = np.clip(at[:, None] + np.arange(-3, 4), 0, steep.shape[1] - 1)
    slopes = np.nan_to_num(abs(profile[:, 4:] - profile[:, :-4]))[rays[:, None], window]
    place = (slopes * r[2:-2][window]).sum(1) / np.maximum(slopes.sum(1), 1e-30)
    rays, place = rays[good], place[good]
    return column + place * np.cos(turn[rays, 0]), row - place * np.sin(turn[rays, 0]), rays


def circle_through(np, x, y):
    """Returns: middle and radius of the circle with the least squares of x^2 + y^2 - a x - b y - c; None for points in a line"""
    matrix = np.stack([x, y, np.ones(len(x))], 1)
    (a, b, c), _rest, rank, _values = np.linalg.lstsq(matrix, x * x + y * y, rcond=None)
    square = c + (a * a + b * b) / 4
    return (a / 2, b / 2, float(np.sqrt(square))) if rank == 3 and square > 0 else None


def fit(np, values, circle):
    """values: [height, width]. circle: x, y, radius, near the outline. Returns: the circle that most edges lie on, and the part of
    the rays that have such an edge; None and this part where that is no outline"""
    values = np.nan_to_num(np.asarray(values, float))
    if min(values.shape) < 2 or not values.max() > 0:
        return None, 0.0
    x, y, rays = edges(np, values, circle)
    near, random = max(NEAR, 0.01 * circle[2]), np.random.default_rng(1)
    best, most = None, 0.0
    if len(x) < 3:
        return None, 0.0
    for _trial in range(TRIALS):
        three = random.choice(len(x), 3, replace=False)
        found = circle_through(np, x[three], y[three])
        if found is None or not 1 - REACH < found[2] / circle[2] < 1 + REACH:
            continue
        on = len(np.unique(rays[abs(np.hypot(x - found[0], y - found[1]) - found[2]) < near])) / RAYS
        if on > most:
            best, most = found, on
    for _round in range(3):
        if best is None:
            break
        on = abs(np.hypot(x - best[0], y - best[1]) - best[2]) < near
        best = circle_through(np, x[on], y[on]) if on.sum() >= 3 else None
    return (tuple(map(float, best)) if best and most >= SEEN else None), most


def turned(np, circle, seen):
    """Returns: how far lights are turned by a circle that is not the outline, in degrees: 2 / radius radians a pixel"""
    off = max(np.hypot(circle[0] - seen[0], circle[1] - seen[1]), abs(circle[2] - seen[2]))
    return float(np.degrees(2 * off / seen[2]))
