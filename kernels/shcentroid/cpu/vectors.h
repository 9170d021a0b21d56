/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors as long as a register of the instruction set. Compilers convert long
 * vectors lane by lane, so conversions are intrinsics. */
#pragma once

#include <math.h>
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
enum {
  REALS = IMK_VECTOR_SIZE / sizeof (double),
  /* whose exponentials are found side by side, in registers */
  EXP_VECTORS = 4,
};

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

INLINE Reals
choose_reals (Masks mask, Reals yes, Reals no)
{
  return (Reals) (((Masks) yes & mask) | ((Masks) no & ~mask));
}

INLINE Reals
sqrt_reals (Reals x)
{
#if IMK_VECTOR_SIZE == 64
  return (Reals) _mm512_sqrt_pd ((__m512d) x);
#elif IMK_VECTOR_SIZE == 32
  return (Reals) _mm256_sqrt_pd ((__m256d) x);
#else
  for (uint32_t i = 0; i < REALS; i++)
    x[i] = sqrt (x[i]);
  return x;
#endif
}

/* imk_shcentroid_log (), operation by operation: the same bits. */
INLINE Reals
log_reals (Reals x)
{
  static const double terms[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
      1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
  Masks bits = (Masks) x;
  Masks exponents =
      ((bits >> 52) & 0x7ff) | (Masks) all_reals (IMK_SHCENTROID_WHOLE);
  Reals exponent = (Reals) exponents - IMK_SHCENTROID_WHOLE - 1023.0, m, s,
        square;
  Reals sum = {0};
  Masks large;

  m = (Reals) ((bits & INT64_C (0x000fffffffffffff)) |
               INT64_C (0x3ff0000000000000));
  large = m > 1.4142135623730951;
  m = choose_reals (large, m * 0.5, m);
  exponent = choose_reals (large, exponent + 1.0, exponent);
  s = (m - 1.0) / (m + 1.0);
  square = s * s;
  for (uint32_t i = 0; i < sizeof (terms) / sizeof (*terms); i++)
    sum = sum * square + terms[i];
  return 2.0 * s * sum + exponent * 0.69314718055994531;
}

/* imk_shcentroid_exp2 (), likewise, of @n vectors. Each waits for its last
 * term, many side by side do not. */
INLINE void
exp2_vectors (Reals *x, const uint32_t n)
{
  static const double terms[] = {1.0205905413765595e-07, 1.3215451633221434e-06,
      1.5252672924850737e-05, 0.00015403530424776529, 0.0013333558200794592,
      0.009618129107618665, 0.05550410866465167, 0.24022650695910075,
      0.6931471805599462, 1.0};
  Reals shifted[EXP_VECTORS], r[EXP_VECTORS], sum[EXP_VECTORS];

  for (uint32_t j = 0; j < n; j++) {
    Reals bounded = choose_reals (x[j] > -1000.0, x[j], all_reals (-1000.0));

    shifted[j] = bounded + IMK_SHCENTROID_WHOLE;
    r[j] = bounded - (shifted[j] - IMK_SHCENTROID_WHOLE);
    sum[j] = all_reals (7.070977866508139e-09);
  }
  for (uint32_t i = 0; i < sizeof (terms) / sizeof (*terms); i++)
    for (uint32_t j = 0; j < n; j++)
      sum[j] = sum[j] * r[j] + terms[i];
  for (uint32_t j = 0; j < n; j++) {
    Reals scale = (Reals) (((Masks) shifted[j] + 1023) << 52);

    x[j] = (Reals) ((Masks) (sum[j] * scale) & (x[j] > -1000.0));
  }
}

/* Out of line: it has more constants than registers. */
static __attribute__ ((unused, noinline)) void
raise_by_logarithms (Reals *x, double power)
{
  Reals raised = power * IMK_SHCENTROID_LOG2_E * log_reals (*x);

  exp2_vectors (&raised, 1);
  *x = (Reals) ((Masks) raised & (*x > 1e-300));
}

/* imk_shcentroid_power (), likewise. */
INLINE Reals
raise_reals (Reals x, double power)
{
  Reals raised = x;

  if (power == 2.0)
    raised = (Reals) ((Masks) (x * x) & (x > 0.0));
  else if (power == 1.5)
    raised = (Reals) ((Masks) (x * sqrt_reals (x)) & (x > 0.0));
  else
    raise_by_logarithms (&raised, power);
  return choose_reals (x < 1e300, raised, x);
}

/* A bad pixel is not a number, and not larger. */
INLINE Reals
larger (Reals a, Reals b)
{
  Masks take = b > a;

  return (Reals) (((Masks) b & take) | ((Masks) a & ~take));
}
