/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an output of photostereo has in it: the encodings that it offers, and
 * one result on its way from the kernel to the peer. */
#pragma once

#include "gstimagingoutput.h"
#include "gstimagingpicture.h"

G_BEGIN_DECLS

typedef enum {
  GST_PHOTO_STEREO_ENCODING_AUTO, /* the first that the peer takes */
  GST_PHOTO_STEREO_ENCODING_8,
  GST_PHOTO_STEREO_ENCODING_16,
  GST_PHOTO_STEREO_ENCODING_TENSOR,
} GstPhotoStereoEncoding;

/* @bands: the channels are bands, which as video are one below the other */
typedef struct {
  guint width, height, channels;
  gboolean bands;
  gint par_n, par_d; /* the pixel-aspect-ratio */
} GstPhotoStereoShape;

/* Of one set, on the stack of the streaming thread. */
typedef struct {
  GstImagingOutput *output; /* a reference; NULL where nobody asked */
  gboolean is_shared;       /* several devices write it */
  GstBuffer *buffer;        /* between begin and push */
  GstImagingFrame frame;    /* between begin and end */
} GstPhotoStereoPad;

/* Agrees with the peer on an encoding of @shape; otherwise as
 * gst_photo_stereo_pad_begin (). */
GstFlowReturn gst_photo_stereo_pad_negotiate (GstPhotoStereoPad *self,
    GstImagingEngine *engine, const GstPhotoStereoShape *shape,
    GstPhotoStereoEncoding choice);

/* A buffer for pixels of @shape, in an encoding that the peer takes, mapped for
 * the kernel: *image is where it writes.
 * @choice: the encoding that is wanted
 * Returns: GST_FLOW_OK, and gst_photo_stereo_pad_end () and ..._push () have to
 *   follow; GST_FLOW_NOT_LINKED, GST_FLOW_NOT_NEGOTIATED, GST_FLOW_FLUSHING;
 *   GST_FLOW_ERROR with @error set */
GstFlowReturn gst_photo_stereo_pad_begin (GstPhotoStereoPad *self,
    GstImagingEngine *engine, const GstPhotoStereoShape *shape,
    GstPhotoStereoEncoding choice, ImkImage *image, ImkError *error);

/* The kernel is through. @done: the device has been waited for. */
ImkStatus gst_photo_stereo_pad_end (
    GstPhotoStereoPad *self, gboolean done, ImkError *error);

/* @like: whose times, offset and metadata the buffer gets; NULL: it is dropped
 * @same_geometry: a pixel of it is one of the pictures */
GstFlowReturn gst_photo_stereo_pad_push (
    GstPhotoStereoPad *self, GstBuffer *like, gboolean same_geometry);

G_END_DECLS
