/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Powers of an array, in loops that compilers vectorise; powf () of the C
 * library takes longer than all the rest of a pixel. */
#pragma once

#include <float.h>
#include <stdint.h>
#include <string.h>

/* log2 m = 2 / ln 2 atanh ((m - 1) / (m + 1)), m from sqrt (1/2) to sqrt (2):
 * the next term of the series is below 3e-9 of the sum. */
static inline float
log2_of (float v)
{
  const float k = 2.88539008f;      /* 2 / ln 2 */
  uint32_t bits, root = 0x3f3504f3; /* sqrt (1/2) */
  int32_t exponent;
  float m, f, ff;

  memcpy (&bits, &v, sizeof (bits));
  exponent = (int32_t) (bits - root) >> 23;
  bits -= (uint32_t) exponent << 23;
  memcpy (&m, &bits, sizeof (m));
  f = (m - 1) / (m + 1);
  ff = f * f;
  return (float) exponent +
         k * f *
             (1 +
                 ff * (1 / 3.0f +
                          ff * (1 / 5.0f + ff * (1 / 7.0f + ff * (1 / 9.0f)))));
}

/* @t: -126..126. 2^f by the series of e^(f ln 2), f from -1/2 to 1/2: the next
 * term is below 6e-9. */
static inline float
exp2_of (float t)
{
  int32_t whole = (int32_t) (t - 0.5f); /* @t is not much above 0 */
  float f = (t - (float) whole) * 0.693147181f, r, two;
  uint32_t bits = (uint32_t) (whole + 127) << 23;

  memcpy (&two, &bits, sizeof (two));
  r = 1 / 720.0f + f * (1 / 5040.0f);
  r = 1 / 24.0f + f * (1 / 120.0f + f * r);
  r = 1 + f * (1 + f * (0.5f + f * (1 / 6.0f + f * r)));
  return two * r;
}

/* @v: up to hardly more than 1; below 2^-126 it counts as that. @exponent:
 * above 0. To 2e-6 where the result is above 2^-9. A limit and a function in
 * one loop would become a branch, which is not vectorised. */
static inline void
raise_to_power (float *v, uint32_t n, float exponent)
{
  for (uint32_t i = 0; i < n; i++)
    v[i] = v[i] > FLT_MIN ? v[i] : FLT_MIN;
  for (uint32_t i = 0; i < n; i++)
    v[i] = exponent * log2_of (v[i]);
  for (uint32_t i = 0; i < n; i++)
    v[i] = v[i] > -126 ? v[i] : -126;
  for (uint32_t i = 0; i < n; i++)
    v[i] = exp2_of (v[i]);
}
