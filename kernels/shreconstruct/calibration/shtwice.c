/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a calibration measures twice, for its judgement. */
#include "shreconstruct/calibration/shcalibration-private.h"

#include <math.h>
#include <string.h>

enum {
  FIRST_QUIET = 128, /* lags without a response, of which some are taken */
  QUIET_STEP = 8,
};

/* @signs: the sequence as the mirror has followed it. Returns: its power */
static double
follow (const ImkShcalibration *s, double *signs)
{
  double power = 0;

  for (uint32_t t = 0; t < PERIOD; t++) {
    signs[t] = 0;
    for (uint32_t lag = s->shape.first; lag <= s->shape.last; lag++)
      signs[t] +=
          s->shape.impulse[lag] * s->sequence[(t + PERIOD - lag) % PERIOD];
    signs[t] -= 1.0 / PERIOD; /* the mean, which frames are without, too */
    power += signs[t] * signs[t];
  }
  return power;
}

/* @sums: (out): [n_slopes]: frame by frame, as they are in memory */
static void
correlate (
    const ImkShcalibration *s, const double *signs, uint32_t lag, double *sums)
{
  memset (sums, 0, s->n_slopes * sizeof (*sums));
  for (uint32_t t = 0; t < PERIOD; t++) {
    const float *frame = s->frames + (size_t) t * s->n_slopes;
    const double sign = signs[(t + PERIOD - lag) % PERIOD];

    for (uint32_t i = 0; i < s->n_slopes; i++)
      sums[i] += sign * frame[i];
  }
}

/* The error is what lags without a response have: also that of a drift. */
void
imk_shcalibration_find_whole (ImkShcalibration *s)
{
  double signs[PERIOD], *sums = s->before; /* not needed yet */
  const double power = follow (s, signs);
  uint32_t n = 0;

  memset (s->whole_error, 0, s->n_slopes * sizeof (double));
  for (uint32_t lag = FIRST_QUIET; lag < PERIOD; lag += QUIET_STEP, n++) {
    correlate (s, signs, lag, sums);
    for (uint32_t i = 0; i < s->n_slopes; i++)
      s->whole_error[i] += sums[i] * sums[i];
  }
  correlate (s, signs, 0, sums);
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    const uint32_t n_seen = s->n_seen[i % s->config.n_cells];
    const double scale = power * n_seen / PERIOD;

    s->whole[i] = n_seen > PERIOD / 2 ? sums[i] / scale : NAN;
    s->whole_error[i] = sqrt (s->whole_error[i] / n) / scale;
  }
}

/* --- push and pull -------------------------------------------------------- */

void
imk_shcalibration_add_even (ImkShcalibration *s, uint32_t row)
{
  const double *means[3];

  if (row < 2)
    return;
  for (uint32_t k = 0; k < 3; k++)
    means[k] = s->means + (size_t) ((row - k) % 3) * s->n_slopes;
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    const double even = means[1][i] - (means[0][i] + means[2][i]) / 2;

    s->even[(size_t) (row - 1) * s->n_slopes + i] += (float) even;
    s->even_squares[i] += even * even; /* NaN where the cell was invalid */
  }
}

/* Weak commands, whose neighbours may be nonlinear, count as if they had half
 * of the response of the others. */
static void
find_worst (const ImkShcalibration *s, ImkShjudgeData *d)
{
  const double n = s->config.n_repeats;

  for (uint32_t row = 1; row + 1 < s->n_live; row++) {
    const double odd = fmax (s->odds[row], s->odd / 4);
    double even = 0;

    for (uint32_t i = 0; i < s->n_slopes; i++) {
      const double mean = s->even[(size_t) row * s->n_slopes + i] / n;

      even += isfinite (mean) ? mean * mean : 0;
    }
    if (even * d->worst_odd >= d->worst_even * odd) {
      d->worst = s->live[row];
      d->worst_even = even;
      d->worst_odd = odd;
    }
  }
}

/* Between pairs, and within each. Where pairs have means of their own, those of
 * their neighbours are in it: 1.5 times the power. */
void
imk_shcalibration_get_even (const ImkShcalibration *s, ImkShjudgeData *d)
{
  const uint32_t n_rows = imk_shcalibration_n_rows (s);
  const double n = s->config.n_repeats;

  if (s->config.method == IMK_SHCALIBRATION_SINUSOIDAL || n_rows < 3)
    return;
  d->n_even = n_rows - 2;
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    double between = 0;

    for (uint32_t row = 1; row + 1 < n_rows; row++) {
      const double sum = s->even[(size_t) row * s->n_slopes + i];

      between += sum * sum / n;
    }
    if (!isfinite (s->even_squares[i]))
      continue;
    d->even += between / n / 1.5 / d->n_even;
    d->even_noise +=
        (s->even_squares[i] - between) / (n - 1) / n / 1.5 / d->n_even;
  }
  d->odd = s->odd;
  if (d->is_single)
    find_worst (s, d);
}

/* --- repeats -------------------------------------------------------------- */

/* Of a command, or of a pattern. @change: (out): how its response, whose power
 * is returned, changed along itself */
static double
change_of (const ImkShcalibration *s, uint32_t row, double *change)
{
  double power = 0;

  *change = 0;
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    const Spread *of = s->spread + (size_t) row * s->n_slopes + i;
    const double n = of->n;

    if (of->n < 2)
      continue;
    /* the slope of a line through the repeats, over all of them */
    *change += (of->trend - (n - 1) / 2 * n * of->mean) * 12 / (n * (n + 1)) *
               of->mean;
    power += of->mean * of->mean;
  }
  return power;
}

/* The error is from the spread over the rows: whatever the noise of one slope
 * has to do with that of others, rows are measured in other frames. */
void
imk_shcalibration_find_drift (ImkShcalibration *s)
{
  const uint32_t n = imk_shcalibration_n_rows (s);
  double power = 0, sum = 0, squares = 0, change;

  for (uint32_t row = 0; row < n; row++) {
    const double of_row = change_of (s, row, &change);

    s->odds[row] = of_row * s->config.poke * s->config.poke;
    power += of_row;
    sum += change;
  }
  s->drift = n < 3 || !(power > 0) ? NAN : sum / power;
  for (uint32_t row = 0; row < n; row++) {
    const double of_row = change_of (s, row, &change);

    squares += (change - s->drift * of_row) * (change - s->drift * of_row);
  }
  s->drift_error = sqrt (squares * n / (n - 1.0)) / power;
  s->odd = power / n * s->config.poke * s->config.poke;
}
