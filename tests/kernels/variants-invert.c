/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/invert.h"

#include "template/invert-reference.h"
#include "variants.h"

enum { OUT, IN };

typedef struct Case {
  VariantCase v;
  ImkInvertConfig config;
  ImkInvert *kernel;
} Case;

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkInvertConfig *k = &c->config;

  imk_invert_config_init (k);
  k->width = typical ? 1920 : variant_between (seed, 1, 300);
  k->height = typical ? 1080 : variant_between (seed, 1, 40);
  k->type = test_random (seed) % 2 ? IMK_TYPE_U8 : IMK_TYPE_U16;
  k->channels = variant_between (seed, 1, 4);
  k->amount = variant_uniform (seed);
  k->n_threads = 1;
  c->v.host[OUT] =
      test_image_new (k->type, k->width, k->height, k->channels, 1);
  c->v.host[IN] = test_image_new (k->type, k->width, k->height, k->channels, 3);
  c->v.expected = test_image_new (k->type, k->width, k->height, k->channels, 0);
  test_image_fill (
      &c->v.host[IN], FILL_NOISE, k->type == IMK_TYPE_U8 ? 255 : 65535, *seed);
  snprintf (name, VARIANT_MAX_NAME, "%s %ux%ux%u amount %g",
      imk_type_name (k->type), k->width, k->height, k->channels, k->amount);
}

static void
expect (void *data)
{
  Case *c = data;

  imk_invert_reference (&c->config, &c->v.host[IN].image, &c->v.expected.image,
      0, c->config.height);
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;

  return imk_invert_process (
      c->kernel, &c->v.at[IN], &c->v.at[OUT], NULL, error);
}

static double
difference (void *data)
{
  Case *c = data;

  test_image_same (&c->v.expected, &c->v.host[OUT], "invert");
  return 0;
}

VARIANT_KERNEL (
    invert, .promise = "no difference", .cuda = true, .n_cases = 100)
