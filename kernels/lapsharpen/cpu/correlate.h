/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* method=kernel, for loops.c. */
#pragma once

#include "lapsharpen/cpu/floats.h"

/* Vectors whose sums are made together: a sum waits for each addition. */
enum { SUMS = 4, LINE = CHUNK + 2 * 4 * REACH };

/* @size: of the kernel, as a constant */
INLINE void
correlate_by (
    const ImkLapsharpenRule *rule, const Rows *rows, int size, float *out)
{
  const ptrdiff_t c = rule->channels;
  const ptrdiff_t n = CHUNK + (size - 1) * c;
  float lines[IMK_LAPSHARPEN_MAX_KERNEL][LINE];

  for (int y = 0; y < size; y++) {
    const Sample *row = rows->row[HERE - size / 2 + y] - size / 2 * c;

    /* The last vector may have samples of the one before. */
    for (ptrdiff_t i = 0, next = LANES;; next = i + LANES) {
      Floats v = __builtin_convertvector(load_counts (row + i, 0), Floats);

      memcpy (lines[y] + i, &v, sizeof (v));
      if (i == n - LANES)
        break;
      i = LEAST (next, n - LANES);
    }
  }
  for (ptrdiff_t i = 0; i < CHUNK; i += SUMS * LANES) {
    Floats sums[SUMS] = {0};

    for (int y = 0; y < size; y++)
      for (int x = 0; x < size; x++)
        for (int j = 0; j < SUMS; j++)
          sums[j] += rule->kernel[y * size + x] *
                     load_floats (lines[y] + i + x * c + j * LANES);
    memcpy (out + i, sums, sizeof (sums));
  }
}

INLINE void
round_sums (const ImkLapsharpenRule *rule, const Sample *here,
    const float *sums, uint16_t *restrict sharpened)
{
  const int32_t maximum = (int32_t) rule->maximum;

  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] = (uint16_t) imk_lapsharpen_correlated (
        rule, sums[i], here[i], 0, maximum);
}

static void
correlate (const ImkLapsharpenRule *rule, const Rows *rows, uint16_t *sharpened)
{
  /* a copy that no store can change */
  const ImkLapsharpenRule plain = {
      .maximum = rule->maximum, .amount = rule->amount};
  ImkLapsharpenRule own = plain;
  float sums[CHUNK];

  if (rule->kernel_size == 3)
    correlate_by (rule, rows, 3, sums);
  else if (rule->kernel_size == 5)
    correlate_by (rule, rows, 5, sums);
  else
    correlate_by (rule, rows, 7, sums);
  if (rule->threshold == 0 && !rule->edges) {
    round_sums (&plain, rows->row[HERE], sums, sharpened);
    return;
  }
  own.edges = rule->edges;
  own.threshold = rule->threshold;
  own.soft = rule->soft;
  round_sums (&own, rows->row[HERE], sums, sharpened);
}
