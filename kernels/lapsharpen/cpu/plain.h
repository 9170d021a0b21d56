/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plain case on bytes, clamp (v + s L) with an s of few bits, for loops.c:
 * out = clamp ((2^q + k m) v - m sum v_i + 2^(q - 1) >> q), all of it in 16
 * bits, see imk_lapsharpen_find_fraction (). */
#pragma once

#include "lapsharpen/cpu/chunk.h"

#if defined(__AVX2__) && SAMPLE_BITS == 8
#include <immintrin.h>

/* The hardware prefetcher stops at each page; prefetching saves 10 to 20 % of
 * the time of a frame. The addresses may be beyond the end. */
enum { PREFETCH = 3072 }; /* bytes; of 1024 to 3072 the fastest */

#define HAVE_PLAIN 1

/* maddubs multiplies bytes of two sources by a small number each and adds the
 * products in 16 bits: pairs of neighbours by -m, the centre by 2^q + k m. That
 * takes half the instructions of what compilers make of loops, which first
 * widen every source. */
typedef uint8_t Bytes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int16_t Words __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

#if IMK_VECTOR_SIZE == 64
typedef __m512i Vector;

INLINE Vector
pack (Words low, Words high)
{
  return _mm512_packus_epi16 ((Vector) low, (Vector) high);
}

INLINE Vector
least_of (Vector a, Vector b)
{
  return _mm512_min_epu8 (a, b);
}

INLINE Vector
most_of (Vector a, Vector b)
{
  return _mm512_max_epu8 (a, b);
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

INLINE Vector
least_of (Vector a, Vector b)
{
  return _mm256_min_epu8 (a, b);
}

INLINE Vector
most_of (Vector a, Vector b)
{
  return _mm256_max_epu8 (a, b);
}

INLINE void
add_pairs (Vector a, Vector b, Vector weights, Words *low, Words *high)
{
  *low += (Words) _mm256_maddubs_epi16 (_mm256_unpacklo_epi8 (a, b), weights);
  *high += (Words) _mm256_maddubs_epi16 (_mm256_unpackhi_epi8 (a, b), weights);
}
#endif

INLINE Vector
load (const uint8_t *bytes)
{
  Vector v;

  memcpy (&v, bytes, sizeof (v));
  return v;
}

/* Writes whole vectors until @n bytes are written. @limited: as the rule's */
INLINE void
sharpen_bytes_with (
    const Band *band, const Rows *rows, size_t n, bool limited, uint8_t *out)
{
  const ImkLapsharpenRule *rule = band->rule;
  const ptrdiff_t c = rule->channels;
  const bool diagonal = rule->neighbours == 8;
  const uint32_t one = 1u << rule->fraction;
  const Vector minus = (Vector) ((Bytes){0} - (uint8_t) rule->multiple);
  const Vector centre =
      (Vector) ((Words){0} +
                (int16_t) (one + rule->multiple * rule->neighbours));
  const Words half = (Words){0} + (int16_t) (one / 2);
  const Vector zero = {0};

  for (size_t i = 0, phase = 0; i < n; i += IMK_VECTOR_SIZE) {
    const uint8_t *above = rows->row[ABOVE] + i;
    const uint8_t *here = rows->row[HERE] + i;
    const uint8_t *below = rows->row[BELOW] + i;
    Vector v = load (here), mask = load (band->filtered + phase);
    Vector least = zero, most = zero;
    Words low = half, high = half;

    if (limited) {
      least = least_of (v, load (band->low + phase));
      most = most_of (v, load (band->high + phase));
    }

    __builtin_prefetch (below + PREFETCH, 0);
    __builtin_prefetch (out + i + PREFETCH, 1);
    phase = phase + IMK_VECTOR_SIZE < CHUNK ? phase + IMK_VECTOR_SIZE : 0;
    add_pairs (v, zero, centre, &low, &high);
    add_pairs (load (above), load (below), minus, &low, &high);
    add_pairs (load (here - c), load (here + c), minus, &low, &high);
    if (diagonal) {
      add_pairs (load (above - c), load (above + c), minus, &low, &high);
      add_pairs (load (below - c), load (below + c), minus, &low, &high);
    }
    low >>= (int16_t) rule->fraction;
    high >>= (int16_t) rule->fraction;
    v = (pack (low, high) & mask) | (v & ~mask);
    if (limited)
      v = least_of (most_of (v, least), most);
    memcpy (out + i, &v, sizeof (v));
  }
}

INLINE void
sharpen_bytes (const Band *band, const Rows *rows, size_t n, uint8_t *out)
{
  const ImkLapsharpenRule *rule = band->rule;

  if (rule->limited && !rule->local)
    sharpen_bytes_with (band, rows, n, true, out);
  else
    sharpen_bytes_with (band, rows, n, false, out);
}

#else

/* The loops of chunk.h are as good. */
#define HAVE_PLAIN 0

INLINE void
sharpen_bytes (const Band *band, const Rows *rows, size_t n, Sample *out)
{
}

#endif
