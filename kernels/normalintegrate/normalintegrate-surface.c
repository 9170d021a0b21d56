/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "normalintegrate/normalintegrate-surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cholesky.h"

enum {
  MAX_COLUMNS = 6,
  TRIALS = 300,  /* of surfaces through as few places as determine one */
  JUDGES = 1024, /* places that say how good one is */
  ROUNDS = 50,
};

typedef ImkNormalintegrateModel Model;
typedef ImkNormalintegratePlace Place;
typedef ImkNormalintegrateSurface Surface;

/* Least squares over an orthonormal basis of the model's columns. */
typedef struct Problem {
  size_t n;
  unsigned n_columns;
  const Place *places;
  double *columns;                     /* [n_columns][n], orthonormal */
  double r[MAX_COLUMNS][MAX_COLUMNS];  /* of column j in basis i <= j */
  double *residuals, *weights, *order; /* [n] */
  double c[MAX_COLUMNS];               /* the solution, in the basis */
} Problem;

/* Returns: how many there are */
static unsigned
columns_at (Model model, double u, double v, double *c)
{
  double r2 = u * u + v * v;

  c[0] = 1;
  c[1] = u;
  c[2] = v;
  if (model == IMK_NORMALINTEGRATE_BOWL) {
    c[3] = r2;
    c[4] = r2 * r2;
    return 5;
  }
  c[3] = u * u;
  c[4] = u * v;
  c[5] = v * v;
  return model == IMK_NORMALINTEGRATE_OFFSET ? 1
         : model == IMK_NORMALINTEGRATE_TILT ? 3
                                             : 6;
}

static void
set_terms (Model model, const double *c, double *terms)
{
  memset (terms, 0, IMK_NORMALINTEGRATE_N_TERMS * sizeof (*terms));
  if (model == IMK_NORMALINTEGRATE_BOWL) {
    memcpy (terms, c, 4 * sizeof (*terms));
    terms[5] = c[3];
    terms[6] = c[4];
  } else {
    double unused[MAX_COLUMNS];

    memcpy (terms, c, columns_at (model, 0, 0, unused) * sizeof (*terms));
  }
}

static void
choose_frame (Model model, const Place *places, size_t n, Surface *s)
{
  s->middle_x = s->middle_y = s->unit = 0;
  if (model != IMK_NORMALINTEGRATE_BOWL)
    for (size_t i = 0; i < n; i++) {
      s->middle_x += places[i].x / (double) n;
      s->middle_y += places[i].y / (double) n;
    }
  for (size_t i = 0; i < n; i++)
    s->unit = fmax (s->unit, fmax (fabs (places[i].x - s->middle_x),
                                 fabs (places[i].y - s->middle_y)));
  if (!(s->unit > 0))
    s->unit = 1;
}

/* --- least squares -------------------------------------------------------- */

static double
product (const double *a, const double *b, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

/* Gram and Schmidt, twice for float64's last digits. Returns: false where a
 * column depends on those before it */
static bool
make_basis (Problem *p, double least)
{
  for (unsigned j = 0; j < p->n_columns; j++) {
    double *column = p->columns + j * p->n;
    double before = sqrt (product (column, column, p->n)), after;

    for (int twice = 0; twice < 2; twice++)
      for (unsigned i = 0; i < j; i++) {
        const double *basis = p->columns + i * p->n;
        double d = product (basis, column, p->n);

        p->r[i][j] += d;
        for (size_t k = 0; k < p->n; k++)
          column[k] -= d * basis[k];
      }
    after = sqrt (product (column, column, p->n));
    if (!(after > least * before))
      return false;
    p->r[j][j] = after;
    for (size_t k = 0; k < p->n; k++)
      column[k] /= after;
  }
  return true;
}

/* The weighted normal equations. Returns: false, and the solution
 * untouched, where the weights leave too little */
static bool
solve (Problem *p)
{
  double a[MAX_COLUMNS][MAX_COLUMNS], b[MAX_COLUMNS];
  unsigned m = p->n_columns;

  for (unsigned i = 0; i < m; i++) {
    const double *row = p->columns + i * p->n;

    b[i] = 0;
    for (size_t k = 0; k < p->n; k++)
      b[i] += p->weights[k] * row[k] * p->places[k].height;
    for (unsigned j = 0; j <= i; j++) {
      const double *column = p->columns + j * p->n;

      a[i][j] = 0;
      for (size_t k = 0; k < p->n; k++)
        a[i][j] += p->weights[k] * row[k] * column[k];
    }
  }
  if (!imk_cholesky_solve (a[0], MAX_COLUMNS, m, 1e-9, b))
    return false;
  memcpy (p->c, b, m * sizeof (*b));
  return true;
}

static void
set_residuals (Problem *p)
{
  for (size_t k = 0; k < p->n; k++)
    p->residuals[k] = p->places[k].height;
  for (unsigned i = 0; i < p->n_columns; i++)
    for (size_t k = 0; k < p->n; k++)
      p->residuals[k] -= p->c[i] * p->columns[i * p->n + k];
}

/* --- robust --------------------------------------------------------------- */

/* Hoare's selection. Returns: the middle one of @v, whose order is lost */
static double
median (double *v, size_t n)
{
  size_t middle = n / 2, from = 0, to = n - 1;

  while (from < to) {
    double pivot = v[from + (to - from) / 2];
    size_t i = from, j = to;

    for (;; i++, j--) {
      while (v[i] < pivot)
        i++;
      while (pivot < v[j])
        j--;
      if (i >= j)
        break;
      double other = v[i];
      v[i] = v[j];
      v[j] = other;
    }
    if (middle <= j)
      to = j;
    else
      from = j + 1;
  }
  return v[middle];
}

static double
deviation (Problem *p)
{
  for (size_t k = 0; k < p->n; k++)
    p->order[k] = fabs (p->residuals[k]);
  return 1.4826 * median (p->order, p->n);
}

/* Gauss, with pivots. @a: with the right side behind; is destroyed
 * Returns: false where the places do not determine a surface */
static bool
solve_trial (unsigned m, double a[][MAX_COLUMNS + 1], double *c)
{
  for (unsigned i = 0; i < m; i++) {
    unsigned best = i;

    for (unsigned j = i + 1; j < m; j++)
      if (fabs (a[j][i]) > fabs (a[best][i]))
        best = j;
    if (!(fabs (a[best][i]) > 0))
      return false;
    for (unsigned k = 0; k <= m; k++) {
      double other = a[i][k];

      a[i][k] = a[best][k];
      a[best][k] = other;
    }
    for (unsigned j = i + 1; j < m; j++)
      for (unsigned k = m + 1; k-- > i;)
        a[j][k] -= a[j][i] / a[i][i] * a[i][k];
  }
  for (unsigned i = m; i-- > 0;) {
    c[i] = a[i][m];
    for (unsigned k = i + 1; k < m; k++)
      c[i] -= a[i][k] * c[k];
    c[i] /= a[i][i];
  }
  return true;
}

/* Returns: the median of what some of the places are off */
static double
judge (Problem *p, const double *c)
{
  size_t step = p->n / JUDGES + 1, n = 0;

  for (size_t k = 0; k < p->n; k += step) {
    double off = p->places[k].height;

    for (unsigned i = 0; i < p->n_columns; i++)
      off -= c[i] * p->columns[i * p->n + k];
    p->order[n++] = fabs (off);
  }
  return median (p->order, n);
}

/* Least median of squares (Rousseeuw 1984): what most of the places lie on,
 * however far off the others are. Plain least squares stay if they are as good.
 */
static void
choose_start (Problem *p)
{
  unsigned m = p->n_columns;
  double least = judge (p, p->c);
  uint64_t seed = 1; /* the same surface every time */

  for (int trial = 0; trial < TRIALS; trial++) {
    double a[MAX_COLUMNS][MAX_COLUMNS + 1], c[MAX_COLUMNS], now;

    for (unsigned j = 0; j < m; j++) {
      size_t k;

      seed = seed * 6364136223846793005u + 1442695040888963407u;
      k = (size_t) ((seed >> 32) * p->n >> 32);
      for (unsigned i = 0; i < m; i++)
        a[j][i] = p->columns[i * p->n + k];
      a[j][m] = p->places[k].height;
    }
    if (!solve_trial (m, a, c))
      continue;
    now = judge (p, c);
    if (now < least) {
      least = now;
      memcpy (p->c, c, m * sizeof (*c));
    }
  }
}

/* @sd: of those that fit */
static void
weigh (Problem *p, double sd)
{
  for (size_t k = 0; k < p->n; k++) {
    double t = fabs (p->residuals[k]) / (4.685 * sd);

    p->weights[k] = t < 1 ? (1 - t * t) * (1 - t * t) : 0;
  }
}

static void
solve_robust (Problem *p, ImkNormalintegrateFit *fit)
{
  double floor = 1e-30, n_near = 0, change = INFINITY;

  for (size_t k = 0; k < p->n; k++) /* what float32 heights cannot tell */
    floor = fmax (floor, 1e-6 * fabs (p->places[k].height));
  choose_start (p);
  set_residuals (p);
  /* changes by pixel are smaller: columns have the norm 1 */
  for (int i = 0; i < ROUNDS && change >= 1e-3 * fit->deviation; i++) {
    double before[MAX_COLUMNS];

    memcpy (before, p->c, sizeof (before));
    fit->deviation = fmax (deviation (p), floor);
    weigh (p, fit->deviation);
    if (!solve (p))
      break;
    set_residuals (p);
    change = 0;
    for (unsigned k = 0; k < p->n_columns; k++)
      change += (p->c[k] - before[k]) * (p->c[k] - before[k]);
    change = sqrt (change);
  }
  fit->deviation = deviation (p);
  for (size_t k = 0; k < p->n; k++)
    n_near += fabs (p->residuals[k]) <= 4.685 * fmax (fit->deviation, floor);
  fit->share = n_near / (double) p->n;
}

/* -------------------------------------------------------------------------- */

/* From the basis back to the columns. */
static void
set_solution (const Problem *p, Model model, Surface *s)
{
  double c[MAX_COLUMNS];

  for (unsigned i = p->n_columns; i-- > 0;) {
    c[i] = p->c[i];
    for (unsigned k = i + 1; k < p->n_columns; k++)
      c[i] -= p->r[i][k] * c[k];
    c[i] /= p->r[i][i];
  }
  set_terms (model, c, s->terms);
}

ImkStatus
imk_normalintegrate_fit (Model model, const Place *places, size_t n,
    double least, Surface *surface, ImkNormalintegrateFit *fit,
    bool *determined, ImkError *error)
{
  Problem p = {.n = n, .places = places};
  Surface s;
  double c[MAX_COLUMNS];

  choose_frame (model, places, n, &s);
  p.n_columns = columns_at (model, 0, 0, c);
  *determined = n >= p.n_columns;
  if (!*determined)
    return IMK_OK;
  p.columns = malloc ((MAX_COLUMNS + 3) * n * sizeof (double));
  if (!p.columns)
    return IMK_NO_MEMORY (error, "to fit a surface to %zu heights.", n);
  p.residuals = p.columns + MAX_COLUMNS * n;
  p.weights = p.residuals + n;
  p.order = p.weights + n;
  for (size_t k = 0; k < n; k++) {
    p.weights[k] = 1;
    columns_at (model, (places[k].x - s.middle_x) / s.unit,
        (places[k].y - s.middle_y) / s.unit, c);
    for (unsigned i = 0; i < p.n_columns; i++)
      p.columns[i * n + k] = c[i];
  }
  *determined = make_basis (&p, least) && solve (&p);
  if (*determined) {
    set_residuals (&p);
    if (fit)
      solve_robust (&p, fit);
    set_solution (&p, model, &s);
    *surface = s;
  }
  free (p.columns);
  return IMK_OK;
}

double
imk_normalintegrate_surface_at (const Surface *s, double x, double y)
{
  double u = (x - s->middle_x) / s->unit, v = (y - s->middle_y) / s->unit;
  double r2 = u * u + v * v;
  const double *t = s->terms;

  return t[0] + t[1] * u + t[2] * v + t[3] * u * u + t[4] * u * v +
         t[5] * v * v + t[6] * r2 * r2;
}

void
imk_normalintegrate_surface_add (Surface *to, const Surface *s)
{
  /* u of @s = x + b u of @to */
  double b = to->unit / s->unit, x = (to->middle_x - s->middle_x) / s->unit;
  double y = (to->middle_y - s->middle_y) / s->unit;
  const double *t = s->terms;

  to->terms[0] +=
      imk_normalintegrate_surface_at (s, to->middle_x, to->middle_y);
  to->terms[1] += b * (t[1] + 2 * t[3] * x + t[4] * y);
  to->terms[2] += b * (t[2] + 2 * t[5] * y + t[4] * x);
  for (int i = 3; i < 6; i++)
    to->terms[i] += b * b * t[i];
  to->terms[6] += b * b * b * b * t[6];
}
