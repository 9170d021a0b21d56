/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fits.h"

#include <string.h>

#define BLOCK GST_IMAGING_FITS_BLOCK
#define CARD GST_IMAGING_FITS_CARD
#define DIGITS_AT 10 /* of a number in a card */
#define DIGITS 20

struct _GstImagingFitsGrowth {
  const GstImagingFormatFile *file;
  GstImagingNdArrayType type;
  guint64 data, count_at; /* where frames begin, and the card of their number */
  guint64 n_frames, n_values;
  gsize size; /* of a frame, in bytes */
  guint8 *swapped;
};

/* The card NAXISn of the last axis: it counts frames. */
static gboolean
find_count (GstImagingFitsGrowth *self, guint n_dims, GError **error)
{
  g_autofree gchar *key = g_strdup_printf ("NAXIS%-3u=", n_dims);
  gchar card[CARD];

  for (guint64 at = 0; at + CARD <= self->data; at += CARD)
    if (gst_imaging_format_read_at (self->file, card, CARD, at) == CARD &&
        memcmp (card, key, strlen (key)) == 0) {
      self->count_at = at;
      return TRUE;
    }
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "cannot be appended to: its header has no card NAXIS%u. Choose another "
      "name.",
      n_dims);
}

GstImagingFitsGrowth *
gst_imaging_fits_growth_new (const GstImagingFormatFile *file,
    const GstImagingNdArray *frame, guint64 data, guint64 n_frames,
    GError **error)
{
  GstImagingFitsGrowth *self = g_new0 (GstImagingFitsGrowth, 1);

  self->file = file;
  self->type = frame->type;
  self->data = data;
  self->n_frames = n_frames;
  self->n_values = frame->n_values;
  self->size = frame->n_values * gst_imaging_nd_array_type_size (frame->type);
  self->swapped = g_try_malloc (MAX (self->size, 1));
  if (!self->swapped)
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_MEMORY,
        "cannot be written: a frame of %" G_GSIZE_FORMAT
        " bytes does not fit in memory.",
        self->size);
  if (self->swapped && find_count (self, frame->n_dims + 1, error))
    return self;
  gst_imaging_fits_growth_free (self);
  return NULL;
}

/* FITS has signed integers of more than one byte, and bytes without a sign: the
 * others are half of their range away, which is their highest bit. */
static guint64
sign_of (GstImagingNdArrayType type)
{
  switch (type) {
  case GST_IMAGING_ND_ARRAY_TYPE_I8:
    return 1u << 7;
  case GST_IMAGING_ND_ARRAY_TYPE_U16:
    return 1u << 15;
  case GST_IMAGING_ND_ARRAY_TYPE_U32:
    return 1u << 31;
  case GST_IMAGING_ND_ARRAY_TYPE_U64:
    return G_GUINT64_CONSTANT (1) << 63;
  default:
    return 0;
  }
}

#define SWAP(BITS) \
  { \
    const guint##BITS *from = values, flip = (guint##BITS) sign; \
    guint##BITS *to = (guint##BITS *) self->swapped; \
\
    for (gsize i = 0; i < self->n_values; i++) \
      to[i] = GUINT##BITS##_TO_BE (from[i] ^ flip); \
    break; \
  }

static void
swap (GstImagingFitsGrowth *self, gconstpointer values)
{
  guint64 sign = sign_of (self->type);

  switch (gst_imaging_nd_array_type_size (self->type)) {
  case 2:
    SWAP (16)
  case 4:
    SWAP (32)
  case 8:
    SWAP (64)
  default:
    for (gsize i = 0; i < self->n_values; i++)
      self->swapped[i] = ((const guint8 *) values)[i] ^ (guint8) sign;
    break;
  }
}

/* Zeros to the end of the block. */
static gboolean
pad (GstImagingFitsGrowth *self, guint64 end, GError **error)
{
  gchar zeros[BLOCK] = {0};

  return gst_imaging_format_write_at (
      self->file, zeros, (BLOCK - end % BLOCK) % BLOCK, end, error);
}

static gboolean
count (GstImagingFitsGrowth *self, guint64 n, GError **error)
{
  gchar digits[DIGITS + 1];

  g_snprintf (digits, sizeof (digits), "%20" G_GUINT64_FORMAT, n);
  return gst_imaging_format_write_at (
      self->file, digits, DIGITS, self->count_at + DIGITS_AT, error);
}

gboolean
gst_imaging_fits_growth_write (
    GstImagingFitsGrowth *self, gconstpointer values, GError **error)
{
  guint64 start = self->data + self->n_frames * self->size;

  swap (self, values);
  if (gst_imaging_format_write_at (
          self->file, self->swapped, self->size, start, error) &&
      pad (self, start + self->size, error) &&
      count (self, self->n_frames + 1, error)) {
    self->n_frames++;
    return TRUE;
  }
  /* the blocks of this padding are there */
  pad (self, start, NULL);
  gst_imaging_format_cut (self->file, (start + BLOCK - 1) / BLOCK * BLOCK);
  return FALSE;
}

void
gst_imaging_fits_growth_free (GstImagingFitsGrowth *self)
{
  if (!self)
    return;
  g_free (self->swapped);
  g_free (self);
}
