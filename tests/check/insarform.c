/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* insarform: pads, formats, pieces, restarts and errors. What the numbers are,
 * the tests of the kernel say. */
#include "insar-sides.h"

#include <math.h>
#include <string.h>

#define WIDTH 57 /* rows of 2 x 3 looks are padded in pictures */
#define HEIGHT 61

/* The secondary is the reference, its phase falling by a turn in WIDTH columns:
 * the phase of the interferogram rises. */
static void
setup (void)
{
  g_autofree gint16 *a = g_new (gint16, 2 * WIDTH * HEIGHT);
  g_autofree gint16 *b = g_new (gint16, 2 * WIDTH * HEIGHT);
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);

  check_make_folder ();
  for (guint i = 0; i < 2 * WIDTH * HEIGHT; i += 2) {
    gdouble angle = -2 * G_PI * (i / 2 % WIDTH) / WIDTH;

    a[i] = (gint16) g_rand_int_range (rand, -9999, 9999);
    a[i + 1] = (gint16) g_rand_int_range (rand, -9999, 9999);
    b[i] = (gint16) lrint (a[i] * cos (angle) - a[i + 1] * sin (angle));
    b[i + 1] = (gint16) lrint (a[i] * sin (angle) + a[i + 1] * cos (angle));
  }
  check_write_file ("a.slc", a, sizeof (gint16) * 2 * WIDTH * HEIGHT);
  check_write_file ("b.slc", b, sizeof (gint16) * 2 * WIDTH * HEIGHT);
}

#define RAW "width=57 format=ci16 "
#define SOURCES(more_a, more_b) \
  "slcsrc location=$/a.slc " RAW more_a " ! i.reference slcsrc " \
  "location=$/b.slc " RAW more_b " ! i.secondary insarform name=i looks-x=2 " \
  "looks-y=3 window-x=3 window-y=3 "
#define OUT(pad) "i." pad " ! queue ! appsink name=" pad " sync=false "

/* Returns: (transfer full): the only buffer that comes out of the appsink
 * @name, of caps that are @caps and more */
static GstBuffer *
pull_one (GstElement *pipeline, const gchar *name, const gchar *caps)
{
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), name);
  g_autoptr (GstCaps) expected = gst_caps_from_string (caps);
  GstSample *sample, *second;
  GstBuffer *buffer;

  g_signal_emit_by_name (
      sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
  fail_unless (sample != NULL, "nothing came out of %s", name);
  fail_unless (gst_caps_is_subset (gst_sample_get_caps (sample), expected),
      "%s: %" GST_PTR_FORMAT, name, gst_sample_get_caps (sample));
  g_signal_emit_by_name (
      sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &second);
  fail_unless (second == NULL, "a second buffer came out of %s", name);
  buffer = gst_buffer_ref (gst_sample_get_buffer (sample));
  gst_sample_unref (sample);
  return buffer;
}

static void
check_size (GstBuffer *buffer, gsize size)
{
  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), size);
}

CHECK_CASE ("general", setup, check_remove_folder)

CHECK_TEST (test_each_pad_gives_its_picture)
{
  GstElement *pipeline = check_launch (SOURCES ("", "") OUT ("phase")
          OUT ("coherence") OUT ("amplitude") OUT ("interferogram"));
  g_autoptr (GstBuffer) phase = NULL, coherence = NULL, amplitude = NULL,
                        interferogram = NULL;
  GstMapInfo map;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  phase =
      pull_one (pipeline, "phase", "video/x-raw,format=RGB,width=28,height=20");
  coherence = pull_one (
      pipeline, "coherence", "video/x-raw,format=GRAY8,width=28,height=20");
  amplitude = pull_one (
      pipeline, "amplitude", "video/x-raw,format=GRAY8,width=28,height=20");
  interferogram = pull_one (pipeline, "interferogram",
      "application/x-slc,format=cf32,width=28,height=20");
  check_stop (pipeline);

  check_size (phase, 84 * 20);
  check_size (coherence, 28 * 20);
  check_size (amplitude, 28 * 20);
  check_size (interferogram, 28 * 20 * 8);

  gst_buffer_map (interferogram, &map, GST_MAP_READ);
  for (guint i = 0; i < 28 * 20; i++) {
    const gfloat *z = (const gfloat *) map.data + 2 * i;
    gdouble expected = 2 * G_PI * (2 * (i % 28) + 0.5) / WIDTH;
    gdouble away = atan2 (z[1], z[0]) - expected;

    fail_unless (fabs (away - 2 * G_PI * rint (away / (2 * G_PI))) < 0.06,
        "phase of cell %u is %g, expected %g", i, atan2 (z[1], z[0]), expected);
  }
  gst_buffer_unmap (interferogram, &map);
  /* a third of a turn is green, whole columns are alike */
  gst_buffer_map (phase, &map, GST_MAP_READ);
  for (guint y = 0; y < 20; y++) {
    const guint8 *p = map.data + 84 * y + 3 * 9;

    fail_unless (p[1] == 255 && p[0] < 40 && p[2] < 40, "line %u: %u %u %u", y,
        p[0], p[1], p[2]);
  }
  gst_buffer_unmap (phase, &map);
  gst_buffer_map (coherence, &map, GST_MAP_READ);
  for (guint i = 0; i < 28 * 20; i++)
    fail_unless (map.data[i] > 240, "coherence %u of cell %u", map.data[i], i);
  gst_buffer_unmap (coherence, &map);
}

CHECK_TEST (test_numbers_are_those_of_the_pictures)
{
  GstElement *pipeline = check_launch (
      SOURCES ("", "") "amplitude-max=20000 "
                       "i.coherence ! queue ! tee name=t "
                       "i.amplitude ! queue ! video/x-raw,"
                       "format=GRAY16_LE ! appsink name=grey "
                       "t. ! queue ! other/tensors ! appsink name=f32");
  g_autoptr (GstBuffer) grey = NULL, f32 = NULL;
  GstMapInfo map;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  grey = pull_one (
      pipeline, "grey", "video/x-raw,format=GRAY16_LE,width=28,height=20");
  f32 = pull_one (pipeline, "f32",
      "other/tensors,format=static,types=float32,dimensions=(string)1:28:20:1");
  check_stop (pipeline);
  check_size (f32, 28 * 20 * 4);
  gst_buffer_map (f32, &map, GST_MAP_READ);
  for (guint i = 0; i < 28 * 20; i++) {
    gfloat value = ((const gfloat *) map.data)[i];

    fail_unless (value > 0.94 && value <= 1, "cell %u: %g", i, value);
  }
  gst_buffer_unmap (f32, &map);
  /* the amplitude of noise in +-9999 is near 8164 */
  gst_buffer_map (grey, &map, GST_MAP_READ);
  for (guint i = 0; i < 28 * 20; i++) {
    gdouble value = ((const guint16 *) map.data)[i] / 65535.0 * 20000;

    fail_unless (value > 3000 && value < 13000, "cell %u: %g", i, value);
  }
  gst_buffer_unmap (grey, &map);
}

static gdouble
quantity_of (GstBuffer *buffer, const gchar *field)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, "GstImagingQuantity");
  gdouble value = NAN;

  fail_unless (meta != NULL);
  gst_structure_get_double (
      gst_custom_meta_get_structure (meta), field, &value);
  return value;
}

static void
check_near (gdouble found, gdouble expected, const gchar *what)
{
  fail_unless (ABS (found - expected) <= 1e-12 * ABS (expected),
      "%s: %.15g, not %.15g", what, found, expected);
}

/* Of a PRM file: c / (2 rng_samp_rate), and the way of the satellite between
 * two lines, on the ground; a cell is in the middle of its looks. */
CHECK_TEST (test_pictures_say_where_their_cells_are)
{
  const gdouble range = 299792458.0 / (2 * 64e6);
  const gdouble azimuth = 7500.0 / 2000 * 6.37e6 / 7e6;
  GstElement *pipeline;
  GstBuffer *coherence, *amplitude;

  for (gchar c = 'a'; c <= 'b'; c++) {
    g_autofree gchar *name = g_strdup_printf ("%c.PRM", c);
    g_autofree gchar *text = g_strdup_printf (
        "SLC_file = %c.slc\nnum_rng_bins = 57\nnum_valid_az = 61\n"
        "PRF = 2000\nrng_samp_rate = 64e6\nnear_range = 830000\n"
        "SC_vel = 7500\nearth_radius = 6370000\nSC_height = 630000\n",
        c);

    check_write_file (name, text, strlen (text));
  }
  pipeline = check_launch ("slcsrc location=$/a.PRM ! i.reference "
                           "slcsrc location=$/b.PRM ! i.secondary "
                           "insarform name=i looks-x=2 looks-y=3 "
                           "amplitude-max=20000 i.coherence ! queue ! "
                           "video/x-raw,format=GRAY8 ! appsink name=c "
                           "i.amplitude ! queue ! video/x-raw,"
                           "format=GRAY16_LE ! appsink name=a");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  coherence = pull_one (pipeline, "c", "video/x-raw");
  amplitude = pull_one (pipeline, "a", "video/x-raw");
  check_stop (pipeline);
  check_near (quantity_of (coherence, "scale"), 1 / 255.0, "white");
  check_near (quantity_of (amplitude, "scale"), 20000 / 65535.0, "white");
  check_near (quantity_of (coherence, "axis-0-step"), 2 * range, "range");
  check_near (quantity_of (coherence, "axis-0-origin"), 830000 + range / 2,
      "first range");
  check_near (quantity_of (amplitude, "axis-1-step"), 3 * azimuth, "azimuth");
  check_near (quantity_of (amplitude, "axis-1-origin"), azimuth, "first line");
  gst_buffer_unref (coherence);
  gst_buffer_unref (amplitude);

  /* without a PRM file */
  pipeline = check_launch (SOURCES ("", "") "i.coherence ! queue ! "
                                            "other/tensors ! appsink name=c");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  coherence = pull_one (pipeline, "c", "other/tensors");
  check_stop (pipeline);
  check_near (quantity_of (coherence, "scale"), 1, "scale of numbers");
  check_near (quantity_of (coherence, "axis-0-step"), 2, "columns");
  check_near (quantity_of (coherence, "axis-1-origin"), 1, "middle of a cell");
  gst_buffer_unref (coherence);
}

static GstBuffer *
run (const gchar *description)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (description);
  GstBuffer *buffer;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  buffer = pull_one (pipeline, "interferogram", "application/x-slc");
  return buffer;
}

static void
check_same (GstBuffer *found, GstBuffer *expected, const gchar *what)
{
  GstMapInfo map;

  check_size (found, gst_buffer_get_size (expected));
  gst_buffer_map (expected, &map, GST_MAP_READ);
  fail_unless (
      gst_buffer_memcmp (found, 0, map.data, map.size) == 0, "%s", what);
  gst_buffer_unmap (expected, &map);
  gst_buffer_unref (found);
}

CHECK_TEST (test_buffers_of_any_size_meet)
{
  g_autoptr (GstBuffer) expected = run (SOURCES ("", "") OUT ("interferogram"));

  check_same (run (SOURCES ("lines-per-buffer=1", "lines-per-buffer=17")
                      OUT ("interferogram")),
      expected, "1 and 17 lines");
  check_same (run (SOURCES ("lines-per-buffer=10", "lines-per-buffer=7")
                      OUT ("interferogram")),
      expected, "10 and 7 lines");
}

CHECK_TEST (test_a_run_can_be_repeated)
{
  g_autoptr (GstBuffer) expected = run (SOURCES ("", "") OUT ("interferogram"));
  g_autoptr (CheckPipeline) pipeline = check_launch (SOURCES (
      "lines-per-buffer=3", "lines-per-buffer=5") OUT ("interferogram"));

  for (guint i = 0; i < 3; i++) {
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    check_same (pull_one (pipeline, "interferogram", "application/x-slc"),
        expected, "again");
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  /* and by a seek of both sources */
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT);
  fail_unless (gst_element_seek_simple (
      pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_same (pull_one (pipeline, "interferogram", "application/x-slc"),
      expected, "after a seek");
}

/* --- files ---------------------------------------------------------------- */

/* Returns: files in the folder whose names begin with @prefix */
static guint
count_files (const gchar *prefix)
{
  g_autoptr (GDir) dir = g_dir_open (check_folder (), 0, NULL);
  const gchar *name;
  guint n = 0;

  while ((name = g_dir_read_name (dir)))
    n += g_str_has_prefix (name, prefix);
  return n;
}

static void
check_content (const gchar *name, GstBuffer *expected)
{
  g_autofree gchar *path = check_path_of (name), *content = NULL;
  gsize size;

  fail_unless (g_file_get_contents (path, &content, &size, NULL), "%s", path);
  check_size (expected, size);
  fail_unless (gst_buffer_memcmp (expected, 0, content, size) == 0, "%s", name);
}

#define NUMBERS(pad) \
  "i." pad " ! queue ! other/tensors ! appsink name=" pad " sync=false "
#define FILES \
  "phase-location=$/phase.img coherence-location=$/coherence.img " \
  "amplitude-location=$/amplitude interferogram-location=$/i.cf32 " \
  "removed-location=$/removed "

CHECK_TEST (test_files_hold_the_numbers_of_the_pads)
{
  static const gchar *const names[][2] = {{"phase", "phase.img"},
      {"coherence", "coherence.img"}, {"amplitude", "amplitude"},
      {"interferogram", "i.cf32"}, {"removed", "removed"}};
  GstElement *pipeline = check_launch (SOURCES ("lines-per-buffer=4",
      "lines-per-buffer=7") FILES NUMBERS ("phase") NUMBERS ("coherence")
          NUMBERS ("amplitude") NUMBERS ("interferogram") NUMBERS ("removed"));

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GstBuffer) buffer =
        pull_one (pipeline, names[i][0], "other/tensors");

    check_content (names[i][1], buffer);
  }
  check_stop (pipeline);
  fail_unless_equals_int (count_files ("coherence.img"), 3); /* .hdr, .vrt */
  fail_unless_equals_int (count_files (".gst-imaging"), 0);
}

/* The element is a sink then, whose EOS ends the pipeline. */
CHECK_TEST (test_files_need_no_pads)
{
  GstElement *pipeline = check_launch (SOURCES ("", "") FILES);
  g_autofree gchar *first = NULL, *again = NULL;
  g_autofree gchar *path = check_path_of ("coherence.img");
  gsize size, size_again;

  check_play (pipeline);
  fail_unless (g_file_get_contents (path, &first, &size, NULL));
  fail_unless_equals_uint64 (size, 28 * 20 * 4);
  gst_element_set_state (pipeline, GST_STATE_READY);
  check_play (pipeline);
  fail_unless (g_file_get_contents (path, &again, &size_again, NULL));
  fail_unless (size == size_again && memcmp (first, again, size) == 0);
  check_stop (pipeline);
#if defined HAVE_GDAL
  check_play (
      pipeline = check_launch (SOURCES ("",
          "") "coherence-location=$/c.tif interferogram-location=$/i.TIFF "));
  check_stop (pipeline);
  fail_unless_equals_int (count_files ("c.tif"), 1);
  fail_unless_equals_int (count_files ("i.TIFF"), 1);
#endif
}

/* An image that ends early is an error, and leaves what was there. */
CHECK_TEST (test_a_part_leaves_no_file)
{
  check_write_file ("cut.img", "old", 3);
  check_launch_fails (SOURCES ("lines-per-buffer=20 num-buffers=2",
                          "") "coherence-location=$/cut.img",
      CHECK_CODE (STREAM, FAILED), "ended after 40 of 61 lines");
  fail_unless_equals_int (count_files ("cut.img"), 1);
  fail_unless_equals_int (count_files (".gst-imaging"), 0);
}

CHECK_TEST (test_wrong_names_of_files)
{
  check_launch_fails (SOURCES ("", "") "coherence-location=$/no/c.img",
      CHECK_CODE (LIBRARY, SETTINGS), "coherence-location");
  check_launch_fails (SOURCES ("", "") "amplitude-location=$/a.png",
      CHECK_CODE (LIBRARY, SETTINGS), "no name of a raster");
}

static gboolean
seek (GstElement *pipeline, GstSeekFlags flags, gint64 first, gint64 end)
{
  return gst_element_seek (pipeline, 1, GST_FORMAT_DEFAULT, flags,
      GST_SEEK_TYPE_SET, first, GST_SEEK_TYPE_SET, end);
}

/* Or of one that is resampled. What both cannot do, neither begins. */
CHECK_TEST (test_a_seek_is_for_both_images)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      "slcsrc location=$/a.slc " RAW "! i.reference slcsrc "
      "location=$/b.slc " RAW
      "! slcresample ! i.secondary insarform name=i " OUT ("phase")
          OUT ("coherence"));
  g_autoptr (GstBuffer) first = NULL, second = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  first = pull_one (pipeline, "phase", "video/x-raw");
  second = pull_one (pipeline, "coherence", "video/x-raw");
  fail_unless (seek (pipeline, GST_SEEK_FLAG_FLUSH, 0, -1));
  check_same (pull_one (pipeline, "phase", "video/x-raw"), first, "phase");
  check_same (
      pull_one (pipeline, "coherence", "video/x-raw"), second, "coherence");
  fail_if (seek (pipeline, GST_SEEK_FLAG_FLUSH, 5, -1));
  fail_if (seek (pipeline, GST_SEEK_FLAG_FLUSH, 0, 30));
  fail_if (seek (pipeline, GST_SEEK_FLAG_NONE, 0, -1));
}

/* Who waits for the end must not take it for that of a whole run. */
CHECK_TEST (test_a_picture_that_nobody_takes_is_said_before_the_end)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      SOURCES ("", "") OUT ("coherence") "i.phase ! queue ! "
                                         "video/x-raw,width=3 ! fakesink");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (
      bus, CHECK_TIMEOUT, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  check_message_says (message, CHECK_CODE (STREAM, FAILED), "");
}

/* The reference has no partner, and must not keep its thread. */
CHECK_TEST (test_it_can_be_stopped_while_it_waits)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      "slcsrc location=$/a.slc " RAW " ! i.reference "
      "appsrc ! application/x-slc,format=ci16,width=57,height=61 ! "
      "i.secondary insarform name=i " OUT ("phase"));

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_usleep (50000);
}

CHECK_TEST (test_the_summary_says_how_coherent_it_is)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (SOURCES ("", ""));
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  gdouble coherence = 0;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (coherence == 0) {
    g_autoptr (GstMessage) message = check_message (bus, GST_MESSAGE_ELEMENT);
    const GstStructure *s = gst_message_get_structure (message);
    guint64 n;

    if (gst_structure_has_name (s, "insarform-summary")) {
      fail_unless (gst_structure_get (s, "mean-coherence", G_TYPE_DOUBLE,
          &coherence, "with-data", G_TYPE_UINT64, &n, NULL));
      fail_unless_equals_uint64 (n, 28 * 20);
    }
  }
  fail_unless (coherence > 0.94 && coherence < 1, "%g", coherence);
}

CHECK_TEST (test_a_pad_that_is_forgotten_is_said)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      "slcsrc location=$/b.slc " RAW " ! i.secondary insarform name=i "
      "i.phase ! queue ! fakesink");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_warning (bus, CORE, PAD, "Nothing is linked to the pad reference");
}

CHECK_TEST (test_what_is_wrong_is_said)
{

#define FAILS(a, b, more, domain, code, words) \
  check_launch_fails ("slcsrc location=$/a.slc " a " ! i.reference slcsrc " \
                      "location=$/b.slc " b \
                      " ! i.secondary insarform name=i " more \
                      " i.phase ! queue ! fakesink", \
      CHECK_CODE (domain, code), words)
  FAILS (RAW, "width=61 format=ci16", "", STREAM, FORMAT,
      "61 lines of 57 columns and the secondary 57 of 61");
  FAILS (RAW, "num-buffers=0 width=57 format=cf32", "", STREAM, FORMAT, "");
  FAILS (RAW, RAW, "window-x=4", LIBRARY, SETTINGS,
      "window-x is 4; it must be an odd number");
  FAILS (RAW, RAW, "looks-y=62", LIBRARY, SETTINGS,
      "looks-y is 62; it can be 1 to 61");
  FAILS (RAW, RAW, "backend=cuda", RESOURCE, NOT_FOUND, "on the CPU alone");
  FAILS (RAW, RAW "lines-per-buffer=9 num-buffers=3", "", STREAM, FAILED,
      "secondary ended after 27 of 61 lines");
  FAILS (RAW "lines-per-buffer=1 num-buffers=2", RAW, "", STREAM, FAILED,
      "reference ended after 2 of 61 lines");
#undef FAILS
  /* an empty file ends before its caps */
  check_launch_fails (
      "slcsrc location=$/a.slc " RAW " ! i.reference fakesrc "
      "num-buffers=0 ! i.secondary insarform name=i i.phase ! queue ! "
      "fakesink",
      CHECK_CODE (STREAM, FAILED), "The secondary ended before its caps.");
}

/* --- a flush of one side only --------------------------------------------- */

CHECK_TEST (test_lines_from_before_a_flush_of_the_other_side_are_dropped)
{
  g_autoptr (GstElement) element = gst_element_factory_make ("insarform", NULL);

  insar_check_flush_of_one_side (element, WIDTH, HEIGHT);
}
