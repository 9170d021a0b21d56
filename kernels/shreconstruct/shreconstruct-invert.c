/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pinv (M) = (M^T M)^-1 M^T, by the factors L L^T of Cholesky, in float64. */
#include <math.h>
#include <stdlib.h>

#include "shreconstruct/shreconstruct-reference.h"

/* Columns count as dependent where less than this part of one is left when the
 * others are taken off: float32 has 1.2e-7. */
#define MIN_INDEPENDENT_PART 1e-10

/* Commands that are solved for together: their part of the inverse stays in the
 * caches. */
enum { COMMANDS_AT_ONCE = 32 };

/* @row: [i + 1]: of M^T M */
static void
multiply_row (const ImkShreconstructConfig *c, uint32_t i, double *row)
{
  for (uint32_t j = 0; j <= i; j++)
    row[j] = 0;
  for (uint32_t k = 0; k < c->n_commands; k++) {
    const float *mode = c->modes + (size_t) k * c->n_modes;
    const double factor = mode[i];

    for (uint32_t j = 0; j <= i; j++)
      row[j] += factor * mode[j];
  }
}

/* @a: the lower triangle of M^T M becomes L
 * Returns: whether columns are independent */
static bool
factor (double *a, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    double *row = a + (size_t) i * n, whole = row[i];

    for (uint32_t j = 0; j <= i; j++) {
      const double *other = a + (size_t) j * n;
      double sum = row[j];

      for (uint32_t k = 0; k < j; k++)
        sum -= row[k] * other[k];
      if (j < i)
        row[j] = sum / other[j];
      else if (!(sum > MIN_INDEPENDENT_PART * whole))
        return false;
      else
        row[j] = sqrt (sum);
    }
  }
  return true;
}

static void
subtract (double *to, double factor, const double *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] -= factor * from[i];
}

static void
divide (double *row, double divisor, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    row[i] /= divisor;
}

/* L L^T X = X, for @n_columns of @inverse: of as many commands */
static void
solve (const double *l, uint32_t n, double *inverse, uint32_t stride,
    uint32_t n_columns)
{
  for (uint32_t i = 0; i < n; i++) {
    double *row = inverse + (size_t) i * stride;

    for (uint32_t k = 0; k < i; k++)
      subtract (
          row, l[(size_t) i * n + k], inverse + (size_t) k * stride, n_columns);
    divide (row, l[(size_t) i * n + i], n_columns);
  }
  for (uint32_t i = n; i-- > 0;) {
    double *row = inverse + (size_t) i * stride;

    for (uint32_t k = i + 1; k < n; k++)
      subtract (
          row, l[(size_t) k * n + i], inverse + (size_t) k * stride, n_columns);
    divide (row, l[(size_t) i * n + i], n_columns);
  }
}

bool
imk_shreconstruct_invert (const ImkShreconstructConfig *c, double *inverse)
{
  uint32_t n = c->n_modes;
  double *l = malloc ((size_t) n * n * sizeof (*l));
  bool ok = l != NULL;

  for (uint32_t i = 0; ok && i < n; i++)
    multiply_row (c, i, l + (size_t) i * n);
  ok = ok && factor (l, n);
  for (uint32_t m = 0; ok && m < n; m++)
    for (uint32_t k = 0; k < c->n_commands; k++)
      inverse[(size_t) m * c->n_commands + k] = c->modes[(size_t) k * n + m];
  for (uint32_t k = 0; ok && k < c->n_commands; k += COMMANDS_AT_ONCE)
    solve (l, n, inverse + k, c->n_commands,
        c->n_commands - k < COMMANDS_AT_ONCE ? c->n_commands - k
                                             : COMMANDS_AT_ONCE);
  free (l);
  return ok;
}
