/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "photostereo/photostereo-reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
imk_photostereo_reference_light (const ImkPhotostereoConfig *c, uint32_t i,
    double x, double y, double h, double v[3])
{
  const ImkPhotostereoLight *l = &c->lights[i];
  double cx = isnan (c->centre_x) ? (c->width - 1) / 2.0 : c->centre_x;
  double cy = isnan (c->centre_y) ? (c->height - 1) / 2.0 : c->centre_y;
  double mean = 0, r, k = 1, z = c->positions ? c->plane_z : 0;
  ImkPhotostereoModel model = c->model;

  if (model == IMK_PHOTOSTEREO_MODEL_AUTO)
    model = c->positions ? IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE
                         : IMK_PHOTOSTEREO_MODEL_DIRECTIONAL;
  v[0] = l->x;
  v[1] = l->y;
  v[2] = l->z - z;
  if (c->positions && model != IMK_PHOTOSTEREO_MODEL_DIRECTIONAL) {
    double nearer =
        c->focal_length_mm > 0
            ? 1 - h * c->sensor_width_mm /
                      (c->mm_per_pixel * c->width * c->focal_length_mm)
            : 1;
    double mx = (c->width - 1) / 2.0, my = (c->height - 1) / 2.0;

    v[0] -= (mx - cx + nearer * (x - mx)) * c->mm_per_pixel;
    v[1] -= (cy - my + nearer * (my - y)) * c->mm_per_pixel / c->pixel_aspect;
    v[2] -= h;
  }
  for (uint32_t j = 0; j < c->n_lights; j++)
    mean += sqrt (c->lights[j].x * c->lights[j].x +
                  c->lights[j].y * c->lights[j].y +
                  (c->lights[j].z - z) * (c->lights[j].z - z)) /
            c->n_lights;
  r = sqrt (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  if (model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE)
    k = mean * mean / (r * r * r);
  else if (model == IMK_PHOTOSTEREO_MODEL_RAW)
    k = c->positions ? 1 / mean : 1;
  else
    k = 1 / r;
  if (c->led_lobe > 0 && (model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE ||
                             model == IMK_PHOTOSTEREO_MODEL_UNIT)) {
    double a[] = {-l->x, -l->y, -(l->z - z)};
    double s = sqrt (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
    double cosine = -(a[0] * v[0] + a[1] * v[1] + a[2] * v[2]) / (s * r);

    k *= cosine > 0 ? pow (cosine, c->led_lobe) : 0;
  }
  for (int j = 0; j < 3; j++)
    v[j] *= k;
}

/* What is solved: G = n'.L + c unit, of a light each; G = c unit where the
 * light does not reach the pixel. */
typedef struct Lights {
  uint32_t n;
  double (*l)[3];
  const double *g, *unit; /* NULL without room light */
  bool unlit[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS];
} Lights;

/* Returns: the k-th coefficient of light @i */
static double
coefficient (const Lights *a, uint32_t i, int k)
{
  return k == 3 ? a->unit[i] : a->unlit[i] ? 0 : a->l[i][k];
}

/* Weighted least squares by Gauss's elimination with pivots.
 * Returns: whether there is a solution */
static bool
least_squares (const Lights *a, const double *w, double x[4])
{
  int n = a->unit ? 4 : 3;
  double m[4][5] = {{0}};

  for (uint32_t i = 0; i < a->n; i++)
    for (int r = 0; r < n; r++) {
      for (int k = 0; k < n; k++)
        m[r][k] += w[i] * coefficient (a, i, r) * coefficient (a, i, k);
      m[r][n] += w[i] * coefficient (a, i, r) * a->g[i];
    }
  for (int k = 0; k < n; k++) {
    int pivot = k;

    for (int r = k + 1; r < n; r++)
      if (fabs (m[r][k]) > fabs (m[pivot][k]))
        pivot = r;
    if (fabs (m[pivot][k]) < 1e-9)
      return false;
    for (int j = 0; j <= n; j++) {
      double swap = m[k][j];

      m[k][j] = m[pivot][j];
      m[pivot][j] = swap;
    }
    for (int r = 0; r < n; r++) {
      double factor = m[r][k] / m[k][k];

      for (int j = 0; j <= n && r != k; j++)
        m[r][j] -= factor * m[k][j];
    }
  }
  x[3] = 0;
  for (int r = 0; r < n; r++)
    x[r] = m[r][n] / m[r][r];
  return true;
}

/* Are the lights that count on enough sides? IMK_PHOTOSTEREO_CONDITION, of what
 * a constant leaves (the Schur complement of its row), and the volume det A /
 * (tr A)^3, which tells lights of one direction from rounding.
 */
static bool
is_conditioned (const ImkPhotostereoConfig *c, const Lights *lights,
    const double *w, bool *tie)
{
  double a[3][3] = {{0}}, u[4] = {0}, minors, det, trace, condition;

  for (uint32_t i = 0; i < lights->n; i++)
    for (int r = 0; r < 3; r++)
      for (int k = 0; k < 3; k++)
        a[r][k] +=
            w[i] * coefficient (lights, i, r) * coefficient (lights, i, k);
  for (uint32_t i = 0; lights->unit && i < lights->n; i++)
    for (int k = 0; k < 4; k++)
      u[k] += w[i] * lights->unit[i] * coefficient (lights, i, k);
  for (int r = 0; lights->unit && r < 3; r++) /* what the constant leaves */
    for (int k = 0; k < 3; k++)
      a[r][k] -= u[r] * u[k] / u[3];
  minors = a[1][1] * a[2][2] - a[1][2] * a[2][1] + a[0][0] * a[2][2] -
           a[0][2] * a[2][0] + a[0][0] * a[1][1] - a[0][1] * a[1][0];
  det = a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
        a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
        a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
  trace = a[0][0] + a[1][1] + a[2][2];
  condition = det / (trace * minors);
  *tie = *tie || fabs (condition / c->min_condition - 1) < 0.01;
  return condition >= c->min_condition && det / (trace * trace * trace) >= 1e-6;
}

static double
dot (const double a[3], const double b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static int
compare_falling (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x < y) - (x > y);
}

/* Returns: what has to be exceeded for the first solution: @part of the way
 * from @least, the darkest, or 0 without room light, to the third brightest of
 * those that are not clipped */
static double
darkest_of (const Lights *lights, double part, double *least)
{
  const double *g = lights->g;
  uint32_t n = lights->n;
  double sorted[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS];

  for (uint32_t i = 0; i < n; i++)
    sorted[i] = g[i] < 1 ? g[i] : 0;
  *least = lights->unit ? 1 : 0;
  for (uint32_t i = 0; i < n && lights->unit; i++)
    *least = fmin (*least, g[i]);
  qsort (sorted, n, sizeof (*sorted), compare_falling);
  return *least + part * ((n < 3 ? 0 : sorted[2]) - *least);
}

/* What the lamp alone gives. */
static double
lit (const Lights *a, uint32_t i, const double x[4])
{
  return a->g[i] - (a->unit ? x[3] * a->unit[i] : 0);
}

/* Over the lights that count and are darker than predicted. */
static double
rms_residual (const double x[4], const Lights *a, const double *w, bool *tie)
{
  double sum = 0;
  uint32_t n_used = 0;

  for (uint32_t i = 0; i < a->n; i++) {
    double r = dot (x, a->l[i]) - lit (a, i, x);

    *tie = *tie || fabs (r) < 2e-6;
    if (w[i] > 0 && r > 0 && !a->unlit[i]) {
      sum += r * r;
      n_used++;
    }
  }
  return n_used ? sqrt (sum / n_used) : 0;
}

/* Huber's weights w = min (1, t-res / |n'.L + c unit - G|), by iterated least
 * squares: it converges to the least sum of r^2 / 2 up to |r| = t-res, and of
 * t-res (|r| - t-res / 2) beyond. Huber 1964, Ann. Math. Statist. 35, 73-101;
 * the rounds as Holland and Welsch 1977, Communications in Statistics A 6,
 * 813-827. They end where x moves by 1e-4 of its length or less.
 * @x: (inout): the solution without weights; @w: 0 where a sample is clipped */
static void
solve_huber (const ImkPhotostereoConfig *c, const Lights *a, double t_res,
    double *w, double x[4], bool *tie)
{
  bool relative = c->thresholds != IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;

  for (uint32_t round = 1; round < c->max_iterations; round++) {
    double limit = t_res * (relative ? sqrt (dot (x, x)) : 1);
    double next[4], move[3], part;

    for (uint32_t i = 0; i < a->n; i++)
      if (w[i] > 0)
        w[i] = fmin (1, limit / fabs (dot (x, a->l[i]) - lit (a, i, x)));
    if (!is_conditioned (c, a, w, tie) || !least_squares (a, w, next))
      return;
    for (int k = 0; k < 3; k++)
      move[k] = next[k] - x[k];
    memcpy (x, next, sizeof (next));
    part = sqrt (dot (move, move) / dot (x, x));
    *tie = *tie || fabs (part / 1e-4 - 1) < 0.1;
    if (part <= 1e-4 && (!a->unit || round >= 3))
      return;
  }
}

uint32_t
imk_photostereo_reference (const ImkPhotostereoConfig *c, uint32_t n,
    double (*l)[3], const double *g, const double *unit, const double t[3],
    double x[4], bool *tie)
{
  Lights lights = {n, l, g, unit, {false}};
  double w[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS],
      best[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS];
  double next[4], darkest = -1, least = -1;
  bool dropped[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS] = {false};
  bool limits = c->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
  bool adaptive =
      limits && c->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
  bool relative = c->thresholds != IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
  uint32_t min = adaptive ? 4 : relative ? 6 : 3, used = 0;
  bool clips = c->robust != IMK_PHOTOSTEREO_ROBUST_NONE;

  if (c->min_lights)
    min = c->min_lights;
  if (adaptive)
    darkest = darkest_of (&lights, t[0], &least);
  *tie = false;
  for (uint32_t i = 0; i < n; i++) {
    w[i] = !(limits && !relative && !(g[i] > t[0] && g[i] < t[1])) &&
           !(clips && g[i] >= 1) && g[i] > darkest;
    lights.unlit[i] = limits && adaptive && unit && g[i] <= least;
    w[i] = w[i] > 0 || lights.unlit[i];
    used += w[i] > 0;
    *tie = *tie || fabs (g[i] - darkest) < 2e-6 ||
           (limits && unit && g[i] > least && g[i] - least < 2e-6);
  }
  if (used < (unit ? 4 : 3) || !is_conditioned (c, &lights, w, tie) ||
      !least_squares (&lights, w, x) || dot (x, x) == 0)
    return 0;
  if (c->robust == IMK_PHOTOSTEREO_ROBUST_HUBER) {
    if (used >= (min < n ? min : n))
      solve_huber (c, &lights, t[2], w, x, tie);
    return used;
  }
  memcpy (best, w, sizeof (w));
  for (uint32_t round = 1; round < c->max_iterations && limits; round++) {
    double length = relative ? sqrt (dot (x, x)) : 1, limit = t[2] * length;
    uint32_t count = 0;
    bool same = !unit || round >= 3; /* until then tests differ */

    if (adaptive)
      limit = fmax (limit, 2.2 * rms_residual (x, &lights, w, tie));
    for (uint32_t i = 0; i < n; i++) {
      double seen = lit (&lights, i, x), predicted = dot (x, l[i]);
      double r = fabs (predicted - seen);
      double behind = round < 3 ? -limit : 0;
      bool faint = seen <= t[0] * length && !(unit && predicted > behind);
      bool unlit = unit && faint;
      bool keep = !faint && seen < t[1] * length && r <= limit;

      *tie = *tie || fabs (seen - t[0] * length) < 2e-6 ||
             fabs (seen - t[1] * length) < 2e-6 || fabs (r - limit) < 2e-6 ||
             (unit && fabs (predicted - behind) < 2e-6);
      dropped[i] = dropped[i] || lights.unlit[i] || best[i] == 0;
      w[i] = unlit || (keep && g[i] < 1 && (c->readmit || !dropped[i]));
      count += w[i] > 0;
      same = same && w[i] == best[i] && unlit == lights.unlit[i];
      lights.unlit[i] = unlit;
    }
    if (same || count < (min < n ? min : n) || (unit && count < 4) ||
        !is_conditioned (c, &lights, w, tie) ||
        !least_squares (&lights, w, next))
      break;
    memcpy (x, next, sizeof (next));
    memcpy (best, w, sizeof (w));
    used = count;
  }
  return used;
}
