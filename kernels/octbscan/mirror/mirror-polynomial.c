/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/mirror/mirror-polynomial.h"

#include <string.h>

#include "core/cholesky.h"

/* Values of the first @n_terms at @x. */
static void
legendre (double x, uint32_t n_terms, double *values)
{
  values[0] = 1;
  if (n_terms > 1)
    values[1] = x;
  for (uint32_t i = 2; i < n_terms; i++)
    values[i] = ((2 * i - 1) * x * values[i - 1] - (i - 1) * values[i - 2]) / i;
}

double
imk_mirror_at (const double *factors, uint32_t n_terms, double x)
{
  double values[MIRROR_TERMS], sum = 0;

  legendre (x, n_terms, values);
  for (uint32_t i = 0; i < n_terms; i++)
    sum += factors[i] * values[i];
  return sum;
}

bool
imk_mirror_fit (const double *x, const double *y, const double *weight,
    uint32_t n, uint32_t n_terms, double *factors)
{
  double a[MIRROR_TERMS][MIRROR_TERMS] = {{0}}, b[MIRROR_TERMS] = {0};
  double values[MIRROR_TERMS];

  for (uint32_t p = 0; p < n; p++) {
    legendre (x[p], n_terms, values);
    for (uint32_t i = 0; i < n_terms; i++) {
      b[i] += weight[p] * values[i] * y[p];
      for (uint32_t j = 0; j <= i; j++)
        a[i][j] += weight[p] * values[i] * values[j];
    }
  }
  if (!imk_cholesky_solve (a[0], MIRROR_TERMS, n_terms, 1e-12, b))
    return false;
  memcpy (factors, b, n_terms * sizeof (*factors));
  return true;
}

void
imk_mirror_powers (const double *factors, uint32_t n_terms, double *powers)
{
  double terms[3][MIRROR_TERMS] = {{1}, {0, 1}}; /* i - 2, i - 1, i */

  for (uint32_t k = 0; k < n_terms; k++)
    powers[k] = 0;
  for (uint32_t i = 0; i < n_terms; i++) {
    if (i >= 2) {
      for (uint32_t k = 0; k < n_terms; k++)
        terms[2][k] = ((k > 0 ? (2 * i - 1) * terms[1][k - 1] : 0) -
                          (i - 1) * terms[0][k]) /
                      i;
      memcpy (terms[0], terms[1], sizeof (terms[0]));
      memcpy (terms[1], terms[2], sizeof (terms[1]));
    }
    for (uint32_t k = 0; k < n_terms; k++)
      powers[k] += factors[i] * terms[i == 0 ? 0 : 1][k];
  }
}
