/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstbasesink.h>

#define GST_TYPE_PICTURE_SINK (gst_picture_sink_get_type ())
G_DECLARE_FINAL_TYPE (
    GstPictureSink, gst_picture_sink, GST, PICTURE_SINK, GstBaseSink)

GST_ELEMENT_REGISTER_DECLARE (picturesink);
