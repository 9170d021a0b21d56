/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sharpen_block (): a block of a row with any options, for loops.c. A row is a
 * sequence of samples; the horizontal neighbours of a sample are `channels`
 * samples away. */
#pragma once

#include <string.h>

#include "lapsharpen/cpu/loops.h"

#define INLINE static inline __attribute__ ((always_inline))

enum { LINE = BLOCK + 8 }; /* samples, and a pixel on either side */

/* The row above, the row itself, the row below; NULL: a constant border. */
typedef struct Rows {
  const void *above, *here, *below;
} Rows;

/* The same for the samples of a block, in counts, from one pixel before it. */
typedef struct Lines {
  uint16_t above[LINE], here[LINE], below[LINE];
} Lines;

/* --- load: counts, with the border added ------------------------------------
 */

INLINE void
widen (const void *row, ImkType type, uint32_t shift, uint32_t from,
    uint32_t end, uint16_t *line)
{
  const uint8_t *bytes = (const uint8_t *) row + from;
  const uint16_t *words = (const uint16_t *) row + from;

  if (type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < end - from; i++)
      line[i] = bytes[i];
  else
    for (uint32_t i = 0; i < end - from; i++)
      line[i] = words[i];
  if (shift) /* 16-bit vectors have no shift by a variable */
    for (uint32_t i = 0; i < end - from; i++)
      line[i] = line[i] >> shift;
}

INLINE void
load_outside_pixel (const Work *work, const void *row, int x, uint16_t *line)
{
  const ImkLapsharpenRule *r = work->rule;
  uint32_t from = r->channels * (uint32_t) imk_lapsharpen_inside (
                                    x, (int) r->width, r->reflect101);

  if (!r->constant)
    widen (row, work->in->type, r->shift, from, from + r->channels, line);
  else
    for (uint32_t i = 0; i < r->channels; i++)
      line[i] = (uint16_t) r->border_value;
}

/* Fills @line with the @n samples from @first on and a pixel on either side. */
INLINE void
load_line (const Work *work, const void *row, uint32_t first, uint32_t n,
    uint16_t *line)
{
  const ImkLapsharpenRule *r = work->rule;
  uint32_t margin = r->channels;
  bool at_left = first == 0, at_right = first + n == r->width * r->channels;
  uint32_t from = at_left ? first : first - margin;

  if (!row) {
    for (uint32_t i = 0; i < n + 2 * margin; i++)
      line[i] = (uint16_t) r->border_value;
    return;
  }
  widen (row, work->in->type, r->shift, from,
      at_right ? first + n : first + n + margin, line + margin + from - first);
  if (at_left)
    load_outside_pixel (work, row, -1, line);
  if (at_right)
    load_outside_pixel (work, row, (int) r->width, line + margin + n);
}

/* --- the options, each a loop over the block --------------------------------
 */

INLINE void
get_laplacian (const Work *work, const Lines *lines, uint32_t n, int32_t *l)
{
  const uint32_t c = work->rule->channels;
  const uint16_t *above = lines->above + c, *here = lines->here + c;
  const uint16_t *below = lines->below + c;
  const uint16_t *left = here - c, *right = here + c;
  const uint16_t *above_left = above - c, *above_right = above + c;
  const uint16_t *below_left = below - c, *below_right = below + c;

  for (uint32_t i = 0; i < n; i++)
    l[i] = 4 * here[i] - (above[i] + below[i]) - (left[i] + right[i]);
  if (work->rule->neighbours == 8)
    for (uint32_t i = 0; i < n; i++)
      l[i] += 4 * here[i] - (above_left[i] + above_right[i]) -
              (below_left[i] + below_right[i]);
}

INLINE void
measure (const Work *work, const int32_t *l, uint32_t n, int64_t *sum,
    uint64_t *squares)
{
  int64_t s = 0;
  uint64_t q = 0;

  for (uint32_t i = 0; i < n; i++) {
    int32_t value = l[i] & work->measured[i];

    s += value;
    q += (uint64_t) ((int64_t) value * value);
  }
  *sum += s;
  *squares += q;
}

/* The weight of the pixel of every sample. */
INLINE void
spread_weights (const uint16_t *line, uint32_t channel, uint32_t c, uint32_t n,
    uint16_t *weights)
{
  for (uint32_t pixel = 0; pixel < n; pixel += c)
    for (uint32_t i = 0; i < c; i++)
      weights[pixel + i] = line[pixel + channel];
}

INLINE void
get_weights (const Work *work, const uint16_t *line, uint32_t n, uint16_t *w)
{
  const uint32_t c = work->rule->channels;
  const uint32_t channel = (uint32_t) work->rule->weight_channel;

  /* The compiler vectorises loops with a constant number of channels. */
  if (c == 4)
    spread_weights (line, channel, 4, n, w);
  else if (c == 2)
    spread_weights (line, channel, 2, n, w);
  else
    spread_weights (line, channel, c, n, w);
}

/* Adds a (v - v_i) of the neighbours at @line. float64 is exact for these
 * integers, and there are vectors of it, but not of 64-bit products. */
INLINE void
add_weighted (const uint16_t *line, const uint16_t *weights,
    const uint16_t *here, uint32_t n, double *numerator)
{
  for (uint32_t i = 0; i < n; i++)
    numerator[i] += (double) weights[i] * (double) (here[i] - line[i]);
}

/* The neighbours of one line: those beside the samples, and @middle. */
INLINE void
add_weighted_line (const Work *work, const uint16_t *line, const uint16_t *here,
    uint32_t n, bool beside, bool middle, double *numerator)
{
  const uint32_t c = work->rule->channels;
  uint16_t weights[LINE];

  get_weights (work, line, n + 2 * c, weights);
  if (beside) {
    add_weighted (line, weights, here, n, numerator);
    add_weighted (line + 2 * c, weights + 2 * c, here, n, numerator);
  }
  if (middle)
    add_weighted (line + c, weights + c, here, n, numerator);
}

INLINE void
get_weighted (const Work *work, const Lines *lines, uint32_t n, float *l)
{
  const uint16_t *here = lines->here + work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const uint32_t maximum = work->rule->maximum;
  double numerator[BLOCK];

  memset (numerator, 0, n * sizeof (numerator[0]));
  add_weighted_line (work, lines->above, here, n, diagonal, true, numerator);
  add_weighted_line (work, lines->here, here, n, true, false, numerator);
  add_weighted_line (work, lines->below, here, n, diagonal, true, numerator);
  for (uint32_t i = 0; i < n; i++)
    l[i] = imk_lapsharpen_weighted (numerator[i], maximum);
}

INLINE uint16_t
least_of (uint16_t a, uint16_t b)
{
  return a < b ? a : b;
}

INLINE uint16_t
most_of (uint16_t a, uint16_t b)
{
  return a > b ? a : b;
}

/* Keeps the samples within the least and the largest of their 3x3 windows. */
INLINE void
clamp_local (const Lines *lines, uint32_t c, uint32_t n, uint16_t *sharpened)
{
  uint16_t low[LINE], high[LINE];
  const uint16_t *low_here = low + c, *low_right = low_here + c;
  const uint16_t *high_here = high + c, *high_right = high_here + c;

  for (uint32_t i = 0; i < n + 2 * c; i++) {
    uint16_t a = lines->above[i], h = lines->here[i], b = lines->below[i];

    low[i] = least_of (least_of (a, b), h);
    high[i] = most_of (most_of (a, b), h);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint16_t least = least_of (least_of (low[i], low_right[i]), low_here[i]);
    uint16_t most = most_of (most_of (high[i], high_right[i]), high_here[i]);

    sharpened[i] = least_of (most_of (sharpened[i], least), most);
  }
}

/* With local variables the compiler does not read the rule again for each
 * sample. */
INLINE void
get_sharpened (const ImkLapsharpenRule *rule, const uint16_t *here,
    const float *l, uint32_t n, uint16_t *sharpened)
{
  const float amount = rule->amount, threshold = rule->threshold;
  const int32_t maximum = (int32_t) rule->maximum;

  if (rule->edges)
    for (uint32_t i = 0; i < n; i++)
      sharpened[i] = (uint16_t) imk_lapsharpen_sample (
          amount, threshold, true, l[i], here[i], 0, maximum);
  else
    for (uint32_t i = 0; i < n; i++)
      sharpened[i] = (uint16_t) imk_lapsharpen_sample (
          amount, threshold, false, l[i], here[i], 0, maximum);
}

/* Copies the samples that are not filtered and restores the unused bits. */
INLINE void
finish (const Work *work, const uint16_t *here, uint32_t n, uint16_t *sharpened)
{
  const uint32_t shift = work->rule->shift;

  for (uint32_t i = 0; i < n; i++)
    sharpened[i] = (sharpened[i] & work->filtered[i]) |
                   (here[i] & (uint16_t) ~work->filtered[i]);
  if (shift)
    for (uint32_t i = 0; i < n; i++)
      sharpened[i] = (uint16_t) (sharpened[i] << shift);
}

INLINE void
store (const uint16_t *sharpened, ImkType type, void *row, uint32_t first,
    uint32_t n)
{
  uint8_t *bytes = (uint8_t *) row + first;

  if (type == IMK_TYPE_U16)
    memcpy ((uint16_t *) row + first, sharpened, n * sizeof (uint16_t));
  else
    for (uint32_t i = 0; i < n; i++)
      bytes[i] = (uint8_t) sharpened[i];
}

/* Sharpens the samples [first, first + n) of a row, n at most BLOCK. */
INLINE void
sharpen_block (const Work *work, const Rows *rows, void *out, uint32_t first,
    uint32_t n, int64_t *sum, uint64_t *squares)
{
  const ImkLapsharpenRule *rule = work->rule;
  const uint32_t c = rule->channels;
  Lines lines;
  int32_t laplacian[BLOCK];
  float l[BLOCK];
  uint16_t sharpened[BLOCK];

  load_line (work, rows->above, first, n, lines.above);
  load_line (work, rows->here, first, n, lines.here);
  load_line (work, rows->below, first, n, lines.below);
  get_laplacian (work, &lines, n, laplacian);
  if (rule->measured)
    measure (work, laplacian, n, sum, squares);
  if (rule->weight_channel >= 0)
    get_weighted (work, &lines, n, l);
  else
    for (uint32_t i = 0; i < n; i++)
      l[i] = (float) laplacian[i];
  get_sharpened (rule, lines.here + c, l, n, sharpened);
  if (rule->local)
    clamp_local (&lines, c, n, sharpened);
  finish (work, lines.here + c, n, sharpened);
  store (sharpened, work->out->type, out, first, n);
}
