/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calibration, references and templates of one open kernel of shcentroid.
 */
#pragma once

#include "gstshcentroidsettings.h"

typedef struct {
  gfloat *dark, *flat, *lut, *templates;
  guint8 *bad;
  gdouble *references;
} GstShCentroidTables;

/* Fills @tables from the files of @settings, and points @config, whose frame,
 * type and cells are set, to them. */
ImkStatus gst_sh_centroid_tables_load (GstShCentroidTables *tables,
    const GstShCentroidSettings *settings, ImkShcentroidConfig *config,
    ImkError *error);

void gst_sh_centroid_tables_clear (GstShCentroidTables *tables);
