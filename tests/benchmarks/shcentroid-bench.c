/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* shcentroid on the CPU, over the paper's sizes, beside the paper's algorithm
 * as a plain loop. */
#include "imk/shcentroid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "plain-loop.h"

static const uint32_t rois[] = {100, 200, 500, 700, 1000};
static const uint32_t pitches[] = {3, 5, 10, 20, 28};
enum { N_ROIS = 5, N_PITCHES = 5 };

/* The plain loop, best of 200, one thread of a shared 2-core AMD EPYC with
 * AVX-512, gcc -O3 -march=native, microseconds: the figures to beat. */
static const double table[N_ROIS][N_PITCHES] = {
    {11.4, 6.9, 4.6, 4.0, 2.7},
    {46, 28, 18, 16, 15},
    {289, 173, 115, 98, 84},
    {558, 329, 221, 193, 183},
    {1138, 672, 450, 395, 359},
};

typedef struct Work {
  ImkShcentroidConfig config;
  ImkShcentroid *kernel;
  ImkImage in, out;
  BenchRing frames;
  float *plain;
} Work;

static void
work_open (Work *w, bool cold)
{
  const ImkShcentroidConfig *c = &w->config;
  uint32_t n = imk_shcentroid_n_cells (c);
  ImkError error;

  w->in = (ImkImage){
      .width = c->width, .height = c->height, .channels = 1, .type = c->type};
  w->in.stride = imk_image_row_size (&w->in);
  w->out = (ImkImage){.width = 2, .height = n, .channels = 1};
  w->out.type = IMK_TYPE_F32;
  if (c->fields == IMK_SHCENTROID_FIELDS_ALL)
    w->out.width = IMK_SHCENTROID_N_FIELDS;
  w->out.stride = imk_image_row_size (&w->out);
  w->out.data = malloc (w->out.stride * n);
  w->plain = malloc (2 * sizeof (float) * n);
  /* hot: as after a camera or an element that has just written the frame */
  w->frames = bench_ring_new (w->in.stride * c->height,
      cold ? bench_beyond_cache () : 2 * w->in.stride * c->height);
  bench_ring_noise (&w->frames, 1);
  if (!w->out.data || !w->plain)
    bench_fail ("there is no memory for %u cells.", n);
  bench_ok (
      imk_shcentroid_new (IMK_BACKEND_CPU, c, &w->kernel, &error), &error);
}

static void
work_close (Work *w)
{
  imk_shcentroid_free (w->kernel);
  bench_ring_free (&w->frames);
  free (w->out.data);
  free (w->plain);
}

static void
run_ours (void *data, uint32_t turn)
{
  Work *w = data;
  ImkError error;

  w->in.data = bench_ring_at (&w->frames, turn);
  bench_ok (imk_shcentroid_process (w->kernel, &w->in, &w->out, NULL, &error),
      &error);
}

static void
run_plain (void *data, uint32_t turn)
{
  Work *w = data;

  plain_centroids (bench_ring_at (&w->frames, turn), w->in.stride,
      w->config.columns, w->config.rows, (uint32_t) w->config.pitch_x,
      w->plain);
}

/* --- checks -------------------------------------------------------------- */

static double
sample_at (const ImkImage *in, uint32_t x, uint32_t y)
{
  const uint8_t *row = (const uint8_t *) in->data + y * in->stride;

  return in->type == IMK_TYPE_U8 ? row[x] : ((const uint16_t *) row)[x];
}

/* Dark, flat, threshold and weight of a pixel, by their definitions. */
static double
value_at (const Work *w, uint32_t x, uint32_t y)
{
  const ImkShcentroidConfig *c = &w->config;
  float value = (float) sample_at (&w->in, x, y);
  size_t at = (size_t) y * c->width + x;

  return c->dark ? (value - c->dark[at]) * c->flat[at] : value;
}

static int
compare_descending (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return x < y ? 1 : x > y ? -1 : 0;
}

static double
threshold_of (const Work *w, uint32_t left, uint32_t top)
{
  const ImkShcentroidConfig *c = &w->config;
  uint32_t pitch = (uint32_t) c->pitch_x;
  double values[28 * 28];
  uint32_t next = c->brightest;

  for (uint32_t i = 0; i < pitch * pitch; i++)
    values[i] = value_at (w, left + i % pitch, top + i / pitch);
  qsort (values, (size_t) pitch * pitch, sizeof (*values), compare_descending);
  if (c->brightest > 0) {
    /* ties with the last of the brightest count, too */
    while (next < pitch * pitch && values[next] == values[c->brightest - 1])
      next++;
    return values[next];
  }
  return c->threshold_mode == IMK_SHCENTROID_THRESHOLD_RELATIVE
             ? c->threshold * values[0]
             : c->threshold;
}

static double
weight_at (const Work *w, double x, double y)
{
  const ImkShcentroidConfig *c = &w->config;

  return c->weighting ? exp (-(x * x + y * y) / (2 * c->sigma * c->sigma)) : 1;
}

/* Sums of a cell with the weight about (@x, @y) of it, which becomes the
 * centroid. Returns: whether there is one */
static bool
centroid_of (
    const Work *w, uint32_t left, uint32_t top, double t, double *x, double *y)
{
  const ImkShcentroidConfig *c = &w->config;
  uint32_t pitch = (uint32_t) c->pitch_x;
  bool quad = c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  double middle = (pitch - 1) / 2.0, m00 = 0, m10 = 0, m01 = 0;

  for (uint32_t v = 0; v < pitch; v++)
    for (uint32_t u = 0; u < pitch; u++) {
      double value = value_at (w, left + u, top + v) - t;

      if ((c->threshold_mode || c->brightest) && value < 0)
        value = 0;
      value *= weight_at (w, u - *x, v - *y);
      if (c->power != 1)
        value = pow (fmax (value, 0), c->power);
      m00 += value;
      m10 += (quad ? copysign (u != middle, u - middle) : u) * value;
      m01 += (quad ? copysign (v != middle, v - middle) : v) * value;
    }
  if (m00 <= 0)
    return false;
  *x = quad ? middle + c->quad_gain * m10 / m00 : m10 / m00;
  *y = quad ? middle + c->quad_gain * m01 / m00 : m01 / m00;
  return true;
}

/* Cell (row, column) from its definition. */
static void
check_cell (const Work *w, uint32_t row, uint32_t column)
{
  const ImkShcentroidConfig *c = &w->config;
  uint32_t pitch = (uint32_t) c->pitch_x;
  uint32_t left = column * pitch, top = row * pitch;
  double t =
      c->threshold_mode || c->brightest ? threshold_of (w, left, top) : 0;
  double x = (pitch - 1) / 2.0, y = x;
  const float *actual =
      (const float *) w->out.data + (row * c->columns + column) * w->out.width;
  float expected[2];

  for (uint32_t k = 0; k < c->iterations; k++)
    if (!centroid_of (w, left, top, t, &x, &y))
      return;
  expected[0] = (float) (left + fmin (fmax (x, 0), pitch - 1.0));
  expected[1] = (float) (top + fmin (fmax (y, 0), pitch - 1.0));
  /* one float32 step: how the sum of corner and quotient is formed is free */
  for (int i = 0; i < 2; i++)
    if (fabsf (actual[i] - expected[i]) > 1.2e-7f * expected[i])
      bench_fail ("RoI %u, pitch %u, cell (%u, %u): expected %.9g, got %.9g",
          c->width, pitch, row, column, expected[i], actual[i]);
}

static void
check (Work *w)
{
  run_ours (w, 0);
  for (uint32_t row = 0; row < w->config.rows; row++)
    for (uint32_t column = 0; column < w->config.columns; column++)
      check_cell (w, row, column);
}

/* float32 division and addition of the peer: a thousandth of a pixel will do */
static void
check_plain (Work *w)
{
  const float *ours = w->out.data;

  run_plain (w, 0);
  for (uint32_t i = 0; i < 2 * imk_shcentroid_n_cells (&w->config); i++)
    if (fabsf (ours[i] - w->plain[i]) > 1e-3f)
      bench_fail (
          "the plain loop finds %.9g where we find %.9g", w->plain[i], ours[i]);
}

/* --- cases --------------------------------------------------------------- */

static ImkShcentroidConfig
make_config (uint32_t roi, uint32_t pitch)
{
  ImkShcentroidConfig config;

  imk_shcentroid_config_init (&config);
  config.width = config.height = roi;
  config.x0 = config.y0 = 0.0;
  config.pitch_x = config.pitch_y = pitch;
  config.columns = config.rows = roi / pitch;
  config.fields = IMK_SHCENTROID_FIELDS_XY;
  config.n_threads = 1;
  return config;
}

static void
run_paper (uint32_t r, uint32_t p)
{
  Work w = {.config = make_config (rois[r], pitches[p])};
  BenchEntry entries[] = {
      {"cpu", "ours", run_ours, &w},
      {"cpu", "plain-loop", run_plain, &w},
  };
  char name[32];

  snprintf (name, sizeof (name), "%u-d%u", rois[r], pitches[p]);
  if (!bench_wants_row (name))
    return;
  work_open (&w, false);
  check (&w);
  check_plain (&w);
  bench_case (name, entries, 2);
  bench_row (name, "cpu", "table", table[r][p], NAN, table[r][p], NAN, 200);
  work_close (&w);
}

static void
run_variant (const char *name, const ImkShcentroidConfig *config, bool cold)
{
  Work w = {.config = *config};
  BenchEntry entries[] = {
      {"cpu", "ours", run_ours, &w},
      {"cpu", "plain-loop", run_plain, &w},
  };
  bool plain = config->type == IMK_TYPE_U8 && !config->threshold_mode &&
               !config->dark && !config->weighting && !config->brightest &&
               !config->estimator && !config->window && config->power == 1;

  if (!bench_wants_row (name))
    return;
  work_open (&w, cold);
  check (&w);
  bench_case (name, entries, plain ? 2 : 1);
  work_close (&w);
}

static void
run_variants (void)
{
  ImkShcentroidConfig base = make_config (700, 10), c;

  run_variant ("700-d10-cold", &base, true);
  c = base;
  c.n_threads = 0;
  run_variant ("700-d10-threads", &c, false);
  c = base;
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_variant ("700-d10-all", &c, false);
  c = base;
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 128;
  run_variant ("700-d10-threshold", &c, false);
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_variant ("700-d10-threshold-all", &c, false);
  c = base;
  c.type = IMK_TYPE_U16;
  run_variant ("700-d10-u16", &c, false);
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_variant ("700-d10-u16-all", &c, false);
}

static float *
plane_new (size_t n)
{
  float *plane = malloc (n * sizeof (*plane));

  if (!plane)
    bench_fail ("there is no memory for a dark and a flat.");
  return plane;
}

/* @config beside the centre of gravity of @base, of the same frames.
 * @checked: whether check () knows its definition */
static void
run_beside (const char *name, const ImkShcentroidConfig *config,
    const ImkShcentroidConfig *base, bool checked)
{
  Work w = {.config = *config}, cog = {.config = *base};
  BenchEntry entries[] = {
      {"cpu", "ours", run_ours, &w},
      {"cpu", "cog", run_ours, &cog},
  };

  if (!bench_wants_row (name))
    return;
  work_open (&w, false);
  work_open (&cog, false);
  if (checked)
    check (&w);
  bench_case (name, entries, 2);
  work_close (&w);
  work_close (&cog);
}

/* @powered, and what else the part of a pixel may depend on. */
static void
run_powers (const char *base_name, const ImkShcentroidConfig *powered,
    const ImkShcentroidConfig *base, const float *dark, const float *flat)
{
  ImkShcentroidConfig c;
  char name[64];

#define POWER(what, ...) \
  c = *powered; \
  __VA_ARGS__; \
  snprintf (name, sizeof (name), "%s-power-%s", base_name, what); \
  run_beside (name, &c, base, true)
  POWER (
      "weight", c.sigma = 3, c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN);
  POWER ("absolute", c.threshold = 128,
      c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE);
  POWER ("relative", c.threshold = 0.3,
      c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE);
  POWER ("dark-flat", c.dark = dark, c.flat = flat);
  POWER ("dark-flat-relative-weight", c.dark = dark, c.flat = flat,
      c.threshold = 0.3, c.sigma = 3,
      c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE,
      c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN);
#undef POWER
}

/* What each option costs beside the same without it. */
static void
run_options (const char *base_name, const ImkShcentroidConfig *base)
{
  size_t n = (size_t) base->width * base->height;
  float *dark = plane_new (n), *flat = plane_new (n), *mean = plane_new (n);
  ImkShcentroidConfig c;
  char name[64];

  for (size_t i = 0; i < n; i++) {
    dark[i] = 2.0f + 0.25f * (float) (i % 13);
    flat[i] = 0.9f + 0.01f * (float) (i % 17);
    mean[i] = (200.0f + (float) (i * 7919 % 1201)) / 100.0f;
  }
  run_variant (base_name, base, false);
#define OPTION(what, ...) \
  c = *base; \
  __VA_ARGS__; \
  snprintf (name, sizeof (name), "%s-%s", base_name, what); \
  run_beside (name, &c, base, true)
  OPTION ("relative", c.threshold = 0.3,
      c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE);
  OPTION ("absolute", c.threshold = 128,
      c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE);
  OPTION ("brightest", c.brightest = 20);
  OPTION ("quad", c.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD);
  OPTION ("power", c.power = 1.5);
  OPTION ("power-2", c.power = 2);
  OPTION ("power-1.7", c.power = 1.7);
  OPTION ("tracking", c.window = IMK_SHCENTROID_WINDOW_TRACKING);
  OPTION ("tracking-weight", c.sigma = 3,
      c.weighting = IMK_SHCENTROID_WEIGHTING_TRACKING);
  OPTION ("dark-flat", c.dark = dark, c.flat = flat);
  /* a dark of 100 frames, which does not fit 32 bits with a flat */
  OPTION ("dark-100-flat", c.dark = mean, c.flat = flat);
  OPTION (
      "weight", c.sigma = 3, c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN);
  OPTION ("iterations", c.sigma = 3, c.iterations = 3,
      c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN);
  OPTION ("dark-flat-relative-weight", c.dark = dark, c.flat = flat,
      c.threshold = 0.3, c.sigma = 3,
      c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE,
      c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN);
  c = *base;
  c.power = 1.7;
  run_powers (base_name, &c, base, dark, flat);
#undef OPTION
  free (dark);
  free (flat);
  free (mean);
}

static void
run_all_options (void)
{
  ImkShcentroidConfig c = make_config (700, 10);
  char name[32];

  run_options ("700-d10-of", &c);
  c.type = IMK_TYPE_U16;
  run_options ("700-d10-of-u16", &c);
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_options ("700-d10-of-u16-all", &c);
  c.type = IMK_TYPE_U8;
  run_options ("700-d10-of-all", &c);
  for (uint32_t pitch = 7; pitch <= 20; pitch += 13) {
    c = make_config (700, pitch);
    snprintf (name, sizeof (name), "700-d%u-of", pitch);
    run_options (name, &c);
    c.type = IMK_TYPE_U16;
    snprintf (name, sizeof (name), "700-d%u-of-u16", pitch);
    run_options (name, &c);
  }
  c = make_config (400, 10); /* dark and flat fit the L2 cache */
  run_options ("400-d10-of", &c);
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_options ("400-d10-of-all", &c);
}

/* --- estimators with fixed weights, whose numbers the tests check --------- */

/* One template for all cells. */
static void
run_matched (const char *name, const ImkShcentroidConfig *base)
{
  ImkShcentroidConfig c = *base;
  uint32_t pitch = (uint32_t) base->pitch_x;
  float spot[28 * 28];

  for (uint32_t i = 0; i < pitch * pitch; i++) {
    double u = i % pitch - 0.5 * pitch, v = i / pitch - 0.5 * pitch;

    spot[i] = (float) (100 * exp (-(u * u + v * v) / 8));
  }
  c.estimator = IMK_SHCENTROID_ESTIMATOR_MATCHED;
  c.templates = spot;
  c.n_templates = 1;
  c.template_width = c.template_height = pitch;
  run_beside (name, &c, base, false);
}

/* A disc in each quarter of the frame: two thirds of its pixels. */
static void
run_pupils (const char *name, const ImkShcentroidConfig *base,
    ImkShcentroidNormalisation normalisation)
{
  static const uint8_t quarters[2][2] = {{1, 4}, {2, 3}};
  ImkShcentroidConfig c = *base;
  uint32_t side = c.width / 2, *pixels = NULL;
  uint8_t *numbers = calloc ((size_t) c.width * c.height, 1);
  ImkShcentroidCell *cells = NULL;
  ImkError error;

  if (!numbers)
    bench_fail ("there is no memory for a map.");
  for (uint32_t y = 0; y < c.height; y++)
    for (uint32_t x = 0; x < c.width; x++) {
      double u = x % side - 0.5 * side, v = y % side - 0.5 * side;

      if (sqrt (u * u + v * v) < 0.46 * side)
        numbers[y * c.width + x] = quarters[y / side][x / side];
    }
  bench_ok (imk_shcentroid_find_pupils (
                numbers, c.width, c.height, &c, &cells, &pixels, &error),
      &error);
  c.estimator = IMK_SHCENTROID_ESTIMATOR_PUPILS;
  c.normalisation = normalisation;
  run_beside (name, &c, base, false);
  free (numbers);
  free (cells);
  free (pixels);
}

static void
run_estimators (const char *base_name, const ImkShcentroidConfig *base)
{
  ImkShcentroidConfig c = *base;
  char name[64];

  snprintf (name, sizeof (name), "%s-matched", base_name);
  run_matched (name, base);
  snprintf (name, sizeof (name), "%s-min-illumination", base_name);
  c.min_illumination = 0.5;
  run_beside (name, &c, base, false);
  if (base->pitch_x != 10)
    return; /* pupil images have none */
  snprintf (name, sizeof (name), "%s-pupils", base_name);
  run_pupils (name, base, IMK_SHCENTROID_NORMALISATION_LOCAL);
  snprintf (name, sizeof (name), "%s-pupils-global", base_name);
  run_pupils (name, base, IMK_SHCENTROID_NORMALISATION_GLOBAL);
}

static void
run_all_estimators (void)
{
  ImkShcentroidConfig c = make_config (700, 10);
  char name[32];

  run_estimators ("700-d10-of", &c);
  c.type = IMK_TYPE_U16;
  run_estimators ("700-d10-of-u16", &c);
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_estimators ("700-d10-of-u16-all", &c);
  c.type = IMK_TYPE_U8;
  run_estimators ("700-d10-of-all", &c);
  for (uint32_t pitch = 7; pitch <= 20; pitch += 13) {
    c = make_config (700, pitch);
    snprintf (name, sizeof (name), "700-d%u-of", pitch);
    run_estimators (name, &c);
    c.type = IMK_TYPE_U16;
    snprintf (name, sizeof (name), "700-d%u-of-u16", pitch);
    run_estimators (name, &c);
  }
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "shcentroid");
  for (uint32_t r = 0; r < N_ROIS; r++)
    for (uint32_t p = 0; p < N_PITCHES; p++)
      run_paper (r, p);
  run_variants ();
  run_all_options ();
  run_all_estimators ();
  return bench_close ();
}
