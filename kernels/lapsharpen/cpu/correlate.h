/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* method=kernel, for loops.c. */
#pragma once

#include "lapsharpen/cpu/floats.h"

/* --- the sums of a chunk, in the order of the kernel -----------------------
 */

#if IMK_VECTOR_SIZE == 64

/* @size: of the kernel, as a constant. Samples are converted for each weight
 * anew: lines of float32 would be read as soon as they are written, at other
 * offsets, which takes longer. Smaller vectors are not faster so. */
INLINE void
correlate_by (
    const ImkLapsharpenRule *rule, const Rows *rows, int size, float *out)
{
  const ptrdiff_t c = rule->channels;
  const int reach = size / 2;

  for (ptrdiff_t i = 0; i < CHUNK; i += SUMS * LANES) {
    const float *weight = rule->kernel;
    Floats sums[SUMS] = {0};

    for (int y = -reach; y <= reach; y++)
      for (int x = -reach; x <= reach; x++, weight++)
        for (int j = 0; j < SUMS; j++) {
          const Sample *from = rows->row[HERE + y] + x * c + i + j * LANES;

          sums[j] +=
              *weight * __builtin_convertvector(load_counts (from, 0), Floats);
        }
    memcpy (out + i, sums, sizeof (sums));
  }
}

INLINE void
get_sums (const ImkLapsharpenRule *rule, const Rows *rows, float *sums)
{
  if (rule->kernel_size == 3)
    correlate_by (rule, rows, 3, sums);
  else if (rule->kernel_size == 5)
    correlate_by (rule, rows, 5, sums);
  else
    correlate_by (rule, rows, 7, sums);
}

#else

INLINE void
get_sums (const ImkLapsharpenRule *rule, const Rows *rows, float *sums)
{
  const ptrdiff_t c = rule->channels, reach = rule->reach;
  const float *weight = rule->kernel;
  float sum[CHUNK] = {0}, line[WIDE];

  for (ptrdiff_t dy = -reach; dy <= reach; dy++) {
    for (ptrdiff_t i = 0; i < CHUNK + 2 * reach * c; i++)
      line[i] = rows->row[HERE + dy][i - reach * c];
    for (ptrdiff_t dx = 0; dx <= 2 * reach; dx++, weight++)
      for (ptrdiff_t i = 0; i < CHUNK; i++)
        sum[i] += *weight * line[i + dx * c];
  }
  memcpy (sums, sum, sizeof (sum));
}

#endif

/* --- the new samples ------------------------------------------------------ */

/* imk_lapsharpen_correlated () without a threshold. */
INLINE void
round_sums (
    const float *sums, const float maximum, uint16_t *restrict sharpened)
{
  const float whole = 12582912.0f;

  for (uint32_t i = 0; i < CHUNK; i++) {
    float made = sums[i] < 0 ? 0 : sums[i];

    made = made > maximum ? maximum : made;
    sharpened[i] = (uint16_t) (int32_t) ((made + whole) - whole);
  }
}

static void
correlate (const ImkLapsharpenRule *rule, const Rows *rows, uint16_t *sharpened)
{
  ImkLapsharpenRule own; /* a copy that no store can change */
  float sums[CHUNK];

  get_sums (rule, rows, sums);
  if (rule->threshold == 0 && !rule->edges) {
    round_sums (sums, (float) rule->maximum, sharpened);
    return;
  }
  own.edges = rule->edges;
  own.threshold = rule->threshold;
  own.soft = rule->soft;
  own.amount = rule->amount;
  own.maximum = rule->maximum;
  for (uint32_t i = 0; i < CHUNK; i++)
    sharpened[i] = (uint16_t) imk_lapsharpen_correlated (
        &own, sums[i], rows->row[HERE][i], 0, (int32_t) own.maximum);
}
