/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies of parts of rows, with the pixels beside the frame. */
#pragma once

#include "lapsharpen/cpu/chunk.h"

/* Copies the counts of @n samples. */
INLINE void
copy_counts (
    const ImkLapsharpenRule *rule, const Sample *from, uint32_t n, Sample *to)
{
  if (!rule->shift)
    memcpy (to, from, n * sizeof (Sample));
  else
    for (uint32_t i = 0; i < n; i++)
      to[i] = (Sample) (from[i] >> rule->shift);
}

/* Copies @n pixels from pixel @x of a row on, which may be outside; the row is
 * NULL where the border is constant. */
static void
copy_pixels (
    const ImkLapsharpenRule *rule, const Sample *row, int x, int n, Sample *to)
{
  const uint32_t c = rule->channels;
  const int width = (int) rule->width;

  for (int end = x + n; x < end; to += c, x++) {
    const bool outside = x < 0 || x >= width;

    if (!row || (outside && rule->constant))
      for (uint32_t i = 0; i < c; i++)
        to[i] = (Sample) rule->border_value;
    else if (outside)
      copy_counts (rule,
          row + c * (uint32_t) imk_lapsharpen_inside (x, width, rule), c, to);
    else {
      const uint32_t m = (uint32_t) (LEAST (end, width) - x);

      copy_counts (rule, row + c * (uint32_t) x, c * m, to);
      to += c * (m - 1);
      x += (int) m - 1;
    }
  }
}
