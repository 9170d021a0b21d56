/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done with a chunk of a row of SAMPLE_BITS, each option a loop of
 * constant length that compilers vectorise. A row is a sequence of samples; the
 * horizontal neighbours of a sample are `channels` samples away, and always
 * readable. */
#pragma once

#include <string.h>

#include "lapsharpen/cpu/loops.h"

#define INLINE static inline __attribute__ ((always_inline))

/* Without the instruction fmaf () is a function, slower than a division. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAVE_FMA 1
#else
#define HAVE_FMA 0
#endif

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

enum {
  REACH = IMK_LAPSHARPEN_MAX_KERNEL / 2,
  ABOVE = REACH - 1,
  HERE = REACH,
  BELOW = REACH + 1,
};

/* The narrowest types that hold L, the squares of a row, and what alpha makes
 * of it: a product of bytes fits 16 bits; float64 is exact for products of 16
 * bits, and there are vectors of it, but not of 64-bit products. */
#if SAMPLE_BITS == 8
typedef uint8_t Sample;
typedef int16_t Laplacian;
typedef int32_t Squares;
typedef uint16_t Weights, Product;
typedef uint32_t Products;
typedef int32_t Numerator;
#else
typedef uint16_t Sample;
typedef int32_t Laplacian;
typedef int64_t Squares;
typedef int32_t Weights;
typedef double Product, Products, Numerator;
#endif

/* The samples of a chunk in its row, HERE, and in those above and below as far
 * as the rule reaches; whole counts. */
typedef struct Rows {
  const Sample *row[IMK_LAPSHARPEN_MAX_KERNEL];
} Rows;

/* The samples of a chunk with the pixels on either side. */
typedef struct Line {
  Sample samples[CHUNK + 2 * 4 * REACH];
} Line;

/* What a thread has for its rows. */
typedef struct Band {
  const Work *work;
  const ImkLapsharpenRule *rule;
  Sample filtered[CHUNK];  /* all bits: sharpen the sample; 0: copy it */
  int16_t measured[CHUNK]; /* -1: sum the sample; 0: ignore it */
  Line lines[IMK_LAPSHARPEN_MAX_KERNEL]; /* copies of rows */
  ImkLapsharpenSums sums;
} Band;

/* The rows from sample @i on. */
INLINE Rows
rows_at (const ImkLapsharpenRule *rule, const Rows *rows, size_t i)
{
  Rows at = {};

  for (uint32_t j = HERE - rule->reach; j <= HERE + rule->reach; j++)
    at.row[j] = rows->row[j] + i;
  return at;
}

/* --- the Laplacian -------------------------------------------------------- */

INLINE void
get_laplacian (const ImkLapsharpenRule *rule, const Rows *rows, Laplacian *l)
{
  const ptrdiff_t c = rule->channels;
  const Sample *a = rows->row[ABOVE], *h = rows->row[HERE],
               *b = rows->row[BELOW];

  if (rule->neighbours == 4)
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = (Laplacian) (4 * h[i] - (a[i] + b[i]) - (h[i - c] + h[i + c]));
  else
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = (Laplacian) (8 * h[i] - (a[i] + b[i]) - (h[i - c] + h[i + c]) -
                          (a[i - c] + a[i + c]) - (b[i - c] + b[i + c]));
}

/* The focus measure. @n: samples of the chunk that are in the row. 192 squares
 * of bytes fit 32 bits. */
INLINE void
measure (Band *band, const Laplacian *l, uint32_t n)
{
  Squares sum = 0, squares = 0;

  for (uint32_t i = 0; i < n; i++) {
    int32_t value = l[i] & band->measured[i];

    sum += value;
    squares += (Squares) value * value;
  }
  band->sums.sum += sum;
  band->sums.square_low += (uint64_t) squares;
}

/* --- the Laplacian weighted by alpha: v sum a_i - sum a_i v_i ------------- */

/* Samples with a pixel on either side; more, so that compilers do not warn. */
enum { WIDE = CHUNK + 64 };

/* The weight of the pixel of every sample of one row. Compilers vectorise loops
 * with a constant number of channels. */
INLINE void
spread_weights (
    const ImkLapsharpenRule *rule, const Sample *row, Sample *weights)
{
  const uint32_t c = rule->channels, channel = (uint32_t) rule->weight_channel;

  if (c == 4)
    for (uint32_t i = 0; i < CHUNK + 8; i += 4)
      for (uint32_t j = 0; j < 4; j++)
        weights[i + j] = row[i + channel];
  else
    for (uint32_t i = 0; i < CHUNK + 2 * c; i++)
      weights[i] = row[i / c * c + channel];
}

/* One row's part of the sums. */
INLINE void
add_weighted (const ImkLapsharpenRule *rule, const Sample *row, bool beside,
    bool middle, Weights *sum, Products *products)
{
  const ptrdiff_t c = rule->channels;
  const Sample *first = row - c;
  Sample weights[WIDE];
  Product product[WIDE];

  spread_weights (rule, first, weights);
  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++)
    product[i] = (Product) weights[i] * (Product) first[i];
  if (beside)
    for (ptrdiff_t i = 0; i < CHUNK; i++) {
      sum[i] = (Weights) (sum[i] + weights[i] + weights[i + 2 * c]);
      products[i] += (Products) product[i] + product[i + 2 * c];
    }
  if (middle)
    for (ptrdiff_t i = 0; i < CHUNK; i++) {
      sum[i] = (Weights) (sum[i] + weights[i + c]);
      products[i] += product[i + c];
    }
}

INLINE void
get_weighted (const ImkLapsharpenRule *rule, const Rows *rows, float *l)
{
  const bool diagonal = rule->neighbours == 8;
  const Sample *here = rows->row[HERE];
  const double maximum = rule->maximum, reciprocal = 1 / maximum;
  Weights sum[CHUNK] = {0};
  Products products[CHUNK] = {0};
  Numerator numerator[CHUNK];

  add_weighted (rule, rows->row[ABOVE], diagonal, true, sum, products);
  add_weighted (rule, rows->row[HERE], true, false, sum, products);
  add_weighted (rule, rows->row[BELOW], diagonal, true, sum, products);
  for (ptrdiff_t i = 0; i < CHUNK; i++)
    numerator[i] =
        (Numerator) here[i] * (Numerator) sum[i] - (Numerator) products[i];
  if (HAVE_FMA && SAMPLE_BITS == 8)
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = imk_lapsharpen_weighted_u8 (
          (float) numerator[i], (float) maximum, (float) reciprocal);
  else
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = imk_lapsharpen_weighted_by ((double) numerator[i], reciprocal);
}

/* --- the new samples ------------------------------------------------------ */

/* @l: Laplacian, or float when it is not @whole */
INLINE void
sharpen_with (const ImkLapsharpenRule *rule, const Sample *here, const void *l,
    bool whole, float threshold, bool edges, uint16_t *sharpened)
{
  const float amount = rule->amount;
  const int32_t maximum = (int32_t) rule->maximum;

  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] = (uint16_t) imk_lapsharpen_sample (amount, threshold, edges,
        whole ? (float) ((const Laplacian *) l)[i] : ((const float *) l)[i],
        here[i], 0, maximum);
}

INLINE void
sharpen (const ImkLapsharpenRule *rule, const Sample *here, const void *l,
    bool whole, uint16_t *sharpened)
{
  const float threshold = rule->threshold;

  if (rule->edges)
    sharpen_with (rule, here, l, whole, threshold, true, sharpened);
  else if (threshold > 0)
    sharpen_with (rule, here, l, whole, threshold, false, sharpened);
  else
    sharpen_with (rule, here, l, whole, 0, false, sharpened);
}

INLINE void
sharpen_words_with (const ImkLapsharpenRule *rule, const Sample *here,
    const Laplacian *l, bool edges, uint16_t *sharpened)
{
  const uint32_t fraction = rule->fraction;
  const int16_t multiple = (int16_t) rule->multiple;
  const int16_t half = (int16_t) ((1u << fraction) / 2);
  const int16_t maximum = (int16_t) rule->maximum;
  const int16_t threshold = (int16_t) LEAST (rule->threshold, 2048); /* > |L| */

  for (uint32_t i = 0; i < CHUNK; i++) {
    int16_t magnitude = (int16_t) (l[i] < 0 ? -l[i] : l[i]);
    int16_t change = (int16_t) (multiple * (edges ? magnitude : l[i]));
    int16_t base = (int16_t) (edges ? 0 : here[i]);
    int16_t t = (int16_t) ((int16_t) (base << fraction) +
                           (magnitude < threshold ? 0 : change));

    t = (int16_t) (t + half) >> fraction;
    t = t < 0 ? 0 : t;
    sharpened[i] = (uint16_t) (t > maximum ? maximum : t);
  }
}

/* sharpen () of bytes for an amount m / 2^q, in 16 bits, see
 * imk_lapsharpen_find_fraction (). */
INLINE void
sharpen_words (const ImkLapsharpenRule *rule, const Sample *here,
    const Laplacian *l, uint16_t *sharpened)
{
  if (rule->edges)
    sharpen_words_with (rule, here, l, true, sharpened);
  else
    sharpen_words_with (rule, here, l, false, sharpened);
}

/* Copies the samples that are not filtered. */
INLINE void
merge (const Band *band, const Sample *here, const uint16_t *sharpened,
    Sample *out)
{
  const Sample *mask = band->filtered;

  for (uint32_t i = 0; i < CHUNK; i++)
    out[i] = (Sample) ((sharpened[i] & mask[i]) | (here[i] & ~mask[i]));
}

/* --- any kernel ----------------------------------------------------------- */

INLINE void
correlate (const ImkLapsharpenRule *rule, const Rows *rows, uint16_t *sharpened)
{
  const ptrdiff_t c = rule->channels, reach = rule->reach;
  const float *weight = rule->kernel;
  float sum[CHUNK] = {0}, line[WIDE];
  ImkLapsharpenRule own; /* a copy that no store can change */

  for (ptrdiff_t dy = -reach; dy <= reach; dy++) {
    for (ptrdiff_t i = 0; i < CHUNK + 2 * reach * c; i++)
      line[i] = rows->row[HERE + dy][i - reach * c];
    for (ptrdiff_t dx = 0; dx <= 2 * reach; dx++, weight++)
      for (ptrdiff_t i = 0; i < CHUNK; i++)
        sum[i] += *weight * line[i + dx * c];
  }
  own.edges = rule->edges;
  own.threshold = rule->threshold;
  own.amount = rule->amount;
  own.maximum = rule->maximum;
  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] = (uint16_t) imk_lapsharpen_correlated (
        &own, sum[i], rows->row[HERE][i], 0, (int32_t) own.maximum);
}

/* --- the 3x3 window ------------------------------------------------------- */

/* The least and the largest samples of the columns of a chunk and a pixel on
 * either side. */
INLINE void
get_columns (
    const ImkLapsharpenRule *rule, const Rows *rows, Sample *low, Sample *high)
{
  const ptrdiff_t c = rule->channels;
  const Sample *a = rows->row[ABOVE] - c, *h = rows->row[HERE] - c,
               *b = rows->row[BELOW] - c;

  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++) {
    Sample least = LEAST (a[i], b[i]), most = MOST (a[i], b[i]);

    low[i] = LEAST (least, h[i]);
    high[i] = MOST (most, h[i]);
  }
}

/* Contrast adaptive sharpening: multiplies @l by the gain. */
INLINE void
adapt (const ImkLapsharpenRule *rule, const Rows *rows, float *l)
{
  const ptrdiff_t c = rule->channels;
  const int32_t maximum = (int32_t) rule->maximum;
  const Sample *here = rows->row[HERE];
  Sample low[WIDE], high[WIDE];

  get_columns (rule, rows, low, high);
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    Sample beside = LEAST (here[i - c], here[i + c]);
    Sample least = LEAST (low[i], low[i + 2 * c]);
    Sample cross = LEAST (beside, low[i + c]);
    Sample most_beside = MOST (here[i - c], here[i + c]);
    Sample most = MOST (high[i], high[i + 2 * c]);
    Sample most_cross = MOST (most_beside, high[i + c]);

    least = LEAST (least, low[i + c]);
    most = MOST (most, high[i + c]);
    l[i] *= imk_lapsharpen_gain (cross + least, most_cross + most, maximum);
  }
}

/* Keeps filtered samples of @out within the least and the largest of their 3x3
 * windows. */
INLINE void
clamp_local (const Band *band, const Rows *rows, Sample *out)
{
  const ptrdiff_t c = band->rule->channels;
  Sample low[WIDE], high[WIDE];

  get_columns (band->rule, rows, low, high);
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    Sample least = LEAST (low[i], low[i + 2 * c]);
    Sample most = MOST (high[i], high[i + 2 * c]);
    Sample t = out[i];

    least = LEAST (least, low[i + c]);
    most = MOST (most, high[i + c]);
    t = MOST (t, least);
    t = LEAST (t, most);
    out[i] = band->filtered[i] ? t : out[i];
  }
}
