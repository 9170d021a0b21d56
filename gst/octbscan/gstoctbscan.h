/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

#define GST_TYPE_OCT_BSCAN (gst_oct_bscan_get_type ())
G_DECLARE_FINAL_TYPE (
    GstOctBscan, gst_oct_bscan, GST, OCT_BSCAN, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (octbscan);
