/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstaggregator.h>

#define GST_TYPE_OCT_INTERLACE (gst_oct_interlace_get_type ())
G_DECLARE_FINAL_TYPE (
    GstOctInterlace, gst_oct_interlace, GST, OCT_INTERLACE, GstAggregator)

GST_ELEMENT_REGISTER_DECLARE (octinterlace);
