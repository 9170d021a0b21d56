/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The actions calibrate and save-interaction. */
#pragma once

#include "gstshreconstructsettings.h"
#include "gstshreconstructslopes.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructCalibration GstShReconstructCalibration;

GstShReconstructCalibration *gst_sh_reconstruct_calibration_new (
    GstElement *element);
void gst_sh_reconstruct_calibration_free (GstShReconstructCalibration *self);

/* Any thread. Begins with the next frame.
 * @location: (nullable): where the matrix goes when it is complete
 * Returns: FALSE while one is running; or after a message that it cannot be
 * written, or is a file of @settings */
gboolean gst_sh_reconstruct_calibration_request (
    GstShReconstructCalibration *self, const gchar *location,
    const GstShReconstructSettings *settings);

/* Any thread. The next frame ends one that is running, without a poke. */
void gst_sh_reconstruct_calibration_stop (GstShReconstructCalibration *self);

/* Any thread. Returns: FALSE with a warning posted, also before there is a
 * matrix, and where @location is a file of @settings */
gboolean gst_sh_reconstruct_calibration_save (GstShReconstructCalibration *self,
    const gchar *location, const GstShReconstructSettings *settings);

/* --- of the streaming thread ---------------------------------------------- */

/* Has a frame to make pokes? */
gboolean gst_sh_reconstruct_calibration_is_on (
    GstShReconstructCalibration *self);

/* Is the mirror poked already? */
gboolean gst_sh_reconstruct_calibration_has_begun (
    GstShReconstructCalibration *self);

/* @is_after_gap: frames may be missing before this one
 * @commands: (inout): those of a flat mirror; pokes are added
 * Returns: FALSE when it has ended, and a message has been posted */
gboolean gst_sh_reconstruct_calibration_step (GstShReconstructCalibration *self,
    const GstShReconstructSettings *settings, GstShReconstructSlopes *slopes,
    gboolean is_after_gap, guint n_cells, guint n_commands, gfloat *commands);

/* Ends one that is running: nothing is written. */
void gst_sh_reconstruct_calibration_fail (
    GstShReconstructCalibration *self, const gchar *why);
void gst_sh_reconstruct_calibration_abandon (
    GstShReconstructCalibration *self, const gchar *why);

G_END_DECLS
