# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which pairs of a stack of scenes to form. A pair is two numbers of scenes by time, the earlier one first."""
from .. import library
from ..command import WRONG_USE, Failure

NETWORKS = {"delaunay": "pairs whose circle in the plane of days and metres has no other scene in it",
            "sequential": "each scene with the next ones by time", "star": "one scene with all others"}
METRES_A_DAY = 1.0  # what a day counts in the plane where triangles are found


def delaunay(points):
    """Edges of the Delaunay triangles: those with an empty circle through both ends, and so also of points on one line.
    Four points on one circle have no diagonal."""
    np = library.numpy()
    points = np.asarray(points, float)
    edges = []
    for i in range(len(points)):
        for k in range(i + 1, len(points)):
            middle, across = (points[i] + points[k]) / 2, (points[k] - points[i]) @ np.array([[0, 1], [-1, 0]])
            radius = ((points[i] - middle) ** 2).sum()
            others = np.delete(points, [i, k], axis=0) - middle
            side, left = others @ across, (others ** 2).sum(1) - radius
            # the centre is middle + t across; t is below some ratios and above others
            tiny = 1e-12 * max(radius, 1e-300)
            is_on_line = np.abs(side) <= tiny
            with np.errstate(divide="ignore", invalid="ignore"):
                t = left / (2 * side)
            most = t[(side > 0) & ~is_on_line].min(initial=np.inf)
            least = t[(side < 0) & ~is_on_line].max(initial=-np.inf)
            if (left[is_on_line] >= 0).all() and (least < most or len(points) == 2):
                edges.append((i, k))
    return edges


def middle(scenes):
    """Returns: the number of the scene whose squared distances in days and metres to all others are least in sum"""
    return min(range(len(scenes)), key=lambda i: sum(squared_distance(scenes[i], other) for other in scenes))


def star(scenes, centre):
    return [tuple(sorted((centre, i))) for i in range(len(scenes)) if i != centre]


def squared_distance(one, other):
    return (abs(one.day - other.day) * METRES_A_DAY) ** 2 + ((one.baseline or 0) - (other.baseline or 0)) ** 2


def sequential(n, connections):
    return [(i, k) for i in range(n) for k in range(i + 1, min(i + 1 + connections, n))]


def limited(pairs, scenes, most_days, most_metres):
    """Returns: the pairs within these limits; None is no limit"""
    return [(i, k) for i, k in pairs
            if (most_days is None or scenes[k].day - scenes[i].day <= most_days)
            and (most_metres is None or abs(scenes[k].baseline - scenes[i].baseline) <= most_metres)]


def without(pairs, left_out, names, made):
    """pairs, left_out: two names of scenes each, the latter in any order. Returns: the other pairs. One that is not there is a warning: it may
    have left the network when a scene arrived"""
    for pair in left_out:
        unknown = next((name for name in pair if name not in names), None)
        if unknown is not None:
            raise Failure(WRONG_USE, f'--leave-out {" ".join(pair)}: there is no scene "{unknown}"; there are {", ".join(names)}.')
        if not any(set(pair) == set(other) for other in pairs):
            made.warn(f"--leave-out {' '.join(pair)}: the network has no pair of these two scenes.")
    others = [pair for pair in pairs if set(pair) not in map(set, left_out)]
    if pairs and not others:
        raise Failure(WRONG_USE, f"--leave-out leaves none of {len(pairs)} pairs.")
    return others


def parts(n, pairs):
    """Returns: lists of scenes that the pairs connect. More than one, and a time series has no common zero"""
    group = list(range(n))
    for i, k in pairs:
        old, new = group[k], group[i]
        group = [new if g == old else g for g in group]
    return [[i for i in range(n) if group[i] == g] for g in sorted(set(group))]
