/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The further mirrors: what the pads mirror_0, ... are sent. */
#pragma once

#include "gstshreconstructoutputs.h"
#include "gstshreconstructsettings.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructMirrors GstShReconstructMirrors;

/* @outputs: not owned */
GstShReconstructMirrors *gst_sh_reconstruct_mirrors_new (
    GstElement *element, GstShReconstructOutputs *outputs);
void gst_sh_reconstruct_mirrors_free (GstShReconstructMirrors *self);

/* For another run. */
void gst_sh_reconstruct_mirrors_reset (GstShReconstructMirrors *self);

/* --- settings ------------------------------------------------------------- */

/* Whether @plan has the matrices of the pads: all of them at the start, later
 * those that are in use. */
ImkStatus gst_sh_reconstruct_mirrors_check (GstShReconstructMirrors *self,
    const GstShReconstructPlan *plan, ImkError *error);

/* Takes mirrors and, with matrices, modes out of @plan. */
void gst_sh_reconstruct_mirrors_take (
    GstShReconstructMirrors *self, GstShReconstructPlan *plan);

/* Of the input. */
void gst_sh_reconstruct_mirrors_set_rate (
    GstShReconstructMirrors *self, gint fps_n, gint fps_d);

/* --- frames --------------------------------------------------------------- */

/* Returns: whether the mirrors of all pads have what @commands are for them */
gboolean gst_sh_reconstruct_mirrors_are_at (
    GstShReconstructMirrors *self, const gfloat *commands);

/* Pushes to all pads mirror_0, ...
 * @is_held: the mirrors stay as they are
 * @out: the buffer of src, whose metadata they get
 * @limited: (out): whose limits have changed a command; -1 for none */
GstFlowReturn gst_sh_reconstruct_mirrors_push (GstShReconstructMirrors *self,
    const gfloat *commands, gboolean is_held, GstBuffer *out, gint *limited);

/* After a push with a limited mirror: what limits of the mirrors have added to
 * the commands, as a change of coefficients.
 * @change: (out): [n_modes]
 * Returns: whether it is there, and finite */
gboolean gst_sh_reconstruct_mirrors_find_windup (
    GstShReconstructMirrors *self, gfloat *change);

G_END_DECLS
