/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The levels of cells: which pixels count, and what is subtracted from them. */
#pragma once

#include "shcentroid/cpu/brightest.h"

/* @whole: the smallest, and how many, too; a bad pixel is not a number */
INLINE void
add_range (const float *restrict values, uint32_t n, const bool whole,
    float *restrict min, float *restrict max, uint32_t *restrict count)
{
  for (uint32_t i = 0; i < n; i++) {
    float value = values[i];

    max[i] = value > max[i] ? value : max[i];
    if (whole) {
      min[i] = value < min[i] ? value : min[i];
      count[i] += value == value;
    }
  }
}

/* Column @x of row @y of the frame where float32 samples are the values; or
 * NULL */
INLINE const float *
plain_floats (const Frame *f, uint32_t x, uint32_t y)
{
  const Cpu *cpu = f->cpu;
  const uint8_t *row = (const uint8_t *) f->in->data + y * f->in->stride;

  return f->in->type == IMK_TYPE_F32 && !cpu->dark
             ? (const float *) (const void *) row + x
             : NULL;
}

/* add_range () of samples as they came; none is a bad pixel. */
INLINE void
add_floats (const float *restrict samples, uint32_t n, float *restrict min,
    float *restrict max)
{
  for (uint32_t i = 0; i < n; i++) {
    float value = imk_shcentroid_sample (samples[i]);

    max[i] = value > max[i] ? value : max[i];
    min[i] = value < min[i] ? value : min[i];
  }
}

static void
find_ranges (ChainTile *t)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;
  uint32_t width = tile_width (t), left = t->windows[0].x;
  bool whole = params->brightest > 0 || imk_shcentroid_needs_least (params);

  for (uint32_t i = 0; i < t->n; i++)
    t->ranges[i] = (ImkShcentroidRange){3e38f, -3e38f, 0};
  for (uint32_t x = 0; x < width; x += CHAIN_TILE) {
    uint32_t n = width - x < CHAIN_TILE ? width - x : CHAIN_TILE;
    _Alignas(64) float min[CHAIN_TILE], max[CHAIN_TILE], values[CHAIN_TILE];
    uint32_t count[CHAIN_TILE] = {0}, column = 0;

    for (uint32_t i = 0; i < n; i++) {
      min[i] = 3e38f;
      max[i] = -3e38f;
    }
    for (uint32_t y = 0; y < t->windows[0].height; y++) {
      const float *floats = plain_floats (t->f, left + x, t->windows[0].y + y);

      if (floats) {
        add_floats (floats, n, min, max);
        continue;
      }
      load_row (t->f, left + x, t->windows[0].y + y, n, values);
      if (whole)
        add_range (values, n, true, min, max, count);
      else
        add_range (values, n, false, min, max, count);
    }
    for (uint32_t i = 0; plain_floats (t->f, 0, 0) && i < n; i++)
      count[i] = t->windows[0].height;
    for (uint32_t i = 0; i < t->n; i++) {
      ImkShcentroidRange *range = &t->ranges[i];

      for (uint32_t k = 0; k < t->windows[i].width && column < n;
           k++, column++) {
        float low = min[column], high = max[column];

        range->min = low < range->min ? low : range->min;
        range->max = high > range->max ? high : range->max;
        range->n += count[column];
      }
    }
  }
}

static void
find_levels (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  double brightest[CHAIN_TILE];

  if (imk_shcentroid_needs_range (&cpu->params))
    find_ranges (t);
  for (uint32_t i = 0; i < t->n; i++)
    brightest[i] = -imk_shcentroid_infinity ();
  if (cpu->params.brightest > 0)
    find_all_brightest (t, brightest);
  for (uint32_t i = 0; i < t->n; i++)
    t->levels[i] =
        imk_shcentroid_level (&cpu->params, cpu->rects[t->first + i].threshold,
            t->ranges[i].min, t->ranges[i].max, brightest[i]);
}
