/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a chain on the CPU, a block of spectra at a time. */
#pragma once

#include "octbscan/cpu/loops.h"

#include "imk/fft.h"

typedef struct ImkOctbscanFft ImkOctbscanFft;

/* Of @n points. With plans by measurement the last digits would change from run
 * to run. */
ImkStatus imk_octbscan_plan_transform (
    uint32_t n, ImkFftDirection direction, ImkFft **plan, ImkError *error);

/* Spectra of one camera without their mean, and the outputs of each: n_depths
 * intensities, n_depths complex numbers, or both; NULL for no output. */
typedef struct ImkOctbscanBlock {
  uint32_t camera;
  uint32_t n; /* 1 .. IMK_OCTBSCAN_N_LANES */
  const float *samples[IMK_OCTBSCAN_N_LANES];
  float *intensity[IMK_OCTBSCAN_N_LANES];
  float *complex[IMK_OCTBSCAN_N_LANES];
} ImkOctbscanBlock;

ImkStatus imk_octbscan_fft_new (
    const ImkOctbscanConfig *config, ImkOctbscanFft **self, ImkError *error);

/* Returns: bytes of scratch for one thread; aligned to 64 bytes, filled with 0
 * once */
size_t imk_octbscan_fft_scratch_size (const ImkOctbscanFft *self);

/* Any thread. Spectra 2 i and 2 i + 1 share a transform: each affects the
 * rounding of the other, nothing else. */
ImkStatus imk_octbscan_fft_run (ImkOctbscanFft *self,
    const ImkOctbscanBlock *block, float *scratch, ImkError *error);

/* Sets the live dispersion, see ImkOctbscanConfig. No block may be running. */
void imk_octbscan_fft_tune (ImkOctbscanFft *self, const double *live);

/* @self may be NULL. */
void imk_octbscan_fft_free (ImkOctbscanFft *self);
