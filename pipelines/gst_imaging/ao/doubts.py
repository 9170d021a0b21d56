# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do slopes, commands, controller and delay of a recorded loop fit together? Arrays as in gains.py.

The controller is checked exactly: q[t] - sum a_i q[t-1-i] has to be sum b_j u[t-j].

The delay is not in that law. It is estimated from the motion without the mirror, y[t] = u[t] + q[t-d]. With the true delay y is motion with white
noise, and a level with a trend (Holt 1957) predicts its next value best. Another delay leaves echoes of the commands in y.
"""
SHIFTS = range(-2, 3)  # rows
EXACT = 1e-3  # of the power of the corrections: rounding of float32 leaves much less
TOO_MUCH = 0.01  # the same, where no other controller explains it: some commands were limited
AT_ONCE = 64  # modes
SAME = 0.9  # of the frames
TINY = 1e-300  # in the place of a power of 0, where the modes with a gain stood still
LEVELS, TRENDS = (0.01, 1.5, 12), (0, 0.01, 0.03, 0.1, 0.3, 0.7)  # factors of the prediction: range and number, and values
CLEARLY, CHANCE = 0.04, 1.2  # of the logarithm of the squared errors: models of real motion differ by 0.03; times 1 / sqrt(samples)
MOST = 4000  # frames that are judged
FURTHER = 3  # delays beyond the one that is told
FORGOTTEN, MEMORY = 6, 0.1  # times 1 / gain: after them the correlation of u is at most 0.07 in loops that work
DRIFT = 1  # variance between the quarters of a recording by that in a quarter; 0.2 in loops that work, 4 for a random walk
NOTHING = ("The slopes look as if the commands had acted on nothing: pictures that were played again, a mirror that is off, slopes and commands of"
           " two loops, or a control matrix that is far too small. The gains are then of no use.")
BETTER = ("A delay of {:g} explains slopes and commands clearly better than {:g}. Check --delay, as the action calibrate measures it."
          " A strong vibration can look like that, too.")


def made_of(np, u, q, a, b):
    """Returns: what a frame adds to q, what it should add, and q of the frame before, from the first frame on whose past is known"""
    terms, n = a.shape[1], len(u)
    added = q[terms:] - sum(a[:, i] * q[terms - 1 - i:n - 1 - i] for i in range(terms))
    return added, sum(b[:, i] * u[terms - i:n - i] for i in range(terms)), q[terms - 1:n - 1]


class Law:
    """Sums over all modes, each with the weight that its corrections have a power of 1"""

    def __init__(self, np, u, q, a, b):
        self.np, edge = np, max(SHIFTS)
        self.cross, self.powers, self.products, self.wrong, self.n = np.zeros(len(SHIFTS)), np.zeros(len(SHIFTS)), np.zeros((3, 3)), 0, 0
        for first in range(0, u.shape[1], AT_ONCE):
            part = slice(first, first + AT_ONCE)
            values = np.stack(made_of(np, u[:, part], q[:, part], a[part], b[part]))
            size = np.sqrt((values[1] ** 2).mean(0))
            values = values[:, :, size > 0] / size[size > 0]
            inner = values[:, edge:-edge]
            for i, shift in enumerate(SHIFTS):
                other = values[1, edge + shift:values.shape[1] - edge + shift]
                self.cross[i] += (inner[0] * other).sum()
                self.powers[i] += (other ** 2).sum()
            self.products += np.tensordot(inner, inner, ([1, 2], [1, 2]))
            self.wrong = self.wrong + ((inner[0] - inner[1]) ** 2).sum(1)
            self.n += inner.shape[2]

    def left_of_shifts(self):
        """Returns: the part of the power of what was added that corrections of other rows, with any gain, do not explain"""
        return 1 - self.cross ** 2 / (self.products[0, 0] * self.powers + TINY)

    def fit(self):
        """Returns: the factor on b and what is added to a_1 that explain most, and the part of the power that they do not explain"""
        np = self.np
        found = np.linalg.lstsq(self.products[1:, 1:], self.products[1:, 0], rcond=1e-12)[0]
        return *found, 1 - found @ self.products[1:, 0] / (self.products[0, 0] + TINY)


def of_controller(np, u, q, a, b):
    """Returns: a sentence where the commands are not those of the controller; None where they are"""
    law = Law(np, u, q, a, b)
    wrong = law.wrong.mean() / max(law.n, 1)
    if not law.n or wrong < EXACT:
        return None
    left = law.left_of_shifts()
    shift = SHIFTS[int(left.argmin())]
    if shift and left.min() < 0.1 * left[SHIFTS.index(0)]:
        return (f"The commands of a row are those of the slopes {abs(shift)} row{'s'[:abs(shift) > 1]} {'later' if shift > 0 else 'earlier'}. Shift the"
                " commands, so that a row has the slopes of a frame and the commands that are made of them.")
    factor, more, left = law.fit()
    if left < EXACT:
        told = f"{factor:.3g} times the gain that is told, and a_1 differs by {more:.3g}"
        if a.shape[1] == 1 and (a == a[0]).all() and (b == b[0]).all():
            leak = abs(round(1 - a[0, 0] - more, 4))
            told = f"a gain of {factor * b[0, 0]:.3g} and a leak of {leak:g}, not {b[0, 0]:.3g} and {round(1 - a[0, 0], 4):g}"
        return f"The recorded commands have {told}. Check --gain, --leak or --controller."
    if wrong < TOO_MUCH:
        return None
    n_wrong = int((law.wrong > TOO_MUCH * law.n).sum())
    return (f"In {n_wrong} of {len(law.wrong)} frames the commands are not those that the controller makes of the slopes. Its gain changed, commands were"
            " limited or held, cells left the fit, or slopes, commands and matrix are not of the same loop. The gains may be wrong.")


def of_effect(np, u, q, b):
    """Returns: a sentence where errors stay and the commands drift away in most modes, as in a loop that does not correct them; else None"""
    n, gain = len(u), np.median(b.sum(1))
    lag = min(int(FORGOTTEN / max(gain, 1e-6)), n // 4)
    quarters = q[n % 4:].reshape(4, n // 4, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        memory = (u[lag:] * u[:-lag]).mean(0) / (u ** 2).mean(0)
        drift = quarters.mean(1).var(0) / quarters.var(1).mean(0)
    return NOTHING if np.nanmedian(memory) > MEMORY and np.nanmedian(drift) > DRIFT else None


def of_repeats(np, u):
    """Returns: a sentence where the same slopes come again and again, as of pictures that are played again; else None"""
    again = 1 + np.flatnonzero((u[1:] == u[0]).all(1))
    if again.size and (u[again[0]:] == u[:-again[0]]).all(1).mean() > SAME:
        return f"The slopes of frame {again[0]} and later are those of frame 0 and later. {NOTHING}"
    return None


def errors_of(np, y):
    """Returns: for each column of y the mean square of what the best level and trend do not predict"""
    level_parts, trend_parts = np.geomspace(*LEVELS)[:, None, None], np.array(TRENDS)[:, None]
    level = np.broadcast_to(y[0], (LEVELS[2], len(TRENDS), y.shape[1]))
    trend, total = np.zeros(level.shape), np.zeros(level.shape)
    for t, row in enumerate(y[1:], 1):
        error = row - level - trend
        level, trend = level + trend + level_parts * error, trend + level_parts * trend_parts * error
        if t > len(y) // 10:
            total += error ** 2
    return total.min((0, 1)) / (len(y) - 1 - len(y) // 10)


def of_delay(np, u, q, told, open_loop):
    """open_loop: as in gains. Returns: a sentence where another delay, or commands that act on nothing, explain clearly more; else None"""
    modes = np.unique(np.linspace(0, u.shape[1] - 1, min(u.shape[1], AT_ONCE)).astype(int))
    u, q = u[-MOST:, modes], q[-MOST:, modes]
    delays = sorted({told, *map(float, range(1, int(told) + FURTHER + 1))})
    n = len(u) - int(np.ceil(delays[-1]))
    y = np.concatenate([u[-n:], *(open_loop(np, u, q, delay)[-n:] for delay in delays)], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(errors_of(np, y).reshape(-1, len(modes)))
    found = found[:, np.isfinite(found).all(0)]
    if not found.size:
        return None
    better = found[1 + delays.index(told)] - found  # nothing first, then the delays
    mean, limit = better.mean(1), CLEARLY + CHANCE / np.sqrt(n * found.shape[1])
    best = int(mean.argmax())
    if mean[best] < limit or (better[best] > 0).mean() < 0.75:
        return None
    if mean[best] - mean[0] < CLEARLY / 4:
        return NOTHING
    return BETTER.format(delays[best - 1], told)
