/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Warnings about settings of shcentroid that have no effect. */
#pragma once

#include <glib.h>

#include "imk/shcentroid.h"

typedef struct {
  const ImkShcentroidConfig *config; /* as the properties say */
  gboolean has_map, has_optics;
  guint bit_depth;
  gdouble saturation;
  ImkType type; /* of the samples */
} GstShCentroidHintInput;

enum { GST_SH_CENTROID_N_HINTS = 11 };

/* Returns: (nullable): the sentence of hint @index, below
 * GST_SH_CENTROID_N_HINTS, where it applies */
const gchar *gst_sh_centroid_hint (
    guint index, const GstShCentroidHintInput *input);
