/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pipeline with an element on each device: frames go from one device to the
 * next without the host. Devices are the mock's, or those of a machine with
 * several GPUs. */
#include "check-common.h"

#define WIDTH 1283
#define HEIGHT 719
#define SHARPEN "lapsharpen amount=0.75 "

enum { N_FRAMES = 12, N_ELEMENTS = 3 };

static GstHarness *
chain_new (const gchar *line, const gchar *format)
{
  GstHarness *h = gst_harness_new_parse (line);
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);

  gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
  return h;
}

static GstElement *
element_of (GstHarness *h, guint i)
{
  g_autofree gchar *name = g_strdup_printf ("e%u", i);

  return gst_bin_get_by_name (GST_BIN (h->element), name);
}

static guint64
stat_of (GstHarness *h, guint i, const gchar *field)
{
  g_autoptr (GstElement) element = element_of (h, i);
  guint64 value = check_stat (element, field);

  return value;
}

/* All frames are in the pipeline before the first one is looked at. */
static void
same_as_on_the_cpu (GstHarness *devices, GstHarness *cpu, const gchar *format)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);

  for (guint i = 0; i < N_FRAMES; i++)
    check_push (devices, check_noise (&info, i), GST_FLOW_OK);
  for (guint i = 0; i < N_FRAMES; i++) {
    g_autoptr (GstBuffer) found = check_pull (devices), expected = NULL;

    check_push (cpu, check_noise (&info, i), GST_FLOW_OK);
    expected = check_pull (cpu);
    check_same_pixels (found, expected, &info);
  }
}

CHECK_LOOP_TEST (test_frames_go_from_device_to_device,
    check_ask_child (check_has_two_devices))
{
  static const gchar *const formats[] = {"GRAY8", "RGBA", "I420"};

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
    GstVideoInfo info = check_info (formats[f], WIDTH, HEIGHT);
    g_autoptr (CheckHarness) devices = chain_new (SHARPEN
        "backend=cuda name=e0 cuda-device-id=0 ! " SHARPEN
        "backend=cuda name=e1 cuda-device-id=1 ! queue ! " SHARPEN
        "backend=cuda name=e2 cuda-device-id=0",
        formats[f]);
    g_autoptr (CheckHarness) cpu = chain_new (SHARPEN
        "backend=cpu ! " SHARPEN "backend=cpu ! " SHARPEN "backend=cpu",
        formats[f]);

    same_as_on_the_cpu (devices, cpu, formats[f]);
    for (guint i = 1; i < N_ELEMENTS; i++) {
      fail_unless_equals_uint64 (
          stat_of (devices, i, "bytes-from-peers"), N_FRAMES * info.size);
      fail_unless_equals_uint64 (stat_of (devices, i, "bytes-copied"), 0);
      fail_unless_equals_uint64 (stat_of (devices, i, "bytes-uploaded"), 0);
    }
    for (guint i = 0; i + 1 < N_ELEMENTS; i++)
      fail_unless_equals_uint64 (stat_of (devices, i, "bytes-downloaded"), 0);
  }
}
