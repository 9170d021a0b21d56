/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where cells are and what their slopes mean: the paper's grid rule, optics,
 * units, maps of every shape; the backends against each other and both against
 * sums made here. */
#include "sh-common.h"

#include <math.h>
#include <stdlib.h>

#include "imk/shcentroid-optics.h"

#define PI 3.14159265358979323846

static ImkShcentroidConfig
config_of (uint32_t width, uint32_t height)
{
  ImkShcentroidConfig c;

  imk_shcentroid_config_init (&c);
  c.width = width;
  c.height = height;
  c.type = IMK_TYPE_U16;
  return c;
}

static TestImage
noise_frame (uint32_t width, uint32_t height, uint64_t seed)
{
  TestImage in = test_image_new (IMK_TYPE_U16, width, height, 1, 10);

  test_image_fill (&in, FILL_NOISE, 65535, seed);
  return in;
}

static TestImage
run_cpu (const ImkShcentroidConfig *c, const TestImage *in)
{
  return sh_run (IMK_BACKEND_CPU, c, in, IMK_TYPE_F64, 0);
}

static void
check_parity (
    const ImkShcentroidConfig *c, const TestImage *in, const char *name)
{
  sh_check_parity (c, in, IMK_TYPE_F64, 0, 1, false, name);
}

/* --- the paper's rule ----------------------------------------------------- */

/* One row of cells, each with one bright column after the other: flux says
 * which columns it has. */
static void
check_rule (ImkShcentroidRule rule, double x0, double d, uint32_t n,
    const uint32_t (*expected)[2])
{
  ImkShcentroidConfig c = config_of (16, 1);

  c.x0 = x0;
  c.pitch_x = d;
  c.columns = n;
  c.grid_rule = rule;
  for (uint32_t x = 0; x < 16; x++) {
    test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, 16, 1, 1, 0), out;

    test_image_fill (&in, FILL_ZERO, 0, 0);
    ((uint16_t *) in.image.data)[x] = 7;
    out = run_cpu (&c, &in);
    for (uint32_t i = 0; i < n; i++) {
      double flux = x >= expected[i][0] && x < expected[i][1] ? 7 : 0;

      test_check (sh_get (&out, i, IMK_SHCENTROID_FLUX) == flux,
          "rule %d: pixel %u in cell %u: flux %g", rule, x, i,
          sh_get (&out, i, IMK_SHCENTROID_FLUX));
    }
  }
}

TEST (test_paper_rule,
    "the paper's grid rule leaves the pixels out that it leaves out")
{
  const uint32_t paper[][2] = {{0, 2}, {3, 5}, {5, 7}};
  const uint32_t single[][2] = {{0, 3}, {3, 5}, {5, 8}};
  const uint32_t whole[][2] = {{1, 4}, {4, 7}, {7, 10}, {10, 13}};

  check_rule (IMK_SHCENTROID_RULE_PAPER, 0.5, 2.5, 3, paper);
  check_rule (IMK_SHCENTROID_RULE_SINGLE_FLOOR, 0.5, 2.5, 3, single);
  check_rule (IMK_SHCENTROID_RULE_PAPER, 1, 3, 4, whole);
  check_rule (IMK_SHCENTROID_RULE_SINGLE_FLOOR, 1, 3, 4, whole);
}

TEST (test_paper_parity, "CPU and CUDA agree under the paper's grid rule")
{
  test_need_cuda ();
  for (uint32_t k = 0; k < 6; k++) {
    ImkShcentroidConfig c = config_of (203, 117);
    test_auto (TestImage) in = noise_frame (203, 117, 3 + k);

    c.x0 = 0.4 + k;
    c.y0 = 1.7;
    c.pitch_x = 2.5 + 3.3 * k;
    c.pitch_y = 2.9 + 5.1 * k;
    c.columns = (uint32_t) (195 / c.pitch_x);
    c.rows = (uint32_t) (113 / c.pitch_y);
    c.grid_rule = IMK_SHCENTROID_RULE_PAPER;
    check_parity (&c, &in, "paper rule");
  }
}

/* --- maps ----------------------------------------------------------------- */

enum { MAP_ROTATED, MAP_HEXAGONAL, MAP_TINY, MAP_OVERLAPPING, N_MAPS };

#define MAX_CELLS 4096

static void
add_cell (ImkShcentroidConfig *c, ImkShcentroidCell *cells, double x, double y,
    double width, double height)
{
  if (c->n_cells < MAX_CELLS && x + width > 1 && y + height > 1 &&
      x < c->width - 1 && y < c->height - 1)
    cells[c->n_cells++] =
        (ImkShcentroidCell){x, y, width, height, NAN, NAN, NAN, NAN};
}

static void
make_map (int which, ImkShcentroidConfig *c, ImkShcentroidCell *cells)
{
  double angle = 13.7 * PI / 180, p = 14.3;

  c->n_cells = 0;
  c->cells = cells;
  for (int j = -16; j <= 16; j++)
    for (int i = -16; i <= 16; i++)
      switch (which) {
      case MAP_ROTATED:
        add_cell (c, cells, 75 + p * (i * cos (angle) - j * sin (angle)),
            55 + p * (i * sin (angle) + j * cos (angle)), p, p);
        break;
      case MAP_HEXAGONAL:
        add_cell (c, cells, 70 + p * (i + 0.5 * (j & 1)),
            50 + p * j * sqrt (0.75), p, p * sqrt (0.75));
        break;
      case MAP_TINY:
        add_cell (c, cells, 66 + 2 * i, 44 + 2 * j, 2, 2);
        break;
      default: /* from 1x1 to the whole frame, and beyond */
        add_cell (c, cells, 3.5 * i, 2.25 * j, 1 + 16.5 * (i + 16) / 2,
            1 + 10.25 * (j + 16) / 2);
      }
  if (which == MAP_OVERLAPPING) {
    add_cell (c, cells, 0, 0, c->width, c->height);
    add_cell (c, cells, -5, -5, c->width + 9, c->height + 9);
  }
}

/* Sums pixel by pixel, in absolute coordinates. */
static void
check_cell (const ImkShcentroidConfig *c, const TestImage *in,
    const TestImage *out, uint32_t i)
{
  const ImkShcentroidCell *cell = &c->cells[i];
  double sum = 0, mx = 0, my = 0;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++)
      if (x >= floor (cell->x) && x < floor (cell->x + cell->width) &&
          y >= floor (cell->y) && y < floor (cell->y + cell->height)) {
        sum += sh_sample (in, x, y);
        mx += sh_sample (in, x, y) * x;
        my += sh_sample (in, x, y) * y;
      }
  test_check (sh_get (out, i, IMK_SHCENTROID_FLUX) == sum &&
                  fabs (sh_get (out, i, IMK_SHCENTROID_X) - mx / sum) < 1e-9 &&
                  fabs (sh_get (out, i, IMK_SHCENTROID_Y) - my / sum) < 1e-9,
      "cell %u: (%g, %g) of %g, not (%g, %g) of %g", i,
      sh_get (out, i, IMK_SHCENTROID_X), sh_get (out, i, IMK_SHCENTROID_Y),
      sh_get (out, i, IMK_SHCENTROID_FLUX), mx / sum, my / sum, sum);
}

TEST (test_maps, "rotated, hexagonal, tiny and overlapping cells are summed up")
{
  test_autofree ImkShcentroidCell *cells = calloc (MAX_CELLS, sizeof (*cells));

  for (int which = 0; which < N_MAPS; which++) {
    ImkShcentroidConfig c = config_of (133, 97);
    test_auto (TestImage) in = noise_frame (133, 97, 20 + which), out;

    make_map (which, &c, cells);
    test_check (c.n_cells >= 60, "map %d has %u cells", which, c.n_cells);
    out = run_cpu (&c, &in);
    for (uint32_t i = 0; i < c.n_cells; i++)
      check_cell (&c, &in, &out, i);
  }
}

TEST (test_map_parity, "CPU and CUDA agree on all these maps")
{
  test_autofree ImkShcentroidCell *cells = NULL;

  test_need_cuda ();
  cells = calloc (MAX_CELLS, sizeof (*cells));
  for (int which = 0; which < N_MAPS; which++) {
    ImkShcentroidConfig c = config_of (133, 97);
    test_auto (TestImage) in = noise_frame (133, 97, 20 + which);

    make_map (which, &c, cells);
    c.slope_scale = 2.5e-4;
    check_parity (&c, &in, "map");
  }
}

/* --- units and optics ----------------------------------------------------- */

TEST (test_slope_scale, "the slopes are scaled, and nothing else")
{
  ImkShcentroidConfig c = config_of (60, 40);
  test_auto (TestImage) in = noise_frame (60, 40, 5), px, rad, slopes;

  c.columns = 6;
  c.rows = 4;
  c.pitch_x = c.pitch_y = 10;
  px = run_cpu (&c, &in);
  c.slope_scale = -1.25e-4;
  rad = run_cpu (&c, &in);
  c.fields = IMK_SHCENTROID_FIELDS_SLOPES;
  slopes = run_cpu (&c, &in);
  for (uint32_t i = 0; i < 24; i++)
    for (uint32_t field = 0; field < N_FIELDS; field++) {
      bool slope = field == IMK_SHCENTROID_DX || field == IMK_SHCENTROID_DY;
      double expected = sh_get (&px, i, field) * (slope ? c.slope_scale : 1);

      test_check (sh_get (&rad, i, field) == expected,
          "cell %u field %u: %g, not %g", i, field, sh_get (&rad, i, field),
          expected);
      if (slope)
        test_check (sh_get (&slopes, 0,
                        (field == IMK_SHCENTROID_DY) * 24 + i) == expected,
            "the vector has another slope of cell %u", i);
    }
}

/* The lenslets of the lamp frame: 600 um, 20 um pixels, f = 40 mm. */
TEST (test_optics, "optics give the grid of equations 1, 2 and 5")
{
  ImkShcentroidOptics o = {9.6, 600, 20, 40};
  ImkShcentroidConfig c = config_of (512, 500);
  double scale = 0;

  test_ok (imk_shcentroid_optics_grid (&o, &c, test_new_error ()));
  test_check (c.columns == 16 && c.rows == 16 && c.pitch_x == 30 &&
                  c.pitch_y == 30 && c.x0 == 16 && c.y0 == 10,
      "%u x %u cells of %g x %g from (%g, %g)", c.columns, c.rows, c.pitch_x,
      c.pitch_y, c.x0, c.y0);
  test_ok (imk_shcentroid_optics_slope (&o, &scale, test_new_error ()));
  test_check (fabs (scale - 0.5e-3) < 1e-18, "%g radians a pixel", scale);

  c = config_of (100, 100);
  c.x0 = 1.5;
  c.y0 = -2;
  o = (ImkShcentroidOptics){1.0, 150, 7.4, 0}; /* eq. 1 floors 6.67 */
  test_ok (imk_shcentroid_optics_grid (&o, &c, test_new_error ()));
  test_check (c.columns == 6 && fabs (c.pitch_x - 150 / 7.4) < 1e-12 &&
                  fabs (c.x0 - (50 - 3 * 150 / 7.4 + 1.5)) < 1e-9 &&
                  fabs (c.y0 - (50 - 3 * 150 / 7.4 - 2)) < 1e-9,
      "%u cells of %g from (%g, %g)", c.columns, c.pitch_x, c.x0, c.y0);
  c = config_of (3000, 3000);
  for (uint32_t n = 1; n <= 200; n++) { /* 0.3 mm n times: no cell is lost */
    o = (ImkShcentroidOptics){0.3 * n, 300, 20, 0};
    test_ok (imk_shcentroid_optics_grid (&o, &c, test_new_error ()));
    test_check (c.columns == n, "%u lenslets are %u columns", n, c.columns);
  }
}

TEST (test_bad_optics, "impossible optics are refused with their numbers")
{
  const ImkShcentroidOptics bad[] = {{9.6, 0, 20, 40}, {9.6, 600, 0, 40},
      {NAN, 600, 20, 40}, {9.6, INFINITY, 20, 40}, {0.5, 600, 20, 40},
      {1e6, 1, 20, 40}};
  ImkShcentroidConfig c = config_of (64, 64), before = c;
  double scale = 77;

  for (size_t k = 0; k < sizeof (bad) / sizeof (bad[0]); k++) {
    test_error (imk_shcentroid_optics_grid (&bad[k], &c, test_new_error ()),
        IMK_ERROR_CONFIG, "lenslet-pitch");
    test_check (c.columns == before.columns && c.x0 == before.x0,
        "the configuration was touched");
  }
  test_error (
      imk_shcentroid_optics_grid (
          &(ImkShcentroidOptics){9.6, 600, 20, 0}, &c, test_new_error ()),
      IMK_ERROR_CONFIG,
      "An aperture of 9.6 mm is 480 pixels of pixel-size 20 um across");
  test_check (c.columns == before.columns, "the configuration was touched");
  c.width = c.height =
      421; /* of 16 cells of 30 pixels the outer ones reach in */
  test_ok (imk_shcentroid_optics_grid (
      &(ImkShcentroidOptics){9.6, 600, 20, 0}, &c, test_new_error ()));
  test_error (
      imk_shcentroid_optics_slope (
          &(ImkShcentroidOptics){9.6, 600, 20, 0}, &scale, test_new_error ()),
      IMK_ERROR_CONFIG, "focal-length (0 mm)");
  test_check (scale == 77, "the scale was touched");
}

TEST (test_bad_config, "bad rules and scales are refused")
{
  const double scales[] = {0, NAN, INFINITY};
  ImkShcentroidConfig c = config_of (8, 8);
  ImkShcentroid *s = NULL;

  c.grid_rule = 2;
  test_error (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "grid-rule is 2");
  c.grid_rule = IMK_SHCENTROID_RULE_PAPER;
  for (int k = 0; k < 3; k++) {
    c.slope_scale = scales[k];
    test_error (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
        IMK_ERROR_CONFIG, "other than 0");
  }
}
