/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Correlation with a template, against the reference, scenes whose shift is
 * known, simulated noise, and the backends against each other. */
#include "sh-common.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shcentroid/shcentroid-reference.h"

/* --- helpers -------------------------------------------------------------- */

/* A scene that goes on for ever, like granulation: waves of many directions
 * and of about @grain pixels, at any point exactly known. */
enum { N_WAVES = 60 };

typedef struct Scene {
  double kx[N_WAVES], ky[N_WAVES], phase[N_WAVES];
} Scene;

static Scene
scene_new (double grain, uint64_t seed)
{
  Scene s;

  for (int i = 0; i < N_WAVES; i++) {
    double angle = 2 * M_PI * sh_uniform (&seed);
    double k = 2 * M_PI / grain * (0.5 + sh_uniform (&seed));

    s.kx[i] = k * cos (angle);
    s.ky[i] = k * sin (angle);
    s.phase[i] = 2 * M_PI * sh_uniform (&seed);
  }
  return s;
}

/* Mean 0, rms 1. */
static double
scene_at (const Scene *s, double x, double y)
{
  double sum = 0;

  for (int i = 0; i < N_WAVES; i++)
    sum += cos (s->kx[i] * x + s->ky[i] * y + s->phase[i]);
  return sum / sqrt (N_WAVES / 2.0);
}

static double
gaussian (double x, double y, double sigma)
{
  return exp (-(x * x + y * y) / (2 * sigma * sigma));
}

static ImkShcentroidConfig
grid_config (ImkType type, uint32_t columns, uint32_t rows, double pitch_x,
    double pitch_y)
{
  ImkShcentroidConfig c = sh_grid (type, (uint32_t) ceil (columns * pitch_x),
      (uint32_t) ceil (rows * pitch_y), 0, 0, pitch_x, pitch_y, columns, rows);

  c.estimator = IMK_SHCENTROID_ESTIMATOR_CORRELATION;
  return c;
}

static uint32_t
padding_of (const ImkShcentroidConfig *c)
{
  return c->fields == IMK_SHCENTROID_FIELDS_ALL  ? 3
         : c->fields == IMK_SHCENTROID_FIELDS_XY ? 5
                                                 : 0;
}

static TestImage
run_on (ImkBackend backend, const ImkShcentroidConfig *c, const TestImage *in)
{
  return sh_run (backend, c, in, IMK_TYPE_F64, padding_of (c));
}

static TestImage
run_cpu (const ImkShcentroidConfig *c, const TestImage *in)
{
  return run_on (IMK_BACKEND_CPU, c, in);
}

static void
check_relative (double value, double expected, double tolerance,
    const char *what, uint32_t cell)
{
  test_check (fabs (value - expected) <= tolerance * (1e-6 + fabs (expected)),
      "%s of cell %u is %.9g, expected %.9g", what, cell, value, expected);
}

/* Fields of a cell; where two shifts are as good as equal either will do. */
static void
check_expected (const ImkShcentroidConfig *c, const TestImage *out,
    uint32_t cell, const ImkShcentroidReferenceMatch *e)
{
  uint32_t flags = (uint32_t) sh_get (out, cell, IMK_SHCENTROID_FLAGS);
  bool found = !(flags & IMK_SHCENTROID_NO_MATCH);

  check_relative (
      sh_get (out, cell, IMK_SHCENTROID_FLUX), e->flux, 1e-6, "flux", cell);
  if (fabs (e->second - 1) < 1e-6 || fabs (e->second + 1) < 1e-6)
    return;
  test_check (
      found == e->found, "cell %u is %sfound", cell, found ? "" : "not ");
  if (!found)
    return;
  sh_near (out, cell, IMK_SHCENTROID_X, e->x, 2e-4);
  sh_near (out, cell, IMK_SHCENTROID_Y, e->y, 2e-4);
  if (isnan (e->var_x))
    return;
  check_relative (
      sh_get (out, cell, IMK_SHCENTROID_VAR_X), e->var_x, 5e-3, "var_x", cell);
  check_relative (
      sh_get (out, cell, IMK_SHCENTROID_VAR_Y), e->var_y, 5e-3, "var_y", cell);
}

/* --- cases: what is measured, against what, and how ----------------------- */

enum { MOST_PIXELS = 160 * 160 };

typedef struct Case {
  ImkShcentroidConfig config;
  char name[200];
  float *dark, *flat, *templates;
  uint8_t *bad;
  TestImage in;
} Case;

typedef struct Shape {
  uint32_t columns, rows;
  double pitch_x, pitch_y, x0;
  uint32_t template_width, template_height, range;
} Shape;

static const Shape shapes[] = {
    {5, 4, 20, 20, 0, 12, 12, 4}, /* every shift inside */
    {5, 4, 20, 20, 0, 20, 20, 4}, /* the whole cell */
    {4, 5, 13.4, 11.7, 2.3, 9, 10, 3},
    {3, 3, 31, 17, -4, 20, 9, 9},  /* clipped; wide shifts */
    {2, 1, 70, 40, 0, 40, 33, 20}, /* wider than vectors and warps */
    {6, 6, 8, 8, 0, 5, 6, 4},
    {4, 4, 3, 3, 0, 2, 2, 1},
};
enum { N_SHAPES = sizeof (shapes) / sizeof (shapes[0]), WIDE = 4 };

/* How a template is come by. */
enum { ONE, ONE_OF_A_CELL, EACH, OF_THE_FRAME, N_SOURCES };

/* What else is asked for. */
enum {
  PLAIN,
  CALIBRATED,
  THRESHOLD,
  RELATIVE,
  WEIGHT,
  POWER,
  COMBINED,
  N_OPTIONS,
};

static void
set_option (Case *k, int option)
{
  ImkShcentroidConfig *c = &k->config;
  uint64_t seed = 11;
  bool all = option == COMBINED;

  c->gain = 2;
  c->read_noise = 3;
  if (option == CALIBRATED || all) {
    for (int i = 0; i < MOST_PIXELS; i++) {
      k->dark[i] = (float) (5 * sh_uniform (&seed));
      k->flat[i] = (float) (0.8 + 0.4 * sh_uniform (&seed));
      k->bad[i] = test_random (&seed) % 40 == 0;
      if (test_random (&seed) % 40 == 0)
        k->flat[i] = 0;
    }
    c->dark = k->dark;
    c->flat = k->flat;
    c->bad = k->bad;
  }
  if (option == THRESHOLD) {
    c->threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
    c->threshold = 90.5;
  }
  if (option == RELATIVE || all) {
    c->threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE;
    c->threshold = 0.4;
  }
  if (option == WEIGHT || all) {
    c->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
    c->sigma = c->pitch_x / 2;
  }
  if (option == POWER || all)
    c->power = 1.5;
}

/* The scene in each cell, moved by up to two pixels, and noise. */
static void
draw_cells (Case *k, double reach, double noise)
{
  const ImkShcentroidConfig *c = &k->config;
  Scene scene = scene_new (6, 5);
  double scale = c->type == IMK_TYPE_U16 ? 100 : 1;
  uint64_t seed = 3;

  for (uint32_t i = 0; c->type == IMK_TYPE_F32 && i < c->width * c->height; i++)
    sh_set (&k->in, i % c->width, i / c->width, 100 * sh_uniform (&seed));
  if (c->type != IMK_TYPE_F32)
    test_image_fill (&k->in, FILL_NOISE, 100, 9);
  for (uint32_t i = 0; i < imk_shcentroid_n_cells (c); i++) {
    ImkShcentroidCell cell = imk_shcentroid_cell (c, i);
    double sx = reach * (2 * sh_uniform (&seed) - 1);
    double sy = reach * (2 * sh_uniform (&seed) - 1);

    for (uint32_t y = (uint32_t) cell.y; y < cell.y + cell.height; y++)
      for (uint32_t x = (uint32_t) cell.x; x < cell.x + cell.width; x++)
        sh_set (&k->in, x, y,
            scale * (110 +
                        30 * scene_at (&scene, x - cell.ref_x - sx,
                                 y - cell.ref_y - sy) +
                        noise * sh_normal (&seed)));
  }
}

static void
set_templates (Case *k, const Shape *shape, int source)
{
  ImkShcentroidConfig *c = &k->config;
  uint32_t w = shape->template_width, h = shape->template_height;
  Scene scene = scene_new (6, 5);
  uint64_t seed = 31;

  c->template_cell = source == ONE || source == EACH ? -1 : 1;
  if (source == OF_THE_FRAME) {
    uint32_t least = (uint32_t) fmin (c->pitch_x, c->pitch_y);

    c->template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
    c->template_margin = least > 6 ? 2 : 0;
    return;
  }
  c->n_templates = source == EACH ? imk_shcentroid_n_cells (c) : 1;
  c->template_width = w;
  c->template_height = h;
  k->templates = malloc (c->n_templates * w * h * sizeof (float));
  for (uint32_t i = 0; i < c->n_templates * w * h; i++)
    k->templates[i] = (float) (50 +
                               20 * scene_at (&scene, i % w - (w - 1) / 2.0,
                                        i / w % h - (h - 1) / 2.0) +
                               sh_normal (&seed));
  c->templates = k->templates;
}

static void
case_new (Case *k, int shape_index, ImkType type, int source, int option)
{
  const Shape *shape = &shapes[shape_index];

  *k = (Case){.config = grid_config (type, shape->columns, shape->rows,
                  shape->pitch_x, shape->pitch_y)};
  k->config.x0 = shape->x0;
  k->config.search_range = shape->range;
  k->config.min_correlation = 0.3;
  k->dark = calloc (MOST_PIXELS, sizeof (float));
  k->flat = calloc (MOST_PIXELS, sizeof (float));
  k->bad = calloc (MOST_PIXELS, 1);
  k->in = test_image_new (type, k->config.width, k->config.height, 1, 6);
  set_templates (k, shape, source);
  set_option (k, option);
  draw_cells (k, fmin (2, shape->range / 2.0), 3);
}

static void
case_free (Case *k)
{
  free (k->dark);
  free (k->flat);
  free (k->bad);
  free (k->templates);
  test_image_free (&k->in);
}

TEST_DEFINE_AUTO (Case, case_free)

static void
check_case (Case *k)
{
  test_auto (TestImage) out = run_cpu (&k->config, &k->in);
  uint32_t n_found = 0, n = imk_shcentroid_n_cells (&k->config);

  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidReferenceMatch e =
        imk_shcentroid_reference_match (&k->config, &k->in.image, i);

    check_expected (&k->config, &out, i, &e);
    n_found += e.found;
  }
  /* a difference needs a template as bright as the cell, and a range of 1
   * shifts none but by less than a pixel */
  test_check (
      n_found > 0 || k->config.search_range == 1 ||
          k->config.correlation == IMK_SHCENTROID_CORRELATION_DIFFERENCE,
      "%s: nothing is found", k->name);
}

/* Everything with everything would take minutes: each shape with each way to a
 * template and each option, the methods and types in turn. */
static void
visit_case (void (*visit) (Case *k), int shape, int source, int option,
    int turn, ImkType type)
{
  test_auto (Case) k;

  case_new (&k, shape, type, source, option);
  k.config.correlation = turn % 3;
  k.config.peak_fit = turn / 3 % 2;
  snprintf (k.name, sizeof (k.name),
      "%s, shape %d, source %d, option %d, correlation %d, fit %d",
      imk_type_name (type), shape, source, option, (int) k.config.correlation,
      (int) k.config.peak_fit);
  printf ("# %s\n", k.name);
  visit (&k);
}

static void
for_each_case (void (*visit) (Case *k))
{
  int turn = 0;

  for (int shape = 0; shape < N_SHAPES; shape++)
    for (int source = 0; source < N_SOURCES; source++)
      for (int option = 0; option < N_OPTIONS; option++, turn++) {
        if (!test_takes_case (TEST_SANITIZED ? 4 : 1))
          continue;
        visit_case (visit, shape, source, option, turn,
            turn & 1 ? IMK_TYPE_U16 : IMK_TYPE_U8);
        if (turn % 4 == 1)
          visit_case (visit, shape, source, option, turn, IMK_TYPE_F32);
      }
}

TEST (test_reference, "cells are what a reference in float64 finds",
    .cpu_only = true)
{
  for_each_case (check_case);
}

/* A sample of cell @cell that is not finite. */
static TestImage
spoilt (const Case *k, uint32_t cell)
{
  ImkShcentroidCell c = imk_shcentroid_cell (&k->config, cell);
  const TestImage *in = &k->in;
  TestImage copy =
      test_image_new (in->image.type, in->image.width, in->image.height, 1, 6);

  for (uint32_t y = 0; y < in->image.height; y++)
    for (uint32_t x = 0; x < in->image.width; x++)
      sh_set (&copy, x, y, sh_sample (in, x, y));
  sh_set (&copy, (uint32_t) (c.x + c.width / 2),
      (uint32_t) (c.y + c.height / 2), cell % 2 ? NAN : -INFINITY);
  return copy;
}

/* It is its own cell that it spoils; also where that is the template of all. */
static void
check_spoilt (Case *k)
{
  bool live = k->config.template_source == IMK_SHCENTROID_TEMPLATE_FRAME;
  uint32_t n = imk_shcentroid_n_cells (&k->config), n_found = 0;
  TestImage good, in, out;

  if (k->config.type != IMK_TYPE_F32)
    return;
  k->config.bad = NULL;
  k->config.flat = NULL;
  good = run_cpu (&k->config, &k->in);
  for (uint32_t spoiled = 0; spoiled < 2; spoiled++) {
    in = spoilt (k, spoiled);
    out = run_cpu (&k->config, &in);
    for (uint32_t i = 0; i < n; i++) {
      uint32_t flags = (uint32_t) sh_get (&out, i, IMK_SHCENTROID_FLAGS);

      test_check (!!(flags & IMK_SHCENTROID_NOT_FINITE) == (i == spoiled),
          "%s: cell %u has flags %u", k->name, i, flags);
      n_found += i != spoiled && !(flags & IMK_SHCENTROID_INVALID_MASK);
      for (uint32_t f = 0; f < IMK_SHCENTROID_N_FIELDS; f++) {
        double value = sh_get (&out, i, f);

        test_check (isfinite (value), "%s: cell %u field %u is %g", k->name, i,
            f, value);
        if (i != spoiled && !(live && spoiled == 1))
          sh_near (&out, i, f, sh_get (&good, i, f), 0);
      }
      if (i == spoiled)
        sh_near (&out, i, IMK_SHCENTROID_DX, 0, 0);
    }
    test_image_free (&in);
    test_image_free (&out);
  }
  test_check (
      n_found > 0 || k->config.search_range == 1 ||
          k->config.correlation == IMK_SHCENTROID_CORRELATION_DIFFERENCE,
      "%s: nothing is found", k->name);
  test_image_free (&good);
}

TEST (test_not_finite,
    "a sample that is not finite spoils its cell and no other",
    .cpu_only = true)
{
  for_each_case (check_spoilt);
}

/* --- scenes --------------------------------------------------------------- */

/* Scenes of what the solar field calls granulation, in cells of 20 pixels: the
 * whole cell is the template, shifts up to 3 pixels. 0.05 pixel is what the
 * interpolation may leave. */
static void
check_scene (ImkBackend backend, ImkShcentroidCorrelation how, double rms_bound,
    double worst_bound)
{
  enum { CELL = 20, N = 12 };
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, N, N, CELL, CELL);
  static float templates[N * N * CELL * CELL];
  static double shifts[2 * N * N];
  test_auto (TestImage) in =
      test_image_new (IMK_TYPE_U16, c.width, c.height, 1, 0),
                        out;
  uint64_t seed = 17;
  double square = 0, worst = 0;

  for (uint32_t i = 0; i < N * N; i++) {
    Scene scene = scene_new (7, i + 1);
    double sx = 6 * sh_uniform (&seed) - 3, sy = 6 * sh_uniform (&seed) - 3;

    shifts[2 * i] = sx;
    shifts[2 * i + 1] = sy;
    for (uint32_t k = 0; k < CELL * CELL; k++) {
      double x = k % CELL - 9.5, y = k / CELL - 9.5;

      templates[i * CELL * CELL + k] =
          (float) (20000 + 1000 * scene_at (&scene, x, y));
      sh_set (&in, i % N * CELL + k % CELL, i / N * CELL + k / CELL,
          20000 + 1000 * scene_at (&scene, x - sx, y - sy));
    }
  }
  c.templates = templates;
  c.n_templates = N * N;
  c.template_width = c.template_height = CELL;
  c.correlation = how;
  out = run_on (backend, &c, &in);
  for (uint32_t i = 0; i < N * N; i++) {
    sh_near (&out, i, IMK_SHCENTROID_FLAGS, 0, 0);
    for (int k = 0; k < 2; k++) {
      double d = sh_get (&out, i, IMK_SHCENTROID_DX + k) - shifts[2 * i + k];

      square += d * d;
      worst = fmax (worst, fabs (d));
    }
  }
  square = sqrt (square / (2 * N * N));
  test_check (square < rms_bound && worst < worst_bound,
      "correlation %d: rms %.4f, worst %.4f pixel", (int) how, square, worst);
  printf ("# correlation %d: rms %.4f, worst %.4f pixel\n", (int) how, square,
      worst);
}

static void
find_scene (ImkBackend backend)
{
  check_scene (backend, IMK_SHCENTROID_CORRELATION_NORMALISED, 0.02, 0.065);
  check_scene (backend, IMK_SHCENTROID_CORRELATION_DIFFERENCE, 0.02, 0.065);
}

TEST (test_scene, "a scene that goes on is found to 0.05 pixel")
{
  find_scene (IMK_BACKEND_CPU);
}

TEST (test_scene_on_cuda, "the scene to 0.05 pixel on CUDA")
{
  test_need_cuda ();
  find_scene (IMK_BACKEND_CUDA);
}

/* Example D, daoTools: a scene that moves by (3, -2) is found there. */
static void
find_whole_shift (ImkBackend backend)
{
  enum { CELL = 24, TEMPLATE = 14 };
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 1, 1, CELL, CELL);
  Scene scene = scene_new (6, 2);
  float pattern[TEMPLATE * TEMPLATE];
  TestImage in = test_image_new (IMK_TYPE_U16, CELL, CELL, 1, 0), out;

  for (int i = 0; i < TEMPLATE * TEMPLATE; i++)
    pattern[i] = (float) floor (
        1000 + 200 * scene_at (&scene, i % TEMPLATE, i / TEMPLATE));
  for (int i = 0; i < CELL * CELL; i++)
    sh_set (&in, i % CELL, i / CELL,
        floor (1000 +
               200 * scene_at (&scene, i % CELL - 5 - 3, i / CELL - 5 + 2)));
  c.templates = pattern;
  c.n_templates = 1;
  c.template_width = c.template_height = TEMPLATE;
  for (int how = 0; how <= IMK_SHCENTROID_CORRELATION_DIFFERENCE; how++) {
    c.correlation = how;
    out = run_on (backend, &c, &in);
    sh_near (&out, 0, IMK_SHCENTROID_FLAGS, 0, 0);
    /* covariance sees what is brighter beside it, too */
    sh_near (&out, 0, IMK_SHCENTROID_DX, 3, how == 1 ? 0.3 : 0.05);
    sh_near (&out, 0, IMK_SHCENTROID_DY, -2, how == 1 ? 0.3 : 0.05);
    test_image_free (&out);
  }
  test_image_free (&in);
}

TEST (test_whole_shift, "example D: a scene moved by (3, -2)")
{
  find_whole_shift (IMK_BACKEND_CPU);
}

TEST (test_whole_shift_on_cuda, "example D on CUDA")
{
  test_need_cuda ();
  find_whole_shift (IMK_BACKEND_CUDA);
}

/* When the frame moves by a pixel, so does what is found in it, and the window
 * of a tracked cell: the same pixels are under the template. */
TEST (test_shift_law, "a frame that moves by a pixel moves the result by one")
{
  Case k;
  TestImage before, after, moved;
  uint32_t n;

  case_new (&k, 0, IMK_TYPE_U16, ONE, PLAIN);
  k.config.search_range = 4;
  n = imk_shcentroid_n_cells (&k.config);
  moved = test_image_new (IMK_TYPE_U16, k.config.width, k.config.height, 1, 0);
  for (uint32_t y = 0; y < k.config.height; y++)
    for (uint32_t x = 0; x < k.config.width; x++)
      sh_set (&moved, x, y,
          sh_sample (
              &k.in, x ? x - 1 : 0, y + 1 < k.config.height ? y + 1 : y));
  before = run_cpu (&k.config, &k.in);
  after = run_cpu (&k.config, &moved);
  for (uint32_t i = 0; i < n; i++) {
    double x = sh_get (&before, i, IMK_SHCENTROID_DX);
    double y = sh_get (&before, i, IMK_SHCENTROID_DY);

    if (x > 2.4 || y < -2.4) /* would leave the range */
      continue;
    sh_near (&after, i, IMK_SHCENTROID_DX, x + 1, 1e-4);
    sh_near (&after, i, IMK_SHCENTROID_DY, y - 1, 1e-4);
  }
  test_image_free (&before);
  test_image_free (&after);
  test_image_free (&moved);
  case_free (&k);
}

/* The cell of the template has no slope, whatever the frame and wherever its
 * centre is between the pixels; the frame as its own template gives what the
 * same pixels in a file give. */
TEST (test_template_of_the_frame, "the cell of the template has no slope")
{
  for (int shape = 0; shape < 3; shape++) {
    test_auto (TestImage) live, stored;
    uint32_t n;
    test_auto (Case) k;

    case_new (&k, shape, IMK_TYPE_U16, OF_THE_FRAME, PLAIN);
    n = imk_shcentroid_n_cells (&k.config);
    live = run_cpu (&k.config, &k.in);
    sh_near (&live, 1, IMK_SHCENTROID_DX, 0, 0.02);
    sh_near (&live, 1, IMK_SHCENTROID_DY, 0, 0.02);
    k.config.template_width =
        (uint32_t) k.config.pitch_x - 2 * k.config.template_margin;
    k.config.template_height =
        (uint32_t) k.config.pitch_y - 2 * k.config.template_margin;
    k.templates = malloc ((size_t) k.config.template_width *
                          k.config.template_height * sizeof (float));
    imk_shcentroid_reference_template (&k.config, &k.in.image, 1, k.templates);
    k.config.templates = k.templates;
    k.config.n_templates = 1;
    k.config.template_source = IMK_SHCENTROID_TEMPLATE_STORED;
    stored = run_cpu (&k.config, &k.in);
    test_image_same (&live, &stored, "the template as a file");
    test_check (n > 1, "there is but one cell");
  }
}

/* Products that float32 does not hold are no match, and no slope either. */
TEST (test_beyond_float32, "products beyond float32 are no match")
{
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 3, 3, 20, 20);

  c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  c.template_cell = 4;
  for (uint64_t seed = 1; seed <= 9; seed++)
    for (int how = 0; how <= IMK_SHCENTROID_CORRELATION_DIFFERENCE; how++)
      for (int power = 2; power <= 4; power += 2) {
        test_auto (TestImage) in =
            test_image_new (IMK_TYPE_U16, c.width, c.height, 1, 0);
        test_auto (TestImage) out;

        test_image_fill (&in, FILL_NOISE, 65535, seed);
        c.power = power;
        c.correlation = how;
        out = run_cpu (&c, &in);
        sh_near (&out, 4, IMK_SHCENTROID_FLAGS,
            power == 2 ? 0 : IMK_SHCENTROID_NO_MATCH, 0);
        sh_near (&out, 4, IMK_SHCENTROID_DX, 0, power == 2 ? 0.1 : 0);
        sh_near (&out, 4, IMK_SHCENTROID_DY, 0, power == 2 ? 0.1 : 0);
      }
}

/* Pixels that float32 does not hold once they are powered. */
TEST (test_flux_beyond_float32, "a flux beyond float32 is its largest number")
{
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 3, 3, 20, 20);
  test_auto (TestImage) in =
      test_image_new (IMK_TYPE_U16, c.width, c.height, 1, 0),
                        out;
  float flat[60 * 60];

  for (int i = 0; i < 60 * 60; i++)
    flat[i] = 1e6f;
  c.flat = flat;
  c.power = 4;
  c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  c.template_cell = 4;
  test_image_fill (&in, FILL_NOISE, 65535, 7);
  out = run_cpu (&c, &in);
  for (uint32_t cell = 0; cell < 9; cell++) {
    for (uint32_t field = 0; field < N_FIELDS; field++)
      test_check (isfinite (sh_get (&out, cell, field)),
          "cell %u field %u is %g", cell, field, sh_get (&out, cell, field));
    sh_near (&out, cell, IMK_SHCENTROID_FLUX, FLT_MAX, 0);
    sh_near (&out, cell, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_NO_MATCH, 0);
  }
}

/* A spot that wanders out of its cell is followed by its window. */
TEST (test_tracking, "a window follows its template")
{
  enum { SIZE = 80, CELL = 20 };
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 4, 4, CELL, CELL);
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, SIZE, SIZE, 1, 0),
                        out;
  float pattern[11 * 11];
  test_autoptr (ImkShcentroid) s = NULL;

  for (int i = 0; i < 11 * 11; i++)
    pattern[i] = (float) gaussian (i % 11 - 5, i / 11 - 5, 2);
  c.templates = pattern;
  c.n_templates = 1;
  c.template_width = c.template_height = 11;
  c.window = IMK_SHCENTROID_WINDOW_TRACKING;
  out = sh_output (&c, IMK_TYPE_F64, padding_of (&c));
  s = sh_new (IMK_BACKEND_CPU, &c);
  for (int frame = 0; frame <= 30; frame++) {
    double x0 = 29.5 + frame, y0 = 29.5 + 0.4 * frame;

    for (int i = 0; i < SIZE * SIZE; i++)
      sh_set (&in, i % SIZE, i / SIZE,
          100 + 5000 * gaussian (i % SIZE - x0, i / SIZE - y0, 2));
    sh_process (s, &in, &out);
    sh_near (&out, 5, IMK_SHCENTROID_X, x0, 0.03);
    sh_near (&out, 5, IMK_SHCENTROID_Y, y0, 0.03);
    sh_near (&out, 5, IMK_SHCENTROID_FLAGS, 0, 0);
  }
  sh_near (&out, 5, IMK_SHCENTROID_DX, 30, 0.03);
}

/* --- what cannot be measured ---------------------------------------------- */

/* Cell 0 is dark, 1 constant, 2 has its spot beyond the range, 3 noise alone, 4
 * is saturated all over, 5 all bad, 6 a good spot with a dead pixel on it. */
TEST (test_nothing_to_find, "what is not there is flagged, and no slope")
{
  enum { CELL = 16, N = 7 };
  static const uint32_t flags[N] = {
      IMK_SHCENTROID_NO_FLUX | IMK_SHCENTROID_NO_MATCH,
      IMK_SHCENTROID_NO_MATCH,
      IMK_SHCENTROID_NO_MATCH,
      IMK_SHCENTROID_NO_MATCH,
      IMK_SHCENTROID_NO_MATCH | IMK_SHCENTROID_SATURATED,
      IMK_SHCENTROID_NO_FLUX | IMK_SHCENTROID_NO_MATCH,
      0,
  };
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, N, 1, CELL, CELL);
  TestImage in = test_image_new (IMK_TYPE_U8, c.width, c.height, 1, 0), out;
  float pattern[9 * 9];
  uint8_t bad[CELL * CELL * N] = {0};
  uint64_t seed = 1;

  for (int i = 0; i < 9 * 9; i++)
    pattern[i] = (float) gaussian (i % 9 - 4, i / 9 - 4, 1.5);
  for (uint32_t y = 0; y < CELL; y++)
    for (uint32_t x = 0; x < CELL; x++) {
      sh_set (&in, x, y, 0);
      sh_set (&in, CELL + x, y, 77);
      sh_set (
          &in, 2 * CELL + x, y, 10 + 200 * gaussian (x - 12.0, y - 7.5, 1.5));
      sh_set (&in, 3 * CELL + x, y, 20 + 3 * sh_normal (&seed));
      sh_set (&in, 4 * CELL + x, y, 255);
      sh_set (&in, 5 * CELL + x, y, 200);
      sh_set (
          &in, 6 * CELL + x, y, 10 + 200 * gaussian (x - 8.0, y - 7.0, 1.5));
      bad[y * c.width + 5 * CELL + x] = 1;
    }
  bad[7 * c.width + 6 * CELL + 10] = 1;
  c.bad = bad;
  c.saturation = 255;
  c.templates = pattern;
  c.n_templates = 1;
  c.template_width = c.template_height = 9;
  c.min_correlation = 0.5;
  c.search_range = 3;
  for (int how = 0; how <= IMK_SHCENTROID_CORRELATION_COVARIANCE; how++)
    for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++) {
      c.correlation = how;
      c.invalid_policy = policy;
      out = run_cpu (&c, &in);
      for (uint32_t i = 0; i < N; i++) {
        sh_near (&out, i, IMK_SHCENTROID_FLAGS, flags[i], 0);
        for (int f = 0; f < N_FIELDS; f++)
          test_check (
              !isinf (sh_get (&out, i, f)) &&
                  (!isnan (sh_get (&out, i, f)) ||
                      (policy == IMK_SHCENTROID_INVALID_NAN && flags[i])),
              "cell %u field %d is %g", i, f, sh_get (&out, i, f));
        if (flags[i] && policy != IMK_SHCENTROID_INVALID_NAN)
          sh_near (&out, i, IMK_SHCENTROID_DX, 0, 0);
      }
      sh_near (&out, 6, IMK_SHCENTROID_DX, 0.5, 0.15);
      sh_near (&out, 6, IMK_SHCENTROID_DY, -0.5, 0.1);
      test_image_free (&out);
    }
  test_image_free (&in);
}

/* --- noise ---------------------------------------------------------------- */

/* 400 cells with the same picture, each with its own noise: the variance over
 * them is that which they report. */
static void
check_noise (ImkShcentroidCorrelation how, ImkShcentroidPeakFit fit,
    bool is_scene, double frame_gain)
{
  enum { CELLS = 20, PITCH = 16, SIZE = CELLS * PITCH, T = 10 };
  ImkShcentroidConfig c =
      grid_config (IMK_TYPE_U16, CELLS, CELLS, PITCH, PITCH);
  Scene scene = scene_new (8, 4);
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, SIZE, SIZE, 1, 0),
                        out;
  static float dark[SIZE * SIZE], pattern[T * T];
  double found[2] = {0}, reported[2] = {0}, sum[2] = {0};
  uint64_t seed = 77;

  c.gain = frame_gain;
  c.read_noise = 4;
  for (int i = 0; i < T * T; i++) {
    double x = i % T - 4.5, y = i / T - 4.5;

    pattern[i] = (float) (is_scene ? 4000 + 400 * scene_at (&scene, x, y)
                                   : 600 * gaussian (x, y, 1.8));
  }
  for (uint32_t y = 0; y < SIZE; y++)
    for (uint32_t x = 0; x < SIZE; x++) {
      double u = x % PITCH - 7.8, v = y % PITCH - 7.3;
      double mean = is_scene ? 4000 + 400 * scene_at (&scene, u, v)
                             : 20 + 600 * gaussian (u, v, 1.8);

      dark[y * SIZE + x] = 100;
      sh_set (&in, x, y,
          floor (mean + 100.5 + sh_normal (&seed) * sqrt (mean / c.gain + 16)));
    }
  c.dark = dark;
  c.templates = pattern;
  c.n_templates = 1;
  c.template_width = c.template_height = T;
  c.correlation = how;
  c.peak_fit = fit;
  out = run_cpu (&c, &in);
  for (uint32_t i = 0; i < CELLS * CELLS; i++)
    for (int k = 0; k < 2; k++) {
      double d = sh_get (&out, i, IMK_SHCENTROID_DX + k);

      sh_near (&out, i, IMK_SHCENTROID_FLAGS, 0, 0);
      reported[k] += sh_get (&out, i, IMK_SHCENTROID_VAR_X + k) / 400;
      sum[k] += d;
      found[k] += d * d;
    }
  for (int k = 0; k < 2; k++) {
    double variance = (found[k] - sum[k] * sum[k] / 400) / 399;
    double ratio = sqrt (reported[k] / variance);

    printf ("# correlation %d, fit %d, scene %d: rms %.4f, reported %.4f\n",
        (int) how, (int) fit, is_scene, sqrt (variance), sqrt (reported[k]));
    /* 400 cells know an rms to 3.5 % */
    test_check (ratio > 1 / 1.2 && ratio < 1.2,
        "correlation %d, fit %d, scene %d: rms %g, reported %g", (int) how,
        (int) fit, is_scene, sqrt (variance), sqrt (reported[k]));
  }
}

TEST (test_noise, "variances are those of simulated noise")
{
  for (int how = 0; how <= IMK_SHCENTROID_CORRELATION_DIFFERENCE; how++)
    for (int fit = 0; fit <= IMK_SHCENTROID_PEAK_PARABOLA; fit++) {
      /* a difference wants a template as bright as the cell: it is, but for
       * the background, which the means take away */
      check_noise (how, fit, false, 0.8);
      check_noise (how, fit, true, 2);
    }
}

/* --- threads, changes, errors --------------------------------------------- */

TEST (test_threads, "threads change nothing")
{
  TestImage one, many;
  test_auto (Case) k;

  case_new (&k, 2, IMK_TYPE_U16, EACH, COMBINED);
  k.config.remove_tilt = true;
  one = run_cpu (&k.config, &k.in);
  for (uint32_t n = 0; n <= 5; n++) {
    k.config.n_threads = n;
    many = run_cpu (&k.config, &k.in);
    test_image_same (&one, &many, "several threads");
    test_image_free (&many);
  }
  test_image_free (&one);
}

/* What may change between frames does, to the same as from the beginning. */
TEST (test_update, "an update is as good as a new object")
{
  ImkShcentroidConfig cog;
  TestImage expected, out;
  test_autoptr (ImkShcentroid) s = NULL;
  test_auto (Case) k;

  case_new (&k, 0, IMK_TYPE_U8, ONE, PLAIN);
  cog = k.config;
  cog.estimator = IMK_SHCENTROID_ESTIMATOR_COG;
  s = sh_new (IMK_BACKEND_CPU, &cog);
  out = sh_output (&cog, IMK_TYPE_F64, padding_of (&cog));
  sh_process (s, &k.in, &out);
  for (uint32_t range = 1; range <= IMK_SHCENTROID_MAX_SEARCH_RANGE; range++) {
    k.config.search_range = range;
    k.config.correlation = range % 3;
    test_ok (imk_shcentroid_update (s, &k.config, test_new_error ()));
    sh_process (s, &k.in, &out);
    expected = run_cpu (&k.config, &k.in);
    test_image_same (&expected, &out, "after an update");
    test_image_free (&expected);
  }
  test_image_free (&out);
}

static void
check_refused (const ImkShcentroidConfig *c, const char *words)
{
  ImkShcentroid *s = NULL;

  test_error (imk_shcentroid_new (IMK_BACKEND_CPU, c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (s == NULL, "there is an object");
}

TEST (test_errors, "errors say what to do")
{
  float pattern[400] = {1, 2, 3}, same[9] = {5, 5, 5, 5, 5, 5, 5, 5, 5};
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, 3, 2, 10, 10), k;
  test_autoptr (ImkShcentroid) s = NULL;

  check_refused (&c, "no template to look for");
  c.templates = pattern;
  c.n_templates = 1;
  c.template_width = c.template_height = 8;
#define REFUSED(words, ...) \
  k = c; \
  __VA_ARGS__; \
  check_refused (&k, words)
  REFUSED ("11x8 pixels is larger than the smallest cell, which is 10x10",
      k.template_width = 11);
  REFUSED ("8x8 pixels is larger than the smallest cell, which is 6x6 with a "
           "margin of 2",
      k.margin = 2);
  REFUSED ("0x8 pixels", k.template_width = 0);
  REFUSED ("2 templates for 6 cells", k.n_templates = 2);
  REFUSED ("All pixels of the template are 5", k.templates = same,
      k.template_width = k.template_height = 3);
  REFUSED ("search-range is 0", k.search_range = 0);
  REFUSED ("search-range is 33", k.search_range = 33);
  REFUSED ("min-correlation is nan", k.min_correlation = NAN);
  REFUSED ("min-correlation is 1.5", k.min_correlation = 1.5);
  REFUSED ("correlation is 3", k.correlation = 3);
  REFUSED ("peak-fit is 2", k.peak_fit = 2);
  REFUSED ("template-source is 7", k.template_source = 7);
  REFUSED ("template-cell is 6; it must be one of the 6", k.template_cell = 6);
  REFUSED ("template-cell does not say which",
      k.template_source = IMK_SHCENTROID_TEMPLATE_FRAME);
  REFUSED ("template-margin is 5",
      k.template_source = IMK_SHCENTROID_TEMPLATE_FRAME, k.template_cell = 0,
      k.template_margin = 5);
  REFUSED (
      "A template of 1999996x16 pixels, as the smallest cell gives it less "
      "template-margin, is larger than the frame of 30x20.",
      k.template_source = IMK_SHCENTROID_TEMPLATE_FRAME, k.template_cell = 0,
      k.template_margin = 2, k.columns = k.rows = 1, k.pitch_x = 2e6,
      k.pitch_y = 20);
#undef REFUSED
  pattern[21] = NAN;
  check_refused (&c, "Template 0 has the value nan at (5, 2)");
  pattern[21] = 0;

  k = c;
  k.estimator = IMK_SHCENTROID_ESTIMATOR_COG;
  k.n_templates = 0;
  s = sh_new (IMK_BACKEND_CPU, &k);
  test_error (imk_shcentroid_update (s, &c, test_new_error ()),
      IMK_ERROR_CONFIG, "no template to look for");
}

/* --- CPU against CUDA ----------------------------------------------------- */

/* Several frames, as tracking and holding remember. */
static void
check_same (const ImkShcentroidConfig *c, const TestImage *in,
    uint32_t n_frames, const char *name)
{
  sh_check_parity (c, in, IMK_TYPE_F64, padding_of (c), n_frames, false, name);
}

static void
check_parity (Case *k)
{
  static int turn;

  turn++;
  k->config.fields = turn % 3;
  k->config.remove_tilt = turn % 2;
  check_same (&k->config, &k->in, 1, k->name);
  k->config.fields = IMK_SHCENTROID_FIELDS_ALL;
  k->config.invalid_policy = turn % 4;
  k->config.window = IMK_SHCENTROID_WINDOW_TRACKING;
  k->config.tracking_gain = 0.7;
  k->config.tracking_reset = 2;
  if (turn % 5 == 0)
    k->config.brightest = 40;
  check_same (&k->config, &k->in, 3, k->name);
  if (k->config.type == IMK_TYPE_F32) {
    test_auto (TestImage) in = spoilt (k, 1);

    check_same (&k->config, &in, 2, k->name);
  }
}

TEST (test_parity, "CUDA finds the same")
{
  test_need_cuda ();
  for_each_case (check_parity);
}

/* A map of cells of all sizes, one of them too large for shared memory. */
TEST (test_map_parity, "CUDA finds the same in maps")
{
  static const ImkShcentroidCell cells[] = {
      {0, 0, 150, 110, NAN, NAN, NAN, NAN},
      {-5.5, 3.2, 24.4, 19.9, 10, 11, 500, NAN},
      {70.5, 40.2, 31.7, 52.1, NAN, NAN, NAN, NAN},
      {139, 100, 30, 30, NAN, NAN, NAN, NAN},
  };
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 1, 1, 160, 120);
  test_autofree float *pattern = NULL;
  test_auto (TestImage) in;
  Scene scene = scene_new (5, 6);

  test_need_cuda ();
  pattern = malloc (17 * 15 * sizeof (*pattern));
  in = test_image_new (IMK_TYPE_U16, 160, 120, 1, 2);
  for (uint32_t i = 0; i < 160 * 120; i++)
    sh_set (
        &in, i % 160, i / 160, 500 + 100 * scene_at (&scene, i % 160, i / 160));
  for (uint32_t i = 0; i < 17 * 15; i++)
    pattern[i] = (float) scene_at (&scene, i % 17 + 68, i / 17 + 50);
  c.cells = cells;
  c.n_cells = 4;
  c.templates = pattern;
  c.n_templates = 1;
  c.template_width = 17;
  c.template_height = 15;
  c.min_correlation = 0;
  for (uint32_t range = 1; range <= 32; range += 9 + range / 2) {
    c.search_range = range;
    check_same (&c, &in, 1, "a map, stored template");
  }
  c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  for (c.template_cell = 0; c.template_cell < 4; c.template_cell++)
    check_same (&c, &in, 2, "a map, template of the frame");
}
