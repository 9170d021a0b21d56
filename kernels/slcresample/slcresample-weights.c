/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "slcresample/slcresample-private.h"

#define MAX_TAPS IMK_SLCRESAMPLE_MAX_TAPS
#define N_PHASES IMK_SLCRESAMPLE_N_PHASES

/* Keeps the matrix regular where a narrow band makes its rows alike; its part
 * of the error is below that of float32 weights. */
#define REGULARISATION 1e-7

static double
sinc (double x)
{
  return x == 0 ? 1 : sin (M_PI * x) / (M_PI * x);
}

/* R = L L^T, in place in the lower half. */
static void
factorise (double r[MAX_TAPS][MAX_TAPS], uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= i; j++) {
      double sum = r[i][j];

      for (uint32_t k = 0; k < j; k++)
        sum -= r[i][k] * r[j][k];
      r[i][j] = i == j ? sqrt (sum) : sum / r[j][j];
    }
}

/* x becomes the solution of L L^T x = x. */
static void
solve (double r[MAX_TAPS][MAX_TAPS], uint32_t n, double *x)
{
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < i; k++)
      x[i] -= r[i][k] * x[k];
    x[i] /= r[i][i];
  }
  for (uint32_t i = n; i-- > 0;) {
    for (uint32_t k = i + 1; k < n; k++)
      x[i] -= r[k][i] * x[k];
    x[i] /= r[i][i];
  }
}

static void
fill (ImkSlcresampleWeights *weights, uint32_t taps, double bandwidth,
    double doppler)
{
  double r[MAX_TAPS][MAX_TAPS];

  for (uint32_t i = 0; i < taps; i++)
    for (uint32_t j = 0; j <= i; j++)
      r[i][j] = sinc (bandwidth * (i - j)) + (i == j ? REGULARISATION : 0);
  factorise (r, taps);
  for (uint32_t p = 0; p <= N_PHASES; p++) {
    /* from the first tap */
    double at = taps / 2 - 1 + (double) p / N_PHASES, w[MAX_TAPS];

    for (uint32_t i = 0; i < taps; i++)
      w[i] = sinc (bandwidth * (i - at));
    solve (r, taps, w);
    for (uint32_t i = 0; i < taps; i++) {
      double angle = 2 * M_PI * doppler * (at - i);

      weights->re[p * taps + i] = (float) (w[i] * cos (angle));
      if (weights->im)
        weights->im[p * taps + i] = (float) (w[i] * sin (angle));
    }
  }
}

ImkStatus
imk_slcresample_weights_init (ImkSlcresampleWeights *weights, uint32_t taps,
    double bandwidth, double doppler, ImkError *error)
{
  size_t size = (N_PHASES + 1) * taps * sizeof (float);

  weights->re = malloc (size);
  weights->im = doppler != 0 ? malloc (size) : NULL;
  if (!weights->re || (doppler != 0 && !weights->im)) {
    imk_slcresample_weights_clear (weights);
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the weights.");
  }
  fill (weights, taps, bandwidth, doppler);
  return IMK_OK;
}

void
imk_slcresample_weights_clear (ImkSlcresampleWeights *weights)
{
  free (weights->re);
  free (weights->im);
  weights->re = weights->im = NULL;
}
