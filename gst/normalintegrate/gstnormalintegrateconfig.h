/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of normalintegrate. */
#pragma once

#include "gstimagingsettings.h"

#include "gstnormalintegratepoints.h"

#include "imk/normalintegrate-mesh.h"

/* The properties. The format and the scale in the configuration are filled in
 * by map. */
typedef struct {
  ImkNormalintegrateConfig config;
  gdouble mm_per_pixel; /* 0: not known */
  gint y_down;
  gdouble focal_length_mm, sensor_width_mm;
  GstImagingArray *known_points;
  GstImagingFile *points_location; /* of GstNormalIntegratePoints */
  GstImagingFile *mesh_location;   /* only its name */
  guint mesh_step;
} GstNormalIntegrateSettings;

extern const GstImagingSettingsTable gst_normal_integrate_table;

/* Refuses what does not go together. Returns: IMK_ERROR_CONFIG */
ImkStatus gst_normal_integrate_check_settings (
    const GstNormalIntegrateSettings *settings, ImkError *error);

/* Fills in @config what several properties say, for a map of its width.
 * @config: has the points of @settings and is valid as long as these are */
void gst_normal_integrate_complete (const GstNormalIntegrateSettings *settings,
    ImkNormalintegrateConfig *config);

/* Of the extension of @location. */
ImkStatus gst_normal_integrate_mesh_format (
    const gchar *location, ImkMeshFormat *format, ImkError *error);

/* Of the table, in gstnormalintegrate.c. */
ImkStatus gst_normal_integrate_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);
