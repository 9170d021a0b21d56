/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The standard errors of elements, from the spread of the repeats. */
#include "shreconstruct/calibration/shcalibration-private.h"

#include <math.h>
#include <string.h>

void
imk_shcalibration_add_estimate (
    ImkShcalibration *s, uint32_t k, uint32_t i, double value)
{
  Spread *to = s->spread + (size_t) k * s->n_slopes + i;
  double before = value - to->mean;

  to->trend += (float) (to->n * value);
  if (s->repeat % 2) {
    to->turned += (float) value;
    to->n_turned++;
  }
  to->mean += before / ++to->n;
  to->squares += before * (value - to->mean);
}

/* Returns: whether a drift was fitted to an element, too. Two repeats have no
 * spread then: their difference is taken for noise. */
static bool
has_drift (const ImkShcalibration *s, const Spread *of)
{
  return s->config.method == IMK_SHCALIBRATION_SINUSOIDAL && of->n > 2 &&
         of->n_turned > 0 && of->n_turned < of->n;
}

void
imk_shcalibration_remove_drift (ImkShcalibration *s)
{
  for (size_t at = 0; at < (size_t) s->n_live * s->n_slopes; at++) {
    Spread *of = s->spread + at;
    const double n = of->n, n_turned = of->n_turned;
    double drift, turned, others;

    if (!has_drift (s, of))
      continue;
    turned = of->turned / n_turned;
    others = (n * of->mean - of->turned) / (n - n_turned);
    drift = (others - turned) / 2;
    of->mean = (others + turned) / 2;
    of->squares = fmax (
        0, of->squares - 4 * drift * drift * n_turned * (n - n_turned) / n);
    /* of 0, 1, 2, ... with signs in turn; with a repeat missing, nearly */
    of->trend -= (float) (drift * (of->n % 2 ? (n - 1) / 2 : -n / 2));
  }
}

/* Commands whose estimates have a noise of their own: of pairs all have the
 * same, and of waves those of a frequency. Patterns are pooled already. */
static uint32_t
n_kinds (const ImkShcalibration *s)
{
  if (s->config.method == IMK_SHCALIBRATION_PUSH_PULL)
    return 1;
  return s->n_live < GROUP_SIZE ? s->n_live : GROUP_SIZE;
}

/* @estimate, which is not needed any more: of each kind and slope the squares
 * of all spreads, and then their degrees of freedom. */
void
imk_shcalibration_pool_spreads (const ImkShcalibration *s)
{
  const size_t n = s->n_slopes, n_all = GROUP_SIZE * n;

  memset (s->estimate, 0, 2 * n_all * sizeof (double));
  for (uint32_t k = 0; k < s->n_live; k++)
    for (size_t i = 0; i < n; i++) {
      const Spread *spread = s->spread + k * n + i;
      double *of_kind = s->estimate + k % n_kinds (s) * n + i;

      of_kind[0] += spread->squares;
      of_kind[n_all] += spread->n ? spread->n - 1 - has_drift (s, spread) : 0;
    }
}

/* Of the kinds up to @reach from @kind. @n_free: (out): degrees of freedom
 * Returns: the sum of squares */
static double
sum_squares (const ImkShcalibration *s, uint32_t kind, uint32_t reach,
    uint32_t i, double *n_free)
{
  const uint32_t first = kind > reach ? kind - reach : 0;
  double squares = 0;

  *n_free = 0;
  for (uint32_t near = first; near <= kind + reach && near < n_kinds (s);
       near++) {
    const double *of_kind = s->estimate + (size_t) near * s->n_slopes + i;

    squares += of_kind[0];
    *n_free += of_kind[(size_t) GROUP_SIZE * s->n_slopes];
  }
  return squares;
}

/* Of few repeats one element does not tell its noise: with two its error is
 * anything from 0 to twice the true one. Noise that drifts is another one for
 * each frequency, but nearly the same for the next. */
static double
spread_of (const ImkShcalibration *s, uint32_t k, uint32_t i)
{
  const Spread *spread = s->spread + (size_t) k * s->n_slopes + i;
  double squares = 0, n_free = 0, n = spread->n;

  if (has_drift (s, spread))
    n = 4 * spread->n_turned * (1 - spread->n_turned / n);
  if (s->config.method == IMK_SHCALIBRATION_HADAMARD)
    return spread->n < 2 ? INFINITY : sqrt (spread->squares / 2);
  for (uint32_t reach = 1;
       n_free < IMK_SHCALIBRATION_MIN_FREE && reach <= n_kinds (s); reach++)
    squares = sum_squares (s, k % n_kinds (s), reach, i, &n_free);
  return n > 0 && n_free > 0 ? sqrt (squares / n_free / n) : INFINITY;
}

double
imk_shcalibration_error_of (const ImkShcalibration *s, uint32_t k, uint32_t i)
{
  const double mean = s->spread[(size_t) k * s->n_slopes + i].mean;

  return hypot (spread_of (s, k, i), mean * s->scale_errors[k % GROUP_SIZE]);
}
