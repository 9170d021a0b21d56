/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidfiles.h"

#include <math.h>
#include <string.h>

#include "gstimagingarrayfile.h"

/* Of a cell; those beyond are what find-grid tells of its map. */
enum { MIN_COLUMNS = 4, MAX_COLUMNS = 8, MAP_COLUMNS = 12 };
enum { ROW = 8, COLUMN }; /* columns of a map: where a cell is in the lattice */

/* --- arrays --------------------------------------------------------------- */

GstShCentroidArray *
gst_sh_centroid_array_new (guint n_dims, const guint64 *dims)
{
  GstShCentroidArray *self;
  gsize n = 1;

  for (guint i = 0; i < n_dims; i++)
    n *= (gsize) dims[i];
  self = g_malloc0 (sizeof (*self) + n * sizeof (gdouble));
  self->n_dims = n_dims;
  self->n = n;
  for (guint i = 0; i < n_dims; i++)
    self->dims[i] = dims[i];
  return self;
}

gpointer
gst_sh_centroid_array_load_part (
    const gchar *property, const gchar *location, gint part, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  GstImagingNdArray *npy =
      gst_imaging_nd_array_load_part (location, part, &why);
  GstShCentroidArray *self = NULL;
  g_autofree gdouble *values = NULL;

  if (npy && (npy->n_dims < 1 || npy->n_dims > 3))
    imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" has %u dimensions; it needs 1 to 3.", property, location,
        npy->n_dims);
  else if (npy)
    values = gst_imaging_nd_array_to_double (npy, NULL, &why);
  if (why)
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
  if (values) {
    g_autofree gchar *text = gst_imaging_nd_array_describe (npy);

    self = gst_sh_centroid_array_new (npy->n_dims, npy->dims);
    g_strlcpy (self->text, text, sizeof (self->text));
    memcpy (self->values, values, self->n * sizeof (gdouble));
  }
  g_clear_pointer (&npy, gst_imaging_nd_array_free);
  return self;
}

gpointer
gst_sh_centroid_array_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  return gst_sh_centroid_array_load_part (property, location, -1, error);
}

/* The columns from @first on, which alone may be left open by a NaN, are not
 * looked at. */
static gboolean
check_columns (const GstShCentroidArray *a, const gchar *property,
    const gchar *location, guint64 first, ImkError *error)
{
  guint64 n_columns = a->dims[a->n_dims - 1];

  for (gsize i = 0; i < a->n; i++)
    if (i % n_columns < first && !isfinite (a->values[i])) {
      imk_error_set (error, IMK_ERROR_FILE,
          "%s \"%s\" has %g in row %" G_GUINT64_FORMAT
          ", column %" G_GUINT64_FORMAT
          ", counted from 0; it has to be a finite number.",
          property, location, a->values[i], (guint64) i / n_columns,
          (guint64) i % n_columns);
      return FALSE;
    }
  return TRUE;
}

gboolean
gst_sh_centroid_array_check_finite (const GstShCentroidArray *self,
    const gchar *property, const gchar *location, ImkError *error)
{
  return check_columns (self, property, location, G_MAXUINT64, error);
}

gpointer
gst_sh_centroid_array_load_finite (
    const gchar *property, const gchar *location, ImkError *error)
{
  GstShCentroidArray *self =
      gst_sh_centroid_array_load (property, location, error);

  if (self &&
      !gst_sh_centroid_array_check_finite (self, property, location, error))
    g_clear_pointer (&self, g_free);
  return self;
}

gboolean
gst_sh_centroid_array_has_shape (
    const GstShCentroidArray *self, guint64 n_rows, guint64 n_columns)
{
  if (self->n_dims == 1)
    return n_rows == 1 && self->dims[0] == n_columns;
  return self->n_dims == 2 && self->dims[0] == n_rows &&
         self->dims[1] == n_columns;
}

gfloat *
gst_sh_centroid_array_to_floats (const GstShCentroidArray *self)
{
  gfloat *floats = g_new (gfloat, MAX (self->n, 1));

  for (gsize i = 0; i < self->n; i++)
    floats[i] = (gfloat) self->values[i];
  return floats;
}

gboolean
gst_sh_centroid_array_save (const GstShCentroidArray *self,
    const gchar *location, gboolean as_floats, GError **error)
{
  g_autofree gfloat *floats =
      as_floats ? gst_sh_centroid_array_to_floats (self) : NULL;

  return gst_imaging_array_save (location,
      as_floats ? GST_IMAGING_ND_ARRAY_TYPE_F32 : GST_IMAGING_ND_ARRAY_TYPE_F64,
      self->n_dims, self->dims, floats ? (gconstpointer) floats : self->values,
      error);
}

/* --- maps ----------------------------------------------------------------- */

/* Columns that a map leaves out are NaN: the kernel takes its default. */
static ImkShcentroidCell
cell_of_row (const gdouble *row, guint64 n_columns)
{
  gdouble v[MAX_COLUMNS];

  for (guint i = 0; i < MAX_COLUMNS; i++)
    v[i] = i < n_columns ? row[i] : NAN;
  return (ImkShcentroidCell){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

/* Whether each cell has a row and a column: whole numbers from 0. */
static gboolean
has_places (const GstShCentroidArray *a)
{
  if (a->dims[1] <= COLUMN)
    return FALSE;
  for (guint64 i = 0; i < a->dims[0]; i++)
    for (guint k = ROW; k <= COLUMN; k++) {
      gdouble place = a->values[i * a->dims[1] + k];

      if (!(place >= 0 && place <= G_MAXINT32 && place == floor (place)))
        return FALSE;
    }
  return TRUE;
}

static GstShCentroidMap *
map_of (const GstShCentroidArray *a)
{
  gsize cells = a->dims[0] * sizeof (ImkShcentroidCell);
  GstShCentroidMap *map =
      g_malloc (sizeof (*map) + cells + 2 * a->dims[0] * sizeof (*map->places));

  map->n_cells = (guint32) a->dims[0];
  map->places = has_places (a) ? (guint32 *) (map->cells + a->dims[0]) : NULL;
  for (guint64 i = 0; map->places && i < 2 * a->dims[0]; i++)
    map->places[i] =
        (guint32) a->values[i / 2 * a->dims[1] + (i % 2 ? COLUMN : ROW)];
  for (guint32 i = 0; i < map->n_cells; i++)
    map->cells[i] =
        cell_of_row (a->values + (gsize) i * a->dims[1], a->dims[1]);
  return map;
}

gpointer
gst_sh_centroid_map_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  GstShCentroidArray *a =
      gst_sh_centroid_array_load (property, location, error);
  GstShCentroidMap *map = NULL;

  if (!a)
    return NULL;
  if (a->n_dims != 2)
    imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" has %u dimensions; it needs 2, a row for each cell.",
        property, location, a->n_dims);
  else if (a->dims[1] < MIN_COLUMNS || a->dims[1] > MAP_COLUMNS)
    imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" has %" G_GUINT64_FORMAT
        " columns; a cell needs x, y, width, height, and may have ref-x, "
        "ref-y, min-flux, threshold, row, column.",
        property, location, a->dims[1]);
  else if (a->dims[0] == 0 || a->dims[0] > G_MAXUINT32)
    imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" has %" G_GUINT64_FORMAT " rows; it needs one for each cell.",
        property, location, a->dims[0]);
  else if (check_columns (a, property, location, MIN_COLUMNS, error))
    map = map_of (a);
  g_free (a);
  return map;
}

/* Edges are floored: one that rounding has left of a whole pixel would take a
 * pixel of the neighbour, or none of the frame. */
static gdouble
snap (gdouble edge)
{
  gdouble whole = rint (edge);

  return fabs (edge - whole) < 1e-6 ? whole : edge;
}

/* Results count from the centre of the top left pixel, cells from its corner:
 * half a pixel between them. */
GstShCentroidMap *
gst_sh_centroid_map_save (
    const gchar *location, const ImkShcentroidGrid *grid, ImkError *error)
{
  const guint64 dims[2] = {grid->n_spots, MAP_COLUMNS};
  g_autofree GstShCentroidArray *a = gst_sh_centroid_array_new (2, dims);
  gdouble side = snap (imk_shcentroid_grid_side (grid));
  GstShCentroidMap *map = NULL;
  g_autoptr (GError) why = NULL;

  for (guint32 i = 0; i < grid->n_spots; i++) {
    const ImkShcentroidSpot *spot = &grid->spots[i];
    gdouble *row = a->values + i * dims[1];

    row[0] = snap (spot->x + 0.5 - side / 2);
    row[1] = snap (spot->y + 0.5 - side / 2);
    row[2] = row[3] = side;
    row[4] = spot->x;
    row[5] = spot->y;
    row[6] = row[7] = NAN; /* min-flux, threshold: those of the properties */
    row[8] = spot->row;
    row[9] = spot->column;
    row[10] = grid->n_unplaced;
    row[11] = grid->rms;
  }
  if (gst_sh_centroid_array_save (a, location, FALSE, &why))
    map = map_of (a);
  else
    imk_error_set (error, IMK_ERROR_FILE,
        "The grid that was found cannot be written: %s", why->message);
  return map;
}
