/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A picture of a frame or of a section of a volume: crop, scale, window and
 * level, colours. */
#pragma once

#include "gstimagingviewsection.h"

typedef struct {
  guint width, height;
  guint source_width, source_height; /* of the section */
  GstImagingViewRectangle crop;
  gdouble window, level, minimum, maximum;
  gboolean is_grey;
  guint stride;   /* whole blocks of a JPEG, filled with the last pixel */
  guint8 *pixels; /* grey or R, G, B */
  gsize size;
} GstImagingViewPicture;

void gst_imaging_view_picture_make (GstImagingViewPicture *self,
    const GstImagingViewFrame *frame, const GstImagingViewSettings *settings);
void gst_imaging_view_picture_clear (GstImagingViewPicture *self);
