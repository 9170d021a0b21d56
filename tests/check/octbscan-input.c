/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the element octbscan takes besides frames of grey video: tensors, arrays
 * from files; and what it says of wrong ones. */
#include "octbscan-run.h"

#include <math.h>
#include <string.h>

#include "gstimagingnpy.h"

/* --- tensors -------------------------------------------------------------- */

/* A tensor of 11 lines of @width samples, whose rows stand close. */
static GstBuffer *
tensor_new (ImkType type, guint width)
{
  gsize size = imk_type_size (type);
  GstBuffer *buffer =
      gst_buffer_new_allocate (NULL, size * width * HEIGHT, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < width * HEIGHT; i++) {
    gdouble v = 100 * cos (0.3 * (i % width) + i / width) - 20;

    if (type == IMK_TYPE_F32)
      ((gfloat *) map.data)[i] = (gfloat) v;
    else if (type == IMK_TYPE_I16)
      ((gint16 *) map.data)[i] = (gint16) v;
    else if (type == IMK_TYPE_U16)
      ((guint16 *) map.data)[i] = (guint16) (v + 500);
    else
      map.data[i] = (guint8) (v + 125);
  }
  return buffer;
}

static void
check_tensor (ImkType type, const gchar *name, guint width)
{
  g_autofree gchar *caps = g_strdup_printf (
      "other/tensors,format=static,num_tensors=1,types=%s,dimensions=%u:%d:1:1,"
      "framerate=100/1",
      name, width, HEIGHT);
  GstBuffer *in = tensor_new (type, width), *out;
  ImkOctbscanConfig c = base_config ();
  g_autofree guint8 *expected = g_malloc0 ((gsize) HEIGHT * (width / 2));
  g_auto (Run) r = run_new (ELEMENT, 1 << SRC);
  ImkOctbscan *kernel = NULL;
  GstMapInfo map;
  ImkImage from, to;
  ImkOctbscanJob job = {.in = &from, .db = &to};
  ImkError error;

  c.width = width;
  c.type = type;
  gst_buffer_map (in, &map, GST_MAP_READ);
  from = image_of (map.data, width, HEIGHT, type);
  to = image_of (expected, HEIGHT, width / 2, IMK_TYPE_U8);
  if (on_cuda)
    c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  check_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, &error), &error);
  check_ok (imk_octbscan_process (kernel, &job, 1, NULL, &error), &error);
  imk_octbscan_free (kernel);
  gst_buffer_unmap (in, &map);
  gst_harness_set_src_caps_str (r.pads[SRC], caps);
  for (guint i = 0; i < 2; i++) {
    check_push (r.pads[SRC], gst_buffer_ref (in), GST_FLOW_OK);
    out = check_pull (r.pads[SRC]);
    check_levels (out, expected, HEIGHT, width / 2, name, i);
    gst_buffer_unref (out);
  }
  gst_buffer_unref (in);
}

CHECK_CASE ("octbscan-input", check_make_folder, check_remove_folder)

CHECK_BACKENDS_TEST (test_tensors_are_taken)
{
  for (guint width = 60; width <= 61; width++) {
    check_tensor (IMK_TYPE_I16, "int16", width);
    check_tensor (IMK_TYPE_F32, "float32", width);
    check_tensor (IMK_TYPE_U16, "uint16", width);
    check_tensor (IMK_TYPE_U8, "uint8", width);
  }
}

/* Four tensors, of which the second and the third have spectra that are not
 * numbers: columns of their images are black, others are as they would be. */
CHECK_BACKENDS_TEST (test_black_ascans_are_counted)
{
  g_auto (Run) r;

  r = run_new (ELEMENT, 1 << SRC);
  gst_harness_set_src_caps_str (r.pads[SRC],
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=60:11:1:1,framerate=100/1");
  for (guint i = 0; i < 4; i++) {
    GstBuffer *in = tensor_new (IMK_TYPE_F32, 60), *out;
    GstMapInfo map;
    guint n_black = 0;

    gst_buffer_map (in, &map, GST_MAP_READWRITE);
    if (i == 1 || i == 2)
      ((gfloat *) map.data)[60 * 3 + 7] = NAN;
    if (i == 2)
      ((gfloat *) map.data)[60 * 4 + 59] = INFINITY;
    gst_buffer_unmap (in, &map);
    check_push (r.pads[SRC], in, GST_FLOW_OK);
    out = check_pull (r.pads[SRC]);
    gst_buffer_map (out, &map, GST_MAP_READ);
    for (guint x = 0; x < HEIGHT; x++) {
      guint sum = 0;

      for (guint y = 0; y < DEPTHS; y++)
        sum += map.data[y * GST_ROUND_UP_4 (HEIGHT) + x];
      n_black += sum == 0;
    }
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
    fail_unless_equals_int (n_black, i % 3 ? i : 0);
  }
  fail_unless_equals_uint64 (check_stat (r.element, "bad-ascans"), 3);
  check_warning (r.bus, STREAM, DECODE, "1 A-scans are black");
  check_no_messages (r.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
}

CHECK_TEST (test_wrong_tensors_are_said)
{
  static const gchar *const dimensions[] = {
      "60", "60:11:2", "0:11", "60:x", "60:11:1:1:3", "-1:4", "99999:2"};

  on_cuda = FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (dimensions); i++) {
    g_autofree gchar *caps = g_strdup_printf (
        "other/tensors,format=static,num_tensors=1,types=float32,"
        "dimensions=(string)\"%s\",framerate=100/1",
        dimensions[i]);
    g_auto (Run) r = run_new (ELEMENT, 1 << SRC);

    gst_harness_set_src_caps_str (r.pads[SRC], caps);
    check_error (r.bus, STREAM, FORMAT, "samples:lines");
  }
}

static const gchar *const too_large[][3] = {
    {"video/x-raw,format=GRAY16_LE,width=65535,height=65535", "",
        "Frames of 4 GiB"},
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)\"65535:65535\"",
        "", "of less than 4 GiB"},
    {"video/x-raw,format=GRAY16_LE,width=65535,height=1",
        "ascans-per-bscan=65535", "B-scans of 65535 lines"},
};

CHECK_LOOP_TEST (
    test_sizes_that_are_too_large_are_said, G_N_ELEMENTS (too_large))
{
  g_autofree gchar *caps =
      g_strdup_printf ("%s,framerate=100/1", too_large[__i__][0]);
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "%s", too_large[__i__][1]);
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Run) r;

  on_cuda = FALSE;
  r = run_new (launch, 1 << SRC);
  gst_harness_set_src_caps_str (r.pads[SRC], caps);
  message = gst_bus_timed_pop_filtered (r.bus, GST_SECOND, GST_MESSAGE_ERROR);
  fail_unless (message != NULL, "nothing is said of %s", caps);
  gst_message_parse_error (message, &error, NULL);
  fail_unless (strstr (error->message, too_large[__i__][2]) != NULL,
      "\"%s\" does not say \"%s\"", error->message, too_large[__i__][2]);
}

/* Whoever has not linked the pad need not know. */
CHECK_TEST (test_images_that_are_too_large_are_said)
{
  const gchar *const caps =
      "video/x-raw,format=GRAY16_LE,width=60,height=65535,framerate=100/1";
  GstPad *enface;
  g_auto (Run) r;

  on_cuda = FALSE;
  r = run_new (ELEMENT "bscans-per-volume=65535", 1 << SRC);
  enface = gst_element_request_pad_simple (r.element, "enface");
  gst_harness_set_src_caps_str (r.pads[SRC], caps);
  check_no_messages (r.bus, GST_MESSAGE_ERROR);
  gst_element_release_request_pad (r.element, enface);
  gst_object_unref (enface);
  gst_harness_set_src_caps_str (r.pads[SRC], CAPS);
  r.pads[ENFACE] = gst_harness_new_with_element (r.element, NULL, "enface");
  gst_harness_set_sink_caps_str (
      r.pads[ENFACE], "video/x-raw,format=GRAY16_LE");
  gst_harness_set_src_caps_str (r.pads[SRC], caps);
  check_error (r.bus, LIBRARY, SETTINGS, "images of enface, 65535 x 65535");
}

/* --- files ---------------------------------------------------------------- */

CHECK_BACKENDS_TEST (test_pattern_and_curve_are_read)
{
  g_autofree gchar *pattern_path = check_path_of ("pattern.npy");
  g_autofree gchar *curve_path = check_path_of ("curve.npy");
  g_autofree gchar *launch = g_strdup_printf (ELEMENT
      "bscans-per-volume=2 fixed-pattern=file pattern-location=%s "
      "scan-correction=curve scan-curve=%s window=file window-location=%s",
      pattern_path, curve_path, curve_path);
  static const gdouble curve[] = {0, 2, 9.5, 10};
  gdouble pattern[2 * DEPTHS];
  const guint64 n_pattern[] = {1, DEPTHS}, n_curve = 4;
  ImkOctbscanConfig c = base_config ();
  g_auto (Expected) e;
  g_auto (Run) r;

  for (guint i = 0; i < 2 * DEPTHS; i++)
    pattern[i] = sin (i);
  fail_unless (gst_imaging_npy_save (pattern_path,
      GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128, 2, n_pattern, pattern, NULL));
  fail_unless (gst_imaging_npy_save (
      curve_path, GST_IMAGING_ND_ARRAY_TYPE_F64, 1, &n_curve, curve, NULL));
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_FILE;
  c.pattern = pattern;
  c.scan = IMK_OCTBSCAN_SCAN_CURVE;
  c.scan_curve = curve;
  c.n_scan_curve = 4;
  c.window = IMK_OCTBSCAN_WINDOW_FILE;
  c.window_values = curve;
  c.n_window_values = 4;
  e = expect (&c, 2, 1);
  r = run_new (launch, 15);
  push_all (&r, 0, 2);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, 1);
}

static const gchar *const refusals[][2] = {
    {"fixed-pattern=file", "Set pattern-location"},
    {"fixed-pattern=file pattern-location=/nowhere.npy", "pattern-location"},
    {"scan-correction=curve", "Set scan-curve"},
    {"window=file", "Set window-location"},
    {"window=file window-location=/nowhere.npy", "window-location"},
    {"scan-correction=curve scan-curve=/nowhere.npy", "scan-curve"},
    {"tracking=rpe tracking-top=29", "tracking-top 29"},
    {"enface-top=30", "enface-top 30"},
    {"dispersion=0;x", "dispersion \"0;x\" holds \"x\""},
    {"cameras=3 dispersion=0;1,0;2", "is for 2 cameras, but there are 3"},
    {"dispersion=0;nan", "dispersion of camera 0 is nan"},
};

CHECK_LOOP_TEST (test_wrong_settings_are_said, G_N_ELEMENTS (refusals))
{
  g_autofree gchar *launch = g_strdup_printf (ELEMENT "%s", refusals[__i__][0]);
  g_auto (Run) r;

  on_cuda = FALSE;
  r = run_new (launch, 1 << SRC);
  gst_harness_push (r.pads[SRC], bscan_new (0));
  check_says (r.bus, GST_MESSAGE_ERROR, refusals[__i__][1]);
}

/* --- settings that are right, but not meant ------------------------------- */

/* Says @launch, with a calibration of two cameras, that? Once, while properties
 * change. */
static void
check_said (const gchar *properties, const gchar *words)
{
  g_autofree gchar *path = check_path_of ("two.ini");
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "calibration=%s %s", path, properties);
  g_auto (Run) r;

  fail_unless (g_file_set_contents (path,
      "[camera 0]\npolynomial=806;-0.06\n[camera 1]\npolynomial=805;-0.06\n",
      -1, NULL));
  r = run_new (launch, 1 << SRC);
  push_all (&r, 0, 1);
  g_object_set (r.element, "crop-top", 1, NULL);
  push_all (&r, 1, 2);
  if (words)
    check_warning (r.bus, LIBRARY, SETTINGS, words);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_no_messages (r.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
}

CHECK_BACKENDS_TEST (test_settings_that_are_not_meant_are_said)
{
  check_said ("", "The calibration is of 2 cameras, but cameras is 1");
  check_said ("camera-order=<1>", NULL);
  check_said ("cameras=2", NULL);
  check_said ("cameras=2 ascans-per-bscan=1", "images will be black");
  check_said ("cameras=2 ascans-per-bscan=1 background=running", NULL);
}

/* --- buffers that are too short ------------------------------------------- */

static void
check_short (const gchar *launch, GstBuffer *buffer)
{
  g_auto (Run) r = run_new (launch, 1 << SRC);
  GstFlowReturn flow = gst_harness_push (r.pads[SRC], buffer);

  /* a device finds out while the next one comes */
  fail_unless (flow == GST_FLOW_ERROR || (on_cuda && flow == GST_FLOW_OK));
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  fail_unless_equals_int (check_count_messages (r.bus, GST_MESSAGE_ERROR), 1);
}

/* Without memory, with none in it, with less than a line; and as one B-scan, a
 * part of one, and several. */
CHECK_BACKENDS_TEST (test_short_buffers_are_said)
{
  static const gchar *const launches[] = {ELEMENT,
      ELEMENT "ascans-per-bscan=22", ELEMENT "ascans-per-bscan=3",
      ELEMENT "cuda-devices=<-1> ascans-per-bscan=3"};

  for (guint i = 0; i < G_N_ELEMENTS (launches); i++) {
    check_short (launches[i], gst_buffer_new ());
    check_short (launches[i], gst_buffer_new_allocate (NULL, 0, NULL));
    check_short (launches[i], gst_buffer_new_allocate (NULL, 7, NULL));
  }
}
