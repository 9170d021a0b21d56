/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of shcentroid, and what they mean. */
#pragma once

#include "gstimagingsettings.h"
#include "gstshcentroidcapture.h"

#include "imk/shcentroid-grid.h"
#include "imk/shcentroid-light.h"
#include "imk/shcentroid-optics.h"

typedef enum {
  GST_SH_CENTROID_SLOPE_PX,
  GST_SH_CENTROID_SLOPE_RAD,
} GstShCentroidSlopeUnit;

/* The modes of the kernel, and one for which the first frame gives the numbers.
 */
enum { GST_SH_CENTROID_THRESHOLD_AUTO = IMK_SHCENTROID_N_THRESHOLDS };

/* Those of which a change needs a new kernel. */
enum { GST_SH_CENTROID_SETTINGS_CELLS = 1 };

typedef struct {
  /* without frame, map, tables, saturation, threshold mode */
  ImkShcentroidConfig config;
  gint threshold_mode; /* ImkShcentroidThreshold, or the one above */
  ImkShcentroidOptics optics;
  GstShCentroidSlopeUnit slope_unit;
  ImkShcentroidLattice lattice;
  guint bit_depth;
  gdouble saturation;
  GstImagingFile *map;    /* of GstShCentroidMap */
  GstImagingFile *pupils; /* of GstShCentroidPupils */
  /* of GstShCentroidArray; captured ones may have no location */
  GstImagingFile *files[GST_SH_CENTROID_N_CALIBRATIONS];
  GstImagingFile *find; /* where find-grid writes its map */
} GstShCentroidSettings;

extern const GstImagingSettingsTable gst_sh_centroid_settings_table;

/* Of the element: settings that changed are to be used from this frame on. */
ImkStatus gst_sh_centroid_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);

/* Returns: "dark-location", ... */
const gchar *gst_sh_centroid_settings_file_property (
    GstShCentroidCalibrationKind kind);

/* The threshold and the least flux, for @config. @light: of the first frame;
 * n_lit is 0 before there was one */
void gst_sh_centroid_settings_threshold (const GstShCentroidSettings *settings,
    const ImkShcentroidLight *light, ImkShcentroidConfig *config);

/* Whether the first frame chooses them. */
gboolean gst_sh_centroid_settings_choose (
    const GstShCentroidSettings *settings);

/* Counts; 0 is never. */
gdouble gst_sh_centroid_settings_saturation (
    const GstShCentroidSettings *settings, ImkType type);

gboolean gst_sh_centroid_settings_have_grid (
    const GstShCentroidSettings *settings);

/* The scale of the slopes, for @config. */
ImkStatus gst_sh_centroid_settings_scale (const GstShCentroidSettings *settings,
    ImkShcentroidConfig *config, ImkError *error);

/* The map, the pupil images, or the grid of the optics, for @config, whose
 * frame is set. The map stays that of @settings. */
ImkStatus gst_sh_centroid_settings_cells (const GstShCentroidSettings *settings,
    ImkShcentroidConfig *config, ImkError *error);
