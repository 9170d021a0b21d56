/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/relight.h"

#include "core/sample.h"
#include "relight/relight-reference.h"
#include "variants.h"

enum { OUT, NORMALS, ALBEDO };

typedef struct Case {
  VariantCase v;
  ImkRelightConfig config;
  ImkRelightSource normals, albedo; /* in host memory */
  ImkRelight *kernel;
} Case;

static void
draw_config (ImkRelightConfig *k, uint64_t *seed)
{
  k->width = variant_between (seed, 1, 200);
  k->height = variant_between (seed, 1, 40);
  k->azimuth = 360 * variant_uniform (seed);
  k->elevation = 180 * variant_uniform (seed) - 90;
  k->ambient = 0.5 * variant_uniform (seed);
  k->diffuse = 2 * variant_uniform (seed);
  if (test_random (seed) % 2) {
    k->specular = variant_uniform (seed);
    k->shininess = 1 + 100 * variant_uniform (seed);
  }
  /* at 0 a gamma has no slope: it would make a count of a rounding error */
  if (k->ambient > 0.02 && test_random (seed) % 2)
    k->gamma = 0.4 + 2 * variant_uniform (seed);
  k->y_down = test_random (seed) % 2;
}

/* Of noise; a part of the pixels is 0, which is no normal. */
static ImkRelightSource
draw_source (Case *c, int image, uint32_t channels, uint64_t *seed)
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32};
  TestImage t = test_image_new (types[test_random (seed) % 3], c->config.width,
      c->config.height, channels, 12);
  double full = t.image.type == IMK_TYPE_U8    ? 255
                : t.image.type == IMK_TYPE_U16 ? 65535
                                               : 0;
  ImkRelightSource s = {.image = t.image};
  bool reversed = test_random (seed) % 2;

  for (uint32_t y = 0; y < t.image.height; y++)
    for (uint32_t x = 0; x < t.image.width; x++) {
      bool empty = test_random (seed) % 16 == 0;

      for (uint32_t i = 0; i < channels; i++) {
        double u = variant_uniform (seed);

        imk_sample_put (&t.image, x, y, i,
            empty      ? 0
            : full > 0 ? full * u
                       : 2.4 * u - 1.2);
      }
    }
  for (uint32_t i = 0; i < 3 && channels > 1; i++)
    s.colours[i] = reversed ? 2 - i : i;
  c->v.host[image] = t;
  return s;
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  static const uint32_t channels[] = {1, 3, 4};
  Case *c = data;
  ImkRelightConfig *k = &c->config;

  imk_relight_config_init (k);
  draw_config (k, seed);
  if (typical) {
    imk_relight_config_init (k);
    k->specular = 0.3;
    k->width = 1024;
    k->height = 768;
  }
  k->n_threads = 1;
  c->v.host[OUT] = test_image_new (IMK_TYPE_U8, k->width, k->height, 3, 5);
  c->v.expected = test_image_new (IMK_TYPE_F64, k->width, k->height, 3, 0);
  c->normals = draw_source (c, NORMALS, variant_between (seed, 3, 4), seed);
  if (typical || test_random (seed) % 4)
    c->albedo = draw_source (c, ALBEDO, channels[test_random (seed) % 3], seed);
  snprintf (name, VARIANT_MAX_NAME,
      "normals %s x%u, albedo %s x%u, %ux%u, light %.4g %.4g, ambient %.3g, "
      "diffuse %.3g, specular %.3g, shininess %.4g, gamma %.3g, y %s",
      imk_type_name (c->normals.image.type), c->normals.image.channels,
      imk_type_name (c->albedo.image.type), c->albedo.image.channels, k->width,
      k->height, k->azimuth, k->elevation, k->ambient, k->diffuse, k->specular,
      k->shininess, k->gamma, k->y_down ? "down" : "up");
}

static void
expect (void *data)
{
  Case *c = data;
  ImkImage *e = &c->v.expected.image;

  for (uint32_t y = 0; y < e->height; y++)
    for (uint32_t x = 0; x < e->width; x++)
      for (uint32_t i = 0; i < 3; i++)
        imk_sample_put (e, x, y, i,
            imk_relight_reference (
                &c->config, &c->normals, &c->albedo, x, y, i));
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  ImkRelightSource normals = c->normals, albedo = c->albedo;

  normals.image = c->v.at[NORMALS];
  albedo.image = c->v.at[ALBEDO];
  return imk_relight_process (
      c->kernel, &normals, &albedo, &c->v.at[OUT], NULL, error);
}

/* Half a count is rounding. Unit vectors of float32 are off by 3e-7: of a
 * highlight that is (shininess + 8) 2^-24 of it at most, and of light 1e-6 of
 * ambient + diffuse; together 0.01 counts. */
static double
difference (void *data)
{
  Case *c = data;
  const ImkImage *e = &c->v.expected.image;
  double worst = 0;

  for (uint32_t y = 0; y < e->height; y++)
    for (uint32_t x = 0; x < e->width; x++)
      for (uint32_t i = 0; i < 3; i++)
        worst = variant_larger (
            worst, fabs (imk_sample_get (&c->v.host[OUT].image, x, y, i) -
                         imk_sample_get (e, x, y, i)) /
                       0.51);
  return worst;
}

VARIANT_KERNEL (relight, .promise = "0.51 counts", .cuda = true, .n_cases = 100)
