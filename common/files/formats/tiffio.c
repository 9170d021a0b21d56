/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tiff.h"

#include <stdio.h>
#include <string.h>

/* A number of the directory before, or of the file's header */
typedef struct {
  guint64 offset;
  gsize size;
  guint8 bytes[8];
} Link;

static tmsize_t
read_bytes (thandle_t handle, void *to, tmsize_t size)
{
  GstImagingTiff *self = handle;
  gssize n =
      gst_imaging_format_read_at (self->file, to, (gsize) size, self->offset);

  self->offset += (guint64) MAX (n, 0);
  return n;
}

static tmsize_t
write_bytes (thandle_t handle, void *from, tmsize_t size)
{
  GstImagingTiff *self = handle;

  if (!self->writes)
    return -1;
  if (self->links && self->offset + (guint64) size <= self->complete &&
      size <= (tmsize_t) sizeof (((Link *) NULL)->bytes)) {
    Link link = {.offset = self->offset, .size = (gsize) size};

    memcpy (link.bytes, from, link.size);
    g_array_append_val (self->links, link);
    self->offset += (guint64) size;
    return size;
  }
  if (!gst_imaging_format_write_at (self->file, from, (gsize) size,
          self->offset, self->why ? NULL : &self->why))
    return -1;
  self->offset += (guint64) size;
  self->size = MAX (self->size, self->offset);
  return size;
}

static toff_t
seek (thandle_t handle, toff_t offset, int whence)
{
  GstImagingTiff *self = handle;

  self->offset = offset + (whence == SEEK_CUR      ? self->offset
                              : whence == SEEK_END ? self->size
                                                   : 0);
  return self->offset;
}

static int
close_file (thandle_t handle)
{
  return 0;
}

static toff_t
get_size (thandle_t handle)
{
  return ((GstImagingTiff *) handle)->size;
}

/* libtiff says what went wrong first; later sentences are of its consequences.
 */
#if TIFFLIB_VERSION >= 20221213
G_GNUC_PRINTF (4, 0)
static int
on_error (TIFF *tiff, void *data, const char *module, const char *format,
    va_list args)
{
  GstImagingTiff *self = data;

  if (!self->text)
    self->text = g_strdup_vprintf (format, args);
  return 1;
}

G_GNUC_PRINTF (4, 0)
static int
on_warning (TIFF *tiff, void *data, const char *module, const char *format,
    va_list args)
{
  return 1;
}

static TIFF *
open_tiff (GstImagingTiff *self, const gchar *mode)
{
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc ();
  TIFF *tiff;

  TIFFOpenOptionsSetErrorHandlerExtR (options, on_error, self);
  TIFFOpenOptionsSetWarningHandlerExtR (options, on_warning, self);
  TIFFOpenOptionsSetMaxSingleMemAlloc (
      options, (tmsize_t) 1 << (sizeof (tmsize_t) > 4 ? 33 : 30));
  tiff = TIFFClientOpenExt (self->file->name, mode, self, read_bytes,
      write_bytes, seek, close_file, get_size, NULL, NULL, options);
  TIFFOpenOptionsFree (options);
  return tiff;
}
#else
/* Before 4.5 the handlers are the process's: they are left alone. */
static TIFF *
open_tiff (GstImagingTiff *self, const gchar *mode)
{
  return TIFFClientOpen (self->file->name, mode, self, read_bytes, write_bytes,
      seek, close_file, get_size, NULL, NULL);
}
#endif

gboolean
gst_imaging_tiff_open (GstImagingTiff *self, const GstImagingFormatFile *file,
    const gchar *mode, GError **error)
{
  /* not mapped: a file that becomes shorter would end the process; a strip is
   * one read: libtiff makes many of 8 KiB of it */
  g_autofree gchar *options = g_strconcat (mode, "mc", NULL);

  *self = (GstImagingTiff){.file = file, .writes = mode[0] != 'r'};
  self->size = mode[0] == 'w' ? 0 : file->size;
  self->tiff = open_tiff (self, options);
  return self->tiff || gst_imaging_tiff_fail (self, error);
}

gboolean
gst_imaging_tiff_fail (GstImagingTiff *self, GError **error)
{
  if (self->why) {
    g_propagate_error (error, g_steal_pointer (&self->why));
    return FALSE;
  }
  if (self->writes)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_WRITE, "cannot be written as TIFF: %s.",
        self->text ? self->text : "libtiff does not say why");
  return gst_imaging_format_fail_damaged (
      self->file, error, self->text ? self->text : "");
}

void
gst_imaging_tiff_grow (GstImagingTiff *self)
{
  self->complete = self->size;
  self->links = g_array_new (FALSE, FALSE, sizeof (Link));
}

gboolean
gst_imaging_tiff_complete (GstImagingTiff *self, GError **error)
{
  for (guint i = 0; i < self->links->len; i++) {
    const Link *link = &g_array_index (self->links, Link, i);

    if (!gst_imaging_format_write_at (
            self->file, link->bytes, link->size, link->offset, error))
      return FALSE;
  }
  g_array_set_size (self->links, 0);
  self->complete = self->size;
  return TRUE;
}

void
gst_imaging_tiff_close (GstImagingTiff *self)
{
  if (self->tiff)
    TIFFClose (self->tiff);
  g_clear_pointer (&self->links, g_array_unref);
  g_clear_pointer (&self->text, g_free);
  g_clear_error (&self->why);
  self->tiff = NULL;
}

static guint64
get_number (const guint8 *bytes, guint n, gboolean big_endian)
{
  guint64 number = 0;

  for (guint i = 0; i < n; i++)
    number = number << 8 | bytes[big_endian ? i : n - 1 - i];
  return number;
}

guint
gst_imaging_tiff_find_predictor (const GstImagingTiff *self)
{
  gboolean big_endian = TIFFIsBigEndian (self->tiff) != 0;
  guint64 at = TIFFCurrentDirOffset (self->tiff);
  guint8 head[8] = {0}, entry[20] = {0};
  guint n_size, entry_size;
  guint64 n;

  gst_imaging_format_read_at (self->file, head, 4, 0);
  n_size = get_number (head + 2, 2, big_endian) == 43 ? 8 : 2; /* BigTIFF */
  entry_size = n_size == 8 ? 20 : 12;
  gst_imaging_format_read_at (self->file, head, n_size, at);
  n = get_number (head, n_size, big_endian);
  for (at += n_size; n > 0; n--, at += entry_size) {
    if (gst_imaging_format_read_at (self->file, entry, entry_size, at) <
        (gssize) entry_size)
      break;
    if (get_number (entry, 2, big_endian) == TIFFTAG_PREDICTOR)
      return (guint) get_number (
          entry + entry_size - (n_size == 8 ? 8 : 4), 2, big_endian);
  }
  return 1;
}
