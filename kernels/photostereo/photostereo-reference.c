/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Read imk_photostereo_reference_light () first: the light vectors L. Then the
 * last function, imk_photostereo_reference (): with L and grey values G it
 * solves n'.L = G in rounds. first_round () and next_round () above it say
 * which lights count, least_squares () and is_conditioned () what is solved;
 * solve_huber () weighs lights instead.
 *
 * Pixel.tie notes that float32 may decide a comparison otherwise; no result
 * depends on it. */
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

enum { MAX_LIGHTS = IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS };

typedef enum Role {
  LEFT_OUT,
  LIT,   /* G = n'.L + c unit */
  UNLIT, /* the light does not reach the pixel: G = c unit */
} Role;

/* What is solved, and how far it is; of a light each. */
typedef struct Pixel {
  uint32_t n;
  double (*l)[3];
  const double *g, *unit; /* NULL without room light */
  Role role[MAX_LIGHTS];
  double w[MAX_LIGHTS]; /* of its square residual in the sum */
  bool dropped[MAX_LIGHTS];
  bool tie;
} Pixel;

static bool
exceeds (Pixel *p, double a, double b)
{
  p->tie |= fabs (a - b) < 2e-6;
  return a > b;
}

static double
dot (const double a[3], const double b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Returns: the k-th coefficient of light @i */
static double
coefficient (const Pixel *p, uint32_t i, int k)
{
  return k == 3 ? p->unit[i] : p->role[i] == UNLIT ? 0 : p->l[i][k];
}

/* Weighted least squares by Gauss's elimination with pivots.
 * Returns: whether there is a solution */
static bool
least_squares (const Pixel *p, double x[4])
{
  int n = p->unit ? 4 : 3;
  double m[4][5] = {{0}};

  for (uint32_t i = 0; i < p->n; i++)
    for (int r = 0; r < n; r++) {
      for (int k = 0; k < n; k++)
        m[r][k] += p->w[i] * coefficient (p, i, r) * coefficient (p, i, k);
      m[r][n] += p->w[i] * coefficient (p, i, r) * p->g[i];
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
is_conditioned (const ImkPhotostereoConfig *c, Pixel *p)
{
  double a[3][3] = {{0}}, u[4] = {0}, minors, det, trace, condition;

  for (uint32_t i = 0; i < p->n; i++)
    for (int r = 0; r < 3; r++)
      for (int k = 0; k < 3; k++)
        a[r][k] += p->w[i] * coefficient (p, i, r) * coefficient (p, i, k);
  for (uint32_t i = 0; p->unit && i < p->n; i++)
    for (int k = 0; k < 4; k++)
      u[k] += p->w[i] * p->unit[i] * coefficient (p, i, k);
  for (int r = 0; p->unit && r < 3; r++) /* what the constant leaves */
    for (int k = 0; k < 3; k++)
      a[r][k] -= u[r] * u[k] / u[3];
  minors = a[1][1] * a[2][2] - a[1][2] * a[2][1] + a[0][0] * a[2][2] -
           a[0][2] * a[2][0] + a[0][0] * a[1][1] - a[0][1] * a[1][0];
  det = a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
        a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
        a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
  trace = a[0][0] + a[1][1] + a[2][2];
  condition = det / (trace * minors);
  p->tie |= fabs (condition / c->min_condition - 1) < 0.01;
  return condition >= c->min_condition && det / (trace * trace * trace) >= 1e-6;
}

/* ------------------------------------------------------------------------
 * Thresholds: which lights count. */

static bool
is_relative (const ImkPhotostereoConfig *c)
{
  return c->thresholds != IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
}

static bool
is_adaptive (const ImkPhotostereoConfig *c)
{
  return c->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS &&
         c->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE;
}

/* Returns: the lights that a solution after the first needs */
static uint32_t
min_lights (const ImkPhotostereoConfig *c, const Pixel *p)
{
  uint32_t n = c->min_lights     ? c->min_lights
               : is_adaptive (c) ? 4
               : is_relative (c) ? 6
                                 : 3;

  n = n < p->n ? n : p->n;
  return p->unit && n < 4 ? 4 : n;
}

/* Returns: the lights that count */
static uint32_t
weigh_roles (Pixel *p)
{
  uint32_t used = 0;

  for (uint32_t i = 0; i < p->n; i++) {
    p->w[i] = p->role[i] != LEFT_OUT;
    used += p->role[i] != LEFT_OUT;
  }
  return used;
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
darkest_of (const Pixel *p, double part, double *least)
{
  const double *g = p->g;
  uint32_t n = p->n;
  double sorted[MAX_LIGHTS];

  for (uint32_t i = 0; i < n; i++)
    sorted[i] = g[i] < 1 ? g[i] : 0;
  *least = p->unit ? 1 : 0;
  for (uint32_t i = 0; i < n && p->unit; i++)
    *least = fmin (*least, g[i]);
  qsort (sorted, n, sizeof (*sorted), compare_falling);
  return *least + part * ((n < 3 ? 0 : sorted[2]) - *least);
}

/* What the lamp alone gives. */
static double
lit_part (const Pixel *p, uint32_t i, const double x[4])
{
  return p->g[i] - (p->unit ? x[3] * p->unit[i] : 0);
}

/* Returns: the lights of the solution @x, or 0 without one */
static uint32_t
first_round (
    const ImkPhotostereoConfig *c, const double t[3], Pixel *p, double x[4])
{
  bool limits = c->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
  bool clips = c->robust != IMK_PHOTOSTEREO_ROBUST_NONE;
  bool adaptive = is_adaptive (c);
  double least = -1, darkest = adaptive ? darkest_of (p, t[0], &least) : -1;
  uint32_t used;

  for (uint32_t i = 0; i < p->n; i++) {
    double g = p->g[i];
    bool within = !limits || is_relative (c) || (g > t[0] && g < t[1]);
    bool bright = exceeds (p, g, darkest);

    p->role[i] = adaptive && p->unit && g <= least        ? UNLIT
                 : within && bright && !(clips && g >= 1) ? LIT
                                                          : LEFT_OUT;
    /* @least is the darkest value itself, which is no tie */
    p->tie |= p->unit && g > least && g - least < 2e-6;
  }
  used = weigh_roles (p);
  return used >= (p->unit ? 4 : 3) && is_conditioned (c, p) &&
                 least_squares (p, x) && dot (x, x) != 0
             ? used
             : 0;
}

/* Over the lights that count and are darker than predicted. */
static double
rms_residual (Pixel *p, const double x[4])
{
  double sum = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < p->n; i++) {
    double r = dot (x, p->l[i]) - lit_part (p, i, x);

    if (exceeds (p, r, 0) && p->role[i] == LIT) {
      sum += r * r;
      n++;
    }
  }
  return n ? sqrt (sum / n) : 0;
}

/* Returns: what light @i is to the round after the solution @x
 * @limit: of residuals */
static Role
next_role (const ImkPhotostereoConfig *c, const double t[3], uint32_t round,
    double limit, uint32_t i, const double x[4], Pixel *p)
{
  double length = is_relative (c) ? sqrt (dot (x, x)) : 1;
  double seen = lit_part (p, i, x), predicted = dot (x, p->l[i]);
  bool dark = !exceeds (p, seen, t[0] * length);
  bool bright = !exceeds (p, t[1] * length, seen);
  bool misfits = exceeds (p, fabs (predicted - seen), limit);
  /* until IMK_PHOTOSTEREO_SURE_ROUND n' has to be sure that it turns away */
  bool faces = p->unit && exceeds (p, predicted, round < 3 ? -limit : 0);

  if (dark && !faces)
    return p->unit ? UNLIT : LEFT_OUT;
  return bright || misfits || p->g[i] >= 1 || (!c->readmit && p->dropped[i])
             ? LEFT_OUT
             : LIT;
}

/* Returns: the lights of the next solution, then in @x, or 0 at the end */
static uint32_t
next_round (const ImkPhotostereoConfig *c, const double t[3], uint32_t round,
    Pixel *p, double x[4])
{
  double limit = t[2] * (is_relative (c) ? sqrt (dot (x, x)) : 1), next[4];
  bool same = !p->unit || round >= 3; /* until then tests differ */
  uint32_t used;

  if (is_adaptive (c))
    limit = fmax (limit, 2.2 * rms_residual (p, x));
  for (uint32_t i = 0; i < p->n; i++) {
    Role last = p->role[i];

    p->dropped[i] |= last != LIT;
    p->role[i] = next_role (c, t, round, limit, i, x, p);
    same = same && p->role[i] == last;
  }
  used = weigh_roles (p);
  if (same || used < min_lights (c, p) || !is_conditioned (c, p) ||
      !least_squares (p, next))
    return 0;
  memcpy (x, next, sizeof (next));
  return used;
}

/* ------------------------------------------------------------------------
 * The whole. */

/* Huber's weights w = min (1, t-res / |n'.L + c unit - G|), by iterated least
 * squares: it converges to the least sum of r^2 / 2 up to |r| = t-res, and of
 * t-res (|r| - t-res / 2) beyond. Huber 1964, Ann. Math. Statist. 35, 73-101;
 * the rounds as Holland and Welsch 1977, Communications in Statistics A 6,
 * 813-827. They end where x moves by 1e-4 of its length or less.
 * @x: (inout): the solution without weights; p->w: 0 where a sample is clipped
 */
static void
solve_huber (const ImkPhotostereoConfig *c, double t_res, Pixel *p, double x[4])
{
  for (uint32_t round = 1; round < c->max_iterations; round++) {
    double limit = t_res * (is_relative (c) ? sqrt (dot (x, x)) : 1);
    double next[4], move[3], part;

    for (uint32_t i = 0; i < p->n; i++)
      if (p->w[i] > 0)
        p->w[i] =
            fmin (1, limit / fabs (dot (x, p->l[i]) - lit_part (p, i, x)));
    if (!is_conditioned (c, p) || !least_squares (p, next))
      return;
    for (int k = 0; k < 3; k++)
      move[k] = next[k] - x[k];
    memcpy (x, next, sizeof (next));
    part = sqrt (dot (move, move) / dot (x, x));
    p->tie |= fabs (part / 1e-4 - 1) < 0.1;
    if (part <= 1e-4 && (!p->unit || round >= 3))
      return;
  }
}

uint32_t
imk_photostereo_reference (const ImkPhotostereoConfig *c, uint32_t n,
    double (*l)[3], const double *g, const double *unit, const double t[3],
    double x[4], bool *tie)
{
  Pixel p = {.n = n, .l = l, .g = g, .unit = unit};
  uint32_t used = first_round (c, t, &p, x), next = used;

  if (c->robust == IMK_PHOTOSTEREO_ROBUST_HUBER && used > 0 &&
      used >= min_lights (c, &p))
    solve_huber (c, t[2], &p, x);
  if (c->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS)
    for (uint32_t round = 1; round < c->max_iterations && next > 0; round++) {
      next = next_round (c, t, round, &p, x);
      used = next > 0 ? next : used;
    }
  *tie = p.tie;
  return used;
}
