/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element picturesink: what it writes of each stream, files that grow, and
 * errors. tests/python/picturesink.py has other programs read the files. */
#include <gst/base/gstbasesink.h>
#include <glib/gstdio.h>
#include <string.h>

#include "check-common.h"
#include "gstimagingnpy.h"
#include "gstimagingquantity.h"

/* --- helpers -------------------------------------------------------------- */

/* Returns: (transfer full): "picturesink location=... MORE" */
static gchar *
sink (const gchar *name, const gchar *more)
{
  g_autofree gchar *path = check_path_of (name);

  return g_strdup_printf ("picturesink location=%s %s", path, more);
}

static GstHarness *
make_harness (const gchar *name, const gchar *more, const gchar *caps)
{
  g_autofree gchar *launch = sink (name, more);
  GstHarness *h = gst_harness_new_parse (launch);

  gst_harness_set_src_caps_str (h, caps);
  return h;
}

static void
finish (GstHarness *h)
{
  fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
  gst_harness_teardown (h);
}

/* Bytes 0, 1, 2, ... from @first on */
static GstBuffer *
counting (gsize size, guint first)
{
  guint8 *bytes = g_malloc (size);

  for (gsize i = 0; i < size; i++)
    bytes[i] = (guint8) (first + i);
  return gst_buffer_new_wrapped (bytes, size);
}

static GstImagingNdArray *
load (const gchar *name)
{
  g_autofree gchar *path = check_path_of (name);
  GError *error = NULL;
  GstImagingNdArray *array = gst_imaging_nd_array_load (path, &error);

  fail_unless (array != NULL, "%s", error ? error->message : "");
  return array;
}

static void
assert_array (const gchar *name, const gchar *shape, gconstpointer values)
{
  g_autoptr (GstImagingNdArray) array = load (name);
  g_autofree gchar *found = gst_imaging_nd_array_describe (array);
  gsize size = array->n_values * gst_imaging_nd_array_type_size (array->type);

  fail_unless_equals_string (found, shape);
  fail_unless (memcmp (array->data, values, size) == 0, "%s differs", name);
}

/* --- what is written ------------------------------------------------------ */

CHECK_CASE ("general", check_make_folder, check_remove_folder)

CHECK_TEST (test_frames_are_appended_without_their_padding)
{
  static const gchar *const names[] = {"a.npy", "a.tif", "a.fits"};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GstVideoInfo info = check_info ("GRAY16_LE", 17, 3);
    GstHarness *h = make_harness (
        names[i], "", "video/x-raw,format=GRAY16_LE,width=17,height=3");
    guint16 values[2 * 17 * 3];

    for (guint seed = 0; seed < 2; seed++) {
      GstBuffer *frame = check_noise_padded (&info, seed, 6);
      GstVideoFrame video;

      fail_unless (gst_video_frame_map (&video, &info, frame, GST_MAP_READ));
      for (guint y = 0; y < 3; y++)
        memcpy (values + (seed * 3 + y) * 17,
            (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&video, 0) +
                y * (gsize) GST_VIDEO_FRAME_PLANE_STRIDE (&video, 0),
            34);
      gst_video_frame_unmap (&video);
      check_push (h, frame, GST_FLOW_OK);
    }
    finish (h);
    assert_array (names[i], "u16 [2, 3, 17]", values);
  }
}

CHECK_TEST (test_colours_are_in_the_order_of_files)
{
  static const struct {
    const gchar *format, *shape;
    guint n;
    guint8 pixel[8], expected[8];
  } cases[] = {
      {"RGB", "u8 [1, 1, 3]", 3, {1, 2, 3}, {1, 2, 3}},
      {"BGR", "u8 [1, 1, 3]", 3, {3, 2, 1}, {1, 2, 3}},
      {"xRGB", "u8 [1, 1, 3]", 4, {9, 1, 2, 3}, {1, 2, 3}},
      {"ABGR", "u8 [1, 1, 4]", 4, {4, 3, 2, 1}, {1, 2, 3, 4}},
      {"ARGB64_BE", "u16 [1, 1, 4]", 8, {0, 4, 0, 1, 0, 2, 0, 3}, {0}},
      {"RGBA64_LE", "u16 [1, 1, 4]", 8, {1, 0, 2, 0, 3, 0, 4, 0}, {0}},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *caps = check_caps_string (cases[i].format, 1, 1);
    GstHarness *h = make_harness ("a%d.npy", "", caps);
    GstVideoInfo info = check_info (cases[i].format, 1, 1);
    GstBuffer *frame = gst_buffer_new_allocate (NULL, info.size, NULL);
    guint16 words[] = {1, 2, 3, 4};

    gst_buffer_memset (frame, 0, 0, info.size);
    gst_buffer_fill (frame, 0, cases[i].pixel, cases[i].n);
    check_push (h, frame, GST_FLOW_OK);
    finish (h);
    assert_array ("a0.npy", cases[i].shape,
        cases[i].shape[1] == '8' ? (gconstpointer) cases[i].expected : words);
  }
}

#define TENSOR(type, dimensions) \
  "other/tensors,format=static,num_tensors=1,types=" type \
  ",dimensions=(string)" dimensions ",framerate=0/1"

CHECK_TEST (test_tensors_keep_type_and_shape)
{
  static const struct {
    const gchar *caps, *name, *shape;
    gsize size;
  } cases[] = {
      {TENSOR ("float32", "10:7:1:1"), "a.npy", "f32 [1, 7, 10]", 280},
      {TENSOR ("float32", "10:1:1:1"), "a.npy", "f32 [1, 1, 10]", 40},
      {TENSOR ("uint8", "1:5:3:1"), "a.npy", "u8 [1, 3, 5]", 15},
      {TENSOR ("float32", "3:5:4:1"), "a.tif", "f32 [4, 5, 3]", 240},
      {TENSOR ("float32", "2:5:4:1"), "a.npy", "complex64 [1, 4, 5]", 160},
      {TENSOR ("float32", "2:5:4:1"), "a.tif", "complex64 [4, 5]", 160},
      {TENSOR ("float32", "2:5:4:1"), "a.fits", "f32 [1, 4, 5, 2]", 160},
      {TENSOR ("float64", "2:5:4"), "a.npy", "complex128 [1, 4, 5]", 320},
      {TENSOR ("int64", "2:3:4:5"), "a.npy", "i64 [1, 5, 4, 3, 2]", 960},
      {TENSOR ("uint16", "7"), "a.npy", "u16 [1, 7]", 14},
      {TENSOR ("float32", "1:5:4:1"), "a.exr", "f32 [4, 5]", 80},
      {TENSOR ("uint16", "3:5:4:1"), "a.png", "u16 [4, 5, 3]", 120},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstHarness *h = make_harness (cases[i].name, "", cases[i].caps);
    g_autoptr (GstBuffer) buffer = counting (cases[i].size, i);
    GstMapInfo map;

    gst_buffer_ref (buffer);
    check_push (h, buffer, GST_FLOW_OK);
    finish (h);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
    assert_array (cases[i].name, cases[i].shape, map.data);
    gst_buffer_unmap (buffer, &map);
  }
}

/* Lines of a SAR image, some of them a buffer. */
CHECK_TEST (test_lines_become_an_image_of_complex_numbers)
{
  gint16 lines[3][4] = {{1, -2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, -32768}};
  gfloat expected[12];
  GstHarness *h = make_harness (
      "a.npy", "", "application/x-slc,format=ci16,width=2,height=3");

  for (guint i = 0; i < 12; i++)
    expected[i] = lines[i / 4][i % 4];
  check_push (h, gst_buffer_new_memdup (lines, 16), GST_FLOW_OK);
  check_push (h, gst_buffer_new_memdup (lines[2], 8), GST_FLOW_OK);
  finish (h);
  assert_array ("a.npy", "complex64 [3, 2]", expected);
}

CHECK_TEST (test_only_what_the_format_holds_is_offered)
{
  static const struct {
    const gchar *name, *offered, *refused;
  } cases[] = {
      {"a.png", "video/x-raw,format=RGBA64_LE", TENSOR ("float32", "1:2:2:1")},
      {"a.exr", TENSOR ("float32", "1:2:2:1"), "video/x-raw,format=GRAY8"},
      {"a.npy", "application/x-slc,format=cf32", "video/x-raw,format=I420"},
      {"a.tif", TENSOR ("float64", "2:2:2:1"), "application/x-slc,format=cf32"},
      {"a%d.npy", "video/x-bayer,format=rggb", "application/x-slc,format=cf32"},
      {"a.fits", TENSOR ("uint64", "2:2:2:1"), TENSOR ("float16", "1:2:2:1")},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *launch = sink (cases[i].name, "");
    g_autoptr (GstElement) element = gst_parse_launch (launch, NULL);
    g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "sink");
    g_autoptr (GstCaps) offered = gst_caps_from_string (cases[i].offered);
    g_autoptr (GstCaps) refused = gst_caps_from_string (cases[i].refused);
    g_autoptr (GstCaps) caps = gst_pad_query_caps (pad, NULL);

    fail_unless (gst_caps_can_intersect (caps, offered), "%s", cases[i].name);
    fail_if (gst_caps_can_intersect (caps, refused), "%s", cases[i].name);
  }
}

/* --- files that grow ------------------------------------------------------ */

#define GRAY "video/x-raw,format=GRAY8,width=8,height=2"

static void
push_frames (const gchar *name, const gchar *more, guint first, guint n)
{
  GstHarness *h = make_harness (name, more, GRAY);

  for (guint i = 0; i < n; i++)
    check_push (h, counting (16, 16 * (first + i)), GST_FLOW_OK);
  finish (h);
}

CHECK_TEST (test_append_continues_a_file)
{
  static const gchar *const names[] = {"a.npy", "a.tif", "a.fits"};
  guint8 values[16 * 5];

  for (guint i = 0; i < sizeof (values); i++)
    values[i] = (guint8) i;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    push_frames (names[i], "append=true", 0, 2);
    assert_array (names[i], "u8 [2, 2, 8]", values);
    push_frames (names[i], "append=true", 2, 3);
    assert_array (names[i], "u8 [5, 2, 8]", values);
    push_frames (names[i], "", 0, 3);
    assert_array (names[i], "u8 [3, 2, 8]", values);
  }
}

CHECK_TEST (test_the_file_is_whole_while_it_grows)
{
  static const gchar *const names[] = {"a.npy", "a.tif", "a.fits"};
  guint8 values[16 * 3];

  for (guint i = 0; i < sizeof (values); i++)
    values[i] = (guint8) i;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree gchar *path = check_path_of (names[i]);
    GstHarness *h;

    push_frames (names[i], "", 5, 1);
    h = make_harness (names[i], "", GRAY);
    {
      g_autoptr (GstImagingNdArray) old = load (names[i]);

      fail_unless_equals_int (*(const guint8 *) old->data, 80);
    }
    check_push (h, counting (16, 0), GST_FLOW_OK);
    assert_array (names[i], i == 1 ? "u8 [2, 8]" : "u8 [1, 2, 8]", values);
    check_push (h, counting (16, 16), GST_FLOW_OK);
    check_push (h, counting (16, 32), GST_FLOW_OK);
    assert_array (names[i], "u8 [3, 2, 8]", values);
    gst_harness_teardown (h); /* without EOS */
    assert_array (names[i], "u8 [3, 2, 8]", values);
    g_unlink (path);
  }
}

/* What remains of a frame after a crash is written over. */
CHECK_TEST (test_an_interrupted_recording_is_continued)
{
  static const gchar *const names[] = {"a.npy", "a.tif", "a.fits"};
  guint8 values[16 * 3];

  for (guint i = 0; i < sizeof (values); i++)
    values[i] = (guint8) i;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree gchar *path = check_path_of (names[i]);
    g_autofree gchar *bytes = NULL;
    gsize size = 0;
    GstHarness *h = make_harness (names[i], "", GRAY);
    GString *crashed;

    check_push (h, counting (16, 0), GST_FLOW_OK);
    check_push (h, counting (16, 16), GST_FLOW_OK);
    fail_unless (g_file_get_contents (path, &bytes, &size, NULL));
    gst_harness_teardown (h);
    crashed = g_string_new_len (bytes, (gssize) size);
    g_string_append (crashed, "part of a frame");
    check_write_file (names[i], crashed->str, (gssize) crashed->len);
    g_string_free (crashed, TRUE);
    assert_array (names[i], "u8 [2, 2, 8]", values);
    push_frames (names[i], "append=true", 2, 1);
    assert_array (names[i], "u8 [3, 2, 8]", values);
  }
}

CHECK_TEST (test_numbers_in_names)
{
  guint8 values[16];

  for (guint i = 0; i < sizeof (values); i++)
    values[i] = (guint8) (16 + i);
  push_frames ("a%03d.png", "", 0, 2);
  assert_array ("a001.png", "u8 [2, 8]", values);
  push_frames ("a%03d.png", "append=true", 1, 1);
  assert_array ("a002.png", "u8 [2, 8]", values);
  push_frames ("50%-%u.npy", "", 1, 1);
  assert_array ("50%-0.npy", "u8 [2, 8]", values);
}

CHECK_TEST (test_max_frames_ends_the_stream)
{
  GstHarness *h = make_harness ("a.tif", "max-frames=2", GRAY);
  g_autofree gchar *path = check_path_of ("a.tif");
  g_autofree gchar *bytes = NULL;

  check_push (h, counting (16, 0), GST_FLOW_OK);
  check_push (h, counting (16, 0), GST_FLOW_EOS);
  check_push (h, counting (16, 0), GST_FLOW_EOS);
  finish (h);
  {
    g_autoptr (GstImagingNdArray) array = load ("a.tif");

    fail_unless_equals_int (array->dims[0], 2);
  }
  fail_unless (g_file_get_contents (path, &bytes, NULL, NULL));
  fail_unless_equals_int (bytes[2], 42); /* not BigTIFF */
}

/* --- the sidecar ---------------------------------------------------------- */

/* Returns: (transfer full): a text file */
static gchar *
read_text (const gchar *name)
{
  g_autofree gchar *path = check_path_of (name);
  gchar *text = NULL;

  fail_unless (g_file_get_contents (path, &text, NULL, NULL), "%s", name);
  return text;
}

static void
assert_has (const gchar *text, const gchar *words)
{
  fail_unless (strstr (text, words), "\"%s\" is not in %s", words, text);
}

CHECK_TEST (test_a_sidecar_tells_quantity_times_and_settings)
{
  static const GstImagingAxis axes[] = {
      {"lateral", "um", 7.5, 0}, {"depth", "um", 3.25, 100}};
  g_autofree gchar *path = check_path_of ("a.npy");
  g_autofree gchar *launch = g_strdup_printf (
      "lapsharpen name=sharp amount=2 ! picturesink location=%s", path);
  GstHarness *h = gst_harness_new_parse (launch);
  GstElement *sharp = gst_bin_get_by_name (GST_BIN (h->element), "sharp");
  g_autofree gchar *before = NULL, *after = NULL;

  gst_harness_set_src_caps_str (h, GRAY ",framerate=30/1");
  for (guint i = 0; i < 4; i++) {
    GstBuffer *frame = counting (16, i);

    GST_BUFFER_PTS (frame) = gst_util_uint64_scale (i, GST_SECOND, 30);
    GST_BUFFER_OFFSET (frame) = 7 + i;
    if (i == 2)
      g_object_set (sharp, "amount", 3.0, NULL);
    check_push (h, frame, GST_FLOW_OK);
    if (i == 0)
      before = read_text ("a.npy.json");
  }
  gst_object_unref (sharp);
  finish (h);
  after = read_text ("a.npy.json");
  assert_has (before, "\"complete\": false");
  assert_has (before, "\"shape\": [1, 2, 8]");
  assert_has (before, "lapsharpen name=sharp amount=2 ! picturesink");
  assert_has (after, "\"complete\": true");
  assert_has (after, "\"shape\": [4, 2, 8]");
  assert_has (after, "\"frame-numbers\": [[7, 1, 4]]");
  assert_has (after,
      "\"pts\": [{\"framerate\": \"30/1\", \"first\": 0, \"count\": 4}]");
  assert_has (after, "\"frame\": 2,");
  assert_has (after, "\"property\": \"amount\"");

  /* a quantity whose scale changes, and a clock of the camera */
  h = make_harness ("a.npy", "", GRAY);
  for (guint i = 0; i < 3; i++) {
    GstBuffer *frame = counting (16, i);
    GstCaps *clock = gst_caps_new_empty_simple ("timestamp/x-unix");

    gst_imaging_quantity_attach (
        frame, "level", "dB", i < 2 ? 0.5 : 0.25, -20, axes, 2);
    gst_buffer_add_reference_timestamp_meta (
        frame, clock, 1000 * i * i, GST_CLOCK_TIME_NONE);
    gst_caps_unref (clock);
    check_push (h, frame, GST_FLOW_OK);
  }
  finish (h);
  g_free (after);
  after = read_text ("a.npy.json");
  assert_has (after, "\"unit\": \"dB\"");
  assert_has (after, "\"scale\": [[0.5, 0, 2], 0.25]");
  assert_has (after, "\"offset\": -20,");
  assert_has (after, "\"step\": 3.25");
  assert_has (after, "\"capture-clock\": \"timestamp/x-unix\"");
  assert_has (after, "\"capture-times\": [0, 1000, 4000]");
  assert_has (after, "\"frames-missing\": 0");
}

/* One picture has all of it in the file, too. */
CHECK_TEST (test_files_have_cards)
{
  static const struct {
    const gchar *name, *card;
  } cases[] = {{"a%d.fits", "QSCALE=0.5"}, {"a%d.fits", "CUNIT2=mm"},
      {"a%d.tif", "<Pixels ID="}, {"a%d.tif", "PhysicalSizeX=\"0.25\""},
      {"a%d.png", "unit=mm"}, {"a.fits", "QUNIT=mm"}, {"a.tif", "quantity=h"}};
  static const GstImagingAxis axes[] = {
      {"x", "mm", 0.25, 0}, {"y", "mm", 0.5, -1}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *name = NULL;
    g_autofree gchar *all = NULL;
    g_autoptr (GstImagingNdArray) array = NULL;
    GstHarness *h = make_harness (cases[i].name, "", GRAY);
    GstBuffer *frame = counting (16, 0);
    gchar **parts = g_strsplit (cases[i].name, "%d", 2);

    gst_imaging_quantity_attach (frame, "h", "mm", 0.5, 0, axes, 2);
    check_push (h, frame, GST_FLOW_OK);
    finish (h);
    name = g_strjoinv ("0", parts);
    g_strfreev (parts);
    array = load (name);
    all = array->cards ? g_strjoinv ("\n", array->cards) : g_strdup ("");
    assert_has (all, cases[i].card);
  }
}

/* --- errors --------------------------------------------------------------- */

CHECK_TEST (test_errors)
{
  static const struct {
    const gchar *sink;
    gboolean is_stream; /* else of a resource */
    gint code;
    const gchar *words;
  } cases[] = {
      {"picturesink", FALSE, GST_RESOURCE_ERROR_NOT_FOUND,
          "set the property location"},
      {"picturesink location=$/a%d-%d.png", FALSE, GST_RESOURCE_ERROR_SETTINGS,
          "two places for a number"},
      {"picturesink location=$/a.png append=true", FALSE,
          GST_RESOURCE_ERROR_SETTINGS, "holds one picture, and append=true"},
      {"picturesink location=$/a.doc", TRUE, GST_STREAM_ERROR_FORMAT,
          "extension .doc"},
      {"picturesink location=$/a.png", FALSE, GST_RESOURCE_ERROR_SETTINGS,
          "Take a name with a number, such as frame%05d.png"},
      {"picturesink location=$/none/a.npy", FALSE, GST_RESOURCE_ERROR_WRITE,
          "No such file"},
      {"picturesink location=$/old.npy append=true", TRUE,
          GST_STREAM_ERROR_FORMAT,
          "holds u8 [1, 3, 5], to which frames of u8 [2, 8] cannot"},
      {"picturesink location=$/text.npy append=true", TRUE,
          GST_STREAM_ERROR_FORMAT, "expected"},
      {"picturesink location=$ append=true", FALSE, GST_RESOURCE_ERROR_WRITE,
          "cannot be written"},
  };
  g_autofree gchar *old = check_path_of ("old.npy");
  guint64 dims[] = {1, 3, 5};
  guint8 values[15] = {0};

  fail_unless (gst_imaging_npy_save (
      old, GST_IMAGING_ND_ARRAY_TYPE_U8, 3, dims, values, NULL));
  check_write_file ("text.npy", "no array", -1);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *launch = g_strdup_printf (
        "videotestsrc num-buffers=2 ! " GRAY " ! %s", cases[i].sink);

    check_launch_fails (launch,
        cases[i].is_stream ? GST_STREAM_ERROR : GST_RESOURCE_ERROR,
        cases[i].code, cases[i].words);
  }
  assert_array ("old.npy", "u8 [1, 3, 5]", values);
}

CHECK_TEST (test_other_frames_do_not_fit_a_file)
{
  GstHarness *h = make_harness ("a.npy", "", GRAY);
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  check_push (h, counting (16, 0), GST_FLOW_OK);
  gst_harness_set_src_caps_str (h, "video/x-raw,format=GRAY8,width=4,height=4");
  check_push (h, counting (16, 0), GST_FLOW_ERROR);
  check_error (bus, RESOURCE, FAILED,
      "has frames of u8 [2, 8], and the stream has changed to u8 [4, 4]");
  gst_harness_teardown (h);
  gst_object_unref (bus);
  {
    g_autoptr (GstImagingNdArray) array = load ("a.npy");

    fail_unless_equals_int (array->dims[0], 1);
  }
}

/* Caps that say no array end the stream with a sentence, and not the process.
 */
CHECK_TEST (test_strange_caps_are_refused)
{
  static const gchar *const caps[] = {
      TENSOR ("float32", "0:0:0:0"),
      TENSOR ("float32", "4:0:4:1"),
      TENSOR ("float32", "4:-1:4:1"),
      TENSOR ("float32", "4294967295:4294967295:4294967295:4294967295"),
      TENSOR ("float32", "99999999999999999999"),
      TENSOR ("float32", "2:2:2:2:2:2:2:2:2"),
      TENSOR ("float32", "1:2:3:4:5:6:7:8:9:1:2:3:4:5:6:7:8:9"),
      TENSOR ("float32", "a:b"),
      TENSOR ("float32", "::::"),
      "other/tensors,format=static,num_tensors=1,types=float32",
      "other/tensors,format=static,num_tensors=1,types=float32,dimensions=4",
      "video/x-raw,format=GRAY8,width=2147483647,height=2147483647",
      "video/x-raw,format=RGBA64_LE,width=300000000,height=1",
      "video/x-bayer,format=rggb,width=2147483647,height=2147483647",
      "application/x-slc,format=cf32,width=2147483647,height=2147483647",
  };

  for (guint i = 0; i < G_N_ELEMENTS (caps); i++) {
    g_autoptr (CheckHarness) h = make_harness ("a.npy", "", caps[i]);
    GstBuffer *frame = counting (16, 0);

    fail_if (gst_harness_push (h, frame) == GST_FLOW_OK, "%s", caps[i]);
  }
}

/* Two tensors are numbers and their flags: a list of single types is none. */
CHECK_TEST (test_two_tensors_have_two_types)
{
  GstElement *sink = gst_element_factory_make ("picturesink", NULL);
  GstPad *pad = gst_element_get_static_pad (sink, "sink");
  GstCaps *caps = gst_pad_get_pad_template_caps (pad);
  guint n_seen = 0;

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GstStructure *s = gst_caps_get_structure (caps, i);
    const GValue *types = gst_structure_get_value (s, "types");
    gint n = 0;

    if (!gst_structure_get_int (s, "num_tensors", &n))
      continue;
    n_seen++;
    fail_unless_equals_int (gst_value_list_get_size (types), 11);
    for (guint k = 0; k < gst_value_list_get_size (types); k++) {
      const gchar *text =
          g_value_get_string (gst_value_list_get_value (types, k));

      fail_unless_equals_int (g_str_has_suffix (text, ",uint8"), n == 2);
    }
  }
  fail_unless_equals_int (n_seen, 2);
  gst_caps_unref (caps);
  gst_object_unref (pad);
  gst_object_unref (sink);
}

CHECK_TEST (test_a_short_buffer_is_refused)
{
  g_autoptr (CheckHarness) h =
      make_harness ("a.npy", "", TENSOR ("uint8", "1:4:4:1"));

  check_push (h, counting (15, 0), GST_FLOW_ERROR);
}
