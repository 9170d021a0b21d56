/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A frame, and what it leaves. */
#include <math.h>
#include <string.h>

#include "shreconstruct/shreconstruct-object.h"

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
is_finite (const ImkShreconstruct *s)
{
  const double *q = imk_shreconstruct_coefficients (s);

  for (uint32_t m = 0; m < s->config.n_modes; m++)
    if (!isfinite ((float) q[m]))
      return false;
  return s->loops->are_finite (s->commands, s->config.n_commands);
}

/* With a slew limit, what overflows is not sent: the next command stays near
 * the last one that was. */
static void
send_commands (ImkShreconstruct *s)
{
  const bool has_slew = isfinite (s->config.slew);

  if (has_slew && !is_finite (s))
    return;
  if (has_slew)
    imk_shreconstruct_step_dead_to_c0 (s);
  memcpy (s->sent, s->commands, s->config.n_commands * sizeof (float));
}

/* The frame is through. */
static void
end_frame (ImkShreconstruct *s, float *commands, ImkShreconstructReport *report)
{
  const ImkShreconstructReport r = read_counts (s);

  s->frame.is_new = false;
  if (r.is_dark && s->config.dark == IMK_SHRECONSTRUCT_DARK_REFERENCE)
    imk_shreconstruct_rest_in_the_dark (s);
  if (!r.is_dark) {
    s->frame.first = (s->frame.first + TERMS - 1) % TERMS;
    send_commands (s);
    imk_shreconstruct_end_step_to_c0 (s);
    if (s->held)
      imk_shreconstruct_held_watch (s->held, s->slopes, r.n_valid);
  }
  imk_shreconstruct_commands (s, commands);
  if (report)
    *report = r;
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
  status = imk_shreconstruct_step_to_c0 (self, error);
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
    end_frame (self, commands, report);
  else
    self->frame.is_new = true;
  return status;
}

ImkStatus
imk_shreconstruct_process (ImkShreconstruct *self, const ImkImage *slopes,
    const ImkImage *flags, float *commands, ImkShreconstructReport *report,
    void *stream, ImkError *error)
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

const char *
imk_shreconstruct_doubt (const ImkShreconstruct *self)
{
  if (self->held)
    return imk_shreconstruct_held_doubt (self->held);
  return self->backend_state && self->backend->doubt
             ? self->backend->doubt (self->backend_state)
             : NULL;
}
