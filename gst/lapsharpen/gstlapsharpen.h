/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingfilter.h"

G_BEGIN_DECLS

#define GST_TYPE_LAP_SHARPEN (gst_lap_sharpen_get_type ())
G_DECLARE_FINAL_TYPE (
    GstLapSharpen, gst_lap_sharpen, GST, LAP_SHARPEN, GstImagingFilter)

GST_ELEMENT_REGISTER_DECLARE (lapsharpen);

G_END_DECLS
