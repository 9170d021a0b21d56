/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstbasesink.h>

G_BEGIN_DECLS

#define GST_TYPE_SHMIM_SINK (gst_shmim_sink_get_type ())
G_DECLARE_FINAL_TYPE (
    GstShmimSink, gst_shmim_sink, GST, SHMIM_SINK, GstBaseSink)

GST_ELEMENT_REGISTER_DECLARE (shmimsink);

G_END_DECLS
