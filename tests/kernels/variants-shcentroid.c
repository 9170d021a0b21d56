/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcentroid.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/sample.h"
#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-reference.h"
#include "variants-shcentroid-linear.h"
#include "variants.h"

enum { N_FIELDS = IMK_SHCENTROID_N_FIELDS };

enum { OUT, IN };

typedef struct Case {
  VariantCase v; /* expects [cells][N_FIELDS] of float64 */
  ImkShcentroidConfig config;
  float *dark, *flat;
  uint8_t *bad;
  VariantsLinear linear;
  ImkShcentroid *kernel;
} Case;

static float *
draw_table (size_t n, float from, float step, uint64_t *seed)
{
  float *table = malloc (n * sizeof (*table));

  for (size_t i = 0; i < n; i++)
    table[i] = from + step * (float) (test_random (seed) % 64);
  return table;
}

static void
draw_grid (ImkShcentroidConfig *k, uint64_t *seed)
{
  k->width = variant_between (seed, 20, 240);
  k->height = variant_between (seed, 20, 120);
  k->pitch_x = 2 + variant_uniform (seed) * 40;
  k->pitch_y = 2 + variant_uniform (seed) * 40;
  if (test_random (seed) % 2) {
    k->pitch_x = floor (k->pitch_x);
    k->pitch_y = floor (k->pitch_y);
  }
  k->pitch_x = fmin (k->pitch_x, k->width);
  k->pitch_y = fmin (k->pitch_y, k->height);
  k->columns = (uint32_t) (k->width / k->pitch_x);
  k->rows = (uint32_t) (k->height / k->pitch_y);
}

/* An option is off half of the time or more, so that the fast paths get their
 * share. */
static void
draw_options (ImkShcentroidConfig *k, uint64_t *seed)
{
  double full = k->type == IMK_TYPE_U16 ? 65535 : 255;

  k->threshold_mode = (ImkShcentroidThreshold) (test_random (seed) %
                                                IMK_SHCENTROID_N_THRESHOLDS);
  k->threshold_action = (ImkShcentroidAction) (test_random (seed) % 2);
  k->threshold = 0.3;
  if (k->threshold_mode == IMK_SHCENTROID_THRESHOLD_ABSOLUTE)
    k->threshold = 0.31 * full;
  if (k->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE)
    k->threshold = 0.123 * full;
  if (test_random (seed) % 4 == 0)
    k->brightest = variant_between (seed, 1, 40);
  if (test_random (seed) % 4 == 0) {
    k->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
    k->sigma = 0.5 + 6 * variant_uniform (seed);
    k->iterations = variant_between (seed, 1, 4);
  }
  if (test_random (seed) % 6 == 0)
    k->power = 1 + 3 * variant_uniform (seed);
  if (test_random (seed) % 6 == 0)
    k->power = 2;
  if (test_random (seed) % 6 == 0)
    k->estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
  if (test_random (seed) % 6 == 0 && k->pitch_x >= 4 && k->pitch_y >= 4)
    k->margin = 1;
  if (test_random (seed) % 4 == 0)
    k->min_illumination = 0.2 + 0.7 * variant_uniform (seed);
  k->read_noise = 1.5;
  k->gain = 2;
}

static void
draw_tables (Case *c, uint64_t *seed)
{
  ImkShcentroidConfig *k = &c->config;
  size_t n = (size_t) k->width * k->height;

  if (test_random (seed) % 3 == 0)
    k->dark = c->dark = draw_table (n, -1.5f, 0.37f, seed);
  if (test_random (seed) % 3 == 0)
    k->flat = c->flat = draw_table (n, 0.8f, 0.0061f, seed);
  if (test_random (seed) % 3 == 0) {
    k->bad = c->bad = calloc (n, 1);
    for (size_t i = 0; i < n; i += 11)
      c->bad[i] = 1;
  }
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32};
  Case *c = data;
  ImkShcentroidConfig *k = &c->config;
  uint32_t n;

  imk_shcentroid_config_init (k);
  k->type = types[test_random (seed) % 3];
  draw_grid (k, seed);
  draw_options (k, seed);
  if (!typical && test_random (seed) % 4 == 0)
    variants_linear_draw (&c->linear, k, seed);
  draw_tables (c, seed);
  if (typical) {
    imk_shcentroid_config_init (k);
    k->width = k->height = 700;
    k->pitch_x = k->pitch_y = 20;
    k->columns = k->rows = 35;
    k->threshold_mode = IMK_SHCENTROID_THRESHOLD_RANGE;
    k->threshold = 0.2;
  }
  k->n_threads = 1;
  n = imk_shcentroid_n_cells (k);
  c->v.host[IN] = test_image_new (k->type, k->width, k->height, 1, 3);
  if (k->type == IMK_TYPE_F32)
    for (uint32_t y = 0; y < k->height; y++)
      for (uint32_t x = 0; x < k->width; x++)
        imk_sample_put (&c->v.host[IN].image, x, y, 0,
            (float) (test_random (seed) % 65536) / 257);
  else
    test_image_fill (&c->v.host[IN], FILL_NOISE,
        k->type == IMK_TYPE_U8 ? 255 : 65535, *seed);
  variants_linear_light (k, &c->v.host[IN], seed);
  c->v.host[OUT] = test_image_new (IMK_TYPE_F64, N_FIELDS, n, 1, 0);
  c->v.expected = test_image_new (IMK_TYPE_F64, N_FIELDS, n, 1, 0);
  snprintf (name, VARIANT_MAX_NAME,
      "%s %ux%u, %ux%u cells of %.4g x %.4g, threshold %d %d %g, brightest %u, "
      "weight %d sigma %.3g x%u, power %.3g, estimator %d, margin %u, min "
      "%.3g,%s%s%s",
      imk_type_name (k->type), k->width, k->height, k->columns, k->rows,
      k->pitch_x, k->pitch_y, k->threshold_mode, k->threshold_action,
      k->threshold, k->brightest, k->weighting, k->sigma, k->iterations,
      k->power, k->estimator, k->margin, k->min_illumination,
      k->dark ? " dark" : "", k->flat ? " flat" : "", k->bad ? " bad" : "");
}

/* min_illumination: cells that are dark beside the brightest are as those with
 * less than min_flux. */
static void
darken (const ImkShcentroidConfig *k, ImkImage *rows)
{
  double most = 0;

  for (uint32_t i = 0; i < imk_shcentroid_n_cells (k); i++)
    most = fmax (most, imk_sample_get (rows, IMK_SHCENTROID_FLUX, i, 0));
  for (uint32_t i = 0; i < imk_shcentroid_n_cells (k); i++) {
    ImkShcentroidRect r = imk_shcentroid_cell_rect (k, i);
    double *row = imk_sample_at (rows, 0, i, 0);

    if (row[IMK_SHCENTROID_FLUX] >= k->min_illumination * most)
      continue;
    row[IMK_SHCENTROID_X] = r.ref_x;
    row[IMK_SHCENTROID_Y] = r.ref_y;
    row[IMK_SHCENTROID_DX] = row[IMK_SHCENTROID_DY] = 0;
    row[IMK_SHCENTROID_VAR_X] = row[IMK_SHCENTROID_VAR_Y] = 0;
    row[IMK_SHCENTROID_FLAGS] =
        (uint32_t) row[IMK_SHCENTROID_FLAGS] | IMK_SHCENTROID_LOW_FLUX;
  }
}

static void
expect (void *data)
{
  Case *c = data;
  const ImkImage *in = &c->v.host[IN].image;
  ImkImage *rows = &c->v.expected.image;

  if (variants_linear_is (&c->config))
    variants_linear_expect (&c->config, in, rows);
  for (uint32_t i = 0; i < imk_shcentroid_n_cells (&c->config) &&
                       !variants_linear_is (&c->config);
       i++)
    imk_shcentroid_reference (&c->config, in, i, imk_sample_at (rows, 0, i, 0));
  darken (&c->config, rows);
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;

  return imk_shcentroid_process (
      c->kernel, &c->v.at[IN], &c->v.at[OUT], NULL, error);
}

/* Positions to 1e-10 pixels, other fields to 1e-10 of themselves; variances
 * less exactly where they are the difference of large sums. */
static double
difference (void *data)
{
  Case *c = data;
  const bool cancels = !variants_linear_is (&c->config);
  double worst = 0;

  for (uint32_t i = 0; i < imk_shcentroid_n_cells (&c->config); i++)
    for (uint32_t f = 0; f < N_FIELDS; f++) {
      double e = imk_sample_get (&c->v.expected.image, f, i, 0);
      double off = fabs (imk_sample_get (&c->v.host[OUT].image, f, i, 0) - e);
      double allowed = 1e-10 * fmax (1, fabs (e));

      if (cancels && off > allowed)
        allowed += imk_shcentroid_reference_rounding (
            &c->config, &c->v.host[IN].image, i, (ImkShcentroidField) f);
      worst = variant_larger (worst, off / allowed);
    }
  return worst;
}

static void
clear (void *data)
{
  Case *c = data;

  free (c->dark);
  free (c->flat);
  free (c->bad);
  variants_linear_clear (&c->linear);
}

VARIANT_KERNEL (shcentroid, .promise = "1e-10", .cuda = true,
    .same_bytes = true, .n_cases = 400, .clear = clear)
