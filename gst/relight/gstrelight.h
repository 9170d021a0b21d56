/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstaggregator.h>

#define GST_TYPE_RELIGHT (gst_relight_get_type ())
G_DECLARE_FINAL_TYPE (GstRelight, gst_relight, GST, RELIGHT, GstAggregator)

GST_ELEMENT_REGISTER_DECLARE (relight);
