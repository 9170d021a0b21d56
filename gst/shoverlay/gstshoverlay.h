/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/video/gstvideofilter.h>

#define GST_TYPE_SH_OVERLAY (gst_sh_overlay_get_type ())
G_DECLARE_FINAL_TYPE (
    GstShOverlay, gst_sh_overlay, GST, SH_OVERLAY, GstVideoFilter)

GST_ELEMENT_REGISTER_DECLARE (shoverlay);
