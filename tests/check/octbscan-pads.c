/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octbscan over many B-scans: means, tracking, backgrounds that
 * remember, the pads linear, complex and enface in every combination. What
 * comes out is what its kernel gives. */
#include "octbscan-run.h"

#include <math.h>
#include <string.h>

#include "gstimagingresults.h"

/* --- pads ----------------------------------------------------------------- */

CHECK_BACKENDS_TEST (test_every_combination_of_pads)
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Expected) e = expect (&c, 4, 1);

  for (guint pads = 1; pads < 1 << N_PADS; pads++) {
    g_auto (Run) r = run_new (ELEMENT "bscans-per-volume=2", pads);

    push_all (&r, 0, 4);
    gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
    check_run (&r, &e, 1);
  }
}

static void
check_caps (GstHarness *h, const gchar *expected)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (expected);

  fail_unless (gst_caps_is_subset (caps, wanted), "%" GST_PTR_FORMAT, caps);
}

CHECK_BACKENDS_TEST (test_caps_of_pads)
{
  g_auto (Run) r =
      run_new (ELEMENT "average-bscans=2 average-ascans=3 scaling=linear "
                       "bscans-per-volume=5",
          15);

  push_all (&r, 0, 2);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_caps (
      r.pads[SRC], "video/x-raw,format=GRAY8,width=4,height=30,framerate=50/1");
  check_caps (r.pads[LINEAR],
      "video/x-raw,format=GRAY8,width=4,height=30,framerate=50/1");
  check_caps (r.pads[COMPLEX],
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=2:30:11:1,framerate=100/1");
  check_caps (r.pads[ENFACE],
      "video/x-raw,format=GRAY8,width=4,height=5,framerate=10/1");
  check_warning (
      r.bus, STREAM, FORMAT, "1 B-scans do not fill an en-face image");
}

CHECK_BACKENDS_TEST (test_caps_of_floats)
{
  g_auto (Run) r = run_new_floats (
      ELEMENT "average-bscans=2 average-ascans=3 bscans-per-volume=5", 15);

  push_all (&r, 0, 2);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_caps (r.pads[SRC],
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=4:30:1:1,framerate=50/1");
  check_caps (r.pads[LINEAR],
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=4:30:1:1,framerate=50/1");
  check_caps (r.pads[ENFACE],
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=4:5:1:1,framerate=10/1");
}

/* A peer that takes other caps from now on gets them, with the same history. */
CHECK_BACKENDS_TEST (test_floats_and_video_in_turns)
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Run) r = run_new (ELEMENT "average-bscans=2", 1 << SRC);
  gsize sizes[] = {12 * DEPTHS, HEIGHT * DEPTHS * sizeof (gfloat)};
  g_auto (Expected) e;

  c.averages_bscans = true;
  e = expect (&c, 12, 2);
  for (guint k = 0; k < 6; k++) {
    g_autoptr (GstBuffer) out = NULL;

    gst_harness_set_sink_caps_str (
        r.pads[SRC], k % 2 ? "other/tensors" : "video/x-raw");
    push_all (&r, 2 * k, 2 * k + 2);
    gst_harness_push_event (r.pads[SRC],
        gst_event_new_gap (2 * k * 10 * GST_MSECOND, GST_CLOCK_TIME_NONE));
    out = check_pull (r.pads[SRC]);
    fail_unless_equals_uint64 (gst_buffer_get_size (out), sizes[k % 2]);
    if (k % 2 == 0)
      check_levels (out, e.db[k], HEIGHT, DEPTHS, "src", k);
  }
}

/* A sink of enface has something to preroll with at the first B-scan. */
CHECK_BACKENDS_TEST (test_enface_prerolls)
{
  g_auto (Run) r;
  GstEvent *event;
  gboolean gap = FALSE;

  r = run_new (ELEMENT, 15);
  push_all (&r, 0, 1);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  while ((event = gst_harness_try_pull_event (r.pads[ENFACE]))) {
    gap |= GST_EVENT_TYPE (event) == GST_EVENT_GAP;
    gst_event_unref (event);
  }
  fail_unless (gap);
}

/* --- over many B-scans ---------------------------------------------------- */

typedef struct {
  const gchar *properties;
  guint every;
} Case;

static const Case cases[] = {
    {"background=running background-bscans=3", 1},
    {"background=first background-bscans=2", 1},
    {"background=rolling background-reach=6", 1},
    {"fixed-pattern=minvar pattern-segments=3", 1},
    {"fixed-pattern=once", 1},
    {"scan-correction=sine", 1},
    {"average-ascans=4", 1},
    {"average-bscans=3", 3},
    {"bidirectional=true", 1},
    {"flip=both", 1},
    {"tracking=rpe tracking-top=3 tracking-bscans=4 tracking-lock=true", 1},
    {"tracking=contour tracking-bottom=3 tracking-bscans=4", 1},
    {"tracking=xcorr tracking-reach=5", 1},
    {"enface-projection=maximum enface-top=2 enface-bottom=9", 1},
    {"background=running fixed-pattern=minvar scan-correction=sine "
     "average-ascans=2 average-bscans=2 bidirectional=true flip=both "
     "tracking=xcorr enface-top=3",
        2},
};

/* The properties as the kernel has them. */
static ImkOctbscanConfig
config_of (guint i)
{
  ImkOctbscanConfig c = base_config ();

  c.averages_bscans = cases[i].every > 1;
  switch (i) {
  case 0:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
    c.background_bscans = 3;
    break;
  case 1:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_FIRST;
    c.background_bscans = 2;
    break;
  case 2:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING;
    c.background_reach = 6;
    break;
  case 3:
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
    c.pattern_segments = 3;
    break;
  case 4:
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_ONCE;
    break;
  case 5:
    c.scan = IMK_OCTBSCAN_SCAN_SINE;
    break;
  case 6:
    c.average_ascans = 4;
    break;
  case 8:
    c.bidirectional = true;
    break;
  case 9:
    c.flip = IMK_OCTBSCAN_FLIP_BOTH;
    break;
  case 10:
    c.tracking = IMK_OCTBSCAN_TRACKING_RPE;
    c.tracking_top = 3;
    c.tracking_bscans = 4;
    c.tracking_lock = true;
    break;
  case 11:
    c.tracking = IMK_OCTBSCAN_TRACKING_CONTOUR;
    c.tracking_bottom = 3;
    c.tracking_bscans = 4;
    break;
  case 12:
    c.tracking = IMK_OCTBSCAN_TRACKING_XCORR;
    c.tracking_reach = 5;
    break;
  case 13:
    c.projection = IMK_OCTBSCAN_PROJECTION_MAXIMUM;
    c.enface_top = 2;
    c.enface_bottom = 9;
    break;
  case 14:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
    c.scan = IMK_OCTBSCAN_SCAN_SINE;
    c.average_ascans = 2;
    c.bidirectional = true;
    c.flip = IMK_OCTBSCAN_FLIP_BOTH;
    c.tracking = IMK_OCTBSCAN_TRACKING_XCORR;
    c.enface_top = 3;
    break;
  default:
    break;
  }
  return c;
}

/* Twice, with a flush between: what was remembered is forgotten. */
static void
check_case (guint i, gboolean floats)
{
  ImkOctbscanConfig c = config_of (i);
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "bscans-per-volume=2 %s", cases[i].properties);
  g_auto (Expected) e = expect (&c, 8, cases[i].every);
  g_auto (Run) r = floats ? run_new_floats (launch, 15) : run_new (launch, 15);

  push_all (&r, 0, 8);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, cases[i].every);
  check_flush (r.pads[SRC]);
  push_all (&r, 0, 8);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, cases[i].every);
  fail_unless_equals_uint64 (check_stat (r.element, "frames"), 16);
}

CHECK_LOOP_TEST (test_properties_reach_the_kernel, 4 * G_N_ELEMENTS (cases))
{
  on_cuda = __i__ % 2;
  check_case (__i__ / 4, __i__ / 2 % 2);
}

/* An interruption ends a mean; it is shown with what it has. */
CHECK_BACKENDS_TEST (test_means_end_at_interruptions)
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Run) r = run_new (ELEMENT "average-bscans=3", 1 << SRC);
  GstBuffer *out, *late = bscan_new (2);
  g_auto (Expected) e;

  c.averages_bscans = true;
  e = expect (&c, 2, 3);
  push_all (&r, 0, 2);
  GST_BUFFER_FLAG_SET (late, GST_BUFFER_FLAG_DISCONT);
  check_push (r.pads[SRC], late, GST_FLOW_OK);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  out = check_pull (r.pads[SRC]);
  check_levels (out, e.db[0], HEIGHT, DEPTHS, "mean", 0);
  check_time (out, 0, 2);
  gst_buffer_unref (out);
  out = check_pull (r.pads[SRC]);
  check_time (out, 2, 1);
  gst_buffer_unref (out);
  fail_unless (gst_harness_try_pull (r.pads[SRC]) == NULL);
}

static void
check_latency (GstElement *element, const gchar *name, GstClockTime expected)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, name);
  g_autoptr (GstQuery) query = gst_query_new_latency ();
  GstClockTime latency;

  fail_unless (gst_pad_query (pad, query));
  gst_query_parse_latency (query, NULL, &latency, NULL);
  fail_unless_equals_uint64 (latency, expected);
}

/* A mean has the time of its first B-scan and leaves with its last, but no sink
 * shall wait for seconds. */
CHECK_BACKENDS_TEST (test_means_are_latency)
{
  g_auto (Run) r;

  r = run_new (ELEMENT "average-bscans=3", 1 << SRC | 1 << COMPLEX);
  gst_harness_set_upstream_latency (r.pads[SRC], 5 * GST_MSECOND);
  push_all (&r, 0, 1);
  check_latency (r.element, "src", 25 * GST_MSECOND);
  check_latency (r.element, "complex", 5 * GST_MSECOND);
  g_object_set (r.element, "average-bscans", 2, NULL);
  push_all (&r, 1, 2);
  check_latency (r.element, "src", 15 * GST_MSECOND);
  g_object_set (r.element, "average-bscans", 1000, NULL);
  push_all (&r, 2, 3);
  check_latency (r.element, "src", 5 * GST_MSECOND);
}

/* What a pad has got, in its order. */
static GstPadProbeReturn
note (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER)
    g_string_append_c (data, 'b');
  else if (GST_EVENT_TYPE (info->data) == GST_EVENT_SEGMENT)
    g_string_append_c (data, 's');
  return GST_PAD_PROBE_OK;
}

/* What has been added to a mean is of the segment before, lines and rows that
 * wait are as well. */
CHECK_BACKENDS_TEST (test_a_new_segment_ends_what_was_begun)
{
  g_autoptr (GString) order = g_string_new (NULL);
  GstSegment segment;
  g_autoptr (GstPad) src = NULL;
  g_auto (Run) r;

  r = run_new (ELEMENT "average-bscans=3 ascans-per-bscan=4 "
                       "bscans-per-volume=2",
      1 << SRC | 1 << ENFACE);
  src = gst_element_get_static_pad (r.element, "src");
  push_all (&r, 0, 1);
  gst_pad_add_probe (src,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, note,
      order, NULL);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.position = segment.time = GST_SECOND;
  gst_harness_push_event (r.pads[SRC], gst_event_new_segment (&segment));
  fail_unless_equals_string (order->str, "bs");
  check_warning (r.bus, STREAM, FORMAT, "3 lines do not fill a B-scan of 4");
  check_warning (
      r.bus, STREAM, FORMAT, "1 B-scans do not fill an en-face image");
}

/* All of them while PLAYING; the pads follow with their sizes. */
CHECK_BACKENDS_TEST (test_changes_while_playing)
{
  Run r;

  r = run_new (ELEMENT "bscans-per-volume=2", 15);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    ImkOctbscanConfig c = config_of (i);
    gchar *launch =
        g_strdup_printf (ELEMENT "bscans-per-volume=2 %s", cases[i].properties);
    GstElement *other = gst_parse_launch (launch, NULL);
    guint n;
    GParamSpec **specs =
        g_object_class_list_properties (G_OBJECT_GET_CLASS (other), &n);
    Expected e = expect (&c, 12, cases[i].every);

    for (guint k = 0; k < n; k++) {
      GValue value = G_VALUE_INIT;

      if (!(specs[k]->flags & GST_PARAM_MUTABLE_PLAYING) ||
          (specs[k]->flags & G_PARAM_READWRITE) != G_PARAM_READWRITE)
        continue;
      g_object_get_property (G_OBJECT (other), specs[k]->name, &value);
      g_object_set_property (G_OBJECT (r.element), specs[k]->name, &value);
      g_value_unset (&value);
    }
    push_all (&r, 0, 12);
    gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
    check_flush (r.pads[SRC]);
    check_run (&r, &e, cases[i].every);
    expected_free (&e);
    g_free (specs);
    gst_object_unref (other);
    g_free (launch);
  }
  run_free (&r);
}

/* Rows of a volume that gets another size are counted. */
CHECK_TEST (test_a_volume_changes_its_size)
{
  g_auto (Run) r;

  on_cuda = FALSE;
  r = run_new (ELEMENT, 15);
  g_object_set (r.pads[SRC]->element, "bscans-per-volume", 3, NULL);
  push_all (&r, 0, 2);
  g_object_set (r.pads[SRC]->element, "bscans-per-volume", 4, NULL);
  push_all (&r, 2, 3);
  check_warning (r.bus, STREAM, FORMAT, "2 B-scans do not fill");
}

/* The stream is held back by a sink that is prerolled; pads come and go all the
 * same, and what is linked meanwhile has images as soon as it plays. */
CHECK_LOOP_TEST (test_pads_come_and_go_while_prerolled, 2)
{
  g_autofree gchar *launch = g_strdup_printf (
      "videotestsrc ! "
      "video/x-raw,format=GRAY16_LE,width=%d,height=%d ! octbscan name=oct "
      "taper-cut=7 upsample=128 backend=%s ! fakesink",
      WIDTH, HEIGHT, __i__ ? "cuda" : "cpu");
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (launch, NULL);
  g_autoptr (GstElement) oct = gst_bin_get_by_name (GST_BIN (pipeline), "oct");
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstSample) last = NULL;

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (
      gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE),
      GST_STATE_CHANGE_SUCCESS);
  for (guint i = LINEAR; i < N_PADS; i++) {
    g_autoptr (GstPad) pad = gst_element_request_pad_simple (oct, pad_names[i]);

    fail_unless (pad != NULL);
    gst_element_release_request_pad (oct, pad);
  }
  g_object_set (sink, "async", FALSE, NULL);
  gst_bin_add (GST_BIN (pipeline), sink);
  gst_element_sync_state_with_parent (sink);
  fail_unless (gst_element_link_pads (oct, "linear", sink, "sink"));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (!last) {
    g_usleep (1000);
    g_object_get (sink, "last-sample", &last, NULL);
  }
  check_no_messages (bus, GST_MESSAGE_ERROR);
}

static gboolean has_come; /* atomic */

static gpointer
request_and_release (gpointer data)
{
  GstPad *pad = gst_element_request_pad_simple (data, "linear");

  gst_element_release_request_pad (data, pad);
  gst_object_unref (pad);
  g_atomic_int_set (&has_come, TRUE);
  return NULL;
}

static GstPadProbeReturn
tell_of_query (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  if (GST_QUERY_TYPE (info->data) == GST_QUERY_ALLOCATION)
    g_atomic_int_set ((gint *) data, TRUE);
  return GST_PAD_PROBE_OK;
}

static void
wait_until (gint *flag, const gchar *what)
{
  for (guint i = 0; i < 5000 && !g_atomic_int_get (flag); i++)
    g_usleep (1000);
  fail_unless (g_atomic_int_get (flag), "there is no %s", what);
}

/* A query for memory waits in a queue behind an image that the sink holds until
 * it plays. Pads come and go all the same. */
CHECK_LOOP_TEST (test_pads_come_and_go_while_downstream_is_asked, 2)
{
  g_autofree gchar *launch = g_strdup_printf (
      "videotestsrc ! video/x-raw,format=GRAY16_LE,width=%d,height=%d ! "
      "octbscan name=oct taper-cut=7 upsample=128 backend=%s ! queue "
      "max-size-buffers=0 max-size-time=0 max-size-bytes=0 ! fakesink",
      WIDTH, HEIGHT, __i__ ? "cuda" : "cpu");
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (launch, NULL);
  g_autoptr (GstElement) oct = gst_bin_get_by_name (GST_BIN (pipeline), "oct");
  g_autoptr (GstPad) src = gst_element_get_static_pad (oct, "src");
  gint is_asked = FALSE;
  GThread *thread;

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (
      gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE),
      GST_STATE_CHANGE_SUCCESS);
  gst_pad_add_probe (
      src, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, tell_of_query, &is_asked, NULL);
  g_object_set (oct, "scale", 2, NULL);
  wait_until (&is_asked, "query");
  g_atomic_int_set (&has_come, FALSE);
  thread = g_thread_new ("request", request_and_release, oct);
  wait_until (&has_come, "pad");
  g_thread_join (thread);
}

static GstFlowReturn
take (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static gpointer
push_first (gpointer data)
{
  push_all (data, 0, 1);
  return NULL;
}

/* Keeps who releases a pad, which is flushing already, until the image of src
 * that follows is out. */
static gboolean
wait_for_src (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  Run *r = gst_pad_get_element_private (pad);

  for (guint i = 0; i < 5000 && !gst_harness_buffers_received (r->pads[SRC]);
       i++)
    g_usleep (1000);
  return TRUE;
}

/* What a sink says that takes no more. */
static GstFlowReturn
refuse (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GPOINTER_TO_INT (gst_pad_get_element_private (pad));
}

/* Far more than the device needs, also of a busy machine. */
#define MANY 2000

static GstFlowReturn
push_until_refused (Run *r, guint n)
{
  GstFlowReturn flow = GST_FLOW_OK;

  /* a device finds out while later ones come */
  for (guint i = 0; i < n && flow == GST_FLOW_OK; i++) {
    flow = gst_harness_push (r->pads[SRC], bscan_new (i));
    g_usleep (on_cuda ? 2000 : 0);
  }
  return flow;
}

/* The stream goes on for src while a sink of another pad has had enough, and
 * ends where it is flushing or has failed. */
CHECK_LOOP_TEST (test_one_pad_takes_no_more, 4)
{
  static const GstFlowReturn flows[][2] = {
      {GST_FLOW_EOS, GST_FLOW_OK},
      {GST_FLOW_NOT_LINKED, GST_FLOW_OK},
      {GST_FLOW_FLUSHING, GST_FLOW_FLUSHING},
      {GST_FLOW_NOT_NEGOTIATED, GST_FLOW_NOT_NEGOTIATED},
      {GST_FLOW_ERROR, GST_FLOW_ERROR},
  };

  on_cuda = __i__ % 2;
  for (guint i = 0; i < G_N_ELEMENTS (flows); i++) {
    g_autoptr (GstPad) sink = gst_pad_new ("sink", GST_PAD_SINK), linear = NULL;
    g_auto (Run) r = run_new (ELEMENT, __i__ < 2 ? 1 << SRC : 1 << COMPLEX);
    gboolean alone = i < 2 && __i__ >= 2;

    linear = gst_element_request_pad_simple (r.element, "linear");
    gst_pad_set_element_private (sink, GINT_TO_POINTER (flows[i][0]));
    gst_pad_set_chain_function (sink, refuse);
    gst_pad_set_active (sink, TRUE);
    fail_unless_equals_int (gst_pad_link (linear, sink), GST_PAD_LINK_OK);
    fail_unless_equals_int (
        push_until_refused (&r, flows[i][1] == GST_FLOW_OK ? 12 : MANY),
        flows[i][1]);
    if (alone) { /* and nobody is left */
      gst_harness_teardown (r.pads[COMPLEX]);
      r.pads[COMPLEX] = NULL;
      fail_unless_equals_int (push_until_refused (&r, MANY), flows[i][0]);
    }
    gst_element_release_request_pad (r.element, linear);
    gst_pad_set_active (sink, FALSE);
  }
}

/* A pad is released while an image waits to leave by it: the stream does not
 * notice. */
CHECK_BACKENDS_TEST (test_released_pad_does_not_stop_the_stream)
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Expected) e = expect (&c, 4, 1);
  g_autoptr (GstPad) sink = gst_pad_new ("sink", GST_PAD_SINK), linear = NULL;
  CheckWaiting waiting;
  g_auto (Run) r;

  r = run_new (ELEMENT, 1 << SRC);
  gst_pad_set_chain_function (sink, take);
  gst_pad_set_active (sink, TRUE);
  linear = gst_element_request_pad_simple (r.element, "linear");
  fail_unless_equals_int (gst_pad_link (linear, sink), GST_PAD_LINK_OK);
  gst_pad_set_element_private (linear, &r);
  gst_pad_set_activatemode_function (linear, wait_for_src);
  check_wait_at (&waiting, r.element, "linear", push_first, &r);
  gst_element_release_request_pad (r.element, linear);
  check_release (&waiting);
  push_all (&r, 1, 4);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, 1);
  gst_pad_set_active (sink, FALSE);
}

/* A pad that is requested anew has a volume of its own, and something to
 * preroll with. */
CHECK_BACKENDS_TEST (test_enface_begins_anew_with_its_pad)
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Expected) e = expect (&c, 4, 1);
  gboolean gap = FALSE;
  GstBuffer *image;
  GstEvent *event;
  g_auto (Run) r;

  r = run_new (ELEMENT "bscans-per-volume=2", 1 << SRC | 1 << ENFACE);
  push_all (&r, 0, 1);
  gst_harness_push_event (
      r.pads[SRC], gst_event_new_gap (10 * GST_MSECOND, GST_MSECOND));
  gst_harness_teardown (r.pads[ENFACE]);
  r.pads[ENFACE] = gst_harness_new_with_element (r.element, NULL, "enface");
  gst_harness_play (r.pads[ENFACE]);
  push_all (&r, 2, 4);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  image = check_pull (r.pads[ENFACE]);
  check_levels (image, e.enface[1], e.n_ascans, VOLUME, "enface", 1);
  check_time (image, 2, 2);
  gst_buffer_unref (image);
  while ((event = gst_harness_try_pull_event (r.pads[ENFACE]))) {
    gap |= GST_EVENT_TYPE (event) == GST_EVENT_GAP;
    gst_event_unref (event);
  }
  fail_unless (gap);
}

/* The caps of a run end with it. */
CHECK_BACKENDS_TEST (test_pads_between_runs_have_no_caps)
{
  g_autoptr (GstPad) linear = NULL;
  g_auto (Run) r;

  r = run_new (ELEMENT, 1 << SRC);
  push_all (&r, 0, 1);
  gst_element_set_state (r.element, GST_STATE_READY);
  linear = gst_element_request_pad_simple (r.element, "linear");
  fail_unless (!gst_pad_has_current_caps (linear));
  gst_element_release_request_pad (r.element, linear);
}

/* The quantity of an en-face pixel by its meta, and by the Z of its A-scan. */
static void
check_enface_quantity (const gchar *properties, gboolean db)
{
  g_autofree gchar *launch = g_strdup_printf (
      "octbscan taper-cut=7 upsample=128 bscans-per-volume=2 %s", properties);
  gdouble expected[VOLUME][HEIGHT] = {{0}}, scale, offset;
  const GstStructure *s;
  GstCustomMeta *meta;
  g_autoptr (GstBuffer) image = NULL;
  GstMapInfo map;
  g_auto (Run) r = run_new (launch, 1 << SRC | 1 << COMPLEX | 1 << ENFACE);

  push_all (&r, 0, VOLUME);
  for (guint y = 0; y < VOLUME; y++) {
    g_autoptr (GstBuffer) z = check_pull (r.pads[COMPLEX]);
    const gfloat *v;

    gst_buffer_map (z, &map, GST_MAP_READ);
    v = (const gfloat *) map.data;
    for (guint x = 0; x < HEIGHT; x++) {
      for (guint d = 2; d < DEPTHS; d++)
        expected[y][x] += pow (v[2 * (x * DEPTHS + d)], 2) +
                          pow (v[2 * (x * DEPTHS + d) + 1], 2);
      expected[y][x] /= DEPTHS - 2;
      if (db)
        expected[y][x] = 10 * log10 (expected[y][x]);
    }
    gst_buffer_unmap (z, &map);
  }
  image = check_pull (r.pads[ENFACE]);
  meta = gst_buffer_get_custom_meta (image, "GstImagingQuantity");
  fail_unless (meta != NULL, "%s: an en-face image without it", properties);
  s = gst_custom_meta_get_structure (meta);
  fail_unless_equals_string (
      gst_structure_get_string (s, "name"), db ? "level" : "intensity");
  fail_unless_equals_string (
      gst_structure_get_string (s, "unit"), db ? "dB" : "counts^2");
  fail_unless (gst_structure_get (s, "scale", G_TYPE_DOUBLE, &scale, "offset",
                   G_TYPE_DOUBLE, &offset, NULL) &&
               scale > 0);
  gst_buffer_map (image, &map, GST_MAP_READ);
  for (guint y = 0; y < VOLUME; y++)
    for (guint x = 0; x < HEIGHT; x++) {
      guint level = map.data[y * GST_ROUND_UP_4 (HEIGHT) + x];
      gdouble found = offset + scale * level;

      if (level > 0 && level < 255)
        fail_unless (ABS (found - expected[y][x]) < 0.501 * scale,
            "%s: (%u, %u) is %g, not %g", properties, x, y, found,
            expected[y][x]);
      else
        fail_unless (level ? expected[y][x] > found - 0.501 * scale
                           : expected[y][x] < found + 0.501 * scale,
            "%s: (%u, %u) is %g at the end %u", properties, x, y,
            expected[y][x], level);
    }
  gst_buffer_unmap (image, &map);
}

CHECK_BACKENDS_TEST (test_enface_images_say_what_their_samples_are)
{
  check_enface_quantity ("enface-top=2", TRUE);
  check_enface_quantity ("enface-top=2 range=minmax", TRUE);
  check_enface_quantity ("enface-top=2 range-min=20 range-max=70", TRUE);
  check_enface_quantity ("enface-top=2 scaling=linear", FALSE);
  check_enface_quantity (
      "enface-top=2 scaling=linear linear-min=10 linear-max=1e5", FALSE);
}

/* --- lines ---------------------------------------------------------------- */

/* Of B-scans @begin .. @begin + @n - 1, on average. */
static gdouble
shift_of (const Expected *e, guint begin, guint n)
{
  gdouble shift = 0;

  for (guint i = 0; i < n; i++)
    shift += e->shifts[begin + i] / n;
  return shift;
}

/* Fails unless axis @k of @image begins at depth @origin, in pixels. */
static void
check_depth_origin (GstBuffer *image, guint k, gdouble origin)
{
  const GstStructure *s = gst_custom_meta_get_structure (
      gst_buffer_get_custom_meta (image, "GstImagingQuantity"));
  g_autofree gchar *name = g_strdup_printf ("axis-%u-name", k);
  g_autofree gchar *field = g_strdup_printf ("axis-%u-origin", k);
  gdouble found = NAN;

  fail_unless_equals_string (gst_structure_get_string (s, name), "depth");
  gst_structure_get_double (s, field, &found);
  fail_unless (ABS (found - origin) < 1e-6, "origin %g, not %g", found, origin);
}

/* Of lines of B-scans @begin .. @begin + @n - 1. */
static void
check_lines (GstBuffer *image, const ImkOctbscanConfig *c, const Expected *e,
    guint begin, guint n)
{
  const GstStructure *s = gst_imaging_results_get (image, "oct");
  gboolean same_cameras = n == 1 || HEIGHT % c->n_cameras == 0;
  gboolean has_ascan =
      c->scan == IMK_OCTBSCAN_SCAN_EVEN && (n == 1 || !c->bidirectional);
  gboolean is_backward = c->bidirectional && begin % 2;
  guint64 frame = 0, missing = 1;
  gdouble shift = shift_of (e, begin, n);
  gint rows = 0, columns = 0;
  const gfloat *row;
  g_autoptr (GstBuffer) data = NULL;
  GstMapInfo map;

  fail_unless (s != NULL);
  fail_unless_equals_string (
      gst_structure_get_string (s, "id"), "oct-ascans-v1");
  fail_unless_equals_string (
      gst_structure_get_string (s, "fields"), "camera,ascan,shift-z");
  fail_unless_equals_string (gst_structure_get_string (s, "unit"), ",,px");
  fail_unless_equals_string (
      gst_structure_get_string (s, "element"), "octbscan");
  fail_unless_equals_string (
      gst_structure_get_string (s, "backend"), on_cuda ? "cuda" : "cpu");
  fail_unless (strlen (gst_structure_get_string (s, "settings-hash")) == 64);
  fail_unless (gst_structure_get (s, "data", GST_TYPE_BUFFER, &data, "rows",
      G_TYPE_INT, &rows, "columns", G_TYPE_INT, &columns, "frame",
      G_TYPE_UINT64, &frame, "frames-missing", G_TYPE_UINT64, &missing, NULL));
  fail_unless_equals_int (rows, HEIGHT);
  fail_unless_equals_int (columns, 3);
  fail_unless_equals_uint64 (frame, 100 + begin + n - 1);
  fail_unless_equals_uint64 (missing, 0);
  gst_buffer_map (data, &map, GST_MAP_READ);
  row = (const gfloat *) map.data;
  for (guint i = 0; i < HEIGHT; i++, row += 3) {
    guint ascan = (is_backward ? HEIGHT - 1 - i : i) / c->average_ascans;
    guint camera;

    if (c->flip == IMK_OCTBSCAN_FLIP_LATERAL)
      ascan = e->n_ascans - 1 - ascan;
    camera = (begin * HEIGHT + i) % c->n_cameras;
    fail_unless (same_cameras ? row[0] == camera : isnan (row[0]));
    fail_unless (has_ascan ? row[1] == ascan : isnan (row[1]));
    fail_unless (fabs (row[2] - shift) < 1e-6);
  }
  gst_buffer_unmap (data, &map);
}

static gboolean
has_moved (const Expected *e)
{
  for (guint i = 0; i < e->n; i++)
    if (e->shifts[i] != 0)
      return TRUE;
  return FALSE;
}

static void
push_numbered (Run *r, guint n)
{
  for (guint i = 0; i < n; i++) {
    GstBuffer *buffer = bscan_new (i);

    GST_BUFFER_OFFSET (buffer) = 100 + i;
    GST_BUFFER_OFFSET_END (buffer) = 101 + i;
    check_push (r->pads[SRC], buffer, GST_FLOW_OK);
  }
}

/* Else the B-scans of a mean or an image would be missing frames behind
 * octbscan. */
CHECK_BACKENDS_TEST (test_means_and_volumes_have_all_numbers)
{
  g_auto (Run) r = run_new (
      ELEMENT "average-bscans=3 bscans-per-volume=2", 1 << SRC | 1 << ENFACE);

  push_numbered (&r, 7);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstBuffer) mean = check_pull (r.pads[SRC]);

    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (mean), 100 + 3 * i);
    fail_unless_equals_uint64 (
        GST_BUFFER_OFFSET_END (mean), MIN (103 + 3 * i, 107));
  }
  {
    g_autoptr (GstBuffer) image = check_pull (r.pads[ENFACE]);

    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (image), 100);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET_END (image), 106);
  }
}

static void
check_lines_of (
    ImkOctbscanConfig *c, const gchar *properties, guint n, guint every)
{
  static const ImkOctbscanCamera cameras[4];
  g_autofree gchar *launch = g_strdup_printf (
      ELEMENT "name=oct cameras=%u %s", c->n_cameras, properties);
  g_auto (Run) r = run_new (launch, 7);
  GstBuffer *out;
  g_auto (Expected) e;

  c->cameras = cameras;
  c->averages_bscans = every > 1;
  e = expect (c, n, every);
  fail_unless (has_moved (&e) == (c->tracking != IMK_OCTBSCAN_TRACKING_NONE));
  push_numbered (&r, n);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  for (guint i = 0; i < n; i++) {
    out = check_pull (r.pads[COMPLEX]);
    check_lines (out, c, &e, i, 1);
    check_depth_origin (out, 0, 0); /* before it is tracked */
    gst_buffer_unref (out);
  }
  for (guint p = SRC; p <= LINEAR; p++)
    for (guint i = 0; i < n; i += every) {
      out = check_pull (r.pads[p]);
      check_lines (out, c, &e, i, MIN (every, n - i));
      check_depth_origin (out, 1, -shift_of (&e, i, MIN (every, n - i)));
      gst_buffer_unref (out);
    }
}

/* Cameras take turns over 11 lines, so each B-scan begins with another one. */
CHECK_BACKENDS_TEST (test_lines_tell_their_camera_and_shift)
{
  ImkOctbscanConfig c = base_config ();

  c.n_cameras = 3;
  check_lines_of (&c, "", 4, 1);
  c.tracking = IMK_OCTBSCAN_TRACKING_RPE;
  c.tracking_top = 9;
  check_lines_of (&c, "tracking=rpe tracking-top=9", 8, 1);
  check_lines_of (&c, "tracking=rpe tracking-top=9 average-bscans=3", 8, 3);
  c.n_cameras = 1;
  c.bidirectional = true;
  c.average_ascans = 2;
  c.flip = IMK_OCTBSCAN_FLIP_LATERAL;
  check_lines_of (&c,
      "tracking=rpe tracking-top=9 bidirectional=true average-ascans=2 "
      "flip=lateral",
      8, 1);
  check_lines_of (&c,
      "tracking=rpe tracking-top=9 bidirectional=true average-ascans=2 "
      "flip=lateral average-bscans=2",
      8, 2);
  c.scan = IMK_OCTBSCAN_SCAN_SINE;
  check_lines_of (&c,
      "tracking=rpe tracking-top=9 bidirectional=true average-ascans=2 "
      "flip=lateral scan-correction=sine",
      8, 1);
}

/* Line 11 is the first of the second B-scan, whatever cameras was before it. */
CHECK_BACKENDS_TEST (test_turns_count_lines_when_cameras_change)
{
  g_auto (Run) r = run_new (ELEMENT "cameras=3", 1 << SRC);

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstBuffer) out = NULL, data = NULL;
    gfloat camera = -1;

    g_object_set (r.element, "cameras", 3 - i, NULL);
    push_all (&r, i, i + 1);
    out = check_pull (r.pads[SRC]);
    gst_structure_get (gst_imaging_results_get (out, NULL), "data",
        GST_TYPE_BUFFER, &data, NULL);
    gst_buffer_extract (data, 0, &camera, sizeof (camera));
    fail_unless_equals_float (camera, i * HEIGHT % (3 - i));
  }
}

/* Lines of one camera that nobody has moved say nothing. */
CHECK_BACKENDS_TEST (test_lines_of_one_camera_are_not_told)
{
  g_autoptr (GstBuffer) out = NULL;
  g_auto (Run) r;

  r = run_new (ELEMENT, 1 << SRC);
  push_all (&r, 0, 1);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  out = check_pull (r.pads[SRC]);
  fail_unless (gst_imaging_results_get (out, NULL) == NULL);
}

static guint64
number_in (GstBuffer *image, const gchar *name)
{
  guint64 number = 1000;

  fail_unless (gst_structure_get_uint64 (
      gst_imaging_results_get (image, NULL), name, &number));
  return number;
}

/* B-scans of 4 lines, buffers of 11: a B-scan is of the buffer that it begins
 * in, and tells which did not arrive before it. */
CHECK_BACKENDS_TEST (test_lines_tell_the_buffer_they_are_of)
{
  static const guint frames[] = {100, 100, 100, 101, 101, 104, 104};
  g_auto (Run) r;

  r = run_new (ELEMENT "cameras=2 ascans-per-bscan=4", 1 << SRC);
  for (guint i = 0; i < 5; i++) {
    GstBuffer *buffer = bscan_new (i);

    GST_BUFFER_OFFSET (buffer) = 100 + i;
    if (i == 2 || i == 3)
      gst_buffer_unref (buffer);
    else
      check_push (r.pads[SRC], buffer, GST_FLOW_OK);
  }
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  for (guint i = 0; i < G_N_ELEMENTS (frames); i++) {
    g_autoptr (GstBuffer) out = check_pull (r.pads[SRC]);

    fail_unless_equals_uint64 (number_in (out, "frame"), frames[i]);
    fail_unless_equals_uint64 (
        number_in (out, "frames-missing"), i == 5 ? 2 : 0);
  }
  fail_unless (gst_harness_try_pull (r.pads[SRC]) == NULL);
}
