/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What cannot go on is said, by every element, with one buffer as with many:
 * sizes that no memory has, and peers that take none of the caps. Nothing
 * aborts and nothing waits. */
#include "streams.h"

/* --- sizes ---------------------------------------------------------------- */

typedef struct {
  GstFlowReturn flow[STREAMS_MAX_SINKS];
  gboolean caps[STREAMS_MAX_SINKS];
  const gchar *size[2]; /* width, height */
} Huge;

static void
feed_huge (Streams *s, guint sink, gpointer data)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (s->c->sinks[sink].caps);
  Huge *huge = data;
  GstSegment segment;

  gst_caps_set_simple (caps, "width", G_TYPE_INT, atoi (huge->size[0]),
      "height", G_TYPE_INT, atoi (huge->size[1]), NULL);
  gst_segment_init (
      &segment, s->c->is_lines ? GST_FORMAT_DEFAULT : GST_FORMAT_TIME);
  gst_pad_push_event (s->sinks[sink], gst_event_new_stream_start ("huge"));
  huge->caps[sink] =
      gst_pad_push_event (s->sinks[sink], gst_event_new_caps (caps));
  gst_pad_push_event (s->sinks[sink], gst_event_new_segment (&segment));
  huge->flow[sink] = gst_pad_push (s->sinks[sink], streams_buffer (s, sink, 0));
  gst_pad_push_event (s->sinks[sink], gst_event_new_eos ());
}

/* An error has been posted, or the source has been told, which then posts one.
 */
static void
check_failed (Streams *s, const Huge *huge)
{
  gboolean told = FALSE;
  GstMessage *message;

  for (guint i = 0; i < s->n_sinks; i++)
    told |= huge->flow[i] < GST_FLOW_EOS || !huge->caps[i];
  message = gst_bus_timed_pop_filtered (
      s->bus, told ? 0 : CHECK_TIMEOUT, GST_MESSAGE_ERROR);
  fail_unless (told || message != NULL, "%s takes %s x %s", s->c->launch,
      huge->size[0], huge->size[1]);
  if (message)
    gst_message_unref (message);
}

CHECK_CASE ("refusals", streams_setup, check_remove_folder)

CHECK_LOOP_TEST (test_sizes_that_no_memory_has_are_errors, streams_n_cases)
{
  static const gchar *const sizes[][2] = {{"2147483645", "1"},
      {"1073741823", "1"}, {"70000", "70000"}, {"2147483645", "2147483645"}};
  const StreamsCase *c = &streams_cases[__i__];

  if (g_str_has_prefix (c->sinks[0].caps, "text/"))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    Huge huge = {.size = {sizes[i][0], sizes[i][1]}};
    Streams *s = streams_new (c);

    if (!s)
      return;
    streams_feed (s, feed_huge, &huge);
    check_failed (s, &huge);
    streams_free (s);
  }
}

static void
send_tensor (GstHarness *h, const gchar *dimensions)
{
  g_autofree gchar *caps = g_strdup_printf (
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=%s,framerate=25/1",
      dimensions);

  gst_harness_set_src_caps_str (h, caps);
  gst_harness_push (h, gst_buffer_new_allocate (NULL, 4096, NULL));
  gst_harness_push_event (h, gst_event_new_eos ());
}

CHECK_LOOP_TEST (test_tensors_that_no_memory_has_are_errors, 2)
{
  static const struct {
    const gchar *element, *sink, *src;
  } elements[] = {
      {"relight", "normal", "src"}, {"normalintegrate", "sink", "height"}};
  GstElement *element =
      gst_element_factory_make (elements[__i__].element, NULL);
  GstBus *bus = gst_bus_new ();
  GstHarness *h, *src;

  if (!element) {
    gst_object_unref (bus);
    return;
  }
  gst_object_ref_sink (element);
  gst_element_set_bus (element, bus);
  h = gst_harness_new_with_element (element, elements[__i__].sink, NULL);
  src = gst_harness_new_with_element (element, NULL, elements[__i__].src);
  gst_harness_play (src);
  gst_harness_play (h);
  send_tensor (h, "3:40000:40000:1");
  check_error (bus, STREAM, FORMAT, "3:40000:40000:1");
  gst_element_set_bus (element, NULL);
  gst_harness_teardown (src);
  gst_harness_teardown (h);
  gst_object_unref (element);
  gst_object_unref (bus);
}

/* --- peers ---------------------------------------------------------------- */

/* One frame, then its end: upstream never hears of a flow. */
CHECK_LOOP_TEST (test_a_refusal_is_an_error_with_one_frame, 2)
{
  static const gchar *const lines[] = {
      "videotestsrc num-buffers=1 ! "
      "video/x-raw,format=RGB,width=16,height=8 ! relight ! "
      "video/x-raw,width=17 ! fakesink",
      "octinterlace name=i ! video/x-raw,height=17 ! fakesink "
      "videotestsrc num-buffers=1 ! "
      "video/x-raw,format=GRAY8,width=16,height=8 ! i.sink_0"};
  g_autoptr (CheckPipeline) pipeline = check_launch (lines[__i__]);
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GstBus) bus = NULL;

  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = check_message (bus, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  fail_unless_equals_int (GST_MESSAGE_TYPE (message), GST_MESSAGE_ERROR);
}

/* --- enumerations --------------------------------------------------------- */

static void
feed_all (Streams *s, guint sink, gpointer data)
{
  GstSegment segment;

  gst_segment_init (
      &segment, s->c->is_lines ? GST_FORMAT_DEFAULT : GST_FORMAT_TIME);
  gst_pad_push_event (s->sinks[sink], gst_event_new_stream_start ("values"));
  streams_send_caps (s, sink);
  gst_pad_push_event (s->sinks[sink], gst_event_new_segment (&segment));
  for (guint i = 0; i < s->c->n; i++)
    gst_pad_push (s->sinks[sink], streams_buffer (s, sink, i));
  gst_pad_push_event (s->sinks[sink], gst_event_new_eos ());
}

/* A value may need other settings, which is a sentence of its own. */
static void
check_is_known (Streams *s, const gchar *property, const gchar *nick)
{
  g_autofree gchar *unknown = g_strdup_printf ("%s is ", property);
  GstMessage *message;

  while ((message = gst_bus_pop_filtered (
              s->bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))) {
    g_autoptr (GError) error = check_parse (message);

    fail_if (strstr (error->message, "the choices are") ||
                 (strstr (error->message, unknown) &&
                     strstr (error->message, "; it can be 0 to ")),
        "%s %s=%s: %s", s->c->launch, property, nick, error->message);
    gst_message_unref (message);
  }
}

/* What gst-inspect-1.0 lists, the kernel knows. */
CHECK_LOOP_TEST (test_every_value_of_an_enumeration_is_known, streams_n_cases)
{
  const StreamsCase *c = &streams_cases[__i__];
  Streams *s = streams_new (c);
  GParamSpec **specs;
  guint n_specs = 0;

  if (!s)
    return;
  specs = g_object_class_list_properties (
      G_OBJECT_GET_CLASS (s->element), &n_specs);
  streams_free (s);
  for (guint i = 0; i < n_specs; i++) {
    GEnumClass *values;

    if (!G_IS_PARAM_SPEC_ENUM (specs[i]))
      continue;
    values = G_PARAM_SPEC_ENUM (specs[i])->enum_class;
    for (guint k = 0; k < values->n_values; k++) {
      s = streams_new (c);
      gst_util_set_object_arg (
          G_OBJECT (s->element), specs[i]->name, values->values[k].value_nick);
      streams_feed (s, feed_all, NULL);
      check_is_known (s, specs[i]->name, values->values[k].value_nick);
      streams_free (s);
    }
  }
  g_free (specs);
}
