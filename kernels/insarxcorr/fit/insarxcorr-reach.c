/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarxcorr-reach.h"

#include <math.h>
#include <stdlib.h>

enum { CURVE_TERMS = 6, CURVE_MIN_POINTS = 24, CURVE_GRID = 5 };

#define MAX_LEVERAGE 1e6

/* Pixels: less hardly shows in an interferogram. */
#define MAX_CURVE 0.1
#define MIN_F_RATIO 10

/* Offsets have three decimals. */
#define LEAST_SCATTER 0.001

#define FROM_MEDIAN 1.4826

/* Residuals above so many times the scatter, and so many pixels, are those of
 * offsets of chance, which are anywhere in the image. */
#define MAX_DEVIATIONS 6
#define MAX_RESIDUAL 0.5

/* ------------------------------------------------------------------------
 * Where points lie. Columns and lines are parts of the image. */

typedef struct Moments {
  double x, y, xx, yy, xy; /* means and covariances */
} Moments;

/* gcc 12 for arm64 ends with an internal error where it vectorises fmax (). */
static double
larger (double a, double b)
{
  return a > b ? a : b;
}

static double
part (double value, double least, double most)
{
  return most > least ? (value - least) / (most - least) : 0;
}

static Moments
measure_moments (
    const ImkInsarxcorrPoint *points, size_t n, const ImkInsarxcorrArea *a)
{
  Moments m = {0};

  for (size_t i = 0; i < n; i++) {
    m.x += part (points[i].x, a->x_least, a->x_most) / (double) n;
    m.y += part (points[i].y, a->y_least, a->y_most) / (double) n;
  }
  for (size_t i = 0; i < n; i++) {
    double x = part (points[i].x, a->x_least, a->x_most) - m.x;
    double y = part (points[i].y, a->y_least, a->y_most) - m.y;

    m.xx += x * x / (double) n;
    m.yy += y * y / (double) n;
    m.xy += x * y / (double) n;
  }
  return m;
}

/* Returns: n a' (A'A)^-1 a at the corner (@x, @y), which is 1 in the middle of
 * the points */
static double
gain_at (const Moments *m, double x, double y)
{
  double determinant = m->xx * m->yy - m->xy * m->xy;

  x -= m->x;
  y -= m->y;
  if (!(determinant > 1e-12))
    return INFINITY;
  return 1 + (x * x * m->yy - 2 * x * y * m->xy + y * y * m->xx) / determinant;
}

static void
measure_leverage (const ImkInsarxcorrPoint *points, size_t n,
    const ImkInsarxcorrArea *area, ImkInsarxcorrReach *reach)
{
  Moments m = measure_moments (points, n, area);
  double least = (m.xx + m.yy) / 2 - hypot ((m.xx - m.yy) / 2, m.xy);
  double gain = 1;

  for (int corner = 0; corner < 4; corner++)
    gain = larger (gain, gain_at (&m, corner % 2, corner / 2));
  reach->span = sqrt (12 * fmax (least, 0));
  reach->gain = fmin (sqrt (gain), MAX_LEVERAGE);
  reach->leverage =
      fmin (sqrt (gain * area->overlap / (double) n), MAX_LEVERAGE);
}

/* ------------------------------------------------------------------------
 * What is left is a curve, or noise. */

static double
curve_at (const ImkInsarxcorrTrend *t, const ImkInsarxcorrFit *fit, double x,
    double y)
{
  double u = 2 * part (x, fit->x_least, fit->x_most) - 1;
  double v = 2 * part (y, fit->y_least, fit->y_most) - 1;
  const double *m = t->terms;

  return m[0] + m[1] * u + m[2] * v + m[3] * u * v + m[4] * (2 * u * u - 1) +
         m[5] * (2 * v * v - 1);
}

static double
largest_curve (const ImkInsarxcorrTrend *t, const ImkInsarxcorrFit *fit,
    const ImkInsarxcorrArea *a)
{
  double largest = 0;

  for (int i = 0; i < CURVE_GRID * CURVE_GRID; i++) {
    double x = (double) (i % CURVE_GRID) / (CURVE_GRID - 1);
    double y = (double) (i / CURVE_GRID) / (CURVE_GRID - 1);

    x = a->x_least + x * (a->x_most - a->x_least);
    y = a->y_least + y * (a->y_most - a->y_least);
    largest = larger (largest, fabs (curve_at (t, fit, x, y)));
  }
  return largest;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* Returns: the scatter of residuals, by the median of their @sizes, which are
 * sorted */
static double
scatter_of (double *sizes, size_t n)
{
  qsort (sizes, n, sizeof (*sizes), compare);
  return fmax (FROM_MEDIAN * sizes[n / 2], LEAST_SCATTER);
}

/* @residuals: what the plane leaves; @fit: through these; @scratch: [n] */
static ImkInsarxcorrCurve
measure_curve (const ImkInsarxcorrPoint *residuals, size_t n,
    const ImkInsarxcorrFit *fit, bool is_azimuth, const ImkInsarxcorrArea *area,
    double *scratch)
{
  const ImkInsarxcorrTrend *t = is_azimuth ? &fit->azimuth : &fit->range;
  ImkInsarxcorrCurve curve = {0};
  double scatter, squares = 0;

  for (size_t i = 0; i < n; i++) {
    const ImkInsarxcorrPoint *p = &residuals[i];
    double field = curve_at (t, fit, p->x, p->y);

    scratch[i] = fabs ((is_azimuth ? p->dy : p->dx) - field);
    squares += field * field;
  }
  scatter = scatter_of (scratch, n);
  curve.rms = sqrt (squares / (double) n);
  curve.largest = largest_curve (t, fit, area);
  curve.is_curved =
      curve.largest > MAX_CURVE &&
      squares / CURVE_TERMS > MIN_F_RATIO * area->overlap * scatter * scatter;
  return curve;
}

/* A wrong offset far from most others draws a curve to itself, and hides that
 * the others lie close together.
 * Returns: how many residuals are left, the first ones */
static size_t
drop_outliers (ImkInsarxcorrPoint *residuals, size_t n, double *scratch)
{
  double most[2]; /* range, azimuth */
  size_t left = 0;

  for (int axis = 0; axis < 2; axis++) {
    for (size_t i = 0; i < n; i++)
      scratch[i] = fabs (axis ? residuals[i].dy : residuals[i].dx);
    most[axis] = fmax (MAX_RESIDUAL, MAX_DEVIATIONS * scatter_of (scratch, n));
  }
  for (size_t i = 0; i < n; i++)
    if (fabs (residuals[i].dx) <= most[0] && fabs (residuals[i].dy) <= most[1])
      residuals[left++] = residuals[i];
  return left;
}

/* @residuals: [n], what the plane leaves; @scratch: [n] */
static ImkStatus
measure_curves (const ImkInsarxcorrPoint *residuals, size_t n,
    const ImkInsarxcorrArea *area, ImkInsarxcorrReach *reach, double *scratch,
    ImkError *error)
{
  ImkInsarxcorrFit rest;

  IMK_TRY (imk_insarxcorr_fit (
      residuals, n, CURVE_TERMS, CURVE_TERMS, &rest, error));
  reach->range = measure_curve (residuals, n, &rest, false, area, scratch);
  reach->azimuth = measure_curve (residuals, n, &rest, true, area, scratch);
  return IMK_OK;
}

ImkStatus
imk_insarxcorr_reach (const ImkInsarxcorrPoint *points, size_t n_points,
    const ImkInsarxcorrFit *fit, const ImkInsarxcorrArea *area,
    ImkInsarxcorrReach *reach, ImkError *error)
{
  const ImkInsarxcorrArea own = {
      fit->x_least, fit->x_most, fit->y_least, fit->y_most, 1};
  ImkInsarxcorrPoint *residuals =
      calloc (n_points, sizeof (*residuals) + sizeof (double));
  ImkInsarxcorrReach found = {0};
  ImkStatus status = IMK_OK;
  double *scratch;
  size_t n;

  if (!residuals)
    return IMK_NO_MEMORY (error, "for the residuals of %zu points.", n_points);
  scratch = (double *) (residuals + n_points);
  area = area ? area : &own;
  for (size_t i = 0; i < n_points; i++) {
    const ImkInsarxcorrPoint *p = &points[i];

    residuals[i] = *p;
    residuals[i].dx -= imk_insarxcorr_fit_at (fit, false, p->x, p->y);
    residuals[i].dy -= imk_insarxcorr_fit_at (fit, true, p->x, p->y);
  }
  n = drop_outliers (residuals, n_points, scratch);
  measure_leverage (residuals, n, area, &found);
  if (n >= CURVE_MIN_POINTS)
    status = measure_curves (residuals, n, area, &found, scratch, error);
  if (status == IMK_OK)
    *reach = found;
  free (residuals);
  return status;
}
