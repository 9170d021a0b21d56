/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarform.h"

#include "core/sample.h"
#include "insarform/insarform-reference.h"
#include "variants.h"

enum { OUT, REFERENCE, SECONDARY, N_CHANNELS = IMK_INSARFORM_N_CHANNELS };

typedef struct Case {
  VariantCase v;
  ImkInsarformConfig config;
  ImkInsarform *kernel;
} Case;

static void
draw_config (ImkInsarformConfig *k, uint64_t *seed)
{
  k->type = test_random (seed) % 2 ? IMK_TYPE_CI16 : IMK_TYPE_CF32;
  k->width = variant_between (seed, 8, 300);
  k->height = variant_between (seed, 8, 60);
  k->looks_x = variant_between (seed, 1, 8);
  k->looks_y = variant_between (seed, 1, 8);
  k->window_x = 1 + 2 * variant_between (seed, 0, 5);
  k->window_y = 1 + 2 * variant_between (seed, 0, 5);
}

/* Noise, in part the same in both; samples without data are 0, or not finite.
 */
static void
draw_images (Case *c, uint64_t *seed)
{
  bool is_float = c->config.type == IMK_TYPE_CF32;
  double alike = variant_uniform (seed), s[4];

  for (uint32_t y = 0; y < c->config.height; y++)
    for (uint32_t x = 0; x < c->config.width; x++) {
      bool empty = test_random (seed) % 16 == 0;

      for (int i = 0; i < 4; i++) {
        s[i] = 40000 * (variant_uniform (seed) - 0.5);
        s[i] = i < 2 ? s[i] : alike * s[i - 2] + (1 - alike) * s[i];
        if (empty && i < 2)
          s[i] = is_float && x % 2 ? NAN : 0;
      }
      test_image_put_complex (&c->v.host[REFERENCE], x, y, s[0], s[1]);
      test_image_put_complex (&c->v.host[SECONDARY], x, y, s[2], s[3]);
    }
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkInsarformConfig *k = &c->config;

  imk_insarform_config_init (k);
  draw_config (k, seed);
  if (typical) {
    k->width = 2000;
    k->height = 200;
    k->type = IMK_TYPE_CI16;
    k->looks_x = k->looks_y = 4;
    k->window_x = k->window_y = 5;
  }
  k->n_threads = 1;
  c->v.host[OUT] = test_image_new (IMK_TYPE_F32, k->width / k->looks_x,
      k->height / k->looks_y, N_CHANNELS, 8);
  c->v.host[REFERENCE] = test_image_new (k->type, k->width, k->height, 1, 8);
  c->v.host[SECONDARY] = test_image_new (k->type, k->width, k->height, 1, 16);
  c->v.expected = test_image_new (IMK_TYPE_F64, k->width / k->looks_x,
      k->height / k->looks_y, N_CHANNELS, 0);
  draw_images (c, seed);
  snprintf (name, VARIANT_MAX_NAME, "%s %ux%u, looks %ux%u, window %ux%u",
      imk_type_name (k->type), k->width, k->height, k->looks_x, k->looks_y,
      k->window_x, k->window_y);
}

static void
expect (void *data)
{
  Case *c = data;

  imk_insarform_reference (&c->config, &c->v.host[REFERENCE].image,
      &c->v.host[SECONDARY].image, NULL, &c->v.expected.image);
}

static ImkImage
lines_of (const ImkImage *image, uint32_t first, uint32_t n)
{
  ImkImage lines = *image;

  lines.data = imk_sample_at (image, 0, first, 0);
  lines.height = n;
  return lines;
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  ImkInsarform *k = c->kernel;
  ImkStatus status = IMK_OK;

  imk_insarform_rewind (k);
  while (imk_insarform_row (k) < c->v.at[OUT].height && status == IMK_OK) {
    uint32_t at = imk_insarform_pushed (k), room = imk_insarform_room (k);
    ImkImage out = lines_of (&c->v.at[OUT], imk_insarform_row (k), 1);
    ImkImage reference = lines_of (&c->v.at[REFERENCE], at, room);
    ImkImage secondary = lines_of (&c->v.at[SECONDARY], at, room);

    status = imk_insarform_is_ready (k)
                 ? imk_insarform_process (k, &out, error)
                 : imk_insarform_push (k, &reference, &secondary, NULL, error);
  }
  return status;
}

/* Sums are in float64, so what is left is the rounding of the output to
 * float32, 2^-24, and of sums that cancel: of all but the coherence, relative
 * to the power of the cell. */
static double
difference (void *data)
{
  Case *c = data;
  const ImkImage *e = &c->v.expected.image;
  double worst = 0;

  for (uint32_t y = 0; y < e->height; y++)
    for (uint32_t x = 0; x < e->width; x++) {
      double amplitude = imk_sample_get (e, x, y, IMK_INSARFORM_AMPLITUDE);
      double scales[] = {
          amplitude * amplitude, amplitude * amplitude, amplitude, 1, 1};

      for (uint32_t i = 0; i < N_CHANNELS; i++) {
        double d = fabs (imk_sample_get (&c->v.host[OUT].image, x, y, i) -
                         imk_sample_get (e, x, y, i));

        /* without data all is 0 */
        worst = variant_larger (
            worst, d == 0 ? 0 : d / (0x1p-24 * 1.001 * scales[i]));
      }
    }
  return worst;
}

VARIANT_KERNEL (insarform, .promise = "2^-24", .n_cases = 60)
