/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of shcentroid that say what becomes of a pixel and which
 * estimator is used. */
#pragma once

#include "gstshcentroidcapture.h"

#include "shcentroid/shcentroid.h"

G_BEGIN_DECLS

/* Their numbers; those up to the last of the geometry need a new kernel. */
enum {
  GST_SH_CENTROID_PROP_DARK_LOCATION = 64,
  GST_SH_CENTROID_PROP_FLAT_LOCATION,
  GST_SH_CENTROID_PROP_BAD_PIXELS_LOCATION,
  GST_SH_CENTROID_PROP_LUT_LOCATION,
  GST_SH_CENTROID_PROP_MARGIN,
  GST_SH_CENTROID_PROP_THRESHOLD_LEAST,
  GST_SH_CENTROID_PROP_BRIGHTEST,
  GST_SH_CENTROID_PROP_WEIGHTING,
  GST_SH_CENTROID_PROP_SIGMA,
  GST_SH_CENTROID_PROP_ITERATIONS,
  GST_SH_CENTROID_PROP_POWER,
  GST_SH_CENTROID_PROP_ESTIMATOR,
  GST_SH_CENTROID_PROP_QUAD_GAIN,
  GST_SH_CENTROID_PROP_WINDOW,
  GST_SH_CENTROID_PROP_TRACKING_GAIN,
  GST_SH_CENTROID_PROP_TRACKING_RESET,
  GST_SH_CENTROID_PROP_REMOVE_TILT,
};

/* Where the calibration comes from: a file, or what was captured. */
typedef struct {
  gchar *location[GST_SH_CENTROID_N_CALIBRATIONS];
  GBytes *captured[GST_SH_CENTROID_N_CALIBRATIONS]; /* NULL: the file */
  guint64 template_dims[3]; /* of the captured one: n, height, width; n 0 for
                             * one of all cells */
} GstShCentroidCalibration;

/* The calibration of one open kernel, read. */
typedef struct {
  gfloat *dark, *flat, *lut, *templates;
  guint8 *bad;
  gdouble *references;
} GstShCentroidTables;

void gst_sh_centroid_pixels_install (GObjectClass *klass);

/* Returns: whether @id is one of them; @is_geometry when a new kernel is
 * needed */
gboolean gst_sh_centroid_pixels_set (ImkShcentroidConfig *config,
    GstShCentroidCalibration *calibration, guint id, const GValue *value,
    gboolean *is_geometry);
gboolean gst_sh_centroid_pixels_get (const ImkShcentroidConfig *config,
    const GstShCentroidCalibration *calibration, guint id, GValue *value);

/* A file takes the place of what was captured. Empty is none: gst-launch
 * cannot write NULL. */
void gst_sh_centroid_calibration_locate (GstShCentroidCalibration *self,
    GstShCentroidCalibrationKind kind, const gchar *location);
/* What was captured takes the place of the file. @data: (transfer full);
 * @location: where it was saved, NULL for nowhere */
void gst_sh_centroid_calibration_take (GstShCentroidCalibration *self,
    GstShCentroidCalibrationKind kind, GBytes *data, const gchar *location);
GstShCentroidCalibration gst_sh_centroid_calibration_copy (
    const GstShCentroidCalibration *self);
void gst_sh_centroid_calibration_clear (GstShCentroidCalibration *self);

/* Fills @tables and points @config, whose frame, type and cells are set, to
 * them. */
ImkStatus gst_sh_centroid_tables_load (GstShCentroidTables *tables,
    const GstShCentroidCalibration *calibration, ImkShcentroidConfig *config,
    ImkError *error);
void gst_sh_centroid_tables_clear (GstShCentroidTables *tables);

G_END_DECLS
