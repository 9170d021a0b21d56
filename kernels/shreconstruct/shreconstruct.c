/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shreconstruct.h"

#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "shreconstruct/shreconstruct-private.h"
#include "shreconstruct/shreconstruct-reference.h"

enum { TERMS = IMK_SHRECONSTRUCT_MAX_TERMS };

struct ImkShreconstruct {
  ImkShreconstructConfig config; /* its arrays are those below */
  float *offsets, *reference;
  double *feedback, *forward; /* [mode][term], also those of gain and leak */
  uint8_t *dead;
  ImkShreconstructMatrix matrix, modes, inverse;
  ImkShreconstructExclude *exclude; /* (nullable) */

  /* the past: row i of TERMS is that of the frame (first + i) % TERMS before */
  double *q, *u;
  uint32_t first;
  float *slopes; /* less offsets, held where invalid */
  uint8_t *valid;
  float *commands; /* of the frame before */
  float *product;  /* room for the products */
  float *change;   /* of limited commands */
};

void
imk_shreconstruct_config_init_sized (
    ImkShreconstructConfig *config, size_t size)
{
  const ImkShreconstructConfig defaults = {
      .size = size,
      .gain = 0.5,
      .minimum = -INFINITY,
      .maximum = INFINITY,
      .slew = INFINITY,
      .exclude_cells = 8,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* --- validation: the comparisons are written so that a NaN fails them ----- */

static ImkStatus
check_numbers (
    const char *name, const float *numbers, size_t n, ImkError *error)
{
  for (size_t i = 0; numbers && i < n; i++)
    if (!isfinite (numbers[i]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Number %zu of the %s is %g; all must be finite.", i, name,
          (double) numbers[i]);
  return IMK_OK;
}

static ImkStatus
check_terms (const char *name, const double *terms, uint32_t n,
    uint32_t n_modes, ImkError *error)
{
  if (n > TERMS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The controller has %u %s terms; it can have up to %d.", n, name,
        TERMS);
  for (size_t i = 0; i < (size_t) n * n_modes; i++)
    if (!isfinite (terms[i]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The %s term %zu of mode %zu is %g; all must be finite.", name, i % n,
          i / n, terms[i]);
  return IMK_OK;
}

static ImkStatus
check_sizes (const ImkShreconstructConfig *c, ImkError *error)
{
  if (c->n_cells - 1 >= IMK_SHRECONSTRUCT_MAX_CELLS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u cells; there can be 1 to %d.", c->n_cells,
        IMK_SHRECONSTRUCT_MAX_CELLS);
  if (c->n_commands - 1 >= IMK_SHRECONSTRUCT_MAX_COMMANDS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u commands; there can be 1 to %d.", c->n_commands,
        IMK_SHRECONSTRUCT_MAX_COMMANDS);
  if (c->n_modes == 0 || c->n_modes > c->n_commands ||
      (!c->modes && c->n_modes != c->n_commands))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u modes and %u commands; %s.", c->n_modes, c->n_commands,
        c->modes ? "there can be 1 mode to as many as commands"
                 : "without a matrix of modes both are the same");
  if (!c->matrix)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "There is no control matrix.");
  return IMK_OK;
}

static ImkStatus
check_control (const ImkShreconstructConfig *c, ImkError *error)
{
  ImkStatus status =
      check_terms ("feedback", c->feedback, c->n_feedback, c->n_modes, error);

  if (status == IMK_OK)
    status =
        check_terms ("forward", c->forward, c->n_forward, c->n_modes, error);
  if (status != IMK_OK)
    return status;
  if (!(c->gain >= 0 && c->gain <= 10))
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "gain is %g; it can be 0 to 10.", c->gain);
  if (!(c->leak >= 0 && c->leak <= 1))
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "leak is %g; it can be 0 to 1.", c->leak);
  if (!(c->minimum <= c->maximum))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The smallest command is %g and the largest %g; the smallest cannot be "
        "above the largest.",
        c->minimum, c->maximum);
  if (!(c->slew > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The slew limit is %g; it must be above 0.", c->slew);
  if (!(c->min_valid >= 0 && c->min_valid <= 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "min-valid is %g; it can be 0 to 1.", c->min_valid);
  if (c->exclude_cells == 0)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "exclude-cells is 0; it must be 1 or more.");
  return IMK_OK;
}

/* What imk_shreconstruct_update () takes. */
static ImkStatus
check_controller (const ImkShreconstructConfig *c, ImkError *error)
{
  ImkStatus status = check_control (c, error);

  if (status == IMK_OK)
    status = check_numbers (
        "slope offsets", c->offsets, 2 * (size_t) c->n_cells, error);
  if (status == IMK_OK)
    status = check_numbers (
        "reference commands", c->reference, c->n_commands, error);
  return status;
}

static ImkStatus
check_config (const ImkShreconstructConfig *c, ImkError *error)
{
  size_t n_slopes = 2 * (size_t) c->n_cells;
  ImkStatus status = check_sizes (c, error);

  if (status == IMK_OK)
    status = check_controller (c, error);
  if (status == IMK_OK)
    status = check_numbers (
        "control matrix", c->matrix, n_slopes * c->n_modes, error);
  if (status == IMK_OK)
    status = check_numbers ("matrix of modes", c->modes,
        (size_t) c->n_commands * c->n_modes, error);
  if (status == IMK_OK)
    status = check_numbers (
        "interaction matrix", c->interaction, n_slopes * c->n_commands, error);
  if (status == IMK_OK && c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
      !c->interaction)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "invalid-policy=exclude needs the interaction matrix that the control "
        "matrix was made from. Set interaction-location, or use the policy "
        "zero or hold.");
  return status;
}

/* --- making --------------------------------------------------------------- */

static bool
has_limits (const ImkShreconstructConfig *c)
{
  return isfinite (c->minimum) || isfinite (c->maximum) || isfinite (c->slew) ||
         c->dead;
}

/* gain and leak are terms of each mode like any others. */
static void
fill_terms (ImkShreconstruct *s, const ImkShreconstructConfig *c)
{
  s->config.n_feedback = c->n_forward ? c->n_feedback : 1;
  s->config.n_forward = c->n_forward ? c->n_forward : 1;
  for (uint32_t m = 0; m < c->n_modes; m++) {
    double *a = s->feedback + m * TERMS, *b = s->forward + m * TERMS;

    if (c->n_forward == 0) {
      a[0] = 1 - c->leak;
      b[0] = c->gain;
    }
    for (uint32_t i = 0; c->n_forward && i < c->n_feedback; i++)
      a[i] = c->feedback[m * c->n_feedback + i];
    for (uint32_t i = 0; i < c->n_forward; i++)
      b[i] = c->forward[m * c->n_forward + i];
  }
}

static ImkStatus
no_memory (ImkError *error)
{
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "There is no memory for the controller.");
}

static ImkStatus
make_inverse (
    ImkShreconstruct *s, const ImkShreconstructConfig *c, ImkError *error)
{
  size_t n = (size_t) c->n_modes * c->n_commands;
  double *inverse = malloc (n * sizeof (*inverse));
  float *rounded = malloc (n * sizeof (*rounded));
  ImkStatus status = IMK_OK;

  if (!inverse || !rounded)
    status = no_memory (error);
  else if (!imk_shreconstruct_invert (c, inverse))
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The modes are not independent of each other, so a limited command "
        "cannot be told as modes. Leave modes out, or set no limits.");
  for (size_t i = 0; status == IMK_OK && i < n; i++)
    rounded[i] = (float) inverse[i];
  if (status == IMK_OK)
    status = imk_shreconstruct_matrix_init (
        &s->inverse, rounded, c->n_modes, c->n_commands, error);
  free (inverse);
  free (rounded);
  return status;
}

static ImkStatus
make_matrices (
    ImkShreconstruct *s, const ImkShreconstructConfig *c, ImkError *error)
{
  ImkStatus status = imk_shreconstruct_matrix_init (
      &s->matrix, c->matrix, c->n_modes, 2 * c->n_cells, error);

  if (status != IMK_OK || !c->modes)
    return status;
  status = imk_shreconstruct_matrix_init (
      &s->modes, c->modes, c->n_commands, c->n_modes, error);
  return status == IMK_OK && has_limits (c) ? make_inverse (s, c, error)
                                            : status;
}

/* Offsets, reference commands, dead actuators and terms. */
static void
take_controller (ImkShreconstruct *s, const ImkShreconstructConfig *c)
{
  size_t n_slopes = 2 * (size_t) c->n_cells;

  memset (s->offsets, 0, n_slopes * sizeof (float));
  memset (s->reference, 0, c->n_commands * sizeof (float));
  memset (s->dead, 0, c->n_commands);
  if (c->offsets)
    memcpy (s->offsets, c->offsets, n_slopes * sizeof (float));
  if (c->reference)
    memcpy (s->reference, c->reference, c->n_commands * sizeof (float));
  if (c->dead)
    memcpy (s->dead, c->dead, c->n_commands);
  s->config.dead = c->dead ? s->dead : NULL;
  fill_terms (s, c);
}

static bool
make_arrays (ImkShreconstruct *s, const ImkShreconstructConfig *c)
{
  size_t n_slopes = 2 * (size_t) c->n_cells, n_modes = c->n_modes;
  size_t most = imk_shreconstruct_room (c->n_commands);

  s->offsets = calloc (n_slopes, sizeof (float));
  s->reference = calloc (c->n_commands, sizeof (float));
  s->dead = calloc (c->n_commands, 1);
  s->valid = calloc (c->n_cells, 1);
  s->feedback = calloc (n_modes * TERMS, sizeof (double));
  s->forward = calloc (n_modes * TERMS, sizeof (double));
  s->q = calloc (n_modes * TERMS, sizeof (double));
  s->u = calloc (n_modes * TERMS, sizeof (double));
  s->slopes = calloc (n_slopes, sizeof (float));
  s->commands = calloc (c->n_commands, sizeof (float));
  s->product = calloc (most, sizeof (float)); /* modes are fewer */
  s->change = calloc (most, sizeof (float));
  if (!s->offsets || !s->reference || !s->dead || !s->valid || !s->feedback ||
      !s->forward || !s->q || !s->u || !s->slopes || !s->commands ||
      !s->product || !s->change)
    return false;
  take_controller (s, c);
  return true;
}

ImkStatus
imk_shreconstruct_new (ImkBackend backend, const ImkShreconstructConfig *given,
    ImkShreconstruct **self, ImkError *error)
{
  ImkShreconstructConfig own;
  const ImkShreconstructConfig *config;
  ImkShreconstruct *s;
  ImkStatus status;

  imk_shreconstruct_config_init (&own);
  config =
      imk_config_read (given, &own, "imk_shreconstruct_config_init", error);
  status = config ? check_config (config, error) : IMK_ERROR_CONFIG;
  if (status != IMK_OK)
    return status;
  if (backend != IMK_BACKEND_CPU)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "Commands are computed on the CPU alone.");
  s = calloc (1, sizeof (*s));
  if (!s)
    return no_memory (error);
  s->config = *config; /* but for arrays, which are copied */
  status = make_arrays (s, config) ? make_matrices (s, config, error)
                                   : no_memory (error);
  if (status == IMK_OK && config->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    status = imk_shreconstruct_exclude_new (config, &s->exclude, error);
  if (status != IMK_OK) {
    imk_shreconstruct_free (s);
    return status;
  }
  imk_shreconstruct_reset (s);
  *self = s;
  return IMK_OK;
}

/* M of the tiles, where its pseudo-inverse is needed later than M. */
static ImkStatus
add_inverse (ImkShreconstruct *s, ImkError *error)
{
  ImkShreconstructConfig c = {
      .n_modes = s->config.n_modes, .n_commands = s->config.n_commands};
  size_t n = c.n_modes;
  float *modes = malloc (c.n_commands * n * sizeof (*modes));
  ImkStatus status;

  if (!modes)
    return no_memory (error);
  for (size_t k = 0; k < c.n_commands; k++)
    for (size_t m = 0; m < n; m++)
      modes[k * n + m] = imk_shreconstruct_matrix_at (&s->modes, k, m);
  c.modes = modes;
  status = make_inverse (s, &c, error);
  free (modes);
  return status;
}

ImkStatus
imk_shreconstruct_update (ImkShreconstruct *self,
    const ImkShreconstructConfig *given, ImkError *error)
{
  ImkShreconstructConfig own, *now = &self->config;
  const ImkShreconstructConfig *c;
  ImkStatus status;

  imk_shreconstruct_config_init (&own);
  c = imk_config_read (given, &own, "imk_shreconstruct_config_init", error);
  if (!c)
    return IMK_ERROR_CONFIG;
  if (c->n_cells != now->n_cells || c->n_modes != now->n_modes ||
      c->n_commands != now->n_commands)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The controller is made for %u cells, %u modes and %u commands, not "
        "for %u, %u and %u.",
        now->n_cells, now->n_modes, now->n_commands, c->n_cells, c->n_modes,
        c->n_commands);
  status = check_controller (c, error);
  if (status == IMK_OK && has_limits (c) && self->modes.tiles &&
      !self->inverse.tiles)
    status = add_inverse (self, error);
  if (status != IMK_OK)
    return status;
  now->gain = c->gain;
  now->leak = c->leak;
  now->minimum = c->minimum;
  now->maximum = c->maximum;
  now->slew = c->slew;
  now->dark = c->dark;
  now->min_valid = c->min_valid;
  now->exclude_cells = c->exclude_cells;
  take_controller (self, c);
  return IMK_OK;
}

void
imk_shreconstruct_free (ImkShreconstruct *self)
{
  if (!self)
    return;
  imk_shreconstruct_matrix_clear (&self->matrix);
  imk_shreconstruct_matrix_clear (&self->modes);
  imk_shreconstruct_matrix_clear (&self->inverse);
  imk_shreconstruct_exclude_free (self->exclude);
  free (self->offsets);
  free (self->reference);
  free (self->dead);
  free (self->valid);
  free (self->feedback);
  free (self->forward);
  free (self->q);
  free (self->u);
  free (self->slopes);
  free (self->commands);
  free (self->product);
  free (self->change);
  free (self);
}

bool
imk_shreconstruct_take_state (
    ImkShreconstruct *self, const ImkShreconstruct *from)
{
  const ImkShreconstructConfig *c = &self->config, *before = &from->config;
  size_t past = (size_t) c->n_modes * TERMS * sizeof (double);

  if (c->n_cells != before->n_cells || c->n_modes != before->n_modes ||
      c->n_commands != before->n_commands)
    return false;
  memcpy (self->q, from->q, past);
  memcpy (self->u, from->u, past);
  memcpy (self->slopes, from->slopes, 2 * c->n_cells * sizeof (float));
  memcpy (self->commands, from->commands, c->n_commands * sizeof (float));
  self->first = from->first;
  if (self->exclude && from->exclude)
    imk_shreconstruct_exclude_take (self->exclude, from->exclude);
  return true;
}

void
imk_shreconstruct_reset (ImkShreconstruct *self)
{
  const ImkShreconstructConfig *c = &self->config;
  size_t past = (size_t) c->n_modes * TERMS * sizeof (double);

  memset (self->q, 0, past);
  memset (self->u, 0, past);
  memset (self->slopes, 0, 2 * (size_t) c->n_cells * sizeof (float));
  memcpy (self->commands, self->reference, c->n_commands * sizeof (float));
}

/* --- a frame -------------------------------------------------------------- */

/* Row @i of the past: 0 is the newest. */
static double *
past_of (const ImkShreconstruct *s, double *past, uint32_t i)
{
  return past + (size_t) ((s->first + i) % TERMS) * s->config.n_modes;
}

/* Returns: valid cells */
static uint32_t
find_valid (ImkShreconstruct *s, const float *slopes, const uint8_t *flags)
{
  uint32_t n_cells = s->config.n_cells, n_valid = 0;

  for (uint32_t i = 0; i < n_cells; i++) {
    s->valid[i] = imk_shreconstruct_is_valid (
        slopes[i], slopes[n_cells + i], flags ? flags[i] : 0);
    n_valid += s->valid[i];
  }
  return n_valid;
}

static void
take_slopes (ImkShreconstruct *s, const float *slopes)
{
  const ImkShreconstructConfig *c = &s->config;
  const float *dx = slopes, *dy = slopes + c->n_cells;
  float *to_x = s->slopes, *to_y = s->slopes + c->n_cells;
  bool hold = c->invalid == IMK_SHRECONSTRUCT_INVALID_HOLD;

  for (uint32_t i = 0; i < c->n_cells; i++)
    if (s->valid[i]) {
      to_x[i] = dx[i] - s->offsets[i];
      to_y[i] = dy[i] - s->offsets[c->n_cells + i];
    } else if (!hold) {
      to_x[i] = to_y[i] = 0;
    }
}

/* The next q of each mode. The oldest row of the past becomes the newest. */
static double *
control (ImkShreconstruct *s)
{
  const ImkShreconstructConfig *c = &s->config;
  double *oldest = past_of (s, s->q, TERMS - 1), *u;

  /* all terms of q are in use: the sum of a mode is complete before its oldest
   * value goes */
  for (uint32_t m = 0; m < c->n_modes; m++) {
    const double *a = s->feedback + m * TERMS;
    double sum = 0;

    for (uint32_t i = 0; i < c->n_feedback; i++)
      sum += a[i] * past_of (s, s->q, i)[m];
    oldest[m] = sum;
  }
  s->first = (s->first + TERMS - 1) % TERMS;
  u = past_of (s, s->u, 0);
  for (uint32_t m = 0; m < c->n_modes; m++) {
    const double *b = s->forward + m * TERMS;
    double sum = 0;

    u[m] = -(double) s->product[m];
    for (uint32_t j = 0; j < c->n_forward; j++)
      sum += b[j] * past_of (s, s->u, j)[m];
    oldest[m] += sum;
  }
  return oldest;
}

/* Commands of @q in s->product. */
static void
make_commands (ImkShreconstruct *s, const double *q)
{
  const ImkShreconstructConfig *c = &s->config;

  if (s->modes.tiles) {
    for (uint32_t m = 0; m < c->n_modes; m++)
      s->change[m] = (float) q[m];
    imk_shreconstruct_multiply (&s->modes, s->change, s->product, c->n_threads);
    for (uint32_t k = 0; k < c->n_commands; k++)
      s->product[k] = s->reference[k] + s->product[k];
  } else {
    for (uint32_t k = 0; k < c->n_commands; k++)
      s->product[k] = (float) (s->reference[k] + q[k]);
  }
}

/* @q follows the commands that are limited. Returns: how many are, but for dead
 * ones */
static uint32_t
limit_commands (ImkShreconstruct *s, double *q, bool *changed)
{
  const ImkShreconstructConfig *c = &s->config;
  uint32_t n_limited = 0;
  bool is_changed = false;

  for (uint32_t k = 0; k < c->n_commands; k++) {
    double wanted = s->product[k], before = s->commands[k];
    double near = fmin (fmax (wanted, before - c->slew), before + c->slew);
    double limited = s->dead[k] ? s->reference[k]
                                : fmin (fmax (near, c->minimum), c->maximum);

    s->change[k] = (float) (limited - wanted);
    n_limited += limited != wanted && !s->dead[k];
    is_changed |= limited != wanted;
    s->product[k] = (float) limited;
    if (!s->modes.tiles && limited != wanted)
      q[k] = limited - s->reference[k];
  }
  *changed = is_changed;
  return n_limited;
}

static void
follow_modes (ImkShreconstruct *s, double *q)
{
  const ImkShreconstructConfig *c = &s->config;

  memcpy (s->commands, s->product, c->n_commands * sizeof (float));
  imk_shreconstruct_multiply (&s->inverse, s->change, s->product, c->n_threads);
  for (uint32_t m = 0; m < c->n_modes; m++)
    q[m] += s->product[m];
}

static void
run_controller (
    ImkShreconstruct *s, const float *slopes, ImkShreconstructReport *report)
{
  const ImkShreconstructConfig *c = &s->config;
  bool is_changed = false;
  double *q;

  if (s->exclude)
    report->n_out = imk_shreconstruct_exclude_follow (
        s->exclude, s->valid, c->exclude_cells);
  take_slopes (s, slopes);
  imk_shreconstruct_multiply (&s->matrix, s->slopes, s->product, c->n_threads);
  if (s->exclude)
    imk_shreconstruct_exclude_correct (s->exclude, s->product);
  q = control (s);
  make_commands (s, q);
  if (has_limits (c))
    report->n_limited = limit_commands (s, q, &is_changed);
  memcpy (s->commands, s->product, c->n_commands * sizeof (float));
  if (is_changed && s->modes.tiles)
    follow_modes (s, q);
}

void
imk_shreconstruct_process (ImkShreconstruct *self, const float *slopes,
    const uint8_t *flags, float *commands, ImkShreconstructReport *report)
{
  const ImkShreconstructConfig *c = &self->config;
  ImkShreconstructReport r = {.n_valid = find_valid (self, slopes, flags)};

  r.is_dark = imk_shreconstruct_is_dark (c, r.n_valid);
  if (r.is_dark && c->dark == IMK_SHRECONSTRUCT_DARK_REFERENCE)
    imk_shreconstruct_reset (self);
  else if (!r.is_dark)
    run_controller (self, slopes, &r);
  imk_shreconstruct_commands (self, commands);
  if (report)
    *report = r;
}

void
imk_shreconstruct_commands (const ImkShreconstruct *self, float *commands)
{
  memcpy (commands, self->commands, self->config.n_commands * sizeof (float));
}

const double *
imk_shreconstruct_coefficients (const ImkShreconstruct *self)
{
  return past_of (self, self->q, 0);
}
