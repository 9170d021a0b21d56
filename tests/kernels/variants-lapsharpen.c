/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/lapsharpen.h"

#include <stdio.h>

#include "lapsharpen/lapsharpen-reference.h"
#include "variants.h"

enum { OUT, IN };

typedef struct Case {
  VariantCase v;
  ImkLapsharpenConfig config;
  ImkLapsharpen *kernel;
} Case;

static void
draw_config (ImkLapsharpenConfig *k, uint64_t *seed)
{
  static const double amounts[] = {0.5, 1, 2, 0.3, 7.77, 10, 1.5, 0.25};

  k->width = variant_between (seed, 1, 300);
  k->height = variant_between (seed, 1, 40);
  k->type = test_random (seed) % 2 ? IMK_TYPE_U8 : IMK_TYPE_U16;
  k->channels = variant_between (seed, 1, 4);
  k->depth = k->type == IMK_TYPE_U8 ? 8 : variant_between (seed, 9, 16);
  k->channel_mask = (1u << k->channels) - 1;
  if (k->channels == 4 && test_random (seed) % 2) {
    k->alpha_channel = 3;
    k->channel_mask = 7;
    k->alpha = (ImkLapsharpenAlpha) (test_random (seed) % 3);
  }
  k->border = (ImkLapsharpenBorder) (test_random (seed) % 5);
  k->border_value = variant_between (seed, 0, 255);
  k->amount = amounts[test_random (seed) % 8];
  k->neighbours = test_random (seed) % 2 ? 8 : 4;
  k->threshold = test_random (seed) % 2 ? variant_between (seed, 0, 100) : 0;
  k->clamp = (ImkLapsharpenClamp) (test_random (seed) % 4 == 0);
  k->output = (ImkLapsharpenOutput) (test_random (seed) % 4 == 0);
  if (test_random (seed) % 2)
    k->method = (ImkLapsharpenMethod) (test_random (seed) % 5);
  if (k->method == IMK_LAPSHARPEN_METHOD_KERNEL)
    k->method = IMK_LAPSHARPEN_METHOD_CAS;
  k->coring = (ImkLapsharpenCoring) (test_random (seed) % 4 == 0);
  if (test_random (seed) % 4 == 0) {
    k->threshold_unit = IMK_LAPSHARPEN_UNIT_SIGMA;
    k->threshold = (double) variant_between (seed, 0, 30) / 10;
  }
  if (test_random (seed) % 4 == 0)
    k->halo_dark = k->halo_bright = variant_between (seed, 0, 50);
  for (uint32_t i = 0; i < k->channels && test_random (seed) % 4; i++) {
    k->range_low[i] = 16;
    k->range_high[i] = 235;
  }
  if (test_random (seed) % 4 == 0) {
    k->n_areas = 1;
    k->areas[0] =
        (ImkLapsharpenArea){variant_between (seed, 0, 300), 3, 50, 20};
  }
  if (k->type == IMK_TYPE_U16 && test_random (seed) % 8 == 0) {
    k->storage = IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN;
    k->depth = 16; /* all samples are valid, also with swapped bytes */
  }
  k->radius = (double) variant_between (seed, 3, 200) / 10;
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkLapsharpenConfig *k = &c->config;

  imk_lapsharpen_config_init (k);
  draw_config (k, seed);
  if (typical) {
    imk_lapsharpen_config_init (k);
    k->width = 1920;
    k->height = 1080;
    k->channels = 3;
    k->channel_mask = 7;
  }
  k->n_threads = 1;
  c->v.host[IN] = test_image_new (k->type, k->width, k->height, k->channels, 3);
  c->v.host[OUT] =
      test_image_new (k->type, k->width, k->height, k->channels, 1);
  c->v.expected = test_image_new (k->type, k->width, k->height, k->channels, 1);
  test_image_fill (&c->v.host[IN],
      test_random (seed) % 4 ? FILL_NOISE : FILL_CHECKERBOARD,
      (1u << k->depth) - 1, *seed);
  snprintf (name, VARIANT_MAX_NAME,
      "%s %ux%ux%u depth %u border %d amount %g neighbours %u alpha %d of %d "
      "threshold %g of %d coring %d clamp %d output %d method %d radius %g "
      "halos %u range %u areas %u storage %d",
      imk_type_name (k->type), k->width, k->height, k->channels, k->depth,
      k->border, k->amount, k->neighbours, k->alpha, k->alpha_channel,
      k->threshold, k->threshold_unit, k->coring, k->clamp, k->output,
      k->method, k->radius, k->halo_dark, k->range_high[0], k->n_areas,
      k->storage);
}

static void
expect (void *data)
{
  Case *c = data;

  imk_lapsharpen_reference (
      &c->config, &c->v.host[IN].image, &c->v.expected.image);
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;

  return imk_lapsharpen_process (
      c->kernel, &c->v.at[IN], &c->v.at[OUT], NULL, error);
}

static double
difference (void *data)
{
  Case *c = data;

  test_image_same (&c->v.expected, &c->v.host[OUT], "lapsharpen");
  return 0;
}

VARIANT_KERNEL (lapsharpen, .promise = "no difference", .cuda = true,
    .same_bytes = true, .n_cases = 400)
