/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidgeometry.h"

/* Of the spots that are lit, relative to the median one: with less, the arms
 * of bright spots and dust would be cells. */
#define LEAST_STRENGTH 0.1

/* --- finding -------------------------------------------------------------- */

typedef struct {
  gint least, most; /* where the lit ones of a row or column begin and end */
} Span;

static Span *
new_spans (guint n)
{
  Span *spans = g_new (Span, n);

  for (guint i = 0; i < n; i++)
    spans[i] = (Span){G_MAXINT, -1};
  return spans;
}

static void
extend (Span *span, gint at)
{
  span->least = MIN (span->least, at);
  span->most = MAX (span->most, at);
}

static gboolean
is_within (const Span *span, gint at)
{
  return span->least < at && at < span->most;
}

/* Lattice points without a spot that have lit ones on all four sides: lenslets
 * that are dark or blocked, not the rim of a round pupil. */
static guint
count_holes (const ImkShcentroidGrid *grid, guint *column, guint *row)
{
  g_autofree guint8 *lit = g_malloc0 ((gsize) grid->columns * grid->rows);
  g_autofree Span *rows = new_spans (grid->rows);
  g_autofree Span *columns = new_spans (grid->columns);
  guint n = 0;

  for (guint k = 0; k < grid->n_spots; k++) {
    const ImkShcentroidSpot *s = &grid->spots[k];

    lit[(gsize) s->row * grid->columns + s->column] = 1;
    extend (&rows[s->row], s->column);
    extend (&columns[s->column], s->row);
  }
  for (guint j = 0; j < grid->rows; j++)
    for (guint i = 0; i < grid->columns; i++)
      if (!lit[(gsize) j * grid->columns + i] && is_within (&rows[j], i) &&
          is_within (&columns[i], j) && n++ == 0) {
        *column = i;
        *row = j;
      }
  return n;
}

/* x0, y0, pitch-x, pitch-y, columns and rows are what the properties of those
 * names would be: of use when the rotation is small and all cells are lit. */
static GstStructure *
describe (const ImkShcentroidGrid *grid, const gchar *location)
{
  gboolean square = grid->lattice == IMK_SHCENTROID_LATTICE_SQUARE;
  gdouble side = imk_shcentroid_grid_side (grid);
  guint column = 0, row = 0;
  guint n_holes = count_holes (grid, &column, &row);
  GstStructure *report;

  report = gst_structure_new ("shcentroid-grid", "location", G_TYPE_STRING,
      location, "lattice", G_TYPE_STRING, square ? "square" : "hexagonal",
      "cells", G_TYPE_UINT, grid->n_spots, "unplaced", G_TYPE_UINT,
      grid->n_unplaced, "pitch", G_TYPE_DOUBLE, grid->pitch, "rotation",
      G_TYPE_DOUBLE, grid->rotation * 180 / G_PI, "rms", G_TYPE_DOUBLE,
      grid->rms, "x0", G_TYPE_DOUBLE, grid->origin_x + 0.5 - side / 2, "y0",
      G_TYPE_DOUBLE, grid->origin_y + 0.5 - side / 2, "pitch-x", G_TYPE_DOUBLE,
      grid->column_x, "pitch-y", G_TYPE_DOUBLE, grid->row_y, "columns",
      G_TYPE_UINT, grid->columns, "rows", G_TYPE_UINT, grid->rows, "holes",
      G_TYPE_UINT, n_holes, NULL);
  if (n_holes > 0)
    gst_structure_set (report, "hole-column", G_TYPE_UINT, column, "hole-row",
        G_TYPE_UINT, row, NULL);
  return report;
}

GstStructure *
gst_sh_centroid_find_grid (const ImkImage *frame, ImkShcentroidLattice lattice,
    const gchar *location, GstShCentroidMap **map, ImkError *error)
{
  ImkShcentroidGrid grid = {0};
  GstStructure *report = NULL;

  if (imk_shcentroid_find_grid (frame, lattice, LEAST_STRENGTH, &grid, error) !=
      IMK_OK)
    return NULL;
  *map = gst_sh_centroid_map_save (location, &grid, error);
  if (*map)
    report = describe (&grid, location);
  imk_shcentroid_grid_clear (&grid);
  return report;
}

/* --- for viewers ---------------------------------------------------------- */

GstStructure *
gst_sh_centroid_describe_cells (
    const ImkShcentroidConfig *config, GBytes *indices)
{
  const guint32 *index = g_bytes_get_data (indices, NULL);
  guint32 n = imk_shcentroid_n_cells (config);
  gfloat *numbers = g_new (gfloat, 6 * (gsize) n);
  guint32 *places = g_new (guint32, 2 * (gsize) n);
  GstBuffer *cells, *row_column;
  GstStructure *more;

  for (guint32 i = 0; i < n; i++) {
    ImkShcentroidCell cell = imk_shcentroid_cell (config, i);
    const gdouble values[6] = {
        cell.x, cell.y, cell.width, cell.height, cell.ref_x, cell.ref_y};

    for (guint k = 0; k < 6; k++)
      numbers[6 * (gsize) i + k] = (gfloat) values[k];
    places[2 * (gsize) i] = index[3 * (gsize) i + 1];
    places[2 * (gsize) i + 1] = index[3 * (gsize) i + 2];
  }
  row_column =
      gst_buffer_new_wrapped (places, 2 * (gsize) n * sizeof (*places));
  cells = gst_buffer_new_wrapped (numbers, 6 * (gsize) n * sizeof (gfloat));
  more = gst_structure_new ("cells", "cells", GST_TYPE_BUFFER, cells,
      "row-column", GST_TYPE_BUFFER, row_column, "slope-scale", G_TYPE_DOUBLE,
      config->slope_scale, NULL);
  gst_buffer_unref (cells);
  gst_buffer_unref (row_column);
  return more;
}
