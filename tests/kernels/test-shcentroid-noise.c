/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Simulated spots of known places, with photon and read noise: what each
 * estimator is off by, how much it scatters, and what it says about that.
 * With a file name it writes the table that tests/data/noise.py makes a picture
 * of; docs/explanation/shcentroid-noise.md has both. */
#include "sh-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PITCH = 16,
  SIDE = 36, /* cells */
  N_CELLS = SIDE * SIDE,
  N_PLACES = 9, /* in a cell, of which there are as many alike */
  N_ALIKE = N_CELLS / N_PLACES,
  SIZE = SIDE * PITCH,
  TEMPLATE = 11,
};

static const double spot_sigma = 1.6, offset = 100, read_noise = 3;
static const double fluxes[] = {300, 1000, 3000, 10000, 30000, 100000};
enum { N_FLUXES = sizeof (fluxes) / sizeof (fluxes[0]) };

/* --- frames --------------------------------------------------------------- */

static double
uniform (uint64_t *seed)
{
  return ((double) (test_random (seed) >> 11) + 0.5) / 9007199254740992.0;
}

static double
normal (uint64_t *seed)
{
  double u = uniform (seed), v = uniform (seed);

  return sqrt (-2 * log (u)) * cos (2 * M_PI * v);
}

static double
poisson (double mean, uint64_t *seed)
{
  double product = uniform (seed), least = exp (-mean);
  int n = 0;

  if (mean > 50)
    return fmax (0, floor (mean + sqrt (mean) * normal (seed) + 0.5));
  for (; product > least; n++)
    product *= uniform (seed);
  return n;
}

/* The light of one pixel, all of its area, of a spot of flux 1. */
static double
pixel_of_spot (double x, double y)
{
  const double root = spot_sigma * sqrt (2);

  return 0.25 * (erf ((x + 0.5) / root) - erf ((x - 0.5) / root)) *
         (erf ((y + 0.5) / root) - erf ((y - 0.5) / root));
}

/* From the middle of the cell, in pixels: all over the middle four pixels. */
static void
place_of (uint32_t cell, double *x, double *y)
{
  uint32_t place = cell % N_PLACES;

  *x = -1.83 + 0.46 * place;
  *y = 1.31 - 0.46 * (place * 4 % N_PLACES);
}

/* 1 electron a count. */
static TestImage
make_frame (double flux, uint64_t seed)
{
  TestImage in = test_image_new (IMK_TYPE_U16, SIZE, SIZE, 1, 0);

  for (uint32_t y = 0; y < SIZE; y++)
    for (uint32_t x = 0; x < SIZE; x++) {
      uint16_t *row =
          (uint16_t *) ((uint8_t *) in.image.data + y * in.image.stride);
      double dx, dy, light;

      place_of (y / PITCH * SIDE + x / PITCH, &dx, &dy);
      light = flux * pixel_of_spot (x % PITCH - 7.5 - dx, y % PITCH - 7.5 - dy);
      row[x] = (uint16_t) fmax (0, floor (poisson (light, &seed) + offset +
                                          read_noise * normal (&seed) + 0.5));
    }
  return in;
}

/* --- estimators ----------------------------------------------------------- */

static float dark[SIZE * SIZE], pattern[TEMPLATE * TEMPLATE];

static void
set_cog (ImkShcentroidConfig *c)
{
  (void) c;
}

static void
set_subtract (ImkShcentroidConfig *c)
{
  c->threshold_mode = IMK_SHCENTROID_THRESHOLD_NOISE;
  c->threshold = 3;
}

static void
set_keep (ImkShcentroidConfig *c)
{
  set_subtract (c);
  c->threshold_action = IMK_SHCENTROID_ACTION_KEEP;
}

static void
set_relative (ImkShcentroidConfig *c)
{
  c->threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE;
  c->threshold = 0.2;
}

static void
set_range (ImkShcentroidConfig *c)
{
  set_relative (c);
  c->threshold_mode = IMK_SHCENTROID_THRESHOLD_RANGE;
  c->threshold_least = 3 * read_noise; /* or noise alone has a range */
}

static void
set_power (ImkShcentroidConfig *c)
{
  set_subtract (c);
  c->power = 1.5;
}

static void
set_brightest (ImkShcentroidConfig *c)
{
  c->brightest = 20;
}

static void
set_weight (ImkShcentroidConfig *c)
{
  c->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
  c->sigma = 2.5;
}

static void
set_iterative (ImkShcentroidConfig *c)
{
  set_weight (c);
  c->iterations = 10;
}

/* For small shifts all light in one half is sigma sqrt (pi / 2) away. */
static void
set_quad (ImkShcentroidConfig *c)
{
  c->estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
  c->quad_gain = spot_sigma * sqrt (M_PI / 2);
}

/* As bright as the spots, which difference asks for. */
static void
make_pattern (double flux)
{
  for (int i = 0; i < TEMPLATE * TEMPLATE; i++)
    pattern[i] = (float) (flux * pixel_of_spot (i % TEMPLATE - TEMPLATE / 2,
                                     i / TEMPLATE - TEMPLATE / 2));
}

static void
set_correlation (ImkShcentroidConfig *c)
{
  c->estimator = IMK_SHCENTROID_ESTIMATOR_CORRELATION;
  c->templates = pattern;
  c->n_templates = 1;
  c->template_width = c->template_height = TEMPLATE;
  c->min_correlation = 0;
}

static void
set_covariance (ImkShcentroidConfig *c)
{
  set_correlation (c);
  c->correlation = IMK_SHCENTROID_CORRELATION_COVARIANCE;
}

static void
set_difference (ImkShcentroidConfig *c)
{
  set_correlation (c);
  c->correlation = IMK_SHCENTROID_CORRELATION_DIFFERENCE;
}

/* @least: the flux from which the variance agrees to 20 %. It is a first order
 * in the noise, of pixels that count for certain: at low flux pixels jump over
 * a threshold, most of all where they jump from 0 to T (keep).
 * @bias: pixels rms that it is off at 100000 electrons, at most */
typedef struct Estimator {
  const char *name;
  void (*set) (ImkShcentroidConfig *config);
  double least, bias;
} Estimator;

static const Estimator estimators[] = {
    {"cog", set_cog, 300, 0.002},
    {"threshold subtract", set_subtract, 1000, 0.002},
    {"threshold keep", set_keep, 10000, 0.002},
    {"relative", set_relative, 1000, 0.02},
    {"range", set_range, 1000, 0.02},
    {"power", set_power, 1000, 0.02},
    {"brightest", set_brightest, 1000, 0.02},
    {"weight", set_weight, 300, 0.5}, /* drawn to the middle */
    {"iterative", set_iterative, 300, 0.002},
    {"quad", set_quad, 300, 0.3}, /* not linear */
    {"correlation", set_correlation, 300, 0.01},
    {"covariance", set_covariance, 300, 0.01},
    {"difference", set_difference, 300, 0.01},
};
enum { N_ESTIMATORS = sizeof (estimators) / sizeof (estimators[0]) };

/* Of both axes; pixels. */
typedef struct Figures {
  double bias, rms, reported;
  uint32_t n_invalid;
} Figures;

static Figures
figures_of (const TestImage *out)
{
  double sum[N_PLACES][2] = {{0}}, square[N_PLACES][2] = {{0}};
  double n[N_PLACES] = {0}, variance = 0, reported = 0, bias = 0;
  Figures f = {.n_invalid = 0};

  for (uint32_t i = 0; i < N_CELLS; i++) {
    uint32_t place = i % N_PLACES;
    double truth[2];

    place_of (i, &truth[0], &truth[1]);
    if ((uint32_t) sh_get (out, i, IMK_SHCENTROID_FLAGS)) {
      f.n_invalid++;
      continue;
    }
    n[place]++;
    for (int k = 0; k < 2; k++) {
      double d = sh_get (out, i, IMK_SHCENTROID_DX + k) - truth[k];

      sum[place][k] += d;
      square[place][k] += d * d;
      reported += sh_get (out, i, IMK_SHCENTROID_VAR_X + k);
    }
  }
  for (int place = 0; place < N_PLACES; place++)
    for (int k = 0; k < 2; k++) {
      double mean = sum[place][k] / n[place];
      double spread =
          (square[place][k] - n[place] * mean * mean) / (n[place] - 1);

      variance += spread / (2 * N_PLACES);
      /* the mean scatters, too */
      bias += (mean * mean - spread / n[place]) / (2 * N_PLACES);
    }
  f.bias = sqrt (fmax (0, bias));
  f.rms = sqrt (variance);
  f.reported = sqrt (reported / (2.0 * (N_CELLS - f.n_invalid)));
  return f;
}

static Figures
measure (const Estimator *e, const TestImage *in)
{
  ImkShcentroidConfig c =
      sh_grid (IMK_TYPE_U16, SIZE, SIZE, 0, 0, PITCH, PITCH, SIDE, SIDE);
  test_auto (TestImage) out;
  Figures f;

  c.dark = dark;
  c.read_noise = read_noise;
  e->set (&c);
  out = sh_run (IMK_BACKEND_CPU, &c, in, IMK_TYPE_F64, 0);
  f = figures_of (&out);
  return f;
}

static Figures table[N_ESTIMATORS][N_FLUXES];

TEST (test_table, "every estimator measures simulated spots")
{
  for (uint32_t i = 0; i < SIZE * SIZE; i++)
    dark[i] = (float) offset;
  for (int k = 0; k < N_FLUXES; k++) {
    test_auto (TestImage) in = make_frame (fluxes[k], 1 + (uint64_t) k);

    make_pattern (fluxes[k]);
    for (int i = 0; i < N_ESTIMATORS; i++) {
      Figures f = table[i][k] = measure (&estimators[i], &in);

      printf ("# %6g electrons, %-18s bias %.4f, rms %.4f, reported %.4f, "
              "%u invalid\n",
          fluxes[k], estimators[i].name, f.bias, f.rms, f.reported,
          f.n_invalid);
      test_check (isfinite (f.rms) && isfinite (f.reported),
          "%s at %g electrons is no number", estimators[i].name, fluxes[k]);
    }
  }
}

/* 1296 cells know an rms to 2 %. */
TEST (test_variances, "variances are those of the spots, to 20 %")
{
  for (int i = 0; i < N_ESTIMATORS; i++)
    for (int k = 0; k < N_FLUXES; k++) {
      const Estimator *e = &estimators[i];
      double ratio = table[i][k].reported / table[i][k].rms;

      if (fluxes[k] >= e->least)
        test_check (ratio > 1 / 1.2 && ratio < 1.2,
            "%s at %g electrons: rms %g, reported %g", e->name, fluxes[k],
            table[i][k].rms, table[i][k].reported);
    }
}

TEST (test_biases, "biases are small where they should be")
{
  for (int i = 0; i < N_ESTIMATORS; i++)
    test_check (table[i][N_FLUXES - 1].bias < estimators[i].bias,
        "%s is off by %g", estimators[i].name, table[i][N_FLUXES - 1].bias);
}

/* --- what cannot be measured, and what can but badly ---------------------- */

enum { CLIPPED, DARK, NOISE, SATURATED, DEAD, GOOD, N_KINDS };

/* A row of cells, of which the first reaches beyond the frame. */
static void
check_kinds (const Estimator *e, ImkShcentroidInvalid policy)
{
  enum { CUT = 5, WIDTH = N_KINDS * PITCH - CUT };
  static const uint32_t invalid = IMK_SHCENTROID_INVALID_MASK;
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, WIDTH, PITCH, 1, 0);
  test_auto (TestImage) out =
      test_image_new (IMK_TYPE_F64, IMK_SHCENTROID_N_FIELDS, N_KINDS, 1, 0);
  uint8_t bad[WIDTH * PITCH] = {0};
  test_autoptr (ImkShcentroid) s = NULL;
  ImkShcentroidConfig c;
  uint64_t seed = 3;

  for (uint32_t y = 0; y < PITCH; y++)
    for (uint32_t x = 0; x < WIDTH; x++) {
      uint32_t kind = (x + CUT) / PITCH, u = (x + CUT) % PITCH;
      double light = 3000 * pixel_of_spot (u - 7.5 - 1, y - 7.5 + 1);
      uint16_t *row =
          (uint16_t *) ((uint8_t *) in.image.data + y * in.image.stride);

      if (kind == DARK || kind == NOISE)
        light = kind == NOISE ? read_noise * normal (&seed) : 0;
      if (kind == SATURATED)
        light = fmin (100 * light, 4095 - offset);
      bad[y * WIDTH + x] = kind == DEAD;
      row[x] = (uint16_t) floor (light + offset + 0.5);
    }
  imk_shcentroid_config_init (&c);
  c.width = WIDTH;
  c.height = PITCH;
  c.type = IMK_TYPE_U16;
  c.x0 = -CUT;
  c.pitch_x = c.pitch_y = PITCH;
  c.columns = N_KINDS;
  c.n_threads = 1;
  c.dark = dark;
  c.bad = bad;
  c.read_noise = read_noise;
  c.saturation = 4095;
  c.min_flux = 250;
  c.invalid_policy = policy;
  e->set (&c);
  test_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_shcentroid_process (
      s, &in.image, &out.image, NULL, test_new_error ()));
  for (uint32_t i = 0; i < N_KINDS; i++) {
    uint32_t flags = (uint32_t) sh_get (&out, i, IMK_SHCENTROID_FLAGS);
    /* nowhere is there little difference to so bright a cell */
    bool nothing = i == DARK || i == NOISE || i == DEAD ||
                   (i == SATURATED &&
                       c.correlation == IMK_SHCENTROID_CORRELATION_DIFFERENCE);

    test_check (!!(flags & invalid) == nothing &&
                    !!(flags & IMK_SHCENTROID_CLIPPED) == (i == CLIPPED) &&
                    !!(flags & IMK_SHCENTROID_SATURATED) == (i == SATURATED),
        "%s: the flags of cell %u are %u", e->name, i, flags);
    for (uint32_t f = 0; f < IMK_SHCENTROID_N_FIELDS; f++) {
      double value = sh_get (&out, i, f);
      bool may = nothing && policy == IMK_SHCENTROID_INVALID_NAN;

      test_check (isfinite (value) || (may && isnan (value)),
          "%s: field %u of cell %u is %g", e->name, f, i, value);
    }
    for (uint32_t f = IMK_SHCENTROID_DX; f <= IMK_SHCENTROID_DY; f++)
      if (nothing && policy != IMK_SHCENTROID_INVALID_NAN)
        test_check (sh_get (&out, i, f) == 0, "%s: cell %u has a slope of %g",
            e->name, i, sh_get (&out, i, f));
      else if (!nothing)
        test_check (fabs (sh_get (&out, i, f)) < 3,
            "%s: cell %u has a slope of %g", e->name, i, sh_get (&out, i, f));
  }
}

TEST (test_kinds, "dark, dead, saturated and clipped cells are flagged")
{
  make_pattern (3000);
  for (int i = 0; i < N_ESTIMATORS; i++)
    for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++)
      check_kinds (&estimators[i], policy);
}

static void
write_table (const char *name)
{
  FILE *file = fopen (name, "w");

  if (!file)
    return;
  fprintf (file, "estimator,electrons,bias,rms,reported,invalid\n");
  for (int i = 0; i < N_ESTIMATORS; i++)
    for (int k = 0; k < N_FLUXES; k++)
      fprintf (file, "%s,%g,%.5f,%.5f,%.5f,%u\n", estimators[i].name, fluxes[k],
          table[i][k].bias, table[i][k].rms, table[i][k].reported,
          table[i][k].n_invalid);
  fclose (file);
}

int
main (int argc, char **argv)
{
  int status = test_main (NULL);

  if (argc > 1)
    write_table (argv[1]);
  return status;
}
