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

static gdouble
within (const GstShReconstructLimits *limits, gdouble command)
{
  return fmin (fmax (command, limits->minimum), limits->maximum);
}

/* @flat: [n]: T c0 */
static void
find_flat (const GstShReconstructMirror *self, const ImkShreconstructConfig *c,
    gfloat *flat)
{
  const GstShReconstructLimits limits = {c->minimum, c->maximum, 0};
  g_autofree gfloat *commands = g_new (gfloat, c->n_commands);

  for (guint i = 0; i < c->n_commands; i++)
    commands[i] = (gfloat) within (&limits, c->reference ? c->reference[i] : 0);
  multiply (self, commands, flat);
}

gboolean
gst_sh_reconstruct_mirror_take (
    GstShReconstructMirror *self, GstShReconstructPlan *plan, guint i)
{
  const GstShReconstructLimits *limits = &plan->mirror_limits[i];
  const guint n = plan->mirror_commands[i];
  g_autofree gfloat *flat = g_new (gfloat, n);
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
    self->flat = g_renew (gfloat, self->flat, n);
    self->lack = g_renew (gfloat, self->lack, n);
    self->has_sent = FALSE;
  }
  find_flat (self, &plan->config, flat);
  self->is_moving |=
      self->has_sent && memcmp (flat, self->flat, n * sizeof (*flat)) != 0;
  memcpy (self->flat, flat, n * sizeof (*flat));
  for (guint k = 0; k < n; k++) {
    is_within &= flat[k] >= limits->minimum && flat[k] <= limits->maximum;
    if (!self->has_sent)
      self->sent[k] = (gfloat) within (limits, flat[k]);
  }
  return is_within;
}

void
gst_sh_reconstruct_mirror_clear (GstShReconstructMirror *self)
{
  g_clear_pointer (&self->matrix, g_free);
  g_clear_pointer (&self->sent, g_free);
  g_clear_pointer (&self->flat, g_free);
  g_clear_pointer (&self->lack, g_free);
  self->n = 0;
}

/* A command that is too large for a float32 is not sent.
 * Returns: the next one on the way from @sent to @wanted */
static gfloat
next_of (const GstShReconstructLimits *limits, gfloat sent, gfloat wanted)
{
  gdouble next = isfinite (wanted) ? wanted : sent;

  if (limits->slew > 0)
    next = fmin (fmax (next, sent - limits->slew), sent + limits->slew);
  return (gfloat) within (limits, next);
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
    const gfloat near = (gfloat) within (&self->limits, wanted);

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

  if (!self->matrix || self->limits.slew <= 0)
    return TRUE;
  wanted = g_new (gfloat, self->n);
  multiply (self, commands, wanted);
  for (guint i = 0; i < self->n; i++)
    if (next_of (&self->limits, self->sent[i], wanted[i]) != self->sent[i])
      return FALSE;
  return TRUE;
}
