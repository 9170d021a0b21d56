/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingFilter, by small subclasses and by lapsharpen, on the CPU and on
 * the mock device: vfuncs, frames and properties. */
#include "filter-check.h"

/* --- the vfuncs ----------------------------------------------------------- */

CHECK_CASE ("vfuncs", filter_set_up, filter_tear_down)

CHECK_LOOP_TEST (test_each_open_has_its_close_over_caps_changes, 2)
{
  const gchar *formats[] = {"GRAY8", "GRAY16_LE", "RGBA", "I420", "GRAY8"};
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    stage_caps (&s, formats[i], 641 - 2 * i, 3 + i);
    for (guint seed = 0; seed < 3; seed++)
      stage_push_and_check (&s, seed, __i__);
    fail_unless_equals_int (filter_seen.n_opened - filter_seen.n_closed, 1);
  }
  fail_unless (filter_seen.n_opened >= 5);
  fail_unless_equals_int (filter_seen.n_processed, 15);
}

CHECK_LOOP_TEST (test_it_starts_and_stops_200_times, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint i = 0; i < 200; i++) {
    stage_push_and_check (&s, i, __i__);
    fail_unless_equals_uint64 (check_stat (s.element, "frames"), 1);
    gst_element_set_state (s.element, GST_STATE_READY);
    fail_unless_equals_int (filter_seen.n_opened, filter_seen.n_closed);
    if (i % 2)
      gst_element_set_state (s.element, GST_STATE_NULL);
    fail_unless_equals_int (
        gst_element_set_state (s.element, GST_STATE_PLAYING),
        GST_STATE_CHANGE_SUCCESS);
    /* the pad of the harness remembers its events and sends them again */
    gst_harness_push_event (s.h, gst_event_new_stream_start ("again"));
    stage_caps (&s, "GRAY8", 641, 3 + i % 2);
    gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  }
}

CHECK_TEST (test_absent_optional_vfuncs_are_not_called)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "src");

  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  fail_unless (gst_harness_push_event (s.h, gst_event_new_flush_start ()));
  fail_unless (gst_harness_push_event (s.h, gst_event_new_flush_stop (TRUE)));
}

CHECK_LOOP_TEST (test_a_flush_resets, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  GstSegment segment;

  stage_push_and_check (&s, 0, __i__);
  fail_unless_equals_int (filter_seen.n_reset, 0);
  gst_harness_push_event (s.h, gst_event_new_flush_start ());
  gst_harness_push_event (s.h, gst_event_new_flush_stop (TRUE));
  fail_unless_equals_int (filter_seen.n_reset, 1);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  stage_push_and_check (&s, 1, __i__);
}

CHECK_TEST (test_a_kernel_that_does_not_open_is_one_error)
{
  struct {
    ImkStatus status;
    GQuark domain;
    gint code;
  } cases[] = {
      {IMK_ERROR_CONFIG, CHECK_CODE (LIBRARY, SETTINGS)},
      {IMK_ERROR_IMAGE, CHECK_CODE (STREAM, FORMAT)},
      {IMK_ERROR_MEMORY, CHECK_CODE (RESOURCE, NO_SPACE_LEFT)},
      {IMK_ERROR_FILE, CHECK_CODE (RESOURCE, OPEN_READ)},
      {IMK_ERROR_UNAVAILABLE, CHECK_CODE (RESOURCE, NOT_FOUND)},
      {IMK_ERROR_DEVICE, CHECK_CODE (LIBRARY, FAILED)},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Stage) s = {NULL};

    filter_seen.open_fails = cases[i].status;
    s = stage_new ("testinvert backend=cpu", "sink", "src");
    for (guint n = 0; n < 3; n++)
      check_push (s.h, check_noise (&s.info, n), GST_FLOW_NOT_NEGOTIATED);
    check_message_says (check_message (s.bus, GST_MESSAGE_ERROR),
        cases[i].domain, cases[i].code, "told not to open");
    check_no_messages (s.bus, GST_MESSAGE_ERROR);
  }
  fail_unless_equals_int (filter_seen.n_processed, 0);
}

static void
push_caps (Stage *s, const gchar *format, gint width, gint height)
{
  g_autofree gchar *text = check_caps_string (format, width, height);
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);

  gst_harness_push_event (s->h, gst_event_new_caps (caps));
}

/* The base class, which never took the others, does not set them again. */
CHECK_LOOP_TEST (test_refused_caps_leave_the_former_ones_in_force, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");

  stage_push_and_check (&s, 0, __i__);
  filter_seen.open_fails = IMK_ERROR_CONFIG;
  push_caps (&s, "RGBA", 643, 5);
  filter_seen.open_fails = IMK_OK;
  push_caps (&s, "GRAY8", 641, 3);
  stage_push_and_check (&s, 1, __i__);
  fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
}

CHECK_TEST (test_a_property_that_comes_too_late_is_said_once)
{
  g_auto (Stage) s =
      stage_new ("testinvert backend=cpu n-threads=2", "sink", "src");

  stage_push_and_check (&s, 0, IMK_BACKEND_CPU);
  g_object_set (s.element, "n-threads", 2, NULL); /* as it was */
  check_no_messages (s.bus, GST_MESSAGE_WARNING);
  g_object_set (s.element, "backend", GST_IMAGING_BACKEND_CUDA, NULL);
  g_object_set (s.element, "n-threads", 1, NULL);
  check_warning (s.bus, LIBRARY, SETTINGS, "backend was set after");
  check_no_messages (s.bus, GST_MESSAGE_WARNING);
  stage_push_and_check (&s, 1, IMK_BACKEND_CPU);
}

/* --- frames --------------------------------------------------------------- */

CHECK_CASE ("frames", filter_set_up, filter_tear_down)

CHECK_LOOP_TEST (test_any_stride_and_format_gives_the_same_pixels, 2)
{
  const gchar *formats[] = {"GRAY8", "GRAY16_LE", "RGBA", "I420"};
  guint paddings[] = {0, 4, 60};
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  guint seed = 0;

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint p = 0; p < G_N_ELEMENTS (paddings); p++) {
      g_autoptr (GstBuffer) out = NULL;

      stage_caps (&s, formats[f], 641, 5);
      check_push (
          s.h, check_noise_padded (&s.info, ++seed, paddings[p]), GST_FLOW_OK);
      out = check_pull (s.h);
      stage_check_made (&s, out, seed, __i__);
    }
}

CHECK_LOOP_TEST (test_1x1_frames_pass, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");

  stage_caps (&s, "GRAY8", 1, 1);
  stage_push_and_check (&s, 1, __i__);
  stage_caps (&s, "I420", 1, 1);
  stage_push_and_check (&s, 2, __i__);
}

static GstBuffer *
small_buffer (Stage *s, gint memory)
{
  GstImagingContext *context;
  GstAllocator *allocator;
  GstBuffer *buffer;

  if (memory == 0)
    return gst_buffer_new_allocate (NULL, s->info.size - 5, NULL);
  context = check_context (0);
  allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, NULL);
  buffer = gst_buffer_new_allocate (allocator, s->info.size - 5, NULL);
  gst_object_unref (allocator);
  g_object_unref (context);
  return buffer;
}

/* Nobody's device is broken because a source sends nonsense. */
CHECK_LOOP_TEST (test_a_buffer_that_is_too_small_is_an_error_and_no_fallback, 2)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < 2 * G_N_ELEMENTS (elements); i++) {
    g_autofree gchar *line = g_strdup_printf (
        "%s backend=%s", elements[i % 2], filter_backends[__i__]);
    g_auto (Stage) s = stage_new (line, "sink", "src");

    check_push (s.h, small_buffer (&s, i / 2), GST_FLOW_ERROR);
    check_message_says (
        check_message (s.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING),
        CHECK_CODE (STREAM, FORMAT), "too small");
    check_no_messages (s.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  }
}

/* The rows of GStreamer's default are padded to 4 bytes, the last one as well.
 */
CHECK_LOOP_TEST (test_a_frame_without_the_end_of_its_last_row_is_too_small, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 253, NULL);

  stage_caps (&s, "GRAY8", 61, 4);
  gst_buffer_memset (buffer, 0, 0, -1);
  check_push (s.h, buffer, GST_FLOW_ERROR);
  check_error (s.bus, STREAM, FORMAT,
      "253 bytes is too small for a 61x4 GRAY8 frame, which has 256: rows are "
      "padded to multiples of 4 bytes, here 64,");
}

/* Whatever failed before a good frame is another story than what fails after
 * it. */
CHECK_TEST (test_each_failure_with_a_good_frame_between_is_said)
{
  g_auto (Stage) s = stage_new ("testinvert backend=cpu", "sink", "src");

  for (guint i = 0; i < 3; i++) {
    for (guint n = 0; n < 2; n++)
      check_push (s.h, gst_buffer_new_allocate (NULL, 9, NULL), GST_FLOW_ERROR);
    fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
    stage_push_and_check (&s, i, IMK_BACKEND_CPU);
  }
}

/* Returns: (transfer full): noise in memories of these sizes, with a meta */
static GstBuffer *
noise_in_memories (GstVideoInfo *info, guint seed, const gsize *sizes)
{
  GstBuffer *noise = check_noise (info, seed), *buffer = gst_buffer_new ();
  gsize offset = 0;

  for (guint i = 0; sizes[i]; i++) {
    GstMemory *memory = gst_allocator_alloc (NULL, sizes[i], NULL);
    GstMapInfo map;

    fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
    gst_buffer_extract (noise, offset, map.data, map.size);
    gst_memory_unmap (memory, &map);
    gst_buffer_append_memory (buffer, memory);
    offset += sizes[i];
  }
  fail_unless_equals_uint64 (offset, info->size);
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE,
      GST_VIDEO_INFO_FORMAT (info), info->width, info->height,
      GST_VIDEO_INFO_N_PLANES (info), info->offset, info->stride);
  gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (noise);
  return buffer;
}

CHECK_LOOP_TEST (test_a_plane_in_two_memories_is_refused, 2)
{
  const gsize halves[] = {1024, 908, 0}, planes[] = {512, 128, 128, 0};
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  GstBuffer *out;

  /* a memory for each plane is fine */
  stage_caps (&s, "I420", 32, 16);
  check_push (s.h, noise_in_memories (&s.info, 1, planes), GST_FLOW_OK);
  out = check_pull (s.h);
  stage_check_made (&s, out, 1, __i__);
  gst_buffer_unref (out);

  stage_caps (&s, "GRAY8", 641, 3);
  check_push (s.h, noise_in_memories (&s.info, 2, halves), GST_FLOW_ERROR);
  check_error (s.bus, STREAM, FORMAT, "lies in several memories");
}

CHECK_TEST (test_metas_of_others_stay_on_the_frame)
{
  const gchar *elements[] = {"testinvert", "testmeasure", "lapsharpen"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    g_auto (Stage) s = stage_new (elements[i], "sink", "src");
    GstBuffer *in = check_noise_padded (&s.info, 1, 16), *out;
    g_autoptr (GstCaps) caps = gst_caps_new_empty_simple ("timestamp/x-test");
    GstVideoRegionOfInterestMeta *roi;
    GstVideoMeta *video;

    gst_buffer_add_video_region_of_interest_meta (in, "spot", 3, 1, 7, 2);
    gst_buffer_add_reference_timestamp_meta (in, caps, 42, GST_CLOCK_TIME_NONE);
    check_push (s.h, in, GST_FLOW_OK);
    out = check_pull (s.h);
    roi = gst_buffer_get_video_region_of_interest_meta_id (out, 0);
    fail_unless (roi != NULL, "%s drops regions", elements[i]);
    fail_unless_equals_int (roi->x, 3);
    fail_unless_equals_int (roi->w, 7);
    fail_unless (gst_buffer_get_reference_timestamp_meta (out, caps) != NULL);
    /* and that of the memory is the one of the new memory */
    video = gst_buffer_get_video_meta (out);
    fail_unless (i == 1 || !video || video->stride[0] == 644);
    gst_buffer_unref (out);
  }
}

CHECK_LOOP_TEST (test_a_passed_frame_is_the_same_buffer_and_counts, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");

  for (guint i = 0; i < 20; i++) {
    gboolean identity = i / 3 % 2;

    g_atomic_int_set (&((TestFilter *) s.element)->identity, identity);
    if (identity) {
      g_autoptr (GstBuffer) in = check_noise (&s.info, i), out = NULL;

      check_push (s.h, gst_buffer_ref (in), GST_FLOW_OK);
      out = check_pull (s.h);
      fail_unless (out == in);
    } else {
      stage_push_and_check (&s, i, __i__);
    }
  }
  fail_unless_equals_uint64 (check_stat (s.element, "frames"), 20);
  /* of the last one, counted from 0 */
  fail_unless_equals_uint64 (
      gst_imaging_filter_frame_number (GST_IMAGING_FILTER (s.element)), 19);
}

CHECK_LOOP_TEST (test_stats_are_plausible, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("testinvert backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  gdouble p50 = -1, p99 = -1, max = -1, all;
  gint64 start = g_get_monotonic_time ();
  GstStructure *stats;

  filter_check_active (s.element, filter_backends[__i__], "none");
  for (guint i = 0; i < 50; i++)
    stage_push_and_check (&s, i, __i__);
  all = g_get_monotonic_time () - start;
  g_object_get (s.element, "stats", &stats, NULL);
  fail_unless (gst_structure_get (stats, "time-p50", G_TYPE_DOUBLE, &p50,
      "time-p99", G_TYPE_DOUBLE, &p99, "time-max", G_TYPE_DOUBLE, &max, NULL));
  fail_unless (0 < p50 && p50 <= p99 && p99 <= max && max <= all,
      "%f %f %f of %f us", p50, p99, max, all);
  gst_structure_free (stats);
  fail_unless_equals_uint64 (check_stat (s.element, "frames"), 50);
  fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 0);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-copied"), __i__ * 50 * s.info.size);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-uploaded"), __i__ * 50 * s.info.size);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-downloaded"), __i__ * 50 * s.info.size);
  filter_check_active (
      s.element, filter_backends[__i__], __i__ ? "device" : "system");
}

CHECK_TEST (test_a_segment_in_bytes_is_taken_as_it_is)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    g_auto (Stage) s = stage_new (elements[i], "sink", "src");
    GstSegment segment;
    g_autoptr (GstEvent) event = NULL;

    gst_segment_init (&segment, GST_FORMAT_BYTES);
    gst_harness_push_event (s.h, gst_event_new_segment (&segment));
    check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    event = gst_pad_get_sticky_event (s.h->sinkpad, GST_EVENT_SEGMENT, 0);
    gst_event_copy_segment (event, &segment);
    fail_unless_equals_int (segment.format, GST_FORMAT_BYTES);
  }
}

/* --- properties ----------------------------------------------------------- */

typedef struct {
  GstElement *element;
  gint stop;
} Storm;

static gpointer
set_and_get (gpointer data)
{
  Storm *storm = data;

  for (guint i = 0; !g_atomic_int_get (&storm->stop); i++) {
    g_autoptr (GstStructure) stats = NULL;
    g_autofree gchar *backend = NULL, *memory = NULL;

    g_object_set (storm->element, "amount", i % 3 * 0.75, "n-threads", i % 4,
        "border", i % 5, NULL);
    g_object_get (storm->element, "stats", &stats, "active-backend", &backend,
        "active-memory", &memory, NULL);
  }
  return NULL;
}

CHECK_CASE ("properties", filter_set_up, filter_tear_down)

CHECK_LOOP_TEST (test_a_storm_of_properties_does_no_harm, 2)
{
  g_autofree gchar *line =
      g_strdup_printf ("lapsharpen backend=%s", filter_backends[__i__]);
  g_auto (Stage) s = stage_new (line, "sink", "src");
  Storm storm = {s.element, 0};
  GThread *threads[2];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("storm", set_and_get, &storm);
  for (guint i = 0; i < 400; i++) {
    g_autoptr (GstBuffer) out = NULL;
    GstMapInfo map;

    if (i % 50 == 0)
      stage_caps (&s, i % 100 ? "RGBA" : "GRAY8", 33 + i, 5);
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    out = check_pull (s.h);
    fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
    gst_buffer_unmap (out, &map);
  }
  g_atomic_int_set (&storm.stop, 1);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}
