/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingoutput.h"

#include "gstimagingallocation.h"
#include "gstimagingstream.h"

struct _GstImagingOutput {
  gatomicrefcount refs;
  GstElement *element;
  GstPad *pad;

  /* of the streaming thread */
  gboolean started, segment_sent;
  GstEvent *stream_start, *segment; /* (nullable): of upstream */
  GPtrArray *late;     /* sticky events from before the pad was made */
  gboolean is_discont; /* the next buffer does not continue the last */
  GstCaps *caps;
  GstBufferPool *pool;
  GstVideoInfo carrier; /* of the pool */
  gboolean pool_on_cuda;
  gboolean use_host;
};

GstImagingOutput *
gst_imaging_output_new (
    GstElement *element, GstPadTemplate *pad_template, const gchar *name)
{
  GstImagingOutput *self = g_new0 (GstImagingOutput, 1);

  g_atomic_ref_count_init (&self->refs);
  self->element = element;
  self->late =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_event_unref);
  self->pad = gst_object_ref (gst_pad_new_from_template (pad_template, name));
  gst_pad_use_fixed_caps (self->pad);
  gst_imaging_output_reset (self);
  gst_pad_set_active (self->pad, TRUE);
  gst_element_add_pad (element, self->pad);
  return self;
}

GstImagingOutput *
gst_imaging_output_ref (GstImagingOutput *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
drop_pool (GstImagingOutput *self)
{
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
}

void
gst_imaging_output_unref (GstImagingOutput *self)
{
  if (!self || !g_atomic_ref_count_dec (&self->refs))
    return;
  drop_pool (self);
  gst_clear_caps (&self->caps);
  gst_clear_event (&self->stream_start);
  gst_clear_event (&self->segment);
  g_ptr_array_unref (self->late);
  gst_object_unref (self->pad);
  g_free (self);
}

void
gst_imaging_output_remove (GstImagingOutput *self)
{
  gst_pad_set_active (self->pad, FALSE);
  gst_element_remove_pad (self->element, self->pad);
}

GstPad *
gst_imaging_output_pad (GstImagingOutput *self)
{
  return self->pad;
}

void
gst_imaging_output_reset (GstImagingOutput *self)
{
  self->started = self->segment_sent = FALSE;
  gst_clear_caps (&self->caps);
  drop_pool (self);
  gst_clear_event (&self->stream_start);
  gst_clear_event (&self->segment);
  g_ptr_array_set_size (self->late, 0);
  self->is_discont = TRUE;
}

/* --- events -------------------------------------------------------------- */

/* GStreamer knows an id for elements with one sink pad; of several, the first
 * is meant. */
static gchar *
make_stream_id (GstImagingOutput *self)
{
  const gchar *name = GST_PAD_NAME (self->pad);
  g_autofree gchar *upstream = NULL;
  GstPad *first = NULL;

  GST_OBJECT_LOCK (self->element);
  if (self->element->numsinkpads > 1)
    first = gst_object_ref (self->element->sinkpads->data);
  GST_OBJECT_UNLOCK (self->element);
  if (!first)
    return gst_pad_create_stream_id (self->pad, self->element, name);
  upstream = gst_pad_get_stream_id (first);
  gst_object_unref (first);
  return g_strdup_printf (
      "%s/%s", upstream ? upstream : GST_OBJECT_NAME (self->element), name);
}

static void
start_stream (GstImagingOutput *self)
{
  g_autofree gchar *id = NULL;

  if (self->started)
    return;
  id = make_stream_id (self);
  gst_pad_push_event (
      self->pad, gst_imaging_stream_start_new (id, self->stream_start));
  self->started = TRUE;
}

static void
send_segment (GstImagingOutput *self)
{
  if (self->segment_sent)
    return;
  gst_pad_push_event (self->pad, gst_imaging_stream_segment (self->segment));
  self->segment_sent = self->is_discont = TRUE;
  for (guint i = 0; i < self->late->len; i++)
    gst_pad_push_event (self->pad, gst_event_ref (self->late->pdata[i]));
  g_ptr_array_set_size (self->late, 0);
}

void
gst_imaging_output_follow (GstImagingOutput *self, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START ||
      GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    gst_imaging_output_event (self, event);
  else
    g_ptr_array_add (self->late, gst_event_ref (event));
}

/* What has no meaning of its own here, as what applications make. */
static void
pass_on (GstImagingOutput *self, GstEvent *event)
{
  if (GST_EVENT_IS_SERIALIZED (event))
    start_stream (self);
  gst_pad_push_event (self->pad, gst_event_ref (event));
}

void
gst_imaging_output_event (GstImagingOutput *self, GstEvent *event)
{
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START: /* a new stream makes data flow after EOS */
    gst_event_replace (&self->stream_start, event);
    self->started = self->segment_sent = FALSE;
    break;
  case GST_EVENT_CAPS: /* have been agreed on with our own peer */
    break;
  case GST_EVENT_SEGMENT:
    gst_event_replace (&self->segment, event);
    self->segment_sent = FALSE;
    break;
  case GST_EVENT_FLUSH_STOP:
    self->segment_sent = FALSE;
    gst_clear_event (&self->segment);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_FLUSH_START:
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_EOS: /* a sink waits for it even when there was no data */
    start_stream (self);
    if (self->caps) /* else a stream to come would have its caps after it */
      send_segment (self);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_GAP: /* stands behind a segment, and that behind caps */
    if (!self->caps)
      break;
    send_segment (self);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  default:
    pass_on (self, event);
    break;
  }
}

/* --- caps ---------------------------------------------------------------- */

/* Returns: (transfer full) (nullable) */
static GstCaps *
choose_caps (GstImagingOutput *self, GstCaps *offers)
{
  for (guint i = 0; i < gst_caps_get_size (offers); i++) {
    GstCaps *caps = gst_caps_copy_nth (offers, i);

    if (gst_pad_peer_query_accept_caps (self->pad, caps))
      return caps;
    gst_caps_unref (caps);
  }
  return NULL;
}

GstFlowReturn
gst_imaging_output_negotiate (GstImagingOutput *self, GstCaps *offers)
{
  gboolean ok = FALSE;
  GstCaps *caps;

  if (!gst_pad_is_linked (self->pad)) {
    gst_caps_unref (offers);
    return GST_FLOW_NOT_LINKED;
  }
  start_stream (self);
  caps = choose_caps (self, offers);
  gst_caps_unref (offers);
  if (caps && self->caps && gst_caps_is_equal (self->caps, caps)) {
    ok = TRUE;
  } else if (caps) {
    gst_caps_replace (&self->caps, caps);
    drop_pool (self); /* it may be of another kind of memory */
    ok = gst_pad_push_event (self->pad, gst_event_new_caps (caps));
  }
  gst_clear_caps (&caps);
  if (ok)
    send_segment (self);
  return ok                                ? GST_FLOW_OK
         : GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                           : GST_FLOW_NOT_NEGOTIATED;
}

gboolean
gst_imaging_output_is_negotiated (GstImagingOutput *self)
{
  return !gst_pad_check_reconfigure (self->pad) && self->caps &&
         self->segment_sent;
}

GstCaps *
gst_imaging_output_caps (GstImagingOutput *self)
{
  return self->caps;
}

/* --- buffers ------------------------------------------------------------- */

void
gst_imaging_output_use_host (GstImagingOutput *self, gboolean use_host)
{
  if (self->use_host != use_host)
    drop_pool (self);
  self->use_host = use_host;
}

static GstBufferPool *
get_pool (GstImagingOutput *self, GstImagingEngine *engine,
    const GstVideoInfo *carrier)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (engine);
  GstAllocator *allocator;
  GstCaps *caps;
  guint size;

  if (self->pool && self->pool_on_cuda == on_cuda &&
      gst_video_info_is_equal (&self->carrier, carrier))
    return self->pool;
  drop_pool (self);
  caps = gst_video_info_to_caps (carrier);
  gst_caps_set_features (
      caps, 0, gst_caps_features_copy (gst_caps_get_features (self->caps, 0)));
  self->pool = gst_imaging_allocation_pool_new (engine, caps, carrier, FALSE,
      self->use_host ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE,
      &allocator, &size);
  self->carrier = *carrier;
  self->pool_on_cuda = on_cuda;
  if (self->pool && !gst_buffer_pool_set_active (self->pool, TRUE))
    gst_clear_object (&self->pool);
  gst_clear_object (&allocator);
  gst_caps_unref (caps);
  return self->pool;
}

ImkStatus
gst_imaging_output_acquire (GstImagingOutput *self, GstImagingEngine *engine,
    const GstVideoInfo *carrier, GstBuffer **buffer, ImkError *error)
{
  GstBufferPool *pool = get_pool (self, engine, carrier);

  if (pool &&
      gst_buffer_pool_acquire_buffer (pool, buffer, NULL) == GST_FLOW_OK)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for a picture of %" G_GSIZE_FORMAT " bytes.",
      carrier->size);
}

GstFlowReturn
gst_imaging_output_push (GstImagingOutput *self, GstBuffer *buffer)
{
  if (self->is_discont) {
    buffer = gst_buffer_make_writable (buffer);
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  }
  self->is_discont = FALSE;
  return gst_pad_push (self->pad, buffer);
}
