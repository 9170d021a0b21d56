/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Templates of shcentroid from live frames. */
#pragma once

#include "gstshcentroidtables.h"

#include "gstshcentroidfiles.h"

/* Cuts the templates of @config, whose cells are set, out of the mean frame of
 * @capture, less the dark in it already. Returns: (transfer full) (nullable):
 * [n, height, width], or [height, width] for a template of all cells */
GstShCentroidArray *gst_sh_centroid_template_finish (
    const GstShCentroidCapture *capture, const GstShCentroidTables *tables,
    const ImkShcentroidConfig *config, ImkError *error);
