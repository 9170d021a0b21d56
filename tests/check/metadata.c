/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What upstream says of a buffer is still there behind every element, as long
 * as it is true; and results name the frame that the camera named. */
#include "streams.h"

#include "gstimagingnumbering.h"
#include "gstimagingresults.h"

#define CUSTOM_META "CheckFrame"
#define HEIGHT_META "GstImagingHeight"

/* --- metas ---------------------------------------------------------------- */

static void
setup (void)
{
  const gchar *no_tags[] = {NULL};

  streams_setup ();
  if (!gst_meta_get_info (CUSTOM_META))
    gst_meta_register_custom (CUSTOM_META, no_tags, NULL, NULL, NULL);
  if (!gst_meta_get_info (HEIGHT_META))
    gst_meta_register_custom (HEIGHT_META, no_tags, NULL, NULL, NULL);
}

static GstCaps *
camera_clock (void)
{
  static gsize caps; /* two threads feed an element of two inputs */

  if (g_once_init_enter (&caps))
    g_once_init_leave (
        &caps, (gsize) gst_caps_from_string ("timestamp/x-camera"));
  return (GstCaps *) caps;
}

/* Says everything that a camera, a decoder or an application may. */
static void
describe (GstBuffer *buffer, guint sink, guint i)
{
  gst_buffer_add_reference_timestamp_meta (
      buffer, camera_clock (), 1000 * (sink + 1) + i, 7);
  gst_structure_set (gst_custom_meta_get_structure (
                         gst_buffer_add_custom_meta (buffer, CUSTOM_META)),
      "sink", G_TYPE_UINT, sink, "i", G_TYPE_UINT, i, NULL);
  gst_structure_set (gst_custom_meta_get_structure (
                         gst_buffer_add_custom_meta (buffer, HEIGHT_META)),
      "scale", G_TYPE_DOUBLE, -1.0, NULL);
  gst_buffer_add_video_time_code_meta_full (
      buffer, 25, 1, NULL, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, sink, i, 0);
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", i, 1, 2, 3);
}

typedef struct {
  gboolean second_is_later; /* by 1 ms */
} How;

static void
feed (Streams *s, guint sink, gpointer data)
{
  const How *how = data;
  GstSegment segment;
  g_autofree gchar *id = g_strdup_printf ("stream-%u", sink);

  gst_segment_init (
      &segment, s->c->is_lines ? GST_FORMAT_DEFAULT : GST_FORMAT_TIME);
  gst_pad_push_event (s->sinks[sink], gst_event_new_stream_start (id));
  streams_send_caps (s, sink);
  gst_pad_push_event (s->sinks[sink], gst_event_new_segment (&segment));
  for (guint i = 0; i < s->c->n; i++) {
    GstBuffer *buffer = streams_buffer (s, sink, i);

    describe (buffer, sink, i);
    if (how->second_is_later)
      GST_BUFFER_PTS (buffer) =
          i * 40 * GST_MSECOND + (sink > 0 ? GST_MSECOND : 0);
    streams_push (s, sink, buffer);
  }
  gst_pad_push_event (s->sinks[sink], gst_event_new_eos ());
}

/* Returns: (transfer none): the first or last buffer of a src pad */
static GstBuffer *
get_buffer (Streams *s, guint src, gboolean last)
{
  GstBuffer *found = NULL;

  for (guint i = 0; i < s->received[src]->len; i++)
    if (GST_IS_BUFFER (s->received[src]->pdata[i]) && (last || !found))
      found = s->received[src]->pdata[i];
  return found;
}

static guint
count_metas (GstBuffer *buffer, GType api)
{
  return gst_buffer_get_n_meta (buffer, api);
}

#define check_pad(ok, ...) \
  fail_unless (ok, "%s, %s: %s", s->c->launch, s->c->srcs[src], \
      g_strdup_printf (__VA_ARGS__)) /* leaks when the test fails */

static guint
custom_value (GstBuffer *buffer, const gchar *name)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, CUSTOM_META);
  guint value = G_MAXUINT;

  if (meta)
    gst_structure_get_uint (gst_custom_meta_get_structure (meta), name, &value);
  return value;
}

/* Whether two B-scans make one buffer of this pad, which then has the metas of
 * the later one and the offset of the earlier one. */
static gboolean
joins_bscans (const Streams *s, guint src)
{
  return strstr (s->c->launch, "average-bscans=2") ||
         g_str_equal (s->c->srcs[src], "enface");
}

/* That of buffer @i of sink pad @sink. */
static void
check_metas (Streams *s, guint src, GstBuffer *buffer, guint sink, guint i)
{
  guint64 offset = 100 + i - (joins_bscans (s, src) ? 1 : 0);
  gboolean has_geometry = strstr (s->c->geometry, s->c->srcs[src]) != NULL;
  GstReferenceTimestampMeta *camera =
      gst_buffer_get_reference_timestamp_meta (buffer, camera_clock ());
  GstVideoTimeCodeMeta *code = gst_buffer_get_video_time_code_meta (buffer);
  GstCustomMeta *height = gst_buffer_get_custom_meta (buffer, HEIGHT_META);
  gdouble scale = 0;

  check_pad (
      custom_value (buffer, "sink") == sink && custom_value (buffer, "i") == i,
      "the custom meta is %u/%u, not %u/%u", custom_value (buffer, "sink"),
      custom_value (buffer, "i"), sink, i);
  check_pad (camera && camera->timestamp == 1000 * (sink + 1) + i &&
                 camera->duration == 7,
      "the reference timestamp is %" G_GUINT64_FORMAT,
      camera ? camera->timestamp : 0);
  check_pad (code && code->tc.seconds == sink && code->tc.frames == i,
      "the timecode is lost");
  check_pad (count_metas (buffer, GST_REFERENCE_TIMESTAMP_META_API_TYPE) == 1 &&
                 count_metas (buffer, GST_VIDEO_TIME_CODE_META_API_TYPE) == 1,
      "metas come twice");
  check_pad (count_metas (buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) ==
                 (has_geometry ? 1 : 0),
      "%u regions of interest",
      count_metas (buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
  if (height)
    gst_structure_get_double (
        gst_custom_meta_get_structure (height), "scale", &scale);
  check_pad (scale >= 0, "the meta of the samples that came is still there");
  if (!s->c->is_lines)
    check_pad (GST_BUFFER_OFFSET (buffer) == offset,
        "the offset is %" G_GUINT64_FORMAT ", not %" G_GUINT64_FORMAT,
        GST_BUFFER_OFFSET (buffer), offset);
}

static Streams *
run (const StreamsCase *c, How how)
{
  Streams *s = c->keeps ? streams_new (c) : NULL;

  if (!s)
    return NULL;
  streams_feed (s, feed, &how);
  for (guint src = 0; src < s->n_srcs; src++)
    streams_wait (s, src, GST_EVENT_EOS);
  return s;
}

CHECK_CASE ("metas", setup, check_remove_folder)

/* Of several inputs with one time, that of the first pad counts. */
CHECK_LOOP_TEST (test_metadata_passes_every_pad, streams_n_cases)
{
  Streams *s = run (&streams_cases[__i__], (How){FALSE});

  for (guint src = 0; s && src < s->n_srcs; src++) {
    GstBuffer *buffer = get_buffer (s, src, TRUE);

    check_pad (buffer, "no buffer comes");
    /* B-scans of several buffers have that of the first */
    check_metas (s, src, buffer, 0,
        strstr (s->c->launch, "ascans-per-bscan") ? s->c->n - 2 : s->c->n - 1);
  }
  if (s)
    streams_free (s);
}

CHECK_LOOP_TEST (test_the_latest_input_counts, streams_n_cases)
{
  Streams *s = streams_cases[__i__].sinks[1].name
                   ? run (&streams_cases[__i__], (How){TRUE})
                   : NULL;

  for (guint src = 0; s && src < s->n_srcs; src++) {
    GstBuffer *buffer = get_buffer (s, src, FALSE);

    check_pad (buffer, "no buffer comes");
    check_metas (s, src, buffer, 1, 0);
  }
  if (s)
    streams_free (s);
}

/* --- frame numbers -------------------------------------------------------- */

typedef struct {
  GstElement *pipeline;
  GstBus *bus;
  guint64 n;             /* results that came */
  guint64 frames[300];   /* of each */
  guint64 missing[300];  /* likewise */
  guint drop_from, drop; /* buffers that do not arrive */
  guint n_seen, n_warnings;
} Numbers;

static GstPadProbeReturn
on_input (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Numbers *n = data;
  guint i = n->n_seen++;

  return i >= n->drop_from && i < n->drop_from + n->drop ? GST_PAD_PROBE_DROP
                                                         : GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
on_output (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  const GstStructure *result =
      gst_imaging_results_get (GST_PAD_PROBE_INFO_BUFFER (info), "sh");
  Numbers *n = data;

  fail_unless (result != NULL);
  fail_unless (n->n < G_N_ELEMENTS (n->frames));
  gst_structure_get (result, "frame", G_TYPE_UINT64, &n->frames[n->n],
      "frames-missing", G_TYPE_UINT64, &n->missing[n->n], NULL);
  n->n++;
  return GST_PAD_PROBE_OK;
}

static void
probe (Numbers *n, const gchar *pad_name, GstPadProbeCallback callback)
{
  g_autoptr (GstElement) sh = gst_bin_get_by_name (GST_BIN (n->pipeline), "sh");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sh, pad_name);

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, callback, n, NULL);
}

/* Hints of shcentroid are warnings as well. */
static gboolean
is_of_gap (GstMessage *message)
{
  g_autoptr (GError) error = NULL;
  gboolean is;

  gst_message_parse_warning (message, &error, NULL);
  is = strstr (error->message, " missing before frame ") != NULL;
  return is;
}

/* 150 frames of @source, of which those from 20 on are dropped. */
static Numbers
play_numbers (const gchar *source, guint drop)
{
  g_autofree gchar *line = g_strdup_printf (
      "%s ! shcentroid name=sh backend=cpu x0=0 y0=0 pitch-x=8 pitch-y=8 "
      "columns=2 rows=1 ! fakesink",
      source);
  Numbers n = {.pipeline = check_launch (line), .drop_from = 20, .drop = drop};
  GstMessage *message;
  GstMessageType type;

  probe (&n, "sink", on_input);
  probe (&n, "src", on_output);
  n.bus = gst_element_get_bus (n.pipeline);
  gst_element_set_state (n.pipeline, GST_STATE_PLAYING);
  do {
    message = check_message (
        n.bus, GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
    type = GST_MESSAGE_TYPE (message);
    fail_if (type == GST_MESSAGE_ERROR);
    n.n_warnings += type == GST_MESSAGE_WARNING && is_of_gap (message);
    gst_message_unref (message);
  } while (type != GST_MESSAGE_EOS);
  return n;
}

/* @counts_bytes: numbers are a counter, which does not know of gaps */
static void
check_numbers (Numbers *n, guint drop, gboolean counts_bytes)
{
  g_autoptr (GstElement) sh = gst_bin_get_by_name (GST_BIN (n->pipeline), "sh");

  fail_unless_equals_uint64 (n->n, 150 - drop);
  for (guint i = 0; i < n->n; i++) {
    guint expected = i < 20 || counts_bytes ? i : i + drop;

    fail_unless_equals_uint64 (n->frames[i], expected);
    fail_unless_equals_uint64 (n->missing[i], i == 20 ? drop : 0);
  }
  fail_unless_equals_uint64 (check_stat (sh, "frames-missing"), drop);
}

#define FRAMES_OF_16_X_8 \
  "video/x-raw,format=GRAY8,width=16,height=8,framerate=30/1"

static void
write_npy (guint n, guint size)
{
  g_autoptr (GString) file = g_string_new (NULL);
  g_autofree gchar *header = g_strdup_printf (
      "{'descr': '|u1', 'fortran_order': False, 'shape': (%u, 8, 16), }", n);
  g_autofree guint8 *pixels = g_malloc (n * size);

  memset (pixels, 100, n * size);
  g_string_append_len (file, "\x93NUMPY\x01\x00", 8);
  g_string_append_c (file, 118);
  g_string_append_c (file, 0);
  g_string_append_printf (file, "%-117s\n", header);
  g_string_append_len (file, (const gchar *) pixels, n * size);
  check_write_file ("frames.npy", file->str, (gssize) file->len);
  check_write_file ("frames.raw", pixels, (gssize) (n * size));
}

static void
setup_numbers (void)
{
  g_autofree guint8 *pixels = NULL;

  setup ();
  write_npy (150, 128);
  pixels = g_malloc0 (150 * 192);
  check_write_file ("frames.i420", pixels, 150 * 192);
}

CHECK_CASE ("numbers", setup_numbers, check_remove_folder)

/* What counts frames, and what counts bytes, as 128 a frame, 192 a frame of
 * another format before, and bytes without times. */
CHECK_LOOP_TEST (test_results_have_the_frame_number_of_the_source, 5)
{
  static const struct {
    const gchar *source;
    gboolean counts_bytes;
  } sources[] = {
      {"videotestsrc num-buffers=150 pattern=snow ! " FRAMES_OF_16_X_8, FALSE},
      {"picturesrc location=$/frames.npy framerate=30/1", FALSE},
      {"filesrc location=$/frames.raw ! rawvideoparse format=gray8 width=16 "
       "height=8 framerate=30/1",
          TRUE},
      {"filesrc location=$/frames.i420 ! rawvideoparse format=i420 width=16 "
       "height=8 framerate=30/1 ! videoconvert ! video/x-raw,format=GRAY8",
          TRUE},
      {"filesrc location=$/frames.raw blocksize=128 ! " FRAMES_OF_16_X_8, TRUE},
  };
  static const guint gaps[] = {0, 1, 100};

  for (guint g = 0; g < G_N_ELEMENTS (gaps); g++) {
    Numbers n;

    n = play_numbers (sources[__i__].source, gaps[g]);
    check_numbers (&n, gaps[g], sources[__i__].counts_bytes);
    fail_unless_equals_int (n.n_warnings, gaps[g] > 0 ? 1 : 0);
    gst_object_unref (n.bus);
    check_stop (n.pipeline);
  }
}

/* Of a stream that needs no pipeline: a seek is no gap, backwards neither. */
CHECK_TEST (test_what_is_no_gap)
{
  GstImagingNumbering numbering;
  guint64 missing;

  gst_imaging_numbering_reset (&numbering);
  for (guint i = 0; i < 8; i++) {
    static const guint offsets[] = {5, 6, 100, 99, 98, 7, 8, 11};
    static const guint expected[] = {0, 0, 0, 0, 0, 0, 0, 2};
    g_autoptr (GstBuffer) buffer = gst_buffer_new_allocate (NULL, 64, NULL);

    GST_BUFFER_OFFSET (buffer) = offsets[i];
    if (i == 2)
      gst_imaging_numbering_interrupt (&numbering);
    fail_unless_equals_uint64 (
        gst_imaging_numbering_next (&numbering, buffer, &missing), offsets[i]);
    fail_unless_equals_uint64 (missing, expected[i]);
  }
}

/* Without offsets: times that jitter by less than half a frame are no gap. */
CHECK_TEST (test_gaps_in_time)
{
  static const guint pts[] = {0, 43, 75, 120, 199, 240, 4280};
  static const guint expected[] = {0, 0, 0, 0, 1, 0, 100};
  GstImagingNumbering numbering;
  guint64 missing;

  gst_imaging_numbering_reset (&numbering);
  for (guint i = 0; i < G_N_ELEMENTS (pts); i++) {
    g_autoptr (GstBuffer) buffer = gst_buffer_new_allocate (NULL, 64, NULL);

    GST_BUFFER_PTS (buffer) = pts[i] * GST_MSECOND;
    GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
    fail_unless_equals_uint64 (
        gst_imaging_numbering_next (&numbering, buffer, &missing), i);
    fail_unless_equals_uint64 (missing, expected[i]);
  }
}
