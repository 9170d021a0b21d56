# SPDX-License-Identifier: LGPL-2.1-or-later
"""Wavefronts from the lenslet grid alone, in NumPy and float64.

A grid is an array of bool [rows, columns]: where a lenslet is. Slopes are dx of all lenslets row by row, then dy, as the
difference of the wavefront across a lenslet. Points are those that have a value: in the middle of each lenslet (southwell,
zernike), or at each corner of one (fried, kl).
"""
import math

TOLD = 0.03  # of the slopes of a mode that no modes before it have; as in shwavefront.c


def cells(np, grid):
    """Returns: rows and columns of the lenslets"""
    return np.nonzero(grid)


def corners(np, grid):
    """Returns: where a corner of a lenslet is, [rows + 1, columns + 1]"""
    at = np.zeros((grid.shape[0] + 1, grid.shape[1] + 1), bool)
    for y in (0, 1):
        for x in (0, 1):
            at[y:y + grid.shape[0], x:x + grid.shape[1]] |= grid
    return at


def southwell(np, grid):
    """Southwell 1980, JOSA 70, 998: neighbours differ by the mean of their slopes.

    Returns: (A, B) with A wavefront = B slopes, a row for each pair of neighbours
    """
    number = np.cumsum(grid).reshape(grid.shape) - 1
    n, differences, means = int(grid.sum()), [], []
    for axis, pairs in enumerate((grid[:, :-1] & grid[:, 1:], grid[:-1] & grid[1:])):
        for row, column in zip(*np.nonzero(pairs)):
            a, b = number[row, column], number[row + axis, column + 1 - axis]
            difference, mean = np.zeros(n), np.zeros(2 * n)
            difference[[a, b]] = -1, 1
            mean[[a + axis * n, b + axis * n]] = 0.5
            differences.append(difference)
            means.append(mean)
    return np.array(differences).reshape(-1, n), np.array(means).reshape(-1, 2 * n)


def fried(np, grid):
    """Fried 1977, JOSA 67, 370: a slope is the mean difference of the corners.

    Returns: A with A wavefront = slopes
    """
    at = corners(np, grid)
    number = np.cumsum(at).reshape(at.shape) - 1
    rows, columns = cells(np, grid)
    n = len(rows)
    matrix = np.zeros((2 * n, int(at.sum())))
    for i, (row, column) in enumerate(zip(rows, columns)):
        for y in (0, 1):
            for x in (0, 1):
                k = number[row + y, column + x]
                matrix[i, k], matrix[n + i, k] = x - 0.5, y - 0.5
    return matrix


def noll(j):
    """Returns: (n, m) of mode j from 1 on, m below 0 for sines: Noll 1976, JOSA 66, 207"""
    n, k = 0, j - 1
    while k > n:
        n += 1
        k -= n
    m = n % 2 + 2 * ((k + (n + 1) % 2) // 2)
    return n, -m if j % 2 else m


def osa(j):
    """Returns: (n, m) of mode j from 0 on: ANSI Z80.28"""
    n = (math.isqrt(8 * j + 1) - 1) // 2
    return n, 2 * j - n * (n + 2)


def zernike(np, n, m, x, y):
    """Returns: the mode with an rms of 1 over the unit circle

    The radial part comes from the three-term recurrence of Jacobi polynomials, so it is exact at high orders, too.
    """
    order, k = abs(m), (n - abs(m)) // 2
    z = 1 - 2 * (x * x + y * y)
    before, now = np.zeros_like(z), np.ones_like(z)
    for i in range(1, k + 1):
        a, b, c, d = jacobi(i, order)
        before, now = now, ((a * z + b) * now - c * before) / d
    power = (x + 1j * y) ** order
    return (-1) ** k * math.sqrt((2 if m else 1) * (n + 1)) * now * (power.imag if m < 0 else power.real)


def across(np, n, m, x, y, half):
    """Returns: the mean differences of a mode between the edges of squares of 2 half, along x and y"""
    at, weights = np.polynomial.legendre.leggauss(n // 2 + 1)  # exact: a polynomial of degree n along an edge
    x, y, along = x[:, None], y[:, None], half * at

    def mean(x, y):
        return zernike(np, n, m, x, y) @ weights / 2
    return (mean(x + half, y + along) - mean(x - half, y + along),
            mean(x + along, y + half) - mean(x + along, y - half))


def jacobi(i, m):
    """Returns: P_i^(m,0) d = (a z + b) P_i-1 - c P_i-2"""
    if i == 1:
        return (m + 2) / 2, m / 2, 0, 1
    s = 2 * i + m
    return ((s - 1) * s * (s - 2), (s - 1) * m * m, 2 * (i + m - 1) * (i - 1) * s, 2 * i * (i + m) * (s - 2))


def zernikes(np, grid, n_modes, order):
    """Modes after piston on the circle around the longer side. order: noll or osa.

    Returns: (values [cells, modes], slopes [2 cells, modes])
    """
    rows, columns = cells(np, grid)
    half = 1 / max(grid.shape)
    x = (2 * columns + 1 - grid.shape[1]) * half
    y = (2 * rows + 1 - grid.shape[0]) * half
    values, slopes = [], []
    for j in range(n_modes):
        n, m = noll(j + 2) if order == "noll" else osa(j + 1)
        values.append(zernike(np, n, m, x, y))
        slopes.append(np.concatenate(across(np, n, m, x, y, half)))
    return np.stack(values, 1), np.stack(slopes, 1)


def n_told(np, slopes):
    """slopes: [2 cells, modes]. Returns: how many modes the grid tells. The slopes of the next one are nearly a sum of those before it."""
    own = np.abs(np.diag(np.linalg.qr(slopes, "r")))
    blind = np.flatnonzero(own <= TOLD * np.linalg.norm(slopes, axis=0)[:len(own)])
    return int(blind[0]) if blind.size else len(own)


def kolmogorov(np, x, y):
    """Covariance of Kolmogorov's phase without piston between points, in rad^2 for a distance of r0 = 1: -1/2 of the
    structure function 6.88 r^(5/3), less its means over rows and columns (Noll 1976, eq. 19 ff.)"""
    r = np.hypot(x[:, None] - x, y[:, None] - y)
    half = -3.44 * r ** (5 / 3)
    half -= half.mean(0)
    return half - half.mean(1, keepdims=True)


def karhunen_loeve(np, grid, n_modes):
    """Eigenvectors of Kolmogorov's covariance at the corners, the strongest first, each with an rms of 1.

    Returns: (values [points, modes], slopes [2 cells, modes], variances in rad^2 for r0 of a lenslet)
    """
    rows, columns = np.nonzero(corners(np, grid))
    variances, vectors = np.linalg.eigh(kolmogorov(np, columns.astype(float), rows.astype(float)))
    values = vectors[:, ::-1][:, :n_modes] * math.sqrt(len(rows))
    return values, fried(np, grid) @ values, variances[::-1][:n_modes] / len(rows)
