/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarxcorr-fit.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = IMK_INSARXCORR_FIT_MAX_TERMS, MAX_ITERATIONS = 100 };

#define LARGEST_CONDITION 1e6
#define SIGNIFICANCE 0.51

typedef struct Range {
  double least, most;
} Range;

/* One axis being fitted. */
typedef struct Problem {
  const ImkInsarxcorrPoint *points;
  size_t n;
  int n_terms;
  bool is_azimuth;
  Range x, y;
  double *residuals, *weights, *sorted; /* [n] */
} Problem;

/* ------------------------------------------------------------------------
 * The polynomial. */

static double
normalise (double value, Range range)
{
  double width = range.most - range.least;

  return width > 0 ? (2 * value - (range.least + range.most)) / width : 0;
}

static void
fill_basis (double u, double v, double basis[MAX])
{
  double u2 = 2 * u * u - 1, v2 = 2 * v * v - 1;
  const double all[MAX] = {1, u, v, u * v, u2, v2, (4 * u * u - 3) * u, u2 * v,
      u * v2, (4 * v * v - 3) * v};

  memcpy (basis, all, sizeof (all));
}

static void
evaluate_basis (const Problem *p, size_t i, double basis[MAX])
{
  fill_basis (normalise (p->points[i].x, p->x),
      normalise (p->points[i].y, p->y), basis);
}

static double
offset_of (const Problem *p, size_t i)
{
  return p->is_azimuth ? p->points[i].dy : p->points[i].dx;
}

/* ------------------------------------------------------------------------
 * Weighted least squares. */

/* Turns (@x, @y) by the angle of cosine @c and sine @s. */
static void
rotate (double *x, double *y, double c, double s)
{
  double before = *x;

  *x = c * before - s * *y;
  *y = s * before + c * *y;
}

/* Eigenvalues of the symmetric @a on its diagonal, eigenvectors in the columns
 * of @vectors, by Jacobi's rotations. */
static void
diagonalise (double a[MAX][MAX], double vectors[MAX][MAX], int n)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      vectors[i][j] = i == j;

  for (int sweep = 0; sweep < 60; sweep++) {
    double off = 0, diagonal = 0;

    for (int i = 0; i < n; i++) {
      diagonal += a[i][i] * a[i][i];
      for (int j = i + 1; j < n; j++)
        off += a[i][j] * a[i][j];
    }
    if (off <= 1e-40 * diagonal)
      return;
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) {
        double theta, t, c, s;

        if (a[p][q] == 0)
          continue;
        theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        t = 1 / (fabs (theta) + sqrt (theta * theta + 1));
        t = theta < 0 ? -t : t;
        c = 1 / sqrt (t * t + 1);
        s = t * c;
        for (int k = 0; k < n; k++)
          rotate (&a[k][p], &a[k][q], c, s);
        for (int k = 0; k < n; k++) {
          rotate (&a[p][k], &a[q][k], c, s);
          rotate (&vectors[k][p], &vectors[k][q], c, s);
        }
      }
  }
}

/* @terms = @normal^-1 @right, without what is nearly singular */
static void
solve (
    double normal[MAX][MAX], const double right[MAX], int n, double terms[MAX])
{
  double vectors[MAX][MAX], largest = 0;

  diagonalise (normal, vectors, n);
  memset (terms, 0, MAX * sizeof (*terms));
  for (int k = 0; k < n; k++)
    largest = fmax (largest, normal[k][k]);
  for (int k = 0; k < n; k++) {
    double projection = 0;

    if (!(normal[k][k] * LARGEST_CONDITION > largest))
      continue;
    for (int i = 0; i < n; i++)
      projection += vectors[i][k] * right[i];
    for (int i = 0; i < n; i++)
      terms[i] += vectors[i][k] * projection / normal[k][k];
  }
}

/* Fits with the weights there are and updates the residuals. Returns: chi */
static double
fit_weighted (const Problem *p, double terms[MAX])
{
  double normal[MAX][MAX] = {{0}}, right[MAX] = {0}, chi = 0;
  double basis[MAX];

  for (size_t i = 0; i < p->n; i++) {
    evaluate_basis (p, i, basis);
    for (int j = 0; j < p->n_terms; j++) {
      right[j] += p->weights[i] * basis[j] * offset_of (p, i);
      for (int k = 0; k < p->n_terms; k++)
        normal[j][k] += p->weights[i] * basis[j] * basis[k];
    }
  }
  solve (normal, right, p->n_terms, terms);
  for (size_t i = 0; i < p->n; i++) {
    double r = offset_of (p, i);

    evaluate_basis (p, i, basis);
    for (int j = 0; j < p->n_terms; j++)
      r -= terms[j] * basis[j];
    p->residuals[i] = r;
    chi += p->weights[i] * r * r;
  }
  return chi / (double) (p->n - (size_t) p->n_terms);
}

/* ------------------------------------------------------------------------
 * Robustness. */

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
median_residual (const Problem *p)
{
  for (size_t i = 0; i < p->n; i++)
    p->sorted[i] = fabs (p->residuals[i]);
  qsort (p->sorted, p->n, sizeof (*p->sorted), compare);
  return p->n % 2 ? p->sorted[p->n / 2]
                  : 0.5 * (p->sorted[p->n / 2 - 1] + p->sorted[p->n / 2]);
}

/* Returns: whether there is anything to weigh */
static bool
update_weights (const Problem *p)
{
  double k = 1.5 * 1.4826 * median_residual (p);

  if (!(k > 0))
    return false;
  for (size_t i = 0; i < p->n; i++) {
    double r = fabs (p->residuals[i]);

    p->weights[i] = r <= k ? 1 : 2 * k / r - k * k / (r * r);
  }
  return true;
}

/* The continued fraction of the incomplete beta function I_x (a, a), by Lentz.
 */
static double
beta_fraction (double a, double x)
{
  double c = 1, d = 1 - (a + a) * x / (a + 1), f;

  d = 1 / d;
  f = d;
  for (int m = 1; m < 10000; m++) {
    double even = m * (a - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    double odd = -(a + m) * (a + a + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step;

    d = 1 / (1 + even * d);
    c = 1 + even / c;
    f *= d * c;
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    step = d * c;
    f *= step;
    if (fabs (step - 1) < 1e-15)
      break;
  }
  return f;
}

/* Returns: P (F > @ratio), @ratio being 0 to 1 and F distributed with @nu and
 * @nu degrees: the regularised incomplete beta function I_x (a, a) */
static double
exceedance (double ratio, double nu)
{
  double a = nu / 2, x = 1 / (1 + ratio), front;

  if (x >= 1)
    return 1;
  front = exp (
      lgamma (a + a) - lgamma (a) - lgamma (a) + a * log (x) + a * log1p (-x));
  return 1 - front * beta_fraction (a, 1 - x) / a;
}

static void
fit_robustly (const Problem *p, ImkInsarxcorrTrend *trend)
{
  double nu = (double) (p->n - (size_t) p->n_terms);
  double terms[MAX], chi, last;

  for (size_t i = 0; i < p->n; i++)
    p->weights[i] = 1;
  chi = fit_weighted (p, trend->terms);
  for (int i = 1; i <= MAX_ITERATIONS && update_weights (p); i++) {
    last = chi;
    chi = fit_weighted (p, terms);
    if (chi > last) {
      chi = last;
      break;
    }
    memcpy (trend->terms, terms, sizeof (terms));
    trend->n_iterations = i;
    if (exceedance (chi / last, nu) < SIGNIFICANCE)
      break;
  }
  trend->rms = sqrt (chi);
}

/* ------------------------------------------------------------------------
 * The fit. */

static void
find_ranges (Problem *p)
{
  p->x = (Range){p->points[0].x, p->points[0].x};
  p->y = (Range){p->points[0].y, p->points[0].y};
  for (size_t i = 1; i < p->n; i++) {
    p->x.least = fmin (p->x.least, p->points[i].x);
    p->x.most = fmax (p->x.most, p->points[i].x);
    p->y.least = fmin (p->y.least, p->points[i].y);
    p->y.most = fmax (p->y.most, p->points[i].y);
  }
}

static double
over_width (double value, Range range)
{
  return range.most > range.least ? value / (range.most - range.least) : 0;
}

/* Returns: the rms of what the points differ from the plane of @trend, with the
 * weights that they have in the whole field */
static double
plane_rms (const Problem *p, const ImkInsarxcorrTrend *trend)
{
  double sum = 0;

  for (size_t i = 0; i < p->n; i++) {
    double r = offset_of (p, i) - trend->shift -
               trend->stretch * p->points[i].x -
               trend->a_stretch * p->points[i].y;

    sum += p->weights[i] * r * r;
  }
  return sqrt (sum / (double) (p->n - (size_t) p->n_terms));
}

static void
fit_axis (Problem *p, bool is_azimuth, int n_terms, ImkInsarxcorrTrend *trend)
{
  const double *m = trend->terms;

  *trend = (ImkInsarxcorrTrend){.n_iterations = 0};
  p->is_azimuth = is_azimuth;
  p->n_terms = n_terms;
  fit_robustly (p, trend);
  trend->stretch = over_width (2 * m[1], p->x);
  trend->a_stretch = over_width (2 * m[2], p->y);
  trend->shift = m[0] - over_width (m[1] * (p->x.most + p->x.least), p->x) -
                 over_width (m[2] * (p->y.most + p->y.least), p->y);
  if (n_terms > 3)
    trend->rms = plane_rms (p, trend);
}

static ImkStatus
check_points (const ImkInsarxcorrPoint *points, size_t n, int range_terms,
    int azimuth_terms, ImkError *error)
{
  int most = range_terms > azimuth_terms ? range_terms : azimuth_terms;
  int least = range_terms < azimuth_terms ? range_terms : azimuth_terms;

  if (least < 1 || most > MAX)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A fit of %d terms in range and %d in azimuth; each can have 1 to %d.",
        range_terms, azimuth_terms, MAX);
  if (n < IMK_INSARXCORR_FIT_MIN_POINTS || n <= (size_t) most)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "FAILED - not enough points to estimate parameters: %zu are good, "
        "%d are needed. See whether the images overlap and the search is wide "
        "enough. Images of low coherence need larger templates (window-width, "
        "window-height; with mode=compat xsearch, ysearch); a lower fit-snr "
        "takes in offsets of chance as well.",
        n,
        most < IMK_INSARXCORR_FIT_MIN_POINTS ? IMK_INSARXCORR_FIT_MIN_POINTS
                                             : most + 1);
  for (size_t i = 0; i < n; i++)
    if (!isfinite (points[i].x) || !isfinite (points[i].y) ||
        !isfinite (points[i].dx) || !isfinite (points[i].dy))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Point %zu of the fit is at (%g, %g) with the offset (%g, %g); all "
          "must be finite.",
          i, points[i].x, points[i].y, points[i].dx, points[i].dy);
  return IMK_OK;
}

ImkStatus
imk_insarxcorr_fit (const ImkInsarxcorrPoint *points, size_t n_points,
    int range_terms, int azimuth_terms, ImkInsarxcorrFit *fit, ImkError *error)
{
  Problem problem = {.points = points, .n = n_points};

  IMK_TRY (check_points (points, n_points, range_terms, azimuth_terms, error));
  problem.residuals = calloc (n_points, 3 * sizeof (double));
  if (!problem.residuals)
    return IMK_NO_MEMORY (error, "for a fit of %zu points.", n_points);
  problem.weights = problem.residuals + n_points;
  problem.sorted = problem.weights + n_points;
  find_ranges (&problem);
  fit->n_points = n_points;
  fit_axis (&problem, false, range_terms, &fit->range);
  fit_axis (&problem, true, azimuth_terms, &fit->azimuth);
  fit->x_least = problem.x.least;
  fit->x_most = problem.x.most;
  fit->y_least = problem.y.least;
  fit->y_most = problem.y.most;
  free (problem.residuals);
  return IMK_OK;
}

double
imk_insarxcorr_fit_at (
    const ImkInsarxcorrFit *fit, bool is_azimuth, double x, double y)
{
  const ImkInsarxcorrTrend *trend = is_azimuth ? &fit->azimuth : &fit->range;

  return trend->shift + trend->stretch * x + trend->a_stretch * y;
}

/* ------------------------------------------------------------------------
 * Text. */

/* As %g in the C locale, whatever the one in force. */
static void
format_number (char *text, size_t size, double value)
{
  const char *point = localeconv ()->decimal_point;
  char *found;

  snprintf (text, size, "%g", value);
  found = point ? strstr (text, point) : NULL;
  if (found && strcmp (point, ".") != 0) {
    *found = '.';
    memmove (
        found + 1, found + strlen (point), strlen (found + strlen (point)) + 1);
  }
}

/* Returns: what is left of @value when it is printed with six digits */
static double
round_printed (double value)
{
  char text[32];

  snprintf (text, sizeof (text), "%.6g", value);
  return strtod (text, NULL);
}

static size_t
print_axis (const ImkInsarxcorrTrend *trend, char axis, char *text, size_t size)
{
  double shift = round_printed (trend->shift);
  double whole = trunc (shift), part = shift - whole;
  const double values[] = {shift < 0 ? whole - 1 : whole,
      shift < 0 ? part + 1 : part, trend->stretch, trend->a_stretch};
  const char *const names[] = {
      "%cshift = ", "sub_int_%c = ", "stretch_%c = ", "a_stretch_%c = "};
  size_t used = 0;

  for (int i = 0; i < 4; i++) {
    char number[32], name[24];

    snprintf (name, sizeof (name), names[i], axis);
    format_number (number, sizeof (number), values[i]);
    used +=
        (size_t) snprintf (text + used, size - used, "%s %s \n", name, number);
  }
  return used;
}

size_t
imk_insarxcorr_fit_print (const ImkInsarxcorrFit *fit, char *text)
{
  size_t used =
      print_axis (&fit->range, 'r', text, IMK_INSARXCORR_FIT_TEXT_SIZE);

  return used + print_axis (&fit->azimuth, 'a', text + used,
                    IMK_INSARXCORR_FIT_TEXT_SIZE - used);
}
