/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* insarxcorr on devices, which the mock stands in for; modes, masks, gross
 * offsets, rasters; and what is no data. */
#include "insar-check.h"
#include "core/failures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- on the device, which is the mock
 * -----------------------------------------
 */

/* Returns: (transfer full): a property of x, once all has come out of "out" */
static gchar *
run_for_property (const gchar *description, const gchar *property)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (description);
  g_autoptr (GstElement) x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
  g_autoptr (GString) text = g_string_new (NULL);
  gchar *value = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", text);
  insar_check_no_error (pipeline);
  g_object_get (x, property, &value, NULL);
  return value;
}

CHECK_CASE ("insarxcorr-options", insar_setup, check_remove_folder)

CHECK_TEST (test_backends_and_devices_give_the_same_rows)
{
  const gchar *const modes[] = {"", "mode=precise", "mask-location=$/mask.npy"};
  const gchar *const others[] = {"backend=cuda",
      "backend=cuda cuda-devices=<1>", "backend=cuda cuda-devices=<0,1>",
      "backend=cuda memory-limit=900000"};

  insar_write_mask ("mask.npy");
  for (guint m = 0; m < G_N_ELEMENTS (modes); m++) {
    g_autofree gchar *plain = g_strdup_printf (
        SOURCES ("") "backend=cpu %s ! text/csv" OUT, modes[m]);
    g_autoptr (GString) expected = insar_run (plain);

    for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
      g_autofree gchar *description = g_strdup_printf (
          SOURCES ("lines-per-buffer=7") "%s %s ! text/csv" OUT, others[i],
          modes[m]);
      g_autoptr (GString) found = insar_run (description);

      fail_unless (g_string_equal (found, expected), "%s %s:\n%s", others[i],
          modes[m], found->str);
    }
  }
}

/* 102 columns and 190 lines of each image are covered by patches. */
CHECK_TEST (test_what_is_needed_is_uploaded_once)
{
  const gchar *const backends[] = {"cpu", "cuda"};
  const gchar *const names[] = {"bytes-copied", "bytes-uploaded"};

  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *description =
        g_strdup_printf (SOURCES ("lines-per-buffer=9") "backend=%s ! "
                                                        "text/csv" OUT,
            backends[i]);
    g_autoptr (CheckPipeline) pipeline = check_launch (description);
    g_autoptr (GstElement) x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
    g_autoptr (GString) text = g_string_new (NULL);

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    check_collect (pipeline, "out", text);
    fail_unless_equals_uint64 (check_stat (x, "frames"), 4);
    fail_unless_equals_uint64 (check_stat (x, names[i]), 2 * 102 * 190 * 4);
    fail_unless_equals_uint64 (check_stat (x, names[!i]), 0);
  }
}

CHECK_TEST (test_auto_takes_the_device_for_much_work)
{
  g_autofree gchar *little =
      run_for_property (SOURCES ("") "! text/csv" OUT, "active-backend");
  g_autofree gchar *much = run_for_property (
      SOURCES ("") "nx=90 ny=100 ! text/csv" OUT, "active-backend");

  fail_unless_equals_string (little, "cpu");
  fail_unless_equals_string (much, "cuda");
}

/* --- while the device opens
 * ----------------------------------------------------
 */

static GstPadProbeReturn
count_buffer (GstPad *pad, GstPadProbeInfo *info, gpointer counter)
{
  g_atomic_int_inc ((gint *) counter);
  return GST_PAD_PROBE_REMOVE;
}

/* Returns: how many of the two sides have had a buffer, after 10 s at most */
static gint
wait_for_first_buffers (const gint *counter)
{
  for (guint i = 0; i < 10000 && g_atomic_int_get (counter) < 2; i++)
    g_usleep (1000);
  return g_atomic_int_get (counter);
}

static void
count_first_buffers (GstElement *x, gint *counter)
{
  const gchar *const sides[] = {"reference", "secondary"};

  for (guint s = 0; s < 2; s++) {
    g_autoptr (GstPad) pad = gst_element_get_static_pad (x, sides[s]);

    gst_pad_add_probe (
        pad, GST_PAD_PROBE_TYPE_BUFFER, count_buffer, counter, NULL);
  }
}

static gpointer
set_null (gpointer pipeline)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
  return NULL;
}

/* What auto takes the device for, too. */
static const gchar *const opening[] = {
    "backend=cuda", "backend=auto nx=90 ny=100"};

CHECK_MOCK_TEST (test_sources_read_while_the_device_opens)
{
  check_n_devices ();
  for (guint i = 0; i < G_N_ELEMENTS (opening); i++) {
    g_autofree gchar *plain = g_strdup_printf (
        SOURCES ("") "%s backend=cpu ! text/csv" OUT, opening[i]);
    g_autoptr (GString) expected = insar_run (plain);
    g_autofree gchar *description =
        g_strdup_printf (SOURCES ("") "%s ! text/csv" OUT, opening[i]);
    g_autoptr (CheckPipeline) pipeline = check_launch (description);
    g_autoptr (GstElement) x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
    g_autoptr (GString) text = g_string_new (NULL);
    gint n_sides = 0, n_meanwhile;

    count_first_buffers (x, &n_sides);
    check_hold_context (TRUE);
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    n_meanwhile = wait_for_first_buffers (&n_sides);
    check_hold_context (FALSE);
    fail_unless_equals_int (n_meanwhile, 2);
    check_collect (pipeline, "out", text);
    insar_check_no_error (pipeline);
    fail_unless (g_string_equal (text, expected), "%s", text->str);
    fail_unless (check_stat (x, "bytes-uploaded") > 0);
  }
}

/* Four buffers an image: one is in the element, three are in the queue. */
CHECK_MOCK_TEST (test_queues_fill_while_the_device_opens)
{
  const gchar *const names[] = {"a", "b"};
  g_autoptr (CheckPipeline) pipeline = NULL;
  g_autoptr (GString) text = g_string_new (NULL), expected = NULL;
  guint levels[2] = {0, 0};

  check_n_devices ();
  expected = insar_run (SOURCES ("") "backend=cpu ! text/csv" OUT);
  pipeline = check_launch (
      "slcsrc location=$/ref.PRM lines-per-buffer=80 ! queue name=a ! "
      "x.reference slcsrc location=$/sec.PRM lines-per-buffer=80 ! queue name=b "
      "! x.secondary insarxcorr name=x " GRID " backend=cuda ! text/csv" OUT);
  check_hold_context (TRUE);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 10000 && (levels[0] != 3 || levels[1] != 3); i++) {
    g_usleep (1000);
    for (guint s = 0; s < 2; s++) {
      g_autoptr (GstElement) queue =
          gst_bin_get_by_name (GST_BIN (pipeline), names[s]);

      g_object_get (queue, "current-level-buffers", &levels[s], NULL);
    }
  }
  check_hold_context (FALSE);
  fail_unless_equals_int (levels[0], 3);
  fail_unless_equals_int (levels[1], 3);
  check_collect (pipeline, "out", text);
  fail_unless (g_string_equal (text, expected), "%s", text->str);
}

CHECK_MOCK_TEST (test_it_can_be_stopped_while_the_device_opens)
{
  check_n_devices ();
  for (guint i = 0; i < G_N_ELEMENTS (opening); i++) {
    g_autofree gchar *description =
        g_strdup_printf (SOURCES ("") "%s ! fakesink", opening[i]);
    GstElement *pipeline = check_launch (description);
    g_autoptr (GstElement) x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
    gint n_sides = 0;
    GThread *stopping;

    count_first_buffers (x, &n_sides);
    check_hold_context (TRUE);
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    wait_for_first_buffers (&n_sides);
    stopping = g_thread_new ("stop", set_null, pipeline);
    g_usleep (20000);
    check_hold_context (FALSE);
    g_thread_join (stopping);
    insar_check_no_error (pipeline);
    g_clear_object (&x);
    gst_object_unref (pipeline);
    fail_unless_equals_int (check_n_live (), 0);
  }
}

/* As caps that are refused would be, what could not be opened is opened again
 * after a flush. */
CHECK_TEST (test_a_seek_opens_what_was_refused)
{
  g_autoptr (GString) expected =
      insar_run (SOURCES ("") "backend=cpu ! text/csv" OUT);
  g_autoptr (CheckPipeline) pipeline = check_launch (
      SOURCES ("") "backend=cuda memory-limit=1000 ! text/csv" OUT);
  g_autoptr (GstElement) x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GString) text = g_string_new (NULL);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_error (bus, LIBRARY, SETTINGS, "memory-limit is 1000 bytes");
  g_object_set (x, "memory-limit", (guint64) 1 << 30, NULL);
  fail_unless (gst_element_seek_simple (
      pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  gst_element_set_state (pipeline, GST_STATE_PLAYING); /* again: it failed */
  check_collect (pipeline, "out", text);
  fail_unless (g_string_equal (text, expected), "%s", text->str);
}

/* --- masks, gross offsets, steps, rasters
 * --------------------------------------
 */

static void
check_numbers (const GString *text, guint n_fields, guint row, guint field,
    gdouble expected)
{
  gfloat value;

  fail_unless (text->len >= (row * n_fields + field + 1) * sizeof (value));
  memcpy (&value, text->str + (row * n_fields + field) * sizeof (value),
      sizeof (value));
  fail_unless (ABS (value - expected) < 0.3, "patch %u field %u is %g, not %g",
      row, field, value, expected);
}

CHECK_TEST (test_gross_offsets_reach_what_the_search_does_not)
{
  g_autoptr (GString) found = NULL;

  /* the search is 8 columns either way; 30 columns and -40 lines more are not
   * found without being told */
  insar_write_slc ("far.SLC", 30 + SHIFT_X, -40 + SHIFT_Y);
  insar_write_prm ("far.PRM", "far.SLC", HEIGHT, "");
  insar_write_gross_offsets ("gross.npy", 30.4, -39.6);
  found = insar_run ("slcsrc location=$/ref.PRM ! x.reference slcsrc "
                     "location=$/far.PRM ! x.secondary insarxcorr name=x " GRID
                     " gross-offsets-location=$/gross.npy ! other/tensors" OUT);
  fail_unless_equals_int (found->len, 12 * 12 * sizeof (gfloat));
  for (guint i = 0; i < 12; i++) {
    check_numbers (found, 12, i, 2, 30 + SHIFT_X);
    check_numbers (found, 12, i, 3, -40 + SHIFT_Y);
  }
}

CHECK_TEST (test_steps_cover_the_reference)
{
  g_autoptr (GString) found =
      insar_run (SOURCES ("") "grid=step step-x=49 step-y=60 ! other/tensors,"
                              "format=static,num_tensors=1,types=float32,"
                              "dimensions=12:4:1:1" OUT);

  /* from 32 to 211 - 32 and to 307 - 32 at most */
  fail_unless_equals_int (found->len, 4 * 5 * 12 * sizeof (gfloat));
  check_numbers (found, 12, 0, 0, 32);
  check_numbers (found, 12, 0, 1, 32);
  check_numbers (found, 12, 19, 0, 32 + 3 * 49);
  check_numbers (found, 12, 19, 1, 32 + 4 * 60);
}

CHECK_TEST (test_rasters_are_planes_of_the_rows)
{
  g_autoptr (GString) rows = NULL, planes = NULL;

  insar_write_mask ("mask.npy");
  rows =
      insar_run (SOURCES ("") "mask-location=$/mask.npy ! other/tensors" OUT);
  planes =
      insar_run (SOURCES ("") "mask-location=$/mask.npy x.rasters ! queue ! "
                              "other/tensors,format=static,num_tensors=1,types="
                              "float32,dimensions=3:4:8:1" OUT);
  fail_unless_equals_int (planes->len, 12 * 8 * sizeof (gfloat));
  for (guint i = 0; i < 12; i++) {
    static const guint fields[] = {2, 3, 4, 6, 7, 8, 9};
    const gfloat *plane = (const gfloat *) planes->str;
    const gfloat *row = (const gfloat *) rows->str + 12 * i;
    gboolean masked = i % 3 == 0;

    fail_unless (plane[7 * 12 + i] == (masked ? 2 : 0), "patch %u has state %g",
        i, plane[7 * 12 + i]);
    for (guint p = 0; p < 7; p++) {
      gfloat value = plane[p * 12 + i];

      fail_unless (masked ? value != value : value == row[fields[p]],
          "patch %u plane %u is %g", i, p, value);
    }
  }
}

CHECK_TEST (test_precise_offsets_are_precise)
{
  g_autoptr (GString) found =
      insar_run (SOURCES ("") "mode=precise window-width=40 "
                              "window-height=50 ! other/tensors" OUT);

  for (guint i = 0; i < 12; i++) {
    const gfloat *row = (const gfloat *) found->str + 12 * i;

    fail_unless (ABS (row[2] - SHIFT_X) < 0.02 && ABS (row[3] - SHIFT_Y) < 0.02,
        "patch %u is off by (%g, %g)", i, row[2] - SHIFT_X, row[3] - SHIFT_Y);
    fail_unless (row[4] > 60 && row[5] >= row[4] && row[6] > 50 && row[7] > 0 &&
                     row[8] > 0 && row[11] == 0,
        "patch %u: correlation %g peak %g snr %g cov %g %g flags %g", i, row[4],
        row[5], row[6], row[7], row[8], row[11]);
  }
}

/* Runs on the device until the end or an error, of which x posts one at most.
 * Returns: whether all went well */
static gboolean
run_failing (gulong nth, gboolean forever)
{
  GstElement *pipeline = check_launch (
      SOURCES ("lines-per-buffer=50") "backend=cuda cuda-devices=<0,1> ! "
                                      "text/csv ! fakesink sync=false");
  GstElement *x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
  GstBus *bus = gst_element_get_bus (pipeline);
  gboolean ended = FALSE;
  guint n_errors = 0;

  imk_inject_failure (nth, forever);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (!ended) {
    GstMessage *message = gst_bus_timed_pop_filtered (
        bus, CHECK_TIMEOUT, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);

    fail_unless (message != NULL, "call %lu: it hangs", nth);
    ended = TRUE;
    for (; message; message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR)) {
      n_errors += GST_MESSAGE_SRC (message) == GST_OBJECT (x) &&
                  GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR;
      gst_message_unref (message);
    }
  }
  imk_inject_failure (0, FALSE);
  gst_object_unref (bus);
  gst_object_unref (x);
  check_stop (pipeline);
  fail_unless (n_errors <= 1, "call %lu: %u errors", nth, n_errors);
  return n_errors == 0;
}

CHECK_TEST (test_a_failing_device_is_one_error)
{
  guint n_good = 0;

  for (gulong nth = 1; nth < 200 && n_good < 2; nth += nth < 20 ? 1 : 7) {
    run_failing (nth, TRUE);
    n_good += run_failing (nth, FALSE);
  }
  fail_unless (n_good >= 2, "no end to the calls");
}

/* Where it cannot even be opened, the CPU does it. */
CHECK_TEST (test_auto_takes_the_cpu_when_the_device_fails)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch (SOURCES ("") "nx=90 ny=100 ! fakesink sync=false");
  g_autoptr (GstElement) x = gst_bin_get_by_name (GST_BIN (pipeline), "x");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autofree gchar *active = NULL;

  /* the first call only asks whether there is one */
  imk_inject_failure (2, TRUE);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_message_says (
      check_message (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      CHECK_CODE (LIBRARY, FAILED), "the CPU goes on");
  g_object_get (x, "active-backend", &active, NULL);
  fail_unless_equals_string (active, "cpu");
  imk_inject_failure (0, FALSE);
}

/* --- no data
 * -------------------------------------------------------------------
 */

/* Returns: lines of text of the images that come again */
static guint
count_rows_again (GstElement *pipeline)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint n = 0;

  fail_unless (gst_element_seek_simple (
      pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  check_collect (pipeline, "out", text);
  for (gsize i = 0; i < text->len; i++)
    n += text->str[i] == '\n';
  return n;
}

/* What is set while a pair streams counts for the next; what is wrong does not,
 * and stops nothing. */
CHECK_TEST (test_settings_count_for_the_next_pair)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (SOURCES ("") OUT);
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "x");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GString *text = g_string_new (NULL);
  g_autofree gchar *none = check_path_of ("no.npy");
  gboolean is_valid = FALSE;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", text);
  g_string_free (text, TRUE);
  g_object_set (element, "nx", 2, "ny", 5, NULL);
  fail_unless_equals_int (count_rows_again (pipeline), 10);

  g_object_set (element, "ysearch", 60, NULL);
  fail_unless_equals_int (count_rows_again (pipeline), 10);
  check_warning (bus, LIBRARY, SETTINGS, "ysearch");
  g_object_get (element, "settings-valid", &is_valid, NULL);
  fail_if (is_valid);
  g_object_set (element, "ysearch", 16, "mask-location", none, NULL);
  fail_unless_equals_int (count_rows_again (pipeline), 10);
  check_warning (bus, LIBRARY, SETTINGS, "no.npy");
  g_object_set (element, "nx", 4, "mask-location", NULL, NULL);
  fail_unless_equals_int (count_rows_again (pipeline), 20);
  g_object_get (element, "settings-valid", &is_valid, NULL);
  fail_unless (is_valid);
  check_no_messages (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
}

/* 18 counts where somebody sets it; the default of mode=precise is auto. */
CHECK_TEST (test_the_threshold_follows_the_mode)
{
  static const struct {
    const gchar *words;
    guint low; /* patches, of 12, that are not above it: the pair has noise */
  } cases[] = {
      {"mode=precise window-width=16 window-height=16", 12},
      {"mode=precise window-width=16 window-height=16 fit-snr=-1", 12},
      {"mode=precise window-width=16 window-height=16 fit-snr=0", 0},
      {"fit-snr=-1", 12},
      {"fit-snr=0", 0},
  };

  insar_write_slc ("noise.SLC", 3000, 4000);
  insar_write_prm ("noise.PRM", "noise.SLC", HEIGHT, "");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *line = g_strconcat (
        "slcsrc location=$/ref.PRM ! x.reference slcsrc location=$/noise.PRM ! "
        "x.secondary insarxcorr name=x " GRID " ",
        cases[i].words, " ! text/csv" OUT, NULL);
    g_autoptr (CheckPipeline) pipeline = check_launch (line);
    g_autoptr (GString) text = g_string_new (NULL);
    g_auto (GStrv) lines = NULL;
    guint low = 0;

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    check_collect (pipeline, "out", text);
    lines = g_strsplit (text->str, "\n", -1);
    for (guint k = 1; lines[k] && *lines[k]; k++)
      low += (atoi (strrchr (lines[k], ',') + 1) & 8) != 0;
    fail_unless (
        low == cases[i].low, "%s: %u\n%s", cases[i].words, low, text->str);
  }
}

CHECK_TEST (test_zeros_are_flagged_and_give_no_fit)
{
  g_autofree gint16 *zeros = g_new0 (gint16, 2 * WIDTH * HEIGHT);
  g_autoptr (CheckPipeline) pipeline = NULL;
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GString) rows = g_string_new (NULL), fit = g_string_new (NULL);

  check_write_file ("zero.SLC", zeros, sizeof (gint16) * 2 * WIDTH * HEIGHT);
  insar_write_prm ("zero.PRM", "zero.SLC", HEIGHT, "");
  pipeline = check_launch (
      "slcsrc location=$/zero.PRM ! x.reference slcsrc location=$/zero.PRM ! "
      "x.secondary insarxcorr name=x " GRID " ! other/tensors ! appsink "
      "name=out sync=false x.fit ! queue ! appsink name=fit sync=false");
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", rows);
  check_collect (pipeline, "fit", fit);
  fail_unless_equals_int (rows->len, 12 * 12 * sizeof (gfloat));
  for (guint i = 0; i < 12; i++) {
    check_numbers (rows, 12, i, 4, 0);
    check_numbers (rows, 12, i, 10, 0);
    check_numbers (rows, 12, i, 11, 1 + 4 + 8); /* edge, no data, low */
  }
  fail_unless_equals_int (fit->len, 0);
  check_warning (bus, STREAM, FAILED, "not enough points");
}

CHECK_TEST (test_samples_that_are_no_numbers_are_no_data)
{
  const gchar *const modes[] = {"compat", "precise"};
  g_autofree gfloat *samples = g_new (gfloat, 2 * WIDTH * HEIGHT);
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);

  for (guint i = 0; i < 2 * WIDTH * HEIGHT; i++)
    samples[i] =
        i % 17 ? (gfloat) g_rand_double_range (rand, -9e3, 9e3) : (gfloat) NAN;
  check_write_file ("nan.SLC", samples, sizeof (gfloat) * 2 * WIDTH * HEIGHT);
  for (guint m = 0; m < G_N_ELEMENTS (modes); m++) {
    g_autofree gchar *description = g_strdup_printf (
        "slcsrc location=$/nan.SLC width=211 format=cf32 ! x.reference slcsrc "
        "location=$/nan.SLC width=211 format=cf32 ! x.secondary insarxcorr "
        "name=x " GRID " mode=%s ! text/csv" OUT,
        modes[m]);
    g_autoptr (GString) found = insar_run (description);
    g_auto (GStrv) lines = g_strsplit (found->str, "\n", -1);

    fail_unless_equals_int (g_strv_length (lines), 1 + 12 + 1);
    fail_unless (strstr (found->str, "nan") == NULL &&
                     strstr (found->str, "inf") == NULL,
        "%s", found->str);
    for (guint i = 1; i <= 12; i++) {
      g_auto (GStrv) words = g_strsplit (lines[i], ",", -1);

      fail_unless (
          ABS (g_ascii_strtod (words[5], NULL)) < 0.1 &&
              ABS (g_ascii_strtod (words[13], NULL) - 15.0 / 17) < 0.01,
          "%s", lines[i]);
    }
  }
}
