/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Symmetric equations of a few unknowns, by Cholesky's factors L L'. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* @a: the lower half of A, rows @stride apart; L afterwards
 * @least: share of an element of A's diagonal that the unknowns before must
 *   leave
 *
 * Returns: false where they leave less */
static inline bool
imk_cholesky_factorise (double *a, size_t stride, uint32_t n, double least)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= i; j++) {
      double sum = a[i * stride + j];

      for (uint32_t k = 0; k < j; k++)
        sum -= a[i * stride + k] * a[j * stride + k];
      if (i == j && !(sum > least * a[i * stride + i]))
        return false;
      a[i * stride + j] = i == j ? sqrt (sum) : sum / a[j * stride + j];
    }
  return true;
}

/* Solves L L' x = b. @b: (inout): x afterwards */
static inline void
imk_cholesky_substitute (const double *a, size_t stride, uint32_t n, double *b)
{
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < i; j++)
      b[i] -= a[i * stride + j] * b[j];
    b[i] /= a[i * stride + i];
  }
  for (uint32_t i = n; i-- > 0;) {
    for (uint32_t j = i + 1; j < n; j++)
      b[i] -= a[j * stride + i] * b[j];
    b[i] /= a[i * stride + i];
  }
}

/* Solves A x = b by both.
 * Returns: as imk_cholesky_factorise (); @b is untouched with false */
static inline bool
imk_cholesky_solve (
    double *a, size_t stride, uint32_t n, double least, double *b)
{
  if (!imk_cholesky_factorise (a, stride, n, least))
    return false;
  imk_cholesky_substitute (a, stride, n, b);
  return true;
}
