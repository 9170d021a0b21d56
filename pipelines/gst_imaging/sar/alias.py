# SPDX-License-Identifier: LGPL-2.1-or-later
"""Are real samples, as amplitudes, aliased? Their spectrum is twice as wide as that of the complex samples they were detected of. Beyond
the Nyquist frequency it is folded, and draws offsets towards whole pixels: docs/reference/insarxcorr.md, "Aliased amplitudes"."""
from .. import library

SIDE = 64  # samples of a block
BANDS, ACROSS = 32, 8  # blocks that are looked at in an image, at most about
EDGE = 3 / 8  # cycles a sample: what lies above is near the Nyquist frequency; 1/4 of white noise does
MOST = 0.1  # of the power
# Shares of the power, and how far the offsets of speckle are drawn at a quarter of a pixel.
SHARES, DRAWN = (0.07, 0.1, 0.13, 0.19, 0.22, 0.23), (0.01, 0.02, 0.05, 0.11, 0.17, 0.23)
AXES = "range", "azimuth"


class Spectrum:
    """Of the image that goes through a pad: the mean share of power near the Nyquist frequency, range first. Blocks count by their
    contrast, as a flat one has noise alone."""

    def __init__(self, pad):
        self.np, self.held, self.line, self.next = None, b"", 0, 0
        self.sum, self.weight = 0.0, 0.0
        pad.add_probe(library.gstreamer().PadProbeType.BUFFER, self.on_buffer)

    def on_buffer(self, pad, info):
        caps, buffer = pad.get_current_caps().get_structure(0), info.get_buffer()
        if caps.get_value("format") == "f32":
            self.take(buffer.extract_dup(0, buffer.get_size()), caps.get_value("width"), caps.get_value("height"))
        return library.gstreamer().PadProbeReturn.OK

    def take(self, data, width, height):
        self.np = self.np or library.numpy()  # complex samples need none
        self.held += data
        lines = self.np.frombuffer(self.held, "<f4", len(self.held) // (4 * width) * width).reshape(-1, width)
        while self.line + len(lines) >= self.next + SIDE:
            self.add(lines[self.next - self.line:][:SIDE])
            self.next += max(SIDE, height // BANDS)
        used = min(self.next - self.line, len(lines))
        self.line += used
        self.held = self.held[4 * width * used:]

    def add(self, lines):
        np = self.np
        window = np.hanning(SIDE + 2)[1:-1]
        near = np.abs(np.fft.fftfreq(SIDE)) > EDGE
        for left in range(0, lines.shape[1] - SIDE + 1, max(SIDE, lines.shape[1] // ACROSS)):
            block = lines[:, left:left + SIDE].astype(np.float64)
            if not np.isfinite(block).all() or (block == 0).mean() > MOST:  # no data
                continue
            power = np.abs(np.fft.fft2((block - block.mean()) * window * window[:, None])) ** 2
            contrast = block.std()
            if contrast > 0 and np.isfinite(contrast) and power.sum() > 0:
                self.sum += contrast * np.array([power[:, near].sum(), power[near].sum()]) / power.sum()
                self.weight += contrast

    def shares(self):
        """Returns: of range and azimuth; None of complex samples, and where no block has data"""
        return self.sum / self.weight if self.weight else None


def watch(pipeline, name):
    """Returns: the spectra of the images of an insarxcorr, which are there when the pipeline has played"""
    element = pipeline.get_by_name(name)
    return [Spectrum(element.get_static_pad(role)) for role in ("reference", "secondary")]


def tell(spectra, report, warn):
    """A figure for each axis, and a warning. report: None for the warning alone"""
    found = [shares for shares in (spectrum.shares() for spectrum in spectra) if shares is not None]
    if not found:
        return
    np = library.numpy()
    shares = np.max(found, 0)
    for axis, share in zip(AXES, shares) if report else ():
        report.figure(f"power near the Nyquist frequency, {axis}", 100 * float(share), "%", at_most=100 * MOST,
                      about="of the real samples, of the image that has more: above 3/8 of a cycle a sample; white noise has 25 %. Beyond,"
                      " amplitudes are aliased")
    bad = [axis for axis, share in zip(AXES, shares) if share > MOST]
    if bad:
        worst = float(shares.max())
        warn(f"The real samples have {100 * worst:.0f} % of their power near the Nyquist frequency, in {' and '.join(bad)}: they are aliased, or noise."
             f" Aliased amplitudes draw offsets towards whole pixels, here by up to {np.interp(worst, SHARES, DRAWN):.2f} pixel, which no"
             " expected error tells. Oversample the complex images twice before you detect them, or give the complex images.")
