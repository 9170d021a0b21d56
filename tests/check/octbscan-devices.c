/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan on several devices, which the mock stands in for, and what becomes
 * of B-scans when devices are lost; what a card alone can show of that. */
#include "octbscan-frames.h"
#include "core/failures.h"

#include <dlfcn.h>

/* --- share of each device ------------------------------------------------- */

CHECK_CASE ("mock", setup, teardown)

CHECK_LOOP_TEST (test_devices_share, check_is_mock () ? 2 : 0)
{
  g_autoptr (CheckHarness) h =
      harness_new (__i__ ? ELEMENT "backend=cuda cuda-devices=<-1>"
                         : ELEMENT "backend=cuda cuda-devices=<1,0>");
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
}

/* Until the device @name has made @n B-scans. */
static void
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
  gint64 begin;

  hold (TRUE);
  push_frames (h, 0, N_FRAMES, TRUE);
  begin = g_get_monotonic_time ();
  check_hold_device (0, FALSE);
  wait_for_share (h->element, "cuda0", fast + 2);
  g_usleep ((gulong) (slowness * (g_get_monotonic_time () - begin)));
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
CHECK_MOCK_TEST (test_slow_device_gets_less)
{
  g_autoptr (CheckHarness) h =
      harness_new (ELEMENT "backend=cuda cuda-devices=<-1> max-in-flight=1");
  guint64 before = share_with_slow (h, 60), after = share_with_slow (h, 0);

  fail_unless_equals_uint64 (before, 64);
  fail_unless (after > 0 && after < before / 2,
      "found to be slow, a device has made %u B-scans, before %u",
      (guint) after, (guint) before);
}

/* --- devices that are lost ------------------------------------------------ */

/* A device is lost while frames are on it, or finds nothing to do until it is
 * asked again: the other does what it had, and it is said. */
CHECK_LOOP_TEST (test_lost_device_loses_no_frame, check_is_mock () ? 2 : 0)
{
  g_autoptr (CheckHarness) h =
      harness_new (ELEMENT "backend=cuda cuda-devices=<-1>");
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *words =
      g_strdup_printf ("CUDA device %d cannot be used", __i__);
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
  check_message_says (message, CHECK_CODE (LIBRARY, FAILED), words);
  check_no_messages (bus, GST_MESSAGE_ERROR);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), n_frames);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  unwatch (h, bus);
}

/* What it had in hand comes late, into memory that nobody looks at any more. */
CHECK_MOCK_TEST (test_lost_device_writes_into_no_image)
{
  GstHarness *h = harness_new (ELEMENT "backend=cuda cuda-devices=<-1>");
  GstBuffer *image;

  check_hold_device (0, TRUE);
  push_frames (h, 0, 1, TRUE);
  check_lose_device (0);
  image = check_pull (h);
  check_hold_device (0, FALSE);
  gst_harness_teardown (h); /* when its streams are done */
  check_image (image, 0);
}

/* Frames that are on a device are lost with it, which is counted; the others go
 * on. Only the first device takes such frames. */
CHECK_MOCK_TEST (test_frames_on_a_lost_device_are_counted)
{
  g_autoptr (CheckHarness) h =
      harness_new (ELEMENT "backend=cuda cuda-devices=<-1>");
  GstBus *bus = check_watch (h->element);
  GstBuffer *frames[20];
  GstClockTime last = 0;
  guint64 n_found = 0;
  GstBuffer *found;

  g_setenv ("IMK_MOCK_DELAY_US", "3000", TRUE);
  for (guint i = 0; i < 20; i++)
    frames[i] = check_ours (
        GST_IMAGING_MEMORY_DEVICE, NULL, noise_lines (NULL, i, FALSE));
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
  check_no_messages (bus, GST_MESSAGE_ERROR);
  fail_unless (n_found >= 20 && n_found < 40);
  check_lose_device (-1);
  unwatch (h, bus);
}

/* All of them, while frames are on them: the CPU does these, with auto; each
 * comes out once, in order. The first are read before, so that no image is on
 * the device alone. */
CHECK_LOOP_TEST (
    test_cpu_does_what_the_last_device_had, check_is_mock () ? 2 : 0)
{
  g_autoptr (CheckHarness) h =
      harness_new (__i__ ? ELEMENT "backend=auto cuda-devices=<-1>"
                         : ELEMENT "backend=auto");
  GstBus *bus = check_watch (h->element);
  gchar *backend;

  g_setenv ("IMK_MOCK_DELAY_US", "300", TRUE);
  push_until_read (h);
  push_frames (h, 2, 60, TRUE);
  imk_inject_failure (1, TRUE);
  push_frames (h, 60, N_FRAMES, TRUE);
  pull_frames (h, 2, N_FRAMES);
  imk_inject_failure (0, FALSE);
  check_warning (bus, LIBRARY, FAILED, "cannot be used any more");
  check_no_messages (bus, GST_MESSAGE_ERROR);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
  g_object_get (h->element, "active-backend", &backend, NULL);
  fail_unless_equals_string (backend, "cpu");
  g_free (backend);
  unwatch (h, bus);
}

/* The same with as much as can wait behind what the device has: all of it is
 * out before the end is. */
CHECK_MOCK_TEST (test_cpu_does_what_waits_before_the_end)
{
  g_autoptr (CheckHarness) h =
      harness_new (ELEMENT "backend=auto max-in-flight=1");
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
}

/* Without the CPU it is an error, for all that comes behind as well, until
 * something is planned anew; and the stream can end. */
CHECK_MOCK_TEST (test_nobody_goes_on_with_cuda_alone)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cuda");
  GstBus *bus = check_watch (h->element);

  push_until_read (h);
  check_lose_device (0);
  while (gst_pad_push (h->srcpad, noise_lines (h, 2, FALSE)) == GST_FLOW_OK)
    g_usleep (1000); /* until it is noticed */
  check_error (bus, LIBRARY, FAILED, "fallen off the bus");
  check_lose_device (-1);
  for (guint i = 0; i < 5; i++)
    check_push (h, noise_lines (h, i, FALSE), GST_FLOW_ERROR);
  gst_harness_push_event (h, gst_event_new_eos ());
  check_no_messages (bus, GST_MESSAGE_ERROR);
  unwatch (h, bus);
}

static gpointer
stop_main (gpointer data)
{
  gst_element_set_state (data, GST_STATE_NULL);
  return NULL;
}

/* The other has ended already. */
CHECK_MOCK_TEST (test_stop_while_a_device_is_lost)
{
  GstHarness *h = harness_new (ELEMENT "backend=auto cuda-devices=<-1>");
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

CHECK_MOCK_TEST (test_wrong_devices_are_said)
{
  check_wrong_devices ("octbscan");
}

/* --- a card --------------------------------------------------------------- */

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

CHECK_CASE ("card", NULL, NULL)

/* The CPU does what was on it; no frame in host memory is lost. */
CHECK_LOOP_TEST (test_a_card_is_lost, check_is_mock () ? 0 : 1)
{
  GstHarness *h;
  GstBus *bus;

  if (check_n_devices () == 0)
    check_skip ("there is no card");
  make_expected ();
  h = harness_new (ELEMENT "backend=auto");
  bus = check_watch (h->element);
  push_until_read (h);
  push_frames (h, 2, 60, TRUE);
  break_context ();
  push_frames (h, 60, N_FRAMES, TRUE);
  pull_frames (h, 2, N_FRAMES);
  check_warning (bus, LIBRARY, FAILED, "cannot be used any more");
  check_no_messages (bus, GST_MESSAGE_ERROR);
  fail_unless_equals_uint64 (check_stat (h->element, "lost-frames"), 0);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), N_FRAMES);
  unwatch (h, bus);
  gst_harness_teardown (h);
  g_clear_pointer (&expected, g_ptr_array_unref);
}
