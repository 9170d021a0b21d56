/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkfile.h"

#include <gst/gst.h>
#include <string.h>

#include "gstimagingfile.h"

static gboolean
fail (GstPictureSinkFile *self, GError **error, gint code, const gchar *what)
{
  g_autofree gchar *name = gst_imaging_file_name (self->location);

  g_set_error (error, GST_RESOURCE_ERROR, code, "\"%s\" %s", name, what);
  return FALSE;
}

/* Returns: the number behind all numbered files of that name, also behind a
 * gap; 0 if there are none */
static guint64
find_end (const GstPictureSinkFile *self)
{
  guint64 end = 0;
  g_autofree gchar *folder = g_path_get_dirname (self->location);
  g_autofree gchar *base = g_path_get_basename (self->location);
  g_autoptr (GDir) files = g_dir_open (folder, 0, NULL);
  GstImagingFileNumber number;
  const gchar *name;

  if (!files || !gst_imaging_file_number_find (&number, base, NULL) ||
      number.size == 0) /* the number is in the folder's name */
    return 0;
  while ((name = g_dir_read_name (files))) {
    guint64 n;

    if (gst_imaging_file_number_get (&number, base, name, &n) &&
        n < G_MAXUINT32)
      end = MAX (end, n + 1);
  }
  return end;
}

gboolean
gst_picture_sink_file_open (GstPictureSinkFile *self, const gchar *location,
    gboolean append, guint64 max_frames, GError **error)
{
  if (!location || !*location) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "No file to write: set the property location, for example to "
        "frames.npy or frame%%05d.png.");
    return FALSE;
  }
  *self = (GstPictureSinkFile){.location = g_strdup (location),
      .append = append,
      .max_frames = max_frames,
      .level = -1};
  if (!gst_imaging_file_number_find (&self->number, location, error) ||
      !gst_imaging_array_writer_find (
          location, &self->types, &self->appends, error)) {
    gst_picture_sink_file_close (self);
    return FALSE;
  }
  if (self->number.size > 0 && append)
    self->first = find_end (self);
  if (self->number.size == 0 && append &&
      self->appends == GST_IMAGING_ARRAY_APPENDS_NONE) {
    fail (self, error, GST_RESOURCE_ERROR_SETTINGS,
        "holds one picture, and append=true is set. Take .npy, .tif or .fits, "
        "or a name with a number, such as frame%05d.png.");
    gst_picture_sink_file_close (self);
    return FALSE;
  }
  return TRUE;
}

static gboolean
write_single (GstPictureSinkFile *self, const GstImagingNdArray *frame,
    gconstpointer values, GError **error)
{
  g_autofree gchar *name =
      self->number.size > 0 ? gst_imaging_file_number_put (&self->number,
                                  self->location, self->first + self->n_written)
                            : g_strdup (self->location);
  GstImagingNdArray array = *frame;

  if (self->number.size == 0 && self->n_written > 0)
    return fail (self, error, GST_RESOURCE_ERROR_SETTINGS,
        "holds one picture, the first frame, and more have arrived. Take a name "
        "with a number, such as frame%05d.png, a format that holds many (.npy, "
        ".tif, .fits), or max-frames=1.");
  array.data = values;
  return gst_imaging_array_save_level (&array, name, self->level, error);
}

static gboolean
is_same_shape (const GstImagingNdArray *a, const GstImagingNdArray *b)
{
  return a->type == b->type && a->n_dims == b->n_dims &&
         memcmp (a->dims, b->dims, a->n_dims * sizeof (a->dims[0])) == 0;
}

static gboolean
start_recording (
    GstPictureSinkFile *self, const GstImagingNdArray *frame, GError **error)
{
  self->replaces =
      !self->append && g_file_test (self->location, G_FILE_TEST_EXISTS);
  self->recorder = gst_imaging_array_recorder_new (
      self->location, frame, self->append, self->max_frames, error);
  if (!self->recorder)
    return FALSE;
  self->first = gst_imaging_array_recorder_get_n_frames (self->recorder);
  self->shape = *frame;
  self->shape.cards = NULL;
  return TRUE;
}

static gboolean
record (GstPictureSinkFile *self, const GstImagingNdArray *frame,
    gconstpointer values, GError **error)
{
  if (!self->recorder && self->n_written > 0)
    return fail (self, error, GST_RESOURCE_ERROR_FAILED,
        "is complete, and another frame has arrived after the end of the "
        "stream. Set append=true and start again to continue it.");
  if (!self->recorder && !start_recording (self, frame, error))
    return FALSE;
  if (is_same_shape (&self->shape, frame))
    return gst_imaging_array_recorder_write (self->recorder, values, error);
  {
    g_autofree gchar *old = gst_imaging_nd_array_describe (&self->shape);
    g_autofree gchar *new = gst_imaging_nd_array_describe (frame);
    g_autofree gchar *what = g_strdup_printf (
        "has frames of %s, and the stream has changed to %s. Take a name with a "
        "number, such as frame%%05d.npy.",
        old, new);

    return fail (self, error, GST_RESOURCE_ERROR_FAILED, what);
  }
}

gboolean
gst_picture_sink_file_grows (const GstPictureSinkFile *self)
{
  return self->number.size == 0 && self->appends;
}

gchar *
gst_picture_sink_file_name_flags (const GstPictureSinkFile *self)
{
  g_autofree gchar *base = g_path_get_basename (self->location);
  const gchar *dot = strrchr (base, '.');
  gsize n = strlen (self->location) - (dot && dot > base ? strlen (dot) : 0);
  gboolean has_u8 = self->types >> GST_IMAGING_ND_ARRAY_TYPE_U8 & 1;

  return g_strdup_printf ("%.*s-flags%s", (gint) n, self->location,
      has_u8 ? self->location + n : ".npy");
}

gboolean
gst_picture_sink_file_prepare (
    GstPictureSinkFile *self, const GstImagingNdArray *frame, GError **error)
{
  return !gst_picture_sink_file_grows (self) || self->recorder ||
         self->n_written > 0 || start_recording (self, frame, error);
}

gboolean
gst_picture_sink_file_write (GstPictureSinkFile *self,
    const GstImagingNdArray *frame, gconstpointer values, GError **error)
{
  if (!(gst_picture_sink_file_grows (self)
              ? record (self, frame, values, error)
              : write_single (self, frame, values, error)))
    return FALSE;
  self->n_written++;
  return TRUE;
}

gchar *
gst_picture_sink_file_describe_older (const GstPictureSinkFile *self)
{
  guint64 behind = self->first + self->n_written, end;
  g_autofree gchar *path = NULL, *name = NULL;

  if (self->number.size == 0 || self->append || self->n_written == 0)
    return NULL;
  end = find_end (self);
  if (end <= behind)
    return NULL;
  path = gst_imaging_file_number_put (&self->number, self->location, end - 1);
  name = gst_imaging_file_name (path);
  return g_strdup_printf ("This recording has %" G_GUINT64_FORMAT
                          " files, and \"%s\" of an older one is behind them. "
                          "A reader of this folder takes both recordings for "
                          "one. Remove the older files, or record into an "
                          "empty folder.",
      self->n_written, name);
}

gboolean
gst_picture_sink_file_finish (GstPictureSinkFile *self, GError **error)
{
  gboolean ok;

  if (!self->recorder)
    return TRUE;
  ok = gst_imaging_array_recorder_finish (self->recorder, error);
  g_clear_pointer (&self->recorder, gst_imaging_array_recorder_free);
  return ok;
}

void
gst_picture_sink_file_close (GstPictureSinkFile *self)
{
  gst_imaging_array_recorder_free (self->recorder);
  g_free (self->location);
  memset (self, 0, sizeof (*self));
}
