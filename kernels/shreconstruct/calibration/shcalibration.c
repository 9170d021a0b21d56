/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcalibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "shreconstruct/calibration/shresponse.h"
#include "shreconstruct/shreconstruct-private.h"

enum {
  MAX_LAG = IMK_SHCALIBRATION_MAX_LATENCY,
  PERIOD = IMK_SHRESPONSE_PERIOD,
  MOST_LAG = IMK_SHRESPONSE_MOST,
  GROUP = 32,          /* commands with a frequency each */
  GAPS = 32,           /* frames of a group in which a cell can be invalid */
  LEAST_FREE = 6,      /* degrees of freedom of a standard error */
  MOST_SPOILED = 1000, /* frames, one after the other */
};

/* With less of it the frames that are there do not tell a missing one. */
#define LEAST_PIVOT 1e-3

static const double two_pi = 6.283185307179586;

/* The estimates of one element. */
typedef struct Spread {
  double mean, squares; /* of deviations from it */
  uint32_t n;
} Spread;

struct ImkShcalibration {
  ImkShcalibrationConfig config;
  uint32_t n_slopes, n_live, *live; /* commands that are poked */
  ImkShcalibrationState state;
  uint32_t n_frames;  /* so far */
  uint32_t n_unsure;  /* frames to come that see pokes of before a gap */
  uint32_t n_spoiled; /* such frames since one that is of use */
  double progress;    /* the most so far: pokes are sent once more after gaps */
  Spread *spread;     /* [n_live][n_slopes]; HADAMARD: [order], of the patterns,
                       * and of the commands at the end */
  uint8_t *valid;     /* [n_cells], of the frame */
  uint32_t *n_valid;  /* [n_cells]: frames */

  /* the latency */
  int8_t sequence[PERIOD];
  bool has_phase[PERIOD]; /* of the sequence: a frame that is of use */
  uint32_t n_phases;
  bool is_long;        /* a second period, for a slow mirror */
  int8_t *pattern;     /* [n_live]: signs */
  double *responses;   /* [MAX_LAG + 1][n_slopes] */
  double *mean;        /* [n_slopes] */
  float *frames;       /* [PERIOD][n_slopes]: by phase */
  ImkShresponse shape; /* of the response; @last is 0 before it is known */
  double scale_errors[GROUP]; /* that its error makes, of commands in turn */

  /* pokes: frame @f of them, in repeat @repeat */
  uint32_t f, repeat, order; /* @order: of the Hadamard matrix */
  double *sum;               /* [n_slopes]: of the frames of a poke */
  uint32_t *n_seen;          /* [n_cells]: such frames */
  double *before;   /* [n_slopes]: mean of the first of a pair, or NaN */
  double *estimate; /* [order or 2 GROUP][n_slopes] */
  double *inverse;  /* [4][n_rows]: of what pairs have of each other, and
                     * scratch */
  uint32_t *n_gaps; /* [n_cells]: invalid frames of a group */
  uint32_t *gaps;   /* [n_cells][GAPS]: which */
};

void
imk_shcalibration_config_init_sized (
    ImkShcalibrationConfig *config, size_t size)
{
  const ImkShcalibrationConfig defaults = {
      .size = size, .poke = 0.1, .n_repeats = 4, .n_frames = 1};

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* --- making --------------------------------------------------------------- */

static ImkStatus
check_config (const ImkShcalibrationConfig *c, ImkError *error)
{
  uint32_t n_live = 0;

  if (c->n_cells - 1 >= IMK_SHRECONSTRUCT_MAX_CELLS ||
      c->n_commands - 1 >= IMK_SHRECONSTRUCT_MAX_COMMANDS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u cells and %u commands; there can be 1 to %d of each.",
        c->n_cells, c->n_commands, IMK_SHRECONSTRUCT_MAX_CELLS);
  if (!(c->poke > 0 && isfinite (c->poke)))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The poke is %g; it must be above 0.", c->poke);
  if (c->n_repeats < 2 || c->n_repeats > IMK_SHCALIBRATION_MAX_REPEATS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u repeats; there can be 2 to %d, as noise is the spread of "
        "several.",
        c->n_repeats, IMK_SHCALIBRATION_MAX_REPEATS);
  if (c->n_frames - 1 >= 1000)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A poke averages %u frames; it can average 1 to 1000.", c->n_frames);
  for (uint32_t i = 0; i < c->n_commands; i++)
    n_live += !c->dead || !c->dead[i];
  if (n_live == 0)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "All actuators are dead: none can be poked.");
  return IMK_OK;
}

static uint64_t
next_random (uint64_t *seed)
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

static void
make_signs (ImkShcalibration *s)
{
  uint64_t seed = 1;

  imk_shresponse_make_sequence (s->sequence);
  for (uint32_t k = 0; k < s->n_live; k++)
    s->pattern[k] = next_random (&seed) & 1 ? 1 : -1;
}

static uint32_t
n_rows (const ImkShcalibration *s)
{
  return s->config.method == IMK_SHCALIBRATION_HADAMARD ? s->order : s->n_live;
}

static bool
make_arrays (ImkShcalibration *s)
{
  const ImkShcalibrationConfig *c = &s->config;
  size_t n = s->n_slopes, n_estimates = 2 * GROUP;

  s->live = malloc (c->n_commands * sizeof (*s->live));
  if (!s->live)
    return false;
  for (uint32_t i = 0; i < c->n_commands; i++)
    if (!c->dead || !c->dead[i])
      s->live[s->n_live++] = i;
  for (s->order = 1; s->order <= s->n_live;)
    s->order *= 2;
  if (c->method == IMK_SHCALIBRATION_HADAMARD)
    n_estimates = s->order;
  s->spread = calloc (n_rows (s) * n, sizeof (*s->spread));
  s->valid = malloc (c->n_cells);
  s->n_valid = calloc (c->n_cells, sizeof (*s->n_valid));
  s->pattern = malloc (s->n_live);
  s->responses = calloc ((MAX_LAG + 1) * n, sizeof (double));
  s->mean = calloc (n, sizeof (double));
  s->frames = malloc (PERIOD * n * sizeof (float));
  s->sum = calloc (n, sizeof (double));
  s->n_seen = calloc (c->n_cells, sizeof (*s->n_seen));
  s->before = malloc (n * sizeof (double));
  s->estimate = calloc (n_estimates * n, sizeof (double));
  s->inverse = malloc ((size_t) 4 * n_rows (s) * sizeof (double));
  s->n_gaps = calloc (c->n_cells, sizeof (*s->n_gaps));
  s->gaps = malloc ((size_t) GAPS * c->n_cells * sizeof (*s->gaps));
  return s->spread && s->valid && s->n_valid && s->pattern && s->responses &&
         s->mean && s->frames && s->sum && s->n_seen && s->before &&
         s->estimate && s->inverse && s->n_gaps && s->gaps;
}

ImkStatus
imk_shcalibration_new (const ImkShcalibrationConfig *given,
    ImkShcalibration **self, ImkError *error)
{
  ImkShcalibrationConfig own;
  const ImkShcalibrationConfig *c;
  ImkShcalibration *s;
  ImkStatus status;

  imk_shcalibration_config_init (&own);
  c = imk_config_read (given, &own, "imk_shcalibration_config_init", error);
  status = c ? check_config (c, error) : IMK_ERROR_CONFIG;
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (s) {
    s->config = *c;
    s->n_slopes = 2 * c->n_cells;
  }
  if (!s || !make_arrays (s)) {
    imk_shcalibration_free (s);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for an interaction matrix of %u cells and %u "
        "commands.",
        c->n_cells, c->n_commands);
  }
  s->config.dead = NULL;
  make_signs (s);
  *self = s;
  return IMK_OK;
}

void
imk_shcalibration_free (ImkShcalibration *self)
{
  if (!self)
    return;
  free (self->live);
  free (self->spread);
  free (self->valid);
  free (self->n_valid);
  free (self->pattern);
  free (self->responses);
  free (self->mean);
  free (self->frames);
  free (self->sum);
  free (self->n_seen);
  free (self->before);
  free (self->estimate);
  free (self->inverse);
  free (self->n_gaps);
  free (self->gaps);
  free (self);
}

/* --- the latency ---------------------------------------------------------- */

static double
slope_of (const ImkShcalibration *s, const float *slopes, uint32_t i)
{
  return s->valid[i % s->config.n_cells] ? slopes[i] : 0;
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
    double slope = slope_of (s, slopes, i);

    frame[i] = s->valid[i % s->config.n_cells] ? slopes[i] : NAN;
    s->mean[i] += slope;
    for (uint32_t lag = 1; lag <= MAX_LAG; lag++)
      s->responses[(size_t) lag * s->n_slopes + i] +=
          s->sequence[(t + PERIOD - lag) % PERIOD] * slope;
  }
}

/* A frame for each phase of a period, so that the sequence is orthogonal to its
 * shifts. Returns: whether it goes on */
static bool
follow_sequence (ImkShcalibration *s, const float *slopes, float *pokes)
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

/* --- estimates ------------------------------------------------------------ */

static void
add_estimate (ImkShcalibration *s, uint32_t k, uint32_t i, double value)
{
  Spread *to = s->spread + (size_t) k * s->n_slopes + i;
  double before = value - to->mean;

  to->mean += before / ++to->n;
  to->squares += before * (value - to->mean);
}

static void
take_frame (ImkShcalibration *s, const float *slopes)
{
  for (uint32_t i = 0; i < s->n_slopes; i++)
    s->sum[i] += slope_of (s, slopes, i);
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

static int
hadamard (uint32_t row, uint32_t column)
{
  int sign = 1;

  for (uint32_t both = row & column; both; both &= both - 1)
    sign = -sign;
  return sign;
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

    if (isfinite (value))
      add_estimate (s, row, i, value);
  }
  end_poke (s, s->before);
}

/* @a, @b: become their sum and their difference */
static void
add_and_subtract (double *a, double *b, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    double sum = a[i] + b[i];

    b[i] = a[i] - b[i];
    a[i] = sum;
  }
}

/* The fast Walsh-Hadamard transform of the rows: means of patterns become the
 * responses of commands (Pratt, Kane and Andrews 1969, Proc. IEEE 57, 58),
 * some slopes at a time, which the cache holds in all rows. */
static void
transform (ImkShcalibration *s)
{
  enum { BLOCK = 64 };

  for (uint32_t i = 0; i < s->n_slopes; i += BLOCK) {
    uint32_t n = s->n_slopes - i < BLOCK ? s->n_slopes - i : BLOCK;

    for (uint32_t half = 1; half < s->order; half *= 2)
      for (uint32_t row = 0; row < s->order; row++)
        if (!(row & half))
          add_and_subtract (s->estimate + (size_t) row * s->n_slopes + i,
              s->estimate + (size_t) (row + half) * s->n_slopes + i, n);
  }
}

/* @means: [n_rows]: become those without what pairs have of each other. Of one
 * that is missing, the others that have a part of it are missing, too. */
static void
invert_means (const ImkShcalibration *s, const Spread *of, double *means)
{
  const uint32_t n = n_rows (s);
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
  const uint32_t n = n_rows (s);
  double *means = s->inverse + 2 * (size_t) n, gain = 0, error;

  error = imk_shresponse_invert (
      &s->shape, s->config.n_frames, n, s->inverse, s->inverse + n);
  for (uint32_t k = 0; k < GROUP; k++)
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

/* @variance: (out): [n_slopes]: of each sum over the means of the patterns, NaN
 *   where no pattern has a spread, infinite for a cell that one does not have
 */
static void
add_variances (ImkShcalibration *s, double *variance)
{
  double *squares = s->sum, *n_free = s->mean; /* not needed any more */
  const size_t n = s->n_slopes;

  memset (squares, 0, n * sizeof (double));
  memset (n_free, 0, n * sizeof (double));
  memset (variance, 0, n * sizeof (double));
  for (uint32_t row = 0; row < s->order; row++)
    for (size_t i = 0; i < n; i++) {
      const Spread *of = s->spread + row * n + i;

      squares[i] += of->squares;
      n_free[i] += of->n ? of->n - 1 : 0;
      variance[i] += 1.0 / of->n;
    }
  for (size_t i = 0; i < n; i++)
    if (isfinite (variance[i]))
      variance[i] *= squares[i] / n_free[i];
}

/* From patterns to commands. All patterns have one noise, so that one which was
 * seen once is of use, and has an error. */
static void
end_patterns (ImkShcalibration *s)
{
  const double order = s->order;
  double *variance = s->before;

  add_variances (s, variance);
  for (size_t i = 0; i < (size_t) s->order * s->n_slopes; i++)
    s->estimate[i] = s->spread[i].mean / order;
  transform (s);
  for (uint32_t k = 0; k < s->n_live; k++)
    for (uint32_t i = 0; i < s->n_slopes; i++) {
      Spread *to = s->spread + (size_t) k * s->n_slopes + i;

      *to = (Spread){0};
      if (isinf (variance[i]))
        continue;
      to->mean = s->estimate[(size_t) (k + 1) * s->n_slopes + i];
      to->n = isnan (variance[i]) ? 1 : 2; /* of 2, the error is this: */
      to->squares = isnan (variance[i]) ? 0 : 2 * variance[i] / order / order;
    }
}

/* --- pokes one after the other -------------------------------------------- */

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
      pokes[s->live[k]] = (float) (value * hadamard (poke / 2, k + 1));
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
  const uint32_t n_pokes = 2 * n_rows (s), n_before = r->last - r->settle;
  const uint64_t n_sent = (uint64_t) n_pokes * s->config.n_repeats * hold;
  const uint32_t n_ahead = 2 * (1 + n_before / (n_pokes * hold)); /* even */
  uint32_t sent;

  if (s->f >= n_sent + n_before + r->begin - r->first)
    return;
  sent = (s->f + n_ahead * n_pokes * hold - n_before) / hold;
  set_pokes (s, sent / n_pokes, sent % n_pokes, pokes);
}

static void
follow_pairs (ImkShcalibration *s, const float *slopes, float *pokes)
{
  const uint32_t n_frames = s->config.n_frames, last = s->shape.last;
  const uint32_t hold = n_frames + s->shape.settle - s->shape.begin;
  const uint32_t n_pokes = 2 * n_rows (s);

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
    undo_overlap (s);
    if (s->config.method == IMK_SHCALIBRATION_HADAMARD)
      end_patterns (s);
    s->state = IMK_SHCALIBRATION_DONE;
  } else
    send_pokes (s, hold, pokes);
}

/* --- pokes of a frequency each -------------------------------------------- */

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
    const double *sines = s->estimate + ((size_t) GROUP + k) * s->n_slopes;

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
    s->estimate[((size_t) GROUP + k) * s->n_slopes + i] += sin (phase) * slope;
  }
}

/* Gauss and Jordan: @rows [n] [n unknowns and 2 right sides].
 * Returns: whether the matrix, which is positive, is not near to a singular
 * one */
static bool
solve (double rows[GAPS][GAPS + 2], uint32_t n)
{
  for (uint32_t p = 0; p < n; p++) {
    if (!(rows[p][p] > LEAST_PIVOT))
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
  const uint32_t *gaps = s->gaps + (size_t) cell * GAPS;
  double rows[GAPS][GAPS + 2];

  if (n_gaps > GAPS || n_gaps > period / 4)
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
        add_estimate (
            s, first + k, i, s->estimate[(size_t) k * s->n_slopes + i]);
  memset (s->estimate, 0, (size_t) 2 * GROUP * s->n_slopes * sizeof (double));
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
    double *sines = s->estimate + ((size_t) GROUP + k) * s->n_slopes;

    for (uint32_t lag = s->shape.first; lag <= s->shape.last; lag++) {
      re += s->shape.impulse[lag] * cos (omega * lag);
      im -= s->shape.impulse[lag] * sin (omega * lag);
    }
    s->scale_errors[k] = scale_error_at (s, omega, re, im);
    /* slopes are D poke (re sin + im cos) of the time */
    power = (re * re + im * im) * s->config.poke * period / 2;
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
      if (s->n_gaps[i] < GAPS)
        s->gaps[(size_t) i * GAPS + s->n_gaps[i]] = t;
      s->n_gaps[i]++;
    }
}

static uint32_t
period_of (const ImkShcalibration *s)
{
  return 8 * (s->n_live < GROUP ? s->n_live : GROUP) * s->config.n_frames;
}

static void
follow_waves (ImkShcalibration *s, const float *slopes, float *pokes)
{
  uint32_t n_in_group = s->n_live < GROUP ? s->n_live : GROUP;
  uint32_t period = period_of (s);
  uint32_t n_groups = (s->n_live + n_in_group - 1) / n_in_group;
  uint32_t t = s->f % (period + s->shape.last),
           all = s->f / (period + s->shape.last);
  uint32_t first = all % n_groups * n_in_group;
  uint32_t n = s->n_live - first < n_in_group ? s->n_live - first : n_in_group;

  if (all == s->config.n_repeats * n_groups) {
    s->state = IMK_SHCALIBRATION_DONE;
    return;
  }
  for (uint32_t k = 0; k < n; k++)
    pokes[s->live[first + k]] =
        (float) (s->config.poke * sin (two_pi * (k + 1) * t / period));
  if (t < s->shape.last || s->n_unsure > 0)
    return;
  note_gaps (s, t);
  for (uint32_t i = 0; i < s->n_slopes; i++)
    s->sum[i] += slope_of (s, slopes, i);
  for (uint32_t k = 0; k < n; k++) {
    double phase = two_pi * ((uint64_t) (k + 1) * t % period) / period;
    double c = cos (phase), d = sin (phase);
    double *cosines = s->estimate + (size_t) k * s->n_slopes;
    double *sines = s->estimate + ((size_t) GROUP + k) * s->n_slopes;

    for (uint32_t i = 0; i < s->n_slopes; i++) {
      double slope = slope_of (s, slopes, i);

      cosines[i] += c * slope;
      sines[i] += d * slope;
    }
  }
  if (t + 1 == period + s->shape.last) {
    end_group (s, first, n, period);
    s->repeat = (all + 1) / n_groups;
  }
}

/* --- a frame -------------------------------------------------------------- */

/* Pokes are sent once more from the next one that would have been seen. Waves
 * do not go back to the group before. */
void
imk_shcalibration_interrupt (ImkShcalibration *self)
{
  uint32_t sent = self->f, unseen = self->shape.last;

  if (self->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
    sent %= period_of (self) + self->shape.last;
  if (self->shape.last > 0)
    unseen -= self->n_unsure; /* after a gap just before */
  self->f -= sent < unseen ? sent : unseen;
  self->n_unsure = self->shape.last ? self->shape.last
                   : self->is_long  ? MOST_LAG
                                    : MAX_LAG;
}

/* Whether frames are missing so often that none is of use. */
static void
count_spoiled (ImkShcalibration *s)
{
  s->n_spoiled = s->n_unsure > 0 ? s->n_spoiled + 1 : 0;
  s->n_unsure -= s->n_unsure > 0;
  if (s->n_spoiled == MOST_SPOILED && s->state == IMK_SHCALIBRATION_RUNNING)
    s->state = IMK_SHCALIBRATION_GAPS;
}

static void
note_progress (ImkShcalibration *s)
{
  const ImkShresponse *r = &s->shape;
  const uint32_t n_groups = (s->n_live + GROUP - 1) / GROUP;
  double n_pokes =
      2.0 * n_rows (s) * (s->config.n_frames + r->settle - r->begin);

  if (s->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
    n_pokes = (double) n_groups * (period_of (s) + r->last);
  n_pokes = n_pokes * s->config.n_repeats + r->last;
  s->progress = fmax (s->progress,
      (s->f + (r->last > 0 ? PERIOD : s->n_phases)) / (n_pokes + PERIOD));
}

ImkShcalibrationState
imk_shcalibration_process (ImkShcalibration *self, const float *slopes,
    const uint8_t *flags, float *pokes)
{
  uint32_t n_cells = self->config.n_cells;

  memset (pokes, 0, self->config.n_commands * sizeof (*pokes));
  if (self->state != IMK_SHCALIBRATION_RUNNING)
    return self->state;
  for (uint32_t i = 0; i < n_cells; i++)
    self->valid[i] = imk_shreconstruct_is_valid (
        slopes[i], slopes[n_cells + i], flags ? flags[i] : 0);
  for (uint32_t i = 0; i < n_cells; i++)
    self->n_valid[i] += self->valid[i];
  if ((self->shape.last > 0 || !follow_sequence (self, slopes, pokes)) &&
      self->state == IMK_SHCALIBRATION_RUNNING) {
    if (self->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
      follow_waves (self, slopes, pokes);
    else
      follow_pairs (self, slopes, pokes);
    self->f++;
  }
  self->n_frames++;
  note_progress (self);
  count_spoiled (self);
  return self->state;
}

double
imk_shcalibration_progress (const ImkShcalibration *self)
{
  return self->state == IMK_SHCALIBRATION_DONE ? 1 : self->progress;
}

/* --- the noise ------------------------------------------------------------ */

/* Commands whose estimates have a noise of their own: of pairs all have the
 * same, and of waves those of a frequency. Patterns are pooled already. */
static uint32_t
n_kinds (const ImkShcalibration *s)
{
  if (s->config.method == IMK_SHCALIBRATION_PUSH_PULL)
    return 1;
  return s->n_live < GROUP ? s->n_live : GROUP;
}

/* @estimate, which is not needed any more: of each kind and slope the squares
 * of all spreads, and then their degrees of freedom. */
static void
pool_spreads (const ImkShcalibration *s)
{
  const size_t n = s->n_slopes, n_all = GROUP * n;

  memset (s->estimate, 0, 2 * n_all * sizeof (double));
  for (uint32_t k = 0; k < s->n_live; k++)
    for (size_t i = 0; i < n; i++) {
      const Spread *spread = s->spread + k * n + i;
      double *of_kind = s->estimate + k % n_kinds (s) * n + i;

      of_kind[0] += spread->squares;
      of_kind[n_all] += spread->n ? spread->n - 1 : 0;
    }
}

/* Of the kinds up to @reach from @kind. @n_free: (out): degrees of freedom
 * Returns: the sum of squares */
static double
sum_squares (const ImkShcalibration *s, uint32_t kind, uint32_t reach,
    uint32_t i, double *n_free)
{
  const uint32_t first = kind > reach ? kind - reach : 0;
  double squares = 0;

  *n_free = 0;
  for (uint32_t near = first; near <= kind + reach && near < n_kinds (s);
       near++) {
    const double *of_kind = s->estimate + (size_t) near * s->n_slopes + i;

    squares += of_kind[0];
    *n_free += of_kind[(size_t) GROUP * s->n_slopes];
  }
  return squares;
}

/* Of few repeats one element does not tell its noise: with two its error is
 * anything from 0 to twice the true one. Noise that drifts is another one for
 * each frequency, but nearly the same for the next. */
static double
spread_of (const ImkShcalibration *s, uint32_t k, uint32_t i)
{
  const Spread *spread = s->spread + (size_t) k * s->n_slopes + i;
  double squares = 0, n_free = 0;

  if (s->config.method == IMK_SHCALIBRATION_HADAMARD)
    return spread->n < 2 ? INFINITY : sqrt (spread->squares / 2);
  for (uint32_t reach = 1; n_free < LEAST_FREE && reach <= n_kinds (s); reach++)
    squares = sum_squares (s, k % n_kinds (s), reach, i, &n_free);
  return spread->n > 0 && n_free > 0 ? sqrt (squares / n_free / spread->n)
                                     : INFINITY;
}

static double
error_of (const ImkShcalibration *s, uint32_t k, uint32_t i)
{
  const double mean = s->spread[(size_t) k * s->n_slopes + i].mean;

  return hypot (spread_of (s, k, i), mean * s->scale_errors[k % GROUP]);
}

/* Returns: commands without an estimate for it */
static uint32_t
count_unseen (const ImkShcalibration *s, uint32_t cell)
{
  uint32_t n = 0;

  for (uint32_t k = 0; k < s->n_live; k++)
    n += s->spread[(size_t) k * s->n_slopes + cell].n == 0;
  return n;
}

void
imk_shcalibration_result (const ImkShcalibration *self, float *interaction,
    float *noise, ImkShcalibrationReport *report)
{
  size_t n_commands = self->config.n_commands, n = 0;
  double squares = 0, errors = 0;

  *report = (ImkShcalibrationReport){.latency = self->shape.latency,
      .first = self->shape.first,
      .last = self->shape.last,
      .n_frames = self->n_frames,
      .is_linear = self->shape.is_linear,
      .is_settled = self->shape.is_settled};
  memset (interaction, 0, n_commands * self->n_slopes * sizeof (float));
  for (size_t i = 0; i < n_commands * self->n_slopes; i++)
    noise[i] = INFINITY;
  if (self->config.method != IMK_SHCALIBRATION_HADAMARD)
    pool_spreads (self);
  for (uint32_t k = 0; k < self->n_live; k++)
    for (uint32_t i = 0; i < self->n_slopes; i++) {
      const Spread *spread = self->spread + (size_t) k * self->n_slopes + i;
      size_t at = i * n_commands + self->live[k];
      double error = error_of (self, k, i);

      interaction[at] = (float) spread->mean;
      noise[at] = (float) error;
      squares += spread->mean * spread->mean;
      if (isfinite (error)) {
        errors += error * error;
        n++;
      }
    }
  for (uint32_t i = 0; i < self->config.n_cells; i++) {
    uint32_t n_missing = count_unseen (self, i);

    report->n_unseen += n_missing == self->n_live;
    report->n_lost += n_missing > 0 && self->n_valid[i] > self->n_frames / 2;
  }
  report->rms = sqrt (squares / ((double) self->n_live * self->n_slopes));
  report->noise = n ? sqrt (errors / (double) n) : INFINITY;
}
