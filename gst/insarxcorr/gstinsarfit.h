/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#define GST_TYPE_INSAR_FIT (gst_insar_fit_get_type ())
G_DECLARE_FINAL_TYPE (GstInsarFit, gst_insar_fit, GST, INSAR_FIT, GstElement)

GST_ELEMENT_REGISTER_DECLARE (insarfit);
