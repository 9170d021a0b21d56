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
  GstImagingNdArray *growing; /* what the file holds; NULL if that is known */
  gsize header_size;
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

/* Is a frame that was written before it is counted. */
static gboolean
count (Writer *self, guint64 n, gboolean growing, GError **error)
{
  GstImagingNdArray *array = self->growing;
  guint64 dims[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  g_autoptr (GString) header = NULL;
  gboolean ok;

  memcpy (dims, array->dims, sizeof (dims));
  dims[0] = n;
  header = gst_imaging_npy_format_growing_header (
      array->type, array->n_dims, dims, self->header_size, growing);
  if (!header)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has no room in its header for the number of frames. Load and save it "
        "with numpy 1.23 or later, or choose another name.");
  self->header_size = header->len;
  ok = gst_imaging_format_write_at (
      self->file, header->str, header->len, 0, error);
  if (ok)
    array->dims[0] = n;
  return ok;
}

static gboolean
npy_write (gpointer writer, gconstpointer values, GError **error)
{
  Writer *self = writer;

  if (!gst_imaging_format_write_at (
          self->file, values, self->page_size, self->offset, error) ||
      (self->growing &&
          !count (self, self->growing->dims[0] + 1, TRUE, error))) {
    if (self->growing)
      gst_imaging_format_cut (self->file, self->offset);
    return FALSE;
  }
  self->offset += self->page_size;
  return TRUE;
}

static gboolean
npy_finish (gpointer writer, GError **error)
{
  Writer *self = writer;

  return !self->growing || count (self, self->growing->dims[0], FALSE, error);
}

static void
npy_discard (gpointer writer)
{
  Writer *self = writer;

  gst_imaging_nd_array_free (self->growing);
  g_free (self);
}

/* --- frames that are appended --- */

/* Returns: (transfer full): what the file holds; NULL with @error set */
static GstImagingNdArray *
find_frames (const GstImagingFormatFile *file, const GstImagingNdArray *frame,
    GError **error)
{
  g_autoptr (GstImagingNdArray) npy =
      gst_imaging_npy_read_header (file->fd, file->size, file->name, error);

  if (!npy)
    return NULL;
  if (!gst_imaging_format_has_frames (npy, frame)) {
    gst_imaging_format_fail_other_frames (file, npy, frame, error);
    return NULL;
  }
  if (npy->fortran_order ||
      (npy->big_endian != (G_BYTE_ORDER == G_BIG_ENDIAN) &&
          gst_imaging_nd_array_types[npy->type].size > 1)) {
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "cannot be appended to: it has the byte order of another machine, or "
        "Fortran order. Save it from numpy as "
        "numpy.ascontiguousarray(array, array.dtype.newbyteorder('=')).");
    return NULL;
  }
  return g_steal_pointer (&npy);
}

static gpointer
npy_append (const GstImagingFormatFile *file, const GstImagingNdArray *frame,
    guint64 n_expected, guint64 *n_frames, GError **error)
{
  Writer *self;
  GstImagingNdArray *growing;

  if (file->size > 0) {
    growing = find_frames (file, frame, error);
    if (!growing)
      return NULL;
  } else {
    growing = g_new0 (GstImagingNdArray, 1);
    growing->type = frame->type;
    growing->n_dims = frame->n_dims + 1;
    memcpy (growing->dims + 1, frame->dims,
        frame->n_dims * sizeof (frame->dims[0]));
  }
  self = g_new0 (Writer, 1);
  self->file = file;
  self->growing = growing;
  self->header_size = growing->data_offset;
  self->page_size =
      frame->n_values * gst_imaging_nd_array_types[frame->type].size;
  *n_frames = growing->dims[0];
  if (!count (self, *n_frames, TRUE, error)) {
    npy_discard (self);
    return NULL;
  }
  self->offset = self->header_size + *n_frames * self->page_size;
  return self;
}

const GstImagingFormatTable gst_imaging_format_npy = {
    .name = "npy",
    .open = npy_open,
    .read = npy_read,
    .close = npy_close,
    .create = npy_create,
    .write = npy_write,
    .finish = npy_finish,
    .discard = npy_discard,
    .types = GST_IMAGING_FORMAT_ALL_TYPES,
    .takes = ".npy takes all types",
    .append = npy_append,
};
