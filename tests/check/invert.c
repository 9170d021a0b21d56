/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element invert, on the CPU and, through the mock, on a device. */
#include "check-common.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };
static const gchar *const formats[] = {"GRAY8", "GRAY16_LE", "RGB", "BGR"};

/* odd: 641 bytes have a stride of 644 */
enum { WIDTH = 641, HEIGHT = 3 };

static GstHarness *
harness_new (const gchar *backend, const gchar *format)
{
  g_autofree gchar *launch = g_strdup_printf ("invert backend=%s", backend);
  g_autofree gchar *caps = check_caps_string (format, WIDTH, HEIGHT);
  GstHarness *h = gst_harness_new_parse (launch);

  gst_harness_set_src_caps_str (h, caps);
  return h;
}

/* Pushes noise. Returns: (transfer full): what the element made of it */
static GstBuffer *
push_noise (GstHarness *h, const GstVideoInfo *info)
{
  check_push (h, check_noise (info, 1), GST_FLOW_OK);
  return check_pull (h);
}

/* The same noise, every bit flipped: m - v for 8 and 16 bits. */
static GstBuffer *
negative_of_noise (const GstVideoInfo *info)
{
  GstBuffer *buffer = check_noise (info, 1);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READWRITE);

  for (gsize i = 0; i < map.size; i++)
    map.data[i] = ~map.data[i];
  return buffer;
}

CHECK_LOOP_TEST (test_every_format_becomes_its_negative, N_BACKENDS)
{
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    GstVideoInfo info = check_info (formats[i], WIDTH, HEIGHT);
    g_autoptr (CheckHarness) h = harness_new (backends[__i__], formats[i]);
    g_autoptr (GstBuffer) out = push_noise (h, &info);
    g_autoptr (GstBuffer) expected = negative_of_noise (&info);

    check_same_pixels (out, expected, &info);
  }
}

CHECK_LOOP_TEST (test_the_amount_changes_while_playing, N_BACKENDS)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "GRAY8");
  g_autoptr (GstBuffer) noise = check_noise (&info, 1);
  g_autoptr (GstBuffer) out = NULL;
  guint8 grey;

  gst_buffer_unref (push_noise (h, &info));
  gst_harness_set (h, "invert", "amount", 0.5, NULL);
  out = push_noise (h, &info); /* v + 0.5 (255 - 2 v) + 0.5 = 128 */
  gst_buffer_extract (out, WIDTH / 2, &grey, 1);
  fail_unless_equals_int (grey, 128);
  gst_buffer_unref (out);

  gst_harness_set (h, "invert", "amount", 0.0, NULL);
  out = push_noise (h, &info);
  check_same_pixels (out, noise, &info);
}
