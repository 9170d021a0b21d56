/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingarrayrecorder.h"

#include "files/gstimagingfile.h"
#include "gstimagingformats.h"
#include "gstimagingndarray-private.h"

struct _GstImagingArrayRecorder {
  GstImagingFormatFile file;
  GstImagingSaver *saver;
  const GstImagingFormatTable *table;
  gpointer writer;
  guint64 n_frames;
  gboolean has_name;
};

static gboolean
check_frame (
    GstImagingArrayRecorder *self, GstImagingNdArray *frame, GError **error)
{
  if (frame->n_dims >= GST_IMAGING_ND_ARRAY_MAX_DIMS)
    return gst_imaging_format_fail (&self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "cannot be written with frames of %u dimensions, expected are at most "
        "%d.",
        frame->n_dims, GST_IMAGING_ND_ARRAY_MAX_DIMS - 1);
  return gst_imaging_nd_array_count_values (self->file.name, frame->type,
      frame->n_dims, frame->dims, &frame->n_values, error);
}

GstImagingArrayRecorder *
gst_imaging_array_recorder_new (const gchar *location,
    const GstImagingNdArray *frame, gboolean append, guint64 n_expected,
    GError **error)
{
  g_autoptr (GstImagingArrayRecorder) self = NULL;
  GstImagingNdArray shape;
  GError *why = NULL;

  g_return_val_if_fail (location, NULL);
  g_return_val_if_fail (frame, NULL);

  self = g_new0 (GstImagingArrayRecorder, 1);
  self->file.name = gst_imaging_file_name (location);
  shape = *frame; /* shares what the caller gave */
  if (!check_frame (self, &shape, error))
    return NULL;
  self->table = gst_imaging_formats_find_writer (&self->file, location, error);
  if (!self->table)
    return NULL;
  if (!self->table->append) {
    gst_imaging_format_fail (&self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "cannot take several frames: a file of %s holds one picture. Take a "
        "name with a number, such as frame%%05d.png, or .npy, .tif or .fits.",
        self->table->name);
    return NULL;
  }
  if (!gst_imaging_format_check_type (self->table, &self->file, &shape, error))
    return NULL;
  self->has_name = append && g_file_test (location, G_FILE_TEST_EXISTS);
  self->saver = self->has_name ? gst_imaging_saver_continue (
                                     location, &self->file.size, &why)
                               : gst_imaging_saver_new (location, &why);
  if (!self->saver || !gst_imaging_saver_lock (self->saver, &why)) {
    gst_imaging_nd_array_take_file_error (why, error);
    return NULL;
  }
  self->file.fd = gst_imaging_saver_get_fd (self->saver);
  self->writer = self->table->append (
      &self->file, &shape, n_expected, &self->n_frames, error);
  return self->writer ? g_steal_pointer (&self) : NULL;
}

guint64
gst_imaging_array_recorder_get_n_frames (const GstImagingArrayRecorder *self)
{
  return self->n_frames;
}

gboolean
gst_imaging_array_recorder_write (
    GstImagingArrayRecorder *self, gconstpointer values, GError **error)
{
  GError *why = NULL;

  if (!self->table->write (self->writer, values, error))
    return FALSE;
  self->n_frames++;
  if (!self->has_name && !gst_imaging_saver_give_name (self->saver, &why))
    return gst_imaging_nd_array_take_file_error (why, error);
  self->has_name = TRUE;
  return TRUE;
}

gboolean
gst_imaging_array_recorder_finish (
    GstImagingArrayRecorder *self, GError **error)
{
  return !self->has_name || gst_imaging_formats_finish (
                                self->table, self->writer, self->saver, error);
}

void
gst_imaging_array_recorder_free (GstImagingArrayRecorder *self)
{
  if (!self)
    return;
  gst_imaging_formats_close (
      self->table, self->writer, self->saver, &self->file);
  g_free (self);
}
