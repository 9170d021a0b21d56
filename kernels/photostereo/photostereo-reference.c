/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "photostereo/photostereo-reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
imk_photostereo_reference_light (
    const ImkPhotostereoConfig *c, uint32_t i, double x, double y, double v[3])
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
    v[0] -= (x - cx) * c->mm_per_pixel;
    v[1] -= (cy - y) * c->mm_per_pixel / c->pixel_aspect;
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

/* Weighted least squares by Gauss's elimination with pivots.
 * Returns: whether there is a solution */
static bool
least_squares (
    uint32_t n, double (*l)[3], const double *g, const double *w, double x[3])
{
  double m[3][4] = {{0}};

  for (uint32_t i = 0; i < n; i++)
    for (int r = 0; r < 3; r++) {
      for (int k = 0; k < 3; k++)
        m[r][k] += w[i] * l[i][r] * l[i][k];
      m[r][3] += w[i] * l[i][r] * g[i];
    }
  for (int k = 0; k < 3; k++) {
    int pivot = k;

    for (int r = k + 1; r < 3; r++)
      if (fabs (m[r][k]) > fabs (m[pivot][k]))
        pivot = r;
    if (fabs (m[pivot][k]) < 1e-9)
      return false;
    for (int j = 0; j < 4; j++) {
      double swap = m[k][j];

      m[k][j] = m[pivot][j];
      m[pivot][j] = swap;
    }
    for (int r = 0; r < 3; r++) {
      double factor = m[r][k] / m[k][k];

      for (int j = 0; j < 4 && r != k; j++)
        m[r][j] -= factor * m[k][j];
    }
  }
  for (int r = 0; r < 3; r++)
    x[r] = m[r][3] / m[r][r];
  return true;
}

/* Are the lights that count on enough sides? IMK_PHOTOSTEREO_CONDITION, and the
 * volume det A / (tr A)^3, which tells lights of one direction from rounding.
 */
static bool
is_conditioned (const ImkPhotostereoConfig *c, uint32_t n, double (*l)[3],
    const double *w, bool *tie)
{
  double a[3][3] = {{0}}, minors, det, trace, condition;

  for (uint32_t i = 0; i < n; i++)
    for (int r = 0; r < 3; r++)
      for (int k = 0; k < 3; k++)
        a[r][k] += w[i] * l[i][r] * l[i][k];
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

/* Of those that are not clipped. */
static double
third_brightest (const double *g, uint32_t n)
{
  double sorted[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS];

  for (uint32_t i = 0; i < n; i++)
    sorted[i] = g[i] < 1 ? g[i] : 0;
  qsort (sorted, n, sizeof (*sorted), compare_falling);
  return n < 3 ? 0 : sorted[2];
}

/* Over the lights that count and are darker than predicted. */
static double
rms_residual (const double x[3], uint32_t n, double (*l)[3], const double *g,
    const double *w, bool *tie)
{
  double sum = 0;
  uint32_t n_used = 0;

  for (uint32_t i = 0; i < n; i++) {
    double r = dot (x, l[i]) - g[i];

    *tie = *tie || fabs (r) < 2e-6;
    if (w[i] > 0 && r > 0) {
      sum += r * r;
      n_used++;
    }
  }
  return n_used ? sqrt (sum / n_used) : 0;
}

uint32_t
imk_photostereo_reference (const ImkPhotostereoConfig *c, uint32_t n,
    double (*l)[3], const double *g, const double t[3], double x[3], bool *tie)
{
  double w[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS],
      best[IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS], next[3], darkest = -1;
  bool adaptive = c->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
  bool relative =
      adaptive || c->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
  uint32_t min = adaptive ? 4 : relative ? 6 : 3, used = 0;
  bool limits = c->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;

  if (c->min_lights)
    min = c->min_lights;
  if (adaptive)
    darkest = t[0] * third_brightest (g, n);
  *tie = false;
  for (uint32_t i = 0; i < n; i++) {
    w[i] = !(limits && !relative && !(g[i] > t[0] && g[i] < t[1])) &&
           !(limits && g[i] >= 1) && g[i] > darkest;
    used += w[i] > 0;
    *tie = *tie || fabs (g[i] - darkest) < 2e-6;
  }
  if (used < 3 || !is_conditioned (c, n, l, w, tie) ||
      !least_squares (n, l, g, w, x) || dot (x, x) == 0)
    return 0;
  memcpy (best, w, sizeof (w));
  for (uint32_t round = 1; round < c->max_iterations && limits; round++) {
    double unit = relative ? sqrt (dot (x, x)) : 1, limit = t[2] * unit;
    uint32_t count = 0;
    bool same = true;

    if (adaptive)
      limit = fmax (limit, 2.2 * rms_residual (x, n, l, g, w, tie));
    for (uint32_t i = 0; i < n; i++) {
      double r = fabs (dot (x, l[i]) - g[i]);
      bool keep = g[i] > t[0] * unit && g[i] < t[1] * unit && r <= limit;

      *tie = *tie || fabs (g[i] - t[0] * unit) < 2e-6 ||
             fabs (g[i] - t[1] * unit) < 2e-6 || fabs (r - limit) < 2e-6;
      w[i] = keep && g[i] < 1 && (c->readmit || best[i] > 0);
      count += w[i] > 0;
      same = same && w[i] == best[i];
    }
    if (same || count < (min < n ? min : n) ||
        !is_conditioned (c, n, l, w, tie) || !least_squares (n, l, g, w, next))
      break;
    memcpy (x, next, sizeof (next));
    memcpy (best, w, sizeof (w));
    used = count;
  }
  return used;
}
