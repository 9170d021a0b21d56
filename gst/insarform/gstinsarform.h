/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

#define GST_TYPE_INSAR_FORM (gst_insar_form_get_type ())
G_DECLARE_FINAL_TYPE (
    GstInsarForm, gst_insar_form, GST, INSAR_FORM, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (insarform);
