/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <string.h>

#include "insarform/insarform-fringes.h"

/* --- rates ---------------------------------------------------------------- */

/* Returns: the mean rate of the nodes beside node @i that have been measured,
 * its own where none has. @left: the last of its row that counts, or -1 */
static double
mean_beside (const ImkInsarformNodes *self, const ImkInsarformNodes *above,
    int axis, int64_t left, uint32_t i)
{
  uint32_t first = i > 0 ? i - 1 : 0;
  double sum = 0;
  int n = 0;

  if (left >= 0) {
    sum += self->rate[axis][left];
    n++;
  }
  for (uint32_t k = first; above && k < self->n && k <= i + 1; k++, n++)
    sum += above->rate[axis][k];
  return n ? sum / n : self->rate[axis][i];
}

/* Samples do not show whole cycles: rates get those that bring them next to
 * the rates beside. */
static void
unwrap_rates (ImkInsarformNodes *self, const ImkInsarformNodes *above)
{
  int64_t left = -1;

  for (uint32_t i = 0; i < self->n; i++) {
    if (!self->counts[i])
      continue;
    for (int axis = 0; axis < 2; axis++) {
      double *rate = self->rate[axis];
      double off = rate[i] - mean_beside (self, above, axis, left, i);

      rate[i] -= 2 * M_PI * round (off / (2 * M_PI));
    }
    left = i;
  }
}

/* Nodes [first, end) lie between two that count, @left and @right; those
 * outside (-1, n) do not exist. */
static void
fill_gap (ImkInsarformNodes *self, const ImkInsarformNodes *above, int64_t left,
    int64_t right)
{
  bool has_left = left >= 0, has_right = right < self->n;

  for (int axis = 0; axis < 2; axis++) {
    double *rate = self->rate[axis];

    for (int64_t i = left + 1; i < right; i++)
      if (has_left && has_right)
        rate[i] = rate[left] + (rate[right] - rate[left]) *
                                   (double) (i - left) /
                                   (double) (right - left);
      else if (has_left || has_right)
        rate[i] = rate[has_left ? left : right];
      else
        rate[i] = above ? above->rate[axis][i] : 0;
  }
}

static void
fill_rates (ImkInsarformNodes *self, const ImkInsarformNodes *above)
{
  int64_t left = -1;

  for (int64_t i = 0; i <= self->n; i++)
    if (i == self->n || self->counts[i]) {
      fill_gap (self, above, left, i);
      left = i;
    }
}

/* --- phases --------------------------------------------------------------- */

/* Phase from node @i to the next of its row. */
static double
step_of (const ImkInsarformNodes *self, uint32_t i)
{
  return self->step * (self->rate[0][i] + self->rate[0][i + 1]) / 2;
}

/* The normal equations are tridiagonal: of f_i the diagonal is 1 and one more
 * for each neighbour, which have -1. @pivot: of the elimination */
static void
solve_row (
    ImkInsarformNodes *self, const ImkInsarformNodes *above, double *pivot)
{
  double *f = self->phase;
  uint32_t n = self->n;

  for (uint32_t i = 0; i < n; i++) {
    f[i] = above->phase[i] +
           self->step * (above->rate[1][i] + self->rate[1][i]) / 2;
    if (i > 0)
      f[i] += step_of (self, i - 1);
    if (i + 1 < n)
      f[i] -= step_of (self, i);
  }
  for (uint32_t i = 0; i < n; i++) {
    pivot[i] = 1.0 + (i > 0) + (i + 1 < n);
    if (i > 0) {
      pivot[i] -= 1 / pivot[i - 1];
      f[i] += f[i - 1] / pivot[i - 1];
    }
  }
  for (uint32_t i = n; i-- > 0;)
    f[i] = (f[i] + (i + 1 < n ? f[i + 1] : 0)) / pivot[i];
}

static void
integrate_row (ImkInsarformNodes *self)
{
  self->phase[0] = 0;
  for (uint32_t i = 0; i + 1 < self->n; i++)
    self->phase[i + 1] = self->phase[i] + step_of (self, i);
}

/* A row without data would pull those below towards its phase of 0. */
static void
extend_up (const ImkInsarformNodes *self, ImkInsarformNodes *above)
{
  for (uint32_t i = 0; i < self->n; i++) {
    above->rate[0][i] = self->rate[0][i];
    above->rate[1][i] = self->rate[1][i];
    above->phase[i] = self->phase[i] - self->step * self->rate[1][i];
  }
}

void
imk_insarform_nodes_integrate (
    ImkInsarformNodes *self, ImkInsarformNodes *above, double *scratch)
{
  self->is_known = above && above->is_known;
  unwrap_rates (self, self->is_known ? above : NULL);
  fill_rates (self, above);
  if (self->is_known) {
    solve_row (self, above, scratch);
    return;
  }
  for (uint32_t i = 0; i < self->n; i++)
    self->is_known |= self->counts[i];
  integrate_row (self);
  if (above)
    extend_up (self, above);
}

/* --- between nodes -------------------------------------------------------- */

/* Weights at @t, 0 to 1, of the way of both values and both slopes, for a step
 * of @step. */
static inline void
cubic (double t, double step, double *w)
{
  w[0] = (1 + 2 * t) * (1 - t) * (1 - t);
  w[1] = t * t * (3 - 2 * t);
  w[2] = step * t * (1 - t) * (1 - t);
  w[3] = step * t * t * (t - 1);
}

/* The same, linear outside of 0 to 1. */
static void
hermite (double t, double step, double *w)
{
  w[0] = t < 0;
  w[1] = t > 1;
  w[2] = step * fmin (t, 0);
  w[3] = step * fmax (t - 1, 0);
  if (t >= 0 && t <= 1)
    cubic (t, step, w);
}

void
imk_insarform_nodes_interpolate (const ImkInsarformNodes *above,
    const ImkInsarformNodes *below, double t, double *scratch, uint32_t width,
    double *to)
{
  uint32_t n = above->n, step = above->step;
  double *value = scratch, *slope = scratch + n;
  double w[4];

  hermite (t, step, w);
  for (uint32_t i = 0; i < n; i++) {
    value[i] = w[0] * above->phase[i] + w[1] * below->phase[i] +
               w[2] * above->rate[1][i] + w[3] * below->rate[1][i];
    slope[i] = w[0] * above->rate[0][i] + w[1] * below->rate[0][i];
  }
  for (uint32_t x = 0, end; x < width; x = end) {
    double at = ((double) x - step) / step; /* in steps from the first node */
    double left = fmax (fmin (floor (at), n - 2.0), 0);
    uint32_t i = (uint32_t) left, next = i + (n > 1);

    if (at < 0 || at >= n - 1 || n == 1) {
      hermite (n > 1 || at < 0 ? at - left : at + 1, step, w);
      to[x] = w[0] * value[i] + w[1] * value[next] + w[2] * slope[i] +
              w[3] * slope[next];
      end = x + 1;
      continue;
    }
    /* from this node to the next */
    end = (i + 2) * step < width ? (i + 2) * step : width;
    for (uint32_t k = x; k < end; k++) {
      double u = ((double) k - step) / step - left;

      cubic (u, step, w);
      to[k] = w[0] * value[i] + w[1] * value[next] + w[2] * slope[i] +
              w[3] * slope[next];
    }
  }
}
