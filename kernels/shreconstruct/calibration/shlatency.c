/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The response in time: all commands follow a sequence of signs. */
#include "shreconstruct/calibration/shcalibration-private.h"

#include <math.h>
#include <string.h>

static uint64_t
next_random (uint64_t *seed)
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

void
imk_shcalibration_make_signs (ImkShcalibration *s)
{
  uint64_t seed = 1;

  imk_shresponse_make_sequence (s->sequence);
  for (uint32_t k = 0; k < s->n_live; k++)
    s->pattern[k] = next_random (&seed) & 1 ? 1 : -1;
}

/* The sum of the sequence is 1: so the mean slope has got in once.
 * Returns: the lag of the strongest response */
static uint32_t
finish_responses (ImkShcalibration *s)
{
  double most = -1;
  uint32_t best = 1;

  for (uint32_t i = 0; i < s->n_slopes; i++) {
    uint32_t n = s->n_seen[i % s->config.n_cells];

    s->mean[i] /= n > 0 ? n : 1;
  }
  for (uint32_t lag = 1; lag <= MAX_LAG; lag++) {
    double *response = s->responses + (size_t) lag * s->n_slopes, power = 0;

    for (uint32_t i = 0; i < s->n_slopes; i++) {
      response[i] = (response[i] - s->mean[i]) / (PERIOD + 1);
      power += response[i] * response[i];
    }
    if (power > most) {
      most = power;
      best = lag;
    }
  }
  return best;
}

static void
begin_period (ImkShcalibration *s)
{
  s->n_phases = 0;
  memset (s->has_phase, 0, sizeof (s->has_phase));
  memset (s->responses, 0,
      (size_t) (MAX_LAG + 1) * s->n_slopes * sizeof (*s->responses));
  memset (s->mean, 0, s->n_slopes * sizeof (*s->mean));
  memset (s->n_seen, 0, s->config.n_cells * sizeof (*s->n_seen));
}

/* A slow mirror has not forgotten the time before the sequence when the first
 * period begins. Returns: whether the response is not known yet */
static bool
end_period (ImkShcalibration *s)
{
  uint32_t best = finish_responses (s);
  const double *direction = s->responses + (size_t) best * s->n_slopes;

  if (!imk_shresponse_find (s->sequence, s->frames, s->mean, direction,
          s->n_slopes, best, &s->shape)) {
    s->state = IMK_SHCALIBRATION_NO_RESPONSE;
    return false;
  }
  imk_shcalibration_find_whole (s);
  begin_period (s);
  if (!s->shape.is_linear && s->config.method == IMK_SHCALIBRATION_SINUSOIDAL) {
    s->state = IMK_SHCALIBRATION_NONLINEAR;
    return false;
  }
  if (s->shape.last <= MAX_LAG || s->is_long)
    return false;
  s->is_long = true;
  s->shape.last = 0;
  return true;
}

static void
take_phase (ImkShcalibration *s, const float *slopes)
{
  const uint32_t t = s->n_frames % PERIOD;
  float *frame = s->frames + (size_t) t * s->n_slopes;

  s->has_phase[t] = true;
  s->n_phases++;
  for (uint32_t i = 0; i < s->config.n_cells; i++)
    s->n_seen[i] += s->valid[i];
  for (uint32_t i = 0; i < s->n_slopes; i++) {
    double slope = imk_shcalibration_slope_of (s, slopes, i);

    frame[i] = s->valid[i % s->config.n_cells] ? slopes[i] : NAN;
    s->mean[i] += slope;
    for (uint32_t lag = 1; lag <= MAX_LAG; lag++)
      s->responses[(size_t) lag * s->n_slopes + i] +=
          s->sequence[(t + PERIOD - lag) % PERIOD] * slope;
  }
}

/* A frame for each phase of a period, so that the sequence is orthogonal to its
 * shifts. Returns: whether it goes on */
bool
imk_shcalibration_follow_sequence (
    ImkShcalibration *s, const float *slopes, float *pokes)
{
  const uint32_t t = s->n_frames % PERIOD;

  if (s->n_frames > MAX_LAG && s->n_unsure == 0 && !s->has_phase[t])
    take_phase (s, slopes);
  if (s->n_phases == PERIOD && !end_period (s))
    return false;
  for (uint32_t k = 0; k < s->n_live; k++)
    pokes[s->live[k]] =
        (float) (s->config.poke * s->pattern[k] * s->sequence[t]);
  return true;
}
