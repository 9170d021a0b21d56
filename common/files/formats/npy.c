/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingnpy.h"
#include "files/gstimagingnpyheader.h"

typedef struct {
  const GstImagingFormatFile *file;
  GstImagingNdArray *npy; /* with values if they are in Fortran order */
  guint64 n_per_page;
} Reader;

static void
npy_close (gpointer reader)
{
  Reader *self = reader;

  gst_imaging_nd_array_free (self->npy);
  g_free (self);
}

static gpointer
npy_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  GstImagingNdArray *npy =
      gst_imaging_npy_read_header (file->fd, file->size, file->name, error);
  Reader *self;

  if (!npy)
    return NULL;
  self = g_new0 (Reader, 1);
  self->file = file;
  self->npy = npy;
  if (npy->fortran_order && file->size > GST_IMAGING_FILE_MAX_ARRAY) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "is in Fortran order (columns first) and larger than 8 GiB. Save it "
        "from numpy as numpy.ascontiguousarray(array).");
    npy_close (self);
    return NULL;
  }
  array->type = npy->type;
  array->n_dims = npy->n_dims;
  memcpy (array->dims, npy->dims, sizeof (array->dims));
  array->data_offset = npy->data_offset;
  array->big_endian = npy->big_endian;
  *n_pages = npy->n_dims > 2 ? npy->dims[0] : 1;
  self->n_per_page = npy->n_values / MAX (*n_pages, 1);
  return self;
}

static gboolean
npy_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  Reader *self = reader;
  gsize size =
      self->n_per_page * gst_imaging_nd_array_types[self->npy->type].size;

  if (!self->npy->fortran_order)
    return gst_imaging_npy_read_values (self->npy, self->file->fd,
        page * self->n_per_page, self->n_per_page, values, error);
  if (!self->npy->data &&
      !gst_imaging_npy_read_all (self->npy, self->file->fd, error))
    return FALSE;
  if (size > 0)
    memcpy (values, (const guint8 *) self->npy->data + page * size, size);
  return TRUE;
}

/* --- writing --- */

typedef struct {
  const GstImagingFormatFile *file;
  guint64 offset;
  gsize page_size;
} Writer;

static gpointer
npy_create (const GstImagingFormatFile *file, const GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  GString *header =
      gst_imaging_npy_format_header (array->type, array->n_dims, array->dims);
  Writer *self = g_new0 (Writer, 1);

  *n_pages = array->n_dims > 2 ? array->dims[0] : 1;
  self->file = file;
  self->offset = header->len;
  self->page_size = array->n_values / MAX (*n_pages, 1) *
                    gst_imaging_nd_array_types[array->type].size;
  if (!gst_imaging_format_write_at (file, header->str, header->len, 0, error))
    g_clear_pointer (&self, g_free);
  g_string_free (header, TRUE);
  return self;
}

static gboolean
npy_write (gpointer writer, gconstpointer values, GError **error)
{
  Writer *self = writer;

  if (!gst_imaging_format_write_at (
          self->file, values, self->page_size, self->offset, error))
    return FALSE;
  self->offset += self->page_size;
  return TRUE;
}

static gboolean
npy_finish (gpointer writer, GError **error)
{
  return TRUE;
}

const GstImagingFormatTable gst_imaging_format_npy = {
    .name = "npy",
    .open = npy_open,
    .read = npy_read,
    .close = npy_close,
    .create = npy_create,
    .write = npy_write,
    .finish = npy_finish,
    .discard = g_free,
};
