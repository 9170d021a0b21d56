#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The methods of octangio in NumPy, float64, on one set of 4 complex B-scans of 512 A-scans and 1024 depths: the median CPU time of each. octangio-bench has
octangio's own. Set OMP_NUM_THREADS=1 for one thread."""
import statistics
import time

import numpy as np

REPEATS, ASCANS, DEPTHS, WINDOW, TURNS = 4, 512, 1024, 3, 7
LIMITS = np.cos(np.pi / np.array([4, 8, 16]))  # of the bulk motion


def bulk(products):
    """Returns: cos + i sin of the phase that most depths of each A-scan have"""
    sums = np.add.reduceat(products, np.arange(0, products.shape[-1], 8), axis=-1)
    unit = sums / abs(sums)
    total = sums.sum(-1, keepdims=True)
    for limit in LIMITS:
        near = (unit * (total / abs(total)).conj()).real
        total = (sums * np.maximum(0, near - limit)).sum(-1, keepdims=True)
    return total / abs(total)


def window(values):
    """Returns: sums over 3 x 3 pixels, cut off at the edges"""
    for axis in 0, 1:
        total = values.copy()
        ahead, behind = [slice(None)] * 2, [slice(None)] * 2
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        total[tuple(behind)] += values[tuple(ahead)]
        total[tuple(ahead)] += values[tuple(behind)]
        values = total
    return values


def products_of(z):
    products = z[1:] * z[:-1].conj()
    return products * bulk(products).conj()


def complex_decorrelation(z):
    power = abs(z) ** 2
    energy = ((power[1:] + power[:-1]) / 2).sum(0)
    return 1 - abs(window(products_of(z).sum(0))) / window(energy)


def doppler(z):
    return np.angle(window(products_of(z).sum(0)))


def decorrelation(z):
    amplitude = abs(z)
    power = amplitude ** 2
    return 1 - (2 * amplitude[1:] * amplitude[:-1] / (power[1:] + power[:-1])).mean(0)


def bands(z, n=4):
    sigma = n * np.sqrt(2 * np.log(2)) / np.pi
    reach = int(np.ceil(4 * sigma))
    at = np.arange(-reach, reach + 1)
    taps = np.zeros(2 * DEPTHS)
    taps[at] = np.exp(-0.5 * (at / sigma) ** 2)
    response, depths = np.fft.fft(taps), np.arange(DEPTHS)
    total = 0
    for band in range(n):
        moved = np.fft.fft(z * np.exp(2j * np.pi * (band + 0.5) / n * depths), 2 * DEPTHS)
        total = total + decorrelation(np.fft.ifft(moved * response)[..., :DEPTHS]) / n
    return total


def eigen(z):
    values = z.transpose(1, 2, 0)  # [A-scans, depths, repeats]
    gram = np.einsum("azr,azs->ars", values, values.conj())
    total = gram.copy()
    total[1:] += gram[:-1]
    total[:-1] += gram[1:]
    strongest = np.linalg.eigh(total)[1][:, :, -1:]
    rest = values - values @ strongest.conj() @ strongest.transpose(0, 2, 1)
    return (abs(rest) ** 2).mean(-1)


METHODS = {"mean": lambda z: (abs(z) ** 2).mean(0), "speckle-variance": lambda z: abs(z).var(0), "decorrelation": decorrelation,
           "decorrelation-4-bands": bands, "complex-decorrelation": complex_decorrelation, "doppler": doppler, "eigen": eigen}


def main():
    rng = np.random.default_rng(1)
    z = rng.uniform(-1, 1, (REPEATS, ASCANS, DEPTHS)) + 1j * rng.uniform(-1, 1, (REPEATS, ASCANS, DEPTHS))
    print(f"NumPy {np.__version__}")
    for name, method in METHODS.items():
        times = []
        for _turn in range(TURNS):
            begin = time.process_time()
            np.ascontiguousarray(method(z).T.astype(np.float32))  # as octangio writes it
            times.append(1e3 * (time.process_time() - begin))
        print(f"octangio-{ASCANS}x{DEPTHS}x{REPEATS}-{name:24} {statistics.median(times):8.2f} ms")


if __name__ == "__main__":
    main()
