/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors of float32, and samples as counts, for loops.c and float.c. */
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "lapsharpen/cpu/samples.h"

typedef int32_t Ints __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef float Floats __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

enum {
  LANES = IMK_VECTOR_SIZE / sizeof (float),
  SUMS = 4, /* vectors whose sums are made together, in registers: each waits
             * for the addition before */
};

/* A sum of two counts is exact as an integer; float32 samples are no counts. */
#if SAMPLE_BITS == 32
typedef float Count;
typedef Floats Counts;
#else
typedef int32_t Count;
typedef Ints Counts;
#endif

INLINE Count
count_of (Sample v, uint32_t shift)
{
#if SAMPLE_BITS == 32
  return v;
#else
  return v >> shift;
#endif
}

/* What compilers make of __builtin_convertvector takes three times as long. */
INLINE Counts
load_counts (const Sample *from, uint32_t shift)
{
  Counts v;

#if SAMPLE_BITS == 32
  memcpy (&v, from, sizeof (v));
  return v;
#else
#if defined(__AVX512F__) && SAMPLE_BITS == 8
  v = (Ints) _mm512_cvtepu8_epi32 (_mm_loadu_si128 ((const void *) from));
#elif defined(__AVX512F__)
  v = (Ints) _mm512_cvtepu16_epi32 (_mm256_loadu_si256 ((const void *) from));
#elif defined(__AVX2__) && SAMPLE_BITS == 8
  v = (Ints) _mm256_cvtepu8_epi32 (_mm_loadl_epi64 ((const void *) from));
#elif defined(__AVX2__)
  v = (Ints) _mm256_cvtepu16_epi32 (_mm_loadu_si128 ((const void *) from));
#else
  for (int i = 0; i < (int) LANES; i++)
    v[i] = from[i];
#endif
  return v >> (int32_t) shift;
#endif
}

INLINE Floats
load_floats (const float *from)
{
  Floats v;

  memcpy (&v, from, sizeof (v));
  return v;
}
