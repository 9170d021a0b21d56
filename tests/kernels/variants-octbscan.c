/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/octbscan.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/sample.h"
#include "octbscan/octbscan-reference.h"
#include "variants.h"

enum { OUT, IN, DB };

typedef struct Case {
  VariantCase v; /* expects [height][2 n_depths] of float64 */
  ImkOctbscanConfig config;
  double *x;
  double dispersion[4];
  ImkOctbscanCamera camera;
  ImkOctbscan *kernel;
} Case;

static const double own_window[] = {0, 0.7, 1.2, 1, 0.1};

/* Fringes of three mirrors over a hump, and noise. */
static double
spectrum_at (const ImkOctbscanConfig *k, uint32_t x, uint32_t y, uint64_t *seed)
{
  double u = (x + 0.5) / k->width, v = 2000 * (1 + sin (M_PI * u));

  v += 900 * cos (0.31 * k->width * u * u + 1.3 * y);
  v += 450 * cos (0.9 * k->width * u + 0.4 * y * y);
  return floor (v + 225 * (variant_uniform (seed) - 0.5));
}

static void
draw_config (Case *c, uint64_t *seed)
{
  ImkOctbscanConfig *k = &c->config;

  k->width = 2 * variant_between (seed, 20, 120);
  k->height = variant_between (seed, 2, 20);
  k->upsample = k->width * variant_between (seed, 1, 2);
  k->interpolation = (ImkOctbscanInterpolation) (test_random (seed) %
                                                 IMK_OCTBSCAN_N_INTERPOLATIONS);
  k->window = (ImkOctbscanWindow) (test_random (seed) % IMK_OCTBSCAN_N_WINDOWS);
  k->window_values = own_window;
  k->n_window_values = 5;
  k->background_mode = test_random (seed) % 2 ? IMK_OCTBSCAN_BACKGROUND_MEAN
                                              : IMK_OCTBSCAN_BACKGROUND_NONE;
  if (test_random (seed) % 2) {
    c->dispersion[2] = 40 * (variant_uniform (seed) - 0.5);
    c->dispersion[3] = 10 * (variant_uniform (seed) - 0.5);
    c->camera.dispersion = c->dispersion;
    c->camera.n_dispersion = 4;
    k->cameras = &c->camera;
    k->n_cameras = 1;
  }
  k->strategy = test_random (seed) % 2 ? IMK_OCTBSCAN_STRATEGY_FFT
                                       : IMK_OCTBSCAN_STRATEGY_OPERATOR;
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkOctbscanConfig *k = &c->config;
  uint32_t width, height;
  size_t n;

  imk_octbscan_config_init (k);
  k->taper_cut = 9;
  k->type = IMK_TYPE_U16;
  draw_config (c, seed);
  if (typical) {
    imk_octbscan_config_init (k);
    k->type = IMK_TYPE_U16;
    k->width = 1024;
    k->upsample = 1024;
    k->height = 64;
  }
  k->n_threads = 1;
  n = (size_t) k->width * k->height;
  c->x = malloc (n * sizeof (double));
  c->v.expected = test_image_new (
      IMK_TYPE_F64, 2 * imk_octbscan_n_depths (k), k->height, 1, 0);
  c->v.host[IN] = test_image_new (k->type, k->width, k->height, 1, 6);
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++) {
      double v = spectrum_at (k, x, y, seed);

      c->x[(size_t) y * k->width + x] = v;
      imk_sample_put (&c->v.host[IN].image, x, y, 0, v);
    }
  c->v.host[OUT] = test_image_new (
      IMK_TYPE_CF32, imk_octbscan_n_depths (k), k->height, 1, 0);
  imk_octbscan_size (k, &width, &height);
  c->v.host[DB] = test_image_new (IMK_TYPE_F32, width, height, 1, 0);
  snprintf (name, VARIANT_MAX_NAME,
      "%u spectra of %u, upsample %u, window %d, background %d, strategy %d",
      k->height, k->width, k->upsample, k->window, k->background_mode,
      k->strategy);
}

static void
expect (void *data)
{
  Case *c = data;

  imk_octbscan_reference (&c->config, 0, c->x, c->v.expected.image.data);
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  ImkOctbscanJob job = {
      .in = &c->v.at[IN], .db = &c->v.at[DB], .complex = &c->v.at[OUT]};

  return imk_octbscan_process (c->kernel, &job, 1, NULL, error);
}

/* Each complex sample to 1e-5 of their rms. */
static double
difference (void *data)
{
  Case *c = data;
  uint32_t n = imk_octbscan_n_depths (&c->config);
  const double *e = c->v.expected.image.data;
  double power = 0, worst = 0;

  for (size_t i = 0; i < 2 * (size_t) n * c->config.height; i++)
    power += e[i] * e[i];
  for (uint32_t y = 0; y < c->config.height; y++)
    for (uint32_t q = 0; q < n; q++, e += 2)
      worst = variant_larger (
          worst, hypot (imk_sample_get (&c->v.host[OUT].image, q, y, 0) - e[0],
                     imk_sample_get (&c->v.host[OUT].image, q, y, 1) - e[1]));
  return power > 0
             ? worst / (1e-5 * sqrt (power / ((double) n * c->config.height)))
             : worst;
}

static void
clear (void *data)
{
  free (((Case *) data)->x);
}

/* Without FMA sums round differently, so the lowest level has other bytes. */
VARIANT_KERNEL (octbscan, .promise = "1e-5 of the rms", .cuda = true,
    .n_cases = 150, .clear = clear)
