/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingaggregator.h"

#include "gstimagingstream.h"

/* --- the stream ----------------------------------------------------------- */

/* Returns: (transfer full) (nullable): of the first sink pad */
static GstEvent *
stream_start_of_first (GstElement *element)
{
  g_autoptr (GstPad) first = gst_imaging_stream_first_sink (element, 1);

  return first ? gst_pad_get_sticky_event (first, GST_EVENT_STREAM_START, 0)
               : NULL;
}

static GstEvent *
stream_start_like (GstPad *pad, GstEvent *upstream)
{
  g_autofree gchar *id = NULL;
  const gchar *upstream_id;

  gst_event_parse_stream_start (upstream, &upstream_id);
  id = g_strdup_printf ("%s/%s", upstream_id, GST_PAD_NAME (pad));
  return gst_imaging_stream_start_new (id, upstream);
}

/* The parent class sends caps and segment when it has a buffer to send. */
static void
release_held (GstPad *pad, GQueue *held)
{
  GstEvent *event;

  while ((event = g_queue_pop_head (held)))
    gst_pad_push_event (pad, event);
}

static GstPadProbeReturn
on_data (GstPad *pad, GstPadProbeInfo *info, gpointer held)
{
  GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info), *upstream;

  if (GST_PAD_PROBE_INFO_TYPE (info) & GST_PAD_PROBE_TYPE_BUFFER) {
    release_held (pad, held);
    return GST_PAD_PROBE_OK;
  }
  /* a stream that ends without a buffer */
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
    release_held (pad, held);
  if (GST_EVENT_TYPE (event) != GST_EVENT_STREAM_START)
    return GST_PAD_PROBE_OK;
  upstream = stream_start_of_first (GST_PAD_PARENT (pad));
  if (upstream) {
    GST_PAD_PROBE_INFO_DATA (info) = stream_start_like (pad, upstream);
    gst_event_unref (event);
    gst_event_unref (upstream);
  }
  return GST_PAD_PROBE_OK;
}

void
gst_imaging_aggregator_init (GstAggregator *self, GQueue *held)
{
  g_queue_init (held);
  gst_pad_add_probe (GST_AGGREGATOR_SRC_PAD (self),
      GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_BUFFER, on_data,
      held, NULL);
}

static gboolean
has_segment (GstAggregator *self)
{
  return gst_imaging_stream_has_sent (
      GST_AGGREGATOR_SRC_PAD (self), GST_EVENT_SEGMENT);
}

/* GStreamer 1.22 takes the sequence number of the EOS that it sends from the
 * last segment, and prints a critical when none has arrived, as in an empty
 * stream that is flushed while it ends. Until then the number is that of the
 * stream-start. */
static void
set_first_seqnum (
    GstAggregator *self, GstAggregatorPad *pad, GstEvent *stream_start)
{
  GstAggregatorClass *base = g_type_class_peek (GST_TYPE_AGGREGATOR);
  GstSegment segment;
  GstEvent *event;

  if (pad->segment.format != GST_FORMAT_UNDEFINED)
    return;
  gst_segment_init (&segment, GST_FORMAT_TIME);
  event = gst_event_new_segment (&segment);
  gst_event_set_seqnum (event, gst_event_get_seqnum (stream_start));
  base->sink_event (self, pad, event);
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (pad));
  gst_segment_init (&pad->segment, GST_FORMAT_UNDEFINED);
}

/* Returns: whether @event is one that the parent class does not know and would
 * pass on before the segment */
static gboolean
is_too_early (GstAggregator *self, GstEvent *event)
{
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START:
  case GST_EVENT_CAPS:
  case GST_EVENT_SEGMENT:
  case GST_EVENT_TAG:
  case GST_EVENT_GAP:
  case GST_EVENT_EOS:
  case GST_EVENT_FLUSH_STOP:
    return FALSE;
  default:
    break;
  }
  return GST_EVENT_IS_SERIALIZED (event) && !has_segment (self);
}

gboolean
gst_imaging_aggregator_keep_event (
    GstAggregator *self, GstAggregatorPad *pad, GQueue *held, GstEvent *event)
{
  GstEventType type = GST_EVENT_TYPE (event);

  if (type == GST_EVENT_FLUSH_STOP)
    g_queue_clear_full (held, (GDestroyNotify) gst_event_unref);
  if (type == GST_EVENT_STREAM_START)
    set_first_seqnum (self, pad, event);
  if (is_too_early (self, event)) {
    g_queue_push_tail (held, event);
    return TRUE;
  }
  if (type == GST_EVENT_GAP && pad->segment.format != GST_FORMAT_TIME) {
    gst_event_unref (event);
    return TRUE;
  }
  return FALSE;
}

/* --- seeks ---------------------------------------------------------------- */

static gboolean
can_seek (GstElement *element, GstPad *pad, gpointer format)
{
  g_autoptr (GstQuery) query =
      gst_query_new_seeking (*(const GstFormat *) format);
  gboolean can = FALSE;

  if (gst_pad_peer_query (pad, query))
    gst_query_parse_seeking (query, NULL, &can, NULL, NULL);
  return can; /* else ends the iteration */
}

gboolean
gst_imaging_aggregator_refuse_seek (GstAggregator *self, GstEvent *event)
{
  GstSeekFlags flags;
  GstFormat format;

  if (GST_EVENT_TYPE (event) != GST_EVENT_SEEK)
    return FALSE;
  gst_event_parse_seek (event, NULL, &format, &flags, NULL, NULL, NULL, NULL);
  return flags & GST_SEEK_FLAG_FLUSH &&
         !gst_element_foreach_sink_pad (GST_ELEMENT (self), can_seek, &format);
}

/* --- caps ----------------------------------------------------------------- */

static void
post_refused (GstAggregator *self)
{
  GstPad *pad = GST_AGGREGATOR_SRC_PAD (self);
  g_autoptr (GstCaps) ours = gst_pad_get_current_caps (pad);
  g_autoptr (GstCaps) taken = gst_pad_peer_query_caps (pad, NULL);

  if (!ours)
    ours = gst_pad_get_pad_template_caps (pad);
  GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
      ("The pad \"%s\" outputs %" GST_PTR_FORMAT
       ", but its peer accepts %" GST_PTR_FORMAT ".",
          GST_PAD_NAME (pad), ours, taken),
      (NULL));
}

static gboolean
is_refused (GstAggregator *self)
{
  GstPad *pad = GST_AGGREGATOR_SRC_PAD (self);

  return gst_pad_is_linked (pad) && !GST_PAD_IS_FLUSHING (pad);
}

gboolean
gst_imaging_aggregator_negotiate (
    GstAggregator *self, GstAggregatorClass *parent, const gboolean *posted)
{
  gboolean ok = parent->negotiate (self);

  if (!ok && !*posted && is_refused (self))
    post_refused (self);
  return ok;
}

GstFlowReturn
gst_imaging_aggregator_finish (GstAggregator *self, GstBuffer *buffer)
{
  GstFlowReturn flow = gst_aggregator_finish_buffer (self, buffer);

  if (flow == GST_FLOW_NOT_NEGOTIATED && is_refused (self))
    post_refused (self);
  return flow;
}

/* --- gaps ----------------------------------------------------------------- */

gboolean
gst_imaging_aggregator_is_gap (GstBuffer *buffer)
{
  return gst_buffer_get_size (buffer) == 0 &&
         GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_GAP);
}

void
gst_imaging_aggregator_push_gap (
    GstAggregator *self, GstClockTime pts, GstClockTime duration)
{
  if (has_segment (self) && GST_CLOCK_TIME_IS_VALID (pts))
    gst_pad_push_event (
        GST_AGGREGATOR_SRC_PAD (self), gst_event_new_gap (pts, duration));
}
