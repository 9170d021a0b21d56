/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The relight element, on the CPU and on the mock of a device: formats, pads,
 * what moves the light, and what is refused. What it computes, the kernel's
 * tests check; the normals here face the camera. */
#include "check-common.h"
#include "core/failures.h"

#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <gst/video/navigation.h>
#include <math.h>

enum { WIDTH = 13, HEIGHT = 7 };

static const gchar *const backends[] = {"cpu", "cuda"};

/* --- harnesses ------------------------------------------------------------ */

typedef struct {
  GstElement *element;
  GstHarness *h;      /* normals and pictures */
  GstHarness *albedo; /* NULL where not asked */
  GstBus *bus;
} Rl;

static Rl
rl_new (const gchar *properties, gboolean with_albedo)
{
  g_autofree gchar *line = g_strdup_printf ("relight %s", properties);
  Rl rl = {.element = check_launch (line)};

  rl.bus = check_watch (rl.element);
  rl.h = gst_harness_new_with_element (rl.element, "normal", "src");
  if (with_albedo)
    rl.albedo = gst_harness_new_with_element (rl.element, "albedo", NULL);
  return rl;
}

static void
rl_free (Rl *rl)
{
  GstHarness *harnesses[] = {rl->albedo, rl->h};

  check_take_down (rl->element, rl->bus, harnesses, 2);
  fail_unless_equals_int (check_n_live (), 0);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Rl, rl_free)

static void
set_caps (GstHarness *h, const gchar *format, gint width, gint height)
{
  g_autofree gchar *caps = g_strdup_printf (
      "video/x-raw,format=%s,width=%d,height=%d,framerate=25/1", format, width,
      height);

  gst_harness_set_src_caps_str (h, caps);
}

/* Returns: (transfer full): @value in the channels 0 to 2 of all pixels */
static GstBuffer *
filled (const gchar *format, gint width, gint height, const guint value[3],
    guint frame)
{
  GstVideoInfo info = check_info (format, width, height);
  GstBuffer *buffer = check_noise (&info, frame);
  guint n = GST_VIDEO_INFO_IS_RGB (&info) ? 3 : 1;
  GstVideoFrame f;

  fail_unless (gst_video_frame_map (&f, &info, buffer, GST_MAP_READWRITE));
  for (guint c = 0; c < n; c++)
    for (gint y = 0; y < height; y++)
      for (gint x = 0; x < width; x++) {
        guint8 *p = (guint8 *) GST_VIDEO_FRAME_COMP_DATA (&f, c) +
                    y * GST_VIDEO_FRAME_COMP_STRIDE (&f, c) +
                    x * GST_VIDEO_FRAME_COMP_PSTRIDE (&f, c);

        if (GST_VIDEO_INFO_COMP_DEPTH (&info, c) == 8)
          *p = (guint8) value[c];
        else
          *(guint16 *) p = (guint16) value[c];
      }
  gst_video_frame_unmap (&f);
  return buffer;
}

/* Normals that face the camera. */
static GstBuffer *
facing (const gchar *format, guint frame)
{
  const guint bytes[] = {128, 128, 255}, words[] = {32768, 32768, 65535};

  return filled (
      format, WIDTH, HEIGHT, strstr (format, "64") ? words : bytes, frame);
}

/* Every pixel is @expected, to 1. */
static void
assert_colour (GstBuffer *buffer, const guint expected[3])
{
  GstVideoInfo info = check_info ("RGB", WIDTH, HEIGHT);
  GstVideoFrame f;

  fail_unless (gst_video_frame_map (&f, &info, buffer, GST_MAP_READ));
  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < 3 * WIDTH; x++) {
      gint v = ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (
          &f, 0))[y * GST_VIDEO_FRAME_PLANE_STRIDE (&f, 0) + x];

      fail_unless (ABS (v - (gint) expected[x % 3]) <= 1,
          "channel %d of (%d, %d) is %d, not %u", x % 3, x / 3, y, v,
          expected[x % 3]);
    }
  gst_video_frame_unmap (&f);
}

static void
assert_grey (GstBuffer *buffer, guint expected)
{
  const guint colour[] = {expected, expected, expected};

  assert_colour (buffer, colour);
}

/* --- tests ---------------------------------------------------------------- */

CHECK_TEST (test_every_format_and_backend_is_lit)
{
  const gchar *formats[] = {"RGB", "BGR", "RGBx", "BGRx", "xRGB", "xBGR",
      "RGBA", "BGRA", "ARGB", "ABGR", "RGBA64_LE", "ARGB64_LE"};

  for (guint b = 0; b < 2; b++)
    for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
      g_autofree gchar *properties =
          g_strdup_printf ("backend=%s elevation=30", backends[b]);
      g_auto (Rl) rl = rl_new (properties, FALSE);
      g_autoptr (GstBuffer) out = NULL;

      set_caps (rl.h, formats[i], WIDTH, HEIGHT);
      check_push (rl.h, facing (formats[i], 3), GST_FLOW_OK);
      out = check_pull (rl.h);
      assert_grey (out, 128); /* sin 30 */
      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 120 * GST_MSECOND);
    }
}

CHECK_TEST (test_one_albedo_paints_all_pictures)
{
  const guint paint[] = {200, 100, 50}, grey[] = {32768};
  const guint half[] = {100, 50, 25};

  for (guint b = 0; b < 2; b++)
    for (guint k = 0; k < 2; k++) {
      g_autofree gchar *properties =
          g_strdup_printf ("backend=%s elevation=30", backends[b]);
      const gchar *format = k ? "GRAY16_LE" : "BGRA";
      g_auto (Rl) rl = rl_new (properties, TRUE);

      set_caps (rl.h, "RGB", WIDTH, HEIGHT);
      set_caps (rl.albedo, format, WIDTH, HEIGHT);
      check_push (rl.albedo,
          filled (format, WIDTH, HEIGHT, k ? grey : paint, 0), GST_FLOW_OK);
      gst_harness_push_event (rl.albedo, gst_event_new_eos ());
      for (guint i = 0; i < 3; i++) {
        g_autoptr (GstBuffer) out = NULL;

        check_push (rl.h, facing ("RGB", i), GST_FLOW_OK);
        out = check_pull (rl.h);
        if (k)
          assert_grey (out, 64);
        else
          assert_colour (out, half);
      }
    }
}

CHECK_TEST (test_light_moves_with_properties)
{
  g_auto (Rl) rl = rl_new ("elevation=90", FALSE);
  g_autoptr (GstBuffer) out = NULL;

  set_caps (rl.h, "RGB", WIDTH, HEIGHT);
  check_push (rl.h, facing ("RGB", 0), GST_FLOW_OK);
  out = check_pull (rl.h);
  assert_grey (out, 255);
  gst_buffer_unref (out);
  g_object_set (rl.element, "elevation", 0.0, "ambient", 0.25, NULL);
  check_push (rl.h, facing ("RGB", 1), GST_FLOW_OK);
  out = check_pull (rl.h);
  assert_grey (out, 64);
}

CHECK_TEST (test_light_moves_with_a_controller)
{
  g_auto (Rl) rl = rl_new ("", FALSE);
  GstControlSource *source = gst_interpolation_control_source_new ();
  GstTimedValueControlSource *values = GST_TIMED_VALUE_CONTROL_SOURCE (source);
  GstBuffer *out;

  g_object_set (source, "mode", GST_INTERPOLATION_MODE_LINEAR, NULL);
  fail_unless (gst_object_add_control_binding (GST_OBJECT (rl.element),
      gst_direct_control_binding_new_absolute (
          GST_OBJECT (rl.element), "elevation", source)));
  gst_timed_value_control_source_set (values, 0, 90);
  gst_timed_value_control_source_set (values, 80 * GST_MSECOND, 30);
  set_caps (rl.h, "RGB", WIDTH, HEIGHT);
  for (guint i = 0; i < 3; i++) {
    check_push (rl.h, facing ("RGB", i), GST_FLOW_OK);
    out = check_pull (rl.h);
    assert_grey (out, i == 0 ? 255 : i == 1 ? 221 : 128); /* 90, 60, 30 */
    gst_buffer_unref (out);
  }
  gst_object_unref (source);
}

CHECK_TEST (test_light_moves_with_the_mouse)
{
  const struct {
    gdouble x, y, azimuth, elevation;
  } cases[] = {{6, 3, -1, 90}, {9.5, 3, 0, 0}, {6, 1.25, 90, 60},
      {-20, 3, 180, 0}, {6, 100, 270, 0}};
  g_auto (Rl) rl = rl_new ("", FALSE);

  set_caps (rl.h, "RGB", WIDTH, HEIGHT);
  check_push (rl.h, facing ("RGB", 0), GST_FLOW_OK);
  gst_buffer_unref (check_pull (rl.h));
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gdouble azimuth, elevation;

    gst_harness_push_upstream_event (rl.h,
        gst_event_new_navigation (gst_structure_new (
            "application/x-gst-navigation", "event", G_TYPE_STRING,
            "mouse-move", "button", G_TYPE_INT, 0, "pointer_x", G_TYPE_DOUBLE,
            cases[i].x, "pointer_y", G_TYPE_DOUBLE, cases[i].y, NULL)));
    g_object_get (
        rl.element, "azimuth", &azimuth, "elevation", &elevation, NULL);
    fail_unless (
        fabs (elevation - cases[i].elevation) < 0.1 &&
            (cases[i].azimuth < 0 || fabs (azimuth - cases[i].azimuth) < 0.1),
        "at (%g, %g) the light is at %g, %g", cases[i].x, cases[i].y, azimuth,
        elevation);
  }
}

CHECK_TEST (test_tensors_are_read)
{
  g_auto (Rl) rl = rl_new ("elevation=30", FALSE);
  GstBuffer *in = gst_buffer_new_allocate (NULL, 12 * WIDTH * HEIGHT, NULL);
  GstMapInfo map;
  g_autoptr (GstBuffer) out = NULL;

  gst_harness_set_src_caps_str (rl.h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=3:13:7:1,framerate=0/1");
  fail_unless (gst_buffer_map (in, &map, GST_MAP_WRITE));
  for (guint i = 0; i < 3 * WIDTH * HEIGHT; i++)
    ((gfloat *) map.data)[i] = i % 3 == 2;
  gst_buffer_unmap (in, &map);
  GST_BUFFER_PTS (in) = 0;
  check_push (rl.h, in, GST_FLOW_OK);
  out = check_pull (rl.h);
  assert_grey (out, 128);
}

/* The next picture says that there was an error. */
/* Tensors may have a rate that video/x-raw cannot have. */
CHECK_TEST (test_a_negative_rate_of_tensors_is_unknown)
{
  g_auto (Rl) rl = rl_new ("elevation=30", FALSE);
  g_autoptr (GstCaps) caps = NULL;
  gint n, d;

  gst_harness_set_src_caps_str (rl.h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)3:4:3:1,framerate=(fraction)-1/1");
  check_push (rl.h,
      gst_buffer_new_wrapped (
          g_malloc0 (4 * 3 * 3 * sizeof (gfloat)), 4 * 3 * 3 * sizeof (gfloat)),
      GST_FLOW_OK);
  gst_buffer_unref (check_pull (rl.h));
  caps = gst_pad_get_current_caps (rl.h->sinkpad);
  fail_unless (gst_structure_get_fraction (
      gst_caps_get_structure (caps, 0), "framerate", &n, &d));
  fail_unless (n == 0 && d == 1, "%d/%d", n, d);
}

static void
fail_with (Rl *rl, GstBuffer *in, const gchar *words)
{
  gst_harness_push (rl->h, in);
  check_says (rl->bus, GST_MESSAGE_ERROR, words);
}

CHECK_TEST (test_albedo_of_another_size_is_refused)
{
  const guint paint[] = {200, 100, 50};
  g_auto (Rl) rl = rl_new ("", TRUE);

  set_caps (rl.h, "RGB", WIDTH, HEIGHT);
  set_caps (rl.albedo, "RGB", 5, 4);
  check_push (rl.albedo, filled ("RGB", 5, 4, paint, 0), GST_FLOW_OK);
  fail_with (&rl, facing ("RGB", 0), "5 x 4");
}

CHECK_TEST (test_albedo_without_normals_is_said)
{
  const guint paint[] = {200, 100, 50};
  g_autoptr (GstElement) element = gst_element_factory_make ("relight", NULL);
  g_autoptr (CheckBus) bus = gst_bus_new ();
  g_autoptr (CheckHarness) src = NULL, albedo = NULL;
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;

  gst_object_ref_sink (element);
  gst_element_set_bus (element, bus);
  src = gst_harness_new_with_element (element, NULL, "src");
  albedo = gst_harness_new_with_element (element, "albedo", NULL);
  set_caps (albedo, "RGB", WIDTH, HEIGHT);
  check_push (albedo, filled ("RGB", WIDTH, HEIGHT, paint, 0), GST_FLOW_OK);
  message = check_message (bus, GST_MESSAGE_WARNING);
  gst_message_parse_warning (message, &error, NULL);
  fail_unless (strstr (error->message, "normal is not linked") != NULL,
      "it says: %s", error->message);
}

CHECK_TEST (test_tensor_of_another_shape_is_refused)
{
  g_auto (Rl) rl = rl_new ("", FALSE);

  gst_harness_set_src_caps_str (rl.h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=1:13:7:1,framerate=0/1");
  fail_with (&rl, gst_buffer_new_allocate (NULL, 4 * WIDTH * HEIGHT, NULL),
      "normals has 1 channels");
}

CHECK_MOCK_TEST (test_cpu_goes_on_when_the_device_fails)
{
  const guint paint[] = {200, 100, 50};
  const guint half[] = {100, 50, 25};
  guint n_warnings = 0;

  for (gulong nth = 1; nth < 20; nth++) {
    g_auto (Rl) rl = rl_new ("backend=cuda elevation=30", TRUE);
    GstBuffer *out;

    set_caps (rl.h, "RGB", WIDTH, HEIGHT);
    set_caps (rl.albedo, "RGB", WIDTH, HEIGHT);
    check_push (
        rl.albedo, filled ("RGB", WIDTH, HEIGHT, paint, 0), GST_FLOW_OK);
    gst_harness_push_event (rl.albedo, gst_event_new_eos ());
    check_push (rl.h, facing ("RGB", 0), GST_FLOW_OK);
    gst_buffer_unref (check_pull (rl.h));
    /* auto would not have begun with CUDA for frames of the host */
    g_object_set (rl.element, "backend", 0, NULL);
    check_count_messages (rl.bus, GST_MESSAGE_WARNING); /* that it is late */
    imk_inject_failure (nth, FALSE);
    check_push (rl.h, facing ("RGB", 1), GST_FLOW_OK);
    out = check_pull (rl.h);
    imk_inject_failure (0, FALSE);
    assert_colour (out, half);
    gst_buffer_unref (out);
    n_warnings += check_count_messages (rl.bus, GST_MESSAGE_WARNING);
  }
  fail_unless (n_warnings > 3);
}

CHECK_MOCK_TEST (test_cuda_that_fails_is_an_error_without_leak)
{
  const guint paint[] = {200, 100, 50};

  for (gulong nth = 1; nth < 30; nth++) {
    g_auto (Rl) rl = rl_new ("backend=cuda", TRUE);
    GstBuffer *out;

    set_caps (rl.h, "RGB", WIDTH, HEIGHT);
    set_caps (rl.albedo, "RGB", WIDTH, HEIGHT);
    imk_inject_failure (nth, FALSE);
    gst_harness_push (rl.albedo, filled ("RGB", WIDTH, HEIGHT, paint, 0));
    gst_harness_push (rl.h, facing ("RGB", 0));
    while (
        !(out = gst_harness_try_pull (rl.h)) && !gst_bus_have_pending (rl.bus))
      g_usleep (1000);
    imk_inject_failure (0, FALSE);
    gst_clear_buffer (&out);
  }
}
