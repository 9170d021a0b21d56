/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The phase of the earth against points, orbits and an ellipsoid in closed
 * form. */
#include <math.h>
#include <stdlib.h>

#include "imk/insarform-orbit.h"
#include "kernel-test.h"

enum { N_STATES = 20 };

static const double wavelength = 0.0566, start = 1000, line_time = 1 / 1700.0,
                    near_range = 830000, range_step = 7.8;

/* --- orbits in closed form ------------------------------------------------ */

/* A circle, inclined, over a turning earth. */
typedef struct Circle {
  double radius, phase, node, inclination;
} Circle;

static const Circle reference_circle = {7155000, 0.9, 0.4, 1.72};

static void
position_of (const Circle *c, double t, double *p)
{
  const double mu = 3.986004418e14, turn = 7.2921159e-5;
  double u = c->phase + (t - start) * sqrt (mu / pow (c->radius, 3));
  double x = c->radius * cos (u);
  double y = c->radius * sin (u) * cos (c->inclination);
  double g = c->node - turn * (t - start);

  p[0] = x * cos (g) - y * sin (g);
  p[1] = x * sin (g) + y * cos (g);
  p[2] = c->radius * sin (u) * sin (c->inclination);
}

static void
make_states (const Circle *c, double step, ImkInsarformState *states)
{
  for (int i = 0; i < N_STATES; i++) {
    double before[3], after[3], before2[3], after2[3], h = 0.5;
    double t = start + (i - 7.3) * step;

    states[i].time = t;
    position_of (c, t, states[i].position);
    position_of (c, t - h, before);
    position_of (c, t + h, after);
    position_of (c, t - 2 * h, before2);
    position_of (c, t + 2 * h, after2);
    for (int k = 0; k < 3; k++)
      states[i].velocity[k] =
          (8 * (after[k] - before[k]) - (after2[k] - before2[k])) / (12 * h);
  }
}

static double
distance (const Circle *c, double t, const double *p)
{
  double s[3], sum = 0;

  position_of (c, t, s);
  for (int k = 0; k < 3; k++)
    sum += (s[k] - p[k]) * (s[k] - p[k]);
  return sqrt (sum);
}

/* Returns: when @c is nearest to @p, by ternary steps and a last parabola */
static double
nearest (const Circle *c, const double *p)
{
  double first = start - 60, end = start + 60, a, b, m, h = 1e-2;

  while (end - first > 0.1) {
    double t = first + (end - first) / 3, u = end - (end - first) / 3;

    if (distance (c, t, p) < distance (c, u, p))
      end = u;
    else
      first = t;
  }
  m = (first + end) / 2;
  for (int i = 0; i < 3; i++) {
    a = distance (c, m - h, p);
    b = distance (c, m + h, p);
    m -= h / 2 * (b - a) / (a + b - 2 * distance (c, m, p));
  }
  return m;
}

static void
place (const ImkInsarformSurface *s, double latitude, double longitude,
    double height, double *p)
{
  double e2 = 1 - s->polar * s->polar / (s->equatorial * s->equatorial);
  double n = s->equatorial / sqrt (1 - e2 * pow (sin (latitude), 2));

  p[0] = (n + height) * cos (latitude) * cos (longitude);
  p[1] = (n + height) * cos (latitude) * sin (longitude);
  p[2] = (n * (1 - e2) + height) * sin (latitude);
}

/* --- pairs ---------------------------------------------------------------- */

typedef struct Pair {
  ImkInsarformState states[2][N_STATES];
  ImkInsarformOrbit orbits[2];
  Circle circles[2];
} Pair;

/* @baseline: in m, up and across */
static void
make_pair (Pair *p, const double *baseline, double step, int32_t look)
{
  p->circles[0] = p->circles[1] = reference_circle;
  p->circles[1].radius += baseline[0];
  p->circles[1].node += baseline[1] / 6e6;
  p->circles[1].phase += 3e-6; /* its lines begin elsewhere */
  for (int i = 0; i < 2; i++) {
    make_states (&p->circles[i], step, p->states[i]);
    p->orbits[i] = (ImkInsarformOrbit){
        .states = p->states[i],
        .n_states = N_STATES,
        .first_time = start,
        .line_time = line_time,
        .near_range = near_range,
        .range_step = range_step,
        .wavelength = wavelength,
        .look = look,
    };
  }
}

/* --- promises ------------------------------------------------------------- */

static double
wrap (double f)
{
  return f - 2 * M_PI * round (f / (2 * M_PI));
}

/* Finds column and line of points on the ground, and their phase. Those of the
 * other side have another phase, so the side is tested as well. */
TEST (test_points_have_their_phase, "points have their phase")
{
  const double baseline[] = {150, -420};
  ImkInsarformSurface surface = IMK_INSARFORM_WGS84;
  Pair pair;

  for (int look = -1; look <= 1; look += 2)
    for (int step = 10; step <= 60; step += 50) {
      uint64_t seed = 1;
      int n = 0;

      make_pair (&pair, baseline, step, look);
      for (int i = 0; i < 400; i++) {
        double s[3], p[3], v[3], later[3], side, height, phase, expected, t, r;

        position_of (&reference_circle, start, s);
        position_of (&reference_circle, start + 1, later);
        height = (double) (test_random (&seed) % 9000) - 500;
        place (&surface,
            asin (s[2] / 7155000) +
                ((double) (test_random (&seed) % 10000) / 10000 - 0.5) * 0.1,
            atan2 (s[1], s[0]) +
                ((double) (test_random (&seed) % 10000) / 10000 - 0.5) * 0.24,
            height, p);
        t = nearest (&pair.circles[0], p);
        r = distance (&pair.circles[0], t, p);
        for (int k = 0; k < 3; k++)
          v[k] = later[k] - s[k];
        /* (s x v) . p is positive to the left */
        side = (s[1] * v[2] - s[2] * v[1]) * p[0] +
               (s[2] * v[0] - s[0] * v[2]) * p[1] +
               (s[0] * v[1] - s[1] * v[0]) * p[2];
        if (side * look > 0 || r < 800000 || r > 950000)
          continue;
        n++;
        expected =
            4 * M_PI / wavelength *
            (distance (&pair.circles[1], nearest (&pair.circles[1], p), p) - r);
        test_ok (imk_insarform_earth_phase (&pair.orbits[0], NULL,
            &pair.orbits[1], &surface, (r - near_range) / range_step,
            (t - start) / line_time, height, &phase, test_new_error ()));
        test_check (fabs (phase - expected) < 1e-3,
            "look %d, states every %d s, height %g: phase %.6f, expected %.6f",
            look, step, height, phase, expected);
      }
      test_check (n > 20, "%d points", n);
    }
}

TEST (test_lines_are_their_points, "lines are their points")
{
  static const double baselines[][2] = {{0, 0}, {150, -420}, {-900, 2500}};
  enum { WIDTH = 5000, HEIGHT = 3000 };
  ImkInsarformSurface surfaces[] = {IMK_INSARFORM_WGS84, {6371000, 6371000}};
  test_autofree float *phase = malloc (WIDTH * sizeof (*phase));
  test_autofree float *heights = malloc (WIDTH * sizeof (*heights));

  for (int b = 0; b < 3; b++)
    for (int s = 0; s < 2; s++) {
      ImkInsarformEarth *earth;
      uint64_t seed = 7;
      Pair pair;

      make_pair (&pair, baselines[b], 10, 1);
      test_ok (imk_insarform_earth_new (&pair.orbits[0], NULL, &pair.orbits[1],
          &surfaces[s], WIDTH, HEIGHT, &earth, test_new_error ()));
      for (uint32_t line = 0; line < HEIGHT; line += 271)
        for (int with = 0; with < 2; with++) {
          for (uint32_t x = 0; x < WIDTH; x++)
            heights[x] = (float) (test_random (&seed) % 9500) - 800;
          heights[100] = NAN;
          imk_insarform_earth_line (
              earth, line, with ? heights : NULL, 1 + with, phase);
          test_check (!with || isnan (phase[100]), "NaN has a phase");
          for (uint32_t x = 0; x < WIDTH; x += 37) {
            double f;

            test_ok (imk_insarform_earth_phase (&pair.orbits[0], NULL,
                &pair.orbits[1], &surfaces[s], x, line, with ? heights[x] : 0,
                &f, test_new_error ()));
            test_check (fabs (wrap (phase[x] - f)) < IMK_INSARFORM_EARTH_ERROR,
                "baseline %d, surface %d, (%u, %u): %g, expected %g", b, s, x,
                line, phase[x], wrap (f));
          }
        }
      imk_insarform_earth_free (earth);
    }
}

/* Three images on the columns and lines of the first one: by points, and what
 * lines promise. */
TEST (test_a_third_image_has_the_grid, "a third image has the grid")
{
  static const double baselines[][2] = {{150, -420}, {-90, 310}};
  enum { WIDTH = 900, HEIGHT = 700 };
  ImkInsarformSurface surface = IMK_INSARFORM_WGS84;
  ImkInsarformEarth *earth;
  float phase[WIDTH], heights[WIDTH];
  Pair pairs[2];

  for (int i = 0; i < 2; i++)
    make_pair (&pairs[i], baselines[i], 10, 1);
  /* of the reference the states alone count */
  pairs[0].orbits[1].near_range = pairs[0].orbits[1].line_time = -1;
  pairs[0].orbits[1].first_time = 1e9;
  test_ok (imk_insarform_earth_new (&pairs[0].orbits[0], &pairs[0].orbits[1],
      &pairs[1].orbits[1], &surface, WIDTH, HEIGHT, &earth, test_new_error ()));
  for (uint32_t line = 0; line < HEIGHT; line += 83) {
    for (uint32_t x = 0; x < WIDTH; x++)
      heights[x] = (float) (x * 37 % 8000);
    imk_insarform_earth_line (earth, line, heights, 1, phase);
    for (uint32_t x = 0; x < WIDTH; x += 29) {
      double to[2], between;

      for (int i = 0; i < 2; i++)
        test_ok (imk_insarform_earth_phase (&pairs[i].orbits[0], NULL,
            &pairs[i].orbits[1], &surface, x, line, heights[x], &to[i],
            test_new_error ()));
      test_ok (imk_insarform_earth_phase (&pairs[0].orbits[0],
          &pairs[0].orbits[1], &pairs[1].orbits[1], &surface, x, line,
          heights[x], &between, test_new_error ()));
      test_check (fabs (between - (to[1] - to[0])) < 1e-5,
          "(%u, %u): %g, expected %g", x, line, between, to[1] - to[0]);
      test_check (fabs (wrap (phase[x] - between)) < IMK_INSARFORM_EARTH_ERROR,
          "(%u, %u): the line has %g, expected %g", x, line, phase[x],
          wrap (between));
    }
  }
  imk_insarform_earth_free (earth);
  pairs[0].orbits[1].n_states = 5;
  test_error (imk_insarform_earth_new (&pairs[0].orbits[0], &pairs[0].orbits[1],
                  &pairs[1].orbits[1], &surface, WIDTH, HEIGHT, &earth,
                  test_new_error ()),
      IMK_ERROR_CONFIG, "vectors of the reference");
  pairs[0].orbits[0].near_range = 1000;
  test_error (imk_insarform_earth_new (&pairs[0].orbits[0], &pairs[1].orbits[1],
                  &pairs[1].orbits[1], &surface, WIDTH, HEIGHT, &earth,
                  test_new_error ()),
      IMK_ERROR_CONFIG, "from the orbit of the grid");
}

TEST (test_what_is_wrong_is_said, "what is wrong is said")
{
  const double baseline[] = {150, -420};
  ImkInsarformSurface surface = IMK_INSARFORM_WGS84;
  ImkInsarformEarth *earth;
  Pair good, pair;

  make_pair (&good, baseline, 10, 1);
#define REFUSES(change, words) \
  do { \
    pair = good; \
    for (int i = 0; i < 2; i++) \
      pair.orbits[i].states = pair.states[i]; \
    change; \
    test_error ( \
        imk_insarform_earth_new (&pair.orbits[0], NULL, &pair.orbits[1], \
            &surface, 3000, 2000, &earth, test_new_error ()), \
        IMK_ERROR_CONFIG, words); \
  } while (0)
  REFUSES (pair.orbits[0].n_states = 3, "has 3 state vectors");
  REFUSES (pair.states[1][4].time = 0, "State vector 4 of the secondary");
  REFUSES (pair.orbits[0].wavelength = 0, "wavelength of 0 m");
  REFUSES (pair.orbits[0].first_time += 1e6, "Take a longer orbit");
  REFUSES (pair.orbits[0].near_range = 1000, "No point of the height");
  REFUSES (pair.orbits[1].n_states = 5, "do not pass what is at column");
#undef REFUSES
  imk_insarform_earth_free (NULL);
}
