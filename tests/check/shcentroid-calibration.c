/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shcentroid: dark, flat, bad pixels and look-up table from files
 * and from live frames, and its options while playing, on the CPU and, through
 * the mock module, on a device. */
#include <math.h>
#include <string.h>

#include "gstimagingnpy.h"
#include "gstimagingresults.h"
#include "sh-check.h"

#include "imk/shcentroid.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };

enum { WIDTH = 12, HEIGHT = 8, N_PIXELS = WIDTH * HEIGHT, N_CELLS = 6 };
#define GRID "pitch-x=4 pitch-y=4 columns=3 rows=2 "

/* --- harness --- */

static Sh
sh_new (const gchar *backend, const gchar *properties)
{
  return sh_open (backend, GRID, properties, WIDTH, HEIGHT, N_CELLS);
}

/* @values: NULL for the same @level everywhere */
static GstBuffer *
frame_new (const guint16 *values, guint16 level)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 2 * N_PIXELS, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < N_PIXELS; i++)
    GST_WRITE_UINT16_LE (map.data + 2 * i, values ? values[i] : level);
  return buffer;
}

static gchar *
save (const gchar *name, guint64 rows, guint64 columns, const gfloat *values)
{
  gchar *path = check_path_of (name);
  guint64 dims[] = {rows, columns};
  GError *error = NULL;

  fail_unless (gst_imaging_npy_save (path, GST_IMAGING_ND_ARRAY_TYPE_F32, 2,
                   dims, values, &error),
      "%s", error ? error->message : "");
  return path;
}

/* --- files --- */

CHECK_CASE ("shcentroid-calibration", check_make_folder, check_remove_folder)

CHECK_LOOP_TEST (test_calibration_files_are_applied_in_their_order, N_BACKENDS)
{
  gfloat dark[N_PIXELS], flat[N_PIXELS], bad[N_PIXELS] = {0};
  g_autofree gfloat *lut = g_new (gfloat, 65536);
  gchar *path[4];
  Sh sh = sh_new (backends[__i__], "");

  for (guint i = 0; i < 65536; i++)
    lut[i] = 2 * i;
  for (guint i = 0; i < N_PIXELS; i++) {
    dark[i] = 20;
    flat[i] = 0.5;
  }
  bad[0] = 7;
  path[0] = save ("dark.npy", HEIGHT, WIDTH, dark);
  path[1] = save ("flat.npy", HEIGHT, WIDTH, flat);
  path[2] = save ("bad.npy", HEIGHT, WIDTH, bad);
  path[3] = save ("lut.npy", 1, 65536, lut);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 100), 0, IMK_SHCENTROID_FLUX), 1600);
  g_object_set (sh.element, "dark-location", path[0], NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 100), 0, IMK_SHCENTROID_FLUX), 1280);
  g_object_set (sh.element, "flat-location", path[1], NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 100), 0, IMK_SHCENTROID_FLUX), 640);
  g_object_set (sh.element, "bad-pixels-location", path[2], NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 100), 0, IMK_SHCENTROID_FLUX), 600);
  g_object_set (sh.element, "lut-location", path[3], NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 100), 0, IMK_SHCENTROID_FLUX), 1350);
  g_object_set (sh.element, "dark-location", "", "flat-location", "",
      "bad-pixels-location", "", "lut-location", "", NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 100), 0, IMK_SHCENTROID_FLUX), 1600);
  sh_free (&sh);
  for (guint i = 0; i < 4; i++)
    g_free (path[i]);
}

/* A table may turn counts into electrons, beyond what samples can be. */
CHECK_LOOP_TEST (test_a_threshold_is_in_the_unit_of_the_table, N_BACKENDS)
{
  g_autofree gfloat *lut = g_new (gfloat, 65536);
  g_autofree gchar *path = NULL, *properties = NULL;
  g_auto (Sh) sh;

  for (guint i = 0; i < 65536; i++)
    lut[i] = 10 * i;
  path = save ("lut.npy", 1, 65536, lut);
  properties = g_strdup_printf (
      "lut-location=%s threshold-mode=absolute threshold=100000", path);
  sh = sh_new (backends[__i__], properties);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 20000), 0, IMK_SHCENTROID_FLUX),
      16 * 100000);
  g_object_set (sh.element, "lut-location", "", "threshold", 1e9, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 65535), 0, IMK_SHCENTROID_FLUX), 0);
}

static void
check_refused (const gchar *backend, const gchar *property, const gchar *path,
    GQuark domain, gint code, const gchar *words)
{
  g_autofree gchar *setting = g_strdup_printf ("%s=%s", property, path);
  g_auto (Sh) sh = sh_new (backend, setting);

  fail_unless (gst_harness_push (sh.h, frame_new (NULL, 1)) != GST_FLOW_OK);
  check_message_says (
      check_message (sh.bus, GST_MESSAGE_ERROR), domain, code, words);
  fail_unless (check_count_messages (sh.bus, GST_MESSAGE_ERROR) == 0);
  sh_free (&sh);

  /* while playing it is a warning, and the calibration stays as it was */
  sh = sh_new (backend, "");
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 10), 0, IMK_SHCENTROID_FLUX), 160);
  g_object_set (sh.element, property, path, NULL);
  for (guint i = 0; i < 3; i++)
    fail_unless_equals_float (
        sh_value (&sh, frame_new (NULL, 10), 0, IMK_SHCENTROID_FLUX), 160);
  check_warning (sh.bus, LIBRARY, SETTINGS, words);
  fail_unless (check_count_messages (sh.bus, GST_MESSAGE_WARNING) == 0);
  fail_unless (check_count_messages (sh.bus, GST_MESSAGE_ERROR) == 0);
}

CHECK_LOOP_TEST (
    test_a_calibration_file_that_does_not_fit_is_refused, N_BACKENDS)
{
  const gchar *b = backends[__i__];
  gfloat values[N_PIXELS + WIDTH] = {0};
  g_autofree gchar *tall = save ("tall.npy", HEIGHT + 1, WIDTH, values);
  g_autofree gchar *fits = NULL;

  values[13] = NAN;
  fits = save ("fits.npy", HEIGHT, WIDTH, values);
  check_refused (b, "dark-location", tall, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_OPEN_READ, "is f32 [9, 12]; it has to be [8, 12].");
  check_refused (b, "flat-location", tall, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_OPEN_READ, "flat-location");
  check_refused (b, "bad-pixels-location", "/nowhere.npy", GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_OPEN_READ, "bad-pixels-location");
  check_refused (b, "lut-location", fits, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_OPEN_READ, "it has to be [1, 65536].");
  check_refused (b, "dark-location", fits, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_OPEN_READ,
      "fits.npy\" has nan in row 1, column 1, counted from 0;");
}

/* --- captures --- */

CHECK_LOOP_TEST (
    test_a_dark_is_the_mean_of_the_frames_that_were_asked_for, N_BACKENDS)
{
  g_autofree gchar *path = check_path_of ("dark.npy");
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gchar *location;
  GstImagingNdArray *npy;

  fail_unless (sh_capture (&sh, "dark", 3, path));
  for (guint i = 5; i <= 7; i++) /* frames go on as before meanwhile */
    fail_unless_equals_float (
        sh_value (&sh, frame_new (NULL, i), 0, IMK_SHCENTROID_FLUX), 16 * i);
  sh_check_captured (&sh, "dark", 3, path);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 10), 0, IMK_SHCENTROID_FLUX), 64);
  g_object_get (sh.element, "dark-location", &location, NULL);
  fail_unless_equals_string (location, path);
  g_free (location);

  npy = gst_imaging_npy_load (path, NULL);
  fail_unless (npy && npy->n_dims == 2 && npy->dims[0] == HEIGHT &&
               npy->dims[1] == WIDTH);
  for (guint i = 0; i < N_PIXELS; i++)
    fail_unless_equals_float (((const gfloat *) npy->data)[i], 6);
  gst_imaging_nd_array_free (npy);
  sh_free (&sh);

  /* and what was saved is what the property reads */
  sh = sh_new (backends[__i__], "");
  g_object_set (sh.element, "dark-location", path, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 10), 0, IMK_SHCENTROID_FLUX), 64);
}

CHECK_LOOP_TEST (test_a_flat_evens_out_what_the_dark_left, N_BACKENDS)
{
  guint16 light[N_PIXELS];
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gdouble mean = 0;

  for (guint i = 0; i < N_PIXELS; i++)
    light[i] = 10 + (i == 5 ? 0 : 100 + i);
  for (guint i = 0; i < N_PIXELS; i++)
    mean += i == 5 ? 0 : (100.0 + i) / (N_PIXELS - 1);
  fail_unless (sh_capture (&sh, "dark", 1, NULL));
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  sh_check_captured (&sh, "dark", 1, NULL);
  fail_unless (sh_capture (&sh, "flat", 2, NULL));
  sh_value (&sh, frame_new (light, 0), 0, 0);
  sh_value (&sh, frame_new (light, 0), 0, 0);
  sh_check_captured (&sh, "flat", 2, NULL);
  /* even light, but for the pixel that saw none, which is bad */
  fail_unless (
      fabs (sh_value (&sh, frame_new (light, 0), 0, IMK_SHCENTROID_MAX) -
            mean) < 1e-3);
  fail_unless (
      fabs (sh_value (&sh, frame_new (light, 0), 0, IMK_SHCENTROID_FLUX) -
            16 * mean) < 1e-2);
  fail_unless (
      fabs (sh_value (&sh, frame_new (light, 0), 1, IMK_SHCENTROID_FLUX) -
            15 * mean) < 1e-2);
}

CHECK_LOOP_TEST (test_a_flat_without_light_is_told, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");

  fail_unless (sh_capture (&sh, "dark", 1, NULL));
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  sh_check_captured (&sh, "dark", 1, NULL);
  fail_unless (sh_capture (&sh, "flat", 2, NULL));
  sh_value (&sh, frame_new (NULL, 9), 0, 0);
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  check_warning (sh.bus, STREAM, FAILED, "no light above the dark");
  sh_check_captured (&sh, "flat", 2, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 99), 0, IMK_SHCENTROID_FLAGS),
      IMK_SHCENTROID_NO_FLUX);
  fail_unless (sh_capture (&sh, "flat", 1, NULL));
  sh_value (&sh, frame_new (NULL, 50), 0, 0);
  sh_check_captured (&sh, "flat", 1, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 99), 0, IMK_SHCENTROID_FLUX), 16 * 89);
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
}

/* One spot a cell at (@x, @y) of it; @dark: none in cell 2. */
static GstBuffer *
spots (guint x, guint y, gboolean dark)
{
  guint16 values[N_PIXELS] = {0};

  for (guint i = 0; i < N_CELLS; i++)
    if (!dark || i != 2)
      values[(i / 3 * 4 + y) * WIDTH + i % 3 * 4 + x] = 1000;
  return frame_new (values, 0);
}

CHECK_LOOP_TEST (test_references_are_the_mean_of_valid_centroids, N_BACKENDS)
{
  static const gchar *const fields[] = {"all", "xy", "slopes"};

  for (guint f = 0; f < G_N_ELEMENTS (fields); f++) {
    g_autofree gchar *properties =
        g_strdup_printf ("fields=%s invalid-policy=hold", fields[f]);
    g_auto (Sh) sh = sh_new (backends[__i__], properties);
    g_autofree gfloat *numbers = NULL;
    gsize n;

    fail_unless (sh_capture (&sh, "reference", 3, NULL));
    g_free (sh_measure (&sh, spots (1, 1, FALSE), &n));
    g_free (sh_measure (&sh, spots (2, 3, TRUE), &n));
    g_free (sh_measure (&sh, spots (3, 2, FALSE), &n));
    sh_check_captured (&sh, "reference", 3, NULL);
    gst_util_set_object_arg (G_OBJECT (sh.element), "fields", "slopes");
    numbers = sh_measure (&sh, spots (2, 2, FALSE), &n);
    fail_unless_equals_int (n, 2 * N_CELLS);
    for (guint i = 0; i < N_CELLS; i++) {
      fail_unless_equals_float (numbers[i], 0);
      /* the mean of 1 and 2, in cell 2, is 1.5; of 1, 3 and 2 it is 2 */
      fail_unless_equals_float (numbers[N_CELLS + i], i == 2 ? 0.5 : 0);
    }
  }
}

/* Under invalid-policy=reference it counts as being at its reference; a cell
 * that was never valid keeps it in any case. */
static void
check_policy (const gchar *backend, const gchar *policy, gdouble expected)
{
  g_autofree gchar *properties =
      g_strdup_printf ("fields=slopes invalid-policy=%s", policy);
  g_auto (Sh) sh = sh_new (backend, properties);
  g_autofree gfloat *numbers = NULL;
  gsize n;

  fail_unless (sh_capture (&sh, "reference", 2, NULL));
  g_free (sh_measure (&sh, spots (1, 1, FALSE), &n));
  g_free (sh_measure (&sh, spots (1, 1, TRUE), &n));
  sh_check_captured (&sh, "reference", 2, NULL);
  numbers = sh_measure (&sh, spots (1, 1, FALSE), &n);
  fail_unless_equals_float (numbers[0], 0);
  fail_unless_equals_float (numbers[2], expected);
}

CHECK_LOOP_TEST (test_policy_reference_counts_where_zero_does_not, N_BACKENDS)
{
  /* references at 1.5: ((1 + 1.5) / 2, 1) */
  check_policy (backends[__i__], "zero", 0);
  check_policy (backends[__i__], "nan", 0);
  check_policy (backends[__i__], "reference", -0.25);
}

CHECK_LOOP_TEST (
    test_a_cell_that_was_never_valid_keeps_its_reference, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "fields=slopes");
  g_autofree gfloat *numbers = NULL;
  gsize n;

  fail_unless (sh_capture (&sh, "reference", 1, NULL));
  g_free (sh_measure (&sh, spots (1, 1, TRUE), &n));
  numbers = sh_measure (&sh, spots (1, 1, FALSE), &n);
  fail_unless_equals_float (numbers[2], -0.5);
}

CHECK_LOOP_TEST (test_a_capture_without_frames_is_refused, N_BACKENDS)
{
  static const gchar *const kinds[] = {"dark", "flat", "reference", "template"};
  g_auto (Sh) sh = sh_new (backends[__i__], "");

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    fail_unless (!sh_capture (&sh, kinds[i], 0, NULL));
    check_warning (sh.bus, LIBRARY, SETTINGS, "0 frames");
  }
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  fail_unless (check_count_messages (sh.bus, GST_MESSAGE_ELEMENT) == 0);
}

CHECK_LOOP_TEST (test_a_capture_that_ends_early_changes_nothing, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");

  fail_unless (sh_capture (&sh, "dark", 5, NULL));
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  fail_unless_equals_int (gst_element_set_state (sh.element, GST_STATE_READY),
      GST_STATE_CHANGE_SUCCESS);
  check_warning (sh.bus, STREAM, FAILED, "2 of 5 frames");
}

CHECK_LOOP_TEST (test_a_flush_does_not_end_a_capture, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  GstSegment segment;

  fail_unless (sh_capture (&sh, "dark", 3, NULL));
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  gst_harness_push_event (sh.h, gst_event_new_flush_start ());
  gst_harness_push_event (sh.h, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (sh.h, gst_event_new_segment (&segment));
  sh_value (&sh, frame_new (NULL, 20), 0, 0);
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_ELEMENT), 0);
  sh_value (&sh, frame_new (NULL, 30), 0, 0);
  sh_check_captured (&sh, "dark", 3, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 30), 0, IMK_SHCENTROID_FLUX), 160);
}

/* The stream may end before: who waits for the message has to hear of it. */
CHECK_LOOP_TEST (test_a_capture_ends_with_the_stream, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");

  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  fail_unless (sh_capture (&sh, "dark", 5, NULL));
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  fail_unless (gst_harness_push_event (sh.h, gst_event_new_eos ()));
  check_warning (sh.bus, STREAM, FAILED, "capture-dark came to 1 of 5 frames");
  gst_element_set_state (sh.element, GST_STATE_READY);
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
}

/* Or it would take the frames of the next start, whatever they show then. */
CHECK_LOOP_TEST (test_a_capture_that_no_frame_came_for_is_dropped, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");

  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  fail_unless (sh_capture (&sh, "flat", 5, NULL));
  gst_element_set_state (sh.element, GST_STATE_READY);
  check_warning (sh.bus, STREAM, FAILED, "capture-flat came to 0 of 5 frames");
}

/* From the thread that posts that the dark is there. */
static GstBusSyncReply
ask_for_flat (GstBus *bus, GstMessage *message, gpointer begun)
{
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ELEMENT)
    g_signal_emit_by_name (
        GST_MESSAGE_SRC (message), "capture-flat", 1, NULL, begun);
  return GST_BUS_PASS;
}

/* Dark and flat of the same frames are a flat without light. */
CHECK_LOOP_TEST (test_one_kind_is_captured_at_a_time, N_BACKENDS)
{
  static const gchar *const others[] = {"flat", "reference", "template"};
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gboolean begun = FALSE;

  fail_unless (sh_capture (&sh, "dark", 9, NULL));
  for (guint i = 0; i < 2 * G_N_ELEMENTS (others); i++) {
    if (i == G_N_ELEMENTS (others)) /* under way, no longer asked for */
      sh_value (&sh, frame_new (NULL, 10), 0, 0);
    fail_if (sh_capture (&sh, others[i % G_N_ELEMENTS (others)], 1, NULL));
    check_warning (
        sh.bus, LIBRARY, SETTINGS, "while capture-dark is under way");
  }
  fail_unless (sh_capture (&sh, "dark", 1, NULL)); /* instead */
  gst_bus_set_sync_handler (sh.bus, ask_for_flat, &begun, NULL);
  sh_value (&sh, frame_new (NULL, 10), 0, 0);
  gst_bus_set_sync_handler (sh.bus, NULL, NULL, NULL);
  fail_unless (begun);
  sh_check_captured (&sh, "dark", 1, NULL);
  sh_value (&sh, frame_new (NULL, 30), 0, 0);
  sh_check_captured (&sh, "flat", 1, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 30), 0, IMK_SHCENTROID_FLUX), 16 * 20);
}

/* Brighter to the right: a threshold moves the centroid. */
static GstBuffer *
ramp (void)
{
  guint16 values[N_PIXELS];

  for (guint i = 0; i < N_PIXELS; i++)
    values[i] = 100 * (i % WIDTH % 4);
  return frame_new (values, 0);
}

CHECK_LOOP_TEST (test_references_are_the_mean_of_what_was_reported, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gdouble first, second;

  fail_unless (sh_capture (&sh, "reference", 2, NULL));
  first = sh_value (&sh, ramp (), 0, IMK_SHCENTROID_X);
  gst_util_set_object_arg (G_OBJECT (sh.element), "threshold-mode", "absolute");
  g_object_set (sh.element, "threshold", 150.0, NULL);
  second = sh_value (&sh, ramp (), 0, IMK_SHCENTROID_X);
  fail_unless (fabs (second - first) > 0.1);
  sh_check_captured (&sh, "reference", 2, NULL);
  fail_unless (fabs (sh_value (&sh, ramp (), 0, IMK_SHCENTROID_DX) -
                     (second - first) / 2) < 1e-6);
}

/* The cells may be others, though as many. */
CHECK_LOOP_TEST (test_a_new_kernel_begins_a_capture_anew, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "columns=2");
  GstMessage *message;
  gdouble x;

  sh.n_cells = 4;
  fail_unless (sh_capture (&sh, "reference", 2, NULL));
  sh_value (&sh, ramp (), 0, 0);
  g_object_set (sh.element, "x0", 4.0, NULL);
  x = sh_value (&sh, ramp (), 0, IMK_SHCENTROID_X);
  /* of the new settings, and none of a capture: its second frame is yet to come
   */
  message = check_message (sh.bus, GST_MESSAGE_ELEMENT);
  fail_unless_equals_string (
      gst_structure_get_name (gst_message_get_structure (message)),
      "imaging-settings");
  gst_message_unref (message);
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_ELEMENT), 0);
  sh_value (&sh, ramp (), 0, 0);
  sh_check_captured (&sh, "reference", 2, NULL); /* of the last two frames */
  fail_unless (x > 4);
  fail_unless_equals_float (sh_value (&sh, ramp (), 0, IMK_SHCENTROID_DX), 0);
}

CHECK_LOOP_TEST (
    test_a_capture_that_cannot_be_saved_is_used_all_the_same, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");

  fail_unless (sh_capture (&sh, "dark", 1, "/nowhere/dark.npy"));
  sh_value (&sh, frame_new (NULL, 4), 0, 0);
  check_warning (sh.bus, RESOURCE, WRITE, "was not saved");
  sh_check_captured (&sh, "dark", 1, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (NULL, 10), 0, IMK_SHCENTROID_FLUX), 96);
}

CHECK_LOOP_TEST (test_a_captured_dark_of_another_frame_is_an_error, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  g_autofree gchar *caps = check_caps_string ("GRAY16_LE", WIDTH, HEIGHT + 1);

  fail_unless (sh_capture (&sh, "dark", 1, NULL));
  sh_value (&sh, frame_new (NULL, 4), 0, 0);
  sh_value (&sh, frame_new (NULL, 4), 0, 0); /* with the dark */
  gst_harness_set_src_caps_str (sh.h, caps);
  fail_unless (gst_harness_push (sh.h, gst_buffer_new_allocate (NULL,
                                           2 * (N_PIXELS + WIDTH), NULL)) !=
               GST_FLOW_OK);
  check_error (sh.bus, LIBRARY, SETTINGS,
      "The captured dark is of another frame or grid than this one. Set "
      "dark-location, to \"\" for none;");

  /* as it says */
  g_object_set (sh.element, "dark-location", "", NULL);
  gst_harness_set_src_caps_str (sh.h, caps);
  check_push (sh.h,
      gst_buffer_new_allocate (NULL, 2 * (N_PIXELS + WIDTH), NULL),
      GST_FLOW_OK);
  gst_buffer_unref (check_pull (sh.h));
}

/* --- options --- */

typedef struct {
  const gchar *properties;
  ImkShcentroidConfig config; /* of these only what is not the default */
} Option;

static const Option options[] = {
    {"threshold-mode=relative threshold=0.5",
        {.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE,
            .threshold = 0.5}},
    {"threshold-mode=range threshold=0.25 threshold-action=keep",
        {.threshold_mode = IMK_SHCENTROID_THRESHOLD_RANGE,
            .threshold_action = IMK_SHCENTROID_ACTION_KEEP,
            .threshold = 0.25}},
    {"threshold-mode=noise threshold=500 read-noise=40",
        {.threshold_mode = IMK_SHCENTROID_THRESHOLD_NOISE,
            .threshold = 500,
            .read_noise = 40}},
    {"threshold-mode=relative threshold=0.1 threshold-least=30000",
        {.threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE,
            .threshold = 0.1,
            .threshold_least = 30000}},
    {"brightest=5", {.brightest = 5}},
    {"weighting=gaussian sigma=1.5 iterations=3",
        {.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN,
            .sigma = 1.5,
            .iterations = 3}},
    {"weighting=tracking sigma=1.25 tracking-gain=0.5 tracking-reset=3",
        {.weighting = IMK_SHCENTROID_WEIGHTING_TRACKING,
            .sigma = 1.25,
            .tracking_gain = 0.5,
            .tracking_reset = 3}},
    {"power=1.5", {.power = 1.5}},
    {"estimator=quad quad-gain=0.75",
        {.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD, .quad_gain = 0.75}},
    {"window=tracking", {.window = IMK_SHCENTROID_WINDOW_TRACKING}},
    {"margin=1", {.margin = 1}},
    {"remove-tilt=true", {.remove_tilt = true}},
};

static ImkShcentroidConfig
config_of (const ImkShcentroidConfig *o)
{
  ImkShcentroidConfig c;

  imk_shcentroid_config_init (&c);
  c.width = WIDTH;
  c.height = HEIGHT;
  c.type = IMK_TYPE_U16;
  c.pitch_x = c.pitch_y = 4;
  c.columns = 3;
  c.rows = 2;
  c.saturation = 65535;
  c.threshold_mode = o->threshold_mode;
  c.threshold_action = o->threshold_action;
  c.threshold = o->threshold;
  c.threshold_least = o->threshold_least;
  c.read_noise = o->read_noise;
  c.brightest = o->brightest;
  c.weighting = o->weighting;
  c.estimator = o->estimator;
  c.window = o->window;
  c.tracking_reset = o->tracking_reset;
  c.margin = o->margin;
  c.remove_tilt = o->remove_tilt;
  if (o->sigma > 0)
    c.sigma = o->sigma;
  if (o->iterations > 0)
    c.iterations = o->iterations;
  if (o->power > 0)
    c.power = o->power;
  if (o->quad_gain > 0)
    c.quad_gain = o->quad_gain;
  if (o->tracking_gain > 0)
    c.tracking_gain = o->tracking_gain;
  return c;
}

/* What the kernel, which has its own tests, makes of the same. */
static void
check_option (const gchar *backend, const Option *o)
{
  ImkShcentroidConfig c = config_of (&o->config);
  g_auto (Sh) sh = sh_new (backend, o->properties);
  ImkShcentroid *kernel = NULL;
  gfloat expected[N_CELLS * IMK_SHCENTROID_N_FIELDS];
  guint16 values[N_PIXELS];
  ImkImage in = {
      values, 2 * WIDTH, WIDTH, HEIGHT, 1, IMK_TYPE_U16, IMK_LOCATION_HOST};
  ImkImage out = {expected, sizeof (gfloat) * IMK_SHCENTROID_N_FIELDS,
      IMK_SHCENTROID_N_FIELDS, N_CELLS, 1, IMK_TYPE_F32, IMK_LOCATION_HOST};
  GRand *rand = g_rand_new_with_seed (3);
  ImkError error;

  check_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &kernel, &error), &error);
  for (guint frame = 0; frame < 4; frame++) {
    g_autofree gfloat *numbers = NULL;
    gsize n;

    for (guint i = 0; i < N_PIXELS; i++)
      values[i] = g_rand_int_range (rand, 0, 65536);
    check_ok (imk_shcentroid_process (kernel, &in, &out, NULL, &error), &error);
    numbers = sh_measure (&sh, frame_new (values, 0), &n);
    fail_unless (n == G_N_ELEMENTS (expected) &&
                     memcmp (numbers, expected, sizeof (expected)) == 0,
        "%s, frame %u", o->properties, frame);
  }
  g_rand_free (rand);
  imk_shcentroid_free (kernel);
}

CHECK_LOOP_TEST (test_every_option_reaches_the_kernel, N_BACKENDS)
{
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    check_option (backends[__i__], &options[i]);
}
