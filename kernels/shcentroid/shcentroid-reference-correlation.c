/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The formulas are at ImkShcentroidCorrelation in imk/shcentroid.h: the
 * template is laid over the window at each shift of the search range, both less
 * their means.
 *
 *   p = ((v - T or v) weight)^power where v >= T       window_of ()
 *   a = p - mean (p), b likewise of the template       centre ()
 *   normalised: sum a b / sqrt (sum a^2 sum b^2)       score_of ()
 *   covariance: sum a b
 *   difference: -sum (a - b)^2 / n
 *   c = best shift + vertex of the scores about it     vertex_of ()
 *   var = sum (dc / dp)^2 (dp / dv)^2 var (v)          variance_of ()
 *
 * Normalised and difference take the means where template and window overlap,
 * covariance those of all of either. Löfdahl 2010 (scores, and the paraboloid
 * "2QI"). The last function is a cell from beginning to end. */
#include "shcentroid/shcentroid-reference.h"

#include <math.h>
#include <stdlib.h>

/* Pixels at (x, y) of the frame; NaN for a bad one, or one outside. */
typedef struct Picture {
  int64_t x, y, width, height;
  double *p, *variance;
} Picture;

static Picture
picture_new (int64_t x, int64_t y, int64_t width, int64_t height)
{
  Picture a = {.x = x, .y = y, .width = width, .height = height};

  a.p = calloc ((size_t) (width * height), sizeof (double));
  a.variance = calloc ((size_t) (width * height), sizeof (double));
  return a;
}

static void
picture_free (Picture *a)
{
  free (a->p);
  free (a->variance);
}

/* The window of a cell after threshold, weight and power. */
static Picture
window_of (const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell)
{
  ImkShcentroidCell box = imk_shcentroid_cell (c, cell);
  Picture a = picture_new ((int64_t) box.x, (int64_t) box.y,
      (int64_t) box.width, (int64_t) box.height);
  double t = imk_shcentroid_reference_threshold (c, in, cell);
  double pedestal = isinf (t) ? 0 : t;

  for (int64_t i = 0; i < a.width * a.height; i++) {
    int64_t x = a.x + i % a.width, y = a.y + i / a.width;
    double v = imk_shcentroid_reference_pixel (c, in, x, y);
    double flat = c->flat ? c->flat[y * c->width + x] : 1;
    double u = (double) x - box.ref_x, r = (double) y - box.ref_y;
    double w =
        c->weighting ? exp (-(u * u + r * r) / (2 * c->sigma * c->sigma)) : 1;
    double slope = w;

    if (isnan (v)) {
      a.p[i] = NAN;
      continue;
    }
    a.p[i] = v >= t ? (v - pedestal) * w : 0;
    if (c->power != 1) {
      a.p[i] = a.p[i] > 0 ? pow (a.p[i], c->power) : 0;
      slope = v > pedestal ? c->power * a.p[i] / (v - pedestal) : 0;
    }
    if (v >= t)
      a.variance[i] = slope * slope *
                      (flat * fmax (v, 0) / c->gain +
                          flat * flat * c->read_noise * c->read_noise);
  }
  return a;
}

/* What @width x @height pixels at (x, y) of the frame are in @a. */
static Picture
cut_out (const Picture *a, int64_t x, int64_t y, int64_t width, int64_t height)
{
  Picture b = picture_new (x, y, width, height);

  for (int64_t i = 0; i < width * height; i++) {
    int64_t u = x + i % width - a->x, v = y + i / width - a->y;

    b.p[i] = u >= 0 && v >= 0 && u < a->width && v < a->height
                 ? a->p[v * a->width + u]
                 : NAN;
  }
  return b;
}

/* Less the mean of the good ones; the bad ones are then 0. Returns: the sum */
static double
centre (Picture *a)
{
  double sum = 0, n = 0;

  for (int64_t i = 0; i < a->width * a->height; i++)
    if (!isnan (a->p[i])) {
      sum += a->p[i];
      n++;
    }
  for (int64_t i = 0; i < a->width * a->height; i++)
    a->p[i] = isnan (a->p[i]) ? 0 : a->p[i] - sum / n;
  return sum;
}

/* Of the template @b with its corner at (left, top) of the window @a; NaN for
 * none. */
static double
score_of (const Picture *a, const Picture *b, int64_t left, int64_t top,
    ImkShcentroidCorrelation how)
{
  double n = 0, sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;

  for (int pass = 0; pass < 2; pass++) {
    bool covariance = how == IMK_SHCENTROID_CORRELATION_COVARIANCE;
    double mean_a = pass && !covariance ? sa / n : 0;
    double mean_b = pass && !covariance ? sb / n : 0;

    for (int64_t y = 0; y < b->height; y++)
      for (int64_t x = 0; x < b->width; x++) {
        int64_t u = left + x, v = top + y;
        double p, q;

        if (u < 0 || v < 0 || u >= a->width || v >= a->height)
          continue;
        p = a->p[v * a->width + u] - mean_a;
        q = b->p[y * b->width + x] - mean_b;
        if (pass == 0) {
          n++;
          sa += p;
          sb += q;
        } else {
          aa += p * p;
          bb += q * q;
          ab += p * q;
        }
      }
  }
  if (n == 0)
    return NAN;
  switch (how) {
  case IMK_SHCENTROID_CORRELATION_NORMALISED:
    return aa > 1e-6 && bb > 1e-6 ? ab / sqrt (aa * bb) : NAN;
  case IMK_SHCENTROID_CORRELATION_COVARIANCE:
    return ab;
  default:
    return -(aa - 2 * ab + bb) / n;
  }
}

/* Where the paraboloid, or the parabolas, have their vertex. */
static void
vertex_of (const double s[3][3], ImkShcentroidPeakFit fit, double *x, double *y)
{
  double gx = (s[1][2] - s[1][0]) / 2, gy = (s[2][1] - s[0][1]) / 2;
  double hxx = s[1][2] - 2 * s[1][1] + s[1][0];
  double hyy = s[2][1] - 2 * s[1][1] + s[0][1];
  double hxy = (s[2][2] - s[2][0] - s[0][2] + s[0][0]) / 4;
  double d = hxx * hyy - hxy * hxy;

  *x = (hxy * gy - hyy * gx) / d;
  *y = (hxy * gx - hxx * gy) / d;
  if (fit == IMK_SHCENTROID_PEAK_PARABOLA || !(d > 0) || !(fabs (*x) <= 1) ||
      !(fabs (*y) <= 1)) {
    *x = -gx / hxx;
    *y = -gy / hyy;
  }
}

/* The nine scores with the corner of the template about (left, top). */
static void
vertex_at (const Picture *a, const Picture *b, int64_t left, int64_t top,
    const ImkShcentroidConfig *c, double *x, double *y)
{
  double s[3][3];

  for (int k = 0; k < 9; k++)
    s[k / 3][k % 3] =
        score_of (a, b, left + k % 3 - 1, top + k / 3 - 1, c->correlation);
  vertex_of ((const double (*)[3]) s, c->peak_fit, x, y);
}

/* The variance of the vertex: each pixel is changed a little in turn. */
static void
variance_of (Picture *a, const Picture *b, int64_t left, int64_t top,
    const ImkShcentroidConfig *c, double *var_x, double *var_y)
{
  *var_x = *var_y = 0;
  for (int64_t i = 0; i < a->width * a->height; i++) {
    double p = a->p[i], step = 1e-4 * (1 + fabs (p)), x[2], y[2];

    for (int k = 0; k < 2; k++) {
      a->p[i] = p + (k ? step : -step);
      vertex_at (a, b, left, top, c, &x[k], &y[k]);
    }
    a->p[i] = p;
    *var_x += pow ((x[1] - x[0]) / (2 * step), 2) * a->variance[i];
    *var_y += pow ((y[1] - y[0]) / (2 * step), 2) * a->variance[i];
  }
}

/* @b: the template less its mean; (x, y): where its corner is in the frame at
 * shift 0, (zero_x, zero_y): what that stands for */
static ImkShcentroidReferenceMatch
match (const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell,
    const Picture *b, int64_t x, int64_t y, double zero_x, double zero_y)
{
  Picture a = window_of (c, in, cell);
  ImkShcentroidReferenceMatch e = {.flux = centre (&a), .second = -INFINITY};
  int64_t left = x - a.x, top = y - a.y, best_x = 0, best_y = 0;
  int64_t rx = a.width / 2, ry = a.height / 2;
  double best = -INFINITY, dx, dy;

  rx = rx < c->search_range ? rx : c->search_range;
  ry = ry < c->search_range ? ry : c->search_range;
  for (int64_t v = -ry; v <= ry; v++)
    for (int64_t u = -rx; u <= rx; u++) {
      double score = score_of (&a, b, left + u, top + v, c->correlation);

      if (score > best) {
        e.second = best;
        best = score;
        best_x = u;
        best_y = v;
      } else if (score > e.second) {
        e.second = score;
      }
    }
  e.second /= fabs (best);
  e.found = !isinf (best) && llabs (best_x) < rx && llabs (best_y) < ry &&
            score_of (&a, b, left + best_x, top + best_y,
                IMK_SHCENTROID_CORRELATION_NORMALISED) >= c->min_correlation;
  if (e.found) {
    vertex_at (&a, b, left + best_x, top + best_y, c, &dx, &dy);
    e.found = isfinite (dx) && isfinite (dy);
    e.x = zero_x + (double) best_x + dx;
    e.y = zero_y + (double) best_y + dy;
    /* of one wide cell, for the time it takes */
    if (a.width * a.height < 1000 || cell == 0)
      variance_of (&a, b, left + best_x, top + best_y, c, &e.var_x, &e.var_y);
    else
      e.var_x = e.var_y = NAN;
  }
  picture_free (&a);
  return e;
}

/* Where a template of @width x @height lies in a cell: in the middle of it as
 * it would be without the edges of the frame. */
static void
corner_of (const ImkShcentroidConfig *c, uint32_t cell, uint32_t width,
    uint32_t height, int64_t *x, int64_t *y)
{
  uint32_t column = cell % c->columns, row = cell / c->columns;
  double left = floor (c->x0 + column * c->pitch_x);
  double right = floor (c->x0 + (column + 1) * c->pitch_x);
  double top = floor (c->y0 + row * c->pitch_y);
  double bottom = floor (c->y0 + (row + 1) * c->pitch_y);

  *x = (int64_t) floor ((left + right - width) / 2);
  *y = (int64_t) floor ((top + bottom - height) / 2);
}

/* The template of a cell; NaN where bad or beyond the frame. */
static Picture
template_of (const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell)
{
  uint32_t w = c->template_width, h = c->template_height;
  Picture b;

  if (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME) {
    Picture a = window_of (c, in, (uint32_t) c->template_cell);
    int64_t x, y;

    w = (uint32_t) floor (c->pitch_x) - 2 * c->template_margin;
    h = (uint32_t) floor (c->pitch_y) - 2 * c->template_margin;
    corner_of (c, (uint32_t) c->template_cell, w, h, &x, &y);
    b = cut_out (&a, x, y, w, h);
    picture_free (&a);
  } else {
    const float *from = c->templates;

    if (c->n_templates > 1)
      from += (size_t) cell * w * h;
    b = picture_new (0, 0, w, h);
    for (uint32_t i = 0; i < w * h; i++)
      b.p[i] = from[i];
  }
  return b;
}

void
imk_shcentroid_reference_template (const ImkShcentroidConfig *c,
    const ImkImage *in, uint32_t cell, float *pixels)
{
  Picture b = template_of (c, in, cell);

  for (int64_t i = 0; i < b.width * b.height; i++)
    pixels[i] = (float) b.p[i];
  picture_free (&b);
}

ImkShcentroidReferenceMatch
imk_shcentroid_reference_match (
    const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell)
{
  ImkShcentroidConfig plain = *c;
  Picture b = template_of (c, in, cell);
  uint32_t w = (uint32_t) b.width, h = (uint32_t) b.height;
  int64_t x, y, own_x, own_y;
  ImkShcentroidCell own;
  double zero_x, zero_y;
  ImkShcentroidReferenceMatch e;

  centre (&b);
  plain.references = NULL;
  corner_of (c, cell, w, h, &x, &y);
  zero_x = (double) x + (w - 1) / 2.0;
  zero_y = (double) y + (h - 1) / 2.0;
  if (c->n_templates > 1 || c->template_cell >= 0) {
    uint32_t of = c->n_templates > 1 ? cell : (uint32_t) c->template_cell;

    own = imk_shcentroid_cell (&plain, of);
    corner_of (c, of, w, h, &own_x, &own_y);
    zero_x = (double) (x - own_x) + own.ref_x;
    zero_y = (double) (y - own_y) + own.ref_y;
  }
  e = match (c, in, cell, &b, x, y, zero_x, zero_y);
  picture_free (&b);
  return e;
}
