/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingnpyheader.h"

#include <string.h>

/* numpy/lib/_format_impl.py describes the format: magic, version, length of
 * the header, header (the text of a Python dict), values. */
#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6

/* numpy refuses 10000 and more; a length that big is no header */
#define MAX_HEADER_SIZE 65535

/* numpy.save () aligns the values, and leaves room in the header to grow the
 * first dimension in place; so do we, to write the same bytes */
#define DATA_ALIGN 64
#define FIRST_DIM_DIGITS 21

/* White space before the last line end, where numpy has a space: frames are
 * being appended, or were when the process ended. numpy reads both. */
#define GROWING '\t'

typedef struct {
  const gchar *name;
  const gchar *start, *at, *end;
} Scanner;

/* A piece of untrusted text that can be shown. */
static gchar *
excerpt (const gchar *at, const gchar *end)
{
  gchar bytes[17];
  gsize size = MIN ((gsize) (end - at), sizeof (bytes) - 1);
  g_autofree gchar *escaped = NULL;

  if (size == 0)
    return g_strdup ("its end");
  for (gsize i = 0; i < size; i++)
    bytes[i] = at[i] ? at[i] : ' '; /* a NUL would end the text */
  bytes[size] = '\0';
  escaped = g_strescape (bytes, NULL);
  return g_strdup_printf ("\"%s\"", escaped);
}

static gboolean
fail_malformed (Scanner *s, const gchar *expected, GError **error)
{
  g_autofree gchar *found = excerpt (s->at, s->end);

  return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "\"%s\" has a malformed .npy header: at character %u there is %s, "
      "expected is %s.",
      s->name, (guint) (s->at - s->start), found, expected);
}

static void
skip_space (Scanner *s)
{
  while (s->at < s->end && g_ascii_isspace (*s->at))
    s->at++;
}

/* Takes @c and the white space before it, if @c is next. */
static gboolean
accept (Scanner *s, gchar c)
{
  skip_space (s);
  if (s->at == s->end || *s->at != c)
    return FALSE;
  s->at++;
  return TRUE;
}

static gboolean
accept_word (Scanner *s, const gchar *word)
{
  gsize size = strlen (word);

  skip_space (s);
  if ((gsize) (s->end - s->at) < size || memcmp (s->at, word, size) != 0)
    return FALSE;
  if ((gsize) (s->end - s->at) > size && g_ascii_isalnum (s->at[size]))
    return FALSE;
  s->at += size;
  return TRUE;
}

/* What stands in the quotes; numpy escapes nothing in what we accept. */
static gboolean
scan_string (Scanner *s, const gchar *expected, const gchar **text, gsize *size,
    GError **error)
{
  const gchar *close;

  skip_space (s);
  if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
    return fail_malformed (s, expected, error);
  close = memchr (s->at + 1, *s->at, s->end - s->at - 1);
  if (!close)
    return fail_malformed (s, "a string with a closing quote", error);
  *text = s->at + 1;
  *size = close - *text;
  s->at = close + 1;
  return TRUE;
}

static gboolean
is_text (const gchar *text, gsize size, const gchar *expected)
{
  return size == strlen (expected) && memcmp (text, expected, size) == 0;
}

static gboolean
fail_type (
    const gchar *name, const gchar *text, const gchar *end, GError **error)
{
  g_autofree gchar *found = excerpt (text, end);
  gchar kind = end - text >= 2 ? text[1] : '\0';

  if (kind == 'O')
    return gst_imaging_nd_array_fail (error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "\"%s\" holds Python objects (type %s), which are never read here; "
        "expected are numbers. Save it from numpy as "
        "array.astype(numpy.float64).",
        name, found);
  if (kind == 'S' || kind == 'U' || kind == 'a')
    return gst_imaging_nd_array_fail (error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "\"%s\" holds text (type %s), expected are numbers.", name, found);
  return gst_imaging_nd_array_fail (error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "\"%s\" holds values of the type %s, expected is one of bool, u1, u2, u4, "
      "u8, i1, i2, i4, i8, f2, f4, f8, c8, c16, as far as the reader takes them. Save "
      "it from numpy with array.astype(...).",
      name, found);
}

static gboolean
scan_type (Scanner *s, GstImagingNdArray *npy, GError **error)
{
  const gchar *text;
  gsize size;

  skip_space (s);
  if (s->at < s->end && memchr ("[({", *s->at, 3))
    return gst_imaging_nd_array_fail (error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "\"%s\" holds a structured array, expected is an array of plain "
        "numbers. Save its fields one by one.",
        s->name);
  if (!scan_string (s, "a type like '<f8'", &text, &size, error))
    return FALSE;

  if (size > 0 && memchr ("<>|", text[0], 3)) {
    for (guint i = 0; i < GST_IMAGING_ND_ARRAY_N_TYPES; i++) {
      gboolean one_byte = gst_imaging_nd_array_types[i].size == 1;

      /* '|' says that there is no byte order */
      if (!is_text (text + 1, size - 1, gst_imaging_nd_array_types[i].code) ||
          (text[0] == '|' && !one_byte))
        continue;
      npy->type = i;
      npy->big_endian = text[0] == '>' && !one_byte;
      return TRUE;
    }
  }
  return fail_type (s->name, text, text + size, error);
}

static gboolean
scan_dim (Scanner *s, guint64 *dim, GError **error)
{
  guint64 value = 0;
  const gchar *first;

  skip_space (s);
  if (s->at < s->end && *s->at == '-')
    return fail_malformed (s, "a dimension that is not negative", error);
  for (first = s->at; s->at < s->end && g_ascii_isdigit (*s->at); s->at++) {
    /* 10 times this does not overflow, and more digits follow 2^63 - 1 */
    if (value > G_MAXINT64 / 10)
      break;
    value = 10 * value + (*s->at - '0');
  }
  if (s->at == first)
    return fail_malformed (s, "a dimension, or ')'", error);
  if (value > G_MAXINT64 || (s->at < s->end && g_ascii_isdigit (*s->at))) {
    s->at = first;
    return fail_malformed (s, "a dimension below 2^63", error);
  }
  if (s->at - first > 1 && *first == '0') { /* no number in Python 3 either */
    s->at = first;
    return fail_malformed (s, "a dimension without leading zeros", error);
  }
  *dim = value;
  return TRUE;
}

static gboolean
scan_shape (Scanner *s, GstImagingNdArray *npy, GError **error)
{
  gboolean comma = TRUE;

  if (!accept (s, '('))
    return fail_malformed (s, "a shape like (480, 640)", error);
  while (!accept (s, ')')) {
    guint64 dim = 0;

    if (!comma)
      return fail_malformed (s, "',' or ')'", error);
    if (!scan_dim (s, &dim, error))
      return FALSE;
    if (npy->n_dims == GST_IMAGING_ND_ARRAY_MAX_DIMS)
      return gst_imaging_nd_array_fail (error,
          GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
          "\"%s\" has more than %d dimensions, expected are at most %d.",
          s->name, GST_IMAGING_ND_ARRAY_MAX_DIMS,
          GST_IMAGING_ND_ARRAY_MAX_DIMS);
    npy->dims[npy->n_dims++] = dim;
    comma = accept (s, ',');
  }
  if (npy->n_dims == 1 && !comma) { /* (3) is a number in Python */
    s->at--;
    return fail_malformed (s, "',' after the only dimension", error);
  }
  return TRUE;
}

typedef enum {
  KEY_DESCR = 1 << 0,
  KEY_FORTRAN_ORDER = 1 << 1,
  KEY_SHAPE = 1 << 2,
} Key;

static const struct {
  const gchar *name;
  Key key;
} keys[] = {
    {"descr", KEY_DESCR},
    {"fortran_order", KEY_FORTRAN_ORDER},
    {"shape", KEY_SHAPE},
};

static gboolean
scan_key (Scanner *s, guint *seen, Key *key, GError **error)
{
  static const gchar expected[] =
      "'descr', 'fortran_order' or 'shape', each once";
  const gchar *text;
  gsize size;

  if (!scan_string (s, expected, &text, &size, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    if (!is_text (text, size, keys[i].name) || (*seen & keys[i].key))
      continue;
    *seen |= *key = keys[i].key;
    return accept (s, ':') ? TRUE : fail_malformed (s, "':'", error);
  }
  s->at = text - 1;
  return fail_malformed (s, expected, error);
}

/* Fills type, byte order and dimensions. */
static gboolean
scan_dict (Scanner *s, GstImagingNdArray *npy, GError **error)
{
  gboolean fortran_order = FALSE, comma = TRUE;
  guint seen = 0;
  Key key = 0;

  if (!accept (s, '{'))
    return fail_malformed (s, "'{'", error);
  while (!accept (s, '}')) {
    if (!comma)
      return fail_malformed (s, "',' or '}'", error);
    if (!scan_key (s, &seen, &key, error))
      return FALSE;
    if (key == KEY_DESCR && !scan_type (s, npy, error))
      return FALSE;
    if (key == KEY_SHAPE && !scan_shape (s, npy, error))
      return FALSE;
    if (key == KEY_FORTRAN_ORDER) {
      fortran_order = accept_word (s, "True");
      if (!fortran_order && !accept_word (s, "False"))
        return fail_malformed (s, "True or False", error);
    }
    comma = accept (s, ',');
  }
  skip_space (s);
  if (s->at != s->end)
    return fail_malformed (s, "nothing but white space after '}'", error);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (!(seen & keys[i].key))
      return gst_imaging_nd_array_fail (error,
          GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
          "\"%s\" has no '%s' in its .npy header, expected are 'descr', "
          "'fortran_order' and 'shape'.",
          s->name, keys[i].name);
  /* one dimension reads the same in both orders */
  npy->fortran_order = fortran_order && npy->n_dims > 1;
  return TRUE;
}

gsize
gst_imaging_npy_parse_preamble (const guint8 *bytes, gsize size,
    const gchar *name, gsize *header_size, GError **error)
{
  gsize preamble_size;

  if (size == 0)
    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "\"%s\" is empty. Write it with numpy.save().", name);
  if (size < MAGIC_SIZE || memcmp (bytes, MAGIC, MAGIC_SIZE) != 0) {
    g_autofree gchar *found =
        excerpt ((const gchar *) bytes, (const gchar *) bytes + MIN (size, 6));

    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "\"%s\" is no .npy file: it starts with %s, expected is "
        "\"\\223NUMPY\". Write it with numpy.save().",
        name, found);
  }
  if (size >= 8 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "\"%s\" has the .npy version %u.%u, expected is 1.0, 2.0 or 3.0.", name,
        bytes[6], bytes[7]);
  preamble_size = size > 6 && bytes[6] == 1 ? 10 : GST_IMAGING_NPY_MAX_PREAMBLE;
  if (size < preamble_size)
    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "\"%s\" is truncated: it ends after %" G_GSIZE_FORMAT
        " bytes, expected are %" G_GSIZE_FORMAT " before the header.",
        name, size, preamble_size);

  *header_size = bytes[8] | bytes[9] << 8;
  if (preamble_size == GST_IMAGING_NPY_MAX_PREAMBLE)
    *header_size |= (gsize) bytes[10] << 16 | (gsize) bytes[11] << 24;
  if (*header_size > MAX_HEADER_SIZE)
    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "\"%s\" claims a header of %" G_GSIZE_FORMAT
        " bytes, expected are at most %d.",
        name, *header_size, MAX_HEADER_SIZE);
  return preamble_size;
}

GstImagingNdArray *
gst_imaging_npy_parse_header (const gchar *header, gsize header_size,
    guint64 data_offset, guint64 file_size, const gchar *name, GError **error)
{
  g_autoptr (GstImagingNdArray) npy = g_new0 (GstImagingNdArray, 1);
  Scanner s = {name, header, header, header + header_size};
  guint64 expected, found = file_size - data_offset;
  gboolean is_growing;

  npy->name = g_strdup (name);
  npy->data_offset = data_offset;
  if (!scan_dict (&s, npy, error) ||
      !gst_imaging_nd_array_count_values (
          name, npy->type, npy->n_dims, npy->dims, &npy->n_values, error))
    return NULL;
  for (guint i = npy->n_dims; i < GST_IMAGING_ND_ARRAY_MAX_DIMS; i++)
    npy->dims[i] = 1;

  expected = npy->n_values * gst_imaging_nd_array_types[npy->type].size;
  is_growing = header_size >= 2 && header[header_size - 2] == GROWING;
  if (found < expected || (found > expected && !is_growing)) {
    g_autofree gchar *shape = gst_imaging_nd_array_describe (npy);

    gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "\"%s\" %s: it has %" G_GUINT64_FORMAT
        " bytes after the header, expected are %" G_GUINT64_FORMAT " for %s.",
        name, found < expected ? "is truncated" : "has trailing bytes", found,
        expected, shape);
    return NULL;
  }
  return g_steal_pointer (&npy);
}

void
gst_imaging_npy_fail_truncated (
    const gchar *name, guint64 file_size, guint64 data_offset, GError **error)
{
  gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      "\"%s\" is truncated: it ends after %" G_GUINT64_FORMAT
      " bytes, expected are %" G_GUINT64_FORMAT " for the header alone.",
      name, file_size, data_offset);
}

static void
set_size (GString *text)
{
  gsize size = text->len - 10;

  text->str[8] = size & 0xff;
  text->str[9] = size >> 8;
}

GString *
gst_imaging_npy_format_header (
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims)
{
  GString *text = g_string_new (MAGIC "\x01");

  g_string_append_len (text, "\0\0\0", 3); /* minor version, length */
  g_string_append_printf (text,
      "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
      gst_imaging_nd_array_types[type].size == 1 ? '|'
      : G_BYTE_ORDER == G_BIG_ENDIAN             ? '>'
                                                 : '<',
      gst_imaging_nd_array_types[type].code);
  for (guint i = 0; i < n_dims; i++)
    g_string_append_printf (
        text, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "", dims[i]);
  g_string_append (text, n_dims == 1 ? ",), }" : "), }");
  if (n_dims > 0) {
    gchar digits[24];

    g_snprintf (digits, sizeof (digits), "%" G_GUINT64_FORMAT, dims[0]);
    for (gsize i = strlen (digits); i < FIRST_DIM_DIGITS; i++)
      g_string_append_c (text, ' ');
  }
  do
    g_string_append_c (text, ' ');
  while ((text->len + 1) % DATA_ALIGN != 0);
  g_string_append_c (text, '\n');
  set_size (text);
  return text;
}

GString *
gst_imaging_npy_format_growing_header (GstImagingNdArrayType type, guint n_dims,
    const guint64 *dims, gsize size, gboolean growing)
{
  GString *text = gst_imaging_npy_format_header (type, n_dims, dims);
  gsize used = text->len - 1, room = size > 0 ? size : text->len;

  while (text->str[used - 1] == ' ')
    used--;
  if (used + 2 > room || room > G_MAXUINT16) {
    g_string_free (text, TRUE);
    return NULL;
  }
  g_string_truncate (text, used);
  while (text->len < room)
    g_string_append_c (text, ' ');
  text->str[room - 1] = '\n';
  if (growing)
    text->str[room - 2] = GROWING;
  set_size (text);
  return text;
}
