/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The levels of cells: which pixels count, and what is subtracted from them. */
#pragma once

#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/tile.h"

/* Pixels of a window whose keys the search for the brightest keeps. */
enum { MOST_KEYS = 4096 };

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

/* @keys: (out): of all pixels but bad ones; one more may be written. Returns:
 * how many */
static uint32_t
gather_keys (
    const ChainTile *t, const ImkShcentroidWindow *w, uint32_t *restrict keys)
{
  float values[CHAIN_TILE];
  uint32_t count = 0;

  for (uint32_t y = 0; y < w->height; y++)
    for (uint32_t x = 0; x < w->width; x += CHAIN_TILE) {
      uint32_t n = w->width - x < CHAIN_TILE ? w->width - x : CHAIN_TILE;

      load_row (t->f, w->x + x, w->y + y, n, values);
      for (uint32_t i = 0; i < n; i++) {
        keys[count] = imk_shcentroid_key (values[i]);
        count += values[i] == values[i];
      }
    }
  return count;
}

/* How many of @n, turned around by @turn, reach @key, and the smallest that
 * does. */
static uint32_t
count_keys (const uint32_t *restrict keys, uint32_t n, uint32_t turn,
    uint32_t key, uint32_t *smallest)
{
  uint32_t count = 0, least = UINT32_MAX;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = keys[i] ^ turn, reaches = k >= key;

    k |= reaches - 1;
    count += reaches;
    least = k < least ? k : least;
  }
  *smallest = least;
  return count;
}

/* The same of a window with more than MOST_KEYS. */
static uint32_t
count_brighter (const ChainTile *t, const ImkShcentroidWindow *w, uint32_t turn,
    uint32_t key, uint32_t *smallest)
{
  uint32_t count = 0, least = UINT32_MAX;
  float values[CHAIN_TILE];

  for (uint32_t y = 0; y < w->height; y++)
    for (uint32_t x = 0; x < w->width; x += CHAIN_TILE) {
      uint32_t n = w->width - x < CHAIN_TILE ? w->width - x : CHAIN_TILE;

      load_row (t->f, w->x + x, w->y + y, n, values);
      for (uint32_t i = 0; i < n; i++) {
        uint32_t k = imk_shcentroid_key (values[i]) ^ turn;
        uint32_t reaches = (k >= key) & (values[i] == values[i]);

        k |= reaches - 1;
        count += reaches;
        least = k < least ? k : least;
      }
    }
  *smallest = least;
  return count;
}

/* Returns: the level of the brightest pixels of cell @i */
static double
find_brightest (const ChainTile *t, uint32_t i)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;
  uint32_t rank = imk_shcentroid_rank (params, t->ranges[i].n);
  const ImkShcentroidWindow *w = &t->windows[i];
  bool fits = (uint64_t) w->width * w->height <= MOST_KEYS, found = false;
  uint32_t keys[MOST_KEYS + 1], n_keys = 0, smallest;
  ImkShcentroidSearch search;

  if (rank == 0)
    return -imk_shcentroid_infinity ();
  if (fits)
    n_keys = gather_keys (t, w, keys);
  search = imk_shcentroid_search (t->ranges[i], rank);
  while (!found && search.high - search.low > 1) {
    uint32_t key = imk_shcentroid_search_key (&search);
    uint32_t n = fits ? count_keys (keys, n_keys, 0, key, &smallest)
                      : count_brighter (t, w, 0, key, &smallest);

    found = imk_shcentroid_search_step (&search, n, smallest);
  }
  if (!params->subtract)
    return imk_shcentroid_value_of_key (search.low);
  if (fits)
    count_keys (keys, n_keys, IMK_SHCENTROID_LOWER,
        imk_shcentroid_lower_key (&search), &smallest);
  else
    count_brighter (t, w, IMK_SHCENTROID_LOWER,
        imk_shcentroid_lower_key (&search), &smallest);
  return imk_shcentroid_lower_level (smallest);
}

static void
find_levels (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;

  if (imk_shcentroid_needs_range (&cpu->params))
    find_ranges (t);
  for (uint32_t i = 0; i < t->n; i++) {
    double brightest = -imk_shcentroid_infinity ();

    if (cpu->params.brightest > 0)
      brightest = find_brightest (t, i);
    t->levels[i] =
        imk_shcentroid_level (&cpu->params, cpu->rects[t->first + i].threshold,
            t->ranges[i].min, t->ranges[i].max, brightest);
  }
}
