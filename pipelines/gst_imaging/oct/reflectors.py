# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether the fringe of a mirror is that of one reflector: its amplitude then is a share of the light that changes evenly over the samples. Two
reflectors whose peaks merge beat: the amplitude goes up and down where the light does not, at all positions alike."""
from .. import library

UNEVEN = 0.1  # rms, of the amplitude; real mirrors have 0.06
LIT = 0.25  # of the largest amplitude: samples that are looked at
NAME = "evenness of the fringes"


def parts(np, lines):
    """Returns: the amplitude of the fringe and the light over the samples [samples] each, and half of the width they are smooth over"""
    n = lines.shape[1]
    own = lines - lines.mean(1, keepdims=True)
    power = (np.abs(np.fft.fft(own * np.hanning(n))) ** 2).mean(0)
    first = n // 64  # the light itself is before
    peak = first + int(power[first:n // 2].argmax())
    half = max(peak // 2, 8)
    spectrum = np.fft.fft(own)
    spectrum[:, :max(peak - half, 1)] = 0
    spectrum[:, min(peak + half, n // 2):] = 0
    fringe = np.fft.ifft(spectrum)
    reach = max(n // 64, 4)
    weights = np.hanning(2 * reach + 1) / np.hanning(2 * reach + 1).sum()
    return *(np.convolve(part, weights, "same") for part in (np.abs(fringe).mean(0), (lines - 2 * fringe.real).mean(0))), reach


def unevenness(np, lines):
    """lines: [lines, samples] of one camera. Returns: the rms of what (a + b u) light + c leaves of the amplitude, u over the samples, relative to it; None
    where the samples do not have the light, as from a balanced detector"""
    amplitude, light, reach = parts(np, lines)
    seen = amplitude > LIT * amplitude.max()
    seen[:2 * reach] = seen[-2 * reach:] = False
    if seen.sum() < 8 * reach or 2 * amplitude.max() > np.ptp(light):
        return None
    u = np.linspace(-1, 1, lines.shape[1])
    columns = np.stack([light, u * light, np.ones_like(u)], 1)[seen]
    left = amplitude[seen] - columns @ np.linalg.lstsq(columns, amplitude[seen], rcond=None)[0]
    return float(np.sqrt((left ** 2).mean() / (amplitude[seen] ** 2).mean()))


def check(made, path, names, n_cameras):
    """path: of spectra [positions, lines, samples]"""
    np = library.numpy()
    values, found = np.load(path, mmap_mode="r"), []
    for name, mirror in zip(names, values):
        for camera in range(n_cameras):
            uneven = unevenness(np, mirror[camera::n_cameras].astype(float))
            found.append(uneven)
            if uneven is not None and uneven > UNEVEN:
                made.warn(f"{name}: the amplitude of the fringe (camera {camera}) differs by {uneven:.2g} rms from an even share of the light. Are there two"
                          " reflectors close to each other, as the surfaces of a thin plate? Their beat is taken for dispersion.")
    about = "rms of the amplitude, beside an even share of the light; two reflectors that are one peak beat, unless their beat is longer than the spectrum"
    if None in found:
        made.report.not_checked(NAME, at_most=UNEVEN, about=f"the samples do not have the light: {about}")
    else:
        made.report.figure(NAME, max(found), at_most=UNEVEN, about=about)
