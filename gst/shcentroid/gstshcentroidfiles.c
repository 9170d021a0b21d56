/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidfiles.h"

#include <math.h>

#include "gstimagingnpy.h"

enum { MIN_COLUMNS = 4, MAX_COLUMNS = 8 };

/* @values of @n_rows x @n_columns: the columns from @first on, which alone may
 * be left open by a NaN, are not looked at. Returns: whether the others are
 * finite */
static gboolean
check_finite (const gchar *property, const gchar *location,
    const gdouble *values, guint64 n_rows, guint64 n_columns, guint64 first,
    ImkError *error)
{
  for (guint64 row = 0; row < n_rows; row++)
    for (guint64 column = 0; column < MIN (n_columns, first); column++) {
      gdouble value = values[row * n_columns + column];

      if (isfinite (value))
        continue;
      imk_error_set (error, IMK_ERROR_FILE,
          "%s \"%s\" has %g in row %" G_GUINT64_FORMAT
          ", column %" G_GUINT64_FORMAT
          ", counted from 0; it has to be a finite number.",
          property, location, value, row, column);
      return FALSE;
    }
  return TRUE;
}

/* The numbers of a table file, row by row. */
static gdouble *
load_table (const gchar *property, const gchar *location, guint64 *n_rows,
    guint64 *n_columns, ImkError *error)
{
  GError *why = NULL;
  GstImagingNpy *npy = gst_imaging_npy_load (location, &why);
  gdouble *values = NULL;

  if (npy && npy->n_dims != 2)
    imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" has %u dimensions; it needs 2, a row for each cell.",
        property, location, npy->n_dims);
  else if (npy)
    values = gst_imaging_npy_to_double (npy, NULL, &why);
  if (why)
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
  if (values) {
    *n_rows = npy->dims[0];
    *n_columns = npy->dims[1];
  }
  g_clear_error (&why);
  g_clear_pointer (&npy, gst_imaging_npy_free);
  return values;
}

/* Columns that a map leaves out are NaN: the kernel takes its default. */
static ImkShcentroidCell
cell_of_row (const gdouble *row, guint64 n_columns)
{
  gdouble v[MAX_COLUMNS];

  for (guint i = 0; i < MAX_COLUMNS; i++)
    v[i] = i < n_columns ? row[i] : NAN;
  return (ImkShcentroidCell){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

ImkShcentroidCell *
gst_sh_centroid_load_map (
    const gchar *location, guint32 *n_cells, ImkError *error)
{
  guint64 n_rows = 0, n_columns = 0;
  gdouble *table =
      load_table ("map-location", location, &n_rows, &n_columns, error);
  ImkShcentroidCell *cells = NULL;

  if (!table)
    return NULL;
  if (n_columns < MIN_COLUMNS || n_columns > MAX_COLUMNS) {
    imk_error_set (error, IMK_ERROR_FILE,
        "map-location \"%s\" has %" G_GUINT64_FORMAT
        " columns; a cell needs x, y, width, height, and may have ref-x, "
        "ref-y, min-flux, threshold.",
        location, n_columns);
  } else if (n_rows == 0 || n_rows > G_MAXUINT32) {
    imk_error_set (error, IMK_ERROR_FILE,
        "map-location \"%s\" has %" G_GUINT64_FORMAT
        " rows; it needs one for each cell.",
        location, n_rows);
  } else if (check_finite ("map-location", location, table, n_rows, n_columns,
                 MIN_COLUMNS, error)) {
    cells = g_new (ImkShcentroidCell, n_rows);
    for (guint64 i = 0; i < n_rows; i++)
      cells[i] = cell_of_row (table + i * n_columns, n_columns);
    *n_cells = (guint32) n_rows;
  }
  g_free (table);
  return cells;
}

gdouble *
gst_sh_centroid_load_references (
    const gchar *location, guint32 n_cells, ImkError *error)
{
  guint64 n_rows = 0, n_columns = 0;
  gdouble *table =
      load_table ("reference-location", location, &n_rows, &n_columns, error);

  if (!table)
    return NULL;
  if (n_rows == n_cells && n_columns == 2) {
    if (check_finite (
            "reference-location", location, table, n_rows, 2, 2, error))
      return table;
    g_free (table);
    return NULL;
  }
  imk_error_set (error, IMK_ERROR_FILE,
      "reference-location \"%s\" is [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT
      "]; the %u cells need [%u, 2], x and y of each.",
      location, n_rows, n_columns, n_cells, n_cells);
  g_free (table);
  return NULL;
}

/* Results count from the centre of the top left pixel, cells from its corner:
 * half a pixel between them. */
ImkStatus
gst_sh_centroid_save_map (
    const gchar *location, const ImkShcentroidGrid *grid, ImkError *error)
{
  const guint64 dims[2] = {grid->n_spots, 6};
  gdouble *table = g_new (gdouble, dims[0] * dims[1]);
  gdouble side = imk_shcentroid_grid_side (grid);
  ImkStatus status = IMK_OK;
  GError *why = NULL;

  for (guint32 i = 0; i < grid->n_spots; i++) {
    const ImkShcentroidSpot *spot = &grid->spots[i];
    gdouble *row = table + i * dims[1];

    row[0] = spot->x + 0.5 - side / 2;
    row[1] = spot->y + 0.5 - side / 2;
    row[2] = row[3] = side;
    row[4] = spot->x;
    row[5] = spot->y;
  }
  if (!gst_imaging_npy_save (
          location, GST_IMAGING_NPY_TYPE_F64, 2, dims, table, &why))
    status = imk_error_set (error, IMK_ERROR_FILE,
        "The grid that was found cannot be written: %s", why->message);
  g_clear_error (&why);
  g_free (table);
  return status;
}

static gboolean
has_shape (const GstImagingNpy *npy, guint64 n_rows, guint64 n_columns)
{
  if (npy->n_dims == 1)
    return n_rows == 1 && npy->dims[0] == n_columns;
  return npy->n_dims == 2 && npy->dims[0] == n_rows &&
         npy->dims[1] == n_columns;
}

gfloat *
gst_sh_centroid_load_floats (const gchar *property, const gchar *location,
    guint64 n_rows, guint64 n_columns, ImkError *error)
{
  GError *why = NULL;
  GstImagingNpy *npy = gst_imaging_npy_load (location, &why);
  gdouble *values = NULL;
  gfloat *floats = NULL;

  if (npy && !has_shape (npy, n_rows, n_columns)) {
    g_autofree gchar *found = gst_imaging_npy_describe (npy);

    imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" is %s; it has to be [%" G_GUINT64_FORMAT
        ", %" G_GUINT64_FORMAT "].",
        property, location, found, n_rows, n_columns);
  } else if (npy) {
    values = gst_imaging_npy_to_double (npy, NULL, &why);
  }
  if (why)
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
  if (values && check_finite (property, location, values, n_rows, n_columns,
                    n_columns, error)) {
    floats = g_new (gfloat, n_rows * n_columns);
    for (guint64 i = 0; i < n_rows * n_columns; i++)
      floats[i] = (gfloat) values[i];
  }
  g_free (values);
  g_clear_error (&why);
  g_clear_pointer (&npy, gst_imaging_npy_free);
  return floats;
}
