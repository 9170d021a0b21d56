/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/photostereo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "photo-common.h"
#include "photostereo/photostereo-reference.h"
#include "variants.h"

enum { MAX_LIGHTS = 40, SOLVER_ROUNDS = 10 };

typedef struct Case {
  VariantCase v; /* N_OUTPUTS, and the frames */
  ImkPhotostereoConfig config;
  ImkPhotostereoLight lights[MAX_LIGHTS];
  double thresholds[3];
  double (*normals)[4]; /* of the reference, and the room light */
  uint32_t *used;
  bool *ties;
  TestImage mask;
  ImkPhotostereo *kernel;
} Case;

static const double luma[] = {0.299, 0.587, 0.114};

static void
draw_config (Case *c, uint64_t *seed)
{
  static const double units[][3] = {
      {0.04, 0.98, 0.03}, {0.1, 1.3, 0.15}, {0.1, 1.3, 0.05}};
  ImkPhotostereoConfig *k = &c->config;
  uint32_t mode = (uint32_t) (test_random (seed) % 3);

  k->thresholds =
      (ImkPhotostereoThresholds) (IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE + mode);
  for (int i = 0; i < 3; i++)
    c->thresholds[i] = units[mode][i];
  k->width = variant_between (seed, 1, 150);
  k->height = variant_between (seed, 1, 4);
  k->type = test_random (seed) % 2 ? IMK_TYPE_U8 : IMK_TYPE_U16;
  k->n_lights = variant_between (seed, 8, MAX_LIGHTS);
  k->positions = test_random (seed) % 2;
  k->readmit = test_random (seed) % 2;
  k->max_iterations = variant_between (seed, 1, SOLVER_ROUNDS);
  if (test_random (seed) % 4 == 0)
    k->ambient_model = IMK_PHOTOSTEREO_AMBIENT_CONSTANT;
  if (test_random (seed) % 4 == 0) {
    k->robust = IMK_PHOTOSTEREO_ROBUST_NONE;
    k->thresholds = IMK_PHOTOSTEREO_THRESHOLDS_AUTO;
  }
}

/* What pictures are like, and what else the definition knows. */
static void
draw_options (Case *c, uint64_t *seed)
{
  ImkPhotostereoConfig *k = &c->config;
  uint32_t samples = (uint32_t) (test_random (seed) % 4);

  if (test_random (seed) % 3 == 0 && k->robust != IMK_PHOTOSTEREO_ROBUST_NONE) {
    k->robust = IMK_PHOTOSTEREO_ROBUST_HUBER;
    if (k->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE)
      k->thresholds = IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
    c->thresholds[2] = 0.02;
  }
  if (k->positions && test_random (seed) % 3 == 0)
    k->model = IMK_PHOTOSTEREO_MODEL_UNIT;
  if (k->positions && test_random (seed) % 3 == 0)
    k->led_lobe = 0.5 + 2 * variant_uniform (seed);
  if (test_random (seed) % 4 == 0)
    k->gamma = 2.2;
  if (samples == 1) {
    k->channels = 3;
    for (uint32_t i = 0; i < 3; i++)
      k->colours[i] = 2 - i;
  } else if (samples == 2) {
    k->bands = 2;
    k->n_lights = variant_between (seed, 8, MAX_LIGHTS / 2);
  }
  if (test_random (seed) % 4)
    return;
  c->mask = test_image_new (IMK_TYPE_U8, k->width, k->height, 1, 0);
  k->mask = &c->mask.image;
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      photo_set (&c->mask, x, y, 0, test_random (seed) % 3);
}

/* A sphere under the lights, with noise and outliers. */
static double
shade (Case *c, uint32_t i, uint32_t x, uint32_t y, uint64_t *seed)
{
  const ImkPhotostereoConfig *k = &c->config;
  double u = 1.2 * (x + 0.5) / k->width - 0.6;
  double v = 1.2 * (y + 0.5) / k->height - 0.6, l[3];
  double value;

  imk_photostereo_reference_light (k, i, x, y, 0, l);
  value = 0.7 * (u * l[0] - v * l[1] + sqrt (1 - u * u - v * v) * l[2]);
  if (test_random (seed) % 16 == 0)
    value = variant_uniform (seed);
  if (k->ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT)
    value = fmax (value, 0) + 0.08;
  return value + 0.02 * (variant_uniform (seed) - 0.5);
}

static TestImage *
frame_of (Case *c, uint32_t i, uint32_t band)
{
  return &c->v.host[N_OUTPUTS + i * c->config.bands + band];
}

static uint32_t
n_planes (const ImkPhotostereoConfig *k)
{
  return k->channels == 3 ? 3 : k->bands;
}

/* How bright light @i is in a plane. */
static double
intensity_of (const Case *c, uint32_t i, uint32_t plane)
{
  const double *of = c->lights[i].intensity;

  return c->config.channels == 3
             ? of[plane]
             : luma[0] * of[0] + luma[1] * of[1] + luma[2] * of[2];
}

static void
draw_frames (Case *c, uint64_t *seed)
{
  const ImkPhotostereoConfig *k = &c->config;
  double full = k->type == IMK_TYPE_U8 ? 255 : 65535;

  for (uint32_t i = 0; i < k->n_lights; i++) {
    for (uint32_t b = 0; b < k->bands; b++)
      *frame_of (c, i, b) =
          test_image_new (k->type, k->width, k->height, k->channels, 0);
    for (uint32_t y = 0; y < k->height; y++)
      for (uint32_t x = 0; x < k->width; x++) {
        double value = fmax (shade (c, i, x, y, seed), 0);

        for (uint32_t j = 0; j < n_planes (k); j++) {
          double v = value * (1 - 0.2 * j) * intensity_of (c, i, j);

          photo_set (frame_of (c, i, k->bands > 1 ? j : 0), x, y,
              k->channels == 3 ? k->colours[j] : 0,
              (uint32_t) (full * pow (fmin (v, 1), 1 / k->gamma)));
        }
      }
  }
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkPhotostereoConfig *k = &c->config;
  Solved solved;
  size_t n;

  imk_photostereo_config_init (k);
  draw_config (c, seed);
  if (typical) {
    k->width = 1024;
    k->height = 32;
    k->type = IMK_TYPE_U8;
    k->n_lights = MAX_LIGHTS;
    k->positions = true;
    k->ambient_model = IMK_PHOTOSTEREO_AMBIENT_MEAN;
    k->max_iterations = SOLVER_ROUNDS;
    k->robust = IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
    k->thresholds = IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
  } else {
    draw_options (c, seed);
  }
  k->n_threads = 1;
  k->mm_per_pixel = 0.1;
  photo_fill_dome (c->lights, k->n_lights, k->positions ? 300 : 1, 0.3);
  for (uint32_t i = 0; i < k->n_lights && !typical; i++)
    for (int j = 0; j < 3; j++) /* so that only what is clipped is 1 */
      c->lights[i].intensity[j] = 1 + 0.2 * variant_uniform (seed);
  k->lights = c->lights;
  draw_frames (c, seed);
  solved = solved_new (k, IMK_TYPE_F32);
  memcpy (c->v.host, solved.image, sizeof (solved.image));
  n = (size_t) k->width * k->height;
  c->normals = calloc (n, sizeof (*c->normals));
  c->used = calloc (n, sizeof (*c->used));
  c->ties = calloc (n, sizeof (*c->ties));
  snprintf (name, VARIANT_MAX_NAME,
      "%s %ux%ux%u, %u bands, %u lights, positions %d, thresholds %d, readmit "
      "%d, iterations %u, ambient %d, robust %d, model %d, lobe %g, gamma %g, "
      "mask %d",
      imk_type_name (k->type), k->width, k->height, k->channels, k->bands,
      k->n_lights, k->positions, k->thresholds, k->readmit, k->max_iterations,
      k->ambient_model, k->robust, k->model, k->led_lobe, k->gamma,
      k->mask != NULL);
}

/* @unit: (out): what a room light of 1 in all planes adds. Returns: the grey
 * value, 1 where a sample is clipped */
static double
grey_of (Case *c, uint32_t i, uint32_t x, uint32_t y, double *unit)
{
  const ImkPhotostereoConfig *k = &c->config;
  double full = k->type == IMK_TYPE_U8 ? 255 : 65535, grey = 0;
  bool clipped = false;

  *unit = 0;
  for (uint32_t j = 0; j < n_planes (k); j++) {
    double sample = photo_get (frame_of (c, i, k->bands > 1 ? j : 0), x, y,
        k->channels == 3 ? k->colours[j] : 0);
    double weight =
        (k->channels == 3 ? luma[j] : 1.0 / k->bands) / intensity_of (c, i, j);

    grey += weight * pow (sample / full, k->gamma);
    *unit += weight;
    clipped = clipped || sample == full;
  }
  return clipped && k->robust != IMK_PHOTOSTEREO_ROBUST_NONE ? 1 : grey;
}

static void
expect (void *data)
{
  Case *c = data;
  const ImkPhotostereoConfig *k = &c->config;

  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++) {
      size_t at = (size_t) y * k->width + x;
      double l[MAX_LIGHTS][3], g[MAX_LIGHTS], unit[MAX_LIGHTS];

      for (uint32_t i = 0; i < k->n_lights; i++) {
        imk_photostereo_reference_light (k, i, x, y, 0, l[i]);
        g[i] = grey_of (c, i, x, y, &unit[i]);
      }
      if (k->mask && photo_get (&c->mask, x, y, 0) == 0)
        continue;
      c->used[at] = imk_photostereo_reference (k, k->n_lights, l, g,
          k->ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT ? unit : NULL,
          c->thresholds, c->normals[at], &c->ties[at]);
    }
}

/* The device has no constant: there the same pictures are solved without. */
static ImkStatus
open (void *data, ImkBackend backend, ImkError *error)
{
  Case *c = data;

  if (backend == IMK_BACKEND_CUDA &&
      c->config.ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT) {
    c->config.ambient_model = IMK_PHOTOSTEREO_AMBIENT_MEAN;
    expect (c);
  }
  return imk_photostereo_new (backend, &c->config, &c->kernel, error);
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  const ImkImage *at = c->v.at;
  ImkPhotostereoOutputs out = {at[NORMAL], at[ALBEDO], at[AMBIENT], at[QUALITY],
      at[CONFIDENCE], at[MASK]};
  ImkPhotostereoSummary summary;
  ImkStatus status = IMK_OK;

  imk_photostereo_reset (c->kernel);
  for (uint32_t i = 0;
       i < c->config.n_lights * c->config.bands && status == IMK_OK; i++)
    status = imk_photostereo_add_band (c->kernel, &at[N_OUTPUTS + i],
        i / c->config.bands, i % c->config.bands, NULL, error);
  return status == IMK_OK
             ? imk_photostereo_solve (c->kernel, &out, &summary, NULL, error)
             : status;
}

/* Rounding of float32 grows with the inverse of the condition. A light at a
 * threshold may count or not. */
static double
difference (void *data)
{
  Case *c = data;
  double worst = 0, n[3];

  for (uint32_t y = 0; y < c->config.height; y++)
    for (uint32_t x = 0; x < c->config.width; x++) {
      size_t at = (size_t) y * c->config.width + x;
      double condition =
          photo_get (&c->v.host[QUALITY], x, y, IMK_PHOTOSTEREO_CONDITION);

      if (c->ties[at])
        continue;
      for (uint32_t i = 0; i < 3; i++)
        n[i] = photo_get (&c->v.host[NORMAL], x, y, i);
      if (photo_get (&c->v.host[QUALITY], x, y, IMK_PHOTOSTEREO_LIGHTS) !=
          c->used[at])
        return INFINITY;
      if (c->used[at])
        worst = variant_larger (worst,
            photo_angle (c->normals[at], n) / (0.002 + 6e-6 / condition));
    }
  return worst;
}

static void
clear (void *data)
{
  Case *c = data;

  free (c->normals);
  free (c->used);
  free (c->ties);
  test_image_free (&c->mask);
}

VARIANT_TABLE (photostereo, .promise = "0.002 degrees + 6e-6 / condition",
    .cuda = true, .same_bytes = true, .n_cases = 100, .clear = clear)
