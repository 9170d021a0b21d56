/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Laws of whatever parameters. An update equals a new object: it gives the bits
 * of one that is made with the parameters of the last update. And cells where a
 * frame ends equal those inside of a wider one. */
#define _GNU_SOURCE /* setenv */
#include "sh-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/cpu.h"

enum {
  N_OBJECTS = 60,
  N_UPDATES = 30,
  WIDTH = 90,
  HEIGHT = 42,
  NARROW = 19,
  N_EDGE_CELLS = 6,
};

typedef struct Tables {
  float dark[WIDTH * HEIGHT], flat[WIDTH * HEIGHT], lut[65536];
  uint8_t bad[WIDTH * HEIGHT];
} Tables;

static void
fill_tables (Tables *t)
{
  uint64_t seed = 9;

  for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
    t->dark[i] = (float) (test_random (&seed) % 8);
    t->flat[i] = 0.8f + 0.01f * (float) (test_random (&seed) % 40);
    t->bad[i] = test_random (&seed) % 13 == 0;
  }
  for (size_t i = 0; i < 65536; i++)
    t->lut[i] = (float) (test_random (&seed) % 300);
}

/* What no update changes. */
static ImkShcentroidConfig
draw_geometry (const Tables *t, uint64_t *seed)
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32};
  static const uint32_t pitches[][2] = {{9, 7}, {15, 14}, {18, 21}};
  const uint32_t *pitch = pitches[test_random (seed) % 3];
  ImkShcentroidConfig c = sh_grid (types[test_random (seed) % 3], WIDTH, HEIGHT,
      0, 0, pitch[0], pitch[1], WIDTH / pitch[0], HEIGHT / pitch[1]);

  c.fields = test_random (seed) % (IMK_SHCENTROID_FIELDS_SLOPES + 1);
  c.margin = test_random (seed) % 4 == 0;
  if (test_random (seed) % 4 == 0)
    c.dark = t->dark;
  if (test_random (seed) % 4 == 0)
    c.flat = t->flat;
  if (test_random (seed) % 4 == 0)
    c.bad = t->bad;
  if (test_random (seed) % 4 == 0 && c.type != IMK_TYPE_F32)
    c.lut = t->lut;
  c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  c.template_cell = 1;
  c.template_margin = 1;
  return c;
}

/* Some parameters change, the others stay; of each few values, so that tables
 * which some of them need are those of the last but one update. */
static void
draw_params (ImkShcentroidConfig *c, uint64_t *seed)
{
  static const ImkShcentroidEstimator estimators[] = {
      IMK_SHCENTROID_ESTIMATOR_COG, IMK_SHCENTROID_ESTIMATOR_COG,
      IMK_SHCENTROID_ESTIMATOR_QUAD, IMK_SHCENTROID_ESTIMATOR_CORRELATION};

  TEST_DRAW (seed, c->threshold_mode, 0, 0, IMK_SHCENTROID_THRESHOLD_ABSOLUTE,
      IMK_SHCENTROID_THRESHOLD_RELATIVE, IMK_SHCENTROID_THRESHOLD_RANGE,
      IMK_SHCENTROID_THRESHOLD_NOISE);
  TEST_DRAW (seed, c->threshold, 0.3, 0.6, 40);
  TEST_DRAW (seed, c->threshold_action, 0, 1);
  TEST_DRAW (seed, c->threshold_least, 0, 30);
  TEST_DRAW (seed, c->brightest, 0, 0, 0, 5, 20);
  TEST_DRAW (seed, c->weighting, 0, 0, IMK_SHCENTROID_WEIGHTING_GAUSSIAN,
      IMK_SHCENTROID_WEIGHTING_GAUSSIAN, IMK_SHCENTROID_WEIGHTING_TRACKING);
  TEST_DRAW (seed, c->sigma, 2, 3.5);
  TEST_DRAW (seed, c->iterations, 1, 1, 3);
  TEST_DRAW (seed, c->power, 1, 1, 1.5, 1.7, 2, 2.5);
  TEST_DRAW (seed, c->quad_gain, 1, 1.7);
  TEST_DRAW (seed, c->correlation, 0, 1);
  TEST_DRAW (seed, c->peak_fit, 0, 1);
  TEST_DRAW (seed, c->search_range, 1, 2, 4);
  TEST_DRAW (seed, c->min_correlation, 0, 0.2);
  TEST_DRAW (seed, c->window, 0, 0, 1);
  TEST_DRAW (seed, c->tracking_gain, 1, 0.4);
  TEST_DRAW (seed, c->remove_tilt, false, true);
  TEST_DRAW (seed, c->min_flux, 0, 5000);
  TEST_DRAW (seed, c->saturation, 0, 250);
  TEST_DRAW (seed, c->gain, 1, 2.5);
  TEST_DRAW (seed, c->read_noise, 0, 1.5);
  TEST_DRAW (seed, c->invalid_policy, 0, 1, 2, 3);
  TEST_DRAW (seed, c->slope_scale, 1, 0.5);
  TEST_DRAW (seed, c->min_illumination, 0, 0.9);
  if (test_random (seed) % 4 == 0)
    c->estimator = estimators[test_random (seed) % 4];
}

static TestImage
draw_frame (const ImkShcentroidConfig *c, uint64_t *seed)
{
  TestImage in = test_image_new (c->type, WIDTH, HEIGHT, 1, 3);

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++)
      sh_set (&in, x, y, (double) (test_random (seed) % 256));
  return in;
}

static void
process (ImkBackend backend, ImkShcentroid *s, const TestImage *in,
    TestImage *out, ImkImage *from, ImkImage *to)
{
  if (backend == IMK_BACKEND_CPU) {
    sh_process (s, in, out);
    return;
  }
  test_ok (imk_shcentroid_process (s, from, to, NULL, test_new_error ()));
  test_from_device (to, out);
}

/* Two frames: what the first leaves behind shows in the second. */
static void
check_same (ImkBackend backend, ImkShcentroid *updated,
    const ImkShcentroidConfig *c, uint64_t *seed, const char *name)
{
  test_autoptr (ImkShcentroid) made = sh_new (backend, c);

  for (int frame = 0; frame < 2; frame++) {
    test_auto (TestImage) in = draw_frame (c, seed);
    test_auto (TestImage) expected = sh_output (c, IMK_TYPE_F64, 0);
    test_auto (TestImage) actual = sh_output (c, IMK_TYPE_F64, 0);
    ImkImage from = {.data = NULL}, to = from;

    if (backend != IMK_BACKEND_CPU) {
      from = test_to_device (&in);
      to = test_to_device (&actual);
    }
    process (backend, made, &in, &expected, &from, &to);
    process (backend, updated, &in, &actual, &from, &to);
    if (backend != IMK_BACKEND_CPU) {
      test_device_free (&from);
      test_device_free (&to);
    }
    test_image_same (&expected, &actual, name);
  }
}

/* An object and its updates. What is held or tracked may go on after an update,
 * and is forgotten here. */
static void
check_updates (ImkBackend backend, const Tables *t, uint32_t number)
{
  uint64_t seed = 1000 + number;
  ImkShcentroidConfig c = draw_geometry (t, &seed);
  test_autoptr (ImkShcentroid) s = NULL;

  draw_params (&c, &seed);
  s = sh_new (backend, &c);
  for (uint32_t i = 0; i < N_UPDATES; i++) {
    char name[60];

    snprintf (name, sizeof (name), "object %u update %u", number, i);
    draw_params (&c, &seed);
    test_ok (imk_shcentroid_update (s, &c, test_new_error ()));
    test_ok (imk_shcentroid_reset (s, NULL, test_new_error ()));
    check_same (backend, s, &c, &seed, name);
  }
}

/* Cells that end where a narrow frame does. */
static ImkShcentroidConfig
draw_cells (
    ImkShcentroidCell cells[N_EDGE_CELLS], const Tables *t, uint64_t *seed)
{
  ImkShcentroidConfig c = draw_geometry (t, seed);
  const double width = 3 + (double) (test_random (seed) % (NARROW - 3));

  for (uint32_t i = 0; i < N_EDGE_CELLS; i++)
    cells[i] = (ImkShcentroidCell){
        NARROW - width, 7 * i, width, 7, NAN, NAN, NAN, NAN};
  c.margin = 0;
  c.template_margin = 0;
  c.cells = cells;
  c.n_cells = N_EDGE_CELLS;
  return c;
}

/* The columns of the narrow frame, of a table of the wide one. */
static float *
narrow_table (const float *wide)
{
  float *narrow = malloc (NARROW * HEIGHT * sizeof (*narrow));

  for (uint32_t i = 0; i < NARROW * HEIGHT; i++)
    narrow[i] = wide[i / NARROW * WIDTH + i % NARROW];
  return narrow;
}

static void
check_edge (const Tables *t, uint32_t number)
{
  uint64_t seed = 7000 + number;
  ImkShcentroidCell cells[N_EDGE_CELLS];
  ImkShcentroidConfig c = draw_cells (cells, t, &seed), n;
  test_autofree float *dark = narrow_table (t->dark);
  test_autofree float *flat = narrow_table (t->flat);
  char name[60];

  for (uint32_t i = 0; i < N_UPDATES; i++) {
    test_auto (TestImage) wide = draw_frame (&c, &seed);
    test_auto (TestImage) narrow =
        test_image_new (c.type, NARROW, HEIGHT, 1, 3);
    test_auto (TestImage) expected = {0};
    test_auto (TestImage) actual = {0};

    for (uint32_t y = 0; y < HEIGHT; y++)
      for (uint32_t x = 0; x < NARROW; x++)
        sh_set (&narrow, x, y, sh_sample (&wide, x, y));
    draw_params (&c, &seed);
    c.window = IMK_SHCENTROID_WINDOW_CELL;
    c.bad = NULL;
    n = c;
    n.width = NARROW;
    n.dark = c.dark ? dark : NULL;
    n.flat = c.flat ? flat : NULL;
    expected = sh_run (IMK_BACKEND_CPU, &c, &wide, IMK_TYPE_F64, 0);
    actual = sh_run (IMK_BACKEND_CPU, &n, &narrow, IMK_TYPE_F64, 0);
    snprintf (name, sizeof (name), "cells %u parameters %u", number, i);
    test_image_same (&expected, &actual, name);
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

/* Returns: whether the processor has it */
static bool
select_level (ImkCpuLevel level)
{
  ImkCpuLevel selected;

  setenv ("IMK_CPU", imk_cpu_level_name (level), 1);
  return imk_cpu_level (&selected, NULL) == IMK_OK;
}

TEST (test_updates,
    "an update gives the bits of a new object, at every level of the CPU",
    .cpu_only = true)
{
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++)
    if (select_level (level))
      check_backend (IMK_BACKEND_CPU);
  unsetenv ("IMK_CPU");
}

TEST (test_edge,
    "cells give the same bits where the frame ends, at every level of the CPU",
    .cpu_only = true)
{
  test_autofree Tables *tables = malloc (sizeof (*tables));

  fill_tables (tables);
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++)
    for (uint32_t i = 0; select_level (level) && i < N_OBJECTS; i++)
      if (test_takes_case (1))
        check_edge (tables, i);
  unsetenv ("IMK_CPU");
}

TEST (test_updates_on_cuda, "an update gives the bits of a new object on CUDA")
{
  test_need_cuda ();
  check_backend (IMK_BACKEND_CUDA);
}
