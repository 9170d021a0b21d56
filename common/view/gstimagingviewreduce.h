/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures that are smaller than what they show. */
#pragma once

#include "gstimagingviewsection.h"

/* The mean over the area of each of @width x @height pixels that together cover
 * @crop. A sample that lies in two pixels counts in each by the area there. NaN
 * is left out; a pixel of nothing else is NaN.
 * @values: [height][width][channels] */
void gst_imaging_view_reduce (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, const GstImagingViewRectangle *crop,
    guint width, guint height, gdouble *values);
