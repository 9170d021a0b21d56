/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan with several batches at a time on a device, which the mock stands in
 * for, and what a card alone can show of it: what comes out is what the CPU
 * gives, in order, and all of it, whatever fails, flushes or is slow. */
#include "octbscan-frames.h"

#include <string.h>

#include "gstimagingresults.h"
#include "core/failures.h"

/* --- one device ----------------------------------------------------------- */

CHECK_CASE ("mock", setup, teardown)

CHECK_LOOP_TEST (test_order_is_kept, check_is_mock () ? 4 : 0)
{
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "backend=cuda max-in-flight=%d", __i__ + 1);

  for (guint offered = 0; offered < 2; offered++) {
    g_autoptr (CheckHarness) h = harness_new (launch);

    g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
    push_frames (h, 0, N_FRAMES, offered);
    pull_frames (h, 0, N_FRAMES);
    fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
    fail_unless_equals_uint64 (check_stat (h->element, "bytes-copied"),
        offered ? 0 : N_FRAMES * LINES * WIDTH * 2);
  }
}

/* What comes faster than it is processed goes together, here one B-scan and all
 * that come until it is done; what lies side by side is one copy, there and
 * back. */
CHECK_MOCK_TEST (test_batches_are_copied_at_once)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");
  guint n;

  push_until_read (h);
  check_n_copies ();
  hold (TRUE);
  push_frames (h, 2, 102, TRUE);
  hold (FALSE);
  pull_frames (h, 2, 102);
  n = check_n_copies ();
  fail_unless (n <= 6, "%u copies for 100 B-scans", n);
}

/* One at a time is not kept waiting for a batch. */
CHECK_MOCK_TEST (test_single_frames_go_at_once)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");

  for (guint i = 0; i < 20; i++) {
    check_push (h, noise_lines (h, i, TRUE), GST_FLOW_OK);
    check_image (check_pull (h), i);
  }
}

/* To lock pages takes long; it is not done while B-scans come. */
CHECK_MOCK_TEST (test_host_memory_is_made_with_the_caps)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");
  g_autoptr (GPtrArray) kept =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  guint n_before;

  push_frames (h, 0, 1, FALSE);
  pull_frames (h, 0, 1);
  n_before = check_n_page_locked ();
  for (guint i = 1; i <= 100; i++) {
    push_frames (h, i, i + 1, FALSE);
    g_ptr_array_add (kept, check_pull (h));
    check_image (gst_buffer_ref (kept->pdata[i - 1]), i);
  }
  fail_unless (check_n_page_locked () <= n_before,
      "%u blocks of page-locked memory, %u before somebody kept images",
      check_n_page_locked (), n_before);
}

/* Events leave behind the images of the B-scans before them. */
CHECK_MOCK_TEST (test_events_stay_in_order)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");
  guint n_events;

  g_setenv ("IMK_MOCK_DELAY_US", "2000", TRUE);
  push_frames (h, 0, 30, TRUE);
  gst_harness_push_event (h, gst_event_new_gap (30 * GST_MSECOND, GST_SECOND));
  fail_unless_equals_int (gst_harness_buffers_received (h), 30);
  push_frames (h, 30, 60, TRUE);
  n_events = gst_harness_events_received (h);
  gst_harness_push_event (h, gst_event_new_eos ());
  fail_unless_equals_int (gst_harness_buffers_received (h), 60);
  fail_unless_equals_int (gst_harness_events_received (h), n_events + 1);
  pull_frames (h, 0, 60);
}

/* A flush drops what is inside, and what comes behind it is whole; as often as
 * one likes. */
CHECK_MOCK_TEST (test_flushes)
{
  g_autoptr (CheckHarness) h =
      harness_new (ELEMENT "backend=cuda max-in-flight=2");
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  g_setenv ("IMK_MOCK_DELAY_US", "500", TRUE);
  for (guint i = 0; i < 30; i++) {
    GstBuffer *out;

    push_frames (h, 0, i, TRUE);
    check_flush (h);
    while ((out = gst_harness_try_pull (h)))
      gst_buffer_unref (out);
    push_frames (h, 3, 5, TRUE);
    pull_frames (h, 3, 5);
  }
}

/* A camera that is held between a flush and the segment that follows. */
typedef struct {
  GstHarness *h;
  GMutex held;
  gint quit; /* atomic */
} Camera;

static gpointer
camera_main (gpointer data)
{
  Camera *c = data;

  for (guint i = 0; !g_atomic_int_get (&c->quit); i++) {
    g_mutex_lock (&c->held);
    gst_pad_push (c->h->srcpad, noise_lines (c->h, i % N_FRAMES, FALSE));
    g_mutex_unlock (&c->held);
  }
  return NULL;
}

/* From another thread, while frames come. */
CHECK_MOCK_TEST (test_flushes_while_frames_come)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");
  Camera camera = {.h = h};
  GstSegment segment;
  GThread *thread;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_set_drop_buffers (h, TRUE);
  g_mutex_init (&camera.held);
  thread = g_thread_new ("camera", camera_main, &camera);
  for (guint i = 0; i < 50; i++) {
    g_usleep (1000);
    gst_pad_push_event (h->srcpad, gst_event_new_flush_start ());
    g_mutex_lock (&camera.held);
    gst_pad_push_event (h->srcpad, gst_event_new_flush_stop (TRUE));
    gst_pad_push_event (h->srcpad, gst_event_new_segment (&segment));
    g_mutex_unlock (&camera.held);
  }
  g_atomic_int_set (&camera.quit, 1);
  g_thread_join (thread);
  g_mutex_clear (&camera.held);
  gst_pad_push_event (h->srcpad, gst_event_new_eos ());
}

/* What is inside when the element stops is let go of. */
CHECK_MOCK_TEST (test_stop_with_frames_inside)
{
  guint n_live = 0;

  for (guint i = 0; i < 10; i++) {
    GstHarness *h = harness_new (ELEMENT "backend=cuda");

    g_setenv ("IMK_MOCK_DELAY_US", "1000", TRUE);
    push_frames (h, 0, 5 * i, TRUE);
    gst_harness_teardown (h);
    if (i == 0)
      n_live = check_n_live ();
  }
  fail_unless_equals_int (check_n_live (), n_live);
}

static GstPadProbeReturn
block (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  return GST_PAD_PROBE_OK;
}

static gpointer
push_until_full (gpointer data)
{
  GstHarness *h = data;
  guint i = 0;

  while (gst_pad_push (h->srcpad, noise_lines (h, i % N_FRAMES, FALSE)) ==
         GST_FLOW_OK)
    i++;
  return GUINT_TO_POINTER (i);
}

/* Downstream takes nothing: no more than a bound comes in, and the element can
 * be stopped. */
CHECK_LOOP_TEST (test_stop_while_downstream_blocks, check_is_mock () ? 2 : 0)
{
  g_autoptr (CheckHarness) h = harness_new (
      __i__ ? ELEMENT "backend=cuda max-in-flight=2 cuda-devices=<-1>"
            : ELEMENT "backend=cuda max-in-flight=2");
  g_autoptr (GstPad) src = gst_element_get_static_pad (h->element, "src");
  GThread *thread;
  guint n;

  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER,
      block, NULL, NULL);
  thread = g_thread_new ("camera", push_until_full, h);
  g_usleep (300000);
  gst_element_set_state (h->element, GST_STATE_NULL);
  n = GPOINTER_TO_UINT (g_thread_join (thread));
  fail_unless (n > 0 && n < 3000, "%u B-scans went in", n);
}

CHECK_MOCK_TEST (test_settings_change_while_playing)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");

  for (guint i = 0; i < 60; i++) {
    if (i % 7 == 0)
      g_object_set (h->element, "max-in-flight", 1 + i / 7, NULL);
    if (i % 5 == 0)
      g_object_set (h->element, "range-min", i % 10 ? 10.0 : 0.0, NULL);
    if (i % 10 == 5)
      g_object_set (h->element, "range-min", 0.0, NULL);
    check_push (h, noise_lines (h, i, TRUE), GST_FLOW_OK);
  }
  pull_frames (h, 0, 60);
}

/* --- volumes -------------------------------------------------------------- */

#define VOLUME 25 /* frames of a buffer */
#define VOLUMES ELEMENT "ascans-per-bscan=17 "

static void
push_volumes (GstHarness *h, guint first, guint end, gboolean offered)
{
  for (guint i = first; i < end; i += VOLUME)
    check_push (h, noise_frames (h, i, VOLUME, offered), GST_FLOW_OK);
}

/* A buffer of many B-scans is not copied, goes to the device at once and comes
 * out as if they had come one by one; so does what comes in ordinary memory. */
CHECK_LOOP_TEST (test_volumes, check_is_mock () ? 2 : 0)
{
  for (guint offered = 0; offered < 2; offered++) {
    g_autoptr (CheckHarness) h =
        harness_with_lines (__i__ ? VOLUMES "backend=cuda cuda-devices=<-1>"
                                  : VOLUMES "backend=cuda",
            VOLUME * LINES);
    guint64 n_copied;

    g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
    for (guint i = 0; i < 2; i++) { /* a reader is noticed */
      push_volumes (h, i * VOLUME, (i + 1) * VOLUME, offered);
      pull_frames (h, i * VOLUME, (i + 1) * VOLUME);
    }
    n_copied = check_stat (h->element, "bytes-copied");
    check_n_copies ();
    push_volumes (h, 2 * VOLUME, N_FRAMES, offered);
    pull_frames (h, 2 * VOLUME, N_FRAMES);
    fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
    if (offered)
      fail_unless_equals_uint64 (
          check_stat (h->element, "bytes-copied"), n_copied);
    if (offered) /* there and back */
      fail_unless (check_n_copies () <= 2 * (N_FRAMES / VOLUME - 2));
  }
}

/* One by one they use the same few blocks of page-locked memory, here and
 * there. */
CHECK_MOCK_TEST (test_volumes_are_used_again)
{
  g_autoptr (CheckHarness) h =
      harness_with_lines (VOLUMES "backend=cuda", VOLUME * LINES);
  guint n = 0;

  for (guint i = 0; i < 40; i++) {
    guint first = i * VOLUME % N_FRAMES;

    push_volumes (h, first, first + VOLUME, TRUE);
    pull_frames (h, first, first + VOLUME);
    if (i == 9)
      n = check_n_page_locked ();
  }
  fail_unless (check_n_page_locked () <= n + 3, "%u blocks have become %u", n,
      check_n_page_locked ());
}

static void
check_same_lines (GstBuffer *found, GstBuffer *expected)
{
  const GstStructure *a = gst_imaging_results_get (found, NULL);
  const GstStructure *b = gst_imaging_results_get (expected, NULL);
  GstBuffer *x, *y;
  GstMapInfo map;

  fail_unless (a && b);
  x = gst_value_get_buffer (gst_structure_get_value (a, "data"));
  y = gst_value_get_buffer (gst_structure_get_value (b, "data"));
  gst_buffer_map (y, &map, GST_MAP_READ);
  fail_unless_equals_uint64 (map.size, LINES * 3 * sizeof (gfloat));
  fail_unless (gst_buffer_memcmp (x, 0, map.data, map.size) == 0);
  gst_buffer_unmap (y, &map);
}

/* What a camera takes turns over, and what is on its way back, is that of each
 * B-scan. */
CHECK_MOCK_TEST (test_volumes_of_several_cameras)
{
  static const gchar *const launch =
      VOLUMES "cameras=3 bidirectional=true background=none backend=";
  GstHarness *h[2];

  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *text = g_strconcat (launch, i ? "cuda" : "cpu", NULL);

    h[i] = harness_with_lines (text, VOLUME * LINES);
    push_volumes (h[i], 0, VOLUME, i == 1);
  }
  for (guint k = 0; k < 3; k++) {
    for (guint i = 0; i < VOLUME; i++) {
      GstBuffer *a = check_pull (h[0]), *b = check_pull (h[1]);

      fail_unless_equals_uint64 (GST_BUFFER_PTS (a), GST_BUFFER_PTS (b));
      check_same_lines (b, a);
      check_pixels (b, a, k * VOLUME + i);
      gst_buffer_unref (a);
    }
    for (guint i = 0; i < 2; i++)
      push_volumes (h[i], (k + 1) * VOLUME, (k + 2) * VOLUME, i == 1);
  }
  gst_harness_teardown (h[0]);
  gst_harness_teardown (h[1]);
}

static GstHarness *
harness_of_floats (const gchar *properties)
{
  g_autofree gchar *launch = g_strconcat (VOLUMES, properties, NULL);
  GstHarness *h = harness_with_lines (launch, VOLUME * LINES);

  gst_harness_set_sink_caps_str (h, "other/tensors");
  return h;
}

/* Nor do tensors; CPU and mock give the same bits. */
CHECK_LOOP_TEST (test_volumes_of_floats, check_is_mock () ? 2 : 0)
{
  GstHarness *h[] = {harness_of_floats ("backend=cpu"),
      harness_of_floats (
          __i__ ? "backend=cuda cuda-devices=<-1>" : "backend=cuda")};

  g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
  for (guint first = 0; first < N_FRAMES; first += VOLUME) {
    push_volumes (h[0], first, first + VOLUME, FALSE);
    push_volumes (h[1], first, first + VOLUME, TRUE);
    for (guint i = first; i < first + VOLUME; i++) {
      g_autoptr (GstBuffer) a = check_pull (h[0]), b = check_pull (h[1]);
      g_auto (CheckMap) x = check_map (a, GST_MAP_READ);
      g_auto (CheckMap) y = check_map (b, GST_MAP_READ);

      fail_unless_equals_uint64 (x.size, LINES * DEPTHS * sizeof (gfloat));
      fail_unless_equals_uint64 (y.size, x.size);
      fail_unless (!check_is_mock () || memcmp (x.data, y.data, x.size) == 0,
          "frame %u", i);
      fail_unless_equals_uint64 (GST_BUFFER_PTS (b), i * GST_MSECOND);
    }
  }
  gst_harness_teardown (h[0]);
  gst_harness_teardown (h[1]);
}

/* Lines that are left over go with those of the next buffer. */
CHECK_MOCK_TEST (test_volumes_with_lines_left_over)
{
  const guint lines = 3 * LINES + 5, n = 8 * lines / LINES;
  g_autoptr (CheckHarness) h =
      harness_with_lines (VOLUMES "backend=cuda", lines);

  for (guint i = 0; i < 8; i++) {
    GstBuffer *buffer = gst_harness_create_buffer (h, lines * WIDTH * 2);
    GstMapInfo map;

    gst_buffer_map (buffer, &map, GST_MAP_WRITE);
    for (guint k = 0; k < lines * WIDTH; k++)
      ((guint16 *) map.data)[k] = noise_at (i * lines + k / WIDTH, k % WIDTH);
    gst_buffer_unmap (buffer, &map);
    GST_BUFFER_PTS (buffer) =
        gst_util_uint64_scale (i * lines, GST_MSECOND, LINES);
    GST_BUFFER_DURATION (buffer) =
        gst_util_uint64_scale (lines, GST_MSECOND, LINES);
    check_push (h, buffer, GST_FLOW_OK);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < n; i++) {
    GstBuffer *image = check_pull (h);
    gint64 late = GST_BUFFER_PTS (image) - i * GST_MSECOND;

    fail_unless (ABS (late) <= 3, "B-scan %u is %d ns late", i, (gint) late);
    GST_BUFFER_PTS (image) = i * GST_MSECOND;
    check_image (image, i);
  }
}

/* All devices are lost while volumes are on them. */
CHECK_MOCK_TEST (test_cpu_does_volumes)
{
  g_autoptr (CheckHarness) h =
      harness_with_lines (VOLUMES "backend=auto", VOLUME * LINES);

  g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
  push_volumes (h, 0, VOLUME, TRUE);
  pull_frames (h, 0, VOLUME);
  push_volumes (h, VOLUME, 3 * VOLUME, TRUE);
  imk_inject_failure (1, TRUE);
  push_volumes (h, 3 * VOLUME, N_FRAMES, TRUE);
  pull_frames (h, VOLUME, N_FRAMES);
  imk_inject_failure (0, FALSE);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
}

/* --- a card --------------------------------------------------------------- */

CHECK_CASE ("card", NULL, NULL)

CHECK_LOOP_TEST (test_order_on_a_card, check_is_mock () ? 0 : 4)
{
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "backend=cuda max-in-flight=%d", __i__ + 1);
  GstHarness *h;

  if (check_n_devices () == 0)
    check_skip ("there is no card");
  make_expected ();
  h = harness_new (launch);
  for (guint round = 0; round < 3; round++) {
    push_frames (h, 0, N_FRAMES, TRUE);
    pull_frames (h, 0, N_FRAMES);
  }
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), 3 * N_FRAMES);
  gst_harness_teardown (h);
  g_clear_pointer (&expected, g_ptr_array_unref);
}
