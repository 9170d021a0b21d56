/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A picture as it is sent: the size of the header, the header, the JPEG. */
#pragma once

#include "gstimagingviewpicture.h"

/* @time: when the frame passed. Returns: (transfer full) */
GBytes *gst_imaging_view_message (guint id, guint64 serial, gint64 time,
    const GstImagingViewFrame *frame, const GstImagingViewSettings *settings,
    const GstImagingViewPicture *picture, GstBuffer *jpeg);
