/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exr.h"

#include <string.h>

#define MAX_PARTS 4096

static gboolean
has_names (const exr_attr_chlist_t *channels, const gchar *const *names)
{
  guint n = g_strv_length ((gchar **) names);

  if ((guint) channels->num_channels != n)
    return FALSE;
  for (guint i = 0; i < n; i++) {
    gint k;

    for (k = 0; k < channels->num_channels; k++)
      if (strcmp (channels->entries[k].name.str, names[i]) == 0)
        break;
    if (k == channels->num_channels)
      return FALSE;
  }
  return TRUE;
}

/* Files have their channels sorted by name; arrays have red first. */
static gchar **
order_names (const exr_attr_chlist_t *channels)
{
  static const gchar *const usual[][5] = {
      {"R", "G", "B"}, {"R", "G", "B", "A"}, {"Y", "A"}};
  GPtrArray *names = g_ptr_array_new ();

  for (guint i = 0; i < G_N_ELEMENTS (usual); i++)
    if (has_names (channels, usual[i])) {
      g_ptr_array_free (names, TRUE);
      return g_strdupv ((gchar **) usual[i]);
    }
  for (gint i = 0; i < channels->num_channels; i++)
    g_ptr_array_add (names, g_strdup (channels->entries[i].name.str));
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (names, FALSE);
}

static gboolean
refuse (GstImagingExr *self, GError **error, const gchar *what)
{
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "%s. Save it as a flat OpenEXR picture.", what);
}

/* Half where all channels are, whole numbers where all are, else float.
 * @is_mixed: (out): f32 cannot hold the whole numbers among them */
static exr_pixel_type_t
find_type (const exr_attr_chlist_t *channels, gboolean *is_mixed)
{
  exr_pixel_type_t type = channels->entries[0].pixel_type;
  gint n_whole = 0;

  for (gint i = 0; i < channels->num_channels; i++) {
    n_whole += channels->entries[i].pixel_type == EXR_PIXEL_UINT;
    if (channels->entries[i].pixel_type != type)
      type = EXR_PIXEL_FLOAT;
  }
  *is_mixed = n_whole > 0 && n_whole < channels->num_channels;
  return type;
}

static gboolean
read_part (GstImagingExr *self, gint part, GError **error)
{
  const exr_attr_chlist_t *channels = NULL;
  exr_attr_box2i_t window = {0};
  exr_storage_t storage = EXR_STORAGE_LAST_TYPE;
  gint64 width, height;
  exr_pixel_type_t type;
  gboolean is_mixed;
  exr_result_t code = exr_get_channels (self->exr, part, &channels);

  if (code == EXR_ERR_SUCCESS)
    code = exr_get_data_window (self->exr, part, &window);
  if (code == EXR_ERR_SUCCESS)
    code = exr_get_storage (self->exr, part, &storage);
  if (code != EXR_ERR_SUCCESS)
    return gst_imaging_exr_fail (self, code, error);
  if (storage != EXR_STORAGE_SCANLINE && storage != EXR_STORAGE_TILED)
    return refuse (self, error, "holds deep samples");
  width = (gint64) window.max.x - window.min.x + 1;
  height = (gint64) window.max.y - window.min.y + 1;
  if (width < 1 || height < 1 || channels->num_channels < 1 ||
      width * channels->num_channels > G_MAXINT32 / 8 || height > G_MAXINT32)
    return gst_imaging_format_fail_damaged (
        self->file, error, "its data window is empty, or wider than 2 GiB");
  for (gint i = 0; i < channels->num_channels; i++)
    if (channels->entries[i].x_sampling != 1 ||
        channels->entries[i].y_sampling != 1)
      return refuse (self, error, "has channels of lower resolution");
  type = find_type (channels, &is_mixed);
  if (part == self->first) {
    self->width = (gint) width;
    self->height = (gint) height;
    self->type = type;
    self->is_mixed = is_mixed;
    self->n_channels = (guint) channels->num_channels;
    self->names = order_names (channels);
  } else if (width != self->width || height != self->height ||
             type != self->type || is_mixed != self->is_mixed ||
             !has_names (channels, (const gchar *const *) self->names)) {
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has %d parts, which differ in size, type or channels. Read one of "
        "them by its number (part, from 0 on).",
        self->n_parts);
  }
  return TRUE;
}

static void
add_window (GPtrArray *cards, const gchar *key, const exr_attr_box2i_t *window)
{
  g_autofree gchar *text = g_strdup_printf ("%d %d %d %d", window->min.x,
      window->min.y, window->max.x, window->max.y);

  gst_imaging_format_add_card (cards, key, text);
}

/* The array is the data window. Where that is not what is to be shown, or does
 * not begin at 0, both are told: the first and the last column and row. */
static void
add_windows (GstImagingExr *self, GPtrArray *cards)
{
  exr_attr_box2i_t data = {0}, display = {0};

  if (exr_get_data_window (self->exr, self->first, &data) != EXR_ERR_SUCCESS ||
      exr_get_display_window (self->exr, self->first, &display) !=
          EXR_ERR_SUCCESS ||
      (data.min.x == 0 && data.min.y == 0 &&
          memcmp (&data, &display, sizeof (data)) == 0))
    return;
  add_window (cards, GST_IMAGING_EXR_DATA_WINDOW, &data);
  add_window (cards, GST_IMAGING_EXR_DISPLAY_WINDOW, &display);
}

static void
read_cards (GstImagingExr *self, GstImagingNdArray *array)
{
  GPtrArray *cards = g_ptr_array_new ();
  g_autofree gchar *names = g_strjoinv (",", self->names);
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];
  float aspect = 1;
  gint32 n = 0;

  gst_imaging_format_add_card (cards, "CHANNELS", names);
  exr_get_pixel_aspect_ratio (self->exr, self->first, &aspect);
  if (aspect != 1)
    gst_imaging_format_add_card (cards, GST_IMAGING_EXR_ASPECT,
        g_ascii_formatd (digits, sizeof (digits), "%.9g", (gdouble) aspect));
  add_windows (self, cards);
  exr_get_attribute_count (self->exr, self->first, &n);
  for (gint32 i = 0; i < n; i++) {
    const exr_attribute_t *a = NULL;

    if (exr_get_attribute_by_index (self->exr, self->first,
            EXR_ATTR_LIST_FILE_ORDER, i, &a) == EXR_ERR_SUCCESS &&
        a->type == EXR_ATTR_STRING && a->string->str)
      gst_imaging_format_add_card (cards, a->name, a->string->str);
  }
  gst_imaging_format_take_cards (array, cards);
}

static gpointer
exr_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  static const GstImagingNdArrayType types[] = {
      [EXR_PIXEL_UINT] = GST_IMAGING_ND_ARRAY_TYPE_U32,
      [EXR_PIXEL_HALF] = GST_IMAGING_ND_ARRAY_TYPE_F16,
      [EXR_PIXEL_FLOAT] = GST_IMAGING_ND_ARRAY_TYPE_F32,
  };
  GstImagingExr *self = g_new0 (GstImagingExr, 1);
  exr_context_initializer_t init = gst_imaging_exr_make_initializer (self);
  exr_result_t code;
  gboolean ok = FALSE;
  gint n = 0;

  self->file = file;
  if (!gst_imaging_exr_check_compression (file, error)) {
    gst_imaging_exr_close (self);
    return NULL;
  }
  code = exr_start_read (&self->exr, file->name, &init);
  if (code == EXR_ERR_SUCCESS)
    code = exr_get_count (self->exr, &self->n_parts);
  if (code != EXR_ERR_SUCCESS)
    gst_imaging_exr_fail (self, code, error);
  else
    ok = self->n_parts <= MAX_PARTS ||
         refuse (self, error, "has more than 4096 parts");
  if (ok && (gint) file->part > self->n_parts)
    ok = gst_imaging_format_fail_part (file, (guint64) self->n_parts, error);
  if (ok && file->part > 0) {
    self->first = (gint) file->part - 1;
    n = 1;
  } else {
    n = self->n_parts;
  }
  for (gint i = 0; ok && i < n; i++)
    ok = read_part (self, self->first + i, error);
  if (!ok) {
    gst_imaging_exr_close (self);
    return NULL;
  }
  read_cards (self, array);
  array->type =
      self->is_mixed ? GST_IMAGING_ND_ARRAY_TYPE_F64 : types[self->type];
  gst_imaging_format_set_dims (array, (guint64) n, (guint64) self->height,
      (guint64) self->width, self->n_channels);
  *n_pages = (guint64) n;
  return self;
}

static exr_result_t
read_block (GstImagingExr *self, gint part, const exr_chunk_info_t *chunk,
    exr_decode_pipeline_t *decode, guint8 *at)
{
  gboolean is_first = !decode->channels;
  exr_result_t code =
      is_first ? exr_decoding_initialize (self->exr, part, chunk, decode)
               : exr_decoding_update (self->exr, part, chunk, decode);

  if (code != EXR_ERR_SUCCESS)
    return code;
  gst_imaging_exr_aim (self, decode->channels, decode->channel_count, at);
  if (is_first)
    code = exr_decoding_choose_default_routines (self->exr, part, decode);
  return code == EXR_ERR_SUCCESS ? exr_decoding_run (self->exr, part, decode)
                                 : code;
}

static exr_result_t
read_lines (GstImagingExr *self, gint part, exr_decode_pipeline_t *decode,
    guint8 *values, gsize row_size)
{
  exr_attr_box2i_t window;
  gint32 n_lines = 0;
  exr_result_t code = exr_get_data_window (self->exr, part, &window);

  if (code == EXR_ERR_SUCCESS)
    code = exr_get_scanlines_per_chunk (self->exr, part, &n_lines);
  for (gint64 y = 0; code == EXR_ERR_SUCCESS && y < self->height;
       y += MAX (n_lines, 1)) {
    exr_chunk_info_t chunk;

    code = exr_read_scanline_chunk_info (
        self->exr, part, (int) (window.min.y + y), &chunk);
    if (code == EXR_ERR_SUCCESS &&
        (chunk.height < 1 || chunk.height > self->height - y ||
            chunk.width != self->width))
      code = EXR_ERR_BAD_CHUNK_LEADER;
    if (code == EXR_ERR_SUCCESS)
      code = read_block (
          self, part, &chunk, decode, values + (gsize) y * row_size);
  }
  return code;
}

static exr_result_t
read_tiles (GstImagingExr *self, gint part, exr_decode_pipeline_t *decode,
    guint8 *values, gsize row_size)
{
  gint32 width = 0, height = 0;
  exr_result_t code =
      exr_get_tile_sizes (self->exr, part, 0, 0, &width, &height);

  if (code == EXR_ERR_SUCCESS && (width < 1 || height < 1))
    code = EXR_ERR_BAD_CHUNK_LEADER;
  for (gint64 y = 0; code == EXR_ERR_SUCCESS && y < self->height; y += height)
    for (gint64 x = 0; code == EXR_ERR_SUCCESS && x < self->width; x += width) {
      exr_chunk_info_t chunk;

      code = exr_read_tile_chunk_info (
          self->exr, part, (int) (x / width), (int) (y / height), 0, 0, &chunk);
      if (code == EXR_ERR_SUCCESS &&
          (chunk.width > self->width - x || chunk.height > self->height - y))
        code = EXR_ERR_BAD_CHUNK_LEADER;
      if (code == EXR_ERR_SUCCESS)
        code = read_block (self, part, &chunk, decode,
            values + (gsize) y * row_size +
                (gsize) x * (row_size / (gsize) self->width));
    }
  return code;
}

/* Values of 32 bits, each at the begin of its place, become f64. */
static exr_result_t
widen (GstImagingExr *self, gint part, guint8 *values)
{
  const exr_attr_chlist_t *channels = NULL;
  exr_result_t code = exr_get_channels (self->exr, part, &channels);
  gsize n = (gsize) self->width * (gsize) self->height;

  for (gint i = 0; code == EXR_ERR_SUCCESS && i < channels->num_channels; i++) {
    gboolean is_whole = channels->entries[i].pixel_type == EXR_PIXEL_UINT;
    guint k = 0;

    while (strcmp (self->names[k], channels->entries[i].name.str) != 0)
      k++;
    for (gsize p = 0; p < n; p++) {
      guint8 *at = values + (p * self->n_channels + k) * sizeof (gdouble);
      guint32 whole;
      gfloat number;
      gdouble value;

      memcpy (&whole, at, sizeof (whole));
      memcpy (&number, at, sizeof (number));
      value = is_whole ? (gdouble) whole : (gdouble) number;
      memcpy (at, &value, sizeof (value));
    }
  }
  return code;
}

static gboolean
exr_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  GstImagingExr *self = reader;
  exr_decode_pipeline_t decode = EXR_DECODE_PIPELINE_INITIALIZER;
  gsize row_size = (gsize) self->width * self->n_channels *
                   (gsize) gst_imaging_exr_value_size (self);
  exr_storage_t storage = EXR_STORAGE_LAST_TYPE;
  gint part = self->first + (gint) page;
  exr_result_t code;

  g_clear_pointer (&self->text, g_free);
  exr_get_storage (self->exr, part, &storage);
  code = storage == EXR_STORAGE_TILED
             ? read_tiles (self, part, &decode, values, row_size)
             : read_lines (self, part, &decode, values, row_size);
  exr_decoding_destroy (self->exr, &decode);
  if (code == EXR_ERR_SUCCESS && self->is_mixed)
    code = widen (self, part, values);
  return code == EXR_ERR_SUCCESS || gst_imaging_exr_fail (self, code, error);
}

const GstImagingFormatTable gst_imaging_format_exr = {
    .name = "OpenEXR",
    .open = exr_open,
    .read = exr_read,
    .close = gst_imaging_exr_close,
    .create = gst_imaging_exr_create,
    .write = gst_imaging_exr_write,
    .finish = gst_imaging_exr_finish,
    .discard = gst_imaging_exr_close,
    .types = GST_IMAGING_FORMAT_TYPE (F16) | GST_IMAGING_FORMAT_TYPE (F32) |
             GST_IMAGING_FORMAT_TYPE (U32),
    .takes =
        "OpenEXR takes one picture of f16, f32 or u32 with 1 to 4 channels",
    .shows_rgb = TRUE,
    .has_parts = TRUE,
};
