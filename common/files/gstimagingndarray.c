/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingndarray-private.h"

#include <math.h>
#include <sys/mman.h>

#include "files/gstimagingfile.h"

#define HUGE_PAGE ((gsize) 2 << 20)
#define MIN_HUGE (4 * HUGE_PAGE)

const GstImagingNdArrayTypeInfo gst_imaging_nd_array_types[] = {
    [GST_IMAGING_ND_ARRAY_TYPE_U8] = {"u8", "u1", 1, 1, "uint8"},
    [GST_IMAGING_ND_ARRAY_TYPE_U16] = {"u16", "u2", 2, 1, "uint16"},
    [GST_IMAGING_ND_ARRAY_TYPE_I16] = {"i16", "i2", 2, 1, "int16"},
    [GST_IMAGING_ND_ARRAY_TYPE_F32] = {"f32", "f4", 4, 1, "float32"},
    [GST_IMAGING_ND_ARRAY_TYPE_F64] = {"f64", "f8", 8, 1, "float64"},
    [GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64] = {"complex64", "c8", 8, 2,
        "float32"},
    [GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128] = {"complex128", "c16", 16, 2,
        "float64"},
    [GST_IMAGING_ND_ARRAY_TYPE_BOOL] = {"bool", "b1", 1, 1, "uint8"},
    [GST_IMAGING_ND_ARRAY_TYPE_I32] = {"i32", "i4", 4, 1, "int32"},
    [GST_IMAGING_ND_ARRAY_TYPE_U32] = {"u32", "u4", 4, 1, "uint32"},
    [GST_IMAGING_ND_ARRAY_TYPE_I64] = {"i64", "i8", 8, 1, "int64"},
    [GST_IMAGING_ND_ARRAY_TYPE_F16] = {"f16", "f2", 2, 1, "float16"},
    [GST_IMAGING_ND_ARRAY_TYPE_I8] = {"i8", "i1", 1, 1, "int8"},
    [GST_IMAGING_ND_ARRAY_TYPE_U64] = {"u64", "u8", 8, 1, "uint64"},
};

G_DEFINE_BOXED_TYPE (GstImagingNdArray, gst_imaging_nd_array,
    (GBoxedCopyFunc) gst_imaging_nd_array_copy,
    (GBoxedFreeFunc) gst_imaging_nd_array_free)

GQuark
gst_imaging_nd_array_error_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-nd-array-error-quark");
}

gboolean
gst_imaging_nd_array_fail (
    GError **error, GstImagingNdArrayError code, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  if (error)
    *error =
        g_error_new_valist (GST_IMAGING_ND_ARRAY_ERROR, code, format, args);
  va_end (args);
  return FALSE;
}

gsize
gst_imaging_nd_array_type_size (GstImagingNdArrayType type)
{
  return (guint) type < GST_IMAGING_ND_ARRAY_N_TYPES
             ? gst_imaging_nd_array_types[type].size
             : 0;
}

const gchar *
gst_imaging_nd_array_type_name (GstImagingNdArrayType type)
{
  return (guint) type < GST_IMAGING_ND_ARRAY_N_TYPES
             ? gst_imaging_nd_array_types[type].name
             : "?";
}

const gchar *
gst_imaging_nd_array_type_to_tensor (GstImagingNdArrayType type)
{
  return gst_imaging_nd_array_types[type].tensor;
}

gboolean
gst_imaging_nd_array_type_from_tensor (
    const gchar *name, GstImagingNdArrayType *type)
{
  for (guint i = 0; i < GST_IMAGING_ND_ARRAY_N_TYPES; i++)
    if (gst_imaging_nd_array_types[i].n_parts == 1 &&
        i != GST_IMAGING_ND_ARRAY_TYPE_BOOL &&
        g_strcmp0 (gst_imaging_nd_array_types[i].tensor, name) == 0) {
      *type = i;
      return TRUE;
    }
  return FALSE;
}

static gchar *
describe (GstImagingNdArrayType type, guint n_dims, const guint64 *dims)
{
  GString *text = g_string_new (gst_imaging_nd_array_type_name (type));

  g_string_append (text, " [");
  for (guint i = 0; i < n_dims; i++)
    g_string_append_printf (
        text, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "", dims[i]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

gchar *
gst_imaging_nd_array_describe (const GstImagingNdArray *npy)
{
  g_return_val_if_fail (npy, NULL);
  return describe (npy->type, npy->n_dims, npy->dims);
}

/* Multiplies the dimensions. The product of those that are not 0 must fit into
 * 63 bits of bytes, as in numpy, so that the bytes of any sub-array do. */
gboolean
gst_imaging_nd_array_count_values (const gchar *name,
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims,
    guint64 *n_values, GError **error)
{
  guint64 n_bytes = gst_imaging_nd_array_types[type].size;
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

      return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
          "\"%s\" has the shape %s, which needs more than %" G_GINT64_FORMAT
          " bytes; no file is that large.",
          name, shape, G_MAXINT64);
    }
  }
  *n_values = empty ? 0 : n_bytes / gst_imaging_nd_array_types[type].size;
  return TRUE;
}

/* A page fault for 2 MiB instead of 4 KiB: measurements.md, "Array files". */
static void
use_huge_pages (guint8 *data, gsize size)
{
#ifdef MADV_HUGEPAGE
  gsize before = (HUGE_PAGE - (gsize) data % HUGE_PAGE) % HUGE_PAGE;

  madvise (
      data + before, (size - before) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
}

/* Returns: memory for @n values of @size bytes; at least one byte, because
 * NULL means failure */
gpointer
gst_imaging_nd_array_alloc_values (
    const gchar *name, guint64 n, gsize size, GError **error)
{
  gpointer data = NULL;

  if (n <= G_MAXSIZE / size)
    data = g_try_malloc (MAX (n * size, 1));
  if (data && n * size >= MIN_HUGE)
    use_huge_pages (data, n * size);
  if (!data)
    gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_MEMORY,
        "\"%s\" does not fit in memory: expected is room for %" G_GUINT64_FORMAT
        " values of %" G_GSIZE_FORMAT " bytes.",
        name, n, size);
  return data;
}

/* IEEE half: a sign, 5 bits of exponent, 10 of mantissa. */
gdouble
gst_imaging_half_to_double (guint16 half)
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
gst_imaging_nd_array_to_double (
    const GstImagingNdArray *npy, gsize *n_values, GError **error)
{
  gdouble *values;

  g_return_val_if_fail (npy, NULL);

  if (!npy->data || gst_imaging_nd_array_types[npy->type].n_parts > 1) {
    gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
        "\"%s\" holds %s, expected are real numbers.", npy->name,
        npy->data ? "complex numbers" : "no values, only its header was read");
    return NULL;
  }
  values = gst_imaging_nd_array_alloc_values (
      npy->name, npy->n_values, sizeof (gdouble), error);
  if (!values)
    return NULL;

#define CONVERT_BY(type_, function) \
  for (gsize i = 0; i < npy->n_values; i++) \
  values[i] = function (((const type_ *) npy->data)[i])
#define CONVERT(type_) CONVERT_BY (type_, )

  switch (npy->type) {
  case GST_IMAGING_ND_ARRAY_TYPE_U8:
    CONVERT (guint8);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U16:
    CONVERT (guint16);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I16:
    CONVERT (gint16);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_F32:
    CONVERT (gfloat);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_BOOL:
    CONVERT_BY (guint8, !!);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I32:
    CONVERT (gint32);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U32:
    CONVERT (guint32);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I64:
    CONVERT (gint64);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I8:
    CONVERT (gint8);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U64:
    CONVERT (guint64);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_F16:
    CONVERT_BY (guint16, gst_imaging_half_to_double);
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

void
gst_imaging_nd_array_take_values (GstImagingNdArray *array, gpointer values)
{
  array->data = values;
  array->bytes = g_bytes_new_take (
      values, array->n_values * gst_imaging_nd_array_types[array->type].size);
}

gboolean
gst_imaging_nd_array_take_file_error (GError *why, GError **error)
{
  static const GstImagingNdArrayError codes[] = {
      [GST_IMAGING_FILE_ERROR_NOT_FOUND] = GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND,
      [GST_IMAGING_FILE_ERROR_OPEN] = GST_IMAGING_ND_ARRAY_ERROR_OPEN,
      [GST_IMAGING_FILE_ERROR_SIZE] = GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      [GST_IMAGING_FILE_ERROR_READ] = GST_IMAGING_ND_ARRAY_ERROR_READ,
      [GST_IMAGING_FILE_ERROR_WRITE] = GST_IMAGING_ND_ARRAY_ERROR_WRITE,
  };

  gst_imaging_nd_array_fail (error, codes[why->code], "%s", why->message);
  g_error_free (why);
  return FALSE;
}

GBytes *
gst_imaging_nd_array_get_bytes (const GstImagingNdArray *npy)
{
  g_return_val_if_fail (npy, NULL);
  return npy->bytes ? g_bytes_ref (npy->bytes) : NULL;
}

GstImagingNdArray *
gst_imaging_nd_array_copy (const GstImagingNdArray *npy)
{
  GstImagingNdArray *copy;

  g_return_val_if_fail (npy, NULL);

  copy = g_new (GstImagingNdArray, 1);
  *copy = *npy;
  copy->name = g_strdup (npy->name);
  copy->bytes = gst_imaging_nd_array_get_bytes (npy);
  copy->cards = g_strdupv (npy->cards);
  copy->records = g_strdupv (npy->records);
  return copy;
}

void
gst_imaging_nd_array_free (GstImagingNdArray *npy)
{
  if (!npy)
    return;
  g_clear_pointer (&npy->bytes, g_bytes_unref);
  g_strfreev (npy->cards);
  g_strfreev (npy->records);
  g_free (npy->name);
  g_free (npy);
}
