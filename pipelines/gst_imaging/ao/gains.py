# SPDX-License-Identifier: LGPL-2.1-or-later
"""The gain of each mode that leaves the smallest residual, from a closed loop (Gendron and Léna 1994, A&A 291, 337).

u[t] = -R s[t] is the correction that the sensor asks for, q[t] are the coefficients that the controller sends, which are seen d frames later.
Without the mirror the sensor would have asked for y[t] = u[t] + q[t-d]. The controller is replayed over y with many gains.

If noise is white and d >= 1, the noise of frame t is not in the residual of frame t. So the mean square of u is that of the residual plus
that of the noise, with every gain, and the gain with the smallest u has the smallest residual.

Arrays: u, q, y [frames, modes]; a, b [modes, terms] as in q[t] = sum a_i q[t-1-i] + sum b_j u[t-j].
"""
import collections

from ..command import UNREADABLE, WRONG_USE, Failure

FEWEST = 200  # frames
MOST = 10  # times b, as of mode-gains
SMALLEST = 1 / 200  # of the largest gain that is tried
COARSE, FINE, ROUNDS = 24, 9, 2  # gains that are tried, and then between the neighbours of the best one
AT_ONCE = 60000  # modes times gains


def seen(q, delay, t):
    """What frames @t see of q: a delay of 2.3 frames is 0.7 of the one before 2 and 0.3 of the one before 3."""
    whole = int(delay)
    part = delay - whole
    return (1 - part) * q[t - whole] + (part * q[t - whole - 1] if part else 0)


def open_loop(np, u, q, delay):
    """Returns: y, without the first frames, of which the past is not known"""
    t = np.arange(int(np.ceil(delay)), len(u))
    return u[t] + seen(q, delay, t)


def settled(values):
    """The part that is judged: a replay begins with the mean of the first tenth."""
    return values[len(values) // 10:]


def replay(np, y, a, b, delay):
    """b: [modes, gains, terms]. Returns: the mean square of u, [modes, gains]"""
    terms, whole, begin = a.shape[1], int(delay), len(y) // 10
    part = delay - whole
    a = a[:, None, :]
    first = y[:begin].mean(0)[:, None]
    fed, loop = b.sum(2), 1 - a.sum(2) + b.sum(2)
    steady = np.divide(fed * first, loop, out=np.zeros_like(fed), where=loop != 0)
    q = collections.deque([steady] * max(terms, whole + 1), max(terms, whole + 1))  # the newest first
    u = collections.deque([first - steady] * terms, terms)
    total = 0
    for t, row in enumerate(y):
        now = row[:, None] - q[whole - 1]
        if part:
            now += part * (q[whole - 1] - q[whole])
        u.appendleft(now)
        q.appendleft(sum(a[..., i] * q[i] + b[..., i] * u[i] for i in range(terms)))
        if t >= begin:
            total = total + now ** 2
    return total / (len(y) - begin)


def stability(np, a, b, delay):
    """Returns: the factor on b with which each loop begins to oscillate (Nyquist), infinite for none"""
    z = np.exp(-1j * np.pi * np.arange(1, 8194) / 8192)  # one frame; a step beyond half the rate, where a crossing may be
    whole = int(delay)
    wait = z ** whole * (1 - (delay - whole) * (1 - z))
    found = np.empty(len(a))
    rows, of = np.unique(np.concatenate([a, b], 1), axis=0, return_inverse=True)
    for i, row in enumerate(rows):
        terms = len(row) // 2
        powers = z[:, None] ** np.arange(terms)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = wait * (powers @ row[terms:]) / (1 - z * (powers @ row[:terms]))
        gain = gain[np.isfinite(gain)]
        crosses = np.nonzero((gain.imag[:-1] * gain.imag[1:] <= 0) & (gain.real[1:] < 0))[0]
        part = gain.imag[crosses] / np.where(gain.imag[crosses] == gain.imag[crosses + 1], 1, gain.imag[crosses] - gain.imag[crosses + 1])
        at = gain.real[crosses] + part * (gain.real[crosses + 1] - gain.real[crosses])
        found[of.reshape(-1) == i] = 1 / np.abs(at).max(initial=0) if np.abs(at).max(initial=0) > 0 else np.inf
    return found


def best_of(np, y, a, b, delay, most):
    """Returns: the best factor on b of each mode, and the mean square of u with it"""
    steps = np.geomspace(SMALLEST, 1, COARSE)
    tried = most[:, None] * steps
    for turn in range(ROUNDS + 1):
        found = replay(np, y, a, b[:, None, :] * tried[:, :, None], delay)
        i = found.argmin(1)
        rows = np.arange(len(tried))
        best = tried[rows, i], found[rows, i]
        if turn < ROUNDS:
            low, high = tried[rows, np.maximum(i - 1, 0)], tried[rows, np.minimum(i + 1, tried.shape[1] - 1)]
            tried = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, FINE)
    return best


def optimize(np, y, a, b, delay, margin):
    """Returns: the best factor on b, the largest that @margin allows, and the mean square of u with the best, of each mode"""
    most = np.minimum(stability(np, a, b, delay) / margin, MOST)
    step = max(1, AT_ONCE // COARSE)
    parts = [best_of(np, y[:, i:i + step], a[i:i + step], b[i:i + step], delay, most[i:i + step]) for i in range(0, len(a), step)]
    factors, squares = (np.concatenate(values) for values in zip(*parts))
    return factors, most, squares


def noise_of(np, y, window=128):
    """Returns: the variance of white noise in each mode, from the plateau of the power in the upper quarter of the frequencies"""
    taper = np.hanning(window + 1)[:window, None]
    power = 0
    starts = range(0, len(y) - window + 1, window // 2)
    for first in starts:
        part = y[first:first + window]
        power = power + np.abs(np.fft.rfft(taper * (part - part.mean(0)), axis=0)) ** 2
    return power[3 * window // 8:-1].mean(0) / len(starts) / (taper ** 2).sum()


def check(np, u, q, delay, path):
    """Fails where the recording is not of a closed loop that can be judged."""
    if delay < 1:
        raise Failure(WRONG_USE, f"--delay is {delay:g}; commands are seen 1 to 20 frames later.")
    if len(u) < FEWEST + delay:
        raise Failure(UNREADABLE, f"{path} has {len(u)} frames; gains need at least {FEWEST + delay:g} with --delay {delay:g}, and better some"
                                  " thousands.")
    if (q == q[0]).all():
        raise Failure(UNREADABLE, f"{path}: the commands never change: the loop was open or frozen. Record a closed loop: loop=closed, with a low gain.")
