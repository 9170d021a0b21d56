/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The peak of a surface, whole and then fine, on the CPU. */
#include "insarxcorr/cpu/patch.h"

enum { WINDOW = IMK_INSARXCORR_WINDOW };

/* Returns: the rank of the largest of @in */
static uint32_t
largest_of (const float *in, uint32_t n)
{
  uint32_t largest = 0;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t rank = imk_insarxcorr_rank (in[i]);

    largest = rank > largest ? rank : largest;
  }
  return largest;
}

/* Finds the first maximum, row by row. Returns: its value */
static float
find_largest (const ImkInsarxcorrWork *w, uint32_t *v, uint32_t *u)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;
  const float *row = w->space->surface;
  uint32_t best = 0;

  *u = *v = 0;
  for (uint32_t i = 0; i < f->n_lags_y; i++) {
    uint32_t largest = largest_of (row + (size_t) i * f->n_lags_x, f->n_lags_x);

    if (largest > best) {
      best = largest;
      *u = i;
    }
  }
  row += (size_t) *u * f->n_lags_x;
  while (best && imk_insarxcorr_rank (row[*v]) != best)
    ++*v;
  return row[*v];
}

/* Returns: the sum of squares of all lags, from eight partial sums */
static double
sum_squares (const float *in, size_t n)
{
  double sums[8] = {0}, sum = 0;

  for (size_t i = 0; i < n; i++)
    sums[i % 8] += (double) in[i] * in[i];
  for (int j = 0; j < 8; j++)
    sum += sums[j];
  return sum;
}

static void
take_window (const ImkInsarxcorrWork *w, uint32_t v, uint32_t u,
    ImkInsarxcorrWindow samples)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;

  for (uint32_t i = 0; i < WINDOW; i++)
    for (uint32_t j = 0; j < WINDOW; j++) {
      /* Negative values wrap to large ones. */
      uint32_t y = u + i - WINDOW / 2, x = v + j - WINDOW / 2;
      bool inside = y < f->n_lags_y && x < f->n_lags_x;

      samples[i][j] =
          inside ? w->space->surface[(size_t) y * f->n_lags_x + x] : 0;
    }
}

/* The first of the largest of the finer window, row by row, as float32: that
 * two of them are equal is part of GMTSAR's result. */
static void
find_fine (const ImkInsarxcorrZoom *zoom, double alternating,
    const double *rows, uint32_t *h, uint32_t *g)
{
  uint32_t n_fine = WINDOW * zoom->interp;
  float best = -INFINITY;

  for (uint32_t i = 0; i < n_fine; i++)
    for (uint32_t j = 0; j < n_fine; j++) {
      float value =
          (float) imk_insarxcorr_zoom_at (zoom, alternating, rows, j, i);

      if (value > best) {
        best = value;
        *g = i;
        *h = j;
      }
    }
}

static void
refine (ImkInsarxcorrWork *w, uint32_t v, uint32_t u,
    const ImkInsarxcorrWindow window)
{
  const ImkInsarxcorrZoom *zoom = &w->cpu->zoom;
  uint32_t n_fine = WINDOW * zoom->interp, h = 0, g = 0;
  double *rows = w->space->zoomed, fine[3][3];
  double alternating = imk_insarxcorr_zoom_alternating (window);

  for (uint32_t i = 0; i < WINDOW; i++)
    for (uint32_t n = 0; n < n_fine; n++)
      rows[i * n_fine + n] = imk_insarxcorr_zoom_row (zoom, window, i, n);
  find_fine (zoom, alternating, rows, &h, &g);
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t j = 0; j < 3; j++)
      fine[i][j] = imk_insarxcorr_zoom_at (zoom, alternating, rows,
          imk_insarxcorr_beside (h, j, n_fine),
          imk_insarxcorr_beside (g, i, n_fine));
  imk_insarxcorr_refine (w->cpu->plan, v, u, h, g, fine, &w->peak);
}

void
imk_insarxcorr_find_peak (ImkInsarxcorrWork *w)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  const ImkInsarxcorrConfig *c = &plan->config;
  ImkInsarxcorrWindow samples, window;
  uint32_t u, v;
  float largest = find_largest (w, &v, &u);

  if (!(largest > 0) || !isfinite (largest)) {
    imk_insarxcorr_no_peak (c, &w->peak);
    return;
  }
  if (c->mode == IMK_INSARXCORR_PRECISE)
    w->peak.correlation = 100 * (double) largest;
  else if (c->method == IMK_INSARXCORR_FREQ)
    w->peak.correlation = imk_insarxcorr_compat_correlation (w, v, u);
  else
    w->peak.correlation = largest;
  take_window (w, v, u, samples);
  imk_insarxcorr_qualify (plan, v, u,
      sum_squares (w->space->surface,
          (size_t) plan->fine.n_lags_x * plan->fine.n_lags_y),
      samples, &w->peak);
  for (int i = 0; i < WINDOW; i++)
    for (int j = 0; j < WINDOW; j++)
      window[i][j] = imk_insarxcorr_weigh (c, samples[i][j], largest);
  refine (w, v, u, window);
}
