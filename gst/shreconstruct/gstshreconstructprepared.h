/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel for new settings, made in the thread that sets them: the inverse of
 * 1000 modes takes a second, which no frame is to wait for. */
#pragma once

#include "gstshreconstructsettings.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructPrepared GstShReconstructPrepared;

/* @settings, @engine: of the element, which owns this */
GstShReconstructPrepared *gst_sh_reconstruct_prepared_new (
    GstImagingSettings *settings, GstImagingEngine *engine);
void gst_sh_reconstruct_prepared_free (GstShReconstructPrepared *self);

/* --- in any thread -------------------------------------------------------- */

/* Makes a kernel if the element has one, and another would take long.
 * @candidate: (transfer full): the settings with the new values
 * @groups: those of the properties that change */
void gst_sh_reconstruct_prepared_make (GstShReconstructPrepared *self,
    GstShReconstructSettings *candidate, guint groups);

/* --- in the streaming thread ---------------------------------------------- */

/* The element has a kernel on @backend for @settings.
 * @is_new: not the one before with another controller */
void gst_sh_reconstruct_prepared_begin (GstShReconstructPrepared *self,
    ImkBackend backend, const GstShReconstructSettings *settings,
    gboolean is_new);

/* It has none: what was made is given back, and nothing is made before begin().
 */
void gst_sh_reconstruct_prepared_stop (GstShReconstructPrepared *self);

/* Whether there is a kernel of the same matrices with the inverse of M that
 * @settings need. */
gboolean gst_sh_reconstruct_prepared_is_for_inverse (
    GstShReconstructPrepared *self, const GstShReconstructSettings *settings);

/* @modes: (out) (transfer full) (nullable): M, as of a plan with matrices
 * @fit: (out): as of such a plan
 * Returns: (transfer full) (nullable): a kernel of the matrices of @settings,
 *   with another controller perhaps; what does not fit is given back */
ImkShreconstruct *gst_sh_reconstruct_prepared_take (
    GstShReconstructPrepared *self, const GstShReconstructSettings *settings,
    ImkBackend backend, gfloat **modes, ImkShreconstructFit *fit);

G_END_DECLS
