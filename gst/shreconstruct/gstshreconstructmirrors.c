/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmirrors.h"

#include "gstimagingmetadata.h"
#include "gstshreconstructmirror.h"
#include "gstshreconstructtensors.h"
#include "imk/shwindup.h"

enum { N_MIRRORS = GST_SH_RECONSTRUCT_N_MIRRORS };

struct _GstShReconstructMirrors {
  GstElement *element; /* owns this */
  GstShReconstructOutputs *outputs;
  guint n_commands, n_modes; /* of the pad src; 0 before a plan */
  gint fps_n, fps_d;
  gfloat *modes; /* (nullable): M [n_commands][n_modes] */
  GstShReconstructMirror mirrors[N_MIRRORS];
  gboolean is_clipped[N_MIRRORS]; /* T c0 of it */
  gboolean is_silent[N_MIRRORS];  /* and was warned of */
  gboolean has_new_caps[N_MIRRORS];
};

GstShReconstructMirrors *
gst_sh_reconstruct_mirrors_new (
    GstElement *element, GstShReconstructOutputs *outputs)
{
  GstShReconstructMirrors *self = g_new0 (GstShReconstructMirrors, 1);

  self->element = element;
  self->outputs = outputs;
  return self;
}

void
gst_sh_reconstruct_mirrors_reset (GstShReconstructMirrors *self)
{
  g_clear_pointer (&self->modes, g_free);
  for (guint i = 0; i < N_MIRRORS; i++) {
    gst_sh_reconstruct_mirror_clear (&self->mirrors[i]);
    self->is_clipped[i] = self->is_silent[i] = FALSE;
  }
  self->n_commands = self->n_modes = 0;
}

void
gst_sh_reconstruct_mirrors_free (GstShReconstructMirrors *self)
{
  gst_sh_reconstruct_mirrors_reset (self);
  g_free (self);
}

/* --- settings ------------------------------------------------------------- */

#define NEEDS_MATRIX \
  "The pad mirror_%u has no matrix. Set mirror-%u-location to an array " \
  "[commands of this mirror, %u]."

ImkStatus
gst_sh_reconstruct_mirrors_check (GstShReconstructMirrors *self,
    const GstShReconstructPlan *plan, ImkError *error)
{
  const gboolean is_start = self->n_commands == 0;

  for (guint i = 0; i < N_MIRRORS; i++)
    if (!plan->mirrors[i] && (is_start || self->mirrors[i].matrix) &&
        gst_sh_reconstruct_outputs_has_mirror (self->outputs, i))
      return imk_error_set (
          error, IMK_ERROR_CONFIG, NEEDS_MATRIX, i, i, plan->config.n_commands);
  return IMK_OK;
}

static void
renew_caps (GstShReconstructMirrors *self)
{
  for (guint i = 0; i < N_MIRRORS; i++)
    self->has_new_caps[i] = TRUE;
}

void
gst_sh_reconstruct_mirrors_set_rate (
    GstShReconstructMirrors *self, gint fps_n, gint fps_d)
{
  self->fps_n = fps_n;
  self->fps_d = fps_d;
  renew_caps (self);
}

void
gst_sh_reconstruct_mirrors_take (
    GstShReconstructMirrors *self, GstShReconstructPlan *plan)
{
  self->n_commands = plan->config.n_commands;
  self->n_modes = plan->config.n_modes;
  if (plan->has_matrices) {
    g_free (self->modes);
    self->modes = g_steal_pointer (&plan->modes);
  }
  renew_caps (self);
  for (guint i = 0; i < N_MIRRORS; i++) {
    const gboolean was_clipped = self->is_clipped[i];

    self->is_clipped[i] =
        !gst_sh_reconstruct_mirror_take (&self->mirrors[i], plan, i);
    if (self->is_clipped[i] && !was_clipped)
      GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS,
          ("The reference commands are beyond mirror-%u-minimum or "
           "mirror-%u-maximum, so the nearer of the two takes their place. "
           "Set other limits or another reference-location.",
              i, i),
          (NULL));
  }
}

/* --- frames --------------------------------------------------------------- */

gboolean
gst_sh_reconstruct_mirrors_are_at (
    GstShReconstructMirrors *self, const gfloat *commands)
{
  for (guint i = 0; i < N_MIRRORS; i++)
    if (gst_sh_reconstruct_outputs_has_mirror (self->outputs, i) &&
        !gst_sh_reconstruct_mirror_is_at (&self->mirrors[i], commands))
      return FALSE;
  return TRUE;
}

static GstBuffer *
mirror_buffer (GstShReconstructMirror *mirror, const gfloat *commands,
    gboolean is_held, GstBuffer *like)
{
  gfloat *out = g_new (gfloat, mirror->n);
  GstBuffer *buffer;

  gst_sh_reconstruct_mirror_send (mirror, commands, is_held, out);
  buffer = gst_buffer_new_wrapped (out, mirror->n * sizeof (*out));
  gst_imaging_metadata_pass (buffer, like, FALSE);
  return buffer;
}

/* A pad that was requested while frames pass has no buffers before its matrix
 * is set. Once. */
static void
report_silence (GstShReconstructMirrors *self, guint mirror)
{
  if (!self->is_silent[mirror])
    GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS,
        (NEEDS_MATRIX " Until then it has no buffers.", mirror, mirror,
            self->n_commands),
        (NULL));
  self->is_silent[mirror] = TRUE;
}

static GstFlowReturn
push_mirror (GstShReconstructMirrors *self, guint mirror, GstImagingSrcPad *pad,
    GstBuffer *buffer)
{
  GstFlowReturn flow = GST_FLOW_OK;

  if (self->has_new_caps[mirror] || !gst_imaging_src_pad_is_negotiated (pad))
    flow = gst_imaging_src_pad_negotiate (pad, GST_IMAGING_PREFER_OURS,
        gst_sh_reconstruct_commands_caps (
            self->mirrors[mirror].n, self->fps_n, self->fps_d));
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  self->has_new_caps[mirror] = FALSE;
  return gst_imaging_src_pad_push (pad, buffer);
}

GstFlowReturn
gst_sh_reconstruct_mirrors_push (GstShReconstructMirrors *self,
    const gfloat *commands, gboolean is_held, GstBuffer *out, gint *limited)
{
  GstFlowReturn flow = GST_FLOW_NOT_LINKED;

  *limited = -1;
  for (guint i = 0; i < N_MIRRORS; i++) {
    g_autoptr (GstImagingSrcPad) pad =
        gst_sh_reconstruct_outputs_get_mirror (self->outputs, i);

    GstShReconstructMirror *mirror = &self->mirrors[i];
    GstBuffer *buffer;

    if (pad && !mirror->matrix) {
      report_silence (self, i);
      flow = gst_sh_reconstruct_combine (flow, GST_FLOW_OK);
    }
    if (!pad || !mirror->matrix)
      continue;
    buffer = mirror_buffer (mirror, commands, is_held, out);
    if (mirror->is_limited)
      *limited = (gint) i;
    flow =
        gst_sh_reconstruct_combine (flow, push_mirror (self, i, pad, buffer));
  }
  return flow;
}

gboolean
gst_sh_reconstruct_mirrors_find_windup (
    GstShReconstructMirrors *self, gfloat *change)
{
  ImkShwindupMirror used[N_MIRRORS];
  guint n = 0;

  for (guint i = 0; i < N_MIRRORS; i++) {
    const GstShReconstructMirror *mirror = &self->mirrors[i];

    if (mirror->matrix && mirror->has_sent &&
        gst_sh_reconstruct_outputs_has_mirror (self->outputs, i))
      used[n++] = (ImkShwindupMirror){mirror->n, mirror->matrix, mirror->lack};
  }
  return n > 0 && imk_shwindup_find (used, n, self->modes, self->n_commands,
                      self->n_modes, change);
}
