/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The level of the brightest pixels of a cell: the value of a rank, found by
 * halves. */
#pragma once

#include "shcentroid/cpu/brightest-samples.h"
#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/weights.h"

enum { KEY_STEP = 16 }; /* keys that are copied at a time */

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

/* Of all cells of a tile, whatever their values are. */
static void
find_brightest_values (const ChainTile *t, double *levels)
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

/* Of all cells of a tile. */
static void
find_all_brightest (const ChainTile *t, double *levels)
{
  const Cpu *cpu = t->f->cpu;
  bool samples = t->f->in->type != IMK_TYPE_F32 && !cpu->dark && !cpu->lut;

  for (uint32_t i = 0; i < t->n && samples; i++)
    samples =
        t->windows[i].width * (uint64_t) t->windows[i].height <= MOST_KEYS;
  if (samples && t->f->in->type == IMK_TYPE_U8)
    find_brightest_samples (t->f, t->windows, t->n, levels, 0);
  else if (samples)
    find_brightest_samples (t->f, t->windows, t->n, levels, 1);
  else
    find_brightest_values (t, levels);
}
