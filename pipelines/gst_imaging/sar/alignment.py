# SPDX-License-Identifier: LGPL-2.1-or-later
"""Brings the secondary of a pair into the geometry of its reference, and reports how well: what coregister and insar share."""
from . import field, lookside, told, warp
from .interferogram import add_pictures
from .measure import add_figures, check_fit


class Alignment:
    """offsets: measure.Offsets; rows: those of freq_xcorr.dat; dense: the Field of --warp, or None; words: the slcresample of interferogram.form()"""

    def __init__(self, options, this, raster=None, places=None):
        """this: the Work; raster: extension of a raster of the offsets, or None; places: the orbit.Images of the two, or None"""
        made, reference, fit = this.made, this.images[0], this.made.path("fit.txt")
        self.offsets = this.measure("text/x-gmtsar-xcorr", raster)
        check_fit(self.offsets, this.pair.secondary)
        self.rows = field.without(field.read_offsets(self.offsets.table), self.offsets.planes[7].ravel())
        if places:
            lookside.check(places, reference, self.offsets, made.warn)
        this.keep(self.offsets, "freq_xcorr.dat")
        field.write(made.path("field.svg"), *self.fitted())
        self.dense = warp.find_field(this.images, fit, options.taps, this) if options.warp else None
        if self.dense:
            self.dense.warn_of_few(made.warn)
        self.words = warp.resampling(reference, fit, options.taps, self.dense.save(made.path("")) if self.dense else [])

    def fitted(self):
        """Returns: the rows, the function of the fit and its least correlation, for pictures"""
        return self.rows, self.offsets.fit_function(), self.offsets.found["min-correlation"]


def report(options, this, summary, aligned):
    """Figures and pictures of an interferogram. aligned: the Alignment; None where the images were in one geometry"""
    made = this.made
    if aligned:
        add_figures(made.report, aligned.offsets, this.images[0])
    told.add_coherence(made, options, summary)
    add_pictures(made.report, options, this, summary)
    if aligned:
        if aligned.dense:
            told.add_warp(made.report, aligned.dense)
        told.add_field(made.report, *aligned.fitted())
        told.add_residuals(made.report, *aligned.fitted())
