/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter of Goldstein and Werner ("Radar interferogram filtering for
 * geophysical applications", Geophysical Research Letters 25, 1998), on rows of
 * cells.
 *
 * Patches of N x N cells begin at all multiples of N / 4 that overlap the
 * image. The spectrum Z of exp (i phase) of a patch, 0 where there are no
 * cells and no data, becomes Z (S / max S)^alpha; S is the mean of |Z| over 3 x
 * 3 bins, the spectrum being periodic. The patches are added with the weights
 * sin^2 (pi (x + 1/2) / N) sin^2 (pi (y + 1/2) / N). The phase of the sum
 * becomes that of the cell. Its amplitude and the other channels stay; so do
 * cells without data, and those whose sum is 0. */
#pragma once

#include "imk/insarform.h"

typedef struct ImkInsarformFilter ImkInsarformFilter;

/* @config: checked */
ImkStatus imk_insarform_filter_new (const ImkInsarformConfig *config,
    ImkInsarformFilter **self, ImkError *error);
void imk_insarform_filter_free (ImkInsarformFilter *self);
void imk_insarform_filter_rewind (ImkInsarformFilter *self);

/* Returns: whether a row can be pulled; if not, one can be pushed, until all
 * have been */
bool imk_insarform_filter_is_ready (const ImkInsarformFilter *self);

/* Both: [width][IMK_INSARFORM_N_CHANNELS]. */
void imk_insarform_filter_push (ImkInsarformFilter *self, const float *row);
void imk_insarform_filter_pull (ImkInsarformFilter *self, float *row);
