/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One point: imk_insarform_earth_phase (). */
#include "imk/insarform-orbit.h"

#include <math.h>
#include <stdbool.h>

enum { N_STATES = 4, MAX_ROUNDS = 50 };

/* --- vectors -------------------------------------------------------------- */

static double
dot (const double *a, const double *b)
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void
cross (const double *a, const double *b, double *to)
{
  to[0] = a[1] * b[2] - a[2] * b[1];
  to[1] = a[2] * b[0] - a[0] * b[2];
  to[2] = a[0] * b[1] - a[1] * b[0];
}

static void
subtract (const double *a, const double *b, double *to)
{
  for (int k = 0; k < 3; k++)
    to[k] = a[k] - b[k];
}

static void
normalize (double *a)
{
  double length = sqrt (dot (a, a));

  for (int k = 0; k < 3; k++)
    a[k] /= length;
}

/* --- the orbit ------------------------------------------------------------ */

/* Hermite: the polynomial of degree 7 with the positions and velocities of four
 * states. Of its Lagrange polynomials L_i, with s_i = L_i' (t_i):
 * position = sum ((1 - 2 s_i (t - t_i)) p_i + (t - t_i) v_i) L_i^2. */
static void
interpolate (const ImkInsarformState *states, double t, double *position,
    double *velocity)
{
  for (int k = 0; k < 3; k++)
    position[k] = velocity[k] = 0;
  for (int i = 0; i < N_STATES; i++) {
    double l = 1, slope = 0, s = 0, d = t - states[i].time;

    for (int j = 0; j < N_STATES; j++) {
      double product = 1;

      if (j == i)
        continue;
      l *= (t - states[j].time) / (states[i].time - states[j].time);
      s += 1 / (states[i].time - states[j].time);
      for (int m = 0; m < N_STATES; m++)
        if (m != i && m != j)
          product *= (t - states[m].time) / (states[i].time - states[m].time);
      slope += product / (states[i].time - states[j].time);
    }
    for (int k = 0; k < 3; k++) {
      double p = states[i].position[k], v = states[i].velocity[k];
      double h = (1 - 2 * s * d) * p + d * v;

      position[k] += h * l * l;
      velocity[k] += (v - 2 * s * p) * l * l + 2 * h * l * slope;
    }
  }
}

/* Returns: whether @t is between the first and the last state */
static bool
locate (const ImkInsarformOrbit *orbit, double t, double *position,
    double *velocity)
{
  uint32_t first = 0;

  if (!(t >= orbit->states[0].time &&
          t <= orbit->states[orbit->n_states - 1].time))
    return false;
  while (
      first + N_STATES < orbit->n_states && orbit->states[first + 2].time <= t)
    first++;
  interpolate (orbit->states + first, t, position, velocity);
  return true;
}

/* --- the ground ----------------------------------------------------------- */

/* Returns: the height of @p, with the error of Bowring (1976, "Transformation
 * from spatial to geographical coordinates", Survey Review 23), below a
 * micrometre near the ground. @up: (out): the direction of heights */
static double
height_of (const ImkInsarformSurface *surface, const double *p, double *up)
{
  double a = surface->equatorial, b = surface->polar;
  double e2 = 1 - b * b / (a * a), r = hypot (p[0], p[1]);
  double beta = atan2 (p[2] * a, r * b);
  double latitude =
      atan2 (p[2] + (a * a / (b * b) - 1) * b * pow (sin (beta), 3),
          r - e2 * a * pow (cos (beta), 3));
  double s = sin (latitude), c = cos (latitude);

  up[0] = r > 0 ? c * p[0] / r : c;
  up[1] = r > 0 ? c * p[1] / r : 0;
  up[2] = s;
  return r * c + p[2] * s - a * sqrt (1 - e2 * s * s);
}

/* The point at @range and @height seen from @position at a right angle to
 * @velocity: position + range (down cos (q) + side sin (q)). */
static bool
find_point (const ImkInsarformOrbit *orbit, const ImkInsarformSurface *surface,
    const double *position, const double *velocity, double range, double height,
    double *point)
{
  double along[3] = {velocity[0], velocity[1], velocity[2]};
  double down[3], side[3], up[3], from = sqrt (dot (position, position));
  double to, cosine, q;

  normalize (along);
  for (int k = 0; k < 3; k++)
    down[k] = -position[k] + dot (position, along) * along[k];
  normalize (down);
  cross (down, along, side);
  height_of (surface, position, up);
  /* the first guess: of a sphere through the ground below */
  to = from - height_of (surface, position, up) + height;
  cosine = (from * from + range * range - to * to) / (2 * from * range);
  if (!(cosine < 1 && cosine > -1))
    return false;
  q = acos (cosine);
  for (int round = 0; round < MAX_ROUNDS; round++) {
    double ahead[3], above;

    for (int k = 0; k < 3; k++) {
      double sideways = orbit->look * side[k];

      point[k] = position[k] + range * (cos (q) * down[k] + sin (q) * sideways);
      ahead[k] = range * (cos (q) * sideways - sin (q) * down[k]);
    }
    above = height_of (surface, point, up) - height;
    if (fabs (above) < 1e-7)
      return true;
    q -= above / dot (ahead, up);
  }
  return false;
}

/* The secondary when it is nearest to @point. @t: a guess, and then the time */
static bool
find_nearest (const ImkInsarformOrbit *orbit, const double *point, double *t,
    double *range)
{
  double s[3], v[3], later[3], faster[3], d[3];

  for (int round = 0; round < MAX_ROUNDS; round++) {
    double step = 1e-2, change;

    if (!locate (orbit, *t, s, v) ||
        (!locate (orbit, *t + step, later, faster) &&
            !locate (orbit, *t + (step = -step), later, faster)))
      return false;
    subtract (point, s, d);
    *range = sqrt (dot (d, d));
    /* the derivative of d . v */
    subtract (faster, v, faster);
    change = -dot (v, v) + dot (d, faster) / step;
    change = dot (d, v) / change;
    if (fabs (change) < 1e-7) /* less than a millimetre: 1e-12 m of range */
      return true;
    *t -= change;
  }
  return false;
}

static double
guess_time (const ImkInsarformOrbit *orbit, const double *point)
{
  double nearest = INFINITY, t = 0;

  for (uint32_t i = 0; i < orbit->n_states; i++) {
    double d[3];

    subtract (point, orbit->states[i].position, d);
    if (dot (d, d) < nearest) {
      nearest = dot (d, d);
      t = orbit->states[i].time;
    }
  }
  return t;
}

/* @name: of the image, for messages
 * Returns: IMK_ERROR_CONFIG when the image does not pass @point, which is at
 *   @column and @line of @whose columns and lines */
static ImkStatus
find_range (const ImkInsarformOrbit *orbit, const char *name, const char *whose,
    const double *point, double column, double line, double *range,
    ImkError *error)
{
  double t = guess_time (orbit, point);

  if (find_nearest (orbit, point, &t, range))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "The state vectors of the %s, of %.6f to %.6f s, do not pass what is at "
      "column %.10g, line %.10g of the %s. Take a longer orbit, or that of the "
      "same track.",
      name, orbit->states[0].time, orbit->states[orbit->n_states - 1].time,
      column, line, whose);
}

ImkStatus
imk_insarform_earth_phase (const ImkInsarformOrbit *grid,
    const ImkInsarformOrbit *reference, const ImkInsarformOrbit *secondary,
    const ImkInsarformSurface *surface, double column, double line,
    double height, double *phase, ImkError *error)
{
  const char *name = reference ? "grid" : "reference";
  double t = grid->first_time + line * grid->line_time;
  double range = grid->near_range + column * grid->range_step;
  double position[3], velocity[3], point[3], first = range, second;

  if (!locate (grid, t, position, velocity))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Line %.10g of the %s is of the time %.6f s, and its state vectors are "
        "of %.6f to %.6f s. Take a longer orbit.",
        line, name, t, grid->states[0].time,
        grid->states[grid->n_states - 1].time);
  if (!find_point (grid, surface, position, velocity, range, height, point))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "No point of the height %.10g m is %.10g m from the orbit of the %s "
        "(column %.10g, line %.10g). Are near_range and the orbit of one "
        "image?",
        height, range, name, column, line);
  if (reference)
    IMK_TRY (find_range (
        reference, "reference", name, point, column, line, &first, error));
  IMK_TRY (find_range (
      secondary, "secondary", name, point, column, line, &second, error));
  *phase = 4 * M_PI / grid->wavelength * (second - first);
  return IMK_OK;
}
