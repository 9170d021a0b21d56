/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done with a chunk of a row, each option a loop of constant length
 * that compilers vectorise. A row is a sequence of samples; the horizontal
 * neighbours of a sample are `channels` samples away, and always readable. */
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

/* The samples of a chunk in its row, HERE, and in those above and below as far
 * as the rule reaches; whole counts of the type of the frame. */
typedef struct Rows {
  const void *row[IMK_LAPSHARPEN_MAX_KERNEL];
} Rows;

INLINE Rows
rows_at (const ImkLapsharpenRule *rule, const Rows *rows, size_t offset)
{
  Rows at = {};

  for (uint32_t i = HERE - rule->reach; i <= HERE + rule->reach; i++)
    at.row[i] = (const uint8_t *) rows->row[i] + offset;
  return at;
}

/* --- the Laplacian, in the narrowest type that holds it --------------------
 */

INLINE void
get_laplacian_u8 (const ImkLapsharpenRule *rule, const Rows *rows, int16_t *l)
{
  const ptrdiff_t c = rule->channels;
  const uint8_t *a = rows->row[ABOVE], *h = rows->row[HERE],
                *b = rows->row[BELOW];

  if (rule->neighbours == 4)
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = (int16_t) (4 * h[i] - (a[i] + b[i]) - (h[i - c] + h[i + c]));
  else
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = (int16_t) (8 * h[i] - (a[i] + b[i]) - (h[i - c] + h[i + c]) -
                        (a[i - c] + a[i + c]) - (b[i - c] + b[i + c]));
}

INLINE void
get_laplacian_u16 (const ImkLapsharpenRule *rule, const Rows *rows, int32_t *l)
{
  const ptrdiff_t c = rule->channels;
  const uint16_t *a = rows->row[ABOVE], *h = rows->row[HERE],
                 *b = rows->row[BELOW];

  if (rule->neighbours == 4)
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = 4 * h[i] - (a[i] + b[i]) - (h[i - c] + h[i + c]);
  else
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = 8 * h[i] - (a[i] + b[i]) - (h[i - c] + h[i + c]) -
             (a[i - c] + a[i + c]) - (b[i - c] + b[i + c]);
}

/* --- the focus measure -----------------------------------------------------
 */

/* @n: samples of the chunk that are in the row. 192 squares of u8 fit 32 bits.
 */
INLINE void
measure_u8 (
    const Work *work, const int16_t *l, uint32_t n, ImkLapsharpenSums *sums)
{
  int32_t sum = 0, squares = 0;

  for (uint32_t i = 0; i < n; i++) {
    int32_t value = l[i] & work->measured[i];

    sum += value;
    squares += value * value;
  }
  sums->sum += sum;
  sums->square_low += (uint32_t) squares;
}

/* Of a row the squares stay below 2^18 * 2^38. */
INLINE void
measure_u16 (
    const Work *work, const int32_t *l, uint32_t n, ImkLapsharpenSums *sums)
{
  int64_t sum = 0, squares = 0;

  for (uint32_t i = 0; i < n; i++) {
    int32_t value = l[i] & work->measured[i];

    sum += value;
    squares += (int64_t) value * value;
  }
  sums->sum += sum;
  sums->square_low += (uint64_t) squares;
}

/* --- the Laplacian weighted by alpha: v sum a_i - sum a_i v_i --------------
 */

/* Samples with a pixel on either side; more, so that compilers do not warn. */
enum { WIDE = CHUNK + 64 };

INLINE int32_t
value_at (const void *row, ImkType type, ptrdiff_t i)
{
  return type == IMK_TYPE_U8 ? ((const uint8_t *) row)[i]
                             : ((const uint16_t *) row)[i];
}

/* The weight of the pixel of every sample of one row. Compilers vectorise loops
 * with a constant number of channels. */
INLINE void
spread_weights (const ImkLapsharpenRule *rule, const void *row, ImkType type,
    uint16_t *weights)
{
  const uint32_t c = rule->channels, channel = (uint32_t) rule->weight_channel;

  if (c == 4)
    for (uint32_t i = 0; i < CHUNK + 8; i += 4)
      for (uint32_t j = 0; j < 4; j++)
        weights[i + j] = (uint16_t) value_at (row, type, i + channel);
  else
    for (uint32_t i = 0; i < CHUNK + 2 * c; i++)
      weights[i] = (uint16_t) value_at (row, type, i / c * c + channel);
}

/* One row's part of the sums; a product of bytes fits 16 bits. */
INLINE void
add_weighted_u8 (const ImkLapsharpenRule *rule, const void *row, bool beside,
    bool middle, uint16_t *sum, uint32_t *products)
{
  const ptrdiff_t c = rule->channels;
  const uint8_t *first = (const uint8_t *) row - c;
  uint16_t weights[WIDE], product[WIDE];

  spread_weights (rule, first, IMK_TYPE_U8, weights);
  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++)
    product[i] = (uint16_t) (weights[i] * first[i]);
  if (beside)
    for (ptrdiff_t i = 0; i < CHUNK; i++) {
      sum[i] = (uint16_t) (sum[i] + weights[i] + weights[i + 2 * c]);
      products[i] += (uint32_t) product[i] + product[i + 2 * c];
    }
  if (middle)
    for (ptrdiff_t i = 0; i < CHUNK; i++) {
      sum[i] = (uint16_t) (sum[i] + weights[i + c]);
      products[i] += product[i + c];
    }
}

INLINE void
get_weighted_u8 (const ImkLapsharpenRule *rule, const Rows *rows, float *l)
{
  const bool diagonal = rule->neighbours == 8;
  const uint8_t *here = rows->row[HERE];
  const float maximum = (float) rule->maximum, reciprocal = 1 / maximum;
  int32_t numerator[CHUNK];
  uint16_t sum[CHUNK] = {0};
  uint32_t products[CHUNK] = {0};

  add_weighted_u8 (rule, rows->row[ABOVE], diagonal, true, sum, products);
  add_weighted_u8 (rule, rows->row[HERE], true, false, sum, products);
  add_weighted_u8 (rule, rows->row[BELOW], diagonal, true, sum, products);
  for (ptrdiff_t i = 0; i < CHUNK; i++)
    numerator[i] = here[i] * sum[i] - (int32_t) products[i];
  if (HAVE_FMA && rule->maximum == 255)
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = imk_lapsharpen_weighted_u8 (
          (float) numerator[i], maximum, reciprocal);
  else
    for (ptrdiff_t i = 0; i < CHUNK; i++)
      l[i] = imk_lapsharpen_weighted (numerator[i], rule->maximum);
}

/* float64 is exact for these integers, and there are vectors of it, but not of
 * 64-bit products. */
INLINE void
add_weighted_u16 (const ImkLapsharpenRule *rule, const void *row, bool beside,
    bool middle, int32_t *sum, double *products)
{
  const ptrdiff_t c = rule->channels;
  const uint16_t *first = (const uint16_t *) row - c;
  uint16_t weights[WIDE];
  double product[WIDE];

  spread_weights (rule, first, IMK_TYPE_U16, weights);
  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++)
    product[i] = (double) weights[i] * (double) first[i];
  if (beside)
    for (ptrdiff_t i = 0; i < CHUNK; i++) {
      sum[i] += weights[i] + weights[i + 2 * c];
      products[i] += product[i] + product[i + 2 * c];
    }
  if (middle)
    for (ptrdiff_t i = 0; i < CHUNK; i++) {
      sum[i] += weights[i + c];
      products[i] += product[i + c];
    }
}

INLINE void
get_weighted_u16 (const ImkLapsharpenRule *rule, const Rows *rows, float *l)
{
  const bool diagonal = rule->neighbours == 8;
  const uint16_t *here = rows->row[HERE];
  const double reciprocal = 1.0 / rule->maximum;
  int32_t sum[CHUNK] = {0};
  double products[CHUNK] = {0};

  add_weighted_u16 (rule, rows->row[ABOVE], diagonal, true, sum, products);
  add_weighted_u16 (rule, rows->row[HERE], true, false, sum, products);
  add_weighted_u16 (rule, rows->row[BELOW], diagonal, true, sum, products);
  for (ptrdiff_t i = 0; i < CHUNK; i++)
    l[i] = imk_lapsharpen_weighted_by (
        (double) here[i] * (double) sum[i] - products[i], reciprocal);
}

/* --- the new samples -------------------------------------------------------
 */

/* @l: int16_t, int32_t or float, as @kind says */
typedef enum Kind { L_I16, L_I32, L_F32 } Kind;

INLINE float
laplacian_at (const void *l, Kind kind, uint32_t i)
{
  return kind == L_I16   ? (float) ((const int16_t *) l)[i]
         : kind == L_I32 ? (float) ((const int32_t *) l)[i]
                         : ((const float *) l)[i];
}

INLINE void
sharpen_with (const ImkLapsharpenRule *rule, const void *here, ImkType type,
    const void *l, Kind kind, float threshold, bool edges, uint16_t *sharpened)
{
  const float amount = rule->amount;
  const int32_t maximum = (int32_t) rule->maximum;

  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] = (uint16_t) imk_lapsharpen_sample (amount, threshold, edges,
        laplacian_at (l, kind, i), value_at (here, type, i), 0, maximum);
}

INLINE void
sharpen (const ImkLapsharpenRule *rule, const void *here, ImkType type,
    const void *l, Kind kind, uint16_t *sharpened)
{
  const float threshold = rule->threshold;

  if (rule->edges)
    sharpen_with (rule, here, type, l, kind, threshold, true, sharpened);
  else if (threshold > 0)
    sharpen_with (rule, here, type, l, kind, threshold, false, sharpened);
  else
    sharpen_with (rule, here, type, l, kind, 0, false, sharpened);
}

INLINE void
sharpen_words_with (const ImkLapsharpenRule *rule, const uint8_t *here,
    const int16_t *l, bool edges, uint16_t *sharpened)
{
  const uint32_t fraction = rule->fraction;
  const int16_t multiple = (int16_t) rule->multiple;
  const int16_t half = (int16_t) ((1u << fraction) / 2);
  const int16_t maximum = (int16_t) rule->maximum;
  const int16_t threshold = (int16_t) LEAST (rule->threshold, 2048); /* > |L| */

  for (uint32_t i = 0; i < CHUNK; i++) {
    int16_t magnitude = (int16_t) (l[i] < 0 ? -l[i] : l[i]);
    int16_t change = (int16_t) (multiple * (edges ? magnitude : l[i]));
    int16_t base = edges ? 0 : here[i];
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
sharpen_words (const ImkLapsharpenRule *rule, const uint8_t *here,
    const int16_t *l, uint16_t *sharpened)
{
  if (rule->edges)
    sharpen_words_with (rule, here, l, true, sharpened);
  else
    sharpen_words_with (rule, here, l, false, sharpened);
}

/* Copies the samples that are not filtered. */
INLINE void
merge (const Work *work, const void *here, ImkType type,
    const uint16_t *sharpened, void *out)
{
  const uint8_t *bytes = here, *byte_mask = work->filtered_bytes;
  const uint16_t *words = here, *mask = work->filtered;

  if (type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < CHUNK; i++)
      ((uint8_t *) out)[i] = (uint8_t) ((sharpened[i] & byte_mask[i]) |
                                        (bytes[i] & ~byte_mask[i]));
  else
    for (uint32_t i = 0; i < CHUNK; i++)
      ((uint16_t *) out)[i] =
          (uint16_t) ((sharpened[i] & mask[i]) | (words[i] & ~mask[i]));
}

/* --- any kernel ------------------------------------------------------------
 */

INLINE void
correlate (const ImkLapsharpenRule *rule, const Rows *rows, ImkType type,
    uint16_t *sharpened)
{
  const ptrdiff_t c = rule->channels, reach = rule->reach;
  const float *weight = rule->kernel;
  float sum[CHUNK] = {0}, line[WIDE];
  ImkLapsharpenRule own; /* a copy that no store can change */

  for (ptrdiff_t dy = -reach; dy <= reach; dy++) {
    for (ptrdiff_t i = 0; i < CHUNK + 2 * reach * c; i++)
      line[i] = (float) value_at (rows->row[HERE + dy], type, i - reach * c);
    for (ptrdiff_t dx = 0; dx <= 2 * reach; dx++, weight++)
      for (ptrdiff_t i = 0; i < CHUNK; i++)
        sum[i] += *weight * line[i + dx * c];
  }
  own.edges = rule->edges;
  own.threshold = rule->threshold;
  own.amount = rule->amount;
  own.maximum = rule->maximum;
  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] = (uint16_t) imk_lapsharpen_correlated (&own, sum[i],
        value_at (rows->row[HERE], type, i), 0, (int32_t) own.maximum);
}

/* --- contrast adaptive sharpening ------------------------------------------
 */

/* @l: (out): @laplacian times the gain, which may be the same array */
INLINE void
adapt (const ImkLapsharpenRule *rule, const Rows *rows, ImkType type,
    const void *laplacian, Kind kind, float *l)
{
  const ptrdiff_t c = rule->channels;
  const int32_t maximum = (int32_t) rule->maximum;
  uint16_t here[WIDE], low[WIDE], high[WIDE];

  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++) {
    uint16_t a = (uint16_t) value_at (rows->row[ABOVE], type, i - c);
    uint16_t b = (uint16_t) value_at (rows->row[BELOW], type, i - c);
    uint16_t h = (uint16_t) value_at (rows->row[HERE], type, i - c);
    uint16_t least = LEAST (a, b), most = MOST (a, b);

    here[i] = h;
    low[i] = LEAST (least, h);
    high[i] = MOST (most, h);
  }
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    uint16_t beside = LEAST (here[i], here[i + 2 * c]);
    uint16_t least = LEAST (low[i], low[i + 2 * c]);
    uint16_t cross = LEAST (beside, low[i + c]);
    uint16_t most_beside = MOST (here[i], here[i + 2 * c]);
    uint16_t most = MOST (high[i], high[i + 2 * c]);
    uint16_t most_cross = MOST (most_beside, high[i + c]);

    least = LEAST (least, low[i + c]);
    most = MOST (most, high[i + c]);
    l[i] = laplacian_at (laplacian, kind, (uint32_t) i) *
           imk_lapsharpen_gain (cross + least, most_cross + most, maximum);
  }
}

/* --- the local clamp -------------------------------------------------------
 */

/* Keeps filtered samples of @out within the least and the largest of their 3x3
 * windows. */
INLINE void
clamp_local_u8 (const Work *work, const Rows *rows, uint8_t *out)
{
  const ptrdiff_t c = work->rule->channels;
  const uint8_t *a = rows->row[ABOVE], *h = rows->row[HERE],
                *b = rows->row[BELOW];
  uint8_t low[WIDE], high[WIDE];

  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++) {
    uint8_t least = LEAST (a[i - c], b[i - c]);
    uint8_t most = MOST (a[i - c], b[i - c]);

    low[i] = LEAST (least, h[i - c]);
    high[i] = MOST (most, h[i - c]);
  }
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    uint8_t least = LEAST (low[i], low[i + 2 * c]);
    uint8_t most = MOST (high[i], high[i + 2 * c]);
    uint8_t t = out[i];

    least = LEAST (least, low[i + c]);
    most = MOST (most, high[i + c]);
    t = MOST (t, least);
    t = LEAST (t, most);
    out[i] = work->filtered_bytes[i] ? t : out[i];
  }
}

INLINE void
clamp_local_u16 (const Work *work, const Rows *rows, uint16_t *out)
{
  const ptrdiff_t c = work->rule->channels;
  const uint16_t *a = rows->row[ABOVE], *h = rows->row[HERE],
                 *b = rows->row[BELOW];
  uint16_t low[WIDE], high[WIDE];

  for (ptrdiff_t i = 0; i < CHUNK + 2 * c; i++) {
    uint16_t least = LEAST (a[i - c], b[i - c]);
    uint16_t most = MOST (a[i - c], b[i - c]);

    low[i] = LEAST (least, h[i - c]);
    high[i] = MOST (most, h[i - c]);
  }
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    uint16_t least = LEAST (low[i], low[i + 2 * c]);
    uint16_t most = MOST (high[i], high[i + 2 * c]);
    uint16_t t = out[i];

    least = LEAST (least, low[i + c]);
    most = MOST (most, high[i + c]);
    t = MOST (t, least);
    t = LEAST (t, most);
    out[i] = work->filtered[i] ? t : out[i];
  }
}
