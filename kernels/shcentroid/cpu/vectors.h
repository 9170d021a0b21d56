/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors as long as a register of the instruction set. Compilers convert long
 * vectors lane by lane, so conversions are intrinsics. */
#pragma once

#include <string.h>

#include "shcentroid/cpu/state.h"

#if IMK_VECTOR_SIZE > 16
#include <immintrin.h>
#endif

/* Lanes of two vectors, by number. gcc takes the numbers as a vector. */
#ifdef __clang__
#define SHUFFLE(Numbers, a, b, ...) __builtin_shufflevector (a, b, __VA_ARGS__)
#else
#define SHUFFLE(Numbers, a, b, ...) \
  __builtin_shuffle (a, b, (Numbers){__VA_ARGS__})
#endif

typedef double Reals __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int64_t Masks __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef float Floats __attribute__ ((vector_size (IMK_VECTOR_SIZE / 2)));
enum { REALS = IMK_VECTOR_SIZE / sizeof (double) };

INLINE Reals
all_reals (double value)
{
  double numbers[REALS];
  Reals reals;

  for (uint32_t i = 0; i < REALS; i++)
    numbers[i] = value;
  memcpy (&reals, numbers, sizeof (reals));
  return reals;
}

INLINE Reals
read_reals (const double *from)
{
  Reals reals;

  memcpy (&reals, from, sizeof (reals));
  return reals;
}

INLINE void
write_reals (double *to, Reals reals)
{
  memcpy (to, &reals, sizeof (reals));
}

INLINE Reals
widen (const float *from)
{
#if IMK_VECTOR_SIZE == 64
  return (Reals) _mm512_cvtps_pd (_mm256_loadu_ps (from));
#elif IMK_VECTOR_SIZE == 32
  return (Reals) _mm256_cvtps_pd (_mm_loadu_ps (from));
#else
  Floats floats;

  memcpy (&floats, from, sizeof (floats));
  return __builtin_convertvector(floats, Reals);
#endif
}

/* @n numbers, and more up to a whole vector: the next cell overwrites them. */
INLINE void
fill_reals (double *to, double value, uint32_t n)
{
  Reals reals = all_reals (value);

  for (uint32_t i = 0; i < n; i += REALS)
    memcpy (to + i, &reals, sizeof (reals));
}

/* No vector code, and out of line: powers are rare. */
static void
raise_reals (Reals *p, double power)
{
  for (uint32_t i = 0; i < REALS; i++)
    (*p)[i] = imk_shcentroid_power ((*p)[i], power);
}

/* A bad pixel is not a number, and not larger. */
INLINE Reals
larger (Reals a, Reals b)
{
  Masks take = b > a;

  return (Reals) (((Masks) b & take) | ((Masks) a & ~take));
}
