/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

#define GST_TYPE_INSAR_XCORR (gst_insar_xcorr_get_type ())
G_DECLARE_FINAL_TYPE (
    GstInsarXcorr, gst_insar_xcorr, GST, INSAR_XCORR, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (insarxcorr);
