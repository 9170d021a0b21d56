/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* memmem */
#include "exr.h"

#include <string.h>

#define MAX_HEADER (1 << 16)

static void
on_error (exr_const_context_t exr, exr_result_t code, const char *text)
{
  GstImagingExr *self = NULL;

  if (exr_get_user_data (exr, (void **) &self) == EXR_ERR_SUCCESS && self &&
      !self->text)
    self->text = g_strdup (text);
}

static int64_t
get_size (exr_const_context_t exr, void *data)
{
  return (int64_t) ((GstImagingExr *) data)->file->size;
}

static int64_t
read_bytes (exr_const_context_t exr, void *data, void *to, uint64_t size,
    uint64_t offset, exr_stream_error_func_ptr_t fail)
{
  return gst_imaging_format_read_at (
      ((GstImagingExr *) data)->file, to, size, offset);
}

static int64_t
write_bytes (exr_const_context_t exr, void *data, const void *from,
    uint64_t size, uint64_t offset, exr_stream_error_func_ptr_t fail)
{
  GstImagingExr *self = data;

  return gst_imaging_format_write_at (
             self->file, from, size, offset, self->why ? NULL : &self->why)
             ? (int64_t) size
             : -1;
}

exr_context_initializer_t
gst_imaging_exr_make_initializer (GstImagingExr *self)
{
  exr_context_initializer_t init = EXR_DEFAULT_CONTEXT_INITIALIZER;

  init.error_handler_fn = on_error;
  init.user_data = self;
  init.read_fn = read_bytes;
  init.size_fn = get_size;
  init.write_fn = write_bytes;
  return init;
}

/* Which this version of the library does not have. Returns: FALSE */
static gboolean
fail_compression (
    const GstImagingFormatFile *file, guint number, GError **error)
{
  static const gchar *const names[] = {[8] = "DWAA",
      [9] = "DWAB",
      [10] = "HTJ2K256",
      [11] = "HTJ2K32",
      [12] = "LJ2K",
      [13] = "ZSTD"};
  const gchar *name = number < G_N_ELEMENTS (names) ? names[number] : NULL;
  int major, minor, patch;

  exr_get_library_version (&major, &minor, &patch, NULL);
  return gst_imaging_format_fail (file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "is compressed by %s (OpenEXR's number %u), which OpenEXR %d.%d.%d does "
      "not read. Save it with ZIP or PIZ.",
      name ? name : "a method", number, major, minor, patch);
}

gboolean
gst_imaging_exr_check_compression (
    const GstImagingFormatFile *file, GError **error)
{
  /* name, type and size of the attribute; each part has one */
  static const gchar entry[] = "compression\0compression\0\1\0\0";
  g_autofree guint8 *head = g_malloc (MAX_HEADER);
  gssize n = gst_imaging_format_read_at (file, head, MAX_HEADER, 0);
  const guint8 *at = head, *end = head + MAX (n, 0);

  while ((at = memmem (at, (gsize) (end - at), entry, sizeof (entry))) &&
         (at += sizeof (entry)) < end)
    if (*at >= EXR_COMPRESSION_LAST_TYPE)
      return fail_compression (file, *at, error);
  return TRUE;
}

gboolean
gst_imaging_exr_fail (GstImagingExr *self, exr_result_t code, GError **error)
{
  const gchar *text = exr_get_error_code_as_string (code);
  exr_compression_t kind = EXR_COMPRESSION_LAST_TYPE;

  if (self->why)
    g_propagate_error (error, g_steal_pointer (&self->why));
  else if (code == EXR_ERR_FEATURE_NOT_IMPLEMENTED &&
           exr_get_compression (self->exr, 0, &kind) == EXR_ERR_SUCCESS)
    fail_compression (self->file, (guint) kind, error);
  else
    gst_imaging_format_fail_damaged (
        self->file, error, self->text ? self->text : text);
  return FALSE;
}

void
gst_imaging_exr_close (gpointer exr)
{
  GstImagingExr *self = exr;

  if (self->exr)
    exr_finish (&self->exr);
  g_strfreev (self->names);
  g_clear_error (&self->why);
  g_free (self->text);
  g_free (self);
}

gint
gst_imaging_exr_value_size (const GstImagingExr *self)
{
  return self->is_mixed ? 8 : self->type == EXR_PIXEL_HALF ? 2 : 4;
}

void
gst_imaging_exr_aim (const GstImagingExr *self,
    exr_coding_channel_info_t *channels, gint n, guint8 *at)
{
  gint size = gst_imaging_exr_value_size (self);

  for (gint i = 0; i < n; i++) {
    gint k = 0;

    while (strcmp (self->names[k], channels[i].channel_name) != 0)
      k++;
    channels[i].user_bytes_per_element = (gint16) MIN (size, 4);
    channels[i].user_data_type =
        self->is_mixed && channels[i].data_type == EXR_PIXEL_UINT
            ? EXR_PIXEL_UINT
            : (guint16) self->type;
    channels[i].user_pixel_stride = size * (gint) self->n_channels;
    channels[i].user_line_stride = channels[i].user_pixel_stride * self->width;
    channels[i].decode_to_ptr = at + k * size;
  }
}
