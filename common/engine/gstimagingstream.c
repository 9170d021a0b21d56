/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingstream.h"

GstPad *
gst_imaging_stream_first_sink (GstElement *element, guint least)
{
  GstPad *first = NULL;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (element));
  if (element->numsinkpads >= least)
    first = gst_object_ref (element->sinkpads->data);
  return first;
}

gboolean
gst_imaging_stream_has_sent (GstPad *pad, GstEventType type)
{
  g_autoptr (GstEvent) event = gst_pad_get_sticky_event (pad, type, 0);

  return event != NULL;
}

GstClockTime
gst_imaging_stream_time (const GstSegment *segment, GstBuffer *buffer)
{
  GstClockTime pts = GST_BUFFER_PTS (buffer);

  return segment->format == GST_FORMAT_TIME && GST_CLOCK_TIME_IS_VALID (pts)
             ? gst_segment_to_stream_time (segment, GST_FORMAT_TIME, pts)
             : GST_CLOCK_TIME_NONE;
}

GstEvent *
gst_imaging_stream_start_new (const gchar *id, GstEvent *upstream)
{
  GstEvent *event = gst_event_new_stream_start (id);
  guint group;

  if (!upstream)
    return event;
  /* one sink without a group takes it from the message of the pipeline */
  if (gst_event_parse_group_id (upstream, &group))
    gst_event_set_group_id (event, group);
  gst_event_set_seqnum (event, gst_event_get_seqnum (upstream));
  return event;
}

GstEvent *
gst_imaging_stream_segment (GstEvent *upstream)
{
  GstSegment whole;

  if (upstream)
    return gst_event_ref (upstream);
  gst_segment_init (&whole, GST_FORMAT_TIME);
  return gst_event_new_segment (&whole);
}
