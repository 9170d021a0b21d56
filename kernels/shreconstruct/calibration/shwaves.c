/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pokes of a frequency each. */
#include "shreconstruct/calibration/shcalibration-private.h"

#include <math.h>
#include <string.h>

/* With less of it the frames that are there do not tell a missing one. */
#define MIN_PIVOT 1e-3

static const double two_pi = 6.283185307179586;

/* What a fit of a mean and @n waves makes in one frame of a slope of 1 that is
 * @distance frames away: the kernel of Dirichlet. */
static double
share_of (uint32_t n, uint32_t period, int64_t distance)
{
  double half = two_pi * (double) distance / period / 2;

  return (distance ? sin ((2 * n + 1) * half) / sin (half) : 2 * n + 1) /
         period;
}

/* Returns: what the fit of all other frames has in frame @t */
static double
fit_at (const ImkShcalibration *s, uint32_t i, uint32_t n, uint32_t period,
    uint32_t t)
{
  double sum = s->sum[i];

  for (uint32_t k = 0; k < n; k++) {
    double phase = two_pi * ((uint64_t) (k + 1) * t % period) / period;
    const double *cosines = s->estimate + (size_t) k * s->n_slopes;
    const double *sines = s->estimate + ((size_t) GROUP_SIZE + k) * s->n_slopes;

    sum += 2 * (cos (phase) * cosines[i] + sin (phase) * sines[i]);
  }
  return sum / period;
}

static void
add_at (ImkShcalibration *s, uint32_t i, uint32_t n, uint32_t period,
    uint32_t t, double slope)
{
  for (uint32_t k = 0; k < n; k++) {
    double phase = two_pi * ((uint64_t) (k + 1) * t % period) / period;

    s->estimate[(size_t) k * s->n_slopes + i] += cos (phase) * slope;
    s->estimate[((size_t) GROUP_SIZE + k) * s->n_slopes + i] +=
        sin (phase) * slope;
  }
}

/* Gauss and Jordan: @rows [n] [n unknowns and 2 right sides].
 * Returns: whether the matrix, which is positive, is not near to a singular
 * one */
static bool
solve (double rows[MAX_GAPS][MAX_GAPS + 2], uint32_t n)
{
  for (uint32_t p = 0; p < n; p++) {
    if (!(rows[p][p] > MIN_PIVOT))
      return false;
    for (uint32_t r = 0; r < n; r++) {
      double factor = rows[r][p] / rows[p][p];

      for (uint32_t c = p; r != p && c < n + 2; c++)
        rows[r][c] -= factor * rows[p][c];
    }
  }
  return true;
}

/* The slopes of frames in which the cell was invalid are those that the
 * least-squares fit of the others has there. Returns: whether they tell them */
static bool
fill_gaps (ImkShcalibration *s, uint32_t cell, uint32_t n, uint32_t period)
{
  const uint32_t n_gaps = s->n_gaps[cell], n_cells = s->config.n_cells;
  const uint32_t *gaps = s->gaps + (size_t) cell * MAX_GAPS;
  double rows[MAX_GAPS][MAX_GAPS + 2];

  if (n_gaps > MAX_GAPS || n_gaps > period / 4)
    return false;
  for (uint32_t r = 0; r < n_gaps; r++) {
    for (uint32_t c = 0; c < n_gaps; c++)
      rows[r][c] = (r == c) - share_of (n, period, (int64_t) gaps[r] - gaps[c]);
    rows[r][n_gaps] = fit_at (s, cell, n, period, gaps[r]);
    rows[r][n_gaps + 1] = fit_at (s, n_cells + cell, n, period, gaps[r]);
  }
  if (!solve (rows, n_gaps))
    return false;
  for (uint32_t r = 0; r < n_gaps; r++) {
    add_at (s, cell, n, period, gaps[r], rows[r][n_gaps] / rows[r][r]);
    add_at (s, n_cells + cell, n, period, gaps[r],
        rows[r][n_gaps + 1] / rows[r][r]);
  }
  return true;
}

/* Of the commands from @first on, for the cells that have them. */
static void
add_group (ImkShcalibration *s, uint32_t first, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t i = 0; i < s->n_slopes; i++)
      if (!s->n_gaps[i % s->config.n_cells])
        imk_shcalibration_add_estimate (
            s, first + k, i, s->estimate[(size_t) k * s->n_slopes + i]);
  memset (
      s->estimate, 0, (size_t) 2 * GROUP_SIZE * s->n_slopes * sizeof (double));
  memset (s->sum, 0, s->n_slopes * sizeof (double));
  memset (s->n_gaps, 0, s->config.n_cells * sizeof (*s->n_gaps));
}

/* Of waves: @re, @im: the response at the frequency @omega */
static double
scale_error_at (const ImkShcalibration *s, double omega, double re, double im)
{
  double squares = 0;

  for (uint32_t lag = s->shape.first; lag <= s->shape.last; lag++) {
    double share =
        (re * cos (omega * lag) - im * sin (omega * lag)) / (re * re + im * im);

    squares += (share - 1) * (share - 1);
  }
  return hypot (
      s->shape.error * sqrt (squares), s->shape.hidden * (1 - cos (omega)));
}

/* Then a drift cancels in two repeats. */
static double
sign_of (uint32_t repeat)
{
  return repeat % 2 ? -1 : 1;
}

/* @estimate: sums with cosines and sines become elements. */
static void
end_group (ImkShcalibration *s, uint32_t first, uint32_t n, uint32_t period)
{
  for (uint32_t i = 0; i < s->config.n_cells; i++)
    if (s->n_gaps[i] && fill_gaps (s, i, n, period))
      s->n_gaps[i] = 0;
  for (uint32_t k = 0; k < n; k++) {
    double omega = two_pi * (k + 1) / period, re = 0, im = 0, power;
    double *cosines = s->estimate + (size_t) k * s->n_slopes;
    double *sines = s->estimate + ((size_t) GROUP_SIZE + k) * s->n_slopes;

    for (uint32_t lag = s->shape.first; lag <= s->shape.last; lag++) {
      re += s->shape.impulse[lag] * cos (omega * lag);
      im -= s->shape.impulse[lag] * sin (omega * lag);
    }
    s->scale_errors[k] = scale_error_at (s, omega, re, im);
    /* slopes are D poke (re sin + im cos) of the time */
    power =
        (re * re + im * im) * s->config.poke * period / 2 * sign_of (s->repeat);
    for (uint32_t i = 0; i < s->n_slopes; i++)
      cosines[i] = (re * sines[i] + im * cosines[i]) / power;
  }
  add_group (s, first, n);
}

static void
note_gaps (ImkShcalibration *s, uint32_t t)
{
  for (uint32_t i = 0; i < s->config.n_cells; i++)
    if (!s->valid[i]) {
      if (s->n_gaps[i] < MAX_GAPS)
        s->gaps[(size_t) i * MAX_GAPS + s->n_gaps[i]] = t;
      s->n_gaps[i]++;
    }
}

uint32_t
imk_shcalibration_period_of (const ImkShcalibration *s)
{
  return 8 * (s->n_live < GROUP_SIZE ? s->n_live : GROUP_SIZE) *
         s->config.n_frames;
}

void
imk_shcalibration_follow_waves (
    ImkShcalibration *s, const float *slopes, float *pokes)
{
  uint32_t n_in_group = s->n_live < GROUP_SIZE ? s->n_live : GROUP_SIZE;
  uint32_t period = imk_shcalibration_period_of (s);
  uint32_t n_groups = (s->n_live + n_in_group - 1) / n_in_group;
  uint32_t t = s->f % (period + s->shape.last),
           all = s->f / (period + s->shape.last);
  uint32_t first = all % n_groups * n_in_group;
  uint32_t n = s->n_live - first < n_in_group ? s->n_live - first : n_in_group;

  if (all == s->config.n_repeats * n_groups) {
    imk_shcalibration_remove_drift (s);
    imk_shcalibration_find_drift (s);
    s->state = IMK_SHCALIBRATION_DONE;
    return;
  }
  for (uint32_t k = 0; k < n; k++)
    pokes[s->live[first + k]] =
        (float) (sign_of (all / n_groups) * s->config.poke *
                 sin (two_pi * (k + 1) * t / period));
  if (t < s->shape.last || s->n_unsure > 0)
    return;
  note_gaps (s, t);
  for (uint32_t i = 0; i < s->n_slopes; i++)
    s->sum[i] += imk_shcalibration_slope_of (s, slopes, i);
  for (uint32_t k = 0; k < n; k++) {
    double phase = two_pi * ((uint64_t) (k + 1) * t % period) / period;
    double c = cos (phase), d = sin (phase);
    double *cosines = s->estimate + (size_t) k * s->n_slopes;
    double *sines = s->estimate + ((size_t) GROUP_SIZE + k) * s->n_slopes;

    for (uint32_t i = 0; i < s->n_slopes; i++) {
      double slope = imk_shcalibration_slope_of (s, slopes, i);

      cosines[i] += c * slope;
      sines[i] += d * slope;
    }
  }
  if (t + 1 == period + s->shape.last) {
    end_group (s, first, n, period);
    s->repeat = (all + 1) / n_groups;
  }
}
