/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .fits.gz: read from a file in memory, as its pages are in any order. */
#define _GNU_SOURCE /* memfd_create */
#include "fitsgzip.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE (1 << 18)

typedef struct {
  const GstImagingFormatFile *from, *to;
  GConverter *gzip;
  guint8 *in, *out;
  guint64 n_read, n_written;
  gsize n_in; /* of @in that is left */
  gboolean is_done;
} Gunzip;

gboolean
gst_imaging_fits_is_gzip (const GstImagingFormatFile *file)
{
  guint8 head[2] = {0};

  return gst_imaging_format_read_at (file, head, sizeof (head), 0) == 2 &&
         memcmp (head, "\037\213", sizeof (head)) == 0;
}

/* @n: bytes of self->out */
static gboolean
put (Gunzip *self, gsize n, GError **error)
{
  if (!gst_imaging_format_check_size (self->from, self->n_written + n, error) ||
      !gst_imaging_format_write_at (
          self->to, self->out, n, self->n_written, error))
    return FALSE;
  self->n_written += n;
  return TRUE;
}

/* Returns: FALSE with @error set where the file cannot be read */
static gboolean
fill (Gunzip *self, GError **error)
{
  gssize n = gst_imaging_format_read_at (
      self->from, self->in + self->n_in, PIECE - self->n_in, self->n_read);

  if (n < 0)
    return gst_imaging_format_fail (self->from, error,
        GST_IMAGING_ND_ARRAY_ERROR_READ, "cannot be read: %s.",
        g_strerror (errno));
  self->n_read += (guint64) n;
  self->n_in += (gsize) n;
  return TRUE;
}

static gboolean
convert_piece (Gunzip *self, GError **error)
{
  g_autoptr (GError) why = NULL;
  gsize n_taken = 0, n = 0;
  GConverterResult result;

  if (!fill (self, error))
    return FALSE;
  result = g_converter_convert (self->gzip, self->in, self->n_in, self->out,
      PIECE, self->n_read == self->from->size ? G_CONVERTER_INPUT_AT_END : 0,
      &n_taken, &n, &why);
  if (result == G_CONVERTER_ERROR)
    return gst_imaging_format_fail_damaged (self->from, error, why->message);
  self->is_done = result == G_CONVERTER_FINISHED;
  self->n_in -= n_taken;
  memmove (self->in, self->in + n_taken, self->n_in);
  return put (self, n, error);
}

gboolean
gst_imaging_fits_gunzip (
    const GstImagingFormatFile *file, GstImagingFormatFile *to, GError **error)
{
  g_autofree guint8 *in = g_malloc (PIECE), *out = g_malloc (PIECE);
  g_autoptr (GZlibDecompressor) gzip =
      g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP);
  Gunzip self = {
      .from = file, .to = to, .gzip = G_CONVERTER (gzip), .in = in, .out = out};
  gboolean ok = TRUE;

  to->fd = memfd_create ("fits", MFD_CLOEXEC);
  if (to->fd < 0)
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_MEMORY, "cannot be decompressed: %s.",
        g_strerror (errno));
  while (ok && !self.is_done)
    ok = convert_piece (&self, error);
  to->size = self.n_written;
  return ok;
}
