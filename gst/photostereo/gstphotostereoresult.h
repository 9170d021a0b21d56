/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The encodings that a source pad of photostereo offers, and one result from
 * the kernel to the peer. */
#pragma once

#include "gstimagingsrcpad.h"
#include "gstimagingpicture.h"
#include "gstimagingresults.h"

typedef enum {
  GST_PHOTO_STEREO_ENCODING_AUTO, /* the first that the peer takes */
  GST_PHOTO_STEREO_ENCODING_8,
  GST_PHOTO_STEREO_ENCODING_16,
  GST_PHOTO_STEREO_ENCODING_TENSOR,
} GstPhotoStereoEncoding;

/* @quantity: (nullable): what samples stand for
 * @content: (nullable): a field of the caps, where a pad may have either of two
 * @bands: the channels are bands, which as video are one below the other */
typedef struct {
  const gchar *quantity, *content;
  guint width, height, channels;
  gboolean bands;
  gint par_n, par_d;    /* the pixel-aspect-ratio */
  gdouble mm_per_pixel; /* 0: not known */
  gboolean y_down;      /* the y of normals: from row to row */
} GstPhotoStereoShape;

/* One result of a set, on the stack of the streaming thread. */
typedef struct {
  GstImagingSrcPad *pad; /* (nullable): a reference */
  gboolean is_shared;    /* several devices write it */
  GstBuffer *buffer;     /* between begin and push */
  GstImagingFrame frame; /* between begin and end */
} GstPhotoStereoResult;

/* Negotiates an encoding of @shape. @pad: (nullable); @choice: the encoding
 * that is wanted */
GstFlowReturn gst_photo_stereo_negotiate_pad (GstImagingSrcPad *pad,
    GstImagingEngine *engine, const GstPhotoStereoShape *shape,
    GstPhotoStereoEncoding choice);

/* Negotiates, and acquires a buffer that is mapped for the kernel: *image is
 * where it writes.
 * Returns: GST_FLOW_OK, and gst_imaging_frame_end () and
 *   gst_photo_stereo_result_push () must follow; GST_FLOW_NOT_LINKED,
 * GST_FLOW_NOT_NEGOTIATED, GST_FLOW_FLUSHING; GST_FLOW_ERROR with @error set */
GstFlowReturn gst_photo_stereo_result_begin (GstPhotoStereoResult *self,
    GstImagingEngine *engine, const GstPhotoStereoShape *shape,
    GstPhotoStereoEncoding choice, ImkImage *image, ImkError *error);

/* @like: gives the buffer its times, offset and metadata; NULL: the buffer is
 *   dropped. @summary: what is told of the set */
GstFlowReturn gst_photo_stereo_result_push (GstPhotoStereoResult *self,
    const GstPhotoStereoShape *shape, GstBuffer *like,
    const GstImagingResult *summary);
