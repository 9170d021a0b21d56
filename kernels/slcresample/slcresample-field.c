/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Offsets that are no plane: nodes, and cubic polynomials through four of them
 * along each axis. */
#include <stdlib.h>
#include <string.h>

#include "slcresample/slcresample-private.h"

/* What a cubic through four nodes exceeds their range by, at most, as part of
 * it: half of 1.25^2 - 1, its Lebesgue constant along both axes. */
#define OVERSHOOT 0.29

/* Of the cubic through the nodes -1, 0, 1, 2 at @t of 0..1. */
static void
weigh (double t, double *w)
{
  w[0] = -t * (t - 1) * (t - 2) / 6;
  w[1] = (t + 1) * (t - 1) * (t - 2) / 2;
  w[2] = -(t + 1) * t * (t - 2) / 2;
  w[3] = (t + 1) * t * (t - 1) / 6;
}

/* The nodes around @at, which is moved between the first and the last.
 * @nodes: (out): 4; those beyond the ends are the last ones */
static void
find_nodes (const ImkSlcresampleField *f, int axis, double at, uint32_t *nodes,
    double *w)
{
  uint32_t n = axis ? f->ny : f->nx;
  double place = fmax (fmin ((at - f->origin[axis]) / f->step[axis], n - 1), 0);
  int64_t first = (int64_t) floor (place);

  if (first > 0 && first == n - 1)
    first--;
  weigh (place - (double) first, w);
  for (int64_t k = 0; k < 4; k++) {
    int64_t node = first + k - 1;

    nodes[k] = (uint32_t) (node < 0 ? 0 : node < n ? node : n - 1);
  }
  /* outside, the line through the two nodes at the end goes on, so that cubics
   * of two nodes are lines and of three parabolas */
  if (n > 1 && first == 0) {
    w[1] += 2 * w[0];
    w[2] -= w[0];
    w[0] = 0;
  }
  if (n > 1 && first + 2 == n) {
    w[2] += 2 * w[3];
    w[1] -= w[3];
    w[3] = 0;
  }
}

void
imk_slcresample_field_at (
    const ImkSlcresampleConfig *c, double r, double a, double *at)
{
  const ImkSlcresampleField *f = c->field;
  uint32_t i[4], j[4];
  double u[4], v[4];

  find_nodes (f, 0, r, i, u);
  find_nodes (f, 1, a, j, v);
  at[0] = r + (c->shift[0] + c->stretch[0] * r + c->a_stretch[0] * a);
  at[1] = a + (c->shift[1] + c->stretch[1] * r + c->a_stretch[1] * a);
  for (int axis = 0; axis < 2; axis++)
    for (int k = 0; k < 4; k++) {
      const float *row = f->offsets[axis] + (size_t) j[k] * f->nx;

      at[axis] += v[k] * (u[0] * row[i[0]] + u[1] * row[i[1]] +
                             u[2] * row[i[2]] + u[3] * row[i[3]]);
    }
}

/* Four nodes, each the sum over the four rows around a line. */
typedef struct Nodes {
  uint32_t at[4];
  double offsets[2][4];
} Nodes;

static void
add_rows (const ImkSlcresampleField *f, const uint32_t *rows, const double *v,
    Nodes *nodes)
{
  for (int axis = 0; axis < 2; axis++)
    for (int i = 0; i < 4; i++) {
      nodes->offsets[axis][i] = 0;
      for (int k = 0; k < 4; k++)
        nodes->offsets[axis][i] +=
            v[k] * f->offsets[axis][(size_t) rows[k] * f->nx + nodes->at[i]];
    }
}

void
imk_slcresample_field_line (const ImkSlcresampleConfig *c, int64_t r, double a,
    uint32_t n, double *x, double *y)
{
  const ImkSlcresampleField *f = c->field;
  double *const to[2] = {x, y};
  Nodes nodes = {.at = {UINT32_MAX}};
  uint32_t rows[4];
  double v[4];

  find_nodes (f, 1, a, rows, v);
  for (uint32_t k = 0; k < n; k++) {
    double column = (double) (r + k), u[4];
    uint32_t at[4];

    find_nodes (f, 0, column, at, u);
    if (memcmp (at, nodes.at, sizeof (at)) != 0) {
      memcpy (nodes.at, at, sizeof (at));
      add_rows (f, rows, v, &nodes);
    }
    for (int axis = 0; axis < 2; axis++) {
      const double *o = nodes.offsets[axis];

      to[axis][k] = (axis ? a : column) +
                    (c->shift[axis] + c->stretch[axis] * column +
                        c->a_stretch[axis] * a) +
                    (u[0] * o[0] + u[1] * o[1] + u[2] * o[2] + u[3] * o[3]);
    }
  }
}

void
imk_slcresample_field_span (
    const ImkSlcresampleConfig *c, uint32_t a, double *least, double *most)
{
  const ImkSlcresampleField *f = c->field;
  double end = c->out_width - 1 + IMK_SLCRESAMPLE_REACH, extra;
  double left = c->stretch[1] * -IMK_SLCRESAMPLE_REACH;
  double right = c->stretch[1] * end;
  double low = INFINITY, high = -INFINITY, w[4];
  uint32_t nodes[4];

  find_nodes (f, 1, a, nodes, w);
  for (int k = 0; k < 4; k++)
    for (uint32_t i = 0; i < f->nx; i++) {
      double d = f->offsets[1][(size_t) nodes[k] * f->nx + i];

      /* fmin () and fmax () in this loop end gcc 12 for aarch64 */
      low = d < low ? d : low;
      high = d > high ? d : high;
    }
  extra = OVERSHOOT * (high - low);
  *least = a + (c->shift[1] + c->a_stretch[1] * a) + fmin (left, right) + low -
           extra;
  *most = a + (c->shift[1] + c->a_stretch[1] * a) + fmax (left, right) + high +
          extra;
}

/* --- validation ----------------------------------------------------------- */

/* Returns: whether offsets change by no more than the largest stretch from one
 * node to the next */
static bool
is_smooth (const ImkSlcresampleField *f, int axis, uint32_t i, uint32_t j)
{
  const float *at = f->offsets[axis] + (size_t) j * f->nx + i;

  return (i + 1 == f->nx || fabs (at[1] - at[0]) <=
                                IMK_SLCRESAMPLE_MAX_STRETCH * f->step[0]) &&
         (j + 1 == f->ny || fabs (at[f->nx] - at[0]) <=
                                IMK_SLCRESAMPLE_MAX_STRETCH * f->step[1]);
}

ImkStatus
imk_slcresample_field_check (const ImkSlcresampleField *f, ImkError *error)
{
  if (f->nx < 1 || f->ny < 1 || !(f->step[0] > 0 && f->step[1] > 0) ||
      !isfinite (f->origin[0] + f->origin[1]))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The offset field has %u x %u nodes every %g columns and %g lines; all "
        "must be above 0.",
        f->nx, f->ny, f->step[0], f->step[1]);
  for (size_t i = 0; i < (size_t) f->nx * f->ny; i++)
    for (int axis = 0; axis < 2; axis++)
      if (!(fabs (f->offsets[axis][i]) <= 1e6))
        return imk_error_set (error, IMK_ERROR_CONFIG,
            "Node (%zu, %zu) of the offset field is %g %s; it can be -1e6 to "
            "1e6. Fill its holes first.",
            i % f->nx, i / f->nx, f->offsets[axis][i],
            axis ? "lines" : "columns");
  for (uint32_t j = 0; j < f->ny; j++)
    for (uint32_t i = 0; i < f->nx; i++)
      for (int axis = 0; axis < 2; axis++)
        if (!is_smooth (f, axis, i, j))
          return imk_error_set (error, IMK_ERROR_CONFIG,
              "From node (%u, %u) of the offset field to the next the offset "
              "in %s changes by more than %g of their distance, which no image "
              "does. Remove wrong offsets first.",
              i, j, axis ? "lines" : "columns", IMK_SLCRESAMPLE_MAX_STRETCH);
  return IMK_OK;
}

ImkStatus
imk_slcresample_field_copy (
    const ImkSlcresampleField *from, ImkSlcresampleField **to, ImkError *error)
{
  size_t n = (size_t) from->nx * from->ny;
  ImkSlcresampleField *copy = malloc (sizeof (*copy) + 2 * n * sizeof (float));
  float *values = (float *) (copy + 1);

  if (!copy)
    return IMK_NO_MEMORY (error, "for %u x %u offsets.", from->nx, from->ny);
  *copy = *from;
  for (int axis = 0; axis < 2; axis++) {
    memcpy (values + axis * n, from->offsets[axis], n * sizeof (float));
    copy->offsets[axis] = values + axis * n;
  }
  *to = copy;
  return IMK_OK;
}
