/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Images in .npy files, as picturesink and NumPy write them. */
#include "gstslcimage.h"

#include <string.h>

#include "gstimagingnpy.h"

static gboolean
read_npy (GstSlcImage *self, guint64 first, guint n_lines, gpointer data,
    GError **error)
{
  g_autoptr (GError) why = NULL;

  if (gst_imaging_npy_read_values (self->npy, self->fd,
          first * self->info.width, (gsize) n_lines * self->info.width, data,
          &why))
    return TRUE;
  g_set_error_literal (
      error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, why->message);
  return FALSE;
}

static gboolean
copy_npy (GstSlcImage *self, guint64 first, guint n_lines, gpointer data,
    GError **error)
{
  const gsize line_size = gst_slc_image_line_size (self);

  memcpy (data, (const guint8 *) self->npy->data + first * line_size,
      n_lines * line_size);
  return TRUE;
}

static void
take_error (const GError *why, GError **error)
{
  gboolean is_resource = why->code == GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND ||
                         why->code == GST_IMAGING_ND_ARRAY_ERROR_OPEN;

  g_set_error_literal (error,
      is_resource ? GST_RESOURCE_ERROR : GST_STREAM_ERROR,
      why->code == GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND
          ? (gint) GST_RESOURCE_ERROR_NOT_FOUND
      : is_resource ? (gint) GST_RESOURCE_ERROR_OPEN_READ
                    : (gint) GST_STREAM_ERROR_FORMAT,
      why->message);
}

static gboolean
describe (GstSlcImage *self, GstSlcFormat format, GError **error)
{
  const GstImagingNdArray *npy = self->npy;
  g_autofree gchar *found = gst_imaging_nd_array_describe (npy);
  gboolean is_complex = npy->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64;
  ImkType type;

  self->info.type = is_complex ? IMK_TYPE_CF32 : IMK_TYPE_F32;
  if ((!is_complex && npy->type != GST_IMAGING_ND_ARRAY_TYPE_F32) ||
      npy->n_dims != 2 || npy->n_values == 0 ||
      npy->dims[0] > GST_SLC_MAX_HEIGHT || npy->dims[1] > GST_SLC_MAX_WIDTH) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" is %s, expected is complex64 or f32 [lines, samples]. Save it "
        "with values.astype (numpy.complex64).",
        self->path, found);
    return FALSE;
  }
  type = gst_slc_format_type (format, self->info.type);
  if (type != self->info.type) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" is %s, which format=%s contradicts. Set format=auto.",
        self->path, found, imk_type_name (type));
    return FALSE;
  }
  self->info.height = (guint) npy->dims[0];
  self->info.width = (guint) npy->dims[1];
  return TRUE;
}

GstSlcImage *
gst_slc_image_open_npy (
    const gchar *location, GstSlcFormat format, GError **error)
{
  g_autoptr (GError) why = NULL;
  GstSlcImage *self = g_new0 (GstSlcImage, 1);

  self->fd = -1;
  self->read = read_npy;
  self->npy = gst_imaging_npy_open_header (location, &self->fd, &why);
  /* lines of Fortran order are everywhere in the file */
  if (!self->npy && why->code == GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED) {
    self->read = copy_npy;
    self->npy = gst_imaging_npy_load (location, NULL);
  }
  if (self->npy)
    self->path = g_strdup (self->npy->name);
  else
    take_error (why, error);
  if (self->npy && describe (self, format, error))
    return self;
  gst_slc_image_free (self);
  return NULL;
}
