/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingsequence.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "gstimagingarrayfile.h"
#include "gstimagingdescription.h"
#include "gstimagingfilelist.h"
#include "gstimagingndarray-private.h"

struct _GstImagingSequence {
  GstImagingFileList files;
  gint part;    /* of each file; -1: all of it */
  GArray *ends; /* guint64 for each: the pages up to and with it */

  gchar axes[GST_IMAGING_ND_ARRAY_MAX_DIMS + 1]; /* "" where nobody says */
  gboolean has_pages; /* the first dimension is pages */
  gboolean is_whole;  /* what the reader takes for pages is one */

  GstImagingArrayReader *first;
  GstImagingArrayReader *reader; /* of the file read last; may be the first */
  guint current;
  GstImagingDescription *description; /* (nullable): of the file @described */
  guint described;
  gboolean has_note, has_flags; /* of a description: one for all files */
};

/* --- files ---------------------------------------------------------------- */

static GstImagingArrayReader *
open_file (const GstImagingSequence *self, guint i, GError **error)
{
  return gst_imaging_array_reader_new_part (
      g_ptr_array_index (self->files.names, i), GST_IMAGING_FILE_MAX_STREAM,
      self->part, error);
}

static gboolean
starts_with_pages (const gchar *axes, guint n_dims)
{
  return *axes ? *axes == 'n' : n_dims > 2;
}

/* What the file says counts before what @axes say. */
static gboolean
find_axes (GstImagingSequence *self, const gchar *axes, GError **error)
{
  const GstImagingNdArray *array =
      gst_imaging_array_reader_get_array (self->first);
  g_autofree gchar *found = NULL;
  const gchar *letter = axes;

  if (*array->axes || !axes || !*axes) {
    gboolean is_colour = !*array->axes && array->n_dims == 3 &&
                         array->dims[2] >= 2 && array->dims[2] <= 4;

    g_strlcpy (
        self->axes, is_colour ? "yxc" : array->axes, sizeof (self->axes));
    self->has_pages = starts_with_pages (self->axes, array->n_dims);
    return TRUE;
  }
  letter += *letter == 'n';
  letter += *letter == 'y';
  letter += *letter == 'x' && letter > axes;
  letter += *letter == 'c' && letter > axes;
  if (!*letter && strchr (axes, 'x') && strlen (axes) == array->n_dims &&
      (*axes != 'n' || array->n_dims > 2)) {
    g_strlcpy (self->axes, axes, sizeof (self->axes));
    self->has_pages = *axes == 'n';
    return TRUE;
  }
  found = gst_imaging_nd_array_describe (array);
  return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
      "\"%s\" holds %s, and axes is \"%s\": a letter for each dimension, yx, "
      "yxc, nyx or nyxc, where n are pages, y rows, x columns and c channels.",
      array->name, found, axes);
}

static guint64
count_pages_of (
    const GstImagingSequence *self, const GstImagingArrayReader *reader)
{
  return self->is_whole ? 1 : gst_imaging_array_reader_get_n_pages (reader);
}

/* Is a page of @reader one of the sequence? A file may have one page without a
 * dimension for it. */
static gboolean
check_alike (const GstImagingSequence *self,
    const GstImagingArrayReader *reader, GError **error)
{
  const GstImagingNdArray *a = gst_imaging_array_reader_get_array (self->first);
  const GstImagingNdArray *b = gst_imaging_array_reader_get_array (reader);
  guint n = a->n_dims - self->has_pages;
  guint skip_b = b->n_dims - n;
  g_autofree gchar *shape_a = NULL, *shape_b = NULL;

  if (a->type == b->type && b->n_dims >= n && skip_b <= 1 &&
      (skip_b == 0 || !self->is_whole) &&
      memcmp (a->dims + self->has_pages, b->dims + skip_b,
          n * sizeof (a->dims[0])) == 0)
    return TRUE;
  shape_a = gst_imaging_nd_array_describe (a);
  shape_b = gst_imaging_nd_array_describe (b);
  return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
      "\"%s\" is %s, expected is %s as \"%s\": all files that are played "
      "together must have one type and size.",
      b->name, shape_b, shape_a, a->name);
}

/* Files of one page are not opened before their turn. */
static gboolean
count_pages (GstImagingSequence *self, GError **error)
{
  guint64 end = count_pages_of (self, self->first);
  gboolean single = end == 1;

  g_array_append_val (self->ends, end);
  for (guint i = 1; i < self->files.names->len; i++) {
    g_autoptr (GstImagingArrayReader) reader = NULL;
    guint64 n = 1;

    if (!single) {
      reader = open_file (self, i, error);
      if (!reader || !check_alike (self, reader, error))
        return FALSE;
      n = count_pages_of (self, reader);
    }
    end += n;
    g_array_append_val (self->ends, end);
  }
  return TRUE;
}

GstImagingSequence *
gst_imaging_sequence_new (
    const gchar *const *locations, const gchar *axes, gint part, GError **error)
{
  g_autoptr (GstImagingSequence) self = g_new0 (GstImagingSequence, 1);
  const gchar *note;

  g_return_val_if_fail (locations && *locations, NULL);

  gst_imaging_file_list_init (&self->files);
  self->part = part;
  self->ends = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (; *locations; locations++)
    if (!gst_imaging_file_list_add (&self->files, *locations, error))
      return NULL;
  self->first = self->reader = open_file (self, 0, error);
  if (!self->first || !find_axes (self, axes, error))
    return NULL;
  note = gst_imaging_array_reader_get_note (self->first);
  if (note) /* of the other files it is the same */
    g_ptr_array_add (self->files.notes, g_strdup (note));
  self->is_whole = !self->has_pages &&
                   gst_imaging_array_reader_get_n_pages (self->first) > 1;
  if (!count_pages (self, error))
    return NULL;
  return g_steal_pointer (&self);
}

const GstImagingNdArray *
gst_imaging_sequence_get_array (const GstImagingSequence *self)
{
  return gst_imaging_array_reader_get_array (self->first);
}

guint
gst_imaging_sequence_get_first_dim (const GstImagingSequence *self)
{
  return self->has_pages;
}

guint64
gst_imaging_sequence_get_n_pages (const GstImagingSequence *self)
{
  return g_array_index (self->ends, guint64, self->ends->len - 1);
}

gchar *
gst_imaging_sequence_describe_parts (const GstImagingSequence *self)
{
  return gst_imaging_array_reader_describe_parts (self->first);
}

const GPtrArray *
gst_imaging_sequence_get_notes (const GstImagingSequence *self)
{
  return self->files.notes;
}

/* Returns: the file with @page, by halving */
static guint
find_file (const GstImagingSequence *self, guint64 page)
{
  guint low = 0, high = self->ends->len - 1;

  while (low < high) {
    guint middle = (low + high) / 2;

    if (page < g_array_index (self->ends, guint64, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* A missing file has as many pages as the first one. */
guint64
gst_imaging_sequence_get_number (const GstImagingSequence *self, guint64 page)
{
  guint i = find_file (self, page);

  return page + g_array_index (self->files.missing, guint64, i) *
                    g_array_index (self->ends, guint64, 0);
}

static void
close_current (GstImagingSequence *self)
{
  if (self->reader != self->first)
    gst_imaging_array_reader_free (self->reader);
  self->reader = NULL;
}

static gboolean
use_file (GstImagingSequence *self, guint i, guint64 n_pages, GError **error)
{
  if (self->reader && self->current == i)
    return TRUE;
  close_current (self);
  self->reader = i == 0 ? self->first : open_file (self, i, error);
  self->current = i;
  if (!self->reader || !check_alike (self, self->reader, error))
    return FALSE;
  return count_pages_of (self, self->reader) == n_pages ||
         gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
             "\"%s\" has %" G_GUINT64_FORMAT
             " pages, expected are %" G_GUINT64_FORMAT
             ": put files of several pages before the others, or apart.",
             gst_imaging_array_reader_get_array (self->reader)->name,
             count_pages_of (self, self->reader), n_pages);
}

static gboolean
read_whole (GstImagingSequence *self, guint8 *values, GError **error)
{
  const GstImagingNdArray *array =
      gst_imaging_array_reader_get_array (self->reader);
  guint64 n = gst_imaging_array_reader_get_n_pages (self->reader);
  gsize size = (gsize) (array->n_values / n) *
               gst_imaging_nd_array_type_size (array->type);

  for (guint64 i = 0; i < n; i++)
    if (!gst_imaging_array_reader_read (
            self->reader, i, values + i * size, error))
      return FALSE;
  return TRUE;
}

gboolean
gst_imaging_sequence_read (
    GstImagingSequence *self, guint64 page, gpointer values, GError **error)
{
  guint i = find_file (self, page);
  guint64 begin = i > 0 ? g_array_index (self->ends, guint64, i - 1) : 0;
  guint64 end = g_array_index (self->ends, guint64, i);

  g_return_val_if_fail (page < end, FALSE);

  if (!use_file (self, i, end - begin, error)) {
    close_current (self);
    return FALSE;
  }
  return self->is_whole ? read_whole (self, values, error)
                        : gst_imaging_array_reader_read (
                              self->reader, page - begin, values, error);
}

/* Slopes alone do not tell a dark cell from a flat wavefront. */
static void
note_flags (GstImagingSequence *self, const gchar *location)
{
  const gchar *flags = gst_imaging_description_get_flags (self->description);
  g_autofree gchar *name = gst_imaging_file_name (location);
  g_autofree gchar *shown = flags ? gst_imaging_file_quote (flags, -1) : NULL;

  if (flags && !self->has_flags)
    g_ptr_array_add (self->files.notes,
        g_strdup_printf (
            "The flags of \"%s\" are in \"%s\" and are not played with it. "
            "Copy that file, too: cells that are invalid have a slope of 0.",
            name, shown));
  self->has_flags = self->has_flags || flags;
}

GstStructure *
gst_imaging_sequence_describe (GstImagingSequence *self, guint64 page)
{
  const gchar *name = g_ptr_array_index (self->files.names, self->current);
  guint i = self->current;
  const gchar *note;

  g_return_val_if_fail (self->reader && find_file (self, page) == i, NULL);

  if (!self->description ||
      (self->described != i &&
          !gst_imaging_description_follow (self->description, name))) {
    g_clear_pointer (&self->description, gst_imaging_description_free);
    self->description = gst_imaging_description_new (
        gst_imaging_array_reader_get_array (self->reader), name);
    note = gst_imaging_description_get_note (self->description);
    note_flags (self, name);
    if (note && !self->has_note)
      g_ptr_array_add (self->files.notes, g_strdup (note));
    self->has_note = self->has_note || note;
  }
  self->described = i;
  return gst_imaging_description_at (self->description,
      page - (i > 0 ? g_array_index (self->ends, guint64, i - 1) : 0));
}

gchar *const *
gst_imaging_sequence_get_cards (const GstImagingSequence *self)
{
  return self->reader ? gst_imaging_array_reader_get_array (self->reader)->cards
                      : NULL;
}

void
gst_imaging_sequence_free (GstImagingSequence *self)
{
  if (!self)
    return;
  close_current (self);
  gst_imaging_array_reader_free (self->first);
  gst_imaging_file_list_clear (&self->files);
  gst_imaging_description_free (self->description);
  g_array_unref (self->ends);
  g_free (self);
}
