/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element picturesrc: pixels, strides, times, seeking and errors. */
#include <gst/base/gstbasesrc.h>
#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "check-common.h"
#include "gstimagingnpy.h"

/* --- helpers --- */

static gchar *path; /* of the one array of a test */

static void
make_path (void)
{
  check_make_folder ();
  path = check_path_of ("frames.npy");
}

static void
remove_path (void)
{
  g_clear_pointer (&path, g_free);
  check_remove_folder ();
}

/* The value at each index, so that a mistaken place shows: it repeats after a
 * prime number of values, not after a row. */
static guint
value_at (guint64 index, gboolean u8)
{
  return u8 ? index * 7 % 251 : index * 257 % 65521;
}

static void
write_array (GstImagingNdArrayType type, guint n_dims, guint64 a, guint64 b,
    guint64 c, guint64 d)
{
  guint64 dims[] = {a, b, c, d};
  guint64 n = a * b * c * d;
  gboolean u8 = type == GST_IMAGING_ND_ARRAY_TYPE_U8;
  /* the larger types hold zeros */
  g_autofree guint8 *data = g_malloc0 (n * 16 + 1);
  GError *error = NULL;

  for (guint64 i = 0; i < n; i++) {
    if (u8)
      data[i] = value_at (i, TRUE);
    else if (type == GST_IMAGING_ND_ARRAY_TYPE_U16)
      ((guint16 *) data)[i] = value_at (i, FALSE);
  }
  fail_unless (gst_imaging_npy_save (path, type, n_dims, dims, data, &error),
      "%s", error ? error->message : "no message");
}

static GstElement *
make_source (void)
{
  GstElement *source = gst_element_factory_make ("picturesrc", NULL);

  fail_unless (source != NULL, "picturesrc is not in GST_PLUGIN_PATH");
  g_object_set (source, "location", path, NULL);
  return source;
}

static GstElement *
make_pipeline (const gchar *launch, GstState state)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (launch, &error);
  GstElement *source;

  fail_unless (error == NULL, "%s", error ? error->message : "");
  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  g_object_set (source, "location", path, NULL);
  gst_object_unref (source);
  gst_element_set_state (pipeline, state);
  fail_unless_equals_int (
      gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT),
      GST_STATE_CHANGE_SUCCESS);
  return pipeline;
}

/* Waits until everything is played; an error fails the test. */
static void
wait_for_end (GstElement *pipeline)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = gst_bus_timed_pop_filtered (
      bus, CHECK_TIMEOUT, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

  fail_unless (message != NULL, "no end");
  fail_unless_equals_int (GST_MESSAGE_TYPE (message), GST_MESSAGE_EOS);
}

static GstHarness *
make_harness (void)
{
  g_autoptr (GstElement) source = make_source ();
  GstHarness *h = gst_harness_new_with_element (source, NULL, "src");

  return h;
}

/* Returns: the next frame, NULL at the end of the stream */
static GstBuffer *
pull (GstHarness *h)
{
  GstBuffer *buffer = NULL;

  fail_unless (gst_harness_pull_until_eos (h, &buffer), "no frame, no EOS");
  return buffer;
}

static void
assert_end (GstHarness *h)
{
  GstBuffer *buffer = pull (h);

  fail_unless (buffer == NULL, "a frame after the last one");
}

static void
get_info (GstHarness *h, GstVideoInfo *info)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);

  fail_unless (caps != NULL && gst_caps_is_fixed (caps));
  fail_unless (gst_video_info_from_caps (info, caps));
}

/* Compares frame @index with value_at (); @n_channels in the file. */
static void
assert_frame (GstHarness *h, GstBuffer *buffer, guint64 index,
    GstVideoFormat format, guint width, guint height, guint n_channels)
{
  gboolean u8;
  guint n_out;
  GstVideoInfo info;
  GstVideoFrame frame;

  fail_unless (buffer != NULL, "no frame %" G_GUINT64_FORMAT, index);
  get_info (h, &info);
  fail_unless_equals_string (
      gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (&info)),
      gst_video_format_to_string (format));
  fail_unless_equals_int (GST_VIDEO_INFO_WIDTH (&info), width);
  fail_unless_equals_int (GST_VIDEO_INFO_HEIGHT (&info), height);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), index);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET_END (buffer), index + 1);

  fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_READ));
  u8 = GST_VIDEO_FRAME_COMP_DEPTH (&frame, 0) == 8;
  n_out = GST_VIDEO_FRAME_N_COMPONENTS (&frame);
  for (guint y = 0; y < height; y++) {
    const guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) +
                        y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0);

    for (guint i = 0; i < width * n_out; i++) {
      guint x = i / n_out, c = i % n_out;
      guint64 at = ((index * height + y) * width + x) * n_channels + c;
      guint expected = c < n_channels ? value_at (at, u8) : 65535;
      guint found = u8 ? row[i] : ((const guint16 *) row)[i];

      fail_unless (found == expected,
          "frame %" G_GUINT64_FORMAT ": channel %u of (%u, %u) is %u, expected "
          "is %u",
          index, c, x, y, found, expected);
    }
  }
  gst_video_frame_unmap (&frame);
}

/* Plays all of an array and compares it. */
static void
assert_plays (guint n_frames, GstVideoFormat format, guint width, guint height,
    guint n_channels)
{
  g_autoptr (CheckHarness) h = make_harness ();

  gst_harness_play (h);
  for (guint i = 0; i < n_frames; i++) {
    g_autoptr (GstBuffer) buffer = pull (h);

    assert_frame (h, buffer, i, format, width, height, n_channels);
  }
  assert_end (h);
}

/* Of 16 bits, in the order of this machine. */
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define NATIVE(format) GST_VIDEO_FORMAT_##format##_LE
#else
#define NATIVE(format) GST_VIDEO_FORMAT_##format##_BE
#endif

/* --- pixels --- */

CHECK_CASE ("picturesrc", make_path, remove_path)

CHECK_TEST (test_u8_is_gray8_with_padded_rows)
{
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (GstBuffer) buffer = NULL;
  GstVideoInfo info;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 3, 4, 641, 1);
  assert_plays (3, GST_VIDEO_FORMAT_GRAY8, 641, 4, 1);

  h = make_harness ();
  gst_harness_play (h);
  buffer = pull (h);
  get_info (h, &info);
  fail_unless_equals_int (GST_VIDEO_INFO_PLANE_STRIDE (&info, 0), 644);
  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), 4 * 644);
}

CHECK_TEST (test_u16_is_gray16)
{
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U16, 3, 3, 5, 7, 1);
  assert_plays (3, NATIVE (GRAY16), 7, 5, 1);
}

CHECK_TEST (test_big_endian_u16_has_the_same_values)
{
  gchar *content;
  gsize size;
  gchar *order;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U16, 3, 2, 5, 7, 1);
  fail_unless (g_file_get_contents (path, &content, &size, NULL));
  order = strstr (content + 10, "u2") - 1;
  *order = *order == '<' ? '>' : '<';
  for (gsize i = size - 2 * 5 * 7 * 2; i < size; i += 2) {
    gchar first = content[i];

    content[i] = content[i + 1];
    content[i + 1] = first;
  }
  fail_unless (g_file_set_contents (path, content, size, NULL));
  g_free (content);
  assert_plays (2, NATIVE (GRAY16), 7, 5, 1);
}

CHECK_TEST (test_four_dimensions_are_colour)
{
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 4, 2, 3, 5, 1);
  assert_plays (2, GST_VIDEO_FORMAT_GRAY8, 5, 3, 1);
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 4, 2, 3, 5, 3);
  assert_plays (2, GST_VIDEO_FORMAT_RGB, 5, 3, 3);
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 4, 2, 3, 5, 4);
  assert_plays (2, GST_VIDEO_FORMAT_RGBA, 5, 3, 4);
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U16, 4, 2, 3, 5, 4);
  assert_plays (2, NATIVE (RGBA64), 5, 3, 4);
}

CHECK_TEST (test_three_channels_of_u16_get_an_opaque_alpha)
{
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U16, 4, 2, 3, 5, 3);
  assert_plays (2, NATIVE (RGBA64), 5, 3, 3);
}

CHECK_TEST (test_two_dimensions_are_one_frame)
{
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 2, 5, 7, 1, 1);
  assert_plays (1, GST_VIDEO_FORMAT_GRAY8, 7, 5, 1);
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 2, 1, 1, 1, 1);
  assert_plays (1, GST_VIDEO_FORMAT_GRAY8, 1, 1, 1);
}

/* --- memory --- */

/* Offers a pool whose rows are padded to 32 bytes more than usual. */
static GstPadProbeReturn
offer_padded_pool (GstPad *pad, GstPadProbeInfo *info, gpointer pool)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (info);
  GstVideoAlignment alignment;
  GstStructure *config;
  GstVideoInfo video;
  GstCaps *caps;
  guint size;

  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return GST_PAD_PROBE_OK;
  gst_query_parse_allocation (query, &caps, NULL);
  fail_unless (gst_video_info_from_caps (&video, caps));
  gst_video_alignment_reset (&alignment);
  alignment.padding_left = alignment.padding_right = 16;
  alignment.padding_top = 1;

  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, video.size, 2, 4);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_config_add_option (
      config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
  gst_buffer_pool_config_set_video_alignment (config, &alignment);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_get_params (config, NULL, &size, NULL, NULL);
  gst_structure_free (config);
  gst_query_add_allocation_pool (query, pool, size, 2, 4);
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return GST_PAD_PROBE_HANDLED;
}

CHECK_TEST (test_frames_are_written_into_the_pool_of_the_next_element)
{
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (GstBufferPool) pool = gst_video_buffer_pool_new ();
  GstPad *pad;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 6, 4, 61, 1);
  h = make_harness ();
  pad = gst_element_get_static_pad (h->element, "src");
  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_padded_pool, pool, NULL);
  gst_object_unref (pad);

  gst_harness_play (h);
  for (guint i = 0; i < 6; i++) {
    g_autoptr (GstBuffer) buffer = pull (h);
    GstVideoMeta *meta;

    assert_frame (h, buffer, i, GST_VIDEO_FORMAT_GRAY8, 61, 4, 1);
    fail_unless (buffer->pool == pool);
    meta = gst_buffer_get_video_meta (buffer);
    fail_unless (meta != NULL);
    fail_unless (meta->stride[0] >= 61 + 32);
  }
  assert_end (h);
}

/* The GPU's memory is a mock here; what an element cannot use where it lies, it
 * would copy. */
CHECK_TEST (test_frames_are_read_into_page_locked_memory)
{
  static const struct {
    GstImagingNdArrayType type;
    const gchar *launch;
  } cases[] = {
      {GST_IMAGING_ND_ARRAY_TYPE_U16,
          "picturesrc name=source ! lapsharpen name=gpu backend=cuda ! "
          "fakesink"},
      {GST_IMAGING_ND_ARRAY_TYPE_F32,
          "picturesrc name=source ! shcentroid name=gpu backend=cuda columns=2 "
          "rows=2 pitch-x=15 pitch-y=15 ! fakesink"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstElement *pipeline, *gpu;

    write_array (cases[i].type, 3, 20, 32, 64, 1);
    pipeline = make_pipeline (cases[i].launch, GST_STATE_PLAYING);
    wait_for_end (pipeline);
    gpu = gst_bin_get_by_name (GST_BIN (pipeline), "gpu");
    fail_unless_equals_uint64 (check_stat (gpu, "frames"), 20);
    fail_unless_equals_uint64 (check_stat (gpu, "bytes-copied"), 0);
    gst_object_unref (gpu);
    check_stop (pipeline);
  }
}

/* Bytes of memory that this process uses. */
static gint64
count_memory (void)
{
  FILE *file = fopen ("/proc/self/statm", "r");
  glong n_pages = 0;

  fail_unless (file && fscanf (file, "%*d %ld", &n_pages) == 1);
  fclose (file);
  return (gint64) n_pages * sysconf (_SC_PAGESIZE);
}

CHECK_TEST (test_memory_does_not_grow_with_the_array)
{
  g_autoptr (CheckPipeline) pipeline = NULL;
  gint64 before, grown;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 64, 512, 1021, 1); /* 32 MiB */
  pipeline =
      make_pipeline ("picturesrc name=source ! fakesink name=sink sync=false",
          GST_STATE_PAUSED);
  before = count_memory ();
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_end (pipeline);
  grown = count_memory () - before;
  fail_unless (grown < 8 * 1024 * 1024, "grew by %" G_GINT64_FORMAT, grown);
}

/* --- time --- */

CHECK_TEST (test_times_follow_the_framerate_without_gaps)
{
  g_autoptr (CheckHarness) h = NULL;
  GstClockTime end = 0;
  GstVideoInfo info;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 31, 1, 8, 1);
  h = make_harness ();
  gst_util_set_object_arg (G_OBJECT (h->element), "framerate", "30000/1001");
  gst_harness_play (h);
  for (guint i = 0; i < 31; i++) {
    g_autoptr (GstBuffer) buffer = pull (h);

    fail_unless (buffer != NULL);
    fail_unless_equals_clocktime (GST_BUFFER_PTS (buffer), end);
    fail_unless_equals_clocktime (GST_BUFFER_PTS (buffer),
        gst_util_uint64_scale (i, 1001 * GST_SECOND, 30000));
    end += GST_BUFFER_DURATION (buffer);
  }
  assert_end (h);
  get_info (h, &info);
  fail_unless_equals_int (GST_VIDEO_INFO_FPS_N (&info), 30000);
  fail_unless_equals_int (GST_VIDEO_INFO_FPS_D (&info), 1001);
}

/* --- seeking --- */

/* The frame that a paused pipeline shows. */
static void
assert_shown (GstElement *pipeline, guint64 expected)
{
  g_autoptr (GstElement) sink =
      gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_autoptr (GstSample) sample = NULL;

  fail_unless_equals_int (
      gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT),
      GST_STATE_CHANGE_SUCCESS);
  g_object_get (sink, "last-sample", &sample, NULL);
  fail_unless (sample != NULL);
  fail_unless_equals_uint64 (
      GST_BUFFER_OFFSET (gst_sample_get_buffer (sample)), expected);
}

static void
assert_seek (
    GstElement *pipeline, GstFormat format, gint64 place, guint64 expected)
{
  fail_unless (
      gst_element_seek_simple (pipeline, format, GST_SEEK_FLAG_FLUSH, place));
  assert_shown (pipeline, expected);
}

/* A sink drops frames before the segment; none should be read in vain. */
static void
note_first (GstElement *identity, GstBuffer *buffer, gpointer first)
{
  if (*(gint64 *) first < 0)
    *(gint64 *) first = GST_BUFFER_OFFSET (buffer);
}

CHECK_TEST (test_a_seek_reads_and_shows_the_frame_of_that_time)
{
  GstElement *pipeline, *identity;
  gint64 first_read = 0;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 31, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source framerate=30/1 ! identity name=identity ! "
      "fakesink name=sink",
      GST_STATE_PAUSED);
  assert_shown (pipeline, 0);
  identity = gst_bin_get_by_name (GST_BIN (pipeline), "identity");
  g_signal_connect (identity, "handoff", G_CALLBACK (note_first), &first_read);
  for (gint i = 30; i >= 0; i--) {
    /* rounded down, most of these are before i / 30 s */
    GstClockTime start = gst_util_uint64_scale (i, GST_SECOND, 30);

    for (gint end = 0; end <= 1; end++) {
      first_read = -1;
      fail_unless (gst_element_seek_simple (pipeline, GST_FORMAT_TIME,
          GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
          start + end * 33333332));
      assert_shown (pipeline, i);
      fail_unless_equals_int64 (first_read, i);
    }
  }
  gst_object_unref (identity);
  check_stop (pipeline);
}

CHECK_TEST (test_a_seek_in_frames_shows_that_frame)
{
  g_autoptr (CheckPipeline) pipeline = NULL;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 31, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source framerate=30/1 ! fakesink name=sink",
      GST_STATE_PAUSED);
  for (gint i = 0; i < 31; i++) {
    assert_seek (pipeline, GST_FORMAT_DEFAULT, i, i);
  }
}

static void
note_offset (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer offsets)
{
  g_string_append_printf (
      offsets, " %" G_GUINT64_FORMAT, GST_BUFFER_OFFSET (buffer));
}

/* a stop that leaves position and stop as they are */
#define KEEP (-2)

/* Plays from @start to @stop (ns, -1 for open) and compares the offsets. */
static void
assert_played (gdouble rate, gint64 start, gint64 stop, const gchar *expected)
{
  g_autoptr (CheckPipeline) pipeline =
      make_pipeline ("picturesrc name=source framerate=10/1 ! "
                     "fakesink name=sink signal-handoffs=true sync=false",
          GST_STATE_PAUSED);
  g_autoptr (GstElement) sink =
      gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_autoptr (GString) offsets = g_string_new (NULL);

  fail_unless (gst_element_seek (pipeline, rate, GST_FORMAT_TIME,
      GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, GST_SEEK_TYPE_SET, start,
      stop == KEEP ? GST_SEEK_TYPE_NONE : GST_SEEK_TYPE_SET, stop));
  fail_unless_equals_int (
      gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT),
      GST_STATE_CHANGE_SUCCESS);
  g_signal_connect (sink, "handoff", G_CALLBACK (note_offset), offsets);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_end (pipeline);
  fail_unless_equals_string (offsets->str, expected);
}

/* Also where the time of that frame is beyond what 64 bits hold. */
CHECK_TEST (test_a_seek_beyond_the_end_plays_nothing)
{
  const gint64 places[] = {6, 60, G_GINT64_CONSTANT (1) << 62};

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 6, 2, 5, 1);
  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    g_autoptr (CheckPipeline) pipeline =
        make_pipeline ("picturesrc name=source framerate=10/1 ! "
                       "fakesink name=sink signal-handoffs=true sync=false",
            GST_STATE_PAUSED);
    g_autoptr (GstElement) sink =
        gst_bin_get_by_name (GST_BIN (pipeline), "sink");
    g_autoptr (GString) offsets = g_string_new (NULL);

    g_signal_connect (sink, "handoff", G_CALLBACK (note_offset), offsets);
    fail_unless (gst_element_seek_simple (
        pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, places[i]));
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    wait_for_end (pipeline);
    fail_unless_equals_string (offsets->str, "");
  }
}

CHECK_TEST (test_a_segment_ends_where_it_should_in_both_directions)
{
  const gint64 ms = GST_MSECOND;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 6, 2, 5, 1);
  assert_played (1, 0, -1, " 0 1 2 3 4 5");
  assert_played (1, 200 * ms, 400 * ms, " 2 3");
  assert_played (1, 250 * ms, 401 * ms, " 2 3 4");
  assert_played (-1, 0, 600 * ms, " 5 4 3 2 1 0");
  assert_played (-1, 0, -1, " 5 4 3 2 1 0");
  assert_played (-1, 0, KEEP, " 0"); /* what it shows, and what is before */
  assert_played (-1, 200 * ms, 400 * ms, " 3 2");
  assert_played (-1, 0, 401 * ms, " 4 3 2 1 0");
}

CHECK_TEST (test_duration_is_known_in_time_and_frames)
{
  g_autoptr (CheckPipeline) pipeline = NULL;
  gint64 value;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 31, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source framerate=10/1 ! fakesink name=sink",
      GST_STATE_PAUSED);
  fail_unless (gst_element_query_duration (pipeline, GST_FORMAT_TIME, &value));
  fail_unless_equals_int64 (value, 3100 * GST_MSECOND);
  fail_unless (
      gst_element_query_duration (pipeline, GST_FORMAT_DEFAULT, &value));
  fail_unless_equals_int64 (value, 31);
  assert_seek (pipeline, GST_FORMAT_TIME, 700 * GST_MSECOND, 7);
  fail_unless (gst_element_query_position (pipeline, GST_FORMAT_TIME, &value));
  fail_unless_equals_int64 (value, 700 * GST_MSECOND);
}

/* What gst_segment_do_seek () makes of a seek that names a stop before the
 * position, and of one backwards that names nothing, before a frame goes in
 * between: it counts from a position that is not in the segment, and the next
 * running time is a critical. */
CHECK_TEST (test_a_stop_before_the_position_leaves_a_segment_that_counts)
{
  GstElement *pipeline, *source;
  GstSegment segment;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 31, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source framerate=10/1 ! fakesink name=sink",
      GST_STATE_PAUSED);
  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.duration = 3100 * GST_MSECOND;
  segment.position = 2 * GST_SECOND;
  fail_unless (
      gst_segment_do_seek (&segment, 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH,
          GST_SEEK_TYPE_NONE, 0, GST_SEEK_TYPE_SET, GST_SECOND, NULL));
  for (guint i = 0; i < 2; i++) {
    fail_unless (GST_BASE_SRC_GET_CLASS (source)->do_seek (
        GST_BASE_SRC (source), &segment));
    fail_unless_equals_uint64 (segment.position, GST_SECOND);
    fail_unless_equals_uint64 (segment.offset, i == 0 ? GST_SECOND : 0);
    if (i == 0)
      fail_unless (gst_segment_do_seek (&segment, -1, GST_FORMAT_TIME,
          GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_NONE, 0, GST_SEEK_TYPE_NONE, 0,
          NULL));
  }
  fail_unless_equals_uint64 (gst_segment_to_running_time (
                                 &segment, GST_FORMAT_TIME, 900 * GST_MSECOND),
      100 * GST_MSECOND);
  gst_object_unref (source);
  check_stop (pipeline);
}

static void
assert_seekable (GstPad *pad, GstFormat format, gint64 end)
{
  g_autoptr (GstQuery) query = gst_query_new_seeking (format);
  gboolean seekable = FALSE;
  gint64 from = -1, to = -1;

  fail_unless (gst_pad_query (pad, query));
  gst_query_parse_seeking (query, NULL, &seekable, &from, &to);
  fail_unless (seekable, "not in %s", gst_format_get_name (format));
  fail_unless_equals_int64 (from, 0);
  fail_unless_equals_int64 (to, end);
}

CHECK_TEST (test_queries_answer_in_time_and_frames)
{
  GstElement *pipeline, *source;
  g_autoptr (GstPad) pad = NULL;
  gint64 value;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 31, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source framerate=10/1 ! fakesink", GST_STATE_PAUSED);
  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  pad = gst_element_get_static_pad (source, "src");
  assert_seekable (pad, GST_FORMAT_TIME, 3100 * GST_MSECOND);
  assert_seekable (pad, GST_FORMAT_DEFAULT, 31);
  fail_unless (gst_pad_query_convert (
      pad, GST_FORMAT_DEFAULT, 5, GST_FORMAT_TIME, &value));
  fail_unless_equals_int64 (value, 500 * GST_MSECOND);
  /* not the 1.8e18th frame */
  fail_if (gst_pad_query_convert (
      pad, GST_FORMAT_DEFAULT, -5, GST_FORMAT_TIME, &value));
  fail_if (gst_pad_query_convert (
      pad, GST_FORMAT_TIME, -5, GST_FORMAT_DEFAULT, &value));
  gst_object_unref (source);
  check_stop (pipeline);
}

static void
assert_rate (const gchar *launch, gint n, gint d)
{
  g_autoptr (CheckPipeline) pipeline = make_pipeline (launch, GST_STATE_PAUSED);
  g_autoptr (GstElement) source =
      gst_bin_get_by_name (GST_BIN (pipeline), "source");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (source, "src");
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);
  GstVideoInfo info;
  gint64 duration;

  fail_unless (gst_video_info_from_caps (&info, caps));
  fail_unless_equals_int (GST_VIDEO_INFO_FPS_N (&info), n);
  fail_unless_equals_int (GST_VIDEO_INFO_FPS_D (&info), d);
  fail_unless (gst_pad_query_duration (pad, GST_FORMAT_TIME, &duration));
  fail_unless_equals_int64 (
      duration, gst_util_uint64_scale (4, d * GST_SECOND, n));
}

CHECK_TEST (test_a_framerate_that_is_not_set_is_that_of_downstream)
{
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 4, 2, 5, 1);
  assert_rate ("picturesrc name=source ! fakesink", 25, 1);
  assert_rate (
      "picturesrc name=source ! video/x-raw,framerate=100/3 ! fakesink", 100,
      3);
  assert_rate ("picturesrc name=source ! video/x-raw,framerate=[1/1,10/1] ! "
               "fakesink",
      10, 1);
  assert_rate ("picturesrc name=source framerate=7/1 ! "
               "video/x-raw,framerate=[1/1,10/1] ! fakesink",
      7, 1);
}

/* Which of three dimensions are what: told once where it is a guess. */
CHECK_TEST (test_three_dimensions_are_a_colour_picture_or_what_axes_say)
{
  const struct {
    guint64 dims[3];
    const gchar *axes;
    guint n_frames, width, height, n_channels, n_told;
  } cases[] = {{{4, 6, 3}, "", 1, 6, 4, 3, 1}, {{4, 6, 4}, "", 1, 6, 4, 4, 1},
      {{4, 6, 5}, "", 4, 5, 6, 1, 0}, {{4, 6, 3}, "nyx", 4, 3, 6, 1, 0},
      {{4, 6, 3}, "yxc", 1, 6, 4, 3, 0}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const guint64 *dims = cases[i].dims;
    g_autoptr (CheckBus) bus = gst_bus_new ();
    GstMessage *message;
    g_autoptr (CheckHarness) h = NULL;
    guint n = 0;

    write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, dims[0], dims[1], dims[2], 1);
    h = make_harness ();
    g_object_set (h->element, "axes", cases[i].axes, NULL);
    gst_element_set_bus (h->element, bus);
    gst_harness_play (h);
    for (guint frame = 0; frame < cases[i].n_frames; frame++) {
      g_autoptr (GstBuffer) buffer = pull (h);

      assert_frame (h, buffer, frame,
          cases[i].n_channels == 1   ? GST_VIDEO_FORMAT_GRAY8
          : cases[i].n_channels == 3 ? GST_VIDEO_FORMAT_RGB
                                     : GST_VIDEO_FORMAT_RGBA,
          cases[i].width, cases[i].height, cases[i].n_channels);
    }
    assert_end (h);
    while ((message = gst_bus_pop_filtered (bus, GST_MESSAGE_INFO))) {
      n++;
      gst_message_unref (message);
    }
    fail_unless_equals_int (n, cases[i].n_told);
  }
}

/* --- tensors --- */

static void
assert_caps (GstHarness *h, const gchar *expected)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (expected);
  g_autofree gchar *found = gst_caps_to_string (caps);

  fail_unless (
      gst_caps_is_subset (caps, wanted), "%s, expected is %s", found, expected);
}

#define TENSOR(TYPE, DIMENSIONS) \
  "other/tensors, format = static, num_tensors = 1, types = " TYPE \
  ", dimensions = (string) " DIMENSIONS ", framerate = 25/1"

/* The bytes of the file, whatever the type. */
CHECK_TEST (test_other_types_and_shapes_are_tensors)
{
  static const struct {
    GstImagingNdArrayType type;
    guint n_dims;
    guint64 dims[4];
    guint n_frames;
    const gchar *caps;
  } cases[] = {
      {GST_IMAGING_ND_ARRAY_TYPE_F32, 3, {3, 5, 7, 1}, 3,
          TENSOR ("float32", "7:5:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_F64, 3, {5, 7, 3, 1}, 1,
          TENSOR ("float64", "3:7:5:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_F16, 2, {5, 7, 1, 1}, 1,
          TENSOR ("float16", "7:5:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_I8, 4, {2, 5, 7, 2}, 2,
          TENSOR ("int8", "2:7:5:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_I16, 2, {5, 7, 1, 1}, 1,
          TENSOR ("int16", "7:5:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_I32, 1, {5, 1, 1, 1}, 1,
          TENSOR ("int32", "5:1:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_U32, 0, {1, 1, 1, 1}, 1,
          TENSOR ("uint32", "1:1:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_I64, 2, {5, 7, 1, 1}, 1,
          TENSOR ("int64", "7:5:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_U64, 2, {5, 7, 1, 1}, 1,
          TENSOR ("uint64", "7:5:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64, 3, {3, 5, 7, 1}, 3,
          TENSOR ("float32", "2:7:5:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128, 2, {5, 7, 1, 1}, 1,
          TENSOR ("float64", "2:7:5:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 4, {2, 5, 7, 6}, 2,
          TENSOR ("uint8", "6:7:5:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_BOOL, 2, {5, 7, 1, 1}, 1,
          "video/x-raw, format = GRAY8, width = 7, height = 5"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const guint64 *dims = cases[i].dims;
    gboolean is_video = g_str_has_prefix (cases[i].caps, "video");
    g_autofree gchar *content = NULL;
    gsize size, at = 128; /* of the header */
    GstHarness *h;

    write_array (
        cases[i].type, cases[i].n_dims, dims[0], dims[1], dims[2], dims[3]);
    fail_unless (g_file_get_contents (path, &content, &size, NULL));
    h = make_harness ();
    gst_harness_play (h);
    for (guint frame = 0; frame < cases[i].n_frames; frame++) {
      g_autoptr (GstBuffer) buffer = pull (h);
      gsize expected = (size - 128) / cases[i].n_frames;

      assert_caps (h, cases[i].caps);
      if (!is_video) { /* whose rows are padded */
        fail_unless_equals_uint64 (gst_buffer_get_size (buffer), expected);
        fail_unless (
            gst_buffer_memcmp (buffer, 0, content + at, expected) == 0);
      }
      at += expected;
    }
    assert_end (h);
    gst_harness_teardown (h);
  }
}

/* The peer chooses among the ways to describe the same samples. */
CHECK_TEST (test_the_next_element_chooses_video_or_a_tensor)
{
  static const struct {
    GstImagingNdArrayType type;
    guint64 channels;
    const gchar *peer, *caps;
  } cases[] = {
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 1, "ANY", "video/x-raw"},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 1, "other/tensors; video/x-raw",
          "video/x-raw"},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 1, "other/tensors",
          TENSOR ("uint16", "6:4:1:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 1,
          "other/tensors, dimensions = (string) 1:6:4:1",
          TENSOR ("uint16", "1:6:4:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 3, "other/tensors",
          TENSOR ("uint16", "3:6:4:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 4, "other/tensors",
          TENSOR ("uint8", "4:6:4:1")},
      {GST_IMAGING_ND_ARRAY_TYPE_F16, 1, "other/tensors, types = float32",
          TENSOR ("float32", "6:4:1:1")},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (CheckHarness) h = NULL;
    g_autoptr (GstBuffer) buffer = NULL;

    write_array (cases[i].type, 4, 2, 4, 6, cases[i].channels);
    h = make_harness ();
    gst_harness_set_sink_caps_str (h, cases[i].peer);
    gst_harness_play (h);
    buffer = pull (h);
    assert_caps (h, cases[i].caps);
  }
}

CHECK_TEST (test_half_floats_are_widened_exactly)
{
  static const guint16 halves[] = {
      0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00, 0xfc00};
  static const gfloat floats[] = {
      1, -2, 65504, 0x1p-14f, 0x1p-24f, -0.0f, INFINITY, -INFINITY};
  const guint64 dims[] = {2, 4};
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (GstBuffer) buffer = NULL;

  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F16, 2, dims, halves, NULL));
  h = make_harness ();
  gst_harness_set_sink_caps_str (h, "other/tensors, types = float32");
  gst_harness_play (h);
  buffer = pull (h);
  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), sizeof (floats));
  fail_unless (gst_buffer_memcmp (buffer, 0, floats, sizeof (floats)) == 0);
}

/* --- loops and lists --- */

CHECK_TEST (test_a_loop_goes_on_in_offsets_and_times)
{
  GstHarness *h;
  GstBuffer *first[5];
  gint64 duration = 0;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 5, 2, 8, 1);
  h = make_harness ();
  g_object_set (h->element, "loop", TRUE, "num-buffers", 17, NULL);
  gst_util_set_object_arg (G_OBJECT (h->element), "framerate", "30/1");
  gst_harness_play (h);
  for (guint i = 0; i < 17; i++) {
    GstBuffer *buffer = pull (h);
    guint8 expected[16];

    fail_unless (buffer != NULL);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), i);
    fail_unless_equals_clocktime (
        GST_BUFFER_PTS (buffer), gst_util_uint64_scale (i, GST_SECOND, 30));
    if (i < 5) {
      first[i] = buffer;
      continue;
    }
    fail_unless (gst_buffer_extract (first[i % 5], 0, expected, 16) == 16);
    fail_unless (gst_buffer_memcmp (buffer, 0, expected, 16) == 0);
    gst_buffer_unref (buffer);
  }
  assert_end (h);
  fail_if (
      gst_element_query_duration (h->element, GST_FORMAT_TIME, &duration) &&
      duration != -1);
  for (guint i = 0; i < 5; i++)
    gst_buffer_unref (first[i]);
  gst_harness_teardown (h);
}

CHECK_TEST (test_a_loop_can_be_sought_in_any_round)
{
  GstElement *pipeline, *source;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 5, 2, 8, 1);
  pipeline = make_pipeline ("picturesrc name=source framerate=10/1 loop=true ! "
                            "fakesink name=sink",
      GST_STATE_PAUSED);
  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  assert_seek (pipeline, GST_FORMAT_TIME, 123 * GST_SECOND / 10, 123);
  assert_seek (pipeline, GST_FORMAT_DEFAULT, 7, 7);
  /* backwards from where it is, and from the end of the first round */
  fail_unless (gst_element_seek (pipeline, -1, GST_FORMAT_TIME,
      GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, GST_SEEK_TYPE_SET, 0,
      GST_SEEK_TYPE_SET, 7 * GST_SECOND / 10));
  assert_shown (pipeline, 6);
  fail_unless (gst_element_seek (pipeline, -1, GST_FORMAT_TIME,
      GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, GST_SEEK_TYPE_SET, 0,
      GST_SEEK_TYPE_SET, -1));
  assert_shown (pipeline, 4);
  gst_object_unref (source);
  check_stop (pipeline);
}

/* Of one frame, all pixels of @value. Returns: its path */
static gchar *
write_flat (const gchar *name, guint8 value)
{
  gchar *file = check_path_of (name);
  const guint64 dims[] = {2, 8};
  guint8 pixels[16];

  memset (pixels, value, sizeof (pixels));
  fail_unless (gst_imaging_npy_save (
      file, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, pixels, NULL));
  return file;
}

CHECK_TEST (test_a_list_is_played_in_its_order)
{
  g_autofree gchar *a = write_flat ("a 1.npy", 1);
  g_autofree gchar *b = write_flat ("b.npy", 2);
  g_autofree gchar *list =
      g_strdup_printf ("<\"%s\", \"%s\", \"%s\">", b, a, b);
  const guint8 expected[] = {2, 1, 2};
  GstElement *source = gst_element_factory_make ("picturesrc", NULL);
  GstHarness *h;

  gst_util_set_object_arg (G_OBJECT (source), "locations", list);
  h = gst_harness_new_with_element (source, NULL, "src");
  gst_object_unref (source);
  gst_harness_play (h);
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstBuffer) buffer = pull (h);
    guint8 value;

    fail_unless (gst_buffer_extract (buffer, 0, &value, 1) == 1);
    fail_unless_equals_int (value, expected[i]);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), i);
  }
  assert_end (h);
  gst_harness_teardown (h);
  g_unlink (a);
  g_unlink (b);
}

CHECK_TEST (test_lists_from_text_and_back)
{
  /* as the shell gives them to gst-launch-1.0 */
  const gchar *words[] = {
      "picturesrc", "locations=\"<a.tif, 01, \\\"c d.tif\\\">\"", NULL};
  g_autoptr (GstElement) source = gst_parse_launchv (words, NULL);
  g_auto (GValue) value = G_VALUE_INIT;
  static const gchar *const expected[] = {"a.tif", "01", "c d.tif"};

  fail_unless (source != NULL);
  g_value_init (&value, GST_TYPE_ARRAY);
  g_object_get_property (G_OBJECT (source), "locations", &value);
  fail_unless_equals_int (gst_value_array_get_size (&value), 3);
  for (guint i = 0; i < 3; i++)
    fail_unless_equals_string (
        g_value_get_string (gst_value_array_get_value (&value, i)),
        expected[i]);
}

/* --- errors --- */

/* Waits for the first error of @pipeline, the one that users see; GstBaseSrc
 * adds another without a text of its own. */
static void
assert_error (
    GstElement *pipeline, GQuark domain, gint code, const gchar *words)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  check_message_says (
      check_message (bus, GST_MESSAGE_ERROR), domain, code, words);
}

static void
assert_launch_fails (
    const gchar *launch, GQuark domain, gint code, const gchar *words)
{
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (launch, NULL);
  g_autoptr (GstElement) source =
      gst_bin_get_by_name (GST_BIN (pipeline), "source");

  g_object_set (source, "location", path, NULL);
  fail_unless_equals_int (gst_element_set_state (pipeline, GST_STATE_PAUSED),
      GST_STATE_CHANGE_FAILURE);
  assert_error (pipeline, domain, code, words);
}

CHECK_TEST (test_settings_that_contradict_are_an_error)
{
  const struct {
    const gchar *launch;
    GQuark domain;
    gint code;
    const gchar *words;
  } cases[] = {
      {"picturesrc name=source locations=<a,b> ! fakesink",
          CHECK_CODE (RESOURCE, SETTINGS), "and locations (2) are set"},
      {"picturesrc name=source axes=yx ! fakesink", CHECK_CODE (STREAM, FORMAT),
          "u8 [2, 3, 5], and axes is \"yx\""},
      {"picturesrc name=source axes=xyn ! fakesink",
          CHECK_CODE (STREAM, FORMAT), "axes is \"xyn\": a letter for each"},
  };

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 2, 3, 5, 1);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_launch_fails (
        cases[i].launch, cases[i].domain, cases[i].code, cases[i].words);
}

static void
assert_start_fails (GQuark domain, gint code, const gchar *words)
{
  assert_launch_fails (
      "picturesrc name=source ! fakesink", domain, code, words);
}

CHECK_TEST (test_a_file_that_cannot_be_opened_is_an_error_with_its_name)
{
  gchar *file = path;

  assert_start_fails (CHECK_CODE (RESOURCE, NOT_FOUND), "frames.npy");
  path = (gchar *) check_folder (); /* it is empty */
  assert_start_fails (
      CHECK_CODE (RESOURCE, NOT_FOUND), "is a folder without files");
  path = NULL;
  assert_start_fails (CHECK_CODE (RESOURCE, NOT_FOUND), "property location");
  path = (gchar *) "";
  assert_start_fails (CHECK_CODE (RESOURCE, NOT_FOUND), "property location");
  path = file;
}

CHECK_TEST (test_a_file_without_frames_is_an_error_with_what_it_is)
{
  static const struct {
    GstImagingNdArrayType type;
    guint n_dims;
    guint64 dims[4];
    const gchar *words;
  } cases[] = {
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 4, {2, 3, 4, 0}, "u8 [2, 3, 4, 0]"},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 3, {0, 3, 4, 1}, "nothing to play"},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 3, {2, 0, 4, 1}, "nothing to play"},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 2, {3, 0, 1, 1}, "nothing to play"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    write_array (cases[i].type, cases[i].n_dims, cases[i].dims[0],
        cases[i].dims[1], cases[i].dims[2], cases[i].dims[3]);
    assert_start_fails (CHECK_CODE (STREAM, FORMAT), cases[i].words);
  }
  fail_unless (g_file_set_contents (path, "640 480 255", -1, NULL));
  assert_start_fails (CHECK_CODE (STREAM, FORMAT), "no .npy file");
  fail_unless (g_file_set_contents (path, "P5 640 480 255", -1, NULL));
  assert_start_fails (CHECK_CODE (STREAM, FORMAT), "no valid PNM file");
}

/* Holes: they take no room on the disk. */
static void
assert_too_large (const gchar *shape, guint64 size, const gchar *words)
{
  g_autofree gchar *dict = g_strdup_printf (
      "{'descr': '|u1', 'fortran_order': False, 'shape': %s}", shape);
  g_autoptr (GString) header = g_string_new ("\223NUMPY\001");

  g_string_append_len (header, "\0", 1);
  g_string_append_c (header, strlen (dict));
  g_string_append_len (header, "\0", 1);
  g_string_append (header, dict);
  fail_unless (g_file_set_contents (path, header->str, header->len, NULL));
  if (truncate (path, header->len + size) == 0)
    assert_start_fails (CHECK_CODE (STREAM, FORMAT), words);
}

CHECK_TEST (test_frames_larger_than_buffers_are_an_error)
{
  assert_too_large ("(1, 2147483648, 2)", G_GUINT64_CONSTANT (1) << 32,
      "holds u8 [1, 2147483648, 2]: a frame has 4 GiB or more");
  assert_too_large ("(1, 1, 4294967296)", G_GUINT64_CONSTANT (1) << 32,
      "holds u8 [1, 1, 4294967296]: a frame has 4 GiB or more");
}

CHECK_TEST (test_a_file_that_shrinks_while_playing_is_a_read_error)
{
  g_autoptr (CheckPipeline) pipeline = NULL;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 100, 16, 64, 1);
  pipeline =
      make_pipeline ("picturesrc name=source ! fakesink name=sink sync=false",
          GST_STATE_PAUSED);
  fail_unless_equals_int (truncate (path, 128 + 5 * 16 * 64 + 7), 0);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  assert_error (pipeline, CHECK_CODE (RESOURCE, READ),
      "has 5127 bytes after the header, expected are 102400");
}

CHECK_TEST (test_other_caps_downstream_are_an_error_and_no_hang)
{
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (
      "picturesrc name=source ! capsfilter caps=video/x-raw,format=RGB ! fakesink",
      NULL);
  GstElement *source = gst_bin_get_by_name (GST_BIN (pipeline), "source");

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 2, 3, 5, 1);
  g_object_set (source, "location", path, NULL);
  gst_object_unref (source);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  assert_error (pipeline, CHECK_CODE (STREAM, FAILED),
      "does not take what this file holds: video/x-raw, format=(string)GRAY8");
}

/* --- states --- */

static guint
count_descriptors (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir))
    n++;
  return n;
}

CHECK_TEST (test_every_start_plays_from_the_beginning_and_leaks_no_file)
{
  g_autoptr (CheckPipeline) pipeline = NULL;
  guint n = 0;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 10, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source ! fakesink name=sink", GST_STATE_PAUSED);
  for (guint i = 0; i < 30; i++) {
    assert_seek (pipeline, GST_FORMAT_DEFAULT, 5, 5);
    gst_element_set_state (pipeline, i % 2 ? GST_STATE_NULL : GST_STATE_READY);
    if (i == 1)
      n = count_descriptors ();
    if (i > 1 && i % 2)
      fail_unless_equals_int (count_descriptors (), n);
    gst_element_set_state (pipeline, GST_STATE_PAUSED);
    assert_shown (pipeline, 0);
  }
}

CHECK_TEST (test_another_file_is_played_after_a_stop)
{
  g_autoptr (CheckPipeline) pipeline = NULL;
  g_autoptr (GstElement) source = NULL;
  g_autoptr (GstPad) pad = NULL;
  g_autoptr (GstCaps) caps = NULL;
  GstVideoInfo info;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 10, 2, 5, 1);
  pipeline = make_pipeline (
      "picturesrc name=source ! fakesink name=sink", GST_STATE_PAUSED);
  gst_element_set_state (pipeline, GST_STATE_READY);
  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 4, 4, 7, 5, 3);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  assert_shown (pipeline, 0);
  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  pad = gst_element_get_static_pad (source, "src");
  caps = gst_pad_get_current_caps (pad);
  fail_unless (gst_video_info_from_caps (&info, caps));
  fail_unless_equals_int (GST_VIDEO_INFO_FORMAT (&info), GST_VIDEO_FORMAT_RGB);
  fail_unless_equals_int (GST_VIDEO_INFO_WIDTH (&info), 5);
}

CHECK_TEST (test_properties_read_back)
{
  g_autoptr (GstElement) source = gst_element_factory_make ("picturesrc", NULL);
  g_autofree gchar *location = NULL;
  gint n, d;
  g_auto (GValue) value = G_VALUE_INIT;

  g_object_get (source, "location", &location, NULL);
  fail_unless (location == NULL);
  g_value_init (&value, GST_TYPE_FRACTION);
  g_object_get_property (G_OBJECT (source), "framerate", &value);
  fail_unless_equals_int (gst_value_get_fraction_numerator (&value), 0);
  fail_unless_equals_int (gst_value_get_fraction_denominator (&value), 1);

  g_object_set (source, "location", "a.npy", "framerate", 100, 3, NULL);
  g_object_get (source, "location", &location, "framerate", &n, &d, NULL);
  fail_unless_equals_string (location, "a.npy");
  fail_unless_equals_int (n, 100);
  fail_unless_equals_int (d, 3);
}

CHECK_TEST (test_npysrc_is_the_same_under_its_older_name)
{
  g_autoptr (GstElement) source = gst_element_factory_make ("npysrc", NULL);
  g_autoptr (GstElement) other = make_source ();

  fail_unless (source != NULL);
  fail_unless (g_type_is_a (G_OBJECT_TYPE (source), G_OBJECT_TYPE (other)));
  fail_unless_equals_string (
      GST_OBJECT_NAME (gst_element_get_factory (source)), "npysrc");
  fail_unless_equals_string (
      GST_OBJECT_NAME (gst_element_get_factory (other)), "picturesrc");
}

/* An application's own type has no factory, and no name of one. */
CHECK_TEST (test_a_type_without_a_factory_tells_its_progress)
{
  g_autoptr (CheckPipeline) pipeline = gst_pipeline_new (NULL);
  GstElement *source = make_source ();
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  gboolean at_end;
  guint n_told = 0;
  GTypeQuery query;
  GstMessage *m;

  write_array (GST_IMAGING_ND_ARRAY_TYPE_U8, 3, 20, 2, 8, 1);
  g_type_query (G_OBJECT_TYPE (source), &query);
  gst_object_unref (source);
  source =
      g_object_new (g_type_register_static_simple (query.type, "OwnSource",
                        query.class_size, NULL, query.instance_size, NULL, 0),
          "location", path, NULL);
  gst_bin_add_many (GST_BIN (pipeline), source, sink, NULL);
  fail_unless (gst_element_link (source, sink));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  do {
    m = gst_bus_timed_pop_filtered (bus, CHECK_TIMEOUT,
        GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_ELEMENT);
    fail_unless (m && GST_MESSAGE_TYPE (m) != GST_MESSAGE_ERROR);
    n_told += gst_message_has_name (m, "OwnSource-progress");
    at_end = GST_MESSAGE_TYPE (m) == GST_MESSAGE_EOS;
    gst_message_unref (m);
  } while (!at_end);
  fail_unless_equals_int (n_told, 10);
}
