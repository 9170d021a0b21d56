/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstlapsharpenfocus.h"

/* @values: [n_rows][n_fields] */
static void
publish (GstImagingFilter *filter, GstBuffer *buffer, const ImkImage *image,
    GstImagingResult *result, const gdouble *values)
{
  gsize n = (gsize) result->n_rows * result->n_fields;
  gfloat *numbers = g_new (gfloat, n);

  for (gsize i = 0; i < n; i++)
    numbers[i] = (gfloat) values[i];
  result->values = values;
  result->ref_width = image->width;
  result->ref_height = image->height;
  result->frame = gst_imaging_filter_frame_number (filter);
  result->data = gst_buffer_new_wrapped (numbers, n * sizeof (*numbers));
  gst_imaging_filter_publish (filter, buffer, result);
  gst_buffer_unref (result->data);
}

ImkStatus
gst_lap_sharpen_publish_focus (GstImagingFilter *filter, ImkLapsharpen *kernel,
    const ImkImage *image, GstBuffer *buffer, ImkError *error)
{
  static const gchar *const fields[] = {"variance", "mean"};
  static const gchar *const units[] = {"counts^2", "counts"};
  GstImagingResult result = {
      .id = "laplacian-focus-v1",
      .fields = fields,
      .units = units,
      .n_fields = G_N_ELEMENTS (fields),
      .n_rows = 1,
  };
  ImkLapsharpenFocus focus;

  IMK_TRY (imk_lapsharpen_get_focus (kernel, &focus, error));
  publish (filter, buffer, image, &result,
      (const gdouble[]){focus.variance, focus.mean});
  return IMK_OK;
}

ImkStatus
gst_lap_sharpen_publish_tiles (GstImagingFilter *filter,
    const ImkLapsharpenConfig *format, const ImkImage *image, guint columns,
    guint rows, GstBuffer *buffer, ImkError *error)
{
  static const gchar *const fields[] = {"variance", "tenengrad", "brenner"};
  static const gchar *const units[] = {"counts^2", "counts^2", "counts^2"};
  static const gchar *const indices[] = {"row", "column"};
  /* a frame that is smaller than the grid has a tile for each pixel */
  guint n_columns = MIN (columns, image->width);
  guint n = n_columns * MIN (rows, image->height);
  g_autofree ImkLapsharpenTile *tiles = g_new (ImkLapsharpenTile, n);
  guint32 *places = g_new (guint32, 2 * n);
  g_autoptr (GBytes) bytes =
      g_bytes_new_take (places, 2 * n * sizeof (*places));
  g_autoptr (GstStructure) more = gst_structure_new ("more", "tile-columns",
      G_TYPE_UINT, n_columns, "tile-rows", G_TYPE_UINT, n / n_columns, NULL);
  GstImagingResult result = {
      .id = "focus-tiles-v1",
      .fields = fields,
      .units = units,
      .n_fields = G_N_ELEMENTS (fields),
      .n_rows = n,
      .index_names = indices,
      .n_indices = G_N_ELEMENTS (indices),
      .indices = bytes,
      .more = more,
  };
  g_autofree gpointer copy = NULL;
  ImkImage host;

  IMK_TRY (gst_imaging_filter_download (filter, image, &host, &copy, error));
  IMK_TRY (imk_lapsharpen_measure_tiles (&host, format->storage, format->shift,
      format->channel_mask, n_columns, n / n_columns,
      gst_imaging_filter_n_threads (filter), tiles, error));
  for (guint i = 0; i < n; i++) {
    places[2 * i] = i / n_columns;
    places[2 * i + 1] = i % n_columns;
  }
  publish (filter, buffer, image, &result, &tiles[0].variance);
  return IMK_OK;
}
