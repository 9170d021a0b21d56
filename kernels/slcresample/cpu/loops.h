/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of loops.c, which is compiled once for each instruction set. */
#pragma once

#include "slcresample/slcresample-private.h"

#define MAX_TAPS IMK_SLCRESAMPLE_MAX_TAPS
#define N_PHASES IMK_SLCRESAMPLE_N_PHASES

enum {
  BLOCK = 256, /* output columns */
  /* input columns of a block: the largest stretch, and the taps */
  MAX_COLUMNS = BLOCK + BLOCK / 4 + MAX_TAPS + 4,
  PADDING = IMK_SLCRESAMPLE_PADDING,
};

/* Equidistant positions along a line, each the first of its taps and a
 * fraction: first + steps / N_PHASES, and a part of a step. */
typedef struct Places {
  int32_t first; /* not above that of any */
  int32_t steps[MAX_COLUMNS];
  float parts[MAX_COLUMNS + PADDING];
} Places;

/* A run: tap k of sample i is re[k][i] and im[k][i], its weight between those
 * of one step and the next. */
typedef struct Run {
  const float *re[MAX_TAPS], *im[MAX_TAPS];
  const float *weights, *next_weights; /* [n_taps] */
  const float *parts;                  /* of a step, [n] */
  uint32_t n_taps, n;
} Run;

typedef struct ImkSlcresampleLoops {
  /* The sums of a run; writes whole vectors, up to PADDING samples more. */
  void (*sum) (const Run *run, float *out_re, float *out_im);
  /* @n positions from @at on, @distance apart, neither negative nor far away */
  void (*divide) (double at, double distance, uint32_t n, Places *places);
} ImkSlcresampleLoops;

extern const ImkSlcresampleLoops imk_slcresample_scalar, imk_slcresample_neon,
    imk_slcresample_avx2, imk_slcresample_avx512;
