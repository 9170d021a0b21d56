/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fitsraw.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static gboolean
is_whole (gdouble number)
{
  return fabs (number) < 9223372036854775808.0 && number == floor (number);
}

static gboolean
is_unsigned (const GstImagingFitsRaw *self)
{
  return self->scale == 1 && self->zero == 9223372036854775808.0;
}

GstImagingNdArrayType
gst_imaging_fits_raw_find_type (
    const GstImagingFitsRaw *self, gboolean has_blank)
{
  if (self->bits == -32)
    return GST_IMAGING_ND_ARRAY_TYPE_F32;
  if (self->bits == -64)
    return GST_IMAGING_ND_ARRAY_TYPE_F64;
  if (is_unsigned (self))
    return GST_IMAGING_ND_ARRAY_TYPE_U64;
  if (self->scale == 1 && self->zero == 0)
    return GST_IMAGING_ND_ARRAY_TYPE_I64;
  return !has_blank && is_whole (self->scale) && is_whole (self->zero)
             ? GST_IMAGING_ND_ARRAY_TYPE_I64
             : GST_IMAGING_ND_ARRAY_TYPE_F64;
}

static void
take_floats (const GstImagingFitsRaw *self, guint32 *values, gsize n)
{
  for (gsize i = 0; i < n; i++) {
    gfloat value;

    values[i] = GUINT32_FROM_BE (values[i]);
    if (self->scale == 1 && self->zero == 0)
      continue;
    memcpy (&value, &values[i], sizeof (value));
    value = (gfloat) (self->scale * (gdouble) value + self->zero);
    memcpy (&values[i], &value, sizeof (value));
  }
}

static void
take_doubles (const GstImagingFitsRaw *self, guint64 *values, gsize n)
{
  for (gsize i = 0; i < n; i++) {
    gdouble value;
    guint64 bits = GUINT64_FROM_BE (values[i]);

    values[i] = bits;
    if (self->bits == -64 && self->scale == 1 && self->zero == 0)
      continue;
    if (self->bits == -64)
      memcpy (&value, &bits, sizeof (value));
    else
      value = (gdouble) (gint64) bits;
    value = self->scale * value + self->zero;
    if (self->bits == 64 && self->blank && (gint64) bits == *self->blank)
      value = NAN;
    memcpy (&values[i], &value, sizeof (value));
  }
}

/* Returns: FALSE where a value leaves 64 bits */
static gboolean
take_integers (const GstImagingFitsRaw *self, guint64 *values, gsize n)
{
  gint64 scale = (gint64) self->scale, zero;

  if (is_unsigned (self)) {
    for (gsize i = 0; i < n; i++)
      values[i] = GUINT64_FROM_BE (values[i]) ^ (guint64) 1 << 63;
    return TRUE;
  }
  zero = (gint64) self->zero;
  for (gsize i = 0; i < n; i++) {
    gint64 value = (gint64) GUINT64_FROM_BE (values[i]);

    if (__builtin_mul_overflow (value, scale, &value) ||
        __builtin_add_overflow (value, zero, &value))
      return FALSE;
    values[i] = (guint64) value;
  }
  return TRUE;
}

gboolean
gst_imaging_fits_raw_read (const GstImagingFitsRaw *self,
    const GstImagingFormatFile *file, GstImagingNdArrayType type, guint64 first,
    gsize n, gpointer values, GError **error)
{
  gsize size = (gsize) ABS (self->bits) / 8;
  gssize got = gst_imaging_format_read_at (
      file, values, n * size, self->data + first * size);

  if (got < 0)
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_READ, "cannot be read: %s.",
        g_strerror (errno));
  if ((gsize) got < n * size)
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "is truncated: it ends before its last sample. Copy it again.");
  if (type == GST_IMAGING_ND_ARRAY_TYPE_F32)
    take_floats (self, values, n);
  else if (type == GST_IMAGING_ND_ARRAY_TYPE_F64)
    take_doubles (self, values, n);
  else if (!take_integers (self, values, n))
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "holds integers of 64 bits that BSCALE %g and BZERO %g take out of "
        "their range. Remove these cards, or save it as floats.",
        self->scale, self->zero);
  return TRUE;
}
