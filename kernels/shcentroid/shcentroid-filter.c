/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matched filter of a cell, from a template T of what it should see:
 *
 *   I = a (T + s_x g_x + s_y g_y + s_x^2 h_x / 2 + s_y^2 h_y / 2) + b
 *   g_x = (T (x - 1) - T (x + 1)) / 2      h_x = T (x - 1) + T (x + 1) - 2 T
 *
 * g and h are the first and the second difference of T moved by whole pixels:
 * the model is exact at shifts of -1, 0 and 1 pixel along x and along y. With G
 * = [T g_x g_y h_x h_y 1] and the noise C of the pixels, the rows of
 *
 *   M = (G^T C^-1 G)^-1 G^T C^-1
 *
 * have the least noise of all that respond by 1 to their own column and by 0 to
 * the others. The first three rows are a, a s_x and a s_y, whatever the
 * brightness and the background: the constrained matched filter (Gilles and
 * Ellerbroek 2008), with the gain held at one pixel. */
#include "shcentroid/shcentroid-filter.h"

#include <math.h>
#include <stdlib.h>

#include "shcentroid/shcentroid-cells.h"

enum { T_0, G_X, G_Y, H_X, H_Y, ONE, N_COLUMNS, N_ROWS = 3 };

/* Of the noise of the brightest pixel, so that dark ones count no more than
 * their noise can be known, also without read noise. */
#define LEAST_NOISE 1e-3

/* Of a pivot, beside 1: below, columns are as good as equal. */
#define LEAST_PIVOT 1e-9

/* A template in its cell. */
typedef struct Match {
  const ImkShcentroidConfig *c;
  const ImkShcentroidRect *rect;
  const ImkShcentroidPixel *pixels;
  const float *from; /* the template */
  int32_t left, top; /* of it in the frame */
  double least;      /* variance */
} Match;

static double
template_at (const Match *m, int32_t x, int32_t y)
{
  return m->from[(size_t) y * m->c->template_width + (size_t) x];
}

/* @x, @y: of the cell. Returns: the variance; 0 where the pixel has no part,
 * because it is bad, or its neighbours are outside the template */
static double
model_at (const Match *m, uint32_t x, uint32_t y, double g[N_COLUMNS])
{
  const ImkShcentroidConfig *c = m->c;
  int32_t u = m->rect->x + (int32_t) x - m->left;
  int32_t v = m->rect->y + (int32_t) y - m->top;
  size_t at = (m->rect->y + (size_t) y) * c->width + m->rect->x + x;
  double flat = m->pixels ? m->pixels[at].flat : 1.0;
  double left, right, above, below, variance;

  if (u < 1 || v < 1 || u > (int32_t) c->template_width - 2 ||
      v > (int32_t) c->template_height - 2 || flat == 0.0)
    return 0.0;
  left = template_at (m, u - 1, v);
  right = template_at (m, u + 1, v);
  above = template_at (m, u, v - 1);
  below = template_at (m, u, v + 1);
  g[T_0] = template_at (m, u, v);
  g[G_X] = (left - right) / 2;
  g[G_Y] = (above - below) / 2;
  g[H_X] = left + right - 2 * g[T_0];
  g[H_Y] = above + below - 2 * g[T_0];
  g[ONE] = 1.0;
  variance = flat * fmax (g[T_0], 0.0) / c->gain +
             flat * flat * c->read_noise * c->read_noise;
  return variance + m->least;
}

/* G^T C^-1 G. Returns: how many pixels have a part */
static uint32_t
sum_model (const Match *m, double a[N_COLUMNS][N_COLUMNS])
{
  uint32_t n = 0;

  for (uint32_t y = 0; y < m->rect->height; y++)
    for (uint32_t x = 0; x < m->rect->width; x++) {
      double g[N_COLUMNS], variance = model_at (m, x, y, g);

      if (variance <= 0.0)
        continue;
      n++;
      for (int i = 0; i < N_COLUMNS; i++)
        for (int k = 0; k <= i; k++)
          a[i][k] += g[i] * g[k] / variance;
    }
  return n;
}

/* @a: its lower half; becomes L of L L^T, of columns scaled to 1.
 * Returns: whether they are independent */
static bool
factorise (double a[N_COLUMNS][N_COLUMNS], double scale[N_COLUMNS])
{
  for (int i = 0; i < N_COLUMNS; i++) {
    if (!(a[i][i] > 0.0))
      return false;
    scale[i] = 1.0 / sqrt (a[i][i]);
  }
  for (int i = 0; i < N_COLUMNS; i++)
    for (int k = 0; k <= i; k++) {
      double sum = a[i][k] * scale[i] * scale[k];

      for (int j = 0; j < k; j++)
        sum -= a[i][j] * a[k][j];
      if (i != k)
        a[i][k] = sum / a[k][k];
      else if (sum > LEAST_PIVOT)
        a[i][i] = sqrt (sum);
      else
        return false;
    }
  return true;
}

/* @row: of (G^T C^-1 G)^-1, from the factor */
static void
invert_row (const double l[N_COLUMNS][N_COLUMNS], const double scale[N_COLUMNS],
    int row, double to[N_COLUMNS])
{
  for (int i = 0; i < N_COLUMNS; i++) {
    double sum = i == row ? scale[row] : 0.0;

    for (int k = 0; k < i; k++)
      sum -= l[i][k] * to[k];
    to[i] = sum / l[i][i];
  }
  for (int i = N_COLUMNS - 1; i >= 0; i--) {
    for (int k = i + 1; k < N_COLUMNS; k++)
      to[i] -= l[k][i] * to[k];
    to[i] /= l[i][i];
  }
  for (int i = 0; i < N_COLUMNS; i++)
    to[i] *= scale[i];
}

/* The weights of a cell, @stride apart. Returns: whether it has a filter; else
 * they stay 0, and so will its flux */
static bool
make_filter (Match *m, float *weights, size_t stride)
{
  size_t n = (size_t) m->c->template_width * m->c->template_height;
  double a[N_COLUMNS][N_COLUMNS] = {{0}}, scale[N_COLUMNS];
  double rows[N_ROWS][N_COLUMNS], flux = 0.0, most = 0.0;

  for (size_t i = 0; i < n; i++) {
    flux += m->from[i];
    most = fmax (most, m->from[i]);
  }
  m->least = LEAST_NOISE * most / m->c->gain;
  if (!(flux > 0.0) || sum_model (m, a) < N_COLUMNS || !factorise (a, scale))
    return false;
  for (int k = 0; k < N_ROWS; k++)
    invert_row (a, scale, k, rows[k]);
  for (uint32_t y = 0; y < m->rect->height; y++)
    for (uint32_t x = 0; x < m->rect->width; x++) {
      double g[N_COLUMNS], variance = model_at (m, x, y, g);

      for (int k = 0; k < N_ROWS && variance > 0.0; k++) {
        double sum = 0.0;

        for (int i = 0; i < N_COLUMNS; i++)
          sum += rows[k][i] * g[i];
        weights[(size_t) k * stride + (size_t) y * m->rect->width + x] =
            (float) (flux * sum / variance);
      }
    }
  return true;
}

static size_t
stride_of (const ImkShcentroidRect *rect)
{
  return ((size_t) rect->width * rect->height + IMK_SHCENTROID_FILTER_LANES -
             1) /
         IMK_SHCENTROID_FILTER_LANES * IMK_SHCENTROID_FILTER_LANES;
}

/* Has cell @i the filter of the cell before? All that it is made of is equal:
 * one template in the same place of a cell of the same size, and no flats. */
static bool
is_same (const ImkShcentroidConfig *c, const ImkShcentroidRect *rects,
    const ImkShcentroidPixel *pixels, const ImkShcentroidAnchor *anchors,
    uint32_t i)
{
  const ImkShcentroidRect *r = &rects[i];
  const ImkShcentroidAnchor *a = &anchors[i];

  return i > 0 && !pixels && c->n_templates <= 1 && r->width == r[-1].width &&
         r->height == r[-1].height && r->x - a->x == r[-1].x - a[-1].x &&
         r->y - a->y == r[-1].y - a[-1].y;
}

ImkStatus
imk_shcentroid_filter_init (ImkShcentroidFilter *f,
    const ImkShcentroidConfig *c, const ImkShcentroidRect *rects,
    const ImkShcentroidPixel *pixels, const ImkShcentroidAnchor *anchors,
    ImkError *error)
{
  size_t n_pixels = (size_t) c->template_width * c->template_height;
  uint32_t n = imk_shcentroid_n_cells (c), n_made = 0;
  uint64_t *at = malloc (n * sizeof (*at));
  float *weights;

  *f = (ImkShcentroidFilter){.at = at};
  for (uint32_t i = 0; at && i < n; i++)
    if (is_same (c, rects, pixels, anchors, i)) {
      at[i] = at[i - 1];
    } else {
      at[i] = f->n_weights;
      f->n_weights += N_ROWS * stride_of (&rects[i]);
    }
  f->weights = weights = at ? calloc (f->n_weights, sizeof (*weights)) : NULL;
  if (!weights)
    return IMK_NO_MEMORY (error, "for the filters of %u cells.", n);
  for (uint32_t i = 0; i < n; i++) {
    Match m = {c, &rects[i], pixels,
        c->templates + (c->n_templates > 1 ? i * n_pixels : 0), anchors[i].x,
        anchors[i].y, 0.0};

    if (i > 0 && at[i] == at[i - 1])
      continue;
    n_made += make_filter (&m, weights + at[i], stride_of (&rects[i]));
  }
  if (n_made > 0)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "estimator is matched, but no template shows light with structure in x "
      "and y over at least 3x3 good pixels inside its border. Take another "
      "template, or estimator=correlation.");
}

void
imk_shcentroid_filter_clear (ImkShcentroidFilter *f)
{
  free ((void *) f->weights);
  free ((void *) f->at);
  *f = (ImkShcentroidFilter){.n_weights = 0};
}
