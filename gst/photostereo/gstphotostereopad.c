/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstphotostereopad.h"

#include <gst/video/video.h>

struct _GstPhotoStereoPad {
  gatomicrefcount refs;
  GstElement *element;
  GstPad *pad;

  /* of the streaming thread */
  gboolean started, segment_sent;
  GstSegment segment;
  GstCaps *caps;
  GstPhotoStereoEncoding encoding;

  /* where buffers come from: video frames, which of a tensor are its bytes */
  GstVideoInfo carrier;
  GstBufferPool *pool;
  gboolean pool_on_cuda;

  GstBuffer *buffer; /* between begin and push */
  GstImagingFrame frame;
};

GstPhotoStereoPad *
gst_photo_stereo_pad_new (
    GstElement *element, GstPadTemplate *template, const gchar *name)
{
  GstPhotoStereoPad *self = g_new0 (GstPhotoStereoPad, 1);

  g_atomic_ref_count_init (&self->refs);
  self->element = element;
  self->pad = gst_object_ref (gst_pad_new_from_template (template, name));
  gst_pad_use_fixed_caps (self->pad);
  gst_photo_stereo_pad_reset (self);
  gst_pad_set_active (self->pad, TRUE);
  gst_element_add_pad (element, self->pad);
  return self;
}

GstPhotoStereoPad *
gst_photo_stereo_pad_ref (GstPhotoStereoPad *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
drop_pool (GstPhotoStereoPad *self)
{
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
}

void
gst_photo_stereo_pad_unref (GstPhotoStereoPad *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  drop_pool (self);
  gst_clear_caps (&self->caps);
  gst_object_unref (self->pad);
  g_free (self);
}

void
gst_photo_stereo_pad_remove (GstPhotoStereoPad *self)
{
  gst_pad_set_active (self->pad, FALSE);
  gst_element_remove_pad (self->element, self->pad);
}

GstPad *
gst_photo_stereo_pad_get (GstPhotoStereoPad *self)
{
  return self->pad;
}

void
gst_photo_stereo_pad_reset (GstPhotoStereoPad *self)
{
  self->started = self->segment_sent = FALSE;
  gst_clear_caps (&self->caps);
  drop_pool (self);
  gst_segment_init (&self->segment, GST_FORMAT_TIME);
}

/* --- events -------------------------------------------------------------- */

static void
start_stream (GstPhotoStereoPad *self)
{
  g_autofree gchar *id = NULL;

  if (self->started)
    return;
  id = gst_pad_create_stream_id (
      self->pad, self->element, GST_PAD_NAME (self->pad));
  gst_pad_push_event (self->pad, gst_event_new_stream_start (id));
  self->started = TRUE;
}

static void
send_segment (GstPhotoStereoPad *self)
{
  if (self->segment_sent)
    return;
  gst_pad_push_event (self->pad, gst_event_new_segment (&self->segment));
  self->segment_sent = TRUE;
}

void
gst_photo_stereo_pad_event (GstPhotoStereoPad *self, GstEvent *event)
{
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START: /* a new stream makes data flow after EOS */
    self->started = self->segment_sent = FALSE;
    break;
  case GST_EVENT_SEGMENT:
    gst_event_copy_segment (event, &self->segment);
    self->segment_sent = FALSE;
    break;
  case GST_EVENT_FLUSH_STOP:
    self->segment_sent = FALSE;
    gst_segment_init (&self->segment, GST_FORMAT_TIME);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_FLUSH_START:
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_EOS: /* a sink waits for it even when there was no set */
    start_stream (self);
    send_segment (self);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_TAG:
    if (self->started)
      gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  default:
    break;
  }
}

/* --- caps ---------------------------------------------------------------- */

/* Returns: (transfer full) (nullable): one encoding */
static GstCaps *
encoding_caps (
    guint width, guint height, guint channels, GstPhotoStereoEncoding encoding)
{
  static const gchar *const bytes[] = {NULL, "GRAY8", NULL, "RGB", NULL};
  static const gchar *const words[] = {
      NULL, "GRAY16_LE", NULL, "RGBA64_LE", "RGBA64_LE"};
  const gchar *format = encoding == GST_PHOTO_STEREO_ENCODING_8
                            ? bytes[channels]
                            : words[channels];
  g_autofree gchar *dims =
      g_strdup_printf ("%u:%u:%u:1", channels, width, height);

  if (encoding == GST_PHOTO_STEREO_ENCODING_TENSOR)
    return gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
        "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING,
        "float32", "dimensions", G_TYPE_STRING, dims, "framerate",
        GST_TYPE_FRACTION, 0, 1, NULL);
  if (!format)
    return NULL;
  return gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format,
      "width", G_TYPE_INT, (gint) width, "height", G_TYPE_INT, (gint) height,
      "framerate", GST_TYPE_FRACTION, 0, 1, NULL);
}

/* The first encoding that we would give and the peer takes. */
static GstCaps *
choose_caps (GstPhotoStereoPad *self, guint width, guint height, guint channels,
    GstPhotoStereoEncoding choice)
{
  for (GstPhotoStereoEncoding e = GST_PHOTO_STEREO_ENCODING_8;
       e <= GST_PHOTO_STEREO_ENCODING_TENSOR; e++) {
    GstCaps *caps = choice == GST_PHOTO_STEREO_ENCODING_AUTO || choice == e
                        ? encoding_caps (width, height, channels, e)
                        : NULL;

    if (caps && gst_pad_peer_query_accept_caps (self->pad, caps)) {
      self->encoding = e;
      return caps;
    }
    gst_clear_caps (&caps);
  }
  return NULL;
}

static void
set_carrier (GstPhotoStereoPad *self, GstCaps *caps, guint width, guint height,
    guint channels)
{
  if (self->encoding == GST_PHOTO_STEREO_ENCODING_TENSOR)
    gst_video_info_set_format (&self->carrier, GST_VIDEO_FORMAT_GRAY8,
        width * channels * sizeof (gfloat), height);
  else
    gst_video_info_from_caps (&self->carrier, caps);
}

static GstFlowReturn
negotiate (GstPhotoStereoPad *self, guint width, guint height, guint channels,
    GstPhotoStereoEncoding choice)
{
  GstCaps *caps = choose_caps (self, width, height, channels, choice);
  gboolean ok = TRUE;

  if (!caps)
    return GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                           : GST_FLOW_NOT_NEGOTIATED;
  if (!self->caps || !gst_caps_is_equal (self->caps, caps)) {
    drop_pool (self);
    set_carrier (self, caps, width, height, channels);
    gst_caps_replace (&self->caps, caps);
    ok = gst_pad_push_event (self->pad, gst_event_new_caps (caps));
  }
  gst_caps_unref (caps);
  return ok                                ? GST_FLOW_OK
         : GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                           : GST_FLOW_NOT_NEGOTIATED;
}

/* --- buffers ------------------------------------------------------------- */

static GstBufferPool *
get_pool (GstPhotoStereoPad *self, GstImagingEngine *engine)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (engine);
  GstAllocator *allocator = NULL;
  GstCaps *caps;

  if (self->pool && self->pool_on_cuda == on_cuda)
    return self->pool;
  drop_pool (self);
  caps = gst_video_info_to_caps (&self->carrier);
  if (on_cuda)
    allocator =
        gst_imaging_engine_allocator_new (engine, GST_IMAGING_MEMORY_DEVICE);
  self->pool =
      gst_imaging_video_pool_new (allocator, caps, &self->carrier, FALSE);
  self->pool_on_cuda = on_cuda;
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, TRUE);
  gst_clear_object (&allocator);
  gst_caps_unref (caps);
  return self->pool;
}

/* The mapped bytes as the kernel is to see them. */
static ImkImage
describe (GstPhotoStereoPad *self, guint width, guint height, guint channels)
{
  ImkImage image = self->frame.planes[0];

  image.width = width;
  image.height = height;
  image.channels = channels;
  image.type = self->encoding == GST_PHOTO_STEREO_ENCODING_8    ? IMK_TYPE_U8
               : self->encoding == GST_PHOTO_STEREO_ENCODING_16 ? IMK_TYPE_U16
                                                                : IMK_TYPE_F32;
  if (image.type == IMK_TYPE_U16 && channels == 3)
    image.channels = 4;
  return image;
}

GstFlowReturn
gst_photo_stereo_pad_begin (GstPhotoStereoPad *self, GstImagingEngine *engine,
    guint width, guint height, guint channels, GstPhotoStereoEncoding choice,
    ImkImage *image, ImkError *error)
{
  GstImagingReach reach = gst_imaging_engine_is_on_cuda (engine)
                              ? GST_IMAGING_REACH_DEVICE
                              : GST_IMAGING_REACH_HOST;
  GstFlowReturn flow;
  GstBufferPool *pool;

  if (!gst_pad_is_linked (self->pad))
    return GST_FLOW_NOT_LINKED;
  start_stream (self);
  flow = negotiate (self, width, height, channels, choice);
  if (flow != GST_FLOW_OK)
    return flow;
  send_segment (self);
  pool = get_pool (self, engine);
  if (!pool || gst_buffer_pool_acquire_buffer (pool, &self->buffer, NULL) !=
                   GST_FLOW_OK) {
    imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for a picture of %" G_GSIZE_FORMAT " bytes.",
        self->carrier.size);
    return GST_FLOW_ERROR;
  }
  if (gst_imaging_engine_map (engine, self->buffer, &self->carrier,
          GST_MAP_WRITE, reach, &self->frame, error) != IMK_OK) {
    gst_clear_buffer (&self->buffer);
    return GST_FLOW_ERROR;
  }
  *image = describe (self, width, height, channels);
  return GST_FLOW_OK;
}

ImkStatus
gst_photo_stereo_pad_end (
    GstPhotoStereoPad *self, gboolean done, ImkError *error)
{
  return gst_imaging_frame_unmap (&self->frame, done, error);
}

GstFlowReturn
gst_photo_stereo_pad_push (GstPhotoStereoPad *self, GstBuffer *like)
{
  GstBuffer *buffer = g_steal_pointer (&self->buffer);

  if (!like) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  gst_buffer_copy_into (buffer, like, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  return gst_pad_push (self->pad, buffer);
}
