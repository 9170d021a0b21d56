/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "core/cholesky.h"
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

static void
fill (ImkSlcresampleWeights *weights, uint32_t taps, double bandwidth,
    double doppler)
{
  double r[MAX_TAPS][MAX_TAPS];

  for (uint32_t i = 0; i < taps; i++)
    for (uint32_t j = 0; j <= i; j++)
      r[i][j] = sinc (bandwidth * (i - j)) + (i == j ? REGULARISATION : 0);
  imk_cholesky_factorise (r[0], MAX_TAPS, taps, 0); /* R is regular */
  for (uint32_t p = 0; p <= N_PHASES; p++) {
    /* from the first tap */
    double at = taps / 2 - 1 + (double) p / N_PHASES, w[MAX_TAPS];

    for (uint32_t i = 0; i < taps; i++)
      w[i] = sinc (bandwidth * (i - at));
    imk_cholesky_substitute (r[0], MAX_TAPS, taps, w);
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
    return IMK_NO_MEMORY (error, "for the weights.");
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
