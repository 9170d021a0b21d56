/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of video as the format stores them, and their colours. */
#pragma once

#include <gst/video/video.h>

#include "files/gstimagingndarray.h"

typedef enum {
  GST_IMAGING_VIEW_PLAIN, /* no colours, or R, G, B with all bits of the type */
  GST_IMAGING_VIEW_RGB,
  GST_IMAGING_VIEW_YUV,
} GstImagingViewColours;

/* What the components of video mean. */
typedef struct {
  GstImagingViewColours kind;
  const gchar *names;          /* (nullable): a letter for each channel */
  gdouble offset[3], scale[3]; /* value = (sample - offset) / scale */
  gdouble kr, kb;
  gdouble white; /* R, G, B of pictures are 0 to this */
} GstImagingViewMeaning;

/* Samples as they are in memory, strides in bytes. Of most video they are
 * unpacked row by row. */
typedef struct {
  GstImagingNdArrayType type;
  guint width, height, channels;
  const guint8 *first;
  gssize row; /* negative: from the last row up */
  gsize pixel, channel;
  const GstVideoFrame *unpacked; /* (nullable): in place of the above */
  guint8 *line;                  /* for a row of these */
  GstImagingViewMeaning meaning;
} GstImagingViewLayout;

/* Whether the memory of @frame has all samples that its format, size and
 * strides promise: those of a GstVideoMeta may be wrong */
gboolean gst_imaging_view_video_is_whole (const GstVideoFrame *frame);

/* A buffer of interlace-mode=alternate is one field.
 * Returns: FALSE for video without samples. @to: line is to be freed */
gboolean gst_imaging_view_video_lay_out (
    GstImagingViewLayout *to, const GstVideoFrame *frame);

/* Row @y of an unpacked layout: [width][channels] */
void gst_imaging_view_video_unpack (
    const GstImagingViewLayout *from, guint y, guint8 *to);

/* Turns @n samples of @channels of colours into R, G, B, in place */
void gst_imaging_view_video_become_rgb (const GstImagingViewMeaning *meaning,
    guint channels, gsize n, gdouble *values);
