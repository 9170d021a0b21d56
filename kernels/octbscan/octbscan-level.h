/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From an intensity to a level, the same operations on both backends. */
#pragma once

#include "imk/octbscan.h"

#ifdef __CUDACC__
#define IMK_OCTBSCAN_INLINE static __host__ __device__ __forceinline__
#else
#define IMK_OCTBSCAN_INLINE static inline __attribute__ ((always_inline))
#endif

/* Intensities below have the dB of this one. */
#define IMK_OCTBSCAN_LEAST 1e-20f

/* A spectrum with a sample beyond this, or with a NaN, has no A-scan: its sums
 * would not fit into float32. */
#define IMK_OCTBSCAN_MOST_SAMPLE 1e15f

IMK_OCTBSCAN_INLINE int
imk_octbscan_is_sound (float sample)
{
  return sample <= IMK_OCTBSCAN_MOST_SAMPLE &&
         sample >= -IMK_OCTBSCAN_MOST_SAMPLE;
}

/* A mean in two parts. float32 has 1/256 of a count left at 65535; what that
 * leaves of a mean would be the same in all A-scans, and so a layer. */
IMK_OCTBSCAN_INLINE void
imk_octbscan_split (double mean, float *high, float *low)
{
  *high = (float) mean;
  *low = (float) (mean - *high);
}

typedef union ImkOctbscanBits {
  float value;
  uint32_t bits;
} ImkOctbscanBits;

/* Rank statistics count intensities by the upper 16 bits of the float, which
 * rise with it: 8 bits of exponent, 7 of mantissa and a sign that is 0; and one
 * more of mantissa in the place of the sign. */
#define IMK_OCTBSCAN_N_BINS 65536u

IMK_OCTBSCAN_INLINE uint32_t
imk_octbscan_bin (float intensity)
{
  ImkOctbscanBits b;

  b.value = intensity;
  return b.bits >> 15;
}

IMK_OCTBSCAN_INLINE float
imk_octbscan_bin_start (uint32_t bin)
{
  ImkOctbscanBits b;

  b.bits = bin << 15;
  return b.value;
}

/* No negative value and no NaN comes out, both are 0. */
IMK_OCTBSCAN_INLINE float
imk_octbscan_intensity (float re, float im)
{
  float i = re * re + im * im;

  return i > 0 ? i : 0;
}

/* 10 log10 (x): the mantissa is brought to [sqrt (1/2), sqrt (2)), where
 * ln m = 2 atanh t, t = (m - 1) / (m + 1), |t| < 0.172, needs five terms for
 * 1e-9. */
IMK_OCTBSCAN_INLINE float
imk_octbscan_db (float intensity)
{
#ifdef __CUDA_ARCH__
  /* Within 2e-6 dB, which float32 resolves up to 16 dB, in a tenth of the
   * instructions. */
  return 3.01029996f * __log2f (intensity > IMK_OCTBSCAN_LEAST
                                    ? intensity
                                    : IMK_OCTBSCAN_LEAST);
#else
  const uint32_t root_half = 0x3f3504f3;
  ImkOctbscanBits b;
  float exponent, t, t2, series;

  b.value = intensity > IMK_OCTBSCAN_LEAST ? intensity : IMK_OCTBSCAN_LEAST;
  exponent = (float) ((int32_t) (b.bits - root_half) >> 23);
  b.bits -= (uint32_t) ((int32_t) (b.bits - root_half) >> 23) << 23;
  t = (b.value - 1.0f) / (b.value + 1.0f);
  t2 = t * t;
  series = t2 * (1.0f / 9.0f) + 1.0f / 7.0f;
  series = t2 * series + 0.2f;
  series = t2 * series + 1.0f / 3.0f;
  series = t2 * series + 1.0f;
  return exponent * 3.01029996f + t * series * 8.68588964f;
#endif
}

/* Percentiles of the range auto: black, white in dB, white of linear images. */
#define IMK_OCTBSCAN_AUTO_BLACK 30.0
#define IMK_OCTBSCAN_AUTO_WHITE 99.9
#define IMK_OCTBSCAN_AUTO_LINEAR_WHITE 99.7

IMK_OCTBSCAN_INLINE uint64_t
imk_octbscan_rank (double percent, uint64_t n)
{
  return (uint64_t) (percent / 100 * (double) (n - 1) + 0.5);
}

/* The ranks of the same three among @n intensities, 1 at least. */
IMK_OCTBSCAN_INLINE void
imk_octbscan_ranks (const ImkOctbscanConfig *c, uint64_t n, uint64_t ranks[3])
{
  bool is_auto = c->range == IMK_OCTBSCAN_RANGE_AUTO;
  double white = is_auto ? IMK_OCTBSCAN_AUTO_LINEAR_WHITE : c->percent_max;

  ranks[0] =
      imk_octbscan_rank (is_auto ? IMK_OCTBSCAN_AUTO_BLACK : c->percent_min, n);
  ranks[1] =
      imk_octbscan_rank (is_auto ? IMK_OCTBSCAN_AUTO_WHITE : c->percent_max, n);
  ranks[2] = imk_octbscan_rank (white, n);
}

/* The ends of an image with another range than a fixed one. @found: in the
 * image, the intensities of black, of white and of white in linear images;
 * @ends: (inout): those of the configuration, which the mean of AUTO is of */
IMK_OCTBSCAN_INLINE void
imk_octbscan_ends (
    const ImkOctbscanConfig *c, const float found[3], float ends[4])
{
  const float own[4] = {imk_octbscan_db (found[0]), imk_octbscan_db (found[1]),
      found[0], found[2]};
  bool follows = c->range == IMK_OCTBSCAN_RANGE_AUTO && c->auto_bscans > 0;

  for (int i = 0; i < 4; i++)
    if (!follows)
      ends[i] = own[i];
    else if (found[1] > IMK_OCTBSCAN_LEAST)
      ends[i] += (own[i] - ends[i]) / (float) (c->auto_bscans + 1);
}

/* Those of the configuration, in the types of images. */
IMK_OCTBSCAN_INLINE void
imk_octbscan_fixed_ends (const ImkOctbscanConfig *c, float ends[4])
{
  ends[0] = (float) c->range_min;
  ends[1] = (float) c->range_max;
  ends[2] = (float) c->linear_min;
  ends[3] = (float) c->linear_max;
}

/* What turns a value into a level of an image of u8 or u16:
 * (value - low) * factor, clamped. */
typedef struct ImkOctbscanLevels {
  float low, factor, maximum;
} ImkOctbscanLevels;

IMK_OCTBSCAN_INLINE ImkOctbscanLevels
imk_octbscan_levels (float low, float high, ImkType type)
{
  ImkOctbscanLevels l;

  l.low = low;
  l.maximum = type == IMK_TYPE_U8 ? 255.0f : 65535.0f;
  l.factor = high > low ? l.maximum / (high - low) : 0;
  return l;
}

/* Rounded to the nearest, halves up. */
IMK_OCTBSCAN_INLINE uint32_t
imk_octbscan_level (ImkOctbscanLevels l, float value)
{
  float level = (value - l.low) * l.factor;

  level = level > 0 ? level : 0;
  level = level < l.maximum ? level : l.maximum;
  return (uint32_t) (int32_t) (level + 0.5f);
}
