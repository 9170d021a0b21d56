/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingFilter: its results pad. */
#include "filter-check.h"

static gchar *
string_of (GstBuffer *buffer)
{
  gchar *text;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  text = g_strndup ((gchar *) map.data, map.size);
  return text;
}

static void
check_text (GstBuffer *buffer, const gchar *expected)
{
  g_autofree gchar *text = string_of (buffer);

  fail_unless_equals_string (text, expected);
  gst_buffer_unref (buffer);
}

/* The line of testmeasure for noise number @seed, with or without header. */
static void
check_line (Stage *s, GstBuffer *line, guint frame, guint seed, gboolean header)
{
  g_autoptr (GstBuffer) noise = check_noise (&s->info, seed);
  guint8 bytes[2];
  g_autofree gchar *expected = NULL;

  gst_buffer_extract (noise, 0, bytes, 2);
  expected = g_strdup_printf ("%s%u,%u,%u,%u\n",
      header ? "frame,pts,first,second\n" : "", frame, seed * 40000000,
      bytes[0], bytes[1]);
  check_text (line, expected);
}

/* --- results -------------------------------------------------------------- */

CHECK_CASE ("results", filter_set_up, filter_tear_down)

CHECK_LOOP_TEST (test_results_go_on_without_anyone_at_src, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testmeasure backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "results");

  for (guint i = 0; i < 10; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
  for (guint i = 0; i < 10; i++)
    check_line (&s, check_pull (s.h), i, i, i == 0);
}

CHECK_TEST (test_frames_go_on_without_anyone_at_results)
{
  g_auto (Stage) s = stage_new ("testmeasure name=m", "sink", "src");
  g_autoptr (GstPad) results =
      gst_element_request_pad_simple (s.element, "results");

  for (guint i = 0; i < 10; i++) {
    g_autoptr (GstBuffer) noise = check_noise (&s.info, i), out = NULL;
    const GstStructure *result;
    guint64 frame;

    check_push (s.h, gst_buffer_ref (noise), GST_FLOW_OK);
    out = check_pull (s.h);
    check_same_pixels (out, noise, &s.info);
    result = gst_imaging_results_get (out, "m");
    fail_unless (result && gst_structure_get_uint64 (result, "frame", &frame));
    fail_unless_equals_uint64 (frame, i);
  }
  gst_element_release_request_pad (s.element, results);
}

CHECK_TEST (test_nobody_at_all_stops_upstream)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", NULL);
  g_autoptr (GstPad) results = NULL;

  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_NOT_LINKED);
  results = gst_element_request_pad_simple (s.element, "results");
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_NOT_LINKED);
  gst_element_release_request_pad (s.element, results);
}

CHECK_TEST (test_there_is_one_results_pad)
{
  g_autoptr (GstElement) element =
      gst_element_factory_make ("testmeasure", NULL);
  GstPad *pad = gst_element_request_pad_simple (element, "results");

  gst_object_ref_sink (element);
  fail_unless (pad != NULL);
  fail_unless (gst_element_request_pad (element,
                   gst_element_get_pad_template (element, "results"), NULL,
                   NULL) == NULL);
  gst_element_release_request_pad (element, pad);
  gst_object_unref (pad);
  pad = gst_element_request_pad_simple (element, "results");
  fail_unless (pad != NULL);
  gst_object_unref (pad); /* not released: the element does so */
}

typedef struct {
  GstElement *element;
  gint n_ready; /* atomic */
} Request;

/* With the other thread, at the same time as far as may be. */
static gpointer
request_results (gpointer data)
{
  Request *r = data;
  GstPadTemplate *template =
      gst_element_get_pad_template (r->element, "results");

  g_atomic_int_inc (&r->n_ready);
  while (g_atomic_int_get (&r->n_ready) < 2)
    g_thread_yield ();
  return gst_element_request_pad (r->element, template, NULL, NULL);
}

CHECK_TEST (test_two_threads_that_want_the_results_pad_get_one)
{
  g_autoptr (GstElement) element =
      gst_element_factory_make ("testmeasure", NULL);

  gst_object_ref_sink (element);
  for (guint i = 0; i < 100; i++) {
    Request r = {.element = element};
    GThread *thread = g_thread_new ("other", request_results, &r);
    GstPad *mine = request_results (&r);
    GstPad *other = g_thread_join (thread);
    g_autoptr (GstPad) pad = mine ? mine : other;

    fail_unless ((mine == NULL) != (other == NULL));
    gst_element_release_request_pad (element, pad);
  }
}

static void
assert_next_event (GstHarness *h, GstEventType type)
{
  g_autoptr (GstEvent) event = gst_harness_try_pull_event (h);

  fail_unless (event != NULL, "no %s", gst_event_type_get_name (type));
  fail_unless_equals_string (
      GST_EVENT_TYPE_NAME (event), gst_event_type_get_name (type));
}

CHECK_TEST (test_results_have_the_events_of_a_stream)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");
  GstSegment segment;
  GstCaps *caps;

  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
  assert_next_event (s.h, GST_EVENT_STREAM_START);
  assert_next_event (s.h, GST_EVENT_CAPS);
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  caps = gst_pad_get_current_caps (s.h->sinkpad);
  fail_unless (
      gst_structure_has_name (gst_caps_get_structure (caps, 0), "text/csv"));
  gst_caps_unref (caps);

  gst_harness_push_event (s.h, gst_event_new_flush_start ());
  gst_harness_push_event (s.h, gst_event_new_flush_stop (TRUE));
  assert_next_event (s.h, GST_EVENT_FLUSH_START);
  assert_next_event (s.h, GST_EVENT_FLUSH_STOP);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = 7;
  gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  /* a gap is no data and needs the segment all the same */
  gst_harness_push_event (s.h, gst_event_new_gap (7, 1));
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  assert_next_event (s.h, GST_EVENT_GAP);
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  gst_harness_push_event (s.h, gst_event_new_eos ());
  assert_next_event (s.h, GST_EVENT_EOS);
  /* the line of names is one more */
  fail_unless_equals_int (gst_harness_buffers_received (s.h), 3);
}

CHECK_TEST (test_eos_without_a_frame_ends_both)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");

  gst_harness_push_event (s.h, gst_event_new_eos ());
  assert_next_event (s.h, GST_EVENT_STREAM_START);
  assert_next_event (s.h, GST_EVENT_CAPS);
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  assert_next_event (s.h, GST_EVENT_EOS);
}

CHECK_TEST (test_eos_without_a_segment_is_no_critical)
{
  g_autoptr (CheckPipeline) element =
      gst_element_factory_make ("testmeasure", NULL);
  g_autoptr (GstPad) sink = NULL, results = NULL;

  gst_object_ref_sink (element);
  results = gst_element_request_pad_simple (element, "results");
  sink = gst_element_get_static_pad (element, "sink");
  gst_element_set_state (element, GST_STATE_PLAYING);
  gst_pad_send_event (sink, gst_event_new_stream_start ("x"));
  gst_pad_send_event (sink, gst_event_new_eos ());
}

CHECK_TEST (test_a_stream_after_eos_has_results_again)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");
  GstSegment segment;

  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
  gst_harness_push_event (s.h, gst_event_new_eos ());
  gst_buffer_unref (check_pull (s.h));
  gst_harness_push_event (s.h, gst_event_new_stream_start ("second"));
  stage_caps (&s, "GRAY8", 643, 3);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  check_line (&s, check_pull (s.h), 1, 1, FALSE);
}

CHECK_TEST (test_results_come_again_after_a_restart)
{
  g_autoptr (CheckPipeline) pipeline = filter_launch (
      "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=33,height=5 "
      "! testmeasure name=m ! fakesink sync=false m.results ! "
      "queue ! fakesink name=out sync=false signal-handoffs=true");

  for (guint i = 0; i < 5; i++) {
    check_play (pipeline);
    fail_unless_equals_uint64 (filter_stat_of (pipeline, "m", "frames"), 3);
    gst_element_set_state (pipeline, i % 2 ? GST_STATE_READY : GST_STATE_NULL);
  }
}

/* The harness pulls what the pad "results" pushes. */
static void
pull_results (Stage *s)
{
  g_autoptr (GstPad) results =
      gst_element_request_pad_simple (s->element, "results");

  gst_harness_add_element_src_pad (s->h, results);
}

CHECK_TEST (test_the_peer_of_results_chooses_tensors)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", NULL);
  g_autoptr (GstCaps) caps = NULL, expected = NULL;
  GstBuffer *tensor;

  gst_harness_set_sink_caps_str (s.h, "other/tensors");
  pull_results (&s);
  for (guint i = 0; i < 3; i++) {
    GstBuffer *noise = check_noise (&s.info, i);
    gfloat numbers[2];
    guint8 bytes[2];

    gst_buffer_extract (noise, 0, bytes, 2);
    check_push (s.h, noise, GST_FLOW_OK);
    tensor = check_pull (s.h);
    fail_unless_equals_uint64 (gst_buffer_get_size (tensor), sizeof (numbers));
    gst_buffer_extract (tensor, 0, numbers, sizeof (numbers));
    fail_unless (numbers[0] == bytes[0] && numbers[1] == bytes[1]);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (tensor), i * 40 * GST_MSECOND);
    gst_buffer_unref (tensor);
  }
  caps = gst_pad_get_current_caps (s.h->sinkpad);
  expected = gst_caps_from_string (
      "other/tensors,format=(string)static,num_tensors=(int)1,"
      "types=(string)float32,dimensions=(string)2:1:1:1,framerate=25/1");
  fail_unless (gst_caps_is_equal (caps, expected));
}

CHECK_TEST (test_tensors_have_the_frame_rate_of_their_frames)
{
  static const gchar *const rates[] = {"25/1", "30/1", "30/1", "25/1"};
  g_auto (Stage) s = stage_new ("testmeasure", "sink", NULL);

  gst_harness_set_sink_caps_str (s.h, "other/tensors");
  pull_results (&s);
  for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
    g_autofree gchar *text = g_strdup_printf (
        "video/x-raw,format=GRAY8,width=641,height=3,framerate=%s", rates[i]);
    g_autofree gchar *rate =
        g_strdup_printf ("framerate=(fraction)%s", rates[i]);
    g_autofree gchar *found = NULL;
    g_autoptr (GstCaps) caps = NULL;

    gst_harness_set_src_caps_str (s.h, text);
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    caps = gst_pad_get_current_caps (s.h->sinkpad);
    found = gst_caps_to_string (caps);
    fail_unless (strstr (found, rate) != NULL, "%s", found);
  }
}

CHECK_LOOP_TEST (
    test_results_are_known_by_the_number_and_times_of_their_frame, 2)
{
  static const gchar *const peers[] = {"text/csv", "other/tensors"};
  g_autoptr (GstCaps) clock = gst_caps_from_string ("timestamp/x-camera");
  g_auto (Stage) s = stage_new ("testmeasure", "sink", NULL);

  gst_harness_set_sink_caps_str (s.h, peers[__i__]);
  pull_results (&s);
  for (guint i = 0; i < 3; i++) {
    GstBuffer *in = check_noise (&s.info, i), *out;
    GstReferenceTimestampMeta *camera;

    GST_BUFFER_OFFSET (in) = 1000 + i; /* as the camera counts */
    gst_buffer_add_reference_timestamp_meta (in, clock, 7 + i, 2);
    check_push (s.h, in, GST_FLOW_OK);
    out = check_pull (s.h);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 1000 + i);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET_END (out), 1001 + i);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), i * 40 * GST_MSECOND);
    camera = gst_buffer_get_reference_timestamp_meta (out, clock);
    fail_unless (camera != NULL);
    fail_unless_equals_uint64 (camera->timestamp, 7 + i);
    fail_unless_equals_uint64 (camera->duration, 2);
    gst_buffer_unref (out);
  }
}

/* Nothing waits: neither the pipeline for a sink that never gets caps, nor the
 * sink of the frames for that one. */
CHECK_TEST (test_a_peer_that_takes_no_results_is_one_error)
{
  g_autoptr (CheckPipeline) pipeline = filter_launch (
      "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=33,height=5 "
      "! testmeasure name=m ! fakesink m.results ! queue ! "
      "other/tensors,dimensions=(string)5:5 ! fakesink");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstElement) m = gst_bin_get_by_name (GST_BIN (pipeline), "m");
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = check_message (bus, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (GST_MESSAGE_SRC (message) == GST_OBJECT (m));
  gst_message_ref (message);
  check_message_says (
      message, CHECK_CODE (CORE, NEGOTIATION), "dimensions=(string)2:1:1:1");
  check_message_says (
      message, CHECK_CODE (CORE, NEGOTIATION), "dimensions=(string)5:5");
}

CHECK_TEST (test_refused_results_are_said_once_and_may_be_mended)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", NULL);
  g_autoptr (GstElement) filter = gst_element_factory_make ("capsfilter", NULL);
  g_autoptr (GstPad) results =
      gst_element_request_pad_simple (s.element, "results");
  g_autoptr (GstPad) sink = gst_element_get_static_pad (filter, "sink");
  g_autoptr (GstPad) src = gst_element_get_static_pad (filter, "src");

  gst_util_set_object_arg (
      G_OBJECT (filter), "caps", "other/tensors,dimensions=(string)5:5");
  gst_element_set_state (filter, GST_STATE_PLAYING);
  gst_harness_add_element_src_pad (s.h, src);
  fail_unless (gst_pad_link (results, sink) == GST_PAD_LINK_OK);
  for (guint i = 0; i < 3; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_ERROR);
  check_error (
      s.bus, CORE, NEGOTIATION, "what is linked to the pad \"results\" takes");
  check_no_messages (s.bus, GST_MESSAGE_ERROR);

  gst_util_set_object_arg (
      G_OBJECT (filter), "caps", "other/tensors,dimensions=(string)2:1:1:1");
  check_push (s.h, check_noise (&s.info, 3), GST_FLOW_OK);
  gst_buffer_unref (check_pull (s.h));
  gst_element_set_state (filter, GST_STATE_NULL);
  gst_pad_unlink (results, sink);
}

static GstPadProbeReturn
note_order (GstPad *pad, GstPadProbeInfo *info, gpointer order)
{
  /* the line of names is of no frame */
  if (!GST_BUFFER_FLAG_IS_SET (
          GST_PAD_PROBE_INFO_BUFFER (info), GST_BUFFER_FLAG_HEADER))
    g_string_append_c (order, GST_PAD_NAME (pad)[0]);
  return GST_PAD_PROBE_OK;
}

CHECK_TEST (test_results_come_before_their_frame)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");
  /* nobody pulls from it, so clang wants it to be ended by hand */
  GstHarness *frames = gst_harness_new_with_element (s.element, NULL, "src");
  g_autoptr (GString) order = g_string_new (NULL);
  const gchar *names[] = {"src", "results"};

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstPad) pad = gst_element_get_static_pad (s.element, names[i]);

    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, note_order, order, NULL);
  }
  for (guint i = 0; i < 3; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
  fail_unless_equals_string (order->str, "rsrsrs");
  gst_harness_teardown (frames);
}

/* Waits until @element has processed a frame more. */
static void
wait_for_a_frame (GstElement *element)
{
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);
  guint64 before = check_stat (element, "frames");

  while (check_stat (element, "frames") == before) {
    fail_unless (g_get_monotonic_time () < end, "frames have stopped");
    g_usleep (50);
  }
}

/* Somebody looks in for a while and goes, again and again; frames flow on. */
CHECK_TEST (test_results_may_be_requested_and_released_while_playing)
{
  g_autoptr (CheckPipeline) pipeline = filter_launch (
      "videotestsrc ! video/x-raw,format=GRAY8,width=16,height=4 ! "
      "testmeasure name=m ! fakesink sync=false");
  g_autoptr (GstElement) m = gst_bin_get_by_name (GST_BIN (pipeline), "m");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint n = 0; n < 500; n++) {
    GstElement *sink = gst_element_factory_make ("fakesink", NULL);
    GstPad *pad = gst_element_request_pad_simple (m, "results"), *peer;

    g_object_set (sink, "async", FALSE, "sync", FALSE, NULL);
    gst_bin_add (GST_BIN (pipeline), sink);
    gst_element_sync_state_with_parent (sink);
    peer = gst_element_get_static_pad (sink, "sink");
    fail_unless_equals_int (gst_pad_link (pad, peer), GST_PAD_LINK_OK);
    if (n % 3)
      wait_for_a_frame (m);
    if (n % 2)
      gst_pad_unlink (pad, peer);
    gst_element_release_request_pad (m, pad);
    gst_object_unref (pad);
    gst_object_unref (peer);
    /* the pipeline may still be on its way to PLAYING */
    gst_element_set_locked_state (sink, TRUE);
    gst_element_set_state (sink, GST_STATE_NULL);
    gst_bin_remove (GST_BIN (pipeline), sink);
  }
  wait_for_a_frame (m);
  check_no_messages (bus, GST_MESSAGE_ERROR);
}

static GstEvent *
next_event (GstHarness *h, GstEventType type)
{
  GstEvent *event = gst_harness_try_pull_event (h);

  while (event && GST_EVENT_TYPE (event) != type) {
    gst_event_unref (event);
    event = gst_harness_try_pull_event (h);
  }
  fail_unless (event != NULL, "no %s", gst_event_type_get_name (type));
  return event;
}

/* Sinks of one pipeline whose streams are of several groups, or of none, tell
 * the application of a stream each. */
CHECK_TEST (test_results_are_of_the_group_of_their_frames)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");
  GstEvent *start = gst_event_new_stream_start ("grouped"), *event;
  guint32 seqnum = gst_event_get_seqnum (start);
  GstSegment segment;
  guint group = 0;

  gst_event_set_group_id (start, 77);
  gst_harness_push_event (s.h, start);
  stage_caps (&s, "GRAY8", 641, 3);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  start = gst_event_new_segment (&segment);
  gst_event_set_seqnum (start, seqnum + 1000);
  gst_harness_push_event (s.h, start);
  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);

  event = next_event (s.h, GST_EVENT_STREAM_START);
  fail_unless (gst_event_parse_group_id (event, &group));
  fail_unless_equals_int (group, 77);
  fail_unless_equals_int (gst_event_get_seqnum (event), seqnum);
  gst_event_unref (event);
  event = next_event (s.h, GST_EVENT_SEGMENT);
  fail_unless_equals_int (gst_event_get_seqnum (event), seqnum + 1000);
  gst_event_unref (event);
}

static void
push_late_segment (GstElement *element, GstPad *pad, gpointer stage)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = 3600 * GST_SECOND;
  gst_harness_push_event (
      ((Stage *) stage)->h, gst_event_new_segment (&segment));
}

CHECK_TEST (test_a_segment_that_comes_with_the_pad_is_in_force)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "src");
  const GstSegment *segment;
  g_autoptr (CheckHarness) results = NULL;
  GstBuffer *frame;
  g_autoptr (GstEvent) event = NULL;

  g_signal_connect (s.element, "pad-added", G_CALLBACK (push_late_segment), &s);
  results = gst_harness_new_with_element (s.element, NULL, "results");
  frame = check_noise (&s.info, 0);
  GST_BUFFER_PTS (frame) = 3600 * GST_SECOND;
  check_push (s.h, frame, GST_FLOW_OK);
  event = next_event (results, GST_EVENT_SEGMENT);
  gst_event_parse_segment (event, &segment);
  fail_unless_equals_uint64 (segment->start, 3600 * GST_SECOND);
}

/* Where a stream begins with a gap, a sink has to preroll with it. */
CHECK_TEST (test_a_gap_before_the_first_frame_comes_through)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");

  gst_harness_push_event (s.h, gst_event_new_gap (0, 40 * GST_MSECOND));
  assert_next_event (s.h, GST_EVENT_STREAM_START);
  assert_next_event (s.h, GST_EVENT_CAPS);
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  assert_next_event (s.h, GST_EVENT_GAP);
  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
  check_line (&s, check_pull (s.h), 0, 0, TRUE);
}

CHECK_TEST (test_a_new_reader_gets_the_line_of_names)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");
  g_autoptr (GstPad) results =
      gst_element_get_static_pad (s.element, "results");

  for (guint i = 0; i < 4; i++) {
    if (i == 2) {
      gst_pad_unlink (results, s.h->sinkpad);
      check_push (s.h, check_noise (&s.info, 9), GST_FLOW_NOT_LINKED);
      fail_unless (gst_pad_link (results, s.h->sinkpad) == GST_PAD_LINK_OK);
    }
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    check_line (&s, check_pull (s.h), i < 2 ? i : i + 1, i, i % 2 == 0);
  }
}

CHECK_TEST (test_columns_that_change_are_named_again)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "results");
  const gboolean others[] = {FALSE, TRUE, TRUE, FALSE};
  const gchar *starts[] = {"frame,pts,first,second\n0,",
      "frame,pts,one,two\n1,", "2,", "frame,pts,first,second\n3,"};

  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (GstBuffer) line = NULL;
    g_autofree gchar *text = NULL;

    filter_seen.has_other_fields = others[i];
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    line = check_pull (s.h);
    text = string_of (line);
    fail_unless (g_str_has_prefix (text, starts[i]), "%s", text);
  }
}
