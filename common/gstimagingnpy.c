/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingnpy.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "files/gstimagingfile.h"

/* numpy/lib/_format_impl.py describes the format: magic, version, length of
 * the header, header (the text of a Python dict), values. */
#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define MAX_PREAMBLE_SIZE 12

/* numpy refuses 10000 and more; a length that big is no header */
#define MAX_HEADER_SIZE 65535

/* numpy.save () aligns the values, and leaves room in the header to grow the
 * first dimension in place; so do we, to write the same bytes */
#define DATA_ALIGN 64
#define FIRST_DIM_DIGITS 21

static const struct {
  const gchar *name;
  const gchar *code; /* what follows the byte order in the header */
  guint size;
  guint n_parts; /* 2 for complex: what is swapped is a part */
} types[] = {
    [GST_IMAGING_NPY_TYPE_U8] = {"u8", "u1", 1, 1},
    [GST_IMAGING_NPY_TYPE_U16] = {"u16", "u2", 2, 1},
    [GST_IMAGING_NPY_TYPE_I16] = {"i16", "i2", 2, 1},
    [GST_IMAGING_NPY_TYPE_F32] = {"f32", "f4", 4, 1},
    [GST_IMAGING_NPY_TYPE_F64] = {"f64", "f8", 8, 1},
    [GST_IMAGING_NPY_TYPE_COMPLEX64] = {"complex64", "c8", 8, 2},
    [GST_IMAGING_NPY_TYPE_COMPLEX128] = {"complex128", "c16", 16, 2},
    [GST_IMAGING_NPY_TYPE_BOOL] = {"bool", "b1", 1, 1},
    [GST_IMAGING_NPY_TYPE_I32] = {"i32", "i4", 4, 1},
    [GST_IMAGING_NPY_TYPE_U32] = {"u32", "u4", 4, 1},
    [GST_IMAGING_NPY_TYPE_I64] = {"i64", "i8", 8, 1},
    [GST_IMAGING_NPY_TYPE_F16] = {"f16", "f2", 2, 1},
};

G_DEFINE_BOXED_TYPE (GstImagingNpy, gst_imaging_npy,
    (GBoxedCopyFunc) gst_imaging_npy_copy,
    (GBoxedFreeFunc) gst_imaging_npy_free)

GQuark
gst_imaging_npy_error_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-npy-error-quark");
}

static gboolean fail (GError **error, GstImagingNpyError code,
    const gchar *format, ...) G_GNUC_PRINTF (3, 4);

/* Returns: FALSE, so that a failure is one `return` */
static gboolean
fail (GError **error, GstImagingNpyError code, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  if (error)
    *error = g_error_new_valist (GST_IMAGING_NPY_ERROR, code, format, args);
  va_end (args);
  return FALSE;
}

gsize
gst_imaging_npy_type_size (GstImagingNpyType type)
{
  return (guint) type < G_N_ELEMENTS (types) ? types[type].size : 0;
}

const gchar *
gst_imaging_npy_type_name (GstImagingNpyType type)
{
  return (guint) type < G_N_ELEMENTS (types) ? types[type].name : "?";
}

static gchar *
describe (GstImagingNpyType type, guint n_dims, const guint64 *dims)
{
  GString *text = g_string_new (gst_imaging_npy_type_name (type));

  g_string_append (text, " [");
  for (guint i = 0; i < n_dims; i++)
    g_string_append_printf (
        text, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "", dims[i]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

gchar *
gst_imaging_npy_describe (const GstImagingNpy *npy)
{
  g_return_val_if_fail (npy, NULL);
  return describe (npy->type, npy->n_dims, npy->dims);
}

/* Multiplies the dimensions. The product of those that are not 0 must fit into
 * 63 bits of bytes, as in numpy, so that the bytes of any sub-array do. */
static gboolean
count_values (const gchar *name, GstImagingNpyType type, guint n_dims,
    const guint64 *dims, guint64 *n_values, GError **error)
{
  guint64 n_bytes = types[type].size;
  gboolean empty = FALSE;

  for (guint i = 0; i < n_dims; i++) {
    guint64 dim = dims[i];

    if (dim == 0) {
      empty = TRUE;
      continue;
    }
    if (!g_uint64_checked_mul (&n_bytes, n_bytes, dim) ||
        n_bytes > G_MAXINT64) {
      g_autofree gchar *shape = describe (type, n_dims, dims);

      return fail (error, GST_IMAGING_NPY_ERROR_SIZE,
          "\"%s\" has the shape %s, which needs more than %" G_GINT64_FORMAT
          " bytes; no file is that large.",
          name, shape, G_MAXINT64);
    }
  }
  *n_values = empty ? 0 : n_bytes / types[type].size;
  return TRUE;
}

/* --- the header --- */

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

  return fail (error, GST_IMAGING_NPY_ERROR_FORMAT,
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
    return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
        "\"%s\" holds Python objects (type %s), which are never read here; "
        "expected are numbers. Save it from numpy as "
        "array.astype(numpy.float64).",
        name, found);
  if (kind == 'S' || kind == 'U' || kind == 'a')
    return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
        "\"%s\" holds text (type %s), expected are numbers.", name, found);
  return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
      "\"%s\" holds values of the type %s, expected is one of bool, u1, u2, u4, "
      "i2, i4, i8, f2, f4, f8, c8, c16, as far as the reader takes them. Save "
      "it from numpy with array.astype(...).",
      name, found);
}

static gboolean
scan_type (Scanner *s, GstImagingNpy *npy, GError **error)
{
  const gchar *text;
  gsize size;

  skip_space (s);
  if (s->at < s->end && memchr ("[({", *s->at, 3))
    return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
        "\"%s\" holds a structured array, expected is an array of plain "
        "numbers. Save its fields one by one.",
        s->name);
  if (!scan_string (s, "a type like '<f8'", &text, &size, error))
    return FALSE;

  if (size > 0 && memchr ("<>|", text[0], 3)) {
    for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
      gboolean one_byte = types[i].size == 1;

      /* '|' says that there is no byte order */
      if (!is_text (text + 1, size - 1, types[i].code) ||
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
scan_shape (Scanner *s, GstImagingNpy *npy, GError **error)
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
    if (npy->n_dims == GST_IMAGING_NPY_MAX_DIMS)
      return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
          "\"%s\" has more than %d dimensions, expected are at most %d.",
          s->name, GST_IMAGING_NPY_MAX_DIMS, GST_IMAGING_NPY_MAX_DIMS);
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
scan_dict (Scanner *s, GstImagingNpy *npy, GError **error)
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
      return fail (error, GST_IMAGING_NPY_ERROR_FORMAT,
          "\"%s\" has no '%s' in its .npy header, expected are 'descr', "
          "'fortran_order' and 'shape'.",
          s->name, keys[i].name);
  /* one dimension reads the same in both orders */
  if (fortran_order && npy->n_dims > 1)
    return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
        "\"%s\" is stored in Fortran order (columns first), expected is C "
        "order. Save it from numpy as numpy.ascontiguousarray(array).",
        s->name);
  return TRUE;
}

/* Reads magic, version and length. @size: what there is of the first
 * MAX_PREAMBLE_SIZE bytes.
 * Returns: where the header starts, 0 on failure */
static gsize
parse_preamble (const guint8 *bytes, gsize size, const gchar *name,
    gsize *header_size, GError **error)
{
  gsize preamble_size;

  if (size == 0)
    return fail (error, GST_IMAGING_NPY_ERROR_FORMAT,
        "\"%s\" is empty. Write it with numpy.save().", name);
  if (size < MAGIC_SIZE || memcmp (bytes, MAGIC, MAGIC_SIZE) != 0) {
    g_autofree gchar *found =
        excerpt ((const gchar *) bytes, (const gchar *) bytes + MIN (size, 6));

    return fail (error, GST_IMAGING_NPY_ERROR_FORMAT,
        "\"%s\" is no .npy file: it starts with %s, expected is "
        "\"\\223NUMPY\". Write it with numpy.save().",
        name, found);
  }
  if (size >= 8 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
    return fail (error, GST_IMAGING_NPY_ERROR_FORMAT,
        "\"%s\" has the .npy version %u.%u, expected is 1.0, 2.0 or 3.0.", name,
        bytes[6], bytes[7]);
  preamble_size = size > 6 && bytes[6] == 1 ? 10 : MAX_PREAMBLE_SIZE;
  if (size < preamble_size)
    return fail (error, GST_IMAGING_NPY_ERROR_SIZE,
        "\"%s\" is truncated: it ends after %" G_GSIZE_FORMAT
        " bytes, expected are %" G_GSIZE_FORMAT " before the header.",
        name, size, preamble_size);

  *header_size = bytes[8] | bytes[9] << 8;
  if (preamble_size == MAX_PREAMBLE_SIZE)
    *header_size |= (gsize) bytes[10] << 16 | (gsize) bytes[11] << 24;
  if (*header_size > MAX_HEADER_SIZE)
    return fail (error, GST_IMAGING_NPY_ERROR_FORMAT,
        "\"%s\" claims a header of %" G_GSIZE_FORMAT
        " bytes, expected are at most %d.",
        name, *header_size, MAX_HEADER_SIZE);
  return preamble_size;
}

/* Reads the text of the header.
 * @file_size: of the whole file, compared with what the header promises */
static GstImagingNpy *
parse_header (const gchar *header, gsize header_size, guint64 data_offset,
    guint64 file_size, const gchar *name, GError **error)
{
  g_autoptr (GstImagingNpy) npy = g_new0 (GstImagingNpy, 1);
  Scanner s = {name, header, header, header + header_size};
  guint64 expected, found = file_size - data_offset;

  npy->name = g_strdup (name);
  npy->data_offset = data_offset;
  if (!scan_dict (&s, npy, error) ||
      !count_values (
          name, npy->type, npy->n_dims, npy->dims, &npy->n_values, error))
    return NULL;
  for (guint i = npy->n_dims; i < GST_IMAGING_NPY_MAX_DIMS; i++)
    npy->dims[i] = 1;

  expected = npy->n_values * types[npy->type].size;
  if (found != expected) {
    g_autofree gchar *shape = gst_imaging_npy_describe (npy);

    fail (error, GST_IMAGING_NPY_ERROR_SIZE,
        "\"%s\" %s: it has %" G_GUINT64_FORMAT
        " bytes after the header, expected are %" G_GUINT64_FORMAT " for %s.",
        name, found < expected ? "is truncated" : "has trailing bytes", found,
        expected, shape);
    return NULL;
  }
  return g_steal_pointer (&npy);
}

static void
fail_header_truncated (
    const gchar *name, guint64 file_size, guint64 data_offset, GError **error)
{
  fail (error, GST_IMAGING_NPY_ERROR_SIZE,
      "\"%s\" is truncated: it ends after %" G_GUINT64_FORMAT
      " bytes, expected are %" G_GUINT64_FORMAT " for the header alone.",
      name, file_size, data_offset);
}

/* --- the values --- */

static gsize
data_size (const GstImagingNpy *npy)
{
  return npy->n_values * types[npy->type].size;
}

/* From the byte order of the file to that of the machine, in place. */
static void
swap_values (const GstImagingNpy *npy, gpointer values, gsize n_values)
{
  guint part_size = types[npy->type].size / types[npy->type].n_parts;
  gsize n_parts = n_values * types[npy->type].n_parts;
  guint16 *p16 = values;
  guint32 *p32 = values;
  guint64 *p64 = values;

  if (part_size == 1 || npy->big_endian == (G_BYTE_ORDER == G_BIG_ENDIAN))
    return;
  for (gsize i = 0; part_size == 2 && i < n_parts; i++)
    p16[i] = GUINT16_SWAP_LE_BE (p16[i]);
  for (gsize i = 0; part_size == 4 && i < n_parts; i++)
    p32[i] = GUINT32_SWAP_LE_BE (p32[i]);
  for (gsize i = 0; part_size == 8 && i < n_parts; i++)
    p64[i] = GUINT64_SWAP_LE_BE (p64[i]);
}

static void
take_data (GstImagingNpy *npy, gpointer data)
{
  npy->data = data;
  npy->bytes = g_bytes_new_take (data, data_size (npy));
}

/* Returns: memory for @n values of @size bytes; at least one byte, because
 * NULL means failure */
static gpointer
alloc_values (const gchar *name, guint64 n, gsize size, GError **error)
{
  gpointer data = NULL;

  if (n <= G_MAXSIZE / size)
    data = g_try_malloc (MAX (n * size, 1));
  if (!data)
    fail (error, GST_IMAGING_NPY_ERROR_MEMORY,
        "\"%s\" does not fit in memory: expected is room for %" G_GUINT64_FORMAT
        " values of %" G_GSIZE_FORMAT " bytes.",
        name, n, size);
  return data;
}

GstImagingNpy *
gst_imaging_npy_parse (
    const guint8 *bytes, gsize size, const gchar *name, GError **error)
{
  g_autoptr (GstImagingNpy) npy = NULL;
  gsize preamble_size, header_size, data_offset;
  gpointer data;

  g_return_val_if_fail (bytes || size == 0, NULL);
  g_return_val_if_fail (name, NULL);

  preamble_size = parse_preamble (
      bytes, MIN (size, MAX_PREAMBLE_SIZE), name, &header_size, error);
  if (preamble_size == 0)
    return NULL;
  data_offset = preamble_size + header_size;
  if (data_offset > size) {
    fail_header_truncated (name, size, data_offset, error);
    return NULL;
  }
  npy = parse_header ((const gchar *) bytes + preamble_size, header_size,
      data_offset, size, name, error);
  if (!npy)
    return NULL;
  data = alloc_values (name, npy->n_values, types[npy->type].size, error);
  if (!data)
    return NULL;
  memcpy (data, bytes + data_offset, size - data_offset);
  swap_values (npy, data, npy->n_values);
  take_data (npy, data);
  return g_steal_pointer (&npy);
}

/* --- files --- */

/* Returns: bytes read, fewer than @size at the end of the file; -1 on error */
static gssize
read_at (gint fd, gpointer buffer, gsize size, guint64 offset)
{
  gsize n = 0;

  while (n < size) {
    /* Linux reads at most 2 GiB a call */
    gssize got = pread (fd, (guint8 *) buffer + n, size - n, offset + n);

    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    n += got;
  }
  return n;
}

static gboolean
fail_errno (GError **error, GstImagingNpyError code, const gchar *name,
    const gchar *what, gint number)
{
  return fail (
      error, code, "\"%s\" cannot be %s: %s.", name, what, g_strerror (number));
}

static gboolean
take_error (GError *found, GError **error)
{
  static const GstImagingNpyError codes[] = {
      [GST_IMAGING_FILE_ERROR_NOT_FOUND] = GST_IMAGING_NPY_ERROR_NOT_FOUND,
      [GST_IMAGING_FILE_ERROR_OPEN] = GST_IMAGING_NPY_ERROR_OPEN,
      [GST_IMAGING_FILE_ERROR_SIZE] = GST_IMAGING_NPY_ERROR_SIZE,
      [GST_IMAGING_FILE_ERROR_READ] = GST_IMAGING_NPY_ERROR_READ,
      [GST_IMAGING_FILE_ERROR_WRITE] = GST_IMAGING_NPY_ERROR_WRITE,
  };
  g_autoptr (GError) why = found;

  return fail (error, codes[why->code], "%s", why->message);
}

static GstImagingNpy *
read_header (gint fd, guint64 file_size, const gchar *name, GError **error)
{
  guint8 preamble[MAX_PREAMBLE_SIZE];
  gsize preamble_size, header_size, data_offset;
  g_autofree gchar *header = NULL;
  gssize n = read_at (fd, preamble, sizeof (preamble), 0);

  if (n < 0) {
    fail_errno (error, GST_IMAGING_NPY_ERROR_READ, name, "read", errno);
    return NULL;
  }
  preamble_size = parse_preamble (preamble, n, name, &header_size, error);
  if (preamble_size == 0)
    return NULL;
  data_offset = preamble_size + header_size;
  header = g_malloc (header_size + 1);
  n = read_at (fd, header, header_size, preamble_size);
  if (n < 0) {
    fail_errno (error, GST_IMAGING_NPY_ERROR_READ, name, "read", errno);
    return NULL;
  }
  if ((gsize) n < header_size || file_size < data_offset) {
    fail_header_truncated (name, preamble_size + n, data_offset, error);
    return NULL;
  }
  return parse_header (
      header, header_size, data_offset, file_size, name, error);
}

static GstImagingNpy *
open_header (const gchar *location, guint64 max_size, gint *fd, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);
  GError *why = NULL;
  GstImagingNpy *npy;
  guint64 size;
  gint file = gst_imaging_file_open (location, max_size, &size, &why);

  if (file < 0) {
    take_error (why, error);
    return NULL;
  }
  npy = read_header (file, size, name, error);
  if (npy && fd)
    *fd = file;
  else
    close (file);
  return npy;
}

GstImagingNpy *
gst_imaging_npy_open_header (const gchar *location, gint *fd, GError **error)
{
  g_return_val_if_fail (location, NULL);

  return open_header (location, GST_IMAGING_FILE_MAX_STREAM, fd, error);
}

gboolean
gst_imaging_npy_read_values (const GstImagingNpy *npy, gint fd, guint64 first,
    gsize n, gpointer values, GError **error)
{
  gsize value_size;
  gssize got;

  g_return_val_if_fail (npy, FALSE);
  g_return_val_if_fail (values || n == 0, FALSE);
  g_return_val_if_fail (
      first <= npy->n_values && n <= npy->n_values - first, FALSE);

  value_size = types[npy->type].size;
  got = read_at (
      fd, values, n * value_size, npy->data_offset + first * value_size);
  if (got < 0)
    return fail_errno (
        error, GST_IMAGING_NPY_ERROR_READ, npy->name, "read", errno);
  if ((gsize) got < n * value_size)
    return fail (error, GST_IMAGING_NPY_ERROR_SIZE,
        "\"%s\" was truncated while it was read: it has %" G_GUINT64_FORMAT
        " bytes after the header, expected are %" G_GUINT64_FORMAT ".",
        npy->name, first * value_size + got, (guint64) data_size (npy));
  swap_values (npy, values, n);
  return TRUE;
}

GstImagingNpy *
gst_imaging_npy_load (const gchar *location, GError **error)
{
  g_autoptr (GstImagingNpy) npy = NULL;
  gpointer data;
  gint fd;

  g_return_val_if_fail (location, NULL);

  npy = open_header (location, GST_IMAGING_FILE_MAX_ARRAY, &fd, error);
  if (!npy)
    return NULL;
  data = alloc_values (npy->name, npy->n_values, types[npy->type].size, error);
  if (data &&
      gst_imaging_npy_read_values (npy, fd, 0, npy->n_values, data, error))
    take_data (npy, data);
  else
    g_free (data);
  close (fd);
  return npy->data ? g_steal_pointer (&npy) : NULL;
}

/* Everything before the values, byte for byte as numpy 1.23 and later. */
static GString *
format_header (GstImagingNpyType type, guint n_dims, const guint64 *dims)
{
  GString *text = g_string_new (MAGIC "\x01");
  gsize size;

  g_string_append_len (text, "\0\0\0", 3); /* minor version, length */
  g_string_append_printf (text,
      "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
      types[type].size == 1          ? '|'
      : G_BYTE_ORDER == G_BIG_ENDIAN ? '>'
                                     : '<',
      types[type].code);
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

  size = text->len - 10;
  text->str[8] = size & 0xff;
  text->str[9] = size >> 8;
  return text;
}

gboolean
gst_imaging_npy_save (const gchar *location, GstImagingNpyType type,
    guint n_dims, const guint64 *dims, gconstpointer data, GError **error)
{
  g_autofree gchar *name = NULL;
  g_autoptr (GstImagingSaver) saver = NULL;
  GString *header;
  GError *why = NULL;
  guint64 n_values = 0;
  gboolean ok;

  g_return_val_if_fail (location, FALSE);
  g_return_val_if_fail (dims || n_dims == 0, FALSE);

  name = gst_imaging_file_name (location);
  if ((guint) type >= G_N_ELEMENTS (types))
    return fail (error, GST_IMAGING_NPY_ERROR_TYPE,
        "\"%s\" cannot be written: %d is no type, expected is 0 to %u.", name,
        (gint) type, (guint) G_N_ELEMENTS (types) - 1);
  if (n_dims > GST_IMAGING_NPY_MAX_DIMS)
    return fail (error, GST_IMAGING_NPY_ERROR_UNSUPPORTED,
        "\"%s\" cannot be written with %u dimensions, expected are at most %d.",
        name, n_dims, GST_IMAGING_NPY_MAX_DIMS);
  if (!count_values (name, type, n_dims, dims, &n_values, error))
    return FALSE;
  g_return_val_if_fail (data || n_values == 0, FALSE);

  saver = gst_imaging_saver_new (location, &why);
  header = format_header (type, n_dims, dims);
  ok = saver &&
       gst_imaging_saver_write (saver, header->str, header->len, &why) &&
       gst_imaging_saver_write (
           saver, data, n_values * types[type].size, &why) &&
       gst_imaging_saver_finish (saver, &why);
  g_string_free (header, TRUE);
  return ok || take_error (why, error);
}

/* --- arrays --- */

/* IEEE half: a sign, 5 bits of exponent, 10 of mantissa. */
static gdouble
double_of_half (guint16 half)
{
  gint exponent = half >> 10 & 31, mantissa = half & 1023;
  gdouble value;

  if (exponent == 31)
    value = mantissa ? NAN : INFINITY;
  else if (exponent > 0)
    value = ldexp (1024 + mantissa, exponent - 25);
  else
    value = ldexp (mantissa, -24);
  return half >> 15 ? -value : value;
}

gdouble *
gst_imaging_npy_to_double (
    const GstImagingNpy *npy, gsize *n_values, GError **error)
{
  gdouble *values;

  g_return_val_if_fail (npy, NULL);

  if (!npy->data || types[npy->type].n_parts > 1) {
    fail (error, GST_IMAGING_NPY_ERROR_TYPE,
        "\"%s\" holds %s, expected are real numbers.", npy->name,
        npy->data ? "complex numbers" : "no values, only its header was read");
    return NULL;
  }
  values = alloc_values (npy->name, npy->n_values, sizeof (gdouble), error);
  if (!values)
    return NULL;

#define CONVERT_BY(type_, function) \
  for (gsize i = 0; i < npy->n_values; i++) \
  values[i] = function (((const type_ *) npy->data)[i])
#define CONVERT(type_) CONVERT_BY (type_, )

  switch (npy->type) {
  case GST_IMAGING_NPY_TYPE_U8:
    CONVERT (guint8);
    break;
  case GST_IMAGING_NPY_TYPE_U16:
    CONVERT (guint16);
    break;
  case GST_IMAGING_NPY_TYPE_I16:
    CONVERT (gint16);
    break;
  case GST_IMAGING_NPY_TYPE_F32:
    CONVERT (gfloat);
    break;
  case GST_IMAGING_NPY_TYPE_BOOL:
    CONVERT_BY (guint8, !!);
    break;
  case GST_IMAGING_NPY_TYPE_I32:
    CONVERT (gint32);
    break;
  case GST_IMAGING_NPY_TYPE_U32:
    CONVERT (guint32);
    break;
  case GST_IMAGING_NPY_TYPE_I64:
    CONVERT (gint64);
    break;
  case GST_IMAGING_NPY_TYPE_F16:
    CONVERT_BY (guint16, double_of_half);
    break;
  default:
    CONVERT (gdouble);
    break;
  }
#undef CONVERT
#undef CONVERT_BY

  if (n_values)
    *n_values = npy->n_values;
  return values;
}

GBytes *
gst_imaging_npy_get_bytes (const GstImagingNpy *npy)
{
  g_return_val_if_fail (npy, NULL);
  return npy->bytes ? g_bytes_ref (npy->bytes) : NULL;
}

GstImagingNpy *
gst_imaging_npy_copy (const GstImagingNpy *npy)
{
  GstImagingNpy *copy;

  g_return_val_if_fail (npy, NULL);

  copy = g_new (GstImagingNpy, 1);
  *copy = *npy;
  copy->name = g_strdup (npy->name);
  copy->bytes = gst_imaging_npy_get_bytes (npy);
  return copy;
}

void
gst_imaging_npy_free (GstImagingNpy *npy)
{
  if (!npy)
    return;
  g_clear_pointer (&npy->bytes, g_bytes_unref);
  g_free (npy->name);
  g_free (npy);
}
