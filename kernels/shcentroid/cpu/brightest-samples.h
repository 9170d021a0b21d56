/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The level of the brightest pixels of a cell whose samples are its values:
 * searched as the integers that they are, bit by bit. */
#pragma once

#include "shcentroid/cpu/vectors.h"

enum {
  SAMPLE_STEP = 16, /* bytes that are copied at a time */
  SAMPLE_BYTES = 2 * MOST_KEYS + 128,
};

/* Returns: how many of the samples in @n_bytes reach @limit. They end with
 * zeros up to a whole vector; the limit is larger. @size: log2 of the bytes of
 * each */
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

/* Bit by bit, without a branch that depends on samples.
 * Returns: the sample of this rank, counted from the largest as 1 */
INLINE uint32_t
sample_of_rank (const uint8_t *samples, uint32_t n_bytes, uint32_t rank,
    const uint32_t size)
{
  uint32_t value = 0;

  for (uint32_t bit = size ? 1u << 15 : 1u << 7; bit; bit /= 2) {
    bool reached = count_samples (samples, n_bytes, value | bit, size) >= rank;

    value |= reached ? bit : 0;
  }
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
  const bool in_steps = w->x + (width + SAMPLE_STEP) <= f->cpu->plan.width &&
                        width <= 4 * SAMPLE_STEP;
  uint8_t *to = samples;

  for (uint32_t y = 0; y < w->height; y++) {
    if (in_steps)
      for (uint32_t x = 0; x < width; x += SAMPLE_STEP)
        memcpy (to + x, from + x, SAMPLE_STEP);
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
    const uint32_t size)
{
  const uint32_t n = n_bytes >> size, most = size ? 65535 : 255;
  uint32_t value = sample_of_rank (samples, n_bytes, rank + 1, size);

  if (value < most && count_samples (samples, n_bytes, value + 1, size) == rank)
    return value;
  rank = value > 0 ? count_samples (samples, n_bytes, value, size) : n;
  return rank < n ? sample_of_rank (samples, n_bytes, rank + 1, size)
                  : -imk_shcentroid_infinity ();
}

/* @size: log2 of the bytes of a sample
 * Returns: the level of the brightest pixels of a window of at most MOST_KEYS
 *   pixels */
INLINE double
find_brightest_sample (
    const Frame *f, const ImkShcentroidWindow *w, const uint32_t size)
{
  _Alignas(64) uint8_t samples[SAMPLE_BYTES]; /* some are read as words */
  const ImkShcentroidParams *params = &f->cpu->params;
  const uint32_t rank = imk_shcentroid_rank (params, w->width * w->height);
  uint32_t n_bytes;

  if (rank == 0)
    return -imk_shcentroid_infinity ();
  n_bytes = gather_samples (f, w, samples, size);
  return params->subtract ? next_lower_sample (samples, n_bytes, rank, size)
                          : sample_of_rank (samples, n_bytes, rank, size);
}
