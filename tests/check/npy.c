/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The .npy reader and writer: agreement with numpy, and a sentence for every
 * file that is not as it should be. */
#include "check-common.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gstimagingnpy.h"

/* --- what numpy 2.4 writes with numpy.save () --- */

/* numpy.array ([[0, 1, 2], [253, 254, 255]], 'u1') */
static const gchar golden_u8[] =
    "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'sh"
    "ape': (2, 3), }                                                   "
    "       \012\000\001\002\375\376\377";

/* numpy.array ([[1, 258, 65535]], '<u2') */
static const gchar golden_u16_little[] =
    "\223NUMPY\001\000v\000{'descr': '<u2', 'fortran_order': False, 'sh"
    "ape': (1, 3), }                                                   "
    "       \012\001\000\002\001\377\377";

/* numpy.array ([[1, 258, 65535]], '>u2') */
static const gchar golden_u16_big[] =
    "\223NUMPY\001\000v\000{'descr': '>u2', 'fortran_order': False, 'sh"
    "ape': (1, 3), }                                                   "
    "       \012\000\001\001\002\377\377";

/* numpy.array ([-32768, -2, 258], '>i2') */
static const gchar golden_i16_big[] =
    "\223NUMPY\001\000v\000{'descr': '>i2', 'fortran_order': False, 'sh"
    "ape': (3,), }                                                     "
    "       \012\200\000\377\376\001\002";

/* numpy.array ([0.1, -2, numpy.inf], '<f4') */
static const gchar golden_f32_little[] =
    "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'sh"
    "ape': (3,), }                                                     "
    "       \012\315\314\314=\000\000\000\300\000\000\200\177";

/* numpy.array ([0.1, -2, numpy.nan], '>f8') */
static const gchar golden_f64_big[] =
    "\223NUMPY\001\000v\000{'descr': '>f8', 'fortran_order': False, 'sh"
    "ape': (3,), }                                                     "
    "       \012\077\271\231\231\231\231\231\232\300\000\000\000\000"
    "\000\000\000\177\370\000\000\000\000\000\000";

/* numpy.array ([1 + 2j, -0.5j], '>c8') */
static const gchar golden_complex64_big[] =
    "\223NUMPY\001\000v\000{'descr': '>c8', 'fortran_order': False, 'sh"
    "ape': (2,), }                                                     "
    "       \012\077\200\000\000@\000\000\000\200\000\000\000\277\000"
    "\000\000";

/* numpy.array (3 - 4j, '<c16') */
static const gchar golden_complex128_little[] =
    "\223NUMPY\001\000v\000{'descr': '<c16', 'fortran_order': False, 's"
    "hape': (), }                                                      "
    "       \012\000\000\000\000\000\000\010@\000\000\000\000\000\000"
    "\020\300";

/* numpy.array ([True, False, True]) */
static const gchar golden_bool[] =
    "\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': Fals"
    "e, 'shape': (3,), }                                         "
    "                   \012\001\000\001";

/* numpy.array ([-2147483648, -2, 65539], '>i4') */
static const gchar golden_i32_big[] =
    "\223NUMPY\001\000v\000{'descr': '>i4', 'fortran_order': Fals"
    "e, 'shape': (3,), }                                         "
    "                   \012\200\000\000\000\377\377\377\376\000\001"
    "\000\003";

/* numpy.array ([4294967295, 1], '<u4') */
static const gchar golden_u32_little[] =
    "\223NUMPY\001\000v\000{'descr': '<u4', 'fortran_order': Fals"
    "e, 'shape': (2,), }                                         "
    "                   \012\377\377\377\377\001\000\000\000";

/* numpy.array ([-9007199254740992, 3], '<i8') */
static const gchar golden_i64_little[] =
    "\223NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': Fals"
    "e, 'shape': (2,), }                                         "
    "                   \012\000\000\000\000\000\000\340\377\003\000"
    "\000\000\000\000\000\000";

/* numpy.array ([1 / 3, -65504, 6e-8, numpy.inf, -0.0, numpy.nan], '>f2') */
static const gchar golden_f16_big[] =
    "\223NUMPY\001\000v\000{'descr': '>f2', 'fortran_order': Fals"
    "e, 'shape': (6,), }                                         "
    "                   \0125U\373\377\000\001|\000\200\000~\000";

#define CONTENT(literal) literal, sizeof (literal) - 1

/* --- helpers --- */

static guint
count_files (void)
{
  g_autoptr (GDir) dir = g_dir_open (check_folder (), 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir))
    n++;
  return n;
}

static gchar *
write_file (const gchar *name, const gchar *content, gsize size)
{
  gchar *path = check_path_of (name);

  fail_unless (g_file_set_contents (path, content, size, NULL));
  return path;
}

static GstImagingNdArray *
parse (const gchar *content, gsize size)
{
  /* on the heap and no byte longer, so that ASan sees what reads beyond */
  g_autofree guint8 *copy = g_memdup2 (content, size);
  GError *error = NULL;
  GstImagingNdArray *npy = gst_imaging_npy_parse (copy, size, "a.npy", &error);

  fail_unless (npy != NULL, "%s", error ? error->message : "no message");
  return npy;
}

static void
assert_error (GError *error, gint code, const gchar *words)
{
  fail_unless (error != NULL, "no error, expected is \"%s\"", words);
  fail_unless (g_error_matches (error, GST_IMAGING_ND_ARRAY_ERROR, code) &&
                   strstr (error->message, words),
      "code %d, \"%s\", expected are code %d and \"%s\"", error->code,
      error->message, code, words);
  fail_unless (g_utf8_validate (error->message, -1, NULL));
  fail_unless (g_str_has_suffix (error->message, "."), "\"%s\" is no sentence",
      error->message);
  g_error_free (error);
}

static void
assert_refused (const gchar *content, gsize size, gint code, const gchar *words)
{
  g_autofree guint8 *copy = g_memdup2 (content, size);
  GError *error = NULL;

  fail_unless (gst_imaging_npy_parse (copy, size, "a.npy", &error) == NULL,
      "accepted, expected is \"%s\"", words);
  fail_unless (strstr (error->message, "\"a.npy\"") != NULL);
  assert_error (error, code, words);
}

/* A file with any header. */
static GString *
make_file (guint version, const gchar *header, gsize header_size,
    const gchar *data, gsize data_size)
{
  GString *file = g_string_new ("\223NUMPY");

  g_string_append_c (file, version);
  g_string_append_c (file, 0);
  for (guint i = 0; i < (version == 1 ? 2 : 4); i++)
    g_string_append_c (file, (header_size >> (8 * i)) & 0xff);
  g_string_append_len (file, header, header_size);
  g_string_append_len (file, data, data_size);
  return file;
}

static void
assert_header_refused (const gchar *header, gint code, const gchar *words)
{
  g_autoptr (GString) file =
      make_file (1, header, strlen (header), "12345678", 8);

  assert_refused (file->str, file->len, code, words);
}

static void
assert_doubles (const GstImagingNdArray *npy, const gdouble *expected, gsize n)
{
  gsize n_values = 0;
  g_autofree gdouble *values =
      gst_imaging_nd_array_to_double (npy, &n_values, NULL);

  fail_unless (values != NULL);
  fail_unless_equals_uint64 (n_values, n);
  for (gsize i = 0; i < n; i++)
    fail_unless (
        values[i] == expected[i] || (isnan (values[i]) && isnan (expected[i])),
        "value %" G_GSIZE_FORMAT " is %.17g, expected is %.17g", i, values[i],
        expected[i]);
}

static void
assert_shape (const GstImagingNdArray *npy, const gchar *expected)
{
  g_autofree gchar *found = gst_imaging_nd_array_describe (npy);

  fail_unless_equals_string (found, expected);
}

/* --- agreement with numpy --- */

CHECK_CASE ("npy", check_make_folder, check_remove_folder)

CHECK_TEST (test_files_of_numpy_are_read_in_both_byte_orders)
{
  static const struct {
    const gchar *content;
    gsize size;
    const gchar *shape;
    gboolean big_endian;
    gdouble values[6];
  } cases[] = {
      {CONTENT (golden_u8), "u8 [2, 3]", FALSE, {0, 1, 2, 253, 254, 255}},
      {CONTENT (golden_u16_little), "u16 [1, 3]", FALSE, {1, 258, 65535}},
      {CONTENT (golden_u16_big), "u16 [1, 3]", TRUE, {1, 258, 65535}},
      {CONTENT (golden_i16_big), "i16 [3]", TRUE, {-32768, -2, 258}},
      {CONTENT (golden_f32_little), "f32 [3]", FALSE, {0.1f, -2, INFINITY}},
      {CONTENT (golden_f64_big), "f64 [3]", TRUE, {0.1, -2, NAN}},
      {CONTENT (golden_bool), "bool [3]", FALSE, {1, 0, 1}},
      {CONTENT (golden_i32_big), "i32 [3]", TRUE, {-2147483648.0, -2, 65539}},
      {CONTENT (golden_u32_little), "u32 [2]", FALSE, {4294967295.0, 1}},
      {CONTENT (golden_i64_little), "i64 [2]", FALSE, {-9007199254740992.0, 3}},
      /* the nearest halves: 1365 / 4096, and the least of all */
      {CONTENT (golden_f16_big), "f16 [6]", TRUE,
          {1365 / 4096.0, -65504, 0x1p-24, INFINITY, 0, NAN}},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GstImagingNdArray) npy = parse (cases[i].content, cases[i].size);

    assert_shape (npy, cases[i].shape);
    fail_unless_equals_int (npy->big_endian, cases[i].big_endian);
    fail_unless_equals_uint64 (npy->data_offset, 128);
    assert_doubles (npy, cases[i].values, npy->n_values);
  }
}

CHECK_TEST (test_complex_files_of_numpy_are_read_in_both_byte_orders)
{
  g_autoptr (GstImagingNdArray) npy = parse (CONTENT (golden_complex64_big));
  const gfloat *singles = npy->data;
  const gdouble *doubles;

  assert_shape (npy, "complex64 [2]");
  fail_unless_equals_float (singles[0], 1);
  fail_unless_equals_float (singles[1], 2);
  fail_unless (singles[2] == 0);
  fail_unless_equals_float (singles[3], -0.5);
  gst_imaging_nd_array_free (npy);

  npy = parse (CONTENT (golden_complex128_little));
  doubles = npy->data;
  assert_shape (npy, "complex128 []");
  fail_unless_equals_uint64 (npy->n_values, 1);
  fail_unless_equals_float (doubles[0], 3);
  fail_unless_equals_float (doubles[1], -4);
}

/* Loads @content and saves it again. */
static void
assert_saved_alike (const gchar *content, gsize size)
{
  g_autoptr (GstImagingNdArray) npy = parse (content, size);
  g_autofree gchar *path = check_path_of ("saved.npy");
  g_autofree gchar *saved = NULL;
  GError *error = NULL;
  gsize saved_size;

  fail_unless (gst_imaging_npy_save (
                   path, npy->type, npy->n_dims, npy->dims, npy->data, &error),
      "%s", error ? error->message : "no message");
  fail_unless (g_file_get_contents (path, &saved, &saved_size, NULL));
  fail_unless_equals_uint64 (saved_size, size);
  fail_unless (memcmp (saved, content, size) == 0);
  fail_unless_equals_int (count_files (), 1); /* no temporary file is left */
}

CHECK_TEST (test_save_writes_the_bytes_of_numpy)
{
  if (G_BYTE_ORDER != G_LITTLE_ENDIAN)
    return;
  assert_saved_alike (CONTENT (golden_u8));
  assert_saved_alike (CONTENT (golden_u16_little));
  assert_saved_alike (CONTENT (golden_f32_little));
  assert_saved_alike (CONTENT (golden_complex128_little));
  assert_saved_alike (CONTENT (golden_bool));
  assert_saved_alike (CONTENT (golden_i64_little));
}

CHECK_LOOP_TEST (test_every_type_and_rank_survives_a_round_trip,
    (GST_IMAGING_ND_ARRAY_TYPE_U64 + 1) * (GST_IMAGING_ND_ARRAY_MAX_DIMS + 1))
{
  static const guint64 dims[GST_IMAGING_ND_ARRAY_MAX_DIMS] = {
      2, 3, 1, 2, 1, 1, 2, 1};
  GstImagingNdArrayType type = __i__ / (GST_IMAGING_ND_ARRAY_MAX_DIMS + 1);
  guint n_dims = __i__ % (GST_IMAGING_ND_ARRAY_MAX_DIMS + 1);
  g_autofree gchar *path = check_path_of ("array.npy");
  g_autoptr (GstImagingNdArray) npy = NULL;
  GError *error = NULL;
  guint8 data[24 * 16];
  gsize size = gst_imaging_nd_array_type_size (type);

  for (guint i = 0; i < sizeof (data); i++)
    data[i] = 37 * i; /* among the floats are NaN and denormals */
  for (guint i = 0; i < n_dims; i++)
    size *= dims[i];
  fail_unless (gst_imaging_npy_save (path, type, n_dims, dims, data, &error));
  npy = gst_imaging_npy_load (path, &error);
  fail_unless (npy != NULL, "%s", error ? error->message : "no message");

  fail_unless_equals_int (npy->type, type);
  fail_unless_equals_int (npy->n_dims, n_dims);
  for (guint i = 0; i < GST_IMAGING_ND_ARRAY_MAX_DIMS; i++)
    fail_unless_equals_uint64 (npy->dims[i], i < n_dims ? dims[i] : 1);
  fail_unless_equals_uint64 (npy->data_offset % 64, 0);
  fail_unless_equals_uint64 (g_bytes_get_size (npy->bytes), size);
  fail_unless (memcmp (npy->data, data, size) == 0);
}

CHECK_TEST (test_headers_that_numpy_accepts_are_read)
{
  static const struct {
    const gchar *header, *shape;
  } cases[] = {
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }", "u8 [8]"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (8,)}\n", "u8 [8]"},
      {"{'shape':(4,2),'descr':'|u1','fortran_order':False}", "u8 [4, 2]"},
      {"{'fortran_order':False,'shape':(4,2,),'descr':'<u1'}", "u8 [4, 2]"},
      {" { \"shape\" : ( 4 , 2 , ) ,\n\t\"descr\" : \">u1\" , "
       "\"fortran_order\" : False , } \n",
          "u8 [4, 2]"},
      /* in one dimension both orders are the same */
      {"{'descr': '|u1', 'fortran_order': True, 'shape': (8,), }", "u8 [8]"},
      {"{'descr': '<f8', 'fortran_order': True, 'shape': (), }", "f64 []"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    for (guint version = 1; version <= 3; version++) {
      g_autoptr (GString) file = make_file (
          version, cases[i].header, strlen (cases[i].header), "12345678", 8);
      g_autoptr (GstImagingNdArray) npy = parse (file->str, file->len);

      assert_shape (npy, cases[i].shape);
      fail_unless (memcmp (npy->data, "12345678", 8) == 0);
    }
  }
}

CHECK_TEST (test_an_empty_array_has_no_values_and_is_no_error)
{
  static const gchar header[] =
      "{'descr': '>f8', 'fortran_order': False, 'shape': (0, 5), }";
  GString *file = make_file (1, header, strlen (header), "", 0);
  g_autoptr (GstImagingNdArray) npy = parse (file->str, file->len);
  g_autofree gchar *path = check_path_of ("empty.npy");

  assert_shape (npy, "f64 [0, 5]");
  fail_unless (npy->data != NULL);
  assert_doubles (npy, NULL, 0);
  fail_unless (gst_imaging_npy_save (
      path, npy->type, npy->n_dims, npy->dims, NULL, NULL));
  gst_imaging_nd_array_free (npy);
  g_string_free (file, TRUE);
  npy = gst_imaging_npy_load (path, NULL);
  assert_shape (npy, "f64 [0, 5]");
}

/* --- refusals --- */

CHECK_TEST (test_what_is_no_npy_file_is_refused)
{
  gchar content[sizeof (golden_u8)];

  assert_refused ("", 0, GST_IMAGING_ND_ARRAY_ERROR_FORMAT, "is empty");
  assert_refused (
      "\223NUM", 4, GST_IMAGING_ND_ARRAY_ERROR_FORMAT, "\"\\223NUM\"");
  assert_refused (CONTENT ("\211PNG\r\n\032\n"),
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT, "starts with \"\\211PNG\\r\\n\"");
  assert_refused (CONTENT ("PK\003\004, an .npz"),
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT, "numpy.save()");

  memcpy (content, golden_u8, sizeof (content));
  content[6] = 4;
  assert_refused (content, sizeof (content) - 1,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "version 4.0, expected is 1.0, 2.0 or 3.0");
  content[6] = 0;
  assert_refused (content, sizeof (content) - 1,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT, "version 0.0");
  content[6] = 1;
  content[7] = 1;
  assert_refused (content, sizeof (content) - 1,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT, "version 1.1");
  assert_refused (CONTENT ("\223NUMPY\002\000\377\377\377\377"),
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "4294967295 bytes, expected are at most");
}

CHECK_TEST (test_malformed_headers_are_refused_with_what_is_expected)
{
  static const struct {
    const gchar *header, *words;
  } cases[] = {
      {"", "character 0 there is its end, expected is '{'"},
      {"[]", "there is \"[]\", expected is '{'"},
      {"{", "expected is 'descr', 'fortran_order' or 'shape'"},
      {"{}", "no 'descr'"},
      {"{,}", "each once"},
      {"{'descr': '|u1', 'fortran_order': False}", "no 'shape'"},
      {"{'descr': '|u1', 'shape': (8,)}", "no 'fortran_order'"},
      {"{'fortran_order': False, 'shape': (8,)}", "no 'descr'"},
      {"{'descr': '|u1', 'descr': '|u1'}", "each once"},
      {"{'descr': '|u1', 'more': 1}", "there is \"'more': 1}\""},
      {"{'descr' '|u1'}", "expected is ':'"},
      {"{'descr': '|u1' 'shape': ()}", "',' or '}'"},
      {"{'descr': '|u1", "closing quote"},
      {"{'descr': 5}", "a type like '<f8'"},
      {"{'descr': ", "its end, expected is a type"},
      {"{descr: '|u1'}", "each once"},
      {"{'fortran_order': Falsehood}", "True or False"},
      {"{'fortran_order': 0}", "True or False"},
      {"{'fortran_order': T", "True or False"},
      {"{'shape': 8}", "a shape like (480, 640)"},
      {"{'shape': [8]}", "a shape like (480, 640)"},
      {"{'shape': (8)}", "',' after the only dimension"},
      {"{'shape': (4 2)}", "',' or ')'"},
      {"{'shape': (,)}", "a dimension, or ')'"},
      {"{'shape': (4,,2)}", "a dimension, or ')'"},
      {"{'shape': (8", "',' or ')'"},
      {"{'shape': (8L,)}", "there is \"L,)}\", expected is ',' or ')'"},
      {"{'shape': (8.0,)}", "',' or ')'"},
      {"{'shape': (0x8,)}", "',' or ')'"},
      {"{'shape': (08,)}", "without leading zeros"},
      {"{'shape': (+8,)}", "a dimension, or ')'"},
      {"{'shape': (-8,)}", "there is \"-8,)}\", expected is a dimension that "
                           "is not negative"},
      {"{'shape': (9223372036854775808,)}", "a dimension below 2^63"},
      {"{'shape': (99999999999999999999,)}", "a dimension below 2^63"},
      {"{'shape': (18446744073709551624,)}", "a dimension below 2^63"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (8,)} x",
          "nothing but white space"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (8,)}}",
          "nothing but white space"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_header_refused (
        cases[i].header, GST_IMAGING_ND_ARRAY_ERROR_FORMAT, cases[i].words);
}

CHECK_TEST (test_zero_bytes_in_a_header_are_refused)
{
  static const struct {
    const gchar *header;
    gsize size;
  } cases[] = {
      {CONTENT ("\0")},
      {CONTENT ("{\0}")},
      {CONTENT ("{'descr': \0")},
      {CONTENT ("{'descr': '\0u1'}")},
      {CONTENT ("{'shape': (\0,)}")},
      {CONTENT ("{'descr': '|u1', 'fortran_order': False, 'shape': ()}\0")},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GString) file =
        make_file (1, cases[i].header, cases[i].size, "1", 1);
    g_autoptr (GError) error = NULL;

    fail_unless (gst_imaging_npy_parse (
                     (guint8 *) file->str, file->len, "a.npy", &error) == NULL);
    fail_unless (g_utf8_validate (error->message, -1, NULL));
  }
}

CHECK_TEST (test_other_types_and_orders_are_refused_with_advice)
{
  static const struct {
    const gchar *header, *words;
  } cases[] = {
      {"{'descr': '<u3'}", "the type \"<u3\", expected is one of bool, u1"},
      {"{'descr': '<f16'}", "array.astype"},
      {"{'descr': '|i2'}", "the type \"|i2\""},
      {"{'descr': '|f8'}", "the type \"|f8\""},
      {"{'descr': '=f8'}", "the type \"=f8\""},
      {"{'descr': 'f8'}", "the type \"f8\""},
      {"{'descr': '<u22'}", "the type \"<u22\""},
      {"{'descr': ''}", "expected is one of"},
      {"{'descr': '<'}", "the type \"<\""},
      {"{'descr': '|O'}", "Python objects"},
      {"{'descr': '|S5'}", "holds text"},
      {"{'descr': '<U5'}", "holds text"},
      {"{'descr': [('x', '<f4')]}", "structured array"},
      {"{'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}", "at most 8"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_header_refused (cases[i].header,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED, cases[i].words);
}

/* numpy.asfortranarray (numpy.arange (6, dtype='u1').reshape (2, 3)) */
static const gchar golden_fortran[] =
    "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': True, 'sha"
    "pe': (2, 3), }                                                    "
    "       \012\000\003\001\004\002\005";

CHECK_TEST (test_fortran_order_becomes_c_order)
{
  g_autofree gchar *path = write_file ("f.npy", CONTENT (golden_fortran));
  g_autoptr (GError) error = NULL;
  GstImagingNdArray *npy = parse (CONTENT (golden_fortran));

  fail_unless (memcmp (npy->data, "\0\1\2\3\4\5", 6) == 0);
  gst_imaging_nd_array_free (npy);
  npy = gst_imaging_npy_load (path, NULL);
  fail_unless (memcmp (npy->data, "\0\1\2\3\4\5", 6) == 0);
  gst_imaging_nd_array_free (npy);
  /* it cannot be read in pieces */
  fail_unless (gst_imaging_npy_open_header (path, NULL, &error) == NULL);
  fail_unless (error->code == GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED);
  fail_unless (strstr (error->message, "numpy.ascontiguousarray") != NULL);
  g_unlink (path);
}

CHECK_TEST (test_shapes_that_overflow_are_refused)
{
  static const gchar *shapes[] = {
      "(4294967296, 4294967296)",
      "(9223372036854775807,)", /* fits, its bytes do not */
      "(1152921504606846976,)", /* 2^63 bytes */
      /* 2^64 bytes and 0 bytes are the same in 64 bits */
      "(2147483648, 2147483648, 4)",
      /* nothing, but its frames overflow */
      "(0, 4294967296, 4294967296)",
      "(4294967296, 0, 4294967296)",
  };

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_autofree gchar *header = g_strdup_printf (
        "{'descr': '<f8', 'fortran_order': False, 'shape': %s}", shapes[i]);

    assert_header_refused (
        header, GST_IMAGING_ND_ARRAY_ERROR_SIZE, "no file is that large");
  }
  assert_header_refused ("{'descr': '<f8', 'fortran_order': False, "
                         "'shape': (1152921504606846975,)}",
      GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      "has 8 bytes after the header, expected are 9223372036854775800");
}

CHECK_TEST (test_truncated_and_trailing_bytes_are_refused_with_both_numbers)
{
  static const struct {
    gint n;
    const gchar *words;
  } cases[] = {
      {0, "truncated: it has 0 bytes after the header, expected are 6"},
      {5, "truncated: it has 5 bytes after the header, expected are 6"},
      {7, "trailing bytes: it has 7 bytes after the header, expected are 6 "
          "for u8 [2, 3]"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *content = g_malloc0 (sizeof (golden_u8) + 1);
    gsize size = sizeof (golden_u8) - 1 - 6 + cases[i].n;
    g_autofree gchar *path = NULL;
    GError *error = NULL;

    memcpy (content, golden_u8, sizeof (golden_u8));
    assert_refused (
        content, size, GST_IMAGING_ND_ARRAY_ERROR_SIZE, cases[i].words);
    path = write_file ("array.npy", content, size);
    fail_unless (gst_imaging_npy_load (path, &error) == NULL);
    assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE, cases[i].words);
    error = NULL;
    fail_unless (gst_imaging_npy_open_header (path, NULL, &error) == NULL);
    assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE, cases[i].words);
  }
}

CHECK_TEST (test_a_file_cut_at_any_byte_is_refused)
{
  for (gsize size = 0; size < sizeof (golden_f64_big) - 1; size++) {
    gint code = size < 6 ? GST_IMAGING_ND_ARRAY_ERROR_FORMAT
                         : GST_IMAGING_ND_ARRAY_ERROR_SIZE;
    g_autofree gchar *path = write_file ("cut.npy", golden_f64_big, size);
    GError *error = NULL;

    assert_refused (golden_f64_big, size, code, " ");
    fail_unless (gst_imaging_npy_load (path, &error) == NULL);
    assert_error (error, code, "cut.npy");
  }
}

CHECK_TEST (test_only_real_values_become_doubles)
{
  g_autoptr (GstImagingNdArray) npy = parse (CONTENT (golden_complex64_big));
  g_autofree gchar *path = write_file ("a.npy", CONTENT (golden_u8));
  GError *error = NULL;

  fail_unless (gst_imaging_nd_array_to_double (npy, NULL, &error) == NULL);
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE, "complex numbers");
  gst_imaging_nd_array_free (npy);

  error = NULL;
  npy = gst_imaging_npy_open_header (path, NULL, NULL);
  fail_unless (gst_imaging_nd_array_to_double (npy, NULL, &error) == NULL);
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE, "only its header");
}

/* --- files --- */

CHECK_TEST (test_a_header_alone_gives_access_to_any_piece)
{
  g_autofree gchar *path = write_file ("a.npy", CONTENT (golden_u16_big));
  g_autoptr (GstImagingNdArray) npy = NULL;
  GError *error = NULL;
  guint16 values[2];
  gint fd = -1;

  npy = gst_imaging_npy_open_header (path, &fd, &error);
  fail_unless (npy != NULL && fd >= 0);
  fail_unless (npy->data == NULL);
  fail_unless (gst_imaging_nd_array_get_bytes (npy) == NULL);
  fail_unless_equals_string (npy->name, path);
  assert_shape (npy, "u16 [1, 3]");

  fail_unless (gst_imaging_npy_read_values (npy, fd, 1, 2, values, &error));
  fail_unless_equals_int (values[0], 258);
  fail_unless_equals_int (values[1], 65535);
  fail_unless (gst_imaging_npy_read_values (npy, fd, 0, 1, values, &error));
  fail_unless_equals_int (values[0], 1);
  fail_unless (gst_imaging_npy_read_values (npy, fd, 3, 0, NULL, &error));

  fail_unless_equals_int (truncate (path, 128 + 5), 0);
  fail_if (gst_imaging_npy_read_values (npy, fd, 1, 2, values, &error));
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      "it has 5 bytes after the header, expected are 6");
  close (fd);
}

CHECK_TEST (test_what_cannot_be_opened_is_told_apart)
{
  g_autofree gchar *missing = check_path_of ("missing.npy");
  g_autofree gchar *fifo = check_path_of ("fifo.npy");
  GError *error = NULL;

  fail_unless (gst_imaging_npy_load (missing, &error) == NULL);
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND, "missing.npy");
  error = NULL;
  fail_unless (gst_imaging_npy_load (check_folder (), &error) == NULL);
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_OPEN, "is a folder");
  error = NULL;
  fail_unless_equals_int (mkfifo (fifo, 0600), 0);
  fail_unless (gst_imaging_npy_load (fifo, &error) == NULL); /* must not wait */
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_OPEN, "pipe or device");
}

/* Who saves to /dev/null as root would otherwise be left without it. */
CHECK_TEST (test_a_save_does_not_replace_a_pipe_or_device)
{
  static const guint64 dims[] = {2, 3};
  g_autofree gchar *fifo = check_path_of ("fifo");
  GError *error = NULL;
  struct stat info;

  fail_unless_equals_int (mkfifo (fifo, 0600), 0);
  fail_if (gst_imaging_npy_save (
      fifo, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, "123456", &error));
  assert_error (
      error, GST_IMAGING_ND_ARRAY_ERROR_WRITE, "it is a pipe or device");
  fail_unless (stat (fifo, &info) == 0 && S_ISFIFO (info.st_mode));
  fail_unless_equals_int (count_files (), 1);
}

CHECK_TEST (test_a_failed_save_leaves_nothing_and_says_why)
{
  static const guint64 dims[] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  static const guint64 huge[] = {G_MAXUINT64, 2};
  g_autofree gchar *nowhere = check_path_of ("nowhere/array.npy");
  g_autofree gchar *path = write_file ("old.npy", CONTENT (golden_u8));
  g_autofree gchar *content = NULL;
  GError *error = NULL;

  fail_if (gst_imaging_npy_save (
      nowhere, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, "123456", &error));
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_WRITE, "nowhere/array.npy");
  error = NULL; /* a folder is in the way: fails after all is written */
  fail_if (gst_imaging_npy_save (check_folder (), GST_IMAGING_ND_ARRAY_TYPE_U8,
      2, dims, "123456", &error));
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_WRITE, "cannot be written");
  error = NULL;
  fail_if (gst_imaging_npy_save (path, 99, 2, dims, "123456", &error));
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE, "99 is no type");
  error = NULL;
  fail_if (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_U8, 9, dims, "123456", &error));
  assert_error (error, GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED, "9 dimensions");
  error = NULL;
  fail_if (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, huge, "123456", &error));
  assert_error (
      error, GST_IMAGING_ND_ARRAY_ERROR_SIZE, "no file is that large");

  fail_unless_equals_int (count_files (), 1);
  fail_unless (g_file_get_contents (path, &content, NULL, NULL));
  fail_unless (memcmp (content, golden_u8, sizeof (golden_u8) - 1) == 0);
  { /* the temporary file beside the folder is gone, too */
    g_autofree gchar *parent = g_path_get_dirname (check_folder ());
    g_autofree gchar *prefix =
        g_strconcat (strrchr (check_folder (), '/') + 1, ".", NULL);
    g_autoptr (GDir) dir = g_dir_open (parent, 0, NULL);
    const gchar *name;

    while ((name = g_dir_read_name (dir)))
      fail_if (g_str_has_prefix (name, prefix), "%s is left", name);
  }
}

/* --- the boxed type --- */

CHECK_TEST (test_copies_share_their_values_and_outlive_the_original)
{
  GstImagingNdArray *npy = parse (CONTENT (golden_u8));
  GstImagingNdArray *copy = g_boxed_copy (GST_TYPE_IMAGING_ND_ARRAY, npy);
  g_autoptr (GBytes) bytes = NULL;

  fail_unless (copy->data == npy->data);
  gst_imaging_nd_array_free (npy);
  assert_shape (copy, "u8 [2, 3]");
  fail_unless_equals_string (copy->name, "a.npy");
  bytes = gst_imaging_nd_array_get_bytes (copy);
  g_boxed_free (GST_TYPE_IMAGING_ND_ARRAY, copy);
  fail_unless_equals_uint64 (g_bytes_get_size (bytes), 6);
  fail_unless_equals_int (
      ((const guint8 *) g_bytes_get_data (bytes, NULL))[5], 255);
  gst_imaging_nd_array_free (NULL);
}

CHECK_TEST (test_names_and_sizes_of_what_is_no_type)
{
  fail_unless_equals_string (gst_imaging_nd_array_type_name (99), "?");
  fail_unless_equals_uint64 (gst_imaging_nd_array_type_size (99), 0);
}
