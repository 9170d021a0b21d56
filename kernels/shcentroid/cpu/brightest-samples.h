/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The levels of the brightest pixels of cells whose samples are their values:
 * searched as the integers that they are, bit by bit, in some cells at a time,
 * as each bit waits for the one before. */
#pragma once

#include "shcentroid/cpu/vectors.h"

enum {
  SAMPLE_STEP = 16, /* bytes that are copied at a time */
  SAMPLE_BYTES = 2 * MOST_KEYS + 128,
  SEARCHED_CELLS = 4,                  /* at a time */
  MOST_UNROLLED = 8 * IMK_VECTOR_SIZE, /* bytes */
};

/* Samples of cells, row by row without a gap, and zeros up to @n_bytes, which
 * are whole vectors. */
typedef struct SampleBatch {
  _Alignas(64) uint8_t samples[SEARCHED_CELLS][SAMPLE_BYTES];
  uint32_t rank[SEARCHED_CELLS], value[SEARCHED_CELLS];
  uint32_t n_bytes;
} SampleBatch;

/* Returns: how many of the samples in @n_bytes reach @limit. They are
 * whole vectors that end with zeros; the limit is larger. @size: log2 of the
 * bytes of each */
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
  __m256i counts = _mm256_setzero_si256 ();
  __m128i half;

  for (uint32_t i = 0; i < n_bytes; i += 32) {
    __m256i some = _mm256_loadu_si256 ((const void *) (samples + i));
    __m256i reach =
        size ? _mm256_cmpeq_epi16 (_mm256_max_epu16 (some, least), some)
             : _mm256_cmpeq_epi8 (_mm256_max_epu8 (some, least), some);

    counts = _mm256_sub_epi8 (counts, reach); /* fewer than 256 vectors */
  }
  counts = _mm256_sad_epu8 (counts, _mm256_setzero_si256 ());
  half = _mm_add_epi64 (
      _mm256_castsi256_si128 (counts), _mm256_extracti128_si256 (counts, 1));
  n = (uint32_t) (_mm_cvtsi128_si32 (half) + _mm_extract_epi32 (half, 2)) >>
      size;
#else
  const uint16_t *words = (const uint16_t *) (const void *) samples;

  for (uint32_t i = 0; i < n_bytes >> size; i++)
    n += (size ? words[i] : samples[i]) >= limit;
#endif
  return n;
}

/* Whole vectors; of few a power of 2, for find_ranks (). */
INLINE uint32_t
batch_bytes (uint32_t n_bytes)
{
  uint32_t whole = (n_bytes + IMK_VECTOR_SIZE - 1) & ~(IMK_VECTOR_SIZE - 1u);

  for (uint32_t few = IMK_VECTOR_SIZE; few <= MOST_UNROLLED; few *= 2)
    if (whole <= few)
      return few;
  return whole;
}

/* Of each cell the sample of its rank, counted from the largest as 1, without a
 * branch that depends on samples. @n_bytes: those of each cell */
INLINE void
search_samples (uint8_t samples[SEARCHED_CELLS][SAMPLE_BYTES],
    const uint32_t n_bytes, const uint32_t *rank, uint32_t *value,
    const uint32_t size)
{
  memset (value, 0, SEARCHED_CELLS * sizeof (*value));
  for (uint32_t bit = size ? 1u << 15 : 1u << 7; bit; bit /= 2)
    for (uint32_t k = 0; k < SEARCHED_CELLS; k++) {
      uint32_t limit = value[k] | bit;
      uint32_t n = count_samples (samples[k], n_bytes, limit, size);

      /* the bit stays unless n is less: compilers would make a branch of >= */
      value[k] = limit ^ (bit & (uint32_t) ((int32_t) (n - rank[k]) >> 31));
    }
}

/* The same, with few vectors in a loop of their own. */
INLINE void
find_ranks (uint8_t samples[SEARCHED_CELLS][SAMPLE_BYTES], uint32_t n_bytes,
    const uint32_t *rank, uint32_t *value, const uint32_t size)
{
  if (n_bytes == IMK_VECTOR_SIZE)
    search_samples (samples, IMK_VECTOR_SIZE, rank, value, size);
  else if (n_bytes == 2 * IMK_VECTOR_SIZE)
    search_samples (samples, 2 * IMK_VECTOR_SIZE, rank, value, size);
  else if (n_bytes == 4 * IMK_VECTOR_SIZE)
    search_samples (samples, 4 * IMK_VECTOR_SIZE, rank, value, size);
  else if (n_bytes == MOST_UNROLLED)
    search_samples (samples, MOST_UNROLLED, rank, value, size);
  else
    search_samples (samples, n_bytes, rank, value, size);
}

/* Of samples of two bytes the upper ones, then of those with that one the lower
 * ones: half the vectors of a search of both together. */
INLINE void
find_words (SampleBatch *b)
{
  uint8_t bytes[SEARCHED_CELLS][SAMPLE_BYTES];
  uint32_t n_words = b->n_bytes / 2, n = batch_bytes (n_words);
  uint32_t upper[SEARCHED_CELLS], rank[SEARCHED_CELLS];

  for (uint32_t k = 0; k < SEARCHED_CELLS; k++) {
    const uint16_t *words = (const uint16_t *) (const void *) b->samples[k];

    for (uint32_t i = 0; i < n_words; i++)
      bytes[k][i] = (uint8_t) (words[i] >> 8);
    memset (bytes[k] + n_words, 0, n - n_words);
  }
  find_ranks (bytes, n, b->rank, upper, 0);
  for (uint32_t k = 0; k < SEARCHED_CELLS; k++) {
    const uint16_t *words = (const uint16_t *) (const void *) b->samples[k];
    const uint16_t same = (uint16_t) upper[k];

    rank[k] = b->rank[k];
    if (same < 255)
      rank[k] -= count_samples (bytes[k], n, same + 1u, 0);
    for (uint32_t i = 0; i < n_words; i++)
      bytes[k][i] = (uint8_t) (words[i] >> 8 == same ? words[i] : 0);
  }
  find_ranks (bytes, n, rank, b->value, 0);
  for (uint32_t k = 0; k < SEARCHED_CELLS; k++)
    b->value[k] |= upper[k] << 8;
}

/* Copies reach beyond the row where the frame does. */
INLINE void
gather_samples (const Frame *f, const ImkShcentroidWindow *w, uint8_t *samples,
    uint32_t n_bytes, const uint32_t size)
{
  const uint32_t width = w->width << size;
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
  memset (to, 0, n_bytes - (size_t) (to - samples));
}

typedef uint8_t Bytes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

INLINE uint8_t
largest_byte_below (const uint8_t *samples, uint32_t n_bytes, uint8_t limit)
{
  Bytes most = {0};
  uint8_t bytes[IMK_VECTOR_SIZE];

  for (uint32_t i = 0; i < n_bytes; i += IMK_VECTOR_SIZE) {
    Bytes some, more;

    memcpy (&some, samples + i, sizeof (some));
    some &= (Bytes) (some < limit);
    more = (Bytes) (some > most);
    most = (some & more) | (most & ~more);
  }
  memcpy (bytes, &most, sizeof (bytes));
  for (uint32_t step = IMK_VECTOR_SIZE / 2; step; step /= 2)
    for (uint32_t i = 0; i < step; i++)
      bytes[i] = bytes[i + step] > bytes[i] ? bytes[i + step] : bytes[i];
  return bytes[0];
}

/* Returns: the largest sample below @limit; 0 for none */
INLINE uint32_t
largest_below (const uint8_t *samples, uint32_t n_bytes, uint32_t limit,
    const uint32_t size)
{
  const uint16_t *words = (const uint16_t *) (const void *) samples;
  uint16_t most = 0;

  if (size == 0)
    return largest_byte_below (samples, n_bytes, (uint8_t) limit);
  for (uint32_t i = 0; i < n_bytes / 2; i++) {
    uint16_t below = words[i] < (uint16_t) limit ? words[i] : 0;

    most = below > most ? below : most;
  }
  return most;
}

/* Returns: of cell @k, which has @n samples, the largest below that of @rank;
 * -infinity for none. Mostly it is the next in rank, which the search has
 * found. */
INLINE double
next_lower_sample (const SampleBatch *b, uint32_t k, uint32_t rank, uint32_t n,
    const uint32_t size)
{
  const uint8_t *samples = b->samples[k];
  uint32_t value = b->value[k], most = size ? 65535 : 255;

  if (value < most &&
      count_samples (samples, b->n_bytes, value + 1, size) == rank)
    return value;
  if (value == 0 || count_samples (samples, b->n_bytes, value, size) == n)
    return -imk_shcentroid_infinity ();
  return largest_below (samples, b->n_bytes, value, size);
}

INLINE uint32_t
pixels_of (const ImkShcentroidWindow *w)
{
  return w->width * w->height;
}

/* Of up to SEARCHED_CELLS windows. */
INLINE void
find_levels_of_batch (const Frame *f, const ImkShcentroidWindow *windows,
    uint32_t n, double *levels, const uint32_t size)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  SampleBatch b;

  b.n_bytes = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t n_bytes = pixels_of (&windows[k]) << size;

    b.n_bytes = n_bytes > b.n_bytes ? n_bytes : b.n_bytes;
  }
  b.n_bytes = batch_bytes (b.n_bytes);
  for (uint32_t k = 0; k < SEARCHED_CELLS; k++) {
    const ImkShcentroidWindow *w = &windows[k < n ? k : n - 1];

    gather_samples (f, w, b.samples[k], b.n_bytes, size);
    b.rank[k] = imk_shcentroid_rank (params, pixels_of (w)) + params->subtract;
  }
  if (size && b.n_bytes > MOST_UNROLLED)
    find_words (&b);
  else
    find_ranks (b.samples, b.n_bytes, b.rank, b.value, size);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t n_pixels = pixels_of (&windows[k]);
    uint32_t rank = imk_shcentroid_rank (params, n_pixels);

    levels[k] = rank == 0 ? -imk_shcentroid_infinity ()
                : params->subtract
                    ? next_lower_sample (&b, k, rank, n_pixels, size)
                    : b.value[k];
  }
}

/* Of windows of at most MOST_KEYS pixels. @size: log2 of the bytes of a sample
 */
INLINE void
find_brightest_samples (const Frame *f, const ImkShcentroidWindow *windows,
    uint32_t n, double *levels, const uint32_t size)
{
  for (uint32_t i = 0; i < n; i += SEARCHED_CELLS) {
    uint32_t some = n - i < SEARCHED_CELLS ? n - i : SEARCHED_CELLS;

    find_levels_of_batch (f, windows + i, some, levels + i, size);
  }
}
