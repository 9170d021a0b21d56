/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patterns of a Hadamard matrix, and what they tell of each command. */
#include "shreconstruct/calibration/shcalibration-private.h"

#include <math.h>
#include <string.h>

int
imk_shcalibration_hadamard (uint32_t row, uint32_t column)
{
  int sign = 1;

  for (uint32_t both = row & column; both; both &= both - 1)
    sign = -sign;
  return sign;
}

/* @a, @b: become their sum and their difference */
static void
add_and_subtract (double *a, double *b, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    double sum = a[i] + b[i];

    b[i] = a[i] - b[i];
    a[i] = sum;
  }
}

/* The fast Walsh-Hadamard transform of the rows: means of patterns become the
 * responses of commands (Pratt, Kane and Andrews 1969, Proc. IEEE 57, 58),
 * some slopes at a time, which the cache holds in all rows. */
static void
transform (ImkShcalibration *s)
{
  enum { BLOCK = 64 };

  for (uint32_t i = 0; i < s->n_slopes; i += BLOCK) {
    uint32_t n = s->n_slopes - i < BLOCK ? s->n_slopes - i : BLOCK;

    for (uint32_t half = 1; half < s->order; half *= 2)
      for (uint32_t row = 0; row < s->order; row++)
        if (!(row & half))
          add_and_subtract (s->estimate + (size_t) row * s->n_slopes + i,
              s->estimate + (size_t) (row + half) * s->n_slopes + i, n);
  }
}

/* @variance: (out): [n_slopes]: of each sum over the means of the patterns, NaN
 *   where no pattern has a spread, infinite for a cell that one does not have
 */
static void
add_variances (ImkShcalibration *s, double *variance)
{
  double *squares = s->sum, *n_free = s->mean; /* not needed any more */
  const size_t n = s->n_slopes;

  memset (squares, 0, n * sizeof (double));
  memset (n_free, 0, n * sizeof (double));
  memset (variance, 0, n * sizeof (double));
  for (uint32_t row = 0; row < s->order; row++)
    for (size_t i = 0; i < n; i++) {
      const Spread *of = s->spread + row * n + i;

      squares[i] += of->squares;
      n_free[i] += of->n ? of->n - 1 : 0;
      variance[i] += 1.0 / of->n;
    }
  for (size_t i = 0; i < n; i++)
    if (isfinite (variance[i]))
      variance[i] *= squares[i] / n_free[i];
}

/* From patterns to commands. All patterns have one noise, so that one which was
 * seen once is of use, and has an error. */
void
imk_shcalibration_end_patterns (ImkShcalibration *s)
{
  const double order = s->order;
  double *variance = s->before;

  add_variances (s, variance);
  for (size_t i = 0; i < (size_t) s->order * s->n_slopes; i++)
    s->estimate[i] = s->spread[i].mean / order;
  transform (s);
  for (uint32_t k = 0; k < s->n_live; k++)
    for (uint32_t i = 0; i < s->n_slopes; i++) {
      Spread *to = s->spread + (size_t) k * s->n_slopes + i;

      *to = (Spread){0};
      if (isinf (variance[i]))
        continue;
      to->mean = s->estimate[(size_t) (k + 1) * s->n_slopes + i];
      to->n = isnan (variance[i]) ? 1 : 2; /* of 2, the error is this: */
      to->squares = isnan (variance[i]) ? 0 : 2 * variance[i] / order / order;
    }
}
