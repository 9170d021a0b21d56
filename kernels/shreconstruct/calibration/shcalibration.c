/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcalibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "shreconstruct/calibration/shcalibration-private.h"
#include "shreconstruct/shreconstruct-private.h"

enum {
  MAX_SPOILED_FRAMES = 1000, /* frames, one after the other */
  SATURATED = 1 << 2,        /* IMK_SHCENTROID_SATURATED */
  FRAMES_PER_SATURATED = 50, /* more than one of so many is no cosmic ray */
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

static bool
make_arrays (ImkShcalibration *s)
{
  const ImkShcalibrationConfig *c = &s->config;
  size_t n = s->n_slopes, n_estimates = 2 * GROUP_SIZE;

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
  s->spread = calloc (imk_shcalibration_n_rows (s) * n, sizeof (*s->spread));
  s->valid = malloc (c->n_cells);
  s->n_valid = calloc (c->n_cells, sizeof (*s->n_valid));
  s->lit = malloc (c->n_cells);
  s->n_saturated = calloc (c->n_cells, sizeof (*s->n_saturated));
  s->whole = calloc (n, sizeof (double));
  s->whole_error = calloc (n, sizeof (double));
  s->means = calloc (3 * n, sizeof (double));
  s->even = calloc (imk_shcalibration_n_rows (s) * n, sizeof (float));
  s->even_squares = calloc (n, sizeof (double));
  s->odds = calloc (imk_shcalibration_n_rows (s), sizeof (double));
  s->pattern = malloc (s->n_live);
  s->responses = calloc ((MAX_LAG + 1) * n, sizeof (double));
  s->mean = calloc (n, sizeof (double));
  s->frames = malloc (PERIOD * n * sizeof (float));
  s->sum = calloc (n, sizeof (double));
  s->n_seen = calloc (c->n_cells, sizeof (*s->n_seen));
  s->before = malloc (n * sizeof (double));
  s->estimate = calloc (n_estimates * n, sizeof (double));
  s->inverse =
      malloc ((size_t) 4 * imk_shcalibration_n_rows (s) * sizeof (double));
  s->n_gaps = calloc (c->n_cells, sizeof (*s->n_gaps));
  s->gaps = malloc ((size_t) MAX_GAPS * c->n_cells * sizeof (*s->gaps));
  return s->lit && s->n_saturated && s->whole && s->whole_error && s->means &&
         s->even && s->even_squares && s->odds && s->spread && s->valid &&
         s->n_valid && s->pattern && s->responses && s->mean && s->frames &&
         s->sum && s->n_seen && s->before && s->estimate && s->inverse &&
         s->n_gaps && s->gaps;
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
  imk_shcalibration_make_signs (s);
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
  free (self->lit);
  free (self->n_saturated);
  free (self->whole);
  free (self->whole_error);
  free (self->means);
  free (self->even);
  free (self->even_squares);
  free (self->odds);
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

/* --- a frame -------------------------------------------------------------- */

/* Pokes are sent once more from the next one that would have been seen. Waves
 * do not go back to the group before. */
void
imk_shcalibration_interrupt (ImkShcalibration *self)
{
  uint32_t sent = self->f, unseen = self->shape.last;

  if (self->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
    sent %= imk_shcalibration_period_of (self) + self->shape.last;
  if (self->shape.last > 0)
    unseen -= self->n_unsure; /* after a gap just before */
  self->f -= sent < unseen ? sent : unseen;
  self->n_unsure = self->shape.last ? self->shape.last
                   : self->is_long  ? MAX_RESPONSE_LAG
                                    : MAX_LAG;
}

/* Whether frames are missing so often that none is of use. */
static void
count_spoiled (ImkShcalibration *s)
{
  s->n_spoiled = s->n_unsure > 0 ? s->n_spoiled + 1 : 0;
  s->n_unsure -= s->n_unsure > 0;
  if (s->n_spoiled == MAX_SPOILED_FRAMES &&
      s->state == IMK_SHCALIBRATION_RUNNING)
    s->state = IMK_SHCALIBRATION_GAPS;
}

static void
note_progress (ImkShcalibration *s)
{
  const ImkShresponse *r = &s->shape;
  const uint32_t n_groups = (s->n_live + GROUP_SIZE - 1) / GROUP_SIZE;
  double n_pokes = 2.0 * imk_shcalibration_n_rows (s) *
                   (s->config.n_frames + r->settle - r->begin);

  if (s->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
    n_pokes = (double) n_groups * (imk_shcalibration_period_of (s) + r->last);
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
  for (uint32_t i = 0; i < n_cells; i++) {
    self->n_valid[i] += self->valid[i];
    self->n_saturated[i] += flags && flags[i] & SATURATED;
  }
  if ((self->shape.last > 0 ||
          !imk_shcalibration_follow_sequence (self, slopes, pokes)) &&
      self->state == IMK_SHCALIBRATION_RUNNING) {
    if (self->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
      imk_shcalibration_follow_waves (self, slopes, pokes);
    else
      imk_shcalibration_follow_pairs (self, slopes, pokes);
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

/* --- the result ----------------------------------------------------------- */

/* Returns: whether a cell was valid in most frames */
static bool
is_lit (const ImkShcalibration *s, uint32_t cell)
{
  return s->n_valid[cell] > s->n_frames / 2;
}

/* @noise: as of imk_shcalibration_result()
 * Returns: commands that were not measured for a cell */
static uint32_t
count_unseen (const ImkShcalibration *s, const float *noise, uint32_t cell)
{
  const float *of_cell = noise + (size_t) cell * s->config.n_commands;
  uint32_t n = 0;

  for (uint32_t k = 0; k < s->n_live; k++)
    n += !isfinite (of_cell[s->live[k]]);
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
    imk_shcalibration_pool_spreads (self);
  for (uint32_t k = 0; k < self->n_live; k++)
    for (uint32_t i = 0; i < self->n_slopes; i++) {
      const Spread *spread = self->spread + (size_t) k * self->n_slopes + i;
      size_t at = i * n_commands + self->live[k];
      double error = imk_shcalibration_error_of (self, k, i);

      if (isfinite (error)) {
        interaction[at] = (float) spread->mean;
        noise[at] = (float) error;
        squares += spread->mean * spread->mean;
        errors += error * error;
        n++;
      }
    }
  for (uint32_t i = 0; i < self->config.n_cells; i++) {
    uint32_t n_missing = count_unseen (self, noise, i);

    report->n_unseen += n_missing == self->n_live;
    report->n_lost += n_missing > 0 && is_lit (self, i);
  }
  report->rms = sqrt (squares / ((double) self->n_live * self->n_slopes));
  report->noise = n ? sqrt (errors / (double) n) : INFINITY;
}

/* --- the judgement -------------------------------------------------------- */

/* Returns: degrees of freedom of the standard errors */
static uint32_t
n_free (const ImkShcalibration *s)
{
  if (s->config.method == IMK_SHCALIBRATION_SINUSOIDAL)
    return IMK_SHCALIBRATION_MIN_FREE;
  return imk_shcalibration_n_rows (s) * (s->config.n_repeats - 1);
}

void
imk_shcalibration_judge (const ImkShcalibration *self, const float *interaction,
    const float *noise, ImkShjudgement *judgement)
{
  const bool is_single = self->config.method == IMK_SHCALIBRATION_PUSH_PULL;
  ImkShjudgeData d = {.interaction = interaction,
      .noise = noise,
      .n_slopes = self->n_slopes,
      .lit = self->lit,
      .n_commands = self->config.n_commands,
      .live = self->live,
      .n_live = self->n_live,
      .n_free = n_free (self),
      .whole = self->whole,
      .whole_error = self->whole_error,
      .pattern = self->pattern,
      .poke = self->config.poke,
      .is_single = is_single,
      .n_repeats = self->config.n_repeats,
      .drift = self->drift,
      .drift_error = self->drift_error,
      .is_limited = !self->shape.is_linear,
      .is_settled = self->shape.is_settled};

  imk_shcalibration_get_even (self, &d);
  for (uint32_t i = 0; i < self->config.n_cells; i++) {
    self->lit[i] = is_lit (self, i);
    d.n_saturated +=
        self->n_saturated[i] > self->n_frames / FRAMES_PER_SATURATED;
  }
  imk_shjudge (&d, judgement);
}
