/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shreconstruct: slopes as tensors, settings that change, and what
 * it says of wrong ones. tests/python/shreconstruct.py closes loops. */
#include "check-common.h"

#include "gstimagingarrayfile.h"

/* Two cells, two commands: the mean dx and the mean dy. */
enum { N_CELLS = 2, N_COMMANDS = 2 };

static void
write_array (const gchar *name, guint rows, guint columns, const gfloat *values)
{
  const guint64 dims[] = {rows, columns};
  g_autofree gchar *path = check_path_of (name);

  fail_unless (gst_imaging_array_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, values, NULL));
}

static void
write_arrays (void)
{
  static const gfloat means[] = {0.5f, 0.5f, 0, 0, 0, 0, 0.5f, 0.5f};
  static const gfloat ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

  check_make_folder ();
  write_array ("means.npy", N_COMMANDS, 2 * N_CELLS, means);
  write_array ("one.npy", 1, 2 * N_CELLS, ones);
  write_array ("three-cells.npy", 2, 6, ones);
  write_array ("odd.npy", 1, 5, ones);
  write_array ("vector.npy", 1, 3, ones);
}

static GstHarness *
harness_new (const gchar *settings, const gchar *caps)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shreconstruct matrix-location=%s/means.npy %s",
          check_folder (), settings);
  GstElement *element = gst_parse_launch (launch, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");

  gst_object_unref (element);
  gst_harness_set_src_caps_str (h, caps);
  return h;
}

#define SLOPES \
  "other/tensors,format=static,num_tensors=1,types=float32," \
  "dimensions=(string)2:2:1:1,framerate=1000/1"
#define SLOPES_AND_FLAGS \
  "other/tensors,format=static,num_tensors=2," \
  "types=(string)\"float32,uint8\",dimensions=(string)\"2:2:1:1,2:1:1:1\"," \
  "framerate=1000/1"

/* All dx are @dx, all dy 0. */
static GstBuffer *
slopes_new (gfloat dx)
{
  const gfloat slopes[2 * N_CELLS] = {dx, dx, 0, 0};

  return gst_buffer_new_memdup (slopes, sizeof (slopes));
}

/* Returns: the first command */
static gdouble
step (GstHarness *h, gfloat dx)
{
  gfloat command = 0;
  GstBuffer *out;

  check_push (h, slopes_new (dx), GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  gst_buffer_unref (out);
  return command;
}

GST_START_TEST (test_settings_change_between_frames)
{
  GstHarness *h = harness_new ("gain=0.5", SLOPES);

  fail_unless_equals_float (step (h, -2), 1);
  g_object_set (h->element, "gain", 1.0, NULL);
  fail_unless_equals_float (step (h, -2), 3);
  g_object_set (h->element, "freeze", TRUE, NULL);
  fail_unless_equals_float (step (h, -2), 3);
  g_object_set (h->element, "freeze", FALSE, "leak", 1.0, NULL);
  fail_unless_equals_float (step (h, -4), 4);
  gst_util_set_object_arg (G_OBJECT (h->element), "loop", "open");
  fail_unless_equals_float (step (h, -4), 0);
  gst_util_set_object_arg (G_OBJECT (h->element), "loop", "closed");
  g_object_set (h->element, "leak", 0.0, NULL);
  fail_unless_equals_float (step (h, -1), 1);
  g_signal_emit_by_name (h->element, "reset");
  fail_unless_equals_float (step (h, -1), 1);
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), 7);
  gst_harness_teardown (h);
}
GST_END_TEST;

GST_START_TEST (test_another_matrix_counts_from_the_next_frame)
{
  GstHarness *h = harness_new ("gain=1", SLOPES);
  g_autofree gchar *one = check_path_of ("one.npy");
  g_autofree gchar *wrong = check_path_of ("three-cells.npy");
  GstBus *bus = gst_bus_new ();
  GstBuffer *out;
  GstCaps *caps;

  gst_element_set_bus (h->element, bus);
  fail_unless_equals_float (step (h, -2), 2);
  g_object_set (h->element, "matrix-location", wrong, NULL);
  fail_unless_equals_float (step (h, -2), 4);
  check_message_says (check_message (bus, GST_MESSAGE_WARNING),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, "made for 3");
  g_object_set (h->element, "matrix-location", one, NULL);
  check_push (h, slopes_new (1), GST_FLOW_OK);
  out = check_pull (h);
  fail_unless_equals_uint64 (gst_buffer_get_size (out), sizeof (gfloat));
  gst_buffer_unref (out);
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless_equals_string (
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "dimensions"),
      "1:1:1:1");
  gst_caps_unref (caps);
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}
GST_END_TEST;

static GstBuffer *
flagged_new (gfloat dx, guint8 flags)
{
  struct {
    gfloat slopes[2 * N_CELLS];
    guint8 flags[N_CELLS];
  } both = {{dx, dx, 0, 0}, {flags, flags}};

  return gst_buffer_new_memdup (
      &both, sizeof (both.slopes) + sizeof (both.flags));
}

GST_START_TEST (test_light_that_goes_and_comes_back_is_told)
{
  GstHarness *h = harness_new ("gain=1 min-valid=0.5", SLOPES_AND_FLAGS);
  GstBus *bus = gst_bus_new ();
  const guint8 flags[] = {0, 1, 1, 0};
  const gfloat expected[] = {1, 1, 1, 2};

  gst_element_set_bus (h->element, bus);
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    gfloat command;
    GstBuffer *out;

    check_push (h, flagged_new (-1, flags[i]), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, &command, sizeof (command));
    fail_unless_equals_float (command, expected[i]);
    gst_buffer_unref (out);
  }
  for (guint i = 0; i < 2; i++) {
    GstMessage *message = check_element_message (bus, "shreconstruct-light");
    gboolean low_light;

    gst_structure_get_boolean (
        gst_message_get_structure (message), "low-light", &low_light);
    fail_unless (low_light == (i == 0));
    gst_message_unref (message);
  }
  fail_unless (gst_bus_have_pending (bus) == FALSE);
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}
GST_END_TEST;

static const struct {
  const gchar *source, *settings, *words;
} wrong[] = {
    {SLOPES, "", "There is no control matrix"},
    {SLOPES, "matrix-location=$/none.npy", "none.npy"},
    {SLOPES, "matrix-location=$/odd.npy", "[commands, 2 cells]"},
    {SLOPES, "matrix-location=$/three-cells.npy", "The sensor has 2 cells"},
    {SLOPES, "matrix-location=$/means.npy reference-location=$/vector.npy",
        "a number for each command"},
    {SLOPES, "matrix-location=$/means.npy modes-location=$/vector.npy",
        "[commands, 2]"},
    {SLOPES, "matrix-location=$/means.npy controller-location=$/vector.npy",
        "[2, terms]"},
    {SLOPES, "matrix-location=$/means.npy minimum=2 maximum=1",
        "The smallest command is 2"},
    {SLOPES, "matrix-location=$/means.npy mode-gains=\"<1.0>\"",
        "mode-gains has 1 number"},
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)10:2:1:3,framerate=1/1",
        "matrix-location=$/means.npy", "no slopes"},
    {"video/x-raw,format=GRAY8,width=4,height=4,framerate=1/1",
        "matrix-location=$/means.npy", "Put shcentroid before"},
};

GST_START_TEST (test_what_is_wrong_is_said)
{
  g_autofree gchar *launch = g_strdup_printf (
      "fakesrc num-buffers=1 sizetype=fixed sizemax=16 filltype=zero ! "
      "capsfilter caps=\"%s\" ! shreconstruct %s ! fakesink",
      wrong[__i__].source, wrong[__i__].settings);
  GstElement *pipeline = check_launch (launch);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;
  GError *error;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = check_message (bus, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  fail_unless (strstr (error->message, wrong[__i__].words) != NULL, "%s",
      error->message);
  g_error_free (error);
  gst_message_unref (message);
  gst_object_unref (bus);
  check_stop (pipeline);
}
GST_END_TEST;

static Suite *
shreconstruct_suite (void)
{
  Suite *suite = suite_create ("shreconstruct");
  TCase *tcase = tcase_create ("shreconstruct");

  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, write_arrays, check_remove_folder);
  tcase_add_test (tcase, test_settings_change_between_frames);
  tcase_add_test (tcase, test_another_matrix_counts_from_the_next_frame);
  tcase_add_test (tcase, test_light_that_goes_and_comes_back_is_told);
  tcase_add_loop_test (
      tcase, test_what_is_wrong_is_said, 0, G_N_ELEMENTS (wrong));
  return suite;
}

GST_CHECK_MAIN (shreconstruct);
