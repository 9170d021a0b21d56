/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of shcentroid: all of them, and those that are in no file of
 * their own. */
#pragma once

#include "gstshcentroidgeometry.h"
#include "gstshcentroidpixels.h"

G_BEGIN_DECLS

/* The properties as they were at one moment. */
typedef struct {
  ImkShcentroidConfig config; /* without frame, map, tables, saturation */
  gchar *map_location;
  GstShCentroidCalibration calibration;
  guint bit_depth;
  gdouble saturation;
  guint serial;   /* counts changes */
  guint geometry; /* counts those of what needs a new kernel */
  GstShCentroidGeometry more_geometry; /* optics, find-grid */
} GstShCentroidSettings;

void gst_sh_centroid_settings_init (GstShCentroidSettings *settings);
void gst_sh_centroid_settings_clear (GstShCentroidSettings *settings);

/* Without what only asks for the next find-grid. */
GstShCentroidSettings gst_sh_centroid_settings_copy (
    const GstShCentroidSettings *settings);

/* Those of the element. @id is that of the property, which is not one of the
 * settings when FALSE is returned. */
void gst_sh_centroid_settings_install (GObjectClass *klass);
gboolean gst_sh_centroid_settings_set (
    GstShCentroidSettings *settings, guint id, const GValue *value);
gboolean gst_sh_centroid_settings_get (
    const GstShCentroidSettings *settings, guint id, GValue *value);

/* Counts; 0 is never. */
gdouble gst_sh_centroid_settings_saturation (
    const GstShCentroidSettings *settings, ImkType type);

gboolean gst_sh_centroid_settings_have_grid (
    const GstShCentroidSettings *settings);

/* The map and what the optics say, for @config. @cells: (out): what it points
 * to */
ImkStatus gst_sh_centroid_settings_load (const GstShCentroidSettings *settings,
    ImkShcentroidConfig *config, ImkShcentroidCell **cells, ImkError *error);

G_END_DECLS
