/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The light of a frame: its measures against their formulas, in double, and
 * against the flux that the kernel measures. */
#include "sh-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/shcentroid-light.h"

enum { SIDE = 20, N = SIDE * SIDE, BORDER = 4 * (SIDE - 1), MANY = 20 };

static double
gaussian (uint64_t *seed)
{
  double sum = -6;

  for (int i = 0; i < 12; i++)
    sum += (double) (test_random (seed) >> 11) * 0x1p-53;
  return sum;
}

static int
compare_descending (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x < y) - (x > y);
}

static ImkShcentroidConfig
config_new (ImkType type, uint32_t cells)
{
  return sh_grid (
      type, SIDE * cells, SIDE * cells, 0, 0, SIDE, SIDE, cells, cells);
}

static bool
is_border (uint32_t i)
{
  uint32_t u = i % SIDE, v = i / SIDE;

  return u == 0 || v == 0 || u == SIDE - 1 || v == SIDE - 1;
}

/* --- the share ------------------------------------------------------------ */

/* T of the one cell, as the page has it. @values: any order */
static double
threshold_of (const ImkShcentroidConfig *c, const double *values)
{
  double sorted[N], t = -INFINITY, min, max;

  memcpy (sorted, values, sizeof (sorted));
  qsort (sorted, N, sizeof (*sorted), compare_descending);
  min = sorted[N - 1];
  max = sorted[0];
  if (c->threshold_mode == IMK_SHCENTROID_THRESHOLD_ABSOLUTE)
    t = c->threshold;
  else if (c->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE)
    t = c->threshold * c->read_noise;
  else if (c->threshold_mode == IMK_SHCENTROID_THRESHOLD_RELATIVE)
    t = fmax (c->threshold * max, c->threshold_least);
  else if (c->threshold_mode == IMK_SHCENTROID_THRESHOLD_RANGE)
    t = fmax (min + c->threshold * (max - min), c->threshold_least);
  if (c->brightest > 0 && c->brightest < N) {
    uint32_t k = c->brightest - 1;

    if (c->threshold_action == IMK_SHCENTROID_ACTION_SUBTRACT)
      while (k < N && sorted[k] == sorted[c->brightest - 1])
        k++;
    if (k < N)
      t = fmax (t, sorted[k]);
  }
  return t;
}

static double
flux_of (const ImkShcentroidConfig *c, const TestImage *in)
{
  test_auto (TestImage) out = sh_run (IMK_BACKEND_CPU, c, in, IMK_TYPE_F64, 0);
  double flux = sh_get (&out, 0, IMK_SHCENTROID_FLUX);

  return flux;
}

/* A spot of a peak of 900 on noise of 20, in steps of @step: with ties. */
static void
draw (TestImage *in, double *values, uint32_t step, uint64_t *seed)
{
  for (uint32_t i = 0; i < N; i++) {
    double u = i % SIDE - 9.2, v = i / SIDE - 10.1;
    double light =
        300 + 900 * exp (-(u * u + v * v) / 6) + 20 * gaussian (seed);
    uint16_t sample = (uint16_t) ((uint32_t) light / step * step);

    values[i] = sample;
    memcpy ((uint8_t *) in->image.data + i / SIDE * in->image.stride +
                i % SIDE * sizeof (sample),
        &sample, sizeof (sample));
  }
}

static void
check_share (const ImkShcentroidConfig *c, const TestImage *in,
    const double *values, const char *name)
{
  double t = threshold_of (c, values), m00 = 0, border = 0, share, flux;
  bool subtract = c->threshold_action == IMK_SHCENTROID_ACTION_SUBTRACT;
  ImkShcentroidLight light;
  uint32_t n_above = 0;

  for (uint32_t i = 0; i < N; i++) {
    double p = values[i] >= t ? values[i] - (subtract && t > 0 ? t : 0) : 0;

    m00 += p;
    border += is_border (i) ? p : 0;
    n_above += values[i] >= t;
  }
  flux = flux_of (c, in);
  test_check (fabs (flux - m00) < 1e-6 * m00,
      "%s: the kernel has the flux %g, "
      "the formula %g",
      name, flux, m00);
  share = fmin (border / BORDER * N / m00, 1);
  test_ok (imk_shcentroid_look (c, &in->image, &light, test_new_error ()));
  test_check (light.n_lit == 1 && fabs (light.share - share) < 1e-6,
      "%s: share %g, by formula %g", name, light.share, share);
  test_check (fabs (light.radius - sqrt (n_above / 3.14159265358979)) < 1e-5,
      "%s: radius %g of %u pixels", name, light.radius, n_above);
}

TEST (test_share, "the share goes by the flux that is measured")
{
  static const struct {
    const char *name;
    ImkShcentroidThreshold mode;
    double threshold, least;
    uint32_t brightest;
  } cases[] = {{"none", IMK_SHCENTROID_THRESHOLD_NONE, 0, 0, 0},
      {"absolute", IMK_SHCENTROID_THRESHOLD_ABSOLUTE, 310.5, 0, 0},
      {"relative", IMK_SHCENTROID_THRESHOLD_RELATIVE, 0.27, 0, 0},
      {"range", IMK_SHCENTROID_THRESHOLD_RANGE, 0.07, 0, 0},
      {"range, least", IMK_SHCENTROID_THRESHOLD_RANGE, 0.01, 305, 0},
      {"noise", IMK_SHCENTROID_THRESHOLD_NOISE, 3, 0, 0},
      {"brightest", IMK_SHCENTROID_THRESHOLD_NONE, 0, 0, 60},
      {"brightest and range", IMK_SHCENTROID_THRESHOLD_RANGE, 0.05, 0, 150},
      {"all are the brightest", IMK_SHCENTROID_THRESHOLD_NONE, 0, 0, N}};
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, SIDE, SIDE, 1, 2);
  uint64_t seed = 11;
  double values[N];

  for (size_t k = 0; k < sizeof (cases) / sizeof (*cases); k++)
    for (uint32_t step = 1; step <= 25; step += 24)
      for (int keep = 0; keep < 2; keep++) {
        ImkShcentroidConfig c = config_new (IMK_TYPE_U16, 1);

        c.threshold_mode = cases[k].mode;
        c.threshold = cases[k].threshold;
        c.threshold_least = cases[k].least;
        c.brightest = cases[k].brightest;
        c.threshold_action =
            keep ? IMK_SHCENTROID_ACTION_KEEP : IMK_SHCENTROID_ACTION_SUBTRACT;
        c.read_noise = 105;
        draw (&in, values, step, &seed);
        check_share (&c, &in, values, cases[k].name);
      }
}

/* --- what is a spot ------------------------------------------------------- */

/* @border: of pixels in turn + and -, but for one of @bump */
static ImkShcentroidLight
look_at_peak (double border, double bump, double peak)
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, SIDE, SIDE, 1, 0);
  ImkShcentroidConfig c = config_new (IMK_TYPE_F32, 1);
  ImkShcentroidLight light;

  for (uint32_t i = 0; i < N; i++) {
    uint32_t u = i % SIDE, v = i / SIDE;
    float value = 0;

    if (is_border (i))
      value = (float) ((u + v) % 2 ? border : -border);
    if (u == 0 && v == 7)
      value += (float) bump;
    if (u == 9 && v == 12)
      value = (float) peak;
    memcpy (
        (uint8_t *) in.image.data + v * in.image.stride + u * sizeof (value),
        &value, sizeof (value));
  }
  test_ok (imk_shcentroid_look (&c, &in.image, &light, test_new_error ()));
  return light;
}

TEST (test_spot, "a spot is one above the level of its border")
{
  double s = 1.0483 * 2, level = 1 + 1.72 * s, least = level + 2.4 * s;

  test_check (look_at_peak (1, 0, least * 1.01).n_lit == 1, "no spot");
  test_check (look_at_peak (1, 0, least * 0.99).n_lit == 0, "a spot of noise");
  test_check (fabs (look_at_peak (1, 0, 100).least - level) < 1e-5,
      "the level is %g and not %g", look_at_peak (1, 0, 100).least, level);
  test_check (look_at_peak (0, 49, 100).n_lit == 1, "49 of 100 cut a spot");
  test_check (look_at_peak (0, 51, 100).n_lit == 0 &&
                  look_at_peak (0, 51, 100).n_cut == 1,
      "51 of 100 at the border do not cut a spot");
  test_check (look_at_peak (0, 0, 0).n_lit == 0, "a spot in the dark");
}

/* --- a glance ------------------------------------------------------------- */

/* At @n x @n cells, dark but for each @step-th from @first on. */
static bool
glance (uint32_t n, uint32_t first, uint32_t step, uint32_t turn)
{
  enum { SMALL = 6 };
  test_auto (TestImage) in =
      test_image_new (IMK_TYPE_U8, n * SMALL, n * SMALL, 1, 0);
  ImkShcentroidConfig c =
      sh_grid (IMK_TYPE_U8, n * SMALL, n * SMALL, 0, 0, SMALL, SMALL, n, n);
  bool has_spots = turn % 2;

  test_image_fill (&in, FILL_ZERO, 0, 0);
  for (uint32_t i = first; i < n * n; i += step)
    sh_set (&in, i % n * SMALL + 3, i / n * SMALL + 2, 200);
  test_ok (imk_shcentroid_glance (
      &c, &in.image, turn, &has_spots, test_new_error ()));
  return has_spots;
}

TEST (test_glance, "a glance is at some of the cells, and all have their turn")
{
  const uint32_t n = 40, step = 7; /* 1600 cells, 256 a glance */

  for (uint32_t turn = 0; turn < 2 * step; turn++) {
    test_check (glance (n, turn % step, step, turn), "turn %u: no spot", turn);
    test_check (!glance (n, (turn + 1) % step, step, turn),
        "turn %u: cells of the next turn", turn);
    test_check (glance (n, turn % step + 3 * step, n * n, turn),
        "turn %u: not the only spot", turn);
    test_check (glance (16, 255, 256, turn), "turn %u: not all of 256", turn);
  }
}

TEST (test_glance_refuses, "a glance refuses what a look does")
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U8, SIDE, SIDE, 1, 0);
  ImkShcentroidConfig c = config_new (IMK_TYPE_U16, 1);
  bool has_spots = true;
  ImkError error;

  test_check (imk_shcentroid_glance (&c, &in.image, 0, &has_spots, &error) ==
                      IMK_ERROR_IMAGE &&
                  has_spots,
      "8 bits for 16");
  c.size = 1;
  test_check (imk_shcentroid_glance (&c, &in.image, 0, &has_spots, &error) ==
                      IMK_ERROR_CONFIG &&
                  has_spots,
      "a config of one byte");
}

/* --- what is proposed ----------------------------------------------------- */

/* MANY x MANY cells with noise 3 on a background of 200, or of a slope in half
 * of the columns. */
static ImkShcentroidLight
look_at_many (double slope, double peak, double *above)
{
  test_auto (TestImage) in =
      test_image_new (IMK_TYPE_F32, MANY * SIDE, MANY * SIDE, 1, 0);
  ImkShcentroidConfig c = config_new (IMK_TYPE_F32, MANY);
  ImkShcentroidLight light;
  uint64_t seed = 3;

  for (uint32_t y = 0; y < MANY * SIDE; y++)
    for (uint32_t x = 0; x < MANY * SIDE; x++) {
      double u = x % SIDE - 9.5, v = y % SIDE - 9.5;
      double side = x / SIDE % 2 ? slope * u : 0;
      float value = (float) (200 + side + 3 * gaussian (&seed) +
                             peak * exp (-(u * u + v * v) / 6));

      memcpy (
          (uint8_t *) in.image.data + y * in.image.stride + x * sizeof (value),
          &value, sizeof (value));
    }
  test_ok (imk_shcentroid_look (&c, &in.image, &light, test_new_error ()));
  /* T of a cell on the slope above its higher edge */
  *above = 200 - slope * 9.5 - 9 + light.fraction * (peak + slope * 9.5 + 9) -
           (200 + slope * 9.5);
  return light;
}

TEST (test_proposals, "what is proposed stands above noise and slopes")
{
  double above, flux = 3 * (1 + 0.001 * N + 0.12 * sqrt (N));
  ImkShcentroidLight even = look_at_many (0, 200, &above), sloping;

  test_check (even.n_lit == MANY * MANY && even.n_cut == 0, "%u lit, %u cut",
      even.n_lit, even.n_cut);
  test_check (even.least > 200 + 2.4 * 3 && even.least < 200 + 3 * 3,
      "least %g", even.least);
  test_check (fabs (even.min_flux - flux) < 0.1 * flux, "min-flux %g, not %g",
      even.min_flux, flux);
  sloping = look_at_many (10, 600, &above);
  test_check (sloping.least > 200 + 2.4 * 3 && sloping.least < 200 + 3 * 3,
      "least %g", sloping.least);
  test_check (sloping.fraction > 0.2 && sloping.fraction < 0.5 && above > 0,
      "fraction %g puts T %g above the border", sloping.fraction, above);
  test_check (look_at_many (0, 8, &above).n_lit < MANY, "spots in noise");
}

/* --- noise of integers, and of frames that were cut off ------------------- */

typedef struct {
  const char *name;
  ImkType type;
  double noise, pedestal, step; /* of the camera, in counts */
  double cut;                   /* 0: none */
} Camera;

static double
sample_of (const Camera *k, double light, uint64_t *seed)
{
  double value = light + k->pedestal + k->noise * gaussian (seed);

  value = k->step > 0 ? rint (value) * k->step : value;
  return k->cut > 0 && value < k->cut ? 0 : fmax (value, 0);
}

/* Every other cell has a spot of 40 counts. */
static void
photograph (const Camera *k, TestImage *in, uint64_t *seed)
{
  for (uint32_t y = 0; y < MANY * SIDE; y++)
    for (uint32_t x = 0; x < MANY * SIDE; x++) {
      double u = x % SIDE - 9.5, v = y % SIDE - 9.5;
      bool lit = (x / SIDE + y / SIDE) % 2;
      double light = lit ? 40 * exp (-(u * u + v * v) / 6) : 0;
      double value = sample_of (k, light, seed);
      uint8_t *row = (uint8_t *) in->image.data + y * in->image.stride;

      if (k->type == IMK_TYPE_F32)
        ((float *) row)[x] = (float) value;
      else if (k->type == IMK_TYPE_U16)
        ((uint16_t *) row)[x] = (uint16_t) value;
      else
        row[x] = (uint8_t) value;
    }
}

/* With what is proposed of the first frame. */
static void
count_valid (const Camera *k, uint32_t n_valid[2])
{
  ImkShcentroidConfig c = config_new (k->type, MANY);
  test_auto (TestImage) in =
      test_image_new (k->type, MANY * SIDE, MANY * SIDE, 1, 0);
  test_auto (TestImage) out =
      test_image_new (IMK_TYPE_F64, IMK_SHCENTROID_N_FIELDS, MANY * MANY, 1, 0);
  test_autoptr (ImkShcentroid) s = NULL;
  ImkShcentroidLight light;
  uint64_t seed = 17;

  photograph (k, &in, &seed);
  test_ok (imk_shcentroid_look (&c, &in.image, &light, test_new_error ()));
  c.threshold_mode = IMK_SHCENTROID_THRESHOLD_RANGE;
  c.threshold = light.fraction;
  c.threshold_least = light.least;
  c.min_flux = light.min_flux;
  test_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_shcentroid_process (
      s, &in.image, &out.image, NULL, test_new_error ()));
  n_valid[0] = n_valid[1] = 0;
  for (uint32_t i = 0; i < MANY * MANY; i++) {
    const double *row =
        (const double *) ((uint8_t *) out.image.data + i * out.image.stride);
    uint32_t flags = (uint32_t) row[IMK_SHCENTROID_FLAGS];

    n_valid[(i % MANY + i / MANY) % 2] +=
        (flags & IMK_SHCENTROID_INVALID_MASK) == 0;
  }
}

TEST (test_dark_cells, "cells without light are not valid, whatever the camera")
{
  static const Camera cameras[] = {
      {"8 bits, noise 0.2", IMK_TYPE_U8, 0.2, 8, 1, 0},
      {"8 bits, noise 0.2 on 8.25", IMK_TYPE_U8, 0.2, 8.25, 1, 0},
      {"8 bits, noise 0.25", IMK_TYPE_U8, 0.25, 8, 1, 0},
      {"8 bits, noise 0.3", IMK_TYPE_U8, 0.3, 8, 1, 0},
      {"8 bits, noise 0.4 on 8.5", IMK_TYPE_U8, 0.4, 8.5, 1, 0},
      {"8 bits, noise 0.5", IMK_TYPE_U8, 0.5, 8, 1, 0},
      {"8 bits, noise 1.5", IMK_TYPE_U8, 1.5, 8, 1, 0},
      {"8 bits, noise 3", IMK_TYPE_U8, 3, 20, 1, 0},
      {"12 bits in the upper bits", IMK_TYPE_U16, 0.3, 8, 16, 0},
      {"integers in float32", IMK_TYPE_F32, 0.3, 8, 1, 0},
      {"16 bits, 0 below a dark", IMK_TYPE_U16, 3, 0, 1, 0},
      {"float32, 0 below a dark", IMK_TYPE_F32, 3, 0, 0, 0},
      {"float32, 0 below a high dark", IMK_TYPE_F32, 3, -2, 0, 0},
      {"float32, 0 below 2 sigmas", IMK_TYPE_F32, 3, 0, 0, 6},
      {"float32", IMK_TYPE_F32, 3, 100, 0, 0},
  };

  for (size_t k = 0; k < sizeof (cameras) / sizeof (*cameras); k++) {
    uint32_t n_valid[2];

    count_valid (&cameras[k], n_valid);
    test_check (n_valid[0] <= MANY * MANY / 2 / 50,
        "%s: %u of %u dark cells are valid", cameras[k].name, n_valid[0],
        MANY * MANY / 2);
    test_check (n_valid[1] == MANY * MANY / 2, "%s: %u of %u spots are valid",
        cameras[k].name, n_valid[1], MANY * MANY / 2);
  }
}
