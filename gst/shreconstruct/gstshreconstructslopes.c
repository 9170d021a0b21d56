/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructslopes.h"

#include "gstimagingresults.h"

/* The slopes are the first tensor, [2][cells]; flags may follow. */
guint
gst_sh_reconstruct_cells_of_caps (GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *text = gst_structure_get_string (s, "dimensions");
  g_auto (GStrv) tensors = g_strsplit (text ? text : "", ",", 2);
  g_auto (GStrv) dims = g_strsplit (tensors[0] ? tensors[0] : "", ":", -1);
  guint64 n_cells;

  if (!gst_structure_has_name (s, "other/tensors") || g_strv_length (dims) < 2)
    return 0;
  n_cells = g_ascii_strtoull (dims[0], NULL, 10);
  for (guint i = 1; dims[i]; i++)
    if (g_ascii_strtoull (dims[i], NULL, 10) != (i == 1 ? 2 : 1))
      return 0;
  return n_cells > G_MAXINT32 ? 0 : (guint) n_cells;
}

guint
gst_sh_reconstruct_cells_of_frame (GstBuffer *buffer, const gchar *element)
{
  const GstStructure *s = gst_imaging_results_get (buffer, element);
  gboolean by_field = FALSE;
  gint n_cells = 0;

  if (!s ||
      g_strcmp0 (gst_structure_get_string (s, "id"), "shwfs-centroids-v1") != 0)
    return 0;
  gst_structure_get_boolean (s, "by-field", &by_field);
  gst_structure_get_int (s, by_field ? "columns" : "rows", &n_cells);
  return (guint) MAX (n_cells, 0);
}

void
gst_sh_reconstruct_slopes_close (GstShReconstructSlopes *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->holders); i++)
    if (self->holders[i]) {
      gst_buffer_unmap (self->holders[i], &self->maps[i]);
      gst_buffer_unref (self->holders[i]);
      self->holders[i] = NULL;
    }
  g_clear_pointer (&self->own, g_free);
  self->slopes = NULL;
}

static ImkStatus
open_tensors (GstShReconstructSlopes *self, GstBuffer *buffer, guint n_cells,
    ImkError *error)
{
  const gsize size = 2 * (gsize) n_cells * sizeof (gfloat);
  const gsize all = gst_buffer_get_size (buffer);

  if (all != size && all != size + n_cells)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer of slopes has %" G_GSIZE_FORMAT
        " bytes; %u cells have %" G_GSIZE_FORMAT ", and %u more with flags.",
        all, n_cells, size, n_cells);
  self->numbers = buffer;
  self->size = size;
  if (all > size) {
    self->bytes = buffer;
    self->bytes_at = size;
  }
  return IMK_OK;
}

static gint
find_field (const GstStructure *s, const gchar *name)
{
  const gchar *names = gst_structure_get_string (s, "fields");
  g_auto (GStrv) fields = g_strsplit (names ? names : "", ",", -1);

  for (gint i = 0; fields[i]; i++)
    if (g_str_equal (fields[i], name))
      return i;
  return -1;
}

static GstBuffer *
buffer_of (const GstStructure *s, const gchar *field)
{
  const GValue *value = gst_structure_get_value (s, field);

  return value && GST_VALUE_HOLDS_BUFFER (value) ? gst_value_get_buffer (value)
                                                 : NULL;
}

/* A row of numbers for each cell: columns @dx and @dy become rows. */
static gfloat *
gather (const gfloat *numbers, guint n_cells, guint columns, guint dx, guint dy)
{
  gfloat *own = g_new (gfloat, 2 * (gsize) n_cells);

  for (gsize i = 0; i < n_cells; i++) {
    own[i] = numbers[i * columns + dx];
    own[n_cells + i] = numbers[i * columns + dy];
  }
  return own;
}

static ImkStatus
open_metadata (GstShReconstructSlopes *self, GstBuffer *buffer,
    const gchar *element, guint n_cells, ImkError *error)
{
  const GstStructure *s = gst_imaging_results_get (buffer, element);
  const gchar *id = s ? gst_structure_get_string (s, "id") : NULL;
  gint dx, dy, rows = 0, columns = 0, cells;
  gboolean by_field = FALSE;

  if (g_strcmp0 (id, "shwfs-centroids-v1") != 0)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "There are no slopes%s%s%s on the frame. Put shcentroid before "
        "shreconstruct, and give its name in `results` where there are several.",
        element ? " of an element named \"" : "", element ? element : "",
        element ? "\"" : "");
  dx = find_field (s, "dx");
  dy = find_field (s, "dy");
  gst_structure_get_int (s, "rows", &rows);
  gst_structure_get_int (s, "columns", &columns);
  gst_structure_get_boolean (s, "by-field", &by_field);
  if (dx < 0 || dy < 0)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The results on the frame have no slopes. Set fields=slopes or "
        "fields=all on shcentroid.");
  cells = by_field ? columns : rows;
  if (cells != (gint) n_cells)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The frame has %d cells and the control matrix is made for %u. Use "
        "the matrix of this sensor.",
        cells, n_cells);
  self->numbers = buffer_of (s, "data");
  self->size = (gsize) rows * (gsize) columns * sizeof (gfloat);
  self->bytes = buffer_of (s, "flags");
  self->places = buffer_of (s, "row-column");
  if (!self->numbers || gst_buffer_get_size (self->numbers) < self->size)
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The slopes on the frame cannot be read.");
  if (self->bytes && gst_buffer_get_size (self->bytes) < n_cells)
    self->bytes = NULL;
  if (by_field && dy == dx + 1) {
    self->at = (gsize) dx * n_cells * sizeof (gfloat);
  } else {
    self->columns = (guint) columns;
    self->dx = (guint) dx;
    self->dy = (guint) dy;
  }
  return IMK_OK;
}

ImkStatus
gst_sh_reconstruct_slopes_open (GstShReconstructSlopes *self, GstBuffer *buffer,
    gboolean is_tensor, const gchar *element, guint n_cells, ImkError *error)
{
  *self = (GstShReconstructSlopes){.n_cells = n_cells};
  return is_tensor ? open_tensors (self, buffer, n_cells, error)
                   : open_metadata (self, buffer, element, n_cells, error);
}

static const guint8 *
map (GstShReconstructSlopes *self, guint i, GstBuffer *buffer, gsize size)
{
  if (!buffer || gst_buffer_get_size (buffer) < size ||
      !gst_buffer_map (buffer, &self->maps[i], GST_MAP_READ))
    return NULL;
  self->holders[i] = gst_buffer_ref (buffer);
  return self->maps[i].data;
}

ImkStatus
gst_sh_reconstruct_slopes_map (GstShReconstructSlopes *self, ImkError *error)
{
  const guint n = self->n_cells;
  const guint8 *numbers, *bytes;

  if (self->slopes)
    return IMK_OK;
  numbers = map (self, 0, self->numbers, self->size);
  bytes = map (self, 1, self->bytes, self->bytes_at + n);
  if (!numbers || (self->bytes && !bytes)) {
    gst_sh_reconstruct_slopes_close (self);
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The slopes on the frame cannot be read.");
  }
  self->flags = bytes ? bytes + self->bytes_at : NULL;
  self->row_column = (const guint32 *) (gconstpointer) map (
      self, 2, self->places, 2 * (gsize) n * sizeof (guint32));
  if (self->columns > 0)
    self->slopes = self->own = gather ((const gfloat *) (gconstpointer) numbers,
        n, self->columns, self->dx, self->dy);
  else
    self->slopes = (const gfloat *) (gconstpointer) (numbers + self->at);
  return IMK_OK;
}
