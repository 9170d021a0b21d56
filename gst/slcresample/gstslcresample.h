/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

#define GST_TYPE_SLC_RESAMPLE (gst_slc_resample_get_type ())
G_DECLARE_FINAL_TYPE (
    GstSlcResample, gst_slc_resample, GST, SLC_RESAMPLE, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (slcresample);
