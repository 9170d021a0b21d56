/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calibrations that shcentroid makes of live frames: sums over N frames, and
 * what becomes of them. */
#pragma once

#include "gstshcentroidfiles.h"

typedef enum {
  GST_SH_CENTROID_DARK, /* these four can be captured */
  GST_SH_CENTROID_FLAT,
  GST_SH_CENTROID_REFERENCE,
  GST_SH_CENTROID_TEMPLATE,
  GST_SH_CENTROID_BAD_PIXELS,
  GST_SH_CENTROID_LUT,
  GST_SH_CENTROID_N_CALIBRATIONS,
} GstShCentroidCalibrationKind;

/* A capture that is asked for or on its way; all zero when there is none. */
typedef struct {
  GstShCentroidCalibrationKind kind;
  guint n_wanted, n_frames;
  gchar *location; /* where to save it; NULL for nowhere */
  guint n_rows, n_columns;
  gdouble *sums;   /* NULL until the first frame */
  guint32 *counts; /* frames that were added to each row; references only */
} GstShCentroidCapture;

/* Returns: "dark", "flat", "reference", "template", "bad pixels", "look-up
 * table" */
const gchar *gst_sh_centroid_calibration_name (
    GstShCentroidCalibrationKind kind);

void gst_sh_centroid_capture_begin (GstShCentroidCapture *self,
    GstShCentroidCalibrationKind kind, guint n_frames, const gchar *location);
void gst_sh_centroid_capture_clear (GstShCentroidCapture *self);
/* Forgets the frames that came. */
void gst_sh_centroid_capture_restart (GstShCentroidCapture *self);

/* Adds the samples of a frame in host memory, through @lut and less @dark
 * where these are not NULL. A frame of another size begins anew. */
void gst_sh_centroid_capture_add_frame (GstShCentroidCapture *self,
    const ImkImage *frame, const gfloat *lut, const gfloat *dark);

/* Adds x and y of @n_cells centroids, NaN for an invalid one, which counts
 * for nothing. */
void gst_sh_centroid_capture_add_centroids (GstShCentroidCapture *self,
    const gdouble *centroids, guint stride, guint n_cells);

/* Returns: whether all frames are there */
gboolean gst_sh_centroid_capture_is_complete (const GstShCentroidCapture *self);

/* Returns: whether any pixel of a captured flat is above 0 */
gboolean gst_sh_centroid_capture_has_light (const GstShCentroidCapture *self);

/* A dark is the mean, and so is the frame that templates are cut from. A flat
 * is the mean of all means above 0, divided by the mean of the pixel; 0, a bad
 * pixel, where that is not above 0. References are the means; @defaults, x and
 * y of each cell, where no frame was valid. Returns: (transfer full) */
GstShCentroidArray *gst_sh_centroid_capture_finish (
    const GstShCentroidCapture *self, const gdouble *defaults);
