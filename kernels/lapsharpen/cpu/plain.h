/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plain case on bytes, clamp (v + s L) with a whole s, for loops.c. */
#pragma once

#include "lapsharpen/cpu/block.h"

/* Sharpens @n bytes of whole pixels that have all their neighbours. 16 bits
 * hold every intermediate value: |t| <= (8 * 10 + 1) * 255. */
INLINE void
sharpen_bytes (const Work *work, const Rows *rows, uint8_t *out, uint32_t first,
    uint32_t n)
{
  const ptrdiff_t c = work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const int16_t amount = (int16_t) work->rule->amount;
  const int16_t centre = (int16_t) (1 + amount * (diagonal ? 8 : 4));
  const uint8_t *above = (const uint8_t *) rows->above + first;
  const uint8_t *here = (const uint8_t *) rows->here + first;
  const uint8_t *below = (const uint8_t *) rows->below + first;

  out += first;
  for (ptrdiff_t i = 0; i < (ptrdiff_t) n; i++) {
    int16_t sum = above[i] + below[i] + here[i - c] + here[i + c];
    int16_t t;

    if (diagonal)
      sum += above[i - c] + above[i + c] + below[i - c] + below[i + c];
    t = centre * here[i] - amount * sum;
    t = t < 0 ? 0 : t > 255 ? 255 : t;
    out[i] = (uint8_t) (work->filtered[i] ? t : here[i]);
  }
}

#if defined(__AVX2__)
#include <immintrin.h>

/* maddubs multiplies bytes of two sources by a small number each and adds the
 * products in 16 bits: pairs of neighbours by -s, the centre by 1 + k s. That
 * takes half the instructions of what compilers make of sharpen_bytes (), which
 * first widens every source. */
typedef uint8_t Bytes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int16_t Words __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

#if IMK_VECTOR_SIZE == 64
typedef __m512i Vector;

INLINE Vector
pack (Words low, Words high)
{
  return _mm512_packus_epi16 ((Vector) low, (Vector) high);
}

/* Adds the pairs of @a and @b, each times its byte of @weights. */
INLINE void
add_pairs (Vector a, Vector b, Vector weights, Words *low, Words *high)
{
  *low += (Words) _mm512_maddubs_epi16 (_mm512_unpacklo_epi8 (a, b), weights);
  *high += (Words) _mm512_maddubs_epi16 (_mm512_unpackhi_epi8 (a, b), weights);
}
#else
typedef __m256i Vector;

INLINE Vector
pack (Words low, Words high)
{
  return _mm256_packus_epi16 ((Vector) low, (Vector) high);
}

INLINE void
add_pairs (Vector a, Vector b, Vector weights, Words *low, Words *high)
{
  *low += (Words) _mm256_maddubs_epi16 (_mm256_unpacklo_epi8 (a, b), weights);
  *high += (Words) _mm256_maddubs_epi16 (_mm256_unpackhi_epi8 (a, b), weights);
}
#endif

enum { PREFETCH = 3072 }; /* bytes; of 1024 to 3072 the fastest */

/* The hardware prefetcher stops at each page; this saves 10 to 20 % of the time
 * of a frame. The address may be beyond the end. */
INLINE void
prefetch (const uint8_t *in, uint8_t *out)
{
  __builtin_prefetch (in + PREFETCH, 0);
  __builtin_prefetch (out + PREFETCH, 1);
}

INLINE Vector
load (const uint8_t *bytes)
{
  Vector v;

  memcpy (&v, bytes, sizeof (v));
  return v;
}

/* Sharpens BLOCK bytes. */
INLINE void
sharpen_bytes_block (
    const Work *work, const Rows *rows, uint8_t *out, uint32_t first)
{
  const ptrdiff_t c = work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const int amount = (int) work->rule->amount;
  const Vector minus = (Vector) ((Bytes){0} - (uint8_t) amount);
  const Vector centre =
      (Vector) ((Words){0} + (int16_t) (1 + amount * (diagonal ? 8 : 4)));
  const Vector zero = {0};

  for (ptrdiff_t j = 0; j < BLOCK; j += IMK_VECTOR_SIZE) {
    const uint8_t *above = (const uint8_t *) rows->above + first + j;
    const uint8_t *here = (const uint8_t *) rows->here + first + j;
    const uint8_t *below = (const uint8_t *) rows->below + first + j;
    Vector v = load (here), mask = load (work->filtered_bytes + j);
    Words low = {0}, high = {0};

    prefetch (below, out + first + j);
    add_pairs (v, zero, centre, &low, &high);
    add_pairs (load (above), load (below), minus, &low, &high);
    add_pairs (load (here - c), load (here + c), minus, &low, &high);
    if (diagonal) {
      add_pairs (load (above - c), load (above + c), minus, &low, &high);
      add_pairs (load (below - c), load (below + c), minus, &low, &high);
    }
    v = (pack (low, high) & mask) | (v & ~mask);
    memcpy (out + first + j, &v, sizeof (v));
  }
}

#else

INLINE void
sharpen_bytes_block (
    const Work *work, const Rows *rows, uint8_t *out, uint32_t first)
{
  sharpen_bytes (work, rows, out, first, BLOCK);
}

#endif
