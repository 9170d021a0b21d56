/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lapsharpen with tensors of float32. */
#include <math.h>

#include "check-common.h"
#include "gstimagingresults.h"

static const gchar *const backends[] = {"cpu", "cuda"};

#define N_BACKENDS G_N_ELEMENTS (backends)
#define CAPS(dimensions) \
  "other/tensors,format=static,num_tensors=1,types=float32,dimensions=" \
  "(string)" dimensions ",framerate=25/1"

/* The caps come later: what is refused posts an error. */
static GstHarness *
harness_new (const gchar *launch, guint backend, GstBus *bus)
{
  g_autofree gchar *words =
      g_strdup_printf ("%s backend=%s", launch, backends[backend]);
  GstElement *element = gst_parse_launch (words, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");

  if (bus)
    gst_element_set_bus (element, bus);
  gst_object_unref (element);
  return h;
}

static GstBuffer *
tensor_new (const gfloat *values, gsize n)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, n * sizeof (gfloat), NULL);

  gst_buffer_fill (buffer, 0, values, n * sizeof (gfloat));
  GST_BUFFER_PTS (buffer) = 0;
  GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
  return buffer;
}

/* Pushes @n values and reads as many. */
static void
sharpen (const gchar *launch, guint backend, const gchar *caps,
    const gfloat *values, gfloat *found, gsize n)
{
  GstHarness *h = harness_new (launch, backend, NULL);
  GstBuffer *out;

  gst_harness_set_src_caps_str (h, caps);
  fail_unless_equals_int (
      gst_harness_push (h, tensor_new (values, n)), GST_FLOW_OK);
  out = check_pull (h);
  fail_unless_equals_uint64 (gst_buffer_get_size (out), n * sizeof (gfloat));
  gst_buffer_extract (out, 0, found, n * sizeof (gfloat));
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}

static void
check_values (const gfloat *found, const gfloat *expected, gsize n)
{
  for (gsize i = 0; i < n; i++)
    fail_unless (
        found[i] == expected[i] || (isnan (found[i]) && isnan (expected[i])),
        "value %u is %g, expected %g", (guint) i, (gdouble) found[i],
        (gdouble) expected[i]);
}

CHECK_CASE ("lapsharpen-float", NULL, NULL)

/* 5 x 3 has rows that no video format has: 20 bytes. Nothing is rounded or
 * clamped. */
CHECK_LOOP_TEST (test_a_dot, N_BACKENDS)
{
  static const gchar *const caps[] = {
      CAPS ("5:3"), CAPS ("5:3:1:1"), CAPS ("1:5:3:1")};
  static const gfloat dot[15] = {[7] = 0.25f};
  static const gfloat expected[15] = {
      [2] = -0.125f, [6] = -0.125f, [7] = 0.75f, [8] = -0.125f, [12] = -0.125f};
  static const gfloat local[15] = {[7] = 0.25f};
  static const gfloat edges[15] = {
      [2] = 0.125f, [6] = 0.125f, [7] = 0.5f, [8] = 0.125f, [12] = 0.125f};
  gfloat found[15];

  for (guint i = 0; i < G_N_ELEMENTS (caps); i++) {
    sharpen ("lapsharpen amount=0.5", __i__, caps[i], dot, found, 15);
    check_values (found, expected, 15);
  }
  sharpen ("lapsharpen amount=0.5 clamp=local", __i__, caps[0], dot, found, 15);
  check_values (found, local, 15);
  sharpen (
      "lapsharpen amount=0.5 output=edges", __i__, caps[0], dot, found, 15);
  check_values (found, edges, 15);
}

CHECK_LOOP_TEST (test_channels_do_not_mix, N_BACKENDS)
{
  static const gfloat in[18] = {[12] = 1, [13] = 100, [14] = -3};
  static const gfloat expected[18] = {[3] = -1,
      [4] = -100,
      [5] = 3,
      [9] = -1,
      [10] = -100,
      [11] = 3,
      [12] = 4,
      [13] = 400,
      [14] = -12,
      [15] = -1,
      [16] = -100,
      [17] = 3};
  gfloat found[18];

  sharpen ("lapsharpen", __i__, CAPS ("3:3:2:1"), in, found, 18);
  check_values (found, expected, 18);
}

/* The left column is copied, its NaN included; beside it is none. */
CHECK_LOOP_TEST (test_nan_and_regions, N_BACKENDS)
{
  static const gfloat in[8] = {NAN, 1, 1, 1, 2, 1, 1, 1};
  static const gfloat whole[8] = {NAN, NAN, 1, 1, NAN, 0, 1, 1};
  static const gfloat split[8] = {NAN, NAN, 1, 1, 2, 0, 1, 1};
  static const gfloat region[8] = {NAN, 1, 1, 1, 2, 0, 1, 1};
  gfloat found[8];

  sharpen ("lapsharpen", __i__, CAPS ("4:2"), in, found, 8);
  check_values (found, whole, 8);
  sharpen ("lapsharpen split=0.25", __i__, CAPS ("4:2"), in, found, 8);
  check_values (found, split, 8);
  sharpen ("lapsharpen x=1 y=1", __i__, CAPS ("4:2"), in, found, 8);
  check_values (found, region, 8);
}

/* The edge of lapsharpen-focus, a thousandth as high. */
CHECK_LOOP_TEST (test_tiles, N_BACKENDS)
{
  gfloat in[32], found[2][3];
  static const gdouble expected[2][3] = {
      {75e-6, 1600e-6, 200e-6}, {75e-6, 1600e-6, 0}};
  GstHarness *h = harness_new ("lapsharpen focus-columns=2", __i__, NULL);
  const GstStructure *s;
  GstBuffer *out, *data;

  for (guint i = 0; i < 32; i++)
    in[i] = i % 8 < 4 ? 0.01f : 0.03f;
  gst_harness_set_src_caps_str (h, CAPS ("8:4"));
  gst_harness_push (h, tensor_new (in, 32));
  out = check_pull (h);
  s = gst_imaging_results_get (out, NULL);
  fail_unless (s != NULL, "there is no result");
  fail_unless (gst_structure_get (s, "data", GST_TYPE_BUFFER, &data, NULL));
  gst_buffer_extract (data, 0, found, sizeof (found));
  for (guint i = 0; i < 6; i++)
    fail_unless (
        fabs ((gdouble) found[i / 3][i % 3] - expected[i / 3][i % 3]) < 1e-9,
        "measure %u is %g", i, (gdouble) found[i / 3][i % 3]);
  gst_buffer_unref (data);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}

/* Video after a tensor, and a tensor after video. */
CHECK_LOOP_TEST (test_caps_change, N_BACKENDS)
{
  static const gfloat dot[15] = {[7] = 0.25f};
  static const guint8 bytes[8] = {0, 0, 0, 0, 0, 10, 0, 0};
  GstHarness *h = harness_new ("lapsharpen", __i__, NULL);

  for (guint i = 0; i < 4; i++) {
    GstBuffer *in = i % 2 ? gst_buffer_new_memdup (bytes, sizeof (bytes))
                          : tensor_new (dot, 15);
    GstBuffer *out;
    GstMapInfo map;

    gst_harness_set_src_caps_str (
        h, i % 2 ? "video/x-raw,format=GRAY8,width=4,height=2,framerate=25/1"
                 : CAPS ("5:3"));
    fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_OK);
    out = check_pull (h);
    fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
    if (i % 2) {
      fail_unless_equals_int (map.data[5], 40);
    } else {
      fail_unless_equals_float (
          (gdouble) ((const gfloat *) (gpointer) map.data)[7], 1.25);
    }
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}

CHECK_LOOP_TEST (test_what_is_refused, N_BACKENDS)
{
  static const struct {
    const gchar *launch, *caps, *words;
  } cases[] = {
      {"lapsharpen", CAPS ("80"), "is no picture"},
      {"lapsharpen", CAPS ("5:3:4:2"), "is no picture"},
      {"lapsharpen", CAPS ("0:3"), "is no picture"},
      {"lapsharpen", CAPS ("5:4:3:1"), "5 channels"},
      {"lapsharpen method=cas", CAPS ("5:3"), "black and white"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstBus *bus = gst_bus_new ();
    GstHarness *h = harness_new (cases[i].launch, __i__, bus);
    static const gfloat values[60];
    GstMessage *message;
    GError *error = NULL;

    gst_harness_set_src_caps_str (h, cases[i].caps);
    fail_unless (gst_harness_push (h, tensor_new (values, 60)) != GST_FLOW_OK);
    message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
    fail_unless (message != NULL, "case %u posts no error", i);
    gst_message_parse_error (message, &error, NULL);
    fail_unless (
        strstr (error->message, cases[i].words) != NULL, "%s", error->message);
    g_clear_error (&error);
    gst_message_unref (message);
    gst_element_set_bus (h->element, NULL);
    gst_harness_teardown (h);
    gst_object_unref (bus);
  }
}
