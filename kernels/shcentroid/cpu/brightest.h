/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The level of the brightest pixels of a cell: the value of a rank, found by
 * halves. Samples that are the values are searched as the integers that they
 * are, bit by bit: a frame takes half the time. */
#pragma once

#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/weights.h"

/* Pixels whose keys the search keeps. */
enum {
  MOST_KEYS = 4096,
  KEY_STEP = 16, /* keys that are copied at a time */
};

/* --- samples ---------------------------------------------------------------
 * @size: log2 of the bytes of each */

enum { SAMPLE_BYTES = 2 * MOST_KEYS + 128 };

/* Returns: how many of the samples in @n_bytes reach @limit. They end with
 * zeros up to a whole vector; the limit is larger. */
INLINE uint32_t
count_samples (const uint8_t *samples, uint32_t n_bytes, uint32_t limit,
    const uint32_t size)
{
  uint32_t n = 0;

#if IMK_VECTOR_SIZE == 64
  for (uint32_t i = 0; i < n_bytes; i += 64) {
    __m512i some = _mm512_loadu_si512 (samples + i);

    n += (uint32_t) __builtin_popcountll (
        size ? _mm512_cmpge_epu16_mask (some, _mm512_set1_epi16 ((short) limit))
             : _mm512_cmpge_epu8_mask (some, _mm512_set1_epi8 ((char) limit)));
  }
#elif IMK_VECTOR_SIZE == 32
  const __m256i least = size ? _mm256_set1_epi16 ((short) limit)
                             : _mm256_set1_epi8 ((char) limit);

  for (uint32_t i = 0; i < n_bytes; i += 32) {
    __m256i some = _mm256_loadu_si256 ((const void *) (samples + i));
    __m256i reach =
        size ? _mm256_cmpeq_epi16 (_mm256_max_epu16 (some, least), some)
             : _mm256_cmpeq_epi8 (_mm256_max_epu8 (some, least), some);

    n += (uint32_t) __builtin_popcount (
             (uint32_t) _mm256_movemask_epi8 (reach)) >>
         size;
  }
#else
  const uint16_t *words = (const uint16_t *) (const void *) samples;

  for (uint32_t i = 0; i < n_bytes >> size; i++)
    n += (size ? words[i] : samples[i]) >= limit;
#endif
  return n;
}

/* Returns: the sample of this rank, counted from the largest as 1; @largest:
 * at least as large as all of them */
INLINE uint32_t
sample_of_rank (const uint8_t *samples, uint32_t n_bytes, uint32_t rank,
    uint32_t largest, const uint32_t size)
{
  uint32_t value = 0;

  for (uint32_t bit = size ? 1u << 15 : 1u << 7; bit; bit /= 2)
    if (value + bit <= largest &&
        count_samples (samples, n_bytes, value + bit, size) >= rank)
      value += bit;
  return value;
}

/* Row by row without a gap, and zeros up to a whole vector. Copies reach beyond
 * the row where the frame does.
 * Returns: the bytes of the samples */
INLINE uint32_t
gather_samples (const Frame *f, const ImkShcentroidWindow *w, uint8_t *samples,
    const uint32_t size)
{
  const uint32_t width = w->width << size, n_bytes = width * w->height;
  const uint8_t *from = (const uint8_t *) f->in->data + w->y * f->in->stride +
                        ((size_t) w->x << size);
  const bool in_steps =
      w->x + (width + KEY_STEP) <= f->cpu->plan.width && width <= 4 * KEY_STEP;
  uint8_t *to = samples;

  for (uint32_t y = 0; y < w->height; y++) {
    if (in_steps)
      for (uint32_t x = 0; x < width; x += KEY_STEP)
        memcpy (to + x, from + x, KEY_STEP);
    else
      memcpy (to, from, width);
    to += width;
    from += f->in->stride;
  }
  memset (samples + n_bytes, 0, 64);
  return n_bytes;
}

/* Returns: the largest sample that is less than that of the rank, -infinity for
 * none. Mostly it is the next one in rank, which one search finds. */
INLINE double
next_lower_sample (const uint8_t *samples, uint32_t n_bytes, uint32_t rank,
    uint32_t largest, const uint32_t size)
{
  const uint32_t n = n_bytes >> size;
  uint32_t value = sample_of_rank (samples, n_bytes, rank + 1, largest, size);

  if (value < largest &&
      count_samples (samples, n_bytes, value + 1, size) == rank)
    return value;
  rank = value > 0 ? count_samples (samples, n_bytes, value, size) : n;
  return rank < n ? sample_of_rank (samples, n_bytes, rank + 1, value, size)
                  : -imk_shcentroid_infinity ();
}

/* @rank: from the largest as 1, less than the samples of the cell
 * Returns: the level of the brightest pixels */
INLINE double
find_brightest_sample (const Frame *f, const ImkShcentroidWindow *w,
    uint32_t rank, uint32_t largest, const uint32_t size)
{
  _Alignas(64) uint8_t samples[SAMPLE_BYTES]; /* some are read as words */
  const uint32_t n_bytes = gather_samples (f, w, samples, size);

  return f->cpu->params.subtract
             ? next_lower_sample (samples, n_bytes, rank, largest, size)
             : sample_of_rank (samples, n_bytes, rank, largest, size);
}

/* Of cells whose values are integers as they came. */
static void
find_brightest_samples (const ChainTile *t, double *levels)
{
  for (uint32_t i = 0; i < t->n; i++) {
    const ImkShcentroidWindow *w = &t->windows[i];
    const uint32_t largest = (uint32_t) t->ranges[i].max;
    const uint32_t rank =
        imk_shcentroid_rank (&t->f->cpu->params, t->ranges[i].n);

    if (rank == 0)
      levels[i] = -imk_shcentroid_infinity ();
    else if (t->f->in->type == IMK_TYPE_U8)
      levels[i] = find_brightest_sample (t->f, w, rank, largest, 0);
    else
      levels[i] = find_brightest_sample (t->f, w, rank, largest, 1);
  }
}

/* --- values of any kind ----------------------------------------------------
 */

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
  if (samples)
    find_brightest_samples (t, levels);
  else
    find_brightest_values (t, levels);
}
