/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The levels of cells: which pixels count, and what is subtracted from them. */
#pragma once

#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/tile.h"

/* Pixels whose keys the search for the brightest keeps. */
enum {
  MOST_KEYS = 4096,
  KEY_STEP = 16, /* keys that are copied at a time */
};

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

/* Of a bad pixel it is below all others. */
INLINE uint32_t
key_of (float value)
{
  return value == value ? imk_shcentroid_key (value) : 0;
}

/* Keys of cells side by side, of each its rows one after the other. */
typedef struct KeyBatch {
  uint32_t first, n; /* cells */
  uint32_t at[CHAIN_TILE];
  uint32_t keys[MOST_KEYS + (CHAIN_TILE + 1) * KEY_STEP];
} KeyBatch;

static uint32_t
n_keys_of (const ImkShcentroidWindow *w)
{
  return w->width * w->height;
}

/* From row to cells. Steps end beyond the row of a cell: in its next row, which
 * comes later, or between two cells. */
static void
deal_keys (const ChainTile *t, KeyBatch *b, const uint32_t *row, uint32_t y)
{
  for (uint32_t i = 0, column = 0; i < b->n; i++) {
    uint32_t width = t->windows[b->first + i].width;
    uint32_t *to = b->keys + b->at[i] + y * width;

    for (uint32_t x = 0; x < width; x += KEY_STEP)
      memcpy (to + x, row + column + x, KEY_STEP * sizeof (*to));
    column += width;
  }
}

/* Of as many cells as fit, from @first on; of none, if that one does not. */
static void
gather_keys (const ChainTile *t, uint32_t first, KeyBatch *b)
{
  const ImkShcentroidWindow *w = &t->windows[first];
  uint32_t row[CHAIN_TILE + KEY_STEP], n_keys = 0, columns = 0;
  float values[CHAIN_TILE];

  b->first = first;
  b->n = 0;
  for (uint32_t i = first; i < t->n && t->windows[i].width <= CHAIN_TILE &&
                           n_keys + n_keys_of (&t->windows[i]) <= MOST_KEYS;
       i++) {
    b->at[b->n] = n_keys + b->n * KEY_STEP;
    n_keys += n_keys_of (&t->windows[i]);
    columns += t->windows[i].width;
    b->n++;
  }
  for (uint32_t y = 0; y < w->height && b->n > 0; y++) {
    load_row (t->f, w->x, w->y + y, columns, values);
    for (uint32_t x = 0; x < columns; x++)
      row[x] = key_of (values[x]);
    deal_keys (t, b, row, y);
  }
}

/* Of the keys on both sides of a limit. */
typedef struct KeySplit {
  uint32_t n;        /* that reach it */
  uint32_t smallest; /* of these; UINT32_MAX for none */
  uint32_t largest;  /* of the others; 0 for none */
} KeySplit;

static KeySplit
split_keys (const uint32_t *restrict keys, uint32_t n, uint32_t limit)
{
  uint32_t count = 0, smallest = UINT32_MAX, largest = 0;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t reaches = keys[i] >= limit, above = keys[i] | (reaches - 1);
    uint32_t below = keys[i] & (reaches - 1);

    count += reaches;
    smallest = above < smallest ? above : smallest;
    largest = below > largest ? below : largest;
  }
  return (KeySplit){count, smallest, largest};
}

/* The same of a window with more than MOST_KEYS. */
static KeySplit
split_window (const ChainTile *t, const ImkShcentroidWindow *w, uint32_t limit)
{
  KeySplit split = {0, UINT32_MAX, 0};
  uint32_t keys[CHAIN_TILE];
  float values[CHAIN_TILE];

  for (uint32_t y = 0; y < w->height; y++)
    for (uint32_t x = 0; x < w->width; x += CHAIN_TILE) {
      uint32_t n = w->width - x < CHAIN_TILE ? w->width - x : CHAIN_TILE;
      KeySplit some;

      load_row (t->f, w->x + x, w->y + y, n, values);
      for (uint32_t i = 0; i < n; i++)
        keys[i] = key_of (values[i]);
      some = split_keys (keys, n, limit);
      split.n += some.n;
      if (some.smallest < split.smallest)
        split.smallest = some.smallest;
      if (some.largest > split.largest)
        split.largest = some.largest;
    }
  return split;
}

/* Halves the range between the smallest and the largest pixel; both ends are
 * always those of pixels, so that equal ones take no steps.
 * @keys: of the cell, or NULL
 * Returns: the level of the brightest pixels of cell @i */
static double
find_brightest (const ChainTile *t, uint32_t i, const uint32_t *keys)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;
  const ImkShcentroidWindow *w = &t->windows[i];
  uint32_t rank = imk_shcentroid_rank (params, t->ranges[i].n);
  uint32_t low = imk_shcentroid_key (t->ranges[i].min);
  uint32_t last = imk_shcentroid_key (t->ranges[i].max), limit;
  KeySplit s = {.n = 0};

  if (rank == 0)
    return -imk_shcentroid_infinity ();
  while (s.n != rank && low < last) {
    limit = last - (last - low) / 2;
    s = keys ? split_keys (keys, n_keys_of (w), limit)
             : split_window (t, w, limit);
    if (s.n < rank)
      last = s.largest;
    else
      low = s.smallest;
  }
  if (!params->subtract)
    return imk_shcentroid_value_of_key (low);
  s = keys ? split_keys (keys, n_keys_of (w), low) : split_window (t, w, low);
  return s.largest ? imk_shcentroid_value_of_key (s.largest)
                   : -imk_shcentroid_infinity ();
}

/* Of all cells of a tile. */
static void
find_all_brightest (const ChainTile *t, double *levels)
{
  KeyBatch batch;

  for (uint32_t first = 0; first < t->n;) {
    gather_keys (t, first, &batch);
    for (uint32_t i = 0; i < batch.n; i++)
      levels[first + i] =
          find_brightest (t, first + i, batch.keys + batch.at[i]);
    if (batch.n == 0)
      levels[first] = find_brightest (t, first, NULL);
    first += batch.n ? batch.n : 1;
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
