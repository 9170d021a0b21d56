/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An output of photostereo: negotiates an encoding, has buffers that the kernel
 * reaches, and says events of its own, as it speaks rarely. */
#pragma once

#include "gstimagingengine.h"

G_BEGIN_DECLS

typedef enum {
  GST_PHOTO_STEREO_ENCODING_AUTO, /* the first that the peer takes */
  GST_PHOTO_STEREO_ENCODING_8,
  GST_PHOTO_STEREO_ENCODING_16,
  GST_PHOTO_STEREO_ENCODING_TENSOR,
} GstPhotoStereoEncoding;

typedef struct _GstPhotoStereoPad GstPhotoStereoPad;

GstPhotoStereoPad *gst_photo_stereo_pad_new (
    GstElement *element, GstPadTemplate *template, const gchar *name);
GstPhotoStereoPad *gst_photo_stereo_pad_ref (GstPhotoStereoPad *self);
void gst_photo_stereo_pad_unref (GstPhotoStereoPad *self);
/* Takes it from the element; a push that is under way ends. */
void gst_photo_stereo_pad_remove (GstPhotoStereoPad *self);
GstPad *gst_photo_stereo_pad_get (GstPhotoStereoPad *self);

/* At the start of a run. */
void gst_photo_stereo_pad_reset (GstPhotoStereoPad *self);
/* What came in from upstream; takes no reference. */
void gst_photo_stereo_pad_event (GstPhotoStereoPad *self, GstEvent *event);

/* A buffer for @width x @height pixels of @channels numbers, in an encoding
 * that the peer takes, mapped for the kernel: *image is where it writes.
 * @choice: the encoding that is wanted
 * Returns: GST_FLOW_OK, and gst_photo_stereo_pad_end () and ..._push () have to
 *   follow; GST_FLOW_NOT_LINKED, GST_FLOW_NOT_NEGOTIATED, GST_FLOW_FLUSHING;
 *   GST_FLOW_ERROR with @error set */
GstFlowReturn gst_photo_stereo_pad_begin (GstPhotoStereoPad *self,
    GstImagingEngine *engine, guint width, guint height, guint channels,
    GstPhotoStereoEncoding choice, ImkImage *image, ImkError *error);

/* The kernel is through. @done: the device has been waited for. */
ImkStatus gst_photo_stereo_pad_end (
    GstPhotoStereoPad *self, gboolean done, ImkError *error);

/* @like: whose timestamps the buffer gets; NULL: it is dropped */
GstFlowReturn gst_photo_stereo_pad_push (
    GstPhotoStereoPad *self, GstBuffer *like);

G_END_DECLS
