/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* slcresample: where its geometry and size come from, lines, restarts, errors.
 * What the samples are worth, the tests of the kernel say. */
#include "check-common.h"

#include <string.h>

#define WIDTH 97
#define HEIGHT 301

static void
write_image (void)
{
  g_autofree gint16 *data = g_new (gint16, 2 * WIDTH * HEIGHT);
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);

  for (guint i = 0; i < 2 * WIDTH * HEIGHT; i++)
    data[i] = (gint16) g_rand_int_range (rand, -999, 999);
  check_write_file ("a.slc", data, sizeof (gint16) * 2 * WIDTH * HEIGHT);
}

static void
setup (void)
{
  check_make_folder ();
  write_image ();
  check_write_file ("sec.PRM",
      "SLC_file = a.slc\nnum_rng_bins = 97\n"
      "num_valid_az = 301\nPRF = 2000\nrshift = 4\n",
      -1);
  check_write_file ("ref.PRM",
      "SLC_file = none\nnum_rng_bins = 90\n"
      "num_valid_az = 310\nPRF = 1999\n",
      -1);
  check_write_file ("fit.txt",
      "rshift =  2 \nsub_int_r =  0.25 \nstretch_r =  0.01 "
      "\na_stretch_r =  -0.002 \nashift =  -4 \nsub_int_a = "
      " 0.5 \nstretch_a =  0.02 \na_stretch_a =  0.003 \n",
      -1);
}

/* Appends what comes out until the end. Offsets must go on without gaps;
 * @caps: (nullable): what the lines must be */
static GByteArray *
collect (GstElement *pipeline, const gchar *caps)
{
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GByteArray *bytes = g_byte_array_new ();
  guint64 next = 0;
  GstSample *sample;
  GstMapInfo map;

  for (;;) {
    GstBuffer *buffer;

    g_signal_emit_by_name (
        sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
    if (!sample)
      break;
    if (caps) {
      g_autoptr (GstCaps) expected = gst_caps_from_string (caps);

      fail_unless (gst_caps_is_equal (gst_sample_get_caps (sample), expected),
          "%" GST_PTR_FORMAT, gst_sample_get_caps (sample));
    }
    buffer = gst_sample_get_buffer (sample);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), next);
    next = GST_BUFFER_OFFSET_END (buffer);
    gst_buffer_map (buffer, &map, GST_MAP_READ);
    g_byte_array_append (bytes, map.data, (guint) map.size);
    gst_buffer_unmap (buffer, &map);
    gst_sample_unref (sample);
  }
  return bytes;
}

static GByteArray *
run (const gchar *source, const gchar *resample, const gchar *caps)
{
  g_autofree gchar *text =
      g_strdup_printf ("slcsrc location=$/sec.PRM %s ! slcresample %s ! "
                       "appsink name=out sync=false",
          source, resample);
  g_autoptr (CheckPipeline) pipeline = check_launch (text);
  GByteArray *bytes;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  bytes = collect (pipeline, caps);
  return bytes;
}

static void
check_same (GByteArray *found, GByteArray *expected, const gchar *what)
{
  fail_unless_equals_int (found->len, expected->len);
  fail_unless (memcmp (found->data, expected->data, expected->len) == 0,
      "%s: other samples", what);
  g_byte_array_unref (found);
}

#define WARP \
  "shift-r=2.25 stretch-r=0.01 a-stretch-r=-0.002 shift-a=-3.5 " \
  "stretch-a=0.02 a-stretch-a=0.003"

CHECK_CASE ("general", setup, check_remove_folder)

CHECK_TEST (test_nothing_set_is_the_image_but_for_its_edges)
{
  g_autoptr (GByteArray) found = run ("", "",
      "application/x-slc, format=(string)ci16, width=(int)97, "
      "height=(int)301, prf=(double)2000, rshift=(int)0, ashift=(int)0");
  g_autofree gchar *path = check_path_of ("a.slc");
  g_autofree gchar *data = NULL;
  gsize size;

  fail_unless (g_file_get_contents (path, &data, &size, NULL));
  fail_unless_equals_int (found->len, size);
  /* 16 taps: 7 before and 8 behind */
  for (guint y = 7; y < HEIGHT - 8; y++) {
    gsize at = (y * WIDTH + 7) * 4;

    fail_unless (memcmp (found->data + at, data + at, (WIDTH - 15) * 4) == 0,
        "line %u", y);
    fail_unless_equals_int (((gint32 *) found->data)[y * WIDTH + 6], 0);
  }
}

CHECK_TEST (test_the_fit_is_the_same_as_its_numbers)
{
  static const gchar caps[] =
      "application/x-slc, format=(string)ci16, width=(int)90, "
      "height=(int)310, prf=(double)1999, rshift=(int)0, ashift=(int)0";
  g_autoptr (GByteArray) expected = run ("", "width=90 height=310 " WARP, NULL);
  guint n = 0;

  for (guint i = 0; i < expected->len; i++)
    n += expected->data[i] != 0;
  fail_unless (n > expected->len / 2, "%u bytes are not 0", n);
  check_same (
      run ("", "fit-location=$/fit.txt reference-location=$/ref.PRM", caps),
      expected, "fit and reference");
  g_byte_array_unref (expected);
  expected = run ("", "width=90 height=310 " WARP " shift-r=1.25", NULL);
  check_same (
      run ("", "fit-location=$/fit.txt shift-r=-1 width=90 height=310", NULL),
      expected, "fit and property");
}

CHECK_TEST (test_lines_do_not_depend_on_buffers_and_threads)
{
  g_autoptr (GByteArray) expected = run ("", WARP, NULL);

  check_same (run ("lines-per-buffer=1", WARP, NULL), expected, "one line");
  check_same (run ("lines-per-buffer=83", WARP " n-threads=3", NULL), expected,
      "83 lines");
}

CHECK_TEST (test_a_run_can_be_repeated)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch ("slcsrc location=$/sec.PRM name=s ! "
                    "slcresample " WARP " ! appsink name=out sync=false");
  g_autoptr (GByteArray) expected = run ("", WARP, NULL);

  for (guint i = 0; i < 3; i++) {
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT);
    check_same (collect (pipeline, NULL), expected, "again");
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
}

/* A flushing seek of the source: from the first line on again. */
CHECK_TEST (test_a_flush_begins_anew)
{
  g_autoptr (CheckPipeline) pipeline =
      check_launch ("slcsrc location=$/sec.PRM name=s "
                    "lines-per-buffer=20 ! slcresample " WARP
                    " ! appsink name=out sync=false");
  g_autoptr (GstElement) source = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  g_autoptr (GByteArray) expected = run ("", WARP, NULL);

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT);
  fail_unless (gst_element_seek_simple (
      source, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_same (collect (pipeline, NULL), expected, "after a flush");
}

/* --- one image after another ---------------------------------------------- */

static GstBuffer *
lines_of (guint n)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, n * 20 * 4, NULL);

  gst_buffer_memset (buffer, 0, 3, n * 20 * 4);
  return buffer;
}

static const gchar twelve[] =
    "application/x-slc,format=ci16,width=20,height=12";
static const gchar thirteen[] =
    "application/x-slc,format=ci16,width=20,height=13";

static guint
count_lines (GstHarness *h)
{
  guint n = 0;
  GstBuffer *buffer;

  while ((buffer = gst_harness_try_pull (h))) {
    n += (guint) (gst_buffer_get_size (buffer) / (20 * 4));
    gst_buffer_unref (buffer);
  }
  return n;
}

CHECK_TEST (test_another_image_may_follow_but_not_cut_in)
{
  g_autoptr (CheckHarness) h = gst_harness_new ("slcresample");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  GstCaps *caps = gst_caps_from_string (twelve);

  gst_harness_set_src_caps_str (h, twelve);
  gst_harness_push (h, lines_of (12));
  fail_unless_equals_int (count_lines (h), 12);
  /* the same, said twice, and another */
  gst_harness_set_src_caps_str (h, twelve);
  gst_harness_push (h, lines_of (5));
  gst_harness_push_event (h, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  gst_harness_push (h, lines_of (7));
  fail_unless_equals_int (count_lines (h), 12);
  gst_harness_set_src_caps_str (h, thirteen);
  gst_harness_push (h, lines_of (5));
  gst_harness_set_src_caps_str (h, twelve);
  check_error (bus, STREAM, FAILED, "The image ended after 5 of 13 lines");
}

/* Zeros are written then. */
CHECK_TEST (test_a_fit_of_another_pair_is_said)
{
  static const struct {
    const gchar *properties, *words; /* NULL: nothing is said */
  } cases[] = {
      {"shift-a=400", "0 % of the output, 97 x 301"},
      {"shift-r=-90 shift-a=-240",
          "97 x 301, with shifts of -90 columns and -240 lines"},
      {"width=1000 height=2000", "1 % of the output, 1000 x 2000"},
      {"shift-r=30 shift-a=-90", NULL},
      {WARP, NULL},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *text = g_strdup_printf (
        "slcsrc location=$/sec.PRM ! slcresample %s ! fakesink",
        cases[i].properties);

    check_launch_warns (text, CHECK_CODE (LIBRARY, SETTINGS), cases[i].words);
  }
}

/* An fd1 of another image; lines that are alike have their spectrum around 0.
 */
CHECK_TEST (test_a_wrong_centroid_is_told)
{
  static const struct {
    const gchar *fd1, *properties;
    gboolean is_told;
  } cases[] = {
      {"800", "", TRUE},
      {"800", "doppler=caps", TRUE},
      {"800", "doppler=data", FALSE},
      {"100", "", FALSE},
      {"2000", "", FALSE},
  };
  g_autofree gint16 *data = g_new (gint16, 2 * WIDTH * HEIGHT);
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);

  for (guint i = 0; i < 2 * WIDTH * HEIGHT; i++)
    data[i] = (gint16) (g_rand_int_range (rand, -500, 500) +
                        (i < 2 * WIDTH ? 0 : data[i - 2 * WIDTH] / 2));
  check_write_file ("a.slc", data, sizeof (gint16) * 2 * WIDTH * HEIGHT);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *prm = g_strdup_printf (
        "SLC_file = a.slc\nnum_rng_bins = 97\nnum_valid_az = 301\n"
        "PRF = 2000\nfd1 = %s\n",
        cases[i].fd1);
    g_autofree gchar *text = g_strdup_printf (
        "slcsrc location=$/fd1.PRM ! slcresample %s ! fakesink",
        cases[i].properties);

    check_write_file ("fd1.PRM", prm, -1);
    check_launch_warns (text, CHECK_CODE (LIBRARY, SETTINGS),
        cases[i].is_told ? "The Doppler centroid is 0.40 cycles a line" : NULL);
  }
}

/* Returns: bytes of the image that comes again */
static gsize
size_again (GstElement *pipeline)
{
  g_autoptr (GString) bytes = g_string_new (NULL);
  gsize size;

  fail_unless (gst_element_seek_simple (
      pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0));
  check_collect (pipeline, "out", bytes);
  size = bytes->len;
  return size;
}

/* What is set while an image streams counts for the next; what is wrong does
 * not, and stops nothing. */
CHECK_TEST (test_settings_count_for_the_next_image)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      "slcsrc location=$/sec.PRM ! slcresample name=r width=80 height=90 ! "
      "appsink name=out sync=false");
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "r");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GString *bytes = g_string_new (NULL);
  g_autofree gchar *none = check_path_of ("none.txt");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", bytes);
  fail_unless_equals_int (bytes->len, 80 * 90 * 4);
  g_string_free (bytes, TRUE);
  g_object_set (element, "width", 70, "shift-r", 1.5, NULL);
  fail_unless_equals_int (size_again (pipeline), 70 * 90 * 4);
  g_object_set (element, "width", 60, "taps", 5, NULL);
  fail_unless_equals_int (size_again (pipeline), 70 * 90 * 4);
  check_warning (bus, LIBRARY, SETTINGS, "taps is 5");
  g_object_set (element, "taps", 8, "fit-location", none, NULL);
  fail_unless_equals_int (size_again (pipeline), 70 * 90 * 4);
  check_warning (bus, LIBRARY, SETTINGS, "none.txt");
  g_object_set (element, "fit-location", NULL, NULL);
  fail_unless_equals_int (size_again (pipeline), 60 * 90 * 4);
  check_no_messages (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
}

/* Caps that are refused come again with each buffer and each negotiation. */
CHECK_TEST (test_what_is_wrong_is_said_once)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (
      "slcsrc location=$/sec.PRM ! slcresample name=r fit-location=$/no.txt ! "
      "fakesink");
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "r");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message;
  guint n = 0;

  for (guint run = 1; run <= 2; run++) {
    gboolean goes_on = TRUE;

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    while (goes_on) { /* up to what the source says at its end */
      message = check_message (bus, GST_MESSAGE_ERROR);
      goes_on = GST_MESSAGE_SRC (message) == GST_OBJECT (element);
      n += goes_on;
      gst_message_unref (message);
    }
    gst_element_set_state (pipeline, GST_STATE_NULL);
    n += check_count_messages (bus, GST_MESSAGE_ERROR);
    fail_unless_equals_int (n, run);
  }
}

/* Nothing but the stream's start and end leaves when the image was refused: a
 * segment would be sent before caps. */
CHECK_TEST (test_no_segment_follows_refused_caps)
{
  g_autoptr (GstElement) element =
      gst_element_factory_make_full ("slcresample", "taps", 5u, NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "src");
  g_autoptr (CheckBus) bus = gst_bus_new ();
  GstSegment segment;
  g_autoptr (GstCaps) caps = gst_caps_from_string (
      "application/x-slc, format=ci16, width=97, height=301");
  GstEvent *event;

  gst_element_set_bus (element, bus);
  gst_harness_play (h);
  gst_segment_init (&segment, GST_FORMAT_DEFAULT);
  gst_harness_push_event (h, gst_event_new_stream_start ("refused"));
  gst_harness_push_event (h, gst_event_new_caps (caps));
  gst_harness_push_event (h, gst_event_new_segment (&segment));
  gst_harness_push_event (h, gst_event_new_eos ());
  check_error (bus, LIBRARY, SETTINGS, "taps is 5");
  while ((event = gst_harness_try_pull_event (h))) {
    fail_if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT);
    gst_event_unref (event);
  }
  fail_unless (
      gst_pad_get_sticky_event (h->sinkpad, GST_EVENT_SEGMENT, 0) == NULL);
}

CHECK_TEST (test_what_is_wrong_is_said)
{
  const GQuark resource = GST_RESOURCE_ERROR, stream = GST_STREAM_ERROR;
  const gint read = GST_RESOURCE_ERROR_OPEN_READ;
  g_autoptr (CheckHarness) h = NULL;

  check_write_file ("half.txt", "rshift = 2\n", -1);
#define FAILS(what, code, words) \
  check_launch_fails ("slcsrc location=$/sec.PRM ! slcresample " what \
                      " ! fakesink", \
      resource, code, words)
  FAILS ("fit-location=$/no.txt", read, "There is no file");
  FAILS ("fit-location=$/half.txt", read, "has no line \"ashift = ...\"");
  FAILS ("reference-location=$/fit.txt", read, "has no line \"SLC_file");
  FAILS ("fit-location=$/a.slc", read, "is no PRM file");
  check_launch_fails (
      "slcsrc location=$/sec.PRM ! slcresample taps=5 ! fakesink",
      CHECK_CODE (LIBRARY, SETTINGS), "taps is 5");
  FAILS ("backend=cuda", GST_RESOURCE_ERROR_NOT_FOUND, "on the CPU alone");
#undef FAILS
  check_launch_fails (
      "slcsrc location=$/a.slc width=97 format=f32 ! slcresample ! "
      "fakesink",
      stream, GST_STREAM_ERROR_FAILED, "");

  /* an image that ends early, and lines that are no lines */
  h = gst_harness_new ("slcresample");
  gst_harness_set_src_caps_str (
      h, "application/x-slc, format=ci16, width=97, height=301");
  check_push (
      h, gst_buffer_new_allocate (NULL, 97 * 4 + 1, NULL), GST_FLOW_ERROR);
  check_push (
      h, gst_buffer_new_allocate (NULL, 97 * 4 * 302, NULL), GST_FLOW_ERROR);
  {
    g_autoptr (CheckBus) bus = check_watch (h->element);

    check_push (h,
        gst_buffer_new_wrapped (g_malloc0 (97 * 4 * 10), 97 * 4 * 10),
        GST_FLOW_OK);
    gst_harness_push_event (h, gst_event_new_eos ());
    check_message_says (check_message (bus, GST_MESSAGE_ERROR), stream,
        GST_STREAM_ERROR_FAILED, "ended after 10 of 301 lines");
  }
}
