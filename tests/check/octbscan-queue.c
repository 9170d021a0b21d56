/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan on several devices and with several batches at a time, which the
 * mock stands in for, and what a card alone can show of it: what comes out is
 * what the CPU gives, in order, and all of it, whatever fails, flushes or is
 * slow. */
#include "check-common.h"

#include <dlfcn.h>
#include <string.h>

#include "gstimagingmemory.h"

#define WIDTH 60
#define LINES 17
#define DEPTHS 30
#define N_FRAMES 150

#define ELEMENT "octbscan strategy=fft taper-cut=7 upsample=128 range-max=90 "

/* --- the mock ------------------------------------------------------------- */

/* Both devices. */
static void
hold (gboolean yes)
{
  check_hold_device (0, yes);
  check_hold_device (1, yes);
}

static void
reset_mock (void)
{
  g_unsetenv ("IMK_MOCK_DELAY_US");
  check_lose_device (-1);
  hold (FALSE);
}

/* --- frames --------------------------------------------------------------- */

static guint16
noise_at (guint line, guint x)
{
  guint32 v = (line * WIDTH + x + 1) * 2654435761u;

  v ^= v >> 15;
  v *= 2246822519u;
  return (guint16) ((v ^ v >> 13) >> 20);
}

/* In the memory that the element offers, or in ordinary memory. */
static GstBuffer *
noise_frames (GstHarness *h, guint frame, guint n, gboolean offered)
{
  gsize size = n * LINES * WIDTH * 2;
  GstBuffer *buffer = offered ? gst_harness_create_buffer (h, size)
                              : gst_buffer_new_allocate (NULL, size, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (guint i = 0; i < n * LINES * WIDTH; i++)
    ((guint16 *) map.data)[i] = noise_at (frame * LINES + i / WIDTH, i % WIDTH);
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = frame * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = n * GST_MSECOND;
  return buffer;
}

static GstBuffer *
noise_lines (GstHarness *h, guint frame, gboolean offered)
{
  return noise_frames (h, frame, 1, offered);
}

/* On the first device alone. */
static GstBuffer *
noise_on_device (GstImagingContext *context, guint frame)
{
  GstAllocator *allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_DEVICE, NULL);
  GstBuffer *from = noise_lines (NULL, frame, FALSE), *buffer;
  GstMemory *memory =
      gst_allocator_alloc (allocator, gst_buffer_get_size (from), NULL);
  gpointer stream = gst_imaging_context_stream (context), pointer;
  ImkLocation location;
  GstMapInfo map;
  ImkError error;

  check_ok (gst_imaging_context_push (context, &error), &error);
  check_ok (gst_imaging_memory_acquire (memory, stream, GST_MAP_WRITE, FALSE,
                NULL, &pointer, &location, &error),
      &error);
  gst_buffer_map (from, &map, GST_MAP_READ);
  check_ok (check_device ()->copy (pointer, map.size, map.data, map.size,
                map.size, 1, stream, &error),
      &error);
  gst_buffer_unmap (from, &map);
  check_ok (
      gst_imaging_memory_release (memory, stream, GST_MAP_WRITE, FALSE, &error),
      &error);
  gst_imaging_context_pop (context);
  buffer = gst_buffer_new ();
  gst_buffer_append_memory (buffer, memory);
  gst_buffer_copy_into (buffer, from, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (from);
  gst_object_unref (allocator);
  return buffer;
}

/* @lines: of a buffer */
static GstHarness *
harness_with_lines (const gchar *launch, guint lines)
{
  GstElement *element = gst_parse_launch (launch, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");
  gchar *caps =
      g_strdup_printf ("video/x-raw,format=GRAY16_LE,width=60,height=%u,"
                       "framerate=%u/%u",
          lines, 1000 * LINES, lines);

  gst_object_unref (element);
  gst_harness_set_src_caps_str (h, caps);
  g_free (caps);
  return h;
}

static GstHarness *
harness_new (const gchar *launch)
{
  return harness_with_lines (launch, LINES);
}

static GstBus *
watch (GstHarness *h)
{
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  return bus;
}

static void
unwatch (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
}

/* What the CPU makes of frames 0 .. N_FRAMES - 1. */
static GPtrArray *expected;

static void
make_expected (void)
{
  GstHarness *h = harness_new (ELEMENT "backend=cpu");

  expected = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  for (guint i = 0; i < N_FRAMES; i++) {
    check_push (h, noise_lines (h, i, FALSE), GST_FLOW_OK);
    g_ptr_array_add (expected, check_pull (h));
  }
  gst_harness_teardown (h);
}

static void
setup (void)
{
  check_device ();
  reset_mock ();
  make_expected ();
}

static void
teardown (void)
{
  reset_mock ();
  g_clear_pointer (&expected, g_ptr_array_unref);
}

/* Lets go of @found. */
static void
check_pixels (GstBuffer *found, GstBuffer *other, guint frame)
{
  gint tolerance = check_is_mock () ? 0 : 1;
  GstMapInfo a, b;

  gst_buffer_map (found, &a, GST_MAP_READ);
  gst_buffer_map (other, &b, GST_MAP_READ);
  fail_unless_equals_uint64 (a.size, b.size);
  for (guint y = 0; y < DEPTHS; y++)
    for (guint x = 0; x < LINES; x++)
      if (ABS (a.data[y * 20 + x] - b.data[y * 20 + x]) > tolerance)
        fail ("(%u, %u) of frame %u is %u, expected %u", x, y, frame,
            a.data[y * 20 + x], b.data[y * 20 + x]);
  gst_buffer_unmap (found, &a);
  gst_buffer_unmap (other, &b);
  gst_buffer_unref (found);
}

static void
check_image (GstBuffer *found, guint frame)
{
  fail_unless_equals_uint64 (GST_BUFFER_PTS (found), frame * GST_MSECOND);
  check_pixels (found, expected->pdata[frame], frame);
}

/* Pushes frames, as fast as they are taken. */
static void
push_frames (GstHarness *h, guint first, guint end, gboolean offered)
{
  for (guint i = first; i < end; i++)
    check_push (h, noise_lines (h, i, offered), GST_FLOW_OK);
}

static void
pull_frames (GstHarness *h, guint first, guint end)
{
  for (guint i = first; i < end; i++)
    check_image (check_pull (h), i);
}

/* The first two: then the element knows of a reader on the CPU. */
static void
push_until_read (GstHarness *h)
{
  for (guint i = 0; i < 2; i++) {
    push_frames (h, i, i + 1, TRUE);
    pull_frames (h, i, i + 1);
  }
}

static guint64
share_of (GstElement *element, const gchar *name)
{
  GstStructure *shares = NULL;
  guint64 n = 0;

  g_object_get (element, "shares", &shares, NULL);
  gst_structure_get_uint64 (shares, name, &n);
  gst_structure_free (shares);
  return n;
}

/* --- one device ----------------------------------------------------------- */

GST_START_TEST (test_order_is_kept)
{
  gchar *launch =
      g_strdup_printf (ELEMENT "backend=cuda max-in-flight=%d", __i__ + 1);

  for (guint offered = 0; offered < 2; offered++) {
    GstHarness *h = harness_new (launch);

    g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
    push_frames (h, 0, N_FRAMES, offered);
    pull_frames (h, 0, N_FRAMES);
    fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
    fail_unless_equals_uint64 (check_stat (h->element, "bytes-copied"),
        offered ? 0 : N_FRAMES * LINES * WIDTH * 2);
    gst_harness_teardown (h);
  }
  g_free (launch);
}
GST_END_TEST

/* What comes faster than it is processed goes together, here one B-scan and all
 * that come until it is done; what lies side by side is one copy, there, back,
 * and back again, as what is wide is done again. */
GST_START_TEST (test_batches_are_copied_at_once)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");
  guint n;

  push_until_read (h);
  check_n_copies ();
  hold (TRUE);
  push_frames (h, 2, 102, TRUE);
  hold (FALSE);
  pull_frames (h, 2, 102);
  n = check_n_copies ();
  fail_unless (n <= 6, "%u copies for 100 B-scans", n);
  gst_harness_teardown (h);
}
GST_END_TEST

/* One at a time is not kept waiting for a batch. */
GST_START_TEST (test_single_frames_go_at_once)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");

  for (guint i = 0; i < 20; i++) {
    check_push (h, noise_lines (h, i, TRUE), GST_FLOW_OK);
    check_image (check_pull (h), i);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

/* To lock pages takes long; it is not done while B-scans come. */
GST_START_TEST (test_host_memory_is_made_with_the_caps)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");
  GPtrArray *kept =
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
  g_ptr_array_unref (kept);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Events leave behind the images of the B-scans before them. */
GST_START_TEST (test_events_stay_in_order)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");
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
  gst_harness_teardown (h);
}
GST_END_TEST

/* A flush drops what is inside, and what comes behind it is whole; as often as
 * one likes. */
GST_START_TEST (test_flushes)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda max-in-flight=2");
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  g_setenv ("IMK_MOCK_DELAY_US", "500", TRUE);
  for (guint i = 0; i < 30; i++) {
    GstBuffer *out;

    push_frames (h, 0, i, TRUE);
    gst_harness_push_event (h, gst_event_new_flush_start ());
    gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
    gst_harness_push_event (h, gst_event_new_segment (&segment));
    while ((out = gst_harness_try_pull (h)))
      gst_buffer_unref (out);
    push_frames (h, 3, 5, TRUE);
    pull_frames (h, 3, 5);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

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
GST_START_TEST (test_flushes_while_frames_come)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");
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
  gst_harness_teardown (h);
}
GST_END_TEST

/* What is inside when the element stops is let go of. */
GST_START_TEST (test_stop_with_frames_inside)
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
GST_END_TEST

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
GST_START_TEST (test_stop_while_downstream_blocks)
{
  GstHarness *h = harness_new (
      __i__ ? ELEMENT "backend=cuda max-in-flight=2 cuda-devices=all"
            : ELEMENT "backend=cuda max-in-flight=2");
  GstPad *src = gst_element_get_static_pad (h->element, "src");
  GThread *thread;
  guint n;

  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER,
      block, NULL, NULL);
  thread = g_thread_new ("camera", push_until_full, h);
  g_usleep (300000);
  gst_element_set_state (h->element, GST_STATE_NULL);
  n = GPOINTER_TO_UINT (g_thread_join (thread));
  fail_unless (n > 0 && n < 3000, "%u B-scans went in", n);
  gst_object_unref (src);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (test_settings_change_while_playing)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");

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
  gst_harness_teardown (h);
}
GST_END_TEST

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
GST_START_TEST (test_volumes)
{
  for (guint offered = 0; offered < 2; offered++) {
    GstHarness *h =
        harness_with_lines (__i__ ? VOLUMES "backend=cuda cuda-devices=all"
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
    if (offered) /* there, back and, as what is wide is done again, back */
      fail_unless (check_n_copies () <= 3 * (N_FRAMES / VOLUME - 2));
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* One by one they use the same few blocks of page-locked memory, here and
 * there. */
GST_START_TEST (test_volumes_are_used_again)
{
  GstHarness *h = harness_with_lines (VOLUMES "backend=cuda", VOLUME * LINES);
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
  gst_harness_teardown (h);
}
GST_END_TEST

/* What a camera takes turns over, and what is on its way back, is that of each
 * B-scan. */
GST_START_TEST (test_volumes_of_several_cameras)
{
  static const gchar *const launch =
      VOLUMES "cameras=3 bidirectional=true background=none backend=";
  GstHarness *h[2];

  for (guint i = 0; i < 2; i++) {
    gchar *text = g_strconcat (launch, i ? "cuda" : "cpu", NULL);

    h[i] = harness_with_lines (text, VOLUME * LINES);
    push_volumes (h[i], 0, VOLUME, i == 1);
    g_free (text);
  }
  for (guint k = 0; k < 3; k++) {
    for (guint i = 0; i < VOLUME; i++) {
      GstBuffer *a = check_pull (h[0]), *b = check_pull (h[1]);

      fail_unless_equals_uint64 (GST_BUFFER_PTS (a), GST_BUFFER_PTS (b));
      check_pixels (b, a, k * VOLUME + i);
      gst_buffer_unref (a);
    }
    for (guint i = 0; i < 2; i++)
      push_volumes (h[i], (k + 1) * VOLUME, (k + 2) * VOLUME, i == 1);
  }
  gst_harness_teardown (h[0]);
  gst_harness_teardown (h[1]);
}
GST_END_TEST

/* Lines that are left over go with those of the next buffer. */
GST_START_TEST (test_volumes_with_lines_left_over)
{
  const guint lines = 3 * LINES + 5, n = 8 * lines / LINES;
  GstHarness *h = harness_with_lines (VOLUMES "backend=cuda", lines);

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
  gst_harness_teardown (h);
}
GST_END_TEST

/* All devices are lost while volumes are on them. */
GST_START_TEST (test_cpu_does_volumes)
{
  GstHarness *h = harness_with_lines (VOLUMES "backend=auto", VOLUME * LINES);

  g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
  push_volumes (h, 0, VOLUME, TRUE);
  pull_frames (h, 0, VOLUME);
  push_volumes (h, VOLUME, 3 * VOLUME, TRUE);
  check_device ()->inject_failure (1, TRUE);
  push_volumes (h, 3 * VOLUME, N_FRAMES, TRUE);
  pull_frames (h, VOLUME, N_FRAMES);
  check_device ()->inject_failure (0, FALSE);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
  gst_harness_teardown (h);
}
GST_END_TEST

/* --- several devices ------------------------------------------------------ */

GST_START_TEST (test_devices_share)
{
  GstHarness *h =
      harness_new (__i__ ? ELEMENT "backend=cuda cuda-devices=all"
                         : ELEMENT "backend=cuda cuda-devices=\"1;0\"");
  guint64 on_first, on_second;

  hold (TRUE);
  push_frames (h, 0, N_FRAMES, TRUE);
  hold (FALSE);
  pull_frames (h, 0, N_FRAMES);
  gst_harness_push_event (h, gst_event_new_eos ());
  on_first = share_of (h->element, "cuda0");
  on_second = share_of (h->element, "cuda1");
  fail_unless_equals_uint64 (on_first + on_second, N_FRAMES);
  fail_unless (on_first > 0 && on_second > 0, "shares %u and %u",
      (guint) on_first, (guint) on_second);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Until the device @name has made @n B-scans. Returns: in how many us */
static gint64
wait_for_share (GstElement *element, const gchar *name, guint64 n)
{
  gint64 begin = g_get_monotonic_time ();

  while (share_of (element, name) < n) {
    fail_unless (
        g_get_monotonic_time () - begin < (gint64) (CHECK_TIMEOUT / 1000),
        "%s has made %u B-scans of %u", name, (guint) share_of (element, name),
        (guint) n);
    g_usleep (100);
  }
  return g_get_monotonic_time () - begin;
}

/* All frames, of which the second device makes those that it is given first,
 * @slowness times as long as the other needs for the rest. Returns: how many
 * these are */
static guint64
share_with_slow (GstHarness *h, gint64 slowness)
{
  guint64 fast = share_of (h->element, "cuda0");
  guint64 slow = share_of (h->element, "cuda1");
  guint64 n_slow;
  gint64 spent;

  hold (TRUE);
  push_frames (h, 0, N_FRAMES, TRUE);
  check_hold_device (0, FALSE);
  spent = wait_for_share (h->element, "cuda0", fast + 2);
  g_usleep ((gulong) (slowness * spent));
  check_hold_device (1, FALSE);
  pull_frames (h, 0, N_FRAMES);
  n_slow = share_of (h->element, "cuda1") - slow;
  fail_unless_equals_uint64 (
      share_of (h->element, "cuda0") - fast, N_FRAMES - n_slow);
  return n_slow;
}

/* One that has been found to be slow gets less, however long both take. The
 * first device has a B-scan while the others are pushed, and then, at once, all
 * that the second did not take with a quarter of a full batch. */
GST_START_TEST (test_slow_device_gets_less)
{
  GstHarness *h =
      harness_new (ELEMENT "backend=cuda cuda-devices=all max-in-flight=1");
  guint64 before = share_with_slow (h, 60), after = share_with_slow (h, 0);

  fail_unless_equals_uint64 (before, 64);
  fail_unless (after > 0 && after < before / 2,
      "found to be slow, a device has made %u B-scans, before %u",
      (guint) after, (guint) before);
  gst_harness_teardown (h);
}
GST_END_TEST

/* A device is lost while frames are on it, or finds nothing to do until it is
 * asked again: the other does what it had, and it is said. */
GST_START_TEST (test_lost_device_loses_no_frame)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda cuda-devices=all");
  GstBus *bus = watch (h);
  gchar *words = g_strdup_printf ("CUDA device %d cannot be used", __i__);
  guint n_frames = N_FRAMES;
  GstMessage *message = NULL;

  g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
  push_frames (h, 0, 60, TRUE);
  check_lose_device (__i__);
  push_frames (h, 60, N_FRAMES, TRUE);
  pull_frames (h, 0, N_FRAMES);
  for (guint i = 0; i < 200 && !message; i++) {
    message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
    push_frames (h, 0, N_FRAMES, TRUE);
    pull_frames (h, 0, N_FRAMES);
    n_frames += N_FRAMES;
  }
  fail_unless (message != NULL, "nothing was said");
  check_message_says (
      message, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, words);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), n_frames);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  unwatch (h, bus);
  gst_harness_teardown (h);
  g_free (words);
}
GST_END_TEST

/* Frames that are on a device are lost with it, which is counted; the others go
 * on. Only the first device takes such frames. */
GST_START_TEST (test_frames_on_a_lost_device_are_counted)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda cuda-devices=all");
  GstImagingContext *context = check_context (0);
  GstBus *bus = watch (h);
  GstBuffer *frames[20];
  GstClockTime last = 0;
  guint64 n_found = 0;
  GstBuffer *found;

  g_setenv ("IMK_MOCK_DELAY_US", "3000", TRUE);
  for (guint i = 0; i < 20; i++)
    frames[i] = noise_on_device (context, i);
  for (guint i = 0; i < 20; i++) {
    check_push (h, frames[i], GST_FLOW_OK);
    if (i == 9)
      check_lose_device (0);
  }
  push_frames (h, 20, 40, FALSE);
  gst_harness_push_event (h, gst_event_new_eos ());
  while ((found = gst_harness_try_pull (h))) {
    last = GST_BUFFER_PTS (found);
    n_found++;
    gst_buffer_unref (found);
  }
  fail_unless_equals_uint64 (last, 39 * GST_MSECOND);
  fail_unless_equals_uint64 (
      check_stat (h->element, "lost-frames"), 40 - n_found);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  fail_unless (n_found >= 20 && n_found < 40);
  check_lose_device (-1);
  unwatch (h, bus);
  g_object_unref (context);
  gst_harness_teardown (h);
}
GST_END_TEST

/* All of them, while frames are on them: the CPU does these, with auto; each
 * comes out once, in order. The first are read before, so that no image is on
 * the device alone. */
GST_START_TEST (test_cpu_does_what_the_last_device_had)
{
  GstHarness *h = harness_new (
      __i__ ? ELEMENT "backend=auto cuda-devices=all" : ELEMENT "backend=auto");
  GstBus *bus = watch (h);
  gchar *backend;

  g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
  push_until_read (h);
  push_frames (h, 2, 60, TRUE);
  check_device ()->inject_failure (1, TRUE);
  push_frames (h, 60, N_FRAMES, TRUE);
  pull_frames (h, 2, N_FRAMES);
  check_device ()->inject_failure (0, FALSE);
  check_message_says (check_message (bus, GST_MESSAGE_WARNING),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "cannot be used any more");
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
  g_object_get (h->element, "active-backend", &backend, NULL);
  fail_unless_equals_string (backend, "cpu");
  g_free (backend);
  unwatch (h, bus);
  gst_harness_teardown (h);
}
GST_END_TEST

/* The same with as much as can wait behind what the device has: all of it is
 * out before the end is. */
GST_START_TEST (test_cpu_does_what_waits_before_the_end)
{
  GstHarness *h = harness_new (ELEMENT "backend=auto max-in-flight=1");
  const guint n_behind = 2 * 256;

  push_until_read (h);
  hold (TRUE);
  push_frames (h, 2, 3, TRUE);
  for (guint i = 0; i < n_behind; i++)
    check_push (h, noise_lines (h, i % N_FRAMES, TRUE), GST_FLOW_OK);
  check_lose_device (0);
  hold (FALSE);
  gst_harness_push_event (h, gst_event_new_eos ());
  pull_frames (h, 2, 3);
  for (guint i = 0; i < n_behind; i++)
    check_image (check_pull (h), i % N_FRAMES);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), 3 + n_behind);
  fail_unless_equals_uint64 (share_of (h->element, "cpu"), 1 + n_behind);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Without the CPU it is an error, for all that comes behind as well, until
 * something is planned anew; and the stream can end. */
GST_START_TEST (test_nobody_goes_on_with_cuda_alone)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda");
  GstBus *bus = watch (h);

  push_until_read (h);
  check_lose_device (0);
  while (gst_pad_push (h->srcpad, noise_lines (h, 2, FALSE)) == GST_FLOW_OK)
    g_usleep (1000); /* until it is noticed */
  check_message_says (check_message (bus, GST_MESSAGE_ERROR), GST_LIBRARY_ERROR,
      GST_LIBRARY_ERROR_FAILED, "fallen off the bus");
  check_lose_device (-1);
  for (guint i = 0; i < 5; i++)
    check_push (h, noise_lines (h, i, FALSE), GST_FLOW_ERROR);
  gst_harness_push_event (h, gst_event_new_eos ());
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  unwatch (h, bus);
  gst_harness_teardown (h);
}
GST_END_TEST

static gpointer
stop_main (gpointer data)
{
  gst_element_set_state (data, GST_STATE_NULL);
  return NULL;
}

/* The other has ended already. */
GST_START_TEST (test_stop_while_a_device_is_lost)
{
  GstHarness *h = harness_new (ELEMENT "backend=auto cuda-devices=all");
  GThread *thread;

  push_frames (h, 0, 1, TRUE);
  pull_frames (h, 0, 1);
  hold (TRUE);
  push_frames (h, 1, 2, TRUE);
  thread = g_thread_new ("stop", stop_main, h->element);
  g_usleep (50000);
  check_lose_device (0);
  hold (FALSE);
  g_thread_join (thread);
  gst_harness_teardown (h);
  fail_unless_equals_int (check_n_live (), 0);
}
GST_END_TEST

GST_START_TEST (test_wrong_devices_are_said)
{
  static const gchar *const cases[][2] = {
      {"7", "cuda-devices has 7, but this machine has 2"},
      {"0;x", "cuda-devices has \"x\""}, {"0;;1", "cuda-devices has \"\""},
      {"-1", "cuda-devices has -1"}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstElement *element = gst_element_factory_make ("octbscan", NULL);
    GstBus *bus = gst_bus_new ();

    gst_element_set_bus (element, bus);
    g_object_set (element, "cuda-devices", cases[i][0], NULL);
    gst_util_set_object_arg (G_OBJECT (element), "backend", "cuda");
    fail_unless_equals_int (gst_element_set_state (element, GST_STATE_PAUSED),
        GST_STATE_CHANGE_FAILURE);
    check_message_says (check_message (bus, GST_MESSAGE_ERROR),
        GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, cases[i][1]);
    gst_element_set_state (element, GST_STATE_NULL);
    g_object_set (element, "cuda-devices", "", NULL); /* is none */
    fail_unless (gst_element_set_state (element, GST_STATE_PAUSED) !=
                 GST_STATE_CHANGE_FAILURE);
    gst_element_set_state (element, GST_STATE_NULL);
    gst_element_set_bus (element, NULL);
    gst_object_unref (bus);
    gst_object_unref (element);
  }
}
GST_END_TEST

/* --- a card ---------------------------------------------------------------
 */

static gboolean
has_card (void)
{
  const ImkDevice *device;
  ImkError error;
  gint n = 0;

  return imk_backend_load ("cuda", &error) == IMK_OK &&
         imk_device_get (&device, &error) == IMK_OK &&
         device->count (&n, &error) == IMK_OK && n > 0;
}

/* A kernel that ends in a trap: from then on this process, and no other, gets
 * errors of this context alone. */
static void
break_context (void)
{
  static const gchar code[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                              ".visible .entry fall ()\n{\n  trap;\n}\n";
  gpointer driver = dlopen ("libcuda.so.1", RTLD_NOW);
  int (*load) (gpointer *, const void *);
  int (*find) (gpointer *, gpointer, const char *);
  int (*launch) (gpointer, unsigned, unsigned, unsigned, unsigned, unsigned,
      unsigned, unsigned, gpointer, gpointer *, gpointer *);
  GstImagingContext *context = check_context (0);
  gpointer module, kernel;
  ImkError error;

  fail_unless (driver != NULL);
  *(gpointer *) &load = dlsym (driver, "cuModuleLoadData");
  *(gpointer *) &find = dlsym (driver, "cuModuleGetFunction");
  *(gpointer *) &launch = dlsym (driver, "cuLaunchKernel");
  fail_unless (load && find && launch);
  check_ok (gst_imaging_context_push (context, &error), &error);
  fail_unless_equals_int (load (&module, code), 0);
  fail_unless_equals_int (find (&kernel, module, "fall"), 0);
  fail_unless_equals_int (
      launch (kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
  gst_imaging_context_pop (context);
  g_object_unref (context);
}

GST_START_TEST (test_order_on_a_card)
{
  gchar *launch =
      g_strdup_printf (ELEMENT "backend=cuda max-in-flight=%d", __i__ + 1);
  GstHarness *h;

  if (!has_card ())
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
  g_free (launch);
}
GST_END_TEST

/* The CPU does what was on it; no frame in host memory is lost. */
GST_START_TEST (test_a_card_is_lost)
{
  GstHarness *h;
  GstBus *bus;

  if (!has_card ())
    check_skip ("there is no card");
  make_expected ();
  h = harness_new (ELEMENT "backend=auto");
  bus = watch (h);
  push_until_read (h);
  push_frames (h, 2, 60, TRUE);
  break_context ();
  push_frames (h, 60, N_FRAMES, TRUE);
  pull_frames (h, 2, N_FRAMES);
  check_message_says (check_message (bus, GST_MESSAGE_WARNING),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "cannot be used any more");
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
  unwatch (h, bus);
  gst_harness_teardown (h);
  g_clear_pointer (&expected, g_ptr_array_unref);
}
GST_END_TEST

static Suite *
octbscan_queue_suite (void)
{
  Suite *suite = suite_create ("octbscan-queue");
  TCase *tc = tcase_create ("octbscan-queue");

  suite_add_tcase (suite, tc);
  if (!check_is_mock ()) {
    tcase_add_loop_test (tc, test_order_on_a_card, 0, 4);
    tcase_add_test (tc, test_a_card_is_lost);
    return suite;
  }
  tcase_add_checked_fixture (tc, setup, teardown);
  tcase_add_loop_test (tc, test_order_is_kept, 0, 4);
  tcase_add_test (tc, test_batches_are_copied_at_once);
  tcase_add_test (tc, test_single_frames_go_at_once);
  tcase_add_test (tc, test_host_memory_is_made_with_the_caps);
  tcase_add_test (tc, test_events_stay_in_order);
  tcase_add_test (tc, test_flushes);
  tcase_add_test (tc, test_flushes_while_frames_come);
  tcase_add_test (tc, test_stop_with_frames_inside);
  tcase_add_loop_test (tc, test_stop_while_downstream_blocks, 0, 2);
  tcase_add_test (tc, test_settings_change_while_playing);
  tcase_add_loop_test (tc, test_volumes, 0, 2);
  tcase_add_test (tc, test_volumes_are_used_again);
  tcase_add_test (tc, test_volumes_of_several_cameras);
  tcase_add_test (tc, test_volumes_with_lines_left_over);
  tcase_add_test (tc, test_cpu_does_volumes);
  tcase_add_loop_test (tc, test_devices_share, 0, 2);
  tcase_add_test (tc, test_slow_device_gets_less);
  tcase_add_loop_test (tc, test_lost_device_loses_no_frame, 0, 2);
  tcase_add_test (tc, test_frames_on_a_lost_device_are_counted);
  tcase_add_loop_test (tc, test_cpu_does_what_the_last_device_had, 0, 2);
  tcase_add_test (tc, test_cpu_does_what_waits_before_the_end);
  tcase_add_test (tc, test_nobody_goes_on_with_cuda_alone);
  tcase_add_test (tc, test_stop_while_a_device_is_lost);
  tcase_add_test (tc, test_wrong_devices_are_said);
  return suite;
}

GST_CHECK_MAIN (octbscan_queue);
