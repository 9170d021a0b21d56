/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every pad of every element: events keep their order and the sequence number
 * of their cause, the first buffer of a segment is marked, and what an
 * application sends through an element arrives. */
#include "streams.h"

enum { SEQ_START = 1001, SEQ_SEGMENT, SEQ_CUSTOM, SEQ_GAP, SEQ_FLUSH };

#define GROUP 77

static GstEvent *
stream_start (guint sink)
{
  g_autofree gchar *id = g_strdup_printf ("stream-%u", sink);
  GstEvent *event = gst_event_new_stream_start (id);

  gst_event_set_group_id (event, GROUP);
  return event;
}

static void
send_segment (Streams *s, guint sink, guint32 seqnum)
{
  GstSegment segment;

  gst_segment_init (
      &segment, s->c->is_lines ? GST_FORMAT_DEFAULT : GST_FORMAT_TIME);
  streams_send (s, sink, gst_event_new_segment (&segment), seqnum);
}

static GstEvent *
custom_event (gboolean is_sticky)
{
  return gst_event_new_custom (is_sticky ? GST_EVENT_CUSTOM_DOWNSTREAM_STICKY
                                         : GST_EVENT_CUSTOM_DOWNSTREAM,
      gst_structure_new_empty (is_sticky ? "check-sticky" : "check-custom"));
}

static void
feed_start (Streams *s, guint sink, gpointer data)
{
  streams_send (s, sink, stream_start (sink), SEQ_START);
  streams_send_caps (s, sink);
  send_segment (s, sink, SEQ_SEGMENT);
}

static void
feed_buffers (Streams *s, guint sink, gpointer data)
{
  for (guint i = 0; i < s->c->n; i++)
    streams_push (s, sink, streams_buffer (s, sink, i));
}

static void
feed_all (Streams *s, guint sink, gpointer data)
{
  feed_start (s, sink, NULL);
  streams_send (s, sink, custom_event (FALSE), SEQ_CUSTOM);
  streams_send (s, sink, custom_event (TRUE), SEQ_CUSTOM);
  feed_buffers (s, sink, NULL);
  streams_send (s, sink, gst_event_new_eos (), SEQ_SEGMENT);
}

static void
feed_after_flush (Streams *s, guint sink, gpointer data)
{
  send_segment (s, sink, SEQ_FLUSH);
  feed_buffers (s, sink, NULL);
  streams_send (s, sink, gst_event_new_eos (), SEQ_FLUSH);
}

static void
flush (Streams *s)
{
  for (guint i = 0; i < s->n_sinks; i++)
    streams_send (s, i, gst_event_new_flush_start (), SEQ_FLUSH);
  for (guint i = 0; i < s->n_sinks; i++)
    streams_send (s, i, gst_event_new_flush_stop (TRUE), SEQ_FLUSH);
}

/* --- expected events
 * -----------------------------------------------------------
 */

typedef struct {
  guint n_starts, n_caps, n_segments, n_custom, n_sticky, n_gaps, n_eos,
      n_flushes, n_buffers;
} Count;

#define check_pad(ok, ...) \
  fail_unless (ok, "%s, %s: %s", s->c->launch, s->c->srcs[src], \
      g_strdup_printf (__VA_ARGS__)) /* leaks when the test fails */

static void
check_seqnum (Streams *s, guint src, GstEvent *event, guint32 seqnum)
{
  check_pad (gst_event_get_seqnum (event) == seqnum,
      "%s has the sequence number %u, not %u", GST_EVENT_TYPE_NAME (event),
      gst_event_get_seqnum (event), seqnum);
}

static void
check_stream_start (Streams *s, guint src, GstEvent *event)
{
  guint group = 0;

  check_seqnum (s, src, event, SEQ_START);
  check_pad (gst_event_parse_group_id (event, &group) && group == GROUP,
      "stream-start has the group %u, not %u", group, GROUP);
}

static void
check_event (
    Streams *s, guint src, GstEvent *event, guint32 seqnum, Count *count)
{
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START:
    check_stream_start (s, src, event);
    count->n_starts++;
    break;
  case GST_EVENT_CAPS:
    count->n_caps++;
    break;
  case GST_EVENT_SEGMENT:
    check_seqnum (s, src, event, seqnum);
    count->n_segments++;
    break;
  case GST_EVENT_EOS:
    check_seqnum (s, src, event, seqnum);
    count->n_eos++;
    break;
  case GST_EVENT_GAP:
    count->n_gaps++;
    break;
  case GST_EVENT_FLUSH_START:
  case GST_EVENT_FLUSH_STOP:
    check_seqnum (s, src, event, seqnum);
    count->n_flushes++;
    break;
  case GST_EVENT_CUSTOM_DOWNSTREAM:
    check_seqnum (s, src, event, SEQ_CUSTOM);
    count->n_custom++;
    break;
  case GST_EVENT_CUSTOM_DOWNSTREAM_STICKY:
    check_seqnum (s, src, event, SEQ_CUSTOM);
    count->n_sticky++;
    break;
  default:
    break;
  }
}

/* @is_new: since a stream-start; else since a flush, which keeps caps */
static Count
check_received (Streams *s, guint src, guint32 seqnum, gboolean is_new)
{
  Count count = {0};

  g_mutex_lock (&s->lock);
  for (guint i = 0; i < s->received[src]->len; i++) {
    GstMiniObject *object = s->received[src]->pdata[i];
    gboolean is_discont;

    if (GST_IS_EVENT (object)) {
      check_pad (
          !is_new || i > 0 ||
              GST_EVENT_TYPE ((GstEvent *) object) == GST_EVENT_STREAM_START,
          "%s is before stream-start",
          GST_EVENT_TYPE_NAME ((GstEvent *) object));
      check_event (s, src, (GstEvent *) object, seqnum, &count);
      check_pad (!is_new || count.n_segments == 0 || count.n_caps > 0,
          "the segment is before caps");
      check_pad (count.n_gaps == 0 || count.n_segments > 0,
          "a gap is before the segment");
      continue;
    }
    is_discont = GST_BUFFER_IS_DISCONT (object);
    check_pad (count.n_segments > 0, "a buffer is before the segment");
    check_pad (is_discont == (count.n_buffers == 0),
        "buffer %u is %smarked as a discontinuity", count.n_buffers,
        is_discont ? "" : "not ");
    count.n_buffers++;
  }
  g_mutex_unlock (&s->lock);
  return count;
}

static void
check_no_error (Streams *s)
{
  GstMessage *message = gst_bus_pop_filtered (s->bus, GST_MESSAGE_ERROR);
  g_autofree gchar *text = NULL;
  GError *error = NULL;

  if (!message)
    return;
  gst_message_parse_error (message, &error, &text);
  ck_abort_msg ("%s: %s", s->c->launch, error->message);
}

CHECK_CASE ("events", streams_setup, check_remove_folder)

/* Sequence numbers, DISCONT, order, custom events, and all of it again after a
 * flush. */
CHECK_LOOP_TEST (test_events_of_every_pad, streams_n_cases)
{
  Streams *s = streams_new (&streams_cases[__i__]);
  Count c;

  if (!s)
    return;
  streams_feed (s, feed_all, NULL);
  for (guint src = 0; src < s->n_srcs; src++) {
    streams_wait (s, src, GST_EVENT_EOS);
    c = check_received (s, src, SEQ_SEGMENT, TRUE);
    check_pad (c.n_starts == 1 && c.n_segments == 1 && c.n_eos == 1,
        "%u stream-starts, %u segments, %u EOS", c.n_starts, c.n_segments,
        c.n_eos);
    check_pad (c.n_buffers > 0, "no buffer comes");
    check_pad (c.n_custom == s->n_sinks && c.n_sticky == s->n_sinks,
        "%u and %u custom events come of %u", c.n_custom, c.n_sticky,
        s->n_sinks);
  }
  check_no_error (s);
  streams_clear (s);
  flush (s);
  streams_feed (s, feed_after_flush, NULL);
  for (guint src = 0; src < s->n_srcs; src++) {
    streams_wait (s, src, GST_EVENT_EOS);
    c = check_received (s, src, SEQ_FLUSH, FALSE);
    check_pad (c.n_segments == 1 && c.n_eos == 1 && c.n_buffers > 0,
        "%u segments, %u EOS, %u buffers after a flush", c.n_segments, c.n_eos,
        c.n_buffers);
    check_pad (c.n_flushes >= 2, "%u flush events", c.n_flushes);
  }
  check_no_error (s);
  streams_free (s);
}

/* --- gaps ----------------------------------------------------------------- */

static void
feed_gap (Streams *s, guint sink, gpointer data)
{
  feed_start (s, sink, NULL);
  streams_send (
      s, sink, gst_event_new_gap (0, s->c->n * 40 * GST_MSECOND), SEQ_GAP);
  if (sink == 0) {
    GstBuffer *buffer = streams_buffer (s, sink, s->c->n);

    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
    streams_push (s, sink, buffer);
  }
  streams_send (s, sink, gst_event_new_eos (), SEQ_SEGMENT);
}

/* A sink may have to preroll with a gap, so it goes behind a segment and that
 * behind caps; and no element ends with an error. */
CHECK_LOOP_TEST (test_a_stream_may_begin_with_a_gap, streams_n_cases)
{
  Streams *s = streams_new (&streams_cases[__i__]);
  Count c;

  if (!s)
    return;
  if (s->c->is_lines) { /* of time; lines have none */
    streams_free (s);
    return;
  }
  streams_feed (s, feed_gap, NULL);
  for (guint src = 0; src < s->n_srcs; src++) {
    streams_wait (s, src, GST_EVENT_EOS);
    c = check_received (s, src, SEQ_SEGMENT, TRUE);
    check_pad (!s->c->gap_is_forwarded || c.n_gaps > 0, "no gap comes");
  }
  check_no_error (s);
  streams_free (s);
}

/* A gap has a time; before a segment, and in one of lines, there is none. */
CHECK_LOOP_TEST (test_a_gap_without_a_time_is_no_critical, streams_n_cases)
{
  Streams *s = streams_new (&streams_cases[__i__]);
  GstSegment segment;

  if (!s)
    return;
  gst_segment_init (&segment, GST_FORMAT_BYTES);
  for (guint i = 0; i < s->n_sinks; i++) {
    streams_send (s, i, stream_start (i), SEQ_START);
    streams_send (s, i, gst_event_new_gap (0, GST_SECOND), SEQ_GAP);
    streams_send_caps (s, i);
    streams_send (s, i, gst_event_new_gap (0, GST_SECOND), SEQ_GAP);
    streams_send (s, i, gst_event_new_segment (&segment), SEQ_SEGMENT);
    streams_send (s, i, gst_event_new_gap (0, GST_SECOND), SEQ_GAP);
  }
  g_usleep (20000); /* those of an aggregator are for another thread */
  streams_free (s);
}

/* --- a late pad ----------------------------------------------------------- */

static GstFlowReturn
drop_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

/* What was sent before it was made, it gets. */
CHECK_TEST (test_a_late_pad_has_what_was_sent)
{
  static const StreamsCase early = {"normalintegrate backend=cpu",
      {{"sink", "video/x-raw,format=RGB,width=16,height=8,framerate=25/1",
          384}},
      1, {"height"}, .gap_is_forwarded = TRUE};
  Streams *s = streams_new (&early);
  GstPad *pad, *peer;
  GstEvent *event;

  if (!s)
    return;
  feed_start (s, 0, NULL);
  streams_send (s, 0, custom_event (TRUE), SEQ_CUSTOM);
  pad = gst_element_request_pad_simple (s->element, "tensor");
  peer = gst_pad_new ("peer", GST_PAD_SINK);
  gst_pad_set_chain_function (peer, drop_buffer);
  gst_pad_set_active (peer, TRUE);
  fail_unless (gst_pad_link (pad, peer) == GST_PAD_LINK_OK);
  gst_pad_push (s->sinks[0], streams_buffer (s, 0, 0));
  event = gst_pad_get_sticky_event (peer, GST_EVENT_STREAM_START, 0);
  fail_unless (event != NULL);
  fail_unless_equals_int (gst_event_get_seqnum (event), SEQ_START);
  gst_event_unref (event);
  event = gst_pad_get_sticky_event (peer, GST_EVENT_SEGMENT, 0);
  fail_unless (event != NULL);
  fail_unless_equals_int (gst_event_get_seqnum (event), SEQ_SEGMENT);
  gst_event_unref (event);
  event =
      gst_pad_get_sticky_event (peer, GST_EVENT_CUSTOM_DOWNSTREAM_STICKY, 0);
  fail_unless (event != NULL);
  gst_event_unref (event);
  gst_pad_set_active (peer, FALSE);
  gst_object_unref (peer);
  gst_element_release_request_pad (s->element, pad);
  gst_object_unref (pad);
  streams_free (s);
}
