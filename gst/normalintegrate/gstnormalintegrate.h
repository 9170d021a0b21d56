/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

#define GST_TYPE_NORMAL_INTEGRATE (gst_normal_integrate_get_type ())
G_DECLARE_FINAL_TYPE (GstNormalIntegrate, gst_normal_integrate, GST,
    NORMAL_INTEGRATE, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (normalintegrate);
