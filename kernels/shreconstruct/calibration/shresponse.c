/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shreconstruct/calibration/shresponse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  PERIOD = IMK_SHRESPONSE_PERIOD,
  MAX_LAG = IMK_SHRESPONSE_MAX_LAG,
  FIRST_QUIET_LAG = 128, /* no response from this lag on */
  N_QUIET_LAGS = PERIOD - FIRST_QUIET_LAG,
  MIN_HOLE = 4, /* lags without a response that end it: a mirror that rings has
                 * fewer, where its response changes its sign */
  N_STEPS = 60, /* of the inverse, each of which leaves a fifth at most */
};

/* The strongest share has this many times the power of a share of noise. */
#define MIN_CONTRAST 10
/* Shares of this many standard errors are above the noise; of 127 that are
 * noise, the second one is exceeded once in 100000 calibrations. */
#define MIN_RESPONSE 4
#define MIN_ECHO 5.5
/* Of the strongest share: echoes below it change an interaction matrix by less
 * than 1 %, and a share below it is rounding. */
#define MIN_ECHO_SHARE 0.003
#define MIN_SHARE 1e-6
/* Echoes everywhere hide in their own spread. But then a mirror with a limit in
 * a frame leaves this part of what the shares do not explain. */
#define MAX_LEFT 0.5
/* Such limits, in steps from one poke to the other. */
#define MAX_LIMIT 0.95
#define MIN_LIMIT 0.05
#define LIMIT_RATIO 0.87
/* Of the whole: with more of it outside of the lags between @begin and @settle
 * pokes would be much weaker than they are sent. */
#define MAX_OUTSIDE 0.1

void
imk_shresponse_make_sequence (int8_t sequence[PERIOD])
{
  uint32_t bits = 1;

  for (int i = 0; i < PERIOD; i++) {
    uint32_t next = (bits >> 7 ^ bits >> 5 ^ bits >> 4 ^ bits >> 3) & 1;

    sequence[i] = bits >> 7 & 1 ? 1 : -1;
    bits = (bits << 1 | next) & 255;
  }
}

/* --- from frames to shares ------------------------------------------------ */

static void
subtract_means (float *frames, const double *means, size_t n_slopes)
{
  for (size_t t = 0; t < PERIOD; t++)
    for (size_t i = 0; i < n_slopes; i++) {
      float *slope = frames + t * n_slopes + i;

      *slope = isnan (*slope) ? 0 : (float) (*slope - means[i]);
    }
}

/* @along: (out): [PERIOD]: products with @direction. Returns: the power of all
 * slopes across it, of a frame */
static double
project (const float *frames, const double *direction, size_t n_slopes,
    double *along)
{
  double squares = 0, power = 0;

  for (size_t i = 0; i < n_slopes; i++)
    power += direction[i] * direction[i];
  for (size_t t = 0; t < PERIOD; t++) {
    const float *frame = frames + t * n_slopes;

    along[t] = 0;
    for (size_t i = 0; i < n_slopes; i++) {
      along[t] += direction[i] * frame[i];
      squares += (double) frame[i] * frame[i];
    }
    squares -= power > 0 ? along[t] * along[t] / power : 0;
  }
  return squares > 0 ? squares / PERIOD : 0;
}

static int
compare (const void *a, const void *b)
{
  double difference = *(const double *) a - *(const double *) b;

  return (difference > 0) - (difference < 0);
}

static double
median (const double *values, double *scratch, size_t n)
{
  memcpy (scratch, values, n * sizeof (*values));
  qsort (scratch, n, sizeof (*values), compare);
  return scratch[n / 2];
}

/* The product of the sequence, less its mean, with a shifted one is 256 and -1
 * - 1 / 255: so shares are correlations over 256, but for a constant, which
 * the lags without a response tell. */
static void
correlate (const int8_t *sequence, const double *along, double *shares)
{
  double quiet = 0;

  for (uint32_t lag = 0; lag < PERIOD; lag++) {
    shares[lag] = 0;
    for (uint32_t t = 0; t < PERIOD; t++)
      shares[lag] += sequence[(t + PERIOD - lag) % PERIOD] * along[t];
    shares[lag] /= PERIOD + 1;
  }
  for (uint32_t lag = FIRST_QUIET_LAG; lag < PERIOD; lag++)
    quiet += shares[lag] / N_QUIET_LAGS;
  for (uint32_t lag = 0; lag < PERIOD; lag++)
    shares[lag] -= quiet;
}

/* --- what is a response --------------------------------------------------- */

/* Returns: the last lag from @best on, in steps of @step, above @least */
static uint32_t
end_of (const double *shares, uint32_t best, int step, double least)
{
  uint32_t end = best;

  for (int lag = (int) best; lag >= 1 && lag <= MAX_LAG; lag += step) {
    if (fabs (shares[lag]) > least)
      end = (uint32_t) lag;
    if (abs (lag - (int) end) >= MIN_HOLE)
      break;
  }
  return end;
}

/* From the strongest lag to the side that has more, until little is outside. */
static void
find_core (ImkShresponse *r, uint32_t best)
{
  double outside = 0;

  for (uint32_t lag = r->first; lag <= r->last; lag++)
    outside += lag == best ? 0 : fabs (r->impulse[lag]);
  r->begin = r->settle = best;
  while (outside > MAX_OUTSIDE) {
    double before = r->begin > r->first ? fabs (r->impulse[r->begin - 1]) : -1;
    double after = r->settle < r->last ? fabs (r->impulse[r->settle + 1]) : -1;

    outside -= before > after ? before : after;
    if (before > after)
      r->begin--;
    else if (after >= 0)
      r->settle++;
    else
      break;
  }
}

static bool
has_echo (const double *quiet, double error, double strongest)
{
  double most = 0;

  for (uint32_t i = 0; i < N_QUIET_LAGS; i++)
    most = fmax (most, fabs (quiet[i]));
  return most > MIN_ECHO * error && most > MIN_ECHO_SHARE * strongest;
}

static void
subtract (double *values, const double *other, double factor, uint32_t delay)
{
  for (uint32_t t = 0; t < PERIOD; t++)
    values[t] -= factor * other[(t + PERIOD - delay) % PERIOD];
}

static double
product (const double *a, const double *b)
{
  double sum = 0;

  for (uint32_t t = 0; t < PERIOD; t++)
    sum += a[t] * b[t];
  return sum;
}

/* From a frame to the next: so that a drift is not taken for a slow mirror. */
static void
take_steps (double *values)
{
  const double last = values[PERIOD - 1];

  for (uint32_t t = PERIOD - 1; t > 0; t--)
    values[t] -= values[t - 1];
  values[0] -= last;
}

/* Fits @steps with three delays about @best, for the fraction of a frame.
 * Returns: the power of what it leaves of @left */
static double
fit (double *left, const double *steps, uint32_t best)
{
  double parts[3][PERIOD] = {{0}};

  for (uint32_t i = 0; i < 3; i++) {
    subtract (parts[i], steps, -1, best + i - 1);
    for (uint32_t j = 0; j < i; j++)
      subtract (parts[i], parts[j],
          product (parts[i], parts[j]) / product (parts[j], parts[j]), 0);
    subtract (left, parts[i],
        product (left, parts[i]) / product (parts[i], parts[i]), 0);
  }
  return product (left, left);
}

/* Returns: power of what @response leaves of the steps of @along */
static double
left_by_shares (const int8_t *sequence, const double *along,
    const double *shares, const ImkShresponse *response, uint32_t best)
{
  double signs[PERIOD], left[PERIOD];

  for (uint32_t t = 0; t < PERIOD; t++)
    signs[t] = sequence[t];
  memcpy (left, along, sizeof (left));
  for (uint32_t lag = response->first; lag <= response->last; lag++)
    subtract (left, signs, shares[lag], lag);
  take_steps (left);
  take_steps (signs);
  return fit (left, signs, best);
}

/* Returns: likewise, of a mirror that moves by @limit in a frame at most */
static double
left_by_limit (
    const int8_t *sequence, const double *along, double limit, uint32_t best)
{
  double place[PERIOD], left[PERIOD], at = 0;

  for (uint32_t t = 0; t < 2 * PERIOD; t++) {
    at += fmin (fmax (sequence[t % PERIOD] - at, -limit), limit);
    place[t % PERIOD] = at;
  }
  memcpy (left, along, sizeof (left));
  take_steps (left);
  take_steps (place);
  return fit (left, place, best);
}

static bool
has_limit (
    const int8_t *sequence, const double *along, double left, uint32_t best)
{
  for (double limit = 2 * MAX_LIMIT; limit > 2 * MIN_LIMIT;
       limit *= LIMIT_RATIO)
    if (left_by_limit (sequence, along, limit, best) < MAX_LEFT * left)
      return true;
  return false;
}

bool
imk_shresponse_find (const int8_t *sequence, float *frames, const double *means,
    const double *direction, size_t n_slopes, uint32_t best,
    ImkShresponse *response)
{
  double along[PERIOD], shares[PERIOD], sizes[N_QUIET_LAGS],
      scratch[N_QUIET_LAGS];
  double noise, least, left, whole = 0;
  ImkShresponse r = {0};

  subtract_means (frames, means, n_slopes);
  noise = project (frames, direction, n_slopes, along) / (PERIOD + 1);
  noise *= (double) n_slopes / (double) (n_slopes - 1); /* along it, too */
  correlate (sequence, along, shares);
  if (!(shares[best] > MIN_CONTRAST * noise))
    return false;
  shares[best] -= noise; /* of the direction, which is from the same frames */
  for (uint32_t i = 0; i < N_QUIET_LAGS; i++)
    sizes[i] = fabs (shares[FIRST_QUIET_LAG + i]);
  r.error = median (sizes, scratch, N_QUIET_LAGS) / 0.6745;
  least = fmin (MIN_RESPONSE * r.error, shares[best] / 2);
  least = fmax (least, MIN_SHARE * shares[best]);
  r.first = end_of (shares, best, -1, least);
  r.last = end_of (shares, best, 1, least);
  r.is_settled = r.last < MAX_LAG;
  left = left_by_shares (sequence, along, shares, &r, best);
  r.is_linear = !has_echo (shares + FIRST_QUIET_LAG, r.error, shares[best]) &&
                !has_limit (sequence, along, left, best);
  if (r.is_linear && r.last > best + 2) /* a tail, most of it below the noise */
    r.last = 2 * r.last - best < MAX_LAG ? 2 * r.last - best : MAX_LAG;
  for (uint32_t lag = r.first; lag <= r.last; lag++)
    whole += shares[lag];
  if (!(whole > 0))
    return false;
  for (uint32_t lag = r.first; lag <= r.last; lag++) {
    r.impulse[lag] = shares[lag] / whole;
    r.latency += lag * r.impulse[lag];
  }
  r.error /= whole;
  r.hidden = fmax (r.first > 1 ? fabs (shares[r.first - 1]) : 0,
                 r.last < MAX_LAG ? fabs (shares[r.last + 1]) : 0) /
             whole;
  find_core (&r, best);
  if (!r.is_linear) { /* shares of the sequence are not those of pokes */
    r.begin = r.first;
    r.settle = r.last;
    r.hidden = 0;
  }
  *response = r;
  return true;
}

/* --- pairs of pokes ------------------------------------------------------- */

static int64_t
floor_divide (int64_t a, int64_t b)
{
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Adds @value at the place @d, which may be beyond the first or the last. */
static void
add_at (double *values, int64_t n, int64_t d, double value)
{
  const int64_t n_turns = floor_divide (d, n);

  values[d - n_turns * n] += n_turns % 2 ? -value : value;
}

/* Of a response after @lag alone: what a pair has of others. Poke @m of a pair,
 * with the sign of @m, is in the pair that is @m / 2 places behind. */
static void
add_lag (const ImkShresponse *r, int64_t lag, double impulse, uint32_t n_frames,
    uint32_t n_pairs, double *shares)
{
  const int64_t hold = n_frames + r->settle - r->begin;

  for (int64_t j = 0; j < n_frames; j++) {
    int64_t m = floor_divide (r->settle + j - lag, hold);
    double share = impulse / n_frames / (m % 2 ? -2 : 2);

    add_at (shares, n_pairs, -floor_divide (m, 2), share);
    add_at (shares, n_pairs, -floor_divide (m + 1, 2), share);
  }
}

/* Returns: the relative error of a pair from those of the impulse. A share of
 * the pokes before or after takes away itself and half of itself. */
static double
find_shares (const ImkShresponse *r, uint32_t n_frames, uint32_t n_pairs,
    double *shares, double *alone)
{
  double squares = 0;

  memset (shares, 0, n_pairs * sizeof (*shares));
  for (uint32_t lag = r->first; lag <= r->last; lag++)
    add_lag (r, lag, r->impulse[lag], n_frames, n_pairs, shares);
  for (uint32_t lag = r->first; lag <= r->last; lag++) {
    memset (alone, 0, n_pairs * sizeof (*alone));
    add_lag (r, lag, 1, n_frames, n_pairs, alone);
    squares += (alone[0] - shares[0]) * (alone[0] - shares[0]);
  }
  return hypot (r->error * sqrt (squares), 1.5 * r->hidden) / shares[0];
}

/* By Richardson's iteration: a pair has most of itself. */
double
imk_shresponse_invert (const ImkShresponse *r, uint32_t n_frames,
    uint32_t n_pairs, double *inverse, double *scratch)
{
  double *shares = scratch, *left = scratch + n_pairs;
  double error = find_shares (r, n_frames, n_pairs, shares, left);

  memset (inverse, 0, n_pairs * sizeof (*inverse));
  for (int step = 0; step < N_STEPS; step++) {
    double most = 0;

    memset (left, 0, n_pairs * sizeof (*left));
    left[0] = 1;
    for (int64_t d = 0; d < n_pairs; d++)
      for (int64_t e = 0; fabs (inverse[d]) > 1e-12 && e < n_pairs; e++)
        if (shares[e] != 0)
          add_at (left, n_pairs, d + e, -shares[e] * inverse[d]);
    for (uint32_t d = 0; d < n_pairs; d++) {
      most = fmax (most, fabs (left[d]));
      inverse[d] += left[d] / shares[0];
    }
    if (most < 1e-9)
      break;
  }
  for (uint32_t d = 0; d < n_pairs; d++)
    if (fabs (inverse[d]) < 1e-9)
      inverse[d] = 0;
  return error;
}
