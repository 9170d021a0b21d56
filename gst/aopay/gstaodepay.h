/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_AO_DEPAY (gst_ao_depay_get_type ())
G_DECLARE_FINAL_TYPE (GstAoDepay, gst_ao_depay, GST, AO_DEPAY, GstElement)

GST_ELEMENT_REGISTER_DECLARE (aodepay);

G_END_DECLS
