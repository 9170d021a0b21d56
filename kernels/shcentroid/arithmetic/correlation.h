/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Correlation with a template, from the scores of whole shifts to the numbers
 * of a cell. Both backends compile this file, and they agree bit for bit
 * because the order of all sums is fixed:
 *
 * - The pixels of a cell are added up column by column, each from the top, in
 *   float64; then the columns from left to right.
 * - Less their mean they are float32. A product of two pixels is float32; the
 *   products of a row of the template are added up from left to right in
 *   float32, the rows from the top in float64.
 * - Totals, from which the sums over any rectangle follow, are added up along
 *   the rows first, then down the columns, in float64. */
#pragma once

#include "shcentroid/arithmetic/float-centroid.h"

/* A template in the window of a cell: at shift (0, 0) its corner is at (@left,
 * @top) of the window, which it may leave. */
typedef struct ImkShcentroidMatch {
  int32_t width, height; /* of the window */
  int32_t template_width, template_height;
  int32_t left, top;
  int32_t range_x, range_y; /* of the shifts, both ways */
} ImkShcentroidMatch;

/* What lies in both at one shift: of the template. */
typedef struct ImkShcentroidOverlap {
  int32_t x0, y0, x1, y1; /* x1 and y1 excluded */
} ImkShcentroidOverlap;

/* The sums over an overlap, of the window and of the template. */
typedef struct ImkShcentroidProducts {
  double n, per_pixel; /* 1 / n */
  ImkShcentroidTotal a, b;
  double ab;
} ImkShcentroidProducts;

/* The best shift; score 0 and what is around it: [1 + y][1 + x]. */
typedef struct ImkShcentroidPeak {
  bool found, crossed; /* crossed: by a paraboloid, with its corners */
  int32_t x, y;        /* whole pixels */
  double dx, dy;       /* the fraction */
  double to_x[2]; /* the fraction is this times the gradient: the negative */
  double to_y[2]; /* inverse of the second derivatives */
  double score[9];
} ImkShcentroidPeak;

/* Nothing lies in both, or one of them is constant. */
#define IMK_SHCENTROID_NO_SCORE (-1e300)

/* ------------------------------------------------------------------------
 * Geometry. */

IMK_SHCENTROID_INLINE int32_t
imk_shcentroid_less (int32_t a, int32_t b)
{
  return a < b ? a : b;
}

IMK_SHCENTROID_INLINE int32_t
imk_shcentroid_more (int32_t a, int32_t b)
{
  return a > b ? a : b;
}

/* @rect: where the window stands when nothing is tracked */
IMK_SHCENTROID_INLINE ImkShcentroidMatch
imk_shcentroid_match (const ImkShcentroidWindow *window,
    const ImkShcentroidRect *rect, const ImkShcentroidAnchor *anchor,
    const ImkShcentroidTemplates *templates, uint32_t search_range)
{
  ImkShcentroidMatch m;

  m.width = (int32_t) window->width;
  m.height = (int32_t) window->height;
  m.template_width = (int32_t) templates->width;
  m.template_height = (int32_t) templates->height;
  m.left = anchor->x - rect->x;
  m.top = anchor->y - rect->y;
  m.range_x = imk_shcentroid_less ((int32_t) search_range, m.width / 2);
  m.range_y = imk_shcentroid_less ((int32_t) search_range, m.height / 2);
  return m;
}

/* Columns of a row of scores; rows there are 2 range_y + 1. */
IMK_SHCENTROID_INLINE int32_t
imk_shcentroid_n_shifts (int32_t range)
{
  return 2 * range + 1;
}

IMK_SHCENTROID_INLINE ImkShcentroidOverlap
imk_shcentroid_overlap (const ImkShcentroidMatch *m, int32_t dx, int32_t dy)
{
  int32_t left = m->left + dx, top = m->top + dy;
  ImkShcentroidOverlap o;

  o.x0 = imk_shcentroid_more (0, -left);
  o.y0 = imk_shcentroid_more (0, -top);
  o.x1 = imk_shcentroid_less (m->template_width, m->width - left);
  o.y1 = imk_shcentroid_less (m->template_height, m->height - top);
  o.x1 = imk_shcentroid_more (o.x0, o.x1);
  o.y1 = imk_shcentroid_more (o.y0, o.y1);
  return o;
}

/* Of a table with @stride totals a row. */
IMK_SHCENTROID_INLINE ImkShcentroidTotal
imk_shcentroid_total (const ImkShcentroidTotal *totals, int32_t stride,
    int32_t x0, int32_t y0, int32_t x1, int32_t y1)
{
  const ImkShcentroidTotal *above = totals + (int64_t) y0 * stride;
  const ImkShcentroidTotal *below = totals + (int64_t) y1 * stride;
  ImkShcentroidTotal t;

  t.sum = (below[x1].sum - above[x1].sum) - (below[x0].sum - above[x0].sum);
  t.square = (below[x1].square - above[x1].square) -
             (below[x0].square - above[x0].square);
  return t;
}

/* Pixels of value NaN are bad, and become 0, the mean, by this. */
IMK_SHCENTROID_INLINE float
imk_shcentroid_less_mean (float value, float mean)
{
  return value == value ? value - mean : 0.0f;
}

/* What is subtracted from every pixel of a window or template. */
IMK_SHCENTROID_INLINE float
imk_shcentroid_mean (double sum, uint32_t n)
{
  return n > 0 ? (float) (sum / n) : 0.0f;
}

/* A row of @width pixels, added up from the left into a row of totals. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_add_along (
    const float *pixels, int32_t width, ImkShcentroidTotal *totals)
{
  ImkShcentroidTotal t;

  t.sum = t.square = 0.0;
  totals[0] = t;
  for (int32_t x = 0; x < width; x++) {
    double value = pixels[x];

    t.sum += value;
    t.square += value * value;
    totals[x + 1] = t;
  }
}

/* A picture of @width x @height pixels, some of them NaN, becomes a template
 * with its totals. On the GPU the threads of a block do as this does. */
static inline __attribute__ ((unused)) void
imk_shcentroid_make_template (
    float *pixels, uint32_t width, uint32_t height, ImkShcentroidTotal *totals)
{
  size_t n = (size_t) width * height, stride = (size_t) width + 1;
  uint32_t n_good = 0;
  double sum = 0.0;
  float mean;

  for (uint32_t x = 0; x < width; x++) {
    double column = 0.0;

    for (size_t i = x; i < n; i += width)
      if (pixels[i] == pixels[i]) {
        column += pixels[i];
        n_good++;
      }
    sum += column;
  }
  mean = imk_shcentroid_mean (sum, n_good);
  for (size_t i = 0; i < n; i++)
    pixels[i] = imk_shcentroid_less_mean (pixels[i], mean);
  memset (totals, 0, stride * sizeof (*totals));
  for (uint32_t y = 0; y < height; y++) {
    const ImkShcentroidTotal *above = totals + y * stride;
    ImkShcentroidTotal *row = totals + (y + 1) * stride;

    imk_shcentroid_add_along (
        pixels + (size_t) y * width, (int32_t) width, row);
    for (size_t x = 0; x < stride; x++) {
      row[x].sum += above[x].sum;
      row[x].square += above[x].square;
    }
  }
}

/* ------------------------------------------------------------------------
 * Scores. */

/* @window, @pattern: totals of the pixels of both; @ab: sum of their products
 */
IMK_SHCENTROID_INLINE ImkShcentroidProducts
imk_shcentroid_products (const ImkShcentroidMatch *m, int32_t dx, int32_t dy,
    const ImkShcentroidTotal *window, const ImkShcentroidTotal *pattern,
    double ab)
{
  ImkShcentroidOverlap o = imk_shcentroid_overlap (m, dx, dy);
  int32_t left = m->left + dx, top = m->top + dy;
  ImkShcentroidProducts p;

  p.n = (double) (o.x1 - o.x0) * (double) (o.y1 - o.y0);
  p.per_pixel = 1.0 / p.n;
  p.ab = ab;
  p.a.sum = p.a.square = p.b.sum = p.b.square = 0.0;
  if (p.n > 0.0) {
    p.a = imk_shcentroid_total (
        window, m->width + 1, o.x0 + left, o.y0 + top, o.x1 + left, o.y1 + top);
    p.b = imk_shcentroid_total (
        pattern, m->template_width + 1, o.x0, o.y0, o.x1, o.y1);
  }
  return p;
}

/* Sum of squares less their mean; 0 where rounding is all there is. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_energy (ImkShcentroidTotal total, double per_pixel)
{
  double energy = total.square - total.sum * (total.sum * per_pixel);

  return energy > 1e-10 * total.square ? energy : 0.0;
}

/* A, B, C of the header. */
typedef struct ImkShcentroidEnergies {
  double a, b, ab;
} ImkShcentroidEnergies;

IMK_SHCENTROID_INLINE ImkShcentroidEnergies
imk_shcentroid_energies (const ImkShcentroidProducts *p)
{
  ImkShcentroidEnergies e;

  e.a = imk_shcentroid_energy (p->a, p->per_pixel);
  e.b = imk_shcentroid_energy (p->b, p->per_pixel);
  e.ab = p->ab - p->a.sum * (p->b.sum * p->per_pixel);
  return e;
}

/* C / sqrt (A B) */
IMK_SHCENTROID_INLINE double
imk_shcentroid_normalised (const ImkShcentroidProducts *p)
{
  ImkShcentroidEnergies e = imk_shcentroid_energies (p);

  return e.a > 0.0 && e.b > 0.0 ? e.ab / sqrt (e.a * e.b)
                                : IMK_SHCENTROID_NO_SCORE;
}

IMK_SHCENTROID_INLINE double
imk_shcentroid_difference (const ImkShcentroidProducts *p)
{
  ImkShcentroidEnergies e = imk_shcentroid_energies (p);

  return -(e.a + e.b - 2.0 * e.ab) * p->per_pixel;
}

IMK_SHCENTROID_INLINE double
imk_shcentroid_score (
    const ImkShcentroidProducts *p, ImkShcentroidCorrelation how)
{
  if (!(p->n > 0.0))
    return IMK_SHCENTROID_NO_SCORE;
  return how == IMK_SHCENTROID_CORRELATION_NORMALISED
             ? imk_shcentroid_normalised (p)
         : how == IMK_SHCENTROID_CORRELATION_COVARIANCE
             ? p->ab
             : imk_shcentroid_difference (p);
}

/* What is in the order of the scores, without a root. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_rank_of (
    const ImkShcentroidProducts *p, ImkShcentroidCorrelation how)
{
  ImkShcentroidEnergies e;

  if (!(p->n > 0.0))
    return IMK_SHCENTROID_NO_SCORE;
  if (how != IMK_SHCENTROID_CORRELATION_NORMALISED)
    return imk_shcentroid_score (p, how);
  e = imk_shcentroid_energies (p);
  return e.a > 0.0 && e.b > 0.0 ? e.ab * fabs (e.ab) / (e.a * e.b)
                                : IMK_SHCENTROID_NO_SCORE;
}

/* ------------------------------------------------------------------------
 * The peak. */

/* From peak->score, that of the best shift in the middle. The gradient and the
 * second derivatives are those of the header. */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_fit (ImkShcentroidPeak *peak, ImkShcentroidPeakFit fit)
{
  const double *s = peak->score;
  double a2 = 0.5 * (s[5] - s[3]), a3 = 0.5 * (s[5] - 2.0 * s[4] + s[3]);
  double a4 = 0.5 * (s[7] - s[1]), a5 = 0.5 * (s[7] - 2.0 * s[4] + s[1]);
  double a6 = 0.25 * ((s[8] - s[6]) - (s[2] - s[0]));
  double determinant = 4.0 * a3 * a5 - a6 * a6;

  if (!(a3 < 0.0 && a5 < 0.0))
    return false;
  peak->crossed = true;
  peak->dx = (a4 * a6 - 2.0 * a2 * a5) / determinant;
  peak->dy = (a2 * a6 - 2.0 * a4 * a3) / determinant;
  /* a saddle, or a vertex so far away that the next scores say nothing of it:
   * one axis at a time it is within half a pixel */
  if (fit == IMK_SHCENTROID_PEAK_PARABOLA || !(determinant > 0.0) ||
      !(fabs (peak->dx) <= 1.0 && fabs (peak->dy) <= 1.0)) {
    peak->crossed = false;
    a6 = 0.0;
    determinant = 4.0 * a3 * a5;
    peak->dx = -a2 / (2.0 * a3);
    peak->dy = -a4 / (2.0 * a5);
  }
  peak->to_x[0] = -2.0 * a5 / determinant;
  peak->to_x[1] = peak->to_y[0] = a6 / determinant;
  peak->to_y[1] = -2.0 * a3 / determinant;
  return peak->dx == peak->dx && peak->dy == peak->dy;
}

/* @best: the index of the best shift, below 0 for none. Found so far: whether
 * there are shifts all around it */
IMK_SHCENTROID_INLINE ImkShcentroidPeak
imk_shcentroid_peak_at (const ImkShcentroidMatch *m, int32_t best)
{
  int32_t n = imk_shcentroid_n_shifts (m->range_x);
  ImkShcentroidPeak peak;

  peak.x = best < 0 ? -m->range_x : best % n - m->range_x;
  peak.y = best < 0 ? -m->range_y : best / n - m->range_y;
  peak.dx = peak.dy = 0.0;
  peak.crossed = false;
  peak.found = peak.x > -m->range_x && peak.x < m->range_x &&
               peak.y > -m->range_y && peak.y < m->range_y;
  return peak;
}

/* Number @k of the nine shifts about a peak. @ab: sums of products of all
 * shifts, row by row; @window, @pattern: totals; @products: (out)
 * Returns: the score */
IMK_SHCENTROID_INLINE double
imk_shcentroid_score_near (const ImkShcentroidMatch *m,
    const ImkShcentroidPeak *peak, int32_t k, const double *ab,
    const ImkShcentroidTotal *window, const ImkShcentroidTotal *pattern,
    ImkShcentroidCorrelation how, ImkShcentroidProducts *products)
{
  int32_t n = imk_shcentroid_n_shifts (m->range_x);
  int32_t x = peak->x + k % 3 - 1, y = peak->y + k / 3 - 1;

  *products = imk_shcentroid_products (
      m, x, y, window, pattern, ab[(y + m->range_y) * n + x + m->range_x]);
  return imk_shcentroid_score (products, how);
}

/* The products of a row are added up in float32, whose end is 3.4e38. By the
 * inequality of Cauchy and Schwarz no sum of products comes near it then, which
 * it else may: power=4 of 16 bits is enough. */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_fits_products (const ImkShcentroidProducts *p)
{
  return p->a.square * p->b.square < 1e76;
}

/* @peak: its scores are there; @middle: the products of the best shift */
IMK_SHCENTROID_INLINE void
imk_shcentroid_finish_peak (ImkShcentroidPeak *peak,
    const ImkShcentroidProducts *middle, const ImkShcentroidParams *params)
{
  /* without a corner the parabolas are left */
  for (int32_t k = 1; peak->found && k < 9; k += 2)
    peak->found = peak->score[k] > IMK_SHCENTROID_NO_SCORE;
  peak->found = peak->found && imk_shcentroid_fits_products (middle) &&
                imk_shcentroid_normalised (middle) >= params->min_correlation &&
                imk_shcentroid_fit (peak, params->peak_fit);
}

/* ------------------------------------------------------------------------
 * The variance: what the noise of a pixel does to the nine scores, and they to
 * the fraction, to first order. */

/* One score as a linear function of the pixels of the window: a pixel changes
 * it by @of_b (b - mean_b) + @of_a (a - mean_a), a its own value and b what
 * lies on it; by nothing outside the overlap. */
typedef struct ImkShcentroidResponse {
  ImkShcentroidOverlap overlap;
  int32_t left, top; /* of the template */
  double of_a, of_b, mean_a, mean_b;
  double in_x, in_y; /* what the score does to the gradient at the vertex */
} ImkShcentroidResponse;

/* @k: of the nine scores about @peak */
IMK_SHCENTROID_INLINE ImkShcentroidResponse
imk_shcentroid_response (const ImkShcentroidMatch *m,
    const ImkShcentroidPeak *peak, int32_t k, const ImkShcentroidProducts *p,
    ImkShcentroidCorrelation how)
{
  int32_t x = k % 3 - 1, y = k / 3 - 1;
  bool corner = x != 0 && y != 0;
  ImkShcentroidEnergies e = imk_shcentroid_energies (p);
  ImkShcentroidResponse s = {{0, 0, 0, 0}, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};

  if (corner && !peak->crossed)
    return s;
  s.overlap = imk_shcentroid_overlap (m, peak->x + x, peak->y + y);
  s.left = m->left + peak->x + x;
  s.top = m->top + peak->y + y;
  s.mean_a = p->a.sum * p->per_pixel;
  s.mean_b = p->b.sum * p->per_pixel;
  s.of_a = 0.0;
  s.of_b = 1.0;
  if (how == IMK_SHCENTROID_CORRELATION_NORMALISED) {
    s.of_b = 1.0 / sqrt (e.a * e.b);
    s.of_a = -imk_shcentroid_normalised (p) / e.a;
  } else if (how == IMK_SHCENTROID_CORRELATION_DIFFERENCE) {
    s.of_b = 2.0 * p->per_pixel;
    s.of_a = -2.0 * p->per_pixel;
  } else {
    s.mean_a = s.mean_b = 0.0;
  }
  /* gradient + second derivatives (dx, dy) is 0 at the vertex */
  if (corner) {
    s.in_x = 0.25 * x * y * peak->dy;
    s.in_y = 0.25 * x * y * peak->dx;
  } else {
    s.in_x = x != 0 ? 0.5 * x + peak->dx : y == 0 ? -2.0 * peak->dx : 0.0;
    s.in_y = y != 0 ? 0.5 * y + peak->dy : x == 0 ? -2.0 * peak->dy : 0.0;
  }
  return s;
}

/* Sums over the pixels of the window, each times its variance, of the squares
 * of what it does to the gradient. */
typedef struct ImkShcentroidSpreads {
  double xx, xy, yy;
} ImkShcentroidSpreads;

/* What the pixel @a in row @y and column @x of the window does to the gradient
 * at the vertex, added to @in_x and @in_y. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_respond (const ImkShcentroidResponse *s, double a, double b,
    double *in_x, double *in_y)
{
  double slope = s->of_b * (b - s->mean_b) + s->of_a * (a - s->mean_a);

  *in_x += s->in_x * slope;
  *in_y += s->in_y * slope;
}

/* One axis of the fraction: @to of the gradient. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_shift_variance (
    const double to[2], const ImkShcentroidSpreads *s)
{
  double variance = to[0] * to[0] * s->xx + 2.0 * to[0] * to[1] * s->xy +
                    to[1] * to[1] * s->yy;

  variance = variance > 0.0 ? variance : 0.0;
  return variance < 3e38 ? variance : 3e38;
}

/* ------------------------------------------------------------------------
 * The numbers of a cell. */

/* The sums over a window before its mean is known. */
typedef struct ImkShcentroidCellSums {
  double p, raw;
  float max;
  float max_sample; /* infinite where a sample is not finite */
  uint32_t n;
} ImkShcentroidCellSums;

IMK_SHCENTROID_INLINE ImkShcentroidCellSums
imk_shcentroid_no_sums (void)
{
  ImkShcentroidCellSums sums;

  sums.p = sums.raw = 0.0;
  sums.max = -3.4e38f;
  sums.max_sample = 0.0f;
  sums.n = 0;
  return sums;
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_add_sums (
    ImkShcentroidCellSums *sum, const ImkShcentroidCellSums *more)
{
  sum->p += more->p;
  sum->raw += more->raw;
  sum->max = more->max > sum->max ? more->max : sum->max;
  sum->max_sample =
      more->max_sample > sum->max_sample ? more->max_sample : sum->max_sample;
  sum->n += more->n;
}

/* The whole row of a cell, and what it leaves for the next frame and, in
 * @slope, for the other cells. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_finish_match (ImkShcentroidRow *row,
    const ImkShcentroidCellSums *sums, const ImkShcentroidPeak *peak,
    const ImkShcentroidSpreads *spreads, const ImkShcentroidRect *cell,
    const ImkShcentroidAnchor *anchor, const ImkShcentroidWindow *window,
    const ImkShcentroidParams *params, bool fresh, double *held,
    ImkShcentroidTrack *track, ImkShcentroidSlope *slope)
{
  double min_flux = imk_shcentroid_min_flux (params, cell->min_flux);
  /* where float32 ends and powered pixels with it; such a cell has no match */
  double most = 3.4028234663852886e38;
  double flux = sums->p > 0.0 ? sums->p < most ? sums->p : most : 0.0;
  bool nan = params->invalid_policy == IMK_SHCENTROID_INVALID_NAN;
  bool broken = !imk_shcentroid_is_finite (sums->max_sample);
  bool valid = flux > 0.0 && flux >= min_flux && peak->found && !broken;
  double x = anchor->zero_x + ((double) window->x - cell->x) + peak->x;
  double y = anchor->zero_y + ((double) window->y - cell->y) + peak->y;
  uint32_t flags =
      imk_shcentroid_flags (sums->max_sample, flux, min_flux, cell, params);

  x += peak->dx;
  y += peak->dy;
  flags |= window->at_edge ? (uint32_t) IMK_SHCENTROID_EDGE : 0;
  flags |= peak->found ? 0 : (uint32_t) IMK_SHCENTROID_NO_MATCH;
  if (imk_shcentroid_joins (params))
    imk_shcentroid_begin_slope (slope, params, held, track);
  if (imk_shcentroid_tracks (params))
    imk_shcentroid_follow (track, cell, params, x, y, valid);
  imk_shcentroid_place (row, x, y, valid, cell, params, fresh, held);
  row->field[IMK_SHCENTROID_FLUX] = flux;
  row->field[IMK_SHCENTROID_FLUX_RAW] = sums->raw;
  row->field[IMK_SHCENTROID_MAX] = sums->max > -3e38f ? sums->max + 0.0 : 0.0;
  row->field[IMK_SHCENTROID_VAR_X] =
      nan && !valid ? imk_shcentroid_nan () : 0.0;
  row->field[IMK_SHCENTROID_VAR_Y] = row->field[IMK_SHCENTROID_VAR_X];
  if (valid) {
    row->field[IMK_SHCENTROID_VAR_X] =
        imk_shcentroid_shift_variance (peak->to_x, spreads);
    row->field[IMK_SHCENTROID_VAR_Y] =
        imk_shcentroid_shift_variance (peak->to_y, spreads);
  }
  row->field[IMK_SHCENTROID_FLAGS] = flags;
  if (broken)
    imk_shcentroid_describe_broken (row, cell, window->at_edge);
  if (imk_shcentroid_joins (params))
    imk_shcentroid_end_slope (slope, row, params->invalid_policy);
}
