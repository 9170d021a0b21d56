/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/slcresample.h"

#include <stdio.h>

#include "slcresample/slcresample-reference.h"
#include "variants.h"

enum { OUT, IN };

enum { NODES = 9 };

typedef struct Case {
  VariantCase v;
  ImkSlcresampleField field;
  float offsets[2][NODES * NODES];
  ImkSlcresampleConfig config;
  ImkSlcresample *kernel;
} Case;

static void
draw_config (ImkSlcresampleConfig *k, uint64_t *seed)
{
  k->width = variant_between (seed, 40, 200);
  k->height = variant_between (seed, 40, 120);
  k->out_width = variant_between (seed, 40, 200);
  k->out_height = variant_between (seed, 40, 120);
  k->taps = 2 * variant_between (seed, 2, IMK_SLCRESAMPLE_MAX_TAPS / 2);
  k->bandwidth = 0.5 + 0.5 * variant_uniform (seed);
  k->doppler = 2 * (variant_uniform (seed) - 0.5);
  for (int axis = 0; axis < IMK_SLCRESAMPLE_N_AXES; axis++) {
    k->shift[axis] = 12 * (variant_uniform (seed) - 0.5);
    k->stretch[axis] = 0.02 * (variant_uniform (seed) - 0.5);
    k->a_stretch[axis] = 0.02 * (variant_uniform (seed) - 0.5);
  }
}

/* Of half of the cases: nodes that end inside the image, or outside. */
static void
draw_field (Case *c, uint64_t *seed)
{
  ImkSlcresampleField *f = &c->field;

  if (test_random (seed) % 2)
    return;
  f->nx = variant_between (seed, 1, NODES);
  f->ny = variant_between (seed, 1, NODES);
  for (int axis = 0; axis < 2; axis++) {
    f->origin[axis] = 60 * (variant_uniform (seed) - 0.5);
    f->step[axis] = 8 + 40 * variant_uniform (seed);
    f->offsets[axis] = c->offsets[axis];
    for (int i = 0; i < NODES * NODES; i++)
      c->offsets[axis][i] = (float) (1.9 * (variant_uniform (seed) - 0.5));
  }
  c->config.field = f;
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkSlcresampleConfig *k = &c->config;

  imk_slcresample_config_init (k);
  draw_config (k, seed);
  if (typical) {
    k->width = k->out_width = 2000;
    k->height = k->out_height = 200;
    k->taps = 16;
  }
  draw_field (c, seed);
  k->type = IMK_TYPE_CF32;
  k->estimate_doppler = false;
  k->n_threads = 1;
  c->v.host[IN] = test_image_new (k->type, k->width, k->height, 1, 8);
  c->v.host[OUT] = test_image_new (k->type, k->out_width, k->out_height, 1, 16);
  c->v.expected = test_image_new (k->type, k->out_width, k->out_height, 1, 0);
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      test_image_put_complex (&c->v.host[IN], x, y,
          variant_uniform (seed) - 0.5, variant_uniform (seed) - 0.5);
  snprintf (name, VARIANT_MAX_NAME,
      "%ux%u to %ux%u, %u taps, bandwidth %.3f, doppler %.3f, shift %.3f "
      "%.3f, %ux%u nodes",
      k->width, k->height, k->out_width, k->out_height, k->taps, k->bandwidth,
      k->doppler, k->shift[0], k->shift[1], c->field.nx, c->field.ny);
}

static void
expect (void *data)
{
  Case *c = data;

  imk_slcresample_reference (
      &c->config, &c->v.host[IN].image, &c->v.expected.image);
}

/* Lines go in as there is room, and are made as soon as they can be. */
static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  ImkSlcresample *k = c->kernel;
  ImkStatus status = IMK_OK;

  imk_slcresample_rewind (k);
  while (imk_slcresample_line (k) < c->config.out_height && status == IMK_OK) {
    uint32_t ready = imk_slcresample_ready (k, c->config.out_height);
    uint32_t at = ready ? imk_slcresample_line (k) : imk_slcresample_pushed (k);
    ImkImage part = c->v.at[ready ? OUT : IN];

    part.data = (uint8_t *) part.data + at * part.stride;
    part.height = ready ? ready : imk_slcresample_room (k);
    status = ready ? imk_slcresample_process (k, &part, error)
                   : imk_slcresample_push (k, &part, error);
  }
  return status;
}

/* To 1e-5 of the largest sample. */
static double
difference (void *data)
{
  Case *c = data;
  double worst = 0;

  for (uint32_t y = 0; y < c->config.out_height; y++)
    for (uint32_t x = 0; x < c->config.out_width; x++) {
      double re, im, expected_re, expected_im;

      test_image_get_complex (&c->v.host[OUT], x, y, &re, &im);
      test_image_get_complex (&c->v.expected, x, y, &expected_re, &expected_im);
      worst = variant_larger (
          worst, hypot (re - expected_re, im - expected_im) / 1e-5);
    }
  return worst;
}

VARIANT_KERNEL (
    slcresample, .promise = "1e-5", .same_bytes = true, .n_cases = 100)
