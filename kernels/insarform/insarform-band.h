/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common band of two images. Both see one spectrum of the ground, shifted
 * by the frequency of the fringes along the range (Gatelli et al., "The
 * wavenumber shift in SAR interferometry", IEEE Transactions on Geoscience and
 * Remote Sensing 32(4), 1994), and by the Doppler centroids along the azimuth.
 * What only one of them sees has no coherence, and is left out.
 *
 * Patches of N x N samples, N = 64, begin at all multiples of N / 2 that
 * overlap the images. s1 and t = s2 exp (i f), f being the phase that is
 * removed, are multiplied by sin^2 (pi (x + 1/2) / N) sin^2 (pi (y + 1/2) / N)
 * there, 0 where one of them has no data. Their spectra have the centres c1 and
 * c2, in cycles a sample:
 *   along x  c1 = 0, c2 = arg (sum exp (i (f (x + 1, y) - f (x, y)))) / (2 pi)
 *   along y  of each, arg (sum z (x, y + 1) conj (z (x, y))) / (2 pi) (Madsen,
 *            "Estimating the Doppler centroid of SAR data", IEEE Transactions
 *            on Aerospace and Electronic Systems 25(2), 1989)
 * For a band of the width B, w1 and w2 of the bin k / N are
 *   max (0, min (1, N B / 2 + 1/2 - N |k / N - c|)), |.| being the distance on
 *   the circle of 1.
 * Bins of both images are multiplied by w1 w2 of both axes, and by sqrt (sum
 * w^2 / sum (w1 w2)^2), w being that of the image, so that its power stays
 * where the spectrum is flat. Without a common bin, sum (w1 w2)^2 < 1, a patch
 * is 0. The patches are added. Of t, exp (i f) is taken back. Samples without
 * data stay so. */
#pragma once

#include "imk/insarform.h"

enum { IMK_INSARFORM_BAND_PATCH = 64 };

typedef struct ImkInsarformBand ImkInsarformBand;

/* @config: checked */
ImkStatus imk_insarform_band_new (
    const ImkInsarformConfig *config, ImkInsarformBand **self, ImkError *error);
void imk_insarform_band_free (ImkInsarformBand *self);
void imk_insarform_band_rewind (ImkInsarformBand *self);

/* Returns: lines that can be pushed now */
uint32_t imk_insarform_band_room (const ImkInsarformBand *self);

/* Copies lines, no more than there is room for, and filters.
 * @phase: (nullable): f32, that is removed */
void imk_insarform_band_push (ImkInsarformBand *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase);

/* The next line of both images, CF32, and its phase, valid until the next call.
 * Returns: false: more lines have to be pushed before */
bool imk_insarform_band_pull (ImkInsarformBand *self, ImkImage *reference,
    ImkImage *secondary, ImkImage *phase);
