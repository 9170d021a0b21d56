/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the centroid kernel does with more than a threshold in counts, against
 * worked examples, a reference that goes pixel by pixel, real camera frames,
 * simulated noise, and the backends against each other. */
#define _GNU_SOURCE /* setenv */
#include "sh-common.h"
#include "shcentroid/shcentroid-reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"

/* --- helpers -------------------------------------------------------------- */

/* Cells of whole pixels, as many as there is room for. */
static ImkShcentroidConfig
grid_config (ImkType type, uint32_t width, uint32_t height, uint32_t pitch_x,
    uint32_t pitch_y)
{
  return sh_grid (type, width, height, 0, 0, pitch_x, pitch_y, width / pitch_x,
      height / pitch_y);
}

/* Rows of x and y without a gap are written in another way. */
static uint32_t
padding_of (const ImkShcentroidConfig *c)
{
  return c->fields == IMK_SHCENTROID_FIELDS_ALL ? 3
         : c->fields == IMK_SHCENTROID_FIELDS_XY
             ? imk_shcentroid_n_cells (c) % 2 * 5
             : 0;
}

static TestImage
output_new (const ImkShcentroidConfig *c, ImkType type)
{
  return sh_output (c, type, padding_of (c));
}

static TestImage
run_cpu (const ImkShcentroidConfig *c, const TestImage *in, ImkType type)
{
  return sh_run (IMK_BACKEND_CPU, c, in, type, padding_of (c));
}

/* --- worked examples A and B ---------------------------------------------- */

/* Where the worked examples are run. */
static ImkBackend backend_of_examples = IMK_BACKEND_CPU;

static TestImage
run_example_as (const ImkShcentroidConfig *c, const TestImage *in, ImkType type)
{
  return sh_run (backend_of_examples, c, in, type, padding_of (c));
}

static TestImage
run_example (const ImkShcentroidConfig *c, const TestImage *in)
{
  return run_example_as (c, in, IMK_TYPE_F64);
}

static void
check_example (const ImkShcentroidConfig *c, const TestImage *in, double flux,
    double x, double y)
{
  test_auto (TestImage) out = run_example (c, in);

  sh_near (&out, 0, IMK_SHCENTROID_FLUX, flux, 1e-6);
  sh_near (&out, 0, IMK_SHCENTROID_X, x, 1e-9);
  sh_near (&out, 0, IMK_SHCENTROID_Y, y, 1e-9);
  sh_near (&out, 0, IMK_SHCENTROID_FLAGS, 0, 0);
}

#define EXAMPLE(flux, x, y, ...) \
  do { \
    ImkShcentroidConfig c = grid_config (type, 4, 4, 4, 4); \
    __VA_ARGS__; \
    check_example (&c, &in, flux, x, y); \
  } while (0)

TEST (test_example_b,
    "the 4x4 cell on a pedestal has the numbers of the worked example")
{
  float dark[16], flat[16];

  for (int i = 0; i < 16; i++) {
    dark[i] = 2;
    flat[i] = 1;
  }
  for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++) {
    test_auto (TestImage) in = sh_example (type, 4, 4, 0, 0, 2);

    EXAMPLE (132, 1.575757575757576, 1.651515151515152, );
    EXAMPLE (100, 1.6, 1.7, c.dark = dark);
    EXAMPLE (100, 1.6, 1.7, c.dark = dark, c.flat = flat);
    EXAMPLE (33, 5.0 / 3, 1.969696969696970, c.threshold = 0.5,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE);
    EXAMPLE (96, 5.0 / 3, 1.770833333333333, c.threshold = 0.5,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE,
        c.threshold_action = IMK_SHCENTROID_ACTION_KEEP);
    /* max 42, min 2: half of the range is 22, subtracted from 32 and 42 */
    EXAMPLE (30, 1 + 20.0 / 30, 2, c.threshold = 0.5,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RANGE);
    EXAMPLE (60, 5.0 / 3, 1.833333333333333, c.threshold = 0.1,
        c.threshold_least = 12,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE);
    EXAMPLE (60, 5.0 / 3, 1.833333333333333, c.threshold = 3, c.read_noise = 4,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_NOISE);
    EXAMPLE (96, 5.0 / 3, 1.770833333333333, c.brightest = 3,
        c.threshold_action = IMK_SHCENTROID_ACTION_KEEP);
    EXAMPLE (60, 5.0 / 3, 1.833333333333333, c.brightest = 3);
    /* aotools' 3 brightest, of which it subtracts the third */
    EXAMPLE (30, 5.0 / 3, 2, c.brightest = 2);
    EXAMPLE (132, 1.575757575757576, 1.651515151515152, c.brightest = 16);
    EXAMPLE (3000, 5.0 / 3, 1.833333333333333, c.threshold = 2, c.power = 2,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE);
    EXAMPLE (100000, 1.72, 1.91, c.threshold = 2, c.power = 3,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE);
    EXAMPLE (3540000, 1 + 272.0 / 354, 1 + 337.0 / 354, c.threshold = 2,
        c.power = 4, c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE);
    EXAMPLE (108, 1.592592592592593, 1.685185185185185, c.margin = 1);
    EXAMPLE (77.88007830714049, 1.6, 1.7, c.threshold = 2,
        c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN,
        c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE);
  }
}

/* Example A: (right - left) / all of the inner 2x2. */
TEST (test_quad_cell, "a quad cell compares its halves")
{
  for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++) {
    test_auto (TestImage) in = sh_example (type, 4, 4, 0, 0, 0);

    EXAMPLE (100, 1.5 + 0.2, 1.5 + 0.4, c.margin = 1,
        c.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD);
    EXAMPLE (100, 1.5 + 0.1, 1.5 + 0.2, c.quad_gain = 0.5,
        c.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD);
  }
}

TEST (test_dark_cell,
    "cells without a good pixel or without light are flagged, never NaN")
{
  test_auto (TestImage) in = sh_example (IMK_TYPE_U8, 4, 4, 0, 0, 2);
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, 4, 4, 4, 4);
  uint8_t bad[16];

  memset (bad, 1, sizeof (bad));
  for (int how = 0; how < 3; how++)
    for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++) {
      ImkShcentroidConfig k = c;
      test_auto (TestImage) out;

      k.invalid_policy = policy;
      k.saturation = 1;
      if (how == 0) {
        k.bad = bad;
      } else {
        k.threshold_mode = how == 1 ? IMK_SHCENTROID_THRESHOLD_RELATIVE
                                    : IMK_SHCENTROID_THRESHOLD_RANGE;
        k.threshold = 1; /* nothing is above the maximum */
      }
      out = run_example (&k, &in);
      sh_near (&out, 0, IMK_SHCENTROID_FLAGS,
          IMK_SHCENTROID_NO_FLUX | (how ? IMK_SHCENTROID_SATURATED : 0), 0);
      sh_near (&out, 0, IMK_SHCENTROID_FLUX, 0, 0);
      sh_near (&out, 0, IMK_SHCENTROID_FLUX_RAW, how ? 132 : 0, 0);
      sh_near (&out, 0, IMK_SHCENTROID_MAX, how ? 42 : 0, 0);
      for (int i = IMK_SHCENTROID_X; i <= IMK_SHCENTROID_DY; i++)
        if (policy == IMK_SHCENTROID_INVALID_NAN)
          test_check (isnan (sh_get (&out, 0, i)), "a NaN is missing");
        else
          sh_near (&out, 0, i, i < IMK_SHCENTROID_DX ? 1.5 : 0, 0);
    }
}

/* Cells of the noise that a dark leaves, in float64. Returns: the flux; the
 * position in cells of 4 by 4 goes to @x, @y */
static double
noise_mean (const TestImage *in, const float *dark, uint32_t cell,
    uint32_t columns, bool quad, double *x, double *y)
{
  double flux = 0, px = 0, py = 0;

  for (uint32_t v = 0; v < 4; v++)
    for (uint32_t u = 0; u < 4; u++) {
      uint32_t at_x = cell % columns * 4 + u, at_y = cell / columns * 4 + v;
      double value =
          sh_sample (in, at_x, at_y) - dark[at_y * 4 * columns + at_x];

      flux += value;
      px += value * (quad ? u < 2 ? -1.0 : 1.0 : u);
      py += value * (quad ? v < 2 ? -1.0 : 1.0 : v);
    }
  *x = quad ? 1.5 + px / flux : px / flux;
  *y = quad ? 1.5 + py / flux : py / flux;
  return flux;
}

static bool
is_off (double c, double first, double last)
{
  return c < first - 0.5 || c > last + 0.5;
}

/* A place that noise has put outside its cell is none, and no slope. */
static void
check_no_light (const ImkShcentroidConfig *c, const TestImage *in)
{
  bool quad = c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  double first = quad ? 0.5 : 0, last = quad ? 2.5 : 3;
  test_auto (TestImage) out = run_example (c, in);
  uint32_t n_outside = 0, n_valid = 0;

  for (uint32_t i = 0; i < c->columns * c->rows; i++) {
    double x, y, flux = noise_mean (in, c->dark, i, c->columns, quad, &x, &y);
    bool outside = is_off (x, first, last) || is_off (y, first, last);
    uint32_t flags = !(flux > 0) ? IMK_SHCENTROID_NO_FLUX
                     : outside   ? IMK_SHCENTROID_OUTSIDE
                                 : 0;

    sh_near (&out, i, IMK_SHCENTROID_FLAGS, flags, 0);
    sh_near (&out, i, IMK_SHCENTROID_DX,
        flags ? 0 : fmin (fmax (x, first), last) - 1.5, 1e-12);
    sh_near (&out, i, IMK_SHCENTROID_DY,
        flags ? 0 : fmin (fmax (y, first), last) - 1.5, 1e-12);
    n_outside += flags == IMK_SHCENTROID_OUTSIDE;
    n_valid += flags == 0;
  }
  test_check (n_outside > 50 && n_valid > 50, "%u outside, %u valid of %u",
      n_outside, n_valid, c->columns * c->rows);
}

static void
check_same_places (const ImkShcentroidConfig *c, const TestImage *in)
{
  ImkShcentroidConfig xy = *c;
  test_auto (TestImage) all = run_example (c, in), places;

  xy.fields = IMK_SHCENTROID_FIELDS_XY;
  places = run_example (&xy, in);
  for (uint32_t i = 0; i < c->columns * c->rows; i++)
    for (uint32_t field = 0; field < 2; field++)
      sh_near (&places, i, field, sh_get (&all, i, field), 0);
}

TEST (test_no_light, "noise less a dark gives no place outside its cell")
{
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, 120, 80, 4, 4);
  test_auto (TestImage) in = test_image_new (c.type, c.width, c.height, 1, 3);
  test_autofree float *dark = malloc (sizeof (float) * c.width * c.height);
  uint64_t seed = 5;

  for (uint32_t i = 0; i < c.width * c.height; i++) {
    dark[i] = 100;
    sh_set (
        &in, i % c.width, i / c.width, 97 + (double) (test_random (&seed) % 7));
  }
  c.dark = dark;
  check_no_light (&c, &in);
  check_same_places (&c, &in);
  c.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
  check_no_light (&c, &in);
  check_same_places (&c, &in);
}

/* --- the matrix of cases -------------------------------------------------- */

typedef struct Case {
  ImkShcentroidConfig config;
  ImkType out_type;
  uint64_t seed;
  char name[160];
} Case;

static const uint32_t shapes[][4] = {
    {8, 6, 2, 2},
    {25, 21, 3, 3},
    {60, 50, 10, 9},
    {70, 66, 17, 33},
    {120, 40, 40, 20},
    {83, 75, 83, 75},
    {300, 90, 20, 30},
    {640, 70, 320, 70},
    {513, 131, 513, 131},
};
enum { N_SHAPES = sizeof (shapes) / sizeof (shapes[0]), N_OPTIONS = 38 };
enum { MOST_PIXELS = 700 * 700 };

static float *
table_new (size_t n, float from, float step, uint32_t period)
{
  float *table = malloc (n * sizeof (*table));

  for (size_t i = 0; i < n; i++)
    table[i] = from + step * (float) (i * 7919 % period);
  return table;
}

typedef struct Tables {
  float *dark, *flat, *lut;
  uint8_t *bad;
  /* what the CPU keeps in less room: of each as much as there is of it */
  float *quarters, *sixteenths, *ends;
  float *small, *wide; /* darks and flats of many bits */
} Tables;

static Tables tables;

static const Tables *
the_tables (void)
{
  Tables *t = &tables;

  if (!t->dark) {
    t->dark = table_new (MOST_PIXELS, -1.5f, 0.37f, 31);
    t->flat = table_new (MOST_PIXELS, 0.8f, 0.003f, 127);
    t->lut = table_new (65536, 0.0f, 1.7f, 251);
    t->quarters = table_new (MOST_PIXELS, 0.0f, 0.25f, 127);
    t->sixteenths = table_new (MOST_PIXELS, 1000.375f, 0.0625f, 127);
    t->ends = table_new (MOST_PIXELS, 0.5f, 1.4999999f, 2);
    t->small = table_new (MOST_PIXELS, 0.0f, 0.015625f, 127);
    t->wide = table_new (MOST_PIXELS, 0.5f, 0.0117187f, 127);
    t->bad = calloc (MOST_PIXELS, 1);
    for (size_t i = 0; i < MOST_PIXELS; i += 11)
      t->bad[i] = 1;
  }
  return t;
}

/* What an option changes; 0 and NULL change nothing. */
typedef struct Option {
  float *const *dark, *const *flat, *const *lut;
  bool bad, remove_tilt;
  ImkShcentroidThreshold threshold_mode;
  ImkShcentroidWeighting weighting;
  ImkShcentroidEstimator estimator;
  ImkShcentroidWindowMode window;
  uint32_t brightest, iterations, margin;
  double power, sigma, quad_gain;
  double least, flux; /* of the full scale; flux of all pixels of a cell */
} Option;

#define DARK .dark = &tables.dark
#define FLAT .flat = &tables.flat
#define GAUSSIAN .weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN
#define THRESHOLD(mode) .threshold_mode = IMK_SHCENTROID_THRESHOLD_##mode
#define QUAD .estimator = IMK_SHCENTROID_ESTIMATOR_QUAD

/* One option after another, then some together; the last is none. */
static const Option options[N_OPTIONS + 1] = {
    {DARK},
    {FLAT},
    {.bad = true},
    {.lut = &tables.lut},
    {DARK, FLAT, .bad = true},
    {THRESHOLD (RELATIVE)},
    {THRESHOLD (RANGE)},
    {THRESHOLD (NOISE)},
    {.brightest = 1},
    {.brightest = 40},
    {GAUSSIAN},
    {GAUSSIAN, .iterations = 5},
    {.weighting = IMK_SHCENTROID_WEIGHTING_TRACKING},
    {.power = 2},
    {.power = 1.37},
    {QUAD},
    {.window = IMK_SHCENTROID_WINDOW_TRACKING},
    {DARK, THRESHOLD (ABSOLUTE)},
    {FLAT, THRESHOLD (RANGE), .bad = true},
    {DARK, FLAT, .brightest = 7, .bad = true},
    {.lut = &tables.lut, FLAT, GAUSSIAN, .power = 1.5},
    {DARK, .power = 2, THRESHOLD (RELATIVE), .least = 0.7},
    {QUAD, DARK, FLAT, .quad_gain = 1.7},
    {GAUSSIAN, .sigma = 0.05},
    {.margin = 1, .brightest = 3, DARK},
    {.margin = 1},
    {.remove_tilt = true},
    /* about half of the cells are invalid */
    {.remove_tilt = true, .flux = 0.5},
    {.dark = &tables.quarters, .flat = &tables.ends, .bad = true},
    {.dark = &tables.sixteenths, FLAT}, /* of 8 bits: quarters */
    {.dark = &tables.sixteenths,
        .flat = &tables.ends,
        GAUSSIAN,
        THRESHOLD (ABSOLUTE)},
    {.dark = &tables.small, .flat = &tables.wide},
    {GAUSSIAN, .power = 1.7},
    {GAUSSIAN, .power = 1.7, .iterations = 3},
    {.weighting = IMK_SHCENTROID_WEIGHTING_TRACKING, .power = 3.3},
    {.power = 1.7, THRESHOLD (ABSOLUTE)},
    {QUAD, GAUSSIAN, .power = 1.3, THRESHOLD (ABSOLUTE)},
    {DARK, FLAT, GAUSSIAN, .power = 2.6, .bad = true, THRESHOLD (RANGE)},
};

static void
set_option (ImkShcentroidConfig *c, int option)
{
  const Tables *t = the_tables ();
  const Option *o = &options[option];
  double full = c->type == IMK_TYPE_U16 ? 65535 : 255;

#define SET(member) c->member = o->member ? o->member : c->member
#define SET_TABLE(member) c->member = o->member ? *o->member : c->member
  SET_TABLE (dark);
  SET_TABLE (flat);
  SET_TABLE (lut);
  if (c->dark == t->sixteenths && full == 255)
    c->dark = t->quarters;
  if (o->bad)
    c->bad = t->bad;
  SET (remove_tilt);
  SET (threshold_mode);
  SET (weighting);
  SET (estimator);
  SET (window);
  SET (brightest);
  SET (iterations);
  SET (margin);
  SET (power);
  SET (sigma);
  SET (quad_gain);
  if (o->least > 0)
    c->threshold_least = o->least * full;
  if (o->flux > 0)
    c->min_flux = o->flux * full * c->pitch_x * c->pitch_y;
  if (c->threshold_mode == IMK_SHCENTROID_THRESHOLD_ABSOLUTE)
    c->threshold = 0.31 * full;
  else if (c->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE)
    c->threshold = 0.123 * full;
  else if (c->threshold_mode)
    c->threshold = 0.3;
}

static bool
make_case (
    Case *k, size_t shape, ImkType type, int option, int action, int fields)
{
  const uint32_t *s = shapes[shape];

  memset (k, 0, sizeof (*k));
  k->config = grid_config (type, s[0], s[1], s[2], s[3]);
  k->config.sigma = s[2] / 5.0;
  k->config.gain = 2.5;
  k->config.read_noise = 1.5;
  k->config.saturation = 250;
  k->config.fields = fields;
  k->config.threshold_action = action;
  set_option (&k->config, option);
  if ((k->config.margin && s[2] < 3) || (k->config.lut && type == IMK_TYPE_F32))
    return false;
  k->out_type = (option + fields) % 3 ? IMK_TYPE_F64 : IMK_TYPE_F32;
  k->seed = shape + 31 * (unsigned) option;
  snprintf (k->name, sizeof (k->name),
      "%s %ux%u cells of %ux%u option %d action %d fields %d %s",
      imk_type_name (type), s[0], s[1], s[2], s[3], option, action, fields,
      imk_type_name (k->out_type));
  return true;
}

/* From 0 to 255, with fractions. */
static void
fill_floats (TestImage *in, uint64_t seed)
{
  for (uint32_t y = 0; y < in->image.height; y++)
    for (uint32_t x = 0; x < in->image.width; x++)
      sh_set (in, x, y, (double) (test_random (&seed) % 65536) / 257);
}

static TestImage
case_frame (const Case *k)
{
  const ImkShcentroidConfig *c = &k->config;
  TestImage in =
      test_image_new (c->type, c->width, c->height, 1, (uint32_t) k->seed % 7);

  if (c->type == IMK_TYPE_F32)
    fill_floats (&in, k->seed);
  else
    test_image_fill (
        &in, FILL_NOISE, c->type == IMK_TYPE_U8 ? 255 : 65535, k->seed);
  return in;
}

/* Does an action make a difference? */
static bool
has_threshold (int option)
{
  return (option >= 5 && option <= 9) || (option >= 17 && option <= 19) ||
         option == 21 || option == 24 || option == 30;
}

/* All fields of every option; the other two of every fourth. */
static void
for_each_case (void (*check) (const Case *k))
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32};

  for (size_t shape = 0; shape < N_SHAPES; shape++)
    for (int type = 0; type < 3; type++)
      for (int option = 0; option < N_OPTIONS; option++)
        for (int action = 0; action < 2; action++)
          for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES;
               fields++) {
            Case k;

            if ((action && !has_threshold (option)) ||
                (fields && option % 4 != (int) shape % 4) ||
                !test_takes_case (1))
              continue;
            if (make_case (&k, shape, types[type], option, action, fields))
              check (&k);
          }
}

static double
tolerance_of (const Case *k)
{
  return k->out_type == IMK_TYPE_F32 ? 3e-7 : 1e-10;
}

/* The mean slope of the valid cells. */
static void
expected_tilt (const Case *k, const TestImage *in, double tilt[2])
{
  uint32_t n = imk_shcentroid_n_cells (&k->config), n_valid = 0;
  double sum[2] = {0, 0};

  for (uint32_t i = 0; i < n; i++) {
    double row[N_FIELDS];

    imk_shcentroid_reference (&k->config, &in->image, i, row);
    if ((int) row[IMK_SHCENTROID_FLAGS] & IMK_SHCENTROID_INVALID_MASK)
      continue;
    n_valid++;
    for (int f = 0; f < 2; f++)
      sum[f] += row[IMK_SHCENTROID_DX + f];
  }
  for (int f = 0; f < 2; f++)
    tilt[f] = n_valid ? sum[f] / n_valid : 0;
}

static void
check_case (const Case *k)
{
  double tilt[2] = {0, 0};
  test_auto (TestImage) in = case_frame (k),
                        out = run_cpu (&k->config, &in, k->out_type);

  if (k->config.remove_tilt && k->config.fields != IMK_SHCENTROID_FIELDS_XY)
    expected_tilt (k, &in, tilt);
  sh_check_reference (&k->config, &in, &out, tolerance_of (k), tilt, k->name);
}

TEST (test_reference,
    "every option agrees with a reference that goes pixel by pixel",
    .cpu_only = true)
{
  for_each_case (check_case);
}

/* Darks and flats that look as if the CPU could keep them in less room
 * (calibration.c), but whose values it would then round otherwise. */
TEST (test_calibration_of_odd_numbers,
    "a calibration that cannot be packed agrees with the reference",
    .cpu_only = true)
{
  static const struct {
    ImkType type;
    uint32_t most; /* of the samples */
    float dark, step, flat;
  } cases[] = {
      {IMK_TYPE_U16, 20, 0x1p-20f, 1, 1}, /* counts above no whole count */
      /* more sixteenths of a count than float32 tells apart */
      {IMK_TYPE_U16, 65535, -999999.9375f, 0.0625f, 1},
      {IMK_TYPE_U8, 15, 0, 1, 0x1p-123f}, /* less is no normal number */
      {IMK_TYPE_U16, 15, 0, 1, 0x1p-123f},
  };
  float dark[80 * 40], flat[80 * 40];

  for (size_t k = 0; k < sizeof (cases) / sizeof (cases[0]); k++) {
    ImkShcentroidConfig c = grid_config (cases[k].type, 80, 40, 8, 8);
    test_auto (TestImage) in = test_image_new (c.type, 80, 40, 1, 0), out;
    char name[40];

    for (size_t i = 0; i < 80 * 40; i++) {
      dark[i] = cases[k].dark + cases[k].step * (float) (i * 7919 % 4);
      flat[i] = cases[k].flat;
    }
    test_image_fill (&in, FILL_NOISE, cases[k].most, k);
    c.fields = IMK_SHCENTROID_FIELDS_XY;
    c.dark = dark;
    c.flat = flat;
    out = run_cpu (&c, &in, IMK_TYPE_F64);
    snprintf (name, sizeof (name), "calibration %zu", k);
    sh_check_reference (&c, &in, &out, 1e-10, NULL, name);
  }
}

/* float32 frames of whole numbers: the same bits as those numbers in 16 bits,
 * where those are more than a plain centroid. */
static void
check_as_integers (const Case *k)
{
  Case floats = *k;
  TestImage in, same, a, b;

  if (k->config.type != IMK_TYPE_U16 || k->config.lut ||
      imk_shcentroid_n_cells (&k->config) > 400)
    return;
  floats.config.type = IMK_TYPE_F32;
  in = case_frame (k);
  same =
      test_image_new (IMK_TYPE_F32, k->config.width, k->config.height, 1, 12);
  for (uint32_t y = 0; y < k->config.height; y++)
    for (uint32_t x = 0; x < k->config.width; x++)
      sh_set (&same, x, y, sh_sample (&in, x, y));
  a = run_cpu (&k->config, &in, k->out_type);
  b = run_cpu (&floats.config, &same, k->out_type);
  if (k->config.dark || k->config.flat || k->config.bad ||
      k->config.brightest > 0 || k->config.weighting || k->config.power != 1 ||
      k->config.window || k->config.estimator || k->config.remove_tilt)
    test_image_same (&a, &b, k->name);
  else
    for (uint32_t i = 0; i < b.image.height; i++)
      for (uint32_t f = 0; f < b.image.width; f++)
        sh_check_value (k->name, i, f, sh_get (&b, i, f), sh_get (&a, i, f),
            tolerance_of (k));
  test_image_free (&in);
  test_image_free (&same);
  test_image_free (&a);
  test_image_free (&b);
}

TEST (test_floats_as_integers,
    "whole numbers in float32 give the bits of those in 16 bits",
    .cpu_only = true)
{
  for_each_case (check_as_integers);
}

static const float not_finite[] = {NAN, INFINITY, -INFINITY, 2e30f, -3e38f};
enum { N_NOT_FINITE = sizeof (not_finite) / sizeof (not_finite[0]) };

/* Where the sample of a float32 case is spoilt: in the first cell of all. */
static void
spoil (const Case *k, TestImage *in)
{
  uint32_t m = k->config.margin;

  sh_set (in, m + (uint32_t) k->seed % (uint32_t) (k->config.pitch_x - 2 * m),
      m + (uint32_t) k->seed / 7 % (uint32_t) (k->config.pitch_y - 2 * m),
      not_finite[k->seed % N_NOT_FINITE]);
}

/* One sample is not finite: its cell is flagged and reports nothing else, and
 * all others have the same bits as without. On a bad pixel it means nothing. */
static void
check_spoilt (const Case *case_of)
{
  Case k = *case_of;
  uint32_t n = imk_shcentroid_n_cells (&k.config), n_fields;
  bool slopes = k.config.fields == IMK_SHCENTROID_FIELDS_SLOPES, is_bad = false;
  TestImage in, good, bad;

  if (k.config.type != IMK_TYPE_F32 || k.config.remove_tilt)
    return;
  n_fields = k.config.fields == IMK_SHCENTROID_FIELDS_ALL ? N_FIELDS : 2;
  k.config.invalid_policy = IMK_SHCENTROID_INVALID_NAN;
  in = case_frame (&k);
  good = run_example_as (&k.config, &in, IMK_TYPE_F64);
  spoil (&k, &in);
  for (uint32_t y = 0; y < k.config.height; y++)
    for (uint32_t x = 0; x < k.config.width; x++)
      if (!(fabs (sh_sample (&in, x, y)) <= 255) && k.config.bad)
        is_bad = k.config.bad[y * k.config.width + x];
  bad = run_example_as (&k.config, &in, IMK_TYPE_F64);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t f = 0; f < n_fields; f++) {
      double was = slopes ? sh_get (&good, 0, i + f * n) : sh_get (&good, i, f);
      double is = slopes ? sh_get (&bad, 0, i + f * n) : sh_get (&bad, i, f);
      bool place = n_fields == 2 || f < 4 || f == IMK_SHCENTROID_VAR_X ||
                   f == IMK_SHCENTROID_VAR_Y;

      if (i > 0 || is_bad)
        test_check (memcmp (&was, &is, sizeof (is)) == 0,
            "%s: cell %u field %u is %.17g beside a spoilt one, else %.17g",
            k.name, i, f, is, was);
      else if (place)
        test_check (
            isnan (is), "%s: field %u of the spoilt cell is %g", k.name, f, is);
      else
        test_check (
            is == (f == IMK_SHCENTROID_FLAGS ? IMK_SHCENTROID_NOT_FINITE : 0),
            "%s: field %u of the spoilt cell is %g", k.name, f, is);
    }
  test_image_free (&in);
  test_image_free (&good);
  test_image_free (&bad);
}

TEST (test_not_finite,
    "a sample that is not finite spoils its cell and no other",
    .cpu_only = true)
{
  for_each_case (check_spoilt);
}

/* A dark of 0 and a flat of 1 say nothing; the sums do. */
TEST (test_same_as_plain, "a dark of 0 changes nothing")
{
  for (size_t shape = 0; shape < N_SHAPES; shape++) {
    test_autofree float *dark = table_new (MOST_PIXELS, 0, 0, 1);
    test_auto (TestImage) in, plain, chain;
    Case k;

    make_case (&k, shape, IMK_TYPE_U16, 7, 0, 0);
    in = case_frame (&k);
    plain = run_cpu (&k.config, &in, IMK_TYPE_F64);
    k.config.dark = dark;
    chain = run_cpu (&k.config, &in, IMK_TYPE_F64);
    for (uint32_t i = 0; i < imk_shcentroid_n_cells (&k.config); i++)
      for (uint32_t f = 0; f < N_FIELDS; f++)
        sh_near (&chain, i, f, sh_get (&plain, i, f),
            1e-12 * fmax (1, fabs (sh_get (&plain, i, f))));
  }
}

/* Every other frame is measured from the bottom up. */
TEST (test_second_frame, "the same frame again has the same bits")
{
  static const int options[] = {4, 10, 17, 18, 20};

  for (size_t shape = 0; shape < N_SHAPES; shape++)
    for (size_t i = 0; i < sizeof (options) / sizeof (options[0]); i++) {
      test_auto (TestImage) in, first, second;
      test_autoptr (ImkShcentroid) s = NULL;
      Case k;

      make_case (&k, shape, IMK_TYPE_U8, options[i], 0, 0);
      in = case_frame (&k);
      first = output_new (&k.config, IMK_TYPE_F64);
      second = output_new (&k.config, IMK_TYPE_F64);
      s = sh_new (IMK_BACKEND_CPU, &k.config);
      sh_process (s, &in, &first);
      sh_process (s, &in, &second);
      test_image_same (&first, &second, k.name);
    }
}

TEST (test_threads, "the result does not depend on the number of threads")
{
  Case k;
  TestImage in, one, many;

  make_case (&k, 2, IMK_TYPE_U8, 20, 0, 0);
  k.config = grid_config (IMK_TYPE_U8, 700, 700, 10, 10);
  set_option (&k.config, 20);
  in = case_frame (&k);
  one = run_cpu (&k.config, &in, IMK_TYPE_F64);
  for (uint32_t n = 0; n <= 5; n++) {
    k.config.n_threads = n;
    many = run_cpu (&k.config, &in, IMK_TYPE_F64);
    test_image_same (&one, &many, "several threads");
    test_image_free (&many);
  }
  test_image_free (&in);
  test_image_free (&one);
}

/* A map of the cells of a grid is added up cell by cell. */
static void
check_map_equals_grid (size_t shape, ImkType type, int option, int fields)
{
  const uint32_t *s = shapes[shape], columns = s[0] / s[2];
  ImkShcentroidCell cells[45];
  TestImage in, grid, map;
  Case k;

  make_case (&k, shape, type, option, 0, fields);
  in = case_frame (&k);
  grid = run_cpu (&k.config, &in, IMK_TYPE_F64);
  k.config.n_cells = imk_shcentroid_n_cells (&k.config);
  k.config.cells = cells;
  for (uint32_t i = 0; i < k.config.n_cells; i++)
    cells[i] = (ImkShcentroidCell){
        i % columns * s[2], i / columns * s[3], s[2], s[3], NAN, NAN, NAN, NAN};
  map = run_cpu (&k.config, &in, IMK_TYPE_F64);
  test_image_same (&grid, &map, k.name);
  test_image_free (&in);
  test_image_free (&grid);
  test_image_free (&map);
}

/* For the grid alone dark and flat are kept once more, in another order and in
 * less room where they fit it; then columns of up to 32 rows may be added up at
 * once. */
TEST (test_map_equals_grid, "a map of the cells of a grid gives the same bits")
{
  static const size_t some[] = {2, 3, 6};

  for (size_t i = 0; i < sizeof (some) / sizeof (some[0]); i++)
    for (int option = 0; option < N_OPTIONS; option++)
      for (int fields = 0; fields < 2; fields++) {
        check_map_equals_grid (some[i], IMK_TYPE_U8, option, fields);
        check_map_equals_grid (some[i], IMK_TYPE_U16, option, fields);
      }
}

/* Three cells: slopes 1, -0.5 and none. Who is in the mean, and from whom it is
 * taken, is what the policies differ in. */
TEST (test_tilt_policies,
    "tip and tilt are the mean of the cells that the policy counts")
{
  static const double expected[][3] = {
      {0.75, -0.75, 0},                        /* zero: mean 0.25 */
      {0.75, -0.75, -0.25},                    /* hold, nothing held */
      {0.75, -0.75, NAN},                      /* nan */
      {1 - 0.5 / 3, -0.5 - 0.5 / 3, -0.5 / 3}, /* reference */
  };
  TestImage in = test_image_new (IMK_TYPE_U8, 9, 3, 1, 0), out;
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, 9, 3, 3, 3);

  test_image_fill (&in, FILL_ZERO, 0, 0);
  sh_set (&in, 2, 1, 50);
  sh_set (&in, 3, 1, 50);
  sh_set (&in, 4, 1, 50);
  c.remove_tilt = true;
  for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++)
    for (int slopes = 0; slopes < 2; slopes++) {
      c.invalid_policy = policy;
      c.fields =
          slopes ? IMK_SHCENTROID_FIELDS_SLOPES : IMK_SHCENTROID_FIELDS_ALL;
      out = run_cpu (&c, &in, IMK_TYPE_F64);
      for (int i = 0; i < 3; i++) {
        double value =
            slopes ? sh_get (&out, 0, i) : sh_get (&out, i, IMK_SHCENTROID_DX);

        test_check (isnan (expected[policy][i])
                        ? isnan (value)
                        : fabs (value - expected[policy][i]) < 1e-12,
            "policy %d, cell %d: %g, expected %g", policy, i, value,
            expected[policy][i]);
      }
      test_image_free (&out);
    }
  test_image_free (&in);
}

/* --- spots ---------------------------------------------------------------- */

/* A Gaussian spot of @flux counts. */
static void
add_spot (double *frame, uint32_t width, uint32_t height, double x, double y,
    double sigma, double flux)
{
  for (uint32_t v = 0; v < height; v++)
    for (uint32_t u = 0; u < width; u++)
      frame[v * width + u] +=
          flux / (2 * M_PI * sigma * sigma) *
          exp (-((u - x) * (u - x) + (v - y) * (v - y)) / (2 * sigma * sigma));
}

static TestImage
spot_frame (uint32_t size, double x, double y, double sigma, double flux)
{
  test_autofree double *light = calloc ((size_t) size * size, sizeof (*light));
  TestImage in = test_image_new (IMK_TYPE_U16, size, size, 1, 0);

  add_spot (light, size, size, x, y, sigma, flux);
  for (uint32_t i = 0; i < size * size; i++)
    sh_set (&in, i % size, i / size, floor (light[i] + 0.5));
  return in;
}

/* Thomas et al. 2006: a fixed weight sees sigma_w^2 / (sigma_w^2 + sigma_s^2)
 * of a shift, and iterations all of it. */
TEST (
    test_weight_bias, "a fixed weight has its known bias, iterations have none")
{
  test_auto (TestImage) in = spot_frame (40, 20.9, 18.8, 2, 1e6), out;
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 40, 40, 40, 40);

  c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
  c.sigma = 3;
  out = run_cpu (&c, &in, IMK_TYPE_F64);
  sh_near (&out, 0, IMK_SHCENTROID_DX, 1.4 * 9 / 13, 2e-3);
  sh_near (&out, 0, IMK_SHCENTROID_DY, -0.7 * 9 / 13, 2e-3);
  test_image_free (&out);
  c.iterations = 30;
  out = run_cpu (&c, &in, IMK_TYPE_F64);
  sh_near (&out, 0, IMK_SHCENTROID_DX, 1.4, 2e-3);
  sh_near (&out, 0, IMK_SHCENTROID_DY, -0.7, 2e-3);
}

/* Example D, daoTools: noise 0..2, a window of 20x16 about (20, 20). */
TEST (
    test_brightest_of_a_noisy_spot, "the brightest pixels find a spot in noise")
{
  ImkShcentroidCell cell = {10, 12, 20, 16, 20, 20, NAN, NAN};
  test_autofree double *light = calloc (1600, sizeof (*light));
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, 40, 40, 1, 0), out;
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 40, 40, 40, 40);
  uint64_t seed = 5;

  add_spot (light, 40, 40, 21.3, 17.6, 1.5, 500 * 2 * M_PI * 1.5 * 1.5);
  for (uint32_t i = 0; i < 1600; i++)
    sh_set (&in, i % 40, i / 40, light[i] + test_random (&seed) % 3);
  c.cells = &cell;
  c.n_cells = 1;
  c.brightest = 25;
  out = run_example (&c, &in);
  sh_near (&out, 0, IMK_SHCENTROID_DX, 1.3, 0.05);
  sh_near (&out, 0, IMK_SHCENTROID_DY, -2.4, 0.05);
}

/* Spots of 8 bits that are too bright: far more pixels than are asked for share
 * the highest value. All of them count, less the next lower value. */
TEST (test_brightest_of_saturated_spots,
    "of saturated spots all brightest count, less the next lower value")
{
  enum { SIDE = 24 };
  double light[SIDE * SIDE];
  TestImage in = test_image_new (IMK_TYPE_U8, SIDE, SIDE, 1, 0), out;
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, SIDE, SIDE, SIDE, SIDE);
  uint64_t seed = 11;

  for (int round = 0; round < 200; round++) {
    double x = 9.5 + test_random (&seed) % 1000 * 0.005;
    double y = 9.5 + test_random (&seed) % 1000 * 0.005;
    double p = 0, px = 0, py = 0;
    int next = 0, n_full = 0;

    memset (light, 0, sizeof (light));
    add_spot (light, SIDE, SIDE, x, y, 2.5, 3000 * 2 * M_PI * 2.5 * 2.5);
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
      double v = fmin (floor (light[i] + test_random (&seed) % 4), 255);

      sh_set (&in, i % SIDE, i / SIDE, v);
      light[i] = v;
      n_full += v == 255;
      next = v < 255 && v > next ? (int) v : next;
    }
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
      if (light[i] > next) {
        p += light[i] - next;
        px += (light[i] - next) * (i % SIDE);
        py += (light[i] - next) * (i / SIDE);
      }
    test_check (n_full > 40, "only %d pixels are saturated", n_full);
    c.brightest = 1 + round % 40;
    out = run_example (&c, &in);
    sh_near (&out, 0, IMK_SHCENTROID_FLUX, p, 1e-9);
    sh_near (&out, 0, IMK_SHCENTROID_X, px / p, 1e-12);
    sh_near (&out, 0, IMK_SHCENTROID_Y, py / p, 1e-12);
    sh_near (&out, 0, IMK_SHCENTROID_FLAGS, 0, 0);
    test_image_free (&out);
  }
  test_image_free (&in);
}

/* Where a CPU looks powers up, at both ends of that, and beyond. */
TEST (test_power_of_any_size, "powers of small and large values are powers")
{
  static const double sizes[] = {1e-20, 0x1p-20, 0x1p-8, 1, 0x1p12, 1e20};

  for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++)
    for (double power = 1.1; power < 4; power += 0.7) {
      ImkShcentroidConfig c = grid_config (IMK_TYPE_F32, 45, 40, 9, 8);
      test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, 45, 40, 1, 0);
      test_auto (TestImage) out;

      c.power = power;
      fill_floats (&in, 3);
      for (uint32_t y = 0; y < 40; y++)
        for (uint32_t x = 0; x < 45; x++)
          sh_set (&in, x, y, sizes[i] * sh_sample (&in, x, y));
      out = run_cpu (&c, &in, IMK_TYPE_F64);
      sh_check_reference (
          &c, &in, &out, 1e-10, (double[]){0, 0}, "powers of any size");
    }
}

/* Sums of squares that need 31, 32 and more bits. */
TEST (test_squares_of_full_cells,
    "with power=2 cells without a dark pixel are found in their middle")
{
  for (ImkType type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
    for (uint32_t side = 38; side <= 120; side++) {
      ImkShcentroidConfig c = grid_config (type, 250, 130, side, side);
      TestImage in = test_image_new (type, 250, 130, 1, 0), out;

      c.power = 2;
      c.fields = IMK_SHCENTROID_FIELDS_XY;
      test_image_fill (&in, FILL_MAXIMUM, 0, 0);
      out = run_example (&c, &in);
      for (uint32_t i = 0; i < out.image.height; i++) {
        sh_near (&out, i, 0, i % c.columns * side + 0.5 * (side - 1), 1e-9);
        sh_near (&out, i, 1, i / c.columns * side + 0.5 * (side - 1), 1e-9);
      }
      test_image_free (&in);
      test_image_free (&out);
    }
}

/* No pixel is brighter than another: all count, as many as are asked for. */
TEST (test_brightest_of_an_even_cell,
    "in an even cell all pixels are the brightest")
{
  TestImage in = test_image_new (IMK_TYPE_U16, 80, 80, 1, 0), out;

  for (uint32_t side = 5; side <= 80; side += 75) { /* 80: read in rows */
    ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 80, 80, side, side);

    for (uint32_t i = 0; i < 80 * 80; i++)
      sh_set (&in, i % 80, i / 80, 700);
    c.columns = c.rows = 1;
    c.brightest = 3;
    out = run_example (&c, &in);
    sh_near (&out, 0, IMK_SHCENTROID_FLUX, 700.0 * side * side, 1e-9);
    sh_near (&out, 0, IMK_SHCENTROID_DX, 0, 1e-12);
    sh_near (&out, 0, IMK_SHCENTROID_FLAGS, 0, 0);
    test_image_free (&out);
    /* one pixel is darker: 0 is subtracted from the others */
    sh_set (&in, 1, 1, 0);
    out = run_example (&c, &in);
    sh_near (&out, 0, IMK_SHCENTROID_FLUX, 700.0 * (side * side - 1), 1e-9);
    test_image_free (&out);
  }
  test_image_free (&in);
}

/* Defocus: every spot moves outwards, the outer ones by more than a pitch. */
TEST (test_tracking, "tracking windows follow spots out of their cells")
{
  enum { SIZE = 300, PITCH = 30, N = 5 };
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, SIZE, SIZE, PITCH, PITCH);
  test_autofree double *light = malloc (SIZE * SIZE * sizeof (*light));
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, SIZE, SIZE, 1, 0),
                        out;
  test_autoptr (ImkShcentroid) s = NULL;

  c.x0 = c.y0 = (SIZE - N * PITCH) / 2;
  c.columns = c.rows = N;
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 5;
  c.window = IMK_SHCENTROID_WINDOW_TRACKING;
  out = output_new (&c, IMK_TYPE_F64);
  s = sh_new (IMK_BACKEND_CPU, &c);
  for (int frame = 0; frame <= 40; frame++) {
    double scale = 1 + frame * 0.015;

    memset (light, 0, SIZE * SIZE * sizeof (*light));
    for (int i = 0; i < N * N; i++)
      add_spot (light, SIZE, SIZE, 149.5 + (i % N - 2) * PITCH * scale,
          149.5 + (i / N - 2) * PITCH * scale, 2, 5000);
    for (uint32_t i = 0; i < SIZE * SIZE; i++)
      sh_set (&in, i % SIZE, i / SIZE, light[i]);
    sh_process (s, &in, &out);
    for (int i = 0; i < N * N; i++) {
      sh_near (
          &out, i, IMK_SHCENTROID_DX, (i % N - 2) * PITCH * (scale - 1), 0.03);
      sh_near (
          &out, i, IMK_SHCENTROID_DY, (i / N - 2) * PITCH * (scale - 1), 0.03);
      sh_near (&out, i, IMK_SHCENTROID_FLAGS, 0, 0);
    }
  }
  test_check (sh_get (&out, N * N - 1, IMK_SHCENTROID_DX) > PITCH,
      "the spots did not leave their cells");
}

/* Lit, then dark until the track is given up, then lit elsewhere. */
TEST (
    test_tracking_reset, "a track is given up after dark frames and by a reset")
{
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U16, 60, 60, 20, 20);
  test_auto (TestImage) lit = spot_frame (60, 34.5, 29.5, 1.2, 20000);
  test_auto (TestImage) dark = spot_frame (60, 30, 30, 1, 0);
  test_auto (TestImage) edge = spot_frame (60, 38, 29.5, 1.2, 20000), out;
  test_autoptr (ImkShcentroid) s = NULL;

  c.x0 = c.y0 = 20;
  c.columns = c.rows = 1;
  c.window = IMK_SHCENTROID_WINDOW_TRACKING;
  c.tracking_reset = 2;
  out = output_new (&c, IMK_TYPE_F64);
  s = sh_new (IMK_BACKEND_CPU, &c);
  sh_process (s, &lit, &out);
  sh_near (&out, 0, IMK_SHCENTROID_DX, 5, 1e-2);
  sh_process (s, &dark, &out);
  sh_process (s, &dark, &out);
  /* two dark frames: back at the reference, where 38 is cut by the cell */
  sh_process (s, &edge, &out);
  test_check (sh_get (&out, 0, IMK_SHCENTROID_X) < 37.9,
      "the window was not reset: %g", sh_get (&out, 0, IMK_SHCENTROID_X));
  sh_process (s, &edge, &out);
  sh_near (&out, 0, IMK_SHCENTROID_X, 38, 0.05);
  test_ok (imk_shcentroid_reset (s, NULL, test_new_error ()));
  sh_process (s, &edge, &out);
  test_check (sh_get (&out, 0, IMK_SHCENTROID_X) < 37.9, "a reset did nothing");
}

/* Settings whose sums are whole numbers. */
static void
set_whole (ImkShcentroidConfig *c, int option, uint32_t full)
{
  c->fields = (ImkShcentroidFields) (option % 3);
  c->invalid_policy = (ImkShcentroidInvalid) (option % 4);
  c->threshold = full / 2;
  if (option & 1)
    c->estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
  if (option & 2)
    c->window = IMK_SHCENTROID_WINDOW_TRACKING;
  if (option & 4)
    c->brightest = 1 + (uint32_t) option * 5 % 30;
  else if (option & 8)
    c->threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  if (option & 16)
    c->threshold_action = IMK_SHCENTROID_ACTION_KEEP;
  else
    c->remove_tilt = c->fields != IMK_SHCENTROID_FIELDS_XY && option & 8;
  /* without any of these the integers have a definition of their own */
  c->min_illumination = option & 32 || !(option & 7) ? 0.3 : 0;
}

/* Few values, so that many tie; with dark cells, which track and hold. */
static TestImage
whole_frame (ImkType type, uint32_t side, uint32_t full, uint64_t seed)
{
  TestImage in = test_image_new (type, side, side, 1, 5);

  for (uint32_t i = 0; i < side * side; i++) {
    bool lit = sh_uniform (&seed) < 0.2 && (i / 40 + seed) % 5;

    sh_set (
        &in, i % side, i / side, lit ? floor (sh_uniform (&seed) * full) : 0);
  }
  return in;
}

enum { N_WHOLE_FRAMES = 4 };

/* Without a look-up table these settings are added up as integers, with one
 * pixel by pixel in floating point. */
static void
check_whole (const TestImage frames[N_WHOLE_FRAMES], uint32_t full,
    double pitch, int option)
{
  ImkType type = frames->image.type;
  uint32_t side = frames->image.width, cells = (uint32_t) ((side - 1) / pitch);
  ImkShcentroidConfig c =
      sh_grid (type, side, side, 0.5, 1, pitch, pitch, cells, cells);
  test_autofree float *lut = malloc (65536 * sizeof (*lut));
  test_autoptr (ImkShcentroid) integers = NULL;
  test_autoptr (ImkShcentroid) reals = NULL;
  char name[64];

  for (uint32_t i = 0; i < 65536; i++)
    lut[i] = (float) i;
  set_whole (&c, option, full);
  integers = sh_new (IMK_BACKEND_CPU, &c);
  c.lut = lut;
  reals = sh_new (IMK_BACKEND_CPU, &c);
  snprintf (name, sizeof (name), "%s, %u pixels, pitch %g, option %d",
      type == IMK_TYPE_U8 ? "u8" : "u16", side, pitch, option);
  for (int frame = 0; frame < N_WHOLE_FRAMES; frame++) {
    test_auto (TestImage) a = output_new (&c, IMK_TYPE_F64);
    test_auto (TestImage) b = output_new (&c, IMK_TYPE_F64);

    sh_process (integers, &frames[frame], &a);
    sh_process (reals, &frames[frame], &b);
    test_image_same (&a, &b, name);
  }
}

/* Every option and pitch with the same frames, which take long to make. */
static void
check_whole_frames (ImkType type, uint32_t side, uint32_t full)
{
  static const double pitches[] = {3, 7.3, 10, 20, 150};
  TestImage frames[N_WHOLE_FRAMES];

  for (uint32_t i = 0; i < N_WHOLE_FRAMES; i++)
    frames[i] = whole_frame (type, side, full, 1 + i);
  for (int option = 0; option < 64; option++)
    for (int i = type == IMK_TYPE_U8; i < 5; i += 2)
      if ((type == IMK_TYPE_U8 || (full < 65535) == option % 2) &&
          pitches[i] <= side / 2 && test_takes_case (1))
        check_whole (frames, full, pitches[i], option);
  for (int i = 0; i < N_WHOLE_FRAMES; i++)
    test_image_free (&frames[i]);
}

TEST (test_whole_numbers, "whole numbers have the same sums as integers",
    .cpu_only = true)
{
  for (uint32_t side = 31; side < 700; side += 270) {
    check_whole_frames (IMK_TYPE_U8, side, 255);
    check_whole_frames (IMK_TYPE_U16, side, 4095);
    check_whole_frames (IMK_TYPE_U16, side, 65535);
  }
}

/* At the edge of the frame the window stops, and says so. */
TEST (test_tracking_edge, "a window stops at the edge of the frame")
{
  ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, 20, 20, 10, 10);
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U8, 20, 20, 1, 0);
  test_auto (TestImage) out = output_new (&c, IMK_TYPE_F64);
  test_autoptr (ImkShcentroid) s = NULL;

  test_image_fill (&in, FILL_ZERO, 0, 0);
  sh_set (&in, 1, 2, 100);
  c.window = IMK_SHCENTROID_WINDOW_TRACKING;
  s = sh_new (IMK_BACKEND_CPU, &c);
  sh_process (s, &in, &out);
  sh_near (&out, 0, IMK_SHCENTROID_FLAGS, 0, 0);
  sh_process (s, &in, &out);
  sh_near (&out, 0, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_EDGE, 0);
  sh_near (&out, 0, IMK_SHCENTROID_X, 1, 0);
  sh_near (&out, 3, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_NO_FLUX, 0);
}

/* --- noise: what is reported against what is found ------------------------ */

/* 400 cells with the same spot, each with its own noise: the variance over
 * them is that which they report. */
static void
check_noise (const ImkShcentroidConfig *base, const char *name)
{
  enum { CELLS = 20, PITCH = 16, SIZE = CELLS * PITCH };
  const double gain = 0.8, read = 3;
  ImkShcentroidConfig c = *base;
  double light[PITCH * PITCH] = {0}, sum = 0, square = 0, reported = 0;
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, SIZE, SIZE, 1, 0),
                        out;
  uint64_t seed = 77;

  c.gain = gain;
  c.read_noise = read;
  add_spot (light, PITCH, PITCH, 7.8, 7.3, 1.8, 12000);
  for (uint32_t y = 0; y < SIZE; y++)
    for (uint32_t x = 0; x < SIZE; x++) {
      double mean = light[y % PITCH * PITCH + x % PITCH] + 20;

      sh_set (&in, x, y,
          floor (mean + 100.5 +
                 sh_normal (&seed) * sqrt (mean / gain + read * read)));
    }
  out = run_cpu (&c, &in, IMK_TYPE_F64);
  for (uint32_t i = 0; i < CELLS * CELLS; i++)
    for (int f = 0; f < 2; f++) {
      double d = sh_get (&out, i, IMK_SHCENTROID_DX + f);

      reported += sh_get (&out, i, IMK_SHCENTROID_VAR_X + f);
      sum += f ? 0 : d;
      square += f ? 0 : d * d;
    }
  reported /= 2.0 * CELLS * CELLS;
  square = (square - sum * sum / (CELLS * CELLS)) / (CELLS * CELLS - 1);
  test_check (sqrt (reported / square) > 0.8 && sqrt (reported / square) < 1.25,
      "%s: rms %g, reported %g", name, sqrt (square), sqrt (reported));
}

TEST (test_noise, "variances are those of simulated noise")
{
  static float dark[320 * 320], flat[320 * 320];
  ImkShcentroidConfig base = grid_config (IMK_TYPE_U16, 320, 320, 16, 16), c;

  for (int i = 0; i < 320 * 320; i++) {
    dark[i] = 100;
    flat[i] = 0.5;
  }
  base.dark = dark;
  check_noise (&base, "centre of gravity");
  c = base;
  c.flat = flat;
  check_noise (&c, "with a flat");
  c = base;
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 60;
  check_noise (&c, "threshold");
  c = base;
  c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
  c.sigma = 3;
  check_noise (&c, "weight");
  c = base;
  c.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
  c.quad_gain = 2;
  check_noise (&c, "quad cell");
  c = base;
  c.power = 1.5;
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 60;
  check_noise (&c, "power");
}

/* --- real frames ---------------------------------------------------------- */

/* Whether the table subtracts the n-th value itself of the brightest pixels of
 * cell @i, where the next one is as bright: it knows no ties. Then the level
 * that the reference of all options finds is lower. */
static bool
has_tie (const ImkShcentroidConfig *c, const TestImage *in, uint32_t i)
{
  ImkShcentroidConfig more = *c;

  if (c->brightest == 0)
    return false;
  more.threshold_action = IMK_SHCENTROID_ACTION_KEEP;
  more.brightest++;
  return imk_shcentroid_reference_threshold (&more, &in->image, i) >
         imk_shcentroid_reference_threshold (c, &in->image, i);
}

/* The same of cell @i by the reference of all options. */
static double
expected_centre (const ImkShcentroidConfig *c, const TestImage *in, uint32_t i,
    uint32_t field)
{
  double row[N_FIELDS];

  imk_shcentroid_reference (c, &in->image, i, row);
  return row[field];
}

/* Compares with the columns @column and @column + 1 of the table, which are
 * empty where nothing was above the threshold. */
static void
check_columns (const char *name, const ImkShcentroidConfig *c,
    const TestImage *in, int column)
{
  test_auto (TestImage) out = run_cpu (c, in, IMK_TYPE_F64);
  FILE *table = sh_open_table (name);
  double v[CSV_COLUMNS];
  uint32_t i = 0, n = 0;

  for (; sh_read_cell (table, v); i++)
    for (uint32_t f = 0; f < 2 && !isnan (v[column + f]); f++) {
      double expected =
          has_tie (c, in, i) ? expected_centre (c, in, i, f) : v[column + f];

      sh_near (&out, i, f, expected, 1e-9);
      n += f;
    }
  fclose (table);
  test_check (i == 256 && n > 200, "%u cells, %u with a centroid", i, n);
}

static void
check_frame_file (const char *name)
{
  ImkShcentroidConfig c = sh_real_grid (), k = c;
  test_auto (TestImage) in = sh_load_frame (name);

  k.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE;
  k.threshold = 0.3;
  check_columns (name, &k, &in, CSV_RELATIVE_X);
  k = c;
  k.brightest = 40;
  check_columns (name, &k, &in, CSV_BRIGHTEST_X);
}

TEST (test_lamp, "the lamp frame has the thresholded centroids of the table")
{
  check_frame_file ("f5_hecto_ref");
}

TEST (test_star, "the star frame has the thresholded centroids of the table")
{
  check_frame_file ("auto_wfs_0037_ave");
}

/* --- errors --------------------------------------------------------------- */

#define REFUSED(words, ...) \
  do { \
    ImkShcentroidConfig c = grid_config (IMK_TYPE_U8, 70, 50, 10, 10); \
    ImkShcentroid *s = NULL; \
    __VA_ARGS__; \
    test_error ( \
        imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()), \
        IMK_ERROR_CONFIG, words); \
    test_check (s == NULL, "the object was touched"); \
  } while (0)

TEST (test_errors, "bad parameters and calibrations are refused by name")
{
  float numbers[70 * 50] = {0};
  float lut[256] = {0};

  numbers[70 * 3 + 5] = NAN;
  REFUSED ("look-up table for frames of f32", c.type = IMK_TYPE_F32,
      c.lut = the_tables ()->lut);
  REFUSED ("The dark has the value nan at (5, 3)", c.dark = numbers);
  numbers[70 * 3 + 5] = -1;
  REFUSED ("The flat has the value -1 at (5, 3)", c.flat = numbers);
  numbers[70 * 3 + 5] = INFINITY;
  REFUSED ("The flat has the value inf", c.flat = numbers);
  lut[255] = -INFINITY;
  REFUSED ("The look-up table has the value -inf at (255, 0)", c.lut = lut);
  REFUSED ("margin is 5 pixels", c.margin = 5);
  REFUSED ("margin is 4294967295 pixels", c.margin = UINT32_MAX);
  REFUSED (
      "leaves nothing of cell 0 inside the frame", c.margin = 3, c.x0 = -8);
  REFUSED ("threshold-least is -1", c.threshold_least = -1);
  REFUSED ("weighting is 3", c.weighting = 3);
  REFUSED ("sigma is 0 pixels", c.sigma = 0);
  REFUSED ("iterations is 0", c.iterations = 0);
  REFUSED ("power is nan", c.power = NAN);
  REFUSED ("power is 0.5", c.power = 0.5);
  REFUSED ("estimator is 9", c.estimator = 9);
  REFUSED ("quad-gain is -1 pixels", c.quad_gain = -1);
  REFUSED ("window is 2", c.window = 2);
  REFUSED ("tracking-gain is 1.5", c.tracking_gain = 1.5);
}

/* --- two outputs ---------------------------------------------------------- */

static void
process_both (ImkBackend backend, ImkShcentroid *s, const TestImage *in,
    TestImage *out, TestImage *rounded, TestImage *flags)
{
  bool host = backend == IMK_BACKEND_CPU;
  ImkImage from = host ? in->image : test_to_device (in);
  ImkImage to = host ? out->image : test_to_device (out);
  ImkImage also = host ? rounded->image : test_to_device (rounded);
  ImkImage bytes = host ? flags->image : test_to_device (flags);

  test_ok (imk_shcentroid_process_flags (
      s, &from, &to, &also, &bytes, NULL, test_new_error ()));
  if (host)
    return;
  test_from_device (&to, out);
  test_from_device (&also, rounded);
  test_from_device (&bytes, flags);
  test_device_free (&from);
  test_device_free (&to);
  test_device_free (&also);
  test_device_free (&bytes);
}

/* The array of flags is the column of FIELDS_ALL, without it those of an
 * invalid cell. */
static void
check_flags (const Case *k, const TestImage *all, const TestImage *flags)
{
  bool whole = k->config.fields == IMK_SHCENTROID_FIELDS_ALL;
  const uint8_t *found = flags->image.data;

  for (uint32_t i = 0; i < flags->image.width; i++) {
    const uint8_t *row =
        (const uint8_t *) all->image.data + i * all->image.stride;
    uint32_t expected = (uint32_t) ((const double *) row)[IMK_SHCENTROID_FLAGS];

    expected &= whole ? 0xff : IMK_SHCENTROID_INVALID_MASK;
    if (found[i] != expected)
      test_check (false, "%s: cell %u has flags %u, expected %u", k->name, i,
          found[i], expected);
  }
}

/* Two frames, as cells hold and windows track. The CPU with one output has what
 * both are compared with: the backends agree. */
static void
check_both (ImkBackend backend, const Case *k)
{
  const ImkShcentroidConfig *c = &k->config;
  ImkShcentroidConfig all = *c;
  ImkShcentroid *s[4] = {sh_new (IMK_BACKEND_CPU, c),
      sh_new (IMK_BACKEND_CPU, c), sh_new (backend, c)};
  test_auto (TestImage) flags =
      test_image_new (IMK_TYPE_U8, imk_shcentroid_n_cells (c), 1, 1, 0);
  test_auto (TestImage) rows;
  test_auto (TestImage) f32 = output_new (c, IMK_TYPE_F32);
  test_auto (TestImage) f64 = output_new (c, IMK_TYPE_F64);
  test_auto (TestImage) rounded = output_new (c, IMK_TYPE_F32);
  test_auto (TestImage) out = output_new (c, IMK_TYPE_F64);

  all.fields = IMK_SHCENTROID_FIELDS_ALL;
  rows = output_new (&all, IMK_TYPE_F64);
  s[3] = sh_new (IMK_BACKEND_CPU, &all);
  for (int frame = 0; frame < 2; frame++) {
    Case next = *k;
    test_auto (TestImage) in;

    next.seed += 7 * (unsigned) frame;
    in = case_frame (&next);
    sh_process (s[0], &in, &f32);
    sh_process (s[1], &in, &f64);
    sh_process (s[3], &in, &rows);
    process_both (backend, s[2], &in, &out, &rounded, &flags);
    check_flags (k, &rows, &flags);
    test_image_check_canaries (&flags, k->name);
    test_image_same (&f32, &rounded, k->name);
    test_image_same (&f64, &out, k->name);
    test_image_check_canaries (&rounded, k->name);
    test_image_check_canaries (&out, k->name);
  }
  for (int i = 0; i < 4; i++)
    imk_shcentroid_free (s[i]);
}

/* The options of the chain, under every policy for cells that are invalid, of
 * which there are some in every other case; none of the options; correlation,
 * which looks for the first cell of the frame. */
static void
check_all_both (ImkBackend backend, const Case *of)
{
  Case k = *of;
  ImkShcentroidConfig *c = &k.config;
  double full = c->type == IMK_TYPE_U16 ? 65535 : 255;
  uint32_t turn = (uint32_t) k.seed;

  c->invalid_policy = turn % 4;
  if (turn % 2)
    c->min_flux = 0.5 * full * c->pitch_x * c->pitch_y;
  check_both (backend, &k);
  k = *of;
  if (turn % 3 || c->margin || c->pitch_x < 9)
    return;
  c->estimator = IMK_SHCENTROID_ESTIMATOR_CORRELATION;
  c->template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  c->template_cell = 0;
  c->template_margin = 2;
  c->search_range = 2;
  c->min_correlation = 0.05;
  c->remove_tilt = turn % 2;
  if (c->width < 200)
    check_both (backend, &k);
}

static void
check_both_of (ImkBackend backend, void (*check) (const Case *k))
{
  for (size_t shape = 0; shape < N_SHAPES; shape++)
    for (int type = IMK_TYPE_U8; type <= IMK_TYPE_U16; type++)
      for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++)
        for (int policy = 0; policy < 4; policy++) {
          Case k;

          if (!test_takes_case (1))
            continue;
          make_case (&k, shape, type, N_OPTIONS, 0, fields);
          k.config.invalid_policy = policy;
          k.config.threshold_mode =
              policy % 2 ? IMK_SHCENTROID_THRESHOLD_RANGE : 0;
          k.config.threshold = 0.3;
          check_both (backend, &k);
        }
  for_each_case (check);
}

static void
check_both_on_cpu (const Case *k)
{
  check_all_both (IMK_BACKEND_CPU, k);
}

static void
check_both_on_cuda (const Case *k)
{
  check_all_both (IMK_BACKEND_CUDA, k);
}

TEST (test_both,
    "two outputs have the bytes of one each, at every level of the CPU",
    .cpu_only = true)
{
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++) {
    ImkCpuLevel selected;

    setenv ("IMK_CPU", imk_cpu_level_name (level), 1);
    if (imk_cpu_level (&selected, NULL) == IMK_OK)
      check_both_of (IMK_BACKEND_CPU, check_both_on_cpu);
  }
  unsetenv ("IMK_CPU");
}

TEST (test_both_on_cuda, "two outputs have the bytes of one each on CUDA")
{
  test_need_cuda ();
  check_both_of (IMK_BACKEND_CUDA, check_both_on_cuda);
}

/* --- CPU = CUDA ----------------------------------------------------------- */

/* What tracking has learned from the first frame shows in the second, which
 * may be copied to the device first. */
static void
check_parity (const Case *k)
{
  test_auto (TestImage) in = case_frame (k);

  sh_check_parity (
      &k->config, &in, k->out_type, padding_of (&k->config), 2, true, k->name);
}

TEST (test_parity, "CPU and CUDA agree bit for bit")
{
  test_need_cuda ();
  for_each_case (check_parity);
}

/* The same bits too where a sample is not finite. */
static void
check_spoilt_parity (const Case *k)
{
  TestImage in;

  if (k->config.type != IMK_TYPE_F32)
    return;
  in = case_frame (k);
  spoil (k, &in);
  sh_check_parity (
      &k->config, &in, k->out_type, padding_of (&k->config), 1, false, k->name);
  test_image_free (&in);
}

TEST (test_spoilt_parity,
    "CPU and CUDA agree bit for bit on samples that are not finite")
{
  test_need_cuda ();
  for_each_case (check_spoilt_parity);
}

/* Cells of all sizes, overlapping, clipped, with thresholds of their own. */
TEST (test_map_parity, "CPU and CUDA agree bit for bit on maps")
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32};
  ImkShcentroidCell cells[60];

  test_need_cuda ();
  for (int option = 0; option < N_OPTIONS; option++)
    for (int high = 0; high < 2; high++) {
      Case k;

      if (!make_case (&k, 6, types[option % 3], option, 0, 0))
        make_case (&k, 6, IMK_TYPE_U8, option, 0, 0);
      k.config.cells = cells;
      k.config.n_cells = 60;
      for (int i = 0; i < 60; i++)
        cells[i] = (ImkShcentroidCell){i % 10 * 31 - 2.5, i / 10 * 14 - 1.5,
            5 + i % 40, high && i % 7 == 0 ? 80 : 4 + i % 13, NAN, NAN,
            i % 3 ? NAN : 900.0 * i, i % 2 ? NAN : 0.01 * i};
      check_parity (&k);
    }
}

/* A grid of @columns x @rows, in turns with references of its own, or, with
 * @overlap, a map of such cells, which overlap, reach beyond the frame and have
 * thresholds of their own. */
static void
check_small_parity (Case *k, const double pitch[2], uint32_t columns,
    uint32_t rows, bool overlap)
{
  ImkShcentroidConfig *c = &k->config;
  test_autofree ImkShcentroidCell *cells =
      calloc (columns * rows, sizeof (*cells));
  test_autofree double *references =
      calloc (2 * columns * rows, sizeof (*references));

  c->pitch_x = pitch[0];
  c->pitch_y = pitch[1];
  c->columns = columns;
  c->rows = rows;
  c->invalid_policy = k->seed % 4;
  for (uint32_t i = 0; overlap && i < columns * rows; i++)
    cells[i] = (ImkShcentroidCell){0.9 * pitch[0] * (i % columns),
        pitch[1] * (uint32_t) (i / columns) - 1, pitch[0], pitch[1], NAN, NAN,
        i % 3 ? NAN : 9.0 * i, i % 2 ? NAN : 0.01 * (i % 90)};
  if (overlap) {
    c->cells = cells;
    c->n_cells = columns * rows;
  }
  if (k->seed % 3 == 0) {
    imk_shcentroid_get_references (c, references);
    for (uint32_t i = 0; i < 2 * columns * rows; i++)
      references[i] += 0.1 * (i % 7);
    c->references = references;
  }
  check_parity (k);
}

/* Cells of up to 4 pixels, x and y only, have kernels of their own. */
TEST (test_small_parity, "CPU and CUDA agree bit for bit on small cells")
{
  static const double pitches[][2] = {
      {3, 3}, {4, 4}, {2, 2}, {1, 4}, {3.37, 2.6}, {5, 4}};

  test_need_cuda ();
  for (size_t i = 0; i < sizeof (pitches) / sizeof (pitches[0]); i++)
    for (int option = 0; option < N_OPTIONS; option++)
      for (int fields = IMK_SHCENTROID_FIELDS_XY;
           fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++)
        for (int kind = 0; kind < 2; kind++) {
          ImkType type = option % 2 == kind ? IMK_TYPE_U8 : IMK_TYPE_U16;
          Case k;

          if (!make_case (&k, 1, type, option, option % 3 == 0, fields) ||
              (k.config.margin && fmin (pitches[i][0], pitches[i][1]) < 3) ||
              (k.config.remove_tilt && fields == IMK_SHCENTROID_FIELDS_XY))
            continue;
          k.seed += i;
          k.config.width = 600;
          k.config.height = 20;
          check_small_parity (&k, pitches[i], (uint32_t) (600 / pitches[i][0]),
              (uint32_t) (16 / pitches[i][1]), kind == 1);
        }
}

TEST (test_examples_on_cuda, "CUDA has the worked examples")
{
  test_need_cuda ();
  backend_of_examples = IMK_BACKEND_CUDA;
  test_example_b ();
  test_quad_cell ();
  test_dark_cell ();
  test_no_light ();
  test_brightest_of_a_noisy_spot ();
  test_brightest_of_saturated_spots ();
  test_brightest_of_an_even_cell ();
  test_not_finite ();
}

/* One pixel has nearly all the weighted light, and one at the threshold all the
 * noise: in y the sums about the corner cancel. @rest: of the light elsewhere
 */
static void
check_certainty (double rest)
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, 40, 40, 1, 0);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_F64, N_FIELDS, 1, 1, 0);
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_F32, 40, 40, 0, 0, 40, 40, 1, 1);
  test_autoptr (ImkShcentroid) s = NULL;
  double row[N_FIELDS], found;

  test_image_fill (&in, FILL_ZERO, 0, 0);
  sh_set (&in, 20, 18, 100); /* where the weight is */
  sh_set (&in, 25, 18, 200);
  sh_set (&in, 25, 24, rest);
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  c.threshold = 100;
  c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
  c.sigma = 0.55;
  c.read_noise = 1.5;
  test_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_shcentroid_process (
      s, &in.image, &out.image, NULL, test_new_error ()));
  imk_shcentroid_reference (&c, &in.image, 0, row);
  found = sh_get (&out, 0, IMK_SHCENTROID_VAR_Y);
  test_check (sh_get (&out, 0, IMK_SHCENTROID_FLAGS) == 0, "it is not valid");
  test_check (row[IMK_SHCENTROID_VAR_Y] > 1 &&
                  found >= 0.999 * row[IMK_SHCENTROID_VAR_Y],
      "%g: the variance is %g, at least %g expected", rest, found,
      row[IMK_SHCENTROID_VAR_Y]);
}

TEST (test_no_certainty, "a variance that rounding takes away is not 0")
{
  for (double rest = 110; rest < 300; rest += 7)
    check_certainty (rest);
}
