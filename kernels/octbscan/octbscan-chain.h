/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The strategy fft: from spectra to Z in three short transforms.
 *
 * What stands between them is sparse, as each step looks at neighbours only:
 * resampling at p_i takes a few of the upsampled samples. The long padded
 * transform has s M depths, and W of them are wanted. A transform of
 * P >= 1.5 W points gives these W, after each z_i has been spread over the few
 * points near i P / (s M) (a non-uniform transform: Dutt and Rokhlin 1993;
 * Kaiser-Bessel kernel: Fessler and Sutton 2003). So resampling, window, phase,
 * padding and spreading are one matrix of a few dozen samples a row, the band,
 * made in float64:
 *
 *   N pixels -> transform, spectrum of the kernel taken out -> G samples
 *     -> band -> P points -> transform, spectrum of the kernel taken out -> Z
 *
 * For the thesis' 832 samples at scale 4, G = 1280 and P = 2560, where the
 * thesis has 4096 and 16384. Without upsampling the first pair of transforms
 * is left out, with few zeros (s M <= 2 P) the spreading, unless s M has prime
 * factors above 7. P is such that the DC, cut off by the crop, is aliased to no
 * depth of the crop. */
#pragma once

#include "imk/octbscan.h"

IMK_BEGIN_DECLS

/* One matrix of complex weights on real samples. */
typedef struct ImkOctbscanBand {
  uint32_t n_taps;          /* samples a row, even */
  uint32_t *first;          /* [rows] index of the first, below G */
  float *re, *im;           /* [rows][n_taps] */
  float *turn_re, *turn_im; /* [N] taper times exp (i spectrum_phase), or NULL
                             */
} ImkOctbscanBand;

/* What a band is made of without d2 and d3. */
typedef struct ImkOctbscanTuner ImkOctbscanTuner;

typedef struct ImkOctbscanChain {
  uint32_t width;     /* N */
  uint32_t n_samples; /* G, or N without upsampling */
  bool upsamples;
  uint32_t n_points;    /* P */
  uint32_t n_rows;      /* of the bands; more than P when they wrap around */
  uint32_t first_point; /* of row 0; row j belongs to (first_point + j) % P */
  uint32_t n_depths;
  uint32_t first_bin; /* of depth 0; depth q belongs to (first_bin + q) % P */
  float *taper;       /* [N] */
  float *widen;       /* [N / 2 + 1] what bin +-f is multiplied by */
  float *finish;      /* [n_depths] */
  uint32_t n_cameras;
  ImkOctbscanBand *bands;
  ImkOctbscanTuner *tuners; /* [C], NULL without a live dispersion */
} ImkOctbscanChain;

/* @config has been checked. */
ImkStatus imk_octbscan_chain_new (
    const ImkOctbscanConfig *config, ImkOctbscanChain **self, ImkError *error);

/* Makes the bands of a chain with tuners for @live, pairs of d2 and d3. */
void imk_octbscan_chain_tune (ImkOctbscanChain *self, const double *live);

/* @self may be NULL. */
void imk_octbscan_chain_free (ImkOctbscanChain *self);

IMK_END_DECLS
