/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan-frames.h"

/* --- the mock ------------------------------------------------------------- */

void
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

guint16
noise_at (guint line, guint x)
{
  guint32 v = (line * WIDTH + x + 1) * 2654435761u;

  v ^= v >> 15;
  v *= 2246822519u;
  return (guint16) ((v ^ v >> 13) >> 20);
}

GstBuffer *
noise_frames (GstHarness *h, guint frame, guint n, gboolean offered)
{
  gsize size = n * LINES * WIDTH * 2;
  GstBuffer *buffer = offered ? gst_harness_create_buffer (h, size)
                              : gst_buffer_new_allocate (NULL, size, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < n * LINES * WIDTH; i++)
    ((guint16 *) map.data)[i] = noise_at (frame * LINES + i / WIDTH, i % WIDTH);
  GST_BUFFER_PTS (buffer) = frame * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = n * GST_MSECOND;
  return buffer;
}

GstBuffer *
noise_lines (GstHarness *h, guint frame, gboolean offered)
{
  return noise_frames (h, frame, 1, offered);
}

GstHarness *
harness_with_lines (const gchar *launch, guint lines)
{
  GstElement *element = gst_parse_launch (launch, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");
  g_autofree gchar *caps =
      g_strdup_printf ("video/x-raw,format=GRAY16_LE,width=60,height=%u,"
                       "framerate=%u/%u",
          lines, 1000 * LINES, lines);

  gst_object_unref (element);
  gst_harness_set_src_caps_str (h, caps);
  return h;
}

GstHarness *
harness_new (const gchar *launch)
{
  return harness_with_lines (launch, LINES);
}

void
unwatch (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
}

GPtrArray *expected;

void
make_expected (void)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "backend=cpu");

  expected = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  for (guint i = 0; i < N_FRAMES; i++) {
    check_push (h, noise_lines (h, i, FALSE), GST_FLOW_OK);
    g_ptr_array_add (expected, check_pull (h));
  }
}

void
setup (void)
{
  check_device ();
  reset_mock ();
  make_expected ();
}

void
teardown (void)
{
  reset_mock ();
  g_clear_pointer (&expected, g_ptr_array_unref);
}

void
check_pixels (GstBuffer *found, GstBuffer *other, guint frame)
{
  gint tolerance = check_is_mock () ? 0 : 1;
  GstMapInfo a;
  g_auto (CheckMap) b = check_map (other, GST_MAP_READ);

  gst_buffer_map (found, &a, GST_MAP_READ);
  fail_unless_equals_uint64 (a.size, b.size);
  for (guint y = 0; y < DEPTHS; y++)
    for (guint x = 0; x < LINES; x++)
      if (ABS (a.data[y * 20 + x] - b.data[y * 20 + x]) > tolerance)
        fail ("(%u, %u) of frame %u is %u, expected %u", x, y, frame,
            a.data[y * 20 + x], b.data[y * 20 + x]);
  gst_buffer_unmap (found, &a);
  gst_buffer_unref (found);
}

void
check_image (GstBuffer *found, guint frame)
{
  fail_unless_equals_uint64 (GST_BUFFER_PTS (found), frame * GST_MSECOND);
  check_pixels (found, expected->pdata[frame], frame);
}

void
push_frames (GstHarness *h, guint first, guint end, gboolean offered)
{
  for (guint i = first; i < end; i++)
    check_push (h, noise_lines (h, i, offered), GST_FLOW_OK);
}

void
pull_frames (GstHarness *h, guint first, guint end)
{
  for (guint i = first; i < end; i++)
    check_image (check_pull (h), i);
}

void
push_until_read (GstHarness *h)
{
  for (guint i = 0; i < 2; i++) {
    push_frames (h, i, i + 1, TRUE);
    pull_frames (h, i, i + 1);
  }
}

guint64
share_of (GstElement *element, const gchar *name)
{
  g_autoptr (GstStructure) shares = NULL;
  guint64 n = 0;

  g_object_get (element, "shares", &shares, NULL);
  gst_structure_get_uint64 (shares, name, &n);
  return n;
}
