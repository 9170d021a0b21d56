/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingfilter.h"

#define GST_TYPE_INVERT (gst_invert_get_type ())
G_DECLARE_FINAL_TYPE (GstInvert, gst_invert, GST, INVERT, GstImagingFilter)

GST_ELEMENT_REGISTER_DECLARE (invert);
