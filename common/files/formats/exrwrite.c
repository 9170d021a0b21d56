/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exr.h"

#include <string.h>

static gboolean
set_up (GstImagingExr *self, gchar **cards, GError **error)
{
  int part = 0;
  exr_result_t code = exr_add_part (self->exr, "", EXR_STORAGE_SCANLINE, &part);

  if (code == EXR_ERR_SUCCESS)
    code = exr_initialize_required_attr_simple (
        self->exr, part, self->width, self->height, EXR_COMPRESSION_ZIP);
  if (code == EXR_ERR_SUCCESS) /* 4 is that of later versions of OpenEXR */
    code = exr_set_zip_compression_level (self->exr, part,
        self->file->level > 0 ? (int) self->file->level - 1 : 4);
  for (guint i = 0; code == EXR_ERR_SUCCESS && i < self->n_channels; i++)
    code = exr_add_channel (self->exr, part, self->names[i], self->type,
        EXR_PERCEPTUALLY_LINEAR, 1, 1);
  for (; code == EXR_ERR_SUCCESS && cards && *cards; cards++) {
    g_auto (GStrv) pair = g_strsplit (*cards, "=", 2);

    /* what the library writes itself, and no name, are left out */
    if (!pair[0] || !pair[1])
      continue;
    if (strcmp (pair[0], GST_IMAGING_EXR_ASPECT) == 0)
      exr_set_pixel_aspect_ratio (
          self->exr, part, (float) g_ascii_strtod (pair[1], NULL));
    else if (*pair[0] && strcmp (pair[0], "CHANNELS") != 0 &&
             strcmp (pair[0], GST_IMAGING_EXR_DATA_WINDOW) != 0 &&
             strcmp (pair[0], GST_IMAGING_EXR_DISPLAY_WINDOW) != 0 &&
             strlen (pair[0]) < 32)
      exr_attr_set_string (self->exr, part, pair[0], pair[1]);
  }
  if (code == EXR_ERR_SUCCESS)
    code = exr_write_header (self->exr);
  return code == EXR_ERR_SUCCESS || gst_imaging_exr_fail (self, code, error);
}

gpointer
gst_imaging_exr_create (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, guint64 *n_pages, GError **error)
{
  static const gchar *const usual[][5] = {
      {"Y"}, {"Y", "A"}, {"R", "G", "B"}, {"R", "G", "B", "A"}};
  GstImagingFormatLayout l;
  exr_context_initializer_t init;
  gboolean is_half = array->type == GST_IMAGING_ND_ARRAY_TYPE_F16;
  gboolean is_float = array->type == GST_IMAGING_ND_ARRAY_TYPE_F32;
  GstImagingExr *self;
  exr_result_t code;

  if (!gst_imaging_format_get_layout (file, array, &l, error))
    return NULL;
  if (l.n_pages > 1 || l.channels > 4 ||
      (guint64) l.width * l.channels > G_MAXINT32 / 4) {
    gst_imaging_format_refuse_type (
        file, array, gst_imaging_format_exr.takes, error);
    return NULL;
  }
  self = g_new0 (GstImagingExr, 1);
  self->file = file;
  self->width = (gint) l.width;
  self->height = (gint) l.height;
  self->n_channels = l.channels;
  self->names = g_strdupv ((gchar **) usual[l.channels - 1]);
  self->type = is_half    ? EXR_PIXEL_HALF
               : is_float ? EXR_PIXEL_FLOAT
                          : EXR_PIXEL_UINT;
  init = gst_imaging_exr_make_initializer (self);
  code =
      exr_start_write (&self->exr, file->name, EXR_WRITE_FILE_DIRECTLY, &init);
  if ((code != EXR_ERR_SUCCESS && !gst_imaging_exr_fail (self, code, error)) ||
      !set_up (self, array->cards, error)) {
    gst_imaging_exr_close (self);
    return NULL;
  }
  *n_pages = 1;
  return self;
}

/* Readers take a block that did not become smaller for raw samples. OpenEXR
 * 3.1.5 leaves zipped ones in it where both have the same size. */
static exr_result_t
compress (exr_encode_pipeline_t *encode)
{
  exr_result_t (*zip) (exr_encode_pipeline_t *) = encode->encoding_user_data;
  exr_result_t code = zip (encode);

  if (code == EXR_ERR_SUCCESS && encode->compressed_buffer &&
      encode->compressed_bytes == encode->packed_bytes)
    memcpy (
        encode->compressed_buffer, encode->packed_buffer, encode->packed_bytes);
  return code;
}

gboolean
gst_imaging_exr_write (gpointer writer, gconstpointer values, GError **error)
{
  GstImagingExr *self = writer;
  exr_encode_pipeline_t encode = EXR_ENCODE_PIPELINE_INITIALIZER;
  gsize row_size = (gsize) self->width * self->n_channels *
                   (gsize) gst_imaging_exr_value_size (self);
  gint32 n_lines = 0;
  exr_result_t code = exr_get_scanlines_per_chunk (self->exr, 0, &n_lines);

  for (gint64 y = 0; code == EXR_ERR_SUCCESS && y < self->height;
       y += MAX (n_lines, 1)) {
    exr_chunk_info_t chunk;

    code = exr_write_scanline_chunk_info (self->exr, 0, (int) y, &chunk);
    if (code == EXR_ERR_SUCCESS)
      code = y == 0 ? exr_encoding_initialize (self->exr, 0, &chunk, &encode)
                    : exr_encoding_update (self->exr, 0, &chunk, &encode);
    if (code == EXR_ERR_SUCCESS) {
      gst_imaging_exr_aim (self, encode.channels, encode.channel_count,
          (guint8 *) values + (gsize) y * row_size);
      if (y == 0)
        code = exr_encoding_choose_default_routines (self->exr, 0, &encode);
    }
    if (code == EXR_ERR_SUCCESS && y == 0 && encode.compress_fn) {
      encode.encoding_user_data = encode.compress_fn;
      encode.compress_fn = compress;
    }
    if (code == EXR_ERR_SUCCESS)
      code = exr_encoding_run (self->exr, 0, &encode);
  }
  exr_encoding_destroy (self->exr, &encode);
  return code == EXR_ERR_SUCCESS || gst_imaging_exr_fail (self, code, error);
}

gboolean
gst_imaging_exr_finish (gpointer writer, GError **error)
{
  GstImagingExr *self = writer;
  exr_result_t code = exr_finish (&self->exr);

  self->exr = NULL;
  return (code == EXR_ERR_SUCCESS && !self->why) ||
         gst_imaging_exr_fail (self, code, error);
}
