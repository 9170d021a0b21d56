/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructoutputs.h"

#include <string.h>

#include "gstimagingmetadata.h"
#include "gstshreconstructmirror.h"
#include "gstshreconstructtensors.h"
#include "gstshreconstructwavefront.h"
#include "imk/shwindup.h"

enum { WAVEFRONT, MIRROR_0, N_PADS = MIRROR_0 + GST_SH_RECONSTRUCT_N_MIRRORS };

static const gchar *const results_names[] = {"results"};
static const gchar *const pad_names[N_PADS] = {
    "wavefront", "mirror_0", "mirror_1", "mirror_2", "mirror_3"};

struct _GstShReconstructOutputs {
  GstElement *element; /* owns this */
  GstImagingSrcPads *results, *pads;

  /* of the streaming thread */
  guint n_commands, n_modes, n_outputs;
  gint *map;
  gfloat *modes; /* (nullable): M [n_commands][n_modes] */
  GstShReconstructMirror mirrors[GST_SH_RECONSTRUCT_N_MIRRORS];
  gboolean is_clipped[GST_SH_RECONSTRUCT_N_MIRRORS]; /* T c0 of it */
  gboolean is_silent[GST_SH_RECONSTRUCT_N_MIRRORS];  /* and was warned of */
  gboolean has_new_caps[GST_SH_RECONSTRUCT_N_MIRRORS];
};

static GstStaticPadTemplate templates[] = {
    GST_STATIC_PAD_TEMPLATE ("results", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_IMAGING_RESULTS_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("wavefront", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_SH_RECONSTRUCT_WAVEFRONT_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("mirror_%u", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_SH_RECONSTRUCT_TENSOR_CAPS)),
};

void
gst_sh_reconstruct_outputs_add_templates (GstElementClass *klass)
{
  for (guint i = 0; i < G_N_ELEMENTS (templates); i++)
    gst_element_class_add_static_pad_template (klass, &templates[i]);
}

GstShReconstructOutputs *
gst_sh_reconstruct_outputs_new (GstElement *element, GstPadQueryFunction query)
{
  GstShReconstructOutputs *self = g_new0 (GstShReconstructOutputs, 1);

  self->element = element;
  self->results = gst_imaging_src_pads_new (
      element, GST_TYPE_IMAGING_RESULTS_PAD, results_names, 1);
  self->pads = gst_imaging_src_pads_new (
      element, GST_TYPE_IMAGING_SRC_PAD, pad_names, N_PADS);
  gst_imaging_src_pads_set_functions (self->results, NULL, query);
  gst_imaging_src_pads_set_functions (self->pads, NULL, query);
  return self;
}

static void
clear_plan (GstShReconstructOutputs *self)
{
  g_clear_pointer (&self->map, g_free);
  g_clear_pointer (&self->modes, g_free);
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++) {
    gst_sh_reconstruct_mirror_clear (&self->mirrors[i]);
    self->is_clipped[i] = self->is_silent[i] = FALSE;
  }
  self->n_outputs = 0;
}

void
gst_sh_reconstruct_outputs_free (GstShReconstructOutputs *self)
{
  clear_plan (self);
  gst_imaging_src_pads_free (self->results);
  gst_imaging_src_pads_free (self->pads);
  g_free (self);
}

void
gst_sh_reconstruct_outputs_reset (GstShReconstructOutputs *self)
{
  g_autoptr (GstImagingResultsPad) results =
      gst_sh_reconstruct_outputs_get_results (self);

  clear_plan (self);
  if (results)
    gst_imaging_results_pad_reset (results);
  gst_imaging_src_pads_reset (self->results);
  gst_imaging_src_pads_reset (self->pads);
}

/* --- pads ----------------------------------------------------------------- */

/* The first mirror that nobody has, or that of the name. Returns: (transfer
 * full) (nullable): a template of its own, as names of pads are those of
 * templates */
static GstPadTemplate *
mirror_template (GstShReconstructOutputs *self, GstPadTemplate *pad_template,
    const gchar *name)
{
  for (guint i = MIRROR_0; i < N_PADS; i++)
    if (name ? g_str_equal (name, pad_names[i])
             : !gst_imaging_src_pads_has (self->pads, i))
      return gst_pad_template_new (pad_names[i], GST_PAD_SRC, GST_PAD_REQUEST,
          gst_pad_template_get_caps (pad_template));
  return NULL;
}

GstPad *
gst_sh_reconstruct_outputs_request (GstShReconstructOutputs *self,
    GstPadTemplate *pad_template, const gchar *name)
{
  const gchar *kind = GST_PAD_TEMPLATE_NAME_TEMPLATE (pad_template);
  GstPadTemplate *mirror;
  GstPad *pad;

  if (g_str_equal (kind, "results"))
    return gst_imaging_src_pads_request (self->results, pad_template);
  if (g_str_equal (kind, "wavefront"))
    return gst_imaging_src_pads_request (self->pads, pad_template);
  mirror = mirror_template (self, pad_template, name);
  if (!mirror)
    return NULL;
  pad = gst_imaging_src_pads_request (self->pads, mirror);
  gst_object_unref (mirror);
  return pad;
}

void
gst_sh_reconstruct_outputs_release (GstShReconstructOutputs *self, GstPad *pad)
{
  if (!GST_IS_IMAGING_RESULTS_PAD (pad)) {
    gst_imaging_src_pads_release (self->pads, pad);
    return;
  }
  gst_imaging_results_pad_close (GST_IMAGING_RESULTS_PAD (pad));
  gst_imaging_src_pads_release (self->results, pad);
}

void
gst_sh_reconstruct_outputs_event (
    GstShReconstructOutputs *self, GstEvent *event)
{
  g_autoptr (GstImagingResultsPad) results = NULL;

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS)
    return;
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS ||
      GST_EVENT_TYPE (event) == GST_EVENT_GAP)
    results = gst_sh_reconstruct_outputs_get_results (self);
  if (results)
    gst_imaging_results_pad_negotiate_text (results);
  gst_imaging_src_pads_event (self->results, event);
  gst_imaging_src_pads_event (self->pads, event);
}

GstImagingResultsPad *
gst_sh_reconstruct_outputs_get_results (GstShReconstructOutputs *self)
{
  return (GstImagingResultsPad *) gst_imaging_src_pads_get (self->results, 0);
}

GstImagingSrcPad *
gst_sh_reconstruct_outputs_get_wavefront (GstShReconstructOutputs *self)
{
  return gst_imaging_src_pads_get (self->pads, WAVEFRONT);
}

GstFlowReturn
gst_sh_reconstruct_combine (GstFlowReturn a, GstFlowReturn b)
{
  if (a == GST_FLOW_NOT_LINKED)
    return b;
  if (b == GST_FLOW_NOT_LINKED)
    return a;
  if (a < GST_FLOW_EOS || b < GST_FLOW_EOS)
    return MIN (a, b);
  return a == GST_FLOW_EOS ? b : a;
}

/* --- commands ------------------------------------------------------------- */

#define NEEDS_MATRIX \
  "The pad mirror_%u has no matrix. Set mirror-%u-location to an array " \
  "[commands of this mirror, %u]."

ImkStatus
gst_sh_reconstruct_outputs_check (GstShReconstructOutputs *self,
    const GstShReconstructPlan *plan, ImkError *error)
{
  const gboolean is_start = self->n_outputs == 0;

  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    if (!plan->mirrors[i] && (is_start || self->mirrors[i].matrix) &&
        gst_imaging_src_pads_has (self->pads, MIRROR_0 + i))
      return imk_error_set (
          error, IMK_ERROR_CONFIG, NEEDS_MATRIX, i, i, plan->config.n_commands);
  return IMK_OK;
}

void
gst_sh_reconstruct_outputs_renew_caps (GstShReconstructOutputs *self)
{
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    self->has_new_caps[i] = TRUE;
}

void
gst_sh_reconstruct_outputs_take (
    GstShReconstructOutputs *self, GstShReconstructPlan *plan)
{
  self->n_commands = plan->config.n_commands;
  self->n_modes = plan->config.n_modes;
  self->n_outputs = plan->n_outputs;
  if (plan->has_matrices) {
    g_free (self->modes);
    self->modes = g_steal_pointer (&plan->modes);
  }
  g_free (self->map);
  self->map = g_steal_pointer (&plan->map);
  gst_sh_reconstruct_outputs_renew_caps (self);
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++) {
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

guint
gst_sh_reconstruct_outputs_n (const GstShReconstructOutputs *self)
{
  return self->n_outputs;
}

void
gst_sh_reconstruct_outputs_map (
    const GstShReconstructOutputs *self, const gfloat *commands, gfloat *out)
{
  if (!self->map)
    memcpy (out, commands, self->n_outputs * sizeof (*out));
  else
    for (guint i = 0; i < self->n_outputs; i++)
      out[i] = self->map[i] < 0 ? 0 : commands[self->map[i]];
}

gboolean
gst_sh_reconstruct_outputs_are_at (
    GstShReconstructOutputs *self, const gfloat *commands)
{
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    if (gst_imaging_src_pads_has (self->pads, MIRROR_0 + i) &&
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
report_silence (GstShReconstructOutputs *self, guint mirror)
{
  if (!self->is_silent[mirror])
    GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS,
        (NEEDS_MATRIX " Until then it has no buffers.", mirror, mirror,
            self->n_commands),
        (NULL));
  self->is_silent[mirror] = TRUE;
}

static GstFlowReturn
push_mirror (GstShReconstructOutputs *self, guint mirror, GstImagingSrcPad *pad,
    GstBuffer *buffer, gint fps_n, gint fps_d)
{
  GstFlowReturn flow = GST_FLOW_OK;

  if (self->has_new_caps[mirror] || !gst_imaging_src_pad_is_negotiated (pad))
    flow = gst_imaging_src_pad_negotiate (pad, GST_IMAGING_PREFER_OURS,
        gst_sh_reconstruct_commands_caps (
            self->mirrors[mirror].n, fps_n, fps_d));
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  self->has_new_caps[mirror] = FALSE;
  return gst_imaging_src_pad_push (pad, buffer);
}

GstFlowReturn
gst_sh_reconstruct_outputs_push_mirrors (GstShReconstructOutputs *self,
    const gfloat *commands, gboolean is_held, GstBuffer *out, gint fps_n,
    gint fps_d, gint *limited)
{
  GstFlowReturn flow = GST_FLOW_NOT_LINKED;

  *limited = -1;
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++) {
    g_autoptr (GstImagingSrcPad) pad =
        gst_imaging_src_pads_get (self->pads, MIRROR_0 + i);

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
    flow = gst_sh_reconstruct_combine (
        flow, push_mirror (self, i, pad, buffer, fps_n, fps_d));
  }
  return flow;
}

gboolean
gst_sh_reconstruct_outputs_find_windup (
    GstShReconstructOutputs *self, gfloat *change)
{
  ImkShwindupMirror used[GST_SH_RECONSTRUCT_N_MIRRORS];
  guint n = 0;

  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++) {
    const GstShReconstructMirror *mirror = &self->mirrors[i];

    if (mirror->matrix && mirror->has_sent &&
        gst_imaging_src_pads_has (self->pads, MIRROR_0 + i))
      used[n++] = (ImkShwindupMirror){mirror->n, mirror->matrix, mirror->lack};
  }
  return n > 0 && imk_shwindup_find (used, n, self->modes, self->n_commands,
                      self->n_modes, change);
}
