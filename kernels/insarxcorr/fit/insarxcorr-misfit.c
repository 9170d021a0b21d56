/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarxcorr-misfit.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { MAX_CELLS = 16, POINTS_PER_CELL = 6, MIN_POINTS = 4 };

/* Pixels. A local error of a quarter shows in an interferogram, and so does a
 * wide one of an eighth: coherence falls by 10 and 2.5 %. */
#define LOCAL 0.25
#define WIDE 0.12

/* Cells of more scatter have offsets of chance, as on a lake. */
#define MAX_SCATTER 0.5

/* Of a normal distribution: its deviation from the median of its absolute
 * values, and that of a median of n from the deviation / sqrt (n). */
#define FROM_MEDIAN 1.4826
#define OF_MEDIAN 1.2533

typedef struct Residual {
  uint32_t cell;
  double value;
} Residual;

static int
compare (const void *a, const void *b)
{
  const Residual *x = a, *y = b;

  if (x->cell != y->cell)
    return x->cell < y->cell ? -1 : 1;
  return (x->value > y->value) - (x->value < y->value);
}

static uint32_t
place (double value, double least, double most, uint32_t n)
{
  double at = most > least ? (value - least) / (most - least) * n : 0;

  return at < n ? (uint32_t) at : n - 1;
}

static double
middle (const Residual *sorted, size_t n)
{
  return n % 2 ? sorted[n / 2].value
               : 0.5 * (sorted[n / 2 - 1].value + sorted[n / 2].value);
}

/* Returns: the deviation of @n residuals from @from, by its median. @scratch:
 * [n] */
static double
scatter (const Residual *residuals, size_t n, double from, Residual *scratch)
{
  for (size_t i = 0; i < n; i++)
    scratch[i] = (Residual){0, fabs (residuals[i].value - from)};
  qsort (scratch, n, sizeof (*scratch), compare);
  return FROM_MEDIAN * middle (scratch, n);
}

static void
fill_residuals (const ImkInsarxcorrPoint *points, size_t n,
    const ImkInsarxcorrFit *fit, bool is_azimuth, uint32_t n_cells,
    Residual *residuals)
{
  for (size_t i = 0; i < n; i++) {
    const ImkInsarxcorrPoint *p = &points[i];
    uint32_t x = place (p->x, fit->x_least, fit->x_most, n_cells);
    uint32_t y = place (p->y, fit->y_least, fit->y_most, n_cells);

    residuals[i].cell = y * n_cells + x;
    residuals[i].value = (is_azimuth ? p->dy : p->dx) -
                         imk_insarxcorr_fit_at (fit, is_azimuth, p->x, p->y);
  }
  qsort (residuals, n, sizeof (*residuals), compare);
}

static double
centre (uint32_t cell, double least, double most, uint32_t n_cells)
{
  return least + (cell + 0.5) * (most - least) / n_cells;
}

/* @residuals: [n], sorted by cells; @scratch: [n] */
static ImkInsarxcorrMisfit
measure (const Residual *residuals, size_t n, const ImkInsarxcorrFit *fit,
    uint32_t n_cells, Residual *scratch)
{
  ImkInsarxcorrMisfit misfit = {0};
  double squares = 0, noise = 0, n_used = 0;
  double all = scatter (residuals, n, 0, scratch);

  for (size_t first = 0, end; first < n; first = end) {
    uint32_t cell = residuals[first].cell;
    double median, deviation;

    for (end = first + 1; end < n && residuals[end].cell == cell;)
      end++;
    if (end - first < MIN_POINTS)
      continue;
    median = middle (residuals + first, end - first);
    deviation = scatter (residuals + first, end - first, median, scratch);
    if (deviation > MAX_SCATTER)
      continue;
    if (fabs (median) > fabs (misfit.worst)) {
      misfit.worst = median;
      misfit.worst_x =
          centre (cell % n_cells, fit->x_least, fit->x_most, n_cells);
      misfit.worst_y =
          centre (cell / n_cells, fit->y_least, fit->y_most, n_cells);
    }
    squares += median * median * (double) (end - first);
    noise += OF_MEDIAN * deviation * OF_MEDIAN * deviation;
    n_used += (double) (end - first);
  }
  misfit.rms = n_used > 0 ? sqrt (squares / n_used) : 0;
  misfit.noise = n_used > 0 ? sqrt (noise / n_used) : 0;
  misfit.is_local = fabs (misfit.worst) > fmax (LOCAL, 3 * all);
  misfit.is_wide = misfit.rms > fmax (WIDE, 2 * misfit.noise);
  return misfit;
}

ImkStatus
imk_insarxcorr_misfit (const ImkInsarxcorrPoint *points, size_t n_points,
    const ImkInsarxcorrFit *fit, ImkInsarxcorrMisfit *range,
    ImkInsarxcorrMisfit *azimuth, ImkError *error)
{
  Residual *residuals = calloc (n_points + 1, 2 * sizeof (*residuals));
  uint32_t n_cells =
      (uint32_t) fmin (sqrt ((double) n_points / POINTS_PER_CELL), MAX_CELLS);

  if (!residuals)
    return IMK_NO_MEMORY (error, "for the residuals of %zu points.", n_points);
  n_cells = n_cells ? n_cells : 1;
  for (int axis = 0; axis < 2; axis++) {
    fill_residuals (points, n_points, fit, axis, n_cells, residuals);
    *(axis ? azimuth : range) =
        measure (residuals, n_points, fit, n_cells, residuals + n_points);
  }
  free (residuals);
  return IMK_OK;
}
