/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands that were sent, and the way to c0. c0 moves by the slew limit at
 * most: else the controller would learn the limited step to it, and the mirror
 * would never be there. */
#include <math.h>
#include <string.h>

#include "shreconstruct/shreconstruct-object.h"

/* --- the way to c0 -------------------------------------------------------- */

static float
within (const ImkShreconstructConfig *c, double command)
{
  const ImkShlimits limits = imk_shreconstruct_limits (c);

  return (float) imk_shlimits_clip (&limits, command);
}

/* Returns: the next number on the way from @before to command @k of c0 */
static float
toward_c0 (const ImkShreconstruct *s, uint32_t k, double before)
{
  const ImkShlimits limits = imk_shreconstruct_limits (&s->config);

  return (float) imk_shlimits_slew (&limits, s->c0[k], before);
}

static bool
is_c0 (const ImkShreconstruct *s, const float *commands)
{
  return memcmp (commands, s->c0, s->config.n_commands * sizeof (float)) == 0;
}

void
imk_shreconstruct_set_sent (ImkShreconstruct *s, const float *sent)
{
  for (uint32_t k = 0; k < s->config.n_commands; k++) {
    s->sent[k] = within (&s->config, sent[k]);
    s->frame.is_new |= s->commands[k] != s->sent[k];
    s->commands[k] = s->sent[k];
  }
}

/* Without a slew limit there is no way, but one step. */
void
imk_shreconstruct_begin_way_to_c0 (ImkShreconstruct *s, const float *from)
{
  for (uint32_t k = 0; k < s->config.n_commands; k++)
    s->c0_of_sent[k] =
        isfinite (s->config.slew) ? within (&s->config, from[k]) : s->c0[k];
  s->c0_is_moving = !is_c0 (s, s->c0_of_sent) || !is_c0 (s, s->c0_of_frame);
}

void
imk_shreconstruct_set_commands (ImkShreconstruct *self, const float *commands)
{
  imk_shreconstruct_set_sent (self, commands);
  imk_shreconstruct_begin_way_to_c0 (self, self->sent);
}

ImkStatus
imk_shreconstruct_step_to_c0 (ImkShreconstruct *s, ImkError *error)
{
  if (!s->c0_is_moving)
    return IMK_OK;
  for (uint32_t k = 0; k < s->config.n_commands; k++)
    s->c0_of_frame[k] = toward_c0 (s, k, s->c0_of_sent[k]);
  return s->backend->update (s->backend_state, &s->config, NULL, error);
}

void
imk_shreconstruct_end_step_to_c0 (ImkShreconstruct *s)
{
  if (!s->c0_is_moving)
    return;
  memcpy (s->c0_of_sent, s->c0_of_frame, s->config.n_commands * sizeof (float));
  s->c0_is_moving = !is_c0 (s, s->c0_of_sent);
}

/* A backend sends a dead actuator to c0 at once, also where c0 is a new one. */
void
imk_shreconstruct_step_dead_to_c0 (ImkShreconstruct *s)
{
  for (uint32_t k = 0; s->config.dead && k < s->config.n_commands; k++)
    if (s->dead[k]) {
      float next = toward_c0 (s, k, s->sent[k]);

      s->frame.is_new |= s->commands[k] != next;
      s->commands[k] = next;
    }
}

/* --- a loop that begins anew ---------------------------------------------- */

static void
clear_past (ImkShreconstruct *s)
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

  clear_past (self);
  memcpy (self->commands, self->c0, size);
  memcpy (self->sent, self->c0, size);
  imk_shreconstruct_begin_way_to_c0 (self, self->c0);
}

bool
imk_shreconstruct_rest (ImkShreconstruct *self)
{
  bool is_there = true;

  if (!isfinite (self->config.slew)) {
    imk_shreconstruct_reset (self);
    return true;
  }
  clear_past (self);
  for (uint32_t k = 0; k < self->config.n_commands; k++) {
    float next = toward_c0 (self, k, self->sent[k]);

    is_there &= next == self->sent[k];
    self->commands[k] = self->sent[k] = next;
  }
  imk_shreconstruct_begin_way_to_c0 (self, self->sent);
  return is_there;
}

/* Returns: what mode @m has of the commands that were sent, without c0 */
static double
find_sent_of_mode (const ImkShreconstruct *s, uint32_t m)
{
  const uint32_t n = s->config.n_commands;
  double sum = 0;

  if (!s->inverse)
    return (double) s->sent[m] - s->c0[m];
  for (uint32_t k = 0; k < n; k++)
    sum += (double) s->inverse[m * (size_t) n + k] *
           ((double) s->sent[k] - s->c0[k]);
  return sum;
}

/* When the light is back, the loop begins from what was sent, about the c0 that
 * it had before. */
void
imk_shreconstruct_rest_in_the_dark (ImkShreconstruct *s)
{
  imk_shreconstruct_rest (s);
  if (!isfinite (s->config.slew))
    return;
  for (uint32_t m = 0; m < s->config.n_modes; m++) {
    const double sent = find_sent_of_mode (s, m);

    for (uint32_t i = 0; i < TERMS; i++)
      s->q[i * (size_t) s->config.n_modes + m] = sent;
  }
  imk_shreconstruct_begin_way_to_c0 (s, s->c0);
}

/* --- the state of another object ------------------------------------------ */

bool
imk_shreconstruct_take_state (
    ImkShreconstruct *self, const ImkShreconstruct *from)
{
  const ImkShreconstructConfig *c = &self->config, *before = &from->config;
  size_t past = (size_t) c->n_modes * TERMS * sizeof (double);

  if (c->n_commands != before->n_commands)
    return false;
  if (isfinite (c->slew)) {
    imk_shreconstruct_set_sent (self, from->sent);
    imk_shreconstruct_begin_way_to_c0 (self, from->sent);
  }
  if (c->n_cells != before->n_cells || c->n_modes != before->n_modes ||
      !from->block)
    return false;
  imk_shreconstruct_set_sent (self, from->sent);
  imk_shreconstruct_begin_way_to_c0 (self, from->c0_of_sent);
  memcpy (self->q, from->q, past);
  memcpy (self->u, from->u, past);
  memcpy (self->slopes, from->slopes, 2 * c->n_cells * sizeof (float));
  self->frame.first = from->frame.first;
  self->frame.is_new = true;
  return true;
}
