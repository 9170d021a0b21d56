/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/ratio.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_WEIGHTS = IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL };

/* Returns: the largest error of rounding a float32 of up to @value */
static double
rounding_error (double value)
{
  int exponent;

  frexp (value, &exponent);
  return ldexp (1, exponent - 25);
}

/* Returns: the largest error of a sum of the definition */
static double
sum_error (const float *kernel, int n_weights)
{
  double most = 0, error = 0;

  for (int i = 0; i < n_weights; i++) {
    const double product = 255 * fabs ((double) kernel[i]);

    error += rounding_error (product);
    most += product;
    error += rounding_error (most + error);
  }
  return error;
}

/* Returns: whether the weights are so near @k / @n, which is set, that sums are
 * on the same side of each half. @error: of a sum of the definition */
static bool
is_ratio (const float *kernel, int n_weights, int n, double error, int *k)
{
  for (int i = 0; i < n_weights; i++) {
    k[i] = (int) lrintf (kernel[i] * (float) n);
    error += 255 * fabs (kernel[i] - k[i] / (double) n);
    if (error >= 0.5 / n)
      return false;
  }
  return true;
}

static void
add_to_pairs (ImkLapsharpenRatio *r, int i, int k)
{
  ImkLapsharpenPair *last = r->pairs + r->n_pairs - 1;

  if (r->n_pairs > 0 && last->weight[0] == last->weight[1] &&
      abs (last->k[0] + k) <= 128) {
    last->weight[1] = (uint8_t) i;
    last->k[1] = (int8_t) k;
    return;
  }
  r->pairs[r->n_pairs++] =
      (ImkLapsharpenPair){{(uint8_t) i, (uint8_t) i}, {(int8_t) k, 0}};
}

/* Returns: whether factor and shift divide all sums of up to 255 counts; of
 * larger ones they make more than 255 */
static bool
set_divisor (ImkLapsharpenRatio *r, int n)
{
  int shift = 0, one, factor;

  while (2 << shift < n)
    shift++;
  one = 1 << (16 + shift);
  factor = (one + n - 1) / n;
  r->n = (uint16_t) n;
  r->factor = (uint16_t) factor;
  r->shift = (uint16_t) shift;
  return 255 * n * (factor * n - one) < one;
}

/* Returns: whether the sums fit 16 bits */
static bool
set_sums (ImkLapsharpenRatio *r, int n_weights, const int *k)
{
  int positive = 0, negative = 0;

  for (int i = 0; i < n_weights; i++) {
    if (i == n_weights / 2 && k[i] > 0) {
      r->centre = (uint16_t) k[i];
      continue;
    }
    if (abs (k[i]) > 127)
      return false;
    positive += k[i] > 0 ? k[i] : 0;
    negative += k[i] > 0 ? 0 : -k[i];
    if (k[i])
      add_to_pairs (r, i, -k[i]);
  }
  r->rest = (uint16_t) (255 * positive);
  return 255 * (r->centre + positive) + r->n / 2 <= 65535 &&
         255 * (positive + negative) <= 65535;
}

void
imk_lapsharpen_find_ratio (const ImkLapsharpenRule *rule, ImkLapsharpenRatio *r)
{
  const int n_weights = (int) (rule->kernel_size * rule->kernel_size);
  const double error = sum_error (rule->kernel, n_weights);
  int k[MAX_WEIGHTS], n = 2;

  r->n = r->centre = 0;
  r->n_pairs = 0;
  while (n <= 256 && !is_ratio (rule->kernel, n_weights, n, error, k))
    n++;
  if (n > 256 || !set_divisor (r, n) || !set_sums (r, n_weights, k)) {
    r->n = 0;
    return;
  }
  r->to_even = (n & (n - 1)) == 0;
  for (int i = 0; i < n_weights; i++)
    r->to_even = r->to_even && rule->kernel[i] == (float) k[i] / (float) n;
  r->by_order = !r->to_even && n % 2 == 0;
  for (int i = 0; i < n_weights && r->by_order; i++)
    for (int v = 0; v < 256; v++)
      r->products[i][v] = rule->kernel[i] * (float) v;
}
