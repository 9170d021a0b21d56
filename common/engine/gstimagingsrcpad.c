/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingsrcpad.h"

#include "gstimagingallocation.h"
#include "gstimagingstream.h"

typedef struct {
  gboolean started, segment_sent;
  GstEvent *stream_start, *segment; /* (nullable): input events */
  GPtrArray *late;                  /* sticky events older than the pad */
  gint is_discont; /* atomic: the next buffer does not continue the last */
  GstCaps *caps;
  GstBufferPool *pool;
  GstVideoInfo carrier; /* of the pool */
  gboolean pool_on_cuda;
  gboolean use_host;
} GstImagingSrcPadPrivate;

typedef GstImagingSrcPadPrivate Private;

G_DEFINE_TYPE_WITH_PRIVATE (GstImagingSrcPad, gst_imaging_src_pad, GST_TYPE_PAD)

static Private *
private_of (GstImagingSrcPad *self)
{
  return gst_imaging_src_pad_get_instance_private (self);
}

void
gst_imaging_src_pad_forget_caps (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);

  gst_clear_caps (&priv->caps);
  gst_imaging_pool_clear (&priv->pool);
}

void
gst_imaging_src_pad_reset (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);

  gst_imaging_src_pad_forget_caps (self);
  priv->started = priv->segment_sent = FALSE;
  gst_clear_event (&priv->stream_start);
  gst_clear_event (&priv->segment);
  g_ptr_array_set_size (priv->late, 0);
}

/* --- events -------------------------------------------------------------- */

/* GStreamer makes an id for elements with one sink pad. With several, the first
 * counts.
 * Returns: (nullable): %NULL when the pad has been released */
static gchar *
make_stream_id (GstPad *pad)
{
  g_autoptr (GstElement) element = gst_pad_get_parent_element (pad);
  const gchar *name = GST_PAD_NAME (pad);
  g_autofree gchar *upstream = NULL;
  g_autoptr (GstPad) first = NULL;

  if (!element)
    return NULL;
  first = gst_imaging_stream_first_sink (element, 2);
  if (!first)
    return gst_pad_create_stream_id (pad, element, name);
  upstream = gst_pad_get_stream_id (first);
  return g_strdup_printf (
      "%s/%s", upstream ? upstream : GST_OBJECT_NAME (element), name);
}

/* @event: (transfer full) */
static gboolean
send_event (GstImagingSrcPad *self, GstEvent *event)
{
  return GST_IMAGING_SRC_PAD_GET_CLASS (self)->send_event (self, event);
}

/* Returns: (transfer full) (nullable) */
static GstEvent *
make_stream_start (GstImagingSrcPad *self)
{
  GstEvent *upstream = private_of (self)->stream_start;
  g_autofree gchar *id = NULL;

  if (upstream && GST_IMAGING_SRC_PAD_GET_CLASS (self)->keeps_stream)
    return gst_event_ref (upstream);
  id = make_stream_id (GST_PAD (self));
  return id ? gst_imaging_stream_start_new (id, upstream) : NULL;
}

static void
start_stream (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);
  GstEvent *event = priv->started ? NULL : make_stream_start (self);

  if (!event)
    return;
  send_event (self, event);
  priv->started = TRUE;
}

static void
send_segment (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);

  if (priv->segment_sent)
    return;
  send_event (self, gst_imaging_stream_segment (priv->segment));
  priv->segment_sent = TRUE;
  g_atomic_int_set (&priv->is_discont, TRUE);
  for (guint i = 0; i < priv->late->len; i++)
    send_event (self, gst_event_ref (priv->late->pdata[i]));
  g_ptr_array_set_size (priv->late, 0);
}

void
gst_imaging_src_pad_follow (GstImagingSrcPad *self, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START ||
      GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    gst_imaging_src_pad_event (self, event);
  else
    g_ptr_array_add (private_of (self)->late, gst_event_ref (event));
}

void
gst_imaging_src_pad_begin (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);

  if (priv->stream_start)
    start_stream (self);
  if (priv->segment && priv->caps)
    send_segment (self);
}

/* A flush also drops events that wait in a thread of a subclass. */
static void
end_flush (GstImagingSrcPad *self, GstEvent *event)
{
  Private *priv = private_of (self);
  GstPad *pad = GST_PAD (self);

  priv->segment_sent = FALSE;
  gst_clear_event (&priv->segment);
  send_event (self, gst_event_ref (event));
  if (!gst_imaging_stream_has_sent (pad, GST_EVENT_STREAM_START))
    priv->started = FALSE;
  if (!gst_imaging_stream_has_sent (pad, GST_EVENT_CAPS))
    gst_clear_caps (&priv->caps);
}

void
gst_imaging_src_pad_event (GstImagingSrcPad *self, GstEvent *event)
{
  Private *priv = private_of (self);
  GstEventType type = GST_EVENT_TYPE (event);

  switch (type) {
  case GST_EVENT_STREAM_START: /* only this lets data flow after EOS */
    gst_event_replace (&priv->stream_start, event);
    priv->started = priv->segment_sent = FALSE;
    break;
  case GST_EVENT_CAPS:
    break;
  case GST_EVENT_SEGMENT:
    gst_event_replace (&priv->segment, event);
    priv->segment_sent = FALSE;
    break;
  case GST_EVENT_FLUSH_STOP:
    end_flush (self, event);
    break;
  case GST_EVENT_EOS: /* a sink waits for it even when there was no data */
  case GST_EVENT_GAP:
    start_stream (self);
    if (priv->caps) /* a segment must follow caps */
      send_segment (self);
    if (priv->caps || type == GST_EVENT_EOS)
      send_event (self, gst_event_ref (event));
    break;
  default:
    if (GST_EVENT_IS_SERIALIZED (event))
      start_stream (self);
    send_event (self, gst_event_ref (event));
    break;
  }
}

/* --- caps ---------------------------------------------------------------- */

/* Returns: (transfer full) (nullable) */
static GstCaps *
first_accepted (GstPad *pad, GstCaps *offers)
{
  for (guint i = 0; i < gst_caps_get_size (offers); i++) {
    GstCaps *caps = gst_caps_copy_nth (offers, i);

    if (gst_pad_peer_query_accept_caps (pad, caps))
      return caps;
    gst_caps_unref (caps);
  }
  return NULL;
}

/* Returns: (transfer full) (nullable) */
static GstCaps *
first_of_peer (GstPad *pad, GstCaps *offers)
{
  g_autoptr (GstCaps) answer = gst_pad_peer_query_caps (pad, offers);
  /* some peers ignore the filter */
  GstCaps *common =
      gst_caps_intersect_full (answer, offers, GST_CAPS_INTERSECT_FIRST);

  if (!gst_caps_is_empty (common))
    return gst_caps_fixate (common);
  gst_caps_unref (common);
  return NULL;
}

GstCaps *
gst_imaging_src_pad_choose_caps (
    GstImagingSrcPad *self, GstImagingPreference preference, GstCaps *offers)
{
  GstPad *pad = GST_PAD (self);
  GstCaps *caps;

  gst_pad_check_reconfigure (pad); /* this is the answer */
  caps = preference == GST_IMAGING_PREFER_OURS ? first_accepted (pad, offers)
                                               : first_of_peer (pad, offers);
  gst_caps_unref (offers);
  return caps;
}

/* @caps: (transfer full) (nullable) */
static gboolean
send_caps (GstImagingSrcPad *self, GstCaps *caps)
{
  Private *priv = private_of (self);

  if (!caps)
    return FALSE;
  if (priv->caps && gst_caps_is_equal (priv->caps, caps)) {
    gst_caps_unref (caps);
    return TRUE;
  }
  gst_imaging_pool_clear (
      &priv->pool); /* it may be of another kind of memory */
  gst_clear_caps (&priv->caps);
  priv->caps = caps;
  return send_event (self, gst_event_new_caps (caps));
}

GstFlowReturn
gst_imaging_src_pad_set_caps (GstImagingSrcPad *self, GstCaps *caps)
{
  GstPad *pad = GST_PAD (self);

  start_stream (self);
  if (send_caps (self, caps)) {
    if (private_of (self)->segment)
      send_segment (self);
    return GST_FLOW_OK;
  }
  gst_imaging_src_pad_forget_caps (self);
  return GST_PAD_IS_FLUSHING (pad) ? GST_FLOW_FLUSHING
         : gst_pad_is_linked (pad) ? GST_FLOW_NOT_NEGOTIATED
                                   : GST_FLOW_NOT_LINKED;
}

GstFlowReturn
gst_imaging_src_pad_negotiate (
    GstImagingSrcPad *self, GstImagingPreference preference, GstCaps *offers)
{
  if (!gst_pad_is_linked (GST_PAD (self))) {
    gst_caps_unref (offers);
    return GST_FLOW_NOT_LINKED;
  }
  return gst_imaging_src_pad_set_caps (
      self, gst_imaging_src_pad_choose_caps (self, preference, offers));
}

gboolean
gst_imaging_src_pad_is_negotiated (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);

  return !GST_PAD_NEEDS_RECONFIGURE (GST_PAD (self)) && priv->caps &&
         priv->segment_sent;
}

GstCaps *
gst_imaging_src_pad_caps (GstImagingSrcPad *self)
{
  return private_of (self)->caps;
}

/* --- buffers ------------------------------------------------------------- */

void
gst_imaging_src_pad_use_host (GstImagingSrcPad *self, gboolean use_host)
{
  Private *priv = private_of (self);

  if (priv->use_host != use_host)
    gst_imaging_pool_clear (&priv->pool);
  priv->use_host = use_host;
}

static GstBufferPool *
get_pool (Private *priv, GstImagingEngine *engine, const GstVideoInfo *carrier)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (engine);
  g_autoptr (GstAllocator) allocator = NULL;
  g_autoptr (GstCaps) caps = NULL;
  guint size;

  if (priv->pool && priv->pool_on_cuda == on_cuda &&
      gst_video_info_is_equal (&priv->carrier, carrier))
    return priv->pool;
  gst_imaging_pool_clear (&priv->pool);
  caps = gst_video_info_to_caps (carrier);
  gst_caps_set_features (
      caps, 0, gst_caps_features_copy (gst_caps_get_features (priv->caps, 0)));
  priv->pool = gst_imaging_allocation_pool_new (engine, caps, carrier, FALSE,
      priv->use_host ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE,
      &allocator, &size);
  priv->carrier = *carrier;
  priv->pool_on_cuda = on_cuda;
  if (priv->pool && !gst_buffer_pool_set_active (priv->pool, TRUE))
    gst_clear_object (&priv->pool);
  return priv->pool;
}

ImkStatus
gst_imaging_src_pad_acquire (GstImagingSrcPad *self, GstImagingEngine *engine,
    const GstVideoInfo *carrier, GstBuffer **buffer, ImkError *error)
{
  GstBufferPool *pool = get_pool (private_of (self), engine, carrier);

  if (pool &&
      gst_buffer_pool_acquire_buffer (pool, buffer, NULL) == GST_FLOW_OK)
    return IMK_OK;
  return IMK_NO_MEMORY (
      error, "for a picture of %" G_GSIZE_FORMAT " bytes.", carrier->size);
}

GstBuffer *
gst_imaging_src_pad_prepare_buffer (GstImagingSrcPad *self, GstBuffer *buffer)
{
  start_stream (self);
  send_segment (self);
  if (g_atomic_int_compare_and_exchange (
          &private_of (self)->is_discont, TRUE, FALSE)) {
    buffer = gst_buffer_make_writable (buffer);
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  }
  return buffer;
}

GstFlowReturn
gst_imaging_src_pad_push (GstImagingSrcPad *self, GstBuffer *buffer)
{
  return gst_pad_push (
      GST_PAD (self), gst_imaging_src_pad_prepare_buffer (self, buffer));
}

/* --- the class ------------------------------------------------------------ */

static gboolean
gst_imaging_src_pad_send_event (GstImagingSrcPad *self, GstEvent *event)
{
  return gst_pad_push_event (GST_PAD (self), event);
}

static void
gst_imaging_src_pad_finalize (GObject *object)
{
  GstImagingSrcPad *self = GST_IMAGING_SRC_PAD (object);

  gst_imaging_src_pad_reset (self);
  g_ptr_array_unref (private_of (self)->late);
  G_OBJECT_CLASS (gst_imaging_src_pad_parent_class)->finalize (object);
}

static void
gst_imaging_src_pad_class_init (GstImagingSrcPadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_imaging_src_pad_finalize;
  klass->send_event = gst_imaging_src_pad_send_event;
}

static void
gst_imaging_src_pad_init (GstImagingSrcPad *self)
{
  Private *priv = private_of (self);

  priv->late =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_event_unref);
  priv->is_discont = TRUE;
  gst_pad_use_fixed_caps (GST_PAD (self));
}
