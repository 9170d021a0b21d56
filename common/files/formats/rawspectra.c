/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rawspectra.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingnpy.h"

/* Sides of a picture are below 2^31. */
#define MAX_SIDE G_MAXINT32

typedef struct {
  const GstImagingFormatFile *file;
  GstImagingNdArray raw; /* the samples as they are in the file */
  gsize n_per_page;
} Reader;

static gboolean
fail_size (const GstImagingFormatFile *file, const gchar *told,
    const GstImagingRawLayout *l, guint64 bscan_size, GError **error)
{
  g_autofree gchar *bscans =
      l->n_bscans > 0
          ? g_strdup_printf ("%" G_GUINT64_FORMAT " B-scans", l->n_bscans)
      : l->n_together > 1
          ? g_strdup_printf (
                "%" G_GUINT64_FORMAT " B-scans or a multiple", l->n_together)
          : g_strdup ("B-scans");

  return gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      "has %" G_GUINT64_FORMAT " bytes, and \"%s\" tells of %s of "
      "%" G_GUINT64_FORMAT " lines of %" G_GUINT64_FORMAT
      " samples of %s, %" G_GUINT64_FORMAT
      " bytes each. Correct the settings, or copy the file again if it was "
      "truncated.",
      file->size, told, bscans, l->n_lines, l->n_samples,
      gst_imaging_nd_array_type_name (l->type), bscan_size);
}

/* Returns: how many B-scans the file has; 0 with @error set */
static guint64
count_bscans (const GstImagingFormatFile *file, const gchar *told,
    const GstImagingRawLayout *l, GError **error)
{
  guint64 sample_size = gst_imaging_nd_array_type_size (l->type);
  guint64 bscan_size, n;

  if (l->n_lines == 0 || l->n_lines > MAX_SIDE || l->n_samples == 0 ||
      l->n_samples > MAX_SIDE) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has settings in \"%s\" of %" G_GUINT64_FORMAT
        " lines of %" G_GUINT64_FORMAT " samples; expected are 1 to %d.",
        told, l->n_lines, l->n_samples, MAX_SIDE);
    return 0;
  }
  bscan_size = l->n_lines * l->n_samples * sample_size;
  n = file->size / bscan_size;
  if (n == 0 || file->size % bscan_size != 0 ||
      (l->n_bscans > 0 && n != l->n_bscans) ||
      n % MAX (l->n_together, 1) != 0) {
    fail_size (file, told, l, bscan_size, error);
    return 0;
  }
  return n;
}

gpointer
gst_imaging_raw_spectra_open_layout (const GstImagingFormatFile *file,
    const gchar *told, GstImagingRawLayout *layout, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  guint64 n = count_bscans (file, told, layout, error);
  Reader *self;

  if (n == 0) {
    g_clear_pointer (&layout->cards, g_ptr_array_unref);
    return NULL;
  }
  array->type = layout->type;
  gst_imaging_format_set_dims (array, n, layout->n_lines, layout->n_samples, 1);
  gst_imaging_format_take_cards (array, g_steal_pointer (&layout->cards));
  self = g_new0 (Reader, 1);
  self->file = file;
  self->raw.name = (gchar *) file->name;
  self->raw.type = layout->type;
  self->n_per_page = layout->n_lines * layout->n_samples;
  self->raw.n_values = n * self->n_per_page;
  *n_pages = n;
  return self;
}

gpointer
gst_imaging_raw_spectra_open (const GstImagingFormatFile *file,
    const gchar *settings, GstImagingRawParser parse, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  g_autofree gchar *told = gst_imaging_file_name (settings), *text = NULL;
  g_autoptr (GError) why = NULL;
  GstImagingRawLayout layout = {.n_together = 1};
  gsize size;

  text = gst_imaging_file_load (
      settings, GST_IMAGING_FILE_MAX_SETTINGS, &size, &why);
  if (!text) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_READ,
        "has no header, and its settings cannot be read: %s Put them beside "
        "it, or give --samples and --lines to gst-imaging oct.",
        why->message);
    return NULL;
  }
  layout.cards = g_ptr_array_new_with_free_func (g_free);
  if (!parse (file, told, text, size, &layout, error)) {
    g_ptr_array_unref (layout.cards);
    return NULL;
  }
  return gst_imaging_raw_spectra_open_layout (
      file, told, &layout, array, n_pages, error);
}

gboolean
gst_imaging_raw_spectra_read (
    gpointer reader, guint64 page, gpointer values, GError **error)
{
  Reader *self = reader;

  return gst_imaging_npy_read_values (&self->raw, self->file->fd,
      page * self->n_per_page, self->n_per_page, values, error);
}

void
gst_imaging_raw_spectra_close (gpointer reader)
{
  g_free (reader);
}
