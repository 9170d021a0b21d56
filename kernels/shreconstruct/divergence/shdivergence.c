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
  N_IN_WINDOW = 50,
  N_COUNTED = IMK_SHDIVERGENCE_COUNTED,
  MIN_LOST = 50, /* of N_COUNTED, without half of the cells */
  MIN_LIMITED = IMK_SHDIVERGENCE_LIMITED_FRAMES, /* of N_COUNTED */
};
enum { N_WINDOWS = 3 };

/* Bounds that a simulated loop which holds keeps: see imk/shdivergence.h. The
 * rms is compared with the one at closing. */
#define MIN_GROWTH_OF_LASTING 1.2
#define MIN_GROWTH_OF_JUMPING 2.5
#define MIN_GROWTH_BEFORE_LOSS 2.0
#define MIN_OF_LARGEST 0.7 /* rms, compared with its largest value */
#define MIN_LASTING 0.4    /* share of the mean square of residual slopes */
#define MIN_JUMP 0.22      /* of the coefficients, from a frame to the next */

/* Of frames that are followed by a verdict on all of them. */
typedef struct Window {
  uint32_t n_frames, n_measured;          /* the latter have valid cells */
  double squares;                         /* sum of mean squares of slopes */
  double coefficients, coefficient_steps; /* likewise */
} Window;

/* Since the loop closed. Squares are mean squares of residual slopes. */
typedef struct Loop {
  uint32_t n_frames, n_at_closing;
  double square_at_closing;             /* of @n_at_closing frames */
  double recent_square, largest_square; /* the latter of all recent ones */
  uint32_t most_valid;                  /* cells of a frame */
  uint32_t n_light_counted, n_lost;     /* of up to N_COUNTED frames */
  uint32_t n_limits_counted, n_limited;
  Window window;
  uint32_t n_windows_away; /* the last ones, without a gap */
  bool has_coefficients, is_told;
} Loop;

struct ImkShdivergence {
  uint32_t n_cells, n_modes, n_commands;
  float *offsets;      /* [2 n_cells] */
  float *coefficients; /* [n_modes]: of the frame before */
  double *sums;        /* [2 n_cells]: of each residual slope, in the window */
  Loop loop;
};

ImkStatus
imk_shdivergence_new (uint32_t n_cells, uint32_t n_modes, uint32_t n_commands,
    ImkShdivergence **self, ImkError *error)
{
  const size_t n_slopes = 2 * (size_t) n_cells;
  ImkShdivergence *s = calloc (1, sizeof (*s));

  if (s) {
    *s = (ImkShdivergence){.n_cells = n_cells,
        .n_modes = n_modes,
        .n_commands = n_commands,
        .offsets = calloc (n_slopes, sizeof (float)),
        .coefficients = calloc (n_modes, sizeof (float)),
        .sums = calloc (n_slopes, sizeof (double))};
    if (s->offsets && s->coefficients && s->sums) {
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
  free (self->coefficients);
  free (self->sums);
  free (self);
}

void
imk_shdivergence_set_offsets (ImkShdivergence *self, const float *offsets)
{
  const size_t size = 2 * (size_t) self->n_cells * sizeof (*offsets);

  if (offsets)
    memcpy (self->offsets, offsets, size);
  else
    memset (self->offsets, 0, size);
}

void
imk_shdivergence_begin (ImkShdivergence *self)
{
  self->loop = (Loop){0};
}

/* --- residual slopes ------------------------------------------------------ */

/* @in_window: adds them to the sums of the window
 * Returns: their mean square over the valid cells; NaN without any */
static double
measure_slopes (ImkShdivergence *self, const float *slopes,
    const uint8_t *flags, bool in_window)
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
    if (in_window) {
      self->sums[i] += (double) x;
      self->sums[n + i] += (double) y;
    }
  }
  return n_valid > 0 ? squares / (2.0 * n_valid) : NAN;
}

/* Returns: mean square of the slopes' means over the window */
static double
lasting_square (const ImkShdivergence *self)
{
  const double n = self->loop.window.n_measured;
  double squares = 0;

  for (size_t i = 0; i < 2 * (size_t) self->n_cells; i++)
    squares += self->sums[i] * self->sums[i];
  return squares / n / n / (2.0 * self->loop.most_valid);
}

/* Spots that leave their cells are lost, and move the mirror no more.
 * Returns: whether they have left */
static bool
follow_loss (Loop *l, double square, uint32_t n_valid)
{
  bool is_lost;

  if (n_valid > l->most_valid)
    l->most_valid = n_valid;
  if (2 * n_valid <= l->most_valid)
    l->n_lost++;
  else if (isfinite (square)) {
    l->recent_square += (square - l->recent_square) / N_AT_CLOSING;
    l->largest_square = fmax (l->largest_square, l->recent_square);
  }
  if (++l->n_light_counted < N_COUNTED)
    return false;
  is_lost = l->n_lost >= MIN_LOST;
  l->n_light_counted = l->n_lost = 0;
  return is_lost && l->recent_square > MIN_GROWTH_BEFORE_LOSS *
                                           MIN_GROWTH_BEFORE_LOSS *
                                           l->square_at_closing;
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

/* --- windows -------------------------------------------------------------- */

static void
begin_window (ImkShdivergence *self)
{
  memset (self->sums, 0, 2 * (size_t) self->n_cells * sizeof (*self->sums));
  self->loop.window = (Window){0};
}

static void
add_coefficients (ImkShdivergence *self, const float *values)
{
  const bool has_before = self->loop.has_coefficients;
  double squares = 0, steps = 0;

  for (uint32_t m = 0; m < self->n_modes; m++) {
    const double step = has_before ? values[m] - self->coefficients[m] : 0;

    squares += (double) values[m] * values[m];
    steps += step * step;
  }
  memcpy (self->coefficients, values, self->n_modes * sizeof (*values));
  self->loop.has_coefficients = true;
  self->loop.window.coefficients += squares / self->n_modes;
  self->loop.window.coefficient_steps += steps / self->n_modes;
}

/* Residuals that grow are larger at the end of the window than in its mean.
 * Returns: whether the loop drives away in enough windows, one after the other
 */
static bool
end_window (ImkShdivergence *self, double *square)
{
  Loop *l = &self->loop;
  const Window *w = &l->window;
  const double mean = w->squares / (w->n_measured ? w->n_measured : 1);
  const double now = fmax (mean, l->recent_square);
  const bool stays = w->n_measured > N_IN_WINDOW / 2 &&
                     now > MIN_OF_LARGEST * MIN_OF_LARGEST * l->largest_square;
  const bool lasts = stays &&
                     now > MIN_GROWTH_OF_LASTING * MIN_GROWTH_OF_LASTING *
                               l->square_at_closing &&
                     lasting_square (self) > MIN_LASTING * mean;
  const bool jumps =
      stays &&
      now > MIN_GROWTH_OF_JUMPING * MIN_GROWTH_OF_JUMPING *
                l->square_at_closing &&
      w->coefficient_steps > MIN_JUMP * MIN_JUMP * w->coefficients;

  *square = now;
  l->n_windows_away = lasts || jumps ? l->n_windows_away + 1 : 0;
  return l->n_windows_away >= N_WINDOWS;
}

/* @square: (inout): of the residual slopes; of the window at its end */
static bool
follow_windows (
    ImkShdivergence *self, double *square, const float *coefficients)
{
  Loop *l = &self->loop;

  if (isfinite (*square) && l->n_at_closing < N_AT_CLOSING) {
    l->square_at_closing += *square / N_AT_CLOSING;
    l->n_at_closing++;
    return false;
  }
  if (isfinite (*square)) {
    l->window.squares += *square;
    l->window.n_measured++;
  }
  add_coefficients (self, coefficients);
  if (++l->window.n_frames < N_IN_WINDOW)
    return false;
  return end_window (self, square);
}

/* --- a frame -------------------------------------------------------------- */

ImkShdivergenceVerdict
imk_shdivergence_follow (ImkShdivergence *self, const float *slopes,
    const uint8_t *flags, const float *coefficients,
    const ImkShreconstructReport *frame, ImkShdivergenceReport *report)
{
  Loop *l = &self->loop;
  const bool in_window = !frame->is_dark && l->n_at_closing == N_AT_CLOSING;
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  double square = NAN;

  if (l->is_told)
    return verdict;
  l->n_frames++;
  if (slopes && !frame->is_dark && l->window.n_frames % N_IN_WINDOW == 0)
    begin_window (self);
  if (slopes)
    square = measure_slopes (self, slopes, flags, in_window);
  if (follow_loss (l, square, frame->n_valid)) {
    square = l->recent_square;
    verdict = IMK_SHDIVERGENCE_SLOPES;
  } else if (!frame->is_dark) {
    const bool is_limited =
        follow_limits (l, frame->n_limited, self->n_commands);

    if (slopes && follow_windows (self, &square, coefficients))
      verdict = IMK_SHDIVERGENCE_SLOPES;
    if (is_limited)
      verdict = IMK_SHDIVERGENCE_LIMITED;
  }
  l->is_told = verdict != IMK_SHDIVERGENCE_NONE;
  if (l->is_told)
    *report = (ImkShdivergenceReport){
        l->n_frames, sqrt (l->square_at_closing), sqrt (square)};
  return verdict;
}
