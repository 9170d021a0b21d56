/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An update equals a new object: whatever parameters an object had before, it
 * gives the bits of one that is made with those of the last update. */
#define _GNU_SOURCE /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "imk/lapsharpen.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkLapsharpen, imk_lapsharpen_free)

enum {
  N_OBJECTS = TEST_SANITIZED ? 10 : 60,
  N_UPDATES = 30,
  WIDTH = 450, /* at most; rows of vectors have 384 samples and more */
  HEIGHT = 11,
};

typedef struct Tables {
  uint8_t mask[WIDTH * HEIGHT];
  uint16_t decode[65536], encode[65536];
} Tables;

static void
fill_tables (Tables *t)
{
  uint64_t seed = 9;

  for (size_t i = 0; i < sizeof (t->mask); i++)
    t->mask[i] = test_random (&seed) % 3 ? 255 : 100;
  for (uint32_t i = 0; i < 65536; i++) {
    t->decode[i] = (uint16_t) (i * 257 % 65536);
    t->encode[i] = (uint16_t) (i >> 8);
  }
}

/* What no update changes. */
static ImkLapsharpenConfig
draw_format (const Tables *t, uint64_t *seed)
{
  static const uint32_t widths[] = {37, 210, WIDTH};
  ImkLapsharpenConfig c;

  imk_lapsharpen_config_init (&c);
  c.width = widths[test_random (seed) % 3];
  c.height = HEIGHT;
  c.channels = 1 + (uint32_t) (test_random (seed) % 4);
  c.channel_mask = (1u << c.channels) - 1;
  c.n_threads = 1 + (uint32_t) (test_random (seed) % 2);
  if (test_random (seed) % 4 == 0)
    c.mask = t->mask;
  if (test_random (seed) % 3 == 0) {
    c.type = IMK_TYPE_F32;
    return c;
  }
  if (test_random (seed) % 2) {
    c.type = IMK_TYPE_U16;
    c.depth = test_random (seed) % 2 ? 16 : 10;
    c.shift = c.depth == 10 ? 6 : 0;
  }
  if (c.channels > 1 && test_random (seed) % 2) {
    c.alpha_channel = (int32_t) c.channels - 1;
    c.channel_mask >>= 1;
  }
  if (test_random (seed) % 4 == 0) {
    c.decode = t->decode;
    c.encode = t->encode;
    c.linear_mask = c.channel_mask;
  }
  return c;
}

static void
draw_kernel (ImkLapsharpenConfig *c, uint64_t *seed)
{
  const uint32_t size = 3 + 2 * (uint32_t) (test_random (seed) % 3);
  const double unit = test_random (seed) % 2 ? 1 / 9.0 : 1 / 8.0;

  c->kernel_size = size;
  for (uint32_t i = 0; i < size * size; i++)
    c->kernel[i] = (float) (unit * ((double) (test_random (seed) % 5) - 1.5));
}

/* Some parameters change, the others stay; of each few values, so that tables
 * which some of them need are those of the last but one update. */
static void
draw_params (ImkLapsharpenConfig *c, uint64_t *seed)
{
  /* products.h has other factors for 0.04 and 0.16 with 8 neighbours */
  TEST_DRAW (seed, c->amount, 0.04, 0.16, 0.3, 1, 1.5, 2.34, 7.77);
  TEST_DRAW (seed, c->neighbours, 4, 8);
  TEST_DRAW (seed, c->border, 0, 1, 2, 3, 4);
  TEST_DRAW (seed, c->border_value, 0, 200);
  TEST_DRAW (seed, c->alpha, 0, 1, 2);
  TEST_DRAW (seed, c->threshold, 0, 0, 1, 2.5, 20);
  TEST_DRAW (seed, c->threshold_unit, 0, 0, 1);
  TEST_DRAW (seed, c->coring, 0, 0, 1);
  TEST_DRAW (seed, c->clamp, 0, 0, 1);
  TEST_DRAW (seed, c->output, 0, 0, 1);
  TEST_DRAW (seed, c->measure_focus, false, true);
  TEST_DRAW (seed, c->method, 0, 0, 1, 2, 2, 3, 4);
  TEST_DRAW (seed, c->radius, 0.5, 1, 2.4, 5, 20);
  TEST_DRAW (seed, c->range_low[0], 0, 16);
  TEST_DRAW (seed, c->range_high[0], 0, 0, 235);
  TEST_DRAW (seed, c->halo_bright, UINT32_MAX, 3);
  TEST_DRAW (seed, c->halo_dark, UINT32_MAX, 0);
  TEST_DRAW (seed, c->n_areas, 0, 0, 1);
  TEST_DRAW (seed, c->areas[0].x, 0, 30);
  c->areas[0].width = 100;
  c->areas[0].height = 5;
  if (test_random (seed) % 4 == 0)
    draw_kernel (c, seed);
  if (c->type == IMK_TYPE_F32) {
    c->range_high[0] = 0;
    if (c->method == IMK_LAPSHARPEN_METHOD_CAS)
      c->method = IMK_LAPSHARPEN_METHOD_LAPLACIAN;
  }
  if (c->method == IMK_LAPSHARPEN_METHOD_KERNEL &&
      (c->kernel_size == 0 || c->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED))
    c->method = IMK_LAPSHARPEN_METHOD_LAPLACIAN;
}

static TestImage
draw_frame (const ImkLapsharpenConfig *c, uint64_t *seed)
{
  TestImage in = test_image_new (c->type, c->width, c->height, c->channels, 4);

  if (c->type != IMK_TYPE_F32) {
    test_image_fill (&in, FILL_NOISE, (1u << c->depth) - 1, *seed);
    return in;
  }
  for (uint32_t y = 0; y < c->height; y++) {
    float *row =
        (float *) (void *) ((uint8_t *) in.image.data + y * in.image.stride);

    for (uint32_t x = 0; x < c->width * c->channels; x++)
      row[x] = (float) (test_random (seed) % 2560) / 10;
  }
  return in;
}

static ImkLapsharpenFocus
process (ImkBackend backend, ImkLapsharpen *self, const ImkLapsharpenConfig *c,
    const TestImage *in, TestImage *out)
{
  ImkLapsharpenFocus focus = {0};

  if (backend == IMK_BACKEND_CPU) {
    test_ok (imk_lapsharpen_process (
        self, &in->image, &out->image, NULL, test_new_error ()));
  } else {
    test_auto (ImkImage) from = test_to_device (in);
    test_auto (ImkImage) to = test_to_device (out);

    test_ok (
        imk_lapsharpen_process (self, &from, &to, NULL, test_new_error ()));
    test_from_device (&to, out);
  }
  if (c->measure_focus)
    test_ok (imk_lapsharpen_get_focus (self, &focus, test_new_error ()));
  return focus;
}

static void
check_same (ImkBackend backend, ImkLapsharpen *updated,
    const ImkLapsharpenConfig *c, uint64_t *seed, const char *name)
{
  test_autoptr (ImkLapsharpen) made = NULL;
  test_auto (TestImage) in = draw_frame (c, seed);
  test_auto (TestImage) expected =
      test_image_new (c->type, c->width, c->height, c->channels, 4);
  test_auto (TestImage) actual =
      test_image_new (c->type, c->width, c->height, c->channels, 4);
  ImkLapsharpenFocus focus, same;

  test_ok (imk_lapsharpen_new (backend, c, &made, test_new_error ()));
  focus = process (backend, made, c, &in, &expected);
  same = process (backend, updated, c, &in, &actual);
  test_image_same (&expected, &actual, name);
  test_check (focus.n_samples == same.n_samples && focus.mean == same.mean &&
                  focus.variance == same.variance,
      "%s: the focus is %g of %llu samples, not %g of %llu", name,
      same.variance, (unsigned long long) same.n_samples, focus.variance,
      (unsigned long long) focus.n_samples);
}

static void
check_updates (ImkBackend backend, const Tables *t, uint32_t number)
{
  uint64_t seed = 1000 + number;
  ImkLapsharpenConfig c = draw_format (t, &seed);
  test_autoptr (ImkLapsharpen) self = NULL;

  draw_params (&c, &seed);
  test_ok (imk_lapsharpen_new (backend, &c, &self, test_new_error ()));
  for (uint32_t i = 0; i < N_UPDATES; i++) {
    char name[200];

    draw_params (&c, &seed);
    snprintf (name, sizeof (name),
        "object %u update %u: %s %ux%ux%u method %d amount %g neighbours %u "
        "threshold %g of %d coring %d",
        number, i, imk_type_name (c.type), c.width, c.height, c.channels,
        c.method, c.amount, c.neighbours, c.threshold, c.threshold_unit,
        c.coring);
    test_ok (imk_lapsharpen_update (self, &c, test_new_error ()));
    check_same (backend, self, &c, &seed, name);
  }
}

static void
check_backend (ImkBackend backend)
{
  test_autofree Tables *tables = malloc (sizeof (*tables));

  fill_tables (tables);
  for (uint32_t i = 0; i < N_OBJECTS; i++)
    if (test_takes_case (1))
      check_updates (backend, tables, i);
}

TEST (test_updates,
    "an update gives the bits of a new object, at every level of the CPU",
    .cpu_only = true)
{
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++) {
    ImkCpuLevel selected;

    setenv ("IMK_CPU", imk_cpu_level_name (level), 1);
    if (imk_cpu_level (&selected, NULL) == IMK_OK)
      check_backend (IMK_BACKEND_CPU);
  }
  unsetenv ("IMK_CPU");
}

TEST (test_updates_on_cuda, "an update gives the bits of a new object on CUDA")
{
  test_need_cuda ();
  check_backend (IMK_BACKEND_CUDA);
}
