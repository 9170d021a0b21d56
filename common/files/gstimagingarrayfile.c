/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingarrayfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/gstimagingfile.h"
#include "gstimagingformats.h"
#include "gstimagingndarray-private.h"
#include "gstimagingsidecar.h"

/* --- reading -------------------------------------------------------------- */

struct _GstImagingArrayReader {
  GstImagingFormatFile file;
  const GstImagingFormatTable *table;
  gpointer reader;
  GstImagingNdArray *array;
  guint64 n_pages;
};

/* What a format says must hold for all that follows. */
static gboolean
check_array (GstImagingArrayReader *self, GError **error)
{
  GstImagingNdArray *array = self->array;
  guint64 size;

  if (!gst_imaging_nd_array_count_values (self->file.name, array->type,
          array->n_dims, array->dims, &array->n_values, error))
    return FALSE;
  for (guint i = array->n_dims; i < GST_IMAGING_ND_ARRAY_MAX_DIMS; i++)
    array->dims[i] = 1;
  size = array->n_values * gst_imaging_nd_array_types[array->type].size;
  return gst_imaging_format_check_size (&self->file, size, error);
}

/* Formats of one picture have the part 0. */
static gboolean
check_part (GstImagingArrayReader *self, GError **error)
{
  if (self->table->has_parts || self->file.part <= 1)
    return TRUE;
  return gst_imaging_format_fail_part (&self->file, 1, error);
}

GstImagingArrayReader *
gst_imaging_array_reader_new (
    const gchar *location, guint64 max_size, GError **error)
{
  return gst_imaging_array_reader_new_part (location, max_size, -1, error);
}

GstImagingArrayReader *
gst_imaging_array_reader_new_part (
    const gchar *location, guint64 max_size, gint part, GError **error)
{
  g_autoptr (GstImagingArrayReader) self = NULL;
  g_autofree gchar *name = NULL;
  GError *why = NULL;
  guint64 size = 0;
  gint fd;

  g_return_val_if_fail (location, NULL);

  fd = gst_imaging_file_open (location, max_size, &size, &why);
  if (fd < 0) {
    gst_imaging_nd_array_take_file_error (why, error);
    return NULL;
  }
  name = gst_imaging_file_name (location);
  self = g_new0 (GstImagingArrayReader, 1);
  self->array = g_new0 (GstImagingNdArray, 1);
  self->array->name = g_steal_pointer (&name);
  self->file = (GstImagingFormatFile){.fd = fd,
      .size = size,
      .name = self->array->name,
      .location = location,
      .part = part < 0 ? 0 : (guint) part + 1,
      .parts = g_ptr_array_new_with_free_func (g_free),
      .notes = g_ptr_array_new_with_free_func (g_free)};
  self->table = gst_imaging_formats_find_reader (&self->file, location, error);
  if (self->table && check_part (self, error))
    self->reader =
        self->table->open (&self->file, self->array, &self->n_pages, error);
  if (!self->reader || !check_array (self, error))
    return NULL;
  return g_steal_pointer (&self);
}

const GstImagingNdArray *
gst_imaging_array_reader_get_array (const GstImagingArrayReader *self)
{
  return self->array;
}

gchar *
gst_imaging_array_reader_describe_parts (const GstImagingArrayReader *self)
{
  GString *text;

  if (self->file.parts->len < 2)
    return NULL;
  text = g_string_new (NULL);
  for (guint i = 0; i < self->file.parts->len; i++) {
    g_autofree gchar *part =
        gst_imaging_file_escape (g_ptr_array_index (self->file.parts, i));

    g_string_append_printf (text, "%s%u: %s", i > 0 ? "; " : "", i, part);
  }
  return g_string_free (text, FALSE);
}

const gchar *
gst_imaging_array_reader_get_note (const GstImagingArrayReader *self)
{
  return self->file.notes->len > 0 ? g_ptr_array_index (self->file.notes, 0)
                                   : NULL;
}

guint64
gst_imaging_array_reader_get_n_pages (const GstImagingArrayReader *self)
{
  return self->n_pages;
}

gboolean
gst_imaging_array_reader_read (
    GstImagingArrayReader *self, guint64 page, gpointer values, GError **error)
{
  g_return_val_if_fail (page < self->n_pages, FALSE);

  return self->table->read (self->reader, page, values, error);
}

void
gst_imaging_array_reader_free (GstImagingArrayReader *self)
{
  if (!self)
    return;
  if (self->reader)
    self->table->close (self->reader);
  close (self->file.fd);
  g_ptr_array_unref (self->file.parts);
  g_ptr_array_unref (self->file.notes);
  gst_imaging_nd_array_free (self->array);
  g_free (self);
}

GstImagingNdArray *
gst_imaging_nd_array_load (const gchar *location, GError **error)
{
  return gst_imaging_nd_array_load_part (location, -1, error);
}

GstImagingNdArray *
gst_imaging_nd_array_load_part (
    const gchar *location, gint part, GError **error)
{
  g_autoptr (GstImagingArrayReader) self = gst_imaging_array_reader_new_part (
      location, GST_IMAGING_FILE_MAX_ARRAY, part, error);
  g_autofree guint8 *values = NULL;
  gsize size, page_size;

  if (!self)
    return NULL;
  size = gst_imaging_nd_array_types[self->array->type].size;
  if (self->array->n_values > GST_IMAGING_FILE_MAX_ARRAY / size) {
    gst_imaging_format_fail (&self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "has %" G_GUINT64_FORMAT " values of %" G_GSIZE_FORMAT
        " bytes; expected are 8 GiB at most where all of it is read.",
        self->array->n_values, size);
    return NULL;
  }
  values = gst_imaging_nd_array_alloc_values (
      self->array->name, self->array->n_values, size, error);
  if (!values)
    return NULL;
  page_size = self->array->n_values / MAX (self->n_pages, 1) * size;
  for (guint64 i = 0; i < self->n_pages; i++)
    if (!gst_imaging_array_reader_read (self, i, values + i * page_size, error))
      return NULL;
  gst_imaging_nd_array_take_values (self->array, g_steal_pointer (&values));
  return g_steal_pointer (&self->array);
}

/* --- writing -------------------------------------------------------------- */

typedef struct {
  GstImagingFormatFile file;
  GstImagingSaver *saver;
  const GstImagingFormatTable *table;
  gpointer writer;
  GstImagingNdArray array; /* shares what the caller gave */
  guint64 n_pages;
} Writer;

static void
writer_free (Writer *self)
{
  if (!self)
    return;
  gst_imaging_formats_close (
      self->table, self->writer, self->saver, &self->file);
  g_free (self);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Writer, writer_free)

static gboolean
check_shape (Writer *self, GError **error)
{
  GstImagingNdArray *array = &self->array;

  if ((guint) array->type >= GST_IMAGING_ND_ARRAY_N_TYPES)
    return gst_imaging_format_fail (&self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_TYPE,
        "cannot be written: %d is no type, expected is 0 to %u.",
        (gint) array->type, (guint) GST_IMAGING_ND_ARRAY_N_TYPES - 1);
  if (array->n_dims > GST_IMAGING_ND_ARRAY_MAX_DIMS)
    return gst_imaging_format_fail (&self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "cannot be written with %u dimensions, expected are at most %d.",
        array->n_dims, GST_IMAGING_ND_ARRAY_MAX_DIMS);
  return gst_imaging_nd_array_count_values (self->file.name, array->type,
      array->n_dims, array->dims, &array->n_values, error);
}

gboolean
gst_imaging_array_writer_find (const gchar *location, guint32 *types,
    GstImagingArrayAppends *appends, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);
  GstImagingFormatFile file = {.fd = -1, .name = name};
  const GstImagingFormatTable *table =
      gst_imaging_formats_find_writer (&file, location, error);

  if (!table)
    return FALSE;
  *types = table->types;
  *appends = !table->append     ? GST_IMAGING_ARRAY_APPENDS_NONE
             : table->has_pages ? GST_IMAGING_ARRAY_APPENDS_PICTURES
                                : GST_IMAGING_ARRAY_APPENDS_ARRAYS;
  return TRUE;
}

/* @fd: of an open file; -1: @location is to be written; @level: -1, or zlib's
 */
static Writer *
open_writer (const gchar *location, gint fd, const GstImagingNdArray *array,
    gint level, GError **error)
{
  g_autoptr (Writer) self = g_new0 (Writer, 1);
  GError *why = NULL;

  self->file.name = gst_imaging_file_name (location);
  self->file.location = location;
  self->file.level = level < 0 ? 0 : (guint) level + 1;
  self->array = *array;
  if (!check_shape (self, error))
    return NULL;
  self->table = gst_imaging_formats_find_writer (&self->file, location, error);
  if (!self->table || !gst_imaging_format_check_type (
                          self->table, &self->file, &self->array, error))
    return NULL;
  self->saver = fd < 0 ? gst_imaging_saver_new (location, &why) : NULL;
  if (why) {
    gst_imaging_nd_array_take_file_error (why, error);
    return NULL;
  }
  self->file.fd = fd < 0 ? gst_imaging_saver_get_fd (self->saver) : fd;
  self->writer =
      self->table->create (&self->file, &self->array, &self->n_pages, error);
  return self->writer ? g_steal_pointer (&self) : NULL;
}

static gboolean
write_pages (Writer *self, GError **error)
{
  const GstImagingNdArray *array = &self->array;
  gsize size = array->n_values / MAX (self->n_pages, 1) *
               gst_imaging_nd_array_types[array->type].size;

  for (guint64 i = 0; i < self->n_pages; i++)
    if (!self->table->write (
            self->writer, (const guint8 *) array->data + i * size, error))
      return FALSE;
  return TRUE;
}

gboolean
gst_imaging_nd_array_save (
    const GstImagingNdArray *array, const gchar *location, GError **error)
{
  if (!gst_imaging_array_save_level (array, location, -1, error))
    return FALSE;
  gst_imaging_sidecar_remove (location); /* it tells of what was there before */
  return TRUE;
}

gboolean
gst_imaging_array_save_level (const GstImagingNdArray *array,
    const gchar *location, gint level, GError **error)
{
  g_autoptr (Writer) self = NULL;

  g_return_val_if_fail (location, FALSE);
  g_return_val_if_fail (array, FALSE);

  self = open_writer (location, -1, array, level, error);
  if (!self)
    return FALSE;
  g_return_val_if_fail (array->data || self->array.n_values == 0, FALSE);
  return write_pages (self, error) && gst_imaging_formats_finish (self->table,
                                          self->writer, self->saver, error);
}

/* Returns: (transfer full): @array written to @file, which has no name */
static GBytes *
encode (const gchar *name, FILE *file, const GstImagingNdArray *array,
    GError **error)
{
  g_autoptr (Writer) self = open_writer (name, fileno (file), array, -1, error);
  guint8 *bytes;
  struct stat st;

  if (!self || !write_pages (self, error) ||
      (self->table->finish && !self->table->finish (self->writer, error)))
    return NULL;
  if (fstat (self->file.fd, &st) != 0) {
    gst_imaging_format_fail (&self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_READ, "cannot be read: %s.",
        g_strerror (errno));
    return NULL;
  }
  self->file.size = (guint64) st.st_size;
  bytes = gst_imaging_format_load (&self->file, error);
  return bytes ? g_bytes_new_take (bytes, self->file.size) : NULL;
}

GBytes *
gst_imaging_array_encode (
    const gchar *name, const GstImagingNdArray *array, GError **error)
{
  FILE *file = tmpfile ();
  GBytes *bytes;

  if (!file) {
    g_set_error (error, GST_IMAGING_ND_ARRAY_ERROR,
        GST_IMAGING_ND_ARRAY_ERROR_WRITE,
        "\"%s\" cannot be encoded: there is no temporary file: %s.", name,
        g_strerror (errno));
    return NULL;
  }
  bytes = encode (name, file, array, error);
  fclose (file);
  return bytes;
}

static GstImagingNdArray
array_of (GstImagingNdArrayType type, guint n_dims, const guint64 *dims,
    gconstpointer data)
{
  GstImagingNdArray array = {.type = type, .n_dims = n_dims, .data = data};

  memcpy (array.dims, dims,
      MIN (n_dims, GST_IMAGING_ND_ARRAY_MAX_DIMS) * sizeof (dims[0]));
  return array;
}

gboolean
gst_imaging_array_save (const gchar *location, GstImagingNdArrayType type,
    guint n_dims, const guint64 *dims, gconstpointer data, GError **error)
{
  const GstImagingNdArray array = array_of (type, n_dims, dims, data);

  return gst_imaging_nd_array_save (&array, location, error);
}

gboolean
gst_imaging_array_check_save (const gchar *location, GstImagingNdArrayType type,
    guint n_dims, const guint64 *dims, GError **error)
{
  const GstImagingNdArray array = array_of (type, n_dims, dims, NULL);
  Writer *writer = open_writer (location, -1, &array, -1, error);

  if (!writer)
    return FALSE;
  writer_free (writer);
  return TRUE;
}
