# SPDX-License-Identifier: LGPL-2.1-or-later
"""R D of each mode of a recorded loop: how many times a command that is sent is seen by the sensor. A perfect control matrix has 1.

The loop shapes the spectrum of u (gains.py): u = S y with S = 1 / (1 + R D C), C the controller and the delay. The factor R D that leaves the
spectrum of motion and white noise, N + A (x^2 + c^2)^(-p/2) with x = 2 sin (pi f) or 2 pi f, is the one that was recorded. It is found by
Whittle's likelihood (1953, Ark. Mat. 2, 423). Narrow peaks, of vibrations, are left out.
"""
import collections

from . import doubts, gains

WINDOW = 256  # frames
LOWEST = 8  # of the frequencies of a window that count; below them the motion has any shape
PEAK, BESIDE = 4, 6  # times the median of so many frequencies on both sides
SCALES = (0.1, 8, 89)  # range and number of those that are tried
STEP = (SCALES[1] / SCALES[0]) ** (1 / (SCALES[2] - 1))  # from one of them to the next
CORNERS, POWERS, NOISES = (0, 0.03, 0.1, 0.3), (1, 2, 3, 4, 5.5), (1e-5, 1e3, 21)  # c and p; range and number of A / N at half the frame rate
SURE, CROWD, ALONE = 16, 0.001, 0.003  # of the likelihood: 4 sigma; what real spectra differ from the model in all modes, and in one
OTHER = 0.02  # the same, of a scale that is not that of a mode
LEAKAGE = 1e-6  # of the largest power: what a slow motion without noise leaves at other frequencies, of the window and of closing
MISFIT = 0.25  # times what the best model leaves
FEWEST = 2 * WINDOW  # frames
DOUBTED, FAR, NOTHING = 1.3, 0.5, 0.25  # scales
UNMEASURED = ("R D cannot be measured in this recording: the motion is too smooth, or the noise too small, to tell what the commands do. That is no fault of"
              " the loop. Keep the gain of the recording, or record again with a higher gain, less light, or a small random motion of the mirror.")
SHORT = f"R D is not measured: the recording has less than {FEWEST} frames. The gains are chosen for 1."
REMEDY = "check the scale of the control matrix, and --delay. A recording with a higher gain tells R D better."
WELL = 2  # largest by smallest scale of a mode that is well known

Scale = collections.namedtuple("Scale", "best low high")


def spectra(np, u):
    """Returns: the power at each frequency, [frequencies, modes]"""
    taper = np.hanning(WINDOW + 1)[:WINDOW, None]
    parts = [u[first:first + WINDOW] for first in range(0, len(u) - WINDOW + 1, WINDOW // 2)]
    return sum(np.abs(np.fft.rfft(taper * (part - part.mean(0)), axis=0)) ** 2 for part in parts)[:-1] / max(len(parts), 1)


def weights(np, f):
    """Returns: 1 / spectrum of each motion with noise, [motions, frequencies]"""
    shapes = np.array([(x * x + corner * corner) ** (-power / 2) for x in (2 * np.sin(np.pi * f), 2 * np.pi * f) for corner in CORNERS
                       for power in POWERS])
    shapes /= shapes[:, -1:]
    return 1 / (1 + np.geomspace(*NOISES)[:, None, None] * shapes).reshape(-1, len(f))


def without_peaks(np, power):
    """Returns: where @power, of one mode, has none"""
    padded = np.pad(power, BESIDE, mode="reflect")
    return power < PEAK * np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * BESIDE + 1), axis=1)


def likelihoods(np, u, a, b, delay, scales):
    """Returns: the negative logarithm of the likelihood of each scale for each frequency, less that of the spectrum itself, [modes, scales]; NaN of
    a mode that stood still, infinite where the loop oscillates"""
    every = spectra(np, u)
    power = every[LOWEST:]
    f = np.arange(LOWEST, LOWEST + len(power)) / WINDOW
    z = np.exp(-2j * np.pi * f)
    wait = z ** int(delay) * (1 - (delay - int(delay)) * (1 - z))
    motions = weights(np, f)
    logs, terms = np.log(motions), z[:, None] ** np.arange(a.shape[1])
    most = gains.stability(np, a, b, delay)
    found = np.full((u.shape[1], len(scales)), np.nan)
    for mode in np.flatnonzero((power > 0).all(0) & (power.mean(0) > LEAKAGE * every.max(0))):
        with np.errstate(divide="ignore", invalid="ignore"):
            loop = wait * (terms @ b[mode]) / (1 - z * (terms @ a[mode]))
        used = without_peaks(np, power[:, mode]) & np.isfinite(loop)
        shaped = np.abs(1 + scales[:, None] * loop[used]) ** -2
        means = power[used, mode] / shaped @ motions[:, used].T / used.sum()
        both = np.log(means) + np.log(shaped).mean(1)[:, None] - logs[:, used].mean(1)
        found[mode] = np.where(scales < most[mode], both.min(1) - np.log(power[used, mode]).mean(), np.inf)
    return found


def around(np, scales, found, slack, chance):
    """slack: of the likelihood. chance: what of it the best model leaves by chance"""
    near = scales[found < found.min() + slack + MISFIT * max(found.min() - chance, 0)]
    return Scale(scales[found.argmin()], near[0], near[-1])


def used_of(scale, expected):
    """Returns: the scale to use: as expected where that is possible, the measured one where it is well known, else the largest, which is safe"""
    if scale.low / STEP <= expected <= scale.high * STEP:
        return expected
    return scale.best if scale.high <= WELL * scale.low else scale.high


def measure(np, loop, delay, margin):
    """Returns: the scale to use of each mode, of a loopdata.Loop; a sentence where it is not 1 or not known, None for none; and whether it is well
    known"""
    u, a, b = loop.u, loop.a, loop.b
    scales, alone = np.geomspace(*SCALES), np.ones(u.shape[1])
    if len(u) < FEWEST:
        return alone, SHORT, False
    found = likelihoods(np, u, a, b, delay, scales)
    known = np.isfinite(found).any(1)
    if not known.any():
        return alone, UNMEASURED, False
    chance, sure = WINDOW / 4 / len(u), SURE / len(u)  # windows overlap by a half
    best = found[known].min(1, keepdims=True)
    every, slack = (best + np.minimum(found[known] - best, OTHER)).mean(0), CROWD + sure / known.sum()
    together = around(np, scales, every, slack, chance)
    common = used_of(together, 1)
    if common == 1 and together.best > DOUBTED and together.high > margin:
        common = together.best
    used = np.array([used_of(around(np, scales, row, ALONE + sure, chance), common) if ok else common for row, ok in zip(found, known)])
    if (used == 1).all():
        is_told = together.best < FAR and together.high < margin
        return used, f"{told_of(together)} As 1 is possible, the gains are chosen for 1: {REMEDY}" if is_told else None, False
    slack += MISFIT * max(every.min() - chance, 0)
    others = [likelihoods(np, u[:, known], a[known], b[known], other, np.ones(1)).mean() for other in range(1, int(delay) + doubts.FURTHER + 1)]
    if min(others) < every.min() - slack:
        return alone, doubts.BETTER.format(1 + others.index(min(others)), delay), True
    if together.high < NOTHING and together.best == scales[0]:
        return alone, doubts.NOTHING, True
    is_known = together.high <= WELL * together.low and min(others) > every.min() + slack
    return used, sentence_of(np, together, common, used), is_known


def acts(np, loop, delay):
    """Returns: whether the spectrum of u rules out that the commands act on nothing, as the echoes of the noise do"""
    u = gains.settled(loop.u)  # the loop closes with a step, which is no noise
    if len(u) < FEWEST:
        return False
    scales = np.geomspace(*SCALES)
    found = likelihoods(np, u, loop.a, loop.b, delay, scales)
    found = found[np.isfinite(found).any(1)]
    if not len(found):
        return False
    best = found.min(1, keepdims=True)
    every = (best + np.minimum(found - best, OTHER)).mean(0)
    return around(np, scales, every, CROWD + SURE / len(u) / len(found), WINDOW / 4 / len(u)).low > NOTHING


def find(np, loop, delay, margin):
    """Returns: the scale to use of each mode, and the first doubt that the loop is another one; None without. The delay is judged for a scale of 1,
    and only where the scale is not well known. A smooth motion with little noise is predicted worse than what the loop leaves of it, as if commands
    acted on nothing: that is told only where the spectrum allows it."""
    alone = np.ones(len(loop.b))
    doubt = doubts.of_controller(np, loop.u, loop.q, loop.a, loop.b) or doubts.of_repeats(np, loop.u)
    if doubt:
        return alone, doubt
    used, told, is_known = measure(np, loop, delay, margin)
    if told == UNMEASURED:  # nothing else is known of such a recording, either
        return alone, told
    doubt = doubts.of_effect(np, loop.u, loop.q, loop.b)
    if doubt and not acts(np, loop, delay):
        return alone, doubt
    other = None if is_known or doubt else doubts.of_delay(np, loop.u, loop.q, delay, gains.open_loop)
    if other == doubts.NOTHING and ((used != 1).any() or acts(np, loop, delay)):  # a weak loop is predicted worse with a scale of 1 than with none
        doubt, other = other, None
    if other:
        return alone, other
    return used, told or (UNMEASURED if doubt else None)


def told_of(scale):
    is_possible = scale.low / STEP <= 1 <= scale.high * STEP
    if is_possible and scale.high > WELL * scale.low:
        return f"{UNMEASURED} It can be {scale.low:.2g} to {scale.high:.2g}."
    limits = f"at most {scale.high:.2g}" if scale.low == SCALES[0] else f"{scale.low:.2g} to {scale.high:.2g}"
    slow = f", so the loop is at least {1 / scale.high:.2g} times slower than its gain says" if scale.high < FAR else ""
    return (f"The sensor sees commands {scale.best:.2g} times as large as they are ({limits} is possible): R D {'may not be' if is_possible else 'is not'}"
            f" 1{slow}.")


def sentence_of(np, together, common, used):
    differ = np.flatnonzero(used != common)
    if common == 1:
        return (f"R D is not 1 in {len(differ)} of {len(used)} modes: {used[differ[0]]:.2g} in mode {differ[0]}. The gains are chosen for these values:"
                f" {REMEDY}")
    own = f", and for {used[differ[0]]:.2g} in mode {differ[0]}{' and others' * (len(differ) > 1)}" if len(differ) else ""
    return f"{told_of(together)} The gains are chosen for {common:.2g}{own}: {REMEDY}"
