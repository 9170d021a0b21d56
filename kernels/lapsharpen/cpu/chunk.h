/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done with a chunk of a row of SAMPLE_BITS, each option a loop of
 * constant length that compilers vectorise. A row is a sequence of samples; the
 * horizontal neighbours of a sample are `channels` samples away, and always
 * readable. */
#pragma once

#include "lapsharpen/cpu/samples.h"

/* Without the instruction fmaf () is a function, slower than a division. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAVE_FMA 1
#else
#define HAVE_FMA 0
#endif

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
typedef int16_t Laplacian;
typedef int32_t Squares;
typedef uint16_t Weights, Product;
typedef uint32_t Products;
typedef int32_t Numerator;
#else
typedef int32_t Laplacian;
typedef int64_t Squares;
typedef int32_t Weights;
typedef double Product, Products, Numerator;
#endif

/* The samples of a chunk in its row, HERE, and in those above and below as far
 * as the rule reaches; whole counts. */
typedef struct Rows {
  const Sample *row[IMK_LAPSHARPEN_MAX_KERNEL];
  size_t first; /* sample of the frame's row */
} Rows;

/* Samples of the pixels that a kernel reaches. */
enum { MARGIN = 4 * REACH };

/* The samples of a chunk with the pixels on either side. */
typedef struct Line {
  Sample samples[CHUNK + 2 * MARGIN];
} Line;

/* What vectors.h does of a rule. */
typedef enum Way {
  CHUNKS,   /* nothing */
  FEW,      /* amounts of few bits on bytes */
  PRODUCTS, /* amounts on bytes that integers will do for, see products.h */
  CORED,    /* the same with a threshold */
  PLAIN,    /* any amount, as imk_lapsharpen_sample () */
  FLOATS,   /* the same with a threshold or edges */
  WEIGHTED, /* all of it, bytes of four channels weighted by alpha */
  TAPS,     /* kernels on bytes of weights k / n, see ratio.h */
  LINES     /* any kernel without a threshold: made by rows.h */
} Way;

/* A chunk, or a vector from any sample of a chunk on. */
enum { PERIOD = CHUNK + 64 };

/* What a thread has for its rows. */
typedef struct Band {
  const Work *work;
  const ImkLapsharpenRule *rule;
  Way way;
  const struct Plan *plan;          /* for vectors.h */
  Sample filtered[PERIOD];          /* all bits: sharpen the sample; 0: copy */
  int16_t measured[CHUNK];          /* -1: sum the sample; 0: ignore it */
  Sample low[PERIOD], high[PERIOD]; /* the range, for limited */
  Grown grown;
  int beside[2]
            [MARGIN]; /* the samples that those left and right of a row are */
  const Sample *made; /* the row for LINES, see rows.h */
  Line lines[IMK_LAPSHARPEN_MAX_KERNEL]; /* copies of rows */
  Line right_lines[IMK_LAPSHARPEN_MAX_KERNEL];
  ImkLapsharpenSums sums;
} Band;

/* The rows from sample @i on. */
INLINE Rows
rows_at (const ImkLapsharpenRule *rule, const Rows *rows, size_t i)
{
  Rows at = {.first = rows->first + i};

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
  const double reciprocal = 1.0 / rule->maximum;
  const float rest = imk_lapsharpen_rest (rule->maximum, (float) reciprocal);
  Weights sum[CHUNK] = {0};
  Products products[CHUNK] = {0};

  add_weighted (rule, rows->row[ABOVE], diagonal, true, sum, products);
  add_weighted (rule, rows->row[HERE], true, false, sum, products);
  add_weighted (rule, rows->row[BELOW], diagonal, true, sum, products);
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    Numerator n =
        (Numerator) here[i] * (Numerator) sum[i] - (Numerator) products[i];

    l[i] =
        HAVE_FMA && SAMPLE_BITS == 8
            ? imk_lapsharpen_weighted_u8 ((float) n, (float) reciprocal, rest)
            : imk_lapsharpen_weighted_by ((double) n, reciprocal);
  }
}

/* --- what smoothing leaves ------------------------------------------------ */

/* Where a chunk finds what smoothing makes of it. */
typedef struct Smooth {
  const float *a, *b, *c;
  float of_a, of_b, of_c;
} Smooth;

INLINE Smooth
smooth_at (const Band *band, const Rows *rows)
{
  const Grown *g = &band->grown;

  return (Smooth){g->row[0] + rows->first, g->row[1] + rows->first,
      g->row[2] + rows->first, g->weight[0], g->weight[1], g->weight[2]};
}

INLINE float
smooth_value (const Smooth *s, uint32_t i)
{
  return s->of_a * s->a[i] + s->of_b * s->b[i] + s->of_c * s->c[i];
}

/* L where alpha counts. */
INLINE void
get_visible_detail (const Band *band, const Rows *rows, float *l)
{
  const ImkLapsharpenRule *rule = band->rule;
  const uint32_t c = rule->channels, alpha = (uint32_t) rule->weight_channel;
  const Smooth smooth = smooth_at (band, rows);

  for (uint32_t i = 0; i < CHUNK; i++)
    l[i] = imk_lapsharpen_detail (rule, rows->row[HERE][i],
        smooth_value (&smooth, i), smooth_value (&smooth, i / c * c + alpha));
}

/* --- the new samples ------------------------------------------------------ */

/* Where the Laplacian or what stands for it is: one of the three. */
typedef struct Source {
  const Laplacian *laplacian;
  const float *l;
  Smooth smooth;
} Source;

typedef enum Kind { WHOLE, FRACTION, SMOOTH } Kind;

INLINE float
laplacian_at (const ImkLapsharpenRule *rule, const Source *source, Kind kind,
    int32_t v, uint32_t i)
{
  return kind == WHOLE      ? (float) source->laplacian[i]
         : kind == FRACTION ? source->l[i]
                            : imk_lapsharpen_detail (rule, v,
                                  smooth_value (&source->smooth, i), 0);
}

INLINE void
sharpen_with (const ImkLapsharpenRule *rule, const Sample *here,
    const Source *source, Kind kind, float threshold, bool soft, bool edges,
    uint16_t *restrict sharpened)
{
  const float amount = rule->amount;
  const int32_t maximum = (int32_t) rule->maximum;

  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] =
        (uint16_t) imk_lapsharpen_sample (amount, threshold, soft, edges,
            laplacian_at (rule, source, kind, here[i], i), here[i], 0, maximum);
}

INLINE void
sharpen (const ImkLapsharpenRule *rule, const Sample *here,
    const Source *source, Kind kind, uint16_t *sharpened)
{
  const float threshold = rule->threshold;

  if (rule->soft && rule->edges)
    sharpen_with (rule, here, source, kind, threshold, true, true, sharpened);
  else if (rule->soft)
    sharpen_with (rule, here, source, kind, threshold, true, false, sharpened);
  else if (rule->edges)
    sharpen_with (rule, here, source, kind, threshold, false, true, sharpened);
  else if (threshold > 0)
    sharpen_with (rule, here, source, kind, threshold, false, false, sharpened);
  else
    sharpen_with (rule, here, source, kind, 0, false, false, sharpened);
}

INLINE void
sharpen_words_with (const ImkLapsharpenRule *rule, const Sample *here,
    const Laplacian *l, bool edges, uint16_t *sharpened)
{
  const uint32_t fraction = rule->fraction;
  const int16_t multiple = (int16_t) rule->multiple;
  const int16_t half = (int16_t) ((1u << fraction) / 2);
  const int16_t maximum = (int16_t) rule->maximum;
  const int16_t threshold =
      (int16_t) LEAST (ceilf (rule->threshold), 2048); /* > |L| */

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
 * windows, or @dark and @bright beyond. */
INLINE void
clamp_window (
    const Band *band, const Rows *rows, Sample dark, Sample bright, Sample *out)
{
  const ptrdiff_t c = band->rule->channels;
  const Sample room = (Sample) (band->rule->maximum - bright);
  Sample low[WIDE], high[WIDE];

  get_columns (band->rule, rows, low, high);
  for (ptrdiff_t i = 0; i < CHUNK; i++) {
    Sample least = LEAST (low[i], low[i + 2 * c]);
    Sample most = MOST (high[i], high[i + 2 * c]);
    Sample t = out[i];

    least = LEAST (least, low[i + c]);
    most = MOST (most, high[i + c]);
    least = MOST (least, dark);
    least = (Sample) (least - dark);
    if (bright)
      most = (Sample) (LEAST (most, room) + bright);
    t = MOST (t, least);
    t = LEAST (t, most);
    out[i] = band->filtered[i] ? t : out[i];
  }
}

INLINE void
clamp_local (const Band *band, const Rows *rows, Sample *out)
{
  const ImkLapsharpenRule *rule = band->rule;

  if (rule->halo_dark || rule->halo_bright)
    clamp_window (
        band, rows, (Sample) rule->halo_dark, (Sample) rule->halo_bright, out);
  else
    clamp_window (band, rows, 0, 0, out);
}

/* Keeps samples of @out within the range, or no further outside than @here. */
INLINE void
keep_range (const Band *band, const Sample *here, Sample *out)
{
  for (uint32_t i = 0; i < CHUNK; i++) {
    Sample low = LEAST (band->low[i], here[i]);
    Sample high = MOST (band->high[i], here[i]);
    Sample t = MOST (out[i], low);

    out[i] = LEAST (t, high);
  }
}
