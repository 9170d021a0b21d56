/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/octbscan-mean.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/sample.h"

enum {
  MOST_SAMPLES = 2048, /* longer spectra are binned */
  FIRST_PERIODS = 16,  /* lower frequencies are the source's spectrum */
  LEAST_ROWS = 4,
};

/* Means and sums of squared deviations of @n groups of @size samples. Returns:
 * how many rows; 0 for samples that are no numbers */
static uint32_t
add_rows (const ImkImage *in, uint32_t first, uint32_t step, uint32_t n,
    uint32_t size, double *mean, double *squares)
{
  uint32_t rows = 0;
  bool sound = true;

  for (uint32_t y = first; y < in->height; y += step) {
    rows++;
    for (uint32_t i = 0; i < n; i++) {
      double v = 0, off;

      for (uint32_t k = 0; k < size; k++)
        v += imk_sample_get (in, i * size + k, y, 0);
      sound &= fabs (v) < 1e30;
      off = v - mean[i];
      mean[i] += off / rows;
      squares[i] += off * (v - mean[i]);
    }
  }
  return sound ? rows : 0;
}

/* The largest power of a fringe; with a Hann window already (Goertzel 1958). */
static double
strongest_fringe (const double *light, uint32_t n)
{
  double most = 0;

  for (uint32_t d = FIRST_PERIODS; d < n / 2; d++) {
    double c = 2 * cos (2 * M_PI * d / n), s1 = 0, s2 = 0, power;

    for (uint32_t i = 0; i < n; i++) {
      double s = light[i] + c * s1 - s2;

      s2 = s1;
      s1 = s;
    }
    power = s1 * s1 + s2 * s2 - c * s1 * s2;
    most = power > most ? power : most;
  }
  return most;
}

double
imk_octbscan_mean_fringe (const ImkImage *in, uint32_t first, uint32_t step)
{
  uint32_t size = (in->width + MOST_SAMPLES - 1) / MOST_SAMPLES;
  uint32_t n = in->width / size, rows;
  double *mean = calloc (2 * (size_t) n, sizeof (*mean)), noise = 0, most = 0;

  if (!mean)
    return 0;
  rows = add_rows (in, first, step, n, size, mean, mean + n);
  if (rows >= LEAST_ROWS) {
    for (uint32_t i = 0; i < n; i++) {
      double window = 0.5 - 0.5 * cos (2 * M_PI * (i + 0.5) / n);

      noise += window * window * mean[n + i] / (rows - 1.0) / rows;
      mean[i] *= window;
    }
    most = strongest_fringe (mean, n);
  }
  free (mean);
  /* All values are equal, so there is no noise to compare with. */
  return most > 0 ? 10 * log10 (most / fmax (noise, 1e-20 * most)) : 0;
}
