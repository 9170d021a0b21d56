/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pokes up and down, one pair after the other: of a command, or of a pattern of
 * HADAMARD. */
#include "shreconstruct/calibration/shcalibration-private.h"

#include <math.h>
#include <string.h>

static void
take_frame (ImkShcalibration *s, const float *slopes)
{
  for (uint32_t i = 0; i < s->n_slopes; i++)
    s->sum[i] += imk_shcalibration_slope_of (s, slopes, i);
  for (uint32_t i = 0; i < s->config.n_cells; i++)
    s->n_seen[i] += s->valid[i];
}

/* The mean of a poke, NaN for cells that were never valid, in @mean. */
static void
end_poke (ImkShcalibration *s, double *mean)
{
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    uint32_t n = s->n_seen[i % s->config.n_cells];

    mean[i] = n ? s->sum[i] / n : NAN;
  }
  memset (s->sum, 0, s->n_slopes * sizeof (double));
  memset (s->n_seen, 0, s->config.n_cells * sizeof (*s->n_seen));
}

/* Half the difference of a pair of pokes, for a poke of 1: of a command, or of
 * a pattern of HADAMARD. */
static void
end_pair (ImkShcalibration *s, uint32_t row, double sign)
{
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    uint32_t n = s->n_seen[i % s->config.n_cells];
    double now = n ? s->sum[i] / n : NAN;
    double value = sign * (s->before[i] - now) / (2 * s->config.poke);

    s->means[row % 3 * s->n_slopes + i] = (s->before[i] + now) / 2;

    if (isfinite (value))
      imk_shcalibration_add_estimate (s, row, i, value);
  }
  imk_shcalibration_add_even (s, row);
  end_poke (s, s->before);
}

/* @means: [n_rows]: become those without what pairs have of each other. Of one
 * that is missing, the others that have a part of it are missing, too. */
static void
invert_means (const ImkShcalibration *s, const Spread *of, double *means)
{
  const uint32_t n = imk_shcalibration_n_rows (s);
  double *given = s->inverse + n;

  for (uint32_t j = 0; j < n; j++) {
    const Spread *row = of + (size_t) j * s->n_slopes;

    given[j] = row->n ? row->mean : NAN;
    means[j] = 0;
  }
  for (uint32_t d = 0; d < n; d++)
    for (uint32_t j = 0; s->inverse[d] != 0 && j < n; j++)
      means[j] += s->inverse[d] * (j < d ? -given[j + n - d] : given[j - d]);
}

/* The pairs of pokes overlap where a response is longer than a poke. */
static void
undo_overlap (ImkShcalibration *s)
{
  const uint32_t n = imk_shcalibration_n_rows (s);
  double *means = s->inverse + 2 * (size_t) n, gain = 0, error;

  error = imk_shresponse_invert (
      &s->shape, s->config.n_frames, n, s->inverse, s->inverse + n);
  for (uint32_t k = 0; k < GROUP_SIZE; k++)
    s->scale_errors[k] = error;
  if (s->shape.first == s->shape.begin && s->shape.last == s->shape.settle)
    return;
  for (uint32_t d = 0; d < n; d++)
    gain += s->inverse[d] * s->inverse[d];
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    Spread *of = s->spread + i;

    invert_means (s, of, means);
    for (uint32_t j = 0; j < n; j++, of += s->n_slopes) {
      of->squares *= gain;
      of->mean = isnan (means[j]) ? 0 : means[j];
      of->n = isnan (means[j]) ? 0 : of->n;
    }
  }
}

/* The first poke of a pair is up in even repeats, so that a drift cancels. */
static double
sign_of (uint32_t repeat, uint32_t poke)
{
  return (repeat + poke) % 2 ? -1 : 1;
}

static void
set_pokes (ImkShcalibration *s, uint32_t repeat, uint32_t poke, float *pokes)
{
  double value = s->config.poke * sign_of (repeat, poke);

  if (s->config.method == IMK_SHCALIBRATION_HADAMARD)
    for (uint32_t k = 0; k < s->n_live; k++)
      pokes[s->live[k]] =
          (float) (value * imk_shcalibration_hadamard (poke / 2, k + 1));
  else
    pokes[s->live[poke / 2]] = (float) value;
}

/* The first pokes that a frame sees are the last ones of a repeat that is not
 * measured, and the last ones the first of one more: so all repeats are the
 * same. */
static void
send_pokes (ImkShcalibration *s, uint32_t hold, float *pokes)
{
  const ImkShresponse *r = &s->shape;
  const uint32_t n_pokes = 2 * imk_shcalibration_n_rows (s),
                 n_before = r->last - r->settle;
  const uint64_t n_sent = (uint64_t) n_pokes * s->config.n_repeats * hold;
  const uint32_t n_ahead = 2 * (1 + n_before / (n_pokes * hold)); /* even */
  uint32_t sent;

  if (s->f >= n_sent + n_before + r->begin - r->first)
    return;
  sent = (s->f + n_ahead * n_pokes * hold - n_before) / hold;
  set_pokes (s, sent / n_pokes, sent % n_pokes, pokes);
}

void
imk_shcalibration_follow_pairs (
    ImkShcalibration *s, const float *slopes, float *pokes)
{
  const uint32_t n_frames = s->config.n_frames, last = s->shape.last;
  const uint32_t hold = n_frames + s->shape.settle - s->shape.begin;
  const uint32_t n_pokes = 2 * imk_shcalibration_n_rows (s);

  if (s->f >= last && s->n_unsure == 0) {
    uint32_t seen = s->f - last, all = seen / hold;
    uint32_t poke = all % n_pokes, repeat = all / n_pokes;

    if (seen % hold < n_frames)
      take_frame (s, slopes);
    if (seen % hold + 1 == n_frames && poke % 2 == 0)
      end_poke (s, s->before);
    else if (seen % hold + 1 == n_frames)
      end_pair (s, poke / 2, sign_of (repeat, 0));
    if (seen % hold + 1 == n_frames && poke + 1 == n_pokes)
      s->repeat = repeat + 1;
  }
  if (s->repeat == s->config.n_repeats) {
    imk_shcalibration_find_drift (s);
    undo_overlap (s);
    if (s->config.method == IMK_SHCALIBRATION_HADAMARD)
      imk_shcalibration_end_patterns (s);
    s->state = IMK_SHCALIBRATION_DONE;
  } else
    send_pokes (s, hold, pokes);
}
