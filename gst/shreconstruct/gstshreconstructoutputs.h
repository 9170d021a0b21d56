/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pads on request: results, wavefront, mirror_0, ... */
#pragma once

#include "gstimagingresultspad.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructOutputs GstShReconstructOutputs;

/* For class_init (). */
void gst_sh_reconstruct_outputs_add_templates (GstElementClass *klass);

GstShReconstructOutputs *gst_sh_reconstruct_outputs_new (
    GstElement *element, GstPadQueryFunction query);
void gst_sh_reconstruct_outputs_free (GstShReconstructOutputs *self);

/* Forgets streams and caps, for another run. */
void gst_sh_reconstruct_outputs_reset (GstShReconstructOutputs *self);

/* Of request_new_pad and release_pad. */
GstPad *gst_sh_reconstruct_outputs_request (GstShReconstructOutputs *self,
    GstPadTemplate *pad_template, const gchar *name);
void gst_sh_reconstruct_outputs_release (
    GstShReconstructOutputs *self, GstPad *pad);

/* @event: (transfer none): of the input */
void gst_sh_reconstruct_outputs_event (
    GstShReconstructOutputs *self, GstEvent *event);

/* Returns: (transfer full) (nullable) */
GstImagingResultsPad *gst_sh_reconstruct_outputs_get_results (
    GstShReconstructOutputs *self);
GstImagingSrcPad *gst_sh_reconstruct_outputs_get_wavefront (
    GstShReconstructOutputs *self);
GstImagingSrcPad *gst_sh_reconstruct_outputs_get_mirror (
    GstShReconstructOutputs *self, guint mirror);
gboolean gst_sh_reconstruct_outputs_has_mirror (
    GstShReconstructOutputs *self, guint mirror);

/* The flow of two pads together: an error of any counts, and NOT_LINKED or EOS
 * only of both. */
GstFlowReturn gst_sh_reconstruct_combine (GstFlowReturn a, GstFlowReturn b);

G_END_DECLS
