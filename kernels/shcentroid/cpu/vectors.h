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
typedef uint64_t Counts __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
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

/* Is any lane of @mask set? */
INLINE bool
any (Masks mask)
{
#if IMK_VECTOR_SIZE == 64
  return _mm512_movepi64_mask ((__m512i) mask) != 0;
#elif IMK_VECTOR_SIZE == 32
  return _mm256_movemask_pd ((__m256d) mask) != 0;
#else
  int64_t all = 0;

  for (uint32_t i = 0; i < REALS; i++)
    all |= mask[i];
  return all != 0;
#endif
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

/* imk_shcentroid_exp2 () of @n vectors, operation by operation: the same bits.
 * Each waits for its last term, many side by side do not. */
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

/* @x, or what is nearer of @least and @most; @least where it is not a number.
 */
INLINE Reals
hold_between (Reals x, Reals least, Reals most)
{
#if IMK_VECTOR_SIZE == 64
  return (Reals) _mm512_min_pd (
      _mm512_max_pd ((__m512d) x, (__m512d) least), (__m512d) most);
#elif IMK_VECTOR_SIZE == 32
  return (Reals) _mm256_min_pd (
      _mm256_max_pd ((__m256d) x, (__m256d) least), (__m256d) most);
#else
  for (uint32_t i = 0; i < REALS; i++) {
    x[i] = x[i] > least[i] ? x[i] : least[i];
    x[i] = x[i] < most[i] ? x[i] : most[i];
  }
  return x;
#endif
}

/* The steps that @x is in, which are in the table. */
INLINE void
look_up_steps (
    const ImkShcentroidStep *steps, Reals x, Reals *inverse, Reals *power)
{
  const int shift = 52 - IMK_SHCENTROID_STEP_BITS - STEP_SIZE_LOG2;
  const Counts bits = (Counts) x - (Counts) all_reals (LEAST_POWERED);
  const Counts at = bits >> shift & -(uint64_t) sizeof (*steps);

#if IMK_VECTOR_SIZE == 64
  *inverse = (Reals) _mm512_i64gather_pd ((__m512i) at, &steps->inverse, 1);
  *power = (Reals) _mm512_i64gather_pd ((__m512i) at, &steps->power, 1);
#elif IMK_VECTOR_SIZE == 32
  const char *from = (const char *) steps;
  __m256d even =
      _mm256_loadu2_m128d ((const double *) (const void *) (from + at[2]),
          (const double *) (const void *) (from + at[0]));
  __m256d odd =
      _mm256_loadu2_m128d ((const double *) (const void *) (from + at[3]),
          (const double *) (const void *) (from + at[1]));

  *inverse = (Reals) _mm256_unpacklo_pd (even, odd);
  *power = (Reals) _mm256_unpackhi_pd (even, odd);
#else
  for (uint32_t i = 0; i < REALS; i++) {
    (*inverse)[i] = steps[at[i] / sizeof (*steps)].inverse;
    (*power)[i] = steps[at[i] / sizeof (*steps)].power;
  }
#endif
}

/* Numbers that the table has no steps of. */
static __attribute__ ((unused, noinline)) void
raise_rare (Reals *x, double power)
{
  for (uint32_t i = 0; i < REALS; i++)
    (*x)[i] = imk_shcentroid_power ((*x)[i], power);
}

/* imk_shcentroid_power () of a vector, likewise. */
INLINE Reals
raise_by_steps (Reals x, const ImkShcentroidSeries s, const Powers *table)
{
  Reals held =
      hold_between (x, all_reals (LEAST_POWERED), all_reals (MOST_POWERED));
  Masks lit = ~(x <= 0.0); /* or not a number */
  Reals inverse, power, d, sum;

  if (!table->steps || any (lit & ~(held == x))) {
    raise_rare (&x, s.power);
    return x;
  }
  look_up_steps (table->steps, held, &inverse, &power);
  d = held * inverse - 1.0;
  sum = s.fourth * d + s.third;
  sum = sum * d + s.second;
  sum = sum * d + s.power;
  sum = sum * d + 1.0;
  return (Reals) ((Masks) (sum * power) & lit);
}

/* The same of @n vectors. Out of line: that many copies would be too much code.
 */
static __attribute__ ((unused, noinline)) void
raise_vectors (Reals *x, uint32_t n, const Powers *table)
{
  const ImkShcentroidSeries s = table->series;

  for (uint32_t i = 0; s.power == 2.0 && i < n; i++)
    x[i] = choose_reals (
        x[i] < 1e300, (Reals) ((Masks) (x[i] * x[i]) & (x[i] > 0.0)), x[i]);
  for (uint32_t i = 0; s.power == 1.5 && i < n; i++)
    x[i] = choose_reals (x[i] < 1e300,
        (Reals) ((Masks) (x[i] * sqrt_reals (x[i])) & (x[i] > 0.0)), x[i]);
  if (s.power == 1.5 || s.power == 2.0)
    return;
  for (uint32_t i = 0; i < n; i++)
    x[i] = raise_by_steps (x[i], s, table);
}

/* A bad pixel is not a number, and not larger. */
INLINE Reals
larger (Reals a, Reals b)
{
  Masks take = b > a;

  return (Reals) (((Masks) b & take) | ((Masks) a & ~take));
}
