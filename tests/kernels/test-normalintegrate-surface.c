/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Heights seen through a lens, flattened, and moved to points of known height,
 * against surfaces that are known in float64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "normal-common.h"
#include "normalintegrate/normalintegrate-reference.h"

typedef ImkNormalintegrateConfig Config;
typedef ImkNormalintegratePoint Point;

static double
deepest (const Map *m)
{
  double most = 0;

  for (size_t i = 0; i < map_n_pixels (m); i++)
    most = fmax (most, m->z[i]);
  return most;
}

/* Returns: the largest difference from @z, also by a constant */
static double
largest_off (const Result *r, const Map *m, const double *z)
{
  double most = 0;

  for (uint32_t y = 0; y < m->height; y++)
    for (uint32_t x = 0; x < m->width; x++) {
      size_t at = (size_t) y * m->width + x;

      if (m->inside[at])
        most = fmax (most, fabs (result_height (r, x, y) - z[at]));
    }
  return most;
}

/* --- a lens --------------------------------------------------------------- */

/* 181 pixels at a focal length of 220 are 45 degrees. Bilateral is of first
 * order where it is steep. */
TEST (
    a_lens_shows_a_near_sphere_as_it_is, "a lens shows a near sphere as it is")
{
  static const struct {
    ImkNormalintegrateMethod method;
    bool y_down;
    double aspect, steepest, limit;
  } cases[] = {{IMK_NORMALINTEGRATE_POISSON, false, 1, 0.05, 0.001},
      {IMK_NORMALINTEGRATE_POISSON, true, 1, 0.05, 0.001},
      {IMK_NORMALINTEGRATE_POISSON, true, 1.25, 0.05, 0.001},
      {IMK_NORMALINTEGRATE_BILATERAL, true, 1.25, 0.3, 0.02}};

  for (int i = 0; i < 4; i++) {
    double f = 220, distance = 300, radius = 90, rms, without;
    test_auto (Map) m = map_sphere_near (
        181, 151, radius, distance, f, cases[i].aspect, cases[i].steepest);
    test_auto (TestImage) in =
        map_encode (&m, IMK_TYPE_F32, 3, cases[i].y_down);
    Config c = normal_config (&in);
    test_auto (Result) r, parallel;

    c.method = cases[i].method;
    c.y_down = cases[i].y_down;
    c.tolerance = c.method ? 0 : 1e-6;
    c.pixel_aspect = cases[i].aspect;
    /* the distance of the lowest point, where a pixel is mm_per_pixel wide */
    c.mm_per_pixel = (distance - radius + deepest (&m)) / f;
    parallel = normal_run_on (IMK_BACKEND_CPU, &c, &in);
    c.focal_pixels = f;
    r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
    rms = result_error (&r, &m, m.z, NULL);
    without = result_error (&parallel, &m, m.z, NULL);
    printf ("# case %d: a sphere of 90 mm from 300 mm: rms %.5f mm, %.3f mm "
            "without the lens\n",
        i, rms, without);
    test_check (rms < cases[i].limit && without > 1,
        "case %d: rms %g mm, without the lens %g mm", i, rms, without);
  }
}

/* 40 degrees of view; tilted by 40 degrees. */
TEST (a_lens_shows_a_tilted_plane_as_it_is,
    "a lens shows a tilted plane as it is")
{
  const double normal[] = {0.5, -0.4, sqrt (1 - 0.41)}, f = 221.2;
  test_auto (Map) m = map_plane_near (161, 121, normal, 300, f);
  test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);

  for (int method = 0; method < 3; method += 2) {
    Config c = normal_config (&in);
    test_auto (Result) r, parallel;
    double rms, without, lowest = 0;

    c.method = method;
    c.tolerance = method ? 0 : 1e-6;
    for (size_t i = 0; i < map_n_pixels (&m); i++) {
      double x = i % 161 - 80.0, y = 60 - (double) (i / 161);

      lowest =
          fmax (lowest, 300 * normal[2] * f /
                            (f * normal[2] - x * normal[0] - y * normal[1]));
    }
    c.mm_per_pixel = lowest / f;
    parallel = normal_run_on (IMK_BACKEND_CPU, &c, &in);
    c.focal_pixels = f;
    r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
    rms = result_error (&r, &m, m.z, NULL);
    without = result_error (&parallel, &m, m.z, NULL);
    printf ("# method %d: a plane of %.0f mm: rms %.5f mm, %.3f mm without "
            "the lens\n",
        method, deepest (&m), rms, without);
    test_check (rms < 1e-3 && without > 5,
        "method %d: rms %g mm, without the lens %g mm", method, rms, without);
  }
}

TEST (a_lens_agrees_with_float64, "a lens agrees with float64")
{
  for (int method = 0; method < 3; method++)
    for (int y_down = 0; y_down < 2; y_down++) {
      test_auto (Map) m = map_noise (23, 18, 0, 3);
      test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, y_down);
      double *z = calloc (map_n_pixels (&m), sizeof (*z)), largest;
      Config c = normal_config (&in);
      test_auto (Result) r;

      c.method = method;
      c.max_iterations = method == IMK_NORMALINTEGRATE_BILATERAL ? 2 : 100;
      c.tolerance = 0;
      c.y_down = y_down;
      c.focal_pixels = 60;
      c.pixel_aspect = 1.3;
      c.mm_per_pixel = 0.5;
      test_check (imk_normalintegrate_reference (&c, &in.image, z),
          "the reference did not converge");
      r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
      for (size_t i = 0; i < map_n_pixels (&m); i++)
        test_check (isfinite (z[i]) == m.inside[i],
            "method %d: pixel %zu has %g", method, i, z[i]);
      result_error (&r, &m, z, &largest);
      test_check (largest < 1e-4, "method %d: off by %g", method, largest);
      free (z);
    }
}

/* --- flattening ----------------------------------------------------------- */

enum { WIDTH = 221, HEIGHT = 171 };

/* Pixels, y up, in widths of a pixel. */
static const double map_aspect = 1.25;

static double
from_middle_x (uint32_t x)
{
  return x - (WIDTH - 1) / 2.0;
}

static double
from_middle_y (uint32_t y)
{
  return ((HEIGHT - 1) / 2.0 - y) / map_aspect;
}

/* A surface of these terms, in pixels, and a mound on a third of it.
 * @relief: (out): the mound alone */
static Map
map_mound (
    const double t[IMK_NORMALINTEGRATE_N_TERMS], double mound, double *relief)
{
  const double radius = 60, at_x = -20, at_y = 10;
  Map m = map_new (WIDTH, HEIGHT);

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++) {
      double u = from_middle_x (x), v = from_middle_y (y), r2 = u * u + v * v;
      double dx = u - at_x, dy = v - at_y;
      double s = 1 - (dx * dx + dy * dy) / (radius * radius);
      double p = t[1] + 2 * t[3] * u + t[4] * v + 4 * t[6] * r2 * u;
      double q = t[2] + 2 * t[5] * v + t[4] * u + 4 * t[6] * r2 * v;
      double z = t[0] + t[1] * u + t[2] * v + t[3] * u * u + t[4] * u * v +
                 t[5] * v * v + t[6] * r2 * r2;
      double bump = s > 0 ? mound * s * s : 0;

      if (s > 0) {
        p -= 4 * mound * s * dx / (radius * radius);
        q -= 4 * mound * s * dy / (radius * radius);
      }
      map_set (&m, x, y, p, q, z + bump);
      if (relief)
        relief[y * WIDTH + x] = bump;
    }
  return m;
}

static const double test_terms[][IMK_NORMALINTEGRATE_N_TERMS] = {
    [IMK_NORMALINTEGRATE_FLATTEN_PLANE] = {0, 0.2, -0.1},
    [IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC] = {0, 0.1, -0.05, 1e-3, 4e-4,
        -8e-4},
    [IMK_NORMALINTEGRATE_FLATTEN_RADIAL] = {0, 0.1, -0.05, 1e-3, 0, 1e-3,
        -3e-8},
};

static Result
run_mound (ImkNormalintegrateFlatten terms, double mound, const Config *change,
    double *relief, ImkBackend backend)
{
  test_auto (Map) m = map_mound (test_terms[terms], mound, relief);
  test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);
  Config c = normal_config (&in);

  c.pixel_aspect = map_aspect;
  c.tolerance = 1e-6;
  c.mm_per_pixel = change->mm_per_pixel;
  c.flatten = change->flatten;
  c.n_points = change->n_points;
  c.points = change->points;
  c.grey_range = change->grey_range;
  return normal_run_on (backend, &c, &in);
}

/* Mounds of 15 pixels lie on surfaces that differ by as much. */
TEST (a_mound_is_left_when_its_ground_is_flattened,
    "a mound is left when its ground is flattened")
{
  for (int how = IMK_NORMALINTEGRATE_FLATTEN_PLANE;
       how <= IMK_NORMALINTEGRATE_FLATTEN_RADIAL; how++)
    for (int up = -1; up <= 1; up++) {
      const double mm = 0.2;
      double *relief = calloc ((size_t) WIDTH * HEIGHT, sizeof (*relief));
      test_auto (Map) plain = map_mound (test_terms[how], 15 * up, relief);
      Config change = {
          .mm_per_pixel = mm, .flatten = (ImkNormalintegrateFlatten) how};
      test_auto (Result) r =
          run_mound (how, 15 * up, &change, relief, IMK_BACKEND_CPU);
      const double *t = test_terms[how];
      double most;

      for (size_t i = 0; i < (size_t) WIDTH * HEIGHT; i++)
        relief[i] *= mm;
      most = largest_off (&r, &plain, relief);
      printf ("# flatten %d, mound %+d: off by %.2g mm, share %.2f, deviation "
              "%.2g mm\n",
          how, 15 * up, most, r.summary.flatten_share,
          r.summary.flatten_deviation);
      test_check (most < 1e-3 * 15 * mm, "flatten %d, mound %d: off by %g mm",
          how, 15 * up, most);
      /* in mm, of places in mm */
      for (int i = 1; i < IMK_NORMALINTEGRATE_N_TERMS; i++) {
        double power = i < 3 ? 0 : i < 6 ? 1 : 3;
        double expected = t[i] / pow (mm, power);
        /* by its share in the corner */
        double reach = pow (25, power + 1);

        test_check (fabs (r.summary.removed[i] - expected) * reach < 0.01,
            "flatten %d: term %d is %g, not %g", how, i, r.summary.removed[i],
            expected);
      }
      test_check (r.summary.flatten_share > 0.6 && r.summary.flatten_share <= 1,
          "flatten %d: %g of the heights fit", how, r.summary.flatten_share);
      test_check (fabs (r.summary.highest - (up > 0 ? 3 : 0)) < 0.01 &&
                      fabs (r.summary.lowest - (up < 0 ? -3 : 0)) < 0.01,
          "heights from %g to %g mm", r.summary.lowest, r.summary.highest);
      free (relief);
    }
}

/* A third of the map is a sphere, to which least squares would fit a quadratic
 * surface. */
TEST (the_background_of_a_sphere_is_the_ground,
    "the background of a sphere is the ground")
{
  for (int how = IMK_NORMALINTEGRATE_FLATTEN_PLANE;
       how <= IMK_NORMALINTEGRATE_FLATTEN_RADIAL; how++) {
    test_auto (Map) m = map_sphere_in_front (161, 121, 45.3);
    test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);
    Config c = normal_config (&in);
    test_auto (Result) r;
    double square = 0, n = 0;

    c.method = IMK_NORMALINTEGRATE_BILATERAL;
    c.flatten = (ImkNormalintegrateFlatten) how;
    r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
    for (uint32_t y = 0; y < 121; y++)
      for (uint32_t x = 0; x < 161; x++)
        if (hypot (x - 80.0, y - 60.0) > 50) {
          square += pow (result_height (&r, x, y), 2);
          n++;
        }
    printf ("# flatten %d: the background is off by %.3f pixels rms\n", how,
        sqrt (square / n));
    test_check (sqrt (square / n) < 0.3, "flatten %d: off by %g pixels rms",
        how, sqrt (square / n));
  }
}

TEST (grey_begins_at_the_lowest_flattened_height,
    "grey begins at the lowest flattened height")
{
  Config change = {
      .mm_per_pixel = 1, .flatten = IMK_NORMALINTEGRATE_FLATTEN_PLANE};
  test_auto (Result) r = run_mound (
      IMK_NORMALINTEGRATE_FLATTEN_PLANE, -15, &change, NULL, IMK_BACKEND_CPU);

  test_check (r.summary.lowest < -14.9 && r.summary.lowest > -15.1,
      "the lowest is at %g", r.summary.lowest);
  for (uint32_t y = 0; y < HEIGHT; y += 17)
    for (uint32_t x = 0; x < WIDTH; x += 13) {
      double told = r.summary.lowest +
                    r.summary.grey_step * (result_grey (&r, x, y) - 1.0);

      test_check (fabs (told - result_height (&r, x, y)) <=
                      0.51 * r.summary.grey_step + 1e-5,
          "at (%u, %u): grey tells %g, the height is %g", x, y, told,
          result_height (&r, x, y));
    }
}

/* It is a plane where it is, not where it is seen. */
TEST (a_plane_through_a_lens_is_flat, "a plane through a lens is flat")
{
  const double normal[] = {0.5, -0.4, sqrt (1 - 0.41)}, f = 221.2;
  test_auto (Map) m = map_plane_near (161, 121, normal, 300, f);
  test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);
  double *zero = calloc (map_n_pixels (&m), sizeof (*zero)), most;
  Config c = normal_config (&in);
  test_auto (Result) r;

  c.mm_per_pixel = 1.5;
  c.focal_pixels = f;
  c.flatten = IMK_NORMALINTEGRATE_FLATTEN_PLANE;
  r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
  most = largest_off (&r, &m, zero);
  test_check (most < 2e-3, "off by %g mm", most);
  test_check (fabs (r.summary.removed[1] + normal[0] / normal[2]) < 1e-4 &&
                  fabs (r.summary.removed[2] + normal[1] / normal[2]) < 1e-4,
      "slopes of %g and %g", r.summary.removed[1], r.summary.removed[2]);
  free (zero);
}

TEST (what_determines_no_surface_stays, "what determines no surface stays")
{
  test_auto (Map) row = map_plane (31, 1, 0.5, 0);
  test_auto (TestImage) in = map_encode (&row, IMK_TYPE_F32, 3, false);
  Config c = normal_config (&in);
  test_auto (Result) plain = normal_run_on (IMK_BACKEND_CPU, &c, &in), r;

  c.flatten = IMK_NORMALINTEGRATE_FLATTEN_PLANE;
  r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
  test_image_same (&plain.height, &r.height, "height");
  test_check (r.summary.flatten_share == 0 && r.summary.removed[1] == 0,
      "a share of %g", r.summary.flatten_share);
}

/* --- known points --------------------------------------------------------- */

/* The heights of a quadratic surface at these places, in mm, and @off more at
 * the first. */
static void
make_points (Point *points, uint32_t n, double mm, double off)
{
  static const double places[][2] = {{10, 20}, {200.5, 15}, {110.25, 150.75},
      {30, 140}, {215, 160}, {105, 80}, {60, 60.5}};
  const double *t = test_terms[IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC];

  for (uint32_t i = 0; i < n; i++) {
    double x = places[i][0], y = places[i][1];
    double u = x - (WIDTH - 1) / 2.0;
    double v = ((HEIGHT - 1) / 2.0 - y) / map_aspect;

    points[i] = (Point){x, y,
        mm * (t[1] * u + t[2] * v + t[3] * u * u + t[4] * u * v +
                 t[5] * v * v) +
            (i == 0 ? off : 0)};
  }
}

/* A right map takes no more than an offset; a wrong one is bent. */
TEST (points_bend_heights_to_the_truth, "points bend heights to the truth")
{
  static const struct {
    uint32_t n;
    ImkNormalintegrateFlatten made; /* what the normals are of */
  } cases[] = {{1, IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC},
      {2, IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC},
      {3, IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC},
      {6, IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC},
      {7, IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC},
      {6, IMK_NORMALINTEGRATE_FLATTEN_PLANE},
      {7, IMK_NORMALINTEGRATE_FLATTEN_PLANE}};
  const double mm = 0.2;

  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    for (int flatten = 0; flatten < 3; flatten += 2) {
      test_auto (Map) truth = map_mound (
          test_terms[IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC], 0, NULL);
      Point points[7];
      Config change = {.mm_per_pixel = mm,
          .flatten = (ImkNormalintegrateFlatten) flatten,
          .n_points = cases[i].n,
          .points = points};
      test_auto (Result) r;
      double most;

      make_points (points, cases[i].n, mm, 0);
      /* flattened, only the quadratic surface comes back */
      if (flatten && cases[i].n < 6)
        continue;
      r = run_mound (cases[i].made, 0, &change, NULL, IMK_BACKEND_CPU);
      for (size_t k = 0; k < map_n_pixels (&truth); k++)
        truth.z[k] *= mm;
      most = largest_off (&r, &truth, truth.z);
      test_check (most < 2e-3, "%u points, flatten %d: off by %g mm",
          cases[i].n, flatten, most);
      for (uint32_t k = 0; k < cases[i].n; k++)
        test_check (fabs (r.summary.point_residuals[k]) < 1e-3,
            "point %u is off by %g mm", k, r.summary.point_residuals[k]);
    }
}

TEST (points_that_disagree_leave_residuals,
    "points that disagree leave residuals")
{
  static const double shares[] = {0, 0, 0.5, 0, 0.75};
  Point points[7];
  Config change = {.mm_per_pixel = 0.2, .n_points = 2, .points = points};

  make_points (points, 2, 0.2, 1);
  {
    test_auto (Result) r = run_mound (IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC, 0,
        &change, NULL, IMK_BACKEND_CPU);

    /* the mean: half a mm each */
    test_check (fabs (r.summary.point_residuals[0] + shares[2]) < 1e-3 &&
                    fabs (r.summary.point_residuals[1] - shares[2]) < 1e-3,
        "residuals of %g and %g mm", r.summary.point_residuals[0],
        r.summary.point_residuals[1]);
  }
  /* corners of a square: a plane leaves +-1/4 of the odd one */
  for (int i = 0; i < 4; i++)
    points[i] = (Point){20 + 100 * (i % 2), 20 + 100 * (i / 2), i == 0};
  change.n_points = 4;
  {
    test_auto (Map) m = map_plane (WIDTH, HEIGHT, 0, 0);
    test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);
    Config c = normal_config (&in);
    test_auto (Result) r;

    c.points = points;
    c.n_points = 4;
    r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
    for (int i = 0; i < 4; i++)
      test_check (fabs (r.summary.point_residuals[i] -
                        (i == 1 || i == 2 ? 0.25 : -0.25)) < 1e-5,
          "point %d is off by %g mm", i, r.summary.point_residuals[i]);
  }
}

TEST (points_that_cannot_be_are_refused, "points that cannot be are refused")
{
  static const Point line[] = {{1, 1, 0}, {5, 5, 1}, {9, 9.001, 0}};
  static const Point circle[] = {{15, 10, 0}, {10, 15, 0}, {5, 10, 0},
      {10, 5, 0}, {13, 14, 0}, {14, 13, 0}};
  static const Point outside[] = {{30, 2, 0}};
  static const Point endless[] = {{3, 2, NAN}};
  static const Point twice[] = {{3, 2, 1}, {3, 2, 1}, {7, 9, 1}};
  static const struct {
    const Point *points;
    uint32_t n;
    const char *words;
  } cases[] = {{line, 3, "The 3 points of known height lie on a line"},
      {twice, 3, "lie on a line"}, {circle, 6, "on a curve of second order"},
      {outside, 1, "at (30, 2), outside of the map of 30 x 20"},
      {endless, 1, "nan mm high"},
      {line, 65, "65 points of known height; there can be 64"}};
  test_auto (Map) m = map_plane (30, 20, 0.5, 0);
  test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);
  Config c = normal_config (&in);
  ImkNormalintegrate *s = NULL;

  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
    c.points = cases[i].points;
    c.n_points = cases[i].n;
    test_error (
        imk_normalintegrate_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
        IMK_ERROR_CONFIG, cases[i].words);
  }
  c.n_points = 0;
  c.flatten = (ImkNormalintegrateFlatten) 4;
  test_error (
      imk_normalintegrate_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "flatten");
}

/* Also between a pixel that has a height and one that has not; on the former it
 * has one. */
TEST (a_point_in_a_hole_is_left_out, "a point in a hole is left out")
{
  Point point = {10.5, 7, 3};
  float lowest = INFINITY;
  test_auto (Map) m = map_plane (30, 20, 0.5, 0);
  Config c;
  test_auto (TestImage) in, height;
  ImkNormalintegrateOutputs out;
  ImkNormalintegrateSummary summary;
  ImkNormalintegrate *s = NULL;

  map_cut (&m, 11, 7);
  in = map_encode (&m, IMK_TYPE_F32, 3, false);
  height = test_image_new (IMK_TYPE_F32, 30, 20, 1, 0);
  out = (ImkNormalintegrateOutputs){.height = height.image};
  c = normal_config (&in);
  c.points = &point;
  c.n_points = 1;
  test_ok (
      imk_normalintegrate_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_normalintegrate_process (
      s, &in.image, &out, &summary, NULL, test_new_error ()));
  test_check (isnan (summary.point_residuals[0]), "the residual is %g",
      summary.point_residuals[0]);
  for (uint32_t i = 0; i < 30 * 20; i++)
    lowest = fminf (lowest, ((float *) height.image.data)[i]);
  test_check (fabsf (lowest) < 1e-4, "the lowest is at %g", lowest);
  point.x = 10;
  test_ok (imk_normalintegrate_update (s, &c, test_new_error ()));
  test_ok (imk_normalintegrate_process (
      s, &in.image, &out, &summary, NULL, test_new_error ()));
  test_check (fabs (((float *) height.image.data)[7 * 30 + 10] - 3) < 1e-4,
      "the point is at %g", ((float *) height.image.data)[7 * 30 + 10]);
  imk_normalintegrate_free (s);
}

TEST (nothing_stays_of_a_correction, "nothing stays of a correction")
{
  test_auto (Map) m = map_noise (61, 43, 0.1, 7);
  test_auto (TestImage) in = map_encode (&m, IMK_TYPE_F32, 3, false);
  test_auto (TestImage) height = test_image_new (IMK_TYPE_F32, 61, 43, 1, 0);
  ImkNormalintegrateOutputs out = {.height = height.image};
  Config c = normal_config (&in);
  test_auto (Result) plain = normal_run_on (IMK_BACKEND_CPU, &c, &in);
  ImkNormalintegrateSummary summary;
  ImkNormalintegrate *s = NULL;

  c.flatten = IMK_NORMALINTEGRATE_FLATTEN_RADIAL;
  c.focal_pixels = 80;
  test_ok (
      imk_normalintegrate_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_normalintegrate_process (
      s, &in.image, &out, &summary, NULL, test_new_error ()));
  c.flatten = IMK_NORMALINTEGRATE_FLATTEN_NONE;
  c.focal_pixels = 0;
  test_ok (imk_normalintegrate_update (s, &c, test_new_error ()));
  test_ok (imk_normalintegrate_process (
      s, &in.image, &out, &summary, NULL, test_new_error ()));
  for (uint32_t y = 0; y < 43; y++)
    for (uint32_t x = 0; x < 61; x++) {
      float a = result_height (&plain, x, y);
      float b = ((float *) height.image.data)[y * 61 + x];

      test_check (memcmp (&a, &b, sizeof (a)) == 0,
          "at (%u, %u): %g, and %g after a correction", x, y, a, b);
    }
  imk_normalintegrate_free (s);
}

/* --- CUDA ----------------------------------------------------------------- */

static void
check_alike (
    const Map *m, const Result *cpu, const Result *cuda, const char *what)
{
  double range = cpu->summary.highest - cpu->summary.lowest, most = 0;

  for (uint32_t y = 0; y < m->height; y++)
    for (uint32_t x = 0; x < m->width; x++) {
      float a = result_height (cpu, x, y), b = result_height (cuda, x, y);

      test_check (isnan (a) == isnan (b), "%s at (%u, %u) cpu has %g, cuda %g",
          what, x, y, a, b);
      if (!isnan (a))
        most = fmax (most, fabs (a - b));
    }
  test_check (most <= 1e-4 * range + 1e-6, "%s: heights differ by %g of %g",
      what, most, range);
  test_check (fabs (cpu->summary.lowest - cuda->summary.lowest) <=
                      1e-4 * range + 1e-6 &&
                  fabs (cpu->summary.flatten_share -
                        cuda->summary.flatten_share) < 0.02,
      "%s: cpu from %g with %g, cuda from %g with %g", what,
      cpu->summary.lowest, cpu->summary.flatten_share, cuda->summary.lowest,
      cuda->summary.flatten_share);
}

TEST (cuda_agrees_with_cpu, "CUDA agrees with the CPU")
{
  test_need_cuda ();
  for (int flatten = 0; flatten < 4; flatten++)
    for (int focal = 0; focal < 2; focal++)
      for (uint32_t n = 0; n < 7; n += 3) {
        int method = (flatten + focal + (int) n / 3) % 3;
        const double *t =
            test_terms[flatten ? flatten : IMK_NORMALINTEGRATE_FLATTEN_PLANE];
        test_auto (Map) m = map_mound (t, 15, NULL);
        test_auto (TestImage) in = map_encode (&m, IMK_TYPE_U16, 4, false);
        Point points[7];
        Config c = normal_config (&in);
        test_auto (Result) cpu, cuda, again;
        char what[80];

        make_points (points, n, 0.2, 1);
        c.mm_per_pixel = 0.2;
        c.pixel_aspect = map_aspect;
        c.method = method;
        c.tolerance = 1e-6;
        c.max_iterations = method == IMK_NORMALINTEGRATE_BILATERAL ? 2 : 100;
        c.focal_pixels = focal ? 300 : 0;
        c.flatten = (ImkNormalintegrateFlatten) flatten;
        c.n_points = n;
        c.points = points;
        snprintf (what, sizeof (what),
            "flatten %d, %u points, focal length %g, method %d", flatten, n,
            c.focal_pixels, method);
        cpu = normal_run_on (IMK_BACKEND_CPU, &c, &in);
        cuda = normal_run_on (IMK_BACKEND_CUDA, &c, &in);
        again = normal_run_on (IMK_BACKEND_CUDA, &c, &in);
        check_alike (&m, &cpu, &cuda, what);
        test_image_same (&cuda.height, &again.height, what);
        test_image_same (&cuda.grey, &again.grey, what);
      }
}
