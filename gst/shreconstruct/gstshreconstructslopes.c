/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructslopes.h"

#include <string.h>

#include "gstimagingquantity.h"
#include "gstimagingresults.h"

enum { ID, ROWS, COLUMNS, BY_FIELD, FIELDS, DATA, FLAGS, PLACES, N_NAMES };

/* Fields by numbers: to look their names up would take as long as the rest. */
static const GQuark *
get_names (void)
{
  static const gchar *const names[N_NAMES] = {"id", "rows", "columns",
      "by-field", "fields", "data", "flags", "row-column"};
  static GQuark quarks[N_NAMES];
  static gsize once;

  if (g_once_init_enter (&once)) {
    for (guint i = 0; i < N_NAMES; i++)
      quarks[i] = g_quark_from_static_string (names[i]);
    g_once_init_leave (&once, 1);
  }
  return quarks;
}

/* Returns: (nullable): of that type */
static const GValue *
get_value (const GstStructure *s, guint name, GType type)
{
  const GValue *value = gst_structure_id_get_value (s, get_names ()[name]);

  return value && G_VALUE_TYPE (value) == type ? value : NULL;
}

static const gchar *
get_string (const GstStructure *s, guint name)
{
  const GValue *value = get_value (s, name, G_TYPE_STRING);

  return value ? g_value_get_string (value) : NULL;
}

static gint
get_int (const GstStructure *s, guint name)
{
  const GValue *value = get_value (s, name, G_TYPE_INT);

  return value ? g_value_get_int (value) : 0;
}

static gboolean
is_by_field (const GstStructure *s)
{
  const GValue *value = get_value (s, BY_FIELD, G_TYPE_BOOLEAN);

  return value && g_value_get_boolean (value);
}

static GstBuffer *
get_buffer (const GstStructure *s, guint name)
{
  const GValue *value = get_value (s, name, GST_TYPE_BUFFER);

  return value ? gst_value_get_buffer (value) : NULL;
}

/* Returns: (nullable): what shcentroid has measured */
static const GstStructure *
find_slopes (GstBuffer *buffer, const gchar *element)
{
  const GstStructure *s = gst_imaging_results_get (buffer, element);

  return s && g_strcmp0 (get_string (s, ID), "shwfs-centroids-v1") == 0 ? s
                                                                        : NULL;
}

static gboolean
add_name (GQuark element, const GValue *value, gpointer names)
{
  GString *text = names;

  if (GST_VALUE_HOLDS_STRUCTURE (value) &&
      g_strcmp0 (get_string (gst_value_get_structure (value), ID),
          "shwfs-centroids-v1") == 0)
    g_string_append_printf (
        text, "%s%s", text->len ? ", " : "", g_quark_to_string (element));
  return TRUE;
}

/* Returns: (transfer full): "a, b": whose slopes are on the frame */
static gchar *
name_sources (GstBuffer *buffer)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_RESULTS_META);
  GString *names = g_string_new (NULL);

  if (meta)
    gst_structure_foreach (
        gst_custom_meta_get_structure (meta), add_name, names);
  return g_string_free (names, FALSE);
}

static ImkStatus
refuse_source (GstBuffer *buffer, const gchar *element, ImkError *error)
{
  g_autofree gchar *names = name_sources (buffer);

  if (element && *names)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "There are no slopes of an element named \"%s\" on the frame. Set "
        "results to one of those that are: %s.",
        element, names);
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "There are no slopes%s%s%s on the frame. Put shcentroid before "
      "shreconstruct, and give its name in `results` where there are several.",
      element ? " of an element named \"" : "", element ? element : "",
      element ? "\"" : "");
}

/* The slopes are the first tensor; flags may follow. */
guint
gst_sh_reconstruct_cells_of_caps (GstCaps *caps, GstShReconstructShape *shape)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *text = gst_structure_get_string (s, "dimensions");
  g_auto (GStrv) tensors = g_strsplit (text ? text : "", ",", 2);
  g_auto (GStrv) dims = g_strsplit (tensors[0] ? tensors[0] : "", ":", -1);
  guint64 n = 1;
  guint n_long = 0;

  if (!gst_structure_has_name (s, "other/tensors"))
    return 0;
  for (guint i = 0; dims[i]; i++) {
    const guint64 size = g_ascii_strtoull (dims[i], NULL, 10);

    if (size == 0 || size > 2 * (guint64) G_MAXINT32 / n)
      return 0;
    n *= size;
    n_long += size > 1;
  }
  *shape = n_long < 2                   ? GST_SH_RECONSTRUCT_SHAPE_ROW
           : g_str_equal (dims[1], "2") ? GST_SH_RECONSTRUCT_SHAPE_TWO_ROWS
           : g_str_equal (dims[0], "2") ? GST_SH_RECONSTRUCT_SHAPE_PAIRS
                                        : GST_SH_RECONSTRUCT_SHAPE_IMAGE;
  return n_long > 2 || n % 2 ? 0 : (guint) (n / 2);
}

guint
gst_sh_reconstruct_cells_of_frame (GstBuffer *buffer, const gchar *element)
{
  const GstStructure *s = find_slopes (buffer, element);

  return s ? (guint) MAX (get_int (s, is_by_field (s) ? COLUMNS : ROWS), 0) : 0;
}

void
gst_sh_reconstruct_slopes_close (GstShReconstructSlopes *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->mapped); i++)
    if (self->mapped[i]) {
      gst_buffer_unmap (self->mapped[i], &self->maps[i]);
      self->mapped[i] = NULL;
    }
  g_clear_pointer (&self->gathered, g_free);
  self->slopes = NULL;
}

static ImkStatus
open_tensors (GstShReconstructSlopes *self, GstBuffer *buffer,
    gboolean is_interleaved, guint n_cells, ImkError *error)
{
  const gsize size = 2 * (gsize) n_cells * sizeof (gfloat);
  const gsize all = gst_buffer_get_size (buffer);

  if (all != size && all != size + n_cells)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer of slopes has %" G_GSIZE_FORMAT
        " bytes; %u cells have %" G_GSIZE_FORMAT ", and %u more with flags.",
        all, n_cells, size, n_cells);
  self->slopes_buffer = buffer;
  self->slopes_size = size;
  if (all > size) {
    self->flags_buffer = buffer;
    self->flags_at = size;
  }
  if (is_interleaved) {
    self->cell_step = 2;
    self->dy = 1;
  }
  return IMK_OK;
}

/* Returns: its place among the names in @fields; -1 where it is not there */
static gint
find_field (const gchar *fields, const gchar *name)
{
  const gsize size = strlen (name);

  for (gint i = 0; fields; i++) {
    if (strncmp (fields, name, size) == 0 &&
        (fields[size] == ',' || fields[size] == 0))
      return i;
    fields = strchr (fields, ',');
    if (fields)
      fields++;
  }
  return -1;
}

/* @step: from one cell to the next. Returns: (transfer full): [2][n_cells] */
static gfloat *
gather (const gfloat *numbers, guint n_cells, guint step, gsize dx, gsize dy)
{
  gfloat *own = g_new (gfloat, 2 * (gsize) n_cells);

  for (gsize i = 0; i < n_cells; i++) {
    own[i] = numbers[i * step + dx];
    own[n_cells + i] = numbers[i * step + dy];
  }
  return own;
}

static ImkStatus
open_metadata (GstShReconstructSlopes *self, GstBuffer *buffer,
    const gchar *element, guint n_cells, ImkError *error)
{
  const GstStructure *s = find_slopes (buffer, element);
  gint dx, dy, rows, columns, cells, n_fields;
  gboolean by_field;

  if (!s)
    return refuse_source (buffer, element, error);
  self->told = s;
  dx = find_field (get_string (s, FIELDS), "dx");
  dy = find_field (get_string (s, FIELDS), "dy");
  rows = get_int (s, ROWS);
  columns = get_int (s, COLUMNS);
  by_field = is_by_field (s);
  if (dx < 0 || dy < 0)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The results on the frame have no slopes. Set fields=slopes or "
        "fields=all on shcentroid.");
  cells = by_field ? columns : rows;
  n_fields = by_field ? rows : columns;
  if (cells != (gint) n_cells)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The frame has %d cells and the control matrix is made for %u. Use "
        "the matrix of this sensor.",
        cells, n_cells);
  self->slopes_buffer = get_buffer (s, DATA);
  self->slopes_size = (gsize) rows * (gsize) columns * sizeof (gfloat);
  self->flags_buffer = get_buffer (s, FLAGS);
  self->places_buffer = get_buffer (s, PLACES);
  if (!self->slopes_buffer || dx >= n_fields || dy >= n_fields ||
      gst_buffer_get_size (self->slopes_buffer) < self->slopes_size)
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The slopes on the frame cannot be read.");
  if (self->flags_buffer && gst_buffer_get_size (self->flags_buffer) < n_cells)
    self->flags_buffer = NULL;
  self->has_all_flags =
      self->flags_buffer && find_field (get_string (s, FIELDS), "flags") >= 0;
  if (by_field && dy == dx + 1) {
    self->slopes_at = (gsize) dx * n_cells * sizeof (gfloat);
  } else {
    self->cell_step = by_field ? 1 : (guint) columns;
    self->dx = (gsize) dx * (by_field ? n_cells : 1);
    self->dy = (gsize) dy * (by_field ? n_cells : 1);
  }
  return IMK_OK;
}

ImkStatus
gst_sh_reconstruct_slopes_open (GstShReconstructSlopes *self, GstBuffer *buffer,
    GstShReconstructInput input, const gchar *element, guint n_cells,
    ImkError *error)
{
  *self = (GstShReconstructSlopes){.n_cells = n_cells, .input = input};
  return input == GST_SH_RECONSTRUCT_INPUT_METADATA
             ? open_metadata (self, buffer, element, n_cells, error)
             : open_tensors (self, buffer,
                   input == GST_SH_RECONSTRUCT_INPUT_INTERLEAVED, n_cells,
                   error);
}

static const guint8 *
map (GstShReconstructSlopes *self, guint i, GstBuffer *buffer, gsize size)
{
  if (!buffer || gst_buffer_get_size (buffer) < size ||
      !gst_buffer_map (buffer, &self->maps[i], GST_MAP_READ))
    return NULL;
  self->mapped[i] = buffer;
  return self->maps[i].data;
}

ImkStatus
gst_sh_reconstruct_slopes_map (GstShReconstructSlopes *self, ImkError *error)
{
  const guint n = self->n_cells;
  const guint8 *numbers, *bytes, *from;

  if (self->slopes)
    return IMK_OK;
  numbers = map (self, 0, self->slopes_buffer, self->slopes_size);
  bytes = map (self, 1, self->flags_buffer, self->flags_at + n);
  if (!numbers || (self->flags_buffer && !bytes)) {
    gst_sh_reconstruct_slopes_close (self);
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The slopes on the frame cannot be read.");
  }
  self->flags = bytes ? bytes + self->flags_at : NULL;
  from = numbers + self->slopes_at;
  if (self->cell_step > 0)
    self->slopes = self->gathered =
        gather ((const gfloat *) (gconstpointer) numbers, n, self->cell_step,
            self->dx, self->dy);
  else if (GPOINTER_TO_SIZE (from) % sizeof (gfloat) > 0)
    self->slopes = self->gathered =
        g_memdup2 (from, 2 * (gsize) n * sizeof (gfloat));
  else
    self->slopes = (const gfloat *) (gconstpointer) from;
  return IMK_OK;
}

void
gst_sh_reconstruct_slopes_images (
    const GstShReconstructSlopes *self, ImkImage *slopes, ImkImage *flags)
{
  *slopes = imk_image_of_rows (
      (gpointer) self->slopes, IMK_TYPE_F32, 2 * self->n_cells, 1);
  *flags =
      imk_image_of_rows ((gpointer) self->flags, IMK_TYPE_U8, self->n_cells, 1);
}

const guint32 *
gst_sh_reconstruct_slopes_places (GstShReconstructSlopes *self)
{
  const gsize size = 2 * (gsize) self->n_cells * sizeof (guint32);

  return (
      const guint32 *) (gconstpointer) (self->mapped[2]
                                            ? self->maps[2].data
                                            : map (self, 2, self->places_buffer,
                                                  size));
}

const gchar *
gst_sh_reconstruct_slopes_settings (const GstShReconstructSlopes *self)
{
  const GstStructure *told = self->told;
  GstCustomMeta *meta = told ? NULL
                             : gst_buffer_get_custom_meta (self->slopes_buffer,
                                   GST_IMAGING_QUANTITY_META);

  if (meta)
    told = gst_custom_meta_get_structure (meta);
  return told ? gst_structure_get_string (told, "settings-hash") : NULL;
}
