/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pupil images of a pyramid sensor, from a file. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/shcentroid.h"

typedef struct {
  guint32 width, height;      /* of the frame */
  ImkShcentroidConfig config; /* its cells and pupils, which are ours */
  ImkShcentroidCell *cells;
  guint32 *pupils;
  guint32 *places; /* row and column of each in its pupil image */
} GstShCentroidPupils;

/* A GstImagingFileLoad. */
gpointer gst_sh_centroid_pupils_load (
    const gchar *property, const gchar *location, ImkError *error);
void gst_sh_centroid_pupils_free (gpointer pupils);

/* The cells, for @config, whose frame is set. @file: (nullable): of
 * GstShCentroidPupils, which the cells stay */
ImkStatus gst_sh_centroid_pupils_use (
    const GstImagingFile *file, ImkShcentroidConfig *config, ImkError *error);
