/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shreconstruct.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "imk/device.h"
#include "shreconstruct/cpu/loops.h"
#include "shreconstruct/shreconstruct-private.h"
#include "shreconstruct/shreconstruct-reference.h"

enum { TERMS = IMK_SHRECONSTRUCT_MAX_TERMS };

struct ImkShreconstruct {
  const ImkShreconstructBackend *backend;
  const ImkDevice *device; /* NULL: the CPU, or a device that was left */
  void *backend_state;     /* NULL: a device that was left */
  const ImkShreconstructLoops *loops;
  ImkShreconstructConfig config; /* as a backend takes it */
  float *offsets;
  float *reference;           /* [n_commands]: c0 within the limits */
  float *reference_next;      /* of the frame at hand, on the way there */
  float *reference_sent;      /* that @sent is about */
  bool moves;                 /* one of these two is not there yet */
  double *feedback, *forward; /* [mode][term], also those of gain and leak */
  uint8_t *dead;
  float *modes;   /* M, where its pseudo-inverse may be needed later; or NULL */
  float *inverse; /* (nullable): pinv (M), where commands have limits */
  float *sent;    /* [n_commands]: the last ones that left */
  ImkShreconstructHeld *held; /* (nullable): where invalid cells are held */

  /* the state, in one block: page-locked for a device */
  uint8_t *block;
  ImkShreconstructFrame frame; /* the state as the backend sees it */
  double *q, *u;               /* as the host does, like the next ones */
  float *slopes, *commands;
  ImkShreconstructCounts *counts;
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
  if ((unsigned) c->storage > IMK_SHRECONSTRUCT_STORAGE_BF16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no storage of the number %d.", (int) c->storage);
  if ((unsigned) c->invalid > IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no policy of the number %d for invalid cells.",
        (int) c->invalid);
  if ((unsigned) c->dark > IMK_SHRECONSTRUCT_DARK_REFERENCE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no policy of the number %d for low light.", (int) c->dark);
  return IMK_OK;
}

static ImkStatus
check_control (const ImkShreconstructConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"gain", c->gain, 0, 10},
      {"leak", c->leak, 0, 1},
      {"min-valid", c->min_valid, 0, 1},
      {NULL},
  };
  ImkStatus status =
      check_terms ("feedback", c->feedback, c->n_feedback, c->n_modes, error);

  if (status == IMK_OK)
    status =
        check_terms ("forward", c->forward, c->n_forward, c->n_modes, error);
  if (status == IMK_OK)
    status = imk_limits_check (limits, error);
  if (status != IMK_OK)
    return status;
  if (!(c->minimum <= c->maximum))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The smallest command is %g and the largest %g; the smallest cannot be "
        "above the largest.",
        c->minimum, c->maximum);
  if (c->minimum > FLT_MAX || c->maximum < -FLT_MAX)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "No command of 32 bits is between minimum, %g, and maximum, %g.",
        c->minimum, c->maximum);
  if (!(c->slew > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The slew limit is %g; it must be above 0.", c->slew);
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

/* A valid slope makes no inf, and so no NaN of inf and -inf. */
static ImkStatus
check_sums (const ImkShreconstructConfig *c, ImkError *error)
{
  const uint32_t n_slopes = 2 * c->n_cells;

  for (uint32_t m = 0; m < c->n_modes; m++) {
    const float *row = c->matrix + (size_t) m * n_slopes;
    double sum = 0;

    for (uint32_t i = 0; i < n_slopes; i++)
      sum += fabs ((double) row[i]);
    if (sum * IMK_SHRECONSTRUCT_MOST_SLOPE > FLT_MAX)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Row %u of the control matrix has numbers of %g in sum; products "
          "with slopes would be too large for a float32. Check the scale of "
          "the matrix.",
          m, sum);
  }
  return IMK_OK;
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
    status = check_sums (c, error);
  if (status == IMK_OK)
    status = check_numbers ("matrix of modes", c->modes,
        (size_t) c->n_commands * c->n_modes, error);
  if (status == IMK_OK)
    status = check_numbers ("interaction matrix", c->interaction,
        n_slopes * (c->interaction_is_modal ? c->n_modes : c->n_commands),
        error);
  if (status == IMK_OK && c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
      !c->interaction)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "invalid-policy=exclude needs the interaction matrix that the control "
        "matrix was made from. Set interaction-location, or use the policy "
        "zero or hold.");
  if (status == IMK_OK && c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
      c->storage != IMK_SHRECONSTRUCT_STORAGE_F32)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "invalid-policy=exclude needs the control matrix as it was made, not "
        "rounded to 16 bits. Set matrix-storage=f32, or use the policy zero or "
        "hold.");
  return status;
}

/* --- making --------------------------------------------------------------- */

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

/* Returns: pinv (M) [n_modes][n_commands] in @inverse, to be freed */
static ImkStatus
make_inverse (const ImkShreconstructConfig *c, float **inverse, ImkError *error)
{
  size_t n = (size_t) c->n_modes * c->n_commands;
  double *exact = malloc (n * sizeof (*exact));
  float *rounded = malloc (n * sizeof (*rounded));
  ImkStatus status = IMK_OK;

  if (!exact || !rounded)
    status = no_memory (error);
  else if (!imk_shreconstruct_invert (c, exact))
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The modes are not independent of each other, so a limited command "
        "cannot be told as modes. Leave modes out, or set no limits.");
  for (size_t i = 0; status == IMK_OK && i < n; i++)
    rounded[i] = (float) exact[i];
  free (exact);
  if (status == IMK_OK)
    *inverse = rounded;
  else
    free (rounded);
  return status;
}

/* Returns: (nullable): a copy, to be freed */
static float *
copy_floats (const float *values, size_t n)
{
  float *copy = malloc (n * sizeof (*copy));

  if (copy)
    memcpy (copy, values, n * sizeof (*copy));
  return copy;
}

static float
within (const ImkShreconstructConfig *c, double command)
{
  const ImkShlimits limits = imk_shreconstruct_limits (c);

  return (float) imk_shlimits_clip (&limits, command);
}

/* Offsets, reference commands, dead actuators and terms. */
static void
take_controller (ImkShreconstruct *s, const ImkShreconstructConfig *c)
{
  size_t n_slopes = 2 * (size_t) c->n_cells;

  memset (s->offsets, 0, n_slopes * sizeof (float));
  memset (s->dead, 0, c->n_commands);
  if (c->offsets)
    memcpy (s->offsets, c->offsets, n_slopes * sizeof (float));
  for (uint32_t k = 0; k < c->n_commands; k++)
    s->reference[k] = (float) imk_shreconstruct_reference_command (c, k);
  memcpy (s->reference_next, s->reference, c->n_commands * sizeof (float));
  if (c->dead)
    memcpy (s->dead, c->dead, c->n_commands);
  fill_terms (s, c);
  s->config.offsets = s->offsets;
  s->config.reference = s->reference_next;
  s->config.dead = c->dead ? s->dead : NULL;
  s->config.feedback = s->feedback;
  s->config.forward = s->forward;
}

/* Gives the host's view of the parts out of one block, whose other view begins
 * at @seen. Returns: bytes of the block */
static size_t
lay_out (ImkShreconstruct *s, uint8_t *host, uint8_t *seen)
{
  const ImkShreconstructConfig *c = &s->config;
  const struct {
    void **host;
    uint32_t width, height;
    ImkType type;
  } parts[] = {
      [IMK_SHRECONSTRUCT_Q] = {(void **) &s->q, c->n_modes, TERMS,
          IMK_TYPE_F64},
      [IMK_SHRECONSTRUCT_U] = {(void **) &s->u, c->n_modes, TERMS,
          IMK_TYPE_F64},
      [IMK_SHRECONSTRUCT_SLOPES] = {(void **) &s->slopes, 2 * c->n_cells, 1,
          IMK_TYPE_F32},
      [IMK_SHRECONSTRUCT_COMMANDS] = {(void **) &s->commands, c->n_commands, 1,
          IMK_TYPE_F32},
      [IMK_SHRECONSTRUCT_COUNTS] = {(void **) &s->counts,
          sizeof (ImkShreconstructCounts), 1, IMK_TYPE_U8},
  };
  size_t at = 0;

  for (int i = 0; i < IMK_SHRECONSTRUCT_N_PARTS; i++) {
    ImkImage *image = &s->frame.state[i];

    *image = (ImkImage){.width = parts[i].width,
        .height = parts[i].height,
        .channels = 1,
        .type = parts[i].type,
        .location = s->device ? IMK_LOCATION_HOST_MAPPED : IMK_LOCATION_HOST};
    image->stride = imk_image_row_size (image);
    if (host) {
      *parts[i].host = host + at;
      image->data = seen + at;
    }
    at += (image->stride * image->height + 255) / 256 * 256;
  }
  return at;
}

static ImkStatus
make_state (ImkShreconstruct *s, ImkError *error)
{
  size_t size = lay_out (s, NULL, NULL);
  void *host = NULL, *mapped = NULL;

  if (s->device) {
    ImkStatus status = s->device->alloc_pinned (size, &host, &mapped, error);

    if (status != IMK_OK)
      return status;
    memset (host, 0, size);
  } else {
    mapped = host = calloc (1, size);
    if (!host)
      return no_memory (error);
  }
  s->block = host;
  lay_out (s, host, mapped);
  return IMK_OK;
}

static ImkStatus
make_arrays (
    ImkShreconstruct *s, const ImkShreconstructConfig *c, ImkError *error)
{
  size_t n_modes = c->n_modes;

  s->offsets = calloc (2 * (size_t) c->n_cells, sizeof (float));
  s->reference = calloc (c->n_commands, sizeof (float));
  s->reference_next = calloc (c->n_commands, sizeof (float));
  s->sent = calloc (c->n_commands, sizeof (float));
  s->reference_sent = calloc (c->n_commands, sizeof (float));
  s->dead = calloc (c->n_commands, 1);
  s->feedback = calloc (n_modes * TERMS, sizeof (double));
  s->forward = calloc (n_modes * TERMS, sizeof (double));
  if (!s->offsets || !s->reference || !s->reference_next || !s->sent ||
      !s->reference_sent || !s->dead || !s->feedback || !s->forward)
    return no_memory (error);
  take_controller (s, c);
  return make_state (s, error);
}

/* @matrix: R as it is stored */
static ImkStatus
make_backend (ImkShreconstruct *s, const ImkShreconstructConfig *c,
    const float *matrix, ImkError *error)
{
  bool has_limits = imk_shreconstruct_has_limits (c);
  ImkStatus status = IMK_OK;

  if (c->modes && has_limits)
    status = make_inverse (c, &s->inverse, error);
  if (status == IMK_OK && c->modes && !has_limits) {
    s->modes = copy_floats (c->modes, (size_t) c->n_commands * c->n_modes);
    status = s->modes ? IMK_OK : no_memory (error);
  }
  s->config.matrix = matrix;
  if (status == IMK_OK)
    status =
        s->backend->create (&s->config, s->inverse, &s->backend_state, error);
  s->config.matrix = s->config.modes = s->config.interaction = NULL;
  return status;
}

static ImkStatus
make_stored (
    ImkShreconstruct *s, const ImkShreconstructConfig *c, ImkError *error)
{
  uint32_t n_slopes = 2 * c->n_cells;
  float *rounded;
  ImkStatus status;

  if (c->storage == IMK_SHRECONSTRUCT_STORAGE_F32)
    return make_backend (s, c, c->matrix, error);
  rounded = copy_floats (c->matrix, (size_t) c->n_modes * n_slopes);
  if (!rounded)
    return no_memory (error);
  imk_shreconstruct_round (c->storage, rounded, c->n_modes, n_slopes);
  status = make_backend (s, c, rounded, error);
  free (rounded);
  return status;
}

/* @table: of the backend */
static ImkStatus
check_backend (ImkBackend backend, const ImkShreconstructConfig *c,
    const void **table, ImkError *error)
{
  ImkStatus status = imk_backend_table (
      backend, &imk_shreconstruct_cpu, "shreconstruct", table, error);

  if (status == IMK_OK && backend == IMK_BACKEND_CUDA &&
      c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    status = imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "invalid-policy=exclude is computed by the CPU alone: take backend=cpu "
        "or auto, or the policy zero or hold.");
  return status;
}

ImkStatus
imk_shreconstruct_new (ImkBackend backend, const ImkShreconstructConfig *given,
    ImkShreconstruct **self, ImkError *error)
{
  ImkShreconstructConfig own;
  const ImkShreconstructConfig *config;
  const void *table = NULL;
  ImkShreconstruct *s;
  ImkStatus status;

  imk_shreconstruct_config_init (&own);
  config =
      imk_config_read (given, &own, "imk_shreconstruct_config_init", error);
  status = config ? check_config (config, error) : IMK_ERROR_CONFIG;
  if (status == IMK_OK)
    status = check_backend (backend, config, &table, error);
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return no_memory (error);
  s->backend = table;
  s->config = *config; /* but for arrays, which are copied */
  if (backend == IMK_BACKEND_CUDA)
    status = imk_device_get (&s->device, error);
  if (status == IMK_OK)
    status = imk_shreconstruct_choose_loops (&s->loops, error);
  if (status == IMK_OK)
    status = make_arrays (s, config, error);
  if (status == IMK_OK)
    status = make_stored (s, config, error);
  if (status == IMK_OK && config->invalid == IMK_SHRECONSTRUCT_INVALID_HOLD) {
    s->held = imk_shreconstruct_held_new (config);
    status = s->held ? IMK_OK : no_memory (error);
  }
  if (status != IMK_OK) {
    imk_shreconstruct_free (s);
    return status;
  }
  imk_shreconstruct_reset (s);
  *self = s;
  return IMK_OK;
}

/* Its inverse may be needed later than M. */
static ImkStatus
add_inverse (const ImkShreconstruct *s, float **inverse, ImkError *error)
{
  const ImkShreconstructConfig c = {.n_modes = s->config.n_modes,
      .n_commands = s->config.n_commands,
      .modes = s->modes};

  return make_inverse (&c, inverse, error);
}

/* --- the way to another c0 ------------------------------------------------ */

/* Returns: the next number on the way from @before to c0 */
static float
toward_reference (const ImkShreconstruct *s, uint32_t k, double before)
{
  const ImkShlimits limits = imk_shreconstruct_limits (&s->config);

  return (float) imk_shlimits_slew (&limits, s->reference[k], before);
}

static bool
differ (const ImkShreconstruct *s, const float *a, const float *b)
{
  return memcmp (a, b, s->config.n_commands * sizeof (*a)) != 0;
}

/* The commands that were sent are about @reference, or where they have no slew
 * limit about the one to be reached. */
static void
start_from (ImkShreconstruct *s, const float *reference)
{
  for (uint32_t k = 0; k < s->config.n_commands; k++)
    s->reference_sent[k] = isfinite (s->config.slew)
                               ? within (&s->config, reference[k])
                               : s->reference[k];
  s->moves = differ (s, s->reference_sent, s->reference) ||
             differ (s, s->reference_next, s->reference);
}

/* Before a frame. c0 moves by the slew limit at most: else the controller would
 * learn the limited step to it, and the mirror would never be there. */
static ImkStatus
move_reference (ImkShreconstruct *s, ImkError *error)
{
  if (!s->moves)
    return IMK_OK;
  for (uint32_t k = 0; k < s->config.n_commands; k++)
    s->reference_next[k] = toward_reference (s, k, s->reference_sent[k]);
  return s->backend->update (s->backend_state, &s->config, NULL, error);
}

/* After a frame that was sent. */
static void
take_reference (ImkShreconstruct *s)
{
  if (!s->moves)
    return;
  memcpy (s->reference_sent, s->reference_next,
      s->config.n_commands * sizeof (float));
  s->moves = differ (s, s->reference_sent, s->reference);
}

/* --- another controller --------------------------------------------------- */

/* What was sent under other limits is the last command within these. */
static void
continue_from (ImkShreconstruct *s, const float *sent)
{
  for (uint32_t k = 0; k < s->config.n_commands; k++) {
    s->sent[k] = within (&s->config, sent[k]);
    s->frame.is_new |= s->commands[k] != s->sent[k];
    s->commands[k] = s->sent[k];
  }
}

ImkStatus
imk_shreconstruct_update (ImkShreconstruct *self,
    const ImkShreconstructConfig *given, ImkError *error)
{
  ImkShreconstructConfig own, *now = &self->config;
  const ImkShreconstructConfig *c;
  float *inverse = NULL;
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
  if (status == IMK_OK && imk_shreconstruct_has_limits (c) && self->modes)
    status = add_inverse (self, &inverse, error);
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
  continue_from (self, self->sent);
  start_from (self, self->reference_sent);
  status = self->backend->update (self->backend_state, now, inverse, error);
  if (status == IMK_OK && inverse) {
    free (self->modes);
    self->modes = NULL;
    self->inverse = inverse;
  } else {
    free (inverse);
  }
  return status;
}

const char *
imk_shreconstruct_doubt (const ImkShreconstruct *self)
{
  if (self->held)
    return imk_shreconstruct_held_doubt (self->held);
  return self->backend_state && self->backend->doubt
             ? self->backend->doubt (self->backend_state)
             : NULL;
}

void
imk_shreconstruct_free (ImkShreconstruct *self)
{
  if (!self)
    return;
  if (self->backend_state)
    self->backend->destroy (self->backend_state);
  if (self->device && self->block)
    self->device->free_pinned (self->block);
  else
    free (self->block);
  free (self->offsets);
  free (self->reference);
  free (self->reference_next);
  free (self->sent);
  free (self->reference_sent);
  free (self->dead);
  free (self->feedback);
  free (self->forward);
  free (self->modes);
  free (self->inverse);
  imk_shreconstruct_held_free (self->held);
  free (self);
}

void
imk_shreconstruct_leave_device (ImkShreconstruct *self)
{
  const ImkDevice *device = self->device;
  uint8_t *pinned = self->block, *block;
  size_t size;

  if (!device)
    return;
  self->backend->destroy (self->backend_state);
  self->backend_state = NULL;
  self->device = NULL;
  size = lay_out (self, NULL, NULL);
  self->block = block = malloc (size);
  if (block)
    memcpy (block, pinned, size);
  lay_out (self, block, block);
  device->free_pinned (pinned);
}

bool
imk_shreconstruct_take_state (
    ImkShreconstruct *self, const ImkShreconstruct *from)
{
  const ImkShreconstructConfig *c = &self->config, *before = &from->config;
  size_t past = (size_t) c->n_modes * TERMS * sizeof (double);

  if (c->n_commands != before->n_commands)
    return false;
  if (isfinite (c->slew)) {
    continue_from (self, from->sent);
    start_from (self, from->sent);
  }
  if (c->n_cells != before->n_cells || c->n_modes != before->n_modes ||
      !from->block)
    return false;
  continue_from (self, from->sent);
  start_from (self, from->reference_sent);
  memcpy (self->q, from->q, past);
  memcpy (self->u, from->u, past);
  memcpy (self->slopes, from->slopes, 2 * c->n_cells * sizeof (float));
  self->frame.first = from->frame.first;
  self->frame.is_new = true;
  return true;
}

static void
forget (ImkShreconstruct *s)
{
  const ImkShreconstructConfig *c = &s->config;
  size_t past = (size_t) c->n_modes * TERMS * sizeof (double);

  memset (s->q, 0, past);
  memset (s->u, 0, past);
  memset (s->slopes, 0, 2 * (size_t) c->n_cells * sizeof (float));
  s->frame.is_new = true;
}

void
imk_shreconstruct_reset (ImkShreconstruct *self)
{
  size_t size = self->config.n_commands * sizeof (float);

  forget (self);
  memcpy (self->commands, self->reference, size);
  memcpy (self->sent, self->reference, size);
  start_from (self, self->reference);
}

bool
imk_shreconstruct_rest (ImkShreconstruct *self)
{
  bool is_there = true;

  if (!isfinite (self->config.slew)) {
    imk_shreconstruct_reset (self);
    return true;
  }
  forget (self);
  for (uint32_t k = 0; k < self->config.n_commands; k++) {
    float next = toward_reference (self, k, self->sent[k]);

    is_there &= next == self->sent[k];
    self->commands[k] = self->sent[k] = next;
  }
  start_from (self, self->sent);
  return is_there;
}

/* --- a frame -------------------------------------------------------------- */

static ImkShreconstructReport
read_counts (const ImkShreconstruct *s)
{
  ImkShreconstructReport r = {.n_out = s->counts->n_out};
  uint32_t n_parts = s->device ? IMK_SHRECONSTRUCT_VALID_PARTS : 1;

  for (uint32_t i = 0; i < n_parts; i++)
    r.n_valid += s->counts->n_valid[i];
  r.is_dark = imk_shreconstruct_is_dark (&s->config, r.n_valid);
  if (r.is_dark || !imk_shreconstruct_has_limits (&s->config))
    return r;
  n_parts = s->device ? IMK_SHRECONSTRUCT_LIMITED_PARTS : 1;
  for (uint32_t i = 0; i < n_parts; i++)
    r.n_limited += s->counts->n_limited[i];
  return r;
}

/* Whether no sum of the frame has become too large for a float32. */
static bool
is_sound (const ImkShreconstruct *s)
{
  const double *q = imk_shreconstruct_coefficients (s);

  for (uint32_t m = 0; m < s->config.n_modes; m++)
    if (!isfinite ((float) q[m]))
      return false;
  return s->loops->are_finite (s->commands, s->config.n_commands);
}

/* A backend sends a dead actuator to c0 at once, also where c0 is a new one. */
static void
lead_dead (ImkShreconstruct *s)
{
  for (uint32_t k = 0; s->config.dead && k < s->config.n_commands; k++)
    if (s->dead[k]) {
      float next = toward_reference (s, k, s->sent[k]);

      s->frame.is_new |= s->commands[k] != next;
      s->commands[k] = next;
    }
}

/* With a slew limit, what overflows is not sent: the next command stays near
 * the last one that was. */
static void
take_commands (ImkShreconstruct *s)
{
  const bool has_slew = isfinite (s->config.slew);

  if (has_slew && !is_sound (s))
    return;
  if (has_slew)
    lead_dead (s);
  memcpy (s->sent, s->commands, s->config.n_commands * sizeof (float));
}

/* Returns: what mode @m has of the commands that were sent, without c0 */
static double
sent_of_mode (const ImkShreconstruct *s, uint32_t m)
{
  const uint32_t n = s->config.n_commands;
  double sum = 0;

  if (!s->inverse)
    return (double) s->sent[m] - s->reference[m];
  for (uint32_t k = 0; k < n; k++)
    sum += (double) s->inverse[m * (size_t) n + k] *
           ((double) s->sent[k] - s->reference[k]);
  return sum;
}

/* A frame on the way to c0. When the light is back, the loop begins from what
 * was sent, and c0 is where it was. */
static void
rest_in_the_dark (ImkShreconstruct *s)
{
  imk_shreconstruct_rest (s);
  if (!isfinite (s->config.slew))
    return;
  for (uint32_t m = 0; m < s->config.n_modes; m++) {
    const double sent = sent_of_mode (s, m);

    for (uint32_t i = 0; i < TERMS; i++)
      s->q[i * (size_t) s->config.n_modes + m] = sent;
  }
  start_from (s, s->reference);
}

/* The frame is through. */
static void
finish (ImkShreconstruct *s, float *commands, ImkShreconstructReport *report)
{
  const ImkShreconstructReport r = read_counts (s);

  s->frame.is_new = false;
  if (r.is_dark && s->config.dark == IMK_SHRECONSTRUCT_DARK_REFERENCE)
    rest_in_the_dark (s);
  if (!r.is_dark) {
    s->frame.first = (s->frame.first + TERMS - 1) % TERMS;
    take_commands (s);
    take_reference (s);
    if (s->held)
      imk_shreconstruct_held_watch (s->held, s->slopes, r.n_valid);
  }
  imk_shreconstruct_commands (s, commands);
  if (report)
    *report = r;
}

void
imk_shreconstruct_process (ImkShreconstruct *self, const float *slopes,
    const uint8_t *flags, float *commands, ImkShreconstructReport *report)
{
  if (self->backend != &imk_shreconstruct_cpu) {
    imk_shreconstruct_commands (self, commands);
    return;
  }
  self->frame.slopes.data = (void *) slopes;
  self->frame.flags.data = (void *) flags;
  move_reference (self, NULL); /* on the CPU it cannot fail */
  self->backend->process (self->backend_state, &self->frame, NULL, NULL);
  finish (self, commands, report);
}

ImkStatus
imk_shreconstruct_begin (ImkShreconstruct *self, const ImkImage *slopes,
    const ImkImage *flags, void *stream, ImkError *error)
{
  const bool on_device = self->device != NULL;
  const uint32_t n_cells = self->config.n_cells;
  ImkStatus status = imk_image_check (
      slopes, "slopes", IMK_TYPE_F32, 1, 2 * n_cells, 1, on_device, error);

  if (status == IMK_OK && flags)
    status = imk_image_check (
        flags, "flags", IMK_TYPE_U8, 1, n_cells, 1, on_device, error);
  if (status != IMK_OK)
    return status;
  self->frame.slopes = *slopes;
  self->frame.flags = flags ? *flags : (ImkImage){.data = NULL};
  status = move_reference (self, error);
  if (status == IMK_OK)
    status = self->backend->process (
        self->backend_state, &self->frame, stream, error);
  self->frame.is_new |= status != IMK_OK;
  return status;
}

ImkStatus
imk_shreconstruct_end (ImkShreconstruct *self, float *commands,
    ImkShreconstructReport *report, void *stream, ImkError *error)
{
  ImkStatus status =
      self->device ? self->device->stream_synchronize (stream, error) : IMK_OK;

  if (status == IMK_OK)
    finish (self, commands, report);
  else
    self->frame.is_new = true;
  return status;
}

ImkStatus
imk_shreconstruct_process_images (ImkShreconstruct *self,
    const ImkImage *slopes, const ImkImage *flags, float *commands,
    ImkShreconstructReport *report, void *stream, ImkError *error)
{
  ImkStatus status =
      imk_shreconstruct_begin (self, slopes, flags, stream, error);

  return status == IMK_OK
             ? imk_shreconstruct_end (self, commands, report, stream, error)
             : status;
}

void
imk_shreconstruct_commands (const ImkShreconstruct *self, float *commands)
{
  memcpy (commands, self->sent, self->config.n_commands * sizeof (float));
}

bool
imk_shreconstruct_get_coefficients (
    const ImkShreconstruct *self, float *coefficients)
{
  const ImkShreconstructConfig *c = &self->config;

  self->loops->narrow (
      imk_shreconstruct_coefficients (self), c->n_modes, coefficients);
  return self->loops->are_finite (coefficients, c->n_modes) &&
         self->loops->are_finite (self->commands, c->n_commands);
}

const double *
imk_shreconstruct_coefficients (const ImkShreconstruct *self)
{
  return self->q + (size_t) self->frame.first * self->config.n_modes;
}

void
imk_shreconstruct_add (ImkShreconstruct *self, const float *change)
{
  double *q = self->q + (size_t) self->frame.first * self->config.n_modes;

  for (uint32_t m = 0; m < self->config.n_modes; m++)
    q[m] += change[m];
  self->frame.is_new = true;
}
