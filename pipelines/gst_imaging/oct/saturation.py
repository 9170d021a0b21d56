# SPDX-License-Identifier: LGPL-2.1-or-later
"""The share of samples at the end of what a digitizer gives. Nobody tells its end, so that the samples do: clipped ones pile up in one value."""
from .. import library

FULL = (255, 1023, 4095, 16383, 65535, 1023 << 6, 4095 << 4, 16383 << 2)  # the largest of 8 to 16 bits, also those in the high bits
MOST = 0.001  # share of the samples
NEXT = 8  # values, beside the last one
PILED, THIN = 4, 1  # times the samples of each of these: above, samples are clipped; below, they are not
BAND = 64  # of the range: samples of floats that are beside the last one
CHUNK = 1 << 20


class End:
    """The largest value that was seen, and how many samples have it"""

    def __init__(self, sign):
        """sign: -1 for the smallest one"""
        self.sign, self.value, self.n, self.n_beside, self.is_float = sign, None, 0, 0, False

    def add_floats(self, values, width):
        """width: of the band"""
        values, self.is_float = self.sign * values, True
        largest = float(values.max())
        if self.value is None or largest > self.value:
            self.value, self.n, self.n_beside = largest, 0, 0
        n = int((values == self.value).sum())
        self.n, self.n_beside = self.n + n, self.n_beside + int((values >= self.value - width).sum()) - n

    def set_counts(self, np, counts, first):
        """counts: of all values from first on"""
        levels = np.flatnonzero(counts)[::self.sign][::-1][:NEXT + 1]
        self.value, self.n = self.sign * (int(levels[0]) + first), int(counts[levels[0]])
        beside = counts[levels[1:]]
        self.n_beside = float(beside.mean()) if len(beside) else 0

    def is_clipped(self):
        """Returns: None where nothing tells"""
        if self.sign > 0 and self.value in FULL or self.n > PILED * self.n_beside > 0:
            return True
        return False if self.n < THIN * self.n_beside and not self.is_float else None  # the band of floats may have any number of values


class Saturation:
    """Takes samples of all types."""

    def __init__(self):
        self.n, self.counts, self.ends = 0, None, [End(1)]

    def add(self, values):
        np = library.numpy()
        self.n += values.size
        values = values.reshape(-1)
        for at in range(0, len(values), CHUNK):
            self.add_some(np, values[at:at + CHUNK])

    def add_some(self, np, values):
        kind = values.dtype.newbyteorder("=")
        if kind in (np.uint8, np.uint16, np.int16):
            signed = kind == np.int16
            self.first = -32768 if signed else 0
            counts = np.bincount(values.astype(np.intp) - self.first, minlength=65536)
            self.counts = counts if self.counts is None else self.counts + counts
            self.ends = [End(1), End(-1)] if signed else [End(1)]
        elif kind.kind in "uif":
            finite = values[np.isfinite(values)].astype(float)
            if finite.size and finite.min() < 0 and len(self.ends) == 1:
                self.ends.append(End(-1))
            for end in self.ends if finite.size else ():
                end.add_floats(finite, np.ptp(finite) / BAND)

    def result(self):
        """Returns: the share, None where it is not known, and a sentence about it"""
        np = library.numpy()
        for end in self.ends if self.counts is not None else ():
            end.set_counts(np, self.counts, self.first)
        seen = [end for end in self.ends if end.value is not None]
        if not seen:
            return None, "there are no samples of numbers"
        values = " or ".join(f"{end.sign * end.value:.6g}" for end in seen)
        share = sum(end.n for end in seen) / self.n
        verdicts = [end.is_clipped() for end in seen]
        if True in verdicts or share <= MOST:
            clipped = [end for end, verdict in zip(seen, verdicts) if verdict or share <= MOST]
            return sum(end.n for end in clipped) / self.n, f"of the spectra, with the value {values}, the end of all"
        if None not in verdicts:
            return 0.0, f"of the spectra: the value {values}, the end of all, has fewer samples than each value beside it"
        return None, f"{100 * share:.3g} % of the samples have the value {values}, the end of all; neither that is many more than those beside it, nor fewer"
