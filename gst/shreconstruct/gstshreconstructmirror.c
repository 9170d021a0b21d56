/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmirror.h"

#include <math.h>
#include <string.h>

#include "shcentroid/gstshcentroidfiles.h"

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

/* A change of gain or limits brings the file of before: a matrix of 1000 x 1000
 * takes 15 ms to copy, in the thread of the frames.
 * Returns: whether the matrix is another one */
static gboolean
take_matrix (GstShReconstructMirror *self, const GstImagingFile *file)
{
  const GstShCentroidArray *a = file->data;
  const guint n = (guint) a->dims[0], n_commands = (guint) a->dims[1];

  if (self->matrix && self->serial == file->serial)
    return FALSE;
  self->serial = file->serial;
  self->matrix = g_renew (gfloat, self->matrix, a->n);
  for (gsize row = 0; row < n; row++)
    for (gsize k = 0; k < n_commands; k++)
      self->matrix[k * n + row] = (gfloat) a->values[row * n_commands + k];
  if (n != self->n) {
    self->n = n;
    self->sent = g_renew (gfloat, self->sent, n);
    self->own_c0 = g_renew (gfloat, self->own_c0, n);
    self->lack = g_renew (gfloat, self->lack, n);
    self->has_sent = FALSE;
  }
  self->n_commands = n_commands;
  return TRUE;
}

/* @is_new: T is another one */
static void
take_c0 (GstShReconstructMirror *self, const ImkShreconstructConfig *c,
    gboolean is_new)
{
  const gsize size = self->n * sizeof (gfloat);
  g_autofree gfloat *before = g_steal_pointer (&self->c0);
  g_autofree gfloat *own_before = NULL;

  self->c0 = g_new (gfloat, c->n_commands);
  for (guint k = 0; k < c->n_commands; k++)
    self->c0[k] = (gfloat) imk_shreconstruct_c0 (c, k);
  if (!is_new &&
      memcmp (self->c0, before, c->n_commands * sizeof (gfloat)) == 0)
    return;
  own_before = g_memdup2 (self->own_c0, size);
  multiply (self, self->c0, self->own_c0);
  self->is_moving |=
      self->has_sent && memcmp (self->own_c0, own_before, size) != 0;
}

gboolean
gst_sh_reconstruct_mirror_take (
    GstShReconstructMirror *self, const GstShReconstructPlan *plan, guint i)
{
  gboolean is_within = TRUE, is_new;

  self->limits = plan->mirror_limits[i];
  if (!plan->mirrors[i]) {
    g_clear_pointer (&self->matrix, g_free);
    return TRUE;
  }
  is_new = take_matrix (self, plan->mirrors[i]);
  take_c0 (self, &plan->config, is_new);
  for (guint k = 0; k < self->n; k++) {
    const gdouble clipped = imk_shlimits_clip (&self->limits, self->own_c0[k]);

    is_within &= clipped == self->own_c0[k];
    if (!self->has_sent)
      self->sent[k] = (gfloat) clipped;
  }
  return is_within;
}

void
gst_sh_reconstruct_mirror_clear (GstShReconstructMirror *self)
{
  g_clear_pointer (&self->matrix, g_free);
  g_clear_pointer (&self->c0, g_free);
  g_clear_pointer (&self->sent, g_free);
  g_clear_pointer (&self->own_c0, g_free);
  g_clear_pointer (&self->lack, g_free);
  self->n = 0;
}

/* A command that is too large for a float32 is not sent.
 * Returns: the next one on the way from @sent to @wanted */
static gfloat
limit_command (const ImkShlimits *limits, gfloat sent, gfloat wanted)
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
    const gfloat next = limit_command (&self->limits, self->sent[i], wanted);
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
    if (limit_command (&self->limits, self->sent[i], wanted[i]) !=
        self->sent[i])
      return FALSE;
  return TRUE;
}
