/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of loops.c, which is compiled once for each instruction set.
 * Complex numbers are real part, imaginary part. */
#pragma once

#include "octbscan/octbscan-chain.h"
#include "octbscan/octbscan-level.h"

/* Spectra that the band is applied to at a time: a vector register of AVX-512,
 * a cache line. Sample g of lane l is at [g * N_LANES + l]. */
enum { IMK_OCTBSCAN_N_LANES = 16 };

typedef struct ImkOctbscanLoops {
  /* to[i] = (a[i] - high[i]) - low[i], the two parts of a mean: the first
   * difference is exact near the mean; types u8, u16, i16, f32 */
  void (*load[4]) (const void *a, const float *high, const float *low,
      uint32_t n, float *to);
  /* sums[i] += a[i] */
  void (*sum[4]) (const void *a, uint32_t n, double *sums);
  /* The mean of a[i - reach] .. a[i + reach], fewer at the ends, in two parts;
   * @room: n + 1 float64 */
  void (*roll[4]) (const void *a, uint32_t n, uint32_t reach, void *room,
      float *high, float *low);
  /* Returns: whether all samples are within IMK_OCTBSCAN_MOST_SAMPLE */
  bool (*is_sound) (const float *a, uint32_t n);
  /* Two spectra as one complex spectrum, times @taper. */
  void (*pack) (const float *a, const float *b, const float *taper, uint32_t n,
      float *to);
  /* A spectrum times a complex factor. */
  void (*turn) (
      const float *a, const float *re, const float *im, uint32_t n, float *to);
  /* Spreads @n bins to @wide bins; the middle is 0. */
  void (*widen) (const float *bins, const float *factors, uint32_t n,
      uint32_t wide, float *to);
  /* @lanes: real parts of the pair or of the spectrum, [G + taps][lanes] */
  void (*band) (const ImkOctbscanChain *chain, const ImkOctbscanBand *band,
      const float *re_lanes, const float *im_lanes, float *points,
      size_t pitch);
  /* |bins * finish|^2 and bins * finish */
  void (*intensity) (
      const float *bins, const float *finish, uint32_t n, float *to);
  void (*complex) (
      const float *bins, const float *finish, uint32_t n, float *to);
  /* out[d] = matrix[d] . a: @matrix is [n_depths][n] complex */
  void (*apply) (const float *matrix, uint32_t n_depths, uint32_t n,
      const float *const *a, uint32_t n_lanes, float *const *z);
  void (*db) (const float *intensity, uint32_t n, float *to);
  void (*levels_u8) (
      const float *values, uint32_t n, ImkOctbscanLevels levels, uint8_t *to);
  void (*levels_u16) (
      const float *values, uint32_t n, ImkOctbscanLevels levels, uint16_t *to);
} ImkOctbscanLoops;

extern const ImkOctbscanLoops imk_octbscan_scalar, imk_octbscan_neon,
    imk_octbscan_avx2, imk_octbscan_avx512;

/* In fft.c. @loops: (out): those for this processor; Returns: as imk_cpu_level
 * () */
ImkStatus imk_octbscan_choose_loops (
    const ImkOctbscanLoops **loops, ImkError *error);
