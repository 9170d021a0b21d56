/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a chain on the CPU, a block of spectra at a time. */
#pragma once

#include "octbscan/octbscan-lanes.h"

typedef struct ImkOctbscanFft ImkOctbscanFft;

/* Spectra of one camera, mean taken off, and what is wanted of each: n_depths
 * intensities, n_depths complex numbers, or both; NULL is not wanted. */
typedef struct ImkOctbscanBlock {
  uint32_t camera;
  uint32_t n; /* 1 .. IMK_OCTBSCAN_N_LANES */
  const float *samples[IMK_OCTBSCAN_N_LANES];
  float *intensity[IMK_OCTBSCAN_N_LANES];
  float *complex[IMK_OCTBSCAN_N_LANES];
} ImkOctbscanBlock;

ImkStatus imk_octbscan_fft_new (
    const ImkOctbscanConfig *config, ImkOctbscanFft **self, ImkError *error);

/* Returns: bytes that a thread needs to run blocks; aligned to 64, and 0 to
 * begin with */
size_t imk_octbscan_fft_scratch_size (const ImkOctbscanFft *self);

/* Any thread; what a spectrum gives depends on its partner, the one after an
 * even one, by rounding alone. */
ImkStatus imk_octbscan_fft_run (ImkOctbscanFft *self,
    const ImkOctbscanBlock *block, float *scratch, ImkError *error);

/* Another live dispersion, see ImkOctbscanConfig. Nothing is running. */
void imk_octbscan_fft_tune (ImkOctbscanFft *self, const double *live);

/* @self may be NULL. */
void imk_octbscan_fft_free (ImkOctbscanFft *self);
