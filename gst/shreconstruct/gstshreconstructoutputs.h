/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pads on request: results, wavefront, mirror_0, ... */
#pragma once

#include "gstimagingresultspad.h"
#include "gstshreconstructsettings.h"

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

/* Whether @plan has the matrices of the pads: all of them at the start, later
 * those that are in use. */
ImkStatus gst_sh_reconstruct_outputs_check (GstShReconstructOutputs *self,
    const GstShReconstructPlan *plan, ImkError *error);

/* Takes map, mirrors and, with matrices, modes out of @plan. */
void gst_sh_reconstruct_outputs_take (
    GstShReconstructOutputs *self, GstShReconstructPlan *plan);

/* The frame rate may be another one. */
void gst_sh_reconstruct_outputs_renew_caps (GstShReconstructOutputs *self);

/* Returns: whether the mirrors of all pads have what @commands are for them */
gboolean gst_sh_reconstruct_outputs_are_at (
    GstShReconstructOutputs *self, const gfloat *commands);

/* Commands of the pad src. */
guint gst_sh_reconstruct_outputs_n (const GstShReconstructOutputs *self);

/* @out: [n]: the commands of the pad src, by the actuator map */
void gst_sh_reconstruct_outputs_map (
    const GstShReconstructOutputs *self, const gfloat *commands, gfloat *out);

/* Pushes to all pads mirror_0, ...
 * @is_held: the mirrors stay as they are
 * @limited: (out): whose limits have changed a command; -1 for none
 * @out: the buffer of src, whose metadata they get */
GstFlowReturn gst_sh_reconstruct_outputs_push_mirrors (
    GstShReconstructOutputs *self, const gfloat *commands, gboolean is_held,
    GstBuffer *out, gint fps_n, gint fps_d, gint *limited);

/* After push_mirrors () with a limited mirror: what limits of the mirrors have
 * added to the commands, as a change of coefficients.
 * @change: (out): [n_modes]
 * Returns: whether it is there, and finite */
gboolean gst_sh_reconstruct_outputs_find_windup (
    GstShReconstructOutputs *self, gfloat *change);

/* Returns: (transfer full) (nullable) */
GstImagingResultsPad *gst_sh_reconstruct_outputs_get_results (
    GstShReconstructOutputs *self);
GstImagingSrcPad *gst_sh_reconstruct_outputs_get_wavefront (
    GstShReconstructOutputs *self);

/* The flow of two pads together: an error of any counts, and NOT_LINKED or EOS
 * only of both. */
GstFlowReturn gst_sh_reconstruct_combine (GstFlowReturn a, GstFlowReturn b);

G_END_DECLS
