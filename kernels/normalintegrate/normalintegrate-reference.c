/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Heights z from normals n: dz/dx = -n_x / n_z, and n_y / n_z for a row further
 * down. Each method is a section with its formula: least squares over the
 * differences of neighbours (Simchony, Chellappa and Shao 1990), and the
 * projection onto integrable waves (Frankot and Chellappa 1988). */
#include "normalintegrate/normalintegrate-reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"

/* Of length 1: x to the right, y up, z to the camera; z is 0 in holes. With a
 * focal length, z is along the view (x, y, 1) / focal_pixels of the pixel. */
typedef struct Normal {
  double x, y, z;
} Normal;

static Normal
get_normal (const ImkNormalintegrateConfig *c, const ImkImage *in, uint32_t x,
    uint32_t y)
{
  double zero = c->type == IMK_TYPE_U8    ? 128
                : c->type == IMK_TYPE_U16 ? 32768
                                          : 0;
  double one = c->type == IMK_TYPE_U8    ? 127
               : c->type == IMK_TYPE_U16 ? 32767
                                         : 1;
  double v[3], length, view;

  for (int i = 0; i < 3; i++)
    v[i] = (imk_sample_get (in, x, y, c->colours[i]) - zero) / one;
  length = sqrt (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  view = v[2];
  if (c->focal_pixels > 0) /* y of the view down, as the rows */
    view -= ((x - (c->width - 1) / 2.0) * v[0] -
                (y - (c->height - 1) / 2.0) / c->pixel_aspect *
                    (c->y_down ? -v[1] : v[1])) /
            c->focal_pixels;
  /* not the contrary of it: NaN must fail too */
  if (!(v[2] > 0 && view > 0 && length > 1e-6 && length < INFINITY &&
          hypot (v[0], v[1]) <= c->max_slope * view))
    return (Normal){0, 0, 0};
  return (Normal){
      v[0] / length, (c->y_down ? -v[1] : v[1]) / length, view / length};
}

/* --- Poisson (Simchony, Chellappa and Shao 1990) -------------------------- */

/* Two neighbours with normals: z_b - z_a shall be @rise, in pixels. */
typedef struct Edge {
  size_t a, b;
  double rise, weight;
} Edge;

static size_t
find_edges (
    const ImkNormalintegrateConfig *c, const Normal *normals, Edge *edges)
{
  size_t n = 0;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      size_t a = (size_t) y * c->width + x;
      const Normal *p = &normals[a], *right = p + 1, *below = p + c->width;

      if (x + 1 < c->width && p->z > 0 && right->z > 0)
        edges[n++] =
            (Edge){a, a + 1, -(p->x + right->x) / (p->z + right->z), 1};
      /* a row further down is 1 / aspect pixels down */
      if (y + 1 < c->height && p->z > 0 && below->z > 0)
        edges[n++] = (Edge){a, a + c->width,
            (p->y + below->y) / (p->z + below->z) / c->pixel_aspect,
            c->pixel_aspect * c->pixel_aspect};
    }
  return n;
}

static double
dot (const double *a, const double *b, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

/* Minimises the sum of weight (z_b - z_a - rise)^2 by conjugate gradients on
 * its normal equations A z = b. @work: [3][n] of 0, as @z;
 * r: what is left of the normal equations, p: where to go, q = A p */
static bool
solve (const Edge *edges, size_t n_edges, double *z, double *work, size_t n)
{
  double *r = work, *p = r + n, *q = p + n, now, first;

  for (const Edge *e = edges; e < edges + n_edges; e++) {
    r[e->b] += e->weight * e->rise;
    r[e->a] -= e->weight * e->rise;
  }
  memcpy (p, r, n * sizeof (double));
  first = now = dot (r, r, n);
  for (int k = 0; k < 100000 && now > 1e-26 * first; k++) {
    double alpha, before = now;

    memset (q, 0, n * sizeof (double));
    for (const Edge *e = edges; e < edges + n_edges; e++) {
      double d = e->weight * (p[e->b] - p[e->a]);

      q[e->b] += d;
      q[e->a] -= d;
    }
    alpha = now / dot (p, q, n);
    for (size_t i = 0; i < n; i++) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    now = dot (r, r, n);
    for (size_t i = 0; i < n; i++)
      p[i] = r[i] + now / before * p[i];
  }
  return now <= 1e-26 * first;
}

static bool
integrate_poisson (
    const ImkNormalintegrateConfig *c, const Normal *normals, double *z)
{
  size_t n = (size_t) c->width * c->height;
  Edge *edges = malloc (2 * n * sizeof (*edges));
  double *work = calloc (3 * n, sizeof (*work));
  bool solved = edges && work &&
                solve (edges, find_edges (c, normals, edges), z, work, n);

  free (edges);
  free (work);
  return solved;
}

/* --- Bilateral (Cao, Santo, Shi, Okura and Matsushita 2022) --------------- */

/* Weights of the equations of a pixel after it: n_z (z_b - z_a) + n = 0. Those
 * before have the rest of 1. */
typedef struct Shares {
  double x, y;
} Shares;

/* Returns: the square of n_z times the step from @a to the neighbour @b; 0
 * without one */
static double
squared_step (const Normal *normals, const double *z, size_t a, size_t b,
    bool is_there, double scale)
{
  double step;

  if (!is_there || !(normals[b].z > 0))
    return 0;
  step = normals[a].z * scale * (z[b] - z[a]);
  return step * step;
}

static double
share (double stiffness, double after, double before)
{
  return 1e-6 + (1 - 2e-6) / (1 + exp (stiffness * (after - before)));
}

static Shares
get_shares (const ImkNormalintegrateConfig *c, const Normal *normals,
    const double *z, uint32_t x, uint32_t y)
{
  size_t a = (size_t) y * c->width + x, w = c->width;
  double r = c->pixel_aspect;

  return (Shares){share (c->stiffness,
                      squared_step (normals, z, a, a + 1, x + 1 < c->width, 1),
                      squared_step (normals, z, a, a - 1, x > 0, 1)),
      share (c->stiffness,
          squared_step (normals, z, a, a + w, y + 1 < c->height, r),
          squared_step (normals, z, a, a - w, y > 0, r))};
}

/* Both equations of an edge as one: @n of the normals along it, y down. */
static Edge
weighted_edge (size_t a, size_t b, const Normal *normals, double n_a,
    double n_b, double share_a, double share_b, double scale)
{
  double a_z = normals[a].z, b_z = normals[b].z;
  double weight = share_a * a_z * a_z + (1 - share_b) * b_z * b_z;

  return (Edge){a, b,
      -(share_a * a_z * n_a + (1 - share_b) * b_z * n_b) / weight / scale,
      weight * scale * scale};
}

static size_t
find_weighted_edges (const ImkNormalintegrateConfig *c, const Normal *normals,
    const Shares *shares, Edge *edges)
{
  size_t n = 0;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      size_t a = (size_t) y * c->width + x, b = a + 1;

      if (!(normals[a].z > 0))
        continue;
      if (x + 1 < c->width && normals[b].z > 0)
        edges[n++] = weighted_edge (a, b, normals, normals[a].x, normals[b].x,
            shares[a].x, shares[b].x, 1);
      b = a + c->width;
      if (y + 1 < c->height && normals[b].z > 0)
        edges[n++] = weighted_edge (a, b, normals, -normals[a].y, -normals[b].y,
            shares[a].y, shares[b].y, c->pixel_aspect);
    }
  return n;
}

/* Rounds of exact least squares, whose weights are those of the heights before;
 * all are 1/2 first. */
static bool
integrate_bilateral (
    const ImkNormalintegrateConfig *c, const Normal *normals, double *z)
{
  size_t n = (size_t) c->width * c->height;
  Edge *edges = malloc (2 * n * sizeof (*edges));
  double *work = malloc (3 * n * sizeof (*work));
  Shares *shares = malloc (n * sizeof (*shares));
  bool solved = edges && work && shares;

  for (uint32_t round = 0; solved && round < c->max_iterations; round++) {
    for (size_t i = 0; i < n; i++)
      shares[i] = get_shares (
          c, normals, z, (uint32_t) (i % c->width), (uint32_t) (i / c->width));
    memset (z, 0, n * sizeof (*z));
    memset (work, 0, 3 * n * sizeof (*work));
    solved = solve (
        edges, find_weighted_edges (c, normals, shares, edges), z, work, n);
  }
  free (edges);
  free (work);
  free (shares);
  return solved;
}

/* --- Frankot and Chellappa 1988 ------------------------------------------- */

/* Adds the waves exp (i (u x + v y)) of bin (@k, @l), y down, to @z: with P and
 * Q the sums of the slopes times exp (-i (u x + v y)), slopes being 0 in holes,
 *   Z = -i (u P + v Q) / (u^2 + v^2) / (width height) */
static void
add_bin (const ImkNormalintegrateConfig *c, const Normal *normals, uint32_t k,
    uint32_t l, double *z)
{
  double width = c->width, height = c->height, pr = 0, pi = 0, zr, zi, square;
  double u = 2 * M_PI * (2 * l > c->width ? l - width : l) / width;
  double v = 2 * M_PI * (2 * k > c->height ? k - height : k) / height;
  /* at half the rate a slope has no wave; a row is 1 / aspect pixels high */
  double su = 2 * l == c->width ? 0 : u;
  double sv = 2 * k == c->height ? 0 : v * c->pixel_aspect;

  square = (su * su + sv * sv) * width * height;
  if (square == 0)
    return;
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      const Normal *n = &normals[(size_t) y * c->width + x];
      double along = n->z > 0 ? (sv * n->y - su * n->x) / n->z : 0;

      pr += along * cos (u * x + v * y);
      pi -= along * sin (u * x + v * y);
    }
  zr = pi / square;
  zi = -pr / square;
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++)
      z[(size_t) y * c->width + x] +=
          zr * cos (u * x + v * y) - zi * sin (u * x + v * y);
}

static bool
integrate_frankot_chellappa (
    const ImkNormalintegrateConfig *c, const Normal *normals, double *z)
{
  for (uint32_t k = 0; k < c->height; k++)
    for (uint32_t l = 0; l < c->width; l++)
      add_bin (c, normals, k, l, z);
  return true;
}

/* -------------------------------------------------------------------------- */

/* @above: z above the lowest; with a focal length f, z is -f log (distance),
 * and the distance of the lowest is f pixels. Returns: mm */
static double
height_of (const ImkNormalintegrateConfig *c, double above)
{
  double f = c->focal_pixels;

  return c->mm_per_pixel * (f > 0 ? f * (1 - exp (-above / f)) : above);
}

bool
imk_normalintegrate_reference (
    const ImkNormalintegrateConfig *c, const ImkImage *in, double *z)
{
  size_t n = (size_t) c->width * c->height;
  Normal *normals = calloc (n, sizeof (*normals));
  double lowest = INFINITY;
  bool solved;

  if (!normals)
    return false;
  memset (z, 0, n * sizeof (*z));
  for (size_t i = 0; i < n; i++)
    normals[i] = get_normal (
        c, in, (uint32_t) (i % c->width), (uint32_t) (i / c->width));
  solved = (c->method == IMK_NORMALINTEGRATE_POISSON ? integrate_poisson
            : c->method == IMK_NORMALINTEGRATE_BILATERAL
                ? integrate_bilateral
                : integrate_frankot_chellappa) (c, normals, z);
  for (size_t i = 0; i < n; i++)
    if (normals[i].z > 0)
      lowest = fmin (lowest, z[i]);
  for (size_t i = 0; i < n; i++)
    z[i] = normals[i].z > 0 ? height_of (c, z[i] - lowest) : NAN;
  free (normals);
  return solved;
}
