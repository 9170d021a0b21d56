/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a buffer holds: the array that its caps say, and its values in C order.
 */
#pragma once

#include <gst/video/video.h>

#include "gstimagingndarray.h"

typedef struct _GstPictureSinkVideo GstPictureSinkVideo;

typedef struct {
  /* without values; its cards are the owner's to add */
  GstImagingNdArray frame;
  gsize size; /* of the values of a frame, in bytes */

  /* how they are in a buffer */
  const GstPictureSinkVideo *video; /* NULL: not video */
  GstVideoInfo info;
  gboolean is_plain; /* rows of it are rows of the array */
  gsize row_size;    /* a buffer has any number of rows; 0: it is a frame */
  gboolean is_ci16;  /* rows of complex integers */
  gsize flags_size;  /* bytes of u8 behind the values; 0: no second tensor */
  GstImagingNdArray flags;
  const gchar *bayer; /* (nullable): "rggb" */
  guint bits;         /* of a sample of video */

  guint8 *packed; /* a frame, if it is not the buffer itself */
  gsize packed_size;
} GstPictureSinkFormat;

/* Values of a buffer, while it is mapped */
typedef struct {
  gconstpointer values;
  gconstpointer flags; /* NULL without a second tensor */
  guint64 n_frames;
  gboolean is_video;
  GstVideoFrame frame;
  GstBuffer *buffer;
  GstMapInfo map;
} GstPictureSinkView;

/* Returns: (transfer full): of all streams whose values have one of @types, a
 * mask of 1 << GstImagingNdArrayType; @rows: also of those that come in rows */
GstCaps *gst_picture_sink_format_caps (guint32 types, gboolean rows);

/* @types: of the file: complex numbers become pairs where it has none */
gboolean gst_picture_sink_format_set_caps (GstPictureSinkFormat *self,
    const GstCaps *caps, guint32 types, GError **error);

gboolean gst_picture_sink_format_map (GstPictureSinkFormat *self,
    GstBuffer *buffer, GstPictureSinkView *view, GError **error);
void gst_picture_sink_view_unmap (GstPictureSinkView *view);

void gst_picture_sink_format_clear (GstPictureSinkFormat *self);
