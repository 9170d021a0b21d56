/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The photometric stereo kernel against closed forms, the worked example of its
 * header's paper, an independent float64 solver, and the backends against each
 * other. */
#include "photo-common.h"
#include "photostereo/photostereo-pixel.h"
#include "photostereo/photostereo-reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIGHTS = 300 };

/* --- helpers -------------------------------------------------------------- */

static ImkPhotostereoConfig
config_of (ImkType type, uint32_t width, uint32_t height, uint32_t channels,
    const ImkPhotostereoLight *lights, uint32_t n, bool positions)
{
  ImkPhotostereoConfig c;

  imk_photostereo_config_init (&c);
  c.type = type;
  c.width = width;
  c.height = height;
  c.channels = channels;
  c.lights = lights;
  c.n_lights = n;
  c.positions = positions;
  c.n_threads = 1;
  return c;
}

static ImkPhotostereo *
kernel_new (ImkBackend backend, const ImkPhotostereoConfig *c)
{
  ImkPhotostereo *s = NULL;

  test_ok (imk_photostereo_new (backend, c, &s, test_new_error ()));
  return s;
}

static void
add (ImkPhotostereo *s, const TestImage *frame, uint32_t light)
{
  test_ok (
      imk_photostereo_add (s, &frame->image, light, NULL, test_new_error ()));
}

static Solved
solve (ImkPhotostereo *s, const ImkPhotostereoConfig *c, ImkType type)
{
  Solved to = solved_new (c, type);

  solved_fill (&to, s, false);
  return to;
}

static void
check_same (const Solved *a, const Solved *b, const char *where)
{
  solved_same (a, b, where);
  test_check (memcmp (&a->summary, &b->summary, sizeof (a->summary)) == 0,
      "%s: the summaries differ", where);
}

static double
dot (const double a[3], const double b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* --- the worked example --------------------------------------------------- */

static const ImkPhotostereoLight example_lights[] = {
    {.x = 1, .intensity = {1, 1, 1}},
    {.y = 1, .intensity = {1, 1, 1}},
    {.z = 1, .intensity = {1, 1, 1}},
    {.x = 0.6, .z = 0.8, .intensity = {1, 1, 1}},
};

/* Frames of one pixel. */
static Solved
run_example (ImkPhotostereoConfig *c, const uint8_t *grey, ImkBackend backend)
{
  test_autoptr (ImkPhotostereo) s = kernel_new (backend, c);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U8, 1, 1, 1, 3);
  Solved solved;

  for (uint32_t i = 0; i < c->n_lights; i++) {
    photo_set (&frame, 0, 0, 0, grey[i]);
    add (s, &frame, i);
  }
  solved = solve (s, c, IMK_TYPE_F32);
  return solved;
}

static void
check_pixel (Solved *s, double full_scale, double x, double y, double z,
    double lights, double residual, const char *where)
{
  double albedo = sqrt (x * x + y * y + z * z), n[3];
  double expected[] = {x / albedo, y / albedo, z / albedo};

  solved_normal (s, 0, 0, n);
  test_check (photo_angle (n, expected) < 1e-4,
      "%s: n = (%.7g, %.7g, %.7g), expected (%.7g, %.7g, %.7g)", where, n[0],
      n[1], n[2], expected[0], expected[1], expected[2]);
  test_check (
      fabs (photo_get (&s->albedo, 0, 0, 0) * full_scale - albedo) < 1e-3,
      "%s: albedo %.7g, expected %.7g", where,
      photo_get (&s->albedo, 0, 0, 0) * full_scale, albedo);
  test_check (photo_get (&s->quality, 0, 0, 0) == lights,
      "%s: %g lights, expected %g", where, photo_get (&s->quality, 0, 0, 0),
      lights);
  test_check (
      fabs (photo_get (&s->quality, 0, 0, 2) * full_scale - residual) < 1e-3,
      "%s: residual %.7g, expected %.7g", where,
      photo_get (&s->quality, 0, 0, 2) * full_scale, residual);
  solved_free (s);
}

TEST (test_worked_example, "the worked example")
{
  static const uint8_t exact[] = {30, 40, 120, 114};
  static const uint8_t bright[] = {30, 40, 120, 214};
  ImkPhotostereoConfig c =
      config_of (IMK_TYPE_U8, 1, 1, 1, example_lights, 4, false);
  double rms = sqrt ((900 + 0 + 1600 + 2500) / 4.0);
  Solved s;

  c.robust = IMK_PHOTOSTEREO_ROBUST_NONE;
  s = run_example (&c, exact, IMK_BACKEND_CPU);
  check_pixel (&s, 255, 30, 40, 120, 4, 0, "exact, least squares");
  s = run_example (&c, bright, IMK_BACKEND_CPU);
  check_pixel (&s, 255, 60, 40, 160, 4, rms, "bright, least squares");

  c.robust = IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
  for (int readmit = 0; readmit < 2; readmit++) {
    c.readmit = readmit;
    c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
    c.t_res = 0.25;
    c.min_lights = 3;
    s = run_example (&c, bright, IMK_BACKEND_CPU);
    check_pixel (&s, 255, 30, 40, 120, 3, 0, "bright, relative");
    c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
    c.t_res = sqrt (2000) / 255;
    s = run_example (&c, bright, IMK_BACKEND_CPU);
    check_pixel (&s, 255, 30, 40, 120, 3, 0, "bright, absolute");
  }
}

TEST (test_too_few_lights_keep_the_last_good_solution,
    "too few lights keep the last good solution")
{
  static const uint8_t bright[] = {30, 40, 120, 214};
  ImkPhotostereoConfig c =
      config_of (IMK_TYPE_U8, 1, 1, 1, example_lights, 4, false);
  double rms = sqrt (5000 / 4.0);
  Solved s;

  c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
  c.t_res = 0.25;
  c.min_lights = 4;
  for (int readmit = 0; readmit < 2; readmit++) {
    c.readmit = readmit;
    s = run_example (&c, bright, IMK_BACKEND_CPU);
    check_pixel (&s, 255, 60, 40, 160, 4, rms, "4 of 4 needed");
  }
  c.min_lights = 3;
  c.max_iterations = 1;
  s = run_example (&c, bright, IMK_BACKEND_CPU);
  check_pixel (&s, 255, 60, 40, 160, 4, rms, "one iteration");

  /* adaptive thresholds need 4 by default; t_max leaves 3 */
  c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
  c.t_max = 1.2;
  c.min_lights = 0;
  c.max_iterations = 10;
  s = run_example (&c, bright, IMK_BACKEND_CPU);
  check_pixel (&s, 255, 60, 40, 160, 4, rms, "adaptive, 4 needed");
  c.min_lights = 3;
  s = run_example (&c, bright, IMK_BACKEND_CPU);
  check_pixel (&s, 255, 30, 40, 120, 3, 0, "adaptive, 3 needed");
}

TEST (test_thresholds_are_strict_but_for_the_residual,
    "thresholds are strict, but for the residual")
{
  /* of the first solution, all lights: residuals 30, 0, 40, -50 */
  static const uint8_t bright[] = {30, 40, 120, 214};
  ImkPhotostereoConfig c =
      config_of (IMK_TYPE_U8, 1, 1, 1, example_lights, 4, false);
  Solved s;

  c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
  c.full_scale = 128; /* a grey value is then exact in float32 */
  c.saturation = -1;
  c.t_min = 0;
  c.t_max = 214.0 / 128; /* the 4th is not below */
  c.t_res = 2;
  s = run_example (&c, bright, IMK_BACKEND_CPU);
  check_pixel (&s, 128, 30, 40, 120, 3, 0, "t-max");
  c.t_max = 4;
  c.t_min = 30.0 / 128; /* the 1st is not above */
  s = run_example (&c, bright, IMK_BACKEND_CPU);
  check_pixel (&s, 128, (214 - 0.8 * 120) / 0.6, 40, 120, 3, 0, "t-min");
}

/* --- exact Lambert -------------------------------------------------------- */

enum { SIDE_X = 129, SIDE_Y = 31 };

/* A smooth field of normals, at most 40 degrees from the camera. */
static void
shape_at (uint32_t shape, uint32_t x, uint32_t y, double n[3])
{
  double u = (x - (SIDE_X - 1) / 2.0) / SIDE_X;
  double v = ((SIDE_Y - 1) / 2.0 - y) / SIDE_Y;
  uint64_t seed = 1000 * y + x;
  double length;

  switch (shape) {
  case 0: /* a plane that faces nobody in particular */
    n[0] = 0.3;
    n[1] = -0.2;
    break;
  case 1: /* a sphere */
    n[0] = 0.9 * u;
    n[1] = 0.9 * v;
    break;
  default:
    n[0] = 0.45 * ((double) test_random (&seed) / 1.8446744073709552e19 - 0.5);
    n[1] = 0.45 * ((double) test_random (&seed) / 1.8446744073709552e19 - 0.5);
  }
  n[2] = sqrt (1 - n[0] * n[0] - n[1] * n[1]);
  length = sqrt (dot (n, n));
  for (int i = 0; i < 3; i++)
    n[i] /= length;
}

/* Returns: degrees from the normal of shape 2 */
static double
error_at (const Solved *solved, uint32_t x, uint32_t y)
{
  double n[3], found[3];

  shape_at (2, x, y, n);
  solved_normal (solved, x, y, found);
  return photo_angle (n, found);
}

static double
albedo_at (uint32_t x, uint32_t y)
{
  return 0.25 + 0.1 * ((x / 7 + y / 5) % 3);
}

/* The picture of @shape under light @i. */
static void
render (
    const ImkPhotostereoConfig *c, uint32_t shape, uint32_t i, TestImage *frame)
{
  double maximum = c->type == IMK_TYPE_U8 ? 255 : 65535;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double n[3], l[3], g;

      shape_at (shape, x, y, n);
      imk_photostereo_reference_light (c, i, x, y, 0, l);
      g = albedo_at (x, y) * dot (n, l) * c->lights[i].intensity[0];
      g = g < 0 ? 0 : g > 1 ? 1 : g;
      for (uint32_t k = 0; k < c->channels; k++)
        photo_set (frame, x, y, k, (uint32_t) (g * maximum + 0.5));
    }
}

static void
check_shape (const ImkPhotostereoConfig *c, uint32_t shape, double tolerance,
    const char *where)
{
  test_autoptr (ImkPhotostereo) s = kernel_new (IMK_BACKEND_CPU, c);
  test_auto (TestImage) frame =
      test_image_new (c->type, c->width, c->height, 1, 6);
  test_auto (Solved) solved;

  for (uint32_t i = 0; i < c->n_lights; i++) {
    render (c, shape, i, &frame);
    add (s, &frame, i);
  }
  solved = solve (s, c, IMK_TYPE_F32);
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double n[3], found[3];

      shape_at (shape, x, y, n);
      solved_normal (&solved, x, y, found);
      test_check (photo_angle (n, found) < tolerance,
          "%s: %.5f degrees off at (%u, %u), shape %u", where,
          photo_angle (n, found), x, y, shape);
      test_check (
          fabs (photo_get (&solved.albedo, x, y, 0) - albedo_at (x, y)) <= 1e-4,
          "%s: albedo %.6f at (%u, %u), expected %.6f", where,
          photo_get (&solved.albedo, x, y, 0), x, y, albedo_at (x, y));
    }
  test_check (solved.summary.n_invalid == 0, "%s: invalid pixels", where);
}

TEST (test_each_light_model_inverts_itself, "each light model inverts itself")
{
  static const struct {
    ImkPhotostereoModel model;
    bool positions;
    double lobe;
    const char *name;
  } models[] = {
      {IMK_PHOTOSTEREO_MODEL_AUTO, false, 0, "directions"},
      {IMK_PHOTOSTEREO_MODEL_AUTO, true, 0, "inverse square"},
      {IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE, true, 1, "Lambertian LEDs"},
      {IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE, true, 2.5, "narrow LEDs"},
      {IMK_PHOTOSTEREO_MODEL_UNIT, true, 0, "unit"},
      {IMK_PHOTOSTEREO_MODEL_RAW, true, 0, "raw"},
      {IMK_PHOTOSTEREO_MODEL_RAW, false, 0, "raw directions"},
      {IMK_PHOTOSTEREO_MODEL_DIRECTIONAL, true, 0, "far positions"},
  };
  ImkPhotostereoLight lights[24] = {{0}};

  photo_fill_dome (lights, 24, 300, 0.75);
  for (uint32_t i = 0; i < 24; i++)
    for (int k = 0; k < 3; k++)
      lights[i].intensity[k] = 1 + 0.02 * i;
  for (uint32_t m = 0; m < sizeof (models) / sizeof (models[0]); m++)
    for (uint32_t shape = 0; shape < 3; shape++) {
      ImkPhotostereoConfig c;

      photo_fill_dome (lights, 24,
          models[m].positions                            ? 300
          : models[m].model == IMK_PHOTOSTEREO_MODEL_RAW ? 1
                                                         : 7,
          0.75);
      for (uint32_t i = 0; i < 24; i++)
        for (int k = 0; k < 3; k++)
          lights[i].intensity[k] = 1 + 0.02 * i;
      if (models[m].positions)
        for (uint32_t i = 0; i < 24; i++)
          lights[i].z += 12;
      c = config_of (
          IMK_TYPE_U16, SIDE_X, SIDE_Y, 1, lights, 24, models[m].positions);
      c.model = models[m].model;
      c.led_lobe = models[m].lobe;
      c.plane_z = models[m].positions ? 12 : 0;
      c.mm_per_pixel = 0.7;
      c.pixel_aspect = m % 2 ? 1.25 : 1;
      c.centre_x = 20;
      c.centre_y = 3;
      c.robust = shape == 1 ? IMK_PHOTOSTEREO_ROBUST_THRESHOLDS
                            : IMK_PHOTOSTEREO_ROBUST_NONE;
      check_shape (&c, shape, 0.01, models[m].name);
    }
}

/* How many of @n lights are nearer to the mirror direction of @normal than
 * light @i (@mirror), or shine more grazing on it. */
static uint32_t
rank_of (const ImkPhotostereoConfig *c, const double normal[3], uint32_t i,
    bool mirror)
{
  double value[2];
  uint32_t rank = 0;

  for (uint32_t j = 0; j <= c->n_lights; j++) {
    double l[3];

    imk_photostereo_reference_light (c, j == 0 ? i : j - 1, 0, 0, 0, l);
    if (mirror) { /* the normal and half of light and camera (0, 0, 1) */
      l[2] += 1;
      value[j > 0] = -dot (normal, l) / sqrt (dot (l, l));
    } else {
      value[j > 0] = dot (normal, l);
    }
    rank += j > 0 && value[1] < value[0];
  }
  return rank;
}

/* A highlight where the mirror direction is, shadow where light is grazing. */
static void
spoil (const ImkPhotostereoConfig *c, uint32_t i, uint32_t n_outliers,
    TestImage *frame)
{
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double n[3];

      shape_at (2, x, y, n);
      if (rank_of (c, n, i, true) < n_outliers / 2)
        photo_set (frame, x, y, 0, 65535);
      else if (rank_of (c, n, i, false) < n_outliers / 2)
        photo_set (frame, x, y, 0, 300);
    }
}

TEST (test_highlights_and_shadows_are_rejected,
    "highlights and shadows are rejected", .cpu_only = true)
{
  enum { N = 60, W = 33, H = 3 };
  static const struct {
    ImkPhotostereoRobust robust;
    ImkPhotostereoThresholds thresholds;
    bool readmit;
  } runs[] = {
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE,
          true},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE,
          false},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE,
          true},
      {IMK_PHOTOSTEREO_ROBUST_NONE, IMK_PHOTOSTEREO_THRESHOLDS_AUTO, true},
  };
  ImkPhotostereoLight lights[N] = {{0}};

  photo_fill_dome (lights, N, 1, 0.5);
  for (uint32_t percent = 10; percent <= 30; percent += 10)
    for (uint32_t run = 0; run < 4; run++) {
      ImkPhotostereoConfig c =
          config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
      test_auto (TestImage) frame = test_image_new (c.type, W, H, 1, 0);
      test_autoptr (ImkPhotostereo) s = NULL;
      test_auto (Solved) solved;
      double sum = 0, worst = 0;

      /* wide: with so many outliers the first solution is far off, and tight
       * limits find another one that explains itself */
      c.t_res = 0.25;
      c.saturation = -1; /* it is the thresholds that have to find them */
      c.robust = runs[run].robust;
      c.thresholds = runs[run].thresholds;
      c.readmit = runs[run].readmit;
      s = kernel_new (IMK_BACKEND_CPU, &c);
      for (uint32_t i = 0; i < N; i++) {
        render (&c, 2, i, &frame);
        spoil (&c, i, N * percent / 100, &frame);
        add (s, &frame, i);
      }
      solved = solve (s, &c, IMK_TYPE_F32);
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
          double e = error_at (&solved, x, y);

          sum += e / (W * H);
          worst = e > worst ? e : worst;
        }
      if (c.robust == IMK_PHOTOSTEREO_ROBUST_NONE)
        test_check (sum > 2, "%u %%: least squares is %.3f degrees off only",
            percent, sum);
      else
        test_check (worst < 0.1, "%u %%, run %u: %.4f degrees off, worst %.3f",
            percent, run, sum, worst);
    }
}

/* --- against the float64 solver ------------------------------------------- */

TEST (test_float64_solver_agrees, "a float64 solver agrees", .cpu_only = true)
{
  static const struct {
    ImkPhotostereoRobust robust;
    ImkPhotostereoThresholds thresholds;
    bool readmit;
  } modes[] = {
      {IMK_PHOTOSTEREO_ROBUST_NONE, IMK_PHOTOSTEREO_THRESHOLDS_AUTO, true},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE,
          false},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE,
          true},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE,
          false},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE,
          true},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE,
          false},
      {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE,
          true},
  };
  /* by ImkPhotostereoThresholds; of the first only what least squares need */
  static const double thresholds[][3] = {
      {0}, {0.04, 0.98, 0.03}, {0.1, 1.3, 0.15}, {0.1, 1.3, 0.05}};
  enum { N = 40, W = 67, H = 9 };
  ImkPhotostereoLight lights[N] = {{0}};

  photo_fill_dome (lights, N, 250, 0.3);
  for (uint32_t m = 0; m < sizeof (modes) / sizeof (modes[0]); m++) {
    const double *t = thresholds[modes[m].thresholds];
    ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, true);
    TestImage frames[N];
    ImkPhotostereo *s;
    Solved solved;
    uint32_t n_ties = 0;
    uint64_t seed = 5;

    c.robust = modes[m].robust;
    c.thresholds = modes[m].thresholds;
    c.readmit = modes[m].readmit;
    c.mm_per_pixel = 1.5;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++) {
      frames[i] = test_image_new (IMK_TYPE_U8, W, H, 1, 0);
      render (&c, 1, i, &frames[i]);
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
          uint64_t r = test_random (&seed);
          double noise =
              photo_get (&frames[i], x, y, 0) + (double) (r >> 58) - 32;

          if ((r & 15) == 0) /* an outlier */
            noise = (double) ((r >> 8) & 255);
          photo_set (&frames[i], x, y, 0,
              (uint32_t) (noise < 0     ? 0
                          : noise > 255 ? 255
                                        : noise));
        }
      add (s, &frames[i], i);
    }
    solved = solve (s, &c, IMK_TYPE_F32);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double l[N][3], g[N], n[4], found[3];
        uint32_t used;
        bool tie;

        for (uint32_t i = 0; i < N; i++) {
          imk_photostereo_reference_light (&c, i, x, y, 0, l[i]);
          g[i] = photo_get (&frames[i], x, y, 0) / 255;
        }
        used = imk_photostereo_reference (&c, N, l, g, NULL, t, n, &tie);
        n_ties += tie;
        if (tie)
          continue;
        solved_normal (&solved, x, y, found);
        test_check (photo_get (&solved.quality, x, y, 0) == used,
            "mode %u: %g lights at (%u, %u), expected %u", m,
            photo_get (&solved.quality, x, y, 0), x, y, used);
        test_check (used == 0 || photo_angle (n, found) < 0.002,
            "mode %u: %.6f degrees off at (%u, %u)", m, photo_angle (n, found),
            x, y);
      }
    test_check (n_ties < W * H / 20, "mode %u: %u ties", m, n_ties);
    for (uint32_t i = 0; i < N; i++)
      test_image_free (&frames[i]);
    solved_free (&solved);
    imk_photostereo_free (s);
  }
}

/* The default for few lights depends on the pixel alone: the same lights count
 * at an eighth of the exposure. */
TEST (test_few_lights_are_solved_at_any_exposure,
    "few lights are solved at any exposure")
{
  enum { N = 12, W = 41, H = 7 };
  ImkPhotostereoLight lights[N] = {{0}};
  double n_used = 0;
  test_auto (Solved) full, dim;

  photo_fill_dome (lights, N, 1, 0.3);
  for (uint32_t i = 0; i < 2; i++) {
    ImkPhotostereoConfig c =
        config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
    test_auto (TestImage) frame = test_image_new (c.type, W, H, 1, 0);
    test_autoptr (ImkPhotostereo) s = kernel_new (IMK_BACKEND_CPU, &c);

    for (uint32_t j = 0; j < N; j++) {
      render (&c, 2, j, &frame);
      spoil (&c, j, 2, &frame); /* a highlight and a shadow */
      for (uint32_t y = 0; i == 1 && y < H; y++)
        for (uint32_t x = 0; x < W; x++)
          photo_set (
              &frame, x, y, 0, (uint32_t) photo_get (&frame, x, y, 0) / 8);
      add (s, &frame, j);
    }
    *(i ? &dim : &full) = solve (s, &c, IMK_TYPE_F32);
  }
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double a = error_at (&full, x, y), b = error_at (&dim, x, y);

      n_used += photo_get (&full.quality, x, y, 0) / (W * H);
      test_check (a < 0.1 && b < 0.1,
          "%.3f degrees off at (%u, %u), %.3f at an eighth", a, x, y, b);
    }
  test_check (n_used > 8 && n_used < N - 1.5, "%.2f lights are used", n_used);
  test_check (full.summary.n_invalid == 0 && dim.summary.n_invalid == 0,
      "%llu and %llu pixels are invalid",
      (unsigned long long) full.summary.n_invalid,
      (unsigned long long) dim.summary.n_invalid);
}

TEST (test_huber_solves_its_own_equation, "Huber's equation is solved")
{
  enum { N = 30, W = 17, H = 5 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  TestImage frames[N];
  test_autoptr (ImkPhotostereo) s = NULL;
  test_auto (Solved) solved;
  uint64_t seed = 9;

  photo_fill_dome (lights, N, 1, 0.5);
  c.robust = IMK_PHOTOSTEREO_ROBUST_HUBER;
  c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
  c.t_res = 0.01;
  c.max_iterations = 200;
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N; i++) {
    frames[i] = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
    render (&c, 1, i, &frames[i]);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        if (test_random (&seed) % 5 == 0)
          photo_set (&frames[i], x, y, 0, 60000);
    add (s, &frames[i], i);
  }
  solved = solve (s, &c, IMK_TYPE_F32);
  /* the gradient of the Huber loss is zero: sum psi (r) L = 0 */
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double n[3], gradient[3] = {0}, l[3];

      solved_normal (&solved, x, y, n);
      for (int k = 0; k < 3; k++)
        n[k] *= photo_get (&solved.albedo, x, y, 0);
      for (uint32_t i = 0; i < N; i++) {
        double r;

        imk_photostereo_reference_light (&c, i, x, y, 0, l);
        r = dot (n, l) - photo_get (&frames[i], x, y, 0) / 65535;
        r = r > 0.01 ? 0.01 : r < -0.01 ? -0.01 : r;
        for (int k = 0; k < 3; k++)
          gradient[k] += r * l[k];
      }
      test_check (sqrt (dot (gradient, gradient)) < 2e-3,
          "gradient (%g, %g, %g) at (%u, %u)", gradient[0], gradient[1],
          gradient[2], x, y);
    }
  for (uint32_t i = 0; i < N; i++)
    test_image_free (&frames[i]);
}

TEST (test_huber_begins_at_two_hundredths,
    "the t-res of Huber is 0.02 unless it is set")
{
  enum { N = 30, W = 17, H = 5 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  TestImage frames[N];
  Solved solved[2];

  photo_fill_dome (lights, N, 1, 0.5);
  c.robust = IMK_PHOTOSTEREO_ROBUST_HUBER;
  for (uint32_t i = 0; i < N; i++) {
    frames[i] = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
    render (&c, 1, i, &frames[i]);
    for (uint32_t k = i % 7; k < W * H; k += 7)
      photo_set (&frames[i], k % W, k / W, 0, 60000);
  }
  for (uint32_t run = 0; run < 2; run++) {
    test_autoptr (ImkPhotostereo) s = NULL;

    c.t_res = run ? 0.02 : -1;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++)
      add (s, &frames[i], i);
    solved[run] = solve (s, &c, IMK_TYPE_F32);
  }
  solved_same (&solved[0], &solved[1], "t-res 0.02");
  for (uint32_t run = 0; run < 2; run++)
    solved_free (&solved[run]);
  for (uint32_t i = 0; i < N; i++)
    test_image_free (&frames[i]);
}

TEST (test_each_output_alone, "an output alone is the same as with the others")
{
  enum { N = 8, W = 21, H = 4 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
  test_autoptr (ImkPhotostereo) s = NULL;
  test_auto (Solved) all;

  photo_fill_dome (lights, N, 1, 0.5);
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N; i++) {
    render (&c, 1, i, &frame);
    add (s, &frame, i);
  }
  all = solve (s, &c, IMK_TYPE_F32);
  for (uint32_t k = 0; k < N_OUTPUTS; k++) {
    test_auto (Solved) alone = solved_new (&c, IMK_TYPE_F32);
    ImkPhotostereoOutputs out = {0};
    ImkImage *const images[] = {&out.normal, &out.albedo, &out.ambient,
        &out.quality, &out.confidence, &out.mask};

    *images[k] = alone.image[k].image;
    test_ok (imk_photostereo_solve (
        s, &out, &alone.summary, NULL, test_new_error ()));
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        for (uint32_t i = 0; i < images[k]->channels; i++)
          test_check (photo_get (&alone.image[k], x, y, i) ==
                          photo_get (&all.image[k], x, y, i),
              "output %u differs at (%u, %u)", k, x, y);
  }
}

/* --- the same bits -------------------------------------------------------- */

/* Noise that is partly Lambert, @n frames. */
static void
make_frames (const ImkPhotostereoConfig *c, TestImage *frames, uint64_t seed)
{
  for (uint32_t i = 0; i < c->n_lights; i++) {
    frames[i] =
        test_image_new (c->type, c->width, c->height, c->channels, i % 5);
    render (c, 2, i, &frames[i]);
    for (uint32_t y = 0; y < c->height; y++)
      for (uint32_t x = 0; x < c->width; x++)
        if (test_random (&seed) % 6 == 0)
          for (uint32_t k = 0; k < c->channels; k++)
            photo_set (&frames[i], x, y, k,
                (uint32_t) (test_random (&seed) %
                            (c->type == IMK_TYPE_U8 ? 256 : 65536)));
  }
}

static void
frames_free (TestImage *frames, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    test_image_free (&frames[i]);
}

TEST (test_strips_threads_and_order_change_no_bit,
    "strips, threads and order change no bit")
{
  enum { N = 25, W = 131, H = 70 };
  static const uint32_t strips[] = {1, 7, 64, 0, 4000000000u};
  static const uint32_t threads[] = {1, 2, 5, 3, 2};
  static const uint32_t factors[] = {1, 7, 8, 12, 24}; /* have no 5 in them */
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, true);
  TestImage frames[N];
  Solved expected;
  ImkPhotostereo *s;

  photo_fill_dome (lights, N, 200, 0.4);
  c.pattern = IMK_PHOTOSTEREO_PATTERN_GBRG;
  make_frames (&c, frames, 3);
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N; i++)
    add (s, &frames[i], i);
  expected = solve (s, &c, IMK_TYPE_F32);
  imk_photostereo_free (s);
  for (uint32_t run = 0; run < 5; run++) {
    test_auto (Solved) solved = solved_new (&c, IMK_TYPE_F32);

    c.strip_rows = strips[run];
    c.n_threads = threads[run];
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++) {
      uint32_t light = i * factors[run] % N;

      add (s, &frames[light], light);
      if (i % 9 == run) /* a look at what is there so far */
        solved_fill (&solved, s, false);
    }
    solved_fill (&solved, s, false);
    check_same (&expected, &solved, "another order, strip or thread count");
    imk_photostereo_free (s);
  }
  solved_free (&expected);
  frames_free (frames, N);
}

TEST (test_a_set_so_far_is_a_set_of_its_own, "a set so far is a set of its own")
{
  enum { N = 24, M = 9, W = 33, H = 6 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  TestImage frames[N];
  Solved so_far, alone;
  ImkPhotostereo *s;

  photo_fill_dome (lights, N, 1, 0.4);
  c.thresholds = IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
  make_frames (&c, frames, 8);
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < M; i++)
    add (s, &frames[i], i);
  so_far = solve (s, &c, IMK_TYPE_F32);
  imk_photostereo_free (s);
  c.n_lights = M;
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t round = 0; round < 2; round++) {
    imk_photostereo_reset (s);
    test_check (imk_photostereo_n_added (s) == 0, "not empty after a reset");
    for (uint32_t i = M; i-- > 0;)
      add (s, &frames[i], i);
    alone = solve (s, &c, IMK_TYPE_F32);
    check_same (&so_far, &alone, "the first lights alone");
    solved_free (&alone);
  }
  imk_photostereo_free (s);
  solved_free (&so_far);
  frames_free (frames, N);
}

/* --- where there is no solution ------------------------------------------- */

static void
check_all_invalid (const Solved *s, const char *where)
{
  const ImkImage *n = &s->normal.image;

  for (uint32_t y = 0; y < n->height; y++)
    for (uint32_t x = 0; x < n->width; x++)
      for (uint32_t k = 0; k < 4; k++) {
        test_check (k == 3 || photo_get (&s->normal, x, y, k) == 0,
            "%s: a normal at (%u, %u)", where, x, y);
        test_check (photo_get (&s->quality, x, y, k) == 0,
            "%s: quality %u is %g at (%u, %u)", where, k,
            photo_get (&s->quality, x, y, k), x, y);
        test_check (k > 0 || (photo_get (&s->confidence, x, y, 0) == 0 &&
                                 photo_get (&s->mask, x, y, 0) == 0),
            "%s: confidence %g, mask %g at (%u, %u)", where,
            photo_get (&s->confidence, x, y, 0), photo_get (&s->mask, x, y, 0),
            x, y);
        test_check (k > 0 || photo_get (&s->albedo, x, y, k) == 0,
            "%s: albedo %g at (%u, %u)", where, photo_get (&s->albedo, x, y, k),
            x, y);
        test_check (k > 0 || isfinite (photo_get (&s->ambient, x, y, k)),
            "%s: ambient %g at (%u, %u)", where,
            photo_get (&s->ambient, x, y, k), x, y);
      }
  test_check (s->summary.n_invalid == s->summary.n_pixels,
      "%s: %llu of %llu invalid", where,
      (unsigned long long) s->summary.n_invalid,
      (unsigned long long) s->summary.n_pixels);
}

TEST (test_what_cannot_be_solved_is_marked, "what cannot be solved is marked")
{
  enum { N = 30, W = 19, H = 3 };
  static const ImkPhotostereoRobust solvers[] = {IMK_PHOTOSTEREO_ROBUST_NONE,
      IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_ROBUST_HUBER};
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U8, W, H, 1, 0);

  for (uint32_t solver = 0; solver < 3; solver++) {
    test_autoptr (ImkPhotostereo) s = NULL;
    Solved solved;

    c.robust = solvers[solver];
    photo_fill_dome (lights, N, 1, 0.4);
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t n = 0; n < 3; n++) { /* 0, 1, 2 pictures */
      if (n) {
        render (&c, 1, n, &frame);
        add (s, &frame, n);
      }
      solved = solve (s, &c, IMK_TYPE_F32);
      check_all_invalid (&solved, "few pictures");
      test_check (solved.summary.n_lights == n, "%u lights, expected %u",
          solved.summary.n_lights, n);
      solved_free (&solved);
    }
    imk_photostereo_reset (s);
    test_image_fill (&frame, FILL_ZERO, 0, 0);
    for (uint32_t i = 0; i < N; i++)
      add (s, &frame, i);
    solved = solve (s, &c, IMK_TYPE_F32);
    check_all_invalid (&solved, "black");
    solved_free (&solved);
    imk_photostereo_free (s);

    for (uint32_t i = 0; i < N; i++) /* all in one plane, of z = 2 x + y */
      lights[i] = (ImkPhotostereoLight){.x = cos (i * 0.07),
          .y = sin (i * 0.07),
          .z = 2 * cos (i * 0.07) + sin (i * 0.07),
          .intensity = {1, 1, 1}};
    test_check (imk_photostereo_lights_condition (&c) < 1e-6,
        "coplanar lights have the condition %g",
        imk_photostereo_lights_condition (&c));
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++) {
      render (&c, 1, i, &frame);
      add (s, &frame, i);
    }
    solved = solve (s, &c, IMK_TYPE_F32);
    check_all_invalid (&solved, "coplanar lights");
    solved_free (&solved);
  }
}

TEST (test_what_all_lights_clip_is_invalid, "what all lights clip is invalid")
{
  enum { N = 12 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, 5, 2, 1, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U8, 5, 2, 1, 0);
  ImkPhotostereo *s;
  Solved solved;

  photo_fill_dome (lights, N, 1, 0.4);
  test_image_fill (&frame, FILL_MAXIMUM, 255, 0);
  for (uint32_t run = 0; run < 3; run++) {
    c.robust = run == 2 ? IMK_PHOTOSTEREO_ROBUST_HUBER
                        : IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
    c.thresholds = run == 0 ? IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE
                            : IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++)
      add (s, &frame, i);
    solved = solve (s, &c, IMK_TYPE_F32);
    check_all_invalid (&solved, "saturated");
    test_check (photo_get (&solved.ambient, 0, 0, 0) == 1, "ambient %g",
        photo_get (&solved.ambient, 0, 0, 0));
    solved_free (&solved);
    imk_photostereo_free (s);
  }
}

/* As a sensor that ends at @level. Returns: how many samples it clips */
static uint64_t
render_overexposed (
    const ImkPhotostereoConfig *c, uint32_t i, uint32_t level, TestImage *frame)
{
  uint64_t n = 0;

  render (c, 2, i, frame);
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++)
      for (uint32_t k = 0; k < c->channels; k++)
        if (photo_get (frame, x, y, k) >= level) {
          photo_set (frame, x, y, k, level + (x + y) % 2);
          n++;
        }
  return n;
}

/* Degrees from the truth on average. */
static double
mean_error (const ImkPhotostereoConfig *c, const Solved *solved, uint64_t *n)
{
  double sum = 0;

  *n = 0;
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double truth[3], found[3];

      shape_at (2, x, y, truth);
      solved_normal (solved, x, y, found);
      if (dot (found, found) != 0) {
        sum += photo_angle (truth, found);
        ++*n;
      }
    }
  return sum / (double) *n;
}

TEST (test_clipped_samples_are_outliers_from_the_start,
    "clipped samples are outliers from the start")
{
  enum { N = 60, W = 33, H = 3, LEVEL = 20000 };
  static const ImkPhotostereoRobust robust[] = {
      IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, IMK_PHOTOSTEREO_ROBUST_THRESHOLDS,
      IMK_PHOTOSTEREO_ROBUST_HUBER};
  ImkPhotostereoLight lights[N] = {{0}};

  photo_fill_dome (lights, N, 1, 0.5);
  for (uint32_t run = 0; run < 6; run++) {
    ImkPhotostereoConfig c =
        config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
    test_auto (TestImage) frame = test_image_new (c.type, W, H, 1, 0);
    uint64_t n_clipped = 0, n_valid;
    test_autoptr (ImkPhotostereo) s = NULL;
    test_auto (Solved) solved;
    double error;

    c.robust = robust[run % 3];
    c.thresholds = run % 3 ? IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE
                           : IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
    c.t_max = 10; /* not by that */
    c.saturation = run < 3 ? LEVEL : -1;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++) {
      n_clipped += render_overexposed (&c, i, LEVEL, &frame);
      add (s, &frame, i);
    }
    solved = solve (s, &c, IMK_TYPE_F32);
    error = mean_error (&c, &solved, &n_valid);
    test_check (n_clipped > N * W * H / 5, "only %llu samples are clipped",
        (unsigned long long) n_clipped);
    test_check (solved.summary.n_samples == N * W * H, "of %llu samples",
        (unsigned long long) solved.summary.n_samples);
    if (run < 3) {
      test_check (error < 0.01, "run %u: %.3f degrees off", run, error);
      test_check (n_valid > W * H / 2, "run %u: %llu pixels are valid", run,
          (unsigned long long) n_valid);
      test_check (solved.summary.n_clipped == n_clipped &&
                      solved.summary.largest == LEVEL + 1,
          "%llu samples are clipped, the largest is %u; expected %llu, %u",
          (unsigned long long) solved.summary.n_clipped, solved.summary.largest,
          (unsigned long long) n_clipped, LEVEL + 1);
    } else {
      test_check (error > 0.5, "run %u: %.3f degrees off only", run, error);
      test_check (solved.summary.n_clipped == 0, "never is %llu",
          (unsigned long long) solved.summary.n_clipped);
    }
  }
}

/* In any channel, as it came: what is dark, and the mask, do not matter. */
TEST (test_a_clipped_channel_is_enough, "a clipped channel is enough")
{
  enum { N = 24, W = 9, H = 2 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 3, lights, N, false);
  test_auto (TestImage) frame = test_image_new (c.type, W, H, 3, 0);
  test_auto (TestImage) dark = test_image_new (c.type, W, H, 3, 0);
  test_auto (TestImage) mask = test_image_new (c.type, W, H, 1, 0);
  test_autoptr (ImkPhotostereo) s = NULL;
  test_auto (Solved) solved;

  photo_fill_dome (lights, N, 1, 0.5);
  test_image_fill (&dark, FILL_MAXIMUM, 10, 0);
  test_image_fill (&mask, FILL_MAXIMUM, 1, 0);
  photo_set (&mask, 8, 1, 0, 0);
  c.dark = &dark.image;
  c.mask = &mask.image;
  c.t_max = c.t_res = 100;
  c.t_min = 0;
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N; i++) {
    test_image_fill (&frame, FILL_MAXIMUM, 100, 0);
    for (uint32_t x = 0; x < W; x++) /* the x-th pixel under x lights */
      for (uint32_t y = 0; y < H; y++)
        photo_set (&frame, x, y, i % 3, i < x ? 255 : 254);
    add (s, &frame, i);
  }
  solved = solve (s, &c, IMK_TYPE_F32);
  for (uint32_t x = 0; x < W; x++)
    test_check (
        photo_get (&solved.quality, x, 0, IMK_PHOTOSTEREO_LIGHTS) == N - x,
        "%g lights at pixel %u", photo_get (&solved.quality, x, 0, 0), x);
  test_check (solved.summary.n_clipped == 2 * 36 - 8,
      "%llu samples are clipped",
      (unsigned long long) solved.summary.n_clipped);
  test_check (solved.summary.n_samples == N * 3 * (W * H - 1), "of %llu",
      (unsigned long long) solved.summary.n_samples);
}

TEST (test_mask_is_obeyed, "a mask is obeyed")
{
  enum { N = 20, W = 70, H = 5 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  TestImage frames[N], mask = test_image_new (IMK_TYPE_U8, W, H, 1, 2);
  ImkPhotostereo *s;
  Solved all, some;

  photo_fill_dome (lights, N, 1, 0.5);
  make_frames (&c, frames, 4);
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++)
      photo_set (&mask, x, y, 0, (x * y) % 3 == 1 && x < 60 ? 1 + x : 0);
  for (uint32_t masked = 0; masked < 2; masked++) {
    c.mask = masked ? &mask.image : NULL;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++)
      add (s, &frames[i], i);
    *(masked ? &some : &all) = solve (s, &c, IMK_TYPE_F32);
    imk_photostereo_free (s);
  }
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++)
      for (uint32_t k = 0; k < 3; k++) {
        double expected =
            photo_get (&mask, x, y, 0) ? photo_get (&all.normal, x, y, k) : 0;

        test_check (photo_get (&some.normal, x, y, k) == expected,
            "normal %g at (%u, %u), expected %g",
            photo_get (&some.normal, x, y, k), x, y, expected);
      }
  test_image_same (&all.ambient, &some.ambient, "ambient in and out of a mask");
  solved_free (&all);
  solved_free (&some);
  test_image_free (&mask);
  frames_free (frames, N);
}

/* --- samples -------------------------------------------------------------- */

TEST (test_colours_of_a_mosaic, "colours of a mosaic")
{
  static const uint8_t sites[][4] = {
      {2, 1, 1, 0}, {0, 1, 1, 2}, {1, 2, 0, 1}, {1, 0, 2, 1}};
  static const double colour[] = {0.8, 0.5, 0.2};
  enum { N = 20, W = 9, H = 7 };
  ImkPhotostereoLight lights[N] = {{0}};

  photo_fill_dome (lights, N, 1, 0.5);
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t k = 0; k < 3; k++)
      lights[i].intensity[k] = 0.5 + 0.02 * ((i + 5 * k) % 20);
  for (uint32_t pattern = 1; pattern <= 4; pattern++)
    for (uint32_t grey = 0; grey < 2; grey++) {
      ImkPhotostereoConfig c =
          config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
      test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, W, H, 1, 2);
      test_autoptr (ImkPhotostereo) s = NULL;
      double n[3] = {0.2, -0.3, 0}, found[3], mean[3] = {0};
      test_auto (Solved) solved;

      n[2] = sqrt (1 - 0.13);
      c.pattern = (ImkPhotostereoPattern) pattern;
      c.grey = (ImkPhotostereoGrey) grey;
      s = kernel_new (IMK_BACKEND_CPU, &c);
      for (uint32_t i = 0; i < N; i++) {
        double l[3], shade;

        imk_photostereo_reference_light (&c, i, 0, 0, 0, l);
        shade = dot (n, l);
        for (uint32_t y = 0; y < H; y++)
          for (uint32_t x = 0; x < W; x++) {
            uint32_t k = sites[pattern - 1][2 * (y & 1) + (x & 1)];

            photo_set (&frame, x, y, 0,
                (uint32_t) (65535 * colour[k] * shade * lights[i].intensity[k] +
                            0.5));
          }
        for (uint32_t k = 0; k < 3; k++)
          mean[k] += colour[k] * shade / N;
        add (s, &frame, i);
      }
      solved = solve (s, &c, IMK_TYPE_F32);
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
          solved_normal (&solved, x, y, found);
          test_check (photo_angle (n, found) < 0.01,
              "%.5f degrees off at (%u, %u)", photo_angle (n, found), x, y);
          for (uint32_t k = 0; k < 3; k++) {
            test_check (
                fabs (photo_get (&solved.albedo, x, y, k) - colour[k]) < 1e-4,
                "pattern %u, grey %u: albedo %u is %g at (%u, %u)", pattern,
                grey, k, photo_get (&solved.albedo, x, y, k), x, y);
            test_check (
                fabs (photo_get (&solved.ambient, x, y, k) - mean[k]) < 1e-4,
                "pattern %u, grey %u: ambient %u is %g at (%u, %u)", pattern,
                grey, k, photo_get (&solved.ambient, x, y, k), x, y);
          }
        }
    }
}

TEST (test_order_of_channels, "the order of channels")
{
  static const uint32_t orders[][4] = {
      {3, 0, 1, 2}, {3, 2, 1, 0}, {4, 0, 1, 2}, {4, 1, 2, 3}, {4, 2, 1, 0}};
  enum { N = 20, W = 37, H = 3 };
  ImkPhotostereoLight lights[N] = {{0}};
  test_auto (Solved) first;

  photo_fill_dome (lights, N, 1, 0.5);
  for (uint32_t o = 0; o < 5; o++) {
    ImkPhotostereoConfig c =
        config_of (IMK_TYPE_U8, W, H, orders[o][0], lights, N, false);
    test_auto (TestImage) frame =
        test_image_new (IMK_TYPE_U8, W, H, orders[o][0], 1);
    test_autoptr (ImkPhotostereo) s = NULL;
    Solved solved;

    for (uint32_t k = 0; k < 3; k++)
      c.colours[k] = orders[o][1 + k];
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++) {
      uint64_t seed = i, noise = o;

      test_image_fill (&frame, FILL_NOISE, 255, noise);
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
          for (uint32_t k = 0; k < 3; k++)
            photo_set (&frame, x, y, c.colours[k],
                60 + i + (uint32_t) (test_random (&seed) % 64));
      add (s, &frame, i);
    }
    solved = solve (s, &c, IMK_TYPE_F32);
    test_check (solved.summary.n_invalid == 0, "invalid pixels");
    if (o == 0) {
      first = solved;
    } else {
      check_same (&first, &solved, "another order of channels");
      solved_free (&solved);
    }
  }
}

TEST (test_dark_white_and_gamma, "dark frame, white frame and gamma")
{
  enum { N = 20, W = 21, H = 4 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
  test_auto (TestImage) dark = test_image_new (IMK_TYPE_U16, W, H, 1, 4);
  test_auto (TestImage) white = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
  test_autoptr (ImkPhotostereo) s = NULL;
  test_auto (Solved) solved;
  double mean = 0;

  photo_fill_dome (lights, N, 1, 0.6);
  c.gamma = 2.2;
  c.full_scale = 4095;
  c.dark = &dark.image;
  c.white = &white.image;
#define FIELD(x) (0.4 + 0.02 * (x))
#define DARK(y) (0.01 + 0.005 * (y))
#define CODE(v) ((uint32_t) (4095 * pow (v, 1 / 2.2) + 0.5))
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      photo_set (&dark, x, y, 0, CODE (DARK (y)));
      photo_set (&white, x, y, 0, CODE (FIELD (x) + DARK (y)));
      mean += FIELD (x) / (W * H);
    }
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N; i++) {
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double n[3], l[3];

        shape_at (2, x, y, n);
        imk_photostereo_reference_light (&c, i, x, y, 0, l);
        photo_set (
            &frame, x, y, 0, CODE (0.9 * FIELD (x) * dot (n, l) + DARK (y)));
      }
    add (s, &frame, i);
  }
  solved = solve (s, &c, IMK_TYPE_F32);
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double error = error_at (&solved, x, y);

      test_check (error < 0.1, "%.4f degrees off at (%u, %u)", error, x, y);
      test_check (
          fabs (photo_get (&solved.albedo, x, y, 0) - 0.9 * mean) < 1e-3,
          "albedo %g at (%u, %u), expected %g",
          photo_get (&solved.albedo, x, y, 0), x, y, 0.9 * mean);
    }
}

TEST (test_black_and_clipped_parts_of_a_white_frame,
    "black and clipped parts of a white frame are not solved")
{
  enum { N = 8, W = 20, H = 5 };
  static const uint32_t unmeasured[] = {0, 255};
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U8, W, H, 1, 0);
  test_auto (TestImage) white = test_image_new (IMK_TYPE_U8, W, H, 1, 0);

  photo_fill_dome (lights, N, 1, 0.6);
  c.white = &white.image;
  for (uint32_t k = 0; k < 2; k++) {
    test_autoptr (ImkPhotostereo) s = NULL;
    test_auto (Solved) solved;
    double n[3], l[3];

    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        photo_set (&white, x, y, 0, x < 5 ? unmeasured[k] : 200);
    s = kernel_new (IMK_BACKEND_CPU, &c);
    test_check (fabs (imk_photostereo_unmeasured (s) - 0.25) < 1e-12,
        "%g of the pixels", imk_photostereo_unmeasured (s));
    for (uint32_t i = 0; i < N; i++) {
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
          shape_at (2, x, y, n);
          imk_photostereo_reference_light (&c, i, x, y, 0, l);
          photo_set (
              &frame, x, y, 0, (uint32_t) (0.8 * 255 * dot (n, l) + 0.5));
        }
      add (s, &frame, i);
    }
    solved = solve (s, &c, IMK_TYPE_F32);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        test_check (photo_get (&solved.mask, x, y, 0) == (x >= 5) &&
                        fabs (photo_get (&solved.albedo, x, y, 0) -
                              (x < 5 ? 0 : 0.8)) < 0.01,
            "mask %g, albedo %g at (%u, %u)", photo_get (&solved.mask, x, y, 0),
            photo_get (&solved.albedo, x, y, 0), x, y);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 5; x < 11; x++)
        photo_set (&white, x, y, 0, unmeasured[k]);
    photo_refuse (&c, IMK_ERROR_IMAGE, "black or clipped at 55 %");
  }
}

static void
check_trust (const Solved *f32, const Solved *u8, const Solved *u16, uint32_t x,
    uint32_t y, bool valid)
{
  double v = photo_get (&f32->confidence, x, y, 0);
  double in_u8 = photo_get (&u8->confidence, x, y, 0);
  double in_u16 = photo_get (&u16->confidence, x, y, 0);

  test_check (v >= 0 && v <= 1 && (valid || v == 0), "confidence %g", v);
  test_check (
      fabs (in_u8 - 255 * v) <= 0.501, "u8 confidence %g for %g", in_u8, v);
  test_check (
      fabs (in_u16 - 65535 * v) <= 0.51, "u16 confidence %g for %g", in_u16, v);
  test_check (photo_get (&f32->mask, x, y, 0) == valid &&
                  photo_get (&u8->mask, x, y, 0) == (valid ? 255 : 0) &&
                  photo_get (&u16->mask, x, y, 0) == (valid ? 65535 : 0),
      "mask at (%u, %u)", x, y);
}

TEST (test_encodings_round_the_same_numbers, "encodings round the same numbers")
{
  enum { N = 20, W = 65, H = 6 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  TestImage frames[N], mask = test_image_new (IMK_TYPE_U8, W, H, 1, 0);

  photo_fill_dome (lights, N, 1, 0.5);
  make_frames (&c, frames, 12);
  test_image_fill (&mask, FILL_CHECKERBOARD, 255, 0);
  c.mask = &mask.image;
  for (uint32_t down = 0; down < 2; down++)
    for (uint32_t bayer = 0; bayer < 2; bayer++) {
      test_autoptr (ImkPhotostereo) s = NULL;
      test_auto (Solved) f32 = {0}, u8 = {0}, u16 = {0};

      c.y_down = down;
      c.pattern =
          bayer ? IMK_PHOTOSTEREO_PATTERN_RGGB : IMK_PHOTOSTEREO_PATTERN_NONE;
      s = kernel_new (IMK_BACKEND_CPU, &c);
      for (uint32_t i = 0; i < N; i++)
        add (s, &frames[i], i);
      f32 = solve (s, &c, IMK_TYPE_F32);
      u8 = solve (s, &c, IMK_TYPE_U8);
      u16 = solve (s, &c, IMK_TYPE_U16);
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
          bool valid = photo_get (&mask, x, y, 0) != 0;
          double z = photo_get (&f32.normal, x, y, 2);

          test_check ((z > 0) == valid, "z = %g at (%u, %u)", z, x, y);
          for (uint32_t k = 0; k < 3; k++) {
            double v = photo_get (&f32.normal, x, y, k);

            test_check (fabs (photo_get (&u8.normal, x, y, k) -
                              (valid ? 128 + 127 * v : 0)) <= 0.501,
                "u8 %g for %g", photo_get (&u8.normal, x, y, k), v);
            test_check (fabs (photo_get (&u16.normal, x, y, k) -
                              (valid ? 32768 + 32767 * v : 0)) <= 0.51,
                "u16 %g for %g", photo_get (&u16.normal, x, y, k), v);
          }
          test_check (photo_get (&u16.normal, x, y, 3) == (valid ? 65535 : 0),
              "alpha %g", photo_get (&u16.normal, x, y, 3));
          for (uint32_t k = 0; k < (bayer ? 3 : 1); k++) {
            double a = photo_get (&f32.albedo, x, y, k);
            double m = photo_get (&f32.ambient, x, y, k);

            test_check (fabs (photo_get (&u8.albedo, x, y, k) -
                              255 * (a > 1 ? 1 : a)) <= 0.501,
                "u8 albedo %g for %g", photo_get (&u8.albedo, x, y, k), a);
            test_check (
                fabs (photo_get (&u16.ambient, x, y, k) - 65535 * m) <= 0.51,
                "u16 ambient %g for %g", photo_get (&u16.ambient, x, y, k), m);
          }
          test_check (photo_get (&u16.quality, x, y, 0) ==
                          photo_get (&f32.quality, x, y, 0),
              "lights");
          check_trust (&f32, &u8, &u16, x, y, valid);
        }
      if (down) { /* the sign of y alone tells */
        double up;

        c.y_down = false;
        imk_photostereo_update (s, &c, NULL);
        up = photo_get (&f32.normal, 11, 2, 1);
        solved_fill (&f32, s, false);
        test_check (photo_get (&f32.normal, 11, 2, 1) == -up && up != 0,
            "y up %g, down %g", photo_get (&f32.normal, 11, 2, 1), up);
      }
    }
  test_image_free (&mask);
  frames_free (frames, N);
}

/* --- watching, and which light to take next ------------------------------- */

TEST (test_change_is_the_mean_angle, "the change is the mean angle")
{
  enum { N = 24, W = 40, H = 4 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  TestImage frames[N];
  test_autoptr (ImkPhotostereo) s = NULL;
  Solved last, now;
  double sum = 0;

  photo_fill_dome (lights, N, 1, 0.5);
  c.track_change = true;
  make_frames (&c, frames, 21);
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N / 2; i++)
    add (s, &frames[i], i);
  last = solve (s, &c, IMK_TYPE_F32);
  test_check (isnan (last.summary.change_deg), "a change from nothing");
  for (uint32_t i = N / 2; i < N; i++)
    add (s, &frames[i], i);
  now = solve (s, &c, IMK_TYPE_F32);
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double a[3], b[3];

      solved_normal (&last, x, y, a);
      solved_normal (&now, x, y, b);
      sum += photo_angle (a, b) / (W * H);
    }
  test_check (now.summary.n_invalid == 0 && sum > 0.1, "nothing to compare");
  test_check (fabs (now.summary.change_deg - sum) < 1e-6,
      "change %.8f, expected %.8f", now.summary.change_deg, sum);
  solved_fill (&now, s, false);
  test_check (now.summary.change_deg == 0, "the same changes by %g",
      now.summary.change_deg);
  solved_free (&last);
  solved_free (&now);
  frames_free (frames, N);
}

/* The solution by normal equations in float64, centred where a constant is
 * solved, too. Returns: the confidence */
static double
confidence_in_float64 (
    const double l[][3], const double *g, uint32_t n, bool constant)
{
  double mean[4] = {0}, a[3][3] = {{0}}, adj[3][3], b[3] = {0}, v[3] = {0};
  double det = 0, trace = 0, trace_adj = 0, rr = 0, degrees;

  for (uint32_t i = 0; i < n && constant; i++)
    for (int k = 0; k < 4; k++)
      mean[k] += (k < 3 ? l[i][k] : g[i]) / n;
  for (uint32_t i = 0; i < n; i++)
    for (int j = 0; j < 3; j++) {
      b[j] += (l[i][j] - mean[j]) * (g[i] - mean[3]);
      for (int k = 0; k < 3; k++)
        a[j][k] += (l[i][j] - mean[j]) * (l[i][k] - mean[k]);
    }
  for (int j = 0; j < 3; j++)
    for (int k = 0; k < 3; k++) {
      int p = (j + 1) % 3, q = (j + 2) % 3, r = (k + 1) % 3, s = (k + 2) % 3;

      adj[j][k] = a[p][r] * a[q][s] - a[p][s] * a[q][r];
    }
  for (int j = 0; j < 3; j++) {
    det += a[0][j] * adj[0][j];
    trace += a[j][j];
    trace_adj += adj[j][j];
  }
  for (int j = 0; j < 3; j++)
    v[j] = dot (adj[j], b) / det;
  for (uint32_t i = 0; i < n; i++) {
    double r = dot (v, l[i]) - dot (v, mean) + mean[3] - g[i];

    rr += r * r;
  }
  degrees = 57.29577951308232 * sqrt (rr / n) / sqrt (dot (v, v)) /
            sqrt ((n - (constant ? 4 : 3)) * det / trace / trace_adj);
  return 1 / (1 + degrees);
}

TEST (test_confidence_is_that_of_least_squares,
    "the confidence is that of least squares")
{
  enum { N = 12, W = 37, H = 5 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  TestImage frames[N];

  photo_fill_dome (lights, N, 1, 0.3);
  c.robust = IMK_PHOTOSTEREO_ROBUST_NONE;
  make_frames (&c, frames, 5);
  for (uint32_t constant = 0; constant < 2; constant++) {
    test_autoptr (ImkPhotostereo) s = NULL;
    test_auto (Solved) all;

    c.ambient_model = constant ? IMK_PHOTOSTEREO_AMBIENT_CONSTANT
                               : IMK_PHOTOSTEREO_AMBIENT_MEAN;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++)
      add (s, &frames[i], i);
    all = solve (s, &c, IMK_TYPE_F32);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double l[N][3], g[N], expected;
        double found = photo_get (&all.confidence, x, y, 0);

        for (uint32_t i = 0; i < N; i++) {
          l[i][0] = lights[i].x;
          l[i][1] = lights[i].y;
          l[i][2] = lights[i].z;
          g[i] = photo_get (&frames[i], x, y, 0) / 65535;
        }
        expected = confidence_in_float64 (l, g, N, constant);
        test_check (fabs (found - expected) < 1e-5,
            "constant %u: %.8f at (%u, %u), expected %.8f", constant, found, x,
            y, expected);
        test_check (
            photo_get (&all.mask, x, y, 0) == 1, "mask at (%u, %u)", x, y);
      }
  }
  frames_free (frames, N);
}

/* What comes out for each pixel is known by other tests. */
TEST (test_mean_residual_is_that_of_the_pixels,
    "the mean residual is that of the pixels")
{
  enum { N = 24, W = 40, H = 6 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, W, H, 1, lights, N, false);
  TestImage frames[N], out = test_image_new (IMK_TYPE_F32, W, H, 3, 0);
  ImkPhotostereoOutputs normals = {.normal = out.image};
  ImkPhotostereoSummary summary;

  photo_fill_dome (lights, N, 1, 0.5);
  make_frames (&c, frames, 21);
  for (uint32_t k = 0; k < 2; k++) {
    test_autoptr (ImkPhotostereo) s = NULL;
    test_auto (Solved) all;
    double sum = 0, n = 0;

    c.thresholds = k ? IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE
                     : IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++)
      add (s, &frames[i], i);
    all = solve (s, &c, IMK_TYPE_F32);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        if (photo_get (&all.quality, x, y, IMK_PHOTOSTEREO_LIGHTS) > 0) {
          sum += photo_get (&all.quality, x, y, IMK_PHOTOSTEREO_RESIDUAL);
          n += photo_get (&all.albedo, x, y, 0);
        }
    test_check (
        sum > 0.001 * n && fabs (all.summary.mean_residual - sum / n) < 1e-6,
        "mean residual %.8f, expected %.8f", all.summary.mean_residual,
        sum / n);
    test_ok (
        imk_photostereo_solve (s, &normals, &summary, NULL, test_new_error ()));
    test_check (k ? isnan (summary.mean_residual)
                  : summary.mean_residual == all.summary.mean_residual,
        "without quality it is %.8f", summary.mean_residual);
  }
  frames_free (frames, N);
  test_image_free (&out);
}

TEST (test_next_light_is_the_one_that_is_missed,
    "the next light is the one that is missed")
{
  /* three that hardly differ in y; and the choice between another like them,
   * one that is behind the surface, and one that lights it from elsewhere */
  static const ImkPhotostereoLight lights[] = {
      {.x = 0.5, .z = 0.8, .intensity = {1, 1, 1}},
      {.x = -0.5, .z = 0.8, .intensity = {1, 1, 1}},
      {.x = 0.4, .y = 0.2, .z = 0.85, .intensity = {1, 1, 1}},
      {.x = 0.3, .z = 0.9, .intensity = {1, 1, 1}},
      {.y = -0.9, .z = 0.1, .intensity = {1, 1, 1}},
      {.y = 0.6, .z = 0.7, .intensity = {1, 1, 1}},
  };
  const double n[] = {0, 0.6, 0.8};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, 3, 2, 1, lights, 6, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, 3, 2, 1, 0);
  uint32_t next = 99;
  test_autoptr (ImkPhotostereo) s = NULL;
  Solved solved;

  c.robust = IMK_PHOTOSTEREO_ROBUST_NONE;
  c.track_change = true;
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < 6; i++) {
    double l[3], g;

    imk_photostereo_reference_light (&c, i, 0, 0, 0, l);
    g = dot (n, l);
    for (uint32_t p = 0; p < 6; p++)
      photo_set (
          &frame, p % 3, p / 3, 0, (uint32_t) (g > 0 ? 0.5 * 65535 * g : 0));
    if (i == 3) {
      solved = solve (s, &c, IMK_TYPE_F32);
      test_check (solved.summary.n_invalid == 0, "invalid");
      solved_free (&solved);
      test_ok (imk_photostereo_next_light (s, &next, NULL, test_new_error ()));
      test_check (next == 5, "light %u", next);
    }
    add (s, &frame, i);
  }
  test_error (imk_photostereo_next_light (s, &next, NULL, test_new_error ()),
      IMK_ERROR_CONFIG, "none is left");
  imk_photostereo_reset (s); /* nothing is known but where the lights are */
  add (s, &frame, 0);
  add (s, &frame, 1);
  test_ok (imk_photostereo_next_light (s, &next, NULL, test_new_error ()));
  test_check (next == 4 || next == 5, "light %u", next);
}

/* A pixel that a sample is of has the dark value of that sample, not the mean
 * of its neighbours. Samples are multiples of 12, so that means are exact. */
TEST (test_dark_frame_of_a_mosaic,
    "the dark frame of an interpolated mosaic is taken off exactly")
{
  enum { W = 9, H = 7, N = 6 };
  ImkPhotostereoLight lights[N];
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  test_auto (TestImage) dark = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
  Solved solved[2];
  uint64_t seed = 8;

  photo_fill_dome (lights, N, 1, 0.5);
  c.pattern = IMK_PHOTOSTEREO_PATTERN_RGGB;
  c.grey = IMK_PHOTOSTEREO_GREY_LUMA;
  c.robust = IMK_PHOTOSTEREO_ROBUST_NONE;
  for (uint32_t p = 0; p < W * H; p++)
    photo_set (
        &dark, p % W, p / W, 0, 12 * (uint32_t) (test_random (&seed) % 500));
  for (int k = 0; k < 2; k++) {
    test_autoptr (ImkPhotostereo) s = NULL;

    c.dark = k ? &dark.image : NULL;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    seed = 9;
    for (uint32_t i = 0; i < N; i++) {
      test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, W, H, 1, 0);

      for (uint32_t p = 0; p < W * H; p++) {
        uint32_t v = 12 * (uint32_t) (100 + test_random (&seed) % 4000);

        photo_set (&frame, p % W, p / W, 0,
            v + k * (uint32_t) photo_get (&dark, p % W, p / W, 0));
      }
      add (s, &frame, i);
    }
    solved[k] = solve (s, &c, IMK_TYPE_F32);
  }
  for (uint32_t p = 0; p < W * H; p++)
    for (uint32_t k = 0; k < 3; k++) {
      double v[2] = {photo_get (&solved[0].normal, p % W, p / W, k),
          photo_get (&solved[1].normal, p % W, p / W, k)};

      test_check (fabs (v[1] - v[0]) < 1e-4,
          "normal of (%u, %u): %g, without dark frame %g", p % W, p / W, v[1],
          v[0]);
    }
  for (int k = 0; k < 2; k++)
    solved_free (&solved[k]);
}

/* In x the lights hardly differ, in y not at all: the direction that nothing
 * tells of comes first, also against one that lies farther off in x. */
TEST (test_next_light_is_in_the_direction_that_nothing_tells_of,
    "the next light is in the direction that nothing tells of")
{
  static const ImkPhotostereoLight lights[] = {
      {.x = 0.1, .z = 0.995, .intensity = {1, 1, 1}},
      {.x = -0.1, .z = 0.995, .intensity = {1, 1, 1}},
      {.x = 0.98, .y = 0.15, .z = 0.13, .intensity = {1, 1, 1}},
      {.y = 0.4, .z = 0.917, .intensity = {1, 1, 1}},
  };
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, 3, 2, 1, lights, 4, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, 3, 2, 1, 0);
  test_autoptr (ImkPhotostereo) s = NULL;
  uint32_t next = 99;

  c.track_change = true;
  s = kernel_new (IMK_BACKEND_CPU, &c);
  add (s, &frame, 0);
  add (s, &frame, 1);
  test_ok (imk_photostereo_next_light (s, &next, NULL, test_new_error ()));
  test_check (next == 3, "light %u", next);
}

/* --- what is refused ------------------------------------------------------ */

enum { HILL_LIGHTS = 40, HILL_WIDTH = 120, HILL_HEIGHT = 90 };
enum { HILL_PIXELS = HILL_WIDTH * HILL_HEIGHT };

/* A hill 18 mm high under a dome of 300 mm, whose lamps shine on each pixel
 * from where it is. */
typedef struct Hill {
  ImkPhotostereoLight lights[HILL_LIGHTS];
  ImkPhotostereoConfig config;
  TestImage frames[HILL_LIGHTS];
  double camera_z;  /* mm above the plane; 0: infinity */
  double zero;      /* mm: of the plane */
  double error[3];  /* mean degrees of each run */
  double albedo[3]; /* likewise: the largest part that it is off */
} Hill;

/* Returns: mm at (@x, @y); @n: (out) */
static double
hill_at (double x, double y, double n[3])
{
  double g = 24 * exp (-(x * x + y * y) / (32 * 32.0)), length;

  n[0] = 2 * x / (32 * 32.0) * g;
  n[1] = 2 * y / (32 * 32.0) * g;
  n[2] = 1;
  length = sqrt (dot (n, n));
  for (int i = 0; i < 3; i++)
    n[i] /= length;
  return g;
}

/* Where the ray of pixel @k meets the hill. Returns: mm above the plane */
static double
hill_through (const Hill *hill, uint32_t k, double n[3])
{
  double x = k % HILL_WIDTH - (HILL_WIDTH - 1) / 2.0;
  double y = (HILL_HEIGHT - 1) / 2.0 - k / HILL_WIDTH;
  double mm = hill->config.mm_per_pixel, h = 0;

  if (hill->camera_z == 0)
    return hill_at (mm * x, mm * y, n) - hill->zero;
  for (int i = 0; i < 60; i++) { /* slopes times leans are below 0.3 */
    double lean = mm * (1 - h / hill->camera_z);

    h = hill_at (lean * x, lean * y, n) - hill->zero;
  }
  return h;
}

/* The plane is at the mean or the lowest point; with a camera what it sees
 * depends on that. */
static void
hill_find_zero (Hill *hill)
{
  for (int i = 0; i < (hill->camera_z > 0 ? 20 : 1); i++) {
    double mean = 0, least = INFINITY, n[3];

    for (uint32_t k = 0; k < HILL_PIXELS; k++) {
      double h = hill_through (hill, k, n);

      mean += h / HILL_PIXELS;
      least = fmin (least, h);
    }
    hill->zero +=
        hill->config.plane_at == IMK_PHOTOSTEREO_PLANE_AT_LOWEST ? least : mean;
  }
}

static void
hill_init (Hill *hill)
{
  *hill = (Hill){.zero = 0};
  photo_fill_dome (hill->lights, HILL_LIGHTS, 300, 0.3);
  hill->config = config_of (IMK_TYPE_U16, HILL_WIDTH, HILL_HEIGHT, 1,
      hill->lights, HILL_LIGHTS, true);
  hill->config.mm_per_pixel = 0.8;
  for (uint32_t i = 0; i < HILL_LIGHTS; i++)
    hill->frames[i] =
        test_image_new (IMK_TYPE_U16, HILL_WIDTH, HILL_HEIGHT, 1, 0);
}

/* As config and camera_z say. */
static void
hill_render (Hill *hill)
{
  hill_find_zero (hill);
  for (uint32_t i = 0; i < HILL_LIGHTS; i++)
    for (uint32_t k = 0; k < HILL_PIXELS; k++) {
      uint32_t x = k % HILL_WIDTH, y = k / HILL_WIDTH;
      double n[3], l[3], h = hill_through (hill, k, n);

      imk_photostereo_reference_light (&hill->config, i, x, y, h, l);
      photo_set (&hill->frames[i], x, y, 0,
          (uint32_t) (65535 * 0.6 * fmax (dot (n, l), 0) + 0.5));
    }
}

static void
hill_solve (Hill *hill, uint32_t run)
{
  test_autoptr (ImkPhotostereo) s = kernel_new (IMK_BACKEND_CPU, &hill->config);
  test_auto (Solved) solved;

  for (uint32_t i = 0; i < HILL_LIGHTS; i++)
    add (s, &hill->frames[i], i);
  solved = solve (s, &hill->config, IMK_TYPE_F32);
  for (uint32_t k = 0; k < HILL_PIXELS; k++) {
    uint32_t x = k % HILL_WIDTH, y = k / HILL_WIDTH;
    double n[3], found[3];

    hill_through (hill, k, n);
    solved_normal (&solved, x, y, found);
    hill->error[run] += photo_angle (n, found) / HILL_PIXELS;
    hill->albedo[run] = fmax (hill->albedo[run],
        fabs (photo_get (&solved.albedo, x, y, 0) / 0.6 - 1));
  }
}

static void
hill_clear (Hill *hill)
{
  for (uint32_t i = 0; i < HILL_LIGHTS; i++)
    test_image_free (&hill->frames[i]);
}

TEST (test_near_lamps_know_the_height, "near lamps know the height")
{
  static const struct {
    ImkPhotostereoPlaneAt at;
    ImkPhotostereoModel model;
    double lobe, least[2]; /* error of a plane, degrees and part of albedo */
  } runs[] = {
      {IMK_PHOTOSTEREO_PLANE_AT_MEAN, IMK_PHOTOSTEREO_MODEL_AUTO, 0,
          {0.05, 0.02}},
      {IMK_PHOTOSTEREO_PLANE_AT_LOWEST, IMK_PHOTOSTEREO_MODEL_AUTO, 0,
          {0.05, 0.02}},
      {IMK_PHOTOSTEREO_PLANE_AT_MEAN, IMK_PHOTOSTEREO_MODEL_UNIT, 0,
          {0.05, 0.001}},
      {IMK_PHOTOSTEREO_PLANE_AT_MEAN, IMK_PHOTOSTEREO_MODEL_AUTO, 4,
          {0.05, 0.02}},
  };

  for (uint32_t p = 0; p < sizeof (runs) / sizeof (runs[0]); p++) {
    Hill hill;
    const double *error = hill.error, *albedo = hill.albedo;

    hill_init (&hill);
    hill.config.plane_at = runs[p].at;
    hill.config.model = runs[p].model;
    hill.config.led_lobe = runs[p].lobe;
    hill_render (&hill);
    for (uint32_t rounds = 0; rounds < 3; rounds++) {
      hill.config.height_rounds = rounds;
      hill_solve (&hill, rounds);
    }
    test_check (error[0] > runs[p].least[0] && albedo[0] > runs[p].least[1],
        "run %u: a plane costs %.3f degrees, %.2f %% of the albedo", p,
        error[0], 100 * albedo[0]);
    test_check (error[1] < 0.02 && error[2] < 0.01,
        "run %u: after one round %.4f degrees, after two %.4f", p, error[1],
        error[2]);
    test_check (
        albedo[2] < 0.003, "the albedo is %.2f %% off", 100 * albedo[2]);
    hill_clear (&hill);
  }
}

TEST (test_a_pinhole_camera_sees_high_points_nearer_to_its_axis,
    "a pinhole camera sees high points nearer to its axis", .cpu_only = true)
{
  for (uint32_t p = IMK_PHOTOSTEREO_PLANE_AT_MEAN;
       p <= IMK_PHOTOSTEREO_PLANE_AT_LOWEST; p++) {
    Hill hill;
    ImkPhotostereoConfig *c = &hill.config;
    const double *error = hill.error, *albedo = hill.albedo;

    hill_init (&hill);
    c->plane_at = (ImkPhotostereoPlaneAt) p;
    c->centre_x = 37; /* the axis of the camera stays in the middle */
    c->centre_y = 60.5;
    c->focal_length_mm = 70;
    c->sensor_width_mm = 36;
    hill.camera_z = 0.8 * HILL_WIDTH * 70 / 36;
    hill_render (&hill);
    for (uint32_t run = 0; run < 3; run++) {
      c->height_rounds = run ? 3 : 0;
      c->focal_length_mm = run == 1 ? 0 : 70;
      c->sensor_width_mm = run == 1 ? 0 : 36;
      hill_solve (&hill, run);
    }
    test_check (error[1] > 0.1 && error[2] < 0.01 && albedo[2] < 0.003,
        "plane-at %u: without heights %.4f degrees (albedo %.2f %%), parallel "
        "rays %.4f (%.2f %%), the camera %.4f (%.2f %%)",
        p, error[0], 100 * albedo[0], error[1], 100 * albedo[1], error[2],
        100 * albedo[2]);
    hill_clear (&hill);
  }
}

/* Samples of sRGB, written with the inverse of its curve. */
TEST (test_the_curve_of_srgb, "the curve of sRGB")
{
  enum { N = 12, W = 21, H = 4 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 1, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, W, H, 1, 0);
  test_autoptr (ImkPhotostereo) s = NULL;
  test_auto (Solved) solved;

  photo_fill_dome (lights, N, 1, 0.3);
  c.curve = IMK_PHOTOSTEREO_CURVE_SRGB;
  s = kernel_new (IMK_BACKEND_CPU, &c);
  for (uint32_t i = 0; i < N; i++) {
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double n[3], l[3], v;

        shape_at (2, x, y, n);
        imk_photostereo_reference_light (&c, i, x, y, 0, l);
        v = (y ? 0.9 : 0.003) * dot (n, l); /* also below the bend */
        v = v <= 0.0031308 ? 12.92 * v : 1.055 * pow (v, 1 / 2.4) - 0.055;
        photo_set (&frame, x, y, 0, (uint32_t) (65535 * v + 0.5));
      }
    add (s, &frame, i);
  }
  solved = solve (s, &c, IMK_TYPE_F32);
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double error = error_at (&solved, x, y), albedo = y ? 0.9 : 0.003;

      test_check (error < 0.05, "%.4f degrees off at (%u, %u)", error, x, y);
      test_check (
          fabs (photo_get (&solved.albedo, x, y, 0) / albedo - 1) < 1e-3,
          "albedo %g at (%u, %u), expected %g",
          photo_get (&solved.albedo, x, y, 0), x, y, albedo);
    }
}

/* Lamps of unequal strength, a room with light of another colour, and a surface
 * that turns away from some of the lamps. */
TEST (test_the_light_of_the_room_is_solved, "the light of the room is solved")
{
  enum { N = 24, W = 90, H = 20 };
  static const double colour[] = {1, 0.8, 0.5}, room[] = {0.06, 0.08, 0.1};
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U16, W, H, 3, lights, N, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U16, W, H, 3, 0);
  double sum[2] = {0}, worst = 0;

  photo_fill_dome (lights, N, 1, 0.25);
  for (uint32_t i = 0; i < N; i++)
    for (int k = 0; k < 3; k++)
      lights[i].intensity[k] = 0.7 + 0.025 * (i % 13);
  for (uint32_t m = 0; m < 2; m++) {
    test_autoptr (ImkPhotostereo) s = NULL;
    test_auto (Solved) solved;

    c.ambient_model = (ImkPhotostereoAmbient) m;
    s = kernel_new (IMK_BACKEND_CPU, &c);
    for (uint32_t i = 0; i < N; i++) {
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
          double n[3], l[3];

          shape_at (1, x, y, n);
          n[0] *= 1.6;
          n[2] = sqrt (1 - n[0] * n[0] - n[1] * n[1]);
          imk_photostereo_reference_light (&c, i, x, y, 0, l);
          for (uint32_t k = 0; k < 3; k++)
            photo_set (&frame, x, y, k,
                (uint32_t) (65535 * (colour[k] * 0.8 * fmax (dot (n, l), 0) *
                                            lights[i].intensity[k] +
                                        room[k]) +
                            0.5));
        }
      add (s, &frame, i);
    }
    solved = solve (s, &c, IMK_TYPE_F32);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double n[3], found[3];

        shape_at (1, x, y, n);
        n[0] *= 1.6;
        n[2] = sqrt (1 - n[0] * n[0] - n[1] * n[1]);
        solved_normal (&solved, x, y, found);
        sum[m] += photo_angle (n, found) / (W * H);
        for (uint32_t k = 0; m == 1 && k < 3; k++) {
          worst = fmax (worst,
              fabs (photo_get (&solved.albedo, x, y, k) - 0.8 * colour[k]));
          worst = fmax (
              worst, fabs (photo_get (&solved.ambient, x, y, k) - room[k]));
        }
      }
  }
  test_check (sum[0] > 3, "the room costs %.3f degrees", sum[0]);
  test_check (sum[1] < 0.02, "the room still costs %.4f degrees", sum[1]);
  test_check (worst < 1e-3, "albedo or room light is %g off", worst);
}

/* A ring of lamps at one height cannot tell the room from the height. */
TEST (test_a_ring_of_lamps_does_not_show_the_room,
    "a ring of lamps does not show the room")
{
  enum { N = 12 };
  ImkPhotostereoLight lights[N] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, 4, 4, 1, lights, N, false);

  for (uint32_t i = 0; i < N; i++)
    lights[i] = (ImkPhotostereoLight){.x = cos (2 * M_PI * i / N),
        .y = sin (2 * M_PI * i / N),
        .z = 0.8,
        .intensity = {1, 1, 1}};
  test_check (imk_photostereo_lights_condition (&c) > 0.01, "without a room");
  c.ambient_model = IMK_PHOTOSTEREO_AMBIENT_CONSTANT;
  test_check (imk_photostereo_lights_condition (&c) < 1e-6, "condition %g",
      imk_photostereo_lights_condition (&c));
}

TEST (test_bad_configurations_are_refused, "bad configurations are refused")
{
  ImkPhotostereoLight lights[12] = {{0}};
  ImkPhotostereoConfig good, c;
  test_auto (TestImage) small = test_image_new (IMK_TYPE_U8, 7, 8, 1, 0);

  photo_fill_dome (lights, 12, 100, 0.5);
  good = config_of (IMK_TYPE_U8, 8, 8, 1, lights, 12, true);
#define REFUSE(change, words) \
  do { \
    c = good; \
    change; \
    photo_refuse (&c, IMK_ERROR_CONFIG, words); \
  } while (0)
  REFUSE (c.width = 0, "0x8");
  REFUSE (c.height = 65536, "8x65536");
  REFUSE (c.type = IMK_TYPE_F32, "f32");
  REFUSE (c.channels = 2, "2 samples");
  REFUSE ((c.channels = 3, c.colours[1] = 3), "a pixel has 3 samples");
  REFUSE ((c.channels = 3, c.pattern = 1), "bayer-pattern");
  REFUSE (c.full_scale = 256, "255");
  REFUSE (c.gamma = NAN, "gamma");
  REFUSE (c.curve = 2, "curve is 2");
  REFUSE (
      (c.curve = IMK_PHOTOSTEREO_CURVE_SRGB, c.gamma = 2.2), "gamma is 2.2");
  REFUSE (c.ambient_model = 2, "ambient-model is 2");
  REFUSE (c.plane_at = 2, "plane-at is 2");
  REFUSE (c.height_rounds = 11, "height-rounds is 11");
  REFUSE (c.focal_length_mm = NAN, "focal-length-mm is nan");
  REFUSE (c.sensor_width_mm = -1, "sensor-width-mm is -1");
  REFUSE (c.focal_length_mm = 50,
      "focal-length-mm is 50 and sensor-width-mm 0: a camera needs both");
  REFUSE (c.n_lights = 0, "0 lights");
  REFUSE (c.n_lights = 5000, "5000 lights");
  REFUSE (c.led_lobe = -1, "led-lobe");
  REFUSE (c.mm_per_pixel = 0, "mm-per-pixel");
  REFUSE (c.plane_z = 90, "plane-z");
  REFUSE (c.centre_x = INFINITY, "centre-x");
  REFUSE ((c.positions = false, c.model = IMK_PHOTOSTEREO_MODEL_UNIT),
      "light-model=unit");
  REFUSE (c.robust = 7, "robust");
  REFUSE (c.t_min = NAN, "t-min");
  REFUSE ((c.t_min = 0.5, c.t_max = 0.5), "no grey value");
  REFUSE (c.max_iterations = 0, "max-iterations");
  REFUSE (c.min_condition = 2, "min-condition");
  REFUSE (c.memory_limit = 5, "memory-limit");
#undef REFUSE
  c = good;
  c.mask = &small.image;
  photo_refuse (&c, IMK_ERROR_IMAGE, "7x8");
  c = good;
  lights[3].intensity[1] = 0;
  photo_refuse (&c, IMK_ERROR_CONFIG, "Light 3");
  lights[3].intensity[1] = 1;
  lights[5].x = NAN;
  photo_refuse (&c, IMK_ERROR_CONFIG, "Light 5");
  c.positions = false;
  lights[5] = (ImkPhotostereoLight){.intensity = {1, 1, 1}};
  photo_refuse (&c, IMK_ERROR_CONFIG, "Light 5");
}

TEST (test_bad_pictures_are_refused, "bad pictures are refused")
{
  ImkPhotostereoLight lights[12] = {{0}};
  ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, 8, 8, 1, lights, 12, false);
  test_auto (TestImage) frame = test_image_new (IMK_TYPE_U8, 8, 8, 1, 0);
  test_auto (TestImage) other = test_image_new (IMK_TYPE_U8, 8, 9, 1, 0);
  ImkPhotostereoOutputs out = {.normal = frame.image};
  test_autoptr (ImkPhotostereo) s = NULL;

  photo_fill_dome (lights, 12, 1, 0.5);
  s = kernel_new (IMK_BACKEND_CPU, &c);
  test_image_fill (&frame, FILL_NOISE, 255, 1);
  test_error (imk_photostereo_add (s, &other.image, 0, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "8x9");
  test_error (
      imk_photostereo_add (s, &frame.image, 12, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "12 lights");
  add (s, &frame, 11);
  test_error (
      imk_photostereo_add (s, &frame.image, 11, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "light 11");
  test_check (imk_photostereo_n_added (s) == 1, "%u pictures",
      imk_photostereo_n_added (s));
  test_error (imk_photostereo_solve (s, &out, NULL, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "normal");
}

/* --- light files ---------------------------------------------------------- */

static ImkPhotostereoLights
parse (const char *text)
{
  ImkPhotostereoLights lights = {0};

  test_ok (imk_photostereo_lights_parse (
      text, strlen (text), "test.lp", &lights, test_new_error ()));
  return lights;
}

static void
refuse_lights (const char *text, const char *words)
{
  ImkPhotostereoLights lights = {.n = 77};

  test_error (imk_photostereo_lights_parse (
                  text, strlen (text), "test.lp", &lights, test_new_error ()),
      IMK_ERROR_FILE, words);
  test_check (lights.n == 77 && !lights.lights, "the output was touched");
}

static void
refuse_intensities (
    ImkPhotostereoLights *lights, const char *text, const char *words)
{
  test_error (imk_photostereo_lights_parse_intensities (
                  text, strlen (text), "i.txt", lights, test_new_error ()),
      IMK_ERROR_FILE, words);
}

/* @expected: x, y, z, r, g, b */
static void
check_light (
    const ImkPhotostereoLights *lights, uint32_t i, const double expected[6])
{
  const ImkPhotostereoLight *l = &lights->lights[i];
  const double found[] = {
      l->x, l->y, l->z, l->intensity[0], l->intensity[1], l->intensity[2]};

  test_check (i < lights->n, "%u lights only", lights->n);
  for (int k = 0; k < 6; k++)
    test_check (found[k] == expected[k], "number %d of light %u is %g, not %g",
        k, i, found[k], expected[k]);
}

TEST (test_light_files_are_read, "light files are read")
{
  static const struct {
    const char *text; /* NULL: the one above */
    uint32_t n;
    ImkPhotostereoLightKind kind;
    uint32_t i;
    double light[6]; /* x, y, z, r, g, b of the light @i */
  } cases[] = {
      {"2\r\nimage 1 of 2.png 0.6 0 8e-1\r\n\r\nb.png -0.6 0 .8\r\n", 2,
          IMK_PHOTOSTEREO_KIND_DIRECTIONS, 0, {0.6, 0, 0.8, 1, 1, 1}},
      {NULL, .i = 1, .light = {-0.6, 0, 0.8, 1, 1, 1}},
      /* with intensities; names may end in numbers all the same */
      {"2\na.png 0.6 0 0.8 1.2 1 0.9\nb c 7.png 0 0.6 0.8 0.5 0.6 0.7\n", 2,
          IMK_PHOTOSTEREO_KIND_DIRECTIONS, 0, {0.6, 0, 0.8, 1.2, 1, 0.9}},
      {NULL, .i = 1, .light = {0, 0.6, 0.8, 0.5, 0.6, 0.7}},
      {"2\na 100 -50 300 2 1 1\nb -100 50 310 1 2 1\n", 2,
          IMK_PHOTOSTEREO_KIND_POSITIONS, 1, {-100, 50, 310, 1, 2, 1}},
      {"2\nIMG 2024 05 17 0.6 0.64 0.48\nIMG 2024 05 18 0 0.6 0.8\n", 2,
          IMK_PHOTOSTEREO_KIND_DIRECTIONS, 0, {0.6, 0.64, 0.48, 1, 1, 1}},
      /* directions to two decimals, some more than 1 % from unit length */
      {"2\nIMG 2024 05 10 0.5 0.5 0.73\nIMG 2024 05 11 0.6 0.64 0.48\n", 2,
          IMK_PHOTOSTEREO_KIND_UNKNOWN, 0, {0.5, 0.5, 0.73, 1, 1, 1}},
      {"2\na 10 20 300 2 1 1\nb 15 20 310 1 2 1\n", 2,
          IMK_PHOTOSTEREO_KIND_POSITIONS, 1, {15, 20, 310, 1, 2, 1}},
      {"1\nIMG 1 2 3 -100 50 300\n", 1, IMK_PHOTOSTEREO_KIND_POSITIONS, 0,
          {-100, 50, 300, 1, 1, 1}},
      {"\xef\xbb\xbf# mm\n 10\t20 300 # the first\n-10 20 300", 2,
          IMK_PHOTOSTEREO_KIND_POSITIONS, 1, {-10, 20, 300, 1, 1, 1}},
      /* as spreadsheets write them; and a count without names */
      {"0.6,0,0.8\n0;-0.6;0.8\n", 2, IMK_PHOTOSTEREO_KIND_DIRECTIONS, 1,
          {0, -0.6, 0.8, 1, 1, 1}},
      {"2;\na.png;0.6;0;0.8\nb.png, 0, 0.6, 0.8\n", 2,
          IMK_PHOTOSTEREO_KIND_DIRECTIONS, 0, {0.6, 0, 0.8, 1, 1, 1}},
      {NULL, .i = 1, .light = {0, 0.6, 0.8, 1, 1, 1}},
      {"2\n10 20 300\n-10 20 300\n", 2, IMK_PHOTOSTEREO_KIND_POSITIONS, 1,
          {-10, 20, 300, 1, 1, 1}},
      {"0 0 1 2\n0 1 5 3\n", 2, IMK_PHOTOSTEREO_KIND_UNKNOWN, 1,
          {0, 1, 5, 3, 3, 3}},
      {"{\"label\": \"a \\\"dome\\\"\", \"notes\": [null, true, {}],\n"
       "\"lightConfiguration\": \"lights3d\",\n"
       "\"directions\": [{\"x\": 0, \"y\": 0, \"z\": 1}],\n"
       "\"positions3d\": [{\"x\": 1, \"y\": 2, \"z\": 300.5}],\n"
       "\"ledAdjust\": [{\"r\": 1.5, \"g\": 1, \"b\": 0.5}]}\n",
          1, IMK_PHOTOSTEREO_KIND_POSITIONS, 0, {1, 2, 300.5, 1.5, 1, 0.5}},
      /* AliceVision: y down, z away from the camera, numbers in quotes */
      {"{\"lights\": [{\"viewId\": \"17\", \"type\": \"directional\",\n"
       "\"direction\": [\"0.6\", \"0.64\", \"-0.48\"],\n"
       "\"intensity\": [\"1.5\", \"1\", \"0.5\"]},\n"
       "{\"direction\": [0, -6e-1, -0.8]}]}",
          2, IMK_PHOTOSTEREO_KIND_DIRECTIONS, 0,
          {0.6, -0.64, 0.48, 1.5, 1, 0.5}},
      {NULL, .i = 1, .light = {0, 0.6, 0.8, 1, 1, 1}},
  };
  ImkPhotostereoLights l = {0};

  for (uint32_t k = 0; k < sizeof (cases) / sizeof (cases[0]); k++) {
    if (cases[k].text) {
      imk_photostereo_lights_clear (&l);
      l = parse (cases[k].text);
      test_check (l.n == cases[k].n && l.kind == cases[k].kind,
          "%u lights of kind %d in %s", l.n, l.kind, cases[k].text);
    }
    check_light (&l, cases[k].i, cases[k].light);
  }
  imk_photostereo_lights_clear (&l);

  l = parse ("0 0 1 2 3 4\n");
  check_light (&l, 0, (double[]){0, 0, 1, 2, 3, 4});
  test_ok_of (imk_photostereo_lights_parse_intensities (
                  "5 6 7\n", 6, "i.txt", &l, NULL),
      &(ImkError){.message = "intensities"});
  check_light (&l, 0, (double[]){0, 0, 1, 5, 6, 7});
  imk_photostereo_lights_clear (&l);
}

TEST (test_bad_light_files_are_refused, "bad light files are refused")
{
  ImkPhotostereoLights l = parse ("0 0 1\n0 0 1\n");

  refuse_lights ("", "no lights");
  refuse_lights ("# nothing\n\n", "no lights");
  refuse_lights ("0 0 1\n0 nan 1\n", "line 2: \"nan\"");
  refuse_lights ("a.png 0 0 1\n", "line 1: a list with names begins with");
  refuse_lights ("0 0 1\n0 inf 1\n", "line 2");
  refuse_lights ("0 0 1\n\n0 0,5 1\n", "line 3: \"0,5\"");
  refuse_lights ("0 0 1\n0 0 0\n", "line 2: the light is at (0, 0, 0)");
  refuse_lights ("0 0 1\n0 1\n", "line 2: 2 words");
  refuse_lights ("0 0 1\n0 0 1 2\n", "line 2: 4 numbers");
  refuse_lights ("0 0 1 0\n", "line 1: the intensity 0");
  refuse_lights ("3\na 0 0 1\nb 0 0 1\n", "line 3 with 2 lights");
  refuse_lights ("1\na 0 0 1\nb 0 0 1\n", "line 3: one light more");
  refuse_lights ("1\n0 1\n", "line 2: 2 words");
  refuse_lights ("1\na 0 1\n", "line 2: \"a\"");
  refuse_lights ("0,5 0 0,8\n", "line 1: \"0,5\"");
  refuse_lights ("0\n", "line 1: the number of lights is \"0\"");
  refuse_lights ("1.5\n", "line 1: the number of lights is \"1.5\"");
  refuse_lights ("99999999999\n", "line 1");
  refuse_lights ("{", "line 1");
  refuse_lights ("{}", "directions");
  refuse_lights ("{\"directions\": []}", "0 entries");
  refuse_lights ("{\"directions\": [\n{\"x\": 1, \"y\": 0}]}", "line 2");
  refuse_lights ("{\"directions\": [{\"x\": 1e999, \"y\": 0}]}", "line 1");
  refuse_lights ("{\"lightConfiguration\": \"moon\"}", "directional");
  refuse_lights ("{\"directions\": [{\"x\": 1, \"y\": 0, \"z\": 0}],\n"
                 "\"ledAdjust\": [{\"r\": 1, \"g\": 1, \"b\": 1}, 2]}",
      "2 entries");
  refuse_lights ("{\"lights\": []}", "no lights");
  refuse_lights ("{\"lights\": 3}", "no array \"lights\"");
  refuse_lights ("{\"lights\": [\n{\"type\": \"SH\"}]}", "line 2: the type");
  refuse_lights ("{\"lights\": [\n4]}", "line 2: entry 0");
  refuse_lights (
      "{\"lights\": [{\"direction\": [\"0\", \"\", 1]}]}", "three numbers");
  refuse_lights (
      "{\"lights\": [{\"direction\": [0, 1, 2, 3]}]}", "three numbers");
  refuse_lights ("{\"lights\": [{\"direction\": [0, \"nan\", 1]}]}", "three");
  refuse_lights ("{\"lights\": [{\"direction\": [0, 0, 0]}]}", "(0, 0, 0)");
  refuse_lights (
      "{\"lights\": [{\"direction\": [0, 0, 1], \"intensity\": [1]}]}",
      "\"intensity\" of entry 0");
  refuse_lights (
      "{\"lights\": [{\"direction\": [0, 0, 1], \"intensity\": [1, 1, 0]}]}",
      "the intensity 0");
  refuse_lights ("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "line 1");

  refuse_intensities (&l, "1\n", "1 lights; there are 2");
  refuse_intensities (&l, "1\n1\n1\n", "line 3");
  refuse_intensities (&l, "1\n1 2\n", "line 2: 2 numbers");
  refuse_intensities (&l, "1 2 3 4\n1 2 3 4 5\n", "line 2: 5 numbers");
  refuse_intensities (
      &l, "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", "line 1: 17 words");
  refuse_intensities (&l, "1 2 3 4\n1 2 0 4\n", "line 2: the intensity 0");
  refuse_intensities (&l, "1\n-1\n", "line 2: the intensity -1");
  check_light (&l, 1, (double[]){0, 0, 1, 1, 1, 1});
  imk_photostereo_lights_clear (&l);
}

/* Fails unless confidence and mask are the bytes that the host makes of the
 * quality. Of colours the length of n' does not come out. */
static void
check_trust_of_quality (
    const ImkPhotostereoConfig *c, const Solved *s, const char *where)
{
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      float length = (float) photo_get (&s->albedo, x, y, 0), q[4], expected;

      for (uint32_t k = 0; k < 4; k++)
        q[k] = (float) photo_get (&s->quality, x, y, k);
      expected = imk_photostereo_confidence (q, length, false);
      test_check (imk_photostereo_n_colours (c) > 1 ||
                      photo_get (&s->confidence, x, y, 0) == expected,
          "%s: confidence %.9g at (%u, %u), expected %.9g", where,
          photo_get (&s->confidence, x, y, 0), x, y, expected);
      test_check (photo_get (&s->mask, x, y, 0) == (q[0] > 0),
          "%s: mask at (%u, %u)", where, x, y);
    }
}

/* --- CPU against CUDA ----------------------------------------------------- */

static void
check_parity (const ImkPhotostereoConfig *c, const char *where)
{
  test_autofree TestImage *frames = calloc (c->n_lights, sizeof (*frames));
  test_autoptr (ImkPhotostereo) cpu = kernel_new (IMK_BACKEND_CPU, c);
  test_autoptr (ImkPhotostereo) cuda = kernel_new (IMK_BACKEND_CUDA, c);
  Solved a, b = solved_new (c, IMK_TYPE_F32);
  uint64_t n_off = 0, n = (uint64_t) c->width * c->height;

  make_frames (c, frames, 31);
  for (uint32_t i = 0; i < c->n_lights; i++) {
    test_auto (ImkImage) device = test_to_device (&frames[i]);

    add (cpu, &frames[i], i);
    test_ok (imk_photostereo_add (cuda, &device, i, NULL, test_new_error ()));
    /* waits: free () does not, on the mock */
    test_from_device (&device, &frames[i]);
  }
  a = solve (cpu, c, IMK_TYPE_F32);
  solved_fill (&b, cuda, true);
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double p[3], q[3];

      solved_normal (&a, x, y, p);
      solved_normal (&b, x, y, q);
      n_off += dot (p, p) == 0 || dot (q, q) == 0
                   ? dot (p, p) != dot (q, q)
                   : !(photo_angle (p, q) < 0.01);
    }
  test_check (n_off * 1000 <= n,
      "%s: %llu of %llu normals are more than 0.01 degree apart", where,
      (unsigned long long) n_off, (unsigned long long) n);
  test_check (llabs ((long long) a.summary.n_invalid -
                     (long long) b.summary.n_invalid) *
                      1000 <=
                  (long long) n,
      "%s: %llu and %llu are invalid", where,
      (unsigned long long) a.summary.n_invalid,
      (unsigned long long) b.summary.n_invalid);
  test_check (fabs (a.summary.mean_residual - b.summary.mean_residual) <=
                  1e-4 + 0.01 * a.summary.mean_residual,
      "%s: the mean residuals are %g and %g", where, a.summary.mean_residual,
      b.summary.mean_residual);
  test_check (a.summary.n_samples == b.summary.n_samples &&
                  a.summary.n_clipped == b.summary.n_clipped &&
                  a.summary.largest == b.summary.largest,
      "%s: %llu and %llu samples are clipped, the largest are %u and %u", where,
      (unsigned long long) a.summary.n_clipped,
      (unsigned long long) b.summary.n_clipped, a.summary.largest,
      b.summary.largest);
  check_trust_of_quality (c, &a, where);
  check_trust_of_quality (c, &b, where);
  solved_free (&a);
  solved_free (&b);
  frames_free (frames, c->n_lights);
}

/* @n lights in a line or an arc of @width radians: of rank 1, where that is 0,
 * or 2. */
static void
fill_arc (ImkPhotostereoLight *lights, uint32_t n, double width)
{
  static const double u[] = {0.36, 0.48, 0.8}, v[] = {0.8, -0.6, 0};

  for (uint32_t i = 0; i < n; i++) {
    double t = width * ((i * 0.6180339887) - floor (i * 0.6180339887) - 0.5);

    lights[i] = (ImkPhotostereoLight){
        .x = cos (t) * u[0] + sin (t) * v[0],
        .y = cos (t) * u[1] + sin (t) * v[1],
        .z = cos (t) * u[2] + sin (t) * v[2],
        .intensity = {1, 1, 1},
    };
  }
}

/* Rounding divided by rounding may be any condition. */
static void
check_lights_without_rank (ImkBackend backend)
{
  static const uint32_t n_lights[] = {1, 2, 3, 4, 5, 12, 19, 40, 96, 260};
  static const double widths[] = {0, 0.003, 0.05, 2};
  ImkPhotostereoLight lights[260];

  for (uint32_t i = 0; i < 40; i++) {
    uint32_t n = n_lights[i / 4];
    ImkPhotostereoConfig c =
        config_of (IMK_TYPE_U8, 67, 5, 1, lights, n, false);
    TestImage *frames = calloc (n, sizeof (*frames));

    fill_arc (lights, n, widths[i % 4]);
    test_check (imk_photostereo_lights_condition (&c) < 1e-6,
        "%u lights, an arc of %g: the condition is %g", n, widths[i % 4],
        imk_photostereo_lights_condition (&c));
    for (uint32_t j = 0; j < n; j++) {
      frames[j] = test_image_new (c.type, c.width, c.height, 1, 0);
      test_image_fill (&frames[j], FILL_NOISE, 1, 100 * i + j);
    }
    for (uint32_t k = 0; k < 4; k++) {
      ImkPhotostereo *s;
      Solved solved = solved_new (&c, IMK_TYPE_F32);

      c.robust = k == 0 ? IMK_PHOTOSTEREO_ROBUST_NONE
                        : IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
      c.thresholds = k;
      c.saturation = -1;
      s = kernel_new (backend, &c);
      for (uint32_t j = 0; j < n; j++) {
        ImkImage device;

        if (backend == IMK_BACKEND_CPU) {
          add (s, &frames[j], j);
          continue;
        }
        device = test_to_device (&frames[j]);
        test_ok (imk_photostereo_add (s, &device, j, NULL, test_new_error ()));
        test_from_device (&device, &frames[j]); /* waits */
        test_device_free (&device);
      }
      solved_fill (&solved, s, backend != IMK_BACKEND_CPU);
      test_check (solved.summary.n_invalid == solved.summary.n_pixels,
          "%u lights, an arc of %g, kind %u: %llu of %llu pixels are invalid",
          n, widths[i % 4], k, (unsigned long long) solved.summary.n_invalid,
          (unsigned long long) solved.summary.n_pixels);
      solved_free (&solved);
      imk_photostereo_free (s);
    }
    frames_free (frames, n);
    free (frames);
  }
}

TEST (
    test_lights_without_rank_solve_nothing, "lights without rank solve nothing")
{
  check_lights_without_rank (IMK_BACKEND_CPU);
}

TEST (test_lights_without_rank_solve_nothing_on_the_device,
    "lights without rank solve nothing on the device")
{
  test_need_cuda ();
  check_lights_without_rank (IMK_BACKEND_CUDA);
}

/* A set in another order, with a look at what is there after @look pictures. */
static Solved
run_on_device (const ImkPhotostereoConfig *c, TestImage *frames, uint32_t step,
    uint32_t look)
{
  ImkPhotostereo *s = kernel_new (IMK_BACKEND_CUDA, c);
  test_autofree ImkImage *device = calloc (c->n_lights, sizeof (*device));
  Solved solved = solved_new (c, IMK_TYPE_F32);

  for (uint32_t i = 0; i < c->n_lights; i++) {
    uint32_t light = i * step % c->n_lights;

    device[i] = test_to_device (&frames[light]);
    test_ok (
        imk_photostereo_add (s, &device[i], light, NULL, test_new_error ()));
    if (i + 1 == look)
      solved_fill (&solved, s, true);
  }
  solved_fill (&solved, s, true);
  imk_photostereo_free (s);
  for (uint32_t i = 0; i < c->n_lights; i++)
    test_device_free (&device[i]);
  return solved;
}

/* Lamps of one brightness, as the tensor cores take them. */
TEST (test_cuda_agrees_with_equal_lamps, "CUDA agrees with equal lamps")
{
  static const uint32_t sizes[][2] = {{1, 1}, {31, 7}, {300, 9}, {700, 5}};
  static const uint32_t n_lights[] = {40, 260, 33, 13};
  static const uint32_t few[] = {3, 5, 12, 19, 33, 13, 4, 99}; /* adaptive */
  static const ImkPhotostereoModel models[] = {IMK_PHOTOSTEREO_MODEL_AUTO,
      IMK_PHOTOSTEREO_MODEL_UNIT, IMK_PHOTOSTEREO_MODEL_RAW,
      IMK_PHOTOSTEREO_MODEL_DIRECTIONAL};
  ImkPhotostereoLight lights[260] = {{0}};

  test_need_cuda ();
  for (uint32_t size = 0; size < 4; size++)
    for (uint32_t k = 0; k < 16; k++) {
      uint32_t n = k < 8 ? n_lights[(size + k) % 4] : few[(size + k) % 8];
      ImkPhotostereoConfig c = config_of (IMK_TYPE_U8, sizes[size][0],
          sizes[size][1], 1, lights, n, models[k % 4] != models[3]);
      char where[80];

      photo_fill_dome (lights, n, 300, 0.3);
      c.model = models[k % 4];
      c.thresholds = k < 4   ? IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE
                     : k < 8 ? IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE
                             : IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
      c.readmit = k != 9;
      c.pattern = k % 2 == 0 ? IMK_PHOTOSTEREO_PATTERN_GRBG
                             : IMK_PHOTOSTEREO_PATTERN_NONE;
      c.mm_per_pixel = 0.02;
      snprintf (where, sizeof (where), "%ux%u, %u equal lamps, kind %u",
          c.width, c.height, n, k);
      if (test_takes_case (1))
        check_parity (&c, where);
    }
}

TEST (test_strips_and_order_change_no_bit_on_the_device,
    "strips and order change no bit on the device")
{
  enum { N = 71, W = 131, H = 70 };
  static const uint32_t strips[] = {0, 1, 7, 64, 0};
  static const uint32_t steps[] = {1, 1, 7, 30, 70}; /* 71 is a prime */
  static const uint32_t looks[] = {0, 20, 33, 0, 64};
  ImkPhotostereoLight lights[N] = {{0}};
  TestImage frames[N];

  test_need_cuda ();
  photo_fill_dome (lights, N, 200, 0.4);
  for (uint32_t kind = 0; kind < (test_is_short () ? 2 : 8); kind++) {
    ImkPhotostereoConfig c = config_of (kind == 1 ? IMK_TYPE_U16 : IMK_TYPE_U8,
        W, H, kind == 2 ? 3 : 1, lights, N, true);
    Solved expected, solved;

    c.pattern =
        kind == 2 ? IMK_PHOTOSTEREO_PATTERN_NONE : IMK_PHOTOSTEREO_PATTERN_GBRG;
    c.grey =
        kind == 3 ? IMK_PHOTOSTEREO_GREY_LUMA : IMK_PHOTOSTEREO_GREY_MOSAIC;
    c.readmit = kind != 4 && kind != 7;
    c.thresholds = kind == 7 ? IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE
                             : IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
    /* fine enough for parabolas on the device, or not */
    c.mm_per_pixel = kind == 1 || kind == 4 || kind == 6 ? 0.01 : 0.8;
    c.robust = kind == 5 ? IMK_PHOTOSTEREO_ROBUST_HUBER
                         : IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
    make_frames (&c, frames, 3);
    expected = run_on_device (&c, frames, 1, 0);
    for (uint32_t run = 0; run < 5; run++) {
      c.strip_rows = strips[run];
      solved = run_on_device (&c, frames, steps[run], looks[run]);
      check_same (&expected, &solved, "another order or strip");
      solved_free (&solved);
    }
    solved_free (&expected);
    frames_free (frames, N);
  }
}

TEST (test_cuda_agrees, "CUDA agrees")
{
  static const uint32_t sizes[][2] = {{1, 1}, {3, 1}, {31, 7}, {129, 31}};
  ImkPhotostereoLight lights[40] = {{0}};

  test_need_cuda ();
  photo_fill_dome (lights, 40, 300, 0.4);
  for (uint32_t size = 0; size < 4; size++) {
    test_auto (TestImage) mask =
        test_image_new (IMK_TYPE_U8, sizes[size][0], sizes[size][1], 1, 1);

    test_image_fill (&mask, FILL_NOISE, 1, 3);
    for (uint32_t i = 0; i < 40; i++)
      for (uint32_t k = 0; k < 3; k++)
        lights[i].intensity[k] = size % 2 ? 0.8 + 0.01 * ((i + 5 * k) % 20) : 1;
    for (uint32_t robust = 0; robust < 3; robust++)
      for (uint32_t k = 0;
           k < (robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS ? 24 : 16); k++) {
        uint32_t kind = k % 8;
        bool fine = k >= 8;
        ImkPhotostereoThresholds common =
            k < 16 ? IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE
                   : IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
        ImkPhotostereoConfig c =
            config_of (kind == 1 ? IMK_TYPE_U16 : IMK_TYPE_U8, sizes[size][0],
                sizes[size][1], kind == 2 ? 4 : 1, lights, 40, kind != 3);
        char where[80];

        c.robust = robust;
        c.readmit = kind != 1 && kind != 5;
        c.model = kind == 6   ? IMK_PHOTOSTEREO_MODEL_UNIT
                  : kind == 7 ? IMK_PHOTOSTEREO_MODEL_RAW
                              : IMK_PHOTOSTEREO_MODEL_AUTO;
        c.thresholds =
            k == 1 || k == 9 ? IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE : common;
        c.pattern = kind == 0 || kind == 4 ? IMK_PHOTOSTEREO_PATTERN_GRBG
                                           : IMK_PHOTOSTEREO_PATTERN_NONE;
        c.grey =
            kind == 4 ? IMK_PHOTOSTEREO_GREY_LUMA : IMK_PHOTOSTEREO_GREY_MOSAIC;
        c.led_lobe = kind == 2 ? 1 : 0;
        c.gamma = kind == 2 ? 2.2 : 1;
        c.mm_per_pixel = fine ? 0.01 : 0.8; /* likewise */
        c.plane_z = kind == 6 ? 20 : 0;
        c.track_change = true;
        c.mask = kind == 3 && fine ? &mask.image : NULL;
        if ((k + robust) % 2) /* what exceeds it is clipped */
          c.saturation = kind == 1 ? 30000 : 120;
        snprintf (where, sizeof (where), "%ux%u robust %u kind %u%s%s", c.width,
            c.height, robust, kind, fine ? ", fine" : "",
            k < 16 ? "" : ", adaptive");
        if (test_takes_case (1))
          check_parity (&c, where);
      }
  }
}
