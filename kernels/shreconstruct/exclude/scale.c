/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The k of R = k P D^T, where P is what makes the inverse of D. It is a gain,
 * or the unit of the commands of D. X is D R, G is D D^T, and z are random
 * numbers of variance 1.
 *
 * Tikhonov, least squares and truncated least squares have P = (D^T D + a I)^-1
 * on the modes that R has, so X G X z + a X X z = k X G z: two unknowns. Where
 * all modes are equally strong any a will do; X is then k times a projection,
 * and k is its eigenvalue. Of other P, such as those of minimum variance, k
 * cannot be known: 1 is one that fits if no eigenvalue of X is above 1. */
#include "shreconstruct/exclude/scale.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shreconstruct/dot.h"

/* | X z - X^T z | relative to the trace of X: rounding to float32 leaves 1e-7
 * times the condition of R. */
#define MAX_ASYMMETRY 1e-3

/* What the two unknowns leave, relative to k X G z, and how much of X G X z
 * differs from X X z. */
#define MAX_RESIDUAL 1e-3
#define MIN_DIFFERENCE 1e-3

/* X / k of the modes that R has, on average: below, P is nearly a multiple of
 * I, and k can be any large number. */
#define MIN_RESPONSE 0.1

/* What X leaves of one of its images beside a multiple of it: all its
 * eigenvalues are the same then. */
#define MAX_SPREAD 1e-2

/* The part of the size of k X G z by which a X X z can be below 0: rounding. */
#define MAX_NEGATIVE_PART 0.1

/* Another P leaves the largest eigenvalue of X near 1. */
#define MIN_LARGEST 0.8

enum { N_PROBES = 3, N_VECTORS = 5 };

/* Room for products with one z; [n_rows] each. */
typedef struct Products {
  const ImkShreconstructPair *pair;
  double *modes; /* [n_modes] */
  double *z, *y, *xy, *xgy, *xgz;
} Products;

/* Over all z. */
typedef struct Sums {
  double asymmetry, y_y, y_xy, xy_xy;
  double xgy_xgy, xgy_xy, xgz_xgy, xgz_xy, xgz_xgz;
} Sums;

static double
dot (const double *a, const double *b, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

IMK_SHRECONSTRUCT_DOT (dot_row, float, double, double)

/* @out: @left @right^T @v, both [n_rows][n_modes]; may be @v */
static void
apply (Products *p, const float *left, const float *right, const double *v,
    double *out)
{
  uint32_t n = p->pair->n_modes;

  for (uint32_t m = 0; m < n; m++)
    p->modes[m] = 0;
  for (size_t i = 0; i < p->pair->n_rows; i++)
    for (uint32_t m = 0; m < n; m++)
      p->modes[m] += v[i] * right[i * n + m];
  for (size_t i = 0; i < p->pair->n_rows; i++)
    out[i] = dot_row (left + i * n, p->modes, n);
}

static void
apply_x (Products *p, const double *v, double *out)
{
  apply (p, p->pair->d, p->pair->r, v, out);
}

static void
draw_uniform (Products *p, uint64_t *seed)
{
  for (size_t i = 0; i < p->pair->n_rows; i++) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    p->z[i] = sqrt (3) * ((double) (*seed >> 11) / 0x1p52 - 1);
  }
}

/* Products of one z more: y = X z. */
static void
add_probe (Products *p, Sums *s, uint64_t *seed)
{
  const float *d = p->pair->d;
  const size_t n = p->pair->n_rows;

  draw_uniform (p, seed);
  apply_x (p, p->z, p->y);
  apply (p, p->pair->r, d, p->z, p->xy);
  for (size_t i = 0; i < n; i++)
    s->asymmetry += pow (p->y[i] - p->xy[i], 2) / N_PROBES;
  apply_x (p, p->y, p->xy);
  apply (p, d, d, p->y, p->xgy);
  apply_x (p, p->xgy, p->xgy);
  apply (p, d, d, p->z, p->xgz);
  apply_x (p, p->xgz, p->xgz);
  s->y_y += dot (p->y, p->y, n);
  s->y_xy += dot (p->y, p->xy, n);
  s->xy_xy += dot (p->xy, p->xy, n);
  s->xgy_xgy += dot (p->xgy, p->xgy, n);
  s->xgy_xy += dot (p->xgy, p->xy, n);
  s->xgz_xgy += dot (p->xgz, p->xgy, n);
  s->xgz_xy += dot (p->xgz, p->xy, n);
  s->xgz_xgz += dot (p->xgz, p->xgz, n);
}

static bool
is_symmetric (const Products *p, const Sums *s)
{
  double trace = 0;

  for (size_t i = 0; i < p->pair->n_rows * p->pair->n_modes; i++)
    trace += (double) p->pair->d[i] * p->pair->r[i];
  return s->asymmetry <= pow (MAX_ASYMMETRY * trace, 2);
}

/* Returns: k of the two unknowns, 0 where they do not tell it */
static double
fit (const Sums *s)
{
  const double share = 1 - s->xgy_xy * s->xgy_xy / (s->xgy_xgy * s->xy_xy);
  const double inverse = (s->xgz_xgy - s->xgy_xy * s->xgz_xy / s->xy_xy) /
                         (s->xgy_xgy * share);                   /* 1 / k */
  const double a = (s->xgz_xy - s->xgy_xy * inverse) / s->xy_xy; /* a / k */
  const double rest = s->xgz_xgz - inverse * s->xgz_xgy - a * s->xgz_xy;

  return share > MIN_DIFFERENCE &&
                 a * sqrt (s->xy_xy) > -MAX_NEGATIVE_PART * sqrt (s->xgz_xgz) &&
                 inverse * s->y_xy > MIN_RESPONSE * s->y_y &&
                 rest <= MAX_RESIDUAL * MAX_RESIDUAL * s->xgz_xgz
             ? 1 / inverse
             : 0;
}

/* Where all eigenvalues of X are the same. Returns: it, or 0 */
static double
find_common (const Sums *s)
{
  const double common = s->y_xy / s->y_y;
  const double rest = s->xy_xy / s->y_y - common * common;

  return rest <= pow (MAX_SPREAD * common, 2) ? common : 0;
}

static ImkStatus
refuse_sign (double lowest, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "The control matrix has another sign than the inverse of the "
      "interaction matrix, so the loop would run away: R D has the "
      "eigenvalue %.3g, and needs 0 or more. Change the sign of one of them.",
      lowest);
}

static ImkStatus
find_scale (Products *p, double *scale, ImkError *doubt, ImkError *error)
{
  Sums s = {0};
  uint64_t seed = 1;
  ImkShreconstructFit fit_of_r;
  ImkStatus status;

  for (int i = 0; i < N_PROBES; i++)
    add_probe (p, &s, &seed);
  if (!is_symmetric (p, &s))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The control matrix is no least-squares inverse of the interaction "
        "matrix, so a cell cannot be excluded exactly. Invert this "
        "interaction matrix, or use invalid-policy zero or hold.");
  *scale = fit (&s);
  if (*scale == 0)
    *scale = find_common (&s);
  if (*scale > 0)
    return IMK_OK;
  status = imk_shreconstruct_find_fit_as (
      p->pair->config, p->pair->is_modal, &fit_of_r, error);
  if (status != IMK_OK)
    return status;
  if (*scale < 0 || fit_of_r.runs_away)
    return refuse_sign (fit_of_r.lowest, error);
  *scale = fmax (fit_of_r.largest, 1);
  if (fit_of_r.largest < MIN_LARGEST)
    imk_error_set (doubt, IMK_ERROR_CONFIG,
        "The interaction matrix does not explain the control matrix: R D is at "
        "most %.3g, where 1 is expected, so slopes of excluded cells are "
        "predicted too small. Check that interaction-location has the unit of "
        "the commands, and leave gains to gain and mode-gains, or use "
        "invalid-policy=zero.",
        fit_of_r.largest);
  return IMK_OK;
}

ImkStatus
imk_shreconstruct_find_scale (const ImkShreconstructPair *pair, double *scale,
    ImkError *doubt, ImkError *error)
{
  const size_t n = pair->n_rows;
  double *room = malloc ((N_VECTORS * n + pair->n_modes) * sizeof (double));
  Products p = {pair, room + N_VECTORS * n, room, room + n, room + 2 * n,
      room + 3 * n, room + 4 * n};
  ImkStatus status;

  if (!room)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to compare the control matrix with the interaction "
        "matrix.");
  status = find_scale (&p, scale, doubt, error);
  free (room);
  return status;
}
