/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors of float32, and samples in them. */
#pragma once

#include "shcentroid/cpu/vectors.h"

typedef float Singles __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int32_t Ints __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef uint32_t Words __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
enum { SINGLES = IMK_VECTOR_SIZE / sizeof (float) };

INLINE Singles
read_singles (const float *from)
{
  Singles singles;

  memcpy (&singles, from, sizeof (singles));
  return singles;
}

/* Samples of two bytes, or of one. */
INLINE Words
read_words (const uint8_t *from, bool words)
{
#if IMK_VECTOR_SIZE == 64
  return (Words) (words ? _mm512_cvtepu16_epi32 (
                              _mm256_loadu_si256 ((const void *) from))
                        : _mm512_cvtepu8_epi32 (
                              _mm_loadu_si128 ((const void *) from)));
#elif IMK_VECTOR_SIZE == 32
  return (Words) (words ? _mm256_cvtepu16_epi32 (
                              _mm_loadu_si128 ((const void *) from))
                        : _mm256_cvtepu8_epi32 (
                              _mm_loadl_epi64 ((const void *) from)));
#else
  Words samples = {0};

  for (uint32_t i = 0; i < SINGLES; i++)
    samples[i] = words ? ((const uint16_t *) from)[i] : from[i];
  return samples;
#endif
}

/* Of numbers below 2^31. See widen (). */
INLINE Singles
convert_words (Words words)
{
#if IMK_VECTOR_SIZE == 64
  return (Singles) _mm512_cvtepi32_ps ((__m512i) words);
#elif IMK_VECTOR_SIZE == 32
  return (Singles) _mm256_cvtepi32_ps ((__m256i) words);
#else
  return __builtin_convertvector((Ints) words, Singles);
#endif
}

/* As many samples as a vector of Reals has, where nobody wants them as float32.
 */
INLINE Reals
read_samples (const uint8_t *from, bool words)
{
#if IMK_VECTOR_SIZE == 64
  return (Reals) _mm512_cvtepi64_pd (
      words ? _mm512_cvtepu16_epi64 (_mm_loadu_si128 ((const void *) from))
            : _mm512_cvtepu8_epi64 (_mm_loadl_epi64 ((const void *) from)));
#elif IMK_VECTOR_SIZE == 32
  int four;

  if (words)
    return (Reals) _mm256_cvtepi32_pd (
        _mm_cvtepu16_epi32 (_mm_loadl_epi64 ((const void *) from)));
  memcpy (&four, from, sizeof (four));
  return (Reals) _mm256_cvtepi32_pd (
      _mm_cvtepu8_epi32 (_mm_cvtsi32_si128 (four)));
#else
  Reals reals = {0};

  for (uint32_t i = 0; i < REALS; i++)
    reals[i] = words ? ((const uint16_t *) from)[i] : from[i];
  return reals;
#endif
}
