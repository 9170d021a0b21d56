/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmirror.h"

#include <math.h>
#include <string.h>

static void
multiply (
    const GstShReconstructMirror *self, const gfloat *commands, gfloat *out)
{
  memset (out, 0, self->n * sizeof (*out));
  for (guint k = 0; k < self->n_commands; k++) {
    const gfloat *column = self->matrix + (gsize) k * self->n;

    for (guint i = 0; i < self->n; i++)
      out[i] += column[i] * commands[k];
  }
}

/* @reference: [n]: T c0 */
static void
find_reference (const GstShReconstructMirror *self,
    const ImkShreconstructConfig *c, gfloat *reference)
{
  const ImkShlimits limits = {c->minimum, c->maximum, INFINITY};
  g_autofree gfloat *commands = g_new (gfloat, c->n_commands);

  for (guint i = 0; i < c->n_commands; i++)
    commands[i] = (gfloat) imk_shlimits_clip (
        &limits, c->reference ? c->reference[i] : 0);
  multiply (self, commands, reference);
}

gboolean
gst_sh_reconstruct_mirror_take (
    GstShReconstructMirror *self, GstShReconstructPlan *plan, guint i)
{
  const ImkShlimits *limits = &plan->mirror_limits[i];
  const guint n = plan->mirror_commands[i];
  g_autofree gfloat *reference = g_new (gfloat, n);
  gboolean is_within = TRUE;

  g_free (self->matrix);
  self->matrix = g_steal_pointer (&plan->mirrors[i]);
  self->limits = *limits;
  self->n_commands = plan->config.n_commands;
  if (!self->matrix)
    return TRUE;
  if (n != self->n) {
    self->n = n;
    self->sent = g_renew (gfloat, self->sent, n);
    self->reference = g_renew (gfloat, self->reference, n);
    self->lack = g_renew (gfloat, self->lack, n);
    self->has_sent = FALSE;
  }
  find_reference (self, &plan->config, reference);
  self->is_moving |= self->has_sent && memcmp (reference, self->reference,
                                           n * sizeof (*reference)) != 0;
  memcpy (self->reference, reference, n * sizeof (*reference));
  for (guint k = 0; k < n; k++) {
    const gdouble clipped = imk_shlimits_clip (limits, reference[k]);

    is_within &= clipped == reference[k];
    if (!self->has_sent)
      self->sent[k] = (gfloat) clipped;
  }
  return is_within;
}

void
gst_sh_reconstruct_mirror_clear (GstShReconstructMirror *self)
{
  g_clear_pointer (&self->matrix, g_free);
  g_clear_pointer (&self->sent, g_free);
  g_clear_pointer (&self->reference, g_free);
  g_clear_pointer (&self->lack, g_free);
  self->n = 0;
}

/* A command that is too large for a float32 is not sent.
 * Returns: the next one on the way from @sent to @wanted */
static gfloat
next_of (const ImkShlimits *limits, gfloat sent, gfloat wanted)
{
  return (gfloat) imk_shlimits_send (
      limits, isfinite (wanted) ? wanted : sent, sent);
}

void
gst_sh_reconstruct_mirror_send (GstShReconstructMirror *self,
    const gfloat *commands, gboolean is_held, gfloat *out)
{
  const gboolean stays = is_held && self->has_sent;
  gboolean is_there = TRUE;

  if (!stays)
    multiply (self, commands, out);
  self->is_limited = FALSE;
  for (guint i = 0; i < self->n; i++) {
    const gfloat wanted = stays ? self->sent[i] : out[i];
    const gfloat next = next_of (&self->limits, self->sent[i], wanted);
    const gfloat near = (gfloat) imk_shlimits_clip (&self->limits, wanted);

    self->lack[i] = (self->is_moving ? near : next) - wanted;
    self->is_limited |= next != wanted;
    is_there &= next == near;
    self->sent[i] = out[i] = next;
  }
  self->is_moving &= !is_there;
  self->has_sent = TRUE;
}

gboolean
gst_sh_reconstruct_mirror_is_at (
    const GstShReconstructMirror *self, const gfloat *commands)
{
  g_autofree gfloat *wanted = NULL;

  if (!self->matrix || !isfinite (self->limits.slew))
    return TRUE;
  wanted = g_new (gfloat, self->n);
  multiply (self, commands, wanted);
  for (guint i = 0; i < self->n; i++)
    if (next_of (&self->limits, self->sent[i], wanted[i]) != self->sent[i])
      return FALSE;
  return TRUE;
}
