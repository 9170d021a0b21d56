/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pinv (M) = (M^T M)^-1 M^T, by the factors L L^T of Cholesky, in float64. */
#include <math.h>
#include <stdlib.h>

#include "shreconstruct/shreconstruct-private.h"

/* Columns count as dependent where less than this part of one is left when the
 * others are taken off: float32 has 1.2e-7. */
#define MIN_INDEPENDENT_PART 1e-10

/* The same without dead actuators, and of the square of a mode what the others
 * make of it: the fit of a mode that they hardly make would be of no use. */
#define MIN_LIVE_PART 0.01

/* Commands that are solved for together: their part of the inverse stays in the
 * caches. */
enum { COMMANDS_AT_ONCE = 32 };

/* @row: [i + 1]: of M^T M, without the commands of @dead */
static void
multiply_row (const ImkShreconstructConfig *c, const uint8_t *dead, uint32_t i,
    double *row)
{
  for (uint32_t j = 0; j <= i; j++)
    row[j] = 0;
  for (uint32_t k = 0; k < c->n_commands; k++) {
    const float *mode = c->modes + (size_t) k * c->n_modes;
    const double factor = dead && dead[k] ? 0 : mode[i];

    for (uint32_t j = 0; j <= i; j++)
      row[j] += factor * mode[j];
  }
}

/* @a: the lower triangle of M^T M becomes L
 * Returns: whether columns are independent */
static bool
factor (double *a, uint32_t n, double min_part)
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
      else if (!(sum > min_part * whole))
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

static bool
factor_modes (const ImkShreconstructConfig *c, const uint8_t *dead,
    double min_part, double *l)
{
  const uint32_t n = c->n_modes;

  for (uint32_t i = 0; i < n; i++)
    multiply_row (c, dead, i, l + (size_t) i * n);
  return factor (l, n, min_part);
}

/* Returns: whether a mode moves other actuators than dead ones */
static bool
is_live (const ImkShreconstructConfig *c, uint32_t m)
{
  double live = 0, all = 0;

  for (uint32_t k = 0; k < c->n_commands; k++) {
    const double value = c->modes[(size_t) k * c->n_modes + m];

    all += value * value;
    live += c->dead[k] ? 0 : value * value;
  }
  return live > MIN_LIVE_PART * all;
}

static bool
can_do_without_dead (const ImkShreconstructConfig *c, double *l)
{
  for (uint32_t m = 0; m < c->n_modes; m++)
    if (!is_live (c, m))
      return false;
  return factor_modes (c, c->dead, MIN_LIVE_PART, l);
}

bool
imk_shreconstruct_invert (const ImkShreconstructConfig *c, double *inverse)
{
  uint32_t n = c->n_modes;
  double *l = malloc ((size_t) n * n * sizeof (*l));
  const bool is_without_dead = l && c->dead && can_do_without_dead (c, l);
  const uint8_t *dead = is_without_dead ? c->dead : NULL;
  bool ok = l && (dead || factor_modes (c, NULL, MIN_INDEPENDENT_PART, l));

  for (uint32_t m = 0; ok && m < n; m++)
    for (uint32_t k = 0; k < c->n_commands; k++)
      inverse[(size_t) m * c->n_commands + k] =
          dead && dead[k] ? 0 : (double) c->modes[(size_t) k * n + m];
  for (uint32_t k = 0; ok && k < c->n_commands; k += COMMANDS_AT_ONCE)
    solve (l, n, inverse + k, c->n_commands,
        c->n_commands - k < COMMANDS_AT_ONCE ? c->n_commands - k
                                             : COMMANDS_AT_ONCE);
  free (l);
  return ok;
}
