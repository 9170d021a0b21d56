/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What shcentroid correlates with: its properties, and templates from files and
 * from live frames. */
#pragma once

#include "gstshcentroidpixels.h"

G_BEGIN_DECLS

/* The numbers of the properties; those up to the last template need a new
 * kernel. */
enum {
  GST_SH_CENTROID_PROP_TEMPLATE_LOCATION = 96,
  GST_SH_CENTROID_PROP_TEMPLATE_SOURCE,
  GST_SH_CENTROID_PROP_TEMPLATE_CELL,
  GST_SH_CENTROID_PROP_TEMPLATE_MARGIN,
  GST_SH_CENTROID_PROP_CORRELATION,
  GST_SH_CENTROID_PROP_PEAK_FIT,
  GST_SH_CENTROID_PROP_SEARCH_RANGE,
  GST_SH_CENTROID_PROP_MIN_CORRELATION,
};

void gst_sh_centroid_template_install (GObjectClass *klass);

/* Returns: whether @id is one of them; @is_geometry when a new kernel is
 * needed */
gboolean gst_sh_centroid_template_set (ImkShcentroidConfig *config,
    GstShCentroidCalibration *calibration, guint id, const GValue *value,
    gboolean *is_geometry);
gboolean gst_sh_centroid_template_get (const ImkShcentroidConfig *config,
    const GstShCentroidCalibration *calibration, guint id, GValue *value);

/* Points @config, whose cells are set, to the templates of the file or to those
 * that were captured, which @tables keeps. */
ImkStatus gst_sh_centroid_template_load (GstShCentroidTables *tables,
    const GstShCentroidCalibration *calibration, ImkShcentroidConfig *config,
    ImkError *error);

/* Cuts the templates of @config, whose cells are set, out of the mean frame of
 * @capture, less the dark in it already. @dims: (out): [n, height, width], n 0
 * for a template of all cells, as the file has no such dimension then.
 * Returns: (transfer full) (nullable): float32 */
GBytes *gst_sh_centroid_template_finish (const GstShCentroidCapture *capture,
    const GstShCentroidTables *tables, const ImkShcentroidConfig *config,
    guint64 dims[3], ImkError *error);

/* Saves what was captured as template-location reads it. */
gboolean gst_sh_centroid_template_save (
    const gchar *location, GBytes *data, const guint64 dims[3], GError **error);

G_END_DECLS
