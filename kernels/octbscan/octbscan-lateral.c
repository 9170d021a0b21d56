/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-lateral.h"

#include <math.h>
#include <stdlib.h>

#include "octbscan/octbscan-grid.h"
#include "octbscan/octbscan-rows.h"

ImkStatus
imk_octbscan_lateral_check (const ImkOctbscanConfig *config, ImkError *error)
{
  if (config->scan != IMK_OCTBSCAN_SCAN_CURVE)
    return IMK_OK;
  if (!config->scan_curve || config->n_scan_curve < 2)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "scan-correction is curve, but the curve has %u values; it needs at "
        "least 2. Set scan-curve.",
        config->scan_curve ? config->n_scan_curve : 0);
  for (uint32_t i = 0; i < config->n_scan_curve; i++)
    if (!(config->scan_curve[i] >= 0 &&
            config->scan_curve[i] <= config->height - 1.0))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Value %u of scan-curve is %g; it must lie in 0 to %u, the A-scans "
          "of a B-scan.",
          i, config->scan_curve[i], config->height - 1);
  return IMK_OK;
}

/* Where column @j of H is read, in A-scans. */
static double
position (const ImkOctbscanConfig *c, uint32_t j)
{
  double last = c->height - 1.0;

  if (c->height == 1)
    return 0;
  switch (c->scan) {
  case IMK_OCTBSCAN_SCAN_SINE:
    return acos (fmin (fmax (1 - 2 * j / last, -1), 1)) * last / M_PI;
  case IMK_OCTBSCAN_SCAN_CURVE:
    return imk_octbscan_between (
        c->scan_curve, c->n_scan_curve, j / last * (c->n_scan_curve - 1));
  default:
    return j;
  }
}

/* Adds to one of the last two rows of the A-scan that begins at @first, or a
 * new one. Columns that follow each other are read from the same two rows or
 * the next; searching all rows takes quadratic time, and a curve that jumps
 * back merely gets a row twice. Returns: the number of entries */
static uint32_t
add (uint32_t row, double weight, uint32_t first, uint32_t n, uint32_t *rows,
    float *weights)
{
  for (uint32_t k = n; k > first && k + 2 > n; k--)
    if (rows[k - 1] == row) {
      weights[k - 1] += (float) weight;
      return n;
    }
  if (weight > 0) {
    rows[n] = row;
    weights[n++] = (float) weight;
  }
  return n;
}

static void
fill (const ImkOctbscanConfig *c, uint32_t n_ascans, uint32_t *first,
    uint32_t *rows, float *weights)
{
  bool flips = imk_octbscan_flips_lateral (c);
  uint32_t n = 0;

  for (uint32_t i = 0; i < n_ascans; i++) {
    uint32_t j = (flips ? n_ascans - 1 - i : i) * c->average_ascans;
    uint32_t end =
        c->height - j < c->average_ascans ? c->height : j + c->average_ascans;
    double share = 1.0 / (end - j);

    first[i] = n;
    for (; j < end; j++) {
      double p = fmin (fmax (position (c, j), 0), c->height - 1.0);
      uint32_t left = (uint32_t) p;

      n = add (left, share * (1 - (p - left)), first[i], n, rows, weights);
      n = add (left + 1, share * (p - left), first[i], n, rows, weights);
    }
  }
  first[n_ascans] = n;
}

ImkStatus
imk_octbscan_lateral_new (
    const ImkOctbscanConfig *config, ImkOctbscanLateral **self, ImkError *error)
{
  ImkOctbscanLateral *s = calloc (1, sizeof (*s));
  uint32_t n = imk_octbscan_n_ascans (config);
  uint32_t *first = malloc ((n + 1) * sizeof (*first));
  uint32_t *rows = malloc (2 * (size_t) config->height * sizeof (*rows));
  float *weights = malloc (2 * (size_t) config->height * sizeof (*weights));

  if (!s || !first || !rows || !weights) {
    free (s);
    free (first);
    free (rows);
    free (weights);
    return IMK_NO_MEMORY (error, "for the A-scans of a B-scan.");
  }
  fill (config, n, first, rows, weights);
  *s = (ImkOctbscanLateral){
      .is_identity = config->scan == IMK_OCTBSCAN_SCAN_EVEN &&
                     config->average_ascans == 1 &&
                     !imk_octbscan_flips_lateral (config),
      .n_ascans = n,
      .first = first,
      .rows = rows,
      .weights = weights,
  };
  *self = s;
  return IMK_OK;
}

void
imk_octbscan_lateral_free (ImkOctbscanLateral *self)
{
  if (!self)
    return;
  free ((void *) self->first);
  free ((void *) self->rows);
  free ((void *) self->weights);
  free (self);
}
