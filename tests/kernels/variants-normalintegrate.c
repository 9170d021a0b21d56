/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/normalintegrate.h"

#include <stdlib.h>

#include "core/sample.h"
#include "normal-common.h"
#include "normalintegrate/normalintegrate-reference.h"
#include "variants.h"

enum { HEIGHT, GREY, IN };

typedef struct Case {
  VariantCase v; /* expects heights of float64 */
  ImkNormalintegrateConfig config;
  ImkNormalintegrate *kernel;
} Case;

static void
draw_config (ImkNormalintegrateConfig *k, uint64_t *seed)
{
  bool has_lens = false;

  k->type = (ImkType[]){
      IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32}[test_random (seed) % 3];
  k->channels = variant_between (seed, 3, 4);
  k->y_down = test_random (seed) % 2;
  k->method = (ImkNormalintegrateMethod) (test_random (seed) % 3);
  k->mm_per_pixel = 0.01 + variant_uniform (seed);
  if (test_random (seed) % 2)
    k->pixel_aspect = 0.5 + variant_uniform (seed);
  /* steeper normals become holes; no encoded slope is as steep */
  if (test_random (seed) % 2)
    k->max_slope = 1.1 + 0.1 * variant_uniform (seed);
  else /* a lens makes slopes steeper, by a few times */
    has_lens = test_random (seed) % 2;
  k->tolerance = 0;
  if (k->method == IMK_NORMALINTEGRATE_BILATERAL) {
    k->stiffness = 2 * variant_uniform (seed);
    k->max_iterations = variant_between (seed, 1, 2);
  }
  /* the reference sums over all pixels for each wave */
  k->width = variant_between (seed, 1, k->method ? 30 : 90);
  k->height = variant_between (seed, 1, k->method ? 20 : 50);
  if (has_lens)
    k->focal_pixels = (2 + variant_uniform (seed)) * (k->width + k->height);
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkNormalintegrateConfig *k = &c->config;
  double holes = test_random (seed) % 2 ? 0.3 * variant_uniform (seed) : 0;
  Map m;

  imk_normalintegrate_config_init (k);
  draw_config (k, seed);
  if (typical) {
    imk_normalintegrate_config_init (k);
    k->width = 256;
    k->height = 200;
    k->channels = 3;
    holes = 0.1;
  }
  k->n_threads = 1;
  if (holes > 0) /* through a lens, the level of an island is its scale */
    k->focal_pixels = 0;
  m = map_noise (k->width, k->height, holes, *seed);
  c->v.host[HEIGHT] = test_image_new (IMK_TYPE_F32, k->width, k->height, 1, 8);
  c->v.host[GREY] = test_image_new (IMK_TYPE_U16, k->width, k->height, 1, 6);
  c->v.host[IN] = map_encode (&m, k->type, k->channels, k->y_down);
  c->v.expected = test_image_new (IMK_TYPE_F64, k->width, k->height, 1, 0);
  map_free (&m);
  snprintf (name, VARIANT_MAX_NAME,
      "%s %ux%ux%u, method %d, %.0f %% holes, aspect %.3g, max slope %.4g, "
      "%.3g mm a pixel, focal length %.4g, y %s",
      imk_type_name (k->type), k->width, k->height, k->channels, k->method,
      100 * holes, k->pixel_aspect, k->max_slope, k->mm_per_pixel,
      k->focal_pixels, k->y_down ? "down" : "up");
}

static void
expect (void *data)
{
  Case *c = data;

  test_check (imk_normalintegrate_reference (
                  &c->config, &c->v.host[IN].image, c->v.expected.image.data),
      "the reference did not converge");
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  ImkNormalintegrateOutputs out = {c->v.at[HEIGHT], c->v.at[GREY]};
  ImkNormalintegrateSummary summary;

  return imk_normalintegrate_process (
      c->kernel, &c->v.at[IN], &out, &summary, NULL, error);
}

/* Returns: by how much the height at (@x, @y) less that at (@from_x, @from_y)
 * is off, in mm; infinite where one has a height that the other has not */
static double
rise_error (
    const Case *c, uint32_t from_x, uint32_t from_y, uint32_t x, uint32_t y)
{
  const ImkImage *z = &c->v.host[HEIGHT].image, *e = &c->v.expected.image;
  double expected =
      imk_sample_get (e, x, y, 0) - imk_sample_get (e, from_x, from_y, 0);
  double found =
      imk_sample_get (z, x, y, 0) - imk_sample_get (z, from_x, from_y, 0);

  if (isnan (expected) || isnan (found))
    return isnan (expected) && isnan (found) ? 0 : INFINITY;
  return fabs (found - expected);
}

/* Slopes are 1. Poisson ends when the root of the sum of the squares of all
 * rises, 60 for the largest map, is right to 1e-6 of it: 6e-5 pixels, and
 * somewhat more as that norm is of a map without holes. Islands have any level,
 * so neighbours are compared. Frankot-Chellappa has one level and no end to
 * wait for: heights of 20 pixels in float32 are off by 1e-5 pixels. Bilateral:
 * few rounds, as each multiplies the rounding of the one before. */
static double
difference (void *data)
{
  Case *c = data;
  const ImkNormalintegrateConfig *k = &c->config;
  bool fourier = k->method == IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA;
  double worst = 0;

  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++) {
      double z = imk_sample_get (&c->v.host[HEIGHT].image, x, y, 0);
      double e = imk_sample_get (&c->v.expected.image, x, y, 0);

      worst = variant_larger (worst, rise_error (c, x - (x > 0), y, x, y));
      worst = variant_larger (worst, rise_error (c, x, y - (y > 0), x, y));
      if (fourier && !isnan (e))
        worst = variant_larger (worst, fabs (z - e));
    }
  return worst / ((fourier ? 1e-5 : 1e-4) * k->mm_per_pixel);
}

VARIANT_KERNEL (normalintegrate,
    .promise = "1e-4 pixels, 1e-5 by Frankot-Chellappa", .cuda = true,
    .n_cases = 60)
