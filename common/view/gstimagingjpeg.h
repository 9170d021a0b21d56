/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pixels become JPEG in the caller's thread, by the element jpegenc. */
#pragma once

#include "gstimagingviewpicture.h"

typedef struct {
  GstElement *element;
  GstPad *in, *out;
  guint width, height;
  gboolean is_grey;
  GstBuffer *made;
} GstImagingJpeg;

/* Returns: (transfer full): the file; %NULL with a sentence */
GstBuffer *gst_imaging_jpeg_encode (GstImagingJpeg *self,
    const GstImagingViewPicture *picture, guint quality, GError **error);
void gst_imaging_jpeg_clear (GstImagingJpeg *self);
