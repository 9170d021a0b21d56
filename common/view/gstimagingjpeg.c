/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingjpeg.h"

static GstFlowReturn
on_made (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstImagingJpeg *self = gst_pad_get_element_private (pad);

  gst_clear_buffer (&self->made);
  self->made = buffer;
  return GST_FLOW_OK;
}

static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  gst_event_unref (event);
  return TRUE;
}

/* Without a template the first size would be the only one. */
static GstStaticPadTemplate out_template = GST_STATIC_PAD_TEMPLATE (
    "out", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

static gboolean
start (GstImagingJpeg *self, GError **error)
{
  g_autoptr (GstPad) sink = NULL, src = NULL;

  self->element = gst_element_factory_make ("jpegenc", NULL);
  if (!self->element) {
    g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "The element jpegenc is missing, which a view needs: on Debian, "
        "install gstreamer1.0-plugins-good.");
    return FALSE;
  }
  gst_object_ref_sink (self->element);
  /* the default is off by up to 31 of 255 at a quality of 100 */
  gst_util_set_object_arg (G_OBJECT (self->element), "idct-method", "islow");
  self->in = gst_pad_new ("in", GST_PAD_SRC);
  self->out = gst_pad_new_from_static_template (&out_template, "out");
  gst_pad_set_element_private (self->out, self);
  gst_pad_set_chain_function (self->out, on_made);
  gst_pad_set_event_function (self->out, on_event);
  sink = gst_element_get_static_pad (self->element, "sink");
  src = gst_element_get_static_pad (self->element, "src");
  gst_pad_link (self->in, sink);
  gst_pad_link (src, self->out);
  gst_pad_set_active (self->in, TRUE);
  gst_pad_set_active (self->out, TRUE);
  gst_element_set_state (self->element, GST_STATE_PLAYING);
  gst_pad_push_event (self->in, gst_event_new_stream_start ("view"));
  return TRUE;
}

static void
set_format (GstImagingJpeg *self, const GstImagingViewPicture *p)
{
  const guint width = p->stride / (p->is_grey ? 1 : 3); /* whole blocks */
  g_autoptr (GstCaps) caps = NULL;
  GstSegment segment;

  if (self->width == width && self->height == p->height &&
      self->is_grey == p->is_grey)
    return;
  self->width = width;
  self->height = p->height;
  self->is_grey = p->is_grey;
  caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      p->is_grey ? "GRAY8" : "RGB", "width", G_TYPE_INT, (gint) width, "height",
      G_TYPE_INT, (gint) p->height, "framerate", GST_TYPE_FRACTION, 0, 1, NULL);
  gst_pad_push_event (self->in, gst_event_new_caps (caps));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (self->in, gst_event_new_segment (&segment));
}

/* jpegenc leaves undefined what it encodes beside a picture in the last block
 * of a row. So it gets whole blocks, and here the frame header (SOF; ITU-T
 * T.81, B.2.2) gets the width of the picture, at which decoders cut it.
 * Returns: whether there is such a header */
static gboolean
set_width (GstBuffer *jpeg, guint width)
{
  GstMapInfo map;
  gsize at = 2; /* behind the start of the image */
  gboolean found = FALSE;

  if (!gst_buffer_map (jpeg, &map, GST_MAP_READWRITE))
    return FALSE;
  while (!found && at + 9 <= map.size && map.data[at] == 0xff) {
    found = map.data[at + 1] >= 0xc0 && map.data[at + 1] <= 0xc2;
    if (found) {
      map.data[at + 7] = (guint8) (width >> 8);
      map.data[at + 8] = (guint8) width;
    }
    /* in bytes: it is at any address */
    at += 2 + (gsize) (map.data[at + 2] << 8 | map.data[at + 3]);
  }
  gst_buffer_unmap (jpeg, &map);
  return found;
}

GstBuffer *
gst_imaging_jpeg_encode (GstImagingJpeg *self,
    const GstImagingViewPicture *picture, guint quality, GError **error)
{
  GstBuffer *buffer;
  GstFlowReturn flow;

  if (!self->element && !start (self, error))
    return NULL;
  g_object_set (self->element, "quality", (gint) quality, NULL);
  set_format (self, picture);
  /* its pixels stay until the call has returned */
  buffer = gst_buffer_new_wrapped_full (GST_MEMORY_FLAG_READONLY,
      picture->pixels, picture->size, 0, picture->size, NULL, NULL);
  GST_BUFFER_PTS (buffer) = 0;
  flow = gst_pad_push (self->in, buffer);
  if (flow != GST_FLOW_OK || !self->made ||
      !set_width (self->made, picture->width)) {
    gst_clear_buffer (&self->made);
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_ENCODE,
        "A picture of %u x %u could not be made a JPEG (%s).", picture->width,
        picture->height, gst_flow_get_name (flow));
    return NULL;
  }
  return g_steal_pointer (&self->made);
}

void
gst_imaging_jpeg_clear (GstImagingJpeg *self)
{
  if (self->element)
    gst_element_set_state (self->element, GST_STATE_NULL);
  if (self->in)
    gst_pad_set_active (self->in, FALSE);
  if (self->out)
    gst_pad_set_active (self->out, FALSE);
  gst_clear_object (&self->in);
  gst_clear_object (&self->out);
  gst_clear_object (&self->element);
  gst_clear_buffer (&self->made);
}
