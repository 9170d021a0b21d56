/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results on frames and as text: what readers may rely on. */
#include "check-common.h"

#ifdef HAVE_GST_TENSORS
#define GST_USE_UNSTABLE_API
#include <gst/analytics/analytics.h>
#endif

#include <locale.h>
#include <math.h>
#include <string.h>

#include "gstimagingmetadata.h"
#include "gstimagingquantity.h"
#include "gstimagingresults.h"
#include "imk/version.h"

static const gchar *const fields[] = {"x", "y", "state"};
static const gchar *const units[] = {"pixel", "pixel", "flags"};
static const gfloat numbers[] = {1.5f, -2, 0, 3, 4, 7};
static const gdouble values[] = {1.5, -2, 0, 3, 4, 7};

static void
result_clear (GstImagingResult *result)
{
  gst_clear_buffer (&result->data);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GstImagingResult, result_clear)

/* Two rows of three fields; the data is of the caller. */
static GstImagingResult
make_result (guint64 frame)
{
  return (GstImagingResult){
      .id = "test-v1",
      .fields = fields,
      .units = units,
      .n_fields = 3,
      .n_rows = 2,
      .data = gst_buffer_new_memdup (numbers, sizeof (numbers)),
      .values = values,
      .ref_width = 641,
      .ref_height = 480,
      .frame = frame,
      .origin = {"tester", "cpu", "0123abcd"},
  };
}

static void
attach (GstBuffer *buffer, const gchar *name, guint64 frame)
{
  g_auto (GstImagingResult) result = make_result (frame);

  gst_imaging_results_attach (buffer, name, &result);
}

static guint64
frame_of (const GstStructure *result)
{
  guint64 frame = G_MAXUINT64;

  fail_unless (result != NULL, "no result");
  fail_unless (gst_structure_get_uint64 (result, "frame", &frame));
  return frame;
}

static void
check_frame (GstBuffer *buffer, const gchar *name, guint64 expected)
{
  fail_unless_equals_uint64 (
      frame_of (gst_imaging_results_get (buffer, name)), expected);
}

static void
check_string (
    const GstStructure *result, const gchar *name, const gchar *expected)
{
  fail_unless_equals_string (gst_structure_get_string (result, name), expected);
}

static void
check_int (const GstStructure *result, const gchar *name, gint expected)
{
  gint value = -1;

  fail_unless (gst_structure_get_int (result, name, &value), "no %s", name);
  fail_unless_equals_int (value, expected);
}

static void
check_dims (const GstStructure *result, gint slow, gint fast)
{
  const GValue *dims = gst_structure_get_value (result, "dims");

  fail_unless (GST_VALUE_HOLDS_ARRAY (dims));
  fail_unless_equals_int (gst_value_array_get_size (dims), 2);
  fail_unless_equals_int (
      g_value_get_int (gst_value_array_get_value (dims, 0)), slow);
  fail_unless_equals_int (
      g_value_get_int (gst_value_array_get_value (dims, 1)), fast);
}

static void
check_data (const GstStructure *result)
{
  const GValue *value = gst_structure_get_value (result, "data");

  fail_unless (G_VALUE_HOLDS (value, GST_TYPE_BUFFER));
  fail_unless_equals_uint64 (
      gst_buffer_get_size (gst_value_get_buffer (value)), sizeof (numbers));
  fail_unless (gst_buffer_memcmp (gst_value_get_buffer (value), 0, numbers,
                   sizeof (numbers)) == 0);
}

/* --- the meta ------------------------------------------------------------- */

CHECK_CASE ("meta", NULL, NULL)

CHECK_TEST (test_the_fields_are_as_documented)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  const GstStructure *result;
  gboolean by_field = TRUE;

  attach (buffer, "sensor", 42);
  result = gst_imaging_results_get (buffer, "sensor");
  fail_unless_equals_uint64 (frame_of (result), 42);
  check_string (result, "id", "test-v1");
  check_string (result, "type", "float32");
  check_string (result, "dims-order", "row-major");
  check_string (result, "fields", "x,y,state");
  check_string (result, "unit", "pixel,pixel,flags");
  check_int (result, "rows", 2);
  check_int (result, "columns", 3);
  check_int (result, "ref-width", 641);
  check_int (result, "ref-height", 480);
  check_dims (result, 2, 3);
  check_data (result);
  fail_unless (gst_structure_get_boolean (result, "by-field", &by_field));
  fail_if (by_field);
  check_string (result, "element", "tester");
  check_string (result, "version", IMK_VERSION);
  check_string (result, "backend", "cpu");
  check_string (result, "settings-hash", "0123abcd");
  fail_unless_equals_int (gst_structure_n_fields (result), 18);
}

CHECK_TEST (test_results_say_when_their_frame_was_taken)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  g_autoptr (GstCaps) clock = gst_caps_from_string ("timestamp/x-camera");
  const GstStructure *result;
  guint64 time = 0;

  GST_BUFFER_PTS (buffer) = 40 * GST_MSECOND;
  gst_buffer_add_reference_timestamp_meta (
      buffer, clock, 123456789, GST_CLOCK_TIME_NONE);
  attach (buffer, "sensor", 0);
  GST_BUFFER_PTS (buffer) = 0; /* what others make of it */
  result = gst_imaging_results_get (buffer, "sensor");
  fail_unless (gst_structure_get_uint64 (result, "pts", &time));
  fail_unless_equals_uint64 (time, 40 * GST_MSECOND);
  fail_unless (gst_structure_get_uint64 (result, "timestamp", &time));
  fail_unless_equals_uint64 (time, 123456789);
  check_string (result, "timestamp-reference", "timestamp/x-camera");
}

#ifdef HAVE_GST_TENSORS
CHECK_TEST (test_results_are_tensors_as_well)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  const GstStructure *result;
  GstTensorMeta *meta;
  const GstTensor *tensor;

  attach (buffer, "sensor", 42);
  attach (buffer, "sensor", 43); /* in the place of the first */
  result = gst_imaging_results_get (buffer, "sensor");
  meta = gst_buffer_get_tensor_meta (buffer);
  fail_unless (meta != NULL);
  fail_unless_equals_uint64 (meta->num_tensors, 1);
  tensor = meta->tensors[0];
  fail_unless_equals_string (g_quark_to_string (tensor->id), "test-v1");
  fail_unless_equals_int (tensor->data_type, GST_TENSOR_DATA_TYPE_FLOAT32);
  fail_unless_equals_int (tensor->dims_order, GST_TENSOR_DIM_ORDER_ROW_MAJOR);
  fail_unless_equals_uint64 (tensor->num_dims, 2);
  fail_unless_equals_uint64 (tensor->dims[0], 2);
  fail_unless_equals_uint64 (tensor->dims[1], 3);
  fail_unless (tensor->data ==
               gst_value_get_buffer (gst_structure_get_value (result, "data")));
  attach (buffer, "other", 43);
  fail_unless_equals_uint64 (
      gst_buffer_get_tensor_meta (buffer)->num_tensors, 2);
}
#endif

CHECK_TEST (test_by_field_turns_rows_and_columns)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  g_auto (GstImagingResult) result = make_result (0);
  const GstStructure *found;
  gboolean by_field = FALSE;

  result.by_field = TRUE;
  gst_imaging_results_attach (buffer, "sensor", &result);
  found = gst_imaging_results_get (buffer, "sensor");
  check_int (found, "rows", 3);
  check_int (found, "columns", 2);
  check_dims (found, 3, 2);
  fail_unless (gst_structure_get_boolean (found, "by-field", &by_field));
  fail_unless (by_field);
}

CHECK_TEST (test_results_are_found_by_name_or_any)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();

  fail_unless (gst_imaging_results_get (buffer, NULL) == NULL);
  fail_unless (gst_imaging_results_get (buffer, "one") == NULL);
  attach (buffer, "one", 1);
  check_frame (buffer, NULL, 1);
  attach (buffer, "two", 2);
  check_frame (buffer, "one", 1);
  check_frame (buffer, "two", 2);
  fail_unless (gst_imaging_results_get (buffer, NULL) != NULL);
  fail_unless (gst_imaging_results_get (buffer, "three") == NULL);
}

CHECK_TEST (test_a_newer_result_of_the_same_name_replaces_the_old)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();

  attach (buffer, "one", 1);
  attach (buffer, "two", 2);
  attach (buffer, "one", 3);
  check_frame (buffer, "one", 3);
  check_frame (buffer, "two", 2);
}

CHECK_TEST (test_a_copy_has_results_of_its_own)
{
  GstBuffer *buffer = gst_buffer_new (), *copy;

  attach (buffer, "one", 1);
  copy = gst_buffer_copy (buffer);
  attach (copy, "one", 2);
  attach (copy, "two", 3);
  check_frame (buffer, "one", 1);
  fail_unless (gst_imaging_results_get (buffer, "two") == NULL);
  gst_buffer_unref (buffer);
  check_frame (copy, "one", 2);
  check_data (gst_imaging_results_get (copy, "one"));
  gst_buffer_unref (copy);
}

/* --- results that are described again ------------------------------------- */

typedef GstImagingResultsCache Cache;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Cache, gst_imaging_results_cache_unref)

/* Of one frame, all but the numbers. */
typedef struct {
  const gchar *hash;
  GstClockTime pts, camera; /* NONE: without */
  guint n_rows;
  gboolean has_flags;
  const gchar *more;
} Frame;

static GstBuffer *
make_frame (const Frame *f, guint64 number, Cache *cache)
{
  GstBuffer *buffer = gst_buffer_new ();
  g_autoptr (GstCaps) clock = gst_caps_new_empty_simple ("timestamp/x-camera");
  g_autoptr (GstStructure) more =
      f->more ? gst_structure_new_from_string (f->more) : NULL;
  g_auto (GstImagingResult) result = make_result (number);

  result.origin.settings_hash = f->hash;
  result.n_rows = f->n_rows;
  result.flags = f->has_flags ? result.data : NULL;
  result.more = more;
  result.cache = cache;
  GST_BUFFER_PTS (buffer) = f->pts;
  if (GST_CLOCK_TIME_IS_VALID (f->camera))
    gst_buffer_add_reference_timestamp_meta (
        buffer, clock, f->camera, GST_CLOCK_TIME_NONE);
  gst_imaging_results_attach (buffer, "one", &result);
  return buffer;
}

/* But the buffers, which are made anew. */
static GstStructure *
numbers_of (GstBuffer *buffer)
{
  GstStructure *s =
      gst_structure_copy (gst_imaging_results_get (buffer, "one"));

  check_data (s);
  gst_structure_remove_fields (s, "data", "flags", NULL);
  return s;
}

/* Whatever it was in the frame before. */
CHECK_TEST (test_a_cache_changes_nothing_that_readers_see)
{
  static const Frame frames[] = {
      {"a", 1, 2, 2, FALSE, "m,n=(uint)1,b=(boolean)true"},
      {"a", 3, 4, 2, FALSE, "m,n=(uint)2,b=(boolean)true"},
      {"b", 3, 4, 2, FALSE, "m,n=(uint)2,b=(boolean)true"},
      {"b", GST_CLOCK_TIME_NONE, 4, 2, TRUE, "m,n=(uint)2,b=(boolean)false"},
      {"b", 7, GST_CLOCK_TIME_NONE, 2, TRUE, "m,n=(uint)2,c=(string)x"},
      {"b", 7, GST_CLOCK_TIME_NONE, 2, TRUE, "m,n=(uint)2,c=(string)y"},
      {NULL, 8, 9, 1, FALSE, "m,n=(uint)2"},
      {NULL, 8, 9, 2, FALSE, NULL},
      {"c", 8, 9, 2, FALSE, "m,n=(int)2"},
  };
  g_autoptr (Cache) cache = gst_imaging_results_cache_new ();

  for (guint i = 0; i < G_N_ELEMENTS (frames); i++) {
    g_autoptr (GstBuffer) ours = make_frame (&frames[i], i, cache);
    g_autoptr (GstBuffer) expected = make_frame (&frames[i], i, NULL);
    g_autoptr (GstStructure) a = numbers_of (ours), b = numbers_of (expected);
    g_autofree gchar *text_a = gst_structure_to_string (a);
    g_autofree gchar *text_b = gst_structure_to_string (b);

    fail_unless (gst_structure_is_equal (a, b), "frame %u: %s instead of %s", i,
        text_a, text_b);
  }
}

static const Frame plain = {
    "a", 1, GST_CLOCK_TIME_NONE, 2, FALSE, "m,n=(uint)1"};

/* The commands of a frame carry its slopes. */
CHECK_TEST (test_what_is_made_of_a_frame_shares_its_description)
{
  g_autoptr (Cache) cache = gst_imaging_results_cache_new ();
  GstBuffer *from = make_frame (&plain, 1, cache), *next;
  g_autoptr (GstBuffer) to = gst_buffer_new ();
  const GstStructure *result = gst_imaging_results_get (from, "one");

  attach (from, "two", 2);
  attach (to, "three", 3);
  gst_imaging_metadata_copy (to, from, FALSE);
  fail_unless (gst_imaging_results_get (to, "one") == result);
  gst_buffer_unref (from);
  next = make_frame (&plain, 4, cache);
  check_frame (next, "one", 4);
  gst_buffer_unref (next);
  g_clear_pointer (&cache, gst_imaging_results_cache_unref);
  check_frame (to, "one", 1);
  check_data (gst_imaging_results_get (to, "one"));
  check_frame (to, "two", 2);
  check_frame (to, "three", 3);
}

/* By an element that knows nothing of it. */
CHECK_TEST (test_a_copy_outlives_the_frame_and_its_cache)
{
  Cache *cache = gst_imaging_results_cache_new ();
  GstBuffer *from = make_frame (&plain, 1, cache);
  g_autoptr (GstBuffer) copy = gst_buffer_copy (from),
                        again = gst_buffer_new ();

  gst_buffer_unref (from);
  gst_buffer_unref (make_frame (&plain, 2, cache));
  gst_imaging_results_cache_unref (cache);
  gst_imaging_metadata_copy (again, copy, FALSE);
  gst_clear_buffer (&copy);
  check_frame (again, "one", 1);
  check_data (gst_imaging_results_get (again, "one"));
}

/* An application may call its elements anything. */
CHECK_TEST (test_any_element_name_will_do)
{
  const gchar *names[] = {"camera 1/left", "Ä;{}\"=", "0", "data"};
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    attach (buffer, names[i], i);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    check_frame (buffer, names[i], i);
}

/* Nothing of ours has been called: a reader that comes first. */
CHECK_TEST (test_reading_before_anything_was_registered_finds_nothing)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();

  fail_unless (gst_imaging_results_get (buffer, "one") == NULL);
}

static void
assert_survives (const gchar *element, const gchar *launch)
{
  GstVideoInfo info = check_info ("RGBA", 64, 48);
  g_autofree gchar *caps = check_caps_string ("RGBA", 64, 48);
  GstBuffer *in = check_noise (&info, 1), *out;
  g_autoptr (CheckHarness) h = NULL;

  attach (in, "sensor", 5);
  h = gst_harness_new_parse (launch);
  gst_harness_set_src_caps_str (h, caps);
  check_push (h, in, GST_FLOW_OK);
  out = check_pull (h);
  fail_unless (gst_imaging_results_get (out, "sensor") != NULL,
      "%s drops results", element);
  check_frame (out, "sensor", 5);
  check_int (gst_imaging_results_get (out, "sensor"), "ref-width", 641);
  check_data (gst_imaging_results_get (out, "sensor"));
  gst_buffer_unref (out);
}

CHECK_TEST (test_results_survive_other_elements)
{
  const struct {
    const gchar *element, *launch;
  } cases[] = {
      {"queue", "queue"},
      {"identity", "identity"},
      {"tee", "tee ! queue"},
      {"videoconvert", "videoconvert ! capsfilter "
                       "caps=video/x-raw,format=GRAY16_LE"},
      {"videoscale", "videoscale ! capsfilter caps=video/x-raw,width=31"},
      {"videocrop", "videocrop left=3 top=5"},
      {"videobox", "videobox left=3 top=5"},
      {"videoflip", "videoflip method=clockwise"},
      {"gaussianblur", "videoconvert ! gaussianblur"},
      {"videorate", "videorate drop-only=true"},
      {"pngenc", "pngenc"},
      {"lapsharpen", "lapsharpen backend=cpu"},
      {"lapsharpen", "lapsharpen backend=cuda"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    if (check_have_element (cases[i].element))
      assert_survives (cases[i].element, cases[i].launch);
}

CHECK_TEST (test_results_of_two_elements_meet_on_one_frame)
{
  GstVideoInfo info = check_info ("GRAY8", 33, 17);
  g_autofree gchar *caps = check_caps_string ("GRAY8", 33, 17);
  g_autoptr (CheckHarness) h = gst_harness_new_parse (
      "lapsharpen name=one focus-measure=true ! queue ! "
      "lapsharpen name=two focus-measure=true backend=cuda ! identity");

  gst_harness_set_src_caps_str (h, caps);
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstBuffer) out = NULL;

    check_push (h, check_noise (&info, i), GST_FLOW_OK);
    out = check_pull (h);
    check_frame (out, "one", i);
    check_frame (out, "two", i);
  }
}

/* --- text ----------------------------------------------------------------- */

static void
assert_csv (const GstImagingResult *result, GstClockTime pts, gboolean header,
    const gchar *expected)
{
  g_autoptr (GstBuffer) text = gst_imaging_results_to_csv (result, pts, header);
  g_autofree gchar *found = g_malloc0 (gst_buffer_get_size (text) + 1);

  gst_buffer_extract (text, 0, found, gst_buffer_get_size (text));
  fail_unless_equals_string (found, expected);
}

CHECK_CASE ("text", NULL, NULL)

CHECK_TEST (test_csv_is_exact)
{
  g_auto (GstImagingResult) result = make_result (12);

  assert_csv (&result, 40000000, TRUE,
      "frame,pts,x,y,state\n"
      "12,40000000,1.5,-2,0\n"
      "12,40000000,3,4,7\n");
  assert_csv (&result, 0, FALSE,
      "12,0,1.5,-2,0\n"
      "12,0,3,4,7\n");
}

CHECK_TEST (test_csv_has_an_empty_pts_for_none)
{
  g_auto (GstImagingResult) result = make_result (G_MAXUINT64);

  result.n_rows = 1;
  assert_csv (&result, GST_CLOCK_TIME_NONE, TRUE,
      "frame,pts,x,y,state\n"
      "18446744073709551615,,1.5,-2,0\n");
}

CHECK_TEST (test_csv_names_rows_by_their_indices)
{
  const gchar *const names[] = {"cell", "row"};
  const guint32 indices[] = {0, 7, 4294967295u, 8};
  g_auto (GstImagingResult) result = make_result (0);

  result.index_names = names;
  result.n_indices = 2;
  result.indices = g_bytes_new_static (indices, sizeof (indices));
  assert_csv (&result, 1, TRUE,
      "frame,pts,cell,row,x,y,state\n"
      "0,1,0,7,1.5,-2,0\n"
      "0,1,4294967295,8,3,4,7\n");
  g_bytes_unref (result.indices);
}

CHECK_TEST (test_csv_has_a_row_a_line_also_by_field)
{
  const gdouble turned[] = {1.5, 3, -2, 4, 0, 7};
  g_auto (GstImagingResult) result = make_result (0);

  result.by_field = TRUE;
  result.values = turned;
  assert_csv (&result, 1, FALSE,
      "0,1,1.5,-2,0\n"
      "0,1,3,4,7\n");
}

CHECK_TEST (test_csv_has_every_double)
{
  const gdouble special[] = {NAN, -NAN, -3, INFINITY, -INFINITY, 2147483647,
      0.1, -1e-12, -2147483648.0, 1e15 + 0.25, 123456.0000000001, 1};
  g_auto (GstImagingResult) result = make_result (0);

  result.n_rows = 4;
  result.values = special;
  assert_csv (&result, 1, FALSE,
      "0,1,nan,nan,-3\n"
      "0,1,inf,-inf,2147483647\n"
      "0,1,0.1,-1e-12,-2147483648\n"
      "0,1,1000000000000000.2,123456.0000000001,1\n");
}

/* Every number read back is the number that was written. */
CHECK_TEST (test_csv_loses_nothing)
{
  const gdouble special[] = {G_MAXDOUBLE, -G_MAXDOUBLE, G_MINDOUBLE, 5e-324,
      5.3e-08, 1.0 / 3, 0.1 + 0.2, 1e15 + 0.25, -1e15, 9007199254740993.0,
      1e22};
  gdouble values[3 * 1000];
  g_auto (GstImagingResult) result = make_result (0);
  GRand *random = g_rand_new_with_seed (1);
  guint n = G_N_ELEMENTS (values);
  g_autoptr (GstBuffer) buffer = NULL;
  gchar *text, **lines;

  for (guint i = 0; i < n; i++)
    values[i] = i < G_N_ELEMENTS (special)
                    ? special[i]
                    : ldexp (g_rand_double (random) - 0.5,
                          g_rand_int_range (random, -60, 60));
  for (guint i = 2; i < n; i += 3)
    values[i] = i; /* a flag */
  result.n_rows = n / 3;
  result.values = values;
  buffer = gst_imaging_results_to_csv (&result, 1, FALSE);
  text = g_malloc0 (gst_buffer_get_size (buffer) + 1);
  gst_buffer_extract (buffer, 0, text, gst_buffer_get_size (buffer));
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; i < n; i++) {
    gchar **words = g_strsplit (lines[i / 3], ",", -1);

    if (g_ascii_strtod (words[2 + i % 3], NULL) != values[i])
      fail ("%.17g is written as %s", values[i], words[2 + i % 3]);
    g_strfreev (words);
  }
  g_strfreev (lines);
  g_free (text);
  g_rand_free (random);
}

CHECK_TEST (test_csv_is_as_short_as_it_can_be)
{
  const gdouble plain[] = {3533, 5.3e-08, 1, -0.25, -3533, 2};
  g_auto (GstImagingResult) result = make_result (0);

  result.values = plain;
  assert_csv (&result, 1, FALSE, "0,1,3533,5.3e-08,1\n0,1,-0.25,-3533,2\n");
}

/* A file of numbers must stay readable whatever a kernel puts there. */
CHECK_TEST (test_csv_flags_that_are_no_integer_are_written_as_numbers)
{
  const gdouble special[] = {1, 2, NAN, 3, 4, 1e300};
  g_auto (GstImagingResult) result = make_result (0);
  g_autoptr (GstBuffer) text = NULL;
  gchar line[200] = "";

  result.values = special;
  text = gst_imaging_results_to_csv (&result, 1, FALSE);
  gst_buffer_extract (text, 0, line, sizeof (line) - 1);
  fail_unless (g_str_has_prefix (line, "0,1,1,2,nan\n"), "%s", line);
}

CHECK_TEST (test_csv_without_rows_is_the_header_or_nothing)
{
  g_auto (GstImagingResult) result = make_result (0);

  result.n_rows = 0;
  assert_csv (&result, 1, TRUE, "frame,pts,x,y,state\n");
  assert_csv (&result, 1, FALSE, "");
}

/* gst-launch-1.0 sets the locale of the user. */
CHECK_TEST (test_csv_has_dots_where_people_write_commas)
{
  GstImagingResult result = make_result (0);
  gchar probe[8];

  if (!setlocale (LC_ALL, "de_DE.UTF-8")) {
    gst_buffer_unref (result.data);
    check_skip ("the locale de_DE.UTF-8 is not generated");
  }
  g_snprintf (probe, sizeof (probe), "%.1f", 0.5);
  fail_unless_equals_string (probe, "0,5");
  result.n_rows = 1;
  assert_csv (&result, 1, FALSE, "0,1,1.5,-2,0\n");
  setlocale (LC_ALL, "C");
  gst_buffer_unref (result.data);
}

/* --- tensors -------------------------------------------------------------- */

static void
assert_tensor (const GstImagingResult *result, gint fps_n, gint fps_d,
    const gchar *dimensions, const gchar *framerate)
{
  g_autofree gchar *text = g_strdup_printf (
      "other/tensors,format=(string)static,num_tensors=(int)1,"
      "types=(string)float32,dimensions=(string)%s,framerate=(fraction)%s",
      dimensions, framerate);
  g_autoptr (GstCaps) expected = gst_caps_from_string (text);
  g_autoptr (GstCaps) template =
      gst_caps_from_string (GST_IMAGING_RESULTS_CAPS);
  g_autoptr (GstCaps) found =
      gst_imaging_results_tensor_caps (result, FALSE, fps_n, fps_d);

  fail_unless (gst_caps_is_equal (found, expected));
  fail_unless (gst_caps_is_fixed (found));
  fail_unless (gst_caps_is_subset (found, template));
}

CHECK_CASE ("tensors", NULL, NULL)

CHECK_TEST (test_tensor_caps_have_the_fastest_dimension_first)
{
  g_auto (GstImagingResult) result = make_result (0);

  assert_tensor (&result, 25, 1, "3:2:1:1", "25/1");
  result.by_field = TRUE;
  assert_tensor (&result, 0, 1, "2:3:1:1", "0/1");
}

/* What is attached again to a buffer of a pool is what was given last. */
CHECK_TEST (test_quantities_are_replaced)
{
  static const GstImagingOrigin origin = {"octbscan", "cpu", "1234"};
  static const gchar *const members[] = {"name", "unit", "step", "origin"};
  static const guint n_axes[] = {2, 2, 1, 4, 3, 0, 2};
  GstImagingAxis axes[] = {{"depth", "um", 2, 1}, {"lateral", "pixel", 1, 0},
      {"b-scan", "pixel", 3, 0}, {"time", "s", 4, 0}};
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();

  for (guint i = 0; i < 2 * G_N_ELEMENTS (n_axes); i++) {
    guint turn = i / 2; /* the second time nothing changes */
    const gchar *name = turn % 2 ? "level" : "intensity";
    GstStructure *expected, *found;

    axes[1].step = turn;
    gst_imaging_quantity_attach (
        buffer, name, "dB", turn, -20, axes, n_axes[turn]);
    gst_imaging_quantity_sign (buffer, &origin);
    found = gst_custom_meta_get_structure (
        gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META));
    expected = gst_structure_new (gst_structure_get_name (found), "name",
        G_TYPE_STRING, name, "unit", G_TYPE_STRING, "dB", "scale",
        G_TYPE_DOUBLE, (gdouble) turn, "offset", G_TYPE_DOUBLE, -20.0,
        "element", G_TYPE_STRING, "octbscan", "version", G_TYPE_STRING,
        IMK_VERSION, "backend", G_TYPE_STRING, "cpu", "settings-hash",
        G_TYPE_STRING, "1234", NULL);
    for (guint k = 0; k < n_axes[turn]; k++) {
      gchar *names[G_N_ELEMENTS (members)];

      for (guint m = 0; m < G_N_ELEMENTS (members); m++)
        names[m] = g_strdup_printf ("axis-%u-%s", k, members[m]);
      gst_structure_set (expected, names[0], G_TYPE_STRING, axes[k].name,
          names[1], G_TYPE_STRING, axes[k].unit, names[2], G_TYPE_DOUBLE,
          axes[k].step, names[3], G_TYPE_DOUBLE, axes[k].origin, NULL);
      for (guint m = 0; m < G_N_ELEMENTS (members); m++)
        g_free (names[m]);
    }
    fail_unless (gst_structure_is_equal (found, expected),
        "%u: %" GST_PTR_FORMAT ", expected %" GST_PTR_FORMAT, i, found,
        expected);
    gst_structure_free (expected);
  }
}
