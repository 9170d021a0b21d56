/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The centroid kernel against closed forms, an independent reference, real
 * camera frames, and the backends against each other. */
#include "sh-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/device.h"
#include "core/failures.h"

enum { MAX_CELLS = 4096 };

static const double nan_ = NAN;

/* --- helpers -------------------------------------------------------------- */

/* One cell that is the whole frame. */
static ImkShcentroidConfig
one_cell (ImkType type, uint32_t width, uint32_t height)
{
  return sh_grid (type, width, height, 0, 0, width, height, 1, 1);
}

/* Where the worked examples are run. */
static ImkBackend backend_of_examples = IMK_BACKEND_CPU;

static TestImage
run_example (const ImkShcentroidConfig *c, const TestImage *in)
{
  return sh_run (backend_of_examples, c, in, IMK_TYPE_F64, 0);
}

/* --- worked examples ------------------------------------------------------ */

static void
check_centre (const ImkShcentroidConfig *c, const TestImage *in, double flux,
    double x, double y)
{
  test_auto (TestImage) out = run_example (c, in);

  sh_near (&out, 0, IMK_SHCENTROID_FLUX, flux, 0);
  sh_near (&out, 0, IMK_SHCENTROID_X, x, 1e-9);
  sh_near (&out, 0, IMK_SHCENTROID_Y, y, 1e-9);
  sh_near (&out, 0, IMK_SHCENTROID_FLAGS, 0, 0);
}

TEST (test_plain_centroid,
    "a 4x4 cell has the centroid and flux of the closed form")
{
  for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++) {
    test_auto (TestImage) in = sh_example (type, 4, 4, 0, 0, 0);
    test_auto (TestImage) far = sh_example (type, 64, 40, 10, 20, 0);
    ImkShcentroidConfig c = one_cell (type, 4, 4);
    ImkShcentroidConfig f = sh_grid (type, 64, 40, 10, 20, 4, 4, 1, 1);
    test_auto (TestImage) out = run_example (&c, &in);

    sh_near (&out, 0, IMK_SHCENTROID_DX, 0.1, 1e-12);
    sh_near (&out, 0, IMK_SHCENTROID_DY, 0.2, 1e-12);
    sh_near (&out, 0, IMK_SHCENTROID_FLUX_RAW, 100, 0);
    sh_near (&out, 0, IMK_SHCENTROID_MAX, 40, 0);
    check_centre (&c, &in, 100, 1.6, 1.7);
    check_centre (&f, &far, 100, 11.6, 21.7);
  }
}

TEST (test_variances, "variances are those of photon noise and read noise")
{
  test_auto (TestImage) in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 0), out;
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4);

  out = run_example (&c, &in);
  sh_near (&out, 0, IMK_SHCENTROID_VAR_X, 0.0024, 1e-15);
  sh_near (&out, 0, IMK_SHCENTROID_VAR_Y, 0.0021, 1e-15);
  test_image_free (&out);

  c.read_noise = 1;
  out = run_example (&c, &in);
  sh_near (&out, 0, IMK_SHCENTROID_VAR_X, 0.0024 + 0.002016, 1e-15);
  sh_near (&out, 0, IMK_SHCENTROID_VAR_Y, 0.0021 + 0.002064, 1e-15);
  test_image_free (&out);

  c.gain = 1e200; /* electrons without end: no photon noise */
  out = run_example (&c, &in);
  sh_near (&out, 0, IMK_SHCENTROID_VAR_X, 0.002016, 1e-15);
  sh_near (&out, 0, IMK_SHCENTROID_VAR_Y, 0.002064, 1e-15);
  test_image_free (&out);

  c.gain = 1e-300, c.read_noise = 1e300;
  out = run_example (&c, &in);
  test_check (isfinite (sh_get (&out, 0, IMK_SHCENTROID_VAR_X)),
      "an absurd gain made the variance infinite or NaN");
}

TEST (test_thresholds, "an absolute threshold subtracts or keeps")
{
  test_auto (TestImage) in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 2);
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4);

  check_centre (&c, &in, 132, 1 + 76.0 / 132, 1 + 86.0 / 132);
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 2;
  check_centre (&c, &in, 100, 1.6, 1.7);
  c.threshold = 12;
  check_centre (&c, &in, 60, 1 + 2.0 / 3, 1 + 5.0 / 6);
  c.threshold_action = IMK_SHCENTROID_ACTION_KEEP;
  check_centre (&c, &in, 108, 1 + 64.0 / 108, 1 + 74.0 / 108);
  c.threshold = 12.5; /* the 12 is below it now */
  check_centre (&c, &in, 96, 1 + 2.0 / 3, 1 + 74.0 / 96);
}

TEST (test_dark_cell, "a dark cell is flagged and reports what the policy says")
{
  TestImage in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 2), out;
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4);

  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 42;
  for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++) {
    c.invalid_policy = policy;
    out = run_example (&c, &in);
    sh_near (&out, 0, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_NO_FLUX, 0);
    sh_near (&out, 0, IMK_SHCENTROID_FLUX, 0, 0);
    sh_near (&out, 0, IMK_SHCENTROID_FLUX_RAW, 132, 0);
    for (int i = 0; i < N_FIELDS; i++)
      if (policy != IMK_SHCENTROID_INVALID_NAN)
        test_check (
            isfinite (sh_get (&out, 0, i)), "field %d is not finite", i);
    for (int i = IMK_SHCENTROID_X; i <= IMK_SHCENTROID_Y; i++)
      if (policy == IMK_SHCENTROID_INVALID_NAN)
        test_check (isnan (sh_get (&out, 0, i)) &&
                        isnan (sh_get (&out, 0, i + 2)) &&
                        isnan (sh_get (&out, 0, i + IMK_SHCENTROID_VAR_X)),
            "a NaN is missing");
      else
        sh_near (&out, 0, i, 1.5, 0);
    test_image_free (&out);
  }
  test_image_free (&in);
}

TEST (test_aotools, "four equal pixels have their centroid between them")
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, 5, 5, 1, 0);
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U16, 5, 5);

  test_image_fill (&in, FILL_ZERO, 0, 0);
  for (int y = 1; y <= 2; y++)
    for (int x = 2; x <= 3; x++)
      sh_set (&in, x, y, 1);
  check_centre (&c, &in, 4, 2.5, 1.5);
}

/* On a white frame raw / 255 is the area, and c the middle of the pixels. */
static void
check_edges (double x0, double pitch, uint32_t n, const uint32_t *edges)
{
  test_auto (TestImage) in =
      test_image_new (IMK_TYPE_U8, edges[n] + 3, 2, 1, 0),
                        out;
  ImkShcentroidConfig c =
      sh_grid (IMK_TYPE_U8, edges[n] + 3, 2, x0, 0, pitch, 2, n, 1);

  test_image_fill (&in, FILL_MAXIMUM, 255, 0);
  out = run_example (&c, &in);
  for (uint32_t i = 0; i < n; i++) {
    sh_near (
        &out, i, IMK_SHCENTROID_FLUX_RAW, 510.0 * (edges[i + 1] - edges[i]), 0);
    sh_near (&out, i, IMK_SHCENTROID_X, (edges[i] + edges[i + 1] - 1) / 2.0, 0);
    sh_near (&out, i, IMK_SHCENTROID_Y, 0.5, 0);
    sh_near (&out, i, IMK_SHCENTROID_DX,
        (edges[i] + edges[i + 1] - 1) / 2.0 - (x0 + (i + 0.5) * pitch - 0.5),
        1e-12);
  }
}

TEST (test_edges, "cells of any pitch have the edges of a single floor")
{
  const uint32_t halves[] = {0, 3, 5, 8};
  const uint32_t thirds[] = {0, 3, 6, 9};
  const uint32_t hecto[] = {23, 53, 82, 112, 142, 171, 201, 231, 260, 290, 320,
      349, 379, 408, 438, 468, 497};

  check_edges (0.5, 2.5, 3, halves);
  check_edges (0, 3.3, 3, thirds);
  check_edges (23.51, 29.653, 16, hecto);
}

static void
check_against_reference (const ImkShcentroidConfig *c, const TestImage *in,
    const TestImage *out, const char *what)
{
  sh_check_reference (
      c, in, out, out->image.type == IMK_TYPE_F32 ? 2e-7 : 1e-11, NULL, what);
}

/* --- the matrix of cases that the reference and parity tests share -------- */

typedef struct Grid {
  uint32_t width, height;
  double x0, y0, pitch_x, pitch_y;
  uint32_t columns, rows;
} Grid;

static const Grid grids[] = {
    {1, 1, 0, 0, 1, 1, 1, 1},
    {7, 5, 0, 0, 1, 1, 7, 5},
    {5, 3, -0.5, -0.5, 2.5, 2, 2, 2},
    {31, 9, 0.5, 0, 2.5, 3, 12, 3},
    {64, 48, 0, 0, 2, 2, 32, 24},
    {101, 60, 0, 0, 3, 3, 33, 20},
    {99, 71, 0.25, 1.5, 3.3, 3.3, 29, 21},
    {97, 93, -4.5, -3.25, 10, 10, 10, 9},
    {120, 66, 3.9, 0.7, 9.7, 21.9, 11, 3},
    {130, 95, 1, 2, 28, 23, 4, 4},
    {270, 150, 2.5, -5, 130, 130, 2, 1},
    {211, 203, 3, 1, 200, 200, 1, 1},
    {523, 37, 0, 0, 261.5, 37, 2, 1},
    {641, 23, 0, 0, 641, 23, 1, 1},
    {1200, 70, -0.5, 0, 599.7, 34.8, 2, 2},
    {67, 300, 0, 0, 33.3, 150, 2, 2},
    {41, 640, 0, 0, 41, 640, 1, 1},
};

/* A case: grid x type x fill x threshold x fields x output type x padding. */
typedef struct Case {
  ImkShcentroidConfig config;
  Fill fill;
  ImkType out_type;
  uint32_t padding;
  char name[160];
} Case;

static void
set_threshold (ImkShcentroidConfig *c, int kind)
{
  const double thresholds[] = {0, 0, 1, 100.5, 100.5, 70000, 70000};
  bool u16 = c->type == IMK_TYPE_U16;

  c->threshold_mode =
      kind ? IMK_SHCENTROID_THRESHOLD_ABSOLUTE : IMK_SHCENTROID_THRESHOLD_NONE;
  c->threshold = thresholds[kind] * (kind == 3 && u16 ? 256 : 1);
  c->threshold_action = kind == 4 || kind == 6 ? IMK_SHCENTROID_ACTION_KEEP
                                               : IMK_SHCENTROID_ACTION_SUBTRACT;
}

enum { N_THRESHOLDS = 7 };

static Case
make_case (const Grid *g, ImkType type, Fill fill, int threshold, int fields)
{
  Case k = {
      .config = sh_grid (type, g->width, g->height, g->x0, g->y0, g->pitch_x,
          g->pitch_y, g->columns, g->rows),
      .fill = fill,
      .out_type = (threshold + fields) % 2 ? IMK_TYPE_F32 : IMK_TYPE_F64,
      .padding = (uint32_t) (threshold * 3 + fill) % 8,
  };

  set_threshold (&k.config, threshold);
  k.config.fields = fields;
  k.config.saturation = 200;
  k.config.min_flux = fill == FILL_NOISE ? 50 : 0;
  k.config.gain = 2.5;
  k.config.read_noise = 1.5;
  snprintf (k.name, sizeof (k.name),
      "%s %ux%u pitch %g x %g %s threshold %d fields %d %s",
      imk_type_name (type), g->width, g->height, g->pitch_x, g->pitch_y,
      test_fill_name (fill), threshold, fields, imk_type_name (k.out_type));
  return k;
}

static TestImage
case_frame (const Case *k)
{
  const ImkShcentroidConfig *c = &k->config;
  TestImage in = test_image_new (c->type, c->width, c->height, 1, k->padding);

  test_image_fill (
      &in, k->fill, c->type == IMK_TYPE_U8 ? 255 : 65535, c->width);
  return in;
}

static void
for_each_case (void (*check) (const Case *k))
{
  for (size_t g = 0; g < sizeof (grids) / sizeof (grids[0]); g++)
    for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
      for (int fill = 0; fill < N_FILLS; fill++)
        for (int threshold = 0; threshold < N_THRESHOLDS; threshold++)
          for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES;
               fields++) {
            Case k = make_case (&grids[g], type, fill, threshold, fields);

            /* large frames: noise and maximum say it all */
            if ((g > 6 && (fill == FILL_ZERO || fill == FILL_CHECKERBOARD) &&
                    threshold != 2) ||
                !test_takes_case (1))
              continue;
            check (&k);
          }
}

static void
check_cpu_case (const Case *k)
{
  test_auto (TestImage) in = case_frame (k);
  test_auto (TestImage) out =
      sh_run (IMK_BACKEND_CPU, &k->config, &in, k->out_type, k->padding);

  check_against_reference (&k->config, &in, &out, k->name);
}

TEST (test_reference,
    "every cell agrees with a reference that adds pixel by pixel",
    .cpu_only = true)
{
  for_each_case (check_cpu_case);
}

/* Sums beyond 64 bits: a weight of 2^16 at both ends of a 65535 x 3 cell. */
TEST (test_largest_sums, "the largest sums do not overflow")
{
  for (int tall = 0; tall < 2; tall++) {
    uint32_t width = tall ? 3 : 65535, height = tall ? 65535 : 3;
    test_auto (TestImage) in =
        test_image_new (IMK_TYPE_U16, width, height, 1, 2),
                          out;
    ImkShcentroidConfig c = one_cell (IMK_TYPE_U16, width, height);

    test_image_fill (&in, FILL_MAXIMUM, 65535, 0);
    out = run_example (&c, &in);
    sh_near (&out, 0, IMK_SHCENTROID_X, (width - 1) / 2.0, 0);
    sh_near (&out, 0, IMK_SHCENTROID_Y, (height - 1) / 2.0, 0);
    check_against_reference (&c, &in, &out, "65535 x 3");
  }
}

/* --- maps ----------------------------------------------------------------- */

/* Overlapping, clipped, turned by 10 degrees, own thresholds and fluxes. */
static uint32_t
make_map (ImkShcentroidCell cells[MAX_CELLS])
{
  uint32_t n = 0;

  for (int row = 0; row < 9; row++)
    for (int column = 0; column < 9; column++) {
      double u = 21.4 * column - 6, v = 21.4 * row - 3;
      ImkShcentroidCell *cell = &cells[n];

      *cell = (ImkShcentroidCell){
          .x = u * 0.985 - v * 0.174 + 20,
          .y = u * 0.174 + v * 0.985,
          .width = 24.5 - column,
          .height = 20 + row / 2.0,
          .ref_x = column % 3 ? nan_ : 50.25,
          .ref_y = column % 3 ? nan_ : 17,
          .min_flux = row % 2 ? nan_ : 20000.0 * column,
          .threshold = column % 2 ? nan_ : 12.5 * row,
      };
      if (cell->x < 199 && cell->y < 179 && cell->x + cell->width >= 1 &&
          cell->y + cell->height >= 1)
        n++;
    }
  cells[n++] = (ImkShcentroidCell){
      -20, -20, 1000, 1000, nan_, nan_, nan_, nan_}; /* wider than a tile */
  return n;
}

static Case
map_case (const ImkShcentroidCell *cells, uint32_t n, ImkType type,
    int threshold, int fields)
{
  const Grid g = {.width = 200, .height = 180};
  Case k = make_case (&g, type, FILL_NOISE, threshold, fields);

  k.config.cells = cells;
  k.config.n_cells = n;
  strcat (k.name, " map");
  return k;
}

static void
for_each_map_case (void (*check) (const Case *k))
{
  static ImkShcentroidCell cells[MAX_CELLS];
  static double references[2 * MAX_CELLS];
  uint32_t n = make_map (cells);

  for (uint32_t i = 0; i < 2 * n; i++)
    references[i] = i * 0.37;
  for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
    for (int threshold = 0; threshold < N_THRESHOLDS; threshold++)
      for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++) {
        Case k = map_case (cells, n, type, threshold, fields);

        check (&k);
        k.config.references = references;
        check (&k);
      }
}

TEST (test_maps,
    "cells of a map overlap, are clipped and have their own settings")
{
  for_each_map_case (check_cpu_case);
}

TEST (test_map_equals_grid, "a map of the cells of a grid gives the same bits")
{
  ImkShcentroidConfig grid =
      sh_grid (IMK_TYPE_U8, 99, 71, 0.25, 1.5, 3.3, 3.3, 29, 21);
  ImkShcentroidConfig map = grid;
  ImkShcentroidCell cells[29 * 21];
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U8, 99, 71, 1, 0), a, b;

  test_image_fill (&in, FILL_NOISE, 255, 3);
  for (uint32_t i = 0; i < 29 * 21; i++) {
    double left = floor (0.25 + i % 29 * 3.3), top = floor (1.5 + i / 29 * 3.3);

    cells[i] = (ImkShcentroidCell){
        .x = left,
        .y = top,
        .width = floor (0.25 + (i % 29 + 1) * 3.3) - left,
        .height = floor (1.5 + (i / 29 + 1) * 3.3) - top,
        .ref_x = 0.25 + (i % 29 + 0.5) * 3.3 - 0.5,
        .ref_y = 1.5 + (i / 29 + 0.5) * 3.3 - 0.5,
        .min_flux = nan_,
        .threshold = nan_,
    };
  }
  map.cells = cells;
  map.n_cells = 29 * 21;
  a = sh_run (IMK_BACKEND_CPU, &grid, &in, IMK_TYPE_F64, 0);
  b = sh_run (IMK_BACKEND_CPU, &map, &in, IMK_TYPE_F64, 0);
  test_image_same (&a, &b, "a map of the cells of a grid");
}

/* --- laws ----------------------------------------------------------------- */

TEST (test_shift, "a frame shifted by one pixel moves the centroid by one")
{
  test_auto (TestImage) a = sh_example (IMK_TYPE_U16, 40, 40, 12, 14, 0);
  test_auto (TestImage) b = sh_example (IMK_TYPE_U16, 40, 40, 13, 15, 0);
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_U16, 40, 40, 5, 5, 30, 30, 1, 1);
  test_auto (TestImage) first = run_example (&c, &a),
                        second = run_example (&c, &b);

  for (int i = 0; i < 4; i++)
    sh_near (&second, 0, i, sh_get (&first, 0, i) + 1, 1e-12);
  for (int i = IMK_SHCENTROID_VAR_X; i <= IMK_SHCENTROID_VAR_Y; i++)
    sh_near (&second, 0, i, sh_get (&first, 0, i), 1e-12);
}

TEST (test_threads, "the result does not depend on the number of threads")
{
  ImkShcentroidConfig c =
      sh_grid (IMK_TYPE_U8, 800, 1000, 0.3, 0.1, 7.9, 9.9, 100, 101);
  TestImage in = test_image_new (IMK_TYPE_U8, 800, 1000, 1, 0), one, many;

  test_image_fill (&in, FILL_NOISE, 255, 11);
  one = sh_run (IMK_BACKEND_CPU, &c, &in, IMK_TYPE_F32, 0);
  for (uint32_t n = 0; n <= 5; n++) {
    c.n_threads = n;
    many = sh_run (IMK_BACKEND_CPU, &c, &in, IMK_TYPE_F32, 0);
    test_image_same (&one, &many, "several threads");
    test_image_free (&many);
  }
  test_image_free (&in);
  test_image_free (&one);
}

/* --- from frame to frame -------------------------------------------------- */

static void
check_xy (ImkShcentroid *s, const TestImage *in, double x, double y)
{
  ImkShcentroidConfig shape = one_cell (in->image.type, 4, 4);
  test_auto (TestImage) out = sh_output (&shape, IMK_TYPE_F64, 0);

  sh_process (s, in, &out);
  sh_near (&out, 0, IMK_SHCENTROID_X, x, 1e-12);
  sh_near (&out, 0, IMK_SHCENTROID_Y, y, 1e-12);
  sh_near (&out, 0, IMK_SHCENTROID_DX, x - 1.5, 1e-12);
}

TEST (test_hold, "hold reports the last valid centroid until a reset")
{
  test_auto (TestImage) lit = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 0);
  test_auto (TestImage) dark = test_image_new (IMK_TYPE_U8, 4, 4, 1, 0);
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4);
  test_autoptr (ImkShcentroid) s = NULL;

  test_image_fill (&dark, FILL_ZERO, 0, 0);
  c.invalid_policy = IMK_SHCENTROID_INVALID_HOLD;
  s = sh_new (IMK_BACKEND_CPU, &c);
  check_xy (s, &dark, 1.5, 1.5); /* nothing to hold yet */
  check_xy (s, &lit, 1.6, 1.7);
  check_xy (s, &dark, 1.6, 1.7);
  check_xy (s, &dark, 1.6, 1.7);
  test_ok (imk_shcentroid_update (s, &c, test_new_error ()));
  check_xy (s, &dark, 1.6, 1.7);
  test_ok (imk_shcentroid_reset (s, NULL, test_new_error ()));
  check_xy (s, &dark, 1.5, 1.5);
}

TEST (test_update, "an update takes effect, a refused one does not")
{
  test_auto (TestImage) in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 2);
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4), bad;
  test_autoptr (ImkShcentroid) s = sh_new (IMK_BACKEND_CPU, &c);

  check_xy (s, &in, 1 + 76.0 / 132, 1 + 86.0 / 132);
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 2;
  test_ok (imk_shcentroid_update (s, &c, test_new_error ()));
  check_xy (s, &in, 1.6, 1.7);
  bad = c;
  bad.threshold = 3;
  bad.gain = 0;
  test_error (imk_shcentroid_update (s, &bad, test_new_error ()),
      IMK_ERROR_CONFIG, "gain");
  check_xy (s, &in, 1.6, 1.7);
}

TEST (test_saturation, "a cell is flagged from the saturation on")
{
  TestImage in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 0), out;
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4);

  c.saturation = 40;
  out = run_example (&c, &in);
  sh_near (&out, 0, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_SATURATED, 0);
  sh_near (&out, 0, IMK_SHCENTROID_X, 1.6, 1e-12);
  test_image_free (&out);
  c.saturation = 40.5;
  check_centre (&c, &in, 100, 1.6, 1.7);
  test_image_free (&in);
}

/* T so close to the samples that m - T n is rounding only. */
TEST (test_pedestal_rounding, "a centroid never leaves its cell")
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, 30, 30, 1, 0), out;
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U16, 30, 30);

  test_image_fill (&in, FILL_MAXIMUM, 50001, 0);
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = nextafter (50001, 0);
  out = run_example (&c, &in);
  for (int i = IMK_SHCENTROID_X; i <= IMK_SHCENTROID_Y; i++)
    test_check (sh_get (&out, 0, i) >= 0 && sh_get (&out, 0, i) <= 29,
        "the centroid left its cell: %g", sh_get (&out, 0, i));
}

/* --- real frames ---------------------------------------------------------- */

static void
check_frame_file (const char *name, double threshold, uint32_t n_valid)
{
  double v[CSV_COLUMNS];
  ImkShcentroidConfig c = sh_real_grid ();
  test_auto (TestImage) in = sh_load_frame (name), cog, tabs;
  uint32_t n = 0;
  FILE *csv;

  cog = run_example (&c, &in);
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = threshold;
  c.min_flux = 5000;
  tabs = run_example (&c, &in);

  csv = sh_open_table (name);
  for (uint32_t i = 0; sh_read_cell (csv, v); i++) {
    bool valid = sh_get (&tabs, i, IMK_SHCENTROID_FLAGS) == 0;

    sh_near (&cog, i, IMK_SHCENTROID_FLUX_RAW, v[CSV_FLUX_RAW], 0);
    sh_near (&cog, i, IMK_SHCENTROID_MAX, v[CSV_MAX], 0);
    sh_near (&cog, i, IMK_SHCENTROID_X, v[CSV_COG_X], 1e-9);
    sh_near (&cog, i, IMK_SHCENTROID_Y, v[CSV_COG_Y], 1e-9);
    sh_near (&tabs, i, IMK_SHCENTROID_FLUX, v[CSV_ABSOLUTE_FLUX], 0);
    test_check (
        valid == (v[CSV_ABSOLUTE_FLUX] >= 5000), "cell %u: validity", i);
    if (valid) {
      sh_near (&tabs, i, IMK_SHCENTROID_X, v[CSV_ABSOLUTE_X], 1e-9);
      sh_near (&tabs, i, IMK_SHCENTROID_Y, v[CSV_ABSOLUTE_Y], 1e-9);
    }
    n += valid;
    test_check (i < 256, "the table has too many lines");
  }
  fclose (csv);
  test_check (n == n_valid, "%u valid cells, expected %u", n, n_valid);
}

TEST (test_lamp, "the lamp frame has the 256 centroids of the table")
{
  check_frame_file ("f5_hecto_ref", 1000, 256);
}

TEST (test_star, "the star frame has its 148 valid cells")
{
  check_frame_file ("auto_wfs_0037_ave", 900, 148);
}

/* --- errors --------------------------------------------------------------- */

static void
check_refused (const ImkShcentroidConfig *c, const char *words)
{
  ImkShcentroid *s = NULL;

  test_error (imk_shcentroid_new (IMK_BACKEND_CPU, c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (s == NULL, "the object was touched");
}

#define REFUSED(words, ...) \
  do { \
    ImkShcentroidConfig c = \
        sh_grid (IMK_TYPE_U8, 700, 500, 0, 0, 10, 10, 70, 50); \
    __VA_ARGS__; \
    check_refused (&c, words); \
  } while (0)

TEST (test_grid_errors, "a bad grid is refused with numbers and names")
{
  REFUSED ("The frame is 0x500", c.width = 0);
  REFUSED ("The frame is 700x65536", c.height = 65536);
  REFUSED ("u8, u16 or f32", c.type = IMK_TYPE_F64);
  REFUSED ("fields is 3", c.fields = 3);
  REFUSED ("0 columns and 50 rows", c.columns = 0);
  REFUSED ("70 columns and 0 rows", c.rows = 0);
  REFUSED ("18446744065119617025 cells are too many", c.columns = UINT32_MAX,
      c.rows = UINT32_MAX);
  REFUSED ("350001 cells are too many", c.columns = 350001, c.rows = 1);
  REFUSED ("x0 nan", c.x0 = NAN);
  REFUSED ("y0 inf", c.y0 = INFINITY);
  REFUSED ("pitch-x nan", c.pitch_x = NAN);
  REFUSED ("pitch-x 0.99", c.pitch_x = 0.99);
  REFUSED ("pitch-y inf", c.pitch_y = INFINITY);
  REFUSED (
      "Cell (row 0, column 70) covers the columns [700, 710)", c.columns = 71);
  REFUSED ("Cell (row 50, column 0) covers the rows [500, 510)", c.rows = 51);
  REFUSED ("Cell (row 0, column 0) covers the columns [-10, 0)", c.x0 = -10);
  REFUSED ("Cell (row 0, column 0) covers the columns [1e+300, 1e+300)",
      c.x0 = 1e300);
}

TEST (test_parameter_errors, "bad parameters are refused by name")
{
  double references[2 * 3500] = {0};

  references[2 * 17 + 1] = NAN;
  REFUSED ("The reference of cell 17 is (0, nan)", c.references = references);
  references[2 * 17 + 1] = 1e300; /* which float32 does not hold */
  REFUSED (
      "The reference of cell 17 is (0, 1e+300)", c.references = references);
  REFUSED ("threshold-mode is 5", c.threshold_mode = 5);
  REFUSED ("threshold-action is 2", c.threshold_action = 2);
  REFUSED ("invalid-policy is 4", c.invalid_policy = 4);
  REFUSED ("threshold is -1", c.threshold = -1);
  REFUSED ("threshold is nan", c.threshold = NAN);
  REFUSED ("min-flux is -0.5", c.min_flux = -0.5);
  REFUSED ("min-flux is inf", c.min_flux = INFINITY);
  REFUSED ("saturation is nan", c.saturation = NAN);
  REFUSED ("gain is 0 electrons", c.gain = 0);
  REFUSED ("gain is nan electrons", c.gain = NAN);
  REFUSED ("read-noise is -2", c.read_noise = -2);
}

TEST (test_instruction_set_errors, "an unknown instruction set is refused")
{
  REFUSED (
      "IMK_CPU is \"sse9\"; it can be scalar,", setenv ("IMK_CPU", "sse9", 1));
  unsetenv ("IMK_CPU");
}

TEST (test_map_errors, "bad rows of a map are refused by number")
{
  const ImkShcentroidCell good = {5, 5, 4, 4, NAN, NAN, NAN, NAN};
  ImkShcentroidCell cells[3] = {good, good, good};

#define BAD(words, ...) \
  cells[1] = good; \
  __VA_ARGS__; \
  REFUSED (words, c.cells = cells, c.n_cells = 3)
  BAD ("Row 1 of map-location is a cell of nan x 4", cells[1].width = NAN);
  BAD ("Row 1 of map-location is a cell of 0.5 x 4", cells[1].width = 0.5);
  BAD ("Row 1 of map-location is a cell of 4 x 4 pixels at (5, inf)",
      cells[1].y = INFINITY);
  BAD ("Row 1 of map-location is a cell of columns [700, 704)",
      cells[1].x = 700);
  BAD ("Row 1 of map-location is a cell of columns [5, 9) and rows [-4, 0)",
      cells[1].y = -4);
  BAD ("Row 1 of map-location has the reference (inf, nan)",
      cells[1].ref_x = INFINITY);
  BAD ("Row 1 of map-location has the reference (nan, -1e+300)",
      cells[1].ref_y = -1e300);
  BAD ("Row 1 of map-location is a cell of 1e+300 x", cells[1].width = 1e300);
  BAD ("pixels at (-1e+12, ", cells[1].x = -1e12, cells[1].width = 2e12);
  BAD ("Row 1 of map-location has min-flux -1", cells[1].min_flux = -1);
  BAD ("threshold inf", cells[1].threshold = INFINITY);
#undef BAD
  REFUSED ("promises 3 cells", c.n_cells = 3);
  REFUSED ("350001 cells are too many", c.cells = cells, c.n_cells = 350001);
}

TEST (test_image_errors, "images that do not fit are refused")
{
  ImkShcentroidConfig c = one_cell (IMK_TYPE_U8, 4, 4);
  test_autoptr (ImkShcentroid) s = sh_new (IMK_BACKEND_CPU, &c);
  test_auto (TestImage) in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 0);
  test_auto (TestImage) out = sh_output (&c, IMK_TYPE_F32, 0);
  test_auto (TestImage) wide = sh_output (&c, IMK_TYPE_F64, 0);
  ImkImage bad;

#define PROCESS(a, b, words) \
  test_error (imk_shcentroid_process (s, a, b, NULL, test_new_error ()), \
      IMK_ERROR_IMAGE, words)
  bad = in.image, bad.width = 5;
  PROCESS (&bad, &out.image, "The input image is 5x4");
  bad = in.image, bad.location = IMK_LOCATION_DEVICE;
  PROCESS (&bad, &out.image, "The input image lies in device memory");
  bad = out.image, bad.height = 2;
  PROCESS (&in.image, &bad, "The output image is 10x2");
  bad = out.image, bad.type = IMK_TYPE_U8;
  PROCESS (&in.image, &bad, "The output image");
  PROCESS (&in.image, NULL, "The output image has no data");
#undef PROCESS
#define PROCESS_BOTH(a, b, words) \
  test_error (imk_shcentroid_process_flags ( \
                  s, &in.image, a, b, NULL, NULL, test_new_error ()), \
      IMK_ERROR_IMAGE, words)
  PROCESS_BOTH (
      &out.image, &out.image, "The output image is 10x1, 1 x f32 a pixel");
  PROCESS_BOTH (
      &wide.image, &wide.image, "The rounded image is 10x1, 1 x f64 a pixel");
  bad = out.image, bad.height = 2;
  PROCESS_BOTH (&wide.image, &bad, "The rounded image is 10x2");
#undef PROCESS_BOTH
  test_error (imk_shcentroid_process_flags (s, &in.image, &wide.image, NULL,
                  &out.image, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "The flags image");
  imk_shcentroid_free (NULL);
}

/* --- CPU = CUDA ----------------------------------------------------------- */

static void
check_parity (const Case *k)
{
  test_auto (TestImage) in = case_frame (k);

  sh_check_parity (&k->config, &in, k->out_type, k->padding, 1, false, k->name);
}

TEST (test_parity, "CPU and CUDA agree bit for bit")
{
  test_need_cuda ();
  for_each_case (check_parity);
}

TEST (test_map_parity, "CPU and CUDA agree bit for bit on maps")
{
  test_need_cuda ();
  for_each_map_case (check_parity);
}

/* Cells that several blocks share, and sums beyond 64 bits. */
TEST (test_large_parity, "CPU and CUDA agree bit for bit on large cells")
{
  const Grid large[] = {
      {4096, 3000, 0, 0, 4096, 3000, 1, 1},
      {3001, 2000, 0.5, 0, 1500.25, 999.5, 2, 2},
      {65535, 40, 0, 0, 65535, 40, 1, 1},
      {40, 65535, 0, 0, 40, 65535, 1, 1},
      {2000, 1500, 0, 0, 10, 10, 200, 150},
      {4000, 2, 0, 0, 2, 2, 2000, 1},
  };

  test_need_cuda ();
  for (size_t g = 0; g < sizeof (large) / sizeof (large[0]); g++)
    for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
      for (int threshold = 0; threshold < 4; threshold += 3)
        for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++) {
          Fill fill = fields == 1 ? FILL_MAXIMUM : FILL_NOISE;
          Case k = make_case (&large[g], type, fill, threshold, fields);

          check_parity (&k);
        }
}

static void
check_mapped_parity (const Case *k)
{
  test_auto (TestImage) in = case_frame (k);
  test_auto (TestImage) cpu =
      sh_run (IMK_BACKEND_CPU, &k->config, &in, k->out_type, k->padding);
  test_auto (TestImage) cuda = sh_output (&k->config, k->out_type, k->padding);
  test_auto (TestMapped) mapped_in = test_to_mapped (&in);
  test_auto (TestMapped) mapped_out = test_to_mapped (&cuda);
  test_autoptr (ImkShcentroid) s = sh_new (IMK_BACKEND_CUDA, &k->config);

  test_ok (imk_shcentroid_process (
      s, &mapped_in.image, &mapped_out.image, NULL, test_new_error ()));
  test_from_mapped (&mapped_out, &cuda);
  test_image_same (&cpu, &cuda, k->name);
}

TEST (test_mapped_parity, "CUDA reads and writes page-locked host memory")
{
  test_need_cuda ();
  for (size_t g = 0; g < sizeof (grids) / sizeof (grids[0]); g += 2)
    for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
      for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++) {
        Case k = make_case (&grids[g], type, FILL_NOISE, 3, fields);

        check_mapped_parity (&k);
      }
}

/* Pixels that start at any address, as in a cropped buffer. */
TEST (test_unaligned_parity, "CUDA reads frames at any address")
{
  test_need_cuda ();
  for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
    for (uint32_t shift = 0; shift < 9; shift++) {
      Case k = make_case (&grids[7], type, FILL_NOISE, 0, 0);
      test_auto (TestImage) wide =
          test_image_new (type, k.config.width + 9, k.config.height, 1, shift);
      test_auto (TestImage) out = sh_output (&k.config, k.out_type, 0);
      size_t bytes = shift * imk_type_size (type);
      ImkShcentroid *s = sh_new (IMK_BACKEND_CUDA, &k.config);
      test_auto (ImkImage) on_device, to = test_to_device (&out);
      TestImage part, cpu;

      test_image_fill (&wide, FILL_NOISE, 255, shift);
      on_device = test_to_device (&wide);
      part = wide;
      part.image.data = (uint8_t *) wide.image.data + bytes;
      part.image.width = k.config.width;
      cpu = sh_run (IMK_BACKEND_CPU, &k.config, &part, k.out_type, 0);
      on_device.width = k.config.width;
      on_device.data = (uint8_t *) on_device.data + bytes;
      test_ok (
          imk_shcentroid_process (s, &on_device, &to, NULL, test_new_error ()));
      test_from_device (&to, &out);
      test_image_same (&cpu, &out, "unaligned");
      imk_shcentroid_free (s);
      on_device.data = (uint8_t *) on_device.data - bytes;
      test_image_free (&cpu);
    }
}

/* The same frames, lit and dark cells changing places, under every policy. */
TEST (test_policy_parity,
    "CPU and CUDA follow the same policies from frame to frame")
{
  test_need_cuda ();
  for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++) {
    Case k = make_case (&grids[7], IMK_TYPE_U8, FILL_NOISE, 3, 0);
    ImkShcentroid *cpu, *cuda;

    k.config.invalid_policy = policy;
    k.config.min_flux = 4100; /* about half of the cells */
    cpu = sh_new (IMK_BACKEND_CPU, &k.config);
    cuda = sh_new (IMK_BACKEND_CUDA, &k.config);
    for (uint64_t frame = 0; frame < 5; frame++) {
      test_auto (TestImage) in = case_frame (&k);
      test_auto (TestImage) a = sh_output (&k.config, k.out_type, 0);
      test_auto (TestImage) b = sh_output (&k.config, k.out_type, 0);
      test_auto (ImkImage) device_in, device_out = test_to_device (&b);

      test_image_fill (&in, FILL_NOISE, 255, frame);
      device_in = test_to_device (&in);
      if (frame == 3) {
        test_ok (imk_shcentroid_reset (cpu, NULL, test_new_error ()));
        test_ok (imk_shcentroid_reset (cuda, NULL, test_new_error ()));
      }
      sh_process (cpu, &in, &a);
      test_ok (imk_shcentroid_process (
          cuda, &device_in, &device_out, NULL, test_new_error ()));
      test_from_device (&device_out, &b);
      test_image_same (&a, &b, "policies");
    }
    imk_shcentroid_free (cpu);
    imk_shcentroid_free (cuda);
  }
}

/* One life of an object. Returns: whether it failed nowhere */
static bool
live (const Case *k, const ImkImage *in, ImkImage *out)
{
  ImkShcentroid *s = NULL;
  ImkError error = {0};
  ImkStatus status =
      imk_shcentroid_new (IMK_BACKEND_CUDA, &k->config, &s, &error);

  if (status == IMK_OK)
    status = imk_shcentroid_process (s, in, out, NULL, &error);
  if (status == IMK_OK)
    status = imk_shcentroid_reset (s, NULL, &error);
  if (status != IMK_OK)
    test_check (error.code == status && strstr (error.message, "CUDA says"),
        "a failure without its sentence: %s", error.message);
  imk_shcentroid_free (s);
  return status == IMK_OK;
}

TEST (test_failures, "every failing CUDA call is reported and survived")
{
  Case k = make_case (&grids[7], IMK_TYPE_U8, FILL_NOISE, 0, 0);
  test_auto (TestImage) in, out;
  test_auto (ImkImage) device_in, device_out;

  test_need_cuda ();
  in = case_frame (&k);
  out = sh_output (&k.config, k.out_type, 0);
  device_in = test_to_device (&in);
  device_out = test_to_device (&out);
  for (int forever = 0; forever < 2; forever++) {
    unsigned long nth = 1;

    for (bool passed = false; !passed && nth < 100; nth++) {
      imk_inject_failure (nth, forever);
      passed = live (&k, &device_in, &device_out);
      imk_inject_failure (0, false);
    }
    test_check (nth > 2 && nth < 100, "nothing failed, or everything");
  }
  check_parity (&k); /* the device is as good as before */
}

TEST (test_examples_on_cuda, "CUDA has the worked examples")
{
  test_need_cuda ();
  backend_of_examples = IMK_BACKEND_CUDA;
  test_plain_centroid ();
  test_variances ();
  test_thresholds ();
  test_dark_cell ();
  test_aotools ();
  test_edges ();
}
