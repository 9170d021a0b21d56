/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fringes and their filter by the definition of a transform. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "core/sample.h"
#include "insarform/insarform-fringes.h"
#include "insarform/insarform-reference.h"

static double complex
get_complex (const ImkImage *image, uint32_t x, uint32_t y, uint32_t i)
{
  return imk_sample_get (image, x, y, i) +
         I * imk_sample_get (image, x, y, i + 1);
}

/* Rows, then columns. */
void
imk_insarform_reference_transform (void *data, uint32_t n, int sign)
{
  double complex *z = data;
  double complex line[IMK_INSARFORM_MAX_TRANSFORM];

  for (int axis = 0; axis < 2; axis++)
    for (uint32_t row = 0; row < n; row++) {
      double complex *first = z + (axis ? row : row * n);
      size_t step = axis ? n : 1;

      for (uint32_t k = 0; k < n; k++)
        line[k] = first[k * step];
      for (uint32_t k = 0; k < n; k++) {
        double complex sum = 0;

        for (uint32_t i = 0; i < n; i++)
          sum += line[i] * cexp (sign * 2 * M_PI * I * (k * i % n) / n);
        first[k * step] = sum;
      }
    }
}

/* --- fringes -------------------------------------------------------------- */

static double complex
product_of (const ImkImage *reference, const ImkImage *secondary, uint32_t x,
    uint32_t y)
{
  double complex p = get_complex (reference, x, y, 0) *
                     conj (get_complex (secondary, x, y, 0));

  return cabs (p) > 0 && cabs (p) < INFINITY ? p / cabs (p) : 0;
}

/* Returns: whether the node counts. @rate: (out): rad a sample */
static bool
measure (uint32_t window, const double complex *products, double *rate)
{
  double complex *z = malloc (window * window * sizeof (*z));
  double complex q[2][2] = {{0}};
  uint32_t n = 0, peak = 0, u, v;
  double power = -1;

  for (uint32_t i = 0; i < window * window; i++) {
    z[i] = products[i];
    n += z[i] != 0;
  }
  imk_insarform_reference_transform (z, window, -1);
  for (uint32_t i = 0; i < window * window; i++)
    if (pow (cabs (z[i]), 2) > power) {
      power = pow (cabs (z[i]), 2);
      peak = i;
    }
  u = peak % window;
  v = peak / window;
  free (z);
  for (uint32_t y = 0; y < window; y++)
    for (uint32_t x = 0; x < window; x++)
      q[2 * y >= window][2 * x >= window] +=
          products[y * window + x] *
          cexp (-2 * M_PI * I * ((u * x + v * y) % window) / window);
  rate[0] =
      2 * M_PI * (u <= window / 2 ? u : (double) u - window) / window +
      carg (conj (q[0][0]) * q[0][1] + conj (q[1][0]) * q[1][1]) / (window / 2);
  rate[1] =
      2 * M_PI * (v <= window / 2 ? v : (double) v - window) / window +
      carg (conj (q[0][0]) * q[1][0] + conj (q[0][1]) * q[1][1]) / (window / 2);
  return n > 0 && power > IMK_INSARFORM_SIGNIFICANT * (double) n;
}

static ImkInsarformNodes
measure_row (const ImkInsarformConfig *c, const ImkImage *reference,
    const ImkImage *secondary, uint32_t row)
{
  uint32_t window = c->fringe_window;
  ImkInsarformNodes nodes = {
      .n = imk_insarform_n_nodes (c->width, window),
      .step = window / 2,
  };
  double complex *products = malloc (window * window * sizeof (*products));
  uint32_t top = imk_insarform_node_start (row, c->height, window);

  nodes.rate[0] = calloc (3 * nodes.n, sizeof (double));
  nodes.rate[1] = nodes.rate[0] + nodes.n;
  nodes.phase = nodes.rate[1] + nodes.n;
  nodes.counts = calloc (nodes.n, sizeof (bool));
  for (uint32_t i = 0; i < nodes.n; i++) {
    uint32_t left = imk_insarform_node_start (i, c->width, window);
    double rate[2];

    for (uint32_t k = 0; k < window * window; k++)
      products[k] = product_of (
          reference, secondary, left + k % window, top + k / window);
    nodes.counts[i] = measure (window, products, rate);
    nodes.rate[0][i] = rate[0];
    nodes.rate[1][i] = rate[1];
  }
  free (products);
  return nodes;
}

void
imk_insarform_reference_fringes (const ImkInsarformConfig *c,
    const ImkImage *reference, const ImkImage *secondary, ImkImage *phase)
{
  uint32_t step = c->fringe_window / 2;
  uint32_t n_rows = imk_insarform_n_nodes (c->height, c->fringe_window);
  ImkInsarformNodes *rows = calloc (n_rows, sizeof (*rows));
  double *scratch = malloc (2 * (size_t) c->width * sizeof (*scratch));

  for (uint32_t i = 0; i < n_rows; i++) {
    rows[i] = measure_row (c, reference, secondary, i);
    imk_insarform_nodes_integrate (&rows[i], i ? &rows[i - 1] : NULL, scratch);
  }
  for (uint32_t y = 0; y < c->height; y++) {
    double at = ((double) y - step) / step;
    uint32_t i = at < 1 ? 0 : (uint32_t) at;

    if (n_rows > 1 && i > n_rows - 2)
      i = n_rows - 2;
    imk_insarform_nodes_interpolate (&rows[i], &rows[n_rows > 1 ? i + 1 : 0],
        n_rows > 1 || at < 0 ? at - i : at + 1, scratch, c->width,
        imk_sample_at (phase, 0, y, 0));
  }
  for (uint32_t i = 0; i < n_rows; i++) {
    free (rows[i].rate[0]);
    free (rows[i].counts);
  }
  free (rows);
  free (scratch);
}

/* --- the filter ----------------------------------------------------------- */

static void
weigh_spectrum (double complex *z, uint32_t n, double alpha)
{
  double *s = calloc (n * n, sizeof (*s)), largest = 0;

  for (uint32_t i = 0; i < n * n; i++) {
    for (int k = 0; k < 9; k++)
      s[i] += cabs (z[(i / n + n + k / 3 - 1) % n * n +
                      (i % n + n + k % 3 - 1) % n]) /
              9;
    largest = fmax (largest, s[i]);
  }
  for (uint32_t i = 0; i < n * n && largest > 0; i++)
    z[i] *= pow (s[i] / largest, alpha);
  free (s);
}

/* Adds the patch at (@left, @top) to @sums. */
static void
add_patch (const ImkInsarformConfig *c, const ImkImage *cells, int64_t left,
    int64_t top, double complex *sums)
{
  uint32_t n = c->filter_window;
  double complex *z = calloc (n * n, sizeof (*z));

  for (uint32_t i = 0; i < n * n; i++) {
    int64_t x = left + i % n, y = top + i / n;
    double complex cell;

    if (x < 0 || y < 0 || x >= cells->width || y >= cells->height)
      continue;
    cell = get_complex (cells, (uint32_t) x, (uint32_t) y, IMK_INSARFORM_RE);
    if (cell != 0 && isfinite (cabs (cell)))
      z[i] = cell / cabs (cell);
  }
  imk_insarform_reference_transform (z, n, -1);
  weigh_spectrum (z, n, c->filter_alpha);
  imk_insarform_reference_transform (z, n, 1);
  for (uint32_t i = 0; i < n * n; i++) {
    int64_t x = left + i % n, y = top + i / n;
    double w = pow (sin (M_PI * (i % n + 0.5) / n), 2) *
               pow (sin (M_PI * (i / n + 0.5) / n), 2);

    if (x >= 0 && y >= 0 && x < cells->width && y < cells->height)
      sums[y * cells->width + x] += w * z[i];
  }
  free (z);
}

void
imk_insarform_reference_filter (const ImkInsarformConfig *c, ImkImage *cells)
{
  int64_t step = c->filter_window / 4;
  double complex *sums =
      calloc ((size_t) cells->width * cells->height, sizeof (*sums));

  for (int64_t top = step - c->filter_window; top < cells->height; top += step)
    for (int64_t left = step - c->filter_window; left < cells->width;
         left += step)
      add_patch (c, cells, left, top, sums);
  for (uint32_t y = 0; y < cells->height; y++)
    for (uint32_t x = 0; x < cells->width; x++) {
      double complex sum = sums[(size_t) y * cells->width + x];
      double amplitude = cabs (get_complex (cells, x, y, IMK_INSARFORM_RE));

      if (cabs (sum) > 0 && amplitude > 0) {
        imk_sample_put (cells, x, y, IMK_INSARFORM_RE,
            amplitude * creal (sum) / cabs (sum));
        imk_sample_put (cells, x, y, IMK_INSARFORM_IM,
            amplitude * cimag (sum) / cabs (sum));
      }
    }
  free (sums);
}
