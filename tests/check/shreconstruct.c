/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shreconstruct: slopes as tensors, settings that change, and what
 * it says of wrong ones. tests/python/shreconstruct.py closes loops. */
#include "check-common.h"

#include <math.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "gstimagingarrayfile.h"
#include "gstimagingmemory.h"
#include "gstimagingresults.h"

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
  static const gfloat with_nan[] = {1, 1, NAN, 1};
  static const gfloat steep[] = {
      1.5e32f, 1.5e32f, 0, 0, 0, 0, 1.5e32f, 1.5e32f};
  static const gfloat by_means[] = {1, 0, 1, 0, 0, 1, 0, 1};
  static const gfloat map[] = {1, -1, 0}, wrong_map[] = {0, 1, 2};
  static const gfloat swap[] = {0, 2, 1, 0, 0, 0};
  static const gfloat turned[] = {0.6f, -0.8f, 0.8f, 0.6f};
  static const gfloat wide[] = {2, 0, 0, 1};
  static const gfloat terms[] = {0.5f, 0.2f, 0.1f, 0.4f, 0.2f, 0.1f};

  check_make_folder ();
  write_array ("means.npy", N_COMMANDS, 2 * N_CELLS, means);
  write_array ("steep.npy", N_COMMANDS, 2 * N_CELLS, steep);
  write_array ("one.npy", 1, 2 * N_CELLS, ones);
  write_array ("three-cells.npy", 2, 6, ones);
  write_array ("nan.npy", 1, 2 * N_CELLS, with_nan);
  write_array ("odd.npy", 1, 5, ones);
  write_array ("vector.npy", 1, 3, ones);
  write_array ("transposed.npy", 2 * N_CELLS, 2, ones);
  write_array ("odd-transposed.npy", 2 * N_CELLS, 3, ones);
  write_array ("telemetry.npy", 3, 2 * N_CELLS, ones);
  write_array ("interaction.npy", 2 * N_CELLS, N_COMMANDS, by_means);
  write_array ("map.npy", 1, 3, map);
  write_array ("wrong-map.npy", 1, 3, wrong_map);
  write_array ("tip.npy", 1, N_COMMANDS, ones);
  write_array ("swap.npy", 3, N_COMMANDS, swap);
  write_array ("turned.npy", N_COMMANDS, N_COMMANDS, turned);
  write_array ("wide.npy", N_COMMANDS, N_COMMANDS, wide);
  write_array ("terms.npy", 2, 3, terms);
  write_array ("flat.npy", 1, N_COMMANDS, swap + 1);
  write_array ("offsets.npy", 2, N_CELLS, turned);
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

/* Returns: @settings with the folder for each $ */
static gchar *
in_folder (const gchar *settings)
{
  g_auto (GStrv) parts = g_strsplit (settings, "$", -1);

  return g_strjoinv (check_folder (), parts);
}

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
  g_autoptr (GstBuffer) out = NULL;

  check_push (h, slopes_new (dx), GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  return command;
}

CHECK_CASE ("shreconstruct", write_arrays, check_remove_folder)

CHECK_TEST (test_settings_change_between_frames)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=0.5", SLOPES);

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
}

/* By a_1, a_2, ...: [terms], and the words of the warning. */
static const struct {
  gfloat a[4];
  const gchar *words;
} controllers[] = {
    {{1}, NULL},                      /* an integrator */
    {{0.9f}, NULL},                   /* a leak */
    {{1.6f, -0.6f}, NULL},            /* 1 and 0.6 */
    {{0.5f, 0.2f, 0.1f, 0.2f}, NULL}, /* 1 and others inside */
    {{0, 0, 0, 0}, NULL},             /* none */
    {{1.25f}, "has 1 pole on the unit circle or outside, the largest 1.25,"},
    {{-1.5f, 0}, "the largest -1.5,"},
    {{0, -1}, "has 2 poles on the unit circle or outside, the largest 0 + 1i,"},
    {{2, -1}, "has 2 poles on the unit circle or outside, the largest 1,"},
    {{2.1f, -1.1f},
        "has 2 poles on the unit circle or outside, the largest 1.1,"},
    {{0, 1.44f}, "has 2 poles"},
};

CHECK_LOOP_TEST (
    test_an_unstable_controller_is_a_warning, G_N_ELEMENTS (controllers))
{
  const gfloat *a = controllers[__i__].a;
  const gchar *words = controllers[__i__].words;
  /* of two modes, the second */
  const gfloat terms[16] = {[3] = 0.5f,
      [4] = 0.5f,
      [8] = a[0],
      [9] = a[1],
      [10] = a[2],
      [11] = a[3],
      [12] = 0.5f};
  const guint64 dims[] = {2, 2, 4};
  g_autofree gchar *path = check_path_of ("unstable.npy");
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  fail_unless (gst_imaging_array_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F32, 3, dims, terms, NULL));
  h = harness_new ("gain=0.5", SLOPES);
  bus = check_watch (h->element);
  step (h, 0);
  g_object_set (h->element, "controller-location", path, NULL);
  step (h, 0);
  if (words)
    check_warning (bus, LIBRARY, SETTINGS, words);
  g_object_set (h->element, "maximum", 9.0, NULL);
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

static const gchar *const paths[] = {"matrix-location", "modes-location",
    "interaction-location", "reference-location", "controller-location",
    "mirror-0-location", "slope-offsets-location", "actuator-map-location"};

/* What was read before stays, and the next matrix is taken. */
CHECK_LOOP_TEST (
    test_a_file_that_cannot_be_read_never_ends_a_stream, G_N_ELEMENTS (paths))
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *other = g_strdup_printf ("%s/steep.npy", check_folder ());

  step (h, 0);
  g_object_set (h->element, paths[__i__], "/nonexistent.npy", NULL);
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "/nonexistent.npy");
  g_object_set (h->element, "matrix-location", other, NULL);
  step (h, 0);
  g_object_set (h->element, paths[__i__], NULL, "matrix-location", other, NULL);
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
}

CHECK_TEST (test_a_matrix_of_zeros_is_a_warning)
{
  static const gfloat zeros[2 * N_CELLS * N_COMMANDS] = {0};
  g_autofree gchar *path = check_path_of ("zeros.npy");
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  write_array ("zeros.npy", N_COMMANDS, 2 * N_CELLS, zeros);
  step (h, 0);
  g_object_set (h->element, "matrix-location", path, NULL);
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "are 0, so the loop corrects nothing");
  g_object_set (h->element, "gain", 0.2, NULL);
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

CHECK_TEST (test_a_gain_that_no_loop_holds_is_a_warning)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=2", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  g_object_set (h->element, "leak", 0.25, NULL);
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "is 2, above 2 - leak = 1.75");
  g_object_set (h->element, "gain", 10.0, NULL);
  step (h, 0);
  g_object_set (h->element, "gain", 1.0, NULL);
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  gst_util_set_object_arg (G_OBJECT (h->element), "mode-gains", "<1.0,3.0>");
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "is 3, above 2 - leak = 1.75");
}

/* @sign: of what a command does to dx, of a sensor that reaches 3 pixels
 * @growth: of random air, in each frame
 * Returns: warnings after @n_frames */
static guint
count_warnings_of_loop (
    const gchar *settings, gdouble sign, gdouble growth, guint n_frames)
{
  g_autoptr (CheckHarness) h = harness_new (settings, SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  gdouble air = 0.1, command = 0;

  for (guint t = 0; t < n_frames; t++) {
    air = growth * (0.9 * air + 0.04 * g_rand_double_range (rand, -1, 1));
    command = step (h, (gfloat) CLAMP (air + sign * command, -3, 3));
  }
  return check_count_messages (bus, GST_MESSAGE_WARNING);
}

CHECK_TEST (test_a_leak_and_a_small_range_do_not_hide_a_wrong_sign)
{
  fail_unless_equals_int (
      count_warnings_of_loop ("gain=0.3 leak=0.05", -1, 1, 300), 1);
  fail_unless_equals_int (
      count_warnings_of_loop ("gain=0.3 leak=0.05", 1, 1, 300), 0);
}

CHECK_TEST (test_air_that_grows_is_no_loop_that_drives_away)
{
  fail_unless_equals_int (count_warnings_of_loop ("gain=0.3", 1, 1.11, 220), 0);
}

/* By R D of both commands, and the gain. */
static const struct {
  gfloat first, second;
  gdouble gain;
  const gchar *words; /* (nullable) */
} responses[] = {
    {1, 1, 0.5, NULL},
    {0.3f, 0.3f, 1, NULL}, /* a gain in R */
    {1, 0, 0.5, NULL},     /* a mode left out */
    {-1, -1, 0.5, "R D is -1 on average"},
    {-0.001f, -0.001f, 0.5, "another sign"},
    {1, -1, 0.5, "has the eigenvalue -1"},
    {0.001f, 0.001f, 0.5, "R D reaches 0.001"},
    {5, 5, 0.5, "their product is 2.5, above 2 - leak = 2"},
    {5, 1, 0.3, NULL},
    /* 2 - leak, but for rounding */
    {2.0000002f, 2.0000002f, 1, NULL},
};

/* By the interaction matrix, whatever becomes of invalid cells. */
CHECK_LOOP_TEST (
    test_matrices_that_make_no_loop_are_a_warning, G_N_ELEMENTS (responses))
{
  const gfloat x = responses[__i__].first, y = responses[__i__].second;
  const gfloat values[] = {x, 0, x, 0, 0, y, 0, y};
  g_autofree gchar *path = check_path_of ("response.npy");
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  write_array ("response.npy", 2 * N_CELLS, N_COMMANDS, values);
  g_object_set (h->element, "gain", responses[__i__].gain,
      "interaction-location", path, NULL);
  step (h, 0);
  if (responses[__i__].words)
    check_warning (bus, LIBRARY, SETTINGS, responses[__i__].words);
  gst_util_set_object_arg (G_OBJECT (h->element), "invalid-policy", "hold");
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

CHECK_TEST (test_a_loop_that_hardly_corrects_is_a_warning_with_exclude)
{
  const gfloat x = 0.001f, values[] = {x, 0, x, 0, 0, x, 0, x};
  g_autofree gchar *path = check_path_of ("response.npy");
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  write_array ("response.npy", 2 * N_CELLS, N_COMMANDS, values);
  g_object_set (h->element, "interaction-location", path, NULL);
  gst_util_set_object_arg (G_OBJECT (h->element), "invalid-policy", "exclude");
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "R D reaches 0.001");
}

/* As many modes as commands: the file names what its interaction is of. */
CHECK_LOOP_TEST (test_an_interaction_of_modes_is_told_by_its_name, 2)
{
  const gfloat modes[] = {2, 0, 0, 1};
  const gfloat control[] = {0.25f, 0.25f, 0, 0, 0, 0, 0.5f, 0.5f};
  const gfloat of_commands[] = {1, 0, 1, 0, 0, 1, 0, 1};
  const gfloat of_modes[] = {2, 0, 2, 0, 0, 1, 0, 1};
  g_autofree gchar *line =
      in_folder ("shreconstruct gain=1.2 matrix-location=$/square-control.npy "
                 "modes-location=$/square-modes.npy "
                 "interaction-location=$/square-d.npy");
  g_autofree gchar *beside = check_path_of ("square-d.npy.json");
  g_autofree gchar *text = g_strdup_printf (
      "{\"schema\": \"gst-imaging-sidecar-v1\", \"first\": 0, "
      "\"frames\": 1, \"complete\": true, \"type\": \"f32\", "
      "\"shape\": [4, 2], "
      "\"quantity\": {\"name\": \"D\", \"unit\": \"\", \"axes\": "
      "[{\"name\": \"%s\"}, {\"name\": \"slopes x-then-y\"}]}}",
      __i__ ? "mode" : "command");
  g_autoptr (GstElement) element = NULL;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  write_array ("square-control.npy", N_COMMANDS, 2 * N_CELLS, control);
  write_array ("square-modes.npy", N_COMMANDS, N_COMMANDS, modes);
  write_array (
      "square-d.npy", 2 * N_CELLS, N_COMMANDS, __i__ ? of_modes : of_commands);
  fail_unless (g_file_set_contents (beside, text, -1, NULL));
  element = gst_parse_launch (line, NULL);
  bus = check_watch (element);
  h = gst_harness_new_with_element (element, "sink", "src");
  gst_harness_set_src_caps_str (h, SLOPES);
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

/* D of commands or of modes, and R of modes: a tip of both commands. */
CHECK_LOOP_TEST (test_the_response_of_modes_has_their_sign, 2)
{
  const gfloat modes[] = {1, 1};
  const gfloat control[] = {0.25f, 0.25f, 0.25f, 0.25f};
  const gfloat of_commands[] = {-1, 0, -1, 0, 0, -1, 0, -1};
  const gfloat of_modes[] = {-1, -1, -1, -1};
  g_autofree gchar *line = in_folder (
      "shreconstruct matrix-location=$/tip-control.npy "
      "modes-location=$/tip-modes.npy interaction-location=$/tip-d.npy");
  g_autoptr (GstElement) element = NULL;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  write_array ("tip-control.npy", 1, 2 * N_CELLS, control);
  write_array ("tip-modes.npy", N_COMMANDS, 1, modes);
  write_array ("tip-d.npy", 2 * N_CELLS, __i__ ? 1 : N_COMMANDS,
      __i__ ? of_modes : of_commands);
  element = gst_parse_launch (line, NULL);
  bus = check_watch (element);
  h = gst_harness_new_with_element (element, "sink", "src");
  gst_harness_set_src_caps_str (h, SLOPES);
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "R D is -1 on average");
}

/* [2, 2] has the same shape transposed: an integrator, and a PI controller. */
CHECK_LOOP_TEST (test_a_controller_may_be_transposed, 2)
{
  static const gfloat transposed[][4] = {{1, 0.5f, 0, 0}, {1, 0.5f, 0, -0.1f}};
  g_autofree gchar *path = check_path_of ("transposed-terms.npy");
  g_autoptr (CheckHarness) h = harness_new ("gain=0.5", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  write_array ("transposed-terms.npy", 2, 2, transposed[__i__]);
  step (h, 0);
  g_object_set (h->element, "controller-location", path, NULL);
  step (h, 0);
  check_warning (bus, LIBRARY, SETTINGS, "It may be transposed");
}

CHECK_LOOP_TEST (test_gain_and_leak_give_way_to_terms, 2)
{
  static const gchar *const names[] = {"gain", "leak"};
  static const gfloat integrator[] = {1, 0.5f};
  g_autofree gchar *path = check_path_of ("integrator.npy");
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  write_array ("integrator.npy", 2, 1, integrator);
  h = harness_new ("gain=0.25", SLOPES);
  bus = check_watch (h->element);
  fail_unless_equals_float (step (h, -2), 0.5);
  g_object_set (h->element, "controller-location", path, "gain", 0.125, NULL);
  fail_unless_equals_float (step (h, -2), 1.5);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  g_object_set (h->element, names[__i__], 1.0, NULL);
  fail_unless_equals_float (step (h, -2), 2.5);
  check_warning (bus, LIBRARY, SETTINGS, "gain and leak do nothing");
  g_object_set (h->element, "maximum", 3.0, NULL);
  fail_unless_equals_float (step (h, -2), 3);
  g_object_set (h->element, "controller-location", NULL, NULL);
  fail_unless_equals_float (step (h, 1), __i__ == 0 ? 2 : -0.125);
}

/* No more than 0.25 from frame to frame, whatever is asked for. */
CHECK_TEST (test_each_step_keeps_the_slew_limit)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1 slew-limit=0.25", SLOPES);
  const gdouble expected[] = {
      0.25, 0.5, 0.75, 0.5, 0.25, 0.5, 0.25, 0, 0.25, 0.25, 0, 0, 0.25};
  gboolean ok;

  for (guint t = 0; t < G_N_ELEMENTS (expected); t++) {
    if (t == 3)
      gst_util_set_object_arg (G_OBJECT (h->element), "loop", "open");
    if (t == 5)
      gst_util_set_object_arg (G_OBJECT (h->element), "loop", "closed");
    if (t == 6 || t == 10)
      g_signal_emit_by_name (h->element, "reset");
    if (t == 9)
      g_object_set (h->element, "freeze", TRUE, NULL);
    if (t == 12)
      g_object_set (h->element, "freeze", FALSE, NULL);
    fail_unless_equals_float (step (h, -9), expected[t]);
  }
  g_object_set (h->element, "calibration-poke", 0.125, NULL);
  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  fail_unless_equals_float (step (h, -9), 0);
  fail_unless_equals_float (ABS (step (h, -9)), 0.125);
}

/* However a calibration ends: the mirror is at a poke then. */
CHECK_LOOP_TEST (test_the_way_back_from_a_poke_keeps_the_slew_limit, 4)
{
  const gdouble limit = __i__ == 3 ? 0.0625 : 0.25;
  g_autofree gchar *flat = check_path_of ("flat.npy");
  GstSegment segment;
  gdouble before = 0;
  gboolean ok;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint n = 1; n < 12; n++) {
    g_autoptr (CheckHarness) h =
        harness_new ("gain=1 slew-limit=0.25 calibration-poke=0.125", SLOPES);

    g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
    for (guint t = 0; t < n; t++)
      before = step (h, 9);
    if (__i__ == 0)
      g_signal_emit_by_name (h->element, "stop-calibration");
    else if (__i__ == 1)
      fail_unless (
          gst_harness_push_event (h, gst_event_new_flush_start ()) &&
          gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)) &&
          gst_harness_push_event (h, gst_event_new_segment (&segment)));
    else if (__i__ == 2)
      g_object_set (h->element, "reference-location", flat, NULL);
    else
      g_object_set (h->element, "slew-limit", limit, NULL);
    for (guint t = 0; t < 20; t++) {
      const gdouble next = step (h, t % 4 < 2 ? 9 : -9);

      fail_unless (fabs (next - before) <= limit + 1e-6,
          "%g, then %g in frame %u after poke %u", before, next, t, n);
      before = next;
    }
  }
}

CHECK_TEST (test_a_closed_loop_goes_to_another_reference)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1 slew-limit=0.5", SLOPES);
  const gdouble expected[] = {0.5, 1, 1.5, 2, 2};
  g_autofree gchar *flat = check_path_of ("flat.npy");

  step (h, 0);
  g_object_set (h->element, "reference-location", flat, NULL);
  for (guint t = 0; t < G_N_ELEMENTS (expected); t++)
    fail_unless_equals_float (step (h, 0), expected[t]);
}

/* The output is mirror_0, the sum of both commands. */
static GstHarness *
mirror_harness (const gchar *settings)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shreconstruct matrix-location=%s/means.npy gain=1 "
                       "mirror-0-location=%s/tip.npy %s",
          check_folder (), check_folder (), settings);
  g_autoptr (GstElement) element = gst_parse_launch (launch, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "mirror_0");

  gst_harness_set_src_caps_str (h, SLOPES);
  return h;
}

/* By the rules of the main output: no more than 0.25 from frame to frame, also
 * for an open loop, a frozen one and a reset, and the loop begins when the
 * mirror is at rest. */
CHECK_TEST (test_a_mirror_keeps_its_slew_limit)
{
  g_autoptr (CheckHarness) h = mirror_harness ("mirror-0-slew-limit=0.25");
  const gdouble expected[] = {
      0.25, 0.5, 0.75, 0.5, 0.25, 0.5, 0.25, 0, 0.25, 0.25, 0, 0, 0.25};

  for (guint t = 0; t < G_N_ELEMENTS (expected); t++) {
    if (t == 3)
      gst_util_set_object_arg (G_OBJECT (h->element), "loop", "open");
    if (t == 5)
      gst_util_set_object_arg (G_OBJECT (h->element), "loop", "closed");
    if (t == 6 || t == 10)
      g_signal_emit_by_name (h->element, "reset");
    if (t == 9)
      g_object_set (h->element, "freeze", TRUE, NULL);
    if (t == 12)
      g_object_set (h->element, "freeze", FALSE, NULL);
    fail_unless_equals_float (step (h, -9), expected[t]);
  }
}

/* At once, also beyond the slew limit and while the mirror is frozen. */
CHECK_TEST (test_a_mirror_keeps_new_limits)
{
  g_autofree gchar *settings =
      in_folder ("mirror-0-maximum=3 reference-location=$/tip.npy");
  g_autoptr (CheckHarness) h = mirror_harness (settings);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  fail_unless_equals_float (step (h, -9), 3);
  g_object_set (h->element, "freeze", TRUE, "mirror-0-slew-limit", 0.25, NULL);
  fail_unless_equals_float (step (h, -9), 3);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  g_object_set (h->element, "mirror-0-maximum", 1.5, NULL);
  fail_unless_equals_float (step (h, -9), 1.5);
  check_warning (bus, LIBRARY, SETTINGS, "mirror-0-maximum");
  g_object_set (h->element, "freeze", FALSE, NULL);
  fail_unless_equals_float (step (h, 90), 1.25);
  g_object_set (h->element, "mirror-0-minimum", 1.5, NULL);
  fail_unless_equals_float (step (h, 90), 1.5);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

/* T c, the sum of the commands, is back with the first frame that asks for it,
 * as are commands at limits of their own. */
CHECK_LOOP_TEST (test_limits_of_a_mirror_do_not_wind_up, 4)
{
  static const gchar *const all[] = {"mirror-0-maximum=2",
      "mirror-0-maximum=2 modes-location=$/turned.npy",
      "mirror-0-slew-limit=0.125",
      "mirror-0-maximum=2 mirror-1-location=$/split.npy"};
  static const gfloat split[] = {0.5f, -0.5f, -0.5f, 0.5f};
  g_autofree gchar *settings = in_folder (all[__i__]);
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckHarness) rest = NULL;
  gdouble before, after, unlimited = 0;

  write_array ("split.npy", N_COMMANDS, N_COMMANDS, split);
  h = mirror_harness (settings);
  if (__i__ == 3)
    rest = gst_harness_new_with_element (h->element, NULL, "mirror_1");
  for (guint t = 0; t < 50; t++) {
    before = step (h, -0.25);
    if (t == 0)
      unlimited = before;
  }
  fail_unless_equals_float (before, __i__ == 2 ? 6.25 : 2);
  after = step (h, 0.25);
  fail_unless (ABS (after - (before - unlimited)) < 1e-6);
}

/* A mirror reaches another c0, though its slew limit holds it back. */
CHECK_TEST (test_a_mirror_goes_to_another_reference)
{
  g_autoptr (CheckHarness) h = mirror_harness ("mirror-0-slew-limit=0.5");
  const gdouble expected[] = {0.5, 1, 1.5, 2, 2.5, 3, 3};
  g_autofree gchar *flat = check_path_of ("flat.npy");

  step (h, 0);
  g_object_set (h->element, "reference-location", flat, NULL);
  for (guint t = 0; t < G_N_ELEMENTS (expected); t++)
    fail_unless_equals_float (step (h, 0), expected[t]);
}

/* The safe shape of low light. */
CHECK_LOOP_TEST (test_a_mirror_goes_to_a_safe_shape, 2)
{
  static const gchar *const shapes[] = {"hold", "reference"};
  static const gdouble expected[][4] = {
      {0.25, 0.25, 0.25, 0.5}, {0.25, 0, 0, 0.25}};
  g_autofree gchar *settings = g_strdup_printf (
      "mirror-0-slew-limit=0.25 min-valid=0.5 low-light=%s", shapes[__i__]);
  g_autoptr (CheckHarness) h = mirror_harness (settings);

  for (guint t = 0; t < 4; t++)
    fail_unless_equals_float (
        step (h, t == 1 || t == 2 ? NAN : -9), expected[__i__][t]);
}

CHECK_TEST (test_reference_commands_are_clipped)
{
  g_autofree gchar *settings =
      in_folder ("maximum=0.5 loop=open reference-location=$/tip.npy");
  g_autoptr (CheckHarness) h = harness_new (settings, SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  fail_unless_equals_float (step (h, 0), 0.5);
  g_object_set (h->element, "maximum", 2.0, NULL);
  fail_unless_equals_float (step (h, 0), 1);
  g_object_set (h->element, "maximum", 0.25, NULL);
  fail_unless_equals_float (step (h, 0), 0.25);
  check_warning (bus, LIBRARY, SETTINGS, "Reference command 0 is 1");
  g_object_set (h->element, "gain", 0.25, NULL);
  fail_unless_equals_float (step (h, 0), 0.25);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

/* Also where a limit hides it from the commands, but not from the modes. */
CHECK_TEST (test_no_overflow_stays_in_the_loop)
{
  static const gchar *const settings[] = {
      "",
      "modes-location=$/turned.npy",
      "modes-location=$/wide.npy maximum=8 minimum=-8",
  };

  for (guint i = 0; i < G_N_ELEMENTS (settings); i++) {
    g_autofree gchar *own = in_folder (settings[i]);
    g_autofree gchar *steep = in_folder ("gain=1 matrix-location=$/steep.npy");
    g_autofree gchar *words = g_strjoin (" ", steep, own, NULL);
    g_autoptr (CheckHarness) expected = harness_new (words, SLOPES);
    g_autoptr (CheckHarness) h = harness_new (words, SLOPES);
    g_autoptr (CheckBus) bus = check_watch (h->element);

    fail_unless_equals_float (step (h, -2), step (expected, -2));
    for (guint t = 0; t < 2; t++)
      fail_unless (isfinite (step (h, 1e6f)));
    check_warning (bus, STREAM, FAILED, "too large for a float32");
    g_signal_emit_by_name (expected->element, "reset");
    fail_unless_equals_float (step (h, -1), step (expected, -1));
  }
}

/* --- frames that pass while settings are set ------------------------------ */

enum { N_MANY = 600 };

/* So many commands, each of which is a mode, that their inverse takes long. */
static void
write_many (void)
{
  g_autofree gfloat *ones = g_new0 (gfloat, N_MANY * N_MANY);

  for (guint i = 0; i < N_MANY; i++)
    ones[i * N_MANY + i] = 1;
  write_array ("many-modes.npy", N_MANY, N_MANY, ones);
  write_array ("many.npy", N_MANY, 2 * N_CELLS, ones);
}

/* Of this thread: what other programs do does not count. */
static gint64
work_us (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * G_USEC_PER_SEC + t.tv_nsec / 1000;
}

typedef struct {
  GstHarness *h;
  gint n, ends;   /* atomic */
  gint64 most_us; /* of a frame */
} Frames;

static gpointer
push_frames (gpointer data)
{
  Frames *f = data;

  while (!g_atomic_int_get (&f->ends)) {
    const gint64 began = work_us ();

    step (f->h, 0);
    f->most_us = MAX (f->most_us, work_us () - began);
    g_atomic_int_inc (&f->n);
  }
  return NULL;
}

static void
wait_for_frames (Frames *f, gint n)
{
  const gint until = g_atomic_int_get (&f->n) + n;

  while (g_atomic_int_get (&f->n) < until)
    g_usleep (100);
}

/* The first limit and dead actuators need another inverse of the modes. */
static const gchar *const slow_settings[] = {
    "modes-location=$/many-modes.npy", "maximum=1", "dead-actuators=< 1 >"};

CHECK_LOOP_TEST (test_no_frame_waits_for_a_kernel, G_N_ELEMENTS (slow_settings))
{
  g_autofree gchar *setting = NULL, *words = NULL;
  gchar *value;
  g_autoptr (CheckHarness) h = NULL;
  Frames f = {0};
  GThread *thread;
  gint64 took;
  gint before;

  write_many ();
  setting = in_folder (slow_settings[__i__]);
  value = strchr (setting, '=');
  *value++ = 0;
  words = in_folder (
      __i__ == 1 ? "matrix-location=$/many.npy modes-location=$/many-modes.npy"
                 : "matrix-location=$/many.npy modes-location=$/many-modes.npy "
                   "maximum=1");
  f.h = h = harness_new (words, SLOPES);
  step (h, 0);
  thread = g_thread_new ("frames", push_frames, &f);
  wait_for_frames (&f, 20);
  before = g_atomic_int_get (&f.n);
  took = work_us ();
  gst_util_set_object_arg (G_OBJECT (h->element), setting, value);
  took = work_us () - took;
  fail_unless (g_atomic_int_get (&f.n) > before + 20);
  wait_for_frames (&f, 20);
  g_atomic_int_set (&f.ends, TRUE);
  g_thread_join (thread);
  fail_unless (f.most_us < took / 5, "a frame took %d us, the settings %d",
      (gint) f.most_us, (gint) took);
  fail_unless_equals_uint64 (check_stat (h->element, "replans"), __i__ == 0);
}

CHECK_TEST (test_another_matrix_counts_from_the_next_frame)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1", SLOPES);
  g_autofree gchar *one = check_path_of ("one.npy");
  g_autofree gchar *wrong = check_path_of ("three-cells.npy");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  GstBuffer *out;
  g_autoptr (GstCaps) caps = NULL;

  fail_unless_equals_float (step (h, -2), 2);
  g_object_set (h->element, "matrix-location", wrong, NULL);
  fail_unless_equals_float (step (h, -2), 4);
  check_warning (bus, LIBRARY, SETTINGS, "made for 3");
  g_object_set (h->element, "matrix-location", one, NULL);
  check_push (h, slopes_new (1), GST_FLOW_OK);
  out = check_pull (h);
  fail_unless_equals_uint64 (gst_buffer_get_size (out), sizeof (gfloat));
  gst_buffer_unref (out);
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless_equals_string (
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "dimensions"),
      "1:1:1:1");
}

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

/* As a program may have them behind a header. */
CHECK_TEST (test_slopes_at_an_odd_address)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1", SLOPES);
  const gfloat slopes[2 * N_CELLS] = {-2, -2, 0, 0};
  guint8 *data = g_malloc (1 + sizeof (slopes));
  g_autoptr (GstBuffer) out = NULL;
  gfloat command = 0;

  memcpy (data + 1, slopes, sizeof (slopes));
  check_push (h,
      gst_buffer_new_wrapped_full (
          0, data, 1 + sizeof (slopes), 1, sizeof (slopes), data, g_free),
      GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  fail_unless_equals_float (command, 2);
}

/* With flags the loop continues; of another sensor it is refused. */
CHECK_TEST (test_caps_that_change_in_the_loop)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstCaps) others =
      gst_caps_from_string ("other/tensors,format=static,num_tensors=1,"
                            "types=float32,dimensions=(string)3:2:1:1,"
                            "framerate=1000/1");
  GstBuffer *out;
  gfloat command = 0;

  fail_unless_equals_float (step (h, -2), 2);
  gst_harness_set_src_caps_str (h, SLOPES_AND_FLAGS);
  check_push (h, flagged_new (-2, 0), GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  fail_unless_equals_float (command, 4);
  gst_buffer_unref (out);
  gst_harness_set_src_caps_str (h, SLOPES);
  fail_unless_equals_float (step (h, -2), 6);
  gst_harness_push_event (h, gst_event_new_caps (others));
  check_says (bus, GST_MESSAGE_ERROR, "The sensor has 3 cells");
}

/* Of one row, as other programs have them in shared memory. */
static const struct {
  const gchar *dims, *settings;
  gdouble expected;
} rows[] = {
    {"4:1:1:1", "", 1.5},
    {"1:4:1:1", "", 1.5},
    {"4", "input-order=x-then-y", 1.5},
    {"4:1:1:1", "input-order=interleaved", 2.5},
    {"1:4:1:1", "slope-order=interleaved", 1.5},
    {"4:1:1:1", "slope-order=interleaved input-order=x-then-y", 2.5},
    {"2:2:1:1", "input-order=interleaved", 1.5},
};

CHECK_LOOP_TEST (test_slopes_are_one_row, G_N_ELEMENTS (rows))
{
  const gfloat slopes[] = {-1, -2, -4, -8};
  g_autofree gchar *settings =
      g_strconcat ("gain=1 name=rc ", rows[__i__].settings, NULL);
  g_autofree gchar *caps = g_strdup_printf (
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)%s,framerate=0/1",
      rows[__i__].dims);
  g_autoptr (CheckHarness) h = harness_new (settings, caps);
  g_autoptr (GstBuffer) out = NULL;
  gfloat command = 0;
  guint n_valid;

  check_push (h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  fail_unless_equals_float (command, rows[__i__].expected);
  gst_structure_get_uint (
      gst_imaging_results_get (out, "rc"), "cells-valid", &n_valid);
  fail_unless_equals_int (n_valid, N_CELLS);
}

CHECK_TEST (test_light_that_goes_and_comes_back_is_told)
{
  g_autoptr (CheckHarness) h =
      harness_new ("gain=1 min-valid=0.5", SLOPES_AND_FLAGS);
  g_autoptr (CheckBus) bus = gst_bus_new ();
  const guint8 flags[] = {0, 1, 1, 0};
  const gfloat expected[] = {1, 1, 1, 2};

  gst_element_set_bus (h->element, bus);
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    gfloat command;
    g_autoptr (GstBuffer) out = NULL;

    check_push (h, flagged_new (-1, flags[i]), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, &command, sizeof (command));
    fail_unless_equals_float (command, expected[i]);
  }
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstMessage) message =
        check_element_message (bus, "shreconstruct-light");
    gboolean low_light;

    gst_structure_get_boolean (
        gst_message_get_structure (message), "low-light", &low_light);
    fail_unless (low_light == (i == 0));
  }
  fail_unless (gst_bus_have_pending (bus) == FALSE);
}

/* Twice, and each with one warning. */
CHECK_TEST (test_a_long_time_without_a_valid_cell_is_a_warning)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1", SLOPES_AND_FLAGS);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  for (guint t = 0; t < 500; t++) {
    const gboolean is_dark = t % 250 > 0 && t % 250 < 150;

    check_push (h, flagged_new (-1, is_dark), GST_FLOW_OK);
    gst_buffer_unref (check_pull (h));
    if (t % 250 == 100)
      check_warning (bus, STREAM, FAILED, "has been valid for 100 frames");
    if (t % 250 == 150)
      check_says (bus, GST_MESSAGE_INFO,
          "2 of 2 cells are valid again, after 149 frames");
    fail_unless_equals_int (
        check_count_messages (bus, GST_MESSAGE_WARNING | GST_MESSAGE_INFO), 0);
  }
}

CHECK_TEST (test_a_missing_frame_makes_no_larger_step)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=0.5", SLOPES);
  const guint64 offsets[] = {0, 1, 7, 8};
  GstBuffer *out;

  for (guint i = 0; i < G_N_ELEMENTS (offsets); i++) {
    GstBuffer *in = slopes_new (-2);
    gfloat command;

    GST_BUFFER_OFFSET (in) = offsets[i];
    GST_BUFFER_OFFSET_END (in) = offsets[i] + 1;
    GST_BUFFER_PTS (in) = offsets[i] * GST_MSECOND;
    GST_BUFFER_DURATION (in) = GST_MSECOND;
    check_push (h, in, GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, &command, sizeof (command));
    fail_unless_equals_float (command, 1 + i);
    gst_buffer_unref (out);
  }
  fail_unless_equals_uint64 (check_stat (h->element, "frames-missing"), 5);
}

CHECK_TEST (test_actuators_are_mapped_and_dead)
{
  g_autofree gchar *settings = g_strdup_printf (
      "gain=1 dead-actuators=\"<0>\" actuator-map-location=%s/map.npy",
      check_folder ());
  g_autoptr (CheckHarness) h = harness_new (settings, SLOPES);
  const gfloat slopes[] = {-1, -1, -3, -3}, expected[] = {3, 0, 0};
  gfloat commands[3];
  g_autoptr (GstBuffer) out = NULL;

  check_push (h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
  out = check_pull (h);
  fail_unless_equals_uint64 (gst_buffer_get_size (out), sizeof (commands));
  gst_buffer_extract (out, 0, commands, sizeof (commands));
  for (guint i = 0; i < 3; i++)
    fail_unless_equals_float (commands[i], expected[i]);
}

/* Slopes without flags in `in`, a buffer of each output of @launch. */
static GstElement *
play_slopes (const gchar *launch, const gfloat *slopes)
{
  GstElement *pipeline = check_launch (launch);
  g_autoptr (GstElement) in = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  GstCaps *caps = gst_caps_from_string (SLOPES);
  GstFlowReturn flow;
  GstBuffer *buffer =
      gst_buffer_new_memdup (slopes, 2 * N_CELLS * sizeof (gfloat));

  g_object_set (in, "caps", caps, "format", GST_FORMAT_TIME, NULL);
  gst_caps_unref (caps);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_signal_emit_by_name (in, "push-buffer", buffer, &flow);
  gst_buffer_unref (buffer);
  g_signal_emit_by_name (in, "end-of-stream", &flow);
  return pipeline;
}

/* Returns: (transfer full): the only buffer of the appsink @name */
static GstSample *
pull (GstElement *pipeline, const gchar *name)
{
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstSample *sample = NULL;

  g_signal_emit_by_name (
      sink, "try-pull-sample", (guint64) (10 * GST_SECOND), &sample);
  fail_unless (sample != NULL, "%s has no buffer", name);
  return sample;
}

static void
check_numbers (GstSample *sample, const gfloat *expected, guint n)
{
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  gfloat numbers[16];

  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), n * sizeof (gfloat));
  gst_buffer_extract (buffer, 0, numbers, n * sizeof (gfloat));
  for (guint i = 0; i < n; i++)
    fail_unless_equals_float (numbers[i], expected[i]);
  gst_sample_unref (sample);
}

CHECK_TEST (test_commands_are_split_over_mirrors)
{
  g_autofree gchar *launch = g_strdup_printf (
      "appsrc name=in ! shreconstruct name=rc gain=1 "
      "matrix-location=%s/means.npy mirror-0-location=%s/tip.npy "
      "mirror-2-location=%s/swap.npy rc.mirror_2 ! queue ! appsink name=b "
      "rc.mirror_0 ! queue ! appsink name=a rc.results ! text/csv ! queue ! "
      "appsink name=text",
      check_folder (), check_folder (), check_folder ());
  const gfloat slopes[] = {-1, -1, -3, -3}, tip[] = {4}, swapped[] = {6, 1, 0};
  g_autoptr (CheckPipeline) pipeline = play_slopes (launch, slopes);
  g_autoptr (GstSample) text = NULL;
  gchar line[64] = {0};

  check_numbers (pull (pipeline, "a"), tip, 1);
  check_numbers (pull (pipeline, "b"), swapped, 3);
  text = pull (pipeline, "text");
  gst_buffer_extract (gst_sample_get_buffer (text), 0, line, sizeof (line) - 1);
  fail_unless (g_str_has_prefix (line, "frame,pts,coefficient"), "%s", line);
}

CHECK_TEST (test_a_mirror_needs_a_matrix)
{
  g_autofree gchar *launch = g_strdup_printf (
      "appsrc name=in ! shreconstruct name=rc matrix-location=%s/means.npy "
      "rc.mirror_1 ! fakesink",
      check_folder ());
  const gfloat slopes[4] = {0};
  g_autoptr (CheckPipeline) pipeline = play_slopes (launch, slopes);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  check_error (bus, LIBRARY, SETTINGS, "mirror-1-location");
}

CHECK_LOOP_TEST (test_the_matrix_of_a_mirror_stays, 2)
{
  static const gchar *const none[] = {NULL, ""};
  g_autoptr (CheckHarness) h = mirror_harness ("");
  g_autoptr (CheckBus) bus = check_watch (h->element);

  fail_unless_equals_float (step (h, -1), 1);
  g_object_set (h->element, "mirror-0-location", none[__i__], NULL);
  fail_unless_equals_float (step (h, -1), 2);
  check_warning (bus, LIBRARY, SETTINGS, "The pad mirror_0 has no matrix");
}

/* Read again, with another matrix, and kept when a gain changes. */
CHECK_TEST (test_a_mirror_takes_another_matrix)
{
  static const gfloat two[] = {2, 2};
  g_autoptr (CheckHarness) h = mirror_harness ("");
  g_autofree gchar *tip = check_path_of ("tip.npy");
  g_autofree gchar *means = check_path_of ("means.npy");

  fail_unless_equals_float (step (h, -1), 1);
  write_array ("tip.npy", 1, N_COMMANDS, two);
  g_object_set (h->element, "gain", 0.5, NULL);
  fail_unless_equals_float (step (h, -2), 2);
  g_object_set (h->element, "mirror-0-location", tip, "gain", 1.0, NULL);
  fail_unless_equals_float (step (h, -1), 6);
  g_object_set (h->element, "matrix-location", means, NULL);
  fail_unless_equals_float (step (h, -1), 8);
}

static GstPadProbeReturn
count_queries (GstPad *pad, GstPadProbeInfo *info, gpointer n)
{
  ++*(guint *) n;
  return GST_PAD_PROBE_OK;
}

CHECK_TEST (test_a_mirror_is_asked_when_its_caps_change)
{
  g_autoptr (CheckHarness) h = mirror_harness ("");
  g_autoptr (GstCaps) caps = NULL;
  guint n = 0, before;
  gint fps = 0, fps_d;

  gst_pad_add_probe (
      h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, count_queries, &n, NULL);
  step (h, -1);
  before = n;
  for (guint t = 0; t < 5; t++)
    step (h, -1);
  fail_unless_equals_int (n, before);
  gst_harness_set_src_caps_str (h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)2:2:1:1,framerate=500/1");
  step (h, -1);
  caps = gst_pad_get_current_caps (h->sinkpad);
  gst_structure_get_fraction (
      gst_caps_get_structure (caps, 0), "framerate", &fps, &fps_d);
  fail_unless_equals_int (fps, 500);
}

/* Requested while frames pass. */
CHECK_TEST (test_a_mirror_waits_for_its_matrix)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *tip = check_path_of ("tip.npy");
  g_autoptr (CheckHarness) mirror = NULL;
  GstBuffer *out;
  gfloat command;

  fail_unless_equals_float (step (h, -1), 1);
  mirror = gst_harness_new_with_element (h->element, NULL, "mirror_1");
  for (guint t = 0; t < 2; t++) {
    g_object_set (h->element, "leak", 0.5, NULL);
    step (h, -1);
  }
  check_warning (bus, LIBRARY, SETTINGS, "The pad mirror_1 has no matrix");
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  g_object_set (h->element, "leak", 1.0, "mirror-1-location", tip, NULL);
  fail_unless_equals_float (step (h, -3), 3);
  out = check_pull (mirror);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  fail_unless_equals_float (command, 3);
  gst_buffer_unref (out);
}

/* Two lenslets side by side tell four modes, as they have four slopes. By
 * default that is no warning. */
CHECK_LOOP_TEST (test_modes_that_a_grid_cannot_tell_are_left_out, 2)
{
  const gfloat slopes[] = {2, 2, 0, 0}; /* tip: 2 x */
  g_autofree gchar *launch = g_strdup_printf (
      "appsrc name=in ! shreconstruct name=rc matrix-location=%s/means.npy "
      "wavefront-scale=1 wavefront-columns=2 wavefront-method=zernike "
      "wavefront-modes=%u rc.wavefront ! queue ! appsink name=a",
      check_folder (), __i__ ? 9 : 0);
  g_autoptr (CheckPipeline) pipeline = play_slopes (launch, slopes);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstSample) sample = pull (pipeline, "a");
  const GstStructure *results =
      gst_imaging_results_get (gst_sample_get_buffer (sample), "rc");
  GstBuffer *modes =
      gst_value_get_buffer (gst_structure_get_value (results, "modes"));
  gfloat tip;

  gst_buffer_extract (modes, 0, &tip, sizeof (tip));
  fail_unless (ABS (tip - 1) < 1e-6, "tip is %g", tip);
  fail_unless_equals_int (gst_buffer_get_size (modes), 4 * sizeof (gfloat));
  if (__i__)
    check_warning (bus, LIBRARY, SETTINGS, "tells 4 Zernike modes");
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

/* Two lenslets side by side: Southwell's wavefront between their middles is the
 * mean of the slopes. */
CHECK_LOOP_TEST (test_a_wavefront_is_in_nm, 3)
{
  static const struct {
    const gchar *caps;
    gdouble first, second;
  } cases[] = {{"other/tensors", -25, 25},
      {"video/x-raw,format=GRAY16_LE", 1, 65535},
      {"video/x-raw,format=GRAY16_BE", 256, 65535}};
  const gfloat slopes[] = {0.25f, 0.75f, 0, 0};
  g_autofree gchar *launch = g_strdup_printf (
      "appsrc name=in ! shreconstruct name=rc matrix-location=%s/means.npy "
      "wavefront-scale=100 wavefront-columns=2 rc.wavefront ! %s ! queue ! "
      "appsink name=a",
      check_folder (), cases[__i__].caps);
  g_autoptr (CheckPipeline) pipeline = play_slopes (launch, slopes);
  g_autoptr (GstSample) sample = pull (pipeline, "a");
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, "GstImagingQuantity");
  const GstStructure *rms = gst_imaging_results_get (buffer, "rc");
  gdouble scale, offset, found;
  gfloat numbers[3];
  guint16 samples[2];

  fail_unless_equals_string (
      gst_structure_get_string (rms, "id"), "ao-wavefront-v1");
  gst_buffer_extract (
      gst_value_get_buffer (gst_structure_get_value (rms, "data")), 0, numbers,
      sizeof (numbers));
  fail_unless_equals_float (numbers[0], 25);
  gst_structure_get_double (
      gst_custom_meta_get_structure (meta), "scale", &scale);
  gst_structure_get_double (
      gst_custom_meta_get_structure (meta), "offset", &offset);
  if (__i__ == 0) {
    gst_buffer_extract (buffer, 0, numbers, 2 * sizeof (gfloat));
    fail_unless_equals_float (numbers[0], cases[0].first);
    fail_unless_equals_float (numbers[1], cases[0].second);
    fail_unless_equals_float (scale, 1);
  } else {
    gst_buffer_extract (buffer, 0, samples, sizeof (samples));
    fail_unless_equals_float (samples[0], cases[__i__].first);
    fail_unless_equals_float (samples[1], cases[__i__].second);
    found = offset + scale;
    fail_unless (
        ABS (found + 25) < 1e-5 && ABS (offset + scale * 65535 - 25) < 1e-5,
        "from %g", found);
  }
}

/* A mirror and a sensor that answer in the next frame.
 * @n_dark: cells that are invalid once the latency is known
 * @limit: of a step of the first actuator
 * Returns: (transfer full): the message of the end */
static GstMessage *
calibrate_with (GstHarness *h, GstBus *bus, gdouble answer, guint n_frames,
    guint n_dark, gfloat limit)
{
  gfloat commands[N_COMMANDS] = {0}, at = 0;

  for (guint t = 0; t < n_frames; t++) {
    const gfloat x =
        (gfloat) answer * (at += CLAMP (commands[0] - at, -limit, limit));
    const gfloat y = -commands[1];
    const gfloat dark = t > 280 ? NAN : 0;
    const gfloat slopes[] = {
        x + 1 + (n_dark > 1 ? dark : 0), 3 * x + (n_dark > 0 ? dark : 0), y, y};
    g_autoptr (GstBuffer) out = NULL;

    check_push (
        h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, commands, sizeof (commands));
  }
  if (n_frames == 20)
    fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
  return check_element_message (bus, "shreconstruct-calibration");
}

static GstMessage *
calibrate (
    GstHarness *h, GstBus *bus, gdouble answer, guint n_frames, guint n_dark)
{
  return calibrate_with (h, bus, answer, n_frames, n_dark, G_MAXFLOAT);
}

static const gchar *
told_by (GstMessage *message, const gchar *field)
{
  return gst_structure_get_string (gst_message_get_structure (message), field);
}

static const struct {
  const gchar *method;
  gdouble answer;
  guint n_frames;
  const gchar *state;
} calibrations[] = {{"push-pull", 2, 400, "done"}, {"hadamard", 2, 400, "done"},
    {"sinusoidal", 2, 400, "done"}, {"push-pull", 2, 20, "abandoned"}};

CHECK_LOOP_TEST (test_a_mirror_is_calibrated, G_N_ELEMENTS (calibrations))
{
  const gchar *expected_state = calibrations[__i__].state;
  const gfloat expected[] = {2, 0, 6, 0, 0, -1, 0, -1};
  g_autofree gchar *launch = g_strdup_printf (
      "shreconstruct commands=2 calibration-method=%s calibration-poke=0.5",
      calibrations[__i__].method);
  g_autofree gchar *path = check_path_of ("measured.npy");
  g_autofree gchar *again = check_path_of ("again.npy");
  g_autofree gchar *noise = check_path_of ("again-noise.npy");
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GstElement) element = gst_parse_launch (launch, NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "src");
  g_autoptr (CheckBus) bus = check_watch (element);
  gboolean ok, is_done = g_str_equal (expected_state, "done");
  g_autoptr (GstImagingNdArray) array = NULL;

  gst_harness_set_src_caps_str (h, SLOPES);
  g_signal_emit_by_name (element, "calibrate", path, &ok);
  fail_unless (ok);
  g_signal_emit_by_name (element, "calibrate", path, &ok);
  fail_unless (!ok);
  message = calibrate (
      h, bus, calibrations[__i__].answer, calibrations[__i__].n_frames, 0);
  fail_unless_equals_string (told_by (message, "state"), expected_state);
  fail_unless (g_file_test (path, G_FILE_TEST_EXISTS) == is_done);
  g_signal_emit_by_name (element, "save-interaction", again, &ok);
  fail_unless (ok == is_done);
  fail_unless (g_file_test (noise, G_FILE_TEST_EXISTS) == is_done);
  if (is_done) {
    array = gst_imaging_nd_array_load (again, NULL);
    for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
      fail_unless (
          ABS (((const gfloat *) array->data)[i] - expected[i]) < 1e-4);
  }
}

/* Command 1 moves nothing: it is named, in the message and beside the matrix.
 */
CHECK_TEST (test_a_calibration_judges_itself)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = check_path_of ("judged.npy");
  g_autofree gchar *sidecar = check_path_of ("judged.npy.json");
  g_autofree gchar *text = NULL;
  g_autoptr (GstMessage) message = NULL;
  gfloat commands[N_COMMANDS] = {0};
  guint n_unseen = 0;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  for (guint t = 0; t < 400; t++) {
    const gfloat noise = (t * 7919 % 101) * 1e-5f;
    const gfloat slopes[] = {
        commands[0] + noise, 2 * commands[0] - noise, noise, -noise};
    g_autoptr (GstBuffer) out = NULL;

    check_push (
        h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, commands, sizeof (commands));
  }
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "done");
  fail_unless (gst_structure_get_uint (
      gst_message_get_structure (message), "commands-unseen", &n_unseen));
  fail_unless_equals_int (n_unseen, 1);
  fail_unless_equals_string (told_by (message, "unseen"), "1");
  fail_unless (strstr (told_by (message, "judgement"), "dead-actuators"), "%s",
      told_by (message, "judgement"));
  fail_unless (!gst_structure_has_field (
      gst_message_get_structure (message), "cells-saturated"));
  fail_unless (strstr (told_by (message, "saturation"), "fields=all"));
  check_warning (bus, STREAM, FAILED, "1 command moves no spot");
  fail_unless (g_file_get_contents (sidecar, &text, NULL, NULL));
  fail_unless (strstr (text, "\"unseen\": [1]") != NULL, "%s", text);
  fail_unless (strstr (text, "\"cells-saturated\": null"), "%s", text);
  g_object_set (h->element, "interaction-location", path, NULL);
  step (h, 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

/* What is there of an earlier calibration stays. */
CHECK_TEST (test_a_mirror_that_is_not_connected_keeps_the_file)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = check_path_of ("kept.npy");
  g_autofree gchar *before = NULL, *after = NULL;
  g_autoptr (GstMessage) good = NULL, failed = NULL;
  gsize n_before, n_after;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  good = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (good, "judgement"), "good");
  fail_unless (g_file_get_contents (path, &before, &n_before, NULL));
  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  for (guint t = 0; t < 400; t++)
    step (h, (t * 7919 % 101) * 1e-3f);
  failed = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (failed, "state"), "failed");
  fail_unless (g_file_get_contents (path, &after, &n_after, NULL));
  fail_unless (n_before == n_after && memcmp (before, after, n_after) == 0);
}

/* Spots flicker in a third of the frames, so sinusoidal measures nothing. */
CHECK_TEST (test_a_calibration_that_measured_nothing_keeps_the_file)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = check_path_of ("kept.npy");
  g_autofree gchar *before = NULL, *after = NULL;
  g_autoptr (GstMessage) good = NULL, failed = NULL;
  gfloat commands[N_COMMANDS] = {0};
  gsize n_before, n_after;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  good = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (good, "judgement"), "good");
  fail_unless (g_file_get_contents (path, &before, &n_before, NULL));
  gst_util_set_object_arg (
      G_OBJECT (h->element), "calibration-method", "sinusoidal");
  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  for (guint t = 0; t < 400; t++) {
    const gfloat slopes[] = {
        t * 7919 % 101 < 36 ? NAN : commands[0] + commands[1],
        t * 7907 % 103 < 36 ? NAN : 2 * commands[0], commands[1], commands[0]};
    g_autoptr (GstBuffer) out = NULL;

    check_push (
        h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, commands, sizeof (commands));
  }
  failed = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (failed, "state"), "failed");
  fail_unless (strstr (told_by (failed, "text"), "more light"), "%s",
      told_by (failed, "text"));
  fail_unless (g_file_get_contents (path, &after, &n_after, NULL));
  fail_unless (n_before == n_after && memcmp (before, after, n_after) == 0);
}

static guint
count_files (void)
{
  GDir *folder = g_dir_open (check_folder (), 0, NULL);
  guint n = 0;

  while (g_dir_read_name (folder))
    n++;
  g_dir_close (folder);
  return n;
}

#define LONG_50 "12345678901234567890123456789012345678901234567890"

static const struct {
  const gchar *path, *words;
} unwritable[] = {
    {"$/none/d.npy", "none/d-noise.npy"}, {"$/d.png", "PNG takes"},
    {"$/d.unknown", "extension .unknown"}, {"$", "folder"},
    {"$/" LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 ".npy", "too long"},
    {"$/" LONG_50 LONG_50 LONG_50 LONG_50
     "1234567890123456789012345678901234567890"
     ".npy",
        "too long"}, /* with .json, not alone */
};

/* At its start, and a path that can be written is taken afterwards. */
CHECK_LOOP_TEST (
    test_a_calibration_needs_a_path_to_write, G_N_ELEMENTS (unwritable))
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = in_folder (unwritable[__i__].path);
  g_autofree gchar *good = in_folder ("$/d.npy");
  g_autoptr (GstMessage) message = NULL;
  const guint n_files = count_files ();
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  fail_unless (!ok);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), unwritable[__i__].words),
      "%s", told_by (message, "text"));
  g_signal_emit_by_name (h->element, "calibrate", good, &ok);
  fail_unless (ok);
  fail_unless_equals_int (count_files (), n_files);
}

/* Also by another way to it. */
CHECK_LOOP_TEST (test_a_calibration_replaces_no_file_of_the_loop, 5)
{
  static const gchar *const to[] = {
      "$/means.npy", NULL, "$/link.npy", "$/tip.npy", "$/tip.npy"};
  g_autofree gchar *settings =
      in_folder (__i__ == 4 ? "actuator-map-location=$/tip-noise.npy"
                            : "mirror-0-location=$/tip.npy");
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  g_autofree gchar *folder = g_path_get_basename (check_folder ());
  g_autofree gchar *path = to[__i__] ? in_folder (to[__i__])
                                     : g_strdup_printf ("%s/../%s/means.npy",
                                           check_folder (), folder);
  g_autofree gchar *link = check_path_of ("link.npy");
  const gfloat map[] = {0, 1};
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  write_array ("tip-noise.npy", 1, 2, map);
  fail_unless_equals_int (symlink ("means.npy", link), 0);
  h = harness_new (settings, SLOPES);
  bus = check_watch (h->element);
  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  fail_unless (!ok);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), "Choose another file"), "%s",
      told_by (message, "text"));
  fail_unless_equals_float (step (h, 0), 0); /* no poke */
  g_unlink (link);
}

/* An older .json beside it tells of another array; one of somebody else is
 * left alone. */
CHECK_LOOP_TEST (test_a_calibration_replaces_what_tells_of_the_file, 2)
{
  g_autoptr (CheckHarness) h = harness_new ("calibration-poke=0.5", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = check_path_of ("told.npy");
  g_autofree gchar *beside = check_path_of ("told.npy.json");
  g_autofree gchar *noise = check_path_of ("told-noise.npy.json");
  g_autofree gchar *text = NULL;
  const gchar *old = __i__ ? "{}" : "{\"schema\": \"gst-imaging-sidecar-v1\"}";
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  fail_unless (g_file_set_contents (beside, old, -1, NULL));
  fail_unless (g_file_set_contents (noise, old, -1, NULL));
  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  fail_unless (ok == (__i__ == 0));
  if (!ok) {
    message = check_element_message (bus, "shreconstruct-calibration");
    fail_unless (strstr (told_by (message, "text"), "not of gst-imaging"));
    g_unlink (beside);
    g_signal_emit_by_name (h->element, "calibrate", path, &ok);
    gst_clear_message (&message);
  }
  message = calibrate (h, bus, 2, 400, 0);
  fail_unless_equals_string (told_by (message, "state"), "done");
  fail_unless (g_file_test (noise, G_FILE_TEST_EXISTS) == __i__);
  fail_unless (g_file_get_contents (beside, &text, NULL, NULL));
  fail_unless (strstr (text, "slopes x-then-y") && strstr (text, "sha256"));
}

/* The path became a folder meanwhile. */
CHECK_TEST (test_no_half_of_a_calibration_is_written)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = in_folder ("$/half.npy");
  g_autoptr (GstMessage) message = NULL;
  guint n_files;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  fail_unless (ok);
  fail_unless_equals_int (g_mkdir (path, 0700), 0);
  n_files = count_files ();
  message = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless_equals_int (count_files (), n_files);
  g_rmdir (path);
}

/* Of another element, such as the map of shcentroid, or of the user. */
CHECK_LOOP_TEST (test_a_calibration_replaces_calibrations_alone, 3)
{
  static const gchar *const there[] = {
      "theirs.npy", "theirs-noise.npy", "theirs.npy"};
  g_autoptr (CheckHarness) h = harness_new ("calibration-poke=0.5", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = check_path_of ("theirs.npy");
  g_autofree gchar *json = check_path_of ("theirs.npy.json");
  g_autofree gchar *old = check_path_of (there[__i__]);
  const gfloat numbers[] = {1, 2};
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  write_array (there[__i__], 1, 2, numbers);
  if (__i__ == 2) /* as of picturesink */
    fail_unless (g_file_set_contents (
        json, "{\"schema\": \"gst-imaging-sidecar-v1\"}", -1, NULL));
  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  fail_unless (!ok);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless (strstr (told_by (message, "text"), there[__i__]) &&
                   strstr (told_by (message, "text"), "Choose another file"),
      "%s", told_by (message, "text"));
  g_unlink (old);
  g_unlink (json);
  for (guint n = 0; n < 2; n++) {
    gst_clear_message (&message);
    g_signal_emit_by_name (h->element, "calibrate", path, &ok);
    fail_unless (ok);
    message = calibrate (h, bus, 1, 400, 0);
    fail_unless_equals_string (told_by (message, "state"), "done");
  }
  write_array (there[0], 1, 2, numbers);
  g_unlink (json);
  g_signal_emit_by_name (h->element, "save-interaction", path, &ok);
  fail_unless (!ok);
}

/* Meanwhile the loop uses the file, also by a link, or somebody wrote it, or
 * that of its noise. */
CHECK_LOOP_TEST (test_a_calibration_checks_its_file_again, 4)
{
  static const gchar *const words[] = {"Choose another file",
      "Choose another file", "save-interaction", "save-interaction"};
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *used = in_folder ("$/means.npy");
  g_autofree gchar *json = in_folder ("$/late.npy.json");
  g_autofree gchar *path = in_folder ("$/late.npy");
  g_autofree gchar *written =
      in_folder (__i__ == 3 ? "$/late-noise.npy" : "$/late.npy");
  g_autofree gchar *other = in_folder ("$/other.npy");
  g_autofree gchar *expected = NULL, *found = NULL;
  g_autoptr (GstMessage) message = NULL;
  gsize n_expected, n_found;
  gboolean ok;

  fail_unless (g_file_get_contents (used, &expected, &n_expected, NULL));
  if (__i__ == 0)
    fail_unless (
        g_file_set_contents (path, expected, (gssize) n_expected, NULL) &&
        g_file_set_contents (json,
            "{\"schema\": \"gst-imaging-sidecar-v1\", \"calibration\": {}}", -1,
            NULL));
  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  fail_unless (ok);
  g_unlink (json);
  if (__i__ == 0) {
    g_object_set (h->element, "matrix-location", path, NULL);
  } else if (__i__ == 1) {
    fail_unless_equals_int (symlink ("means.npy", path), 0);
  } else {
    fail_unless (
        g_file_set_contents (written, expected, (gssize) n_expected, NULL));
  }
  message = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), words[__i__]), "%s",
      told_by (message, "text"));
  fail_unless (g_file_get_contents (written, &found, &n_found, NULL));
  fail_unless (n_found == n_expected);
  fail_unless_equals_int (memcmp (found, expected, n_found), 0);
  g_signal_emit_by_name (
      h->element, "save-interaction", __i__ < 2 ? path : used, &ok);
  fail_unless (!ok);
  check_warning (bus, RESOURCE, WRITE, "Choose another file");
  g_signal_emit_by_name (h->element, "save-interaction", other, &ok);
  fail_unless (ok);
  g_unlink (path);
}

/* A frame is missing, or the next one is marked: the mirror stays as it was.
 * Frames see the commands of two frames before. */
CHECK_LOOP_TEST (test_a_gap_spoils_no_calibration, 2)
{
  const gfloat expected[] = {2, 0, 6, 0, 0, -1, 0, -1};
  g_autoptr (CheckHarness) h = harness_new ("calibration-poke=0.5", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *path = check_path_of ("after-gap.npy");
  g_autoptr (GstImagingNdArray) array = NULL;
  g_autoptr (GstMessage) message = NULL;
  gfloat commands[N_COMMANDS] = {0}, seen[N_COMMANDS] = {0};
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", path, &ok);
  for (guint t = 0; t < 400; t++) {
    const gfloat x = 2 * seen[0], y = -seen[1];
    const gfloat slopes[] = {x, 3 * x, y, y};
    g_autoptr (GstBuffer) out = NULL;
    GstBuffer *in;

    memcpy (seen, commands, sizeof (seen));
    if (t == 285)
      continue;
    in = gst_buffer_new_memdup (slopes, sizeof (slopes));
    GST_BUFFER_OFFSET (in) = __i__ == 0 || t < 285 ? t : t - 1;
    if (__i__ == 1 && t == 286)
      GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_DISCONT);
    check_push (h, in, GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, commands, sizeof (commands));
  }
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "done");
  array = gst_imaging_nd_array_load (path, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    fail_unless (ABS (((const gfloat *) array->data)[i] - expected[i]) < 1e-4,
        "element %u is %g", i, (gdouble) ((const gfloat *) array->data)[i]);
}

/* A mirror with a slew limit that never acts is poked in each frame, not in
 * every other. */
/* Before the next frame, and another one can be made then. */
CHECK_TEST (test_a_calibration_is_stopped)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL, done = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "stop-calibration");
  g_object_set (h->element, "loop", 0 /* open */, NULL);
  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  fail_unless (fabs (step (h, 0)) > 0);
  g_signal_emit_by_name (h->element, "stop-calibration");
  fail_unless_equals_float (step (h, 0), 0);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "abandoned");
  g_signal_emit_by_name (h->element, "calibrate", "", &ok);
  fail_unless (ok);
  done = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (done, "state"), "done");
  fail_unless (strstr (told_by (done, "text"), "emit save-interaction"));
}

CHECK_TEST (test_a_mirror_with_a_slew_limit_is_calibrated)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  g_autofree gchar *wide = check_path_of ("wide.npy");
  GstHarness *mirror =
      gst_harness_new_with_element (h->element, NULL, "mirror_0");
  gdouble latency = 0;
  gboolean ok;

  g_object_set (
      h->element, "mirror-0-location", wide, "mirror-0-slew-limit", 1e6, NULL);
  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  message = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (message, "state"), "done");
  gst_structure_get_double (
      gst_message_get_structure (message), "latency", &latency);
  fail_unless (ABS (latency - 1) < 1e-6, "latency %g", latency);
  gst_harness_teardown (mirror);
}

CHECK_TEST (test_a_calibration_has_one_reference)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *flat = check_path_of ("flat.npy");
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  step (h, 0);
  g_object_set (h->element, "reference-location", flat, NULL);
  step (h, 0);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), "reference") != NULL);
}

static const struct {
  const gchar *property, *value;
} meanwhile[] = {{"actuator-map-location", "$/map.npy"},
    {"mirror-0-location", "$/wide.npy"}, {"input-order", "interleaved"}};

/* What decides which command moves which actuator, or which number is which
 * slope. */
CHECK_LOOP_TEST (test_a_calibration_has_one_setup, G_N_ELEMENTS (meanwhile))
{
  const gchar *name = meanwhile[__i__].property;
  g_autofree gchar *value = in_folder (meanwhile[__i__].value);
  g_autoptr (CheckHarness) h = harness_new ("",
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)4:1:1:1,framerate=1000/1");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  step (h, 0);
  gst_util_set_object_arg (G_OBJECT (h->element), name, value);
  step (h, 0);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), name) != NULL, "%s",
      told_by (message, "text"));
}

/* Command 0 is at its largest, and never poked. */
CHECK_TEST (test_a_dead_actuator_is_not_poked)
{
  g_autofree gchar *settings = in_folder (
      "maximum=1.5 reference-location=$/flat.npy dead-actuators=\"<0>\"");
  g_autoptr (CheckHarness) h = harness_new (settings, SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  const gfloat flat = step (h, 0);
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  for (guint t = 0; t < 4; t++)
    fail_unless_equals_float (step (h, 0), flat);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ELEMENT), 0);
  gst_util_set_object_arg (G_OBJECT (h->element), "dead-actuators", "<0, 1>");
  step (h, 0);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), "dead-actuators") != NULL);
}

CHECK_TEST (test_pokes_stay_within_the_limits_of_a_mirror)
{
  g_autofree gchar *settings =
      in_folder ("mirror-0-maximum=0.05 mirror-0-location=$/wide.npy");
  g_autoptr (CheckHarness) h = mirror_harness (settings);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  for (guint t = 0; t < 20; t++)
    fail_unless (step (h, 0) <= 0.05f);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), "mirror_0") != NULL);
}

static const struct {
  const gchar *settings, *words;
} pokes[] = {{"maximum=0.05", "command 0"}, {"slew-limit=0.15", "slew-limit"},
    {"calibration-poke=1e38", "Set a smaller calibration-poke"},
    {"calibration-poke=2e30", "Set a smaller calibration-poke"}};

CHECK_LOOP_TEST (test_pokes_stay_within_the_limits, G_N_ELEMENTS (pokes))
{
  g_autoptr (CheckHarness) h = harness_new (pokes[__i__].settings, SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  message = calibrate (h, bus, 1, 1, 0);
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), pokes[__i__].words) != NULL);
}

/* Also about a reference that is near the largest float32. */
CHECK_TEST (test_no_poke_is_infinite)
{
  const gfloat huge[] = {3e38f, 0};
  g_autofree gchar *settings =
      in_folder ("calibration-poke=1e38 reference-location=$/huge.npy");
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;
  GParamSpec *poke;
  gboolean ok;

  write_array ("huge.npy", 1, N_COMMANDS, huge);
  h = harness_new (settings, SLOPES);
  bus = check_watch (h->element);
  poke = g_object_class_find_property (
      G_OBJECT_GET_CLASS (h->element), "calibration-poke");
  fail_unless (G_PARAM_SPEC_DOUBLE (poke)->maximum <= G_MAXFLOAT);
  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  for (guint t = 0; t < 40; t++)
    fail_unless_equals_float (step (h, 0), huge[0]);
  message = check_element_message (bus, "shreconstruct-calibration");
  fail_unless_equals_string (told_by (message, "state"), "failed");
  fail_unless (strstr (told_by (message, "text"), "float32") != NULL, "%s",
      told_by (message, "text"));
}

/* One cell, or all. */
CHECK_LOOP_TEST (test_cells_that_are_lost_are_told, 2)
{
  g_autoptr (CheckHarness) h =
      harness_new ("calibration-method=hadamard", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  message = calibrate (h, bus, 1, 400, 1 + __i__);
  fail_unless_equals_string (
      told_by (message, "state"), __i__ == 0 ? "done" : "failed");
  if (__i__ == 0)
    check_warning (bus, STREAM, FAILED,
        "50 % of the elements of cells with light were not measured");
}

typedef struct Told {
  guint n;
  gdouble part;
} Told;

static GstBusSyncReply
take_part (GstBus *bus, GstMessage *message, gpointer told)
{
  const GstStructure *s = gst_message_get_structure (message);
  gdouble before = ((Told *) told)->part;

  if (!s || !gst_structure_has_name (s, "shreconstruct-calibration-progress"))
    return GST_BUS_PASS;
  ((Told *) told)->n++;
  fail_unless (gst_structure_get_double (s, "part", &((Told *) told)->part));
  fail_unless (((Told *) told)->part > before);
  return GST_BUS_PASS;
}

CHECK_TEST (test_a_calibration_tells_its_progress)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  Told told = {0};
  gboolean ok;

  gst_bus_set_sync_handler (bus, take_part, &told, NULL);
  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  message = calibrate (h, bus, 1, 400, 0);
  fail_unless_equals_string (told_by (message, "state"), "done");
  fail_unless (told.n > 50 && told.n <= 100, "%u messages", told.n);
  fail_unless (told.part > 0.9 && told.part <= 1, "the last is %g", told.part);
}

/* Of 0.15, where a step from a poke to the opposite one is 0.2. */
CHECK_LOOP_TEST (test_a_limit_of_the_mirror_itself_is_told, 2)
{
  const gchar *method = __i__ ? "sinusoidal" : "push-pull";
  g_autofree gchar *launch = g_strdup_printf ("calibration-method=%s", method);
  g_autoptr (CheckHarness) h = harness_new (launch, SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  message = calibrate_with (h, bus, 1, 600, 0, 0.15f);
  fail_unless_equals_string (
      told_by (message, "state"), __i__ ? "failed" : "done");
  if (__i__)
    fail_unless (strstr (told_by (message, "text"), "set slew-limit"));
  else
    check_warning (bus, STREAM, FAILED, "set slew-limit");
}

/* --- what cannot be ------------------------------------------------------- */

#if !CHECK_IS_SANITIZED /* a sanitizer ends a program that has no memory */
CHECK_TEST (test_a_mirror_that_does_not_fit_in_memory_is_an_error)
{
  GstElement *element = gst_parse_launch ("shreconstruct commands=65536", NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "src");
  g_autoptr (CheckBus) bus = check_watch (element);
  g_autofree gchar *text = NULL;
  struct rlimit before, small;
  guint64 n_pages;

  fail_unless (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL));
  n_pages = g_ascii_strtoull (text, NULL, 10);
  fail_unless_equals_int (getrlimit (RLIMIT_AS, &before), 0);
  small = before;
  small.rlim_cur = n_pages * (guint64) sysconf (_SC_PAGESIZE) + (1 << 30);
  fail_unless_equals_int (setrlimit (RLIMIT_AS, &small), 0);
  gst_harness_set_src_caps_str (h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)16384:1:1:1,framerate=1000/1");
  gst_harness_push (h, gst_buffer_new_allocate (NULL, 16384 * 4, NULL));
  fail_unless_equals_int (setrlimit (RLIMIT_AS, &before), 0);
  check_error (bus, RESOURCE, NO_SPACE_LEFT, "does not fit in memory");
  gst_object_unref (element);
}
#endif

/* A buffer sends its caps once more. */
CHECK_TEST (test_tensors_that_are_no_slopes_are_told_once)
{
  g_autoptr (CheckHarness) h = harness_new ("", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  gst_harness_set_src_caps_str (h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)3:3:1:1,framerate=1000/1");
  for (guint t = 0; t < 4; t++)
    gst_harness_push (h, gst_buffer_new_allocate (NULL, 36, NULL));
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 1);
}

/* --- the device ----------------------------------------------------------- */

static const gchar *const controls[] = {
    "gain=0.4 leak=0.1",
    "invalid-policy=hold gain=0.7 min-valid=0.2",
    "gain=0.9 minimum=-0.3 maximum=0.4",
    "slew-limit=0.1 low-light=reference min-valid=0.9",
    "mode-gains=\"<0.5,2.0>\" dead-actuators=\"<1>\"",
    "modes-location=$/turned.npy gain=0.5",
    "modes-location=$/turned.npy gain=0.5 maximum=0.3 slew-limit=0.2",
    "controller-location=$/terms.npy reference-location=$/flat.npy",
    "slope-offsets-location=$/offsets.npy matrix-storage=f16",
    "actuator-map-location=$/map.npy matrix-storage=bf16 freeze=false",
};

/* Slopes and flags of frame @t. */
static GstBuffer *
frame_new (guint t)
{
  struct {
    gfloat slopes[2 * N_CELLS];
    guint8 flags[N_CELLS];
  } both = {{(gfloat) sin (t), (gfloat) cos (3 * t), (gfloat) sin (2 * t), 1},
      {t % 4 == 1, t % 5 == 1}};

  return gst_buffer_new_memdup (
      &both, sizeof (both.slopes) + sizeof (both.flags));
}

static GstHarness *
control_harness (const gchar *backend, const gchar *control)
{
  g_autofree gchar *settings = in_folder (control);
  g_autofree gchar *all = g_strdup_printf ("backend=%s %s", backend, settings);

  return harness_new (all, SLOPES_AND_FLAGS);
}

/* Returns: the commands of frame @t, of N_COMMANDS, or 3 of the map */
static void
commands_of (GstHarness *h, guint t, gfloat commands[3])
{
  g_autoptr (GstBuffer) out = NULL;

  check_push (h, frame_new (t), GST_FLOW_OK);
  out = check_pull (h);
  commands[2] = 0;
  gst_buffer_extract (out, 0, commands, 3 * sizeof (*commands));
}

static void
same_commands (GstHarness *a, GstHarness *b, guint t)
{
  gfloat of_a[3], of_b[3];

  commands_of (a, t, of_a);
  commands_of (b, t, of_b);
  for (guint i = 0; i < 3; i++)
    fail_unless (fabsf (of_a[i] - of_b[i]) <= 1e-6f,
        "frame %u, command %u: %g and %g", t, i, of_a[i], of_b[i]);
}

CHECK_LOOP_TEST (test_a_device_gives_the_same_commands, G_N_ELEMENTS (controls))
{
  g_autoptr (CheckHarness) cpu = control_harness ("cpu", controls[__i__]);
  g_autoptr (CheckHarness) cuda = NULL;
  g_autofree gchar *active = NULL;

  check_device ();
  cuda = control_harness ("cuda", controls[__i__]);
  for (guint t = 0; t < 20; t++) {
    if (t == 12) {
      g_object_set (cpu->element, "gain", 0.2, "leak", 0.3, NULL);
      g_object_set (cuda->element, "gain", 0.2, "leak", 0.3, NULL);
    }
    if (t == 15) {
      g_signal_emit_by_name (cpu->element, "reset");
      g_signal_emit_by_name (cuda->element, "reset");
    }
    same_commands (cpu, cuda, t);
  }
  g_object_get (cuda->element, "active-backend", &active, NULL);
  fail_unless_equals_string (active, "cuda");
  fail_unless_equals_uint64 (check_stat (cuda->element, "frames"), 20);
}

enum { LARGE_CELLS = 512, LARGE_COMMANDS = 1024 };

/* For one thread a matrix that auto takes to the device. */
static GstHarness *
large_harness (const gchar *backend)
{
  g_autofree gchar *settings =
      g_strdup_printf ("matrix-location=%s/large.npy n-threads=1 backend=%s",
          check_folder (), backend);

  return harness_new (settings,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)512:2:1:1,framerate=1000/1");
}

static void
same_large_commands (GstHarness *a, GstHarness *b, guint t)
{
  g_autofree gfloat *slopes = g_new (gfloat, 2 * LARGE_CELLS);
  GstBuffer *in, *of_a, *of_b;
  GstMapInfo map;

  for (guint i = 0; i < 2 * LARGE_CELLS; i++)
    slopes[i] = (gfloat) sin (i + 7.0 * t);
  in = gst_buffer_new_memdup (slopes, 2 * LARGE_CELLS * sizeof (gfloat));
  check_push (a, gst_buffer_ref (in), GST_FLOW_OK);
  check_push (b, in, GST_FLOW_OK);
  of_a = check_pull (a);
  of_b = check_pull (b);
  fail_unless_equals_uint64 (
      gst_buffer_get_size (of_a), LARGE_COMMANDS * sizeof (gfloat));
  gst_buffer_map (of_b, &map, GST_MAP_READ);
  fail_unless (gst_buffer_memcmp (of_a, 0, map.data, map.size) == 0,
      "frame %u: other commands", t);
  gst_buffer_unmap (of_b, &map);
  gst_buffer_unref (of_a);
  gst_buffer_unref (of_b);
}

static void
write_large (void)
{
  const gsize n = 2 * LARGE_CELLS * LARGE_COMMANDS;
  g_autofree gfloat *values = g_new (gfloat, n);

  for (gsize i = 0; i < n; i++)
    values[i] = (gfloat) (1e-3 * sin (0.7 * (gdouble) i));
  write_array ("large.npy", LARGE_COMMANDS, 2 * LARGE_CELLS, values);
}

/* 2^20 numbers of R for each thread. */
CHECK_MOCK_TEST (test_auto_takes_a_large_matrix_to_the_device)
{
  static const gchar *const backends_and_threads[] = {
      "auto", "auto n-threads=2"};
  const gchar *expected[] = {"cuda", "cpu"};

  check_device ();
  write_large ();
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++) {
    g_autoptr (CheckHarness) cpu = large_harness ("cpu");
    g_autoptr (CheckHarness) h = large_harness (backends_and_threads[i]);
    g_autofree gchar *active = NULL;

    same_large_commands (cpu, h, i);
    g_object_get (h->element, "active-backend", &active, NULL);
    fail_unless_equals_string (active, expected[i]);
  }
}

/* Made in this thread, where the context of the device is not current. */
CHECK_MOCK_TEST (test_a_device_takes_what_another_thread_has_made)
{
  g_autoptr (CheckHarness) h = harness_new ("gain=1 backend=cuda", SLOPES);
  g_autofree gchar *means = check_path_of ("means.npy");

  check_device ();
  fail_unless_equals_float (step (h, -1), 1);
  for (guint t = 2; t < 5; t++) {
    g_object_set (h->element, "matrix-location", means, NULL);
    g_object_set (h->element, "matrix-location", means, NULL);
    fail_unless_equals_float (step (h, -1), t);
  }
  fail_unless_equals_uint64 (check_stat (h->element, "replans"), 3);
  g_object_set (h->element, "matrix-location", means, NULL);
}

CHECK_MOCK_TEST (test_a_loop_goes_on_where_its_device_fails)
{
  g_autoptr (CheckHarness) cpu = NULL;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  const gchar *expected[] = {"cuda", "cpu"};

  check_device ();
  write_large ();
  cpu = large_harness ("cpu");
  h = large_harness ("auto");
  bus = check_watch (h->element);
  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *active = NULL;

    for (guint t = 0; t < 5; t++)
      same_large_commands (cpu, h, 5 * i + t);
    g_object_get (h->element, "active-backend", &active, NULL);
    fail_unless_equals_string (active, expected[i]);
    if (i == 0)
      check_lose_device (0);
  }
  check_lose_device (-1);
  check_warning (bus, LIBRARY, FAILED, "the CPU goes on");
}

/* D = R^T is one that R fits. */
CHECK_MOCK_TEST (test_a_loop_leaves_the_device_for_a_fit_without_cells)
{
  const gsize n = 2 * LARGE_CELLS * LARGE_COMMANDS;
  g_autofree gfloat *values = g_new (gfloat, n);
  g_autofree gchar *path = check_path_of ("large-interaction.npy");
  g_autofree gchar *active = NULL;
  g_autoptr (CheckHarness) cpu = NULL;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  check_device ();
  write_large ();
  for (gsize i = 0; i < 2 * LARGE_CELLS; i++)
    for (gsize m = 0; m < LARGE_COMMANDS; m++)
      values[i * LARGE_COMMANDS + m] =
          (gfloat) (1e-3 * sin (0.7 * (gdouble) (m * 2 * LARGE_CELLS + i)));
  write_array (
      "large-interaction.npy", 2 * LARGE_CELLS, LARGE_COMMANDS, values);
  cpu = large_harness ("cpu");
  h = large_harness ("auto");
  bus = check_watch (h->element);
  for (guint t = 0; t < 6; t++) {
    if (t == 3) {
      g_object_set (cpu->element, "interaction-location", path, NULL);
      g_object_set (h->element, "interaction-location", path, NULL);
      gst_util_set_object_arg (
          G_OBJECT (cpu->element), "invalid-policy", "exclude");
      gst_util_set_object_arg (
          G_OBJECT (h->element), "invalid-policy", "exclude");
    }
    same_large_commands (cpu, h, t);
  }
  check_warning (bus, LIBRARY, FAILED, "invalid-policy=exclude");
  g_object_get (h->element, "active-backend", &active, NULL);
  fail_unless_equals_string (active, "cpu");
}

CHECK_TEST (test_cells_leave_the_fit_on_the_cpu)
{
  g_autofree gchar *exclude = g_strdup_printf (
      "invalid-policy=exclude interaction-location=%s/interaction.npy",
      check_folder ());
  g_autofree gchar *on_auto = g_strdup_printf ("backend=auto %s", exclude);
  g_autoptr (CheckHarness) h = harness_new (on_auto, SLOPES_AND_FLAGS);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *active = NULL;
  gfloat commands[3];

  commands_of (h, 1, commands);
  g_object_get (h->element, "active-backend", &active, NULL);
  fail_unless_equals_string (active, "cpu");
  fail_unless (gst_bus_have_pending (bus) == FALSE);
}

/* Read in the other order, D would not fit R. */
CHECK_TEST (test_the_interaction_matrix_has_the_order_of_slopes)
{
  static const gfloat means[] = {0.5f, 0, 0.5f, 0, 0, 0.5f, 0, 0.5f};
  static const gfloat by_means[] = {1, 0, 0, 1, 1, 0, 0, 1};
  g_autofree gchar *settings =
      in_folder ("slope-order=interleaved matrix-location=$/pairs.npy "
                 "interaction-location=$/by-pairs.npy invalid-policy=exclude");
  g_autoptr (CheckHarness) h = NULL;

  write_array ("pairs.npy", N_COMMANDS, 2 * N_CELLS, means);
  write_array ("by-pairs.npy", 2 * N_CELLS, N_COMMANDS, by_means);
  h = harness_new (settings, SLOPES);
  fail_unless_equals_float (step (h, -2), 1);
}

CHECK_TEST (test_a_cell_that_is_held_for_long_is_told)
{
  g_autoptr (CheckHarness) h = harness_new ("invalid-policy=hold", SLOPES);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  step (h, 1);
  for (guint t = 0; t < 200; t++) {
    const gfloat slopes[] = {NAN, (gfloat) (t % 2), 0, 0};

    check_push (
        h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
    gst_buffer_unref (check_pull (h));
  }
  check_warning (bus, LIBRARY, SETTINGS, "has been invalid for 100 frames");
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
}

CHECK_TEST (test_a_device_is_calibrated)
{
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GstElement) element = NULL;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  gboolean ok;

  check_device ();
  element = gst_parse_launch (
      "shreconstruct backend=cuda commands=2 calibration-poke=0.5", NULL);
  h = gst_harness_new_with_element (element, "sink", "src");
  gst_harness_set_src_caps_str (h, SLOPES);
  bus = check_watch (h->element);
  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  fail_unless (ok);
  message = calibrate (h, bus, 2, 400, 0);
  fail_unless_equals_string (told_by (message, "state"), "done");
}

/* --- shcentroid and shreconstruct on one device --------------------------- */

/* What is between the two, and who else reads the slopes. */
static const struct {
  const gchar *settings, *between;
  gboolean reads, is_handed_over;
} links[] = {
    {"", "", FALSE, TRUE},
    {"", "", TRUE, TRUE},
    {"", "tee ! ", FALSE, FALSE},
    {"", "identity ! ", FALSE, FALSE},
    {"freeze=true", "", FALSE, FALSE},
    {"loop=open", "", FALSE, FALSE},
};

typedef struct {
  gboolean reads;
  guint n_frames, n_on_device;
  gfloat slopes[2 * N_CELLS]; /* of the last frame */
} Seen;

static GstPadProbeReturn
look_at_slopes (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = gst_pad_probe_info_get_buffer (info);
  const GstStructure *s = gst_imaging_results_get (buffer, "sh");
  GstBuffer *slopes =
      gst_value_get_buffer (gst_structure_get_value (s, "data"));
  Seen *seen = data;

  seen->n_frames++;
  seen->n_on_device +=
      gst_imaging_memory_is_on_device (gst_buffer_peek_memory (slopes, 0));
  if (seen->reads)
    gst_buffer_extract (slopes, 0, seen->slopes, sizeof (seen->slopes));
  return GST_PAD_PROBE_OK;
}

static GstHarness *
sensor_harness (const gchar *backend, const gchar *between,
    const gchar *settings, Seen *seen)
{
  g_autofree gchar *line = g_strdup_printf (
      "shcentroid name=sh backend=%s columns=2 rows=1 pitch-x=9 pitch-y=11 "
      "fields=slopes ! %s shreconstruct name=rc backend=%s gain=0.5 "
      "matrix-location=%s/means.npy %s",
      backend, between, backend, check_folder (), settings);
  GstElement *bin = gst_parse_bin_from_description (line, TRUE, NULL);
  g_autoptr (GstElement) sh = gst_bin_get_by_name (GST_BIN (bin), "sh");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sh, "src");
  GstHarness *h;

  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_BUFFER, look_at_slopes, seen, NULL);
  gst_object_ref_sink (bin);
  h = gst_harness_new_with_element (bin, "sink", "src");
  gst_object_unref (bin);
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY8,width=18,height=11,framerate=100/1");
  return h;
}

/* Spots that move. Returns: the first command */
static gfloat
see (GstHarness *h, guint t)
{
  guint8 *pixels = g_malloc0 (20 * 11);
  g_autoptr (GstBuffer) out = NULL;
  gfloat command = 0;

  for (guint cell = 0; cell < N_CELLS; cell++)
    pixels[(3 + (t + cell) % 5) * 20 + 9 * cell + 2 + (3 * t + cell) % 6] = 200;
  check_push (h, gst_buffer_new_wrapped (pixels, 20 * 11), GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_extract (out, 0, &command, sizeof (command));
  return command;
}

CHECK_LOOP_TEST (test_slopes_stay_on_the_device_where_nobody_else_is_between,
    G_N_ELEMENTS (links))
{
  const guint n = 10;
  Seen of_cpu = {.reads = TRUE}, seen = {.reads = links[__i__].reads};
  g_autoptr (CheckHarness) cpu =
      sensor_harness ("cpu", "", links[__i__].settings, &of_cpu);
  g_autoptr (CheckHarness) h = NULL;

  check_device ();
  h = sensor_harness (
      "cuda", links[__i__].between, links[__i__].settings, &seen);
  for (guint t = 0; t < n; t++) {
    const gfloat expected = see (cpu, t), command = see (h, t);

    fail_unless (fabsf (command - expected) <= 1e-6f,
        "frame %u: the command is %g, on the CPU %g", t, command, expected);
    for (guint i = 0; seen.reads && i < 2 * N_CELLS; i++)
      fail_unless_equals_float (seen.slopes[i], of_cpu.slopes[i]);
  }
  fail_unless_equals_int (seen.n_frames, n);
  /* all but the first, which asks */
  fail_unless_equals_int (
      seen.n_on_device, links[__i__].is_handed_over ? n - 1 : 0);
}

/* The results pad has slopes as ever, and so has a calibration. */
CHECK_TEST (test_slopes_are_handed_over_while_they_are_for_the_device)
{
  Seen seen = {.reads = FALSE};
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (GstElement) rc = NULL;
  g_autoptr (GstElement) sh = NULL;
  GstPad *results;

  check_device ();
  h = sensor_harness ("cuda", "", "", &seen);
  rc = gst_bin_get_by_name (GST_BIN (h->element), "rc");
  sh = gst_bin_get_by_name (GST_BIN (h->element), "sh");
  see (h, 0);
  see (h, 1);
  fail_unless_equals_int (seen.n_on_device, 1);
  g_object_set (rc, "freeze", TRUE, NULL);
  see (h, 2); /* asked for before, so handed over still */
  see (h, 3);
  fail_unless_equals_int (seen.n_on_device, 2);
  g_object_set (rc, "freeze", FALSE, NULL);
  see (h, 4);
  see (h, 5);
  fail_unless_equals_int (seen.n_on_device, 3);
  results = gst_element_request_pad_simple (sh, "results");
  see (h, 6);
  see (h, 7);
  fail_unless_equals_int (seen.n_on_device, 3);
  gst_element_release_request_pad (sh, results);
  gst_object_unref (results);
  see (h, 8);
  see (h, 9);
  fail_unless_equals_int (seen.n_on_device, 4);
}

static GstPadProbeReturn
lose_device (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  guint *left = data;

  if (--*left == 0)
    check_lose_device (0);
  return GST_PAD_PROBE_OK;
}

static GstBuffer *
push_noise (GstHarness *h, guint t)
{
  const gsize size = 4 * 32 * 4 * 16;
  guint8 *pixels = g_malloc (size);

  for (gsize i = 0; i < size; i++)
    pixels[i] = (guint8) (128 + 100 * sin (1.7 * (gdouble) i + t));
  check_push (h, gst_buffer_new_wrapped (pixels, size), GST_FLOW_OK);
  return check_pull (h);
}

static GstBuffer *
described_new (const gchar *fields, gint rows, gint columns, gboolean by_field)
{
  static const gfloat numbers[] = {9, 9, -1, -3, 7, 7, -5, -7};
  GstBuffer *frame = gst_buffer_new_allocate (NULL, 16, NULL);
  g_autoptr (GstBuffer) data =
      gst_buffer_new_memdup (numbers, sizeof (numbers));
  g_autoptr (GstStructure) result = gst_structure_new ("sh", "id",
      G_TYPE_STRING, "shwfs-centroids-v1", "fields", G_TYPE_STRING, fields,
      "rows", G_TYPE_INT, rows, "columns", G_TYPE_INT, columns, "by-field",
      G_TYPE_BOOLEAN, by_field, "data", GST_TYPE_BUFFER, data, NULL);

  if (!gst_meta_get_info ("GstImagingResults"))
    gst_meta_register_custom (
        "GstImagingResults", (const gchar *[]){NULL}, NULL, NULL, NULL);
  gst_buffer_memset (frame, 0, 0, 16);
  gst_structure_set (gst_custom_meta_get_structure (gst_buffer_add_custom_meta (
                         frame, "GstImagingResults")),
      "sh", GST_TYPE_STRUCTURE, result, NULL);
  return frame;
}

/* Fields of other programs may be in any order, but must be there. */
CHECK_TEST (test_slopes_are_read_where_their_fields_are)
{
  static const gchar *const caps =
      "video/x-raw,format=GRAY8,width=4,height=4,framerate=1000/1";

  for (guint by_field = 0; by_field < 2; by_field++) {
    g_autoptr (CheckHarness) h = harness_new ("gain=1", caps);
    g_autoptr (CheckBus) bus = check_watch (h->element);
    const gint rows = by_field ? 4 : 2, columns = by_field ? 2 : 4;
    gfloat commands[2];
    g_autoptr (GstBuffer) out = NULL;

    check_push (h,
        described_new (by_field ? "flux,dx,mass,dy" : "flux,mass,dx,dy", rows,
            columns, by_field),
        GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, commands, sizeof (commands));
    fail_unless_equals_float (commands[0], by_field ? 2 : 3);
    fail_unless_equals_float (commands[1], by_field ? 6 : 5);
    check_push (h,
        described_new ("a,b,c,d,e,f,dx,dy", rows, columns, (gboolean) by_field),
        GST_FLOW_ERROR);
    check_error (bus, STREAM, FORMAT, "cannot be read");
  }
}

/* Its unit, its estimator or its map: in each frame is the hash of them. */
CHECK_LOOP_TEST (test_a_calibration_has_one_sensor, 3)
{
  static const gchar *const hashes[][2] = {
      {"a", "b"}, {"a", "a"}, {NULL, NULL}};
  g_autoptr (CheckHarness) h = harness_new (
      "", "video/x-raw,format=GRAY8,width=4,height=4,framerate=1000/1");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  gboolean ok;

  g_signal_emit_by_name (h->element, "calibrate", NULL, &ok);
  for (guint t = 0; t < 4; t++) {
    const gchar *hash = hashes[__i__][t / 2];
    GstBuffer *in = described_new ("flux,mass,dx,dy", 2, 4, FALSE);
    GstStructure *told = gst_custom_meta_get_structure (
        gst_buffer_get_custom_meta (in, "GstImagingResults"));
    GstStructure *result = gst_structure_copy (
        gst_value_get_structure (gst_structure_get_value (told, "sh")));

    if (hash)
      gst_structure_set (result, "settings-hash", G_TYPE_STRING, hash, NULL);
    gst_structure_set (told, "sh", GST_TYPE_STRUCTURE, result, NULL);
    gst_structure_free (result);
    check_push (h, in, GST_FLOW_OK);
    gst_buffer_unref (check_pull (h));
  }
  fail_unless_equals_int (
      check_count_messages (bus, GST_MESSAGE_ELEMENT), __i__ == 0);
}

/* Slopes that were handed over are lost with the device: the mirror stays for
 * that frame, and then goes on. */
CHECK_MOCK_TEST (test_a_frame_that_was_handed_over_is_lost_with_its_device)
{
  g_autofree gchar *line = g_strdup_printf (
      "shcentroid name=sh backend=cuda columns=32 rows=16 pitch-x=4 pitch-y=4 "
      "fields=slopes ! shreconstruct name=rc n-threads=1 "
      "matrix-location=%s/large.npy",
      check_folder ());
  guint left = 4;
  GstElement *bin = gst_parse_bin_from_description (line, TRUE, NULL);
  g_autoptr (GstElement) sh = gst_bin_get_by_name (GST_BIN (bin), "sh");
  g_autoptr (GstElement) rc = gst_bin_get_by_name (GST_BIN (bin), "rc");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sh, "src");
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  GstBuffer *out[6];

  check_device ();
  write_large ();
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, lose_device, &left, NULL);
  gst_object_ref_sink (bin);
  h = gst_harness_new_with_element (bin, "sink", "src");
  gst_object_unref (bin);
  bus = check_watch (rc);
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY8,width=128,height=64,framerate=100/1");
  for (guint t = 0; t < G_N_ELEMENTS (out); t++) {
    GstMapInfo map;
    gboolean same;

    out[t] = push_noise (h, t);
    check_lose_device (-1);
    if (t == 0)
      continue;
    gst_buffer_map (out[t - 1], &map, GST_MAP_READ);
    same = gst_buffer_memcmp (out[t], 0, map.data, map.size) == 0;
    gst_buffer_unmap (out[t - 1], &map);
    fail_unless (same == (t == 3), "frame %u moves the mirror: %d", t, !same);
  }
  check_warning (bus, LIBRARY, FAILED, "is lost");
  fail_unless_equals_uint64 (check_stat (rc, "lost-frames"), 1);
  for (guint t = 0; t < G_N_ELEMENTS (out); t++)
    gst_buffer_unref (out[t]);
}

/* Two cells of 8x8 pixels with a spot that @dx moves off their middles. */
static GstBuffer *
spots_new (gdouble dx)
{
  guint8 *pixels = g_malloc0 (2 * 64);

  for (guint x = 0; x < 8; x++)
    for (guint i = 0; i < 4; i++)
      pixels[(i / 2 + 3) * 16 + i % 2 * 8 + x] =
          (guint8) (200 * MAX (0, 1 - fabs (x - 3.5 - dx)));
  return gst_buffer_new_wrapped (pixels, 2 * 64);
}

/* Their slopes come to the host after the commands are on their way. */
CHECK_MOCK_TEST (test_slopes_that_were_handed_over_tell_of_a_wrong_sign)
{
  for (gint sign = -1; sign <= 1; sign += 2) {
    g_autofree gchar *line = g_strdup_printf (
        "shcentroid backend=cuda columns=2 rows=1 pitch-x=8 "
        "pitch-y=8 fields=slopes ! shreconstruct name=rc "
        "backend=cuda gain=0.3 leak=0.05 matrix-location=%s/means.npy",
        check_folder ());
    GstElement *bin = gst_parse_bin_from_description (line, TRUE, NULL);
    g_autoptr (GstElement) rc = gst_bin_get_by_name (GST_BIN (bin), "rc");
    g_autoptr (CheckBus) bus = check_watch (rc);
    g_autoptr (CheckHarness) h = NULL;
    g_autoptr (GRand) rand = g_rand_new_with_seed (1);
    gdouble air = 0.1;
    gfloat command = 0;

    gst_object_ref_sink (bin);
    h = gst_harness_new_with_element (bin, "sink", "src");
    gst_object_unref (bin);
    gst_harness_set_src_caps_str (
        h, "video/x-raw,format=GRAY8,width=16,height=8,framerate=100/1");
    for (guint t = 0; t < 300; t++) {
      g_autoptr (GstBuffer) out = NULL;

      air = 0.9 * air + 0.04 * g_rand_double_range (rand, -1, 1);
      check_push (
          h, spots_new (CLAMP (air + sign * command, -3, 3)), GST_FLOW_OK);
      out = check_pull (h);
      gst_buffer_extract (out, 0, &command, sizeof (command));
    }
    fail_unless_equals_int (
        check_count_messages (bus, GST_MESSAGE_WARNING), sign < 0);
  }
}

/* The slopes before stay in use, with one warning, until the name fits. */
CHECK_TEST (test_another_name_of_results_never_ends_a_stream)
{
  g_autoptr (CheckHarness) h = harness_new ("", "video/x-raw,format=GRAY8,"
                                                "width=4,height=4,"
                                                "framerate=1000/1");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  gfloat commands[3][N_COMMANDS];

  for (guint t = 0; t < G_N_ELEMENTS (commands); t++) {
    g_autoptr (GstBuffer) out = NULL;

    check_push (h, described_new ("flux,mass,dx,dy", 2, 4, FALSE), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, commands[t], sizeof (commands[t]));
    g_object_set (h->element, "results", "x", NULL);
  }
  for (guint i = 0; i < N_COMMANDS; i++)
    fail_unless (
        commands[0][i] != commands[1][i] && commands[1][i] != commands[2][i]);
  check_warning (bus, LIBRARY, SETTINGS, "one of those that are: sh.");
  g_object_set (h->element, "results", "sh", NULL);
  check_push (h, described_new ("flux,mass,dx,dy", 2, 4, FALSE), GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
}

static const struct {
  const gchar *source, *settings, *words;
} wrong[] = {
    {SLOPES, "", "There is no control matrix"},
    {SLOPES, "matrix-location=$/none.npy", "none.npy"},
    {SLOPES, "matrix-location=$/odd.npy", "[commands, 2 cells]"},
    {SLOPES, "matrix-location=$/nan.npy", "nan"},
    {SLOPES, "matrix-location=$/three-cells.npy", "The sensor has 2 cells"},
    {SLOPES, "matrix-location=$/transposed.npy",
        "[4, 2]; it needs [commands, 2 cells] with up to 65536 commands, and "
        "would fit the sensor transposed"},
    {SLOPES, "matrix-location=$/odd-transposed.npy",
        "would fit the sensor transposed"},
    {SLOPES,
        "matrix-location=$/transposed.npy "
        "interaction-location=$/transposed.npy",
        "[4, 2]; it needs [commands, 2 cells]"},
    {SLOPES, "matrix-location=$/transposed.npy modes-location=$/turned.npy",
        "would fit the sensor transposed"},
    {"video/x-raw,format=GRAY8,width=4,height=4,framerate=1/1",
        "matrix-location=$/transposed.npy "
        "interaction-location=$/transposed.npy",
        "one of the two matrices is transposed. matrix-location"},
    {SLOPES, "matrix-location=$/telemetry.npy modes-location=$/turned.npy",
        "has f32 [3, 4], which is taken as [modes, 2 cells]"},
    {SLOPES,
        "matrix-location=$/one.npy invalid-policy=exclude "
        "interaction-location=$/one.npy",
        "would fit transposed"},
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
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)5:1:1:1,framerate=1/1",
        "matrix-location=$/means.npy", "[2, cells] or [2 cells]"},
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)10:2:2:1,framerate=1/1",
        "matrix-location=$/means.npy", "no slopes"},
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)10:3:1:1,framerate=1/1",
        "matrix-location=$/means.npy", "with 30 numbers are no slopes for the"},
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)2:3:1:1,framerate=1/1",
        "commands=2", "without a control matrix"},
    {"other/tensors,format=static,num_tensors=1,types=float32,"
     "dimensions=(string)6:1:1:1,framerate=1/1",
        "matrix-location=$/means.npy", "The sensor has 3 cells"},
    {SLOPES, "matrix-location=$/means.npy invalid-policy=exclude",
        "Set interaction-location"},
    {SLOPES,
        "matrix-location=$/one.npy invalid-policy=exclude "
        "interaction-location=$/interaction.npy",
        "[4, 1]"},
    {SLOPES,
        "backend=cuda matrix-location=$/means.npy invalid-policy=exclude "
        "interaction-location=$/interaction.npy",
        "take backend=cpu or auto"},
    {SLOPES,
        "matrix-location=$/means.npy invalid-policy=exclude "
        "interaction-location=$/interaction.npy matrix-storage=bf16",
        "Set matrix-storage=f32"},
    {SLOPES, "matrix-location=$/means.npy dead-actuators=\"<2>\"",
        "dead-actuators has 2"},
    {SLOPES, "matrix-location=$/means.npy dead-actuators=\"<-1>\"",
        "dead-actuators has -1"},
    {SLOPES, "matrix-location=$/means.npy mode-gains=\"<1.0,-1.0>\"",
        "mode-gains has -1 for mode 1"},
    {SLOPES,
        "matrix-location=$/means.npy actuator-map-location=$/wrong-map.npy",
        "has 2 for output 2"},
    {SLOPES, "matrix-location=$/means.npy mirror-3-location=$/one.npy",
        "mirror-3-location"},
    {SLOPES,
        "matrix-location=$/means.npy mirror-1-location=$/tip.npy "
        "mirror-1-minimum=2 mirror-1-maximum=1",
        "Set mirror-1-minimum below mirror-1-maximum"},
    {SLOPES, "matrix-location=$/means.npy wavefront-scale=0",
        "wavefront-scale is 0"},
    {"video/x-raw,format=GRAY8,width=4,height=4,framerate=1/1",
        "matrix-location=$/means.npy", "Put shcentroid before"},
};

CHECK_LOOP_TEST (test_what_is_wrong_is_said, G_N_ELEMENTS (wrong))
{
  g_autofree gchar *launch = g_strdup_printf (
      "fakesrc num-buffers=1 sizetype=fixed sizemax=16 filltype=zero ! "
      "capsfilter caps=\"%s\" ! shreconstruct %s ! fakesink",
      wrong[__i__].source, wrong[__i__].settings);
  g_autoptr (CheckPipeline) pipeline = check_launch (launch);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_says (bus, GST_MESSAGE_ERROR, wrong[__i__].words);
}
