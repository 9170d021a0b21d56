/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The elements slcsrc, insarxcorr and insarfit, and the PRM reader: lines,
 * bands, formats, seeking and errors. What the offsets are worth, the tests of
 * the kernel say. */
#include "insar-check.h"
#include "insar-sides.h"
#include "gstimagingresults.h"

#include <stdio.h>
#include <string.h>

#include "insar/gstinsarprm.h"

/* --- slcsrc --------------------------------------------------------------- */

CHECK_CASE ("insarxcorr", insar_setup, check_remove_folder)

CHECK_TEST (test_source_gives_whole_lines_of_the_file)
{
  g_autofree gchar *path = check_path_of ("ref.SLC"), *data = NULL;
  g_autoptr (GString) found = NULL;
  gsize size;

  fail_unless (g_file_get_contents (path, &data, &size, NULL));
  for (guint lines = 0; lines < 400; lines = lines * 5 + 1) {
    g_autofree gchar *description = g_strdup_printf (
        "slcsrc location=$/ref.PRM lines-per-buffer=%u" OUT, lines);

    found = insar_run (description);
    fail_unless_equals_int (found->len, size);
    fail_unless (memcmp (found->str, data, size) == 0);
    g_string_free (found, TRUE);
  }
  found = insar_run ("slcsrc location=$/ref.SLC width=211 format=ci16" OUT);
  fail_unless_equals_int (found->len, size);
}

CHECK_TEST (test_source_says_what_it_reads_and_seeks_by_lines)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch ("slcsrc location=$/sec.PRM lines-per-buffer=10" OUT);
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  const guint lines[] = {10, 10, 5};
  guint64 next = 40;
  GstSample *sample;
  gint64 duration;
  g_autoptr (GstCaps) expected = NULL;

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT);
  fail_unless (
      gst_element_query_duration (pipeline, GST_FORMAT_DEFAULT, &duration));
  fail_unless_equals_int64 (duration, HEIGHT);
  fail_unless (gst_element_seek (pipeline, 1, GST_FORMAT_DEFAULT,
      GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, 40, GST_SEEK_TYPE_SET, 65));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  expected = gst_caps_from_string (
      "application/x-slc, format=(string)ci16, width=(int)211, "
      "height=(int)307, prf=(double)1000, rshift=(int)1, ashift=(int)0");
  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    GstBuffer *buffer;

    g_signal_emit_by_name (
        sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
    fail_unless (sample != NULL);
    fail_unless (gst_caps_is_equal (gst_sample_get_caps (sample), expected),
        "%" GST_PTR_FORMAT, gst_sample_get_caps (sample));
    buffer = gst_sample_get_buffer (sample);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), next);
    fail_unless_equals_int (gst_buffer_get_size (buffer), lines[i] * WIDTH * 4);
    next += lines[i];
    gst_sample_unref (sample);
  }
  g_signal_emit_by_name (
      sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
  fail_unless (sample == NULL);
}

CHECK_TEST (test_source_says_what_is_wrong)
{

  insar_write_prm ("long.PRM", "ref.SLC", HEIGHT + 1, "");
  insar_write_prm ("absent.PRM", "absent.SLC", HEIGHT, "");
  insar_write_prm ("shift.PRM", "ref.SLC", HEIGHT, "ashift = many\n");
  check_write_file ("key.PRM", "SLC_file = ref.SLC\nnum_valid_az = 3\n", 36);
  check_write_file ("zero.PRM",
      "SLC_file = ref.SLC\nnum_rng_bins = 0\nnum_valid_az = 3\n", 53);
  check_write_file ("odd.SLC", "12345", 5);
#define FAILS(what, domain, code, words) \
  check_launch_fails ( \
      "slcsrc " what " ! fakesink", CHECK_CODE (domain, code), words)
  FAILS ("", RESOURCE, NOT_FOUND, "No image to read");
  FAILS ("location=$/no.PRM", RESOURCE, NOT_FOUND, "There is no file");
  FAILS ("location=$/absent.PRM", RESOURCE, NOT_FOUND,
      "There is no file \"absent.SLC\"");
  FAILS ("location=$/long.PRM", STREAM, FORMAT,
      "has 259108 bytes; 308 lines of 211 samples (ci16) take 259952");
  FAILS (
      "location=$/long.PRM format=cf32", STREAM, FORMAT, "(cf32) take 519904");
  FAILS ("location=$/key.PRM", STREAM, FORMAT,
      "has no line \"num_rng_bins = ...\"");
  FAILS ("location=$/zero.PRM", STREAM, FORMAT,
      "says num_rng_bins = 0; expected is a number from 1");
  FAILS ("location=$/shift.PRM", STREAM, FORMAT, "says ashift = many");
  FAILS ("location=$/ref.SLC", RESOURCE, SETTINGS,
      "need the properties width (columns) and format");
  FAILS ("location=$/odd.SLC width=1 format=ci16", STREAM, FORMAT,
      "has 5 bytes; expected are 1 to");
  FAILS ("location=$ width=1 format=ci16", RESOURCE, OPEN_READ,
      "is no regular file");
#undef FAILS
}

/* GMTSAR leaves lines that are not counted; a part of one means another width.
 */
CHECK_TEST (test_an_image_of_another_width_is_warned_of)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch ("slcsrc location=$/wide.PRM ! fakesink");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  check_write_file ("wide.PRM",
      "SLC_file = ref.SLC\nnum_rng_bins = 210\nnum_valid_az = 300\n", -1);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  /* 211 * 307 * 4 bytes are 308 lines of 210 samples and 97 more */
  check_warning (bus, STREAM, FORMAT,
      "has 388 bytes behind its last whole line of 210 samples (ci16)");
  gst_element_set_state (pipeline, GST_STATE_NULL);
  check_write_file ("wide.PRM",
      "SLC_file = ref.SLC\nnum_rng_bins = 211\nnum_valid_az = 300\n", -1);
  check_play (pipeline);
  check_no_messages (bus, GST_MESSAGE_WARNING);
}

CHECK_TEST (test_names_may_have_spaces)
{
  g_autoptr (CheckPipeline) pipeline = NULL;

  insar_write_slc ("a b.SLC", 0, 0);
  insar_write_prm ("a  b.PRM", "a b.SLC  ", HEIGHT, "");
  pipeline = check_launch ("slcsrc location=\"$/a  b.PRM\" ! fakesink");
  check_play (pipeline);
  check_stop (pipeline);
  insar_write_prm ("remark.PRM", "ref.SLC # of 2021", HEIGHT, "");
  pipeline = check_launch ("slcsrc location=$/remark.PRM ! fakesink");
  check_play (pipeline);
}

CHECK_TEST (test_prm_takes_the_last_value_and_old_names)
{
  const gchar text[] =
      "num_valid_az = 5\n SLC_file=a.SLC # remark\r\nnum_rng_bins = 7\n"
      "xshift = 3\nyshift = -4\nnum_patches = 2\nnum_rng_bins = 9\n"
      "rshifted = 8\nPRF = 1.5e3";
  GError *error = NULL;
  GstInsarPrm *prm = gst_insar_prm_parse (text, strlen (text), "x.PRM", &error);

  fail_unless (prm != NULL, "%s", error ? error->message : "");
  fail_unless_equals_string (prm->slc_file, "a.SLC");
  fail_unless_equals_string (prm->slc_line, "a.SLC # remark");
  fail_unless_equals_int (prm->width, 9);
  fail_unless_equals_int (prm->height, 10);
  fail_unless_equals_int (prm->rshift, 3);
  fail_unless_equals_int (prm->ashift, -4);
  fail_unless_equals_float (prm->prf, 1500);
  gst_insar_prm_free (prm);
}

/* --- insarxcorr ----------------------------------------------------------- */

CHECK_TEST (test_rows_are_those_of_gmtsar)
{
  g_autoptr (GString) text =
      insar_run (SOURCES ("") "! text/x-gmtsar-xcorr" OUT);
  g_auto (GStrv) lines = g_strsplit (text->str, "\n", -1);

  fail_unless_equals_int (g_strv_length (lines), 3 * 4 + 1);
  for (guint i = 0; i < 12; i++) {
    gdouble dx, dy, correlation;
    gint x, y, end = 0;
    g_autofree gchar *again = NULL;

    fail_unless (sscanf (lines[i], "%d %lf %d %lf %lf%n", &x, &dx, &y, &dy,
                     &correlation, &end) == 5);
    fail_unless_equals_int (x, 64 + (2 + (gint) i % 3) * ((WIDTH - 96) / 6));
    fail_unless_equals_int (y, 64 + (1 + (gint) i / 3) * ((HEIGHT - 96) / 5));
    fail_unless (ABS (dx - SHIFT_X) < 0.1 && ABS (dy - SHIFT_Y) < 0.1 &&
                     correlation > 90,
        "%s", lines[i]);
    again = g_strdup_printf (
        " %d %6.3f %d %6.3f %6.2f ", x, dx, y, dy, correlation);
    fail_unless_equals_string (lines[i], again);
  }
}

CHECK_TEST (test_rows_do_not_depend_on_buffers_threads_and_memory)
{
  g_autoptr (GString) expected = insar_run (SOURCES ("") "! text/csv" OUT);
  const gchar *const others[] = {
      SOURCES ("lines-per-buffer=1") "! text/csv" OUT,
      SOURCES ("lines-per-buffer=13") "n-threads=1 ! text/csv" OUT,
      SOURCES ("lines-per-buffer=1000") "n-threads=5 ! text/csv" OUT,
      SOURCES ("") "memory-limit=450000 ! text/csv" OUT,
      "slcsrc location=$/ref.PRM ! queue ! x.reference slcsrc "
      "location=$/sec.PRM lines-per-buffer=3 ! queue ! x.secondary insarxcorr "
      "name=x " GRID " ! text/csv" OUT,
  };

  fail_unless (g_str_has_prefix (expected->str,
      "frame,pts,column,x,y,dx,dy,correlation,peak,snr,cov_xx,cov_yy,cov_xy,"
      "valid,flags\n0,,0,102,"));
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (GString) found = insar_run (others[i]);

    fail_unless (
        g_string_equal (found, expected), "run %u:\n%s", i, found->str);
  }
}

CHECK_TEST (test_tensors_are_the_same_numbers)
{
  g_autoptr (GString) tensor = insar_run (
      SOURCES ("") "! other/tensors,format=static,num_tensors=1,types=float32,"
                   "dimensions=12:3:1:1" OUT);
  g_autoptr (GString) text = insar_run (SOURCES ("") "! text/csv" OUT);
  g_auto (GStrv) lines = g_strsplit (text->str, "\n", -1);

  fail_unless_equals_int (tensor->len, 12 * 12 * sizeof (gfloat));
  for (guint i = 0; i < 12; i++) {
    g_auto (GStrv) words = g_strsplit (lines[1 + i], ",", -1);

    for (guint f = 0; f < 12; f++) {
      gfloat value;

      memcpy (
          &value, tensor->str + (12 * i + f) * sizeof (value), sizeof (value));
      fail_unless (
          ABS (value - g_ascii_strtod (words[3 + f], NULL)) < 1e-5 * 1000,
          "row %u field %u: %g, %s", i, f, value, words[3 + f]);
    }
  }
}

CHECK_TEST (test_rows_say_what_measured_them)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch (SOURCES ("") "! text/csv" OUT);
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "x");
  g_autofree gchar *hash = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 3; i++) {
    const GstStructure *s;
    g_autoptr (GstSample) sample = NULL;
    guint64 frame;

    g_signal_emit_by_name (
        sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
    fail_unless (sample != NULL);
    s = gst_imaging_results_get (gst_sample_get_buffer (sample), "x");
    fail_unless (s != NULL && gst_structure_get_uint64 (s, "frame", &frame));
    fail_unless_equals_uint64 (frame, i);
    g_free (hash);
    g_object_get (element, "settings-hash", &hash, NULL);
    fail_unless_equals_string (
        gst_structure_get_string (s, "settings-hash"), hash);
    fail_unless_equals_string (
        gst_structure_get_string (s, "element"), "insarxcorr");
    fail_unless_equals_string (
        gst_structure_get_string (s, "id"), "insar-offsets-v2");
  }
}

/* Pads of the test in the place of sources: what comes when. */
static GstPad *sources[2];
static gint n_rows; /* atomic */

static GstFlowReturn
count_row (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  g_atomic_int_inc (&n_rows);
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static gint first_event; /* atomic */

static gboolean
note_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  g_atomic_int_compare_and_exchange (&first_event, 0, GST_EVENT_TYPE (event));
  gst_event_unref (event);
  return TRUE;
}

/* A row is measured while lines may come; one too many is seen by the next. */
static void
wait_for_rows (gint n)
{
  gint64 end = g_get_monotonic_time () + CHECK_TIMEOUT / GST_USECOND;

  while (g_atomic_int_get (&n_rows) < n && g_get_monotonic_time () < end)
    g_usleep (G_USEC_PER_SEC / 1000);
  fail_unless_equals_int (g_atomic_int_get (&n_rows), n);
}

static GstFlowReturn
push_lines (guint side, guint first, guint n)
{
  g_autofree gchar *path = check_path_of (side ? "sec.SLC" : "ref.SLC"),
                   *data = NULL;
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, n * WIDTH * 4, NULL);

  fail_unless (g_file_get_contents (path, &data, NULL, NULL));
  gst_buffer_fill (buffer, 0, data + first * WIDTH * 4, n * WIDTH * 4);
  return gst_pad_push (sources[side], buffer);
}

CHECK_TEST (test_rows_come_as_soon_as_their_lines_are_there)
{
  g_autoptr (GstElement) x = gst_element_factory_make ("insarxcorr", NULL);
  GstPad *sink = gst_pad_new ("sink", GST_PAD_SINK), *pad;
  GstSegment segment;
  g_autoptr (GstCaps) caps = gst_caps_from_string (
      "application/x-slc,format=ci16,width=211,height=307");

  gst_pad_set_chain_function (sink, count_row);
  gst_pad_set_event_function (sink, note_event);
  gst_pad_set_active (sink, TRUE);
  g_object_set (x, "nx", 3, "ny", 4, "xsearch", 16, "ysearch", 16, NULL);
  pad = gst_element_get_static_pad (x, "src");
  fail_unless (gst_pad_link (pad, sink) == GST_PAD_LINK_OK);
  gst_object_unref (pad);
  g_atomic_int_set (&first_event, 0);
  gst_element_set_state (x, GST_STATE_PLAYING);
  gst_segment_init (&segment, GST_FORMAT_BYTES); /* as filesrc has it */
  for (guint s = 0; s < 2; s++) {
    sources[s] = gst_pad_new ("src", GST_PAD_SRC);
    gst_pad_set_active (sources[s], TRUE);
    pad = gst_element_get_static_pad (x, s ? "secondary" : "reference");
    fail_unless (gst_pad_link (sources[s], pad) == GST_PAD_LINK_OK);
    gst_object_unref (pad);
    gst_pad_push_event (sources[s], gst_event_new_stream_start ("test"));
    gst_pad_push_event (sources[s], gst_event_new_caps (caps));
    gst_pad_push_event (sources[s], gst_event_new_segment (&segment));
    /* of the image, not of what goes out, which has not begun */
    gst_pad_push_event (sources[s],
        gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "ref", NULL)));
  }
  g_atomic_int_set (&n_rows, 0);
  /* the first row's patches end with line 64 + 42 + 32 */
  fail_unless (push_lines (0, 0, 137) == GST_FLOW_OK);
  fail_unless (push_lines (1, 0, 138) == GST_FLOW_OK);
  wait_for_rows (0);
  fail_unless (push_lines (0, 137, 1) == GST_FLOW_OK);
  wait_for_rows (1);
  fail_unless (push_lines (0, 138, 42) == GST_FLOW_OK);
  fail_unless (push_lines (1, 138, 41) == GST_FLOW_OK);
  wait_for_rows (1);
  fail_unless (push_lines (1, 179, 1) == GST_FLOW_OK);
  wait_for_rows (2);
  fail_unless (push_lines (0, 180, 84) == GST_FLOW_OK);
  fail_unless (push_lines (1, 180, 84) == GST_FLOW_OK);
  wait_for_rows (4);
  fail_unless (push_lines (1, 264, 1) == GST_FLOW_EOS); /* nothing is left */
  fail_unless_equals_int (
      g_atomic_int_get (&first_event), GST_EVENT_STREAM_START);
  gst_element_set_state (x, GST_STATE_NULL);
  for (guint s = 0; s < 2; s++)
    gst_clear_object (&sources[s]);
  gst_object_unref (sink);
}

CHECK_LOOP_TEST (test_a_run_can_be_repeated, 2)
{
  static const gchar *const launches[] = {
      SOURCES ("") "! text/x-gmtsar-xcorr" OUT, SOURCES ("") "! text/csv" OUT};
  g_autoptr (CheckPipeline) pipeline = check_launch (launches[__i__]);
  g_autoptr (GString) first = g_string_new (NULL), again = g_string_new (NULL);

  for (guint i = 0; i < 2; i++) {
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    g_string_truncate (i ? again : first, 0);
    check_collect (pipeline, "out", i ? again : first);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  fail_unless (first->len > 0 && g_string_equal (first, again));

  /* and by a seek of both sources */
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_string_truncate (again, 0);
  check_collect (pipeline, "out", again);
  fail_unless (gst_element_seek_simple (
      pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  g_string_truncate (again, 0);
  check_collect (pipeline, "out", again);
  insar_check_no_error (pipeline);
  fail_unless (g_string_equal (first, again), "after a seek:\n%s", again->str);
}

CHECK_TEST (test_it_can_be_stopped_while_it_waits)
{
  /* 20 lines of the secondary never come */
  g_autoptr (GstElement) pipeline = check_launch (
      "slcsrc location=$/ref.PRM ! x.reference appsrc ! x.secondary "
      "insarxcorr name=x " GRID " ! fakesink");

  for (guint i = 0; i < 3; i++) {
    gst_element_set_state (pipeline, GST_STATE_PAUSED);
    g_usleep (20000);
    fail_unless (gst_element_set_state (pipeline, GST_STATE_NULL) ==
                 GST_STATE_CHANGE_SUCCESS);
  }
}

CHECK_TEST (test_what_is_wrong_is_said)
{

  insar_write_prm ("short.PRM", "sec.SLC", 60, "");
  insar_write_gross_offsets ("gross.npy", 0, 0);
#define FAILS(ref, sec, more, domain, code, words) \
  check_launch_fails ( \
      "slcsrc location=$/" ref " ! x.reference slcsrc location=$/" sec \
      " ! x.secondary insarxcorr name=x " GRID " " more " ! fakesink", \
      CHECK_CODE (domain, code), words)
  FAILS ("ref.PRM", "sec.PRM format=f32", "", STREAM, FORMAT,
      "reference has samples of ci16 and the secondary of f32");
  FAILS ("ref.PRM", "sec.PRM", "ysearch=60", LIBRARY, SETTINGS,
      "need at least 360 lines of 96");
  FAILS ("short.PRM", "sec.PRM", "", LIBRARY, SETTINGS,
      "The reference has 60 lines of 211 columns");
  FAILS ("ref.PRM", "sec.PRM", "memory-limit=1000", LIBRARY, SETTINGS,
      "memory-limit is 1000 bytes");
  FAILS ("ref.PRM", "sec.PRM", "backend=cuda cuda-device-id=7", RESOURCE,
      NOT_FOUND, "cuda-device-id is 7");
  FAILS ("ref.PRM", "sec.PRM", "cuda-devices=<0,7>", LIBRARY, SETTINGS,
      "cuda-devices has 7, but this machine has 2");
  FAILS ("ref.PRM", "sec.PRM", "mask-location=$/no.npy", RESOURCE, OPEN_READ,
      "mask-location: ");
  FAILS ("ref.PRM", "sec.PRM", "mask-location=$/gross.npy", RESOURCE, OPEN_READ,
      "is f64 [4, 3, 2]; expected is [lines, ");
  FAILS ("ref.PRM", "sec.PRM", "gross-offsets-location=$/gross.npy nx=2",
      LIBRARY, SETTINGS, "expected is [4, 2, 2]");
#undef FAILS
  /* an empty file ends before its caps */
  check_launch_fails ("slcsrc location=$/ref.PRM ! x.reference fakesrc "
                      "num-buffers=0 ! x.secondary insarxcorr name=x " GRID
                      " ! fakesink",
      CHECK_CODE (STREAM, FAILED), "The secondary ended before its caps.");
  check_launch_fails (
      SOURCES ("") "! filesink location=/dev/full buffer-mode=2",
      CHECK_CODE (RESOURCE, NO_SPACE_LEFT), "");
  check_launch_fails (
      SOURCES ("num-buffers=1 lines-per-buffer=100") "! fakesink",
      CHECK_CODE (STREAM, FAILED), "ended after 100 of 307 lines");
  check_launch_fails (
      SOURCES (
          "num-buffers=2 lines-per-buffer=90") "x.fit ! queue ! fakesink x.src ! fakesink",
      CHECK_CODE (STREAM, FAILED), "ended after 180 of 307 lines");
}

/* Caps that are refused come again with each buffer and each negotiation. */
CHECK_TEST (test_what_is_wrong_is_said_once)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      "slcsrc location=$/ref.PRM ! x.reference slcsrc location=$/sec.PRM "
      "format=f32 ! x.secondary insarxcorr name=x " GRID " ! fakesink");
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "x");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  for (guint run = 0; run < 2; run++) {
    guint n_sources = 0, n = 0;

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    while (n_sources < 2) { /* what each says at its end */
      g_autoptr (GstMessage) message = check_message (bus, GST_MESSAGE_ERROR);
      gboolean is_own = GST_MESSAGE_SRC (message) == GST_OBJECT (element);

      n += is_own;
      n_sources += !is_own;
    }
    fail_unless_equals_int (n, 1);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
}

/* A flush makes the sources try again. */
CHECK_TEST (test_what_was_refused_is_refused_again)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch (SOURCES ("") "ysearch=60 ! fakesink");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 2; i++) {
    /* of insarxcorr, and of both sources, which then rest; then of the one that
     * is refused again, before the other is flushed perhaps, which then waits
     */
    for (guint n = i == 0 ? 3 : 1; n > 0; n--)
      gst_message_unref (check_message (bus, GST_MESSAGE_ERROR));
    gst_element_seek_simple (
        pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0);
  }
}

/* A smaller secondary is an image as well: patches outside it are flagged. */
CHECK_TEST (test_a_smaller_secondary_is_flagged)
{
  g_autoptr (GString) text = NULL;

  insar_write_prm ("short.PRM", "sec.SLC", 150, "");
  text = insar_run ("slcsrc location=$/ref.PRM ! x.reference slcsrc "
                    "location=$/short.PRM ! x.secondary insarxcorr name=x " GRID
                    " ! text/csv" OUT);
  fail_unless (strstr (text->str, "\n0,,0,102,106,") &&
                   strstr (text->str, ",0\n1,,0,") &&
                   strstr (text->str, ",2\n"),
      "%s", text->str);
}

/* --- the fit -------------------------------------------------------------- */

CHECK_TEST (test_the_fit_is_the_one_of_the_printed_rows)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (SOURCES (
      "") "! tee name=t ! queue ! appsink name=out sync=false t. ! queue ! "
          "insarfit fit-snr=18 ! appsink name=again sync=false x.fit ! queue ! "
          "appsink name=fit sync=false");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GString *rows = g_string_new (NULL), *again = g_string_new (NULL);
  GString *fit = g_string_new (NULL);
  const GstStructure *s = NULL;
  GstMessage *message;
  gdouble shift;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", rows);
  check_collect (pipeline, "again", again);
  check_collect (pipeline, "fit", fit);
  fail_unless (g_str_has_prefix (fit->str, "rshift =  "), "%s", fit->str);
  fail_unless_equals_string (fit->str, again->str);

  while ((message = gst_bus_pop_filtered (bus, GST_MESSAGE_ELEMENT))) {
    s = gst_message_get_structure (message);
    if (gst_structure_has_name (s, "insarxcorr-fit"))
      break;
    gst_message_unref (message);
  }
  fail_unless (message != NULL, "there is no message with the fit");
  fail_unless (gst_structure_get_double (s, "shift-a", &shift));
  fail_unless (ABS (shift - SHIFT_Y) < 0.2, "%g", shift);
  fail_unless_equals_string (gst_structure_get_string (s, "backend"), "cpu");
  fail_unless (gst_structure_has_field (s, "settings-hash") &&
               gst_structure_has_field (s, "version"));
  gst_message_unref (message);
  g_string_free (rows, TRUE);
  g_string_free (again, TRUE);
  g_string_free (fit, TRUE);
}

/* Sinks of both pads wait for each other again. */
CHECK_TEST (test_the_fit_comes_again_after_a_seek)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      SOURCES ("") "grid=step step-x=49 step-y=60 ! fakesink x.fit ! queue ! "
                   "appsink name=fit sync=false");
  g_autoptr (GString) fit = g_string_new (NULL), again = g_string_new (NULL);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "fit", fit);
  fail_unless (fit->len > 0);
  fail_unless (gst_element_seek_simple (
      pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  check_collect (pipeline, "fit", again);
  insar_check_no_error (pipeline);
  fail_unless_equals_string (again->str, fit->str);
}

/* The patches of GMTSAR's grid end far from the corners of a small image; those
 * of steps do not. If nobody reads the fit, there is no warning. */
CHECK_TEST (test_a_fit_of_a_part_of_the_image_is_told)
{
  static const gchar *const pipelines[] = {
      SOURCES ("") "! fakesink x.fit ! queue ! fakesink",
      SOURCES ("") "grid=step step-x=49 step-y=60 ! fakesink x.fit ! queue ! "
                   "fakesink",
      SOURCES ("") "! fakesink",
  };

  for (guint i = 0; i < G_N_ELEMENTS (pipelines); i++) {
    check_launch_warns (pipelines[i], CHECK_CODE (STREAM, FAILED),
        i == 0 ? "span less than half of the image: columns 102 to 140 of 211"
               : NULL);
  }
}

/* Its sink would wait for them, and the others for it. */
CHECK_TEST (test_what_nobody_takes_is_said)
{
  check_launch_fails (SOURCES ("") "! fakesink x.rasters ! queue ! "
                                   "other/tensors,dimensions=3:3:3 ! fakesink",
      CHECK_CODE (STREAM, FAILED), "stream error");
}

CHECK_TEST (test_too_few_offsets_give_no_fit)
{
  GstElement *pipeline = check_launch (SOURCES (
      "") "fit-snr=100 ! appsink name=out sync=false x.fit ! queue ! appsink "
          "name=fit sync=false");
  GstBus *bus = gst_element_get_bus (pipeline);
  GString *rows = g_string_new (NULL), *fit = g_string_new (NULL);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", rows);
  check_collect (pipeline, "fit", fit);
  fail_unless (rows->len > 0);
  fail_unless_equals_int (fit->len, 0);
  check_warning (
      bus, STREAM, FAILED, "not enough points to estimate parameters: 0");
  g_string_free (rows, TRUE);
  g_string_free (fit, TRUE);
  gst_object_unref (bus);
  check_stop (pipeline);

  check_write_file ("few.dat", " 1 2.0 3 4.0 50.0 \n\n 1 2 3 4 50\n", -1);
  check_launch_fails ("filesrc location=$/few.dat ! insarfit ! fakesink",
      CHECK_CODE (STREAM, FORMAT), "2 are good, 8 are needed");
  check_write_file ("bad.dat", " 1 2.0 3 4.0 50.0 \n 1 2 3 x 50\n", -1);
  check_launch_fails ("filesrc location=$/bad.dat ! insarfit ! fakesink",
      CHECK_CODE (STREAM, FORMAT), "Line 2 of the offsets is \" 1 2 3 x 50\"");
  check_write_file ("bad.dat", " 1 2.0 3 4.0 50.0 \n\0\0\n 1 2 3 4 50\n", 33);
  check_launch_fails ("filesrc location=$/bad.dat ! insarfit ! fakesink",
      CHECK_CODE (STREAM, FORMAT), "Line 2 of the offsets has a zero byte");
}

/* Offsets of a plane and up to @scatter from it, into a.dat. */
static void
write_offsets (gdouble scatter)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);

  for (guint i = 0; i < 60; i++) {
    gdouble x = 100 * (i % 10), y = 90 * (i / 10);
    gdouble dx = 3 + 0.001 * x + g_rand_double_range (rand, -scatter, scatter);
    gdouble dy = -5 + 0.002 * y + g_rand_double_range (rand, -scatter, scatter);

    g_string_append_printf (
        text, " %d %.3f %d %.3f 25.00 \n", (gint) x, dx, (gint) y, dy);
  }
  check_write_file ("a.dat", text->str, (gssize) text->len);
}

/* Correlations of chance are above fit-snr where templates are small. */
CHECK_TEST (test_offsets_that_do_not_agree_are_said)
{
  for (guint far = 0; far < 2; far++) {
    write_offsets (far ? 20 : 0.2);
    check_launch_warns ("filesrc location=$/a.dat ! insarfit ! fakesink",
        CHECK_CODE (STREAM, FAILED),
        far ? "The offsets do not agree: 60 of them lie 1" : NULL);
  }
}

/* Across a diagonal strip a plane is undetermined, though the strip spans all
 * columns and lines. */
CHECK_TEST (test_a_strip_of_offsets_is_told)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < 100; i++) {
    guint x = 40 * (i / 4) + 20 * (i % 4), y = 40 * (i / 4) + 60 - 20 * (i % 4);

    g_string_append_printf (text, " %u %.3f %u %.3f 25.00 \n", x,
        3 + 0.01 * (i % 7), y, -5 + 0.01 * (i % 5));
  }
  check_write_file ("a.dat", text->str, (gssize) text->len);
  g_string_free (text, TRUE);
  check_launch_warns ("filesrc location=$/a.dat ! insarfit ! fakesink",
      CHECK_CODE (STREAM, FAILED),
      "The 100 patches of the fit lie in a strip or an island: in its narrowest direction it "
      "is 11 % of the rectangle around them");
}

/* The correlation of intensities is 0 up to 1/2, with data. */
CHECK_TEST (test_low_intensity_correlation_is_no_missing_data)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (5);
  g_autofree gint16 *numbers = g_new (gint16, 2 * WIDTH * HEIGHT);

  for (guint side = 0; side < 2; side++) {
    for (guint i = 0; i < 2 * WIDTH * HEIGHT; i++)
      numbers[i] = (gint16) g_rand_int_range (random, -999, 999);
    check_write_file (side ? "b.slc" : "a.slc", numbers,
        2 * WIDTH * HEIGHT * sizeof (gint16));
  }
  check_launch_warns (
      "slcsrc location=$/a.slc width=211 format=ci16 ! x.reference slcsrc "
      "location=$/b.slc width=211 format=ci16 ! x.secondary insarxcorr name=x "
      "method=time4 " GRID " ! fakesink",
      CHECK_CODE (STREAM, FAILED),
      "The correlation of every patch is 0: method=time4 gives 0 where");
}

CHECK_TEST (test_offsets_of_whole_pixels_are_told)
{
  static const struct {
    const gchar *properties, *words;
  } cases[] = {
      {"mode=precise window-width=32 window-height=32 range-interp=1 ",
          "range-interp is 1: columns are not oversampled"},
      {"mode=precise window-width=32 window-height=32 azimuth-interp=1 ",
          "azimuth-interp is 1: lines are not oversampled"},
      {"range-interp=1 ", NULL}, /* as GMTSAR's -norange */
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *launch =
        g_strconcat (SOURCES (""), cases[i].properties, "! fakesink", NULL);

    check_launch_warns (launch, CHECK_CODE (LIBRARY, SETTINGS), cases[i].words);
  }
}

/* Their offsets are found, but GMTSAR's correlation is of whole numbers. */
CHECK_TEST (test_numbers_below_1_are_told)
{
  static const struct {
    guint n_small; /* lines */
    const gchar *words;
  } cases[] = {
      {HEIGHT, "The correlation of every patch is 0"},
      {HEIGHT / 2, "The correlation of 3 of 12 patches is 0"},
      {0, NULL},
  };
  g_autofree gfloat *numbers = g_new (gfloat, WIDTH * HEIGHT);
  g_autoptr (GRand) random = g_rand_new_with_seed (3);

  for (guint c = 0; c < G_N_ELEMENTS (cases); c++) {
    for (guint i = 0; i < WIDTH * HEIGHT; i++)
      numbers[i] = (gfloat) (g_rand_double_range (random, 0.1, 0.9) *
                             (i / WIDTH < cases[c].n_small ? 1 : 1000));
    check_write_file ("small.f32", numbers, WIDTH * HEIGHT * sizeof (gfloat));
    check_launch_warns (
        "slcsrc location=$/small.f32 width=211 format=f32 ! x.reference slcsrc "
        "location=$/small.f32 width=211 format=f32 ! x.secondary insarxcorr "
        "name=x " GRID " ! fakesink",
        CHECK_CODE (STREAM, FAILED), cases[c].words);
  }
}

CHECK_TEST (test_the_fit_pad_comes_and_goes)
{
  g_autoptr (GstElement) x = gst_element_factory_make ("insarxcorr", NULL);
  GstPadTemplate *template =
      gst_element_class_get_pad_template (GST_ELEMENT_GET_CLASS (x), "fit");
  GstPad *pad;

  gst_object_ref_sink (x);
  for (guint i = 0; i < 2; i++) {
    pad = gst_element_request_pad_simple (x, "fit");
    fail_unless (pad != NULL);
    fail_unless (gst_element_request_pad (x, template, NULL, NULL) == NULL);
    gst_element_release_request_pad (x, pad);
    gst_object_unref (pad);
  }
}

/* --- a flush of one side only --------------------------------------------- */

CHECK_TEST (test_lines_from_before_a_flush_of_the_other_side_are_dropped)
{
  g_autoptr (GstElement) element =
      gst_element_factory_make ("insarxcorr", NULL);

  g_object_set (element, "nx", 3, "ny", 4, "xsearch", 16, "ysearch", 16, NULL);
  insar_check_flush_of_one_side (element, WIDTH, HEIGHT);
}
