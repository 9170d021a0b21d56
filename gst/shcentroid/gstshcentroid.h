/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingfilter.h"

#define GST_TYPE_SH_CENTROID (gst_sh_centroid_get_type ())
G_DECLARE_FINAL_TYPE (
    GstShCentroid, gst_sh_centroid, GST, SH_CENTROID, GstImagingFilter)

GST_ELEMENT_REGISTER_DECLARE (shcentroid);
