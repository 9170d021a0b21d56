/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingFilter: where its frames lie, which backend takes them, and what
 * becomes of them when the device fails. */
#include "filter-check.h"
#include "imk/version.h"
#include "core/failures.h"

#include <string.h>

/* Returns: (transfer full): noise in memory of a device, and nowhere else */
static GstBuffer *
noise_on_device (const GstVideoInfo *info, guint seed, gint device_id)
{
  g_autoptr (GstImagingContext) context = check_context (device_id);
  const ImkDevice *device = gst_imaging_context_device (context);
  g_autoptr (GstAllocator) allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_DEVICE, NULL);
  GstBuffer *noise = check_noise (info, seed), *buffer = gst_buffer_new ();
  GstMemory *memory = gst_allocator_alloc (allocator, info->size, NULL);
  gpointer stream = gst_imaging_context_stream (context), pointer;
  ImkLocation location;
  GstMapInfo map;
  ImkError error;

  check_ok (gst_imaging_context_push (context, &error), &error);
  check_ok (gst_imaging_memory_acquire (memory, stream, GST_MAP_WRITE, FALSE,
                NULL, &pointer, &location, &error),
      &error);
  fail_unless (gst_buffer_map (noise, &map, GST_MAP_READ));
  check_ok (device->copy (pointer, map.size, map.data, map.size, map.size, 1,
                stream, &error),
      &error);
  gst_buffer_unmap (noise, &map);
  check_ok (
      gst_imaging_memory_release (memory, stream, GST_MAP_WRITE, FALSE, &error),
      &error);
  gst_imaging_context_pop (context);

  gst_buffer_append_memory (buffer, memory);
  gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (noise);
  return buffer;
}

static GstQuery *
query_allocation (Stage *s)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (s->h->srcpad);
  GstQuery *query = gst_query_new_allocation (caps, TRUE);

  fail_unless (gst_pad_peer_query (s->h->srcpad, query));
  return query;
}

static gboolean
offers_video_meta (GstQuery *query)
{
  return gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
}

/* Returns: (transfer full) (nullable): the pool that is offered first */
static GstBufferPool *
offered_pool (GstQuery *query, guint *size)
{
  GstBufferPool *pool = NULL;

  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, size, NULL, NULL);
  return pool;
}

/* --- allocation ----------------------------------------------------------- */

CHECK_CASE ("allocation", filter_set_up, filter_tear_down)

CHECK_TEST (test_a_pinned_pool_is_offered_for_the_device_alone)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < 2 * G_N_ELEMENTS (elements); i++) {
    g_autofree gchar *line = g_strdup_printf (
        "%s backend=%s", elements[i % 2], filter_backends[i / 2]);
    g_auto (Stage) s = stage_new (line, "sink", "src");
    g_autoptr (GstQuery) query = query_allocation (&s);
    guint size = 0;
    GstBufferPool *pool = offered_pool (query, &size);

    fail_unless_equals_int (pool != NULL, i / 2);
    if (pool) {
      GstBuffer *buffer = NULL;

      fail_unless_equals_int (size, s.info.size);
      gst_buffer_pool_set_active (pool, TRUE);
      fail_unless_equals_int (
          gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
      fail_unless (gst_is_imaging_memory (gst_buffer_peek_memory (buffer, 0)));
      fail_if (
          gst_imaging_memory_is_on_device (gst_buffer_peek_memory (buffer, 0)));
      gst_buffer_unref (buffer);
      gst_buffer_pool_set_active (pool, FALSE);
      gst_object_unref (pool);
    }
  }
}

CHECK_TEST (test_rows_of_any_length_are_welcome_where_frames_are_new)
{
  for (guint i = 0; i < G_N_ELEMENTS (filter_backends); i++) {
    g_autofree gchar *line =
        g_strdup_printf ("testinvert backend=%s", filter_backends[i]);
    g_auto (Stage) s = stage_new (line, "sink", "src");
    g_autoptr (GstQuery) query = query_allocation (&s);

    fail_unless (offers_video_meta (query));
  }
}

/* A frame that is only measured goes on as it came: what downstream does not
 * understand must not come. */
CHECK_TEST (test_a_measuring_element_speaks_for_downstream)
{
  g_auto (Stage) s = stage_new ("testmeasure", "sink", "src");
  g_autoptr (GstQuery) query = query_allocation (&s);

  fail_if (offers_video_meta (query));
  gst_query_unref (query);
  gst_harness_add_propose_allocation_meta (s.h, GST_VIDEO_META_API_TYPE, NULL);
  query = query_allocation (&s);
  fail_unless (offers_video_meta (query));
  gst_query_unref (query);
  stage_free (&s);

  /* nobody is downstream */
  s = stage_new ("testmeasure", "sink", "results");
  query = query_allocation (&s);
  fail_unless (offers_video_meta (query));
}

CHECK_TEST (test_frames_in_the_offered_pool_are_not_copied)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    g_autofree gchar *line = g_strdup_printf ("%s backend=cuda", elements[i]);
    g_auto (Stage) s = stage_new (line, "sink", "src");
    g_autoptr (GstQuery) query = query_allocation (&s);
    guint size;
    g_autoptr (GstBufferPool) pool = offered_pool (query, &size);

    gst_buffer_pool_set_active (pool, TRUE);
    for (guint n = 0; n < 5; n++) {
      g_autoptr (GstBuffer) noise = check_noise (&s.info, n), out = NULL;
      GstBuffer *in = NULL;
      GstMapInfo map;

      gst_buffer_pool_acquire_buffer (pool, &in, NULL);
      fail_unless (gst_buffer_map (noise, &map, GST_MAP_READ));
      gst_buffer_fill (in, 0, map.data, map.size);
      gst_buffer_unmap (noise, &map);
      check_push (s.h, in, GST_FLOW_OK);
      out = check_pull (s.h);
      check_same_pixels (out, noise, &s.info);
    }
    fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
    /* one kernel wants frames on the device, the other reads over the bus */
    fail_unless_equals_uint64 (
        check_stat (s.element, "bytes-uploaded"), i == 0 ? 5 * s.info.size : 0);
    filter_check_active (s.element, "cuda", i == 0 ? "device" : "pinned");
    gst_buffer_pool_set_active (pool, FALSE);
  }
}

CHECK_TEST (test_frames_come_out_on_the_device_and_anyone_can_map_them)
{
  g_auto (Stage) s = stage_new ("testinvert backend=cuda", "sink", "src");
  g_autoptr (GstBuffer) out = NULL;

  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  fail_unless (
      gst_imaging_memory_is_on_device (gst_buffer_peek_memory (out, 0)));
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-downloaded"), 0);
  stage_check_made (&s, out, 1, IMK_BACKEND_CUDA);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-downloaded"), s.info.size);
}

/* Noise into lapsharpen on the CPU: what every other way must give. */
static GstBuffer *
sharpened_on_cpu (const GstVideoInfo *info, guint seed, guint times)
{
  GstBuffer *buffer = check_noise (info, seed);

  for (guint i = 0; i < times; i++) {
    g_auto (Stage) s =
        stage_new ("lapsharpen backend=cpu amount=0.75", "sink", "src");

    stage_caps (&s, info->finfo->name, info->width, info->height);
    check_push (s.h, buffer, GST_FLOW_OK);
    buffer = check_pull (s.h);
  }
  return buffer;
}

/* The one page-locked block is that which ordinary frames are copied into. */
CHECK_MOCK_TEST (test_frames_of_an_incoherent_gpu_are_never_read_uncached)
{
  GstBuffer *expected, *out;
  Stage s;

  g_setenv ("IMK_MOCK_INTEGRATED", "1", TRUE);
  g_setenv ("IMK_MOCK_COHERENT", "0", TRUE);
  s = stage_new ("lapsharpen backend=cuda amount=0.75", "sink", "src");
  expected = sharpened_on_cpu (&s.info, 1, 1);
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  fail_unless_equals_int (check_n_page_locked (), 1);
  check_same_pixels (out, expected, &s.info);
  fail_unless_equals_int (check_n_page_locked (), 1);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-uploaded"), 0);
  gst_buffer_unref (out);
  gst_buffer_unref (expected);
  stage_free (&s);
  g_unsetenv ("IMK_MOCK_INTEGRATED");
  g_unsetenv ("IMK_MOCK_COHERENT");
}

CHECK_TEST (test_between_our_elements_frames_stay_on_the_device)
{
  const gchar *formats[] = {"GRAY8", "GRAY16_LE", "RGBA"};
  const gchar *between[] = {"!", "! queue !", "! identity !",
      "! tee name=t ! queue ! fakesink async=false t. ! queue !",
      "! videocrop !"};

  for (guint b = 0; b < G_N_ELEMENTS (between); b++)
    for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
      g_autofree gchar *line =
          g_strdup_printf ("lapsharpen name=one backend=cuda amount=0.75 %s "
                           "lapsharpen name=two backend=%s amount=0.75",
              between[b], f % 2 ? "auto" : "cuda");
      g_auto (Stage) s = {NULL,
          gst_parse_bin_from_description (line, TRUE, NULL), gst_bus_new ()};
      GstBuffer *out, *expected;

      fail_unless (s.element != NULL, "%s", line);
      s.h = gst_harness_new_with_element (s.element, "sink", "src");
      stage_caps (&s, formats[f], 641, 7);
      for (guint n = 0; n < 4; n++) {
        check_push (s.h, check_noise (&s.info, n), GST_FLOW_OK);
        out = check_pull (s.h);
        expected = sharpened_on_cpu (&s.info, n, 2);
        check_same_pixels (out, expected, &s.info);
        gst_buffer_unref (out);
        gst_buffer_unref (expected);
      }
      fail_unless_equals_uint64 (
          filter_stat_of (s.element, "one", "bytes-downloaded"), 0);
      fail_unless_equals_uint64 (
          filter_stat_of (s.element, "two", "bytes-uploaded"), 0);
      fail_unless_equals_uint64 (
          filter_stat_of (s.element, "two", "bytes-copied"), 0);
      fail_unless_equals_uint64 (
          filter_stat_of (s.element, "two", "frames"), 4);
      fail_unless_equals_uint64 (
          filter_stat_of (s.element, "two", "bytes-downloaded"),
          4 * s.info.size);
      gst_object_unref (s.element);
    }
}

CHECK_TEST (test_a_branch_that_writes_leaves_the_other_as_it_was)
{
  g_auto (Stage) s = stage_new ("testinvert backend=cuda", "sink", "src");
  GstBuffer *out, *branch;
  GstMapInfo map;

  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  /* what a tee and an in-place element do */
  branch = gst_buffer_make_writable (gst_buffer_ref (out));
  fail_unless (gst_buffer_map (branch, &map, GST_MAP_READWRITE));
  memset (map.data, 0, map.size);
  gst_buffer_unmap (branch, &map);
  gst_buffer_unref (branch);
  stage_check_made (&s, out, 1, IMK_BACKEND_CUDA);
  gst_buffer_unref (out);
}

CHECK_TEST (test_auto_follows_frames_to_the_device)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    g_auto (Stage) s = stage_new (elements[i], "sink", "src");
    GstBuffer *noise, *out;

    check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    filter_check_active (s.element, "cpu", "system");
    for (guint n = 1; n < 4; n++) {
      check_push (s.h, noise_on_device (&s.info, n, 0), GST_FLOW_OK);
      out = check_pull (s.h);
      noise = check_noise (&s.info, n);
      fail_unless (
          gst_imaging_memory_is_on_device (gst_buffer_peek_memory (out, 0)));
      check_same_pixels (out, noise, &s.info);
      gst_buffer_unref (noise);
      gst_buffer_unref (out);
      filter_check_active (s.element, "cuda", "device");
    }
    fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
    fail_unless_equals_uint64 (check_stat (s.element, "bytes-uploaded"), 0);
    check_no_messages (s.bus, GST_MESSAGE_WARNING);
  }
}

CHECK_MOCK_TEST (test_auto_takes_the_device_that_has_the_frames)
{
  g_auto (Stage) s = stage_new ("testinvert", "sink", "src");
  g_autoptr (GstBuffer) out = NULL;

  check_push (s.h, noise_on_device (&s.info, 1, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  stage_check_made (&s, out, 1, IMK_BACKEND_CUDA);
  fail_unless_equals_int (
      gst_imaging_context_device_id (
          gst_imaging_memory_context (gst_buffer_peek_memory (out, 0))),
      1);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
}

/* More frames than the pool of the copies has buffers at a time: the next copy
 * waits for the kernel that reads the last one. */
CHECK_MOCK_TEST (test_frames_of_another_device_are_copied_between_the_devices)
{
  const guint n_frames = 9;
  g_auto (Stage) s =
      stage_new ("testinvert backend=cuda cuda-device-id=0", "sink", "src");

  for (guint i = 0; i < n_frames; i++)
    check_push (s.h, noise_on_device (&s.info, i, 1), GST_FLOW_OK);
  for (guint i = 0; i < n_frames; i++) {
    g_autoptr (GstBuffer) out = check_pull (s.h);

    stage_check_made (&s, out, i, IMK_BACKEND_CUDA);
    fail_unless_equals_int (
        gst_imaging_context_device_id (
            gst_imaging_memory_context (gst_buffer_peek_memory (out, 0))),
        0);
  }
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-from-peers"), n_frames * s.info.size);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-uploaded"), 0);
}

/* What the CPU has read already need not be read from the device again. */
CHECK_LOOP_TEST (test_frames_that_the_host_has_too_are_copied_there,
    check_ask_child (check_has_two_devices))
{
  g_auto (Stage) s =
      stage_new ("testinvert backend=cuda cuda-device-id=0", "sink", "src");
  GstBuffer *in = noise_on_device (&s.info, 1, 1), *out;
  GstMapInfo map;

  fail_unless (gst_buffer_map (in, &map, GST_MAP_READ));
  gst_buffer_unmap (in, &map);
  check_push (s.h, in, GST_FLOW_OK);
  out = check_pull (s.h);
  stage_check_made (&s, out, 1, IMK_BACKEND_CUDA);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-from-peers"), 0);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-copied"), s.info.size);
  gst_buffer_unref (out);
}

static ImkBackend
filter_backend_of (GstBuffer *made)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (made, GST_IMAGING_QUANTITY_META);
  const gchar *name = gst_structure_get_string (
      gst_custom_meta_get_structure (meta), "backend");

  return g_str_equal (name, "cpu") ? IMK_BACKEND_CPU : IMK_BACKEND_CUDA;
}

/* Returns: whether no call failed. A frame of the other device is right or
 * counted as lost, whatever fails. */
static gboolean
frames_of_a_peer_with_a_failure (gulong nth)
{
  const guint n_frames = 3;
  GstBuffer *in[3], *out;
  guint n_out = 0;
  gboolean is_over;
  g_auto (Stage) s = {NULL};

  filter_seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert cuda-device-id=0", "sink", "src");
  for (guint i = 0; i < n_frames; i++)
    in[i] = noise_on_device (&s.info, i, 1);
  imk_inject_failure (nth, FALSE);
  for (guint i = 0; i < n_frames; i++)
    gst_harness_push (s.h, in[i]);
  is_over = imk_inject_failure (0, FALSE) < nth;
  while ((out = gst_harness_try_pull (s.h))) {
    guint seed = GST_BUFFER_PTS (out) / GST_BUFFER_DURATION (out);

    stage_check_made (&s, out, seed, filter_backend_of (out));
    gst_buffer_unref (out);
    n_out++;
  }
  fail_unless_equals_uint64 (
      n_out + check_stat (s.element, "lost-frames"), n_frames);
  return is_over;
}

CHECK_LOOP_TEST (test_a_copy_between_devices_may_fail,
    check_ask_child (check_has_two_devices))
{
  gulong nth = 1;

  while (!frames_of_a_peer_with_a_failure (nth))
    nth++;
  fail_unless (nth > 20, "only %lu calls", nth);
}

CHECK_TEST (test_auto_takes_cuda_where_it_is_faster)
{
  g_auto (Stage) s = {NULL};

  filter_seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  stage_push_and_check (&s, 1, IMK_BACKEND_CUDA);
  stage_free (&s);
  s = stage_new ("testinvert backend=cpu", "sink", "src");
  stage_push_and_check (&s, 1, IMK_BACKEND_CPU);
}

/* --- failures ------------------------------------------------------------- */

CHECK_CASE ("failures", filter_set_up, filter_tear_down)

CHECK_TEST (test_auto_goes_on_with_the_cpu_and_says_so_once)
{
  g_auto (Stage) s = {NULL};

  filter_seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  stage_push_and_check (&s, 0, IMK_BACKEND_CUDA);
  imk_inject_failure (1, TRUE);
  for (guint i = 1; i < 5; i++)
    stage_push_and_check (&s, i, IMK_BACKEND_CPU);
  check_message_says (
      check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      CHECK_CODE (LIBRARY, FAILED), "the CPU goes on");
  /* caps may change: what is given up stays so */
  stage_caps (&s, "RGBA", 5, 3);
  stage_push_and_check (&s, 5, IMK_BACKEND_CPU);
  check_no_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  fail_unless_equals_uint64 (check_stat (s.element, "frames"), 6);
  fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 0);
  filter_check_active (s.element, "cpu", "system");
  imk_inject_failure (0, FALSE);
}

CHECK_TEST (test_results_say_what_computed_them)
{
  for (guint i = 0; i < G_N_ELEMENTS (filter_backends); i++) {
    g_autofree gchar *line =
        g_strdup_printf ("testmeasure backend=%s", filter_backends[i]);
    g_auto (Stage) s = stage_new (line, "sink", "src");
    const GstStructure *result;
    g_autoptr (GstBuffer) out = NULL;

    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    out = check_pull (s.h);
    result = gst_imaging_results_get (out, NULL);
    fail_unless_equals_string (
        gst_structure_get_string (result, "backend"), filter_backends[i]);
    fail_unless_equals_string (
        gst_structure_get_string (result, "element"), "testmeasure");
    fail_unless_equals_string (
        gst_structure_get_string (result, "version"), IMK_VERSION);
  }
}

/* Upstream writes into page-locked memory of ours, which has no more of it. */
CHECK_TEST (test_upstream_goes_on_in_our_pool_without_the_device)
{
  g_auto (Stage) s = {NULL};
  g_autoptr (GstBufferPool) pool = NULL;
  GstQuery *query;
  guint size;

  filter_seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  stage_push_and_check (&s, 0, IMK_BACKEND_CUDA);
  query = query_allocation (&s);
  pool = offered_pool (query, &size);
  fail_unless (pool && gst_buffer_pool_set_active (pool, TRUE));
  imk_inject_failure (1, TRUE);
  for (guint i = 1; i < 4; i++) {
    GstBuffer *noise = check_noise (&s.info, i), *buffer = NULL, *out;
    GstMapInfo map;

    fail_unless_equals_int (
        gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_WRITE));
    gst_buffer_extract (noise, 0, map.data, map.size);
    gst_buffer_unmap (buffer, &map);
    gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
    gst_buffer_unref (noise);
    check_push (s.h, buffer, GST_FLOW_OK);
    out = check_pull (s.h);
    stage_check_made (&s, out, i, IMK_BACKEND_CPU);
    gst_buffer_unref (out);
  }
  imk_inject_failure (0, FALSE);
  gst_query_unref (query);
  gst_buffer_pool_set_active (pool, FALSE);
}

CHECK_TEST (test_a_frame_of_a_working_device_is_not_lost_with_the_kernel)
{
  g_auto (Stage) s = stage_new ("testinvert", "sink", "src");
  GstBuffer *out;

  filter_seen.process_fails = IMK_ERROR_MEMORY;
  for (guint i = 0; i < 3; i++) {
    check_push (s.h, noise_on_device (&s.info, i, 0), GST_FLOW_OK);
    out = check_pull (s.h);
    stage_check_made (&s, out, i, IMK_BACKEND_CPU);
    gst_buffer_unref (out);
  }
  check_message_says (
      check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      CHECK_CODE (LIBRARY, FAILED), "told to fail");
  check_no_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 0);
}

/* A queue may hold many of them. */
CHECK_TEST (test_frames_that_were_only_on_a_lost_device_are_counted_as_lost)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    g_auto (Stage) s = stage_new (elements[i], "sink", "src");
    GstBuffer *queue[3];

    check_push (s.h, noise_on_device (&s.info, 0, 0), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    for (guint n = 0; n < G_N_ELEMENTS (queue); n++)
      queue[n] = noise_on_device (&s.info, 1 + n, 0);
    imk_inject_failure (1, TRUE);
    for (guint n = 0; n < G_N_ELEMENTS (queue); n++)
      check_push (s.h, queue[n], GST_FLOW_OK);
    fail_unless (gst_harness_try_pull (s.h) == NULL);
    check_message_says (
        check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
        CHECK_CODE (LIBRARY, FAILED), "is lost");
    check_push (s.h, check_noise (&s.info, 4), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    imk_inject_failure (0, FALSE);
    fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 3);
    fail_unless_equals_uint64 (check_stat (s.element, "frames"), 2);
    check_no_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  }
}

CHECK_TEST (test_cuda_that_was_asked_for_fails_with_one_error)
{
  g_auto (Stage) s = stage_new ("testinvert backend=cuda", "sink", "src");

  stage_push_and_check (&s, 0, IMK_BACKEND_CUDA);
  imk_inject_failure (1, TRUE);
  for (guint i = 0; i < 3; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_ERROR);
  check_message_says (
      check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      CHECK_CODE (LIBRARY, FAILED), "");
  check_no_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  imk_inject_failure (0, FALSE);
}

/* Returns: whether no call failed. Whatever fails, and when: frames are right
 * or counted as lost, results come once for each, and it is said once. */
static gboolean
stream_with_failures (const gchar *launch, gulong nth, gboolean forever)
{
  const guint n_frames = 5;
  Stage s = {NULL};
  guint n_out = 0, n_results = 0, n_said;
  guint64 lost, frames;
  GstHarness *results = NULL;
  GstBuffer *out;

  imk_inject_failure (nth, forever);
  s = stage_try (launch, "sink", "src");
  if (!s.h) {
    imk_inject_failure (0, FALSE);
    fail_unless (strstr (launch, "backend=cuda") != NULL);
    fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
    gst_object_unref (s.bus);
    return FALSE;
  }
  if (strstr (launch, "measure"))
    results = gst_harness_new_with_element (s.element, NULL, "results");
  for (guint i = 0; i < n_frames; i++)
    gst_harness_push (s.h, check_noise (&s.info, i));
  imk_inject_failure (0, FALSE);
  while ((out = gst_harness_try_pull (s.h))) {
    gst_buffer_unref (out);
    n_out++;
  }
  while (results && (out = gst_harness_try_pull (results))) {
    n_results += !GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_HEADER);
    gst_buffer_unref (out);
  }
  lost = check_stat (s.element, "lost-frames");
  frames = check_stat (s.element, "frames");
  fail_unless_equals_uint64 (frames, n_out);
  if (results) {
    fail_unless_equals_int (n_results, n_out);
  }
  n_said =
      check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  fail_unless (n_said <= 1, "call %lu: said %u times", nth, n_said);
  if (!strstr (launch, "backend=cuda")) {
    fail_unless_equals_uint64 (lost + n_out, n_frames);
  } else {
    fail_unless (n_out == n_frames || n_said == 1);
  }
  if (results)
    gst_harness_teardown (results);
  stage_free (&s);
  return n_said == 0;
}

static void
fail_each_call (const gchar *launch, gboolean forever)
{
  gulong nth = 1;

  /* that the device cannot be had is not said where it was not asked for */
  for (guint n_good = 0; n_good < 5; nth++) {
    fail_unless (nth < 500);
    n_good = stream_with_failures (launch, nth, forever) ? n_good + 1 : 0;
    fail_unless_equals_int (filter_seen.n_opened, filter_seen.n_closed);
    fail_unless_equals_int (check_n_live (), filter_n_live_before);
  }
  fail_unless (nth > 20, "only %lu calls were made", nth);
}

CHECK_LOOP_TEST (test_each_call_to_the_device_may_fail, 8)
{
  const gchar *lines[] = {"testinvert", "testmeasurefast",
      "testinvert backend=cuda", "testmeasure backend=cuda"};

  filter_seen.prefers_cuda = TRUE;
  fail_each_call (lines[__i__ / 2], __i__ % 2);
}

static void
check_refused (const gchar *launch, const gchar *words)
{
  g_autoptr (GstElement) element = gst_parse_launch (launch, NULL);
  g_autoptr (CheckBus) bus = gst_bus_new ();

  gst_object_ref_sink (element);
  gst_element_set_bus (element, bus);
  for (guint i = 0; i < 3; i++) {
    fail_unless_equals_int (gst_element_set_state (element, GST_STATE_PAUSED),
        GST_STATE_CHANGE_FAILURE);
    check_error (bus, RESOURCE, NOT_FOUND, words);
    check_no_messages (bus, GST_MESSAGE_ERROR);
    gst_element_set_state (element, GST_STATE_NULL);
  }
}

CHECK_MOCK_TEST (test_cuda_without_a_device_is_refused_at_the_start)
{
  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  check_refused ("testinvert backend=cuda", "No CUDA device");
  check_refused ("testmeasure backend=cuda", "backend=cpu");
  g_unsetenv ("IMK_MOCK_DEVICES");
}

CHECK_TEST (test_a_device_number_beyond_the_last_is_refused)
{
  check_refused (
      "testinvert backend=cuda cuda-device-id=7", "cuda-device-id is 7");
}

CHECK_MOCK_TEST (test_auto_without_a_device_runs_on_the_cpu_and_is_silent)
{
  Stage s = {NULL};

  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  filter_seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  for (guint i = 0; i < 3; i++)
    stage_push_and_check (&s, i, IMK_BACKEND_CPU);
  check_no_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  stage_free (&s);
  g_unsetenv ("IMK_MOCK_DEVICES");
}
