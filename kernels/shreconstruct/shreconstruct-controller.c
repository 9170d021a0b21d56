/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The controller of an object, which may be another one between frames. */
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "shreconstruct/shreconstruct-object.h"

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

/* Offsets, reference commands, dead actuators and terms. */
static void
copy_controller (ImkShreconstruct *s, const ImkShreconstructConfig *c)
{
  size_t n_slopes = 2 * (size_t) c->n_cells;

  memset (s->offsets, 0, n_slopes * sizeof (float));
  memset (s->dead, 0, c->n_commands);
  if (c->offsets)
    memcpy (s->offsets, c->offsets, n_slopes * sizeof (float));
  for (uint32_t k = 0; k < c->n_commands; k++)
    s->c0_of_frame[k] = s->c0[k] = (float) imk_shreconstruct_c0 (c, k);
  if (c->dead)
    memcpy (s->dead, c->dead, c->n_commands);
  fill_terms (s, c);
  s->config.offsets = s->offsets;
  s->config.reference = s->c0_of_frame;
  s->config.dead = c->dead ? s->dead : NULL;
  s->config.feedback = s->feedback;
  s->config.forward = s->forward;
}

ImkStatus
imk_shreconstruct_make_controller (
    ImkShreconstruct *s, const ImkShreconstructConfig *c, ImkError *error)
{
  const size_t n_terms = (size_t) c->n_modes * TERMS, n = c->n_commands;
  const size_t n_slopes = 2 * (size_t) c->n_cells;

  s->feedback = calloc (1,
      2 * n_terms * sizeof (double) + (n_slopes + 4 * n) * sizeof (float) + n);
  if (!s->feedback)
    return imk_shreconstruct_no_memory (error);
  s->forward = s->feedback + n_terms;
  s->offsets = (float *) (s->forward + n_terms);
  s->sent = s->offsets + n_slopes;
  s->c0 = s->sent + n;
  s->c0_of_frame = s->c0 + n;
  s->c0_of_sent = s->c0_of_frame + n;
  s->dead = (uint8_t *) (s->c0_of_sent + n);
  copy_controller (s, c);
  return IMK_OK;
}

ImkStatus
imk_shreconstruct_make_inverse (
    const ImkShreconstructConfig *c, float **inverse, ImkError *error)
{
  size_t n = (size_t) c->n_modes * c->n_commands;
  double *exact = malloc (n * sizeof (*exact));
  float *rounded = malloc (n * sizeof (*rounded));
  ImkStatus status = IMK_OK;

  if (!exact || !rounded)
    status = imk_shreconstruct_no_memory (error);
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

static bool
has_other_dead (const ImkShreconstruct *self, const ImkShreconstructConfig *c)
{
  for (uint32_t k = 0; k < c->n_commands; k++)
    if ((c->dead && c->dead[k]) != (self->dead[k] != 0))
      return true;
  return false;
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
  status = imk_shreconstruct_check_controller (c, error);
  if (status == IMK_OK && self->modes &&
      (self->inverse ? has_other_dead (self, c)
                     : imk_shreconstruct_has_limits (c))) {
    ImkShreconstructConfig with_modes = *c;

    with_modes.modes = self->modes;
    status = imk_shreconstruct_make_inverse (&with_modes, &inverse, error);
  }
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
  copy_controller (self, c);
  imk_shreconstruct_set_sent (self, self->sent);
  imk_shreconstruct_begin_way_to_c0 (self, self->c0_of_sent);
  status = self->backend->update (self->backend_state, now, inverse, error);
  if (status == IMK_OK && inverse) {
    free (self->inverse);
    self->inverse = inverse;
  } else {
    free (inverse);
  }
  return status;
}
