/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shdivergence.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

/* Numbers of frames. With a latency of 1 to 3 frames a mirror acts after
 * N_AT_CLOSING. */
enum {
  N_AT_CLOSING = 3,
  MIN_IN_WINDOW = 50,
  N_COUNTED = IMK_SHDIVERGENCE_COUNTED,
  MIN_LOST = 50, /* of N_COUNTED, without half of the cells */
  MIN_LIMITED = IMK_SHDIVERGENCE_LIMITED_FRAMES, /* of N_COUNTED */
};
enum { N_WINDOWS = 3, N_LIGHTS = 5, TERMS = IMK_SHRECONSTRUCT_MAX_TERMS };

/* Bounds that a simulated loop which holds keeps: see imk/shdivergence.h. The
 * rms is compared with the one at closing. */
#define MIN_GROWTH_OF_LASTING 1.2
#define MIN_GROWTH_OF_JUMPING 2.5
#define MIN_GROWTH_BEFORE_LOSS 2.0
#define MIN_OF_LARGEST 0.7 /* rms, compared with its largest value */
#define MIN_LASTING 0.4    /* share of the mean square of corrections */
#define MIN_JUMP 0.5       /* of the coefficients, from a frame to the next */
#define MIN_GROWTH_BY_COMMANDS 2.7
#define MIN_ALIGNED 0.8 /* cosine of corrections and their sum */
#define MAX_DISPROPORTION 1.6
#define MIN_OF_LARGEST_BY_COMMANDS 0.4
#define MIN_UNCORRECTED 0.7 /* rms of what lasts by that of coefficients */

/* Of frames that are followed by a verdict on all of them. The corrections u
 * are what the sensor asks for. */
typedef struct Window {
  uint32_t n_frames;
  double squares, added; /* sums of mean squares of u, and of what it adds */
  double coefficients, coefficient_steps; /* likewise */
} Window;

/* Since the loop closed. Squares are mean squares. */
typedef struct Loop {
  uint32_t n_frames, n_at_closing;
  double slopes_at_closing, recent_slopes; /* squares */
  double at_closing;                       /* likewise, of u */
  double recent, largest;                  /* the latter of all recent ones */
  double proportional; /* square of u from which on its sum grows like it, or
                        * 0 */
  double proportion;   /* of both squares then */
  double growth; /* the most of u since, to a new largest, of the square */
  uint32_t most_valid;              /* cells of a frame */
  uint32_t n_light_counted, n_lost; /* of up to N_COUNTED frames */
  uint32_t n_limits_counted, n_limited;
  uint32_t n_in_light, n_lights_away; /* frames, and lights one by one */
  double begin_of_light;              /* square of the slopes */
  Window window;
  uint32_t n_windows_away; /* the last ones, without a gap */
  bool is_told;
} Loop;

/* Arrays are [n_modes]. */
struct ImkShdivergence {
  uint32_t n_cells, n_modes, n_commands;
  float *offsets; /* [2 n_cells] */
  bool restarts_in_the_dark;
  uint32_t n_feedback;
  double *feedback; /* [n_modes][TERMS] */
  double *per_gain; /* 1 / sum of b, or 0 without any */
  float *past;      /* [TERMS][n_modes]: coefficients, a ring */
  uint32_t newest;  /* row of them */
  double *sent;     /* what u has added to the coefficients, leaks apart */
  double *sums;     /* of u in the window */
  double *means;    /* of u over the window before, or 0 */
  Loop loop;
};

ImkStatus
imk_shdivergence_new (uint32_t n_cells, uint32_t n_modes, uint32_t n_commands,
    ImkShdivergence **self, ImkError *error)
{
  ImkShdivergence *s = calloc (1, sizeof (*s));

  if (s) {
    *s = (ImkShdivergence){.n_cells = n_cells,
        .n_modes = n_modes,
        .n_commands = n_commands,
        .offsets = calloc (2 * (size_t) n_cells, sizeof (float)),
        .feedback = calloc ((size_t) TERMS * n_modes, sizeof (double)),
        .per_gain = calloc (n_modes, sizeof (double)),
        .past = calloc ((size_t) TERMS * n_modes, sizeof (float)),
        .sent = calloc (n_modes, sizeof (double)),
        .sums = calloc (n_modes, sizeof (double)),
        .means = calloc (n_modes, sizeof (double))};
    if (s->offsets && s->feedback && s->per_gain && s->past && s->sent &&
        s->sums && s->means) {
      *self = s;
      return IMK_OK;
    }
  }
  imk_shdivergence_free (s);
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory to watch a loop of %u cells and %u modes.", n_cells,
      n_modes);
}

void
imk_shdivergence_free (ImkShdivergence *self)
{
  if (!self)
    return;
  free (self->offsets);
  free (self->feedback);
  free (self->per_gain);
  free (self->past);
  free (self->sent);
  free (self->sums);
  free (self->means);
  free (self);
}

void
imk_shdivergence_set_controller (
    ImkShdivergence *self, const ImkShreconstructConfig *c)
{
  const size_t size = 2 * (size_t) self->n_cells * sizeof (*c->offsets);

  if (c->offsets)
    memcpy (self->offsets, c->offsets, size);
  else
    memset (self->offsets, 0, size);
  self->restarts_in_the_dark = c->dark == IMK_SHRECONSTRUCT_DARK_REFERENCE;
  self->n_feedback = c->n_forward ? c->n_feedback : 1;
  for (uint32_t m = 0; m < self->n_modes; m++) {
    double gain = c->n_forward ? 0 : c->gain;

    for (uint32_t j = 0; j < c->n_forward; j++)
      gain += c->forward[(size_t) m * c->n_forward + j];
    self->per_gain[m] = gain != 0 ? 1 / gain : 0;
    for (uint32_t i = 0; i < self->n_feedback; i++)
      self->feedback[(size_t) m * TERMS + i] =
          c->n_forward ? c->feedback[(size_t) m * c->n_feedback + i]
                       : 1 - c->leak;
  }
}

static void
set_past (ImkShdivergence *self, const float *coefficients)
{
  for (uint32_t i = 0; i < TERMS; i++)
    memcpy (self->past + (size_t) i * self->n_modes, coefficients,
        self->n_modes * sizeof (*coefficients));
}

void
imk_shdivergence_begin (ImkShdivergence *self, const float *coefficients)
{
  set_past (self, coefficients);
  memset (self->sent, 0, self->n_modes * sizeof (*self->sent));
  memset (self->means, 0, self->n_modes * sizeof (*self->means));
  self->loop = (Loop){0};
}

/* --- residual slopes ------------------------------------------------------ */

/* Returns: their mean square over the valid cells; NaN without any */
static double
measure_slopes (
    const ImkShdivergence *self, const float *slopes, const uint8_t *flags)
{
  const uint32_t n = self->n_cells;
  double squares = 0;
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    const float x = slopes[i] - self->offsets[i];
    const float y = slopes[n + i] - self->offsets[n + i];

    if (!imk_shreconstruct_is_valid (
            slopes[i], slopes[n + i], flags ? flags[i] : 0))
      continue;
    squares += (double) (x * x + y * y);
    n_valid++;
  }
  return n_valid > 0 ? squares / (2.0 * n_valid) : NAN;
}

/* Spots that leave their cells are lost, and move the mirror no more. Without
 * any valid cell the light may be lost, unless the commands made the slopes.
 * Returns: whether they have left */
static bool
follow_loss (Loop *l, double square, uint32_t n_valid)
{
  bool is_lost;

  if (n_valid > l->most_valid)
    l->most_valid = n_valid;
  if (2 * n_valid <= l->most_valid)
    l->n_lost += n_valid > 0 ||
                 l->growth > MIN_GROWTH_BEFORE_LOSS * MIN_GROWTH_BEFORE_LOSS;
  else if (isfinite (square))
    l->recent_slopes += (square - l->recent_slopes) / N_AT_CLOSING;
  if (++l->n_light_counted < N_COUNTED)
    return false;
  is_lost = l->n_lost >= MIN_LOST;
  l->n_light_counted = l->n_lost = 0;
  return is_lost && l->recent_slopes > MIN_GROWTH_BEFORE_LOSS *
                                           MIN_GROWTH_BEFORE_LOSS *
                                           l->slopes_at_closing;
}

/* Where dark frames bring the mirror back to the reference, a loop that drives
 * away loses the spots and finds them again, and each light ends with slopes
 * that are larger than without the mirror.
 * Returns: whether so many lights did */
static bool
follow_lights (Loop *l, double square, bool is_dark)
{
  const bool is_away =
      l->recent_slopes >
      MIN_GROWTH_BEFORE_LOSS * MIN_GROWTH_BEFORE_LOSS * l->begin_of_light;

  if (!is_dark && isfinite (square) && l->n_in_light < N_AT_CLOSING)
    l->begin_of_light += (square - l->begin_of_light) / (l->n_in_light + 1);
  if (is_dark && l->n_in_light > N_AT_CLOSING)
    l->n_lights_away = is_away ? l->n_lights_away + 1 : 0;
  l->n_in_light = is_dark ? 0 : l->n_in_light + 1;
  return l->n_lights_away >= N_LIGHTS;
}

/* --- limits --------------------------------------------------------------- */

static bool
follow_limits (Loop *l, uint32_t n_limited, uint32_t n_commands)
{
  bool is_limited;

  l->n_limited += 2 * n_limited >= n_commands;
  if (++l->n_limits_counted < N_COUNTED)
    return false;
  is_limited = l->n_limited >= MIN_LIMITED;
  l->n_limits_counted = l->n_limited = 0;
  return is_limited;
}

/* --- corrections ---------------------------------------------------------- */

/* q[t] - sum a_i q[t-i] of the controller's rule: what u has added. */
static double
added_to (const ImkShdivergence *self, uint32_t m, double coefficient)
{
  const double *a = self->feedback + (size_t) m * TERMS;

  for (uint32_t i = 0; i < self->n_feedback; i++) {
    const uint32_t row = (self->newest + i) % TERMS;

    coefficient -= a[i] * (double) self->past[(size_t) row * self->n_modes + m];
  }
  return self->per_gain[m] != 0 ? coefficient : 0;
}

/* What a frame has: mean squares over the modes. */
typedef struct Corrections {
  double square;      /* of u */
  double added, sent; /* of what u adds, and had added before */
  double along;       /* mean product of u and the latter */
  double coefficients, coefficient_steps;
} Corrections;

/* Adds a frame to the sums of the window. What was added is sum b_j u, as if u
 * were the same in the frames of all b_j. */
static Corrections
add_coefficients (ImkShdivergence *self, const float *values)
{
  const uint32_t n = self->n_modes;
  const float *before = self->past + (size_t) self->newest * n;
  Corrections c = {0};

  for (uint32_t m = 0; m < n; m++) {
    const double value = (double) values[m];
    const double added = added_to (self, m, value);
    const double u = added * self->per_gain[m];
    const double moved = value - (double) before[m];

    c.sent += self->sent[m] * self->sent[m];
    c.along += u * self->sent[m];
    self->sums[m] += u;
    self->sent[m] += added;
    c.square += u * u;
    c.added += added * added;
    c.coefficients += value * value;
    c.coefficient_steps += moved * moved;
  }
  self->newest = (self->newest + TERMS - 1) % TERMS;
  memcpy (
      self->past + (size_t) self->newest * n, values, n * sizeof (*self->past));
  return (Corrections){c.square / n, c.added / n, c.sent / n, c.along / n,
      c.coefficients / n, c.coefficient_steps / n};
}

/* Of a loop with the wrong sign, corrections and what they have sent grow in
 * proportion, in the same direction: by exp (t). The factor is that of R D, so
 * it may be any. Of a motion that grows by t^n, what was sent grows by t once
 * more. */
static void
follow_growth (Loop *l, const Corrections *c)
{
  const double proportion = c->square / c->sent;
  const double most = MAX_DISPROPORTION * MAX_DISPROPORTION;

  if (!(c->along > MIN_ALIGNED * sqrt (c->square * c->sent))) {
    l->proportional = 0;
    return;
  }
  if (l->proportional == 0 || proportion > most * l->proportion ||
      most * proportion < l->proportion) {
    l->proportional = fmax (c->square, l->at_closing);
    l->proportion = proportion;
  }
  if (c->square > l->largest)
    l->growth = fmax (l->growth, c->square / l->proportional);
}

/* --- windows -------------------------------------------------------------- */

static void
begin_window (ImkShdivergence *self)
{
  memset (self->sums, 0, self->n_modes * sizeof (*self->sums));
  self->loop.window = (Window){0};
}

/* Returns: mean product of the means of u over the window and the one before: a
 * vibration turns its sign */
static double
measure_lasting (const ImkShdivergence *self)
{
  const double n = self->loop.window.n_frames;
  double lasting = 0;

  for (uint32_t m = 0; m < self->n_modes; m++)
    lasting += self->sums[m] / n * self->means[m] / self->n_modes;
  return lasting;
}

/* A window is so long that the commands could take away what lasts. Corrections
 * that grow are larger at its end than in its mean.
 * @coefficients: their mean square at its end
 * Returns: whether the loop drives away in enough windows, one after the other
 */
static bool
end_window (ImkShdivergence *self, double coefficients)
{
  Loop *l = &self->loop;
  const Window *w = &l->window;
  const double mean = w->squares / w->n_frames;
  const double now = fmax (mean, l->recent);
  const bool stays = now > MIN_OF_LARGEST * MIN_OF_LARGEST * l->largest;
  const bool grew =
      now > MIN_GROWTH_OF_LASTING * MIN_GROWTH_OF_LASTING * l->at_closing;
  const bool jumps =
      stays &&
      now > MIN_GROWTH_OF_JUMPING * MIN_GROWTH_OF_JUMPING * l->at_closing &&
      w->coefficient_steps > MIN_JUMP * MIN_JUMP * w->coefficients;
  const bool is_by_commands =
      l->growth > MIN_GROWTH_BY_COMMANDS * MIN_GROWTH_BY_COMMANDS &&
      now >
          MIN_OF_LARGEST_BY_COMMANDS * MIN_OF_LARGEST_BY_COMMANDS * l->largest;
  const double lasting = measure_lasting (self);
  const bool lasts = lasting > MIN_LASTING * mean &&
                     lasting > MIN_UNCORRECTED * MIN_UNCORRECTED * coefficients;

  l->n_windows_away = (grew && (is_by_commands || (stays && lasts))) || jumps
                          ? l->n_windows_away + 1
                          : 0;
  return l->n_windows_away >= N_WINDOWS;
}

static bool
follow_windows (ImkShdivergence *self, double slopes, const float *coefficients)
{
  Loop *l = &self->loop;
  Window *w = &l->window;
  const Corrections c = add_coefficients (self, coefficients);
  bool is_away;

  follow_growth (l, &c);
  if (l->n_at_closing < N_AT_CLOSING) {
    l->slopes_at_closing += slopes / N_AT_CLOSING;
    l->at_closing += c.square / N_AT_CLOSING;
    if (++l->n_at_closing == N_AT_CLOSING)
      begin_window (self);
    return false;
  }
  l->recent += (c.square - l->recent) / N_AT_CLOSING;
  l->largest = fmax (l->largest, l->recent);
  w->squares += c.square;
  w->added += c.added;
  w->coefficients += c.coefficients;
  w->coefficient_steps += c.coefficient_steps;
  w->n_frames++;
  if (w->n_frames < MIN_IN_WINDOW ||
      !((double) w->n_frames * w->n_frames * w->added >= w->squares))
    return false;
  is_away = end_window (self, c.coefficients);
  for (uint32_t m = 0; m < self->n_modes; m++)
    self->means[m] = self->sums[m] / w->n_frames;
  begin_window (self);
  return is_away;
}

/* --- a frame -------------------------------------------------------------- */

ImkShdivergenceVerdict
imk_shdivergence_follow (ImkShdivergence *self, const float *slopes,
    const uint8_t *flags, const float *coefficients,
    const ImkShreconstructReport *frame, ImkShdivergenceReport *report)
{
  Loop *l = &self->loop;
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  double square = NAN;

  if (l->is_told)
    return verdict;
  l->n_frames++;
  if (slopes)
    square = measure_slopes (self, slopes, flags);
  if (follow_loss (l, square, frame->n_valid) ||
      (follow_lights (l, square, frame->is_dark) && self->restarts_in_the_dark))
    verdict = IMK_SHDIVERGENCE_SLOPES;
  if (frame->is_dark || !isfinite (square))
    set_past (self, coefficients);
  else if (follow_windows (self, square, coefficients))
    verdict = IMK_SHDIVERGENCE_SLOPES;
  if (!frame->is_dark && follow_limits (l, frame->n_limited, self->n_commands))
    verdict = IMK_SHDIVERGENCE_LIMITED;
  l->is_told = verdict != IMK_SHDIVERGENCE_NONE;
  if (l->is_told)
    *report = (ImkShdivergenceReport){
        l->n_frames, sqrt (l->slopes_at_closing), sqrt (l->recent_slopes)};
  return verdict;
}
