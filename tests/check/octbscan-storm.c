/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octbscan while other threads change everything about it:
 * properties, pads that come and go, queries, flushes, states. To be run under
 * the thread sanitizer as well. */
#include "octbscan-run.h"

#include "gstimagingnpy.h"

enum { N_BSCANS = 400, N_ROUNDS = 10 };

static const gchar *const launches[] = {
    ELEMENT,
    ELEMENT,
    ELEMENT "cuda-devices=<-1>",
};

/* --- the storm ------------------------------------------------------------ */

typedef struct {
  const gchar *name, *values[3];
} Choice;

/* Each fits beside all others; the first of each is the default. */
static const Choice choices[] = {
    {"cameras", {"1", "2", "3"}},
    {"first-camera", {"0", "1", "0"}},
    {"scale", {"1", "2", "1"}},
    {"window", {"none", "hann", "none"}},
    {"background", {"mean", "running", "none"}},
    {"fixed-pattern", {"none", "minvar", "once"}},
    {"crop-top", {"0", "3", "0"}},
    {"average-ascans", {"1", "2", "3"}},
    {"average-bscans", {"1", "2", "3"}},
    {"ascans-per-bscan", {"0", "7", "22"}},
    {"bscans-per-volume", {"240", "2", "3"}},
    {"tracking", {"none", "xcorr", "rpe"}},
    {"flip", {"none", "both", "none"}},
    {"bidirectional", {"false", "true", "false"}},
    {"scaling", {"db", "linear", "db"}},
    {"range", {"fixed", "percentile", "minmax"}},
    {"range", {"fixed", "auto", "auto"}},
    {"dispersion-2", {"< >", "<-9.5>", "<4.0>"}},
    {"dispersion-3", {"< >", "<1.0>", "<-2.5>"}},
    {"range-min", {"0", "20", "-5"}},
    {"max-in-flight", {"3", "1", "4"}},
};

static gboolean stop; /* atomic */

static void
choose (GstElement *element, GRand *random)
{
  const Choice *c =
      &choices[g_rand_int_range (random, 0, G_N_ELEMENTS (choices))];

  gst_util_set_object_arg (G_OBJECT (element), c->name,
      c->values[g_rand_int_range (random, 0, G_N_ELEMENTS (c->values))]);
}

/* Asks @pad for all that a pad may be asked for; memory is CheckAsking's. */
static void
query_all (GstElement *element, const gchar *name)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, name);
  g_autoptr (GstCaps) caps = gst_caps_from_string (CAPS);
  GstQuery *queries[] = {gst_query_new_latency (), gst_query_new_drain (),
      gst_query_new_caps (NULL), gst_query_new_accept_caps (caps),
      gst_query_new_position (GST_FORMAT_TIME),
      gst_query_new_duration (GST_FORMAT_TIME),
      gst_query_new_seeking (GST_FORMAT_TIME), gst_query_new_scheduling (),
      gst_query_new_context ("gst.cuda.context")};

  for (guint i = 0; i < G_N_ELEMENTS (queries); i++) {
    if (GST_PAD_IS_SINK (pad) ? GST_QUERY_IS_DOWNSTREAM (queries[i])
                              : GST_QUERY_IS_UPSTREAM (queries[i]))
      gst_pad_query (pad, queries[i]);
    gst_query_unref (queries[i]);
  }
}

static void
ask (GstElement *element)
{
  g_autoptr (GstStructure) shares = NULL, stats = NULL;
  GstContext *context = gst_context_new ("gst.cuda.context", TRUE);
  g_autofree gchar *path = check_path_of ("pattern.npy"), *calibration = NULL;
  gboolean saved;

  query_all (element, "src");
  query_all (element, "sink");
  gst_element_set_context (element, context);
  gst_element_send_event (element, gst_event_new_reconfigure ());
  g_signal_emit_by_name (element, "save-fixed-pattern", path, &saved);
  g_signal_emit_by_name (element, "save-calibration", path, &saved);
  g_object_get (element, "shares", &shares, "stats", &stats, "calibration",
      &calibration, NULL);
  gst_context_unref (context);
}

static gpointer
storm_of_questions (gpointer data)
{
  while (!g_atomic_int_get (&stop))
    ask (data);
  return NULL;
}

static gpointer
storm_of_settings (gpointer data)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (7);

  while (!g_atomic_int_get (&stop)) {
    choose (data, random);
    ask (data);
    g_usleep (500);
  }
  return NULL;
}

static GstStaticPadTemplate anything = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

static GstFlowReturn
take (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

/* One is linked at a time, for a while. */
static gpointer
storm_of_pads (gpointer data)
{
  for (guint i = 0; !g_atomic_int_get (&stop); i++) {
    const gchar *name = pad_names[LINEAR + i % (N_PADS - LINEAR)];
    g_autoptr (GstPad) sink =
        gst_pad_new_from_static_template (&anything, "sink");
    g_autoptr (GstPad) pad = gst_element_request_pad_simple (data, name);

    fail_unless (pad != NULL);
    gst_pad_set_chain_function (sink, take);
    gst_pad_set_active (sink, TRUE);
    fail_unless_equals_int (gst_pad_link (pad, sink), GST_PAD_LINK_OK);
    g_usleep (1000);
    gst_element_release_request_pad (data, pad);
    gst_pad_set_active (sink, FALSE);
  }
  return NULL;
}

static void
calm (GstElement *element)
{
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++)
    gst_util_set_object_arg (
        G_OBJECT (element), choices[i].name, choices[i].values[0]);
}

/* --- b-scans -------------------------------------------------------------- */

static void
flush (GstHarness *h)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  check_flush (h);
}

static void
drop_all (GstHarness *h)
{
  GstBuffer *buffer;

  while ((buffer = gst_harness_try_pull (h)))
    gst_buffer_unref (buffer);
}

/* Afterwards all is as if nothing had been. */
static void
check_calm (Run *r)
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Expected) e = expect (&c, 4, 1);

  calm (r->element);
  flush (r->pads[SRC]);
  drop_all (r->pads[SRC]);
  push_all (r, 0, 4);
  gst_harness_push_event (r->pads[SRC], gst_event_new_eos ());
  check_run (r, &e, 1);
  check_no_messages (r->bus, GST_MESSAGE_ERROR);
}

CHECK_CASE ("octbscan-storm", check_make_folder, check_remove_folder)

CHECK_LOOP_TEST (test_a_storm_leaves_the_stream_whole, G_N_ELEMENTS (launches))
{
  GThread *settings, *pads;
  g_auto (Run) r;

  on_cuda = __i__ > 0;
  r = run_new (launches[__i__], 1 << SRC);
  g_atomic_int_set (&stop, FALSE);
  settings = g_thread_new ("settings", storm_of_settings, r.element);
  pads = g_thread_new ("pads", storm_of_pads, r.element);
  for (guint i = 0; i < N_BSCANS; i++) {
    push_all (&r, i % MAX_BSCANS, i % MAX_BSCANS + 1);
    if (i % 50 == 49)
      flush (r.pads[SRC]);
    drop_all (r.pads[SRC]);
  }
  g_atomic_int_set (&stop, TRUE);
  g_thread_join (settings);
  g_thread_join (pads);
  check_calm (&r);
}

/* --- wrong values --------------------------------------------------------- */

enum { N_ALTERNATIONS = 100000 };

/* Black and white of two ranges, at once and one after the other: then, for a
 * moment, black is above white. */
static gpointer
alternate (gpointer data)
{
  for (guint i = 0; i < N_ALTERNATIONS; i++) {
    gdouble low = i % 2 ? 0 : 70, high = i % 2 ? 60 : 100;

    if (i % 4 < 2) {
      g_object_set (data, "range-min", low, "range-max", high, NULL);
    } else {
      g_object_set (data, "range-min", low, NULL);
      g_object_set (data, "range-max", high, NULL);
    }
  }
  g_atomic_int_set (&stop, TRUE);
  return NULL;
}

/* One B-scan in, one image out. */
static void
push_one (Run *r, guint i)
{
  push_all (r, i % MAX_BSCANS, i % MAX_BSCANS + 1);
  gst_buffer_unref (check_pull (r->pads[SRC]));
}

/* @name=@value, with which nothing works, is told once a second, and the image
 * is as before. */
static void
check_wrong (Run *r, const gchar *name, const gchar *value, const gchar *words)
{
  GstMessage *message;
  gboolean valid;

  check_count_messages (r->bus, GST_MESSAGE_WARNING);
  gst_util_set_object_arg (G_OBJECT (r->element), name, value);
  for (guint i = 0; i < 20; i++)
    push_one (r, i);
  message = check_message (r->bus, GST_MESSAGE_WARNING);
  check_message_says (
      gst_message_ref (message), CHECK_CODE (LIBRARY, SETTINGS), words);
  check_message_says (message, CHECK_CODE (LIBRARY, SETTINGS), name);
  g_object_get (r->element, "settings-valid", &valid, NULL);
  fail_unless (!valid);
  check_no_messages (r->bus, GST_MESSAGE_WARNING);
}

CHECK_LOOP_TEST (test_wrong_values_stop_nothing, G_N_ELEMENTS (launches))
{
  GstClockTime began = gst_util_get_timestamp ();
  g_autofree gchar *path = check_path_of ("background.npy"), *mistyped = NULL;
  static const guint64 n = WIDTH;
  gdouble background[WIDTH] = {0};
  GThread *setter;
  guint pushed = 0, most, warned;
  gboolean valid;
  g_auto (Run) r;

  on_cuda = __i__ > 0;
  r = run_new (launches[__i__], 1 << SRC);
  g_atomic_int_set (&stop, FALSE);
  setter = g_thread_new ("setter", alternate, r.element);
  while (!g_atomic_int_get (&stop))
    push_one (&r, pushed++);
  g_thread_join (setter);
  push_one (&r, pushed++);
  most = 1 + (guint) ((gst_util_get_timestamp () - began) / GST_SECOND);
  warned = check_count_messages (r.bus, GST_MESSAGE_WARNING);
  /* black above white as 70 over 60 and as 0, 70 over ... of either order */
  fail_unless (warned <= 3 * most, "%u warnings in %u seconds", warned, most);
  g_object_set (r.element, "range-min", 0.0, "range-max", 60.0, NULL);
  push_one (&r, pushed++);
  /* not as before: the same sentence comes once a second */
  check_wrong (&r, "range-min", "69", "range-min is 69 dB and range-max 60 dB");
  g_object_set (r.element, "range-min", 0.0, NULL);
  push_one (&r, pushed++);
  check_wrong (&r, "crop-top", "500", "leave none of the 30 depths");
  g_object_set (r.element, "crop-top", 0, NULL);
  push_one (&r, pushed++);
  check_wrong (&r, "background", "file", "Set background-location");
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 1, &n, background, NULL));
  g_object_set (r.element, "background-location", path, NULL);
  push_one (&r, pushed++);
  g_object_get (r.element, "settings-valid", &valid, NULL);
  fail_unless (valid, "a background and its file are refused");
  mistyped = g_strconcat (path, ".ini", NULL);
  check_wrong (&r, "calibration", mistyped, "cannot be");
  g_object_set (
      r.element, "calibration", NULL, "background", 0, "range-max", 90.0, NULL);
  check_no_messages (r.bus, GST_MESSAGE_ERROR);
  check_calm (&r);
}

static GstPadProbeReturn
turn_round (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  g_object_set (data, "bidirectional", TRUE, "average-bscans", 2, NULL);
  return GST_PAD_PROBE_OK;
}

/* Properties that come while a buffer of several B-scans is at work are for the
 * next buffer: the kernel is one for the others. */
CHECK_BACKENDS_TEST (test_settings_of_a_buffer_are_of_one_moment)
{
  g_autoptr (GstPad) src = NULL;
  g_auto (Run) r;

  r = run_new (ELEMENT "ascans-per-bscan=3", 1 << SRC);
  src = gst_element_get_static_pad (r.element, "src");
  gst_pad_add_probe (
      src, GST_PAD_PROBE_TYPE_BUFFER, turn_round, r.element, NULL);
  push_all (&r, 0, 4);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_no_messages (r.bus, GST_MESSAGE_ERROR);
}

/* Again and again, each time as the first. */
CHECK_LOOP_TEST (test_states_change_again_and_again, G_N_ELEMENTS (launches))
{
  ImkOctbscanConfig c = base_config ();
  g_auto (Expected) e = expect (&c, 4, 1);

  on_cuda = __i__ > 0;
  for (guint i = 0; i < N_ROUNDS; i++) {
    g_auto (Run) r = run_new (launches[__i__], 15);
    CheckAsking asking;
    GThread *questions;

    g_atomic_int_set (&stop, FALSE);
    questions = g_thread_new ("questions", storm_of_questions, r.element);
    check_begin_asking (&asking, r.element, "sink", CAPS);
    for (guint k = 0; k < 3; k++) {
      push_all (&r, 0, i % 4);
      gst_element_set_state (r.element, GST_STATE_READY);
      gst_element_set_state (r.element, GST_STATE_PLAYING);
      gst_harness_set_src_caps_str (r.pads[SRC], CAPS);
      for (guint p = 0; p < N_PADS; p++)
        drop_all (r.pads[p]);
    }
    check_end_asking (&asking);
    g_atomic_int_set (&stop, TRUE);
    g_thread_join (questions);
    g_object_set (r.element, "bscans-per-volume", VOLUME, NULL);
    push_all (&r, 0, 4);
    gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
    check_run (&r, &e, 1);
  }
}
