/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which patches are significant, from what was measured: flags that a backend
 * sets follow from the config alone. */
#pragma once

#include "imk/insarxcorr.h"

IMK_BEGIN_DECLS

#define IMK_INSARXCORR_JUDGE_BINS 256

/**
 * ImkInsarxcorrJudge: (a threshold that follows the images)
 * @config: complete
 * @follows: whether the threshold does
 * @threshold: correlation, 0..100, that is significant
 * @n, @bins: patches so far, by the logarithm of sigma / what the config
 *   assumes, sigma being the scatter of correlations of noise
 *
 * PRECISE: where nothing correlates, a surface has both signs alike, and
 * negative values count as 0: so its mean square, the square of the largest
 * value / SNR, is sigma^2 / 2. Sigma depends on the bandwidth and the weights
 * of the spectrum, and on texture. The median of all patches so far gives the
 * bandwidth of an even spectrum of the same sigma, 1/3 to 1, from which the
 * threshold follows. */
typedef struct ImkInsarxcorrJudge {
  ImkInsarxcorrConfig config;
  bool follows;
  double threshold;
  uint64_t n, bins[IMK_INSARXCORR_JUDGE_BINS];
} ImkInsarxcorrJudge;

/* @config: complete
 * @follows: whether the threshold of @config was IMK_INSARXCORR_SIGNIFICANT
 *   before; it does with PRECISE alone */
IMK_API void imk_insarxcorr_judge_init (
    ImkInsarxcorrJudge *self, const ImkInsarxcorrConfig *config, bool follows);

/**
 * imk_insarxcorr_judge_row: (corrects the flags of patches)
 * @values: [@n_patches][IMK_INSARXCORR_N_FIELDS]
 *
 * Renews LOW, by the threshold of all patches so far. COMPAT with
 * IMK_INSARXCORR_TIME4: patches with data, whose correlation is 0 because g is
 * nowhere above 1/2, become LOW instead of NO_DATA. */
IMK_API void imk_insarxcorr_judge_row (
    ImkInsarxcorrJudge *self, double *values, uint32_t n_patches);

IMK_END_DECLS
